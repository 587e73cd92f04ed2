//! A program in another notation.
//!
//! TeIL has reductions, diagonals, expansions and projections that the model language cannot write; the model language
//! has subtraction and division that TeIL cannot. What both have is the same, so that only several pairs at once have to
//! be written one by one. Needs: a typed program. Guarantees: the same meaning (tested in `certen-testgen`).

use certen_syntax::{Code, Diagnostic, Name, Span};

use super::ast::{Arith, Expr, ExprId, Program, Stmt, one_by_one};
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
        for (expr, &span) in self.exprs.iter().zip(&self.spans) {
            let here = match expr {
                Expr::Elem(Arith::Sub | Arith::Div, ..) => notation == Notation::Model,
                Expr::Red(..) | Expr::Diag(..) | Expr::Expa(..) | Expr::Proj(..) => notation != Notation::Model,
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
            Notation::Teil => self.singly(),
            Notation::CoreTeil => self.to_core_teil(),
            Notation::Model => Program { notation, ..self.clone() },
        })
    }

    /// The program in TeIL, which writes several pairs one by one.
    fn singly(&self) -> Program {
        let mut program = Program {
            notation: Notation::Teil,
            decls: self.decls.clone(),
            wheres: self.wheres.clone(),
            end: self.end,
            ..Program::default()
        };
        let mut translated: Vec<ExprId> = Vec::with_capacity(self.exprs.len());
        for (expr, &span) in self.exprs.iter().zip(&self.spans) {
            let mut each = |pairs: Vec<_>, e: ExprId, make: fn(_, _) -> Expr| {
                let one = |e, pair| program.add(make([pair].into(), e), span);
                pairs.into_iter().fold(translated[e.index()], one)
            };
            let id = match expr {
                Expr::Transp(pairs, e) => each(pairs.to_vec(), *e, Expr::Transp),
                Expr::Contr(pairs, e) => each(one_by_one(pairs), *e, Expr::Contr),
                other => program.add(other.map(|e| translated[e.index()]), span),
            };
            translated.push(id);
        }
        let stmts = self.stmts.iter().map(|stmt| Stmt { value: translated[stmt.value.index()], ..stmt.clone() });
        program.stmts = stmts.collect();
        program
    }
}
