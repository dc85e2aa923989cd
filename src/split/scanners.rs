//! Scans text with the patterns of the GPT family: given the start of a chunk, it finds the end.
//!
//! The scanner implements the regular expressions by hand: it tries the alternatives in order and computes the match
//! that backtracking would arrive at. It takes linear time on any text, since it looks at each character only a few
//! times.
//!
//! There are two paths. `end` finds the end of one chunk in any text. `starts` finds all chunks in a block of 64 bytes
//! at once, with bit operations. Where the block alone does not decide, `scan` calls `end`.
//!
//! Chunks are sliced without checks, so both must return valid positions. `end` consumes at least one character, moves
//! by whole characters and stops at the end of the text. `starts` is built from masks of ASCII characters.

#[cfg(target_arch = "x86_64")]
use super::blocks::{Avx2, Avx512};
use super::blocks::{BLOCK, Block, Masks, Portable};
use super::chunks::Span;
use super::classes::{CASELESS, ClassTable, LETTER, LOWER, MARK, NEWLINE, NUMBER, OTHER, SYMBOL, Text, UPPER, WHITE};
use super::family::{Contractions, Family, PUBLISHED, Prefix, Tail, White, Words};

/// Where the scanner takes its pattern from: a constant, for which it is compiled, or an argument.
pub trait Source {
    fn family(given: Family) -> Family;
}

/// A pattern of `PUBLISHED`.
pub struct Constant<const INDEX: usize>;
pub struct Given;

impl<const INDEX: usize> Source for Constant<INDEX> {
    #[inline(always)]
    fn family(_: Family) -> Family {
        const { PUBLISHED[INDEX] }
    }
}

impl Source for Given {
    #[inline(always)]
    fn family(given: Family) -> Family {
        given
    }
}

/// A scanner for a pattern, compiled for the processor.
#[derive(Clone, Copy)]
pub struct Scan {
    family: Family,
    run: unsafe fn(Family, &str, usize, &mut [Span]) -> (usize, usize),
}

impl Scan {
    pub fn new(family: Family) -> Self {
        Self::all(family)[0]
    }

    /// Returns the scanner for each instruction set that the processor has, the fastest first.
    pub fn all(family: Family) -> Vec<Self> {
        match PUBLISHED.iter().position(|published| *published == family) {
            Some(0) => Self::compiled::<Constant<0>>(family),
            Some(1) => Self::compiled::<Constant<1>>(family),
            Some(2) => Self::compiled::<Constant<2>>(family),
            Some(3) => Self::compiled::<Constant<3>>(family),
            _ => Self::compiled::<Given>(family),
        }
    }

    /// Like `all`, for a certain source.
    pub fn compiled<S: Source>(family: Family) -> Vec<Self> {
        let mut all = vec![Self { family, run: scan::<S, Portable> }];
        #[cfg(target_arch = "x86_64")]
        {
            let has_bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt");
            if has_bits && is_x86_feature_detected!("avx2") {
                all.push(Self { family, run: scan_avx2::<S> });
            }
            if has_bits && is_x86_feature_detected!("avx512bw") {
                all.push(Self { family, run: scan_avx512::<S> });
            }
        }
        all.reverse();
        all
    }

    /// Finds the chunks of `text` from `start` on, which must be 0 or the end of a chunk. Fills `spans`, except for
    /// fewer than `BLOCK` of them. Returns their number and the end of the last one.
    #[inline]
    pub fn run(self, text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
        // SAFETY: `compiled` has checked that the processor has the instructions.
        unsafe { (self.run)(self.family, text, start, spans) }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn scan_avx2<S: Source>(given: Family, text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
    // SAFETY: this function is compiled for AVX2, so its callers have made sure that the processor has it.
    unsafe { scan::<S, Avx2>(given, text, start, spans) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1,popcnt")]
fn scan_avx512<S: Source>(given: Family, text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
    // SAFETY: as above, for AVX-512BW.
    unsafe { scan::<S, Avx512>(given, text, start, spans) }
}

/// # Safety
/// As for `Masks::between`.
#[inline(always)]
unsafe fn scan<S: Source, M: Masks>(given: Family, text: &str, mut start: usize, spans: &mut [Span]) -> (usize, usize) {
    let family = S::family(given);
    let scanned = Text { bytes: text.as_bytes(), classes: ClassTable::general() };
    let mut len = 0;
    while start < text.len() && len + BLOCK + 8 <= spans.len() {
        if let Some(block) = scanned.bytes[start..].first_chunk()
            && block[0].is_ascii()
            && block[1].is_ascii()
        {
            // The block starts with a chunk, so the text before it does not matter.
            let base = start;
            // SAFETY: the caller has made sure that the processor has the instructions.
            let (starts, undecided) = starts(family, &unsafe { Block::new::<M>(block) });
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
        let end = scanned.end(family, start);
        spans[len] = (start, end);
        len += 1;
        start = end;
    }
    (len, start)
}

/// Takes a block that starts with a chunk. Returns a mask of the bytes where chunks start, and a mask of the bytes where
/// the block alone does not decide. The first mask is valid up to and including the lowest bit of the second.
#[inline(always)]
fn starts(family: Family, block: &Block) -> (u64, u64) {
    let Block { numbers, spaces, newlines, symbols, apostrophes, .. } = *block;
    let letters = block.letters();
    // The addition carries through each run of newlines that follows a symbol, and clears it.
    let taken = match family.tail {
        Tail::None => 0,
        _ => newlines & !newlines.wrapping_add(newlines & symbols << 1),
    };
    let white = block.white & !taken;
    let first_symbols = symbols & !((symbols | spaces) << 1);
    let prefixes = match family.prefix {
        Prefix::None => 0,
        Prefix::Space => spaces,
        Prefix::Any => first_symbols | white & !newlines,
    };
    let first_numbers = match family.digits {
        1 => numbers,
        _ => numbers & !((numbers | if family.spaced_numbers { spaces } else { 0 }) << 1),
    };
    let too_many_numbers = match family.digits {
        2 => numbers & numbers << 1 & numbers << 2,
        3 => numbers & numbers << 1 & numbers << 2 & numbers << 3,
        _ => 0,
    };
    let cutting_newlines = if family.white == White::Plain { 0 } else { newlines & white };
    let whole = if family.whole_before_numbers { numbers >> 1 } else { 0 };
    let (white_starts, open) = white_starts(block, white, cutting_newlines, whole);
    let mut starts = letters & !((letters | prefixes) << 1) | first_numbers | first_symbols | white_starts;
    if family.words == Words::Cased {
        starts |= block.upper & block.lower << 1;
    }
    let mut undecided = open | too_many_numbers;
    if family.contractions != Contractions::None {
        undecided |= apostrophes & starts & letters >> 1;
    }
    // An apostrophe after a letter may start a contraction, which belongs to the word before it. A slash after newlines
    // may belong to the symbols before them.
    let mut joined = 0;
    if family.suffixes != Contractions::None {
        joined |= apostrophes & letters << 1;
    }
    if family.tail == Tail::NewlinesAndSlashes {
        joined |= block.slashes & newlines << 1;
    }
    (starts & !joined, undecided | joined)
}

/// The part of `starts` for `white`, the white space that is not the end of other chunks. A run of it is cut
/// before its last character, which may belong to the next word, unless that is in `whole`, and after the last of
/// `newlines`, if there are any.
#[inline(always)]
fn white_starts(block: &Block, white: u64, newlines: u64, whole: u64) -> (u64, u64) {
    let blanks = white & !newlines;
    let indents = blanks & newlines << 1;
    let starts = white & !(white << 1) | indents | blanks & !(white >> 1) & !whole;
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

impl Text<'_> {
    /// Returns the end of the chunk that starts at `start`, which must be before the end of the text.
    #[inline(always)]
    fn end(self, family: Family, start: usize) -> usize {
        // A mark may be the optional prefix of a word or its first character. The result is the same: taking it as the
        // prefix fails only if the word consists of that mark alone.
        let in_words = if family.words == Words::Letters { LETTER } else { LETTER | MARK };
        let symbols = if family.marks_are_symbols { SYMBOL } else { OTHER };
        let (class, len) = self.class(start);
        if class & in_words != 0 {
            return self.word(family, start, (class, len));
        }
        if class & NUMBER != 0 {
            return self.number(family, start + len);
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
                return self.number(family, start + len + next_len);
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

    /// Returns the end of a number, whose first character ends at `pos`.
    #[inline(always)]
    fn number(self, family: Family, mut pos: usize) -> usize {
        if family.digits == 0 {
            return self.skip(NUMBER, pos);
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

    /// Returns the end of a chunk of white space that starts at `start`.
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
        } else if tail || last == start || family.whole_before_numbers && self.class(end).0 & NUMBER != 0 {
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
