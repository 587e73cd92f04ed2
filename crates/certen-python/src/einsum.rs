//! `einsum` and `contract_path`, called as NumPy's.
//!
//! What subscripts mean and how a contraction is computed is said in `certen::einsum`; here are NumPy's rules around
//! it: the two forms of a call, which element type is computed in, what may be cast to what, when a result is a view,
//! and where a given array takes it. They were found by experiment with NumPy 2.4 without `optimize`. What Certen does
//! not have is a `NotImplementedError` that names it, never another result.
//!
//! A contraction is looked up by its subscripts, element type and shapes, so that a call like an earlier one parses
//! nothing.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::sync::{Arc, Mutex, PoisonError};

use certen::ElemType;
use certen::einsum::{Contraction, EinsumError, Order, Sub, Subscripts};
use numpy::{PyArrayDescr, PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyEllipsis, PyList, PyString, PyTuple};
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::arrays::{self, Few, MemoryOrder, NdArray, Trouble, Wanted};
use crate::errors::{During, Integer, integer, raised, shown};
use crate::fork::compiling;
use crate::{SMALL, dtypes, threads};

/// How many contractions are remembered.
const REMEMBERED: usize = 1024;

/// The subscripts of a call, as they were given.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Spelling {
    Text(String),
    Lists { operands: Vec<Vec<Sub>>, output: Option<Vec<Sub>> },
}

impl Spelling {
    fn parse(&self, operands: usize) -> Result<Subscripts, EinsumError> {
        match self {
            Spelling::Text(text) => Subscripts::parse(text, operands),
            Spelling::Lists { operands, output } => Subscripts::from_lists(operands, output.clone()),
        }
    }
}

/// A contraction, and what a call asks of it.
struct KnownContraction {
    contraction: Contraction,
    shape: Vec<usize>,
    /// How many operations it makes, and elements it moves.
    operations: u128,
    /// Which axes each dimension walks along, if the result is a view of the only operand.
    view: Option<Vec<Vec<usize>>>,
    /// The contraction with the dimensions of its result in another order, and where each is there.
    laid_out: Option<LaidOut>,
}

/// A contraction whose result lies as it is best computed.
struct LaidOut {
    contraction: Contraction,
    shape: Vec<usize>,
    axes: Vec<Vec<usize>>,
}

/// A contraction, and what it was made from.
struct Remembered {
    spelling: Spelling,
    path: Order,
    elem: ElemType,
    shapes: Vec<Vec<usize>>,
    known: Arc<KnownContraction>,
}

/// The contractions of this process, by a hash of what they were made from.
static CONTRACTIONS: Mutex<Option<FxHashMap<u64, Remembered>>> = Mutex::new(None);

/// The contraction of a call: an earlier one, or a new one.
fn contraction(
    spelling: Spelling,
    path: &Order,
    elem: ElemType,
    arrays: &[NdArray<'_>],
) -> PyResult<Arc<KnownContraction>> {
    let mut hasher = FxHasher::default();
    spelling.hash(&mut hasher);
    discriminant(path).hash(&mut hasher);
    elem.hash(&mut hasher);
    arrays.iter().for_each(|array| array.shape().hash(&mut hasher));
    let hash = hasher.finish();
    let same = |known: &Remembered| {
        known.elem == elem
            && known.shapes.len() == arrays.len()
            && known.shapes.iter().zip(arrays).all(|(shape, array)| shape.as_slice() == array.shape())
            && known.spelling == spelling
            && known.path == *path
    };
    {
        let known = CONTRACTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().and_then(|known| known.get(&hash)).filter(|known| same(known)) {
            return Ok(known.known.clone());
        }
    }
    let shapes: Few<&[usize]> = arrays.iter().map(|array| array.shape()).collect();
    let made = spelling.parse(arrays.len()).and_then(|subscripts| Contraction::new(&subscripts, &shapes, elem, path));
    let contraction = made.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let output = contraction.output_shape();
    let count = |shape: &[usize]| shape.iter().fold(1u128, |count, &size| count.saturating_mul(size as u128));
    let moved = shapes.iter().map(|shape| count(shape)).fold(count(&output), u128::saturating_add);
    let known = Arc::new(KnownContraction {
        shape: output,
        operations: contraction.flops().saturating_add(moved),
        view: contraction.as_view(),
        laid_out: contraction.laid_out(path).map(|(contraction, places)| LaidOut {
            shape: contraction.output_shape(),
            contraction,
            axes: places.into_iter().map(|place| vec![place]).collect(),
        }),
        contraction,
    });
    let new = Remembered {
        shapes: shapes.iter().map(|shape| shape.to_vec()).collect(),
        spelling,
        path: path.clone(),
        elem,
        known: known.clone(),
    };
    let mut all = CONTRACTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if all.len() >= REMEMBERED {
        all.clear();
    }
    all.insert(hash, new);
    Ok(known)
}

/// What a call of either form means: its subscripts and its operands.
fn spelled<'py>(arguments: &Bound<'py, PyTuple>) -> PyResult<(Spelling, Few<Bound<'py, PyAny>>)> {
    let nothing = || {
        PyValueError::new_err(
            "einsum takes the subscripts and at least one operand, or operands and a list of subscripts for each",
        )
    };
    if arguments.len() < 2 {
        return Err(nothing());
    }
    let first = arguments.get_borrowed_item(0)?;
    let text = if let Ok(text) = first.cast::<PyString>() {
        Some(text.to_cow()?.into_owned())
    } else if let Ok(bytes) = first.cast::<PyBytes>() {
        Some(String::from_utf8_lossy(bytes.as_bytes()).into_owned())
    } else {
        None
    };
    if let Some(text) = text {
        return Ok((Spelling::Text(text), arguments.iter().skip(1).collect()));
    }
    let (mut operands, mut lists, mut output) = (SmallVec::new(), Vec::new(), None);
    let mut rest = arguments.iter();
    while let Some(operand) = rest.next() {
        match rest.next() {
            Some(list) => {
                lists.push(subscripts(&list)?);
                operands.push(operand);
            }
            None => output = Some(subscripts(&operand)?),
        }
    }
    Ok((Spelling::Lists { operands: lists, output }, operands))
}

/// A list of numbers and ellipses.
fn subscripts(list: &Bound<'_, PyAny>) -> PyResult<Vec<Sub>> {
    let mut subscripts = Vec::new();
    for item in list.try_iter()? {
        let item = item?;
        let label = if item.is_instance_of::<PyEllipsis>() { None } else { Some(integer(&item)?) };
        subscripts.push(match label {
            None => Sub::Ellipsis,
            Some(Integer::Is(number)) if let Ok(number) = number.try_into() => Sub::Label(number),
            Some(Integer::Is(_) | Integer::TooLarge) => {
                let text = format!("subscript {} is not between 0 and 51", shown(&item)?);
                return Err(PyValueError::new_err(text));
            }
            Some(Integer::IsNone) => {
                let text = format!("subscripts are integers and ellipses, and {} is neither", shown(&item)?);
                return Err(PyTypeError::new_err(text));
            }
        });
    }
    Ok(subscripts)
}

/// In which order `optimize` says that operands are contracted.
fn chosen_path(optimize: Option<&Bound<'_, PyAny>>) -> PyResult<Order> {
    let Some(optimize) = optimize.filter(|optimize| !optimize.is_none()) else { return Ok(Order::Best) };
    let wrong = || -> PyResult<Order> {
        let text = format!(
            "optimize is True, False, 'greedy', 'optimal', one of these with a memory limit, or a path that \
             contract_path has given, not {}",
            shown(optimize)?
        );
        Err(PyValueError::new_err(text))
    };
    if let Ok(chosen) = optimize.cast::<PyBool>() {
        return Ok(if chosen.is_true() { Order::Best } else { Order::AsWritten });
    }
    let strategy = |name: &Bound<'_, PyAny>| match name.extract::<String>().as_deref() {
        Ok("greedy") => Some(Order::Greedy),
        Ok("optimal") => Some(Order::Best),
        _ => None,
    };
    if let Some(path) = strategy(optimize) {
        return Ok(path);
    }
    if !optimize.is_instance_of::<PyList>() && !optimize.is_instance_of::<PyTuple>() {
        return wrong();
    }
    let items: Vec<Bound<'_, PyAny>> = optimize.extract()?;
    match items.as_slice() {
        [name, limit] if let (Some(path), Ok(limit)) = (strategy(name), limit.extract::<f64>()) => {
            // Of a float, Rust takes the nearest size that there is.
            let limit = limit as usize;
            Ok(if path == Order::Greedy { Order::GreedyWithin(limit) } else { Order::BestWithin(limit) })
        }
        [head, steps @ ..] if head.extract::<String>().is_ok_and(|head| head == "einsum_path") => {
            let steps: PyResult<Vec<Vec<usize>>> = steps.iter().map(|step| step.extract()).collect();
            steps.map(Order::Path).or_else(|_| wrong())
        }
        _ => wrong(),
    }
}

/// NumPy's rules for casts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Casting {
    No,
    Equiv,
    Safe,
    SameKind,
    Unsafe,
}

impl Casting {
    fn named(name: Option<&Bound<'_, PyAny>>) -> PyResult<Casting> {
        let Some(name) = name else { return Ok(Casting::Safe) };
        let Ok(text) = name.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!("casting is a text, not {}", shown(name)?)));
        };
        Ok(match &*text.to_cow()? {
            "no" => Casting::No,
            "equiv" => Casting::Equiv,
            "safe" => Casting::Safe,
            "same_kind" => Casting::SameKind,
            "unsafe" => Casting::Unsafe,
            other => {
                let text = format!("casting is 'no', 'equiv', 'safe', 'same_kind' or 'unsafe', not {other:?}");
                return Err(PyValueError::new_err(text));
            }
        })
    }

    fn name(self) -> &'static str {
        match self {
            Casting::No => "no",
            Casting::Equiv => "equiv",
            Casting::Safe => "safe",
            Casting::SameKind => "same_kind",
            Casting::Unsafe => "unsafe",
        }
    }

    /// Whether elements of one type may become elements of another.
    fn allows(self, from: ElemType, to: ElemType) -> bool {
        let keeps_values = matches!(
            (from, to),
            (ElemType::F32 | ElemType::I32 | ElemType::I64, ElemType::F64) | (ElemType::I32, ElemType::I64)
        );
        from == to
            || match self {
                Casting::No | Casting::Equiv => false,
                Casting::Safe => keeps_values,
                Casting::SameKind => keeps_values || to.is_float() || !from.is_float(),
                Casting::Unsafe => true,
            }
    }
}

/// The element type of a dtype, of those that are computed with.
fn computed_elem(dtype: &Bound<'_, PyArrayDescr>) -> PyResult<ElemType> {
    dtypes::elem_of(dtype).filter(|elem| elem.has_arithmetic()).ok_or_else(|| {
        let name = dtypes::dtype_name(dtype);
        let text = format!("einsum of {name} is not supported: it computes in float64, float32, int64 and int32");
        PyNotImplementedError::new_err(text)
    })
}

/// The type that elements of two types are computed in.
fn common(one: ElemType, other: ElemType) -> ElemType {
    match (one, other) {
        _ if one == other => one,
        (ElemType::I32, ElemType::I64) | (ElemType::I64, ElemType::I32) => ElemType::I64,
        _ => ElemType::F64,
    }
}

/// How a result lies, if the call does not give an array for it; none where it may lie in any way.
fn chosen_order(order: Option<&Bound<'_, PyAny>>, arrays: &[NdArray<'_>]) -> PyResult<Option<MemoryOrder>> {
    let Some(order) = order.filter(|order| !order.is_none()) else { return Ok(None) };
    let Ok(name) = order.cast::<PyString>() else {
        return Err(PyTypeError::new_err(format!("order is a text, not {}", shown(order)?)));
    };
    let columns = || {
        let all = |is: fn(&NdArray<'_>) -> bool| arrays.iter().all(is);
        all(|array| array.is_fortran_contiguous()) && !all(|array| array.is_c_contiguous())
    };
    Ok(match &*name.to_cow()?.to_ascii_uppercase() {
        "K" => None,
        "C" => Some(MemoryOrder::C),
        "F" => Some(MemoryOrder::F),
        "A" if columns() => Some(MemoryOrder::F),
        "A" => Some(MemoryOrder::C),
        other => return Err(PyValueError::new_err(format!("order is 'C', 'F', 'A' or 'K', not {other:?}"))),
    })
}

/// Sums products of operands along indices that they share, as `numpy.einsum` does.
///
/// The call is `einsum("ij,jk->ik", a, b)`, or `einsum(a, [0, 1], b, [1, 2], [0, 2])`. Operands are arrays, lists or
/// numbers, of float64, float32, int64 and int32, also mixed. Results have the same bits every time, whatever the
/// number of threads.
///
/// - `out` is an array that takes the result, and is returned.
/// - `optimize`: operands are contracted in the order that takes the fewest operations, also by default; `False`
///   contracts all at once, `'greedy'` or a path of `contract_path` as they say.
/// - `dtype` is the type to compute in, `casting` what operands may be cast by: `'no'`, `'equiv'`, `'safe'`,
///   `'same_kind'` or `'unsafe'`.
/// - `order`: a new result lies row by row (`'C'`), column by column (`'F'`), that if the operands do (`'A'`), or as it is
///   computed best (`'K'`, also by default).
///
/// With one operand and nothing to sum, the result is a view of the operand.
///
/// >>> import certen
/// >>> import numpy as np
/// >>> a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0)
/// >>> certen.einsum("ij,j->i", a, b)
/// array([ 5., 14.])
/// >>> certen.einsum(a, [0, 1], [1])
/// array([3., 5., 7.])
#[pyfunction]
#[pyo3(
    signature = (*operands, out = None, optimize = None, dtype = None, order = None, casting = None, **unknown),
    text_signature = "(*operands, out=None, optimize=None, dtype=None, order='K', casting='safe')"
)]
#[allow(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub fn einsum<'py>(
    py: Python<'py>,
    operands: &Bound<'py, PyTuple>,
    out: Option<&Bound<'py, PyAny>>,
    optimize: Option<&Bound<'py, PyAny>>,
    dtype: Option<&Bound<'py, PyAny>>,
    order: Option<&Bound<'py, PyAny>>,
    casting: Option<&Bound<'py, PyAny>>,
    unknown: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    not_supported("einsum", unknown)?;
    let (spelling, operands) = spelled(operands)?;
    let path = chosen_path(optimize)?;
    let casting = Casting::named(casting)?;
    let inputs: Few<NdArray<'py>> = operands.iter().map(arrays::any_array).collect::<PyResult<_>>()?;
    let order = chosen_order(order, &inputs)?;
    let elems: Few<ElemType> = inputs.iter().map(|input| computed_elem(&input.dtype())).collect::<PyResult<_>>()?;
    let out = out.filter(|out| !out.is_none());
    let target = out.map(target_of).transpose()?;
    let given = dtype.map(|dtype| computed_elem(&PyArrayDescr::new(py, dtype)?)).transpose()?;
    let all = elems.iter().copied().chain(target.as_ref().map(|(elem, _)| *elem));
    let elem = given.or_else(|| all.reduce(common)).unwrap_or(ElemType::F64);
    let known = contraction(spelling, &path, elem, &inputs)?;

    // A view has the operand's own elements, whatever the other arguments say.
    if let (None, [input], Some(axes)) = (&target, inputs.as_slice(), &known.view) {
        return arrays::returned(arrays::viewed(input, &known.shape, axes)?);
    }
    let refuses = |found: ElemType, array: &NdArray<'_>| {
        let swapped = array.dtype().is_native_byteorder() == Some(false);
        !casting.allows(found, elem) || swapped && casting == Casting::No
    };
    let mut converted: Few<(ElemType, NdArray<'py>)> = SmallVec::with_capacity(inputs.len());
    for (at, (input, found)) in inputs.into_iter().zip(elems).enumerate() {
        if refuses(found, &input) {
            let found = dtypes::dtype_name(&input.dtype());
            return Err(not_cast(py, &format!("operand {at}"), &found, elem, casting));
        }
        converted.push((elem, if found == elem { input } else { arrays::copied(&input, elem)? }));
    }
    if let Some((found, array)) = &target {
        if refuses(*found, array) || !casting.allows(elem, *found) {
            return Err(not_cast(py, "out", &dtypes::dtype_name(&array.dtype()), elem, casting));
        }
        check_out(array, &known.shape)?;
    }
    let laid_out = known.laid_out.as_ref().filter(|_| target.is_none() && order.is_none());
    let (contraction, shape) = match laid_out {
        Some(laid_out) => (&laid_out.contraction, &laid_out.shape),
        None => (&known.contraction, &known.shape),
    };
    let order = order.unwrap_or(MemoryOrder::C);
    let wanted = [Wanted { elem, shape: SmallVec::from_slice(shape), order, out: target.map(|(_, array)| array) }];
    let threads = threads::set();
    if contraction.is_due() {
        compiling(py, || contraction.prepare());
    }
    let results = arrays::call(py, &converted, &wanted, |views, targets| {
        let Some(target) = targets.into_iter().next() else { return Ok(()) };
        match known.operations < SMALL.into() {
            true => contraction.run(views, target, threads),
            false => py.detach(|| contraction.run(views, target, threads)),
        }
    });
    let results = results.map_err(|trouble| match trouble {
        Trouble::Python(error) => error,
        Trouble::Work(failure) => raised(py, &failure, During::Call),
    })?;
    match out {
        Some(out) => Ok(out.clone()),
        None => match (results.into_iter().next(), laid_out) {
            (Some(result), Some(LaidOut { axes, .. })) => {
                arrays::returned(arrays::viewed(&result, &known.shape, axes)?)
            }
            (Some(result), None) => arrays::returned(result),
            (None, _) => Ok(py.None().into_bound(py)),
        },
    }
}

/// The array that `out` is, and its element type.
fn target_of<'py>(out: &Bound<'py, PyAny>) -> PyResult<(ElemType, NdArray<'py>)> {
    let Ok(array) = out.cast::<PyUntypedArray>() else {
        return Err(PyTypeError::new_err(format!("out is an array, not {}", shown(out)?)));
    };
    Ok((computed_elem(&array.dtype())?, array.clone()))
}

/// Whether a result of some shape can be written to an array.
fn check_out(array: &NdArray<'_>, shape: &[usize]) -> PyResult<()> {
    if array.shape() != shape {
        let found = array.shape();
        return Err(PyValueError::new_err(format!("out has the shape {found:?}, the result {shape:?}")));
    }
    if !arrays::is_writable(array) {
        return Err(PyValueError::new_err("out is read-only"));
    }
    if arrays::overlaps_itself(array) {
        return Err(PyValueError::new_err("out overlaps itself: two of its elements share memory"));
    }
    Ok(())
}

/// The order in which `einsum` contracts operands, as `numpy.einsum_path` tells it: a path that `optimize` takes, and a
/// text that shows the steps and what they cost.
///
/// >>> import certen
/// >>> import numpy as np
/// >>> matrix = np.ones((50, 40))
/// >>> path, text = certen.contract_path("ij,kj,k->i", matrix, matrix, np.ones(50))
/// >>> path
/// ['einsum_path', (1, 2), (0, 1)]
#[pyfunction]
#[pyo3(
    signature = (*operands, optimize = None, **unknown),
    text_signature = "(*operands, optimize=None)"
)]
pub fn contract_path<'py>(
    py: Python<'py>,
    operands: &Bound<'py, PyTuple>,
    optimize: Option<&Bound<'py, PyAny>>,
    unknown: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Bound<'py, PyList>, String)> {
    not_supported("contract_path", unknown)?;
    let (spelling, operands) = spelled(operands)?;
    let path = chosen_path(optimize)?;
    let arrays = operands.iter().map(arrays::any_array).collect::<PyResult<Few<_>>>()?;
    // Orders depend on shapes alone.
    let KnownContraction { contraction, .. } = &*contraction(spelling, &path, ElemType::F64, &arrays)?;
    let list = PyList::new(py, ["einsum_path"])?;
    for step in contraction.path() {
        list.append(PyTuple::new(py, step)?)?;
    }
    Ok((list, contraction.report()))
}

fn not_supported(function: &str, unknown: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    match unknown.into_iter().flatten().next() {
        Some((name, _)) => Err(PyNotImplementedError::new_err(format!("{function} has no argument {name}"))),
        None => Ok(()),
    }
}

fn not_cast(py: Python<'_>, which: &str, found: &str, elem: ElemType, casting: Casting) -> PyErr {
    let elem = dtypes::dtype_name(&dtypes::dtype(py, elem));
    PyTypeError::new_err(format!("{which}: {found} and {elem} cannot be cast by the rule '{}'", casting.name()))
}
