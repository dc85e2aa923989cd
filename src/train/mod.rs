//! `PairTable`: the counts of all adjacent pairs of tokens in weighted sequences of ids, kept up to date
//! while pairs are merged. It answers `top(n)` and applies `merge(batch)`; which pairs make a batch is not
//! decided here.
//!
//! A pair can only come into being in the step that makes its newer token, so its list of places is written
//! once, exactly as long as it must be, in order. A place that has ceased to hold its pair shows this by its
//! cells and is skipped: no list is ever repaired. And a pair's count never rises again, so a pair that
//! starts below a threshold is not kept at all, until those above it have run out (`rescan`).

mod cells;
mod index;
mod neighbours;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use crate::error::{Cancel, Error, Result};
use crate::hash::HashSet;
use crate::parallel;
use cells::{Cells, Found, Merge};
use index::{Entry, PairIndex, PairMap};
use neighbours::{Neighbours, Side};

/// Places handled before their effects are added up: bounds the memory of a batch.
const GROUP: usize = if cfg!(test) { 1 << 5 } else { 1 << 21 };
/// With fewer places than this, threads cost more than they save.
const PARALLEL: usize = if cfg!(test) { 1 << 3 } else { 1 << 16 };
/// How far the threshold falls when the pairs above it have run out.
const FALL: u64 = 8;

pub type Pair = (u32, u32);

pub struct PairTable {
    cells: Cells,
    /// The id of the next new token, and one more than the largest that any may get.
    next_id: u32,
    end_id: u32,
    index: PairIndex,
    scanned: bool,
    /// Pairs that a new scan must not bring back.
    forgotten: HashSet<Pair>,
    threads: usize,
    /// What the last group of merges met, for each part: memory that is used again.
    found: Vec<Found>,
    /// One for each thread.
    workers: Vec<Mutex<Neighbours>>,
}

impl PairTable {
    /// `sequences`: ids below `next_id`, and how often they occur. `merges`: how many merges are wanted in
    /// all, from which the first guess is made at the count below which pairs need not be kept.
    pub fn new<S: Iterator<Item = u32>>(
        sequences: impl Iterator<Item = (S, u64)>,
        next_id: u32,
        merges: usize,
        overlapping: bool,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        let ids = next_id as usize + merges;
        let cells = Cells::new(sequences, ids, overlapping, threads, cancel)?;
        // On real text the last pair merged is seen 1/20 to 1/90 of `total / merges` times.
        let threshold = cells.total() / (merges.max(1) as u64).saturating_mul(256);
        let found = cells.bounds().iter().map(|_| Found::default()).collect();
        Ok(Self {
            cells,
            found,
            next_id,
            end_id: ids as u32,
            index: PairIndex::new(threshold.max(1)),
            scanned: false,
            forgotten: HashSet::default(),
            threads,
            workers: (0..threads).map(|_| Mutex::default()).collect(),
        })
    }

    /// The `n` commonest pairs (fewer if there are no more) and their counts: higher counts first, then
    /// smaller ids.
    pub fn top(&mut self, n: usize, cancel: &Cancel) -> Result<Vec<(Pair, u64)>> {
        if !self.scanned {
            self.rescan(cancel)?;
            self.scanned = true;
        }
        while !self.index.has(n) && self.index.threshold() > 1 {
            self.index = PairIndex::new((self.index.threshold() / FALL).max(1));
            self.rescan(cancel)?;
        }
        Ok(self.index.top(n))
    }

    /// Whether the pairs have been counted, which the first `top` does and which takes long.
    pub fn is_counted(&self) -> bool {
        self.scanned
    }

    /// Leaves pairs out of what `top` answers, for good.
    pub fn forget(&mut self, pairs: &[Pair]) {
        for &pair in pairs {
            self.index.take(pair);
            self.forgotten.insert(pair);
        }
    }

    /// Merges all pairs of `batch` at once: they become new tokens with the next ids, in their order.
    pub fn merge(&mut self, batch: &[Pair]) -> Result<()> {
        self.check(batch)?;
        let mut merges = Vec::with_capacity(batch.len());
        for (&(first, last), token) in batch.iter().zip(self.next_id..) {
            let width = self.cells.make_token(token, (first, last));
            let places = self.index.take((first, last)).unwrap_or_default();
            merges.push(Merge { first, last, token, width, places });
        }
        self.next_id += batch.len() as u32;
        let mut rest = &mut merges[..];
        while !rest.is_empty() {
            let mut places = 0;
            let fits = |merge: &&Merge| {
                places += merge.places.len();
                places <= GROUP
            };
            let size = rest.iter().take_while(fits).count().max(1);
            let (group, others) = rest.split_at_mut(size);
            self.merge_group(group);
            // These lists are most of the memory: let them go before new ones are written.
            group.iter_mut().for_each(|merge| merge.places = Vec::new());
            rest = others;
        }
        Ok(())
    }

    fn check(&self, batch: &[Pair]) -> Result<()> {
        if batch.len() > (self.end_id - self.next_id) as usize {
            return Err(Error::invalid(format!(
                "a batch of {} pairs is more than the {} merges that remain",
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
            let with_itself = first == last && batch.iter().all(|pair| *pair == (first, last) || pair.0 != first);
            if firsts.contains(&last) && !with_itself {
                return Err(Error::invalid(format!(
                    "the pair ({first}, {last}) overlaps another of its batch: token {last} is last in the one \
                     and first in the other; leave one of them for a later batch"
                )));
            }
        }
        Ok(())
    }

    fn merge_group(&mut self, merges: &[Merge]) {
        let parallel = merges.iter().map(|merge| merge.places.len()).sum::<usize>() > PARALLEL;
        let threads = if parallel { self.threads } else { 1 };
        let parts = self.cells.parts(&mut self.found);
        parallel::for_each(parts.len(), threads, |_, part| parts[part].lock().expect("no panic").replace(merges));
        drop(parts);

        // The pairs that a new token makes to its left, or to its right, are no other token's.
        let threshold = self.index.threshold();
        parallel::for_each(merges.len() * 2, threads, |worker, job| {
            let side = if job % 2 == 0 { Side::Left } else { Side::Right };
            let mut worker = self.workers[worker].lock().expect("no panic");
            worker.add(&merges[job / 2], job / 2, side, &self.found, &self.cells, threshold);
        });

        // All new pairs before any loss: within a batch a new pair may lose again to the next merge.
        for worker in &mut self.workers {
            self.index.insert(worker.get_mut().expect("no panic").entries.drain(..));
        }
        for worker in &mut self.workers {
            self.index.lose(worker.get_mut().expect("no panic").lost.drain(..));
        }
        for part in &self.found {
            self.index.lose(part.lost.iter().copied());
        }
    }

    /// Counts every pair and lists its places: at the start, and after the pairs above the threshold have
    /// run out.
    fn rescan(&mut self, cancel: &Cancel) -> Result<()> {
        type Counts = PairMap<(u64, usize)>;
        let parts = self.cells.bounds();
        let counted: Vec<Mutex<Counts>> = parts.iter().map(|_| Mutex::default()).collect();
        parallel::for_each(parts.len(), self.threads, |_, part| {
            let mut counts = counted[part].lock().expect("no panic");
            self.cells.scan(parts[part], cancel, |pair, _, weight| {
                let (sum, places) = counts.entry(pair);
                *sum += weight;
                *places += 1;
            });
        });
        let counted: Vec<Counts> = counted.into_iter().map(|counts| counts.into_inner().expect("no panic")).collect();

        let mut sums = Counts::default();
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
        // Each part writes its own stretch of every list.
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
