//! Failures as exceptions: the classes of `python/certen/_errors.py`, chosen by who is to blame.

use std::slice;

use certen::Failure;
use certen::road::syntax::{Blame, Code, Diagnostic, Door, Sources, render_all, to_json};
use pyo3::exceptions::{PyException, PyOverflowError, PyRuntimeError, PyTypeError};
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

/// Imports the classes, when the module is imported: later there may be no time for it.
///
/// # Errors
/// If they are not there.
pub fn initialise(py: Python<'_>) -> PyResult<()> {
    classes(py).map(drop)
}

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

/// What failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum During {
    /// A program was compiled: what it was called with are its options.
    Compile,
    /// A kernel was called.
    Call,
}

/// The exception that says what a failure says.
pub fn raised(py: Python<'_>, failure: &Failure, during: During) -> PyErr {
    exception(py, failure.sources(), failure.diagnostics(), during).unwrap_or_else(|error| error)
}

/// The exception for what is wrong with a call.
pub fn refused(py: Python<'_>, diagnostic: &Diagnostic) -> PyErr {
    exception(py, &Sources::new(), slice::from_ref(diagnostic), During::Call).unwrap_or_else(|error| error)
}

fn exception(py: Python<'_>, sources: &Sources, all: &[Diagnostic], during: During) -> PyResult<PyErr> {
    let classes = classes(py)?;
    let all: Vec<Diagnostic> = all.iter().map(|it| Diagnostic { door: Door::Python, ..it.clone() }).collect();
    let rendered = render_all(sources, &all, false);
    let rendered = rendered.trim_end();
    let errors = all.iter().filter(|diagnostic| diagnostic.is_error());
    // The first error of those who have to change most; of equals, `rev` and `max` find the first.
    let Some(first) = errors.rev().max_by_key(|error| error.code.blame()) else {
        return Ok(PyRuntimeError::new_err(rendered.to_owned()));
    };
    let class = match (first.code, first.code.blame()) {
        (Code::E0408 | Code::E0604, _) => &classes.out_of_memory,
        (Code::E0704, _) | (_, Blame::Environment) => &classes.machine,
        // A function that leaves its element type or rank open says when it is called which it takes.
        (Code::E0401 | Code::E0402 | Code::E0404 | Code::E0406 | Code::E0232, _) if during == During::Call => {
            &classes.argument_type
        }
        (Code::E0213, _) if during == During::Call => &classes.argument_value,
        (_, Blame::Program) => &classes.compile,
        // What has no function is no call's fault here: none was chosen.
        (Code::E0410, _) => &classes.compile,
        (_, Blame::Call) => &classes.argument_value,
    };
    let diagnostics = PyList::empty(py);
    for diagnostic in &all {
        diagnostics.append(python(py, &to_json(sources, diagnostic))?)?;
    }
    let arguments = (rendered, first.code.to_string(), diagnostics);
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

/// A value in a message: not more of it than a line.
///
/// # Errors
/// If showing it ends the program, or what the user waits for.
pub fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    const LONGEST: usize = 60;
    let text = match value.repr() {
        Ok(text) => text.to_string(),
        Err(error) if error.is_instance_of::<PyException>(value.py()) => "the value".into(),
        Err(error) => return Err(error),
    };
    Ok(match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    })
}

/// What someone gave for an integer.
pub enum Integer {
    /// An integer.
    Is(i64),
    /// One of more than 64 bits.
    TooLarge,
    /// Something else.
    IsNone,
}

/// An integer, of Python's or another kind.
///
/// # Errors
/// If asking for it fails in a way of its own.
pub fn integer(value: &Bound<'_, PyAny>) -> PyResult<Integer> {
    let py = value.py();
    match value.extract() {
        Ok(value) => Ok(Integer::Is(value)),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => Ok(Integer::TooLarge),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(Integer::IsNone),
        Err(error) => Err(error),
    }
}
