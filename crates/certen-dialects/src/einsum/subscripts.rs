//! The notation: `ij,jk->ik`, or NumPy's lists of numbers.
//!
//! Indices are numbered as NumPy orders them: A to Z, then a to z, from 0 to 51. Without an arrow the output has those
//! that stand once, in this order, after the dimensions of ellipses.

use std::fmt;

use super::error::{EinsumError, IndexName, MAX_OPERANDS, SubPlace};

/// How many different indices there can be.
const LABELS: u32 = 52;

/// A subscript.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sub {
    /// An index by its number, 0 to 51: A to Z, a to z.
    Label(u32),
    /// As many dimensions as are left.
    Ellipsis,
}

/// The subscripts of an einsum: which indices its operands and its output have.
///
/// ```
/// use certen_dialects::einsum::{Sub, Subscripts};
/// let text = Subscripts::parse("ij, jk", 2)?;
/// assert_eq!(text.to_string(), "ij,jk->ik");
/// let label = Sub::Label;
/// let lists = [vec![label(34), label(35)], vec![label(35), label(36)]];
/// assert_eq!(Subscripts::from_lists(&lists, None)?.to_string(), "ij,jk->ik");
/// # Ok::<(), certen_dialects::einsum::EinsumError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Subscripts {
    pub(super) operands: Vec<Vec<Sub>>,
    pub(super) output: Vec<Sub>,
    /// Whether the user has written numbers.
    numbers: bool,
}

impl Subscripts {
    /// Reads a text, for a number of operands.
    ///
    /// # Errors
    /// Where NumPy raises a `ValueError` whatever the shapes of the operands are.
    pub fn parse(text: &str, operands: usize) -> Result<Subscripts, EinsumError> {
        // NumPy's text is one of C.
        let text = match text.find('\0') {
            Some(end) if text.is_ascii() => &text[..end],
            _ => text,
        };
        let (inputs, output) = match text.split_once('-') {
            Some((inputs, rest)) => (inputs, Some(rest.strip_prefix('>').ok_or(EinsumError::Arrow)?)),
            None => (text, None),
        };
        let terms = inputs.split(',').count();
        if terms != operands {
            // Of too many operands NumPy says so, whatever the text is.
            check_count(operands)?;
            return Err(EinsumError::Operands { subscripts: terms, operands });
        }
        let place = SubPlace::Operand;
        let inputs = inputs.split(',').enumerate().map(|(at, term)| parse_term(term, place(at)));
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        let output = output.map(|term| parse_term(term, SubPlace::Output)).transpose()?;
        Subscripts::checked(inputs, output, false)
    }

    /// Subscripts from lists, one for each operand; without an output it is found as for a text without an arrow.
    ///
    /// # Errors
    /// As [`Subscripts::parse`].
    pub fn from_lists(operands: &[Vec<Sub>], output: Option<Vec<Sub>>) -> Result<Subscripts, EinsumError> {
        Subscripts::checked(operands.to_vec(), output, true)
    }

    fn checked(operands: Vec<Vec<Sub>>, output: Option<Vec<Sub>>, numbers: bool) -> Result<Subscripts, EinsumError> {
        check_count(operands.len())?;
        let mut counts = [0usize; LABELS as usize];
        for (at, term) in operands.iter().enumerate() {
            one_ellipsis(term, SubPlace::Operand(at))?;
            for sub in term {
                if let Sub::Label(label) = *sub {
                    *counts.get_mut(label as usize).ok_or(EinsumError::Number(label))? += 1;
                }
            }
        }
        let output = match output {
            Some(output) => output,
            None => {
                let once = (0..LABELS).filter(|label| counts[*label as usize] == 1);
                std::iter::once(Sub::Ellipsis).chain(once.map(Sub::Label)).collect()
            }
        };
        let subscripts = Subscripts { operands, output, numbers };
        one_ellipsis(&subscripts.output, SubPlace::Output)?;
        let mut seen = [false; LABELS as usize];
        for sub in &subscripts.output {
            let Sub::Label(label) = *sub else { continue };
            let name = subscripts.name(label);
            match (counts.get(label as usize), seen.get_mut(label as usize)) {
                (Some(0), _) => return Err(EinsumError::OutputUnknown(name)),
                (_, Some(true)) => return Err(EinsumError::OutputTwice(name)),
                (_, Some(seen)) => *seen = true,
                _ => return Err(EinsumError::Number(label)),
            }
        }
        Ok(subscripts)
    }

    /// The indices of each operand.
    pub fn operands(&self) -> &[Vec<Sub>] {
        &self.operands
    }

    /// The indices of the output.
    pub fn output(&self) -> &[Sub] {
        &self.output
    }

    /// What the user calls an index.
    pub fn name(&self, label: u32) -> IndexName {
        if self.numbers { IndexName::Number(label) } else { IndexName::Letter(letter(label)) }
    }
}

/// As a text, with an arrow.
impl fmt::Display for Subscripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |term: &Vec<Sub>| -> String {
            let sub = |sub: &Sub| match sub {
                Sub::Label(label) => letter(*label).to_string(),
                Sub::Ellipsis => "...".into(),
            };
            term.iter().map(sub).collect()
        };
        let has_ellipsis = self.operands.iter().flatten().any(|sub| *sub == Sub::Ellipsis);
        let output = self.output.iter().copied().filter(|sub| has_ellipsis || *sub != Sub::Ellipsis).collect();
        write!(f, "{}->{}", self.operands.iter().map(show).collect::<Vec<_>>().join(","), show(&output))
    }
}

/// The letter of an index.
pub(super) fn letter(label: u32) -> char {
    let base = if label < 26 { 'A' } else { 'a' };
    char::from_u32(base as u32 + label % 26).unwrap_or(base)
}

fn check_count(operands: usize) -> Result<(), EinsumError> {
    if (1..=MAX_OPERANDS).contains(&operands) { Ok(()) } else { Err(EinsumError::TooManyOperands(operands)) }
}

fn one_ellipsis(term: &[Sub], place: SubPlace) -> Result<(), EinsumError> {
    match term.iter().filter(|sub| **sub == Sub::Ellipsis).count() {
        0 | 1 => Ok(()),
        _ => Err(EinsumError::TwoEllipses(place)),
    }
}

/// Letters and at most one ellipsis; blanks between them mean nothing.
fn parse_term(text: &str, place: SubPlace) -> Result<Vec<Sub>, EinsumError> {
    let mut subs = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let sub = match first {
            ' ' => None,
            'A'..='Z' => Some(Sub::Label(first as u32 - 'A' as u32)),
            'a'..='z' => Some(Sub::Label(first as u32 - 'a' as u32 + 26)),
            '.' if rest.starts_with("...") => Some(Sub::Ellipsis),
            '.' => return Err(EinsumError::Dots(place)),
            found => return Err(EinsumError::Character { found, place }),
        };
        rest = &rest[if sub == Some(Sub::Ellipsis) { 3 } else { first.len_utf8() }..];
        subs.extend(sub);
    }
    Ok(subs)
}
