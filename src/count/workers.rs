//! The threads that count in the background, and the texts that are passed to them.

use std::ops::Range;
use std::str::Utf8Error;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};

use super::{Counter, Tally};
use crate::error::{Cancel, Error, Result};

/// The amount of text that may wait in the queue, so that the threads have work while the caller reads more.
const QUEUE_BYTES: usize = if cfg!(test) { 1 << 9 } else { 1 << 22 };
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
        // Validating again: +2% instructions in counting.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }
}

/// The unit of work of a thread: one or more texts, `size` bytes in total. Wherever it is dropped, it returns its texts
/// to the table.
pub struct Piece {
    pub texts: Vec<SharedText>,
    pub size: usize,
    pub spent: Sender<Vec<SharedText>>,
}

impl Drop for Piece {
    fn drop(&mut self) {
        if !self.texts.is_empty() {
            // The table drops the receiver last. If sending failed nevertheless, the texts would have to be leaked.
            let _ = self.spent.send(std::mem::take(&mut self.texts)).map_err(std::mem::forget);
        }
    }
}

pub struct Workers {
    /// The process in which the threads run.
    process: u32,
    counter: Arc<Counter>,
    threads: usize,
    /// `None` once it is closed.
    queue: Option<Sender<Piece>>,
    pieces: Receiver<Piece>,
    results: Receiver<Result<Tally>>,
}

impl Workers {
    pub fn start(counter: &Arc<Counter>, threads: usize) -> Self {
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

    /// Returns whether the threads belong to a process from which this one was forked.
    pub fn are_of_another_process(&self) -> bool {
        self.process != std::process::id()
    }

    /// Adds a piece to the queue. Returns it if the queue is full.
    pub fn send(&self, piece: Piece) -> Option<Piece> {
        if self.counter.queued.load(Relaxed) >= QUEUE_BYTES {
            return Some(piece);
        }
        self.counter.queued.fetch_add(piece.size, Relaxed);
        let queue = self.queue.as_ref().expect("only `join` closes it");
        queue.send(piece).expect("there is a receiver in `pieces`");
        None
    }

    /// Helps to empty the queue and waits for the threads. Returns what they counted, or the error that stopped them.
    pub fn join(mut self, own: &mut Tally, cancel: &Cancel) -> Result<Vec<Tally>> {
        self.queue = None; // The threads end when the queue is closed and empty.
        for piece in self.pieces.iter().take_while(|_| self.counter.cancel.check().is_ok()) {
            self.counter.count_piece(&piece, own, cancel)?;
        }
        let mut tallies = Vec::new();
        let mut error = None;
        loop {
            match self.results.recv_timeout(POLL_INTERVAL) {
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
            None if tallies.len() < self.threads => panic!("a counting thread panicked"),
            None => Ok(tallies),
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
