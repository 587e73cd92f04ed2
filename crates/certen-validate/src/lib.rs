//! Trust, tested: whether two forms of a program mean the same is asked here, and only here.
//!
//! - `programs.rs`: two programs of Core, before and after a rewrite ([`agree`]);
//! - `loops.rs`: loops beside the program that they were made from ([`validate`]), and which step made a difference
//!   ([`bisect`]).
//!
//! Machine code is tried beside its loops where it is compiled (`certen/src/trial`), bit by bit. All of them take their sizes
//! from [`cover`], extended until every part is reached ([`Reached`]), and the first two their values from the settings
//! of `inputs.rs`. Programs and loops with large numbers are compared with smaller ones ([`shrunk_program`], [`scale`]).
//! Work is counted in steps of interpreters and bounded by a budget, so that the answer is the same everywhere.

pub mod cover;
mod inputs;
mod joint;
mod loops;
mod order;
mod point;
mod programs;
mod reach;
pub mod scale;
mod shrink;

pub use inputs::{Literals, Setting, draw, wrapping};
pub use loops::{BUDGET, Evidence, LoopComparison, Outcome, bisect, validate};
pub use point::{Difference, Point};
pub use programs::{Agreement, agree};
pub use reach::{Reached, Wanted};
pub use shrink::shrunk_program;
