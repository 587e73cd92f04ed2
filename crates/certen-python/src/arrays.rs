//! NumPy arrays as views, without a copy: the only module here that may be unsafe.
//!
//! Whatever Python calls an array ([`array_of`]) becomes a NumPy array that shares its memory: by DLPack, by the array
//! interface or the buffer protocol. [`call`] lends the memory of all arrays of a call to Rust, as views, and takes it
//! back. Arrays that a kernel cannot read in place are copied: those whose elements are not in the machine's byte
//! order, not aligned, not whole elements apart, or truth values that are neither 0 nor 1.
//!
//! An array that is given for a result is written in place if a kernel can do that; if it overlaps another array of the
//! call, or its elements lie where no view can follow, the result is computed beside it and copied by NumPy, so that
//! every call computes as if its inputs had been copied first. One that overlaps itself is refused before. Fresh results are NumPy's own memory, aligned to cache
//! lines.
//!
//! Needs: the interpreter's lock wherever a NumPy array is touched, which the types say. Guarantees: views describe
//! exactly the arrays as they are when the work begins: all that has to hold of them, the bytes of truth values too, is
//! looked at after the last time that code of Python's could run, or another thread of Python. Views live as long as
//! the arrays are held. A thread that writes to an array while a kernel reads it, or resizes it against NumPy's advice,
//! gets what it asked for.

#![allow(unsafe_code, reason = "this module lends NumPy's memory to Rust")]

use std::ffi::c_int;
use std::ptr;

use certen::ElemType;
use certen::road::runtime::{ArrayError, View, ViewMut};
use numpy::npyffi::flags::{NPY_ARRAY_C_CONTIGUOUS, NPY_ARRAY_CARRAY, NPY_ARRAY_F_CONTIGUOUS, NPY_ARRAY_WRITEABLE};
use numpy::npyffi::{_PyArray_GET_ITEM_DATA, NpyTypes, PY_ARRAY_API, get_type_object, npy_intp};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyTuple, PyType};
use pyo3::{ffi, intern};
use smallvec::SmallVec;

use crate::dtypes::{elem_of, type_number};
use crate::overlap;
use crate::values::{Rounding, same_values};

/// A NumPy array, of whatever dtype.
pub type NdArray<'py> = Bound<'py, PyUntypedArray>;

/// A few of something: most calls have no more.
pub type Few<T> = SmallVec<[T; 4]>;

/// Results begin at a cache line, which is also the widest vector register.
const ALIGNMENT: usize = 64;

/// Functions of NumPy, looked up once.
struct Functions {
    asarray: Py<PyAny>,
    from_dlpack: Py<PyAny>,
    masked_array: Py<PyAny>,
}

fn functions(py: Python<'_>) -> PyResult<&'static Functions> {
    static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();
    FUNCTIONS.get_or_try_init(py, || {
        let numpy = py.import("numpy")?;
        let function = |name: &str| Ok::<_, PyErr>(numpy.getattr(name)?.unbind());
        let masked_array = py.import("numpy.ma")?.getattr("MaskedArray")?.unbind();
        Ok(Functions { asarray: function("asarray")?, from_dlpack: function("from_dlpack")?, masked_array })
    })
}

/// Finds what is needed of NumPy, when the module is imported: later there may be no time for imports, since a process
/// ends or forks, or no room on the stack.
///
/// # Errors
/// If there is no NumPy.
pub fn initialise(py: Python<'_>) -> PyResult<()> {
    functions(py)?;
    numpy::npyffi::is_numpy_2(py);
    Ok(())
}

/// Whether an array has elements that are hidden by a mask.
///
/// # Errors
/// If its class cannot be asked.
pub fn is_masked(array: &NdArray<'_>) -> PyResult<bool> {
    let py = array.py();
    // SAFETY: both are types, looked at under the lock.
    let is_plain = unsafe { ffi::Py_TYPE(array.as_ptr()) == get_type_object(py, NpyTypes::PyArray_Type) };
    if is_plain { Ok(false) } else { array.is_instance(functions(py)?.masked_array.bind(py)) }
}

/// The NumPy array that shares an object's memory, or has its elements; none if the object is no array but a number, a
/// list and so on.
///
/// # Errors
/// If the object says that it is an array, and then is none that NumPy could use.
pub fn array_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<NdArray<'py>>> {
    if let Some(array) = lent_array(object)? {
        return Ok(Some(array));
    }
    let py = object.py();
    let is_class = object.is_instance_of::<PyType>();
    if is_class || is_scalar(object) || !object.hasattr(intern!(py, "__array__"))? {
        return Ok(None);
    }
    Ok(Some(functions(py)?.asarray.bind(py).call1((object,))?.cast_into()?))
}

/// Whether an object is a number or a text, of Python's or NumPy's.
fn is_scalar(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: the object is one, and asked under the lock.
    unsafe { PY_ARRAY_API.PyArray_CheckAnyScalarExact(object.py(), object.as_ptr()) != 0 }
}

/// The NumPy array that shares an object's memory; none if the object does not share it.
///
/// # Errors
/// As [`array_of`].
pub fn lent_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<NdArray<'py>>> {
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        return Ok(Some(array.clone()));
    }
    let py = object.py();
    // SAFETY: the object is one, and asked under the lock.
    let lends_bytes = unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } != 0;
    let is_bytes = object.is_instance_of::<PyBytes>();
    if is_scalar(object) && !is_bytes || object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    // A class has the methods of its objects, and is none of them.
    let has = |name| Ok::<_, PyErr>(!object.is_instance_of::<PyType>() && object.hasattr(name)?);
    let functions = functions(py)?;
    let array = if has(intern!(py, "__dlpack__"))? {
        functions.from_dlpack.bind(py).call1((object,))?
    } else if is_bytes {
        functions.asarray.bind(py).call1((PyMemoryView::from(object)?,))?
    } else if lends_bytes || has(intern!(py, "__array_interface__"))? || has(intern!(py, "__array_struct__"))? {
        functions.asarray.bind(py).call1((object,))?
    } else {
        return Ok(None);
    };
    Ok(Some(array.cast_into()?))
}

/// Any object as an array, as NumPy makes one of it: lists and numbers too.
///
/// # Errors
/// If NumPy cannot.
pub fn any_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<NdArray<'py>> {
    match array_of(object)? {
        Some(array) => Ok(array),
        None => Ok(functions(object.py())?.asarray.bind(object.py()).call1((object,))?.cast_into()?),
    }
}

/// A number, a list, a tuple and so on as an array of this element type, or of that which NumPy finds; none if that
/// would change a value.
///
/// # Errors
/// If NumPy cannot make an array of it.
pub fn converted<'py>(
    object: &Bound<'py, PyAny>,
    elem: Option<ElemType>,
) -> PyResult<Option<(ElemType, NdArray<'py>)>> {
    let py = object.py();
    let natural = functions(py)?.asarray.bind(py).call1((object,))?.cast_into::<PyUntypedArray>()?;
    let Some(found) = elem_of(&natural.dtype()) else { return Ok(None) };
    let several = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
    if found == ElemType::F64 && several && !has_exact_integers(object)? {
        return Ok(None);
    }
    let elem = elem.unwrap_or(found);
    if found == elem {
        return Ok(Some((elem, natural)));
    }
    let natural = match found {
        ElemType::Bool => truths(&copied(&natural, found)?)?,
        _ => copied(&natural, found)?,
    };
    // SAFETY: it is a copy that no other code has; truth values are 0 or 1 in it.
    let values = unsafe { view(&natural, found)? }.to_array().map_err(|error| refused(&error))?;
    let is_pythons = several || object.is_exact_instance_of::<PyFloat>();
    let rounding = if is_pythons { Rounding::Shorter } else { Rounding::Never };
    let Some(values) = same_values(&values, elem, rounding) else { return Ok(None) };
    let array = fresh(py, elem, values.shape(), MemoryOrder::C)?;
    view_mut(&array, elem)?.assign(&values).map_err(|error| refused(&error))?;
    Ok(Some((elem, array)))
}

/// Whether the integers in lists that NumPy takes for floats are such floats.
fn has_exact_integers(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let objects = functions(py)?.asarray.bind(py).call1((object, intern!(py, "O")))?;
    for item in objects.getattr(intern!(py, "flat"))?.try_iter()? {
        let item = item?;
        if item.is_exact_instance_of::<PyInt>() && !item.eq(item.extract::<f64>()?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A copy of an array, row by row, in the machine's byte order and with this element type.
///
/// # Errors
/// If there is no memory for it.
pub fn copied<'py>(array: &NdArray<'py>, elem: ElemType) -> PyResult<NdArray<'py>> {
    let fresh = fresh(array.py(), elem, array.shape(), MemoryOrder::C)?;
    assign(&fresh, array)?;
    Ok(fresh)
}

/// Copies the elements of one array into another of the same shape, with NumPy's conversions.
fn assign(to: &NdArray<'_>, from: &NdArray<'_>) -> PyResult<()> {
    // SAFETY: both are arrays; that they fit, NumPy checks.
    match unsafe { PY_ARRAY_API.PyArray_CopyInto(to.py(), to.as_array_ptr(), from.as_array_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(to.py())),
    }
}

/// An array that views can describe as one of this element type: the array itself where that is possible, a copy else.
fn steady<'py>(array: &NdArray<'py>, elem: ElemType) -> PyResult<NdArray<'py>> {
    if elem_of(&array.dtype()) != Some(elem) {
        return Err(changed());
    }
    // Only truth values that lie side by side are looked at in place; a kernel would copy the rest anyway.
    let in_place = is_plain(array, elem) && (elem != ElemType::Bool || array.is_c_contiguous());
    let array = if in_place { array.clone() } else { copied(array, elem)? };
    // Looking at so many would keep others waiting, and others could change them if they did not wait.
    match elem {
        ElemType::Bool if array.len() > MANY_TRUTHS => truths(&array),
        _ => Ok(array),
    }
}

/// How many truth values are looked at while everyone waits: some milliseconds.
const MANY_TRUTHS: usize = 1 << 26;

/// A copy of contiguous truth values in which every byte is 0 or 1.
fn truths<'py>(array: &NdArray<'py>) -> PyResult<NdArray<'py>> {
    let py = array.py();
    let copy = fresh(py, ElemType::Bool, array.shape(), MemoryOrder::C)?;
    let (from, to) = (bytes(array)?, bytes(&copy)?);
    let copy_all = || {
        let (read, written) = (from.data(), to.data().cast_mut());
        for at in 0..from.shape().first().copied().unwrap_or(0) {
            // SAFETY: both have so many bytes side by side, and no other code has the new ones.
            unsafe { written.add(at).write(u8::from(read.add(at).read() != 0)) };
        }
    };
    if array.len() > MANY_TRUTHS {
        py.detach(copy_all)
    } else {
        copy_all()
    }
    Ok(copy)
}

/// The bytes of a contiguous array of truth values.
fn bytes<'a>(array: &'a NdArray<'_>) -> PyResult<View<'a>> {
    let data = fields(array).ok_or_else(changed)?.data.cast::<u8>();
    if !array.is_c_contiguous() {
        return Err(changed());
    }
    // SAFETY: the array is contiguous and held, so that so many bytes can be read from its first.
    unsafe { View::from_raw(ElemType::U8, data, &[array.len()], &[1]) }.map_err(|error| refused(&error))
}

/// Whether a byte is neither 0 nor 1.
fn has_odd_truth(bytes: &View<'_>) -> bool {
    // So many are looked at together, which the compiler does with vectors.
    const TOGETHER: usize = 4096;
    let (data, count) = (bytes.data(), bytes.shape().first().copied().unwrap_or(0));
    (0..count).step_by(TOGETHER).any(|start| {
        let end = count.min(start + TOGETHER);
        // SAFETY: it is a view of so many bytes, side by side.
        (start..end).fold(0, |all, at| all | unsafe { data.add(at).read() }) > 1
    })
}

/// What NumPy keeps of an array.
fn fields<'a>(array: &'a NdArray<'_>) -> Option<&'a numpy::npyffi::PyArrayObject_fields> {
    // SAFETY: it is an array, held and looked at under the lock.
    unsafe { _PyArray_GET_ITEM_DATA(array.as_array_ptr()).as_ref() }
}

/// Whether an array can be written.
pub fn is_writable(array: &NdArray<'_>) -> bool {
    fields(array).is_some_and(|fields| fields.flags & NPY_ARRAY_WRITEABLE != 0)
}

/// Whether two elements of an array share bytes, so that it cannot hold a result.
pub fn overlaps_itself(array: &NdArray<'_>) -> bool {
    overlap::overlaps_itself(array.shape(), array.strides(), array.dtype().itemsize())
}

/// Whether views can describe an array as one of this element type.
fn is_plain(array: &NdArray<'_>, elem: ElemType) -> bool {
    let Some(fields) = fields(array) else { return false };
    let dtype = array.dtype();
    elem_of(&dtype) == Some(elem)
        && dtype.is_native_byteorder() != Some(false)
        && fields.data.addr().is_multiple_of(elem.bytes())
        && array.strides().iter().all(|stride| stride.unsigned_abs().is_multiple_of(elem.bytes()))
}

/// How the elements of a fresh array lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryOrder {
    /// Row by row.
    C,
    /// Column by column.
    F,
}

/// A new array with elements that are not written yet, aligned to a cache line.
///
/// # Errors
/// If there is no memory for it, or it has more dimensions than NumPy knows.
pub fn fresh<'py>(py: Python<'py>, elem: ElemType, shape: &[usize], order: MemoryOrder) -> PyResult<NdArray<'py>> {
    let too_large = || PyMemoryError::new_err(format!("an array of shape {shape:?} is too large"));
    let mut dims: Few<npy_intp> = SmallVec::with_capacity(shape.len());
    for &size in shape {
        dims.push(npy_intp::try_from(size).map_err(|_| too_large())?);
    }
    let bytes = shape.iter().try_fold(elem.bytes(), |product, &size| product.checked_mul(size));
    let padded = bytes.and_then(|bytes| bytes.checked_add(ALIGNMENT - 1)).ok_or_else(too_large)?;
    let mut padded = npy_intp::try_from(padded).map_err(|_| too_large())?;
    let rank = c_int::try_from(dims.len()).map_err(|_| too_large())?;
    let flags = match order {
        MemoryOrder::C => NPY_ARRAY_CARRAY,
        MemoryOrder::F => NPY_ARRAY_CARRAY & !NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS,
    };
    let (none, nothing) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the type is NumPy's own, the numbers are those of dtypes, and the sizes are as many as said. `memory`
    // owns so many bytes that `bytes` of them follow any of the first `ALIGNMENT`; `array` describes no more, and holds
    // `memory`.
    unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let bytes = type_number(ElemType::U8);
        let memory =
            PY_ARRAY_API.PyArray_New(py, class, 1, &raw mut padded, bytes, none, nothing, 0, 0, ptr::null_mut());
        let memory = Bound::from_owned_ptr_or_err(py, memory)?;
        let start = (*_PyArray_GET_ITEM_DATA(memory.as_ptr().cast())).data;
        let data = start.add(start.addr().wrapping_neg() % ALIGNMENT);
        let array = PY_ARRAY_API.PyArray_New(
            py,
            class,
            rank,
            dims.as_mut_ptr(),
            type_number(elem),
            ptr::null_mut(),
            data.cast(),
            0,
            flags,
            ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?.cast_into_unchecked::<PyUntypedArray>();
        match PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_array_ptr(), memory.into_ptr()) {
            0 => Ok(array),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// An array as NumPy's functions return it: one without dimensions becomes a scalar.
pub fn returned(array: NdArray<'_>) -> PyResult<Bound<'_, PyAny>> {
    let py = array.py();
    // SAFETY: NumPy takes the reference and gives another.
    unsafe { Bound::from_owned_ptr_or_err(py, PY_ARRAY_API.PyArray_Return(py, array.into_ptr().cast())) }
}

/// What a call computes: into a fresh array, or into one that was given.
pub struct Wanted<'py> {
    /// The element type.
    pub elem: ElemType,
    /// The sizes.
    pub shape: Few<usize>,
    /// How a fresh array lies.
    pub order: MemoryOrder,
    /// The array that was given: of this shape, and writable.
    pub out: Option<NdArray<'py>>,
}

/// Why a call could not be made: an exception, or what the work itself says.
pub enum Trouble<E> {
    /// Python's own.
    Python(PyErr),
    /// The work's.
    Work(E),
}

impl<E> From<PyErr> for Trouble<E> {
    fn from(error: PyErr) -> Trouble<E> {
        Trouble::Python(error)
    }
}

/// Does work that reads some arrays, of these element types, and writes results. Afterwards the results are in arrays,
/// in those that were given where some were.
///
/// # Errors
/// If there is no memory, an array was changed in the meantime, or the work fails; then what results hold is not
/// specified.
pub fn call<'py, E>(
    py: Python<'py>,
    inputs: &[(ElemType, NdArray<'py>)],
    results: &[Wanted<'py>],
    work: impl FnOnce(&[View<'_>], Few<ViewMut<'_>>) -> Result<(), E>,
) -> Result<Few<NdArray<'py>>, Trouble<E>> {
    let mut held: Few<(ElemType, NdArray<'py>)> = SmallVec::with_capacity(inputs.len());
    for (elem, array) in inputs {
        held.push((*elem, steady(array, *elem)?));
    }
    // From here on until the work begins, no code of Python's and no other thread of it can change an array.
    for (elem, array) in &mut held {
        if *elem == ElemType::Bool && has_odd_truth(&bytes(array)?) {
            *array = truths(array)?;
        }
    }
    let mut views: Few<View<'_>> = SmallVec::with_capacity(inputs.len());
    for (elem, array) in &held {
        // SAFETY: truth values are 0 or 1, just looked at or made so.
        views.push(unsafe { view(array, *elem)? });
    }
    let mut written: Few<NdArray<'py>> = SmallVec::with_capacity(results.len());
    for (at, result) in results.iter().enumerate() {
        let in_place = match &result.out {
            Some(out) => can_be_written(out, result.elem, &views, &results[..at])?.then(|| out.clone()),
            None => None,
        };
        written.push(match in_place {
            Some(out) => out,
            None => fresh(py, result.elem, &result.shape, result.order)?,
        });
    }
    let mut targets: Few<ViewMut<'_>> = SmallVec::with_capacity(results.len());
    for (array, result) in written.iter().zip(results) {
        targets.push(view_mut(array, result.elem)?);
    }
    work(&views, targets).map_err(Trouble::Work)?;
    for (result, array) in results.iter().zip(&mut written) {
        if let Some(out) = &result.out
            && !out.is(&*array)
        {
            assign(out, array)?;
            *array = out.clone();
        }
    }
    Ok(written)
}

/// The strides of an array in elements.
fn strides(array: &NdArray<'_>, elem: ElemType) -> Few<i64> {
    array.strides().iter().map(|&stride| stride as i64 / elem.bytes() as i64).collect()
}

fn changed() -> PyErr {
    PyRuntimeError::new_err("an array was changed while it was used")
}

fn refused(error: &ArrayError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// The elements of an array, to be read.
///
/// # Safety
/// Truth values are 0 or 1.
unsafe fn view<'a>(array: &'a NdArray<'_>, elem: ElemType) -> PyResult<View<'a>> {
    if !is_plain(array, elem) {
        return Err(changed());
    }
    let data = fields(array).ok_or_else(changed)?.data.cast::<u8>();
    // SAFETY: NumPy keeps every element of an array readable while the array is held, as it is for `'a`. It is of this
    // type, in the machine's byte order; truth values are as the caller says.
    unsafe { View::from_raw(elem, data, array.shape(), &strides(array, elem)) }.map_err(|error| refused(&error))
}

/// The elements of an array, to be written.
fn view_mut<'a>(array: &'a NdArray<'_>, elem: ElemType) -> PyResult<ViewMut<'a>> {
    if !is_plain(array, elem) || !is_writable(array) {
        return Err(changed());
    }
    let data = fields(array).ok_or_else(changed)?.data.cast::<u8>();
    // SAFETY: as above, and it can be written. It is fresh, or `can_be_written` has found that no other view of the
    // call has any of its elements.
    unsafe { ViewMut::from_raw(elem, data, array.shape(), &strides(array, elem)) }.map_err(|error| refused(&error))
}

/// Whether a given array can be written in place: views can describe it, each element is there once, and it overlaps
/// neither what is read nor what other results were given.
fn can_be_written(out: &NdArray<'_>, elem: ElemType, views: &[View<'_>], earlier: &[Wanted<'_>]) -> PyResult<bool> {
    if !is_plain(out, elem) {
        return Ok(false);
    }
    let target = view_mut(out, elem)?;
    if target.has_repetitions() {
        return Ok(false);
    }
    let extent = target.extent();
    let apart = |other: std::ops::Range<usize>| extent.start >= other.end || other.start >= extent.end;
    let others = earlier.iter().filter_map(|result| result.out.as_ref());
    let others = others.filter_map(|other| elem_of(&other.dtype()).map(|elem| bounds(other, elem)));
    Ok(views.iter().all(|view| apart(view.extent())) && others.into_iter().all(apart))
}

/// The addresses between the first and the last byte of an array's elements.
fn bounds(array: &NdArray<'_>, elem: ElemType) -> std::ops::Range<usize> {
    let start = fields(array).map_or(0, |fields| fields.data.addr());
    if array.is_empty() {
        return start..start;
    }
    let (mut low, mut high) = (start, start.saturating_add(elem.bytes()));
    for (&stride, &size) in array.strides().iter().zip(array.shape()) {
        let reach = stride.unsigned_abs().saturating_mul(size - 1);
        if stride < 0 {
            low = low.saturating_sub(reach);
        } else {
            high = high.saturating_add(reach);
        }
    }
    low..high
}

/// A view of an array with other dimensions: the size of each, and which axes of the array it walks along at once. It
/// can be written if the array can.
///
/// # Errors
/// If an axis is not there, or has another size.
pub fn viewed<'py>(array: &NdArray<'py>, shape: &[usize], axes: &[Vec<usize>]) -> PyResult<NdArray<'py>> {
    let py = array.py();
    let wrong = || PyRuntimeError::new_err(format!("there is no view {shape:?} of an array {:?}", array.shape()));
    let mut dims: Few<npy_intp> = SmallVec::with_capacity(shape.len());
    let mut strides: Few<npy_intp> = SmallVec::with_capacity(shape.len());
    for (&size, walked) in shape.iter().zip(axes) {
        let mut together = 0;
        for &axis in walked {
            match (array.shape().get(axis), array.strides().get(axis)) {
                (Some(&found), Some(&stride)) if found == size => together += stride,
                (Some(1), Some(_)) => {}
                _ => return Err(wrong()),
            }
        }
        dims.push(npy_intp::try_from(size).map_err(|_| wrong())?);
        strides.push(together);
    }
    let fields = fields(array).ok_or_else(wrong)?;
    // SAFETY: walking several axes of one size at once, and others not at all, stays inside the array; the view holds
    // it.
    unsafe {
        let view = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            get_type_object(py, NpyTypes::PyArray_Type),
            array.dtype().into_dtype_ptr(),
            c_int::try_from(dims.len()).map_err(|_| wrong())?,
            dims.as_mut_ptr(),
            strides.as_mut_ptr(),
            fields.data.cast(),
            fields.flags & NPY_ARRAY_WRITEABLE,
            ptr::null_mut(),
        );
        let view = Bound::from_owned_ptr_or_err(py, view)?.cast_into_unchecked::<PyUntypedArray>();
        match PY_ARRAY_API.PyArray_SetBaseObject(py, view.as_array_ptr(), array.clone().into_ptr()) {
            0 => Ok(view),
            _ => Err(PyErr::fetch(py)),
        }
    }
}
