//! Merging the bytes of one chunk: always the pair of lowest rank, and of equal ones the leftmost.
//!
//! A token is known here by its *rank*: a byte by its value, the nth merge as 256 + n. So the rank of a
//! pair is also the token that it becomes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Cancel, Error, Result};

const NONE: u32 = u32::MAX;
/// Up to this many bytes, looking through all pairs for the lowest rank beats a heap.
const SHORT: usize = 1 << SHORT_BITS;
const SHORT_BITS: u32 = 8;
const NEXT: [u16; SHORT] = neighbours(1);
const PREVIOUS: [u16; SHORT] = neighbours(u16::MAX);

const fn neighbours(step: u16) -> [u16; SHORT] {
    let mut places = [0; SHORT];
    let mut at = 0;
    while at < SHORT {
        places[at] = (at as u16).wrapping_add(step);
        at += 1;
    }
    places
}

/// Two ranks and the one they become share a word.
const BITS: u32 = 21;

const FILTER_BITS: u32 = 21;

#[inline]
fn hash(first: u32, last: u32) -> (u64, u64) {
    let key = u64::from(first) << BITS | u64::from(last);
    let product = u128::from(key) * 0x9E37_79B9_7F4A_7C15;
    (key, product as u64 ^ (product >> 64) as u64)
}

#[inline]
fn filter_bit(hash: u64) -> (usize, u64) {
    let bit = hash as usize & ((1 << FILTER_BITS) - 1);
    (bit / 64, 1 << (bit % 64))
}

pub struct Merges {
    /// What two bytes become.
    of_bytes: Vec<u32>,
    /// Open addressing; each entry is first, last and the rank they become, `BITS` bits each.
    table: Vec<u64>,
    shift: u32,
    /// A bit for each hash that occurs: small enough for the cache, and most pairs are in no vocabulary.
    filter: Vec<u64>,
}

impl Merges {
    pub fn new(pairs: &[(u32, u32)]) -> Result<Self> {
        if pairs.len() + 256 >= 1 << BITS {
            return Err(Error::invalid(format!(
                "{} merges are more than the {} that an encoder holds",
                pairs.len(),
                (1 << BITS) - 257
            )));
        }
        let size = (pairs.len() * 2).next_power_of_two().max(64);
        let mut merges = Self {
            of_bytes: vec![NONE; 1 << 16],
            table: vec![u64::MAX; size],
            shift: 64 - size.trailing_zeros(),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
        };
        for (&(first, last), rank) in pairs.iter().zip(256u32..) {
            if first < 256 && last < 256 {
                merges.of_bytes[(first << 8 | last) as usize] = rank;
            }
            let (key, hash) = hash(first, last);
            let (word, bit) = filter_bit(hash);
            merges.filter[word] |= bit;
            let mut at = (hash >> merges.shift) as usize;
            while merges.table[at] != u64::MAX {
                at = (at + 1) % size;
            }
            merges.table[at] = key << BITS | u64::from(rank);
        }
        Ok(merges)
    }

    /// The rank that a pair becomes, or `NONE`.
    #[inline]
    fn rank(&self, first: u32, last: u32) -> u32 {
        let (key, hash) = hash(first, last);
        let (word, bit) = filter_bit(hash);
        if self.filter[word] & bit == 0 {
            return NONE;
        }
        let mut at = (hash >> self.shift) as usize;
        loop {
            let entry = self.table[at];
            if entry >> BITS == key {
                return (entry & ((1 << BITS) - 1)) as u32;
            }
            if entry == u64::MAX {
                return NONE;
            }
            at = (at + 1) & (self.table.len() - 1);
        }
    }

    fn rank_of_bytes(&self, first: u8, last: u8) -> u32 {
        self.of_bytes[usize::from(first) << 8 | usize::from(last)]
    }

    /// Puts the tokens of `chunk` into `tokens`, in place of what was there.
    pub fn apply(&self, chunk: &[u8], tokens: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        tokens.clear();
        tokens.extend(chunk.iter().map(|&byte| u32::from(byte)));
        if chunk.len() <= SHORT {
            self.apply_short(chunk, tokens);
            Ok(())
        } else {
            self.apply_long(chunk, tokens, cancel)
        }
    }

    fn apply_short(&self, chunk: &[u8], tokens: &mut Vec<u32>) {
        let n = chunk.len();
        // For each place the rank of the pair that begins there, and below it the place: the least of them is
        // the pair to merge, found by a plain minimum that needs no branches.
        let mut pairs = [i32::MAX; SHORT];
        let pack = |rank: u32, at: usize| if rank == NONE { i32::MAX } else { (rank << SHORT_BITS) as i32 | at as i32 };
        for (at, pair) in chunk.windows(2).enumerate() {
            pairs[at] = pack(self.rank_of_bytes(pair[0], pair[1]), at);
        }
        let mut next: [u16; SHORT] = NEXT;
        let mut previous: [u16; SHORT] = PREVIOUS;
        loop {
            let least = pairs[..n].iter().fold(i32::MAX, |least, &pair| least.min(pair));
            if least == i32::MAX {
                break;
            }
            let at = least as usize % SHORT;
            let last = next[at] as usize;
            let after = next[last] as usize;
            tokens[at] = least as u32 >> SHORT_BITS;
            next[at] = after as u16;
            pairs[last] = i32::MAX;
            pairs[at] = i32::MAX;
            if after < n {
                previous[after] = at as u16;
                pairs[at] = pack(self.rank(tokens[at], tokens[after]), at);
            }
            if at > 0 {
                let before = previous[at] as usize;
                pairs[before] = pack(self.rank(tokens[before], tokens[at]), before);
            }
        }
        let (mut at, mut len) = (0, 0);
        while at < n {
            tokens[len] = tokens[at];
            at = next[at] as usize;
            len += 1;
        }
        tokens.truncate(len);
    }

    /// The same in n log n: a heap of pairs, and tokens linked to their neighbours.
    fn apply_long(&self, chunk: &[u8], tokens: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        let n = chunk.len();
        if u32::try_from(n).is_err() {
            return Err(Error::invalid(format!(
                "a chunk of {n} bytes is too long to encode; split it with another pattern"
            )));
        }
        let mut previous: Vec<u32> = (0..n as u32).map(|at| at.wrapping_sub(1)).collect();
        let mut next: Vec<u32> = (1..=n as u32).collect();
        let entry = |rank: u32, at: u32| Reverse(u64::from(rank) << 32 | u64::from(at));
        let ranks = chunk.windows(2).map(|pair| self.rank_of_bytes(pair[0], pair[1]));
        let mut heap: BinaryHeap<_> =
            ranks.zip(0..).filter(|&(rank, _)| rank != NONE).map(|(rank, at)| entry(rank, at)).collect();
        let mut steps = 0u32;
        while let Some(Reverse(top)) = heap.pop() {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(1 << 16) {
                cancel.check()?;
            }
            let (rank, at) = ((top >> 32) as u32, top as u32 as usize);
            let last = next[at] as usize;
            if tokens[at] == NONE || last == n || self.rank(tokens[at], tokens[last]) != rank {
                continue;
            }
            tokens[at] = rank;
            tokens[last] = NONE;
            let after = next[last] as usize;
            next[at] = after as u32;
            if after < n {
                previous[after] = at as u32;
                let rank = self.rank(tokens[at], tokens[after]);
                if rank != NONE {
                    heap.push(entry(rank, at as u32));
                }
            }
            if at > 0 {
                let before = previous[at];
                let rank = self.rank(tokens[before as usize], tokens[at]);
                if rank != NONE {
                    heap.push(entry(rank, before));
                }
            }
        }
        tokens.retain(|&token| token != NONE);
        Ok(())
    }
}
