//! TeIL and Core-TeIL as text.

use std::fmt::Write;

use certen_core::ReduceOp;
use certen_index::Ix;

use super::argument;
use crate::algebra::ast::{Arith, Expr, ExprId, Notation, Pair, Program};

/// `[2, n, n + 1]`
pub(super) fn shape<'a>(sizes: impl IntoIterator<Item = &'a Ix>) -> String {
    format!("[{}]", sizes.into_iter().map(Ix::to_string).collect::<Vec<_>>().join(", "))
}

fn reduction_word(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Prod => "red*",
        ReduceOp::Min => "redmin",
        ReduceOp::Max => "redmax",
        _ => "red+",
    }
}

/// The word and numbers of an operation, as they stand before its operands.
pub(super) fn head(notation: Notation, expr: &Expr) -> String {
    let core = notation == Notation::CoreTeil;
    let at = |i: &i64| if core { String::new() } else { format!(" {i}") };
    let both = |pairs: &[Pair]| pairs.iter().map(|(i0, i1)| format!(" {i0} {i1}")).collect::<String>();
    match expr {
        Expr::Var(name) => name.to_string(),
        Expr::Paren(_) => "()".into(),
        Expr::Elem(Arith::Add, ..) => "add".into(),
        Expr::Elem(Arith::Sub, ..) => "sub".into(),
        Expr::Elem(Arith::Mul, ..) => "mul".into(),
        Expr::Elem(Arith::Div, ..) => "div".into(),
        Expr::Prod(..) => "prod".into(),
        Expr::Red(op, i, _) => format!("{}{}", reduction_word(*op), at(i)),
        Expr::Transp(pairs, _) if core => {
            format!("transp{}", pairs.first().map_or(String::new(), |(i, _)| format!(" {i}")))
        }
        Expr::Transp(pairs, _) => format!("transp{}", both(pairs)),
        Expr::Diag(i0, i1, _) => format!("diag{}{}", at(i0), at(i1)),
        Expr::Contr(pairs, _) => format!("contr{}", both(pairs)),
        Expr::Expa(i, n, _) => format!("expa{} {}", at(i), argument(n)),
        Expr::Proj(i, m, _) => format!("proj{} {}", at(i), argument(m)),
        Expr::Scale(n, _) => format!("{} *", argument(n)),
        Expr::Power(n, _) => format!("^ {}", argument(n)),
    }
}

/// An expression as text; operands that are not names stand in parentheses.
pub(super) fn expr_text(program: &Program, id: ExprId) -> String {
    enum Pending {
        Expr(ExprId),
        Operand(ExprId),
        /// An operand before its operation.
        First(ExprId),
        Exponent(ExprId),
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
            Pending::Exponent(id) => {
                let _ = write!(text, " {}", head(program.notation, program.expr(id)));
                continue;
            }
            Pending::Operand(id) | Pending::First(id) => {
                if matches!(piece, Pending::Operand(_)) {
                    text.push(' ');
                }
                if !matches!(program.expr(id), Expr::Var(_) | Expr::Paren(_)) {
                    text.push('(');
                    todo.push(Pending::Close);
                }
                id
            }
            Pending::Expr(id) => id,
        };
        match program.expr(id) {
            Expr::Paren(inner) => {
                text.push('(');
                todo.push(Pending::Close);
                todo.push(Pending::Expr(*inner));
            }
            Expr::Power(_, e) => todo.extend([Pending::Exponent(id), Pending::First(*e)]),
            expr => {
                let _ = write!(text, "{}", head(program.notation, expr));
                let first = todo.len();
                todo.extend(expr.parts().map(Pending::Operand));
                todo[first..].reverse();
            }
        }
    }
    text
}
