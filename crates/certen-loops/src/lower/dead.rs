//! Removes buffers and locals that are never read, and the statements that compute them.
//!
//! Lowering stores a `let` inside a loop before it knows who reads it, and fills accumulators first. Where the loop was
//! cut, a piece may have no reader left: then it is removed, with what is only computed for it. Dead is what no statement of
//! the block that declares it reads or exchanges, other than to give it another value itself.
//!
//! Recursion follows the nesting of blocks, which is limited.

use std::collections::HashSet;

use certen_core::Terms;
use certen_syntax::Name;

use crate::ir::Stmt;
use crate::walk::{Use, declared_at_top};

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
    for stmt in block.iter_mut() {
        for inner in stmt.blocks_mut() {
            let (inner, removed) = prune(inner, terms);
            read.extend(inner);
            changed |= removed;
        }
        let own = if let Stmt::Assign { target, .. } = stmt { Some(target.name()) } else { None };
        let uses = stmt
            .uses(terms)
            .into_iter()
            .filter(|(name, _, how)| *how == Use::Exchange || (*how == Use::Read && Some(*name) != own));
        read.extend(uses.map(|(name, ..)| name));
    }
    // What is declared here and read elsewhere is another of the same name.
    let dead: HashSet<Name> = declared_at_top(block).filter(|name| !read.remove(name)).collect();
    if !dead.is_empty() {
        without(block, &dead);
        changed = true;
    }
    (read, changed)
}

/// Removes all that is done to some names; conditions and loops that do nothing then, too.
fn without(block: &mut Vec<Stmt>, dead: &HashSet<Name>) {
    // A block beside the declaration may have another of the same name.
    let inside = |inner: &mut Vec<Stmt>| {
        let others: HashSet<Name> = declared_at_top(inner).filter(|name| dead.contains(name)).collect();
        if others.is_empty() { without(inner, dead) } else { without(inner, &(dead - &others)) }
    };
    block.retain_mut(|stmt| {
        stmt.blocks_mut().for_each(inside);
        let has_blocks = stmt.blocks().next().is_some();
        let is_dead = match stmt {
            Stmt::Nest(name) => dead.contains(name),
            _ if has_blocks => stmt.blocks().all(|block| block.is_empty()),
            _ => stmt.names_mut().any(|name| dead.contains(name)),
        };
        !is_dead
    });
}
