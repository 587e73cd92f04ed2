//! Logarithms: `log`, `log2`, `log10`, `log1p`.
//!
//! `x = 2^k (1 + f)` with `1 + f` between the roots of 1/2 and 2, and `s = f / (2 + f)`: then
//! `log(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + s^2 l(s^2)))` with a polynomial for `l` (`coefficients.rs`), as in
//! Sun's library. What is subtracted from `f` is less than a fifth of it, so its errors count little; the multiple of `ln 2`
//! is added by a fused multiplication, and its second part to what is subtracted. Below 1 unit in the last place.
//!
//! `log2` and `log10` multiply a logarithm that is a sum of two numbers, right to 2^-66 of it: below 1 unit. `log1p(x)` is the
//! logarithm of the rounded `1 + x` and what was rounded away, divided by it: below 1.5 units. Their results of single
//! precision are computed in double precision with a shorter polynomial and rounded.
//!
//! Rare: arguments that have not all bits are multiplied by a power of two first; zero, infinity and what is no positive
//! number.

use crate::build::{Builder, V};
use crate::coefficients::{LN_2, LN_2_SINGLE, LOG, LOG_4, LOG_LONG, LOG_SINGLE, LOG2_E, LOG10_2, LOG10_E, TWO_THIRDS};
use crate::pieces::{Layout, exact_product, exact_sum, fast_sum};
use crate::recipe::{Precision, Recipe};

/// `x = 2^k m`, for a positive `x` with all bits.
pub(crate) fn exponent<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>) {
    let Layout { fraction, fractions, root, bias, .. } = *b.layout();
    let moved = x.bits() + b.bits((bias << fraction).wrapping_sub(root));
    let m = ((moved & b.bits(fractions)) + b.bits(root)).float();
    // An integer as the last bits of 2^52 (of 2^23) is the float 2^52 more.
    let unit = (1u64 << fraction) as f64;
    let bits = if b.working() == Precision::Single { u64::from((unit as f32).to_bits()) } else { unit.to_bits() };
    let k = (moved.down(fraction) | b.bits(bits)).float() - (unit + bias as f64);
    (k, m)
}

/// The logarithm of `2^k m`.
pub(crate) fn plain<'b>(b: &'b Builder, k: V<'b>, m: V<'b>) -> V<'b> {
    let f = m - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let half = f * 0.5 * f;
    let (long, ln_2): (V<'b>, _) = match (b.precision(), b.working()) {
        (Precision::Double, _) => (b.estrin(z, &LOG), LN_2),
        (_, Precision::Double) => (b.estrin(z, &LOG_4), LN_2),
        (_, Precision::Single) => (b.estrin(z, &LOG_SINGLE), LN_2_SINGLE),
    };
    let rest = s * z.fma(long, half);
    let low = k.fma(b.float(ln_2[1]), rest);
    k.fma(b.float(ln_2[0]), f - (half - low))
}

/// The logarithm of `2^k m` as a sum of two numbers, its error below 2^-66 of it.
pub(crate) fn long<'b>(b: &'b Builder, k: V<'b>, m: V<'b>) -> (V<'b>, V<'b>) {
    // The quotient and what division leaves of it.
    let f = m - 1.0;
    let d = m + 1.0;
    let d_low = m - (d - 1.0);
    let inverse = 1.0 / d;
    let s = f * inverse;
    let s_low = (-s).fma(d_low, (-s).fma(d, f)) * inverse;
    // 2 atanh(s) = s (2 + z (2/3 + z p(z)))
    let (z, z_error) = exact_product(s, s);
    let z_low = (s + s).fma(s_low, z_error);
    let (c, c_low) = fast_sum(b.float(TWO_THIRDS[0]), z * b.estrin(z, &LOG_LONG));
    let c_low = c_low + TWO_THIRDS[1];
    let (w, w_error) = exact_product(z, c);
    let w_low = z.fma(c_low, z_low.fma(c, w_error));
    let (q, q_error) = exact_product(s, w);
    let q_low = s.fma(w_low, s_low.fma(w, q_error));
    let (whole, whole_error) = exact_product(k, b.float(LN_2[0]));
    let whole_low = k.fma(b.float(LN_2[1]), whole_error);
    let (sum, first) = fast_sum(whole, s + s);
    let (sum, second) = fast_sum(sum, q);
    fast_sum(sum, ((first + second) + whole_low) + ((s_low + s_low) + q_low))
}

/// As [`exponent`], for all positive numbers.
pub(crate) fn any_exponent<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>) {
    let Layout { least, more, places, .. } = *b.layout();
    let is_short = x.less(b.float(least));
    let (k, m) = exponent(b, is_short.select(x * more, x));
    (is_short.select(k - places, k), m)
}

/// Whether a number is positive, finite and has all bits.
pub(crate) fn is_plain<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    b.float(b.layout().least).at_most(x) & x.less(b.float(f64::INFINITY))
}

/// What a logarithm is for arguments that are no positive numbers, and infinity.
fn with_ends<'b>(b: &'b Builder, x: V<'b>, log: V<'b>) -> V<'b> {
    let zero = b.float(0.0);
    let log = x.same(zero).select(b.float(f64::NEG_INFINITY), log);
    let log = x.same(b.float(f64::INFINITY)).select(x, log);
    (x.less(zero) | x.is_nan()).select(b.float(f64::NAN), log)
}

/// A logarithm, from the exponent and the fraction.
fn logarithm(
    precision: Precision,
    working: Precision,
    value: impl for<'b> Fn(&'b Builder, V<'b>, V<'b>) -> V<'b>,
) -> Recipe {
    let b = &Builder::new(precision, working);
    let x = b.argument(0);
    let rare = {
        let b = &Builder::new(precision, working);
        let x = b.argument(0);
        let (k, m) = any_exponent(b, x);
        b.recipe(with_ends(b, x, value(b, k, m)), None)
    };
    let (k, m) = exponent(b, x);
    b.recipe(value(b, k, m), Some((!is_plain(b, x), rare)))
}

pub(crate) fn log(precision: Precision) -> Recipe {
    logarithm(precision, precision, plain)
}

/// A logarithm to another base: its own of the natural base, and of 2.
fn based(precision: Precision, own: [f64; 2], of_two: [f64; 2]) -> Recipe {
    logarithm(precision, Precision::Double, |b, k, m| {
        let zero = b.float(0.0);
        if b.precision() == Precision::Single {
            return k.fma(b.float(of_two[0]), plain(b, zero, m) * own[0]);
        }
        let (high, low) = long(b, zero, m);
        let (product, error) = exact_product(high, b.float(own[0]));
        let low = low.fma(b.float(own[0]), high.fma(b.float(own[1]), error));
        let (whole, whole_error) = exact_product(k, b.float(of_two[0]));
        let (sum, rest) = fast_sum(whole, product);
        sum + (rest + (k.fma(b.float(of_two[1]), whole_error) + low))
    })
}

pub(crate) fn log2(precision: Precision) -> Recipe {
    based(precision, LOG2_E, [1.0, 0.0])
}

pub(crate) fn log10(precision: Precision) -> Recipe {
    based(precision, LOG10_E, LOG10_2)
}

/// The logarithm of a sum of two numbers from 1/2 on, of which the second is small.
pub(crate) fn of_sum<'b>(b: &'b Builder, high: V<'b>, low: V<'b>) -> V<'b> {
    let (k, m) = exponent(b, high);
    plain(b, k, m) + low / high
}

pub(crate) fn log1p(precision: Precision) -> Recipe {
    fn value<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
        let (high, low) = exact_sum(b.float(1.0), x);
        of_sum(b, high, low).abs().signed(x.sign())
    }
    let b = &Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    let rare = {
        let b = &Builder::new(precision, Precision::Double);
        let x = b.argument(0);
        b.recipe(with_ends(b, x + 1.0, b.float(0.0)), None)
    };
    let is_plain = b.float(-1.0).less(x) & x.less(b.float(f64::INFINITY));
    b.recipe(value(b, x), Some((!is_plain, rare)))
}
