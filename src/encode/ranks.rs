//! From a list of tokens in the order of their ranks to the merges that made them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::chunk_map::ChunkMap;
use crate::error::{Cancel, Error, Result, shown};
use crate::hash::HashSet;

/// Up to this many bytes, looking at all pairs for the lowest rank beats a heap.
const SHORT: usize = if cfg!(test) { 4 } else { 64 };

/// For each token where it is cut: the two parts that its bytes merge to when only the tokens before it
/// are known. `tokens` are those of more than one byte, by rank.
pub fn cuts<T: AsRef<[u8]>>(tokens: &[T], cancel: &Cancel) -> Result<Vec<usize>> {
    let mut known = Known { ranks: ChunkMap::with_capacity(tokens.len())?, lengths: HashSet::default() };
    let mut result = Vec::with_capacity(tokens.len());
    for (rank, token) in tokens.iter().enumerate() {
        cancel.check()?;
        let token = token.as_ref();
        let parts = if token.len() <= SHORT { known.merge_short(token) } else { known.merge_long(token, cancel)? };
        let taken = known.ranks.get(token).is_some();
        let (&[_, cut, _], false) = (&parts[..], taken) else {
            let token = shown(&String::from_utf8_lossy(token));
            let why = if taken { "occurs twice" } else { "is not made of two tokens of lower rank" };
            return Err(Error::invalid(format!(
                "the token {token} {why}: these are not the ranks of a BPE vocabulary"
            )));
        };
        result.push(cut);
        *known.ranks.entry(token)? = rank as u64;
        known.lengths.insert(token.len());
    }
    Ok(result)
}

struct Known {
    ranks: ChunkMap,
    /// The lengths that occur: bytes of any other length need not be hashed, however long they are.
    lengths: HashSet<usize>,
}

impl Known {
    fn rank(&self, bytes: &[u8]) -> Option<u64> {
        if self.lengths.contains(&bytes.len()) { self.ranks.get(bytes) } else { None }
    }

    /// Where the parts of a token end, from 0 on, when no more of them than two can be merged.
    fn merge_short(&self, token: &[u8]) -> Vec<usize> {
        let mut ends: Vec<usize> = (0..=token.len()).collect();
        while ends.len() > 3 {
            let rank = |i: usize| Some((self.ranks.get(&token[ends[i]..ends[i + 2]])?, i));
            let Some((_, at)) = (0..ends.len() - 2).filter_map(rank).min() else { break };
            ends.remove(at + 1);
        }
        ends
    }

    /// The same in n log n: a heap of pairs, and parts linked to their neighbours.
    fn merge_long(&self, token: &[u8], cancel: &Cancel) -> Result<Vec<usize>> {
        let n = token.len();
        let mut next: Vec<usize> = (1..=n).collect();
        let mut previous: Vec<usize> = (0..n).map(|at| at.wrapping_sub(1)).collect();
        let pair = |start: usize, end: usize| Some(Reverse((self.rank(&token[start..end])?, start, end)));
        let mut heap: BinaryHeap<_> = (0..n - 1).filter_map(|at| pair(at, at + 2)).collect();
        let mut parts = n;
        while parts > 2
            && let Some(Reverse((_, start, end))) = heap.pop()
        {
            cancel.check()?;
            let middle = next[start];
            // A part that was merged into the one before it has no next.
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
        let starts = std::iter::successors(Some(0), |&at| (at < n).then(|| next[at]));
        Ok(starts.collect())
    }
}
