//! Finds the text that each token of a text stands for.

use super::special_tokens::Cut;
use super::{Encoder, Piece, SpecialRules};
use crate::error::{Cancel, Result, try_push};
use crate::split::{Span, Spans};

/// A part of a text that is normalized, and where it is in the normalized text.
pub(super) struct Change {
    pub original: Span,
    pub normalized: Span,
}

impl Encoder {
    /// Encodes a text. Returns its ids, and where the text of each starts and ends, in bytes.
    ///
    /// Of several tokens that a part of the text becomes by normalization, the first stands for all of the part, and the
    /// others for nothing. So does a space that is added before a text.
    pub fn encode_with_spans(
        &self,
        text: &str,
        special: &SpecialRules,
        cancel: &Cancel,
    ) -> Result<(Vec<u32>, Vec<Span>)> {
        let (mut ids, mut spans, mut guard) = (Vec::new(), Vec::new(), self.caches.take());
        let changes = self.changes(text, special)?;
        let mut start = 0; // in the normalized text
        for piece in self.pieces(text, special)? {
            let first = ids.len();
            self.encode_piece(&piece, guard.cache(), &mut ids, cancel)?;
            let (text, added) = match piece {
                Piece::Raw(text) => (self.splitter.normalize_characters(text), 0),
                Piece::Text(text, added) => (text, added),
                Piece::Token(_, place) => {
                    let span = place.after(start);
                    try_push(&mut spans, span)?;
                    start = span.1;
                    continue;
                }
            };
            let place = |at: usize| start + at.saturating_sub(added);
            self.for_each_span(&text, &ids[first..], cancel, |(from, to)| {
                Ok(try_push(&mut spans, (place(from), place(to)))?)
            })?;
            start += text.len() - added;
        }
        let mut done = 0; // a token may start before this if the one before it has stripped whitespace
        for span in &mut spans {
            *span = (original(&changes, span.0).max(done), original(&changes, span.1).max(done));
            done = span.1;
        }
        Ok((ids, spans))
    }

    /// Calls `found` with the place of each of the `ids` of a text.
    fn for_each_span(
        &self,
        text: &str,
        ids: &[u32],
        cancel: &Cancel,
        mut found: impl FnMut(Span) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = self.chunk_spans(text, cancel)?.into_iter().flat_map(|(start, end)| start..end);
        let mut end = 0;
        for &id in ids {
            let mut start = None;
            for &byte in self.token(id)? {
                // Bytes that the vocabulary lacks were left out.
                let at = bytes.find(|&at| text.as_bytes()[at] == byte).expect("the text of the token");
                start.get_or_insert(at);
                end = at + 1;
            }
            found((start.unwrap_or(end), end))?;
        }
        Ok(())
    }

    /// Returns where each chunk of a normalized text starts and ends.
    pub(super) fn chunk_spans(&self, text: &str, cancel: &Cancel) -> Result<Vec<Span>> {
        let mut chunks = Vec::new();
        self.splitter.split_in_batches(text, &mut Spans::default(), cancel, |batch| {
            (0..batch.len()).try_for_each(|index| try_push(&mut chunks, batch.span(index)))?;
            cancel.check()
        })?;
        Ok(chunks)
    }

    pub(super) fn changes(&self, text: &str, special: &SpecialRules) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        let Some(form) = self.splitter.plan().normalization else { return Ok(changes) };
        // How far the normalized text is ahead, which wraps around if it is behind.
        let (mut start, mut ahead, mut failure) = (0, 0usize, Ok(()));
        let mut add = |gap: &str, start: usize| {
            form.for_each_change(gap, |(from, to), normalized| {
                let original = (start + from, start + to);
                let from = original.0.wrapping_add(ahead);
                ahead = (from + normalized.len()).wrapping_sub(original.1);
                let pushed = try_push(&mut changes, Change { original, normalized: (from, from + normalized.len()) });
                failure = std::mem::replace(&mut failure, Ok(())).and(pushed);
            });
        };
        match &self.special.passes(&special.allowed, &self.splitter)?.raw {
            None => add(text, 0),
            Some(raw) => raw.cut(text, |cut| {
                start = match cut {
                    Cut::Text(gap) => {
                        add(gap, start);
                        start + gap.len()
                    }
                    Cut::Token(_, place) => place.after(start).1,
                };
                Ok(())
            })?,
        }
        failure?;
        Ok(changes)
    }
}

/// Returns the place in the text of a place in the normalized text. Within a changed part, this is the end of the part.
fn original(changes: &[Change], at: usize) -> usize {
    match changes[..changes.partition_point(|change| change.normalized.0 < at)].last() {
        Some(change) => change.original.1 + at.saturating_sub(change.normalized.1),
        None => at,
    }
}
