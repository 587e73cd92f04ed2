//! What is said of a step that cannot be taken.

use certen_core::{Program, print_term};
use certen_syntax::{Code, Diagnostic};

use certen_core::script::ScriptStep;

/// A rewrite that does not fit, and why.
pub(crate) fn unfit(step: &ScriptStep, why: String) -> Diagnostic {
    let message = format!("the rewrite `{}` does not fit here", step.name);
    Diagnostic::error(Code::E0903, step.span, message).label("this step").note(why)
}

/// A rewrite after which the caller has found something.
pub(crate) fn unsafe_then(step: &ScriptStep, found: Diagnostic) -> Diagnostic {
    let message = format!("after the rewrite `{}` the program is not safe: {}", step.name, found.message);
    let mut error = Diagnostic::error(Code::E0905, step.span, message).label("this step");
    error.notes = found.notes;
    error.help = found.help;
    error.rule = found.rule;
    error
}

/// A program as a note.
pub(crate) fn said(program: &Program) -> String {
    let bindings: Vec<String> =
        program.bindings.iter().map(|b| format!("  {} = {}", b.name, print_term(&program.terms, b.term))).collect();
    format!("at this step the program is\n{}", bindings.join("\n"))
}
