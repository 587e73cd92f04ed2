//! Counts of operations in terms of sizes.

use std::collections::BTreeSet;

use certen::Name;
use certen::road::index::Ix;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How often something is done, in terms of a program's sizes.
///
/// `str(formula)` is the formula, `formula(n=3, m=4)` its value at these sizes, and `int(formula)` its value if it has
/// no sizes.
///
/// >>> import certen
/// >>> flops = certen.compile("fn scale(a: f64, x: f64[n, 3]) -> f64[n, 3] { a * x }").flops
/// >>> str(flops), flops(n=2)
/// ('3*n', 6)
#[pyclass(frozen, eq, hash, module = "certen")]
#[derive(PartialEq, Eq, Hash)]
pub struct Formula {
    formula: Ix,
    /// The sizes of the program, which need not all matter.
    sizes: Vec<Name>,
}

impl Formula {
    /// A formula in terms of these sizes.
    pub fn new(formula: Ix, sizes: Vec<Name>) -> Formula {
        Formula { formula, sizes }
    }
}

#[pymethods]
impl Formula {
    #[pyo3(signature = (**sizes))]
    fn __call__(&self, sizes: Option<&Bound<'_, PyDict>>) -> PyResult<i64> {
        let mut given: Vec<(Name, i64)> = Vec::new();
        for (name, size) in sizes.into_iter().flatten() {
            let name: String = name.extract()?;
            let Some(known) = self.sizes.iter().find(|known| known.as_str() == name) else {
                let all: Vec<&str> = self.sizes.iter().map(|size| size.as_str()).collect();
                let all = if all.is_empty() { "none".into() } else { all.join(", ") };
                return Err(PyTypeError::new_err(format!("there is no size {name:?}; the program has {all}")));
            };
            given.push((*known, size.extract()?));
        }
        let value = |name: Name| given.iter().find(|(size, _)| *size == name).map(|(_, value)| *value);
        let mut names = BTreeSet::new();
        self.formula.collect_names(&mut names);
        let missing: Vec<&str> =
            names.iter().filter(|name| value(**name).is_none()).map(|name| name.as_str()).collect();
        if !missing.is_empty() {
            let text = format!("{} has a value only if these are given: {}", self.formula, missing.join(", "));
            return Err(PyTypeError::new_err(text));
        }
        self.formula.eval(&value).map_err(|error| PyOverflowError::new_err(error.to_string()))
    }

    fn __int__(&self) -> PyResult<i64> {
        self.__call__(None)
    }

    fn __str__(&self) -> String {
        self.formula.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Formula({:?})", self.formula.to_string())
    }
}
