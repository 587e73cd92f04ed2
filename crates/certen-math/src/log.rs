//! The natural logarithm.
//!
//! `x = 2^k (1 + f)` with `1 + f` between the roots of 1/2 and 2, and `s = f / (2 + f)`: then
//! `log(1 + f) = 2 atanh(s) = f - (f^2/2 - s (f^2/2 + s^2 l(s^2)))` with a polynomial for `l` (`coefficients.rs`), as in
//! Sun's library. What is subtracted from `f` is less than a fifth of it, so its errors count little; the multiple of `ln 2`
//! is added by a fused multiplication, and its second part to what is subtracted. Below 1.2 units in the last place. Results
//! of single precision are computed in double precision with a shorter polynomial and rounded.
//!
//! Rare: arguments that have not all bits are multiplied by a power of two first; zero, infinity and what is no positive
//! number.

use crate::build::{Builder, V};
use crate::coefficients::{LN_2, LOG, LOG_4, LOG_LONG, TWO_THIRDS};
use crate::pieces::{exact_product, fast_sum};
use crate::recipe::{Precision, Recipe};

/// The bits of the root of 1/2, and of the fraction of a number.
const ROOT: u64 = 0x3fe6_a09e_667f_3bcd;
const FRACTION: u64 = (1 << 52) - 1;

/// `x = 2^k m`, for a positive `x` with all bits.
pub(crate) fn exponent<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>) {
    let moved = x.bits() + b.bits(1023 << 52) - b.bits(ROOT);
    let m = ((moved & b.bits(FRACTION)) + b.bits(ROOT)).float();
    // An integer as the last bits of 2^52 is the float 2^52 more.
    let two_52 = 4_503_599_627_370_496.0f64;
    let k = (moved.down(52) | b.bits(two_52.to_bits())).float() - (two_52 + 1023.0);
    (k, m)
}

/// The logarithm of `2^k m`.
pub(crate) fn plain<'b>(b: &'b Builder, k: V<'b>, m: V<'b>, precision: Precision) -> V<'b> {
    let f = m - 1.0;
    let s = f / (f + 2.0);
    let z = s * s;
    let half = f * 0.5 * f;
    let long = if precision == Precision::Double { b.estrin(z, &LOG) } else { b.estrin(z, &LOG_4) };
    let rest = s * z.fma(long, half);
    let low = k.fma(b.float(LN_2[1]), rest);
    k.fma(b.float(LN_2[0]), f - (half - low))
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

/// The bits that a positive number gets by multiplication if it has not all.
const MORE: f64 = 18_014_398_509_481_984.0;

/// As [`exponent`], for all positive numbers.
pub(crate) fn any_exponent<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>) {
    let is_short = x.less(b.float(f64::MIN_POSITIVE));
    let (k, m) = exponent(b, is_short.select(x * MORE, x));
    (is_short.select(k - 54.0, k), m)
}

/// Whether a number is positive, finite and has all bits.
pub(crate) fn is_plain<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    b.float(f64::MIN_POSITIVE).at_most(x) & x.less(b.float(f64::INFINITY))
}

/// What a logarithm is for arguments that are no positive numbers, and infinity.
pub(crate) fn with_ends<'b>(b: &'b Builder, x: V<'b>, log: V<'b>) -> V<'b> {
    let zero = b.float(0.0);
    let log = x.same(zero).select(b.float(f64::NEG_INFINITY), log);
    let log = x.same(b.float(f64::INFINITY)).select(x, log);
    (x.less(zero) | x.is_nan()).select(b.float(f64::NAN), log)
}

pub(crate) fn log(precision: Precision) -> Recipe {
    let b = Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    let rare = {
        let b = Builder::new(precision, Precision::Double);
        let x = b.argument(0);
        let (k, m) = any_exponent(&b, x);
        b.recipe(with_ends(&b, x, plain(&b, k, m, precision)), None)
    };
    let (k, m) = exponent(&b, x);
    b.recipe(plain(&b, k, m, precision), Some((!is_plain(&b, x), rare)))
}
