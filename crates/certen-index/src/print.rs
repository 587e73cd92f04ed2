//! Index expressions as text: the notation that `parse.rs` reads, and those of other languages.

use std::fmt;

use certen_syntax::Name;

use crate::ix::{Atom, Ix, Mono};

/// The functions that occur in expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexFunction {
    /// The quotient by a positive literal, rounded towards minus infinity.
    FloorDiv,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

/// How names and functions are written. Sums and products look the same everywhere.
pub trait Notation {
    /// A name.
    fn name(&mut self, name: Name) -> String {
        name.to_string()
    }

    /// Whether `ceil_div(e, k)` can be written for `-floor_div(-e, k)`.
    fn has_ceil_div(&self) -> bool {
        true
    }

    /// A function of at least two arguments.
    fn call(&mut self, function: IndexFunction, arguments: &[String]) -> String {
        let word = match function {
            IndexFunction::FloorDiv => "floor_div",
            IndexFunction::Min => "min",
            IndexFunction::Max => "max",
        };
        format!("{word}({})", arguments.join(", "))
    }
}

/// The notation that [`parse_ix`](crate::parse_ix) reads.
pub(crate) struct Plain;

impl Notation for Plain {}

impl Ix {
    /// The expression as text. Positive terms come first, so that `5 - n` is not written `-n + 5`.
    pub fn write(&self, notation: &mut dyn Notation) -> String {
        let mut pieces: Vec<(bool, String)> = Vec::new();
        let mut constant = self.constant_part();
        for (mono, coefficient) in self.terms() {
            let has_ceil_div = notation.has_ceil_div();
            let ceiling = ceiling(mono, *coefficient).filter(|_| has_ceil_div);
            let ceiling = ceiling.or_else(|| {
                let found = rounded_up(mono, *coefficient).filter(|_| has_ceil_div && constant > 0)?;
                constant -= 1;
                Some(found)
            });
            let (negative, product) = match ceiling {
                Some((e, divisor)) => (false, format!("ceil_div({}, {divisor})", e.write(notation))),
                None => {
                    let factors: Vec<String> = mono.iter().map(|atom| atom.write(notation)).collect();
                    (*coefficient < 0, factors.join("*"))
                }
            };
            let text = match coefficient.unsigned_abs() {
                1 => product,
                size => format!("{size}*{product}"),
            };
            pieces.push((negative, text));
        }
        if constant != 0 || pieces.is_empty() {
            pieces.push((constant < 0, constant.unsigned_abs().to_string()));
        }
        pieces.sort_by_key(|(negative, _)| *negative);
        let mut text = String::new();
        for (negative, piece) in &pieces {
            text += match (text.is_empty(), negative) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            text += piece;
        }
        text
    }

    /// Whether the text is a sum or begins with a minus, and so needs parentheses as a factor.
    pub fn is_sum(&self) -> bool {
        match self.terms() {
            [] => self.constant_part() < 0,
            [(_, coefficient)] => self.constant_part() != 0 || *coefficient < 0,
            _ => true,
        }
    }
}

/// `-c * floor_div(e, k)` is written `c * ceil_div(-e, k)` where that saves a minus inside.
fn ceiling(mono: &Mono, coefficient: i64) -> Option<(Ix, i64)> {
    match mono.as_slice() {
        [Atom::FloorDiv(e, divisor)] if coefficient < 0 && e.terms().iter().all(|(_, c)| *c < 0) => {
            Some((e.scale(-1).ok()?, *divisor))
        }
        _ => None,
    }
}

/// `1 - floor_div(e, k)` is written `ceil_div(k - e, k)`, where something in e has a minus.
fn rounded_up(mono: &Mono, coefficient: i64) -> Option<(Ix, i64)> {
    match mono.as_slice() {
        [Atom::FloorDiv(e, divisor)] if coefficient == -1 && e.terms().iter().any(|(_, c)| *c < 0) => {
            Some((Ix::from(*divisor).sub(e).ok()?, *divisor))
        }
        _ => None,
    }
}

impl fmt::Display for Ix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(&mut Plain))
    }
}

impl fmt::Debug for Ix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Atom {
    fn write(&self, notation: &mut dyn Notation) -> String {
        match self {
            Atom::Var(name) => notation.name(*name),
            Atom::FloorDiv(e, divisor) => {
                let arguments = [e.write(notation), divisor.to_string()];
                notation.call(IndexFunction::FloorDiv, &arguments)
            }
            Atom::Min(es) | Atom::Max(es) => {
                let arguments: Vec<String> = es.iter().map(|e| e.write(notation)).collect();
                let function = if matches!(self, Atom::Min(_)) { IndexFunction::Min } else { IndexFunction::Max };
                notation.call(function, &arguments)
            }
        }
    }
}
