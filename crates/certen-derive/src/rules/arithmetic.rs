//! Arithmetic: what is left to do when guards have become numbers, and the order of operands.

use crate::rewrite::{How, Law, Rewrite};

/// A factor of one.
pub(super) static TIMES_ONE: Rewrite = Rewrite {
    name: "times_one",
    parameters: &[],
    left: "1 * A",
    right: "A",
    conditions: &[],
    law: Law::Exact,
    about: "One times a number is the number.",
    how: How::Pattern,
};

/// A summand of zero.
pub(super) static ZERO_PLUS: Rewrite = Rewrite {
    name: "zero_plus",
    parameters: &[],
    left: "0 + A",
    right: "A",
    conditions: &[],
    law: Law::Ring,
    about: "Zero plus a number is the number; of floats, negative zero is an exception.",
    how: How::Pattern,
};

/// Factors in the other order.
pub(super) static SWAP_FACTORS: Rewrite = Rewrite {
    name: "swap_factors",
    parameters: &[],
    left: "A * B",
    right: "B * A",
    conditions: &[],
    law: Law::Exact,
    about: "Two factors in the other order. The product is the same number; which of two NaNs it is, is not promised.",
    how: How::Pattern,
};

/// Summands in the other order.
pub(super) static SWAP_SUMMANDS: Rewrite = Rewrite {
    name: "swap_summands",
    parameters: &[],
    left: "A + B",
    right: "B + A",
    conditions: &[],
    law: Law::Exact,
    about: "Two summands in the other order.",
    how: How::Pattern,
};
