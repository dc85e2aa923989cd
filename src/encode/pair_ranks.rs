//! The rank of each pair of tokens, in a hash table that is read without branches.
//!
//! Which pairs of a chunk can be merged is as good as random, so a look-up that branches on it would often be
//! mispredicted. In a cuckoo table, a pair is in one of four slots, all of which are always compared.

use crate::error::{Error, Result, try_with_capacity};
use crate::hash::Seeds;

/// The rank of a pair that cannot be merged.
pub const NONE: u32 = u32::MAX;
/// The bits of a rank. Three ranks share a slot: the two of a pair and the one it merges to.
pub const RANK_BITS: u32 = 21;
/// A rank that is in no pair.
pub const BORDER: u32 = (1 << RANK_BITS) - 1;

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
    /// `pairs` are pairs of ranks, in the order of their own ranks, the first of which is 256.
    pub fn new(pairs: &[(u32, u32)]) -> Result<Self> {
        let limit = BORDER as usize - 256;
        if pairs.len() > limit {
            return Err(Error::invalid(format!("an encoder holds at most {limit} merges, got {}", pairs.len())));
        }
        // At most 80 % full; two choices of two slots work up to 89 %.
        let mut size = (pairs.len() * 5 / 8).next_power_of_two().max(64);
        loop {
            let mut buckets = try_with_capacity(size)?;
            buckets.resize(size, [EMPTY; 2]);
            let mut ranks = Self { seeds: Seeds::get(), buckets, shift: 64 - size.trailing_zeros() };
            if ranks.insert_all(pairs)? {
                return Ok(ranks);
            }
            size *= 2;
        }
    }

    /// Returns false if there is no room.
    fn insert_all(&mut self, pairs: &[(u32, u32)]) -> Result<bool> {
        for (&(first, last), rank) in pairs.iter().zip(256u32..) {
            if self.get(first, last) != NONE {
                return Err(Error::invalid(format!("merge {} merges the same pair as an earlier one", rank - 256)));
            }
            if !self.insert(pack(first, last) << RANK_BITS | u64::from(rank)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn insert(&mut self, mut slot: u64) -> bool {
        let mut left = usize::MAX;
        for step in 0..MAX_MOVES {
            let (first, last) = self.places(slot >> RANK_BITS);
            for place in [first, last] {
                if let Some(free) = self.buckets[place].iter_mut().find(|slot| **slot == EMPTY) {
                    *free = slot;
                    return true;
                }
            }
            // Take the place of another pair, but not in the bucket that this one was moved from.
            left = if first == left { last } else { first };
            std::mem::swap(&mut slot, &mut self.buckets[left][step % 2]);
        }
        false
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
