//! Counting chunks: texts in, `chunk → count` out, in parallel.
//!
//! Each thread fills a table of its own and the tables are added at the end, so counts depend neither on
//! the number of threads nor on the order of the texts. Large texts are cut where the pattern surely breaks.
//! The threads live as long as the `ChunkTable` and take texts from a short queue, so the caller goes on reading; where
//! the queue is full, the caller counts as well. So there are never more threads at work than there may be.

mod order;

use std::ops::Range;
use std::str::Utf8Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use aho_corasick::AhoCorasick;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use crate::chunk_map::{ChunkMap, Pending};
use crate::error::{Cancel, Error, Result};
use crate::special::special_matcher;
use crate::split::Splitter;
pub use order::Counted;

/// How much text a thread takes at once: enough to make taking cheap, little enough to share evenly.
const PIECE: usize = 1 << 16;
/// So much text waits, that the threads have something to do while the caller reads more.
const QUEUE: usize = 1 << 22;
/// So little text is counted before a thread has started.
const LITTLE: usize = 1 << 18;
/// How often one who waits for the threads looks whether to go on waiting.
const PATIENCE: Duration = Duration::from_millis(50);

/// Checks bytes, many at once; where they are wrong is found out only if they are.
pub fn utf8(bytes: &[u8]) -> std::result::Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

/// What holds the bytes of texts: always the same ones.
pub type Owner = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A text, which keeps its owner alive.
#[derive(Clone)]
pub struct Text {
    owner: Owner,
    span: Range<usize>,
}

impl Text {
    pub fn new(owner: Owner, span: Range<usize>) -> std::result::Result<Self, Utf8Error> {
        utf8(&(*owner).as_ref()[span.clone()])?;
        Ok(Self { owner, span })
    }

    /// # Safety
    /// The first `len` bytes that the owner has are UTF-8.
    pub unsafe fn new_unchecked(len: usize, owner: Owner) -> Self {
        Self { owner, span: 0..len }
    }

    /// The part at `span`.
    pub fn part(&self, span: Range<usize>) -> Self {
        assert!(self.get().is_char_boundary(span.start) && self.get().is_char_boundary(span.end));
        Self { owner: self.owner.clone(), span: self.span.start + span.start..self.span.start + span.end }
    }

    pub fn get(&self) -> &str {
        // SAFETY: it was so when this was made, and the owner's bytes do not change.
        unsafe { std::str::from_utf8_unchecked(&(*self.owner).as_ref()[self.span.clone()]) }
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
    cancel: Cancel,
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

    pub fn work(&self, size: usize) -> usize {
        self.counter.splitter.work(size)
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

    /// Adds counts made before.
    pub fn add_counts<'a>(
        &mut self,
        chunks: impl ExactSizeIterator<Item = (&'a [u8], u64)>,
        cancel: &Cancel,
    ) -> Result<()> {
        self.own.reserve(chunks.len());
        let own = &mut self.own;
        self.counter.watching(own, |own| add_all(own, chunks, cancel))
    }

    /// Counts with the threads until all is counted: what they have, or why one of them failed.
    fn results(&mut self, cancel: &Cancel) -> Result<Vec<ChunkMap>> {
        let Some(Workers { queue, pieces, results }) = self.workers.take() else { return Ok(Vec::new()) };
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
            None if tables.len() + 1 < self.threads => panic!("a thread that counts panicked"),
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
    /// The threads end by themselves: there may be none, in a process that was forked.
    fn drop(&mut self) {
        self.counter.cancel.cancel();
    }
}

impl Workers {
    fn start(counter: &Arc<Counter>, threads: usize) -> Self {
        let (queue, pieces) = unbounded::<Piece>();
        let (done, results) = unbounded();
        for _ in 0..threads {
            let (counter, pieces, done) = (counter.clone(), pieces.clone(), done.clone());
            std::thread::spawn(move || {
                let mut table = ChunkMap::default();
                let counted = pieces.iter().try_for_each(|piece| {
                    counter.waiting.fetch_sub(piece.size, Relaxed);
                    counter.count_piece(&piece, &mut table, &counter.cancel)
                });
                if counted.is_err() {
                    counter.cancel.cancel();
                }
                // Nobody may wait for it any more.
                let _ = done.send(counted.map(|()| table));
            });
        }
        Self { queue, pieces, results }
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
            let dropped = self.splitter.split(text, |chunk| {
                total += 1;
                if chunk.len() > self.max_chunk_bytes {
                    self.skipped.fetch_add(1, Relaxed);
                } else if pending.add(chunk.as_bytes()) {
                    count_all(table, &mut pending);
                    cancel.check()?;
                }
                Ok(())
            })?;
            count_all(table, &mut pending);
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
fn count_all(table: &mut ChunkMap, pending: &mut Pending) {
    for (key, chunk) in pending.take(table) {
        *table.entry_key(chunk, key) += 1;
    }
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
                let sum = table.entry_key(chunk, key);
                *sum = sum.checked_add(count).ok_or_else(|| too_many(chunk))?;
            }
        }
    }
    Ok(())
}

fn too_many(chunk: &[u8]) -> Error {
    let chunk = String::from_utf8_lossy(chunk);
    Error::invalid(format!("the counts of chunk {chunk:?} add up to more than 64 bits hold; scale them down"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use order::RANGE;

    #[test]
    fn chunks_come_in_order_from_any_number_of_threads() {
        // More than a range of them; counts and long prefixes in common; one chunk the beginning of another.
        let word = |i: usize| format!(" {}{}", "prefixes".repeat(i % 3), "x".repeat(i % 7) + &i.to_string());
        let texts: Vec<String> = (0..3 * RANGE).map(|i| word(i).repeat(1 + i % 2)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut expected = std::collections::BTreeMap::new();
        let splitter = || Splitter::new(crate::split::NAMED[1].1).expect("a named pattern");
        for text in &texts {
            let chunk = |chunk| {
                *expected.entry(chunk).or_insert(0) += 1;
                Ok(())
            };
            splitter().split(text, chunk).expect("nothing fails");
        }
        let mut expected: Vec<(&str, u64)> = expected.into_iter().collect();
        expected.sort_by_key(|row| std::cmp::Reverse(row.1));
        for threads in [1, 3] {
            let mut table = ChunkTable::new(splitter(), &[], usize::MAX, threads).expect("no special tokens");
            let texts =
                texts.iter().map(|text| Ok(Text::new(Arc::new(text.to_string()), 0..text.len()).expect("UTF-8")));
            table.add(texts, &Cancel::default()).expect("nothing fails");
            let watched = (table.unique(), table.memory());
            let counted = table.finish(&Cancel::default()).expect("nothing fails").0;
            assert!(watched.0 >= counted.counts.len() && watched.1 > 24 * counted.counts.len());
            let span = |i: usize| counted.offsets[i] as usize..counted.offsets[i + 1] as usize;
            let chunk = |i: usize| std::str::from_utf8(&counted.data[span(i)]).expect("text");
            let found: Vec<_> = counted.counts.iter().enumerate().map(|(i, &count)| (chunk(i), count)).collect();
            assert!(found == expected, "with {threads} threads");
        }
    }
}
