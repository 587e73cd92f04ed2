//! Pad types, the paper's abstraction of padding (ATL, Sec. 6.2), as people read them.
//!
//! `(k, l, p1, r, p2, c)`: the first k and the last c rows are padding, the l rows after the first have pad type p1, the
//! r rows before the last pad type p2. Amounts are expressions over sizes here. Where the outermost operator is a
//! concatenation, its two parts are l and r; else l is all that is not padding, and r nothing. Amounts are never too
//! large (Thm. 6.1), and 0 where nothing can be shown.

use std::fmt;

use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::Name;

use super::amounts::Rows;
use super::stores::{StoreWalker, Stores};
use super::{Side, assume_ranges, hint};
use crate::program::Program;
use crate::term::TermId;

/// The padding of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PadType {
    /// A scalar, and whether it is padding.
    Scalar(bool),
    /// A tensor.
    Tensor(Box<Outermost>),
}

/// The padding along the outermost dimension of a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outermost {
    /// Rows on the left that are padding: k.
    pub left: Ix,
    /// The rows after them, l, and their type, if there are any.
    pub first: Option<(Ix, PadType)>,
    /// The rows before the padding on the right, r, and their type, if there are any.
    pub last: Option<(Ix, PadType)>,
    /// Rows on the right that are padding: c.
    pub right: Ix,
}

impl PadType {
    /// Whether some row or element is shown to be padding.
    pub fn has_padding(&self) -> bool {
        let mut todo = vec![self];
        while let Some(ty) = todo.pop() {
            match ty {
                PadType::Scalar(true) => return true,
                PadType::Scalar(false) => {}
                PadType::Tensor(outermost) => {
                    let zero = Ix::from(0);
                    if outermost.left != zero || outermost.right != zero {
                        return true;
                    }
                    todo.extend([&outermost.first, &outermost.last].into_iter().flatten().map(|(_, ty)| ty));
                }
            }
        }
        false
    }
}

impl fmt::Display for PadType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PadType::Scalar(padding) => write!(f, "({padding})"),
            PadType::Tensor(outermost) => {
                let Outermost { left, first, last, right } = &**outermost;
                write!(f, "({left}, ")?;
                for part in [first, last] {
                    match part {
                        Some((rows, ty)) => write!(f, "{rows}, {ty}, ")?,
                        // The type of no rows says nothing.
                        None => write!(f, "0, _, ")?,
                    }
                }
                write!(f, "{right})")
            }
        }
    }
}

/// Proofs for one pad type.
const PROOFS: usize = 400;

/// The pad type of a closed term: one that a binding stands for.
pub fn pad_type(program: &Program, term: TermId) -> PadType {
    let shape = &program.terms.ty(term).shape;
    let mut walker = StoreWalker::new(program);
    let indices: Vec<Name> = (0..shape.len()).map(|at| walker.fresh(hint(at))).collect();
    let at: Vec<Ix> = indices.iter().map(|name| Ix::var(*name)).collect();
    let mut facts = program.terms.facts().clone();
    let known = assume_ranges(&mut facts, &indices, shape).ok().zip(walker.stores(term, &at, &mut |_| true).ok());
    // Too much to look at: nothing is known to be padding.
    let Some((ranges, stores)) = known else { return nothing_known(shape) };
    let mut infer = Infer { walker, term, shape, indices: &indices, at: &at, ranges, stores, proofs: PROOFS };
    infer.level(0, &facts).unwrap_or_else(|_| nothing_known(shape))
}

/// The type that says nothing.
fn nothing_known(shape: &[Ix]) -> PadType {
    shape.iter().rev().fold(PadType::Scalar(false), |inner, size| {
        let (left, right) = (Ix::from(0), Ix::from(0));
        PadType::Tensor(Box::new(Outermost { left, first: Some((size.clone(), inner)), last: None, right }))
    })
}

struct Infer<'a> {
    walker: StoreWalker<'a>,
    term: TermId,
    shape: &'a [Ix],
    indices: &'a [Name],
    at: &'a [Ix],
    ranges: Vec<(Name, Ix, Ix)>,
    stores: Stores,
    proofs: usize,
}

impl Infer<'_> {
    /// The type from a dimension on, where the facts hold. As deep as there are dimensions.
    fn level(&mut self, dimension: usize, facts: &Facts) -> Result<PadType, IxError> {
        let (Some(size), Some(&index)) = (self.shape.get(dimension), self.indices.get(dimension)) else {
            return Ok(PadType::Scalar(self.is_padding(facts)));
        };
        let rows = Rows { index, size, facts, ranges: &self.ranges };
        let left = rows.amount(&self.stores, Side::Left, &mut self.proofs);
        let zero = Ix::from(0);
        if left == *size && left != zero {
            return Ok(PadType::Tensor(Box::new(Outermost { left, first: None, last: None, right: zero })));
        }
        let right = rows.amount(&self.stores, Side::Right, &mut self.proofs);
        let end = size.sub(&right)?;
        let middle = match self.proofs {
            0 => None,
            _ => self.walker.head(self.term, &self.at[..dimension]).ok().flatten(),
        };
        let split = match &middle {
            Some(middle) => middle.max_with(&left)?.min_with(&end)?.simplified(facts)?,
            None => end.clone(),
        };
        let at = Ix::var(index);
        let mut part = |from: &Ix, to: &Ix| {
            let count = to.sub(from)?.max_with(&zero)?.simplified(facts)?;
            if count == zero {
                return Ok(None);
            }
            let mut facts = facts.clone();
            facts.assume(Cond::le(from, &at)?);
            facts.assume(Cond::lt(&at, to)?);
            Ok::<_, IxError>(Some((count, self.level(dimension + 1, &facts)?)))
        };
        let first = part(&left, &split)?;
        let last = if middle.is_some() { part(&split, &end)? } else { None };
        Ok(PadType::Tensor(Box::new(Outermost { left, first, last, right })))
    }

    /// Whether no store happens where the facts hold.
    fn is_padding(&mut self, facts: &Facts) -> bool {
        self.stores.list.iter().all(|store| {
            let Some(rest) = self.proofs.checked_sub(1) else { return false };
            self.proofs = rest;
            let mut facts = facts.clone();
            store.conds.iter().for_each(|cond| facts.assume(cond.clone()));
            matches!(facts.satisfiable(), Verdict::No(_))
        })
    }
}
