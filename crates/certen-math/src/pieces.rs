//! Pieces that several recipes have: how floats are laid out, rounding to integers, sums and products with their errors.

use crate::build::{Builder, V};
use crate::recipe::Precision;

/// How floats of a precision are laid out, and numbers that follow from it.
pub(crate) struct Layout {
    /// Bits after the point.
    pub(crate) fraction: u32,
    /// What is added to exponents.
    pub(crate) bias: u64,
    /// Added to a small number it leaves the nearest integer in the last bits: 3/2 times the power of two with unit 1.
    pub(crate) shift: f64,
}

pub(crate) fn layout(working: Precision) -> &'static Layout {
    match working {
        Precision::Single => &Layout { fraction: 23, bias: 127, shift: 12_582_912.0 },
        Precision::Double => &Layout { fraction: 52, bias: 1023, shift: 6_755_399_441_055_744.0 },
    }
}

/// `a + b` and its rounding error, if `a` is the larger or zero.
pub(crate) fn fast_sum<'b>(a: V<'b>, b: V<'b>) -> (V<'b>, V<'b>) {
    let sum = a + b;
    (sum, b - (sum - a))
}

/// `a + b` and its rounding error.
pub(crate) fn exact_sum<'b>(a: V<'b>, b: V<'b>) -> (V<'b>, V<'b>) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// `a * b` and its rounding error.
pub(crate) fn exact_product<'b>(a: V<'b>, b: V<'b>) -> (V<'b>, V<'b>) {
    let product = a * b;
    (product, a.fma(b, -product))
}

impl Builder {
    /// The power of two with the integer that [`Layout::shift`] left in the last bits of a float, if it is an exponent.
    pub(crate) fn power_of_two<'b>(&'b self, shifted: V<'b>, working: Precision) -> V<'b> {
        let Layout { fraction, bias, .. } = layout(working);
        (shifted.bits() + self.bits(*bias)).up(*fraction).float()
    }
}
