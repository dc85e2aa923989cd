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

/// Merges a batch, whose pairs become these tokens. Returns how often each pair was merged.
fn merge(sequences: &mut Sequences, batch: &[Pair], new_tokens: &[u32]) -> Vec<u64> {
    let mut merged = std::vec![0; batch.len()];
    for (tokens, weight) in sequences {
        let mut i = 0;
        while i + 1 < tokens.len() {
            if let Some(nth) = batch.iter().position(|&pair| pair == (tokens[i], tokens[i + 1])) {
                merged[nth] += *weight;
                tokens[i] = new_tokens[nth];
                tokens.remove(i + 1);
            }
            i += 1;
        }
    }
    merged
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

/// Replaces a token by two others, from left to right, so that these may be split as well.
fn split(sequences: &mut Sequences, parts: &BTreeMap<u32, Pair>) {
    for (tokens, _) in sequences {
        let mut i = 0;
        while i < tokens.len() {
            match parts.get(&tokens[i]) {
                Some(&(first, last)) => drop(tokens.splice(i..=i, [first, last])),
                None => i += 1,
            }
        }
    }
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
        groups in 1..4usize,
        expected_merges in prop_oneof![Just(1), Just(500)],
        split_every in 2..9usize,
    ) {
        // Small ids are stored in two bytes, large ones in four. Those in between become large.
        let first_id = if wide { 70_000 } else { 65_500 * u32::from(ranked) };
        let shift = |(tokens, weight): (Vec<u32>, u64)| (tokens.iter().map(|token| token + first_id).collect(), weight);
        let mut plain: Sequences = sequences.into_iter().map(shift).collect();
        let mut next_id = first_id + 4;
        let group_of = |i: usize, len: usize| i * groups / len;
        let ids = plain.clone();
        let ids = ids.iter().enumerate().map(|(i, (tokens, weight))| {
            (tokens.iter().copied(), *weight, group_of(i, plain.len()))
        });
        let ranks: Vec<u32> = (0..first_id).chain((first_id..next_id).rev()).filter(|_| ranked).collect();
        let table = PairTable::new(ids, groups, next_id, expected_merges, 1, overlapping, threads, &NEVER);
        let mut table = table.expect("few tokens").break_ties_by(ranks.clone());
        let mut made: BTreeMap<u32, Pair> = BTreeMap::new();
        for round in 1..14 {
            let expected = count(&plain, overlapping, &ranks);
            let top = table.top(n, None, &NEVER).expect("not cancelled");
            prop_assert_eq!(&top, &expected[..n.min(expected.len())]);
            let len = plain.len();
            for group in 0..groups {
                let some = plain.iter().enumerate().filter(|(i, _)| group_of(*i, len) == group);
                let some: Sequences = some.map(|(_, sequence)| sequence.clone()).collect();
                let expected = count(&some, overlapping, &ranks);
                let top = table.top(n, Some(group), &NEVER).expect("not cancelled");
                prop_assert_eq!(&top, &expected[..n.min(expected.len())]);
                let (pairs, counts): (Vec<Pair>, Vec<u64>) = expected.into_iter().unzip();
                prop_assert_eq!(table.count(&pairs, Some(group), &NEVER).expect("not cancelled"), counts);
                let length: u64 = some.iter().map(|(tokens, weight)| tokens.len() as u64 * weight).sum();
                prop_assert_eq!(table.lengths()[group], length);
            }
            let mut token_counts = std::vec![0; next_id as usize];
            for (tokens, weight) in &plain {
                tokens.iter().for_each(|&token| token_counts[token as usize] += weight);
            }
            prop_assert_eq!(table.token_counts(&NEVER).expect("not cancelled"), &token_counts[..]);
            let mut batch = choose(&top);
            if batch.is_empty() {
                break;
            }
            let other = (first_id, first_id + 3); // which may be absent
            if batch.iter().all(|pair| *pair != other && pair.1 != other.0 && pair.0 != other.1) {
                batch.push(other);
            }
            let (tokens, merged): (Vec<u32>, Vec<u64>) =
                table.merge(&batch, true, &NEVER).expect("a safe batch").into_iter().unzip();
            for (pair, token) in batch.iter().zip(&tokens) {
                let known = made.iter().find(|known| known.1 == pair);
                prop_assert_eq!(*token, known.map_or(next_id, |known| *known.0));
                next_id += u32::from(known.is_none());
                made.insert(*token, *pair);
            }
            prop_assert_eq!(merged, merge(&mut plain, &batch, &tokens));
            prop_assert_eq!(table.next_id(), next_id);
            if round % split_every == 0 {
                let parts: BTreeMap<u32, Pair> = made.iter().step_by(2).map(|(token, pair)| (*token, *pair)).collect();
                table.split(&parts.keys().copied().collect::<Vec<_>>()).expect("made here");
                split(&mut plain, &parts);
            }
        }
    }
}

#[test]
fn pairs_below_the_threshold_come_back() {
    // For a single merge, the first threshold is so high that the rare pair is left out.
    let ids = [(std::vec![1, 2], 1_000_000), (std::vec![3, 4], 1), (std::vec![5, 6], 999_999)];
    let ids = ids.iter().map(|(tokens, weight)| (tokens.iter().copied(), *weight, 0));
    let mut table = PairTable::new(ids, 1, 7, 1, 1, false, 1, &NEVER).unwrap();
    assert_eq!(table.top(1, None, &NEVER).unwrap(), [((1, 2), 1_000_000)]);
    table.forget(&[(5, 6)]);
    assert_eq!(table.top(9, None, &NEVER).unwrap(), [((1, 2), 1_000_000), ((3, 4), 1)]);
}

#[test]
fn invalid_batches_are_rejected() {
    let ids = [(std::vec![1, 2, 3, 3, 1], 1u64)];
    let ids = ids.iter().map(|(tokens, weight)| (tokens.iter().copied(), *weight, 0));
    let mut table = PairTable::new(ids, 1, 5, 3, 1, false, 1, &NEVER).unwrap();
    table.top(9, None, &NEVER).unwrap();
    for (batch, reason) in [
        (std::vec![(1, 2), (2, 3)], "overlaps"),
        (std::vec![(3, 3), (3, 1)], "overlaps"),
        (std::vec![(2, 3), (3, 3)], "overlaps"),
        (std::vec![(1, 2), (1, 2)], "twice"),
        (std::vec![(1, 3)], "does not occur"),
        (std::vec![(4, 4)], "does not occur"),
        (std::vec![(9, 9)], "token 9 in the pair (9, 9) does not exist"),
    ] {
        assert!(table.merge(&batch, false, &NEVER).unwrap_err().to_string().contains(reason), "{batch:?}");
    }
    assert!(table.split(&[3]).unwrap_err().to_string().contains("token 3 cannot be split"));
    table.merge(&[(3, 3)], false, &NEVER).unwrap();
    assert_eq!(table.top(9, None, &NEVER).unwrap(), [((1, 2), 1), ((2, 5), 1), ((5, 1), 1)]);
}

#[test]
fn every_step_can_be_cancelled() {
    let cancelled = Cancel::default();
    cancelled.cancel();
    let ids = std::vec![1, 2, 3].repeat(10_000);
    let table = |cancel| PairTable::new([(ids.iter().copied(), 1, 0)].into_iter(), 1, 4, 9, 1, false, 1, cancel);
    assert_eq!(table(&cancelled).err(), Some(Error::Cancelled));
    assert_eq!(table(&NEVER).unwrap().top(9, None, &cancelled).err(), Some(Error::Cancelled));
    assert_eq!(table(&NEVER).unwrap().merge_serially(9, &cancelled).err(), Some(Error::Cancelled));
}
