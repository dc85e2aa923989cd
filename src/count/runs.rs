//! Runs of chunks that are single tokens, from which phrases are trained.
//!
//! A run is a sequence of *eligible* chunks that touch each other in one text. Most runs occur only once, but almost
//! all of their pairs are too rare to be merged. So the pairs are counted first, in a *sketch*: an array of counters
//! that pairs share according to their hash. It may overestimate a count, but never underestimates it. Then runs are
//! cut between the chunks of each pair whose counter is too low, which no phrase can contain.

use std::ops::Range;
use std::sync::Arc;

use super::Tally;
use crate::error::{Result, try_push, try_with_capacity};
use crate::split::{Chunks, LOOKUP_GROUP};
use crate::table::chunk_key::Key;
use crate::table::chunk_map::ChunkMap;
use crate::table::huge_pages::use_huge_pages;
use crate::table::prefetch::prefetch;

/// The binary logarithm of the number of counters in a sketch.
const SKETCH_BITS: u32 = if cfg!(test) { 8 } else { 22 };
/// In place of an id: the chunk is not eligible, or not in the sketch.
const NONE: u32 = u32::MAX;

/// What a table counts.
pub enum Counting {
    Chunks,
    Pairs(Arc<EligibleChunks>),
    Runs(EligibleChunks, CutRule),
}

/// The chunks that a phrase may consist of: their ids, and their ids in the sketch. A chunk with a newline is never
/// eligible, because texts are cut at newlines.
pub struct EligibleChunks(ChunkMap);

/// A chunk of a text.
#[derive(Clone, Copy)]
struct Found {
    id: u32,
    sketch_id: u32,
    /// Whether it starts where the chunk before it ends.
    touches: bool,
}

const NOT_FOUND: Found = Found { id: NONE, sketch_id: NONE, touches: false };

impl EligibleChunks {
    /// Without a sketch, the ids are those in the sketch to be made.
    pub fn new<'a>(chunks: impl ExactSizeIterator<Item = (&'a [u8], u32)>, sketch: Option<&Sketch>) -> Result<Self> {
        let mut ids = ChunkMap::with_capacity(chunks.len())?;
        for (chunk, id) in chunks.filter(|(chunk, _)| !chunk.contains(&b'\n')) {
            let sketch_id = sketch.map_or(id, |sketch| sketch.chunks.0.get(chunk).map_or(NONE, |ids| ids as u32));
            *ids.entry(chunk)? = u64::from(sketch_id) << 32 | u64::from(id);
        }
        Ok(Self(ids))
    }

    /// Calls `each` with groups of the chunks.
    #[inline(always)]
    fn for_each_group(
        &self,
        chunks: Chunks,
        end: &mut usize,
        mut each: impl FnMut(&[Found]) -> Result<()>,
    ) -> Result<()> {
        let mut first = 0;
        for group in chunks.groups() {
            let mut keys = [Key::default(); LOOKUP_GROUP];
            for (key, computed) in keys.iter_mut().zip(group.keys()) {
                *key = computed;
                self.0.prefetch(computed);
            }
            let mut found = [NOT_FOUND; LOOKUP_GROUP];
            for (index, (key, chunk)) in keys.iter().zip(group.iter()).enumerate() {
                let ids = self.0.get_with_key(chunk.as_bytes(), *key).unwrap_or(u64::MAX);
                let (start, chunk_end) = chunks.span(first + index);
                found[index] = Found { id: ids as u32, sketch_id: (ids >> 32) as u32, touches: start == *end };
                *end = chunk_end;
            }
            each(&found[..group.len()])?;
            first += group.len();
        }
        Ok(())
    }
}

/// The counters of pairs.
pub struct Sketch {
    /// The chunks whose pairs were counted.
    pub(super) chunks: Arc<EligibleChunks>,
    pub(super) counters: Vec<u32>,
    /// The number of chunks in the texts, eligible or not.
    pub total: usize,
}

impl Sketch {
    pub fn counters(&self) -> &[u32] {
        &self.counters
    }
}

/// Where runs are cut: between the chunks of pairs whose counter is below `min_count`. A pair that is not in the sketch
/// is kept.
pub struct CutRule {
    pub sketch: Option<Arc<Sketch>>,
    pub min_count: u32,
}

/// Returns the counter of a pair of ids, or `usize::MAX` if either is `NONE`. It must not depend on the process, so
/// that the same text gives the same phrases.
#[inline(always)]
fn counter_of(first: u32, last: u32) -> usize {
    let pair = u64::from(first) << 32 | u64::from(last);
    let mixed = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    if first == NONE || last == NONE { usize::MAX } else { (mixed >> (64 - SKETCH_BITS)) as usize }
}

/// The run at the end of the text read so far, and runs that have ended but are not counted yet: like chunks, they are
/// counted in groups.
pub struct OpenRun {
    /// The ids of the runs in `ended`, then those of the open run. As bytes, they are the key of a run.
    ids: Vec<[u8; 4]>,
    ended: Vec<Range<usize>>,
    /// Where the open run starts in `ids`.
    start: usize,
    /// The last chunk's id in the sketch, or `NONE`.
    last: u32,
    /// Where the last chunk ends in the text.
    end: usize,
}

impl Default for OpenRun {
    fn default() -> Self {
        Self { ids: Vec::new(), ended: Vec::new(), start: 0, last: NONE, end: 0 }
    }
}

impl OpenRun {
    /// Ends the open run.
    #[inline(always)]
    fn end(&mut self, counts: &mut ChunkMap) -> Result<()> {
        if self.ids.len() < self.start + 2 {
            self.ids.truncate(self.start);
            return Ok(());
        }
        try_push(&mut self.ended, self.start..self.ids.len())?;
        self.start = self.ids.len();
        if self.ended.len() == LOOKUP_GROUP { self.count(counts) } else { Ok(()) }
    }

    /// Counts the runs that have ended.
    fn count(&mut self, counts: &mut ChunkMap) -> Result<()> {
        let mut keys = [Key::default(); LOOKUP_GROUP];
        for (key, run) in keys.iter_mut().zip(&self.ended) {
            *key = Key::of(self.ids[run.clone()].as_flattened());
            counts.prefetch(*key);
        }
        for (key, run) in keys.iter().zip(self.ended.drain(..)) {
            *counts.entry_with_key(self.ids[run].as_flattened(), *key)? += 1;
        }
        self.ids.drain(..self.start);
        self.start = 0;
        Ok(())
    }
}

/// Adds the pairs of some chunks to the sketch.
pub fn count_pairs(eligible: &EligibleChunks, chunks: Chunks, tally: &mut Tally) -> Result<()> {
    if tally.sketch.is_empty() {
        tally.sketch = empty_sketch()?;
    }
    let Tally { sketch, run: OpenRun { last, end, .. }, .. } = tally;
    eligible.for_each_group(chunks, end, |found| {
        let mut counters = [usize::MAX; LOOKUP_GROUP];
        for (counter, found) in counters.iter_mut().zip(found) {
            if found.touches {
                *counter = counter_of(*last, found.sketch_id);
                prefetch(sketch, *counter);
            }
            *last = found.sketch_id;
        }
        for &counter in &counters {
            if let Some(count) = sketch.get_mut(counter) {
                *count = count.saturating_add(1);
            }
        }
        Ok(())
    })
}

/// Continues the open run with some chunks, and counts runs that have ended.
pub fn count_runs(eligible: &EligibleChunks, rule: &CutRule, chunks: Chunks, tally: &mut Tally) -> Result<()> {
    let Tally { counts, run, .. } = tally;
    let sketch = rule.sketch.as_ref().map_or(&[][..], |sketch| sketch.counters());
    let mut end = run.end;
    eligible.for_each_group(chunks, &mut end, |found| {
        let mut counters = [usize::MAX; LOOKUP_GROUP];
        if !sketch.is_empty() {
            for (counter, found) in counters.iter_mut().zip(found) {
                *counter = counter_of(run.last, found.sketch_id);
                prefetch(sketch, *counter);
                run.last = found.sketch_id;
            }
        }
        for (found, &counter) in found.iter().zip(&counters) {
            let is_rare = || sketch.get(counter).is_some_and(|&count| count < rule.min_count);
            if found.id == NONE || !found.touches || is_rare() {
                run.end(counts)?;
            }
            if found.id != NONE {
                try_push(&mut run.ids, found.id.to_ne_bytes())?;
            }
        }
        Ok(())
    })?;
    run.end = end;
    Ok(())
}

/// Ends the open run at the end of a text.
pub fn end_text(tally: &mut Tally) -> Result<()> {
    let Tally { counts, run, .. } = tally;
    run.end(counts)?;
    run.count(counts)?;
    (run.last, run.end) = (NONE, 0);
    Ok(())
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
    use_huge_pages(&mut sketch);
    sketch.resize(1 << SKETCH_BITS, 0);
    Ok(sketch)
}
