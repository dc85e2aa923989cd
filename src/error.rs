//! The core's error type, cancellation, and allocations that may fail.
//!
//! `python/` maps each variant of `Error` to a Python exception, and adds the remedy if that is an option of Python.

use std::fmt;
use std::str::Utf8Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The caller passed an invalid value. The message names the value and, if there is one, the remedy.
    Invalid(String),
    /// A text contains a special token that is not allowed, at byte `at`. (With a `String`, every result of the core
    /// would become larger, and merging a long chunk 6% slower.)
    SpecialToken { token: Box<str>, at: usize },
    /// The unique chunks are too large to train on.
    TooManyChunks,
    /// A pattern failed on a text. When texts are counted in the background, the error may surface in a later call.
    Pattern(String),
    /// A text is not valid UTF-8. The message gives the position.
    Utf8(String),
    /// An allocation of this many bytes failed.
    OutOfMemory(usize),
    /// The work depends on threads that do not exist in a forked process.
    Forked,
    /// The work was cancelled from outside (Ctrl-C).
    Cancelled,
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::Invalid(message.into())
    }

    /// Describes invalid UTF-8 in `what`, which starts at byte `start` of its file.
    pub fn utf8(what: fmt::Arguments, start: usize, error: Utf8Error) -> Self {
        let at = start + error.valid_up_to();
        Error::Utf8(format!("{what} is invalid UTF-8 at byte {at}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(message) | Error::Pattern(message) | Error::Utf8(message) => f.write_str(message),
            Error::SpecialToken { token, at } => {
                write!(f, "the text contains the special token {} at byte {at}", quoted(token))
            }
            Error::TooManyChunks => f.write_str("the unique chunks add up to more than 4 GiB"),
            Error::OutOfMemory(bytes) => write!(f, "cannot allocate {bytes} more bytes"),
            Error::Forked => {
                f.write_str("this count was started before the process forked; start a new one in this process")
            }
            Error::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for Error {}

/// The minimum time between two calls of `Cancel`'s poll function. Tests poll at every check, on fast machines too.
const POLL_INTERVAL: Duration = Duration::from_millis(if cfg!(test) { 0 } else { 50 });

/// A flag that stops long-running work. Another thread sets it with `cancel`, and the work checks it regularly.
///
/// Work that runs on the caller's own thread, where no other thread can set the flag, uses a poll function instead.
#[derive(Default)]
pub struct Cancel<'a> {
    cancelled: AtomicBool,
    poll: Option<&'a (dyn Fn() -> bool + Sync)>,
    last_poll: Mutex<Option<Instant>>,
}

impl<'a> Cancel<'a> {
    /// Creates a flag that is also set when `poll` returns true. `poll` is called rarely, so it may take microseconds.
    pub fn polling(poll: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { poll: Some(poll), ..Self::default() }
    }

    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Like `check`, but polls first if the last poll is at least `POLL_INTERVAL` ago. For work with long single steps.
    pub fn poll_and_check(&self, now: Instant) -> Result<()> {
        if let (Some(poll), Ok(mut last_poll)) = (self.poll, self.last_poll.try_lock())
            && now.duration_since(*last_poll.get_or_insert(now)) >= POLL_INTERVAL
        {
            *last_poll = Some(now);
            if poll() {
                self.cancel();
            }
        }
        self.check()
    }
}

/// A flag for work that is never cancelled.
pub static NEVER: Cancel = Cancel { cancelled: AtomicBool::new(false), poll: None, last_poll: Mutex::new(None) };

/// An allocation of this many bytes failed. Unlike `Error` it fits in a register, which matters in inner loops.
#[derive(Debug)]
pub struct OutOfMemory(pub usize);

impl From<OutOfMemory> for Error {
    fn from(failed: OutOfMemory) -> Self {
        Error::OutOfMemory(failed.0)
    }
}

/// Returns a vector with room for `len` values. Unlike `Vec::with_capacity`, it does not abort the process on failure.
pub fn try_with_capacity<T>(len: usize) -> std::result::Result<Vec<T>, OutOfMemory> {
    let mut values = Vec::new();
    let failed = |_| OutOfMemory(len.saturating_mul(size_of::<T>()));
    values.try_reserve_exact(len).map_err(failed)?;
    Ok(values)
}

/// Makes room for `more` values. Unlike `Vec::reserve`, it does not abort the process on failure.
#[inline]
pub fn try_reserve<T>(values: &mut Vec<T>, more: usize) -> std::result::Result<(), OutOfMemory> {
    #[cold]
    #[inline(never)]
    fn grow<T>(values: &mut Vec<T>, more: usize) -> std::result::Result<(), OutOfMemory> {
        // By default a vector doubles. If memory is short, it grows by an eighth.
        let least = more.max(values.len() / 8);
        let failed = |_| OutOfMemory(least.saturating_mul(size_of::<T>()));
        values.try_reserve(more).or_else(|_| values.try_reserve_exact(least)).map_err(failed)
    }
    if values.capacity() - values.len() < more { grow(values, more) } else { Ok(()) }
}

/// Appends a value. Unlike `Vec::push`, it does not abort the process on failure.
#[inline]
pub fn try_push<T>(values: &mut Vec<T>, value: T) -> std::result::Result<(), OutOfMemory> {
    try_reserve(values, 1)?;
    values.push(value);
    Ok(())
}

/// Collects values. Unlike `Iterator::collect`, it does not abort the process on failure.
pub fn try_collect<T>(values: impl ExactSizeIterator<Item = T>) -> std::result::Result<Vec<T>, OutOfMemory> {
    try_collect_ok(values.map(Ok))
}

/// Collects the values of results, or returns the first error.
pub fn try_collect_ok<T, E: From<OutOfMemory>>(
    values: impl ExactSizeIterator<Item = std::result::Result<T, E>>,
) -> std::result::Result<Vec<T>, E> {
    let mut collected = try_with_capacity(values.len())?;
    for value in values {
        try_push(&mut collected, value?)?;
    }
    Ok(collected)
}

/// Fails if `bytes` bytes cannot be allocated. Call it before work that allocates that much in many small parts.
pub fn check_memory(bytes: usize) -> Result<()> {
    Ok(try_with_capacity::<u8>(bytes).map(drop)?)
}

/// Quotes a text for an error message, shortened if it is long.
pub fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 80;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}
