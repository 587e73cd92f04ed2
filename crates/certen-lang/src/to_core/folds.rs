//! Folds: with-loops that combine their elements.
//!
//! With an operator of Core each generator is a nest of reductions, one for each index; the results are combined one
//! after the other, beginning with the neutral element. An index that an earlier generator contains is left out. A
//! minimum or maximum has no value over nothing, so it is taken only where the generator has an index; taking the
//! neutral element again does not change it, so that stands for what is left out.
//!
//! With a function, the elements are combined one by one in the order of the indices: an iteration for each index,
//! one inside the other, which carries the value so far.

use certen_core::{Carried, Range, ReduceOp, TensorType, Term, TermId};
use certen_index::{Cond, Ix};
use certen_syntax::{Name, Span};

use super::scopes::Frame;
use super::{Activation, Build, Built, Denoted, bad_index, ill_formed};
use crate::typed::{Expr, Fold, FoldOp, Generator, Kind};

impl<'a> Build<'a> {
    /// The element of a fold.
    pub(super) fn fold(&mut self, fold: &'a Fold, act: Activation, indices: &[Ix], expr: &'a Expr) -> Built<TermId> {
        let span = expr.span;
        match &fold.op {
            FoldOp::Reduce(op) => self.fold_by_operator(fold, *op, act, indices, span),
            FoldOp::Function { .. } if indices.is_empty() => self.fold_by_function(fold, act, &expr.ty, span),
            FoldOp::Function { .. } => Err(ill_formed(span, "a fold that makes a tensor has no elements")),
        }
    }

    fn fold_by_operator(
        &mut self,
        fold: &'a Fold,
        op: ReduceOp,
        act: Activation,
        indices: &[Ix],
        span: Span,
    ) -> Built<TermId> {
        let elem = fold.neutral.ty.elem;
        let of = |e: &Expr| if e.ty.is_scalar() { &[] } else { indices };
        let neutral = self.element(&fold.neutral, act, of(&fold.neutral))?;
        let identity = op.identity(elem);
        let begins_empty = matches!(&fold.neutral.kind, Kind::Literal(value) if Some(*value) == identity);
        let mut so_far = (!begins_empty).then_some(neutral);
        for (at, generator) in fold.generators.iter().enumerate() {
            let any = self.unknown_part(self.any(generator, act, span)?);
            if any.is_never() {
                continue;
            }
            let Some(before) = so_far.filter(|_| identity.is_none()) else {
                let reduced = self.reduce_generator(fold, at, op, act, of(&generator.body), None, span)?;
                so_far = Some(match so_far {
                    Some(before) => self.add(Term::Binary(op.combine(), before, reduced), span)?,
                    None => reduced,
                });
                continue;
            };
            // It stands in both branches.
            let before = if any.is_always() { before } else { self.named(before, "so_far", span)? };
            let none = any.not().map_err(bad_index(span))?;
            let with_it = self.either(
                &any,
                (Frame::branch(&any), Frame::branch(&none)),
                |build| {
                    let missing = Some(neutral);
                    let reduced = build.reduce_generator(fold, at, op, act, of(&generator.body), missing, span)?;
                    build.add(Term::Binary(op.combine(), before, reduced), span)
                },
                |_| Ok(before),
                span,
            )?;
            so_far = Some(with_it);
        }
        Ok(so_far.unwrap_or(neutral))
    }

    /// The reduction of a generator's elements, without those that an earlier one contains; `missing` stands for them
    /// where a reduction cannot leave elements out.
    #[allow(clippy::too_many_arguments, reason = "the parts of one reduction")]
    fn reduce_generator(
        &mut self,
        fold: &'a Fold,
        at: usize,
        op: ReduceOp,
        act: Activation,
        indices: &[Ix],
        missing: Option<TermId>,
        span: Span,
    ) -> Built<TermId> {
        let generator = &fold.generators[at];
        let (mut loops, mut before) = (Vec::new(), Vec::new());
        for (name, range) in &generator.indices {
            let range = self.range(act, range, span)?;
            let index = self.open_loop(Some(*name), &range, true, span)?;
            before.push(self.mean_for_now(act, *name, Denoted::Index(Ix::var(index))));
            loops.push((index, range));
        }
        let own: Vec<Ix> = loops.iter().map(|(name, _)| Ix::var(*name)).collect();
        let new = self.new_indices(&fold.generators[..at], act, &own, span)?;
        self.open(Frame::branch(&new));
        let mut term = self.element(&generator.body, act, indices)?;
        term = self.close(term, span)?;
        let mut cond = Cond::always();
        match missing {
            Some(missing) if !new.is_always() => term = self.add(Term::If(new, term, missing), span)?,
            _ => cond = new,
        }
        self.restore(before.into_iter());
        for (index, range) in loops.into_iter().rev() {
            term = self.close(term, span)?;
            term =
                self.add(Term::Reduce(op, index, range, std::mem::replace(&mut cond, Cond::always()), term), span)?;
        }
        Ok(term)
    }

    /// That a generator contains any index.
    fn any(&self, generator: &Generator, act: Activation, span: Span) -> Built<Cond> {
        generator.indices.iter().try_fold(Cond::always(), |all, (_, range)| {
            let range = self.range(act, range, span)?;
            Ok(all.and(Cond::lt(&range.lo, &range.hi).map_err(bad_index(span))?))
        })
    }

    /// That no earlier generator contains these indices, as far as that is not known.
    fn new_indices(&self, earlier: &[Generator], act: Activation, indices: &[Ix], span: Span) -> Built<Cond> {
        earlier.iter().try_fold(Cond::always(), |all, generator| {
            let (inside, _) = self.membership(generator, act, indices, span)?;
            Ok(all.and(self.unknown_part(inside.not().map_err(bad_index(span))?)))
        })
    }

    /// The whole value of a fold with a function.
    pub(super) fn fold_by_function(
        &mut self,
        fold: &'a Fold,
        act: Activation,
        ty: &TensorType,
        span: Span,
    ) -> Built<TermId> {
        let mut value = match fold.neutral.ty.rank() == ty.rank() {
            true => self.tensor(&fold.neutral, act)?,
            false => {
                let shape = ty.shape.iter().map(|size| self.ix(act, size, span)).collect::<Built<Vec<Ix>>>()?;
                self.generation(&shape, &[], span, |build, _| build.element(&fold.neutral, act, &[]))?
            }
        };
        for at in 0..fold.generators.len() {
            value = self.steps(fold, at, &mut Vec::new(), act, value, span)?;
        }
        Ok(value)
    }

    /// The iteration over the next index of a generator, where those before it have these values.
    fn steps(
        &mut self,
        fold: &'a Fold,
        at: usize,
        outer: &mut Vec<Ix>,
        act: Activation,
        first: TermId,
        span: Span,
    ) -> Built<TermId> {
        let FoldOp::Function { so_far, .. } = &fold.op else { return Ok(first) };
        let generator = &fold.generators[at];
        let Some((name, range)) = generator.indices.get(outer.len()) else {
            return self.step(fold, at, outer, act, first, span);
        };
        let Range { lo, hi } = self.range(act, range, span)?;
        let times = hi.sub(&lo).map_err(bad_index(span))?;
        let base = if lo == Ix::from(0) { *name } else { Name::new("step") };
        let step = self.open_loop(Some(base), &Range::to(times.clone()), true, span)?;
        let index = lo.add(&Ix::var(step)).map_err(bad_index(span))?;
        let counted = self.mean_for_now(act, *name, Denoted::Index(index.clone()));
        let (state, so_far) = self.state(act, *so_far, first);
        let now = self.terms.reference(state, self.terms.ty(first).clone()).map_err(super::ill_typed(span))?;
        outer.push(index);
        let next = self.steps(fold, at, outer, act, now, span)?;
        outer.pop();
        let next = self.close(next, span)?;
        self.restore([counted, so_far].into_iter());
        let states = Box::new([Carried { name: state, init: first, next }]);
        self.add(Term::Iterate(times, step, states, 0), span)
    }

    /// One step: the value so far, which has a name, and the element at the indices.
    fn step(
        &mut self,
        fold: &'a Fold,
        at: usize,
        indices: &[Ix],
        act: Activation,
        now: TermId,
        span: Span,
    ) -> Built<TermId> {
        let FoldOp::Function { so_far, element, next, .. } = &fold.op else { return Ok(now) };
        let given = self.names.tensor(*so_far, self.depth());
        let (name, ty) = self.bind(given, now);
        let now = self.add(Term::Ref(name, ty.clone()), span)?;
        self.mean(act, *so_far, Denoted::Stored(name, ty));
        let body = &fold.generators[at].body;
        let new = self.new_indices(&fold.generators[..at], act, indices, span)?;
        if new.is_always() {
            self.mean_expr(act, *element, body, act)?;
            return self.tensor_like(next, act, now);
        }
        let shape = self.terms.ty(now).shape.clone();
        let hints = self.hints(next);
        self.generation(&shape, &hints, span, |build, cell| {
            let old = new.not().map_err(bad_index(span))?;
            build.either(
                &new,
                (Frame::branch(&new), Frame::branch(&old)),
                |build| {
                    build.mean_expr(act, *element, body, act)?;
                    build.element(next, act, cell)
                },
                |build| if cell.is_empty() { Ok(now) } else { build.add(Term::Select(now, cell.into()), span) },
                span,
            )
        })
    }
}
