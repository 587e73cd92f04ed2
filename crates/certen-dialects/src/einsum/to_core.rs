//! An einsum as a program of Core, with a symbolic size for each index.
//!
//! Each step is a binding: a generation over the kept indices of nested sums of a product, from left to right. A
//! dimension that is stretched has the literal size 1 and is read at 0; a diagonal is an index that is read twice.
//! Names are numbered as indices are, so that two einsums that differ in letters, or in sizes, are one program.
//!
//! Where the result has a last index along which neighbours can be computed together ([`Einsum::is_in_rows`]), the terms of an
//! element are added in the order of the indices. Elsewhere, as in a sum of all elements, the innermost sum is made in eight
//! lanes, so that the additions of one element do not all wait for each other: lane l sums the products at 8 q + l, then
//! the lanes are summed, and what is left at the end is added.

use certen_core::{
    Binary, Binding, ElemType, Parameter, Program, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError,
};
use certen_index::{Cond, Facts, Ix};
use certen_syntax::Name;

use super::resolve::{Axis, Einsum, Product};

impl Einsum {
    /// The program that makes these steps, the last of which makes the output, `result`. Its inputs are the operands.
    ///
    /// # Errors
    /// If the elements cannot be multiplied and added, or a step does not fit the einsum.
    pub fn to_core(&self, steps: &[Product], elem: ElemType) -> Result<Program, TypeError> {
        let mut facts = Facts::new();
        let sizes: Vec<Name> = (1..=self.indices().len()).map(|at| numbered("n", at)).collect();
        for size in &sizes {
            facts.assume(Cond::Ge(Ix::var(*size)));
        }
        let mut builder = Builder { einsum: self, steps, elem, terms: Terms::new(facts), sizes, bindings: Vec::new() };
        let inputs = (0..self.operands().len()).map(|at| Parameter { name: builder.name(at), ty: builder.ty(at) });
        let inputs: Vec<Parameter> = inputs.collect();
        for (at, step) in steps.iter().enumerate() {
            let value = self.operands().len() + at;
            if step.factors.iter().any(|factor| *factor >= value) {
                return Err(TypeError("a step multiplies what a later one makes".into()));
            }
            let (name, term) = (builder.name(value), builder.step(step)?);
            builder.bindings.push(Binding { name, term });
        }
        let result = Name::new("result");
        let program = Program {
            name: Name::new("einsum"),
            sizes: builder.sizes.clone(),
            facts: builder.sizes.iter().map(|size| Cond::Ge(Ix::var(*size))).collect(),
            inputs,
            bindings: builder.bindings,
            outputs: vec![(result, result)],
            terms: builder.terms,
        };
        program.check().map_err(|error| TypeError(error.to_string()))?;
        Ok(program)
    }

    /// Whether the result of a step is computed in rows, along its last index. Otherwise the innermost sum, if there is one,
    /// is made in lanes.
    pub fn is_in_rows(&self, steps: &[Product], step: &Product) -> bool {
        let Some(&row) = step.kept.last() else { return false };
        let fits =
            |factor: &usize| self.walk(steps, *factor, row) != Stride::Jumps || self.is_reused(steps, step, *factor);
        !self.summed(steps, step).is_empty() && step.factors.iter().all(fits)
    }

    /// How a factor lies along an index.
    fn walk(&self, steps: &[Product], factor: usize, row: usize) -> Stride {
        let axes = self.axes(steps, factor);
        match axes.iter().position(|axis| *axis == Axis::Index(row)) {
            None => Stride::Stands,
            Some(at) if at + 1 == axes.len() => Stride::Goes,
            Some(_) => Stride::Jumps,
        }
    }

    /// Whether elements of a factor are read more than once: there is an index that it does not have.
    fn is_reused(&self, steps: &[Product], step: &Product, factor: usize) -> bool {
        let axes = self.axes(steps, factor);
        let all = step.kept.iter().chain(&self.summed(steps, step)).copied().collect::<Vec<_>>();
        all.iter().any(|index| !axes.contains(&Axis::Index(*index)))
    }
}

/// How a factor lies along an index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stride {
    /// It does not depend on it.
    Stands,
    /// Neighbours are neighbours in memory.
    Goes,
    /// Neighbours are apart.
    Jumps,
}

fn numbered(base: &str, at: usize) -> Name {
    Name::new(&format!("{base}{at}"))
}

/// How many lanes a sum has.
const LANES: i64 = 8;

/// Where an index stands.
type At<'a> = dyn Fn(usize) -> Result<Ix, TypeError> + 'a;

struct Builder<'a> {
    einsum: &'a Einsum,
    steps: &'a [Product],
    elem: ElemType,
    terms: Terms,
    /// The symbolic size of each index.
    sizes: Vec<Name>,
    bindings: Vec<Binding>,
}

impl Builder<'_> {
    /// What an operand or the result of a step is called.
    fn name(&self, value: usize) -> Name {
        let operands = self.einsum.operands().len();
        match value.checked_sub(operands) {
            None => numbered("x", value + 1),
            Some(step) if step + 1 == self.steps.len() => Name::new("result"),
            Some(step) => numbered("t", step + 1),
        }
    }

    fn size(&self, index: usize) -> Ix {
        Ix::var(self.sizes[index])
    }

    fn ty(&self, value: usize) -> TensorType {
        let size = |axis: &Axis| match axis {
            Axis::Index(index) => self.size(*index),
            Axis::One => Ix::from(1),
        };
        let shape: Vec<Ix> = self.einsum.axes(self.steps, value).iter().map(size).collect();
        TensorType::new(self.elem, shape)
    }

    fn step(&mut self, step: &Product) -> Result<TermId, TypeError> {
        let mut summed = self.einsum.summed(self.steps, step);
        let in_lanes = if self.einsum.is_in_rows(self.steps, step) { None } else { summed.pop() };
        let mut term = match in_lanes {
            Some(last) => self.lanes(step, last)?,
            None => self.product(step, &|index| Ok(Ix::var(numbered("i", index + 1))))?,
        };
        for index in summed.iter().rev() {
            term = self.sum(*index, term)?;
        }
        for index in step.kept.iter().rev() {
            term = self.generation(*index, term)?;
        }
        Ok(term)
    }

    /// The product of a step's factors, each index being what it is at.
    fn product(&mut self, step: &Product, at: &At<'_>) -> Result<TermId, TypeError> {
        let mut product = None;
        for factor in &step.factors {
            let element = self.element(*factor, at)?;
            product = Some(match product {
                None => element,
                Some(left) => self.terms.add(Term::Binary(Binary::Mul, left, element))?,
            });
        }
        product.ok_or_else(|| TypeError("a product of nothing".into()))
    }

    /// A sum of products in lanes.
    fn lanes(&mut self, step: &Product, index: usize) -> Result<TermId, TypeError> {
        let (q, l, lanes) = (Name::new("q"), Name::new("l"), Name::new("lanes"));
        let blocks = self.size(index).floor_div(LANES)?;
        let place = Ix::var(q).scale(LANES)?.add(&Ix::var(l))?;
        let own = |other: usize| Ok(Ix::var(numbered("i", other + 1)));
        let product = self.product(step, &|other| if other == index { Ok(place.clone()) } else { own(other) })?;
        let block = self.terms.add(Term::Gen(l, Range::to(Ix::from(LANES)), product))?;
        let sums = Term::Reduce(ReduceOp::Sum, q, Range::to(blocks.clone()), Cond::always(), block);
        let sums = self.terms.add(sums)?;
        let lane = self.terms.element(lanes, self.terms.ty(sums).clone(), [Ix::var(l)])?;
        let all = Term::Reduce(ReduceOp::Sum, l, Range::to(Ix::from(LANES)), Cond::always(), lane);
        let all = self.terms.add(all)?;
        let whole = self.terms.add(Term::Let(lanes, sums, all))?;
        let product = self.product(step, &own)?;
        let range = Range { lo: blocks.scale(LANES)?, hi: self.size(index) };
        let rest = Term::Reduce(ReduceOp::Sum, numbered("i", index + 1), range, Cond::always(), product);
        let rest = self.terms.add(rest)?;
        self.terms.add(Term::Binary(Binary::Add, whole, rest))
    }

    /// An element of an operand or of the result of a step, at the indices that walk along it.
    fn element(&mut self, value: usize, at: &At<'_>) -> Result<TermId, TypeError> {
        let read = |axis: &Axis| match axis {
            Axis::Index(index) => at(*index),
            Axis::One => Ok(Ix::from(0)),
        };
        let indices = self.einsum.axes(self.steps, value).iter().map(read).collect::<Result<Vec<Ix>, _>>()?;
        self.terms.element(self.name(value), self.ty(value), indices)
    }

    fn generation(&mut self, index: usize, body: TermId) -> Result<TermId, TypeError> {
        self.terms.add(Term::Gen(numbered("i", index + 1), Range::to(self.size(index)), body))
    }

    fn sum(&mut self, index: usize, body: TermId) -> Result<TermId, TypeError> {
        let range = Range::to(self.size(index));
        self.terms.add(Term::Reduce(ReduceOp::Sum, numbered("i", index + 1), range, Cond::always(), body))
    }
}
