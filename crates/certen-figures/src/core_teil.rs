//! Translation of TeIL into Core-TeIL (TeIL, Sec. 4.1): any operation is the one on the first dimensions, with
//! transpositions of neighbours before and after it.
//!
//! Needs: a typed program, so that positions exist. Guarantees: the same meaning (tested in `certen-testgen`). The way
//! back is free: every Core-TeIL program is a TeIL program.

use certen_core::ReduceOp;
use certen_dialects::algebra::{Expr, ExprId, Notation, Program, Stmt, one_by_one};
use certen_syntax::Span;

/// The program in Core-TeIL. Operations must be TeIL's, and positions must exist.
pub(crate) fn to_core_teil(program: &Program) -> Program {
    let mut core = Program {
        notation: Notation::CoreTeil,
        decls: program.decls.clone(),
        wheres: program.wheres.clone(),
        ..Program::default()
    };
    let mut translated: Vec<ExprId> = Vec::with_capacity(program.exprs.len());
    for id in program.ids() {
        let mut build = CoreTeilBuilder { core: &mut core, span: program.span(id) };
        let id = build.expr(program.expr(id), &translated);
        translated.push(id);
    }
    let stmts = program.stmts.iter().map(|stmt| Stmt { value: translated[stmt.value.index()], ..stmt.clone() });
    core.stmts = stmts.collect();
    core
}

struct CoreTeilBuilder<'a> {
    core: &'a mut Program,
    span: Span,
}

impl CoreTeilBuilder<'_> {
    fn add(&mut self, expr: Expr) -> ExprId {
        self.core.add(expr, self.span)
    }

    /// An operation applied to an expression, in parentheses as an operand has to be.
    fn apply(&mut self, make: impl FnOnce(ExprId) -> Expr, e: ExprId) -> ExprId {
        let operand = match self.core.expr(e) {
            Expr::Var(_) | Expr::Paren(_) => e,
            _ => self.add(Expr::Paren(e)),
        };
        self.add(make(operand))
    }

    /// The dimension at `from` moved to `to`, the others keeping their order: transpositions of neighbours.
    fn moved(&mut self, mut e: ExprId, from: i64, to: i64) -> ExprId {
        let steps: Vec<i64> = if from > to { (to..from).rev().collect() } else { (from..to).collect() };
        for i in steps {
            e = self.apply(|e| Expr::Transp([(i, i + 1)].into(), e), e);
        }
        e
    }

    fn expr(&mut self, expr: &Expr, translated: &[ExprId]) -> ExprId {
        let part = |id: &ExprId| translated[id.index()];
        match expr {
            Expr::Var(_) | Expr::Paren(_) | Expr::Elem(..) | Expr::Prod(..) | Expr::Scale(..) | Expr::Power(..) => {
                self.add(expr.map(|e| part(&e)))
            }
            Expr::Red(op, i, e) => self.red(*op, *i, part(e)),
            Expr::Transp(pairs, e) => pairs.iter().fold(part(e), |e, &(i0, i1)| {
                let (low, high) = (i0.min(i1), i0.max(i1));
                let down = self.moved(e, high, low);
                // The dimension that was at `low` is now after it.
                self.moved(down, low + 1, high)
            }),
            Expr::Diag(i0, i1, e) => self.diag(*i0, *i1, part(e)),
            Expr::Contr(pairs, e) => one_by_one(pairs).into_iter().fold(part(e), |e, (i0, i1)| {
                let diagonal = self.diag(i0, i1, e);
                self.red(ReduceOp::Sum, i0.min(i1), diagonal)
            }),
            Expr::Expa(i, n, e) => {
                let n = n.clone();
                let first = self.apply(|e| Expr::Expa(1, n, e), part(e));
                self.moved(first, 1, *i)
            }
            Expr::Proj(i, m, e) => {
                let m = m.clone();
                let first = self.moved(part(e), *i, 1);
                self.apply(|e| Expr::Proj(1, m, e), first)
            }
        }
    }

    fn red(&mut self, op: ReduceOp, i: i64, e: ExprId) -> ExprId {
        let first = self.moved(e, i, 1);
        self.apply(|e| Expr::Red(op, 1, e), first)
    }

    /// Both dimensions to the front, the earlier one first; the diagonal back to where the earlier one was.
    fn diag(&mut self, i0: i64, i1: i64, e: ExprId) -> ExprId {
        let (low, high) = (i0.min(i1), i0.max(i1));
        let first = self.moved(e, low, 1);
        let both = self.moved(first, high, 2);
        let diagonal = self.apply(|e| Expr::Diag(1, 2, e), both);
        self.moved(diagonal, 1, low)
    }
}
