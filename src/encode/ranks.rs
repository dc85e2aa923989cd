//! Recovers merges from a list of tokens in the order of their ranks, such as a tiktoken file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::chunk_map::ChunkMap;
use crate::error::{Cancel, Error, Result, quoted, try_with_capacity};
use crate::hash::HashSet;
use crate::parallel;

/// Up to this many bytes, searching all pairs for the lowest rank is faster than a heap.
const SHORT: usize = if cfg!(test) { 4 } else { 64 };
/// The number of tokens that a thread takes at once.
const BLOCK: usize = if cfg!(test) { 4 } else { 1 << 10 };

/// Returns the two tokens that merge to each token, as ranks: a byte's is its value, and the nth token's is 256 + n. To
/// find them, the bytes of the token are merged with the tokens of lower rank only. `tokens` must have more than one
/// byte each and be in the order of ranks.
pub fn merges<T: AsRef<[u8]> + Sync>(tokens: &[T], threads: usize, cancel: &Cancel) -> Result<Vec<(u32, u32)>> {
    let vocabulary = Vocabulary::new(tokens)?;
    let mut blocks = try_with_capacity(tokens.len().div_ceil(BLOCK))?;
    blocks.extend(tokens.chunks(BLOCK).zip((256u32..).step_by(BLOCK)));
    let merges = parallel::map(
        &blocks,
        threads,
        || (),
        |(), (block, first)| {
            cancel.check()?;
            block.iter().zip(*first..).map(|(token, rank)| vocabulary.merge(token.as_ref(), rank, cancel)).collect()
        },
    )?;
    parallel::concat::<(u32, u32)>(&merges, threads)
}

/// The ranks of all tokens.
struct Vocabulary {
    ranks: ChunkMap,
    /// (first byte, last byte) → rank, or `u32::MAX`
    byte_pairs: Vec<u32>,
    /// The lengths that occur. Bytes of any other length, which may be many, need not be hashed.
    lengths: HashSet<usize>,
}

impl Vocabulary {
    fn new<T: AsRef<[u8]>>(tokens: &[T]) -> Result<Self> {
        let mut ranks = ChunkMap::with_capacity(tokens.len())?;
        let mut byte_pairs = vec![u32::MAX; 1 << 16];
        for (token, rank) in tokens.iter().zip(256u32..) {
            let token = token.as_ref();
            let entry = ranks.entry(token)?;
            if *entry != 0 {
                return Err(not_ranks(token, "occurs twice"));
            }
            *entry = u64::from(rank);
            if let &[first, last] = token {
                byte_pairs[usize::from(first) << 8 | usize::from(last)] = rank;
            }
        }
        let lengths = tokens.iter().map(|token| token.as_ref().len()).collect();
        Ok(Self { ranks, byte_pairs, lengths })
    }

    /// Returns the rank of a part of a token, or `None` if it is not a token of lower rank.
    #[inline]
    fn rank(&self, part: &[u8], below: u32) -> Option<u32> {
        let rank = match *part {
            [byte] => Some(u32::from(byte)),
            [first, last] => Some(self.byte_pairs[usize::from(first) << 8 | usize::from(last)]),
            _ if self.lengths.contains(&part.len()) => self.ranks.get(part).map(|rank| rank as u32),
            _ => None,
        };
        rank.filter(|&rank| rank < below)
    }

    /// Returns the two tokens that `token`, which has this rank, is merged from.
    fn merge(&self, token: &[u8], rank: u32, cancel: &Cancel) -> Result<(u32, u32)> {
        let cut =
            if token.len() <= SHORT { self.merge_short(token, rank) } else { self.merge_long(token, rank, cancel)? };
        let part = |part: &[u8]| self.rank(part, rank);
        cut.and_then(|cut| Some((part(&token[..cut])?, part(&token[cut..])?)))
            .ok_or_else(|| not_ranks(token, "is not a merge of two tokens of lower rank"))
    }

    /// Merges the bytes of a token until two parts remain, and returns where the second starts.
    fn merge_short(&self, token: &[u8], below: u32) -> Option<usize> {
        let n = token.len();
        let rank = |start: usize, end: usize| self.rank(&token[start..end], below).unwrap_or(u32::MAX);
        // Where each part starts, and the rank of the pair that starts there.
        let mut starts: [usize; SHORT + 1] = std::array::from_fn(|at| at);
        let mut ranks: [u32; SHORT] = [u32::MAX; SHORT];
        for (at, pair) in ranks[..n - 1].iter_mut().enumerate() {
            *pair = rank(at, at + 2);
        }
        let mut parts = n;
        while parts > 2 {
            let (at, &least) = ranks[..parts - 1].iter().enumerate().min_by_key(|&(_, rank)| rank)?;
            if least == u32::MAX {
                return None;
            }
            starts.copy_within(at + 2..=parts, at + 1);
            ranks.copy_within(at + 1..parts - 1, at);
            parts -= 1;
            if at + 1 < parts {
                ranks[at] = rank(starts[at], starts[at + 2]);
            }
            if at > 0 {
                ranks[at - 1] = rank(starts[at - 1], starts[at + 1]);
            }
        }
        Some(starts[1])
    }

    /// Does the same in O(n log n), with a heap of pairs and parts linked to their neighbours.
    fn merge_long(&self, token: &[u8], below: u32, cancel: &Cancel) -> Result<Option<usize>> {
        let n = token.len();
        let mut next: Vec<usize> = (1..=n).collect();
        let mut previous: Vec<usize> = (0..n).map(|at| at.wrapping_sub(1)).collect();
        let pair = |start: usize, end: usize| Some(Reverse((self.rank(&token[start..end], below)?, start, end)));
        let mut heap: BinaryHeap<_> = (0..n - 1).filter_map(|at| pair(at, at + 2)).collect();
        let mut parts = n;
        while parts > 2
            && let Some(Reverse((_, start, end))) = heap.pop()
        {
            cancel.check()?;
            let middle = next[start];
            // Skip a stale pair: its parts have changed. A part that was merged into the one before it has no next.
            if middle >= end || next[middle] != end {
                continue;
            }
            next[start] = end;
            next[middle] = usize::MAX;
            parts -= 1;
            if end < n {
                previous[end] = start;
                heap.extend(pair(start, next[end]));
            }
            if start > 0 {
                heap.extend(pair(previous[start], end));
            }
        }
        Ok((parts == 2).then(|| next[0]))
    }
}

fn not_ranks(token: &[u8], problem: &str) -> Error {
    let token = quoted(&String::from_utf8_lossy(token));
    Error::invalid(format!("the token {token} {problem}: these are not the ranks of a BPE vocabulary"))
}
