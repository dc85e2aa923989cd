//! Functions on patterns: splitting a text, and how a pattern is run.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyString;

use super::{check_python_memory, without_gil};
use crate::error::{try_collect_ok, try_push};
use crate::split::{self, Behavior, Form, NAMED, Plan, Splitter, Step, Tables};

/// A Python `Split`, or a string: a regular expression alone.
impl<'py> FromPyObject<'_, 'py> for Plan {
    type Error = PyErr;

    fn extract(split: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = split.py();
        if let Ok(pattern) = split.extract::<&str>() {
            return Ok(pattern.into());
        }
        let step = |step: PyResult<Bound<'py, PyAny>>| {
            let step = step?;
            Ok(Step {
                pattern: step.getattr(intern!(py, "pattern"))?.extract()?,
                behavior: choice(&Behavior::ALL, &step.getattr(intern!(py, "behavior"))?)?,
                invert: step.getattr(intern!(py, "invert"))?.extract()?,
            })
        };
        let normalization = split.getattr(intern!(py, "normalization"))?;
        Ok(Plan {
            pattern: split.getattr(intern!(py, "pattern"))?.extract()?,
            steps: split.getattr(intern!(py, "steps"))?.try_iter()?.map(step).collect::<PyResult<_>>()?,
            normalization: if normalization.eq("none")? { None } else { Some(choice(&Form::ALL, &normalization)?) },
            prefix_space: split.getattr(intern!(py, "prefix_space"))?.extract()?,
        })
    }
}

/// Returns the value with a name.
fn choice<T: Copy>(choices: &[(&str, T)], name: &Bound<'_, PyAny>) -> PyResult<T> {
    let name: String = name.extract()?;
    let found = choices.iter().find(|choice| choice.0 == name);
    found.map(|choice| choice.1).ok_or_else(|| PyValueError::new_err(format!("unknown choice: {name}")))
}

/// Return the names of the named patterns and their regular expressions.
#[pyfunction]
pub fn patterns() -> Vec<(&'static str, &'static str)> {
    NAMED.to_vec()
}

/// Return whether a pattern has a scanner, as the named patterns do. Such a pattern matches all of any text.
#[pyfunction]
pub fn has_scanner(pattern: Plan) -> PyResult<bool> {
    Ok(Splitter::of(pattern)?.has_scanner())
}

/// Return whether a pattern has empty matches, which are not chunks here and which other tools treat differently.
#[pyfunction]
pub fn matches_empty(pattern: Plan) -> PyResult<bool> {
    Ok(Splitter::of(pattern)?.matches_empty())
}

/// Return whether two patterns are known to give the same chunks of every text.
#[pyfunction]
pub fn same_chunks(pattern: &str, other: &str) -> PyResult<bool> {
    Ok(split::same_chunks(pattern, other)?)
}

/// Return the name of the named pattern that is known to give the same chunks of every text, if there is one.
#[pyfunction]
pub fn canonical_pattern(pattern: &str) -> PyResult<Option<&'static str>> {
    Ok(split::name_of(pattern)?)
}

/// Return the engine that runs a pattern, and why.
#[pyfunction]
pub fn explain_pattern(pattern: Plan) -> PyResult<(&'static str, String)> {
    let splitter = Splitter::of(pattern)?;
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
    pattern: Plan,
    text: PyBackedStr,
    engine: Option<&str>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let splitter = match engine {
        Some(engine) => Splitter::with_engine(&pattern.pattern, engine)?,
        None => Splitter::of(pattern)?,
    };
    let text = py.detach(|| splitter.normalize(&text));
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

/// Return the text that is split in place of `text`.
#[pyfunction]
pub fn normalize<'py>(py: Python<'py>, pattern: Plan, text: PyBackedStr) -> PyResult<Bound<'py, PyString>> {
    let splitter = Splitter::of(pattern)?;
    let normalized = without_gil(py, splitter.cost(text.len()), |_| Ok(splitter.normalize(&text)))?;
    check_python_memory(1, 4 * normalized.len())?;
    Ok(PyString::new(py, &normalized))
}

/// Return for each token whether the pattern matches all of it at once.
#[pyfunction]
pub fn matches_whole(py: Python<'_>, pattern: Plan, tokens: Vec<PyBackedBytes>) -> PyResult<Vec<bool>> {
    let splitter = Splitter::of(pattern)?;
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
