//! Loops: what is computed in which order, and where it is stored.
//!
//! [`lower`] turns a program of Core into a [`LoopProgram`]: loops over buffers, with scalar Core terms as values.
//! The IR prints as text that [`parse_loops`] reads back. [`verify`] checks that it is well-formed and that every
//! access is in bounds for all sizes; the [`Interpreter`] runs it over any scalar domain, so that it can be compared
//! with the reference evaluator exactly.

mod interp;
mod ir;
mod lower;
mod parallel;
mod parse;
mod print;
mod races;
mod verify;

pub use interp::Interpreter;
pub use ir::{LoopProgram, MAX_NESTING, Stmt, Target, as_element, parts_first};
pub use lower::lower;
pub use parallel::{MIN_PARALLEL_WORK, Work, parallelise, work};
pub use parse::parse_loops;
pub use verify::verify;
