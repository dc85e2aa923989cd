//! Runs of chunks that are single tokens, from which phrases are trained.
//!
//! A run is a sequence of *eligible* chunks that touch each other in one text. Most runs occur only once, but almost all
//! of their pairs are too rare to be merged. So the pairs are counted first, in a *sketch*: an array of counters that
//! pairs share according to their hash. It may overestimate a count, but never underestimates it. Then runs are cut
//! between the chunks of each pair whose counter is too low, which no phrase can contain.

use super::Tally;
use crate::chunk_key::Key;
use crate::chunk_map::ChunkMap;
use crate::error::{Error, Result, try_push, try_with_capacity};
use crate::prefetch::prefetch;
use crate::split::{Chunks, LOOKUP_GROUP};

/// The binary logarithm of the number of counters in a sketch.
const SKETCH_BITS: u32 = if cfg!(test) { 8 } else { 22 };
/// In place of an id: the chunk is not eligible, or does not touch the one before it.
const NONE: u32 = u32::MAX;

/// What is counted.
pub enum What {
    Chunks,
    Pairs(EligibleChunks),
    Runs(EligibleChunks, CutRule),
}

/// The chunks that a phrase may consist of, and their ids. A chunk with a newline is never eligible, because texts are
/// cut at newlines.
pub struct EligibleChunks(ChunkMap);

impl EligibleChunks {
    pub fn new<'a>(chunks: impl ExactSizeIterator<Item = (&'a [u8], u32)>) -> Result<Self> {
        let mut ids = ChunkMap::with_capacity(chunks.len())?;
        for (chunk, id) in chunks.filter(|(chunk, _)| !chunk.contains(&b'\n')) {
            *ids.entry(chunk)? = u64::from(id) + 1;
        }
        Ok(Self(ids))
    }

    /// Calls `each` with every chunk's id, or `NONE`, and whether the chunk touches the one before it.
    #[inline(always)]
    fn for_each_group(
        &self,
        chunks: Chunks,
        end: &mut usize,
        mut each: impl FnMut(&[(u32, bool)]) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        for group in chunks.groups() {
            let mut keys = [Key::default(); LOOKUP_GROUP];
            for (key, computed) in keys.iter_mut().zip(group.keys()) {
                *key = computed;
                self.0.prefetch(computed);
            }
            let mut found = [(NONE, false); LOOKUP_GROUP];
            for (index, (key, chunk)) in keys.iter().zip(group.iter()).enumerate() {
                let id = self.0.get_with_key(chunk.as_bytes(), *key);
                let (start, chunk_end) = chunks.span(first + index);
                found[index] = (id.map_or(NONE, |id| id as u32 - 1), start == *end);
                *end = chunk_end;
            }
            each(&found[..group.len()])?;
            first += group.len();
        }
        Ok(())
    }
}

/// Where runs are cut.
pub struct CutRule {
    /// The counters of pairs, or none to cut nowhere.
    sketch: Vec<u32>,
    min_count: u32,
}

impl CutRule {
    /// `sketch` is what `ChunkTable::finish_pairs` returned, or empty.
    pub fn new(sketch: Vec<u32>, min_count: u32) -> Result<Self> {
        if !sketch.is_empty() && sketch.len() != 1 << SKETCH_BITS {
            return Err(Error::invalid(format!("a sketch must have {} counters", 1 << SKETCH_BITS)));
        }
        Ok(Self { sketch, min_count })
    }
}

/// Returns the counter of a pair. It must not depend on the process, so that the same text gives the same phrases.
#[inline(always)]
fn counter_of(first: u32, last: u32) -> usize {
    let pair = u64::from(first) << 32 | u64::from(last);
    let mixed = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (64 - SKETCH_BITS)) as usize
}

/// The run at the end of the text read so far.
#[derive(Default)]
pub struct OpenRun {
    ids: Vec<u32>,
    /// Where the last chunk ends.
    end: usize,
}

/// Adds the pairs of some chunks to the sketch.
pub fn count_pairs(eligible: &EligibleChunks, chunks: Chunks, tally: &mut Tally) -> Result<()> {
    if tally.sketch.is_empty() {
        tally.sketch = empty_sketch()?;
    }
    let Tally { sketch, run, .. } = tally;
    let mut last = run.ids.pop().unwrap_or(NONE);
    eligible.for_each_group(chunks, &mut run.end, |found| {
        let mut counters = [usize::MAX; LOOKUP_GROUP];
        for (counter, &(id, touches)) in counters.iter_mut().zip(found) {
            if last != NONE && id != NONE && touches {
                *counter = counter_of(last, id);
                prefetch(sketch, *counter);
            }
            last = id;
        }
        for &counter in &counters {
            if let Some(count) = sketch.get_mut(counter) {
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    })?;
    Ok(try_push(&mut run.ids, last)?)
}

/// Continues the open run with some chunks, and counts the runs that end.
pub fn count_runs(eligible: &EligibleChunks, rule: &CutRule, chunks: Chunks, tally: &mut Tally) -> Result<()> {
    let Tally { counts, run: OpenRun { ids, end }, .. } = tally;
    eligible.for_each_group(chunks, end, |found| {
        let mut counters = [0; LOOKUP_GROUP];
        if !rule.sketch.is_empty() {
            let mut last = ids.last().copied().unwrap_or(NONE);
            for (counter, &(id, _)) in counters.iter_mut().zip(found) {
                *counter = counter_of(last, id);
                prefetch(&rule.sketch, *counter);
                last = id;
            }
        }
        for (&(id, touches), &counter) in found.iter().zip(&counters) {
            let is_rare = || rule.sketch.get(counter).is_some_and(|&count| count < rule.min_count);
            if id == NONE || !touches || is_rare() {
                count_run(ids, counts)?;
            }
            if id != NONE {
                try_push(ids, id)?;
            }
        }
        Ok(())
    })
}

/// Ends the open run.
pub fn end_run(what: &What, tally: &mut Tally) -> Result<()> {
    tally.run.end = 0;
    match what {
        What::Runs(..) => count_run(&mut tally.run.ids, &mut tally.counts),
        _ => {
            tally.run.ids.clear();
            Ok(())
        }
    }
}

#[inline]
fn count_run(ids: &mut Vec<u32>, counts: &mut ChunkMap) -> Result<()> {
    if ids.len() > 1 {
        *counts.entry(as_bytes(ids))? += 1;
    }
    ids.clear();
    Ok(())
}

/// Returns the ids of a run as bytes, in which form they are counted.
fn as_bytes(ids: &[u32]) -> &[u8] {
    // SAFETY: any memory of integers is valid as bytes.
    unsafe { std::slice::from_raw_parts(ids.as_ptr().cast(), size_of_val(ids)) }
}

/// Adds up the sketches of threads.
pub fn sum_sketches(sketches: impl Iterator<Item = Vec<u32>>) -> Result<Vec<u32>> {
    let mut sketches = sketches.filter(|sketch| !sketch.is_empty());
    let mut sum = sketches.next().map_or_else(empty_sketch, Ok)?;
    for sketch in sketches {
        for (count, more) in sum.iter_mut().zip(sketch) {
            *count = count.saturating_add(more);
        }
    }
    Ok(sum)
}

fn empty_sketch() -> Result<Vec<u32>> {
    let mut sketch = try_with_capacity(1 << SKETCH_BITS)?;
    sketch.resize(1 << SKETCH_BITS, 0);
    Ok(sketch)
}
