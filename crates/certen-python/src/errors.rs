//! Failures as exceptions: the classes of `python/certen/_errors.py`, chosen by who is to blame.

use certen::Failure;
use certen::road::syntax::{Blame, Code, to_json};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyType};
use serde_json::Value;

/// The classes, imported when one is first raised.
struct Classes {
    compile: Py<PyType>,
    argument_type: Py<PyType>,
    argument_value: Py<PyType>,
    machine: Py<PyType>,
    out_of_memory: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&'static Classes> {
    CLASSES.get_or_try_init(py, || {
        let module = py.import("certen._errors")?;
        let class = |name: &str| Ok::<_, PyErr>(module.getattr(name)?.cast_into::<PyType>()?.unbind());
        Ok(Classes {
            compile: class("CompileError")?,
            argument_type: class("ArgumentTypeError")?,
            argument_value: class("ArgumentValueError")?,
            machine: class("MachineError")?,
            out_of_memory: class("OutOfMemory")?,
        })
    })
}

/// The exception that says what a failure says.
pub fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    exception(py, failure).unwrap_or_else(|error| error)
}

fn exception(py: Python<'_>, failure: &Failure) -> PyResult<PyErr> {
    let classes = classes(py)?;
    let errors = || failure.diagnostics().iter().filter(|diagnostic| diagnostic.is_error());
    // The first error of those who have to change something.
    let Some(first) = errors().find(|error| error.code.blame() == failure.blame()) else {
        return Ok(PyRuntimeError::new_err(failure.to_string()));
    };
    let class = match (first.code, failure.blame()) {
        (Code::E0408 | Code::E0604, _) => &classes.out_of_memory,
        (Code::E0704, _) | (_, Blame::Environment) => &classes.machine,
        (_, Blame::Program) => &classes.compile,
        (Code::E0401 | Code::E0402 | Code::E0404 | Code::E0406, Blame::Call) => &classes.argument_type,
        (_, Blame::Call) => &classes.argument_value,
    };
    let diagnostics = PyList::empty(py);
    for diagnostic in failure.diagnostics() {
        diagnostics.append(python(py, &to_json(failure.sources(), diagnostic))?)?;
    }
    let arguments = (failure.to_string(), first.code.to_string(), diagnostics);
    Ok(PyErr::from_value(class.bind(py).call1(arguments)?))
}

/// JSON as Python's `json` reads it. Diagnostics are flat: the nesting is that of their labels.
fn python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => truth.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into_pyobject(py)?.into_any(),
            None => number.as_f64().unwrap_or(f64::NAN).into_pyobject(py)?.into_any(),
        },
        Value::String(text) => text.into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, field) in fields {
                dict.set_item(name, python(py, field)?)?;
            }
            dict.into_any()
        }
    })
}
