//! Cuts text into chunks, exactly as Python's `regex.findall(pattern, text)` does.
//!
//! There are three engines, and all give the same chunks. The fastest that can run a pattern is chosen:
//!
//! 1. `scanners`: hand-written, for the patterns of the GPT family (`family`).
//! 2. `automaton`: for patterns that are regular, or can be rewritten so that they are (`syntax`).
//! 3. `backtracking`: for all others. Regular patterns among them are run by `lazy`.
//!
//! This module does not resolve the names of patterns, and it treats special tokens as ordinary text.

mod automaton;
mod backtracking;
mod blocks;
mod characters;
mod chunks;
mod classes;
mod family;
mod lazy;
mod meter;
mod named;
mod parse;
mod program;
mod scanners;
mod sets;
mod syntax;
mod tables;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::time::Instant;

use crate::error::{Cancel, Error, Result, quoted};
use automaton::Automaton;
pub use automaton::State;
use backtracking::Backtracking;
use chunks::BATCH;
pub use chunks::{Chunks, LOOKUP_GROUP, Span, Spans};
use classes::{ClassTable, WHITE};
use family::{Family, PUBLISHED};
pub use named::NAMED;
use scanners::Scan;
pub use tables::Tables;

/// How far an automaton may look beyond the ends of chunks, in bytes: a fixed amount plus an amount per byte of the
/// text. Looking that far takes about ten seconds. A pattern that looks further would practically never finish.
const LOOK_AHEAD_LIMIT: usize = if cfg!(test) { 1 << 24 } else { 1 << 32 };
const LOOK_AHEAD_PER_BYTE: usize = 1 << 10;
/// How far it may look between two checks of `Cancel`.
const LOOK_AHEAD_PER_CHECK: usize = 1 << 22;

/// A compiled pattern.
pub struct Splitter {
    pattern: String,
    engine: Engine,
    /// Why not a faster engine, or what the scanner scans for.
    reason: String,
}

enum Engine {
    Scanner(Scan),
    Automaton(Box<Automaton>),
    Backtracking(Box<Backtracking>),
}

impl Splitter {
    /// Compiles a regular expression for the fastest engine.
    pub fn new(pattern: &str) -> Result<Splitter> {
        if let Some((_, family)) = NAMED.iter().zip(PUBLISHED).find(|((_, published), _)| *published == pattern) {
            let engine = Engine::Scanner(Scan::new(family));
            return Ok(Self { pattern: pattern.to_owned(), engine, reason: family.describe() });
        }
        let parsed = parse::parse(pattern)?;
        let alternatives = syntax::alternatives(&parsed);
        let regular = alternatives.as_deref().ok();
        if let Some(family) = regular.and_then(Family::of) {
            let engine = Engine::Scanner(Scan::new(family));
            return Ok(Self { pattern: pattern.to_owned(), engine, reason: family.describe() });
        }
        let (engine, reason) = match alternatives.as_deref().map_err(|obstacle| *obstacle).and_then(Automaton::new) {
            Ok(automaton) => (Engine::Automaton(Box::new(automaton)), "it is not of the GPT family".to_owned()),
            Err(obstacle) => {
                let backtracking = Backtracking::new(pattern, &parsed.node, regular)?;
                (Engine::Backtracking(Box::new(backtracking)), format!("it has {obstacle}"))
            }
        };
        Ok(Self { pattern: pattern.to_owned(), engine, reason })
    }

    /// Compiles a regular expression for an engine, by the name that `explain` returns. Fails if the engine cannot run
    /// it.
    pub fn with_engine(pattern: &str, engine: &str) -> Result<Splitter> {
        let unsupported = |obstacle: &str| Error::invalid(format!("not for the {engine} engine: it has {obstacle}"));
        let parsed = parse::parse(pattern)?;
        let alternatives = || syntax::alternatives(&parsed).map_err(unsupported);
        let engine = match engine {
            "scanner" => {
                let other = || unsupported("alternatives that are not of the GPT family");
                Engine::Scanner(Scan::new(Family::of(&alternatives()?).ok_or_else(other)?))
            }
            "automaton" => Engine::Automaton(Box::new(Automaton::new(&alternatives()?).map_err(unsupported)?)),
            "backtracking" => Engine::Backtracking(Box::new(Backtracking::new(pattern, &parsed.node, None)?)),
            _ => return Err(Error::invalid(format!("no such engine: {}", quoted(engine)))),
        };
        Ok(Self { pattern: pattern.to_owned(), engine, reason: String::new() })
    }

    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Returns the name of the engine and the reason for it.
    pub fn explain(&self) -> (&'static str, &str) {
        let name = match self.engine {
            Engine::Scanner(_) => "scanner",
            Engine::Automaton(_) => "automaton",
            Engine::Backtracking(_) => "backtracking",
        };
        (name, &self.reason)
    }

    /// Returns whether the pattern has a scanner. Such a pattern matches every character of any text.
    pub fn has_scanner(&self) -> bool {
        matches!(self.engine, Engine::Scanner(_))
    }

    /// Returns whether the pattern matches the empty string somewhere in a text of ASCII characters.
    pub fn matches_empty(&self) -> bool {
        matches!(&self.engine, Engine::Backtracking(backtracking) if backtracking.matches_empty())
    }

    /// Estimates the cost of splitting `size` bytes: the number of bytes that a scanner could split in the same time.
    /// The engine that backtracks is slower, since it may restart its search at every byte.
    pub fn cost(&self, size: usize) -> usize {
        match self.engine {
            Engine::Scanner(_) => size,
            Engine::Automaton(_) => size.saturating_mul(1 << 2),
            Engine::Backtracking(_) => size.saturating_mul(1 << 6),
        }
    }

    /// Calls `chunk` with each chunk of `text`, in order, and stops if it returns an error. Returns the number of bytes
    /// that are in no chunk: always 0 for the named patterns, which match every character.
    ///
    /// `cancel` is checked only within long searches. To cancel between chunks, `chunk` must check it.
    pub fn split<'t>(
        &self,
        text: &'t str,
        cancel: &Cancel,
        mut chunk: impl FnMut(&'t str) -> Result<()>,
    ) -> Result<usize> {
        self.split_in_batches(text, &mut Spans::default(), cancel, |chunks| chunks.iter().try_for_each(&mut chunk))
    }

    /// Like `split`, but calls `batch` with one or more chunks at a time.
    pub fn split_in_batches<'t>(
        &self,
        text: &'t str,
        spans: &mut Spans,
        cancel: &Cancel,
        mut batch: impl FnMut(Chunks<'t, '_>) -> Result<()>,
    ) -> Result<usize> {
        let spans = &mut spans.0;
        let mut len = 0;
        match &self.engine {
            Engine::Scanner(scan) => {
                let mut start = 0;
                while start < text.len() {
                    let (chunks, end) = scan.batch(text, start, spans);
                    batch(chunks)?;
                    start = end;
                }
                Ok(0)
            }
            Engine::Automaton(automaton) => {
                let (mut start, mut dropped, mut looked_ahead, mut next_check) = (0, 0, 0, LOOK_AHEAD_PER_CHECK);
                while start < text.len() {
                    let (end, seen) = automaton.end(text, start);
                    match end {
                        Some(end) => {
                            spans[len] = (start, end);
                            len += 1;
                            looked_ahead += seen - end;
                            start = end;
                        }
                        None => {
                            let next = text.ceil_char_boundary(start + 1);
                            dropped += next - start;
                            looked_ahead += seen.max(next) - start;
                            start = next;
                        }
                    }
                    if len == BATCH || len > 0 && start == text.len() {
                        let spans = &spans[..std::mem::take(&mut len)];
                        // SAFETY: `start` moves forward only, to the next boundary or to an end that `Automaton::end`
                        // returns, which is a boundary by its contract. Checking the spans: +8% instructions.
                        batch(unsafe { Chunks::new_unchecked(text, spans) })?;
                    }
                    if looked_ahead > next_check {
                        cancel.poll_and_check(Instant::now())?;
                        next_check = looked_ahead + LOOK_AHEAD_PER_CHECK;
                    }
                    if looked_ahead > text.len().saturating_mul(LOOK_AHEAD_PER_BYTE).saturating_add(LOOK_AHEAD_LIMIT) {
                        return Err(failed(&self.pattern, text, start, "it takes too long"));
                    }
                }
                Ok(dropped)
            }
            Engine::Backtracking(backtracking) => {
                let dropped = backtracking.split(text, cancel, |chunk| {
                    spans[len] = chunk;
                    len += 1;
                    if len < BATCH { Ok(()) } else { batch(Chunks::new(text, &spans[..std::mem::take(&mut len)])) }
                })?;
                if len > 0 {
                    batch(Chunks::new(text, &spans[..len]))?;
                }
                Ok(dropped)
            }
        }
    }

    /// Returns the last offset after `from` and not after `at` at which `text` can be cut so that the two parts
    /// together have the same chunks as the whole, or `None` if there is no such offset. It is always at the end of a
    /// line.
    pub fn cut_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        let bytes = text.as_bytes();
        let mut end = at.min(bytes.len());
        while from < end {
            let newline = from + bytes[from..end].iter().rposition(|&byte| byte == b'\n')?;
            if let Some(before) = text[..newline].chars().next_back()
                && let Some(after) = text[newline + 1..].chars().next()
                && self.can_cut(before, after)
            {
                return Some(newline + 1);
            }
            end = newline;
        }
        None
    }

    /// Returns whether a text can be cut after a newline between two characters.
    ///
    /// Proof, for the GPT family: the newline is a run of whitespace by itself. It is therefore either a separate
    /// chunk or the end of a chunk of symbols (`[\r\n]*`, `[\r\n/]*`), whether the next character follows or the text
    /// ends. So a chunk ends at this place both in the whole text and in the first part. The chunks of the second part
    /// are the same, because no pattern looks behind. For automata, see `automaton`.
    fn can_cut(&self, before: char, after: char) -> bool {
        match &self.engine {
            Engine::Scanner(_) => {
                let is_solid = |c: char| ClassTable::general().of_char(c) & WHITE == 0;
                is_solid(before) && is_solid(after) && after != '/'
            }
            Engine::Automaton(automaton) => automaton.can_cut(before, after),
            Engine::Backtracking(_) => false,
        }
    }
}

fn failed(pattern: &str, text: &str, start: usize, reason: &str) -> Error {
    let excerpt: String = text[start..].chars().take(40).collect();
    Error::Pattern(format!(
        "pattern {} could not be matched at byte {start} of a text of {} bytes, {excerpt:?}: {reason}. \
         Make its repetitions possessive (`a++` instead of `a+`), use a named pattern, or split the \
         text into shorter documents",
        quoted(pattern),
        text.len(),
    ))
}
