//! What is the same for many elements is computed once for all of them.
//!
//! `gen i. gen j. (sum k. X[i, k] * Y[j, k]) / sqrt(sum k. Y[j, k] * Y[j, k])` computes the norm of each row of `Y` again for
//! every row of `X`. It becomes a binding of its own, `v = gen j. sqrt(…)`, before the one that reads `v[j]`. Likewise a `let`
//! between two generations, `gen i. let v = sqrt(sum …) in gen j. …`, where each element has a sum of its own: without the
//! `let`, the rest is a contraction.
//!
//! Only what has a reduction in it moves, as much as hangs together by operations of scalars, out of generations around the
//! whole binding. What stands under a condition, in a reduction or in an iteration stays there. No operation
//! changes, nor the order of any two on the way to an element, so every bit stays.
//!
//! Needs: a program that [`Program::check`] accepts. Guarantees: the same values. A read that is only known to be in bounds
//! because the generations that were left have elements is guarded by that.

use std::collections::BTreeSet;

use certen_core::{Binary, Binding, Program, Range, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

/// A value that is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The binding that it was computed in.
    pub binding: Name,
    /// What it is called now.
    pub name: Name,
    /// The indices that it depends on.
    pub over: Vec<Name>,
}

/// So many additions that are saved, for each sum that is made, are worth a tensor.
const SAVED: i64 = 64;

/// How many iterations a loop is taken to have whose length is not known.
const UNKNOWN: i64 = 64;

/// Larger expressions stay as they are: to look at all of their parts would take long.
const MOST_TERMS: usize = 400;

/// More values of one binding are not kept.
const MOST_KEPT: usize = 16;

/// Keeps what is computed again and again; what was kept, if anything.
pub fn computed_once(program: &mut Program) -> Vec<Kept> {
    let mut taken = program.names();
    let mut kept = Vec::new();
    let mut bindings = Vec::with_capacity(program.bindings.len());
    for binding in std::mem::take(&mut program.bindings) {
        let mut place = Place { terms: &mut program.terms, taken: &mut taken, found: Vec::new() };
        // An expression that does not fit in 64 bits stays where it is.
        let term = place.binding(binding.term).unwrap_or(binding.term);
        let found = if term == binding.term { Vec::new() } else { place.found };
        for (name, term, over) in found {
            bindings.push(Binding { name, term });
            kept.push(Kept { binding: binding.name, name, over });
        }
        bindings.push(Binding { term, ..binding });
    }
    program.bindings = bindings;
    kept
}

/// Where a value is looked for: one binding.
struct Place<'a> {
    terms: &'a mut Terms,
    taken: &'a mut std::collections::HashSet<Name>,
    found: Vec<(Name, TermId, Vec<Name>)>,
}

/// Generations around a scalar, outermost first, and the scalars that are named between them.
struct Chain {
    loops: Vec<(Name, Range)>,
    /// The name, its value, and how many generations are around it.
    lets: Vec<(Name, TermId, usize)>,
    body: TermId,
}

impl Chain {
    fn of(terms: &Terms, root: TermId) -> Option<Chain> {
        let mut chain = Chain { loops: Vec::new(), lets: Vec::new(), body: root };
        loop {
            match terms.get(chain.body) {
                Term::Gen(index, range, body) => {
                    let depends =
                        chain.loops.iter().any(|(outer, _)| range.lo.mentions(*outer) || range.hi.mentions(*outer));
                    if depends || range.lo.as_constant() != Some(0) {
                        return None;
                    }
                    chain.loops.push((*index, range.clone()));
                    chain.body = *body;
                }
                Term::Let(name, value, body) if terms.ty(*value).is_scalar() && !terms.ty(*body).is_scalar() => {
                    chain.lets.push((*name, *value, chain.loops.len()));
                    chain.body = *body;
                }
                _ => return (chain.loops.len() >= 2 && terms.ty(chain.body).is_scalar()).then_some(chain),
            }
        }
    }
}

impl Place<'_> {
    /// The term of a binding without what is kept.
    fn binding(&mut self, root: TermId) -> Result<TermId, TypeError> {
        let Some(chain) = Chain::of(self.terms, root) else { return Ok(root) };
        if self.terms.reachable([root]).nth(MOST_TERMS).is_some() {
            return Ok(root);
        }
        // The generations that each name depends on.
        let mut names: FxHashMap<Name, BTreeSet<usize>> = FxHashMap::default();
        names.extend(chain.loops.iter().enumerate().map(|(at, (index, _))| (*index, BTreeSet::from([at]))));
        let mut lets = Vec::new();
        for (name, value, depth) in &chain.lets {
            let of = self.depends(*value, &names);
            lets.push((*name, *value, *depth));
            names.insert(*name, of);
        }
        let mut values = Vec::new();
        let whole = self.repeated(&chain, chain.body, &names, &mut values);
        if values.is_empty() && !(whole && lets.iter().any(|(_, value, _)| self.has_sum(*value))) {
            return Ok(root);
        }
        if values.len() + lets.len() > MOST_KEPT {
            return Ok(root);
        }
        let mut replaced: FxHashMap<TermId, TermId> = FxHashMap::default();
        for (name, value, depth) in lets {
            let own = self.kept((&chain, depth), name, value, &names, &replaced)?;
            let scalar = self.terms.ty(value).clone();
            replaced.insert(self.terms.reference(name, scalar)?, own);
        }
        let mut done: FxHashMap<TermId, TermId> = FxHashMap::default();
        for value in values {
            let fresh = Name::fresh("v", |name| self.taken.contains(&name));
            self.taken.insert(fresh);
            let depth = chain.loops.len();
            let own = self.kept((&chain, depth), fresh, value, &names, &replaced)?;
            done.insert(value, own);
        }
        replaced.extend(done);
        let dropped: FxHashSet<Name> = self.found.iter().map(|(name, ..)| *name).collect();
        self.terms.rewrite(root, |terms, id, term| match (replaced.get(&id), &term) {
            (Some(own), _) => Ok(*own),
            (None, Term::Let(name, _, body)) if dropped.contains(name) => Ok(*body),
            _ => terms.add(term),
        })
    }

    /// The generations that a value depends on. Nothing but them and scalars is bound around it.
    fn depends(&self, value: TermId, names: &FxHashMap<Name, BTreeSet<usize>>) -> BTreeSet<usize> {
        let free = self.terms.names_of(value).free;
        free.iter().filter_map(|name| names.get(name)).flatten().copied().collect()
    }

    fn has_sum(&self, value: TermId) -> bool {
        self.terms.reachable([value]).any(|id| matches!(self.terms.get(id), Term::Reduce(..)))
    }

    /// Finds the largest parts of a value that are computed again and again; whether each element has a sum of its own.
    fn repeated(
        &self,
        chain: &Chain,
        body: TermId,
        names: &FxHashMap<Name, BTreeSet<usize>>,
        values: &mut Vec<TermId>,
    ) -> bool {
        let (mut open, mut whole, mut seen) = (vec![body], false, FxHashSet::default());
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            let term = self.terms.get(id);
            if !self.has_sum(id) {
                continue;
            }
            let of = self.depends(id, names);
            if of.len() < chain.loops.len() {
                if !of.is_empty() && self.pays(chain, id, &of) {
                    values.push(id);
                }
                continue;
            }
            match term {
                Term::Reduce(..) => whole = true,
                Term::Unary(..) | Term::Binary(..) | Term::Choose(..) | Term::Fma(..) | Term::Cast(..) => {
                    open.extend(term.parts().into_iter().rev());
                }
                _ => {}
            }
        }
        whole
    }

    /// Whether so much is saved that a tensor is worth it.
    fn pays(&self, chain: &Chain, value: TermId, of: &BTreeSet<usize>) -> bool {
        let size = |range: &Range| match (range.lo.as_constant(), range.hi.as_constant()) {
            (Some(lo), Some(hi)) => hi.saturating_sub(lo),
            _ => UNKNOWN,
        };
        let left = chain.loops.iter().enumerate().filter(|(at, _)| !of.contains(at));
        let times = left.fold(1i64, |times, (_, (_, range))| times.saturating_mul(size(range)));
        let additions = self.terms.reachable([value]).map(|id| match self.terms.get(id) {
            Term::Reduce(_, _, range, ..) => size(range),
            _ => 0,
        });
        times.saturating_sub(1).saturating_mul(additions.fold(0, i64::saturating_add)) >= SAVED
    }

    /// Binds a value for all indices that it depends on, and says what reads it. So many of the generations are around it.
    fn kept(
        &mut self,
        (chain, depth): (&Chain, usize),
        name: Name,
        mut value: TermId,
        names: &FxHashMap<Name, BTreeSet<usize>>,
        replaced: &FxHashMap<TermId, TermId>,
    ) -> Result<TermId, TypeError> {
        let of = self.depends(value, names);
        let (over, left): (Vec<_>, Vec<_>) = chain.loops.iter().enumerate().partition(|(at, _)| of.contains(at));
        let over: Vec<&(Name, Range)> = over.into_iter().map(|(_, one)| one).collect();
        // Where a generation that reads it has no elements, nothing does.
        if let Term::Guard(cond, inner) = self.terms.get(value) {
            let is_empty = |range: &Range| Cond::lt(&range.lo, &range.hi).is_ok_and(|some| some == *cond);
            if left.iter().any(|(_, (_, range))| is_empty(range)) && self.is_safe(&self.facts(&over)?, *inner)? {
                value = *inner;
            }
        }
        let left: Vec<&Range> = left.into_iter().filter(|(at, _)| *at < depth).map(|(_, (_, range))| range).collect();
        let guard = match left.is_empty() || self.is_safe(&self.facts(&over)?, value)? {
            true => Cond::always(),
            false => left
                .iter()
                .try_fold(Cond::always(), |all, range| Ok::<Cond, IxError>(all.and(Cond::lt(&range.lo, &range.hi)?)))?,
        };
        let mut term = self.terms.rewrite(value, |terms, id, term| match replaced.get(&id) {
            Some(own) => Ok(*own),
            None => terms.add(term),
        })?;
        if !guard.is_always() {
            term = self.terms.add(Term::Guard(guard, term))?;
        }
        for (index, range) in over.iter().rev() {
            term = self.terms.add(Term::Gen(*index, range.clone(), term))?;
        }
        let indices: Vec<Name> = over.iter().map(|(index, _)| *index).collect();
        let at: Vec<Ix> = indices.iter().map(|index| Ix::var(*index)).collect();
        self.found.push((name, term, indices));
        let ty = self.terms.ty(term).clone();
        self.terms.element(name, ty, at)
    }

    /// What is known inside generations.
    fn facts(&self, over: &[&(Name, Range)]) -> Result<Facts, IxError> {
        let mut facts = self.terms.facts().clone();
        for (index, range) in over {
            let i = Ix::var(*index);
            facts.assume(Cond::le(&range.lo, &i)?.and(Cond::lt(&i, &range.hi)?));
        }
        Ok(facts)
    }

    /// Whether all reads of a value are in bounds, no integer is divided, and no extreme is one of nothing, where these facts hold.
    fn is_safe(&self, facts: &Facts, value: TermId) -> Result<bool, IxError> {
        let mut open = vec![(value, facts.clone())];
        let mut looks = MOST_TERMS;
        while let Some((id, facts)) = open.pop() {
            looks -= 1;
            let shown = |cond: Cond| facts.prove(&cond) == Verdict::Yes;
            match self.terms.get(id) {
                _ if looks == 0 => return Ok(false),
                Term::Literal(..) | Term::Index(..) => {}
                Term::Ref(_, ty) if ty.is_scalar() => {}
                Term::Select(tensor, indices) if matches!(self.terms.get(*tensor), Term::Ref(..)) => {
                    for (ix, size) in indices.iter().zip(self.terms.ty(*tensor).shape.iter()) {
                        if !shown(Cond::le(&Ix::from(0), ix)?) || !shown(Cond::lt(ix, size)?) {
                            return Ok(false);
                        }
                    }
                }
                Term::Reduce(op, index, range, cond, body) => {
                    if op.identity(self.terms.ty(*body).elem).is_none() {
                        return Ok(false);
                    }
                    let (i, mut inside) = (Ix::var(*index), facts);
                    inside.assume(Cond::le(&range.lo, &i)?.and(Cond::lt(&i, &range.hi)?).and(cond.clone()));
                    open.push((*body, inside));
                }
                // Integers are not divided by 0 where nothing asks for it.
                Term::Binary(Binary::Div | Binary::ControlledDiv | Binary::FloorDiv | Binary::Mod, a, _)
                    if !self.terms.ty(*a).elem.is_float() =>
                {
                    return Ok(false);
                }
                Term::Unary(_, a) | Term::Cast(_, a) => open.push((*a, facts)),
                term @ (Term::Binary(..) | Term::Choose(..) | Term::Fma(..)) => {
                    open.extend(term.parts().into_iter().map(|part| (part, facts.clone())));
                }
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}
