//! The Python class `PairTable`.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use super::encode::Encoder;
use super::{Array, BAD_OFFSETS, Threads, array, spans, threads_or_all, without_gil};
use crate::error::NEVER;
use crate::table::hash::HashSet;
use crate::train::{self, Pair};

/// The counts of all pairs of tokens, kept up to date while batches of them are merged.
#[pyclass(module = "batchbpe._core")]
pub struct PairTable(train::PairTable);

fn pairs(first: &PyReadonlyArray1<u32>, last: &PyReadonlyArray1<u32>) -> PyResult<Vec<Pair>> {
    Ok(first.as_slice()?.iter().copied().zip(last.as_slice()?.iter().copied()).collect())
}

type PairArrays<'py> = (Array<'py, u32>, Array<'py, u32>, Array<'py, i64>);

/// Counts are at most `i64::MAX`, so that Python can subtract them.
fn signed<'py>(py: Python<'py>, counts: impl Iterator<Item = u64>) -> PyResult<Array<'py, i64>> {
    array(py, counts.map(|count| count as i64).collect())
}

fn arrays<'py>(py: Python<'py>, pairs: &[(Pair, u64)]) -> PyResult<PairArrays<'py>> {
    let first: Vec<u32> = pairs.iter().map(|row| row.0.0).collect();
    let last: Vec<u32> = pairs.iter().map(|row| row.0.1).collect();
    Ok((array(py, first)?, array(py, last)?, signed(py, pairs.iter().map(|row| row.1))?))
}

#[pymethods]
impl PairTable {
    /// Create a table from chunks and their counts, without the chunks that are in `skip`.
    ///
    /// The first `groups[0]` chunks are the first group, and so on. A chunk becomes the sequence of its bytes, or of the
    /// ids that `base` merges it to. Stop words of `base` are left out. Pairs with equal counts are sorted by their ids,
    /// or by the `ranks` of their ids.
    #[staticmethod]
    #[pyo3(signature = (
        data, offsets, counts, groups, skip, next_id, merges, overlapping, threads, base = None, ranks = None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn from_chunks(
        py: Python<'_>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        counts: PyReadonlyArray1<u64>,
        groups: Vec<usize>,
        skip: Vec<PyBackedBytes>,
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
        let ends = groups.iter().scan(0usize, |end, size| {
            *end = end.saturating_add(*size);
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        if ends.last() != Some(&counts.len()) || offsets.len() != counts.len() + 1 {
            return Err(PyValueError::new_err("the groups must have as many chunks as there are"));
        }
        let threads = threads_or_all(threads);
        let skip: HashSet<&[u8]> = skip.iter().map(|word| &word[..]).collect();
        let table = without_gil(py, data.len(), |cancel| {
            let spans = offsets.windows(2).map(|span| span[0] as usize..span[1] as usize);
            let mut group = 0;
            let chunks = spans.zip(counts).enumerate().map(|(i, (span, &count))| {
                group += ends[group..].iter().take_while(|&&end| end <= i).count();
                (&data[span], count, group)
            });
            let chunks = chunks.filter(|(chunk, ..)| skip.is_empty() || !skip.contains(chunk));
            let Some(base) = base else {
                let sequences =
                    chunks.map(|(chunk, count, group)| (chunk.iter().map(|&byte| u32::from(byte)), count, group));
                return train::PairTable::new(sequences, ends.len(), next_id, merges, 1, overlapping, threads, cancel);
            };
            let mut failure = None;
            let mut ids = |chunk| {
                let ids = base.encoder.training_ids(chunk, cancel);
                ids.unwrap_or_else(|error| {
                    failure.get_or_insert(error);
                    Vec::new()
                })
            };
            let sequences = chunks.map(|(chunk, count, group)| (ids(chunk).into_iter(), count, group));
            let table = train::PairTable::new(sequences, ends.len(), next_id, merges, 1, overlapping, threads, cancel);
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
            let sequences = runs.map(|(span, &count)| (data[span].chunks_exact(4).map(id), count, 0));
            train::PairTable::new(sequences, 1, next_id, merges, min_count, false, threads, cancel)
        })?))
    }

    /// The id of the next new token.
    #[getter]
    fn next_id(&self) -> u32 {
        self.0.next_id()
    }

    /// The number of tokens in each group.
    #[getter]
    fn lengths(&self) -> Vec<u64> {
        self.0.lengths().to_vec()
    }

    /// Return the n most frequent pairs, of all sequences or of a group: first tokens, last tokens, counts.
    #[pyo3(signature = (n, group = None))]
    fn top<'py>(&mut self, py: Python<'py>, n: usize, group: Option<usize>) -> PyResult<PairArrays<'py>> {
        let cost = if self.0.is_counted() { 0 } else { usize::MAX };
        let top = without_gil(py, cost, |cancel| self.0.top(n, group, cancel))?;
        arrays(py, &top)
    }

    /// Return how often pairs occur, in all sequences or in a group.
    #[pyo3(signature = (first, last, group = None))]
    fn count<'py>(
        &mut self,
        py: Python<'py>,
        first: PyReadonlyArray1<u32>,
        last: PyReadonlyArray1<u32>,
        group: Option<usize>,
    ) -> PyResult<Array<'py, i64>> {
        let pairs = pairs(&first, &last)?;
        let counts = without_gil(py, 0, |cancel| self.0.count(&pairs, group, cancel))?;
        signed(py, counts.into_iter())
    }

    /// Return how often tokens occur, by default all tokens.
    #[pyo3(signature = (tokens = None))]
    fn token_counts<'py>(
        &mut self,
        py: Python<'py>,
        tokens: Option<PyReadonlyArray1<u32>>,
    ) -> PyResult<Array<'py, i64>> {
        let counts = without_gil(py, 0, |cancel| self.0.token_counts(cancel))?;
        let Some(tokens) = tokens else { return signed(py, counts.iter().copied()) };
        let tokens = tokens.as_slice()?;
        signed(py, tokens.iter().map(|&token| counts.get(token as usize).copied().unwrap_or(0)))
    }

    /// Merge the most frequent pair n times. Return the pairs like `top`: fewer if there are no more.
    fn merge_serially<'py>(&mut self, py: Python<'py>, n: usize) -> PyResult<PairArrays<'py>> {
        let merged = without_gil(py, usize::MAX, |cancel| self.0.merge_serially(n, cancel))?;
        arrays(py, &merged)
    }

    /// Merge pairs at once. Return the token that each became, and how often it was merged.
    #[pyo3(signature = (first, last, absent = false))]
    fn merge<'py>(
        &mut self,
        py: Python<'py>,
        first: PyReadonlyArray1<u32>,
        last: PyReadonlyArray1<u32>,
        absent: bool,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
        let batch = pairs(&first, &last)?;
        let merged = py.detach(|| self.0.merge(&batch, absent, &NEVER))?;
        let tokens: Vec<u32> = merged.iter().map(|row| row.0).collect();
        Ok((array(py, tokens)?, signed(py, merged.into_iter().map(|row| row.1))?))
    }

    /// Replace tokens by the pairs they were made from, everywhere.
    fn split(&mut self, py: Python<'_>, tokens: PyReadonlyArray1<u32>) -> PyResult<()> {
        let tokens = tokens.as_slice()?;
        Ok(py.detach(|| self.0.split(tokens))?)
    }

    fn forget(&mut self, first: PyReadonlyArray1<u32>, last: PyReadonlyArray1<u32>) -> PyResult<()> {
        self.0.forget(&pairs(&first, &last)?);
        Ok(())
    }
}
