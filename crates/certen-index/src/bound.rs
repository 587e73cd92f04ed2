//! How large an expression can get: a polynomial in the magnitudes of names that it never exceeds.
//!
//! A [`Bound`] of an expression is at least the absolute value of the expression and of everything that is computed on
//! the way to it, in whatever order the terms of its sums and the factors of its products are combined. It is made by
//! forgetting signs: names stand for their magnitude or 1, whichever is larger, numbers likewise. So no factor is below
//! 1, a product is at least each part of it, and a sum at least each partial sum. A quotient is not larger than its
//! numerator, a minimum or maximum not larger than the largest.
//!
//! Code that computes with 64-bit integers cannot overflow where the bound stays below 2^63.

use std::collections::BTreeMap;

use certen_syntax::Name;

use crate::cond::Cond;
use crate::ix::{Atom, Ix};

/// More products than this are not told apart: all names become the largest one.
const MAX_PRODUCTS: usize = 64;

/// A product of more names than this exceeds 64 bits as soon as they are 2, so that it need not be written down.
const MAX_DEGREE: usize = 64;

/// A sum of products of names, each with a factor that is at least 0. Names stand for their magnitude, or 1.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bound {
    /// Sorted names, with repetitions; none stands for the largest of all names.
    products: BTreeMap<Vec<Option<Name>>, f64>,
}

impl Bound {
    /// A number.
    pub fn number(value: u64) -> Bound {
        let exact = value < 1 << 53;
        let float = value.max(1) as f64;
        // A rounded number may be below the one that it stands for; the next float is not.
        Bound { products: BTreeMap::from([(Vec::new(), if exact { float } else { float.next_up() })]) }
    }

    /// The magnitude of a name.
    pub fn name(name: Name) -> Bound {
        Bound { products: BTreeMap::from([(vec![Some(name)], 1.0)]) }
    }

    /// The products, as names (none: the largest of all names) and their factors.
    pub fn products(&self) -> impl Iterator<Item = (&[Option<Name>], f64)> {
        self.products.iter().map(|(names, factor)| (names.as_slice(), *factor))
    }

    /// At least both.
    pub fn join(&mut self, other: &Bound) {
        for (names, factor) in &other.products {
            let own = self.products.entry(names.clone()).or_default();
            *own = own.max(*factor);
        }
        self.limit();
    }

    /// At least the sum of both.
    pub fn add(&mut self, other: &Bound) {
        for (names, factor) in &other.products {
            *self.products.entry(names.clone()).or_default() += factor;
        }
        self.limit();
    }

    /// At least the product of both.
    pub fn times(&self, other: &Bound) -> Bound {
        let mut product = Bound::default();
        for (left, a) in &self.products {
            for (right, b) in &other.products {
                let (names, factor) = match left.len() + right.len() {
                    ..=MAX_DEGREE => ([left.as_slice(), right].concat(), a * b),
                    _ => (Vec::new(), f64::INFINITY),
                };
                product.add(&Bound { products: BTreeMap::from([(sorted(names), factor)]) });
            }
        }
        product
    }

    /// Keeps the number of products small.
    fn limit(&mut self) {
        if self.products.len() > MAX_PRODUCTS {
            let mut merged = BTreeMap::new();
            for (names, factor) in std::mem::take(&mut self.products) {
                *merged.entry(vec![None; names.len()]).or_default() += factor;
            }
            self.products = merged;
        }
    }
}

fn sorted(mut names: Vec<Option<Name>>) -> Vec<Option<Name>> {
    names.sort_unstable();
    names
}

impl Ix {
    /// What the expression, and everything that is computed on the way to it, never exceeds. `of` gives the bounds of
    /// names.
    ///
    /// ```
    /// use certen_index::{Bound, Ix};
    /// let (n, m) = (Ix::var("n"), Ix::var("m"));
    /// let bound = n.mul(&m)?.sub(&Ix::from(2))?.bound(&Bound::name);
    /// let products: Vec<String> = bound.products().map(|(names, factor)| format!("{factor} {}", names.len())).collect();
    /// assert_eq!(products, ["2 0", "1 2"]);
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn bound(&self, of: &impl Fn(Name) -> Bound) -> Bound {
        let mut sum = match self.constant_part() {
            0 if !self.terms().is_empty() => Bound::default(),
            constant => Bound::number(constant.unsigned_abs()),
        };
        for (mono, coefficient) in self.terms() {
            let number = Bound::number(coefficient.unsigned_abs());
            sum.add(&mono.iter().fold(number, |product, atom| product.times(&atom.bound(of))));
        }
        sum
    }
}

impl Atom {
    fn bound(&self, of: &impl Fn(Name) -> Bound) -> Bound {
        match self {
            Atom::Var(name) => of(*name),
            Atom::FloorDiv(e, divisor) => {
                let mut bound = Bound::number(divisor.unsigned_abs());
                bound.join(&e.bound(of));
                bound
            }
            Atom::Min(es) | Atom::Max(es) => {
                let mut bound = Bound::default();
                es.iter().for_each(|e| bound.join(&e.bound(of)));
                bound
            }
        }
    }
}

impl Cond {
    /// What nothing that is computed to decide the condition exceeds.
    pub fn bound(&self, of: &impl Fn(Name) -> Bound) -> Bound {
        let mut comparisons = Vec::new();
        self.comparisons(&mut comparisons);
        let mut bound = Bound::default();
        comparisons.iter().for_each(|e| bound.join(&e.bound(of)));
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ix;

    fn value(bound: &Bound, n: f64, m: f64) -> f64 {
        let of = |name: &Option<Name>| match name.map(|name| name.as_str()) {
            Some("n") => n.abs().max(1.0),
            Some("m") => m.abs().max(1.0),
            _ => n.abs().max(m.abs()).max(1.0),
        };
        bound.products().map(|(names, factor)| names.iter().map(of).product::<f64>() * factor).sum()
    }

    #[test]
    fn nothing_on_the_way_exceeds_the_bound() {
        let texts =
            ["0", "-7", "n*n*m - 3*n + 2", "floor_div(n - 1000, 3)*m", "min(n, 2*m) - max(n*m, 5)", "mod(n, 9)"];
        for text in texts {
            let ix = ix(text);
            let bound = ix.bound(&Bound::name);
            for n in [-100i64, -1, 0, 1, 7] {
                for m in [-9i64, 0, 1, 2000] {
                    let found = ix.eval(&|name| Some(if name.as_str() == "n" { n } else { m })).unwrap();
                    assert!(value(&bound, n as f64, m as f64) >= found.abs() as f64, "{text} {n} {m}");
                }
            }
        }
        // n*n is computed first, though the product is 0.
        let bound = ix("n*n*m").bound(&Bound::name);
        assert_eq!(value(&bound, 1000.0, 0.0), 1e6);
    }

    #[test]
    fn bounds_stay_small() {
        let names: Vec<Name> = (0..100).map(|at| Name::new(&format!("n{at}"))).collect();
        let mut all = Bound::default();
        names.iter().for_each(|name| all.join(&Bound::name(*name)));
        assert!(all.products().count() <= MAX_PRODUCTS);
        let mut power = Bound::name(Name::new("n"));
        for _ in 0..100 {
            power = power.times(&power.clone());
        }
        assert!(power.products().any(|(_, factor)| factor.is_infinite()));
        assert_eq!(value(&Bound::number(u64::MAX), 1.0, 1.0), 18446744073709555712.0);
    }
}
