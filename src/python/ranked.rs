//! The Python class `RankedTokens`, and reading rank files.

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyTuple};

use super::{Array, array, check_python_memory, spans, without_gil};
use crate::encode;
use crate::error::{try_collect, try_push, try_with_capacity};
use crate::files::rank_file::{self, RankFile};
use crate::files::tokenizer_json;
use crate::table::hash::HashSet;

/// Return the tokens of a rank file: their concatenated bytes, the offset of each, and their ranks.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn parse_ranks<'py>(
    py: Python<'py>,
    content: &[u8],
) -> PyResult<(Array<'py, u8>, Array<'py, i64>, Array<'py, u32>)> {
    let RankFile { data, offsets, ranks } = without_gil(py, content.len(), |cancel| rank_file::parse(content, cancel))?;
    Ok((array(py, data)?, array(py, offsets)?, array(py, ranks)?))
}

/// The bytes and the merges of a model, in the order of their ranks. A dict of them would take twenty times the memory.
#[pyclass(module = "batchbpe._core", frozen)]
pub struct RankedTokens(pub encode::RankedTokens);

/// Tokens and their ids.
type Tokens<'py> = Vec<(Bound<'py, PyBytes>, u32)>;

fn to_python<'py>(py: Python<'py>, tokens: &[(impl AsRef<[u8]>, u32)]) -> PyResult<Tokens<'py>> {
    check_python_memory(3 * tokens.len(), 0)?;
    Ok(tokens.iter().map(|(token, id)| (PyBytes::new(py, token.as_ref()), *id)).collect())
}

/// The content of a tokenizer.json.
#[pyclass(module = "batchbpe._core", frozen)]
pub struct TokenizerJson(tokenizer_json::TokenizerJson);

#[pymethods]
impl TokenizerJson {
    #[new]
    fn new(py: Python<'_>, content: &[u8]) -> PyResult<Self> {
        Ok(Self(without_gil(py, content.len(), |_| tokenizer_json::TokenizerJson::parse(content))?))
    }

    /// Everything but the vocabulary and the merges, as JSON.
    #[getter]
    fn rest(&self) -> &str {
        &self.0.rest
    }

    fn __len__(&self) -> usize {
        self.0.n_vocab()
    }

    /// Return the tokens that have ranks, the stop words, the tokens that are only decoded, and the id of each `added`
    /// token in the vocabulary.
    #[allow(clippy::type_complexity)]
    fn tokens<'py>(
        &self,
        py: Python<'py>,
        added: Vec<String>,
        ignore_merges: bool,
        separate: &[u8],
    ) -> PyResult<(RankedTokens, Tokens<'py>, Tokens<'py>, Vec<Option<u32>>)> {
        let cost = self.0.n_vocab() << 6;
        let tokens = without_gil(py, cost, |cancel| self.0.tokens(&added, ignore_merges, separate, cancel))?;
        let (stop_words, decode_only) = (to_python(py, &tokens.stop_words)?, to_python(py, &tokens.decode_only)?);
        Ok((RankedTokens(tokens.ranked), stop_words, decode_only, tokens.added))
    }
}

impl RankedTokens {
    fn from_merges(py: Python<'_>, byte_ids: &[u32; 256], merges: Vec<(u32, u32, u32)>) -> PyResult<Self> {
        let cost = merges.len() << 6;
        Ok(Self(without_gil(py, cost, |_| encode::RankedTokens::from_merges(byte_ids, merges.into_iter()))?))
    }
}

#[pymethods]
impl RankedTokens {
    /// `merges` are pairs of ids, in the order they were made, and the ids they become.
    #[new]
    fn new(py: Python<'_>, byte_ids: [Option<u32>; 256], merges: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut checked = try_with_capacity(merges.len())?;
        for (pair, id) in merges {
            let pair = pair.cast_exact::<PyTuple>()?;
            let (first, last) = pair.extract::<(Bound<PyAny>, Bound<PyAny>)>()?;
            try_push(&mut checked, (integer(&first)?, integer(&last)?, integer(&id)?))?;
        }
        Self::from_merges(py, &byte_ids.map(|id| id.unwrap_or(encode::MISSING)), checked)
    }

    /// Recover the merges from tokens and their ranks, which become their ids. Return also the tokens that no merge
    /// makes.
    #[staticmethod]
    fn from_ranks<'py>(
        py: Python<'py>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        ranks: PyReadonlyArray1<u32>,
    ) -> PyResult<(Self, Tokens<'py>)> {
        let (data, ranks) = (data.as_slice()?, ranks.as_slice()?);
        let spans = spans(data, offsets.as_slice()?)?;
        if spans.len() != ranks.len() {
            return Err(PyValueError::new_err("each token must have one rank"));
        }
        let tokens = try_collect(spans.into_iter().zip(ranks).map(|(span, &rank)| (&data[span], rank)))?;
        let (ranked, others) = without_gil(py, data.len(), |cancel| encode::RankedTokens::from_ranks(tokens, cancel))?;
        Ok((Self(ranked), to_python(py, &others)?))
    }

    /// Return these tokens and those that more pairs become, whose ids start at `next_id`.
    fn extended(
        &self,
        py: Python<'_>,
        first: PyReadonlyArray1<u32>,
        last: PyReadonlyArray1<u32>,
        next_id: u32,
    ) -> PyResult<Self> {
        let byte_ids = self.0.ids[..256].try_into().expect("every byte has an id");
        let (first, last) = (first.as_slice()?, last.as_slice()?);
        let mut merges = try_with_capacity(self.0.merges().len() + first.len())?;
        let more = first.iter().zip(last).zip(next_id..).map(|((&first, &last), id)| (first, last, id));
        merges.extend(self.0.merges().chain(more));
        Self::from_merges(py, byte_ids, merges)
    }

    fn __len__(&self) -> usize {
        self.0.ids.len()
    }

    #[getter]
    fn byte_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.ids[..256].iter().map(|&id| (id != encode::MISSING).then_some(id)))
    }

    #[getter]
    fn largest_id(&self) -> u32 {
        self.0.ids.iter().copied().filter(|&id| id != encode::MISSING).max().unwrap_or(0)
    }

    /// Return those of `ids` that are ids of these tokens.
    fn used(&self, ids: Vec<u32>) -> Vec<u32> {
        let ids: HashSet<u32> = ids.into_iter().collect();
        self.0.ids.iter().copied().filter(|id| ids.contains(id)).collect()
    }

    /// Return the merges as a dict: pairs of ids, in the order of their ranks, and the ids they become.
    fn merges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        check_python_memory(4 * self.0.merges().len(), 0)?;
        let dict = PyDict::new(py);
        for (first, last, id) in self.0.merges() {
            dict.set_item((first, last), id)?;
        }
        Ok(dict)
    }

    /// Return the bytes of each token as a dict, in ascending order of id.
    fn vocab<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        check_python_memory(3 * self.0.ids.len(), 0)?;
        let mut ranks: Vec<usize> = try_collect(0..self.0.ids.len())?;
        ranks.retain(|&rank| self.0.ids[rank] != encode::MISSING);
        ranks.sort_by_key(|&rank| self.0.ids[rank]);
        let dict = PyDict::new(py);
        for rank in ranks {
            dict.set_item(self.0.ids[rank], PyBytes::new(py, self.0.get(rank)))?;
        }
        Ok(dict)
    }
}

/// Returns an integer. Unlike `extract`, it does not accept other types that can be converted to one.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    value.cast_exact::<PyInt>()?.extract()
}
