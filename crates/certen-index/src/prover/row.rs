//! Rows: linear expressions over numbered unknowns, at least zero, and the log of how each was derived.
//!
//! An unknown (a *column*) is a monomial of index expressions. Rows are kept sparse. The log is a stack: a case split
//! ends by taking from it what its branches need.

use std::collections::BTreeSet;
use std::ops::Range;

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use crate::ix::{Ix, Mono, gcd};
use crate::witness::{CaseSplit, ProofEnd, ProofStep, Reason, Refutation, Witness};

/// A number of an unknown.
pub(super) type Column = usize;

/// A place in the log.
pub(super) type RowId = usize;

pub(super) type Coefficients = SmallVec<[(Column, i64); 4]>;

/// `Σ coefficient · column + constant`, columns in order, no coefficient zero, no number without an opposite.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Row {
    pub terms: Coefficients,
    pub constant: i64,
}

impl Row {
    pub fn coefficient(&self, column: Column) -> i64 {
        self.terms.binary_search_by_key(&column, |(c, _)| *c).map_or(0, |at| self.terms[at].1)
    }

    /// The value where unknowns have these values.
    pub fn eval(&self, value: impl Fn(Column) -> i64) -> Option<i128> {
        self.terms.iter().try_fold(i128::from(self.constant), |sum, (column, c)| {
            sum.checked_add(i128::from(*c).checked_mul(i128::from(value(*column)))?)
        })
    }

    pub fn negated(&self) -> Row {
        Row { terms: self.terms.iter().map(|(column, c)| (*column, -c)).collect(), constant: -self.constant }
    }

    pub fn plus(mut self, constant: i64) -> Option<Row> {
        self.constant = self.constant.checked_add(constant).filter(|constant| *constant != i64::MIN)?;
        Some(self)
    }
}

/// How a branch ended: its rows are those of the log, by place.
#[derive(Clone, Debug)]
pub(super) enum Closed {
    Contradiction(RowId),
    Cases(CaseSplit, Vec<Branch>),
}

/// A refuted case: the rows of the log that it needs, its own and those from before it.
#[derive(Clone, Debug)]
pub(super) struct Branch {
    own: Vec<(RowId, Row, Reason)>,
    basis: Basis,
    end: Closed,
}

/// What a refutation rests on, from before it.
#[derive(Clone, Debug, Default)]
struct Basis {
    rows: BTreeSet<RowId>,
    hypotheses: BTreeSet<usize>,
}

impl Closed {
    /// Numbers hypotheses from `first` on lower, as those of a case that is not needed are gone.
    fn renumber(&mut self, first: usize, by: usize) {
        let lower = |hypothesis: &mut usize| *hypothesis -= if *hypothesis >= first { by } else { 0 };
        let Closed::Cases(split, branches) = self else { return };
        if let CaseSplit::Either(hypothesis) = split {
            lower(hypothesis);
        }
        for branch in branches {
            for (_, _, reason) in &mut branch.own {
                if let Reason::Given(hypothesis) | Reason::Reversed(hypothesis) = reason {
                    lower(hypothesis);
                }
            }
            branch.basis.hypotheses = std::mem::take(&mut branch.basis.hypotheses)
                .into_iter()
                .map(|mut hypothesis| {
                    lower(&mut hypothesis);
                    hypothesis
                })
                .collect();
            branch.end.renumber(first, by);
        }
    }
}

/// The unknowns, and every row with its reason; reasons speak of places in the log.
#[derive(Default)]
pub(super) struct Log {
    columns: IndexSet<Mono, FxBuildHasher>,
    rows: Vec<(Row, Reason)>,
    /// Where each row stands; places after the end of the log are stale.
    places: FxHashMap<Row, RowId>,
}

impl Log {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
    }

    pub fn row(&self, id: RowId) -> &Row {
        &self.rows[id].0
    }

    /// Adds a row, or finds the equal one that is there.
    pub fn push(&mut self, row: Row, reason: Reason) -> RowId {
        if let Some(place) = self.place(&row) {
            return place;
        }
        self.places.insert(row.clone(), self.rows.len());
        self.rows.push((row, reason));
        self.rows.len() - 1
    }

    /// Where a row stands.
    pub fn place(&self, row: &Row) -> Option<RowId> {
        let here = |place: &RowId| self.rows.get(*place).is_some_and(|(content, _)| content == row);
        self.places.get(row).copied().filter(here)
    }

    pub fn column(&mut self, mono: &Mono) -> Column {
        match self.columns.get_index_of(mono) {
            Some(at) => at,
            None => self.columns.insert_full(mono.clone()).0,
        }
    }

    pub fn known(&self, mono: &Mono) -> Option<Column> {
        self.columns.get_index_of(mono)
    }

    pub fn mono(&self, column: Column) -> &Mono {
        &self.columns[column]
    }

    /// An expression as a row, if its numbers have opposites.
    pub fn linear(&mut self, e: &Ix) -> Option<Row> {
        if e.constant_part() == i64::MIN || e.terms().iter().any(|(_, c)| *c == i64::MIN) {
            return None;
        }
        let mut terms: Coefficients = e.terms().iter().map(|(mono, c)| (self.column(mono), *c)).collect();
        terms.sort_unstable();
        Some(Row { terms, constant: e.constant_part() })
    }

    /// A row as an expression.
    pub fn expression(&self, row: &Row) -> Option<Ix> {
        let terms = row.terms.iter().map(|(column, c)| (self.mono(*column).clone(), *c)).collect();
        Ix::from_terms(row.constant, terms).ok()
    }

    /// A sum of rows with positive multipliers, tightened. Nothing if a number does not fit.
    pub fn sum(&mut self, parts: &[(i64, RowId)]) -> Option<RowId> {
        let common = parts.iter().fold(0, |common, (times, _)| gcd(common, times.unsigned_abs().into())) as i64;
        let mut multipliers: Vec<(i64, RowId)> = parts.iter().map(|(times, row)| (times / common, *row)).collect();
        multipliers.sort_unstable_by_key(|(_, row)| *row);
        let mut constant = 0i128;
        let mut terms: SmallVec<[(Column, i128); 8]> = SmallVec::new();
        for (times, id) in &multipliers {
            let row = self.row(*id);
            let times = i128::from(*times);
            constant = constant.checked_add(times.checked_mul(row.constant.into())?)?;
            for (column, c) in &row.terms {
                terms.push((*column, times.checked_mul((*c).into())?));
            }
        }
        terms.sort_unstable_by_key(|(column, _)| *column);
        // Of two numbers of 126 bits the sum fits; of more rows it may not, and is refused below.
        terms.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = earlier.1.saturating_add(later.1);
            }
            same
        });
        terms.retain(|(_, c)| *c != 0);
        let common = terms.iter().fold(0, |common, (_, c)| gcd(common, c.unsigned_abs())).max(1);
        let common = i128::try_from(common).ok()?;
        let fits = |number: i128| i64::try_from(number).ok().filter(|number| *number != i64::MIN);
        let terms = terms.iter().map(|(column, c)| Some((*column, fits(c / common)?)));
        let row = Row { terms: terms.collect::<Option<_>>()?, constant: fits(constant.div_euclid(common))? };
        Some(self.push(row, Reason::Sum(multipliers)))
    }

    /// Ends a case that began when the log had `start` rows: takes the rows that its end rests on. A case that does not
    /// rest on its own hypotheses is none: its end is that of the case around it.
    pub fn close(&mut self, start: usize, hypotheses: Range<usize>, mut end: Closed) -> Result<Branch, Closed> {
        let mut basis = Basis::default();
        match &end {
            Closed::Contradiction(row) => {
                basis.rows.insert(*row);
            }
            Closed::Cases(split, branches) => {
                if let CaseSplit::Either(hypothesis) = split {
                    basis.hypotheses.insert(*hypothesis);
                }
                for branch in branches {
                    basis.rows.extend(&branch.basis.rows);
                    basis.hypotheses.extend(&branch.basis.hypotheses);
                }
            }
        }
        let mut own = Vec::new();
        while let Some(row) = basis.rows.last().copied().filter(|row| *row >= start) {
            basis.rows.remove(&row);
            let reason = &self.rows[row].1;
            match reason {
                Reason::Given(hypothesis) | Reason::Reversed(hypothesis) => {
                    basis.hypotheses.insert(*hypothesis);
                }
                Reason::Sum(parts) => basis.rows.extend(parts.iter().map(|(_, part)| *part)),
                Reason::Product(a, b) | Reason::Multiple(a, b, _) => basis.rows.extend([*a, *b]),
                _ => {}
            }
            own.push(row);
        }
        if !hypotheses.is_empty() && basis.hypotheses.range(hypotheses.clone()).next().is_none() {
            end.renumber(hypotheses.end, hypotheses.len());
            return Err(end);
        }
        let taken = |row: RowId| (row, self.rows[row].0.clone(), self.rows[row].1.clone());
        let own = own.into_iter().rev().map(taken).collect();
        self.rows.truncate(start);
        Ok(Branch { own, basis, end })
    }

    /// The witness of a refutation: places in the log become positions among the rows that are needed.
    pub fn witness(&self, root: &Branch) -> Option<Witness> {
        Some(Witness { root: self.derivation(root, &mut Vec::new())? })
    }

    /// `rows` are the places of the rows so far.
    fn derivation(&self, branch: &Branch, rows: &mut Vec<RowId>) -> Option<Refutation> {
        let before = rows.len();
        let mut steps = Vec::with_capacity(branch.own.len());
        for (row, content, reason) in &branch.own {
            let at = |id: &RowId| rows.binary_search(id).ok();
            let reason = match reason {
                Reason::Sum(parts) => {
                    Reason::Sum(parts.iter().map(|(times, part)| Some((*times, at(part)?))).collect::<Option<_>>()?)
                }
                Reason::Product(a, b) => Reason::Product(at(a)?, at(b)?),
                Reason::Multiple(a, b, factor) => Reason::Multiple(at(a)?, at(b)?, factor.clone()),
                other => other.clone(),
            };
            steps.push(ProofStep { row: self.expression(content)?, reason });
            rows.push(*row);
        }
        let end = match &branch.end {
            Closed::Contradiction(row) => ProofEnd::Contradiction(rows.binary_search(row).ok()?),
            Closed::Cases(split, branches) => {
                let cases = branches.iter().map(|branch| self.derivation(branch, rows)).collect::<Option<_>>()?;
                ProofEnd::Cases(split.clone(), cases)
            }
        };
        rows.truncate(before);
        Some(Refutation { steps, end })
    }
}
