//! The page of all steps, `docs/reference/steps.md` from its second part on: made from the primitives, whose examples are run.

use std::fmt::Write as _;

use certen_loops::{FpMode, LoopProgram, parse_loops};
use certen_syntax::schedule::{Step, parse_steps};
use certen_syntax::{Diagnostics, Sources};

use crate::apply::{Scheduled, Taken, apply};
use crate::place::shown;
use crate::primitives::{Example, Primitive, primitives};
use certen_index::Status;

/// The page: each step with its usage, its condition and an example.
///
/// # Errors
/// If an example cannot be run, which is a bug: a sentence that says which.
pub fn page() -> Result<String, String> {
    let mut page = String::new();
    for primitive in primitives() {
        page += &section(primitive).map_err(|why| format!("the example of {}: {why}", primitive.name))?;
    }
    Ok(page)
}

fn section(primitive: &Primitive) -> Result<String, String> {
    let Primitive { name, usage, about, legal, peers, example, .. } = primitive;
    let (before, scheduled) = example.run()?;
    let mut text = format!("## {name}\n\n`{usage}`\n\n{about}\n\n");
    let _ = write!(text, "**Right when**: {legal}\n\n**Elsewhere**: {peers}.\n\n");
    let _ = write!(text, "`{}` makes of\n```text\n{}```\n", example.steps, statements(&before));
    let _ = write!(text, "this:\n```text\n{}```\n\n", statements(&scheduled.program));
    if let Some(taken) = scheduled.taken.last() {
        for condition in &taken.conditions {
            let known = match &condition.status {
                Status::Proved(_) => "proved for all sizes".into(),
                Status::Fails(why) => format!("fails: {why}"),
                Status::Open => "not shown".into(),
            };
            let _ = writeln!(text, "- {}: {known}.", condition.what);
        }
        if !taken.conditions.is_empty() {
            text.push('\n');
        }
    }
    Ok(text)
}

/// The statements of a program as text, without what it declares.
pub fn statements(program: &LoopProgram) -> String {
    // Without the margin, in which nothing is marked.
    shown(program, &[]).lines().map(|line| format!("{}\n", line.get(2..).unwrap_or_default())).collect()
}

impl Example {
    /// The program, and what the steps make of it.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn run(&self) -> Result<(LoopProgram, Scheduled), String> {
        let mut sources = Sources::new();
        let file = sources.add("example.loops", self.program);
        let wrong = |diagnostics: Diagnostics| {
            diagnostics.into_sorted().into_iter().map(|error| error.message).collect::<Vec<_>>().join("; ")
        };
        let program = parse_loops(&sources, file).map_err(wrong)?;
        let mut diagnostics = Diagnostics::new();
        let file = sources.add("example.schedule", self.steps);
        let steps: Option<Vec<Step>> = sources.get(file).and_then(|source| parse_steps(source, file, &mut diagnostics));
        let steps = steps.ok_or_else(|| wrong(diagnostics))?;
        let scheduled = apply(program.clone(), &steps, FpMode::Relaxed)
            .map_err(|refused| format!("{} {}", refused.diagnostic.message, refused.diagnostic.notes.join("\n")))?;
        match scheduled.taken.iter().flat_map(Taken::violations).next() {
            Some(violation) => Err(violation.message.clone()),
            None => Ok((program, scheduled)),
        }
    }
}
