//! The tokens that have ranks: the bytes, and the merges in the order they were made.

use std::sync::Arc;

use super::merge::{Listed, MergeTable, not_ranks};
use super::tokens::{Arena, Span};
use crate::error::{Cancel, Error, Result, try_collect, try_push, try_with_capacity};
use crate::table::hash::{HashMap, HashSet};

/// The largest id of a token.
pub const MAX_ID: u32 = (1 << 24) - 1;
/// The id of a byte that is not a token. Such bytes are left out of a chunk before it is merged.
pub const MISSING: u32 = u32::MAX;
/// The maximum size of all merged tokens together: a few merges can describe a huge token by repeated doubling.
const MAX_BYTES: u64 = 1 << 28;

/// The bytes and the id of a token.
pub type Token<'t> = (&'t [u8], u32);

pub struct RankedTokens {
    /// rank → id, or `MISSING`
    pub ids: Vec<u32>,
    pub(super) merges: Arc<MergeTable>,
    /// Whether the bytes of every token are known to merge to that token.
    pub(super) merge_to_themselves: bool,
    pub(super) arena: Arena,
    /// rank → span
    pub(super) spans: Vec<Span>,
}

impl RankedTokens {
    /// `merges` are (first, last, id) in the order of their ranks. They may use tokens that later merges make.
    pub fn from_merges(byte_ids: &[u32; 256], merges: impl ExactSizeIterator<Item = (u32, u32, u32)>) -> Result<Self> {
        let merges = try_collect(merges)?;
        let (mut arena, mut spans) = Arena::of_bytes();
        let mut ids = byte_ids.to_vec();
        let mut ranks = HashMap::with_capacity_and_hasher(256 + merges.len(), Default::default());
        let present = byte_ids.iter().copied().zip(0u32..).filter(|(id, _)| *id != MISSING);
        ranks.extend(present.clone());
        if ranks.len() < present.clone().count() || present.clone().any(|(id, _)| id > MAX_ID) {
            return Err(Error::invalid(format!("the bytes must have different ids, which are at most {MAX_ID}")));
        }
        let failed = |number: usize, reason: &str| {
            let (first, last, id) = merges[number];
            Error::invalid(format!("merge {number}, ({first}, {last}) -> {id}: {reason}"))
        };
        let mut size = 0;
        let mut merge = |number: usize, parts: [Span; 2], arena: &mut Arena| {
            size += parts.map(|(start, end)| u64::from(end - start)).iter().sum::<u64>();
            if size > MAX_BYTES {
                return Err(failed(number, &format!("the tokens have more than {MAX_BYTES} bytes in total")));
            }
            arena.push_merged(parts[0], parts[1])
        };
        let mut waiting = Vec::new(); // for tokens of later merges
        let mut pairs = try_with_capacity(merges.len())?;
        for (number, &(first, last, id)) in merges.iter().enumerate() {
            if id > MAX_ID {
                return Err(failed(number, &format!("an id must be at most {MAX_ID}")));
            }
            let (first, last) = (rank_of(&ranks, first), rank_of(&ranks, last));
            let parts = [first, last].map(|rank| spans.get(rank as usize).copied().unwrap_or(UNKNOWN));
            pairs.push((first, last));
            if let Some(rank) = ranks.insert(id, ids.len() as u32) {
                let other = shown(arena.get(spans[rank as usize]));
                return Err(failed(number, &format!("id {id} is already used by {other}")));
            }
            if parts.contains(&UNKNOWN) {
                try_push(&mut waiting, number)?;
                spans.push(UNKNOWN);
            } else {
                spans.push(merge(number, parts, &mut arena)?);
            }
            ids.push(id);
        }
        for &number in &waiting {
            let (first, last, _) = merges[number];
            pairs[number] = (rank_of(&ranks, first), rank_of(&ranks, last));
            for (id, rank) in [(first, pairs[number].0), (last, pairs[number].1)] {
                if rank == u32::MAX {
                    return Err(failed(number, &format!("token {id} is not defined; add the merge that makes it")));
                }
            }
        }
        let mut stack = Vec::new();
        for &number in &waiting {
            try_push(&mut stack, number)?;
            while let Some(&number) = stack.last() {
                let (first, last) = pairs[number];
                let unknown = [first, last].into_iter().find(|&rank| spans[rank as usize] == UNKNOWN);
                if let Some(rank) = unknown {
                    if stack.len() > waiting.len() {
                        return Err(failed(number, "the token is merged from itself"));
                    }
                    try_push(&mut stack, rank as usize - 256)?;
                    continue;
                }
                stack.pop();
                if spans[256 + number] == UNKNOWN {
                    let parts = [first, last].map(|rank| spans[rank as usize]);
                    spans[256 + number] = merge(number, parts, &mut arena)?;
                }
            }
        }
        let widths = try_collect(spans.iter().map(|(start, end)| end - start))?;
        Ok(Self { ids, merges: Arc::new(MergeTable::new(&pairs, widths)?), merge_to_themselves: false, arena, spans })
    }

    /// Recovers the merges from tokens and their ranks, in any order, as tiktoken merges them. The ranks become the
    /// ids. Returns also the tokens that no merge makes.
    pub fn from_ranks<'t>(mut tokens: Vec<Token<'t>>, cancel: &Cancel) -> Result<(Self, Vec<Token<'t>>)> {
        if !tokens.is_sorted_by_key(|token| token.1) {
            tokens.sort_by_key(|token| token.1);
        }
        if let Some(&[(token, rank), (other, _)]) = tokens.windows(2).find(|pair| pair[0].1 == pair[1].1) {
            return Err(Error::invalid(format!("{} and {} have the same rank {rank}", shown(token), shown(other))));
        }
        if let Some(&(token, rank)) = tokens.last().filter(|token| token.1 > MAX_ID) {
            return Err(Error::invalid(format!("the rank of {} must be at most {MAX_ID}, got {rank}", shown(token))));
        }
        let byte_ids = byte_ids(&tokens)?;
        if let Some(byte) = byte_ids.iter().position(|&id| id == MISSING) {
            let reason = "only byte-level vocabularies are supported";
            return Err(Error::invalid(format!("byte {byte} is not a token; {reason}")));
        }
        tokens.retain(|token| token.0.len() > 1);
        let values = try_collect(tokens.iter().map(|token| token.0))?;
        let (merges, order) = MergeTable::of_tokens(&values, cancel)?;
        Self::of_merges(byte_ids, &tokens, merges, &order)
    }

    /// Reduces a list of merges to those that can apply, at most one for each token. `tokens` and their ids are in any
    /// order and different; `listed` and `size` are those of `MergeTable::of_list`, where the index of a token is that
    /// among those of more than one byte. Returns what `from_ranks` does.
    pub fn from_list<'t>(
        mut tokens: Vec<Token<'t>>,
        listed: &Listed,
        size: usize,
        cancel: &Cancel,
    ) -> Result<(Self, Vec<Token<'t>>)> {
        let byte_ids = byte_ids(&tokens)?;
        tokens.retain(|token| token.0.len() > 1);
        let values = try_collect(tokens.iter().map(|token| token.0))?;
        let (merges, order) = MergeTable::of_list(&values, listed, size, cancel)?;
        Self::of_merges(byte_ids, &tokens, merges, &order)
    }

    /// `order` are the indices in `tokens` of the tokens that `merges` make. Returns also the others.
    fn of_merges<'t>(
        byte_ids: [u32; 256],
        tokens: &[Token<'t>],
        merges: MergeTable,
        order: &[usize],
    ) -> Result<(Self, Vec<Token<'t>>)> {
        let (mut arena, mut spans) = Arena::of_bytes();
        let (mut ids, mut is_made) = (byte_ids.to_vec(), try_collect(tokens.iter().map(|_| false))?);
        for &index in order {
            is_made[index] = true;
            try_push(&mut spans, arena.push(tokens[index].0)?)?;
            try_push(&mut ids, tokens[index].1)?;
        }
        let (mut others, mut seen) = (Vec::new(), HashSet::default());
        for (&token, _) in tokens.iter().zip(is_made).filter(|(_, is_made)| !is_made) {
            if !seen.insert(token.0) {
                return Err(not_ranks(token.0, "occurs twice"));
            }
            try_push(&mut others, token)?;
        }
        Ok((Self { ids, merges: Arc::new(merges), merge_to_themselves: true, arena, spans }, others))
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

/// The span of a token that is not known yet.
const UNKNOWN: Span = (0, 0);

/// Returns the rank of an id, or `u32::MAX` if it has none.
fn rank_of(ranks: &HashMap<u32, u32>, id: u32) -> u32 {
    ranks.get(&id).copied().unwrap_or(u32::MAX)
}

/// Returns the ids of the tokens of one byte.
fn byte_ids(tokens: &[Token]) -> Result<[u32; 256]> {
    let mut byte_ids = [MISSING; 256];
    for &(token, id) in tokens {
        match *token {
            [] => return Err(Error::invalid(format!("the token of rank {id} must not be empty"))),
            [byte] if byte_ids[byte as usize] != MISSING => return Err(not_ranks(token, "occurs twice")),
            [byte] => byte_ids[byte as usize] = id,
            _ => {}
        }
    }
    Ok(byte_ids)
}

/// Writes the bytes of a token for an error message, shortened if there are many.
fn shown(token: &[u8]) -> String {
    const MAX_SHOWN: usize = 40;
    let dots = if token.len() > MAX_SHOWN { "…" } else { "" };
    format!("b'{}{dots}'", token[..token.len().min(MAX_SHOWN)].escape_ascii())
}
