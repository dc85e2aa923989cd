//! The automaton of a pattern as plain tables, from which Python derives where phrases can be found.

use super::automaton::{Automaton, Partition, State};
use super::parse;
use super::syntax::{self, Obstacle};

pub struct Tables {
    /// The sets of characters that the pattern is written with, as regular expressions for one character.
    pub sets: Vec<String>,
    /// For each class of characters that these sets distinguish: the sets that contain it, one bit each.
    pub members: Vec<u128>,
    /// The first character of each range of characters, in ascending order, and its class.
    pub ranges: Vec<(u32, u8)>,
    pub stages: Vec<Vec<State>>,
}

impl Tables {
    /// Fails if the pattern is not regular.
    pub fn new(pattern: &str) -> Result<Self, Obstacle> {
        let parsed = parse::parse(pattern).map_err(|_| "a syntax error")?;
        let automaton = Automaton::new(&syntax::alternatives(&parsed)?)?;
        let (sets, classes) = parse::sets(pattern).map_err(|_| "a syntax error")?.into_iter().unzip();
        // The automaton distinguishes only sets that are combinations of these, so a class is in one of its classes.
        let Partition { signatures, starts, .. } = Partition::of(classes)?;
        let example = |class: usize| {
            let of_class = starts.iter().filter(|range| usize::from(range.1) == class);
            of_class.map(|range| range.0).find_map(char::from_u32) // not of surrogates
        };
        let examples: Vec<Option<char>> = (0..signatures.len()).map(example).collect();
        Ok(Self { sets, members: signatures, ranges: starts, stages: automaton.states(&examples) })
    }
}
