//! How often something is evaluated: sums of products of sizes, compared for all sizes at once.
//!
//! A size that is not a number is an unknown of its own, at least 1. One count is at least another for all sizes if,
//! with n' + 1 for every unknown n, no coefficient of the difference is negative. Guarantees: a comparison that says
//! yes is right; sums and products that grow out of hand are rounded down, never up.

use std::collections::{BTreeMap, HashMap};

use certen_index::Ix;

/// The terms that a count keeps; what comes after them is left out.
const MAX_TERMS: usize = 64;

/// The terms that a comparison may multiply out to.
const MAX_EXPANDED: usize = 4096;

/// A sum of products of unknown sizes, the unknowns of each product in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Count(BTreeMap<Vec<u32>, i128>);

/// The unknown sizes.
#[derive(Default)]
pub(super) struct Sizes(HashMap<Ix, u32>);

impl Sizes {
    /// The product of sizes, unless its number is too large.
    pub fn product<'a>(&mut self, sizes: impl IntoIterator<Item = &'a Ix>) -> Option<Count> {
        let (mut unknowns, mut number) = (Vec::new(), 1i128);
        for size in sizes {
            match size.as_constant() {
                Some(known) => number = number.checked_mul(known.into())?,
                None => {
                    let next = self.0.len() as u32;
                    unknowns.push(*self.0.entry(size.clone()).or_insert(next));
                }
            }
        }
        unknowns.sort_unstable();
        Some(Count(BTreeMap::from([(unknowns, number)])))
    }
}

impl Count {
    /// Adds another count.
    pub fn add(&mut self, other: &Count) {
        for (unknowns, number) in &other.0 {
            if let Some(sum) = self.0.get_mut(unknowns) {
                *sum = sum.saturating_add(*number);
            } else if self.0.len() < MAX_TERMS {
                self.0.insert(unknowns.clone(), *number);
            }
        }
    }

    /// The product of two counts.
    pub fn times(&self, other: &Count) -> Count {
        let mut product = Count::default();
        for (left, a) in &self.0 {
            for (right, b) in &other.0 {
                let mut unknowns = [left.as_slice(), right].concat();
                unknowns.sort_unstable();
                product.add(&Count(BTreeMap::from([(unknowns, a.saturating_mul(*b))])));
            }
        }
        product
    }

    /// Whether this count is larger than another for some sizes and smaller for none.
    pub fn exceeds(&self, other: &Count) -> bool {
        let mut difference = self.0.clone();
        for (unknowns, number) in &other.0 {
            let rest = difference.entry(unknowns.clone()).or_insert(0);
            *rest = rest.saturating_sub(*number);
        }
        difference.retain(|_, number| *number != 0);
        if difference.is_empty() || difference.values().all(|number| *number > 0) {
            return !difference.is_empty();
        }
        let common = difference.keys().cloned().reduce(|a, b| in_common(&a, &b)).unwrap_or_default();
        let mut expanded: BTreeMap<Vec<u32>, i128> = BTreeMap::new();
        let mut room = MAX_EXPANDED;
        for (unknowns, number) in difference {
            let rest = without(&unknowns, &common);
            let products = u32::try_from(rest.len()).ok().and_then(|degree| 1usize.checked_shl(degree));
            let Some(left) = products.and_then(|products| room.checked_sub(products)) else { return false };
            room = left;
            for chosen in 0..1usize << rest.len() {
                let part = rest.iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, unknown)| *unknown);
                let sum = expanded.entry(part.collect()).or_insert(0);
                *sum = sum.saturating_add(number);
            }
        }
        expanded.values().all(|number| *number >= 0)
    }
}

/// What two ordered products have in common.
fn in_common(a: &[u32], b: &[u32]) -> Vec<u32> {
    let (mut common, mut rest) = (Vec::new(), b.iter().peekable());
    for unknown in a {
        while rest.next_if(|other| *other < unknown).is_some() {}
        common.extend(rest.next_if_eq(&unknown));
    }
    common
}

/// An ordered product without some of its factors.
fn without(product: &[u32], factors: &[u32]) -> Vec<u32> {
    let mut factors = factors.iter().peekable();
    product.iter().filter(|unknown| factors.next_if_eq(unknown).is_none()).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::{Count, Sizes};
    use certen_index::Ix;

    /// `"2 n n + m"` as a count.
    fn count(sizes: &mut Sizes, text: &str) -> Count {
        let mut sum = Count::default();
        for product in text.split('+') {
            let factors: Vec<Ix> = product
                .split_whitespace()
                .map(|word| word.parse::<i64>().map_or_else(|_| Ix::var(word), Ix::from))
                .collect();
            sum.add(&sizes.product(&factors).unwrap());
        }
        sum
    }

    #[test]
    fn counts_are_compared_for_all_sizes() {
        for (large, small, expected) in [
            ("2 n m", "n m", true),
            ("n m", "n m", false),
            ("n m k", "n m", true),
            ("n + n", "n m", false),
            ("m + n m", "n m", true),
            ("n n", "n m", false),
            ("n n + 1", "2 n", true),
            ("n n + m m", "2 n m", false),
            ("2 n k + n k j", "3 n k", true),
            ("2 m", "3 m", false),
            ("7 m", "2 m + n", false),
        ] {
            let sizes = &mut Sizes::default();
            let (a, b) = (count(sizes, large), count(sizes, small));
            assert_eq!(a.exceeds(&b), expected, "{large} > {small}");
        }
    }

    #[test]
    fn products_multiply_out() {
        let sizes = &mut Sizes::default();
        let (a, b) = (count(sizes, "n + 2 m"), count(sizes, "n + 3"));
        assert_eq!(a.times(&b), count(sizes, "n n + 3 n + 2 n m + 6 m"));
    }

    #[test]
    fn what_is_too_large_is_not_counted() {
        let huge = vec![Ix::from(i64::MAX); 3];
        assert!(Sizes::default().product(&huge).is_none());
        let many: Vec<Ix> = (0..20).map(|at| Ix::var(format!("n{at}").as_str())).collect();
        let sizes = &mut Sizes::default();
        let (all, two) = (sizes.product(&many).unwrap(), sizes.product(&[Ix::from(2)]).unwrap());
        assert!(!all.exceeds(&two), "2^20 terms are not multiplied out");
    }
}
