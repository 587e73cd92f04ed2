//! What the property tests share: running over generated programs, and taking a program down the road.

#![allow(dead_code, reason = "no test needs everything")]

pub mod batch;

use std::cell::RefCell;

use arbitrary::Unstructured;
use certen_core::{Domain, ElemType, Evaluator, Program, Tensor};
use certen_dialects::algebra::{self, Notation, Typed};
use certen_dialects::{model, teil};
use certen_figures::semantics::Memory;
use certen_syntax::{Diagnostic, Diagnostics, FileId, Name, Sources, render_all};
use certen_testgen::Sample;
use proptest::collection::vec;
use proptest::num::u8::ANY;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// Fuel that no generated program needs.
pub const FUEL: u64 = 10_000_000;

/// Runs a test on byte strings, always the same ones; one that fails is made smaller first.
pub fn for_bytes(cases: u32, seed: u8, show: impl Fn(&[u8]) -> String, test: impl Fn(&[u8])) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]));
    let outcome = runner.run(&vec(ANY, 0..800), |bytes| {
        test(&bytes);
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, bytes)) => panic!("{why}\nthe smallest program found:\n{}", show(&bytes)),
        Err(TestError::Abort(why)) => panic!("{why}"),
    }
}

/// Runs a test on generated programs.
pub fn for_samples(cases: u32, seed: u8, test: impl Fn(&Sample)) {
    for_bytes(cases, seed, |bytes| Sample::generate(bytes).text(), |bytes| test(&Sample::generate(bytes)));
}

/// Generated programs, all at once.
pub fn samples(cases: u32, seed: u8) -> Vec<Sample> {
    let all = RefCell::new(Vec::new());
    for_samples(cases, seed, |sample| all.borrow_mut().push(sample.clone()));
    all.into_inner()
}

/// Runs a test on generated programs in the model language.
pub fn for_models(cases: u32, seed: u8, test: impl Fn(&Sample)) {
    let make = |bytes: &[u8]| Sample::in_mode(Notation::Model, &mut Unstructured::new(bytes));
    for_bytes(cases, seed, |bytes| make(bytes).text(), |bytes| test(&make(bytes)));
}

/// What reading and checking a text finds, with the text.
pub fn diagnose_in(notation: Notation, text: &str) -> (Option<Typed>, Diagnostics, Sources) {
    let (parse, name): (fn(&Sources, FileId, &mut Diagnostics) -> _, _) = match notation {
        Notation::Teil | Notation::CoreTeil => (teil::parse, "generated.teil"),
        Notation::Model => (model::parse, "generated.model"),
    };
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let mut diagnostics = Diagnostics::new();
    let program = parse(&sources, file, &mut diagnostics);
    (algebra::check(program, &mut diagnostics), diagnostics, sources)
}

/// The same of a TeIL program.
pub fn diagnose(text: &str) -> (Option<Typed>, Vec<Diagnostic>) {
    let (typed, diagnostics, _) = diagnose_in(Notation::Teil, text);
    (typed, diagnostics.into_sorted())
}

/// A text that must be a well-typed program.
pub fn typed_in(notation: Notation, text: &str) -> Typed {
    typed_with_sources(notation, text).0
}

/// The same, with the text.
pub fn typed_with_sources(notation: Notation, text: &str) -> (Typed, Sources) {
    let (typed, diagnostics, sources) = diagnose_in(notation, text);
    let complaint = || render_all(&sources, diagnostics.clone().into_sorted().as_slice(), false);
    let typed = typed.unwrap_or_else(|| panic!("not well-typed:\n{text}\n{}", complaint()));
    (typed, sources)
}

/// A text that must be a well-typed TeIL program.
pub fn typed(text: &str) -> Typed {
    typed_in(Notation::Teil, text)
}

/// A generated program, through its text.
pub fn checked(sample: &Sample) -> Typed {
    typed_in(sample.mode, &sample.text())
}

/// A typed program in Core; it must be well-formed.
pub fn core(typed: &Typed) -> Program {
    core_of(typed, "generated", ElemType::F64)
}

/// The same, with common subexpressions computed once.
pub fn shared_core(typed: &Typed) -> Program {
    let shared = algebra::elaborate_shared(typed, "generated".into(), ElemType::F64).expect("typed programs elaborate");
    let program = shared.unwrap_or_else(|| core(typed));
    program.check().expect("elaborated programs are well-formed");
    program
}

/// The same, under a name and over an element type.
pub fn core_of(typed: &Typed, name: &str, elem: ElemType) -> Program {
    let program = algebra::elaborate(typed, name.into(), elem).expect("typed programs elaborate");
    program.check().expect("elaborated programs are well-formed");
    program
}

/// The inputs of a program, with elements from the sample's.
pub fn inputs<V>(sample: &Sample, element: impl Fn(i64) -> V) -> Vec<(Name, Tensor<V>)> {
    let each = |at: usize| (sample.name(at).into(), sample.elements(at).map(|value| element(*value)));
    sample.inputs().into_iter().map(each).collect()
}

/// Memory before the first statement: inputs have values, everything else is undefined.
pub fn memory<V: Clone>(sample: &Sample, element: impl Fn(i64) -> V) -> Vec<Tensor<Option<V>>> {
    let inputs = sample.inputs();
    let first = |at: usize| sample.elements(at).map(|value| inputs.contains(&at).then(|| element(*value)));
    (0..sample.tensors.len()).map(first).collect()
}

/// The same, by name.
pub fn named<V: Clone>(sample: &Sample, memory: &[Tensor<V>]) -> Memory<V> {
    memory.iter().enumerate().map(|(at, tensor)| (sample.name(at).into(), tensor.clone())).collect()
}

/// The outputs of a Core program, by the reference evaluator.
pub fn evaluate<D: Domain>(
    program: &Program,
    domain: &D,
    sizes: &[(Name, i64)],
    inputs: Vec<(Name, Tensor<D::Value>)>,
) -> Vec<(Name, Tensor<D::Value>)> {
    let evaluator = Evaluator::new(program, domain, sizes.iter().copied(), inputs).expect("a call of the program");
    evaluator.with_fuel(FUEL).run().expect("the program has values")
}
