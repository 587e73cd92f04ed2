//! Programs from text, and the comparison of their C with the interpreter.
#![allow(dead_code, reason = "each test uses a part")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use certen_codegen::{CCode, emit_c};
use certen_core::domain::{Machine, Scalar};
use certen_core::{ElemType, Program, Tensor, parse_program};
use certen_loops::{Interpreter, LoopProgram, parse_loops, verify};
use certen_syntax::{Name, Sources};

/// Core from text.
pub fn core(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// Loops from text.
pub fn loops(text: &str) -> LoopProgram {
    let mut sources = Sources::new();
    let file = sources.add("t.loops", text);
    parse_loops(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

/// The C of a program that the verifier accepts.
pub fn emitted(program: &LoopProgram) -> CCode {
    let errors = verify(program);
    assert!(errors.is_empty(), "{errors:?}\n{program}");
    emit_c(program).unwrap()
}

/// Compiles without any warning.
pub fn compile(dir: &Path, file: &str, source: &str, extra: &[&str]) -> std::path::PathBuf {
    compile_by("cc", dir, file, source, extra)
}

/// Whether there is Clang.
pub fn has_clang() -> bool {
    is_there("clang")
}

/// GCC for another machine, with other vectors, and what runs its code.
const ARM: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|answer| answer.status.success())
}

fn compile_by(compiler: &str, dir: &Path, file: &str, source: &str, extra: &[&str]) -> std::path::PathBuf {
    let path = dir.join(file).with_extension("c");
    let out = dir.join(file);
    std::fs::write(&path, source).unwrap();
    let mut command = Command::new(compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-ffp-contract=off"]).args(extra);
    let output = command.arg(&path).arg("-o").arg(&out).arg("-lm").output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{source}", &messages[..messages.len().min(3000)]);
    out
}

/// Inputs of a program at sizes 3, 4, 5, …: small numbers, zeros, negative ones, and for floats some that are not
/// finite.
#[allow(clippy::type_complexity, reason = "sizes and tensors by name")]
pub fn inputs(program: &LoopProgram) -> (Vec<(Name, i64)>, Vec<(Name, Tensor<Scalar>)>) {
    // From 3 on, or the first numbers from which on all facts hold.
    let from = |first: i64| -> Vec<(Name, i64)> { program.sizes.iter().copied().zip(first..).collect() };
    let holds = |sizes: &[(Name, i64)]| {
        let size = |name| sizes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
        program.facts.iter().all(|fact| fact.eval(&size) == Ok(true))
    };
    let sizes = (3..100).map(from).find(|sizes| holds(sizes)).expect("small sizes satisfy the facts");
    let size = |name| sizes.iter().find(|(n, _)| *n == name).map(|(_, v)| *v);
    let mut next = 3;
    let mut tensors = Vec::new();
    for input in &program.inputs {
        let shape: Vec<usize> = input.ty.shape.iter().map(|ix| ix.eval(&size).unwrap() as usize).collect();
        let value = |_| {
            next = (next * 29 + 17) % 101;
            Ok::<_, ()>(match input.ty.elem {
                ElemType::F64 | ElemType::F32 if next % 31 == 0 => Scalar::from_f64(f64::NAN, input.ty.elem),
                ElemType::F64 | ElemType::F32 if next % 37 == 0 => Scalar::from_f64(f64::NEG_INFINITY, input.ty.elem),
                elem if elem.is_float() => Scalar::from_f64(f64::from(next - 50) / 8.0, elem),
                elem => Scalar::from_i64(i64::from(next - 50), elem),
            })
        };
        tensors.push((input.name, Tensor::from_fn(shape, value).unwrap().unwrap()));
    }
    (sizes, tensors)
}

fn c_literal(value: Scalar) -> String {
    match value {
        Scalar::F64(v) => format!("certen_f64(UINT64_C({}))", v.to_bits()),
        Scalar::F32(v) => format!("certen_f32(UINT32_C({}))", v.to_bits()),
        Scalar::I64(i64::MIN) => "INT64_MIN".into(),
        Scalar::I64(v) => format!("INT64_C({v})"),
        Scalar::I32(v) => format!("(int32_t)INT64_C({v})"),
        Scalar::U8(v) => v.to_string(),
        Scalar::Bool(v) => u8::from(v).to_string(),
    }
}

fn c_elem(elem: ElemType) -> &'static str {
    match elem {
        ElemType::F64 => "double",
        ElemType::F32 => "float",
        ElemType::I64 => "int64_t",
        ElemType::I32 => "int32_t",
        _ => "uint8_t",
    }
}

/// The bits of a value, all NaNs alike, as the C below prints them.
fn bits(value: Scalar) -> u64 {
    match value {
        Scalar::F64(v) if v.is_nan() => 1,
        Scalar::F32(v) if v.is_nan() => 1,
        Scalar::F64(v) => v.to_bits(),
        Scalar::F32(v) => u64::from(v.to_bits()),
        Scalar::I64(v) => v as u64,
        Scalar::I32(v) => u64::from(v as u32),
        Scalar::U8(v) => u64::from(v),
        Scalar::Bool(v) => u64::from(v),
    }
}

const DRIVER: &str = "#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <inttypes.h>
double certen_f64(uint64_t bits) { double v; memcpy(&v, &bits, 8); return v; }
float certen_f32(uint32_t bits) { float v; memcpy(&v, &bits, 4); return v; }
void certen_print(const void *data, int bytes, int is_float, long count) {
    for (long at = 0; at < count; at++) {
        uint64_t bits = 0;
        memcpy(&bits, (const char *)data + at * bytes, (size_t)bytes);
        if (is_float && bytes == 8) { double v; memcpy(&v, &bits, 8); if (v != v) bits = 1; }
        if (is_float && bytes == 4) { float v; memcpy(&v, &bits, 4); if (v != v) bits = 1; }
        printf(\"%\" PRIu64 \"\\n\", bits);
    }
}
int32_t certen_call(const int64_t *sizes, void *const *buffers);
";

/// Compiles a program with a driver that holds its inputs, runs it, and compares every bit with the interpreter.
pub fn same_bits(program: &LoopProgram) {
    let code = emitted(program);
    let (sizes, tensors) = inputs(program);
    let outputs = Interpreter::new(program, &Machine, sizes.clone(), tensors.clone()).unwrap().run();
    let outputs = outputs.unwrap_or_else(|error| panic!("{error}\n{program}"));
    let mut driver = format!("{DRIVER}int main(void) {{\n");
    let mut buffers = Vec::new();
    for (at, (parameter, (_, tensor))) in program.inputs.iter().zip(&tensors).enumerate() {
        let elem = c_elem(parameter.ty.elem);
        writeln!(driver, "    static {elem} in{at}[{}];", tensor.data().len().max(1)).unwrap();
        for (position, value) in tensor.data().iter().enumerate() {
            writeln!(driver, "    in{at}[{position}] = {};", c_literal(*value)).unwrap();
        }
        buffers.push(format!("in{at}"));
    }
    for (at, (parameter, (_, tensor))) in program.outputs.iter().zip(&outputs).enumerate() {
        let elem = c_elem(parameter.ty.elem);
        writeln!(driver, "    static {elem} out{at}[{}];", tensor.data().len().max(1)).unwrap();
        buffers.push(format!("out{at}"));
    }
    let values: Vec<String> = sizes.iter().map(|(_, v)| v.to_string()).chain(["0".into()]).collect();
    writeln!(driver, "    int64_t sizes[] = {{{}}};", values.join(", ")).unwrap();
    writeln!(driver, "    void *buffers[] = {{{}}};", buffers.join(", ")).unwrap();
    driver += "    if (certen_call(sizes, buffers) != 0) return 1;\n";
    for (at, (parameter, (_, tensor))) in program.outputs.iter().zip(&outputs).enumerate() {
        let (bytes, float) = (parameter.ty.elem.bytes(), i32::from(parameter.ty.elem.is_float()));
        writeln!(driver, "    certen_print(out{at}, {bytes}, {float}, {});", tensor.data().len()).unwrap();
    }
    driver += "    return 0;\n}\n";
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("driver.c"), driver).unwrap();
    let driver = dir.path().join("driver.c");
    let expected: Vec<u64> = outputs.iter().flat_map(|(_, t)| t.data().iter().copied().map(bits)).collect();
    let checked = program.terms.len() < 10_000; // sanitizers are slow
    let sanitizers = if checked { "-fsanitize=undefined,address" } else { "-fno-sanitize=all" };
    // The last with all that this machine has: vectors, and its own instruction for `fma`. No flag says that compilers are
    // not to look for vectors.
    let mut levels = vec![("o0", "cc", ["-O0", sanitizers]), ("o2", "cc", ["-O2", "-fno-sanitize=all"])];
    if checked {
        levels.push(("o3", "cc", ["-O3", "-march=native"]));
    }
    if checked && has_clang() {
        levels.push(("clang", "clang", ["-O3", "-march=native"]));
    }
    if checked && is_there(ARM) && is_there(EMULATOR) {
        levels.push(("arm", ARM, ["-O3", "-static"]));
    }
    for (file, compiler, level) in levels {
        let flags = [level[0], level[1], driver.to_str().unwrap()];
        let out = compile_by(compiler, dir.path(), file, &code.native, &flags);
        let run = match compiler {
            ARM => Command::new(EMULATOR).arg(out).output().unwrap(),
            _ => Command::new(out).output().unwrap(),
        };
        assert!(run.status.success() && run.stderr.is_empty(), "{}", String::from_utf8_lossy(&run.stderr));
        let printed: Vec<u64> = String::from_utf8(run.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect();
        let differs = printed.iter().zip(&expected).position(|(a, b)| a != b);
        assert!(printed == expected, "first at {differs:?} ({file})\n{program}\n{}", code.source);
    }
}
