//! Pieces that several recipes have: how floats are laid out, rounding to integers, sums and products with their errors.

use crate::build::{Builder, V};
use crate::recipe::Precision;

/// How floats of a precision are laid out, and numbers that follow from it.
pub(crate) struct Layout {
    /// The place of the sign.
    pub(crate) sign: u32,
    /// Bits after the point.
    pub(crate) fraction: u32,
    /// The bits of a fraction, and of the root of 1/2.
    pub(crate) fractions: u64,
    pub(crate) root: u64,
    /// The least number that has all bits; a power of two by which it is moved up if a number has not, and its exponent.
    pub(crate) least: f64,
    pub(crate) more: f64,
    pub(crate) places: f64,
    /// What is added to exponents.
    pub(crate) bias: u64,
    /// Added to a small number it leaves the nearest integer in the last bits: 3/2 times the power of two with unit 1.
    pub(crate) shift: f64,
}

pub(crate) fn layout(working: Precision) -> &'static Layout {
    match working {
        Precision::Single => &Layout {
            sign: 31,
            fraction: 23,
            fractions: (1 << 23) - 1,
            root: 0x3f35_04f3,
            least: f32::MIN_POSITIVE as f64,
            more: 33_554_432.0,
            places: 25.0,
            bias: 127,
            shift: 12_582_912.0,
        },
        Precision::Double => &Layout {
            sign: 63,
            fraction: 52,
            fractions: (1 << 52) - 1,
            root: 0x3fe6_a09e_667f_3bcd,
            least: f64::MIN_POSITIVE,
            more: 18_014_398_509_481_984.0,
            places: 54.0,
            bias: 1023,
            shift: 6_755_399_441_055_744.0,
        },
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

/// The quotient of a number, and of what is added to it, and a sum of two numbers of usual size: nearly as exact as one rounding.
pub(crate) fn quotient<'b>(above: V<'b>, above_low: Option<V<'b>>, below: V<'b>, below_low: V<'b>) -> V<'b> {
    let inverse = 1.0 / below;
    let q = above * inverse;
    let rest = (-q).fma(below, above);
    let rest = above_low.map_or(rest, |low| rest + low);
    (-q).fma(below_low, rest).fma(inverse, q)
}

impl Builder {
    /// The layout of what it computes in.
    pub(crate) fn layout(&self) -> &'static Layout {
        layout(self.working())
    }

    /// The power of two with the integer that [`Layout::shift`] left in the last bits of a float, if it is an exponent.
    pub(crate) fn power_of_two<'b>(&'b self, shifted: V<'b>) -> V<'b> {
        let Layout { fraction, bias, .. } = self.layout();
        (shifted.bits() + self.bits(*bias)).up(*fraction).float()
    }
}
