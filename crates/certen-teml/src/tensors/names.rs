//! Names for iterators: those of the program, and those of operations that write no lists.

use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::ranges::Sizes;

/// Names for iterators, which have to differ from those of sizes, tensors and statements.
pub(crate) struct IterNames {
    /// What the program uses for tensors and real statements.
    pub ids: FxHashSet<Name>,
    /// What the program uses as iterators.
    pub iterators: FxHashSet<Name>,
    replaced: FxHashMap<Name, Name>,
    generated: Vec<Name>,
    summed: u64,
}

impl IterNames {
    pub(crate) fn new(ids: FxHashSet<Name>, iterators: FxHashSet<Name>) -> IterNames {
        IterNames { ids, iterators, replaced: FxHashMap::default(), generated: Vec::new(), summed: 0 }
    }

    /// The iterator that the program calls so.
    pub(super) fn iterator(&mut self, name: Name, sizes: &Sizes) -> Name {
        if !self.ids.contains(&name) {
            return name;
        }
        if let Some(&other) = self.replaced.get(&name) {
            return other;
        }
        let taken = |name: Name| self.ids.contains(&name) || self.iterators.contains(&name) || sizes.has(name);
        let other = Name::fresh(name.as_str(), taken);
        self.iterators.insert(other);
        self.replaced.insert(name, other);
        other
    }

    /// The iterators `i1`, `i2`, … that operations without lists use.
    pub(super) fn generated(&mut self, count: usize, sizes: &Sizes) -> Vec<Name> {
        while self.generated.len() < count {
            let base = format!("i{}", self.generated.len() + 1);
            let name = Name::fresh(&base, |name| self.ids.contains(&name) || sizes.has(name));
            self.generated.push(name);
        }
        self.generated[..count].to_vec()
    }

    /// An iterator that nothing else uses.
    pub(super) fn summed(&mut self, base: &str, sizes: &Sizes) -> Name {
        let taken = |name: Name| self.ids.contains(&name) || self.iterators.contains(&name) || sizes.has(name);
        Name::numbered(base, &mut self.summed, taken)
    }
}
