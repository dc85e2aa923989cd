//! Computes how a batch changes the pairs: which pairs its new tokens form with their neighbors, and how much the
//! pairs that these replace lose.

use super::Pair;
use super::cells::{BatchPair, Layout, NONE, PartChanges};
use super::index::Entry;

#[derive(Clone, Copy)]
pub enum Side {
    Left,
    Right,
}

/// The results of a thread, and its scratch space. Aligned so that threads do not write to the same cache line.
#[derive(Default)]
#[repr(align(128))]
pub struct Neighbors {
    /// Scratch, by token id: the total weight of a neighbor in each group.
    sums: Vec<u64>,
    /// Scratch: the total weight of the pairs in runs of the new token that can be merged, in each group.
    run_sums: Vec<u64>,
    /// Scratch, by token id: the number of places of a neighbor.
    places: Vec<u32>,
    /// Scratch, by token id: the index of a neighbor's pair in `entries`, or `usize::MAX`.
    entry_indices: Vec<usize>,
    /// Scratch: the neighbors seen.
    seen: Vec<u32>,
    /// New pairs.
    pub entries: Vec<Entry>,
    /// The counts of the new pairs in each group, if there are several.
    pub by_group: Vec<u64>,
    /// By how much counts of existing pairs fall, in each group.
    pub lost: Vec<Vec<(Pair, u64)>>,
}

impl Neighbors {
    /// Adds up the neighbors of one pair (the `nth`) on one side, and records the new pairs and the losses of the
    /// pairs that they replace. Adding up per neighbor rather than per place leaves ten times fewer pairs to look up.
    /// `GROUPED` is whether there are several groups: a constant, so that a single group costs nothing.
    pub fn add<const GROUPED: bool>(
        &mut self,
        pair: &BatchPair,
        nth: usize,
        side: Side,
        changes: &[PartChanges],
        layout: &Layout,
        threshold: u64,
    ) {
        let token = pair.token;
        let (size, groups) = (layout.widths.len(), if GROUPED { layout.lengths.len() } else { 1 });
        self.sums.resize(size * groups, 0);
        self.places.resize(size, 0);
        self.entry_indices.resize(size, usize::MAX);

        // In a run of the new token, only every other pair can be merged, unless overlapping pairs count.
        let (mut run_place, mut run_counted) = (u32::MAX, false);
        self.run_sums.resize(groups, 0);
        self.lost.resize(groups, Vec::new());
        for_each_neighbor(changes, nth, side, layout, |group, neighbor, place, weight| {
            let at = neighbor as usize;
            if self.places[at] == 0 {
                self.seen.push(neighbor);
            }
            self.places[at] += 1;
            let group = if GROUPED { group } else { 0 };
            self.sums[at * groups + group] += weight;
            if neighbor == token {
                run_counted = layout.overlapping || run_place.wrapping_add(pair.width) != place || !run_counted;
                run_place = place;
                self.run_sums[group] += if run_counted { weight } else { 0 };
            }
        });
        let mut kept = false;
        for &neighbor in &self.seen {
            let at = neighbor as usize;
            let places = std::mem::take(&mut self.places[at]);
            let (old_pair, new_pair, is_run) = match side {
                Side::Left => ((neighbor, pair.first), (neighbor, token), neighbor == pair.first),
                Side::Right => ((pair.last, neighbor), (token, neighbor), neighbor == pair.last),
            };
            let mut count = 0;
            for group in 0..groups {
                let sum = std::mem::take(&mut self.sums[at * groups + group]);
                // The losses of pairs of one repeated token depend on their run: they are in `PartChanges::lost`.
                if !is_run && (sum > 0 || !GROUPED) {
                    self.lost[group].push((old_pair, sum));
                }
                let sum = if neighbor == token { std::mem::take(&mut self.run_sums[group]) } else { sum };
                count += sum;
                if GROUPED {
                    self.by_group.push(sum);
                }
            }
            if count >= threshold {
                kept = true;
                self.entry_indices[at] = self.entries.len();
                self.entries.push(Entry { pair: new_pair, count, places: Vec::with_capacity(places as usize) });
            } else if GROUPED {
                self.by_group.truncate(self.entries.len() * groups);
            }
        }
        if kept {
            for_each_neighbor(changes, nth, side, layout, |_, neighbor, place, _| {
                if let Some(entry) = self.entries.get_mut(self.entry_indices[neighbor as usize]) {
                    let width = if let Side::Left = side { layout.widths[neighbor as usize] } else { 0 };
                    entry.places.push(place - width);
                }
            });
        }
        for neighbor in self.seen.drain(..) {
            self.entry_indices[neighbor as usize] = usize::MAX;
        }
    }
}

/// Calls `visit(group, neighbor, place, weight)` for each token that the `nth` pair became and that has a neighbor.
#[inline(always)]
fn for_each_neighbor(
    changes: &[PartChanges],
    nth: usize,
    side: Side,
    layout: &Layout,
    mut visit: impl FnMut(usize, u32, u32, u64),
) {
    for (part, &group) in changes.iter().zip(&layout.part_groups) {
        let start = if nth == 0 { 0 } else { part.ends[nth - 1] };
        for new in &part.new_tokens[start..part.ends[nth]] {
            let neighbor = if let Side::Left = side { new.left } else { new.right };
            if neighbor != NONE {
                visit(group, neighbor, new.place, new.weight);
            }
        }
    }
}
