//! What a TeML program comes to: a meaning, and paths of transformations that compute it (Sec. 6).

use std::sync::Arc;

use certen_core::Program;
use certen_loops::LoopProgram;
use certen_syntax::schedule::Step;
use certen_syntax::{Name, Span};

/// A program that was accepted.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// What it means: its real statements, in the order of the text.
    pub core: Program,
    /// Its `codegen` statements, in the order of the text.
    pub paths: Vec<Path>,
    /// The state after each statement, for people (Sec. 3.2).
    pub states: String,
}

/// A `codegen` statement: one way to compute the program.
#[derive(Clone, Debug)]
pub struct Path {
    /// What it is called: its own name, or that of its last loop.
    pub name: Name,
    /// The nests that `build` makes, in the order of the list, before any transformation.
    pub loops: LoopProgram,
    /// The transformations.
    pub steps: Vec<Step>,
    /// The program that these nests are made from, if one of *their* statements has a sum of `vcontract` inside a
    /// product or under a quotient: the nest computes `sum(a*b)` for `a*sum(b)`, which is the same by distributivity,
    /// but on the machine it rounds differently, and infinities and NaNs can differ.
    ///
    /// None if no statement of the list was changed so. Then nests and meaning make the same operations, except that
    /// additions are made in another order: into the target itself (`x + sum(b)`, accumulation), or over several
    /// iterators at once (`contract` with two pairs, `vcontract` inside another one).
    pub lowered: Option<Arc<Program>>,
    /// Whether the list computes every output by the same statements, on the same values, as the program: then it is
    /// equal by construction.
    pub in_order: bool,
    /// Where it stands.
    pub span: Span,
}
