//! Trees compared: what they are without places and parentheses, and all expressions in them.

use std::fmt::Debug;

use certen_lang::ast::{Block, Bound, Dim, Expr, ExprKind, File, Item, Relation, Results, Selector, Type, WithOp};

const SPAN: &str = "Span { file: FileId(0), start: ";
const PAREN: &str = "Expr { kind: Paren(";

/// The debug text of a tree without its places and without [`ExprKind::Paren`].
pub fn without_places(tree: &impl Debug) -> String {
    let text = format!("{tree:?}");
    let mut out = String::with_capacity(text.len() / 2);
    let mut rest = text.as_str();
    // How many parentheses are open, and how many were where a `Paren` was left out.
    let mut depth = 0;
    let mut left_out = Vec::new();
    while let Some(c) = rest.chars().next() {
        if rest.starts_with(SPAN) {
            rest = &rest[rest.find('}').unwrap() + 1..];
            continue;
        }
        if let Some(behind) = rest.strip_prefix(PAREN) {
            left_out.push(depth);
            rest = behind;
            continue;
        }
        if c == '"' {
            // A text is copied as it is.
            let mut escaped = false;
            let close = rest[1..].find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            let end = close.unwrap() + 2;
            out.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        if c == ')' && left_out.last() == Some(&depth) {
            left_out.pop();
            let place = rest.strip_prefix("), span: ").unwrap();
            assert!(place.starts_with(SPAN));
            rest = place[place.find('}').unwrap() + 1..].strip_prefix(" }").unwrap();
            continue;
        }
        depth += i32::from(c == '(') - i32::from(c == ')');
        out.push(c);
        rest = &rest[c.len_utf8()..];
    }
    out
}

/// Every expression of a file.
pub fn exprs(file: &File) -> Vec<&Expr> {
    let mut found = Vec::new();
    for item in &file.items {
        match item {
            Item::Import(_) | Item::Schedule(_) | Item::Derive(_) | Item::Tactic(_) => {}
            Item::Const(constant) => {
                in_type(constant.ty.as_ref(), &mut found);
                found.push(&constant.value);
            }
            Item::Function(function) => {
                function.params.iter().for_each(|param| in_type(Some(&param.ty), &mut found));
                match &function.results {
                    Results::Inferred => {}
                    Results::One(ty) => in_type(Some(ty), &mut found),
                    Results::Named(results) => results.iter().for_each(|result| in_type(Some(&result.ty), &mut found)),
                }
                found.extend(function.associative.iter().chain(&function.wheres));
                in_block(&function.body, &mut found);
            }
        }
    }
    let mut at = 0;
    while let Some(expr) = found.get(at).copied() {
        in_expr(expr, &mut found);
        at += 1;
    }
    found
}

fn in_type<'a>(ty: Option<&'a Type>, found: &mut Vec<&'a Expr>) {
    found.extend(ty.into_iter().flat_map(|ty| &ty.dims).filter_map(|dim| match dim {
        Dim::Size(size) => Some(size),
        _ => None,
    }));
}

fn in_block<'a>(block: &'a Block, found: &mut Vec<&'a Expr>) {
    for binding in &block.lets {
        in_type(binding.ty.as_ref(), found);
        found.push(&binding.value);
    }
    found.extend(&block.results);
}

fn in_relation<'a>(relation: &'a Relation, found: &mut Vec<&'a Expr>) {
    found.extend([&relation.lower, &relation.upper].into_iter().filter_map(|bound| match bound {
        Some((Bound::At(expr), _)) => Some(expr),
        _ => None,
    }));
}

fn in_expr<'a>(expr: &'a Expr, found: &mut Vec<&'a Expr>) {
    match &expr.kind {
        ExprKind::Name(_) | ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Bool(_) | ExprKind::Text(_) => {}
        ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => found.push(inner),
        ExprKind::List(parts) => found.extend(parts),
        ExprKind::Binary(_, left, right) => found.extend([&**left, right]),
        ExprKind::Select(tensor, selectors) => {
            found.push(tensor);
            for selector in selectors {
                match selector {
                    Selector::At(index) => found.push(index),
                    Selector::Slice(lower, upper, _) => found.extend(lower.iter().chain(upper)),
                    Selector::Dot(_) | Selector::Dots(_) => {}
                }
            }
        }
        ExprKind::Call(_, args, named) => found.extend(args.iter().chain(named.iter().map(|(_, value)| value))),
        ExprKind::If(condition, then, otherwise) => {
            found.push(condition);
            in_block(then, found);
            in_block(otherwise, found);
        }
        ExprKind::Block(block) => in_block(block, found),
        ExprKind::Comprehension(partitions) => {
            for partition in partitions {
                found.push(&partition.body);
                partition.generator.iter().for_each(|relation| in_relation(relation, found));
            }
        }
        ExprKind::With(with) => {
            for (_, relation, body) in &with.generators {
                in_relation(relation, found);
                found.push(body);
            }
            match &with.operation {
                WithOp::Genarray(shape, default) => found.extend(std::iter::once(shape).chain(default)),
                WithOp::Modarray(value) | WithOp::Fold(_, value) => found.push(value),
            }
        }
        ExprKind::Iterate(iterate) => {
            found.push(&iterate.times);
            found.extend(iterate.states.iter().map(|(_, value)| value));
            in_block(&iterate.body, found);
        }
    }
}
