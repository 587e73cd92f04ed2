//! Well-typed programs: the loops agree with the reference evaluator in the prime field.
#![no_main]

use certen::{Backend, Call, DomainChoice, Input, Module, Options, RunOptions, Values};
use certen::road::dialects::algebra::Notation;
use certen_testgen::Sample;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let sample = Sample::generate(bytes);
    // Loops compute whole tensors, the evaluator only what is read: they need not agree on a division by zero.
    if sample.divides() {
        return;
    }
    let name = if sample.mode == Notation::Model { "fuzz.model" } else { "fuzz.teil" };
    let module = Module::from_text(name, sample.text(), &Options::default())
        .unwrap_or_else(|failure| panic!("{failure}\n{}", sample.text()));
    let mut call = Call::new();
    for (name, size) in sample.sizes() {
        call = call.dim(name, size);
    }
    for input in &module.core().inputs {
        call = call.input(input.name, Input::Random(bytes.len() as u64));
    }
    let run = |backend| {
        let options = RunOptions { backend, domain: DomainChoice::Field, ..RunOptions::default() };
        let outputs = module.run_with(&call, &options).unwrap_or_else(|failure| panic!("{failure}"));
        let values = |values| match values {
            Values::Field(values) => values,
            _ => Vec::new(),
        };
        outputs.0.into_iter().map(|output| values(output.values)).collect::<Vec<_>>()
    };
    assert_eq!(run(Backend::Interp), run(Backend::Loops), "{}", sample.text());
});
