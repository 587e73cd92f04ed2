//! Stands for the engine until it is merged.
use certen_core::Program;
use certen_index::Condition;
use certen_syntax::{Code, Diagnostic, Name};

use crate::{Rewrite, Step, Tactic};

/// a
#[derive(Debug, Clone)]
pub struct Derived {
    /// a
    pub program: Program,
    /// a
    pub taken: Vec<Taken>,
}
/// a
#[derive(Debug, Clone)]
pub struct Taken {
    /// a
    pub step: Step,
    /// a
    pub rewrite: &'static Rewrite,
    /// a
    pub after: Program,
    /// a
    pub conditions: Vec<Condition>,
}
/// a
#[derive(Debug, Clone)]
pub struct Refused {
    /// a
    pub at: usize,
    /// a
    pub diagnostic: Diagnostic,
    /// a
    pub before: Program,
    /// a
    pub taken: Vec<Taken>,
}
/// a
pub fn derive(
    program: &Program,
    name: Name,
    steps: &[Step],
    _tactics: &[Tactic],
    _check: &mut dyn FnMut(&Program) -> Vec<Diagnostic>,
) -> Result<Derived, Box<Refused>> {
    let program = Program { name, ..program.clone() };
    match steps.first() {
        None => Ok(Derived { program, taken: Vec::new() }),
        Some(step) => Err(Box::new(Refused {
            at: 0,
            diagnostic: Diagnostic::error(Code::E0901, step.span, format!("there is no rewrite `{}`", step.name)),
            before: program,
            taken: Vec::new(),
        })),
    }
}
