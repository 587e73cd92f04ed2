//! What is said of a rewrite for which no place was found.

use certen_core::{Term, print_term};
use certen_index::Status;
use certen_syntax::{Code, Diagnostic, Name};

use super::{PlaceSearch, Taking};
use crate::place::TermPlace;
use crate::refusal::unfit;
use crate::site::RewriteCall;

impl Taking<'_> {
    pub(super) fn refusal(&mut self, order: &RewriteCall, search: PlaceSearch) -> Diagnostic {
        let step = self.step;
        let (from, way) = match order.backwards {
            false => (order.rewrite.left, ""),
            true => (order.rewrite.right, " backwards"),
        };
        if search.too_large {
            return unfit(step, "the program is too large to look at all places".into());
        }
        if let Some((place, condition)) = search.fails {
            let message = format!("`{}`{way} needs a condition that fails here", step.name);
            let why = match &condition.status {
                Status::Fails(why) => format!("{}: {why}", condition.what),
                _ => condition.what.clone(),
            };
            let error = Diagnostic::error(Code::E0904, step.span, message).label("this step");
            return error.note(format!("the condition is {why}")).note(self.marked(&place));
        }
        let message = match step.at.is_empty() {
            true => format!("there is no place where `{}`{way} fits", step.name),
            false => format!("`{}`{way} does not fit here", step.name),
        };
        let error = Diagnostic::error(Code::E0903, step.span, message).label("this step");
        let error = error.note(format!("it rewrites {from}"));
        match search.misfit {
            Some((place, misfit)) => error.note(misfit.why).note(self.marked(&place)),
            None => error,
        }
    }

    /// The program with a mark at a place.
    fn marked(&mut self, place: &TermPlace) -> String {
        let terms = &mut self.whole.terms;
        let meant = place.meant(terms).unwrap_or(place.term);
        let text = print_term(terms, meant);
        let here = Name::new("HERE_IS_THE_PLACE");
        let ty = terms.ty(meant).clone();
        let marked = terms.reference(here, ty).and_then(|mark| place.replaced(terms, mark));
        let Ok(marked) = marked else { return format!("the term is {text}") };
        let mut lines = Vec::new();
        let mut rest = marked;
        while let Term::Let(name, value, body) = terms.get(rest) {
            lines.push(format!("  {name} = {}", print_term(terms, *value)));
            rest = *body;
        }
        lines.push(format!("  {} = {}", self.whole.result, print_term(terms, rest)));
        let program = lines.join("\n").replace(here.as_str(), &format!(">>> {text} <<<"));
        format!("at this step the program is, with the place between >>> and <<<\n{program}")
    }
}
