//! Finds out whether two patterns give the same chunks of every text, however they are spelled.
//!
//! The answer "no" may be wrong for patterns that are written very differently; "yes" is proven.

use std::collections::{BTreeSet, HashSet};

use super::Splitter;
use super::automaton::{Ahead, Automaton};
use super::family::Family;
use super::named::NAMED;
use super::parse;
use super::syntax::{self, Alternative, Node};
use crate::error::{NEVER, Result};

/// What a pattern means.
struct Meaning {
    node: Node,
    /// If it is regular.
    alternatives: Option<Vec<Alternative>>,
    family: Option<Family>,
}

impl Meaning {
    fn of(pattern: &str) -> Result<Self> {
        let parsed = parse::parse(pattern)?;
        let alternatives = syntax::alternatives(&parsed).ok();
        let family = Family::published(pattern).or_else(|| Family::of(alternatives.as_deref()?));
        Ok(Self { node: parsed.node, alternatives, family })
    }

    fn is(&self, other: &Self) -> bool {
        if let (Some(family), Some(other)) = (self.family, other.family) {
            return family == other;
        }
        if self.node == other.node {
            return true;
        }
        let (Some(alternatives), Some(others)) = (&self.alternatives, &other.alternatives) else { return false };
        if alternatives == others {
            return true;
        }
        match (Automaton::new(alternatives), Automaton::new(others)) {
            (Ok(automaton), Ok(other)) => are_same(&automaton, &other),
            _ => false,
        }
    }
}

/// Returns whether two patterns give the same chunks of every text.
pub fn same_chunks(pattern: &str, other: &str) -> Result<bool> {
    if pattern == other {
        return Ok(true);
    }
    let (meaning, others) = (Meaning::of(pattern)?, Meaning::of(other)?);
    Ok(sample_chunks(pattern)? == sample_chunks(other)? && meaning.is(&others))
}

/// Returns the name of the first named pattern that gives the same chunks of every text.
pub fn name_of(pattern: &str) -> Result<Option<&'static str>> {
    if let Some((name, _)) = NAMED.iter().find(|(_, named)| *named == pattern) {
        return Ok(Some(name));
    }
    let (meaning, chunks) = (Meaning::of(pattern)?, sample_chunks(pattern)?);
    for (name, named) in NAMED {
        if chunks == sample_chunks(named)? && meaning.is(&Meaning::of(named)?) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Splits a text that most patterns split differently. This is faster than comparing them.
fn sample_chunks(pattern: &str) -> Result<Vec<&'static str>> {
    const SAMPLE: &str = "We'll  Pay'S $1234.5 by\n\n  theCafé's東京タワー〇:\r\n/ .a \u{301}x²  12345 (x)  7a!\t\n \u{11DE0}\t\x01b//\n  ";
    let mut chunks = Vec::new();
    Splitter::new(pattern)?.split(SAMPLE, &NEVER, |chunk| {
        chunks.push(chunk);
        Ok(())
    })?;
    Ok(chunks)
}

/// Returns whether two automata go through states with the same matches, in any text.
fn are_same(one: &Automaton, other: &Automaton) -> bool {
    let classes: BTreeSet<(u8, u8)> =
        ('\0'..=char::MAX).map(|c| (one.table.of_char(c), other.table.of_char(c))).collect();
    let same_ahead = |ahead: &Ahead, other: &Ahead| {
        (ahead.end_allowed, ahead.give_back) == (other.end_allowed, other.give_back)
            && classes.iter().all(|&(a, b)| ahead.allowed[usize::from(a)] == other.allowed[usize::from(b)])
    };
    let start = |(stage, other_stage): (usize, usize)| {
        (stage, other_stage, one.stages[stage].start, other.stages[other_stage].start)
    };
    // Stages and states that must be the same.
    let mut open = vec![start((0, 0))];
    let mut seen: HashSet<_> = open.iter().copied().collect();
    while let Some((stage, other_stage, state, other_state)) = open.pop() {
        let (from, to) = (&one.stages[stage], &other.stages[other_stage]);
        let (found, others) = (from.matches(state), to.matches(other_state));
        let mut following = Vec::new();
        for pair in [(found.0, others.0), (found.1, others.1)] {
            let aheads = match pair {
                (None, None) => continue,
                (Some(a), Some(b)) => (&from.aheads[usize::from(a)], &to.aheads[usize::from(b)]),
                _ => return false,
            };
            match aheads {
                (None, None) => {}
                (Some(ahead), Some(other)) if same_ahead(ahead, other) => match (ahead.next, other.next) {
                    (None, None) => {}
                    (Some(next), Some(other_next)) => following.push(start((next, other_next))),
                    _ => return false,
                },
                _ => return false,
            }
        }
        following.extend(classes.iter().map(|&(a, b)| {
            let next = (from.next[state as usize + usize::from(a)], to.next[other_state as usize + usize::from(b)]);
            (stage, other_stage, next.0, next.1)
        }));
        open.extend(following.into_iter().filter(|pair| seen.insert(*pair)));
    }
    true
}
