//! Text to ids and ids to bytes: the exact encoding, lowest rank first.
//!
//! A chunk that is a token by itself is answered by one look-up; any other is merged once and then
//! remembered for the rest of the call.

mod merge;
pub mod ranks;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use aho_corasick::AhoCorasick;
use rustc_hash::{FxHashMap, FxHashSet};

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
/// A text of less is encoded without a memory.
const SHORT: usize = 1 << 12;
/// A memory of more bytes is not kept.
const KEPT: usize = 1 << 26;
/// So many chunks are encoded by a thread before it takes others.
const BLOCK: usize = 1 << 12;
/// Chunks remembered before all are forgotten: a bound on memory.
const REMEMBERED: usize = 1 << 18;

/// Finds special tokens; None if there are none to find.
type Matcher = Option<Arc<AhoCorasick>>;

/// Subsets of the special tokens whose matchers are kept.
const SUBSETS: usize = 8;

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
    stop_words: FxHashSet<Vec<u8>>,
    special_ids: FxHashMap<String, u32>,
    special: Matcher,
    /// The matchers for the last subsets of special tokens that were asked for.
    subsets: Mutex<Vec<(Vec<String>, Matcher)>>,
    memories: Mutex<Vec<Memory>>,
    dropped: AtomicUsize,
}

/// Some of the special tokens.
pub enum Which {
    All,
    These(Vec<String>),
}

/// What special tokens in a text are taken for: tokens, a mistake, or text like any other.
pub struct Special {
    pub allowed: Which,
    pub forbidden: Which,
}

enum Piece<'t> {
    Text(&'t str),
    Special(u32),
}

/// What one thread remembers, for its next texts too.
#[derive(Default)]
struct Memory {
    /// chunk → where its ids are in `ids`: the start and, in the low 32 bits, their number.
    chunks: ChunkMap,
    ids: Vec<u32>,
    ranks: Vec<u32>,
}

/// A memory that is given back.
struct Lent<'a> {
    memory: Memory,
    owner: &'a Mutex<Vec<Memory>>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let size = self.memory.chunks.memory() + 4 * self.memory.ids.capacity();
        if let (true, Ok(mut owner)) = (size <= KEPT, self.owner.lock()) {
            owner.push(std::mem::take(&mut self.memory));
        }
    }
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
            stop_words: stop_words.iter().map(|word| word.0.clone()).collect(),
            special_ids: special_tokens.into_iter().collect(),
            subsets: Mutex::default(),
            memories: Mutex::default(),
            dropped: AtomicUsize::new(0),
        })
    }

    /// The ids of `text`. Long texts are cut where the pattern surely breaks, and encoded in parallel.
    pub fn encode(&self, text: &str, special: &Special, threads: usize, cancel: &Cancel) -> Result<Vec<u32>> {
        let pieces = self.pieces(text, special)?;
        if pieces.len() == 1 || threads == 1 {
            // A short text is over before a memory could be fetched.
            let (mut own, mut lent) = (Memory::default(), (text.len() >= SHORT).then(|| self.lent()));
            let memory = lent.as_mut().map_or(&mut own, |lent| &mut lent.memory);
            let mut ids = Vec::with_capacity(text.len() / 4 + 1);
            for piece in &pieces {
                self.encode_piece(piece, memory, &mut ids, cancel)?;
            }
            return Ok(ids);
        }
        let parts = parallel::map(
            &pieces,
            threads,
            || self.lent(),
            |lent, piece| {
                let mut ids = Vec::new();
                self.encode_piece(piece, &mut lent.memory, &mut ids, cancel)?;
                Ok(ids)
            },
        )?;
        Ok(parallel::concat(&parts, threads))
    }

    /// The last place where `text` may be cut without a change to its ids, if there is one: not within a special token.
    pub fn cut_before(&self, text: &str) -> Option<usize> {
        let newline = self.special_ids.keys().any(|token| token.contains('\n'));
        if newline { None } else { self.splitter.cut_before(text, 0, text.len()) }
    }

    /// The ids of each text, in parallel.
    pub fn encode_batch(
        &self,
        texts: &[&str],
        special: &Special,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<u32>>> {
        parallel::map(
            texts,
            threads,
            || self.lent(),
            |lent, text| {
                let mut ids = Vec::with_capacity(text.len() / 4 + 1);
                for piece in self.pieces(text, special)? {
                    self.encode_piece(&piece, &mut lent.memory, &mut ids, cancel)?;
                }
                Ok(ids)
            },
        )
    }

    /// The ids of many chunks in a row, each as it is, not split; and how many each has. In parallel.
    pub fn encode_each(&self, chunks: &[&[u8]], threads: usize, cancel: &Cancel) -> Result<(Vec<u32>, Vec<u32>)> {
        let blocks: Vec<&[&[u8]]> = chunks.chunks(BLOCK).collect();
        let parts = parallel::map(&blocks, threads, Vec::new, |ranks, block| {
            cancel.check()?;
            let (mut ids, mut sizes) = (Vec::new(), Vec::with_capacity(block.len()));
            for chunk in *block {
                let start = ids.len();
                if let Some(id) = self.whole.get(chunk) {
                    ids.push(id as u32);
                } else {
                    self.merges.apply(chunk, ranks, cancel)?;
                    ids.extend(ranks.iter().map(|&rank| self.ids[rank as usize]));
                }
                sizes.push((ids.len() - start) as u32);
            }
            Ok((ids, sizes))
        })?;
        let (ids, sizes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((parallel::concat(&ids, threads), parallel::concat(&sizes, threads)))
    }

    /// The ids of a chunk for training that goes on from this vocabulary: none for a stop word, which is left out there.
    pub fn merged(&self, chunk: &[u8], cancel: &Cancel) -> Result<Vec<u32>> {
        if self.stop_words.contains(chunk) {
            return Ok(Vec::new());
        }
        let mut ranks = Vec::new();
        self.merges.apply(chunk, &mut ranks, cancel)?;
        Ok(ranks.into_iter().map(|rank| self.ids[rank as usize]).collect())
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
            Error::invalid(format!("there is no token {id}; the largest id is {}", self.spans.len().saturating_sub(1)))
        };
        let (start, end) = span.ok_or_else(unknown)?;
        Ok(&self.bytes[start as usize..end as usize])
    }

    /// `text` without its special tokens, in pieces of about `PIECE` bytes where it may be cut, and these.
    fn pieces<'t>(&self, text: &'t str, special: &Special) -> Result<Vec<Piece<'t>>> {
        if let Some(found) = self.matcher(&special.forbidden)?.and_then(|matcher| matcher.find(text)) {
            let token = &text[found.range()];
            return Err(Error::invalid(format!(
                "the text holds the special token {token:?} at byte {}; to encode it as that token pass \
                 allowed_special={{{token:?}}} or allowed_special=\"all\", to encode it as plain text \
                 disallowed_special=() or allowed_special=\"none\"",
                found.start()
            )));
        }
        let mut pieces = Vec::new();
        let mut start = 0;
        if let Some(matcher) = self.matcher(&special.allowed)? {
            for found in matcher.find_iter(text) {
                self.cut(&text[start..found.start()], &mut pieces);
                pieces.push(Piece::Special(self.special_ids[&text[found.range()]]));
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

    fn matcher(&self, which: &Which) -> Result<Matcher> {
        let tokens = match which {
            Which::All => return Ok(self.special.clone()),
            Which::These(tokens) if tokens.is_empty() => return Ok(None),
            Which::These(tokens) => tokens,
        };
        let mut subsets = self.subsets.lock().expect("no panic while it is held");
        if let Some((_, matcher)) = subsets.iter().find(|subset| subset.0 == *tokens) {
            return Ok(matcher.clone());
        }
        let matcher = special_matcher(tokens)?.map(Arc::new);
        if subsets.len() == SUBSETS {
            subsets.remove(0);
        }
        subsets.push((tokens.clone(), matcher.clone()));
        Ok(matcher)
    }

    fn lent(&self) -> Lent<'_> {
        let memory = self.memories.lock().expect("no panic while it is held").pop();
        Lent { memory: memory.unwrap_or_default(), owner: &self.memories }
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
