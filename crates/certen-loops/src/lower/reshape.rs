//! Reshape operators and conditions: which part of which tensor an element is.
//!
//! An element of a reshaped tensor is an element of the tensor itself at other indices (ATL's reshape operators, read
//! from the side of the result). Where two tensors meet, or a tensor and its padding, a condition on the index says which
//! of them it is; accesses stay under that condition, which shows that they are in bounds.

use certen_core::{Term, TermId};
use certen_index::{Cond, Ix};

use super::{Choice, Env, Lowered, Lowering, bad_index};

impl Lowering<'_> {
    /// Takes a reshape operator off a term, if it does not choose and there are indices enough to say what is read.
    pub(super) fn reshaped(&self, term: TermId, env: Env, indices: &mut Vec<Ix>) -> Lowered<Option<TermId>> {
        let inner = match (self.term(term), indices.as_mut_slice()) {
            (Term::Transpose(a), [i, j, ..]) => {
                std::mem::swap(i, j);
                a
            }
            (Term::TruncLeft(k, a), [i, ..]) => {
                *i = i.add(&self.ix(env, k)?).map_err(bad_index)?;
                a
            }
            (Term::TruncRight(_, a), [_, ..]) => a,
            (Term::Flatten(a), [i, ..]) => {
                // Only a size that is a number can be divided by; others are stored as a whole.
                let size = self.ix(env, &self.program.terms.ty(*a).shape[1])?;
                let Some(size) = size.as_constant().filter(|size| *size > 0) else { return Ok(None) };
                let (outer, inner) = (i.floor_div(size).map_err(bad_index)?, i.modulo(size).map_err(bad_index)?);
                indices.splice(0..1, [outer, inner]);
                a
            }
            _ => return Ok(None),
        };
        Ok(Some(*inner))
    }

    /// The condition and branches of a term that chooses, if there are indices enough to say which.
    pub(super) fn branches(&self, term: TermId, env: Env, indices: &[Ix]) -> Lowered<Option<Choice>> {
        let outer_size = |of: &TermId| self.ix(env, &self.program.terms.ty(*of).shape[0]);
        let with = |first: Ix, rest: &[Ix]| -> Vec<Ix> { [&[first], rest].concat() };
        let all = || indices.to_vec();
        let (cond, then, otherwise) = match (self.term(term), indices) {
            (Term::Guard(cond, body), _) => (self.cond(env, cond)?, (*body, all()), None),
            (Term::If(cond, then, otherwise), _) => (self.cond(env, cond)?, (*then, all()), Some((*otherwise, all()))),
            (Term::PadLeft(k, a), [i, rest @ ..]) => {
                let k = self.ix(env, k)?;
                let inside = i.sub(&k).map_err(bad_index)?;
                (Cond::le(&k, i).map_err(bad_index)?, (*a, with(inside, rest)), None)
            }
            (Term::PadRight(_, a), [i, ..]) => (Cond::lt(i, &outer_size(a)?).map_err(bad_index)?, (*a, all()), None),
            (Term::Concat(a, b), [i, rest @ ..]) => {
                let left = outer_size(a)?;
                let behind = i.sub(&left).map_err(bad_index)?;
                (Cond::lt(i, &left).map_err(bad_index)?, (*a, all()), Some((*b, with(behind, rest))))
            }
            (Term::Split(k, a), [i, j, rest @ ..]) => {
                let at = i.scale(*k).and_then(|block| block.add(j)).map_err(bad_index)?;
                (Cond::lt(&at, &outer_size(a)?).map_err(bad_index)?, (*a, with(at, rest)), None)
            }
            _ => return Ok(None),
        };
        Ok(Some(Choice { cond, then, otherwise }))
    }
}
