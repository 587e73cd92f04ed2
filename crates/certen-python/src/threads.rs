//! How many threads kernels use, where a call does not say.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use certen::road::runtime::default_threads;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// What was set; 0 if nothing was.
static SET: AtomicUsize = AtomicUsize::new(0);

/// What was set; none to let the environment decide.
pub fn set() -> Option<NonZeroUsize> {
    NonZeroUsize::new(SET.load(Ordering::Relaxed))
}

/// A number of threads that someone gave; none for `None`.
///
/// # Errors
/// If it is no positive integer.
pub fn given(number: &Bound<'_, PyAny>) -> PyResult<Option<NonZeroUsize>> {
    if number.is_none() {
        return Ok(None);
    }
    let wrong = || format!("threads is None or a positive integer, not {number}");
    let found: i64 = number.extract().map_err(|_| PyTypeError::new_err(wrong()))?;
    let found = usize::try_from(found).ok().and_then(NonZeroUsize::new);
    found.map(Some).ok_or_else(|| PyValueError::new_err(wrong()))
}

/// Sets how many threads kernels and `einsum` use, where a call does not say; `None` for `$CERTEN_THREADS`, else as many
/// as there are cores. Results have the same bits for any number.
#[pyfunction]
#[pyo3(signature = (threads))]
pub fn set_threads(threads: &Bound<'_, PyAny>) -> PyResult<()> {
    SET.store(given(threads)?.map_or(0, NonZeroUsize::get), Ordering::Relaxed);
    Ok(())
}

/// How many threads kernels and `einsum` use, where a call does not say.
#[pyfunction]
pub fn get_threads() -> PyResult<usize> {
    match set() {
        Some(threads) => Ok(threads.get()),
        None => default_threads().map(NonZeroUsize::get).map_err(|error| PyValueError::new_err(error.to_string())),
    }
}
