//! How many threads kernels use, where a call does not say.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

use certen::road::runtime::{default_threads, parse_threads};
use certen::road::syntax::{Code, Diagnostic};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::{Integer, integer, refused, shown};

/// What was set; 0 if nothing was.
static SET: AtomicUsize = AtomicUsize::new(0);

/// What was set; none to let the environment decide.
pub fn set() -> Option<NonZeroUsize> {
    NonZeroUsize::new(SET.load(Ordering::Relaxed))
}

/// A number of threads that someone gave; none for `None`.
///
/// # Errors
/// If it is no integer from 1 to 1024.
pub fn given(number: &Bound<'_, PyAny>) -> PyResult<Option<NonZeroUsize>> {
    if number.is_none() {
        return Ok(None);
    }
    let found = integer(number)?;
    let (chosen, code) = match found {
        Integer::Is(found) => (parse_threads(&found.to_string()), Code::E0407),
        Integer::TooLarge => (None, Code::E0407),
        Integer::IsNone => (None, Code::E0404),
    };
    if chosen.is_none() {
        let text = format!("threads is None or an integer from 1 to 1024, not {}", shown(number)?);
        return Err(refused(number.py(), &Diagnostic::error(code, None, text)));
    }
    Ok(chosen)
}

/// Sets how many threads kernels and `einsum` use, where a call does not say; `None` for `$CERTEN_THREADS`, else as
/// many as there are cores. Results have the same bits for any number.
///
/// >>> import certen
/// >>> certen.set_threads(2)
/// >>> certen.get_threads()
/// 2
/// >>> certen.set_threads(None)
#[pyfunction]
#[pyo3(signature = (threads))]
pub fn set_threads(threads: &Bound<'_, PyAny>) -> PyResult<()> {
    SET.store(given(threads)?.map_or(0, NonZeroUsize::get), Ordering::Relaxed);
    Ok(())
}

/// How many threads kernels and `einsum` use, where a call does not say.
///
/// >>> import certen
/// >>> certen.get_threads() >= 1
/// True
#[pyfunction]
pub fn get_threads() -> PyResult<usize> {
    match set() {
        Some(threads) => Ok(threads.get()),
        None => default_threads().map(NonZeroUsize::get).map_err(|error| PyValueError::new_err(error.to_string())),
    }
}
