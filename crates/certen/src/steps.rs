//! A schedule for people: the loops before it, and after each of its steps, with what is known of the step.

use std::fmt::Write as _;

use certen_loops::LoopProgram;
use certen_schedule::{Condition, Status, Taken, statements};
use certen_syntax::Diagnostic;

use crate::{Failure, Module};

/// The way of a program through its schedule.
#[derive(Debug)]
pub struct Walk<'a> {
    /// What was done before the first step, and what is known of it.
    pub begun: Vec<(String, Vec<Condition>)>,
    /// The loops before the first step.
    pub before: LoopProgram,
    /// The steps that were taken, in order.
    pub taken: &'a [Taken],
    /// Why the next one could not be.
    pub refused: Option<&'a Diagnostic>,
}

impl Module {
    /// The loops before its schedule and after each step, as far as it gets.
    ///
    /// # Errors
    /// If the program cannot be lowered.
    pub fn walk(&self) -> Result<Walk<'_>, Failure> {
        let before = self.lowered()?;
        // What it comes to is kept either way.
        let _ = self.scheduled();
        let begun = self.begin.taken();
        Ok(match self.scheduled.get() {
            None => Walk { begun, before, taken: &[], refused: None },
            Some(Ok(scheduled)) => Walk { begun, before, taken: &scheduled.taken, refused: None },
            Some(Err(refused)) => Walk { begun, before, taken: &refused.taken, refused: Some(&refused.diagnostic) },
        })
    }
}

impl Walk<'_> {
    /// All of it as text, but for why a step could not be taken.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (what, conditions) in &self.begun {
            let _ = writeln!(text, "{what}\n{}", known(conditions));
        }
        let _ = write!(text, "the loops without a schedule:\n\n{}", statements(&self.before));
        for (at, taken) in self.taken.iter().enumerate() {
            let _ = write!(text, "\n{}. {}\n{}\n", at + 1, taken.step, findings(taken));
            text += &statements(&taken.after);
        }
        if self.taken.is_empty() && self.refused.is_none() {
            text += "\nthere is no schedule\n";
        }
        text
    }
}

/// What is known of a step, one line each.
fn findings(taken: &Taken) -> String {
    let mut text = known(&taken.conditions);
    match taken.violations.as_slice() {
        [] => text += "   bounds and races: proved for all sizes\n",
        found => {
            for violation in found {
                let _ = writeln!(text, "   bounds and races: not shown: {}", violation.message);
            }
        }
    }
    text
}

/// What is known of conditions, one line each.
fn known(conditions: &[Condition]) -> String {
    if conditions.is_empty() {
        return "   right wherever it can be done\n".into();
    }
    let line = |condition: &Condition| {
        let known = match &condition.status {
            Status::Proved(_) => "proved for all sizes".to_owned(),
            Status::Fails(why) => format!("fails: {why}"),
            Status::Open => "not shown".to_owned(),
        };
        format!("   {}: {known}\n", condition.what)
    };
    conditions.iter().map(line).collect()
}
