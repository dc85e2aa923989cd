//! Special tokens in a text: found longest first, by one automaton.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::error::{Error, Result};

/// The automaton takes about a hundred times the memory of its tokens.
const MOST_BYTES: usize = 1 << 20;

/// With more, the fastest automaton takes too long to build: quadratic time in the length of a token.
const FEW_BYTES: usize = 1 << 12;

/// A matcher for `tokens`, or None when there are none.
pub fn special_matcher(tokens: &[String]) -> Result<Option<AhoCorasick>> {
    if tokens.is_empty() {
        return Ok(None);
    }
    let bytes: usize = tokens.iter().map(String::len).sum();
    if bytes > MOST_BYTES {
        return Err(Error::invalid(format!(
            "the special tokens have {bytes} bytes in all; at most {MOST_BYTES} can be searched for"
        )));
    }
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind((bytes > FEW_BYTES).then_some(AhoCorasickKind::ContiguousNFA))
        .build(tokens)
        .map(Some)
        .map_err(|error| Error::invalid(format!("these special tokens cannot be searched for: {error}")))
}
