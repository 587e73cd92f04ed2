//! At which sizes code for all sizes is tried, in the order of importance.
//!
//! Loops become vectors of several lanes, perhaps four at a time, and what is left over; a loop with much to do is divided
//! between threads. So the sizes that tell code apart are those around the number of lanes: none, one, one less than a
//! register, just one, one more, several, and so many that threads share them; besides those around the tiles of a
//! schedule, which validation knows ([`certen_validate::cover`]). Not all combinations of several sizes are run: all
//! equal, and each varied while the others have a *middle* value, as large as the steps allow.

use std::collections::HashSet;

use certen_core::{ElemType, Program};
use certen_index::Ix;
use certen_loops::{Cost, LoopProgram, MIN_PARALLEL_WORK, Stmt, Work, statements, work};
use certen_syntax::Name;
use certen_validate::cover;

use super::given::Set;

/// The longest vectors that there are, in bytes.
const VECTOR_BYTES: i64 = 64;

/// Loops that are divided between threads at most, each with sizes of its own.
const DIVIDED: usize = 3;

/// Sizes at which loops are divided are looked for up to this.
const LARGEST: i64 = 1 << 20;

/// Values of one size after the other, at most so many.
const SWEEP: i64 = 32;

/// A run.
pub(super) struct Point {
    pub sizes: Vec<i64>,
    pub set: Set,
    /// About how many steps it takes.
    pub cost: u64,
    /// Whether it is run whatever it takes: where loops have a vector and a remainder.
    pub essential: bool,
    /// Whether a loop is divided between threads.
    pub divided: bool,
}

/// The runs of a program, those that matter most first, and each only if it takes a fair share of the budget.
pub(super) fn points(core: &Program, loops: &LoopProgram, budget: u64) -> Vec<Point> {
    let mut found = Candidates { core, cost: Cost::of(loops), seen: HashSet::new(), points: Vec::new() };
    let lanes = lanes(loops);
    let several = 2 * lanes + 1;
    let count = core.sizes.len();
    let fits = |middle: &i64| found.equal(*middle).is_some_and(|row| found.cost_at(&row) <= budget / 16);
    let middle = [several, lanes + 1, 5, 3, 2].into_iter().find(fits).unwrap_or(1);
    let with = |size: usize, value: i64, others: i64| (0..count).map(move |at| if at == size { value } else { others });
    found.equal_point(middle, budget / 4);
    for size in 0..count {
        // Where that is too much, the others are as small as they may be.
        let rows = [middle, 2, 1].map(|others| found.allowed(with(size, several, others)));
        let cheap = rows.iter().flatten().find(|row| found.cost_at(row) <= budget / 8);
        if let Some(row) = cheap.or(rows[2].as_ref()) {
            found.add(row.clone(), &[Set::Tame], u64::MAX, |point| point.essential = true);
        }
    }
    for row in found.divided(loops) {
        found.add(row, &[Set::Tame], budget / 2, |point| point.divided = true);
    }
    let values = [lanes, lanes + 1, lanes - 1, 1, 0, several, 4 * lanes + 3, 6 * lanes - 1];
    values.iter().for_each(|value| found.equal_point(*value, budget / 8));
    for (value, size) in values.iter().flat_map(|value| (0..count).map(move |size| (*value, size))) {
        found.one(with(size, value, middle), budget / 16);
    }
    for row in cover::rows(core, loops) {
        found.add(row.into_iter().map(|(_, size)| size).collect(), &[Set::Tame], budget / 16, |_| {});
    }
    for (value, size) in (0..=SWEEP.min(several)).flat_map(|value| (0..count).map(move |size| (value, size))) {
        found.one(with(size, value, middle.min(3)), budget / 64);
    }
    found.points
}

struct Candidates<'a> {
    core: &'a Program,
    cost: Cost,
    seen: HashSet<Vec<i64>>,
    points: Vec<Point>,
}

impl Candidates<'_> {
    /// Sizes near these that the program allows.
    fn allowed(&self, sizes: impl Iterator<Item = i64>) -> Option<Vec<i64>> {
        let row = cover::row(self.core, self.core.sizes.iter().copied().zip(sizes))?;
        Some(row.into_iter().map(|(_, size)| size).collect())
    }

    fn equal(&self, value: i64) -> Option<Vec<i64>> {
        self.allowed(self.core.sizes.iter().map(|_| value))
    }

    fn named(&self, row: &[i64]) -> impl Iterator<Item = (Name, i64)> {
        self.core.sizes.iter().copied().zip(row.iter().copied())
    }

    fn cost_at(&self, row: &[i64]) -> u64 {
        self.cost.at(self.named(row))
    }

    /// All sizes equal, on both sets of inputs.
    fn equal_point(&mut self, value: i64, most: u64) {
        if let Some(row) = self.equal(value) {
            self.add(row, &[Set::Tame, Set::Wild], most, |_| {});
        }
    }

    fn one(&mut self, sizes: impl Iterator<Item = i64>, most: u64) {
        if let Some(row) = self.allowed(sizes) {
            self.add(row, &[Set::Tame], most, |_| {});
        }
    }

    /// Runs at these sizes, if they are new and take at most so many steps.
    fn add(&mut self, sizes: Vec<i64>, sets: &[Set], most: u64, mark: impl Fn(&mut Point)) {
        let cost = self.cost_at(&sizes);
        if cost > most || !self.seen.insert(sizes.clone()) {
            return;
        }
        for set in sets {
            let mut point = Point { sizes: sizes.clone(), set: *set, cost, essential: false, divided: false };
            mark(&mut point);
            self.points.push(point);
        }
    }

    /// For each loop that threads share, the least equal sizes at which it has enough to do.
    fn divided(&self, loops: &LoopProgram) -> Vec<Vec<i64>> {
        let mut rows: Vec<Vec<i64>> = Vec::new();
        for work in shared(loops) {
            let is_enough = |row: &Vec<i64>| {
                is_divided(&work, &|name| self.named(row).find(|(known, _)| *known == name).map(|(_, size)| size))
            };
            // Each value is larger by an eighth than the one before, and odd.
            let values = std::iter::successors(Some(9i64), |value| Some((value + value / 8) | 1));
            let mut large = values.take_while(|value| *value < LARGEST).filter_map(|value| self.equal(value));
            rows.extend(large.find(is_enough));
        }
        rows.sort_by_key(|row| self.cost_at(row));
        rows.dedup();
        rows.truncate(DIVIDED);
        rows
    }
}

/// What each of the loops does that threads share.
fn shared(loops: &LoopProgram) -> Vec<Work> {
    let mut found = Vec::new();
    for stmt in statements(&loops.body) {
        if let Stmt::For { mode, .. } = stmt
            && mode.is_parallel()
        {
            found.push(work(loops, std::slice::from_ref(stmt)));
        }
    }
    found
}

/// Whether a loop has so much to do that it is divided.
fn is_divided(work: &Work, size: &impl Fn(Name) -> Option<i64>) -> bool {
    let extent = |extent: &Ix| extent.eval(size).map_or(1, |extent| extent.max(0)) as f64;
    work.extents.iter().map(extent).product::<f64>() * work.operations as f64 >= MIN_PARALLEL_WORK as f64
}

/// Whether loops for given sizes have one that is divided.
pub(super) fn divides(loops: &LoopProgram) -> bool {
    shared(loops).iter().any(|work| is_divided(work, &|_| None))
}

/// How many elements of the smallest type in memory a vector has.
fn lanes(loops: &LoopProgram) -> i64 {
    let given = loops.given().map(|(_, ty)| ty.elem);
    let own = statements(&loops.body).filter_map(|stmt| match stmt {
        Stmt::Alloc(_, ty) => Some(ty.elem),
        Stmt::Local { elem, .. } => Some(*elem),
        _ => None,
    });
    let smallest = given.chain(own).map(ElemType::bytes).min().unwrap_or(8);
    VECTOR_BYTES / smallest as i64
}
