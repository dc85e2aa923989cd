//! Runs a chain whose steps isolate runs of characters, such as `\s?[a-z]+` and `[0-9]`, for 64 characters at once.
//!
//! A word of 64 bits says where the pieces start. Each step adds starts, with a few operations on it and on the words
//! that say which characters are in the sets of the step.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::super::automaton::Partition;
use super::super::blocks::BLOCK;
use super::super::chunks::{BATCH, Chunks, Span};
use super::super::classes::{ClassTable, Text};
use super::super::parse;
use super::super::syntax::{Irregular, Node, Repeat, contains};
use super::{Behavior, Step};
use crate::error::Result;

/// The sets of a character are the bits of a byte.
const MAX_SETS: usize = 8;

/// What a step isolates. Sets are numbers of bits.
#[derive(Clone, Copy)]
enum Cut {
    /// `C`: each character of a set.
    Each(usize),
    /// `C+`
    Runs(usize),
    /// `P?C+`
    Prefixed(usize, usize),
}

pub struct Runs {
    /// The sets of each character.
    table: ClassTable,
    cuts: Vec<Cut>,
    /// After some of the cuts: `W+(?![^\n])`. Then there are only `Each` and `Runs`, which do not depend on the pieces
    /// before them. A cut before it isolates newlines, so the matches are at the ends of pieces.
    last: Option<(usize, usize)>,
    /// For how many characters a window decides where pieces start: all but the last, and another for each `Prefixed`,
    /// which depends on the next character.
    known: usize,
}

/// Some characters of a text.
#[derive(Clone, Copy)]
struct Window {
    /// The sets of each character.
    sets: [u8; BLOCK],
    /// Where the window starts.
    at: usize,
    /// Where each character starts, from there.
    starts: [u8; BLOCK],
    /// The sets of the character before the first, which are none at the start of the text.
    before: u8,
    /// For each set, the characters in it.
    members: [u64; MAX_SETS],
    /// Where pieces start even without a step: at the start and the end of the text.
    ends: u64,
    /// For how many characters the window decides where pieces start.
    known: usize,
}

impl Runs {
    /// Returns `None` if a step isolates anything else.
    pub fn new(steps: &[Step]) -> Result<Option<Self>> {
        let mut sets: Vec<ClassUnicode> = Vec::new();
        let mut number = |set: &ClassUnicode| {
            sets.iter().position(|other| other == set).unwrap_or_else(|| {
                sets.push(set.clone());
                sets.len() - 1
            })
        };
        let (mut cuts, mut last, mut newlines) = (Vec::new(), None, false);
        for step in steps {
            let node = parse::parse(&step.pattern)?.node;
            let items = if let Node::Concat(nodes) = &node { nodes } else { std::slice::from_ref(&node) };
            let classes: Vec<_> = items.iter().map(class).collect();
            let cut = match (&classes[..], step.behavior) {
                (&[Some((set, 1, Some(1)))], Behavior::Isolated) => {
                    newlines |= contains(set, '\n');
                    Cut::Each(number(set))
                }
                (&[Some((set, 1, Some(1) | None))], Behavior::Isolated | Behavior::Contiguous) => {
                    Cut::Runs(number(set))
                }
                (&[Some((prefix, 0, Some(1))), Some((set, 1, None))], Behavior::Isolated) if last.is_none() => {
                    Cut::Prefixed(number(prefix), number(set))
                }
                (&[Some((set, 1, None)), None], Behavior::Isolated)
                    if last.is_none() && newlines && is_end_of_line(&items[1]) =>
                {
                    last = Some((cuts.len(), number(set)));
                    continue;
                }
                _ => return Ok(None),
            };
            cuts.push(cut);
        }
        let Some(table) = (sets.len() <= MAX_SETS).then(|| table(sets)).flatten() else { return Ok(None) };
        let prefixed = cuts.iter().filter(|cut| matches!(cut, Cut::Prefixed(..))).count();
        Ok((prefixed < BLOCK / 2).then(|| Self { table, cuts, last, known: BLOCK - 1 - prefixed }))
    }

    /// Implements `Splitter::split_in_batches`. Nothing is dropped.
    pub fn split<'t>(
        &self,
        text: &'t str,
        spans: &mut [Span],
        batch: &mut dyn FnMut(Chunks<'t, '_>) -> Result<()>,
    ) -> Result<()> {
        let mut window = Window::new();
        let (mut at, mut start, mut len) = (0, 0, 0);
        while at < text.len() {
            window.read(self, text, at);
            let mut found = self.starts(&window, text) & window.known_bits();
            found &= !u64::from(at == 0); // the first chunk ends at the next start
            while found != 0 {
                let end = window.start(found.trailing_zeros() as usize);
                spans[len] = (start, end);
                (start, len) = (end, len + 1);
                found &= found - 1;
            }
            at = window.next(text);
            if at == text.len() {
                spans[len] = (start, at);
                len += 1;
            }
            if len >= BATCH || at == text.len() {
                // SAFETY: spans end where characters of later and later windows start: `Text::class` moves by whole
                // characters. Checking the spans: +7% to +9% time in encoding.
                batch(unsafe { Chunks::new_unchecked(text, &spans[..len]) })?;
                len = 0;
            }
        }
        Ok(())
    }

    /// Returns where chunks start.
    #[inline(always)]
    fn starts(&self, window: &Window, text: &str) -> u64 {
        let Some((count, set)) = self.last else { return cut(&self.cuts, window, window.ends) };
        let pieces = cut(&self.cuts[..count], window, window.ends);
        let mut starts = cut(&self.cuts[count..], window, pieces);
        let mut runs = window.members[set] & !window.previous(set) & !starts & window.known_bits();
        while runs != 0 {
            let first = runs.trailing_zeros() as usize;
            let is_last = window.ends_piece(pieces, set, first + 1);
            if is_last.unwrap_or_else(|| self.ends_piece(text, window)) {
                starts |= 1 << first;
            }
            runs &= runs - 1;
        }
        starts
    }

    /// Returns whether the run of whitespace at the end of a window is at the end of a piece.
    #[cold]
    fn ends_piece(&self, text: &str, window: &Window) -> bool {
        let (count, set) = self.last.expect("there is a step for whitespace");
        let mut following = *window;
        loop {
            following.read(self, text, following.next(text));
            let pieces = cut(&self.cuts[..count], &following, following.ends);
            if let Some(is_last) = following.ends_piece(pieces, set, 0) {
                return is_last;
            }
        }
    }
}

impl Window {
    fn new() -> Self {
        Self { sets: [0; _], at: 0, starts: [0; _], before: 0, members: [0; _], ends: 0, known: 0 }
    }

    /// Reads the characters from `at` on, which is the start of the text or what `next` returns.
    #[inline(always)]
    fn read(&mut self, runs: &Runs, text: &str, at: usize) {
        self.before = if at == 0 { 0 } else { self.sets[self.known - 1] };
        self.ends = u64::from(at == 0);
        self.at = at;
        self.known = runs.known;
        let bytes = text.as_bytes();
        if let Some(block) = bytes[at..].first_chunk::<BLOCK>()
            && block.is_ascii()
        {
            self.sets = block.map(|byte| runs.table.of_byte(byte));
            self.starts = const { first_numbers() };
        } else {
            let text = Text { bytes, classes: &runs.table };
            let mut next = 0;
            for index in 0..BLOCK {
                let (sets, len) = text.class(at + next);
                if len == 0 {
                    self.sets[index..].fill(0);
                    self.ends |= 1 << index;
                    self.known = index;
                    break;
                }
                (self.sets[index], self.starts[index]) = (sets, next as u8);
                next += len;
            }
        }
        self.members = transposed(&self.sets);
    }

    /// Returns where the next window starts.
    fn next(&self, text: &str) -> usize {
        if self.is_last() { text.len() } else { self.start(self.known) }
    }

    #[inline(always)]
    fn start(&self, index: usize) -> usize {
        self.at + usize::from(self.starts[index])
    }

    fn is_last(&self) -> bool {
        self.ends >> self.known & 1 != 0
    }

    fn known_bits(&self) -> u64 {
        (1 << self.known) - 1
    }

    /// Returns the positions after characters of a set.
    fn previous(&self, set: usize) -> u64 {
        self.members[set] << 1 | u64::from(self.before >> set & 1)
    }

    /// Returns whether the run of a set that continues at a position ends where the piece does, or `None` if the window
    /// does not decide that.
    fn ends_piece(&self, pieces: u64, set: usize, from: usize) -> Option<bool> {
        let end = from + ((pieces | !self.members[set]) >> from).trailing_zeros() as usize;
        (end < self.known || self.is_last()).then(|| pieces >> end & 1 != 0)
    }
}

/// Cuts pieces. Takes and returns where they start.
///
/// Proof for `P?C+`: the matches in a piece are its longest runs of C, each with the character before it if that is in P
/// but not in C, and in the piece. Such a character is in no other match, because those end in C.
#[inline(always)]
fn cut(cuts: &[Cut], window: &Window, mut pieces: u64) -> u64 {
    for &cut in cuts {
        match cut {
            Cut::Each(set) => pieces |= window.members[set] | window.previous(set),
            Cut::Runs(set) => pieces |= window.members[set] ^ window.previous(set),
            Cut::Prefixed(prefix, set) => {
                let (members, previous) = (window.members[set], window.previous(set));
                let prefixes = window.members[prefix] & !members & (members & !pieces) >> 1;
                pieces |= prefixes | previous & !members | members & !previous & !window.previous(prefix);
            }
        }
    }
    pieces
}

/// Returns the set that a node matches, and how often.
fn class(node: &Node) -> Option<(&ClassUnicode, u32, Option<u32>)> {
    match node {
        Node::Class(set) => Some((set, 1, Some(1))),
        Node::Repeat(Repeat { child, min, max, greedy: true }) => match &**child {
            Node::Class(set) => Some((set, *min, *max)),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether a node is `(?![^\n])`.
fn is_end_of_line(node: &Node) -> bool {
    let mut others = ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]);
    others.negate();
    let child = Box::new(Node::Class(others));
    *node == Node::Irregular(Irregular::Around { child, behind: false, negative: true })
}

/// Returns a table with a bit for each set of a character.
fn table(sets: Vec<ClassUnicode>) -> Option<ClassTable> {
    let Partition { starts, signatures, .. } = Partition::of(sets).ok()?;
    let ends = starts[1..].iter().map(|start| start.0 - 1).chain([char::MAX as u32]);
    ClassTable::new(
        starts
            .iter()
            .zip(ends)
            .map(|(&(first, class), last)| (first, last, signatures[class as usize] as u8))
            .collect(),
    )
}

const fn first_numbers() -> [u8; BLOCK] {
    let mut numbers = [0; BLOCK];
    let mut next = 1;
    while next < BLOCK {
        numbers[next] = next as u8;
        next += 1;
    }
    numbers
}

/// Returns the words of the first bits of all bytes, the second bits, and so on.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn transposed_sse2(bytes: &[u8; BLOCK]) -> [u64; 8] {
    use std::arch::x86_64::{_mm_add_epi8, _mm_movemask_epi8, _mm_set_epi64x};
    let half = |bytes: &[u8]| i64::from_le_bytes(*bytes.first_chunk().expect("8 bytes"));
    let mut words = [0; 8];
    for (quarter, bytes) in bytes.as_chunks::<16>().0.iter().enumerate() {
        let mut vector = _mm_set_epi64x(half(&bytes[8..]), half(bytes));
        for word in words.iter_mut().rev() {
            *word |= u64::from(_mm_movemask_epi8(vector) as u32) << (16 * quarter);
            vector = _mm_add_epi8(vector, vector); // shifts the bits
        }
    }
    words
}

/// Returns the words of the first bits of all bytes, the second bits, and so on.
#[inline(always)]
fn transposed(bytes: &[u8; BLOCK]) -> [u64; 8] {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: all processors of this architecture have SSE2. `transposed_portable`: +5% to +8% time in encoding.
    return unsafe { transposed_sse2(bytes) };
    #[cfg(not(target_arch = "x86_64"))]
    transposed_portable(bytes)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn transposed_portable(bytes: &[u8; BLOCK]) -> [u64; 8] {
    let mut words = [0; 8];
    for (group, bytes) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let mut bits = u64::from_le_bytes(*bytes);
        // Exchange squares of bits across the diagonal: of one bit, of two and of four.
        for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
            let changed = (bits ^ bits >> shift) & mask;
            bits ^= changed ^ changed << shift;
        }
        for (word, bits) in words.iter_mut().zip(bits.to_le_bytes()) {
            *word |= u64::from(bits) << (8 * group);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_are_transposed(bytes: [u8; BLOCK]) {
            let bits = |bit: usize| (0..BLOCK).map(|index| u64::from(bytes[index] >> bit & 1) << index).sum();
            let expected: [u64; 8] = std::array::from_fn(bits);
            prop_assert_eq!(transposed(&bytes), expected);
            prop_assert_eq!(transposed_portable(&bytes), expected);
        }
    }
}
