//! Generated programs in the `.ten` language.
//!
//! A [`TenSample`] is a well-typed program made from arbitrary bytes: functions with fixed ranks and for any rank, on
//! data and on indices, and a `main` that calls them. It is a tree of this crate's own ([`tree`]), which has a text, and
//! a meaning ([`oracle`]) that needs nothing of the code under test and notices every access that is out of bounds.

mod generate;
mod mistake;
pub mod oracle;
mod text;
pub mod tree;

use std::collections::BTreeMap;

pub use generate::TenSample;
pub use mistake::{TenMistake, scramble};
use oracle::Value;
use tree::{Elem, Ix};

/// The values of sizes and of `size` parameters.
pub type Sizes = BTreeMap<String, i64>;

impl TenSample {
    /// The program of some bytes.
    pub fn generate(bytes: &[u8]) -> TenSample {
        generate::generate(bytes, true)
    }

    /// The same with all bounds written, so that a change of an access changes nothing else.
    pub fn with_bounds(bytes: &[u8]) -> TenSample {
        generate::generate(bytes, false)
    }

    /// The program's text.
    pub fn text(&self) -> String {
        self.program.text()
    }

    /// Sizes that `main` allows: the least ones, prime ones, and others.
    pub fn sizes(&self) -> Vec<Sizes> {
        let choices: [&dyn Fn(usize, i64) -> i64; 4] =
            [&|_, low| low, &|at, low| [3, 2, 5][at % 3].max(low), &|at, low| low + [1, 0, 2][at % 3], &|at, low| {
                low + (certen_core::domain::splitmix(self.seed ^ at as u64) % 4) as i64
            }];
        choices.iter().map(|choice| self.with_amounts(choice)).collect()
    }

    /// All sizes up to a most, as far as `main` allows them.
    pub fn all_sizes(&self, most: i64) -> Vec<Sizes> {
        let mut all: Vec<Vec<i64>> = vec![Vec::new()];
        for (_, low) in &self.sizes {
            let longer =
                |sizes: Vec<i64>| (*low..=most.max(*low)).map(move |size| [sizes.as_slice(), &[size]].concat());
            all = all.into_iter().flat_map(longer).collect();
        }
        all.into_iter().map(|sizes| self.with_amounts(&|at, _| sizes[at])).collect()
    }

    fn with_amounts(&self, choice: &dyn Fn(usize, i64) -> i64) -> Sizes {
        let mut sizes: Sizes =
            self.sizes.iter().enumerate().map(|(at, (name, low))| (name.clone(), choice(at, *low))).collect();
        for (name, upper) in &self.amounts {
            let upper = value(&upper.ix(), &sizes);
            let amount = (certen_core::domain::splitmix(self.seed ^ upper as u64) % upper.max(1) as u64) as i64;
            sizes.insert(name.clone(), amount);
        }
        sizes
    }

    /// The tensors of `main` at some sizes, small whole numbers, with the element type of each.
    pub fn inputs(&self, sizes: &Sizes) -> BTreeMap<String, (Elem, Value)> {
        let tensor = |(at, var): (u64, &generate::Var)| {
            let shape: Vec<i64> = var.dims.iter().map(|dim| value(&dim.ix(), sizes)).collect();
            let count = shape.iter().product::<i64>() as u64;
            let element = |n: u64| (certen_core::domain::splitmix(self.seed ^ (at << 32) ^ n) % 5) as f64 - 2.0;
            (var.name.clone(), (var.elem, Value { shape, data: (0..count).map(element).collect() }))
        };
        (0..).zip(&self.tensors).map(tensor).collect()
    }

    /// The `size` parameters of `main`.
    pub fn amounts(&self) -> Vec<String> {
        self.amounts.iter().map(|(name, _)| name.clone()).collect()
    }
}

fn value(e: &Ix, sizes: &Sizes) -> i64 {
    match e {
        Ix::Lit(value) => *value,
        Ix::Name(name) => sizes.get(name).copied().unwrap_or(0),
        Ix::Add(a, b) => value(a, sizes) + value(b, sizes),
        Ix::Sub(a, b) => value(a, sizes) - value(b, sizes),
        Ix::Mul(a, b) => value(a, sizes) * value(b, sizes),
        _ => 0,
    }
}
