//! Sine, cosine and tangent.
//!
//! `|x| = n pi/2 + r` with a whole `n`. Up to [`far_from`] the multiple is subtracted in parts of `pi/2` by fused
//! multiplications (Cody and Waite): the first difference is exact, and what the others round away is kept as a second
//! number. `sin(r)` and `cos(r)` are polynomials in `r^2` (`coefficients.rs`), to which the second number adds its first
//! order. Which of them it is, and the sign, are the last two bits of `n`. Below 1 unit in the last place; the tangent is
//! their quotient, with what their last sums round away. Tangents of single precision are computed in double precision and rounded.
//!
//! Rare: larger arguments are multiplied by `2/pi` in double precision (Payne and Hanek), of which multiples of 4 are left
//! out beforehand: a table has four parts of `2/pi` times a power of two for each power. The products are exact sums of two
//! numbers, of which multiples of 4 are left out again; what is left is added with all errors. It is right to 2^-140, and no
//! number is nearer to a multiple of `pi/2` than 2^-62.

use crate::build::{Builder, V};
use crate::coefficients::{COS, COS_4, COS_SINGLE, HALF_PI, HALF_PI_SINGLE, SIN, SIN_4, SIN_SINGLE};
use crate::pieces::{exact_product, exact_sum, fast_sum, quotient as divided};
use crate::recipe::{Precision, Recipe, Table};

/// The largest argument that is reduced by subtraction: there the nearest multiple is found well enough.
fn far_from(working: Precision) -> f64 {
    if working == Precision::Double { 8_388_608.0 } else { 32_768.0 }
}

/// An argument without its multiple of `pi/2`: the multiple as bits, and the rest as a sum of two numbers.
struct Turned<'b> {
    n: V<'b>,
    r: V<'b>,
    low: V<'b>,
}

/// Of a number up to [`far_from`].
fn near<'b>(b: &'b Builder, x: V<'b>) -> Turned<'b> {
    let shift = b.layout().shift;
    let shifted = x.fma(b.float(std::f64::consts::FRAC_2_PI), b.float(shift));
    let n = shifted - shift;
    let half_pi = if b.working() == Precision::Double { HALF_PI } else { HALF_PI_SINGLE };
    let [first, second, third, _] = half_pi.map(|part| b.float(-part));
    let difference = n.fma(first, x);
    if b.precision() != b.working() {
        return Turned { n: shifted.bits(), r: n.fma(second, difference), low: b.float(0.0) };
    }
    // Either may be the larger one.
    let (product, product_error) = exact_product(n, second);
    let (r, error) = exact_sum(difference, product);
    Turned { n: shifted.bits(), r, low: n.fma(third, error + product_error) }
}

/// A number without multiples of 4, if it is small, and exactly so; without all of it if it is a multiple of 4 anyway.
fn without_fours<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    let shift = b.layout().shift;
    let fours = (x * 0.25 + shift) - shift;
    let rest = fours.fma(b.float(-4.0), x);
    x.abs().less(b.float(36_028_797_018_963_968.0)).select(rest, b.float(0.0))
}

/// Of any finite number from 2^15 on, in double precision.
fn far<'b>(b: &'b Builder, x: V<'b>) -> Turned<'b> {
    let bits = x.bits();
    // x is an integer m times 2^(16 j - 48).
    let exponent = bits.down(52) - b.bits(1075 - 48);
    let fraction = bits & b.bits((1 << 52) - 1);
    let m = (fraction + (exponent & b.bits(15)).up(52) + b.bits(1075 << 52)).float();
    let parts = exponent.down(4).up(2);
    let [first, second, third, fourth] =
        [0, 1, 2, 3].map(|part| exact_product(m, b.look(Table::TwoOverPi, parts + b.bits(part))));
    let parts = [first.0, first.1, second.0].map(|part| without_fours(b, part));
    let (sum, error) = exact_sum(parts[0], parts[1]);
    let (sum, error_2) = exact_sum(sum, parts[2]);
    let shift = b.layout().shift;
    let shifted = sum + shift;
    let (rest, lows) = [second.1, third.0, error, error_2].into_iter().fold(
        (sum - (shifted - shift), third.1 + fourth.0),
        |(rest, lows), part| {
            let (rest, error) = exact_sum(rest, part);
            (rest, lows + error)
        },
    );
    let (rest, low) = fast_sum(rest, lows);
    let (r, error) = exact_product(rest, b.float(HALF_PI[0]));
    let low = low.fma(b.float(HALF_PI[0]), rest.fma(b.float(HALF_PI[1]), error));
    Turned { n: shifted.bits(), r, low }
}

/// The sine and the cosine of what is left, as sums of two numbers.
fn both<'b>(b: &'b Builder, Turned { r, low, .. }: &Turned<'b>) -> [(V<'b>, V<'b>); 2] {
    let (r, low, z) = (*r, *low, *r * *r);
    if b.precision() != b.working() {
        let cos = (z * z).fma(b.estrin(z, &COS_4), z.fma(b.float(-0.5), b.float(1.0)));
        let zero = b.float(0.0);
        return [((z * r).fma(b.estrin(z, &SIN_4), r), zero), (cos, zero)];
    }
    let (sin, cos): (V<'b>, V<'b>) = match b.working() {
        Precision::Double => (b.estrin(z, &SIN), b.estrin(z, &COS)),
        Precision::Single => (b.estrin(z, &SIN_SINGLE), b.estrin(z, &COS_SINGLE)),
    };
    let half = z * 0.5;
    let most = 1.0 - half;
    let rest = ((1.0 - most) - half) + (z * z).fma(cos, -(r * low));
    [fast_sum(r, (z * r).fma(sin, low)), fast_sum(most, rest)]
}

/// Only the cosine has no sign of its argument.
fn sign<'b>(b: &'b Builder, x: V<'b>, quarters: u64) -> V<'b> {
    if quarters == 0 { x.sign() } else { b.bits(0) }
}

/// The sine of the whole, from its sign and what it leaves; the cosine if it is a quarter turn further.
fn turned_by<'b>(b: &'b Builder, x: V<'b>, turned: &Turned<'b>, quarters: u64) -> V<'b> {
    let [(sin, _), (cos, _)] = both(b, turned);
    let n = turned.n + b.bits(quarters);
    let value = (n & b.bits(1)).same(b.bits(0)).select(sin, cos);
    // The second bit of the multiple is the sign.
    value.signed(sign(b, x, quarters) ^ (n & b.bits(2)).up(b.layout().sign - 1))
}

fn quotient<'b>(b: &'b Builder, x: V<'b>, turned: &Turned<'b>) -> V<'b> {
    let [(sin, sin_low), (cos, cos_low)] = both(b, turned);
    let is_even = (turned.n & b.bits(1)).same(b.bits(0));
    let (above, below) = (is_even.select(sin, -cos), is_even.select(cos, sin));
    if b.precision() != b.working() {
        return (above / below).signed(x.sign());
    }
    let (above_low, below_low) = (is_even.select(sin_low, -cos_low), is_even.select(cos_low, sin_low));
    divided(above, Some(above_low), below, below_low).signed(x.sign())
}

/// A function of what is left of its argument.
fn turning(
    precision: Precision,
    working: Precision,
    value: impl for<'b> Fn(&'b Builder, V<'b>, &Turned<'b>) -> V<'b>,
) -> Recipe {
    let rare = {
        let b = &Builder::new(precision, Precision::Double);
        let x = b.argument(0);
        let value = value(b, x, &far(b, x.abs()));
        b.recipe(x.abs().less(b.float(f64::INFINITY)).select(value, b.float(f64::NAN)), None)
    };
    let b = &Builder::new(precision, working);
    let x = b.argument(0);
    let when = !x.abs().less(b.float(far_from(working)));
    b.recipe(value(b, x, &near(b, x.abs())), Some((when, rare)))
}

pub(crate) fn sin(precision: Precision) -> Recipe {
    turning(precision, precision, |b, x, turned| turned_by(b, x, turned, 0))
}

pub(crate) fn cos(precision: Precision) -> Recipe {
    turning(precision, precision, |b, x, turned| turned_by(b, x, turned, 1))
}

pub(crate) fn tan(precision: Precision) -> Recipe {
    turning(precision, Precision::Double, quotient)
}
