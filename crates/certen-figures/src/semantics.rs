//! The papers' own semantics over a memory μ: expressions by TeIL's Fig. 6 and the model language's Fig. 12, statements
//! and programs by TeIL's Fig. 9 and the model language's Fig. 11.
//!
//! A direct reading of the figures over any scalar domain. It is not on the road to machine code: it is what the road
//! is compared with, and what the type-safety theorems speak of.
//!
//! With a vector length M (model language, Sec. 4) every dimension of every store and every range of a sum is rounded
//! up to a multiple of M (Def. 7), and stores begin with zeros in what was added (Fig. 13). [`Semantics::run_padded`]
//! then is Fig. 14; it watches whether the padding stays zero (Thm. 2), which it does as long as 0 * x is 0.

use std::collections::HashMap;

use certen_core::{Binary, Domain, ElemType, EvalError, Literal, ReduceOp, Tensor, index_of};
use certen_dialects::algebra::fig6::{Equation, Reduction, equation, is_product};
use certen_dialects::algebra::{ExprId, Typed};
use certen_index::Ix;
use certen_syntax::Name;

use crate::in_place::in_place;

/// μ: a map from names to maps from indices to values. The domain of `μ x` is the shape of the tensor.
pub type Memory<V> = HashMap<Name, Tensor<V>>;

/// An evaluation of a typed program at concrete sizes.
pub struct Semantics<'a, D: Domain> {
    typed: &'a Typed,
    domain: &'a D,
    elem: ElemType,
    sizes: HashMap<Name, i64>,
    fuel: u64,
    /// M: sizes are rounded up to its multiples.
    vector: i64,
}

/// A statement after which padding is not zero.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spill {
    /// The statement.
    pub stmt: usize,
    /// The first place of the padding that is not zero, counted from 0.
    pub index: Vec<i64>,
}

enum EvalTask<V> {
    Eval(Equation<i64>),
    Combine(Binary),
    /// A size as a number.
    Number(Ix),
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
        Semantics { typed, domain, elem, sizes: sizes.into_iter().collect(), fuel, vector: 1 }
    }

    /// The same evaluation with a vector length, at least 1.
    pub fn padded(self, vector: i64) -> Self {
        Semantics { vector: vector.max(1), ..self }
    }

    /// ⌈d⌉ (Def. 7).
    fn rounded(&self, size: i64) -> Result<i64, EvalError> {
        let blocks = size / self.vector + i64::from(size % self.vector != 0);
        blocks.checked_mul(self.vector).ok_or(EvalError::Memory)
    }

    fn ix(&self, ix: &Ix) -> Result<i64, EvalError> {
        Ok(ix.eval(&|name| self.sizes.get(&name).copied())?)
    }

    /// The declared shape of a tensor, as numbers.
    pub fn declared(&self, name: Name) -> Result<Vec<usize>, EvalError> {
        let sizes = self.typed.declared(name).into_iter().flatten();
        sizes.map(|(size, _)| Ok(usize::try_from(self.ix(size)?).unwrap_or(0))).collect()
    }

    /// The shape of a tensor's store: the declared one, rounded up to multiples of the vector length.
    pub fn shape(&self, name: Name) -> Result<Vec<usize>, EvalError> {
        let sizes = self.typed.declared(name).into_iter().flatten();
        sizes.map(|(size, _)| Ok(usize::try_from(self.rounded(self.ix(size)?)?).unwrap_or(0))).collect()
    }

    /// d-pad-var (Fig. 13): a tensor's first store, from the declared elements in row-major order; the padding is zero.
    ///
    /// # Errors
    /// If there is no memory for it, or an element has no value in the domain.
    pub fn store(
        &mut self,
        name: Name,
        mut element: impl FnMut(usize) -> Result<D::Value, EvalError>,
    ) -> Result<Tensor<D::Value>, EvalError> {
        let (declared, shape) = (self.declared(name)?, self.shape(name)?);
        let count = shape.iter().try_fold(1u64, |n, &size| n.checked_mul(size as u64)).ok_or(EvalError::Memory)?;
        self.fuel = self.fuel.checked_sub(count).ok_or(EvalError::Fuel)?;
        let zero = self.zero()?;
        let (mut index, mut next) = (vec![0i64; shape.len()], 0);
        let stored = Tensor::from_fn(shape.clone(), |_| {
            let value = if inside(&index, &declared) {
                next += 1;
                element(next - 1)
            } else {
                Ok(zero.clone())
            };
            advance(&mut index, &shape);
            value
        });
        stored.ok_or(EvalError::Memory)?
    }

    /// The declared elements of a store.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub fn cropped(&self, name: Name, store: &Tensor<D::Value>) -> Result<Tensor<D::Value>, EvalError> {
        let declared = self.declared(name)?;
        let mut index = vec![0i64; declared.len()];
        let cropped = Tensor::from_fn(declared.clone(), |_| {
            let value = store.get(&index).cloned().ok_or_else(|| EvalError::OutOfBounds(format!("{name}{index:?}")));
            advance(&mut index, &declared);
            value
        });
        cropped.ok_or(EvalError::Memory)?
    }

    /// The first place of a tensor's padding that is not zero.
    fn spilt(&self, name: Name, store: &Tensor<D::Value>) -> Result<Option<Vec<i64>>, EvalError> {
        let (declared, zero) = (self.declared(name)?, self.zero()?);
        if store.shape() == declared {
            return Ok(None);
        }
        let mut index = vec![0i64; declared.len()];
        for value in store.data() {
            if *value != zero && !inside(&index, &declared) {
                return Ok(Some(index));
            }
            advance(&mut index, store.shape());
        }
        Ok(None)
    }

    fn zero(&self) -> Result<D::Value, EvalError> {
        Ok(self.domain.literal(Literal::whole(0, self.elem), self.elem)?)
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

    /// Fig. 14: every statement that reaches an output, in order; and after which of them padding is not zero. Only the
    /// assigned tensor can have changed.
    ///
    /// # Errors
    /// As [`Semantics::run`].
    pub fn run_padded(&mut self, mut memory: Memory<D::Value>) -> Result<(Memory<D::Value>, Vec<Spill>), EvalError> {
        let mut spills = Vec::new();
        for (stmt, at) in self.typed.program.stmts.iter().zip(0..).filter(|(_, at)| self.typed.flow.live[*at]) {
            self.stmt(&mut memory, stmt.target, stmt.value)?;
            if let Some(store) = memory.get(&stmt.target)
                && let Some(index) = self.spilt(stmt.target, store)?
            {
                spills.push(Spill { stmt: at, index });
            }
        }
        Ok((memory, spills))
    }

    /// Every statement in order; those that can be computed in place ([`in_place`]) write each element directly
    /// into memory (model language, Sec. 5), in the order that `order` gives for so many elements, counted row by row.
    ///
    /// # Errors
    /// As [`Semantics::run`].
    pub fn run_in_place(
        &mut self,
        mut memory: Memory<D::Value>,
        order: impl Fn(usize) -> Vec<usize>,
    ) -> Result<Memory<D::Value>, EvalError> {
        let typed = self.typed;
        for (at, stmt) in typed.program.stmts.iter().enumerate() {
            if in_place(typed, at).is_allowed() {
                self.write_directly(&mut memory, at, &order)?;
            } else {
                self.stmt(&mut memory, stmt.target, stmt.value)?;
            }
        }
        Ok(memory)
    }

    /// One statement that writes each element directly, whether that keeps its meaning or not.
    ///
    /// # Errors
    /// As [`Semantics::run`]; also if the order names an element that there is not.
    pub fn write_directly(
        &mut self,
        memory: &mut Memory<D::Value>,
        stmt: usize,
        order: impl Fn(usize) -> Vec<usize>,
    ) -> Result<(), EvalError> {
        let stmt = &self.typed.program.stmts[stmt];
        let shape = self.shape(stmt.target)?;
        let outside = || EvalError::OutOfBounds(format!("{} = …", stmt.target));
        let count = memory.get(&stmt.target).filter(|old| old.shape() == shape).ok_or_else(outside)?.data().len();
        for at in order(count) {
            let value = self.expr(memory, stmt.value, index_of(&shape, at))?;
            let place = memory.get_mut(&stmt.target).and_then(|tensor| tensor.data_mut().get_mut(at));
            *place.ok_or_else(outside)? = value;
        }
        Ok(())
    }

    /// One statement: all values are computed in the old memory, then the tensor is updated.
    ///
    /// # Errors
    /// As [`Semantics::run`].
    pub fn write_at_once(&mut self, memory: &mut Memory<D::Value>, stmt: usize) -> Result<(), EvalError> {
        let stmt = &self.typed.program.stmts[stmt];
        self.stmt(memory, stmt.target, stmt.value)
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
            advance(&mut index, &shape);
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
        let mut tasks = vec![EvalTask::Eval(Equation::Same((id, index)))];
        let mut values: Vec<D::Value> = Vec::new();
        while let Some(task) = tasks.pop() {
            self.fuel = self.fuel.checked_sub(1).ok_or(EvalError::Fuel)?;
            match task {
                EvalTask::Eval(Equation::Same((id, index))) => {
                    let literal = |m: &Ix| self.ix(m).map_or(-1, |m| m - 1);
                    tasks.push(EvalTask::Eval(equation(self.typed, id, index, literal)));
                }
                EvalTask::Eval(Equation::Read(_, name, index)) => {
                    let value = memory.get(&name).and_then(|tensor| tensor.get(&index));
                    let outside = || EvalError::OutOfBounds(format!("{name}{index:?}"));
                    values.push(value.cloned().ok_or_else(outside)?);
                }
                EvalTask::Eval(Equation::Combine(op, left, right)) => {
                    tasks.push(EvalTask::Combine(op));
                    tasks.push(EvalTask::Eval(Equation::Same(right)));
                    tasks.push(EvalTask::Eval(Equation::Same(left)));
                }
                EvalTask::Eval(Equation::Reduce(reduction)) => {
                    // Padding is zero, so it changes sums only: those of the model language.
                    let size = self.ix(reduction.size())?;
                    let size = if reduction.op == ReduceOp::Sum { self.rounded(size)? } else { size };
                    let identity = reduction.op.identity(self.elem).map(|one| self.domain.literal(one, self.elem));
                    let sum = identity.transpose()?;
                    tasks.push(EvalTask::Reduce(Box::new(Reducing { reduction, next: 0, size, sum, pending: false })));
                }
                EvalTask::Eval(Equation::Scale(n, e)) => {
                    tasks.push(EvalTask::Combine(Binary::Mul));
                    tasks.push(EvalTask::Eval(Equation::Same(e)));
                    tasks.push(EvalTask::Number(n));
                }
                EvalTask::Eval(Equation::Power(n, e)) if !is_product(&n, self.elem) => {
                    tasks.push(EvalTask::Combine(Binary::Pow));
                    tasks.push(EvalTask::Number(n));
                    tasks.push(EvalTask::Eval(Equation::Same(e)));
                }
                // Exponents are not sizes of stores: nothing is rounded up.
                EvalTask::Eval(Equation::Power(n, e)) => {
                    let (size, reduction) = (self.ix(&n)?, Reduction::power(n, e));
                    let sum = Some(self.domain.literal(Literal::whole(1, self.elem), self.elem)?);
                    tasks.push(EvalTask::Reduce(Box::new(Reducing { reduction, next: 0, size, sum, pending: false })));
                }
                EvalTask::Number(n) => values.push(self.domain.index(self.ix(&n)?, self.elem)?),
                EvalTask::Combine(op) => {
                    let (Some(b), Some(a)) = (values.pop(), values.pop()) else {
                        return Err(EvalError::EmptyReduction);
                    };
                    values.push(self.domain.binary(op, self.elem, &a, &b)?);
                }
                EvalTask::Reduce(mut r) => {
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
                    let part = EvalTask::Eval(r.reduction.at(&r.next));
                    r.next += 1;
                    r.pending = true;
                    tasks.push(EvalTask::Reduce(r));
                    tasks.push(part);
                }
            }
        }
        values.pop().ok_or(EvalError::EmptyReduction)
    }
}

/// The next index in row-major order.
fn advance(index: &mut [i64], shape: &[usize]) {
    for (i, &size) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if *i < size as i64 {
            return;
        }
        *i = 0;
    }
}

fn inside(index: &[i64], shape: &[usize]) -> bool {
    index.iter().zip(shape).all(|(&i, &size)| i < size as i64)
}
