//! Sine and cosine.
//!
//! `|x| = n pi/2 + r` with a whole `n`. Up to [`FAR`] the multiple is subtracted in three parts of `pi/2` by fused
//! multiplications (Cody and Waite): the first difference is exact, and what the others round away is kept as a second
//! number. `sin(r)` and `cos(r)` are polynomials in `r^2` (`coefficients.rs`), to which the second number adds its first
//! order. Which of them it is, and the sign, are the last two bits of `n`. Below 1 unit in the last place in double
//! precision; results of single precision are computed in double precision, with shorter polynomials, and rounded.
//!
//! Rare: larger arguments are multiplied by `2/pi` (Payne and Hanek), of which multiples of 4 are left out beforehand: a table
//! has four parts of `2/pi` times a power of two for each power. The products are exact sums of two numbers, of which
//! multiples of 4 are left out again; what is left is added with all errors. It is right to 2^-140, and no number is nearer
//! to a multiple of `pi/2` than 2^-62.

use crate::build::{Builder, V};
use crate::coefficients::{COS, COS_4, HALF_PI, SIN, SIN_4};
use crate::pieces::{exact_product, exact_sum, fast_sum, layout};
use crate::recipe::{Precision, Recipe, Table};

/// The largest argument that is reduced by subtraction.
const FAR: f64 = 8_388_608.0;

/// An argument without its multiple of `pi/2`: the multiple as bits, and the rest as a sum of two numbers.
pub(crate) struct Turned<'b> {
    pub(crate) n: V<'b>,
    pub(crate) r: V<'b>,
    pub(crate) low: V<'b>,
}

/// Of a number up to [`FAR`].
pub(crate) fn near<'b>(b: &'b Builder, x: V<'b>, precision: Precision) -> Turned<'b> {
    let shift = layout(Precision::Double).shift;
    let shifted = x.fma(b.float(std::f64::consts::FRAC_2_PI), b.float(shift));
    let n = shifted - shift;
    let [first, second, third, _] = HALF_PI.map(|part| b.float(-part));
    let difference = n.fma(first, x);
    let r = n.fma(second, difference);
    let low = match precision {
        Precision::Double => n.fma(third, n.fma(second, difference - r)),
        Precision::Single => b.float(0.0),
    };
    Turned { n: shifted.bits(), r, low }
}

/// A number without multiples of 4, if it is small, and exactly so; without all of it if it is a multiple of 4 anyway.
fn without_fours<'b>(b: &'b Builder, x: V<'b>) -> V<'b> {
    let shift = layout(Precision::Double).shift;
    let fours = (x * 0.25 + shift) - shift;
    let rest = fours.fma(b.float(-4.0), x);
    x.abs().less(b.float(36_028_797_018_963_968.0)).select(rest, b.float(0.0))
}

/// Of any finite number from [`FAR`] on.
pub(crate) fn far<'b>(b: &'b Builder, x: V<'b>) -> Turned<'b> {
    let bits = x.bits();
    // x is an integer m times 2^(16 j - 32).
    let exponent = bits.down(52) - b.bits(1075 - 32);
    let fraction = bits & b.bits((1 << 52) - 1);
    let m = (fraction + (exponent & b.bits(15)).up(52) + b.bits(1075 << 52)).float();
    let parts = exponent.down(4).up(2);
    let [first, second, third, fourth] =
        [0, 1, 2, 3].map(|part| exact_product(m, b.look(Table::TwoOverPi, parts + b.bits(part))));
    let parts = [first.0, first.1, second.0].map(|part| without_fours(b, part));
    let (sum, error) = exact_sum(parts[0], parts[1]);
    let (sum, error_2) = exact_sum(sum, parts[2]);
    let shift = layout(Precision::Double).shift;
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

/// The sine and the cosine of what is left.
pub(crate) fn both<'b>(b: &'b Builder, Turned { r, low, .. }: &Turned<'b>, precision: Precision) -> (V<'b>, V<'b>) {
    let (r, low, z) = (*r, *low, *r * *r);
    match precision {
        Precision::Double => {
            let half = z * 0.5;
            let most = 1.0 - half;
            let rest = ((1.0 - most) - half) + (z * z).fma(b.estrin(z, &COS), -(r * low));
            (r + (z * r).fma(b.estrin(z, &SIN), low), most + rest)
        }
        Precision::Single => {
            let cos = (z * z).fma(b.estrin(z, &COS_4), z.fma(b.float(-0.5), b.float(1.0)));
            ((z * r).fma(b.estrin(z, &SIN_4), r), cos)
        }
    }
}

/// The sine of the whole, from its sign and what it leaves; the cosine if it is a quarter turn further.
fn chosen<'b>(b: &'b Builder, turned: &Turned<'b>, sign: V<'b>, quarters: u64, precision: Precision) -> V<'b> {
    let (sin, cos) = both(b, turned, precision);
    let n = turned.n + b.bits(quarters);
    let value = (n & b.bits(1)).same(b.bits(0)).select(sin, cos);
    value.signed(sign ^ (n & b.bits(2)).up(62))
}

/// Only the sine has the sign of its argument.
fn sign<'b>(b: &'b Builder, x: V<'b>, quarters: u64) -> V<'b> {
    if quarters == 0 { x.sign() } else { b.bits(0) }
}

fn turning(precision: Precision, quarters: u64) -> Recipe {
    let b = Builder::new(precision, Precision::Double);
    let rare = {
        let b = &Builder::new(precision, Precision::Double);
        let x = b.argument(0);
        let value = chosen(b, &far(b, x.abs()), sign(b, x, quarters), quarters, Precision::Double);
        b.recipe(x.abs().less(b.float(f64::INFINITY)).select(value, b.float(f64::NAN)), None)
    };
    let x = b.argument(0);
    let turned = near(&b, x.abs(), precision);
    let when = !x.abs().less(b.float(FAR));
    b.recipe(chosen(&b, &turned, sign(&b, x, quarters), quarters, precision), Some((when, rare)))
}

pub(crate) fn sin(precision: Precision) -> Recipe {
    turning(precision, 0)
}

pub(crate) fn cos(precision: Precision) -> Recipe {
    turning(precision, 1)
}
