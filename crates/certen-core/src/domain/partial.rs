//! Values or *undefined*: the model language's extended and controlled arithmetic over any other domain.
//!
//! An undefined operand makes a result undefined (Def. 4), but for controlled division, where a zero numerator is
//! stronger (Def. 8). Where the other domain faults with [`Fault::Undefined`], say by a division by zero, the value is
//! undefined here; its other faults stay faults. So a read of uninitialised memory is a value that can be followed to
//! the outputs that it reaches.

use super::{Domain, Fault};
use crate::ops::{Binary, Literal, Unary};
use crate::types::ElemType;

/// The domain of another one's values and *undefined*, which is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Partial<D>(pub D);

/// What is undefined there is a value here.
fn lift<V>(result: Result<V, Fault>) -> Result<Option<V>, Fault> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Fault::Undefined) => Ok(None),
        Err(fault) => Err(fault),
    }
}

impl<D: Domain> Partial<D> {
    fn is_zero(&self, elem: ElemType, a: &D::Value) -> Result<bool, Fault> {
        Ok(self.0.literal(Literal::whole(0, elem), elem)? == *a)
    }
}

impl<D: Domain> Domain for Partial<D> {
    type Value = Option<D::Value>;

    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Self::Value, Fault> {
        lift(self.0.literal(literal, elem))
    }

    fn index(&self, index: i64, elem: ElemType) -> Result<Self::Value, Fault> {
        lift(self.0.index(index, elem))
    }

    fn undefined(&self, _elem: ElemType) -> Result<Self::Value, Fault> {
        Ok(None)
    }

    fn unary(&self, op: Unary, elem: ElemType, a: &Self::Value) -> Result<Self::Value, Fault> {
        match a {
            Some(a) => lift(self.0.unary(op, elem, a)),
            None => Ok(None),
        }
    }

    fn binary(&self, op: Binary, elem: ElemType, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Fault> {
        match (a, b) {
            // Def. 4 (ii): by zero is undefined, also over numbers with infinities; Def. 8 (i): but not zero by zero.
            (Some(a), Some(b))
                if op == Binary::ControlledDiv && self.is_zero(elem, b)? && !self.is_zero(elem, a)? =>
            {
                Ok(None)
            }
            (Some(a), Some(b)) => lift(self.0.binary(op, elem, a, b)),
            // Def. 8 (ii): zero by undefined is zero.
            (Some(a), None) if op == Binary::ControlledDiv && self.is_zero(elem, a)? => {
                lift(self.0.literal(Literal::whole(0, elem), elem))
            }
            // Def. 4 (i) and (ii), and the same for what the paper does not have.
            _ => Ok(None),
        }
    }

    /// Undefined by an undefined condition; the branch that is not chosen does not matter.
    fn choose(&self, cond: &Self::Value, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Fault> {
        let Some(cond) = cond else { return Ok(None) };
        match (a, b) {
            (Some(a), Some(b)) => lift(self.0.choose(cond, a, b)),
            (None, None) => Ok(None),
            // The other domain cannot choose an undefined branch, so it is asked which of two truth values it would.
            _ => {
                let [yes, no] = [true, false].map(|truth| self.0.literal(Literal::Bool(truth), ElemType::Bool));
                let (yes, no) = (yes?, no?);
                let first = self.0.choose(cond, &yes, &no)? == yes;
                Ok(if first { a.clone() } else { b.clone() })
            }
        }
    }

    fn fma(&self, elem: ElemType, a: &Self::Value, b: &Self::Value, c: &Self::Value) -> Result<Self::Value, Fault> {
        match (a, b, c) {
            (Some(a), Some(b), Some(c)) => lift(self.0.fma(elem, a, b, c)),
            _ => Ok(None),
        }
    }

    fn cast(&self, from: ElemType, to: ElemType, a: &Self::Value) -> Result<Self::Value, Fault> {
        match a {
            Some(a) => lift(self.0.cast(from, to, a)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Exact, Machine, Rational, Scalar};

    const E: Option<Exact> = None;

    fn v(value: i64) -> Option<Exact> {
        Some(Exact::from(value))
    }

    fn apply(op: Binary, a: Option<Exact>, b: Option<Exact>) -> Option<Exact> {
        Partial(Rational).binary(op, ElemType::F64, &a, &b).unwrap()
    }

    #[test]
    fn extended_arithmetic_is_definition_4() {
        for op in [Binary::Add, Binary::Sub, Binary::Mul] {
            for value in [v(0), v(3), E] {
                assert_eq!((apply(op, value.clone(), E), apply(op, E, value)), (E, E), "{op:?}");
            }
        }
        for value in [v(0), v(3), E] {
            assert_eq!(apply(Binary::Div, value.clone(), E), E);
            assert_eq!(apply(Binary::Div, value, v(0)), E);
        }
        assert_eq!(apply(Binary::Div, E, v(2)), E);
        assert_eq!(apply(Binary::Div, v(6), v(2)), v(3));
    }

    #[test]
    fn controlled_division_is_definition_8() {
        let divided = |a, b| apply(Binary::ControlledDiv, a, b);
        assert_eq!([divided(v(0), v(0)), divided(v(0), E), divided(v(0), v(5))], [v(0), v(0), v(0)]);
        assert_eq!(
            [divided(v(3), v(0)), divided(v(3), E), divided(E, E), divided(E, v(0)), divided(E, v(2))],
            [E, E, E, E, E]
        );
        assert_eq!(divided(v(6), v(2)), v(3));
    }

    #[test]
    fn controlled_division_is_definition_8_over_the_machine_too() {
        let f = |value: f64| Some(Scalar::F64(value));
        let divided = |a, b| Partial(Machine).binary(Binary::ControlledDiv, ElemType::F64, &a, &b).unwrap();
        assert_eq!([divided(f(0.0), f(0.0)), divided(f(0.0), None), divided(f(-0.0), f(-0.0))], [f(0.0); 3]);
        assert_eq!([divided(f(3.0), f(0.0)), divided(f(3.0), f(-0.0)), divided(f(3.0), None)], [None; 3]);
        assert_eq!([divided(None, None), divided(None, f(0.0)), divided(None, f(2.0))], [None; 3]);
        assert_eq!(divided(f(6.0), f(2.0)), f(3.0));
    }

    #[test]
    fn truth_values_are_strict_and_choice_is_not() {
        let domain = Partial(Rational);
        let (yes, no): (Option<Exact>, Option<Exact>) = (Some(Exact::Bool(true)), Some(Exact::Bool(false)));
        assert_eq!(domain.binary(Binary::And, ElemType::Bool, &no, &E), Ok(E));
        assert_eq!(domain.binary(Binary::Or, ElemType::Bool, &E, &yes), Ok(E));
        assert_eq!(domain.choose(&yes, &v(1), &E), Ok(v(1)));
        assert_eq!(domain.choose(&no, &v(1), &E), Ok(E));
        assert_eq!(domain.choose(&no, &E, &v(2)), Ok(v(2)));
        assert_eq!(domain.choose(&E, &v(1), &v(1)), Ok(E));
        assert_eq!(domain.choose(&no, &v(1), &v(2)), Ok(v(2)));
    }

    #[test]
    fn other_faults_stay_faults() {
        let domain = Partial(Rational);
        assert!(matches!(domain.unary(Unary::Exp, ElemType::F64, &v(1)), Err(Fault::Unsupported(_))));
        assert_eq!(domain.unary(Unary::Sqrt, ElemType::F64, &v(-1)), Ok(E));
        assert_eq!(domain.undefined(ElemType::F64), Ok(E));
        let infinite =
            Partial(Machine).binary(Binary::Div, ElemType::F64, &Some(Scalar::F64(1.0)), &Some(Scalar::F64(0.0)));
        assert_eq!(infinite, Ok(Some(Scalar::F64(f64::INFINITY))), "the machine's division by zero has a value");
    }
}
