//! Sizes to test at: a covering set.
//!
//! Loops change what they do where a size passes a tile: the last tile is full, or lacks one element, or has only one.
//! So for each symbolic size the numbers that stand beside it in the loops (tile sizes, bounds of minima, divisors) give
//! the candidates `t-1`, `t`, `t+1`, `2t`, besides the least sizes that the program allows and a prime. All pairs of
//! candidates of two sizes occur in some row (pairwise testing); a row that the program's facts exclude is repaired by
//! making sizes larger. Deterministic, and the cheapest rows come first.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use certen_core::{Program, Term};
use certen_index::{Cond, Ix};
use certen_lift::{lower_bounds, repaired};
use certen_loops::{LoopProgram, Stmt, Target};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

/// Values for all sizes, in the program's order.
pub type Row = Vec<(Name, i64)>;

/// Rows that are tried at most, besides those for places that none of them reaches.
const MOST_ROWS: usize = 64;

/// Candidates of a size at most; with several tile sizes, the largest ones give them.
const MOST_CANDIDATES: usize = 10;

/// Numbers beyond this are not tile sizes that can be tested at: they are scaled down before.
const LARGEST_TILE: i64 = 1 << 12;

/// The rows to test at, those that take the least time first. None at all if no sizes are found that the facts allow.
pub fn rows(program: &Program, nest: &LoopProgram) -> Vec<Row> {
    let least = lower_bounds(program);
    let tiles = tiles(nest);
    let candidates: Vec<Vec<i64>> =
        program.sizes.iter().map(|name| candidates(least.get(name).copied().unwrap_or(0), tiles.get(name))).collect();
    let mut seen = HashSet::new();
    let mut rows: Vec<Row> = pairwise(&candidates)
        .into_iter()
        .filter_map(|values| row(program, program.sizes.iter().copied().zip(values)))
        .filter(|row| seen.insert(row.clone()))
        .collect();
    rows.sort_by_key(volume);
    rows
}

/// Sizes near these that the program's facts allow.
pub fn row(program: &Program, sizes: impl IntoIterator<Item = (Name, i64)>) -> Option<Row> {
    let sizes: FxHashMap<Name, i64> = sizes.into_iter().collect();
    let found = repaired(program, sizes)?;
    let row: Row = program.sizes.iter().filter_map(|name| Some((*name, *found.get(name)?))).collect();
    row.iter().all(|(_, size)| *size >= 0).then_some(row)
}

/// A row in which every size is larger than in all of these, by about twice a number, and neighbours differ.
pub(crate) fn larger(program: &Program, rows: &[Row], by: i64) -> Option<Row> {
    let largest = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|(_, size)| *size).max().unwrap_or(0);
    let sizes = program.sizes.iter().enumerate();
    row(program, sizes.map(|(at, name)| (*name, largest(at).saturating_add(2 * by - (at % 2) as i64))))
}

/// About how much there is to compute, for sizes in the same program.
pub(crate) fn volume(row: &Row) -> (i128, Vec<i64>) {
    let product = row.iter().fold(1i128, |product, (_, size)| product.saturating_mul(i128::from(*size) + 1));
    (product, row.iter().map(|(_, size)| *size).collect())
}

/// The numbers that stand beside each size in an expression of the loops, or beside an index that runs to it in a condition
/// or a range.
fn tiles(nest: &LoopProgram) -> BTreeMap<Name, BTreeSet<i64>> {
    let own = nest.sizes.iter().map(|size| (*size, BTreeSet::from([*size]))).collect();
    let mut tiles = Tiles { nest, sizes: own, found: BTreeMap::new() };
    let mut todo = vec![nest.body.as_slice()];
    while let Some(block) = todo.pop() {
        for stmt in block {
            match stmt {
                Stmt::For { index, range, body, .. } => {
                    let sizes = tiles.beside(&[&range.lo, &range.hi], &[]);
                    // Loops in different places may share a name, and then what is known of it.
                    tiles.sizes.entry(*index).or_default().extend(sizes);
                    todo.push(body);
                }
                Stmt::If { cond, then, otherwise } => {
                    tiles.beside(&[], &[cond]);
                    todo.extend([then.as_slice(), otherwise.as_slice()]);
                }
                Stmt::Alloc(_, ty) => ty.shape.iter().for_each(|size| tiles.access(size)),
                Stmt::Assign { target, value, .. } => {
                    if let Target::Element(_, indices) = target {
                        indices.iter().for_each(|index| tiles.access(index));
                    }
                    tiles.value(*value);
                }
                Stmt::Local { init: Some(value), .. } => tiles.value(*value),
                _ => {}
            }
        }
    }
    tiles.found
}

struct Tiles<'a> {
    nest: &'a LoopProgram,
    /// What a name runs to: a size to itself.
    sizes: BTreeMap<Name, BTreeSet<Name>>,
    found: BTreeMap<Name, BTreeSet<i64>>,
}

impl Tiles<'_> {
    /// Notes the numbers of expressions that belong together, and gives the sizes that they speak of.
    fn beside(&mut self, ixs: &[&Ix], conds: &[&Cond]) -> BTreeSet<Name> {
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        ixs.iter().for_each(|ix| ix.collect_names(&mut names));
        conds.iter().for_each(|cond| cond.collect_names(&mut names));
        let sizes: BTreeSet<Name> = names.iter().filter_map(|name| self.sizes.get(name)).flatten().copied().collect();
        if !sizes.is_empty() {
            ixs.iter().for_each(|ix| ix.collect_numbers(&mut numbers));
            conds.iter().for_each(|cond| cond.collect_numbers(&mut numbers));
            let tiles: Vec<i64> =
                numbers.iter().filter_map(|n| n.checked_abs()).filter(|n| (2..=LARGEST_TILE).contains(n)).collect();
            for name in &sizes {
                self.found.entry(*name).or_default().extend(&tiles);
            }
        }
        sizes
    }

    /// An index or size of a buffer counts where it speaks of a size itself.
    fn access(&mut self, ix: &Ix) {
        let mut names = BTreeSet::new();
        ix.collect_names(&mut names);
        if names.iter().any(|name| self.nest.sizes.contains(name)) {
            self.beside(&[ix], &[]);
        }
    }

    fn value(&mut self, value: certen_core::TermId) {
        for id in self.nest.terms.parts_first(value) {
            match self.nest.terms.get(id) {
                Term::Select(_, indices) => indices.iter().for_each(|index| self.access(index)),
                Term::Index(index, _) => self.access(index),
                _ => {}
            }
        }
    }
}

/// What one size may be, in ascending order.
fn candidates(least: i64, tiles: Option<&BTreeSet<i64>>) -> Vec<i64> {
    let mut found: BTreeSet<i64> = [0, 1, 2, 3].map(|more| least.saturating_add(more)).into();
    let none = BTreeSet::new();
    let tiles = tiles.unwrap_or(&none);
    let largest = tiles.last().copied().unwrap_or(1);
    let is_prime = |n: i64| n >= 2 && (2..).take_while(|d| d * d <= n).all(|d| n % d != 0);
    // Beyond that nothing is run anyway.
    let from = largest.max(least).min(LARGEST_TILE) + 3;
    found.extend((from..from + 100).find(|n| is_prime(*n)).filter(|prime| *prime >= least));
    for tile in tiles.iter().rev() {
        if found.len() + 4 > MOST_CANDIDATES {
            break;
        }
        found.extend([tile - 1, *tile, tile + 1, 2 * tile].into_iter().filter(|size| *size >= least));
    }
    found.into_iter().collect()
}

/// Rows in which every pair of candidates of two sizes occurs, as far as [`MOST_ROWS`] go. Greedy: each row has a pair that
/// is missing, the smallest, and of every other size the candidate that makes most missing pairs with what the row has.
/// With too many sizes for that, each candidate occurs, small ones together and large ones together.
fn pairwise(candidates: &[Vec<i64>]) -> Vec<Vec<i64>> {
    match candidates {
        [] => return vec![Vec::new()],
        [only] => return only.iter().map(|size| vec![*size]).collect(),
        _ => {}
    }
    let most = candidates.iter().map(Vec::len).max().unwrap_or(0);
    let Some(mut missing) = Pairs::all(candidates) else {
        let nth = |at: usize| candidates.iter().filter_map(move |sizes| sizes.get(at).or(sizes.last()).copied());
        return (0..most).map(|at| nth(at).collect()).collect();
    };
    let mut rows = Vec::new();
    // Sizes that are small together and large together come first.
    for level in 0..most {
        for i in 0..candidates.len() {
            for j in i + 1..candidates.len() {
                for (a, b) in at_level(level, candidates[i].len(), candidates[j].len()) {
                    if rows.len() == MOST_ROWS {
                        return rows;
                    }
                    if missing.has(i, a, j, b) {
                        let row = missing.row((i, a), (j, b));
                        rows.push(row.iter().zip(candidates).map(|(c, sizes)| sizes[*c]).collect());
                    }
                }
            }
        }
    }
    rows
}

/// The pairs of positions below two numbers of which the larger one is this, in order.
fn at_level(level: usize, first: usize, second: usize) -> impl Iterator<Item = (usize, usize)> {
    let below = (0..level.min(first)).map(move |a| (a, level)).filter(move |_| level < second);
    below.chain((0..=level.min(second.saturating_sub(1))).map(move |b| (level, b)).filter(move |_| level < first))
}

/// Pairs of candidates of two sizes that occur in no row yet.
struct Pairs {
    /// How many candidates each size has.
    counts: Vec<usize>,
    /// Where the pairs of two sizes begin, the first one before the second.
    starts: Vec<usize>,
    missing: Vec<bool>,
}

/// More pairs are not looked at.
const MOST_PAIRS: usize = 1 << 24;

impl Pairs {
    /// All pairs; none if there are too many.
    fn all(candidates: &[Vec<i64>]) -> Option<Pairs> {
        let counts: Vec<usize> = candidates.iter().map(Vec::len).collect();
        let mut starts = Vec::new();
        let mut end = 0usize;
        for (i, first) in counts.iter().enumerate() {
            for (j, second) in counts.iter().enumerate() {
                starts.push(end);
                end += if i < j { first * second } else { 0 };
            }
            if end > MOST_PAIRS {
                return None;
            }
        }
        Some(Pairs { counts, starts, missing: vec![true; end] })
    }

    fn place(&self, i: usize, a: usize, j: usize, b: usize) -> usize {
        let (i, a, j, b) = if i < j { (i, a, j, b) } else { (j, b, i, a) };
        self.starts[i * self.counts.len() + j] + a * self.counts[j] + b
    }

    fn has(&self, i: usize, a: usize, j: usize, b: usize) -> bool {
        self.missing[self.place(i, a, j, b)]
    }

    /// A row with two candidates, and the positions of the best others; its pairs are missing no longer.
    fn row(&mut self, (i, a): (usize, usize), (j, b): (usize, usize)) -> Vec<usize> {
        let mut chosen: Vec<(usize, usize)> = vec![(i, a), (j, b)];
        for k in (0..self.counts.len()).filter(|k| *k != i && *k != j) {
            let gain = |c: &usize| chosen.iter().filter(|(l, other)| self.has(k, *c, *l, *other)).count();
            let best = (0..self.counts[k]).max_by_key(|c| (gain(c), std::cmp::Reverse(*c)));
            chosen.push((k, best.unwrap_or(0)));
        }
        chosen.sort_unstable();
        for (at, (k, c)) in chosen.iter().enumerate() {
            for (l, d) in &chosen[at + 1..] {
                let place = self.place(*k, *c, *l, *d);
                self.missing[place] = false;
            }
        }
        chosen.into_iter().map(|(_, c)| c).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_candidates_occurs() {
        for candidates in [
            vec![vec![0, 1, 2], vec![3, 4], vec![5, 6, 7, 8]],
            vec![vec![0, 1]; 6],
            vec![vec![0, 1, 2, 3, 5], vec![0, 1, 2, 3, 5], vec![1, 2]],
        ] {
            let rows = pairwise(&candidates);
            for (i, first) in candidates.iter().enumerate() {
                for (j, second) in candidates.iter().enumerate().skip(i + 1) {
                    for (a, b) in first.iter().flat_map(|a| second.iter().map(move |b| (a, b))) {
                        assert!(rows.iter().any(|row| row[i] == *a && row[j] == *b), "{candidates:?} {rows:?}");
                    }
                }
            }
            let all: usize = candidates.iter().map(Vec::len).product();
            assert!(rows.len() < all, "{} of {all}", rows.len());
        }
        assert_eq!(pairwise(&[]), [[0; 0]]);
        // So many sizes that their pairs are not counted.
        let many = pairwise(&vec![vec![0, 1, 2, 3, 5]; 2000]);
        assert!(many.len() == 5 && (0..5).all(|at| many[at].iter().all(|size| *size == [0, 1, 2, 3, 5][at])));
        assert_eq!(pairwise(&[vec![0, 1]]), [[0], [1]]);
    }

    #[test]
    fn tiles_give_sizes_around_them() {
        assert_eq!(candidates(0, None), [0, 1, 2, 3, 5]);
        assert_eq!(candidates(0, Some(&[4].into())), [0, 1, 2, 3, 4, 5, 7, 8]);
        assert_eq!(candidates(3, Some(&[8].into())), [3, 4, 5, 6, 7, 8, 9, 11, 16]);
    }
}
