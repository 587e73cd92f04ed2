//! Model language programs as text, without names of types.

use std::fmt::Write;

use certen_index::Ix;

use super::{argument, teil};
use crate::algebra::ast::{Arith, Expr, ExprId, Notation, Pair, Program};

/// `[2 n (n + 1)]`
pub(super) fn shape<'a>(sizes: impl IntoIterator<Item = &'a Ix>) -> String {
    format!("[{}]", sizes.into_iter().map(argument).collect::<Vec<_>>().join(" "))
}

/// An operation without its operands.
pub(super) fn head(expr: &Expr) -> String {
    let pairs = |pairs: &[Pair]| match pairs {
        [(i0, i1)] => format!("[{i0} {i1}]"),
        several => {
            let each: Vec<String> = several.iter().map(|(i0, i1)| format!("[{i0} {i1}]")).collect();
            format!("[{}]", each.join(" "))
        }
    };
    match expr {
        Expr::Elem(Arith::Add, ..) => "+".into(),
        Expr::Elem(Arith::Sub, ..) => "-".into(),
        Expr::Elem(Arith::Mul, ..) => "*".into(),
        Expr::Elem(Arith::Div, ..) => "/".into(),
        Expr::Prod(..) => "#".into(),
        Expr::Transp(list, _) => format!("^ {}", pairs(list)),
        Expr::Contr(list, _) => format!(". {}", pairs(list)),
        other => teil::head(Notation::Teil, other),
    }
}

/// An expression as text; operands that are not names stand in parentheses.
pub(super) fn expr_text(program: &Program, id: ExprId) -> String {
    enum Pending {
        Expr(ExprId),
        Operand(ExprId),
        Operator(ExprId),
        Blank,
        Close,
    }
    let mut text = String::new();
    let mut todo = vec![Pending::Expr(id)];
    while let Some(piece) = todo.pop() {
        let id = match piece {
            Pending::Close => {
                text.push(')');
                continue;
            }
            Pending::Blank => {
                text.push(' ');
                continue;
            }
            Pending::Operator(id) => {
                let _ = write!(text, " {}", head(program.expr(id)));
                continue;
            }
            Pending::Operand(id) if !matches!(program.expr(id), Expr::Var(_) | Expr::Paren(_)) => {
                text.push('(');
                todo.push(Pending::Close);
                id
            }
            Pending::Operand(id) | Pending::Expr(id) => id,
        };
        match program.expr(id) {
            Expr::Var(name) => text += name.as_str(),
            Expr::Paren(inner) => {
                text.push('(');
                todo.extend([Pending::Close, Pending::Expr(*inner)]);
            }
            Expr::Elem(_, a, b) | Expr::Prod(a, b) => {
                todo.extend([Pending::Operand(*b), Pending::Blank, Pending::Operator(id), Pending::Operand(*a)]);
            }
            expr => {
                todo.push(Pending::Operator(id));
                todo.extend(expr.parts().map(Pending::Operand));
            }
        }
    }
    text
}
