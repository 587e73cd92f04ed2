//! Reshape operators: the order of storage. They come in pairs that cancel, go through each other, and of a
//! generation they are a generation again.
//!
//! No condition says that what is padded or cut off is not negative: such terms are ill-typed.
//!
//! ATL inserts an adjoint pair around a term and then moves its inner half inwards. A truncation cuts off padding
//! only; that it does is shown again after every step, for a rewrite can change what is padding.

use crate::rewrite::{How, Law, ParameterKind, Rewrite};

/// An identity pair.
pub(super) static TRANSPOSE_TWICE: Rewrite = Rewrite {
    name: "transpose_twice",
    parameters: &[],
    left: "transpose(transpose(A))",
    right: "A",
    conditions: &[],
    law: Law::Exact,
    about: "Transposing twice changes nothing. Backwards, it inserts the pair.",
    how: How::Pattern,
};

/// An identity pair.
pub(super) static TILE: Rewrite = Rewrite {
    name: "tile",
    parameters: &[("k", ParameterKind::Number)],
    left: "A",
    right: "trunc_r(k*ceil_div(size(A), k) - size(A), flatten(split(k, A)))",
    conditions: &[],
    law: Law::Exact,
    about: "Blocks of k, laid one after the other, without the padding of the last block, are what was split.",
    how: How::Pattern,
};

/// An identity pair.
pub(super) static SPLIT_FLATTEN: Rewrite = Rewrite {
    name: "split_flatten",
    parameters: &[("k", ParameterKind::Number)],
    left: "split(k, flatten(A))",
    right: "A",
    conditions: &["size(A, 1) == k"],
    law: Law::Exact,
    about: "Blocks of the size that the rows had are the rows.",
    how: How::Pattern,
};

/// An identity pair.
pub(super) static TRUNC_PAD_R: Rewrite = Rewrite {
    name: "trunc_pad_r",
    parameters: &[("k", ParameterKind::Index)],
    left: "trunc_r(k, pad_r(k, A))",
    right: "A",
    conditions: &[],
    law: Law::Exact,
    about: "What was padded on the right is cut off again.",
    how: How::Pattern,
};

/// An identity pair.
pub(super) static TRUNC_PAD_L: Rewrite = Rewrite {
    name: "trunc_pad_l",
    parameters: &[("k", ParameterKind::Index)],
    left: "trunc_l(k, pad_l(k, A))",
    right: "A",
    conditions: &[],
    law: Law::Exact,
    about: "What was padded on the left is cut off again.",
    how: How::Pattern,
};

/// A concatenation regrouped.
pub(super) static CONCAT_CONCAT: Rewrite = Rewrite {
    name: "concat_concat",
    parameters: &[],
    left: "concat(concat(A, B), C)",
    right: "concat(A, concat(B, C))",
    conditions: &[],
    law: Law::Exact,
    about: "Three tensors one after the other, grouped in the other way.",
    how: How::Pattern,
};

/// A flattening goes into a concatenation.
pub(super) static FLATTEN_CONCAT: Rewrite = Rewrite {
    name: "flatten_concat",
    parameters: &[],
    left: "flatten(concat(A, B))",
    right: "concat(flatten(A), flatten(B))",
    conditions: &[],
    law: Law::Exact,
    about: "Rows one after the other, of two parts one after the other.",
    how: How::Pattern,
};

/// A truncation goes into a concatenation.
pub(super) static TRUNC_CONCAT: Rewrite = Rewrite {
    name: "trunc_concat",
    parameters: &[],
    left: "trunc_r(k, concat(A, B))",
    right: "concat(A, trunc_r(k, B))",
    conditions: &["k <= size(B)"],
    law: Law::Exact,
    about: "What is cut off at the end is cut off the last part.",
    how: How::Pattern,
};

/// A concatenation goes out of a generation.
pub(super) static GEN_CONCAT: Rewrite = Rewrite {
    name: "gen_concat",
    parameters: &[],
    left: "gen i in lo..hi. concat(A(i), B(i))",
    right: "transpose(concat(transpose(gen i in lo..hi. A(i)), transpose(gen i in lo..hi. B(i))))",
    conditions: &[],
    law: Law::Exact,
    about: "Rows that are made of two parts are two tensors side by side.",
    how: How::Pattern,
};

/// A truncation goes out of a generation.
pub(super) static GEN_TRUNC: Rewrite = Rewrite {
    name: "gen_trunc",
    parameters: &[],
    left: "gen i in lo..hi. trunc_r(k, A(i))",
    right: "transpose(trunc_r(k, transpose(gen i in lo..hi. A(i))))",
    conditions: &[],
    law: Law::Exact,
    about: "What is cut off the end of every row is cut off as columns.",
    how: How::Pattern,
};

/// Blocks of a generation.
pub(super) static UNFOLD_SPLIT: Rewrite = Rewrite {
    name: "unfold_split",
    parameters: &[
        ("io", ParameterKind::Fresh),
        ("ii", ParameterKind::Fresh),
        ("lo", ParameterKind::Index),
        ("i", ParameterKind::Fresh),
    ],
    left: "split(k, gen i in lo..lo + n. E(i))",
    right: "gen io in 0..ceil_div(n, k). gen ii in 0..k. guard(k*io + ii < n, E(lo + k*io + ii))",
    conditions: &[],
    law: Law::Exact,
    about: "A generation in blocks, as a generation of blocks; what the last one has beyond the end is guarded.",
    how: How::Pattern,
};

/// Rows of a generation, one after the other.
pub(super) static UNFOLD_FLATTEN: Rewrite = Rewrite {
    name: "unfold_flatten",
    parameters: &[
        ("x", ParameterKind::Fresh),
        ("k", ParameterKind::Number),
        ("i", ParameterKind::Fresh),
        ("j", ParameterKind::Fresh),
    ],
    left: "flatten(gen i in 0..n. gen j in 0..k. E(i, j))",
    right: "gen x in 0..k*n. E(floor_div(x, k), mod(x, k))",
    conditions: &[],
    law: Law::Exact,
    about: "Rows one after the other, as one generation. The way back is `tile_gen`.",
    how: How::Pattern,
};

/// A shorter generation.
pub(super) static UNFOLD_TRUNC_R: Rewrite = Rewrite {
    name: "unfold_trunc_r",
    parameters: &[("k", ParameterKind::Index)],
    left: "trunc_r(k, gen i in lo..hi + k. E(i))",
    right: "gen i in lo..hi. E(i)",
    conditions: &[],
    law: Law::Exact,
    about: "A generation without its last elements ends earlier.",
    how: How::Pattern,
};

/// A shorter generation.
pub(super) static UNFOLD_TRUNC_L: Rewrite = Rewrite {
    name: "unfold_trunc_l",
    parameters: &[("k", ParameterKind::Index)],
    left: "trunc_l(k, gen i in lo - k..hi. E(i))",
    right: "gen i in lo..hi. E(i)",
    conditions: &[],
    law: Law::Exact,
    about: "A generation without its first elements begins later.",
    how: How::Pattern,
};

/// A longer generation.
pub(super) static UNFOLD_PAD_R: Rewrite = Rewrite {
    name: "unfold_pad_r",
    parameters: &[],
    left: "pad_r(k, gen i in lo..hi. E(i))",
    right: "gen i in lo..hi + k. guard(i < hi, E(i))",
    conditions: &["lo <= hi"],
    law: Law::Exact,
    about: "Padding after a generation is a longer one whose guard is false there.",
    how: How::Pattern,
};

/// A longer generation.
pub(super) static UNFOLD_PAD_L: Rewrite = Rewrite {
    name: "unfold_pad_l",
    parameters: &[],
    left: "pad_l(k, gen i in lo..hi. E(i))",
    right: "gen i in lo - k..hi. guard(lo <= i, E(i))",
    conditions: &["lo <= hi"],
    law: Law::Exact,
    about: "Padding before a generation is a longer one whose guard is false there.",
    how: How::Pattern,
};
