//! NumPy's dtypes and the element types of kernels.

use std::ffi::{c_int, c_long};

use certen::ElemType;
use numpy::npyffi::NPY_TYPES;
use numpy::{PyArrayDescr, PyArrayDescrMethods};
use pyo3::prelude::*;

/// The element type of arrays with a dtype, in either byte order; none if there is none.
pub fn elem_of(dtype: &Bound<'_, PyArrayDescr>) -> Option<ElemType> {
    const FLOAT: c_int = NPY_TYPES::NPY_FLOAT as c_int;
    const DOUBLE: c_int = NPY_TYPES::NPY_DOUBLE as c_int;
    const INT: c_int = NPY_TYPES::NPY_INT as c_int;
    const LONG: c_int = NPY_TYPES::NPY_LONG as c_int;
    const LONGLONG: c_int = NPY_TYPES::NPY_LONGLONG as c_int;
    const UBYTE: c_int = NPY_TYPES::NPY_UBYTE as c_int;
    const BOOL: c_int = NPY_TYPES::NPY_BOOL as c_int;
    match dtype.num() {
        FLOAT => Some(ElemType::F32),
        DOUBLE => Some(ElemType::F64),
        INT => Some(ElemType::I32),
        LONG if size_of::<c_long>() == 8 => Some(ElemType::I64),
        LONG => Some(ElemType::I32),
        LONGLONG => Some(ElemType::I64),
        UBYTE => Some(ElemType::U8),
        BOOL => Some(ElemType::Bool),
        _ => None,
    }
}

/// NumPy's number for an element type.
pub fn type_number(elem: ElemType) -> c_int {
    let number = match elem {
        ElemType::F32 => NPY_TYPES::NPY_FLOAT,
        ElemType::F64 => NPY_TYPES::NPY_DOUBLE,
        ElemType::I32 => NPY_TYPES::NPY_INT,
        ElemType::I64 if size_of::<c_long>() == 8 => NPY_TYPES::NPY_LONG,
        ElemType::I64 => NPY_TYPES::NPY_LONGLONG,
        ElemType::U8 => NPY_TYPES::NPY_UBYTE,
        ElemType::Bool => NPY_TYPES::NPY_BOOL,
    };
    number as c_int
}

/// The dtype of an element type.
pub fn dtype(py: Python<'_>, elem: ElemType) -> Bound<'_, PyArrayDescr> {
    match elem {
        ElemType::F32 => numpy::dtype::<f32>(py),
        ElemType::F64 => numpy::dtype::<f64>(py),
        ElemType::I32 => numpy::dtype::<i32>(py),
        ElemType::I64 => numpy::dtype::<i64>(py),
        ElemType::U8 => numpy::dtype::<u8>(py),
        ElemType::Bool => numpy::dtype::<bool>(py),
    }
}

/// What NumPy calls a dtype: `float64`.
pub fn dtype_name(dtype: &Bound<'_, PyArrayDescr>) -> String {
    dtype.str().map_or_else(|_| "?".into(), |name| name.to_string())
}
