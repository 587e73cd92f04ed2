//! Linear integer arithmetic without alternatives: does any assignment of integers make all rows at least zero?
//!
//! Pugh's Omega test. Equalities are solved exactly, by substitution where a coefficient is one and else by a new
//! quotient. Inequalities are eliminated column by column (Fourier and Motzkin), every new row being tightened to the
//! integers; where all coefficients on one side are one the elimination is exact. Where it is not, the rest is solved
//! first: without a solution there is none; with one that leaves no integer for the column, there are cases: a few by
//! branch and bound, then by peeling one value at a time off the lower bound that is in the way. The "dark shadow"
//! argument of the Omega test says that this ends.
//!
//! Guarantees: a refutation is a sequence of logged sums and case splits, a model satisfies every row. The number of
//! steps is limited.

use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::smallvec;

use super::row::{Closed, Coefficients, Column, Row, RowId};
use super::{Attempt, Prover};
use crate::cond::Cond;
use crate::ix::Ix;
use crate::witness::{CaseSplit, Reason};

/// Cases by which a column is above or below a number, inside each other, before bounds are peeled.
const MAX_BRANCHES: usize = 12;

/// Columns with more values are not enumerated.
const MAX_WIDTH: i64 = 64;

/// Values of columns; those that are not there can have any value.
pub(super) type Model = FxHashMap<Column, i64>;

/// A column that is gone, and how to find its value from those of the others.
enum Eliminated {
    /// The row is zero, and the column's coefficient in it is 1 or -1.
    Equal(Column, RowId),
    /// All rows with the column.
    Between(Column, Vec<RowId>),
}

/// The tightest rows with coefficients, and with their opposites.
#[derive(Default)]
struct Sides {
    low: Option<RowId>,
    high: Option<RowId>,
}

/// A column to eliminate.
struct Choice {
    column: Column,
    lower: Vec<RowId>,
    upper: Vec<RowId>,
    exact: bool,
}

impl Prover<'_> {
    /// Refutes rows, or finds a model of them.
    pub(super) fn linear(&mut self, given: Vec<RowId>) -> Attempt {
        let mut rows = given.clone();
        let mut eliminated = Vec::new();
        loop {
            if !self.spend(rows.len()) {
                return Attempt::Unknown;
            }
            let equality = match self.tidy(&mut rows) {
                Ok(equality) => equality,
                Err(Some(contradiction)) => return Attempt::Refuted(Closed::Contradiction(contradiction)),
                Err(None) => return Attempt::Unknown,
            };
            if let Some((low, high)) = equality {
                match self.substitute(&mut rows, low, high) {
                    Some(gone) => eliminated.extend(gone),
                    None => return self.enumerate(&given),
                }
                continue;
            }
            let Some(choice) = self.choose(&rows) else { return self.model(Model::default(), &eliminated) };
            let Choice { column, lower, upper, exact } = choice;
            let (mut rest, mut misfit) = (rows.clone(), false);
            rest.retain(|row| self.log.row(*row).coefficient(column) == 0);
            for &low in &lower {
                for &high in &upper {
                    let (b, a) = (self.log.row(low).coefficient(column), -self.log.row(high).coefficient(column));
                    // Long rows take longer.
                    if !self.spend(1 + (self.log.row(low).terms.len() + self.log.row(high).terms.len()) / 8) {
                        return Attempt::Unknown;
                    }
                    let sum = self.log.sum(&[(a, low), (b, high)]);
                    misfit |= sum.is_none();
                    rest.extend(sum);
                }
            }
            // A row that does not fit is left out: a model then may be none, which is found out later.
            if misfit && let outcome @ (Attempt::Refuted(_) | Attempt::Model(_)) = self.enumerate(&given) {
                return outcome;
            }
            if exact {
                eliminated.push(Eliminated::Between(column, lower.into_iter().chain(upper).collect()));
                rows = rest;
                continue;
            }
            let model = match self.linear(rest) {
                Attempt::Model(model) => model,
                other => return other,
            };
            let found = match self.between(column, lower.iter().chain(&upper), &model) {
                Some((low, high)) if low <= high => {
                    let mut model = model;
                    model.insert(column, nearest_zero(low, high));
                    return self.model(model, &eliminated);
                }
                Some((low, _)) => self.gap(&rows, column, &lower, low, &model),
                None => Attempt::Unknown,
            };
            return match found {
                Attempt::Model(model) => self.model(model, &eliminated),
                other => other,
            };
        }
    }

    /// Keeps the tightest of rows with the same coefficients. Finds an equality as two rows, one whose column can be
    /// solved for if there is one. Fails with a contradiction, or with nothing if its number does not fit.
    fn tidy(&mut self, rows: &mut Vec<RowId>) -> Result<Option<(RowId, RowId)>, Option<RowId>> {
        let mut table: IndexMap<Coefficients, Sides, FxBuildHasher> = IndexMap::default();
        for &id in rows.iter() {
            let row = self.log.row(id);
            let Some((_, first)) = row.terms.first() else {
                if row.constant < 0 {
                    return Err(Some(id));
                }
                continue;
            };
            let mut key = row.terms.clone();
            let is_low = *first > 0;
            if !is_low {
                key.iter_mut().for_each(|(_, c)| *c = c.saturating_neg());
            }
            let sides = table.entry(key).or_default();
            let side = if is_low { &mut sides.low } else { &mut sides.high };
            if side.is_none_or(|old| self.log.row(old).constant > row.constant) {
                *side = Some(id);
            }
        }
        rows.clear();
        let mut equality: Option<(usize, RowId, RowId)> = None;
        for (key, sides) in &table {
            if let (Some(low), Some(high)) = (sides.low, sides.high) {
                let width = self.log.row(low).constant.saturating_add(self.log.row(high).constant);
                if width < 0 {
                    return Err(self.log.sum(&[(1, low), (1, high)]));
                }
                // Short ones first: they keep numbers small.
                let solvable = key.iter().any(|(_, c)| c.abs() == 1);
                let effort = if solvable { key.len() } else { usize::MAX };
                if width == 0 && equality.is_none_or(|(least, ..)| effort < least) {
                    equality = Some((effort, low, high));
                }
            }
            rows.extend(sides.low.into_iter().chain(sides.high));
        }
        Ok(equality.map(|(_, low, high)| (low, high)))
    }

    /// Uses the equality `low == 0` (`high` is its opposite) to eliminate a column. One with coefficient 1 or -1 is
    /// replaced everywhere. Without one, the equality `k·(x + …) + e == 0`, k being the smallest coefficient, says that k
    /// divides e: with the quotient t of e, `x + … + t == 0` can be solved for x, which leaves `e == k·t`, where
    /// coefficients are smaller. Nothing if a number does not fit.
    fn substitute(&mut self, rows: &mut Vec<RowId>, low: RowId, high: RowId) -> Option<Option<Eliminated>> {
        let equal = self.log.row(low).clone();
        let count = |column: Column| rows.iter().filter(|row| self.log.row(**row).coefficient(column) != 0).count();
        let unit = equal.terms.iter().filter(|(_, c)| c.abs() == 1).min_by_key(|(column, _)| count(*column));
        if let Some(&(column, _)) = unit {
            return self.replace(rows, column, low, high).map(Some);
        }
        let &(column, k) = equal.terms.iter().min_by_key(|(_, c)| c.abs())?;
        let k = k.checked_abs()?;
        // The remainder nearest to zero: then coefficients are halved.
        let remainder = |c: i64| c.checked_add(k / 2).map(|shifted| shifted.rem_euclid(k) - k / 2);
        let remainders = equal.terms.iter().map(|(column, c)| Some((*column, remainder(*c)?)));
        let terms: Coefficients = remainders.collect::<Option<_>>()?;
        let rest =
            Row { terms: terms.into_iter().filter(|(_, c)| *c != 0).collect(), constant: remainder(equal.constant)? };
        let (below, above) = self.quotient(&self.log.expression(&rest)?, k)?;
        rows.extend([below, above]);
        let (high, low) = (self.log.sum(&[(1, below), (1, high)])?, self.log.sum(&[(1, above), (1, low)])?);
        if self.log.row(low).coefficient(column).abs() == 1 {
            return self.replace(rows, column, low, high).map(Some);
        }
        // The quotient was an unknown already, this very one: the new equality is news nevertheless.
        rows.extend([low, high]);
        Some(None)
    }

    /// Replaces a column that has coefficient 1 or -1 in `low == 0` in all other rows.
    fn replace(&mut self, rows: &mut Vec<RowId>, column: Column, low: RowId, high: RowId) -> Option<Eliminated> {
        let sign = self.log.row(low).coefficient(column);
        let mut replaced = Vec::with_capacity(rows.len());
        for &row in rows.iter().filter(|row| **row != low && **row != high) {
            let c = self.log.row(row).coefficient(column);
            if c == 0 {
                replaced.push(row);
                continue;
            }
            let other = if (c > 0) == (sign > 0) { high } else { low };
            replaced.push(self.log.sum(&[(1, row), (c.checked_abs()?, other)])?);
        }
        *rows = replaced;
        Some(Eliminated::Equal(column, low))
    }

    /// Where numbers do not fit, the column with the fewest values, if it has few, is halved until they do.
    fn enumerate(&mut self, rows: &[RowId]) -> Attempt {
        let mut bounds: IndexMap<Column, (Option<i64>, Option<i64>), FxBuildHasher> = IndexMap::default();
        for &id in rows {
            let row = self.log.row(id);
            if let [(column, 1 | -1)] = row.terms.as_slice() {
                let (low, high) = bounds.entry(*column).or_default();
                let value = bound(row, *column, &Model::default());
                if row.terms[0].1 > 0 {
                    *low = value.max(*low);
                } else {
                    *high = high.iter().copied().chain(value).min();
                }
            }
        }
        let width =
            |(low, high): &(Option<i64>, Option<i64>)| high.zip(*low).and_then(|(high, low)| high.checked_sub(low));
        let narrow = bounds.iter().filter_map(|(column, sides)| Some((width(sides)?, *column, sides.0?)));
        match narrow.filter(|(width, ..)| (1..=MAX_WIDTH).contains(width)).min() {
            Some((width, column, low)) => {
                let Some(constant) = (low + (width + 1) / 2).checked_neg() else { return Attempt::Unknown };
                let split = Row { terms: smallvec![(column, 1)], constant };
                self.sign_cases(&split, |prover, row| prover.linear(rows.iter().copied().chain([row]).collect()))
            }
            None => Attempt::Unknown,
        }
    }

    /// The two rows about `floor_div(e, k)`.
    pub(super) fn quotient(&mut self, e: &Ix, k: i64) -> Option<(RowId, RowId)> {
        let remainder = e.sub(&e.floor_div(k).ok()?.scale(k).ok()?).ok()?;
        let below = self.log.linear(&remainder)?;
        let above = self.log.linear(&Ix::from(k - 1).sub(&remainder).ok()?)?;
        let below = self.log.push(below, Reason::QuotientLow(e.clone(), k));
        let above = self.log.push(above, Reason::QuotientHigh(e.clone(), k));
        Some((below, above))
    }

    /// The column whose elimination makes the fewest rows, exact ones first.
    fn choose(&self, rows: &[RowId]) -> Option<Choice> {
        #[derive(Default)]
        struct Count {
            lower: usize,
            upper: usize,
            large_lower: bool,
            large_upper: bool,
        }
        let mut counts: IndexMap<Column, Count, FxBuildHasher> = IndexMap::default();
        for &row in rows {
            for (column, c) in &self.log.row(row).terms {
                let count = counts.entry(*column).or_default();
                if *c > 0 {
                    count.lower += 1;
                    count.large_lower |= *c > 1;
                } else {
                    count.upper += 1;
                    count.large_upper |= *c < -1;
                }
            }
        }
        let is_exact = |count: &Count| !(count.large_lower && count.large_upper);
        let (column, count) = counts.iter().min_by_key(|(column, count)| {
            let growth = (count.lower * count.upper) as i64 - (count.lower + count.upper) as i64;
            (!is_exact(count), growth, std::cmp::Reverse(**column))
        })?;
        let side = |sign: i64| {
            rows.iter().copied().filter(|row| self.log.row(*row).coefficient(*column).signum() == sign).collect()
        };
        Some(Choice { column: *column, lower: side(1), upper: side(-1), exact: is_exact(count) })
    }

    /// No integer lies between the rows of a column, though a number does. Where bounds are near, it is soon settled
    /// whether the column is above or below that number (branch and bound); after a few such cases, a lower bound `e >= 0`
    /// with a coefficient above one that is in the way is either zero, which is an equality, or at least one.
    fn gap(&mut self, rows: &[RowId], column: Column, lower: &[RowId], low: i64, model: &Model) -> Attempt {
        let split = if self.branches < MAX_BRANCHES {
            low.checked_neg().map(|constant| Row { terms: smallvec![(column, 1)], constant })
        } else {
            let in_the_way = lower.iter().copied().find(|row| {
                let row = self.log.row(*row);
                row.coefficient(column) > 1 && bound(row, column, model) == Some(low)
            });
            in_the_way.and_then(|row| self.log.row(row).clone().plus(-1))
        };
        let Some(split) = split else { return Attempt::Unknown };
        self.branches += 1;
        let outcome = self.sign_cases(&split, |prover, row| prover.linear(rows.iter().copied().chain([row]).collect()));
        self.branches -= 1;
        outcome
    }

    /// Solves the cases `e >= 0` and `e < 0`; `solve` gets the row that says so.
    pub(super) fn sign_cases(&mut self, e: &Row, mut solve: impl FnMut(&mut Self, RowId) -> Attempt) -> Attempt {
        let opposite = e.negated().plus(-1);
        let (Some(e_ix), Some(opposite)) = (self.log.expression(e), opposite) else { return Attempt::Unknown };
        // The negative case first: in index arithmetic it is the one that is refuted.
        let mut refuted = [None, None];
        for (at, row) in [(1, opposite), (0, e.clone())] {
            let Some(cond) = self.log.expression(&row).map(Cond::Ge) else { return Attempt::Unknown };
            let outcome = self.case(cond, |prover, given| {
                let id = prover.log.push(row.clone(), Reason::Given(given));
                solve(prover, id)
            });
            match outcome {
                Ok(branch) => refuted[at] = Some(branch),
                Err(Attempt::Unknown) => {}
                Err(other) => return other,
            }
        }
        let [Some(positive), Some(negative)] = refuted else { return Attempt::Unknown };
        Attempt::Refuted(Closed::Cases(CaseSplit::Sign(e_ix), vec![positive, negative]))
    }

    /// The least and largest value of a column between its rows.
    fn between<'r>(
        &self,
        column: Column,
        rows: impl IntoIterator<Item = &'r RowId>,
        model: &Model,
    ) -> Option<(i64, i64)> {
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        for row in rows {
            let row = self.log.row(*row);
            let value = bound(row, column, model)?;
            if row.coefficient(column) > 0 { low = low.max(value) } else { high = high.min(value) }
        }
        Some((low, high))
    }

    /// The model with values for the eliminated columns, last one first.
    fn model(&self, mut model: Model, eliminated: &[Eliminated]) -> Attempt {
        for gone in eliminated.iter().rev() {
            let found = match gone {
                Eliminated::Equal(column, row) => bound(self.log.row(*row), *column, &model).map(|v| (*column, v)),
                Eliminated::Between(column, rows) => self
                    .between(*column, rows, &model)
                    .filter(|(low, high)| low <= high)
                    .map(|(low, high)| (*column, nearest_zero(low, high))),
            };
            let Some((column, value)) = found else { return Attempt::Unknown };
            model.insert(column, value);
        }
        Attempt::Model(model)
    }
}

/// What a row says of a column: a least value if its coefficient is positive, else a largest one.
fn bound(row: &Row, column: Column, model: &Model) -> Option<i64> {
    let coefficient = i128::from(row.coefficient(column));
    let rest = row.eval(|other| if other == column { 0 } else { model.get(&other).copied().unwrap_or(0) })?;
    // c·x + rest >= 0
    let value = if coefficient > 0 { -rest.div_euclid(coefficient) } else { rest.div_euclid(-coefficient) };
    i64::try_from(value).ok()
}

fn nearest_zero(low: i64, high: i64) -> i64 {
    0.clamp(low, high)
}
