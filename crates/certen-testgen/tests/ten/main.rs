//! The `.ten` language on generated programs: what is well-typed is accepted, means what the oracle says, on every way
//! to run it and at every stage of its elaboration, and never goes out of bounds; what is not is refused.

#[path = "../common/mod.rs"]
mod common;
mod refused;
mod texts;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use certen::{Backend, Call, DomainChoice, Failure, Module, Options, Output, RunOptions, Values};
use certen_core::domain::{Exact, Scalar};
use certen_core::{ElemType, Tensor};
use certen_runtime::Array;
use certen_syntax::render_all;
use certen_testgen::ten::oracle::{Trouble, Value};
use certen_testgen::ten::tree::{Elem, Expr, Slot, Written};
use certen_testgen::ten::{Sizes, TenSample};
use common::for_bytes;

/// How many programs a property is tested with; the slow set takes twice as many as of other languages.
fn cases() -> u32 {
    let cases = certen_testgen::cases();
    if cases >= 10_000 { 2 * cases } else { cases }
}

/// Runs a test on generated programs.
fn for_programs(cases: u32, seed: u8, test: impl Fn(&TenSample)) {
    let show = |bytes: &[u8]| TenSample::generate(bytes).text();
    for_bytes(cases, seed, show, |bytes| test(&TenSample::generate(bytes)));
}

fn complaint(failure: &Failure) -> String {
    render_all(failure.sources(), failure.diagnostics(), false)
}

/// A text that must be accepted.
fn accepted(text: &str) -> Module {
    let made = Module::from_text("generated.ten", text, &Options::default());
    made.unwrap_or_else(|failure| panic!("not accepted:\n{}", complaint(&failure)))
}

/// A call of `main` at some sizes.
fn call(sample: &TenSample, sizes: &Sizes) -> Call {
    let mut call = Call::new();
    for (name, (elem, value)) in sample.inputs(sizes) {
        let elem = if elem == Elem::F64 { ElemType::F64 } else { ElemType::I64 };
        let shape = value.shape.iter().map(|size| *size as usize).collect();
        let data = value.data.iter().map(|x| Scalar::from_f64(*x, elem)).collect();
        let tensor = Tensor::new(shape, data).expect("as many elements as the shape has");
        call = call.input(name.as_str(), Array::from_tensor(elem, &tensor).expect("memory for a small array"));
    }
    for name in sample.amounts() {
        call = call.dim(name.as_str(), sizes[&name]);
    }
    call
}

/// What the oracle says; nothing if numbers get too large or it takes too long.
fn expected(sample: &TenSample, sizes: &Sizes) -> Option<Vec<Value>> {
    let inputs = sample.inputs(sizes).into_iter().map(|(name, (_, value))| (name, value)).collect();
    match sample.program.run(&inputs, sizes) {
        Ok(values) => Some(values),
        Err(Trouble::TooMuch) => None,
        Err(trouble) => panic!("the generator made a wrong program: {trouble:?} at {sizes:?}"),
    }
}

fn run(module: &Module, call: &Call, backend: Backend, domain: DomainChoice) -> Vec<Output> {
    let options = RunOptions { backend, domain, ..RunOptions::default() };
    match module.run_with(call, &options) {
        Ok((outputs, _)) => outputs,
        Err(failure) => panic!("a run fails:\n{}", complaint(&failure)),
    }
}

/// The elements of an output as numbers; nothing is undefined.
fn numbers(output: &Output) -> Vec<f64> {
    match &output.values {
        Values::Array(array) => (0..array.len()).filter_map(|at| array.get(at)).map(|x| x.to_f64()).collect(),
        Values::Partial(values) => values.iter().map(|x| x.expect("no element is undefined").to_f64()).collect(),
        Values::Exact(_) | Values::Field(_) => Vec::new(),
    }
}

fn agree(outputs: &[Output], expected: &[Value], what: &str, sizes: &Sizes) {
    assert_eq!(outputs.len(), expected.len());
    for (output, expected) in outputs.iter().zip(expected) {
        let shape: Vec<i64> = output.shape.iter().map(|size| *size as i64).collect();
        assert_eq!(shape, expected.shape, "the shape of {} {what} at {sizes:?}", output.name);
        match &output.values {
            Values::Exact(values) => {
                let exact = |x: &f64| match output.elem {
                    ElemType::Bool => Exact::Bool(*x != 0.0),
                    _ => Exact::from(*x as i64),
                };
                let expected: Vec<Exact> = expected.data.iter().map(exact).collect();
                assert_eq!(values, &expected, "{} {what} at {sizes:?}", output.name);
            }
            _ => assert_eq!(numbers(output), expected.data, "{} {what} at {sizes:?}", output.name),
        }
    }
}

/// The stages of a program that are programs.
fn programs(module: &Module) -> Vec<(&'static str, String)> {
    module.stages().into_iter().filter(|(name, _)| *name != "demands").collect()
}

/// Runs a test on every accepted program at several sizes, with what its results are.
fn for_runs(cases: u32, seed: u8, test: impl Fn(&Module, &Call, &[Value], &Sizes)) {
    let (runs, silent) = (Cell::new(0), Cell::new(0));
    for_programs(cases, seed, |sample| {
        let module = accepted(&sample.text());
        for sizes in sample.sizes() {
            match expected(sample, &sizes) {
                Some(expected) => {
                    test(&module, &call(sample, &sizes), &expected, &sizes);
                    runs.set(runs.get() + 1);
                }
                None => silent.set(silent.get() + 1),
            }
        }
    });
    assert!(silent.get() <= runs.get() / 5 + 8, "{} runs say nothing, and {} something", silent.get(), runs.get());
}

/// The properties speak of the whole language only if programs use all of it.
#[test]
fn programs_use_the_whole_language() {
    const WORDS: [&str; 63] = [
        "where ",
        ": size",
        "-> size",
        "associative(",
        "...]",
        ":s]",
        ">0:s",
        "let (",
        "let t",
        "] = { [",
        "if ",
        "guard(",
        "select(",
        "iterate ",
        " times ",
        "with {",
        ": genarray(",
        ": modarray(",
        ": fold(step_",
        ": fold(max",
        ": fold(*",
        "sum(",
        "prod(",
        "min(",
        "max(",
        "axis = ",
        "axis = [",
        "axis = -",
        "einsum(",
        " @ ",
        " ++ ",
        "transpose(",
        "flatten(",
        "split(",
        "reshape(",
        "pad_l(",
        "trunc_r(",
        "mod(",
        "floor_div(",
        "abs(",
        "f64(",
        "!",
        "&&",
        "||",
        " < .",
        ". <=",
        "[., ",
        "..., ",
        "..]",
        "[..",
        "take(",
        "drop(",
        "reverse(",
        "rotate(",
        "outer(",
        "window(",
        "shift(",
        "sel(",
        "project(",
        "clamp(",
        "periodic(",
        "tensordot(",
        "poly",
    ];
    let missing = RefCell::new(WORDS.to_vec());
    let inferred = Cell::new(0);
    for_programs(cases().max(300), 108, |sample| {
        let text = sample.text();
        missing.borrow_mut().retain(|word| !text.contains(word));
        let mut found = false;
        sample.program.clone().each(&mut |e| found |= leaves_bounds_out(e));
        inferred.set(inferred.get() + u32::from(found));
    });
    assert!(missing.borrow().is_empty(), "no program has any of {:?}", missing.borrow());
    assert!(inferred.get() > 50, "{} programs leave bounds to inference", inferred.get());
}

fn leaves_bounds_out(e: &Expr) -> bool {
    let out = |slot: &Slot| match slot {
        Slot::Index(_, _, (_, how)) | Slot::Rest(_, _, (_, how)) => *how == Written::No,
        Slot::Dot | Slot::Dots => false,
    };
    matches!(e, Expr::Comprehension(parts) if parts.iter().any(|part| part.slots.iter().any(out)))
}

#[test]
fn what_is_well_typed_is_accepted() {
    for_programs(cases(), 101, |sample| drop(accepted(&sample.text())));
}

#[test]
fn the_evaluator_agrees_with_the_oracle() {
    for_runs(cases(), 102, |module, call, expected, sizes| {
        agree(&run(module, call, Backend::Interp, DomainChoice::Machine), expected, "evaluated", sizes);
    });
}

/// The rationals, and values or undefined: nothing is read that has no value.
#[test]
fn accepted_programs_are_defined_everywhere() {
    for_runs(cases() / 2, 103, |module, call, expected, sizes| {
        agree(&run(module, call, Backend::Interp, DomainChoice::Undefined), expected, "or undefined", sizes);
        agree(&run(module, call, Backend::Interp, DomainChoice::Rational), expected, "in rationals", sizes);
    });
}

/// Sec. 5 and 6 of the paper: every stage is a program, it is accepted, which proves its accesses, and means the same.
/// The first, before any pass, still leaves bounds out, and accesses that conditions decided are shown as they are now:
/// then, seldom, a bound cannot be inferred again.
#[test]
fn every_stage_is_a_program_that_means_the_same() {
    let unread = Cell::new(0);
    for_programs(cases() / 2, 107, |sample| {
        let stages = programs(&accepted(&sample.text()));
        assert!(stages.len() >= 3, "bounds, dots, with-loops");
        for (name, text) in stages {
            let made = Module::from_text("generated.ten", text.clone(), &Options::default());
            let module = match made {
                Ok(module) => module,
                Err(_) if name == "written" => {
                    unread.set(unread.get() + 1);
                    continue;
                }
                Err(failure) => panic!("{name} is not accepted:\n{text}\n{}", complaint(&failure)),
            };
            for sizes in sample.sizes() {
                if let Some(expected) = expected(sample, &sizes) {
                    let outputs = run(&module, &call(sample, &sizes), Backend::Interp, DomainChoice::Undefined);
                    agree(&outputs, &expected, &format!("after {name}:\n{text}"), &sizes);
                }
            }
        }
    });
    assert!(unread.get() <= 1 + cases() / 100, "{} first stages are not accepted", unread.get());
}

#[test]
fn the_loops_agree_with_the_oracle() {
    for_runs(cases(), 104, |module, call, expected, sizes| {
        agree(&run(module, call, Backend::Loops, DomainChoice::Machine), expected, "by loops", sizes);
    });
}

/// Starting the C compiler takes long, so there are fewer.
#[test]
fn native_code_agrees_with_the_oracle() {
    for_runs((cases() / 20).max(10), 105, |module, call, expected, sizes| {
        agree(&run(module, call, Backend::Native, DomainChoice::Machine), expected, "natively", sizes);
    });
}

/// Prints a few programs, and of each kind of failure the shortest program among all cases: how the generator, or the
/// language, is looked at. `cargo test -p certen-testgen --test ten -- --ignored --nocapture look`
#[test]
#[ignore = "for people"]
#[allow(clippy::print_stdout, reason = "it prints")]
fn look_at_programs() {
    let count = Cell::new(0);
    let found: RefCell<BTreeMap<String, (usize, String, String)>> = RefCell::default();
    for_programs(cases().min(2_000), 106, |sample| {
        count.set(count.get() + 1);
        let text = sample.text();
        if count.get() <= 10 {
            println!("// {}\n{text}", count.get());
        }
        let tested = std::panic::catch_unwind(|| {
            let module = accepted(&text);
            let stage = |(name, text): (&str, String)| {
                if let Err(failure) = Module::from_text("stage.ten", text.clone(), &Options::default()) {
                    panic!("{name}\n{}\n{text}", complaint(&failure));
                }
            };
            programs(&module).into_iter().for_each(stage);
            for sizes in sample.sizes() {
                if let Some(expected) = expected(sample, &sizes) {
                    let call = call(sample, &sizes);
                    agree(&run(&module, &call, Backend::Interp, DomainChoice::Machine), &expected, "evaluated", &sizes);
                    agree(&run(&module, &call, Backend::Loops, DomainChoice::Machine), &expected, "loops", &sizes);
                }
            }
        });
        if let Err(panic) = tested {
            let why = panic.downcast_ref::<String>().cloned().unwrap_or_default();
            let kind: String = why.lines().take(2).collect::<Vec<_>>().join(" ").chars().take(45).collect();
            let kind = kind.replace(|c: char| c.is_ascii_digit(), "");
            let mut found = found.borrow_mut();
            let entry = found.entry(kind).or_insert((0, text.clone(), why.clone()));
            entry.0 += 1;
            if text.len() < entry.1.len() {
                (entry.1, entry.2) = (text, why);
            }
        }
    });
    for (kind, (count, text, why)) in found.into_inner() {
        println!("=== {count} times: {kind}\n{text}\n{why}\n");
    }
}
