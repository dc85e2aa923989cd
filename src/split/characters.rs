//! Finds the end of a chunk in any text, character by character: the slow path of `scanners`.

use super::classes::{
    CASELESS, ClassTable, DECIMAL, LETTER, LOWER, MARK, NEWLINE, NUMBER, OTHER, SYMBOL, Text, UPPER, WHITE, WORD,
};
use super::family::{Contractions, Family, Prefix, Tail, White, Words};

impl Text<'_> {
    /// Returns the end of the chunk that starts at `start`, which must be before the end of the text. `Chunks` relies
    /// on the end being a character boundary, not before `start`.
    #[inline(always)]
    pub fn end(self, family: Family, start: usize) -> usize {
        // A mark may be the optional prefix of a word or its first character. The result is the same: taking it as the
        // prefix fails only if the word consists of that mark alone.
        let in_words = if family.words == Words::Letters { LETTER } else { LETTER | MARK };
        let symbols = if family.marks_are_symbols { SYMBOL } else { OTHER };
        let (class, len) = self.class(start);
        if class & in_words != 0 {
            return self.word(family, start, (class, len));
        }
        if class & NUMBER != 0 {
            return self.number(family, start, start + len);
        }
        let is_space = self.bytes[start] == b' ';
        if class & NEWLINE == 0 {
            let (next, next_len) = self.class(start + len);
            if family.contractions != Contractions::None
                && self.bytes[start] == b'\''
                && next & LETTER != 0
                && let Some(end) = self.contraction(family.contractions, start)
            {
                return end;
            }
            let has_prefix = match family.prefix {
                Prefix::None => false,
                Prefix::Space => is_space,
                Prefix::Any => true,
            };
            if has_prefix && next & in_words != 0 {
                return self.word(family, start + len, (next, next_len));
            }
            if family.spaced_numbers && is_space && next & NUMBER != 0 {
                return self.number(family, start + len, start + len + next_len);
            }
            if class & symbols != 0 || is_space && next & symbols != 0 {
                let end = self.skip(symbols, start + len);
                return match family.tail {
                    Tail::None => end,
                    Tail::Newlines => self.skip(NEWLINE, end),
                    Tail::NewlinesAndSlashes => self.skip_newlines_and_slashes(end),
                };
            }
        }
        self.white_space(family, start)
    }

    /// Returns the end of a word, whose first character has this class and length.
    #[inline(always)]
    fn word(self, family: Family, start: usize, first: (u8, usize)) -> usize {
        let end = match family.words {
            Words::Letters => self.skip_by_words(LETTER, ascii_letters, start + first.1),
            Words::LettersAndMarks => self.skip_by_words(LETTER | MARK, ascii_letters, start + first.1),
            Words::Cased => self.cased_word(start, first),
        };
        if family.suffixes != Contractions::None && self.bytes.get(end) == Some(&b'\'') {
            return self.contraction(family.suffixes, end).unwrap_or(end);
        }
        end
    }

    /// Returns the end of a number, whose first character is at `start` and ends at `pos`.
    #[inline(always)]
    fn number(self, family: Family, start: usize, mut pos: usize) -> usize {
        if family.digits == 0 {
            return self.skip(NUMBER, pos);
        }
        if family.numbers_from_right {
            return self.number_from_right(start);
        }
        for _ in 1..family.digits {
            let (class, len) = self.class(pos);
            if class & NUMBER == 0 {
                break;
            }
            pos += len;
        }
        pos
    }

    /// Returns the end of a number that starts at `start`, if numbers are cut into groups from the right: those that
    /// match `\p{Nd}+`, with no word character after them. Others match `\p{N}{1,3}` up to the next such number.
    fn number_from_right(self, start: usize) -> usize {
        let digits = self.digits();
        let mut pos = start;
        if let Some(count) = digits.grouped(start) {
            for _ in 0..(count - 1) % 3 + 1 {
                pos += digits.class(pos).1;
            }
            return pos;
        }
        for _ in 0..3 {
            let (class, len) = self.class(pos);
            if class & NUMBER == 0 || pos > start && digits.grouped(pos).is_some() {
                break;
            }
            pos += len;
        }
        pos
    }

    fn digits(self) -> Self {
        Self { classes: ClassTable::decimals(), ..self }
    }

    /// Returns the number of decimal digits from `pos` on, if they are a whole number that is cut from the right.
    ///
    /// Returns `None` in the middle of one. There the number of digits left is a multiple of three, because the chunks
    /// before took the others. So the next chunk has three digits, and no number is read more than twice.
    fn grouped(self, pos: usize) -> Option<usize> {
        let before = self.bytes[..pos].iter().rposition(|byte| byte & 0xc0 != 0x80);
        if before.is_some_and(|before| self.class(before).0 == DECIMAL) {
            return None;
        }
        let (mut end, mut count) = (pos, 0);
        loop {
            let (class, len) = self.class(end);
            if class != DECIMAL {
                return (count > 0 && class & WORD == 0).then_some(count);
            }
            end += len;
            count += 1;
        }
    }

    #[inline(always)]
    fn skip_newlines_and_slashes(self, mut pos: usize) -> usize {
        while matches!(self.bytes.get(pos), Some(b'\r' | b'\n' | b'/')) {
            pos += 1;
        }
        pos
    }

    /// Returns the end of the run of characters from `pos` on whose classes are in `set`.
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

    /// Like `skip`, but takes eight ASCII bytes at a time. `ascii` returns the high bit of each byte that is an ASCII
    /// character in `set`.
    #[inline(always)]
    fn skip_by_words(self, set: u8, ascii: impl Fn(u64) -> u64, mut pos: usize) -> usize {
        loop {
            pos = self.skip_ascii(&ascii, pos);
            // Take single characters at the end of the text and through a run of non-ASCII characters.
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

    /// The part of `skip_by_words` that takes eight bytes at a time. It may stop early at the end of the text.
    #[inline(always)]
    pub fn skip_ascii(self, ascii: impl Fn(u64) -> u64, mut pos: usize) -> usize {
        while let Some(&bytes) = self.bytes.get(pos..).and_then(|bytes| bytes.first_chunk::<8>()) {
            let stop = !ascii(u64::from_le_bytes(bytes)) & HIGH;
            if stop != 0 {
                return pos + stop.trailing_zeros() as usize / 8;
            }
            pos += 8;
        }
        pos
    }

    /// Returns the end of the contraction that starts with the apostrophe at `pos`: `'s 'd 'm 't 'll 've 're`.
    #[inline(always)]
    fn contraction(self, contractions: Contractions, pos: usize) -> Option<usize> {
        let any_case = contractions == Contractions::AnyCase;
        let fold = |byte: u8| if any_case { byte | 0x20 } else { byte };
        let first = *self.bytes.get(pos + 1)?;
        if let b's' | b'd' | b'm' | b't' = fold(first) {
            return Some(pos + 2);
        }
        let second = *self.bytes.get(pos + 2)?;
        match (fold(first), fold(second)) {
            (b'l', b'l') | (b'v', b'e') | (b'r', b'e') => Some(pos + 3),
            // U+017F (ſ, long s) matches `(?i:s)`.
            _ if any_case && [first, second] == [0xc5, 0xbf] => Some(pos + 3),
            _ => None,
        }
    }

    /// Returns the end of a chunk of whitespace that starts at `start`.
    #[inline(always)]
    fn white_space(self, family: Family, start: usize) -> usize {
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
        let by_lines = match family.white {
            White::Plain => false,
            White::Newlines => true,
            White::NewlinesUnlessLast => !tail,
        };
        if by_lines && after_newline > start {
            after_newline
        } else if tail
            || last == start
            || family.whole_before_numbers && self.class(end).0 & NUMBER != 0
            || family.numbers_from_right && self.digits().grouped(end).is_some()
        {
            end
        } else {
            last
        }
    }

    /// Returns the end of an o200k word that starts at `start` with a letter or mark. `first` is the class and length
    /// of that character. The word matches `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` or, if that
    /// fails, `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`.
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
            end = self.skip_by_words(LOWER | CASELESS | MARK, ascii_lower, end);
        } else if after_caseless > start {
            // The first class backtracks to its last character that the second class also accepts. The characters after
            // it are all upper case and form the next chunk, so no character is backtracked over twice.
            end = after_caseless;
        }
        end
    }
}

const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the high bit of each byte that is an ASCII letter.
#[inline(always)]
pub fn ascii_letters(word: u64) -> u64 {
    between::<b'a', b'z'>(word | 0x2020_2020_2020_2020) & !word
}

/// Returns the high bit of each byte that is a lower-case ASCII letter.
#[inline(always)]
pub fn ascii_lower(word: u64) -> u64 {
    between::<b'a', b'z'>(word) & !word
}

/// Returns the high bit of each byte from `FIRST` to `LAST`, which must be ASCII. Ignores the high bits of the bytes.
#[inline(always)]
fn between<const FIRST: u8, const LAST: u8>(word: u64) -> u64 {
    let low = word & !HIGH;
    let all = |byte: u8| u64::from_le_bytes([byte; 8]);
    // Both numbers are at most 127, so no sum carries into the next byte.
    (low + all(0x80 - FIRST)) & !(low + all(0x7f - LAST)) & HIGH
}
