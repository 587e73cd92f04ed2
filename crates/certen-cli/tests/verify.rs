//! `certen verify`: what it says, and what becomes of certificates.

mod common;

use std::fs;
use std::path::PathBuf;

use certen::road::checker::{Certificate, Condition, Status, Step, check, read_nest, tests};
use certen::{Module, Options};
use common::{CERTEN, Ran, command, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const KERNELS: &str = "\
fn smooth(x: f64[n]) -> f64[n-2] where n >= 2 {
    { [i] -> (x[i] + 2.0 * x[i+1] + x[i+2]) / 4.0 }
}

fn largest(x: f64[m, n]) -> f64[m] where n >= 1 {
    { [i] -> max({ [j] -> x[i, j] }) }
}

fn scaled(x: f64[s...], k: f64) -> f64[s...] {
    x * k
}

schedule blocks for smooth {
    split(i, 4);
}
";

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        fs::write(desk.path("kernels.ten"), KERNELS).unwrap();
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Ran {
        run(command(CERTEN, self.0.path()).arg("verify").args(words))
    }

    /// What is printed when all goes well and nobody complains.
    fn out(&self, words: &[&str]) -> String {
        let Ran { status, out, err } = self.run(words);
        assert_eq!((status, err.as_str()), (Some(0), ""), "{words:?}: {out}");
        out
    }

    fn json(&self, words: &[&str], status: i32) -> Value {
        let ran = self.run(&[words, &["--json"]].concat());
        assert_eq!((ran.status, ran.err.as_str()), (Some(status), ""), "{words:?}: {}", ran.out);
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{words:?}: {}", ran.out))
    }

    fn code(&self, words: &[&str], status: i32) -> String {
        self.json(words, status)["diagnostics"][0]["code"].as_str().unwrap().to_owned()
    }
}

#[test]
fn every_function_is_told_about() {
    let out = Desk::new().out(&["kernels.ten"]);
    let (functions, trusted) = out.split_once("what remains trusted:\n").unwrap();
    // At how many points the compiler compares, and at how many sizes its code is tried, is its own affair.
    let tried = "), all bits equal to the loops'";
    let is_tried = |line: &str| line.starts_with("  machine   every element at ") && line.trim_end().ends_with(tried);
    let is_of_compiler = |line: &&str| line.starts_with("  compiler  compared them at ") || is_tried(line);
    assert_eq!(functions.lines().filter(is_of_compiler).count(), 4, "{functions}");
    let others: String = functions.split_inclusive('\n').filter(|line| !is_of_compiler(line)).collect();
    assert_eq!(
        others,
        "\
smooth:
  bounds    4 obligations, each proved for all sizes
  races     1 obligation, proved for all sizes
  values    nothing to show
  schedule  none
  equality  tested by the checker at 5 points in the field, 11 elements
            - n = 3
            - n = 5
            - n = 2
            - n = 7
            - n = 4
largest:
  bounds    17 obligations, each proved for all sizes
  races     15 obligations, each proved for all sizes
  values    nothing to show
  schedule  2 steps, each proved to keep the meaning
  equality  tested by the checker at 12 points in the field, 151 elements
            - m = 3, n = 5
            - m = 5, n = 7
            - m = 1, n = 33
            - m = 2, n = 17
            - m = 7, n = 5
            - m = 0, n = 7
            - … 6 more
scaled: left out: `scaled` works for any rank: the rank of `x` is not known
"
    );
    assert_eq!(trusted.lines().count(), 5);
}

#[test]
fn obligations_are_listed_on_request() {
    let out = Desk::new().out(&["kernels.ten", "--fn", "smooth", "--schedule", "blocks", "--verbose"]);
    for line in [
        "  - x[i.i + 4*i.o + 1] is in bounds: i.i + 4*i.o + 1 in 0..n\n",
        "  schedule  1 step, proved to keep the meaning\n",
        "  - split(i, 4)\n",
    ] {
        assert!(out.contains(line), "{out}");
    }
}

#[test]
fn certificates_are_written_and_checked() {
    let desk = Desk::new();
    let out = desk.out(&["kernels.ten", "--fn", "largest", "--certificate", "largest.json"]);
    assert!(out.ends_with("largest.json\n"), "{out}");
    // The certificate says which function it is about.
    let out = desk.out(&["kernels.ten", "--check", "largest.json"]);
    assert!(out.starts_with("largest.json: holds\nlargest:\n  bounds    "), "{out}");
    let found = desk.json(&["kernels.ten", "--check", "largest.json"], 0);
    assert_eq!((&found["ok"], &found["functions"][0]["tested"]), (&json!(true), &json!(true)));
    assert_eq!(found["functions"][0]["function"], "largest");

    // Nothing that counts can be changed; a file that was refused is still there.
    let text = fs::read_to_string(desk.path("largest.json")).unwrap();
    for (from, to) in
        [("\"given\"", "\"reversed\""), ("\"certificate\": 1", "\"certificate\": 2"), ("size m", "size q")]
    {
        assert!(text.contains(from), "{from}");
        fs::write(desk.path("other.json"), text.replacen(from, to, 1)).unwrap();
        assert_eq!(desk.code(&["kernels.ten", "--check", "other.json"], 1), "E0706", "{from}");
    }
    assert_eq!(desk.code(&["kernels.ten", "--fn", "smooth", "--check", "largest.json"], 1), "E0706");
    let Ran { status, out, err } = desk.run(&["kernels.ten", "--fn", "smooth", "--check", "largest.json"]);
    assert_eq!((status, out.as_str()), (Some(1), ""));
    assert_eq!(
        err,
        "error[E0706]: the certificate does not hold: this is another program than the certificate's\n |\n \
         = note: in its field core\n"
    );
}

/// What a certificate says of steps is not believed: they are taken again.
#[test]
fn steps_are_taken_again() {
    let desk = Desk::new();
    let blocks = ["kernels.ten", "--fn", "smooth", "--schedule", "blocks"];
    let with = |more: &[&'static str]| [&blocks[..], more].concat();
    desk.out(&with(&["--certificate", "blocks.json"]));
    desk.out(&with(&["--check", "blocks.json", "--require-proof"]));
    let refused = |words: &[&str], field: &str| {
        let value = desk.json(words, 1);
        let error = &value["diagnostics"][0];
        assert_eq!((&error["code"], &error["notes"]), (&json!("E0706"), &json!([format!("in its field {field}")])));
    };
    refused(&["kernels.ten", "--fn", "smooth", "--check", "blocks.json"], "nest");
    refused(&["kernels.ten", "--fn", "smooth", "--schedule", "split(i, 8)", "--check", "blocks.json"], "nest");
    let certificate = Certificate::read(&fs::read_to_string(desk.path("blocks.json")).unwrap()).unwrap();
    let program =
        Module::from_file(desk.path("kernels.ten"), &Options { function: Some("smooth".into()), ..Options::default() });
    let core = program.unwrap().core().clone();
    // A forger who makes seed, tests and seal anew.
    let forged = |steps: Vec<Step>, field: &str| {
        let mut forged = Certificate { steps, ..certificate.clone() };
        forged.tests = tests(&core, &read_nest(&forged.nest).unwrap(), forged.seed()).unwrap();
        assert!(check(&forged.text(), &core).is_ok(), "the checker does not know steps");
        fs::write(desk.path("forged.json"), forged.text()).unwrap();
        refused(&with(&["--check", "forged.json"]), field);
    };
    forged(Vec::new(), "steps");
    forged(vec![Step { step: "lorem ipsum".into(), conditions: Vec::new() }], "steps[0].step");
    let condition = Condition { what: "all is well".into(), status: Status::Seen, proofs: Vec::new() };
    forged(vec![Step { step: "split(i, 4)".into(), conditions: vec![condition] }], "steps[0].conditions");
}

#[test]
fn what_cannot_be_tested_is_said_loudly() {
    let desk = Desk::new();
    fs::write(desk.path("large.ten"), "fn f(x: f64[1000, 1000]) -> f64[1000, 1000] { x + 1.0 }").unwrap();
    let out = desk.out(&["large.ten", "--certificate", "large.json"]);
    assert!(out.contains("  equality  NOT TESTED by the checker: no point is small enough\n"), "{out}");
    assert_eq!(desk.json(&["large.ten", "--check", "large.json"], 0)["functions"][0]["tested"], json!(false));
}

#[test]
fn a_certificate_is_about_one_function() {
    let desk = Desk::new();
    assert_eq!(desk.code(&["kernels.ten", "--certificate", "all.json"], 2), "E0410");
    assert!(!desk.path("all.json").exists());
}

#[test]
fn files_that_are_not_there_or_no_certificates() {
    let desk = Desk::new();
    assert_eq!(desk.code(&["gone.ten"], 2), "E0104");
    assert_eq!(desk.code(&["kernels.ten", "--check", "gone.json"], 3), "E0603");
    assert_eq!(desk.code(&["kernels.ten", "--check", "."], 3), "E0603");
    assert_eq!(desk.code(&["kernels.ten", "--fn", "smooth", "--certificate", "no/such/folder.json"], 3), "E0603");
    fs::write(desk.path("deep.json"), "[".repeat(100_000)).unwrap();
    fs::write(desk.path("empty.json"), "").unwrap();
    fs::write(desk.path("bytes.json"), [0xff, 0xfe]).unwrap();
    for (file, status, code) in [("deep.json", 1, "E0706"), ("empty.json", 1, "E0706"), ("bytes.json", 3, "E0603")] {
        assert_eq!(desk.code(&["kernels.ten", "--check", file], status), code, "{file}");
    }
    fs::write(desk.path("wrong.ten"), "fn f(x: f64[n]) -> f64[n] { { [i] -> x[i + 1] | i < n } }").unwrap();
    assert_eq!(desk.run(&["wrong.ten"]).status, Some(1));
}

#[test]
fn a_proof_can_be_required() {
    let desk = Desk::new();
    desk.out(&["kernels.ten", "--fn", "smooth", "--schedule", "blocks", "--require-proof"]);
}
