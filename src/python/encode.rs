//! The Python class `Encoder`.

use std::ffi::CString;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyInt, PyList, PySequence, PyString};

use super::ranked::RankedTokens;
use super::{
    Array, LONG_WORK, Threads, array, block_text, check_python_memory, shared_bytes, spans, threads_or_all, without_gil,
};
use crate::count::utf8;
use crate::encode::{self, SpecialRules, SpecialSet};
use crate::error::{Error, check_memory, try_collect, try_collect_ok};
use crate::split;

/// Encodes text and decodes ids. It is immutable, so any number of threads can use it.
#[pyclass(module = "batchbpe._core", frozen)]
pub struct Encoder {
    pub encoder: encode::Encoder,
    /// The ids as Python integers. Creating an integer for each token of a text would take longer than encoding it.
    integers: PyOnceLock<Vec<Py<PyInt>>>,
    /// For uniform sampling. Few encoders need it.
    token_tree: PyOnceLock<encode::TokenTree>,
    warned: AtomicBool,
}

/// Lists of fewer ids are built without checking that there is memory for them.
const MIN_CHECKED_IDS: usize = 1 << 12;
/// The number of Python integers to keep. Larger ids are rare: they are mostly those of special tokens.
const MAX_INTEGERS: usize = 1 << 19;

/// The memory of a tuple of two integers that are not among those kept, and of its place in a list.
const OFFSETS_BYTES: usize = 128;

fn new_integer(py: Python<'_>, value: u32) -> Bound<'_, PyInt> {
    let Ok(integer) = value.into_pyobject(py);
    integer
}

/// Returns an integer of the list `kept`, or a new one.
fn integer<'py>(py: Python<'py>, kept: &[Py<PyInt>], value: u32) -> Bound<'py, PyInt> {
    kept.get(value as usize).map_or_else(|| new_integer(py, value), |integer| integer.bind(py).clone())
}

/// Returns the number of threads for a text of `size` bytes.
fn threads_for(size: usize, threads: Option<Threads>) -> usize {
    // Finding the number of cores takes longer than encoding a short text.
    threads_or_all(if size < LONG_WORK { threads.or(Some(Threads(1))) } else { threads })
}

impl Encoder {
    fn integers(&self, py: Python<'_>) -> PyResult<&[Py<PyInt>]> {
        let len = self.encoder.n_vocab().min(MAX_INTEGERS) as u32;
        let integers = self.integers.get_or_try_init(py, || {
            check_python_memory(len as usize, 0)?;
            Ok::<_, PyErr>(try_collect((0..len).map(|id| new_integer(py, id).unbind()))?)
        })?;
        Ok(integers)
    }

    fn to_list<'py>(&self, py: Python<'py>, ids: &[u32]) -> PyResult<Bound<'py, PyList>> {
        let integers = self.integers(py)?;
        // Asking for a little memory would take longer than a short text does.
        if ids.len() >= MIN_CHECKED_IDS {
            let new_integers = ids.iter().filter(|&&id| id as usize >= integers.len()).count();
            check_memory(size_of_val(ids) * 2 + new_integers * size_of::<[u64; 4]>())?;
        }
        PyList::new(py, ids.iter().map(|&id| integer(py, integers, id)))
    }

    fn to_tuples<'py>(&self, py: Python<'py>, offsets: &[encode::Offsets]) -> PyResult<Bound<'py, PyList>> {
        let integers = self.integers(py)?;
        let tuple = |&(start, end): &encode::Offsets| {
            let (start, end) = (integer(py, integers, start), integer(py, integers, end));
            // SAFETY: the pointers are those of objects, and the call returns a new reference, or null with an exception
            // set. The garbage collector need not track a tuple of integers, and would stop doing so by itself, but
            // visiting millions of them first takes longer than creating them.
            unsafe {
                let tuple = ffi::PyTuple_Pack(2, start.as_ptr(), end.as_ptr());
                let tuple = Bound::from_owned_ptr_or_err(py, tuple)?;
                ffi::PyObject_GC_UnTrack(tuple.as_ptr().cast());
                Ok::<_, PyErr>(tuple)
            }
        };
        PyList::new(py, try_collect_ok(offsets.iter().map(tuple))?)
    }

    fn encode_texts(
        &self,
        py: Python<'_>,
        texts: &[PyBackedStr],
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<(Vec<u32>, Vec<i64>)> {
        let texts: Vec<&str> = try_collect(texts.iter().map(|text| &text[..]))?;
        let (size, rules) = (texts.iter().map(|text| text.len()).sum(), special_rules(tokens));
        let (cost, threads) = (self.encoder.cost(size), threads_for(size, threads));
        let ids = without_gil(py, cost, |cancel| self.encoder.encode_batch(&texts, &rules, threads, cancel))?;
        self.warn_if_dropped(py)?;
        Ok(ids)
    }

    fn encode_text(
        &self,
        py: Python<'_>,
        text: PyBackedStr,
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<Vec<u32>> {
        let (cost, rules, threads) =
            (self.encoder.cost(text.len()), special_rules(tokens), threads_for(text.len(), threads));
        let ids = without_gil(py, cost, |cancel| self.encoder.encode(&text, &rules, threads, cancel))?;
        self.warn_if_dropped(py)?;
        Ok(ids)
    }

    fn decode_ids(&self, py: Python<'_>, ids: &Ids, skip_special: bool) -> PyResult<Vec<u8>> {
        let ids = match ids {
            Ids::Array(array) => array.as_slice()?,
            Ids::List(ids) => ids,
        };
        without_gil(py, ids.len(), |cancel| {
            if skip_special {
                self.encoder.decode_without_special(ids, cancel)
            } else {
                self.encoder.decode(ids, cancel)
            }
        })
    }

    /// Warns, once per encoder, if text was dropped.
    fn warn_if_dropped(&self, py: Python<'_>) -> PyResult<()> {
        let (dropped, missing) = (self.encoder.dropped(), self.encoder.missing());
        if dropped + missing == 0 || self.warned.swap(true, Relaxed) {
            return Ok(());
        }
        let bytes = |count| if count == 1 { "1 byte".to_owned() } else { format!("{count} bytes") };
        let reason = match dropped {
            0 => format!("the vocabulary lacks {} of the text", bytes(missing)),
            _ => format!("the pattern does not match {} of the text", bytes(dropped)),
        };
        let message = format!("{reason}; decoding will not restore them");
        let message = CString::new(message).expect("the message has no zero byte");
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 2)
    }
}

/// The special tokens allowed and disallowed in a text. `None` allows none and disallows all, "all" the opposite, and
/// with "none", special tokens are ordinary text.
type TokenSets = Option<Sets>;

enum Sets {
    These(Vec<String>, Vec<String>),
    All,
}

impl<'py> FromPyObject<'_, 'py> for Sets {
    type Error = PyErr;

    fn extract(sets: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match sets.cast::<PyString>() {
            Ok(name) if *name == "none" => Ok(Self::These(Vec::new(), Vec::new())),
            Ok(name) if *name == "all" => Ok(Self::All),
            Ok(name) => Err(PyValueError::new_err(format!("expected \"all\", \"none\" or two lists, got {name:?}"))),
            Err(_) => sets.extract().map(|(allowed, disallowed)| Self::These(allowed, disallowed)),
        }
    }
}

fn special_rules(tokens: TokenSets) -> SpecialRules {
    use SpecialSet::{All, These};
    match tokens {
        Some(Sets::These(allowed, disallowed)) => {
            SpecialRules { allowed: These(allowed), disallowed: These(disallowed) }
        }
        Some(Sets::All) => SpecialRules { allowed: All, disallowed: These(Vec::new()) },
        None => SpecialRules { allowed: These(Vec::new()), disallowed: All },
    }
}

/// Flags of a token: lstrip, rstrip, single_word and normalized.
type Flags = [bool; 4];

fn found_tokens(tokens: Vec<(String, u32, Flags)>) -> Vec<encode::FoundToken> {
    let flags =
        |[lstrip, rstrip, single_word, normalized]: Flags| encode::Flags { lstrip, rstrip, single_word, normalized };
    tokens.into_iter().map(|(name, id, all)| encode::FoundToken { name, id, flags: flags(all) }).collect()
}

#[pymethods]
impl Encoder {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one for each field of a model")]
    fn new(
        py: Python<'_>,
        pattern: split::Plan,
        tokens: &RankedTokens,
        stop_words: Vec<(Vec<u8>, u32)>,
        special: Vec<(String, u32, Flags)>,
        added: Vec<(String, u32, Flags)>,
        phrases: Vec<(Vec<u32>, u32)>,
        decode_only: Vec<(Vec<u8>, u32)>,
        hidden: Vec<u32>,
    ) -> PyResult<Self> {
        let splitter = split::Splitter::of(pattern)?;
        let (special, added) = (found_tokens(special), found_tokens(added));
        let others = encode::OtherTokens { stop_words, special, added, phrases, decode_only, hidden };
        let encoder = without_gil(py, usize::MAX, |cancel| encode::Encoder::new(splitter, &tokens.0, others, cancel))?;
        Ok(Self { encoder, integers: PyOnceLock::new(), token_tree: PyOnceLock::new(), warned: AtomicBool::new(false) })
    }

    fn encode<'py>(
        &self,
        py: Python<'py>,
        text: PyBackedStr,
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyList>> {
        self.to_list(py, &self.encode_text(py, text, tokens, threads)?)
    }

    /// Encode bytes that may be invalid UTF-8, in which special tokens are ordinary text.
    fn encode_bytes<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        threads: Option<Threads>,
    ) -> PyResult<Bound<'py, PyList>> {
        let threads = threads_or_all(threads);
        let cost = self.encoder.cost(data.len());
        let ids = without_gil(py, cost, |cancel| self.encoder.encode_bytes(data, threads, cancel))?;
        self.warn_if_dropped(py)?;
        self.to_list(py, &ids)
    }

    fn encode_to_numpy<'py>(
        &self,
        py: Python<'py>,
        text: PyBackedStr,
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<Array<'py, u32>> {
        array(py, self.encode_text(py, text, tokens, threads)?)
    }

    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyBackedStr>,
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<Vec<Bound<'py, PyList>>> {
        let (ids, offsets) = self.encode_texts(py, &texts, tokens, threads)?;
        drop(texts);
        check_python_memory(offsets.len(), 8 * ids.len())?;
        let spans = offsets.windows(2).map(|span| &ids[span[0] as usize..span[1] as usize]);
        try_collect_ok(spans.map(|ids| self.to_list(py, ids)))
    }

    /// Return the concatenated ids of all texts, and where the ids of each text start.
    #[allow(clippy::type_complexity)]
    fn encode_batch_to_numpy<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyBackedStr>,
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
        let (ids, offsets) = self.encode_texts(py, &texts, tokens, threads)?;
        Ok((array(py, ids)?, array(py, offsets)?))
    }

    /// Encode texts at random: `dropout` is the probability of dropping a merge, or `None` for uniform sampling.
    ///
    /// Return what `encode_batch_to_numpy` does.
    #[allow(clippy::type_complexity)]
    fn encode_sampled<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyBackedStr>,
        tokens: TokenSets,
        threads: Option<Threads>,
        dropout: Option<f64>,
        seed: u64,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
        let method = match dropout {
            Some(probability) => encode::Method::Dropout(probability),
            None => encode::Method::Uniform(self.token_tree.get_or_try_init(py, || self.encoder.token_tree())?),
        };
        let sampling = encode::Sampling { method, seed };
        let texts: Vec<&str> = try_collect(texts.iter().map(|text| &text[..]))?;
        let (size, rules) = (texts.iter().map(|text| text.len()).sum(), special_rules(tokens));
        let (cost, threads) = (self.encoder.cost(size), threads_for(size, threads));
        let (ids, offsets) =
            without_gil(py, cost, |cancel| self.encoder.encode_sampled(&texts, &rules, &sampling, threads, cancel))?;
        self.warn_if_dropped(py)?;
        Ok((array(py, ids)?, array(py, offsets)?))
    }

    /// Encode documents in the layout of a pyarrow string array: their concatenated bytes, and the offset of each.
    ///
    /// Return the concatenated ids of all documents, and where the ids of each document start.
    #[allow(clippy::type_complexity)]
    fn encode_documents<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>)> {
        let spans = spans(data.as_slice()?, offsets.as_slice()?)?;
        let data = shared_bytes(&data)?;
        let (rules, threads) = (special_rules(tokens), threads_or_all(threads));
        let cost = self.encoder.cost(spans.iter().map(Range::len).sum());
        let (ids, offsets) = without_gil(py, cost, |cancel| {
            let document = |(i, span): (usize, Range<usize>)| {
                let text = utf8(&data[span]);
                text.map_err(|error| Error::utf8(format_args!("document {i}"), 0, error))
            };
            let texts = try_collect_ok(spans.into_iter().enumerate().map(document))?;
            self.encoder.encode_batch(&texts, &rules, threads, cancel)
        })?;
        self.warn_if_dropped(py)?;
        Ok((array(py, ids)?, array(py, offsets)?))
    }

    /// Encode chunks as they are, without splitting. Return their concatenated ids, and the number of ids of each.
    #[allow(clippy::type_complexity)]
    fn encode_chunks<'py>(
        &self,
        py: Python<'py>,
        data: PyReadonlyArray1<u8>,
        offsets: PyReadonlyArray1<i64>,
        threads: Option<Threads>,
    ) -> PyResult<(Array<'py, u32>, Array<'py, u32>)> {
        let data = data.as_slice()?;
        let spans = spans(data, offsets.as_slice()?)?;
        let chunks: Vec<&[u8]> = try_collect(spans.into_iter().map(|span| &data[span]))?;
        if chunks.iter().any(|chunk| chunk.is_empty()) {
            return Err(PyValueError::new_err("cannot encode an empty chunk; remove it"));
        }
        let threads = threads_or_all(threads);
        let (ids, sizes) = without_gil(py, data.len(), |cancel| self.encoder.encode_chunks(&chunks, threads, cancel))?;
        Ok((array(py, ids)?, array(py, sizes)?))
    }

    /// Encode a block of a text up to the last place where it can be cut, or all of it if it is the last block.
    ///
    /// Return the ids and the number of bytes encoded. `offset` is where the block starts, for the error if it is
    /// invalid UTF-8.
    fn encode_block<'py>(
        &self,
        py: Python<'py>,
        block: &[u8],
        offset: usize,
        last: bool,
        tokens: TokenSets,
        threads: Option<Threads>,
    ) -> PyResult<(Array<'py, u32>, usize)> {
        let (rules, threads) = (special_rules(tokens), threads_or_all(threads));
        let (ids, end) = without_gil(py, self.encoder.cost(block.len()), |cancel| {
            let text = block_text(block, offset, last)?;
            let end = if last { text.len() } else { self.encoder.last_cut(text).unwrap_or(0) };
            Ok((self.encoder.encode(&text[..end], &rules, threads, cancel)?, end))
        })?;
        self.warn_if_dropped(py)?;
        Ok((array(py, ids)?, end))
    }

    /// Return the ids of a text, and where the text of each starts and ends, in bytes.
    #[allow(clippy::type_complexity)]
    fn encode_with_spans<'py>(
        &self,
        py: Python<'py>,
        text: PyBackedStr,
        tokens: TokenSets,
    ) -> PyResult<(Array<'py, u32>, Array<'py, i64>, Array<'py, i64>)> {
        let (cost, rules) = (self.encoder.cost(text.len()), special_rules(tokens));
        let (ids, spans) = without_gil(py, cost, |cancel| self.encoder.encode_with_spans(&text, &rules, cancel))?;
        let starts: Vec<i64> = try_collect(spans.iter().map(|span| span.0 as i64))?;
        let ends: Vec<i64> = try_collect(spans.iter().map(|span| span.1 as i64))?;
        Ok((array(py, ids)?, array(py, starts)?, array(py, ends)?))
    }

    /// Return the ids of a text, the characters that each stands for, and its word.
    #[allow(clippy::type_complexity)]
    fn encode_with_words<'py>(
        &self,
        py: Python<'py>,
        text: PyBackedStr,
        tokens: TokenSets,
    ) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyList>, Array<'py, u32>)> {
        let (cost, rules) = (self.encoder.cost(text.len()), special_rules(tokens));
        let found = without_gil(py, cost, |cancel| self.encoder.encode_with_words(&text, &rules, cancel))?;
        self.warn_if_dropped(py)?;
        let (ids, offsets) = (self.to_list(py, &found.ids)?, self.to_tuples(py, &found.offsets)?);
        Ok((ids, offsets, array(py, found.words)?))
    }

    /// Return the ids of each text, and the characters that each stands for. `trim` leaves out whitespace at its ends,
    /// and says whether a space was added before each text.
    #[allow(clippy::type_complexity)]
    fn encode_batch_with_offsets<'py>(
        &self,
        py: Python<'py>,
        texts: Vec<PyBackedStr>,
        tokens: TokenSets,
        trim: Option<bool>,
        threads: Option<Threads>,
    ) -> PyResult<(Vec<Bound<'py, PyList>>, Vec<Bound<'py, PyList>>)> {
        let slices: Vec<&str> = try_collect(texts.iter().map(|text| &text[..]))?;
        let (size, rules) = (slices.iter().map(|text| text.len()).sum(), special_rules(tokens));
        let threads = threads_for(size, threads);
        let trim = trim.map(|add_prefix_space| encode::Trim { add_prefix_space });
        let (ids, offsets, starts) = without_gil(py, self.encoder.cost(size), |cancel| {
            self.encoder.encode_batch_with_offsets(&slices, &rules, trim, threads, cancel)
        })?;
        self.warn_if_dropped(py)?;
        drop(texts);
        let spans = || starts.windows(2).map(|span| span[0] as usize..span[1] as usize);
        check_python_memory(2 * starts.len(), ids.len() * OFFSETS_BYTES)?;
        let id_lists = try_collect_ok(spans().map(|span| self.to_list(py, &ids[span])))?;
        Ok((id_lists, try_collect_ok(spans().map(|span| self.to_tuples(py, &offsets[span])))?))
    }

    fn decode_bytes<'py>(&self, py: Python<'py>, ids: Ids, skip_special: bool) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.decode_ids(py, &ids, skip_special)?;
        check_python_memory(1, bytes.len())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Decode ids to text. `errors` is that of `bytes.decode`.
    fn decode_text<'py>(
        &self,
        py: Python<'py>,
        ids: Ids,
        errors: &str,
        skip_special: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let errors = CString::new(errors)?;
        let bytes = self.decode_ids(py, &ids, skip_special)?;
        let len = isize::try_from(bytes.len())?;
        // SAFETY: the pointers are valid for the call, which returns a new reference, or null with an exception set.
        unsafe {
            let text = ffi::PyUnicode_DecodeUTF8(bytes.as_ptr().cast(), len, errors.as_ptr());
            Bound::from_owned_ptr_or_err(py, text)
        }
    }
}

/// Ids from Python: a contiguous numpy array of uint32, or a sequence of integers.
enum Ids<'py> {
    Array(PyReadonlyArray1<'py, u32>),
    List(Vec<u32>),
}

impl<'py> FromPyObject<'_, 'py> for Ids<'py> {
    type Error = PyErr;

    fn extract(ids: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match ids.extract::<PyReadonlyArray1<u32>>() {
            Ok(array) if array.is_c_contiguous() => Ok(Self::Array(array)),
            _ => {
                check_memory(ids.len()? * size_of::<u32>())?;
                Ok(Self::List(ids.cast::<PySequence>()?.extract()?))
            }
        }
    }
}
