//! A derivation taken: step by step, with everything that was shown on the way.
//!
//! A program is one term while it is derived, with its bindings as `let`s. A step finds its place, asks its conditions
//! there and builds the other side; the new program is typed, its names are checked, and the caller checks what it
//! wants: that accesses are in bounds and that what is cut off is padding, for a rewrite can move a read out of the
//! guard that made it safe. A condition with a counterexample refuses the step. One that cannot be decided is kept as
//! open: the programs are then compared by testing, and the equality is not called proved.

use certen_core::Program;
use certen_index::{Condition, Status, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::expand::expand;
use crate::refusal::{said, unfit, unsafe_then};
use crate::rewrite::Rewrite;
use crate::take::Taking;
use crate::whole::Whole;
use certen_core::script::{ScriptStep, Tactic};

/// A derived program.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The program after the last step.
    pub program: Program,
    /// The rewrites, in order; pieces of scripts are unfolded.
    pub taken: Vec<Taken>,
}

/// A rewrite that was taken.
#[derive(Clone)]
pub struct Taken {
    /// The step; inside a piece of a script with arguments for its parameters, and the place of the whole piece.
    pub step: ScriptStep,
    /// Which step of the script it belongs to, counted from 0.
    pub of: usize,
    /// The rewrite.
    pub rewrite: &'static Rewrite,
    /// The program after it.
    pub after: Program,
    /// When it keeps the meaning, and what is known of that.
    pub conditions: Vec<Condition>,
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taken").field("step", &self.step).field("rewrite", &self.rewrite.name).finish_non_exhaustive()
    }
}

impl Taken {
    /// Whether this step is shown to keep the meaning, for all sizes.
    pub fn is_proved(&self) -> bool {
        self.conditions.iter().all(|condition| matches!(condition.status, Status::Proved(_)))
    }
}

impl Derived {
    /// Whether every step is shown to keep the meaning, for all sizes.
    pub fn is_proved(&self) -> bool {
        self.taken.iter().all(Taken::is_proved)
    }
}

/// Why a derivation cannot be taken.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which step of the script, counted from 0.
    pub at: usize,
    /// What is wrong with it; the program at that step is a note.
    pub diagnostic: Diagnostic,
    /// The program before that step.
    pub before: Program,
    /// The rewrites before it.
    pub taken: Vec<Taken>,
}

/// Takes the steps of a script, and calls the result by a name. `check` looks at the program after every step; what it
/// finds refuses the step.
///
/// # Errors
/// E0901 for a rewrite that is not known or has other arguments, E0902 for a place that is not there, E0903 for a
/// rewrite that does not fit, E0904 for one whose condition fails, E0905 for what `check` finds.
pub fn derive(
    program: &Program,
    name: Name,
    steps: &[ScriptStep],
    tactics: &[Tactic],
    check: &mut dyn FnMut(&Program) -> Vec<Diagnostic>,
) -> Result<Derived, Box<Refused>> {
    let mut taken: Vec<Taken> = Vec::new();
    let span = steps.first().map(|step| step.span);
    let refused = |at: usize, diagnostic: Diagnostic, before: &Program, taken: Vec<Taken>| {
        Err(Box::new(Refused { at, diagnostic, before: before.clone(), taken }))
    };
    let mut whole = match Whole::new(program, name) {
        Ok(whole) => whole,
        Err(why) => return refused(0, Diagnostic::error(Code::E0903, span, why), program, taken),
    };
    if let Err(diagnostic) = whole.is_manageable() {
        return refused(0, Diagnostic::error(Code::E0903, span, diagnostic), program, taken);
    }
    let mut before = match whole.program() {
        Ok(before) => before,
        Err(error) => return refused(0, Diagnostic::error(Code::E0903, span, error.to_string()), program, taken),
    };
    let ty = whole.terms.ty(whole.root).clone();
    for (at, step) in steps.iter().enumerate() {
        let unfolded = match expand(step, tactics) {
            Ok(unfolded) => unfolded,
            Err(diagnostic) => return refused(at, diagnostic, &before, taken),
        };
        for inner in unfolded {
            let made = Taking { whole: &mut whole, step: &inner }.take().and_then(|(rewrite, conditions)| {
                let error = |why: String| unfit(&inner, why);
                whole.is_manageable().map_err(error)?;
                whole.has_regular_shapes().map_err(error)?;
                let now = whole.terms.ty(whole.root);
                let equal = now.elem == ty.elem
                    && now.rank() == ty.rank()
                    && now
                        .shape
                        .iter()
                        .zip(ty.shape.iter())
                        .all(|(a, b)| whole.terms.facts().prove_equal(a, b) == Verdict::Yes);
                if !equal {
                    return Err(error(format!("the result would be {now} and no longer {ty}")));
                }
                let after =
                    whole.program().map_err(|scope| error(format!("a name would lose its meaning: {scope}")))?;
                match check(&after).into_iter().find(Diagnostic::is_error) {
                    Some(found) => Err(unsafe_then(&inner, found)),
                    None => Ok((rewrite, conditions, after)),
                }
            });
            match made {
                Ok((rewrite, conditions, after)) => {
                    before = after.clone();
                    taken.push(Taken { step: inner, of: at, rewrite, after, conditions });
                }
                Err(diagnostic) => {
                    let diagnostic = if inner.name == step.name {
                        diagnostic
                    } else {
                        diagnostic.note(format!("the step of `{}` that fails is `{inner}`", step.name))
                    };
                    let diagnostic = match diagnostic.notes.iter().any(|note| note.starts_with("at this step")) {
                        true => diagnostic,
                        false => diagnostic.note(said(&before)),
                    };
                    return refused(at, diagnostic, &before, taken);
                }
            }
        }
    }
    Ok(Derived { program: before, taken })
}
