//! The machine's numbers: what native code computes.
//!
//! Each operation rounds by itself: f32 in single, f64 in double precision, nothing fused but `fma`. Integers wrap. What C leaves
//! open is decided here, and generated code follows: a zero divisor gives 0, conversions saturate, minimum and maximum
//! pass on a NaN and prefer the left of two equal operands (which shows only for +0 and -0).

use std::convert::Infallible;
use std::fmt;

use certen_math::Function;
use num_traits::Float;

use super::{Domain, Fault, MISMATCH};
use crate::ops::{Binary, Literal, Unary};
use crate::power::{by_squaring, multiplied};
use crate::types::ElemType;

/// The domain of the machine's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Machine;

/// A machine number. Two are equal as the machine compares them, so NaN is not equal to itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// Of type f64.
    F64(f64),
    /// Of type f32.
    F32(f32),
    /// Of type i64.
    I64(i64),
    /// Of type i32.
    I32(i32),
    /// Of type u8.
    U8(u8),
    /// Of type bool.
    Bool(bool),
}

impl Scalar {
    /// Its element type.
    pub fn elem(self) -> ElemType {
        match self {
            Scalar::F64(_) => ElemType::F64,
            Scalar::F32(_) => ElemType::F32,
            Scalar::I64(_) => ElemType::I64,
            Scalar::I32(_) => ElemType::I32,
            Scalar::U8(_) => ElemType::U8,
            Scalar::Bool(_) => ElemType::Bool,
        }
    }

    /// A whole number as an element: rounded to a float, wrapped to an integer, not zero as a truth value.
    pub fn from_i64(value: i64, elem: ElemType) -> Scalar {
        match elem {
            ElemType::F64 => Scalar::F64(value as f64),
            ElemType::F32 => Scalar::F32(value as f32),
            ElemType::I64 => Scalar::I64(value),
            ElemType::I32 => Scalar::I32(value as i32),
            ElemType::U8 => Scalar::U8(value as u8),
            ElemType::Bool => Scalar::Bool(value != 0),
        }
    }

    /// A float as an element: rounded to a float, saturated to an integer (NaN gives 0), not zero as a truth value.
    pub fn from_f64(value: f64, elem: ElemType) -> Scalar {
        match elem {
            ElemType::F64 => Scalar::F64(value),
            ElemType::F32 => Scalar::F32(value as f32),
            ElemType::I64 => Scalar::I64(value as i64),
            ElemType::I32 => Scalar::I32(value as i32),
            ElemType::U8 => Scalar::U8(value as u8),
            ElemType::Bool => Scalar::Bool(value != 0.0),
        }
    }

    /// The number converted to an element type.
    pub fn cast(self, elem: ElemType) -> Scalar {
        match self {
            Scalar::F64(value) => Scalar::from_f64(value, elem),
            // Exact in f64, so the conversion from there rounds once.
            Scalar::F32(value) => Scalar::from_f64(f64::from(value), elem),
            Scalar::I64(value) => Scalar::from_i64(value, elem),
            Scalar::I32(value) => Scalar::from_i64(i64::from(value), elem),
            Scalar::U8(value) => Scalar::from_i64(i64::from(value), elem),
            Scalar::Bool(value) => Scalar::from_i64(i64::from(value), elem),
        }
    }

    /// The nearest f64.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::F64(value) => value,
            Scalar::F32(value) => f64::from(value),
            Scalar::I64(value) => value as f64,
            Scalar::I32(value) => f64::from(value),
            Scalar::U8(value) => f64::from(value),
            Scalar::Bool(value) => f64::from(u8::from(value)),
        }
    }

    /// Whether both are the same bits, +0 and -0 being different; all NaNs of a type count as the same.
    pub fn same_bits(&self, other: &Scalar) -> bool {
        match (self, other) {
            (Scalar::F64(a), Scalar::F64(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Scalar::F32(a), Scalar::F32(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (a, b) => a == b,
        }
    }
}

impl fmt::Display for Scalar {
    /// The shortest digits that read back as the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::F64(value) => fmt::Debug::fmt(value, f),
            Scalar::F32(value) => fmt::Debug::fmt(value, f),
            Scalar::I64(value) => fmt::Display::fmt(value, f),
            Scalar::I32(value) => fmt::Display::fmt(value, f),
            Scalar::U8(value) => fmt::Display::fmt(value, f),
            Scalar::Bool(value) => fmt::Display::fmt(value, f),
        }
    }
}

impl Domain for Machine {
    type Value = Scalar;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Scalar, Fault> {
        match literal {
            _ if !literal.fits(elem) => Err(MISMATCH),
            Literal::Float(value) => Ok(Scalar::from_f64(value, elem)),
            Literal::Int(value) => Ok(Scalar::from_i64(value, elem)),
            Literal::Bool(value) => Ok(Scalar::Bool(value)),
        }
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<Scalar, Fault> {
        Ok(Scalar::from_i64(index, elem))
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &Scalar) -> Result<Scalar, Fault> {
        let result = match *a {
            _ if a.elem() != elem => None,
            Scalar::F64(a) => float_unary(op, a, f64::round_ties_even).map(Scalar::F64),
            Scalar::F32(a) => float_unary(op, a, f32::round_ties_even).map(Scalar::F32),
            Scalar::I64(a) => int_unary(op, a).map(Scalar::I64),
            Scalar::I32(a) => int_unary(op, i64::from(a)).map(|wide| Scalar::I32(wide as i32)),
            Scalar::Bool(a) if op == Unary::Not => Some(Scalar::Bool(!a)),
            Scalar::U8(_) | Scalar::Bool(_) => None,
        };
        result.ok_or(MISMATCH)
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &Scalar, b: &Scalar) -> Result<Scalar, Fault> {
        let result = match (*a, *b) {
            _ if a.elem() != elem => None,
            (Scalar::F64(a), Scalar::F64(b)) => compare(op, &a, &b).or_else(|| float_binary(op, a, b).map(Scalar::F64)),
            (Scalar::F32(a), Scalar::F32(b)) => compare(op, &a, &b).or_else(|| float_binary(op, a, b).map(Scalar::F32)),
            (Scalar::I64(a), Scalar::I64(b)) => compare(op, &a, &b).or_else(|| int_binary(op, a, b).map(Scalar::I64)),
            (Scalar::I32(a), Scalar::I32(b)) => compare(op, &a, &b)
                .or_else(|| int_binary(op, i64::from(a), i64::from(b)).map(|wide| Scalar::I32(wide as i32))),
            (Scalar::U8(a), Scalar::U8(b)) => compare(op, &a, &b),
            (Scalar::Bool(a), Scalar::Bool(b)) => match op {
                Binary::And => Some(Scalar::Bool(a && b)),
                Binary::Or => Some(Scalar::Bool(a || b)),
                _ => compare(op, &a, &b),
            },
            _ => None,
        };
        result.ok_or(MISMATCH)
    }

    fn choose(&self, cond: &Scalar, a: &Scalar, b: &Scalar) -> Result<Scalar, Fault> {
        match cond {
            Scalar::Bool(cond) => Ok(if *cond { *a } else { *b }),
            _ => Err(MISMATCH),
        }
    }

    fn fma(&self, elem: ElemType, a: &Scalar, b: &Scalar, c: &Scalar) -> Result<Scalar, Fault> {
        match (*a, *b, *c) {
            _ if a.elem() != elem => Err(MISMATCH),
            (Scalar::F64(a), Scalar::F64(b), Scalar::F64(c)) => Ok(Scalar::F64(a.mul_add(b, c))),
            (Scalar::F32(a), Scalar::F32(b), Scalar::F32(c)) => Ok(Scalar::F32(a.mul_add(b, c))),
            _ => Err(MISMATCH),
        }
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Scalar) -> Result<Scalar, Fault> {
        if a.elem() == from { Ok(a.cast(to)) } else { Err(MISMATCH) }
    }
}

/// Floats, and the functions of mathematics that are recipes.
trait Floats: Float {
    fn function(self, function: Function, other: Self) -> Self;
}

impl Floats for f64 {
    fn function(self, function: Function, other: f64) -> f64 {
        function.double(&[self, other])
    }
}

impl Floats for f32 {
    fn function(self, function: Function, other: f32) -> f32 {
        function.single(&[self, other])
    }
}

fn compare<T: PartialOrd>(op: Binary, a: &T, b: &T) -> Option<Scalar> {
    let holds = match op {
        Binary::Lt => a < b,
        Binary::Le => a <= b,
        Binary::Eq => a == b,
        Binary::Ne => a != b,
        _ => return None,
    };
    Some(Scalar::Bool(holds))
}

fn float_unary<F: Floats>(op: Unary, a: F, round_ties_even: fn(F) -> F) -> Option<F> {
    Some(match op {
        Unary::Neg => -a,
        Unary::Not => return None,
        Unary::Abs => a.abs(),
        Unary::Floor => a.floor(),
        Unary::Ceil => a.ceil(),
        Unary::Round => round_ties_even(a),
        Unary::Sqrt => a.sqrt(),
        Unary::LibmExp => a.exp(),
        Unary::LibmLog => a.ln(),
        Unary::LibmSin => a.sin(),
        Unary::LibmCos => a.cos(),
        Unary::LibmTanh => a.tanh(),
        Unary::LibmExp2 => a.exp2(),
        Unary::LibmExpm1 => a.exp_m1(),
        Unary::LibmLog2 => a.log2(),
        Unary::LibmLog10 => a.log10(),
        Unary::LibmLog1p => a.ln_1p(),
        Unary::LibmTan => a.tan(),
        Unary::LibmAsin => a.asin(),
        Unary::LibmAcos => a.acos(),
        Unary::LibmAtan => a.atan(),
        Unary::LibmSinh => a.sinh(),
        Unary::LibmCosh => a.cosh(),
        Unary::LibmCbrt => a.cbrt(),
        function => a.function(function.function()?, F::zero()),
    })
}

fn float_binary<F: Floats>(op: Binary, a: F, b: F) -> Option<F> {
    Some(match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::ControlledDiv if a.is_zero() => F::zero(),
        Binary::ControlledDiv => a / b,
        // A NaN on the right makes the comparison false, so that it is chosen.
        Binary::Min if a.is_nan() || a <= b => a,
        Binary::Max if a.is_nan() || a >= b => a,
        Binary::Min | Binary::Max => b,
        Binary::LibmPow => power(a, b),
        Binary::LibmAtan2 => a.atan2(b),
        Binary::LibmHypot => a.hypot(b),
        function if function.function().is_some() => a.function(function.function()?, b),
        _ => return None,
    })
}

/// A product if the exponent is small and whole, else what the C library says.
fn power<F: Float>(a: F, b: F) -> F {
    match b.to_f64().and_then(multiplied) {
        None => a.powf(b),
        Some(0) => F::one(),
        Some(k) => {
            let Ok(product) = by_squaring(&a, k.unsigned_abs(), |a, b| Ok::<F, Infallible>(*a * *b));
            if k > 0 { product } else { F::one() / product }
        }
    }
}

/// On 64 bits; 32-bit integers are widened, and wrap when they are cut again.
fn int_unary(op: Unary, a: i64) -> Option<i64> {
    match op {
        Unary::Neg => Some(a.wrapping_neg()),
        Unary::Abs => Some(a.wrapping_abs()),
        _ => None,
    }
}

/// On 64 bits; 32-bit integers are widened, and wrap when they are cut again.
fn int_binary(op: Binary, a: i64, b: i64) -> Option<i64> {
    Some(match op {
        Binary::Add => a.wrapping_add(b),
        Binary::Sub => a.wrapping_sub(b),
        Binary::Mul => a.wrapping_mul(b),
        Binary::FloorDiv | Binary::Mod if b == 0 => 0,
        Binary::FloorDiv => {
            // Rust rounds towards zero: one too high where a remainder and the divisor have different signs.
            let remainder = a.wrapping_rem(b);
            a.wrapping_div(b) - i64::from(remainder != 0 && (remainder < 0) != (b < 0))
        }
        Binary::Mod => {
            let remainder = a.wrapping_rem(b);
            if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder }
        }
        Binary::Min => a.min(b),
        Binary::Max => a.max(b),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn f64_op(op: Binary, a: f64, b: f64) -> f64 {
        Machine.binary(op, ElemType::F64, &Scalar::F64(a), &Scalar::F64(b)).unwrap().to_f64()
    }

    fn i64_op(op: Binary, a: i64, b: i64) -> i64 {
        match Machine.binary(op, ElemType::I64, &Scalar::I64(a), &Scalar::I64(b)) {
            Ok(Scalar::I64(value)) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn minimum_and_maximum_hand_on_a_nan() {
        for op in [Binary::Min, Binary::Max] {
            assert!(f64_op(op, f64::NAN, 1.0).is_nan() && f64_op(op, 1.0, f64::NAN).is_nan());
        }
        assert_eq!((f64_op(Binary::Min, 1.0, -2.0), f64_op(Binary::Max, 1.0, -2.0)), (-2.0, 1.0));
    }

    #[test]
    fn controlled_division_gives_zero_where_the_numerator_is_zero() {
        for b in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Scalar::F64(f64_op(Binary::ControlledDiv, -0.0, b)).same_bits(&Scalar::F64(0.0)));
        }
        assert_eq!(f64_op(Binary::ControlledDiv, 1.0, 0.0), f64::INFINITY);
        assert_eq!(f64_op(Binary::ControlledDiv, 1.0, 4.0), 0.25);
    }

    #[test]
    fn the_corners_of_integers_wrap() {
        assert_eq!(i64_op(Binary::FloorDiv, i64::MIN, -1), i64::MIN);
        assert_eq!(i64_op(Binary::Mod, i64::MIN, -1), 0);
        assert_eq!((i64_op(Binary::FloorDiv, 7, 0), i64_op(Binary::Mod, 7, 0)), (0, 0));
        let least = Scalar::I32(i32::MIN);
        assert_eq!(Machine.unary(Unary::Abs, ElemType::I32, &least), Ok(least));
        assert_eq!(Machine.binary(Binary::FloorDiv, ElemType::I32, &least, &Scalar::I32(-1)), Ok(least));
        assert_eq!(Machine.binary(Binary::Add, ElemType::I32, &least, &Scalar::I32(-1)), Ok(Scalar::I32(i32::MAX)));
    }

    #[test]
    fn floats_round_in_their_own_precision_and_halves_to_even() {
        let sum = Machine.binary(Binary::Add, ElemType::F32, &Scalar::F32(16_777_216.0), &Scalar::F32(1.0));
        assert_eq!(sum, Ok(Scalar::F32(16_777_216.0)));
        for (a, rounded) in [(0.5, 0.0), (1.5, 2.0), (-2.5, -2.0), (2.4, 2.0)] {
            assert_eq!(Machine.unary(Unary::Round, ElemType::F64, &Scalar::F64(a)), Ok(Scalar::F64(rounded)));
        }
    }

    #[test]
    fn a_fused_multiplication_and_addition_rounds_once() {
        // (1 + e)^2 - 1 - 2e is e^2, which the product alone rounds away.
        let (e64, e32) = (f64::EPSILON, f32::EPSILON);
        let [a64, c64] = [1.0 + e64, -1.0 - 2.0 * e64].map(Scalar::F64);
        let [a32, c32] = [1.0 + e32, -1.0 - 2.0 * e32].map(Scalar::F32);
        for (a, c, fused, zero) in
            [(a64, c64, Scalar::F64(e64 * e64), Scalar::F64(0.0)), (a32, c32, Scalar::F32(e32 * e32), Scalar::F32(0.0))]
        {
            let elem = a.elem();
            assert_eq!(Machine.fma(elem, &a, &a, &c), Ok(fused));
            let product = Machine.binary(Binary::Mul, elem, &a, &a).unwrap();
            assert_eq!(Machine.binary(Binary::Add, elem, &product, &c), Ok(zero));
        }
        assert!(Machine.fma(ElemType::F64, &a64, &a64, &c32).is_err());
        let one = Scalar::I64(1);
        assert!(Machine.fma(ElemType::I64, &one, &one, &one).is_err());
    }

    #[test]
    fn conversions_saturate_wrap_and_test_for_zero() {
        for (from, to, expected) in [
            (Scalar::F64(1e30), ElemType::I32, Scalar::I32(i32::MAX)),
            (Scalar::F64(-1.9), ElemType::I64, Scalar::I64(-1)),
            (Scalar::F32(f32::NAN), ElemType::U8, Scalar::U8(0)),
            (Scalar::F64(-3.0), ElemType::U8, Scalar::U8(0)),
            (Scalar::I64(1 << 33 | 5), ElemType::I32, Scalar::I32(5)),
            (Scalar::I32(-1), ElemType::U8, Scalar::U8(255)),
            (Scalar::F64(f64::NAN), ElemType::Bool, Scalar::Bool(true)),
            (Scalar::F64(-0.0), ElemType::Bool, Scalar::Bool(false)),
            (Scalar::Bool(true), ElemType::F32, Scalar::F32(1.0)),
        ] {
            assert_eq!(Machine.cast(from.elem(), to, &from), Ok(expected));
        }
    }

    #[test]
    fn operands_of_the_wrong_type_are_a_fault() {
        let (number, truth) = (Scalar::F64(1.0), Scalar::Bool(true));
        assert!(Machine.binary(Binary::Add, ElemType::F64, &number, &truth).is_err());
        assert!(Machine.unary(Unary::Neg, ElemType::F32, &number).is_err());
        assert!(Machine.choose(&number, &truth, &truth).is_err());
        assert!(Machine.literal(Literal::Int(300), ElemType::U8).is_err());
        assert_eq!(Machine.undefined(ElemType::F64), Err(Fault::Undefined));
    }

    #[test]
    fn numbers_are_printed_to_be_read_back() {
        let shown: Vec<String> =
            [Scalar::F64(0.1), Scalar::F64(1e300), Scalar::F32(0.1), Scalar::F64(2.0), Scalar::U8(7)]
                .iter()
                .map(Scalar::to_string)
                .collect();
        assert_eq!(shown, ["0.1", "1e300", "0.1", "2.0", "7"]);
    }

    proptest! {
        #[test]
        fn floor_division_is_what_its_definition_says(a in any::<i64>(), b in any::<i64>(), small in -9i64..10) {
            for (a, b) in [(a, b), (a, small), (small, b), (a % 50, small)] {
                let (quotient, remainder) = (i128::from(i64_op(Binary::FloorDiv, a, b)), i64_op(Binary::Mod, a, b));
                if b == 0 || (a, b) == (i64::MIN, -1) {
                    continue;
                }
                // The quotient is the one integer q for which a - q*b lies between 0 and b.
                prop_assert_eq!(quotient * i128::from(b) + i128::from(remainder), i128::from(a));
                let between = if b > 0 { 0..b } else { b + 1..1 };
                prop_assert!(between.contains(&remainder));
            }
        }
    }
}
