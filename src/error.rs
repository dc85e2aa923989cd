//! The error type of the core, whose variants `python/` turns into Python exceptions; cancelling; and asking for memory.

use std::fmt;
use std::str::Utf8Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A value the caller gave is wrong; the message names it and the remedy.
    Invalid(String),
    /// A pattern fails on a text, which may be told when others are being counted already.
    Pattern(String),
    /// A text is not UTF-8; the message says where.
    Utf8(String),
    /// An allocation of this many bytes was refused.
    OutOfMemory(usize),
    /// The work was started by threads that a forked process does not have.
    Forked,
    /// The work was stopped from outside (Ctrl-C).
    Cancelled,
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::Invalid(message.into())
    }

    /// `what` is not UTF-8, as `error` says; it begins at byte `start` of its file.
    pub fn utf8(what: fmt::Arguments, start: usize, error: Utf8Error) -> Self {
        let at = start + error.valid_up_to();
        Error::Utf8(format!("{what} is invalid UTF-8 at byte {at}; errors=\"replace\" puts U+FFFD there and continues"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(message) | Error::Pattern(message) | Error::Utf8(message) => f.write_str(message),
            Error::OutOfMemory(bytes) => write!(f, "out of memory: {bytes} more bytes are needed"),
            Error::Forked => f.write_str("this count was started before the process forked; start a new one here"),
            Error::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for Error {}

/// How often long work on the caller's own thread asks whether to stop.
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Set from outside to stop long work, which looks at it now and then; or asked by the work itself, where no other
/// thread could set it.
#[derive(Default)]
pub struct Cancel<'a> {
    cancelled: AtomicBool,
    poll: Option<&'a (dyn Fn() -> bool + Sync)>,
    polled: Mutex<Option<Instant>>,
}

impl<'a> Cancel<'a> {
    /// `poll` says whether to stop. It may take microseconds, and is called rarely.
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

    /// As `check`, but asks first if that was not done lately. For work that takes long in single steps.
    pub fn check_at(&self, now: Instant) -> Result<()> {
        if let (Some(poll), Ok(mut polled)) = (self.poll, self.polled.try_lock())
            && now.duration_since(*polled.get_or_insert(now)) >= POLL_EVERY
        {
            *polled = Some(now);
            if poll() {
                self.cancel();
            }
        }
        self.check()
    }
}

/// For work that is never stopped.
pub static NEVER: Cancel = Cancel { cancelled: AtomicBool::new(false), poll: None, polled: Mutex::new(None) };

/// An allocation of this many bytes was refused: an error small enough for a register, for inner loops.
#[derive(Debug)]
pub struct OutOfMemory(pub usize);

impl From<OutOfMemory> for Error {
    fn from(refused: OutOfMemory) -> Self {
        Error::OutOfMemory(refused.0)
    }
}

/// A vector with room for `len` values, or an error where the standard library would end the process.
pub fn reserved<T>(len: usize) -> std::result::Result<Vec<T>, OutOfMemory> {
    let mut values = Vec::new();
    let refused = |_| OutOfMemory(len.saturating_mul(size_of::<T>()));
    values.try_reserve_exact(len).map_err(refused)?;
    Ok(values)
}

/// Fails if there are not `bytes` of memory to be had: asked before work that allocates them in many small parts.
pub fn check_memory(bytes: usize) -> Result<()> {
    Ok(reserved::<u8>(bytes).map(drop)?)
}

/// The beginning of a text of any length, quoted, for a message.
pub fn shown(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}… ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}

pub type Result<T> = std::result::Result<T, Error>;
