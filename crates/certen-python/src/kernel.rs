//! Kernels: functions of a program that are called with arrays.
//!
//! A call finds the parameters of its arguments, makes arrays of them, asks for the kernel that is prepared for their
//! types and sizes, and runs it. Python's lock is given back while something is compiled, and for runs that take so
//! long that others would notice. What is lent meanwhile are copies of shapes: NumPy's own may change.

use std::num::NonZeroUsize;
use std::sync::Arc;

use certen::road::syntax::{Code, Diagnostic, render};
use certen::{ElemType, InputType, Name, Param, Prepared, ResultShape, VIEWS, View};
use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::{
    PyAttributeError, PyBufferError, PyOverflowError, PyRecursionError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::arrays::{self, Few, MemoryOrder, NdArray, Trouble, Wanted};
use crate::errors::{During, Integer, integer, raised, refused, shown};
use crate::fork::compiling;
use crate::formula::Formula;
use crate::source::KernelSource;
use crate::{SMALL, dtypes, threads};

/// A function that is called with arrays.
///
/// Arguments are NumPy arrays, or other arrays that share their memory (DLPack, the array interface, buffers), or
/// numbers and lists whose values the parameter's element type has. Arrays of another element type are refused. Sizes
/// that no array tells are given by name.
///
/// - `out` is an array, or a tuple of as many as there are results, that results are written to. It is returned itself.
///   If it overlaps an argument, results are as if the arguments had been copied first.
/// - `threads` is how many threads may share the work: results have the same bits for any number.
///
/// >>> import certen
/// >>> import numpy as np
/// >>> window = certen.compile("fn window(x: f64[n], k: size) -> f64[n-k] where k >= 0, k <= n { { [i] -> x[i+k] - x[i] } }")
/// >>> window
/// <certen.Kernel window(x: f64[n], k: size) -> f64[n-k] where k >= 0, k <= n>
/// >>> window(np.array([1.0, 2.0, 4.0, 8.0]), 2)
/// array([3., 6.])
/// >>> out = np.zeros(3)
/// >>> window([1, 2, 4, 8], k=1, out=out) is out
/// True
/// >>> out
/// array([1., 2., 4.])
#[pyclass(frozen, dict, weakref, module = "certen")]
pub struct Kernel {
    source: Arc<KernelSource>,
    kernel: certen::Kernel,
}

/// A parameter of a kernel.
///
/// >>> import certen
/// >>> take = certen.compile("fn take_some(x: f64[n], k: size) -> f64[k] where 0 <= k, k <= n { x[0..k] }")
/// >>> [(parameter.name, parameter.kind, parameter.type) for parameter in take.parameters]
/// [('x', 'tensor', 'f64[n]'), ('k', 'size', 'size')]
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
    #[new]
    fn new(name: String, kind: &str, r#type: String) -> Parameter {
        Parameter { name, kind: if kind == "size" { "size" } else { "tensor" }, r#type }
    }

    fn __getnewargs__(&self) -> (&str, &str, &str) {
        (&self.name, self.kind, &self.r#type)
    }

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
    /// Compiles one function: the one that is named, `main`, or the only one.
    ///
    /// # Errors
    /// If it cannot be compiled.
    pub fn compiled<'py>(
        py: Python<'py>,
        source: &Arc<KernelSource>,
        function: Option<&str>,
    ) -> PyResult<Bound<'py, Kernel>> {
        let options = source.options(function);
        let made = compiling(py, || {
            let kernel = certen::Kernel::new(source.texts.clone(), &options, source.sizing)?;
            // A derivation that cannot be made or a schedule that cannot be applied is found here, not in a call; a
            // kernel of open rank has no loops yet.
            if let Ok(module) = kernel.module() {
                module.derived()?;
                module.scheduled()?;
            }
            Ok(kernel)
        });
        let kernel = made.map_err(|failure| raised(py, &failure, During::Compile))?;
        let name = PyString::new(py, kernel.name().as_str());
        let made = Bound::new(py, Kernel { source: source.clone(), kernel })?;
        made.setattr("__name__", &name)?;
        made.setattr("__qualname__", &name)?;
        Ok(made)
    }

    fn refuse(&self, py: Python<'_>, code: Code, text: String) -> PyErr {
        refused(py, &Diagnostic::error(code, None, text).note(format!("it is {}", self.kernel.signature())))
    }

    /// An argument that no parameter has asked for.
    fn unknown(&self, py: Python<'_>, name: &str) -> PyErr {
        self.refuse(py, Code::E0402, format!("`{}` has no parameter `{name}`", self.kernel.name()))
    }

    /// The size of this name. Where sizes are not known before a call, any name may be one, and the call says if it is.
    fn size(&self, name: &str) -> Option<Name> {
        match self.kernel.module() {
            Ok(module) => module.core().sizes.iter().copied().find(|size| size.as_str() == name),
            Err(_) => Some(Name::new(name)),
        }
    }

    /// Finds the parameter of each argument.
    fn bind<'py>(&self, args: &Bound<'py, PyTuple>, kwargs: Option<&Bound<'py, PyDict>>) -> PyResult<Arguments<'py>> {
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
            let parameter = parameters.iter().position(|parameter| parameter.name.as_str() == key);
            match key {
                "out" | "threads" if parameter.is_some_and(|at| found.given[at].is_none()) => {
                    let text = format!("`{key}=` belongs to the call: the parameter `{key}` is given in its place");
                    return Err(self.refuse(py, Code::E0402, text));
                }
                "out" => found.out = Some(value).filter(|out| !out.is_none()),
                "threads" => found.threads = threads::given(&value)?.or(found.threads),
                _ => match parameter {
                    Some(at) if found.given[at].is_some() => {
                        let text = format!("`{name}` is given `{key}` twice: in its place, and by name");
                        return Err(self.refuse(py, Code::E0402, text));
                    }
                    Some(at) => found.given[at] = Some(value),
                    None => match self.size(key) {
                        Some(size) => found.sizes.push((size, value)),
                        None => return Err(self.unknown(py, key)),
                    },
                },
            }
        }
        Ok(found)
    }

    /// An argument as an array that can be read, and its element type.
    fn input<'py>(&self, parameter: &Param, argument: Bound<'py, PyAny>) -> PyResult<(ElemType, NdArray<'py>)> {
        let (py, name) = (argument.py(), parameter.name);
        if let Some(array) = arrays::array_of(&argument).map_err(|error| unusable(py, name.as_str(), error))? {
            let dtype = array.dtype();
            let Some(found) = dtypes::elem_of(&dtype) else {
                let dtype = dtypes::dtype_name(&dtype);
                let text = format!("`{name}` is an array of {dtype}, which no kernel takes");
                let known = "elements are float64, float32, int64, int32, uint8 or bool";
                return Err(refused(py, &Diagnostic::error(Code::E0404, None, text).note(known)));
            };
            if arrays::is_masked(&array)? {
                let text = format!("`{name}` is a masked array, and kernels know no masks");
                let help = "`array.filled(value)` says what hidden elements are";
                return Err(refused(py, &Diagnostic::error(Code::E0404, None, text).help(help)));
            }
            return Ok((found, array));
        }
        match arrays::converted(&argument, parameter.elem) {
            Ok(Some(found)) => Ok(found),
            Err(error) if error.is_instance_of::<PyValueError>(py) => {
                let text = format!("`{name}` is no array: {}", error.value(py));
                Err(self.refuse(py, Code::E0403, text))
            }
            Err(error) => Err(error),
            Ok(None) => {
                let ty = &parameter.ty;
                let text = format!("`{name}` is {ty}, which does not have the value {}", shown(&argument)?);
                Err(self.refuse(py, Code::E0404, text))
            }
        }
    }

    /// The kernel for some types and sizes: an earlier one, or one that is prepared now.
    fn prepared(&self, py: Python<'_>, inputs: &[InputType<'_>], sizes: &[(Name, i64)]) -> PyResult<Arc<Prepared>> {
        if let Some(prepared) = self.kernel.prepared(inputs, sizes) {
            return Ok(prepared);
        }
        let made = compiling(py, || self.kernel.prepare(inputs, sizes));
        made.map_err(|failure| raised(py, &failure, During::Call))
    }

    /// The arrays that were given for results.
    fn wanted<'py>(
        &self,
        py: Python<'py>,
        prepared: &Prepared,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<SmallVec<[Wanted<'py>; 2]>> {
        let outputs = prepared.outputs();
        let wanted = |output: &ResultShape, out| Wanted {
            elem: output.elem,
            shape: SmallVec::from_slice(&output.shape),
            order: MemoryOrder::C,
            out,
        };
        let Some(out) = out else { return Ok(outputs.iter().map(|output| wanted(output, None)).collect()) };
        let given: Few<Bound<'py, PyAny>> = match out.cast::<PyTuple>() {
            Ok(several) => several.iter().collect(),
            Err(_) => SmallVec::from_iter([out.clone()]),
        };
        if out.is_instance_of::<PyList>() {
            let text = "`out` is a list: it is an array, or a tuple of one for each result".into();
            return Err(self.refuse(py, Code::E0404, text));
        }
        if given.len() != outputs.len() {
            let (found, needed) = (given.len(), outputs.len());
            let text = format!("`out` has {found} arrays for {needed} results: it is a tuple of one for each");
            return Err(self.refuse(py, Code::E0402, text));
        }
        let mut all = SmallVec::new();
        for (output, given) in outputs.iter().zip(given) {
            let ResultShape { name, elem, shape } = output;
            let refuse = |code, text: String| Err(self.refuse(py, code, format!("`out` for `{name}`: {text}")));
            let Some(array) = arrays::lent_array(&given).map_err(|error| unusable(py, "out", error))? else {
                return refuse(Code::E0404, format!("{} is no array that can be written to", shown(&given)?));
            };
            if arrays::is_masked(&array)? {
                return refuse(Code::E0404, "the array is masked, and kernels know no masks".into());
            }
            let dtype = array.dtype();
            if dtypes::elem_of(&dtype) != Some(*elem) {
                let found = dtypes::elem_of(&dtype).map_or_else(|| dtypes::dtype_name(&dtype), |elem| elem.to_string());
                return refuse(Code::E0404, format!("the array has elements of type {found}, the result {elem}"));
            }
            if array.shape() != shape.as_slice() {
                return refuse(
                    Code::E0403,
                    format!("the array has the shape {:?}, the result {shape:?}", array.shape()),
                );
            }
            if !arrays::is_writable(&array) {
                return refuse(Code::E0403, "the array is read-only".into());
            }
            if arrays::overlaps_itself(&array) {
                let text =
                    "the array overlaps itself: two of its elements share memory, which can hold only one of them";
                return refuse(Code::E0403, text.into());
            }
            all.push(wanted(output, Some(array)));
        }
        Ok(all)
    }
}

#[pymethods]
impl Kernel {
    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = self.bind(args, kwargs)?;
        let mut inputs: Few<(ElemType, NdArray<'py>)> = SmallVec::new();
        let mut described: Few<(Name, ElemType, Few<usize>)> = SmallVec::new();
        let mut sizes: Few<(Name, i64)> = SmallVec::new();
        for (parameter, argument) in self.kernel.parameters().iter().zip(arguments.given) {
            // What is missing is said when the call is prepared.
            let Some(argument) = argument else { continue };
            match parameter.is_size {
                true if parameter.ty != "size" => {
                    let text = format!("`{}` is {}: only single sizes can be given", parameter.name, parameter.ty);
                    return Err(self.refuse(py, Code::E0404, text));
                }
                true => sizes.push((parameter.name, size(parameter.name, &argument)?)),
                false => {
                    let (elem, array) = self.input(parameter, argument)?;
                    described.push((parameter.name, elem, SmallVec::new()));
                    inputs.push((elem, array));
                }
            }
        }
        for (name, value) in &arguments.sizes {
            // Where any name may be a size, what is no number is more likely a name that is misspelled.
            if self.kernel.module().is_err() && matches!(integer(value)?, Integer::IsNone) {
                return Err(self.unknown(py, name.as_str()));
            }
            sizes.push((*name, size(*name, value)?));
        }
        // Whatever Python code arguments bring has run, and shapes are as they will be.
        for ((_, _, shape), (_, array)) in described.iter_mut().zip(&inputs) {
            shape.extend_from_slice(array.shape());
        }
        let described: Few<InputType<'_>> =
            described.iter().map(|(name, elem, shape)| (*name, *elem, &**shape)).collect();
        let prepared = self.prepared(py, &described, &sizes)?;
        let wanted = self.wanted(py, &prepared, arguments.out.as_ref())?;
        let threads = arguments.threads.or_else(threads::set);
        let shapes = described.iter().map(|(_, _, shape)| *shape);
        let moved = elements(shapes.chain(prepared.outputs().iter().map(|output| &*output.shape)));
        let operations = prepared.operations().and_then(|count| u64::try_from(count).ok()).unwrap_or(u64::MAX);
        let is_small = operations.saturating_add(moved) < SMALL;
        let results = arrays::call(py, &inputs, &wanted, |views, mut targets| match is_small {
            true => prepared.run(views, &mut targets, threads),
            false => py.detach(|| prepared.run(views, &mut targets, threads)),
        });
        let results = results.map_err(|trouble| match trouble {
            Trouble::Python(error) => error,
            Trouble::Work(failure) => raised(py, &failure, During::Call),
        })?;
        match arguments.out {
            Some(out) => Ok(out),
            None => {
                let mut results: Few<_> = results.into_iter().map(arrays::returned).collect::<PyResult<_>>()?;
                match results.pop() {
                    Some(only) if results.is_empty() => Ok(only),
                    last => {
                        results.extend(last);
                        Ok(PyTuple::new(py, results)?.into_any())
                    }
                }
            }
        }
    }

    /// The function's name.
    #[getter]
    fn name(&self) -> &str {
        self.kernel.name().as_str()
    }

    /// The function's declaration, on one line.
    #[getter]
    fn r#type(&self) -> &str {
        self.kernel.signature()
    }

    /// What it is called with, in order.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let parameter = |parameter: &Param| Parameter {
            name: parameter.name.to_string(),
            kind: if parameter.is_size { "size" } else { "tensor" },
            r#type: parameter.ty.clone(),
        };
        let parameters: Vec<Parameter> = self.kernel.parameters().iter().map(parameter).collect();
        PyTuple::new(py, parameters)
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

    /// What is probably not meant in the program, as messages.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        // A kernel of open rank has no program until it is called.
        let Ok(module) = self.kernel.module() else { return Vec::new() };
        module.warnings().iter().map(|warning| render(module.sources(), warning, false)).collect()
    }

    /// The C code, for all sizes.
    #[getter]
    fn c_source(&self, py: Python<'_>) -> PyResult<String> {
        compiling(py, || self.kernel.module()?.c())
            .map(|c| c.kernel)
            .map_err(|failure| raised(py, &failure, During::Call))
    }

    /// The same function with its loops transformed by other steps: a text of steps, the name of a variant that the
    /// program has, `"none"` for none, `"auto"` for what the compiler writes, or a path (`pathlib.Path`) to a `.schedule`
    /// file.
    ///
    /// >>> import certen
    /// >>> scale = certen.compile("fn scale(x: f64[n]) -> f64[n] { 2 * x }")
    /// >>> blocked = scale.schedule("split(i, 4)")
    /// >>> blocked.steps
    /// ('split(i, 4)',)
    /// >>> blocked([1.0, 2.0, 3.0, 4.0, 5.0])
    /// array([ 2.,  4.,  6.,  8., 10.])
    fn schedule<'py>(&self, py: Python<'py>, what: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Kernel>> {
        Kernel::compiled(py, &self.source.scheduled(what)?, Some(self.kernel.name().as_str()))
    }

    /// The rewrites that it is derived by, then the steps that its loops are transformed by.
    #[getter]
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let steps = self.kernel.module().and_then(|module| module.all_steps()).unwrap_or_default();
        PyTuple::new(py, steps)
    }

    /// The schedules that the program has for this function: for each variant its steps; that without a name is under
    /// `None`.
    ///
    /// >>> import certen
    /// >>> text = "fn f(x: f64[n]) -> f64[n] { x + 1 } schedule f { } schedule blocked for f { split(i, 8); }"
    /// >>> certen.compile(text).schedules
    /// {None: (), 'blocked': ('split(i, 8)',)}
    #[getter]
    fn schedules<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let schedules = PyDict::new(py);
        for schedule in self.kernel.schedules() {
            let steps = PyTuple::new(py, schedule.steps.iter().map(ToString::to_string))?;
            schedules.set_item(schedule.variant.map(Name::as_str), steps)?;
        }
        Ok(schedules)
    }

    /// How many arithmetic operations a run makes, in terms of the sizes.
    ///
    /// >>> import certen
    /// >>> dot = certen.compile("fn dot(x: f64[n], y: f64[n]) -> f64 { sum(x * y) }")
    /// >>> print(dot.flops)
    /// 2*n
    /// >>> dot.flops(n=1000)
    /// 2000
    #[getter]
    fn flops(&self, py: Python<'_>) -> PyResult<Formula> {
        let formula = compiling(py, || {
            let module = self.kernel.module()?;
            let sizes = module.core().sizes.clone();
            Ok(module.operations().cloned().map(|formula| Formula::new(formula, sizes)))
        });
        let formula = formula.map_err(|failure| raised(py, &failure, During::Call))?;
        formula.ok_or_else(|| PyOverflowError::new_err("there are more than can be counted"))
    }

    /// The program at every stage of its way to machine code, as text; `stage` is the name of one, or a list of names.
    /// Sizes that are given are put into formulas.
    ///
    /// >>> import certen
    /// >>> dot = certen.compile("fn dot(x: f64[n], y: f64[n]) -> f64 { sum(x * y) }")
    /// >>> print(dot.explain("core"), end="")
    /// core dot
    /// size n
    /// where n >= 0
    /// input x : f64[n]
    /// input y : f64[n]
    /// result = sum i in 0..n. x[i] * y[i]
    /// output result
    #[pyo3(signature = (stage = None, **sizes))]
    fn explain(
        &self,
        py: Python<'_>,
        stage: Option<&Bound<'_, PyAny>>,
        sizes: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let names: Vec<String> = match stage {
            None => Vec::new(),
            Some(stage) => stage.extract::<String>().map(|one| vec![one]).or_else(|_| stage.extract())?,
        };
        let stages: Vec<&View> = names.iter().map(|name| view(name)).collect::<PyResult<_>>()?;
        let mut given: Vec<(Name, i64)> = Vec::new();
        for (name, value) in sizes.into_iter().flatten() {
            let name: String = name.extract()?;
            let Some(name) = self.size(&name) else { return Err(self.unknown(py, &name)) };
            given.push((name, size(name, &value)?));
        }
        let sections = compiling(py, || self.kernel.module()?.explain(&stages, &given));
        let sections = sections.map_err(|failure| raised(py, &failure, During::Call))?;
        if sections.is_empty() {
            return Ok("the program has nothing to show at this stage\n".into());
        }
        // A single stage needs no title.
        Ok(match (sections.as_slice(), stages.len()) {
            ([(_, text)], 1) => text.clone(),
            _ => sections.iter().map(|(name, text)| format!("== {name} ==\n{text}")).collect::<Vec<_>>().join("\n"),
        })
    }

    /// For `inspect.signature`, and so for those who show what a function takes.
    #[getter]
    fn __signature__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        // What wraps a function of Python's has that function's.
        if slf.getattr("__dict__")?.contains("__wrapped__")? {
            return Err(PyAttributeError::new_err("__signature__"));
        }
        let inspect = py.import("inspect")?;
        let class = inspect.getattr("Parameter")?;
        let list = PyList::empty(py);
        let names = slf.get().kernel.parameters().iter().map(|parameter| parameter.name);
        for name in names.clone() {
            list.append(class.call1((name.as_str(), class.getattr("POSITIONAL_OR_KEYWORD")?))?)?;
        }
        for option in
            ["out", "threads"].into_iter().filter(|option| !names.clone().any(|name| name.as_str() == *option))
        {
            let default = PyDict::new(py);
            default.set_item("default", py.None())?;
            list.append(class.call((option, class.getattr("KEYWORD_ONLY")?), Some(&default))?)?;
        }
        inspect.call_method1("Signature", (list,))
    }

    fn __repr__(&self) -> String {
        format!("<certen.Kernel {}>", self.kernel.signature().trim_start_matches("fn "))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("certen._html")?.call_method1("kernel", (slf,))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.source.reduced(py, Some(self.kernel.name().as_str()))
    }
}

/// An array of another library that does not give its memory away, in that library's words.
fn unusable(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let is = |class: &Bound<'_, PyType>| error.is_instance(py, class);
    let said = [
        py.get_type::<PyBufferError>(),
        py.get_type::<PyTypeError>(),
        py.get_type::<PyValueError>(),
        py.get_type::<PyRuntimeError>(),
    ];
    if !said.iter().any(is) || error.is_instance_of::<PyRecursionError>(py) {
        return error;
    }
    let text = format!("`{name}` cannot be used as an array: {}", error.value(py));
    let refused = refused(py, &Diagnostic::error(Code::E0404, None, text));
    refused.set_cause(py, Some(error));
    refused
}

/// How many elements arrays of these shapes have together.
fn elements<'a>(shapes: impl Iterator<Item = &'a [usize]>) -> u64 {
    let count = |shape: &[usize]| shape.iter().fold(1u64, |count, &size| count.saturating_mul(size as u64));
    shapes.map(count).fold(0, u64::saturating_add)
}

/// What `explain` shows under a name.
fn view(name: &str) -> PyResult<&'static View> {
    View::named(name).ok_or_else(|| {
        let all: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
        PyValueError::new_err(format!("there is no stage {name:?}: there are {}", all.join(", ")))
    })
}

/// The value of a size.
fn size(name: Name, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match integer(value)? {
        Integer::Is(value) => Ok(value),
        other => {
            let (code, kind) = match other {
                Integer::TooLarge => (Code::E0409, "an integer of 64 bits"),
                _ => (Code::E0404, "an integer"),
            };
            let text = format!("`{name}` is {kind}, and {} is not", shown(value)?);
            Err(refused(value.py(), &Diagnostic::error(code, None, text)))
        }
    }
}
