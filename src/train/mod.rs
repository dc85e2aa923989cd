//! `PairTable`: the counts of all adjacent pairs of tokens in weighted sequences of ids, kept up to date while pairs
//! are merged. It returns the most frequent pairs (`top`) and merges a batch (`merge`). It does not choose the batch.
//!
//! The table is incremental. For each pair it keeps a count and a list of the places where the pair starts, so merging
//! a pair touches only those places. Three facts keep this simple:
//!
//! - A pair can only appear in the step that creates the newer of its two tokens. Its list of places is therefore
//!   written once, sorted and with its final length.
//! - A place that no longer contains its pair can be recognized by its cells (`cells`) and is skipped. Lists are never
//!   repaired.
//! - The count of a pair never rises after the pair has appeared. A pair that starts below a threshold is therefore not
//!   kept, until the pairs above the threshold run out (`rescan`).

mod cells;
mod index;
mod neighbors;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use crate::error::{Cancel, Error, Result};
use crate::parallel;
use crate::table::hash::HashSet;
use cells::{BatchPair, Cells, PartChanges};
use index::{Entry, PairIndex, PairMap};
use neighbors::{Neighbors, Side};

/// A batch is merged in groups of about this many places, which bounds the memory for their changes.
const GROUP_PLACES: usize = if cfg!(test) { 1 << 5 } else { 1 << 21 };
/// Below this many places, threads cost more than they save.
const MIN_PARALLEL_PLACES: usize = if cfg!(test) { 1 << 3 } else { 1 << 16 };
/// The threshold is divided by this when the pairs above it run out.
const THRESHOLD_DIVISOR: u64 = 8;

pub type Pair = (u32, u32);

pub struct PairTable {
    cells: Cells,
    /// The id of the next new token.
    next_id: u32,
    /// One more than the largest id that a new token can get.
    end_id: u32,
    index: PairIndex,
    /// Whether the pairs have been counted.
    scanned: bool,
    /// Pairs that a rescan must not bring back.
    forgotten: HashSet<Pair>,
    threads: usize,
    /// The changes that the last group of merges made to each part. Kept only to reuse the memory.
    changes: Vec<PartChanges>,
    /// The state of each thread.
    workers: Vec<Mutex<Neighbors>>,
}

impl PairTable {
    /// `sequences` are sequences of ids below `next_id`, and how often each occurs. `merges` is the total number of
    /// merges that will be made; it determines the first threshold, together with `min_count`, the least count that a
    /// pair is likely to be merged with. `overlapping` counts overlapping pairs in a run of one token: "aaaaa" then has
    /// four "aa", otherwise two.
    pub fn new<S: Iterator<Item = u32>>(
        sequences: impl Iterator<Item = (S, u64)>,
        next_id: u32,
        merges: usize,
        min_count: u64,
        overlapping: bool,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        let ids = next_id as usize + merges;
        let cells = Cells::new(sequences, ids, overlapping, threads, cancel)?;
        // On real text, the count of the last merged pair is 1/20 to 1/90 of `total / merges`.
        let threshold = (cells.layout.total / (merges.max(1) as u64).saturating_mul(256)).max(min_count);
        let changes = cells.layout.bounds().iter().map(|_| PartChanges::default()).collect();
        Ok(Self {
            cells,
            changes,
            next_id,
            end_id: ids as u32,
            index: PairIndex::new(threshold.max(1), Vec::new()),
            scanned: false,
            forgotten: HashSet::default(),
            threads,
            workers: (0..threads).map(|_| Mutex::default()).collect(),
        })
    }

    /// Compares tokens by these ranks instead of their ids when the counts of two pairs are equal. `ranks` has the
    /// ranks of the first ids; others are their own ranks. Call it before `top`.
    pub fn break_ties_by(mut self, ranks: Vec<u32>) -> Self {
        debug_assert!(!self.scanned);
        self.index = PairIndex::new(self.index.threshold(), ranks);
        self
    }

    /// Returns the `n` most frequent pairs, or fewer if there are no more, and their counts: higher counts first, then
    /// smaller ids (or ranks: see `break_ties_by`).
    pub fn top(&mut self, n: usize, cancel: &Cancel) -> Result<Vec<(Pair, u64)>> {
        if !self.scanned {
            self.rescan(cancel)?;
            self.scanned = true;
        }
        while !self.index.has(n) && self.index.threshold() > 1 {
            self.index = self.index.emptied((self.index.threshold() / THRESHOLD_DIVISOR).max(1));
            self.rescan(cancel)?;
        }
        Ok(self.index.top(n))
    }

    /// Returns whether the pairs have been counted. The first call of `top` counts them, which is slow.
    pub fn is_counted(&self) -> bool {
        self.scanned
    }

    /// Permanently excludes pairs from the results of `top`.
    pub fn forget(&mut self, pairs: &[Pair]) {
        for &pair in pairs {
            self.index.take(pair);
            self.forgotten.insert(pair);
        }
    }

    /// Merges all pairs of `batch` at once. The new tokens get the next ids, in the order of the batch.
    pub fn merge(&mut self, batch: &[Pair]) -> Result<()> {
        self.check(batch)?;
        let mut pairs = Vec::with_capacity(batch.len());
        for (&(first, last), token) in batch.iter().zip(self.next_id..) {
            let width = self.cells.layout.add_token(token, (first, last));
            let places = self.index.take((first, last)).unwrap_or_default();
            pairs.push(BatchPair { first, last, token, width, places });
        }
        self.next_id += batch.len() as u32;
        let mut rest = &mut pairs[..];
        while !rest.is_empty() {
            let mut places = 0;
            let fits = |pair: &&BatchPair| {
                places += pair.places.len();
                places <= GROUP_PLACES
            };
            let size = rest.iter().take_while(fits).count().max(1);
            let (group, others) = rest.split_at_mut(size);
            self.merge_group(group);
            // These lists are most of the memory: free them before new ones are written.
            group.iter_mut().for_each(|pair| pair.places = Vec::new());
            rest = others;
        }
        Ok(())
    }

    /// Merges the most frequent pair `n` times, or until there are no more pairs. Returns the pairs and their counts.
    pub fn merge_serially(&mut self, n: usize, cancel: &Cancel) -> Result<Vec<(Pair, u64)>> {
        let mut merged = Vec::new();
        while merged.len() < n {
            cancel.check()?;
            let Some(&(pair, count)) = self.top(1, cancel)?.first() else { break };
            self.merge(&[pair])?;
            merged.push((pair, count));
        }
        Ok(merged)
    }

    /// Returns an error unless the pairs of a batch can be merged at once.
    fn check(&self, batch: &[Pair]) -> Result<()> {
        if batch.len() > (self.end_id - self.next_id) as usize {
            return Err(Error::invalid(format!(
                "the batch has {} pairs, but only {} merges remain",
                batch.len(),
                self.end_id - self.next_id
            )));
        }
        let firsts: HashSet<u32> = batch.iter().map(|pair| pair.0).collect();
        let mut seen = HashSet::default();
        for &(first, last) in batch {
            if !seen.insert((first, last)) {
                return Err(Error::invalid(format!("the pair ({first}, {last}) is in the batch twice")));
            }
            if self.index.count((first, last)) == 0 {
                return Err(Error::invalid(format!("the pair ({first}, {last}) does not occur in the data")));
            }
            let only_itself = first == last && batch.iter().all(|pair| *pair == (first, last) || pair.0 != first);
            if firsts.contains(&last) && !only_itself {
                return Err(Error::invalid(format!(
                    "the pair ({first}, {last}) overlaps another pair in the batch: token {last} is last in one \
                     and first in the other; leave one of them for a later batch"
                )));
            }
        }
        Ok(())
    }

    fn merge_group(&mut self, pairs: &[BatchPair]) {
        let places: usize = pairs.iter().map(|pair| pair.places.len()).sum();
        let threads = if places > MIN_PARALLEL_PLACES { self.threads } else { 1 };
        self.cells.replace(pairs, &mut self.changes, threads);

        // Each pair and side is a separate job: the new pairs on one side of a new token belong to that token alone.
        let threshold = self.index.threshold();
        parallel::for_each(pairs.len() * 2, threads, |worker, job| {
            let side = if job % 2 == 0 { Side::Left } else { Side::Right };
            let mut worker = self.workers[worker].lock().expect("no panic");
            worker.add(&pairs[job / 2], job / 2, side, &self.changes, &self.cells.layout, threshold);
        });

        // Insert all new pairs before subtracting any losses: a later pair of the batch may reduce a new pair.
        for worker in &mut self.workers {
            self.index.insert(worker.get_mut().expect("no panic").entries.drain(..));
        }
        for worker in &mut self.workers {
            self.index.subtract(worker.get_mut().expect("no panic").lost.drain(..));
        }
        for part in &self.changes {
            self.index.subtract(part.lost.iter().copied());
        }
    }

    /// Counts all pairs, and lists the places of those at or above the threshold: at the start, and whenever the pairs
    /// above the threshold run out.
    fn rescan(&mut self, cancel: &Cancel) -> Result<()> {
        /// pair → (count, number of places)
        type PairSums = PairMap<(u64, usize)>;
        let parts = self.cells.layout.bounds();
        let counted: Vec<Mutex<PairSums>> = parts.iter().map(|_| Mutex::default()).collect();
        parallel::for_each(parts.len(), self.threads, |_, part| {
            let mut counts = counted[part].lock().expect("no panic");
            self.cells.scan(parts[part], cancel, |pair, _, weight| {
                let (sum, places) = counts.entry(pair);
                *sum += weight;
                *places += 1;
            });
        });
        let counted: Vec<PairSums> = counted.into_iter().map(|counts| counts.into_inner().expect("no panic")).collect();

        let mut sums = PairSums::default();
        for (pair, &(sum, places)) in counted.iter().flat_map(PairMap::iter) {
            let total = sums.entry(pair);
            total.0 += sum;
            total.1 += places;
        }
        let mut entries: Vec<Entry> = sums
            .iter()
            .filter(|(pair, sum)| sum.0 >= self.index.threshold() && !self.forgotten.contains(pair))
            .map(|(pair, &(count, places))| Entry { pair, count, places: vec![0; places] })
            .collect();
        // Divide each list into one stretch per part, so that the parts can be filled in parallel.
        let mut stretches: Vec<PairMap<&mut [u32]>> = parts.iter().map(|_| PairMap::default()).collect();
        for entry in &mut entries {
            let mut rest = &mut entry.places[..];
            for (counts, stretches) in counted.iter().zip(&mut stretches) {
                let (stretch, others) = rest.split_at_mut(counts.get(entry.pair).map_or(0, |counts| counts.1));
                *stretches.entry(entry.pair) = stretch;
                rest = others;
            }
        }
        drop(counted);
        let stretches: Vec<_> = stretches.into_iter().map(Mutex::new).collect();
        parallel::for_each(parts.len(), self.threads, |_, part| {
            let mut stretches = stretches[part].lock().expect("no panic");
            self.cells.scan(parts[part], cancel, |pair, place, _| {
                if let Some(stretch) = stretches.get_mut(pair)
                    && let Some((next, rest)) = std::mem::take(stretch).split_first_mut()
                {
                    *next = place;
                    *stretch = rest;
                }
            });
        });
        drop(stretches);
        cancel.check()?;
        self.index.insert(entries.into_iter());
        Ok(())
    }
}
