//! Native code for many programs at once.
//!
//! Starting a C compiler takes longer than compiling a small program, so many programs share a translation unit: each
//! with its own prefix, and one entry that runs them all.

use std::fmt::Write;

use certen_codegen::emit_c;
use certen_core::domain::Scalar;
use certen_core::{Program, Tensor, TensorType};
use certen_index::Ix;
use certen_loops::{lower, parallelise};
use certen_runtime::{ABI, Array, Cache, Compiler, NativeKernel, Signature};
use certen_syntax::Name;

/// Tensors of the machine's numbers by name.
type Tensors = Vec<(Name, Tensor<Scalar>)>;

/// Programs compiled together: their C, and what they are called with and give.
pub struct Batch {
    source: String,
    calls: String,
    sizes: Vec<i64>,
    inputs: Vec<Array>,
    expected: Vec<(Array, String)>,
}

impl Batch {
    /// No programs.
    pub fn new() -> Batch {
        let calls = format!(
            "const int32_t certen_abi = {ABI};\n\nint32_t certen_call(const int64_t *sizes, void *const *buffers)\n{{\n"
        );
        Batch { source: String::new(), calls, sizes: Vec::new(), inputs: Vec::new(), expected: Vec::new() }
    }

    /// Adds a program under a number and with a name of its own, its sizes and inputs, and what the evaluator says of
    /// them. Where its buffers are among all of them is known only when all inputs are: `IN` and `OUT`.
    pub fn add(
        &mut self,
        at: usize,
        program: &Program,
        sizes: &[(Name, i64)],
        given: &Tensors,
        outputs: &Tensors,
        text: &str,
    ) {
        let loops = parallelise(lower(program).expect("the program can be lowered"));
        let c = emit_c(&loops).expect("lowered programs can be printed").native;
        self.source += &c.replace("certen_", &format!("certen_{at}_"));
        let ins = (0..given.len()).map(|n| format!("IN[{}]", self.inputs.len() + n));
        let outs = (0..outputs.len()).map(|n| format!("OUT[{}]", self.expected.len() + n));
        let buffers: Vec<String> = ins.chain(outs).collect();
        let _ = write!(
            self.calls,
            "    {{\n        void *own[] = {{{}}};\n        int32_t status = certen_{at}_call(sizes + {}, own);\n        \
             if (status != 0) return status;\n    }}\n",
            buffers.join(", "),
            self.sizes.len(),
        );
        let value = |name: &_| sizes.iter().find(|(size, _)| size == name).map(|(_, value)| *value);
        self.sizes.extend(program.sizes.iter().map(|name| value(name).expect("sizes have values")));
        for (parameter, (_, tensor)) in program.inputs.iter().zip(given) {
            self.inputs.push(Array::from_tensor(parameter.ty.elem, tensor).expect("memory for a small array"));
        }
        for (parameter, (name, tensor)) in loops.outputs.iter().zip(outputs) {
            let array = Array::from_tensor(parameter.ty.elem, tensor).expect("memory for a small array");
            self.expected.push((array, format!("{name} in\n{text}\n{c}")));
        }
    }

    /// Compiles and calls all of them, and compares.
    pub fn run(self, cache: &Cache) {
        let buffers = format!("#define IN (buffers)\n#define OUT (buffers + {})\n", self.inputs.len());
        let c = format!("{}\n#include <stdint.h>\n{buffers}\n{}    return 0;\n}}\n", self.source, self.calls);
        let ty = |array: &Array| {
            let shape: Vec<Ix> = array.shape().iter().map(|size| Ix::from(*size as i64)).collect();
            TensorType::new(array.elem(), shape)
        };
        let signature = Signature {
            facts: Vec::new(),
            sizes: (0..self.sizes.len()).map(|at| format!("size_{at}").as_str().into()).collect(),
            inputs: self.inputs.iter().map(ty).collect(),
            outputs: self.expected.iter().map(|(array, _)| ty(array)).collect(),
        };
        let compiler = Compiler::find().expect("a C compiler");
        let kernel = NativeKernel::build_with(compiler, cache, &c, signature).unwrap_or_else(|e| panic!("{e}\n{c}"));
        let mut outputs = kernel.signature().allocate_outputs(&self.sizes).expect("memory for small arrays");
        kernel.call(&self.sizes, &self.inputs.iter().collect::<Vec<_>>(), &mut outputs).expect("the call succeeds");
        for (found, (expected, shown)) in outputs.iter().zip(&self.expected) {
            assert_eq!(found.bytes(), expected.bytes(), "{shown}\nnative: {found:?}\nevaluator: {expected:?}");
        }
    }
}
