//! Names for tensors: where something is stored, and for how long.
//!
//! A `let` inside a generation is a buffer for one of its elements. Moved out, it is computed once and shared;
//! moved in, or inlined, it takes less memory and is computed again.

use crate::rewrite::{How, Law, ParameterKind, Rewrite};

/// Inlining.
pub(super) static INLINE: Rewrite = Rewrite {
    name: "inline",
    parameters: &[("x", ParameterKind::Fresh), ("A", ParameterKind::Term)],
    left: "let x = A in B(x)",
    right: "B(A)",
    conditions: &[],
    law: Law::Exact,
    about: "A tensor instead of its name: it is not stored any more, and `beta` computes its elements where they are \
            read. Backwards, every occurrence of a term gets a name; `bind` does that for elements of a tensor, too.",
    how: How::Pattern,
};

/// A buffer goes into a generation.
pub(super) static LET_GEN: Rewrite = Rewrite {
    name: "let_gen",
    parameters: &[],
    left: "let x = A in gen i in lo..hi. B(x, i)",
    right: "gen i in lo..hi. let x = A in B(x, i)",
    conditions: &[],
    law: Law::Exact,
    about: "A buffer that is made anew for every element of a generation. Backwards, it is hoisted: made once for all.",
    how: How::Pattern,
};

/// A buffer goes into a sum.
pub(super) static LET_SUM: Rewrite = Rewrite {
    name: "let_sum",
    parameters: &[],
    left: "let x = A in reduce i in lo..hi. B(x, i)",
    right: "reduce i in lo..hi. let x = A in B(x, i)",
    conditions: &[],
    law: Law::Exact,
    about: "A buffer that is made anew for every summand. Backwards, it is hoisted.",
    how: How::Pattern,
};

/// A buffer goes into a guard.
pub(super) static LET_GUARD: Rewrite = Rewrite {
    name: "let_guard",
    parameters: &[],
    left: "let x = A in guard(P, B(x))",
    right: "guard(P, let x = A in B(x))",
    conditions: &[],
    law: Law::Exact,
    about: "A buffer that is made only where a guard holds.",
    how: How::Pattern,
};

/// A buffer goes into a reshape operator.
pub(super) static LET_RESHAPE: Rewrite = Rewrite {
    name: "let_reshape",
    parameters: &[],
    left: "let x = A in reshape(B(x))",
    right: "reshape(let x = A in B(x))",
    conditions: &[],
    law: Law::Exact,
    about: "A buffer inside flatten, transpose, split, pad or trunc.",
    how: How::Pattern,
};

/// A buffer goes into both parts of a concatenation.
pub(super) static LET_CONCAT: Rewrite = Rewrite {
    name: "let_concat",
    parameters: &[],
    left: "let x = A in concat(B(x), C(x))",
    right: "concat(let x = A in B(x), let x = A in C(x))",
    conditions: &[],
    law: Law::Exact,
    about: "A buffer for each part of a concatenation. Backwards, they share one.",
    how: How::Pattern,
};

/// A buffer goes into both operands of an operation.
pub(super) static LET_OP: Rewrite = Rewrite {
    name: "let_op",
    parameters: &[],
    left: "let x = A in op(B(x), C(x))",
    right: "op(let x = A in B(x), let x = A in C(x))",
    conditions: &[],
    law: Law::Exact,
    about: "A buffer for each operand of an operation on numbers. Backwards, they share one.",
    how: How::Pattern,
};

/// Two buffers in the other order.
pub(super) static LET_LET: Rewrite = Rewrite {
    name: "let_let",
    parameters: &[],
    left: "let x = A in let y = B in C(x, y)",
    right: "let y = B in let x = A in C(x, y)",
    conditions: &[],
    law: Law::Exact,
    about: "Two buffers that do not need each other, in the other order.",
    how: How::Pattern,
};

/// A buffer that only another one needs.
pub(super) static LET_VALUE: Rewrite = Rewrite {
    name: "let_value",
    parameters: &[],
    left: "let x = (let y = A in B(y)) in C(x)",
    right: "let y = A in let x = B(y) in C(x)",
    conditions: &[],
    law: Law::Exact,
    about: "A buffer inside what another one is computed from. Backwards, it lives only as long as that is \
            computed.",
    how: How::Pattern,
};
