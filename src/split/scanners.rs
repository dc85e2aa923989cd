//! Scans text with the patterns of the GPT family.
//!
//! The scanner implements the regular expressions by hand: it tries the alternatives in order and computes the match
//! that backtracking would arrive at. It takes linear time on any text, since it looks at each character only a few
//! times.
//!
//! There are two paths. `starts` finds all chunks in a block of 64 bytes at once, with bit operations. If the block
//! alone does not decide where a chunk ends, `scan` calls `Text::end` (see `characters`), which finds the end of one
//! chunk in any text.

use super::automaton::Automaton;
#[cfg(target_arch = "x86_64")]
use super::blocks::{Avx2, Avx512};
use super::blocks::{BLOCK, Block, Masks, Portable};
use super::chunks::{Chunks, Span};
use super::classes::{ClassTable, Text};
use super::family::{Contractions, Family, PUBLISHED, Prefix, Tail, White, Words};
use crate::error::Result;

/// Where the scanner takes its pattern from: a constant, for which it is compiled, or an argument.
pub trait Source {
    type Given;
    /// Whether the blocks leave control characters to `end`, as they leave all that are not ASCII.
    const CONTROLS_ARE_OPEN: bool = false;

    fn family(given: &Self::Given) -> Family;

    /// Returns the end of the chunk at `start`, which must be before the end of the text: a character boundary.
    /// `scanned` is the text with the general classes.
    #[inline(always)]
    fn end(given: &Self::Given, _text: &str, scanned: Text, start: usize) -> usize {
        scanned.end(Self::family(given), start)
    }
}

/// A pattern of `PUBLISHED`.
pub struct Constant<const INDEX: usize>;
pub struct Given;

impl<const INDEX: usize> Source for Constant<INDEX> {
    type Given = Family;

    #[inline(always)]
    fn family(_: &Family) -> Family {
        const { PUBLISHED[INDEX] }
    }
}

impl Source for Given {
    type Given = Family;

    #[inline(always)]
    fn family(given: &Family) -> Family {
        *given
    }
}

/// A pattern that is a member of the family in ASCII text without control characters. An automaton, which must match
/// every character, finds the other chunks.
pub struct InAscii {
    pub family: Family,
    pub automaton: Automaton,
}

impl Source for InAscii {
    type Given = Self;
    const CONTROLS_ARE_OPEN: bool = true;

    #[inline(always)]
    fn family(given: &Self) -> Family {
        given.family
    }

    #[inline(always)]
    fn end(given: &Self, text: &str, _: Text, start: usize) -> usize {
        given.automaton.end(text, start).0.expect("every character matches")
    }
}

type Run<G> = unsafe fn(&G, &str, usize, &mut [Span]) -> (usize, usize);

/// A scanner for a pattern, compiled for the processor.
#[derive(Clone, Copy)]
pub struct Scan<G> {
    pub given: G,
    run: Run<G>,
}

impl Scan<Family> {
    pub fn of(family: Family) -> Self {
        let run = match PUBLISHED.iter().position(|published| *published == family) {
            Some(0) => compiled::<Constant<0>>()[0],
            Some(1) => compiled::<Constant<1>>()[0],
            Some(2) => compiled::<Constant<2>>()[0],
            Some(3) => compiled::<Constant<3>>()[0],
            _ => compiled::<Given>()[0],
        };
        Self { given: family, run }
    }
}

/// Returns the scanner for each instruction set that the processor has, the fastest first.
fn compiled<S: Source>() -> Vec<Run<S::Given>> {
    let mut all: Vec<Run<S::Given>> = vec![scan::<S, Portable>];
    #[cfg(target_arch = "x86_64")]
    {
        let has_bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt");
        if has_bits && is_x86_feature_detected!("avx2") {
            all.push(scan_avx2::<S>);
        }
        if has_bits && is_x86_feature_detected!("avx512bw") {
            all.push(scan_avx512::<S>);
        }
    }
    all.reverse();
    all
}

impl<G> Scan<G> {
    pub fn new<S: Source<Given = G>>(given: G) -> Self {
        Self { given, run: compiled::<S>()[0] }
    }

    /// Returns the scanner for each instruction set that the processor has.
    #[cfg(test)]
    pub fn all<S: Source<Given = G>>(given: G) -> Vec<Self>
    where
        G: Copy,
    {
        compiled::<S>().into_iter().map(|run| Self { given, run }).collect()
    }

    /// Calls `batch` with the chunks of `text`, several at a time. Returns 0, the number of bytes in no chunk.
    #[inline]
    pub fn split<'t>(
        &self,
        text: &'t str,
        spans: &mut [Span],
        mut batch: impl FnMut(Chunks<'t, '_>) -> Result<()>,
    ) -> Result<usize> {
        let mut start = 0;
        while start < text.len() {
            let (chunks, end) = self.batch(text, start, spans);
            batch(chunks)?;
            start = end;
        }
        Ok(0)
    }

    /// Finds the chunks of `text` from `start` on, which must be 0 or the end of a chunk. Fills `spans`, except for
    /// fewer than `BLOCK` of them. Returns the chunks and the end of the last one.
    #[inline]
    pub fn batch<'t, 's>(&self, text: &'t str, start: usize, spans: &'s mut [Span]) -> (Chunks<'t, 's>, usize) {
        assert!(text.is_char_boundary(start));
        // SAFETY: `compiled` has checked that the processor supports the instructions. `Portable` alone: +65%
        // instructions in splitting, +8% in counting.
        let (len, end) = unsafe { (self.run)(&self.given, text, start, spans) };
        // SAFETY: the first span starts at `start`, a boundary, and each other one at the end of the one before it.
        // `scan` ends a span in two ways. One is at a bit of `decided`, after the start of the block: that is an ASCII
        // character of the text, by the contract of `Masks`. The other is `Source::end`: `Text::end` moves by whole
        // characters, and so does `Automaton::end`.
        (unsafe { Chunks::new_unchecked(text, &spans[..len]) }, end)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn scan_avx2<S: Source>(given: &S::Given, text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
    // SAFETY: this function is compiled for AVX2, so its callers have made sure that the processor supports it.
    unsafe { scan::<S, Avx2>(given, text, start, spans) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512bw,bmi1,popcnt")]
fn scan_avx512<S: Source>(given: &S::Given, text: &str, start: usize, spans: &mut [Span]) -> (usize, usize) {
    // SAFETY: as above, for AVX-512BW. With AVX2 instead: +2% time in splitting, and no difference in counting.
    unsafe { scan::<S, Avx512>(given, text, start, spans) }
}

/// # Safety
/// See `Masks::between`.
#[inline(always)]
unsafe fn scan<S: Source, M: Masks>(
    given: &S::Given,
    text: &str,
    mut start: usize,
    spans: &mut [Span],
) -> (usize, usize) {
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
            let mut block = unsafe { Block::new::<M>(block) };
            if S::CONTROLS_ARE_OPEN {
                block.open_controls();
            }
            let (starts, undecided) = starts(family, &block);
            // The bits up to and including the lowest undecided one, without the start of the block itself. `starts`
            // has bits of ASCII characters only. The last mask takes 0.7% more instructions, and lets a mistake in
            // `starts` cause wrong chunks but not invalid UTF-8.
            let mut decided = starts & (undecided ^ undecided.wrapping_sub(1)) & !1 & !block.non_ascii;
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
        let end = S::end(given, text, scanned, start);
        spans[len] = (start, end);
        len += 1;
        start = end;
    }
    (len, start)
}

/// Takes a block that starts with a chunk. Returns a mask of the bytes where chunks start, and a mask of the bytes
/// where the block alone does not decide. The first mask is valid up to and including the lowest bit of the second.
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
    if family.numbers_from_right {
        // Whether whitespace before a number is one chunk depends on what follows the number.
        undecided |= (numbers >> 1 & white & white << 1) >> 1;
    }
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

/// The part of `starts` for `white`, the whitespace that is not the end of other chunks. A run of it is cut
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
