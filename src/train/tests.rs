//! Compares `PairTable` with counting all pairs again after every batch.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Pair, PairTable};
use crate::error::{Cancel, Error, NEVER};

type Sequences = Vec<(Vec<u32>, u64)>;

fn count(sequences: &Sequences, overlapping: bool, ranks: &[u32]) -> Vec<(Pair, u64)> {
    let mut counts: BTreeMap<Pair, u64> = BTreeMap::new();
    for (tokens, weight) in sequences {
        let mut skip = false;
        for pair in tokens.windows(2).map(|pair| (pair[0], pair[1])) {
            skip = skip && pair.0 == pair.1;
            if !skip {
                *counts.entry(pair).or_default() += weight;
            }
            skip = !skip && pair.0 == pair.1 && !overlapping;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    let rank = |id: u32| ranks.get(id as usize).copied().unwrap_or(id);
    counts.sort_by_key(|&((first, last), count)| (std::cmp::Reverse(count), rank(first), rank(last)));
    counts
}

fn merge(sequences: &mut Sequences, batch: &[Pair], next_id: u32) {
    for (tokens, _) in sequences {
        let mut i = 0;
        while i + 1 < tokens.len() {
            if let Some(nth) = batch.iter().position(|&pair| pair == (tokens[i], tokens[i + 1])) {
                tokens[i] = next_id + nth as u32;
                tokens.remove(i + 1);
            }
            i += 1;
        }
    }
}

/// Chooses every third pair, starting with the best, unless it overlaps one chosen before. Deliberately unlike any real
/// policy.
fn choose(top: &[(Pair, u64)]) -> Vec<Pair> {
    let mut batch: Vec<Pair> = Vec::new();
    for &(pair, _) in top.iter().step_by(3) {
        let overlaps =
            |&(first, last): &Pair| first == pair.1 || last == pair.0 || (pair.0 == pair.1 && first == pair.0);
        let doubled = pair.0 == pair.1 && batch.iter().any(|other| other.0 == pair.0 || other.1 == pair.0);
        if !batch.iter().any(overlaps) && !doubled {
            batch.push(pair);
        }
    }
    batch
}

/// Generates sequences of few distinct tokens, with many runs and with repeated weights.
fn sequences() -> impl Strategy<Value = Sequences> {
    let run = (0..4u32, 1..6usize).prop_map(|(token, times)| std::vec![token; times]);
    let tokens = vec(run, 0..12).prop_map(|runs| runs.concat());
    vec((tokens, prop_oneof![1..4u64, 1..400u64]), 1..30)
}

proptest! {
    #[test]
    fn agrees_with_counting_from_scratch(
        sequences in sequences(),
        overlapping: bool,
        wide: bool,
        ranked: bool,
        threads in 1..4usize,
        n in 1..40usize,
    ) {
        // Small ids are stored in two bytes, large ones in four.
        let first_id = if wide { 70_000 } else { 0 };
        let shift = |(tokens, weight): (Vec<u32>, u64)| (tokens.iter().map(|token| token + first_id).collect(), weight);
        let mut plain: Sequences = sequences.into_iter().map(shift).collect();
        let mut next_id = first_id + 4;
        let ids = plain.clone();
        let ids = ids.iter().map(|(tokens, weight)| (tokens.iter().copied(), *weight));
        let ranks: Vec<u32> = (0..first_id).chain((first_id..next_id).rev()).filter(|_| ranked).collect();
        let table = PairTable::new(ids, next_id, 500, 1, overlapping, threads, &NEVER).expect("few tokens");
        let mut table = table.break_ties_by(ranks.clone());
        for _ in 0..12 {
            let expected = count(&plain, overlapping, &ranks);
            let top = table.top(n, &NEVER).expect("not cancelled");
            prop_assert_eq!(&top, &expected[..n.min(expected.len())]);
            let batch = choose(&top);
            if batch.is_empty() {
                break;
            }
            table.merge(&batch).expect("a safe batch");
            merge(&mut plain, &batch, next_id);
            next_id += batch.len() as u32;
        }
    }
}

#[test]
fn pairs_below_the_threshold_come_back() {
    // For a single merge, the first threshold is so high that the rare pair is left out.
    let ids = [(std::vec![1, 2], 1_000_000), (std::vec![3, 4], 1), (std::vec![5, 6], 999_999)];
    let ids = ids.iter().map(|(tokens, weight)| (tokens.iter().copied(), *weight));
    let mut table = PairTable::new(ids, 7, 1, 1, false, 1, &NEVER).unwrap();
    assert_eq!(table.top(1, &NEVER).unwrap(), [((1, 2), 1_000_000)]);
    table.forget(&[(5, 6)]);
    assert_eq!(table.top(9, &NEVER).unwrap(), [((1, 2), 1_000_000), ((3, 4), 1)]);
}

#[test]
fn invalid_batches_are_rejected() {
    let ids = [(std::vec![1, 2, 3, 3, 1], 1u64)];
    let ids = ids.iter().map(|(tokens, weight)| (tokens.iter().copied(), *weight));
    let mut table = PairTable::new(ids, 5, 3, 1, false, 1, &NEVER).unwrap();
    table.top(9, &NEVER).unwrap();
    for (batch, reason) in [
        (std::vec![(1, 2), (2, 3)], "overlaps"),
        (std::vec![(3, 3), (3, 1)], "overlaps"),
        (std::vec![(2, 3), (3, 3)], "overlaps"),
        (std::vec![(1, 2), (1, 2)], "twice"),
        (std::vec![(1, 3)], "does not occur"),
        (std::vec![(9, 9)], "does not occur"),
        (std::vec![(1, 2); 4], "merges remain"),
    ] {
        assert!(table.merge(&batch).unwrap_err().to_string().contains(reason), "{batch:?}");
    }
    table.merge(&[(3, 3)]).unwrap();
    assert_eq!(table.top(9, &NEVER).unwrap(), [((1, 2), 1), ((2, 5), 1), ((5, 1), 1)]);
}

#[test]
fn every_step_can_be_cancelled() {
    let cancelled = Cancel::default();
    cancelled.cancel();
    let ids = std::vec![1, 2, 3].repeat(10_000);
    let table = |cancel| PairTable::new([(ids.iter().copied(), 1)].into_iter(), 4, 9, 1, false, 1, cancel);
    assert_eq!(table(&cancelled).err(), Some(Error::Cancelled));
    assert_eq!(table(&NEVER).unwrap().top(9, &cancelled).err(), Some(Error::Cancelled));
    assert_eq!(table(&NEVER).unwrap().merge_serially(9, &cancelled).err(), Some(Error::Cancelled));
}
