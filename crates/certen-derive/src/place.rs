//! Places: occurrences of terms in a term, wholes before parts and left before right, and terms put in their place.
//!
//! A shared term has several occurrences, each with its own context, so a term is walked as the tree that its text is; the
//! number of places that are looked at is limited. Of a selection `x[i, j]` also `x[i]` is a place.

use certen_core::{Term, TermId, Terms, TypeError};
use certen_syntax::Name;

use crate::context::{Context, Mark};
use crate::names::{binders, select, with_part};

/// More places are not looked at.
pub(crate) const MAX_PLACES: usize = 200_000;

/// An occurrence of a term.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The terms around it, outermost first, and which part of each is next.
    pub path: Vec<(TermId, usize)>,
    /// The term.
    pub term: TermId,
    /// Of a selection, how many of its first indices are meant; none if it is whole.
    pub first: Option<usize>,
    /// What is known there.
    pub context: Context,
}

impl Place {
    /// The whole of a term.
    pub(crate) fn whole(term: TermId) -> Place {
        Place { path: Vec::new(), term, first: None, context: Context::default() }
    }

    /// The term that is meant.
    ///
    /// # Errors
    /// Never, for a place of this arena.
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

/// Visits the places of a term from one of them on, until `visit` is done; false if there are too many.
///
/// `visit` says whether to go on, and whether to look inside the place.
pub(crate) fn walk(terms: &mut Terms, from: &Place, visit: &mut dyn FnMut(&mut Terms, &Place) -> Step) -> Walked {
    let mut place = from.clone();
    let mut budget = MAX_PLACES;
    // What is open: a term, its parts, the next of them, and the context to come back to.
    let mut open: Vec<(TermId, Vec<TermId>, usize, Mark)> = Vec::new();
    let mut arrived = true;
    loop {
        if arrived {
            budget -= 1;
            if budget == 0 {
                return Walked::TooLarge;
            }
            match visit(terms, &place) {
                Step::Stop => return Walked::Stopped,
                Step::In => {
                    if place.first.is_none()
                        && let Term::Select(_, indices) = terms.get(place.term)
                    {
                        for first in (1..indices.len()).rev() {
                            place.first = Some(first);
                            if let Step::Stop = visit(terms, &place) {
                                return Walked::Stopped;
                            }
                        }
                        place.first = None;
                    }
                    open.push((place.term, terms.get(place.term).parts(), 0, place.context.mark()));
                }
            }
        }
        let Some((id, parts, next, mark)) = open.last_mut() else { return Walked::Through };
        place.context.reset(*mark);
        let (id, number) = (*id, *next);
        match parts.get(number) {
            Some(part) => {
                *next += 1;
                place.term = *part;
                place.first = None;
                place.path.push((id, number));
                place.context.enter(terms, id, number);
                arrived = true;
            }
            None => {
                open.pop();
                place.path.pop();
                arrived = false;
            }
        }
        if open.is_empty() {
            return Walked::Through;
        }
    }
}

/// Where to go from a place.
pub(crate) enum Step {
    /// Into it.
    In,
    /// Nowhere.
    Stop,
}

/// How a walk ended.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Walked {
    /// By the visitor.
    Stopped,
    /// At the end.
    Through,
    /// Too many places.
    TooLarge,
}

/// Whether a term binds a name.
pub(crate) fn does_bind(terms: &Terms, id: TermId, name: Name) -> bool {
    binders(terms.get(id)).contains(&name)
}
