//! Bound inference: `find-shapes` (SaC, Sec. 5.2).
//!
//! A body is evaluated once with its indices unbounded (`probing`), which lists its accesses. An access whose index is
//! affine in an index of the pattern, `a*i + r` with `a` a number, bounds that index: `a*i + r < size` if `a > 0`, and
//! `0 <= a*i + r` if `a < 0`. Indices that are bound further in, and indices of the pattern whose range is known, stand
//! at the end of their range that asks for most. Accesses under an `if` or `guard` count only where there are no
//! others.
//!
//! The paper takes the minimum of all candidates. Here the smallest must be the same one for all sizes: a minimum that
//! the reader does not see hides sizes that should agree and do not.

use certen_index::{Facts, Ix, KnownOrder};
use certen_syntax::{Name, Span};

use super::access::extreme;
use super::index::affine;
use super::scope::Access;
use crate::ast::{self, ExprKind, Selector};

/// What is found for an index.
pub(super) enum Upper {
    /// Nothing speaks of it.
    Nothing,
    /// It must be below this.
    Is(Ix),
    /// Two candidates, neither of which is the smaller one for all sizes.
    Unclear(Box<[(Ix, Span); 2]>, KnownOrder),
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
                    Upper::Is(size) => self.known.push((name, Ix::from(0), size.clone())),
                    Upper::Unclear(candidates, _) => self.known.push((name, Ix::from(0), candidates[0].0.clone())),
                }
                found.push((name, upper));
                left.retain(|other| *other != name);
            }
            if left.len() == before {
                break;
            }
        }
        found.extend(left.into_iter().map(|name| (name, Upper::Nothing)));
        found
    }

    fn one(&self, name: Name, unknown: &[Name]) -> Upper {
        let candidates = |guarded: bool| -> Vec<(Ix, Span)> {
            let accesses = self.accesses.iter().filter(|access| (access.guards > self.guards) == guarded);
            accesses.filter_map(|access| Some((self.candidate(access, name, unknown)?, access.span))).collect()
        };
        let mut all = candidates(false);
        if all.is_empty() {
            all = candidates(true);
        }
        // What depends on an index whose range is not known yet says less than what does not.
        if all.iter().any(|(size, _)| !self.open.iter().any(|open| size.mentions(*open))) {
            all.retain(|(size, _)| !self.open.iter().any(|open| size.mentions(*open)));
        }
        let mut best: Option<(Ix, Span)> = None;
        for (size, span) in all {
            best = Some(match best {
                None => (size, span),
                Some(best) => match self.facts.compare(&best.0, &size) {
                    KnownOrder::Equal | KnownOrder::AtMost => best,
                    KnownOrder::AtLeast => (size, span),
                    order => return Upper::Unclear(Box::new([best, (size, span)]), order),
                },
            });
        }
        best.map_or(Upper::Nothing, |(size, _)| Upper::Is(size))
    }

    /// What an access asks of an index.
    fn candidate(&self, access: &Access, name: Name, unknown: &[Name]) -> Option<Ix> {
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
                return access.size.sub(&rest).ok()?.ceil_div(coefficient).ok();
            }
            if !largest && coefficient < 0 {
                return rest.floor_div(coefficient.checked_neg()?).ok()?.add(&Ix::from(1)).ok();
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
