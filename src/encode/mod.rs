//! Encodes text as ids and decodes ids to bytes. The encoding is exact: in each chunk, the pair of lowest rank merges
//! first.
//!
//! A chunk that is a token by itself takes a single look-up. Any other chunk is merged (`merge`) and then cached by the
//! thread that merged it (`cache`).
//!
//! An encoder never changes, and any number of threads can use it. It never waits for a lock: a lock that another
//! thread holds while the process forks stays locked in the child forever.

mod cache;
mod merge;
pub mod ranks;
mod special;
#[cfg(test)]
mod tests;
mod tokens;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::chunk_map::{ChunkMap, Key, LOOKUP_GROUP, Pending};
use crate::error::{Cancel, Error, Result, quoted, try_push, try_reserve, try_with_capacity};
use crate::hash::HashMap;
use crate::parallel;
use crate::split::Splitter;
use cache::{CachePool, ChunkCache, MAX_CHUNK_BYTES};
use merge::Merges;
use special::SpecialTokens;
pub use special::{SpecialRules, SpecialSet};
use tokens::{Arena, Tokens};

/// The amount of text that a thread takes at once.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 6 } else { 1 << 18 };
/// The number of chunks that a thread takes at once in `encode_chunks`.
const BLOCK_CHUNKS: usize = if cfg!(test) { 1 << 3 } else { 1 << 10 };
/// Longer tokens are not in `Encoder::whole_chunks`: checking whether they may be would take too long.
const MAX_WHOLE_BYTES: usize = if cfg!(test) { 1 << 3 } else { 1 << 12 };
/// Shorter texts are encoded without a cache from the pool: fetching one would take longer than encoding them.
const MIN_CACHED_TEXT: usize = if cfg!(test) { 1 << 3 } else { 1 << 12 };

pub struct Encoder {
    splitter: Splitter,
    /// Chunks that encode to a single id: stop words, and the tokens that their own bytes merge to.
    whole_chunks: ChunkMap,
    stop_words: ChunkMap,
    merges: Merges,
    /// rank → id
    ids: Vec<u32>,
    tokens: Tokens,
    special: SpecialTokens,
    caches: CachePool,
    /// Bytes of all texts so far that the pattern did not match.
    dropped: AtomicUsize,
}

/// A part of a text that is encoded as a unit.
enum Piece<'t> {
    Text(&'t str),
    Special(u32),
}

impl Encoder {
    /// `merges` are (first, last, id) in the order of their ranks. A merge may only use bytes and earlier merges.
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
        let (mut arena, mut spans) = Arena::of_bytes(); // rank → span
        let mut by_rank = Vec::with_capacity(merges.len());
        for &(first, last, id) in merges {
            let rank_of = |id| {
                let undefined =
                    || Error::invalid(format!("merge ({first}, {last}) uses token {id} before it is defined"));
                ranks.get(&id).copied().ok_or_else(undefined)
            };
            let (first, last) = (rank_of(first)?, rank_of(last)?);
            spans.push(arena.push_merged(spans[first as usize], spans[last as usize])?);
            by_rank.push((first, last));
            ranks.insert(id, ids.len() as u32);
            ids.push(id);
        }
        let merges = Merges::new(by_rank)?;

        let mut whole_chunks = ChunkMap::with_capacity(ids.len() + stop_words.len())?;
        let mut merged = Vec::new();
        for (rank, &span) in spans.iter().enumerate() {
            cancel.check()?;
            let token = arena.get(span);
            if token.len() > MAX_WHOLE_BYTES {
                continue;
            }
            // A token whose own bytes merge to something else is never the encoding of a chunk.
            merges.apply(token, &mut merged, cancel)?;
            if merged == [rank as u32] {
                *whole_chunks.entry(token)? = u64::from(ids[rank]);
            }
        }
        let mut stop_word_set = ChunkMap::with_capacity(stop_words.len())?;
        for (word, id) in stop_words {
            *whole_chunks.entry(word)? = u64::from(*id);
            stop_word_set.entry(word)?;
        }
        let by_id = ids.iter().copied().zip(spans.iter().copied());
        let tokens = Tokens::new(arena, by_id, stop_words, &special_tokens)?;
        Ok(Self {
            splitter,
            whole_chunks,
            stop_words: stop_word_set,
            merges,
            ids,
            tokens,
            special: SpecialTokens::new(special_tokens)?,
            caches: CachePool::default(),
            dropped: AtomicUsize::new(0),
        })
    }

    /// Returns the cost of encoding `size` bytes of text, in the unit of `Splitter::cost`.
    pub fn cost(&self, size: usize) -> usize {
        self.splitter.cost(size)
    }

    /// Encodes a text. Long texts are cut where no chunk can cross the cut, and encoded in parallel.
    pub fn encode(&self, text: &str, special: &SpecialRules, threads: usize, cancel: &Cancel) -> Result<Vec<u32>> {
        let pieces = self.pieces(text, special)?;
        if pieces.len() == 1 || threads == 1 {
            let (mut own, mut pooled) =
                (ChunkCache::default(), (text.len() >= MIN_CACHED_TEXT).then(|| self.caches.take()));
            let cache = pooled.as_mut().map_or(&mut own, |guard| &mut guard.cache);
            let mut ids = try_with_capacity(text.len() / 4 + LOOKUP_GROUP)?;
            for piece in &pieces {
                self.encode_piece(piece, cache, &mut ids, cancel)?;
            }
            return Ok(ids);
        }
        let parts = parallel::map(
            &pieces,
            threads,
            || self.caches.take(),
            |guard, piece| {
                let mut ids = Vec::new();
                self.encode_piece(piece, &mut guard.cache, &mut ids, cancel)?;
                Ok(ids)
            },
        )?;
        parallel::concat(&parts, threads)
    }

    /// Returns the last place where `text` can be cut without changing its ids. There is none if a special token
    /// contains a newline, since such a token could cross the cut.
    pub fn last_cut(&self, text: &str) -> Option<usize> {
        if self.special.contain_newline() { None } else { self.splitter.cut_before(text, 0, text.len()) }
    }

    /// Encodes each text, in parallel.
    pub fn encode_batch(
        &self,
        texts: &[&str],
        special: &SpecialRules,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<Vec<Vec<u32>>> {
        parallel::map(
            texts,
            threads,
            || self.caches.take(),
            |guard, text| {
                let mut ids = try_with_capacity(text.len() / 4 + LOOKUP_GROUP)?;
                for piece in self.pieces(text, special)? {
                    self.encode_piece(&piece, &mut guard.cache, &mut ids, cancel)?;
                }
                Ok(ids)
            },
        )
    }

    /// Encodes chunks as they are, without splitting, in parallel. Returns the concatenated ids and the number of ids
    /// of each chunk.
    pub fn encode_chunks(&self, chunks: &[&[u8]], threads: usize, cancel: &Cancel) -> Result<(Vec<u32>, Vec<u32>)> {
        let blocks: Vec<&[&[u8]]> = chunks.chunks(BLOCK_CHUNKS).collect();
        let parts = parallel::map(&blocks, threads, Vec::new, |ranks, block| {
            cancel.check()?;
            let (mut ids, mut sizes) = (Vec::new(), Vec::with_capacity(block.len()));
            for chunk in *block {
                let start = ids.len();
                if let Some(id) = self.whole_chunks.get(chunk) {
                    try_push(&mut ids, id as u32)?;
                } else {
                    self.merges.apply(chunk, ranks, cancel)?;
                    try_reserve(&mut ids, ranks.len())?;
                    ids.extend(ranks.iter().map(|&rank| self.ids[rank as usize]));
                }
                sizes.push((ids.len() - start) as u32);
            }
            Ok((ids, sizes))
        })?;
        let (ids, sizes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((parallel::concat(&ids, threads)?, parallel::concat(&sizes, threads)?))
    }

    /// Returns the ids of a chunk for training that continues from this vocabulary. There are none for a stop word,
    /// which such training leaves out.
    pub fn training_ids(&self, chunk: &[u8], cancel: &Cancel) -> Result<Vec<u32>> {
        if self.stop_words.get(chunk).is_some() {
            return Ok(Vec::new());
        }
        let mut ranks = Vec::new();
        self.merges.apply(chunk, &mut ranks, cancel)?;
        Ok(ranks.into_iter().map(|rank| self.ids[rank as usize]).collect())
    }

    /// Returns the number of bytes, in all texts so far, that the pattern did not match: always 0 for named patterns.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Relaxed)
    }

    /// Returns one more than the largest id.
    pub fn n_vocab(&self) -> usize {
        self.tokens.n_vocab()
    }

    /// Returns the bytes of `ids`, concatenated.
    pub fn decode(&self, ids: &[u32], cancel: &Cancel) -> Result<Vec<u8>> {
        self.tokens.decode(ids, cancel)
    }

    /// Cuts `text` at its special tokens, and the text between them into pieces of about `PIECE_BYTES` where possible.
    fn pieces<'t>(&self, text: &'t str, special: &SpecialRules) -> Result<Vec<Piece<'t>>> {
        if let Some(found) = self.special.matcher(&special.disallowed)?.and_then(|matcher| matcher.find(text)) {
            let token = quoted(&text[found.range()]);
            return Err(Error::invalid(format!(
                "the text contains the special token {token} at byte {}; pass allowed_special={{{token}}} or \
                 allowed_special=\"all\" to encode it as that token, or disallowed_special=() or \
                 allowed_special=\"none\" to encode it as plain text",
                found.start()
            )));
        }
        let mut pieces = Vec::new();
        let mut start = 0;
        if let Some(matcher) = self.special.matcher(&special.allowed)? {
            for found in matcher.find_iter(text) {
                self.cut_into_pieces(&text[start..found.start()], &mut pieces)?;
                try_push(&mut pieces, Piece::Special(self.special.id(&text[found.range()])))?;
                start = found.end();
            }
        }
        self.cut_into_pieces(&text[start..], &mut pieces)?;
        Ok(pieces)
    }

    fn cut_into_pieces<'t>(&self, text: &'t str, pieces: &mut Vec<Piece<'t>>) -> Result<()> {
        let mut start = 0;
        while text.len() - start > 2 * PIECE_BYTES {
            let at = text.floor_char_boundary(start + PIECE_BYTES);
            let Some(cut) = self.splitter.cut_before(text, start, at) else { break };
            try_push(pieces, Piece::Text(&text[start..cut]))?;
            start = cut;
        }
        Ok(try_push(pieces, Piece::Text(&text[start..]))?)
    }

    fn encode_piece(&self, piece: &Piece, cache: &mut ChunkCache, ids: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        let text = match *piece {
            Piece::Text(text) => text,
            Piece::Special(id) => {
                return Ok(try_push(ids, id)?);
            }
        };
        let mut pending = Pending::new(text.as_bytes());
        let dropped = self.splitter.split(text, cancel, |chunk| match pending.add(chunk.as_bytes()) {
            true => self.encode_pending(&mut pending, cache, ids, cancel),
            false => Ok(()),
        })?;
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Relaxed);
        }
        self.encode_pending(&mut pending, cache, ids, cancel)
    }

    #[inline]
    fn encode_pending(
        &self,
        pending: &mut Pending,
        cache: &mut ChunkCache,
        ids: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        cancel.check()?;
        // There is always room for an id of each chunk of the group, so that `push` does not have to grow `ids`.
        try_reserve(ids, LOOKUP_GROUP)?;
        for (key, chunk) in pending.take(&self.whole_chunks) {
            if let Some(id) = self.whole_chunks.get_with_key(chunk, key) {
                ids.push(id as u32);
            } else if let Some(cached) = cache.get(chunk, key) {
                try_reserve(ids, cached.len() + LOOKUP_GROUP)?;
                ids.extend_from_slice(cached);
            } else {
                self.merge_chunk(chunk, key, cache, ids, cancel)?;
            }
        }
        Ok(())
    }

    /// Encodes a chunk that is neither a token by itself nor cached.
    fn merge_chunk(
        &self,
        chunk: &[u8],
        key: Key,
        cache: &mut ChunkCache,
        ids: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        self.merges.apply(chunk, &mut cache.ranks, cancel)?;
        let start = ids.len();
        try_reserve(ids, cache.ranks.len() + LOOKUP_GROUP)?;
        ids.extend(cache.ranks.iter().map(|&rank| self.ids[rank as usize]));
        if chunk.len() > MAX_CHUNK_BYTES {
            cache.ranks = Vec::new();
            return Ok(());
        }
        cache.insert(chunk, key, &ids[start..])
    }
}
