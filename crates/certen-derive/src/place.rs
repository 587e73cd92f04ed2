//! Places: occurrences of terms in a term, wholes before parts and left before right, and terms put in their place.
//!
//! A shared term has several occurrences, each with its own context, so a term is walked as the tree that its text is;
//! the number of places that are looked at is limited. Of a selection `x[i, j]` also `x[i]` is a place.

use certen_core::{Term, TermId, Terms, TypeError};
use certen_syntax::Name;

use crate::context::{Context, Mark};
use crate::names::{select, with_part};

/// More places are not looked at.
pub(crate) const MAX_PLACES: usize = 200_000;

/// An occurrence of a term.
#[derive(Clone, Debug)]
pub(crate) struct TermPlace {
    /// The terms around it, outermost first, and which part of each is next.
    pub path: Vec<(TermId, usize)>,
    /// The term.
    pub term: TermId,
    /// Of a selection, how many of its first indices are meant; none if it is whole.
    pub first: Option<usize>,
    /// What is known there.
    pub context: Context,
}

impl TermPlace {
    /// The whole of a term.
    pub(crate) fn whole(term: TermId) -> TermPlace {
        TermPlace { path: Vec::new(), term, first: None, context: Context::default() }
    }

    /// The term that is meant.
    ///
    /// # Errors
    /// If a selection has more indices than its tensor.
    pub(crate) fn meant(&self, terms: &mut Terms) -> Result<TermId, TypeError> {
        match (self.first, terms.get(self.term)) {
            (Some(first), Term::Select(tensor, indices)) => {
                let (tensor, indices) = (*tensor, indices[..first.min(indices.len())].to_vec());
                select(terms, tensor, &indices)
            }
            _ => Ok(self.term),
        }
    }

    /// The whole with another term in this place.
    ///
    /// # Errors
    /// If it is ill-typed then.
    pub(crate) fn replaced(&self, terms: &mut Terms, new: TermId) -> Result<TermId, TypeError> {
        let mut new = new;
        if let (Some(first), Term::Select(_, indices)) = (self.first, terms.get(self.term)) {
            let rest = indices[first.min(indices.len())..].to_vec();
            new = select(terms, new, &rest)?;
        }
        for (id, part) in self.path.iter().rev() {
            new = with_part(terms, *id, *part, new)?;
        }
        Ok(new)
    }
}

/// A walk over the places of a term, which may grow new terms while it goes on.
pub(crate) struct PlaceWalker {
    place: TermPlace,
    /// Terms that are left through their parts.
    open: Vec<OpenTerm>,
    next: Next,
    /// The length of the path to where the walk began.
    base: usize,
    left: usize,
}

struct OpenTerm {
    term: TermId,
    parts: Vec<TermId>,
    /// Which part is next.
    next: usize,
    /// What to go back to.
    mark: Mark,
}

/// What a walk does next.
enum Next {
    /// Shows the term that it has come to.
    Whole,
    /// Shows a selection with so many of its first indices.
    First(usize),
}

impl PlaceWalker {
    /// A walk over a place and everything inside it.
    pub(crate) fn new(from: &TermPlace) -> PlaceWalker {
        let base = from.path.len();
        PlaceWalker { place: from.clone(), open: Vec::new(), next: Next::Whole, base, left: MAX_PLACES }
    }

    /// The next place.
    pub(crate) fn next(&mut self, terms: &Terms) -> Option<&TermPlace> {
        self.left = self.left.checked_sub(1)?;
        match self.next {
            Next::Whole => {
                let count = match (self.place.first, terms.get(self.place.term)) {
                    (None, Term::Select(_, indices)) => indices.len(),
                    _ => 1,
                };
                self.next = Next::First(count.saturating_sub(1));
                return Some(&self.place);
            }
            Next::First(first) if first > 0 => {
                self.place.first = Some(first);
                self.next = Next::First(first - 1);
                return Some(&self.place);
            }
            Next::First(_) => {}
        }
        let term = self.place.term;
        self.open.push(OpenTerm { term, parts: terms.get(term).parts(), next: 0, mark: self.place.context.mark() });
        while let Some(OpenTerm { term, parts, next, mark }) = self.open.last_mut() {
            self.place.context.reset(*mark);
            let number = *next;
            if let Some(part) = parts.get(number) {
                *next += 1;
                self.place.context.enter(terms, *term, number);
                self.place.path.push((*term, number));
                self.place.term = *part;
                self.place.first = None;
                self.next = Next::Whole;
                return self.next(terms);
            }
            self.open.pop();
            if self.place.path.len() > self.base {
                self.place.path.pop();
            }
        }
        self.left = 0;
        None
    }

    /// Whether there were too many places to look at.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.left == 0 && !self.open.is_empty()
    }

    /// The walk at the same place of another whole, where something was put into that place.
    pub(crate) fn renewed(&self, terms: &Terms, root: TermId) -> Option<PlaceWalker> {
        let mut place = TermPlace::whole(root);
        let mut open = Vec::new();
        for (at, (_, part)) in self.place.path.iter().enumerate() {
            let parts = terms.get(place.term).parts();
            let next = *parts.get(*part)?;
            if at >= self.base {
                open.push(OpenTerm { term: place.term, parts, next: part + 1, mark: place.context.mark() });
            }
            place.context.enter(terms, place.term, *part);
            place.path.push((place.term, *part));
            place.term = next;
        }
        Some(PlaceWalker { place, open, next: Next::Whole, base: self.base, left: self.left })
    }
}

/// Whether a term binds a name.
pub(crate) fn does_bind(terms: &Terms, id: TermId, name: Name) -> bool {
    terms.get(id).binders().contains(&name)
}
