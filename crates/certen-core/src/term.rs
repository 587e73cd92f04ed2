//! Terms of Core: ATL's calculus with explicit ranges, hash-consed and typed as they are built.
//!
//! Terms live in an arena, [`Terms`]; a [`TermId`] is a place in it. Guarantees: a term's parts stand before it, so a
//! loop over the arena visits parts first and nothing recurses or drops deeply; equal terms are the same place; every
//! term has a [`TensorType`], and an ill-typed one cannot be built; a small power is a product (`power.rs`). That names
//! are in scope, which a loop over the arena cannot see, is for [`Program::check`](crate::Program::check) to check.

use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::Name;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::ops::{Binary, Literal, ReduceOp, Unary};
use crate::table::Table;
use crate::types::{ElemType, TensorType, TypeError};

/// A term's place in its [`Terms`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TermId(u32);

impl TermId {
    /// Where a part is still missing: no term of any arena.
    pub(crate) const HOLE: TermId = TermId(u32::MAX);

    /// The place as a number: parts have smaller ones.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The largest number of dimensions of a tensor: deeper nesting has no use, and each term stores its shape.
pub const MAX_RANK: usize = 64;

/// The half-open range of an index; empty if `hi <= lo`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// First value.
    pub lo: Ix,
    /// One past the last value.
    pub hi: Ix,
}

impl Range {
    /// `0..hi`
    pub fn to(hi: Ix) -> Range {
        Range { lo: Ix::from(0), hi }
    }

    /// How many values there are, where the facts hold: `hi - lo` if they show that this is not negative, else
    /// `max(0, hi - lo)`.
    ///
    /// # Errors
    /// If the expression does not fit in 64 bits.
    pub fn extent(&self, facts: &Facts) -> Result<Ix, IxError> {
        at_least_zero(self.hi.sub(&self.lo)?, facts)
    }
}

/// The expression if the facts show that it is not negative, else the larger of it and zero.
fn at_least_zero(size: Ix, facts: &Facts) -> Result<Ix, IxError> {
    match facts.prove(&Cond::le(&Ix::from(0), &size)?) {
        Verdict::Yes => Ok(size),
        _ => size.max_with(&Ix::from(0)),
    }
}

/// One state of an iteration: its name in the bodies, its first value, and its next value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Carried {
    /// What the bodies call it.
    pub name: Name,
    /// The value before the first step.
    pub init: TermId,
    /// The value after a step, from the values of all states before it.
    pub next: TermId,
}

/// A term of Core.
///
/// Index-level parts ([`Ix`], [`Cond`]) know only sizes and indices; data never becomes an index.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Term {
    /// A tensor by name: an input, an earlier binding, a `let` or an iteration's state.
    Ref(Name, TensorType),
    /// The tensor of the body's values for each index in a range; size 0 if the range is empty.
    Gen(Name, Range, TermId),
    /// The body's values over a range combined; indices where the condition is false are skipped.
    Reduce(ReduceOp, Name, Range, Cond, TermId),
    /// The body where the condition holds, else zero, as padding.
    Guard(Cond, TermId),
    /// One of two, lazily, by a condition on indices.
    If(Cond, TermId, TermId),
    /// A tensor named for use in the body.
    Let(Name, TermId, TermId),
    /// States carried through a number of steps, none if it is negative; the value is that of the state at a position.
    /// The name is the step's index, from 0, in the next values.
    Iterate(Ix, Name, Box<[Carried]>, usize),
    /// An element, or a slice if there are fewer indices than dimensions.
    Select(TermId, Box<[Ix]>),
    /// The two outermost dimensions as one.
    Flatten(TermId),
    /// The outermost dimension in blocks; the last block is padded with zeros.
    Split(i64, TermId),
    /// The two outermost dimensions exchanged.
    Transpose(TermId),
    /// One after the other along the outermost dimension.
    Concat(TermId, TermId),
    /// Zeros before the outermost dimension.
    PadLeft(Ix, TermId),
    /// Zeros after the outermost dimension.
    PadRight(Ix, TermId),
    /// The outermost dimension without its first elements.
    TruncLeft(Ix, TermId),
    /// The outermost dimension without its last elements.
    TruncRight(Ix, TermId),
    /// A constant.
    Literal(Literal, ElemType),
    /// A tensor of constants.
    Table(Table),
    /// An index used as data.
    Index(Ix, ElemType),
    /// The content of memory that nothing was written to.
    Undefined(ElemType),
    /// An operation on one scalar.
    Unary(Unary, TermId),
    /// An operation on two scalars.
    Binary(Binary, TermId, TermId),
    /// One of two scalars by a truth value; both are computed.
    Choose(TermId, TermId, TermId),
    /// `a * b + c` on floats, rounded once. No front end writes it: schedules do, where a program is allowed to differ
    /// from its own roundings.
    Fma(TermId, TermId, TermId),
    /// A scalar converted to another element type.
    Cast(ElemType, TermId),
}

impl Term {
    /// Whether it is one of ATL's reshape operators, which only move elements, add padding or cut it off.
    pub fn is_reshape(&self) -> bool {
        matches!(
            self,
            Term::Flatten(_)
                | Term::Split(..)
                | Term::Transpose(_)
                | Term::Concat(..)
                | Term::PadLeft(..)
                | Term::PadRight(..)
                | Term::TruncLeft(..)
                | Term::TruncRight(..)
        )
    }
}

/// An arena of terms.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    nodes: IndexSet<Term, FxBuildHasher>,
    types: Vec<TensorType>,
    facts: Facts,
}

impl Terms {
    /// Whether another arena is the beginning of this one: its terms have the same identities here.
    pub fn begins_with(&self, other: &Terms) -> bool {
        self.nodes.len() >= other.nodes.len() && self.nodes.iter().zip(&other.nodes).all(|(own, other)| own == other)
    }

    /// No terms. The facts, what is known about sizes, decide which shapes are equal.
    pub fn new(facts: Facts) -> Terms {
        Terms { facts, ..Terms::default() }
    }

    /// What is known about sizes.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// A term.
    pub fn get(&self, id: TermId) -> &Term {
        &self.nodes[id.index()]
    }

    /// A term's type.
    pub fn ty(&self, id: TermId) -> &TensorType {
        &self.types[id.index()]
    }

    /// The terms from a place on.
    pub(crate) fn since(&self, place: usize) -> impl Iterator<Item = &Term> {
        (place..self.nodes.len()).filter_map(|at| self.nodes.get_index(at))
    }

    /// Every term, parts first.
    pub fn iter(&self) -> impl Iterator<Item = (TermId, &Term)> {
        self.nodes.iter().enumerate().map(|(at, term)| (TermId(at as u32), term))
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a term, or finds the equal one that is there. A power with a small literal exponent is its product:
    /// see [`by_squaring`](crate::by_squaring).
    ///
    /// # Errors
    /// If the term is ill-typed: nothing is added.
    ///
    /// # Panics
    /// If a part is not of this arena.
    pub fn add(&mut self, term: Term) -> Result<TermId, TypeError> {
        if let Some(at) = self.nodes.get_index_of(&term) {
            return Ok(TermId(at as u32));
        }
        if let Some(product) = self.small_power(&term)? {
            return Ok(product);
        }
        let ty = self.type_of(&term)?;
        if ty.rank() > MAX_RANK {
            return Err(TypeError(format!("a tensor of {} dimensions; there can be {MAX_RANK}", ty.rank())));
        }
        let at = u32::try_from(self.nodes.len()).map_err(|_| TypeError("more than 2^32 terms".into()))?;
        self.nodes.insert(term);
        self.types.push(ty);
        Ok(TermId(at))
    }

    /// An arena of these terms alone, with everything in them, and where they are in it.
    pub fn extract(&self, roots: &[TermId]) -> (Terms, Vec<TermId>) {
        let mut order: Vec<TermId> = self.reachable(roots.iter().copied()).collect();
        order.sort_unstable();
        let mut extracted = Terms::new(self.facts.clone());
        let mut moved = FxHashMap::default();
        for id in order {
            moved.insert(id, TermId(extracted.nodes.len() as u32));
            extracted.nodes.insert(self.get(id).clone().with_parts(|part| moved[&part]));
            extracted.types.push(self.ty(id).clone());
        }
        let roots = roots.iter().map(|root| moved[root]).collect();
        (extracted, roots)
    }

    /// Adds a reference to a tensor.
    pub fn reference(&mut self, name: Name, ty: TensorType) -> Result<TermId, TypeError> {
        self.add(Term::Ref(name, ty))
    }

    /// Adds an element of a named tensor.
    pub fn element(&mut self, name: Name, ty: TensorType, indices: impl Into<Box<[Ix]>>) -> Result<TermId, TypeError> {
        let tensor = self.reference(name, ty)?;
        let indices = indices.into();
        if indices.is_empty() { Ok(tensor) } else { self.add(Term::Select(tensor, indices)) }
    }

    /// The type of a term whose parts are typed. The rules stand together, one arm for each construct.
    pub(crate) fn type_of(&self, term: &Term) -> Result<TensorType, TypeError> {
        let wrong = |text: String| Err(TypeError(text));
        let outermost = |id: TermId, what: &str, least: usize| {
            let ty = self.ty(id);
            if ty.rank() < least {
                return Err(TypeError(format!("{what} needs at least {least} dimensions, not {ty}")));
            }
            Ok(ty)
        };
        // The type with its first `old` sizes replaced.
        let resized = |ty: &TensorType, old: usize, new: &[Ix]| TensorType {
            elem: ty.elem,
            shape: new.iter().chain(&ty.shape[old..]).cloned().collect(),
        };
        let scalar = |id: TermId| match self.ty(id) {
            ty if ty.is_scalar() => Ok(ty.elem),
            ty => Err(TypeError(format!("a scalar operation on a tensor {ty}"))),
        };
        Ok(match term {
            Term::Ref(_, ty) => ty.clone(),
            Term::Gen(name, range, body) => {
                let inner = self.ty(*body);
                if inner.shape.iter().any(|size| size.mentions(*name)) {
                    return wrong(format!("the shape {inner} depends on the index {name}"));
                }
                resized(inner, 0, &[range.extent(&self.facts)?])
            }
            Term::Reduce(op, _, _, _, body) => {
                let ty = self.ty(*body);
                if op.combine().result(ty.elem) != Some(ty.elem) {
                    return wrong(format!("{} of elements of type {}", op.name(), ty.elem));
                }
                ty.clone()
            }
            Term::Guard(_, body) => self.ty(*body).clone(),
            Term::If(_, a, b) => self.same(*a, *b, "the branches of `if`")?,
            Term::Let(_, _, body) => self.ty(*body).clone(),
            Term::Iterate(_, _, states, at) => {
                for state in states {
                    self.same(state.init, state.next, "a state before and after a step")?;
                }
                let Some(state) = states.get(*at) else { return wrong("no such state".into()) };
                self.ty(state.init).clone()
            }
            Term::Select(tensor, indices) => {
                resized(outermost(*tensor, "selection", indices.len())?, indices.len(), &[])
            }
            Term::Flatten(a) => {
                let ty = outermost(*a, "flatten", 2)?;
                resized(ty, 2, &[ty.shape[0].mul(&ty.shape[1])?])
            }
            Term::Split(k, a) => {
                let ty = outermost(*a, "split", 1)?;
                resized(ty, 1, &[ty.shape[0].ceil_div(*k)?, Ix::from(*k)])
            }
            Term::Transpose(a) => {
                let ty = outermost(*a, "transpose", 2)?;
                resized(ty, 2, &[ty.shape[1].clone(), ty.shape[0].clone()])
            }
            Term::Concat(a, b) => {
                let (left, right) = (outermost(*a, "concat", 1)?, outermost(*b, "concat", 1)?);
                if left.elem != right.elem || !self.equal_shapes(&left.shape[1..], &right.shape[1..]) {
                    return wrong(format!("concat of {left} and {right}"));
                }
                resized(left, 1, &[left.shape[0].add(&right.shape[0])?])
            }
            Term::PadLeft(k, a) | Term::PadRight(k, a) => {
                let ty = outermost(*a, "pad", 1)?;
                self.amount(k)?;
                resized(ty, 1, &[ty.shape[0].add(k)?])
            }
            Term::TruncLeft(k, a) | Term::TruncRight(k, a) => {
                let ty = outermost(*a, "trunc", 1)?;
                self.amount(k)?;
                resized(ty, 1, &[at_least_zero(ty.shape[0].sub(k)?, &self.facts)?])
            }
            Term::Literal(literal, elem) if literal.fits(*elem) => TensorType::scalar(*elem),
            Term::Literal(literal, elem) => return wrong(format!("{literal:?} is no {elem}")),
            Term::Table(table) => table.ty().clone(),
            Term::Index(_, elem) if elem.has_arithmetic() => TensorType::scalar(*elem),
            Term::Index(_, elem) => return wrong(format!("an index is no {elem}")),
            Term::Undefined(elem) => TensorType::scalar(*elem),
            Term::Unary(op, a) => {
                let elem = scalar(*a)?;
                match op.result(elem) {
                    Some(result) => TensorType::scalar(result),
                    None => return wrong(format!("{} of {elem}", op.name())),
                }
            }
            Term::Binary(op, a, b) => {
                let (left, right) = (scalar(*a)?, scalar(*b)?);
                match op.result(left) {
                    Some(result) if left == right => TensorType::scalar(result),
                    _ => return wrong(format!("{} of {left} and {right}", op.name())),
                }
            }
            Term::Choose(cond, a, b) => {
                let (cond, left, right) = (scalar(*cond)?, scalar(*a)?, scalar(*b)?);
                if cond != ElemType::Bool || left != right {
                    return wrong(format!("a choice by {cond} between {left} and {right}"));
                }
                TensorType::scalar(left)
            }
            Term::Fma(a, b, c) => {
                let (a, b, c) = (scalar(*a)?, scalar(*b)?, scalar(*c)?);
                if !a.is_float() || a != b || b != c {
                    return wrong(format!("fma of {a}, {b} and {c}"));
                }
                TensorType::scalar(a)
            }
            Term::Cast(elem, a) => {
                scalar(*a)?;
                TensorType::scalar(*elem)
            }
        })
    }

    /// What is padded or cut off is not negative.
    fn amount(&self, k: &Ix) -> Result<(), TypeError> {
        match self.facts.prove(&Cond::le(&Ix::from(0), k)?) {
            Verdict::No(sizes) if sizes.0.is_empty() => Err(TypeError(format!("the amount {k} is negative"))),
            Verdict::No(sizes) => Err(TypeError(format!("the amount {k} can be negative, for example where {sizes}"))),
            Verdict::Yes | Verdict::Unknown => Ok(()),
        }
    }

    fn same(&self, a: TermId, b: TermId, what: &str) -> Result<TensorType, TypeError> {
        let (left, right) = (self.ty(a), self.ty(b));
        if left.elem != right.elem || !self.equal_shapes(&left.shape, &right.shape) {
            return Err(TypeError(format!("{what} have different types: {left} and {right}")));
        }
        Ok(left.clone())
    }

    fn equal_shapes(&self, a: &[Ix], b: &[Ix]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.facts.prove_equal(a, b) == Verdict::Yes)
    }
}
