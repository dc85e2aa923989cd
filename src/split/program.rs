//! Compiles a pattern into the instructions that `backtracking` runs. Their number is proportional to the size of the
//! pattern: repetitions are counted while a program runs.

use std::collections::{BTreeMap, HashMap};

use regex_syntax::hir::ClassUnicodeRange;

use super::parse::{parse_class, unsupported};
use super::sets::{MAX_BITS, Sets};
use super::syntax::{self, Assert, Irregular, Node, Repeat};
use crate::error::{Error, Result};

/// How many nodes are looked at to find out what can follow a node.
const MAX_FOLLOWING: usize = 1 << 5;
/// No maximum.
pub const UNBOUNDED: u32 = u32::MAX;
/// The instruction that always fails.
pub const FAIL: u32 = 0;
pub const START: u32 = 1;

/// `set` is the number of a set of characters, and `other` and `exit` are numbers of instructions. In a look-behind,
/// text is matched from right to left: `back`.
#[rustfmt::skip]
#[derive(Clone, Copy, Debug)]
pub enum Instruction {
    Fail,
    Match,
    Class { set: u32, back: bool },
    /// Characters of a set, as many as possible. If what follows fails, and this is not possessive, one fewer.
    Run { set: u32, min: u32, max: u32, back: bool, possessive: bool },
    /// Characters of a set, as few as possible.
    LazyRun { set: u32, back: bool },
    /// The end of the text.
    End,
    Assert(Assert),
    /// The next or previous character is in a set. If `negative`, it is not, or there is none.
    Peek { set: u32, behind: bool, negative: bool },
    /// What follows; if it fails, `other`. If there is a set, what follows starts with one of its characters.
    Branch { set: Option<u32>, back: bool, other: u32 },
    /// `other`; if it fails, what follows.
    LazyBranch { set: Option<u32>, back: bool, other: u32 },
    Jump(u32),
    /// Starts a repetition. Two registers contain the number of iterations and the start of the last optional one.
    Repeat { register: u32 },
    /// The next iteration, which follows, or `exit`. As in Python, no iteration follows an optional one that was empty.
    Loop { register: u32, min: u32, max: u32, greedy: bool, set: Option<u32>, back: bool, exit: u32 },
    /// Starts an iteration.
    Iterate { register: u32, min: u32 },
    /// Starts an atomic group or a positive look-around. Two registers keep the number of choices and the position.
    Enter { register: u32 },
    /// Ends an atomic group.
    Commit { register: u32 },
    /// Ends a positive look-around.
    Return { register: u32 },
    /// Starts a negative look-around. If it fails, `other` follows.
    EnterNegative { register: u32, other: u32 },
    /// Ends a negative look-around.
    Reject { register: u32 },
    /// Starts a group. Its registers are: where it was entered, and the start and the end of its last match.
    Open { register: u32 },
    /// Ends a group.
    Close { register: u32, back: bool },
    BackReference { register: u32 },
}

pub struct Program {
    pub code: Vec<Instruction>,
    pub sets: Sets,
    pub registers: usize,
    /// The characters with which a match that is not empty can start.
    pub first: u32,
    /// A set that the program always starts to match with as many characters as possible. If it then fails, it would
    /// fail in the same way from any of them.
    pub leading_run: Option<u32>,
    /// `\w`
    pub word: u32,
}

impl Program {
    pub fn new(node: &Node) -> Result<Program> {
        let mut sets = vec![parse_class(r"\w", false)?];
        let mut known: BTreeMap<Vec<ClassUnicodeRange>, u32> = BTreeMap::new();
        syntax::for_each_class(node, &mut |class| {
            if !known.contains_key(class.ranges()) {
                known.insert(class.ranges().to_vec(), sets.len() as u32);
                sets.push(class.clone());
            }
        });
        let sets = Sets::new(&sets).ok_or_else(too_many_sets)?;
        let code = vec![Instruction::Fail];
        let (interned, groups) = (HashMap::new(), HashMap::new());
        let mut compiler = Compiler { code, sets, known, interned, groups, registers: 0 };
        compiler.compile(node, &Rest::end(), false)?;
        compiler.code.push(Instruction::Match);
        let first = compiler.first(node, false);
        let first = compiler.intern(first)?;
        let Compiler { code, sets, registers, .. } = compiler;
        let leading_run = match code[START as usize] {
            Instruction::Run { set, min: 0 | 1, max: UNBOUNDED, possessive: true, .. } => Some(set),
            _ => None,
        };
        Ok(Program { code, sets, registers: registers as usize, first, leading_run, word: 0 })
    }
}

fn too_many_sets() -> Error {
    unsupported("it has too many different sets of characters")
}

/// A set of classes.
type Bits = Vec<u64>;

/// What can follow a node within the pattern, or within its look-around or atomic group.
struct Rest {
    /// The characters with which it can start.
    first: Bits,
    /// Whether it can match nothing.
    nullable: bool,
    /// Whether it always matches.
    cannot_fail: bool,
}

impl Rest {
    fn end() -> Self {
        Self { first: Bits::new(), nullable: true, cannot_fail: true }
    }

    /// Returns whether characters of a set need not be given back, because what follows cannot start with them.
    fn is_apart(&self, set: &[u64]) -> bool {
        self.cannot_fail || !self.nullable && self.first.iter().zip(set).all(|(a, b)| a & b == 0)
    }
}

struct Compiler {
    code: Vec<Instruction>,
    sets: Sets,
    /// The number of each set of characters.
    known: BTreeMap<Vec<ClassUnicodeRange>, u32>,
    interned: HashMap<Bits, u32>,
    /// The first register of each group that was completed.
    groups: HashMap<usize, u32>,
    registers: u32,
}

impl Compiler {
    /// Appends the instructions for a node. If `back`, they match from right to left.
    fn compile(&mut self, node: &Node, rest: &Rest, back: bool) -> Result<()> {
        match node {
            Node::Class(class) => {
                let set = self.known[class.ranges()];
                self.code.push(Instruction::Class { set, back });
            }
            Node::Concat(nodes) => {
                for at in 0..nodes.len() {
                    let (node, rest) = match back {
                        false => (&nodes[at], self.rest(nodes[at + 1..].iter(), rest, back)),
                        true => {
                            let at = nodes.len() - 1 - at;
                            (&nodes[at], self.rest(nodes[..at].iter().rev(), rest, back))
                        }
                    };
                    self.compile(node, &rest, back)?;
                }
            }
            Node::Alt(nodes) => {
                let mut jumps = Vec::new();
                for node in nodes {
                    let branch = self.code.len();
                    let set = self.filter(node, back)?;
                    self.code.push(Instruction::Branch { set, back, other: FAIL });
                    self.compile(node, rest, back)?;
                    jumps.push((branch, self.code.len()));
                    self.code.push(Instruction::Fail);
                }
                let end = self.at();
                for (number, &(branch, jump)) in jumps.iter().enumerate() {
                    self.code[jump] = Instruction::Jump(end);
                    if number + 1 < jumps.len() {
                        self.set_target(branch, jump as u32 + 1);
                    }
                }
            }
            Node::Repeat(repeat) => self.repeat(repeat, rest, back, false)?,
            Node::End => self.code.push(Instruction::End),
            Node::Atomic(child) => match &**child {
                Node::Repeat(repeat) if repeat.greedy && matches!(*repeat.child, Node::Class(_)) => {
                    self.repeat(repeat, rest, back, true)?;
                }
                Node::Class(_) => self.compile(child, rest, back)?,
                _ => {
                    let register = self.registers(2);
                    self.code.push(Instruction::Enter { register });
                    self.compile(child, &Rest::end(), back)?;
                    self.code.push(Instruction::Commit { register });
                }
            },
            Node::Irregular(Irregular::Assert(assert)) => self.code.push(Instruction::Assert(*assert)),
            Node::Irregular(Irregular::Around { child, behind, negative }) => self.around(child, *behind, *negative)?,
            Node::Irregular(Irregular::Group(number, child)) => {
                let register = self.registers(3);
                self.code.push(Instruction::Open { register });
                self.compile(child, rest, back)?;
                self.code.push(Instruction::Close { register, back });
                self.groups.insert(*number, register);
            }
            Node::Irregular(Irregular::BackReference(number)) => {
                if back {
                    return Err(unsupported("it has a back-reference in a look-behind, which is not supported"));
                }
                let Some(&register) = self.groups.get(number) else {
                    return Err(unsupported(
                        "it has a back-reference before the end of its group, which is not supported",
                    ));
                };
                self.code.push(Instruction::BackReference { register });
            }
            Node::Ahead(_) => unreachable!("only in regular patterns"),
        }
        Ok(())
    }

    fn repeat(&mut self, repeat: &Repeat, rest: &Rest, back: bool, possessive: bool) -> Result<()> {
        let Repeat { child, min, max, greedy } = repeat;
        let (child, min, mut max, greedy) = (&**child, *min, max.unwrap_or(UNBOUNDED), *greedy);
        if max == 0 {
            return Ok(());
        }
        let mut min = min;
        if let Node::Class(class) = child {
            let set = self.known[class.ranges()];
            if greedy {
                let possessive = possessive || min == max || rest.is_apart(self.sets.bits(set));
                self.code.push(Instruction::Run { set, min, max, back, possessive });
                return Ok(());
            }
            if min > 0 {
                self.code.push(Instruction::Run { set, min, max: min, back, possessive: true });
            }
            if max == UNBOUNDED {
                self.code.push(Instruction::LazyRun { set, back });
                return Ok(());
            }
            (min, max) = (0, max - min);
            if max == 0 {
                return Ok(());
            }
        }
        if self.first(child, back).iter().all(|&word| word == 0) {
            // Only empty iterations.
            (min, max) = (min.min(1), 1);
        }
        let set = self.filter(child, back)?;
        let mut body_rest =
            Rest { first: rest.first.clone(), nullable: rest.nullable, cannot_fail: rest.cannot_fail && min <= 1 };
        if max > 1 {
            add(&mut body_rest.first, &self.first(child, back));
        }
        let branch = |greedy, other| match greedy {
            true => Instruction::Branch { set, back, other },
            false => Instruction::LazyBranch { set, back, other },
        };
        let start = self.at();
        match (min, max, nullable(child)) {
            (1, 1, _) => self.compile(child, rest, back)?,
            (0, 1, _) => {
                self.code.push(branch(greedy, FAIL));
                self.compile(child, &body_rest, back)?;
                let end = self.at();
                self.set_target(start as usize, end);
            }
            (0 | 1, UNBOUNDED, false) => {
                // If what follows cannot fail, then earlier iterations are never tried again: `Commit` forgets them.
                let committed = (greedy && rest.cannot_fail).then(|| self.registers(2));
                self.code.extend(committed.map(|register| Instruction::Enter { register }));
                let start = self.at();
                if min == 1 {
                    self.compile(child, &body_rest, back)?;
                }
                self.code.extend(committed.map(|register| Instruction::Commit { register }));
                let at = self.code.len();
                self.code.push(branch(greedy, FAIL));
                if min == 0 {
                    self.compile(child, &body_rest, back)?;
                }
                self.code.push(Instruction::Jump(start));
                let end = self.at();
                self.set_target(at, end);
            }
            _ => {
                let register = self.registers(2);
                self.code.push(Instruction::Repeat { register });
                let start = self.at();
                self.code.push(Instruction::Loop { register, min, max, greedy, set, back, exit: FAIL });
                self.code.push(Instruction::Iterate { register, min });
                self.compile(child, &body_rest, back)?;
                self.code.push(Instruction::Jump(start));
                let end = self.at();
                self.set_target(start as usize, end);
            }
        }
        Ok(())
    }

    fn around(&mut self, child: &Node, behind: bool, negative: bool) -> Result<()> {
        if let Node::Class(class) = child {
            let set = self.known[class.ranges()];
            self.code.push(Instruction::Peek { set, behind, negative });
            return Ok(());
        }
        let register = self.registers(2);
        let enter = self.code.len();
        if negative {
            self.code.push(Instruction::EnterNegative { register, other: FAIL });
        } else {
            self.code.push(Instruction::Enter { register });
        }
        self.compile(child, &Rest::end(), behind)?;
        if negative {
            self.code.push(Instruction::Reject { register });
            let end = self.at();
            self.set_target(enter, end);
        } else {
            self.code.push(Instruction::Return { register });
        }
        Ok(())
    }

    /// Returns the number of the next instruction.
    fn at(&self) -> u32 {
        self.code.len() as u32
    }

    fn set_target(&mut self, at: usize, target: u32) {
        match &mut self.code[at] {
            Instruction::Branch { other, .. }
            | Instruction::LazyBranch { other, .. }
            | Instruction::EnterNegative { other, .. }
            | Instruction::Loop { exit: other, .. } => *other = target,
            other => unreachable!("{other:?} has no target"),
        }
    }

    fn registers(&mut self, count: u32) -> u32 {
        self.registers += count;
        self.registers - count
    }

    /// Returns what can follow a node that is followed by `nodes` and `rest`.
    fn rest<'n>(&self, nodes: impl Iterator<Item = &'n Node>, rest: &Rest, back: bool) -> Rest {
        let mut all = Rest { first: Bits::new(), nullable: true, cannot_fail: true };
        for (number, node) in nodes.enumerate() {
            if number == MAX_FOLLOWING {
                return Rest { first: Bits::new(), nullable: true, cannot_fail: false };
            }
            add(&mut all.first, &self.first(node, back));
            all.cannot_fail &= cannot_fail(node);
            if !nullable(node) {
                all.nullable = false;
                return all;
            }
        }
        add(&mut all.first, &rest.first);
        all.nullable = rest.nullable;
        all.cannot_fail &= rest.cannot_fail;
        all
    }

    /// Returns the characters with which a match of a node can start, or end if `back`.
    fn first(&self, node: &Node, back: bool) -> Bits {
        let mut all = Bits::new();
        match node {
            Node::Class(class) => all.extend(self.sets.bits(self.known[class.ranges()])),
            Node::End | Node::Ahead(_) | Node::Irregular(Irregular::Assert(_) | Irregular::Around { .. }) => {}
            Node::Irregular(Irregular::BackReference(_)) => all.resize(self.sets.words, u64::MAX),
            Node::Atomic(child) | Node::Irregular(Irregular::Group(_, child)) => all = self.first(child, back),
            Node::Repeat(repeat) => all = self.first(&repeat.child, back),
            Node::Alt(nodes) => nodes.iter().for_each(|node| add(&mut all, &self.first(node, back))),
            Node::Concat(nodes) => {
                let mut nodes: Vec<&Node> = nodes.iter().collect();
                if back {
                    nodes.reverse();
                }
                let optional = nodes.iter().take_while(|node| nullable(node)).count();
                nodes.iter().take(optional + 1).for_each(|node| add(&mut all, &self.first(node, back)));
            }
        }
        all
    }

    /// Returns the set of characters with which a node must start, if there is one.
    fn filter(&mut self, node: &Node, back: bool) -> Result<Option<u32>> {
        if nullable(node) {
            return Ok(None);
        }
        let first = self.first(node, back);
        self.intern(first).map(Some)
    }

    fn intern(&mut self, mut bits: Bits) -> Result<u32> {
        bits.resize(self.sets.words, 0);
        if let Some(&set) = self.interned.get(&bits) {
            return Ok(set);
        }
        if (self.sets.bits.len() + bits.len()) * 64 > MAX_BITS {
            return Err(too_many_sets());
        }
        let set = (self.sets.bits.len() / self.sets.words) as u32;
        self.sets.bits.extend(&bits);
        self.interned.insert(bits, set);
        Ok(set)
    }
}

fn add(all: &mut Bits, more: &[u64]) {
    all.resize(all.len().max(more.len()), 0);
    all.iter_mut().zip(more).for_each(|(all, more)| *all |= more);
}

/// Returns whether a node can match nothing.
fn nullable(node: &Node) -> bool {
    match node {
        Node::Class(_) => false,
        Node::End | Node::Ahead(_) => true,
        Node::Irregular(Irregular::Group(_, child)) | Node::Atomic(child) => nullable(child),
        Node::Irregular(_) => true,
        Node::Repeat(repeat) => repeat.min == 0 || nullable(&repeat.child),
        Node::Alt(nodes) => nodes.iter().any(nullable),
        Node::Concat(nodes) => nodes.iter().all(nullable),
    }
}

/// Returns whether a node matches at any position, possibly the empty string.
fn cannot_fail(node: &Node) -> bool {
    match node {
        Node::Class(_) | Node::End | Node::Ahead(_) => false,
        Node::Irregular(Irregular::Group(_, child)) | Node::Atomic(child) => cannot_fail(child),
        Node::Irregular(_) => false,
        Node::Repeat(repeat) => repeat.min == 0 || cannot_fail(&repeat.child),
        Node::Alt(nodes) => nodes.iter().any(cannot_fail),
        Node::Concat(nodes) => nodes.iter().all(cannot_fail),
    }
}
