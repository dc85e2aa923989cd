//! The rank of each pair of tokens, in a hash table that is read without branches.
//!
//! Which pairs of a chunk can be merged is essentially random, so a look-up that branches on it would often be
//! mispredicted. In a cuckoo table, a pair is in one of four slots, all of which are always compared.

use crate::error::{Result, try_with_capacity};
use crate::table::hash::Seeds;

/// The rank of a pair that cannot be merged.
pub const NONE: u32 = u32::MAX;
/// The bits of a rank. Three ranks share a slot: the two of a pair and the one it merges to.
pub const RANK_BITS: u32 = 21;
/// A rank that is in no pair.
pub const BORDER: u32 = (1 << RANK_BITS) - 1;
/// The largest number of merges: ranks must be below `BORDER`.
pub const MAX_MERGES: usize = BORDER as usize - 256;

const EMPTY: u64 = u64::MAX;
/// How often an insertion moves other pairs before the table grows instead.
const MAX_MOVES: usize = 1 << 9;

pub struct PairRanks {
    seeds: Seeds,
    /// A slot contains a pair and the rank it merges to, `RANK_BITS` bits each. Two slots form a bucket.
    buckets: Vec<[u64; 2]>,
    shift: u32,
}

impl PairRanks {
    /// Creates a table with room for `pairs` pairs.
    pub fn with_capacity(pairs: usize) -> Result<Self> {
        // At most 80% full; two choices of two slots work up to 89%.
        Self::with_buckets((pairs * 5 / 8).next_power_of_two().max(64))
    }

    fn with_buckets(size: usize) -> Result<Self> {
        let mut buckets = try_with_capacity(size)?;
        buckets.resize(size, [EMPTY; 2]);
        Ok(Self { seeds: Seeds::get(), buckets, shift: 64 - size.trailing_zeros() })
    }

    /// Adds the pair that merges to a rank, which must be below `BORDER`. Returns false if the pair is there already.
    pub fn insert(&mut self, first: u32, last: u32, rank: u32) -> Result<bool> {
        if self.get(first, last) != NONE {
            return Ok(false);
        }
        let slot = pack(first, last) << RANK_BITS | u64::from(rank);
        if let Some(left_over) = self.place(slot) {
            self.grow(left_over)?;
        }
        Ok(true)
    }

    /// Puts a slot into the table, which may move others. Returns the one for which there is no room, if any.
    fn place(&mut self, mut slot: u64) -> Option<u64> {
        let mut left = usize::MAX;
        for step in 0..MAX_MOVES {
            let (first, last) = self.places(slot >> RANK_BITS);
            for place in [first, last] {
                if let Some(free) = self.buckets[place].iter_mut().find(|slot| **slot == EMPTY) {
                    *free = slot;
                    return None;
                }
            }
            // Take the place of another pair, but not in the bucket that this one was moved from.
            left = if first == left { last } else { first };
            std::mem::swap(&mut slot, &mut self.buckets[left][step % 2]);
        }
        Some(slot)
    }

    #[cold]
    fn grow(&mut self, left_over: u64) -> Result<()> {
        let mut size = self.buckets.len();
        loop {
            size *= 2;
            let mut larger = Self::with_buckets(size)?;
            let slots = self.buckets.as_flattened().iter().filter(|slot| **slot != EMPTY);
            if slots.chain([&left_over]).all(|&slot| larger.place(slot).is_none()) {
                *self = larger;
                return Ok(());
            }
        }
    }

    #[inline(always)]
    fn places(&self, pair: u64) -> (usize, usize) {
        let hash = self.seeds.fold(pair, 0);
        ((hash >> self.shift) as usize, hash as usize & (self.buckets.len() - 1))
    }

    /// Returns the rank that a pair merges to, or `NONE`.
    #[inline(always)]
    pub fn get(&self, first: u32, last: u32) -> u32 {
        let pair = pack(first, last);
        let (a, b) = self.places(pair);
        let ([a, b], [c, d]) = (self.buckets[a], self.buckets[b]);
        let rank = |slot: u64| if slot >> RANK_BITS == pair { slot as u32 & BORDER } else { NONE };
        rank(a) & rank(b) & rank(c) & rank(d)
    }
}

fn pack(first: u32, last: u32) -> u64 {
    u64::from(first) << RANK_BITS | u64::from(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_grows() {
        let mut ranks = PairRanks::with_capacity(1).expect("enough memory");
        let pairs = (0..1000).map(|n| ((n % 37, n / 37), 256 + n));
        for ((first, last), rank) in pairs.clone() {
            assert!(ranks.insert(first, last, rank).expect("enough memory"));
        }
        for ((first, last), rank) in pairs {
            assert!(!ranks.insert(first, last, 9999).expect("enough memory"));
            assert_eq!(ranks.get(first, last), rank);
        }
        assert_eq!(ranks.get(37, 0), NONE);
    }
}
