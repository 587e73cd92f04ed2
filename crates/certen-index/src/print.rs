//! Index expressions as text: the notation that `parse.rs` reads, and those of other languages.

use std::fmt;

use certen_syntax::Name;
use smallvec::SmallVec;

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
    /// Writes a name at the end of a text.
    fn name(&mut self, name: Name, text: &mut String) {
        *text += name.as_str();
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
        // The terms one after the other; of each, whether it is subtracted and where it ends.
        let (mut written, mut ends) = (String::new(), SmallVec::<[(bool, usize); 8]>::new());
        let mut constant = self.constant_part();
        for (mono, coefficient) in self.terms() {
            let has_ceil_div = notation.has_ceil_div();
            let ceiling = ceiling(mono, *coefficient).filter(|_| has_ceil_div);
            let ceiling = ceiling.or_else(|| {
                let found = rounded_up(mono, *coefficient).filter(|_| has_ceil_div && constant > 0)?;
                constant -= 1;
                Some(found)
            });
            if coefficient.unsigned_abs() != 1 {
                written += &format!("{}*", coefficient.unsigned_abs());
            }
            let is_negative = ceiling.is_none() && *coefficient < 0;
            match ceiling {
                Some((e, divisor)) => written += &format!("ceil_div({}, {divisor})", e.write(notation)),
                None => {
                    for (at, atom) in mono.iter().enumerate() {
                        written += if at > 0 { "*" } else { "" };
                        atom.write(notation, &mut written);
                    }
                }
            }
            ends.push((is_negative, written.len()));
        }
        if constant != 0 || ends.is_empty() {
            written += &constant.unsigned_abs().to_string();
            ends.push((constant < 0, written.len()));
        }
        let mut text = String::with_capacity(written.len() + 3 * ends.len());
        for wanted in [false, true] {
            let mut begin = 0;
            for &(is_negative, end) in &ends {
                if is_negative == wanted {
                    text += match (text.is_empty(), is_negative) {
                        (true, false) => "",
                        (true, true) => "-",
                        (false, false) => " + ",
                        (false, true) => " - ",
                    };
                    text += &written[begin..end];
                }
                begin = end;
            }
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
    fn write(&self, notation: &mut dyn Notation, text: &mut String) {
        match self {
            Atom::Var(name) => notation.name(*name, text),
            Atom::FloorDiv(e, divisor) => {
                let arguments = [e.write(notation), divisor.to_string()];
                *text += &notation.call(IndexFunction::FloorDiv, &arguments);
            }
            Atom::Min(es) | Atom::Max(es) => {
                let arguments: Vec<String> = es.iter().map(|e| e.write(notation)).collect();
                let function = if matches!(self, Atom::Min(_)) { IndexFunction::Min } else { IndexFunction::Max };
                *text += &notation.call(function, &arguments);
            }
        }
    }
}
