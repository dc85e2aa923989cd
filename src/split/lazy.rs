//! Runs regular patterns that `automaton` cannot run in linear time, such as `a+b`: from each position, it might read
//! the text to its end. Here, one automaton finds the end of the next match, and another finds its start, backwards.
//! They are built while they run, so they may be large.

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::pool::Pool;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Class, Hir};

use super::automaton::hir;
use super::chunks::Span;
use super::meter::Meter;
use super::syntax::Alternative;
use crate::error::Result;

/// Larger expressions are not accepted: a single step could take long.
const MAX_NFA_BYTES: usize = 1 << 21;
/// The memory for the states of each automaton. If it is full, they are forgotten.
const MAX_CACHE_BYTES: usize = 1 << 21;
/// The number of bytes between two calls of `Meter::count`.
const BYTES_PER_COUNT: usize = 1 << 8;

pub struct Lazy {
    forward: DFA,
    reverse: DFA,
    /// A search takes the states that an earlier one built.
    caches: Pool<Caches, Box<dyn Fn() -> Caches + Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>>,
}

struct Caches {
    forward: Cache,
    reverse: Cache,
}

impl Lazy {
    /// Returns `None` if the alternatives look ahead, can be empty at the end of a text, or are too large.
    pub fn new(alternatives: &[Alternative]) -> Option<Lazy> {
        let expression = |alternative: &Alternative| {
            alternative.ahead.is_none().then(|| hir(&alternative.node, &|set| Class::Unicode(set.clone())))
        };
        let all = Hir::alternation(alternatives.iter().map(expression).collect::<Option<_>>()?);
        if all.properties().minimum_len() == Some(0) {
            return None;
        }
        let build = |reverse, kind| {
            let config = thompson::Config::new()
                .reverse(reverse)
                .nfa_size_limit(Some(MAX_NFA_BYTES))
                .which_captures(thompson::WhichCaptures::None);
            let nfa = thompson::Compiler::new().configure(config).build_from_hir(&all).ok()?;
            let config = Config::new().match_kind(kind).cache_capacity(MAX_CACHE_BYTES).skip_cache_capacity_check(true);
            DFA::builder().configure(config).build_from_nfa(nfa).ok()
        };
        let (forward, reverse) = (build(false, MatchKind::LeftmostFirst)?, build(true, MatchKind::All)?);
        let caches = {
            let (forward, reverse) = (forward.clone(), reverse.clone());
            move || Caches { forward: forward.create_cache(), reverse: reverse.create_cache() }
        };
        Some(Lazy { forward, reverse, caches: Pool::new(Box::new(caches)) })
    }

    /// Calls `chunk` with the span of each chunk. Returns the number of bytes that are in no chunk.
    pub fn split(&self, text: &str, meter: &mut Meter, mut chunk: impl FnMut(Span) -> Result<()>) -> Result<usize> {
        let mut caches = self.caches.get();
        let (mut start, mut kept) = (0, 0);
        while let Some((from, to)) = self.find(&mut caches, text, start, meter)? {
            chunk((from, to))?;
            kept += to - from;
            start = to;
        }
        Ok(text.len() - kept)
    }

    /// Returns the first match at or after `from`.
    fn find(&self, caches: &mut Caches, text: &str, from: usize, meter: &mut Meter) -> Result<Option<(usize, usize)>> {
        const NEVER_FAILS: &str = "the cache is cleared if it is full, and there are no word boundaries";
        meter.start(from);
        let bytes = text.as_bytes();
        let (dfa, mut steps) = (&self.forward, Steps::new(&mut caches.forward));
        let input = Input::new(text).range(from..);
        let mut state = dfa.start_state_forward(steps.cache, &input).expect(NEVER_FAILS);
        let mut end = None;
        for (at, &byte) in bytes.iter().enumerate().skip(from) {
            state = dfa.next_state(steps.cache, state, byte).expect(NEVER_FAILS);
            steps.count(meter)?;
            // The automaton knows of a match only after the next byte.
            if state.is_match() {
                end = Some(at);
            } else if state.is_dead() {
                break;
            }
        }
        if !state.is_dead() && dfa.next_eoi_state(steps.cache, state).expect(NEVER_FAILS).is_match() {
            end = Some(bytes.len());
        }
        let Some(end) = end else { return Ok(None) };

        let (dfa, mut steps) = (&self.reverse, Steps::new(&mut caches.reverse));
        let input = Input::new(text).range(from..end).anchored(Anchored::Yes);
        let mut state: LazyStateID = dfa.start_state_reverse(steps.cache, &input).expect(NEVER_FAILS);
        let mut start = end;
        for at in (from..end).rev() {
            state = dfa.next_state(steps.cache, state, bytes[at]).expect(NEVER_FAILS);
            steps.count(meter)?;
            if state.is_match() {
                start = at + 1;
            } else if state.is_dead() {
                break;
            }
        }
        if !state.is_dead() {
            let last = match from.checked_sub(1) {
                Some(before) => dfa.next_state(steps.cache, state, bytes[before]),
                None => dfa.next_eoi_state(steps.cache, state),
            };
            if last.expect(NEVER_FAILS).is_match() {
                start = from;
            }
        }
        debug_assert!(start < end, "the reverse automaton finds what the other one found");
        Ok(Some((start, end)))
    }
}

/// Counts the steps of an automaton. Building a state takes as many steps as it has bytes.
struct Steps<'c> {
    cache: &'c mut Cache,
    bytes: usize,
    built: usize,
    cleared: usize,
}

impl<'c> Steps<'c> {
    fn new(cache: &'c mut Cache) -> Self {
        let (built, cleared) = (cache.memory_usage(), cache.clear_count());
        Self { cache, bytes: 0, built, cleared }
    }

    #[inline(always)]
    fn count(&mut self, meter: &mut Meter) -> Result<()> {
        self.bytes += 1;
        if self.bytes.is_multiple_of(BYTES_PER_COUNT) { self.count_many(meter) } else { Ok(()) }
    }

    #[cold]
    fn count_many(&mut self, meter: &mut Meter) -> Result<()> {
        let (built, cleared) = (self.cache.memory_usage(), self.cache.clear_count());
        meter.count(BYTES_PER_COUNT + built.saturating_sub(self.built) + (cleared - self.cleared) * MAX_CACHE_BYTES)?;
        (self.built, self.cleared) = (built, cleared);
        Ok(())
    }
}
