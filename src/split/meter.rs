//! Bounds the time to split a text with a pattern, which may come from an untrusted model file.

use std::time::Instant;

use super::failed;
use crate::error::{Cancel, Error, Result};

/// The steps allowed for one text, which take about ten seconds: a fixed number plus a number per byte. A pattern that
/// needs more would practically never finish.
const STEP_LIMIT: usize = if cfg!(test) { 1 << 24 } else { 1 << 31 };
const STEPS_PER_BYTE: usize = 1 << 10;
/// The number of steps between two checks of `Cancel`.
const STEPS_PER_CHECK: usize = 1 << 16;

pub fn step_limit(text: &str) -> usize {
    text.len().saturating_mul(STEPS_PER_BYTE).saturating_add(STEP_LIMIT)
}

/// Counts the steps of an engine.
pub struct Meter<'s> {
    pattern: &'s str,
    text: &'s str,
    cancel: &'s Cancel<'s>,
    /// Where the current search started.
    from: usize,
    steps: usize,
    next_check: usize,
}

impl<'s> Meter<'s> {
    pub fn new(pattern: &'s str, text: &'s str, cancel: &'s Cancel<'s>) -> Self {
        Self { pattern, text, cancel, from: 0, steps: 0, next_check: STEPS_PER_CHECK }
    }

    /// Starts a search, which errors name.
    pub fn start(&mut self, from: usize) {
        self.from = from;
    }

    pub fn steps(&self) -> usize {
        self.steps
    }

    #[inline(always)]
    pub fn count(&mut self, steps: usize) -> Result<()> {
        self.steps += steps;
        if self.steps < self.next_check { Ok(()) } else { self.check() }
    }

    #[cold]
    fn check(&mut self) -> Result<()> {
        self.next_check = self.steps + STEPS_PER_CHECK;
        self.cancel.poll_and_check(Instant::now())?;
        if self.steps > step_limit(self.text) {
            return Err(self.failed("it takes too long"));
        }
        Ok(())
    }

    pub fn failed(&self, reason: &str) -> Error {
        failed(self.pattern, self.text, self.from, reason)
    }
}
