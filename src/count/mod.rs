//! Counts the chunks of texts in parallel, or runs of them (`runs`).
//!
//! Each thread fills its own table, and the tables are summed at the end. The counts therefore depend neither on the
//! number of threads nor on the order of the texts. Large texts are cut where no chunk can cross the cut.
//!
//! The threads live as long as the `ChunkTable` and take texts from a short queue, so the caller can continue reading.
//! When the queue is full, the caller counts as well, so no more than the requested number of threads ever work.
//! The threads do not exist in a forked process, where a table that has started some returns `Error::Forked`.
//!
//! No text is freed by these threads, nor by `add` or `finish`: the owner of its bytes may be an object that only the
//! caller can free. Texts that have been counted are kept until `drop_spent` is called or the table is dropped.

mod order;
mod runs;
#[cfg(test)]
mod tests;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use aho_corasick::AhoCorasick;
use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::error::{Cancel, Error, Result, quoted, try_push};
use crate::special_matcher::special_matcher;
use crate::split::{Chunks, LOOKUP_GROUP, Spans, Splitter};
use crate::table::chunk_key::Key;
use crate::table::chunk_map::ChunkMap;
pub use order::Counted;
use runs::OpenRun;
pub use runs::{Counting, CutRule, EligibleChunks, Sketch};
use workers::{Piece, Workers};
pub use workers::{SharedText, utf8};

/// The amount of text that a thread takes at once: enough to make the queue cheap, little enough to distribute evenly.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };
/// Below this many bytes, no worker threads are started.
const MIN_PARALLEL_BYTES: usize = if cfg!(test) { 1 << 8 } else { 1 << 18 };
/// With a scanner, counting is at least this many times as fast as the work that `Splitter::cost` estimates.
const COUNTING_SPEEDUP: usize = 16;

pub struct ChunkTable {
    counter: Arc<Counter>,
    threads: usize,
    /// What the caller's thread has counted.
    own: Tally,
    /// The bytes of text added so far.
    size: usize,
    /// Started when there is enough text.
    workers: Option<Workers>,
    /// The texts that have been counted. Declared after `workers`, which may still return some when it is dropped.
    spent: (Sender<Vec<SharedText>>, Receiver<Vec<SharedText>>),
}

/// What a thread has counted.
#[derive(Default)]
pub struct Tally {
    /// Chunks or runs, and how often they occur.
    counts: ChunkMap,
    /// The counters of pairs, if they are counted.
    sketch: Vec<u32>,
    run: OpenRun,
}

/// The state that the threads share.
struct Counter {
    counting: Counting,
    splitter: Splitter,
    special: Option<AhoCorasick>,
    newline_in_special: bool,
    max_chunk_bytes: usize,
    /// Bytes that matched neither the pattern nor a special token: always 0 for the named patterns.
    dropped: AtomicUsize,
    /// Chunks that were too long.
    skipped: AtomicUsize,
    /// Chunks in all texts, including repetitions.
    total: AtomicUsize,
    /// The entries of all tables. A chunk may be in several tables.
    unique: AtomicUsize,
    /// The bytes allocated by all tables.
    memory: AtomicUsize,
    /// The bytes of text in the queue.
    queued: AtomicUsize,
    cancel: Cancel<'static>,
}

impl ChunkTable {
    /// Creates an empty table. Chunks longer than `max_chunk_bytes` are skipped; `finish` returns how many there were.
    pub fn new(
        counting: Counting,
        splitter: Splitter,
        special_tokens: &[String],
        max_chunk_bytes: usize,
        threads: usize,
    ) -> Result<Self> {
        let counter = Counter {
            counting,
            splitter,
            special: special_matcher(special_tokens)?,
            newline_in_special: special_tokens.iter().any(|token| token.contains('\n')),
            max_chunk_bytes,
            dropped: AtomicUsize::new(0),
            skipped: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            unique: AtomicUsize::new(0),
            memory: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            cancel: Cancel::default(),
        };
        let (counter, own) = (Arc::new(counter), Tally::default());
        Ok(Self { counter, threads, own, size: 0, workers: None, spent: unbounded() })
    }

    /// Returns the number of chunks found in the texts so far, including repetitions.
    pub fn total(&self) -> usize {
        self.counter.total.load(Relaxed)
    }

    /// Returns an upper bound on the number of unique chunks so far: a chunk counts once for each thread that found it.
    pub fn unique(&self) -> usize {
        self.counter.unique.load(Relaxed)
    }

    /// Returns the number of bytes that the tables have allocated.
    pub fn memory(&self) -> usize {
        self.counter.memory.load(Relaxed)
    }

    /// Returns the cost of counting `size` bytes of text, in the unit of `Splitter::cost`.
    pub fn cost(&self, size: usize) -> usize {
        let splitter = &self.counter.splitter;
        if splitter.has_scanner() { size / COUNTING_SPEEDUP } else { splitter.cost(size) }
    }

    /// Returns the cost of `finish`, in the same unit.
    pub fn finish_cost(&self) -> usize {
        if self.workers.is_some() { usize::MAX } else { self.memory() }
    }

    /// Returns the last offset after `from` and up to `at` at which `text` can be cut without changing its chunks.
    /// There is none if a special token contains a newline, since such a token could cross the cut.
    pub fn cut_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        if self.counter.newline_in_special { None } else { self.counter.splitter.cut_before(text, from, at) }
    }

    /// Counts the texts, on this thread or in the background. The iterator may be lazy, so that each text is validated
    /// only when it is needed. The caller must keep a clone of each text, or of its bytes, until this returns.
    pub fn add(&mut self, texts: impl IntoIterator<Item = Result<SharedText>>, cancel: &Cancel) -> Result<()> {
        self.check_process()?;
        let mut piece = self.new_piece();
        for shared in texts {
            let shared = shared?;
            let text = shared.as_str();
            let mut start = 0;
            while text.len() - start > 2 * PIECE_BYTES {
                let at = text.floor_char_boundary(start + PIECE_BYTES);
                let Some(end) = self.cut_before(text, start, at) else { break };
                self.add_to_piece(&mut piece, shared.slice(start..end), cancel)?;
                start = end;
            }
            let rest = if start == 0 { shared } else { shared.slice(start..text.len()) };
            self.add_to_piece(&mut piece, rest, cancel)?;
        }
        if piece.size == 0 { Ok(()) } else { self.add_piece(piece, cancel) }
    }

    fn add_to_piece(&mut self, piece: &mut Piece, text: SharedText, cancel: &Cancel) -> Result<()> {
        let size = text.as_str().len();
        if size == 0 {
            return Ok(());
        }
        try_push(&mut piece.texts, text)?;
        piece.size += size;
        if piece.size < PIECE_BYTES {
            return Ok(());
        }
        let full = std::mem::replace(piece, self.new_piece());
        self.add_piece(full, cancel)
    }

    fn new_piece(&self) -> Piece {
        Piece { texts: Vec::new(), size: 0, spent: self.spent.0.clone() }
    }

    /// Frees the texts that have been counted. In a forked process, does nothing: a lock of the channel may be held
    /// forever.
    pub fn drop_spent(&mut self) {
        if self.check_process().is_ok() {
            self.spent.1.try_iter().for_each(drop);
        }
    }

    fn add_piece(&mut self, mut piece: Piece, cancel: &Cancel) -> Result<()> {
        self.size += piece.size;
        if self.threads > 1 && self.size > MIN_PARALLEL_BYTES {
            let workers = self.workers.get_or_insert_with(|| Workers::start(&self.counter, self.threads - 1));
            if self.counter.cancel.check().is_err() {
                // A worker has failed: return its error.
                return self.join_workers(cancel).map(drop);
            }
            piece = match workers.send(piece) {
                Some(piece) => piece,
                None => return cancel.check(),
            };
        }
        self.counter.count_piece(&piece, &mut self.own, cancel)
    }

    fn check_process(&self) -> Result<()> {
        match &self.workers {
            Some(workers) if workers.are_of_another_process() => Err(Error::Forked),
            _ => Ok(()),
        }
    }

    /// Adds existing counts.
    pub fn add_counts<'a>(
        &mut self,
        chunks: impl ExactSizeIterator<Item = (&'a [u8], u64)>,
        cancel: &Cancel,
    ) -> Result<()> {
        self.own.counts.reserve(chunks.len())?;
        let own = &mut self.own;
        self.counter.track_growth(own, |own| add_counts_to(&mut own.counts, chunks, cancel))
    }

    /// Waits for the workers. Returns what they counted, or the error that stopped them.
    fn join_workers(&mut self, cancel: &Cancel) -> Result<Vec<Tally>> {
        self.check_process()?;
        self.workers.take().map_or(Ok(Vec::new()), |workers| workers.join(&mut self.own, cancel))
    }

    /// Sums the threads' tables and sorts the chunks. Returns the number of bytes dropped and of chunks skipped, too.
    /// The table cannot be used again.
    pub fn finish(&mut self, cancel: &Cancel) -> Result<(Counted, usize, usize)> {
        let tallies = self.join_workers(cancel)?.into_iter().chain([std::mem::take(&mut self.own)]);
        let tables: Vec<ChunkMap> = tallies.map(|tally| tally.counts).filter(|counts| !counts.is_empty()).collect();
        let counted = order::sum_and_sort(&tables, self.threads, cancel)?;
        Ok((counted, self.counter.dropped.load(Relaxed), self.counter.skipped.load(Relaxed)))
    }

    /// Returns the pair counters. The table must count pairs, and cannot be used again.
    pub fn finish_pairs(&mut self, cancel: &Cancel) -> Result<Sketch> {
        let tallies = self.join_workers(cancel)?.into_iter().chain([std::mem::take(&mut self.own)]);
        let counters = runs::sum_sketches(tallies.map(|tally| tally.sketch))?;
        match &self.counter.counting {
            Counting::Pairs(chunks) => Ok(Sketch { chunks: chunks.clone(), counters, total: self.total() }),
            _ => Err(Error::invalid("this table does not count pairs")),
        }
    }
}

impl Drop for ChunkTable {
    /// In a forked process, leaks the threads' channels and their texts: the threads do not exist there, and a lock of
    /// the channels may be held forever.
    fn drop(&mut self) {
        if self.check_process().is_err() {
            std::mem::forget(self.workers.take());
            std::mem::forget(std::mem::replace(&mut self.spent, unbounded()));
        }
    }
}

impl Counter {
    fn count_piece(&self, piece: &Piece, tally: &mut Tally, cancel: &Cancel) -> Result<()> {
        cancel.check()?;
        let mut spans = Spans::default();
        let count_texts = |tally: &mut Tally| {
            piece.texts.iter().try_for_each(|text| self.count_text(text.as_str(), &mut spans, tally, cancel))
        };
        self.track_growth(tally, count_texts)
    }

    /// Runs `work` on a tally and records by how much it has grown.
    fn track_growth<T>(&self, tally: &mut Tally, work: impl FnOnce(&mut Tally) -> T) -> T {
        let (unique, memory) = (tally.counts.len(), tally.counts.memory());
        let result = work(tally);
        self.unique.fetch_add(tally.counts.len() - unique, Relaxed);
        self.memory.fetch_add(tally.counts.memory() - memory, Relaxed);
        result
    }

    /// Counts the chunks of the text between its special tokens.
    fn count_text(&self, text: &str, spans: &mut Spans, tally: &mut Tally, cancel: &Cancel) -> Result<()> {
        let mut count = |text: &str| -> Result<()> {
            let text = self.splitter.normalize(text);
            let dropped = self.splitter.split_in_batches(&text, spans, cancel, |chunks| {
                self.total.fetch_add(chunks.len(), Relaxed);
                cancel.check()?;
                match &self.counting {
                    Counting::Chunks => self.count_chunks(chunks, &mut tally.counts),
                    Counting::Pairs(eligible) => runs::count_pairs(eligible, chunks, tally),
                    Counting::Runs(eligible, rule) => runs::count_runs(eligible, rule, chunks, tally),
                }
            })?;
            self.dropped.fetch_add(dropped, Relaxed);
            runs::end_text(tally)
        };
        let mut start = 0;
        if let Some(special) = &self.special {
            for found in special.find_iter(text) {
                count(&text[start..found.start()])?;
                start = found.end();
            }
        }
        count(&text[start..])
    }

    #[inline(never)]
    fn count_chunks(&self, chunks: Chunks, table: &mut ChunkMap) -> Result<()> {
        for group in chunks.groups() {
            let mut keys = [Key::default(); LOOKUP_GROUP];
            for (key, computed) in keys.iter_mut().zip(group.keys()) {
                *key = computed;
                table.prefetch(computed);
            }
            for (key, chunk) in keys.iter().zip(group.iter()) {
                if chunk.len() <= self.max_chunk_bytes {
                    *table.entry_with_key(chunk.as_bytes(), *key)? += 1;
                } else {
                    self.skipped.fetch_add(1, Relaxed);
                }
            }
        }
        Ok(())
    }
}

/// Adds existing counts to a table.
fn add_counts_to<'a>(
    table: &mut ChunkMap,
    chunks: impl Iterator<Item = (&'a [u8], u64)>,
    cancel: &Cancel,
) -> Result<()> {
    let mut chunks = chunks.map(|(chunk, count)| (Key::of(chunk), chunk, count)).peekable();
    let mut group = Vec::with_capacity(LOOKUP_GROUP);
    while chunks.peek().is_some() {
        cancel.check()?;
        group.clear();
        group.extend(chunks.by_ref().take(LOOKUP_GROUP).inspect(|(key, ..)| table.prefetch(*key)));
        for &(key, chunk, count) in &group {
            let sum = table.entry_with_key(chunk, key)?;
            *sum = sum.checked_add(count).ok_or_else(|| count_overflow(chunk))?;
        }
    }
    Ok(())
}

fn count_overflow(chunk: &[u8]) -> Error {
    let chunk = quoted(&String::from_utf8_lossy(chunk));
    Error::invalid(format!("the counts of chunk {chunk} add up to more than 2**64 - 1; scale them down"))
}
