//! Sums and other reductions: their order, their range, and sums of which one summand is left.
//!
//! A sum begins at zero and adds from the first index to the last. Floats never reach a negative zero that way, so
//! adding a zero more or less, as a guard that is false does, changes no bit: such rewrites are exact. Those that add
//! in another order are not, nor those that leave out the addition to the first zero.

use crate::rewrite::{How, Law, ParameterKind, Rewrite};

/// Peeling of a sum.
pub(super) static SPLIT_SUM: Rewrite = Rewrite {
    name: "split_sum",
    parameters: &[("m", ParameterKind::Index)],
    left: "sum i in lo..hi. E(i)",
    right: "(sum i in lo..m. E(i)) + (sum i in m..hi. E(i))",
    conditions: &["lo <= m", "m <= hi"],
    law: Law::Ring,
    about: "A sum of numbers split at a point.",
    how: How::Pattern,
};

/// Tiling of a sum.
pub(super) static TILE_SUM: Rewrite = Rewrite {
    name: "tile_sum",
    parameters: &[
        ("k", ParameterKind::Number),
        ("io", ParameterKind::Fresh),
        ("ii", ParameterKind::Fresh),
        ("lo", ParameterKind::Index),
        ("i", ParameterKind::Fresh),
    ],
    left: "sum i in lo..lo + n. E(i)",
    right: "sum io in 0..ceil_div(n, k). sum ii in 0..k. guard(k*io + ii < n, E(lo + k*io + ii))",
    conditions: &[],
    law: Law::Ring,
    about: "A sum in blocks of k; what the last block has beyond the end is guarded.",
    how: How::Pattern,
};

/// Two sums in the other order.
pub(super) static SWAP_SUMS: Rewrite = Rewrite {
    name: "swap_sums",
    parameters: &[],
    left: "reduce i in lo..hi. reduce j in lo2..hi2. E(i, j)",
    right: "reduce j in lo2..hi2. reduce i in lo..hi. E(i, j)",
    conditions: &[],
    law: Law::Ring,
    about: "Two sums in the other order; also two products, minima or maxima.",
    how: How::Pattern,
};

/// A sum of tensors is a tensor of sums.
pub(super) static SUM_GEN: Rewrite = Rewrite {
    name: "sum_gen",
    parameters: &[],
    left: "reduce i in lo..hi. gen j in lo2..hi2. E(i, j)",
    right: "gen j in lo2..hi2. reduce i in lo..hi. E(i, j)",
    conditions: &[],
    law: Law::Exact,
    about: "A sum of tensors, one added after the other, has sums as elements; so has every reduction. Backwards, it \
            turns gathering into scattering.",
    how: How::Pattern,
};

/// A sum of reshaped tensors.
pub(super) static SUM_RESHAPE: Rewrite = Rewrite {
    name: "sum_reshape",
    parameters: &[],
    left: "sum i in lo..hi. reshape(E(i))",
    right: "reshape(sum i in lo..hi. E(i))",
    conditions: &[],
    law: Law::Exact,
    about: "A sum of tensors that are reshaped alike is the reshaped sum.",
    how: How::Pattern,
};

/// Reindexing of a sum.
pub(super) static SHIFT_SUM: Rewrite = Rewrite {
    name: "shift_sum",
    parameters: &[("a", ParameterKind::Index), ("lo", ParameterKind::Index)],
    left: "reduce i in lo..lo + n. E(i)",
    right: "reduce i in a..a + n. E(i - a + lo)",
    conditions: &[],
    law: Law::Exact,
    about: "The index of a reduction counted from another number, which may depend on indices around it.",
    how: How::Pattern,
};

/// Ranges and guards of sums.
pub(super) static RANGE_SUM: Rewrite = Rewrite {
    name: "range_sum",
    parameters: &[
        ("lo2", ParameterKind::Index),
        ("hi2", ParameterKind::Index),
        ("Q", ParameterKind::Cond),
        ("lo", ParameterKind::Index),
        ("hi", ParameterKind::Index),
        ("P", ParameterKind::Cond),
    ],
    left: "sum i in lo..hi. guard(P(i), E(i))",
    right: "sum i in lo2..hi2. guard(Q(i), E(i))",
    conditions: &[
        "forall i in lo..hi, P(i): lo2 <= i && i < hi2 && Q(i)",
        "forall i in lo2..hi2, Q(i): lo <= i && i < hi && P(i)",
    ],
    law: Law::Exact,
    about: "A sum over a wider or narrower range: what leaves the range enters the guard, and the other way round. A \
            sum without a guard gets one by `backwards guard_true(0 <= i)`, or whatever else holds there.",
    how: How::Pattern,
};

/// A condition of a sum.
pub(super) static SUM_WHERE: Rewrite = Rewrite {
    name: "sum_where",
    parameters: &[],
    left: "sum i in lo..hi where P(i). E(i)",
    right: "sum i in lo..hi. guard(P(i), E(i))",
    conditions: &[],
    law: Law::Exact,
    about: "Summands that are left out are zero.",
    how: How::Pattern,
};

/// A sum with one summand.
pub(super) static COLLAPSE_SUM: Rewrite = Rewrite {
    name: "collapse_sum",
    parameters: &[
        ("a", ParameterKind::Index),
        ("lo", ParameterKind::Index),
        ("hi", ParameterKind::Index),
        ("P", ParameterKind::Cond),
        ("i", ParameterKind::Fresh),
    ],
    left: "sum i in lo..hi. guard(P(i), E(i))",
    right: "guard(lo <= a && a < hi && P(a), E(a))",
    conditions: &["forall i in lo..hi, P(i): i == a"],
    law: Law::Ring,
    about: "A sum whose guard leaves one value to its index is that summand. Backwards, a read at a computed index \
            becomes a sum over all places that it could be at. A negative zero does not survive the sum.",
    how: How::Pattern,
};
