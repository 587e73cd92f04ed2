//! An interpreter of nests, in the field: no more than it takes to compare values.
//!
//! It recurses over blocks only. The value of a statement is computed part by part, in the order of the arena; the parts are
//! listed once for each statement. Indices are checked before every access, memory that nothing was written to is
//! *undefined*, and every statement and operation takes fuel. Loops that are not serial run backwards.

use std::rc::Rc;

use certen_core::domain::{Element, Field, Partial};
use certen_core::{Binary, Domain, ElemType, EvalError, Literal, Named, Range, Tensor, Term, TermId, Unary};
use certen_index::{Cond, Ix};
use certen_loops::{LoopProgram, Mode, Stmt, Target, as_element};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

/// An element of a tensor; none is undefined.
pub(crate) type FieldValue = Option<Element>;

/// Runs a nest that [`obligations`](crate::obligations) has accepted, and gives its outputs and the fuel that is left.
pub(crate) fn run(
    nest: &LoopProgram,
    field: &Partial<Field>,
    sizes: &[(Name, i64)],
    inputs: Named<FieldValue>,
    fuel: u64,
) -> Result<(Named<FieldValue>, u64), EvalError> {
    let mut machine = NestInterpreter {
        nest,
        field,
        numbers: sizes.iter().copied().collect(),
        locals: FxHashMap::default(),
        buffers: inputs.into_iter().collect(),
        parts: FxHashMap::default(),
        fuel,
    };
    for output in &nest.outputs {
        let tensor = machine.empty(&output.ty.shape)?;
        machine.buffers.insert(output.name, tensor);
    }
    for constant in &nest.constants {
        let (table, elem) = (&constant.table, constant.table.ty().elem);
        machine.spend(table.elements().len())?;
        let elements = table.elements().iter().map(|literal| field.literal(*literal, elem));
        let elements = elements.collect::<Result<Vec<FieldValue>, _>>()?;
        let tensor = Tensor::new(table.shape().to_vec(), elements).ok_or(EvalError::Memory)?;
        machine.buffers.insert(constant.name, tensor);
    }
    machine.block(&nest.body)?;
    let mut outputs = Vec::new();
    for output in &nest.outputs {
        let tensor = machine.buffers.remove(&output.name).ok_or_else(|| gone(output.name))?;
        outputs.push((output.name, tensor));
    }
    Ok((outputs, machine.fuel))
}

fn gone(name: Name) -> EvalError {
    EvalError::OutOfBounds(name.to_string())
}

/// One part of a value; its operands are results of earlier parts.
enum Operation<'a> {
    Read(Name, &'a [Ix]),
    Literal(Literal, ElemType),
    Index(&'a Ix, ElemType),
    Undefined,
    Unary(Unary, ElemType, usize),
    Binary(Binary, ElemType, usize, usize),
    Choose(usize, usize, usize),
    Fma(ElemType, usize, usize, usize),
    Cast(ElemType, ElemType, usize),
}

struct NestInterpreter<'a> {
    nest: &'a LoopProgram,
    field: &'a Partial<Field>,
    /// Sizes and indices.
    numbers: FxHashMap<Name, i64>,
    locals: FxHashMap<Name, FieldValue>,
    buffers: FxHashMap<Name, Tensor<FieldValue>>,
    /// The parts of each statement's value.
    parts: FxHashMap<TermId, Rc<[Operation<'a>]>>,
    fuel: u64,
}

impl<'a> NestInterpreter<'a> {
    fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        self.fuel = self.fuel.checked_sub(steps as u64).ok_or(EvalError::Fuel)?;
        Ok(())
    }

    fn number(&self, ix: &Ix) -> Result<i64, EvalError> {
        match ix.as_constant() {
            Some(constant) => Ok(constant),
            None => Ok(ix.eval(&|name| self.numbers.get(&name).copied())?),
        }
    }

    fn holds(&self, cond: &Cond) -> Result<bool, EvalError> {
        Ok(cond.eval(&|name| self.numbers.get(&name).copied())?)
    }

    /// A buffer that nothing was written to.
    fn empty(&mut self, shape: &[Ix]) -> Result<Tensor<FieldValue>, EvalError> {
        let size = |ix| Ok(usize::try_from(self.number(ix)?).unwrap_or(0));
        let shape = shape.iter().map(size).collect::<Result<Vec<usize>, EvalError>>()?;
        let elements = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        self.spend(elements.ok_or(EvalError::Memory)?)?;
        Tensor::from_fn(shape, |_| Ok(None)).ok_or(EvalError::Memory)?
    }

    fn block(&mut self, block: &[Stmt]) -> Result<(), EvalError> {
        for stmt in block {
            self.spend(1)?;
            match stmt {
                Stmt::Nest(_) => {}
                Stmt::Alloc(name, ty) => {
                    let buffer = self.empty(&ty.shape)?;
                    // A local that has ended may have had this name.
                    self.locals.remove(name);
                    self.buffers.insert(*name, buffer);
                }
                Stmt::Free(name) => drop(self.buffers.remove(name)),
                Stmt::Swap(a, b) => {
                    let (one, two) = (self.buffers.remove(a), self.buffers.remove(b));
                    self.buffers.insert(*a, two.ok_or_else(|| gone(*b))?);
                    self.buffers.insert(*b, one.ok_or_else(|| gone(*a))?);
                }
                Stmt::For { index, range: Range { lo, hi }, mode, body } => {
                    let (lo, hi) = (self.number(lo)?, self.number(hi)?);
                    let mut iteration = |at: i64| {
                        self.spend(1)?;
                        self.numbers.insert(*index, at);
                        self.block(body)
                    };
                    match mode {
                        Mode::Serial => (lo..hi).try_for_each(&mut iteration)?,
                        Mode::Parallel | Mode::Vector | Mode::ParallelVector => {
                            (lo..hi).rev().try_for_each(&mut iteration)?
                        }
                    }
                }
                Stmt::If { cond, then, otherwise } => {
                    let branch = if self.holds(cond)? { then } else { otherwise };
                    self.block(branch)?;
                }
                Stmt::Local { name, init, .. } => {
                    let value = init.map_or(Ok(None), |init| self.value(init))?;
                    self.locals.insert(*name, value);
                }
                Stmt::Assign { target, op, value: term } => {
                    let mut value = self.value(*term)?;
                    let (field, elem) = (self.field, self.nest.terms.ty(*term).elem);
                    let place = self.place(target)?;
                    if let Some(op) = op {
                        value = field.binary(op.combine(), elem, place, &value)?;
                    }
                    *place = value;
                }
            }
        }
        Ok(())
    }

    fn place(&mut self, target: &Target) -> Result<&mut FieldValue, EvalError> {
        match target {
            Target::Local(name) => self.locals.get_mut(name).ok_or_else(|| gone(*name)),
            Target::Element(name, indices) => {
                let at = self.position(*name, indices)?;
                let buffer = self.buffers.get_mut(name).ok_or_else(|| gone(*name))?;
                buffer.data_mut().get_mut(at).ok_or_else(|| gone(*name))
            }
        }
    }

    fn position(&self, name: Name, indices: &[Ix]) -> Result<usize, EvalError> {
        let index = indices.iter().map(|ix| self.number(ix)).collect::<Result<Vec<i64>, EvalError>>()?;
        let found = self.buffers.get(&name).and_then(|buffer| buffer.position(&index));
        found.ok_or_else(|| EvalError::OutOfBounds(format!("{name}{index:?}")))
    }

    fn value(&mut self, root: TermId) -> Result<FieldValue, EvalError> {
        let parts = match self.parts.get(&root) {
            Some(parts) => parts.clone(),
            None => {
                let parts: Rc<[Operation<'a>]> = self.parts_of(root)?.into();
                self.parts.insert(root, parts.clone());
                parts
            }
        };
        self.spend(parts.len())?;
        let mut values: Vec<FieldValue> = Vec::with_capacity(parts.len());
        for part in parts.iter() {
            values.push(match part {
                Operation::Read(name, indices) => match self.locals.get(name).filter(|_| indices.is_empty()) {
                    Some(value) => *value,
                    None => {
                        let at = self.position(*name, indices)?;
                        let element = self.buffers.get(name).and_then(|buffer| buffer.data().get(at));
                        *element.ok_or_else(|| gone(*name))?
                    }
                },
                Operation::Literal(literal, elem) => self.field.literal(*literal, *elem)?,
                Operation::Index(ix, elem) => self.field.index(self.number(ix)?, *elem)?,
                Operation::Undefined => None,
                Operation::Unary(op, elem, a) => self.field.unary(*op, *elem, &values[*a])?,
                Operation::Binary(op, elem, a, b) => self.field.binary(*op, *elem, &values[*a], &values[*b])?,
                Operation::Choose(c, a, b) => self.field.choose(&values[*c], &values[*a], &values[*b])?,
                Operation::Fma(elem, a, b, c) => self.field.fma(*elem, &values[*a], &values[*b], &values[*c])?,
                Operation::Cast(from, to, a) => self.field.cast(*from, *to, &values[*a])?,
            });
        }
        Ok(values.pop().flatten())
    }

    fn parts_of(&self, root: TermId) -> Result<Vec<Operation<'a>>, EvalError> {
        let terms = &self.nest.terms;
        let unknown = || EvalError::Call("a value is not made of scalar operations".into());
        let (mut parts, mut places) = (Vec::new(), FxHashMap::default());
        for id in terms.parts_first(root) {
            let place = |part: &TermId| places.get(part).copied().ok_or_else(unknown);
            let elem = |part: &TermId| terms.ty(*part).elem;
            let part = match terms.get(id) {
                Term::Ref(_, ty) if !ty.is_scalar() => continue,
                Term::Ref(..) | Term::Select(..) => {
                    let (name, _, indices) = as_element(terms, id).ok_or_else(unknown)?;
                    Operation::Read(name, indices)
                }
                Term::Literal(literal, elem) => Operation::Literal(*literal, *elem),
                Term::Index(ix, elem) => Operation::Index(ix, *elem),
                Term::Undefined(_) => Operation::Undefined,
                Term::Unary(op, a) => Operation::Unary(*op, elem(a), place(a)?),
                Term::Binary(op, a, b) => Operation::Binary(*op, elem(a), place(a)?, place(b)?),
                Term::Choose(c, a, b) => Operation::Choose(place(c)?, place(a)?, place(b)?),
                Term::Fma(a, b, c) => Operation::Fma(elem(a), place(a)?, place(b)?, place(c)?),
                Term::Cast(to, a) => Operation::Cast(elem(a), *to, place(a)?),
                Term::Gen(..) | Term::Reduce(..) | Term::Guard(..) | Term::If(..) => return Err(unknown()),
                Term::Let(..) | Term::Iterate(..) | Term::Flatten(_) | Term::Split(..) => return Err(unknown()),
                Term::Table(_) | Term::Transpose(_) | Term::Concat(..) => return Err(unknown()),
                Term::PadLeft(..) | Term::PadRight(..) | Term::TruncLeft(..) | Term::TruncRight(..) => {
                    return Err(unknown());
                }
            };
            places.insert(id, parts.len());
            parts.push(part);
        }
        Ok(parts)
    }
}
