//! Runs several patterns one after the other: each step cuts the pieces that the step before it left, as the sequences
//! of pre-tokenizers in Hugging Face's library do. The pattern of a `Plan` is the last step: it removes what it does not
//! match.
//!
//! A piece passes through all steps before the next piece is looked for, so the memory does not depend on the text.

mod runs;

use std::time::Instant;

use self::runs::Runs;
use super::chunks::{BATCH, Chunks, Span};
use super::classes::{ClassTable, Text};
use super::leads::Leads;
use super::meter::step_limit;
use super::scanners::{Given, InAscii, Scan, Source};
use super::{BLOCK, Engine, LOOK_AHEAD_PER_CHECK, Splitter, failed, look_ahead_limit, parse, syntax};
use crate::error::{Cancel, Error, Result, try_push, try_reserve};

/// Steps are nested calls.
const MAX_STEPS: usize = 64;
/// The pieces between two checks of `Cancel`.
const PIECES_PER_CHECK: usize = 1 << 12;
/// A pattern that does not split text. As the last step, it is left out.
const WHOLE_TEXT: &str = r"[\s\S]+";

/// What becomes of the matches of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// Each is a piece.
    Isolated,
    Removed,
    /// Part of the text before it, unless that is another match.
    MergedWithPrevious,
    /// Part of the text after it, unless that is another match.
    MergedWithNext,
    /// Neighboring matches are one piece.
    Contiguous,
}

impl Behavior {
    pub const ALL: [(&'static str, Behavior); 5] = [
        ("Isolated", Behavior::Isolated),
        ("Removed", Behavior::Removed),
        ("MergedWithPrevious", Behavior::MergedWithPrevious),
        ("MergedWithNext", Behavior::MergedWithNext),
        ("Contiguous", Behavior::Contiguous),
    ];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub pattern: String,
    pub behavior: Behavior,
    /// Treat the text between matches as matches, and the matches as the text between them.
    pub invert: bool,
}

pub struct Chain {
    steps: Vec<CompiledStep>,
    /// A faster way to run all steps, if there is one.
    runs: Option<Runs>,
}

struct CompiledStep {
    splitter: Splitter,
    behavior: Behavior,
    invert: bool,
    /// The bytes with which a match can start.
    starts: Leads,
}

impl CompiledStep {
    fn new(step: &Step) -> Result<Self> {
        let splitter = Splitter::new(&step.pattern)?;
        let parsed = parse::parse(&step.pattern)?;
        let starts = match syntax::alternatives(&parsed) {
            Ok(alternatives) => {
                let mut first = regex_syntax::hir::ClassUnicode::empty();
                alternatives.iter().for_each(|alternative| first.union(&syntax::first(&alternative.node)));
                Leads::of_class(&first)
            }
            Err(_) => Leads::all(),
        };
        Ok(Self { splitter, behavior: step.behavior, invert: step.invert, starts })
    }

    /// Returns whether the pieces are the matches.
    fn takes_matches(&self) -> bool {
        matches!((self.behavior, self.invert), (Behavior::Isolated, _) | (Behavior::Removed, true))
    }

    fn removes(&self, is_match: bool) -> bool {
        self.behavior == Behavior::Removed && is_match != self.invert
    }
}

impl Chain {
    /// `pattern` is the last pattern: what it does not match is dropped.
    pub fn new(steps: &[Step], pattern: &str) -> Result<Self> {
        if steps.len() > MAX_STEPS {
            return Err(Error::invalid(format!("there must be at most {MAX_STEPS} steps, got {}", steps.len())));
        }
        let last = Step { pattern: pattern.to_owned(), behavior: Behavior::Removed, invert: true };
        let last = (pattern != WHOLE_TEXT).then_some(&last);
        let runs = if last.is_none() { Runs::new(steps)? } else { None };
        Ok(Self { steps: steps.iter().chain(last).map(CompiledStep::new).collect::<Result<_>>()?, runs })
    }

    /// The splitters of all steps.
    pub fn splitters(&self) -> impl Iterator<Item = &Splitter> {
        self.steps.iter().map(|step| &step.splitter)
    }

    /// Returns whether all steps run at once.
    pub fn has_runs(&self) -> bool {
        self.runs.is_some()
    }

    /// Returns whether a text can be cut after a newline between two characters.
    ///
    /// Proof: let the cut divide a piece of a step into A and B. If the pattern of the step can be cut there
    /// (`Splitter::can_cut`, whose proofs also hold if the piece starts with the newline), then the whole piece has the
    /// matches of A and those of B. Of the pieces that the step makes of A and B, therefore, at most the last of A and
    /// the first of B are one piece of the whole: text between matches that continues across the cut, or a match that
    /// any behavior joins with what is beyond it. All others are the same, because each behavior joins what touches. So
    /// the next step is in the same situation, with a piece that contains the cut, or with none; and the last step
    /// makes a chunk of each match.
    ///
    /// Once a step makes a piece of each match, and one always ends at the cut, no piece contains the cut, and later
    /// steps do not matter. If there is no such step, the last one must be one that leaves no piece that contains it.
    pub fn can_cut(&self, before: char, after: char) -> bool {
        for step in &self.steps {
            if !step.splitter.can_cut(before, after) {
                return false;
            }
            if step.takes_matches() && (step.behavior == Behavior::Removed || step.splitter.matches_newlines()) {
                return true;
            }
        }
        false
    }

    /// Implements `Splitter::split_in_batches`.
    pub fn split_in_batches<'t>(
        &self,
        text: &'t str,
        spans: &mut [Span],
        cancel: &Cancel,
        batch: &mut dyn FnMut(Chunks<'t, '_>) -> Result<()>,
    ) -> Result<usize> {
        if let Some(runs) = &self.runs {
            return runs.split(text, spans, batch).map(|()| 0);
        }
        let mut run = Run {
            steps: &self.steps,
            text,
            next_start: vec![0; self.steps.len()],
            scanned: spans,
            chunks: Vec::new(),
            dropped: 0,
            looked_ahead: 0,
            steps_taken: 0,
            next_check: LOOK_AHEAD_PER_CHECK,
            pieces: 0,
            cancel,
            batch,
        };
        if !text.is_empty() {
            run.piece(0, (0, text.len()))?;
        }
        run.flush()?;
        Ok(run.dropped)
    }
}

/// The state of splitting a text.
struct Run<'t, 's> {
    steps: &'s [CompiledStep],
    text: &'t str,
    /// For each step: no match starts between the piece it had last and this position.
    next_start: Vec<usize>,
    /// Room for what a scanner finds in the last step.
    scanned: &'s mut [Span],
    /// Chunks for the next batch.
    chunks: Vec<Span>,
    dropped: usize,
    /// What the engines count in all pieces, which would otherwise bound the time for each of them only.
    looked_ahead: usize,
    steps_taken: usize,
    next_check: usize,
    pieces: usize,
    cancel: &'s Cancel<'s>,
    batch: &'s mut dyn FnMut(Chunks<'t, '_>) -> Result<()>,
}

impl<'s> Run<'_, 's> {
    /// Passes a piece, which is not empty, to a step. What the last step leaves is a chunk.
    fn piece(&mut self, mut number: usize, piece: Span) -> Result<()> {
        let steps = self.steps;
        self.pieces += 1;
        if self.pieces.is_multiple_of(PIECES_PER_CHECK) {
            self.cancel.poll_and_check(Instant::now())?;
        }
        while let Some(step) = steps.get(number) {
            if self.next_start[number] < piece.0 {
                self.next_start[number] = step.starts.next(self.text.as_bytes(), piece.0);
            }
            if self.next_start[number] < piece.1 {
                let mut cutter = Cutter { step, number, done: piece.0, pending: None };
                self.find(step, number, piece, &mut cutter)?;
                return cutter.finish(piece.1, self);
            }
            // There is no match.
            if step.removes(false) {
                self.dropped += piece.1 - piece.0;
                return Ok(());
            }
            number += 1;
        }
        try_push(&mut self.chunks, piece)?;
        if self.chunks.len() < BATCH { Ok(()) } else { self.flush() }
    }

    /// Calls `cutter` with each match of a scanner.
    fn scan<S: Source>(
        &mut self,
        scan: &Scan<S::Given>,
        step: &'s CompiledStep,
        number: usize,
        (start, end): Span,
        cutter: &mut Cutter,
    ) -> Result<()> {
        let text = self.text;
        let mut at = start;
        if end - start < BLOCK {
            let scanned = Text { bytes: &text.as_bytes()[..end], classes: ClassTable::general() };
            while at < end {
                let next = S::end(&scan.given, &text[..end], scanned, at);
                cutter.add((at, next), self)?;
                at = next;
            }
            return Ok(());
        }
        if number + 1 == self.steps.len() && step.takes_matches() {
            while at < end {
                let (chunks, next) = scan.batch(&text[..end], at, self.scanned);
                try_reserve(&mut self.chunks, chunks.len())?;
                self.chunks.extend_from_slice(chunks.spans());
                at = next;
                if self.chunks.len() >= BATCH {
                    self.flush()?;
                }
            }
            cutter.done = end;
            return Ok(());
        }
        let mut spans = [(0, 0); 2 * BLOCK + 8];
        while at < end {
            let (chunks, next) = scan.batch(&text[..end], at, &mut spans);
            chunks.spans().iter().try_for_each(|&found| cutter.add(found, self))?;
            at = next;
        }
        Ok(())
    }

    /// Calls `cutter` with each match in a piece.
    fn find(&mut self, step: &'s CompiledStep, number: usize, (start, end): Span, cutter: &mut Cutter) -> Result<()> {
        let text = self.text;
        match &step.splitter.engine {
            Engine::Scanner(scan) => self.scan::<Given>(scan, step, number, (start, end), cutter),
            Engine::InAscii(scan) => self.scan::<InAscii>(scan, step, number, (start, end), cutter),
            Engine::Automaton(automaton) => {
                let piece = &text[..end];
                let mut at = self.next_start[number];
                while at < end {
                    let (found, seen) = automaton.end(piece, at);
                    match found {
                        Some(found) => {
                            cutter.add((at, found), self)?;
                            self.looked_ahead += seen - found;
                            at = found;
                        }
                        None => {
                            let next = piece.ceil_char_boundary(at + 1);
                            self.looked_ahead += seen.max(next) - at;
                            at = next;
                        }
                    }
                    if self.looked_ahead > self.next_check {
                        self.cancel.poll_and_check(Instant::now())?;
                        self.next_check = self.looked_ahead + LOOK_AHEAD_PER_CHECK;
                        if self.looked_ahead > look_ahead_limit(text) {
                            return Err(failed(step.splitter.pattern(), text, at, "it takes too long"));
                        }
                    }
                    if at < end && !step.starts.contains(piece.as_bytes()[at]) {
                        at = step.starts.next(piece.as_bytes(), at);
                    }
                }
                Ok(())
            }
            Engine::Backtracking(backtracking) => {
                let cancel = self.cancel;
                let add = |(from, to): Span| {
                    let (from, to) = (start + from, start + to);
                    assert!(cutter.done <= from && from < to && to <= end);
                    assert!(text.is_char_boundary(from) && text.is_char_boundary(to));
                    cutter.add((from, to), self)
                };
                let (_, steps) = backtracking.split_and_count_steps(&text[start..end], cancel, add)?;
                self.steps_taken += steps;
                if self.steps_taken > step_limit(text) {
                    return Err(failed(step.splitter.pattern(), text, start, "it takes too long"));
                }
                Ok(())
            }
            Engine::Chain(_) => unreachable!("a step is a single pattern"),
        }
    }

    fn flush(&mut self) -> Result<()> {
        if !self.chunks.is_empty() {
            // SAFETY: each step receives the pieces of the one before it in order. It cuts them at the ends of matches,
            // which are in order and at boundaries by the contracts of `Scan::batch`, `Source::end` and
            // `Automaton::end`, and are checked for the engine that backtracks. Checking the spans: +14% time in
            // splitting.
            (self.batch)(unsafe { Chunks::new_unchecked(self.text, &self.chunks) })?;
            self.chunks.clear();
        }
        Ok(())
    }
}

/// Makes pieces for the next step of the matches of a step and the text between them.
struct Cutter<'s> {
    step: &'s CompiledStep,
    number: usize,
    /// Where the last match ends.
    done: usize,
    /// A piece that may grow, and whether its last part is a match.
    pending: Option<(Span, bool)>,
}

impl Cutter<'_> {
    /// Adds the next match, and the text before it.
    fn add(&mut self, found: Span, run: &mut Run) -> Result<()> {
        if self.done < found.0 {
            self.part((self.done, found.0), self.step.invert, run)?;
        }
        self.done = found.1;
        self.part(found, !self.step.invert, run)
    }

    /// Adds a part: a match, or the text between matches; the other way round if the step is inverted.
    fn part(&mut self, part: Span, is_match: bool, run: &mut Run) -> Result<()> {
        let is_joined = |was_match: bool| match self.step.behavior {
            Behavior::Isolated | Behavior::Removed => false,
            Behavior::MergedWithPrevious => is_match && !was_match,
            Behavior::MergedWithNext => !is_match && was_match,
            Behavior::Contiguous => is_match == was_match,
        };
        match (&mut self.pending, self.step.behavior) {
            (_, Behavior::Isolated) => run.piece(self.number + 1, part),
            (_, Behavior::Removed) if is_match => {
                run.dropped += part.1 - part.0;
                Ok(())
            }
            (_, Behavior::Removed) => run.piece(self.number + 1, part),
            (Some((pending, was_match)), _) if is_joined(*was_match) => {
                (pending.1, *was_match) = (part.1, is_match);
                Ok(())
            }
            _ => match self.pending.replace((part, is_match)) {
                Some((piece, _)) => run.piece(self.number + 1, piece),
                None => Ok(()),
            },
        }
    }

    /// Adds the text after the last match, and passes on what is pending.
    fn finish(mut self, end: usize, run: &mut Run) -> Result<()> {
        if self.done < end {
            self.part((self.done, end), self.step.invert, run)?;
        }
        match self.pending {
            Some((piece, _)) => run.piece(self.number + 1, piece),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::super::{Form, Plan};
    use super::*;
    use crate::error::NEVER;

    const PATTERNS: [&str; 12] = [
        r"\p{N}{1,3}",
        r"[\r\n]",
        r"\s?[a-z]+",
        r"\s+",
        r"[^\s\p{L}\p{N}]+",
        r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        r"\s+$",
        r"a+b",
        r"(?<=a)b",
        r"[^a]",
        r"\n+|[^\n]+",
        WHOLE_TEXT,
    ];

    /// What `Runs` isolates.
    const RUNS: [&str; 7] =
        [r"[\r\n]", r"\s?[a-zé]+", r"\s?[.a\u{3000}]+", r"\s+(?![^\n])", r"[\t1b]+", r"[12]", r"[\s1]?[é1]+"];

    fn plans() -> impl Strategy<Value = Plan> {
        let step = (select(&PATTERNS[..11]), select(&Behavior::ALL[..]), any::<bool>());
        let step = step.prop_map(|(pattern, (_, behavior), invert)| Step { pattern: pattern.into(), behavior, invert });
        let form = proptest::option::of(select(&Form::ALL[..]));
        (vec(step, 0..4), select(&PATTERNS[..]), form, proptest::bool::weighted(0.1)).prop_map(
            |(steps, pattern, form, prefix_space)| Plan {
                pattern: pattern.into(),
                steps,
                normalization: form.map(|(_, form)| form),
                prefix_space,
            },
        )
    }

    /// Returns the chunks of a text, and the number of bytes dropped, checking that batches have one or more chunks.
    fn chunks(splitter: &Splitter, text: &str) -> (Vec<String>, usize) {
        let (text, mut chunks) = (splitter.normalize(text), Vec::new());
        let dropped = splitter.split_in_batches(&text, &mut Default::default(), &NEVER, |batch| {
            assert!(batch.len() > 0);
            chunks.extend(batch.iter().map(str::to_owned));
            Ok(())
        });
        (chunks, dropped.unwrap())
    }

    /// Applies one step after the other to all pieces.
    fn simple(plan: &Plan, text: &str) -> Vec<String> {
        let text = Splitter::of(plan.clone()).unwrap().normalize(text).into_owned();
        let mut pieces = vec![text];
        let last = Step { pattern: plan.pattern.clone(), behavior: Behavior::Removed, invert: true };
        for step in plan.steps.iter().chain([&last]) {
            pieces = pieces.iter().flat_map(|piece| cut(piece, step)).collect();
        }
        pieces
    }

    fn cut(text: &str, step: &Step) -> Vec<String> {
        let (mut parts, mut done) = (Vec::new(), 0);
        let mut add = |part: &str, is_match: bool| {
            let was_match = parts.last().map(|(_, was_match)| *was_match);
            let is_joined = match step.behavior {
                Behavior::Isolated | Behavior::Removed => false,
                Behavior::MergedWithPrevious => is_match && was_match == Some(false),
                Behavior::MergedWithNext => !is_match && was_match == Some(true),
                Behavior::Contiguous => was_match == Some(is_match),
            };
            match parts.last_mut() {
                _ if part.is_empty() => {}
                Some((last, was_match)) if is_joined => {
                    *last = format!("{last}{part}");
                    *was_match = is_match;
                }
                _ => parts.push((part.to_owned(), is_match)),
            }
        };
        Splitter::new(&step.pattern)
            .unwrap()
            .split(text, &NEVER, |found| {
                let start = found.as_ptr() as usize - text.as_ptr() as usize;
                add(&text[done..start], step.invert);
                add(found, !step.invert);
                done = start + found.len();
                Ok(())
            })
            .unwrap();
        add(&text[done..], step.invert);
        parts.retain(|(_, is_match)| step.behavior != Behavior::Removed || !is_match);
        parts.into_iter().map(|(part, _)| part).collect()
    }

    proptest! {
        #[test]
        fn a_chain_cuts_like_one_step_after_the_other(plan in plans(), text in r"([ab']|[12 \n.éｱ²]|e\u{301}){0,40}") {
            let (found, dropped) = chunks(&Splitter::of(plan.clone()).unwrap(), &text);
            let expected = simple(&plan, &text);
            let size = Splitter::of(plan).unwrap().normalize(&text).len();
            prop_assert_eq!(dropped, size - expected.concat().len());
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn chains_of_runs_cut_like_one_step_after_the_other(
            steps in vec((select(&RUNS[..]), proptest::bool::weighted(0.1)), 1..6),
            runs in vec((select(&['a', 'b', '1', '.', 'é', ' ', '\t', '\n', '\u{3000}', '\u{1}'][..]), 1..90usize, 0..9), 1..40),
        ) {
            let step = |&(pattern, contiguous): &(&'static str, bool)| {
                (pattern, if contiguous { Behavior::Contiguous } else { Behavior::Isolated })
            };
            let plan = plan(&steps.iter().map(step).collect::<Vec<_>>(), WHOLE_TEXT);
            // Most runs are short.
            let run = |&(c, len, is_long): &(char, usize, i32)| c.to_string().repeat(if is_long == 0 { len } else { len % 3 });
            let text: String = runs.iter().map(run).collect();
            prop_assert_eq!(chunks(&Splitter::of(plan.clone()).unwrap(), &text), (simple(&plan, &text), 0));
        }

        /// `can_cut` has a proof. Here are examples.
        #[test]
        fn the_parts_of_a_text_have_the_chunks_of_the_whole(
            plan in plans(),
            text in r"(([ab'/]|[1 .éｱ²／\u{a0}\u{301}\u{1161}가]|e\u{301}){0,5}\n){0,12}[a-c\u{301}]{0,3}",
            at in 0..80usize,
        ) {
            let splitter = Splitter::of(plan.clone()).unwrap();
            let at = text.floor_char_boundary(at);
            if let Some(cut) = splitter.cut_before(&text, 0, at) {
                prop_assert!(0 < cut && cut <= at);
                let (mut parts, dropped) = chunks(&splitter, &text[..cut]);
                let (rest, dropped_rest) = chunks(&splitter, &text[cut..]);
                parts.extend(rest);
                prop_assert_eq!((parts, dropped + dropped_rest), chunks(&splitter, &text));
            }
        }
    }

    fn plan(steps: &[(&str, Behavior)], pattern: &str) -> Plan {
        let step = |&(pattern, behavior): &(&str, Behavior)| Step { pattern: pattern.into(), behavior, invert: false };
        Plan { pattern: pattern.into(), steps: steps.iter().map(step).collect(), ..Plan::default() }
    }

    #[test]
    fn common_chains_are_run_for_many_characters_at_once() {
        use Behavior::{Contiguous, Isolated, Removed};
        let (newlines, words, end) = ((r"[\r\n]", Isolated), (r"\s?\p{L}+", Isolated), (r"\s+(?![^\n])", Isolated));
        for (steps, expected) in [
            (&[newlines, words, (r"\s?\p{P}+", Isolated), end, ("[一-龥]+", Isolated), (r"\p{N}", Isolated)][..], true),
            (&[(r"\p{N}", Contiguous)], true),
            (&[words, end, newlines], false),
            (&[newlines, end, words], false),
            (&[newlines, (end.0, Contiguous)], false),
            (&[(words.0, Contiguous)], false),
            (&[(newlines.0, Removed)], false),
            (&[(r"\p{N}{1,3}", Isolated)], false),
            (&[(r"\s?\p{L}", Isolated)], false),
            (&[(r"\s?\p{L}+?", Isolated)], false),
        ] {
            assert_eq!(Chain::new(&plan(steps, "").steps, WHOLE_TEXT).unwrap().has_runs(), expected, "{steps:?}");
        }
        assert!(!Chain::new(&plan(&[newlines], "").steps, "a").unwrap().has_runs());
    }

    /// What a step does may depend on the characters after the first 64.
    #[test]
    fn chains_of_runs_look_ahead() {
        use Behavior::Isolated;
        let prefixes = plan(&[("1?a+", Isolated), (r"\s?[1.]+", Isolated)], WHOLE_TEXT);
        let ends = plan(&[("\n", Isolated), (r"\s?a+", Isolated), (r"\s+(?![^\n])", Isolated)], WHOLE_TEXT);
        for len in [0, 1].into_iter().chain(58..68).chain(119..130) {
            let others = "b".repeat(len);
            let texts = [" 1a", " 1b", " a", "  a", "  b", "  ", " \n"].map(|text| format!("{others}{text}"));
            let spaces = " ".repeat(len);
            let long = ["a", " a", "b", "", "\n"].map(|text| format!("b{spaces}{text}"));
            for text in texts.iter().chain(&long) {
                for plan in [&prefixes, &ends] {
                    let found = chunks(&Splitter::of(plan.clone()).unwrap(), text);
                    assert_eq!(found, (simple(plan, text), 0), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn common_chains_can_be_cut_at_the_end_of_a_line() {
        use Behavior::{Contiguous, Isolated, Removed};
        let gpt2 = PATTERNS[5];
        for (plan, expected) in [
            (plan(&[(r"\p{N}", Isolated)], gpt2), true),
            (plan(&[(r"\p{N}{1,3}", Isolated), (r"[一-龥]+", Isolated)], gpt2), true),
            (plan(&[(r"\p{P}", Contiguous), (gpt2, Isolated), (r"[0-9]{3}", Isolated)], WHOLE_TEXT), true),
            (plan(&[(r"[\r\n]", Isolated), (r"\s?[a-z]+", Isolated), (r"\s+$", Isolated)], WHOLE_TEXT), true),
            (plan(&[(r"[\r\n]", Removed)], WHOLE_TEXT), false),
            (plan(&[(r"[a-z]+", Isolated)], WHOLE_TEXT), false),
            (plan(&[(r"(?<=a)b", Isolated)], gpt2), false),
        ] {
            for normalization in [None, Some(Form::Nfc)] {
                let splitter = Splitter::of(Plan { normalization, ..plan.clone() }).unwrap();
                assert_eq!(splitter.cut_before("ab\ncd", 0, 5), expected.then_some(3), "{plan:?}");
            }
        }
        let splitter = Splitter::of(Plan { normalization: Some(Form::Nfc), ..gpt2.into() }).unwrap();
        assert_eq!(splitter.cut_before("ab\nc\u{301}", 0, 6), None);
        assert_eq!(splitter.cut_normalized_before("ab\nc\u{301}", 0, 6), Some(3));
        assert_eq!(Splitter::of(Plan { prefix_space: true, ..gpt2.into() }).unwrap().cut_before("ab\ncd", 0, 5), None);
    }

    #[test]
    fn a_chain_that_drops_everything_can_be_cancelled() {
        let chain = Splitter::of(plan(&[("a", Behavior::Isolated)], "b")).unwrap();
        let cancel = Cancel::default();
        cancel.cancel();
        let text = "a".repeat(PIECES_PER_CHECK);
        assert_eq!(chain.split(&text, &cancel, |_| Ok(())), Err(Error::Cancelled));
        assert_eq!(chain.split(&text, &NEVER, |_| Ok(())), Ok(text.len()));
    }

    /// Each piece alone is searched fast enough.
    #[test]
    fn a_chain_that_takes_too_long_is_an_error() {
        let chain = Splitter::of(plan(&[(r"(?:(?!a*b)a)*c|\n", Behavior::Isolated)], "a")).unwrap();
        let text = format!("{}\n", "a".repeat(1 << 9)).repeat(1 << 9);
        let error = chain.split(&text, &NEVER, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("it takes too long"), "{error}");
    }

    #[test]
    fn too_many_steps_are_an_error() {
        let error = Splitter::of(plan(&[("a", Behavior::Isolated); MAX_STEPS + 1], "a")).err().unwrap();
        assert_eq!(error.to_string(), "there must be at most 64 steps, got 65");
    }
}
