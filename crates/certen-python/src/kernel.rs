//! Kernels: functions of a program that are called with arrays.

use certen::{Module, Options};
use pyo3::prelude::*;

use crate::errors::raised;

/// A function that is called with arrays.
#[pyclass(frozen, module = "certen")]
pub struct Kernel {
    module: Module,
}

#[pymethods]
impl Kernel {
    /// The C code.
    #[getter]
    fn c_source(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.module.c().map(|c| c.kernel)).map_err(|failure| raised(py, &failure))
    }
}

/// Compiles a program.
#[pyfunction]
#[pyo3(signature = (source, *, name = None))]
pub fn compile(py: Python<'_>, source: &str, name: Option<&str>) -> PyResult<Kernel> {
    let name = name.unwrap_or("kernel.ten");
    let module = py.detach(|| Module::from_text(name, source, &Options::default()));
    module.map(|module| Kernel { module }).map_err(|failure| raised(py, &failure))
}
