//! The error function and its complement.
//!
//! Up to 1 `erf(x)` is `x + x q(x^2)`, from there on `1 - exp(-p(x - 1))`, with polynomials for `q` and for
//! `p = -log(1 - erf)` (`coefficients.rs`). The second is at most 0.16, so the exponential's errors count little. Below 1
//! unit in the last place.
//!
//! `erfc(x)` is `1 - erf(x)` up to 0.47, and `exp(-x^2) g / (1 + 2 x)` beyond, with a polynomial in `(x - 2) / (x + 2)` for `g`,
//! which is nearly constant; the square, the denominator, the quotient and the exponential are sums of two numbers. Below 2
//! units. Its results of single precision are computed in double precision and rounded.
//!
//! Rare: where the complement has not all bits.

use crate::build::{Builder, V};
use crate::coefficients::{ERF, ERF_SINGLE, ERFC, ERFC_12, ERFC_LOG, ERFC_LOG_SINGLE};
use crate::exp::{between, plain, scaled};
use crate::pieces::{exact_product, exact_sum};
use crate::pow::exponential;
use crate::recipe::{Precision, Recipe};

pub(crate) fn erf(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, precision);
    let x = b.argument(0);
    // From `most` on it is 1.
    let (near, far, most): (&[f64], &[f64], f64) = match precision {
        Precision::Double => (&ERF, &ERFC_LOG, 5.95),
        Precision::Single => (&ERF_SINGLE, &ERFC_LOG_SINGLE, 4.0),
    };
    let size = x.abs();
    let small = size.fma(b.estrin(size * size, near), size);
    let most = b.float(most);
    let t = most.less(size).select(most, size) - 1.0;
    let large = 1.0 - plain(b, -b.estrin_last(t, far));
    let value = size.less(b.float(1.0)).select(small, large);
    b.recipe(value.signed(x.sign()), None)
}

/// `exp(x^2) erfc(x)` as a sum of two numbers, for an `x` from 0.45 on.
fn slow<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>) {
    let u = (x - 2.0) / (x + 2.0);
    let g: V<'b> = if b.precision() == Precision::Double { b.estrin_last(u, &ERFC) } else { b.estrin(u, &ERFC_12) };
    let (below, error) = exact_sum(x + x, b.float(1.0));
    let q = g / below;
    (q, (-q).fma(error, (-q).fma(below, g)) / below)
}

/// `erfc(x)` by its sign, and by how a power of two is multiplied.
fn complement<'b>(b: &'b Builder, x: V<'b>, by: impl Fn(V<'b>, V<'b>) -> V<'b>) -> V<'b> {
    let most = if b.precision() == Precision::Double { 27.5 } else { 11.0 };
    let size = between(b, x.abs(), 0.0, most);
    let (square, error) = exact_product(size, size);
    let (p, p_low, reduced) = exponential(b, -square, -error);
    let (q, q_low) = slow(b, size);
    let product = p.fma(q, p.fma(q_low, p_low * q));
    let large = by(product, reduced.k);
    let is_negative = x.less(b.float(0.0));
    let large = is_negative.select(2.0 - large, large);
    let near = size.fma(b.estrin(size * size, &ERF), size);
    let small = 1.0 - near.signed(x.sign());
    size.less(b.float(0.47)).select(small, large)
}

pub(crate) fn erfc(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    let value = complement(b, x, |product, k| product * b.power_of_two(k + b.layout().shift));
    if precision == Precision::Single {
        return b.recipe(value, None);
    }
    let rare = {
        let b = &Builder::new(precision, Precision::Double);
        b.recipe(complement(b, b.argument(0), |product, k| scaled(b, product, k)), None)
    };
    b.recipe(value, Some((b.float(26.0).less(x.abs()), rare)))
}
