//! Which of two polynomials in sizes is larger, for all sizes at once.
//!
//! Costs are polynomials of high degree, beyond what the prover decides. With `n' + least` for every size n, a difference
//! in which nothing is subtracted is not negative. Sizes that can be 0 are 0 or at least 1.

use std::collections::BTreeSet;

use certen_syntax::Name;

use crate::Ix;

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
        if difference.subtracts_nothing() {
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
}
