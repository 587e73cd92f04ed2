//! Selections from generations: how stages are fused, and pulled apart.

use crate::rewrite::{How, Law, ParameterKind, Rewrite};

/// Fusion.
pub(super) static BETA: Rewrite = Rewrite {
    name: "beta",
    parameters: &[
        ("a", ParameterKind::Index),
        ("lo", ParameterKind::Index),
        ("hi", ParameterKind::Index),
        ("i", ParameterKind::Fresh),
    ],
    left: "(gen i in lo..hi. E(i))[a]",
    right: "E(lo + a)",
    conditions: &["0 <= a", "a < hi - lo"],
    law: Law::Exact,
    about: "An element of a generation is its body at that index. After `inline`, this fuses two stages. Backwards, \
            a term becomes an element of a new generation, over which it can then be bound.",
    how: How::Pattern,
};

/// Eta.
pub(super) static ETA: Rewrite = Rewrite {
    name: "eta",
    parameters: &[("i", ParameterKind::Fresh)],
    left: "gen i in 0..size(A). A[i]",
    right: "A",
    conditions: &[],
    law: Law::Exact,
    about: "A tensor element by element is the tensor. Backwards, what is no generation becomes one, so that the \
            other rewrites can be used on it.",
    how: How::Pattern,
};

/// A selection goes into a guard.
pub(super) static SELECT_GUARD: Rewrite = Rewrite {
    name: "select_guard",
    parameters: &[],
    left: "guard(P, A)[a]",
    right: "guard(P, A[a])",
    conditions: &["0 <= a", "a < size(A)"],
    law: Law::Exact,
    about: "An element of a guarded tensor is the guarded element, if there is such an element also where the guard \
            is false.",
    how: How::Pattern,
};
