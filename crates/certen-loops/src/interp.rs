//! The interpreter: runs a loop program over any scalar domain.
//!
//! Names are resolved to slots first, and the value of each statement becomes a list of steps in arena order, so that
//! evaluation does not recurse over expressions (only over loops) and computes a shared part once. Every access is
//! checked against the buffer's shape, memory that nothing was written to is known as such, and every step takes
//! fuel: a program that [`verify`](crate::verify) refuses is run as safely as one that it accepts.

use std::collections::HashMap;

use certen_core::{
    Arguments, Binary, DEFAULT_FUEL, Domain, ElemType, EvalError, Fault, Named, Range, ReduceOp, Tensor, Term, TermId,
    Unary,
};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;

use crate::ir::{LoopProgram, MAX_NESTING, Mode, Stmt, Target};
use crate::walk::{as_element, declared_at_top};

/// What a run does: to memory, where buffers are known by numbers of the run's own, and to loops and conditions, which
/// are known by their place among all of them in the text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A buffer is new; nothing was written to it.
    Alloc(usize),
    /// Two buffers exchange their contents.
    Swap(usize, usize),
    /// An element is written.
    Store {
        /// The buffer's name in the program.
        name: Name,
        /// The buffer.
        buffer: usize,
        /// The element's position, row by row.
        position: usize,
        /// Whether the old value is combined with the new one, and not replaced.
        combined: bool,
    },
    /// A loop was run.
    Loop {
        /// Which loop.
        place: usize,
        /// How often its body was run.
        iterations: u64,
    },
    /// A condition was decided.
    Branch {
        /// Which condition.
        place: usize,
        /// How.
        holds: bool,
    },
}

/// A run of a loop program on given sizes and inputs.
pub struct Interpreter<'a, D: Domain> {
    program: &'a LoopProgram,
    domain: &'a D,
    arguments: Arguments<D::Value>,
    fuel: u64,
}

impl<'a, D: Domain> Interpreter<'a, D> {
    /// Prepares a run.
    ///
    /// # Errors
    /// If a size or input is missing, or an input's shape is not what the program says, or the sizes violate its facts.
    pub fn new(
        program: &'a LoopProgram,
        domain: &'a D,
        sizes: impl IntoIterator<Item = (Name, i64)>,
        inputs: impl IntoIterator<Item = (Name, Tensor<D::Value>)>,
    ) -> Result<Interpreter<'a, D>, EvalError> {
        let arguments = Arguments::new(&program.facts, &program.inputs, sizes, inputs)?;
        Ok(Interpreter { program, domain, arguments, fuel: DEFAULT_FUEL })
    }

    /// Sets how many steps the run may take.
    pub fn with_fuel(mut self, fuel: u64) -> Self {
        self.fuel = fuel;
        self
    }

    /// Runs the program and gives its outputs, in order. An element that was not written is the domain's undefined
    /// value, if it has one.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn run(self) -> Result<Named<D::Value>, EvalError> {
        self.run_observed(&mut |_| {})
    }

    /// Runs the program like [`Interpreter::run`], and tells what happens as it happens.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn run_observed(self, observer: &mut dyn FnMut(Event)) -> Result<Named<D::Value>, EvalError> {
        let mut fuel = self.fuel;
        self.run_within(&mut fuel, observer)
    }

    /// Runs the program like [`Interpreter::run_observed`], in at most so many steps, and leaves those that it did not take.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn run_within(mut self, fuel: &mut u64, observer: &mut dyn FnMut(Event)) -> Result<Named<D::Value>, EvalError> {
        let mut resolver =
            Resolver { program: self.program, domain: self.domain, scope: HashMap::new(), slots: 0, places: 0 };
        let mut sizes = Vec::new();
        for size in &self.program.sizes {
            let Some(value) = self.arguments.size(*size) else {
                return Err(EvalError::Call(format!("the size {size} is missing")));
            };
            sizes.push((resolver.declare(*size), value));
        }
        let mut buffers = Vec::new();
        for (name, tensor) in self.arguments.take_inputs() {
            buffers.push((resolver.declare(name), tensor.map(|value| Some(value.clone()))));
        }
        let mut outputs = Vec::new();
        for parameter in &self.program.outputs {
            let slot = resolver.declare(parameter.name);
            let shape = parameter.ty.shape_at(&|name| self.arguments.size(name))?;
            spend(fuel, elements(&shape))?;
            buffers.push((slot, empty(shape)?));
            outputs.push((parameter, slot));
        }
        for constant in &self.program.constants {
            let (slot, table, elem) = (resolver.declare(constant.name), &constant.table, constant.table.ty().elem);
            spend(fuel, table.elements().len())?;
            // What has no value here is a mistake only where it is read.
            let elements = table.elements().iter().map(|literal| self.domain.literal(*literal, elem).ok());
            let tensor = Tensor::new(table.shape().to_vec(), elements.collect()).ok_or(EvalError::Memory)?;
            buffers.push((slot, tensor));
        }
        let code = resolver.block(&self.program.body, 0)?;
        let slots = resolver.slots;
        let mut machine = Run {
            domain: self.domain,
            indices: vec![0; slots],
            locals: (0..slots).map(|_| None).collect(),
            buffers: (0..slots).map(|_| None).collect(),
            registers: Vec::new(),
            fuel,
            observer,
        };
        sizes.into_iter().for_each(|(slot, value)| machine.indices[slot] = value);
        buffers.into_iter().for_each(|(slot, tensor)| machine.buffers[slot] = Some(tensor));
        machine.block(&code)?;
        let mut results = Vec::with_capacity(outputs.len());
        for (parameter, slot) in outputs {
            let Some(written) = machine.buffers[slot].take() else { return Err(gone(parameter.name)) };
            let value = |at: usize| defined(self.domain, &written.data()[at], parameter.ty.elem);
            let whole = Tensor::from_fn(written.shape().to_vec(), value).ok_or(EvalError::Memory)??;
            results.push((parameter.name, whole));
        }
        Ok(results)
    }
}

/// Takes steps from what is left.
fn spend(fuel: &mut u64, steps: usize) -> Result<(), EvalError> {
    *fuel = fuel.checked_sub(steps as u64).ok_or(EvalError::Fuel)?;
    Ok(())
}

fn elements(shape: &[usize]) -> usize {
    shape.iter().fold(1, |product: usize, size| product.saturating_mul(*size))
}

/// A buffer that nothing was written to.
fn empty<V>(shape: Vec<usize>) -> Result<Tensor<Option<V>>, EvalError> {
    Tensor::from_fn(shape, |_| Ok(None)).ok_or(EvalError::Memory)?
}

fn defined<D: Domain>(domain: &D, value: &Option<D::Value>, elem: ElemType) -> Result<D::Value, EvalError> {
    match value {
        Some(value) => Ok(value.clone()),
        None => Ok(domain.undefined(elem)?),
    }
}

fn gone(name: Name) -> EvalError {
    EvalError::OutOfBounds(format!("{name}, which does not exist here"))
}

/// Statements with their names resolved; a slot holds an index, a local or a buffer.
enum Instruction<V> {
    Alloc(usize, Vec<At>),
    Free(usize),
    Swap(usize, usize),
    For { place: usize, slot: usize, lo: At, hi: At, mode: Mode, body: Vec<Instruction<V>> },
    If { place: usize, cond: Cond, names: Slots, then: Vec<Instruction<V>>, otherwise: Vec<Instruction<V>> },
    Local(usize, Option<Vec<Operation<V>>>),
    Assign { place: Operand, elem: ElemType, op: Option<ReduceOp>, value: Vec<Operation<V>> },
}

/// Where names that occur in an index or condition are kept.
type Slots = Box<[(Name, usize)]>;

/// An index expression; the frequent ones are found without looking at their structure.
enum At {
    Constant(i64),
    Slot(usize),
    /// `1 + 32*o + i`: a constant, and slots with their coefficients.
    Linear(i64, Box<[(usize, i64)]>),
    Other(Ix, Slots),
}

enum Operand {
    Local(usize),
    Element(Name, usize, Vec<At>),
}

/// One operation; operands are the results of earlier steps.
enum Operation<V> {
    Read(Operand, ElemType),
    Literal(Result<V, Fault>),
    Index(At, ElemType),
    Undefined(ElemType),
    Unary(Unary, ElemType, usize),
    Binary(Binary, ElemType, usize, usize),
    Choose(usize, usize, usize),
    Fma(ElemType, usize, usize, usize),
    Cast(ElemType, ElemType, usize),
}

/// The expression as a sum of its names with coefficients, if it is one.
fn linear(ix: &Ix, names: &Slots) -> Option<At> {
    let mut rest = ix.clone();
    let mut terms = Vec::with_capacity(names.len());
    for (name, slot) in names {
        let (coefficient, others) = rest.linear_in(*name)?;
        terms.push((*slot, coefficient));
        rest = others;
    }
    Some(At::Linear(rest.as_constant()?, terms.into()))
}

struct Resolver<'a, D> {
    program: &'a LoopProgram,
    domain: &'a D,
    scope: HashMap<Name, usize>,
    slots: usize,
    /// How many loops and conditions there were.
    places: usize,
}

impl<D: Domain> Resolver<'_, D> {
    fn declare(&mut self, name: Name) -> usize {
        self.slots += 1;
        self.scope.insert(name, self.slots - 1);
        self.slots - 1
    }

    fn place(&mut self) -> usize {
        self.places += 1;
        self.places - 1
    }

    fn slot(&self, name: Name) -> Result<usize, EvalError> {
        self.scope.get(&name).copied().ok_or_else(|| gone(name))
    }

    fn names(&self, names: impl IntoIterator<Item = Name>) -> Result<Slots, EvalError> {
        names.into_iter().map(|name| Ok((name, self.slot(name)?))).collect()
    }

    fn at(&self, ix: &Ix) -> Result<At, EvalError> {
        if let Some(constant) = ix.as_constant() {
            return Ok(At::Constant(constant));
        }
        if let Some(name) = ix.as_var() {
            return Ok(At::Slot(self.slot(name)?));
        }
        let mut names = Default::default();
        ix.collect_names(&mut names);
        let names = self.names(names)?;
        Ok(linear(ix, &names).unwrap_or_else(|| At::Other(ix.clone(), names)))
    }

    fn indices(&self, indices: &[Ix]) -> Result<Vec<At>, EvalError> {
        indices.iter().map(|ix| self.at(ix)).collect()
    }

    fn block(&mut self, block: &[Stmt], depth: usize) -> Result<Vec<Instruction<D::Value>>, EvalError> {
        if depth > MAX_NESTING {
            return Err(EvalError::Call(format!("more than {MAX_NESTING} blocks inside each other")));
        }
        let outer: Vec<(Name, Option<usize>)> =
            declared_at_top(block).map(|name| (name, self.scope.get(&name).copied())).collect();
        let mut code = Vec::with_capacity(block.len());
        for stmt in block {
            code.push(match stmt {
                Stmt::Nest(_) => continue,
                Stmt::Alloc(name, ty) => {
                    let shape = self.indices(&ty.shape)?;
                    Instruction::Alloc(self.declare(*name), shape)
                }
                Stmt::Free(name) => Instruction::Free(self.slot(*name)?),
                Stmt::Swap(a, b) => Instruction::Swap(self.slot(*a)?, self.slot(*b)?),
                Stmt::For { index, range: Range { lo, hi }, mode, body } => {
                    let (lo, hi) = (self.at(lo)?, self.at(hi)?);
                    let place = self.place();
                    let hidden = self.scope.get(index).copied();
                    let slot = self.declare(*index);
                    let body = self.block(body, depth + 1)?;
                    self.restore(*index, hidden);
                    Instruction::For { place, slot, lo, hi, mode: *mode, body }
                }
                Stmt::If { cond, then, otherwise } => {
                    let place = self.place();
                    let mut names = Default::default();
                    cond.collect_names(&mut names);
                    let (then, otherwise) = (self.block(then, depth + 1)?, self.block(otherwise, depth + 1)?);
                    Instruction::If { place, cond: cond.clone(), names: self.names(names)?, then, otherwise }
                }
                Stmt::Local { name, init, .. } => {
                    let value = init.map(|value| self.value(value)).transpose()?;
                    Instruction::Local(self.declare(*name), value)
                }
                Stmt::Assign { target, op, value } => {
                    let place = match target {
                        Target::Local(name) => Operand::Local(self.slot(*name)?),
                        Target::Element(name, indices) => {
                            Operand::Element(*name, self.slot(*name)?, self.indices(indices)?)
                        }
                    };
                    Instruction::Assign {
                        place,
                        elem: self.program.terms.ty(*value).elem,
                        op: *op,
                        value: self.value(*value)?,
                    }
                }
            });
        }
        outer.into_iter().rev().for_each(|(name, hidden)| self.restore(name, hidden));
        Ok(code)
    }

    fn restore(&mut self, name: Name, hidden: Option<usize>) {
        match hidden {
            Some(slot) => self.scope.insert(name, slot),
            None => self.scope.remove(&name),
        };
    }

    /// The steps of a value; the last one gives it.
    fn value(&self, root: TermId) -> Result<Vec<Operation<D::Value>>, EvalError> {
        let terms = &self.program.terms;
        let unsupported = || EvalError::Call("a value is not made of scalar operations".into());
        let mut registers: HashMap<TermId, usize> = HashMap::new();
        let mut steps = Vec::new();
        for id in terms.parts_first(root) {
            let register = |part: &TermId| registers.get(part).copied().ok_or_else(unsupported);
            let elem = |part: &TermId| terms.ty(*part).elem;
            let step = match terms.get(id) {
                Term::Ref(_, ty) if !ty.is_scalar() && id != root => continue,
                Term::Ref(..) | Term::Select(..) => {
                    let (name, ty, indices) = as_element(terms, id).ok_or_else(unsupported)?;
                    let place = Operand::Element(name, self.slot(name)?, self.indices(indices)?);
                    Operation::Read(place, ty.elem)
                }
                Term::Literal(literal, elem) => Operation::Literal(self.domain.literal(*literal, *elem)),
                Term::Index(ix, elem) => Operation::Index(self.at(ix)?, *elem),
                Term::Undefined(elem) => Operation::Undefined(*elem),
                Term::Unary(op, a) => Operation::Unary(*op, elem(a), register(a)?),
                Term::Binary(op, a, b) => Operation::Binary(*op, elem(a), register(a)?, register(b)?),
                Term::Choose(c, a, b) => Operation::Choose(register(c)?, register(a)?, register(b)?),
                Term::Fma(a, b, c) => Operation::Fma(elem(a), register(a)?, register(b)?, register(c)?),
                Term::Cast(to, a) => Operation::Cast(elem(a), *to, register(a)?),
                Term::Gen(..) | Term::Reduce(..) | Term::Guard(..) | Term::If(..) => return Err(unsupported()),
                Term::Let(..) | Term::Iterate(..) | Term::Flatten(_) | Term::Split(..) => return Err(unsupported()),
                Term::Table(_) | Term::Transpose(_) | Term::Concat(..) => return Err(unsupported()),
                Term::PadLeft(..) | Term::PadRight(..) | Term::TruncLeft(..) | Term::TruncRight(..) => {
                    return Err(unsupported());
                }
            };
            registers.insert(id, steps.len());
            steps.push(step);
        }
        Ok(steps)
    }
}

struct Run<'a, D: Domain> {
    domain: &'a D,
    indices: Vec<i64>,
    locals: Vec<Option<D::Value>>,
    buffers: Vec<Option<Tensor<Option<D::Value>>>>,
    registers: Vec<D::Value>,
    fuel: &'a mut u64,
    observer: &'a mut dyn FnMut(Event),
}

impl<D: Domain> Run<'_, D> {
    fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        spend(self.fuel, steps)
    }

    #[inline]
    fn at(&self, at: &At) -> Result<i64, EvalError> {
        match at {
            At::Constant(value) => Ok(*value),
            At::Slot(slot) => Ok(self.indices[*slot]),
            At::Linear(constant, terms) => {
                let sum = terms.iter().try_fold(*constant, |sum, (slot, coefficient)| {
                    self.indices[*slot].checked_mul(*coefficient).and_then(|product| product.checked_add(sum))
                });
                sum.ok_or(EvalError::Index(IxError::Overflow))
            }
            At::Other(ix, names) => Ok(ix.eval(&|name| self.named(names, name))?),
        }
    }

    fn named(&self, names: &Slots, name: Name) -> Option<i64> {
        names.iter().find(|(known, _)| *known == name).map(|(_, slot)| self.indices[*slot])
    }

    fn block(&mut self, code: &[Instruction<D::Value>]) -> Result<(), EvalError> {
        for stmt in code {
            self.spend(1)?;
            match stmt {
                Instruction::Alloc(slot, shape) => {
                    let size = |at| Ok(usize::try_from(self.at(at)?).unwrap_or(0));
                    let shape = shape.iter().map(size).collect::<Result<Vec<usize>, EvalError>>()?;
                    self.spend(elements(&shape))?;
                    self.buffers[*slot] = Some(empty(shape)?);
                    (self.observer)(Event::Alloc(*slot));
                }
                Instruction::Free(slot) => self.buffers[*slot] = None,
                Instruction::Swap(a, b) => {
                    self.buffers.swap(*a, *b);
                    (self.observer)(Event::Swap(*a, *b));
                }
                Instruction::For { place, slot, lo, hi, mode, body } => {
                    let (lo, hi) = (self.at(lo)?, self.at(hi)?);
                    (self.observer)(Event::Loop { place: *place, iterations: hi.saturating_sub(lo).max(0) as u64 });
                    let mut iteration = |index| {
                        self.spend(1)?;
                        self.indices[*slot] = index;
                        self.block(body)
                    };
                    if *mode != Mode::Serial {
                        // No order is promised, so the order is an unlikely one: backwards, every other iteration first.
                        (lo..hi).rev().step_by(2).try_for_each(&mut iteration)?;
                        (lo..hi).rev().skip(1).step_by(2).try_for_each(&mut iteration)?;
                    } else {
                        (lo..hi).try_for_each(&mut iteration)?;
                    }
                }
                Instruction::If { place, cond, names, then, otherwise } => {
                    let holds = cond.eval(&|name| self.named(names, name))?;
                    (self.observer)(Event::Branch { place: *place, holds });
                    self.block(if holds { then } else { otherwise })?;
                }
                Instruction::Local(slot, init) => {
                    self.locals[*slot] = init.as_ref().map(|value| self.value(value)).transpose()?;
                }
                // What has no value is only wrong if it is read.
                Instruction::Assign { place, op: None, value, .. }
                    if matches!(value[..], [Operation::Undefined(_)]) =>
                {
                    self.spend(1)?;
                    self.write(place, None, false)?;
                }
                Instruction::Assign { place, elem, op, value } => {
                    let value = self.value(value)?;
                    let value = match op {
                        Some(op) => {
                            let old = self.read(place, *elem)?;
                            self.domain.binary(op.combine(), *elem, &old, &value)?
                        }
                        None => value,
                    };
                    self.write(place, Some(value), op.is_some())?;
                }
            }
        }
        Ok(())
    }

    /// The element's position in its buffer.
    fn find(&self, name: Name, slot: usize, indices: &[At]) -> Result<usize, EvalError> {
        let buffer = self.buffers[slot].as_ref().ok_or_else(|| gone(name))?;
        let shape = buffer.shape();
        let (mut position, mut inside) = (0usize, indices.len() == shape.len());
        for (at, &size) in indices.iter().zip(shape) {
            // What is negative is beyond every size. Inside, the position is below the number of elements.
            let i = self.at(at)? as usize;
            inside &= i < size;
            position = position.wrapping_mul(size).wrapping_add(i);
        }
        if inside { Ok(position) } else { Err(self.outside(name, indices, shape)) }
    }

    #[cold]
    fn outside(&self, name: Name, indices: &[At], shape: &[usize]) -> EvalError {
        match indices.iter().map(|at| self.at(at)).collect::<Result<Vec<i64>, _>>() {
            Ok(indices) => EvalError::OutOfBounds(format!("{name}{indices:?}, but its shape is {shape:?}")),
            Err(error) => error,
        }
    }

    fn read(&self, place: &Operand, elem: ElemType) -> Result<D::Value, EvalError> {
        let value = match place {
            Operand::Local(slot) => &self.locals[*slot],
            // A name without dimensions is a local or a buffer.
            Operand::Element(_, slot, indices) if indices.is_empty() && self.buffers[*slot].is_none() => {
                &self.locals[*slot]
            }
            Operand::Element(name, slot, indices) => {
                let at = self.find(*name, *slot, indices)?;
                match &self.buffers[*slot] {
                    Some(buffer) => &buffer.data()[at],
                    None => return Err(gone(*name)),
                }
            }
        };
        defined(self.domain, value, elem)
    }

    fn write(&mut self, place: &Operand, value: Option<D::Value>, combined: bool) -> Result<(), EvalError> {
        match place {
            Operand::Local(slot) => self.locals[*slot] = value,
            Operand::Element(name, slot, indices) => {
                let at = self.find(*name, *slot, indices)?;
                match &mut self.buffers[*slot] {
                    Some(buffer) => buffer.data_mut()[at] = value,
                    None => return Err(gone(*name)),
                }
                (self.observer)(Event::Store { name: *name, buffer: *slot, position: at, combined });
            }
        }
        Ok(())
    }

    fn value(&mut self, steps: &[Operation<D::Value>]) -> Result<D::Value, EvalError> {
        self.spend(steps.len())?;
        let mut registers = std::mem::take(&mut self.registers);
        registers.clear();
        for step in steps {
            let value = match step {
                Operation::Read(place, elem) => self.read(place, *elem)?,
                Operation::Literal(literal) => literal.clone()?,
                Operation::Index(at, elem) => self.domain.index(self.at(at)?, *elem)?,
                Operation::Undefined(elem) => self.domain.undefined(*elem)?,
                Operation::Unary(op, elem, a) => self.domain.unary(*op, *elem, &registers[*a])?,
                Operation::Binary(op, elem, a, b) => self.domain.binary(*op, *elem, &registers[*a], &registers[*b])?,
                Operation::Choose(c, a, b) => self.domain.choose(&registers[*c], &registers[*a], &registers[*b])?,
                Operation::Fma(elem, a, b, c) => {
                    self.domain.fma(*elem, &registers[*a], &registers[*b], &registers[*c])?
                }
                Operation::Cast(from, to, a) => self.domain.cast(*from, *to, &registers[*a])?,
            };
            registers.push(value);
        }
        let value = registers.pop();
        self.registers = registers;
        value.ok_or_else(|| EvalError::Call("a value has no steps".into()))
    }
}
