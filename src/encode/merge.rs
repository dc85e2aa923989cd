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

/// The place of each pair of tokens in a list of merges, and the token it becomes.
pub type Listed = HashMap<(u32, u32), (u32, u32)>;

pub struct MergeTable {
    pub(super) ranks: Ranks,
    /// rank - 256 → the pair that merges to it
    pub(super) pairs: Vec<(u32, u32)>,
    /// rank → the number of bytes of the token
    widths: Vec<u32>,
    /// Whether every pair has a higher rank than its two tokens, as training makes them.
    in_order: bool,
}

impl MergeTable {
    /// `pairs` are pairs of ranks, in the order of their own ranks, and `widths` are the lengths of all tokens.
    pub fn new(pairs: &[(u32, u32)], widths: Vec<u32>) -> Result<Self> {
        let mut merges = Self::of_widths(widths)?;
        for (&pair, rank) in pairs.iter().zip(256..) {
            if !merges.insert(pair, rank)? {
                let number = rank - 256;
                return Err(Error::invalid(format!("merge {number} merges the same pair as an earlier one")));
            }
        }
        Ok(merges)
    }

    /// Finds the merge of each of `tokens`, which have more than one byte.
    ///
    /// A token can only be merged from the two tokens that its own bytes merge to without it. Proof: when a text is
    /// merged and this token appears, no merge before has crossed its ends, so those within it were the same, in the
    /// same order, as if its bytes had been merged alone. Those two tokens are shorter, so the merges are found in the
    /// order of the tokens' lengths.
    ///
    /// `rank_of` gets the index of a token and those two, as ranks, and returns the rank of their merge if there is
    /// one. Ranks are below 256 + `size`. Returns the merges, and for each token its rank, or `NONE` if no merge makes
    /// it.
    fn find(
        tokens: &[&[u8]],
        size: usize,
        rank_of: impl Fn(usize, (u32, u32)) -> Option<u32>,
        cancel: &Cancel,
    ) -> Result<(Self, Vec<u32>)> {
        let mut widths = try_with_capacity(256 + size)?;
        widths.resize(256 + size, 1);
        let mut merges = Self::of_widths(widths)?;
        let mut ranks = try_collect(tokens.iter().map(|_| NONE))?;
        let mut by_length = try_collect(0..tokens.len())?;
        by_length.sort_by_key(|&index| tokens[index].len());
        for group in by_length.chunk_by(|&a, &b| tokens[a].len() == tokens[b].len()) {
            let mut found = try_with_capacity(group.len())?;
            for block in group.chunks(BLOCK) {
                cancel.check()?;
                let token = |index: usize| tokens[block[index]];
                merges.apply_all(block.len(), token, cancel, |index, parts| {
                    if let [first, last] = *parts
                        && let Some(rank) = rank_of(block[index], (first, last))
                    {
                        found.push((block[index], (first, last), rank));
                    }
                    Ok(())
                })?;
            }
            for (index, pair, rank) in found {
                merges.widths[rank as usize] = tokens[index].len() as u32;
                if !merges.insert(pair, rank)? {
                    return Err(not_ranks(tokens[index], "occurs twice"));
                }
                ranks[index] = rank;
            }
        }
        Ok((merges, ranks))
    }

    /// Recovers the merges from tokens of more than one byte, in the order of their ranks, as tiktoken merges them: any
    /// two tokens that together are a token. Returns the pairs of ranks, without gaps, of the tokens that are made by a
    /// merge, and the indices of those tokens.
    pub fn of_tokens(tokens: &[&[u8]], cancel: &Cancel) -> Result<(Self, Vec<usize>)> {
        let (merges, ranks) = Self::find(tokens, tokens.len(), |index, _| Some(256 + index as u32), cancel)?;
        merges.without_gaps(tokens, &ranks)
    }

    /// Reduces a list of merges to those that can apply: at most one for each token. `listed` is the place in the list
    /// of each pair of tokens and the token it becomes, and `size` is the length of the list. A token is a byte, or 256
    /// plus its index. Returns what `of_tokens` does.
    pub fn of_list(tokens: &[&[u8]], listed: &Listed, size: usize, cancel: &Cancel) -> Result<(Self, Vec<usize>)> {
        let mut made: Vec<u32> = try_with_capacity(256 + size)?; // rank → token
        made.extend(0..256);
        made.resize(256 + size, 0);
        for &(place, token) in listed.values() {
            made[256 + place as usize] = token;
        }
        let rank_of = |index: usize, (first, last): (u32, u32)| {
            let (place, token) = *listed.get(&(made[first as usize], made[last as usize]))?;
            (token as usize == 256 + index).then_some(256 + place)
        };
        let (merges, ranks) = Self::find(tokens, size, rank_of, cancel)?;
        merges.without_gaps(tokens, &ranks)
    }

    /// Renumbers the ranks of tokens so that there are no gaps. Returns the indices of the tokens in the order of rank.
    fn without_gaps(self, tokens: &[&[u8]], ranks: &[u32]) -> Result<(Self, Vec<usize>)> {
        let mut order = try_collect(0..tokens.len())?;
        order.retain(|&index| ranks[index] != NONE);
        order.sort_by_key(|&index| ranks[index]);
        if order.len() == self.pairs.len() {
            return Ok((self, order));
        }
        let mut renumbered: Vec<u32> = try_with_capacity(self.widths.len())?;
        renumbered.extend(0..256);
        renumbered.resize(self.widths.len(), NONE);
        for (&index, rank) in order.iter().zip(256..) {
            renumbered[ranks[index] as usize] = rank;
        }
        let mut pairs = try_with_capacity(order.len())?;
        let mut widths = try_with_capacity(256 + order.len())?;
        widths.resize(256, 1);
        for &index in &order {
            let (first, last) = self.pairs[ranks[index] as usize - 256];
            pairs.push((renumbered[first as usize], renumbered[last as usize]));
            widths.push(tokens[index].len() as u32);
        }
        Ok((Self::new(&pairs, widths)?, order))
    }

    fn of_widths(widths: Vec<u32>) -> Result<Self> {
        let count = widths.len() - 256;
        if count > MAX_MERGES {
            return Err(Error::invalid(format!("there can be at most {MAX_MERGES} merges, got {count}")));
        }
        let mut pairs = try_with_capacity(count)?;
        pairs.resize(count, (0, 0));
        let ranks = Ranks { byte_pairs: vec![NONE; 1 << 16], pairs: PairRanks::with_capacity(count)? };
        Ok(Self { ranks, pairs, widths, in_order: true })
    }

    /// Adds a merge. Returns false if there is already one of the same pair.
    fn insert(&mut self, (first, last): (u32, u32), rank: u32) -> Result<bool> {
        self.pairs[rank as usize - 256] = (first, last);
        self.in_order &= first.max(last) < rank;
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
            if self.in_order {
                self.apply_long(&mut tokens, cancel)?;
            } else {
                self.apply_by_place(&mut tokens, &mut PlaceHeap::default(), || false, cancel)?;
            }
            done(index, &tokens)?;
        }
        Ok(())
    }

    /// Merges a chunk of any length in O(n log n): rank by rank, with a list of the places of each rank. This is
    /// correct because a pair has a higher rank than its two tokens, so merging one rank adds places only to higher
    /// ranks. Each pass moves through memory from left to right; a heap of single places does not.
    ///
    /// A token covers as many cells as it has bytes. Its rank is in its first and last cell, so both neighbors of a
    /// token are found without links. The two cells at a seam, where tokens were joined, contain `NONE`, so that a
    /// stale place does not match there.
    fn apply_long(&self, cells: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        check_length(cells)?;
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
            let merge = self.merge(token);
            for (i, &start) in starts.iter().enumerate() {
                if i.is_multiple_of(1 << 16) {
                    cancel.check()?;
                }
                self.merge_at(cells, &merge, start, |rank, place| places.add(rank, place))?;
            }
        }
        self.compact(cells);
        Ok(())
    }

    /// Like `apply_long`, for merges in any order: with a heap of single places.
    ///
    /// `is_dropped` is called for each place, until it returns false and the pair there is merged. Then the dropped
    /// places return to the heap. If all are dropped, the chunk is done.
    pub fn apply_by_place(
        &self,
        cells: &mut Vec<u32>,
        PlaceHeap { places, dropped }: &mut PlaceHeap,
        mut is_dropped: impl FnMut() -> bool,
        cancel: &Cancel,
    ) -> Result<()> {
        check_length(cells)?;
        let add = |places: &mut BinaryHeap<Place>, rank, start| -> Result<()> {
            if rank != NONE {
                places.try_reserve(1).map_err(|_| Error::OutOfMemory(2 * size_of_val(places.as_slice())))?;
                places.push(Reverse((rank, start)));
            }
            Ok(())
        };
        places.clear();
        dropped.clear();
        for (at, pair) in (0u32..).zip(cells.windows(2)) {
            add(places, self.ranks.byte_pairs[(pair[0] << 8 | pair[1]) as usize], at)?;
        }
        let mut popped = 0usize;
        while let Some(place) = places.pop() {
            popped += 1;
            if popped.is_multiple_of(1 << 12) {
                cancel.check()?;
            }
            let Reverse((token, start)) = place;
            let merge = self.merge(token);
            if !merge.is_at(cells, start as usize) {
                continue;
            }
            if is_dropped() {
                try_push(dropped, place)?;
                continue;
            }
            self.merge_at(cells, &merge, start, |rank, start| add(places, rank, start))?;
            places.extend(dropped.drain(..)); // there is room for them: they have left it
        }
        self.compact(cells);
        Ok(())
    }

    fn merge(&self, token: u32) -> Merge {
        let (first, last) = self.pairs[token as usize - 256];
        let width = |token: u32| self.widths[token as usize] as usize;
        Merge { first, last, token, first_width: width(first), width: width(token) }
    }

    /// Merges a pair at a place, if it is still there, and calls `add` with the pairs that appear.
    #[inline(always)]
    fn merge_at(
        &self,
        cells: &mut [u32],
        merge: &Merge,
        start: u32,
        mut add: impl FnMut(u32, u32) -> Result<()>,
    ) -> Result<()> {
        let start = start as usize;
        if !merge.is_at(cells, start) {
            return Ok(());
        }
        let (token, middle, end) = (merge.token, start + merge.first_width, start + merge.width);
        cells[middle - 1] = NONE;
        cells[middle] = NONE;
        cells[start] = token;
        cells[end - 1] = token;
        if end < cells.len() {
            add(self.ranks.pairs.get(token, cells[end]), start as u32)?;
        }
        if start > 0 {
            let left = cells[start - 1];
            add(self.ranks.pairs.get(left, token), start as u32 - self.widths[left as usize])?;
        }
        Ok(())
    }

    /// Removes all cells of each token but the first.
    fn compact(&self, cells: &mut Vec<u32>) {
        let (mut at, mut len) = (0, 0);
        while at < cells.len() {
            cells[len] = cells[at];
            at += self.widths[cells[len] as usize] as usize;
            len += 1;
        }
        cells.truncate(len);
    }
}

/// A merge, with the numbers of bytes of its first token and of the token it makes.
struct Merge {
    first: u32,
    last: u32,
    token: u32,
    first_width: usize,
    width: usize,
}

impl Merge {
    /// Returns whether the pair is at a place.
    #[inline(always)]
    fn is_at(&self, cells: &[u32], start: usize) -> bool {
        cells[start] == self.first && cells[start + self.first_width] == self.last
    }
}

/// The rank of a pair and where it starts, lowest first.
type Place = Reverse<(u32, u32)>;

/// Buffers for `MergeTable::apply_by_place`.
#[derive(Default)]
pub struct PlaceHeap {
    places: BinaryHeap<Place>,
    dropped: Vec<Place>,
}

fn check_length(cells: &[u32]) -> Result<()> {
    if u32::try_from(cells.len()).is_ok() {
        return Ok(());
    }
    let n = cells.len();
    Err(Error::invalid(format!("a chunk of {n} bytes is too long to encode; use a pattern that makes shorter chunks")))
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
