//! Which schedule a program is compiled with.
//!
//! A `.ten` file can hold several for each function: `schedule f { … }` is the one that is taken if the caller does
//! not say otherwise, `schedule fast for f { … }` a variant with a name. Any program can be given one from outside.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use certen_syntax::schedule::{Schedule, Step, parse_schedules, parse_steps};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Sources};

use crate::failure::Failure;
use crate::texts::read_text;

/// What messages call steps that are given by themselves.
const STEPS: &str = "schedule";

/// Which schedule a program is compiled with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// The one that its file has for its function, else one that the compiler writes.
    #[default]
    Default,
    /// None: only what every nest gets, vectors and threads.
    None,
    /// One that the compiler writes.
    Auto,
    /// The variant of this name in its file.
    Variant(Name),
    /// A text of its own: steps, or what stands in a `.schedule` file.
    Text {
        /// What messages call it.
        name: String,
        /// What it says.
        text: String,
    },
}

impl Choice {
    /// What a word on a command line means: `none`, `auto`, `default`, the name of a variant, a file that ends in `.schedule`, or
    /// steps.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn named(what: &str) -> Result<Choice, Failure> {
        match what {
            "none" => return Ok(Choice::None),
            "auto" => return Ok(Choice::Auto),
            "default" => return Ok(Choice::Default),
            _ => {}
        }
        if what.contains('(') || what.trim().is_empty() {
            return Ok(Choice::Text { name: STEPS.into(), text: what.into() });
        }
        if !what.ends_with(".schedule") {
            return Ok(Choice::Variant(Name::new(what)));
        }
        match read_text(Path::new(what)) {
            Ok(text) => Ok(Choice::Text { name: what.into(), text }),
            Err(why) => {
                let error = Diagnostic::error(Code::E0104, None, format!("{what}: {why}"));
                Err(Failure::new(Arc::default(), vec![error]))
            }
        }
    }

    /// The steps for a function whose file holds these schedules; none if something is wrong, which is then among the
    /// diagnostics.
    pub(crate) fn steps(
        &self,
        function: Name,
        of_file: &[Schedule],
        sources: &mut Arc<Sources>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Vec<Step>> {
        let chosen = |variant: Option<Name>, schedules: &[Schedule]| {
            schedules.iter().find(|schedule| schedule.variant == variant).map(|schedule| schedule.steps.clone())
        };
        match self {
            // What is automatic is written when the loops are known.
            Choice::None | Choice::Auto => Some(Vec::new()),
            Choice::Default => Some(chosen(None, of_file).unwrap_or_default()),
            Choice::Variant(name) => chosen(Some(*name), of_file).or_else(|| {
                diagnostics.push(no_variant(*name, function, of_file));
                None
            }),
            Choice::Text { name, text } => {
                let file = Arc::make_mut(sources).add(name.clone(), text.clone());
                let source = sources.get(file)?;
                if !begins_with_schedule(text) {
                    return parse_steps(source, file, diagnostics);
                }
                let found = diagnostics.has_errors();
                let schedules = parse_schedules(source, file, diagnostics);
                if diagnostics.has_errors() && !found {
                    return None;
                }
                let fits = |schedule: &&Schedule| schedule.function.is_none_or(|name| name == function);
                let fitting: Vec<Schedule> = schedules.iter().filter(fits).cloned().collect();
                match (chosen(None, &fitting), fitting.as_slice()) {
                    (Some(steps), _) => Some(steps),
                    (None, [only]) => Some(only.steps.clone()),
                    (None, []) => {
                        let text = format!("{name}: there is no schedule for `{function}`");
                        diagnostics.push(Diagnostic::error(Code::E0802, None, text));
                        None
                    }
                    (None, several) => {
                        let text = format!("{name}: several schedules for `{function}`, and none without a name");
                        let known: Vec<String> =
                            several.iter().filter_map(|schedule| Some(format!("`{}`", schedule.variant?))).collect();
                        let error = Diagnostic::error(Code::E0802, several[0].head, text);
                        let error = error.note(format!("they are {}", known.join(", ")));
                        diagnostics.push(error.help(format!("`schedule {function} {{ … }}` is the one that is taken")));
                        None
                    }
                }
            }
        }
    }
}

impl fmt::Display for Choice {
    /// As on a command line, steps on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Default => f.write_str("default"),
            Choice::None => f.write_str("none"),
            Choice::Auto => f.write_str("auto"),
            Choice::Variant(name) => write!(f, "{name}"),
            Choice::Text { name, text } if name == STEPS => {
                f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            Choice::Text { name, .. } => f.write_str(name),
        }
    }
}

/// Whether a text is like a `.schedule` file after its comments.
fn begins_with_schedule(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.next().is_some_and(|line| line.split(|c: char| !c.is_alphanumeric()).next() == Some("schedule"))
}

pub(crate) fn no_variant(name: Name, function: Name, of_file: &[Schedule]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0802, None, format!("`{function}` has no schedule `{name}`"));
    let known: Vec<String> =
        of_file.iter().filter_map(|schedule| schedule.variant.map(|name| format!("`{name}`"))).collect();
    match known.as_slice() {
        [] => error.note("its file has no schedules with a name"),
        known => error.note(format!("its file has {}", known.join(", "))),
    }
}
