//! Runs any pattern, by backtracking: where there is a choice, it is remembered, and if what follows fails, the next
//! possibility is tried.
//!
//! A chunk is a complete match, regardless of any groups in the pattern. Empty matches are not chunks: where the
//! pattern prefers one, its other possibilities are tried at the same position, as Python does.
//!
//! A pattern may come from an untrusted model file, so time and memory are bounded, and a search can be cancelled.

use super::chunks::Span;
use super::lazy::Lazy;
use super::meter::Meter;
use super::program::{FAIL, Instruction, Program, START, UNBOUNDED};
use super::syntax::{Alternative, Assert, Node};
use crate::error::{Cancel, NEVER, Result, try_push};

/// How often a search may backtrack: a fixed number or, for a long text, a number per byte if that is larger. A pattern
/// that needs more would practically never finish.
const BACKTRACK_LIMIT: usize = 1_000_000;
const BACKTRACKS_PER_BYTE: usize = 32;
/// The number of choices that can be remembered, and of the registers' earlier values: about 100 MB.
const MAX_CHOICES: usize = 1 << 21;
const MAX_UNDO: usize = 1 << 21;

pub struct Backtracking {
    pattern: String,
    engine: Engine,
}

enum Engine {
    Program(Box<Program>),
    /// A regular pattern does not need backtracking.
    Lazy(Box<Lazy>),
}

impl Backtracking {
    /// `regular` are the alternatives of a regular pattern.
    pub fn new(pattern: &str, node: &Node, regular: Option<&[Alternative]>) -> Result<Backtracking> {
        let engine = match regular.and_then(Lazy::new) {
            Some(lazy) => Engine::Lazy(Box::new(lazy)),
            None => Engine::Program(Box::new(Program::new(node)?)),
        };
        Ok(Backtracking { pattern: pattern.to_owned(), engine })
    }

    /// Calls `chunk` with the span of each chunk. Returns the number of bytes that are in no chunk.
    pub fn split(&self, text: &str, cancel: &Cancel, chunk: impl FnMut(Span) -> Result<()>) -> Result<usize> {
        self.split_and_count_steps(text, cancel, chunk).map(|(dropped, _)| dropped)
    }

    /// Like `split`, but returns the number of steps as well. See `meter`.
    pub fn split_and_count_steps(
        &self,
        text: &str,
        cancel: &Cancel,
        mut chunk: impl FnMut(Span) -> Result<()>,
    ) -> Result<(usize, usize)> {
        let mut meter = Meter::new(&self.pattern, text, cancel);
        let program = match &self.engine {
            Engine::Program(program) => program,
            Engine::Lazy(lazy) => return Ok((lazy.split(text, &mut meter, chunk)?, meter.steps())),
        };
        let mut search = Search::new(program, text, meter);
        let (mut start, mut kept) = (0, 0);
        while let Some((from, to)) = search.find(start)? {
            chunk((from, to))?;
            kept += to - from;
            start = to;
        }
        Ok((text.len() - kept, search.meter.steps()))
    }

    /// Implements `Splitter::matches_empty`.
    pub fn matches_empty(&self) -> bool {
        let Engine::Program(program) = &self.engine else { return false };
        let ascii: String = (0u8..128).map(char::from).collect();
        ["", &ascii].into_iter().any(|text| {
            let mut search = Search::new(program, text, Meter::new(&self.pattern, text, &NEVER));
            (0..=text.len()).any(|at| search.match_at(at, true) == Ok(Some(at)))
        })
    }
}

/// What to try if what follows fails.
struct Choice {
    instruction: u32,
    /// The length of `undo`.
    undo: u32,
    at: usize,
    /// For a run: where it ends if it gives back as much as possible.
    least: usize,
}

/// Values of `Choice::least`: continue with the instruction, or with one more character of a lazy run.
const CONTINUE: usize = usize::MAX;
const EXTEND: usize = usize::MAX - 1;

/// The search for chunks in a text.
struct Search<'s> {
    program: &'s Program,
    text: &'s str,
    meter: Meter<'s>,
    choices: Vec<Choice>,
    /// Registers and their earlier values, to be restored.
    undo: Vec<(u32, usize)>,
    registers: Vec<usize>,
    backtracks: usize,
}

impl<'s> Search<'s> {
    fn new(program: &'s Program, text: &'s str, meter: Meter<'s>) -> Self {
        Self {
            program,
            text,
            meter,
            choices: Vec::new(),
            undo: Vec::new(),
            registers: vec![usize::MAX; program.registers],
            backtracks: 0,
        }
    }

    /// Returns the first match at or after `from` that is not empty.
    fn find(&mut self, from: usize) -> Result<Option<(usize, usize)>> {
        let program = self.program;
        self.meter.start(from);
        self.backtracks = 0;
        let mut start = from;
        while start < self.text.len() {
            self.meter.count(1)?;
            if program.sets.step(self.text, start, false, program.first).is_some()
                && let Some(end) = self.match_at(start, false)?
            {
                return Ok(Some((start, end)));
            }
            let next = self.text.ceil_char_boundary(start + 1);
            if let Some(set) = program.leading_run {
                while let Some(len) = program.sets.step(self.text, start, false, set) {
                    start += len;
                }
            }
            start = start.max(next);
        }
        Ok(None)
    }

    /// Returns the end of the match at `start`. Unless `empty`, it must not be empty.
    fn match_at(&mut self, start: usize, empty: bool) -> Result<Option<usize>> {
        let Program { code, sets, .. } = self.program;
        let text = self.text;
        self.choices.clear();
        self.undo.clear();
        self.registers.fill(usize::MAX);
        let (mut next, mut at) = (START, start);
        let step = |at, back, set| sets.step(text, at, back, set);
        let starts = |set: Option<u32>, at, back| set.is_none_or(|set| step(at, back, set).is_some());
        loop {
            self.meter.count(1)?;
            let succeeds = match code[next as usize] {
                Instruction::Fail => false,
                Instruction::Match if at == start && !empty => false,
                Instruction::Match => return Ok(Some(at)),
                Instruction::Class { set, back } => match step(at, back, set) {
                    Some(len) => {
                        at = moved(at, len, back);
                        true
                    }
                    None => false,
                },
                Instruction::Run { set, min, max, back, possessive } => {
                    let max = if max == UNBOUNDED { usize::MAX } else { max as usize };
                    let (mut end, mut count, mut least) = (at, 0, at);
                    while count < max
                        && let Some(len) = step(end, back, set)
                    {
                        end = moved(end, len, back);
                        count += 1;
                        if count == min as usize {
                            least = end;
                        }
                    }
                    self.meter.count(count)?;
                    if !possessive && count > min as usize {
                        self.choose(next, end, least)?;
                    }
                    at = end;
                    count >= min as usize
                }
                Instruction::LazyRun { .. } => {
                    self.choose(next, at, EXTEND)?;
                    true
                }
                Instruction::End => at == text.len(),
                Instruction::Assert(assert) => self.holds(assert, at),
                Instruction::Peek { set, behind, negative } => step(at, behind, set).is_some() != negative,
                Instruction::Branch { set, back, mut other } => {
                    if !starts(set, at, back) {
                        next = other;
                        continue;
                    }
                    while let Instruction::Branch { set, back, other: another } = code[other as usize]
                        && !starts(set, at, back)
                    {
                        other = another;
                    }
                    if other != FAIL {
                        self.choose(other, at, CONTINUE)?;
                    }
                    true
                }
                Instruction::LazyBranch { set, back, other } => {
                    if starts(set, at, back) {
                        self.choose(next + 1, at, CONTINUE)?;
                    }
                    next = other;
                    continue;
                }
                Instruction::Jump(target) => {
                    next = target;
                    continue;
                }
                Instruction::Repeat { register } => {
                    self.set(register, 0)?;
                    self.set(register + 1, usize::MAX)?;
                    true
                }
                Instruction::Loop { register, min, max, greedy, set, back, exit } => {
                    let count = self.registers[register as usize];
                    let was_empty = self.registers[register as usize + 1] == at;
                    let can_exit = count >= min as usize;
                    let can_repeat =
                        (max == UNBOUNDED || count < max as usize) && !(was_empty && can_exit) && starts(set, at, back);
                    match (can_repeat, can_exit) {
                        (true, true) if greedy => self.choose(exit, at, CONTINUE)?,
                        (true, true) => {
                            self.choose(next + 1, at, CONTINUE)?;
                            next = exit;
                            continue;
                        }
                        (false, true) => {
                            next = exit;
                            continue;
                        }
                        _ => {}
                    }
                    can_repeat
                }
                Instruction::Iterate { register, min } => {
                    let count = self.registers[register as usize];
                    self.set(register, count + 1)?;
                    if count >= min as usize {
                        self.set(register + 1, at)?;
                    }
                    true
                }
                // These registers are never restored: nothing inside is tried again after the end.
                Instruction::Enter { register } => {
                    self.registers[register as usize] = self.choices.len();
                    self.registers[register as usize + 1] = at;
                    true
                }
                Instruction::EnterNegative { register, other } => {
                    self.registers[register as usize] = self.choices.len();
                    self.choose(other, at, CONTINUE)?;
                    true
                }
                Instruction::Commit { register } => {
                    self.choices.truncate(self.registers[register as usize]);
                    true
                }
                Instruction::Return { register } => {
                    self.choices.truncate(self.registers[register as usize]);
                    at = self.registers[register as usize + 1];
                    true
                }
                Instruction::Reject { register } => {
                    self.choices.truncate(self.registers[register as usize]);
                    false
                }
                Instruction::Open { register } => {
                    self.set(register, at)?;
                    true
                }
                Instruction::Close { register, back } => {
                    let entered = self.registers[register as usize];
                    let (start, end) = if back { (at, entered) } else { (entered, at) };
                    self.set(register + 1, start)?;
                    self.set(register + 2, end)?;
                    true
                }
                Instruction::BackReference { register } => {
                    let (start, end) = (self.registers[register as usize + 1], self.registers[register as usize + 2]);
                    match text.get(start..end) {
                        Some(group) if text[at..].starts_with(group) => {
                            self.meter.count(group.len())?;
                            at += group.len();
                            true
                        }
                        _ => false,
                    }
                }
            };
            if succeeds {
                next += 1;
            } else if let Some(choice) = self.backtrack()? {
                (next, at) = choice;
            } else {
                return Ok(None);
            }
        }
    }

    /// Returns the next instruction and the position to try, if there is one.
    fn backtrack(&mut self) -> Result<Option<(u32, usize)>> {
        let Program { code, sets, .. } = self.program;
        self.backtracks += 1;
        if self.backtracks > BACKTRACK_LIMIT.max(self.text.len().saturating_mul(BACKTRACKS_PER_BYTE)) {
            return Err(self.meter.failed("it backtracks too often"));
        }
        while let Some(choice) = self.choices.last_mut() {
            for (register, value) in self.undo.drain(choice.undo as usize..).rev() {
                self.registers[register as usize] = value;
            }
            match (choice.least, code[choice.instruction as usize]) {
                (EXTEND, Instruction::LazyRun { set, back }) => {
                    if let Some(len) = sets.step(self.text, choice.at, back, set) {
                        choice.at = moved(choice.at, len, back);
                        return Ok(Some((choice.instruction + 1, choice.at)));
                    }
                    self.choices.pop();
                }
                (CONTINUE, _) => {
                    let found = (choice.instruction, choice.at);
                    self.choices.pop();
                    return Ok(Some(found));
                }
                (least, Instruction::Run { back, .. }) => {
                    choice.at = match back {
                        false => self.text.floor_char_boundary(choice.at - 1),
                        true => self.text.ceil_char_boundary(choice.at + 1),
                    };
                    let found = (choice.instruction + 1, choice.at);
                    if choice.at == least {
                        self.choices.pop();
                    }
                    return Ok(Some(found));
                }
                _ => unreachable!("only runs remember more than an instruction"),
            }
        }
        Ok(None)
    }

    fn choose(&mut self, instruction: u32, at: usize, least: usize) -> Result<()> {
        if self.choices.len() >= MAX_CHOICES {
            return Err(self.meter.failed("it needs too much memory"));
        }
        let choice = Choice { instruction, undo: self.undo.len() as u32, at, least };
        Ok(try_push(&mut self.choices, choice)?)
    }

    fn set(&mut self, register: u32, value: usize) -> Result<()> {
        let earlier = std::mem::replace(&mut self.registers[register as usize], value);
        if self.choices.is_empty() {
            return Ok(());
        }
        if self.undo.len() >= MAX_UNDO {
            return Err(self.meter.failed("it needs too much memory"));
        }
        Ok(try_push(&mut self.undo, (register, earlier))?)
    }

    fn holds(&self, assert: Assert, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        let is_word = |back| {
            let Program { sets, word, .. } = self.program;
            sets.step(self.text, at, back, *word).is_some()
        };
        match assert {
            Assert::Start => at == 0,
            Assert::LineStart => at == 0 || bytes[at - 1] == b'\n',
            Assert::LineEnd => bytes.get(at).is_none_or(|&byte| byte == b'\n'),
            Assert::WordBoundary => is_word(true) != is_word(false),
            Assert::NotWordBoundary => is_word(true) == is_word(false),
        }
    }
}

#[inline(always)]
fn moved(at: usize, len: usize, back: bool) -> usize {
    if back { at - len } else { at + len }
}
