//! Products: what rows say of the monomials that are products.
//!
//! The linear part treats `x*y` as an unknown of its own. Where a model gets such a product wrong, rows about x are
//! multiplied by y if y is not negative, and equalities about x in any case: `i < m` and `n >= 1` give `i*n <= m*n - n`,
//! which is what a flattened index needs. Where the sign of y is not known it is a case split, and so is the order of x and z
//! for two products `x*y` and `z*y`. The number of products is limited.

use smallvec::{SmallVec, smallvec};

use super::row::{Row, RowId};
use super::{Prover, ProverScope};
use crate::ix::{Atom, Ix, Mono};
use crate::witness::Reason;

/// What can be done about a product that the model does not understand.
pub(super) enum Progress {
    /// There are new rows.
    Rows,
    /// Solve the cases of this row's sign.
    Cases(Row),
    /// Nothing.
    None,
}

/// Products of rows in one case.
const MAX_PRODUCTS: usize = 96;

/// Rows in one case, products among them.
const MAX_ROWS: usize = 160;

/// Rows with more terms are not multiplied, nor products of more factors looked at.
const MAX_TERMS: usize = 6;
const MAX_FACTORS: usize = 4;

impl Prover<'_> {
    /// Adds products of rows to a case.
    pub(super) fn multiply(&mut self, scope: &mut ProverScope) -> Progress {
        let wanted = self.wanted(scope);
        if let Some(row) = self.unknown_sign(scope, &wanted) {
            return Progress::Cases(row);
        }
        let known = scope.rows.len();
        for product in &wanted {
            for at in 0..product.len() {
                let (single, rest) = taken_out(product, at);
                for about in self.rows_about(scope, &single) {
                    self.times(scope, about, &rest);
                    if let (1, (Some(bound), _)) = (rest.len(), self.bounds(scope, &rest)) {
                        self.times_bound(scope, about, bound);
                    }
                }
            }
        }
        if scope.rows.len() > known {
            self.define(scope);
            return Progress::Rows;
        }
        let cases = self.unknown_order(scope, &wanted).or_else(|| self.maybe_zero(scope, &wanted));
        cases.map_or(Progress::None, Progress::Cases)
    }

    /// The products among the unknowns, in order.
    fn wanted(&self, scope: &ProverScope) -> Vec<Mono> {
        let mut columns: Vec<_> = scope.defined.iter().copied().collect();
        columns.sort_unstable();
        let products = columns.into_iter().map(|column| self.log.mono(column).clone());
        products.filter(|mono| (2..=MAX_FACTORS).contains(&mono.len())).collect()
    }

    /// The rows in which an atom stands.
    fn rows_about(&self, scope: &ProverScope, single: &Mono) -> Vec<RowId> {
        let Some(column) = self.log.known(single) else { return Vec::new() };
        let about = |row: &&RowId| {
            let row = self.log.row(**row);
            row.terms.len() <= MAX_TERMS && row.coefficient(column) != 0
        };
        scope.rows.iter().filter(about).copied().collect()
    }

    /// Adds a row times a monomial, or times its opposite if that is what is not negative.
    fn times(&mut self, scope: &mut ProverScope, row: RowId, factor: &Mono) {
        if scope.products.len() >= MAX_PRODUCTS || scope.products.contains(&(row, factor.clone())) || !self.spend(4) {
            return;
        }
        let opposite = self.log.place(&self.log.row(row).negated());
        let (reason, sign) = match opposite {
            Some(opposite) => (Reason::Multiple(row, opposite, Ix::monomial(factor, 1)), 1),
            None => match self.signed(scope, factor) {
                Some((factor, sign)) => (Reason::Product(row.min(factor), row.max(factor)), sign),
                None => return,
            },
        };
        let by = Ix::monomial(factor, sign);
        if self.product(scope, row, &by, reason) {
            scope.products.insert((row, factor.clone()));
        }
    }

    /// Adds a row times `y - low`, which says more than times y.
    fn times_bound(&mut self, scope: &mut ProverScope, row: RowId, bound: RowId) {
        let tighter = self.log.row(bound).constant < 0 && row != bound;
        if tighter
            && scope.rows.len() < MAX_ROWS
            && self.spend(4)
            && let Some(by) = self.log.expression(self.log.row(bound))
        {
            self.product(scope, row, &by, Reason::Product(row.min(bound), row.max(bound)));
        }
    }

    fn product(&mut self, scope: &mut ProverScope, row: RowId, by: &Ix, reason: Reason) -> bool {
        let product = self.log.expression(self.log.row(row)).and_then(|e| e.mul(by).ok());
        let Some(product) = product.map(Ix::tightened) else { return false };
        // Products of products only where they say something of what is there.
        let linear = self.log.row(row).terms.iter().all(|(column, _)| self.log.mono(*column).len() == 1);
        if !linear && product.terms().iter().any(|(mono, _)| self.log.known(mono).is_none()) {
            return false;
        }
        let Some(product) = self.log.linear(&product) else { return false };
        let id = self.log.push(product, reason);
        if !scope.rows.contains(&id) {
            scope.rows.push(id);
        }
        true
    }

    /// The row that says that a monomial or its opposite is not negative, and which (1 or -1), if the signs of all
    /// factors are known.
    fn signed(&mut self, scope: &ProverScope, mono: &Mono) -> Option<(RowId, i64)> {
        let mut product: Option<(RowId, i64, Mono)> = None;
        for atom in mono {
            let single: Mono = smallvec![atom.clone()];
            let (factor, own) = self.signed_atom(scope, &single)?;
            product = Some(match product {
                None => (factor, own, single),
                Some((row, sign, mut before)) => {
                    before.push(atom.clone());
                    let sign = sign * own;
                    let content = self.log.linear(&Ix::monomial(&before, sign))?;
                    (self.log.push(content, Reason::Product(row.min(factor), row.max(factor))), sign, before)
                }
            });
        }
        product.map(|(row, sign, _)| (row, sign))
    }

    /// `x - low >= 0` with low >= 0 gives `x >= 0`, and likewise for `-x`.
    fn signed_atom(&mut self, scope: &ProverScope, single: &Mono) -> Option<(RowId, i64)> {
        let (row, sign) = match self.bounds(scope, single) {
            (Some(low), _) => (low, 1),
            (None, Some(high)) => (high, -1),
            (None, None) => return None,
        };
        let constant = self.log.row(row).constant;
        if constant == 0 {
            return Some((row, sign));
        }
        let one = self.log.push(Row { terms: SmallVec::new(), constant: 1 }, Reason::One);
        Some((self.log.sum(&[(1, row), (constant.checked_neg()?, one)])?, sign))
    }

    /// The rows that bound an atom by numbers: from below, if that is not negative, and from above, if that is not
    /// positive.
    fn bounds(&self, scope: &ProverScope, single: &Mono) -> (Option<RowId>, Option<RowId>) {
        let Some(column) = self.log.known(single) else { return (None, None) };
        let find = |sign: i64| {
            let alone = |row: &&RowId| {
                let row = self.log.row(**row);
                row.terms.as_slice() == [(column, sign)] && row.constant <= 0
            };
            scope.rows.iter().filter(alone).min_by_key(|row| self.log.row(**row).constant).copied()
        };
        (find(1), find(-1))
    }

    /// A factor whose sign is not known.
    fn unknown_sign(&mut self, scope: &ProverScope, wanted: &[Mono]) -> Option<Row> {
        let unknown =
            |prover: &Self, atom: &Atom| matches!(prover.bounds(scope, &smallvec![atom.clone()]), (None, None));
        let atom = wanted.iter().flatten().find(|atom| unknown(self, atom))?;
        let column = self.log.column(&smallvec![atom.clone()]);
        Some(Row { terms: smallvec![(column, 1)], constant: 0 })
    }

    /// The difference of x and z, for products `x*y` and `z*y`, if its sign is not known, or only that it is not
    /// negative.
    fn unknown_order(&mut self, scope: &ProverScope, wanted: &[Mono]) -> Option<Row> {
        for (at, first) in wanted.iter().enumerate() {
            for second in &wanted[at + 1..] {
                let pairs = (0..first.len()).flat_map(|a| (0..second.len()).map(move |b| (a, b)));
                for (a, b) in pairs {
                    let ((x, y), (z, other)) = (taken_out(first, a), taken_out(second, b));
                    if y != other || x == z {
                        continue;
                    }
                    let difference = Ix::monomial(&x, 1).sub(&Ix::monomial(&z, 1)).ok()?;
                    let difference = self.log.linear(&difference)?;
                    let (more, less) = (self.least(scope, &difference), self.least(scope, &difference.negated()));
                    match (more, less) {
                        (None, None) => return Some(difference),
                        (Some(0), None) => return difference.plus(-1),
                        (None, Some(0)) => return difference.negated().plus(-1),
                        _ => {}
                    }
                }
            }
        }
        None
    }

    /// A factor that is not negative and may be zero: then the product is.
    fn maybe_zero(&mut self, scope: &ProverScope, wanted: &[Mono]) -> Option<Row> {
        wanted.iter().flatten().find_map(|atom| {
            let column = self.log.known(&smallvec![atom.clone()])?;
            let own = Row { terms: smallvec![(column, 1)], constant: -1 };
            let open = self.least(scope, &own) == Some(0) && self.least(scope, &own.negated()).is_none();
            open.then_some(own)
        })
    }

    /// The least value of a row without its constant that another row gives.
    fn least(&self, scope: &ProverScope, row: &Row) -> Option<i64> {
        let same = scope.rows.iter().map(|id| self.log.row(*id)).filter(|other| other.terms == row.terms);
        same.filter_map(|other| other.constant.checked_neg()).max()
    }
}

/// The factor at a position, and the others.
fn taken_out(product: &Mono, at: usize) -> (Mono, Mono) {
    let mut rest = product.clone();
    let single = smallvec![rest.remove(at)];
    (single, rest)
}
