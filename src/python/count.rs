//! The Python class `ChunkTable`, and functions on chunk counts.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PySequence, PyString};

use super::encode::Encoder;
use super::{Array, Threads, array, block_text, shared_bytes, spans, threads_or_all, without_gil};
use crate::count::{self, Counting, CutRule, EligibleChunks, SharedText};
use crate::error::{Error, Result, try_collect, try_collect_ok, try_push, try_with_capacity};
use crate::files::counts_csv;
use crate::split::{self, Plan};

/// Counts the chunks of texts and adds existing counts. Unusable after `finish`.
///
/// The texts are Python objects, which must be freed by a thread that has the GIL: without it, PyO3 locks a mutex, and
/// if the process forks at that moment, the child hangs. The core returns the texts that it has counted. They are freed
/// after each call and when the table is dropped.
#[pyclass(module = "batchbpe._core")]
pub struct ChunkTable(Option<count::ChunkTable>);

/// How often pairs of neighboring chunks occur. Pairs share a counter by their hash, so it is an upper bound.
#[pyclass(module = "batchbpe._core", frozen)]
pub struct Sketch(Arc<count::Sketch>);

#[pymethods]
impl Sketch {
    /// The number of chunks in the texts, eligible or not.
    #[getter]
    fn total(&self) -> usize {
        self.0.total
    }

    /// The counters.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Array<'py, u32>> {
        array(py, self.0.counters().to_vec())
    }
}

/// Returns the tokens that are chunks by themselves.
fn eligible_chunks(
    py: Python<'_>,
    encoder: &Encoder,
    ids: &[u32],
    sketch: Option<&Sketch>,
) -> PyResult<EligibleChunks> {
    let encoder = &encoder.encoder;
    without_gil(py, ids.len() << 6, |cancel| {
        let tokens = try_collect_ok(ids.iter().map(|&id| encoder.token(id)))?;
        let (encoded, sizes) = encoder.encode_chunks(&tokens, 1, cancel)?;
        let mut encoded = encoded.iter();
        let mut eligible = try_with_capacity(ids.len())?;
        for ((&id, token), size) in ids.iter().zip(tokens).zip(sizes) {
            if encoded.by_ref().take(size as usize).eq([&id]) {
                eligible.push((token, id));
            }
        }
        EligibleChunks::new(eligible.into_iter(), sketch.map(|sketch| &*sketch.0))
    })
}

impl ChunkTable {
    fn create(
        counting: Counting,
        plan: Plan,
        special_tokens: &[String],
        threads: Option<Threads>,
        max_chunk_bytes: Option<usize>,
    ) -> PyResult<Self> {
        let (splitter, max_chunk_bytes) = (split::Splitter::of(plan)?, max_chunk_bytes.unwrap_or(usize::MAX));
        let threads = threads_or_all(threads);
        Ok(Self(Some(count::ChunkTable::new(counting, splitter, special_tokens, max_chunk_bytes, threads)?)))
    }

    fn table(&mut self) -> PyResult<&mut count::ChunkTable> {
        self.0.as_mut().ok_or_else(|| PyRuntimeError::new_err("this ChunkTable is already finished; create a new one"))
    }

    /// Counts texts. The caller keeps clones of them. `size` is their size in bytes.
    fn add(
        &mut self,
        py: Python<'_>,
        size: usize,
        texts: impl Iterator<Item = Result<SharedText>> + Send,
    ) -> PyResult<()> {
        let table = self.table()?;
        table.drop_spent();
        let added = without_gil(py, table.cost(size), |cancel| table.add(texts, cancel));
        table.drop_spent();
        added
    }
}

#[pymethods]
impl ChunkTable {
    #[new]
    #[pyo3(signature = (pattern, special_tokens, threads, max_chunk_bytes = None))]
    fn new(
        pattern: Plan,
        special_tokens: Vec<String>,
        threads: Option<Threads>,
        max_chunk_bytes: Option<usize>,
    ) -> PyResult<Self> {
        Self::create(Counting::Chunks, pattern, &special_tokens, threads, max_chunk_bytes)
    }

    /// Create a table that counts the pairs of neighboring chunks that are single tokens, in a sketch.
    ///
    /// `eligible` are the ids of the tokens that such a chunk may be.
    #[staticmethod]
    fn of_pairs(
        py: Python<'_>,
        encoder: &Encoder,
        eligible: PyReadonlyArray1<u32>,
        special_tokens: Vec<String>,
        threads: Option<Threads>,
    ) -> PyResult<Self> {
        let eligible = eligible_chunks(py, encoder, eligible.as_slice()?, None)?;
        Self::create(
            Counting::Pairs(Arc::new(eligible)),
            encoder.encoder.plan().clone(),
            &special_tokens,
            threads,
            None,
        )
    }

    /// Create a table that counts runs of neighboring chunks that are single tokens.
    ///
    /// With a sketch of the same texts, which may belong to another encoder, runs are cut between the chunks of pairs
    /// that occur fewer than `min_count` times.
    #[staticmethod]
    #[pyo3(signature = (encoder, eligible, special_tokens, threads, sketch = None, min_count = 1))]
    fn of_runs(
        py: Python<'_>,
        encoder: &Encoder,
        eligible: PyReadonlyArray1<u32>,
        special_tokens: Vec<String>,
        threads: Option<Threads>,
        sketch: Option<&Sketch>,
        min_count: u32,
    ) -> PyResult<Self> {
        let eligible = eligible_chunks(py, encoder, eligible.as_slice()?, sketch)?;
        let rule = CutRule { sketch: sketch.map(|sketch| sketch.0.clone()), min_count };
        Self::create(Counting::Runs(eligible, rule), encoder.encoder.plan().clone(), &special_tokens, threads, None)
    }

    /// The number of chunks found in the texts so far, including repetitions.
    #[getter]
    fn total(&mut self) -> PyResult<usize> {
        Ok(self.table()?.total())
    }

    /// An upper bound on the number of unique chunks so far.
    #[getter]
    fn unique(&mut self) -> PyResult<usize> {
        Ok(self.table()?.unique())
    }

    /// The number of bytes of memory that the chunks take.
    #[getter]
    fn memory(&mut self) -> PyResult<usize> {
        Ok(self.table()?.memory())
    }

    /// Count strings, and return how many bytes of UTF-8 they have.
    fn add_strings(&mut self, py: Python<'_>, texts: Texts) -> PyResult<usize> {
        // SAFETY: `Utf8Text::as_ref` returns the bytes of a `str`.
        let shared = |text: Utf8Text| unsafe { SharedText::new_unchecked(Bytes::from_owner(text)) };
        let texts = try_collect(texts.0.into_iter().map(shared))?;
        let size = texts.iter().map(|text| text.as_str().len()).sum();
        self.add(py, size, texts.iter().cloned().map(Ok))?;
        Ok(size)
    }

    /// Count documents in the layout of a pyarrow string array: their concatenated bytes, and the offset of each.
    fn add_documents(
        &mut self,
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
    ) -> PyResult<()> {
        let spans = spans(data.as_slice()?, offsets.as_slice()?)?;
        let size = spans.iter().map(Range::len).sum();
        let bytes = shared_bytes(&data)?;
        let document = |(i, span): (usize, Range<usize>)| {
            let text = SharedText::new(bytes.slice(span));
            text.map_err(|error| Error::utf8(format_args!("document {i}"), 0, error))
        };
        self.add(py, size, spans.into_iter().enumerate().map(document))
    }

    /// Count a block of a text up to the last place where it can be cut, or all of it if it is the last block.
    ///
    /// Return the number of bytes counted. `offset` is where the block starts, for the error if it is invalid UTF-8.
    fn add_block(&mut self, py: Python<'_>, block: PyBackedBytes, offset: usize, last: bool) -> PyResult<usize> {
        let len = py.detach(|| block_text(&block, offset, last).map(str::len))?;
        // SAFETY: `block_text` has validated the first `len` bytes.
        let text = unsafe { SharedText::new_unchecked(Bytes::from_owner(block).slice(..len)) };
        let end = if last { len } else { self.table()?.cut_before(text.as_str(), 0, len).unwrap_or(0) };
        self.add(py, end, std::iter::once(Ok(text.slice(0..end))))?;
        Ok(end)
    }

    fn add_counts(
        &mut self,
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        counts: PyReadonlyArray1<u64>,
    ) -> PyResult<()> {
        let (data, counts) = (data.as_slice()?, counts.as_slice()?);
        let spans = spans(data, offsets.as_slice()?)?;
        if spans.iter().any(Range::is_empty) {
            return Err(PyValueError::new_err("the counts contain an empty chunk; remove it"));
        }
        let table = self.table()?;
        let chunks = spans.into_iter().map(|span| &data[span]).zip(counts.iter().copied());
        without_gil(py, data.len(), |cancel| table.add_counts(chunks, cancel))
    }

    /// Return the concatenated chunks, their offsets and their counts, sorted by descending count, then by their bytes.
    ///
    /// Return the number of bytes dropped and the number of chunks that were too long as well.
    #[allow(clippy::type_complexity)]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<(Array<'py, u8>, Array<'py, i64>, Array<'py, u64>, usize, usize)> {
        self.table()?;
        let mut table = self.0.take().expect("checked above");
        let (counted, dropped, skipped) = without_gil(py, table.finish_cost(), |cancel| table.finish(cancel))?;
        let offsets = array(py, counted.offsets)?;
        Ok((array(py, counted.data)?, offsets, array(py, counted.counts)?, dropped, skipped))
    }

    /// Return the sketch of a table of pairs.
    fn finish_pairs(&mut self, py: Python<'_>) -> PyResult<Sketch> {
        self.table()?;
        let mut table = self.0.take().expect("checked above");
        Ok(Sketch(Arc::new(without_gil(py, usize::MAX, |cancel| table.finish_pairs(cancel))?)))
    }
}

/// Read a CSV file of the paper's program: return the concatenated chunks, their offsets and counts, and the pattern.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn read_counts_csv(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Array<'_, u8>, Array<'_, i64>, Array<'_, u64>, String)> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let (counted, pattern) = without_gil(py, size as usize, |cancel| counts_csv::read(file, size as usize, cancel))?;
    Ok((array(py, counted.data)?, array(py, counted.offsets)?, array(py, counted.counts)?, pattern))
}

/// Return whether chunks are unique and in the order of `ChunkTable.finish`: by descending count, then by their bytes.
#[pyfunction]
pub fn is_in_order(
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

/// The UTF-8 of a Python string.
///
/// An ASCII string is its own UTF-8. Any other string is encoded into a temporary copy, because Python would keep the
/// UTF-8 that it caches in a string as long as the string itself, and each text is counted only once.
enum Utf8Text {
    Ascii(PyBackedStr),
    Encoded(PyBackedBytes),
}

impl Utf8Text {
    fn new(text: &Bound<'_, PyString>) -> PyResult<Self> {
        Ok(if text.call_method0(intern!(text.py(), "isascii"))?.is_truthy()? {
            Self::Ascii(PyBackedStr::try_from(text.clone())?)
        } else {
            Self::Encoded(PyBackedBytes::from(text.encode_utf8()?))
        })
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Ascii(text) => text,
            // SAFETY: `new` got these bytes from `encode_utf8`, which returns valid UTF-8 in an immutable `bytes`.
            Self::Encoded(bytes) => unsafe { std::str::from_utf8_unchecked(bytes) },
        }
    }
}

/// A Python sequence of strings.
struct Texts(Vec<Utf8Text>);

impl<'py> FromPyObject<'_, 'py> for Texts {
    type Error = PyErr;

    fn extract(texts: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if texts.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("expected a list of strings, got a single one"));
        }
        let texts = texts.cast::<PySequence>()?;
        let mut utf8 = try_with_capacity(texts.len()?)?;
        for text in texts.try_iter()? {
            try_push(&mut utf8, Utf8Text::new(text?.cast::<PyString>()?)?)?;
        }
        Ok(Self(utf8))
    }
}

impl AsRef<[u8]> for Utf8Text {
    fn as_ref(&self) -> &[u8] {
        self.as_str().as_bytes()
    }
}
