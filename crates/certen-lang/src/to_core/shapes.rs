//! Operators that move elements: flatten, split, transpose, concatenation, padding, truncation, reshape.
//!
//! A whole tensor that one of them makes is Core's own term, which the optimiser has laws for. An element of it is an
//! element of its operand at other indices. Where that index would be a quotient by a size that is not a number, which
//! the index level does not have, it is selected from Core's term.

use certen_core::{Term, TermId};
use certen_index::{Cond, Ix};
use certen_syntax::Span;

use super::scopes::Frame;
use super::{Activation, Build, Built, bad_index, ill_formed};
use crate::typed::{Expr, Kind, Side};

impl<'a> Build<'a> {
    /// Core's term for a whole tensor that an operator moves; nothing for other expressions, and where Core cannot see
    /// that the operator fits.
    pub(super) fn reshaped(&mut self, expr: &'a Expr, act: Activation) -> Built<Option<TermId>> {
        let span = expr.span;
        let term = match &expr.kind {
            Kind::Flatten(a) => Term::Flatten(self.inner(a, act)?),
            Kind::Split(k, a) => Term::Split(*k, self.inner(a, act)?),
            Kind::Transpose(a) => Term::Transpose(self.inner(a, act)?),
            Kind::Concat(a, b) => {
                let a = self.inner(a, act)?;
                Term::Concat(a, self.inner(b, act)?)
            }
            Kind::Pad(side, k, a) => {
                let k = self.ix(act, k, span)?;
                let a = self.inner(a, act)?;
                if *side == Side::Left { Term::PadLeft(k, a) } else { Term::PadRight(k, a) }
            }
            Kind::Trunc(side, k, a) => return self.truncated(*side, k, a, act, span).map(Some),
            _ => return Ok(None),
        };
        let made = self.terms.add(term).ok();
        if let Some(id) = made {
            self.places.note(&self.terms, id, span);
        }
        Ok(made)
    }

    /// Core's term for a truncation, which has to stay one: what it cuts is judged there. The checker has shown that
    /// the amount is not negative, by conditions that Core does not see.
    fn truncated(&mut self, side: Side, k: &Ix, a: &'a Expr, act: Activation, span: Span) -> Built<TermId> {
        let k = self.ix(act, k, span)?;
        let a = self.inner(a, act)?;
        let make = |k| if side == Side::Left { Term::TruncLeft(k, a) } else { Term::TruncRight(k, a) };
        match self.terms.add(make(k.clone())) {
            Ok(id) => {
                self.places.note(&self.terms, id, span);
                Ok(id)
            }
            Err(_) => self.add(make(k.max_with(&Ix::from(0)).map_err(bad_index(span))?), span),
        }
    }

    /// The element of a tensor that an operator moves.
    pub(super) fn moved(&mut self, expr: &'a Expr, act: Activation, indices: &[Ix]) -> Built<TermId> {
        let span = expr.span;
        let bad = bad_index(span);
        let outer = |build: &Self, e: &Expr| match e.ty.shape.first() {
            Some(size) => build.ix(act, size, span),
            None => Err(ill_formed(span, "a scalar has no outermost dimension")),
        };
        let first = indices.first().ok_or_else(|| ill_formed(span, "a scalar has no outermost dimension"))?;
        let shifted = |first: Ix, gone: usize| [first].into_iter().chain(indices[gone..].iter().cloned()).collect();
        match &expr.kind {
            Kind::Transpose(a) => {
                let mut swapped = indices.to_vec();
                if swapped.len() > 1 {
                    swapped.swap(0, 1);
                }
                self.element(a, act, &swapped)
            }
            Kind::Concat(a, b) => {
                let size = outer(self, a)?;
                let left = Cond::lt(first, &size).map_err(&bad)?;
                let right = left.not().map_err(&bad)?;
                let behind: Vec<Ix> = shifted(first.sub(&size).map_err(&bad)?, 1);
                let left_only = if self.is_known(&left) { Cond::always() } else { left.clone() };
                self.either(
                    &left_only,
                    (Frame::part(&left), Frame::part(&right)),
                    |build| build.element(a, act, indices),
                    |build| build.element(b, act, &behind),
                    span,
                )
            }
            Kind::Pad(side, k, a) => {
                let k = self.ix(act, k, span)?;
                let (inside, from) = match side {
                    Side::Left => (Cond::le(&k, first).map_err(&bad)?, first.sub(&k).map_err(&bad)?),
                    Side::Right => (Cond::lt(first, &outer(self, a)?).map_err(&bad)?, first.clone()),
                };
                let from: Vec<Ix> = shifted(from, 1);
                self.inside(inside, a, act, &from, span)
            }
            Kind::Trunc(side, k, a) => {
                let tensor = self.truncated(*side, k, a, act, span)?;
                self.add(Term::Select(tensor, indices.into()), span)
            }
            Kind::Split(k, a) => {
                let second = indices.get(1).ok_or_else(|| ill_formed(span, "a split without blocks"))?;
                let at = first.scale(*k).and_then(|block| block.add(second)).map_err(&bad)?;
                let inside = Cond::lt(&at, &outer(self, a)?).map_err(&bad)?;
                let from: Vec<Ix> = shifted(at, 2);
                self.inside(inside, a, act, &from, span)
            }
            Kind::Flatten(a) => {
                let inner = a.ty.shape.get(1).ok_or_else(|| ill_formed(span, "flatten of too few dimensions"))?;
                match self.ix(act, inner, span)?.as_constant() {
                    Some(inner) if inner > 0 => {
                        let block = first.floor_div(inner).map_err(&bad)?;
                        let place = first.modulo(inner).map_err(&bad)?;
                        let from: Vec<Ix> = [block, place].into_iter().chain(indices[1..].iter().cloned()).collect();
                        self.element(a, act, &from)
                    }
                    _ => {
                        let stored = self.whole(a, act)?;
                        let flat = self.add(Term::Flatten(stored), span)?;
                        self.add(Term::Select(flat, indices.into()), span)
                    }
                }
            }
            Kind::Reshape(a) => self.reshape(a, expr, act, indices),
            _ => Err(ill_formed(span, "not an operator that moves elements")),
        }
    }

    /// An element where a condition holds, else zero, as padding.
    fn inside(&mut self, cond: Cond, a: &'a Expr, act: Activation, from: &[Ix], span: Span) -> Built<TermId> {
        let cond = self.unknown_part(cond);
        self.open(Frame::part(&cond));
        let element = self.element(a, act, from)?;
        let element = self.close(element, span)?;
        self.under(&cond, element, span)
    }

    /// A reference to a whole tensor.
    fn whole(&mut self, expr: &'a Expr, act: Activation) -> Built<TermId> {
        let survey = self.survey(expr, act);
        let (name, ty) = self.store(expr, act, "v".into(), self.outwards(survey))?;
        self.add(Term::Ref(name, ty), expr.span)
    }

    /// `reshape`: outer and inner dimensions that stay as they are keep their indices. What is between is counted row
    /// by row; the source is indexed by quotients and remainders, if its sizes are numbers, and else flattened.
    fn reshape(&mut self, a: &'a Expr, expr: &'a Expr, act: Activation, indices: &[Ix]) -> Built<TermId> {
        let span = expr.span;
        let bad = bad_index(span);
        let (from, to) = (self.shape(act, a)?, self.shape(act, expr)?);
        let front = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
        let most = from.len().min(to.len()) - front;
        let back = from.iter().rev().zip(to.iter().rev()).take(most).take_while(|(a, b)| a == b).count();
        let (source, target) = (&from[front..from.len() - back], &to[front..to.len() - back]);
        let mut linear = Ix::from(0);
        for (size, ix) in target.iter().zip(&indices[front..]) {
            linear = linear.mul(size).and_then(|rows| rows.add(ix)).map_err(&bad)?;
        }
        let inner: Option<Vec<i64>> = source.iter().skip(1).map(Ix::as_constant).collect();
        let mut own = Vec::new();
        if let Some(inner) = inner.filter(|inner| inner.iter().all(|&size| size > 0)) {
            for size in inner.into_iter().rev() {
                own.push(linear.modulo(size).map_err(&bad)?);
                linear = linear.floor_div(size).map_err(&bad)?;
            }
            if !source.is_empty() {
                own.push(linear);
            }
            own.reverse();
            let all = indices[..front].iter().chain(&own).chain(&indices[to.len() - back..]).cloned();
            let all: Vec<Ix> = all.collect();
            return self.element(a, act, &all);
        }
        let mut linear = Ix::from(0);
        for (size, ix) in to.iter().zip(indices) {
            linear = linear.mul(size).and_then(|rows| rows.add(ix)).map_err(&bad)?;
        }
        let mut flat = self.whole(a, act)?;
        for _ in 1..from.len() {
            flat = self.add(Term::Flatten(flat), span)?;
        }
        self.add(Term::Select(flat, [linear].into()), span)
    }
}
