//! Single elements of large outputs, beside the meaning.
//!
//! A kernel whose sizes are beyond what the loop interpreter can run is run once on inputs for which floating-point arithmetic
//! is exact: small whole numbers, times the divisors that stand in the program. Elements at the corners, beside the edges
//! of vectors and tiles, and anywhere else are evaluated one by one ([`certen_core::Evaluator::element`]), in a domain
//! that knows the sum of all magnitudes and so whether any order of operations rounds
//! ([`certen_core::domain::magnitude`]). Where none does, the bits have to be equal; where that cannot be had (quotients that
//! do not come out, exp, sqrt, …), values have to be within the bound that every order keeps.
//!
//! Inputs are formulas of the index: the evaluator gets them as bindings, element by element, and no large tensor of the
//! domain's values is ever stored. Work is bounded: what is too large is left out, and says so.

use certen_core::domain::magnitude::{Magnitude, Measured};
use certen_core::domain::{Scalar, splitmix};
use certen_core::{
    Binary, Binding, ElemType, EvalError, Evaluator, Fault, Literal, Parameter, Program, Range, Term, Terms,
};
use certen_index::{Ix, IxError};
use certen_runtime::{Array, NativeKernel, RuntimeError, with_threads};
use certen_syntax::{Diagnostic, Name};

use super::beside::THREADS;
use super::given::needs_positive;
use super::{MachineCode, Stopped, Trial, refused};

/// Operations that a run may make: about a second of slow code.
const OPERATIONS: i64 = 1 << 31;

/// Bytes that inputs and outputs may take together: memory that a user's own call does not need.
const BYTES: u64 = 1 << 26;

/// Steps of the evaluator, for all elements.
const STEPS: u64 = 400_000;

/// Elements of an output that are compared at most.
const ELEMENTS: usize = 96;

/// Dimensions whose ends are combined in every way.
const CORNERS: usize = 4;

/// Lengths of vectors and tiles, the most frequent first.
const TILES: [i64; 5] = [8, 4, 16, 32, 64];

/// Divisors that stand in the program are multiplied up to this.
const LARGEST_SCALE: i64 = 1 << 12;

/// Compares elements of what a kernel without symbolic sizes computes with the meaning.
pub(super) fn compared(code: &MachineCode<'_>, kernel: &NativeKernel, trial: &mut Trial) -> Result<(), Stopped> {
    // What may round differently is compared with what the loops were made from; that they mean the same is known.
    let program = code.lowered;
    let inputs = Inputs::new(program)?;
    bounded_work(code, kernel)?;
    let given = inputs.formulas.iter().map(Formula::array).collect::<Result<Vec<Array>, Stopped>>()?;
    let mut outputs = kernel.signature().allocate_outputs(&[]).map_err(Stopped::left_out)?;
    for output in &mut outputs {
        let garbage = match output.elem() {
            ElemType::F32 | ElemType::F64 => Scalar::from_f64(f64::NAN, output.elem()),
            elem => Scalar::from_i64(0x5a5a_5a5a, elem),
        };
        *output = Array::filled(output.shape(), garbage).map_err(Stopped::left_out)?;
    }
    match with_threads(THREADS, || kernel.call(&[], &given.iter().collect::<Vec<_>>(), &mut outputs)) {
        Ok(()) => {}
        Err(RuntimeError::BadKernel(why)) => return Err(Stopped::Broken(why)),
        Err(error) => return Err(Stopped::left_out(error)),
    }
    drop(given);
    let meaning = inputs.bound(program)?;
    let evaluator = Evaluator::new(&meaning, &Magnitude, [], []).map_err(Stopped::left_out)?;
    let mut evaluator = evaluator.with_fuel(STEPS);
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
            Err(error) => return Err(Stopped::left_out(error)),
        };
        let Some(found) = output.get(position(output.shape(), index)) else { continue };
        if !expected.accepts(found) {
            return Err(Stopped::Means(Box::new(difference(name, index, &expected, found))));
        }
        match (expected.is_known(), expected.is_exact()) {
            (true, true) => trial.exact += 1,
            (true, false) => trial.bounded += 1,
            (false, _) => {}
        }
    }
    if trial.exact + trial.bounded == 0 {
        return Err(Stopped::left_out(format!("no element has a value that is known within {STEPS} steps")));
    }
    Ok(())
}

fn bounded_work(code: &MachineCode<'_>, kernel: &NativeKernel) -> Result<(), Stopped> {
    if code.operations.is_none_or(|operations| operations > OPERATIONS) {
        return Err(Stopped::left_out(format!("a run makes more than {OPERATIONS} operations")));
    }
    let signature = kernel.signature();
    let bytes = signature.inputs.iter().chain(&signature.outputs).try_fold(0u64, |sum, ty| {
        let elements = ty.shape_at(&|_| None).ok()?.iter().try_fold(1u64, |n, size| n.checked_mul(*size as u64))?;
        sum.checked_add(elements.checked_mul(ty.elem.bytes() as u64)?)
    });
    match bytes {
        Some(bytes) if bytes <= BYTES => Ok(()),
        _ => Err(Stopped::left_out(format!("the arrays take more than {} MiB", BYTES >> 20))),
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
    refused(text).note(how)
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
            let shape = ty.shape_at(&|_| None).map_err(Stopped::left_out)?;
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
            let value = formula.ix(&indices).map_err(Stopped::left_out)?;
            // An index is no byte and no truth value, but can be converted.
            let elem = if formula.elem.has_arithmetic() { formula.elem } else { ElemType::I64 };
            let mut term = terms.add(Term::Index(value, elem)).map_err(Stopped::left_out)?;
            if elem != formula.elem {
                term = terms.add(Term::Cast(formula.elem, term)).map_err(Stopped::left_out)?;
            }
            for (index, size) in indices.iter().zip(&formula.shape).rev() {
                let size = i64::try_from(*size).map_err(Stopped::left_out)?;
                term = terms.add(Term::Gen(*index, Range::to(Ix::from(size)), term)).map_err(Stopped::left_out)?;
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
        let mut array = Array::zeros(self.elem, &self.shape).map_err(Stopped::left_out)?;
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

/// Indices of elements, those that matter most first: the corners; of each dimension what lies beside the last multiples of
/// the lengths of vectors and tiles, the others at either end or anywhere; then any.
fn samples(shape: &[usize]) -> Vec<Vec<i64>> {
    if shape.contains(&0) {
        return Vec::new();
    }
    let mut found: Vec<Vec<i64>> = Vec::new();
    let mut add = |index: Vec<i64>| {
        if found.len() < ELEMENTS && !found.contains(&index) {
            found.push(index);
        }
    };
    let last = |d: usize| shape[d] as i64 - 1;
    for corner in 0..1usize << shape.len().min(CORNERS) {
        // The first dimensions of many have no more than the two corners that all have.
        let end = |d: usize| corner >> d.min(CORNERS - 1) & 1 == 1;
        add((0..shape.len()).map(|d| if end(d) { last(d) } else { 0 }).collect());
    }
    let mut state = 0;
    let mut random = |size: usize| {
        state += 1;
        (splitmix(state) % size as u64) as i64
    };
    for (tile, beside) in TILES.into_iter().flat_map(|tile| [-1, 0, 1].map(|beside| (tile, beside))) {
        for d in 0..shape.len() {
            // Where the last tile begins, which may not be whole.
            let edge = (last(d) / tile * tile + beside).clamp(0, last(d));
            let other = |o: usize| match random(3) {
                0 => 0,
                1 => last(o),
                _ => random(shape[o]),
            };
            let mut other = other;
            add((0..shape.len()).map(|o| if o == d { edge } else { other(o) }).collect());
        }
    }
    for _ in 0..ELEMENTS {
        add(shape.iter().map(|size| random(*size)).collect());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corners_come_first_then_edges() {
        let found = samples(&[100, 1000]);
        assert_eq!(found[..4], [[0, 0], [99, 0], [0, 999], [99, 999]]);
        assert!(found.len() > 60);
        for edge in [991, 992, 993, 995, 996, 997, 959, 960, 961] {
            assert!(found.iter().any(|index| index[1] == edge), "{edge}: {found:?}");
        }
        assert!(found.iter().all(|index| index[0] < 100 && index[1] < 1000 && index.iter().all(|i| *i >= 0)));
        assert_eq!(samples(&[]), [[0i64; 0]]);
        assert_eq!(samples(&[2, 0]).len(), 0);
        assert_eq!(samples(&[1, 1, 1]), [[0, 0, 0]]);
        assert!(samples(&[2; 12])[..64].contains(&vec![1; 12]));
    }
}
