//! The pairs of a `PairTable` with their counts and places, and the selection of the most frequent ones.

use std::cmp::Reverse;

use super::Pair;
use crate::table::hash::HashMap;

/// A new pair.
pub struct Entry {
    pub pair: Pair,
    pub count: u64,
    pub places: Vec<u32>,
}

/// The pairs whose count started at or above a threshold.
///
/// Each pair has a slot: an index into `keys`, `places` and the counts of each column.
pub struct PairIndex {
    threshold: u64,
    /// key → slot
    slots: HashMap<u64, u32>,
    keys: Vec<u64>,
    places: Vec<Vec<u32>>,
    /// The counts in all sequences and, if there are several groups, in each of them.
    columns: Vec<Column>,
    /// Slots of removed pairs to which a front may still refer. They become free when a front is rebuilt.
    removed: Vec<u32>,
    /// Slots for new pairs.
    free: Vec<u32>,
    /// id → its rank among ids when counts are equal. Ids beyond the end are their own ranks.
    ranks: Vec<u32>,
}

/// The counts of all pairs, and the most frequent pairs.
///
/// The *front* is a sorted list of the pairs whose count is at least `front_min`, and all that `top` needs. Only counts
/// that have changed are sorted again, so both a single call for many pairs and many calls for one pair are cheap.
#[derive(Default)]
struct Column {
    /// slot → count
    counts: Vec<u64>,
    front: Vec<FrontPair>,
    /// `None` if there is no front yet.
    front_min: Option<u64>,
    /// Slots of new pairs that belong to the front but are not in it yet.
    fresh: Vec<u32>,
}

/// A pair in the front, with the count by which it was sorted. Sorts by descending count, then by ascending ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FrontPair {
    count: Reverse<u64>,
    /// The key of the ranks of the two tokens.
    ranks: u64,
    slot: u32,
}

impl Column {
    fn set(&mut self, slot: usize, count: u64) {
        if slot == self.counts.len() {
            self.counts.push(count);
        } else {
            self.counts[slot] = count;
        }
        if self.front_min.is_some_and(|least| count >= least) {
            self.fresh.push(slot as u32);
        }
    }

    /// Sorts the front again. Most of it is still in order: only new pairs and those with a lower count move.
    fn update_front(&mut self, ranks: impl Fn(usize) -> u64) {
        let Some(front_min) = self.front_min else { return };
        let mut moved = std::mem::take(&mut self.fresh);
        self.front.retain(|pair| {
            let unchanged = self.counts[pair.slot as usize] == pair.count.0;
            if !unchanged {
                moved.push(pair.slot);
            }
            unchanged
        });
        let front_pair = |slot: u32| {
            let at = slot as usize;
            FrontPair { count: Reverse(self.counts[at]), ranks: ranks(at), slot }
        };
        let mut moved: Vec<FrontPair> =
            moved.into_iter().map(front_pair).filter(|pair| pair.count.0 >= front_min).collect();
        moved.sort_unstable();
        let mut merged = Vec::with_capacity(self.front.len() + moved.len());
        let mut rest = &self.front[..];
        for pair in moved {
            let before = rest.partition_point(|other| *other < pair);
            merged.extend_from_slice(&rest[..before]);
            merged.push(pair);
            rest = &rest[before..];
        }
        merged.extend_from_slice(rest);
        self.front = merged;
    }

    /// Empties the front, and lists in `fresh` the about `size` pairs with the highest counts that belong to it.
    fn renew_front(&mut self, size: usize, threshold: u64) {
        let mut counts: Vec<u64> = self.counts.iter().copied().filter(|&count| count >= threshold).collect();
        let mut front_min = threshold;
        if counts.len() > size {
            front_min = *counts.select_nth_unstable_by(size, |a, b| b.cmp(a)).1;
        }
        self.front_min = Some(front_min);
        self.front.clear();
        self.fresh = (0..self.counts.len() as u32).filter(|&slot| self.counts[slot as usize] >= front_min).collect();
    }
}

fn key((first, last): Pair) -> u64 {
    u64::from(first) << 32 | u64::from(last)
}

fn pair(key: u64) -> Pair {
    ((key >> 32) as u32, key as u32)
}

impl PairIndex {
    /// `groups` is the number of groups that the sequences belong to.
    pub fn new(threshold: u64, groups: usize, ranks: Vec<u32>) -> Self {
        let columns = if groups > 1 { 1 + groups } else { 1 };
        Self {
            threshold,
            ranks,
            slots: HashMap::default(),
            keys: Vec::new(),
            places: Vec::new(),
            columns: (0..columns).map(|_| Column::default()).collect(),
            removed: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Returns an empty index with another threshold that sorts pairs in the same order.
    pub fn emptied(&mut self, threshold: u64) -> Self {
        let groups = self.columns.len() - 1;
        Self::new(threshold, groups, std::mem::take(&mut self.ranks))
    }

    /// Returns the count below which pairs are not kept.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    pub fn contains(&self, pair: Pair) -> bool {
        self.slots.contains_key(&key(pair))
    }

    /// Returns the count of a pair in a column: 0 for all sequences, 1 for the first group.
    pub fn count(&self, pair: Pair, column: usize) -> u64 {
        self.slots.get(&key(pair)).map_or(0, |&slot| self.columns[column].counts[slot as usize])
    }

    /// Adds pairs. `by_group` has the counts of each in all groups, one pair after the other.
    pub fn insert(&mut self, entries: impl Iterator<Item = Entry>, by_group: &[u64]) {
        let (all, groups) = self.columns.split_first_mut().expect("there is always a column");
        for (nth, Entry { pair, count, places }) in entries.enumerate() {
            let slot = self.free.pop().unwrap_or(self.keys.len() as u32);
            let at = slot as usize;
            if at == self.keys.len() {
                self.keys.push(key(pair));
                self.places.push(places);
            } else {
                self.keys[at] = key(pair);
                self.places[at] = places;
            }
            self.slots.insert(key(pair), slot);
            all.set(at, count);
            let counts = &by_group[nth * groups.len()..];
            for (column, &count) in groups.iter_mut().zip(counts) {
                column.set(at, count);
            }
        }
    }

    /// Lowers counts of a group. Pairs that are not kept are ignored.
    pub fn subtract(&mut self, lost: impl Iterator<Item = (Pair, u64)>, group: usize) {
        let (all, groups) = self.columns.split_first_mut().expect("there is always a column");
        for (pair, count) in lost {
            if let Some(&slot) = self.slots.get(&key(pair)) {
                all.counts[slot as usize] -= count;
                if let Some(column) = groups.get_mut(group) {
                    column.counts[slot as usize] -= count;
                }
            }
        }
    }

    /// Removes a pair and returns its places.
    pub fn take(&mut self, pair: Pair) -> Option<Vec<u32>> {
        let slot = self.slots.remove(&key(pair))?;
        self.columns.iter_mut().for_each(|column| column.counts[slot as usize] = 0);
        self.removed.push(slot);
        Some(std::mem::take(&mut self.places[slot as usize]))
    }

    /// Prepares `top` and returns whether there are at least `n` pairs at or above the threshold.
    pub fn has(&mut self, n: usize, column: usize) -> bool {
        self.update_front(column);
        let Column { front, front_min, .. } = &self.columns[column];
        if front.len() < n && front_min.is_none_or(|least| least > self.threshold) {
            self.rebuild_front(2 * n + 1024, column);
        }
        self.columns[column].front.len() >= n
    }

    fn update_front(&mut self, column: usize) {
        let Self { columns, keys, ranks, .. } = self;
        columns[column].update_front(|slot| ranks_of(ranks, keys[slot]));
    }

    /// Drops the pairs that have fallen below the threshold, and fills a front with about `size` pairs.
    fn rebuild_front(&mut self, size: usize, column: usize) {
        for slot in 0..self.keys.len() {
            let count = self.columns[0].counts[slot];
            if count < self.threshold && self.slots.get(&self.keys[slot]) == Some(&(slot as u32)) {
                self.take(pair(self.keys[slot]));
            }
        }
        for other in (0..self.columns.len()).filter(|&other| other != column) {
            self.update_front(other); // so that it does not refer to removed pairs
        }
        self.columns[column].renew_front(size, self.threshold);
        self.free.append(&mut self.removed);
        self.update_front(column);
    }

    /// Returns the `n` most frequent pairs in a column: higher counts first, then smaller ranks. Call `has` first.
    pub fn top(&self, n: usize, column: usize) -> Vec<(Pair, u64)> {
        let key = |front: &FrontPair| {
            if self.ranks.is_empty() { front.ranks } else { self.keys[front.slot as usize] }
        };
        self.columns[column].front.iter().take(n).map(|front| (pair(key(front)), front.count.0)).collect()
    }
}

/// Returns the key of the ranks of the two tokens of a key. Usually they are their ids.
fn ranks_of(ranks: &[u32], ids: u64) -> u64 {
    if ranks.is_empty() {
        return ids;
    }
    let rank = |id: u32| ranks.get(id as usize).copied().unwrap_or(id);
    let (first, last) = pair(ids);
    key((rank(first), rank(last)))
}

/// A map with pairs as keys. Pairs of bytes, the only ones at the start of training, need no hashing: once one is in
/// the map, all of them are, with default values.
#[derive(Default)]
pub struct PairMap<T> {
    /// Indexed by `first << 8 | last`; empty until it is needed.
    bytes: Vec<T>,
    others: HashMap<u64, T>,
}

impl<T: Default> PairMap<T> {
    #[inline]
    pub fn entry(&mut self, (first, last): Pair) -> &mut T {
        if first < 256 && last < 256 {
            if self.bytes.is_empty() {
                self.bytes.resize_with(1 << 16, T::default);
            }
            return &mut self.bytes[(first << 8 | last) as usize];
        }
        self.others.entry(key((first, last))).or_default()
    }

    #[inline]
    pub fn get_mut(&mut self, (first, last): Pair) -> Option<&mut T> {
        if first < 256 && last < 256 {
            return self.bytes.get_mut((first << 8 | last) as usize);
        }
        self.others.get_mut(&key((first, last)))
    }

    pub fn get(&self, (first, last): Pair) -> Option<&T> {
        if first < 256 && last < 256 {
            return self.bytes.get((first << 8 | last) as usize);
        }
        self.others.get(&key((first, last)))
    }

    pub fn iter(&self) -> impl Iterator<Item = (Pair, &T)> {
        let bytes = self.bytes.iter().zip(0u32..).map(|(value, at)| ((at >> 8, at & 255), value));
        bytes.chain(self.others.iter().map(|(&key, value)| (pair(key), value)))
    }
}
