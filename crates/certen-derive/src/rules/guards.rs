//! Guards: a value where a condition holds, else padding. They are settled by what is known where they stand,
//! replaced by equivalent ones, merged, and go through everything that only moves elements.
//!
//! That a read stays inside its tensor when it leaves the guard that made it safe is shown again after every step.

use crate::rewrite::{How, Law, ParameterKind, Rewrite};

/// A guard that holds.
pub(super) static GUARD_TRUE: Rewrite = Rewrite {
    name: "guard_true",
    parameters: &[("P", ParameterKind::Cond)],
    left: "guard(P, A)",
    right: "A",
    conditions: &["P"],
    law: Law::Exact,
    about: "A guard whose condition holds wherever it stands is not needed. Backwards, a guard that is true is \
            written down, so that it can be moved.",
    how: How::Pattern,
};

/// A guard that never holds.
pub(super) static GUARD_FALSE: Rewrite = Rewrite {
    name: "guard_false",
    parameters: &[("P", ParameterKind::Cond), ("A", ParameterKind::Term)],
    left: "guard(P, A)",
    right: "0",
    conditions: &["P: false"],
    law: Law::Exact,
    about: "A guarded number is zero where its guard never holds. It is no padding any more.",
    how: How::Pattern,
};

/// Another way to write a guard.
pub(super) static GUARD_SAME: Rewrite = Rewrite {
    name: "guard_same",
    parameters: &[("Q", ParameterKind::Cond), ("P", ParameterKind::Cond)],
    left: "guard(P, A)",
    right: "guard(Q, A)",
    conditions: &["P: Q", "Q: P"],
    law: Law::Exact,
    about: "The condition of a guard in other words, or without what is known where it stands.",
    how: How::Pattern,
};

/// Two guards.
pub(super) static GUARD_GUARD: Rewrite = Rewrite {
    name: "guard_guard",
    parameters: &[("P", ParameterKind::Cond), ("Q", ParameterKind::Cond)],
    left: "guard(P, guard(Q, A))",
    right: "guard(P && Q, A)",
    conditions: &[],
    law: Law::Exact,
    about: "Two guards as one. Backwards, a guard is split, so that a part of it can be moved.",
    how: How::Pattern,
};

/// A guard goes into a generation.
pub(super) static GUARD_GEN: Rewrite = Rewrite {
    name: "guard_gen",
    parameters: &[],
    left: "guard(P, gen i in lo..hi. E(i))",
    right: "gen i in lo..hi. guard(P, E(i))",
    conditions: &[],
    law: Law::Exact,
    about: "A guard around a generation guards each of its elements.",
    how: How::Pattern,
};

/// A guard goes into a sum.
pub(super) static GUARD_SUM: Rewrite = Rewrite {
    name: "guard_sum",
    parameters: &[],
    left: "guard(P, sum i in lo..hi. E(i))",
    right: "sum i in lo..hi. guard(P, E(i))",
    conditions: &[],
    law: Law::Exact,
    about: "A guard around a sum guards each of its summands.",
    how: How::Pattern,
};

/// A guard goes into a reshape operator.
pub(super) static GUARD_RESHAPE: Rewrite = Rewrite {
    name: "guard_reshape",
    parameters: &[],
    left: "guard(P, reshape(A))",
    right: "reshape(guard(P, A))",
    conditions: &[],
    law: Law::Exact,
    about: "A guard around flatten, transpose, split, pad or trunc guards what is reshaped.",
    how: How::Pattern,
};

/// A guard goes into a concatenation.
pub(super) static GUARD_CONCAT: Rewrite = Rewrite {
    name: "guard_concat",
    parameters: &[],
    left: "guard(P, concat(A, B))",
    right: "concat(guard(P, A), guard(P, B))",
    conditions: &[],
    law: Law::Exact,
    about: "A guard around a concatenation guards both parts.",
    how: How::Pattern,
};

/// A guard goes out of an addition.
pub(super) static GUARD_ADD: Rewrite = Rewrite {
    name: "guard_add",
    parameters: &[],
    left: "guard(P, A) + guard(P, B)",
    right: "guard(P, A + B)",
    conditions: &[],
    law: Law::Exact,
    about: "The same guard on both summands guards the sum: it is zero and nothing else where the guard is false.",
    how: How::Pattern,
};

/// A guard goes out of a product.
pub(super) static GUARD_MUL: Rewrite = Rewrite {
    name: "guard_mul",
    parameters: &[],
    left: "guard(P, A) * B",
    right: "guard(P, A * B)",
    conditions: &[],
    law: Law::Ring,
    about: "A guarded factor guards the product, for zero times anything is zero; of floats that is not true of \
            infinity. For the other factor, begin with `swap_factors`.",
    how: How::Pattern,
};

/// A choice with zero.
pub(super) static IF_GUARD: Rewrite = Rewrite {
    name: "if_guard",
    parameters: &[],
    left: "if P then A else 0",
    right: "guard(P, A)",
    conditions: &[],
    law: Law::Exact,
    about: "A choice between a number and zero is a guard.",
    how: How::Pattern,
};

/// A choice that is settled.
pub(super) static IF_TRUE: Rewrite = Rewrite {
    name: "if_true",
    parameters: &[("P", ParameterKind::Cond), ("B", ParameterKind::Term)],
    left: "if P then A else B",
    right: "A",
    conditions: &["P"],
    law: Law::Exact,
    about: "A choice whose condition holds wherever it stands.",
    how: How::Pattern,
};

/// A choice that is settled.
pub(super) static IF_FALSE: Rewrite = Rewrite {
    name: "if_false",
    parameters: &[("P", ParameterKind::Cond), ("A", ParameterKind::Term)],
    left: "if P then A else B",
    right: "B",
    conditions: &["P: false"],
    law: Law::Exact,
    about: "A choice whose condition never holds where it stands.",
    how: How::Pattern,
};
