//! The reference evaluator: what a program means.
//!
//! The meaning of a term is a function from indices to values, as in TeIL's Fig. 6 and ATL's denotational semantics; the
//! arm of `Run::eval` for a construct is its equation, read from left to right. Nothing that is immediately reduced
//! or selected from is ever stored. [`Evaluator::run`] computes whole tensors, binding by binding (TeIL, Fig. 9: each
//! statement reads the old memory and makes a new one); [`Evaluator::element`] computes a single element and remembers
//! every element of a binding that it needed on the way.
//!
//! The equations call each other; here they leave frames on a stack of our own, so that no program overflows the
//! machine's. Needs: a program that [`Program::check`] accepts. Guarantees: every access is inside its tensor or an
//! error, every evaluation ends within its fuel.

mod run;

use std::collections::HashMap;

use certen_syntax::Name;

use crate::arguments::Arguments;
use crate::domain::Domain;
use crate::error::EvalError;
use crate::program::Program;
use crate::tensor::{Named, Tensor, index_of};
use crate::term::TermId;
use crate::trace::{Limits, Log, Trace, TraceStep};
use run::Run;

/// Steps after which an evaluation is given up, unless told otherwise: about a minute.
pub const DEFAULT_FUEL: u64 = 2_000_000_000;

/// An element of a tensor.
pub type Element = (Name, Vec<i64>);

/// An evaluation of a program on given sizes and inputs.
///
/// ```
/// use certen_core::{Evaluator, Tensor, domain::{Machine, Scalar}, parse_program};
/// # let mut sources = certen_syntax::Sources::new();
/// let text = "core dot\nsize n\ninput a : f64[n]\ninput b : f64[n]\ns = sum k in 0..n. a[k] * b[k]\noutput s\n";
/// # let file = sources.add("dot.core", text);
/// let program = parse_program(&sources, file).map_err(|_| "malformed").unwrap();
/// let vector = |values: [f64; 3]| Tensor::new(vec![3], values.map(Scalar::F64).to_vec()).unwrap();
/// let inputs = [("a".into(), vector([1.0, 2.0, 3.0])), ("b".into(), vector([4.0, 5.0, 6.0]))];
/// let outputs = Evaluator::new(&program, &Machine, [("n".into(), 3)], inputs)?.run()?;
/// assert_eq!(outputs[0].1.data(), [Scalar::F64(32.0)]);
/// # Ok::<(), certen_core::EvalError>(())
/// ```
pub struct Evaluator<'a, D: Domain> {
    program: &'a Program,
    domain: &'a D,
    arguments: Arguments<D::Value>,
    memory: HashMap<Name, Stored<D::Value>>,
    fuel: u64,
    /// The element at which a run has failed.
    failed: Option<Element>,
}

/// A top-level tensor: known whole, or element by element as they are asked for.
enum Stored<V> {
    Whole(Tensor<V>),
    OnDemand { term: TermId, known: HashMap<Vec<i64>, V> },
}

impl<'a, D: Domain> Evaluator<'a, D> {
    /// Prepares an evaluation.
    ///
    /// # Errors
    /// If a size or input is missing, or an input's shape is not what the program says.
    pub fn new(
        program: &'a Program,
        domain: &'a D,
        sizes: impl IntoIterator<Item = (Name, i64)>,
        inputs: impl IntoIterator<Item = (Name, Tensor<D::Value>)>,
    ) -> Result<Evaluator<'a, D>, EvalError> {
        let mut arguments = Arguments::new(&program.facts, &program.inputs, sizes, inputs)?;
        let inputs = arguments.take_inputs();
        let memory = inputs.into_iter().map(|(name, tensor)| (name, Stored::Whole(tensor))).collect();
        Ok(Evaluator { program, domain, arguments, memory, fuel: DEFAULT_FUEL, failed: None })
    }

    /// Sets how many steps the evaluation may take.
    pub fn with_fuel(mut self, fuel: u64) -> Self {
        self.fuel = fuel;
        self
    }

    /// Computes all outputs, in the program's order.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn run(mut self) -> Result<Named<D::Value>, EvalError> {
        self.outputs()
    }

    /// Computes all outputs like [`Evaluator::run`]; an error comes with the element that could not be computed.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn run_located(mut self) -> Result<Named<D::Value>, (EvalError, Option<Element>)> {
        self.outputs().map_err(|error| (error, self.failed.take()))
    }

    /// Computes all outputs like [`Evaluator::run`], in at most so many steps, and leaves those that it did not take.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn run_within(mut self, fuel: &mut u64) -> Result<Named<D::Value>, EvalError> {
        self.fuel = *fuel;
        let outputs = self.outputs();
        *fuel = self.fuel;
        outputs
    }

    fn outputs(&mut self) -> Result<Named<D::Value>, EvalError> {
        let partial = self.program.partial_bindings();
        let mut is_lazy = false;
        for (binding, last_uses) in self.program.bindings.iter().zip(self.program.last_uses()) {
            let Some(last_uses) = last_uses else { continue };
            // Of a tensor that has no value somewhere, only what is read is computed. It may then read anything.
            if partial.contains(&binding.name) {
                self.memory.insert(binding.name, Stored::OnDemand { term: binding.term, known: HashMap::new() });
                is_lazy = true;
                continue;
            }
            let shape = self.program.terms.ty(binding.term).shape_at(&|name| self.arguments.size(name))?;
            let mut run = Run::new(self);
            let mut last = 0;
            let tensor = Tensor::from_fn(shape.clone(), |position| {
                last = position;
                run.element(binding.term, index_of(&shape, position))
            });
            if let Some(Err(_)) = tensor {
                self.failed = Some((binding.name, index_of(&shape, last)));
            }
            let tensor = tensor.ok_or(EvalError::Memory)??;
            self.memory.insert(binding.name, Stored::Whole(tensor));
            if !is_lazy {
                last_uses.iter().for_each(|name| drop(self.memory.remove(name)));
            }
        }
        let shown = |(name, source): &(Name, Name)| match self.memory.get(source) {
            Some(Stored::Whole(tensor)) => Ok((*name, tensor.clone())),
            _ => Err(EvalError::Call(format!("the output {source} was not computed"))),
        };
        self.program.outputs.iter().map(shown).collect()
    }

    /// How many steps the evaluation may still take.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// Computes one element of an output, binding or input.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn element(&mut self, name: Name, index: &[i64]) -> Result<D::Value, EvalError> {
        self.demand(name, index, None).map(|(value, _)| value)
    }

    /// Computes one element like [`Evaluator::element`], and says how. What was computed before is not explained again.
    ///
    /// # Errors
    /// See [`EvalError`].
    pub fn trace(&mut self, name: Name, index: &[i64], limits: Limits) -> Result<Trace<D::Value>, EvalError> {
        let (value, log) = self.demand(name, index, Some(Log::new(limits)))?;
        let nothing = Trace { step: TraceStep::Read(name, index.to_vec()), value, parts: Vec::new(), left_out: 0 };
        Ok(log.and_then(Log::finish).unwrap_or(nothing))
    }

    fn demand(&mut self, name: Name, index: &[i64], log: Option<Log<D::Value>>) -> Result<Demanded<D>, EvalError> {
        let source =
            self.program.outputs.iter().find(|(output, _)| *output == name).map_or(name, |(_, source)| *source);
        for binding in &self.program.bindings {
            let missing = || Stored::OnDemand { term: binding.term, known: HashMap::new() };
            self.memory.entry(binding.name).or_insert_with(missing);
        }
        let Some(ty) = self.program.type_of(source) else {
            return Err(EvalError::Call(format!("there is no tensor {name}")));
        };
        let shape = ty.shape_at(&|name| self.arguments.size(name))?;
        let inside = |(&i, &size): (&i64, &usize)| usize::try_from(i).is_ok_and(|i| i < size);
        if index.len() != shape.len() || !index.iter().zip(&shape).all(inside) {
            return Err(EvalError::OutOfBounds(format!("{name}{index:?}, but its shape is {shape:?}")));
        }
        let mut run = Run::new(self);
        run.log = log;
        run.read(source, index.to_vec())?;
        let value = run.finish()?;
        Ok((value, run.log))
    }
}

/// An element, and how it was computed.
type Demanded<D> = (<D as Domain>::Value, Option<Log<<D as Domain>::Value>>);
