//! Indices and sizes set apart.
//!
//! Some languages have sizes and indices of one name, or several indices of one: in a kernel, a name means one thing in a
//! statement, so that no fact about one is taken for a fact about the other. Readers of such languages call an index
//! [`index`], with a point at its end or a number after it, which no size has; here it gets a name that people see.

use std::collections::{BTreeMap, BTreeSet};

use certen_syntax::Name;

use crate::index::Index;
use crate::kernel::{Kernel, Statement, Value};

/// What the index of a name is called until it is set apart.
pub(crate) fn index(name: &str) -> Name {
    Name::new(&format!("{name}."))
}

/// What the user calls an index.
pub(crate) fn written(index: Name) -> &'static str {
    index.as_str().split('.').next().unwrap_or_default()
}

/// Renames the indices of a kernel, where their names mean something else as well.
pub(crate) fn apart(kernel: &mut Kernel) {
    let sizes: BTreeSet<Name> = kernel.sizes.iter().copied().collect();
    for statement in &mut kernel.statements {
        set_apart(statement, &sizes);
    }
}

/// Gives the indices of a statement names of their own: different from sizes, and as they are called in the text.
fn set_apart(statement: &mut Statement, sizes: &BTreeSet<Name>) {
    let mut taken = sizes.clone();
    let mut renamed: BTreeMap<Name, Index> = BTreeMap::new();
    for range in &mut statement.ranges {
        let name = Name::fresh(&word(range.name), |name| taken.contains(&name));
        taken.insert(name);
        if name != range.name {
            renamed.insert(range.name, Index::Name(name));
            range.name = name;
        }
    }
    statement.body = renamed_axes(&statement.body.with(&renamed), &mut taken);
}

fn renamed_axes(value: &Value, taken: &mut BTreeSet<Name>) -> Value {
    let mut axes = BTreeMap::new();
    collect_axes(value, &mut axes, taken);
    let replaced = axes.iter().map(|(old, new)| (*old, Index::Name(*new))).collect();
    let mut value = value.with(&replaced);
    value.each_range(&mut |range| {
        if let Some(new) = axes.get(&range.name) {
            range.name = *new;
        }
    });
    value
}

fn collect_axes(value: &Value, axes: &mut BTreeMap<Name, Name>, taken: &mut BTreeSet<Name>) {
    if let Value::Reduce(_, ranges, _) = value {
        for range in ranges {
            axes.entry(range.name).or_insert_with(|| {
                let new = Name::fresh(&word(range.name), |name| taken.contains(&name));
                taken.insert(new);
                new
            });
        }
    }
    value.parts().into_iter().for_each(|part| collect_axes(part, axes, taken));
}

/// A word for an index.
fn word(index: Name) -> String {
    let word: String = written(index).chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    if word.starts_with(|c: char| c.is_ascii_alphabetic()) { word } else { format!("k{word}") }
}
