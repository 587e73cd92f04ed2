//! Walks over the typed tree that several modules share.

use std::collections::BTreeSet;

use certen_index::{Cond, Ix};
use certen_syntax::Name;

use crate::typed::{Block, Call, Expr, FoldOp, FunctionId, Generator, Iterate, Kind, Range, Rhs, WithDefault};

/// What is met on a walk, in the order of the text.
pub(crate) enum Met<'a> {
    /// An expression, before its parts.
    Expr(&'a Expr),
    /// A call, before its arguments.
    Call(&'a Call),
    /// An iteration, before its parts.
    Iterate,
    /// An index-level expression.
    Ix(&'a Ix),
    /// An index-level condition.
    Cond(&'a Cond),
}

/// Shows every expression of an expression, itself first, and everything of the index level in them.
pub(crate) fn walk<'a>(expr: &'a Expr, meet: &mut dyn FnMut(Met<'a>)) {
    meet(Met::Expr(expr));
    match &expr.kind {
        Kind::Var(_) | Kind::Literal(_) | Kind::Epsilon => {}
        Kind::Index(ix) => meet(Met::Ix(ix)),
        Kind::Stack(parts) => parts.iter().for_each(|part| walk(part, meet)),
        Kind::Select(a, indices) => {
            walk(a, meet);
            indices.iter().for_each(|ix| meet(Met::Ix(ix)));
        }
        Kind::Comprehension(partitions) => {
            for partition in partitions {
                partition.ranges.iter().for_each(|range| walk_range(range, meet));
                walk(&partition.body, meet);
            }
        }
        Kind::With(with) => {
            with.frame.iter().for_each(|size| meet(Met::Ix(size)));
            with.generators.iter().for_each(|generator| walk_generator(generator, meet));
            let (WithDefault::Cell(default) | WithDefault::Array(default)) = &with.default;
            walk(default, meet);
        }
        Kind::Fold(fold) => {
            walk(&fold.neutral, meet);
            fold.generators.iter().for_each(|generator| walk_generator(generator, meet));
            if let FoldOp::Function { next, .. } = &fold.op {
                walk(next, meet);
            }
        }
        Kind::If(cond, a, b) => {
            meet(Met::Cond(cond));
            walk(a, meet);
            walk(b, meet);
        }
        Kind::Guard(cond, a) => {
            meet(Met::Cond(cond));
            walk(a, meet);
        }
        Kind::Pad(_, k, a) | Kind::Trunc(_, k, a) => {
            meet(Met::Ix(k));
            walk(a, meet);
        }
        Kind::Unary(_, a)
        | Kind::Cast(a)
        | Kind::Reduce(_, _, a)
        | Kind::Flatten(a)
        | Kind::Split(_, a)
        | Kind::Transpose(a)
        | Kind::Reshape(a)
        | Kind::Stored(a) => walk(a, meet),
        Kind::Binary(_, a, b) | Kind::Concat(a, b) => {
            walk(a, meet);
            walk(b, meet);
        }
        Kind::Choose(a, b, c) => [a, b, c].into_iter().for_each(|e| walk(e, meet)),
        Kind::Call(call) => walk_call(call, meet),
        Kind::Iterate(iterate) => walk_iterate(iterate, meet),
        Kind::Block(block) => walk_block(block, meet),
    }
}

/// The same for a block.
pub(crate) fn walk_block<'a>(block: &'a Block, meet: &mut dyn FnMut(Met<'a>)) {
    for bound in &block.lets {
        match &bound.value {
            Rhs::Expr(e) => walk(e, meet),
            Rhs::Call(call) => walk_call(call, meet),
            Rhs::Iterate(iterate) => walk_iterate(iterate, meet),
        }
    }
    block.results.iter().for_each(|e| walk(e, meet));
}

fn walk_call<'a>(call: &'a Call, meet: &mut dyn FnMut(Met<'a>)) {
    meet(Met::Call(call));
    call.sizes.iter().for_each(|size| meet(Met::Ix(size)));
    call.args.iter().for_each(|arg| walk(arg, meet));
}

/// The same for an iteration.
pub(crate) fn walk_iterate<'a>(iterate: &'a Iterate, meet: &mut dyn FnMut(Met<'a>)) {
    meet(Met::Iterate);
    meet(Met::Ix(&iterate.times));
    iterate.states.iter().for_each(|(_, first)| walk(first, meet));
    walk_block(&iterate.body, meet);
}

fn walk_generator<'a>(generator: &'a Generator, meet: &mut dyn FnMut(Met<'a>)) {
    generator.indices.iter().for_each(|(_, range)| walk_range(range, meet));
    walk(&generator.body, meet);
}

fn walk_range<'a>(range: &'a Range, meet: &mut dyn FnMut(Met<'a>)) {
    meet(Met::Ix(&range.lower));
    meet(Met::Ix(&range.upper));
}

/// The names that something met mentions itself: a variable, the names of an index, those in the shape of a type.
pub(crate) fn names_of(met: &Met<'_>) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    match met {
        Met::Expr(expr) => {
            if let Kind::Var(name) = &expr.kind {
                names.insert(*name);
            }
            expr.ty.shape.iter().for_each(|size| size.collect_names(&mut names));
        }
        Met::Call(_) | Met::Iterate => {}
        Met::Ix(ix) => ix.collect_names(&mut names),
        Met::Cond(cond) => cond.collect_names(&mut names),
    }
    names
}

/// Calls a function on every expression of a block, parts first.
pub(crate) fn each_expr(block: &mut Block, change: &mut dyn FnMut(&mut Expr)) {
    for bound in &mut block.lets {
        match &mut bound.value {
            Rhs::Expr(e) => each(e, change),
            Rhs::Call(call) => call.args.iter_mut().for_each(|arg| each(arg, change)),
            Rhs::Iterate(iterate) => each_of_iterate(iterate, change),
        }
    }
    block.results.iter_mut().for_each(|e| each(e, change));
}

fn each_of_iterate(iterate: &mut Iterate, change: &mut dyn FnMut(&mut Expr)) {
    iterate.states.iter_mut().for_each(|(_, first)| each(first, change));
    each_expr(&mut iterate.body, change);
}

fn each(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr)) {
    match &mut expr.kind {
        Kind::Var(_) | Kind::Literal(_) | Kind::Epsilon | Kind::Index(_) => {}
        Kind::Stack(parts) => parts.iter_mut().for_each(|part| each(part, change)),
        Kind::Comprehension(partitions) => partitions.iter_mut().for_each(|p| each(&mut p.body, change)),
        Kind::With(with) => {
            with.generators.iter_mut().for_each(|generator| each(&mut generator.body, change));
            let (WithDefault::Cell(default) | WithDefault::Array(default)) = &mut with.default;
            each(default, change);
        }
        Kind::Fold(fold) => {
            fold.generators.iter_mut().for_each(|generator| each(&mut generator.body, change));
            each(&mut fold.neutral, change);
            if let FoldOp::Function { next, .. } = &mut fold.op {
                each(next, change);
            }
        }
        Kind::Select(a, _)
        | Kind::Unary(_, a)
        | Kind::Guard(_, a)
        | Kind::Cast(a)
        | Kind::Reduce(_, _, a)
        | Kind::Flatten(a)
        | Kind::Split(_, a)
        | Kind::Transpose(a)
        | Kind::Pad(_, _, a)
        | Kind::Trunc(_, _, a)
        | Kind::Reshape(a)
        | Kind::Stored(a) => each(a, change),
        Kind::Binary(_, a, b) | Kind::If(_, a, b) | Kind::Concat(a, b) => {
            each(a, change);
            each(b, change);
        }
        Kind::Choose(a, b, c) => {
            each(a, change);
            each(b, change);
            each(c, change);
        }
        Kind::Call(call) => call.args.iter_mut().for_each(|arg| each(arg, change)),
        Kind::Iterate(iterate) => each_of_iterate(iterate, change),
        Kind::Block(block) => each_expr(block, change),
    }
    change(expr);
}

/// Gives every call of a block the function of another number.
pub(crate) fn renumber(block: &mut Block, number: &dyn Fn(FunctionId) -> FunctionId) {
    each_expr(block, &mut |expr| match &mut expr.kind {
        Kind::Call(call) => call.function = number(call.function),
        Kind::Iterate(iterate) => renumber_lets(&mut iterate.body, number),
        Kind::Block(block) => renumber_lets(block, number),
        _ => {}
    });
    renumber_lets(block, number);
}

/// The same for what a block's own `let`s call; blocks further in are met as expressions.
fn renumber_lets(block: &mut Block, number: &dyn Fn(FunctionId) -> FunctionId) {
    for bound in &mut block.lets {
        match &mut bound.value {
            Rhs::Expr(_) => {}
            Rhs::Call(call) => call.function = number(call.function),
            Rhs::Iterate(iterate) => renumber_lets(&mut iterate.body, number),
        }
    }
}
