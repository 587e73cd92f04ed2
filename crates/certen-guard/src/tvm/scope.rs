//! What variables and names of types mean.

use std::collections::BTreeMap;

use certen_core::ElemType;
use certen_syntax::Span;

use crate::python::Known;
use crate::text::{Read, unsupported};

/// What the variables of a scope hold.
pub(crate) type Scope<'a> = BTreeMap<String, Known<'a>>;

/// An element type, by its name.
pub(super) fn elem(dtype: &str, span: Span) -> Read<ElemType> {
    Ok(match dtype {
        "float32" => ElemType::F32,
        "float64" => ElemType::F64,
        "int32" => ElemType::I32,
        "int64" => ElemType::I64,
        "uint8" => ElemType::U8,
        "bool" => ElemType::Bool,
        _ => return Err(unsupported(span, format!("elements of type `{dtype}`"))),
    })
}
