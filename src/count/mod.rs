//! Counting chunks: texts in, `chunk → count` out, in parallel.
//!
//! Each thread fills a table of its own and the tables are added at the end, so counts depend neither on
//! the number of threads nor on the order of the texts. Large texts are cut where the pattern surely breaks.
//! The threads live as long as the `ChunkTable` and take texts from a short queue, so the caller can continue reading;
//! when the queue is full, the caller counts as well. So there are never more threads at work than there may be.
//! A forked process does not have these threads: there, a table that has started some is refused.

mod order;
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

use crate::chunk_map::{ChunkMap, Pending};
use crate::error::{Cancel, Error, Result, shown};
use crate::special::special_matcher;
use crate::split::Splitter;
pub use order::Counted;

/// How much text a thread takes at once: enough to make taking cheap, little enough to share evenly.
const PIECE: usize = if cfg!(test) { 1 << 6 } else { 1 << 16 };
/// This much text may wait in the queue, so that the threads have work while the caller reads more.
const QUEUE: usize = if cfg!(test) { 1 << 9 } else { 1 << 22 };
/// Below this many bytes, no threads are started.
const LITTLE: usize = if cfg!(test) { 1 << 8 } else { 1 << 18 };
/// Counting is this many times as fast as other work, at least.
const FASTER: usize = 16;
/// How often the caller, while waiting for the threads, checks whether it was cancelled.
const PATIENCE: Duration = Duration::from_millis(50);

/// Checks bytes, many at once; where they are wrong is found out only if they are.
pub fn utf8(bytes: &[u8]) -> std::result::Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

/// A text that shares its bytes with others and keeps them alive.
#[derive(Clone)]
pub struct Text(Bytes);

impl Text {
    pub fn new(bytes: Bytes) -> std::result::Result<Self, Utf8Error> {
        utf8(&bytes)?;
        Ok(Self(bytes))
    }

    /// # Safety
    /// The bytes are UTF-8.
    pub unsafe fn new_unchecked(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The part at `span`.
    pub fn part(&self, span: Range<usize>) -> Self {
        assert!(self.get().is_char_boundary(span.start) && self.get().is_char_boundary(span.end));
        Self(self.0.slice(span))
    }

    pub fn get(&self) -> &str {
        // SAFETY: all constructors require UTF-8, parts end between characters, and `Bytes` never change.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }
}

#[derive(Default)]
struct Piece {
    texts: Vec<Text>,
    size: usize,
}

pub struct ChunkTable {
    counter: Arc<Counter>,
    threads: usize,
    /// What the caller's own thread has counted.
    own: ChunkMap,
    size: usize,
    workers: Option<Workers>,
}

struct Workers {
    /// The process that has the threads.
    process: u32,
    number: usize,
    queue: Sender<Piece>,
    pieces: Receiver<Piece>,
    results: Receiver<Result<ChunkMap>>,
}

/// What the threads share.
struct Counter {
    splitter: Splitter,
    special: Option<AhoCorasick>,
    newline_in_special: bool,
    max_chunk_bytes: usize,
    /// Bytes that matched neither the pattern nor a special token: none for the named patterns.
    dropped: AtomicUsize,
    /// Chunks that were too long.
    skipped: AtomicUsize,
    /// Chunks in texts, each as often as it was met.
    total: AtomicUsize,
    /// Of all tables: a chunk may be in several.
    unique: AtomicUsize,
    memory: AtomicUsize,
    /// How much text is in the queue.
    waiting: AtomicUsize,
    cancel: Cancel<'static>,
}

impl ChunkTable {
    /// Chunks of more than `max_chunk_bytes` are not counted, but told.
    pub fn new(splitter: Splitter, special_tokens: &[String], max_chunk_bytes: usize, threads: usize) -> Result<Self> {
        let counter = Counter {
            splitter,
            special: special_matcher(special_tokens)?,
            newline_in_special: special_tokens.iter().any(|token| token.contains('\n')),
            max_chunk_bytes,
            dropped: AtomicUsize::new(0),
            skipped: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
            unique: AtomicUsize::new(0),
            memory: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            cancel: Cancel::default(),
        };
        Ok(Self { counter: Arc::new(counter), threads, own: ChunkMap::default(), size: 0, workers: None })
    }

    /// How many chunks the texts had so far, each as often as it was met.
    pub fn total(&self) -> usize {
        self.counter.total.load(Relaxed)
    }

    /// How many unique chunks there are so far, or more: those that several threads have met count several times.
    pub fn unique(&self) -> usize {
        self.counter.unique.load(Relaxed)
    }

    /// How many bytes of memory the tables take.
    pub fn memory(&self) -> usize {
        self.counter.memory.load(Relaxed)
    }

    /// How much work it is to count `size` bytes of text, as `Splitter::work` has it.
    pub fn work(&self, size: usize) -> usize {
        let splitter = &self.counter.splitter;
        if splitter.has_scanner() { size / FASTER } else { splitter.work(size) }
    }

    /// The last place up to `at` where `text` may be cut without a change to its chunks, if there is one. A special
    /// token with a newline in it could lie across such a place.
    pub fn cut_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        if self.counter.newline_in_special { None } else { self.counter.splitter.cut_before(text, from, at) }
    }

    /// Counts the texts now, or has them counted soon. They may be checked only when it is their turn.
    pub fn add(&mut self, texts: impl IntoIterator<Item = Result<Text>>, cancel: &Cancel) -> Result<()> {
        let mut piece = Piece::default();
        for whole in texts {
            let whole = whole?;
            let text = whole.get();
            let mut start = 0;
            while start < text.len() {
                let mut end = text.len();
                if end - start > 2 * PIECE {
                    let at = text.floor_char_boundary(start + PIECE);
                    end = self.cut_before(text, start, at).unwrap_or(end);
                }
                piece.texts.push(whole.part(start..end));
                piece.size += end - start;
                start = end;
                if piece.size >= PIECE {
                    self.add_piece(std::mem::take(&mut piece), cancel)?;
                }
            }
        }
        if piece.size == 0 { Ok(()) } else { self.add_piece(piece, cancel) }
    }

    fn add_piece(&mut self, piece: Piece, cancel: &Cancel) -> Result<()> {
        self.check_process()?;
        self.size += piece.size;
        if self.threads > 1 && self.size > LITTLE {
            let workers = self.workers.get_or_insert_with(|| Workers::start(&self.counter, self.threads - 1));
            if self.counter.cancel.check().is_err() {
                return self.results(cancel).map(drop);
            }
            if self.counter.waiting.load(Relaxed) < QUEUE {
                self.counter.waiting.fetch_add(piece.size, Relaxed);
                workers.queue.send(piece).expect("it can be received here");
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

    /// Adds counts made before.
    pub fn add_counts<'a>(
        &mut self,
        chunks: impl ExactSizeIterator<Item = (&'a [u8], u64)>,
        cancel: &Cancel,
    ) -> Result<()> {
        self.own.reserve(chunks.len())?;
        let own = &mut self.own;
        self.counter.watching(own, |own| add_all(own, chunks, cancel))
    }

    /// Counts with the threads until all is counted: what they have, or why one of them failed.
    fn results(&mut self, cancel: &Cancel) -> Result<Vec<ChunkMap>> {
        self.check_process()?;
        let Some(Workers { queue, pieces, results, number, .. }) = self.workers.take() else { return Ok(Vec::new()) };
        drop(queue);
        for piece in pieces.iter().take_while(|_| self.counter.cancel.check().is_ok()) {
            self.counter.count_piece(&piece, &mut self.own, cancel)?;
        }
        let mut tables = Vec::new();
        let mut error = None;
        loop {
            match results.recv_timeout(PATIENCE) {
                Ok(Ok(table)) => tables.push(table),
                // The others are cancelled then, and have nothing to say.
                Ok(Err(Error::Cancelled)) => error = error.or(Some(Error::Cancelled)),
                Ok(Err(failure)) => error = Some(failure),
                Err(RecvTimeoutError::Timeout) => cancel.check()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        match error {
            Some(error) => Err(error),
            None if tables.len() < number => panic!("a thread that counts panicked"),
            None => Ok(tables),
        }
    }

    /// Adds the threads' tables up and puts the chunks in order. Also how many bytes were dropped, and how many chunks
    /// skipped.
    pub fn finish(mut self, cancel: &Cancel) -> Result<(Counted, usize, usize)> {
        let mut tables = self.results(cancel)?;
        tables.push(std::mem::take(&mut self.own));
        tables.retain(|table| !table.is_empty());
        let counted = order::in_order(&tables, self.threads, cancel)?;
        Ok((counted, self.counter.dropped.load(Relaxed), self.counter.skipped.load(Relaxed)))
    }
}

impl Drop for ChunkTable {
    /// The threads end by themselves. In a forked process there are none, and the queue may be locked forever.
    fn drop(&mut self) {
        self.counter.cancel.cancel();
        if self.check_process().is_err() {
            std::mem::forget(self.workers.take());
        }
    }
}

impl Workers {
    fn start(counter: &Arc<Counter>, threads: usize) -> Self {
        let (queue, pieces) = unbounded::<Piece>();
        let (done, results) = unbounded();
        let mut number = 0;
        for _ in 0..threads {
            let (counter, pieces, done) = (counter.clone(), pieces.clone(), done.clone());
            let started = std::thread::Builder::new().spawn(move || {
                let mut table = ChunkMap::default();
                let counted = pieces.iter().try_for_each(|piece| {
                    counter.waiting.fetch_sub(piece.size, Relaxed);
                    counter.count_piece(&piece, &mut table, &counter.cancel)
                });
                if counted.is_err() {
                    counter.cancel.cancel();
                }
                // An error if the table was dropped meanwhile.
                let _ = done.send(counted.map(|()| table));
            });
            // Where the system refuses more threads, there are fewer; the caller counts in any case.
            number += usize::from(started.is_ok());
        }
        Self { process: std::process::id(), number, queue, pieces, results }
    }
}

impl Counter {
    fn count_piece(&self, piece: &Piece, table: &mut ChunkMap, cancel: &Cancel) -> Result<()> {
        cancel.check()?;
        self.watching(table, |table| piece.texts.iter().try_for_each(|text| self.count(text.get(), table, cancel)))
    }

    /// Does something to a table, and notes how it has grown.
    fn watching<T>(&self, table: &mut ChunkMap, work: impl FnOnce(&mut ChunkMap) -> T) -> T {
        let (unique, memory) = (table.len(), table.memory());
        let result = work(table);
        self.unique.fetch_add(table.len() - unique, Relaxed);
        self.memory.fetch_add(table.memory() - memory, Relaxed);
        result
    }

    fn count(&self, text: &str, table: &mut ChunkMap, cancel: &Cancel) -> Result<()> {
        let mut count = |text: &str| -> Result<()> {
            let mut pending = Pending::new(text.as_bytes());
            let mut total = 0;
            let dropped = self.splitter.split(text, cancel, |chunk| {
                total += 1;
                if chunk.len() > self.max_chunk_bytes {
                    self.skipped.fetch_add(1, Relaxed);
                } else if pending.add(chunk.as_bytes()) {
                    count_all(table, &mut pending)?;
                    cancel.check()?;
                }
                Ok(())
            })?;
            count_all(table, &mut pending)?;
            self.dropped.fetch_add(dropped, Relaxed);
            self.total.fetch_add(total, Relaxed);
            Ok(())
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
}

#[inline(never)]
fn count_all(table: &mut ChunkMap, pending: &mut Pending) -> Result<()> {
    for (key, chunk) in pending.take(table) {
        *table.entry_key(chunk, key)? += 1;
    }
    Ok(())
}

fn add_all<'a>(table: &mut ChunkMap, chunks: impl Iterator<Item = (&'a [u8], u64)>, cancel: &Cancel) -> Result<()> {
    let mut pending = Pending::new(&[]);
    let mut counts = Vec::new();
    let mut chunks = chunks.peekable();
    while let Some((chunk, count)) = chunks.next() {
        counts.push(count);
        if pending.add(chunk) || chunks.peek().is_none() {
            cancel.check()?;
            for ((key, chunk), count) in pending.take(table).zip(counts.drain(..)) {
                let sum = table.entry_key(chunk, key)?;
                *sum = sum.checked_add(count).ok_or_else(|| too_many(chunk))?;
            }
        }
    }
    Ok(())
}

fn too_many(chunk: &[u8]) -> Error {
    let chunk = shown(&String::from_utf8_lossy(chunk));
    Error::invalid(format!("the counts of chunk {chunk} add up to more than 64 bits hold; scale them down"))
}
