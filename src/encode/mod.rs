//! Text to ids and ids to bytes: the exact encoding, lowest rank first.
//!
//! A chunk that is a token by itself is answered by one look-up; any other is merged once and then
//! remembered for the rest of the call.

mod merge;
pub mod ranks;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use aho_corasick::AhoCorasick;
use rustc_hash::FxHashMap;

use crate::chunk_map::{ChunkMap, Key, Pending};
use crate::error::{Cancel, Error, Result};
use crate::parallel;
use crate::special::special_matcher;
use crate::split::Splitter;
use merge::Merges;

/// How much text a thread takes at once.
const PIECE: usize = 1 << 18;
/// A longer token is not looked up as a whole: to find out whether it may be takes too long.
const LONG_TOKEN: usize = 1 << 12;
/// Chunks remembered before all are forgotten: a bound on memory.
const REMEMBERED: usize = 1 << 18;

pub struct Encoder {
    splitter: Splitter,
    /// Chunks that are one token: stop words, and tokens that merging their own bytes makes.
    whole: ChunkMap,
    merges: Merges,
    /// rank → id
    ids: Vec<u32>,
    /// The bytes of all tokens, and by id where they stand there.
    bytes: Vec<u8>,
    spans: Vec<Option<(u32, u32)>>,
    special_ids: FxHashMap<String, u32>,
    special: Option<Arc<AhoCorasick>>,
    /// The matcher for the last subset of special tokens that was asked for.
    subset: Mutex<Option<(Vec<String>, Arc<AhoCorasick>)>>,
    dropped: AtomicUsize,
}

/// What special tokens in a text are taken for.
pub enum Special {
    /// Text like any other.
    Text,
    /// Tokens, all of them.
    All,
    /// Tokens, if they are among these, and text otherwise.
    Only(Vec<String>),
    /// A mistake.
    Raise,
}

enum Piece<'t> {
    Text(&'t str),
    Special(u32),
}

/// What one thread remembers.
#[derive(Default)]
struct Memory {
    /// chunk → where its ids are in `ids`: the start and, in the low 32 bits, their number.
    chunks: ChunkMap,
    ids: Vec<u32>,
    ranks: Vec<u32>,
}

impl Encoder {
    /// `merges` are (first, last, id) by rank, each after the two that it is made of.
    pub fn new(
        splitter: Splitter,
        byte_ids: &[u32; 256],
        stop_words: &[(Vec<u8>, u32)],
        merges: &[(u32, u32, u32)],
        special_tokens: Vec<(String, u32)>,
    ) -> Result<Self> {
        let mut ids = byte_ids.to_vec();
        let mut ranks: FxHashMap<u32, u32> = ids.iter().copied().zip(0..).collect();
        let mut bytes: Vec<u8> = (0..=255).collect();
        let mut spans: Vec<(u32, u32)> = (0..256).map(|byte| (byte, byte + 1)).collect();
        let mut by_rank = Vec::with_capacity(merges.len());
        for &(first, last, id) in merges {
            let rank_of = |id| {
                let unmade = || {
                    Error::invalid(format!("the merge ({first}, {last}) uses token {id}, which is not made before it"))
                };
                ranks.get(&id).copied().ok_or_else(unmade)
            };
            let (first, last) = (rank_of(first)?, rank_of(last)?);
            let start = bytes.len();
            for (from, to) in [spans[first as usize], spans[last as usize]] {
                bytes.extend_from_within(from as usize..to as usize);
            }
            if u32::try_from(bytes.len()).is_err() {
                return Err(Error::invalid("the tokens have more than 4 GiB of bytes in all"));
            }
            spans.push((start as u32, bytes.len() as u32));
            by_rank.push((first, last));
            ranks.insert(id, ids.len() as u32);
            ids.push(id);
        }
        let merges = Merges::new(&by_rank)?;

        let mut whole = ChunkMap::with_capacity(ids.len() + stop_words.len());
        let mut merged = Vec::new();
        for (rank, &(start, end)) in spans.iter().enumerate() {
            // A token whose own bytes merge to something else is never the encoding of a chunk.
            let token = &bytes[start as usize..end as usize];
            if token.len() > LONG_TOKEN {
                continue;
            }
            merges.apply(token, &mut merged, &Cancel::default())?;
            if merged == [rank as u32] {
                *whole.entry(token) = u64::from(ids[rank]);
            }
        }
        let largest = ids
            .iter()
            .chain(stop_words.iter().map(|word| &word.1))
            .chain(special_tokens.iter().map(|token| &token.1))
            .max();
        let mut span_of = vec![None; largest.map_or(0, |&id| id as usize + 1)];
        for (&id, &span) in ids.iter().zip(&spans) {
            span_of[id as usize] = Some(span);
        }
        for (word, id) in stop_words {
            *whole.entry(word) = u64::from(*id);
        }
        let words = stop_words.iter().map(|(word, id)| (&word[..], *id));
        for (token, id) in words.chain(special_tokens.iter().map(|(token, id)| (token.as_bytes(), *id))) {
            let start = bytes.len() as u32;
            bytes.extend_from_slice(token);
            span_of[id as usize] = Some((start, bytes.len() as u32));
        }
        let names: Vec<String> = special_tokens.iter().map(|token| token.0.clone()).collect();
        Ok(Self {
            splitter,
            whole,
            merges,
            ids,
            bytes,
            spans: span_of,
            special: special_matcher(&names)?.map(Arc::new),
            special_ids: special_tokens.into_iter().collect(),
            subset: Mutex::default(),
            dropped: AtomicUsize::new(0),
        })
    }

    /// The ids of `text`. Long texts are cut where the pattern surely breaks, and encoded in parallel.
    pub fn encode(&self, text: &str, special: &Special, threads: usize, cancel: &Cancel) -> Result<Vec<u32>> {
        let pieces = self.pieces(text, special)?;
        if pieces.len() == 1 || threads == 1 {
            let mut memory = Memory::default();
            let mut ids = Vec::with_capacity(text.len() / 4 + 1);
            for piece in &pieces {
                self.encode_piece(piece, &mut memory, &mut ids, cancel)?;
            }
            return Ok(ids);
        }
        let parts = parallel::map(&pieces, threads, Memory::default, |memory, piece| {
            let mut ids = Vec::new();
            self.encode_piece(piece, memory, &mut ids, cancel)?;
            Ok(ids)
        })?;
        Ok(parallel::concat(&parts, threads))
    }

    /// The ids of each text, in parallel.
    pub fn encode_batch(
        &self,
        texts: &[&str],
        special: &Special,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<u32>>> {
        parallel::map(texts, threads, Memory::default, |memory, text| {
            let mut ids = Vec::with_capacity(text.len() / 4 + 1);
            for piece in self.pieces(text, special)? {
                self.encode_piece(&piece, memory, &mut ids, cancel)?;
            }
            Ok(ids)
        })
    }

    /// Bytes of all texts so far that the pattern does not match: none for the named ones.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Relaxed)
    }

    /// One more than the largest id.
    pub fn n_vocab(&self) -> usize {
        self.spans.len()
    }

    /// The bytes of `ids`, one after the other.
    pub fn decode(&self, ids: &[u32], cancel: &Cancel) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(ids.len() * 4);
        for some in ids.chunks(1 << 16) {
            cancel.check()?;
            for &id in some {
                bytes.extend_from_slice(self.token(id)?);
            }
        }
        Ok(bytes)
    }

    pub fn token(&self, id: u32) -> Result<&[u8]> {
        let span = self.spans.get(id as usize).copied().flatten();
        let unknown = || {
            Error::invalid(format!("there is no token {id}: ids go from 0 to {}", self.spans.len().saturating_sub(1)))
        };
        let (start, end) = span.ok_or_else(unknown)?;
        Ok(&self.bytes[start as usize..end as usize])
    }

    /// `text` without its special tokens, in pieces of about `PIECE` bytes where it may be cut, and these.
    fn pieces<'t>(&self, text: &'t str, special: &Special) -> Result<Vec<Piece<'t>>> {
        let matcher = match special {
            Special::Text => None,
            Special::All | Special::Raise => self.special.clone(),
            Special::Only(tokens) => self.subset(tokens)?,
        };
        let mut pieces = Vec::new();
        let mut start = 0;
        if let Some(matcher) = matcher {
            for found in matcher.find_iter(text) {
                let token = &text[found.range()];
                if let Special::Raise = special {
                    return Err(Error::invalid(format!(
                        "the text holds the special token {token:?} at byte {}; allowed_special=\"all\" encodes it as \
                         that token, allowed_special=\"none\" as plain text",
                        found.start()
                    )));
                }
                self.cut(&text[start..found.start()], &mut pieces);
                pieces.push(Piece::Special(self.special_ids[token]));
                start = found.end();
            }
        }
        self.cut(&text[start..], &mut pieces);
        Ok(pieces)
    }

    fn cut<'t>(&self, text: &'t str, pieces: &mut Vec<Piece<'t>>) {
        let mut start = 0;
        while text.len() - start > 2 * PIECE {
            let at = text.floor_char_boundary(start + PIECE);
            let Some(cut) = self.splitter.cut_before(text, start, at) else { break };
            pieces.push(Piece::Text(&text[start..cut]));
            start = cut;
        }
        pieces.push(Piece::Text(&text[start..]));
    }

    fn subset(&self, tokens: &[String]) -> Result<Option<Arc<AhoCorasick>>> {
        if tokens.is_empty() {
            return Ok(None);
        }
        let mut subset = self.subset.lock().expect("no panic while it is held");
        match &*subset {
            Some((last, matcher)) if last == tokens => Ok(Some(matcher.clone())),
            _ => {
                if let Some(unknown) = tokens.iter().find(|token| !self.special_ids.contains_key(*token)) {
                    return Err(Error::invalid(format!(
                        "{unknown:?} is allowed, but is no special token of this tokenizer"
                    )));
                }
                let matcher = special_matcher(tokens)?.map(Arc::new);
                *subset = matcher.clone().map(|matcher| (tokens.to_vec(), matcher));
                Ok(matcher)
            }
        }
    }

    fn encode_piece(&self, piece: &Piece, memory: &mut Memory, ids: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        let text = match *piece {
            Piece::Text(text) => text,
            Piece::Special(id) => {
                ids.push(id);
                return Ok(());
            }
        };
        let mut pending = Pending::new(text.as_bytes());
        let dropped = self.splitter.split(text, |chunk| match pending.add(chunk.as_bytes()) {
            true => self.encode_chunks(&mut pending, memory, ids, cancel),
            false => Ok(()),
        })?;
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Relaxed);
        }
        self.encode_chunks(&mut pending, memory, ids, cancel)
    }

    #[inline]
    fn encode_chunks(
        &self,
        pending: &mut Pending,
        memory: &mut Memory,
        ids: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        cancel.check()?;
        for (key, chunk) in pending.take(&self.whole) {
            if let Some(id) = self.whole.get_key(chunk, key) {
                ids.push(id as u32);
            } else if let Some(span) = memory.chunks.get_key(chunk, key) {
                let start = (span >> 32) as usize;
                ids.extend_from_slice(&memory.ids[start..start + (span & 0xFFFF_FFFF) as usize]);
            } else {
                self.encode_chunk(chunk, key, memory, ids, cancel)?;
            }
        }
        Ok(())
    }

    fn encode_chunk(
        &self,
        chunk: &[u8],
        key: Key,
        memory: &mut Memory,
        ids: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        self.merges.apply(chunk, &mut memory.ranks, cancel)?;
        let start = ids.len();
        ids.extend(memory.ranks.iter().map(|&rank| self.ids[rank as usize]));
        if memory.chunks.len() >= REMEMBERED {
            memory.chunks = ChunkMap::default();
            memory.ids.clear();
        }
        *memory.chunks.entry_key(chunk, key) = (memory.ids.len() as u64) << 32 | memory.ranks.len() as u64;
        memory.ids.extend_from_slice(&ids[start..]);
        Ok(())
    }
}
