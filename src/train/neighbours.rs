//! What a batch changes: the pairs that its new tokens make with their neighbours, and what the pairs lost whose
//! place these take.

use super::Pair;
use super::cells::{Cells, Found, Merge, NONE};
use super::index::Entry;

#[derive(Clone, Copy)]
pub enum Side {
    Left,
    Right,
}

/// A thread's scratch, by token id, and what it found out; in no cache line that another thread writes.
#[derive(Default)]
#[repr(align(128))]
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
    /// and what those pairs lost whose place these take. Doing so for each neighbour rather than for each
    /// place leaves ten times fewer pairs to look up.
    pub fn add(&mut self, merge: &Merge, nth: usize, side: Side, found: &[Found], cells: &Cells, threshold: u64) {
        let token = merge.token;
        let size = cells.widths.len();
        self.sums.resize(size, 0);
        self.numbers.resize(size, 0);
        self.lists.resize(size, usize::MAX);

        // Of a run of the new token every other pair can be merged.
        let (mut run_sum, mut run_place, mut run_counted) = (0, u32::MAX, false);
        each(found, nth, side, |neighbour, place, weight| {
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
        });
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
            each(found, nth, side, |neighbour, place, _| {
                if let Some(entry) = self.entries.get_mut(self.lists[neighbour as usize]) {
                    let width = if let Side::Left = side { cells.widths[neighbour as usize] } else { 0 };
                    entry.places.push(place - width);
                }
            });
        }
        for neighbour in self.seen.drain(..) {
            self.lists[neighbour as usize] = usize::MAX;
        }
    }
}

/// Calls `visit` with the neighbour, place and weight of each token that the `nth` merge made.
fn each(found: &[Found], nth: usize, side: Side, mut visit: impl FnMut(u32, u32, u64)) {
    for part in found {
        let start = if nth == 0 { 0 } else { part.ends[nth - 1] };
        for met in &part.met[start..part.ends[nth]] {
            let neighbour = if let Side::Left = side { met.left } else { met.right };
            if neighbour != NONE {
                visit(neighbour, met.place, met.weight);
            }
        }
    }
}
