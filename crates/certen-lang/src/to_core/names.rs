//! Names of the Core that is made: never shadowed, and the user's own wherever that is possible.
//!
//! An index or state has its name while its scope is open. A tensor may be bound further out than the place where the
//! need for it was seen, around scopes that are already closed; so it takes a name that nothing has had since the
//! statement began.

use std::collections::{HashMap, HashSet};

use certen_syntax::Name;

/// The names that are in use.
#[derive(Default)]
pub(super) struct CoreNames {
    /// Sizes, inputs, and everything that is bound around what is being built; and in which scope.
    active: HashMap<Name, usize>,
    /// Every name that was given since the statement began.
    recent: HashSet<Name>,
    /// The smallest number worth trying after a name.
    next: HashMap<Name, u64>,
}

/// A name that is given back when its scope is closed.
pub(super) struct GivenName {
    /// The name.
    pub(super) name: Name,
    base: Name,
    count: u64,
}

impl CoreNames {
    /// Takes a name as it is; sizes and inputs are unique already.
    pub(super) fn reserve(&mut self, name: Name) {
        self.active.insert(name, 0);
    }

    /// The scope that a name is bound in; nothing if it is not bound.
    pub(super) fn depth(&self, name: Name) -> Option<usize> {
        self.active.get(&name).copied()
    }

    /// A name for an index or state of a scope.
    pub(super) fn index(&mut self, base: Name, depth: usize) -> GivenName {
        self.give(base, depth, false)
    }

    /// A name for a tensor that is bound in a scope.
    pub(super) fn tensor(&mut self, base: Name, depth: usize) -> GivenName {
        self.give(base, depth, true)
    }

    fn give(&mut self, base: Name, depth: usize, unused: bool) -> GivenName {
        let mut count = self.next.get(&base).copied().unwrap_or(0);
        loop {
            let name = if count == 0 { base } else { Name::new(&format!("{base}_{count}")) };
            let taken = self.active.contains_key(&name) || (unused && self.recent.contains(&name));
            if !taken {
                self.active.insert(name, depth);
                self.recent.insert(name);
                self.next.insert(base, count + 1);
                return GivenName { name, base, count };
            }
            count += 1;
        }
    }

    /// Ends the scope of a name.
    pub(super) fn give_back(&mut self, given: &GivenName) {
        self.active.remove(&given.name);
        if let Some(next) = self.next.get_mut(&given.base) {
            *next = (*next).min(given.count);
        }
    }

    /// Takes a name that was given back again, for the same scope.
    pub(super) fn take_back(&mut self, given: &GivenName, depth: usize) {
        self.active.insert(given.name, depth);
    }

    /// Another statement begins: no scope is open.
    pub(super) fn statement(&mut self) {
        self.recent.clear();
    }
}
