//! The Python bindings, and the only module that uses PyO3. There is one file per class, and `split` and `ngram`
//! for functions. This file contains what they share: the GIL, signals, errors and conversions.
//!
//! Chunks are passed as three numpy arrays (their concatenated bytes, the offset of each chunk, and the counts), never
//! as one Python object per chunk.

mod cancellation;
mod count;
mod encode;
mod ngram;
mod ranked;
mod split;
mod train;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

use bytes::Bytes;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::create_exception;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::count::utf8;
use crate::encode::{MAX_ID, MAX_MERGES};
use crate::error::{Cancel, Error, OutOfMemory, Result, check_memory, quoted, try_with_capacity};
use crate::table::hash;
use cancellation::{Cancellation, Interrupts};

/// Work of a lower cost (see `Splitter::cost`) runs on the caller's thread. It either finishes before anyone can press
/// Ctrl-C, or polls for signals itself.
const LONG_WORK: usize = 1 << 20;
/// Long work does not start with less memory. It is for threads and small allocations, whose failure would end the
/// process.
const RESERVE: usize = 1 << 24;

create_exception!(batchbpe._core, PatternError, PyValueError, "A pattern failed on a text.");
create_exception!(batchbpe._core, InvalidUtf8, PyValueError, "A text is not valid UTF-8.");

const BAD_OFFSETS: &str = "the offsets must be in ascending order and within the data";

type Array<'py, T> = Bound<'py, PyArray1<T>>;

/// Moves `values` into an array. The first one loads numpy, which panics in `into_pyarray` if Ctrl-C interrupts it.
fn array<T: numpy::Element>(py: Python<'_>, values: Vec<T>) -> PyResult<Array<'_, T>> {
    static LOADED: PyOnceLock<()> = PyOnceLock::new();
    LOADED.get_or_try_init(py, || numpy::get_array_module(py).map(drop))?;
    Ok(values.into_pyarray(py))
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(message) => PyValueError::new_err(message),
            Error::SpecialToken { ref token, .. } => {
                let token = quoted(token);
                PyValueError::new_err(format!(
                    "{error}; pass allowed_special={{{token}}} or allowed_special=\"all\" to encode it as that token, \
                     or disallowed_special=() or allowed_special=\"none\" to encode it as plain text"
                ))
            }
            Error::TooManyChunks => PyValueError::new_err(format!("{error}; raise freq_cutoff")),
            Error::Pattern(message) => PatternError::new_err(message),
            Error::Utf8(message) => InvalidUtf8::new_err(message),
            Error::OutOfMemory(_) => PyMemoryError::new_err(error.to_string()),
            Error::Forked => PyRuntimeError::new_err(error.to_string()),
            Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        }
    }
}

impl From<OutOfMemory> for PyErr {
    fn from(failed: OutOfMemory) -> Self {
        Error::from(failed).into()
    }
}

/// Fails if there is not enough memory for `objects` Python objects that take `bytes` bytes. PyO3 panics if Python
/// cannot allocate one.
fn check_python_memory(objects: usize, bytes: usize) -> Result<()> {
    /// The header of an object, what the allocator adds to it, and its place in a list.
    const OVERHEAD: usize = 96;
    /// Python allocates small objects in arenas of a megabyte.
    const ARENAS: usize = 1 << 21;
    check_memory(objects.saturating_mul(OVERHEAD).saturating_add(bytes).saturating_add(ARENAS))
}

/// Runs `work` on another thread, without the GIL, while this thread handles signals. Returns `None`, without a call of
/// `work`, if no thread can be started.
fn interruptible<T: Send>(
    py: Python<'_>,
    interrupts: &Interrupts,
    work: &mut Option<impl FnOnce(&Cancel) -> Result<T> + Send>,
) -> Option<PyResult<T>> {
    let cancel = Cancel::default();
    py.detach(|| {
        std::thread::scope(|scope| {
            let (done, waiting) = channel::<()>();
            let started = Builder::new().spawn_scoped(scope, || {
                let _done = done;
                let work = work.take().expect("called once");
                work(&cancel)
            });
            let worker = started.ok()?;
            let mut signal = Ok(());
            while let Err(RecvTimeoutError::Timeout) = waiting.recv_timeout(Duration::from_millis(50)) {
                if signal.is_ok() {
                    signal = Python::attach(|py| interrupts.check(py));
                    if signal.is_err() {
                        cancel.cancel();
                    }
                }
            }
            let result = worker.join();
            Some(signal.and_then(|()| {
                result
                    .map_err(|_| PyRuntimeError::new_err("internal error: the core panicked; please report this"))?
                    .map_err(PyErr::from)
            }))
        })
    })
}

/// Runs `work` without the GIL. Signals and a `Cancellation` interrupt it if it takes long. `cost` is an estimate (see
/// `Splitter::cost`).
///
/// `work` must not own Python objects, because they would be dropped without the GIL: see `ChunkTable`.
fn without_gil<T: Send>(py: Python<'_>, cost: usize, work: impl FnOnce(&Cancel) -> Result<T> + Send) -> PyResult<T> {
    let (mut work, interrupts) = (Some(work), Interrupts::of_this_thread());
    if cost >= LONG_WORK {
        check_memory(RESERVE)?;
        if let Some(result) = interruptible(py, &interrupts, &mut work) {
            return result;
        }
    }
    let work = work.expect("it has not run");
    let signal = Mutex::new(Ok(()));
    let interrupted = || {
        // The exception is stored, and an earlier one is dropped, with the GIL.
        Python::attach(|py| {
            let checked = interrupts.check(py);
            let failed = checked.is_err();
            if failed {
                *signal.lock().expect("no panic while it is held") = checked;
            }
            failed
        })
    };
    let result = py.detach(|| work(&Cancel::polling(&interrupted)));
    signal.into_inner().expect("no panic while it is held")?;
    Ok(result?)
}

/// More threads than this are useless on any machine.
const MAX_THREADS: usize = 256;

/// A number of threads from 1 to `MAX_THREADS`. A larger Python integer, of any size, becomes `MAX_THREADS`.
#[derive(Clone, Copy)]
struct Threads(usize);

impl<'py> FromPyObject<'_, 'py> for Threads {
    type Error = PyErr;

    fn extract(threads: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match threads.extract::<usize>() {
            Ok(threads) if threads > 0 => Ok(Self(threads.min(MAX_THREADS))),
            Err(error) if !error.is_instance_of::<PyOverflowError>(threads.py()) => Err(error),
            Err(_) if threads.gt(0)? => Ok(Self(MAX_THREADS)),
            _ => Err(PyValueError::new_err(format!(
                "threads must be at least 1, or None for all cores, got {}",
                threads.repr()?
            ))),
        }
    }
}

/// Return the number of threads to use: `threads`, or one for each core available to this process.
#[pyfunction]
#[pyo3(signature = (threads = None))]
fn threads_or_all(threads: Option<Threads>) -> usize {
    match threads {
        Some(Threads(threads)) => threads,
        None => std::thread::available_parallelism().map_or(1, |threads| threads.get()),
    }
}

/// Returns the bytes of a numpy array, which other threads can then use. A writeable array is copied; a read-only one,
/// such as a view of a pyarrow buffer, is shared.
fn shared_bytes(array: &PyReadonlyArray1<u8>) -> PyResult<Bytes> {
    struct View {
        _array: Py<PyArray1<u8>>,
        bytes: *const [u8],
    }
    // SAFETY: the bytes are only read, from any thread, and `_array` keeps them alive and in place.
    unsafe impl Send for View {}

    impl AsRef<[u8]> for View {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: `bytes` is the contents of `_array`, which is alive. The array is read-only (checked below), so
            // the bytes do not change.
            unsafe { &*self.bytes }
        }
    }
    let bytes = array.as_slice()?;
    if array.getattr(intern!(array.py(), "flags"))?.getattr(intern!(array.py(), "writeable"))?.is_truthy()? {
        let mut copy = try_with_capacity(bytes.len())?;
        copy.extend_from_slice(bytes);
        return Ok(Bytes::from(copy));
    }
    Ok(Bytes::from_owner(View { bytes, _array: (**array).clone().unbind() }))
}

/// Returns where each item starts and ends in `data`, after checking the offsets.
fn spans(data: &[u8], offsets: &[i64]) -> PyResult<Vec<Range<usize>>> {
    let mut spans = try_with_capacity(offsets.len())?;
    for pair in offsets.windows(2) {
        match (usize::try_from(pair[0]), usize::try_from(pair[1])) {
            (Ok(start), Ok(end)) if start <= end && end <= data.len() => spans.push(start..end),
            _ => return Err(PyValueError::new_err(BAD_OFFSETS)),
        }
    }
    Ok(spans)
}

/// Decodes a block of a text, which starts at byte `offset` of the text. Unless it is the last block, it may end within
/// a character, whose bytes are left to the next block. Any other invalid UTF-8 is an error.
fn block_text(block: &[u8], offset: usize, last: bool) -> Result<&str> {
    let text = match utf8(block) {
        Err(error) if !last && error.error_len().is_none() => std::str::from_utf8(&block[..error.valid_up_to()]),
        text => text,
    };
    text.map_err(|error| Error::utf8(format_args!("the text"), offset, error))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    hash::randomize();
    module.add("InvalidUtf8", module.py().get_type::<InvalidUtf8>())?;
    module.add("PatternError", module.py().get_type::<PatternError>())?;
    module.add_function(wrap_pyfunction!(threads_or_all, module)?)?;
    module.add_function(wrap_pyfunction!(split::patterns, module)?)?;
    module.add_function(wrap_pyfunction!(split::has_scanner, module)?)?;
    module.add_function(wrap_pyfunction!(split::same_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(split::canonical_pattern, module)?)?;
    module.add_function(wrap_pyfunction!(split::matches_empty, module)?)?;
    module.add_function(wrap_pyfunction!(split::explain_pattern, module)?)?;
    module.add_function(wrap_pyfunction!(split::automaton, module)?)?;
    module.add_function(wrap_pyfunction!(split::split_text, module)?)?;
    module.add_function(wrap_pyfunction!(split::normalize, module)?)?;
    module.add_function(wrap_pyfunction!(split::matches_whole, module)?)?;
    module.add_function(wrap_pyfunction!(count::read_counts_csv, module)?)?;
    module.add_function(wrap_pyfunction!(count::is_in_order, module)?)?;
    module.add_class::<count::ChunkTable>()?;
    module.add_class::<count::Sketch>()?;
    module.add("MAX_ID", MAX_ID)?;
    module.add("MAX_MERGES", MAX_MERGES)?;
    module.add_function(wrap_pyfunction!(ranked::parse_ranks, module)?)?;
    module.add_class::<ranked::RankedTokens>()?;
    module.add_class::<ranked::TokenizerJson>()?;
    module.add_class::<train::PairTable>()?;
    module.add_class::<encode::Encoder>()?;
    module.add_function(wrap_pyfunction!(ngram::predict_tokens, module)?)?;
    module.add_class::<Cancellation>()?;
    Ok(())
}
