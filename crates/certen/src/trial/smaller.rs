//! The same loops with smaller numbers: what is too large to be tried in every element, made small enough.
//!
//! A kernel for given sizes is full of numbers: shapes, ranges, coefficients. Each large one is replaced by a small one,
//! everywhere, with the same remainder by the lengths of vectors and tiles, so that the code has the same vector loops
//! and the same remainders. Numbers that lie near each other (998 and 1000) keep their distance, products of two others
//! stay products, larger ones stay larger. What comes of it is used only if the verifier accepts it: then it is a loop program
//! like any other, and its machine code has to do what it says. Where it accepts none, as in tiles whose numbers are also those
//! of the loops around them, loops end earlier instead, and compute a part of the elements.

use std::collections::{BTreeMap, BTreeSet};

use certen_core::{Term, TermId};
use certen_index::Ix;
use certen_loops::{Cost, LoopProgram, Stmt, statements, verify};
use certen_runtime::{NativeKernel, RuntimeError, Signature};
use certen_schedule::{ends, shortened, with_numbers};

use super::BUDGET;

/// Remainders by these are kept: the first for which the loops are small enough.
const MODULI: [i64; 4] = [64, 32, 16, 8];

/// A loop that is cut short has no more iterations.
const MOST_ITERATIONS: i64 = 64;

/// Makes a kernel of C text.
pub type Build<'a> = dyn Fn(&str, Signature) -> Result<NativeKernel, RuntimeError> + Sync + 'a;

/// Loops with smaller numbers, and their machine code.
pub(super) struct Smaller {
    pub loops: LoopProgram,
    pub kernel: NativeKernel,
    /// `104 for 1000`
    pub numbers: String,
}

impl Smaller {
    /// The loops with smaller numbers, compiled; or why there are none.
    pub fn of(loops: &LoopProgram, build: &Build<'_>) -> Result<Smaller, String> {
        let (loops, numbers) = shrunk(loops).ok_or("the verifier accepts no smaller numbers in its loops")?;
        let ty = |tensor: &certen_core::Parameter| tensor.ty.clone();
        let signature = Signature {
            sizes: Vec::new(),
            facts: Vec::new(),
            inputs: loops.inputs.iter().map(ty).collect(),
            outputs: loops.outputs.iter().map(ty).collect(),
        };
        let c = certen_codegen::emit_c(&loops).map_err(|error| error.message)?;
        let kernel = build(&c.native, signature).map_err(|error| error.to_string())?;
        let one = |(large, small): (&i64, &i64)| format!("{small} for {large}");
        let numbers: Vec<String> = numbers.iter().map(one).collect();
        Ok(Smaller { loops, kernel, numbers: numbers.join(", ") })
    }
}

/// Whether loops are for given sizes, and take more steps than a trial has.
pub(super) fn is_beyond(loops: &LoopProgram) -> bool {
    loops.sizes.is_empty() && Cost::of(loops).at([]) > BUDGET
}

/// The loops with smaller numbers, if the verifier accepts any that are small enough.
fn shrunk(loops: &LoopProgram) -> Option<(LoopProgram, BTreeMap<i64, i64>)> {
    let numbers = numbers(loops);
    let by_numbers = MODULI.into_iter().find_map(|modulus| {
        let smaller = smaller(&numbers, modulus)?;
        let small = with_numbers(loops, smaller.clone()).ok()?;
        (is_small(&small) && verify(&small).is_empty()).then_some((small, smaller))
    });
    by_numbers.or_else(|| with_shorter_loops(loops))
}

fn is_small(loops: &LoopProgram) -> bool {
    Cost::of(loops).at([]) <= BUDGET / 2
}

/// The loops with fewer iterations: those that have most are cut in half, again and again, until they are small enough.
fn with_shorter_loops(loops: &LoopProgram) -> Option<(LoopProgram, BTreeMap<i64, i64>)> {
    let mut ends: BTreeMap<i64, i64> = ends(loops).into_iter().map(|end| (end, end.min(MOST_ITERATIONS))).collect();
    loop {
        let small = shortened(loops, &ends).ok()?;
        if is_small(&small) {
            ends.retain(|end, shorter| end != shorter);
            return verify(&small).is_empty().then_some((small, ends));
        }
        let longest = ends.values().copied().max().filter(|longest| *longest > 2)?;
        ends.values_mut().filter(|end| **end == longest).for_each(|end| *end = (longest + 1) / 2);
    }
}

/// A smaller number for each large one; none if there are none.
fn smaller(numbers: &BTreeSet<i64>, modulus: i64) -> Option<BTreeMap<i64, i64>> {
    let mut found: BTreeMap<i64, i64> = BTreeMap::new();
    for &number in numbers.iter().filter(|number| **number >= 2 * modulus) {
        let below = found.last_key_value().map(|(large, small)| (*large, *small));
        let product = || {
            found.iter().find_map(|(large, small)| {
                let (other, rest) = (number / large, number % large);
                let other = if other < 2 * modulus { Some(other) } else { found.get(&other).copied() };
                other.filter(|_| rest == 0)?.checked_mul(*small)
            })
        };
        let small = match below {
            Some((large, small)) if number - large < modulus => small + (number - large),
            _ => product().unwrap_or_else(|| {
                let least = below.map_or(0, |(_, small)| small);
                let plain = modulus + number % modulus;
                plain + (least - plain).max(0) / modulus * modulus + if plain <= least { modulus } else { 0 }
            }),
        };
        found.insert(number, small);
    }
    (!found.is_empty()).then_some(found)
}

/// The magnitudes of all numbers in the index expressions, ranges, conditions and shapes of loops.
fn numbers(loops: &LoopProgram) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    let mut all = |ixs: &[Ix]| ixs.iter().for_each(|ix| ix.collect_numbers(&mut found));
    loops.given().for_each(|(_, ty)| all(&ty.shape));
    let mut values: Vec<TermId> = Vec::new();
    let mut conditions = Vec::new();
    for stmt in statements(&loops.body) {
        match stmt {
            Stmt::Alloc(_, ty) => all(&ty.shape),
            Stmt::For { range, .. } => all(&[range.lo.clone(), range.hi.clone()]),
            Stmt::If { cond, .. } => conditions.push(cond),
            _ => {}
        }
        stmt.element().into_iter().for_each(|(_, indices)| all(indices));
        values.extend(stmt.value());
    }
    for id in values.into_iter().flat_map(|value| loops.terms.parts_first(value)) {
        match loops.terms.get(id) {
            Term::Select(_, indices) => all(indices),
            Term::Index(ix, _) => all(std::slice::from_ref(ix)),
            _ => {}
        }
    }
    conditions.iter().for_each(|cond| cond.collect_numbers(&mut found));
    found.into_iter().map(i64::saturating_abs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_remainders_distances_and_products() {
        let small = |numbers: &[i64], modulus| {
            smaller(&numbers.iter().copied().collect(), modulus).unwrap_or_default().into_iter().collect::<Vec<_>>()
        };
        assert_eq!(small(&[1, 2, 32, 998, 1000], 64), [(998, 102), (1000, 104)]);
        assert_eq!(small(&[300, 700, 210_000], 16), [(300, 28), (700, 44), (210_000, 28 * 44)]);
        assert_eq!(small(&[640, 1280, 3000], 64), [(640, 64), (1280, 128), (3000, 184)]);
        assert_eq!(small(&[3, 127], 64), []);
    }
}
