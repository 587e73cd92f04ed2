//! Where kernels come from: the text of a program, with how it is compiled.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use certen::{Choice, ElemType, FpMode, Name, Options, Sizing, Texts};
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use crate::errors::{During, raised};

/// A text, what it is called, and how it is compiled: all that a kernel is made from, again when it is unpickled.
pub struct KernelSource {
    /// The text, and those that it imports, as they were when it was compiled.
    pub texts: Texts,
    /// The element type of dialects that do not name one.
    pub elem: ElemType,
    pub fp: FpMode,
    pub sizing: Sizing,
    pub parallel: bool,
    /// How many threads its kernels use, where a call does not say.
    pub threads: Option<NonZeroUsize>,
    /// How loops are transformed.
    pub schedule: Choice,
}

impl KernelSource {
    /// How one function is compiled: the one that is named, `main`, or the only one.
    pub fn options(&self, function: Option<&str>) -> Options {
        Options {
            elem: self.elem,
            fp: self.fp,
            function: function.map(Name::new),
            parallel: self.parallel,
            schedule: self.schedule.clone(),
            ..Options::default()
        }
    }

    /// The same texts with another schedule.
    ///
    /// # Errors
    /// If it is no schedule.
    pub fn scheduled(&self, schedule: &Bound<'_, PyAny>) -> PyResult<Arc<KernelSource>> {
        let schedule = choice(schedule)?;
        let KernelSource { ref texts, elem, fp, sizing, parallel, threads, .. } = *self;
        Ok(Arc::new(KernelSource { texts: texts.clone(), elem, fp, sizing, parallel, threads, schedule }))
    }

    /// What makes a kernel again: a function and its arguments.
    pub fn reduced<'py>(&self, py: Python<'py>, function: Option<&str>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.import("certen._certen")?.getattr("_restore")?;
        let fp = if self.fp == FpMode::Strict { "strict" } else { "relaxed" };
        let symbolic = self.sizing == Sizing::Symbolic;
        let threads = self.threads.map(NonZeroUsize::get);
        let elem = self.elem.to_string();
        let imported = self.texts.imported().iter().map(|file| (&*file.path, file.name.as_deref(), &*file.text));
        let imported = PyTuple::new(py, imported)?;
        let texts = (self.texts.text(), self.texts.name(), imported);
        let schedule = match &self.schedule {
            Choice::Default => None,
            Choice::None => Some((NONE, None)),
            Choice::Auto => Some((AUTO, None)),
            Choice::Variant(name) => Some((name.as_str(), None)),
            Choice::Text { name, text } => Some((name.as_str(), Some(text.as_str()))),
        };
        let arguments = (texts, function, elem, fp, symbolic, self.parallel, threads, schedule);
        (restore, arguments).into_pyobject(py)
    }
}

/// What stands for no schedule.
pub const NONE: &str = "none";

/// What stands for the compiler's own.
pub const AUTO: &str = "auto";

/// What is given as a schedule: a text, or the path of a file.
///
/// # Errors
/// If it is neither, or the file cannot be read.
pub fn choice(given: &Bound<'_, PyAny>) -> PyResult<Choice> {
    let what = match given.cast::<PyString>() {
        Ok(text) => {
            let text = text.to_str()?;
            if text.ends_with(".schedule") {
                let why = format!("{text:?} is taken for a text: a file is given as pathlib.Path({text:?})");
                return Err(PyValueError::new_err(why));
            }
            text.to_owned()
        }
        Err(_) if given.hasattr("__fspath__")? && !given.is_instance_of::<PyType>() => {
            let path: PathBuf = given.extract()?;
            if path.extension().is_none_or(|ending| ending != "schedule") {
                let why = format!("{} does not end in .schedule, as files of schedules do", path.display());
                return Err(PyValueError::new_err(why));
            }
            let found = given.py().detach(|| std::fs::File::open(&path).map(drop));
            if let Err(error) = found {
                return Err(os_error(given.py(), &error, &path));
            }
            path.display().to_string()
        }
        Err(_) => {
            let found = given.get_type().name()?;
            let why = format!("a schedule is a text (str), or a path to its file (pathlib.Path), not {found}");
            return Err(PyTypeError::new_err(why));
        }
    };
    let py = given.py();
    py.detach(|| Choice::named(&what)).map_err(|failure| raised(py, &failure, During::Compile))
}

/// What the system says of a file, as an exception that Python knows.
pub fn os_error(py: Python<'_>, error: &std::io::Error, path: &Path) -> PyErr {
    let Some(number) = error.raw_os_error() else { return PyValueError::new_err(error.to_string()) };
    let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,)));
    text.map_or_else(|error| error, |text| PyOSError::new_err((number, text.unbind(), path.as_os_str().to_owned())))
}
