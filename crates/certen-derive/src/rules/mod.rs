//! The rewrites, one file for each family.
//!
//! They are ATL's scheduling vocabulary (Liu et al., *Verified Tensor-Program Optimization Via High-Level Scheduling
//! Rewrites*, POPL 2022, and *A Verified Compiler for a Functional Tensor Language*, PLDI 2024, Sec. 2 and 5): pairs
//! of reshape operators that cancel, generations and sums split, tiled and exchanged, fusion by beta, guards moved
//! and settled, sums collapsed, buffers moved in and out. Each holds for all sizes, also 0, and its side conditions
//! are all that it needs. After each step the engine shows again, for the whole program, that reads stay in bounds and
//! that truncations cut only padding.

mod arithmetic;
mod code;
mod generations;
mod guards;
mod lets;
mod reshapes;
mod selections;
mod sums;

use std::sync::{LazyLock, OnceLock};

use crate::matching::Misfit;
use crate::rewrite::{How, ParsedRewrite, Rewrite};
use crate::site::{Rewritten, Site};

/// Rewrites that belong together.
pub(crate) struct Family {
    pub title: &'static str,
    pub about: &'static str,
    pub rewrites: &'static [&'static Rewrite],
}

/// Every rewrite, in the order of the manual.
pub fn rewrites() -> &'static [&'static Rewrite] {
    static ALL: LazyLock<Vec<&Rewrite>> =
        LazyLock::new(|| FAMILIES.iter().flat_map(|family| family.rewrites).copied().collect());
    &ALL
}

/// A rewrite with its texts read, by name.
///
/// # Errors
/// None if there is none of this name; what is wrong with its texts otherwise.
pub(crate) fn named(name: &str) -> Option<(&'static Rewrite, Result<&'static ParsedRewrite, String>)> {
    static ALL: OnceLock<Vec<(&'static Rewrite, Result<ParsedRewrite, String>)>> = OnceLock::new();
    let all = ALL.get_or_init(|| rewrites().iter().map(|rewrite| (*rewrite, ParsedRewrite::new(rewrite))).collect());
    all.iter()
        .find(|(rewrite, _)| rewrite.name == name)
        .map(|(rewrite, parsed)| (*rewrite, parsed.as_ref().map_err(String::clone)))
}

/// Takes a rewrite at a place. Conditions may be open or fail.
///
/// # Errors
/// Why it does not fit.
pub(crate) fn make(mut site: Site<'_>) -> Result<Rewritten, Misfit> {
    let term = match site.order.rewrite.how {
        How::Pattern => site.by_pattern()?,
        How::Bind => code::bind(&mut site)?,
        How::Simplify => code::simplify(&mut site)?,
    };
    Ok(Rewritten { term, conditions: site.conditions })
}

/// The chapters of the manual.
pub(crate) static FAMILIES: &[Family] = &[
    Family {
        title: "Generations",
        about: "The order of computation. Splitting a generation at a point separates tails, splitting it into blocks \
                tiles it.",
        rewrites: &[
            &generations::SPLIT_GEN,
            &generations::TILE_GEN,
            &generations::SWAP_GENS,
            &generations::MERGE_GENS,
            &generations::SHIFT_GEN,
            &generations::RANGE_GEN,
        ],
    },
    Family {
        title: "Selections",
        about: "How stages are fused, and pulled apart.",
        rewrites: &[&selections::BETA, &selections::ETA, &selections::SELECT_GUARD],
    },
    Family {
        title: "Names",
        about: "A `let` inside a generation is a buffer for one of its elements. Moved out, it is computed once and \
                shared; moved in, it is smaller.",
        rewrites: &[
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
        ],
    },
    Family {
        title: "Guards",
        about: "A value where a condition holds, else padding.",
        rewrites: &[
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
        ],
    },
    Family {
        title: "Sums",
        about: "Their order, their range, and sums of which one summand is left.",
        rewrites: &[
            &sums::SPLIT_SUM,
            &sums::TILE_SUM,
            &sums::SWAP_SUMS,
            &sums::SUM_GEN,
            &sums::SUM_RESHAPE,
            &sums::SHIFT_SUM,
            &sums::RANGE_SUM,
            &sums::SUM_WHERE,
            &sums::COLLAPSE_SUM,
        ],
    },
    Family {
        title: "Reshape operators",
        about: "The order of storage. They come in pairs that cancel, go through each other, and of a generation they \
                are a generation again.",
        rewrites: &[
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
        ],
    },
    Family {
        title: "Arithmetic",
        about: "What is left to do when guards have become numbers.",
        rewrites: &[
            &arithmetic::TIMES_ONE,
            &arithmetic::ZERO_PLUS,
            &arithmetic::SWAP_FACTORS,
            &arithmetic::SWAP_SUMMANDS,
        ],
    },
];
