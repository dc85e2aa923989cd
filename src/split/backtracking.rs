//! Runs any pattern with `fancy_regex`, which backtracks.
//!
//! A chunk is a complete match, regardless of any groups in the pattern. Empty matches are not chunks: where the
//! pattern prefers one, the engine tries its other alternatives at the same position, as Python does. The dialect is
//! that of `fancy_regex`, in which `$` matches only at the very end of the text.
//!
//! A pattern may come from an untrusted model file, so each search is bounded and can be cancelled (`WatchedText`).

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use fancy_regex::{CompileError, Error as RegexError, Input, Match, Regex, RegexBuilder, RuntimeError};
use once_cell::race::OnceBox;

use super::failed;
use crate::error::{Cancel, Error, NEVER, Result};

/// The backtracking steps allowed for one search: a fixed number or, for a long text, a number per byte if that is
/// larger. A pattern that needs more would practically never finish.
const STEP_LIMIT: usize = 1_000_000;
const STEPS_PER_BYTE: usize = 32;

/// The time allowed for one search: a fixed amount plus an amount per byte. The step limit alone is not enough, because
/// a single step may scan the whole text. Real patterns stay a thousand times below.
const TIME_LIMIT: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 10_000 });
const TIME_PER_BYTE: Duration = Duration::from_micros(1);
/// The number of accesses to the text between two checks of `Cancel` and the clock.
const ACCESSES_PER_CHECK: usize = 1 << 6;
/// The most time that is counted between two checks, so that a suspended process does not run into the limit.
const MAX_TIME_PER_CHECK: Duration = Duration::from_millis(200);

pub struct Backtracking {
    pattern: String,
    regex: Regex,
    /// The pattern without its empty matches, or `None` if it has no others. The engine runs it more slowly, so it is
    /// compiled only when the first empty match is found.
    not_empty: OnceBox<Option<Regex>>,
}

impl Backtracking {
    pub fn new(pattern: &str) -> Result<Backtracking> {
        let regex = compile(pattern, STEP_LIMIT, false)?.ok_or_else(|| Error::invalid("it can never match"))?;
        Ok(Backtracking { pattern: pattern.to_owned(), regex, not_empty: OnceBox::new() })
    }

    /// Implements `Splitter::split`.
    pub fn split<'t>(
        &self,
        text: &'t str,
        cancel: &Cancel,
        mut chunk: impl FnMut(&'t str) -> Result<()>,
    ) -> Result<usize> {
        let mut regex = Cow::Borrowed(&self.regex);
        let mut step_limit = STEP_LIMIT;
        let mut not_empty = false;
        let mut start = 0;
        let mut kept = 0;
        while start < text.len() {
            let found = match find(&regex, text, start, cancel) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(Failure::Engine(RegexError::RuntimeError(RuntimeError::BacktrackLimitExceeded)))
                    if step_limit < text.len().saturating_mul(STEPS_PER_BYTE) =>
                {
                    // Search again from the same position, with the limit for a long text.
                    step_limit = text.len().saturating_mul(STEPS_PER_BYTE);
                    match compile(&self.pattern, step_limit, not_empty)? {
                        Some(recompiled) => regex = Cow::Owned(recompiled),
                        None => break,
                    }
                    continue;
                }
                Err(Failure::Engine(error)) => return Err(failed(&self.pattern, text, start, &error.to_string())),
                Err(Failure::Stopped(Stop::TimedOut)) => {
                    return Err(failed(&self.pattern, text, start, "it takes too long"));
                }
                Err(Failure::Stopped(Stop::Cancelled)) => return Err(Error::Cancelled),
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
                step_limit = STEP_LIMIT;
            } else {
                // Still an empty match: `\K` removed everything from a match that was not empty.
                start = text.ceil_char_boundary(found.end().max(start) + 1);
            }
        }
        Ok(text.len() - kept)
    }

    /// Implements `Splitter::matches_empty`.
    pub fn matches_empty(&self) -> bool {
        let ascii: String = (0u8..128).map(char::from).collect();
        let empty_at = |text: &str, at| {
            let found = find(&self.regex, text, at, &NEVER);
            matches!(found, Ok(Some(found)) if found.as_str().is_empty())
        };
        empty_at("", 0) || (0..ascii.len()).any(|at| empty_at(&ascii, at))
    }

    fn not_empty(&self) -> Result<Option<&Regex>> {
        let compiled = self.not_empty.get_or_try_init(|| compile(&self.pattern, STEP_LIMIT, true).map(Box::new))?;
        Ok(compiled.as_ref())
    }
}

enum Failure {
    Engine(RegexError),
    Stopped(Stop),
}

/// The reason why `WatchedText` stopped a search.
#[derive(Clone, Copy)]
enum Stop {
    Cancelled,
    TimedOut,
}

/// Returns the first match at or after `start`. The engine has no API to stop a search, but it reads the text through a
/// trait, whose methods it calls at every step. `WatchedText` unwinds from there.
fn find<'t>(
    regex: &Regex,
    text: &'t str,
    start: usize,
    cancel: &Cancel,
) -> std::result::Result<Option<Match<'t>>, Failure> {
    let watched = WatchedText::new(text, cancel);
    match catch_unwind(AssertUnwindSafe(|| regex.find_from_pos(&watched, start))) {
        Ok(found) => found.map_err(Failure::Engine),
        Err(panic) => match panic.downcast::<Stop>() {
            Ok(stop) => Err(Failure::Stopped(*stop)),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// A text that checks `Cancel` and the clock regularly while the engine reads it.
struct WatchedText<'t, 'c> {
    text: &'t str,
    cancel: &'c Cancel<'c>,
    accesses: Cell<usize>,
    last_check: Cell<Option<Instant>>,
    elapsed: Cell<Duration>,
}

impl<'t, 'c> WatchedText<'t, 'c> {
    fn new(text: &'t str, cancel: &'c Cancel<'c>) -> Self {
        Self { text, cancel, accesses: Cell::new(0), last_check: Cell::new(None), elapsed: Cell::new(Duration::ZERO) }
    }

    #[inline]
    fn access(&self) -> &'t str {
        let accesses = self.accesses.get() + 1;
        self.accesses.set(accesses);
        if accesses.is_multiple_of(ACCESSES_PER_CHECK) {
            self.check();
        }
        self.text
    }

    #[cold]
    fn check(&self) {
        let now = Instant::now();
        if self.cancel.poll_and_check(now).is_err() {
            resume_unwind(Box::new(Stop::Cancelled));
        }
        if let Some(last_check) = self.last_check.replace(Some(now)) {
            self.elapsed.set(self.elapsed.get() + (now - last_check).min(MAX_TIME_PER_CHECK));
        }
        let limit = TIME_LIMIT + TIME_PER_BYTE * u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        if self.elapsed.get() > limit {
            resume_unwind(Box::new(Stop::TimedOut));
        }
    }
}

impl<'t> Input for WatchedText<'t, '_> {
    type Match<'m>
        = Match<'t>
    where
        Self: 'm;

    fn len(&self) -> usize {
        self.text.len()
    }

    #[inline]
    fn as_bytes(&self) -> &[u8] {
        self.access().as_bytes()
    }

    fn is_char_boundary(&self, at: usize) -> bool {
        self.text.is_char_boundary(at)
    }

    fn is_ascii(&self) -> bool {
        self.text.is_ascii()
    }

    fn prev_codepoint_ix(&self, at: usize) -> usize {
        self.access().prev_codepoint_ix(at)
    }

    fn make_match<'m>(&'m self, start: usize, end: usize) -> Match<'t> {
        self.text.make_match(start, end)
    }

    fn advance_position(&self, at: usize) -> usize {
        self.access().advance_position(at)
    }
}

/// Compiles a pattern, without its empty matches if `not_empty`. Returns `None` if it can then never match.
fn compile(pattern: &str, step_limit: usize, not_empty: bool) -> Result<Option<Regex>> {
    let built = RegexBuilder::new(pattern).backtrack_limit(step_limit).find_not_empty(not_empty).build();
    match built {
        Ok(regex) => Ok(Some(regex)),
        Err(RegexError::CompileError(error)) if matches!(*error, CompileError::PatternCanNeverMatch) => Ok(None),
        Err(error) => Err(Error::invalid(error.to_string())),
    }
}
