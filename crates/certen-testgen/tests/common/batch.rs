//! Native code for many programs at once.
//!
//! A [`certen::Batch`] of programs, with what each of their outputs must be. [`Batch::run`] loads it; [`Batch::run_sanitized`] makes a process of
//! its own of it, which ends with a report where memory is misused or C leaves the behaviour undefined.

use std::fs;
use std::path::Path;
use std::process::Command;

use certen_core::domain::Scalar;
use certen_core::domain::magnitude::{Compared, Measured, compare};
use certen_core::{ElemType, Program, Tensor};
use certen_loops::{FpMode, LoopProgram, lower, parallelise};
use certen_runtime::{Array, Cache, Compiler};
use certen_syntax::Name;

/// Tensors of the machine's numbers by name.
type Tensors = Vec<(Name, Tensor<Scalar>)>;

/// What an output must be.
pub enum Wanted {
    /// These elements, bit for bit; NaNs are alike.
    Bits(Tensor<Scalar>),
    /// Elements within the bounds of these.
    Bounds(Tensor<Measured>),
}

impl Wanted {
    fn check(&self, found: &Tensor<Scalar>) -> Result<Compared, String> {
        match self {
            Wanted::Bounds(wanted) => compare(wanted, found),
            Wanted::Bits(wanted) => {
                let mut pairs = found.data().iter().zip(wanted.data());
                match pairs.position(|(found, wanted)| !found.same_bits(wanted)) {
                    None => Ok(Compared { exact: wanted.data().len(), ..Compared::default() }),
                    Some(at) => Err(format!("element {at} is {}, not {}", found.data()[at], wanted.data()[at])),
                }
            }
        }
    }
}

/// An output of a call: its program's place, what it must be, and what is shown where it is not.
struct Output {
    program: usize,
    elem: ElemType,
    shape: Vec<usize>,
    wanted: Wanted,
    shown: String,
}

/// Programs compiled together, and what they are called with and give.
pub struct Batch {
    inner: certen::Batch,
    expected: Vec<Output>,
}

impl Batch {
    /// No programs.
    pub fn new() -> Batch {
        Batch { inner: certen::Batch::new(), expected: Vec::new() }
    }

    /// Adds a program, its sizes and inputs, and what the evaluator says of them.
    pub fn add(&mut self, program: &Program, sizes: &[(Name, i64)], given: &Tensors, outputs: &Tensors, text: &str) {
        let loops = parallelise(lower(program, FpMode::Relaxed).expect("the program can be lowered"), |_| true);
        self.program(&loops);
        let wanted = outputs.iter().map(|(_, tensor)| Wanted::Bits(tensor.clone())).collect();
        self.call(&loops, sizes, given, wanted, text);
    }

    /// Adds a program.
    pub fn program(&mut self, loops: &LoopProgram) {
        self.inner.program(loops.clone()).unwrap_or_else(|errors| panic!("{errors:?}\n{loops}"));
    }

    /// Adds a call of the program that was added last.
    pub fn call(
        &mut self,
        loops: &LoopProgram,
        sizes: &[(Name, i64)],
        given: &Tensors,
        outputs: Vec<Wanted>,
        text: &str,
    ) {
        let value = |name: &_| sizes.iter().find(|(size, _)| size == name).map(|(_, value)| *value);
        let own: Vec<i64> = loops.sizes.iter().map(|name| value(name).expect("sizes have values")).collect();
        let array =
            |(elem, tensor): (ElemType, &_)| Array::from_tensor(elem, tensor).expect("memory for a small array");
        let inputs = loops.inputs.iter().zip(given).map(|(parameter, (_, tensor))| array((parameter.ty.elem, tensor)));
        let mut before = Vec::new();
        for (parameter, wanted) in loops.outputs.iter().zip(outputs) {
            let shape = match &wanted {
                Wanted::Bits(tensor) => tensor.shape().to_vec(),
                Wanted::Bounds(tensor) => tensor.shape().to_vec(),
            };
            before.push(Array::zeros(parameter.ty.elem, &shape).expect("memory for a small array"));
            let shown = format!("{} at {sizes:?} in\n{text}\n{loops}", parameter.name);
            let program = self.inner.len() - 1;
            self.expected.push(Output { program, elem: parameter.ty.elem, shape, wanted, shown });
        }
        self.inner.call(&own, inputs.collect(), before);
    }

    /// The whole translation unit.
    fn c(&self) -> String {
        self.inner.c().expect("lowered programs can be printed")
    }

    /// Compares outputs with what they must be, and says how.
    fn check(&self, outputs: &[Tensor<Scalar>]) -> Compared {
        let mut sum = Compared::default();
        for (found, output) in outputs.iter().zip(&self.expected) {
            sum += output.wanted.check(found).unwrap_or_else(|error| panic!("{error}\n{}", output.shown));
        }
        sum
    }

    /// Compiles and calls all of them, and compares.
    pub fn run(self, cache: &Cache) -> Compared {
        let c = self.c();
        let compiler = Compiler::find().expect("a C compiler");
        let outputs = self.inner.run(&c, compiler, cache).unwrap_or_else(|e| panic!("{e}\n{c}"));
        let tensors = outputs.iter().map(|array| array.to_tensor().expect("memory for a small tensor"));
        self.check(&tensors.collect::<Vec<_>>())
    }

    /// Compiles all of them with the sanitizers of addresses and undefined behaviour, calls them in a process of their
    /// own, and compares. Every buffer is a piece of memory of exactly its size, and outputs are full of garbage before.
    ///
    /// A machine without the sanitizers fails here: it must not pass for one where they have found nothing.
    pub fn run_sanitized(self, directory: &Path) -> Compared {
        let c = self.c();
        self.run_sanitized_text(&c, directory)
    }

    /// As [`Batch::run_sanitized`], with a translation unit of one's own.
    pub fn run_sanitized_text(self, c: &str, directory: &Path) -> Compared {
        let (sizes, inputs) = (self.inner.sizes(), self.inner.inputs());
        let [source, program, given, found] = ["batch.c", "batch", "given", "found"].map(|name| directory.join(name));
        let bytes = |elem: ElemType, shape: &[usize]| elem.bytes() * shape.iter().product::<usize>();
        let mut lengths: Vec<usize> = inputs.iter().map(|array| array.bytes().len()).collect();
        lengths.extend(self.expected.iter().map(|output| bytes(output.elem, &output.shape)));
        let main = MAIN
            .replace("SIZES", &sizes.len().to_string())
            .replace("INPUTS", &inputs.len().to_string())
            .replace("BUFFERS", &lengths.len().to_string())
            .replace("LENGTHS", &lengths.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "));
        fs::write(&source, format!("#define _POSIX_C_SOURCE 200112L\n{c}{main}")).expect("a file");
        let mut data: Vec<u8> = sizes.iter().flat_map(|size| size.to_ne_bytes()).collect();
        inputs.iter().for_each(|array| data.extend_from_slice(array.bytes()));
        fs::write(&given, data).expect("a file");
        let compiler = Compiler::find().expect("a C compiler");
        let mut compile = Command::new(compiler.real_path());
        compile.args(SANITIZED).arg("-o").args([&program, &source]).arg("-lm");
        let compiled = compile.output().expect("the C compiler runs");
        assert!(
            compiled.status.success(),
            "the C compiler cannot build with its sanitizers, which this test needs:\n{compile:?}\n{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        let ran = Command::new(&program).args([&given, &found]).output().expect("the program runs");
        if !ran.status.success() {
            let report = String::from_utf8_lossy(&ran.stderr).into_owned();
            panic!("{}\n{report}\n{}", ran.status, self.guilty(&report));
        }
        let found = fs::read(&found).expect("the outputs");
        let mut rest = found.as_slice();
        let outputs = self.expected.iter().map(|output| {
            let (own, others) = rest.split_at(bytes(output.elem, &output.shape));
            rest = others;
            let elements = own.chunks_exact(output.elem.bytes()).map(|bytes| element(output.elem, bytes));
            Tensor::new(output.shape.clone(), elements.collect()).expect("as many elements as the shape has")
        });
        let outputs: Vec<Tensor<Scalar>> = outputs.collect();
        self.check(&outputs)
    }

    /// The program whose function a report names.
    fn guilty(&self, report: &str) -> &str {
        let named = |output: &&Output| report.contains(&format!("in kernel_{}_", output.program));
        self.expected.iter().find(named).map_or("the program cannot be told from the report", |output| &output.shown)
    }
}

/// An element as it stands in memory.
fn element(elem: ElemType, bytes: &[u8]) -> Scalar {
    let four = || bytes.try_into().expect("four bytes");
    let eight = || bytes.try_into().expect("eight bytes");
    match elem {
        ElemType::F64 => Scalar::F64(f64::from_ne_bytes(eight())),
        ElemType::F32 => Scalar::F32(f32::from_ne_bytes(four())),
        ElemType::I64 => Scalar::I64(i64::from_ne_bytes(eight())),
        ElemType::I32 => Scalar::I32(i32::from_ne_bytes(four())),
        ElemType::U8 => Scalar::U8(bytes[0]),
        // Anything but 0 and 1 is no truth value: then the element is of another type, and equal to none.
        ElemType::Bool if bytes[0] > 1 => Scalar::U8(bytes[0]),
        ElemType::Bool => Scalar::Bool(bytes[0] == 1),
    }
}

const SANITIZED: [&str; 7] = [
    "-std=c11",
    "-O1",
    "-g0",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
];

/// Calls `certen_call` on buffers of exactly their size: sizes and inputs come from one file, outputs go to another.
const MAIN: &str = "
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **names) {
    static const size_t lengths[] = {LENGTHS, 0};
    static int64_t sizes[SIZES + 1];
    static void *buffers[BUFFERS + 1];
    FILE *given = count == 3 ? fopen(names[1], \"rb\") : NULL;
    if (given == NULL || fread(sizes, sizeof(int64_t), SIZES, given) != SIZES) return 90;
    for (size_t at = 0; at < BUFFERS; at++) {
        if (posix_memalign(&buffers[at], 64, lengths[at]) != 0) return 91;
        if (at >= INPUTS) memset(buffers[at], 0xA5, lengths[at]);
        else if (fread(buffers[at], 1, lengths[at], given) != lengths[at]) return 92;
    }
    fclose(given);
    if (certen_call(sizes, buffers) != 0) return 93;
    FILE *found = fopen(names[2], \"wb\");
    if (found == NULL) return 94;
    for (size_t at = INPUTS; at < BUFFERS; at++)
        if (fwrite(buffers[at], 1, lengths[at], found) != lengths[at]) return 95;
    if (fclose(found) != 0) return 96;
    for (size_t at = 0; at < BUFFERS; at++) free(buffers[at]);
    return 0;
}
";
