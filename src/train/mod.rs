//! `PairTable`: the counts of all adjacent pairs of tokens in weighted sequences of ids, kept up to date while pairs
//! are merged. It returns the most frequent pairs (`top`) and merges a batch (`merge`). It does not choose the batch.
//!
//! The table is incremental. For each pair it keeps a count and a list of the places where the pair starts, so merging
//! a pair touches only those places. Three facts keep this simple:
//!
//! - A pair can only appear in the step that makes the newer of its two tokens. Its list of places is therefore
//!   written once, sorted and with its final length.
//! - A place that no longer contains its pair can be recognized by its cells (`cells`) and is skipped. Lists are never
//!   repaired.
//! - The count of a pair never rises after the pair has appeared. A pair that starts below a threshold is therefore not
//!   kept, until the pairs above the threshold run out (`rescan`).
//!
//! Splitting a token undoes its merge, which breaks all three, so the pairs that it affects are counted again.
//!
//! Sequences may belong to several groups. The table then also knows the counts of each group.

mod cells;
mod index;
mod neighbors;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use crate::encode::MAX_MERGES;
use crate::error::{Cancel, Error, NEVER, Result};
use crate::parallel;
use crate::table::hash::{HashMap, HashSet};
pub use cells::Sequence;
use cells::{BatchPair, Cells, NONE, NOT_SPLIT, PartChanges};
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
    /// The pairs that became tokens, in the order of their ids, which end before `next_id`.
    made: Vec<Pair>,
    /// Pair → the token that it became. Empty until a pair could be merged again: after a split, or if it is absent.
    tokens: Option<HashMap<Pair, u32>>,
    index: PairIndex,
    /// Whether the pairs have been counted.
    scanned: bool,
    /// Pairs that a rescan must not bring back.
    forgotten: HashSet<Pair>,
    /// How often each token occurs, by id, once this has been asked for.
    token_counts: Option<Vec<u64>>,
    threads: usize,
    /// The changes that the last group of merges made to each part. Kept only to reuse the memory.
    changes: Vec<PartChanges>,
    /// The state of each thread.
    workers: Vec<Mutex<Neighbors>>,
}

impl PairTable {
    /// `sequences` are sequences of ids below `next_id`, with how often each occurs and its group. `merges` is the
    /// number of merges that are likely to be made; it determines the first threshold, together with `min_count`, the
    /// least count that a pair is likely to be merged with. `overlapping` counts overlapping pairs in a run of one
    /// token: "aaaaa" then has four "aa", otherwise two.
    #[allow(clippy::too_many_arguments)]
    pub fn new<S: Iterator<Item = u32>>(
        sequences: impl Iterator<Item = Sequence<S>>,
        groups: usize,
        next_id: u32,
        merges: usize,
        min_count: u64,
        overlapping: bool,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        let cells = Cells::new(sequences, groups, next_id as usize + merges, overlapping, threads, cancel)?;
        // On real text, the count of the last merged pair is 1/20 to 1/90 of the number of tokens per merge.
        let tokens = cells.layout.lengths.iter().sum::<u64>() / groups as u64;
        let threshold = (tokens / (merges.max(1) as u64).saturating_mul(256)).max(min_count);
        let changes = cells.layout.part_groups.iter().map(|_| PartChanges::default()).collect();
        Ok(Self {
            cells,
            changes,
            next_id,
            made: Vec::new(),
            tokens: None,
            index: PairIndex::new(threshold.max(1), groups, Vec::new()),
            scanned: false,
            forgotten: HashSet::default(),
            token_counts: None,
            threads,
            workers: (0..threads).map(|_| Mutex::default()).collect(),
        })
    }

    /// Compares tokens by these ranks instead of their ids when the counts of two pairs are equal. `ranks` has the
    /// ranks of the first ids; others are their own ranks. Call it before `top`.
    pub fn break_ties_by(mut self, ranks: Vec<u32>) -> Self {
        debug_assert!(!self.scanned);
        self.index = PairIndex::new(self.index.threshold(), self.groups(), ranks);
        self
    }

    /// Returns the number of groups.
    pub fn groups(&self) -> usize {
        self.cells.layout.lengths.len()
    }

    /// Returns the id that the next new token will get.
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Returns the number of tokens in each group.
    pub fn lengths(&self) -> &[u64] {
        &self.cells.layout.lengths
    }

    /// Returns the `n` most frequent pairs, or fewer if there are no more, and their counts: higher counts first, then
    /// smaller ids (or ranks: see `break_ties_by`). With a `group`, only its sequences count.
    pub fn top(&mut self, n: usize, group: Option<usize>, cancel: &Cancel) -> Result<Vec<(Pair, u64)>> {
        let column = self.column(group);
        self.scan(cancel)?;
        while !self.index.has(n, column) && self.index.threshold() > 1 {
            self.rescan(self.index.threshold() / THRESHOLD_DIVISOR, cancel)?;
        }
        Ok(self.index.top(n, column))
    }

    /// Returns whether the pairs have been counted. The first call of `top` counts them, which is slow.
    pub fn is_counted(&self) -> bool {
        self.scanned
    }

    /// Returns how often each pair occurs, in all sequences or in a group. Forgotten pairs do not occur.
    pub fn count(&mut self, pairs: &[Pair], group: Option<usize>, cancel: &Cancel) -> Result<Vec<u64>> {
        self.find(pairs, cancel)?;
        let column = self.column(group);
        Ok(pairs.iter().map(|&pair| self.index.count(pair, column)).collect())
    }

    /// Returns the column of the index for a group. A single group is all sequences.
    fn column(&self, group: Option<usize>) -> usize {
        group.filter(|_| self.groups() > 1).map_or(0, |group| 1 + group)
    }

    /// Returns how often each token occurs, by id. The first call counts them.
    pub fn token_counts(&mut self, cancel: &Cancel) -> Result<&[u64]> {
        if self.token_counts.is_none() {
            self.token_counts = Some(self.cells.token_counts(cancel)?);
        }
        Ok(&self.token_counts.as_ref().expect("counted above")[..self.next_id as usize])
    }

    /// Permanently excludes pairs from the results of `top`.
    pub fn forget(&mut self, pairs: &[Pair]) {
        for &pair in pairs {
            self.index.take(pair);
            self.forgotten.insert(pair);
        }
    }

    /// Merges all pairs of `batch` at once. Returns the token that each became, and how often it was merged. New tokens
    /// get the next ids, in the order of the batch; a pair that was merged before becomes the same token again. A pair
    /// that does not occur is an error unless `absent` allows it.
    pub fn merge(&mut self, batch: &[Pair], absent: bool, cancel: &Cancel) -> Result<Vec<(u32, u64)>> {
        self.find(batch, cancel)?;
        self.check(batch, absent)?;
        self.cells.reserve(self.next_id as usize + batch.len())?;
        if absent {
            self.remember_tokens();
        }
        let first_new = self.next_id;
        let mut pairs = Vec::with_capacity(batch.len());
        for &(first, last) in batch {
            let known = self.tokens.as_mut().map(|tokens| *tokens.entry((first, last)).or_insert(self.next_id));
            let token = known.unwrap_or(self.next_id);
            if token == self.next_id {
                self.made.push((first, last));
                self.next_id += 1;
            }
            let width = self.cells.layout.add_token(token, (first, last));
            let places = self.index.take((first, last)).unwrap_or_default();
            pairs.push(BatchPair { first, last, token, width, places });
        }
        let mut merged = Vec::with_capacity(batch.len());
        if pairs.iter().all(|pair| pair.token >= first_new) {
            self.merge_in_groups(&mut pairs, &mut merged, |table, some, threads| table.update_index(some, threads));
            return Ok(merged);
        }
        // The pairs of a token that was split may be in the index already, which an update does not expect.
        let tokens: Vec<u32> = pairs.iter().map(|pair| pair.token).collect();
        let (mut new, mut again): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|pair| pair.token >= first_new);
        let mut affected = HashSet::default();
        self.merge_in_groups(&mut new, &mut merged, |table, some, threads| table.update_index(some, threads));
        self.merge_in_groups(&mut again, &mut merged, |table, some, _| table.add_affected(some, &mut affected));
        self.recount(&affected);
        let merged: HashMap<u32, u64> = merged.into_iter().collect();
        Ok(tokens.into_iter().map(|token| (token, merged[&token])).collect())
    }

    /// Merges pairs, and adds each token and how often it was made to `merged`. Calls `update` for some pairs at a time.
    fn merge_in_groups(
        &mut self,
        pairs: &mut [BatchPair],
        merged: &mut Vec<(u32, u64)>,
        mut update: impl FnMut(&mut Self, &[BatchPair], usize),
    ) {
        let mut rest = pairs;
        while !rest.is_empty() {
            let mut places = 0;
            let fits = |pair: &&BatchPair| {
                places += pair.places.len();
                places <= GROUP_PLACES
            };
            let size = rest.iter().take_while(fits).count().max(1);
            let (some, others) = rest.split_at_mut(size);
            let places: usize = some.iter().map(|pair| pair.places.len()).sum();
            let threads = if places > MIN_PARALLEL_PLACES { self.threads } else { 1 };
            self.cells.replace(some, &mut self.changes, threads);
            update(self, some, threads);
            self.count_merged(some, merged);
            // These lists are most of the memory: free them before new ones are written.
            some.iter_mut().for_each(|pair| pair.places = Vec::new());
            rest = others;
        }
    }

    /// Merges the most frequent pair `n` times, or until there are no more pairs. Returns the pairs and their counts.
    pub fn merge_serially(&mut self, n: usize, cancel: &Cancel) -> Result<Vec<(Pair, u64)>> {
        let mut merged = Vec::new();
        while merged.len() < n {
            cancel.check()?;
            let Some(&(pair, count)) = self.top(1, None, cancel)?.first() else { break };
            self.merge(&[pair], false, cancel)?;
            merged.push((pair, count));
        }
        Ok(merged)
    }

    /// Replaces tokens by the pairs they were made from, everywhere. If such a pair is merged again, it becomes the
    /// same token.
    pub fn split(&mut self, tokens: &[u32]) -> Result<()> {
        let first_made = self.next_id - self.made.len() as u32;
        let mut parts = vec![NOT_SPLIT; self.cells.layout.widths.len()];
        for &token in tokens {
            let Some(&pair) = token.checked_sub(first_made).and_then(|nth| self.made.get(nth as usize)) else {
                return Err(Error::invalid(format!("token {token} cannot be split: no merge in this table made it")));
            };
            parts[token as usize] = pair;
        }
        self.remember_tokens();
        let splits = self.cells.split(&parts, self.threads);
        if let Some(counts) = &mut self.token_counts {
            for (&token, times) in &splits.times {
                let (first, last) = parts[token as usize];
                counts[first as usize] += times;
                counts[last as usize] += times;
            }
            // Afterwards, since the parts of a token may have been split as well.
            for (&token, times) in &splits.times {
                counts[token as usize] -= times;
            }
        }
        self.recount(&splits.affected);
        Ok(())
    }

    /// Fills `tokens`, which costs every merge some time from then on.
    fn remember_tokens(&mut self) {
        let first_made = self.next_id - self.made.len() as u32;
        self.tokens.get_or_insert_with(|| self.made.iter().copied().zip(first_made..).collect());
    }

    /// Makes sure that pairs are in the index if they occur, even below the threshold.
    fn find(&mut self, pairs: &[Pair], cancel: &Cancel) -> Result<()> {
        self.scan(cancel)?;
        let is_missing = |pair: &Pair| !self.index.contains(*pair) && !self.forgotten.contains(pair);
        if self.index.threshold() > 1 && pairs.iter().any(is_missing) {
            self.rescan(1, cancel)?;
        }
        Ok(())
    }

    /// Returns an error unless the pairs of a batch can be merged at once.
    fn check(&self, batch: &[Pair], absent: bool) -> Result<()> {
        if batch.len() > MAX_MERGES.saturating_sub(self.made.len()) {
            return Err(Error::invalid(format!("there can be at most {MAX_MERGES} merges")));
        }
        let firsts: HashSet<u32> = batch.iter().map(|pair| pair.0).collect();
        let mut seen = HashSet::default();
        for &(first, last) in batch {
            if first.max(last) >= self.next_id {
                let token = first.max(last);
                return Err(Error::invalid(format!("token {token} in the pair ({first}, {last}) does not exist")));
            }
            if !seen.insert((first, last)) {
                return Err(Error::invalid(format!("the pair ({first}, {last}) is in the batch twice")));
            }
            if !absent && self.index.count((first, last), 0) == 0 {
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

    /// Updates the lengths of groups and the counts of tokens, and adds each token and how often it was made
    /// to `merged`.
    fn count_merged(&mut self, pairs: &[BatchPair], merged: &mut Vec<(u32, u64)>) {
        let layout = &mut self.cells.layout;
        for (part, &group) in self.changes.iter().zip(&layout.part_groups) {
            layout.lengths[group] -= part.merged.iter().sum::<u64>();
        }
        for (nth, pair) in pairs.iter().enumerate() {
            let count = self.changes.iter().map(|part| part.merged[nth]).sum();
            merged.push((pair.token, count));
            if let Some(counts) = &mut self.token_counts {
                counts.resize(layout.widths.len(), 0);
                counts[pair.first as usize] -= count;
                counts[pair.last as usize] -= count;
                counts[pair.token as usize] += count;
            }
        }
    }

    /// Adds the pairs to which the tokens just made, or what they replaced, belong.
    fn add_affected(&self, pairs: &[BatchPair], affected: &mut HashSet<Pair>) {
        for part in &self.changes {
            affected.extend(part.lost.iter().map(|lost| lost.0));
            let mut start = 0;
            for (pair, &end) in pairs.iter().zip(&part.ends) {
                for new in &part.new_tokens[start..end] {
                    if new.left != NONE {
                        affected.extend([(new.left, pair.first), (new.left, pair.token)]);
                    }
                    if new.right != NONE {
                        affected.extend([(pair.last, new.right), (pair.token, new.right)]);
                    }
                }
                start = end;
            }
        }
    }

    /// Counts some pairs again, and lists their places.
    fn recount(&mut self, pairs: &HashSet<Pair>) {
        if pairs.is_empty() {
            return;
        }
        let mut is_first = vec![false; self.cells.layout.widths.len()];
        let mut is_last = is_first.clone();
        for &pair in pairs {
            self.index.take(pair);
            is_first[pair.0 as usize] = true;
            is_last[pair.1 as usize] = true;
        }
        let numbers: HashMap<Pair, usize> = pairs.iter().copied().zip(0..).collect();
        let parts = self.cells.layout.bounds();
        /// The count and the places of each pair.
        type Found = Vec<(u64, Vec<u32>)>;
        let found: Vec<Mutex<Found>> = parts.iter().map(|_| Mutex::default()).collect();
        parallel::for_each(parts.len(), self.threads, |_, part| {
            let mut found = found[part].lock().expect("no panic");
            found.resize_with(pairs.len(), Default::default);
            self.cells.scan(parts[part], &NEVER, |pair, place, weight| {
                if is_first[pair.0 as usize]
                    && is_last[pair.1 as usize]
                    && let Some(&number) = numbers.get(&pair)
                {
                    let (sum, places) = &mut found[number];
                    *sum += weight;
                    places.push(place);
                }
            });
        });
        let found: Vec<Found> = found.into_iter().map(|part| part.into_inner().expect("no panic")).collect();
        let (mut entries, mut by_group) = (Vec::new(), Vec::new());
        for (pair, number) in numbers.into_iter().filter(|(pair, _)| !self.forgotten.contains(pair)) {
            let mut sums = vec![0; self.groups()];
            for (part, &group) in found.iter().zip(&self.cells.layout.part_groups) {
                sums[group] += part[number].0;
            }
            let count = sums.iter().sum();
            if count >= self.index.threshold() {
                let places = found.iter().flat_map(|part| &part[number].1).copied().collect();
                entries.push(Entry { pair, count, places });
                by_group.extend(sums.into_iter().filter(|_| self.groups() > 1));
            }
        }
        self.index.insert(entries.into_iter(), &by_group);
    }

    /// Adds the pairs that new tokens form with their neighbors to the index, and lowers the counts of others.
    fn update_index(&mut self, pairs: &[BatchPair], threads: usize) {
        // Each pair and side is a separate job: the new pairs on one side of a new token belong to that token alone.
        let threshold = self.index.threshold();
        parallel::for_each(pairs.len() * 2, threads, |worker, job| {
            let side = if job % 2 == 0 { Side::Left } else { Side::Right };
            let mut worker = self.workers[worker].lock().expect("no panic");
            let (pair, layout) = (&pairs[job / 2], &self.cells.layout);
            if layout.lengths.len() > 1 {
                worker.add::<true>(pair, job / 2, side, &self.changes, layout, threshold);
            } else {
                worker.add::<false>(pair, job / 2, side, &self.changes, layout, threshold);
            }
        });

        // Insert all new pairs before subtracting any losses: a later pair of the batch may reduce a new pair.
        for worker in &mut self.workers {
            let worker = worker.get_mut().expect("no panic");
            self.index.insert(worker.entries.drain(..), &worker.by_group);
            worker.by_group.clear();
        }
        for worker in &mut self.workers {
            for (group, lost) in worker.get_mut().expect("no panic").lost.iter_mut().enumerate() {
                self.index.subtract(lost.drain(..), group);
            }
        }
        for (part, &group) in self.changes.iter().zip(&self.cells.layout.part_groups) {
            self.index.subtract(part.lost.iter().copied(), group);
        }
    }

    /// Counts all pairs if they have not been counted yet.
    fn scan(&mut self, cancel: &Cancel) -> Result<()> {
        if self.scanned { Ok(()) } else { self.rescan(self.index.threshold(), cancel) }
    }

    /// Counts all pairs, and lists the places of those at or above a threshold: at the start, and whenever the pairs
    /// above the threshold run out.
    fn rescan(&mut self, threshold: u64, cancel: &Cancel) -> Result<()> {
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
        cancel.check()?;
        self.index = self.index.emptied(threshold.max(1));
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
        let mut by_group = Vec::new();
        if self.groups() > 1 {
            by_group.resize(entries.len() * self.groups(), 0);
            for (entry, sums) in entries.iter().zip(by_group.chunks_exact_mut(self.groups())) {
                for (counts, &group) in counted.iter().zip(&self.cells.layout.part_groups) {
                    sums[group] += counts.get(entry.pair).map_or(0, |counts| counts.0);
                }
            }
        }
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
        self.index.insert(entries.into_iter(), &by_group);
        self.scanned = cancel.check().is_ok();
        cancel.check()
    }
}
