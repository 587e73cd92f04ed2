//! An oracle for bounds: walks over a function at given sizes and looks at every access, one after the other.
//!
//! Data never becomes an index, so no data is needed: the indices of every access follow from the sizes and from the
//! indices around it. Conditions on indices are lazy and the first partition wins, as the language says. A call is looked
//! at from outside: whether its sizes satisfy what the function asks for. A truncation may cut what [`Padding`] says to
//! be padding. Nothing here knows of the prover.

use std::collections::BTreeMap;

use certen_core::ReduceOp;
use certen_index::{Cond, Ix};
use certen_lang::typed::{
    Block, Call, Expr, FoldOp, Function, Generator, Iterate, Kind, Partition, Range, Rhs, Side, Slot, WithDefault,
};
use certen_syntax::{Name, Span};

use crate::padding::{Env, Padding};

/// Something that is out of bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// Where it stands.
    pub span: Span,
    pub what: What,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum What {
    /// A selection: the indices, and the shape that it is from.
    Access(Vec<i64>, Vec<i64>),
    /// A part that is not in the result.
    Leaves,
    /// A call that breaks the function's conditions.
    Called,
    /// A minimum or maximum of nothing.
    Nothing,
    /// An amount of padding or truncation.
    Amount,
    /// A truncation of something that is computed.
    Cut,
}

/// A walk that ended before its end: it takes too many steps, or has found enough.
pub struct Stop;

/// The sizes of a function.
pub type Sizes = Vec<(Name, i64)>;

/// Whether sizes satisfy what a function asks for.
pub fn allowed(function: &Function, sizes: &Sizes) -> bool {
    function.facts.iter().all(|fact| holds(fact, sizes))
}

/// Everything that is out of bounds in a function at some sizes, up to a number of faults and of steps.
pub fn trace<'a>(
    functions: &'a [Function],
    function: &'a Function,
    sizes: &Sizes,
    most: usize,
    steps: &mut u64,
) -> Vec<Fault> {
    let env = Env { values: sizes.clone(), tensors: BTreeMap::new() };
    let mut walk = Walk { functions, env, steps, most, faults: Vec::new() };
    // A walk that stopped has found what it has found.
    let _ = walk.block(&function.body);
    walk.faults
}

pub struct Walk<'a, 's> {
    pub functions: &'a [Function],
    env: Env<'a>,
    pub steps: &'s mut u64,
    most: usize,
    faults: Vec<Fault>,
}

pub fn holds(cond: &Cond, values: &Sizes) -> bool {
    let value = |name: Name| values.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| *value);
    cond.eval(&value).expect("a condition has a value")
}

impl<'a> Walk<'a, '_> {
    fn ix(&self, ix: &Ix) -> i64 {
        self.env.ix(ix)
    }

    fn fault(&mut self, span: Span, what: What) -> Result<(), Stop> {
        self.faults.push(Fault { span, what });
        if self.faults.len() < self.most { Ok(()) } else { Err(Stop) }
    }

    fn all(&self, parts: &[Ix]) -> Vec<i64> {
        parts.iter().map(|part| self.ix(part)).collect()
    }

    fn block(&mut self, block: &'a Block) -> Result<(), Stop> {
        for binding in &block.lets {
            self.env.bind(binding);
            match &binding.value {
                Rhs::Expr(e) => self.expr(e)?,
                Rhs::Call(call) => {
                    let span = call.args.first().map_or(Span::default(), |arg| arg.span);
                    self.call(call, span)?;
                }
                Rhs::Iterate(iterate) => self.iterate(iterate)?,
            }
        }
        block.results.iter().try_for_each(|result| self.expr(result))
    }

    fn expr(&mut self, e: &'a Expr) -> Result<(), Stop> {
        *self.steps = self.steps.checked_sub(1).ok_or(Stop)?;
        match &e.kind {
            Kind::Var(_) | Kind::Literal(_) | Kind::Epsilon | Kind::Index(_) => Ok(()),
            Kind::Stack(parts) => parts.iter().try_for_each(|part| self.expr(part)),
            Kind::Select(base, indices) => {
                self.expr(base)?;
                let (indices, shape) = (self.all(indices), self.all(&base.ty.shape));
                if indices.iter().zip(&shape).any(|(index, size)| !(0..*size).contains(index)) {
                    self.fault(e.span, What::Access(indices, shape))?;
                }
                Ok(())
            }
            Kind::Comprehension(partitions) => {
                let shape = self.all(&e.ty.shape);
                self.parts(partitions.iter().map(placed).collect(), Some(&shape), e.span)
            }
            Kind::With(with) => {
                match &with.default {
                    WithDefault::Cell(default) | WithDefault::Array(default) => self.expr(default)?,
                }
                let frame = self.all(&with.frame);
                self.parts(numbered(&with.generators), Some(&frame), e.span)
            }
            Kind::Fold(fold) => {
                self.expr(&fold.neutral)?;
                if let FoldOp::Function { next, .. } = &fold.op {
                    self.expr(next)?;
                }
                self.parts(numbered(&fold.generators), None, e.span)
            }
            Kind::Unary(_, a) | Kind::Cast(a) | Kind::Flatten(a) | Kind::Split(_, a) => self.expr(a),
            Kind::Transpose(a) | Kind::Reshape(a) | Kind::Stored(a) => self.expr(a),
            Kind::Binary(_, a, b) | Kind::Concat(a, b) => self.expr(a).and_then(|()| self.expr(b)),
            Kind::Choose(c, a, b) => {
                self.expr(c)?;
                self.expr(a)?;
                self.expr(b)
            }
            Kind::If(cond, then, otherwise) => self.expr(if holds(cond, &self.env.values) { then } else { otherwise }),
            Kind::Guard(cond, body) => {
                if holds(cond, &self.env.values) {
                    self.expr(body)
                } else {
                    Ok(())
                }
            }
            Kind::Reduce(op, axes, body) => {
                let shape = self.all(&body.ty.shape);
                if matches!(op, ReduceOp::Min | ReduceOp::Max) && axes.iter().any(|axis| shape[*axis] <= 0) {
                    self.fault(e.span, What::Nothing)?;
                }
                self.expr(body)
            }
            Kind::Call(call) => self.call(call, e.span),
            Kind::Iterate(iterate) => self.iterate(iterate),
            Kind::Block(block) => self.block(block),
            Kind::Pad(Side::Left | Side::Right, amount, body) => {
                if self.ix(amount) < 0 {
                    self.fault(e.span, What::Amount)?;
                }
                self.expr(body)
            }
            Kind::Trunc(side, amount, body) => {
                let (amount, shape) = (self.ix(amount), self.all(&body.ty.shape));
                if !(0..=shape[0]).contains(&amount) {
                    self.fault(e.span, What::Amount)?;
                }
                let rows = match side {
                    Side::Left => 0..amount.clamp(0, shape[0]),
                    Side::Right => (shape[0] - amount).clamp(0, shape[0])..shape[0],
                };
                let env = self.env.clone();
                let mut pads = Padding { functions: self.functions, steps: self.steps };
                if !rows
                    .into_iter()
                    .map(|row| pads.row(&env, body, row))
                    .collect::<Result<Vec<bool>, Stop>>()?
                    .iter()
                    .all(|pads| *pads)
                {
                    self.fault(e.span, What::Cut)?;
                }
                self.expr(body)
            }
        }
    }

    /// Every index of every part, where no earlier part has it; each must be in the shape.
    fn parts(&mut self, parts: Vec<Part<'a>>, shape: Option<&[i64]>, span: Span) -> Result<(), Stop> {
        let mut before: Vec<Vec<(usize, i64, i64)>> = Vec::new();
        for (indices, body) in parts {
            let ends: Vec<(usize, i64, i64)> =
                indices.iter().map(|(_, dim, range)| (*dim, self.ix(&range.lower), self.ix(&range.upper))).collect();
            if ends.iter().all(|(_, lower, upper)| lower < upper) {
                let mut at: Vec<i64> = ends.iter().map(|(_, lower, _)| *lower).collect();
                loop {
                    if let Some(shape) = shape
                        && ends.iter().zip(&at).any(|((dim, ..), at)| !(0..shape[*dim]).contains(at))
                    {
                        self.fault(span, What::Leaves)?;
                    }
                    let taken = |part: &Vec<(usize, i64, i64)>| {
                        part.iter().all(|(dim, lower, upper)| match ends.iter().position(|(own, ..)| own == dim) {
                            Some(own) => (*lower..*upper).contains(&at[own]),
                            None => *lower <= 0 && shape.is_some_and(|shape| shape[*dim] <= *upper),
                        })
                    };
                    if !before.iter().any(taken) {
                        let known = self.env.values.len();
                        self.env.values.extend(indices.iter().zip(&at).map(|((name, ..), at)| (*name, *at)));
                        let made = self.expr(body);
                        self.env.values.truncate(known);
                        made?;
                    }
                    // The next index, the last dimension first.
                    let Some(place) = (0..at.len()).rev().find(|&place| at[place] + 1 < ends[place].2) else { break };
                    at[place] += 1;
                    for later in place + 1..at.len() {
                        at[later] = ends[later].1;
                    }
                }
            }
            before.push(ends);
        }
        Ok(())
    }

    fn call(&mut self, call: &'a Call, span: Span) -> Result<(), Stop> {
        call.args.iter().try_for_each(|arg| self.expr(arg))?;
        let callee = &self.functions[call.function];
        let sizes = callee.sizes.iter().map(|size| size.name).zip(self.all(&call.sizes)).collect();
        if !allowed(callee, &sizes) {
            self.fault(span, What::Called)?;
        }
        Ok(())
    }

    fn iterate(&mut self, iterate: &'a Iterate) -> Result<(), Stop> {
        iterate.states.iter().try_for_each(|(_, init)| self.expr(init))?;
        for step in 0..self.ix(&iterate.times) {
            self.env.values.push((iterate.step, step));
            let made = self.block(&iterate.body);
            self.env.values.pop();
            made?;
        }
        Ok(())
    }
}

/// The indices of a part with the dimensions that they belong to, and its body.
pub type Part<'a> = (Vec<(Name, usize, &'a Range)>, &'a Expr);

/// The same of a partition.
pub fn placed(partition: &Partition) -> Part<'_> {
    let mut dim = 0;
    let mut places = Vec::new();
    for slot in &partition.pattern {
        match slot {
            Slot::Index(name) => {
                places.push((*name, dim));
                dim += 1;
            }
            Slot::Dots(count) => dim += count,
        }
    }
    let index = |((name, dim), range)| (name, dim, range);
    (places.into_iter().zip(&partition.ranges).map(index).collect(), &partition.body)
}

pub fn numbered(generators: &[Generator]) -> Vec<Part<'_>> {
    generators.iter().map(numbered_part).collect()
}

fn numbered_part(generator: &Generator) -> Part<'_> {
    let indices = generator.indices.iter().enumerate().map(|(dim, (name, range))| (*name, dim, range));
    (indices.collect(), &generator.body)
}
