//! What a TeML program computes: its real statements, with everything inferred.
//!
//! `value` and `out` are over the iterators; nothing here knows of trees or states.

use certen_core::{Binary, ElemType, ReduceOp};
use certen_index::Ix;
use certen_syntax::{Name, Span};

/// A tensor that is kept in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Its name.
    pub name: Name,
    /// The type of its elements.
    pub elem: ElemType,
    /// Its sizes.
    pub shape: Vec<Ix>,
    /// Where it is introduced.
    pub span: Span,
}

/// A real statement: for all values of its iterators, `target[out] = value`, reading old values and writing new ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Assignment {
    /// What the program calls it.
    pub id: Name,
    /// The tensor that it writes.
    pub target: Name,
    /// The element that is written.
    pub out: Vec<Ix>,
    /// Its iterators and their extents, in the order in which `build` nests them.
    pub iterators: Vec<(Name, Ix)>,
    /// What becomes of the target's old value.
    pub begin: Begin,
    /// The right side, without the target's old value.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
}

/// What becomes of the old value of an assignment's target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// It is overwritten; every iterator stands in `out`.
    Write,
    /// It is combined with the value, over all iterators that are not in `out`; the value is subtracted if so.
    Accumulate {
        /// A sum or a product.
        op: ReduceOp,
        /// Whether values are subtracted.
        negated: bool,
    },
    /// It becomes zero first, then values are added over all iterators that are not in `out` (Eq. 33).
    Contract,
}

/// A right side.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// An element of a tensor.
    Element(Name, Vec<Ix>),
    /// A number.
    Number(f64),
    /// An operation.
    Op(Binary, Box<Value>, Box<Value>),
    /// The sum over iterators that occur nowhere else, with their extents (`vcontract`).
    Sum(Vec<(Name, Ix)>, Box<Value>),
}
