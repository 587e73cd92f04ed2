//! Powers.
//!
//! `x^y = exp(y log x)`. The logarithm is a sum of two numbers, right to 2^-66 (`log.rs`), and so is its product with `y`: the
//! first is the exponential's argument, the second is added to what is left of it. Below 1 unit in the last place. Results of
//! single precision need only one number in double precision.
//!
//! Rare: bases that are not positive or have not all bits, results that overflow or have not all bits, and the special
//! values of IEEE 754. Powers with a whole exponent up to [`MAX_MULTIPLIED`] are products, in the order of squares: `x^(2m)
//! = x^m x^m`, `x^(2m + 1) = x^(2m) x`, `x^-k = 1 / x^k`.

use crate::build::{Builder, V};
use crate::exp::{Reduced, moved, polynomial, reduced, scaled};
use crate::log;
use crate::pieces::exact_product;
use crate::recipe::{Precision, Recipe};

/// The largest magnitude of a whole exponent for which a power is a product.
pub const MAX_MULTIPLIED: i64 = 16;

const DOUBLE: Precision = Precision::Double;

/// Where floats have no fraction any more.
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// `y log(2^k m)` as a sum of two numbers.
fn exponent<'b>(b: &'b Builder, k: V<'b>, m: V<'b>, y: V<'b>) -> (V<'b>, V<'b>) {
    match b.precision() {
        Precision::Double => {
            let (high, low) = log::long(b, k, m);
            let (product, error) = exact_product(y, high);
            (product, y.fma(low, error))
        }
        Precision::Single => (y * log::plain(b, k, m), b.float(0.0)),
    }
}

/// `exp(e + low)` without its power of two, what its sum rounds away, and that power.
pub(crate) fn exponential<'b>(b: &'b Builder, e: V<'b>, low: V<'b>) -> (V<'b>, V<'b>, Reduced<'b>) {
    let reduced = reduced(b, e);
    let r = match b.precision() {
        Precision::Double => reduced.first + reduced.k.fma(b.float(-reduced.part), low),
        Precision::Single => reduced.r,
    };
    let rest = (r * r).fma(polynomial(b, r), r);
    let p = rest + 1.0;
    (p, rest - (p - 1.0), reduced)
}

/// Whether a number is whole.
fn is_whole<'b>(b: &'b Builder, y: V<'b>) -> V<'b> {
    let size = y.abs();
    !size.less(b.float(TWO_52)) | ((size + TWO_52) - TWO_52).same(size)
}

/// Whether a power with this exponent is a product.
fn is_product<'b>(b: &'b Builder, y: V<'b>) -> V<'b> {
    is_whole(b, y) & y.abs().at_most(b.float(MAX_MULTIPLIED as f64))
}

fn product(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let (x, y) = (b.argument(0), b.argument(1));
    let rounded = |product| if precision == Precision::Single { V::single(product) } else { product };
    let k = (y.abs() + TWO_52).bits() & b.bits(31);
    let zero = b.bits(0);
    let power = (0..5).rev().fold(x, |power, bit| {
        let square = rounded(power * power);
        let more = (k & b.bits(1 << bit)).same(zero).select(square, rounded(square * x));
        k.down(bit + 1).same(zero).select(power, more)
    });
    let power = y.less(b.float(0.0)).select(1.0 / power, power);
    b.recipe(y.same(b.float(0.0)).select(b.float(1.0), power), None)
}

/// All other arguments.
fn special(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let (x, y) = (b.argument(0), b.argument(1));
    let [zero, one, infinity, nan] = [0.0, 1.0, f64::INFINITY, f64::NAN].map(|value| b.float(value));
    let size = x.abs();
    let (k, m) = log::any_exponent(b, size);
    let (e, low) = exponent(b, k, m, y);
    let most = b.float(800.0);
    let is_huge = !e.abs().less(most);
    let e = is_huge.select(most.signed(e.sign()), e);
    let (p, _, reduced) = exponential(b, e, is_huge.select(zero, low));
    let value = scaled(b, p, reduced.k);
    // What is not finite, or zero.
    let grows = zero.less(y);
    let value = size.same(zero).select(grows.select(zero, infinity), value);
    let value = size.same(infinity).select(grows.select(infinity, zero), value);
    let above = (one.less(size) & grows) | (size.less(one) & !grows);
    let at_end = size.same(one).select(one, above.select(infinity, zero));
    let value = y.abs().same(infinity).select(at_end, value);
    // Signs.
    let is_negative = !x.sign().same(b.bits(0));
    let is_odd = is_whole(b, y) & !is_whole(b, y * 0.5);
    let value = (is_negative & is_odd).select(-value, value);
    let is_complex = x.less(zero) & size.less(infinity) & !is_whole(b, y);
    let value = (is_complex | x.is_nan() | y.is_nan()).select(nan, value);
    let value = x.same(one).select(one, value);
    b.recipe(value, Some((is_product(b, y), product(precision))))
}

pub(crate) fn pow(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let (x, y) = (b.argument(0), b.argument(1));
    let (k, m) = log::exponent(b, x);
    let (e, low) = exponent(b, k, m, y);
    let (p, _, reduced) = exponential(b, e, low);
    let value = moved(b, p, reduced.shifted);
    let when = !log::is_plain(b, x) | !e.abs().less(b.float(708.0)) | is_product(b, y);
    b.recipe(value, Some((when, special(precision))))
}
