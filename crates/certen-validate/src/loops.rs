//! Loops compared with the meaning of the program as it was written.
//!
//! Bounds and races of loops are proved for all sizes ([`certen_loops::verify`]). That a schedule keeps the meaning is proved
//! where the conditions of its steps are; in any case [`validate`] runs the loops in the interpreter and the program in
//! the reference evaluator, and compares *all elements of all outputs* at a number of points. A point is a
//! [`Setting`], sizes and a seed:
//!
//! - in the prime field, always: loops that differ as polynomials agree by accident with a probability of about
//!   degree / 2^61;
//! - programs with comparisons in the field with these tossed, so that what depends on rare data is reached;
//! - programs with order (minima, comparisons, …) in small signed integers and in rationals, where comparisons go both ways;
//! - on the machine, where integers wrap, and with NaNs and with infinities planted among floats: the same elements
//!   have to become NaN or infinite, of the same sign. Sums and products may be associated in any way: a sum with a NaN,
//!   or with infinities of both signs, is NaN in every order, else infinite if a summand is, likewise for
//!   products, as long as nothing overflows; inputs are small whole numbers, so that nothing does. Values have to be equal
//!   where no order of operations rounds, else within the error bound of [`certen_core::domain::magnitude`]. A rewriting
//!   that distributes products over sums does not keep infinities apart from NaNs, so on the machine loops are compared
//!   with the program that they were made from ([`LoopComparison::lowered`]);
//! - bit by bit, if every operation has to be made as written ([`LoopComparison::strict`]).
//!
//! Sizes are a covering set (`cover.rs`), extended until every branch is reached that can be (`reach.rs`) and, where nothing
//! but the comparison speaks for the loops ([`LoopComparison::doubted`]), until every block is run in several iterations of
//! all loops around it at once (`joint.rs`) and before and after the others of its loop (`order.rs`). Only runs count that
//! came to their end and were compared. Work is counted in steps of the two interpreters and bounded by a budget, so that the
//! answer is the same everywhere.
//!
//! [`scale`] makes schedules and programs with large numbers small enough to be compared.

use std::fmt;

use certen_core::{Program, Term, Terms};
use certen_loops::LoopProgram;
use certen_syntax::Name;

use crate::cover::{self, Row};
use crate::inputs::{Literals, Setting};
use crate::joint::Joint;
use crate::point::{Compared, Difference, Found, Point, Skipped};
use crate::reach::Reached;

/// Steps of the evaluator and the interpreter together, unless told otherwise: at most about a tenth of a second without
/// optimisation. Most programs need a few thousand.
pub const BUDGET: u64 = 400_000;

/// How loops are compared.
#[derive(Clone, Copy, Debug)]
pub struct LoopComparison<'a> {
    /// Steps at most.
    pub budget: u64,
    /// Whether every operation on floats has to be made as written.
    pub strict: bool,
    /// What the loops were made from, if the program was rewritten before.
    pub lowered: Option<&'a Program>,
    /// Whether nothing but the comparison speaks for the loops: then each of their blocks has to be run in several
    /// iterations of all loops around it, at once.
    pub doubted: bool,
}

impl Default for LoopComparison<'_> {
    fn default() -> Self {
        LoopComparison { budget: BUDGET, strict: false, lowered: None, doubted: true }
    }
}

/// What a comparison has found.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// No difference.
    Agrees(Evidence),
    /// An element with two values.
    Differs(Box<Difference>),
    /// Nothing could be compared; why.
    Nothing(String),
}

/// Where loops were compared, and agreed.
#[derive(Clone, PartialEq, Debug)]
pub struct Evidence {
    /// The points.
    pub points: Vec<Point>,
    /// Steps that were taken.
    pub steps: u64,
    /// Steps that could have been.
    pub budget: u64,
    /// Parts of the loops that no point has run and that are not shown to be never run, in words.
    pub unreached: Vec<String>,
    /// Whether some run has several iterations of all loops at once, of those that have them in any.
    pub together: bool,
}

impl Evidence {
    /// What was not tried and might go wrong, in words: equality is tested if there is nothing.
    pub fn gap(&self) -> Option<String> {
        let never = self.unreached.first().map(|place| format!("never run: {place}"));
        never.or_else(|| (!self.together).then(|| "no run has several iterations of every loop at once".into()))
    }
}

/// Points in each setting other than the field, at most.
const POINTS: [(Setting, usize); 7] = [
    (Setting::Integers, 24),
    (Setting::Rationals, 4),
    (Setting::Machine, 4),
    (Setting::Nans, 6),
    (Setting::Infinities, 6),
    (Setting::Bits, 4),
    (Setting::Coins, 6),
];

/// Rows that take too many steps before the others, which take more, are given up.
const PATIENCE: usize = 3;

/// Elements of which a large point should have at least so many, how many such points there should be, and how often sizes
/// are made larger to find them: the results of stencils are smaller than their inputs.
const ELEMENTS: usize = 12;
const LARGE_POINTS: usize = 2;
const LARGER: i64 = 6;

/// Compares loops with what a program means.
pub fn validate(meaning: &Program, nest: &LoopProgram, how: &LoopComparison<'_>) -> Outcome {
    let rows = cover::rows(meaning, nest);
    if rows.is_empty() {
        return Outcome::Nothing("no sizes were found that satisfy the program's constraints".into());
    }
    let mut search = Search::new(meaning, nest, how);
    let outcome = search.field(rows).and_then(|()| search.others());
    match outcome {
        Err(difference) => Outcome::Differs(search.readable(difference)),
        Ok(()) => search.outcome(),
    }
}

/// The first of several nests, each made from the one before, from which on the meaning is lost: it differs from the meaning
/// at the point where the last one does, and the one before it does not. Found by bisection, so that there may
/// be earlier ones that differ and are mended again. None if the last one agrees.
pub fn bisect(meaning: &Program, nests: &[&LoopProgram], how: &LoopComparison<'_>) -> Option<usize> {
    let last = nests.len().checked_sub(1)?;
    let Outcome::Differs(difference) = validate(meaning, nests[last], how) else { return None };
    let differs = |at: usize| {
        let mut search = Search::new(meaning, nests[at], how);
        let found = search.point(difference.setting, &difference.sizes, difference.seed, how.budget);
        matches!(found, Found::Differs(_))
    };
    let (mut first, mut end) = (0, last);
    while first < end {
        let middle = (first + end) / 2;
        if differs(middle) {
            end = middle;
        } else {
            first = middle + 1;
        }
    }
    Some(end)
}

/// Which settings a program and its loops need.
#[derive(Clone, Copy, Default)]
struct Uses {
    order: bool,
    floats: bool,
    integers: bool,
}

impl Uses {
    fn of(arenas: [&Terms; 2]) -> Uses {
        let order = arenas.iter().any(|terms| terms.uses_order());
        let mut uses = Uses { order, ..Uses::default() };
        for (terms, (id, term)) in arenas.into_iter().flat_map(|terms| terms.iter().map(move |term| (terms, term))) {
            let elem = terms.ty(id).elem;
            uses.floats |= elem.is_float();
            uses.integers |= elem.is_int() && !matches!(term, Term::Literal(..) | Term::Index(..));
        }
        uses
    }

    fn needs(self, setting: Setting, strict: bool) -> bool {
        match setting {
            Setting::Field => true,
            Setting::Coins | Setting::Integers | Setting::Rationals => self.order,
            Setting::Machine => self.floats || self.integers,
            Setting::Nans | Setting::Infinities => self.floats,
            Setting::Bits => strict && self.floats,
        }
    }
}

/// A comparison in progress.
struct Search<'a> {
    meaning: &'a Program,
    nest: &'a LoopProgram,
    how: &'a LoopComparison<'a>,
    literals: Literals,
    reached: Reached,
    /// What each run that came to its end has reached.
    runs: Vec<Reached>,
    /// How often its blocks were run, if that counts.
    joint: Option<Joint<'a>>,
    left: u64,
    points: Vec<Point>,
    /// Rows at which there was something to compare, in the field.
    rows: Vec<Row>,
    /// Whether any run came to its end.
    ran: bool,
    seeds: u64,
}

impl<'a> Search<'a> {
    fn new(meaning: &'a Program, nest: &'a LoopProgram, how: &'a LoopComparison<'a>) -> Search<'a> {
        Search {
            meaning,
            nest,
            how,
            literals: Literals::of(meaning),
            reached: Reached::new(nest),
            runs: Vec::new(),
            joint: how.doubted.then(|| Joint::new(nest)),
            left: how.budget,
            points: Vec::new(),
            rows: Vec::new(),
            ran: false,
            seeds: 0,
        }
    }

    /// All rows in the field, with at most a third of all steps; then, with at most two thirds, rows for what they have not
    /// reached, and larger ones, until each block has many iterations of all loops around it.
    fn field(&mut self, rows: Vec<Row>) -> Result<(), Box<Difference>> {
        let third = self.how.budget / 3;
        let mut too_long = 0;
        for row in &rows {
            let most = self.left.saturating_sub(2 * third).max(third / 4);
            if too_long >= PATIENCE || self.left < 2 * third {
                break;
            }
            too_long = if self.compared(Setting::Field, row.clone(), most)? { 0 } else { too_long + 1 };
        }
        if self.meaning.sizes.is_empty() {
            // There are no other sizes, but other inputs.
            if self.left > 2 * third {
                self.compared(Setting::Field, Row::new(), third)?;
            }
            return Ok(());
        }
        for wanted in self.reached.wanted(self.nest) {
            if self.reached.has(&wanted) {
                continue;
            }
            // Where a place is reached at all, and where it is well inside.
            for more in [0, 2] {
                let sizes = wanted.sizes.iter().map(|(name, size)| (*name, size.saturating_add(more)));
                let most = self.left.saturating_sub(third);
                if let Some(row) = cover::row(self.meaning, sizes) {
                    self.compared(Setting::Field, row, most)?;
                }
            }
        }
        let wanted = self.joint.as_mut().map(Joint::wanted).unwrap_or_default();
        for (what, sizes) in wanted {
            for more in [0, 2] {
                if more == 0 && self.joint.as_ref().is_some_and(|joint| joint.has(what)) {
                    continue;
                }
                let sizes = sizes.iter().map(|(name, size)| (*name, size.saturating_add(more)));
                let most = self.left.saturating_sub(third);
                if let Some(row) = cover::row(self.meaning, sizes) {
                    self.compared(Setting::Field, row, most)?;
                }
            }
        }
        for by in 1..=LARGER {
            let large = self.points.iter().filter(|point| point.elements >= ELEMENTS).count();
            let most = self.left.saturating_sub(third);
            let full = self.joint.as_ref().is_none_or(Joint::is_full);
            if large >= LARGE_POINTS && full || most == 0 {
                break;
            }
            if let Some(row) = cover::larger(self.meaning, &rows, by)
                && !self.compared(Setting::Field, row, most)?
            {
                break;
            }
        }
        Ok(())
    }

    /// Some of the rows in the other settings that the program needs.
    fn others(&mut self) -> Result<(), Box<Difference>> {
        let uses = Uses::of([&self.meaning.terms, &self.nest.terms]);
        let settings: Vec<(Setting, usize)> =
            POINTS.into_iter().filter(|(setting, _)| uses.needs(*setting, self.how.strict)).collect();
        self.rows.sort_by_key(cover::volume);
        let total: usize = settings.iter().map(|(_, points)| points).sum();
        for (setting, points) in settings {
            let rows = spread(&self.rows, points);
            let most = self.left / total.max(1) as u64;
            for row in rows {
                self.compared(setting, row, most)?;
            }
        }
        Ok(())
    }

    /// Compares at a point; whether the steps sufficed.
    fn compared(&mut self, setting: Setting, row: Row, most: u64) -> Result<bool, Box<Difference>> {
        self.seeds += 1;
        match self.point(setting, &row, self.seeds, most) {
            Found::Differs(difference) => return Err(difference),
            Found::Skipped(Skipped::Steps) => return Ok(false),
            Found::Skipped(Skipped::Setting | Skipped::Sizes) => {}
            Found::Same(point) => {
                if setting == Setting::Field {
                    self.ran = true;
                }
                if point.elements > 0 {
                    if setting == Setting::Field {
                        self.rows.push(row);
                    }
                    self.points.push(point);
                }
            }
        }
        Ok(true)
    }

    fn point(&mut self, setting: Setting, sizes: &[(Name, i64)], seed: u64, most: u64) -> Found {
        let given = most.min(self.left);
        let mut fuel = given;
        // Where floats may round differently, the machine's numbers are those of the program that loops were made from.
        let program = match setting {
            Setting::Machine | Setting::Nans | Setting::Infinities => self.how.lowered.unwrap_or(self.meaning),
            _ => self.meaning,
        };
        let mut reached = Reached::new(self.nest);
        let mut run = self.joint.as_ref().map(|joint| (joint, joint.run()));
        let mut observer = |event| {
            reached.note(event);
            if let Some((joint, run)) = &mut run {
                run.note(joint, event);
            }
        };
        let mut compared = Compared { program, nest: self.nest, literals: &self.literals, observer: &mut observer };
        let found = compared.at(setting, sizes, seed, &mut fuel);
        let run = run.map(|(_, run)| run);
        // What a run has reached that did not come to its end is compared with nothing.
        if matches!(found, Found::Same(_)) {
            self.reached.add(&reached);
            self.runs.push(reached);
            if let Some((joint, run)) = self.joint.as_mut().zip(run) {
                joint.add(run);
            }
        }
        self.left -= given - fuel;
        found
    }

    /// The same difference in small integers, if they show it: people read them more easily than elements of the field.
    fn readable(&mut self, difference: Box<Difference>) -> Box<Difference> {
        if difference.setting != Setting::Field {
            return difference;
        }
        // The first seed has no common value, the second one has.
        for seed in [4, 5] {
            self.left = self.left.max(self.how.budget / 4);
            if let Found::Differs(small) = self.point(Setting::Integers, &difference.sizes, seed, self.left) {
                return small;
            }
        }
        difference
    }

    fn outcome(self) -> Outcome {
        let steps = self.how.budget - self.left;
        // Where there is one point there are no others.
        let joint = self.joint.filter(|_| !self.meaning.sizes.is_empty());
        let apart = joint.as_ref().map(Joint::unreached).unwrap_or_default();
        match (self.points.is_empty(), self.ran) {
            (false, _) => Outcome::Agrees(Evidence {
                unreached: self.reached.unreached(self.nest).into_iter().chain(apart).collect(),
                together: self.runs.iter().any(|run| run.has_all_of(&self.reached))
                    && joint.is_none_or(|joint| joint.together()),
                points: self.points,
                steps,
                budget: self.how.budget,
            }),
            (true, false) => Outcome::Nothing(format!("a run takes more than {} steps", self.how.budget / 3)),
            (true, true) => Outcome::Nothing("no element of an output has a value that could be compared".into()),
        }
    }
}

/// Some of a list, from the first to the last, at equal distances; if they are few, twice.
fn spread(rows: &[Row], most: usize) -> Vec<Row> {
    let count = (2 * rows.len()).min(most);
    let at = |k: usize| rows[(2 * k + 1) * rows.len() / (2 * count)].clone();
    (0..count).map(|k| if k + 1 == count { rows[rows.len() - 1].clone() } else { at(k) }).collect()
}

/// `m = 2, n = 3`
struct Sizes<'a>(&'a [(Name, i64)]);

impl fmt::Display for Sizes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|(name, size)| format!("{name} = {size}")).collect();
        f.write_str(&all.join(", "))
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Evidence {
    /// How many elements were compared.
    pub fn elements(&self) -> usize {
        self.points.iter().map(|point| point.elements).sum()
    }
}

impl fmt::Display for Evidence {
    /// One line; another one for each part of the loops that was not reached.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<String> = Setting::ALL
            .iter()
            .map(|setting| (setting, self.points.iter().filter(|point| point.setting == *setting).count()))
            .filter(|(_, points)| *points > 0)
            .map(|(setting, points)| format!("{} {points}", setting.name()))
            .collect();
        write!(f, "equal to the meaning at {} points ({})", self.points.len(), settings.join(", "))?;
        let volume = |point: &&Point| point.sizes.iter().map(|(_, size)| *size).sum::<i64>();
        if let (Some(least), Some(largest)) =
            (self.points.iter().min_by_key(volume), self.points.iter().max_by_key(volume))
            && !least.sizes.is_empty()
        {
            write!(f, ", from {} to {}", Sizes(&least.sizes), Sizes(&largest.sizes))?;
        }
        let (elements, steps, budget) = (self.elements() as u64, grouped(self.steps), grouped(self.budget));
        write!(f, "; {} elements, {steps} of {budget} steps", grouped(elements))?;
        self.unreached.iter().try_for_each(|place| write!(f, "\nnever run: {place}"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.sizes.is_empty() { String::new() } else { format!(" for {}", Sizes(&self.sizes)) };
        let setting = self.setting.name();
        if self.index.is_empty() && self.expected == "values" {
            return write!(f, "{} has no values{at} ({setting}): {}", self.output, self.found);
        }
        let index: Vec<String> = self.index.iter().map(i64::to_string).collect();
        let index = if index.is_empty() { String::new() } else { format!("[{}]", index.join(", ")) };
        write!(f, "{}{index} is {} instead of {}{at} ({setting})", self.output, self.found, self.expected)
    }
}
