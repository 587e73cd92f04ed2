//! Generated TeML programs: the evaluator and the loops of random paths give what an oracle computes that knows neither
//! trees nor loops. A path that is refused is refused for a reason that a path can have, never for a bug of the compiler.

use std::collections::BTreeMap;

use certen::road::syntax::Code;
use certen::{Array, Backend, Call, Choice, ElemType, Failure, Input, Module, Name, Options, RunOptions};
use certen_testgen::cases;
use certen_testgen::teml::{SIZES, Written, transformations};

/// What a transformation that does not fit a nest, or a path, may be refused for.
const REASONS: [Code; 10] = [
    Code::E0244,
    Code::E0245,
    Code::E0246,
    Code::E0247,
    Code::E0248,
    Code::E0249,
    Code::E0705,
    Code::E0803,
    Code::E0804,
    Code::E0805,
];

fn options(path: &str) -> Options {
    let schedule = if path.is_empty() { Choice::None } else { Choice::Variant(Name::new(path)) };
    Options { elem: ElemType::I64, schedule, ..Options::default() }
}

fn compile(text: &str, path: &str) -> Result<Module, Failure> {
    Module::from_text("generated.teml", text, &options(path))
}

/// The outputs by the evaluator, or by the loops of a path, compared with the oracle's.
fn compare(module: &Module, program: &Written, sizes: [usize; 3], backend: Backend, text: &str) {
    // Sizes that do not occur in it are no sizes of the program.
    let given = SIZES.iter().zip(sizes).filter(|(name, _)| module.core().sizes.contains(&Name::new(name)));
    let mut call = given.fold(Call::new(), |call, (name, size)| call.dim(*name, size as i64));
    let mut inputs = BTreeMap::new();
    for (seed, (name, shape)) in program.tensors.iter().enumerate() {
        let shape: Vec<usize> = shape.iter().map(|dim| dim.at(sizes)).collect();
        let count: usize = shape.iter().product();
        let values: Vec<i64> = (0..count).map(|at| ((at * 7 + seed * 5) % 11) as i64 - 5).collect();
        if module.core().inputs.iter().any(|input| input.name.as_str() == name) {
            call = call.input(name.as_str(), Input::Array(Array::from_vec(&shape, values.clone()).unwrap()));
            inputs.insert(name.clone(), values);
        }
    }
    let expected = program.values(sizes, &inputs);
    let run = RunOptions { backend, ..RunOptions::default() };
    let (outputs, _) = module.run_with(&call, &run).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
    assert!(!outputs.is_empty(), "{text}");
    for output in outputs {
        let found: &[i64] = output.array().and_then(|array| array.as_slice()).unwrap();
        let expected = expected.get(output.name.as_str()).unwrap_or_else(|| panic!("{}?\n{text}", output.name));
        assert_eq!(found, expected, "{} at {sizes:?} by {backend:?}\n{text}", output.name);
    }
}

/// Sizes at which nothing is negative.
fn possible(program: &Written) -> Vec<[usize; 3]> {
    let fits = |sizes: &[usize; 3]| {
        program.tensors.iter().all(|(_, shape)| shape.iter().all(|dim| dim.less <= sizes[dim.size]))
    };
    [[2, 3, 5], [1, 4, 2], [3, 3, 3], [7, 2, 1], [2, 0, 3]].into_iter().filter(fits).collect()
}

/// In which order a path lists its nests.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Own,
    Reversed,
    WithoutFirst,
}

/// The program with a path; each transformation that fits its nest is kept.
fn with_path(program: &Written, seed: u64, order: Order) -> String {
    let mut text = program.text();
    let mut last = Vec::new();
    for (at, stmt) in program.stmts.iter().enumerate() {
        let mut name = format!("l{at}");
        text += &format!("{name} = build({})\n", stmt.id);
        for (number, step) in transformations(stmt, seed ^ at as u64).into_iter().enumerate() {
            let next = format!("l{at}_{number}");
            let longer = format!("{text}{next} = {}\n", step.replace('L', &name));
            match compile(&longer, "") {
                Ok(_) => (text, name) = (longer, next),
                Err(failure) => assert_reason(&failure, &longer),
            }
        }
        last.push(name);
    }
    match order {
        Order::Own => {}
        Order::Reversed => last.reverse(),
        Order::WithoutFirst if last.len() > 1 => drop(last.remove(0)),
        Order::WithoutFirst => {}
    }
    format!("{text}path = codegen({})\n", last.join(", "))
}

fn assert_reason(failure: &Failure, text: &str) {
    for error in failure.diagnostics().iter().filter(|error| error.code.to_string().starts_with('E')) {
        assert!(REASONS.contains(&error.code), "{failure}\n{text}");
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "`--nocapture` shows how many")]
fn programs_and_their_paths_compute_what_the_oracle_does() {
    let (mut paths, mut accepted, mut proved, mut others) = (0, 0, 0, 0);
    for seed in 0..u64::from(cases() / 8) {
        let program = Written::generate(seed);
        if program.stmts.is_empty() {
            continue;
        }
        let text = program.text();
        let module = compile(&text, "").unwrap_or_else(|failure| panic!("{failure}\n{text}"));
        for sizes in possible(&program) {
            compare(&module, &program, sizes, Backend::Interp, &text);
        }
        for order in [Order::Own, Order::Reversed, Order::WithoutFirst] {
            let text = with_path(&program, seed, order);
            let counts = order == Order::Own;
            paths += u32::from(counts);
            let module = match compile(&text, "path") {
                Ok(module) => module,
                Err(failure) => {
                    assert_reason(&failure, &text);
                    continue;
                }
            };
            match module.c() {
                Err(failure) => assert_reason(&failure, &text),
                Ok(_) => {
                    accepted += u32::from(counts);
                    others += u32::from(!counts);
                    proved += u32::from(counts && module.validation().is_ok_and(|validation| validation.proved));
                    for sizes in possible(&program) {
                        compare(&module, &program, sizes, Backend::Loops, &text);
                    }
                }
            }
        }
    }
    println!(
        "{paths} paths, {accepted} accepted, of these {proved} proved; {others} in another order, or without a nest"
    );
    assert!(accepted * 10 >= paths * 7, "only {accepted} of {paths} paths were accepted");
}
