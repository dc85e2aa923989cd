//! Finds special tokens in a text with one automaton. If several match at the same position, the longest one wins.

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use crate::error::{Error, Result};

/// The limit for the bytes of all tokens: the automaton needs about a hundred times as much memory.
const MAX_BYTES: usize = 1 << 20;

/// Above this size, the fastest automaton takes too long to build: its time is quadratic in the length of a token.
const MAX_DFA_BYTES: usize = 1 << 12;

/// Returns a matcher for `tokens`, or `None` if there are no tokens.
pub fn special_matcher(tokens: &[String]) -> Result<Option<AhoCorasick>> {
    if tokens.is_empty() {
        return Ok(None);
    }
    let bytes: usize = tokens.iter().map(String::len).sum();
    if bytes > MAX_BYTES {
        return Err(Error::invalid(format!(
            "the special tokens have {bytes} bytes in total; at most {MAX_BYTES} are supported"
        )));
    }
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind((bytes > MAX_DFA_BYTES).then_some(AhoCorasickKind::ContiguousNFA))
        .build(tokens)
        .map(Some)
        .map_err(|error| Error::invalid(format!("cannot build a matcher for the special tokens: {error}")))
}
