//! Which schedules belong to which function.
//!
//! A schedule is for a function of its own file: what is imported brings no schedules along, and the schedule of a
//! function that another one calls has no effect there, because its loops are part of the caller's. Of each function
//! one schedule has no name, the one that is used unless another is chosen; the variants have names of their own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use certen_syntax::schedule::Schedule;
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span, near};

use super::{Declared, Entry as Run, Library};

/// How many functions a message lists.
const SHOWN: usize = 8;

impl Library {
    /// The schedules of a function, or of what is derived from one, in the order of the text.
    pub fn schedules(&self, entry: Run) -> impl Iterator<Item = &Schedule> {
        let found = match entry {
            Run::Function(function) => Declared::Function(function),
            Run::Derived(derived) => Declared::Derived(derived),
        };
        let file = self.files.get(found.file().0 as usize);
        file.into_iter().flat_map(move |file| {
            let of = |schedule: &&Schedule| schedule.function.and_then(|name| file.names.get(&name));
            file.schedules.iter().filter(move |schedule| of(schedule) == Some(&found))
        })
    }

    /// Every schedule of a file is for a function of it, and is the only one of its name.
    pub(super) fn check_schedules(&self, at: usize, diagnostics: &mut Diagnostics) {
        let Some(file) = self.files.get(at) else { return };
        let mut first: HashMap<(Name, Option<Name>), Span> = HashMap::new();
        for schedule in &file.schedules {
            let Some(function) = schedule.function else { continue };
            match file.names.get(&function) {
                Some(Declared::Function(_) | Declared::Derived(_)) => {}
                found => {
                    diagnostics.push(self.no_function(at, schedule, function, found));
                    continue;
                }
            }
            if schedule.variant.is_some_and(|variant| variant.as_str() == NONE) {
                let error = Diagnostic::error(Code::E0211, schedule.head, format!("no variant is called `{NONE}`"));
                diagnostics.push(error.note(format!("`--schedule {NONE}` stands for the loops without a schedule")));
            }
            match first.entry((function, schedule.variant)) {
                Entry::Vacant(new) => {
                    new.insert(schedule.head);
                }
                Entry::Occupied(first) => {
                    let text = match schedule.variant {
                        None => format!("`{function}` has two schedules without a name"),
                        Some(variant) => format!("`{function}` has two schedules called `{variant}`"),
                    };
                    let error = Diagnostic::error(Code::E0202, schedule.head, text).label("declared again here");
                    let error = error.also(*first.get(), "first declared here");
                    let help = format!("a variant has a name of its own: `schedule NAME for {function} {{ … }}`");
                    diagnostics.push(error.help(help));
                }
            }
        }
    }

    /// That a schedule is for something that is not a function of its file.
    fn no_function(&self, at: usize, schedule: &Schedule, name: Name, found: Option<&Declared>) -> Diagnostic {
        let text = match found {
            Some(Declared::Const(_)) => format!("`{name}` is a constant, which has no loops of its own"),
            _ => format!("there is no function `{name}` in this file"),
        };
        let error = Diagnostic::error(Code::E0802, schedule.head, text).label("a schedule for it");
        let Some(file) = self.files.get(at) else { return error };
        let imports = file.imports.iter().filter_map(|(import, file)| Some((import, self.files.get(file.0 as usize)?)));
        for (import, imported) in imports {
            if let Some(Declared::Function(_) | Declared::Derived(_)) = imported.names.get(&name) {
                let note = format!("\"{}\", which this file imports, declares it", import.path);
                return error.note(note).help("a schedule stands in the file of its function, or in a file of its own");
            }
        }
        let functions = file.functions.iter().map(|function| function.name.name.as_str());
        let names: Vec<&str> = functions.chain(file.derivations.iter().map(|it| it.name.as_str())).collect();
        match near(name.as_str(), names.iter().copied()) {
            Some(near) => error.meant(name, near),
            None if names.is_empty() => error.note("it has no functions"),
            None => {
                let listed: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
                let more = if names.len() > SHOWN { ", …" } else { "" };
                error.note(format!("it has {}{more}", listed.join(", ")))
            }
        }
    }
}

/// What stands for no schedule where a variant is chosen.
const NONE: &str = "none";
