//! Addresses: the places that a script means.
//!
//! A name is that of an index or tensor, and means the term that binds it; `result` is the whole. A pattern means the
//! terms that are like it. `#2` is the second of those, and `in` says what it stands in.

use certen_syntax::{Code, Diagnostic, near};

use super::Taking;
use crate::found::Matched;
use crate::matching::{Matcher, is_alike};
use crate::pattern::Pattern;
use crate::place::{PlaceWalker, TermPlace, does_bind};
use certen_core::script::{AddressKind, AddressPart};

/// An address does not mean more places than this.
const MAX_MEANT: usize = 1_000;

impl Taking<'_> {
    /// The terms that the address may mean, in order; the whole if there is none.
    pub(crate) fn places(&mut self) -> Result<Vec<TermPlace>, Diagnostic> {
        let mut found = vec![TermPlace::whole(self.whole.root)];
        for address in self.step.at.iter().rev() {
            let pattern = match &address.kind {
                AddressKind::Binder(_) => None,
                AddressKind::Pattern(text) => Some(self.whole.globals.pattern(text).map_err(|why| {
                    Diagnostic::error(Code::E0902, address.span, format!("this pattern cannot be read: {why}"))
                })?),
            };
            let mut inside = Vec::new();
            for outer in &found {
                let before = inside.len();
                self.occurrences(address, pattern.as_ref(), outer, &mut inside)?;
                if let Some(nth) = address.nth {
                    let own = inside.split_off(before);
                    inside.extend(own.into_iter().nth(nth.saturating_sub(1)));
                }
            }
            if inside.is_empty() {
                return Err(self.nowhere(address, pattern.as_ref(), &found));
            }
            found = inside;
        }
        Ok(found)
    }

    /// The places of an address inside another place.
    fn occurrences(
        &mut self,
        address: &AddressPart,
        pattern: Option<&Pattern>,
        outer: &TermPlace,
        inside: &mut Vec<TermPlace>,
    ) -> Result<(), Diagnostic> {
        let (result, terms) = (self.whole.result, &mut self.whole.terms);
        let mut walker = PlaceWalker::new(outer);
        while let Some(place) = walker.next(terms) {
            let is_meant = match (&address.kind, pattern) {
                (AddressKind::Binder(name), _) => {
                    let is_whole = place.path.is_empty() && (*name == result || name.as_str() == "result");
                    place.first.is_none() && (is_whole || does_bind(terms, place.term, *name))
                }
                (AddressKind::Pattern(_), Some(pattern)) => match place.meant(terms) {
                    Ok(meant) if is_alike(pattern, terms.get(meant)) => {
                        Matcher::new(terms, Matched::default(), &place.context, true).run(pattern, meant).is_ok()
                    }
                    _ => false,
                },
                (AddressKind::Pattern(_), None) => false,
            };
            if is_meant {
                inside.push(place.clone());
                if inside.len() > MAX_MEANT {
                    return Err(Diagnostic::error(
                        Code::E0902,
                        address.span,
                        format!("more than {MAX_MEANT} places are like this"),
                    ));
                }
            }
        }
        if walker.is_cut_off() {
            return Err(Diagnostic::error(
                Code::E0902,
                address.span,
                "the program is too large to look for this place",
            ));
        }
        Ok(())
    }

    fn nowhere(&mut self, address: &AddressPart, pattern: Option<&Pattern>, outer: &[TermPlace]) -> Diagnostic {
        let what = match &address.kind {
            AddressKind::Binder(name) => format!("nothing binds `{name}`"),
            AddressKind::Pattern(text) => format!("there is no term like `{}`", text.trim()),
        };
        let many = match address.nth {
            Some(nth) => {
                let mut all = Vec::new();
                for place in outer {
                    let _ = self.occurrences(address, pattern, place, &mut all);
                }
                match all.len() {
                    0 => None,
                    1 => Some(format!("there is one such place, and no number {nth}")),
                    count => Some(format!("there are {count} such places, and no number {nth}")),
                }
            }
            None => None,
        };
        let inside =
            if self.step.at.last().is_some_and(|last| last.span != address.span) { " in that place" } else { "" };
        let error =
            Diagnostic::error(Code::E0902, address.span, many.unwrap_or(format!("{what}{inside} at this step")));
        let mut error = error.label("this place");
        if let AddressKind::Binder(name) = &address.kind {
            let globals = &self.whole.globals;
            let known = globals.indices.iter().chain(&globals.tensors).map(|name| name.as_str());
            if let Some(near) = near(name.as_str(), known).filter(|near| *near != name.as_str()) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            error = error.note(self.known());
        }
        error
    }
}
