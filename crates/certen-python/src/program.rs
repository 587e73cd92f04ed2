//! Programs: what `compile` takes, and what it makes of it.

use std::path::PathBuf;
use std::sync::Arc;

use certen::{Choice, Dialect, ElemType, File, FpMode, Name, Sizing, Texts};
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyTuple, PyType};

use crate::dtypes::elem_of;
use crate::errors::{During, raised};
use crate::fork::compiling;
use crate::kernel::Kernel;
use crate::source::{AUTO, KernelSource, NONE, choice, os_error};
use crate::threads;

/// Compiles a program.
///
/// `source` is its text, or a path (`pathlib.Path`) to its file, whose ending names the dialect. A program of one
/// function, or with one called `main`, gives a `Kernel`, and so does `fn=`; of several functions it gives a `Module`
/// of kernels.
///
/// - `name` is what messages call a text.
/// - `dialect` is the language of a text: `"ten"`, `"teil"`, `"model"`, `"teml"` or `"core"`.
/// - `elem` is the element type of dialects that do not name one: `"f64"`, `"f32"`, `"i64"`, `"i32"`, or a NumPy dtype.
/// - `fp`: with `"relaxed"`, sums and products may be computed in another order than written, which is the same every
///   time, and are factored where that saves operations, so that something in between may overflow; with `"strict"`, every
///   operation is made as written.
/// - `symbolic`: one native code for all sizes, instead of one for each that is used.
/// - `parallel`: whether threads may share loops; results have the same bits either way.
/// - `threads` is how many threads calls use, where they do not say.
/// - `schedule` says how loops are transformed, as in `Kernel.schedule`; without it, what the program says.
///
/// >>> import certen
/// >>> norm = certen.compile("fn norm(x: f64[n]) -> f64 { sqrt(sum(x * x)) }")
/// >>> norm([3.0, 4.0])
/// np.float64(5.0)
/// >>> product = certen.compile("var A : [l m]\nvar B : [m n]\nvar C : [l n]\nC = (A # B) . [2 3]\n", dialect="model")
/// >>> product([[1.0, 2.0]], [[3.0], [4.0]])
/// array([[11.]])
#[pyfunction]
#[pyo3(
    signature = (source, *, name = None, r#fn = None, dialect = None, elem = None, fp = "relaxed", symbolic = false,
        parallel = true, threads = None, schedule = None),
    text_signature = "(source, *, name=None, fn=None, dialect='ten', elem='f64', fp='relaxed', symbolic=False, \
        parallel=True, threads=None, schedule=None)"
)]
#[allow(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub fn compile<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    name: Option<&str>,
    r#fn: Option<&str>,
    dialect: Option<&str>,
    elem: Option<&Bound<'py, PyAny>>,
    fp: &str,
    symbolic: bool,
    parallel: bool,
    threads: Option<&Bound<'py, PyAny>>,
    schedule: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let schedule = schedule.map_or(Ok(Choice::Default), choice)?;
    let (name, text) = read(source, name, dialect)?;
    let texts = compiling(py, || Texts::read(name, text));
    made(py, texts, r#fn, elem, fp, symbolic, parallel, threads, schedule)
}

/// Makes an object of each class once. The first of a class takes a lock of its own, which a fork in another thread would
/// leave locked in the child; while the package is imported there is no such thread.
///
/// # Errors
/// If they cannot be made.
pub fn initialise(py: Python<'_>) -> PyResult<()> {
    for text in ["fn f(x: f64) -> f64 { x }", "fn f(x: f64) -> f64 { x } fn g(x: f64) -> f64 { x }"] {
        let texts = compiling(py, || Texts::read("first.ten", text));
        made(py, texts, None, None, "relaxed", false, true, None, Choice::None)?;
    }
    Ok(())
}

/// A kernel, or a module, of these texts.
#[allow(clippy::too_many_arguments, reason = "what `compile` and `_restore` have in common")]
fn made<'py>(
    py: Python<'py>,
    texts: Texts,
    function: Option<&str>,
    elem: Option<&Bound<'py, PyAny>>,
    fp: &str,
    symbolic: bool,
    parallel: bool,
    threads: Option<&Bound<'py, PyAny>>,
    schedule: Choice,
) -> PyResult<Bound<'py, PyAny>> {
    let fp = match fp {
        "relaxed" => FpMode::Relaxed,
        "strict" => FpMode::Strict,
        other => return Err(PyValueError::new_err(format!("fp is 'relaxed' or 'strict', not {other:?}"))),
    };
    let source = Arc::new(KernelSource {
        texts,
        elem: elem.map_or(Ok(ElemType::F64), elem_type)?,
        fp,
        sizing: if symbolic { Sizing::Symbolic } else { Sizing::Specialised },
        parallel,
        threads: threads.map_or(Ok(None), threads::given)?,
        schedule,
    });
    if function.is_some() || Dialect::of(source.texts.name()) != Some(Dialect::Ten) {
        return Ok(Kernel::compiled(py, &source, function)?.into_any());
    }
    let functions = compiling(py, || certen::functions(&source.texts, &source.options(None)));
    let functions = functions.map_err(|failure| raised(py, &failure, During::Compile))?;
    if functions.len() < 2 || functions.contains(&Name::new("main")) {
        return Ok(Kernel::compiled(py, &source, None)?.into_any());
    }
    let kernels = functions.into_iter().map(|name| (name, PyOnceLock::new())).collect();
    Ok(Bound::new(py, Module { source, kernels })?.into_any())
}

/// A file that was imported: where it was looked for, what it is called if it was there, and what it says, or why not.
type Imported = (String, Option<String>, String);

/// Makes a kernel, or a module, that was pickled.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "what `KernelSource::reduced` gives")]
pub fn _restore<'py>(
    py: Python<'py>,
    texts: (String, String, Vec<Imported>),
    function: Option<&str>,
    elem: &Bound<'py, PyAny>,
    fp: &str,
    symbolic: bool,
    parallel: bool,
    threads: &Bound<'py, PyAny>,
    schedule: Option<(String, Option<String>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let schedule = match schedule {
        None => Choice::Default,
        Some((name, Some(text))) => Choice::Text { name, text },
        Some((name, None)) if name == NONE => Choice::None,
        Some((name, None)) if name == AUTO => Choice::Auto,
        Some((name, None)) => Choice::Variant(Name::new(&name)),
    };
    let (text, name, imported) = texts;
    let imported = imported.into_iter().map(|(path, name, text)| File { path, name, text }).collect();
    let texts = Texts::known(name, text, imported);
    made(py, texts, function, Some(elem), fp, symbolic, parallel, Some(threads), schedule)
}

const DIALECTS: &str = "'ten', 'teil', 'model', 'teml' and 'core'";

/// What a program is called, and its text.
fn read(source: &Bound<'_, PyAny>, name: Option<&str>, dialect: Option<&str>) -> PyResult<(String, String)> {
    let py = source.py();
    let is_dialect = |dialect: &&str| Dialect::of(&format!("_.{dialect}")).is_some();
    if let Some(unknown) = dialect.filter(|dialect| !is_dialect(dialect)) {
        return Err(PyValueError::new_err(format!("there is no dialect {unknown:?}: there are {DIALECTS}")));
    }
    if let Ok(text) = source.cast::<PyString>() {
        let text = text.to_str()?;
        // No program is a single word with such an end.
        if Dialect::of(text).is_some() && !text.contains(|c: char| c.is_whitespace() || c == '{') {
            let why = format!("{text:?} is taken for the text of a program: a file is given as pathlib.Path({text:?})");
            return Err(PyValueError::new_err(why));
        }
        if name.is_some_and(str::is_empty) {
            return Err(PyValueError::new_err("name= is empty"));
        }
        let ending = dialect.unwrap_or("ten");
        let name = match name {
            None => format!("kernel.{ending}"),
            Some(name) if dialect.is_none() && Dialect::of(name).is_some() => name.to_owned(),
            Some(name) if Dialect::of(name) == Dialect::of(&format!("_.{ending}")) => name.to_owned(),
            Some(name) => format!("{name}.{ending}"),
        };
        return Ok((name, text.to_owned()));
    }
    if !source.hasattr("__fspath__")? || source.is_instance_of::<PyType>() {
        let found = source.get_type().name()?;
        let why =
            format!("compile takes the text of a program (str), or a path to its file (pathlib.Path), not {found}");
        return Err(PyTypeError::new_err(why));
    }
    let path: PathBuf = source.extract()?;
    if name.is_some() {
        return Err(PyTypeError::new_err("name= is for texts: a file has its own name"));
    }
    // What the system says of a file is an exception that Python knows. What is no file at all is said below: opening a
    // pipe waits for someone to write.
    let found = py.detach(|| match std::fs::metadata(&path)? {
        found if found.is_dir() => Err(std::io::Error::from_raw_os_error(IS_A_DIRECTORY)),
        found if found.is_file() => std::fs::File::open(&path).map(drop),
        _ => Ok(()),
    });
    if let Err(error) = found {
        return Err(os_error(py, &error, &path));
    }
    if let Some(dialect) = dialect
        && Dialect::of(&path.display().to_string()) != Dialect::of(&format!("_.{dialect}"))
    {
        let why = format!("the ending of {} names its dialect, which is not {dialect:?}", path.display());
        return Err(PyValueError::new_err(why));
    }
    py.detach(|| certen::read_program(&path)).map_err(|failure| raised(py, &failure, During::Compile))
}

/// What the system says of a directory that should be a file (`EISDIR`).
const IS_A_DIRECTORY: i32 = 21;

/// An element type with arithmetic, by Certen's name or as NumPy's dtype.
fn elem_type(given: &Bound<'_, PyAny>) -> PyResult<ElemType> {
    let named: Option<ElemType> = given.extract::<&str>().ok().and_then(|name| name.parse().ok());
    let found = named.or_else(|| elem_of(&numpy::PyArrayDescr::new(given.py(), given).ok()?));
    found.filter(|elem| elem.has_arithmetic()).ok_or_else(|| {
        let why = format!("elem is 'f64', 'f32', 'i64', 'i32' or such a dtype of NumPy, not {given:?}");
        PyValueError::new_err(why)
    })
}

/// The kernels of a program of several functions: `module.f`, or `module["f"]`, also for functions that are called like
/// something that a module has itself (`source`, `filename`).
///
/// >>> import certen
/// >>> module = certen.compile("fn twice(x: f64) -> f64 { 2 * x } fn half(x: f64) -> f64 { x / 2 }", name="both")
/// >>> module
/// <certen.Module both.ten: twice, half>
/// >>> list(module), module.half(3.0), module["twice"](3.0)
/// (['twice', 'half'], np.float64(1.5), np.float64(6.0))
#[pyclass(frozen, module = "certen")]
pub struct Module {
    source: Arc<KernelSource>,
    /// Each is compiled when it is first asked for.
    kernels: Vec<(Name, PyOnceLock<Py<Kernel>>)>,
}

impl Module {
    fn find<'py>(&self, py: Python<'py>, wanted: &str) -> Option<PyResult<&Bound<'py, Kernel>>> {
        let (name, kernel) = self.kernels.iter().find(|(name, _)| name.as_str() == wanted)?;
        // No lock is held while it is compiled: a fork would leave it locked. Of two that come at once, the first
        // stays.
        if kernel.get(py).is_none() {
            match Kernel::compiled(py, &self.source, Some(name.as_str())) {
                Ok(made) => drop(kernel.set(py, made.unbind())),
                Err(error) => return Some(Err(error)),
            }
        }
        kernel.get(py).map(|kernel| Ok(kernel.bind(py)))
    }

    fn missing(&self, wanted: &str) -> String {
        let names: Vec<&str> = self.kernels.iter().map(|(name, _)| name.as_str()).collect();
        format!("{} has no function {wanted:?}; it has {}", self.source.texts.name(), names.join(", "))
    }
}

#[pymethods]
impl Module {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, Kernel>> {
        self.find(py, name).unwrap_or_else(|| Err(PyAttributeError::new_err(self.missing(name)))).cloned()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, Kernel>> {
        self.find(py, name).unwrap_or_else(|| Err(PyKeyError::new_err(self.missing(name)))).cloned()
    }

    fn __contains__(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(name) = name.cast::<PyString>() else { return Ok(false) };
        let name = name.to_str()?;
        Ok(self.kernels.iter().any(|(found, _)| found.as_str() == name))
    }

    fn __len__(&self) -> usize {
        self.kernels.len()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyTuple::new(py, self.kernels.iter().map(|(name, _)| name.as_str()))?.call_method0("__iter__")
    }

    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<String>> {
        let class: Vec<String> = slf.get_type().dir()?.extract()?;
        let own = slf.get().kernels.iter().map(|(name, _)| name.to_string());
        Ok(own.chain(class).collect())
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.kernels.iter().map(|(name, _)| name.as_str()).collect();
        format!("<certen.Module {}: {}>", self.source.texts.name(), names.join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.source.reduced(py, None)
    }

    /// The text of the program.
    #[getter]
    fn source(&self) -> &str {
        self.source.texts.text()
    }

    /// What messages call the program.
    #[getter]
    fn filename(&self) -> &str {
        self.source.texts.name()
    }
}
