//! Terms of a wanted type: bindings, conditions, iterations, reductions, generations and selections.

use arbitrary::Result;
use certen_core::{Carried, ElemType, Range, ReduceOp, TensorType, Term, TermId};
use certen_index::{Cond, Ix};
use certen_syntax::Name;

use super::index::{le, lt, sure, width, zero};
use super::{Generator, elem};

impl Generator<'_, '_> {
    /// A term of a type, with at most this many constructs inside each other.
    pub(super) fn term(&mut self, ty: &TensorType, fuel: usize) -> Result<TermId> {
        let Some(part) = fuel.checked_sub(1) else { return self.leaf(ty) };
        let term = match self.u.int_in_range(0..=15)? {
            0 => return self.leaf(ty),
            1 | 2 => return self.bound(ty, part),
            3 => Term::If(self.cond()?, self.term(ty, part)?, self.term(ty, part)?),
            4 => return self.guarded(ty, part),
            5 => return self.iterate(ty, part),
            6 => {
                let size = self.size()?;
                let shape: Vec<Ix> = [size].into_iter().chain(ty.shape.iter().cloned()).collect();
                let tensor = self.term(&TensorType::new(ty.elem, shape), part)?;
                return self.select(tensor, 1);
            }
            7 | 8 => return self.reduction(ty, part),
            _ if ty.is_scalar() => return self.scalar(ty.elem, part),
            9 | 10 => return self.generation(ty, part),
            _ => return self.reshape(ty, part),
        };
        Ok(self.add(term))
    }

    /// `let`, often of something that is then used.
    fn bound(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let elem = if self.chance(4)? { elem(self.u)? } else { ty.elem };
        let value_ty = if self.chance(3)? { ty.clone() } else { self.ty(elem, 3)? };
        let value = self.term(&value_ty, part)?;
        let body = self.with_let(value, |g, _| g.term(ty, part))?;
        Ok(body)
    }

    /// A term under a name for another one.
    pub(super) fn with_let(
        &mut self,
        value: TermId,
        body: impl FnOnce(&mut Self, TermId) -> Result<TermId>,
    ) -> Result<TermId> {
        let (name, ty) = (self.fresh("v"), self.terms.ty(value).clone());
        self.tensors.push((name, ty.clone()));
        let reference = self.add(Term::Ref(name, ty));
        let body = body(self, reference);
        self.tensors.pop();
        let body = body?;
        Ok(self.add(Term::Let(name, value, body)))
    }

    fn guarded(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let (cond, mut body) = (self.cond()?, self.term(ty, part)?);
        if self.chance(3)? {
            let inner = Term::Guard(self.cond()?, body);
            body = self.add(inner);
        }
        Ok(self.add(Term::Guard(cond, body)))
    }

    fn iterate(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let mut types = vec![ty.clone()];
        while types.len() < 3 && self.chance(3)? {
            let elem = if self.chance(3)? { elem(self.u)? } else { ty.elem };
            types.push(self.ty(elem, 2)?);
        }
        let shown = self.u.choose_index(types.len())?;
        types.swap(0, shown);
        let mut states = Vec::new();
        for ty in &types {
            let init = self.term(ty, part)?;
            states.push(Carried { name: self.fresh("a"), init, next: init });
        }
        let times = match self.u.int_in_range(0..=3)? {
            0 => Ix::var("k"),
            1 => self.ix()?,
            _ => Ix::from(*self.u.choose(&[2, 0, 3, 1])?),
        };
        let outside = self.tensors.len();
        self.tensors.extend(states.iter().map(|s| s.name).zip(types.iter().cloned()));
        let step = self.with_index(&Range::to(times.clone()), &times, |g, step| {
            for (state, ty) in states.iter_mut().zip(&types) {
                state.next = g.term(ty, part)?;
            }
            Ok(step)
        });
        self.tensors.truncate(outside);
        Ok(self.add(Term::Iterate(times, step?, states.into(), shown)))
    }

    /// A reduction of scalars or tensors, over ranges that may be empty where the operator allows it, with or without a
    /// restriction.
    fn reduction(&mut self, ty: &TensorType, part: usize) -> Result<TermId> {
        let ops: &[ReduceOp] = match ty.elem {
            ElemType::Bool => &[ReduceOp::All, ReduceOp::Any],
            ElemType::U8 => return self.leaf(ty),
            elem if elem.is_int() => &[ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max],
            _ => &[ReduceOp::Sum, ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max],
        };
        let op = *self.u.choose(ops)?;
        let restricted = self.chance(3)?;
        let can_be_empty = !matches!(op, ReduceOp::Min | ReduceOp::Max);
        let mut size = self.size()?;
        if !can_be_empty && (restricted || !self.not_empty(&size)) {
            // Of at least two elements, all but one are at least one.
            size = Ix::from(self.u.int_in_range(2..=3)?);
        }
        let mut range = self.range(&size)?;
        let mut known = Some(&size);
        if can_be_empty && self.chance(8)? {
            // It may end before it begins.
            range = Range { lo: Ix::from(self.u.int_in_range(-1..=3)?), hi: self.ix()? };
            known = None;
        }
        self.with_index(&range, known, |g, name| {
            let cond = match (restricted, can_be_empty) {
                (false, _) => Cond::always(),
                (true, true) => g.cond()?,
                (true, false) => {
                    let apart = Ix::from(g.u.int_in_range(0..=2)?);
                    let skipped = super::index::plus(&range.lo, &apart);
                    sure(sure(Cond::eq(&Ix::var(name), &skipped)).not())
                }
            };
            let body = if ty.rank() > 0 && g.chance(2)? { g.scattered(ty, name, part)? } else { g.term(ty, part)? };
            Ok(g.add(Term::Reduce(op, name, range.clone(), cond, body)))
        })
    }

    /// A generation that has values only on one side of, or at a distance from, an index of a reduction around it.
    fn scattered(&mut self, ty: &TensorType, around: Name, part: usize) -> Result<TermId> {
        let inner = TensorType::new(ty.elem, ty.shape[1..].to_vec());
        let size = ty.shape[0].clone();
        let range = Range::to(width(&size));
        self.with_index(&range, &size, |g, name| {
            let (i, p) = (Ix::var(around), Ix::var(name));
            let cond = match g.u.int_in_range(0..=3)? {
                0 => le(&p, &i),
                1 => le(&p, &i).and(lt(&i, &super::index::plus(&p, &Ix::from(2)))),
                2 => sure(Cond::eq(&p, &i)),
                _ => lt(&i, &p),
            };
            let body = g.term(&inner, part)?;
            let body = g.add(Term::Guard(cond, body));
            Ok(g.add(Term::Gen(name, range.clone(), body)))
        })
    }

    /// A tensor of the type's elements for each index.
    pub(super) fn generation(&mut self, ty: &TensorType, fuel: usize) -> Result<TermId> {
        let Some((size, inner)) = ty.shape.split_first() else { return self.term(ty, fuel) };
        let range = if fuel == 0 { Range::to(width(size)) } else { self.range(size)? };
        let inner = TensorType::new(ty.elem, inner.to_vec());
        self.with_index(&range, size, |g, name| {
            let body = g.term(&inner, fuel)?;
            Ok(g.add(Term::Gen(name, range.clone(), body)))
        })
    }

    /// What needs nothing else: a tensor in scope, an element or slice of one, a generation of such, a constant.
    pub(super) fn leaf(&mut self, ty: &TensorType) -> Result<TermId> {
        let fits = |t: &TensorType| t.shape.ends_with(&ty.shape) && (t.elem == ty.elem || ty.is_scalar());
        let fitting: Vec<(Name, TensorType)> = self.tensors.iter().filter(|(_, t)| fits(t)).cloned().collect();
        if !fitting.is_empty() && self.u.int_in_range(0..=3)? > 0 {
            // What was bound last would hardly be used otherwise.
            let at = if self.u.arbitrary()? { fitting.len() - 1 } else { self.u.choose_index(fitting.len())? };
            let (name, of) = fitting[at].clone();
            let tensor = self.add(Term::Ref(name, of.clone()));
            let element = self.select(tensor, of.rank() - ty.rank())?;
            return Ok(if of.elem == ty.elem { element } else { self.add(Term::Cast(ty.elem, element)) });
        }
        if ty.is_scalar() { self.constant(ty.elem) } else { self.generation(ty, 0) }
    }

    /// An element or slice of a tensor, under a condition where there is no other reason.
    pub(super) fn select(&mut self, tensor: TermId, dimensions: usize) -> Result<TermId> {
        if dimensions == 0 {
            return Ok(tensor);
        }
        let shape = self.terms.ty(tensor).shape.clone();
        let (mut indices, mut guard) = (Vec::new(), Cond::always());
        for size in &shape[..dimensions] {
            indices.push(match self.inside(size)? {
                Some(index) if !self.chance(4)? => index,
                _ => {
                    let index = self.ix()?;
                    guard = guard.and(le(&zero(), &index)).and(lt(&index, size));
                    index
                }
            });
        }
        // A slice of a slice is an element too.
        let first = self.u.int_in_range(0..=dimensions - 1)?;
        let (outer, inner) = indices.split_at(first);
        let mut element = tensor;
        for part in [outer, inner].into_iter().filter(|part| !part.is_empty()) {
            element = self.add(Term::Select(element, part.into()));
        }
        Ok(if guard.is_always() { element } else { self.add(Term::Guard(guard, element)) })
    }
}
