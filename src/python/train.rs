//! The Python class `PairTable`.

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::encode::Encoder;
use super::{Array, BAD_OFFSETS, Threads, spans, threads_or_all, without_gil};
use crate::table::hash::HashSet;
use crate::train::{self, Pair};

/// The counts of all pairs of tokens, kept up to date while batches of them are merged.
#[pyclass(module = "batchbpe._core")]
pub struct PairTable(train::PairTable);

fn pairs(first: &PyReadonlyArray1<u32>, last: &PyReadonlyArray1<u32>) -> PyResult<Vec<Pair>> {
    Ok(first.as_slice()?.iter().copied().zip(last.as_slice()?.iter().copied()).collect())
}

type PairArrays<'py> = (Array<'py, u32>, Array<'py, u32>, Array<'py, u64>);

fn arrays<'py>(py: Python<'py>, pairs: &[(Pair, u64)]) -> PairArrays<'py> {
    let first: Vec<u32> = pairs.iter().map(|row| row.0.0).collect();
    let last: Vec<u32> = pairs.iter().map(|row| row.0.1).collect();
    let count: Vec<u64> = pairs.iter().map(|row| row.1).collect();
    (first.into_pyarray(py), last.into_pyarray(py), count.into_pyarray(py))
}

#[pymethods]
impl PairTable {
    /// Create a table from chunks and their counts, without the chunks whose indices are in `skip`.
    ///
    /// A chunk becomes the sequence of its bytes, or of the ids that `base` merges it to. Stop words of `base` are left
    /// out. Pairs with equal counts are sorted by their ids, or by the `ranks` of their ids.
    #[staticmethod]
    #[pyo3(signature = (data, offsets, counts, skip, next_id, merges, overlapping, threads, base = None, ranks = None))]
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
        threads: Option<Threads>,
        base: Option<&Encoder>,
        ranks: Option<Vec<u32>>,
    ) -> PyResult<Self> {
        let (data, offsets, counts) = (data.as_slice()?, offsets.as_slice()?, counts.as_slice()?);
        let (first, last) = (offsets.first().unwrap_or(&0), offsets.last().unwrap_or(&0));
        if *first < 0 || !offsets.is_sorted() || *last > data.len() as i64 {
            return Err(PyValueError::new_err(BAD_OFFSETS));
        }
        let threads = threads_or_all(threads);
        let skip: HashSet<usize> = skip.into_iter().collect();
        let table = without_gil(py, data.len(), |cancel| {
            let chunks = offsets.windows(2).zip(counts).enumerate().filter(|(i, _)| !skip.contains(i));
            let chunks = chunks.map(|(_, (span, &count))| (&data[span[0] as usize..span[1] as usize], count));
            let Some(base) = base else {
                let sequences = chunks.map(|(chunk, count)| (chunk.iter().map(|&byte| u32::from(byte)), count));
                return train::PairTable::new(sequences, next_id, merges, 1, overlapping, threads, cancel);
            };
            let mut failure = None;
            let mut ids = |chunk| {
                let ids = base.encoder.training_ids(chunk, cancel);
                ids.unwrap_or_else(|error| {
                    failure.get_or_insert(error);
                    Vec::new()
                })
            };
            let sequences = chunks.map(|(chunk, count)| (ids(chunk).into_iter(), count));
            let table = train::PairTable::new(sequences, next_id, merges, 1, overlapping, threads, cancel);
            failure.map_or(table, Err)
        })?;
        Ok(Self(table.break_ties_by(ranks.unwrap_or_default())))
    }

    /// Create a table from runs of chunks and their counts. `data` has the ids of all runs, four bytes each.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn from_runs(
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        counts: PyReadonlyArray1<u64>,
        next_id: u32,
        merges: usize,
        min_count: u64,
        threads: Option<Threads>,
    ) -> PyResult<Self> {
        let (data, counts) = (data.as_slice()?, counts.as_slice()?);
        let spans = spans(data, offsets.as_slice()?)?;
        let id = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("four bytes"));
        if spans.len() != counts.len()
            || spans.iter().any(|span| span.len() % 4 != 0)
            || data.chunks_exact(4).any(|bytes| id(bytes) >= next_id)
        {
            return Err(PyValueError::new_err("the runs are damaged; count them again"));
        }
        let threads = threads_or_all(threads);
        Ok(Self(without_gil(py, data.len(), |cancel| {
            let runs = spans.into_iter().zip(counts);
            let sequences = runs.map(|(span, &count)| (data[span].chunks_exact(4).map(id), count));
            train::PairTable::new(sequences, next_id, merges, min_count, false, threads, cancel)
        })?))
    }

    /// Return the n most frequent pairs: first tokens, last tokens, counts.
    fn top<'py>(&mut self, py: Python<'py>, n: usize) -> PyResult<PairArrays<'py>> {
        let cost = if self.0.is_counted() { 0 } else { usize::MAX };
        let top = without_gil(py, cost, |cancel| self.0.top(n, cancel))?;
        Ok(arrays(py, &top))
    }

    /// Merge the most frequent pair n times. Return the pairs like `top`: fewer if there are no more.
    fn merge_serially<'py>(&mut self, py: Python<'py>, n: usize) -> PyResult<PairArrays<'py>> {
        let merged = without_gil(py, usize::MAX, |cancel| self.0.merge_serially(n, cancel))?;
        Ok(arrays(py, &merged))
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
