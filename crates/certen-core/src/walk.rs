//! The one walk over Core: what a term consists of, how to change that, and what is inside a term.
//!
//! The macro `components` is the only place outside typing, printing, parsing and meaning that knows every [`Term`];
//! everything else here is made from it (Futhark's `Traversals` and Exo's `LoopIR_Rewrite` are the models). Nothing recurses: parts
//! stand before wholes in an arena, so to rebuild a term is a loop over its parts in the order of the arena.
//!
//! Names are identities in Core: what a term binds is bound nowhere around it. So one map of names serves for a whole term,
//! and an expression that is substituted for an index is not captured unless it mentions a name that the term binds.
//! The type of a [`Term::Ref`] belongs to whatever binds the name: it is no component.

use std::collections::BTreeSet;
use std::convert::Infallible;

use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use crate::term::{Carried, Range, Term, TermId, Terms};
use crate::types::TypeError;

/// Something that a term itself consists of.
pub enum Component<'a> {
    /// A name that it binds.
    Binder(&'a mut Name),
    /// An index expression outside conditions.
    Ix(&'a mut Ix),
    /// Its condition.
    Cond(&'a mut Cond),
    /// A term in it.
    Part(&'a mut TermId),
}

/// The same, to look at.
enum Seen<'a> {
    Binder(&'a Name),
    Ix(&'a Ix),
    Cond(&'a Cond),
    Part(&'a TermId),
}

/// The components of a term, in the order of Core's text: of a `&mut Term` as [`Component`], of a `&Term` as [`Seen`].
macro_rules! components {
    ($term:expr, $Component:ident) => {{
        use $Component::{Binder, Cond, Ix, Part};
        let components: SmallVec<[$Component<'_>; 6]> = match $term {
            Term::Ref(..) | Term::Literal(..) | Term::Table(_) | Term::Undefined(_) => smallvec![],
            Term::Gen(name, Range { lo, hi }, body) => smallvec![Binder(name), Ix(lo), Ix(hi), Part(body)],
            Term::Reduce(_, name, Range { lo, hi }, cond, body) => {
                smallvec![Binder(name), Ix(lo), Ix(hi), Cond(cond), Part(body)]
            }
            Term::Guard(cond, body) => smallvec![Cond(cond), Part(body)],
            Term::If(cond, a, b) => smallvec![Cond(cond), Part(a), Part(b)],
            Term::Let(name, value, body) => smallvec![Binder(name), Part(value), Part(body)],
            Term::Iterate(times, step, states, _) => {
                let mut components = smallvec![Binder(step), Ix(times)];
                for Carried { name, init, next } in states {
                    components.extend([Binder(name), Part(init), Part(next)]);
                }
                components
            }
            Term::Select(tensor, indices) => {
                let mut components = smallvec![Part(tensor)];
                for ix in indices {
                    components.push(Ix(ix));
                }
                components
            }
            Term::Index(ix, _) => smallvec![Ix(ix)],
            Term::PadLeft(k, a) | Term::PadRight(k, a) | Term::TruncLeft(k, a) | Term::TruncRight(k, a) => {
                smallvec![Ix(k), Part(a)]
            }
            Term::Flatten(a) | Term::Split(_, a) | Term::Transpose(a) | Term::Unary(_, a) | Term::Cast(_, a) => {
                smallvec![Part(a)]
            }
            Term::Concat(a, b) | Term::Binary(_, a, b) => smallvec![Part(a), Part(b)],
            Term::Choose(a, b, c) | Term::Fma(a, b, c) => smallvec![Part(a), Part(b), Part(c)],
        };
        components
    }};
}

impl Term {
    /// The terms that this one is made of, in order.
    pub fn parts(&self) -> Vec<TermId> {
        let part = |seen| if let Seen::Part(part) = seen { Some(*part) } else { None };
        components!(self, Seen).into_iter().filter_map(part).collect()
    }

    /// The names that this term binds.
    pub fn binders(&self) -> Vec<Name> {
        let binder = |seen| if let Seen::Binder(name) = seen { Some(*name) } else { None };
        components!(self, Seen).into_iter().filter_map(binder).collect()
    }

    /// The names in this term's own index expressions and its condition.
    pub fn collect_names(&self, names: &mut BTreeSet<Name>) {
        components!(self, Seen).into_iter().for_each(|seen| match seen {
            Seen::Ix(ix) => ix.collect_names(names),
            Seen::Cond(cond) => cond.collect_names(names),
            Seen::Binder(_) | Seen::Part(_) => {}
        });
    }

    /// Whether there is a function, such as a minimum or a quotient, in its own index expressions or its condition.
    pub fn has_functions(&self) -> bool {
        components!(self, Seen).into_iter().any(|seen| match seen {
            Seen::Ix(ix) => ix.has_functions(),
            Seen::Cond(cond) => cond.has_functions(),
            Seen::Binder(_) | Seen::Part(_) => false,
        })
    }

    /// The same term with other components.
    ///
    /// # Errors
    /// What the function says.
    pub fn map<E>(mut self, change: impl FnMut(Component<'_>) -> Result<(), E>) -> Result<Term, E> {
        components!(&mut self, Component).into_iter().try_for_each(change)?;
        Ok(self)
    }

    /// The same term made of other terms.
    pub fn with_parts(self, mut of: impl FnMut(TermId) -> TermId) -> Term {
        let Ok(term) = self.map(|component| {
            if let Component::Part(part) = component {
                *part = of(*part);
            }
            Ok::<(), Infallible>(())
        });
        term
    }

    /// The same term with expressions substituted for indices and sizes.
    ///
    /// # Errors
    /// If a number does not fit in 64 bits.
    pub fn substitute(self, replacement: &impl Fn(Name) -> Option<Ix>) -> Result<Term, IxError> {
        self.map(|component| {
            match component {
                Component::Ix(ix) => *ix = ix.substitute(replacement)?,
                Component::Cond(cond) if !cond.is_always() => *cond = cond.substitute(replacement)?,
                Component::Cond(_) | Component::Binder(_) | Component::Part(_) => {}
            }
            Ok(())
        })
    }
}

/// The terms in some terms: see [`Terms::reachable`].
pub struct Reachable<'a> {
    terms: &'a Terms,
    todo: Vec<TermId>,
    seen: FxHashSet<TermId>,
}

impl Reachable<'_> {
    /// Goes on with another term; what was visited before is not visited again.
    pub fn enter(&mut self, root: TermId) {
        self.todo.push(root);
    }
}

impl Iterator for Reachable<'_> {
    type Item = TermId;

    fn next(&mut self) -> Option<TermId> {
        loop {
            let id = self.todo.pop()?;
            if self.seen.insert(id) {
                self.todo.extend(self.terms.get(id).parts().into_iter().rev());
                return Some(id);
            }
        }
    }
}

/// The names of a term and everything in it.
#[derive(Default)]
pub struct TermNames {
    /// Sizes, indices and tensors from outside.
    pub free: BTreeSet<Name>,
    /// What is bound inside.
    pub bound: BTreeSet<Name>,
}

impl Terms {
    /// Some terms and everything in them, each once: wholes before parts, left before right.
    pub fn reachable(&self, roots: impl IntoIterator<Item = TermId>) -> Reachable<'_> {
        let mut todo: Vec<TermId> = roots.into_iter().collect();
        todo.reverse();
        Reachable { terms: self, todo, seen: FxHashSet::default() }
    }

    /// A term and everything in it, each once and parts first: as in the arena.
    pub fn parts_first(&self, root: TermId) -> Vec<TermId> {
        let mut order: Vec<TermId> = self.reachable([root]).collect();
        order.sort_unstable();
        order
    }

    /// For each term of the arena, whether something holds of it or of a term in it.
    pub fn having(&self, holds: impl Fn(&Term) -> bool) -> Vec<bool> {
        let mut having: Vec<bool> = Vec::with_capacity(self.len());
        for (_, term) in self.iter() {
            having.push(holds(term) || term.parts().iter().any(|part| having[part.index()]));
        }
        having
    }

    /// The names of a term and everything in it.
    pub fn names_of(&self, root: TermId) -> TermNames {
        let TermNames { mut free, mut bound } = TermNames::default();
        for id in self.reachable([root]) {
            let term = self.get(id);
            if let Term::Ref(name, _) = term {
                free.insert(*name);
            }
            bound.extend(term.binders());
            term.collect_names(&mut free);
        }
        free.retain(|name| !bound.contains(name));
        TermNames { free, bound }
    }

    /// Adds copies of another arena's terms and of everything in them, and says where each is here. `change` gets each
    /// term, parts first, with its parts replaced by their copies.
    ///
    /// # Errors
    /// What the function says, or a copy that is ill-typed.
    pub fn copy_from<E: From<TypeError>>(
        &mut self,
        from: &Terms,
        roots: impl IntoIterator<Item = TermId>,
        mut change: impl FnMut(Term) -> Result<Term, E>,
    ) -> Result<FxHashMap<TermId, TermId>, E> {
        let mut order: Vec<TermId> = from.reachable(roots).collect();
        order.sort_unstable();
        let mut copies = FxHashMap::default();
        for id in order {
            let term = change(from.get(id).clone().with_parts(|part| copies[&part]))?;
            copies.insert(id, self.add(term)?);
        }
        Ok(copies)
    }

    /// A term rewritten in its arena. `change` gets the place of each term in it, parts first, and the term with its parts
    /// replaced; it says where the term is that takes its place.
    ///
    /// # Errors
    /// What the function says.
    pub fn rewrite<E>(
        &mut self,
        root: TermId,
        mut change: impl FnMut(&mut Terms, TermId, Term) -> Result<TermId, E>,
    ) -> Result<TermId, E> {
        let mut moved: FxHashMap<TermId, TermId> = FxHashMap::default();
        for id in self.parts_first(root) {
            let term = self.get(id).clone().with_parts(|part| moved[&part]);
            let new = change(self, id, term)?;
            moved.insert(id, new);
        }
        Ok(moved[&root])
    }
}
