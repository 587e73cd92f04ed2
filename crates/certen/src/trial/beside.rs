//! One run of machine code beside the loops that it was made from: every element of every output, bit by bit.
//!
//! The loops fix the order of operations, and the interpreter makes them in the machine's numbers, so that all bits are equal
//! where both are right; all NaNs count as one. Library functions are the same on both sides. Before the call each element of
//! an output holds something other than what it has to become, so that one that is not written, or added to before it is,
//! shows. Loops are shared by threads where they have enough to do. What depends on memory that nothing was written to may
//! be anything, and is not compared.

use std::num::NonZeroUsize;

use certen_core::domain::{Machine, Partial, Scalar};
use certen_core::{Domain, EvalError, Fault, Named, Tensor, index_of};
use certen_loops::{Event, Interpreter, LoopProgram};
use certen_runtime::{Array, NativeKernel, RuntimeError, with_threads};
use certen_syntax::Name;

use super::Stopped;
use super::given::{Set, TrialInputs};

/// Threads that share loops: more than two, so that parts are not halves.
pub(crate) const THREADS: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// Machine code, and the loops that it was made from.
pub(super) struct Beside<'a> {
    pub loops: &'a LoopProgram,
    pub kernel: &'a NativeKernel,
    pub given: &'a TrialInputs,
}

/// An element that differs.
pub(super) struct WrongBits {
    pub output: Name,
    pub index: Vec<i64>,
    pub expected: Scalar,
    pub found: Scalar,
}

impl Beside<'_> {
    /// Runs both at these sizes, in at most so many steps of the interpreter, and gives the number of elements compared.
    pub fn at(&self, sizes: &[i64], set: Set, fuel: &mut u64, observer: &mut dyn FnMut(Event)) -> Result<u64, Stopped> {
        let inputs = self.inputs(sizes, set)?;
        let expected = self.expected(sizes, &inputs, fuel, observer)?;
        let mut outputs = self.kernel.signature().allocate_outputs(sizes).map_err(Stopped::left_out)?;
        for (output, (_, expected)) in outputs.iter_mut().zip(&expected) {
            let other = expected.map(|value| value.map_or_else(|| Scalar::from_i64(0, output.elem()), other_than));
            *output = Array::from_tensor(output.elem(), &other).map_err(Stopped::left_out)?;
        }
        let arrays = inputs
            .iter()
            .zip(&self.loops.inputs)
            .map(|((_, tensor), input)| Array::from_tensor(input.ty.elem, tensor).map_err(Stopped::left_out));
        let arrays = arrays.collect::<Result<Vec<Array>, Stopped>>()?;
        let call = || self.kernel.call(sizes, &arrays.iter().collect::<Vec<_>>(), &mut outputs);
        match with_threads(THREADS, call) {
            Ok(()) => {}
            Err(RuntimeError::BadKernel(why)) => return Err(Stopped::Broken(why)),
            Err(error) => return Err(Stopped::left_out(error)),
        }
        compared(&expected, &outputs)
    }

    fn inputs(&self, sizes: &[i64], set: Set) -> Result<Named<Scalar>, Stopped> {
        let size = |name: Name| self.loops.sizes.iter().position(|known| *known == name).and_then(|at| sizes.get(at));
        let tensor = |(number, input): (usize, &certen_core::Parameter)| {
            let shape = input.ty.shape_at(&|name| size(name).copied()).map_err(Stopped::left_out)?;
            let element = |position: usize| Ok(self.given.element(set, input.ty.elem, number, position));
            let tensor = Tensor::from_fn(shape, element).ok_or_else(|| Stopped::left_out("there is no memory"))?;
            Ok((input.name, tensor?))
        };
        self.loops.inputs.iter().enumerate().map(tensor).collect()
    }

    /// What the loops compute; none for an element that may be anything.
    fn expected(
        &self,
        sizes: &[i64],
        inputs: &Named<Scalar>,
        fuel: &mut u64,
        observer: &mut dyn FnMut(Event),
    ) -> Result<Named<Option<Scalar>>, Stopped> {
        match self.interpreted(&Machine, sizes, inputs.clone(), fuel, observer) {
            Ok(outputs) => Ok(outputs.into_iter().map(|(name, tensor)| (name, tensor.map(|v| Some(*v)))).collect()),
            Err(EvalError::Fault(Fault::Undefined)) => {
                let inputs = inputs.iter().map(|(name, tensor)| (*name, tensor.map(|v| Some(*v)))).collect();
                self.interpreted(&Partial(Machine), sizes, inputs, fuel, observer).map_err(stopped)
            }
            Err(error) => Err(stopped(error)),
        }
    }

    fn interpreted<D: Domain>(
        &self,
        domain: &D,
        sizes: &[i64],
        inputs: Named<D::Value>,
        fuel: &mut u64,
        observer: &mut dyn FnMut(Event),
    ) -> Result<Named<D::Value>, EvalError> {
        let sizes = self.loops.sizes.iter().copied().zip(sizes.iter().copied());
        Interpreter::new(self.loops, domain, sizes, inputs)?.run_within(fuel, observer)
    }
}

fn stopped(error: EvalError) -> Stopped {
    match error {
        EvalError::Fuel | EvalError::Memory => Stopped::Steps,
        error => Stopped::left_out(error),
    }
}

fn compared(expected: &Named<Option<Scalar>>, outputs: &[Array]) -> Result<u64, Stopped> {
    let mut elements = 0;
    for ((name, expected), output) in expected.iter().zip(outputs) {
        for (position, expected) in expected.data().iter().enumerate() {
            let Some(expected) = *expected else { continue };
            let found = output.get(position).ok_or_else(|| Stopped::left_out("the shapes of outputs differ"))?;
            if !found.same_bits(&expected) {
                let index = index_of(output.shape(), position);
                return Err(Stopped::Differs(Box::new(WrongBits { output: *name, index, expected, found })));
            }
            elements += 1;
        }
    }
    Ok(elements)
}

/// A value that no comparison takes for this one. Nor is the sum of both this one, but for a NaN.
pub(crate) fn other_than(value: Scalar) -> Scalar {
    match value {
        Scalar::F64(value) => Scalar::F64(if value.is_nan() { 1.0 } else { f64::NAN }),
        Scalar::F32(value) => Scalar::F32(if value.is_nan() { 1.0 } else { f32::NAN }),
        Scalar::I64(value) => Scalar::I64(if value == -1 { 1 } else { !value }),
        Scalar::I32(value) => Scalar::I32(if value == -1 { 1 } else { !value }),
        Scalar::U8(value) => Scalar::U8(if value == u8::MAX { 1 } else { !value }),
        Scalar::Bool(value) => Scalar::Bool(!value),
    }
}

#[cfg(test)]
mod tests {
    use certen_core::Binary;

    use super::*;

    #[test]
    fn an_addition_to_what_an_output_holds_before_shows() {
        let sum = |value: Scalar| Machine.binary(Binary::Add, value.elem(), &other_than(value), &value).unwrap();
        for value in [i64::MIN, -2, -1, 0, 1, i64::MAX] {
            let same_in_all = [Scalar::I64(value), Scalar::I32(value as i32), Scalar::F64(value as f64)];
            for value in same_in_all {
                assert!(!other_than(value).same_bits(&value) && !sum(value).same_bits(&value), "{value}");
            }
        }
        for value in 0..=u8::MAX {
            let Scalar::U8(other) = other_than(Scalar::U8(value)) else { panic!("another type") };
            assert!(other != value && other.wrapping_add(value) != value, "{value}");
        }
    }
}
