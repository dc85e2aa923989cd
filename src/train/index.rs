//! The pairs that are kept, their counts and places, and the selection of the commonest.

use std::cmp::Reverse;

use super::Pair;
use crate::hash::HashMap;

pub struct Entry {
    pub pair: Pair,
    pub count: u64,
    pub places: Vec<u32>,
}

/// Pairs have slots. The *front* holds those with a count of at least `front_min` in order, which is all that
/// `top` needs: one call for many pairs and many calls for one are both cheap.
pub struct PairIndex {
    threshold: u64,
    slots: HashMap<u64, u32>,
    keys: Vec<u64>,
    counts: Vec<u64>,
    places: Vec<Vec<u32>>,
    /// Slots taken since the front was made, which may still hold them; then free for new pairs.
    taken: Vec<u32>,
    free: Vec<u32>,
    front: Vec<Listed>,
    front_min: u64,
    /// Slots of pairs that belong into the front and are not there yet.
    fresh: Vec<u32>,
}

/// A pair in the front, with the count it was put there for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Listed {
    count: Reverse<u64>,
    key: u64,
    slot: u32,
}

fn key((first, last): Pair) -> u64 {
    u64::from(first) << 32 | u64::from(last)
}

fn pair(key: u64) -> Pair {
    ((key >> 32) as u32, key as u32)
}

impl PairIndex {
    pub fn new(threshold: u64) -> Self {
        Self {
            threshold,
            slots: HashMap::default(),
            keys: Vec::new(),
            counts: Vec::new(),
            places: Vec::new(),
            taken: Vec::new(),
            free: Vec::new(),
            front: Vec::new(),
            front_min: u64::MAX,
            fresh: Vec::new(),
        }
    }

    /// No pair below this count is here.
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

    /// Lowers counts; pairs that are not kept are passed over.
    pub fn lose(&mut self, lost: impl Iterator<Item = (Pair, u64)>) {
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
        self.taken.push(slot);
        Some(std::mem::take(&mut self.places[slot as usize]))
    }

    /// Whether there are `n` pairs at or above the threshold; `top` may be asked for them.
    pub fn has(&mut self, n: usize) -> bool {
        self.sort_front();
        if self.front.len() < n && self.front_min > self.threshold {
            self.make_front(2 * n + 1024);
        }
        self.front.len() >= n
    }

    /// Puts the front in order again. Most of it still is: only what is new or has lost must be sorted.
    fn sort_front(&mut self) {
        let mut moved = std::mem::take(&mut self.fresh);
        self.front.retain(|listed| {
            let same = self.counts[listed.slot as usize] == listed.count.0;
            if !same {
                moved.push(listed.slot);
            }
            same
        });
        let listed = |slot: u32| {
            let at = slot as usize;
            Listed { count: Reverse(self.counts[at]), key: self.keys[at], slot }
        };
        let mut moved: Vec<Listed> =
            moved.into_iter().map(listed).filter(|listed| listed.count.0 >= self.front_min).collect();
        moved.sort_unstable();
        let mut merged = Vec::with_capacity(self.front.len() + moved.len());
        let mut rest = &self.front[..];
        for listed in moved {
            let better = rest.partition_point(|other| *other < listed);
            merged.extend_from_slice(&rest[..better]);
            merged.push(listed);
            rest = &rest[better..];
        }
        merged.extend_from_slice(rest);
        self.front = merged;
    }

    fn make_front(&mut self, size: usize) {
        for slot in 0..self.counts.len() {
            if self.counts[slot] < self.threshold && self.slots.get(&self.keys[slot]) == Some(&(slot as u32)) {
                self.take(pair(self.keys[slot]));
            }
        }
        self.free.append(&mut self.taken);
        let mut counts: Vec<u64> = self.counts.iter().copied().filter(|&count| count >= self.threshold).collect();
        self.front_min = self.threshold;
        if counts.len() > size {
            self.front_min = *counts.select_nth_unstable_by(size, |a, b| b.cmp(a)).1;
        }
        self.front.clear();
        self.fresh =
            (0..self.counts.len() as u32).filter(|&slot| self.counts[slot as usize] >= self.front_min).collect();
        self.sort_front();
    }

    /// The `n` commonest pairs: higher counts first, then smaller ids.
    pub fn top(&self, n: usize) -> Vec<(Pair, u64)> {
        self.front.iter().take(n).map(|listed| (pair(listed.key), listed.count.0)).collect()
    }
}

/// Something for each of a set of pairs. Pairs of bytes, which are all there are at the start, need no hashing.
#[derive(Default)]
pub struct PairMap<T> {
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
