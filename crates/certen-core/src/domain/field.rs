//! The integers modulo the prime 2^61 - 1.
//!
//! Sums, products and quotients are exact here, and a polynomial that is not zero is zero at a random point with
//! probability at most its degree over p: two programs that agree on random elements are equal as mathematics with
//! overwhelming probability, without tolerances. Functions that a field does not have (exp, sqrt, floor, …) are fixed
//! pseudo-random functions of the seed: equal arguments give equal results, and nothing else is assumed of them but
//! their value at 0 (of log at 1) where that is an integer, so that zero padding goes through sin as it does over the
//! reals. A cast that rounds or cuts is such a function too; one that widens (f32 to f64, i32 to i64, any integer to a
//! float) is the identity.
//!
//! The field has no order of its own. Comparisons use the representatives of least magnitude, in `-p/2 .. p/2`; they
//! agree with the order of integers while those are small, and with nothing else.

use std::fmt;

use super::{Domain, Fault, MISMATCH};
use certen_math::Function;

use crate::ops::{Binary, Literal, Unary};
use crate::types::ElemType;

/// The prime p = 2^61 - 1.
pub const MODULUS: u64 = (1 << 61) - 1;

/// The domain of the integers modulo [`MODULUS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Field {
    /// Which pseudo-random functions stand for exp, sqrt and the others.
    pub seed: u64,
}

/// An integer modulo [`MODULUS`], or a truth value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Element {
    /// Of a numeric type; less than [`MODULUS`].
    Number(u64),
    /// Of type bool.
    Bool(bool),
}

impl Element {
    /// The element that stands for any 64-bit pattern: random bits give random elements.
    pub fn reduce(bits: u64) -> Element {
        Element::Number(bits % MODULUS)
    }
}

impl From<i64> for Element {
    fn from(value: i64) -> Element {
        Element::Number(value.rem_euclid(MODULUS as i64) as u64)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Number(value) => fmt::Display::fmt(value, f),
            Element::Bool(value) => fmt::Display::fmt(value, f),
        }
    }
}

/// The largest exponent for which a power is a product: the largest that a float has exactly.
const MAX_EXPONENT: u64 = 1 << 53;

/// A well-mixed function of 64 bits: a step of splitmix64 (Steele, Lea and Flood).
pub fn splitmix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn add(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum < MODULUS { sum } else { sum - MODULUS }
}

fn negate(a: u64) -> u64 {
    if a == 0 { 0 } else { MODULUS - a }
}

fn multiply(a: u64, b: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(MODULUS)) as u64
}

fn power(mut base: u64, mut exponent: u64) -> u64 {
    let mut product = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product = multiply(product, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    product
}

/// By Fermat's little theorem.
fn inverse(a: u64) -> Result<u64, Fault> {
    if a == 0 { Err(Fault::Undefined) } else { Ok(power(a, MODULUS - 2)) }
}

/// The representative of least magnitude.
fn signed(a: u64) -> i64 {
    if a > MODULUS / 2 { a as i64 - MODULUS as i64 } else { a as i64 }
}

/// A float is `m * 2^e`, and so is its element. 2^61 is 1, so only `e mod 61` matters.
fn dyadic(value: f64) -> Result<u64, Fault> {
    if !value.is_finite() {
        return Err(Fault::Undefined);
    }
    let bits = value.to_bits();
    let (biased, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
    // Subnormal numbers lack the hidden bit and have the exponent of the smallest normal ones.
    let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    let magnitude = multiply(mantissa, 1 << exponent.rem_euclid(61));
    Ok(if value.is_sign_negative() { negate(magnitude) } else { magnitude })
}

/// The functions that the field does not have.
#[derive(Clone, Copy)]
enum Oracle {
    Unary(Unary),
    Binary(Binary),
    /// A float rounded to single precision.
    Single,
    /// A float cut to an integer type.
    Whole(ElemType),
    /// An integer wrapped to a narrower type.
    Narrow(ElemType),
}

impl Oracle {
    fn tag(self) -> u64 {
        match self {
            Oracle::Unary(op) => 0x100 + op as u64,
            Oracle::Binary(op) => 0x200 + op as u64,
            Oracle::Single => 0x300,
            Oracle::Whole(elem) => 0x400 + elem as u64,
            Oracle::Narrow(elem) => 0x500 + elem as u64,
        }
    }
}

impl Field {
    /// A pseudo-random element, fixed by the seed, the function and its arguments.
    fn random(self, function: Oracle, arguments: [u64; 2]) -> u64 {
        let mut state = self.seed;
        for input in [function.tag(), arguments[0], arguments[1]] {
            // Each input moves the state on.
            state = splitmix(state.wrapping_add(input));
        }
        state % MODULUS
    }

    /// [`Field::random`] of one argument, but 0 at 0.
    fn random_from_zero(self, function: Oracle, a: u64) -> u64 {
        if a == 0 { 0 } else { self.random(function, [a, 0]) }
    }
}

impl Domain for Field {
    type Value = Element;

    fn literal(&self, literal: Literal, _elem: ElemType) -> Result<Element, Fault> {
        match literal {
            Literal::Float(value) => dyadic(value).map(Element::Number),
            Literal::Int(value) => Ok(Element::from(value)),
            Literal::Bool(value) => Ok(Element::Bool(value)),
        }
    }

    fn index(&self, index: i64, _elem: ElemType) -> Result<Element, Fault> {
        Ok(Element::from(index))
    }

    fn unary(&self, op: Unary, _elem: ElemType, a: &Element) -> Result<Element, Fault> {
        let a = match (op, *a) {
            (Unary::Not, Element::Bool(a)) => return Ok(Element::Bool(!a)),
            (Unary::Not, _) | (_, Element::Bool(_)) => return Err(MISMATCH),
            (_, Element::Number(a)) => a,
        };
        Ok(Element::Number(match op {
            Unary::Neg => negate(a),
            Unary::Abs if signed(a) < 0 => negate(a),
            Unary::Abs => a,
            // A few whole numbers have the value that they have.
            _ => match op.function() {
                Some(Function::Log | Function::Log2 | Function::Log10) if a == 1 => 0,
                Some(function) if a != 0 || function.double(&[0.0]) != 0.0 => {
                    let is_one = a == 0 && function.double(&[0.0]) == 1.0;
                    if is_one { 1 } else { self.random(Oracle::Unary(op), [a, 0]) }
                }
                _ => self.random_from_zero(Oracle::Unary(op), a),
            },
        }))
    }

    fn binary(&self, op: Binary, _elem: ElemType, a: &Element, b: &Element) -> Result<Element, Fault> {
        match (*a, *b) {
            (Element::Number(a), Element::Number(b)) => self.number_binary(op, a, b),
            (Element::Bool(a), Element::Bool(b)) => Ok(Element::Bool(match op {
                Binary::And => a && b,
                Binary::Or => a || b,
                Binary::Lt => !a && b,
                Binary::Le => !a || b,
                Binary::Eq => a == b,
                Binary::Ne => a != b,
                _ => return Err(MISMATCH),
            })),
            _ => Err(MISMATCH),
        }
    }

    fn choose(&self, cond: &Element, a: &Element, b: &Element) -> Result<Element, Fault> {
        match cond {
            Element::Bool(cond) => Ok(if *cond { *a } else { *b }),
            Element::Number(_) => Err(MISMATCH),
        }
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Element) -> Result<Element, Fault> {
        let a = match (*a, to) {
            (Element::Bool(a), ElemType::Bool) => return Ok(Element::Bool(a)),
            (Element::Bool(a), _) => return Ok(Element::Number(u64::from(a))),
            (Element::Number(a), ElemType::Bool) => return Ok(Element::Bool(a != 0)),
            (Element::Number(a), _) => a,
        };
        let function = match (from, to) {
            (ElemType::F64, ElemType::F32) => Oracle::Single,
            (ElemType::F64 | ElemType::F32, ElemType::I64 | ElemType::I32 | ElemType::U8) => Oracle::Whole(to),
            (ElemType::I64, ElemType::I32 | ElemType::U8) | (ElemType::I32, ElemType::U8) => Oracle::Narrow(to),
            _ => return Ok(Element::Number(a)),
        };
        Ok(Element::Number(self.random_from_zero(function, a)))
    }
}

impl Field {
    fn number_binary(&self, op: Binary, a: u64, b: u64) -> Result<Element, Fault> {
        Ok(Element::Number(match op {
            Binary::Add => add(a, b),
            Binary::Sub => add(a, negate(b)),
            Binary::Mul => multiply(a, b),
            // Def. 8: 0/0 = 0.
            Binary::ControlledDiv if a == 0 => 0,
            Binary::Div | Binary::ControlledDiv => multiply(a, inverse(b)?),
            Binary::FloorDiv | Binary::Mod if a == 0 || b == 0 => 0,
            Binary::FloorDiv | Binary::Mod => self.random(Oracle::Binary(op), [a, b]),
            Binary::Min => {
                if signed(a) <= signed(b) {
                    a
                } else {
                    b
                }
            }
            Binary::Max => {
                if signed(a) >= signed(b) {
                    a
                } else {
                    b
                }
            }
            Binary::Pow | Binary::LibmPow if b <= MAX_EXPONENT => power(a, b),
            Binary::Pow | Binary::LibmPow if negate(b) <= MAX_EXPONENT => inverse(power(a, negate(b)))?,
            _ if op.function().is_some() => self.random(Oracle::Binary(op), [a, b]),
            Binary::And | Binary::Or => return Err(MISMATCH),
            Binary::Lt => return Ok(Element::Bool(signed(a) < signed(b))),
            Binary::Le => return Ok(Element::Bool(signed(a) <= signed(b))),
            Binary::Eq => return Ok(Element::Bool(a == b)),
            _ => return Ok(Element::Bool(a != b)),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Exact, Rational};
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::ToPrimitive;
    use proptest::prelude::*;
    use proptest::sample::Index;

    const FIELD: Field = Field { seed: 7 };

    fn binary(op: Binary, a: u64, b: u64) -> Result<Element, Fault> {
        FIELD.binary(op, ElemType::F64, &Element::Number(a), &Element::Number(b))
    }

    fn element() -> impl Strategy<Value = u64> {
        prop_oneof![0..3u64, MODULUS - 2..MODULUS, 0..MODULUS]
    }

    /// The ring homomorphism from the rationals whose denominator p does not divide.
    fn image(a: &BigRational) -> Element {
        let part = |n: &BigInt| {
            let p = BigInt::from(MODULUS);
            (((n % &p) + &p) % &p).to_u64().unwrap()
        };
        Element::Number(multiply(part(a.numer()), inverse(part(a.denom())).unwrap()))
    }

    #[test]
    fn order_is_that_of_signed_representatives() {
        let minus_one = MODULUS - 1;
        assert_eq!(binary(Binary::Lt, minus_one, 0), Ok(Element::Bool(true)));
        assert_eq!(binary(Binary::Min, minus_one, 5), Ok(Element::Number(minus_one)));
        assert_eq!(binary(Binary::Max, minus_one, 5), Ok(Element::Number(5)));
        assert_eq!(FIELD.unary(Unary::Abs, ElemType::I64, &Element::from(-9)), Ok(Element::from(9)));
    }

    #[test]
    fn division_by_zero_is_undefined_but_controlled() {
        assert_eq!(binary(Binary::Div, 1, 0), Err(Fault::Undefined));
        assert_eq!(binary(Binary::Div, 0, 0), Err(Fault::Undefined));
        assert_eq!(binary(Binary::ControlledDiv, 0, 0), Ok(Element::Number(0)));
        assert_eq!(binary(Binary::ControlledDiv, 1, 0), Err(Fault::Undefined));
        assert_eq!(binary(Binary::Mod, 5, 0), Ok(Element::Number(0)));
        assert_eq!(FIELD.literal(Literal::Float(f64::NAN), ElemType::F64), Err(Fault::Undefined));
    }

    #[test]
    fn random_functions_are_functions_and_keep_padding() {
        let a = Element::from(12345);
        for &op in Unary::ALL.iter().filter(|op| **op != Unary::Not) {
            let value = FIELD.unary(op, ElemType::F64, &a);
            assert_eq!(value, FIELD.unary(op, ElemType::F64, &a));
            let at_zero = FIELD.unary(op, ElemType::F64, &Element::from(0)).unwrap();
            match op.function().map_or(0.0, |function| function.double(&[0.0])) {
                1.0 => assert_eq!(at_zero, Element::from(1)),
                0.0 => assert_eq!(at_zero, Element::from(0)),
                _ => {}
            }
            if !matches!(op, Unary::Neg | Unary::Abs) {
                assert_ne!(value, Field { seed: 8 }.unary(op, ElemType::F64, &a));
            }
        }
        assert_ne!(FIELD.cast(ElemType::F64, ElemType::F32, &a), Ok(a));
        assert_ne!(FIELD.cast(ElemType::I64, ElemType::I32, &a), Ok(a));
        assert_eq!(FIELD.cast(ElemType::F32, ElemType::F64, &a), Ok(a));
        assert_eq!(FIELD.cast(ElemType::I64, ElemType::F64, &a), Ok(a));
    }

    proptest! {
        #[test]
        fn it_is_a_field(a in element(), b in element(), c in element()) {
            prop_assert_eq!(add(a, b), add(b, a));
            prop_assert_eq!(add(add(a, b), c), add(a, add(b, c)));
            prop_assert_eq!(multiply(multiply(a, b), c), multiply(a, multiply(b, c)));
            prop_assert_eq!(multiply(a, add(b, c)), add(multiply(a, b), multiply(a, c)));
            prop_assert_eq!(add(a, negate(a)), 0);
            prop_assert_eq!((add(a, 0), multiply(a, 1)), (a, a));
            prop_assert!(add(a, b) < MODULUS && multiply(a, b) < MODULUS && negate(a) < MODULUS);
            if a != 0 {
                prop_assert_eq!(multiply(a, inverse(a).unwrap()), 1);
            }
        }

        #[test]
        fn powers_with_small_exponents_are_products(a in element(), exponent in 0..=200u64) {
            let product = (0..exponent).fold(1, |product, _| multiply(product, a));
            prop_assert_eq!(binary(Binary::Pow, a, exponent), Ok(Element::Number(product)));
        }

        #[test]
        fn literals_are_exact(float in any::<f64>().prop_filter("finite", |f| f.is_finite()), int in any::<i64>()) {
            let exact = BigRational::from_float(float).unwrap();
            prop_assert_eq!(FIELD.literal(Literal::Float(float), ElemType::F64), Ok(image(&exact)));
            let exact = BigRational::from_integer(int.into());
            prop_assert_eq!(FIELD.literal(Literal::Int(int), ElemType::I64), Ok(image(&exact)));
        }

        /// The map from rationals to the field respects + - * / wherever both sides are defined: what the field says
        /// about such programs it says about the rationals.
        #[test]
        fn rationals_map_into_the_field(
            leaves in prop::collection::vec((-20i64..21, 1i64..8), 2..12),
            steps in prop::collection::vec((0usize..4, any::<Index>(), any::<Index>()), 1..24),
        ) {
            let mut values: Vec<Exact> =
                leaves.iter().map(|&(n, d)| Exact::Number(BigRational::new(n.into(), d.into()))).collect();
            let number = |value: &Exact| match value {
                Exact::Number(value) => image(value),
                Exact::Bool(value) => Element::Bool(*value),
            };
            for (op, a, b) in steps {
                let op = [Binary::Add, Binary::Sub, Binary::Mul, Binary::ControlledDiv][op];
                let (a, b) = (a.get(&values), b.get(&values));
                let exact = Rational.binary(op, ElemType::F64, a, b);
                let modular = FIELD.binary(op, ElemType::F64, &number(a), &number(b));
                match exact {
                    Ok(exact) => {
                        prop_assert_eq!(modular, Ok(number(&exact)));
                        values.push(exact);
                    }
                    Err(fault) => prop_assert_eq!(modular, Err(fault)),
                }
            }
        }
    }
}
