//! Merges the bytes of one chunk: always the pair of lowest rank, and the leftmost of equal pairs.
//!
//! Tokens are identified by their *rank*: a byte by its value, the nth merge by 256 + n. The rank of a pair is
//! therefore also the token that it merges to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Cancel, Error, Result, check_memory, try_push, try_with_capacity};
use crate::hash::{HashMap, Seeds};

/// The rank of a pair that cannot be merged. `apply_long` also marks cells with it.
const NONE: u32 = u32::MAX;
/// Up to this many bytes, searching all pairs for the lowest rank is faster than keeping lists of their places.
const SHORT: usize = 1 << SHORT_BITS;
const SHORT_BITS: u32 = 8;
/// The initial links of `apply_short`: every byte is a token.
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

/// The bits of a rank. Three ranks share a word: the two of a pair and the one it merges to.
const BITS: u32 = 21;

/// The binary logarithm of the number of bits in the filter.
const FILTER_BITS: u32 = 21;

/// Returns a pair packed into a word, and its hash.
#[inline]
fn hash(seeds: Seeds, first: u32, last: u32) -> (u64, u64) {
    let key = u64::from(first) << BITS | u64::from(last);
    (key, seeds.fold(key, 0))
}

/// Returns the word of the filter and the bit in it for a hash.
#[inline]
fn filter_bit(hash: u64) -> (usize, u64) {
    let bit = hash as usize & ((1 << FILTER_BITS) - 1);
    (bit / 64, 1 << (bit % 64))
}

pub struct Merges {
    seeds: Seeds,
    /// (first byte, last byte) → rank
    byte_pairs: Vec<u32>,
    /// A hash table with open addressing. An entry is a pair and the rank it merges to, `BITS` bits each.
    table: Vec<u64>,
    shift: u32,
    /// A Bloom filter with one bit per hash. Most pairs are not in the vocabulary, and the filter fits into the
    /// processor's cache while the table may not.
    filter: Vec<u64>,
    /// rank - 256 → the pair that merges to it
    pairs: Vec<(u32, u32)>,
    /// rank → the number of bytes of the token
    widths: Vec<u32>,
}

impl Merges {
    /// `pairs` are pairs of ranks, in the order of their own ranks. Each uses only lower ranks, and no token may be
    /// longer than 4 GiB.
    pub fn new(pairs: Vec<(u32, u32)>) -> Result<Self> {
        if pairs.len() + 256 >= 1 << BITS {
            let limit = (1 << BITS) - 257;
            return Err(Error::invalid(format!("an encoder holds at most {limit} merges, got {}", pairs.len())));
        }
        let size = (pairs.len() * 2).next_power_of_two().max(64);
        let mut merges = Self {
            seeds: Seeds::get(),
            byte_pairs: vec![NONE; 1 << 16],
            table: vec![u64::MAX; size],
            shift: 64 - size.trailing_zeros(),
            filter: vec![0; 1 << (FILTER_BITS - 6)],
            pairs: Vec::new(),
            widths: vec![1; 256],
        };
        for (&(first, last), rank) in pairs.iter().zip(256u32..) {
            merges.widths.push(merges.widths[first as usize] + merges.widths[last as usize]);
            if first < 256 && last < 256 {
                merges.byte_pairs[(first << 8 | last) as usize] = rank;
            }
            let (key, hash) = hash(merges.seeds, first, last);
            let (word, bit) = filter_bit(hash);
            merges.filter[word] |= bit;
            let mut at = (hash >> merges.shift) as usize;
            while merges.table[at] != u64::MAX {
                at = (at + 1) % size;
            }
            merges.table[at] = key << BITS | u64::from(rank);
        }
        merges.pairs = pairs;
        Ok(merges)
    }

    /// Returns the rank that a pair merges to, or `NONE`.
    #[inline]
    fn rank(&self, first: u32, last: u32) -> u32 {
        let (key, hash) = hash(self.seeds, first, last);
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
        self.byte_pairs[usize::from(first) << 8 | usize::from(last)]
    }

    /// Replaces the contents of `tokens` with the ranks that `chunk` merges to.
    pub fn apply(&self, chunk: &[u8], tokens: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        tokens.clear();
        if chunk.len() > tokens.capacity() {
            *tokens = try_with_capacity(chunk.len())?;
        }
        tokens.extend(chunk.iter().map(|&byte| u32::from(byte)));
        if chunk.len() <= SHORT {
            self.apply_short(chunk, tokens);
            Ok(())
        } else {
            self.apply_long(tokens, cancel)
        }
    }

    /// Merges a chunk of at most `SHORT` bytes, in quadratic time but with a small constant. A token is at the place of
    /// its first byte, and linked to its neighbours.
    fn apply_short(&self, chunk: &[u8], tokens: &mut Vec<u32>) {
        let n = chunk.len();
        // For each place: the rank of the pair that starts there in the high bits, and the place in the low bits. The
        // minimum of these numbers is the pair to merge, and computing it needs no branches.
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

    /// Merges a chunk of any length in O(n log n): rank by rank, with a list of the places of each rank. This is
    /// correct because a pair has a higher rank than its two tokens, so merging one rank adds places only to higher
    /// ranks. Each pass moves through memory from left to right; a heap of single places would not.
    ///
    /// A token covers as many cells as it has bytes. Its rank is in its first and last cell, so both neighbours of a
    /// token are found without links. The two cells at a seam, where tokens were joined, contain `NONE`, so that a
    /// stale place does not match there.
    fn apply_long(&self, cells: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        let n = cells.len();
        if u32::try_from(n).is_err() {
            return Err(Error::invalid(format!(
                "a chunk of {n} bytes is too long to encode; use a pattern that makes shorter chunks"
            )));
        }
        let mut places = Places::default();
        for (at, pair) in (0u32..).zip(cells.windows(2)) {
            if at.is_multiple_of(1 << 16) {
                cancel.check()?;
            }
            places.add(self.rank_of_bytes(pair[0] as u8, pair[1] as u8), at)?;
        }
        while let Some((token, mut starts)) = places.pop() {
            cancel.check()?;
            // The places come from at most two passes, each from left to right, so a stable sort is fast. Its buffer is
            // at most as long as what it sorts.
            if starts.len() > SHORT {
                check_memory(starts.len() * size_of::<u32>())?;
            }
            starts.sort();
            let (first, last) = self.pairs[token as usize - 256];
            let (first_width, width) = (self.widths[first as usize] as usize, self.widths[token as usize] as usize);
            for (i, &start) in starts.iter().enumerate() {
                if i.is_multiple_of(1 << 16) {
                    cancel.check()?;
                }
                let (start, middle) = (start as usize, start as usize + first_width);
                if cells[start] != first || cells[middle] != last {
                    continue;
                }
                let end = start + width;
                cells[middle - 1] = NONE;
                cells[middle] = NONE;
                cells[start] = token;
                cells[end - 1] = token;
                if end < n {
                    places.add(self.rank(token, cells[end]), start as u32)?;
                }
                if start > 0 {
                    let left = cells[start - 1];
                    places.add(self.rank(left, token), start as u32 - self.widths[left as usize])?;
                }
            }
        }
        let (mut at, mut len) = (0, 0);
        while at < n {
            cells[len] = cells[at];
            at += self.widths[cells[len] as usize] as usize;
            len += 1;
        }
        cells.truncate(len);
        Ok(())
    }
}

/// The places where the pairs of each rank start.
#[derive(Default)]
struct Places {
    by_rank: HashMap<u32, Vec<u32>>,
    /// The ranks in `by_rank`, lowest first.
    ranks: BinaryHeap<Reverse<u32>>,
}

impl Places {
    #[inline]
    fn add(&mut self, rank: u32, place: u32) -> Result<()> {
        if rank == NONE {
            return Ok(());
        }
        let places = self.by_rank.entry(rank).or_default();
        if places.is_empty() {
            self.ranks.push(Reverse(rank));
        }
        Ok(try_push(places, place)?)
    }

    /// Removes and returns the lowest rank that has places, and its places.
    fn pop(&mut self) -> Option<(u32, Vec<u32>)> {
        let Reverse(rank) = self.ranks.pop()?;
        Some((rank, self.by_rank.remove(&rank).unwrap_or_default()))
    }
}
