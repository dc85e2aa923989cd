//! Encodes text as ids and decodes ids to bytes. The encoding is exact: in each chunk, the pair of lowest rank merges
//! first.
//!
//! Chunks are encoded in batches (`batch`). One that is a token by itself, or that the thread has met before, takes a
//! single look-up (`cache`). Any other chunk is merged (`merge`), several at a time (`lanes`).
//!
//! An encoder never changes, and any number of threads can use it. It never waits for a lock: a lock that another
//! thread holds while the process forks stays locked in the child forever.

mod batch;
mod cache;
mod hidden;
mod lanes;
mod merge;
mod offsets;
mod pair_ranks;
mod phrases;
mod pieces;
mod ranked;
mod sampled;
mod spans;
mod special_tokens;
#[cfg(test)]
mod tests;
mod tokens;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::error::{Cancel, Result, try_collect, try_push, try_with_capacity};
use crate::parallel;
use crate::split::{Plan, Splitter};
use crate::table::chunk_key::Key;
use crate::table::chunk_map::ChunkMap;
use batch::append;
use cache::{CachePool, ChunkCache, EncodedChunks};
use hidden::{Buffers, Hidden};
pub use merge::Listed;
use merge::MergeTable;
pub use offsets::{Offsets, Trim, WithOffsets};
pub use pair_ranks::MAX_MERGES;
pub use phrases::Phrase;
use phrases::{ID, Phrases, TOUCHES, WHOLE};
use pieces::{PIECE_BYTES, Piece};
pub use ranked::{MAX_ID, MISSING, RankedTokens};
pub use sampled::{Method, Sampling, TokenTree};
use special_tokens::SpecialTokens;
pub use special_tokens::{Flags, FoundToken, SpecialRules, SpecialSet};
use tokens::Tokens;

/// A batch of texts is cut into at least this many blocks for each thread, so that the threads finish together.
const BLOCKS_PER_THREAD: usize = 8;
/// The number of chunks that a thread takes at once in `encode_chunks`.
const BLOCK_CHUNKS: usize = if cfg!(test) { 1 << 3 } else { 1 << 10 };
/// Longer tokens, and tokens of higher ranks, are not in `Encoder::vocabulary`.
const MAX_VOCABULARY_BYTES: usize = if cfg!(test) { 1 << 3 } else { lanes::MAX_BYTES };
const MAX_VOCABULARY: usize = if cfg!(test) { 1 << 4 } else { 1 << 18 };

pub struct Encoder {
    splitter: Splitter,
    /// Chunks that encode to a single id: stop words, and the tokens that their own bytes merge to.
    vocabulary: EncodedChunks,
    /// stop word → id
    stop_words: ChunkMap,
    merges: Arc<MergeTable>,
    /// rank → id
    ids: Vec<u32>,
    has_missing_bytes: bool,
    hidden: Hidden,
    tokens: Tokens,
    special: SpecialTokens,
    phrases: Option<Phrases>,
    /// The marks of whole chunks if there are phrases, otherwise 0.
    mark: u32,
    caches: CachePool,
    /// Bytes of all texts so far that the pattern did not match.
    dropped: AtomicUsize,
    /// Bytes of the chunks merged so far that are not tokens.
    missing: AtomicUsize,
}

/// Tokens that are not made by merges, and those of merges that are hidden.
#[derive(Default)]
pub struct OtherTokens {
    pub stop_words: Vec<(Vec<u8>, u32)>,
    pub special: Vec<FoundToken>,
    pub added: Vec<FoundToken>,
    pub phrases: Vec<Phrase>,
    /// Tokens that no text is encoded to.
    pub decode_only: Vec<(Vec<u8>, u32)>,
    /// Tokens made by merges that are replaced by their parts.
    pub hidden: Vec<u32>,
}

impl Encoder {
    pub fn new(splitter: Splitter, tokens: &RankedTokens, others: OtherTokens, cancel: &Cancel) -> Result<Self> {
        let mark = if others.phrases.is_empty() { 0 } else { WHOLE | TOUCHES };
        let seeds = tokens.ids.len().min(MAX_VOCABULARY);
        let mut vocabulary = EncodedChunks::with_capacity(seeds + others.stop_words.len())?;
        let mut stop_word_set = ChunkMap::with_capacity(others.stop_words.len())?;
        for (word, id) in &others.stop_words {
            vocabulary.insert(word, Key::of(word), &[*id | mark])?;
            *stop_word_set.entry(word)? = u64::from(*id);
        }
        let hidden = Hidden::new(tokens, &others.hidden)?;
        let visible = hidden.visible(&tokens.ids)?;
        let short = |rank: &usize| tokens.get(*rank).len() <= MAX_VOCABULARY_BYTES && visible[*rank] != MISSING;
        let candidates: Vec<usize> = (0..seeds).filter(short).collect();
        let mut insert =
            |rank: usize| vocabulary.insert(tokens.get(rank), Key::of(tokens.get(rank)), &[tokens.ids[rank] | mark]);
        for block in candidates.chunks(BLOCK_CHUNKS) {
            cancel.check()?;
            if tokens.merge_to_themselves {
                block.iter().try_for_each(|&rank| insert(rank))?;
                continue;
            }
            // A token whose own bytes merge to something else is never the encoding of a chunk.
            let token = |index: usize| tokens.get(block[index]);
            tokens.merges.apply_all(block.len(), token, cancel, |index, merged| {
                if merged == [block[index] as u32] {
                    insert(block[index])?;
                }
                Ok(())
            })?;
        }
        Ok(Self {
            vocabulary,
            stop_words: stop_word_set,
            merges: Arc::clone(&tokens.merges),
            ids: tokens.ids.clone(),
            has_missing_bytes: tokens.ids[..256].contains(&MISSING),
            tokens: Tokens::new(tokens, &visible, &others)?,
            hidden,
            phrases: Phrases::new(&others.phrases)?,
            special: SpecialTokens::new(others.special, others.added, &splitter)?,
            splitter,
            mark,
            caches: CachePool::default(),
            dropped: AtomicUsize::new(0),
            missing: AtomicUsize::new(0),
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
            let mut guard = self.caches.take();
            let mut ids = new_ids(text.len())?;
            for piece in &pieces {
                self.encode_piece(piece, guard.cache(), &mut ids, cancel)?;
            }
            return Ok(ids);
        }
        let parts = parallel::map(
            &blocks(&pieces, Piece::len, PIECE_BYTES / 2)?,
            threads,
            || self.caches.take(),
            |guard, block| {
                let mut ids = Vec::new();
                for piece in *block {
                    self.encode_piece(piece, guard.cache(), &mut ids, cancel)?;
                }
                Ok(ids)
            },
        )?;
        parallel::concat(parts, threads)
    }

    /// Encodes bytes that may be invalid UTF-8, in which special tokens are ordinary text.
    ///
    /// A pattern applies to characters, so from the first invalid byte on there is only one chunk. As in tiktoken, that
    /// chunk starts with the last chunk before the invalid byte, and with all whitespace before it if it is whitespace:
    /// in a text that was cut inside a character, the two would be one chunk.
    pub fn encode_bytes(&self, bytes: &[u8], threads: usize, cancel: &Cancel) -> Result<Vec<u32>> {
        let rules = SpecialRules { allowed: SpecialSet::These(Vec::new()), disallowed: SpecialSet::These(Vec::new()) };
        let valid = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
        let (text, rest) = bytes.split_at(valid);
        let text = std::str::from_utf8(text).expect("valid up to here");
        let mut ids = self.encode(text, &rules, threads, cancel)?;
        if rest.is_empty() {
            return Ok(ids);
        }
        let mut last_chunk = 0;
        let last = match self.pieces(text, &rules)?.pop() {
            Some(Piece::Raw(text)) => self.splitter.normalize_characters(text),
            Some(Piece::Text(text, _)) => text,
            Some(Piece::Token(..)) | None => Cow::Borrowed(""),
        };
        if !last.is_empty() {
            self.splitter.split(&last, cancel, |chunk| {
                last_chunk = chunk.bytes().filter(|byte| !self.is_missing(byte)).count();
                Ok(())
            })?;
        }
        let (mut kept, mut removed) = (ids.len(), 0);
        while removed < last_chunk {
            kept -= 1;
            removed += self.token(ids[kept])?.len();
        }
        let is_space =
            |&id: &u32| self.tokens.ordinary(id).is_some_and(|token| token.iter().all(|byte| b" \n\t".contains(byte)));
        if ids.get(kept).is_some_and(is_space) {
            kept -= ids[..kept].iter().rev().take_while(|id| is_space(id)).count();
        }
        let mut chunk = self.decode(&ids[kept..], cancel)?;
        append(&mut chunk, rest.iter().copied())?;
        ids.truncate(kept);
        append(&mut ids, self.encode_chunks(&[&chunk], 1, cancel)?.0.into_iter())?;
        Ok(ids)
    }

    /// Returns the last offset at which `text` can be cut without changing its ids. There is none if a special or added
    /// token contains a newline, since such a token could cross the cut.
    pub fn last_cut(&self, text: &str) -> Option<usize> {
        if self.special.may_contain_newline() { None } else { self.splitter.cut_before(text, 0, text.len()) }
    }

    /// Encodes texts in parallel. Returns the concatenated ids of all texts, and where the ids of each text start.
    pub fn encode_batch(
        &self,
        texts: &[&str],
        special: &SpecialRules,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<(Vec<u32>, Vec<i64>)> {
        let parts = parallel::map(
            &text_blocks(texts, |text| text.len(), threads)?,
            threads,
            || self.caches.take(),
            |guard, block| {
                let mut ids = new_ids(block.iter().map(|text| text.len()).sum())?;
                let mut ends = try_with_capacity(block.len())?;
                for text in *block {
                    for piece in self.pieces(text, special)? {
                        self.encode_piece(&piece, guard.cache(), &mut ids, cancel)?;
                    }
                    ends.push(ids.len() as i64);
                }
                Ok((ids, ends))
            },
        )?;
        let mut offsets = try_with_capacity(texts.len() + 1)?;
        offsets.push(0);
        let mut start = 0;
        for (ids, ends) in &parts {
            offsets.extend(ends.iter().map(|end| start + end));
            start += ids.len() as i64;
        }
        let parts: Vec<Vec<u32>> = parts.into_iter().map(|part| part.0).collect();
        Ok((parallel::concat(parts, threads)?, offsets))
    }

    /// Encodes chunks as they are, without splitting and without phrases, in parallel. Returns the concatenated ids
    /// and the number of ids of each chunk.
    pub fn encode_chunks(&self, chunks: &[&[u8]], threads: usize, cancel: &Cancel) -> Result<(Vec<u32>, Vec<u32>)> {
        let blocks = try_collect(chunks.chunks(BLOCK_CHUNKS))?;
        let parts = parallel::map(
            &blocks,
            threads,
            || (),
            |(), block| {
                cancel.check()?;
                let (mut merged, mut ranges) = (Vec::new(), try_collect(block.iter().map(|_| 0..0))?);
                let is_missing = |chunk: &[u8]| self.vocabulary.get(chunk, Key::of(chunk)).is_none();
                let mut missing = try_with_capacity(block.len())?;
                missing.extend((0..block.len()).filter(|&index| is_missing(block[index])));
                self.merge_to_visible(
                    missing.len(),
                    |index| block[missing[index]],
                    &mut Buffers::default(),
                    cancel,
                    |index, ranks| {
                        ranges[missing[index]] = append(&mut merged, self.ids_of(ranks))?;
                        Ok(())
                    },
                )?;
                let (mut ids, mut sizes) = (Vec::new(), try_with_capacity(block.len())?);
                for (chunk, range) in block.iter().zip(ranges) {
                    let found = self.vocabulary.get(chunk, Key::of(chunk)).unwrap_or(&merged[range]);
                    sizes.push(append(&mut ids, found.iter().map(|id| id & ID))?.len() as u32);
                }
                Ok((ids, sizes))
            },
        )?;
        let (ids, sizes): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((parallel::concat(ids, threads)?, parallel::concat(sizes, threads)?))
    }

    /// Returns the ids of a chunk, including hidden ones, for training that continues from this vocabulary. There are
    /// none for a stop word, which such training leaves out.
    pub fn training_ids(&self, chunk: &[u8], cancel: &Cancel) -> Result<Vec<u32>> {
        if self.stop_words.get(chunk).is_some() {
            return Ok(Vec::new());
        }
        let mut ids = Vec::new();
        self.merge_all(
            1,
            |_| chunk,
            cancel,
            |_, ranks| {
                append(&mut ids, self.ids_of(ranks))?;
                Ok(())
            },
        )?;
        Ok(ids)
    }

    /// Merges chunks as `MergeTable::apply_all` does, without the bytes that are not tokens. A chunk of which nothing
    /// is left has no ranks, and `done` is not called for it. Returns how many bytes are not tokens.
    fn merge_all<'t>(
        &self,
        count: usize,
        chunk: impl Fn(usize) -> &'t [u8],
        cancel: &Cancel,
        done: impl FnMut(usize, &[u32]) -> Result<()>,
    ) -> Result<usize> {
        if !self.has_missing_bytes {
            self.merges.apply_all(count, chunk, cancel, done)?;
            return Ok(0);
        }
        let (mut kept, mut all_missing): (Vec<Cow<'t, [u8]>>, _) = (try_with_capacity(count)?, 0);
        for chunk in (0..count).map(chunk) {
            let missing = chunk.iter().filter(|byte| self.is_missing(byte)).count();
            all_missing += missing;
            kept.push(if missing > 0 {
                let mut present = try_with_capacity(chunk.len() - missing)?;
                present.extend(chunk.iter().filter(|byte| !self.is_missing(byte)));
                Cow::Owned(present)
            } else {
                Cow::Borrowed(chunk)
            });
        }
        self.merges.apply_all(count, |index| &kept[index][..], cancel, done)?;
        Ok(all_missing)
    }

    /// Merges chunks as `merge_all` does, and then replaces hidden tokens by their parts.
    fn merge_to_visible<'t>(
        &self,
        count: usize,
        chunk: impl Fn(usize) -> &'t [u8],
        buffers: &mut Buffers,
        cancel: &Cancel,
        mut done: impl FnMut(usize, &[u32]) -> Result<()>,
    ) -> Result<usize> {
        self.merge_all(count, chunk, cancel, |index, ranks| {
            done(index, self.hidden.replace(ranks, &self.merges, buffers)?)
        })
    }

    /// Returns whether a byte is not a token, and is left out of chunks.
    fn is_missing(&self, byte: &u8) -> bool {
        self.ids[usize::from(*byte)] == MISSING
    }

    fn ids_of(&self, ranks: &[u32]) -> impl ExactSizeIterator<Item = u32> {
        ranks.iter().map(|&rank| self.ids[rank as usize])
    }

    /// Returns the number of bytes, in all texts so far, that the pattern did not match: always 0 for named patterns.
    pub fn dropped(&self) -> usize {
        self.dropped.load(Relaxed)
    }

    /// Returns the number of bytes, in the chunks of texts that were merged so far, that are not tokens.
    pub fn missing(&self) -> usize {
        self.missing.load(Relaxed)
    }

    /// Returns how texts become chunks.
    pub fn plan(&self) -> &Plan {
        self.splitter.plan()
    }

    /// Returns the bytes of a token.
    pub fn token(&self, id: u32) -> Result<&[u8]> {
        self.tokens.get(id)
    }

    /// Returns one more than the largest id.
    pub fn n_vocab(&self) -> usize {
        self.tokens.n_vocab()
    }

    /// Returns the bytes of `ids`, concatenated.
    pub fn decode(&self, ids: &[u32], cancel: &Cancel) -> Result<Vec<u8>> {
        self.tokens.decode(ids, cancel)
    }

    /// Returns the bytes of `ids` except special tokens, concatenated.
    pub fn decode_without_special(&self, ids: &[u32], cancel: &Cancel) -> Result<Vec<u8>> {
        self.tokens.decode(&self.special.removed_from(ids)?, cancel)
    }

    fn encode_piece(&self, piece: &Piece, cache: &mut ChunkCache, ids: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        match piece {
            Piece::Raw(text) => self.encode_text(&self.splitter.normalize_characters(text), cache, ids, cancel),
            Piece::Text(text, _) => self.encode_text(text, cache, ids, cancel),
            Piece::Token(id, _) => Ok(try_push(ids, *id)?),
        }
    }
}

/// Returns a vector with room for the ids of a text of `bytes` bytes, which are fewer than half as many in most texts.
/// Untouched memory costs nothing.
fn new_ids(bytes: usize) -> Result<Vec<u32>> {
    Ok(try_with_capacity(bytes / 2).or_else(|_| try_with_capacity(bytes / 8))?)
}

/// Cuts a list of texts, or of parts of texts, into blocks that a thread takes at once.
fn text_blocks<T>(texts: &[T], size_of: impl Fn(&T) -> usize, threads: usize) -> Result<Vec<&[T]>> {
    let total: usize = texts.iter().map(&size_of).sum();
    let least = if threads == 1 { usize::MAX } else { (total / threads / BLOCKS_PER_THREAD).min(PIECE_BYTES) };
    blocks(texts, size_of, least)
}

/// Cuts a list into blocks whose sizes add up to more than `least`, except for the last block.
fn blocks<T>(items: &[T], size_of: impl Fn(&T) -> usize, least: usize) -> Result<Vec<&[T]>> {
    let (mut blocks, mut start, mut size) = (Vec::new(), 0, 0);
    for (end, item) in (1..).zip(items) {
        size += size_of(item);
        if size > least || end == items.len() {
            try_push(&mut blocks, &items[start..end])?;
            (start, size) = (end, 0);
        }
    }
    Ok(blocks)
}
