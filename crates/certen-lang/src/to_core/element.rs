//! The element of an expression at indices: as in TeIL's Fig. 6, with index expressions for the indices.
//!
//! Each arm of [`Build::pull`] is the equation of its construct. A selection adds its indices in front, a with-loop
//! takes as many away as its frame has, entrywise operations pass them on (to scalars: none), a reduction puts its own
//! index into the place of the axis that it reduces.

use certen_core::{Literal, Range, ReduceOp, Term, TermId};
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

use super::scopes::Frame;
use super::tables::number;
use super::{Activation, Build, Built, Denoted, bad_index, ill_formed};
use crate::typed::{Expr, Generator, Kind, With, WithDefault, epsilon};

impl<'a> Build<'a> {
    /// The scalar term of an expression at as many indices as it has dimensions.
    pub(super) fn element(&mut self, expr: &'a Expr, act: Activation, indices: &[Ix]) -> Built<TermId> {
        if let Some(element) = self.table_element(expr, indices)? {
            return Ok(element);
        }
        if let Some(placement) = self.placement(expr, act, indices) {
            let (name, ty) = self.store(expr, act, Name::new("v"), placement)?;
            return self.terms.element(name, ty, indices).map_err(super::ill_typed(expr.span));
        }
        self.pull(expr, act, indices)
    }

    /// An operand of an entrywise operation: a scalar has the same element everywhere.
    fn operand(&mut self, expr: &'a Expr, act: Activation, indices: &[Ix]) -> Built<TermId> {
        self.element(expr, act, if expr.ty.is_scalar() { &[] } else { indices })
    }

    /// The element, built from the elements of its parts.
    pub(super) fn pull(&mut self, expr: &'a Expr, act: Activation, indices: &[Ix]) -> Built<TermId> {
        let (span, elem) = (expr.span, expr.ty.elem);
        self.count_step(span)?;
        if indices.len() != expr.ty.rank() {
            return Err(ill_formed(span, format!("{} indices of {}", indices.len(), expr.ty)));
        }
        if let Some((inner, inner_act)) = self.result(expr, act)? {
            return self.element(inner, inner_act, indices);
        }
        let term = match &expr.kind {
            Kind::Var(name) => return self.read(act, *name, indices, span),
            Kind::Literal(literal) => Term::Literal(*literal, elem),
            Kind::Epsilon => Term::Literal(epsilon(elem), elem),
            Kind::Index(ix) => {
                let ix = self.ix(act, ix, span)?;
                match ix.as_constant().map(|value| Literal::whole(value, elem)).filter(|literal| literal.fits(elem)) {
                    Some(literal) => Term::Literal(literal, elem),
                    None => Term::Index(ix, elem),
                }
            }
            Kind::Select(tensor, own) => {
                let own = own.iter().map(|ix| self.ix(act, ix, span));
                let all = own.chain(indices.iter().cloned().map(Ok)).collect::<Built<Vec<Ix>>>()?;
                return self.element(tensor, act, &all);
            }
            Kind::Stack(parts) => return self.stack(parts, act, indices, span),
            Kind::With(with) => return self.with_loop(with, act, indices, span),
            Kind::Fold(fold) => return self.fold(fold, act, indices, expr),
            Kind::Unary(op, a) => match number(expr) {
                Some(literal) => Term::Literal(literal, elem),
                None => Term::Unary(*op, self.operand(a, act, indices)?),
            },
            Kind::Cast(a) => Term::Cast(elem, self.operand(a, act, indices)?),
            Kind::Binary(op, a, b) => {
                let a = self.operand(a, act, indices)?;
                Term::Binary(*op, a, self.operand(b, act, indices)?)
            }
            Kind::Choose(cond, a, b) => {
                let (cond, a) = (self.operand(cond, act, indices)?, self.operand(a, act, indices)?);
                Term::Choose(cond, a, self.operand(b, act, indices)?)
            }
            Kind::If(cond, a, b) => {
                let cond = self.cond(act, cond, span)?;
                let other = cond.not().map_err(bad_index(span))?;
                return self.either(
                    &cond,
                    (Frame::branch(&cond), Frame::branch(&other)),
                    |build| build.operand(a, act, indices),
                    |build| build.operand(b, act, indices),
                    span,
                );
            }
            Kind::Guard(cond, a) => {
                let cond = self.cond(act, cond, span)?;
                if cond.is_always() {
                    return self.operand(a, act, indices);
                }
                self.open(Frame::branch(&cond));
                let body = self.operand(a, act, indices)?;
                Term::Guard(cond, self.close(body, span)?)
            }
            Kind::Stored(a) => return self.element(a, act, indices),
            Kind::Reduce(op, axes, a) => return self.reduce(*op, axes, a, act, indices),
            Kind::Iterate(iterate) => return self.only_state(iterate, act, span),
            Kind::Flatten(_)
            | Kind::Split(..)
            | Kind::Transpose(_)
            | Kind::Concat(..)
            | Kind::Pad(..)
            | Kind::Trunc(..)
            | Kind::Reshape(_) => return self.moved(expr, act, indices),
            Kind::Comprehension(_) => return Err(ill_formed(span, "a comprehension that no pass has taken away")),
            Kind::Call(_) | Kind::Block(_) => return Err(ill_formed(span, "a block without a value")),
        };
        self.add(term, span)
    }

    /// Lazily one of two scalars; each is built in its scope.
    pub(super) fn either(
        &mut self,
        cond: &Cond,
        (yes, no): (Frame, Frame),
        then: impl FnOnce(&mut Self) -> Built<TermId>,
        otherwise: impl FnOnce(&mut Self) -> Built<TermId>,
        span: Span,
    ) -> Built<TermId> {
        if cond.is_always() {
            self.open(yes);
            let then = then(self)?;
            return self.close(then, span);
        }
        if cond.is_never() {
            self.open(no);
            let otherwise = otherwise(self)?;
            return self.close(otherwise, span);
        }
        self.open(yes);
        let then = then(self)?;
        let then = self.close(then, span)?;
        self.open(no);
        let otherwise = otherwise(self)?;
        let otherwise = self.close(otherwise, span)?;
        self.add(Term::If(cond.clone(), then, otherwise), span)
    }

    /// `[e0, e1, …]`: the part at the first index. All parts have values, whichever is chosen.
    fn stack(&mut self, parts: &'a [Expr], act: Activation, indices: &[Ix], span: Span) -> Built<TermId> {
        let (Some((first, rest)), Some((last, before))) = (indices.split_first(), parts.split_last()) else {
            return Err(ill_formed(span, "a list without parts"));
        };
        if let Some(part) = first.as_constant().and_then(|at| parts.get(usize::try_from(at).ok()?)) {
            return self.operand(part, act, rest);
        }
        let mut conds = Vec::new();
        for at in 0..before.len() {
            conds.push(Cond::eq(first, &Ix::from(at as i64)).map_err(bad_index(span))?);
        }
        let mut chosen = Vec::new();
        for (part, cond) in before.iter().zip(&conds) {
            self.open(Frame::part(cond));
            let element = self.operand(part, act, rest)?;
            chosen.push(self.close(element, span)?);
        }
        self.open(Frame::part(&Cond::always()));
        let element = self.operand(last, act, rest)?;
        let mut term = self.close(element, span)?;
        for (cond, element) in conds.into_iter().zip(chosen).rev() {
            term = self.add(Term::If(cond, element, term), span)?;
        }
        Ok(term)
    }

    /// The first generator that contains the indices gives the element, else the default does. Elements are only asked
    /// for inside the frame, so that is known.
    fn with_loop(&mut self, with: &'a With, act: Activation, indices: &[Ix], span: Span) -> Built<TermId> {
        let mut scope = Frame::part(&Cond::always());
        for (ix, size) in indices.iter().zip(&with.frame) {
            let size = self.ix(act, size, span)?;
            scope.known.push(Cond::le(&Ix::from(0), ix).map_err(bad_index(span))?);
            scope.known.push(Cond::lt(ix, &size).map_err(bad_index(span))?);
        }
        self.open(scope);
        let element = self.chosen(with, act, indices, span)?;
        self.close(element, span)
    }

    fn chosen(&mut self, with: &'a With, act: Activation, indices: &[Ix], span: Span) -> Built<TermId> {
        let mut chosen = Vec::new();
        let mut last = None;
        let mut refused = Vec::new();
        for generator in &with.generators {
            let (inside, any) = self.membership(generator, act, indices, span)?;
            let inside = self.unknown_part(inside);
            if inside.is_never() {
                continue;
            }
            // What is safe because no earlier generator has the indices stays inside the loops of those indices.
            let new = refused.iter().cloned().fold(any, Cond::and);
            let mut scope = Frame::generator(&inside, new);
            scope.known.append(&mut refused.clone());
            self.open(scope);
            let mut before = Vec::new();
            for ((name, _), ix) in generator.indices.iter().zip(indices) {
                before.push(self.mean_for_now(act, *name, Denoted::Index(ix.clone())));
            }
            let rest = indices.get(generator.indices.len()..).unwrap_or_default();
            let element = self.operand(&generator.body, act, rest)?;
            let element = self.close(element, span)?;
            self.restore(before.into_iter());
            if inside.is_always() {
                last = Some(element);
                break;
            }
            refused.push(inside.not().map_err(bad_index(span))?);
            chosen.push((inside, element));
        }
        let mut term = match last {
            Some(element) => element,
            None => {
                let new = refused.iter().cloned().fold(Cond::always(), Cond::and);
                let mut scope = Frame::generator(&Cond::always(), new);
                scope.known = refused;
                self.open(scope);
                let element = match &with.default {
                    WithDefault::Cell(cell) => {
                        self.operand(cell, act, indices.get(with.frame.len()..).unwrap_or_default())?
                    }
                    WithDefault::Array(array) => self.operand(array, act, indices)?,
                };
                self.close(element, span)?
            }
        };
        for (inside, element) in chosen.into_iter().rev() {
            term = self.add(Term::If(inside, element, term), span)?;
        }
        Ok(term)
    }

    /// That indices are in a generator, and that it contains any.
    pub(super) fn membership(
        &self,
        generator: &Generator,
        act: Activation,
        indices: &[Ix],
        span: Span,
    ) -> Built<(Cond, Cond)> {
        let (mut inside, mut any) = (Cond::always(), Cond::always());
        for ((_, range), ix) in generator.indices.iter().zip(indices) {
            let Range { lo, hi } = self.range(act, range, span)?;
            let bad = bad_index(span);
            inside = inside.and(Cond::le(&lo, ix).map_err(&bad)?).and(Cond::lt(ix, &hi).map_err(&bad)?);
            any = any.and(Cond::lt(&lo, &hi).map_err(&bad)?);
        }
        Ok((inside, any))
    }

    /// Over each axis a reduction of its own, the first outermost.
    fn reduce(
        &mut self,
        op: ReduceOp,
        axes: &[usize],
        operand: &'a Expr,
        act: Activation,
        indices: &[Ix],
    ) -> Built<TermId> {
        let span = operand.span;
        let (shape, hints) = (self.frame_shape(operand, act)?, self.hints(operand));
        let (mut full, mut rest, mut loops) = (Vec::new(), indices.iter(), Vec::new());
        for (at, size) in shape.iter().enumerate() {
            if axes.contains(&at) {
                let range = Range::to(size.clone());
                let base = hints.get(at).copied().flatten();
                let index = self.open_loop(base, &range, false, span)?;
                full.push(Ix::var(index));
                loops.push((index, range));
            } else {
                full.extend(rest.next().cloned());
            }
        }
        let mut term = self.element(operand, act, &full)?;
        for (index, range) in loops.into_iter().rev() {
            term = self.close(term, span)?;
            term = self.add(Term::Reduce(op, index, range, Cond::always(), term), span)?;
        }
        Ok(term)
    }

    /// Names for the indices of an expression's dimensions: those that the user gave, as far as there are any.
    pub(super) fn hints(&self, expr: &Expr) -> Vec<Option<Name>> {
        let mut expr = expr;
        let mut names: Vec<Option<Name>> = loop {
            expr = match &expr.kind {
                Kind::With(with) => match with.generators.last() {
                    Some(generator) => {
                        let own = generator.indices.iter().map(|(name, _)| Some(*name));
                        break own.chain(self.hints(&generator.body)).collect();
                    }
                    None => break Vec::new(),
                },
                Kind::Unary(_, a) | Kind::Cast(a) | Kind::Guard(_, a) | Kind::If(_, a, _) | Kind::Stored(a) => a,
                Kind::Binary(_, a, b) => {
                    if a.ty.rank() == expr.ty.rank() && !matches!(a.kind, Kind::Var(_)) {
                        a
                    } else {
                        b
                    }
                }
                Kind::Block(block) => match block.results.as_slice() {
                    [result] => result,
                    _ => break Vec::new(),
                },
                Kind::Call(call) => {
                    match self.program.functions.get(call.function).map(|callee| callee.body.results.as_slice()) {
                        Some([result]) => result,
                        _ => break Vec::new(),
                    }
                }
                Kind::Reduce(_, axes, a) => {
                    let inner = self.hints(a).into_iter().enumerate();
                    break inner.filter(|(at, _)| !axes.contains(at)).map(|(_, name)| name).collect();
                }
                _ => break Vec::new(),
            };
        };
        names.resize(expr.ty.rank(), None);
        names
    }
}
