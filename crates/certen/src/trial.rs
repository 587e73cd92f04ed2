//! The trial: machine code run once, beside the meaning at single elements.
//!
//! Loops are compared with the meaning at small sizes; what the code generator and the C compiler make of them is machine
//! code for the sizes of a kernel, which may be large. So a kernel without symbolic sizes is run once after it was
//! built, on inputs for which floating-point arithmetic is exact: small whole numbers, times the divisors that stand
//! in the program. Elements at the corners, beside the edges of tiles and anywhere else are evaluated one by one
//! ([`certen_core::Evaluator::element`]), in a domain that knows the sum of all magnitudes and so whether any order of
//! operations rounds ([`certen_core::domain::magnitude`]). Where none does, the bits have to be equal; where that cannot
//! be had (quotients that do not come out, exp, sqrt, …), values have to be within the bound that every order keeps.
//!
//! Inputs are formulas of the index: the evaluator gets them as bindings, element by element, and no large tensor of the
//! domain's values is ever stored. Work is bounded: what is too large is left out, and says so. That a kernel has passed
//! is noted beside its entry in the cache, for this meaning of it, so that it is tried once (and likewise that nothing could
//! be compared); a kernel that fails is refused, and nothing is noted.

use std::fmt;

use certen_core::domain::Scalar;
use certen_core::domain::magnitude::{Magnitude, Measured};
use certen_core::{
    Binary, Binding, ElemType, EvalError, Evaluator, Fault, Literal, Parameter, Program, Range, Term, Terms, Unary,
};
use certen_index::{Ix, IxError};
use certen_runtime::{Array, NativeKernel};
use certen_syntax::{Code, Diagnostic, Name};

use crate::{Failure, Module};

/// Operations that a run may make: about a second of slow code.
const OPERATIONS: i64 = 1 << 31;

/// Bytes that inputs and outputs may take together: memory that a user's own call does not need.
const BYTES: u64 = 1 << 26;

/// Steps of the evaluator, for all elements.
const STEPS: u64 = 400_000;

/// Elements of an output that are compared at most.
const ELEMENTS: u64 = 48;

/// Divisors that stand in the program are multiplied up to this.
const LARGEST_SCALE: i64 = 1 << 12;

/// What a trial has found: no difference.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trial {
    /// Elements whose bits had to be equal.
    pub exact: usize,
    /// Elements that had to be within their bound.
    pub bounded: usize,
    /// Whether this code had passed before.
    pub before: bool,
    /// Why the code was not run, or not compared.
    pub left_out: Option<String>,
}

impl Trial {
    fn left_out(why: impl Into<String>) -> Trial {
        Trial { left_out: Some(why.into()), ..Trial::default() }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.left_out, self.before) {
            (Some(why), _) => write!(f, "the compiled code was not tried: {why}"),
            (None, true) => write!(f, "the compiled code was tried before"),
            (None, false) => {
                write!(f, "the compiled code was run: {} elements have equal bits", self.exact)?;
                if self.bounded > 0 {
                    write!(f, ", {} are within the bound of any order of summation", self.bounded)?;
                }
                Ok(())
            }
        }
    }
}

/// Runs a kernel of a module without symbolic sizes, unless this code has passed before, and compares elements of what it
/// computes with the meaning.
///
/// # Errors
/// E0705 if an element differs.
pub fn trial(module: &Module, kernel: &NativeKernel) -> Result<Trial, Failure> {
    if !module.core().sizes.is_empty() {
        return Ok(Trial::left_out("it is for all sizes"));
    }
    let hash = hash(module.core());
    // For which meaning: the same code may be made for another one.
    let [passed, nothing] = ["passed", "nothing"].map(|found| format!("trial 1: {found} {hash:016x}\n"));
    if kernel.has_note(&passed) {
        return Ok(Trial { before: true, ..Trial::default() });
    }
    if kernel.has_note(&nothing) {
        return Ok(Trial::left_out("a run before has found nothing that can be compared"));
    }
    // What may round differently is compared with what the loops were made from; that they mean the same is known.
    let program = module.optimised()?;
    let trial = match Inputs::new(program).and_then(|inputs| compared(module, program, kernel, &inputs)) {
        Ok(trial) => trial,
        Err(Stopped::LeftOut(why)) => return Ok(Trial::left_out(why)),
        Err(Stopped::Differs(error)) => return Err(module.refuse(*error)),
    };
    kernel.note(if trial.left_out.is_none() { &passed } else { &nothing });
    Ok(trial)
}

/// FNV-1a, of the text of a program.
fn hash(core: &Program) -> u64 {
    let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    core.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, add)
}

enum Stopped {
    LeftOut(String),
    Differs(Box<Diagnostic>),
}

fn left_out(why: impl fmt::Display) -> Stopped {
    Stopped::LeftOut(why.to_string())
}

fn compared(module: &Module, program: &Program, kernel: &NativeKernel, inputs: &Inputs) -> Result<Trial, Stopped> {
    bounded_work(module, kernel)?;
    let given = inputs.formulas.iter().map(Formula::array).collect::<Result<Vec<Array>, Stopped>>()?;
    let mut outputs = kernel.signature().allocate_outputs(&[]).map_err(left_out)?;
    kernel.call(&[], &given.iter().collect::<Vec<_>>(), &mut outputs).map_err(left_out)?;
    drop(given);
    let meaning = inputs.bound(program)?;
    let evaluator = Evaluator::new(&meaning, &Magnitude, [], []).map_err(left_out)?;
    let mut evaluator = evaluator.with_fuel(STEPS);
    let mut trial = Trial::default();
    let samples = outputs.iter().map(|output| samples(output.shape())).collect::<Vec<_>>();
    let most = samples.iter().map(Vec::len).max().unwrap_or(0);
    // A sample of each output in turn, so that none is left out when the steps are used up.
    for (number, at) in (0..most).flat_map(|number| (0..outputs.len()).map(move |at| (number, at))) {
        let Some(index) = samples[at].get(number) else { continue };
        let (name, output) = (program.outputs[at].0, &outputs[at]);
        let expected = match evaluator.element(name, index) {
            Ok(expected) => expected,
            Err(EvalError::Fuel) => break,
            // What has no value there may be anything here.
            Err(EvalError::EmptyReduction | EvalError::Fault(Fault::Undefined)) => continue,
            Err(error) => return Err(left_out(error)),
        };
        let Some(found) = output.get(position(output.shape(), index)) else { continue };
        if !expected.accepts(found) {
            return Err(Stopped::Differs(Box::new(difference(name, index, &expected, found))));
        }
        match (expected.is_known(), expected.is_exact()) {
            (true, true) => trial.exact += 1,
            (true, false) => trial.bounded += 1,
            (false, _) => {}
        }
    }
    if trial.exact + trial.bounded == 0 {
        return Ok(Trial::left_out(format!("no element has a value that is known within {STEPS} steps")));
    }
    Ok(trial)
}

fn bounded_work(module: &Module, kernel: &NativeKernel) -> Result<(), Stopped> {
    let operations = module.operations().and_then(Ix::as_constant);
    if operations.is_none_or(|operations| operations > OPERATIONS) {
        return Err(left_out(format!("a run makes more than {OPERATIONS} operations")));
    }
    let signature = kernel.signature();
    let bytes = signature.inputs.iter().chain(&signature.outputs).try_fold(0u64, |sum, ty| {
        let elements = ty.shape_at(&|_| None).ok()?.iter().try_fold(1u64, |n, size| n.checked_mul(*size as u64))?;
        sum.checked_add(elements.checked_mul(ty.elem.bytes() as u64)?)
    });
    match bytes {
        Some(bytes) if bytes <= BYTES => Ok(()),
        _ => Err(left_out(format!("the arrays take more than {} MiB", BYTES >> 20))),
    }
}

fn difference(name: Name, index: &[i64], expected: &Measured, found: Scalar) -> Diagnostic {
    let index: Vec<String> = index.iter().map(i64::to_string).collect();
    let at = if index.is_empty() { String::new() } else { format!("[{}]", index.join(", ")) };
    let text = format!("the compiled code gives {name}{at} = {found}, but the program means {}", expected.value);
    let how = match expected.is_exact() {
        true => "on inputs for which no order of operations rounds".to_owned(),
        false => format!("more than {:e} apart, which no order of operations explains", 4.0 * expected.error()),
    };
    Diagnostic::error(Code::E0705, None, text)
        .note(how)
        .note("this is a bug in Certen or in the C compiler; the code is not used")
}

/// The inputs of a trial, as formulas of their indices.
struct Inputs {
    formulas: Vec<Formula>,
}

/// `scale * (mod(polynomial of the index, modulus) - shift)`
struct Formula {
    name: Name,
    elem: ElemType,
    shape: Vec<usize>,
    /// Of each dimension, and of its product with the one before.
    factors: Vec<(i64, i64)>,
    constant: i64,
    modulus: i64,
    shift: i64,
    scale: i64,
}

impl Inputs {
    fn new(program: &Program) -> Result<Inputs, Stopped> {
        let (scale, positive) = (scale(&program.terms), needs_positive(&program.terms));
        let formula = |(number, Parameter { name, ty }): (usize, &Parameter)| {
            let shape = ty.shape_at(&|_| None).map_err(left_out)?;
            let number = number as i64;
            let factors = (0..shape.len() as i64).map(|d| (3 + 2 * d + number, 1 + (d + number) % 3)).collect();
            let (modulus, shift, scale) = match ty.elem {
                ElemType::F64 => (11, if positive { -1 } else { 5 }, scale),
                ElemType::F32 => (5, if positive { -1 } else { 2 }, scale),
                ElemType::I32 | ElemType::I64 => (1009, if positive { -1 } else { 504 }, 1),
                ElemType::U8 => (251, 0, 1),
                ElemType::Bool => (2, 0, 1),
            };
            Ok(Formula { name: *name, elem: ty.elem, shape, factors, constant: 1 + number, modulus, shift, scale })
        };
        Ok(Inputs { formulas: program.inputs.iter().enumerate().map(formula).collect::<Result<_, Stopped>>()? })
    }

    /// The program with its inputs bound to the formulas.
    fn bound(&self, program: &Program) -> Result<Program, Stopped> {
        let taken = program.names();
        let mut terms = program.terms.clone();
        let mut bindings = Vec::with_capacity(self.formulas.len() + program.bindings.len());
        for formula in &self.formulas {
            let index = |d: usize| Name::fresh(&format!("at{d}"), |name| taken.contains(&name));
            let indices: Vec<Name> = (0..formula.shape.len()).map(index).collect();
            let value = formula.ix(&indices).map_err(left_out)?;
            // An index is no byte and no truth value, but can be converted.
            let elem = if formula.elem.has_arithmetic() { formula.elem } else { ElemType::I64 };
            let mut term = terms.add(Term::Index(value, elem)).map_err(left_out)?;
            if elem != formula.elem {
                term = terms.add(Term::Cast(formula.elem, term)).map_err(left_out)?;
            }
            for (index, size) in indices.iter().zip(&formula.shape).rev() {
                let size = i64::try_from(*size).map_err(left_out)?;
                term = terms.add(Term::Gen(*index, Range::to(Ix::from(size)), term)).map_err(left_out)?;
            }
            bindings.push(Binding { name: formula.name, term });
        }
        bindings.extend(program.bindings.iter().cloned());
        Ok(Program {
            name: program.name,
            sizes: Vec::new(),
            facts: Vec::new(),
            inputs: Vec::new(),
            bindings,
            outputs: program.outputs.clone(),
            terms,
        })
    }
}

impl Formula {
    fn ix(&self, indices: &[Name]) -> Result<Ix, IxError> {
        let mut sum = Ix::from(self.constant);
        for (d, (factor, product)) in self.factors.iter().enumerate() {
            let i = Ix::var(indices[d]);
            sum = sum.add(&i.scale(*factor)?)?;
            if d > 0 {
                sum = sum.add(&Ix::var(indices[d - 1]).mul(&i)?.scale(*product)?)?;
            }
        }
        sum.modulo(self.modulus)?.sub(&Ix::from(self.shift))?.scale(self.scale)
    }

    fn value(&self, index: &[i64]) -> i64 {
        let mut sum = self.constant;
        for (d, (factor, product)) in self.factors.iter().enumerate() {
            sum += factor * index[d];
            if d > 0 {
                sum += product * index[d - 1] * index[d];
            }
        }
        self.scale * (sum.rem_euclid(self.modulus) - self.shift)
    }

    /// The input as native code gets it.
    fn array(&self) -> Result<Array, Stopped> {
        let mut array = Array::zeros(self.elem, &self.shape).map_err(left_out)?;
        macro_rules! fill {
            ($type:ty, $of:expr) => {
                if let Some(elements) = array.as_mut_slice::<$type>() {
                    let mut index = vec![0i64; self.shape.len()];
                    for element in elements {
                        *element = $of(self.value(&index));
                        next(&mut index, &self.shape);
                    }
                }
            };
        }
        match self.elem {
            ElemType::F64 => fill!(f64, |value: i64| value as f64),
            ElemType::F32 => fill!(f32, |value: i64| value as f32),
            ElemType::I64 => fill!(i64, |value: i64| value),
            ElemType::I32 => fill!(i32, |value: i64| value as i32),
            ElemType::U8 => fill!(u8, |value: i64| value as u8),
            ElemType::Bool => fill!(bool, |value: i64| value != 0),
        }
        Ok(array)
    }
}

/// The next index, row by row.
fn next(index: &mut [i64], shape: &[usize]) {
    for (i, size) in index.iter_mut().zip(shape).rev() {
        *i += 1;
        if (*i as usize) < *size {
            return;
        }
        *i = 0;
    }
}

fn position(shape: &[usize], index: &[i64]) -> usize {
    index.iter().zip(shape).fold(0, |at, (i, size)| at * size + *i as usize)
}

/// A number that all whole divisors in the program divide, so that quotients by them come out.
fn scale(terms: &Terms) -> i64 {
    let whole = |term: &Term| match term {
        Term::Literal(Literal::Float(value), _) if value.fract() == 0.0 => Some(*value as i64),
        Term::Index(ix, _) => ix.as_constant(),
        _ => None,
    };
    let divisors = terms.iter().filter_map(|(_, term)| match term {
        Term::Binary(Binary::Div | Binary::ControlledDiv, _, b) => whole(terms.get(*b)),
        _ => None,
    });
    let gcd = |mut a: i64, mut b: i64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    divisors.filter(|divisor| (2..=LARGEST_SCALE).contains(divisor)).fold(1, |scale, divisor| {
        let multiple = scale / gcd(scale, divisor) * divisor;
        if multiple <= LARGEST_SCALE { multiple } else { scale }
    })
}

/// Whether some operation has no value, or hardly one, for numbers that are not positive.
fn needs_positive(terms: &Terms) -> bool {
    terms.iter().any(|(_, term)| match term {
        Term::Unary(op, _) => matches!(op, Unary::Sqrt | Unary::Log),
        Term::Binary(Binary::Pow, ..) => true,
        Term::Binary(Binary::Div | Binary::ControlledDiv, _, b) => !matches!(terms.get(*b), Term::Literal(..)),
        _ => false,
    })
}

/// Indices of elements: the first, the last, and such whose components are at an end, beside a multiple of a tile size, or
/// anywhere.
fn samples(shape: &[usize]) -> Vec<Vec<i64>> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let mut found: Vec<Vec<i64>> = vec![vec![0; shape.len()], shape.iter().map(|size| *size as i64 - 1).collect()];
    let mut state = 0u64;
    for _ in 2..ELEMENTS {
        let mut component = |size: &usize| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let bits = (state ^ (state >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let (bits, size) = (bits ^ (bits >> 29), *size as u64);
            let tile = [4, 8, 16, 32, 64][(bits >> 8) as usize % 5];
            let i = match bits % 4 {
                0 => 0,
                1 => size - 1,
                2 => ((bits >> 16) % size / tile * tile + (bits >> 12) % 3).saturating_sub(1),
                _ => (bits >> 16) % size,
            };
            i.min(size - 1) as i64
        };
        found.push(shape.iter().map(&mut component).collect());
    }
    found.sort();
    found.dedup();
    // The ends first, as they were, then the others in no order that one would think of.
    found.sort_by_key(|index| index.iter().fold(7i64, |hash, i| hash.wrapping_mul(31).wrapping_add(*i) % 8191));
    found
}
