//! `ChunkTable` as Python sees it, and chunk counts.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use bytes::Bytes;
use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyString;

use super::{Array, Utf8, block_text, bytes_of, run, spans, threads_or_all};
use crate::count::{self, Text};
use crate::counts_csv;
use crate::error::Error;
use crate::split;

/// Counts chunks of texts, or adds counts made before; `finish` ends it.
#[pyclass(module = "batchbpe._core")]
pub struct ChunkTable(Option<count::ChunkTable>);

impl ChunkTable {
    fn table(&mut self) -> PyResult<&mut count::ChunkTable> {
        self.0.as_mut().ok_or_else(|| PyRuntimeError::new_err("this ChunkTable is finished: make a new one"))
    }
}

#[pymethods]
impl ChunkTable {
    #[new]
    #[pyo3(signature = (pattern, special_tokens, threads, max_chunk_bytes = None))]
    fn new(
        pattern: &str,
        special_tokens: Vec<String>,
        threads: Option<i64>,
        max_chunk_bytes: Option<usize>,
    ) -> PyResult<Self> {
        let (splitter, longest) = (split::Splitter::new(pattern)?, max_chunk_bytes.unwrap_or(usize::MAX));
        Ok(Self(Some(count::ChunkTable::new(splitter, &special_tokens, longest, threads_or_all(threads)?)?)))
    }

    /// How many chunks the texts had so far, each as often as it was met.
    #[getter]
    fn total(&mut self) -> PyResult<usize> {
        Ok(self.table()?.total())
    }

    /// How many unique chunks there are so far, or more.
    #[getter]
    fn unique(&mut self) -> PyResult<usize> {
        Ok(self.table()?.unique())
    }

    /// How many bytes of memory the chunks take.
    #[getter]
    fn memory(&mut self) -> PyResult<usize> {
        Ok(self.table()?.memory())
    }

    fn add_strings(&mut self, py: Python<'_>, texts: Vec<Bound<'_, PyString>>) -> PyResult<()> {
        let texts = texts.iter().map(Utf8::new).collect::<PyResult<Vec<_>>>()?;
        let size = texts.iter().map(|text| text.get().len()).sum();
        // SAFETY: `Utf8` is UTF-8.
        let text = |text: Utf8| Ok(unsafe { Text::new_unchecked(Bytes::from_owner(text)) });
        let table = self.table()?;
        run(py, table.work(size), |cancel| table.add(texts.into_iter().map(text), cancel))
    }

    /// Documents as in a pyarrow string array: all bytes, and where each begins.
    fn add_documents(
        &mut self,
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
    ) -> PyResult<()> {
        let table = self.table()?;
        let spans = spans(data.as_slice()?, offsets.as_slice()?)?;
        let size = table.work(spans.iter().map(Range::len).sum());
        let bytes = bytes_of(&data)?;
        run(py, size, |cancel| {
            let text = |(i, span): (usize, Range<usize>)| {
                let text = Text::new(bytes.slice(span));
                text.map_err(|error| Error::utf8(format_args!("document {i}"), 0, error))
            };
            table.add(spans.into_iter().enumerate().map(text), cancel)
        })
    }

    /// A block of a text, as far as it may be cut off from what follows (all of it if it is the last);
    /// returns how many bytes that is.
    /// `offset` is where the block begins, for the message if it is no UTF-8.
    fn add_block(&mut self, py: Python<'_>, block: PyBackedBytes, offset: usize, last: bool) -> PyResult<usize> {
        let table = self.table()?;
        run(py, table.work(block.len()), |cancel| {
            let len = block_text(&block, offset, last)?.len();
            // SAFETY: `block_text` found this much of it to be UTF-8.
            let text = unsafe { Text::new_unchecked(Bytes::from_owner(block).slice(..len)) };
            let end = if last { len } else { table.cut_before(text.get(), 0, len).unwrap_or(0) };
            table.add([Ok(text.part(0..end))], cancel)?;
            Ok(end)
        })
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
            return Err(PyValueError::new_err("an empty chunk has a count: leave it out"));
        }
        let table = self.table()?;
        let chunks = spans.into_iter().map(|span| &data[span]).zip(counts.iter().copied());
        run(py, usize::MAX, |cancel| table.add_counts(chunks, cancel))
    }

    /// The chunks in a row, where each begins, and their counts: commonest first, then by their bytes. Also how many
    /// bytes were dropped, and how many chunks were too long.
    #[allow(clippy::type_complexity)]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<(Array<'py, u8>, Array<'py, i64>, Array<'py, u64>, usize, usize)> {
        self.table()?;
        let table = self.0.take().expect("checked above");
        let (counted, dropped, skipped) = run(py, usize::MAX, |cancel| table.finish(cancel))?;
        let offsets = counted.offsets.into_pyarray(py);
        Ok((counted.data.into_pyarray(py), offsets, counted.counts.into_pyarray(py), dropped, skipped))
    }
}

/// The chunks, offsets and counts in a csv of the paper's program, and their pattern.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn read_counts_csv(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(Array<'_, u8>, Array<'_, i64>, Array<'_, u64>, String)> {
    let file = File::open(path)?;
    let (counted, pattern) = run(py, usize::MAX, |cancel| counts_csv::read(file, cancel))?;
    Ok((counted.data.into_pyarray(py), counted.offsets.into_pyarray(py), counted.counts.into_pyarray(py), pattern))
}

/// Whether chunks are as `ChunkTable.finish` puts them: commonest first, then by their bytes, each once.
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
