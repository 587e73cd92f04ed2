//! How far apart two ways of computing a program may be: an error bound for each value, and whether it is exact.
//!
//! [`Magnitude`] is a domain for the evaluator. Its values are the machine's, each with a bound on how far any computation of
//! it, whatever the order of its sums and products, is from the real number that the program means (the standard model
//! of floating-point arithmetic: each operation has a relative error of at most half a unit in the last place):
//!
//! - a value is *exact* if it and everything that it is made of by `+ - *`, minimum, maximum and choice is a whole number
//!   of halves, quarters, … and the sum of the magnitudes has room in the mantissa: no order of operations rounds. So is
//!   a quotient of exact numbers that comes out;
//! - else a sum of `k` additions whose terms have magnitudes that add up to `M` is off by at most `k * u * M`, besides what
//!   its terms are off (u is 2^-53, or 2^-24 in single precision); other operations hand errors on by the mean value
//!   theorem. Functions of the C library are off by four units in the last place at most;
//! - a value is not *known* where an error can decide a comparison, a division by zero or a rounding to integers.
//!
//! [`Measured::accepts`] is what native code is held to. Both sides round, so that they may differ by twice the bound;
//! it is doubled once more for terms of higher order.

use std::ops::AddAssign;

use super::{Domain, Fault, Machine, Scalar};
use crate::ops::{Binary, Literal, Unary};
use crate::tensor::Tensor;
use crate::types::ElemType;

/// The domain of machine numbers with error bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Magnitude;

/// A machine number, and how far another computation of it may be from the real number that is meant.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// What the machine computes, in the order of the program.
    pub value: Scalar,
    /// Whether errors have decided nothing on the way.
    known: bool,
    /// The value is a whole number of `2^-bits`, and nothing on the way was rounded.
    bits: Option<i32>,
    /// A bound on the value and on all partial sums, in any order.
    magnitude: f64,
    /// The error without that of the additions just made.
    base: f64,
    /// How many additions were just made.
    sums: f64,
}

/// Half a unit in the last place of 1, and the bits of a mantissa.
fn precision(elem: ElemType) -> (f64, i32) {
    if elem == ElemType::F32 { (f64::EPSILON * f64::from(1u32 << 28), 24) } else { (f64::EPSILON / 2.0, 53) }
}

/// Errors of the C library's functions, in units of u.
const LIBRARY: f64 = 8.0;

impl Measured {
    /// A number that is given: exact.
    pub fn given(value: Scalar) -> Measured {
        let plain = Measured { value, known: true, bits: Some(0), magnitude: 0.0, base: 0.0, sums: 0.0 };
        let number = value.to_f64();
        if !value.elem().is_float() || !number.is_finite() {
            return plain;
        }
        // Numbers with few bits after the point are exact; others count as rounded, by nothing.
        let bits = (0..24).find(|bits| (number * f64::from(1u32 << bits)).fract() == 0.0);
        Measured { bits, magnitude: number.abs(), ..plain }
    }

    /// Whether no order of operations rounds, so that native code has these bits.
    pub fn is_exact(&self) -> bool {
        self.known && self.bits.is_some()
    }

    /// Whether anything can be said of another computation of it.
    pub fn is_known(&self) -> bool {
        self.known
    }

    /// A bound on the difference from the real number that is meant.
    pub fn error(&self) -> f64 {
        if self.bits.is_some() { 0.0 } else { self.base + self.sums * precision(self.value.elem()).0 * self.magnitude }
    }

    /// Whether another computation of the value may have given this. Exact numbers are equal, but for the sign of zero;
    /// infinities and NaNs are of the same kind.
    pub fn accepts(&self, found: Scalar) -> bool {
        if found.elem() != self.value.elem() {
            return false;
        }
        let (a, b) = (self.value.to_f64(), found.to_f64());
        if !self.known || found.same_bits(&self.value) {
            return true;
        }
        if !self.value.elem().is_float() {
            return false;
        }
        a == b || (a.is_finite() && (a - b).abs() <= 4.0 * self.error())
    }

    fn unknown(value: Scalar) -> Measured {
        Measured { known: false, ..Measured::given(value) }
    }

    /// What is not a finite float needs no bound.
    fn is_plain(&self) -> bool {
        !self.value.elem().is_float() || !self.value.to_f64().is_finite()
    }

    /// A value with an error that no addition made.
    fn rounded(value: Scalar, magnitude: f64, error: f64) -> Measured {
        let magnitude = magnitude.max(value.to_f64().abs());
        let known = error.is_finite() && magnitude.is_finite();
        Measured { value, known, bits: None, magnitude, base: error, sums: 0.0 }
    }

    /// The value if it is exact, with so many bits after the point and this sum of magnitudes.
    fn exact(value: Scalar, bits: Option<i32>, magnitude: f64) -> Option<Measured> {
        let bits = bits?;
        let (_, mantissa) = precision(value.elem());
        let fits = magnitude * 2f64.powi(bits) <= 2f64.powi(mantissa);
        fits.then_some(Measured { value, known: true, bits: Some(bits), magnitude, base: 0.0, sums: 0.0 })
    }
}

impl Domain for Magnitude {
    type Value = Measured;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Measured, Fault> {
        Machine.literal(literal, elem).map(Measured::given)
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<Measured, Fault> {
        Machine.index(index, elem).map(Measured::given)
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &Measured) -> Result<Measured, Fault> {
        let value = Machine.unary(op, elem, &a.value)?;
        if !a.known {
            return Ok(Measured::unknown(value));
        }
        if matches!(op, Unary::Neg | Unary::Abs) {
            return Ok(Measured { value, ..*a });
        }
        let (x, error, y) = (a.value.to_f64(), a.error(), value.to_f64());
        let u = precision(elem).0;
        if a.is_plain() || !y.is_finite() {
            return Ok(Measured::given(value));
        }
        Ok(match op {
            Unary::Floor | Unary::Ceil | Unary::Round => {
                let [low, high] = [x - 4.0 * error, x + 4.0 * error].map(|x| Machine.unary(op, elem, &float(x, elem)));
                if low? == high? { Measured::given(value) } else { Measured::unknown(value) }
            }
            Unary::Sqrt => Measured::rounded(value, y, (x + error).sqrt() - (x - error).max(0.0).sqrt() + u * y),
            Unary::Exp | Unary::LibmExp => Measured::rounded(value, y, y * (error.exp_m1() + LIBRARY * u)),
            Unary::Log | Unary::LibmLog if x <= 2.0 * error => Measured::unknown(value),
            Unary::Log | Unary::LibmLog => Measured::rounded(value, y.abs(), 2.0 * error / x + LIBRARY * u * y.abs()),
            // Those that nowhere grow faster than their argument by more than `erf` does.
            Unary::Sin | Unary::Cos | Unary::Tanh | Unary::LibmSin | Unary::LibmCos | Unary::LibmTanh | Unary::Erf => {
                Measured::rounded(value, 1.0, 2.0 * error + LIBRARY * u)
            }
            _ => {
                // So small a step goes one way, or around an end of which it is as far.
                let [low, high] = [x - error, x + error].map(|x| Machine.unary(op, elem, &float(x, elem)));
                let apart = (low?.to_f64() - y).abs().max((high?.to_f64() - y).abs());
                match apart.is_finite() {
                    true => Measured::rounded(value, y.abs(), 2.0 * apart + LIBRARY * u * y.abs()),
                    false => Measured::unknown(value),
                }
            }
        })
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &Measured, b: &Measured) -> Result<Measured, Fault> {
        let value = Machine.binary(op, elem, &a.value, &b.value)?;
        if !a.known || !b.known {
            return Ok(Measured::unknown(value));
        }
        let (x, y, z) = (a.value.to_f64(), b.value.to_f64(), value.to_f64());
        let (ex, ey) = (a.error(), b.error());
        let u = precision(elem).0;
        match op {
            Binary::Min | Binary::Max if elem.is_float() && x.is_finite() && y.is_finite() => {
                let magnitude = a.magnitude.max(b.magnitude);
                let exact = Measured::exact(value, a.bits.zip(b.bits).map(|(a, b)| a.max(b)), magnitude);
                return Ok(exact.unwrap_or_else(|| Measured::rounded(value, magnitude, ex.max(ey))));
            }
            Binary::Min | Binary::Max if elem.is_float() && !z.is_nan() => return Ok(if z == x { *a } else { *b }),
            Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne => {
                let decided = ex + ey == 0.0 || !(x - y).is_finite() || (x - y).abs() > 4.0 * (ex + ey);
                return Ok(if decided { Measured::given(value) } else { Measured::unknown(value) });
            }
            _ if a.is_plain() || b.is_plain() || !z.is_finite() => return Ok(Measured::given(value)),
            _ => {}
        }
        Ok(match op {
            Binary::Add | Binary::Sub => {
                let magnitude = a.magnitude + b.magnitude;
                let bits = a.bits.zip(b.bits).map(|(a, b)| a.max(b));
                let base = |m: &Measured| if m.bits.is_some() { 0.0 } else { m.base };
                let sums = |m: &Measured| if m.bits.is_some() { 0.0 } else { m.sums };
                Measured::exact(value, bits, magnitude).unwrap_or(Measured {
                    sums: sums(a) + sums(b) + 1.0,
                    ..Measured::rounded(value, magnitude, base(a) + base(b))
                })
            }
            Binary::Mul => {
                let magnitude = a.magnitude * b.magnitude;
                let error = a.magnitude * ey + b.magnitude * ex + ex * ey + u * magnitude;
                let bits = a.bits.zip(b.bits).map(|(a, b)| a + b);
                let exact = Measured::exact(value, bits, magnitude);
                exact.unwrap_or_else(|| Measured::rounded(value, magnitude, error))
            }
            Binary::ControlledDiv if x == 0.0 && ex == 0.0 => Measured::given(value),
            Binary::ControlledDiv if x.abs() <= 4.0 * ex => Measured::unknown(value),
            Binary::Div | Binary::ControlledDiv if y.abs() <= 4.0 * ey => Measured::unknown(value),
            // A quotient that comes out is not rounded.
            Binary::Div | Binary::ControlledDiv if a.bits.is_some() && b.bits.is_some() && z.mul_add(y, -x) == 0.0 => {
                let magnitude = a.magnitude / y.abs();
                let exact = Measured::exact(value, Measured::given(value).bits, magnitude);
                exact.unwrap_or_else(|| Measured::rounded(value, magnitude, u * z.abs()))
            }
            Binary::Div | Binary::ControlledDiv => {
                let error = (ex + z.abs() * ey) / (y.abs() - ey) + u * z.abs();
                Measured::rounded(value, a.magnitude / (y.abs() - ey), error)
            }
            _ if ex + ey > 0.0 => Measured::unknown(value),
            _ => Measured::rounded(value, z.abs(), LIBRARY * u * z.abs()),
        })
    }

    fn choose(&self, cond: &Measured, a: &Measured, b: &Measured) -> Result<Measured, Fault> {
        let chosen = if cond.value == Scalar::Bool(true) { a } else { b };
        Ok(Measured { known: cond.known && chosen.known, ..*chosen })
    }

    fn fma(&self, elem: ElemType, a: &Measured, b: &Measured, c: &Measured) -> Result<Measured, Fault> {
        let value = Machine.fma(elem, &a.value, &b.value, &c.value)?;
        let product = self.binary(Binary::Mul, elem, a, b)?;
        let sum = self.binary(Binary::Add, elem, &product, c)?;
        // Rounded once less, within the error of both: but for what the product alone makes infinite.
        let finite = |value: Scalar| value.to_f64().is_finite();
        if finite(value) == finite(sum.value) { Ok(Measured { value, ..sum }) } else { Ok(Measured::unknown(value)) }
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Measured) -> Result<Measured, Fault> {
        let value = Machine.cast(from, to, &a.value)?;
        let (x, error) = (a.value.to_f64(), a.error());
        if !a.known {
            return Ok(Measured::unknown(value));
        }
        Ok(match (from.is_float(), to.is_float()) {
            _ if error == 0.0 && value.to_f64() == x && !a.is_plain() && to.is_float() => {
                Measured::exact(value, a.bits, a.magnitude)
                    .unwrap_or_else(|| Measured::rounded(value, a.magnitude, 0.0))
            }
            (true, true) if a.is_plain() || !value.to_f64().is_finite() => Measured::given(value),
            (true, true) => Measured::rounded(value, a.magnitude, error + precision(to).0 * a.magnitude),
            (false, true) if integer_is(a.value, value) => Measured::given(value),
            (false, true) => Measured::rounded(value, x.abs(), precision(to).0 * x.abs()),
            (true, false) if error > 0.0 => {
                let [low, high] = [x - 4.0 * error, x + 4.0 * error].map(|x| float(x, from).cast(to));
                if low == high { Measured::given(value) } else { Measured::unknown(value) }
            }
            (_, false) => Measured::given(value),
        })
    }
}

fn float(value: f64, elem: ElemType) -> Scalar {
    Scalar::from_f64(value, elem)
}

/// Whether a float is the integer that it was made from.
fn integer_is(integer: Scalar, float: Scalar) -> bool {
    float.cast(ElemType::I64) == integer.cast(ElemType::I64) && float.to_f64().abs() < 2f64.powi(62)
}

/// What a comparison of a tensor has found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Compared {
    /// Elements that are exact, and equal.
    pub exact: usize,
    /// Elements that are within their bounds.
    pub bounded: usize,
    /// Elements of which nothing is known.
    pub unknown: usize,
}

impl AddAssign for Compared {
    fn add_assign(&mut self, other: Compared) {
        self.exact += other.exact;
        self.bounded += other.bounded;
        self.unknown += other.unknown;
    }
}

/// Compares what was computed in another way with what the evaluator says.
///
/// # Errors
/// The first element that is not accepted, in words.
pub fn compare(reference: &Tensor<Measured>, found: &Tensor<Scalar>) -> Result<Compared, String> {
    if reference.shape() != found.shape() {
        return Err(format!("the shape {:?}, expected {:?}", found.shape(), reference.shape()));
    }
    let mut compared = Compared::default();
    for (at, (wanted, found)) in reference.data().iter().zip(found.data()).enumerate() {
        if !wanted.accepts(*found) {
            let (value, error) = (wanted.value, wanted.error());
            return Err(format!("element {at} is {found}, expected {value} with an error of at most {error:e}"));
        }
        *match (wanted.known, wanted.is_exact()) {
            (false, _) => &mut compared.unknown,
            (true, true) => &mut compared.exact,
            (true, false) => &mut compared.bounded,
        } += 1;
    }
    Ok(compared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: f64) -> Measured {
        Measured::given(Scalar::F64(value))
    }

    fn apply(op: Binary, a: Measured, b: Measured) -> Measured {
        Magnitude.binary(op, ElemType::F64, &a, &b).unwrap()
    }

    #[test]
    fn small_whole_numbers_and_halves_are_exact() {
        let sum = apply(Binary::Add, apply(Binary::Mul, number(3.0), number(-7.5)), number(2.0));
        assert!(sum.is_exact() && sum.accepts(Scalar::F64(-20.5)) && !sum.accepts(Scalar::F64(-20.500000000000004)));
    }

    #[test]
    fn large_numbers_are_not() {
        let large = apply(Binary::Mul, number(2f64.powi(30)), number(2f64.powi(30)));
        let sum = apply(Binary::Add, large, number(1.0));
        assert!(!sum.is_exact() && sum.is_known());
        assert!(sum.accepts(Scalar::F64(2f64.powi(60) + 256.0)) && !sum.accepts(Scalar::F64(2f64.powi(60) + 4096.0)));
    }

    #[test]
    fn a_sum_in_another_order_is_accepted_and_a_missing_term_is_not() {
        let terms: Vec<f64> = (1..40).map(|i| f64::from(i * i % 17) / 7.0 - 0.3).collect();
        let third = |x: f64| apply(Binary::Div, number(x), number(3.0));
        let sum = terms.iter().fold(number(0.0), |sum, x| apply(Binary::Add, sum, third(*x)));
        let backwards = terms.iter().rev().fold(0.0, |sum, x| sum + x / 3.0);
        assert_ne!(sum.value, Scalar::F64(backwards));
        assert!(sum.accepts(Scalar::F64(backwards)), "{backwards} {sum:?}");
        assert!(!sum.accepts(Scalar::F64(backwards + 1e-11)), "{backwards} {sum:?}");
    }

    #[test]
    fn an_error_that_decides_a_comparison_makes_it_unknown() {
        let third = apply(Binary::Div, number(1.0), number(3.0));
        let one = apply(Binary::Mul, third, number(3.0));
        assert!(!apply(Binary::Lt, one, number(1.0)).is_known());
        assert!(apply(Binary::Lt, one, number(1.1)).is_known());
        let floor = Magnitude.unary(Unary::Floor, ElemType::F64, &one).unwrap();
        assert!(!floor.is_known() && floor.accepts(Scalar::F64(0.0)));
    }

    #[test]
    fn infinities_are_of_one_kind() {
        let sum = apply(Binary::Add, number(f64::INFINITY), number(1.0));
        assert!(sum.accepts(Scalar::F64(f64::INFINITY)) && !sum.accepts(Scalar::F64(f64::NAN)));
        assert!(!sum.accepts(Scalar::F64(f64::NEG_INFINITY)));
        let nothing = apply(Binary::Sub, sum, sum);
        assert!(nothing.accepts(Scalar::F64(f64::NAN)) && !nothing.accepts(Scalar::F64(0.0)));
    }

    #[test]
    fn single_precision_has_its_own_bound() {
        let single = |value: f32| Measured::given(Scalar::F32(value));
        let sum = Magnitude.binary(Binary::Add, ElemType::F32, &single(16_777_216.0), &single(1.0)).unwrap();
        assert!(!sum.is_exact() && sum.accepts(Scalar::F32(16_777_218.0)) && !sum.accepts(Scalar::F32(16_777_300.0)));
    }
}
