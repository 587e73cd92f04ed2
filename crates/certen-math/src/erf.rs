//! The error function.
//!
//! Up to 1 it is `x + x q(x^2)`, from there on `1 - exp(-p(x))`, with polynomials for `q` and for `p = -log(1 - erf)`
//! (`coefficients.rs`). The second is at most 0.16, so the exponential's errors count little. Below 1 unit in the last place.
//! Results of single precision are computed in double precision, with shorter polynomials, and rounded.

use crate::build::Builder;
use crate::coefficients::{ERF, ERF_7, ERFC_LOG, ERFC_LOG_SHORT};
use crate::exp::plain;
use crate::recipe::{Precision, Recipe};

pub(crate) fn erf(precision: Precision) -> Recipe {
    let b = Builder::new(precision, Precision::Double);
    let x = b.argument(0);
    // From `most` on it is 1.
    let (near, far, middle, most): (&[f64], &[f64], f64, f64) = match precision {
        Precision::Double => (&ERF, &ERFC_LOG, 3.0, 5.95),
        Precision::Single => (&ERF_7, &ERFC_LOG_SHORT, 2.0, 4.0),
    };
    let size = x.abs();
    let small = size.fma(b.estrin(size * size, near), size);
    let most = b.float(most);
    let t = most.less(size).select(most, size) - middle;
    let large = 1.0 - plain(&b, -b.estrin(t, far), precision, Precision::Double);
    let value = size.less(b.float(1.0)).select(small, large);
    b.recipe(value.signed(x.sign()), None)
}
