//! Native code computes what the evaluator says, bit for bit.
//!
//! Starting a C compiler takes longer than compiling one of these programs, so many programs share a translation unit:
//! each with its own prefix, and one entry that runs them all. Elements are small integers and generated programs keep
//! every intermediate value within 2^53, so that f64 is exact and the results are also those of the rationals; not so
//! where a program of the model language divides, but there native code rounds as the evaluator does.

mod common;

use std::fmt::Write;
use std::sync::Mutex;

use certen_codegen::emit_c;
use certen_core::domain::{Exact, Machine, Rational, Scalar};
use certen_core::{ElemType, TensorType};
use certen_index::Ix;
use certen_loops::lower;
use certen_runtime::{ABI, Array, Cache, Compiler, NativeKernel, Signature};
use certen_testgen::{EXACT, Sample, cases};
use common::{checked, core_of, evaluate, inputs, samples};

/// How many programs are compiled at once.
const BATCH: usize = 25;

/// Programs compiled together: their C, and what they are called with and give.
struct Batch {
    source: String,
    calls: String,
    sizes: Vec<i64>,
    inputs: Vec<Array>,
    expected: Vec<(Array, String)>,
}

impl Batch {
    fn new() -> Batch {
        let calls = format!(
            "const int32_t certen_abi = {ABI};\n\nint32_t certen_call(const int64_t *sizes, void *const *buffers)\n{{\n"
        );
        Batch { source: String::new(), calls, sizes: Vec::new(), inputs: Vec::new(), expected: Vec::new() }
    }

    /// Adds a program. Where its buffers are among all of them is known only when all inputs are: `IN` and `OUT`.
    fn add(&mut self, at: usize, sample: &Sample, elem: ElemType) {
        let program = core_of(&checked(sample), &format!("program_{at}"), elem);
        let loops = lower(&program).expect("elaborated programs can be lowered");
        let c = emit_c(&loops).expect("lowered programs can be printed").source;
        self.source += &c.replace("certen_", &format!("certen_{at}_"));

        let given = inputs(sample, |value| Scalar::from_i64(value, elem));
        let array = |tensor| Array::from_tensor(elem, tensor).expect("memory for a small array");
        let outputs = evaluate(&program, &Machine, &sample.sizes(), given.clone());
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
        let values = sample.sizes();
        let value = |name: &_| values.iter().find(|(size, _)| size == name).map(|(_, value)| *value);
        self.sizes.extend(program.sizes.iter().map(|name| value(name).expect("sizes have values")));
        self.inputs.extend(given.iter().map(|(_, tensor)| array(tensor)));
        let shown = |name| format!("{name} over {elem} in\n{}\n{c}", sample.text());
        self.expected.extend(outputs.iter().map(|(name, tensor)| (array(tensor), shown(name))));
        if elem == ElemType::F64 && !sample.divides() {
            let exact = evaluate(&program, &Rational, &sample.sizes(), inputs(sample, Exact::from));
            for ((name, machine), (_, exact)) in outputs.iter().zip(&exact) {
                assert_eq!(&machine.map(|value| Exact::from(value.to_f64() as i64)), exact, "{name} is not exact");
            }
        }
    }

    /// Compiles and calls all of them, and compares.
    fn run(self, cache: &Cache) {
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

fn native_agrees(cases: u32, seed: u8, elems: &[ElemType]) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let cache = Cache::at(directory.path()).expect("a cache");
    let samples: Vec<(usize, Sample)> = samples(cases, seed).into_iter().enumerate().collect();
    let batches: Mutex<Vec<&[(usize, Sample)]>> = Mutex::new(samples.chunks(BATCH).collect());
    let work = || {
        while let Some(chunk) = { batches.lock().map_or(None, |mut batches| batches.pop()) } {
            let mut batch = Batch::new();
            for (at, sample) in chunk {
                assert!(sample.magnitude() <= EXACT);
                let elem = elems[at % elems.len()];
                // Integers have no division.
                let divided = sample.divides() && !elem.is_float();
                batch.add(*at, sample, if divided { ElemType::F64 } else { elem });
            }
            batch.run(&cache);
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn native_code_agrees_with_the_evaluator() {
    native_agrees(cases(), 41, &[ElemType::F64]);
}

/// The other element types: rounding in f32 and wrapping in integers are the machine domain's.
#[test]
fn native_code_agrees_over_every_element_type() {
    native_agrees(cases() / 10, 42, &[ElemType::F32, ElemType::I64, ElemType::I32]);
}
