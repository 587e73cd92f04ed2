//! Fresh names for what lowering declares: loop indices, accumulators, buffers of `let`s.
//!
//! A name is given for a block and given back when the block is closed, so that loops beside each other can have the same
//! index, as a person would write them.

use std::collections::{HashMap, HashSet};

use certen_syntax::Name;

/// Fresh names for loop indices, locals and buffers of `let`s.
#[derive(Default)]
pub(super) struct FreshNames {
    /// Sizes and buffers of the whole program: no index may hide one.
    taken: HashSet<Name>,
    /// Every name that the user wrote: no accumulator may look like one.
    user: HashSet<Name>,
    /// What is in scope in the open blocks.
    active: HashSet<Name>,
    /// The smallest number worth trying after a name.
    next: HashMap<Name, u64>,
    /// What ever was in scope, and the smallest number after a name that was not.
    used: HashSet<Name>,
    unused: HashMap<Name, u64>,
}

/// A name that [`FreshNames`] gave, to be given back when its block is closed.
pub(super) struct FreshName {
    pub(super) name: Name,
    base: Name,
    count: u64,
}

impl FreshNames {
    /// The names that must not be hidden, and those that the user wrote.
    pub(super) fn new(taken: HashSet<Name>, user: HashSet<Name>) -> FreshNames {
        FreshNames { taken, user, ..FreshNames::default() }
    }

    /// The first of `base`, `base_1`, … that is free; with `own`, one that the user did not write either; with `new`, one
    /// that was never given before.
    pub(super) fn give(&mut self, base: Name, own: bool, new: bool) -> FreshName {
        let first = if new { &self.unused } else { &self.next };
        let mut count = first.get(&base).copied().unwrap_or(0);
        loop {
            let name = if count == 0 { base } else { Name::new(&format!("{base}_{count}")) };
            let hides =
                self.taken.contains(&name) || (own && self.user.contains(&name)) || (new && self.used.contains(&name));
            if !hides && self.active.insert(name) {
                self.used.insert(name);
                (if new { &mut self.unused } else { &mut self.next }).insert(base, count + 1);
                return FreshName { name, base, count };
            }
            count += 1;
        }
    }

    pub(super) fn give_back(&mut self, given: &FreshName) {
        self.active.remove(&given.name);
        if let Some(next) = self.next.get_mut(&given.base) {
            *next = (*next).min(given.count);
        }
    }
}
