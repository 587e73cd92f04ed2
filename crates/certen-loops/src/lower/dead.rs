//! Buffers and locals that nobody reads, and the statements that give them values.
//!
//! A `let` inside of a loop is stored before it is known who reads it, and an accumulator is filled before. Where the loop was
//! cut, a piece may have no reader left: then it is removed, with what is only computed for it. Dead is what no statement of
//! the block that declares it reads or exchanges, other than to give it another value itself.
//!
//! Recursion follows the nesting of blocks, which is limited.

use std::collections::HashSet;

use certen_core::{Term, TermId, Terms};
use certen_syntax::Name;

use crate::ir::{Stmt, Target};

/// How long a chain of values that are only computed for each other can be to be removed whole.
const MAX_ROUNDS: usize = 16;

/// Removes what is dead from a body.
pub(super) fn remove(body: &mut Vec<Stmt>, terms: &Terms) {
    // What a dead value was computed from may be dead without it.
    for _ in 0..MAX_ROUNDS {
        if !prune(body, terms).1 {
            break;
        }
    }
}

/// Removes what is dead in a block; what the rest reads of the names around it, and whether anything was removed.
fn prune(block: &mut Vec<Stmt>, terms: &Terms) -> (HashSet<Name>, bool) {
    let (mut read, mut changed) = (HashSet::new(), false);
    let reads = |root: TermId| {
        terms.parts_first(root).into_iter().filter_map(|id| match terms.get(id) {
            Term::Ref(name, _) => Some(*name),
            _ => None,
        })
    };
    for stmt in block.iter_mut() {
        match stmt {
            Stmt::For { body, .. } => {
                let (inner, removed) = prune(body, terms);
                read.extend(inner);
                changed |= removed;
            }
            Stmt::If { then, otherwise, .. } => {
                for branch in [then, otherwise] {
                    let (inner, removed) = prune(branch, terms);
                    read.extend(inner);
                    changed |= removed;
                }
            }
            Stmt::Swap(a, b) => read.extend([*a, *b]),
            Stmt::Local { init: Some(value), .. } => read.extend(reads(*value)),
            Stmt::Assign { target, value, .. } => read.extend(reads(*value).filter(|name| *name != target.name())),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Local { init: None, .. } => {}
        }
    }
    // What is declared here and read elsewhere is another of the same name.
    let dead: HashSet<Name> = declared(block).filter(|name| !read.remove(name)).collect();
    if !dead.is_empty() {
        without(block, &dead);
        changed = true;
    }
    (read, changed)
}

fn declared(block: &[Stmt]) -> impl Iterator<Item = Name> {
    block.iter().filter_map(|stmt| match stmt {
        Stmt::Alloc(name, _) | Stmt::Local { name, .. } => Some(*name),
        _ => None,
    })
}

/// Removes all that is done to some names; conditions and loops that do nothing then, too.
fn without(block: &mut Vec<Stmt>, dead: &HashSet<Name>) {
    // A block beside the declaration may have another of the same name.
    let inside = |inner: &mut Vec<Stmt>| {
        let others: HashSet<Name> = declared(inner).filter(|name| dead.contains(name)).collect();
        if others.is_empty() { without(inner, dead) } else { without(inner, &(dead - &others)) }
    };
    block.retain_mut(|stmt| match stmt {
        Stmt::Alloc(name, _) | Stmt::Free(name) | Stmt::Nest(name) | Stmt::Local { name, .. } => !dead.contains(name),
        Stmt::Assign { target: Target::Element(name, _) | Target::Local(name), .. } => !dead.contains(name),
        Stmt::For { body, .. } => {
            inside(body);
            !body.is_empty()
        }
        Stmt::If { then, otherwise, .. } => {
            inside(then);
            inside(otherwise);
            !then.is_empty() || !otherwise.is_empty()
        }
        Stmt::Swap(..) => true,
    });
}
