//! What a [`Sample`]'s types and values are, said a second time: for concrete sizes, on whole tensors.
//!
//! [`rule`] is TeIL's Fig. 8, and the model language's Fig. 9, on numbers. [`run`] evaluates statement by statement and builds every intermediate tensor, outer
//! products too. Selecting, repeating and exchanging dimensions is reading with other strides, so that nothing here
//! looks like Fig. 6, which is about indices.

use std::collections::HashSet;

use certen_core::{Binary, Domain, ElemType, Fault, ReduceOp, Tensor};
use certen_dialects::algebra::Arith;

use crate::sample::{Expr, Pair, Sample};

/// The shape of an expression whose parts have these shapes; none if no rule of Fig. 8 fits.
pub fn rule(sample: &Sample, expr: &Expr, parts: &[Vec<i64>]) -> Option<Vec<i64>> {
    let exists = |i: usize| (1..=parts[0].len()).contains(&i).then_some(i - 1);
    let pair = |i0: usize, i1: usize| {
        let (i0, i1) = (exists(i0)?, exists(i1)?);
        (i0 != i1).then_some((i0.min(i1), i0.max(i1)))
    };
    let disjoint = |pairs: &[Pair]| {
        let all: HashSet<usize> = pairs.iter().flat_map(|(i0, i1)| [*i0, *i1]).collect();
        (all.len() == 2 * pairs.len() && all.iter().all(|i| exists(*i).is_some())).then(|| pairs.to_vec())
    };
    let mut shape = parts.first().cloned().unwrap_or_default();
    match expr {
        Expr::Var(tensor) => {
            let declared = &sample.tensors.get(*tensor)?.shape;
            shape = declared.iter().map(|size| sample.value(*size)).collect();
        }
        Expr::Paren(_) => {}
        Expr::Elem(Arith::Mul, ..) if parts[0].is_empty() => return Some(parts[1].clone()),
        Expr::Elem(Arith::Div, ..) if parts[1].is_empty() => {}
        Expr::Elem(..) => return (parts[0] == parts[1]).then_some(shape),
        Expr::Prod(..) => shape.extend(&parts[1]),
        Expr::Red(_, i, _) => drop(shape.remove(exists(*i)?)),
        Expr::Transp(pairs, _) => {
            for (i0, i1) in disjoint(pairs)? {
                shape.swap(i0 - 1, i1 - 1);
            }
        }
        Expr::Diag(i0, i1, _) => {
            let (i0, i1) = pair(*i0, *i1)?;
            return (shape.remove(i1) == shape[i0]).then_some(shape);
        }
        Expr::Contr(pairs, _) => {
            let pairs = disjoint(pairs)?;
            let gone: Vec<usize> = pairs.iter().flat_map(|(i0, i1)| [*i0, *i1]).collect();
            let equal = pairs.iter().all(|(i0, i1)| shape[i0 - 1] == shape[i1 - 1]);
            return equal.then(|| (1..).zip(shape).filter(|(at, _)| !gone.contains(at)).map(|(_, n)| n).collect());
        }
        Expr::Expa(i, n, _) => {
            let at = (1..=shape.len() + 1).contains(i).then_some(i - 1)?;
            shape.insert(at, Some(sample.value(*n)).filter(|n| *n >= 1)?);
        }
        Expr::Proj(i, m, _) => {
            let size = shape.remove(exists(*i)?);
            (1..=size).contains(&sample.value(*m)).then_some(())?;
        }
        Expr::Scale(n, _) | Expr::Power(n, _) => return (sample.value(*n) >= 1).then_some(shape),
    }
    Some(shape)
}

/// The shapes of an expression and everything in it, parts first; none if it has no type.
pub fn shapes(sample: &Sample, expr: &Expr) -> Option<Vec<Vec<i64>>> {
    let mut all = Vec::new();
    let mut own = Vec::new();
    for part in expr.parts() {
        all.extend(shapes(sample, part)?);
        own.push(all.last().cloned()?);
    }
    all.push(rule(sample, expr, &own)?);
    Some(all)
}

/// Runs a program: the memory after its last statement, from the memory before the first one.
///
/// # Errors
/// If the domain has no value for an operation.
///
/// # Panics
/// If the program is not well-typed.
pub fn run<D: Domain>(
    sample: &Sample,
    domain: &D,
    mut memory: Vec<Tensor<D::Value>>,
) -> Result<Vec<Tensor<D::Value>>, Fault> {
    for (target, value) in &sample.stmts {
        memory[*target] = eval(sample, domain, &memory, value)?;
    }
    Ok(memory)
}

fn eval<D: Domain>(
    sample: &Sample,
    domain: &D,
    memory: &[Tensor<D::Value>],
    expr: &Expr,
) -> Result<Tensor<D::Value>, Fault> {
    let parts =
        expr.parts().into_iter().map(|part| eval(sample, domain, memory, part)).collect::<Result<Vec<_>, _>>()?;
    let apply = |op, a: &D::Value, b: &D::Value| domain.binary(op, ElemType::F64, a, b);
    let each = |op| {
        let pairs = parts[0].data().iter().zip(parts[1].data());
        Ok(tensor(parts[0].shape().to_vec(), pairs.map(|(a, b)| apply(op, a, b)).collect::<Result<_, Fault>>()?))
    };
    // Every element of the left one times the whole right one.
    let outer = || {
        let (left, right) = (&parts[0], &parts[1]);
        let all = left.data().iter().flat_map(|a| right.data().iter().map(move |b| apply(Binary::Mul, a, b)));
        Ok(tensor([left.shape(), right.shape()].concat(), all.collect::<Result<_, Fault>>()?))
    };
    match expr {
        Expr::Var(at) => Ok(memory[*at].clone()),
        Expr::Paren(_) => Ok(parts[0].clone()),
        Expr::Elem(Arith::Mul, ..) if parts[0].shape().is_empty() => outer(),
        Expr::Elem(Arith::Div, ..) if parts[1].shape().is_empty() => {
            let quotients = parts[0].data().iter().map(|a| apply(Binary::ControlledDiv, a, &parts[1].data()[0]));
            Ok(tensor(parts[0].shape().to_vec(), quotients.collect::<Result<_, Fault>>()?))
        }
        Expr::Elem(op, ..) => each(match op {
            Arith::Add => Binary::Add,
            Arith::Sub => Binary::Sub,
            Arith::Mul => Binary::Mul,
            Arith::Div => Binary::ControlledDiv,
        }),
        Expr::Prod(..) => outer(),
        Expr::Red(op, i, _) => reduce(domain, *op, &parts[0], i - 1),
        Expr::Transp(pairs, _) => {
            Ok(pairs.iter().fold(View::of(&parts[0]), |view, (i0, i1)| view.swap(i0 - 1, i1 - 1)).read())
        }
        Expr::Diag(i0, i1, _) => Ok(View::of(&parts[0]).diagonal(i0.min(i1) - 1, i0.max(i1) - 1).read()),
        // One pair after the other, the last one first: then the positions of the others need no correction.
        Expr::Contr(pairs, _) => {
            let mut pairs: Vec<Pair> = pairs.iter().map(|(i0, i1)| (*i0.min(i1), *i0.max(i1))).collect();
            pairs.sort_by_key(|(_, later)| std::cmp::Reverse(*later));
            let diagonals = pairs.iter().fold(View::of(&parts[0]), |view, (i0, i1)| view.diagonal(i0 - 1, i1 - 1));
            pairs.sort_by_key(|(first, _)| std::cmp::Reverse(*first));
            // Behind a diagonal's first dimension fewer are left than there were, before it as many.
            let left = |first: usize| first - 1 - pairs.iter().filter(|(_, later)| *later < first).count();
            pairs.iter().try_fold(diagonals.read(), |sum, (first, _)| reduce(domain, ReduceOp::Sum, &sum, left(*first)))
        }
        Expr::Expa(i, n, _) => Ok(View::of(&parts[0]).repeat(i - 1, sample.value(*n) as usize).read()),
        Expr::Proj(i, m, _) => Ok(View::of(&parts[0]).slice(i - 1, sample.value(*m) as usize - 1).read()),
        // Eq. 5 and its analogue, from right to left.
        Expr::Scale(n, _) | Expr::Power(n, _) => {
            let op = if matches!(expr, Expr::Scale(..)) { ReduceOp::Sum } else { ReduceOp::Prod };
            reduce(domain, op, &View::of(&parts[0]).repeat(0, sample.value(*n) as usize).read(), 0)
        }
    }
}

/// Folds blocks of the data: outer × size × inner.
fn reduce<D: Domain>(domain: &D, op: ReduceOp, of: &Tensor<D::Value>, at: usize) -> Result<Tensor<D::Value>, Fault> {
    let (before, rest) = of.shape().split_at(at);
    let (size, inner): (usize, usize) = (rest[0], rest[1..].iter().product());
    let mut data = Vec::new();
    for block in of.data().chunks(size * inner) {
        for first in 0..inner {
            let mut total = block[first].clone();
            for row in 1..size {
                total = domain.binary(op.combine(), ElemType::F64, &total, &block[row * inner + first])?;
            }
            data.push(total);
        }
    }
    Ok(tensor([before, &rest[1..]].concat(), data))
}

fn tensor<V>(shape: Vec<usize>, data: Vec<V>) -> Tensor<V> {
    Tensor::new(shape, data).expect("as many elements as the shape says")
}

/// A tensor read in another order: sizes, strides and a first element.
struct View<'a, V> {
    data: &'a [V],
    first: usize,
    dims: Vec<(usize, usize)>,
}

impl<'a, V: Clone> View<'a, V> {
    fn of(tensor: &'a Tensor<V>) -> Self {
        let stride = |at: usize| tensor.shape()[at + 1..].iter().product();
        let dims = tensor.shape().iter().enumerate().map(|(at, size)| (*size, stride(at))).collect();
        View { data: tensor.data(), first: 0, dims }
    }

    fn swap(mut self, i0: usize, i1: usize) -> Self {
        self.dims.swap(i0, i1);
        self
    }

    fn diagonal(mut self, i0: usize, i1: usize) -> Self {
        let (_, stride) = self.dims.remove(i1);
        self.dims[i0].1 += stride;
        self
    }

    fn repeat(mut self, at: usize, size: usize) -> Self {
        self.dims.insert(at, (size, 0));
        self
    }

    fn slice(mut self, at: usize, index: usize) -> Self {
        self.first += index * self.dims.remove(at).1;
        self
    }

    fn read(self) -> Tensor<V> {
        let mut places = vec![self.first];
        for (size, stride) in &self.dims {
            places = places.into_iter().flat_map(|place| (0..*size).map(move |i| place + i * stride)).collect();
        }
        let data = places.into_iter().map(|place| self.data[place].clone()).collect();
        tensor(self.dims.iter().map(|(size, _)| *size).collect(), data)
    }
}

impl Sample {
    /// A bound on the magnitude of everything that a run with [`Sample::elements`] computes, in any order. A quotient
    /// counts as a product: so what divides does not get out of hand, but there the bound does not hold.
    pub fn magnitude(&self) -> f64 {
        let first = if self.divides() { 5.0 } else { 2.0 };
        let mut bounds = vec![first; self.tensors.len()];
        let mut most: f64 = first;
        for (target, value) in &self.stmts {
            let (_, bound) = self.bound(value, &bounds);
            most = most.max(bound);
            bounds[*target] = bound;
        }
        most
    }

    /// The shape of an expression and a bound, at least 1, on all its intermediate values.
    fn bound(&self, expr: &Expr, bounds: &[f64]) -> (Vec<i64>, f64) {
        let parts: Vec<(Vec<i64>, f64)> = expr.parts().into_iter().map(|part| self.bound(part, bounds)).collect();
        let shapes: Vec<Vec<i64>> = parts.iter().map(|(shape, _)| shape.clone()).collect();
        let shape = rule(self, expr, &shapes).unwrap_or_default();
        let of = |at: usize| parts[at].1;
        let bound = match expr {
            Expr::Var(tensor) => bounds[*tensor],
            Expr::Elem(Arith::Add | Arith::Sub, ..) => of(0) + of(1),
            Expr::Elem(..) | Expr::Prod(..) => of(0) * of(1),
            Expr::Red(ReduceOp::Sum, i, _) => of(0) * parts[0].0[i - 1] as f64,
            Expr::Red(ReduceOp::Prod, i, _) => of(0).powf(parts[0].0[i - 1] as f64),
            Expr::Scale(n, _) => of(0) * self.value(*n) as f64,
            Expr::Power(n, _) => of(0).powf(self.value(*n) as f64),
            Expr::Contr(pairs, _) => pairs.iter().fold(of(0), |bound, (i0, _)| bound * parts[0].0[i0 - 1] as f64),
            _ => of(0),
        };
        (shape, bound)
    }
}
