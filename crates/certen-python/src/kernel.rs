//! Kernels: functions of a program that are called with arrays.
//!
//! A call finds the parameters of its arguments, makes arrays readable, asks for the kernel that is prepared for their
//! types and sizes, and runs it. What was prepared last is found again without asking: small calls are mostly like the one
//! before. Python's lock is given back while something is compiled, and for runs that make so many operations that others
//! would notice.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use certen::road::syntax::{Code, Diagnostic, render};
use certen::{ElemType, Failure, Name, ParamKind, Prepared, Stage};
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use crate::arrays::{self, Few, NdArray, Order, Trouble, Wanted};
use crate::errors::{raised, refused};
use crate::formula::Formula;
use crate::program::Source;
use crate::threads;

/// Runs that make more operations than this give Python's lock back: some 10 µs.
const SMALL: i64 = 20_000;

/// How many kernels that were prepared for some types and sizes are found without asking.
const RECENT: usize = 8;

/// A function that is called with arrays.
///
/// Arguments are NumPy arrays, or other arrays that share their memory (DLPack, the array interface, buffers), or numbers
/// and lists whose values the parameter's element type has. Arrays of another element type are refused. Sizes that no array
/// tells are given by name.
///
/// - `out` is an array, or a tuple of as many as there are results, that results are written to. It is returned itself. If
///   it overlaps an argument, results are as if the arguments had been copied first.
/// - `threads` is how many threads may share the work: results have the same bits for any number.
#[pyclass(frozen, dict, weakref, module = "certen")]
pub struct Kernel {
    source: Arc<Source>,
    kernel: certen::Kernel,
    /// What was prepared, the last one used first.
    recent: Mutex<Vec<Recent>>,
}

/// A kernel for some types and sizes.
struct Recent {
    inputs: Vec<(ElemType, Vec<usize>)>,
    sizes: Vec<(Name, i64)>,
    prepared: Arc<Prepared>,
}

/// A parameter of a kernel.
#[pyclass(frozen, eq, hash, get_all, module = "certen")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// Its name.
    name: String,
    /// `"tensor"` or `"size"`.
    kind: &'static str,
    /// Its type, as the program says it.
    r#type: String,
}

#[pymethods]
impl Parameter {
    fn __repr__(&self) -> String {
        format!("Parameter({}: {})", self.name, self.r#type)
    }
}

/// The arguments of a call, by what they are for.
#[derive(Default)]
struct Arguments<'py> {
    /// For each parameter.
    given: Few<Option<Bound<'py, PyAny>>>,
    /// Sizes that are no parameters.
    sizes: Few<(Name, Bound<'py, PyAny>)>,
    out: Option<Bound<'py, PyAny>>,
    threads: Option<NonZeroUsize>,
}

impl Kernel {
    /// A kernel as a Python object.
    pub fn new(py: Python<'_>, source: Arc<Source>, kernel: certen::Kernel) -> PyResult<Bound<'_, Kernel>> {
        let name = PyString::new(py, kernel.name().as_str());
        let made = Bound::new(py, Kernel { source, kernel, recent: Mutex::default() })?;
        made.setattr("__name__", &name)?;
        made.setattr("__qualname__", &name)?;
        Ok(made)
    }

    fn refuse(&self, py: Python<'_>, code: Code, text: String) -> PyErr {
        refused(py, &Diagnostic::error(code, None, text).note(format!("it is {}", self.kernel.signature())))
    }

    /// Finds the parameter of each argument.
    fn bind<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Arguments<'py>> {
        let py = args.py();
        let parameters = self.kernel.parameters();
        let name = self.kernel.name();
        if args.len() > parameters.len() {
            let count = |n: usize| if n == 1 { "1 argument".into() } else { format!("{n} arguments") };
            let text = format!("`{name}` takes {}, but {} were given", count(parameters.len()), args.len());
            return Err(self.refuse(py, Code::E0402, text));
        }
        let mut found = Arguments { threads: self.source.threads, ..Arguments::default() };
        found.given.extend(args.iter().map(Some));
        found.given.resize(parameters.len(), None);
        for (key, value) in kwargs.into_iter().flatten() {
            let key = key.cast_into::<PyString>()?;
            let key = key.to_str()?;
            match key {
                "out" => found.out = Some(value).filter(|out| !out.is_none()),
                "threads" => found.threads = threads::given(&value)?.or(found.threads),
                _ => match parameters.iter().position(|parameter| parameter.name.as_str() == key) {
                    Some(at) if found.given[at].is_some() => {
                        let text = format!("`{name}` is given `{key}` twice: in its place, and by name");
                        return Err(self.refuse(py, Code::E0402, text));
                    }
                    Some(at) => found.given[at] = Some(value),
                    // What is no size either is said when the call is prepared.
                    None => found.sizes.push((Name::new(key), value)),
                },
            }
        }
        Ok(found)
    }

    /// An argument as an array that can be read, and its element type.
    fn input<'py>(
        &self,
        name: Name,
        elem: Option<ElemType>,
        argument: Bound<'py, PyAny>,
    ) -> PyResult<(ElemType, NdArray<'py>)> {
        let py = argument.py();
        if let Some(array) = arrays::array_of(&argument)? {
            let dtype = array.dtype();
            let Some(found) = arrays::elem_of(&dtype) else {
                let dtype = arrays::dtype_name(&dtype);
                let text = format!("`{name}` is an array of {dtype}, which no kernel takes");
                let known = "elements are float64, float32, int64, int32, uint8 or bool";
                return Err(refused(py, &Diagnostic::error(Code::E0404, None, text).note(known)));
            };
            return Ok((found, arrays::readable(array, found)?));
        }
        let wanted = elem.unwrap_or(ElemType::F64);
        match arrays::converted(&argument, elem)? {
            Some(array) => Ok((arrays::elem_of(&array.dtype()).unwrap_or(wanted), array)),
            None => {
                let shown = shown(&argument);
                let text = format!("`{name}` has elements of type {wanted}, and {shown} has a value that is none");
                Err(self.refuse(py, Code::E0404, text))
            }
        }
    }

    /// The kernel for some types and sizes: one of those used last, or prepared now.
    fn prepared(
        &self,
        py: Python<'_>,
        inputs: &[(Name, ElemType, &[usize])],
        sizes: &[(Name, i64)],
    ) -> Result<Arc<Prepared>, Failure> {
        let fits = |recent: &Recent| {
            let same = |((_, elem, shape), known): (&(Name, ElemType, &[usize]), &(ElemType, Vec<usize>))| {
                *elem == known.0 && **shape == *known.1
            };
            recent.inputs.len() == inputs.len() && recent.sizes == sizes && inputs.iter().zip(&recent.inputs).all(same)
        };
        {
            let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = recent.iter().position(fits) {
                recent.swap(0, at);
                return Ok(recent[0].prepared.clone());
            }
        }
        let prepared = py.detach(|| self.kernel.prepare(inputs, sizes))?;
        let inputs = inputs.iter().map(|(_, elem, shape)| (*elem, shape.to_vec())).collect();
        let new = Recent { inputs, sizes: sizes.to_vec(), prepared: prepared.clone() };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.truncate(RECENT - 1);
        recent.insert(0, new);
        Ok(prepared)
    }

    /// The arrays that were given for results.
    fn wanted<'py>(
        &self,
        py: Python<'py>,
        prepared: &Prepared,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<SmallVec<[Wanted<'py>; 2]>> {
        let outputs = prepared.outputs();
        let wanted = |elem: &ElemType, shape: &[usize], out| Wanted {
            elem: *elem,
            shape: SmallVec::from_slice(shape),
            order: Order::C,
            out,
        };
        let Some(out) = out else {
            return Ok(outputs.iter().map(|(_, elem, shape)| wanted(elem, shape, None)).collect());
        };
        let given: Few<Bound<'py, PyAny>> = match out.cast::<PyTuple>() {
            Ok(several) => several.iter().collect(),
            Err(_) => SmallVec::from_iter([out.clone()]),
        };
        if given.len() != outputs.len() {
            let (found, needed) = (given.len(), outputs.len());
            let text = format!("`out` has {found} arrays for {needed} results: it is a tuple of one for each");
            return Err(self.refuse(py, Code::E0402, text));
        }
        let mut all = SmallVec::new();
        for ((name, elem, shape), given) in outputs.iter().zip(given) {
            let refuse = |code, text: String| Err(self.refuse(py, code, format!("`out` for `{name}`: {text}")));
            let Some(array) = arrays::array_of(&given)? else {
                return refuse(Code::E0404, format!("{} is no array", shown(&given)));
            };
            let dtype = array.dtype();
            if arrays::elem_of(&dtype) != Some(*elem) {
                let found = arrays::dtype_name(&dtype);
                return refuse(Code::E0404, format!("the array is of {found}, the result of {elem}"));
            }
            if array.shape() != shape.as_slice() {
                return refuse(Code::E0403, format!("the array has the shape {:?}, the result {shape:?}", array.shape()));
            }
            if !arrays::is_writable(&array) {
                return refuse(Code::E0403, "the array is read-only".into());
            }
            all.push(wanted(elem, shape, Some(array)));
        }
        Ok(all)
    }
}

#[pymethods]
impl Kernel {
    #[pyo3(signature = (*args, **kwargs), text_signature = "(*args, out=None, threads=None, **kwargs)")]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = self.bind(args, kwargs)?;
        let mut inputs: Few<NdArray<'py>> = SmallVec::new();
        let mut described: Few<(Name, ElemType)> = SmallVec::new();
        let mut sizes: Few<(Name, i64)> = SmallVec::new();
        for (parameter, argument) in self.kernel.parameters().iter().zip(arguments.given) {
            // What is missing is said when the call is prepared.
            let Some(argument) = argument else { continue };
            match parameter.kind {
                ParamKind::Size => sizes.push((parameter.name, size(parameter.name, &argument)?)),
                ParamKind::Tensor => {
                    let (elem, array) = self.input(parameter.name, parameter.elem, argument)?;
                    described.push((parameter.name, elem));
                    inputs.push(array);
                }
            }
        }
        for (name, value) in &arguments.sizes {
            sizes.push((*name, size(*name, value)?));
        }
        let prepared = {
            let described: Few<(Name, ElemType, &[usize])> =
                described.iter().zip(&inputs).map(|((name, elem), array)| (*name, *elem, array.shape())).collect();
            self.prepared(py, &described, &sizes).map_err(|failure| raised(py, &failure))?
        };
        let wanted = self.wanted(py, &prepared, arguments.out.as_ref())?;
        let threads = arguments.threads.or_else(threads::set);
        let is_small = prepared.is_compiled() && prepared.operations().is_some_and(|count| count < SMALL);
        let results = arrays::call(py, &inputs, &wanted, |views, targets| match is_small {
            true => prepared.run(views, targets, threads),
            false => py.detach(|| prepared.run(views, targets, threads)),
        });
        let results = results.map_err(|trouble| match trouble {
            Trouble::Python(error) => error,
            Trouble::Work(failure) => raised(py, &failure),
        })?;
        match arguments.out {
            Some(out) => Ok(out),
            None if results.len() == 1 => results.into_iter().map(arrays::returned).next().unwrap_or_else(|| Ok(py.None().into_bound(py))),
            None => {
                let results: Vec<_> = results.into_iter().map(arrays::returned).collect::<PyResult<_>>()?;
                Ok(PyTuple::new(py, results)?.into_any())
            }
        }
    }
}
