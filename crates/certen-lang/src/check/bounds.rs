//! Bound inference: `find-shapes` (SaC, Sec. 5.2).
//!
//! A body is evaluated once with its indices unbounded (`probing`), which lists its accesses. An access whose index is
//! affine in an index of the pattern, `a*i + r` with `a` a number, bounds that index: `a*i + r < size` if `a > 0`, and
//! `0 <= a*i + r` if `a < 0`. Indices that are bound further in, and indices of the pattern whose range is known, stand
//! at the end of their range that asks for most.
//!
//! Where a type states the size, it is the bound, unless accesses outside of conditions go on beyond it: then the type is
//! not that of the body. Without a type, accesses under an `if` or `guard` count only where there are no others: the
//! largest bound is taken that keeps all inside where their conditions hold. In `if i < n-1 { x[i+1] } else { x[i] }` that
//! is n.
//!
//! The paper takes the minimum of all candidates. Here the smallest must be the same one for all sizes: a minimum that
//! the reader does not see hides sizes that should agree and do not.

use std::collections::{BTreeSet, HashMap};

use certen_index::{Cond, Facts, Ix, KnownOrder, Verdict};
use certen_syntax::{Name, Span};

use super::access::extreme;
use super::index::{affine, within};
use super::scope::Access;
use crate::ast::{self, ExprKind, Selector};

/// What is found for an index.
pub(super) enum Upper {
    /// Nothing speaks of it.
    Nothing,
    /// It must be below this.
    Is(Ix),
    /// It is below what the shape of the result states.
    Stated(Ix),
    /// Two candidates, neither of which is the smaller one for all sizes.
    Unclear(Box<[(Ix, Span); 2]>, KnownOrder),
}

/// What an access asks of an index.
struct Candidate<'a> {
    size: Ix,
    access: &'a Access,
    /// Whether a larger index selects further on.
    rises: bool,
}

/// Finds upper bounds for indices.
pub(super) struct FindShapes<'a> {
    pub facts: &'a Facts,
    pub accesses: &'a [Access],
    /// How many conditions stand around the whole comprehension.
    pub guards: usize,
    /// Indices further out whose ranges are not known yet.
    pub open: &'a [Name],
    /// The indices of the pattern whose ranges are known.
    pub known: Vec<(Name, Ix, Ix)>,
    /// Upper bounds that the shape of the result states.
    pub stated: HashMap<Name, Ix>,
    /// The sizes of the function.
    pub sizes: &'a [Name],
    /// Whether the bounds make the shape; else they have to stay inside what is stated.
    pub shapes: bool,
}

impl FindShapes<'_> {
    /// Upper bounds for the indices of a pattern that have none.
    pub fn all(mut self, wanted: &[Name]) -> Vec<(Name, Upper)> {
        let mut found: Vec<(Name, Upper)> = Vec::new();
        let mut left: Vec<Name> = wanted.to_vec();
        loop {
            let before = left.len();
            for name in left.clone() {
                let upper = self.one(name, &left);
                match &upper {
                    Upper::Nothing => continue,
                    Upper::Is(size) | Upper::Stated(size) => self.known.push((name, Ix::from(0), size.clone())),
                    Upper::Unclear(candidates, _) => self.known.push((name, Ix::from(0), candidates[0].0.clone())),
                }
                found.push((name, upper));
                left.retain(|other| *other != name);
            }
            if left.len() == before {
                // What all of them together leave open, the shape says.
                let Some(stated) = Some(self.take_stated(&mut left)).filter(|stated| !stated.is_empty()) else { break };
                found.extend(stated.into_iter().map(|(name, size)| (name, Upper::Stated(size))));
            }
        }
        found.extend(left.into_iter().map(|name| (name, Upper::Nothing)));
        found
    }

    /// The indices that are left and whose bound is stated.
    fn take_stated(&mut self, left: &mut Vec<Name>) -> Vec<(Name, Ix)> {
        let (stated, others): (Vec<Name>, Vec<Name>) = left.iter().partition(|name| self.stated.contains_key(name));
        *left = others;
        let stated: Vec<(Name, Ix)> = stated.into_iter().map(|name| (name, self.stated[&name].clone())).collect();
        self.known.extend(stated.iter().map(|(name, size)| (*name, Ix::from(0), size.clone())));
        stated
    }

    fn one(&self, name: Name, unknown: &[Name]) -> Upper {
        let stated = self.stated.get(&name);
        let guarded = |access: &&Access| access.guards > self.guards;
        let mut all = self.candidates(name, unknown, |access| !guarded(access));
        let conditional = all.is_empty() && stated.is_none();
        if conditional {
            all = self.candidates(name, unknown, guarded);
        }
        match stated.filter(|_| self.shapes) {
            // What depends on an index further out is no size of an element.
            Some(stated) => all.retain(|candidate| self.is_of_sizes(&candidate.size, stated)),
            // What depends on an index whose range is not known yet says less than what does not.
            None if all.iter().any(|candidate| !self.is_open(&candidate.size)) => {
                all.retain(|candidate| !self.is_open(&candidate.size));
            }
            None => {}
        }
        if conditional {
            return self.by_conditions(name, &all);
        }
        let found = self.smallest(&all);
        let Some(stated) = stated else { return found };
        let below_all = || all.iter().all(|candidate| self.at_most(stated, &candidate.size));
        let takes_stated = match &found {
            // Where the selections end earlier, the one that does is refused; where all go on, the type is not theirs.
            Upper::Is(size) if self.shapes => self.facts.compare(size, stated) == KnownOrder::AtMost,
            Upper::Is(_) | Upper::Unclear(..) => below_all(),
            Upper::Nothing | Upper::Stated(_) => false,
        };
        if takes_stated { Upper::Stated(stated.clone()) } else { found }
    }

    fn candidates(&self, name: Name, unknown: &[Name], counts: impl Fn(&&Access) -> bool) -> Vec<Candidate<'_>> {
        self.accesses.iter().filter(counts).filter_map(|access| self.candidate(access, name, unknown)).collect()
    }

    /// Of accesses under conditions: the largest bound that keeps all of them inside, among those that they ask for; if
    /// there is none, the smallest. What the conditions keep inside by themselves asks for nothing; where that is so of
    /// all, they say something only if they agree.
    fn by_conditions(&self, name: Name, all: &[Candidate<'_>]) -> Upper {
        let asking: Vec<&Candidate<'_>> =
            all.iter().filter(|candidate| !self.is_inside(candidate, name, None)).collect();
        if asking.is_empty() && all.iter().any(|candidate| candidate.size != all[0].size) {
            return Upper::Nothing;
        }
        let mut tried: Vec<&Ix> = Vec::new();
        let mut largest: Option<&Ix> = None;
        for Candidate { size, .. } in &asking {
            if tried.contains(&size) || largest.is_some_and(|largest| self.at_most(size, largest)) {
                continue;
            }
            tried.push(size);
            if asking.iter().all(|candidate| self.is_inside(candidate, name, Some(size))) {
                largest = Some(size);
            }
        }
        largest.map_or_else(|| self.smallest(all), |size| Upper::Is(size.clone()))
    }

    /// Whether an access stays inside by what holds where it stands, at the end that its index moves towards.
    fn is_inside(&self, candidate: &Candidate<'_>, name: Name, below: Option<&Ix>) -> bool {
        let access = candidate.access;
        let mut facts = access.facts.as_deref().unwrap_or(self.facts).clone();
        let known = self.known.iter().flat_map(|(name, lower, upper)| within(&Ix::var(*name), lower, upper));
        let below = below.into_iter().flat_map(|below| Cond::lt(&Ix::var(name), below));
        known.chain(below).for_each(|fact| facts.assume(fact));
        let goal = match candidate.rises {
            true => Cond::lt(&access.index, &access.size),
            false => Cond::le(&Ix::from(0), &access.index),
        };
        goal.is_ok_and(|goal| facts.prove(&goal) == Verdict::Yes)
    }

    fn at_most(&self, a: &Ix, b: &Ix) -> bool {
        matches!(self.facts.compare(a, b), KnownOrder::Equal | KnownOrder::AtMost)
    }

    fn is_open(&self, size: &Ix) -> bool {
        self.open.iter().any(|open| size.mentions(*open))
    }

    /// Whether an expression speaks of nothing but sizes, and of what a stated size speaks of.
    fn is_of_sizes(&self, e: &Ix, stated: &Ix) -> bool {
        let mut names = BTreeSet::new();
        e.collect_names(&mut names);
        names.iter().all(|name| self.sizes.contains(name) || stated.mentions(*name))
    }

    fn smallest(&self, candidates: &[Candidate<'_>]) -> Upper {
        let mut best: Option<&Candidate<'_>> = None;
        for next in candidates {
            best = Some(match best {
                None => next,
                Some(best) => match self.facts.compare(&best.size, &next.size) {
                    KnownOrder::Equal | KnownOrder::AtMost => best,
                    KnownOrder::AtLeast => next,
                    order => {
                        let both = [best, next].map(|one| (one.size.clone(), one.access.span));
                        return Upper::Unclear(Box::new(both), order);
                    }
                },
            });
        }
        best.map_or(Upper::Nothing, |best| Upper::Is(best.size.clone()))
    }

    /// What an access asks of an index.
    fn candidate<'c>(&self, access: &'c Access, name: Name, unknown: &[Name]) -> Option<Candidate<'c>> {
        let candidate = |size, rises| Some(Candidate { size, access, rises });
        let others = |largest: bool| -> Option<Ix> {
            let mut e = access.index.clone();
            for (inner, lower, upper) in access.ranges.iter().rev().chain(self.known.iter().rev()) {
                if e.mentions(*inner) {
                    e = extreme(&e, *inner, lower, upper, largest)?;
                }
            }
            Some(e)
        };
        for largest in [true, false] {
            let Some((coefficient, rest)) = others(largest).and_then(|e| affine(&e, name)) else { continue };
            if unknown.iter().any(|other| rest.mentions(*other) || access.size.mentions(*other)) {
                continue;
            }
            if largest && coefficient > 0 {
                return candidate(access.size.sub(&rest).ok()?.ceil_div(coefficient).ok()?, true);
            }
            if !largest && coefficient < 0 {
                return candidate(rest.floor_div(coefficient.checked_neg()?).ok()?.add(&Ix::from(1)).ok()?, false);
            }
        }
        None
    }
}

/// The selections of an expression in which a name stands alone between the brackets, with all that stands there.
pub(super) fn selections_with<'a>(e: &'a ast::Expr, name: Name, found: &mut Vec<(&'a ast::Expr, &'a [Selector])>) {
    let mut todo = vec![e];
    while let Some(e) = todo.pop() {
        if let ExprKind::Select(base, selectors) = &e.kind {
            let alone = |selector: &Selector| matches!(selector, Selector::At(ast::Expr { kind: ExprKind::Name(n), .. }) if *n == name);
            if selectors.iter().any(alone) {
                found.push((base, selectors));
            }
        }
        e.parts(&mut todo);
    }
}
