//! Products: what rows say of the monomials that are products.
//!
//! Two expressions that are at least zero have a product that is. For a product `x*y` among the unknowns, rows about x
//! are multiplied by bounds of y (`0 <= i < m` and `n >= 1` give `i*n <= m*n - n`: what a flattened index needs). Where
//! y has no bound yet, its sign is a case split. The number of products is limited.

use smallvec::SmallVec;

use super::row::{Row, RowId};
use super::{Prover, Scope};
use crate::ix::Mono;
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
const MAX_PRODUCTS: usize = 64;

/// Rows with more terms are not multiplied.
const MAX_TERMS: usize = 8;

impl Prover<'_> {
    /// Adds products of rows to a case.
    pub(super) fn multiply(&mut self, scope: &mut Scope) -> Progress {
        let mut split = None;
        let mut progress = false;
        for product in self.wanted(scope) {
            for (at, atom) in product.iter().enumerate() {
                let single: Mono = [atom.clone()].into_iter().collect();
                let rest: Mono = product.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, a)| a.clone()).collect();
                let bounds = self.rows_about(scope, &single, 1);
                if bounds.is_empty() && split.is_none() {
                    let column = self.log.column(&single);
                    split = Some(Row { terms: SmallVec::from_iter([(column, 1)]), constant: 0 });
                }
                for about in self.rows_about(scope, &rest, MAX_TERMS) {
                    for &bound in &bounds {
                        let pair = (about.min(bound), about.max(bound));
                        if scope.products.len() >= MAX_PRODUCTS || !scope.products.insert(pair) {
                            continue;
                        }
                        progress |= self.product(scope, pair);
                    }
                }
            }
        }
        if progress {
            self.define(scope);
            return Progress::Rows;
        }
        split.map_or(Progress::None, Progress::Cases)
    }

    /// The products among the unknowns and their factors that are products, small ones first.
    fn wanted(&self, scope: &Scope) -> Vec<Mono> {
        let mut wanted: Vec<Mono> = Vec::new();
        let mut columns: Vec<_> = scope.defined.iter().copied().collect();
        columns.sort_unstable();
        for column in columns {
            let mono = self.log.mono(column);
            if mono.len() > 4 {
                continue;
            }
            for end in 2..=mono.len() {
                let part: Mono = mono[..end].iter().cloned().collect();
                if !wanted.contains(&part) {
                    wanted.push(part);
                }
            }
        }
        wanted.sort_by_key(SmallVec::len);
        wanted
    }

    /// The rows in which a monomial stands, of at most so many terms.
    fn rows_about(&self, scope: &Scope, mono: &Mono, terms: usize) -> Vec<RowId> {
        let Some(column) = self.log.known(mono) else { return Vec::new() };
        let about = |row: &&RowId| {
            let row = self.log.row(**row);
            row.terms.len() <= terms && row.coefficient(column) != 0
        };
        scope.rows.iter().filter(about).copied().collect()
    }

    fn product(&mut self, scope: &mut Scope, (a, b): (RowId, RowId)) -> bool {
        let expression = |id: RowId| self.log.expression(self.log.row(id));
        let product = expression(a).zip(expression(b)).and_then(|(a, b)| a.mul(&b).ok());
        let tightened = |e: crate::Ix| e.divided(|constant, common| Some(constant.div_euclid(common)));
        let Some(product) = product.and_then(tightened) else { return false };
        if !self.spend(4) {
            return false;
        }
        let row = self.log.linear(&product);
        let id = self.log.push(row, Reason::Product(a, b));
        let fresh = !scope.rows.contains(&id);
        if fresh {
            scope.rows.push(id);
        }
        fresh
    }
}

