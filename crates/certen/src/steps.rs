//! A schedule for people: the loops before it, and after each of its steps, with what is known of the step.

use std::fmt::Write as _;

use certen_loops::LoopProgram;
use certen_schedule::{Status, Taken, statements};
use certen_syntax::Diagnostic;

use crate::{Failure, Module};

/// The way of a program through its schedule.
#[derive(Debug)]
pub struct Walk<'a> {
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
        Ok(match self.scheduled.get() {
            None => Walk { before, taken: &[], refused: None },
            Some(Ok(scheduled)) => Walk { before, taken: &scheduled.taken, refused: None },
            Some(Err(refused)) => Walk { before, taken: &refused.taken, refused: Some(&refused.diagnostic) },
        })
    }
}

impl Walk<'_> {
    /// All of it as text, but for why a step could not be taken.
    pub fn text(&self) -> String {
        let mut text = format!("the loops without a schedule:\n\n{}", statements(&self.before));
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
    let mut text = String::new();
    if taken.conditions.is_empty() {
        text += "   right wherever it can be done\n";
    }
    for condition in &taken.conditions {
        let known = match &condition.status {
            Status::Proved(_) => "proved for all sizes".to_owned(),
            Status::Fails(why) => format!("fails: {why}"),
            Status::Open => "not shown".to_owned(),
        };
        let _ = writeln!(text, "   {}: {known}", condition.what);
    }
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
