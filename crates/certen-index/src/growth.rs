//! Which of two polynomials in sizes is larger, for all sizes at once.
//!
//! Costs are polynomials of high degree, beyond what the prover decides. With `n' + least` for every size n, a difference
//! in which nothing is subtracted is not negative. Sizes that can be 0 are 0 or at least 1.

use std::collections::BTreeSet;

use certen_syntax::Name;

use crate::ix::{Atom, Ix, Mono};

/// More cases than this are not distinguished.
const MOST_CASES: usize = 64;

impl Ix {
    /// Whether this is shown to be at least another, wherever every name is at least what `least` says of it (and at
    /// least 0).
    ///
    /// ```
    /// use certen_index::Ix;
    /// let (n, two) = (Ix::var("n"), Ix::from(2));
    /// let (square, double) = (n.mul(&n)?, n.mul(&two)?);
    /// assert!(square.never_less_than(&double, &|_| 2));
    /// assert!(!square.never_less_than(&double, &|_| 1));
    /// assert!(square.never_less_than(&n, &|_| 0));
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn never_less_than(&self, other: &Ix, least: &impl Fn(Name) -> i64) -> bool {
        let Ok(difference) = self.sub(other) else { return false };
        if difference.subtracts_nothing() || difference.is_covered(least) {
            return true;
        }
        let mut names = BTreeSet::new();
        difference.collect_names(&mut names);
        let mut cases = vec![difference];
        for name in names {
            let least = least(name);
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

    /// Whether every product that is subtracted divides one that is added, by names that are at least 1, each of which
    /// is used as often as its coefficient allows. Costs of many names are compared so, without multiplying them out.
    fn is_covered(&self, least: &impl Fn(Name) -> i64) -> bool {
        let mut added: Vec<(&Mono, i64)> = self.terms().iter().filter(|(_, c)| *c > 0).map(|(m, c)| (m, *c)).collect();
        let subtracted = self.terms().iter().filter(|(_, c)| *c < 0);
        let is_positive = |atom: &Atom| matches!(atom, Atom::Var(name) if least(*name) >= 1);
        let is_name = |(mono, _): &&(Mono, i64)| mono.iter().all(|atom| matches!(atom, Atom::Var(_)));
        if !self.terms().iter().all(|term| is_name(&term)) {
            return false;
        }
        let mut needed: Vec<(Option<&Mono>, i64)> =
            subtracted.map(|(mono, c)| (Some(mono), c.saturating_neg())).collect();
        needed.extend((self.constant_part() < 0).then(|| (None, self.constant_part().saturating_neg())));
        needed.into_iter().all(|(small, mut count)| {
            for (large, left) in added.iter_mut() {
                let mut rest: Vec<&Atom> = large.iter().collect();
                let divides = small
                    .into_iter()
                    .flatten()
                    .all(|atom| rest.iter().position(|other| *other == atom).map(|at| rest.remove(at)).is_some());
                if divides && rest.into_iter().all(is_positive) {
                    let used = count.min(*left);
                    (count, *left) = (count - used, *left - used);
                }
            }
            count == 0
        })
    }
}
