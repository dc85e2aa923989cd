//! All of PyO3: what Python sees of the core, a file a class; here the GIL, signals, errors and splitting.
//!
//! Chunks cross the border as three numpy arrays (all bytes in a row, where each chunk begins, its count),
//! never as a Python object each.

mod count;
mod encode;
mod train;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use bytes::Bytes;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyString;

use crate::count::utf8;
use crate::error::{Cancel, Error, Result, reserved};
use crate::hash;
use crate::split;

/// Shorter work runs at once, on the caller's thread. It is over before anyone can press Ctrl-C, or looks itself.
const LONG_TEXT: usize = 1 << 20;

create_exception!(batchbpe._core, PatternError, PyValueError, "A pattern that fails on a text.");
create_exception!(batchbpe._core, InvalidUtf8, PyValueError, "A text that is not UTF-8.");

type Array<'py, T> = Bound<'py, PyArray1<T>>;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(message) => PyValueError::new_err(message),
            Error::Pattern(message) => PatternError::new_err(message),
            Error::Utf8(message) => InvalidUtf8::new_err(message),
            Error::OutOfMemory(_) => PyMemoryError::new_err(error.to_string()),
            Error::Forked => PyRuntimeError::new_err(error.to_string()),
            Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        }
    }
}

/// Runs `work` without the GIL on a thread of its own, while this one looks out for signals.
fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Cancel) -> Result<T> + Send) -> PyResult<T> {
    let cancel = Cancel::default();
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, waiting) = channel::<()>();
            let started = Builder::new().spawn_scoped(scope, || {
                let _done = done;
                work(&cancel)
            });
            let worker = started.map_err(|error| PyRuntimeError::new_err(format!("cannot start a thread: {error}")))?;
            let mut signal = Ok(());
            while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(Duration::from_millis(50)) {
                if signal.is_ok() {
                    signal = Python::attach(|py| py.check_signals());
                    if signal.is_err() {
                        cancel.cancel();
                    }
                }
            }
            let result = worker.join();
            signal?;
            result.map_err(|_| PyRuntimeError::new_err("the core panicked: please report this"))?.map_err(PyErr::from)
        })
    })
}

/// Runs `work` without the GIL, where it may be interrupted if there is much of it.
fn run<T: Send>(py: Python<'_>, size: usize, work: impl FnOnce(&Cancel) -> Result<T> + Send) -> PyResult<T> {
    if size >= LONG_TEXT {
        return interruptible(py, work);
    }
    let signal = Mutex::new(Ok(()));
    let interrupted = || {
        let checked = Python::attach(|py| py.check_signals());
        let failed = checked.is_err();
        *signal.lock().expect("no panic while it is held") = checked;
        failed
    };
    let result = py.detach(|| work(&Cancel::polling(&interrupted)));
    signal.into_inner().expect("no panic while it is held")?;
    Ok(result?)
}

/// More threads than this are only a burden, on any machine.
const MOST_THREADS: i64 = 256;

/// So many threads, or one for each core that this process may use.
#[pyfunction]
#[pyo3(signature = (threads = None))]
fn threads_or_all(threads: Option<i64>) -> PyResult<usize> {
    match threads {
        Some(threads) if threads < 1 => {
            Err(PyValueError::new_err(format!("threads={threads}: give at least 1, or None for all cores")))
        }
        Some(threads) => Ok(threads.min(MOST_THREADS) as usize),
        None => Ok(std::thread::available_parallelism().map_or(1, |threads| threads.get())),
    }
}

/// The bytes of a numpy array, shared with whoever has it, without a copy if nobody can change them: then it is a view
/// of a buffer of pyarrow.
fn bytes_of(array: &PyReadonlyArray1<u8>) -> PyResult<Bytes> {
    struct View {
        _array: Py<PyArray1<u8>>,
        bytes: *const [u8],
    }
    // SAFETY: the bytes are only read, and stay where they are as long as the array.
    unsafe impl Send for View {}

    impl AsRef<[u8]> for View {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: the array is alive, and read-only.
            unsafe { &*self.bytes }
        }
    }
    let bytes = array.as_slice()?;
    if array.getattr(intern!(array.py(), "flags"))?.getattr(intern!(array.py(), "writeable"))?.is_truthy()? {
        return Ok(Bytes::copy_from_slice(bytes));
    }
    Ok(Bytes::from_owner(View { bytes, _array: (**array).clone().unbind() }))
}

/// Where things begin and end that lie in a row.
fn spans(data: &[u8], offsets: &[i64]) -> PyResult<Vec<Range<usize>>> {
    let mut spans = reserved(offsets.len()).map_err(Error::from)?;
    for pair in offsets.windows(2) {
        match (usize::try_from(pair[0]), usize::try_from(pair[1])) {
            (Ok(start), Ok(end)) if start <= end && end <= data.len() => spans.push(start..end),
            _ => return Err(PyValueError::new_err("the offsets do not fit the data")),
        }
    }
    Ok(spans)
}

/// A string of Python as UTF-8, which Python has already if it is ASCII. Else in a copy of our own: Python keeps the
/// UTF-8 of a string as long as the string, once it was asked for it.
enum Utf8 {
    Kept(PyBackedStr),
    Copied(PyBackedBytes),
}

impl Utf8 {
    fn new(text: &Bound<'_, PyString>) -> PyResult<Self> {
        Ok(if text.call_method0(intern!(text.py(), "isascii"))?.is_truthy()? {
            Self::Kept(PyBackedStr::try_from(text.clone())?)
        } else {
            Self::Copied(PyBackedBytes::from(text.encode_utf8()?))
        })
    }

    fn get(&self) -> &str {
        match self {
            Self::Kept(text) => text,
            // SAFETY: what `encode_utf8` gives is UTF-8.
            Self::Copied(bytes) => unsafe { std::str::from_utf8_unchecked(bytes) },
        }
    }
}

impl AsRef<[u8]> for Utf8 {
    fn as_ref(&self) -> &[u8] {
        self.get().as_bytes()
    }
}

/// A block of a text that begins at `offset` of it. Unless it is the last, it may end within a character, which is left
/// to the next one; anything else is the file's fault.
fn block_text(block: &[u8], offset: usize, last: bool) -> Result<&str> {
    let text = match utf8(block) {
        Err(error) if !last && error.error_len().is_none() => std::str::from_utf8(&block[..error.valid_up_to()]),
        text => text,
    };
    text.map_err(|error| Error::utf8(format_args!("the text"), offset, error))
}

/// The named patterns and their regular expressions.
#[pyfunction]
fn patterns() -> Vec<(&'static str, &'static str)> {
    split::NAMED.to_vec()
}

/// Whether a pattern has a scanner, as the named ones have: then it leaves nothing of a text.
#[pyfunction]
fn has_scanner(pattern: &str) -> PyResult<bool> {
    Ok(split::Splitter::new(pattern)?.has_scanner())
}

/// Whether a pattern has empty matches, which are no chunks here and other tools take in their own ways.
#[pyfunction]
fn matches_empty(pattern: &str) -> PyResult<bool> {
    Ok(split::Splitter::new(pattern)?.matches_empty())
}

/// The chunks of a text.
#[pyfunction]
fn split_text<'py>(py: Python<'py>, pattern: &str, text: PyBackedStr) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let splitter = split::Splitter::new(pattern)?;
    let chunks = run(py, splitter.work(text.len()), |cancel| {
        let mut chunks: Vec<&str> = Vec::new();
        splitter.split(&text, cancel, |chunk| {
            chunks.push(chunk);
            cancel.check()
        })?;
        Ok(chunks)
    })?;
    chunks.into_iter().map(|chunk| Ok(chunk.into_pyobject(py)?.into_any())).collect()
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    hash::randomize();
    module.add("InvalidUtf8", module.py().get_type::<InvalidUtf8>())?;
    module.add("PatternError", module.py().get_type::<PatternError>())?;
    module.add_function(wrap_pyfunction!(threads_or_all, module)?)?;
    module.add_function(wrap_pyfunction!(patterns, module)?)?;
    module.add_function(wrap_pyfunction!(has_scanner, module)?)?;
    module.add_function(wrap_pyfunction!(matches_empty, module)?)?;
    module.add_function(wrap_pyfunction!(split_text, module)?)?;
    module.add_function(wrap_pyfunction!(count::read_counts_csv, module)?)?;
    module.add_function(wrap_pyfunction!(count::is_in_order, module)?)?;
    module.add_class::<count::ChunkTable>()?;
    module.add_function(wrap_pyfunction!(encode::merges_of_ranks, module)?)?;
    module.add_class::<train::PairTable>()?;
    module.add_class::<encode::Encoder>()?;
    Ok(())
}
