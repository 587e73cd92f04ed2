//! Counterexamples replayed: the sizes and indices are put into the kernel as it was read, by a walk over its trees that
//! shares nothing with the prover.

use std::collections::BTreeSet;

use crate::index::{Condition, Index, Values};
use crate::kernel::{Kernel, Range, Read};

/// Ranges and conditions around a place, for the replay.
pub(crate) enum Around {
    /// An index and its range.
    Range(Range),
    /// A condition that holds there.
    Condition(Condition),
}

/// Whether the access leaves its tensor at these values, which are a call and an iteration that there are.
pub(crate) fn leaves(kernel: &Kernel, scope: &[Around], read: &Read, values: &Values) -> bool {
    let Some(tensor) = kernel.tensors.get(read.tensor) else { return false };
    let is_inside = |(index, size): (&Index, &Index)| Some((0..size.value(values)?).contains(&index.value(values)?));
    let inside: Option<Vec<bool>> = read.at.iter().zip(&tensor.shape).map(is_inside).collect();
    is_call(kernel, values) && happens(scope, values) && inside.is_some_and(|inside| inside.contains(&false))
}

/// Whether two sizes differ in a call that there is.
pub(crate) fn differ(kernel: &Kernel, a: &Index, b: &Index, values: &Values) -> bool {
    let (a, b) = (a.value(values), b.value(values));
    is_call(kernel, values) && a.is_some() && b.is_some() && a != b
}

/// Whether a range of stores is not that of the tensor's dimension.
pub(crate) fn store_leaves(range: &Range, size: &Index, is_whole: bool, values: &Values) -> bool {
    let (low, high, size) = (range.low.value(values), range.high.value(values), size.value(values));
    let (Some(low), Some(high), Some(size)) = (low, high, size) else { return false };
    if is_whole { low != 0 || high > size } else { low < 0 || high > size }
}

/// Whether a caller can have these sizes: those that have no value are not looked at.
fn is_call(kernel: &Kernel, values: &Values) -> bool {
    let sizes = kernel.sizes.iter().filter_map(|size| values.get(size));
    sizes.into_iter().all(|size| *size >= 1) && kernel.facts.iter().all(|fact| fact.holds(values) != Some(false))
}

/// Whether an iteration with these indices happens.
fn happens(scope: &[Around], values: &Values) -> bool {
    scope.iter().all(|around| match around {
        Around::Range(range) => match (values.get(&range.name), range.low.value(values), range.high.value(values)) {
            (Some(at), Some(low), Some(high)) => (low..high).contains(&i128::from(*at)),
            // What the counterexample does not need has some value or other.
            _ => true,
        },
        Around::Condition(condition) => condition.holds(values) != Some(false),
    })
}

/// The values with one for every size and index, so that the counterexample can be run: sizes that do not matter are 1,
/// indices stand at their beginning.
pub(crate) fn completed(kernel: &Kernel, scope: &[Around], values: &Values) -> Option<Values> {
    let mut all = values.clone();
    for size in &kernel.sizes {
        all.entry(*size).or_insert(1);
    }
    let mut missing = BTreeSet::new();
    for around in scope {
        if let Around::Range(range) = around
            && !all.contains_key(&range.name)
        {
            match range.low.value(&all).and_then(|low| i64::try_from(low).ok()) {
                Some(low) => {
                    all.insert(range.name, low);
                }
                None => {
                    missing.insert(range.name);
                }
            }
        }
    }
    missing.is_empty().then_some(all)
}
