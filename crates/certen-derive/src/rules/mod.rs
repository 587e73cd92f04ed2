//! The rewrites, one file for each family.
//!
//! They are ATL's scheduling vocabulary (Liu et al., *Verified Tensor-Program Optimization Via High-Level Scheduling
//! Rewrites*, POPL 2022, and *A Verified Compiler for a Functional Tensor Language*, PLDI 2024, Sec. 2 and 5): pairs of
//! reshape operators that cancel, generations and sums split, tiled and exchanged, fusion by beta, guards moved and settled, sums collapsed,
//! buffers moved in and out. Each holds for all sizes, also 0, and its side conditions are all that it needs; that reads stay
//! in bounds and that truncations cut only padding, who takes a step shows again for the whole program.

mod arithmetic;
mod code;
mod generations;
mod guards;
mod lets;
mod reshapes;
mod selections;
mod sums;

use crate::rewrite::Rewrite;

/// Every rewrite, in the order of the manual.
pub fn rewrites() -> &'static [&'static Rewrite] {
    ALL
}

static ALL: &[&Rewrite] = &[
    &generations::SPLIT_GEN,
    &generations::TILE_GEN,
    &generations::SWAP_GENS,
    &generations::MERGE_GENS,
    &generations::SHIFT_GEN,
    &generations::RANGE_GEN,
    &selections::BETA,
    &selections::ETA,
    &selections::SELECT_GUARD,
    &lets::INLINE,
    &code::BIND,
    &lets::LET_GEN,
    &lets::LET_SUM,
    &lets::LET_GUARD,
    &lets::LET_RESHAPE,
    &lets::LET_CONCAT,
    &lets::LET_OP,
    &lets::LET_LET,
    &lets::LET_VALUE,
    &code::SIMPLIFY,
    &guards::GUARD_TRUE,
    &guards::GUARD_FALSE,
    &guards::GUARD_SAME,
    &guards::GUARD_GUARD,
    &guards::GUARD_GEN,
    &guards::GUARD_SUM,
    &guards::GUARD_RESHAPE,
    &guards::GUARD_CONCAT,
    &guards::GUARD_ADD,
    &guards::GUARD_MUL,
    &guards::IF_GUARD,
    &guards::IF_TRUE,
    &guards::IF_FALSE,
    &sums::SPLIT_SUM,
    &sums::TILE_SUM,
    &sums::SWAP_SUMS,
    &sums::SUM_GEN,
    &sums::SUM_RESHAPE,
    &sums::SHIFT_SUM,
    &sums::RANGE_SUM,
    &sums::SUM_WHERE,
    &sums::COLLAPSE_SUM,
    &reshapes::TRANSPOSE_TWICE,
    &reshapes::TILE,
    &reshapes::SPLIT_FLATTEN,
    &reshapes::TRUNC_PAD_R,
    &reshapes::TRUNC_PAD_L,
    &reshapes::CONCAT_CONCAT,
    &reshapes::FLATTEN_CONCAT,
    &reshapes::TRUNC_CONCAT,
    &reshapes::GEN_CONCAT,
    &reshapes::GEN_TRUNC,
    &reshapes::UNFOLD_SPLIT,
    &reshapes::UNFOLD_FLATTEN,
    &reshapes::UNFOLD_TRUNC_R,
    &reshapes::UNFOLD_TRUNC_L,
    &reshapes::UNFOLD_PAD_R,
    &reshapes::UNFOLD_PAD_L,
    &arithmetic::TIMES_ONE,
    &arithmetic::ZERO_PLUS,
    &arithmetic::SWAP_FACTORS,
    &arithmetic::SWAP_SUMMANDS,
];
