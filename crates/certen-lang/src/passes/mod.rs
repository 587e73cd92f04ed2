//! The passes on the typed tree: comprehensions become with-loops, step by step as in *Tensor Comprehensions in SaC*.
//!
//! Each pass is one of the paper's rewrite schemes. It takes a valid typed tree and leaves a valid typed tree that means
//! the same, so that every stage can be shown as a program ([`crate::to_ast`]) and run. [`ALL`] has them in the order in
//! which they are run; [`crate::to_core`] needs the last one's result.

use std::collections::HashSet;

use certen_syntax::Name;

use crate::typed::{Block, Bound, Expr, FoldOp, Function, Iterate, Kind, Program, Slot, WithDefault};

pub mod bounds;
pub mod dots;
pub mod with_loops;

/// A pass: what `explain` calls it, what it does, and the function that does it.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// A short name.
    pub name: &'static str,
    /// What it does, in one line.
    pub description: &'static str,
    /// Does it.
    pub run: fn(&mut Program),
}

/// Every pass, in the order in which they are run.
pub const ALL: &[Pass] = &[
    Pass { name: "bounds", description: "the bounds of all indices are written out (Sec. 5.2)", run: bounds::run },
    Pass { name: "dots", description: "dots in patterns become indices (Sec. 5.3)", run: dots::run },
    Pass {
        name: "with-loops",
        description: "comprehensions become with-loops with default elements (Sec. 5.4 and 6)",
        run: with_loops::run,
    },
];

/// Runs every pass.
pub fn run(program: &mut Program) {
    ALL.iter().for_each(|pass| (pass.run)(program));
}

/// The program as the checker made it and after each pass, as texts that mean the same.
pub fn stages(program: &Program) -> Vec<(&'static str, String)> {
    let mut stages = vec![("written", crate::to_ast(program).to_string())];
    let mut program = program.clone();
    for pass in ALL {
        (pass.run)(&mut program);
        stages.push((pass.name, crate::to_ast(&program).to_string()));
    }
    stages
}

/// Calls a function on every expression of a block, parts first.
fn each_expr(block: &mut Block, change: &mut dyn FnMut(&mut Expr)) {
    for bound in &mut block.lets {
        match &mut bound.value {
            Bound::Expr(e) => each(e, change),
            Bound::Call(call) => call.args.iter_mut().for_each(|arg| each(arg, change)),
            Bound::Iterate(iterate) => each_of_iterate(iterate, change),
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
        Kind::Var(_) | Kind::Literal(_) | Kind::Index(_) => {}
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

/// Every name that a function binds.
fn bound_names(function: &mut Function) -> HashSet<Name> {
    let mut names: HashSet<Name> = function.sizes.iter().map(|size| size.name).collect();
    names.extend(function.params.iter().map(|(name, _)| *name));
    names_of_block(&function.body, &mut names);
    each_expr(&mut function.body, &mut |expr| match &expr.kind {
        Kind::Comprehension(partitions) => {
            let slots = partitions.iter().flat_map(|partition| &partition.pattern);
            names.extend(slots.filter_map(|slot| if let Slot::Index(name) = slot { Some(*name) } else { None }));
        }
        Kind::With(with) => names.extend(with.generators.iter().flat_map(|g| g.indices.iter().map(|(name, _)| *name))),
        Kind::Fold(fold) => {
            names.extend(fold.generators.iter().flat_map(|g| g.indices.iter().map(|(name, _)| *name)));
            if let FoldOp::Function { so_far, element, .. } = &fold.op {
                names.extend([*so_far, *element]);
            }
        }
        Kind::Iterate(iterate) => names_of_iterate(iterate, &mut names),
        Kind::Block(block) => names_of_block(block, &mut names),
        _ => {}
    });
    names
}

fn names_of_iterate(iterate: &Iterate, names: &mut HashSet<Name>) {
    names.insert(iterate.step);
    names.extend(iterate.states.iter().map(|(name, _)| *name));
    names_of_block(&iterate.body, names);
}

/// What a block's own `let`s bind; blocks further in are met as expressions.
fn names_of_block(block: &Block, names: &mut HashSet<Name>) {
    for bound in &block.lets {
        names.extend(bound.names.iter().map(|(name, _)| *name));
        if let Bound::Iterate(iterate) = &bound.value {
            names_of_iterate(iterate, names);
        }
    }
}
