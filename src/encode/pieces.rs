//! Cuts a text into pieces: special and added tokens, and the text between them.

use std::borrow::Cow;

use super::batch::append;
use super::special_tokens::{Cut, Matcher, Passes, Place};
use super::{Encoder, SpecialRules};
use crate::error::{Error, Result, try_push};
use crate::split::Splitter;

/// The amount of text that a thread takes at once.
pub const PIECE_BYTES: usize = if cfg!(test) { 1 << 6 } else { 1 << 18 };

/// A part of a text that is encoded as a unit.
pub enum Piece<'t> {
    /// Text that is not normalized yet.
    Raw(&'t str),
    /// Normalized text, which is owned only if it differs from the original, and the number of bytes added before it.
    Text(Cow<'t, str>, usize),
    /// A special or added token.
    Token(u32, Place),
}

impl Piece<'_> {
    pub fn len(&self) -> usize {
        match self {
            Piece::Raw(text) => text.len(),
            Piece::Text(text, _) => text.len(),
            Piece::Token(..) => 0,
        }
    }

    fn into_owned<'t>(self) -> Piece<'t> {
        match self {
            Piece::Raw(text) => Piece::Text(Cow::Owned(text.to_owned()), 0),
            Piece::Text(text, added) => Piece::Text(Cow::Owned(text.into_owned()), added),
            Piece::Token(id, place) => Piece::Token(id, place),
        }
    }
}

impl Encoder {
    /// Cuts `text` at its special and added tokens, and normalizes the rest and cuts it into pieces of about
    /// `PIECE_BYTES` where possible.
    pub(super) fn pieces<'t>(&self, text: &'t str, special: &SpecialRules) -> Result<Vec<Piece<'t>>> {
        if let Some(found) = self.special.names(&special.disallowed)?.and_then(|names| names.find(text)) {
            return Err(Error::SpecialToken { token: text[found.range()].into(), at: found.start() });
        }
        let passes = self.special.passes(&special.allowed, &self.splitter)?;
        let mut pieces = Vec::new();
        let Some(raw) = &passes.raw else {
            self.cut_at_normalized(&passes, text, &mut pieces)?;
            return Ok(pieces);
        };
        raw.cut(text, |cut| match cut {
            Cut::Text(text) => self.cut_at_normalized(&passes, text, &mut pieces),
            Cut::Token(id, place) => Ok(try_push(&mut pieces, Piece::Token(id, place))?),
        })?;
        Ok(pieces)
    }

    fn cut_at_normalized<'t>(&self, passes: &Passes, text: &'t str, pieces: &mut Vec<Piece<'t>>) -> Result<()> {
        let plan = self.splitter.plan();
        if plan.normalization.is_some() && passes.normalized.is_none() && !plan.prefix_space {
            // The pieces are normalized by the threads that encode them.
            return self.cut(text, Splitter::cut_before, Piece::Raw, pieces);
        }
        let text = match self.splitter.normalize_characters(text) {
            Cow::Borrowed(text) => return self.cut_at(passes.normalized.as_ref(), text, pieces),
            Cow::Owned(text) => text,
        };
        let mut borrowed = Vec::new();
        self.cut_at(passes.normalized.as_ref(), &text, &mut borrowed)?;
        append(pieces, borrowed.into_iter().map(Piece::into_owned))?;
        Ok(())
    }

    fn cut_at<'t>(&self, matcher: Option<&Matcher>, text: &'t str, pieces: &mut Vec<Piece<'t>>) -> Result<()> {
        match matcher {
            None => self.cut_into_pieces(text, pieces),
            Some(matcher) => matcher.cut(text, |cut| match cut {
                Cut::Text(text) => self.cut_into_pieces(text, pieces),
                Cut::Token(id, place) => Ok(try_push(pieces, Piece::Token(id, place))?),
            }),
        }
    }

    fn cut_into_pieces<'t>(&self, text: &'t str, pieces: &mut Vec<Piece<'t>>) -> Result<()> {
        if self.splitter.needs_prefix(text) {
            let (text, mut borrowed) = (format!(" {text}"), Vec::new());
            self.cut_into_pieces(&text, &mut borrowed)?;
            if let Some(Piece::Text(_, added)) = borrowed.first_mut() {
                *added = 1;
            }
            append(pieces, borrowed.into_iter().map(Piece::into_owned))?;
            return Ok(());
        }
        self.cut(text, Splitter::cut_normalized_before, |text| Piece::Text(Cow::Borrowed(text), 0), pieces)
    }

    /// Cuts a text into pieces of about `PIECE_BYTES` where `cut_before` finds a place.
    fn cut<'t>(
        &self,
        text: &'t str,
        cut_before: impl Fn(&Splitter, &str, usize, usize) -> Option<usize>,
        piece: impl Fn(&'t str) -> Piece<'t>,
        pieces: &mut Vec<Piece<'t>>,
    ) -> Result<()> {
        let mut start = 0;
        while text.len() - start > 2 * PIECE_BYTES {
            let at = text.floor_char_boundary(start + PIECE_BYTES);
            let Some(cut) = cut_before(&self.splitter, text, start, at) else { break };
            try_push(pieces, piece(&text[start..cut]))?;
            start = cut;
        }
        Ok(try_push(pieces, piece(&text[start..]))?)
    }
}
