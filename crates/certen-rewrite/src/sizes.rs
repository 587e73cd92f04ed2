//! Sizes at which costs are compared, and the proof that a cost is not larger for all of them.
//!
//! An order is chosen at nominal sizes; that it is no worse anywhere is shown by substituting `n = n' + least n` in the
//! difference of the costs and seeing that nothing is subtracted in it (sizes that can be 0 are 0 or at least 1).

use std::collections::BTreeSet;

use certen_core::Program;
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

/// Sizes that stand for large tensors, those tried first being preferred.
const NOMINAL: [i64; 6] = [64, 16, 8, 4, 2, 1];

/// More cases than this are not distinguished in a proof.
const MOST_CASES: usize = 64;

/// What is known of a program's sizes.
pub(crate) struct Sizes {
    least: FxHashMap<Name, i64>,
    nominal: FxHashMap<Name, i64>,
}

impl Sizes {
    /// None if no sizes were found that satisfy the program's facts.
    pub fn new(program: &Program) -> Option<Sizes> {
        let least = lower_bounds(program);
        let at_least = |base: i64| {
            let size = |name: &Name| (*name, base.max(least.get(name).copied().unwrap_or(0)));
            program.sizes.iter().map(size).collect::<FxHashMap<_, _>>()
        };
        let fits = |sizes: &FxHashMap<Name, i64>| satisfies(program, &|name| sizes.get(&name).copied());
        let nominal = NOMINAL.into_iter().map(at_least).find(fits);
        let nominal = nominal.or_else(|| Some(search(program)?.into_iter().collect()))?;
        Some(Sizes { least, nominal })
    }

    /// A cost at the nominal sizes; those too large to count are equal.
    pub fn nominal(&self, cost: &Ix) -> u128 {
        match cost.eval(&|name| self.nominal.get(&name).copied()) {
            Ok(value) => u128::try_from(value).unwrap_or(0),
            Err(_) => u128::MAX,
        }
    }

    /// Whether the second cost is shown to be at most the first one for all sizes.
    pub fn never_more(&self, before: &Ix, after: &Ix) -> bool {
        let Ok(difference) = before.sub(after) else { return false };
        let mut names = BTreeSet::new();
        difference.collect_names(&mut names);
        let mut cases = vec![difference];
        for name in names {
            let least = self.least.get(&name).copied().unwrap_or(0);
            let replaced = |case: &Ix, value: &Ix| case.substitute(&|n| (n == name).then(|| value.clone()));
            let shifted = Ix::var(name).add(&Ix::from(least.max(1)));
            let values: Vec<Ix> = (least <= 0).then(|| Ix::from(0)).into_iter().chain(shifted).collect();
            let split = cases.iter().flat_map(|case| values.iter().map(move |value| replaced(case, value)));
            let Ok(mut split) = split.collect::<Result<Vec<Ix>, _>>() else { return false };
            split.sort_unstable();
            split.dedup();
            if split.len() > MOST_CASES {
                return false;
            }
            cases = split;
        }
        cases.iter().all(Ix::subtracts_nothing)
    }
}

/// The least values of sizes that a fact about one size alone gives.
pub(crate) fn lower_bounds(program: &Program) -> FxHashMap<Name, i64> {
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

/// Whether sizes have the values that the program's facts want.
pub(crate) fn satisfies(program: &Program, value: &impl Fn(Name) -> Option<i64>) -> bool {
    program.facts.iter().all(|fact| fact.eval(value).unwrap_or(false))
}

/// Small sizes that satisfy the program's facts, by the prover: it shows where "the sum of all sizes is negative" fails.
pub(crate) fn search(program: &Program) -> Option<Vec<(Name, i64)>> {
    let mut facts: Facts = program.terms.facts().clone();
    let mut sum = Ix::from(0);
    for size in &program.sizes {
        sum = sum.add(&Ix::var(*size)).ok()?;
        facts.assume(Cond::le(&Ix::from(0), &Ix::var(*size)).ok()?);
    }
    match facts.prove(&Cond::lt(&sum, &Ix::from(0)).ok()?) {
        Verdict::No(example) => Some(example.0.into_iter().collect()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use certen_syntax::Sources;

    fn sizes(least: &[(&str, i64)]) -> Sizes {
        let least = least.iter().map(|(name, low)| (Name::new(name), *low)).collect();
        Sizes { least, nominal: FxHashMap::default() }
    }

    fn never_more(least: &[(&str, i64)], before: &[&[&str]], after: &[&[&str]]) -> bool {
        let sum = |monomials: &[&[&str]]| {
            monomials.iter().fold(Ix::from(0), |sum, names| {
                let product = names.iter().fold(Ix::from(1), |p, n| p.mul(&Ix::var(*n)).unwrap());
                sum.add(&product).unwrap()
            })
        };
        sizes(least).never_more(&sum(before), &sum(after))
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
        for facts in ["m >= 1", "m >= 100, n == m + 1", "n == 2*m, m >= 3", "m <= 5, n >= m"] {
            let program = program(facts);
            let found = Sizes::new(&program).unwrap_or_else(|| panic!("{facts}"));
            assert!(satisfies(&program, &|name| found.nominal.get(&name).copied()), "{facts}");
        }
    }
}
