//! A program in another notation.
//!
//! TeIL has reductions, diagonals, expansions, projections, multiples and powers that the model language cannot write;
//! the model language has subtraction and division that TeIL cannot. What both have is the same, but for several pairs at
//! once, which TeIL writes one by one, and `red+ i (diag i j e)`, which the model language writes as a contraction (TeIL,
//! Eq. 6). Needs: a typed program. Guarantees: the same meaning (tested in `certen-testgen`).

use std::collections::{HashMap, HashSet};

use certen_core::ReduceOp;
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::ast::{Arith, Expr, ExprId, Pair, Program, Stmt, one_by_one};
use super::notation::Notation;
use crate::{model, teil};

impl Program {
    /// The program in a notation.
    ///
    /// # Errors
    /// If an operation or a name cannot be written there: where it stands.
    pub fn to(&self, notation: Notation) -> Result<Program, Box<Diagnostic>> {
        let (language, reserved) = match notation {
            Notation::Teil | Notation::CoreTeil => ("TeIL", teil::RESERVED),
            Notation::Model => ("the model language", model::RESERVED),
        };
        let cannot = |span: Span, text: String| Err(Box::new(Diagnostic::error(Code::E0407, span, text)));
        let sums = if notation == Notation::Model { self.sums_of_diagonals() } else { Sums::default() };
        for (at, (expr, &span)) in self.exprs.iter().zip(&self.spans).enumerate() {
            let id = ExprId(at as u32);
            let here = match expr {
                _ if sums.inside.contains(&id) || sums.contracted.contains_key(&id) => true,
                Expr::Elem(Arith::Sub | Arith::Div, ..) => notation == Notation::Model,
                Expr::Red(..)
                | Expr::Diag(..)
                | Expr::Expa(..)
                | Expr::Proj(..)
                | Expr::Scale(..)
                | Expr::Power(..) => notation != Notation::Model,
                _ => true,
            };
            if !here {
                return cannot(span, format!("{language} has no `{}`", self.notation.head(expr)));
            }
        }
        let word = |name: Name| reserved.contains(&name.as_str());
        for decl in &self.decls {
            if word(decl.name) {
                return cannot(decl.name_span, format!("`{}` is a word of {language}", decl.name));
            }
            for (size, span) in &decl.shape {
                let mut names = Default::default();
                size.collect_names(&mut names);
                if let Some(name) = names.into_iter().find(|name| word(*name)) {
                    return cannot(*span, format!("`{name}` is a word of {language}"));
                }
            }
        }
        Ok(match notation {
            Notation::Teil | Notation::Model => self.rebuilt(notation, &sums),
            Notation::CoreTeil => self.to_core_teil(),
        })
    }

    /// The sums `red+ i (diag i j e)` that are contractions.
    fn sums_of_diagonals(&self) -> Sums {
        let mut sums = Sums::default();
        for (at, expr) in self.exprs.iter().enumerate() {
            let Expr::Red(ReduceOp::Sum, i, mut inside) = *expr else { continue };
            let diagonal = self.inner(inside);
            let Expr::Diag(i0, i1, e) = *self.expr(diagonal) else { continue };
            if i != i0.min(i1) {
                continue;
            }
            sums.contracted.insert(ExprId(at as u32), ((i0, i1), e));
            sums.inside.insert(diagonal);
            while let Expr::Paren(inner) = self.expr(inside) {
                sums.inside.insert(inside);
                inside = *inner;
            }
        }
        sums
    }

    /// The program with contractions for sums of diagonals; in TeIL, with one pair in each operation.
    fn rebuilt(&self, notation: Notation, sums: &Sums) -> Program {
        let mut program = Program {
            notation,
            decls: self.decls.clone(),
            wheres: self.wheres.clone(),
            end: self.end,
            ..Program::default()
        };
        // What stands inside a contraction of its own has no place of its own; nothing asks for it.
        let mut translated: Vec<ExprId> = Vec::with_capacity(self.exprs.len());
        for (at, (expr, &span)) in self.exprs.iter().zip(&self.spans).enumerate() {
            let id = ExprId(at as u32);
            if sums.inside.contains(&id) {
                translated.push(id);
                continue;
            }
            let mut each = |pairs: Vec<Pair>, e: ExprId, make: fn(Box<[Pair]>, ExprId) -> Expr| {
                let one = |e, pair| program.add(make([pair].into(), e), span);
                pairs.into_iter().fold(translated[e.index()], one)
            };
            let id = match expr {
                Expr::Red(..) if sums.contracted.contains_key(&id) => {
                    let (pair, e) = sums.contracted[&id];
                    each(vec![pair], e, Expr::Contr)
                }
                Expr::Transp(pairs, e) if notation == Notation::Teil => each(pairs.to_vec(), *e, Expr::Transp),
                Expr::Contr(pairs, e) if notation == Notation::Teil => each(one_by_one(pairs), *e, Expr::Contr),
                other => program.add(other.map(|e| translated[e.index()]), span),
            };
            translated.push(id);
        }
        let stmts = self.stmts.iter().map(|stmt| Stmt { value: translated[stmt.value.index()], ..stmt.clone() });
        program.stmts = stmts.collect();
        program
    }
}

/// Sums of diagonals: what each contracts, and the expressions that disappear into them.
#[derive(Default)]
struct Sums {
    contracted: HashMap<ExprId, (Pair, ExprId)>,
    inside: HashSet<ExprId>,
}
