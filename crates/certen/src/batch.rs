//! Native code of many programs at once: one translation unit, one call.
//!
//! Programs and their calls are gathered, then compiled together and run: see [`certen_codegen::emit_together`]. Tests of
//! compilers and of the back end are made of this.
//!
//! Needs: nothing but loops; each program is verified when it is added. Guarantees: the code is what
//! [`emit_c`](certen_codegen::emit_c) prints for the runtime, compiled with the same flags.

use certen_core::{ElemType, TensorType};
use certen_index::Ix;
use certen_loops::{LoopProgram, verify};
use certen_runtime::{Array, Cache, Compiler, NativeKernel, RuntimeError, Signature};
use certen_syntax::{Diagnostic, Name};

/// Programs that are compiled together, and calls of them.
#[derive(Debug, Default)]
pub struct Batch {
    /// Each with the number of its calls.
    programs: Vec<(LoopProgram, usize)>,
    sizes: Vec<i64>,
    inputs: Vec<Array>,
    outputs: Vec<Array>,
}

impl Batch {
    /// No programs.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Adds a program. The calls that are added next are calls of it.
    ///
    /// # Errors
    /// What the verifier says: of loops that are not shown to be in bounds, no code is made.
    pub fn program(&mut self, loops: LoopProgram) -> Result<(), Vec<Diagnostic>> {
        let violations = verify(&loops);
        if !violations.is_empty() {
            return Err(violations);
        }
        self.programs.push((loops, 0));
        Ok(())
    }

    /// Adds a call of the program that was added last: its sizes and inputs, and what its outputs hold before.
    pub fn call(&mut self, sizes: &[i64], inputs: Vec<Array>, outputs: Vec<Array>) {
        let Some((_, calls)) = self.programs.last_mut() else { return };
        *calls += 1;
        self.sizes.extend_from_slice(sizes);
        self.inputs.extend(inputs);
        self.outputs.extend(outputs);
    }

    /// How many programs there are.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// The sizes of all calls.
    pub fn sizes(&self) -> &[i64] {
        &self.sizes
    }

    /// The inputs of all calls.
    pub fn inputs(&self) -> &[Array] {
        &self.inputs
    }

    /// The outputs of all calls, before.
    pub fn outputs(&self) -> &[Array] {
        &self.outputs
    }

    /// The translation unit.
    ///
    /// # Errors
    /// If constants do not fit in 64 bits.
    pub fn c(&self) -> Result<String, Diagnostic> {
        certen_codegen::emit_together(&self.programs)
    }

    /// Compiles that text and makes all calls; the outputs of all of them.
    ///
    /// # Errors
    /// If the compiler fails, there is no memory, or arrays do not have the types of their programs.
    pub fn run(&self, c: &str, compiler: &Compiler, cache: &Cache) -> Result<Vec<Array>, RuntimeError> {
        self.check()?;
        let ty = |array: &Array| {
            TensorType::new(array.elem(), array.shape().iter().map(|size| Ix::from(*size as i64)).collect::<Vec<_>>())
        };
        let signature = Signature {
            facts: Vec::new(),
            sizes: (0..self.sizes.len()).map(|at| Name::new(&format!("size_{at}"))).collect(),
            inputs: self.inputs.iter().map(ty).collect(),
            outputs: self.outputs.iter().map(ty).collect(),
        };
        let kernel = NativeKernel::build_with(compiler, cache, c, signature)?;
        let copy = |(at, array): (usize, &Array)| {
            array.try_clone().map_err(|error| RuntimeError::Array { which: format!("output {}", at + 1), error })
        };
        let mut outputs = self.outputs.iter().enumerate().map(copy).collect::<Result<Vec<_>, _>>()?;
        kernel.call(&self.sizes, &self.inputs.iter().collect::<Vec<_>>(), &mut outputs)?;
        Ok(outputs)
    }

    /// Whether each call has the arrays that its program wants: the kernel cannot tell them apart.
    fn check(&self) -> Result<(), RuntimeError> {
        let wrong = |what: &str| RuntimeError::WrongCall(format!("the {what} of a call do not fit its program"));
        let (mut sizes, mut inputs, mut outputs) = (self.sizes.as_slice(), self.inputs.iter(), self.outputs.iter());
        for (program, calls) in &self.programs {
            for _ in 0..*calls {
                let (own, rest) = sizes.split_at_checked(program.sizes.len()).ok_or_else(|| wrong("sizes"))?;
                sizes = rest;
                let value = |name: Name| Some(own[program.sizes.iter().position(|size| *size == name)?]);
                if program.facts.iter().any(|fact| !fact.eval(&value).unwrap_or(false)) {
                    return Err(wrong("sizes"));
                }
                let has_shape =
                    |array: &Array, ty: &TensorType| ty.shape_at(&value).is_ok_and(|shape| shape == array.shape());
                let reads = |array: &Array, ty: &TensorType| array.elem() == ty.elem && has_shape(array, ty);
                if !program.inputs.iter().all(|it| inputs.next().is_some_and(|array| reads(array, &it.ty))) {
                    return Err(wrong("inputs"));
                }
                // Truth values that are written may be taken as bytes, so that what is none shows.
                let writes = |array: &Array, ty: &TensorType| {
                    let as_byte = ty.elem == ElemType::Bool && array.elem() == ElemType::U8;
                    (as_byte || array.elem() == ty.elem) && has_shape(array, ty)
                };
                if !program.outputs.iter().all(|it| outputs.next().is_some_and(|array| writes(array, &it.ty))) {
                    return Err(wrong("outputs"));
                }
            }
        }
        Ok(())
    }
}
