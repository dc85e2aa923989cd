//! Functions on patterns: splitting a text, and how a pattern is run.

use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};

use super::{check_python_memory, without_gil};
use crate::error::{try_collect_ok, try_push};
use crate::split::{self, NAMED, Splitter, Tables};

/// Return the names of the named patterns and their regular expressions.
#[pyfunction]
pub fn patterns() -> Vec<(&'static str, &'static str)> {
    NAMED.to_vec()
}

/// Return whether a pattern has a scanner, as the named patterns do. Such a pattern matches all of any text.
#[pyfunction]
pub fn has_scanner(pattern: &str) -> PyResult<bool> {
    Ok(Splitter::new(pattern)?.has_scanner())
}

/// Return whether a pattern has empty matches, which are not chunks here and which other tools treat differently.
#[pyfunction]
pub fn matches_empty(pattern: &str) -> PyResult<bool> {
    Ok(Splitter::new(pattern)?.matches_empty())
}

/// Return the engine that runs a pattern, and why.
#[pyfunction]
pub fn explain_pattern(pattern: &str) -> PyResult<(&'static str, String)> {
    let splitter = Splitter::new(pattern)?;
    let (engine, reason) = splitter.explain();
    Ok((engine, reason.to_owned()))
}

/// A state: the numbers of the next states, whether it is the start, and whether it matches (0: no, 1: yes, 2:
/// depending on what follows).
type State = (Vec<u32>, bool, u8);

/// Return the automaton of a pattern: its sets of characters, the sets of each class, the first character of each range
/// and its class, and the states of each stage. Return what the pattern has instead if it is not regular.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "it is unpacked by one caller")]
pub fn automaton(
    pattern: &str,
) -> PyResult<(Option<&'static str>, Vec<String>, Vec<u128>, Vec<(u32, u8)>, Vec<Vec<State>>)> {
    Splitter::new(pattern)?;
    Ok(match Tables::new(pattern) {
        Err(obstacle) => (Some(obstacle), Vec::new(), Vec::new(), Vec::new(), Vec::new()),
        Ok(Tables { sets, members, ranges, stages }) => {
            let states = |stage: Vec<split::State>| {
                stage.into_iter().map(|state| (state.next, state.is_start, state.matches as u8)).collect()
            };
            (None, sets, members, ranges, stages.into_iter().map(states).collect())
        }
    })
}

/// Split a text into chunks. The default engine is the fastest that can run the pattern.
#[pyfunction]
#[pyo3(signature = (pattern, text, engine = None))]
pub fn split_text<'py>(
    py: Python<'py>,
    pattern: &str,
    text: PyBackedStr,
    engine: Option<&str>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let splitter = match engine {
        Some(engine) => Splitter::with_engine(pattern, engine)?,
        None => Splitter::new(pattern)?,
    };
    let chunks = without_gil(py, splitter.cost(text.len()), |cancel| {
        let mut chunks: Vec<&str> = Vec::new();
        splitter.split(&text, cancel, |chunk| {
            try_push(&mut chunks, chunk)?;
            cancel.check()
        })?;
        Ok(chunks)
    })?;
    check_python_memory(chunks.len(), 2 * text.len())?;
    try_collect_ok(chunks.iter().map(|chunk| Ok(chunk.into_pyobject(py)?.into_any())))
}

/// Return for each token whether the pattern matches all of it at once.
#[pyfunction]
pub fn matches_whole(py: Python<'_>, pattern: &str, tokens: Vec<PyBackedBytes>) -> PyResult<Vec<bool>> {
    let splitter = Splitter::new(pattern)?;
    let size = tokens.iter().map(|token| token.len()).sum();
    without_gil(py, splitter.cost(size), |cancel| {
        try_collect_ok(tokens.iter().map(|token| {
            let Ok(text) = std::str::from_utf8(token) else { return Ok(false) };
            let mut first = None;
            splitter.split(text, cancel, |chunk| {
                first.get_or_insert(chunk);
                Ok(())
            })?;
            cancel.check()?;
            Ok(first == Some(text))
        }))
    })
}
