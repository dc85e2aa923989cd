//! Any other regular expression, by `fancy_regex`.
//!
//! A chunk is a whole match, whatever groups the pattern has. Empty matches are no chunks; where
//! the pattern prefers an empty one, the next way in which it matches there is taken, as in Python.
//! The dialect is that of `fancy_regex`: its `$` is the very end of the text.

use std::borrow::Cow;
use std::sync::OnceLock;

use fancy_regex::{CompileError, Error as RegexError, Regex, RegexBuilder, RuntimeError};

use crate::error::{Error, Result};

/// Backtracking steps that one search may take: so many, or so many for each byte of a long text.
/// A pattern that needs more is one that would not end.
const STEPS: usize = 1_000_000;
const STEPS_PER_BYTE: usize = 32;

pub struct Custom {
    pattern: String,
    regex: Regex,
    /// The pattern without its empty matches, which the engine runs more slowly: compiled when the
    /// first empty match is seen. None if it has no others.
    not_empty: OnceLock<Result<Option<Regex>>>,
}

impl Custom {
    pub fn new(pattern: &str) -> Result<Custom> {
        let regex = compile(pattern, STEPS, false)?
            .ok_or_else(|| Error::invalid(format!("pattern={pattern:?} can never match: correct it")))?;
        Ok(Custom { pattern: pattern.to_owned(), regex, not_empty: OnceLock::new() })
    }

    pub fn split<'t>(&self, text: &'t str, mut chunk: impl FnMut(&'t str) -> Result<()>) -> Result<usize> {
        let mut regex = Cow::Borrowed(&self.regex);
        let mut steps = STEPS;
        let mut not_empty = false;
        let mut start = 0;
        let mut kept = 0;
        while start < text.len() {
            let found = match regex.find_from_pos(text, start) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(RegexError::RuntimeError(RuntimeError::BacktrackLimitExceeded))
                    if steps < text.len().saturating_mul(STEPS_PER_BYTE) =>
                {
                    steps = text.len().saturating_mul(STEPS_PER_BYTE);
                    match compile(&self.pattern, steps, not_empty)? {
                        Some(patient) => regex = Cow::Owned(patient),
                        None => break,
                    }
                    continue;
                }
                Err(error) => return Err(self.gave_up(text, start, &error)),
            };
            if !found.as_str().is_empty() {
                chunk(found.as_str())?;
                kept += found.as_str().len();
                start = found.end();
            } else if !not_empty {
                not_empty = true;
                start = found.end();
                regex = match self.not_empty()? {
                    Some(regex) => Cow::Borrowed(regex),
                    None => break,
                };
                steps = STEPS;
            } else {
                // `\K` can leave nothing of a match that was not empty.
                start = text.ceil_char_boundary(found.end().max(start) + 1);
            }
        }
        Ok(text.len() - kept)
    }

    pub fn matches_empty(&self) -> bool {
        let plain: String = (0u8..128).map(char::from).collect();
        let empty =
            |text: &str, at| matches!(self.regex.find_from_pos(text, at), Ok(Some(found)) if found.as_str().is_empty());
        empty("", 0) || (0..plain.len()).any(|at| empty(&plain, at))
    }

    fn not_empty(&self) -> Result<Option<&Regex>> {
        self.not_empty
            .get_or_init(|| compile(&self.pattern, STEPS, true))
            .as_ref()
            .map(Option::as_ref)
            .map_err(Clone::clone)
    }

    fn gave_up(&self, text: &str, start: usize, error: &RegexError) -> Error {
        let there: String = text[start..].chars().take(40).collect();
        Error::Pattern(format!(
            "pattern {:?} could not be matched at byte {start} of a text of {} bytes, {there:?}: {error}. \
             Make its repetitions possessive (`\\s++` for `\\s+`), use a named pattern, or cut the \
             text into shorter documents",
            self.pattern,
            text.len(),
        ))
    }
}

/// None if the pattern can match nothing, or nothing but the empty string if that is not wanted.
fn compile(pattern: &str, steps: usize, not_empty: bool) -> Result<Option<Regex>> {
    let built = RegexBuilder::new(pattern).backtrack_limit(steps).find_not_empty(not_empty).build();
    match built {
        Ok(regex) => Ok(Some(regex)),
        Err(RegexError::CompileError(error)) if matches!(*error, CompileError::PatternCanNeverMatch) => Ok(None),
        Err(error) => Err(Error::invalid(format!(
            "pattern={pattern:?} is no regular expression that can be used: {error}. Correct it, \
             or use a named pattern ({})",
            super::NAMED.map(|(name, _)| name).join(", "),
        ))),
    }
}
