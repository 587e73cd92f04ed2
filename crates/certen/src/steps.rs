//! Derivations and schedules for people: the program before and after each rewrite, the loops before and after each step of the
//! schedule, with what is known of each.

use std::fmt::Write as _;

use certen_loops::LoopProgram;
use certen_schedule::{Condition, Status, Taken, statements};
use certen_syntax::Diagnostic;

use crate::derived::{Rewriting, bindings};
use crate::failure::Failure;
use crate::pipeline::Module;

/// The way of a program through its derivations and its schedule.
#[derive(Debug)]
pub struct Walk<'a> {
    /// The derivations, in order, as far as they get.
    pub rewritings: Vec<Rewriting<'a>>,
    /// What else was done before the first step, and what is known of it.
    pub begun: Vec<(String, Vec<Condition>)>,
    /// The loops before the first step; none if a rewrite cannot be made.
    pub before: Option<&'a LoopProgram>,
    /// The steps that were taken, in order.
    pub taken: &'a [Taken],
    /// Why the next one could not be.
    pub refused: Option<&'a Diagnostic>,
}

impl Module {
    /// The program before its derivations and after each rewrite, the loops before its schedule and after each step, as far
    /// as it gets.
    ///
    /// # Errors
    /// If the program cannot be lowered.
    pub fn walk(&self) -> Result<Walk<'_>, Failure> {
        let rewritings = self.rewritings();
        if let Some(refused) = rewritings.last().and_then(|rewriting| rewriting.refused) {
            return Ok(Walk { rewritings, begun: Vec::new(), before: None, taken: &[], refused: Some(refused) });
        }
        let before = Some(self.lowered()?);
        let begun = if rewritings.is_empty() { self.accepted.begin.taken() } else { Vec::new() };
        let (taken, refused) = match self.attempted()? {
            None => (&[][..], None),
            Some(Ok(scheduled)) => (scheduled.taken.as_slice(), None),
            Some(Err(refused)) => (refused.taken.as_slice(), Some(&refused.diagnostic)),
        };
        Ok(Walk { rewritings, begun, before, taken, refused })
    }

    /// The rewrites that it is derived by, then the steps of its schedule, as they are written.
    ///
    /// # Errors
    /// As [`Module::derived`].
    pub fn all_steps(&self) -> Result<Vec<String>, Failure> {
        self.derived()?;
        let rewrites = self.rewritings().into_iter().flat_map(|it| it.taken).map(|taken| taken.step.to_string());
        Ok(rewrites.chain(self.steps().iter().map(ToString::to_string)).collect())
    }
}

impl Walk<'_> {
    /// All of it as text, but for why a step could not be taken.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Rewriting { derivation, before, taken, .. } in &self.rewritings {
            let _ = writeln!(text, "derive {} from {}:\n\n{}", derivation.name, derivation.from, bindings(before));
            for (at, taken) in taken.iter().enumerate() {
                let _ = writeln!(text, "\n{}. {}\n{}", at + 1, taken.step, known(&taken.conditions));
                let _ = writeln!(text, "{}", bindings(&taken.after));
            }
            text.push('\n');
        }
        let Some(before) = self.before else { return text };
        for (what, conditions) in &self.begun {
            let _ = writeln!(text, "{what}\n{}", known(conditions));
        }
        let _ = write!(text, "the loops without a schedule:\n\n{}", statements(before));
        for (at, taken) in self.taken.iter().enumerate() {
            let _ = write!(text, "\n{}. {}\n{}\n", at + 1, taken.step, findings(taken));
            text += &statements(&taken.after);
        }
        if self.taken.is_empty() && self.refused.is_none() && self.rewritings.is_empty() {
            text += "\nthere is no schedule\n";
        }
        text
    }
}

/// What is known of a step, one line each.
fn findings(taken: &Taken) -> String {
    let mut text = known(&taken.conditions);
    match taken.violations().as_slice() {
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
