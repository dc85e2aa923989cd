//! Compares the model with the formulas, evaluated n-gram by n-gram.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Prediction, predict};
use crate::error::{Cancel, Error, NEVER};

const MARK: u32 = 4;
const CHOICES: usize = 6; // one of them never occurs

fn marked(documents: &[Vec<u32>]) -> Vec<u32> {
    let ended = documents.iter().flat_map(|document| document.iter().copied().chain([MARK]));
    [MARK].into_iter().chain(ended).collect()
}

/// The n-grams of a length within documents. They have no mark inside.
fn ngrams(text: &[u32], length: usize) -> impl Iterator<Item = &[u32]> {
    let is_whole = |ngram: &&[u32]| ngram.len() <= 2 || !ngram[1..ngram.len() - 1].contains(&MARK);
    text.windows(length).filter(is_whole)
}

/// The counts of all n-grams of a length, as a model of some order uses them.
fn counts(text: &[u32], length: usize, order: usize) -> BTreeMap<Vec<u32>, u64> {
    let mut counts = BTreeMap::new();
    let skipped = usize::from(length == 1); // the first mark is only a context
    for ngram in ngrams(&text[skipped..], length) {
        *counts.entry(ngram.to_vec()).or_default() += 1;
    }
    if length < order {
        let longer: BTreeSet<&[u32]> = ngrams(text, length + 1).collect();
        for (ngram, count) in counts.iter_mut().filter(|(ngram, _)| length == 1 || ngram[0] != MARK) {
            *count = longer.iter().filter(|longer| longer[1..] == ngram[..]).count() as u64;
        }
    }
    counts
}

struct Model {
    counts: Vec<BTreeMap<Vec<u32>, u64>>,
    discounts: Vec<[f64; 3]>,
}

impl Model {
    fn new(text: &[u32], order: usize) -> Self {
        let counts: Vec<_> = (1..=order).map(|length| counts(text, length, order)).collect();
        let discounts = counts.iter().map(|counts| {
            let n: Vec<f64> =
                (0..=4).map(|count| counts.values().filter(|&&other| other == count).count() as f64).collect();
            let y = n[1] / (n[1] + 2.0 * n[2]);
            let found = [1, 2, 3].map(|i| i as f64 - (i + 1) as f64 * y * n[i + 1] / n[i]);
            let is_sound = n[1..].iter().all(|&n| n > 0.0) && found.iter().all(|&d| d > 0.0);
            if is_sound { found } else { [0.5, 1.0, 1.5] }
        });
        Self { discounts: discounts.collect(), counts }
    }

    fn probability(&self, context: &[u32], token: u32) -> f64 {
        let (counts, discounts) = (&self.counts[context.len()], self.discounts[context.len()]);
        let discount = |count: u64| discounts[count.min(3) as usize - 1];
        let shorter = match context {
            [] => 1.0 / CHOICES as f64,
            [_, rest @ ..] => self.probability(rest, token),
        };
        let next = counts.iter().filter(|(ngram, _)| ngram[..context.len()] == *context);
        let next: BTreeMap<u32, u64> = next.map(|(ngram, &count)| (ngram[context.len()], count)).collect();
        if next.is_empty() {
            return shorter;
        }
        let total = next.values().sum::<u64>() as f64;
        let rest: f64 = next.values().map(|&count| discount(count)).sum();
        let own = next.get(&token).map_or(0.0, |&count| count as f64 - discount(count));
        (own + rest * shorter) / total
    }

    fn bits(&self, text: &[u32], order: usize) -> Vec<f64> {
        let places = 1..text.len();
        let bits = places.map(|at| {
            let start = (0..at).rev().find(|&start| text[start] == MARK).expect("it starts with a mark");
            -self.probability(&text[start.max((at + 1).saturating_sub(order))..at], text[at]).log2()
        });
        bits.collect()
    }
}

fn documents() -> impl Strategy<Value = Vec<Vec<u32>>> {
    vec(vec(0..MARK, 0..24), 1..12)
}

fn predicted(training: &[u32], heldout: &[u32], order: usize, threads: usize) -> Prediction {
    predict(training, heldout, MARK, CHOICES, order, threads, &NEVER).expect("the texts are sound")
}

proptest! {
    #[test]
    fn bits_are_those_of_the_formulas(training in documents(), heldout in documents(), order in 1usize..7) {
        let (training, heldout) = (marked(&training), marked(&heldout));
        let (found, model) = (predicted(&training, &heldout, order, 1), Model::new(&training, order));
        let expected = model.bits(&heldout, order);
        prop_assert_eq!(found.bits.len(), expected.len());
        for (found, expected) in found.bits.iter().zip(expected) {
            prop_assert!((found - expected).abs() < 1e-9);
        }
        let numbers: Vec<usize> = model.counts.iter().map(BTreeMap::len).filter(|&number| number > 0).collect();
        prop_assert_eq!(&found.ngrams, &numbers);
        for threads in [2, 3] {
            prop_assert_eq!(&found, &predicted(&training, &heldout, order, threads));
        }
    }

    #[test]
    fn probabilities_sum_to_one(training in documents(), context in vec(0..MARK, 0..6), order in 1usize..7) {
        // The largest id never occurs.
        let mark = CHOICES as u32 - 1;
        let with_mark = |text: Vec<u32>| text.into_iter().map(|token| if token == MARK { mark } else { token });
        let training: Vec<u32> = with_mark(marked(&training)).collect();
        let probability = |token: u32| {
            let heldout: Vec<u32> = [&[mark], &context[..], &[token, mark]].concat();
            let found = predict(&training, &heldout, mark, CHOICES, order, 1, &NEVER).expect("the texts are sound");
            (-found.bits[context.len()]).exp2()
        };
        let sum: f64 = (0..=mark).map(probability).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
    }
}

#[test]
fn cancelling_stops_the_work() {
    let text = marked(&[vec![1, 2, 3, 1, 2, 1, 1, 2, 3, 0, 0, 1]]);
    for threads in [1, 2] {
        let cancel = Cancel::polling(&|| true);
        assert_eq!(predict(&text, &text, MARK, CHOICES, 3, threads, &cancel), Err(Error::Cancelled));
    }
}

#[test]
fn unsound_arguments_are_errors() {
    let sound = marked(&[vec![1]]);
    for (choices, order) in [(CHOICES, 0), (0, 3)] {
        assert!(matches!(predict(&sound, &sound, MARK, choices, order, 1, &NEVER), Err(Error::Invalid(_))));
    }
    for text in [&[][..], &[MARK], &[1, MARK], &[MARK, 1], &[MARK, MARK + 1, MARK]] {
        for (training, heldout) in [(text, &sound[..]), (&sound, text)] {
            let result = predict(training, heldout, MARK, CHOICES, 3, 1, &NEVER);
            assert!(matches!(result, Err(Error::Invalid(_))));
        }
    }
}
