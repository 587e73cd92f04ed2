//! What is derived from what.
//!
//! `derive g from f { … }` declares `g`, which means what `f` means and is computed in another way. It can be run and
//! scheduled like a function, and derived from further; it cannot be called. `f` is a function, or something derived,
//! of the same file or of one that it imports. Pieces of scripts (`derivation t(…) { … }`) are names of their own,
//! which only scripts know: those of the file, of its imports, and of the prelude of derivations.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use certen_core::script::{Derivation, Tactic};
use certen_syntax::{Code, Diagnostic, Diagnostics, Name, Span, near};

use super::{Declared, DerivedRef, FileRef, FunctionRef, Library};

/// How many derivations may lead from a function to something derived.
const MAX_CHAIN: usize = 256;

/// How many names a message lists.
const SHOWN: usize = 8;

impl Library {
    /// One of the derivations.
    pub fn derivation(&self, derived: DerivedRef) -> &Derivation {
        // A reference comes from a library, and libraries only grow while they are made.
        &self.files[derived.file.0 as usize].derivations[derived.index as usize]
    }

    /// The derivations of the main file, in order.
    pub fn own_derivations(&self) -> impl Iterator<Item = DerivedRef> {
        let file = FileRef::MAIN;
        let count = self.files.get(file.0 as usize).map_or(0, |parsed| parsed.derivations.len());
        (0..count as u32).map(move |index| DerivedRef { file, index })
    }

    /// The function that something is derived from in the end, and the derivations that lead from there to it, in
    /// order. None if there is no such function, which [`Library::load`] has reported.
    pub fn origin(&self, derived: DerivedRef) -> Option<(FunctionRef, Vec<DerivedRef>)> {
        let mut path = vec![derived];
        let mut at = derived;
        // A circle has no end either.
        while path.len() <= MAX_CHAIN + 1 {
            match self.lookup(at.file, self.derivation(at).from)? {
                Declared::Function(function) => {
                    path.reverse();
                    return Some((function, path));
                }
                Declared::Derived(next) => at = next,
                Declared::Const(_) => return None,
            }
            path.push(at);
        }
        None
    }

    /// Whether something is derived, or a piece of scripts declared.
    pub fn has_scripts(&self) -> bool {
        self.files.iter().any(|file| !file.derivations.is_empty() || !file.tactics.is_empty())
    }

    /// The pieces of scripts that the files declare.
    pub fn own_tactics(&self) -> impl Iterator<Item = &Tactic> {
        self.files.iter().flat_map(|file| &file.tactics)
    }

    /// Adds pieces of scripts that every file knows.
    pub fn add_tactics(&mut self, tactics: Vec<Tactic>) {
        self.tactics.extend(tactics);
    }

    /// The pieces of scripts that a file knows; of two with one name the last counts.
    pub fn tactics(&self, file: FileRef) -> Vec<Tactic> {
        let own = self.visible(file).flat_map(|file| &file.tactics);
        let mut tactics: Vec<Tactic> = own.chain(&self.tactics).cloned().collect();
        tactics.reverse();
        tactics
    }

    /// Every derivation of a file begins with a function, in the end, and every piece has a name of its own.
    pub(super) fn check_derivations(&self, at: usize, diagnostics: &mut Diagnostics) {
        let Some(file) = self.files.get(at) else { return };
        let this = FileRef(at as u32);
        for derivation in &file.derivations {
            match self.lookup(this, derivation.from) {
                Some(found) if found.file() == FileRef::PRELUDE => {
                    let text = format!("`{}` is a function of the prelude", derivation.from);
                    let error = Diagnostic::error(Code::E0902, derivation.from_span, text);
                    diagnostics.push(error.help("derive from a function of your own that calls it"));
                }
                Some(Declared::Function(_)) => {}
                Some(Declared::Derived(from)) => {
                    // Said once, at the first that is too far away.
                    if self.origin(from).is_some_and(|(_, path)| path.len() == MAX_CHAIN) {
                        let text =
                            format!("more than {MAX_CHAIN} derivations lead from a function to `{}`", derivation.name);
                        diagnostics.push(Diagnostic::error(Code::E0217, derivation.from_span, text));
                    }
                }
                found => diagnostics.push(self.no_origin(this, derivation, found)),
            }
        }
        let mut first: HashMap<Name, Span> = HashMap::new();
        for tactic in &file.tactics {
            let mut parameters: HashSet<Name> = HashSet::new();
            if let Some(twice) = tactic.parameters.iter().find(|name| !parameters.insert(**name)) {
                let text = format!("two parameters of `{}` are called `{twice}`", tactic.name);
                diagnostics.push(Diagnostic::error(Code::E0202, tactic.name_span, text));
            }
            match first.entry(tactic.name) {
                Entry::Vacant(new) => {
                    new.insert(tactic.name_span);
                }
                Entry::Occupied(first) => {
                    let text = format!("two derivations are called `{}`", tactic.name);
                    let error = Diagnostic::error(Code::E0202, tactic.name_span, text).label("declared again here");
                    diagnostics.push(error.also(*first.get(), "first declared here"));
                }
            }
        }
    }

    /// Reports what is derived from itself, directly or through others; each cycle once.
    pub(super) fn check_circles(&self, diagnostics: &mut Diagnostics) {
        // In which round each was met first.
        let mut met: HashMap<DerivedRef, usize> = HashMap::new();
        let files = self.files.iter().enumerate();
        let all = files.flat_map(|(at, file)| {
            (0..file.derivations.len() as u32).map(move |index| DerivedRef { file: FileRef(at as u32), index })
        });
        for (round, root) in all.enumerate() {
            let mut path = Vec::new();
            let mut next = Some(root);
            while let Some(at) = next {
                match met.entry(at) {
                    Entry::Vacant(new) => new.insert(round),
                    Entry::Occupied(known) => {
                        let circle = path.iter().position(|it| *it == at).filter(|_| *known.get() == round);
                        diagnostics.extend(circle.map(|start| self.circle(&path[start..])));
                        break;
                    }
                };
                path.push(at);
                next = match self.lookup(at.file, self.derivation(at).from) {
                    Some(Declared::Derived(next)) => Some(next),
                    _ => None,
                };
            }
        }
    }

    fn circle(&self, path: &[DerivedRef]) -> Diagnostic {
        let names = path.iter().chain(path.first()).map(|it| self.derivation(*it).name.as_str());
        let shown = match path.len() {
            0..SHOWN => names.collect::<Vec<_>>().join(" from "),
            _ => format!("{} from …", names.take(SHOWN).collect::<Vec<_>>().join(" from ")),
        };
        let (name, span) = path.first().map_or((Name::new(""), Span::default()), |first| {
            let first = self.derivation(*first);
            (first.name, first.from_span)
        });
        let error = Diagnostic::error(Code::E0217, span, format!("`{name}` is derived from itself: {shown}"));
        error.help("one of them has to begin with a function")
    }

    /// That a derivation begins with something that is not a function.
    fn no_origin(&self, file: FileRef, derivation: &Derivation, found: Option<Declared>) -> Diagnostic {
        let from = derivation.from;
        let text = match found {
            Some(Declared::Const(_)) => format!("`{from}` is a constant: only functions are derived from"),
            _ => format!("there is no function `{from}`"),
        };
        let error = Diagnostic::error(Code::E0902, derivation.from_span, text);
        if found.is_some() {
            return error;
        }
        let mut names: Vec<&str> = self
            .visible(file)
            .flat_map(|file| {
                let functions = file.functions.iter().map(|function| function.name.name);
                functions.chain(file.derivations.iter().map(|it| it.name))
            })
            .filter(|name| {
                *name != derivation.name && self.lookup(file, *name).is_some_and(|it| it.file() != FileRef::PRELUDE)
            })
            .map(|name| name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        match near(from.as_str(), names.iter().copied()) {
            Some(near) => error.meant(from, near),
            None if names.is_empty() => error.note("this file has no functions"),
            None => {
                let listed: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
                let more = if names.len() > SHOWN { ", …" } else { "" };
                error.note(format!("there are {}{more}", listed.join(", ")))
            }
        }
    }
}
