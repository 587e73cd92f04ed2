//! Inverse trigonometric functions: `asin`, `acos`, `atan`, `atan2`.
//!
//! `asin(x) = x + x^3 p(x^2)` up to 1/2, with a polynomial for `p` (`coefficients.rs`); beyond that `pi/2 - 2 asin(s)` with
//! `s^2 = (1 - x) / 2`, which is exact. `acos` has the same pieces. `atan(x) = t + t^3 q(t^2)` up to the tangent of `pi/8`;
//! up to its inverse it is `pi/4 + atan((x - 1) / (x + 1))`, beyond that `pi/2 + atan(-1 / x)`. `atan2` is the arc tangent of the
//! quotient of sizes, in the quarter that the signs say. Multiples of `pi/4` are sums of two numbers. Below 2 units in the
//! last place. Results of single precision are computed in double precision, with shorter polynomials, and rounded.

use crate::build::{Builder, V};
use crate::coefficients::{ASIN, ASIN_6, ATAN, ATAN_6, HALF_PI, PI};
use crate::recipe::{Precision, Recipe};

fn asin_rest<'b>(b: &'b Builder, z: V<'b>) -> V<'b> {
    z * if b.precision() == Precision::Double { b.estrin(z, &ASIN) } else { b.estrin(z, &ASIN_6) }
}

/// For a number: whether it is at most 1/2, the number or the root of half of what is missing to 1, and that times
/// the polynomial.
fn pieces<'b>(b: &'b Builder, x: V<'b>) -> (V<'b>, V<'b>, V<'b>) {
    let size = x.abs();
    let is_small = size.at_most(b.float(0.5));
    let square = is_small.select(size * size, 0.5 - size * 0.5);
    let s = is_small.select(size, square.sqrt());
    (is_small, s, s * asin_rest(b, square))
}

pub(crate) fn asin(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    let (is_small, s, rest) = pieces(b, x);
    let large = HALF_PI[0] - ((s + s) + ((rest + rest) - HALF_PI[1]));
    b.recipe(is_small.select(s + rest, large).signed(x.sign()), None)
}

pub(crate) fn acos(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    let (is_small, s, rest) = pieces(b, x);
    let (signed, rest_signed) = (s.signed(x.sign()), rest.signed(x.sign()));
    let small = HALF_PI[0] - (signed - (HALF_PI[1] - rest_signed));
    let twice = (s + s) + (rest + rest);
    let large = x.less(b.float(0.0)).select(PI[0] - ((s + s) + ((rest + rest) - PI[1])), twice);
    b.recipe(is_small.select(small, large), None)
}

/// The arc tangent of a number that is not negative.
fn of_size<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    let one = b.float(1.0);
    let zero = b.float(0.0);
    let is_small = x.less(b.float(0.414_213_562_373_095));
    let is_large = b.float(2.414_213_562_373_095).less(x);
    let above = is_small.select(x, is_large.select(-one, x - 1.0));
    let below = is_small.select(one, is_large.select(x, x + 1.0));
    let t = above / below;
    let z = t * t;
    let polynomial: V<'b> = if b.precision() == Precision::Double { b.estrin(z, &ATAN) } else { b.estrin(z, &ATAN_6) };
    let part = |at: usize| {
        let [half, quarter] = [HALF_PI[at], HALF_PI[at] * 0.5].map(|part| b.float(part));
        is_small.select(zero, is_large.select(half, quarter))
    };
    let rest = (z * t).fma(polynomial, part(1));
    is_small.select(t + rest, part(0) + (t + rest))
}

pub(crate) fn atan(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    b.recipe(of_size(b, x.abs()).signed(x.sign()), None)
}

pub(crate) fn atan2(precision: Precision) -> Recipe {
    let b = &Builder::new(precision, Precision::Double);
    let (y, x) = (b.argument(0), b.argument(1));
    let (rise, run) = (y.abs(), x.abs());
    let quotient = rise / run;
    // Of two zeros, and of two infinities.
    let quotient = rise.same(b.float(0.0)).select(b.float(0.0), quotient);
    let quotient = (rise.same(run) & rise.same(b.float(f64::INFINITY))).select(b.float(1.0), quotient);
    let angle = of_size(b, quotient);
    let is_left = !x.sign().same(b.bits(0));
    let value = is_left.select(PI[0] - (angle - PI[1]), angle);
    let value = (x.is_nan() | y.is_nan()).select(b.float(f64::NAN), value);
    b.recipe(value.signed(y.sign()), None)
}
