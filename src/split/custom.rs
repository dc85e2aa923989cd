//! Any other regular expression, by `fancy_regex`.
//!
//! A chunk is a whole match, whatever groups the pattern has. Empty matches are not chunks; where the pattern prefers
//! an empty one, the next way in which it matches there is taken, as in Python. The dialect is that of `fancy_regex`:
//! its `$` is the very end of the text.
//!
//! A pattern may come with a model file from anywhere, so each search is bounded (`Watched`) and can be cancelled.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use fancy_regex::{CompileError, Error as RegexError, Input, Match, Regex, RegexBuilder, RuntimeError};
use once_cell::race::OnceBox;

use crate::error::{Cancel, Error, NEVER, Result, shown};

/// Backtracking steps that one search may take: a fixed number, or this many for each byte of a long text.
/// A pattern that needs more is one that would not end.
const STEPS: usize = 1_000_000;
const STEPS_PER_BYTE: usize = 32;

/// Time that one search may take: a fixed one, and more for each byte. The engine does not count what a step costs, and
/// one step may run through the whole text. Real patterns stay a thousand times below.
const TIME: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 10_000 });
const TIME_PER_BYTE: Duration = Duration::from_micros(1);
/// Looks at `Cancel` and at the clock once in this many accesses to the text.
const ACCESSES: usize = 1 << 6;
/// Counts no more time than this between two looks: a process may be stopped for a while.
const STEP_TIME: Duration = Duration::from_millis(200);

pub struct Custom {
    pattern: String,
    regex: Regex,
    /// The pattern without its empty matches, which the engine runs more slowly: compiled when the
    /// first empty match is seen. None if it has no others.
    not_empty: OnceBox<Option<Regex>>,
}

impl Custom {
    pub fn new(pattern: &str) -> Result<Custom> {
        let regex = compile(pattern, STEPS, false)?
            .ok_or_else(|| Error::invalid(format!("pattern={} can never match: correct it", shown(pattern))))?;
        Ok(Custom { pattern: pattern.to_owned(), regex, not_empty: OnceBox::new() })
    }

    pub fn split<'t>(
        &self,
        text: &'t str,
        cancel: &Cancel,
        mut chunk: impl FnMut(&'t str) -> Result<()>,
    ) -> Result<usize> {
        let mut regex = Cow::Borrowed(&self.regex);
        let mut steps = STEPS;
        let mut not_empty = false;
        let mut start = 0;
        let mut kept = 0;
        while start < text.len() {
            let found = match find(&regex, text, start, cancel) {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(Failure::Engine(RegexError::RuntimeError(RuntimeError::BacktrackLimitExceeded)))
                    if steps < text.len().saturating_mul(STEPS_PER_BYTE) =>
                {
                    steps = text.len().saturating_mul(STEPS_PER_BYTE);
                    match compile(&self.pattern, steps, not_empty)? {
                        Some(patient) => regex = Cow::Owned(patient),
                        None => break,
                    }
                    continue;
                }
                Err(Failure::Engine(error)) => return Err(self.gave_up(text, start, &error.to_string())),
                Err(Failure::Watch(Stop::TookTooLong)) => return Err(self.gave_up(text, start, "it takes too long")),
                Err(Failure::Watch(Stop::Cancelled)) => return Err(Error::Cancelled),
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
        let empty = |text: &str, at| matches!(find(&self.regex, text, at, &NEVER), Ok(Some(found)) if found.as_str().is_empty());
        empty("", 0) || (0..plain.len()).any(|at| empty(&plain, at))
    }

    fn not_empty(&self) -> Result<Option<&Regex>> {
        let compiled = self.not_empty.get_or_try_init(|| compile(&self.pattern, STEPS, true).map(Box::new))?;
        Ok(compiled.as_ref())
    }

    fn gave_up(&self, text: &str, start: usize, why: &str) -> Error {
        let there: String = text[start..].chars().take(40).collect();
        Error::Pattern(format!(
            "pattern {} could not be matched at byte {start} of a text of {} bytes, {there:?}: {why}. \
             Make its repetitions possessive (`\\s++` for `\\s+`), use a named pattern, or cut the \
             text into shorter documents",
            shown(&self.pattern),
            text.len(),
        ))
    }
}

enum Failure {
    Engine(RegexError),
    Watch(Stop),
}

/// Why a search ends early.
#[derive(Clone, Copy)]
enum Stop {
    Cancelled,
    TookTooLong,
}

/// The first match from `start` on. The engine offers no way to stop a search but one: it reads the text through a trait,
/// whose methods it calls at every step. `Watched` unwinds from there.
fn find<'t>(
    regex: &Regex,
    text: &'t str,
    start: usize,
    cancel: &Cancel,
) -> std::result::Result<Option<Match<'t>>, Failure> {
    let watched = Watched::new(text, cancel);
    match catch_unwind(AssertUnwindSafe(|| regex.find_from_pos(&watched, start))) {
        Ok(found) => found.map_err(Failure::Engine),
        Err(panic) => match panic.downcast::<Stop>() {
            Ok(stop) => Err(Failure::Watch(*stop)),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// A text that is read by the engine, and looks at `Cancel` and at the clock now and then.
struct Watched<'t, 'c> {
    text: &'t str,
    cancel: &'c Cancel<'c>,
    accesses: Cell<usize>,
    looked: Cell<Option<Instant>>,
    taken: Cell<Duration>,
}

impl<'t, 'c> Watched<'t, 'c> {
    fn new(text: &'t str, cancel: &'c Cancel<'c>) -> Self {
        Self { text, cancel, accesses: Cell::new(0), looked: Cell::new(None), taken: Cell::new(Duration::ZERO) }
    }

    #[inline]
    fn access(&self) -> &'t str {
        let accesses = self.accesses.get() + 1;
        self.accesses.set(accesses);
        if accesses.is_multiple_of(ACCESSES) {
            self.look();
        }
        self.text
    }

    #[cold]
    fn look(&self) {
        let now = Instant::now();
        if self.cancel.check_at(now).is_err() {
            resume_unwind(Box::new(Stop::Cancelled));
        }
        if let Some(before) = self.looked.replace(Some(now)) {
            self.taken.set(self.taken.get() + (now - before).min(STEP_TIME));
        }
        let allowed = TIME + TIME_PER_BYTE * u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        if self.taken.get() > allowed {
            resume_unwind(Box::new(Stop::TookTooLong));
        }
    }
}

impl<'t> Input for Watched<'t, '_> {
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

/// None if the pattern can match nothing, or nothing but the empty string if that is not wanted.
fn compile(pattern: &str, steps: usize, not_empty: bool) -> Result<Option<Regex>> {
    let built = RegexBuilder::new(pattern).backtrack_limit(steps).find_not_empty(not_empty).build();
    match built {
        Ok(regex) => Ok(Some(regex)),
        Err(RegexError::CompileError(error)) if matches!(*error, CompileError::PatternCanNeverMatch) => Ok(None),
        Err(error) => Err(Error::invalid(format!(
            "pattern={} is not a regular expression that can be used: {error}. Correct it, \
             or use a named pattern ({})",
            shown(pattern),
            super::NAMED.map(|(name, _)| name).join(", "),
        ))),
    }
}
