//! Recovers merges from a list of tokens in the order of their ranks, such as a tiktoken file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::chunk_map::ChunkMap;
use crate::error::{Cancel, Error, Result, quoted};
use crate::hash::HashSet;

/// Up to this many bytes, searching all pairs for the lowest rank is faster than a heap.
const SHORT: usize = if cfg!(test) { 4 } else { 64 };

/// Returns where each token is cut into the two tokens that merge to it. To find them, the bytes of the token are
/// merged with the tokens of lower rank only. `tokens` must have more than one byte each and be in the order of ranks.
pub fn cuts<T: AsRef<[u8]>>(tokens: &[T], cancel: &Cancel) -> Result<Vec<usize>> {
    let mut known = Known { ranks: ChunkMap::with_capacity(tokens.len())?, lengths: HashSet::default() };
    let mut result = Vec::with_capacity(tokens.len());
    for (rank, token) in tokens.iter().enumerate() {
        cancel.check()?;
        let token = token.as_ref();
        let ends = if token.len() <= SHORT { known.merge_short(token) } else { known.merge_long(token, cancel)? };
        let repeated = known.ranks.get(token).is_some();
        let (&[_, cut, _], false) = (&ends[..], repeated) else {
            let token = quoted(&String::from_utf8_lossy(token));
            let problem = if repeated { "occurs twice" } else { "is not a merge of two tokens of lower rank" };
            return Err(Error::invalid(format!(
                "the token {token} {problem}: these are not the ranks of a BPE vocabulary"
            )));
        };
        result.push(cut);
        *known.ranks.entry(token)? = rank as u64;
        known.lengths.insert(token.len());
    }
    Ok(result)
}

/// The tokens of lower rank.
struct Known {
    ranks: ChunkMap,
    /// The lengths that occur. Bytes of any other length, which may be many, need not be hashed.
    lengths: HashSet<usize>,
}

impl Known {
    fn rank(&self, bytes: &[u8]) -> Option<u64> {
        if self.lengths.contains(&bytes.len()) { self.ranks.get(bytes) } else { None }
    }

    /// Merges the bytes of a token until two parts remain or nothing more can be merged. Returns the ends of the parts,
    /// preceded by 0.
    fn merge_short(&self, token: &[u8]) -> Vec<usize> {
        let mut ends: Vec<usize> = (0..=token.len()).collect();
        while ends.len() > 3 {
            let rank = |i: usize| Some((self.ranks.get(&token[ends[i]..ends[i + 2]])?, i));
            let Some((_, at)) = (0..ends.len() - 2).filter_map(rank).min() else { break };
            ends.remove(at + 1);
        }
        ends
    }

    /// Does the same in O(n log n), with a heap of pairs and parts linked to their neighbours.
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
        let starts = std::iter::successors(Some(0), |&at| (at < n).then(|| next[at]));
        Ok(starts.collect())
    }
}
