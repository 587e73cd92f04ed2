//! Runs: native code, or the reference evaluator over a domain.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use certen_core::domain::{Element, Exact, Field, Machine, Partial, Rational, Scalar};
use certen_core::{DEFAULT_FUEL, Domain, ElemType, EvalError, Evaluator, Limits, Literal, Tensor, Trace, index_of};
use certen_dialects::algebra::Typed;
use certen_figures::padded;
use certen_figures::semantics::{Semantics, Spill};
use certen_loops::Interpreter;
use certen_runtime::{Array, RuntimeError, default_threads, standard_environment, with_threads};
use certen_syntax::{Code, Diagnostic, Name};

use crate::call::{BoundCall, Call, InputArray};
use crate::failure::Failure;
use crate::pipeline::Module;

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backend {
    /// Native code.
    #[default]
    Native,
    /// The reference evaluator.
    Interp,
    /// The interpreter of the loops that native code is made from.
    Loops,
}

/// What the elements of tensors are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DomainChoice {
    /// The machine's numbers, of the program's element type.
    #[default]
    Machine,
    /// Exact rationals.
    Rational,
    /// The integers modulo the prime 2^61 - 1.
    Field,
    /// The machine's numbers or undefined; inputs may be missing.
    Undefined,
}

impl DomainChoice {
    /// What an element takes in memory, about.
    pub(crate) fn bytes(self) -> usize {
        match self {
            DomainChoice::Machine | DomainChoice::Field => size_of::<Scalar>(),
            DomainChoice::Undefined => size_of::<Option<Scalar>>(),
            // Two numbers of a few digits each, on the heap.
            DomainChoice::Rational => size_of::<Exact>() + 64,
        }
    }
}

/// How a program is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// What runs it; domains other than the machine's need the evaluator.
    pub backend: Backend,
    /// What the elements are.
    pub domain: DomainChoice,
    /// How many steps the evaluator may take.
    pub fuel: u64,
    /// How often native code runs: the best time counts.
    pub repeat: usize,
    /// How many threads native code uses; none for `$CERTEN_THREADS`, else as many as there are cores.
    pub threads: Option<NonZeroUsize>,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        let (backend, domain) = (Backend::Native, DomainChoice::Machine);
        RunOptions { backend, domain, fuel: DEFAULT_FUEL, repeat: 1, threads: None }
    }
}

/// How long a run took.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The best of all runs.
    pub best: Duration,
    /// How many runs there were.
    pub runs: usize,
    /// How long the C compiler took; none if the cache had the code or nothing was compiled.
    pub compile: Option<Duration>,
    /// How many arithmetic operations a run makes, if that fits in 63 bits.
    pub operations: Option<i64>,
    /// How many threads could work for it.
    pub threads: usize,
}

/// The elements of an output.
pub enum Values {
    /// Of the program's element type.
    Array(Array),
    /// Exact rationals.
    Exact(Vec<Exact>),
    /// Elements of the prime field.
    Field(Vec<Element>),
    /// Values or undefined.
    Partial(Vec<Option<Scalar>>),
}

/// A result of a run.
pub struct Output {
    /// Its name.
    pub name: Name,
    /// The element type of the program's tensor.
    pub elem: ElemType,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Its elements, row by row.
    pub values: Values,
}

impl Output {
    /// The elements as an array, if the run was in the machine's domain.
    pub fn array(&self) -> Option<&Array> {
        match &self.values {
            Values::Array(array) => Some(array),
            _ => None,
        }
    }
}

impl Module {
    /// Runs the program natively.
    ///
    /// # Errors
    /// If the call does not fit the program, or the machine cannot run it.
    pub fn run(&self, call: &Call) -> Result<Vec<Output>, Failure> {
        self.run_with(call, &RunOptions::default()).map(|(outputs, _)| outputs)
    }

    /// Runs the program as told, and says how long it took.
    ///
    /// # Errors
    /// As [`Module::run`]; and if the evaluator's fuel or the domain gives out.
    pub fn run_with(&self, call: &Call, options: &RunOptions) -> Result<(Vec<Output>, Timing), Failure> {
        let _environment = standard_environment();
        let bytes = |elem: ElemType| match options.backend {
            Backend::Native => elem.bytes(),
            Backend::Interp | Backend::Loops => options.domain.bytes(),
        };
        let loops = match options.backend {
            // What cannot be lowered says so when it is run.
            Backend::Native | Backend::Loops => self.loops().ok(),
            Backend::Interp => None,
        };
        let bound = call.bind(self, loops, bytes).map_err(|error| self.refuse(*error))?;
        match (options.backend, options.domain) {
            (Backend::Native, DomainChoice::Machine) => self.run_native(&bound, options),
            (Backend::Native, _) => {
                let error =
                    Diagnostic::error(Code::E0407, None, "native code computes with the machine's numbers only");
                Err(self.refuse(error.help("leave out `--backend native`, or the domain")))
            }
            (Backend::Interp | Backend::Loops, _) => {
                let begin = Instant::now();
                let way = if options.backend == Backend::Loops { Way::Loops } else { Way::Core };
                let (outputs, _) = self.run_interp(&bound, options.domain, options.fuel, way)?;
                let best = begin.elapsed();
                let operations = match options.backend {
                    // The evaluator runs the program as written.
                    Backend::Interp => self.core().operations().ok().and_then(|o| o.eval(&self.size(&bound)).ok()),
                    _ => self.operations_of(&bound),
                };
                Ok((outputs, Timing { best, runs: 1, compile: None, operations, threads: 1 }))
            }
        }
    }

    /// One element of an output, by the reference evaluator in the machine's domain.
    ///
    /// # Errors
    /// As [`Module::run_with`]; and if the index is outside.
    pub fn element(&self, call: &Call, output: Name, index: &[i64], fuel: u64) -> Result<Scalar, Failure> {
        // A single element needs the inputs, and of other tensors only the elements that it depends on.
        let _environment = standard_environment();
        let bound = call.bind(self, None, |elem| elem.bytes()).map_err(|error| self.refuse(*error))?;
        self.check_place(&bound, output, index)?;
        let (sizes, inputs) = self.embedded(&bound, &Machine, |value, _| Ok(*value))?;
        let evaluator = Evaluator::new(self.core(), &Machine, sizes, inputs);
        let element = evaluator.and_then(|evaluator| evaluator.with_fuel(fuel).element(output, index));
        element.map_err(|error| self.eval_failure(&error))
    }

    /// How one element of an output is computed, by the reference evaluator in the machine's domain.
    ///
    /// # Errors
    /// As [`Module::element`].
    pub fn trace(
        &self,
        call: &Call,
        output: Name,
        index: &[i64],
        limits: Limits,
        fuel: u64,
    ) -> Result<Trace<Scalar>, Failure> {
        let _environment = standard_environment();
        let bound = call.bind(self, None, |elem| elem.bytes()).map_err(|error| self.refuse(*error))?;
        self.check_place(&bound, output, index)?;
        let (sizes, inputs) = self.embedded(&bound, &Machine, |value, _| Ok(*value))?;
        let evaluator = Evaluator::new(self.core(), &Machine, sizes, inputs);
        let trace = evaluator.and_then(|evaluator| evaluator.with_fuel(fuel).trace(output, index, limits));
        trace.map_err(|error| self.eval_failure(&error))
    }

    /// There is such an output, and it has an element there.
    fn check_place(&self, bound: &BoundCall<'_>, output: Name, index: &[i64]) -> Result<(), Failure> {
        let types = self.core().types();
        let found = self.core().outputs.iter().find(|(name, _)| *name == output);
        let Some(ty) = found.and_then(|(_, source)| types.get(source)) else {
            return Err(self.refuse(Diagnostic::error(
                Code::E0402,
                None,
                format!("the program has no output `{output}`"),
            )));
        };
        let shape: Vec<i64> = ty.shape.iter().filter_map(|size| size.eval(&self.size(bound)).ok()).collect();
        if index.len() == shape.len() && index.iter().zip(&shape).all(|(i, size)| (0..*size).contains(i)) {
            return Ok(());
        }
        let text =
            format!("there is no {output}{index:?}: the shape of `{output}` is {shape:?}, and indices begin at 0");
        Err(self.refuse(Diagnostic::error(Code::E0403, None, text)))
    }

    /// The sizes of a call, by name.
    pub(crate) fn size(&self, bound: &BoundCall<'_>) -> impl Fn(Name) -> Option<i64> {
        let names = &self.core().sizes;
        move |name| names.iter().position(|&n| n == name).map(|at| bound.sizes[at])
    }

    fn operations_of(&self, bound: &BoundCall<'_>) -> Option<i64> {
        self.operations()?.eval(&self.size(bound)).ok()
    }

    fn run_native(&self, bound: &BoundCall<'_>, options: &RunOptions) -> Result<(Vec<Output>, Timing), Failure> {
        let failed = |error: RuntimeError| self.runtime_failure(&error);
        let threads = options.threads.map_or_else(default_threads, Ok).map_err(failed)?;
        let own = self.specialised(&bound.sizes)?;
        let module = own.as_deref().unwrap_or(self);
        let (kernel, sizes) = (module.native()?, module.sizes_left(self, &bound.sizes));
        let sizes = sizes.as_slice();
        let inputs: Vec<&Array> = bound.inputs.iter().flatten().map(InputArray::array).collect();
        let mut arrays = kernel.signature().allocate_outputs(sizes).map_err(failed)?;
        let mut best = Duration::MAX;
        let runs = options.repeat.max(1);
        for _ in 0..runs {
            let begin = Instant::now();
            with_threads(threads, || kernel.call(sizes, &inputs, &mut arrays)).map_err(failed)?;
            best = best.min(begin.elapsed());
        }
        let outputs = self.core().outputs.iter().zip(arrays).map(|((name, _), array)| Output {
            name: *name,
            elem: array.elem(),
            shape: array.shape().to_vec(),
            values: Values::Array(array),
        });
        let (compile, operations) = (kernel.compile_time(), self.operations_of(bound));
        let timing = Timing { best, runs, compile, operations, threads: threads.get() };
        Ok((outputs.collect(), timing))
    }

    pub(crate) fn run_interp(
        &self,
        bound: &BoundCall<'_>,
        domain: DomainChoice,
        fuel: u64,
        way: Way<'_>,
    ) -> Result<(Vec<Output>, Vec<Spill>), Failure> {
        let options = (way, fuel);
        let exact = |value: &Scalar, elem| Rational.literal(literal(*value), elem).map_err(EvalError::Fault);
        match domain {
            DomainChoice::Machine => self.evaluate(
                bound,
                &Machine,
                options,
                |value, _| Ok(*value),
                |tensor, elem| {
                    let array = Array::from_tensor(elem, &tensor)
                        .map_err(|error| RuntimeError::Array { which: "output".into(), error });
                    array.map(Values::Array)
                },
            ),
            DomainChoice::Rational => {
                self.evaluate(bound, &Rational, options, exact, |tensor, _| Ok(Values::Exact(tensor.data().to_vec())))
            }
            DomainChoice::Field => {
                let field = Field { seed: 0 };
                let embed = |value: &Scalar, elem| field.literal(literal(*value), elem).map_err(EvalError::Fault);
                self.evaluate(bound, &field, options, embed, |tensor, _| Ok(Values::Field(tensor.data().to_vec())))
            }
            DomainChoice::Undefined => {
                let domain = Partial(Machine);
                self.evaluate(
                    bound,
                    &domain,
                    options,
                    |value, _| Ok(Some(*value)),
                    |tensor, _| Ok(Values::Partial(tensor.data().to_vec())),
                )
            }
        }
    }

    /// The sizes and inputs of a call as values of a domain.
    fn embedded<D: Domain>(
        &self,
        bound: &BoundCall<'_>,
        domain: &D,
        embed: impl Fn(&Scalar, ElemType) -> Result<D::Value, EvalError>,
    ) -> Result<Embedded<D::Value>, Failure> {
        let core = self.core();
        let sizes: Vec<(Name, i64)> = core.sizes.iter().copied().zip(bound.sizes.iter().copied()).collect();
        let mut inputs = Vec::with_capacity(core.inputs.len());
        for (parameter, given) in core.inputs.iter().zip(&bound.inputs) {
            let elem = parameter.ty.elem;
            let mut last = 0;
            let tensor = match given {
                Some(given) => {
                    let scalars = given.array().to_tensor().map_err(|error| {
                        self.runtime_failure(&RuntimeError::Array { which: format!("`{}`", parameter.name), error })
                    })?;
                    let shape = scalars.shape().to_vec();
                    Tensor::from_fn(shape, |at| {
                        last = at;
                        embed(&scalars.data()[at], elem)
                    })
                }
                None => {
                    let shape = parameter.ty.shape_at(&self.size(bound));
                    let shape = shape.map_err(|error| self.eval_failure(&error.into()))?;
                    Tensor::from_fn(shape, |_| domain.undefined(elem).map_err(EvalError::Fault))
                }
            };
            let tensor = tensor.unwrap_or(Err(EvalError::Memory)).map_err(|error| {
                let text = match given.as_ref().and_then(|given| Some((given.array(), given.array().get(last)?))) {
                    Some((array, value)) => {
                        let element = element(parameter.name, &index_of(array.shape(), last));
                        format!("`{element}` is {value}, which this domain does not have: {error}")
                    }
                    None => format!("`{}` has elements that this domain does not have: {error}", parameter.name),
                };
                self.refuse(Diagnostic::error(error.code(), None, text))
            })?;
            inputs.push((parameter.name, tensor));
        }
        Ok((sizes, inputs))
    }

    fn evaluate<D: Domain>(
        &self,
        bound: &BoundCall<'_>,
        domain: &D,
        (way, fuel): (Way<'_>, u64),
        embed: impl Fn(&Scalar, ElemType) -> Result<D::Value, EvalError>,
        show: impl Fn(Tensor<D::Value>, ElemType) -> Result<Values, RuntimeError>,
    ) -> Result<(Vec<Output>, Vec<Spill>), Failure> {
        let (sizes, inputs) = self.embedded(bound, domain, embed)?;
        let mut spills = Vec::new();
        let mut failed = None;
        let computed = match way {
            Way::Loops => {
                let loops = self.loops()?;
                Interpreter::new(loops, domain, sizes, inputs).and_then(|run| run.with_fuel(fuel).run())
            }
            Way::Core => Evaluator::new(self.core(), domain, sizes, inputs).and_then(|run| {
                run.with_fuel(fuel).run_located().map_err(|(error, place)| {
                    failed = place;
                    error
                })
            }),
            Way::Padded(typed, vector) => {
                let elem = self.options.elem;
                let semantics = Semantics::new(typed, domain, elem, sizes, fuel).padded(vector);
                padded::evaluate(semantics, typed, domain, elem, inputs).map(|(outputs, found)| {
                    spills = found;
                    outputs
                })
            }
        };
        let computed = computed.map_err(|error| self.located_failure(&error, failed))?;
        // Loops may call the buffer of an output otherwise, where an input has its name.
        let names = self.core().outputs.iter().map(|(name, _)| *name);
        let elements = names.zip(self.signature().outputs.into_iter().map(|ty| ty.elem));
        let outputs = computed.into_iter().zip(elements).map(|((_, tensor), (name, elem))| {
            let shape = tensor.shape().to_vec();
            let values = show(tensor, elem).map_err(|error| self.runtime_failure(&error))?;
            Ok(Output { name, elem, shape, values })
        });
        let outputs = outputs.collect::<Result<_, Failure>>()?;
        Ok((outputs, spills))
    }

    /// What failed, and at which element: an output by its name, another tensor by that which it has in Core.
    fn located_failure(&self, error: &EvalError, place: Option<(Name, Vec<i64>)>) -> Failure {
        let (EvalError::Fault(fault), Some((source, index))) = (error, place) else { return self.eval_failure(error) };
        let shown = self.core().outputs.iter().find(|(_, shown)| *shown == source);
        let name = shown.map_or(source, |(name, _)| *name);
        let element = element(name, &index);
        let diagnostic = Diagnostic::error(error.code(), None, format!("`{element}` has no value: {fault}"));
        let traced = shown.map(|_| format!("`certen trace` with `--at {element}` shows what it is computed from"));
        self.refuse(traced.into_iter().fold(diagnostic, Diagnostic::help))
    }

    pub(crate) fn eval_failure(&self, error: &EvalError) -> Failure {
        let diagnostic = Diagnostic::error(error.code(), None, error.to_string());
        self.refuse(match error {
            EvalError::Fuel => diagnostic.help("use smaller sizes, native code, or a larger `--fuel`"),
            _ => diagnostic,
        })
    }
}

/// `A[1,2]`, as `--at` takes it.
fn element(name: Name, index: &[i64]) -> String {
    let index: Vec<String> = index.iter().map(i64::to_string).collect();
    if index.is_empty() { name.to_string() } else { format!("{name}[{}]", index.join(",")) }
}

/// What evaluates a program.
#[derive(Clone, Copy)]
pub(crate) enum Way<'a> {
    /// The reference evaluator of Core.
    Core,
    /// The interpreter of the loops.
    Loops,
    /// The papers' own semantics, with padding to multiples of a vector length.
    Padded(&'a Typed, i64),
}

/// Sizes and inputs, by name.
type Embedded<V> = (Vec<(Name, i64)>, Vec<(Name, Tensor<V>)>);

fn literal(value: Scalar) -> Literal {
    match value {
        Scalar::F64(value) => Literal::Float(value),
        Scalar::F32(value) => Literal::Float(value.into()),
        Scalar::I64(value) => Literal::Int(value),
        Scalar::I32(value) => Literal::Int(value.into()),
        Scalar::U8(value) => Literal::Int(value.into()),
        Scalar::Bool(value) => Literal::Bool(value),
    }
}
