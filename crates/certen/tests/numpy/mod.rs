//! What NumPy gives for an example, and whether Certen gives it too.
//!
//! `make_expected.py` writes inputs and outputs to a file. NumPy sums in another order, so elements may differ by
//! [`TOLERANCE`] times the largest element of their tensor, at least 4500 units in its last place; 16 were the most when
//! this was written. What is no float is equal. At other sizes, 0 and 1 among them, native code agrees with the evaluator.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use certen::road::syntax::Code;
use certen::{Array, Backend, Call, Failure, Input, Module, Output, RunOptions};
use serde_json::Value;

/// The largest difference from NumPy, relative to the largest element of the tensor.
const TOLERANCE: f64 = 1e-12;

/// Sizes other than those that NumPy was run at.
const SIZES: [i64; 11] = [0, 1, 2, 5, 1, 3, 6, 4, 1, 2, 6];

/// The cases in a file, by the names of kernels.
pub fn expected(path: &Path) -> Result<BTreeMap<String, Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The call of a case.
pub fn call(case: &Value) -> Result<Call, String> {
    let mut call = Call::new();
    for (name, size) in case["sizes"].as_object().into_iter().flatten() {
        call = call.dim(name.as_str(), size.as_i64().ok_or("a size that is no integer")?);
    }
    for (name, input) in case["inputs"].as_object().into_iter().flatten() {
        call = call.input(name.as_str(), array(input)?);
    }
    Ok(call)
}

/// A program gives the outputs of a case, by the evaluator and natively.
pub fn gives(module: &Module, call: &Call, case: &Value) -> Result<(), String> {
    let wanted: Vec<Array> = case["outputs"].as_array().into_iter().flatten().map(array).collect::<Result<_, _>>()?;
    for backend in [Backend::Interp, Backend::Native] {
        let outputs = outputs(module, call, backend).map_err(shown)?;
        let outputs: Vec<&Array> = outputs.iter().filter_map(Output::array).collect();
        if outputs.len() != wanted.len() {
            return Err(format!("{} results, expected {}", outputs.len(), wanted.len()));
        }
        for (found, wanted) in outputs.into_iter().zip(&wanted) {
            equal(found, wanted).map_err(|error| format!("{backend:?}: {error}"))?;
        }
    }
    Ok(())
}

/// Native code gives what the evaluator does, at sizes from 0 to 6 that satisfy the `where` clause.
///
/// What is 0/0 in the order of the program, as in an iteration that has converged, can be a number in another one. There the
/// program as `strict` makes it is compared.
pub fn agrees_at_other_sizes(module: &Module, strict: impl Fn() -> Result<Module, String>) -> Result<(), String> {
    let mut ran = 0;
    for round in 0..SIZES.len() {
        let mut call = Call::new();
        for (at, size) in module.core().sizes.iter().enumerate() {
            call = call.dim(*size, SIZES[(round + at * at) % SIZES.len()]);
        }
        for (seed, input) in (1..).zip(&module.core().inputs) {
            call = call.input(input.name, Input::Random(seed));
        }
        let wanted = match outputs(module, &call, Backend::Interp) {
            Err(failure) if failure.diagnostics().iter().all(|d| d.code == Code::E0409) => continue,
            result => result.map_err(shown)?,
        };
        ran += 1;
        let is_number = |output: &Array| output.as_slice::<f64>().is_none_or(|all| all.iter().all(|x| x.is_finite()));
        let found = match wanted.iter().filter_map(Output::array).all(is_number) {
            true => outputs(module, &call, Backend::Native),
            false => outputs(&strict()?, &call, Backend::Native),
        };
        let found = found.map_err(shown)?;
        for (found, wanted) in found.iter().filter_map(Output::array).zip(wanted.iter().filter_map(Output::array)) {
            let at = |error| format!("native code differs from the evaluator in round {round}: {error}");
            equal(found, wanted).map_err(at)?;
        }
    }
    if ran == 0 { Err("the `where` clause allows none of the sizes".into()) } else { Ok(()) }
}

fn outputs(module: &Module, call: &Call, backend: Backend) -> Result<Vec<Output>, Failure> {
    let options = RunOptions { backend, ..RunOptions::default() };
    Ok(module.run_with(call, &options)?.0)
}

pub fn shown(failure: Failure) -> String {
    failure.to_string()
}

/// An array as `make_expected.py` stores it.
fn array(stored: &Value) -> Result<Array, String> {
    let list = |key: &str| stored[key].as_array().ok_or(format!("no list `{key}`"));
    let shape: Option<Vec<usize>> = list("shape")?.iter().map(|size| Some(size.as_u64()? as usize)).collect();
    let shape = shape.ok_or("a shape that is no list of sizes")?;
    let data = list("data")?;
    let made = match stored["type"].as_str() {
        Some("f64") => data.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>().map(|d| Array::from_vec(&shape, d)),
        Some("bool") => data.iter().map(Value::as_bool).collect::<Option<Vec<_>>>().map(|d| Array::from_vec(&shape, d)),
        Some("u8") => {
            let bytes: Option<Vec<u8>> = data.iter().map(|v| u8::try_from(v.as_u64()?).ok()).collect();
            bytes.map(|d| Array::from_vec(&shape, d))
        }
        other => return Err(format!("an array of type {other:?}")),
    };
    made.ok_or("elements of another type")?.map_err(|error| error.to_string())
}

/// Floats within the tolerance, all else the same.
fn equal(found: &Array, wanted: &Array) -> Result<(), String> {
    if (found.elem(), found.shape()) != (wanted.elem(), wanted.shape()) {
        let (a, b) = ((found.elem(), found.shape()), (wanted.elem(), wanted.shape()));
        return Err(format!("{}{:?}, expected {}{:?}", a.0, a.1, b.0, b.1));
    }
    let (Some(a), Some(b)) = (found.as_slice::<f64>(), wanted.as_slice::<f64>()) else {
        return if found == wanted { Ok(()) } else { Err("elements differ".into()) };
    };
    let largest = b.iter().filter(|x| x.is_finite()).fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let near = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= TOLERANCE * largest;
    match a.iter().zip(b).position(|(x, y)| !near(*x, *y)) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is {}, expected {}; the largest is {largest}", a[at], b[at])),
    }
}

/// NumPy still gives what is checked in, up to the last places, which depend on how it was built.
pub fn numpy_gives_what_is_expected(folder: &Path, file: &str) -> Result<(), String> {
    let python = env::var_os("CERTEN_NUMPY_PYTHON").ok_or("`cargo xtask test --slow` sets CERTEN_NUMPY_PYTHON")?;
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let ran = Command::new(python).arg(folder.join("make_expected.py")).arg(&made).output();
    let ran = ran.map_err(|error| error.to_string())?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned());
    }
    let (made, stored) = (expected(&made)?, expected(&folder.join("expected.json"))?);
    if made.keys().ne(stored.keys()) {
        return Err("expected.json has other kernels".into());
    }
    for ((kernel, made), stored) in made.iter().zip(stored.values()) {
        if (&made["sizes"], &made["inputs"]) != (&stored["sizes"], &stored["inputs"]) {
            return Err(format!("{kernel} has other inputs in expected.json"));
        }
        let outputs = |case: &Value| case["outputs"].as_array().into_iter().flatten().map(array).collect();
        let (made, stored): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (outputs(made), outputs(stored));
        let (made, stored) = (made?, stored?);
        if made.len() != stored.len() {
            return Err(format!("{kernel} has other results in expected.json"));
        }
        for (made, stored) in made.iter().zip(&stored) {
            equal(stored, made).map_err(|error| format!("{kernel} in expected.json: {error}"))?;
        }
    }
    Ok(())
}
