//! The typed tree: an instantiated program in which every expression has a type.
//!
//! Made by the checker (`check`), transformed by the passes of [`crate::passes`], and turned into Core by
//! [`crate::to_core`]. Guarantees of the checker, kept by every pass:
//!
//! - there is no polymorphism: ranks and element types are known; sizes stay symbolic;
//! - the index level is evaluated: what is left of it are [`Ix`] and [`Cond`] over the function's sizes and the indices
//!   that are bound around them;
//! - no name is bound again where it is in scope, so nothing is shadowed and nothing can be captured; sizes, parameters
//!   and `let`s are bound once in a function, indices again where their scopes are beside each other;
//! - every selection is in bounds, and every minimum and maximum is over something, for all sizes that satisfy the
//!   function's facts and all values of the indices around it that satisfy the ranges and conditions around it.

use certen_core::{Binary, Literal, ReduceOp, TensorType, Unary};
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

/// An instantiated program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The functions; those that one calls stand before it.
    pub functions: Vec<Function>,
    /// The function that is run.
    pub entry: FunctionId,
}

/// A place in [`Program::functions`].
pub type FunctionId = usize;

/// An instance of a function.
#[derive(Clone, Debug)]
pub struct Function {
    /// A name of its own in the program: that of its source, or a variant of it.
    pub name: Name,
    /// What the user calls it.
    pub source: Name,
    /// Its index-level parameters: the sizes that its types name, and its `size` parameters.
    pub sizes: Vec<Size>,
    /// What holds of the sizes: that they are not negative, and the `where` clause.
    pub facts: Vec<Cond>,
    /// Its tensors.
    pub params: Vec<(Name, TensorType)>,
    /// The names and types of what it gives.
    pub results: Vec<(Name, TensorType)>,
    /// What it computes; as many results as [`Function::results`].
    pub body: Block,
    /// The signature.
    pub span: Span,
}

/// An index-level parameter.
#[derive(Clone, Debug)]
pub struct Size {
    /// Its name.
    pub name: Name,
    /// Whether the user passes it (`k: size`), rather than it being found in the types of the tensors.
    pub given: bool,
}

/// Bindings, then results.
#[derive(Clone, Debug)]
pub struct Block {
    /// The bindings, in order.
    pub lets: Vec<Let>,
    /// What the block gives.
    pub results: Vec<Expr>,
}

/// Names for the values of something, in order.
#[derive(Clone, Debug)]
pub struct Let {
    /// What is bound: one name for each value.
    pub names: Vec<(Name, TensorType)>,
    /// What the names stand for.
    pub value: Rhs,
}

/// What a `let` binds.
#[derive(Clone, Debug)]
pub enum Rhs {
    /// One value.
    Expr(Expr),
    /// The results of a call.
    Call(Call),
    /// The states of an iteration.
    Iterate(Iterate),
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// What is called.
    pub function: FunctionId,
    /// Its index-level parameters, in the order of [`Function::sizes`].
    pub sizes: Vec<Ix>,
    /// Its tensors, in the order of [`Function::params`].
    pub args: Vec<Expr>,
}

/// States carried through steps.
#[derive(Clone, Debug)]
pub struct Iterate {
    /// How many steps; none if it is negative.
    pub times: Ix,
    /// The number of the step, from 0: an index in the body.
    pub step: Name,
    /// The states: name in the body, first value.
    pub states: Vec<(Name, Expr)>,
    /// The next values, in the same order and with the same shapes.
    pub body: Block,
}

/// An expression with its type.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: Kind,
    /// Its type.
    pub ty: TensorType,
    /// Where it stands.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A parameter, a `let` or a state.
    Var(Name),
    /// A scalar.
    Literal(Literal),
    /// The distance from 1 to the next number of the element type, a float.
    Epsilon,
    /// An index used as data.
    Index(Ix),
    /// `[e, e]`: parts of one shape, stacked along a new first dimension; there is at least one.
    Stack(Vec<Expr>),
    /// A selection with at most as many indices as dimensions.
    Select(Box<Expr>, Vec<Ix>),
    /// `{ … }`
    Comprehension(Vec<Partition>),
    /// `with { … } : genarray(…)` or `modarray(…)`
    With(Box<With>),
    /// `with { … } : fold(…)`
    Fold(Box<Fold>),
    /// Entrywise.
    Unary(Unary, Box<Expr>),
    /// Entrywise: the operands have equal shapes, or one is a scalar.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// Entrywise, both computed; each operand has the shape of the result or is a scalar.
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    /// Lazily one of two of equal shapes.
    If(Cond, Box<Expr>, Box<Expr>),
    /// Zero, as padding, where the condition does not hold.
    Guard(Cond, Box<Expr>),
    /// Entrywise, to the element type of the result.
    Cast(Box<Expr>),
    /// Over these axes, in increasing order; all others stay.
    Reduce(ReduceOp, Vec<usize>, Box<Expr>),
    /// A call with one result.
    Call(Box<Call>),
    /// An iteration with one state.
    Iterate(Box<Iterate>),
    /// A block with one result.
    Block(Box<Block>),
    /// The two outermost dimensions as one.
    Flatten(Box<Expr>),
    /// The outermost dimension in blocks of so many.
    Split(i64, Box<Expr>),
    /// The two outermost dimensions exchanged.
    Transpose(Box<Expr>),
    /// One after the other along the outermost dimension.
    Concat(Box<Expr>, Box<Expr>),
    /// Zeros before or after the outermost dimension.
    Pad(Side, Ix, Box<Expr>),
    /// The outermost dimension without its first or last elements.
    Trunc(Side, Ix, Box<Expr>),
    /// The same elements, row by row, in the shape of the type; the products of the sizes are equal.
    Reshape(Box<Expr>),
    /// The same, kept in memory of its own and read from there.
    Stored(Box<Expr>),
}

/// Which end of a dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Its beginning.
    Left,
    /// Its end.
    Right,
}

/// A part of a comprehension.
///
/// The result's dimensions are the pattern's: an index, or a dimension of the body for each dot. Dimensions of the body
/// that no dot takes come last.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The places, outermost first.
    pub pattern: Vec<Slot>,
    /// The range of each index of the pattern, in order: `lower <= i < upper`.
    pub ranges: Vec<Range>,
    /// The element.
    pub body: Expr,
}

/// A place in a pattern.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// An index.
    Index(Name),
    /// So many dimensions of the body: 1 for `.`, any number for `...`.
    Dots(usize),
}

/// The range of an index, and which of its ends the user wrote.
#[derive(Clone, Debug)]
pub struct Range {
    /// The first value.
    pub lower: Ix,
    /// One past the last value; the range is empty if it is not above `lower`.
    pub upper: Ix,
    /// Whether the user wrote the lower end.
    pub lower_written: bool,
    /// Whether the user wrote the upper end.
    pub upper_written: bool,
}

/// A with-loop that makes a tensor. The first generator that contains an index gives the element there.
#[derive(Clone, Debug)]
pub struct With {
    /// The generators.
    pub generators: Vec<Generator>,
    /// The shape of the index space.
    pub frame: Vec<Ix>,
    /// What is where no generator is.
    pub default: WithDefault,
}

/// What a with-loop has where no generator is.
#[derive(Clone, Debug)]
pub enum WithDefault {
    /// `genarray(frame, e)`: the same cell everywhere.
    Cell(Expr),
    /// `modarray(e)`: the elements of a tensor.
    Array(Expr),
}

/// A generator of a with-loop.
#[derive(Clone, Debug)]
pub struct Generator {
    /// The indices and their ranges, outermost first.
    pub indices: Vec<(Name, Range)>,
    /// The element: a scalar or a cell.
    pub body: Expr,
}

/// A with-loop that combines elements, those of an index that several generators contain only once, by the first.
#[derive(Clone, Debug)]
pub struct Fold {
    /// The generators.
    pub generators: Vec<Generator>,
    /// What it begins with; counts once.
    pub neutral: Expr,
    /// What combines.
    pub op: FoldOp,
}

/// What a fold combines with.
#[derive(Clone, Debug)]
pub enum FoldOp {
    /// An operator of Core.
    Reduce(ReduceOp),
    /// A function of the value so far and the next element, which are bound in `next`.
    Function {
        /// The value so far.
        so_far: Name,
        /// The next element.
        element: Name,
        /// The value with it.
        next: Expr,
        /// Whether the function is declared associative, with the neutral element as its identity.
        associative: bool,
    },
}

/// The distance from 1 to the next number of an element type.
pub(crate) fn epsilon(elem: certen_core::ElemType) -> Literal {
    match elem {
        certen_core::ElemType::F32 => Literal::Float(f64::from(f32::EPSILON)),
        _ => Literal::Float(f64::EPSILON),
    }
}
