//! Reshape operators, read from the side of the type that they are to give.

use arbitrary::Result;
use certen_core::{TensorType, Term, TermId};
use certen_index::Ix;

use super::index::{le, minus, ok, plus, zero};
use super::{Generator, Truncations};

/// A type with its first sizes replaced.
pub(super) fn resized(ty: &TensorType, old: usize, new: &[Ix]) -> TensorType {
    TensorType::new(ty.elem, new.iter().chain(&ty.shape[old..]).cloned().collect::<Vec<_>>())
}

impl Generator<'_, '_> {
    pub(super) fn reshape(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let size = ty.shape[0].clone();
        let term = match self.u.int_in_range(0..=15)? {
            0 | 1 if ty.rank() >= 2 => Term::Transpose(self.term(&resized(ty, 2, &[ty.shape[1].clone(), size]), part)?),
            2 | 3 => match self.split(ty, part)? {
                Some(term) => term,
                None => return self.flatten(ty, part),
            },
            4 | 5 => {
                let (amount, less) = self.amount(&size)?;
                let body = self.term(&resized(ty, 1, &[less]), part)?;
                if self.chance(2)? { Term::PadLeft(amount, body) } else { Term::PadRight(amount, body) }
            }
            6 | 7 => {
                let (amount, less) = self.amount(&size)?;
                let front = self.term(&resized(ty, 1, &[amount]), part)?;
                let back = self.term(&resized(ty, 1, &[less]), part)?;
                if self.chance(2)? { Term::Concat(front, back) } else { Term::Concat(back, front) }
            }
            8 if self.truncations == Truncations::Any => {
                let amount = Ix::from(self.u.int_in_range(0..=2)?);
                let body = self.term(&resized(ty, 1, &[plus(&size, &amount)]), part)?;
                if self.chance(2)? { Term::TruncLeft(amount, body) } else { Term::TruncRight(amount, body) }
            }
            8..=12 => return self.truncation(ty, part),
            _ => return self.flatten(ty, part),
        };
        Ok(self.reshaped(term, ty))
    }

    /// Adds a term that was built to have a type. Sizes are known up to what the facts say, so that this is not a matter
    /// of course.
    pub(super) fn reshaped(&mut self, term: Term, ty: &TensorType) -> TermId {
        let term = self.add(term);
        assert_eq!(self.terms.ty(term), ty, "the type that was wanted");
        term
    }

    /// An amount that a size has room for, and what is left of the size.
    fn amount(&mut self, size: &Ix) -> Result<(Ix, Ix)> {
        let amount = match self.u.int_in_range(0..=4)? {
            0 => Ix::var("q"),
            1 => Ix::var("m"),
            _ => Ix::from(self.u.int_in_range(0..=2)?),
        };
        let less = minus(size, &amount);
        if self.holds(&le(&zero(), &less)) { Ok((amount, less)) } else { Ok((zero(), size.clone())) }
    }

    /// Blocks of the second size, which must be a literal; the last one may be padded.
    fn split(&mut self, ty: &TensorType, part: usize) -> Result<Option<Term>> {
        let Some(k @ 1..) = ty.shape.get(1).and_then(Ix::as_constant) else { return Ok(None) };
        let full = ok(ty.shape[0].scale(k));
        // A size that is a rounded quotient is split where it came from, as often as not.
        let mut inner = full.clone();
        let candidates = [Ix::var("n"), minus(&full, &Ix::from(1)), minus(&full, &Ix::from(k - 1))];
        let start = self.u.choose_index(candidates.len())?;
        for candidate in candidates.iter().cycle().skip(start).take(candidates.len()) {
            if ok(candidate.ceil_div(k)) == ty.shape[0] && self.holds(&le(&zero(), candidate)) && self.chance(2)? {
                inner = candidate.clone();
            }
        }
        Ok(Some(Term::Split(k, self.term(&resized(ty, 2, &[inner]), part)?)))
    }

    fn flatten(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let size = ty.shape[0].clone();
        let (m, n) = (Ix::var("m"), Ix::var("n"));
        let mut factors = vec![[size.clone(), Ix::from(1)], [Ix::from(1), size.clone()]];
        if size == ok(m.mul(&n)) {
            factors.extend([[m.clone(), n.clone()], [n, m]]);
        }
        for k in 2..=3 {
            let other = ok(size.floor_div(k));
            if ok(other.scale(k)) == size {
                factors.extend([[Ix::from(k), other.clone()], [other, Ix::from(k)]]);
            }
        }
        let at = if self.chance(4)? { self.u.choose_index(2)? } else { factors.len() - 1 - self.u.choose_index(2)? };
        let inner = self.term(&resized(ty, 1, &factors[at]), part)?;
        Ok(self.reshaped(Term::Flatten(inner), ty))
    }
}
