//! Roots: `cbrt` and `hypot`.
//!
//! A cube root begins as `exp(log(x) / 3)`, right to a few units, and is made right by a step of Newton's with an exact
//! residual: below 1 unit in the last place. `hypot` is the root of a sum of squares, of which the smaller and the errors are a
//! second number: below 1 unit. Results of single precision are computed in double precision and rounded.
//!
//! Rare: cube roots of numbers that have not all bits, of zeros and of infinities; squares that would overflow or lose bits are
//! taken of numbers that are scaled.

use crate::build::{Builder, V};
use crate::exp::plain;
use crate::log;
use crate::pieces::{exact_product, fast_sum};
use crate::recipe::{Precision, Recipe};

const DOUBLE: Precision = Precision::Double;

/// The cube root of a positive number with all bits.
fn root<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    let (k, m) = log::exponent(b, x);
    let first = plain(b, log::plain(b, k, m) * (1.0 / 3.0));
    let (square, error) = exact_product(first, first);
    let (cube, cube_error) = exact_product(square, first);
    let residual = (x - cube) - first.fma(error, cube_error);
    first + residual / (square * 3.0)
}

pub(crate) fn cbrt(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let x = b.argument(0);
    let rare = {
        let b = &Builder::new(precision, DOUBLE);
        let x = b.argument(0);
        let size = x.abs();
        let value = root(b, size * b.layout().more) * (1.0 / 262_144.0);
        let is_end = size.same(b.float(0.0)) | !size.less(b.float(f64::INFINITY));
        b.recipe(is_end.select(x, value.signed(x.sign())), None)
    };
    b.recipe(root(b, x.abs()).signed(x.sign()), Some((!log::is_plain(b, x.abs()), rare)))
}

/// The root of the squares of a larger and a smaller number.
fn length<'b>(b: &'b Builder, large: V<'b>, small: V<'b>) -> V<'b> {
    let (square, error) = exact_product(large, large);
    let (other, other_error) = exact_product(small, small);
    let (sum, rest) = fast_sum(square, other);
    let low = rest + (error + other_error);
    let root = sum.sqrt();
    let value = root + ((-root).fma(root, sum) + low) / (root + root);
    root.same(b.float(0.0)).select(root, value)
}

pub(crate) fn hypot(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let (x, y) = (b.argument(0).abs(), b.argument(1).abs());
    let is_ordered = y.less(x);
    let (large, small) = (is_ordered.select(x, y), is_ordered.select(y, x));
    let value = length(b, large, small);
    let rare = {
        let b = &Builder::new(precision, DOUBLE);
        let (x, y) = (b.argument(0).abs(), b.argument(1).abs());
        let is_ordered = y.less(x);
        let (large, small) = (is_ordered.select(x, y), is_ordered.select(y, x));
        let (up, down) = (b.float(2f64.powi(600)), b.float(2f64.powi(-600)));
        let is_huge = b.float(1e140).less(large);
        let is_tiny = large.less(b.float(1e-100));
        let one = b.float(1.0);
        let scale = is_huge.select(down, is_tiny.select(up, one));
        let back = is_huge.select(up, is_tiny.select(down, one));
        let value = length(b, large * scale, small * scale) * back;
        let value = (x.is_nan() | y.is_nan()).select(b.float(f64::NAN), value);
        let infinity = b.float(f64::INFINITY);
        b.recipe((x.same(infinity) | y.same(infinity)).select(infinity, value), None)
    };
    let is_plain = b.float(1e-130).less(small) & large.less(b.float(1e140));
    b.recipe(value, Some((!is_plain, rare)))
}
