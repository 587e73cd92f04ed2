//! Compute order and storage order as the user wrote them (Liu et al., *A Verified Compiler for a Functional Tensor
//! Language*, Sec. 2).
//!
//! In ATL generations become loops in the order in which they stand, and operators that move elements only change where
//! elements are stored: `flatten({ [io] -> transpose(flatten({ [jo, ji, ii] -> e })) })` computes tile after tile and
//! stores a matrix. Pulling the elements of such a tensor would leave one loop for each of its dimensions. So where a
//! whole tensor is wanted, what is around an operator that moves elements stays around it: comprehensions, conditions,
//! guards, and sums of tensors. What has no such operator inside, [`Build::tensor`] pulls.
//!
//! Needs and guarantees: as [`Build::tensor`]. Where Core cannot see that shapes agree, which may need the conditions
//! around, nothing is made and the caller pulls.

use certen_core::{Range, ReduceOp, Term, TermId};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::Name;

use super::scopes::Frame;
use super::{Activation, Build, Built, Denoted, bad_index};
use crate::typed::{Expr, Kind, With};

/// Loops that are open, outermost first.
type Loops = Vec<(Name, Range)>;

impl<'a> Build<'a> {
    /// Core's term for a whole tensor with an order of its own; nothing for what is to be pulled.
    pub(super) fn structured(&mut self, expr: &'a Expr, act: Activation) -> Built<Option<TermId>> {
        if !self.has_order(expr) {
            return Ok(None);
        }
        let span = expr.span;
        match &expr.kind {
            Kind::With(with) => self.generated(with, expr, act),
            Kind::Reduce(op, axes, a) => match &a.kind {
                Kind::With(with) if axes.len() == with.frame.len() => self.summed(*op, with, a, act),
                _ => Ok(None),
            },
            Kind::Guard(cond, a) => {
                let cond = self.cond(act, cond, span)?;
                self.open(Frame::branch(&cond));
                let body = self.inner(a, act)?;
                let body = self.close(body, span)?;
                Ok(Some(self.under(&cond, body, span)?))
            }
            Kind::If(cond, a, b) => {
                let cond = self.cond(act, cond, span)?;
                let other = cond.not().map_err(bad_index(span))?;
                self.open(Frame::branch(&cond));
                let then = self.inner(a, act)?;
                let then = self.close(then, span)?;
                self.open(Frame::branch(&other));
                let otherwise = self.inner(b, act)?;
                let otherwise = self.close(otherwise, span)?;
                Ok(match (cond.is_always(), cond.is_never()) {
                    (true, _) => Some(then),
                    (_, true) => Some(otherwise),
                    _ => self.terms.add(Term::If(cond, then, otherwise)).ok(),
                })
            }
            _ => Ok(None),
        }
    }

    /// A whole tensor that stands inside another, stored further out if it would be computed several times.
    pub(super) fn inner(&mut self, expr: &'a Expr, act: Activation) -> Built<TermId> {
        match self.placement(expr, act, &[]) {
            Some(placement) => {
                let (name, ty) = self.store(expr, act, Name::new("v"), placement)?;
                self.add(Term::Ref(name, ty), expr.span)
            }
            None => self.tensor(expr, act),
        }
    }

    /// A comprehension of tensors: generations over its frame around a cell.
    fn generated(&mut self, with: &'a With, expr: &'a Expr, act: Activation) -> Built<Option<TermId>> {
        let Some((loops, cell)) = self.cell(with, expr, act)? else { return Ok(None) };
        let mut term = Some(cell);
        for (index, range) in loops.into_iter().rev() {
            // A shape that depends on the index is refused, but the scopes must still be closed.
            let closed = self.close(term.unwrap_or(cell), expr.span)?;
            term = term.and_then(|_| self.terms.add(Term::Gen(index, range, closed)).ok());
        }
        let shape = self.frame_shape(expr, act)?;
        Ok(term.filter(|&term| {
            let found = &self.terms.ty(term).shape;
            found.iter().zip(&shape).all(|(a, b)| a == b || self.terms.facts().prove_equal(a, b) == Verdict::Yes)
        }))
    }

    /// A sum of tensors, which adds one after the other to what is stored.
    fn summed(&mut self, op: ReduceOp, with: &'a With, operand: &'a Expr, act: Activation) -> Built<Option<TermId>> {
        let span = operand.span;
        let Some((loops, mut term)) = self.cell(with, operand, act)? else { return Ok(None) };
        for (index, range) in loops.into_iter().rev() {
            term = self.close(term, span)?;
            term = self.add(Term::Reduce(op, index, range, Cond::always(), term), span)?;
        }
        Ok(Some(term))
    }

    /// The cell of a comprehension inside the loops over its frame, which are left open; nothing if its generator does
    /// not cover the frame.
    fn cell(&mut self, with: &'a With, expr: &'a Expr, act: Activation) -> Built<Option<(Loops, TermId)>> {
        let span = expr.span;
        let [generator] = with.generators.as_slice() else { return Ok(None) };
        let mut ranges = Vec::new();
        for (size, (_, range)) in with.frame.iter().zip(&generator.indices) {
            let (whole, own) = (Range::to(self.ix(act, size, span)?), self.range(act, range, span)?);
            let covers = Cond::le(&own.lo, &whole.lo).and_then(|lo| Ok(lo.and(Cond::le(&whole.hi, &own.hi)?)));
            if !self.unknown_part(covers.map_err(bad_index(span))?).is_always() {
                return Ok(None);
            }
            ranges.push(whole);
        }
        let mut loops = Vec::new();
        for ((name, _), range) in generator.indices.iter().zip(ranges) {
            loops.push((self.open_loop(Some(*name), &range, false, span)?, range));
        }
        let indices: Vec<Ix> = loops.iter().map(|(name, _)| Ix::var(*name)).collect();
        let (_, any) = self.membership(generator, act, &indices, span)?;
        self.open(Frame::generator(&Cond::always(), any));
        let mut before = Vec::new();
        for ((name, _), ix) in generator.indices.iter().zip(&indices) {
            before.push(self.mean_for_now(act, *name, Denoted::Index(ix.clone())));
        }
        let cell = self.inner(&generator.body, act)?;
        let cell = self.close(cell, span)?;
        self.restore(before.into_iter());
        Ok(Some((loops, cell)))
    }

    /// Whether an expression has an order that pulling would lose, found once for each: it moves elements, or adds up
    /// tensors, itself or in what stays around them.
    pub(super) fn has_order(&mut self, expr: &'a Expr) -> bool {
        if expr.ty.is_scalar() {
            return false;
        }
        if let Some(&known) = self.ordered.get(&std::ptr::from_ref(expr)) {
            return known;
        }
        let found = match &expr.kind {
            Kind::Flatten(_)
            | Kind::Split(..)
            | Kind::Transpose(_)
            | Kind::Concat(..)
            | Kind::Pad(..)
            | Kind::Trunc(..) => true,
            Kind::With(with) => match with.generators.as_slice() {
                [generator] => self.has_order(&generator.body),
                _ => false,
            },
            Kind::Reduce(ReduceOp::Sum, axes, a) => match &a.kind {
                Kind::With(with) => {
                    with.generators.len() == 1
                        && axes.iter().enumerate().all(|(at, &axis)| at == axis)
                        && axes.len() == with.frame.len()
                }
                _ => false,
            },
            Kind::Guard(_, a) => self.has_order(a),
            Kind::If(_, a, b) => self.has_order(a) || self.has_order(b),
            Kind::Block(block) => matches!(block.results.as_slice(), [result] if self.has_order(result)),
            Kind::Call(call) => match self.program.functions.get(call.function) {
                Some(callee) => matches!(callee.body.results.as_slice(), [result] if self.has_order(result)),
                None => false,
            },
            _ => false,
        };
        self.ordered.insert(expr, found);
        found
    }
}
