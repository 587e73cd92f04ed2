//! Walks over a program before it is printed: which names it declares, reads and exchanges.

use std::collections::HashSet;

use certen_core::Term;
use certen_loops::{LoopProgram, Stmt, declarations, statements};
use certen_syntax::Name;

/// Every local and buffer that statements read or write.
pub(crate) fn walk(program: &LoopProgram, block: &[Stmt], visit: &mut impl FnMut(Name)) {
    for stmt in statements(block) {
        stmt.uses(&program.terms).into_iter().for_each(|(name, ..)| visit(name));
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
    for stmt in statements(&program.body) {
        if let Stmt::Swap(a, b) = stmt {
            names.extend([*a, *b]);
        }
    }
    names
}

/// Every name that the program declares.
pub(crate) fn declared_names(program: &LoopProgram) -> Vec<Name> {
    let mut names = program.sizes.clone();
    names.extend(program.given().map(|(name, _)| name));
    names.extend(declarations(&program.body).map(|(name, _)| name));
    names
}

/// How many buffers are allocated.
pub(crate) fn allocations(program: &LoopProgram) -> usize {
    statements(&program.body).filter(|stmt| matches!(stmt, Stmt::Alloc(..))).count()
}

/// Whether a buffer is allocated in a block, or in one inside it.
pub(crate) fn allocates(block: &[Stmt]) -> bool {
    statements(block).any(|stmt| matches!(stmt, Stmt::Alloc(..)))
}
