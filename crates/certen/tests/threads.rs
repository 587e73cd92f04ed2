//! Threads change nothing but the time: every number of them gives the bits of a single one, and of loops that were never
//! marked; any number of callers share a module.

use std::num::NonZeroUsize;
use std::thread;

use certen::{Call, Choice, Input, Module, Options, RunOptions};

/// A name, a program, its inputs and sizes.
type Case = (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, i64)]);

/// Loops of every kind that threads share: plain, with reductions, in steps, with private buffers.
const PROGRAMS: [Case; 3] = [
    (
        "product.teil",
        "alloc A : [l, m]\nalloc B : [m, n]\nalloc C : [l, n]\nC = contr 2 3 (prod A B)\n",
        &["A", "B"],
        &[("l", 61), ("m", 67), ("n", 59)],
    ),
    (
        "poisson.ten",
        "fn poisson(p0: f64[h, w], rhs: f64[h, w], steps: size) -> f64[h, w] {
            iterate steps times p = p0 {
                {
                    [i, j] -> (p[i-1, j] + p[i+1, j] + p[i, j-1] + p[i, j+1] - rhs[i, j]) / 4
                        | 1 <= i < h - 1, 1 <= j < w - 1;
                    iv -> p[iv]
                }
            }
        }",
        &["p0", "rhs"],
        &[("h", 211), ("w", 197), ("steps", 5)],
    ),
    (
        "attention.ten",
        "fn attention(Q: f64[n, d], K: f64[m, d], V: f64[m, e]) -> f64[n, e] where m >= 1, d >= 1 {
            let scores = Q @ transpose(K) / sqrt(d);
            softmax(scores) @ V
        }",
        &["Q", "K", "V"],
        &[("n", 53), ("d", 31), ("m", 47), ("e", 37)],
    ),
];

/// Steps that make threads share sums, maxima and whole rows of sums, with a program, its input and sizes.
const SCHEDULES: [(&str, Case); 6] = [
    ("parallelize(i)", TOTAL),
    ("parallelize(i, 777); vectorize(i.i, 8)", TOTAL),
    ("vectorize(i, 4); parallelize(i.o, 500)", TOTAL),
    (
        "reorder([i, j]); parallelize(i, 100)",
        (
            "columns.ten",
            "fn columns(x: f64[m, n]) -> f64[n] { { [j] -> sum({ [i] -> x[i, j] }) } }",
            &["x"],
            &[("m", 20_011), ("n", 7)],
        ),
    ),
    (
        "parallelize(j#2, 500)",
        (
            "peaks.ten",
            "fn peaks(x: f64[m, n]) -> f64[m] where n >= 1 { { [i] -> max({ [j] -> x[i, j] }) } }",
            &["x"],
            &[("m", 3), ("n", 30_011)],
        ),
    ),
    (
        "tile([i, j], [16, 8]); unroll_and_jam(i.i, 2); parallelize(i.o)",
        (
            "product.ten",
            "fn product(a: f64[m, k], b: f64[k, n]) -> f64[m, n] { a @ b }",
            &["a", "b"],
            &[("m", 83), ("k", 67), ("n", 59)],
        ),
    ),
];

const TOTAL: Case = ("total.ten", "fn total(x: f32[n]) -> f32 { sum(x * x) }", &["x"], &[("n", 100_003)]);

fn module((name, text, ..): Case, parallel: bool) -> Module {
    let options = Options { parallel, ..Options::default() };
    Module::from_text(name, text, &options).unwrap_or_else(|failure| panic!("{name}: {failure}"))
}

fn call((_, _, inputs, sizes): Case) -> Call {
    let call = inputs.iter().zip(1..).fold(Call::new(), |call, (name, seed)| call.input(*name, Input::Random(seed)));
    sizes.iter().fold(call, |call, (name, value)| call.dim(*name, *value))
}

/// All bits of all outputs.
fn bits(module: &Module, call: &Call, threads: usize) -> Vec<Vec<u8>> {
    let options = RunOptions { threads: NonZeroUsize::new(threads), ..RunOptions::default() };
    let (outputs, timing) = module.run_with(call, &options).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(timing.threads, threads);
    outputs.iter().map(|output| output.array().expect("native code gives arrays").bytes().to_vec()).collect()
}

#[test]
fn every_number_of_threads_gives_the_same_bits() {
    for case in PROGRAMS {
        let (module, call) = (module(case, true), call(case));
        let expected = bits(&self::module(case, false), &call, 1);
        for threads in [1, 2, 3, 7] {
            assert!(bits(&module, &call, threads) == expected, "{}, {threads} threads", case.0);
        }
    }
}

#[test]
fn schedules_give_the_same_bits_for_every_number_of_threads() {
    for (steps, case) in SCHEDULES {
        let schedule = Choice::Text { name: "schedule".into(), text: steps.into() };
        let options = Options { schedule, ..Options::default() };
        let (name, text, ..) = case;
        let module = Module::from_text(name, text, &options).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        let call = call(case);
        let loops = module.loops().unwrap_or_else(|failure| panic!("{name}: {failure}")).to_string();
        assert!(loops.contains("parallel for"), "{steps}: {loops}");
        let expected = bits(&module, &call, 1);
        for threads in [2, 3, 7] {
            assert!(bits(&module, &call, threads) == expected, "{steps}, {threads} threads");
        }
    }
}

#[test]
fn callers_share_a_module() {
    let case = PROGRAMS[2];
    let (module, call) = (module(case, true), call(case));
    let expected = bits(&module, &call, 1);
    thread::scope(|scope| {
        for caller in 0..8 {
            let (module, call, expected) = (&module, &call, &expected);
            scope.spawn(move || {
                for _ in 0..20 {
                    assert!(bits(module, call, 1 + caller % 3) == *expected);
                }
            });
        }
    });
}

#[test]
fn loops_are_marked_unless_told_otherwise() {
    let marked = |parallel| {
        let (name, text, ..) = PROGRAMS[0];
        let options = Options { parallel, schedule: Choice::None, ..Options::default() };
        let module = Module::from_text(name, text, &options).unwrap_or_else(|failure| panic!("{failure}"));
        module.loops().map(|loops| loops.to_string()).unwrap_or_default()
    };
    assert!(marked(true).contains("parallel for i1 in 0..l {"));
    assert_eq!(marked(true).replace("parallel ", ""), marked(false));
}
