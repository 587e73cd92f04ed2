//! Walks over a program before it is printed: which names it declares, reads and exchanges.

use std::collections::HashSet;

use certen_core::{Term, TermId};
use certen_loops::{LoopProgram, Stmt, declarations};
use certen_syntax::Name;

/// Every local and buffer that statements read or write.
pub(crate) fn walk(program: &LoopProgram, block: &[Stmt], visit: &mut impl FnMut(Name)) {
    let mut todo: Vec<&[Stmt]> = vec![block];
    let value = |root: TermId, visit: &mut dyn FnMut(Name)| {
        for id in program.terms.parts_first(root) {
            if let Term::Ref(name, _) = program.terms.get(id) {
                visit(*name);
            }
        }
    };
    while let Some(block) = todo.pop() {
        for stmt in block {
            match stmt {
                Stmt::For { body, .. } => todo.push(body),
                Stmt::If { then, otherwise, .. } => todo.extend([then.as_slice(), otherwise.as_slice()]),
                Stmt::Local { init: Some(init), .. } => value(*init, visit),
                Stmt::Swap(a, b) => [*a, *b].into_iter().for_each(&mut *visit),
                Stmt::Assign { target, value: assigned, .. } => {
                    visit(target.name());
                    value(*assigned, visit);
                }
                _ => {}
            }
        }
    }
}

/// Every name that a value reads; a combining assignment reads its target too, but C compilers do not count that.
pub(crate) fn read_names(program: &LoopProgram) -> HashSet<Name> {
    let mut names = HashSet::new();
    for (_, term) in program.terms.iter() {
        if let Term::Ref(name, _) = term {
            names.insert(*name);
        }
    }
    names
}

/// Every buffer that exchanges its content with another.
pub(crate) fn swapped_names(program: &LoopProgram) -> HashSet<Name> {
    let mut names = HashSet::new();
    each_block(program, |block| {
        for stmt in block {
            if let Stmt::Swap(a, b) = stmt {
                names.extend([*a, *b]);
            }
        }
    });
    names
}

/// Visits every block.
pub(crate) fn each_block(program: &LoopProgram, mut visit: impl FnMut(&[Stmt])) {
    let mut todo: Vec<&[Stmt]> = vec![&program.body];
    while let Some(block) = todo.pop() {
        visit(block);
        for stmt in block {
            match stmt {
                Stmt::For { body, .. } => todo.push(body),
                Stmt::If { then, otherwise, .. } => todo.extend([then.as_slice(), otherwise.as_slice()]),
                _ => {}
            }
        }
    }
}

/// Every name that a block declares, and the blocks in it.
pub(crate) fn declared_in(block: &[Stmt]) -> HashSet<Name> {
    declarations(block).into_iter().map(|(name, _)| name).collect()
}

/// Every name that the program declares.
pub(crate) fn declared_names(program: &LoopProgram) -> Vec<Name> {
    let mut names = program.sizes.clone();
    names.extend(program.inputs.iter().chain(&program.outputs).map(|p| p.name));
    names.extend(declarations(&program.body).into_iter().map(|(name, _)| name));
    names
}

/// How many buffers are allocated.
pub(crate) fn allocations(program: &LoopProgram) -> usize {
    let mut count = 0;
    each_block(program, |block| count += block.iter().filter(|stmt| matches!(stmt, Stmt::Alloc(..))).count());
    count
}

/// Whether a buffer is allocated in a block, or in one inside of it.
pub(crate) fn allocates(block: &[Stmt]) -> bool {
    let mut todo: Vec<&[Stmt]> = vec![block];
    while let Some(block) = todo.pop() {
        for stmt in block {
            match stmt {
                Stmt::Alloc(..) => return true,
                Stmt::For { body, .. } => todo.push(body),
                Stmt::If { then, otherwise, .. } => todo.extend([then.as_slice(), otherwise.as_slice()]),
                _ => {}
            }
        }
    }
    false
}
