//! All sequences in one array of *cells*, a separator before, between and after them. A token covers as
//! many cells as it has initial ids; its id stands in its first and in its last cell, those between are
//! marked. So both neighbours of a token are found in O(1), and merging moves nothing.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::Pair;
use super::index::Entry;
use crate::error::{Error, Result};

const SEPARATOR: u32 = u32::MAX;
const INSIDE: u32 = u32::MAX - 1;

pub struct Cells {
    cells: Vec<u32>,
    weights: Weights,
    /// How many cells a token covers, by id; 0 where there is no such token.
    widths: Vec<u32>,
    /// Where the parts begin that threads work on, each at a separator, and where the last one ends.
    cuts: Vec<usize>,
    overlapping: bool,
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

/// What a batch met in one part.
#[derive(Default)]
pub struct Found {
    /// Each neighbour on the left of a new token, and the place of the pair that the two make.
    left: Vec<(u32, u32)>,
    right: Vec<(u32, u32)>,
    /// How far `left` and `right` go for each merge.
    ends: Vec<(usize, usize)>,
    /// What the pairs of one repeated token lost: that depends on how long their run is.
    pub lost: Vec<(Pair, u64)>,
}

/// A stretch of the cells that one thread may change.
pub struct Part<'a> {
    base: usize,
    /// From a separator up to the next part's, that one not included.
    cells: &'a mut [u32],
    widths: &'a [u32],
    weights: &'a Weights,
    overlapping: bool,
    pub found: Found,
}

impl Cells {
    pub fn new<S: Iterator<Item = u32>>(
        sequences: impl Iterator<Item = (S, u64)>,
        overlapping: bool,
        threads: usize,
    ) -> Result<Self> {
        let mut cells = vec![SEPARATOR];
        let mut weights = Weights::default();
        let mut total = 0u128;
        let mut largest = 0;
        for (ids, weight) in sequences {
            let start = cells.len();
            cells.extend(ids.inspect(|&id| largest = largest.max(id)));
            if cells.len() < start + 2 || weight == 0 {
                cells.truncate(start);
                continue;
            }
            if cells.len() >= INSIDE as usize {
                return Err(Error::invalid(format!(
                    "the unique chunks have more than {INSIDE} bytes in all; raise freq_cutoff"
                )));
            }
            total += u128::from(weight) * (cells.len() - start) as u128;
            cells.push(SEPARATOR);
            weights.push(start as u32, weight);
        }
        if largest >= INSIDE {
            return Err(Error::invalid(format!("the id {largest} is too large: ids end at {}", INSIDE - 1)));
        }
        let total = u64::try_from(total)
            .map_err(|_| Error::invalid("the counts add up to more than 64 bits hold; scale them down"))?;
        cells.shrink_to_fit();

        let parts = if threads == 1 { 1 } else { (threads * 4).min(cells.len() / (1 << 14) + 1) };
        let mut cuts = vec![0];
        for part in 1..parts {
            let at = cells.len() * part / parts;
            let cut = at + cells[at..].iter().take_while(|&&cell| cell != SEPARATOR).count();
            if cut > cuts[cuts.len() - 1] && cut + 1 < cells.len() {
                cuts.push(cut);
            }
        }
        cuts.push(cells.len() - 1);
        Ok(Self { cells, weights, widths: vec![1; largest as usize + 1], cuts, overlapping, total })
    }

    /// All ids in all sequences, as often as these occur.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Makes room for a new token and returns its width.
    pub fn make_token(&mut self, token: u32, first: u32, last: u32) -> Result<u32> {
        let at = token as usize;
        if self.widths.get(at).is_some_and(|&width| width > 0) || token >= INSIDE {
            return Err(Error::invalid(format!("the id {token} is taken or too large for a new token")));
        }
        self.widths.resize(self.widths.len().max(at + 1), 0);
        self.widths[at] = self.widths[first as usize] + self.widths[last as usize];
        Ok(self.widths[at])
    }

    pub fn bounds(&self) -> Vec<(usize, usize)> {
        self.cuts.windows(2).map(|cut| (cut[0], cut[1])).collect()
    }

    pub fn parts(&mut self) -> Vec<Mutex<Part<'_>>> {
        let Self { widths, weights, overlapping, .. } = self;
        let mut rest = &mut self.cells[..];
        let mut parts = Vec::with_capacity(self.cuts.len());
        for cut in self.cuts.windows(2) {
            let (cells, others) = rest.split_at_mut(cut[1] - cut[0]);
            rest = others;
            let overlapping = *overlapping;
            parts.push(Mutex::new(Part { base: cut[0], cells, widths, weights, overlapping, found: Found::default() }));
        }
        parts
    }

    /// Calls `each` with every pair of a part, its place, and the weight it counts with there.
    pub fn scan(&self, (start, end): (usize, usize), cancel: &AtomicBool, mut each: impl FnMut(Pair, u32, u64)) {
        let mut cursor = 0;
        let mut at = start;
        while at < end && !cancel.load(Relaxed) {
            at += 1;
            let weight = self.weights.at(at as u32, &mut cursor);
            let mut first = self.cells[at];
            let mut counted = false;
            loop {
                let next = at + self.widths[first as usize] as usize;
                let last = self.cells[next];
                if last == SEPARATOR {
                    at = next;
                    break;
                }
                // In a run of one token every other pair can be merged.
                counted = self.overlapping || first != last || !counted;
                each((first, last), at as u32, if counted { weight } else { 0 });
                counted &= first == last;
                (at, first) = (next, last);
            }
        }
    }
}

impl Part<'_> {
    /// Writes the new tokens of a batch into the cells, and notes their neighbours.
    pub fn replace(&mut self, merges: &[Merge]) {
        for merge in merges {
            self.replace_pair(merge);
            self.found.ends.push((self.found.left.len(), self.found.right.len()));
        }
    }

    fn replace_pair(&mut self, merge: &Merge) {
        let &Merge { first, last, token, ref places, .. } = merge;
        let (first_width, last_width) = (self.widths[first as usize] as usize, self.widths[last as usize] as usize);
        let end = self.base + self.cells.len();
        let from = places.partition_point(|&place| (place as usize) < self.base);
        let (mut lost_first, mut lost_last) = (0, 0);
        let mut cursor = 0;
        for &place in places[from..].iter().take_while(|&&place| (place as usize) < end) {
            let start = place as usize - self.base;
            let middle = start + first_width;
            if self.cells[start] != first || self.cells[middle] != last {
                continue;
            }
            let stop = middle + last_width;
            let left = self.cells[start - 1];
            let right = self.cell(stop);
            if left != SEPARATOR {
                self.found.left.push((left, place - self.widths[left as usize]));
                if left == first && self.shortens_run_before(start, first, first_width) {
                    lost_first += self.weights.at(place, &mut cursor);
                }
            }
            if right != SEPARATOR {
                self.found.right.push((right, place));
                if right == last && first != last && self.shortens_run_after(middle, last, last_width) {
                    lost_last += self.weights.at(place, &mut cursor);
                }
            }
            self.cells[middle - 1] = INSIDE;
            self.cells[middle] = INSIDE;
            self.cells[start] = token;
            self.cells[stop - 1] = token;
        }
        self.found
            .lost
            .extend([((first, first), lost_first), ((last, last), lost_last)].iter().filter(|lost| lost.1 > 0));
    }

    fn cell(&self, at: usize) -> u32 {
        self.cells.get(at).copied().unwrap_or(SEPARATOR)
    }

    /// Whether the run of `token` that ends with the one at `start` has one pair less without it.
    fn shortens_run_before(&self, mut start: usize, token: u32, width: usize) -> bool {
        let mut even = false;
        while !self.overlapping && self.cells[start - 1] == token {
            start -= width;
            even = !even;
        }
        self.overlapping || even
    }

    /// Whether the run of `token` that begins with the one at `start` has one pair less without it.
    fn shortens_run_after(&self, mut start: usize, token: u32, width: usize) -> bool {
        let mut even = false;
        while !self.overlapping && self.cell(start + width) == token {
            start += width;
            even = !even;
        }
        self.overlapping || even
    }
}

#[derive(Clone, Copy)]
pub enum Side {
    Left,
    Right,
}

/// A thread's scratch, by token id, and what it found out.
#[derive(Default)]
pub struct Neighbours {
    sums: Vec<u64>,
    numbers: Vec<u32>,
    lists: Vec<usize>,
    seen: Vec<u32>,
    pub entries: Vec<Entry>,
    pub lost: Vec<(Pair, u64)>,
}

impl Neighbours {
    /// Adds up the neighbours of one merge (the `nth`) on one side: the pairs that its token makes with them,
    /// and what the pairs lost whose place these take. Doing so for each neighbour rather than for each place
    /// leaves ten times fewer pairs to look up.
    pub fn add(&mut self, merge: &Merge, nth: usize, side: Side, found: &[Found], cells: &Cells, threshold: u64) {
        let token = merge.token;
        let places = || {
            found.iter().flat_map(move |part| {
                let start = if nth == 0 { (0, 0) } else { part.ends[nth - 1] };
                let end = part.ends[nth];
                match side {
                    Side::Left => &part.left[start.0..end.0],
                    Side::Right => &part.right[start.1..end.1],
                }
            })
        };
        let size = cells.widths.len();
        self.sums.resize(size, 0);
        self.numbers.resize(size, 0);
        self.lists.resize(size, usize::MAX);

        let mut cursor = 0;
        // Of a run of the new token every other pair can be merged.
        let (mut run_sum, mut run_place, mut run_counted) = (0, u32::MAX, false);
        for &(neighbour, place) in places() {
            let weight = cells.weights.at(place, &mut cursor);
            let at = neighbour as usize;
            if self.numbers[at] == 0 {
                self.seen.push(neighbour);
            }
            self.numbers[at] += 1;
            self.sums[at] += weight;
            if neighbour == token {
                run_counted = cells.overlapping || run_place.wrapping_add(merge.width) != place || !run_counted;
                run_place = place;
                run_sum += if run_counted { weight } else { 0 };
            }
        }
        let mut kept = false;
        for &neighbour in &self.seen {
            let at = neighbour as usize;
            let sum = std::mem::take(&mut self.sums[at]);
            let places = std::mem::take(&mut self.numbers[at]);
            let (before, now, repeated) = match side {
                Side::Left => ((neighbour, merge.first), (neighbour, token), neighbour == merge.first),
                Side::Right => ((merge.last, neighbour), (token, neighbour), neighbour == merge.last),
            };
            if !repeated {
                self.lost.push((before, sum));
            }
            let count = if neighbour == token { run_sum } else { sum };
            if count >= threshold {
                kept = true;
                self.lists[at] = self.entries.len();
                self.entries.push(Entry { pair: now, count, places: Vec::with_capacity(places as usize) });
            }
        }
        if kept {
            for &(neighbour, place) in places() {
                if let Some(entry) = self.entries.get_mut(self.lists[neighbour as usize]) {
                    entry.places.push(place);
                }
            }
        }
        for neighbour in self.seen.drain(..) {
            self.lists[neighbour as usize] = usize::MAX;
        }
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
