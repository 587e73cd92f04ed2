//! Where truncations and what makes padding stand in the text. Core decides what is padding
//! ([`certen_core::padding`]); this module finds the place in the user's text for its answer.

use std::collections::HashMap;

use certen_core::{Program as Core, Term, TermId, Terms, padding};
use certen_syntax::{Diagnostic, Span};

/// The places of terms, the first where equal terms have several.
#[derive(Default)]
pub(super) struct Places(HashMap<TermId, Span>);

impl Places {
    /// Remembers where a term comes from, if messages may speak of it.
    pub(super) fn note(&mut self, terms: &Terms, id: TermId, span: Span) {
        let told = matches!(
            terms.get(id),
            Term::TruncLeft(..)
                | Term::TruncRight(..)
                | Term::Guard(..)
                | Term::PadLeft(..)
                | Term::PadRight(..)
                | Term::Split(..)
        );
        if told {
            self.0.entry(id).or_insert(span);
        }
    }

    /// The truncations that cut more than padding.
    pub(super) fn truncations(&self, core: &Core) -> Vec<Diagnostic> {
        let place = |id: TermId| self.0.get(&id).copied();
        let found = padding::check(core);
        let as_error = |violation: &padding::Violation| {
            let error = violation.diagnostic(core, &place);
            if !error.help.is_empty() {
                return error;
            }
            let slice = match violation.side {
                padding::Side::Left => format!("x[{}..]", violation.cut),
                padding::Side::Right => format!("x[..{}]", rest(violation)),
            };
            error.help(format!("rows that are computed are left out by a slice: `{slice}`"))
        };
        found.iter().map(as_error).collect()
    }
}

/// How many rows are left.
fn rest(violation: &padding::Violation) -> String {
    violation.size.sub(&violation.cut).map_or("…".into(), |rest| rest.to_string())
}
