//! Derivations: a program rewritten into another one that means the same, by named rewrites, step by step (ATL's
//! scheduling framework, as a script in the language).
//!
//! A [`Rewrite`] is an equation between terms of Core with side conditions, as data: its left and right side are texts
//! that the engine matches and builds. A [`Derivation`](certen_core::script::Derivation) is a script,
//! `derive g from f { … }`, whose steps name a rewrite, its parameters, a place and a direction. The prover is asked
//! for the conditions, for all sizes, in the context of the place; after every step the whole program is typed again and its accesses are shown to be in bounds again, for a
//! rewrite can move a read out of the guard that made it safe.

mod apply;
mod build;
mod context;
mod equal;
mod expand;
mod found;
mod globals;
mod matching;
mod names;
mod page;
mod pattern;
mod place;
mod refusal;
mod rewrite;
mod rules;
mod site;
mod take;
mod whole;

pub use apply::{Derived, Refused, Taken, derive};
pub use page::page;
pub use rewrite::{Law, ParameterKind, Rewrite};
pub use rules::rewrites;

use certen_core::script::{Tactic, parse_tactics};
use certen_syntax::{Code, Diagnostic, Diagnostics, Sources};

/// The pieces of scripts that every script knows, as text.
pub const PRELUDE: &str = include_str!("../prelude/derivations.ten");

/// Reads the [`PRELUDE`], which becomes one of the sources, so that messages can point into it.
pub fn prelude(sources: &mut Sources, diagnostics: &mut Diagnostics) -> Vec<Tactic> {
    let file = sources.add("derivations.ten", PRELUDE);
    sources.get(file).map_or_else(Vec::new, |source| parse_tactics(source, file, diagnostics))
}

/// The pieces of scripts that are called like a rewrite, as errors.
pub fn called_like_rewrites<'a>(tactics: impl Iterator<Item = &'a Tactic>) -> Vec<Diagnostic> {
    let error = |tactic: &Tactic| {
        let rewrite = rewrites().iter().find(|rewrite| rewrite.name == tactic.name.as_str())?;
        let text = format!("`{}` is a rewrite, and cannot be declared again", rewrite.name);
        Some(Diagnostic::error(Code::E0202, tactic.name_span, text).note(rewrite.about))
    };
    tactics.filter_map(error).collect()
}
