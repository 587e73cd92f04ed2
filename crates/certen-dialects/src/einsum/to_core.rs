//! An einsum as a program of Core, with a symbolic size for each index.
//!
//! Each step is a binding: a generation over the kept indices of nested sums of a product, from left to right. A dimension
//! that is stretched has the literal size 1 and is read at 0; a diagonal is an index that is read twice. Names are
//! numbered as indices are, so that two einsums that differ in letters, or in sizes, are one program.
//!
//! The order of loops is not the order of operations: if there is one sum, and the last index of the result is the last one
//! of whatever factor has it, then the sum stands outside of that generation. The same products are added to each element in
//! the same order, but neighbours in memory one after the other, which C compilers make vectors of.

use certen_core::{
    Binary, Binding, ElemType, Parameter, Program, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError,
};
use certen_index::{Cond, Facts, Ix};
use certen_syntax::Name;

use super::resolve::{Axis, Einsum, Step};

impl Einsum {
    /// The program that makes these steps, the last of which makes the output, `result`. Its inputs are the operands.
    ///
    /// # Errors
    /// If the elements cannot be multiplied and added, or a step does not fit the einsum.
    pub fn to_core(&self, steps: &[Step], elem: ElemType) -> Result<Program, TypeError> {
        let mut facts = Facts::new();
        let sizes: Vec<Name> = (1..=self.indices().len()).map(|at| numbered("n", at)).collect();
        for size in &sizes {
            facts.assume(Cond::Ge(Ix::var(*size)));
        }
        let mut builder = Builder { einsum: self, steps, elem, terms: Terms::new(facts), sizes };
        let inputs = (0..self.operands().len()).map(|at| Parameter { name: builder.name(at), ty: builder.ty(at) });
        let inputs: Vec<Parameter> = inputs.collect();
        let mut bindings = Vec::with_capacity(steps.len());
        for (at, step) in steps.iter().enumerate() {
            let value = self.operands().len() + at;
            if step.factors.iter().any(|factor| *factor >= value) {
                return Err(TypeError("a step multiplies what a later one makes".into()));
            }
            bindings.push(Binding { name: builder.name(value), term: builder.step(step)? });
        }
        let result = Name::new("result");
        let program = Program {
            name: Name::new("einsum"),
            sizes: builder.sizes,
            facts: Vec::new(),
            inputs,
            bindings,
            outputs: vec![(result, result)],
            terms: builder.terms,
        };
        program.check().map_err(|error| TypeError(error.to_string()))?;
        Ok(program)
    }
}

fn numbered(base: &str, at: usize) -> Name {
    Name::new(&format!("{base}{at}"))
}

struct Builder<'a> {
    einsum: &'a Einsum,
    steps: &'a [Step],
    elem: ElemType,
    terms: Terms,
    /// The symbolic size of each index.
    sizes: Vec<Name>,
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

    fn step(&mut self, step: &Step) -> Result<TermId, TypeError> {
        let mut product = None;
        for factor in &step.factors {
            let read = |axis: &Axis| match axis {
                Axis::Index(index) => Ix::var(numbered("i", index + 1)),
                Axis::One => Ix::from(0),
            };
            let indices: Vec<Ix> = self.einsum.axes(self.steps, *factor).iter().map(read).collect();
            let element = self.terms.element(self.name(*factor), self.ty(*factor), indices)?;
            product = Some(match product {
                None => element,
                Some(left) => self.terms.add(Term::Binary(Binary::Mul, left, element))?,
            });
        }
        let mut term = product.ok_or_else(|| TypeError("a product of nothing".into()))?;
        let mut kept = step.kept.clone();
        let summed = self.einsum.summed(self.steps, step);
        if let ([_], Some(&last)) = (summed.as_slice(), kept.last())
            && self.is_row(step, last)
        {
            kept.pop();
            term = self.generation(last, term)?;
        }
        for index in summed.iter().rev() {
            let range = Range::to(self.size(*index));
            let name = numbered("i", index + 1);
            term = self.terms.add(Term::Reduce(ReduceOp::Sum, name, range, Cond::always(), term))?;
        }
        for index in kept.iter().rev() {
            term = self.generation(*index, term)?;
        }
        Ok(term)
    }

    fn generation(&mut self, index: usize, body: TermId) -> Result<TermId, TypeError> {
        self.terms.add(Term::Gen(numbered("i", index + 1), Range::to(self.size(index)), body))
    }

    /// Whether an index is at most the last one of each factor.
    fn is_row(&self, step: &Step, index: usize) -> bool {
        step.factors.iter().all(|factor| match self.einsum.axes(self.steps, *factor).split_last() {
            Some((_, others)) => !others.contains(&Axis::Index(index)),
            None => true,
        })
    }
}
