//! The exponential function.
//!
//! `x = k ln 2 + r` with a whole `k` and `|r| <= ln(2) / 2` (Cody and Waite): `ln 2` is two numbers, and fused
//! multiplications make the first difference exact. `exp(r)` is `1 + (r + r^2 p(r))` with a polynomial for `p`
//! (`coefficients.rs`), and `2^k` is added to the exponent. The sum rounds once, what is added to 1 is wrong by less than
//! a quarter of its unit: below 0.9 units in the last place in double precision, below 1 in single.
//!
//! Rare: where the result overflows or has not all bits `2^k` is multiplied in two halves, the first of which is exact.

use crate::build::{Builder, V};
use crate::coefficients::{EXP, EXP_7, EXP_SINGLE, LN_2, LN_2_SINGLE, LOG2_E};
use crate::pieces::{Layout, layout};
use crate::recipe::{Precision, Recipe};

/// An argument without its multiple of `ln 2`.
pub(crate) struct Reduced<'b> {
    /// The multiple, in the last bits of a float, and as a float.
    pub(crate) shifted: V<'b>,
    pub(crate) k: V<'b>,
    /// What is left, before the second part of `ln 2` is subtracted and after.
    pub(crate) first: V<'b>,
    pub(crate) r: V<'b>,
    /// The second part.
    pub(crate) part: f64,
}

pub(crate) fn reduced<'b>(b: &'b Builder, x: V<'b>, working: Precision) -> Reduced<'b> {
    let ln_2 = if working == Precision::Single { LN_2_SINGLE } else { LN_2 };
    let shift = layout(working).shift;
    let shifted = x.fma(b.float(LOG2_E[0]), b.float(shift));
    let k = shifted - shift;
    let first = k.fma(b.float(-ln_2[0]), x);
    let r = k.fma(b.float(-ln_2[1]), first);
    Reduced { shifted, k, first, r, part: ln_2[1] }
}

/// `(exp(r) - 1 - r) / r^2`, as exactly as results of a precision need it.
pub(crate) fn polynomial<'b>(b: &'b Builder, r: V<'b>, precision: Precision, working: Precision) -> V<'b> {
    match (precision, working) {
        (Precision::Double, _) => b.estrin(r, &EXP),
        (_, Precision::Double) => b.estrin(r, &EXP_7),
        (_, Precision::Single) => b.estrin(r, &EXP_SINGLE),
    }
}

/// `exp(x)` where all of its bits are there.
pub(crate) fn plain<'b>(b: &'b Builder, x: V<'b>, precision: Precision, working: Precision) -> V<'b> {
    let Reduced { shifted, r, .. } = reduced(b, x, working);
    let p = (r * r).fma(polynomial(b, r, precision, working), r) + 1.0;
    (p.bits() + shifted.bits().up(layout(working).fraction)).float()
}

/// `(1 + above) * 2^k` with one rounding, wherever that is; `k` is a whole float.
pub(crate) fn scaled<'b>(b: &'b Builder, p: V<'b>, k: V<'b>, working: Precision) -> V<'b> {
    let Layout { shift, .. } = *layout(working);
    let first = k.fma(b.float(0.5), b.float(shift));
    let second = (k - (first - shift)) + shift;
    p * b.power_of_two(first, working) * b.power_of_two(second, working)
}

pub(crate) fn exp(precision: Precision) -> Recipe {
    // Beyond these it is infinite, or zero; up to that it has all bits.
    let (least, most, plainly) = match precision {
        Precision::Double => (-746.0, 710.0, 708.0),
        Precision::Single => (-104.0, 89.0, 87.0),
    };
    let b = Builder::new(precision, precision);
    let x = b.argument(0);
    let rare = {
        let b = Builder::new(precision, precision);
        let x = b.argument(0);
        let x = x.less(b.float(least)).select(b.float(least), x);
        let x = b.float(most).less(x).select(b.float(most), x);
        let Reduced { k, r, .. } = reduced(&b, x, precision);
        let p = (r * r).fma(polynomial(&b, r, precision, precision), r) + 1.0;
        b.recipe(scaled(&b, p, k, precision), None)
    };
    let when = !x.abs().less(b.float(plainly));
    b.recipe(plain(&b, x, precision, precision), Some((when, rare)))
}
