//! A scanner for each named pattern: given the start of a chunk, it finds the end.
//!
//! Each scanner implements its regular expression by hand: it tries the alternatives in order and computes the match
//! that backtracking would arrive at. Scanners take linear time on any text, since they look at each character only a
//! few times.
//!
//! There are two paths. `Scanner::end` finds the end of one chunk in any text. `Scanner::starts` finds all chunks in a
//! block of 64 bytes at once, with bit operations. Where the block alone does not decide, `scan` calls `end`.

#[cfg(target_arch = "x86_64")]
use super::blocks::{Avx2, Avx512};
use super::blocks::{BLOCK, Block, Masks, Portable};
use super::chunks::Span;
use super::classes::{CASELESS, Classes, LETTER, LOWER, MARK, NEWLINE, NUMBER, OTHER, SYMBOL, UPPER, WHITE};

/// # Safety
/// Chunks are sliced without checks, so implementations must return valid positions. `end` must return a character
/// boundary after `start` and not beyond the end of the text. The first mask that `starts` returns must have bits only
/// at ASCII characters.
pub unsafe trait Scanner {
    /// Returns the end of the chunk that starts at `start`, which must be before the end of the text.
    fn end(text: ScannedText, start: usize) -> usize;

    /// Takes a block that starts with a chunk. Returns a mask of the bytes where chunks start, and a mask of the bytes
    /// where the block alone does not decide. The first mask is valid up to and including the lowest bit of the second.
    fn starts(block: &Block) -> (u64, u64);
}

/// A scanner, compiled for the processor.
#[derive(Clone, Copy)]
pub struct Scan(unsafe fn(&str, usize, &mut [Span]) -> (usize, usize));

impl Scan {
    pub fn new<S: Scanner>() -> Self {
        Self::all::<S>()[0]
    }

    /// Returns the scanner for each instruction set that the processor has, the fastest first.
    pub fn all<S: Scanner>() -> Vec<Self> {
        let mut all = vec![Self(scan::<S, Portable>)];
        #[cfg(target_arch = "x86_64")]
        {
            let has_bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt");
            if has_bits && is_x86_feature_detected!("avx2") {
                all.push(Self(scan_avx2::<S>));
            }
            if has_bits && is_x86_feature_detected!("avx512bw") {
                all.push(Self(scan_avx512::<S>));
            }
        }
        all.reverse();
        all
    }

    /// Finds the chunks of `text` from `start` on, which must be 0 or the end of a chunk. Fills `spans`, except for
    /// fewer than `BLOCK` of them. Returns their number and the end of the last one.
    #[inline]
    pub fn run(self, text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
        // SAFETY: `all` has checked that the processor has the instructions.
        unsafe { (self.0)(text, start, spans) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn scan_avx2<S: Scanner>(text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
    // SAFETY: this function is compiled for AVX2, so its callers have made sure that the processor has it.
    unsafe { scan::<S, Avx2>(text, start, spans) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1,popcnt")]
fn scan_avx512<S: Scanner>(text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
    // SAFETY: as above, for AVX-512BW.
    unsafe { scan::<S, Avx512>(text, start, spans) }
}

/// # Safety
/// As for `Masks::between`.
#[inline(always)]
unsafe fn scan<S: Scanner, M: Masks>(text: &str, mut start: usize, spans: &mut [Span]) -> (usize, usize) {
    let scanned = ScannedText { bytes: text.as_bytes(), classes: Classes::get() };
    let mut len = 0;
    while start < text.len() && len + BLOCK + 8 <= spans.len() {
        if let Some(block) = scanned.bytes[start..].first_chunk()
            && block[0].is_ascii()
            && block[1].is_ascii()
        {
            // The block starts with a chunk, so the text before it does not matter.
            let base = start;
            // SAFETY: the caller has made sure that the processor has the instructions.
            let (starts, undecided) = S::starts(&unsafe { Block::new::<M>(block) });
            // The bits up to and including the lowest undecided one, without the start of the block itself.
            let mut decided = starts & (undecided ^ undecided.wrapping_sub(1)) & !1;
            let count = decided.count_ones() as usize;
            let mut at = len;
            len += count;
            // Eight at a time, because the processor predicts few rounds better than many. Those that are too many are
            // overwritten later.
            while at < len {
                for span in &mut spans[at..at + 8] {
                    let end = base + decided.trailing_zeros() as usize;
                    *span = (start, end);
                    start = end;
                    decided &= decided.wrapping_sub(1);
                }
                at += 8;
            }
            if count > 0 {
                start = spans[len - 1].1;
            }
            if undecided == 0 && start > base {
                continue;
            }
        }
        let end = S::end(scanned, start);
        spans[len] = (start, end);
        len += 1;
        start = end;
    }
    (len, start)
}

/// `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
pub struct Gpt2;

// SAFETY: `end` consumes at least one character, moves by whole characters and stops at the end of the text. `starts`
// is built from masks of ASCII classes.
unsafe impl Scanner for Gpt2 {
    #[inline(always)]
    fn end(text: ScannedText, start: usize) -> usize {
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
        let (white_starts, undecided) = white_starts(block, white, 0);
        let starts = first(letters) | first(numbers) | first(symbols) | white_starts;
        (starts, undecided | block.apostrophes & starts & letters >> 1)
    }
}

/// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`
///
/// `Gpt4<true>` is cl100k, which also has `\s++$` before `\s*[\r\n]`.
pub struct Gpt4<const WHOLE_TAIL: bool>;

// SAFETY: as for `Gpt2`.
unsafe impl<const WHOLE_TAIL: bool> Scanner for Gpt4<WHOLE_TAIL> {
    #[inline(always)]
    fn end(text: ScannedText, start: usize) -> usize {
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
        let (starts, undecided) = starts_with_prefixes(block);
        (starts, undecided | block.apostrophes & starts & block.letters() >> 1)
    }
}

/// o200k. A new word starts where lower case changes to upper case, and a contraction belongs to its word.
pub struct O200k;

// SAFETY: as for `Gpt2`.
unsafe impl Scanner for O200k {
    #[inline(always)]
    fn end(text: ScannedText, start: usize) -> usize {
        let (class, len) = text.class(start);
        if class & (LETTER | MARK) != 0 {
            // A mark may be the optional prefix of a word or its first character. The result is the same: taking it as
            // the prefix fails only if the word consists of that mark alone.
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
        let (starts, undecided) = starts_with_prefixes(block);
        // An apostrophe after a letter may start a contraction, which belongs to the word before it. A slash after
        // newlines may belong to the symbols before them.
        let joined = block.apostrophes & block.letters() << 1 | block.slashes & block.newlines << 1;
        ((starts | block.upper & block.lower << 1) & !joined, undecided | joined)
    }
}

/// The part of `Scanner::starts` that gpt4 and o200k share: a word may have a prefix, a chunk has at most three digits,
/// and symbols include the newlines after them.
#[inline(always)]
fn starts_with_prefixes(block: &Block) -> (u64, u64) {
    let Block { numbers, spaces, newlines, symbols, .. } = *block;
    let letters = block.letters();
    // The addition carries through each run of newlines that follows a symbol, and clears it.
    let taken = newlines & !newlines.wrapping_add(newlines & symbols << 1);
    let white = block.white & !taken;
    let first_symbols = symbols & !((symbols | spaces) << 1);
    let prefixes = first_symbols | white & !newlines;
    let (white_starts, undecided) = white_starts(block, white, newlines & white);
    let starts = letters & !((letters | prefixes) << 1) | numbers & !(numbers << 1) | first_symbols | white_starts;
    let fourth_numbers = numbers & numbers << 1 & numbers << 2 & numbers << 3;
    (starts, undecided | fourth_numbers)
}

/// The part of `Scanner::starts` for `white`, the white space that is not the end of other chunks. A run of it is cut
/// before its last character, which may belong to the next word, and after the last of `newlines`, if there are any.
#[inline(always)]
fn white_starts(block: &Block, white: u64, newlines: u64) -> (u64, u64) {
    let blanks = white & !newlines;
    let indents = blanks & newlines << 1;
    let starts = white & !(white << 1) | indents | blanks & !(white >> 1);
    // The addition carries through each indent to the character after it. Should that be a newline, then the line is
    // blank, and belongs to the chunk of that newline. This is rare enough not to compute which indent it is.
    let after_indents = blanks.wrapping_add(indents) & !blanks;
    let undecided = if after_indents & newlines == 0 { 0 } else { indents >> 1 };
    // A run that reaches a non-ASCII character or the end of the block may continue.
    let end = block.non_ascii.trailing_zeros();
    let run = (white.unbounded_shl(64 - end)).leading_ones();
    let open = if run > 1 { 1 << (end - run) } else { 0 };
    (starts, block.non_ascii | undecided | open)
}

/// The text as the scanners see it. Positions are byte offsets and always character boundaries.
#[derive(Clone, Copy)]
pub struct ScannedText<'t> {
    bytes: &'t [u8],
    classes: &'static Classes,
}

impl ScannedText<'_> {
    /// Returns the class of the character at `pos` and its length in bytes, or (0, 0) at the end of the text.
    #[inline(always)]
    fn class(self, pos: usize) -> (u8, usize) {
        match self.bytes.get(pos) {
            Some(&byte) if byte < 0x80 => (self.classes.of_byte(byte), 1),
            Some(&byte) => self.multibyte_class(byte, pos),
            None => (0, 0),
        }
    }

    /// Implements `class` for a character of several bytes, the first of which is `lead`.
    #[inline(always)]
    fn multibyte_class(self, lead: u8, pos: usize) -> (u8, usize) {
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

    /// A faster `skip(LETTER, pos)`.
    #[inline(always)]
    fn skip_letters(self, pos: usize) -> usize {
        self.skip_by_words(LETTER, ascii_letters, pos)
    }

    /// Like `skip`, but takes eight ASCII bytes at a time. `ascii` returns the high bit of each byte that is an ASCII
    /// character in `set`.
    #[inline(always)]
    fn skip_by_words(self, set: u8, ascii: impl Fn(u64) -> u64, mut pos: usize) -> usize {
        loop {
            while let Some(word) = self.word(pos) {
                let stop = !ascii(word) & HIGH;
                if stop != 0 {
                    pos += stop.trailing_zeros() as usize / 8;
                    break;
                }
                pos += 8;
            }
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

    /// Returns the end of `\p{N}{1,3}`, whose first character ends at `pos`.
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

    /// Returns the eight bytes from `pos` on, little endian.
    #[inline(always)]
    fn word(self, pos: usize) -> Option<u64> {
        let bytes = self.bytes.get(pos..)?.first_chunk::<8>()?;
        Some(u64::from_le_bytes(*bytes))
    }

    /// Returns the end of the contraction that starts with the apostrophe at `pos`: `'s 'd 'm 't 'll 've 're`.
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
            // U+017F (ſ, long s) matches `(?i:s)`.
            _ if ANY_CASE && [first, second] == [0xc5, 0xbf] => Some(pos + 3),
            _ => None,
        }
    }

    /// Returns the end of a chunk of white space that starts at `start`: `\s+(?!\S)|\s+`. `NEWLINES` puts `\s*[\r\n]`
    /// before these alternatives, and `WHOLE_TAIL` puts `\s++$` before all of them.
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

    /// Returns the end of an o200k word that starts at `start` with a letter or mark. `first` is the class and length
    /// of that character. The word matches `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+` or, if that
    /// fails, `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*`, followed by an optional contraction.
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
        if self.bytes.get(end) == Some(&b'\'') {
            end = self.contraction::<true>(end).unwrap_or(end);
        }
        end
    }
}

const HIGH: u64 = 0x8080_8080_8080_8080;

/// Returns the high bit of each byte that is an ASCII letter.
#[inline(always)]
fn ascii_letters(word: u64) -> u64 {
    between::<b'a', b'z'>(word | 0x2020_2020_2020_2020) & !word
}

/// Returns the high bit of each byte that is a lower-case ASCII letter.
#[inline(always)]
fn ascii_lower(word: u64) -> u64 {
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
