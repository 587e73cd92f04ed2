//! The machine that computes one element: the equations, with frames on a stack instead of calls.

use std::collections::HashMap;

use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;

use super::{Evaluator, Stored};
use crate::domain::{Domain, Fault};
use crate::error::EvalError;
use crate::ops::{Binary, ReduceOp, Unary};
use crate::tensor::{Tensor, index_of};
use crate::term::{Carried, Term, TermId};
use crate::trace::{Log, TraceStep};
use crate::types::ElemType;

/// What is bound around the term that is being evaluated, innermost last.
enum InScope<V> {
    Index(Name, i64),
    /// A `let`: its elements are computed when they are asked for. Names are never shadowed, so that its term means the
    /// same under the bindings further in.
    Let(Name, TermId, HashMap<Vec<i64>, V>),
    /// The state of an iteration, this term, at the beginning of a step.
    State(Name, Tensor<V>, TermId),
}

/// What is still to be done; the last frame first.
enum Frame<V> {
    /// Compute the element of a term at an index.
    Eval(TermId, Vec<i64>),
    Unary(Unary, ElemType),
    Binary(Binary, ElemType),
    /// Both operands are the value on top.
    Twice(Binary, ElemType),
    Choose,
    Fma(ElemType),
    Cast(ElemType, ElemType),
    Reduce(Box<Reducing<V>>),
    Iterate(Box<Iterating<V>>),
    RememberBinding(Name, Vec<i64>),
    RememberLet(usize, Vec<i64>),
    /// Forget bindings down to this many.
    Leave(usize),
    /// The step of the trace that is open ends with the value on top.
    Traced,
}

/// A reduction in progress; its index is bound at `bound`.
struct Reducing<V> {
    op: ReduceOp,
    elem: ElemType,
    body: TermId,
    cond: Cond,
    index: Vec<i64>,
    bound: usize,
    next: i64,
    hi: i64,
    sum: Option<V>,
    /// Whether the body's value at the index before `next` is on the value stack.
    pending: bool,
}

/// An iteration in progress: whole states, element by element.
struct Iterating<V> {
    term: TermId,
    index: Vec<i64>,
    key: IterationKey,
    /// How many steps are done; -1 while the first values are computed.
    step: i64,
    times: i64,
    /// Where the states are bound.
    bound: usize,
    shapes: Vec<Vec<usize>>,
    done: Vec<Tensor<V>>,
    current: Vec<V>,
    /// Whether the next element of `current` is on the value stack.
    pending: bool,
}

/// A term and what is bound around it: names with the values of indices, or with the term that says what they mean.
type IterationKey = (TermId, Vec<(Name, i64)>);

/// Elements of iterations that are remembered at most: beyond that all are forgotten, and computed again if need be.
const MOST_REMEMBERED: usize = 1 << 24;

/// One demand for an element.
pub(super) struct Run<'e, 'a, D: Domain> {
    evaluator: &'e mut Evaluator<'a, D>,
    frames: Vec<Frame<D::Value>>,
    values: Vec<D::Value>,
    scope: Vec<InScope<D::Value>>,
    /// Results of iterations whose elements are asked for one by one.
    iterated: HashMap<IterationKey, Tensor<D::Value>>,
    /// How many elements they have.
    remembered: usize,
    /// Where the steps are noted, if a trace is wanted.
    pub(super) log: Option<Log<D::Value>>,
}

impl<'e, 'a, D: Domain> Run<'e, 'a, D> {
    pub(super) fn new(evaluator: &'e mut Evaluator<'a, D>) -> Self {
        let iterated = HashMap::new();
        Run { evaluator, frames: Vec::new(), values: Vec::new(), scope: Vec::new(), iterated, remembered: 0, log: None }
    }

    pub(super) fn element(&mut self, term: TermId, index: Vec<i64>) -> Result<D::Value, EvalError> {
        self.frames.push(Frame::Eval(term, index));
        self.finish()
    }

    /// Works until nothing is left to do; the value that remains is the result.
    pub(super) fn finish(&mut self) -> Result<D::Value, EvalError> {
        while let Some(frame) = self.frames.pop() {
            self.evaluator.fuel = self.evaluator.fuel.checked_sub(1).ok_or(EvalError::Fuel)?;
            match frame {
                Frame::Eval(term, index) => self.eval(term, index)?,
                Frame::Unary(op, elem) => {
                    let a = self.pop()?;
                    self.values.push(self.evaluator.domain.unary(op, elem, &a)?);
                }
                Frame::Binary(op, elem) => {
                    let (b, a) = (self.pop()?, self.pop()?);
                    self.values.push(self.evaluator.domain.binary(op, elem, &a, &b)?);
                }
                Frame::Twice(op, elem) => {
                    let a = self.pop()?;
                    self.values.push(self.evaluator.domain.binary(op, elem, &a, &a)?);
                }
                Frame::Choose => {
                    let (b, a, cond) = (self.pop()?, self.pop()?, self.pop()?);
                    self.values.push(self.evaluator.domain.choose(&cond, &a, &b)?);
                }
                Frame::Fma(elem) => {
                    let (c, b, a) = (self.pop()?, self.pop()?, self.pop()?);
                    self.values.push(self.evaluator.domain.fma(elem, &a, &b, &c)?);
                }
                Frame::Cast(from, to) => {
                    let a = self.pop()?;
                    self.values.push(self.evaluator.domain.cast(from, to, &a)?);
                }
                Frame::Reduce(reducing) => self.reduce(reducing)?,
                Frame::Iterate(iterating) => self.iterate(iterating)?,
                Frame::RememberBinding(name, index) => {
                    let value = self.top()?;
                    if let Some(Stored::OnDemand { known, .. }) = self.evaluator.memory.get_mut(&name) {
                        known.insert(index, value);
                    }
                }
                Frame::RememberLet(at, index) => {
                    let value = self.top()?;
                    if let Some(InScope::Let(_, _, known)) = self.scope.get_mut(at) {
                        known.insert(index, value);
                    }
                }
                Frame::Leave(depth) => self.scope.truncate(depth),
                Frame::Traced => {
                    let value = self.top()?;
                    self.end_step(&value);
                }
            }
        }
        self.pop()
    }

    fn begin_step(&mut self, step: impl FnOnce() -> TraceStep) {
        if let Some(log) = &mut self.log {
            log.begin(step);
        }
    }

    fn end_step(&mut self, value: &D::Value) {
        if let Some(log) = &mut self.log {
            log.end(value);
        }
    }

    fn pop(&mut self) -> Result<D::Value, EvalError> {
        self.values.pop().ok_or(EvalError::Fault(Fault::Undefined))
    }

    fn top(&self) -> Result<D::Value, EvalError> {
        self.values.last().cloned().ok_or(EvalError::Fault(Fault::Undefined))
    }

    fn lookup(&self, name: Name) -> Option<i64> {
        let bound = self.scope.iter().rev().find_map(|bound| match bound {
            InScope::Index(n, value) if *n == name => Some(*value),
            _ => None,
        });
        bound.or_else(|| self.evaluator.arguments.size(name))
    }

    fn ix(&self, ix: &Ix) -> Result<i64, EvalError> {
        Ok(ix.eval(&|name| self.lookup(name))?)
    }

    fn holds(&self, cond: &Cond) -> Result<bool, EvalError> {
        Ok(cond.eval(&|name| self.lookup(name))?)
    }

    /// The outermost size of a term, as a number.
    fn outer_size(&self, term: TermId) -> Result<i64, EvalError> {
        let size = self.evaluator.program.terms.ty(term).shape.first().cloned().unwrap_or(Ix::from(0));
        Ok(self.ix(&size)?.max(0))
    }

    fn padding(&mut self, elem: ElemType) -> Result<(), EvalError> {
        self.values.push(self.evaluator.domain.padding(elem)?);
        Ok(())
    }

    /// The equations: `[[term]] index` for each construct. They stand together, as in the papers, though they are many.
    fn eval(&mut self, id: TermId, mut index: Vec<i64>) -> Result<(), EvalError> {
        let program = self.evaluator.program;
        let terms = &program.terms;
        let elem = terms.ty(id).elem;
        match terms.get(id) {
            Term::Ref(name, _) => self.read(*name, index)?,
            // [[gen i in lo..hi. e]] (j :: js) = [[e]] js  with i = lo + j
            Term::Gen(name, range, body) => {
                let lo = self.ix(&range.lo)?;
                let first = take_first(&mut index)?;
                self.frames.push(Frame::Leave(self.scope.len()));
                self.scope.push(InScope::Index(*name, lo.checked_add(first).ok_or(IxError::Overflow)?));
                self.frames.push(Frame::Eval(*body, index));
            }
            // [[sum i in lo..hi where p. e]] js = Σ [[e]] js  over the i in lo..hi for which p holds; none: padding
            Term::Reduce(op, name, range, cond, body) => {
                let (next, hi) = (self.ix(&range.lo)?, self.ix(&range.hi)?);
                let sum = self.identity(*op, elem)?;
                self.begin_step(|| TraceStep::Reduce { op: *op, index: *name, lo: next, hi });
                let (op, body, cond, bound, pending) = (*op, *body, cond.clone(), self.scope.len(), false);
                self.scope.push(InScope::Index(*name, next));
                let reducing = Reducing { op, elem, body, cond, index, bound, next, hi, sum, pending };
                self.frames.push(Frame::Reduce(Box::new(reducing)));
            }
            // [[guard(p, e)]] js = [[e]] js if p, else padding: it selects, it does not multiply
            Term::Guard(cond, body) if self.holds(cond)? => self.frames.push(Frame::Eval(*body, index)),
            Term::Guard(..) => self.padding(elem)?,
            Term::If(cond, then, otherwise) => {
                let chosen = if self.holds(cond)? { then } else { otherwise };
                self.frames.push(Frame::Eval(*chosen, index));
            }
            Term::Let(name, value, body) => {
                self.frames.push(Frame::Leave(self.scope.len()));
                self.scope.push(InScope::Let(*name, *value, HashMap::new()));
                self.frames.push(Frame::Eval(*body, index));
            }
            Term::Iterate(times, _, states, _) => self.begin_iteration(id, times, states, index)?,
            // [[e[i]]] js = [[e]] (i :: js), if i is inside
            Term::Select(tensor, indices) => {
                let mut full = self.selected(*tensor, indices)?;
                full.append(&mut index);
                self.frames.push(Frame::Eval(*tensor, full));
            }
            // [[flatten e]] (i :: js) = [[e]] (i / n :: i mod n :: js), n the second size of e
            Term::Flatten(a) => {
                let inner = self.ix(&terms.ty(*a).shape[1].clone())?;
                let i = take_first(&mut index)?;
                if inner <= 0 {
                    return Err(EvalError::OutOfBounds(format!("flatten[{i}]")));
                }
                index.splice(0..0, [i / inner, i % inner]);
                self.frames.push(Frame::Eval(*a, index));
            }
            // [[split k e]] (i :: j :: js) = [[e]] (i·k + j :: js), or padding after the end
            Term::Split(k, a) => {
                let (i, j) = (take_first(&mut index)?, take_first(&mut index)?);
                let at = i.checked_mul(*k).and_then(|at| at.checked_add(j)).ok_or(IxError::Overflow)?;
                if at < self.outer_size(*a)? { self.shifted(*a, at, index) } else { self.padding(elem)? }
            }
            Term::Transpose(a) => {
                if index.len() < 2 {
                    return Err(EvalError::OutOfBounds("transpose".into()));
                }
                index.swap(0, 1);
                self.frames.push(Frame::Eval(*a, index));
            }
            Term::Concat(a, b) => {
                let (i, left) = (take_first(&mut index)?, self.outer_size(*a)?);
                if i < left { self.shifted(*a, i, index) } else { self.shifted(*b, i - left, index) }
            }
            Term::PadLeft(k, a) => {
                let (i, k) = (take_first(&mut index)?, self.ix(k)?);
                if i < k { self.padding(elem)? } else { self.shifted(*a, i - k, index) }
            }
            Term::PadRight(_, a) => {
                let i = take_first(&mut index)?;
                if i < self.outer_size(*a)? { self.shifted(*a, i, index) } else { self.padding(elem)? }
            }
            Term::TruncLeft(k, a) => {
                let i = take_first(&mut index)?.checked_add(self.ix(k)?).ok_or(IxError::Overflow)?;
                self.shifted(*a, i, index);
            }
            Term::TruncRight(_, a) => self.frames.push(Frame::Eval(*a, index)),
            Term::Literal(literal, elem) => self.values.push(self.evaluator.domain.literal(*literal, *elem)?),
            // [[table e0, e1, …]] is = the element at is
            Term::Table(table) => {
                let outside = || EvalError::OutOfBounds(format!("{index:?} in a table of type {}", table.ty()));
                let literal = table.get(&index).ok_or_else(outside)?;
                self.values.push(self.evaluator.domain.literal(literal, elem)?);
            }
            Term::Index(ix, elem) => self.values.push(self.evaluator.domain.index(self.ix(ix)?, *elem)?),
            Term::Undefined(elem) => self.values.push(self.evaluator.domain.undefined(*elem)?),
            Term::Unary(op, a) => {
                self.frames.push(Frame::Unary(*op, elem));
                self.frames.push(Frame::Eval(*a, index));
            }
            // Powers are products of squares: an operand that occurs twice is evaluated once, unless there is a trace.
            Term::Binary(op, a, b) if a == b && self.log.is_none() => {
                self.frames.push(Frame::Twice(*op, terms.ty(*a).elem));
                self.frames.push(Frame::Eval(*a, index));
            }
            // [[e0 + e1]] [] = [[e0]] [] + [[e1]] []
            Term::Binary(op, a, b) => {
                self.frames.push(Frame::Binary(*op, terms.ty(*a).elem));
                self.frames.push(Frame::Eval(*b, Vec::new()));
                self.frames.push(Frame::Eval(*a, index));
            }
            Term::Choose(cond, a, b) => {
                self.frames.push(Frame::Choose);
                self.frames.extend([*b, *a, *cond].map(|part| Frame::Eval(part, Vec::new())));
            }
            Term::Fma(a, b, c) => {
                self.frames.push(Frame::Fma(elem));
                self.frames.extend([*c, *b, *a].map(|part| Frame::Eval(part, Vec::new())));
            }
            Term::Cast(to, a) => {
                self.frames.push(Frame::Cast(terms.ty(*a).elem, *to));
                self.frames.push(Frame::Eval(*a, index));
            }
        }
        Ok(())
    }

    /// What a reduction begins with; minima and maxima begin with their first element.
    fn identity(&self, op: ReduceOp, elem: ElemType) -> Result<Option<D::Value>, EvalError> {
        let domain = self.evaluator.domain;
        Ok(match op {
            ReduceOp::Sum => Some(domain.padding(elem)?),
            _ => op.identity(elem).map(|one| domain.literal(one, elem)).transpose()?,
        })
    }

    fn begin_iteration(
        &mut self,
        term: TermId,
        times: &Ix,
        states: &[Carried],
        index: Vec<i64>,
    ) -> Result<(), EvalError> {
        let key = (term, self.surroundings());
        if let Some(tensor) = self.iterated.get(&key) {
            let value = tensor.get(&index).cloned();
            self.values.push(value.ok_or_else(|| EvalError::OutOfBounds(format!("iterate{index:?}")))?);
            return Ok(());
        }
        let terms = &self.evaluator.program.terms;
        let shape = |term| terms.ty(term).shape_at(&|name| self.lookup(name));
        let shapes = states.iter().map(|s| shape(s.init)).collect::<Result<_, _>>()?;
        let times = self.ix(times)?.max(0);
        self.begin_step(|| TraceStep::Iterate(times));
        self.frames.push(Frame::Iterate(Box::new(Iterating {
            term,
            index,
            key,
            step: -1,
            times,
            bound: self.scope.len(),
            shapes,
            done: Vec::new(),
            current: Vec::new(),
            pending: false,
        })));
        Ok(())
    }

    /// The values of indices into a tensor, which have to be inside.
    fn selected(&self, tensor: TermId, indices: &[Ix]) -> Result<Vec<i64>, EvalError> {
        let mut values = Vec::with_capacity(self.evaluator.program.terms.ty(tensor).rank());
        for (ix, size) in indices.iter().zip(self.evaluator.program.terms.ty(tensor).shape.iter()) {
            let (i, n) = (self.ix(ix)?, self.ix(size)?);
            if i < 0 || i >= n {
                return Err(EvalError::OutOfBounds(format!("{ix} = {i} of a dimension of size {n}")));
            }
            values.push(i);
        }
        Ok(values)
    }

    fn shifted(&mut self, term: TermId, first: i64, mut rest: Vec<i64>) {
        rest.insert(0, first);
        self.frames.push(Frame::Eval(term, rest));
    }

    /// `[[x]] js = μ x js` (TeIL, Fig. 6), where μ holds what is bound, innermost first.
    pub(super) fn read(&mut self, name: Name, index: Vec<i64>) -> Result<(), EvalError> {
        let outside = |index: &[i64]| EvalError::OutOfBounds(format!("{name}{index:?}"));
        if let Some(log) = &mut self.log {
            log.begin(|| TraceStep::Read(name, index.clone()));
            self.frames.push(Frame::Traced);
        }
        for (at, bound) in self.scope.iter().enumerate().rev() {
            match bound {
                InScope::State(n, tensor, _) if *n == name => {
                    self.values.push(tensor.get(&index).cloned().ok_or_else(|| outside(&index))?);
                    return Ok(());
                }
                InScope::Let(n, term, known) if *n == name => {
                    match known.get(&index) {
                        Some(value) => self.values.push(value.clone()),
                        None => {
                            self.frames.push(Frame::RememberLet(at, index.clone()));
                            self.frames.push(Frame::Eval(*term, index));
                        }
                    }
                    return Ok(());
                }
                _ => {}
            }
        }
        match self.evaluator.memory.get(&name) {
            Some(Stored::Whole(tensor)) => {
                self.values.push(tensor.get(&index).cloned().ok_or_else(|| outside(&index))?);
            }
            Some(Stored::OnDemand { term, known }) => match known.get(&index) {
                Some(value) => self.values.push(value.clone()),
                None => {
                    self.frames.push(Frame::RememberBinding(name, index.clone()));
                    self.frames.push(Frame::Eval(*term, index));
                }
            },
            None => return Err(outside(&index)),
        }
        Ok(())
    }

    fn reduce(&mut self, mut r: Box<Reducing<D::Value>>) -> Result<(), EvalError> {
        if r.pending {
            let value = self.pop()?;
            self.end_step(&value);
            let domain = self.evaluator.domain;
            r.sum = Some(match (r.op, r.sum) {
                (ReduceOp::Sum, Some(sum)) => domain.sum(r.elem, &sum, &value)?,
                (op, Some(sum)) => domain.binary(op.combine(), r.elem, &sum, &value)?,
                (_, None) => domain.computed(value),
            });
        }
        while r.next < r.hi {
            let name = match self.scope[r.bound] {
                InScope::Index(name, _) => name,
                _ => return Err(EvalError::EmptyReduction),
            };
            self.scope[r.bound] = InScope::Index(name, r.next);
            r.next += 1;
            if self.holds(&r.cond)? {
                self.begin_step(|| TraceStep::Term(name, r.next - 1));
                r.pending = true;
                let body = Frame::Eval(r.body, r.index.clone());
                self.frames.push(Frame::Reduce(r));
                self.frames.push(body);
                return Ok(());
            }
            self.evaluator.fuel = self.evaluator.fuel.checked_sub(1).ok_or(EvalError::Fuel)?;
        }
        self.scope.truncate(r.bound);
        let value = r.sum.ok_or(EvalError::EmptyReduction)?;
        self.end_step(&value);
        self.values.push(value);
        Ok(())
    }

    /// Everything bound around a term, as a key. Indices (steps too) have values; those and its term say what a `let` or
    /// a state is.
    fn surroundings(&self) -> Vec<(Name, i64)> {
        let stamp = |bound: &InScope<D::Value>| match bound {
            InScope::Index(name, value) => (*name, *value),
            InScope::State(name, _, term) | InScope::Let(name, term, _) => (*name, term.index() as i64),
        };
        self.scope.iter().map(stamp).collect()
    }

    /// The end of an iteration: the element that is wanted now; the rest is kept. A scalar is all that there is.
    fn iterated(&mut self, it: Iterating<D::Value>, result: Tensor<D::Value>) -> Result<(), EvalError> {
        let value = result.get(&it.index).cloned();
        if !it.index.is_empty() {
            self.remembered = self.remembered.saturating_add(result.data().len());
            if self.remembered > MOST_REMEMBERED {
                self.iterated.clear();
                self.remembered = result.data().len();
            }
            self.iterated.insert(it.key, result);
        }
        let value = value.ok_or_else(|| EvalError::OutOfBounds(format!("iterate{:?}", it.index)))?;
        self.end_step(&value);
        self.values.push(value);
        Ok(())
    }

    fn iterate(&mut self, mut it: Box<Iterating<D::Value>>) -> Result<(), EvalError> {
        let Term::Iterate(_, step, states, at) = self.evaluator.program.terms.get(it.term) else { return Ok(()) };
        if std::mem::take(&mut it.pending) {
            let value = self.pop()?;
            it.current.push(self.evaluator.domain.computed(value));
        }
        loop {
            // Complete states and steps until an element is missing.
            if it.done.len() == states.len() {
                it.step += 1;
                self.scope.truncate(it.bound);
                if it.step == it.times {
                    let result = it.done.swap_remove(*at);
                    return self.iterated(*it, result);
                }
                let now = states.iter().zip(it.done.drain(..));
                self.scope.push(InScope::Index(*step, it.step));
                self.scope.extend(now.map(|(state, tensor)| InScope::State(state.name, tensor, it.term)));
            }
            let shape = &it.shapes[it.done.len()];
            let count = shape.iter().try_fold(1usize, |n, &size| n.checked_mul(size)).ok_or(EvalError::Memory)?;
            if it.current.len() < count {
                let index = index_of(shape, it.current.len());
                let state = &states[it.done.len()];
                let term = if it.step < 0 { state.init } else { state.next };
                it.pending = true;
                self.frames.push(Frame::Iterate(it));
                self.frames.push(Frame::Eval(term, index));
                return Ok(());
            }
            let data = std::mem::take(&mut it.current);
            it.done.push(Tensor::new(shape.clone(), data).ok_or(EvalError::Memory)?);
            self.evaluator.fuel = self.evaluator.fuel.checked_sub(1).ok_or(EvalError::Fuel)?;
        }
    }
}

fn take_first(index: &mut Vec<i64>) -> Result<i64, EvalError> {
    if index.is_empty() {
        return Err(EvalError::OutOfBounds("a tensor where an element is needed".into()));
    }
    Ok(index.remove(0))
}
