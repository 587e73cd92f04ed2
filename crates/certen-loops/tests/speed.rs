//! How fast the interpreter is, on the machine's numbers: every trial of machine code waits for it.
//!
//! `cargo test --release -p certen-loops --test speed -- --ignored --nocapture`

#![allow(clippy::print_stderr)]

use std::time::Instant;

use certen_core::domain::{Machine, Scalar};
use certen_core::{Tensor, parse_program};
use certen_loops::{FpMode, Interpreter, lower};
use certen_syntax::Sources;

const PROGRAMS: [(&str, &str); 3] = [
    (
        "product",
        "core t\ninput a : f64[90, 90]\ninput b : f64[90, 90]\n\
         c = gen i in 0..90. gen j in 0..90. sum k in 0..90. a[i, k] * b[k, j]\noutput c\n",
    ),
    ("map", "core t\ninput a : f32[200000]\nc = gen i in 0..200000. a[i] * a[i] + f32(2.5)\noutput c\n"),
    (
        "blur",
        "core t\ninput a : f64[300, 300]\n\
         c = gen i in 0..298. gen j in 0..298. (a[i, j + 1] + a[i + 1, j + 1]) + a[i + 2, j + 1]\noutput c\n",
    ),
];

#[test]
#[ignore = "a measurement"]
fn steps_in_a_second() {
    for (name, text) in PROGRAMS {
        let mut sources = Sources::new();
        let file = sources.add("t.core", text);
        let program = parse_program(&sources, file).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"));
        let loops = lower(&program, FpMode::Relaxed).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let inputs: Vec<_> = loops
            .inputs
            .iter()
            .map(|input| {
                let shape = input.ty.shape_at(&|_| None).unwrap();
                let value = |at: usize| Ok::<_, ()>(Scalar::from_f64(at as f64 * 0.25, input.ty.elem));
                (input.name, Tensor::from_fn(shape, value).unwrap().unwrap())
            })
            .collect();
        let best = (0..5).map(|_| {
            let start = Instant::now();
            let mut fuel = u64::MAX;
            let interpreter = Interpreter::new(&loops, &Machine, [], inputs.clone()).unwrap();
            interpreter.run_within(&mut fuel, &mut |_| {}).unwrap();
            (u64::MAX - fuel) as f64 / start.elapsed().as_secs_f64()
        });
        eprintln!("{name}: {:.0} million steps in a second", best.fold(0.0, f64::max) / 1e6);
    }
}
