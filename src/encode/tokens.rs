//! The bytes of each token, and decoding: ids → bytes.

use super::OtherTokens;
use super::ranked::{MISSING, RankedTokens};
use crate::error::{Cancel, Error, Result, check_memory, try_with_capacity};
use crate::table::hash::HashMap;

/// The number of ids that are decoded between two checks of `Cancel`.
const BLOCK: usize = if cfg!(test) { 1 << 3 } else { 1 << 12 };
/// Tokens are copied in steps of this many bytes: a constant size is faster to copy than the exact one.
const WINDOW: usize = 16;

/// Where a token starts and ends in an `Arena`.
pub type Span = (u32, u32);

/// The bytes of many tokens, concatenated.
#[derive(Clone)]
pub struct Arena(Vec<u8>);

impl Arena {
    /// Creates an arena of the 256 single bytes. Returns their spans as well.
    pub fn of_bytes() -> (Self, Vec<Span>) {
        (Self((0..=255).collect()), (0..256).map(|byte| (byte, byte + 1)).collect())
    }

    #[inline]
    pub fn get(&self, (start, end): Span) -> &[u8] {
        &self.0[start as usize..end as usize]
    }

    pub fn push(&mut self, token: &[u8]) -> Result<Span> {
        let start = self.reserve(token.len())?;
        self.0.extend_from_slice(token);
        Ok((start, self.0.len() as u32))
    }

    /// Adds the token that two tokens merge to.
    pub fn push_merged(&mut self, first: Span, last: Span) -> Result<Span> {
        let parts = [first, last];
        let start = self.reserve(parts.iter().map(|(start, end)| (end - start) as usize).sum())?;
        for (start, end) in parts {
            self.0.extend_from_within(start as usize..end as usize);
        }
        Ok((start, self.0.len() as u32))
    }

    /// Makes room for `more` bytes and returns where they will start. Spans have 32 bits, which limits the size.
    fn reserve(&mut self, more: usize) -> Result<u32> {
        if self.0.len() + more > u32::MAX as usize {
            return Err(Error::invalid("the tokens add up to more than 4 GiB"));
        }
        self.0.try_reserve(more).map_err(|_| Error::OutOfMemory(more))?;
        Ok(self.0.len() as u32)
    }
}

/// The bytes of each token, by id.
pub struct Tokens {
    /// Ends with `WINDOW` bytes that belong to no token.
    arena: Arena,
    /// id → span, for the tokens of text between special and added tokens. Empty where there is no such id.
    pub(super) spans: Vec<Span>,
    /// id → span, for special, added and decode-only tokens. Their ids may be far beyond the others.
    special_spans: HashMap<u32, Span>,
    n_vocab: usize,
}

impl Tokens {
    /// `ids` are those of `ranked`, or `MISSING` for tokens that are left out.
    pub fn new(ranked: &RankedTokens, ids: &[u32], others: &OtherTokens) -> Result<Self> {
        let OtherTokens { stop_words, special, added, phrases, decode_only, hidden: _ } = others;
        let mut arena = ranked.arena.clone();
        let merged = ids.iter().copied().zip(ranked.spans.iter().copied()).filter(|token| token.0 != MISSING);
        let whole = stop_words.iter().map(|word| word.1).chain(phrases.iter().map(|phrase| phrase.1));
        let ids = merged.clone().map(|token| token.0).chain(whole);
        let n_ordinary = ids.max().map_or(0, |id| id as usize + 1);
        let mut spans: Vec<Span> = try_with_capacity(n_ordinary)?;
        spans.resize(n_ordinary, (0, 0));
        for (id, span) in merged {
            spans[id as usize] = span;
        }
        for (word, id) in stop_words {
            spans[*id as usize] = arena.push(word)?;
        }
        for (parts, id) in phrases {
            let mut bytes = Vec::new();
            for &part in parts {
                let &span = spans.get(part as usize).filter(|span| span.1 > 0).ok_or_else(|| {
                    Error::invalid(format!("phrase {id} contains {part}, which is not the id of a token"))
                })?;
                bytes.extend_from_slice(arena.get(span));
            }
            spans[*id as usize] = arena.push(&bytes)?;
        }
        let found = special.iter().chain(added).map(|token| (token.name.as_bytes(), token.id));
        let mut special_spans = HashMap::default();
        for (token, id) in found.chain(decode_only.iter().map(|(token, id)| (&token[..], *id))) {
            special_spans.insert(id, arena.push(token)?);
        }
        let n_special = special_spans.keys().map(|id| *id as usize + 1).max().unwrap_or(0);
        arena.push(&[0; WINDOW])?;
        Ok(Self { arena, spans, special_spans, n_vocab: n_ordinary.max(n_special) })
    }

    /// Returns one more than the largest id.
    pub fn n_vocab(&self) -> usize {
        self.n_vocab
    }

    /// Returns the bytes of a token.
    pub fn get(&self, id: u32) -> Result<&[u8]> {
        Ok(self.arena.get(self.span(id)?))
    }

    /// Returns the bytes of a token that is neither special nor added.
    pub fn ordinary(&self, id: u32) -> Option<&[u8]> {
        self.spans.get(id as usize).filter(|span| span.1 > 0).map(|&span| self.arena.get(span))
    }

    #[inline(always)]
    fn span(&self, id: u32) -> Result<Span> {
        match self.spans.get(id as usize) {
            Some(&span) if span.1 > 0 => Ok(span),
            _ => self.special_span(id),
        }
    }

    #[cold]
    fn special_span(&self, id: u32) -> Result<Span> {
        let unknown =
            || Error::invalid(format!("there is no token {id}; the largest id is {}", self.n_vocab.saturating_sub(1)));
        self.special_spans.get(&id).copied().ok_or_else(unknown)
    }

    /// Returns the bytes of `ids`, concatenated.
    pub fn decode(&self, ids: &[u32], cancel: &Cancel) -> Result<Vec<u8>> {
        let mut size = 0;
        for block in ids.chunks(BLOCK) {
            cancel.check()?;
            for &id in block {
                let (start, end) = self.span(id)?;
                size += (end - start) as usize;
            }
        }
        check_memory(size + WINDOW)?;
        let mut bytes = vec![0; size + WINDOW]; // does not touch the memory yet
        let mut at = 0;
        for block in ids.chunks(BLOCK) {
            cancel.check()?;
            for &id in block {
                let (start, end) = self.span(id)?;
                let (mut from, mut to) = (start as usize, at);
                at += (end - start) as usize;
                // Whatever is copied beyond the token is overwritten by the next one or cut off in the end.
                while to < at {
                    bytes[to..to + WINDOW].copy_from_slice(&self.arena.0[from..from + WINDOW]);
                    (from, to) = (from + WINDOW, to + WINDOW);
                }
            }
        }
        bytes.truncate(size);
        Ok(bytes)
    }
}
