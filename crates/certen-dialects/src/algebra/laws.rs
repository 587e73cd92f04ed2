//! Equations that make programs cheaper (TeIL, Sec. 3.6), as named values, and rewriting by them.
//!
//! Each [`Law`] says that its left side has the shape and the values of its right side where its condition holds, and
//! its right side is smaller: fewer expressions, or fewer pairs of positions. So rewriting ends. [`Typed::simplified`]
//! goes once over the arena, parts first; an operation whose parts are as simple as they get is rewritten until no law
//! fits. Needs: a typed program; a law is applied only if the prover shows its condition from the program's facts.
//! Guarantees: the same values over every ring; with `strict`, the same floats bit for bit (tested in
//! `certen-testgen`).

use certen_core::ReduceOp;
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::Span;

use super::ast::{Expr, ExprId, Pair, Program, Stmt};
use super::typed::Typed;

/// An equation, read from left to right.
#[derive(Debug)]
pub struct Law {
    /// What it is called here.
    pub name: &'static str,
    /// Where its paper states it, or what it follows from there.
    pub paper: &'static str,
    /// The expression that it fits.
    pub left: &'static str,
    /// What takes its place.
    pub right: &'static str,
    /// When it holds, beyond what typing has shown; empty if always.
    pub condition: &'static str,
    /// Whether floats are the same bit for bit (of NaNs, which one is open).
    pub exact: bool,
    apply: fn(&mut Rewriting<'_>, &Expr) -> Option<Simpler>,
}

/// An application of a law.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    /// The law.
    pub law: &'static Law,
    /// Where the expression that it was applied at stands.
    pub span: Span,
}

/// The right side of a law, at an expression.
enum Simpler {
    /// A part that is there, and is as simple as it gets.
    Part(ExprId),
    /// An operation on such parts, which another law may fit.
    Operation(Expr),
}

/// Every law, in the order in which they are tried.
pub static LAWS: [Law; 12] = [
    Law {
        name: "proj-expa",
        paper: "Eq. 3",
        left: "proj i m (expa i n e)",
        right: "e",
        condition: "m <= n",
        exact: true,
        apply: proj_expa,
    },
    Law {
        name: "diag-transp",
        paper: "Eq. 4",
        left: "diag i j (transp i j e)",
        right: "diag i j e",
        condition: "",
        exact: true,
        apply: diag_transp,
    },
    Law {
        name: "contr-transp",
        paper: "Eq. 4 and 6",
        left: "contr i j (transp i j e)",
        right: "contr i j e",
        condition: "",
        exact: true,
        apply: contr_transp,
    },
    Law {
        name: "transp-transp",
        paper: "Fig. 6",
        left: "transp i j (transp i j e)",
        right: "e",
        condition: "",
        exact: true,
        apply: transp_transp,
    },
    Law {
        name: "diag-expa",
        paper: "Fig. 6",
        left: "diag i j (expa j n e)",
        right: "e",
        condition: "i < j",
        exact: true,
        apply: diag_expa,
    },
    Law {
        name: "contr-expa",
        paper: "Fig. 6 and Eq. 6",
        left: "contr i j (expa j n e)",
        right: "red+ i e",
        condition: "i < j",
        exact: true,
        apply: contr_expa,
    },
    Law {
        name: "red+-expa",
        paper: "Eq. 5",
        left: "red+ i (expa i n e)",
        right: "n * e",
        condition: "",
        exact: false,
        apply: |at, expr| at.repeated(ReduceOp::Sum, expr).map(|(n, e)| Simpler::Operation(Expr::Scale(n, e))),
    },
    Law {
        name: "red*-expa",
        paper: "Eq. 5, by analogy",
        left: "red* i (expa i n e)",
        right: "e ^ n",
        condition: "",
        exact: false,
        apply: |at, expr| at.repeated(ReduceOp::Prod, expr).map(|(n, e)| Simpler::Operation(Expr::Power(n, e))),
    },
    Law {
        name: "redmin-expa",
        paper: "Eq. 5, by analogy",
        left: "redmin i (expa i n e)",
        right: "e",
        condition: "n >= 1",
        exact: true,
        apply: |at, expr| at.least_one(ReduceOp::Min, expr),
    },
    Law {
        name: "redmax-expa",
        paper: "Eq. 5, by analogy",
        left: "redmax i (expa i n e)",
        right: "e",
        condition: "n >= 1",
        exact: true,
        apply: |at, expr| at.least_one(ReduceOp::Max, expr),
    },
    Law {
        name: "scale-one",
        paper: "Eq. 5",
        left: "n * e",
        right: "e",
        condition: "n = 1",
        exact: true,
        apply: scale_one,
    },
    Law {
        name: "power-one",
        paper: "Eq. 5, by analogy",
        left: "e ^ n",
        right: "e",
        condition: "n = 1",
        exact: true,
        apply: power_one,
    },
];

fn proj_expa(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Proj(i, m, inner) = expr else { return None };
    match at.expr(*inner) {
        Expr::Expa(j, n, e) if i == j && at.shown(Cond::le(m, n).ok()) => Some(Simpler::Part(*e)),
        _ => None,
    }
}

fn diag_transp(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Diag(i0, i1, inner) = expr else { return None };
    let e = at.without(*inner, &[(*i0, *i1)])?;
    Some(Simpler::Operation(Expr::Diag(*i0, *i1, e)))
}

/// A pair that is exchanged and contracted is only contracted; other pairs stay.
fn contr_transp(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Contr(pairs, inner) = expr else { return None };
    let e = at.without(*inner, pairs)?;
    Some(Simpler::Operation(Expr::Contr(pairs.clone(), e)))
}

/// The pairs of a list have no position in common, so they can be exchanged in any order, and one that stands in both
/// lists cancels. With no pair left, nothing is exchanged.
fn transp_transp(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Transp(outer, inner) = expr else { return None };
    if outer.is_empty() {
        return Some(Simpler::Part(*inner));
    }
    let Expr::Transp(pairs, _) = at.expr(*inner) else { return None };
    let left: Box<[Pair]> = outer.iter().filter(|pair| !contains(pairs, **pair)).copied().collect();
    let e = at.without(*inner, outer)?;
    Some(if left.is_empty() { Simpler::Part(e) } else { Simpler::Operation(Expr::Transp(left, e)) })
}

fn diag_expa(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Diag(i0, i1, inner) = expr else { return None };
    match at.expr(*inner) {
        Expr::Expa(j, _, e) if j == i0.max(i1) => Some(Simpler::Part(*e)),
        _ => None,
    }
}

fn contr_expa(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Contr(pairs, inner) = expr else { return None };
    match (&**pairs, at.expr(*inner)) {
        (&[(i0, i1)], Expr::Expa(j, _, e)) if *j == i0.max(i1) => {
            Some(Simpler::Operation(Expr::Red(ReduceOp::Sum, i0.min(i1), *e)))
        }
        _ => None,
    }
}

fn scale_one(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Scale(n, e) = expr else { return None };
    at.typed.is_one(n).then_some(Simpler::Part(*e))
}

fn power_one(at: &mut Rewriting<'_>, expr: &Expr) -> Option<Simpler> {
    let Expr::Power(n, e) = expr else { return None };
    at.typed.is_one(n).then_some(Simpler::Part(*e))
}

/// Whether a list has a pair, in either order.
fn contains(pairs: &[Pair], (i0, i1): Pair) -> bool {
    pairs.iter().any(|&(j0, j1)| (j0, j1) == (i0, i1) || (j1, j0) == (i0, i1))
}

/// A program that is being rewritten: expressions of the new one, those that no law fits any more.
struct Rewriting<'a> {
    typed: &'a Typed,
    program: Program,
}

impl Rewriting<'_> {
    fn expr(&self, id: ExprId) -> &Expr {
        self.program.expr(id)
    }

    fn shown(&self, goal: Option<Cond>) -> bool {
        goal.is_some_and(|goal| self.typed.facts.prove(&goal) == Verdict::Yes)
    }

    /// A reduction of copies: how many, and of what.
    fn repeated(&self, op: ReduceOp, expr: &Expr) -> Option<(Ix, ExprId)> {
        match expr {
            Expr::Red(by, i, inner) if *by == op => match self.expr(*inner) {
                Expr::Expa(j, n, e) if i == j => Some((n.clone(), *e)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The smallest or largest of copies, if there are any.
    fn least_one(&self, op: ReduceOp, expr: &Expr) -> Option<Simpler> {
        let (n, e) = self.repeated(op, expr)?;
        self.shown(Cond::le(&Ix::from(1), &n).ok()).then_some(Simpler::Part(e))
    }

    /// A transposition without the pairs that stand in a list too; none if none do.
    fn without(&mut self, id: ExprId, gone: &[Pair]) -> Option<ExprId> {
        let Expr::Transp(pairs, e) = self.expr(id) else { return None };
        let (e, left) = (*e, pairs.iter().filter(|pair| !contains(gone, **pair)).copied().collect::<Box<[Pair]>>());
        match left.len() {
            0 => Some(e),
            few if few == pairs.len() => None,
            _ => Some(self.program.add(Expr::Transp(left, e), self.program.span(id))),
        }
    }
}

impl Typed {
    /// The program with laws applied wherever they fit, without parentheses, in the same notation; and where. With
    /// `strict`, only exact laws.
    pub fn simplified(&self, strict: bool) -> (Program, Vec<Applied>) {
        let program = &self.program;
        let empty = Program {
            notation: program.notation,
            decls: program.decls.clone(),
            wheres: program.wheres.clone(),
            end: program.end,
            ..Program::default()
        };
        let mut rewriting = Rewriting { typed: self, program: empty.clone() };
        let mut applied = Vec::new();
        let mut new: Vec<ExprId> = Vec::with_capacity(program.exprs.len());
        for (expr, &span) in program.exprs.iter().zip(&program.spans) {
            if let Expr::Paren(inner) = expr {
                new.push(new[inner.index()]);
                continue;
            }
            let mut simpler = Simpler::Operation(expr.map(|part| new[part.index()]));
            let id = loop {
                let expr = match simpler {
                    Simpler::Part(id) => break id,
                    Simpler::Operation(expr) => expr,
                };
                let mut laws = LAWS.iter().filter(|law| law.exact || !strict);
                match laws.find_map(|law| Some((law, (law.apply)(&mut rewriting, &expr)?))) {
                    Some((law, right)) => {
                        applied.push(Applied { law, span });
                        simpler = right;
                    }
                    None => break rewriting.program.add(expr, span),
                }
            };
            new.push(id);
        }
        (used(&rewriting.program, &program.stmts, &new, empty), applied)
    }
}

/// A program of statements and the expressions that they are made of, no others; `new` has the statements' values.
fn used(from: &Program, stmts: &[Stmt], new: &[ExprId], mut into: Program) -> Program {
    let mut needed = vec![false; from.exprs.len()];
    let mut copied: Vec<ExprId> = Vec::with_capacity(from.exprs.len());
    for stmt in stmts {
        let value = new[stmt.value.index()];
        needed[value.index()] = true;
        for at in (copied.len()..=value.index()).rev() {
            if needed[at] {
                from.exprs[at].parts().for_each(|part| needed[part.index()] = true);
            }
        }
        while copied.len() <= value.index() {
            let at = copied.len();
            copied.push(match needed[at] {
                true => into.add(from.exprs[at].map(|part| copied[part.index()]), from.spans[at]),
                // Nothing asks for what is not needed.
                false => ExprId(0),
            });
        }
        into.stmts.push(Stmt { value: copied[value.index()], ..stmt.clone() });
    }
    into
}
