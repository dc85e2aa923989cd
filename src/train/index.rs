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
/// Each pair has a slot: an index into `keys`, `counts` and `places`. The *front* is a sorted list of the pairs whose
/// count is at least `front_min`, and all that `top` needs. Only counts that have changed are sorted again, so both a
/// single call for many pairs and many calls for one pair are cheap.
pub struct PairIndex {
    threshold: u64,
    /// key → slot
    slots: HashMap<u64, u32>,
    keys: Vec<u64>,
    counts: Vec<u64>,
    places: Vec<Vec<u32>>,
    /// Slots of removed pairs to which the front may still refer. They become free when the front is rebuilt.
    removed: Vec<u32>,
    /// Slots for new pairs.
    free: Vec<u32>,
    front: Vec<FrontPair>,
    front_min: u64,
    /// Slots of new pairs that belong to the front but are not in it yet.
    fresh: Vec<u32>,
    /// id → its rank among ids when counts are equal. Ids beyond the end are their own ranks.
    ranks: Vec<u32>,
}

/// A pair in the front, with the count by which it was sorted. Sorts by descending count, then by ascending ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FrontPair {
    count: Reverse<u64>,
    /// The key of the ranks of the two tokens.
    ranks: u64,
    slot: u32,
}

fn key((first, last): Pair) -> u64 {
    u64::from(first) << 32 | u64::from(last)
}

fn pair(key: u64) -> Pair {
    ((key >> 32) as u32, key as u32)
}

impl PairIndex {
    pub fn new(threshold: u64, ranks: Vec<u32>) -> Self {
        Self {
            threshold,
            ranks,
            slots: HashMap::default(),
            keys: Vec::new(),
            counts: Vec::new(),
            places: Vec::new(),
            removed: Vec::new(),
            free: Vec::new(),
            front: Vec::new(),
            front_min: u64::MAX,
            fresh: Vec::new(),
        }
    }

    /// Returns the count below which pairs are not kept.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    pub fn count(&self, pair: Pair) -> u64 {
        self.slots.get(&key(pair)).map_or(0, |&slot| self.counts[slot as usize])
    }

    pub fn insert(&mut self, entries: impl Iterator<Item = Entry>) {
        for Entry { pair, count, places } in entries {
            let slot = self.free.pop().unwrap_or(self.keys.len() as u32);
            if slot as usize == self.keys.len() {
                self.keys.push(key(pair));
                self.counts.push(count);
                self.places.push(places);
            } else {
                self.keys[slot as usize] = key(pair);
                self.counts[slot as usize] = count;
                self.places[slot as usize] = places;
            }
            self.slots.insert(key(pair), slot);
            if count >= self.front_min {
                self.fresh.push(slot);
            }
        }
    }

    /// Lowers counts. Pairs that are not kept are ignored.
    pub fn subtract(&mut self, lost: impl Iterator<Item = (Pair, u64)>) {
        for (pair, count) in lost {
            if let Some(&slot) = self.slots.get(&key(pair)) {
                self.counts[slot as usize] -= count;
            }
        }
    }

    /// Removes a pair and returns its places.
    pub fn take(&mut self, pair: Pair) -> Option<Vec<u32>> {
        let slot = self.slots.remove(&key(pair))?;
        self.counts[slot as usize] = 0;
        self.removed.push(slot);
        Some(std::mem::take(&mut self.places[slot as usize]))
    }

    /// Prepares `top` and returns whether there are at least `n` pairs at or above the threshold.
    pub fn has(&mut self, n: usize) -> bool {
        self.update_front();
        if self.front.len() < n && self.front_min > self.threshold {
            self.rebuild_front(2 * n + 1024);
        }
        self.front.len() >= n
    }

    /// Sorts the front again. Most of it is still in order: only new pairs and those with a lower count move.
    fn update_front(&mut self) {
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
            FrontPair { count: Reverse(self.counts[at]), ranks: self.ranks_of(self.keys[at]), slot }
        };
        let mut moved: Vec<FrontPair> =
            moved.into_iter().map(front_pair).filter(|pair| pair.count.0 >= self.front_min).collect();
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

    /// Drops the pairs that have fallen below the threshold, and fills the front with about `size` pairs.
    fn rebuild_front(&mut self, size: usize) {
        for slot in 0..self.counts.len() {
            if self.counts[slot] < self.threshold && self.slots.get(&self.keys[slot]) == Some(&(slot as u32)) {
                self.take(pair(self.keys[slot]));
            }
        }
        self.free.append(&mut self.removed);
        let mut counts: Vec<u64> = self.counts.iter().copied().filter(|&count| count >= self.threshold).collect();
        self.front_min = self.threshold;
        if counts.len() > size {
            self.front_min = *counts.select_nth_unstable_by(size, |a, b| b.cmp(a)).1;
        }
        self.front.clear();
        self.fresh =
            (0..self.counts.len() as u32).filter(|&slot| self.counts[slot as usize] >= self.front_min).collect();
        self.update_front();
    }

    /// Returns the `n` most frequent pairs: higher counts first, then smaller ranks. Call `has` first.
    pub fn top(&self, n: usize) -> Vec<(Pair, u64)> {
        let key = |front: &FrontPair| {
            if self.ranks.is_empty() { front.ranks } else { self.keys[front.slot as usize] }
        };
        self.front.iter().take(n).map(|front| (pair(key(front)), front.count.0)).collect()
    }

    /// Returns the key of the ranks of the two tokens of a key. Usually they are their ids.
    fn ranks_of(&self, ids: u64) -> u64 {
        if self.ranks.is_empty() {
            return ids;
        }
        let rank = |id: u32| self.ranks.get(id as usize).copied().unwrap_or(id);
        let (first, last) = pair(ids);
        key((rank(first), rank(last)))
    }

    /// Returns an empty index with a lower threshold that sorts pairs in the same order.
    pub fn emptied(&mut self, threshold: u64) -> Self {
        Self::new(threshold, std::mem::take(&mut self.ranks))
    }
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
