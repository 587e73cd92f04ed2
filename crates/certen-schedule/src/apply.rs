//! A schedule applied: step by step, with everything that was shown on the way.

use certen_core::{Literal, Term};
use certen_index::{Condition, Status};
use certen_loops::{FpMode, LoopProgram, Stmt, for_each_mut, statements, unassigned, verify};
use certen_syntax::schedule::Step;
use certen_syntax::{Code, Diagnostic, near};

use crate::args::Args;
use crate::nest::Nest;
use crate::primitives::{named, primitives};
use crate::refusal::{Done, Refusal};

/// A program after its schedule.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The loops before it.
    pub before: LoopProgram,
    /// The loops.
    pub program: LoopProgram,
    /// The steps, in order.
    pub taken: Vec<Taken>,
}

/// A step that was taken.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The step.
    pub step: Step,
    /// The loops after it.
    pub after: LoopProgram,
    /// When it keeps the meaning, and what is known of that.
    pub conditions: Vec<Condition>,
}

/// Whether a step says which nests there are, or by which operations an element is made, not how loops run.
pub(crate) fn is_of_operations(step: &Step) -> bool {
    matches!(step.name.as_str(), "inline" | "separate" | "share" | "fma" | "join_sums")
}

impl Taken {
    /// Whether this step is shown to keep the meaning, for all sizes.
    pub fn is_proved(&self) -> bool {
        self.conditions.iter().all(|condition| matches!(condition.status, Status::Proved(_)))
    }

    /// Whether it says which nests there are, or by which operations an element is made, not how loops run.
    pub fn is_of_operations(&self) -> bool {
        is_of_operations(&self.step)
    }

    /// What the verifier has against the loops after it: bounds and races. Asked of a single step only to explain it: what
    /// counts are the loops after the last one.
    pub fn violations(&self) -> Vec<Diagnostic> {
        verify(&self.after)
    }
}

impl Scheduled {
    /// Whether every step is shown to keep the meaning, for all sizes.
    pub fn is_proved(&self) -> bool {
        self.taken.iter().all(Taken::is_proved)
    }
}

/// Why a schedule cannot be applied.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which step, counted from 0.
    pub at: usize,
    /// What is wrong with it; the loops at that step are a note.
    pub diagnostic: Diagnostic,
    /// The loops before that step.
    pub before: LoopProgram,
    /// The steps before it.
    pub taken: Vec<Taken>,
}

/// Applies a schedule; with [`FpMode::Strict`], no sum of floats is made in another order, and no product is fused with one.
///
/// # Errors
/// E0801 for a step that is not known or has other arguments, E0802 for a loop, stage or buffer that is not there,
/// E0803 for a step that cannot be done.
pub fn apply(before: LoopProgram, steps: &[Step], fp: FpMode) -> Result<Scheduled, Box<Refused>> {
    let (taken, refusal) = taken(&before, steps, fp);
    let program = taken.last().map_or(&before, |taken| &taken.after).clone();
    match refusal {
        None => Ok(Scheduled { before, program, taken }),
        Some(refusal) => {
            let at = taken.len();
            let diagnostic = refusal.located(&program, steps[at].span);
            Err(Box::new(Refused { at, diagnostic, before: program, taken }))
        }
    }
}

/// The same where nobody asks why a step is refused: the loops are not printed then.
pub(crate) fn tried(before: &LoopProgram, steps: &[Step], fp: FpMode) -> Option<Scheduled> {
    let (taken, None) = taken(before, steps, fp) else { return None };
    let program = taken.last().map_or(before, |taken| &taken.after).clone();
    Some(Scheduled { before: before.clone(), program, taken })
}

/// The steps up to the first one that is refused.
fn taken(before: &LoopProgram, steps: &[Step], fp: FpMode) -> (Vec<Taken>, Option<Refusal>) {
    let mut taken: Vec<Taken> = Vec::with_capacity(steps.len());
    for step in steps {
        match next(taken.last().map_or(before, |taken| &taken.after), step, fp) {
            Ok(made) => taken.push(made),
            Err(refusal) => return (taken, Some(refusal)),
        }
    }
    (taken, None)
}

/// What a step makes of a program.
fn next(program: &LoopProgram, step: &Step, fp: FpMode) -> Done<Taken> {
    let mut nest = Nest::new(program.clone(), fp == FpMode::Strict);
    take(&mut nest, step).and_then(|()| nest.has_not_grown(&program.body))?;
    let (mut after, conditions) = nest.finish();
    begin_with_zero(&mut after, program);
    Ok(Taken { step: step.clone(), after, conditions })
}

/// Gives locals a first value, zero, that were assigned before they were read but are no longer seen to be: where a loop
/// that certainly ran has become pieces of which one certainly runs. A step that keeps the meaning never reads it.
fn begin_with_zero(program: &mut LoopProgram, before: &LoopProgram) {
    let (old, new) = (before.body.iter(), program.body.iter());
    let first = old.clone().zip(new.clone()).take_while(|(old, new)| old == new).count();
    let changed = &program.body[first..];
    let last = old.skip(first).rev().zip(changed.iter().rev()).take_while(|(old, new)| old == new).count();
    let changed = &changed[..changed.len() - last];
    // What is declared at the top may be assigned anywhere.
    if !program.body.iter().chain(statements(changed)).any(|stmt| matches!(stmt, Stmt::Local { init: None, .. })) {
        return;
    }
    let names = unassigned(program);
    for_each_mut(&mut program.body, |stmt| {
        if let Stmt::Local { name, elem, init: init @ None } = stmt
            && names.contains(name)
        {
            *init = program.terms.add(Term::Literal(Literal::whole(0, *elem), *elem)).ok();
        }
    });
}

/// Takes a step.
fn take(nest: &mut Nest, step: &Step) -> Done<()> {
    let Some(primitive) = named(step.name) else {
        let error = Diagnostic::error(Code::E0801, step.span, format!("there is no step `{}`", step.name));
        let near = near(step.name.as_str(), primitives().iter().map(|primitive| primitive.name));
        let error = match near {
            Some(near) => error.meant(step.name, near),
            None => error.help("`certen help steps` lists all steps"),
        };
        return Err(error.into());
    };
    (primitive.apply)(nest, &Args::new(primitive.usage, step))
}
