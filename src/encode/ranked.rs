//! The tokens that have ranks: the bytes, and the merges in the order they were made.

use std::sync::Arc;

use super::merge::{MergeTable, not_ranks};
use super::tokens::{Arena, Span};
use crate::error::{Cancel, Error, Result, try_push, try_with_capacity};
use crate::table::hash::HashMap;

/// The largest id of a token.
pub const MAX_ID: u32 = (1 << 24) - 1;
/// The maximum size of all merged tokens together: a few merges can describe a huge token by repeated doubling.
const MAX_BYTES: u64 = 1 << 28;

pub struct RankedTokens {
    /// rank → id
    pub ids: Vec<u32>,
    pub(super) merges: Arc<MergeTable>,
    /// Whether the bytes of every token are known to merge to that token.
    pub(super) merge_to_themselves: bool,
    pub(super) arena: Arena,
    /// rank → span
    pub(super) spans: Vec<Span>,
}

impl RankedTokens {
    /// `merges` are (first, last, id) in the order of their ranks. A merge may only use bytes and earlier merges.
    pub fn from_merges(byte_ids: &[u32; 256], merges: impl ExactSizeIterator<Item = (u32, u32, u32)>) -> Result<Self> {
        let (mut arena, mut spans) = Arena::of_bytes();
        let (mut ids, mut pairs) = (byte_ids.to_vec(), try_with_capacity(merges.len())?);
        let mut ranks = HashMap::with_capacity_and_hasher(256 + merges.len(), Default::default());
        ranks.extend(byte_ids.iter().copied().zip(0u32..));
        if ranks.len() < 256 || byte_ids.iter().any(|&id| id > MAX_ID) {
            return Err(Error::invalid(format!("the bytes must have different ids, which are at most {MAX_ID}")));
        }
        let mut size = 0;
        for (number, (first, last, id)) in merges.enumerate() {
            let failed = |reason| Error::invalid(format!("merge {number}, ({first}, {last}) -> {id}: {reason}"));
            let rank_of = |id| {
                let undefined = || {
                    let remedy = "list merges in the order they were made";
                    failed(format!("token {id} is not defined before this merge; {remedy}"))
                };
                ranks.get(&id).copied().ok_or_else(undefined)
            };
            let (first, last) = (rank_of(first)?, rank_of(last)?);
            let parts = [first, last].map(|rank| spans[rank as usize]);
            size += parts.map(|(start, end)| u64::from(end - start)).iter().sum::<u64>();
            if size > MAX_BYTES {
                return Err(failed(format!("the tokens have more than {MAX_BYTES} bytes in total")));
            }
            if id > MAX_ID {
                return Err(failed(format!("an id must be at most {MAX_ID}")));
            }
            if let Some(rank) = ranks.insert(id, ids.len() as u32) {
                return Err(failed(format!("id {id} is already used by {}", shown(arena.get(spans[rank as usize])))));
            }
            spans.push(arena.push_merged(parts[0], parts[1])?);
            pairs.push((first, last));
            ids.push(id);
        }
        Ok(Self { ids, merges: Arc::new(MergeTable::new(&pairs)?), merge_to_themselves: false, arena, spans })
    }

    /// Recovers the merges from tokens and their ranks, in any order. The ranks become the ids.
    pub fn from_ranks(mut tokens: Vec<(&[u8], u32)>, cancel: &Cancel) -> Result<Self> {
        if !tokens.is_sorted_by_key(|token| token.1) {
            tokens.sort_by_key(|token| token.1);
        }
        if let Some(&[(token, rank), (other, _)]) = tokens.windows(2).find(|pair| pair[0].1 == pair[1].1) {
            return Err(Error::invalid(format!("{} and {} have the same rank {rank}", shown(token), shown(other))));
        }
        if let Some(&(token, rank)) = tokens.last().filter(|token| token.1 > MAX_ID) {
            return Err(Error::invalid(format!("the rank of {} must be at most {MAX_ID}, got {rank}", shown(token))));
        }
        let mut byte_ids = [u32::MAX; 256];
        for &(token, rank) in &tokens {
            match *token {
                [] => return Err(Error::invalid(format!("the token of rank {rank} must not be empty"))),
                [byte] if byte_ids[byte as usize] < u32::MAX => return Err(not_ranks(token, "occurs twice")),
                [byte] => byte_ids[byte as usize] = rank,
                _ => {}
            }
        }
        if let Some(byte) = byte_ids.iter().position(|&id| id == u32::MAX) {
            let reason = "only byte-level vocabularies are supported";
            return Err(Error::invalid(format!("byte {byte} is not a token; {reason}")));
        }
        tokens.retain(|token| token.0.len() > 1);
        let (merged, merged_ids): (Vec<&[u8]>, Vec<u32>) = tokens.into_iter().unzip();
        let merges = Arc::new(MergeTable::of_tokens(&merged, cancel)?);
        let (mut arena, mut spans) = Arena::of_bytes();
        for token in merged {
            try_push(&mut spans, arena.push(token)?)?;
        }
        let ids = [&byte_ids[..], &merged_ids].concat();
        Ok(Self { ids, merges, merge_to_themselves: true, arena, spans })
    }

    /// Returns the bytes of the token of a rank.
    pub fn get(&self, rank: usize) -> &[u8] {
        self.arena.get(self.spans[rank])
    }

    /// Returns the merges, as ids: (first, last, id).
    pub fn merges(&self) -> impl ExactSizeIterator<Item = (u32, u32, u32)> {
        let id = |rank: u32| self.ids[rank as usize];
        self.merges
            .pairs
            .iter()
            .zip(&self.ids[256..])
            .map(move |(&(first, last), &merged)| (id(first), id(last), merged))
    }
}

/// Writes the bytes of a token for an error message, shortened if there are many.
fn shown(token: &[u8]) -> String {
    const MAX_SHOWN: usize = 40;
    let dots = if token.len() > MAX_SHOWN { "…" } else { "" };
    format!("b'{}{dots}'", token[..token.len().min(MAX_SHOWN)].escape_ascii())
}
