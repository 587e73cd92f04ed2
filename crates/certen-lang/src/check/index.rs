//! The index level: integers made of sizes and indices, vectors of them, and conditions on them.
//!
//! It is evaluated while a function is checked: ranks are known, so every vector has a known length, and what is left
//! is symbolic arithmetic ([`Ix`]). An index-level `if` has no [`Ix`]; it is kept as [`Index::Case`] and *lifted* to
//! the data that it is used in: `x[if c { a } else { b }]` is `if c { x[a] } else { x[b] }`, so that each access is
//! checked where its condition holds.

use std::rc::Rc;

use certen_index::{Cond, Facts, Ix, IxError, KnownOrder, Verdict};

/// More cases of one index are refused: sums of indices that come in cases multiply them.
const MAX_CASES: usize = 64;

/// Minima and maxima of expressions that take more letters are refused: nested ones double with every level.
const MAX_LENGTH: usize = 1000;

/// An integer of the index level.
#[derive(Clone, Debug)]
pub(super) enum Index {
    /// An expression.
    Is(Ix),
    /// One of two, by a condition.
    Case(Rc<(Cond, Index, Index)>),
}

impl From<Ix> for Index {
    fn from(ix: Ix) -> Index {
        Index::Is(ix)
    }
}

impl Index {
    /// One of two by a condition, or the one that is certain.
    pub fn case(cond: Cond, then: Index, otherwise: Index) -> Index {
        match (&then, &otherwise) {
            _ if cond.is_always() => then,
            _ if cond.is_never() => otherwise,
            (Index::Is(a), Index::Is(b)) if a == b => then,
            _ => Index::Case(Rc::new((cond, then, otherwise))),
        }
    }

    /// One of two by a condition, if there are not too many cases in all.
    pub fn one_of(cond: Cond, then: Index, otherwise: Index) -> Result<Index, IxError> {
        let index = Index::case(cond, then, otherwise);
        if index.cases() > MAX_CASES { Err(IxError::TooComplex) } else { Ok(index) }
    }

    /// The expression, if there is no case in it.
    pub fn plain(&self) -> Option<&Ix> {
        match self {
            Index::Is(ix) => Some(ix),
            Index::Case(_) => None,
        }
    }

    /// The number, if it is one.
    pub fn constant(&self) -> Option<i64> {
        self.plain().and_then(Ix::as_constant)
    }

    /// Applied in every case.
    pub fn map(&self, f: &dyn Fn(&Ix) -> Result<Ix, IxError>) -> Result<Index, IxError> {
        Ok(match self {
            Index::Is(ix) => Index::Is(f(ix)?),
            Index::Case(case) => Index::case(case.0.clone(), case.1.map(f)?, case.2.map(f)?),
        })
    }

    /// In how many cases it comes.
    fn cases(&self) -> usize {
        match self {
            Index::Is(_) => 1,
            Index::Case(case) => case.1.cases() + case.2.cases(),
        }
    }

    /// Applied in every pair of cases.
    pub fn zip(&self, other: &Index, f: &dyn Fn(&Ix, &Ix) -> Result<Ix, IxError>) -> Result<Index, IxError> {
        if self.cases().saturating_mul(other.cases()) > MAX_CASES {
            return Err(IxError::TooComplex);
        }
        Ok(match (self, other) {
            (Index::Is(a), Index::Is(b)) => Index::Is(f(a, b)?),
            (Index::Case(case), _) => Index::case(case.0.clone(), case.1.zip(other, f)?, case.2.zip(other, f)?),
            (_, Index::Case(case)) => Index::case(case.0.clone(), self.zip(&case.1, f)?, self.zip(&case.2, f)?),
        })
    }

    /// A condition on two, in every pair of cases.
    pub fn compare(&self, other: &Index, f: &dyn Fn(&Ix, &Ix) -> Result<Cond, IxError>) -> Result<Cond, IxError> {
        if self.cases().saturating_mul(other.cases()) > MAX_CASES {
            return Err(IxError::TooComplex);
        }
        let either = |cond: &Cond, then: Cond, otherwise: Cond| -> Result<Cond, IxError> {
            Ok(cond.clone().and(then).or(cond.not()?.and(otherwise)))
        };
        match (self, other) {
            (Index::Is(a), Index::Is(b)) => f(a, b),
            (Index::Case(case), _) => either(&case.0, case.1.compare(other, f)?, case.2.compare(other, f)?),
            (_, Index::Case(case)) => either(&case.0, self.compare(&case.1, f)?, self.compare(&case.2, f)?),
        }
    }
}

fn short(a: &Ix, b: &Ix) -> Result<(), IxError> {
    let length = a.to_string().len() + b.to_string().len();
    if length > MAX_LENGTH { Err(IxError::TooComplex) } else { Ok(()) }
}

/// The smaller of two, or their minimum where neither is always the smaller.
pub(super) fn smaller(facts: &Facts, a: &Ix, b: &Ix) -> Result<Ix, IxError> {
    short(a, b)?;
    match facts.compare(a, b) {
        KnownOrder::Equal if nowhere(facts, a, b) => a.min_with(b),
        KnownOrder::Equal | KnownOrder::AtMost => Ok(a.clone()),
        KnownOrder::AtLeast => Ok(b.clone()),
        KnownOrder::Depends(..) | KnownOrder::Unknown => a.min_with(b),
    }
}

/// The larger of two, or their maximum where neither is always the larger.
pub(super) fn larger(facts: &Facts, a: &Ix, b: &Ix) -> Result<Ix, IxError> {
    short(a, b)?;
    match facts.compare(a, b) {
        KnownOrder::Equal if nowhere(facts, a, b) => a.max_with(b),
        KnownOrder::Equal | KnownOrder::AtLeast => Ok(a.clone()),
        KnownOrder::AtMost => Ok(b.clone()),
        KnownOrder::Depends(..) | KnownOrder::Unknown => a.max_with(b),
    }
}

/// Whether two expressions are equal only because nothing satisfies the facts, as in a partition that earlier ones
/// cover: what is written there stays, so that it can be read again where less is known.
fn nowhere(facts: &Facts, a: &Ix, b: &Ix) -> bool {
    a != b && matches!(facts.satisfiable(), Verdict::No(_))
}

/// A size: the expression where it is known not to be negative, else the larger of it and zero.
pub(super) fn extent(facts: &Facts, lower: &Ix, upper: &Ix) -> Result<Ix, IxError> {
    let size = upper.sub(lower)?;
    match facts.prove(&Cond::le(&Ix::from(0), &size)?) {
        Verdict::Yes => Ok(size),
        _ => size.max_with(&Ix::from(0)),
    }
}

/// `i >= lower && i < upper`
pub(super) fn within(i: &Ix, lower: &Ix, upper: &Ix) -> Result<Cond, IxError> {
    Ok(Cond::le(lower, i)?.and(Cond::lt(i, upper)?))
}

/// The coefficient of a variable, if the expression is affine in it, and the expression without it.
pub(super) fn affine(e: &Ix, name: certen_syntax::Name) -> Option<(i64, Ix)> {
    let next = Ix::var(name).add(&Ix::from(1)).ok()?;
    let stepped = e.substitute(&|n| (n == name).then(|| next.clone())).ok()?;
    let coefficient = stepped.sub(e).ok()?.as_constant()?;
    let rest = e.substitute(&|n| (n == name).then(|| Ix::from(0))).ok()?;
    Some((coefficient, rest))
}
