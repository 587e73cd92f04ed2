//! The schedule of a program: which one is chosen, and the loops that come of it.
//!
//! A `.ten` file can hold several for each function: `schedule f { … }` is the one that is taken if nobody says
//! otherwise, `schedule fast for f { … }` a variant with a name. Any program can be given one from outside.
//!
//! A schedule says which loops of the nests that it touches threads share, and in which order they run: the compiler chooses
//! that only for nests that no step has changed. It makes vectors of loops that nobody said `vectorize` of in all nests.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use certen_loops::{FpMode, LoopProgram, Mode, Stmt};
use certen_schedule::{Condition, Refused, Scheduled, Status, Taken, apply, marked};
use certen_syntax::schedule::{Schedule, Step, parse_schedules, parse_steps};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Sources};

use crate::module::read_text;
use crate::optimise::is_strict;
use crate::{Failure, Module};

/// What messages call steps that are given by themselves.
const STEPS: &str = "schedule";

/// Which schedule a program is compiled with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// The one that its file has for its function, if there is one.
    #[default]
    Default,
    /// None: the compiler chooses.
    None,
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
    /// What a word on a command line means: `none`, `default`, the name of a variant, a file that ends in `.schedule`, or
    /// steps.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn named(what: &str) -> Result<Choice, Failure> {
        match what {
            "none" => return Ok(Choice::None),
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
        sources: &mut Sources,
        diagnostics: &mut Diagnostics,
    ) -> Option<Vec<Step>> {
        let chosen = |variant: Option<Name>, schedules: &[Schedule]| {
            schedules.iter().find(|schedule| schedule.variant == variant).map(|schedule| schedule.steps.clone())
        };
        match self {
            Choice::None => Some(Vec::new()),
            Choice::Default => Some(chosen(None, of_file).unwrap_or_default()),
            Choice::Variant(name) => chosen(Some(*name), of_file).or_else(|| {
                diagnostics.push(no_variant(*name, function, of_file));
                None
            }),
            Choice::Text { name, text } => {
                let file = sources.add(name.clone(), text.clone());
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
            Choice::Variant(name) => write!(f, "{name}"),
            Choice::Text { name, text } if name == STEPS => {
                f.write_str(&text.split_whitespace().collect::<Vec<_>>().join(" "))
            }
            Choice::Text { name, .. } => f.write_str(name),
        }
    }
}

/// Whether a text is like a `.schedule` file, behind its comments.
fn begins_with_schedule(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.next().is_some_and(|line| line.split(|c: char| !c.is_alphanumeric()).next() == Some("schedule"))
}

fn no_variant(name: Name, function: Name, of_file: &[Schedule]) -> Diagnostic {
    let error = Diagnostic::error(Code::E0802, None, format!("`{function}` has no schedule `{name}`"));
    let known: Vec<String> =
        of_file.iter().filter_map(|schedule| schedule.variant.map(|name| format!("`{name}`"))).collect();
    match known.as_slice() {
        [] => error.note("its file has no schedules with a name"),
        known => error.note(format!("its file has {}", known.join(", "))),
    }
}

impl Module {
    /// All ways to compile this program that its file names: without a schedule, with the one that has no name, with each
    /// that has one, in the order of the text.
    pub fn variants(&self) -> Vec<Choice> {
        let named = |schedule: &Schedule| schedule.variant.map_or(Choice::Default, Choice::Variant);
        let (_, of_file) = self.schedules();
        let mut variants: Vec<Choice> = of_file.iter().map(named).collect();
        // The one without a name first, wherever it stands.
        variants.sort_by_key(|choice| *choice != Choice::Default);
        variants.insert(0, Choice::None);
        variants
    }

    /// These, or all variants if it is none. What the file does not have is refused.
    pub(crate) fn chosen(&self, choices: &[Choice]) -> Result<Vec<Choice>, Failure> {
        let all = self.variants();
        if choices.is_empty() {
            return Ok(all);
        }
        let (function, of_file) = self.schedules();
        let unknown = choices.iter().find_map(|choice| match choice {
            choice if all.contains(choice) => None,
            // Of several paths the first.
            Choice::Default if self.states().is_some() && all.len() > 1 => None,
            Choice::Variant(name) => Some(no_variant(*name, function, &of_file)),
            Choice::Default => {
                let text = format!("`{function}` has no schedule without a name");
                Some(Diagnostic::error(Code::E0802, None, text))
            }
            Choice::None | Choice::Text { .. } => None,
        });
        unknown.map_or(Ok(choices.to_vec()), |error| Err(self.refuse(error)))
    }

    /// The steps of its schedule; none if the compiler chooses.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The loops after each step of its schedule; none without one.
    ///
    /// # Errors
    /// If the program cannot be lowered, or a step cannot be taken.
    pub fn scheduled(&self) -> Result<Option<&Scheduled>, Failure> {
        if self.steps.is_empty() {
            return Ok(None);
        }
        if let Some(scheduled) = self.scheduled.get() {
            return scheduled.as_ref().map(Some).map_err(|refused| self.refuse(refused.diagnostic.clone()));
        }
        let scheduled = self.applied(&self.steps)?;
        let scheduled: &Result<Scheduled, Box<Refused>> = self.scheduled.get_or_init(|| scheduled);
        scheduled.as_ref().map(Some).map_err(|refused| self.refuse(refused.diagnostic.clone()))
    }

    /// The loops after these steps.
    pub(crate) fn applied(&self, steps: &[Step]) -> Result<Result<Scheduled, Box<Refused>>, Failure> {
        let fp = if is_strict(self.core(), self.options().fp) { FpMode::Strict } else { FpMode::Relaxed };
        Ok(apply(self.lowered()?, steps, fp))
    }

    /// What the verifier has against the loops, blamed on the step that brought it about.
    pub(crate) fn violations(&self, found: Vec<Diagnostic>) -> Failure {
        let taken = match self.scheduled() {
            Ok(Some(scheduled)) => scheduled.taken.as_slice(),
            _ => &[],
        };
        let sound = taken.iter().rposition(|taken| taken.violations.is_empty()).map_or(0, |at| at + 1);
        let Some((taken, violation)) = taken.get(sound).and_then(|taken| Some((taken, taken.violations.first()?)))
        else {
            return Failure::new(self.sources.clone(), found);
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
        let is_meant = |stmt: &Stmt| matches!(stmt, Stmt::For { index, mode, .. } if *mode != Mode::Serial && Some(*index) == violation.about);
        let error = Diagnostic { about: violation.about, ..error }
            .note(format!("the loops after this step:\n{}", marked(&taken.after, is_meant)));
        self.refuse(match taken.step.name.as_str() {
            "parallelize" | "vectorize" => {
                error.help("choose a loop whose iterations use nothing that another one writes")
            }
            _ => error.help("leave the step out, or bring the loops into another order first"),
        })
    }
}

/// The loops after a step that is not right, with those marked that its conditions speak of.
pub(crate) fn after(taken: &Taken) -> String {
    let wrong = |condition: &&Condition| !matches!(condition.status, Status::Proved(_));
    let wrong: Vec<Name> = taken.conditions.iter().filter(wrong).filter_map(|condition| condition.about).collect();
    let is_meant = |stmt: &Stmt| matches!(stmt, Stmt::For { index, .. } if wrong.contains(index));
    format!("the loops after this step:\n{}", marked(&taken.after, is_meant))
}

/// The nests that a schedule has not changed.
pub(crate) fn untouched(before: &LoopProgram, after: &LoopProgram) -> HashSet<Name> {
    let changed = nests(after);
    nests(before).into_iter().filter(|nest| changed.contains(nest)).map(|(name, _)| name).collect()
}

/// The nests of a program, and what each consists of.
fn nests(program: &LoopProgram) -> Vec<(Name, Vec<&Stmt>)> {
    let mut nests: Vec<(Name, Vec<&Stmt>)> = Vec::new();
    for stmt in &program.body {
        match (stmt, nests.last_mut()) {
            (Stmt::Nest(name), _) => nests.push((*name, Vec::new())),
            (Stmt::Alloc(..) | Stmt::Free(_), _) | (_, None) => {}
            (stmt, Some((_, nest))) => nest.push(stmt),
        }
    }
    nests
}
