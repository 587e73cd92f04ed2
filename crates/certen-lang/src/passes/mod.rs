//! The passes on the typed tree: comprehensions become with-loops, step by step as in *Tensor Comprehensions in SaC*.
//!
//! Each pass is one of the paper's rewrite schemes. It takes a valid typed tree and leaves a valid typed tree that
//! means the same, so that every stage can be shown as a program ([`crate::to_ast`]) and run. [`ALL`] has them in the
//! order in which they are run; [`crate::to_core`] needs the last one's result.

use std::collections::HashSet;

use certen_syntax::Name;

use crate::to_ast::to_ast;
use crate::tree::each_expr;
use crate::typed::{Block, FoldOp, Function, Iterate, Kind, Program, Rhs, Slot};

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
    let mut stages = vec![("written", to_ast(program).to_string())];
    let mut program = program.clone();
    for pass in ALL {
        (pass.run)(&mut program);
        stages.push((pass.name, to_ast(&program).to_string()));
    }
    stages
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
        if let Rhs::Iterate(iterate) = &bound.value {
            names_of_iterate(iterate, names);
        }
    }
}
