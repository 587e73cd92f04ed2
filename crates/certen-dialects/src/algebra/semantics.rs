//! The papers' own semantics over a memory μ: expressions by TeIL's Fig. 6 and the model language's Fig. 12, statements
//! and programs by TeIL's Fig. 9 and the model language's Fig. 11.
//!
//! A direct reading of the figures over any scalar domain. It is not on the road to machine code: it is what the road is
//! compared with, and what the type-safety theorem speaks of.

use std::collections::HashMap;

use certen_core::{Binary, Domain, ElemType, EvalError, Tensor};
use certen_index::Ix;
use certen_syntax::Name;

use super::ast::ExprId;
use super::fig6::{Equation, Reduction, equation};
use super::typed::Typed;

/// μ: a map from names to maps from indices to values. The domain of `μ x` is the shape of the tensor.
pub type Memory<V> = HashMap<Name, Tensor<V>>;

/// An evaluation of a typed program at concrete sizes.
pub struct Semantics<'a, D: Domain> {
    typed: &'a Typed,
    domain: &'a D,
    elem: ElemType,
    sizes: HashMap<Name, i64>,
    fuel: u64,
}

enum Task<V> {
    Eval(Equation<i64>),
    Combine(Binary),
    /// A reduction that has more indices to come.
    Reduce(Box<Reducing<V>>),
}

struct Reducing<V> {
    reduction: Reduction<i64>,
    next: i64,
    size: i64,
    sum: Option<V>,
    pending: bool,
}

impl<'a, D: Domain> Semantics<'a, D> {
    /// Prepares an evaluation; every size of the program has a value.
    pub fn new(
        typed: &'a Typed,
        domain: &'a D,
        elem: ElemType,
        sizes: impl IntoIterator<Item = (Name, i64)>,
        fuel: u64,
    ) -> Self {
        Semantics { typed, domain, elem, sizes: sizes.into_iter().collect(), fuel }
    }

    fn ix(&self, ix: &Ix) -> Result<i64, EvalError> {
        Ok(ix.eval(&|name| self.sizes.get(&name).copied())?)
    }

    /// The declared shape of a tensor, as numbers.
    pub fn shape(&self, name: Name) -> Result<Vec<usize>, EvalError> {
        let sizes = self.typed.declared(name).into_iter().flatten();
        sizes.map(|(size, _)| Ok(usize::try_from(self.ix(size)?).unwrap_or(0))).collect()
    }

    /// Eval-Prog and St-Seq: every statement in order, dead ones too.
    ///
    /// # Errors
    /// If an access is outside its tensor (which type safety excludes), or the domain or the fuel gives out.
    pub fn run(&mut self, mut memory: Memory<D::Value>) -> Result<Memory<D::Value>, EvalError> {
        for stmt in &self.typed.program.stmts {
            self.stmt(&mut memory, stmt.target, stmt.value)?;
        }
        Ok(memory)
    }

    /// St-Stmt: all values are computed in the old memory, then x is updated.
    fn stmt(&mut self, memory: &mut Memory<D::Value>, target: Name, value: ExprId) -> Result<(), EvalError> {
        let shape = self.shape(target)?;
        // ∀ k̄ ≤ ī. k̄ ∈ dom(μ x)
        if memory.get(&target).map(Tensor::shape) != Some(shape.as_slice()) {
            return Err(EvalError::OutOfBounds(format!("{target} = …")));
        }
        let mut index = vec![0i64; shape.len()];
        let updated = Tensor::from_fn(shape.clone(), |_| {
            let result = self.expr(memory, value, index.clone());
            for (i, &size) in index.iter_mut().zip(&shape).rev() {
                *i += 1;
                if *i < size as i64 {
                    break;
                }
                *i = 0;
            }
            result
        });
        memory.insert(target, updated.ok_or(EvalError::Memory)??);
        Ok(())
    }

    /// `[[e]] Γ μ ī`
    ///
    /// # Errors
    /// As [`Semantics::run`].
    pub fn expr(&mut self, memory: &Memory<D::Value>, id: ExprId, index: Vec<i64>) -> Result<D::Value, EvalError> {
        let mut tasks = vec![Task::Eval(Equation::Same((id, index)))];
        let mut values: Vec<D::Value> = Vec::new();
        while let Some(task) = tasks.pop() {
            self.fuel = self.fuel.checked_sub(1).ok_or(EvalError::Fuel)?;
            match task {
                Task::Eval(Equation::Same((id, index))) => {
                    let literal = |m: &Ix| self.ix(m).map_or(-1, |m| m - 1);
                    tasks.push(Task::Eval(equation(self.typed, id, index, literal)));
                }
                Task::Eval(Equation::Read(_, name, index)) => {
                    let value = memory.get(&name).and_then(|tensor| tensor.get(&index));
                    let outside = || EvalError::OutOfBounds(format!("{name}{index:?}"));
                    values.push(value.cloned().ok_or_else(outside)?);
                }
                Task::Eval(Equation::Combine(op, left, right)) => {
                    tasks.push(Task::Combine(op));
                    tasks.push(Task::Eval(Equation::Same(right)));
                    tasks.push(Task::Eval(Equation::Same(left)));
                }
                Task::Eval(Equation::Reduce(reduction)) => {
                    let size = self.ix(reduction.size())?;
                    let identity = reduction.op.identity(self.elem).map(|one| self.domain.literal(one, self.elem));
                    let sum = identity.transpose()?;
                    tasks.push(Task::Reduce(Box::new(Reducing { reduction, next: 0, size, sum, pending: false })));
                }
                Task::Combine(op) => {
                    let (Some(b), Some(a)) = (values.pop(), values.pop()) else {
                        return Err(EvalError::EmptyReduction);
                    };
                    values.push(self.domain.binary(op, self.elem, &a, &b)?);
                }
                Task::Reduce(mut r) => {
                    if r.pending {
                        let value = values.pop().ok_or(EvalError::EmptyReduction)?;
                        r.sum = Some(match r.sum {
                            Some(sum) => self.domain.binary(r.reduction.op.combine(), self.elem, &sum, &value)?,
                            None => value,
                        });
                    }
                    if r.next == r.size {
                        values.push(r.sum.ok_or(EvalError::EmptyReduction)?);
                        continue;
                    }
                    let part = Task::Eval(r.reduction.at(&r.next));
                    r.next += 1;
                    r.pending = true;
                    tasks.push(Task::Reduce(r));
                    tasks.push(part);
                }
            }
        }
        values.pop().ok_or(EvalError::EmptyReduction)
    }
}
