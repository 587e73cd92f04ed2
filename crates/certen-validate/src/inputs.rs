//! The inputs of a test point: a fixed function of the setting, the seed, the number of the input and the position of the
//! element, so that a point can be replayed from a few numbers, here or by a checker of its own.
//!
//! ```text
//! splitmix(x):  z = x + 0x9e3779b97f4a7c15;  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
//!               z = (z ^ z >> 27) * 0x94d049bb133111eb;  z ^ z >> 31                          (modulo 2^64)
//! draw(seed, input, position) = splitmix(seed ^ splitmix(input << 40 | position))
//! ```
//!
//! Inputs are numbered from 0 in the program's order, positions from 0 row by row. What an element is, by its draw `d`:
//!
//! | setting | bool | u8 | i32, i64 | f32, f64 |
//! |---|---|---|---|---|
//! | field | `d & 1` | `d mod (2^61 - 1)` | `d mod (2^61 - 1)` | `d mod (2^61 - 1)` |
//! | field, comparisons tossed | as field | as field | as field | as field |
//! | integers | `d & 1` | `d mod 7` | -6 … 6, or near a literal | as integers |
//! | rationals | `d & 1` | `d mod 7` | as integers | halves from -6 to 6, or near a literal |
//! | machine | `d & 1` | `d mod 256` | small, any, or at the end of the range | -4 … 4 |
//! | machine, bit by bit | `d & 1` | `d mod 256` | as machine | any in -1 … 1 |
//!
//! *Near a literal*: one draw in four is a literal that stands in the program, or one less or more, so that comparisons
//! with it go both ways. Few different numbers make ties. In the integers and rationals, with `s = seed mod 4`, a share of
//! `0`, `4/8`, `6/8` or `7/8` of all elements is one literal of the program, or 0, so that whole rows are: what looks for the
//! first or last element that is not zero is told apart. *With NaNs* and *with infinities* are as machine, but for
//! one float of each input (at the position `draw(seed, input, 2^40 - 1)` modulo their number) and about one in sixteen of
//! the others. The infinities of a point have one sign.

use certen_core::domain::{Element, Exact, Scalar, splitmix};
use certen_core::{ElemType, Literal, Program, Term};
use num_bigint::BigInt;
use num_rational::BigRational;

/// Where values are taken from at a test point, and what is compared.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Setting {
    /// The prime field: equal as polynomials.
    Field,
    /// The prime field, where a comparison is tossed: a fixed random function of what is compared. Whatever depends on
    /// rare data, on `x == 5000000`, is reached, because no step of a schedule uses what a comparison means.
    Coins,
    /// Small signed integers, in the field, which has their order: comparisons go both ways.
    Integers,
    /// Exact rationals: order and quotients.
    Rationals,
    /// The machine's numbers, integers that wrap and floats that mostly do not round: equal, or within the bound that any
    /// order of summation keeps.
    Machine,
    /// Floats among which are NaNs: the same elements are NaN.
    Nans,
    /// Floats among which are infinities: the same elements are infinite, with the same sign, or NaN.
    Infinities,
    /// The machine's numbers, every operation made as written: the same bits.
    Bits,
}

impl Setting {
    /// Every one.
    pub const ALL: [Setting; 8] = [
        Setting::Field,
        Setting::Coins,
        Setting::Integers,
        Setting::Rationals,
        Setting::Machine,
        Setting::Nans,
        Setting::Infinities,
        Setting::Bits,
    ];

    /// What it is called, in evidence and certificates.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Field => "field",
            Setting::Coins => "field, comparisons tossed",
            Setting::Integers => "integers",
            Setting::Rationals => "rationals",
            Setting::Machine => "machine",
            Setting::Nans => "machine with NaNs",
            Setting::Infinities => "machine with infinities",
            Setting::Bits => "machine, bit by bit",
        }
    }
}

/// The bits that an element of an input is made from.
pub fn draw(seed: u64, input: usize, position: usize) -> u64 {
    splitmix(seed ^ splitmix((input as u64) << 40 | position as u64))
}

/// Where an element stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub seed: u64,
    pub input: usize,
    pub position: usize,
    /// How many elements the input has.
    pub count: usize,
    pub elem: ElemType,
}

impl Place {
    fn bits(&self) -> u64 {
        draw(self.seed, self.input, self.position)
    }
}

/// Whole literals of a program, beside which values lie.
pub struct Literals(Vec<i64>);

/// Larger ones are left alone: sums and products near them are not small any more.
const LARGEST_LITERAL: u64 = 1 << 20;

impl Literals {
    /// Those of a program.
    pub fn of(program: &Program) -> Literals {
        let mut found: Vec<i64> = program
            .terms
            .iter()
            .filter_map(|(_, term)| match term {
                Term::Literal(Literal::Int(value), _) => Some(*value),
                Term::Literal(Literal::Float(value), _) if value.fract() == 0.0 => Some(*value as i64),
                _ => None,
            })
            .filter(|value| value.unsigned_abs() <= LARGEST_LITERAL)
            .collect();
        found.sort_unstable();
        found.dedup();
        Literals(found)
    }

    /// One draw in four is one of them, or one less or more.
    pub fn near(&self, bits: u64) -> Option<i64> {
        let count = self.0.len() as u64;
        if count == 0 || !(bits >> 32).is_multiple_of(4) {
            return None;
        }
        Some(self.0[((bits >> 40) % count) as usize] + ((bits >> 34) % 3) as i64 - 1)
    }

    /// What many elements of a point are, if this is one of them.
    fn common(&self, place: &Place) -> Option<i64> {
        let share = [0, 4, 6, 7][(place.seed % 4) as usize];
        if (place.bits() >> 48) % 8 >= share {
            return None;
        }
        // 0 first, then each of the literals.
        let at = (place.seed / 4) as usize % (self.0.len() + 1);
        Some(at.checked_sub(1).map_or(0, |at| self.0[at]))
    }

    /// A whole number of the settings with order.
    fn whole(&self, place: &Place) -> i64 {
        let bits = place.bits();
        match place.elem {
            ElemType::Bool => (bits & 1) as i64,
            ElemType::U8 => self.common(place).map_or((bits % 7) as i64, |value| value.rem_euclid(7)),
            _ => self.common(place).or_else(|| self.near(bits)).unwrap_or((bits % 13) as i64 - 6),
        }
    }
}

/// An element of the field.
pub(crate) fn field(place: Place) -> Option<Element> {
    let bits = place.bits();
    Some(if place.elem == ElemType::Bool { Element::Bool(bits & 1 == 1) } else { Element::reduce(bits) })
}

/// A small integer, in the field.
pub(crate) fn integer(literals: &Literals, place: Place) -> Option<Element> {
    let whole = literals.whole(&place);
    Some(if place.elem == ElemType::Bool { Element::Bool(whole == 1) } else { Element::from(whole) })
}

/// A small rational.
pub(crate) fn rational(literals: &Literals, place: Place) -> Option<Exact> {
    let whole = literals.whole(&place);
    Some(match place.elem {
        ElemType::Bool => Exact::Bool(whole == 1),
        ElemType::F32 | ElemType::F64 => {
            let bits = place.bits();
            let near = literals.common(&place).or_else(|| literals.near(bits));
            let halves = near.map_or((bits % 25) as i64 - 12, |near| 2 * near);
            Exact::Number(BigRational::new(BigInt::from(halves), BigInt::from(2)))
        }
        _ => Exact::from(whole),
    })
}

/// A machine number of one of the machine's settings.
pub(crate) fn machine(setting: Setting, place: Place) -> Scalar {
    let bits = place.bits();
    match place.elem {
        ElemType::Bool => Scalar::Bool(bits & 1 == 1),
        ElemType::U8 => Scalar::U8((bits % 256) as u8),
        ElemType::I32 => Scalar::I32(wrapping(bits, i64::from(i32::MIN), i64::from(i32::MAX)) as i32),
        ElemType::I64 => Scalar::I64(wrapping(bits, i64::MIN, i64::MAX)),
        ElemType::F32 | ElemType::F64 => Scalar::from_f64(float(setting, place), place.elem),
    }
}

/// An integer, by its draw: small, any, or within two of the end of the range.
pub fn wrapping(bits: u64, least: i64, largest: i64) -> i64 {
    match bits >> 62 {
        0 => bits as i64,
        1 if bits & 1 == 0 => largest - (bits >> 8) as i64 % 3,
        1 => least + (bits >> 8) as i64 % 3,
        _ => (bits % 13) as i64 - 6,
    }
}

/// A position that no element has.
const LAST: usize = (1 << 40) - 1;

fn float(setting: Setting, place: Place) -> f64 {
    let bits = place.bits();
    let chosen = draw(place.seed, place.input, LAST) % (place.count.max(1) as u64) == place.position as u64;
    let special = chosen || (bits >> 40).is_multiple_of(16);
    match setting {
        Setting::Nans if special => f64::NAN,
        Setting::Infinities if special && place.seed.is_multiple_of(2) => f64::NEG_INFINITY,
        Setting::Infinities if special => f64::INFINITY,
        Setting::Bits => (bits >> 11) as f64 * 2f64.powi(-52) - 1.0,
        _ => (bits % 9) as f64 - 4.0,
    }
}
