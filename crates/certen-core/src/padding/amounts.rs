//! How much of a tensor is padding: amounts are proposed by solving conditions of stores for an index, and disposed by
//! a refutation for each store.
//!
//! A store that happens only where `i <= u` leaves everything after u as padding. A bound that mentions other indices is
//! weakened to the end of their ranges first. What cannot be solved or proved proposes nothing: amounts are never too
//! large, as the paper's pad types are (ATL, Sec. 6.2).

use certen_index::{Cond, Facts, Ix, IxError, KnownOrder, Verdict};
use certen_syntax::Name;

use super::Side;
use super::stores::{Store, Stores};

/// Amounts that are tried for one store.
const MOST_CANDIDATES: usize = 12;

/// An index that runs over the rows of a tensor, and what is known around it.
pub(super) struct Rows<'a> {
    /// The index.
    pub(super) index: Name,
    /// How many rows there are.
    pub(super) size: &'a Ix,
    /// What is known, the ranges of all indices too.
    pub(super) facts: &'a Facts,
    /// The names that an amount must not mention, with the first and last values that they can have.
    pub(super) ranges: &'a [(Name, Ix, Ix)],
}

impl Rows<'_> {
    /// The rows that an amount on a side speaks of.
    pub(super) fn outer(&self, side: Side, amount: &Ix) -> Result<Cond, IxError> {
        let at = Ix::var(self.index);
        match side {
            Side::Left => Cond::lt(&at, amount),
            Side::Right => Cond::le(&self.size.sub(amount)?, &at),
        }
    }

    /// Whether nothing can be stored in the outer rows under these conditions.
    pub(super) fn never_stores(&self, conds: &[Cond], side: Side, amount: &Ix) -> Verdict {
        let Ok(outer) = self.outer(side, amount) else { return Verdict::Unknown };
        let Ok(goal) = outer.not() else { return Verdict::Unknown };
        let mut facts = self.facts.clone();
        conds.iter().for_each(|cond| facts.assume(cond.clone()));
        if facts.prove(&goal) == Verdict::Yes {
            return Verdict::Yes;
        }
        // What has nothing to do with the rows can be contradictory by itself: a sum over nothing, an impossible guard.
        // So everything has to be satisfied together, and a counterexample then has a number for every name.
        let all = facts.conjuncts().iter().cloned().fold(outer, Cond::and);
        all.not().map_or(Verdict::Unknown, |goal| self.facts.prove(&goal))
    }

    /// How many rows on a side are padding for all stores, as far as can be shown; `budget` counts proofs.
    pub(super) fn amount(&self, stores: &Stores, side: Side, budget: &mut usize) -> Ix {
        self.try_amount(stores, side, budget).unwrap_or(Ix::from(0))
    }

    fn try_amount(&self, stores: &Stores, side: Side, budget: &mut usize) -> Result<Ix, IxError> {
        let zero = Ix::from(0);
        let mut least = self.size.clone();
        let ranges: Vec<(Name, Ix, Ix)> = self.ranges.iter().chain(&stores.made).cloned().collect();
        for store in &stores.list {
            if least == zero {
                break;
            }
            let mut best = zero.clone();
            for candidate in self.candidates(store, side, &ranges) {
                let Some(rest) = budget.checked_sub(1) else { return Ok(zero) };
                *budget = rest;
                let better =
                    matches!(self.facts.compare(&candidate, &best), KnownOrder::AtLeast | KnownOrder::Depends(..));
                if better && self.never_stores(&store.conds, side, &candidate) == Verdict::Yes {
                    best = match self.facts.compare(&candidate, &best) {
                        KnownOrder::AtLeast => candidate,
                        _ => best.max_with(&candidate)?,
                    };
                }
            }
            least = least.min_with(&best)?.simplified(self.facts)?;
        }
        Ok(least)
    }

    /// Amounts that the conditions of a store suggest: all rows first.
    fn candidates(&self, store: &Store, side: Side, ranges: &[(Name, Ix, Ix)]) -> Vec<Ix> {
        let narrower = narrowed(store, ranges, self.index);
        let mut found = vec![self.size.clone()];
        let equations: Vec<&Ix> = store.conds.iter().filter_map(|cond| as_equation(cond, self.index)).collect();
        let mut propose = |e: &Ix| {
            for ranges in [ranges, &narrower] {
                if let Ok(Some(amount)) = self.solved(e, side, ranges)
                    && found.len() < MOST_CANDIDATES
                    && !found.contains(&amount)
                {
                    found.push(amount);
                }
            }
        };
        for cond in &store.conds {
            match cond {
                Cond::Ge(e) => {
                    propose(e);
                    // `i == q*m + r` brings the index into conditions on the quotient and the remainder.
                    for equation in &equations {
                        [e.add(equation), e.sub(equation)].into_iter().flatten().for_each(|e| propose(&e));
                    }
                }
                Cond::Eq(e) => {
                    propose(e);
                    if let Ok(e) = e.scale(-1) {
                        propose(&e);
                    }
                }
                Cond::And(_) | Cond::Or(_) => {}
            }
        }
        found
    }

    /// The amount of rows in which `e >= 0` cannot hold.
    fn solved(&self, e: &Ix, side: Side, ranges: &[(Name, Ix, Ix)]) -> Result<Option<Ix>, IxError> {
        let mut e = e.clone();
        // The names that were made last have ranges that mention the others.
        for (name, first, last) in ranges.iter().rev() {
            if *name == self.index || !e.mentions(*name) {
                continue;
            }
            let Some((factor, rest)) = e.factored(*name) else { return Ok(None) };
            let end = match (factor.subtracts_nothing(), factor.scale(-1)?.subtracts_nothing()) {
                (true, _) => last,
                (_, true) => first,
                _ => return Ok(None),
            };
            e = end.mul(&factor)?.add(&rest)?;
        }
        // A quotient is at most u where what is divided is at most k*u + k - 1.
        while e.linear_in(self.index).is_none() {
            let Some((coefficient, inside, divisor, rest)) = e.quotient_with(self.index) else { return Ok(None) };
            e = if coefficient < 0 {
                let most = rest.floor_div(coefficient.checked_neg().ok_or(IxError::Overflow)?)?;
                most.scale(divisor)?.add(&Ix::from(divisor - 1))?.sub(&inside)?
            } else {
                let least = rest.scale(-1)?.ceil_div(coefficient)?;
                inside.sub(&least.scale(divisor)?)?
            };
        }
        let Some((coefficient, rest)) = e.linear_in(self.index) else { return Ok(None) };
        let amount = match side {
            Side::Left if coefficient > 0 => rest.scale(-1)?.ceil_div(coefficient)?,
            Side::Right if coefficient < 0 => {
                let last = rest.floor_div(coefficient.checked_neg().ok_or(IxError::Overflow)?)?;
                self.size.sub(&last)?.sub(&Ix::from(1))?
            }
            _ => return Ok(None),
        };
        let zero = Ix::from(0);
        Ok(Some(amount.max_with(&zero)?.min_with(self.size)?.simplified(self.facts)?))
    }
}

/// The side of an equation that mentions an index, if the condition is one.
fn as_equation(cond: &Cond, index: Name) -> Option<&Ix> {
    match cond {
        Cond::Eq(e) if e.linear_in(index).is_some_and(|(coefficient, _)| coefficient.abs() == 1) => Some(e),
        _ => None,
    }
}

/// The ranges with their ends as the last conditions of a store on each name alone have it.
fn narrowed(store: &Store, ranges: &[(Name, Ix, Ix)], index: Name) -> Vec<(Name, Ix, Ix)> {
    let mut narrower = ranges.to_vec();
    for at in 0..narrower.len() {
        let free = |e: &Ix| !e.mentions(index) && narrower.iter().skip(at).all(|(name, ..)| !e.mentions(*name));
        let bounds = |sign: i64| {
            store.conds.iter().rev().find_map(|cond| match cond {
                Cond::Ge(e) => match e.linear_in(narrower[at].0) {
                    Some((coefficient, rest)) if coefficient == sign && free(&rest) => Some(rest),
                    _ => None,
                },
                _ => None,
            })
        };
        let (least, most) = (bounds(1).and_then(|rest| rest.scale(-1).ok()), bounds(-1));
        let (_, first, last) = &mut narrower[at];
        *first = least.unwrap_or(first.clone());
        *last = most.unwrap_or(last.clone());
    }
    narrower
}
