//! All sequences in one array of *cells*, a separator before, between and after them. A token covers as
//! many cells as it has initial ids; its id stands in its first and in its last cell, those between are
//! marked. So both neighbours of a token are found in O(1), and merging moves nothing.

use std::sync::Mutex;

use super::Pair;
use crate::error::{Cancel, Error, Result};
use crate::prefetch::prefetch;

/// The neighbour of a token at the end of its sequence.
pub const NONE: u32 = u32::MAX;

/// Two bytes are enough for a cell while ids are small, which halves the largest part of the memory.
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

/// A part has so many cells at least: fewer are not worth a thread.
const PART_BITS: u32 = if cfg!(test) { 4 } else { 20 };
/// How many places ahead the cells are fetched: they lie all over memory.
const AHEAD: usize = 24;

pub struct Cells {
    store: Store,
    weights: Weights,
    /// How many cells a token covers, by id; 0 where there is no such token.
    pub widths: Vec<u32>,
    /// Where the parts begin that threads work on, each at a separator, and where the last one ends.
    cuts: Vec<usize>,
    pub overlapping: bool,
    total: u64,
}

/// One pair of a batch: every `first` followed by `last` becomes `token`.
pub struct Merge {
    pub first: u32,
    pub last: u32,
    pub token: u32,
    pub width: u32,
    pub places: Vec<u32>,
}

/// A new token in its place.
pub struct Met {
    pub place: u32,
    /// Its neighbours, or `NONE`.
    pub left: u32,
    pub right: u32,
    pub weight: u64,
}

/// What a batch met in one part; in no cache line that another thread writes.
#[derive(Default)]
#[repr(align(128))]
pub struct Found {
    pub met: Vec<Met>,
    /// How far `met` goes for each merge.
    pub ends: Vec<usize>,
    /// What the pairs of one repeated token lost: that depends on how long their run is.
    pub lost: Vec<(Pair, u64)>,
}

impl Found {
    fn clear(&mut self) {
        self.met.clear();
        self.ends.clear();
        self.lost.clear();
    }
}

/// A stretch of the cells that one thread may change: from a separator up to the next part's, that one not included.
pub struct Part<'a> {
    base: usize,
    cells: PartCells<'a>,
    widths: &'a [u32],
    weights: &'a Weights,
    overlapping: bool,
    found: &'a mut Found,
}

enum PartCells<'a> {
    Narrow(&'a mut [u16]),
    Wide(&'a mut [u32]),
}

impl Cells {
    /// `ids` is one more than the largest id there will ever be.
    pub fn new<S: Iterator<Item = u32>>(
        sequences: impl Iterator<Item = (S, u64)>,
        ids: usize,
        overlapping: bool,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Self> {
        if ids <= u16::INSIDE as usize {
            let (cells, weights, total, cuts) = lay_out::<u16, S>(sequences, ids, threads, cancel)?;
            Ok(Self { store: Store::Narrow(cells), weights, widths: vec![1; ids], cuts, overlapping, total })
        } else {
            let (cells, weights, total, cuts) = lay_out::<u32, S>(sequences, ids, threads, cancel)?;
            Ok(Self { store: Store::Wide(cells), weights, widths: vec![1; ids], cuts, overlapping, total })
        }
    }

    /// All ids in all sequences, as often as these occur.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Sets the width of a new token, and returns it.
    pub fn make_token(&mut self, token: u32, (first, last): Pair) -> u32 {
        self.widths[token as usize] = self.widths[first as usize] + self.widths[last as usize];
        self.widths[token as usize]
    }

    pub fn bounds(&self) -> Vec<(usize, usize)> {
        self.cuts.windows(2).map(|cut| (cut[0], cut[1])).collect()
    }

    /// Each part with what is found there.
    pub fn parts<'a>(&'a mut self, found: &'a mut [Found]) -> Vec<Mutex<Part<'a>>> {
        fn cut<'a, C>(mut cells: &'a mut [C], bounds: &[(usize, usize)]) -> Vec<&'a mut [C]> {
            let one = |&(start, end): &(usize, usize)| {
                let (part, rest) = std::mem::take(&mut cells).split_at_mut(end - start);
                cells = rest;
                part
            };
            bounds.iter().map(one).collect()
        }
        let bounds = self.bounds();
        let parts: Vec<PartCells> = match &mut self.store {
            Store::Narrow(cells) => cut(cells, &bounds).into_iter().map(PartCells::Narrow).collect(),
            Store::Wide(cells) => cut(cells, &bounds).into_iter().map(PartCells::Wide).collect(),
        };
        let (widths, weights, overlapping) = (&self.widths[..], &self.weights, self.overlapping);
        let part = |((cells, (base, _)), found)| Mutex::new(Part { base, cells, widths, weights, overlapping, found });
        parts.into_iter().zip(bounds).zip(found).map(part).collect()
    }

    /// Calls `each` with every pair of a part, its place, and the weight it counts with there.
    pub fn scan(&self, bounds: (usize, usize), cancel: &Cancel, each: impl FnMut(Pair, u32, u64)) {
        match &self.store {
            Store::Narrow(cells) => self.scan_cells(cells, bounds, cancel, each),
            Store::Wide(cells) => self.scan_cells(cells, bounds, cancel, each),
        }
    }

    fn scan_cells<C: Cell>(
        &self,
        cells: &[C],
        (start, end): (usize, usize),
        cancel: &Cancel,
        mut each: impl FnMut(Pair, u32, u64),
    ) {
        let mut cursor = 0;
        let mut at = start;
        while at < end && cancel.check().is_ok() {
            at += 1;
            let weight = self.weights.at(at as u32, &mut cursor);
            let mut first = cells[at];
            let mut counted = false;
            loop {
                let next = at + self.widths[first.id() as usize] as usize;
                let last = cells[next];
                if last == C::SEPARATOR {
                    at = next;
                    break;
                }
                // In a run of one token every other pair can be merged.
                counted = self.overlapping || first != last || !counted;
                each((first.id(), last.id()), at as u32, if counted { weight } else { 0 });
                counted &= first == last;
                (at, first) = (next, last);
            }
        }
    }
}

type LaidOut<C> = (Vec<C>, Weights, u64, Vec<usize>);

fn lay_out<C: Cell, S: Iterator<Item = u32>>(
    sequences: impl Iterator<Item = (S, u64)>,
    ids: usize,
    threads: usize,
    cancel: &Cancel,
) -> Result<LaidOut<C>> {
    let mut cells = vec![C::SEPARATOR];
    let mut weights = Weights::default();
    let mut total = 0u128;
    for (sequence, weight) in sequences {
        cancel.check()?;
        let start = cells.len();
        if cells.capacity() - start < sequence.size_hint().0 + 1 {
            let needed = sequence.size_hint().0 + 1;
            cells.try_reserve(needed).map_err(|_| Error::OutOfMemory(needed * size_of::<C>()))?;
        }
        cells.extend(sequence.inspect(|&id| debug_assert!((id as usize) < ids)).map(C::of));
        if cells.len() < start + 2 || weight == 0 {
            cells.truncate(start);
            continue;
        }
        if cells.len() >= u32::MAX as usize {
            return Err(Error::invalid("the unique chunks have more than 4 GiB in all; raise freq_cutoff"));
        }
        total += u128::from(weight) * (cells.len() - start) as u128;
        cells.push(C::SEPARATOR);
        weights.push(start as u32, weight);
    }
    let total = u64::try_from(total)
        .map_err(|_| Error::invalid("the counts add up to more than 64 bits hold; scale them down"))?;
    cells.shrink_to_fit();

    let parts = if threads == 1 { 1 } else { (threads * 4).min(cells.len() >> PART_BITS).max(1) };
    let mut cuts = vec![0];
    for part in 1..parts {
        let at = cells.len() * part / parts;
        let cut = at + cells[at..].iter().take_while(|&&cell| cell != C::SEPARATOR).count();
        if cut > cuts[cuts.len() - 1] && cut + 1 < cells.len() {
            cuts.push(cut);
        }
    }
    cuts.push(cells.len() - 1);
    Ok((cells, weights, total, cuts))
}

impl Part<'_> {
    /// Writes the new tokens of a batch into the cells, and notes their neighbours.
    pub fn replace(&mut self, merges: &[Merge]) {
        let Self { base, widths, weights, overlapping, found, .. } = self;
        let (base, overlapping) = (*base, *overlapping);
        match &mut self.cells {
            PartCells::Narrow(cells) => Replacer { base, cells, widths, weights, overlapping, found }.replace(merges),
            PartCells::Wide(cells) => Replacer { base, cells, widths, weights, overlapping, found }.replace(merges),
        }
    }
}

struct Replacer<'a, C> {
    base: usize,
    cells: &'a mut [C],
    widths: &'a [u32],
    weights: &'a Weights,
    overlapping: bool,
    found: &'a mut Found,
}

impl<C: Cell> Replacer<'_, C> {
    fn replace(&mut self, merges: &[Merge]) {
        self.found.clear();
        for (i, merge) in merges.iter().enumerate() {
            // Most lists are short: their cells are fetched while the one before is worked on.
            if let Some(later) = merges.get(i + 2) {
                prefetch(&later.places, 0);
            }
            if let Some(next) = merges.get(i + 1) {
                for &place in next.places.iter().take(AHEAD) {
                    prefetch(self.cells, (place as usize).wrapping_sub(self.base));
                }
            }
            self.replace_pair(merge);
            self.found.ends.push(self.found.met.len());
        }
    }

    fn replace_pair(&mut self, merge: &Merge) {
        let (first, last, token) = (C::of(merge.first), C::of(merge.last), C::of(merge.token));
        let (first_width, last_width) = (self.width(first), self.width(last));
        let end = self.base + self.cells.len();
        let places = &merge.places[merge.places.partition_point(|&place| (place as usize) < self.base)..];
        let places = &places[..places.partition_point(|&place| (place as usize) < end)];
        let (mut lost_first, mut lost_last) = (0, 0);
        let mut cursor = 0;
        for (i, &place) in places.iter().enumerate() {
            if let Some(&later) = places.get(i + AHEAD) {
                prefetch(self.cells, later as usize - self.base);
            }
            let start = place as usize - self.base;
            let middle = start + first_width;
            if self.cells[start] != first || self.cells[middle] != last {
                continue;
            }
            let stop = middle + last_width;
            let (left, right) = (self.cells[start - 1], self.cell(stop));
            let weight = self.weights.at(place, &mut cursor);
            if left == first && self.shortens_run_before(start, first) {
                lost_first += weight;
            }
            if right == last && first != last && self.shortens_run_after(middle, last) {
                lost_last += weight;
            }
            let id = |cell: C| if cell == C::SEPARATOR { NONE } else { cell.id() };
            self.found.met.push(Met { place, left: id(left), right: id(right), weight });
            self.cells[middle - 1] = C::INSIDE;
            self.cells[middle] = C::INSIDE;
            self.cells[start] = token;
            self.cells[stop - 1] = token;
        }
        for (token, lost) in [(merge.first, lost_first), (merge.last, lost_last)] {
            if lost > 0 {
                self.found.lost.push(((token, token), lost));
            }
        }
    }

    fn width(&self, token: C) -> usize {
        self.widths[token.id() as usize] as usize
    }

    fn cell(&self, at: usize) -> C {
        self.cells.get(at).copied().unwrap_or(C::SEPARATOR)
    }

    /// Whether the run of `token` that ends with the one at `start` has one pair less without it.
    fn shortens_run_before(&self, mut start: usize, token: C) -> bool {
        let mut even = false;
        while !self.overlapping && self.cells[start - 1] == token {
            start -= self.width(token);
            even = !even;
        }
        self.overlapping || even
    }

    /// Whether the run of `token` that begins with the one at `start` has one pair less without it.
    fn shortens_run_after(&self, mut start: usize, token: C) -> bool {
        let mut even = false;
        while !self.overlapping && self.cell(start + self.width(token)) == token {
            start += self.width(token);
            even = !even;
        }
        self.overlapping || even
    }
}

/// The weight at each place, as the places where it changes: few, since chunks come in order of their counts.
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

    /// The weight at `place`. `cursor` holds where the last answer was, since places are asked for in ascending order.
    #[inline]
    fn at(&self, place: u32, cursor: &mut usize) -> u64 {
        let later = &self.starts[*cursor + 1..];
        if later.first().is_some_and(|&start| start <= place) {
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
