//! Special tokens in a text: found longest first, by one automaton.

use aho_corasick::{AhoCorasick, MatchKind};

use crate::error::{Error, Result};

/// A matcher for `tokens`, or None when there are none.
pub fn special_matcher(tokens: &[String]) -> Result<Option<AhoCorasick>> {
    if tokens.is_empty() {
        return Ok(None);
    }
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(tokens)
        .map(Some)
        .map_err(|error| Error::invalid(format!("these special tokens cannot be searched for: {error}")))
}
