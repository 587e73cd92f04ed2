//! The same bits from everyone who computes: evaluator, interpreter of loops, native code for fixed and for all sizes,
//! unrolled or not, and emitted C in the hands of gcc and clang at any level of optimisation.
// What is skipped says so.
#![allow(clippy::print_stderr)]

use std::fs;
use std::path::Path;
use std::process::Command;

use certen::{Array, Backend, Call, Choice, FpMode, Module, Options, RunOptions};

/// Library functions of constants and of values, powers that are products, and some that are not.
const LIBRARY: &str = "fn f(x: f64[n], y: f32[n]) -> (a: f64[n], b: f32[n]) {
    (
        {
            [i] -> x[i]^2 + x[i]^3 + x[i]^-5 + x[i]^17 + pow(x[i], f64(n)) + pow(x[i], 0.3) + tanh(0.7) + exp(0.3)
                + log(1.7) * sin(x[i]) * cos(x[i]) + sin(0.1) + cos(0.2) + pow(2.759, f64(n)) + exp(x[i])^16
        },
        { [i] -> y[i]^2 + y[i]^-3 + pow(y[i], f32(n)) + tanh(y[i]) + f32(0) * exp(y[i]) + log(y[i]) }
    )
}";

fn options(schedule: &str) -> Options {
    let text = Choice::Text { name: "schedule".into(), text: schedule.into() };
    let schedule = if schedule.is_empty() { Choice::None } else { text };
    Options { schedule, fp: FpMode::Strict, ..Options::default() }
}

fn module(text: &str, schedule: &str) -> Module {
    Module::from_text("f.ten", text, &options(schedule)).unwrap()
}

fn x(size: usize) -> Vec<f64> {
    (0..size).map(|i| 2.759 + 0.137 * i as f64).collect()
}

/// With `x`, and with `y` too.
fn one(size: usize) -> Call {
    Call::new().input("x", Array::from_vec(&[size], x(size)).unwrap())
}

fn call(size: usize) -> Call {
    let y: Vec<f32> = x(size).iter().map(|x| *x as f32).collect();
    one(size).input("y", Array::from_vec(&[size], y).unwrap())
}

/// The bits of all outputs.
fn bits(module: &Module, call: &Call, backend: Backend) -> Vec<u64> {
    let (outputs, _) = module.run_with(call, &RunOptions { backend, ..RunOptions::default() }).unwrap();
    let bits = |array: &Array| match array.as_slice::<f32>() {
        Some(short) => short.iter().map(|value| u64::from(value.to_bits())).collect::<Vec<u64>>(),
        None => array.as_slice::<f64>().unwrap().iter().map(|value| value.to_bits()).collect(),
    };
    outputs.iter().flat_map(|output| bits(output.array().unwrap())).collect()
}

#[track_caller]
fn all_agree(module: &Module, call: &Call) -> Vec<u64> {
    let expected = bits(module, call, Backend::Interp);
    for backend in [Backend::Loops, Backend::Native] {
        assert_eq!(bits(module, call, backend), expected);
    }
    expected
}

#[test]
fn powers_have_the_same_bits_natively() {
    let power = |k: i64| format!("x[i]^{k}");
    for elem in ["f64", "f32"] {
        let powers: Vec<String> = (-16..=16).map(power).collect();
        let text = format!("fn f(x: {elem}[n]) -> {elem}[n, 33] {{ {{ [i] -> [{}] }} }}", powers.join(", "));
        let values = Array::from_vec(&[50], x(50)).unwrap();
        let short = Array::from_vec(&[50], x(50).iter().map(|x| *x as f32).collect()).unwrap();
        let call = Call::new().input("x", if elem == "f64" { values } else { short });
        all_agree(&module(&text, ""), &call);
    }
    // The example of the issue: a product, whatever a library says.
    let square = module("fn f(x: f64[n]) -> f64[n] { x^2 }", "");
    assert_eq!(all_agree(&square, &one(1)), [(2.759f64 * 2.759).to_bits()]);
}

#[test]
fn an_exponent_may_become_known_at_any_time() {
    let symbolic = "fn f(x: f64[n], y: f32[n]) -> (a: f64[n], b: f32[n]) { ({ [i] -> pow(x[i], f64(n)) }, \
                    { [i] -> pow(y[i], f32(n)) }) }";
    let all = module(symbolic, "");
    for n in [1, 2, 3, 7, 16, 17, 20] {
        let fixed = module(&symbolic.replace("[n]", &format!("[{n}]")).replace("(n)", &format!("({n})")), "");
        let literal = module(&symbolic.replace("f64(n)", &n.to_string()).replace("f32(n)", &n.to_string()), "");
        let expected = all_agree(&all, &call(n));
        assert_eq!(all_agree(&fixed, &call(n)), expected);
        assert_eq!(all_agree(&literal, &call(n)), expected);
    }
}

#[test]
fn powers_of_powers_stay_small() {
    let nested = (0..40).fold("(0.5 + x[i] / 5)".to_owned(), |base, at| format!("({base})^{}", [1, 2, 15, -1][at % 4]));
    let module = module(&format!("fn f(x: f64[n]) -> f64[n] {{ {{ [i] -> {nested} }} }}"), "");
    assert!(module.core().to_string().len() < 10_000);
    all_agree(&module, &one(3));
}

#[test]
fn powers_of_indices_are_exact() {
    let text = "fn f(x: f64[k]) -> i64 { k^17 }";
    let call = Call::new().input("x", Array::from_vec(&[11], vec![0.0; 11]).unwrap());
    for backend in [Backend::Interp, Backend::Loops, Backend::Native] {
        let options = RunOptions { backend, ..RunOptions::default() };
        let (outputs, _) = module(text, "").run_with(&call, &options).unwrap();
        assert_eq!(outputs[0].array().unwrap().as_slice::<i64>(), Some(&[505_447_028_499_293_771][..]));
    }
    let failure = Module::from_text("f.ten", "fn f(x: f64) -> f64 { x + 10^20 }", &options("")).unwrap_err();
    assert_eq!(failure.diagnostics()[0].code.to_string(), "E0216");
}

#[test]
fn unrolling_changes_no_bit_of_a_library_function() {
    // C compilers compute tanh of a constant with other bits than the library for one in thirteen of these.
    let text = "fn f() -> f64[400] { { [k] -> tanh(0.1 + 0.0137 * k) | k < 400 } }";
    let expected = all_agree(&module(text, ""), &Call::new());
    assert_eq!(all_agree(&module(text, "unroll(k)"), &Call::new()), expected);
    let text = "fn f(x: f64[n]) -> f64[n] { { [i] -> sum({ [k] -> x[i] * tanh(0.1 + 0.37 * k) | k < 12 }) } }";
    let expected = all_agree(&module(text, ""), &one(9));
    for schedule in ["unroll(k)", "unroll(k, 4)", "unroll(i, 3)"] {
        assert_eq!(all_agree(&module(text, schedule), &one(9)), expected, "{schedule}");
    }
}

#[test]
fn functions_of_the_library_have_the_same_bits_natively() {
    let all = module(LIBRARY, "");
    for n in [1, 2, 5, 19] {
        let expected = all_agree(&all, &call(n));
        let fixed = module(&LIBRARY.replace("[n]", &format!("[{n}]")).replace("(n)", &format!("({n})")), "");
        assert_eq!(all_agree(&fixed, &call(n)), expected);
    }
}

#[test]
fn emitted_c_has_the_same_bits_with_any_compiler_and_level() {
    const SIZE: usize = 5;
    let directory = tempfile::tempdir().unwrap();
    // A size that compilers know, and constants, so that they could compute what they know.
    let text = LIBRARY.replace("[n]", &format!("[{SIZE}]")).replace("(n)", &format!("({SIZE})"));
    let module = module(&text, "");
    let code = module.c().unwrap();
    let values: Vec<String> = x(SIZE).iter().map(|x| format!("{x:?}")).collect();
    let main = format!(
        "#include \"f.h\"\n#include <inttypes.h>\n#include <stdio.h>\n#include <string.h>\nint main(void) {{\n    \
         double x[] = {{{0}}}, a[{SIZE}];\n    float y[{SIZE}], b[{SIZE}];\n    \
         for (int i = 0; i < {SIZE}; i++) y[i] = (float)x[i];\n    if (f(x, y, a, b) != 0) return 1;\n    \
         for (int i = 0; i < {SIZE}; i++) {{ uint64_t u; memcpy(&u, &a[i], 8); printf(\"%\" PRIu64 \"\\n\", u); }}\n    \
         for (int i = 0; i < {SIZE}; i++) {{ uint32_t u; memcpy(&u, &b[i], 4); printf(\"%\" PRIu32 \"\\n\", u); }}\n    \
         return 0;\n}}\n",
        values.join(", ")
    );
    for (name, text) in [("f.c", &code.source), ("f.h", &code.header), ("main.c", &main)] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let expected = all_agree(&module, &call(SIZE));
    for compiler in ["gcc", "clang"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("{compiler}: skipped, it is not here");
            continue;
        }
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            assert_eq!(built_and_run(compiler, level, directory.path()), expected, "{compiler} {level}");
        }
    }
}

fn built_and_run(compiler: &str, level: &str, directory: &Path) -> Vec<u64> {
    let mut command = Command::new(compiler);
    command.current_dir(directory).args(["-std=c11", level, "-Wall", "-Wextra", "-Werror", "f.c", "main.c", "-o", "f"]);
    let built = command.arg("-lm").output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(directory.join("f")).output().unwrap();
    assert!(ran.status.success());
    String::from_utf8(ran.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect()
}
