//! Functions of mathematics have the same bits from everyone who computes them: the reference evaluator, the interpreter of
//! loops, native code for every instruction set of this machine, emitted C in the hands of gcc and clang, and NEON under
//! emulation where that is installed.
// What is skipped says so.
#![allow(clippy::print_stderr)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use certen::{Array, Backend, Call, Choice, Cpu, FpMode, Math, Module, Options, RunOptions};

const FUNCTIONS: [&str; 23] = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh",
    "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "cbrt", "sigmoid",
];
const OF_TWO: [&str; 3] = ["pow", "atan2", "hypot"];

/// The flags of instruction sets, by name.
const SETS: [(&str, &str); 3] = [
    ("sse2", ""),
    ("avx2", "-mavx2 -mfma"),
    ("avx512", "-mavx2 -mfma -mavx512f -mavx512cd -mavx512bw -mavx512dq -mavx512vl"),
];

/// All functions of two inputs, each an output.
fn program(elem: &str) -> String {
    let one = FUNCTIONS.iter().map(|name| (name, format!("{name}(x[i])")));
    let two = OF_TWO.iter().map(|name| (name, format!("{name}(x[i], y[i])")));
    let all: Vec<(&&str, String)> = one.chain(two).collect();
    let outputs: Vec<String> = all.iter().map(|(name, _)| format!("of_{name}: {elem}[n]")).collect();
    let values: Vec<String> = all.iter().map(|(_, value)| format!("{{ [i] -> {value} }}")).collect();
    format!("fn f(x: {elem}[n], y: {elem}[n]) -> ({}) {{\n    ({})\n}}", outputs.join(", "), values.join(", "))
}

/// Pseudo-random bits.
fn bits(at: u64) -> u64 {
    let mut z = at.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(99);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Arguments of all kinds: special ones, any bits, and numbers where functions vary.
fn argument(at: u64, single: bool) -> f64 {
    const SPECIAL: [f64; 16] = [
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        3.0,
        -2.0,
        1e-310,
        -1e-40,
        1e300,
        17.0,
    ];
    let random = bits(at);
    let value = match at % 4 {
        0 => SPECIAL[(random >> 8) as usize % SPECIAL.len()],
        1 if single => f64::from(f32::from_bits(random as u32)),
        1 => f64::from_bits(random),
        _ => ((random >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * [2.0, 12.0, 1500.0][(random % 3) as usize],
    };
    if single { f64::from(value as f32) } else { value }
}

fn call(size: usize, single: bool) -> Call {
    let values = |input: u64| -> Vec<f64> {
        (0..size as u64).map(|at| argument(at * 2 + input * 5 + at / 64 * input, single)).collect()
    };
    let array = |values: Vec<f64>| match single {
        true => Array::from_vec(&[size], values.iter().map(|x| *x as f32).collect::<Vec<f32>>()).unwrap(),
        false => Array::from_vec(&[size], values).unwrap(),
    };
    Call::new().input("x", array(values(0))).input("y", array(values(1)))
}

/// The bits of an element, all NaNs being one.
fn element(array: &Array) -> Vec<u64> {
    match array.as_slice::<f32>() {
        Some(short) => short.iter().map(|x| if x.is_nan() { u64::MAX } else { u64::from(x.to_bits()) }).collect(),
        None => {
            let long = array.as_slice::<f64>().unwrap();
            long.iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
        }
    }
}

fn outputs(module: &Module, call: &Call, backend: Backend) -> Vec<Vec<u64>> {
    let (outputs, _) = module.run_with(call, &RunOptions { backend, ..RunOptions::default() }).unwrap();
    outputs.iter().map(|output| element(output.array().unwrap())).collect()
}

fn module(elem: &str, cpu: Option<Cpu>, math: Math) -> Module {
    let options = Options { schedule: Choice::None, fp: FpMode::Strict, cpu, math, ..Options::default() };
    Module::from_text("f.ten", program(elem), &options).unwrap()
}

#[track_caller]
fn same(found: &[Vec<u64>], expected: &[Vec<u64>], who: &str) {
    for (name, (found, expected)) in FUNCTIONS.iter().chain(&OF_TWO).zip(found.iter().zip(expected)) {
        let wrong = found.iter().zip(expected).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "{who}: {name} has other bits than the evaluator's");
    }
    assert_eq!(found.len(), expected.len());
}

/// A driver that reads inputs and writes outputs as they lie in memory.
fn main_text(elem: &str, size: usize) -> String {
    let c = if elem == "f32" { "float" } else { "double" };
    let outputs = FUNCTIONS.len() + OF_TWO.len();
    let arguments: String = (0..outputs).map(|at| format!(", z[{at}]")).collect();
    format!(
        "#include \"f.h\"\n#include <stdio.h>\nstatic {c} x[{size}], y[{size}], z[{outputs}][{size}];\nint main(void) {{\n    \
         FILE *in = fopen(\"in\", \"rb\"), *out = fopen(\"out\", \"wb\");\n    \
         if (!in || !out || fread(x, sizeof x, 1, in) != 1 || fread(y, sizeof y, 1, in) != 1) return 1;\n    \
         if (f({size}, x, y{arguments}) != 0) return 2;\n    \
         return fwrite(z, sizeof z, 1, out) != 1 || fclose(out) != 0;\n}}\n"
    )
}

/// What emitted C computes; none if there is no such compiler.
fn emitted(
    directory: &Path,
    compiler: &str,
    flags: &str,
    run: &[&str],
    single: bool,
    size: usize,
) -> Option<Vec<Vec<u64>>> {
    let mut words = compiler.split(' ');
    let mut command = Command::new(words.next()?);
    command.args(words).args(["-std=c11", "-O2", "-ffp-contract=off", "-o", "f", "f.c", "main.c"]);
    command.args(flags.split_whitespace()).arg("-lm").current_dir(directory);
    let Ok(made) = command.output() else {
        eprintln!("no {compiler}: skipped");
        return None;
    };
    assert!(made.status.success(), "{compiler} {flags}: {}", String::from_utf8_lossy(&made.stderr));
    let program = directory.join("f");
    let mut command = match run {
        [] => Command::new(&program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&program);
            command
        }
    };
    let Ok(status) = command.current_dir(directory).status() else {
        eprintln!("no {run:?}: skipped");
        return None;
    };
    assert!(status.success(), "{compiler} {flags}: {status}");
    let bytes = fs::read(directory.join("out")).unwrap();
    let numbers: Vec<u64> = match single {
        true => {
            let each = bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
            each.map(|x| if x.is_nan() { u64::MAX } else { u64::from(x.to_bits()) }).collect()
        }
        false => {
            let each = bytes.chunks_exact(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()));
            each.map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
        }
    };
    Some(numbers.chunks(size).map(<[u64]>::to_vec).collect())
}

/// Everybody, or but for compilers together with sets that others stand for.
fn everybody(elem: &str, size: usize, all: bool) {
    let single = elem == "f32";
    let call = call(size, single);
    let plain = module(elem, None, Math::Own);
    let expected = outputs(&plain, &call, Backend::Interp);
    same(&outputs(&plain, &call, Backend::Loops), &expected, "loops");
    for cpu in Cpu::here() {
        let found = outputs(&module(elem, Some(cpu), Math::Own), &call, Backend::Native);
        same(&found, &expected, &format!("native code for {cpu}"));
    }
    let directory = tempfile::tempdir().unwrap();
    let code = plain.c().unwrap();
    fs::write(directory.path().join("f.c"), &code.source).unwrap();
    fs::write(directory.path().join("f.h"), &code.header).unwrap();
    fs::write(directory.path().join("main.c"), main_text(elem, size)).unwrap();
    let mut input = Vec::new();
    for at in 0..2u64 {
        for value in (0..size as u64).map(|i| argument(i * 2 + at * 5 + i / 64 * at, single)) {
            match single {
                true => input.extend((value as f32).to_le_bytes()),
                false => input.extend(value.to_le_bytes()),
            }
        }
    }
    fs::write(directory.path().join("in"), input).unwrap();
    for compiler in ["gcc", "clang"] {
        let here: Vec<_> = SETS.iter().filter(|(set, _)| set.parse::<Cpu>().is_ok_and(Cpu::is_here)).collect();
        let skipped = if all { 0 } else { here.len().saturating_sub(1) };
        for (set, flags) in here.into_iter().skip(skipped) {
            if let Some(found) = emitted(directory.path(), compiler, flags, &[], single, size) {
                same(&found, &expected, &format!("{compiler} for {set}"));
            }
        }
    }
    let (compiler, run) = ("aarch64-linux-gnu-gcc -static", ["qemu-aarch64"]);
    if let Some(found) = emitted(directory.path(), compiler, "", &run, single, size) {
        same(&found, &expected, "NEON");
    }
}

#[test]
fn doubles_have_the_same_bits_everywhere() {
    everybody("f64", 2_003, false);
}

#[test]
fn singles_have_the_same_bits_everywhere() {
    everybody("f32", 2_003, false);
}

#[test]
#[ignore = "slow: a million arguments"]
fn a_million_of_each_have_the_same_bits_everywhere() {
    for elem in ["f64", "f32"] {
        everybody(elem, 1_000_003, true);
    }
}

#[test]
fn the_library_is_an_operation_of_its_own() {
    let text = "fn f(x: f64[n]) -> f64[n] { { [i] -> exp(x[i]) + erf(x[i]) + hypot(x[i], 2.0) } }";
    let module = |math| {
        let options = Options { math, ..Options::default() };
        Module::from_text("f.ten", text, &options).unwrap()
    };
    let (own, libm) = (module(Math::Own), module(Math::Libm));
    let core = libm.core().to_string();
    assert!(core.contains("libm_exp(") && core.contains("libm_hypot(") && core.contains(" erf("), "{core}");
    assert!(!own.core().to_string().contains("libm"));
    let mut sizes = String::new();
    for module in [&own, &libm] {
        let call = Call::new().input("x", Array::from_vec(&[5], vec![0.1, 0.7, -3.0, 100.0, -0.0]).unwrap());
        let expected = outputs(module, &call, Backend::Interp);
        assert_eq!(outputs(module, &call, Backend::Native), expected);
        let _ = write!(sizes, "{} ", module.c().unwrap().native.len());
    }
    let (own, libm) = (own.c().unwrap(), libm.c().unwrap());
    assert!(own.native != libm.native && libm.native.contains("CERTEN_LIBRARY(double, exp"), "{sizes}");
}
