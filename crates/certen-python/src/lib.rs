//! The Python package's native part, `certen._certen`: a thin layer between NumPy arrays and the crate `certen`.
//!
//! What is computed, checked and said is said there; here arrays become views, failures become exceptions, and the
//! interpreter's lock is given back while something takes long. The rest of the package is Python, in `python/certen`.

mod arrays;
mod dtypes;
mod einsum;
mod errors;
mod fork;
mod formula;
mod kernel;
mod overlap;
mod program;
mod source;
mod threads;
mod values;

/// Runs that make more operations, or move more elements, than this give Python's lock back: some 10 µs. For less,
/// giving it back takes longer than anyone waits.
const SMALL: u64 = 20_000;

/// The native part of the package `certen`.
#[pyo3::pymodule]
mod _certen {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::einsum::{contract_path, einsum};
    #[pymodule_export]
    use crate::formula::Formula;
    #[pymodule_export]
    use crate::kernel::{Kernel, Parameter};
    #[pymodule_export]
    use crate::program::{_restore, Module, compile};
    #[pymodule_export]
    use crate::threads::{get_threads, set_threads};

    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// How this was built: times that are measured say little of a build for development.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __profile__: &str = if cfg!(debug_assertions) { "dev" } else { "release" };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Without NumPy nothing works: its absence is an error of the import, not of the first call.
        crate::arrays::initialise(module.py())?;
        crate::errors::initialise(module.py())?;
        crate::program::initialise(module.py())?;
        crate::fork::register(module.py())
    }
}
