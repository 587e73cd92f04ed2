//! Native code computes what the evaluator says, bit for bit.
//!
//! Elements are small integers and generated programs keep every intermediate value within 2^53, so that f64 is exact and
//! the results are also those of the rationals; not so where a program of the model language divides, but there native
//! code rounds as the evaluator does.

mod common;

use std::sync::Mutex;

use certen_core::ElemType;
use certen_core::domain::{Exact, Machine, Rational, Scalar};
use certen_runtime::Cache;
use certen_testgen::{EXACT, Sample, cases};
use common::batch::Batch;
use common::{checked, core_of, evaluate, inputs, samples};

/// How many programs are compiled at once.
const BATCH: usize = 25;

/// Adds a program, and what the evaluator says of it.
fn add(batch: &mut Batch, at: usize, sample: &Sample, elem: ElemType) {
    let program = core_of(&checked(sample), &format!("program_{at}"), elem);
    let given = inputs(sample, |value| Scalar::from_i64(value, elem));
    let outputs = evaluate(&program, &Machine, &sample.sizes(), given.clone());
    batch.add(&program, &sample.sizes(), &given, &outputs, &format!("over {elem}\n{}", sample.text()));
    if elem == ElemType::F64 && !sample.divides() {
        let exact = evaluate(&program, &Rational, &sample.sizes(), inputs(sample, Exact::from));
        for ((name, machine), (_, exact)) in outputs.iter().zip(&exact) {
            assert_eq!(&machine.map(|value| Exact::from(value.to_f64() as i64)), exact, "{name} is not exact");
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
                add(&mut batch, *at, sample, if divided { ElemType::F64 } else { elem });
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
