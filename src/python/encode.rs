//! `Encoder` as Python sees it, and the merges behind ranks.

use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt, PyList, PyString};

use super::{Array, LONG_TEXT, Utf8, block_text, bytes_of, run, spans, threads_or_all};
use crate::count::utf8;
use crate::encode::{self, Special, Which};
use crate::error::{Error, Result};
use crate::parallel;
use crate::split;

/// For tokens of more than one byte, in the order of their ranks: each token and the two it is merged from.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn merges_of_ranks<'py>(
    py: Python<'py>,
    tokens: Vec<Vec<u8>>,
) -> PyResult<Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
    let size = tokens.iter().map(Vec::len).sum();
    let cuts = run(py, size, |cancel| encode::ranks::cuts(&tokens, cancel))?;
    let bytes = |part: &[u8]| PyBytes::new(py, part);
    Ok(tokens.iter().zip(cuts).map(|(token, cut)| (bytes(token), bytes(&token[..cut]), bytes(&token[cut..]))).collect())
}

/// Encodes and decodes. Never changes: any number of threads may use one.
#[pyclass(module = "batchbpe._core", frozen)]
pub struct Encoder {
    pub encoder: encode::Encoder,
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
        let texts = texts.iter().map(Utf8::new).collect::<PyResult<Vec<_>>>()?;
        let texts: Vec<&str> = texts.iter().map(Utf8::get).collect();
        let (size, special) = (texts.iter().map(|text| text.len()).sum(), special(tokens));
        let work = self.encoder.work(size);
        let ids = run(py, work, |cancel| self.encoder.encode_batch(&texts, &special, threads, cancel))?;
        self.warn(py)?;
        Ok(ids)
    }

    fn ids(&self, py: Python<'_>, text: PyBackedStr, tokens: Tokens, threads: Option<i64>) -> PyResult<Vec<u32>> {
        // How many cores there are takes longer to find out than a short text.
        let threads =
            if text.len() < LONG_TEXT { threads_or_all(threads.or(Some(1)))? } else { threads_or_all(threads)? };
        let work = self.encoder.work(text.len());
        let ids = run(py, work, |cancel| self.encoder.encode(&text, &special(tokens), threads, cancel))?;
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

/// The ids of all texts in a row, and where those of each text begin.
#[allow(clippy::type_complexity)]
fn in_a_row<'py>(
    py: Python<'py>,
    ids: &[Vec<u32>],
    threads: Option<i64>,
) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
    let offsets: Vec<i64> = std::iter::once(0)
        .chain(ids.iter().scan(0, |end, ids| {
            *end += ids.len() as i64;
            Some(*end)
        }))
        .collect();
    let threads = threads_or_all(threads)?;
    Ok((py.detach(|| parallel::concat(ids, threads))?.into_pyarray(py), offsets.into_pyarray(py)))
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
        let encoder = run(py, usize::MAX, |cancel| {
            encode::Encoder::new(splitter, &byte_ids, &stop_words, &merges, special_tokens, cancel)
        })?;
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
        in_a_row(py, &self.batch(py, &texts, tokens, threads)?, threads)
    }

    /// As above, of documents as in a pyarrow string array: all bytes, and where each begins.
    #[allow(clippy::type_complexity)]
    fn encode_documents<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        tokens: Tokens,
        threads: Option<i64>,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
        let spans = spans(data.as_slice()?, offsets.as_slice()?)?;
        let data = bytes_of(&data)?;
        let (special, all) = (special(tokens), threads_or_all(threads)?);
        let work = self.encoder.work(spans.iter().map(Range::len).sum());
        let ids = run(py, work, |cancel| {
            let text = |(i, span): (usize, Range<usize>)| {
                let text = utf8(&data[span]);
                text.map_err(|error| Error::utf8(format_args!("document {i}"), 0, error))
            };
            let texts = spans.into_iter().enumerate().map(text).collect::<Result<Vec<_>>>()?;
            self.encoder.encode_batch(&texts, &special, all, cancel)
        })?;
        self.warn(py)?;
        in_a_row(py, &ids, threads)
    }

    /// The ids of chunks in a row, each as it is, not split; and how many each has.
    #[allow(clippy::type_complexity)]
    fn encode_chunks<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        threads: Option<i64>,
    ) -> PyResult<(Array<'py, u32>, Array<'py, u32>)> {
        let data = data.as_slice()?;
        let chunks: Vec<&[u8]> = spans(data, offsets.as_slice()?)?.into_iter().map(|span| &data[span]).collect();
        if chunks.iter().any(|chunk| chunk.is_empty()) {
            return Err(PyValueError::new_err("an empty chunk has no ids: leave it out"));
        }
        let threads = threads_or_all(threads)?;
        let (ids, sizes) = run(py, data.len(), |cancel| self.encoder.encode_each(&chunks, threads, cancel))?;
        Ok((ids.into_pyarray(py), sizes.into_pyarray(py)))
    }

    /// The ids of a block of a text, as far as it may be cut off from what follows (all of it if it is the last), and
    /// how many bytes that is. `offset` is where the block begins, for the message if it is no UTF-8.
    fn encode_block<'py>(
        &self,
        py: Python<'py>,
        block: &[u8],
        offset: usize,
        last: bool,
        tokens: Tokens,
        threads: Option<i64>,
    ) -> PyResult<(Array<'py, u32>, usize)> {
        let (special, threads) = (special(tokens), threads_or_all(threads)?);
        let (ids, end) = run(py, self.encoder.work(block.len()), |cancel| {
            let text = block_text(block, offset, last)?;
            let end = if last { text.len() } else { self.encoder.cut_before(text).unwrap_or(0) };
            Ok((self.encoder.encode(&text[..end], &special, threads, cancel)?, end))
        })?;
        self.warn(py)?;
        Ok((ids.into_pyarray(py), end))
    }

    fn decode<'py>(&self, py: Python<'py>, ids: Vec<u32>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run(py, ids.len(), |cancel| self.encoder.decode(&ids, cancel))?))
    }

    fn decode_numpy<'py>(&self, py: Python<'py>, ids: PyReadonlyArray1<u32>) -> PyResult<Bound<'py, PyBytes>> {
        let ids = ids.as_slice()?;
        Ok(PyBytes::new(py, &run(py, ids.len(), |cancel| self.encoder.decode(ids, cancel))?))
    }
}
