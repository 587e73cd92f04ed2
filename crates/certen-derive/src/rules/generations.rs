//! Generations: the order of computation. Splitting one at a point separates tails, splitting it into blocks tiles it.
//!
//! A generation over an empty range has size 0, also where its upper bound is below its lower one: the equations hold
//! there too, with no other condition than those that are named.

use crate::rewrite::{How, Law, ParameterKind, Rewrite};

/// Peeling.
pub(super) static SPLIT_GEN: Rewrite = Rewrite {
    name: "split_gen",
    parameters: &[("m", ParameterKind::Index)],
    left: "gen i in lo..hi. E(i)",
    right: "concat(gen i in lo..m. E(i), gen i in m..hi. E(i))",
    conditions: &["lo <= m", "m <= hi"],
    law: Law::Exact,
    about: "A generation split at a point, to peel off its first or last elements or to tell tiles that fit from \
            those that do not. Backwards, two generations that follow on each other become one.",
    how: How::Pattern,
};

/// Tiling.
pub(super) static TILE_GEN: Rewrite = Rewrite {
    name: "tile_gen",
    parameters: &[
        ("k", ParameterKind::Number),
        ("io", ParameterKind::Fresh),
        ("ii", ParameterKind::Fresh),
        ("lo", ParameterKind::Index),
        ("i", ParameterKind::Fresh),
    ],
    left: "gen i in lo..lo + n. E(i)",
    right: "trunc_r(k*ceil_div(n, k) - n, flatten(gen io in 0..ceil_div(n, k). gen ii in 0..k. \
            guard(k*io + ii < n, E(lo + k*io + ii))))",
    conditions: &[],
    law: Law::Exact,
    about: "A generation in blocks of k. The last block may reach over the end; what it has there is padding, which \
            is cut off. It is `tile` followed by `unfold_split`.",
    how: How::Pattern,
};

/// Loop fusion of a nest.
pub(super) static MERGE_GENS: Rewrite = Rewrite {
    name: "merge_gens",
    parameters: &[("x", ParameterKind::Fresh)],
    left: "gen i in 0..n. gen j in 0..k. E(i, j)",
    right: "split(k, gen x in 0..k*n. E(floor_div(x, k), mod(x, k)))",
    conditions: &[],
    law: Law::Exact,
    about: "Two generations as one over all their elements; `split` says where they are stored. The way back is \
            `unfold_split`.",
    how: How::Pattern,
};

/// Loop interchange.
pub(super) static SWAP_GENS: Rewrite = Rewrite {
    name: "swap_gens",
    parameters: &[],
    left: "gen i in lo..hi. gen j in lo2..hi2. E(i, j)",
    right: "transpose(gen j in lo2..hi2. gen i in lo..hi. E(i, j))",
    conditions: &[],
    law: Law::Exact,
    about: "Two generations in the other order: computed by columns, stored by rows. Backwards, a transposition goes \
            into the generations that it is of.",
    how: How::Pattern,
};

/// Reindexing.
pub(super) static SHIFT_GEN: Rewrite = Rewrite {
    name: "shift_gen",
    parameters: &[("a", ParameterKind::Index), ("lo", ParameterKind::Index)],
    left: "gen i in lo..lo + n. E(i)",
    right: "gen i in a..a + n. E(i - a + lo)",
    conditions: &[],
    law: Law::Exact,
    about: "The index of a generation counted from another number, often 0.",
    how: How::Pattern,
};

/// Another way to write a range.
pub(super) static RANGE_GEN: Rewrite = Rewrite {
    name: "range_gen",
    parameters: &[
        ("lo2", ParameterKind::Index),
        ("hi2", ParameterKind::Index),
        ("lo", ParameterKind::Index),
        ("hi", ParameterKind::Index),
    ],
    left: "gen i in lo..hi. E(i)",
    right: "gen i in lo2..hi2. E(i)",
    conditions: &["max(hi - lo, 0) == max(hi2 - lo2, 0)", "lo < hi: lo == lo2"],
    law: Law::Exact,
    about: "The range of a generation in other words: the same elements, or none in both. Tails are split off at \
            points such as min(n, 1), so that they are right for size 0 too; where there is anything in between, \
            that is 1.",
    how: How::Pattern,
};
