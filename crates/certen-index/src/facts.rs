//! What is known about sizes in a scope, and questions about all integers that satisfy it.
//!
//! A first, thin prover: interval bounds of names, equalities between names, and one fact at a time. It is sound (a
//! "yes" holds for all integers that satisfy the facts, a "no" carries integers that satisfy the facts and violate the
//! goal) and makes a bounded number of steps, counted, so that its answers are the same everywhere.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use certen_syntax::Name;

use crate::ix::{Atom, Mono};
use crate::{Cond, Ix};

/// Integers, one for each name, that satisfy the facts but not the goal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counterexample(pub BTreeMap<Name, i64>);

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        f.write_str(&values.join(", "))
    }
}

/// The answer to "does this hold for all integers that satisfy the facts?".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does.
    Yes,
    /// It does not: here. Names that have nothing to do with the goal are left out; facts about those alone are taken
    /// to be satisfiable ([`Facts::satisfiable`] asks).
    No(Counterexample),
    /// Cannot tell.
    Unknown,
}

/// A conjunction of facts.
///
/// ```
/// use certen_index::{Cond, Facts, Ix, Verdict};
/// let mut facts = Facts::new();
/// facts.assume(Cond::le(&Ix::from(2), &Ix::var("k"))?);
/// assert_eq!(facts.prove(&Cond::le(&Ix::from(1), &Ix::var("k"))?), Verdict::Yes);
/// assert!(matches!(facts.prove(&Cond::le(&Ix::from(3), &Ix::var("k"))?), Verdict::No(_)));
/// # Ok::<(), certen_index::IxError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Facts {
    conjuncts: Vec<Cond>,
    /// Which conjuncts mention a name.
    by_name: BTreeMap<Name, Vec<usize>>,
    /// Whether `false` is among the facts.
    contradiction: bool,
    bounds: BTreeMap<Name, Bounds>,
    /// Names that equal an expression without that name.
    equal: BTreeMap<Name, Ix>,
    /// Facts `e >= 0` over several names, used one at a time.
    at_least_zero: Vec<Ix>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bounds {
    low: Option<i64>,
    high: Option<i64>,
}

/// How many conditions a search for a counterexample evaluates.
const SEARCH_STEPS: usize = 200_000;

/// With more names than this, a search tries only the smallest values.
const SEARCHED_NAMES: usize = 24;

/// How many equalities and facts over several names are used; more would make questions slow, not wrong.
const USED_FACTS: usize = 256;

impl Facts {
    /// Nothing is known.
    pub fn new() -> Facts {
        Facts::default()
    }

    /// Adds a fact.
    pub fn assume(&mut self, fact: Cond) {
        match &fact {
            Cond::And(all) => return all.clone().into_iter().for_each(|c| self.assume(c)),
            Cond::Ge(e) => self.learn_at_least_zero(e),
            Cond::Eq(e) => {
                self.learn_at_least_zero(e);
                if let Ok(negated) = e.scale(-1) {
                    self.learn_at_least_zero(&negated);
                }
                self.learn_equal(e);
            }
            Cond::Or(_) => {}
        }
        let mut names = BTreeSet::new();
        fact.collect_names(&mut names);
        if fact.is_never() {
            self.contradiction = true;
        }
        for name in names {
            self.by_name.entry(name).or_default().push(self.conjuncts.len());
        }
        self.conjuncts.push(fact);
    }

    /// The facts, as they were assumed.
    pub fn conjuncts(&self) -> &[Cond] {
        &self.conjuncts
    }

    /// `c·x + constant >= 0` bounds x; anything over several names is kept as it is.
    fn learn_at_least_zero(&mut self, e: &Ix) {
        if let Some(reduced) = self.reduce(e).filter(|reduced| reduced != e) {
            self.learn_at_least_zero(&reduced);
        }
        let [(mono, coefficient)] = e.terms() else {
            if self.at_least_zero.len() < USED_FACTS {
                self.at_least_zero.push(e.clone());
            }
            return;
        };
        let ([Atom::Var(name)], Some(negated)) = (mono.as_slice(), e.constant_part().checked_neg()) else {
            if self.at_least_zero.len() < USED_FACTS {
                self.at_least_zero.push(e.clone());
            }
            return;
        };
        let bounds = self.bounds.entry(*name).or_default();
        if *coefficient > 0 {
            let low = ceil_div(negated, *coefficient);
            bounds.low = Some(bounds.low.map_or(low, |old| old.max(low)));
        } else {
            let high = e.constant_part().div_euclid(-coefficient);
            bounds.high = Some(bounds.high.map_or(high, |old| old.min(high)));
        }
    }

    /// `x - e == 0` lets every later question replace x by e.
    fn learn_equal(&mut self, e: &Ix) {
        let Some(e) = self.reduce(e).filter(|_| self.equal.len() < USED_FACTS) else { return };
        for (mono, coefficient) in e.terms().iter().rev() {
            let [Atom::Var(name)] = mono.as_slice() else { continue };
            if coefficient.abs() != 1 {
                continue;
            }
            let Ok(solution) = e.scale(*coefficient).and_then(|e| Ix::var(*name).sub(&e)) else { continue };
            if solution.mentions(*name) {
                continue;
            }
            let replace = |n: Name| (n == *name).then(|| solution.clone());
            let Ok(updated) = self
                .equal
                .iter()
                .map(|(n, old)| Ok((*n, old.substitute(&replace)?)))
                .collect::<Result<BTreeMap<_, _>, crate::IxError>>()
            else {
                continue;
            };
            self.equal = updated;
            self.equal.insert(*name, solution);
            self.learn_replaced();
            return;
        }
    }

    /// What is known of names that equalities replace is known of what replaces them.
    fn learn_replaced(&mut self) {
        for (name, solution) in self.equal.clone() {
            let Bounds { low, high } = self.bounds.get(&name).copied().unwrap_or_default();
            let above = low.and_then(|low| solution.sub(&Ix::from(low)).ok());
            let below = high.and_then(|high| Ix::from(high).sub(&solution).ok());
            above.into_iter().chain(below).for_each(|fact| self.learn_at_least_zero(&fact));
        }
    }

    /// The expression with equal names replaced by one of them.
    fn reduce(&self, e: &Ix) -> Option<Ix> {
        if self.equal.is_empty() {
            return Some(e.clone());
        }
        e.substitute(&|name| self.equal.get(&name).cloned()).ok()
    }

    /// Whether the goal holds for all integers that satisfy the facts.
    pub fn prove(&self, goal: &Cond) -> Verdict {
        if self.contradiction || self.entails(goal) {
            return Verdict::Yes;
        }
        match goal.not().ok().and_then(|opposite| self.find(&opposite)) {
            // A goal without names is false everywhere: no integers to show.
            Some(_) if goal.is_never() => Verdict::No(Counterexample::default()),
            Some(counterexample) => Verdict::No(counterexample),
            None => Verdict::Unknown,
        }
    }

    /// Whether two expressions are equal for all integers that satisfy the facts.
    pub fn prove_equal(&self, a: &Ix, b: &Ix) -> Verdict {
        if a == b {
            return Verdict::Yes;
        }
        Cond::eq(a, b).map_or(Verdict::Unknown, |goal| self.prove(&goal))
    }

    /// Whether any integers satisfy the facts: yes, no (with nothing to show), or cannot tell.
    pub fn satisfiable(&self) -> Verdict {
        let empty = |b: &Bounds| matches!((b.low, b.high), (Some(low), Some(high)) if low > high);
        let refuted = |c: &Cond| c.not().is_ok_and(|opposite| self.entails(&opposite));
        if self.contradiction || self.bounds.values().any(empty) || self.conjuncts.iter().take(USED_FACTS).any(refuted)
        {
            return Verdict::No(Counterexample::default());
        }
        if self.find(&Cond::always()).is_some() { Verdict::Yes } else { Verdict::Unknown }
    }

    fn entails(&self, goal: &Cond) -> bool {
        match goal {
            Cond::Ge(e) => self.reduce(e).is_some_and(|e| self.is_at_least_zero(&e)),
            Cond::Eq(e) => self.reduce(e).is_some_and(|e| {
                e.as_constant() == Some(0)
                    || (self.is_at_least_zero(&e) && e.scale(-1).is_ok_and(|e| self.is_at_least_zero(&e)))
            }),
            Cond::And(all) => all.iter().all(|c| self.entails(c)),
            Cond::Or(any) => any.iter().any(|c| self.entails(c)) || self.conjuncts.contains(goal),
        }
    }

    fn is_at_least_zero(&self, e: &Ix) -> bool {
        let by_intervals = |e: &Ix| self.minimum(e).is_some_and(|low| low >= 0);
        // With n = m - 1, `m - 3` follows from `n >= 2` by the fact `m - n - 1 >= 0` as it stands.
        let by_fact = |fact: &Ix| e.sub(fact).is_ok_and(|rest| by_intervals(&rest));
        let by_reduced = |fact: &Ix| self.reduce(fact).is_some_and(|fact| by_fact(&fact));
        by_intervals(e)
            || self.at_least_zero.iter().any(|fact| by_fact(fact) || by_reduced(fact))
            || self.smaller(e).iter().any(|e| self.is_at_least_zero(e))
    }

    /// Expressions that are at most as large: a maximum that is added is at least each of its parts, and a minimum that
    /// is subtracted is at most each of them. One of them is replaced at a time, unless they are too many to try.
    fn smaller(&self, e: &Ix) -> Vec<Ix> {
        let replaceable: Vec<(&Mono, i64, &[Ix])> = e
            .terms()
            .iter()
            .filter_map(|(mono, coefficient)| match (mono.as_slice(), coefficient) {
                ([Atom::Max(parts)], 1..) | ([Atom::Min(parts)], ..0) => Some((mono, *coefficient, &**parts)),
                _ => None,
            })
            .collect();
        let Some(&(mono, coefficient, parts)) = replaceable.first().filter(|_| replaceable.len() <= 6) else {
            return Vec::new();
        };
        let replaced = |part: &Ix| {
            let without = e.sub(&Ix::monomial(mono, coefficient)).ok()?;
            without.add(&part.scale(coefficient).ok()?).ok()
        };
        parts.iter().filter_map(replaced).collect()
    }

    /// A lower bound of an expression, from the bounds of its atoms.
    fn minimum(&self, e: &Ix) -> Option<i64> {
        e.terms().iter().try_fold(e.constant_part(), |sum, (mono, coefficient)| {
            let bound = if *coefficient > 0 { self.mono_low(mono)? } else { self.mono_high(mono)? };
            sum.checked_add(coefficient.checked_mul(bound)?)
        })
    }

    fn maximum(&self, e: &Ix) -> Option<i64> {
        self.minimum(&e.scale(-1).ok()?)?.checked_neg()
    }

    fn mono_low(&self, mono: &Mono) -> Option<i64> {
        match mono.as_slice() {
            [one] => self.atom_low(one),
            // Of factors that are not negative, the least product is that of the least factors.
            several => several
                .iter()
                .try_fold(1i64, |product, atom| product.checked_mul(self.atom_low(atom).filter(|&low| low >= 0)?)),
        }
    }

    fn mono_high(&self, mono: &Mono) -> Option<i64> {
        match mono.as_slice() {
            [one] => self.atom_high(one),
            _ => None,
        }
    }

    fn atom_low(&self, atom: &Atom) -> Option<i64> {
        match atom {
            Atom::Var(name) => self.bounds.get(name)?.low,
            Atom::FloorDiv(e, divisor) => Some(self.minimum(e)?.div_euclid(*divisor)),
            Atom::Min(es) => es.iter().map(|e| self.minimum(e)).collect::<Option<Vec<_>>>()?.into_iter().min(),
            Atom::Max(es) => es.iter().filter_map(|e| self.minimum(e)).max(),
        }
    }

    fn atom_high(&self, atom: &Atom) -> Option<i64> {
        match atom {
            Atom::Var(name) => self.bounds.get(name)?.high,
            Atom::FloorDiv(e, divisor) => Some(self.maximum(e)?.div_euclid(*divisor)),
            Atom::Min(es) => es.iter().filter_map(|e| self.maximum(e)).min(),
            Atom::Max(es) => es.iter().map(|e| self.maximum(e)).collect::<Option<Vec<_>>>()?.into_iter().max(),
        }
    }

    /// Integers that satisfy the facts and `wanted`, small ones first.
    fn find(&self, wanted: &Cond) -> Option<Counterexample> {
        let (names, related) = self.related(wanted);
        let names: Vec<Name> = names.into_iter().collect();
        let steps = Cell::new(0usize);
        let satisfies = |chosen: &[i64]| {
            let value = |name: Name| names.binary_search(&name).ok().map(|at| chosen[at]);
            let holds = |c: &Cond| {
                steps.set(steps.get() + 1);
                c.eval(&value).unwrap_or(false)
            };
            holds(wanted) && related.iter().all(|fact| holds(fact))
        };
        let example = |chosen: Vec<i64>| Counterexample(names.iter().copied().zip(chosen).collect());
        if names.len() > SEARCHED_NAMES {
            let low = |name| self.bounds.get(name).and_then(|b| b.low.or(b.high)).unwrap_or(0);
            let smallest: Vec<i64> = names.iter().map(low).collect();
            return satisfies(&smallest).then(|| example(smallest));
        }
        // Assignments in order of the sum of their positions in the candidate lists, so that small ones come first.
        let candidates: Vec<Vec<i64>> = names.iter().map(|n| self.candidates(*n, wanted, &related)).collect();
        let most = candidates.iter().map(|c| c.len() - 1).sum::<usize>();
        for total in 0..=most {
            let mut chosen = Vec::with_capacity(names.len());
            if search(&candidates, total, &mut chosen, &steps, &satisfies) {
                return Some(example(chosen));
            }
            if steps.get() >= SEARCH_STEPS {
                return None;
            }
        }
        None
    }

    /// The facts that share a name with a condition, directly or through other facts, and all their names. A condition
    /// without names is related to everything.
    fn related(&self, wanted: &Cond) -> (BTreeSet<Name>, Vec<&Cond>) {
        let mut names = BTreeSet::new();
        wanted.collect_names(&mut names);
        if names.is_empty() {
            self.conjuncts.iter().for_each(|fact| fact.collect_names(&mut names));
            return (names, self.conjuncts.iter().collect());
        }
        let mut used = BTreeSet::new();
        let mut waiting: Vec<Name> = names.iter().copied().collect();
        while let Some(name) = waiting.pop() {
            for &at in self.by_name.get(&name).into_iter().flatten() {
                if used.insert(at) {
                    let mut of_fact = BTreeSet::new();
                    self.conjuncts[at].collect_names(&mut of_fact);
                    waiting.extend(of_fact.into_iter().filter(|&n| names.insert(n)));
                }
            }
        }
        (names, used.into_iter().map(|at| &self.conjuncts[at]).collect())
    }

    /// Values worth trying for a name: near its bounds, and where a comparison changes.
    fn candidates(&self, name: Name, wanted: &Cond, facts: &[&Cond]) -> Vec<i64> {
        let bounds = self.bounds.get(&name).copied().unwrap_or_default();
        let low = bounds.low.or(bounds.high.map(|high| high.saturating_sub(4))).unwrap_or(0);
        let mut values: BTreeSet<i64> = (0..5).map(|d| low.saturating_add(d)).collect();
        values.extend(bounds.high);
        if bounds.low.is_none() {
            values.insert(low.saturating_sub(1));
        }
        let mut comparisons = Vec::new();
        wanted.comparisons(&mut comparisons);
        facts.iter().for_each(|fact| fact.comparisons(&mut comparisons));
        for e in comparisons {
            for (mono, coefficient) in e.terms() {
                if mono.as_slice() == [Atom::Var(name)] {
                    let turn = e.constant_part().saturating_neg().checked_div_euclid(*coefficient).unwrap_or(0);
                    values.extend([turn.saturating_sub(1), turn, turn.saturating_add(1)]);
                }
            }
        }
        let inside = |v: &i64| bounds.low.is_none_or(|low| *v >= low) && bounds.high.is_none_or(|high| *v <= high);
        let mut values: Vec<i64> = values.into_iter().filter(inside).collect();
        if values.is_empty() {
            values.push(low);
        }
        values.sort_by_key(|v| (v.abs(), *v < 0));
        values
    }
}

/// Tries all choices whose positions sum to `total`; leaves the first accepted one in `chosen`.
fn search(
    candidates: &[Vec<i64>],
    total: usize,
    chosen: &mut Vec<i64>,
    steps: &Cell<usize>,
    accept: &impl Fn(&[i64]) -> bool,
) -> bool {
    steps.set(steps.get() + 1);
    if steps.get() > SEARCH_STEPS {
        return false;
    }
    let Some((first, rest)) = candidates.split_first() else {
        return total == 0 && accept(chosen);
    };
    if rest.is_empty() {
        let Some(&value) = first.get(total) else { return false };
        chosen.push(value);
        if accept(chosen) {
            return true;
        }
        chosen.pop();
        return false;
    }
    for (at, &value) in first.iter().enumerate().take(total + 1) {
        chosen.push(value);
        if search(rest, total - at, chosen, steps, accept) {
            return true;
        }
        chosen.pop();
    }
    false
}

fn ceil_div(a: i64, b: i64) -> i64 {
    a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0)
}
