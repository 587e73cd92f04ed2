//! Which loop a step means by a name, and what loops are called in messages.
//!
//! `i` is the loop `i` of an output's stage if there is one, else that of the only stage that has it; `b.i` is that of the
//! stage `b`; `i#2` is the second one.

use std::collections::{BTreeSet, HashMap, HashSet};

use certen_loops::{Site, Stmt, sites};
use certen_syntax::schedule::Path;
use certen_syntax::{Code, Diagnostic, Name, Span, near};

use crate::nest::Nest;
use crate::place::Place;
use crate::refusal::{Done, Refusal, listed};

/// A loop that a path can mean.
struct Candidate {
    place: Place,
    index: Name,
    stage: Option<Name>,
}

/// The name of a loop, with its stage.
fn within_stage(found: &Candidate) -> String {
    match found.stage {
        Some(stage) => format!("{stage}.{}", found.index),
        None => found.index.to_string(),
    }
}

/// Whether a loop is a piece of one of this name: `i.o` of `i`.
fn is_piece(index: Name, whole: &str) -> bool {
    index.as_str().strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'))
}

impl Nest {
    /// All loops, with the stage of each, in the order of the text.
    fn loops(&self) -> Vec<Candidate> {
        let candidate = |site: &Site<'_>| match site.stmt {
            Stmt::For { index, .. } => Some(Candidate { place: Place::of(site), index: *index, stage: site.nest }),
            _ => None,
        };
        sites(&self.program.body).iter().filter_map(candidate).collect()
    }

    /// The loop that a path means.
    pub(crate) fn find(&self, named: (&Path, Span)) -> Done<Place> {
        let loops = self.loops();
        let place = self.found(&loops, named)?;
        let stage = self.stage(&place);
        let is_far =
            |found: &&Candidate| found.stage != stage && !found.place.contains(&place) && !place.contains(&found.place);
        let mut now: HashMap<Name, usize> = HashMap::new();
        for far in loops.iter().filter(is_far) {
            *now.entry(far.index).or_default() += 1;
        }
        self.keep_far(now);
        Ok(place)
    }

    fn found(&self, loops: &[Candidate], (path, span): (&Path, Span)) -> Done<Place> {
        let text = |parts: &[Name]| parts.iter().map(|part| part.as_str()).collect::<Vec<_>>().join(".");
        let whole = text(&path.parts);
        let staged = path.parts.split_first().filter(|(_, rest)| !rest.is_empty());
        let staged = staged.map(|(stage, rest)| (*stage, text(rest)));
        let is_output =
            |stage: Option<Name>| stage.is_some_and(|stage| self.program.outputs.iter().any(|o| o.name == stage));
        let of_stage = |found: &&Candidate| {
            staged.as_ref().is_some_and(|(stage, index)| found.stage == Some(*stage) && found.index.as_str() == index)
        };
        let mut matching: Vec<&Candidate> =
            loops.iter().filter(|found| found.index.as_str() == whole && is_output(found.stage)).collect();
        if matching.is_empty() {
            matching = loops.iter().filter(of_stage).collect();
        }
        // A loop of the result that has become others is not looked for in other stages.
        let became = |found: &Candidate| is_output(found.stage) && is_piece(found.index, &whole);
        if matching.is_empty() && !loops.iter().any(became) {
            matching = loops.iter().filter(|found| found.index.as_str() == whole).collect();
        }
        let error = |message: String| Diagnostic::error(Code::E0802, span, message);
        match (path.nth, matching.as_slice()) {
            (None, [one]) => Ok(one.place.clone()),
            (Some(nth), several) if (1..=several.len()).contains(&nth) => Ok(several[nth - 1].place.clone()),
            (_, []) => {
                let names: BTreeSet<String> = loops.iter().map(|found| self.called(found)).collect();
                let error = error(format!("there is no loop `{path}`"));
                let of_it: Vec<&String> = names.iter().filter(|name| name.starts_with(&format!("{whole}."))).collect();
                if !of_it.is_empty() {
                    return Err(error.note(format!("it has become {}", listed(of_it.into_iter()))).into());
                }
                let error = match near(&whole, names.iter().map(String::as_str)) {
                    Some(near) => error.help(format!("did you mean `{near}`?")),
                    None if names.is_empty() => error.note("there are no loops at this step"),
                    None => error.note(format!("the loops are {}", listed(names.iter()))),
                };
                Err(error.into())
            }
            (Some(nth), several) => {
                Err(error(format!("there is no loop number {nth} of the name `{whole}`: there are {}", several.len()))
                    .into())
            }
            (None, several) => {
                let ways: BTreeSet<String> = match several.iter().map(|found| found.stage).collect::<HashSet<_>>().len()
                {
                    1 => (1..=several.len()).map(|nth| format!("{path}#{nth}")).collect(),
                    // Of outputs too, whose name can be left out elsewhere.
                    _ => several.iter().map(|found| within_stage(found)).collect(),
                };
                let refusal: Refusal = error(format!("there are {} loops `{path}`", several.len()))
                    .help(format!("say which: {}", listed(ways.iter())))
                    .into();
                Err(refusal.at_all(several.iter().map(|found| &found.place)))
            }
        }
    }

    /// What a schedule calls the loops of a kind.
    pub(crate) fn called_where(&self, kind: impl Fn(&Stmt) -> bool) -> Vec<String> {
        let loops = self.loops();
        loops
            .iter()
            .filter(|found| self.stmt(&found.place).is_some_and(&kind))
            .map(|found| self.called(found))
            .collect()
    }

    /// The loop at a place in a sentence, with its stage: `b.i`.
    pub(crate) fn called_at(&self, place: &Place) -> Option<String> {
        let Some(Stmt::For { index, .. }) = self.stmt(place) else { return None };
        Some(match self.stage(place) {
            Some(stage) => format!("the loop `{stage}.{index}`"),
            None => format!("the loop `{index}`"),
        })
    }

    /// The loops at two places in a sentence.
    pub(crate) fn called_both(&self, one: &Place, two: &Place) -> (String, String) {
        let called = |place| self.called_at(place).unwrap_or_else(|| "a statement".into());
        (called(one), called(two))
    }

    /// What a schedule calls a loop.
    fn called(&self, found: &Candidate) -> String {
        match found.stage {
            Some(stage) if !self.program.outputs.iter().any(|output| output.name == stage) => {
                format!("{stage}.{}", found.index)
            }
            _ => found.index.to_string(),
        }
    }
}
