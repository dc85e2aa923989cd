//! The pairs that are kept, their counts and places, and the selection of the commonest.

use rustc_hash::FxHashMap;

use super::Pair;

pub struct Entry {
    pub pair: Pair,
    pub count: u64,
    pub places: Vec<u32>,
}

/// Pairs have slots. The *front* lists those slots whose count was at least `front_min` when it was made or
/// since: all that `top` needs to look at. So one call for many pairs and many calls for one are both cheap.
pub struct PairIndex {
    threshold: u64,
    slots: FxHashMap<u64, u32>,
    keys: Vec<u64>,
    counts: Vec<u64>,
    places: Vec<Vec<u32>>,
    /// Slots taken since the front was made, which may still list them; then free for new pairs.
    taken: Vec<u32>,
    free: Vec<u32>,
    front: Vec<u32>,
    front_min: u64,
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
            slots: FxHashMap::default(),
            keys: Vec::new(),
            counts: Vec::new(),
            places: Vec::new(),
            taken: Vec::new(),
            free: Vec::new(),
            front: Vec::new(),
            front_min: u64::MAX,
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
                self.front.push(slot);
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

    /// Whether there are `n` pairs at or above the threshold.
    pub fn has(&mut self, n: usize) -> bool {
        self.front.retain(|&slot| self.counts[slot as usize] >= self.front_min);
        if self.front.len() < n && self.front_min > self.threshold {
            self.make_front(2 * n + 1024);
        }
        self.front.len() >= n
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
        let (all, counts) = (0..self.counts.len() as u32, &self.counts);
        self.front.extend(all.filter(|&slot| counts[slot as usize] >= self.front_min));
    }

    /// The `n` commonest of the pairs that `has` has found; higher counts first, then smaller ids.
    pub fn top(&self, n: usize) -> Vec<(Pair, u64)> {
        let better = |a: &(u64, u64), b: &(u64, u64)| b.0.cmp(&a.0).then(a.1.cmp(&b.1));
        let mut best: Vec<_> =
            self.front.iter().map(|&slot| (self.counts[slot as usize], self.keys[slot as usize])).collect();
        if n < best.len() {
            best.select_nth_unstable_by(n, better);
            best.truncate(n);
        }
        best.sort_unstable_by(better);
        best.into_iter().map(|(count, key)| (pair(key), count)).collect()
    }
}
