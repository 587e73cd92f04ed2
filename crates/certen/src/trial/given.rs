//! The inputs of a run that is compared bit by bit: a fixed function of the set, the input and the element's position.
//!
//! Every bit has to be right, so that every kind of number occurs, beside each other: ordinary ones of both signs with full
//! mantissas, small integers (which meet in comparisons), zeros of both signs, large and tiny ones. The *wild* set also has
//! numbers at the ends of the range, subnormal ones, infinities and a few NaNs; what they touch tells less of the rest,
//! so that they have runs of their own.

use certen_core::domain::Scalar;
use certen_core::{Binary, ElemType, Program, Term, Terms, Unary};
use certen_validate::{Literals, draw, wrapping};

/// Which numbers an input has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Set {
    /// Such that sums and products mostly stay finite.
    Tame,
    /// Such that they need not.
    Wild,
}

/// The inputs of a program.
pub(crate) struct TrialInputs {
    literals: Literals,
    /// Whether logarithms and roots would mostly have no value.
    positive: bool,
}

impl TrialInputs {
    pub fn new(core: &Program) -> TrialInputs {
        TrialInputs { literals: Literals::of(core), positive: needs_positive(&core.terms) }
    }

    /// An element of an input.
    pub fn element(&self, set: Set, elem: ElemType, input: usize, position: usize) -> Scalar {
        let bits = draw(set as u64 + 1, input, position);
        match elem {
            ElemType::Bool => Scalar::Bool(bits & 1 == 1),
            ElemType::U8 => Scalar::U8((bits >> 24) as u8),
            ElemType::I32 => Scalar::I32(self.integer(bits, i64::from(i32::MIN), i64::from(i32::MAX)) as i32),
            ElemType::I64 => Scalar::I64(self.integer(bits, i64::MIN, i64::MAX)),
            ElemType::F32 | ElemType::F64 => {
                let value = match self.literals.near(bits >> 8) {
                    Some(near) if bits & 7 == 7 => near as f64,
                    _ => float(set, elem, bits),
                };
                let signed = !self.positive || set == Set::Wild;
                Scalar::from_f64(if signed { value } else { value.abs() }, elem)
            }
        }
    }

    fn integer(&self, bits: u64, least: i64, largest: i64) -> i64 {
        match self.literals.near(bits >> 8) {
            Some(near) if bits & 7 == 7 => near.clamp(least, largest),
            _ => wrapping(bits, least, largest),
        }
    }
}

fn float(set: Set, elem: ElemType, bits: u64) -> f64 {
    // In -1 … 1, with a full mantissa.
    let unit = (bits >> 11) as f64 * 2f64.powi(-52) - 1.0;
    let (large, tiny) = match elem {
        ElemType::F32 => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE)),
        _ => (f64::MAX, f64::MIN_POSITIVE),
    };
    let zero = 0.0f64.copysign(unit);
    match (set, (bits >> 3) % 64) {
        (Set::Wild, 0) if unit > 0.5 => f64::NAN,
        (Set::Wild, 1) => f64::INFINITY.copysign(unit),
        (Set::Wild, 2..=4) => unit * large,
        // Subnormal: fewer bits than others.
        (Set::Wild, 5..=7) => unit * tiny,
        (_, 8..=11) => zero,
        (_, 12..=23) => ((bits >> 20) % 17) as f64 - 8.0,
        (_, 24..=27) => unit * 1e6,
        (_, 28..=31) => unit * 1e-6,
        (_, 32..=43) => unit * 100.0,
        _ => 2.0 * unit,
    }
}

/// Whether some operation has no value, or hardly one, for numbers that are not positive.
pub(super) fn needs_positive(terms: &Terms) -> bool {
    terms.iter().any(|(_, term)| match term {
        Term::Unary(Unary::Sqrt, _) => true,
        Term::Unary(op, _) => op.function().is_some_and(|function| !function.is_total()),
        Term::Binary(Binary::Div | Binary::ControlledDiv, _, b) => !matches!(terms.get(*b), Term::Literal(..)),
        Term::Binary(op, ..) => op.function().is_some_and(|function| !function.is_total()),
        _ => false,
    })
}
