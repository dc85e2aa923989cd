//! The Python class `Cancellation`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

thread_local! {
    static CURRENT: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Lets another thread stop what this thread does in the core, as Ctrl-C does in the main thread.
#[pyclass(module = "batchbpe._core", frozen)]
pub struct Cancellation(Arc<AtomicBool>);

#[pymethods]
impl Cancellation {
    #[new]
    fn new() -> Self {
        Self(Arc::default())
    }

    /// Stop the thread that is in the context of this object, with a `KeyboardInterrupt`.
    fn cancel(&self) {
        self.0.store(true, Relaxed);
    }

    fn __enter__(&self) {
        CURRENT.set(Some(Arc::clone(&self.0)));
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) {
        CURRENT.take();
    }
}

/// The signals and the cancellation of a thread.
pub struct Interrupts(Option<Arc<AtomicBool>>);

impl Interrupts {
    pub fn of_this_thread() -> Self {
        Self(CURRENT.with_borrow(Clone::clone))
    }

    /// Fails if the work was cancelled, or if the handler of a signal raises an exception.
    pub fn check(&self, py: Python<'_>) -> PyResult<()> {
        match &self.0 {
            Some(cancelled) if cancelled.load(Relaxed) => Err(PyKeyboardInterrupt::new_err(())),
            _ => py.check_signals(),
        }
    }
}
