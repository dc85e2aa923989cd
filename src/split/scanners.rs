//! A scanner for each named pattern: given where a chunk begins, where does it end?
//!
//! Each one is its regular expression worked out by hand: the alternatives in their order, with
//! what backtracking would settle on. They take time linear in the text, whatever it is: no
//! character is looked at more than a few times.

use crate::error::Result;

use super::blocks::Block;
use super::classes::{CASELESS, Classes, LETTER, LOWER, MARK, NEWLINE, NUMBER, OTHER, SYMBOL, UPPER, WHITE};

/// # Safety
/// `scan` does not check what these return. `end` must return a place after `start`, at most the end of the text, and
/// between two characters; the same holds for `starts`, whose bits must be at ASCII characters.
pub unsafe trait Scanner {
    /// The end of the chunk that begins at `start`, which is before the end of the text.
    fn end(text: Text, start: usize) -> usize;

    /// Where chunks begin in a block that begins with one, and where the block alone does not tell. The former is
    /// right up to the first place of the latter, and there.
    fn starts(block: &Block) -> (u64, u64);
}

/// Calls `chunk` with each chunk of `text`; together they are the whole text.
#[inline(always)]
pub fn scan<'t, S: Scanner>(text: &'t str, mut chunk: impl FnMut(&'t str) -> Result<()>) -> Result<()> {
    let scanned = Text { bytes: text.as_bytes(), classes: Classes::get() };
    let slice = |start: usize, end: usize| {
        debug_assert!(end > start && text.is_char_boundary(end));
        // SAFETY: `Scanner` promises it. Without the checks the whole takes 5 % less time.
        unsafe { text.get_unchecked(start..end) }
    };
    let mut start = 0;
    while start < text.len() {
        if let Some(block) = scanned.bytes[start..].first_chunk()
            && block[0].is_ascii()
            && block[1].is_ascii()
        {
            // A block begins with a chunk, so that nothing before it matters.
            let base = start;
            let (starts, unclear) = S::starts(&Block::new(block));
            let mut clear = starts & (unclear ^ unclear.wrapping_sub(1)) & !1;
            while clear != 0 {
                let end = base + clear.trailing_zeros() as usize;
                chunk(slice(start, end))?;
                start = end;
                clear &= clear - 1;
            }
            if unclear == 0 && start > base {
                continue;
            }
        }
        let end = S::end(scanned, start);
        chunk(slice(start, end))?;
        start = end;
    }
    Ok(())
}

/// `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
pub struct Gpt2;

// SAFETY: `end` goes from character to character and stops at the end of the text; `starts` come from ASCII classes.
unsafe impl Scanner for Gpt2 {
    #[inline(always)]
    fn end(text: Text, start: usize) -> usize {
        let after = start + usize::from(text.bytes[start] == b' ');
        let (class, len) = text.class(after);
        if class & LETTER != 0 {
            return text.skip_letters(after + len);
        }
        if class & SYMBOL != 0 {
            if text.bytes[start] == b'\''
                && let Some(end) = text.contraction::<false>(start)
            {
                return end;
            }
            return text.skip(SYMBOL, after + len);
        }
        if class & NUMBER != 0 {
            return text.skip(NUMBER, after + len);
        }
        text.white_space::<false, false>(start)
    }

    #[inline(always)]
    fn starts(block: &Block) -> (u64, u64) {
        let Block { numbers, spaces, white, symbols, .. } = *block;
        let letters = block.letters();
        let first = |run: u64| run & !((run | spaces) << 1);
        let starts = first(letters) | first(numbers) | first(symbols) | white;
        (starts, block.others | white & white >> 1 | block.apostrophes & starts & letters >> 1)
    }
}

/// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`,
/// and `Gpt4<true>` is cl100k, which has `\s++$` before `\s*[\r\n]`.
pub struct Gpt4<const WHOLE_TAIL: bool>;

// SAFETY: as for `Gpt2`.
unsafe impl<const WHOLE_TAIL: bool> Scanner for Gpt4<WHOLE_TAIL> {
    #[inline(always)]
    fn end(text: Text, start: usize) -> usize {
        let (class, len) = text.class(start);
        if class & LETTER != 0 {
            return text.skip_letters(start + len);
        }
        if class & NUMBER != 0 {
            return text.skip_numbers(start + len);
        }
        if class & NEWLINE == 0 {
            let (next, next_len) = text.class(start + len);
            if next & LETTER != 0 {
                if text.bytes[start] == b'\''
                    && let Some(end) = text.contraction::<true>(start)
                {
                    return end;
                }
                return text.skip_letters(start + len + next_len);
            }
            if class & SYMBOL != 0 || text.bytes[start] == b' ' && next & SYMBOL != 0 {
                let end = text.skip(SYMBOL, start + len);
                return text.skip(NEWLINE, end);
            }
        }
        text.white_space::<true, WHOLE_TAIL>(start)
    }

    #[inline(always)]
    fn starts(block: &Block) -> (u64, u64) {
        let (starts, unclear) = starts_with_prefixes(block);
        (starts, unclear | block.apostrophes & starts & block.letters() >> 1)
    }
}

/// o200k: words begin at a change from lower to upper case and keep their contraction.
pub struct O200k;

// SAFETY: as for `Gpt2`.
unsafe impl Scanner for O200k {
    #[inline(always)]
    fn end(text: Text, start: usize) -> usize {
        let (class, len) = text.class(start);
        if class & (LETTER | MARK) != 0 {
            // A mark may be the optional prefix of a word, or its first character. It comes to the
            // same: as a prefix it fails only where the word is that mark alone.
            return text.cased_word(start, (class, len));
        }
        if class & NUMBER != 0 {
            return text.skip_numbers(start + len);
        }
        if class & NEWLINE == 0 {
            let (next, next_len) = text.class(start + len);
            if next & (LETTER | MARK) != 0 {
                return text.cased_word(start + len, (next, next_len));
            }
            if class & OTHER != 0 || text.bytes[start] == b' ' && next & OTHER != 0 {
                let mut end = text.skip(SYMBOL, start + len);
                while matches!(text.bytes.get(end), Some(b'\r' | b'\n' | b'/')) {
                    end += 1;
                }
                return end;
            }
        }
        text.white_space::<true, false>(start)
    }

    #[inline(always)]
    fn starts(block: &Block) -> (u64, u64) {
        let (starts, unclear) = starts_with_prefixes(block);
        // A contraction belongs to the word before it, a slash after newlines to the symbols before these.
        let joined = block.apostrophes & block.letters() << 1 | block.slashes & block.newlines << 1;
        ((starts | block.upper & block.lower << 1) & !joined, unclear | joined)
    }
}

/// `Scanner::starts` as far as gpt4 and o200k agree: a word may have a prefix, numbers come in threes, symbols take
/// the newlines after them.
#[inline(always)]
fn starts_with_prefixes(block: &Block) -> (u64, u64) {
    let Block { numbers, spaces, newlines, symbols, .. } = *block;
    let letters = block.letters();
    // The sum carries through each run of newlines after a symbol, and clears it.
    let taken = newlines & !newlines.wrapping_add(newlines & symbols << 1);
    let white = block.white & !taken;
    let first_symbols = symbols & !((symbols | spaces) << 1);
    let prefixes = first_symbols | white & !newlines;
    let starts = letters & !((letters | prefixes) << 1) | numbers & !(numbers << 1) | first_symbols | white;
    let fourth_numbers = numbers & numbers << 1 & numbers << 2 & numbers << 3;
    (starts, block.others | white & white >> 1 | fourth_numbers)
}

/// The text as the scanners see it. Positions are byte offsets and always at a character.
#[derive(Clone, Copy)]
pub struct Text<'t> {
    bytes: &'t [u8],
    classes: &'static Classes,
}

impl Text<'_> {
    /// The class of the character at `pos` and its length in bytes; nothing at the text's end.
    #[inline(always)]
    fn class(self, pos: usize) -> (u8, usize) {
        match self.bytes.get(pos) {
            Some(&byte) if byte < 0x80 => (self.classes.of_byte(byte), 1),
            Some(&byte) => self.class_of_many(byte, pos),
            None => (0, 0),
        }
    }

    /// `class` of a character that takes more than one byte, `lead` being the first.
    #[inline(always)]
    fn class_of_many(self, lead: u8, pos: usize) -> (u8, usize) {
        let low = |i: usize| u32::from(self.bytes[pos + i] & 0x3f);
        let lead = u32::from(lead);
        if lead < 0xe0 {
            return (self.classes.of_code((lead & 0x1f) << 6 | low(1)), 2);
        }
        if lead < 0xf0 {
            let code = (lead & 0xf) << 12 | low(1) << 6 | low(2);
            return (self.classes.of_code(code), 3);
        }
        let code = (lead & 7) << 18 | low(1) << 12 | low(2) << 6 | low(3);
        (self.classes.of_code(code), 4)
    }

    /// The end of the run of characters of the classes in `set` from `pos` on.
    #[inline(always)]
    fn skip(self, set: u8, mut pos: usize) -> usize {
        loop {
            let (class, len) = self.class(pos);
            if class & set == 0 {
                return pos;
            }
            pos += len;
        }
    }

    /// `skip(LETTER, pos)`, fast.
    #[inline(always)]
    fn skip_letters(self, pos: usize) -> usize {
        self.skip_runs(LETTER, ascii_letters, pos)
    }

    /// `skip`, eight ASCII bytes at a time: `ascii` gives the high bit of each byte that is an
    /// ASCII character of `set`.
    #[inline(always)]
    fn skip_runs(self, set: u8, ascii: impl Fn(u64) -> u64, mut pos: usize) -> usize {
        loop {
            while let Some(word) = self.word(pos) {
                let stop = !ascii(word) & HIGH;
                if stop != 0 {
                    pos += stop.trailing_zeros() as usize / 8;
                    break;
                }
                pos += 8;
            }
            // The text's last bytes, and one character after another where none is ASCII.
            loop {
                let (class, len) = self.class(pos);
                if class & set == 0 {
                    return pos;
                }
                pos += len;
                if len == 1 {
                    break;
                }
            }
        }
    }

    /// The end of `\p{N}{1,3}`, its first number being before `pos`.
    #[inline(always)]
    fn skip_numbers(self, mut pos: usize) -> usize {
        for _ in 0..2 {
            let (class, len) = self.class(pos);
            if class & NUMBER == 0 {
                break;
            }
            pos += len;
        }
        pos
    }

    /// The eight bytes from `pos` on, the first lowest.
    #[inline(always)]
    fn word(self, pos: usize) -> Option<u64> {
        let bytes = self.bytes.get(pos..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// The end of the contraction at the apostrophe at `pos`: `'s 'd 'm 't 'll 've 're`.
    #[inline(always)]
    fn contraction<const ANY_CASE: bool>(self, pos: usize) -> Option<usize> {
        let fold = |byte: u8| if ANY_CASE { byte | 0x20 } else { byte };
        let first = *self.bytes.get(pos + 1)?;
        if let b's' | b'd' | b'm' | b't' = fold(first) {
            return Some(pos + 2);
        }
        let second = *self.bytes.get(pos + 2)?;
        match (fold(first), fold(second)) {
            (b'l', b'l') | (b'v', b'e') | (b'r', b'e') => Some(pos + 3),
            // U+017F, the long s, is an s in another case.
            _ if ANY_CASE && [first, second] == [0xc5, 0xbf] => Some(pos + 3),
            _ => None,
        }
    }

    /// The end of a chunk that begins with the white space at `start` and takes nothing else:
    /// `\s+(?!\S)|\s+`, with `NEWLINES` `\s*[\r\n]` before that, with `WHOLE_TAIL` `\s++$` before
    /// both.
    #[inline(always)]
    fn white_space<const NEWLINES: bool, const WHOLE_TAIL: bool>(self, start: usize) -> usize {
        let (mut last, mut end, mut after_newline) = (start, start, start);
        loop {
            let (class, len) = self.class(end);
            if class & WHITE == 0 {
                break;
            }
            last = end;
            end += len;
            if class & NEWLINE != 0 {
                after_newline = end;
            }
        }
        let tail = end == self.bytes.len();
        if NEWLINES && after_newline > start && !(WHOLE_TAIL && tail) {
            after_newline
        } else if tail || last == start {
            end
        } else {
            last
        }
    }

    /// The end of an o200k word that begins at `start` with a letter or mark, `first`: which is
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` if that matches,
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*` if not, and then a contraction.
    #[inline(always)]
    fn cased_word(self, start: usize, first: (u8, usize)) -> usize {
        let mut end = start;
        let mut after_caseless = start;
        let (mut class, mut len) = first;
        while class & (UPPER | CASELESS | MARK) != 0 {
            end += len;
            if class & UPPER == 0 {
                after_caseless = end;
            }
            (class, len) = self.class(end);
        }
        if class & LOWER != 0 {
            end = self.skip_runs(LOWER | CASELESS | MARK, ascii_lower, end);
        } else if after_caseless > start {
            // The first class gives back as far as its last character that the second accepts.
            // What it gave back is all upper case: the next chunk, so no character is given back
            // twice.
            end = after_caseless;
        }
        if self.bytes.get(end) == Some(&b'\'') {
            end = self.contraction::<true>(end).unwrap_or(end);
        }
        end
    }
}

const HIGH: u64 = 0x8080_8080_8080_8080;

/// The high bit of each byte that is an ASCII letter.
#[inline(always)]
fn ascii_letters(word: u64) -> u64 {
    between::<b'a', b'z'>(word | 0x2020_2020_2020_2020) & !word
}

/// The high bit of each byte that is a lower-case ASCII letter.
#[inline(always)]
fn ascii_lower(word: u64) -> u64 {
    between::<b'a', b'z'>(word) & !word
}

/// The high bit of each byte from `FIRST` to `LAST`, both ASCII. A byte that is not ASCII counts
/// as its low seven bits.
#[inline(always)]
fn between<const FIRST: u8, const LAST: u8>(word: u64) -> u64 {
    let low = word & !HIGH;
    let all = |byte: u8| u64::from_le_bytes([byte; 8]);
    // No sum of two numbers below 128 carries into the next byte.
    (low + all(0x80 - FIRST)) & !(low + all(0x7f - LAST)) & HIGH
}
