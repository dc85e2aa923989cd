//! All of PyO3: the classes that Python sees, conversion, the GIL, signals and errors.
//!
//! Chunks cross the border as three numpy arrays (all bytes in a row, where each chunk begins, its count),
//! never as a Python object each.

use std::ffi::CString;
use std::fmt::Arguments;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt, PyList, PyString};

use crate::count;
use crate::counts_csv;
use crate::encode::{self, Special, Which};
use crate::error::{Cancel, Error, Result};
use crate::parallel;
use crate::split;
use crate::train::{self, Pair};

/// Shorter work is over before anyone can press Ctrl-C: it runs at once, on the caller's thread.
const LONG_TEXT: usize = 1 << 20;

type Array<'py, T> = Bound<'py, PyArray1<T>>;

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(message) => PyValueError::new_err(message),
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
            let worker = scope.spawn(|| {
                let _done = done;
                work(&cancel)
            });
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
    if size < LONG_TEXT {
        return Ok(py.detach(|| work(&Cancel::default()))?);
    }
    interruptible(py, work)
}

/// More threads than this are only a burden, on any machine.
const MOST_THREADS: i64 = 256;

fn threads_or_all(threads: Option<i64>) -> PyResult<usize> {
    match threads {
        Some(threads) if threads < 1 => {
            Err(PyValueError::new_err(format!("threads={threads}: give at least 1, or None for all cores")))
        }
        Some(threads) => Ok(threads.min(MOST_THREADS) as usize),
        None => Ok(std::thread::available_parallelism().map_or(1, |threads| threads.get())),
    }
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

/// The chunks of a text.
#[pyfunction]
fn split_text<'py>(py: Python<'py>, pattern: &str, text: PyBackedStr) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let splitter = split::Splitter::new(pattern)?;
    let chunks = run(py, splitter.work(text.len()), |cancel| {
        let mut chunks: Vec<&str> = Vec::new();
        splitter.split(&text, |chunk| {
            chunks.push(chunk);
            cancel.check()
        })?;
        Ok(chunks)
    })?;
    chunks.into_iter().map(|chunk| Ok(chunk.into_pyobject(py)?.into_any())).collect()
}

/// Many strings of Python as UTF-8. In copies of our own: Python keeps the UTF-8 of a string as long as the string, once
/// it was asked for it.
struct Texts(Vec<PyBackedBytes>);

impl Texts {
    fn new(texts: &[Bound<'_, PyString>]) -> PyResult<Self> {
        Ok(Self(texts.iter().map(|text| Ok(text.encode_utf8()?.into())).collect::<PyResult<_>>()?))
    }

    fn size(&self) -> usize {
        self.0.iter().map(|bytes| bytes.len()).sum()
    }

    fn get(&self) -> Vec<&str> {
        // SAFETY: what `encode_utf8` gives is UTF-8.
        self.0.iter().map(|bytes| unsafe { std::str::from_utf8_unchecked(bytes) }).collect()
    }
}

/// Counts chunks of texts, or adds counts made before; `finish` ends it.
#[pyclass(module = "batchbpe._core")]
struct ChunkTable(Option<count::ChunkTable>);

impl ChunkTable {
    fn table(&self) -> PyResult<&count::ChunkTable> {
        self.0.as_ref().ok_or_else(|| PyRuntimeError::new_err("this ChunkTable is finished: make a new one"))
    }
}

fn offsets_to_slices<'a>(data: &'a [u8], offsets: &[i64]) -> PyResult<Vec<&'a [u8]>> {
    let slice = |pair: &[i64]| {
        let (start, end) = (usize::try_from(pair[0]).ok()?, usize::try_from(pair[1]).ok()?);
        data.get(start..end)
    };
    let slices: Option<Vec<_>> = offsets.windows(2).map(slice).collect();
    slices.ok_or_else(|| PyValueError::new_err("the offsets do not fit the data"))
}

fn utf8<'a>(bytes: &'a [u8], what: Arguments, offset: usize) -> Result<&'a str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = offset + error.valid_up_to();
        Error::invalid(format!("{what} is no UTF-8 at byte {at}; errors=\"replace\" puts U+FFFD there and goes on"))
    })
}

#[pymethods]
impl ChunkTable {
    #[new]
    #[pyo3(signature = (pattern, special_tokens, threads))]
    fn new(pattern: &str, special_tokens: Vec<String>, threads: Option<i64>) -> PyResult<Self> {
        let splitter = split::Splitter::new(pattern)?;
        Ok(Self(Some(count::ChunkTable::new(splitter, &special_tokens, threads_or_all(threads)?)?)))
    }

    fn add_strings(&self, py: Python<'_>, texts: Vec<Bound<'_, PyString>>) -> PyResult<()> {
        let texts = Texts::new(&texts)?;
        let table = self.table()?;
        run(py, table.work(texts.size()), |cancel| table.add_texts(&texts.get(), cancel))
    }

    /// Documents as in a pyarrow string array: all bytes, and where each begins.
    fn add_documents(
        &self,
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
    ) -> PyResult<()> {
        let data = data.as_slice()?;
        let documents: Vec<_> = offsets_to_slices(data, offsets.as_slice()?)?.into_iter().enumerate().collect();
        let table = self.table()?;
        run(py, table.work(data.len()), |cancel| {
            let texts = parallel::map(
                &documents,
                table.threads(),
                || (),
                |(), (i, bytes)| utf8(bytes, format_args!("document {i}"), 0),
            );
            table.add_texts(&texts?, cancel)
        })
    }

    /// A block of a text, as far as it may be cut off from what follows (all of it if it is the last);
    /// returns how many bytes that is.
    /// `offset` is where the block begins, for the message if it is no UTF-8.
    fn add_block(&self, py: Python<'_>, block: &[u8], offset: usize, last: bool) -> PyResult<usize> {
        let table = self.table()?;
        run(py, block.len(), |cancel| {
            let text = match std::str::from_utf8(block) {
                Ok(text) => text,
                // The block may end within a character; anything else is the file's fault.
                Err(error) if !last && error.error_len().is_none() => {
                    utf8(&block[..error.valid_up_to()], format_args!(""), 0)?
                }
                Err(_) => utf8(block, format_args!("the text"), offset)?,
            };
            let end = match last {
                true => text.len(),
                false => table.cut_before(text, 0, text.len()).unwrap_or(0),
            };
            table.add_texts(&[&text[..end]], cancel)?;
            Ok(end)
        })
    }

    fn add_counts(
        &self,
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        counts: PyReadonlyArray1<u64>,
    ) -> PyResult<()> {
        let chunks = offsets_to_slices(data.as_slice()?, offsets.as_slice()?)?;
        let counts = counts.as_slice()?;
        let table = self.table()?;
        if chunks.iter().any(|chunk| chunk.is_empty()) {
            return Err(PyValueError::new_err("an empty chunk has a count: leave it out"));
        }
        run(py, usize::MAX, |cancel| table.add_counts(chunks.iter().copied().zip(counts.iter().copied()), cancel))
    }

    #[getter]
    fn dropped(&self) -> PyResult<usize> {
        Ok(self.table()?.dropped())
    }

    /// The chunks in a row, where each begins, and their counts: commonest first, then by their bytes.
    #[allow(clippy::type_complexity)]
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<(Array<'py, u8>, Array<'py, i64>, Array<'py, u64>)> {
        self.table()?;
        let table = self.0.take().expect("checked above");
        let counted = run(py, usize::MAX, |cancel| table.finish(cancel))?;
        Ok((counted.data.into_pyarray(py), counted.offsets.into_pyarray(py), counted.counts.into_pyarray(py)))
    }
}

/// The chunks, offsets and counts in a csv of the paper's program, and their pattern.
#[pyfunction]
#[allow(clippy::type_complexity)]
fn read_counts_csv(py: Python<'_>, path: PathBuf) -> PyResult<(Array<'_, u8>, Array<'_, i64>, Array<'_, u64>, String)> {
    let (counted, pattern) = run(py, usize::MAX, |cancel| counts_csv::read(&path, cancel))?;
    Ok((counted.data.into_pyarray(py), counted.offsets.into_pyarray(py), counted.counts.into_pyarray(py), pattern))
}

/// Whether chunks are as `ChunkTable.finish` puts them: commonest first, then by their bytes, each once.
#[pyfunction]
fn is_in_order(
    py: Python<'_>,
    data: PyReadonlyArray1<u8>,
    offsets: PyReadonlyArray1<i64>,
    counts: PyReadonlyArray1<u64>,
) -> PyResult<bool> {
    let (data, offsets, counts) = (data.as_slice()?, offsets.as_slice()?, counts.as_slice()?);
    let chunk = |i: usize| data.get(offsets[i] as usize..offsets[i + 1] as usize).unwrap_or_default();
    let in_order = |i: usize| {
        let next = (counts[i].cmp(&counts[i - 1])).then_with(|| chunk(i - 1).cmp(chunk(i)));
        next.is_lt() && !chunk(i).is_empty()
    };
    Ok(py.detach(|| {
        offsets.len() == counts.len() + 1
            && (counts.is_empty() || (counts[counts.len() - 1] > 0 && !chunk(0).is_empty()))
            && (1..counts.len()).all(in_order)
    }))
}

/// The counts of all pairs of tokens, while batches of them are merged.
#[pyclass(module = "batchbpe._core")]
struct PairTable(train::PairTable);

fn pairs(first: &PyReadonlyArray1<u32>, last: &PyReadonlyArray1<u32>) -> PyResult<Vec<Pair>> {
    Ok(first.as_slice()?.iter().copied().zip(last.as_slice()?.iter().copied()).collect())
}

#[pymethods]
impl PairTable {
    /// Chunks become sequences of the ids of their bytes, or of what `base` merges them to: none if they are stop words
    /// of it. Those at the places `skip` are left out.
    #[staticmethod]
    #[pyo3(signature = (data, offsets, counts, skip, next_id, merges, overlapping, threads, base = None))]
    #[allow(clippy::too_many_arguments)]
    fn from_chunks(
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        counts: PyReadonlyArray1<u64>,
        skip: Vec<usize>,
        next_id: u32,
        merges: usize,
        overlapping: bool,
        threads: Option<i64>,
        base: Option<&Encoder>,
    ) -> PyResult<Self> {
        let (data, offsets, counts) = (data.as_slice()?, offsets.as_slice()?, counts.as_slice()?);
        let bounds = offsets.first().copied().unwrap_or(0)..=data.len() as i64;
        if !offsets.is_sorted() || offsets.iter().any(|offset| !bounds.contains(offset)) || offsets.first() < Some(&0) {
            return Err(PyValueError::new_err("the offsets do not fit the data"));
        }
        let threads = threads_or_all(threads)?;
        let skip: std::collections::HashSet<usize> = skip.into_iter().collect();
        Ok(Self(run(py, data.len(), |cancel| {
            let chunks = offsets.windows(2).zip(counts).enumerate().filter(|(i, _)| !skip.contains(i));
            let chunks = chunks.map(|(_, (span, &count))| (&data[span[0] as usize..span[1] as usize], count));
            let Some(base) = base else {
                let sequences = chunks.map(|(chunk, count)| (chunk.iter().map(|&byte| u32::from(byte)), count));
                return train::PairTable::new(sequences, next_id, merges, overlapping, threads, cancel);
            };
            // It fails only if it was cancelled, which the table notices too.
            let merged = |chunk| base.encoder.merged(chunk, cancel).unwrap_or_default().into_iter();
            let sequences = chunks.map(|(chunk, count)| (merged(chunk), count));
            train::PairTable::new(sequences, next_id, merges, overlapping, threads, cancel)
        })?))
    }

    /// The n commonest pairs: first tokens, last tokens, counts.
    #[allow(clippy::type_complexity)]
    fn top<'py>(&mut self, py: Python<'py>, n: usize) -> PyResult<(Array<'py, u32>, Array<'py, u32>, Array<'py, u64>)> {
        let size = if self.0.is_counted() { 0 } else { usize::MAX };
        let top = run(py, size, |cancel| self.0.top(n, cancel))?;
        let first: Vec<u32> = top.iter().map(|row| row.0.0).collect();
        let last: Vec<u32> = top.iter().map(|row| row.0.1).collect();
        let count: Vec<u64> = top.iter().map(|row| row.1).collect();
        Ok((first.into_pyarray(py), last.into_pyarray(py), count.into_pyarray(py)))
    }

    fn merge(&mut self, py: Python<'_>, first: PyReadonlyArray1<u32>, last: PyReadonlyArray1<u32>) -> PyResult<()> {
        let batch = pairs(&first, &last)?;
        Ok(py.detach(|| self.0.merge(&batch))?)
    }

    fn forget(&mut self, first: PyReadonlyArray1<u32>, last: PyReadonlyArray1<u32>) -> PyResult<()> {
        self.0.forget(&pairs(&first, &last)?);
        Ok(())
    }
}

/// For tokens of more than one byte, in the order of their ranks: each token and the two it is merged from.
#[pyfunction]
#[allow(clippy::type_complexity)]
fn merges_of_ranks<'py>(
    py: Python<'py>,
    tokens: Vec<Vec<u8>>,
) -> PyResult<Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
    let cuts = py.detach(|| encode::ranks::cuts(&tokens))?;
    let bytes = |part: &[u8]| PyBytes::new(py, part);
    Ok(tokens.iter().zip(cuts).map(|(token, cut)| (bytes(token), bytes(&token[..cut]), bytes(&token[cut..]))).collect())
}

/// Encodes and decodes. Never changes: any number of threads may use one.
#[pyclass(module = "batchbpe._core", frozen)]
struct Encoder {
    encoder: encode::Encoder,
    /// The ids as Python integers. Making one anew for each token takes longer than encoding.
    integers: PyOnceLock<Vec<Py<PyInt>>>,
    warned: AtomicBool,
}

/// Ids from here on are rare and may be large: special tokens.
const INTEGERS: usize = 1 << 19;

impl Encoder {
    fn list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let number = self.encoder.n_vocab().min(INTEGERS) as u32;
        let make = |id: u32| {
            let Ok(integer) = id.into_pyobject(py);
            integer.unbind()
        };
        let integers = self.integers.get_or_init(py, || (0..number).map(make).collect());
        let integer = |&id: &u32| integers.get(id as usize).map_or_else(|| make(id), |integer| integer.clone_ref(py));
        PyList::new(py, ids.iter().map(integer))
    }

    fn batch(
        &self,
        py: Python<'_>,
        texts: &[Bound<'_, PyString>],
        tokens: Tokens,
        threads: Option<i64>,
    ) -> PyResult<Vec<Vec<u32>>> {
        let threads = threads_or_all(threads)?;
        let texts = Texts::new(texts)?;
        let special = special(tokens);
        let ids = run(py, texts.size(), |cancel| self.encoder.encode_batch(&texts.get(), &special, threads, cancel))?;
        self.warn(py)?;
        Ok(ids)
    }

    fn ids(&self, py: Python<'_>, text: PyBackedStr, tokens: Tokens, threads: Option<i64>) -> PyResult<Vec<u32>> {
        let threads = if text.len() < LONG_TEXT { 1 } else { threads_or_all(threads)? };
        let ids = run(py, text.len(), |cancel| self.encoder.encode(&text, &special(tokens), threads, cancel))?;
        self.warn(py)?;
        Ok(ids)
    }

    /// Says once that text was dropped.
    fn warn(&self, py: Python<'_>) -> PyResult<()> {
        let dropped = self.encoder.dropped();
        if dropped == 0 || self.warned.swap(true, Relaxed) {
            return Ok(());
        }
        let message =
            format!("{dropped} bytes lie between the matches of the pattern and are dropped: they do not decode");
        let message = CString::new(message).expect("no zero byte");
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 2)
    }
}

/// The special tokens that are tokens in a text, and those that are a mistake there. Nothing stands for none and all.
type Tokens = Option<(Vec<String>, Vec<String>)>;

fn special(tokens: Tokens) -> Special {
    match tokens {
        Some((allowed, forbidden)) => Special { allowed: Which::These(allowed), forbidden: Which::These(forbidden) },
        None => Special { allowed: Which::These(Vec::new()), forbidden: Which::All },
    }
}

#[pymethods]
impl Encoder {
    #[new]
    fn new(
        py: Python<'_>,
        pattern: &str,
        byte_ids: [u32; 256],
        stop_words: Vec<(Vec<u8>, u32)>,
        merges: Vec<(u32, u32, u32)>,
        special_tokens: Vec<(String, u32)>,
    ) -> PyResult<Self> {
        let splitter = split::Splitter::new(pattern)?;
        let encoder =
            run(py, usize::MAX, |_| encode::Encoder::new(splitter, &byte_ids, &stop_words, &merges, special_tokens))?;
        Ok(Self { encoder, integers: PyOnceLock::new(), warned: AtomicBool::new(false) })
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: PyBackedStr,
        tokens: Tokens,
        threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.list(py, &self.ids(py, text, tokens, threads)?)
    }

    fn encode_to_numpy<'py>(
        &self,
        py: Python<'py>,
        text: PyBackedStr,
        tokens: Tokens,
        threads: Option<i64>,
    ) -> PyResult<Array<'py, u32>> {
        Ok(self.ids(py, text, tokens, threads)?.into_pyarray(py))
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        tokens: Tokens,
        threads: Option<i64>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        self.batch(py, &texts, tokens, threads)?.into_iter().map(|ids| self.list(py, &ids)).collect()
    }

    /// The ids of all texts in a row, and where those of each text begin.
    #[allow(clippy::type_complexity)]
    fn encode_batch_to_numpy<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<Bound<'py, PyString>>,
        tokens: Tokens,
        threads: Option<i64>,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
        let ids = self.batch(py, &texts, tokens, threads)?;
        let offsets: Vec<i64> = std::iter::once(0)
            .chain(ids.iter().scan(0, |end, ids| {
                *end += ids.len() as i64;
                Some(*end)
            }))
            .collect();
        let threads = threads_or_all(threads)?;
        Ok((py.detach(|| parallel::concat(&ids, threads)).into_pyarray(py), offsets.into_pyarray(py)))
    }

    fn decode<'py>(&self, py: Python<'py>, ids: Vec<u32>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run(py, ids.len(), |cancel| self.encoder.decode(&ids, cancel))?))
    }

    fn decode_numpy<'py>(&self, py: Python<'py>, ids: PyReadonlyArray1<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let ids = ids.as_slice()?;
        Ok(PyBytes::new(py, &run(py, ids.len(), |cancel| self.encoder.decode(ids, cancel))?))
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(patterns, module)?)?;
    module.add_function(wrap_pyfunction!(has_scanner, module)?)?;
    module.add_function(wrap_pyfunction!(split_text, module)?)?;
    module.add_function(wrap_pyfunction!(read_counts_csv, module)?)?;
    module.add_function(wrap_pyfunction!(is_in_order, module)?)?;
    module.add_class::<ChunkTable>()?;
    module.add_function(wrap_pyfunction!(merges_of_ranks, module)?)?;
    module.add_class::<PairTable>()?;
    module.add_class::<Encoder>()?;
    Ok(())
}
