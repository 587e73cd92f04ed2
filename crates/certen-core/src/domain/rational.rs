//! Exact rationals: no rounding, no wrapping.
//!
//! Every numeric element type is a rational here, integers too, so an answer is that of mathematics and not of a
//! machine: it differs from the [`Machine`](super::Machine)'s where that one rounds or overflows. A division by zero is
//! [`Fault::Undefined`], and what no rational can be (the exponential of 1, the root of 2) is [`Fault::Unsupported`].
//! Guarantees: no number is larger than [`MAX_BITS`]; the size of a result is bounded before it is computed, so neither
//! memory nor time runs away.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::{Domain, Fault, MISMATCH};
use crate::ops::{Binary, Literal, Unary};
use crate::types::ElemType;

/// The domain of exact rationals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rational;

/// A rational number or a truth value.
#[derive(Clone, Debug)]
pub enum Exact {
    /// Of a numeric type.
    Number(BigRational),
    /// Of type bool.
    Bool(bool),
}

impl PartialEq for Exact {
    /// Numbers are in lowest terms, so equal ones have equal parts. (The library's own comparison of ratios recurses.)
    fn eq(&self, other: &Exact) -> bool {
        match (self, other) {
            (Exact::Number(a), Exact::Number(b)) => a.numer() == b.numer() && a.denom() == b.denom(),
            (Exact::Bool(a), Exact::Bool(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Exact {}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exact::Number(value) => fmt::Display::fmt(value, f),
            Exact::Bool(value) => fmt::Display::fmt(value, f),
        }
    }
}

impl Exact {
    /// Half of a whole number.
    pub fn half(value: i64) -> Exact {
        Exact::Number(BigRational::new(value.into(), 2.into()))
    }
}

impl From<i64> for Exact {
    fn from(value: i64) -> Exact {
        Exact::Number(BigRational::from_integer(value.into()))
    }
}

/// The most bits that numerator and denominator together may have, and that the operands of one operation may have.
const MAX_BITS: u64 = 1_000_000;

/// The largest exponent of a power, and the negative of the smallest.
const MAX_EXPONENT: u64 = i32::MAX as u64;

fn bits(a: &BigRational) -> u64 {
    a.numer().bits() + a.denom().bits()
}

/// Refuses an operation that would give a number of this many bits.
fn room_for(bits: u64) -> Result<(), Fault> {
    if bits <= MAX_BITS { Ok(()) } else { Err(Fault::TooLarge) }
}

/// By cross multiplication. (The library's own comparison of ratios recurses as deep as Euclid's algorithm goes.)
fn order(a: &BigRational, b: &BigRational) -> Ordering {
    if a.denom() == b.denom() {
        return a.numer().cmp(b.numer());
    }
    (a.numer() * b.denom()).cmp(&(b.numer() * a.denom()))
}

impl Domain for Rational {
    type Value = Exact;

    fn literal(&self, literal: Literal, _elem: ElemType) -> Result<Exact, Fault> {
        match literal {
            Literal::Float(value) => BigRational::from_float(value).map(Exact::Number).ok_or(Fault::Undefined),
            Literal::Int(value) => Ok(Exact::from(value)),
            Literal::Bool(value) => Ok(Exact::Bool(value)),
        }
    }

    fn index(&self, index: i64, _elem: ElemType) -> Result<Exact, Fault> {
        Ok(Exact::from(index))
    }

    fn unary(&self, op: Unary, _elem: ElemType, a: &Exact) -> Result<Exact, Fault> {
        let a = match (op, a) {
            (Unary::Not, Exact::Bool(a)) => return Ok(Exact::Bool(!a)),
            (_, Exact::Number(a)) => a,
            _ => return Err(MISMATCH),
        };
        Ok(Exact::Number(match op {
            Unary::Neg => -a,
            Unary::Not => return Err(MISMATCH),
            Unary::Abs => a.abs(),
            Unary::Floor => a.floor(),
            Unary::Ceil => a.ceil(),
            Unary::Round => round_ties_even(a),
            Unary::Sqrt => sqrt(a)?,
            function => return Err(Fault::Unsupported(function.name())),
        }))
    }

    fn binary(&self, op: Binary, _elem: ElemType, a: &Exact, b: &Exact) -> Result<Exact, Fault> {
        match (a, b) {
            (Exact::Number(a), Exact::Number(b)) => number_binary(op, a, b),
            (Exact::Bool(a), Exact::Bool(b)) => Ok(Exact::Bool(match op {
                Binary::And => *a && *b,
                Binary::Or => *a || *b,
                Binary::Lt => a < b,
                Binary::Le => a <= b,
                Binary::Eq => a == b,
                Binary::Ne => a != b,
                _ => return Err(MISMATCH),
            })),
            _ => Err(MISMATCH),
        }
    }

    fn choose(&self, cond: &Exact, a: &Exact, b: &Exact) -> Result<Exact, Fault> {
        match cond {
            Exact::Bool(cond) => Ok(if *cond { a.clone() } else { b.clone() }),
            Exact::Number(_) => Err(MISMATCH),
        }
    }

    /// Towards zero from a float to an integer; otherwise the number stays what it is.
    fn cast(&self, from: ElemType, to: ElemType, a: &Exact) -> Result<Exact, Fault> {
        Ok(match (a, to) {
            (Exact::Number(a), ElemType::Bool) => Exact::Bool(!a.is_zero()),
            (Exact::Number(a), _) if from.is_float() && !to.is_float() => Exact::Number(a.trunc()),
            (Exact::Bool(a), to) if to != ElemType::Bool => Exact::from(i64::from(*a)),
            _ => a.clone(),
        })
    }
}

/// The domain of exact rationals that are not long, for comparisons: what would be longer than 8192 bits is
/// [`Fault::TooLarge`]. The time of an operation grows with the square of its length, and a hundred products square numbers a
/// hundred times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShortRational;

const MAX_SHORT_BITS: u64 = 8192;

fn short(value: Exact) -> Result<Exact, Fault> {
    match &value {
        Exact::Number(number) if bits(number) > MAX_SHORT_BITS => Err(Fault::TooLarge),
        _ => Ok(value),
    }
}

impl Domain for ShortRational {
    type Value = Exact;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Exact, Fault> {
        Rational.literal(literal, elem).and_then(short)
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<Exact, Fault> {
        Rational.index(index, elem)
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &Exact) -> Result<Exact, Fault> {
        Rational.unary(op, elem, a)
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &Exact, b: &Exact) -> Result<Exact, Fault> {
        Rational.binary(op, elem, a, b).and_then(short)
    }

    fn choose(&self, cond: &Exact, a: &Exact, b: &Exact) -> Result<Exact, Fault> {
        Rational.choose(cond, a, b)
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Exact) -> Result<Exact, Fault> {
        Rational.cast(from, to, a)
    }
}

fn number_binary(op: Binary, a: &BigRational, b: &BigRational) -> Result<Exact, Fault> {
    // What follows multiplies parts of one operand with parts of the other, at most; powers look after themselves.
    room_for(bits(a) + bits(b))?;
    Ok(Exact::Number(match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        // Def. 8 (i): 0/0 = 0.
        Binary::ControlledDiv if a.is_zero() => BigRational::zero(),
        // Def. 4 (ii): v/0 is undefined.
        Binary::Div | Binary::ControlledDiv if b.is_zero() => return Err(Fault::Undefined),
        Binary::Div | Binary::ControlledDiv => a / b,
        Binary::FloorDiv | Binary::Mod if b.is_zero() => BigRational::zero(),
        Binary::FloorDiv => (a / b).floor(),
        Binary::Mod => a - b * (a / b).floor(),
        Binary::Min => {
            if order(a, b).is_le() {
                a.clone()
            } else {
                b.clone()
            }
        }
        Binary::Max => {
            if order(a, b).is_ge() {
                a.clone()
            } else {
                b.clone()
            }
        }
        Binary::Pow | Binary::LibmPow => power(a, b)?,
        Binary::And | Binary::Or => return Err(MISMATCH),
        Binary::Lt => return Ok(Exact::Bool(order(a, b).is_lt())),
        Binary::Le => return Ok(Exact::Bool(order(a, b).is_le())),
        Binary::Eq => return Ok(Exact::Bool(order(a, b).is_eq())),
        Binary::Ne => return Ok(Exact::Bool(order(a, b).is_ne())),
        function => return Err(Fault::Unsupported(function.name())),
    }))
}

fn power(base: &BigRational, exponent: &BigRational) -> Result<BigRational, Fault> {
    let small = exponent.is_integer().then(|| exponent.numer().to_i32()).flatten();
    let Some(exponent) = small.filter(|e| u64::from(e.unsigned_abs()) <= MAX_EXPONENT) else {
        return Err(Fault::Unsupported("power with a large or broken exponent"));
    };
    if exponent < 0 && base.is_zero() {
        return Err(Fault::Undefined);
    }
    room_for(bits(base).saturating_mul(u64::from(exponent.unsigned_abs())))?;
    Ok(base.pow(exponent))
}

fn round_ties_even(a: &BigRational) -> BigRational {
    let below = a.floor().to_integer();
    let twice_remainder: BigInt = (a.numer() - &below * a.denom()) * 2;
    let up = match twice_remainder.cmp(a.denom()) {
        Ordering::Less => false,
        Ordering::Equal => below.bit(0),
        Ordering::Greater => true,
    };
    BigRational::from_integer(if up { below + BigInt::one() } else { below })
}

fn sqrt(a: &BigRational) -> Result<BigRational, Fault> {
    if a.is_negative() {
        return Err(Fault::Undefined);
    }
    let (numerator, denominator) = (a.numer().sqrt(), a.denom().sqrt());
    if &numerator * &numerator == *a.numer() && &denominator * &denominator == *a.denom() {
        Ok(BigRational::new(numerator, denominator))
    } else {
        Err(Fault::Unsupported("square root of a number that is not a square"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(numerator: i64, denominator: i64) -> Exact {
        Exact::Number(BigRational::new(numerator.into(), denominator.into()))
    }

    fn unary(op: Unary, a: Exact) -> Result<Exact, Fault> {
        Rational.unary(op, ElemType::F64, &a)
    }

    fn binary(op: Binary, a: Exact, b: Exact) -> Result<Exact, Fault> {
        Rational.binary(op, ElemType::F64, &a, &b)
    }

    #[test]
    fn squares_of_squares_are_soon_too_long() {
        let mut value = ratio(3, 7);
        let error = loop {
            match ShortRational.binary(Binary::Mul, ElemType::F64, &value, &value) {
                Ok(square) => value = square,
                Err(error) => break error,
            }
        };
        assert_eq!(error, Fault::TooLarge);
        assert!(Rational.binary(Binary::Mul, ElemType::F64, &value, &value).is_ok());
    }

    #[test]
    fn answers_are_exact() {
        assert_eq!(binary(Binary::Div, ratio(1, 1), ratio(3, 1)).unwrap().to_string(), "1/3");
        assert_eq!(binary(Binary::Mul, ratio(1, 3), ratio(6, 1)).unwrap().to_string(), "2");
        assert_eq!(Rational.literal(Literal::Float(0.75), ElemType::F64), Ok(ratio(3, 4)));
        assert_eq!(unary(Unary::Sqrt, ratio(9, 4)), Ok(ratio(3, 2)));
        assert_eq!(binary(Binary::Pow, ratio(2, 3), ratio(-2, 1)), Ok(ratio(9, 4)));
        assert_eq!(binary(Binary::FloorDiv, ratio(-7, 1), ratio(2, 1)), Ok(ratio(-4, 1)));
        assert_eq!(binary(Binary::Mod, ratio(-7, 1), ratio(2, 1)), Ok(ratio(1, 1)));
        for (a, rounded) in
            [(ratio(1, 2), 0), (ratio(3, 2), 2), (ratio(-5, 2), -2), (ratio(7, 3), 2), (ratio(-5, 3), -2)]
        {
            assert_eq!(unary(Unary::Round, a), Ok(Exact::from(rounded)));
        }
    }

    #[test]
    fn what_has_no_exact_answer_says_so() {
        assert_eq!(binary(Binary::Div, ratio(1, 1), ratio(0, 1)), Err(Fault::Undefined));
        assert_eq!(binary(Binary::ControlledDiv, ratio(1, 1), ratio(0, 1)), Err(Fault::Undefined));
        assert_eq!(binary(Binary::ControlledDiv, ratio(0, 1), ratio(0, 1)), Ok(ratio(0, 1)));
        assert_eq!(binary(Binary::Mod, ratio(5, 1), ratio(0, 1)), Ok(ratio(0, 1)));
        assert_eq!(binary(Binary::Pow, ratio(0, 1), ratio(-1, 1)), Err(Fault::Undefined));
        assert_eq!(unary(Unary::Sqrt, ratio(-1, 1)), Err(Fault::Undefined));
        assert_eq!(Rational.literal(Literal::Float(f64::INFINITY), ElemType::F64), Err(Fault::Undefined));
        assert!(matches!(unary(Unary::Sqrt, ratio(2, 1)), Err(Fault::Unsupported(_))));
        assert!(matches!(unary(Unary::Exp, ratio(2, 1)), Err(Fault::Unsupported(_))));
        assert!(matches!(binary(Binary::Pow, ratio(2, 1), ratio(1 << 40, 1)), Err(Fault::Unsupported(_))));
        assert!(matches!(binary(Binary::Pow, ratio(2, 1), ratio(1, 2)), Err(Fault::Unsupported(_))));
    }

    #[test]
    fn numbers_cannot_grow_without_bound() {
        let mut value = ratio(3, 2);
        let fault = loop {
            match binary(Binary::Mul, value.clone(), value) {
                Ok(square) => value = square,
                Err(fault) => break fault,
            }
        };
        assert_eq!(fault, Fault::TooLarge);
        let large = Exact::Number(BigRational::from_integer(BigInt::one() << 100_000));
        assert_eq!(binary(Binary::Pow, large, ratio(64, 1)), Err(Fault::TooLarge));
    }

    #[test]
    fn comparing_long_continued_fractions_needs_no_stack() {
        // Neighbours in the Fibonacci sequence: their ratios have the longest continued fractions.
        let (mut a, mut b) = (BigInt::one(), BigInt::one());
        for _ in 0..100_000 {
            (a, b) = (b.clone(), a + b);
        }
        let [x, y] = [BigRational::new(b.clone(), a.clone()), BigRational::new(&a + &b, b)].map(Exact::Number);
        assert_ne!(x, y);
        let less = binary(Binary::Lt, x.clone(), y.clone()).unwrap();
        assert_eq!(binary(Binary::Lt, y, x), Rational.unary(Unary::Not, ElemType::Bool, &less));
    }

    #[test]
    fn casts_to_integers_cut_the_fraction() {
        let cast = |a, to| Rational.cast(ElemType::F64, to, &a);
        assert_eq!(cast(ratio(-7, 2), ElemType::I32), Ok(ratio(-3, 1)));
        assert_eq!(cast(ratio(7, 2), ElemType::F32), Ok(ratio(7, 2)));
        assert_eq!(cast(ratio(7, 2), ElemType::Bool), Ok(Exact::Bool(true)));
        assert_eq!(Rational.cast(ElemType::Bool, ElemType::I64, &Exact::Bool(true)), Ok(ratio(1, 1)));
    }

    proptest! {
        #[test]
        fn division_undoes_multiplication(a: i64, b in 1..i64::MAX, c: i64, d in 1..i64::MAX) {
            let (x, y) = (ratio(a, b), ratio(c, d));
            if c != 0 {
                let product = binary(Binary::Mul, x.clone(), y.clone()).unwrap();
                prop_assert_eq!(binary(Binary::Div, product, y.clone()), Ok(x.clone()));
            }
            let difference = binary(Binary::Sub, x.clone(), y.clone()).unwrap();
            let negative = binary(Binary::Lt, difference, Exact::from(0)).unwrap();
            prop_assert_eq!(binary(Binary::Lt, x, y).unwrap(), negative);
        }
    }
}
