//! Another library in the process changes the floating-point environment, in every thread another way: no bit of a result
//! depends on it.
//!
//! The library is loaded before this test's own program, which runs itself a second time. It sets the rounding mode and
//! takes subnormal numbers for zero, as a library that is linked with `-ffast-math` does, on the first thread and on every
//! one that is started.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
// The second run tells the first what it has found.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

use certen::einsum::{Contraction, Order, Subscripts};
use certen::{Array, Backend, Call, FpMode, Kernel, Module, Name, Options, ResultShape, RunOptions, Sizing};

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static _Atomic unsigned started;

static void disturb(void) {
    static const unsigned others[] = {0x9fc0, 0x5fc0, 0xbf80, 0x7f80, 0x1fc0}; /* FTZ, DAZ, up, down, to zero */
    __builtin_ia32_ldmxcsr(others[started++ % 5]);
}

__attribute__((constructor)) static void loaded(void) {
    disturb();
}

struct work {
    void *(*run)(void *);
    void *with;
};

static void *disturbed(void *context) {
    struct work work = *(struct work *)context;
    free(context);
    disturb();
    return work.run(work.with);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = dlsym(RTLD_NEXT, "pthread_create");
    struct work *work = malloc(sizeof *work);
    *work = (struct work){run, with};
    return real(thread, how, disturbed, work);
}
"#;

/// Names what the second run does; it is no test where this is not set.
const INSIDE: &str = "CERTEN_TEST_DISTURBED";

const PROGRAM: &str = "fn f(x: f64[n], y: f32[n]) -> (a: f64[n], b: f32[n], c: f64) {
    let p = { [i] -> x[i] * 0.7 + x[i] / 3 + exp(x[i]) * 1e-310 };
    (p, y / 3 + y * 0.1, sum(p) * 0.1)
}";

/// Sizes that are worth several threads.
const SIZE: usize = 60_000;

/// Subnormal numbers and such near 0.1, made without arithmetic: this program's own is disturbed.
fn numbers() -> (Vec<f64>, Vec<f32>) {
    let long = |i: u64| {
        f64::from_bits(if i.is_multiple_of(2) {
            12_345_678_901 * (i % 97 + 1)
        } else {
            0x3fb9_9999_9999_999a + 1_000_003 * i
        })
    };
    let short = |i: u32| f32::from_bits(if i.is_multiple_of(2) { 1_237 * (i % 89 + 1) } else { 0x3dcc_cccd + 11 * i });
    ((0..SIZE as u64).map(long).collect(), (0..SIZE as u32).map(short).collect())
}

/// A number that every bit of every output changes.
fn seal(arrays: &[&Array]) -> u64 {
    let bytes = arrays.iter().flat_map(|array| array.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn run(module: &Module, backend: Backend) -> u64 {
    let (x, y) = numbers();
    let call = Call::new().input("x", Array::from_vec(&[SIZE], x).unwrap());
    let call = call.input("y", Array::from_vec(&[SIZE], y).unwrap());
    let options = RunOptions { backend, threads: NonZeroUsize::new(4), ..RunOptions::default() };
    let (outputs, _) = module.run_with(&call, &options).unwrap();
    seal(&outputs.iter().filter_map(|output| output.array()).collect::<Vec<_>>())
}

/// As Python calls it.
fn call(kernel: &Kernel) -> u64 {
    let (x, y) = numbers();
    let (x, y) = (Array::from_vec(&[SIZE], x).unwrap(), Array::from_vec(&[SIZE], y).unwrap());
    let given = [(Name::new("x"), x.elem(), x.shape()), (Name::new("y"), y.elem(), y.shape())];
    let prepared = kernel.prepare(&given, &[]).unwrap();
    let zeros = |result: &ResultShape| Array::zeros(result.elem, &result.shape).unwrap();
    let mut results: Vec<Array> = prepared.outputs().iter().map(zeros).collect();
    let mut views: Vec<_> = results.iter_mut().map(Into::into).collect();
    prepared.run(&[(&x).into(), (&y).into()], &mut views, NonZeroUsize::new(4)).unwrap();
    drop(views);
    seal(&results.iter().collect::<Vec<_>>())
}

fn einsum() -> u64 {
    let (x, _) = numbers();
    let matrix = Array::from_vec(&[30, SIZE / 30], x).unwrap();
    let shapes = [matrix.shape(), matrix.shape()];
    let subscripts = Subscripts::parse("ij,kj->ik", 2).unwrap();
    let elem = certen::ElemType::F64;
    let contraction = Contraction::new(&subscripts, &shapes, elem, &Order::Best).unwrap();
    let mut out = Array::zeros(elem, &[30, 30]).unwrap();
    contraction.run(&[(&matrix).into(), (&matrix).into()], (&mut out).into(), None).unwrap();
    seal(&[&out])
}

/// What is computed, by name; the same calls many times.
fn results(times: usize) -> Vec<(&'static str, u64)> {
    let options = Options { fp: FpMode::Strict, ..Options::default() };
    let module = Module::from_text("f.ten", PROGRAM, &options).unwrap();
    let mut found = vec![("evaluator", run(&module, Backend::Interp)), ("loops", run(&module, Backend::Loops))];
    found.extend((0..times).map(|_| ("native", run(&module, Backend::Native))));
    let kernel = Kernel::from_text("f.ten", PROGRAM, &options, Sizing::Symbolic).unwrap();
    found.extend((0..times).map(|_| ("kernel", call(&kernel))));
    found.extend((0..times).map(|_| ("einsum", einsum())));
    found
}

#[test]
fn disturbed() {
    if std::env::var_os(INSIDE).is_some() {
        for (name, seal) in results(50) {
            println!("result {name} {seal:016x}");
        }
    }
}

#[test]
fn no_bit_depends_on_the_environment_of_the_process() {
    let expected = results(1);
    let [evaluator, _, _, _, einsum] = expected[..] else { panic!("{expected:?}") };
    assert!(expected[..4].iter().all(|(_, seal)| *seal == evaluator.1), "{expected:?}");

    let directory = tempfile::tempdir().unwrap();
    let [source, library] = ["disturb.c", "libdisturb.so"].map(|name| directory.path().join(name));
    fs::write(&source, LIBRARY).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).arg("-ldl").status();
    assert!(built.unwrap().success());
    let text = again(&library);
    let lines: Vec<&str> = text.lines().filter_map(|line| line.split_once("result ").map(|(_, rest)| rest)).collect();
    assert_eq!(lines.len(), 152, "{text}");
    for line in lines {
        let wanted = if line.starts_with("einsum") { einsum.1 } else { evaluator.1 };
        assert!(line.ends_with(&format!(" {wanted:016x}")), "{line}, not {wanted:016x}");
    }
}

/// What this program says when it runs with the library in its process.
fn again(library: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "disturbed", "--nocapture"]).env(INSIDE, "1").env("LD_PRELOAD", library);
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// The same for emitted C, whose threads are OpenMP's: each of them is disturbed before the call.
#[test]
fn emitted_c_does_not_depend_on_it_either() {
    // A loop that stays where it is, and one with memory of its own, which becomes a function.
    let text = "fn f(x: f64[n], w: f64[m]) -> (a: f64[n, m], b: f64[n]) where m >= 1 {
        ({ [i, j] -> x[i] * 0.7 + w[j] / 3 }, { [i] -> { let t = exp(w * x[i]); sum(t) * max(t) / 3 } })
    }";
    let options = Options { fp: FpMode::Strict, ..Options::default() };
    let code = Module::from_text("f.ten", text, &options).unwrap().c().unwrap();
    assert!(code.source.contains("CERTEN_PARALLEL(") && code.source.contains("certen_parallel("), "{}", code.source);
    let directory = tempfile::tempdir().unwrap();
    let main = r#"
#include "f.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 200000
static double x[N], a[5*N], first[5*N];
static void disturb(unsigned how) {
#pragma omp parallel
    __builtin_ia32_ldmxcsr(how);
}
int main(void) {
    static const unsigned others[] = {0x1f80, 0x9fc0, 0x5fc0, 0xbf80, 0x7f80, 0x1fc0};
    for (uint64_t i = 0; i < N; i++) {
        uint64_t bits = i % 2 == 0 ? 12345678901u * (i % 97 + 1) : 0x3fb999999999999au + 1000003u * i;
        memcpy(&x[i], &bits, 8);
    }
    for (int at = 0; at < 6; at++) {
        disturb(others[at]);
        if (f(N, 4, x, x, a, a + 4*N) != 0) return 1;
        if (__builtin_ia32_stmxcsr() >> 6 != others[at] >> 6) return 2;
        if (at == 0) memcpy(first, a, sizeof a);
        if (memcmp(first, a, sizeof a) != 0) return 10 + at;
    }
    return 0;
}
"#;
    for (name, text) in [("f.c", code.source.as_str()), ("f.h", &code.header), ("main.c", main)] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    for (compiler, openmp) in [("gcc", "-fopenmp"), ("gcc", "-O3"), ("clang", "-O2")] {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("{compiler}: skipped, it is not here");
            continue;
        }
        let mut command = Command::new(compiler);
        command.current_dir(directory.path()).args(["-std=c11", "-O2", openmp, "f.c", "main.c", "-o", "f", "-lm"]);
        let built = command.output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let ran = Command::new(directory.path().join("f")).env("OMP_NUM_THREADS", "4").status().unwrap();
        assert_eq!(ran.code(), Some(0), "{compiler} {openmp}");
    }
}
