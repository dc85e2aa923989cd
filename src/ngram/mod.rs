//! An n-gram model of tokens with interpolated modified Kneser–Ney smoothing (Chen and Goodman 1998), which predicts a
//! held-out text. docs/ngram.md has the formulas.
//!
//! Both texts are one array: a *mark* between all documents, before the first and after the last. It begins the
//! document after it and ends the document before it, so it is the first token of contexts and a token to predict.
//!
//! The n-grams form a trie whose levels are built one after the other: the positions of the text are sorted by the
//! tokens that follow, first by one token, then by two, and so on. Only two levels exist at the same time, because each
//! is used to predict the held-out text as soon as its counts are known, and then dropped.

mod predict;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use crate::error::{Cancel, Error, Result, check_memory, try_collect, try_push, try_reserve, try_with_capacity};
use crate::parallel;
use predict::Predictions;

/// About this many positions are sorted at once, before the next check for cancellation.
const PART: usize = if cfg!(test) { 8 } else { 1 << 18 };
/// The node of an n-gram that the trie does not contain.
const NONE: u32 = u32::MAX;

/// What a model of some order predicts.
#[derive(Debug, PartialEq)]
pub struct Prediction {
    /// The bits of each token of the held-out text, except the first mark.
    pub bits: Vec<f64>,
    /// The number of different n-grams in the training text, by length from 1. Longer ones do not occur.
    pub ngrams: Vec<usize>,
    /// What is subtracted from counts of 1, of 2, and of 3 or more, by length.
    pub discounts: Vec<[f64; 3]>,
}

/// Predicts `heldout` with a model of `training`. `mark` is larger than all ids, and `choices` is the number of tokens
/// that can occur, including the mark.
pub fn predict(
    training: &[u32],
    heldout: &[u32],
    mark: u32,
    choices: usize,
    order: usize,
    threads: usize,
    cancel: &Cancel,
) -> Result<Prediction> {
    if order == 0 || choices == 0 {
        return Err(Error::invalid("order and choices must be at least 1"));
    }
    for text in [training, heldout] {
        if text.len() < 2 || text[0] != mark || text.last() != Some(&mark) || text.iter().any(|&token| token > mark) {
            return Err(Error::invalid("documents must be between marks, which are larger than all ids"));
        }
    }
    if training.len() >= NONE as usize {
        let message = format!("the training text has {} tokens, more than {}; train on less", training.len(), NONE - 1);
        return Err(Error::invalid(message));
    }
    let mut predictions = Predictions::new(heldout, choices, threads)?;
    let mut trie = Trie::new(training, mark)?;
    for _ in 0..order {
        // The counts of a level are known when the next one has been built.
        if let Some(level) = trie.grow(threads, cancel)? {
            predictions.improve(&level, cancel)?;
        }
    }
    let mut last = trie.last;
    if order == 1 {
        last.counts[last.tokens.len() - 1] -= 1; // the first mark ends no document
    }
    (trie.positions, trie.nodes) = (Vec::new(), Vec::new());
    predictions.improve(&last, cancel)?;
    Ok(predictions.finish())
}

/// The n-grams of one length, sorted: one level of the trie. A node is the number of an n-gram on its level.
#[derive(Default)]
struct Level {
    /// The last token of each n-gram.
    tokens: Vec<u32>,
    /// How often each n-gram occurs. Once the next level exists: how many different tokens occur before it, unless it
    /// starts with a mark.
    counts: Vec<u32>,
    /// Where the n-grams start that extend each node of the level above, and the end of the last.
    starts: Vec<u32>,
}

/// Consecutive nodes of the last level and where they are in `Trie::positions`.
#[derive(Clone)]
struct Part {
    nodes: Range<usize>,
    positions: Range<usize>,
}

/// A trie that grows by a level at a time.
struct Trie<'a> {
    text: &'a [u32],
    mark: u32,
    length: usize,
    last: Level,
    /// The positions of the text, sorted by the n-gram of the last level that starts there.
    positions: Vec<u32>,
    /// The node of the n-gram that starts at each position. Positions too close to the end have an older value.
    nodes: Vec<AtomicU32>,
    parts: Vec<Part>,
}

/// The n-grams that extend the nodes of a part.
struct Extended {
    tokens: Vec<u32>,
    counts: Vec<u32>,
    /// How many of them extend each node.
    sizes: Vec<u32>,
    positions: Vec<u32>,
}

impl<'a> Trie<'a> {
    fn new(text: &'a [u32], mark: u32) -> Result<Self> {
        let mut nodes = try_with_capacity(text.len())?;
        nodes.resize_with(text.len(), AtomicU32::default);
        let root = Part { nodes: 0..1, positions: 0..text.len() };
        let positions = try_collect(0..text.len() as u32)?;
        let last = Level { tokens: vec![0], ..Level::default() };
        Ok(Self { text, mark, length: 0, last, positions, nodes, parts: vec![root] })
    }

    /// Adds a level. Returns the one above, whose counts it completes, unless that is the root.
    fn grow(&mut self, threads: usize, cancel: &Cancel) -> Result<Option<Level>> {
        let mut before: Vec<AtomicU32> = try_with_capacity(self.last.counts.len())?;
        before.resize_with(self.last.counts.len(), AtomicU32::default);
        let extended = parallel::map(&self.parts, threads, Sorter::default, |sorter, part| {
            cancel.poll_and_check(Instant::now())?;
            self.extend(part, &before, sorter, cancel)
        })?;
        let [mut tokens, mut counts, mut sizes, mut positions] = [const { Vec::new() }; 4];
        for part in extended {
            try_push(&mut tokens, part.tokens)?;
            try_push(&mut counts, part.counts)?;
            try_push(&mut sizes, part.sizes)?;
            try_push(&mut positions, part.positions)?;
        }
        self.positions = parallel::concat(positions, threads)?;
        let mut level = Level {
            tokens: parallel::concat(tokens, threads)?,
            counts: parallel::concat(counts, threads)?,
            starts: parallel::concat(sizes, threads)?,
        };
        let mut start = 0;
        for size in &mut level.starts {
            start += std::mem::replace(size, start);
        }
        try_push(&mut level.starts, start)?;
        self.length += 1;
        self.parts = parts(&level.counts)?;
        parallel::map(
            &self.parts,
            threads,
            || (),
            |(), part| {
                cancel.poll_and_check(Instant::now())?;
                let mut positions = self.positions[part.positions.clone()].iter();
                for node in part.nodes.clone() {
                    for &position in positions.by_ref().take(level.counts[node] as usize) {
                        self.nodes[position as usize].store(node as u32, Relaxed);
                    }
                }
                Ok(())
            },
        )?;
        let mut above = std::mem::replace(&mut self.last, level);
        for (count, before) in above.counts.iter_mut().zip(before) {
            // Nothing comes before an n-gram that starts with a mark. A single mark is the end of a document.
            *count = Some(before.into_inner()).filter(|&before| before > 0).unwrap_or(*count);
        }
        Ok(Some(above).filter(|_| self.length > 1))
    }

    /// Sorts the positions of a part by the next token, and counts in `before` that a new n-gram extends one of the
    /// last level to the left.
    fn extend(&self, part: &Part, before: &[AtomicU32], sorter: &mut Sorter, cancel: &Cancel) -> Result<Extended> {
        let mut found = Extended {
            tokens: try_with_capacity(part.positions.len())?,
            counts: try_with_capacity(part.positions.len())?,
            sizes: try_with_capacity(part.nodes.len())?,
            positions: try_with_capacity(part.positions.len())?,
        };
        let mut positions = &self.positions[part.positions.clone()];
        for node in part.nodes.clone() {
            let here;
            let size = self.last.counts.get(node).map_or(positions.len(), |&count| count as usize); // the root has all
            (here, positions) = positions.split_at(size);
            let (first, is_end) = (found.tokens.len(), self.length > 1 && self.last.tokens[node] == self.mark);
            if !is_end {
                sorter.sort(here, &self.text[self.length..], self.mark, cancel)?;
                for same in sorter.keys.chunk_by(|a, b| a >> 32 == b >> 32) {
                    found.tokens.push((same[0] >> 32) as u32);
                    found.counts.push(same.len() as u32);
                    found.positions.extend(same.iter().map(|&key| key as u32));
                    if self.length > 0 {
                        let suffix = self.nodes[same[0] as u32 as usize + 1].load(Relaxed);
                        before[suffix as usize].fetch_add(1, Relaxed);
                    }
                }
            }
            found.sizes.push((found.tokens.len() - first) as u32);
        }
        Ok(found)
    }
}

/// Cuts a level into parts.
fn parts(counts: &[u32]) -> Result<Vec<Part>> {
    let (mut parts, mut part) = (Vec::new(), Part { nodes: 0..0, positions: 0..0 });
    for (node, &count) in counts.iter().enumerate() {
        part.nodes.end = node + 1;
        part.positions.end += count as usize;
        if part.positions.len() >= PART || part.nodes.end == counts.len() {
            try_push(&mut parts, part.clone())?;
            part = Part { nodes: part.nodes.end..part.nodes.end, positions: part.positions.end..part.positions.end };
        }
    }
    Ok(parts)
}

/// Sorts positions by the token there.
#[derive(Default)]
struct Sorter {
    /// Tokens and their positions, sorted.
    keys: Vec<u64>,
    starts: Vec<u32>,
}

impl Sorter {
    /// Positions are in ascending order, and remain so where tokens are equal. Those after the end are left out.
    fn sort(&mut self, positions: &[u32], text: &[u32], mark: u32, cancel: &Cancel) -> Result<()> {
        let key =
            |&position: &u32| text.get(position as usize).map(|&token| u64::from(token) << 32 | u64::from(position));
        self.keys.clear();
        try_reserve(&mut self.keys, positions.len())?;
        if positions.len() <= mark as usize {
            self.keys.extend(positions.iter().filter_map(key));
            self.keys.sort_unstable();
            return Ok(());
        }
        // There are more positions than tokens, so sorting by counting is faster. It can also be cancelled.
        check_memory(size_of::<u32>() * (mark as usize + 2))?;
        self.starts.clear();
        self.starts.resize(mark as usize + 2, 0);
        for some in positions.chunks(PART) {
            cancel.poll_and_check(Instant::now())?;
            some.iter().filter_map(key).for_each(|key| self.starts[(key >> 32) as usize + 1] += 1);
        }
        let mut total = 0;
        for start in &mut self.starts {
            total += *start;
            *start = total;
        }
        self.keys.resize(total as usize, 0);
        for some in positions.chunks(PART) {
            cancel.poll_and_check(Instant::now())?;
            for key in some.iter().filter_map(key) {
                let start = &mut self.starts[(key >> 32) as usize];
                self.keys[*start as usize] = key;
                *start += 1;
            }
        }
        Ok(())
    }
}
