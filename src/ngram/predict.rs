//! What the levels of a trie say about the tokens of a held-out text.

use std::sync::Mutex;
use std::time::Instant;

use super::{Level, NONE, PART, Prediction};
use crate::error::{Cancel, Result, check_memory, try_push, try_with_capacity};
use crate::parallel;

/// Used if the counts are too few or too unusual to estimate discounts from, as in KenLM.
const FALLBACK: [f64; 3] = [0.5, 1.0, 1.5];

/// The probability of each token of a text, for longer and longer contexts.
pub struct Predictions<'a> {
    text: &'a [u32],
    threads: usize,
    probabilities: Vec<f64>,
    /// The node of the context that starts at each position.
    contexts: Vec<u32>,
    length: usize,
    ngrams: Vec<usize>,
    discounts: Vec<[f64; 3]>,
}

/// A context: the sum of the counts of what follows, and the weight of the shorter context.
#[derive(Clone, Copy)]
struct Context {
    total: f64,
    rest: f64,
}

impl<'a> Predictions<'a> {
    pub fn new(text: &'a [u32], choices: usize, threads: usize) -> Result<Self> {
        check_memory(text.len() * (size_of::<f64>() + size_of::<u32>()))?;
        let (probabilities, contexts) = (vec![1.0 / choices as f64; text.len()], vec![0; text.len()]);
        Ok(Self { text, threads, probabilities, contexts, length: 0, ngrams: Vec::new(), discounts: Vec::new() })
    }

    /// Interpolates with the probabilities in contexts that are one token longer.
    pub fn improve(&mut self, level: &Level, cancel: &Cancel) -> Result<()> {
        if level.tokens.is_empty() {
            return Ok(());
        }
        let discounts = discounts(&level.counts, cancel)?;
        let contexts = contexts(level, &discounts, cancel)?;
        // The n-gram that starts at a position predicts the token `length` positions later.
        let starts = self.contexts.chunks_mut(PART);
        let targets = self.probabilities[self.length.min(self.text.len())..].chunks_mut(PART);
        let tokens = self.text[self.length.min(self.text.len())..].chunks(PART);
        let mut parts = try_with_capacity(targets.len())?;
        parts.extend(starts.zip(targets).zip(tokens).map(Mutex::new));
        parallel::map(
            &parts,
            self.threads,
            || (),
            |(), part| {
                cancel.poll_and_check(Instant::now())?;
                let ((starts, targets), tokens) = &mut *part.lock().expect("each part is used by one thread");
                for ((context, probability), token) in starts.iter_mut().zip(targets.iter_mut()).zip(*tokens) {
                    if *context == NONE {
                        continue;
                    }
                    let Context { total, rest } = contexts[*context as usize];
                    let first = level.starts[*context as usize] as usize;
                    let next = &level.tokens[first..level.starts[*context as usize + 1] as usize];
                    *context = NONE;
                    if total > 0.0 {
                        *probability *= rest;
                        if let Ok(at) = next.binary_search(token) {
                            let count = level.counts[first + at];
                            *probability += (f64::from(count) - discounts[class(count)]) / total;
                            *context = (first + at) as u32;
                        }
                    }
                }
                Ok(())
            },
        )?;
        drop(parts);
        self.length += 1;
        try_push(&mut self.ngrams, level.tokens.len())?;
        try_push(&mut self.discounts, discounts)?;
        Ok(())
    }

    pub fn finish(mut self) -> Prediction {
        self.probabilities.remove(0);
        self.probabilities.iter_mut().for_each(|value| *value = -value.log2());
        Prediction { bits: self.probabilities, ngrams: self.ngrams, discounts: self.discounts }
    }
}

/// Counts of 1, of 2, and of 3 or more have different discounts.
fn class(count: u32) -> usize {
    count.clamp(1, 3) as usize - 1
}

/// Estimates the discounts from the number of n-grams with each count.
fn discounts(counts: &[u32], cancel: &Cancel) -> Result<[f64; 3]> {
    let mut frequencies = [0u64; 5];
    for some in counts.chunks(PART) {
        cancel.poll_and_check(Instant::now())?;
        some.iter().for_each(|&count| frequencies[count.min(5) as usize % 5] += 1);
    }
    let [_, n1, n2, n3, n4] = frequencies.map(|number| number as f64);
    let y = n1 / (n1 + 2.0 * n2);
    let found = [1.0 - 2.0 * y * n2 / n1, 2.0 - 3.0 * y * n3 / n2, 3.0 - 4.0 * y * n4 / n3];
    let is_sound = frequencies[1..].iter().all(|&number| number > 0) && found.iter().all(|&discount| discount > 0.0);
    Ok(if is_sound { found } else { FALLBACK })
}

fn contexts(level: &Level, discounts: &[f64; 3], cancel: &Cancel) -> Result<Vec<Context>> {
    let mut contexts = try_with_capacity(level.starts.len())?;
    for bounds in level.starts.windows(2) {
        if contexts.len() % PART == 0 {
            cancel.poll_and_check(Instant::now())?;
        }
        let (mut total, mut classes) = (0u64, [0u32; 3]);
        for &count in &level.counts[bounds[0] as usize..bounds[1] as usize] {
            total += u64::from(count);
            classes[class(count)] += 1;
        }
        let mass: f64 = classes.iter().zip(discounts).map(|(&number, discount)| f64::from(number) * discount).sum();
        let total = total as f64;
        contexts.push(Context { total, rest: mass / total });
    }
    Ok(contexts)
}
