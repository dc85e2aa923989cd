//! Stores all sequences in one array of *cells*, with a separator before, between and after them.
//!
//! A token covers as many cells as it has initial ids (its *width*). Its id is in its first and last cell. When two
//! tokens merge, the two cells at the seam are marked as inside. So both neighbors of a token are found in O(1),
//! merging moves nothing, and a place where a pair no longer starts does not match that pair.
//!
//! For parallel work the array is cut at separators into *parts*, each changed by one thread at a time.

use std::sync::Mutex;

use super::Pair;
use crate::error::{Cancel, Error, Result, check_memory};
use crate::parallel;
use crate::table::hash::{HashMap, HashSet};
use crate::table::prefetch::prefetch;

/// The missing neighbor of a token at the start or end of its sequence.
pub const NONE: u32 = u32::MAX;
/// Marks a token that is not to be split.
pub const NOT_SPLIT: Pair = (NONE, NONE);

/// The type of a cell. Two bytes are enough if ids are small, which halves the size of the array.
trait Cell: Copy + Eq + Send + Sync {
    const SEPARATOR: Self;
    const INSIDE: Self;
    fn of(id: u32) -> Self;
    fn id(self) -> u32;
}

impl Cell for u16 {
    const SEPARATOR: u16 = u16::MAX;
    const INSIDE: u16 = u16::MAX - 1;
    fn of(id: u32) -> u16 {
        id as u16
    }
    fn id(self) -> u32 {
        u32::from(self)
    }
}

impl Cell for u32 {
    const SEPARATOR: u32 = u32::MAX;
    const INSIDE: u32 = u32::MAX - 1;
    fn of(id: u32) -> u32 {
        id
    }
    fn id(self) -> u32 {
        self
    }
}

enum Store {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

/// The binary logarithm of the minimum number of cells per part: fewer cells are not worth a thread.
const PART_BITS: u32 = if cfg!(test) { 4 } else { 20 };
/// Cells are prefetched this many places ahead, since the places of a pair are scattered over memory.
const PREFETCH_AHEAD: usize = 24;

pub struct Cells {
    store: Store,
    pub layout: Layout,
}

/// What the cells contain.
pub struct Layout {
    weights: Weights,
    /// id → the number of cells that the token covers. 1 for ids that are not in use yet.
    pub widths: Vec<u32>,
    /// Where each part starts (always at a separator), followed by the end of the last part.
    cuts: Vec<usize>,
    /// The group of the sequences in each part.
    pub part_groups: Vec<usize>,
    /// Whether to count overlapping pairs in a run of one token.
    pub overlapping: bool,
    /// The number of tokens in each group: the lengths of its sequences, multiplied by their weights.
    pub lengths: Vec<u64>,
    /// The total weight of each token that is a sequence by itself. Such a sequence has no pairs, and no cells.
    alone: HashMap<u32, u64>,
}

/// A sequence of ids, how often it occurs, and the group that it belongs to. Groups are in ascending order.
pub type Sequence<S> = (S, u64, usize);

/// One pair of a batch: every `first` followed by `last` becomes `token`.
pub struct BatchPair {
    pub first: u32,
    pub last: u32,
    pub token: u32,
    /// The width of `token`.
    pub width: u32,
    /// Where the pair starts, ascending. Places that no longer contain the pair are skipped.
    pub places: Vec<u32>,
}

/// One occurrence of a new token.
pub struct NewToken {
    pub place: u32,
    /// The left and right neighbors, or `NONE`.
    pub left: u32,
    pub right: u32,
    pub weight: u64,
}

/// The changes that a group of pairs made to one part. Aligned so that threads do not write to the same cache line.
#[derive(Default)]
#[repr(align(128))]
pub struct PartChanges {
    /// The new tokens, pair by pair.
    pub new_tokens: Vec<NewToken>,
    /// The end of each pair's tokens in `new_tokens`.
    pub ends: Vec<usize>,
    /// The total weight of each pair's tokens.
    pub merged: Vec<u64>,
    /// The losses of pairs of one repeated token. They depend on the lengths of runs, so they are computed here.
    pub lost: Vec<(Pair, u64)>,
}

/// What splitting tokens changed.
#[derive(Default)]
pub struct Splits {
    /// The pairs whose count or places may have changed.
    pub affected: HashSet<Pair>,
    /// Token → how often it was split.
    pub times: HashMap<u32, u64>,
}

impl PartChanges {
    fn clear(&mut self) {
        self.new_tokens.clear();
        self.ends.clear();
        self.merged.clear();
        self.lost.clear();
    }
}

impl Cells {
    /// `ids` is one more than the largest id that is likely to be used; see `reserve`.
    pub fn new<S: Iterator<Item = u32>>(
        sequences: impl Iterator<Item = Sequence<S>>,
        groups: usize,
        ids: usize,
        overlapping: bool,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        if ids <= u16::INSIDE as usize {
            let (cells, layout) = lay_out(sequences, groups, ids, overlapping, threads, cancel)?;
            Ok(Self { store: Store::Narrow(cells), layout })
        } else {
            let (cells, layout) = lay_out(sequences, groups, ids, overlapping, threads, cancel)?;
            Ok(Self { store: Store::Wide(cells), layout })
        }
    }

    /// Makes room for ids below `ids`.
    pub fn reserve(&mut self, ids: usize) -> Result<()> {
        if ids <= self.layout.widths.len() {
            return Ok(());
        }
        let ids = ids.max(2 * self.layout.widths.len());
        if let Store::Narrow(cells) = &self.store
            && ids > u16::INSIDE as usize
        {
            check_memory(cells.len() * size_of::<u32>())?;
            self.store = Store::Wide(cells.iter().map(|&cell| widened(cell)).collect());
        }
        self.layout.widths.resize(ids, 1);
        Ok(())
    }

    /// Writes the new tokens of a group of pairs into the cells, and records the changes to each part.
    pub fn replace(&mut self, pairs: &[BatchPair], changes: &mut [PartChanges], threads: usize) {
        match &mut self.store {
            Store::Narrow(cells) => replace_in_parts(cells, &self.layout, pairs, changes, threads),
            Store::Wide(cells) => replace_in_parts(cells, &self.layout, pairs, changes, threads),
        }
    }

    /// Replaces tokens by the two that they were made from, everywhere. `parts` has these two by id, or `NOT_SPLIT`.
    pub fn split(&mut self, parts: &[Pair], threads: usize) -> Splits {
        let by_part = match &mut self.store {
            Store::Narrow(cells) => split_in_parts(cells, &self.layout, parts, threads),
            Store::Wide(cells) => split_in_parts(cells, &self.layout, parts, threads),
        };
        let mut all = Splits::default();
        for (splits, &group) in by_part.into_iter().zip(&self.layout.part_groups) {
            self.layout.lengths[group] += splits.times.values().sum::<u64>();
            all.affected.extend(splits.affected);
            for (token, times) in splits.times {
                *all.times.entry(token).or_default() += times;
            }
        }
        all
    }

    /// Returns how often each token occurs, by id.
    pub fn token_counts(&self, cancel: &Cancel) -> Result<Vec<u64>> {
        let mut counts = vec![0; self.layout.widths.len()];
        for (&token, weight) in &self.layout.alone {
            counts[token as usize] += weight;
        }
        for bounds in self.layout.bounds() {
            let mut visit = |token: u32, weight: u64| counts[token as usize] += weight;
            match &self.store {
                Store::Narrow(cells) => each_token(cells, &self.layout, bounds, cancel, &mut visit),
                Store::Wide(cells) => each_token(cells, &self.layout, bounds, cancel, &mut visit),
            }
        }
        cancel.check()?;
        Ok(counts)
    }

    /// Calls `visit(pair, place, weight)` for every pair of a part. The weight is 0 if the pair does not count there
    /// because it overlaps the one before it in a run of one token. Returns early if cancelled.
    pub fn scan(&self, bounds: (usize, usize), cancel: &Cancel, visit: impl FnMut(Pair, u32, u64)) {
        match &self.store {
            Store::Narrow(cells) => scan(cells, &self.layout, bounds, cancel, visit),
            Store::Wide(cells) => scan(cells, &self.layout, bounds, cancel, visit),
        }
    }
}

impl Layout {
    /// Sets the width of a new token and returns it.
    pub fn add_token(&mut self, token: u32, (first, last): Pair) -> u32 {
        self.widths[token as usize] = self.widths[first as usize] + self.widths[last as usize];
        self.widths[token as usize]
    }

    /// Returns where each part starts and ends.
    pub fn bounds(&self) -> Vec<(usize, usize)> {
        self.cuts.windows(2).map(|cut| (cut[0], cut[1])).collect()
    }
}

fn scan<C: Cell>(
    cells: &[C],
    layout: &Layout,
    (start, end): (usize, usize),
    cancel: &Cancel,
    mut visit: impl FnMut(Pair, u32, u64),
) {
    let mut cursor = 0;
    let mut at = start;
    while at < end && cancel.check().is_ok() {
        at += 1;
        let weight = layout.weights.at(at as u32, &mut cursor);
        let mut first = cells[at];
        let mut counted = false;
        loop {
            let next = at + layout.widths[first.id() as usize] as usize;
            let last = cells[next];
            if last == C::SEPARATOR {
                at = next;
                break;
            }
            // In a run of one token, only every other pair can be merged.
            counted = layout.overlapping || first != last || !counted;
            visit((first.id(), last.id()), at as u32, if counted { weight } else { 0 });
            counted &= first == last;
            (at, first) = (next, last);
        }
    }
}

/// Calls `visit(token, weight)` for every token of a part. Returns early if cancelled.
fn each_token<C: Cell>(
    cells: &[C],
    layout: &Layout,
    (start, end): (usize, usize),
    cancel: &Cancel,
    visit: &mut impl FnMut(u32, u64),
) {
    let (mut at, mut cursor, mut weight) = (start, 0, 0);
    while at < end {
        if cells[at] == C::SEPARATOR {
            if cancel.check().is_err() {
                return;
            }
            weight = layout.weights.at(at as u32 + 1, &mut cursor);
            at += 1;
        } else {
            visit(cells[at].id(), weight);
            at += layout.widths[cells[at].id() as usize] as usize;
        }
    }
}

/// Returns a cell of two bytes as one of four.
fn widened(cell: u16) -> u32 {
    match cell {
        u16::SEPARATOR => u32::SEPARATOR,
        u16::INSIDE => u32::INSIDE,
        id => u32::from(id),
    }
}

/// Writes the sequences into cells. Sequences without pairs or weight are left out.
fn lay_out<C: Cell, S: Iterator<Item = u32>>(
    sequences: impl Iterator<Item = Sequence<S>>,
    groups: usize,
    ids: usize,
    overlapping: bool,
    threads: usize,
    cancel: &Cancel,
) -> Result<(Vec<C>, Layout)> {
    let mut cells = vec![C::SEPARATOR];
    let mut weights = Weights::default();
    let mut alone = HashMap::default();
    let mut lengths = vec![0u128; groups];
    let mut group_starts: Vec<usize> = Vec::with_capacity(groups);
    for (sequence, weight, group) in sequences {
        cancel.check()?;
        let start = cells.len();
        group_starts.resize(group + 1, start - 1);
        if cells.capacity() - start < sequence.size_hint().0 + 1 {
            let needed = sequence.size_hint().0 + 1;
            cells.try_reserve(needed).map_err(|_| Error::OutOfMemory(needed * size_of::<C>()))?;
        }
        cells.extend(sequence.inspect(|&id| debug_assert!((id as usize) < ids)).map(C::of));
        lengths[group] += u128::from(weight) * (cells.len() - start) as u128;
        if cells.len() < start + 2 || weight == 0 {
            if cells.len() == start + 1 {
                let sum: &mut u64 = alone.entry(cells[start].id()).or_default();
                *sum = sum.saturating_add(weight); // too large a sum is an error below
            }
            cells.truncate(start);
            continue;
        }
        if cells.len() >= u32::MAX as usize {
            return Err(Error::TooManyChunks);
        }
        cells.push(C::SEPARATOR);
        weights.push(start as u32, weight);
    }
    if lengths.iter().sum::<u128>() > i64::MAX as u128 {
        return Err(Error::invalid("the counts add up to more than 2**63 - 1; scale them down"));
    }
    cells.shrink_to_fit();

    let parts = if threads == 1 { 1 } else { (threads * 4).min(cells.len() >> PART_BITS).max(1) };
    let next_separator = |at: usize| at + cells[at..].iter().take_while(|&&cell| cell != C::SEPARATOR).count();
    let mut cuts: Vec<usize> = (1..parts).map(|part| next_separator(cells.len() * part / parts)).collect();
    cuts.extend(group_starts.iter().copied().chain([0]));
    cuts.sort_unstable();
    cuts.dedup();
    cuts.retain(|&cut| cut == 0 || cut + 1 < cells.len());
    let group_of = |cut: usize| group_starts.partition_point(|&start| start <= cut).saturating_sub(1);
    let part_groups = cuts.iter().map(|&cut| group_of(cut)).collect();
    cuts.push(cells.len() - 1);
    let lengths = lengths.into_iter().map(|length| length as u64).collect();
    Ok((cells, Layout { weights, widths: vec![1; ids], cuts, part_groups, overlapping, lengths, alone }))
}

/// Implements `Cells::replace`.
fn replace_in_parts<C: Cell>(
    cells: &mut [C],
    layout: &Layout,
    pairs: &[BatchPair],
    changes: &mut [PartChanges],
    threads: usize,
) {
    let parts: Vec<_> = parts_of(cells, layout).zip(changes).map(Mutex::new).collect();
    parallel::for_each(parts.len(), threads, |_, part| {
        let (part, changes) = &mut *parts[part].lock().expect("no panic");
        part.replace(pairs, changes);
    });
}

/// Implements `Cells::split`. Returns what changed in each part.
fn split_in_parts<C: Cell>(cells: &mut [C], layout: &Layout, split: &[Pair], threads: usize) -> Vec<Splits> {
    let parts: Vec<_> = parts_of(cells, layout).map(|part| Mutex::new((part, Splits::default()))).collect();
    parallel::for_each(parts.len(), threads, |_, part| {
        let (part, splits) = &mut *parts[part].lock().expect("no panic");
        part.split(split, splits);
    });
    parts.into_iter().map(|part| part.into_inner().expect("no panic").1).collect()
}

fn parts_of<'a, C: Cell>(mut cells: &'a mut [C], layout: &'a Layout) -> impl Iterator<Item = Part<'a, C>> {
    layout.bounds().into_iter().map(move |(base, end)| {
        let (part, rest) = std::mem::take(&mut cells).split_at_mut(end - base);
        cells = rest;
        Part { base, cells: part, layout }
    })
}

/// The cells that one thread may change: from a separator up to, but not including, that of the next part.
struct Part<'a, C> {
    /// The index of the first cell in the whole array.
    base: usize,
    cells: &'a mut [C],
    layout: &'a Layout,
}

impl<C: Cell> Part<'_, C> {
    fn replace(&mut self, pairs: &[BatchPair], changes: &mut PartChanges) {
        changes.clear();
        for (i, pair) in pairs.iter().enumerate() {
            // Most lists are short: prefetch the cells of the next one while this one is processed.
            if let Some(later) = pairs.get(i + 2) {
                prefetch(&later.places, 0);
            }
            if let Some(next) = pairs.get(i + 1) {
                for &place in next.places.iter().take(PREFETCH_AHEAD) {
                    prefetch(self.cells, (place as usize).wrapping_sub(self.base));
                }
            }
            let merged = self.replace_pair(pair, changes);
            changes.merged.push(merged);
            changes.ends.push(changes.new_tokens.len());
        }
    }

    /// Returns the total weight of the new tokens.
    fn replace_pair(&mut self, pair: &BatchPair, changes: &mut PartChanges) -> u64 {
        let (first, last, token) = (C::of(pair.first), C::of(pair.last), C::of(pair.token));
        let (first_width, last_width) = (self.width(first), self.width(last));
        let end = self.base + self.cells.len();
        let places = &pair.places[pair.places.partition_point(|&place| (place as usize) < self.base)..];
        let places = &places[..places.partition_point(|&place| (place as usize) < end)];
        let (mut lost_first, mut lost_last, mut merged) = (0, 0, 0);
        let mut cursor = 0;
        for (i, &place) in places.iter().enumerate() {
            if let Some(&later) = places.get(i + PREFETCH_AHEAD) {
                prefetch(self.cells, later as usize - self.base);
            }
            let start = place as usize - self.base;
            let middle = start + first_width;
            if self.cells[start] != first || self.cells[middle] != last {
                continue;
            }
            let stop = middle + last_width;
            let (left, right) = (self.cells[start - 1], self.cell(stop));
            let weight = self.layout.weights.at(place, &mut cursor);
            merged += weight;
            if left == first && self.shortens_run_before(start, first) {
                lost_first += weight;
            }
            if right == last && first != last && self.shortens_run_after(middle, last) {
                lost_last += weight;
            }
            let id = |cell: C| if cell == C::SEPARATOR { NONE } else { cell.id() };
            changes.new_tokens.push(NewToken { place, left: id(left), right: id(right), weight });
            self.cells[middle - 1] = C::INSIDE;
            self.cells[middle] = C::INSIDE;
            self.cells[start] = token;
            self.cells[stop - 1] = token;
        }
        for (token, lost) in [(pair.first, lost_first), (pair.last, lost_last)] {
            if lost > 0 {
                changes.lost.push(((token, token), lost));
            }
        }
        merged
    }

    /// Implements `Cells::split` for this part.
    fn split(&mut self, parts: &[Pair], splits: &mut Splits) {
        let (mut at, mut cursor, mut weight) = (0, 0, 0);
        while at < self.cells.len() {
            let cell = self.cells[at];
            if cell == C::SEPARATOR {
                at += 1;
                weight = self.layout.weights.at((self.base + at) as u32, &mut cursor);
                continue;
            }
            let width = self.width(cell);
            let (first, last) = parts[cell.id() as usize];
            if (first, last) == NOT_SPLIT {
                at += width;
                continue;
            }
            let (left, right) = (self.cells[at - 1], self.cell(at + width));
            splits.affected.insert((first, last));
            for left in [left].into_iter().filter(|&cell| cell != C::SEPARATOR).map(C::id) {
                splits.affected.extend([(left, cell.id()), (left, first)]);
            }
            for right in [right].into_iter().filter(|&cell| cell != C::SEPARATOR).map(C::id) {
                splits.affected.extend([(cell.id(), right), (last, right)]);
            }
            *splits.times.entry(cell.id()).or_default() += weight;
            // The inner cells of the two tokens are as they were; `first` is next, since it may be split as well.
            let (first, last) = (C::of(first), C::of(last));
            let middle = at + self.width(first);
            self.cells[at] = first;
            self.cells[middle - 1] = first;
            self.cells[middle] = last;
            self.cells[at + width - 1] = last;
        }
    }

    fn width(&self, token: C) -> usize {
        self.layout.widths[token.id() as usize] as usize
    }

    /// Returns a cell. Beyond the end of the part is the separator of the next one.
    fn cell(&self, at: usize) -> C {
        self.cells.get(at).copied().unwrap_or(C::SEPARATOR)
    }

    /// Returns whether the run of `token` that ends with the token at `start` has one pair fewer without that token.
    fn shortens_run_before(&self, mut start: usize, token: C) -> bool {
        let mut even = false;
        while !self.layout.overlapping && self.cells[start - 1] == token {
            start -= self.width(token);
            even = !even;
        }
        self.layout.overlapping || even
    }

    /// Returns whether the run of `token` that starts with the token at `start` has one pair fewer without that token.
    fn shortens_run_after(&self, mut start: usize, token: C) -> bool {
        let mut even = false;
        while !self.layout.overlapping && self.cell(start + self.width(token)) == token {
            start += self.width(token);
            even = !even;
        }
        self.layout.overlapping || even
    }
}

/// The weight at each place, stored as the places where it changes. There are few, since chunks are sorted by count.
#[derive(Default)]
struct Weights {
    starts: Vec<u32>,
    values: Vec<u64>,
}

impl Weights {
    fn push(&mut self, start: u32, weight: u64) {
        if self.values.last() != Some(&weight) {
            self.starts.push(start);
            self.values.push(weight);
        }
    }

    /// Returns the weight at `place`. Successive calls with the same `cursor`, which starts at 0, must ask for
    /// ascending places.
    #[inline]
    fn at(&self, place: u32, cursor: &mut usize) -> u64 {
        let later = &self.starts[*cursor + 1..];
        if later.first().is_some_and(|&start| start <= place) {
            // Exponential search, as the next change is usually near.
            let mut bound = 1;
            while bound < later.len() && later[bound] <= place {
                bound *= 2;
            }
            let low = bound / 2;
            *cursor += low + later[low..bound.min(later.len())].partition_point(|&start| start <= place);
        }
        self.values[*cursor]
    }
}
