//! Sizes at which costs are compared, and the proof that a cost is not larger for all of them.
//!
//! An order is chosen at nominal sizes; that it is no worse anywhere is shown for all of them
//! ([`Ix::never_less_than`]). Or it is chosen for sizes that are given.

use std::collections::BTreeSet;

use certen_core::Program;
use certen_index::{Cond, Ix};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

/// Sizes that stand for large tensors, those tried first being preferred.
const NOMINAL: [i64; 6] = [64, 16, 8, 4, 2, 1];

/// How many facts are made to hold, one after the other, before sizes are given up.
const REPAIRS: usize = 32;

/// Whether a program with the same sizes is shown to make at most as many operations, for all sizes.
pub fn never_dearer(before: &Program, after: &Program) -> bool {
    let costs = before.operations().ok().zip(after.operations().ok());
    costs.zip(NominalSizes::new(before)).is_some_and(|((before, after), sizes)| sizes.never_more(&before, &after, 0))
}

/// What is known of a program's sizes.
pub(crate) struct NominalSizes {
    least: FxHashMap<Name, i64>,
    nominal: FxHashMap<Name, i64>,
    /// Whether only these sizes count.
    are_given: bool,
}

impl NominalSizes {
    /// None if no sizes were found that satisfy the program's facts.
    pub fn new(program: &Program) -> Option<NominalSizes> {
        let least = lower_bounds(program);
        let from = |base: i64| {
            let size = |name: &Name| (*name, base.max(least.get(name).copied().unwrap_or(0)));
            repaired(program, program.sizes.iter().map(size).collect())
        };
        let nominal = NOMINAL.into_iter().find_map(from)?;
        Some(NominalSizes { least, nominal, are_given: false })
    }

    /// Sizes that are given: costs are compared at these alone.
    pub fn given(nominal: FxHashMap<Name, i64>) -> NominalSizes {
        NominalSizes { least: FxHashMap::default(), nominal, are_given: true }
    }

    /// A cost at the nominal sizes; those too large to count are equal.
    pub fn nominal(&self, cost: &Ix) -> u128 {
        match cost.eval(&|name| self.nominal.get(&name).copied()) {
            Ok(value) => u128::try_from(value).unwrap_or(0),
            Err(_) => u128::MAX,
        }
    }

    /// Whether the second cost is shown to be at most the first one for all sizes that are at least this, or for those that
    /// are given.
    pub fn never_more(&self, before: &Ix, after: &Ix, least: i64) -> bool {
        if self.are_given {
            return self.nominal(after) <= self.nominal(before);
        }
        before.never_less_than(after, &|name| self.least.get(&name).copied().unwrap_or(0).max(least))
    }
}

/// The least values of sizes that a fact about one size alone gives.
pub fn lower_bounds(program: &Program) -> FxHashMap<Name, i64> {
    let mut least = FxHashMap::default();
    for fact in program.terms.facts().conjuncts() {
        let Cond::Ge(e) = fact else { continue };
        let mut names = BTreeSet::new();
        e.collect_names(&mut names);
        let (Some(&name), 1) = (names.first(), names.len()) else { continue };
        if let Some(rest) = e.sub(&Ix::var(name)).ok().and_then(|rest| rest.as_constant()) {
            let low = least.entry(name).or_insert(0);
            *low = rest.saturating_neg().max(*low);
        }
    }
    least
}

/// Sizes near the given ones that satisfy the program's facts, if a few repairs find some: a fact that does not hold is
/// made to hold by changing one of its names, the others staying as they are.
pub fn repaired(program: &Program, mut sizes: FxHashMap<Name, i64>) -> Option<FxHashMap<Name, i64>> {
    for _ in 0..REPAIRS {
        let value = |sizes: &FxHashMap<Name, i64>, name: Name| sizes.get(&name).copied();
        let broken = program.facts.iter().find(|fact| !fact.eval(&|name| value(&sizes, name)).unwrap_or(false));
        let Some(fact) = broken else { return Some(sizes) };
        let fact = match fact {
            Cond::Or(any) => any.first()?,
            other => other,
        };
        let (Cond::Ge(e) | Cond::Eq(e)) = fact else { return None };
        let mut names = BTreeSet::new();
        e.collect_names(&mut names);
        let now = e.eval(&|name| value(&sizes, name)).ok()?;
        let repair = |name: &Name| {
            let old = value(&sizes, *name)?;
            let next = e.eval(&|n| if n == *name { old.checked_add(1) } else { value(&sizes, n) }).ok()?;
            let slope = next.checked_sub(now)?;
            // The change that makes a linear expression zero, or a little more.
            let change = now.checked_neg()?.checked_div(slope)?;
            let new = [change, change.saturating_add(slope.signum())]
                .map(|change| old.saturating_add(change))
                .into_iter()
                .find(|new| {
                    *new >= 0 && fact.eval(&|n| if n == *name { Some(*new) } else { value(&sizes, n) }).unwrap_or(false)
                })?;
            Some((*name, new))
        };
        // Larger sizes are preferred: they violate fewer other facts.
        let (name, new) = names.iter().filter_map(repair).max_by_key(|(name, new)| new.saturating_sub(sizes[name]))?;
        sizes.insert(name, new);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use certen_syntax::Sources;

    fn sizes(least: &[(&str, i64)]) -> NominalSizes {
        let least = least.iter().map(|(name, low)| (Name::new(name), *low)).collect();
        NominalSizes { least, nominal: FxHashMap::default(), are_given: false }
    }

    fn never_more(least: &[(&str, i64)], before: &[&[&str]], after: &[&[&str]]) -> bool {
        let sum = |monomials: &[&[&str]]| {
            monomials.iter().fold(Ix::from(0), |sum, names| {
                let product = names.iter().fold(Ix::from(1), |p, n| p.mul(&Ix::var(*n)).unwrap());
                sum.add(&product).unwrap()
            })
        };
        sizes(least).never_more(&sum(before), &sum(after), 0)
    }

    #[test]
    fn costs_are_compared_for_all_sizes() {
        let one = [("m", 1), ("n", 1)];
        assert!(never_more(&one, &[&["n", "n", "n"]], &[&["n", "n"]]));
        assert!(never_more(&[], &[&["n", "n", "n"]], &[&["n", "n"]]));
        // For n = 1, 2 > 1.
        assert!(!never_more(&one, &[&["n", "n"]], &[&["n"], &["n"]]));
        assert!(never_more(&[("n", 2)], &[&["n", "n"]], &[&["n"], &["n"]]));
        // Where m can be 0, only what has the factor m is no more.
        assert!(never_more(&one, &[&["m", "n"]], &[&["n"]]));
        assert!(!never_more(&[("n", 1)], &[&["m", "n"]], &[&["n"]]));
        assert!(!never_more(&one, &[&["m"]], &[&["n"]]));
    }

    #[test]
    fn sizes_satisfy_the_facts() {
        let program = |facts: &str| {
            let text = format!("core t\nsize m, n\nwhere {facts}\ninput a : f64[m, n]\noutput a\n");
            let mut sources = Sources::new();
            let file = sources.add("t.core", text);
            certen_core::parse_program(&sources, file).unwrap_or_else(|_| panic!("{facts}"))
        };
        for facts in
            ["m >= 1", "m >= 100, n == m + 1", "n == 2*m, m >= 3", "m <= 5, n >= m", "m + n == 7", "m <= 3 || n >= 90"]
        {
            let program = program(facts);
            let found = NominalSizes::new(&program).unwrap_or_else(|| panic!("{facts}"));
            let value = |name: Name| found.nominal.get(&name).copied();
            assert!(program.facts.iter().all(|fact| fact.eval(&value) == Ok(true)), "{facts}");
        }
    }
}
