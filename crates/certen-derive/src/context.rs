//! What is known at a place of a term: which names are bound around it, and what holds of them.
//!
//! Inside a generation or a reduction an index lies in its range; inside a reduction its condition holds; inside a
//! guard and the branches of an `if`, their conditions do. A term may be replaced by another one that is equal only
//! where these hold, because its value elsewhere is never used.

use certen_core::{Range, TensorType, Term, TermId, Terms};
use certen_index::{Cond, Facts, Ix};
use certen_syntax::Name;

/// What is known at a place.
#[derive(Clone, Default, Debug)]
pub(crate) struct Context {
    /// What holds, besides what holds everywhere.
    pub conditions: Vec<Cond>,
    /// Indices that are bound around it, outermost first; sizes are not among them.
    pub indices: Vec<Name>,
    /// Tensors that are bound around it, outermost first; inputs are not among them.
    pub tensors: Vec<(Name, TensorType)>,
}

/// How much of a [`Context`] there was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(usize, usize, usize);

impl Context {
    /// How much there is.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.conditions.len(), self.indices.len(), self.tensors.len())
    }

    /// Back to what there was.
    pub(crate) fn reset(&mut self, Mark(conditions, indices, tensors): Mark) {
        self.conditions.truncate(conditions);
        self.indices.truncate(indices);
        self.tensors.truncate(tensors);
    }

    /// Goes into a part of a term.
    pub(crate) fn enter(&mut self, terms: &Terms, id: TermId, part: usize) {
        match terms.get(id) {
            Term::Gen(name, range, _) => self.bind(*name, range),
            Term::Reduce(_, name, range, cond, _) => {
                self.bind(*name, range);
                self.assume(cond);
            }
            Term::Guard(cond, _) => self.assume(cond),
            Term::If(cond, ..) if part == 0 => self.assume(cond),
            Term::If(cond, ..) => {
                if let Ok(opposite) = cond.not() {
                    self.assume(&opposite);
                }
            }
            Term::Let(name, value, _) if part == 1 => self.tensors.push((*name, terms.ty(*value).clone())),
            // First values and next ones take turns.
            Term::Iterate(times, step, states, _) if part % 2 == 1 => {
                self.bind(*step, &Range::to(times.clone()));
                self.tensors.extend(states.iter().map(|state| (state.name, terms.ty(state.init).clone())));
            }
            _ => {}
        }
    }

    /// Binds an index to a range.
    pub(crate) fn bind(&mut self, name: Name, range: &Range) {
        self.indices.push(name);
        self.conditions.extend(in_range(name, range));
    }

    /// Adds what holds.
    pub(crate) fn assume(&mut self, cond: &Cond) {
        if !cond.is_always() {
            self.conditions.push(cond.clone());
        }
    }

    /// Whether a name is bound around the place.
    pub(crate) fn binds(&self, name: Name) -> bool {
        self.indices.contains(&name) || self.tensors.iter().any(|(tensor, _)| *tensor == name)
    }

    /// What is known here, for proving.
    pub(crate) fn facts(&self, terms: &Terms) -> Facts {
        let mut facts = terms.facts().clone();
        self.conditions.iter().for_each(|cond| facts.assume(cond.clone()));
        facts
    }
}

/// That an index lies in a range.
pub(crate) fn in_range(name: Name, range: &Range) -> impl Iterator<Item = Cond> {
    let index = Ix::var(name);
    [Cond::le(&range.lo, &index).ok(), Cond::lt(&index, &range.hi).ok()].into_iter().flatten()
}
