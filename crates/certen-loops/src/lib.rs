//! Loops: what is computed in which order, and where it is stored.
//!
//! [`lower`] turns a program of Core into a [`LoopProgram`]: loops over buffers, with scalar Core terms as values.
//! The IR prints as text that [`parse_loops`] reads back. [`verify`] checks that it is well-formed and that every
//! access is in bounds for all sizes; the [`Interpreter`] runs it over any scalar domain, so that it can be compared
//! with the reference evaluator exactly. [`in_place`] keeps states of iterations once where it can, [`reuse`] decides which tensors share memory,
//! [`pad`] rounds rows up to multiples of a vector length.

mod buffers;
mod cost;
mod in_place;
mod interp;
mod ir;
mod lanes;
mod layout;
mod lower;
mod parallel;
mod parse;
mod print;
mod races;
mod rename;
mod verify;
mod walk;

pub use buffers::{Lend, peak_bytes, reuse};
pub use cost::Cost;
pub use in_place::in_place;
pub use interp::{Event, Interpreter};
pub use ir::{Constant, LoopProgram, MAX_NESTING, Mode, Stmt, Target};
pub use lanes::{Lanes, MAX_DISTANCE};
pub use layout::pad;
pub use lower::{FpMode, change, conjuncts, lower};
pub use parallel::{MIN_PARALLEL_WORK, Work, parallelise, work};
pub use parse::parse_loops;
pub use races::are_independent;
pub use rename::with_output_types;
pub use verify::{unassigned, verify, verify_changed};
pub use walk::{
    Around, Site, Use, as_element, changes_outside, combined, declarations, declared, declared_at_top, for_each_mut,
    sites, statements, try_for_each_mut, within,
};
