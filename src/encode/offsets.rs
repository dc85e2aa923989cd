//! Finds the characters that each token of a text stands for, and its word, as Hugging Face's library counts them.
//!
//! A token that contains a part of a character stands for all of it. A character that normalization changes stands for
//! the one that it replaces (see `Form::aligned`), and a space that is added before a text for the first character.
//! A word is a chunk, or a special or added token.

use super::spans::Change;
use super::{ChunkCache, Encoder, Piece, SpecialRules, new_ids, text_blocks};
use crate::error::{Cancel, Error, Result, try_push, try_with_capacity};
use crate::parallel;
use crate::split::{Form, Span};

/// The first character that a token stands for, and the one after the last.
pub type Offsets = (u32, u32);

/// Leaves whitespace at the ends of tokens out of their offsets.
#[derive(Clone, Copy)]
pub struct Trim {
    /// Keep a single space at the beginning of a text, which is one that was added.
    pub add_prefix_space: bool,
}

impl Trim {
    /// Applies to the offsets of a token that starts and ends with this many spaces.
    fn apply(self, (start, end): Offsets, (mut before, after): (usize, usize), is_first: bool) -> Offsets {
        if before == 1 && self.add_prefix_space && (is_first || start == 0) {
            before = 0;
        }
        let (before, after) = (before as u32, after as u32);
        let start = end.min(start + before);
        (start, if end >= after { start.max(end - after) } else { end })
    }
}

/// Returns the number of spaces at both ends of a token.
fn spaces(token: &[u8]) -> (usize, usize) {
    let is_space = |byte: &&u8| **byte == b' ';
    (token.iter().take_while(is_space).count(), token.iter().rev().take_while(is_space).count())
}

/// Returns the number of whitespace characters at both ends of a special or added token.
fn white_characters(token: &str) -> (usize, usize) {
    let is_white = |c: &char| c.is_whitespace() || *c == 'Ġ'; // as in byte-level spelling
    (token.chars().take_while(is_white).count(), token.chars().rev().take_while(is_white).count())
}

/// The tokens of a text, or of several.
#[derive(Default)]
pub struct WithOffsets {
    pub ids: Vec<u32>,
    pub offsets: Vec<Offsets>,
    /// Empty unless it is asked for.
    pub words: Vec<u32>,
}

impl Encoder {
    /// Encodes texts in parallel. Returns the tokens of all texts, and where those of each text start.
    pub fn encode_batch_with_offsets(
        &self,
        texts: &[&str],
        special: &SpecialRules,
        trim: Option<Trim>,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<(Vec<u32>, Vec<Offsets>, Vec<i64>)> {
        let parts = parallel::map(
            &text_blocks(texts, |text| text.len(), threads)?,
            threads,
            || self.caches.take(),
            |guard, block| {
                let bytes = block.iter().map(|text| text.len()).sum();
                let mut found = WithOffsets { ids: new_ids(bytes)?, ..WithOffsets::default() };
                let mut ends = try_with_capacity(block.len())?;
                for text in *block {
                    self.append_with_offsets(text, special, trim, false, guard.cache(), &mut found, cancel)?;
                    ends.push(found.ids.len() as i64);
                }
                Ok((found.ids, found.offsets, ends))
            },
        )?;
        let (mut starts, mut start) = (try_with_capacity(texts.len() + 1)?, 0);
        starts.push(0);
        let (mut ids, mut offsets) = (try_with_capacity(parts.len())?, try_with_capacity(parts.len())?);
        for part in parts {
            starts.extend(part.2.iter().map(|end| start + end));
            start += part.0.len() as i64;
            ids.push(part.0);
            offsets.push(part.1);
        }
        Ok((parallel::concat(ids, threads)?, parallel::concat(offsets, threads)?, starts))
    }

    /// Encodes a text. Returns its tokens with their offsets and words.
    pub fn encode_with_words(&self, text: &str, special: &SpecialRules, cancel: &Cancel) -> Result<WithOffsets> {
        let (mut found, mut guard) = (WithOffsets::default(), self.caches.take());
        self.append_with_offsets(text, special, None, true, guard.cache(), &mut found, cancel)?;
        Ok(found)
    }

    #[expect(clippy::too_many_arguments, reason = "what to encode, how, and where to")]
    fn append_with_offsets(
        &self,
        text: &str,
        special: &SpecialRules,
        trim: Option<Trim>,
        with_words: bool,
        cache: &mut ChunkCache,
        found: &mut WithOffsets,
        cancel: &Cancel,
    ) -> Result<()> {
        if u32::try_from(text.len()).is_err() {
            return Err(Error::invalid("offsets are limited to texts of 4 GiB"));
        }
        let changes = self.aligned_changes(text, special)?;
        let mut characters = Characters::new(text, &changes);
        let WithOffsets { ids, offsets, words } = found;
        let first = offsets.len();
        let mut push = |span: Span, spaces: &dyn Fn(Span) -> (usize, usize)| {
            let mut place = characters.of(span);
            if let Some(trim) = trim {
                place = trim.apply(place, spaces(characters.original(span)), offsets.len() == first);
            }
            try_push(offsets, place)
        };
        let (mut start, mut word) = (0, 0); // `start` is in the normalized text
        for piece in self.pieces(text, special)? {
            let first = ids.len();
            self.encode_piece(&piece, cache, ids, cancel)?;
            let (text, added) = match piece {
                Piece::Raw(text) => (self.splitter.normalize_characters(text), 0),
                Piece::Text(text, added) => (text, added),
                Piece::Token(_, place) => {
                    let span = place.after(start);
                    push(span, &|(from, to)| white_characters(&text[from..to]))?;
                    if with_words {
                        try_push(words, word)?;
                    }
                    (start, word) = (span.1, word + 1);
                    continue;
                }
            };
            let mut place_token = |(from, to): Span, token: &[u8]| {
                // An added space stands for the character after it.
                let to = to.max(text.ceil_char_boundary(added + 1));
                push((start + from.saturating_sub(added), start + to - added), &|_| spaces(token))
            };
            let ids = &ids[first..];
            let len = ids.iter().try_fold(0, |len, &id| self.token(id).map(|token| len + token.len()))?;
            if len == text.len() && !with_words {
                let mut from = 0;
                for &id in ids {
                    let token = self.token(id)?;
                    place_token((from, from + token.len()), token)?;
                    from += token.len();
                }
            } else {
                word = self.for_each_word(&text, ids, word, cancel, |span, token, word| {
                    if with_words {
                        try_push(words, word)?;
                    }
                    Ok(place_token(span, token)?)
                })?;
            }
            start += text.len() - added;
        }
        Ok(())
    }

    /// Calls `visit` with the place, the bytes and the word of each of the `ids` of a text, and returns the next word.
    ///
    /// Tokens are placed one after the other in the byte-level spelling of their chunk, as if it had no bytes that the
    /// vocabulary lacks. Chunks of a phrase are one word.
    fn for_each_word(
        &self,
        text: &str,
        ids: &[u32],
        mut word: u32,
        cancel: &Cancel,
        mut visit: impl FnMut(Span, &[u8], u32) -> Result<()>,
    ) -> Result<u32> {
        let chunks = self.chunk_spans(text, cancel)?;
        let present = |&(from, to): &Span, token: &[u8]| {
            let chunk = &text.as_bytes()[from..to];
            if chunk == token { chunk.len() } else { chunk.iter().filter(|byte| !self.is_missing(byte)).count() }
        };
        let (mut chunks, mut ids) = (chunks.iter(), ids.iter().peekable());
        while let Some(chunk) = chunks.next() {
            let next = ids.peek().map_or(Ok(&[][..]), |id| self.token(**id))?;
            let (mut at, mut rest) = (chunk.0, present(chunk, next));
            let mut spelled = Vec::new(); // where each byte of the spelling is in the text
            if rest < chunk.1 - chunk.0 {
                for place in chunk.0..chunk.1 {
                    (0..spelled_len(text.as_bytes()[place])).try_for_each(|_| try_push(&mut spelled, place))?;
                }
                at = 0;
            }
            while rest > 0
                && let Some(&id) = ids.next()
            {
                let token = self.token(id)?;
                let end =
                    at + if spelled.is_empty() { token.len() } else { token.iter().copied().map(spelled_len).sum() };
                let span = if spelled.is_empty() {
                    (at, end)
                } else {
                    let place = |at: usize| spelled[at.min(spelled.len() - 1)];
                    (place(at), place(end - 1) + 1)
                };
                visit(span, token, word)?;
                at = end;
                let mut len = token.len();
                while len > rest
                    && let Some(next) = chunks.next()
                {
                    len -= rest;
                    rest = present(next, &[]);
                }
                rest -= len.min(rest);
            }
            word += 1;
        }
        Ok(word)
    }

    fn aligned_changes(&self, text: &str, special: &SpecialRules) -> Result<Vec<Aligned>> {
        let Some(form) = self.splitter.plan().normalization else { return Ok(Vec::new()) };
        let changes = self.changes(text, special)?;
        let mut aligned = try_with_capacity(changes.len())?;
        aligned.extend(changes.into_iter().map(|change| Aligned::new(form, text, change)));
        Ok(aligned)
    }
}

/// Returns the number of bytes of the character that stands for a byte in byte-level spelling.
fn spelled_len(byte: u8) -> usize {
    if byte.is_ascii_graphic() { 1 } else { 2 }
}

/// A part of a text that is normalized.
struct Aligned {
    change: Change,
    /// Where each character of the normalized part starts, and the character that it stands for.
    characters: Vec<(usize, Span)>,
}

impl Aligned {
    fn new(form: Form, text: &str, change: Change) -> Self {
        let (mut start, original) = (change.normalized.0, change.original);
        let characters = form.aligned(&text[original.0..original.1]).into_iter().map(|(c, (from, to))| {
            start += c.len_utf8();
            (start - c.len_utf8(), (original.0 + from, original.0 + to))
        });
        Self { characters: characters.collect(), change }
    }
}

/// Converts places in a normalized text, which hardly ever decrease, to characters of the text.
struct Characters<'t> {
    text: &'t [u8],
    is_ascii: bool,
    changes: &'t [Aligned],
    /// The last place, and the number of characters that start before it.
    at: usize,
    count: u32,
}

impl<'t> Characters<'t> {
    fn new(text: &'t str, changes: &'t [Aligned]) -> Self {
        Self { text: text.as_bytes(), is_ascii: text.is_ascii(), changes, at: 0, count: 0 }
    }

    #[inline]
    fn of(&mut self, (start, end): Span) -> Offsets {
        if self.is_ascii {
            return (start as u32, end as u32); // no normalization changes ASCII characters
        }
        let (start, end) = self.original((start, end));
        self.count += starts(&self.text[self.at.min(start)..start]);
        self.count -= starts(&self.text[start..self.at.max(start)]); // see `Place::back`
        self.at = start;
        let is_inside = self.text.get(start).is_some_and(|byte| is_continuation(*byte));
        (self.count - u32::from(is_inside), self.count + starts(&self.text[start..end.max(start)]))
    }

    fn original(&self, (start, end): Span) -> Span {
        if self.changes.is_empty() || start == end {
            return (start, end);
        }
        // The place of the character at `at` in the normalized text, and how far `at` is from its start.
        let place = |at: usize| {
            let before = &self.changes[..self.changes.partition_point(|aligned| aligned.change.normalized.0 <= at)];
            let Some(Aligned { change, characters }) = before.last() else { return (at, at + 1) };
            if at >= change.normalized.1 {
                let at = at - change.normalized.1 + change.original.1;
                return (at, at + 1);
            }
            characters[characters.partition_point(|character| character.0 <= at) - 1].1
        };
        (place(start).0, place(end - 1).1)
    }
}

fn starts(bytes: &[u8]) -> u32 {
    bytes.iter().map(|byte| u32::from(!is_continuation(*byte))).sum()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}
