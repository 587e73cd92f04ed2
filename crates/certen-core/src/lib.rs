//! Meaning: the small calculus that every front door elaborates into, and what its programs mean.
//!
//! A [`Program`] is a flat list of bindings of [`Term`]s: ATL's calculus with explicit ranges, typed as it is built.
//! The [`Evaluator`] is the meaning of the language: it follows the papers' equations, element by element, over any
//! scalar [`Domain`] (the machine's numbers, exact rationals, a prime field, values or undefined). Everything else in
//! the project is compared with it.

mod arguments;
pub mod domain;
mod error;
mod eval;
mod functions;
mod ops;
mod order;
pub mod padding;
mod parse;
mod power;
mod print;
mod program;
pub mod script;
mod specialise;
mod table;
mod tensor;
mod term;
mod trace;
mod types;
mod walk;

pub use arguments::Arguments;
pub use domain::{Domain, Fault};
pub use error::EvalError;
pub use eval::{DEFAULT_FUEL, Evaluator};
pub use ops::{Binary, Literal, ReduceOp, Unary};
pub use parse::{TermParser, parse_program};
pub use power::{MAX_MULTIPLIED, by_squaring, multiplied};
pub use print::{print_beginning, print_term};
pub use program::{Binding, Count, Parameter, Program, ScopeError};
pub use table::Table;
pub use tensor::{Named, Tensor, index_of};
pub use term::{Carried, MAX_RANK, Range, Term, TermId, Terms};
pub use trace::{Limits, Trace, TraceStep};
pub use types::{ElemType, TensorType, TypeError};
pub use walk::{Component, Reachable, TermNames};
