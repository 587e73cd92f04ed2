//! What is known of a value of Python without running anything.

use certen_syntax::Name;
use ruff_python_ast::{Expr, ExprLambda, StmtFunctionDef};

use crate::index::Index;
use crate::kernel::Range;

/// A value, as far as it is known.
#[derive(Clone, Debug)]
pub(crate) enum Known<'a> {
    /// A whole number, perhaps symbolic.
    Index(Index),
    /// A number with a point.
    Number(f64),
    /// A text.
    Text(String),
    /// A list or tuple.
    List(Vec<Known<'a>>),
    /// A tensor of TVM, by its position in its kernel.
    Tensor(usize),
    /// An axis that is reduced.
    Axis(Range),
    /// An array of this shape.
    Array(Vec<Index>),
    /// A function that is defined here.
    Function(&'a StmtFunctionDef),
    /// A function without a name.
    Lambda(&'a ExprLambda),
    /// What a variable of this name holds, which is not known.
    Opaque(Name),
    /// Nothing is known.
    Unknown,
}

impl Known<'_> {
    /// As a size; what is not known is a size with the name of its variable.
    pub fn index(&self) -> Option<Index> {
        match self {
            Known::Index(index) => Some(index.clone()),
            Known::Opaque(name) => Some(Index::Name(*name)),
            _ => None,
        }
    }

    /// As a shape: a tuple of sizes, or one of them alone.
    pub fn shape(&self) -> Option<Vec<Index>> {
        match self {
            Known::List(parts) => parts.iter().map(Known::index).collect(),
            one => one.index().map(|size| vec![size]),
        }
    }
}

/// An argument of a call, and what is known of it.
pub(crate) struct Argument<'a> {
    pub name: Option<&'a str>,
    pub known: Known<'a>,
    pub expr: &'a Expr,
}

/// The arguments of a call.
pub(crate) struct Arguments<'a>(pub Vec<Argument<'a>>);

impl<'a> Arguments<'a> {
    /// The argument at a position, or of a name.
    pub fn get(&self, at: usize, name: &str) -> Option<&Argument<'a>> {
        let named = self.0.iter().find(|argument| argument.name == Some(name));
        named.or_else(|| self.positional().nth(at))
    }

    /// Those without a name.
    pub fn positional(&self) -> impl Iterator<Item = &Argument<'a>> {
        self.0.iter().filter(|argument| argument.name.is_none())
    }
}
