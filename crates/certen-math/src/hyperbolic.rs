//! Hyperbolic functions.
//!
//! `tanh(x) = t / (t + 2)` with `t = exp(2 |x|) - 1`, which is `2^k (exp(r) - 1) + (2^k - 1)` for `2 |x| = k ln 2 + r` (see
//! `exp.rs`): the large part `2^k r + (2^k - 1)` is rounded once, and the polynomial's small one added, so nothing cancels.
//! Below 2 units in the last place. Results of single precision are computed in double precision and rounded.

use crate::build::{Builder, V};
use crate::exp::{Reduced, polynomial, reduced};
use crate::recipe::{Precision, Recipe};

/// `exp(x) - 1`, for an `x` whose power of two is one.
pub(crate) fn less_one<'b>(b: &'b Builder, x: V<'b>, precision: Precision) -> V<'b> {
    let Reduced { shifted, k, first, r, part } = reduced(b, x, Precision::Double);
    let low = k.fma(b.float(-part), first - r);
    let small = (r * r).fma(polynomial(b, r, precision, Precision::Double), low);
    let scale = b.power_of_two(shifted, Precision::Double);
    scale.fma(small, scale.fma(r, scale - 1.0))
}

pub(crate) fn tanh(precision: Precision) -> Recipe {
    let b = Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    // From there on it is 1.
    let most = b.float(20.0);
    let size = most.less(x.abs()).select(most, x.abs());
    let t = less_one(&b, size + size, precision);
    b.recipe((t / (t + 2.0)).signed(x.sign()), None)
}
