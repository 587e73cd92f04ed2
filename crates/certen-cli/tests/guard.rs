//! `certen guard` from outside: statuses, JSON, annotations, programs and runs.

mod common;

use std::path::{Path, PathBuf};

use common::{CERTEN, Ran, command, run};
use serde_json::{Value, json};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guard").canonicalize().unwrap()
}

fn guard(line: &str) -> Ran {
    run(command(CERTEN, &folder()).arg("guard").args(line.split_whitespace()))
}

fn as_json(line: &str) -> (Option<i32>, Value) {
    let Ran { status, out, err } = guard(&format!("--json {line}"));
    assert_eq!(err, "", "{line}");
    (status, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}")))
}

#[test]
fn statuses_say_how_it_went() {
    for (line, status) in [
        ("taco/fig3b.taco tc/fig3b.tc tvm/fig3b.py", 0),
        ("taco/fig3b.taco tc/fig3a.tc", 1),
        ("tc/half.tc", 2),
        ("tc/fig3a.tc tc/half.tc taco/fig3b.taco", 2),
        ("no_such_file.tc", 2),
        ("make_expected.py", 0),
        ("expected.json", 2),
        ("tc/fig3b.tc --kernel g", 2),
        ("tc/fig3b.tc --in A=1", 2),
        ("tc/fig3b.tc --language cobol", 2),
    ] {
        let ran = guard(line);
        assert_eq!(ran.status, Some(status), "{line}: {}{}", ran.out, ran.err);
    }
}

#[test]
fn json_has_a_verdict_for_each_kernel() {
    let (status, found) = as_json("tvm/fig3a.py tvm/fig3b.py");
    assert_eq!((status, &found["ok"]), (Some(1), &json!(false)));
    let kernels = found["kernels"].as_array().unwrap();
    let verdicts: Vec<&Value> = kernels.iter().map(|kernel| &kernel["verdict"]).collect();
    assert_eq!(verdicts, ["unsafe", "safe"]);
    assert_eq!(kernels[0]["tensors"][0], json!({"name": "A", "type": "f32", "shape": ["m", "h"], "input": true}));
    let fault = &kernels[0]["faults"][0];
    let shown = ["code", "tensor", "dimension", "declared", "used"].map(|field| &fault[field]);
    assert_eq!(shown, [&json!("E1001"), &json!("A"), &json!(0), &json!("m"), &json!("k up to h - 1")]);
    // The counterexample, by hand: h and m are sizes of a call, k an iteration, and the access leaves the tensor.
    let value = |name: &str| fault["example"][name].as_i64().unwrap();
    assert!(value("m") >= 1 && (0..value("h")).contains(&value("k")) && value("k") >= value("m"), "{fault}");
    assert!(fault["reading"].as_str().unwrap().contains("TVM"));

    let (status, found) = as_json("tc/half.tc tc/fig3b.tc");
    assert_eq!((status, &found["diagnostics"][0]["code"]), (Some(2), &json!("E1004")));
    assert_eq!(found["kernels"].as_array().unwrap().len(), 1);
}

#[test]
fn annotations_are_those_of_github() {
    let Ran { status, out, .. } = guard("--format github tc/fig3a.tc tc/half.tc cfdlang/subtraction.cfd");
    assert_eq!(status, Some(2));
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[0].starts_with("::error title=E1002,file=tc/fig3a.tc,line=3,endLine=3,col=27,endColumn=34::`k` has"));
    assert!(lines[0].contains("%0Adeclared: ") && lines[1].starts_with("::error title=E1004,file=tc/half.tc,line=2"));
    assert!(lines[2].starts_with("::warning title=W1001,file=cfdlang/subtraction.cfd"));
}

#[test]
fn safe_kernels_are_programs_that_run() {
    let ten = guard("tc/conv1d.tc --emit ten");
    assert!(ten.status == Some(0) && ten.out.contains("fn conv("), "{ten:?}");
    let c = guard("taco/matmul.taco --emit c");
    assert!(c.status == Some(0) && c.out.contains("#include"), "{c:?}");
    let (status, found) = as_json("taco/matmul.taco --run --in B=iota --in C=1 --dim m=2 --dim k=3 --dim n=1");
    assert_eq!(status, Some(0), "{found}");
    assert_eq!(found["kernels"][0]["outputs"]["A"], json!({"type": "f64", "shape": [2, 1], "data": [3.0, 12.0]}));
    let refused = guard("tc/fig3a.tc --run --in A=1 --in B=1");
    assert!(refused.status == Some(1) && refused.out.is_empty(), "{refused:?}");
}
