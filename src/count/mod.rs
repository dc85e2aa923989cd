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

use std::ops::Range;
use std::str::Utf8Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use aho_corasick::AhoCorasick;
use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use crate::chunk_key::Key;
use crate::chunk_map::ChunkMap;
use crate::error::{Cancel, Error, Result, quoted, try_push};
use crate::special::special_matcher;
use crate::split::{Chunks, LOOKUP_GROUP, Spans, Splitter};
pub use order::Counted;
use runs::OpenRun;
pub use runs::{CutRule, EligibleChunks, Sketch, What};

/// The amount of text that a thread takes at once: enough to make the queue cheap, little enough to share evenly.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };
/// The amount of text that may wait in the queue, so that the threads have work while the caller reads more.
const QUEUE_BYTES: usize = if cfg!(test) { 1 << 9 } else { 1 << 22 };
/// Below this many bytes, no worker threads are started.
const MIN_PARALLEL_BYTES: usize = if cfg!(test) { 1 << 8 } else { 1 << 18 };
/// With a scanner, counting is at least this many times as fast as the work that `Splitter::cost` estimates.
const COUNTING_SPEEDUP: usize = 16;
/// How often the caller checks for cancellation while it waits for the threads.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Validates UTF-8. The fast validator does not report positions, so only invalid bytes are checked a second time.
pub fn utf8(bytes: &[u8]) -> std::result::Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

/// A text that shares ownership of its bytes, so that it can be sent to another thread without a copy.
#[derive(Clone)]
pub struct SharedText(Bytes);

impl SharedText {
    pub fn new(bytes: Bytes) -> std::result::Result<Self, Utf8Error> {
        utf8(&bytes)?;
        Ok(Self(bytes))
    }

    /// # Safety
    /// The bytes must be valid UTF-8.
    pub unsafe fn new_unchecked(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Returns the part at `span`, which must start and end between characters.
    pub fn slice(&self, span: Range<usize>) -> Self {
        assert!(self.as_str().is_char_boundary(span.start) && self.as_str().is_char_boundary(span.end));
        Self(self.0.slice(span))
    }

    pub fn as_str(&self) -> &str {
        // SAFETY: both constructors require UTF-8, `slice` cuts only between characters, and `Bytes` is immutable.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }
}

/// The unit of work of a thread: one or more texts, `size` bytes in total. Wherever it is dropped, it returns its texts
/// to the table.
struct Piece {
    texts: Vec<SharedText>,
    size: usize,
    spent: Sender<Vec<SharedText>>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        if !self.texts.is_empty() {
            // The table drops the receiver last. If sending failed nevertheless, the texts would have to be leaked.
            let _ = self.spent.send(std::mem::take(&mut self.texts)).map_err(std::mem::forget);
        }
    }
}

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

struct Workers {
    /// The process in which the threads run.
    process: u32,
    counter: Arc<Counter>,
    threads: usize,
    /// `None` once it is closed.
    queue: Option<Sender<Piece>>,
    pieces: Receiver<Piece>,
    results: Receiver<Result<Tally>>,
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
    what: What,
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
        what: What,
        splitter: Splitter,
        special_tokens: &[String],
        max_chunk_bytes: usize,
        threads: usize,
    ) -> Result<Self> {
        let counter = Counter {
            what,
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

    /// Returns the last place after `from` and up to `at` where `text` can be cut without changing its chunks. There is
    /// none if a special token contains a newline, since such a token could cross the cut.
    pub fn cut_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        if self.counter.newline_in_special { None } else { self.counter.splitter.cut_before(text, from, at) }
    }

    /// Counts the texts, on this thread or in the background. The iterator may be lazy, so that each text is validated
    /// only when it is needed. The caller must hold a clone of each text, or of its bytes, until this returns.
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

    fn add_piece(&mut self, piece: Piece, cancel: &Cancel) -> Result<()> {
        self.size += piece.size;
        if self.threads > 1 && self.size > MIN_PARALLEL_BYTES {
            let workers = self.workers.get_or_insert_with(|| Workers::start(&self.counter, self.threads - 1));
            if self.counter.cancel.check().is_err() {
                // A worker has failed: return its error.
                return self.join_workers(cancel).map(drop);
            }
            if self.counter.queued.load(Relaxed) < QUEUE_BYTES {
                self.counter.queued.fetch_add(piece.size, Relaxed);
                let queue = workers.queue.as_ref().expect("only `join_workers` closes it");
                queue.send(piece).expect("this table holds a receiver");
                return cancel.check();
            }
        }
        self.counter.count_piece(&piece, &mut self.own, cancel)
    }

    fn check_process(&self) -> Result<()> {
        match &self.workers {
            Some(workers) if workers.process != std::process::id() => Err(Error::Forked),
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

    /// Helps the workers to empty the queue and waits for them. Returns what they counted, or the error that stopped them.
    fn join_workers(&mut self, cancel: &Cancel) -> Result<Vec<Tally>> {
        self.check_process()?;
        let Some(mut workers) = self.workers.take() else { return Ok(Vec::new()) };
        workers.queue = None; // The threads end when the queue is closed and empty.
        for piece in workers.pieces.iter().take_while(|_| self.counter.cancel.check().is_ok()) {
            self.counter.count_piece(&piece, &mut self.own, cancel)?;
        }
        let mut tallies = Vec::new();
        let mut error = None;
        loop {
            match workers.results.recv_timeout(POLL_INTERVAL) {
                Ok(Ok(tally)) => tallies.push(tally),
                // A worker that fails cancels the others: its error takes precedence over theirs.
                Ok(Err(Error::Cancelled)) => error = error.or(Some(Error::Cancelled)),
                Ok(Err(failure)) => error = Some(failure),
                Err(RecvTimeoutError::Timeout) => cancel.check()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match error {
            Some(error) => Err(error),
            None if tallies.len() < workers.threads => panic!("a counting thread panicked"),
            None => Ok(tallies),
        }
    }

    /// Sums the threads' tables and sorts the chunks. Also returns the number of bytes dropped and of chunks skipped.
    /// The table cannot be used again.
    pub fn finish(&mut self, cancel: &Cancel) -> Result<(Counted, usize, usize)> {
        let tallies = self.join_workers(cancel)?.into_iter().chain([std::mem::take(&mut self.own)]);
        let tables: Vec<ChunkMap> = tallies.map(|tally| tally.counts).filter(|counts| !counts.is_empty()).collect();
        let counted = order::sum_and_sort(&tables, self.threads, cancel)?;
        Ok((counted, self.counter.dropped.load(Relaxed), self.counter.skipped.load(Relaxed)))
    }

    /// Returns the counters of pairs, of which it must be a table. It cannot be used again.
    pub fn finish_pairs(&mut self, cancel: &Cancel) -> Result<Sketch> {
        let tallies = self.join_workers(cancel)?.into_iter().chain([std::mem::take(&mut self.own)]);
        let counters = runs::sum_sketches(tallies.map(|tally| tally.sketch))?;
        match &self.counter.what {
            What::Pairs(chunks) => Ok(Sketch { chunks: chunks.clone(), counters, total: self.total() }),
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

impl Drop for Workers {
    /// Cancels the threads and waits until all texts are returned to the table.
    fn drop(&mut self) {
        self.counter.cancel.cancel();
        self.queue = None;
        self.results.iter().for_each(drop); // ends when all threads have ended
        self.pieces.iter().for_each(drop);
    }
}

impl Workers {
    fn start(counter: &Arc<Counter>, threads: usize) -> Self {
        let (queue, pieces) = unbounded::<Piece>();
        let (done, results) = unbounded();
        let mut running = 0;
        for _ in 0..threads {
            let (counter, pieces, done) = (counter.clone(), pieces.clone(), done.clone());
            let started = std::thread::Builder::new().spawn(move || {
                let mut tally = Tally::default();
                let counted = pieces.iter().try_for_each(|piece| {
                    counter.queued.fetch_sub(piece.size, Relaxed);
                    counter.count_piece(&piece, &mut tally, &counter.cancel)
                });
                if counted.is_err() {
                    counter.cancel.cancel();
                }
                // Sending fails if the `ChunkTable` was dropped in the meantime.
                let _ = done.send(counted.map(|()| tally));
            });
            // If the system refuses to start a thread, continue with fewer: the caller counts in any case.
            running += usize::from(started.is_ok());
        }
        let (process, counter) = (std::process::id(), counter.clone());
        Self { process, counter, threads: running, queue: Some(queue), pieces, results }
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
            let dropped = self.splitter.split_in_batches(text, spans, cancel, |chunks| {
                self.total.fetch_add(chunks.len(), Relaxed);
                cancel.check()?;
                match &self.what {
                    What::Chunks => self.count_chunks(chunks, &mut tally.counts),
                    What::Pairs(eligible) => runs::count_pairs(eligible, chunks, tally),
                    What::Runs(eligible, rule) => runs::count_runs(eligible, rule, chunks, tally),
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
