//! The chunks of a text, a batch at a time: what `Splitter::split_in_batches` finds.

use super::blocks::BLOCK;
use crate::table::chunk_key::{Key, SHORT_MAX};
use crate::table::hash::Seeds;

/// The minimum size of every batch but the last.
pub const BATCH: usize = if cfg!(test) { 1 << 3 } else { 1 << 10 };
/// The number of chunks that are looked up together, after their slots have been prefetched.
pub const LOOKUP_GROUP: usize = if cfg!(test) { 1 << 2 } else { 1 << 5 };

/// Where a chunk starts and ends in a text.
pub type Span = (usize, usize);

/// Room for the spans of a batch. A scanner takes blocks as a whole, so it may find up to `BLOCK` more chunks, and it
/// writes eight at a time.
pub struct Spans(pub(super) [Span; BATCH + BLOCK + 8]);

impl Default for Spans {
    fn default() -> Self {
        Self([(0, 0); BATCH + BLOCK + 8])
    }
}

/// Some chunks of a text, in order.
#[derive(Clone, Copy)]
pub struct Chunks<'t, 's> {
    text: &'t str,
    /// In ascending order, within the text and at the boundaries of characters.
    spans: &'s [Span],
}

impl<'t, 's> Chunks<'t, 's> {
    /// Panics unless the spans are in ascending order, within the text and at the boundaries of characters.
    pub(super) fn new(text: &'t str, spans: &'s [Span]) -> Self {
        let mut last = 0;
        for &(start, end) in spans {
            assert!(last <= start && start <= end && text.is_char_boundary(start) && text.is_char_boundary(end));
            last = end;
        }
        Self { text, spans }
    }

    /// # Safety
    /// The spans must be in ascending order, within the text and at the boundaries of characters.
    pub(super) unsafe fn new_unchecked(text: &'t str, spans: &'s [Span]) -> Self {
        Self { text, spans }
    }

    #[allow(clippy::len_without_is_empty)] // a batch is never empty
    pub fn len(self) -> usize {
        self.spans.len()
    }

    #[inline(always)]
    pub fn get(self, index: usize) -> &'t str {
        let (start, end) = self.spans[index];
        debug_assert!(start < end && self.text.is_char_boundary(start) && self.text.is_char_boundary(end));
        // SAFETY: see `spans`. Checked slicing: +9% instructions in counting, +72% to +91% in splitting.
        unsafe { self.text.get_unchecked(start..end) }
    }

    pub(super) fn spans(self) -> &'s [Span] {
        self.spans
    }

    /// Returns where a chunk starts and ends in the text.
    #[inline(always)]
    pub fn span(self, index: usize) -> Span {
        self.spans[index]
    }

    #[inline(always)]
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'t str> + use<'t, 's> {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// Returns the same chunks in groups within which each chunk starts where the one before it ends.
    pub fn touching(self) -> impl Iterator<Item = Self> + use<'t, 's> {
        self.spans.chunk_by(|before, after| before.1 == after.0).map(move |spans| Self { spans, ..self })
    }

    /// Returns the same chunks in groups of `LOOKUP_GROUP`.
    #[inline(always)]
    pub fn groups(self) -> impl Iterator<Item = Self> + use<'t, 's> {
        self.spans.chunks(LOOKUP_GROUP).map(move |spans| Self { spans, ..self })
    }

    /// Returns the key of each chunk.
    #[inline(always)]
    pub fn keys(self) -> impl Iterator<Item = Key> + use<'t, 's> {
        let seeds = Seeds::get();
        let bytes = self.text.as_bytes();
        // Whether there are 16 bytes from the start of each chunk on.
        let in_windows = self.spans.last().is_some_and(|last| bytes.len() - last.1 >= 16);
        self.spans.iter().map(move |&(start, end)| {
            let len = end - start;
            if in_windows && len <= SHORT_MAX {
                // SAFETY: `start` is not after the end of the last chunk, which 16 bytes follow. Checked: +2%
                // instructions in counting, +6% in encoding.
                let window = unsafe { &*bytes.as_ptr().add(start).cast::<[u8; 16]>() };
                Key::of_short(window, len, seeds)
            } else {
                // SAFETY: see `spans`. Checked: +1% instructions in counting and encoding.
                Key::of(unsafe { bytes.get_unchecked(start..end) })
            }
        })
    }
}
