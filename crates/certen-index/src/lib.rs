//! Integers: symbolic sizes and index expressions, and what is known about them.
//!
//! An [`Ix`] is an integer expression in normal form over named sizes and indices, so that two expressions that are
//! equal as polynomials are equal as values, however they were spelled. A [`Cond`] is a condition over them.
//! [`Facts`] collects what holds in a scope and answers questions about all integers that satisfy it: yes, no with a
//! counterexample, or cannot tell.

mod bound;
mod check;
mod cond;
mod condition;
mod example;
mod extent;
mod facts;
mod growth;
mod interval;
mod ix;
mod numbers;
mod parse;
mod print;
mod prover;
mod simplify;
mod witness;

#[cfg(test)]
mod tests;

pub use bound::Bound;
pub use check::{Rejected, check};
pub use cond::Cond;
pub use condition::{Condition, Proof, Status};
pub use facts::{Counterexample, Decision, Facts, KnownOrder, Verdict};
pub use ix::{Ix, IxError};
pub use parse::{parse_cond, parse_ix, parse_primary};
pub use print::{IndexFunction, Notation};
pub use witness::{CaseSplit, Extreme, ProofEnd, ProofStep, Reason, Refutation, Witness};
