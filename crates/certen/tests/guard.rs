//! Kernels of other frameworks: each file in `tests/guard` gets the verdict that is written down for it, the safe ones as
//! `.ten` programs that the checker accepts and that have NumPy's values. Nothing here runs NumPy: `make_expected.py` did.

use std::fs;
use std::path::{Path, PathBuf};

use certen::guard::{self, Guarded, Judged, Language};
use certen::road::syntax::{Code, render_all};
use certen::{Array, Backend, Call, ElemType, Failure, Module, Options, RunOptions};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guard")
}

fn expected() -> Value {
    serde_json::from_str(&fs::read_to_string(folder().join("expected.json")).unwrap()).unwrap()
}

fn ending(language: &str) -> &'static str {
    match language {
        "taco" => "taco",
        "tc" => "tc",
        "cfdlang" => "cfd",
        _ => "py",
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn sizes(value: &Value) -> Vec<usize> {
    numbers(value).into_iter().map(|size| size as usize).collect()
}

fn array(elem: ElemType, given: &Value) -> Array {
    let (shape, data) = (sizes(&given["shape"]), numbers(&given["data"]));
    match elem {
        ElemType::F64 => Array::from_vec(&shape, data),
        ElemType::F32 => Array::from_vec(&shape, data.into_iter().map(|x| x as f32).collect()),
        ElemType::I64 => Array::from_vec(&shape, data.into_iter().map(|x| x as i64).collect()),
        _ => Array::from_vec(&shape, data.into_iter().map(|x| x as i32).collect()),
    }
    .unwrap()
}

/// Runs a kernel and compares its outputs.
fn agrees(kernel: &Judged, expected: &Value) -> Result<(), String> {
    let text = kernel.ten().map_err(|failure| failure.to_string())?;
    let module = Module::from_text("kernel.ten", text, &Options::default())
        .map_err(|failure| format!("the checker refuses the program:\n{text}\n{failure}"))?;
    let mut call = Call::new();
    for (name, given) in expected["inputs"].as_object().unwrap() {
        let tensor = kernel.kernel().tensors.iter().find(|tensor| tensor.name.as_str() == name);
        let elem = tensor.ok_or_else(|| format!("there is no input {name}"))?.elem;
        call = call.input(name.as_str(), array(elem, given));
    }
    let options = RunOptions { backend: Backend::Interp, ..RunOptions::default() };
    let (outputs, _) = module.run_with(&call, &options).map_err(|failure| format!("{text}\n{failure}"))?;
    let wanted = expected["outputs"].as_object().unwrap();
    if outputs.len() != wanted.len() {
        return Err(format!("{} outputs, not {}", outputs.len(), wanted.len()));
    }
    for output in &outputs {
        let wanted = wanted.get(output.name.as_str()).ok_or_else(|| format!("an output {}", output.name))?;
        if output.shape != sizes(&wanted["shape"]) {
            return Err(format!("{} has shape {:?}, not {}", output.name, output.shape, wanted["shape"]));
        }
        let array = output.array().unwrap();
        for (at, wanted) in numbers(&wanted["data"]).into_iter().enumerate() {
            let found: f64 = array.get(at).unwrap().to_string().parse().unwrap();
            if (found - wanted).abs() > 2e-5 * wanted.abs().max(1.0) {
                return Err(format!("{}[{at}] is {found}, not {wanted}\n{text}", output.name));
            }
        }
    }
    Ok(())
}

fn said(guarded: &Guarded) -> (Vec<Code>, String) {
    let faults = guarded.kernels().iter().flat_map(|kernel| kernel.faults());
    let diagnostics: Vec<_> = faults.map(|fault| fault.diagnostic.clone()).collect();
    let codes = diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    (codes, render_all(guarded.sources(), &diagnostics, false))
}

fn is_said(code: &[Code], text: &str, expected: &Value) -> Result<(), String> {
    let wanted = expected["code"].as_str().unwrap();
    if !code.iter().any(|code| code.to_string() == wanted) {
        return Err(format!("{wanted} is expected, and this is said:\n{text}"));
    }
    let words = expected["says"].as_array().unwrap();
    match words.iter().find(|words| !text.contains(words.as_str().unwrap())) {
        Some(words) => Err(format!("{words} is expected, and this is said:\n{text}")),
        None => Ok(()),
    }
}

fn judge(guarded: Result<Guarded, Failure>, expected: &Value) -> Result<(), String> {
    match (expected["verdict"].as_str().unwrap(), guarded) {
        ("refused", Err(failure)) => {
            let codes: Vec<Code> = failure.diagnostics().iter().map(|diagnostic| diagnostic.code).collect();
            is_said(&codes, &failure.to_string(), expected)
        }
        (_, Err(failure)) => Err(failure.to_string()),
        ("safe", Ok(guarded)) => match guarded.kernels() {
            [kernel] if kernel.is_safe() => agrees(kernel, expected),
            [_] => Err(said(&guarded).1),
            kernels => Err(format!("{} kernels", kernels.len())),
        },
        ("unsafe", Ok(guarded)) => {
            let (codes, text) = said(&guarded);
            is_said(&codes, &text, expected)
        }
        (verdict, Ok(guarded)) => Err(format!("it should be {verdict}; this is said: {}", said(&guarded).1)),
    }
}

#[test]
fn kernels_get_their_verdicts_and_values() {
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for (language, kernels) in expected().as_object().unwrap() {
        let kernels = kernels.as_object().unwrap();
        let files = fs::read_dir(folder().join(language)).unwrap().count();
        assert_eq!(files, kernels.len(), "{language}: a file has no verdict, or a verdict no file");
        assert!(kernels.len() >= 35, "{language}: only {} kernels", kernels.len());
        for (name, expected) in kernels {
            let path = folder().join(language).join(format!("{name}.{}", ending(language)));
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains("Covers: "), "{} does not say what it covers", path.display());
            let guarded = guard::text(&format!("{name}.{}", ending(language)), text, None);
            if let Err(what) = judge(guarded, expected) {
                wrong.push(format!("== {language}/{name}\n{what}"));
            }
            judged += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {judged}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Every counterexample, put into the text of what the message shows, breaks it.
#[test]
fn faults_show_how_the_framework_reads_them() {
    for (language, kernels) in expected().as_object().unwrap() {
        for (name, _) in kernels.as_object().unwrap().iter().filter(|(_, expected)| expected["verdict"] == "unsafe") {
            let path = folder().join(language).join(format!("{name}.{}", ending(language)));
            let guarded = guard::file(&path, None).unwrap();
            for fault in guarded.kernels().iter().flat_map(|kernel| kernel.faults()) {
                let is_bounds = matches!(fault.diagnostic.code, Code::E1001);
                assert!(!is_bounds || !fault.example.is_empty(), "{language}/{name}: no counterexample");
                assert!(!is_bounds || !fault.reading.is_empty(), "{language}/{name}: no reading");
            }
        }
    }
}

#[test]
fn languages_are_told_by_endings() {
    assert_eq!(Language::of("a/b.taco"), Some(Language::Taco));
    assert_eq!(Language::of("a/b.ten"), None);
    let failure = guard::text("kernel.txt", "", None).err().unwrap();
    assert_eq!(failure.diagnostics()[0].code, Code::E0104);
    assert!(guard::text("kernel.txt", "double a, b\na = b", Some(Language::Taco)).unwrap().is_safe());
}
