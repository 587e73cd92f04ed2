//! Conditions of steps: sentences for people, and what is known of them for all sizes.

use certen_syntax::Name;

use crate::cond::Cond;
use crate::facts::{Decision, Facts};
use crate::witness::Witness;

/// What has to hold for a step of a schedule or a derivation to keep the meaning.
#[derive(Clone, Debug)]
pub struct Condition {
    /// A sentence that is true if the condition holds.
    pub what: String,
    /// The index of the loop that it speaks of, if it speaks of one.
    pub about: Option<Name>,
    /// What is known of it.
    pub status: Status,
}

/// What is known of a condition.
#[derive(Clone, Debug)]
pub enum Status {
    /// It holds for all sizes, for these reasons.
    Proved(Vec<Proof>),
    /// It does not hold: a sentence that says where.
    Fails(String),
    /// It is not known.
    Open,
}

/// A goal that follows from facts.
#[derive(Clone, Debug)]
pub struct Proof {
    /// What is known.
    pub facts: Vec<Cond>,
    /// What follows.
    pub goal: Cond,
    /// Why.
    pub witness: Witness,
}

impl Proof {
    /// The proof of a goal, if the prover finds one.
    ///
    /// # Errors
    /// The prover's other answer: a counterexample, if it has found one.
    pub fn find(facts: &Facts, goal: Cond) -> Result<Proof, Decision> {
        match facts.decide(&goal) {
            Decision::Proved(witness) => Ok(Proof { facts: facts.conjuncts().to_vec(), goal, witness }),
            other => Err(other),
        }
    }
}
