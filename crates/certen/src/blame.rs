//! Whose fault it is that loops are refused: a step's, a pass's, or Certen's.

use certen_loops::{Mode, Stmt};
use certen_schedule::{Condition, Scheduled, Status, Taken, marked};
use certen_syntax::{Code, Diagnostic, Name};

use crate::stage::Stage;

/// What the verifier has against the loops, blamed on the step that brought it about. If no step did, `pass` names the pass
/// that did.
pub(crate) fn violations(
    scheduled: Option<&Scheduled>,
    found: Vec<Diagnostic>,
    pass: impl FnOnce() -> Option<Stage>,
) -> Vec<Diagnostic> {
    let taken = scheduled.map_or(&[][..], |scheduled| &scheduled.taken);
    let sound = taken.iter().rposition(|taken| taken.violations().is_empty()).map_or(0, |at| at + 1);
    let Some((taken, violation)) =
        taken.get(sound).and_then(|taken| Some((taken, taken.violations().into_iter().next()?)))
    else {
        let Some(pass) = pass() else { return found };
        let note = format!("after `{pass}`: the loops before it are accepted; this is a bug in Certen");
        return found.into_iter().map(|error| error.note(note.clone())).collect();
    };
    let text = format!("after `{}`, {}", taken.step, violation.message);
    let mut error = Diagnostic::error(Code::E0804, taken.step.span, text);
    error.notes.extend(violation.notes.iter().cloned());
    error.help.extend(violation.help.iter().cloned());
    for condition in &taken.conditions {
        if let Status::Fails(why) = &condition.status {
            // A race is shown with its own example.
            let why = if violation.notes.is_empty() { format!(": {why}") } else { String::new() };
            error.notes.push(format!("its condition fails: {}{why}", condition.what));
        }
    }
    error.about = violation.about;
    let is_about = |index: Name, mode: Mode| mode != Mode::Serial && Some(index) == violation.about;
    let is_meant = |stmt: &Stmt| matches!(stmt, Stmt::For { index, mode, .. } if is_about(*index, *mode));
    let error = error.note(format!("the loops after this step:\n{}", marked(&taken.after, is_meant)));
    vec![match taken.step.name.as_str() {
        "parallelize" | "vectorize" => error.help("choose a loop whose iterations use nothing that another one writes"),
        _ => error.help("leave the step out, or bring the loops into another order first"),
    }]
}

/// The error for a program that the compiler itself got wrong.
pub(crate) fn bug(text: String) -> Diagnostic {
    Diagnostic::error(Code::E0704, None, text).note("this is a bug in Certen; no code was made")
}

/// The loops after a step that is not right, with those marked that its conditions speak of.
pub(crate) fn after(taken: &Taken) -> String {
    let wrong = |condition: &&Condition| !matches!(condition.status, Status::Proved(_));
    let wrong: Vec<Name> = taken.conditions.iter().filter(wrong).filter_map(|condition| condition.about).collect();
    let is_meant = |stmt: &Stmt| matches!(stmt, Stmt::For { index, .. } if wrong.contains(index));
    format!("the loops after this step:\n{}", marked(&taken.after, is_meant))
}

/// An error with the conditions of a step or rewrite that are not proved.
pub(crate) fn doubted(error: Diagnostic, conditions: &[Condition]) -> Diagnostic {
    conditions.iter().fold(error, |error, condition| match &condition.status {
        Status::Fails(why) => error.note(format!("it is wrong that {}: {why}", condition.what)),
        Status::Open => error.note(format!("it is not shown that {}", condition.what)),
        Status::Proved(_) => error,
    })
}
