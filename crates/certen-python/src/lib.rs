//! The Python package's native part, `certen._certen`: a thin layer between NumPy arrays and the crate `certen`.
//!
//! What is computed, checked and said is said there; here arrays become views, failures become exceptions, and the
//! interpreter's lock is given back while something takes long. The rest of the package is Python, in `python/certen`.

mod errors;
mod kernel;

/// The native part of the package `certen`.
#[pyo3::pymodule]
mod _certen {
    #[pymodule_export]
    use crate::kernel::{Kernel, compile};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// How this was built: times that are measured say little of a build for development.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __profile__: &str = if cfg!(debug_assertions) { "dev" } else { "release" };
}
