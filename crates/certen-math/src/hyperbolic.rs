//! Hyperbolic functions and their inverses: `sinh`, `cosh`, `tanh`, `asinh`, `acosh`, `atanh`.
//!
//! With `t = exp(|x|) - 1` (see `exp.rs`) `sinh(x) = (t + t / (t + 1)) / 2`; `cosh(x) = (e + 1 / e) / 2` with `e = exp(|x|)`;
//! `tanh(x) = t / (t + 2)` with `t = exp(2 |x|) - 1`. In single precision `tanh` is a polynomial up to 1 and `1 - 2 / (exp(2
//! |x|) + 1)` beyond, where the fraction is below a quarter.
//!
//! The inverses are logarithms of sums: `asinh(x) = log(x + sqrt(x^2 + 1))`, `acosh(x) = log(x + sqrt(x^2 - 1))`,
//! `atanh(x) = log(1 + 2 x / (1 - x)) / 2`. What is summed is computed as a sum of two numbers, of which the second is added to
//! the logarithm of the first, divided by it. Below 2 units in the last place, all of them. Results of single precision are
//! computed in double precision and rounded, but those of `tanh`.
//!
//! Rare: where `exp` overflows, or squares do; ends of domains.

use crate::build::{Builder, V};
use crate::coefficients::TANH_SINGLE;
use crate::exp::{between, everywhere, less_one, plain, plainly};
use crate::log;
use crate::pieces::{exact_product, exact_sum, quotient};
use crate::recipe::{Precision, Recipe};

const DOUBLE: Precision = Precision::Double;

/// Beyond this squares may overflow; the squares of numbers below it are numbers.
const HUGE: f64 = 1e150;

pub(crate) fn tanh(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, precision);
    let x = b.argument(0);
    // From there on it is 1.
    let most = b.float(20.0);
    let size = most.less(x.abs()).select(most, x.abs());
    if precision == DOUBLE {
        let (t, low) = less_one(b, size + size);
        let (below, error) = exact_sum(b.float(2.0), t);
        return b.recipe(quotient(t, Some(low), below, error + low).signed(x.sign()), None);
    }
    let z = size * size;
    let small = (size * z).fma(b.estrin(z, &TANH_SINGLE), size);
    let large = 1.0 - 2.0 / (plain(b, size + size) + 1.0);
    b.recipe(size.less(b.float(1.0)).select(small, large).signed(x.sign()), None)
}

/// A function of the exponential of a size, half of which it is where it is large.
fn by_exponential(precision: Precision, odd: bool, value: impl for<'b> Fn(&'b Builder, V<'b>) -> V<'b>) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let x = b.argument(0);
    let size = x.abs();
    if precision == Precision::Single {
        let value = value(b, between(b, size, 0.0, 200.0));
        return b.recipe(if odd { value.signed(x.sign()) } else { value }, None);
    }
    let rare = {
        let b = &Builder::new(precision, DOUBLE);
        let x = b.argument(0);
        let value = everywhere(b, x.abs(), -1.0);
        b.recipe(if odd { value.signed(x.sign()) } else { value }, None)
    };
    let value = value(b, size);
    let value = if odd { value.signed(x.sign()) } else { value };
    b.recipe(value, Some((!size.less(b.float(plainly(DOUBLE))), rare)))
}

pub(crate) fn sinh(precision: Precision) -> Recipe {
    by_exponential(precision, true, |b, size| {
        let (t, low) = less_one(b, size);
        let (below, error) = exact_sum(b.float(1.0), t);
        (t + (quotient(t, Some(low), below, error + low) + low)) * 0.5
    })
}

pub(crate) fn cosh(precision: Precision) -> Recipe {
    by_exponential(precision, false, |b, size| {
        let e = plain(b, size);
        e.fma(b.float(0.5), 0.5 / e)
    })
}

/// The root of a sum of two numbers, as one.
fn root<'b>(b: &'b Builder, high: V<'b>, low: V<'b>) -> (V<'b>, V<'b>) {
    let root = high.sqrt();
    let rest = ((-root).fma(root, high) + low) / (root + root);
    (root, root.same(b.float(0.0)).select(b.float(0.0), rest))
}

/// `log(x + sqrt(x^2 + more))` of a number whose square is one.
fn of_root<'b>(b: &'b Builder, x: V<'b>, more: f64) -> V<'b> {
    let (square, error) = exact_product(x, x);
    let (sum, sum_error) = exact_sum(square, b.float(more));
    let (root, root_low) = root(b, sum, sum_error + error);
    let (sum, sum_error) = exact_sum(root, x);
    log::of_sum(b, sum, sum_error + root_low)
}

/// The logarithm of twice a number.
fn of_twice<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    let (k, m) = log::exponent(b, x);
    let value = log::plain(b, k + 1.0, m);
    x.less(b.float(f64::INFINITY)).select(value, x)
}

pub(crate) fn asinh(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let x = b.argument(0);
    let rare = {
        let b = &Builder::new(precision, DOUBLE);
        let x = b.argument(0);
        b.recipe(of_twice(b, x.abs()).signed(x.sign()), None)
    };
    let value = of_root(b, x.abs(), 1.0).abs().signed(x.sign());
    b.recipe(value, Some((!x.abs().less(b.float(HUGE)), rare)))
}

pub(crate) fn acosh(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let x = b.argument(0);
    let rare = {
        let b = &Builder::new(precision, DOUBLE);
        let x = b.argument(0);
        b.recipe(b.float(1.0).less(x).select(of_twice(b, x), b.float(f64::NAN)), None)
    };
    let is_plain = b.float(1.0).at_most(x) & x.less(b.float(HUGE));
    b.recipe(of_root(b, x, -1.0), Some((!is_plain, rare)))
}

pub(crate) fn atanh(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, DOUBLE);
    let x = b.argument(0);
    let rare = {
        let b = &Builder::new(precision, DOUBLE);
        let x = b.argument(0);
        let end = x.abs().same(b.float(1.0)).select(b.float(f64::INFINITY), b.float(f64::NAN));
        b.recipe(end.signed(x.sign()), None)
    };
    let size = x.abs();
    let (below, error) = exact_sum(b.float(1.0), -size);
    let twice = size + size;
    let q = twice / below;
    let q_low = (-q).fma(error, (-q).fma(below, twice)) / below;
    let (sum, sum_error) = exact_sum(b.float(1.0), q);
    let value = log::of_sum(b, sum, sum_error + q_low) * 0.5;
    b.recipe(value.abs().signed(x.sign()), Some((!size.less(b.float(1.0)), rare)))
}
