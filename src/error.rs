//! The one error type of the core, each variant of which `python/` turns into a Python exception; and cancelling.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// A value the caller gave is wrong; the message names it and the remedy.
    Invalid(String),
    /// A pattern fails on a text, which may be told when others are being counted already.
    Pattern(String),
    /// The work was stopped from outside (Ctrl-C).
    Cancelled,
}

impl Error {
    pub fn invalid(message: impl Into<String>) -> Self {
        Error::Invalid(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Invalid(message) | Error::Pattern(message) => f.write_str(message),
            Error::Cancelled => f.write_str("cancelled"),
        }
    }
}

impl std::error::Error for Error {}

/// Set from outside to stop long work, which looks at it now and then.
#[derive(Default)]
pub struct Cancel(AtomicBool);

impl Cancel {
    pub fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.0.load(Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}

pub type Result<T> = std::result::Result<T, Error>;
