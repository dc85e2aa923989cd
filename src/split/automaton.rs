//! Runs regular patterns as automata over classes of characters.
//!
//! The characters that a pattern does not distinguish form a class. There are few, so the automaton is small, and
//! each character takes one look-up of its class and one of the next state.
//!
//! An alternative that ends in a look-ahead, such as `\s+(?!\S)`, is matched without it. If the look-ahead then fails,
//! the match gives back its last character, or else the alternatives after this one are tried.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use regex_automata::dfa::{Automaton as _, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::{self, Class, ClassBytes, ClassBytesRange, ClassUnicode, Hir, Look};

use super::characters::{ascii_letters, ascii_lower};
use super::classes::{ClassTable, Text};
use super::syntax::{self, Alternative, Node, Obstacle};

/// An automaton that would take more memory is not built.
const MAX_BYTES: usize = 1 << 21;
/// More classes do not fit into a byte.
const MAX_CLASSES: usize = 250;
/// The number of distinct sets of characters that a pattern may use.
const MAX_SETS: usize = 128;

const MAX_ALTERNATIVES: usize = 1 << 10;
/// The number of automata, which is one more than that of look-aheads.
const MAX_STAGES: usize = 1 << 3;

/// The state in which no match is possible.
const DEAD: u32 = 0;

pub struct Automaton {
    pub(super) table: ClassTable,
    /// The first has all alternatives. Each other one has those after a look-ahead.
    pub(super) stages: Vec<Stage>,
    newline: Option<NewlineCut>,
}

/// An automaton for some of the alternatives. States are numbered in steps of `1 << shift`, so that
/// there is room for the classes; the first is dead.
pub(super) struct Stage {
    /// The next state, at the state plus the class of the next character.
    pub(super) next: Vec<u32>,
    shift: u32,
    pub(super) start: u32,
    /// From this state on, there is a match wherever the text continues.
    first_matching: u32,
    /// For each state: the alternative that matches wherever the text continues, and the one that matches if it ends.
    matches: Vec<(Option<u16>, Option<u16>)>,
    /// For each state: the letters that do not change it, and can be skipped.
    loops: Vec<Loop>,
    /// For each alternative: its look-ahead, if it has one.
    pub(super) aheads: Vec<Option<Ahead>>,
}

#[derive(Clone, Copy)]
enum Loop {
    None,
    /// a to z
    Lower,
    /// a to z, A to Z
    Letters,
}

/// A state of a stage. The first of each stage is dead.
pub struct State {
    /// The number of the next state, for each class of the next character.
    pub next: Vec<u32>,
    pub is_start: bool,
    pub matches: Matches,
}

/// Whether the characters that lead to a state are a match.
#[derive(Clone, Copy)]
pub enum Matches {
    Never,
    /// Unless more characters lead to another match.
    Always,
    /// It depends on what follows.
    Conditionally,
}

pub(super) struct Ahead {
    /// Whether the next character is allowed, by class.
    pub(super) allowed: [bool; MAX_CLASSES],
    /// Whether the end of the text is allowed.
    pub(super) end_allowed: bool,
    /// How many characters must remain if the last one is given back; `None` if it must not.
    pub(super) give_back: Option<usize>,
    /// The stage for the alternatives after this one, if there are any.
    pub(super) next: Option<usize>,
}

/// After a newline, the text can be cut if the characters before and after it are not in these sets.
struct NewlineCut {
    before: ClassUnicode,
    after: ClassUnicode,
    /// Whether a match always ends there: an alternative matches the newline alone, whatever follows.
    is_match: bool,
}

impl Automaton {
    pub fn new(alternatives: &[Alternative]) -> Result<Self, Obstacle> {
        let classes = Partition::new(alternatives)?;
        let mut starts = vec![0];
        starts.extend((1..).zip(alternatives).filter(|(_, alternative)| alternative.ahead.is_some()).map(|(n, _)| n));
        starts.retain(|&start| start < alternatives.len());
        if alternatives.len() > MAX_ALTERNATIVES {
            return Err("too many alternatives");
        }
        if starts.len() > MAX_STAGES {
            return Err("too many look-aheads");
        }
        let stage = |&start: &usize| {
            let ahead = |(number, alternative): (usize, &Alternative)| {
                let ahead = alternative.ahead.as_ref()?;
                let least = if let Node::Repeat(repeat) = &alternative.node { repeat.min as usize } else { 1 };
                let mut allowed = [false; MAX_CLASSES];
                for (class, allowed) in allowed[..classes.count].iter_mut().enumerate() {
                    *allowed = classes.is_in(class, &ahead.class) != ahead.negative;
                }
                Some(Ahead {
                    allowed,
                    end_allowed: ahead.negative,
                    give_back: (ahead.negative && !alternative.possessive).then_some(least),
                    next: starts.iter().position(|&start| start == number + 1),
                })
            };
            let aheads = (start..).zip(&alternatives[start..]).map(ahead).collect();
            Stage::new(&build(&alternatives[start..], &classes)?, classes.count, &classes.table, aheads)
        };
        let stages = starts.iter().map(stage).collect::<Result<Vec<_>, Obstacle>>()?;
        Ok(Self { table: classes.table, stages, newline: newline_cut(alternatives) })
    }

    /// Returns the end of the chunk that starts at `start`, if there is one, and the end of the text that was looked
    /// at.
    ///
    /// `Chunks` relies on the end being a character boundary after `start`. It is, because `Stage::find` moves by whole
    /// characters (`Text::class`) or over ASCII letters, and `Ahead::resolve` goes back to a boundary.
    #[inline]
    pub fn end(&self, text: &str, start: usize) -> (Option<usize>, usize) {
        let scanned = Text { bytes: text.as_bytes(), classes: &self.table };
        let mut seen = start;
        let mut stage = &self.stages[0];
        loop {
            let Some((alternative, end)) = stage.find(scanned, start, &mut seen) else { return (None, seen) };
            let Some(ahead) = &stage.aheads[alternative] else { return (Some(end), seen) };
            if let Some(end) = ahead.resolve(scanned, text, start, end) {
                return (Some(end), seen);
            }
            match ahead.next {
                Some(next) => stage = &self.stages[next],
                None => return (None, seen),
            }
        }
    }

    /// Returns the states of each stage, over classes with these characters. A class without one leads nowhere.
    pub fn states(&self, chars: &[Option<char>]) -> Vec<Vec<State>> {
        let next = |stage: &Stage, number: usize, c: &Option<char>| {
            c.map_or(DEAD, |c| stage.next[(number << stage.shift) + usize::from(self.table.of_char(c))]) >> stage.shift
        };
        let state = |stage: &Stage, number: usize| State {
            next: chars.iter().map(|c| next(stage, number, c)).collect(),
            is_start: number << stage.shift == stage.start as usize,
            matches: match stage.matches[number] {
                (None, None) => Matches::Never,
                (Some(any), Some(last)) if any == last && stage.aheads[any as usize].is_none() => Matches::Always,
                _ => Matches::Conditionally,
            },
        };
        self.stages.iter().map(|stage| (0..stage.matches.len()).map(|n| state(stage, n)).collect()).collect()
    }

    /// Returns whether the text can be cut after a newline between two characters. See `newline_cut`.
    pub fn can_cut(&self, before: char, after: char) -> bool {
        let is_in = syntax::contains;
        self.newline.as_ref().is_some_and(|cut| !is_in(&cut.before, before) && !is_in(&cut.after, after))
    }

    /// Returns whether a match always ends where `can_cut` allows a cut.
    pub fn matches_newlines(&self) -> bool {
        self.newline.as_ref().is_some_and(|cut| cut.is_match)
    }
}

impl Stage {
    /// Copies an automaton into a form that is faster to run: the library's reports a match only after the next
    /// character, so it would have to read one more.
    fn new(
        dfa: &dense::DFA<Vec<u32>>,
        classes: usize,
        table: &ClassTable,
        aheads: Vec<Option<Ahead>>,
    ) -> Result<Self, Obstacle> {
        let start = dfa.universal_start_state(Anchored::Yes).ok_or("an anchor or a word boundary")?;
        let following = |state: StateID| (0..classes as u8).map(move |class| dfa.next_state(state, class));
        let matched = |state: StateID| dfa.is_match_state(state).then(|| dfa.match_pattern(state, 0).as_u32() as u16);
        let matches = |state: StateID| (matched(dfa.next_state(state, 0)), matched(dfa.next_eoi_state(state)));

        let mut states = vec![start];
        let mut seen = HashSet::from([start]);
        let mut at = 0;
        while at < states.len() {
            states.extend(following(states[at]).filter(|state| seen.insert(*state)));
            at += 1;
        }
        // A state is alive if a match is still possible. Starting with the states that match, go backwards.
        let mut previous: HashMap<StateID, Vec<StateID>> = HashMap::new();
        for &state in &states {
            following(state).for_each(|next| previous.entry(next).or_default().push(state));
        }
        let mut stack: Vec<StateID> = states.iter().copied().filter(|&state| matches(state) != (None, None)).collect();
        let mut alive: HashSet<StateID> = stack.iter().copied().collect();
        while let Some(state) = stack.pop() {
            let found = previous.get(&state).into_iter().flatten().copied();
            stack.extend(found.filter(|state| alive.insert(*state)));
        }
        states.retain(|state| alive.contains(state));
        states.sort_by_key(|&state| matches(state).0.is_some());
        if !alive.contains(&start) {
            return Err("no match");
        }
        let stride = classes.next_power_of_two();
        let number = |index: usize| ((index + 1) * stride) as u32;
        let numbers: HashMap<StateID, u32> =
            states.iter().enumerate().map(|(index, &state)| (state, number(index))).collect();
        let mut next = vec![DEAD; number(states.len()) as usize];
        for state in &states {
            for (class, following) in following(*state).enumerate() {
                next[numbers[state] as usize + class] = numbers.get(&following).copied().unwrap_or(DEAD);
            }
        }
        let loops_on = |state: StateID, range: RangeInclusive<u8>| {
            range.into_iter().all(|letter| dfa.next_state(state, table.of_byte(letter)) == state)
        };
        let loop_of = |&state: &StateID| match (loops_on(state, b'a'..=b'z'), loops_on(state, b'A'..=b'Z')) {
            (true, true) => Loop::Letters,
            (true, false) => Loop::Lower,
            _ => Loop::None,
        };
        let stage = Self {
            loops: [Loop::None].into_iter().chain(states.iter().map(loop_of)).collect(),
            next,
            shift: stride.trailing_zeros(),
            start: numbers[&start],
            first_matching: number(states.iter().take_while(|state| matches(**state).0.is_none()).count()),
            matches: [(None, None)].into_iter().chain(states.iter().map(|&state| matches(state))).collect(),
            aheads,
        };
        stage.check_ends()?;
        Ok(stage)
    }

    /// Returns the alternative that matches in a state wherever the text continues, and the one if it ends.
    pub(super) fn matches(&self, state: u32) -> (Option<u16>, Option<u16>) {
        self.matches[state as usize >> self.shift]
    }

    /// Fails if a match can fail after any number of characters, as `a+b` can. Each of them would be tried as the start
    /// of a match, in quadratic time.
    fn check_ends(&self) -> Result<(), Obstacle> {
        // Depth first, through states in which nothing has matched yet. `true` in `open` while a state is on the path.
        let mut open: HashMap<u32, bool> = HashMap::new();
        let mut stack = vec![(self.start, false)];
        while let Some((state, done)) = stack.pop() {
            match open.insert(state, !done) {
                _ if done => continue,
                Some(true) => return Err("an alternative that can fail after any number of characters"),
                Some(false) => {
                    open.insert(state, false);
                    continue;
                }
                None => stack.push((state, true)),
            }
            let following = &self.next[state as usize..][..1 << self.shift];
            let unmatched = following.iter().filter(|next| (1..self.first_matching).contains(*next));
            stack.extend(unmatched.map(|&next| (next, false)));
        }
        Ok(())
    }

    /// Returns the alternative that matches at `start` and the end of its match. Sets `seen` to the end of what was
    /// read, if that is further.
    #[inline(always)]
    fn find(&self, text: Text, start: usize, seen: &mut usize) -> Option<(usize, usize)> {
        let (mut state, mut at) = (self.start, start);
        let (mut found, mut end) = (DEAD, start);
        let at_end = loop {
            let (class, len) = text.class(at);
            if len == 0 {
                break self.matches[state as usize >> self.shift].1;
            }
            state = self.next[state as usize + usize::from(class)];
            if state == DEAD {
                break None;
            }
            at += len;
            match self.loops[state as usize >> self.shift] {
                Loop::None => {}
                Loop::Lower => at = text.skip_ascii(ascii_lower, at),
                Loop::Letters => at = text.skip_ascii(ascii_letters, at),
            }
            if state >= self.first_matching {
                (found, end) = (state, at);
            }
        };
        *seen = at.max(*seen);
        if let Some(alternative) = at_end {
            return Some((alternative.into(), at));
        }
        Some((self.matches[found as usize >> self.shift].0?.into(), end))
    }
}

impl Ahead {
    /// Returns the end of the match once the look-ahead is satisfied, or `None` if it cannot be.
    #[inline(always)]
    fn resolve(&self, scanned: Text, text: &str, start: usize, end: usize) -> Option<usize> {
        let (class, len) = scanned.class(end);
        if if len == 0 { self.end_allowed } else { self.allowed[class as usize] } {
            return Some(end);
        }
        // The last character is not in the class of the look-ahead, so this is enough.
        let least = self.give_back?;
        let last = text.floor_char_boundary(end - 1);
        (last > start && (least == 1 || text[start..last].chars().count() >= least)).then_some(last)
    }
}

/// The sets of characters of a pattern, and the classes into which they divide all characters.
pub struct Partition {
    sets: Vec<ClassUnicode>,
    /// For each class: the sets that it belongs to, one bit each.
    pub signatures: Vec<u128>,
    count: usize,
    /// The first character of each range and its class.
    pub starts: Vec<(u32, u8)>,
    table: ClassTable,
}

impl Partition {
    fn new(alternatives: &[Alternative]) -> Result<Self, Obstacle> {
        let mut sets: Vec<ClassUnicode> = Vec::new();
        let mut add = |set: &ClassUnicode| {
            if !sets.contains(set) {
                sets.push(set.clone());
            }
        };
        for alternative in alternatives {
            syntax::for_each_class(&alternative.node, &mut add);
            alternative.ahead.iter().for_each(|ahead| add(&ahead.class));
        }
        Self::of(sets)
    }

    /// Returns the classes into which some sets divide all characters.
    pub fn of(sets: Vec<ClassUnicode>) -> Result<Self, Obstacle> {
        if sets.len() > MAX_SETS {
            return Err("too many different sets of characters");
        }
        // Where any set starts or ends.
        let mut bounds: Vec<u32> = vec![0, 0x11_0000];
        for range in sets.iter().flat_map(ClassUnicode::iter) {
            bounds.extend([range.start() as u32, range.end() as u32 + 1]);
        }
        bounds.sort_unstable();
        bounds.dedup();
        let (mut signatures, mut numbers, mut ranges) = (Vec::new(), HashMap::new(), Vec::new());
        for bound in bounds.windows(2) {
            let is_in = |set: &ClassUnicode| char::from_u32(bound[0]).is_some_and(|c| syntax::contains(set, c));
            let signature = (0..).zip(&sets).map(|(bit, set)| u128::from(is_in(set)) << bit).sum();
            let number = *numbers.entry(signature).or_insert_with(|| {
                signatures.push(signature);
                signatures.len() - 1
            });
            ranges.push((bound[0], bound[1] - 1, number as u8));
        }
        let count = signatures.len();
        if count > MAX_CLASSES {
            return Err("too many different sets of characters");
        }
        let starts = ranges.iter().map(|&(first, _, class)| (first, class)).collect();
        let table = ClassTable::new(ranges).ok_or("sets of characters that are too fragmented")?;
        Ok(Self { sets, signatures, count, starts, table })
    }

    fn is_in(&self, class: usize, set: &ClassUnicode) -> bool {
        let number = self.sets.iter().position(|other| other == set).expect("every set of the pattern is known");
        self.signatures[class] >> number & 1 != 0
    }

    /// Returns the classes in a set.
    fn classes(&self, set: &ClassUnicode) -> Class {
        let classes = (0..self.count).filter(|&class| self.is_in(class, set)).map(|class| class as u8);
        Class::Bytes(ClassBytes::new(classes.map(|class| ClassBytesRange::new(class, class))))
    }
}

/// Returns a regular node as an expression of the library.
pub fn hir(node: &Node, class: &impl Fn(&ClassUnicode) -> Class) -> Hir {
    match node {
        Node::Class(set) => Hir::class(class(set)),
        Node::Concat(nodes) => Hir::concat(nodes.iter().map(|node| hir(node, class)).collect()),
        Node::Alt(nodes) => Hir::alternation(nodes.iter().map(|node| hir(node, class)).collect()),
        Node::Repeat(repeat) => Hir::repetition(hir::Repetition {
            min: repeat.min,
            max: repeat.max,
            greedy: repeat.greedy,
            sub: Box::new(hir(&repeat.child, class)),
        }),
        Node::End => Hir::look(Look::End),
        Node::Atomic(_) | Node::Ahead(_) | Node::Irregular(_) => unreachable!("the alternatives are regular"),
    }
}

fn build(alternatives: &[Alternative], classes: &Partition) -> Result<dense::DFA<Vec<u32>>, Obstacle> {
    const TOO_LARGE: Obstacle = "repetitions that would need too large an automaton";
    let expressions: Vec<Hir> =
        alternatives.iter().map(|alternative| hir(&alternative.node, &|set| classes.classes(set))).collect();
    let config = thompson::Config::new()
        .utf8(false)
        .nfa_size_limit(Some(MAX_BYTES))
        .which_captures(thompson::WhichCaptures::None);
    let nfa = thompson::Compiler::new().configure(config).build_many_from_hir(&expressions).map_err(|_| TOO_LARGE)?;
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .match_kind(MatchKind::LeftmostFirst)
        .dfa_size_limit(Some(MAX_BYTES))
        .determinize_size_limit(Some(MAX_BYTES));
    dense::Builder::new().configure(config).build_from_nfa(&nfa).map_err(|_| TOO_LARGE)
}

/// Finds out where the text can be cut at the end of a line, so that both parts together have the chunks of the whole.
///
/// Let the newline be between x and y, and let y be a character that follows a newline in no match. Then no chunk
/// crosses the cut. Only an alternative that looks at what follows it, with a look-ahead or `$`, can match differently
/// at the end of the first part. If x occurs in none of them, then such a match would be the newline alone, and in the
/// whole text another alternative must match the newline too. The second part has the same chunks because no
/// alternative looks behind.
fn newline_cut(alternatives: &[Alternative]) -> Option<NewlineCut> {
    let (mut before, mut after) = (ClassUnicode::empty(), ClassUnicode::empty());
    let mut is_chunk = false;
    for Alternative { node, ahead, .. } in alternatives {
        after.union(&syntax::followers(node, '\n', &ClassUnicode::empty()));
        if ahead.is_some() || syntax::has_end(node) {
            syntax::for_each_class(node, &mut |class| before.union(class));
        } else {
            is_chunk |= matches_alone(node, '\n');
        }
    }
    if !syntax::contains(&before, '\n') {
        return Some(NewlineCut { before: ClassUnicode::empty(), after, is_match: is_chunk });
    }
    is_chunk.then_some(NewlineCut { before, after, is_match: true })
}

/// Returns whether a node without `$` matches a text of one character.
fn matches_alone(node: &Node, c: char) -> bool {
    match node {
        Node::Class(class) => syntax::contains(class, c),
        Node::Alt(nodes) => nodes.iter().any(|node| matches_alone(node, c)),
        Node::Repeat(repeat) => repeat.min <= 1 && repeat.max != Some(0) && matches_alone(&repeat.child, c),
        Node::Concat(nodes) => {
            let others = |skipped: usize| (0..nodes.len()).filter(move |&other| other != skipped);
            (0..nodes.len())
                .any(|n| matches_alone(&nodes[n], c) && others(n).all(|other| syntax::nullable(&nodes[other])))
        }
        Node::End | Node::Atomic(_) | Node::Ahead(_) | Node::Irregular(_) => false,
    }
}
