//! Buffers that nobody reads, and the statements that fill them.
//!
//! A `let` inside of a loop is stored before it is known who reads it. Where the loop was cut, a piece may have no reader
//! left: then its buffer, and everything that is only computed for it, is removed. A buffer is dead if no statement of the
//! block that allocates it reads or exchanges it, other than those that fill dead buffers.
//!
//! Recursion follows the nesting of blocks, which is limited.

use std::collections::HashSet;

use certen_core::{Term, Terms};
use certen_syntax::Name;

use crate::ir::{Stmt, Target, parts_first};

/// Removes dead buffers from a body.
pub(super) fn remove(body: &mut Vec<Stmt>, terms: &Terms) {
    // What a dead buffer was computed from may be dead without it.
    while prune(body, terms).1 {}
}

/// Removes what is dead in a block; what the rest reads, and whether anything was removed.
fn prune(block: &mut Vec<Stmt>, terms: &Terms) -> (HashSet<Name>, bool) {
    let (mut read, mut changed) = (HashSet::new(), false);
    let add = |root, read: &mut HashSet<Name>| {
        for id in parts_first(terms, root) {
            if let Term::Ref(name, _) = terms.get(id) {
                read.insert(*name);
            }
        }
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
            Stmt::Local { init: Some(value), .. } => add(*value, &mut read),
            Stmt::Assign { value, .. } => add(*value, &mut read),
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Local { init: None, .. } => {}
        }
    }
    let dead: HashSet<Name> = block
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::Alloc(name, _) if !read.contains(name) => Some(*name),
            _ => None,
        })
        .collect();
    if !dead.is_empty() {
        without(block, &dead);
        changed = true;
    }
    (read, changed)
}

/// Removes all that is done to some buffers; conditions and loops that do nothing then, too.
fn without(block: &mut Vec<Stmt>, dead: &HashSet<Name>) {
    block.retain_mut(|stmt| match stmt {
        Stmt::Alloc(name, _) | Stmt::Free(name) | Stmt::Nest(name) => !dead.contains(name),
        Stmt::Assign { target: Target::Element(name, _), .. } => !dead.contains(name),
        Stmt::For { body, .. } => {
            without(body, dead);
            !body.is_empty()
        }
        Stmt::If { then, otherwise, .. } => {
            without(then, dead);
            without(otherwise, dead);
            !then.is_empty() || !otherwise.is_empty()
        }
        Stmt::Swap(..) | Stmt::Local { .. } | Stmt::Assign { .. } => true,
    });
}
