//! An oracle for padding: whether an element of an expression is one that nothing computes, at given sizes and indices.
//!
//! By the words of ATL, Sec. 6, on the typed tree, element by element: a guard that does not hold, the rows of pads, the
//! end of the last block of a split, a sum of nothing else. Nothing here knows of Core or of the prover.

use std::collections::BTreeMap;
use std::rc::Rc;

use certen_core::ReduceOp;
use certen_index::Ix;
use certen_lang::typed::{Call, Expr, Function, Kind, Let, Rhs, Side, WithDefault};
use certen_syntax::Name;

use crate::trace::{Part, Sizes, Stop, holds, numbered, placed};

/// What names stand for.
#[derive(Clone)]
pub struct Env<'a> {
    pub values: Sizes,
    pub tensors: BTreeMap<Name, Meaning<'a>>,
}

#[derive(Clone)]
pub enum Meaning<'a> {
    /// A `let`: its indices are still around where its name is used.
    Expr(&'a Expr),
    /// One result of a call.
    Result(&'a Call, usize),
    /// A parameter: the argument, where the call stands.
    Argument(&'a Expr, Rc<Env<'a>>),
}

impl<'a> Env<'a> {
    pub fn ix(&self, ix: &Ix) -> i64 {
        let value = |name: Name| self.values.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value);
        ix.eval(&value).expect("an index has a value")
    }

    pub fn bind(&mut self, binding: &'a Let) {
        for (at, (name, _)) in binding.names.iter().enumerate() {
            let meaning = match &binding.value {
                Rhs::Expr(e) => Meaning::Expr(e),
                Rhs::Call(call) => Meaning::Result(call, at),
                Rhs::Iterate(_) => continue,
            };
            self.tensors.insert(*name, meaning);
        }
    }

    fn with(&self, names: impl Iterator<Item = (Name, i64)>) -> Env<'a> {
        let mut inner = self.clone();
        inner.values.extend(names);
        inner
    }
}

pub struct Padding<'a, 's> {
    pub functions: &'a [Function],
    pub steps: &'s mut u64,
}

/// Every index of a shape.
fn indices(shape: &[i64]) -> Vec<Vec<i64>> {
    shape.iter().fold(vec![Vec::new()], |all, size| {
        all.iter().flat_map(|index| (0..*size).map(move |i| [index.as_slice(), &[i]].concat())).collect()
    })
}

impl<'a> Padding<'a, '_> {
    /// Whether a whole row is padding.
    pub fn row(&mut self, env: &Env<'a>, e: &'a Expr, row: i64) -> Result<bool, Stop> {
        let inner: Vec<i64> = e.ty.shape[1..].iter().map(|size| env.ix(size)).collect();
        for rest in indices(&inner) {
            if !self.is(env, e, &[&[row], rest.as_slice()].concat())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is(&mut self, env: &Env<'a>, e: &'a Expr, index: &[i64]) -> Result<bool, Stop> {
        *self.steps = self.steps.checked_sub(1).ok_or(Stop)?;
        // A scalar stands for all elements.
        let index = if e.ty.rank() == 0 { &[] } else { index };
        let size = |e: &Expr, dim: usize| env.ix(&e.ty.shape[dim]);
        match &e.kind {
            Kind::Var(name) => match env.tensors.get(name) {
                Some(Meaning::Expr(e)) => self.is(env, e, index),
                Some(Meaning::Result(call, at)) => self.result(env, call, *at, index),
                Some(Meaning::Argument(e, outer)) => {
                    let outer = outer.clone();
                    self.is(&outer, e, index)
                }
                None => Ok(false),
            },
            Kind::Stack(parts) => self.is(env, &parts[index[0] as usize], &index[1..]),
            Kind::Select(base, own) => {
                let own: Vec<i64> = own.iter().map(|ix| env.ix(ix)).collect();
                self.is(env, base, &[own.as_slice(), index].concat())
            }
            Kind::Comprehension(partitions) => self.part(env, partitions.iter().map(placed).collect(), None, index),
            Kind::With(with) => self.part(env, numbered(&with.generators), Some(&with.default), index),
            Kind::If(cond, a, b) => self.is(env, if holds(cond, &env.values) { a } else { b }, index),
            Kind::Guard(cond, a) => Ok(!holds(cond, &env.values) || self.is(env, a, index)?),
            Kind::Stored(a) => self.is(env, a, index),
            Kind::Reduce(ReduceOp::Sum, axes, a) => {
                let summed: Vec<i64> = axes.iter().map(|axis| size(a, *axis)).collect();
                for at in indices(&summed) {
                    let (mut own, mut rest) = (at.iter().copied(), index.iter().copied());
                    let all: Vec<i64> = (0..a.ty.rank())
                        .filter_map(|dim| if axes.contains(&dim) { own.next() } else { rest.next() })
                        .collect();
                    if !self.is(env, a, &all)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Kind::Block(block) => {
                let mut inner = env.clone();
                block.lets.iter().for_each(|binding| inner.bind(binding));
                self.is(&inner, &block.results[0], index)
            }
            Kind::Call(call) => self.result(env, call, 0, index),
            Kind::Flatten(a) => {
                let inner = size(a, 1);
                self.is(env, a, &[&[index[0] / inner, index[0] % inner], &index[1..]].concat())
            }
            Kind::Split(k, a) => {
                let at = index[0] * k + index[1];
                Ok(at >= size(a, 0) || self.is(env, a, &[&[at], &index[2..]].concat())?)
            }
            Kind::Transpose(a) => self.is(env, a, &[&[index[1], index[0]], &index[2..]].concat()),
            Kind::Concat(a, b) => match index[0] - size(a, 0) {
                behind if behind >= 0 => self.is(env, b, &[&[behind], &index[1..]].concat()),
                _ => self.is(env, a, index),
            },
            Kind::Pad(side, k, a) => {
                let at = if *side == Side::Left { index[0] - env.ix(k) } else { index[0] };
                let outside = !(0..size(a, 0)).contains(&at);
                Ok(outside || self.is(env, a, &[&[at], &index[1..]].concat())?)
            }
            Kind::Trunc(side, k, a) => {
                let at = if *side == Side::Left { index[0] + env.ix(k) } else { index[0] };
                self.is(env, a, &[&[at], &index[1..]].concat())
            }
            Kind::Reshape(a) => {
                let place = e.ty.shape.iter().zip(index).fold(0, |place, (size, i)| place * env.ix(size) + i);
                let mut rest = place;
                let mut at: Vec<i64> = Vec::new();
                for size in a.ty.shape.iter().rev().map(|size| env.ix(size).max(1)) {
                    at.push(rest % size);
                    rest /= size;
                }
                at.reverse();
                self.is(env, a, &at)
            }
            Kind::Literal(_) | Kind::Epsilon | Kind::Index(_) | Kind::Unary(..) | Kind::Binary(..) => Ok(false),
            Kind::Choose(..) => Ok(false),
            Kind::Cast(_) | Kind::Reduce(..) | Kind::Fold(_) | Kind::Iterate(_) => Ok(false),
        }
    }

    /// The first part that has the index gives the element.
    fn part(
        &mut self,
        env: &Env<'a>,
        parts: Vec<Part<'a>>,
        default: Option<&'a WithDefault>,
        index: &[i64],
    ) -> Result<bool, Stop> {
        for (indices, body) in parts {
            let inside = |(_, dim, range): &(Name, usize, &certen_lang::typed::Range)| {
                (env.ix(&range.lower)..env.ix(&range.upper)).contains(&index[*dim])
            };
            if indices.iter().all(inside) {
                let inner = env.with(indices.iter().map(|(name, dim, _)| (*name, index[*dim])));
                let own = |dim: &usize| indices.iter().any(|(_, own, _)| own == dim);
                let rest: Vec<i64> = (0..index.len()).filter(|dim| !own(dim)).map(|dim| index[dim]).collect();
                return self.is(&inner, body, &rest);
            }
        }
        match default {
            Some(WithDefault::Array(array)) => self.is(env, array, index),
            Some(WithDefault::Cell(cell)) => {
                let rest = index.len() - cell.ty.rank();
                self.is(env, cell, &index[rest..])
            }
            None => Ok(false),
        }
    }

    fn result(&mut self, env: &Env<'a>, call: &'a Call, at: usize, index: &[i64]) -> Result<bool, Stop> {
        let callee = &self.functions[call.function];
        let values = callee.sizes.iter().zip(&call.sizes).map(|(size, value)| (size.name, env.ix(value))).collect();
        let outer = Rc::new(env.clone());
        let argument = |((name, _), arg): (&(Name, _), &'a Expr)| (*name, Meaning::Argument(arg, outer.clone()));
        let tensors = callee.params.iter().zip(&call.args).map(argument).collect();
        let mut inner = Env { values, tensors };
        callee.body.lets.iter().for_each(|binding| inner.bind(binding));
        // The functions of the prelude have no bodies here.
        callee.body.results.get(at).map_or(Ok(false), |result| self.is(&inner, result, index))
    }
}
