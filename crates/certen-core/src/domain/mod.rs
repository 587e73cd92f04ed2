//! Scalar domains: what the elements of tensors are while a program is evaluated.
//!
//! A program has one meaning per domain. [`Machine`] is the one that native code has; the others decide questions about
//! it: [`Rational`] gives exact answers, [`Field`] tells two programs apart with overwhelming probability when they are
//! different polynomials, [`Partial`] makes uninitialised values visible, [`Padded`] tells padding from computed zeros,
//! [`magnitude`] says how far another way to compute a value may be from the machine's.

mod field;
mod machine;
pub mod magnitude;
mod padded;
mod partial;
mod rational;

use std::fmt;

pub use field::{Element, Field, MODULUS, splitmix};
pub use machine::{Machine, Scalar};
pub use padded::{MaybePadding, Padded};
pub use partial::Partial;
pub use rational::{Exact, Rational, ShortRational};

use crate::ops::{Binary, Literal, Unary};
use crate::types::ElemType;

/// Why an operation has no value in a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// It depends on a division by zero or on uninitialised memory.
    Undefined,
    /// An exact number needs too many bits.
    TooLarge,
    /// The domain does not have this operation.
    Unsupported(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Undefined => write!(f, "the value is undefined"),
            Fault::TooLarge => write!(f, "an exact number became too large"),
            Fault::Unsupported(operation) => write!(f, "this domain has no {operation}"),
        }
    }
}

impl std::error::Error for Fault {}

/// An operand of the wrong type: cannot happen in a well-typed term.
const MISMATCH: Fault = Fault::Unsupported("such operation on these element types");

/// The elements of tensors, and what Core's scalar operations do to them.
///
/// Operations are told the element type of their operands. Terms are well-typed, so an operation is only asked for with
/// types that it takes.
pub trait Domain {
    /// An element.
    type Value: Clone + fmt::Debug + PartialEq;

    /// A constant.
    fn literal(&self, literal: Literal, elem: ElemType) -> Result<Self::Value, Fault>;

    /// An index used as data.
    fn index(&self, index: i64, elem: ElemType) -> Result<Self::Value, Fault>;

    /// The content of memory that nothing was written to.
    fn undefined(&self, _elem: ElemType) -> Result<Self::Value, Fault> {
        Err(Fault::Undefined)
    }

    /// An operation on one element of type `elem`.
    fn unary(&self, op: Unary, elem: ElemType, a: &Self::Value) -> Result<Self::Value, Fault>;

    /// An operation on two elements of type `elem`.
    fn binary(&self, op: Binary, elem: ElemType, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Fault>;

    /// `a` where the condition holds, else `b`.
    fn choose(&self, cond: &Self::Value, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Fault>;

    /// `a * b + c`, rounded once where values are rounded.
    fn fma(&self, elem: ElemType, a: &Self::Value, b: &Self::Value, c: &Self::Value) -> Result<Self::Value, Fault> {
        self.binary(Binary::Add, elem, &self.binary(Binary::Mul, elem, a, b)?, c)
    }

    /// An element of type `from` as one of type `to`.
    fn cast(&self, from: ElemType, to: ElemType, a: &Self::Value) -> Result<Self::Value, Fault>;

    /// An element that nothing computes: zero, where padding is not told apart.
    fn padding(&self, elem: ElemType) -> Result<Self::Value, Fault> {
        self.literal(Literal::whole(0, elem), elem)
    }

    /// A sum with one more summand; the sum of none is padding.
    fn sum(&self, elem: ElemType, sum: &Self::Value, next: &Self::Value) -> Result<Self::Value, Fault> {
        self.binary(Binary::Add, elem, sum, next)
    }

    /// An element that is written as a result of its own, whatever it was read from.
    fn computed(&self, a: Self::Value) -> Self::Value {
        a
    }
}
