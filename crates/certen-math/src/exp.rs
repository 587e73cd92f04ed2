//! Exponential functions: `exp`, `exp2`, `expm1`, `sigmoid`.
//!
//! `x = k ln 2 + r` with a whole `k` and `|r| <= ln(2) / 2` (Cody and Waite): `ln 2` is two numbers, and fused
//! multiplications make the first difference exact. `exp(r)` is `1 + (r + r^2 p(r))` with a polynomial for `p`
//! (`coefficients.rs`), and `2^k` is added to the exponent. The sum rounds once, what is added to 1 is wrong by less than
//! half of its unit: below 1 unit in the last place. Where the unit in single precision, or another function, leaves less room, `1
//! + r` is a sum of two numbers.
//!
//! `exp2` has `x - k` without an error, and multiplies it by `ln 2` in two parts. `expm1` is `2^k (exp(r) - 1) + (2^k - 1)`: the
//! large part `2^k r + (2^k - 1)` is a sum of two numbers, to which the polynomial's small one is added, so nothing cancels. `sigmoid` is
//! `1 / (1 + exp(-x))`, with both sides multiplied by `exp(x)` for negative arguments: below 2 units.
//!
//! Rare: where the result overflows or has not all bits `2^k` is multiplied in two halves, the first of which is exact.

use crate::build::{Builder, V};
use crate::coefficients::{EXP, EXP_7, EXP_SINGLE, LN_2, LN_2_SINGLE, LOG2_E};
use crate::pieces::{exact_product, fast_sum, quotient};
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

/// The parts of `ln 2` in the working precision.
fn ln_2(b: &Builder) -> [f64; 3] {
    if b.working() == Precision::Single { LN_2_SINGLE } else { LN_2 }
}

pub(crate) fn reduced<'b>(b: &'b Builder, x: V<'b>) -> Reduced<'b> {
    let ln_2 = ln_2(b);
    let shift = b.layout().shift;
    let shifted = x.fma(b.float(LOG2_E[0]), b.float(shift));
    let k = shifted - shift;
    let first = k.fma(b.float(-ln_2[0]), x);
    let r = k.fma(b.float(-ln_2[1]), first);
    Reduced { shifted, k, first, r, part: ln_2[1] }
}

/// `(exp(r) - 1 - r) / r^2`, as exactly as results need it.
pub(crate) fn polynomial<'b>(b: &'b Builder, r: V<'b>) -> V<'b> {
    match (b.precision(), b.working()) {
        (Precision::Double, _) => b.estrin(r, &EXP),
        (_, Precision::Double) => b.estrin(r, &EXP_7),
        (_, Precision::Single) => b.estrin(r, &EXP_SINGLE),
    }
}

/// `p * 2^k`, where all of its bits are there.
pub(crate) fn moved<'b>(b: &'b Builder, p: V<'b>, shifted: V<'b>) -> V<'b> {
    (p.bits() + shifted.bits().up(b.layout().fraction)).float()
}

/// `exp(x)` without its power of two, and that.
fn fraction<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, Reduced<'b>) {
    let reduced = reduced(b, x);
    let r = reduced.r;
    ((r * r).fma(polynomial(b, r), r) + 1.0, reduced)
}

/// As [`fraction`], with the first sum as two numbers: below 0.8 units.
fn exact_fraction<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, Reduced<'b>) {
    let reduced = reduced(b, x);
    let r = reduced.r;
    let (sum, error) = fast_sum(b.float(1.0), r);
    (sum + (r * r).fma(polynomial(b, r), error), reduced)
}

/// `exp(x)` where all of its bits are there; NaN of NaN.
pub(crate) fn plain<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    let (p, reduced) = exact_fraction(b, x);
    p * b.power_of_two(reduced.shifted)
}

/// `p * 2^k` with one rounding, wherever that is; `k` is a whole float.
pub(crate) fn scaled<'b>(b: &'b Builder, p: V<'b>, k: V<'b>) -> V<'b> {
    let shift = b.layout().shift;
    let first = k.fma(b.float(0.5), b.float(shift));
    let second = (k - (first - shift)) + shift;
    p * b.power_of_two(first) * b.power_of_two(second)
}

/// An argument with a least and a most; NaN stays.
pub(crate) fn between<'b>(b: &'b Builder, x: V<'b>, least: f64, most: f64) -> V<'b> {
    let x = x.less(b.float(least)).select(b.float(least), x);
    b.float(most).less(x).select(b.float(most), x)
}

/// `exp(x) * 2^more` wherever that is, for arguments up to a size that gives infinity or zero.
pub(crate) fn everywhere<'b>(b: &'b Builder, x: V<'b>, more: f64) -> V<'b> {
    let (least, most) = if b.precision() == Precision::Double { (-746.0, 712.0) } else { (-104.0, 90.0) };
    let (p, reduced) = exact_fraction(b, between(b, x, least, most));
    scaled(b, p, reduced.k + more)
}

/// Up to this size results have all bits.
pub(crate) fn plainly(precision: Precision) -> f64 {
    if precision == Precision::Double { 708.0 } else { 87.0 }
}

pub(crate) fn exp(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, precision);
    let x = b.argument(0);
    let is_single = precision == Precision::Single;
    let (p, reduced) = if is_single { exact_fraction(b, x) } else { fraction(b, x) };
    let rare = Builder::new(precision, precision);
    let rare = rare.recipe(everywhere(&rare, rare.argument(0), 0.0), None);
    let when = !x.abs().less(b.float(plainly(precision)));
    b.recipe(moved(b, p, reduced.shifted), Some((when, rare)))
}

/// `2^x` without its power of two, and that.
fn fraction_of_two<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>) {
    let ln_2 = ln_2(b);
    let shifted = x + b.layout().shift;
    let whole = shifted - b.layout().shift;
    let difference = x - whole;
    let (r, error) = exact_product(difference, b.float(ln_2[0]));
    let low = difference.fma(b.float(ln_2[1]), error);
    (r + (r * r).fma(polynomial(b, r), low) + 1.0, shifted)
}

pub(crate) fn exp2(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, precision);
    let x = b.argument(0);
    let (p, shifted) = fraction_of_two(b, x);
    let (least, most, plainly) =
        if precision == Precision::Double { (-1080.0, 1030.0, 1022.0) } else { (-155.0, 130.0, 126.0) };
    let rare = {
        let b = &Builder::new(precision, precision);
        let (p, shifted) = fraction_of_two(b, between(b, b.argument(0), least, most));
        b.recipe(scaled(b, p, shifted - b.layout().shift), None)
    };
    b.recipe(moved(b, p, shifted), Some((!x.abs().less(b.float(plainly)), rare)))
}

/// `exp(x) - 1`, for an `x` whose power of two is a number, and what its sum rounds away.
pub(crate) fn less_one<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>) {
    let Reduced { shifted, k, first, r, part } = reduced(b, x);
    let low = k.fma(b.float(-part), first - r);
    let small = (r * r).fma(polynomial(b, r), low);
    let scale = b.power_of_two(shifted);
    let (sum, error) = fast_sum(scale - 1.0, scale * r);
    fast_sum(sum, scale.fma(small, error))
}

pub(crate) fn expm1(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    // Below the least it is -1; up to the most 2^k is a number.
    let (value, _) = less_one(b, between(b, x, -40.0, 708.0));
    let value = value.abs().signed(x.sign());
    if precision == Precision::Single {
        return b.recipe(value, None);
    }
    let rare = Builder::new(precision, precision);
    let rare = rare.recipe(everywhere(&rare, rare.argument(0), 0.0), None);
    b.recipe(value, Some((b.float(708.0).less(x), rare)))
}

pub(crate) fn sigmoid(precision: Precision) -> Recipe {
    fn value<'b>(b: &'b Builder, x: V<'b>, exp: V<'b>) -> V<'b> {
        let (below, error) = fast_sum(b.float(1.0), exp);
        quotient(x.less(b.float(0.0)).select(exp, b.float(1.0)), None, below, error)
    }
    let b = &Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    if precision == Precision::Single {
        // Beyond that it is 1 or rounds to 0.
        let size = between(b, x.abs(), 0.0, 200.0);
        return b.recipe(value(b, x, plain(b, -size)), None);
    }
    let rare = {
        let b = &Builder::new(precision, Precision::Double);
        let x = b.argument(0);
        b.recipe(value(b, x, everywhere(b, -x.abs(), 0.0)), None)
    };
    b.recipe(value(b, x, plain(b, -x.abs())), Some((!x.abs().less(b.float(708.0)), rare)))
}
