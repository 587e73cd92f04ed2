//! The same values with another element type.
//!
//! Numbers and lists have the element types that NumPy gives them; a parameter has its own. They fit if every value is
//! one of the parameter's type. Only Python's floats, which are all that Python has, are rounded to shorter ones, as
//! NumPy does.

use certen::road::core::Tensor;
use certen::road::core::domain::Scalar;
use certen::{Array, ElemType};

/// Whether floats may be rounded to shorter floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// They may, if they stay finite.
    Shorter,
    /// They may not.
    Never,
}

/// The same values with another element type; none if it does not have one of them, or there is no memory.
pub fn same_values(values: &Array, elem: ElemType, rounding: Rounding) -> Option<Array> {
    let converted = (0..values.len()).map(|at| same_value(values.get(at)?, elem, rounding)).collect::<Option<_>>()?;
    Array::from_tensor(elem, &Tensor::new(values.shape().to_vec(), converted)?).ok()
}

/// A value as one of another type; none if that type does not have it. Truth values are 0 and 1.
fn same_value(value: Scalar, elem: ElemType, rounding: Rounding) -> Option<Scalar> {
    // Every element is an integer of 64 bits, or a float of 64.
    let (integer, float) = match value {
        Scalar::F64(x) => (None, x),
        Scalar::F32(x) => (None, f64::from(x)),
        Scalar::I64(x) => (Some(x), x as f64),
        Scalar::I32(x) => (Some(x.into()), f64::from(x)),
        Scalar::U8(x) => (Some(x.into()), f64::from(x)),
        Scalar::Bool(x) => (Some(x.into()), f64::from(u8::from(x))),
    };
    // Beyond 2^63 no float is an integer here; below, a conversion that comes back was exact.
    let whole = || integer.or_else(|| (float.abs() < 2f64.powi(63) && float.fract() == 0.0).then_some(float as i64));
    let is_exact = |x: f64| x.is_nan() || integer.is_none_or(|i| x as i128 == i128::from(i));
    match elem {
        ElemType::F64 => is_exact(float).then_some(Scalar::F64(float)),
        ElemType::F32 => {
            let single = float as f32;
            let rounds = integer.is_none() && rounding == Rounding::Shorter && single.is_finite() == float.is_finite();
            let same = rounds || float.is_nan() || f64::from(single) == float;
            (same && is_exact(single.into())).then_some(Scalar::F32(single))
        }
        ElemType::I64 => whole().map(Scalar::I64),
        ElemType::I32 => whole()?.try_into().ok().map(Scalar::I32),
        ElemType::U8 => whole()?.try_into().ok().map(Scalar::U8),
        ElemType::Bool => match whole()? {
            0 => Some(Scalar::Bool(false)),
            1 => Some(Scalar::Bool(true)),
            _ => None,
        },
    }
}
