//! Text to ids and ids to bytes: the exact encoding, lowest rank first.
//!
//! A chunk that is a token by itself is answered by one look-up; any other is merged once and then
//! remembered, by each thread for itself.
//!
//! No lock here is ever waited for: a process may be forked while another thread holds it, and then the child has it
//! locked forever. Whoever does not get a lock does without what it protects.

mod merge;
pub mod ranks;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};

use aho_corasick::AhoCorasick;

use crate::chunk_map::{ChunkMap, Key, Pending};
use crate::error::{Cancel, Error, OutOfMemory, Result, reserved, shown};
use crate::hash::HashMap;
use crate::parallel;
use crate::special::special_matcher;
use crate::split::Splitter;
use merge::Merges;

/// How much text a thread takes at once.
const PIECE: usize = if cfg!(test) { 1 << 6 } else { 1 << 18 };
/// A longer token is not looked up as a whole: to find out whether it may be takes too long.
const LONG_TOKEN: usize = if cfg!(test) { 1 << 3 } else { 1 << 12 };
/// A text of less is encoded without a memory.
const SHORT: usize = if cfg!(test) { 1 << 3 } else { 1 << 12 };
/// This many chunks are encoded by a thread before it takes others, and this many ids decoded between two looks at
/// `Cancel`.
const BLOCK: usize = if cfg!(test) { 1 << 3 } else { 1 << 10 };
/// A memory that has grown to this many chunks or bytes forgets them all.
const REMEMBERED: usize = if cfg!(test) { 1 << 6 } else { 1 << 18 };
const REMEMBERED_BYTES: usize = 1 << 26;
/// A longer chunk is not remembered.
const LONG_CHUNK: usize = 1 << 12;
/// Memories kept for the threads of later calls.
const MEMORIES: usize = 32;

/// Finds special tokens; None if there are none to find.
type Matcher = Option<Arc<AhoCorasick>>;

/// Some special tokens, and what finds them.
type Subset = (Vec<String>, Matcher);

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
    /// The same for special tokens, whose ids may be far away.
    special_spans: HashMap<u32, (u32, u32)>,
    n_vocab: usize,
    /// The bytes of the longest token.
    longest: usize,
    stop_words: ChunkMap,
    special_ids: std::collections::HashMap<String, u32>,
    special: Matcher,
    /// The matchers for subsets of special tokens that were asked for.
    subsets: [RwLock<Option<Subset>>; SUBSETS],
    next_subset: AtomicUsize,
    memories: [Mutex<Option<Memory>>; MEMORIES],
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

impl Memory {
    fn is_full(&self) -> bool {
        let bytes = self.chunks.memory() + size_of::<u32>() * self.ids.capacity();
        self.chunks.len() >= REMEMBERED || bytes >= REMEMBERED_BYTES
    }
}

/// A memory that is given back.
struct Lent<'a> {
    memory: Memory,
    owner: &'a [Mutex<Option<Memory>>],
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.memory.ranks = Vec::new();
        let free = self.owner.iter().filter_map(|place| place.try_lock().ok()).find(|place| place.is_none());
        if let Some(mut place) = free {
            *place = Some(std::mem::take(&mut self.memory));
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
        cancel: &Cancel,
    ) -> Result<Self> {
        let mut ids = byte_ids.to_vec();
        let mut ranks: HashMap<u32, u32> = ids.iter().copied().zip(0..).collect();
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
            let parts = [spans[first as usize], spans[last as usize]];
            let start = bytes.len();
            make_room(&mut bytes, parts.iter().map(|(from, to)| (to - from) as usize).sum())?;
            for (from, to) in parts {
                bytes.extend_from_within(from as usize..to as usize);
            }
            spans.push((start as u32, bytes.len() as u32));
            by_rank.push((first, last));
            ranks.insert(id, ids.len() as u32);
            ids.push(id);
        }
        let merges = Merges::new(by_rank)?;

        let mut whole = ChunkMap::with_capacity(ids.len() + stop_words.len())?;
        let mut merged = Vec::new();
        for (rank, &(start, end)) in spans.iter().enumerate() {
            cancel.check()?;
            // A token whose own bytes merge to something else is never the encoding of a chunk.
            let token = &bytes[start as usize..end as usize];
            if token.len() > LONG_TOKEN {
                continue;
            }
            merges.apply(token, &mut merged, cancel)?;
            if merged == [rank as u32] {
                *whole.entry(token)? = u64::from(ids[rank]);
            }
        }
        let ordinary = ids.iter().chain(stop_words.iter().map(|word| &word.1)).max().map_or(0, |&id| id as usize + 1);
        let special = special_tokens.iter().map(|token| token.1 as usize + 1).max().unwrap_or(0);
        let mut span_of: Vec<Option<(u32, u32)>> = reserved(ordinary)?;
        span_of.resize(ordinary, None);
        for (&id, &span) in ids.iter().zip(&spans) {
            span_of[id as usize] = Some(span);
        }
        let mut append = |token: &[u8]| -> Result<(u32, u32)> {
            let start = bytes.len() as u32;
            make_room(&mut bytes, token.len())?;
            bytes.extend_from_slice(token);
            Ok((start, bytes.len() as u32))
        };
        let mut words = ChunkMap::with_capacity(stop_words.len())?;
        for (word, id) in stop_words {
            *whole.entry(word)? = u64::from(*id);
            words.entry(word)?;
            span_of[*id as usize] = Some(append(word)?);
        }
        let mut special_spans = HashMap::default();
        for (token, id) in &special_tokens {
            special_spans.insert(*id, append(token.as_bytes())?);
        }
        let longest = span_of.iter().flatten().chain(special_spans.values()).map(|(start, end)| end - start).max();
        let names: Vec<String> = special_tokens.iter().map(|token| token.0.clone()).collect();
        Ok(Self {
            splitter,
            whole,
            merges,
            ids,
            bytes,
            spans: span_of,
            special_spans,
            n_vocab: ordinary.max(special),
            longest: longest.unwrap_or(0) as usize,
            special: special_matcher(&names)?.map(Arc::new),
            stop_words: words,
            special_ids: special_tokens.into_iter().collect(),
            subsets: Default::default(),
            next_subset: AtomicUsize::new(0),
            memories: Default::default(),
            dropped: AtomicUsize::new(0),
        })
    }

    /// How many bytes of plain scanning encoding `size` bytes of text may come to.
    pub fn work(&self, size: usize) -> usize {
        self.splitter.work(size)
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
        parallel::concat(&parts, threads)
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
        Ok((parallel::concat(&ids, threads)?, parallel::concat(&sizes, threads)?))
    }

    /// The ids of a chunk for training that goes on from this vocabulary: none for a stop word, which is left out there.
    pub fn merged(&self, chunk: &[u8], cancel: &Cancel) -> Result<Vec<u32>> {
        if self.stop_words.get(chunk).is_some() {
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
        self.n_vocab
    }

    /// The bytes of `ids`, one after the other.
    pub fn decode(&self, ids: &[u32], cancel: &Cancel) -> Result<Vec<u8>> {
        let most = self.longest.min(LONG_TOKEN);
        let mut bytes: Vec<u8> = reserved(ids.len() * 4 + most * ids.len().min(BLOCK))?;
        for some in ids.chunks(BLOCK) {
            cancel.check()?;
            let size = match self.longest {
                0..=LONG_TOKEN => some.len() * most,
                _ => some.iter().try_fold(0, |size, &id| self.token(id).map(|token| size + token.len()))?,
            };
            bytes.try_reserve(size).map_err(|_| OutOfMemory(size))?;
            for &id in some {
                bytes.extend_from_slice(self.token(id)?);
            }
        }
        Ok(bytes)
    }

    #[inline]
    pub fn token(&self, id: u32) -> Result<&[u8]> {
        let (start, end) = match self.spans.get(id as usize) {
            Some(&Some(span)) => span,
            _ => self.special_span(id)?,
        };
        Ok(&self.bytes[start as usize..end as usize])
    }

    #[cold]
    fn special_span(&self, id: u32) -> Result<(u32, u32)> {
        let unknown =
            || Error::invalid(format!("there is no token {id}; the largest id is {}", self.n_vocab.saturating_sub(1)));
        self.special_spans.get(&id).copied().ok_or_else(unknown)
    }

    /// `text` without its special tokens, in pieces of about `PIECE` bytes where it may be cut, and these.
    fn pieces<'t>(&self, text: &'t str, special: &Special) -> Result<Vec<Piece<'t>>> {
        if let Some(found) = self.matcher(&special.forbidden)?.and_then(|matcher| matcher.find(text)) {
            let token = shown(&text[found.range()]);
            return Err(Error::invalid(format!(
                "the text holds the special token {token} at byte {}; to encode it as that token pass \
                 allowed_special={{{token}}} or allowed_special=\"all\", to encode it as plain text \
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
        for place in &self.subsets {
            if let Ok(subset) = place.try_read()
                && let Some((_, matcher)) = subset.as_ref().filter(|subset| subset.0 == *tokens)
            {
                return Ok(matcher.clone());
            }
        }
        let matcher = special_matcher(tokens)?.map(Arc::new);
        let oldest = self.next_subset.fetch_add(1, Relaxed) % SUBSETS;
        if let Ok(mut place) = self.subsets[oldest].try_write() {
            *place = Some((tokens.clone(), matcher.clone()));
        }
        Ok(matcher)
    }

    fn lent(&self) -> Lent<'_> {
        let memory = self.memories.iter().find_map(|place| place.try_lock().ok()?.take());
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
        let dropped = self.splitter.split(text, cancel, |chunk| match pending.add(chunk.as_bytes()) {
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
        if chunk.len() > LONG_CHUNK {
            memory.ranks = Vec::new();
            return Ok(());
        }
        if memory.is_full() {
            memory.chunks = ChunkMap::default();
            memory.ids = Vec::new();
        }
        *memory.chunks.entry_key(chunk, key)? = (memory.ids.len() as u64) << 32 | memory.ranks.len() as u64;
        memory.ids.extend_from_slice(&ids[start..]);
        Ok(())
    }
}

/// Makes room for `more` bytes of tokens, which are found by 32 bits.
fn make_room(bytes: &mut Vec<u8>, more: usize) -> Result<()> {
    if bytes.len() + more > u32::MAX as usize {
        return Err(Error::invalid("the tokens have more than 4 GiB of bytes in all"));
    }
    bytes.try_reserve(more).map_err(|_| Error::OutOfMemory(more))
}
