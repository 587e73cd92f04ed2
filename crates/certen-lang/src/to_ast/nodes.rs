//! Nodes of the syntax tree that have no place in a text. Index expressions and conditions are written and read back.

use certen_core::TensorType;
use certen_index::{Cond, IndexFunction, Ix, Notation};
use certen_syntax::{Diagnostics, Name, Sources, Span};

use crate::ast::{self, BinaryOp, ExprKind, Ident, UnaryOp};
use crate::parse::parse_expr;

/// How index expressions are written: as the parser of index expressions reads them, but `min` and `max` take two.
struct Pairs;

impl Notation for Pairs {
    fn call(&mut self, function: IndexFunction, arguments: &[String]) -> String {
        let word = match function {
            IndexFunction::FloorDiv => "floor_div",
            IndexFunction::Min => "min",
            IndexFunction::Max => "max",
        };
        let pair = |a: String, b: &String| format!("{word}({a}, {b})");
        let mut arguments = arguments.iter();
        let first = arguments.next().cloned().unwrap_or_default();
        arguments.fold(first, pair)
    }
}

pub(super) fn node(kind: ExprKind) -> ast::Expr {
    ast::Expr { kind, span: Span::default() }
}

pub(super) fn ident(name: Name) -> Ident {
    Ident { name, span: Span::default() }
}

pub(super) fn name(name: Name) -> ast::Expr {
    node(ExprKind::Name(name))
}

pub(super) fn call(function: &str, args: Vec<ast::Expr>) -> ast::Expr {
    node(ExprKind::Call(ident(function.into()), args, Vec::new()))
}

pub(super) fn list(parts: impl IntoIterator<Item = ast::Expr>) -> ast::Expr {
    node(ExprKind::List(parts.into_iter().collect()))
}

pub(super) fn negated(e: ast::Expr) -> ast::Expr {
    node(ExprKind::Unary(UnaryOp::Neg, Box::new(e)))
}

pub(super) fn int(value: i64) -> ast::Expr {
    match value.checked_neg() {
        Some(positive) if value < 0 => negated(node(ExprKind::Int(positive))),
        // The smallest integer has no opposite.
        None => node(ExprKind::Binary(BinaryOp::Sub, Box::new(int(value + 1)), Box::new(int(1)))),
        _ => node(ExprKind::Int(value)),
    }
}

/// The text of an index expression or condition as a tree.
pub(super) fn parsed(text: &str) -> ast::Expr {
    let mut sources = Sources::new();
    let file = sources.add("", text);
    let read = sources.get(file).and_then(|source| parse_expr(source, file, &mut Diagnostics::new()));
    read.unwrap_or_else(|| name(text.into()))
}

pub(super) fn ix(ix: &Ix) -> ast::Expr {
    match (ix.as_constant(), ix.as_var()) {
        (Some(value), _) => int(value),
        (_, Some(var)) => name(var),
        _ => parsed(&ix.write(&mut Pairs)),
    }
}

pub(super) fn cond(cond: &Cond) -> ast::Expr {
    match (cond.is_always(), cond.is_never()) {
        (true, _) => parsed("0 == 0"),
        (_, true) => parsed("0 == 1"),
        _ => parsed(&cond.write(&mut Pairs)),
    }
}

pub(super) fn ty(ty: &TensorType) -> ast::Type {
    let dims = ty.shape.iter().map(|size| ast::Dim::Size(ix(size))).collect();
    ast::Type { elem: ast::Elem::Is(ty.elem), dims, span: Span::default() }
}
