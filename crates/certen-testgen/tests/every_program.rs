//! Every program that is checked in runs natively and agrees with the evaluator, at sizes that its author did not choose.
//!
//! The programs are all of `examples` and all accepted ones of `tests/programs`, in every language. Sizes are 0, 1 and
//! primes, as far as their `where` clauses allow. Native code may sum in another order and factor common terms out:
//! it is held to [`certen_core::domain::magnitude`], so that it is equal where arithmetic is exact, and within the bound of
//! rounding elsewhere. Inputs are small whole numbers in one run and numbers with many digits in the next.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use certen::{Backend, Call, Module, Name, Options, Output, RunOptions};
use certen_core::domain::Scalar;
use certen_core::domain::magnitude::{Compared, Magnitude, Measured, compare};
use certen_core::{ElemType, EvalError, Evaluator, Fault, Tensor};
use certen_runtime::Array;

/// Sizes in the order in which they are tried.
const SIZES: [i64; 11] = [3, 5, 1, 2, 7, 0, 4, 1, 6, 2, 3];

/// Sizes at which a program is run, of those that it allows.
const RUNS: usize = 4;

/// Steps of the evaluator after which a run is left out.
const FUEL: u64 = 1_000_000;

/// Elements of an input from which on a run is left out.
const MOST_ELEMENTS: usize = 1 << 20;

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if path.is_dir() {
            collect(&path, files);
        } else if ["ten", "teil", "model", "teml", "core"].contains(&ending) {
            files.push(path);
        }
    }
}

/// What a header says of how to read a program; examples have none, and their function has the file's name.
fn options(path: &Path, text: &str) -> Options {
    let mut options = Options::default();
    for line in text.lines() {
        let Some((key, value)) = line.strip_prefix("//@ ").and_then(|line| line.split_once(':')) else { continue };
        let (key, value) = (key.trim(), value.trim());
        match key.strip_prefix("rank ") {
            Some(name) => drop(options.known.ranks.insert(Name::new(name.trim()), value.parse().expect("a rank"))),
            None if key == "fn" => options.function = Some(Name::new(value)),
            None if key == "elem" => options.elem = value.parse().expect("an element type"),
            None => {}
        }
    }
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if options.function.is_none() && text.contains(&format!("fn {stem}(")) {
        options.function = Some(Name::new(stem));
    }
    options
}

/// Inputs at some sizes: whole numbers, or numbers with many digits. Nothing if they are too large.
fn inputs(module: &Module, sizes: &BTreeMap<Name, i64>, whole: bool) -> Option<Vec<(Name, Tensor<Scalar>)>> {
    let mut next = 5u64;
    let mut element = |elem: ElemType| {
        next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (next >> 40) as i64;
        if whole || !elem.is_float() {
            Scalar::from_i64(number % 7 - if elem == ElemType::U8 { 0 } else { 2 }, elem)
        } else {
            Scalar::from_f64(number as f64 / f64::from(1u32 << 24) + 0.1, elem)
        }
    };
    let inputs = module.core().inputs.iter().map(|input| {
        let shape = input.ty.shape_at(&|name| sizes.get(&name).copied()).expect("every size has a value");
        let count = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size))?;
        let data = (count < MOST_ELEMENTS).then(|| (0..count).map(|_| element(input.ty.elem)).collect())?;
        Some((input.name, Tensor::new(shape, data)?))
    });
    inputs.collect()
}

/// Runs a program at some sizes in both ways; nothing if the evaluator cannot or takes too long.
fn agree(module: &Module, sizes: &BTreeMap<Name, i64>, whole: bool) -> Result<Option<Compared>, String> {
    let Some(given) = inputs(module, sizes, whole) else { return Ok(None) };
    let measured = given.iter().map(|(name, tensor)| (*name, tensor.map(|value| Measured::given(*value))));
    let sized = sizes.iter().map(|(name, value)| (*name, *value));
    let evaluator = Evaluator::new(module.core(), &Magnitude, sized.clone(), measured).map_err(|e| e.to_string())?;
    let expected = match evaluator.with_fuel(FUEL).run() {
        Ok(expected) => expected,
        Err(EvalError::Fuel | EvalError::Memory | EvalError::Fault(Fault::Undefined)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut call = sized.fold(Call::new(), |call, (name, value)| call.dim(name, value));
    for (name, tensor) in &given {
        let elem = module.core().type_of(*name).map_or(ElemType::F64, |ty| ty.elem);
        call = call.input(*name, Array::from_tensor(elem, tensor).map_err(|error| error.to_string())?);
    }
    let native = RunOptions { backend: Backend::Native, ..RunOptions::default() };
    let (found, _) = module.run_with(&call, &native).map_err(|failure| failure.to_string())?;
    let mut sum = Compared::default();
    for ((name, expected), found) in expected.iter().zip(found.iter().filter_map(Output::array)) {
        let found = found.to_tensor().map_err(|error| error.to_string())?;
        let compared = compare(expected, &found).map_err(|error| format!("{name}: {error}"))?;
        sum += compared;
    }
    Ok(Some(sum))
}

/// The functions of a file that has several and no `main`, and what is derived from them.
fn functions(text: &str) -> Vec<Name> {
    let name = |line: &str| {
        let declared = line.strip_prefix("fn ").or_else(|| line.strip_prefix("derive "))?;
        Some(Name::new(declared.split(['(', ' ']).next()?))
    };
    let names: Vec<Name> = text.lines().filter_map(name).collect();
    if names.len() < 2 || names.contains(&Name::new("main")) { Vec::new() } else { names }
}

/// How many elements of a file's programs were compared, at the sizes that they allow; nothing if it is refused.
fn file(path: &Path) -> Result<Option<Compared>, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    // What is wrong with a path of TeML is known when its loops are made.
    if path.extension().is_some_and(|ending| ending == "teml") && text.contains("//@ expect: E") {
        return Ok(None);
    }
    let options = options(path, &text);
    let mut modules = Vec::new();
    if options.function.is_none() {
        // Helpers that take ranks or sizes are run as part of others.
        let each = |name| Module::from_file(path, &Options { function: Some(name), ..options.clone() });
        modules.extend(functions(&text).into_iter().filter_map(|name| each(name).ok()));
    }
    if modules.is_empty() {
        match Module::from_file(path, &options) {
            Ok(module) => modules.push(module),
            Err(failure) if text.contains("//@ expect: ok") || !text.contains("//@ ") => {
                return Err(failure.to_string());
            }
            Err(_) => return Ok(None),
        }
    }
    let mut sum = Compared::default();
    for module in &modules {
        sum += program(module)?;
    }
    Ok(Some(sum))
}

fn program(module: &Module) -> Result<Compared, String> {
    let (mut sum, mut runs) = (Compared::default(), 0);
    for round in 0..4 + SIZES.len() * 2 {
        // First some that have room for borders and strides.
        let size = |at: usize| match round.checked_sub(4) {
            None => [6, 8, 7, 9, 6][(round + at) % 5],
            Some(round) => SIZES[(round + at * (1 + round / SIZES.len())) % SIZES.len()],
        };
        let most = if round < 4 { 1 } else { RUNS };
        let names = module.core().sizes.iter().enumerate();
        let sizes: BTreeMap<Name, i64> = names.map(|(at, name)| (*name, size(at))).collect();
        let allowed = module.core().facts.iter().all(|fact| fact.eval(&|name| sizes.get(&name).copied()) == Ok(true));
        if !allowed || runs >= most {
            continue;
        }
        let at = |error| format!("at {sizes:?}: {error}");
        let Some(compared) = agree(module, &sizes, runs % 2 == 0).map_err(at)? else { continue };
        runs += 1;
        sum += compared;
    }
    Ok(sum)
}

fn every_program_of(folder: &str, least: usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let todo = Mutex::new(files);
    let (wrong, silent) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let sum = Mutex::new((0, Compared::default()));
    let work = || {
        while let Some(path) = { todo.lock().map_or(None, |mut files| files.pop()) } {
            match file(&path) {
                Err(error) => wrong.lock().expect("no panic").push(format!("{}\n{error}", path.display())),
                Ok(None) => {}
                // Of a program whose results have no elements at these sizes, nothing was compared.
                Ok(Some(compared)) if compared == Compared::default() => silent.lock().expect("no panic").push(path),
                Ok(Some(compared)) => {
                    let mut sum = sum.lock().expect("no panic");
                    sum.0 += 1;
                    sum.1 += compared;
                }
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{} programs differ:\n{}", wrong.len(), wrong.join("\n\n"));
    let (programs, compared) = sum.into_inner().expect("no panic");
    let known = compared.exact + compared.bounded;
    assert!(known > 5 * compared.unknown, "{programs} programs: {compared:?}");
    assert!(programs >= least, "{programs} programs; nothing was compared of {silent:?}");
}

#[test]
fn every_example_agrees_natively() {
    every_program_of("examples", 70);
}

#[test]
fn every_test_program_agrees_natively() {
    every_program_of("tests/programs", 150);
}
