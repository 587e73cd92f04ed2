//! TeIL programs as text: what [`parse`](super::parse) reads back as the same program, up to parentheses.

use std::fmt::{self, Write};

use certen_core::ReduceOp;
use certen_index::Ix;

use super::ast::{Expr, ExprId, Mode, Program};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mode == Mode::Core {
            writeln!(f, "mode core")?;
        }
        for alloc in &self.allocs {
            let marker = [(alloc.marker.input, "input "), (alloc.marker.output, "output ")];
            let marker: String = marker.iter().filter(|(set, _)| *set).map(|(_, word)| *word).collect();
            let shape: Vec<String> = alloc.shape.iter().map(|(size, _)| size.to_string()).collect();
            writeln!(f, "alloc {marker}{} : [{}]", alloc.name, shape.join(", "))?;
        }
        for clause in &self.wheres {
            writeln!(f, "where {}", clause.cond)?;
        }
        for stmt in &self.stmts {
            writeln!(f, "{} = {}", stmt.target, self.expr_text(stmt.value))?;
        }
        Ok(())
    }
}

pub(super) fn reduction_word(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Prod => "red*",
        ReduceOp::Min => "redmin",
        ReduceOp::Max => "redmax",
        _ => "red+",
    }
}

impl Program {
    /// The word and numbers of an operation, as they stand before its operands.
    pub fn head(&self, expr: &Expr) -> String {
        // Text that a single argument can be: anything else stands in parentheses.
        let argument = |ix: &Ix| match ix.as_constant() {
            Some(value) if value >= 0 => value.to_string(),
            _ => ix.as_var().map_or_else(|| format!("({ix})"), |name| name.to_string()),
        };
        let core = self.mode == Mode::Core;
        let at = |i: &i64| if core { String::new() } else { format!(" {i}") };
        match expr {
            Expr::Var(name) => name.to_string(),
            Expr::Paren(_) => "()".into(),
            Expr::Add(..) => "add".into(),
            Expr::Mul(..) => "mul".into(),
            Expr::Prod(..) => "prod".into(),
            Expr::Red(op, i, _) => format!("{}{}", reduction_word(*op), at(i)),
            Expr::Transp(i, _, _) if core => format!("transp {i}"),
            Expr::Transp(i0, i1, _) => format!("transp {i0} {i1}"),
            Expr::Diag(i0, i1, _) => format!("diag{}{}", at(i0), at(i1)),
            Expr::Contr(i0, i1, _) => format!("contr {i0} {i1}"),
            Expr::Expa(i, n, _) => format!("expa{} {}", at(i), argument(n)),
            Expr::Proj(i, m, _) => format!("proj{} {}", at(i), argument(m)),
        }
    }

    /// An expression as text; operands that are not names stand in parentheses.
    pub fn expr_text(&self, id: ExprId) -> String {
        enum Piece {
            Expr(ExprId),
            Operand(ExprId),
            Close,
        }
        let mut text = String::new();
        let mut todo = vec![Piece::Expr(id)];
        while let Some(piece) = todo.pop() {
            let id = match piece {
                Piece::Close => {
                    text.push(')');
                    continue;
                }
                Piece::Operand(id) => {
                    text.push(' ');
                    if !matches!(self.expr(id), Expr::Var(_) | Expr::Paren(_)) {
                        text.push('(');
                        todo.push(Piece::Close);
                    }
                    id
                }
                Piece::Expr(id) => id,
            };
            match self.expr(id) {
                Expr::Paren(inner) => {
                    text.push('(');
                    todo.push(Piece::Close);
                    todo.push(Piece::Expr(*inner));
                }
                expr => {
                    let _ = write!(text, "{}", self.head(expr));
                    let first = todo.len();
                    todo.extend(expr.parts().map(Piece::Operand));
                    todo[first..].reverse();
                }
            }
        }
        text
    }
}
