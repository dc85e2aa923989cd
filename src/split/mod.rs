//! Cuts text into chunks, exactly as Python's `regex.findall(pattern, text)` does.
//!
//! There are three engines, and all give the same chunks. The fastest that can run a pattern is chosen:
//!
//! 1. `scanners`: hand-written, for the patterns of the GPT family (`family`).
//! 2. `automaton`: for patterns that are regular, or can be rewritten so that they are (`syntax`).
//! 3. `backtracking`: for all others. Regular patterns among them are run by `lazy`.
//!
//! Several patterns can be applied one after the other (`chain`), to text that is normalized first (`normalize`).
//!
//! This module does not resolve the names of patterns, and it treats special tokens as ordinary text.

mod automaton;
mod backtracking;
mod blocks;
mod chain;
mod characters;
mod chunks;
mod classes;
mod family;
mod lazy;
mod leads;
mod meter;
mod named;
mod normalize;
mod parse;
mod program;
mod same;
mod scanners;
mod sets;
mod syntax;
mod tables;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::borrow::Cow;
use std::time::Instant;

use crate::error::{Cancel, Error, Result, quoted};
use automaton::Automaton;
pub use automaton::State;
use backtracking::Backtracking;
use blocks::BLOCK;
use chain::Chain;
pub use chain::{Behavior, Step};
use chunks::BATCH;
pub use chunks::{Chunks, LOOKUP_GROUP, Span, Spans};
use classes::{ClassTable, WHITE};
use family::Family;
pub use named::NAMED;
pub use normalize::Form;
pub use same::{name_of, same_chunks};
use scanners::{InAscii, Scan};
pub use tables::Tables;

/// How far an automaton may look beyond the ends of chunks, in bytes: a fixed amount plus an amount per byte of the
/// text. Looking that far takes about ten seconds. A pattern that looks further would practically never finish.
const LOOK_AHEAD_LIMIT: usize = if cfg!(test) { 1 << 24 } else { 1 << 32 };
const LOOK_AHEAD_PER_BYTE: usize = 1 << 10;
/// How far it may look between two checks of `Cancel`.
const LOOK_AHEAD_PER_CHECK: usize = 1 << 22;

fn look_ahead_limit(text: &str) -> usize {
    text.len().saturating_mul(LOOK_AHEAD_PER_BYTE).saturating_add(LOOK_AHEAD_LIMIT)
}

/// How text becomes chunks: it is normalized, cut by steps, and each match of a pattern in the pieces is a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub pattern: String,
    pub steps: Vec<Step>,
    pub normalization: Option<Form>,
    /// Put a space before a text that does not start with one.
    pub prefix_space: bool,
}

impl From<&str> for Plan {
    fn from(pattern: &str) -> Self {
        Self { pattern: pattern.to_owned(), ..Self::default() }
    }
}

/// A compiled plan.
pub struct Splitter {
    plan: Plan,
    engine: Engine,
    /// Why not a faster engine, or what the scanner scans for.
    reason: String,
}

enum Engine {
    Scanner(Scan<Family>),
    InAscii(Box<Scan<InAscii>>),
    Automaton(Box<Automaton>),
    Backtracking(Box<Backtracking>),
    Chain(Box<Chain>),
}

impl Splitter {
    /// Compiles a plan.
    pub fn of(plan: Plan) -> Result<Splitter> {
        if plan.steps.is_empty() {
            return Ok(Self { plan: plan.clone(), ..Self::new(&plan.pattern)? });
        }
        let chain = Chain::new(&plan.steps, &plan.pattern)?;
        let slowest = (1..).zip(chain.splitters()).max_by_key(|(_, splitter)| splitter.cost(1));
        let reason = match slowest {
            _ if chain.has_runs() => "runs of characters".to_owned(),
            Some((number, splitter)) => format!("step {number}: {}", splitter.reason),
            None => String::new(),
        };
        Ok(Self { plan, engine: Engine::Chain(Box::new(chain)), reason })
    }

    /// Compiles a regular expression for the fastest engine.
    pub fn new(pattern: &str) -> Result<Splitter> {
        if let Some(family) = Family::published(pattern) {
            let engine = Engine::Scanner(Scan::of(family));
            return Ok(Self { plan: pattern.into(), engine, reason: family.describe() });
        }
        let parsed = parse::parse(pattern)?;
        let alternatives = syntax::alternatives(&parsed);
        let regular = alternatives.as_deref().ok();
        if let Some(family) = regular.and_then(Family::of) {
            let engine = Engine::Scanner(Scan::of(family));
            return Ok(Self { plan: pattern.into(), engine, reason: family.describe() });
        }
        let (engine, reason) = match alternatives.as_deref().map_err(|obstacle| *obstacle).and_then(Automaton::new) {
            Ok(automaton) => match regular.and_then(Family::in_ascii) {
                Some(family) => {
                    let reason = format!("{} in ASCII text, and an automaton for other text", family.describe());
                    (Engine::InAscii(Box::new(Scan::new::<InAscii>(InAscii { family, automaton }))), reason)
                }
                None => (Engine::Automaton(Box::new(automaton)), "it is not of the GPT family".to_owned()),
            },
            Err(obstacle) => {
                let backtracking = Backtracking::new(pattern, &parsed.node, regular)?;
                (Engine::Backtracking(Box::new(backtracking)), format!("it has {obstacle}"))
            }
        };
        Ok(Self { plan: pattern.into(), engine, reason })
    }

    /// Compiles a regular expression for an engine, by the name that `explain` returns. Fails if the engine cannot run
    /// it.
    pub fn with_engine(pattern: &str, engine: &str) -> Result<Splitter> {
        let unsupported = |obstacle: &str| Error::invalid(format!("not for the {engine} engine: it has {obstacle}"));
        let parsed = parse::parse(pattern)?;
        let alternatives = || syntax::alternatives(&parsed).map_err(unsupported);
        let engine = match engine {
            "scanner" => match Self::new(pattern)?.engine {
                engine @ (Engine::Scanner(_) | Engine::InAscii(_)) => engine,
                _ => return Err(unsupported("alternatives that are not of the GPT family")),
            },
            "automaton" => Engine::Automaton(Box::new(Automaton::new(&alternatives()?).map_err(unsupported)?)),
            "backtracking" => Engine::Backtracking(Box::new(Backtracking::new(pattern, &parsed.node, None)?)),
            _ => return Err(Error::invalid(format!("no such engine: {}", quoted(engine)))),
        };
        Ok(Self { plan: pattern.into(), engine, reason: String::new() })
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn pattern(&self) -> &str {
        &self.plan.pattern
    }

    /// Returns the name of the engine and the reason for it. That of a chain is its slowest, unless all steps run at
    /// once.
    pub fn explain(&self) -> (&'static str, &str) {
        let name = match &self.engine {
            Engine::Scanner(_) | Engine::InAscii(_) => "scanner",
            Engine::Automaton(_) => "automaton",
            Engine::Backtracking(_) => "backtracking",
            Engine::Chain(chain) if chain.has_runs() => "scanner",
            Engine::Chain(chain) => chain
                .splitters()
                .max_by_key(|splitter| splitter.cost(1))
                .map_or("scanner", |slowest| slowest.explain().0),
        };
        (name, &self.reason)
    }

    /// Returns whether the plan has a single step, which is a scanner. Such a pattern matches every character of any
    /// text.
    pub fn has_scanner(&self) -> bool {
        matches!(self.engine, Engine::Scanner(_) | Engine::InAscii(_))
    }

    /// Returns whether the pattern matches the empty string somewhere in a text of ASCII characters.
    pub fn matches_empty(&self) -> bool {
        matches!(&self.engine, Engine::Backtracking(backtracking) if backtracking.matches_empty())
    }

    /// Estimates the cost of splitting `size` bytes: the number of bytes that a scanner could split in the same time.
    /// The engine that backtracks is slower, since it may restart its search at every byte.
    pub fn cost(&self, size: usize) -> usize {
        match &self.engine {
            Engine::Scanner(_) | Engine::InAscii(_) => size,
            Engine::Automaton(_) => size.saturating_mul(1 << 2),
            Engine::Backtracking(_) => size.saturating_mul(1 << 6),
            Engine::Chain(chain) if chain.has_runs() => size,
            Engine::Chain(chain) => chain.splitters().fold(0, |sum, step| step.cost(size).saturating_add(sum)),
        }
    }

    /// Returns the text that is split in place of `text`, a whole document or a part of it between special tokens: in
    /// the normalization form of the plan, and with a space before it if the plan asks for one.
    pub fn normalize<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let text = self.normalize_characters(text);
        if self.needs_prefix(&text) { Cow::Owned(format!(" {text}")) } else { text }
    }

    /// Returns a text in the normalization form of the plan.
    pub fn normalize_characters<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.plan.normalization.map_or(Cow::Borrowed(text), |form| form.normalize(text))
    }

    /// Returns whether a space must be put before a text.
    pub fn needs_prefix(&self, text: &str) -> bool {
        self.plan.prefix_space && !text.is_empty() && !text.starts_with(' ')
    }

    /// Calls `chunk` with each chunk of `text`, which is normalized, in order, and stops if it returns an error. Returns the number of bytes
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
            Engine::Scanner(scan) => scan.split(text, spans, batch),
            Engine::InAscii(scan) => scan.split(text, spans, batch),
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
                    if looked_ahead > look_ahead_limit(text) {
                        return Err(failed(self.pattern(), text, start, "it takes too long"));
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
            Engine::Chain(chain) => chain.split_in_batches(text, spans, cancel, &mut batch),
        }
    }

    /// Returns the last offset after `from` and not after `at` at which `text` can be cut so that the two parts, when
    /// they are normalized separately, together have the same chunks as the whole, or `None` if there is no such
    /// offset. It is always at the end of a line.
    pub fn cut_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        // The second part would get a space.
        if self.plan.prefix_space { None } else { self.cut(text, from, at, self.plan.normalization) }
    }

    /// Like `cut_before`, for text that is already normalized.
    pub fn cut_normalized_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        self.cut(text, from, at, None)
    }

    /// A newline is inert and composes with no other character, so the parts of a text before and after the end of a
    /// line can always be normalized separately. But `can_cut` needs the characters of the normalized text. An inert
    /// character stays what it is unless it is composed with those after it. Inert ones and newlines are not.
    fn cut(&self, text: &str, from: usize, at: usize, normalization: Option<Form>) -> Option<usize> {
        let is_kept = |c: char| normalization.is_none_or(|form| form.is_inert(c));
        let bytes = text.as_bytes();
        let mut end = at.min(bytes.len());
        while from < end {
            let newline = from + bytes[from..end].iter().rposition(|&byte| byte == b'\n')?;
            let mut following = text[newline + 1..].chars();
            if let Some(before) = text[..newline].chars().next_back()
                && let Some(after) = following.next()
                && self.can_cut(before, after)
                && (normalization.is_none()
                    || [Some(before), Some(after), following.next()].into_iter().all(|c| c.is_some_and(is_kept)))
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
            Engine::InAscii(scan) => scan.given.automaton.can_cut(before, after),
            Engine::Automaton(automaton) => automaton.can_cut(before, after),
            Engine::Backtracking(_) => false,
            Engine::Chain(chain) => chain.can_cut(before, after),
        }
    }

    /// Returns whether a match always ends where the text can be cut.
    fn matches_newlines(&self) -> bool {
        match &self.engine {
            Engine::Scanner(_) | Engine::InAscii(_) => true,
            Engine::Automaton(automaton) => automaton.matches_newlines(),
            Engine::Backtracking(_) | Engine::Chain(_) => false,
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
