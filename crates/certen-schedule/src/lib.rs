//! Schedules: transformations of loops, each with its condition, applied step by step (TeML, Sec. 3.3.2 and 4.1).
//!
//! A schedule is a list of steps, `split(i, 32); vectorize(j, 4)`, whose grammar is in [`certen_syntax::schedule`]. Each
//! [`Primitive`] is a file of its own in `primitives/`, which says what it does, by an example that is run, and when that
//! is right. [`apply`] takes the steps one after the other:
//!
//! - what a step needs in order to be done at all (a loop of this name, a number of iterations) is an error if it is not
//!   there ([`Refused`]);
//! - when it keeps the meaning is a [`Condition`], put to the prover for all sizes. One that fails is recorded, not
//!   refused: a schedule may pass through nests that compute something else, as long as the last one is right (TeML, Sec.
//!   3.4, leaves that open);
//! - after each step the nest is verified: bounds and races.
//!
//! Needs: a program that [`certen_loops::verify`] accepts, before memory is shared. Guarantees: the last nest has the
//! same values as the first if every condition of every step is proved, up to the order in which numbers are summed;
//! this crate promises nothing where one is not.

mod apply;
mod args;
mod auto;
mod bounds;
mod collapse;
mod depend;
mod edit;
mod find;
mod nest;
mod page;
mod partials;
mod place;
mod primitives;
mod refusal;
mod region;
mod rewrite;
mod solved;
mod stages;
mod vectors;

pub use apply::{Refused, Scheduled, Taken, apply};
pub use auto::{Form, Machine, Planned, STREAMED_BYTES, automatic};
pub use certen_index::{Condition, Proof, Status};
pub use edit::{at_sizes, ends, shortened, with_numbers};
pub use page::{page, statements};
pub use place::marked;
pub use primitives::{Example, Primitive, primitives};
pub use solved::solved;
pub use vectors::vectorise;
