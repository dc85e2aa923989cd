//! Merges the bytes of chunks: always the pair of lowest rank, and the leftmost of equal pairs.
//!
//! Tokens are identified by their *rank*: a byte by its value, the nth merge by 256 + n. The rank of a pair is
//! therefore also the token that it merges to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::lanes::{self, Ranks};
use super::pair_ranks::{MAX_MERGES, NONE, PairRanks};
use crate::error::{Cancel, Error, Result, check_memory, quoted, try_collect, try_push, try_with_capacity};
use crate::table::hash::HashMap;

/// Sorting fewer places than this does not need to check for memory.
const MIN_CHECKED: usize = 1 << 8;
/// The number of tokens whose merges are recovered between two checks of `Cancel`.
const BLOCK: usize = if cfg!(test) { 4 } else { 1 << 10 };

pub struct MergeTable {
    pub(super) ranks: Ranks,
    /// rank - 256 → the pair that merges to it
    pub(super) pairs: Vec<(u32, u32)>,
    /// rank → the number of bytes of the token
    widths: Vec<u32>,
}

impl MergeTable {
    /// `pairs` are pairs of ranks, in the order of their own ranks. Each uses only lower ranks, and no token may be
    /// longer than 4 GiB.
    pub fn new(pairs: &[(u32, u32)]) -> Result<Self> {
        let mut widths = try_with_capacity(256 + pairs.len())?;
        widths.resize(256, 1);
        for &(first, last) in pairs {
            widths.push(widths[first as usize] + widths[last as usize]);
        }
        let mut merges = Self::of_widths(widths)?;
        for (&pair, rank) in pairs.iter().zip(256..) {
            if !merges.insert(pair, rank)? {
                let number = rank - 256;
                return Err(Error::invalid(format!("merge {number} merges the same pair as an earlier one")));
            }
        }
        Ok(merges)
    }

    /// Recovers the merges from tokens of more than one byte, in the order of their ranks. A token is merged from the
    /// two tokens that its bytes merge to without it.
    ///
    /// Those are shorter than the token, so the merges are found in the order of the tokens' lengths. Tokens of higher
    /// rank do not matter. They come into play only if those of lower rank do not suffice, and then one of the two that
    /// remain has a higher rank, since it is itself merged from lower ranks only.
    pub fn of_tokens(tokens: &[&[u8]], cancel: &Cancel) -> Result<Self> {
        let lengths = tokens.iter().map(|token| token.len() as u32);
        let mut widths = try_with_capacity(256 + tokens.len())?;
        widths.resize(256, 1);
        widths.extend(lengths);
        let mut merges = Self::of_widths(widths)?;
        let mut by_length = try_collect(0..tokens.len())?;
        by_length.sort_by_key(|&index| tokens[index].len());
        for group in by_length.chunk_by(|&a, &b| tokens[a].len() == tokens[b].len()) {
            let mut found = try_with_capacity(group.len())?;
            for block in group.chunks(BLOCK) {
                cancel.check()?;
                let token = |index: usize| tokens[block[index]];
                merges.apply_all(block.len(), token, cancel, |index, ranks| {
                    let rank = 256 + block[index] as u32;
                    match *ranks {
                        [first, last] if first < rank && last < rank => found.push(((first, last), rank)),
                        _ => return Err(not_ranks(token(index), "is not a merge of two tokens of lower rank")),
                    }
                    Ok(())
                })?;
            }
            for (pair, rank) in found {
                if !merges.insert(pair, rank)? {
                    return Err(not_ranks(tokens[rank as usize - 256], "occurs twice"));
                }
            }
        }
        Ok(merges)
    }

    fn of_widths(widths: Vec<u32>) -> Result<Self> {
        let count = widths.len() - 256;
        if count > MAX_MERGES {
            return Err(Error::invalid(format!("there can be at most {MAX_MERGES} merges, got {count}")));
        }
        let mut pairs = try_with_capacity(count)?;
        pairs.resize(count, (0, 0));
        let ranks = Ranks { byte_pairs: vec![NONE; 1 << 16], pairs: PairRanks::with_capacity(count)? };
        Ok(Self { ranks, pairs, widths })
    }

    /// Adds a merge. Returns false if there is already one of the same pair.
    fn insert(&mut self, (first, last): (u32, u32), rank: u32) -> Result<bool> {
        self.pairs[rank as usize - 256] = (first, last);
        if first < 256 && last < 256 {
            self.ranks.byte_pairs[(first << 8 | last) as usize] = rank;
        }
        self.ranks.pairs.insert(first, last, rank)
    }

    /// Merges the chunks `chunk(0)` to `chunk(count - 1)` and calls `done` with the index and the ranks of each, in any
    /// order.
    pub fn apply_all<'t>(
        &self,
        count: usize,
        chunk: impl Fn(usize) -> &'t [u8],
        cancel: &Cancel,
        mut done: impl FnMut(usize, &[u32]) -> Result<()>,
    ) -> Result<()> {
        let mut failed = Ok(());
        lanes::merge_all(&self.ranks, count, &chunk, |index, ranks| {
            if failed.is_ok() {
                failed = done(index, ranks);
            }
        });
        failed?;
        for index in (0..count).filter(|&index| chunk(index).len() > lanes::MAX_BYTES) {
            let chunk = chunk(index);
            let mut tokens = try_with_capacity(chunk.len())?;
            tokens.extend(chunk.iter().map(|&byte| u32::from(byte)));
            self.apply_long(&mut tokens, cancel)?;
            done(index, &tokens)?;
        }
        Ok(())
    }

    /// Merges a chunk of any length in O(n log n): rank by rank, with a list of the places of each rank. This is
    /// correct because a pair has a higher rank than its two tokens, so merging one rank adds places only to higher
    /// ranks. Each pass moves through memory from left to right; a heap of single places would not.
    ///
    /// A token covers as many cells as it has bytes. Its rank is in its first and last cell, so both neighbors of a
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
            places.add(self.ranks.byte_pairs[(pair[0] << 8 | pair[1]) as usize], at)?;
        }
        while let Some((token, mut starts)) = places.pop() {
            cancel.check()?;
            // The places come from at most two passes, each from left to right, so a stable sort is fast. Its buffer is
            // at most as long as what it sorts.
            if starts.len() > MIN_CHECKED {
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
                    places.add(self.ranks.pairs.get(token, cells[end]), start as u32)?;
                }
                if start > 0 {
                    let left = cells[start - 1];
                    places.add(self.ranks.pairs.get(left, token), start as u32 - self.widths[left as usize])?;
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

pub fn not_ranks(token: &[u8], problem: &str) -> Error {
    let token = quoted(&String::from_utf8_lossy(token));
    Error::invalid(format!("the token {token} {problem}: these are not the ranks of a BPE vocabulary"))
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
