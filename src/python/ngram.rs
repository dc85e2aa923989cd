//! The function `predict_tokens`.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::{Array, Threads, array, threads_or_all, without_gil};
use crate::ngram;

type Discounts = (f64, f64, f64);

/// Return the bits of each token of a held-out text in an n-gram model of a training text, except the first mark. Also
/// return the number of different n-grams and the discounts by length.
///
/// Documents are between marks, which are larger than all ids. `choices` is the number of tokens that can occur.
#[pyfunction]
pub fn predict_tokens<'py>(
    py: Python<'py>,
    training: PyReadonlyArray1<u32>,
    heldout: PyReadonlyArray1<u32>,
    mark: u32,
    choices: usize,
    order: usize,
    threads: Option<Threads>,
) -> PyResult<(Array<'py, f64>, Vec<usize>, Vec<Discounts>)> {
    let (training, heldout, threads) = (training.as_slice()?, heldout.as_slice()?, threads_or_all(threads));
    let found = without_gil(py, training.len() + heldout.len(), |cancel| {
        ngram::predict(training, heldout, mark, choices, order, threads, cancel)
    })?;
    let discounts = found.discounts.into_iter().map(Into::into).collect();
    Ok((array(py, found.bits)?, found.ngrams, discounts))
}
