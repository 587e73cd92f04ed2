//! The contract of the command line: what is printed where, in which form, with which exit status.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use certen::Array;
use certen::road::runtime::{Element, read_npy, read_npz, write_npy};
use common::{CERTEN, Ran, command, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const ADD: &str = "alloc A : [n]\nalloc B : [n]\nalloc C : [n]\nC = add A B\n";
const SCALE: &str = "alloc A : [m, n]\nalloc s : []\nalloc C : [m, n]\nwhere n >= 2\nC = mul s A\n";
const TWO: &str = "alloc A : [n]\nalloc C : [n]\nalloc D : []\nC = add A A\nD = red+ 1 A\n";
const WRONG: &str = "alloc A : [n]\nA = B\nA = expa 1 2 A\n";

const DIVIDE: &str = "fn divide(a: f64[n], b: f64[n]) -> (q: f64[1, n]) { { [i, j] -> a[j] / (1 - b[j]) | i < 1 } }\n";

/// A directory with a few programs, in which commands run.
struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        let files = [("add", ADD), ("scale", SCALE), ("two", TWO), ("wrong", WRONG), ("empty", "")];
        files.iter().for_each(|(name, text)| fs::write(desk.path(format!("{name}.teil")), text).unwrap());
        desk
    }

    fn path(&self, name: impl AsRef<Path>) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn array<T: Element>(&self, name: &str, shape: &[usize], data: Vec<T>) {
        write_npy(self.path(name), &Array::from_vec(shape, data).unwrap()).unwrap();
    }

    fn command(&self, line: &str) -> Command {
        let mut command = command(CERTEN, self.0.path());
        command.args(line.split_whitespace());
        command
    }

    /// Runs `certen LINE`.
    fn run(&self, line: &str) -> Ran {
        run(&mut self.command(line))
    }

    /// What `certen LINE --json` prints, when it ends with this status and has nothing to say to people.
    fn json(&self, line: &str, status: i32) -> Value {
        let ran = self.run(&format!("{line} --json"));
        assert_eq!((ran.status, ran.err.as_str()), (Some(status), ""), "{line}: {}", ran.out);
        assert_eq!(ran.out.lines().count(), 1, "{line}: one value on one line");
        serde_json::from_str(&ran.out).unwrap()
    }

    /// The elements of the output C.
    fn data(&self, line: &str) -> Value {
        self.json(line, 0)["outputs"]["C"]["data"].clone()
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).filter(|name| !name.ends_with(".teil")).collect()
    }
}

#[test]
fn check_judges_every_file_and_the_worst_decides() {
    let desk = Desk::new();
    let Ran { status, out, err } = desk.run("check add.teil wrong.teil two.teil");
    assert_eq!(status, Some(1));
    let accepted = "add.teil: ok  add(A: f64[n], B: f64[n]) -> (C: f64[n])\n\
                    two.teil: ok  two(A: f64[n]) -> (C: f64[n], D: f64[])\n";
    assert_eq!(out, accepted);
    assert!(
        err.starts_with("error[E0201]: ") && err.contains("wrong.teil:2:5") && err.contains("error[E0209]"),
        "{err}"
    );
    let statuses = ["add.teil", "empty.teil", "wrong.teil", "wrong.teil gone.teil", "gone.teil add.teil"];
    assert_eq!(statuses.map(|files| desk.run(&format!("check {files}")).status), [0, 0, 1, 2, 2].map(Some));
}

#[test]
fn diagnostics_in_json_have_every_field() {
    let desk = Desk::new();
    let value = desk.json("check add.teil wrong.teil empty.teil gone.teil", 2);
    assert_eq!(value["ok"], json!(false));
    let list = value["diagnostics"].as_array().unwrap();
    let shown = |key: &str| list.iter().map(|d| d.get(key).unwrap().clone()).collect::<Value>();
    assert_eq!(shown("code"), json!(["E0201", "E0209", "W0301", "E0104"]));
    assert_eq!(shown("severity"), json!(["error", "error", "warning", "error"]));
    assert_eq!(shown("rule"), json!(["T-Var", "OK-Stmt", "OK-Empty", null]));
    assert_eq!(shown("file").as_array().unwrap()[..2], [json!("wrong.teil"), json!("wrong.teil")]);
    assert_eq!(shown("line").as_array().unwrap()[..2], [json!(2), json!(3)]);
    assert_eq!(shown("column").as_array().unwrap()[..2], [json!(5), json!(5)]);
    assert!(list.iter().all(|d| d["message"].as_str().is_some_and(|text| !text.is_empty())));
}

#[test]
fn every_command_fails_in_the_same_json() {
    let desk = Desk::new();
    let expected = desk.json("check wrong.teil", 1);
    for command in ["run", "emit", "explain"] {
        assert_eq!(desk.json(&format!("{command} wrong.teil"), 1), expected, "{command}");
    }
    assert_eq!(desk.json("check add.teil", 0), json!({"ok": true, "diagnostics": []}));
    assert_eq!(desk.json("explain-error E9999", 2)["diagnostics"][0]["code"], json!("E0407"));
    for line in ["run add.teil --in A=bad", "run add.teil --dim n=x", "run add.teil --no-such-option", "check"] {
        let value = desk.json(line, 2);
        assert_eq!((&value["ok"], &value["diagnostics"][0]["code"]), (&json!(false), &json!("E0407")), "{line}");
    }
    let twice = desk.json("run add.teil --in A=1 --in B=2 --dim n=2 --out C=x.npy --out all.npz", 2);
    assert_eq!(twice["diagnostics"][0]["code"], json!("E0407"));
}

/// A table of calls that are refused: what is given beside the inputs that are right, the code, and part of the message.
#[test]
fn calls_that_do_not_fit_are_refused_with_a_reason() {
    let desk = Desk::new();
    fs::write(desk.path("divide.ten"), DIVIDE).unwrap();
    desk.array("two.npy", &[2], vec![1.0, 2.0]);
    desk.array("three.npy", &[3], vec![1.0, 2.0, 3.0]);
    desk.array("matrix.npy", &[1, 2], vec![1.0, 2.0]);
    desk.array("column.npy", &[2, 1], vec![1.0, 2.0]);
    desk.array("single.npy", &[2], vec![1.0f32, 2.0]);
    desk.array("whole.npy", &[2], vec![1i64, 2]);
    for (line, code, message) in [
        ("add.teil --in A=two.npy", "E0401", "`B` : f64[n]"),
        ("add.teil --in A=two.npy --in B=1 --in X=1", "E0402", "`X`"),
        ("add.teil --in A=two.npy --in B=1 --dim k=2", "E0402", "`k`"),
        ("add.teil --in A=two.npy --in B=1 --out X=x.npy", "E0402", "`X`"),
        ("add.teil --in A=two.npy --in B=1 --at X[0]", "E0402", "`X`"),
        ("add.teil --in A=two.npy --in B=1 --at C[2]", "E0403", "C[2]"),
        ("add.teil --in A=two.npy --in B=1 --at C[0,0]", "E0403", "C[0, 0]"),
        ("add.teil --in A=two.npy --in B=1 --at C", "E0403", "C[]"),
        ("add.teil --in A=two.npy --in B=matrix.npy", "E0403", "`B` has 2 dimensions"),
        ("add.teil --in A=two.npy --in B=three.npy", "E0403", "n = 2 comes from dimension 1 of `A`"),
        ("add.teil --in A=two.npy --in B=1 --dim n=3", "E0403", "n = 3 comes from the call"),
        ("add.teil --in A=two.npy --in B=1 --dim n=2 --dim n=3", "E0407", "`n` is given twice"),
        ("add.teil --in A=two.npy --in B=1 --in A=2", "E0407", "`A` is given twice"),
        ("add.teil --in A=two.npy --in B=single.npy", "E0404", "f32"),
        ("add.teil --in A=two.npy --in B=whole.npy", "E0404", "i64"),
        ("add.teil --in A=two.npy --in B=0.5 --elem i64", "E0404", "`A`"),
        ("add.teil --in A=1 --in B=0.5 --dim n=2 --elem i64", "E0404", "0.5"),
        ("add.teil --in A=1 --in B=9223372036854775808 --dim n=2 --elem i64", "E0404", "9223372036854775808"),
        ("add.teil --in A=1 --in B=-9223372036854775809 --dim n=2 --elem i64", "E0404", "-9223372036854775809"),
        ("add.teil --in A=1 --in B=9223372036854775808.0 --dim n=2 --elem i64", "E0404", "9223372036854776000"),
        ("add.teil --in A=1 --in B=2147483648 --dim n=2 --elem i32", "E0404", "2147483648"),
        ("add.teil --in A=add.teil.npz:A --in B=1", "E0405", "add.teil.npz"),
        ("add.teil --in A=1 --in B=2", "E0406", "--dim n="),
        ("add.teil --in A=1 --in B=2 --dim n=0", "E0409", "n >= 1"),
        ("add.teil --in A=1 --in B=2 --dim n=-1", "E0409", "n >= 1"),
        ("scale.teil --in A=column.npy --in s=2", "E0409", "n >= 2"),
        ("add.teil --in A=1 --in B=2 --dim n=1000000000000000000", "E0408", "MiB"),
        ("add.teil --in A=1 --in B=2 --dim n=2 --backend native --domain field", "E0407", "--backend native"),
        ("add.teil --in A=1 --in B=2 --dim n=2 --out C=c.npy --domain rational", "E0407", "machine numbers"),
        ("add.teil --in A=inf --in B=2 --dim n=2 --domain rational", "E0503", "`A[0]` is inf"),
        ("divide.ten --in a=iota --in b=iota --dim n=2 --domain rational", "E0503", "`q[0,1]` has no value"),
        ("add.teil --in A=1 --in B=2 --dim n=2 --backend interp --fuel 1", "E0501", "steps"),
        ("add.teil --in A=1 --in B=2 --dim n=2 --out C=no/such/directory/c.npy", "E0603", "no/such/directory/c.npy"),
    ] {
        let status = if ["E0408", "E0603"].contains(&code) { 3 } else { 2 };
        let value = desk.json(&format!("run {line}"), status);
        let diagnostic = &value["diagnostics"][0];
        assert_eq!((&value["ok"], &diagnostic["code"]), (&json!(false), &json!(code)), "{line}: {value}");
        assert!(diagnostic.to_string().contains(message), "{line}: {diagnostic}");
    }
    let written = ["c.npy", "x.npy"].map(|name| desk.path(name).exists());
    assert_eq!(written, [false, false], "nothing is written by a call that is refused");
}

#[test]
fn arrays_travel_through_files() {
    let desk = Desk::new();
    desk.array("a.npy", &[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    desk.array("s.npy", &[], vec![0.5]);
    let written = desk.run("run scale.teil --in A=a.npy --in s=s.npy --out C=c.npy");
    assert_eq!((written.status, written.out.as_str()), (Some(0), "C : f64[2, 3] -> c.npy\n"), "{}", written.err);
    let c = read_npy(desk.path("c.npy")).unwrap();
    assert_eq!((c.shape(), c.as_slice()), (&[2, 3][..], Some(&[0.5, 1.0, 1.5, 2.0, 2.5, 3.0][..])));
    // A file's name without an output's stands for all of them; with `--out`, JSON has paths in place of elements.
    let value = desk.json("run two.teil --in A=iota --dim n=3 --out all.npz", 0);
    let outputs = json!({
        "C": {"type": "f64", "shape": [3], "path": "all.npz"},
        "D": {"type": "f64", "shape": [], "path": "all.npz"},
    });
    assert_eq!(value, json!({"ok": true, "diagnostics": [], "outputs": outputs}));
    let read = |key| read_npz(desk.path("all.npz"), key).unwrap();
    assert_eq!((read("C").as_slice(), read("D").as_slice()), (Some(&[0.0, 2.0, 4.0][..]), Some(&[3.0][..])));
    // What was written can be read again; the other outputs are shown as ever.
    let value = desk.json("run two.teil --in A=all.npz:C --out D=d.npy", 0);
    assert_eq!(value["outputs"]["C"]["data"], json!([0.0, 4.0, 8.0]));
    assert_eq!(value["outputs"]["D"], json!({"type": "f64", "shape": [], "path": "d.npy"}));
    assert_eq!(read_npy(desk.path("d.npy")).unwrap().as_slice(), Some(&[6.0][..]));
}

#[test]
fn numbers_in_json() {
    let desk = Desk::new();
    let add =
        |a: &str, b: &str, options: &str| desk.data(&format!("run add.teil --in A={a} --in B={b} --dim n=2 {options}"));
    assert_eq!(add("0.1", "0.2", "").to_string(), "[0.30000000000000004,0.30000000000000004]");
    assert_eq!(add("0.1", "0.2", "--elem f32").to_string(), "[0.3,0.3]");
    assert_eq!(add("1", "-3", "--elem i32").to_string(), "[-2,-2]");
    assert_eq!(add("1", "iota", "--elem i64").to_string(), "[1,2]");
    // Whole numbers are exact, and floats the nearest ones.
    let whole = |a: &str, b: &str, elem: &str| add(a, b, &format!("--elem {elem}"))[0].to_string();
    assert_eq!(whole("9007199254740993", "0", "i64"), "9007199254740993");
    assert_eq!(whole("9223372036854775807", "-0", "i64"), "9223372036854775807");
    assert_eq!(whole("-9223372036854775808", "0", "i64"), "-9223372036854775808");
    assert_eq!(whole("1e3", "-2e0", "i32"), "998");
    assert_eq!(whole("100000000000000000000", "-0", "f64"), "1e+20");
    assert_eq!(whole("-0", "-0", "f64"), "-0.0");
    for backend in ["native", "interp"] {
        let backend = format!("--backend {backend}");
        assert_eq!(add("inf", "iota", &backend), json!(["Infinity", "Infinity"]));
        assert_eq!(add("-inf", "iota", &backend), json!(["-Infinity", "-Infinity"]));
        assert_eq!(add("nan", "iota", &backend), json!(["NaN", "NaN"]));
    }
    assert_eq!(add("0.5", "iota", "--domain rational"), json!(["1/2", "3/2"]));
    assert_eq!(add("1", "iota", "--domain rational"), json!(["1", "2"]));
    // One half is the number that gives 1 when doubled modulo 2^61 - 1.
    assert_eq!(add("0.5", "0", "--domain field"), json!([(1i64 << 60).to_string(), (1i64 << 60).to_string()]));
    assert_eq!(desk.data("run add.teil --in A=1 --dim n=2 --domain undefined"), json!([null, null]));
    assert_eq!(add("1", "iota", "--domain undefined"), json!([1.0, 2.0]));
    // Text shows the same numbers.
    let shown = desk.run("run scale.teil --in A=iota --in s=0.5 --dim m=2 --dim n=2 --domain rational");
    assert_eq!(shown.out, "C : f64[2, 2], as exact rationals\n[[0, 1/2],\n [1, 3/2]]\n");
}

#[test]
fn one_element_by_the_evaluator() {
    let desk = Desk::new();
    let line = "run scale.teil --in A=iota --in s=0.5 --dim m=1000 --dim n=1000 --at C[2,1]";
    assert_eq!(desk.run(line).out, "1000.5\n");
    assert_eq!(desk.json(line, 0), json!({"ok": true, "element": 1000.5}));
    for place in ["D", "D[]", "D[ ]"] {
        let mut command = desk.command("run two.teil --in A=iota --dim n=4 --at");
        assert_eq!(run(command.arg(place)).out, "6.0\n", "{place}");
    }
}

#[test]
fn timing_is_shown_when_asked_for() {
    let desk = Desk::new();
    let ran = desk.run("run two.teil --in A=random:1 --dim n=100 --time");
    let last = ran.out.lines().last().unwrap();
    assert!(last.starts_with("time: ") && last.contains("best of") && last.contains("Gop/s"), "{}{}", ran.out, ran.err);
    let time = desk.json("run two.teil --in A=random:1 --dim n=100 --time --backend interp", 0)["time"].clone();
    assert!(time["best_seconds"].as_f64().unwrap() > 0.0, "{time}");
    assert_eq!((&time["runs"], &time["compile_seconds"], &time["operations"]), (&json!(1), &Value::Null, &json!(200)));
    assert!(!desk.run("run two.teil --in A=1 --dim n=3").out.contains("time:"));
}

#[test]
fn without_a_compiler_the_evaluator_runs() {
    let desk = Desk::new();
    let line = "run two.teil --in A=iota --dim n=3";
    let without = |line: &str| run(desk.command(line).env("CC", "/nonexistent/cc"));
    let Ran { status, out, err } = without(line);
    assert_eq!((status, &out), (Some(0), &desk.run(line).out));
    assert!(err.starts_with("warning[W0304]: the reference evaluator runs instead of native code: "), "{err}");
    assert!(err.contains("/nonexistent/cc"), "{err}");
    let Ran { status, out, err } = without(&format!("{line} --backend native"));
    assert_eq!((status, out.as_str()), (Some(3), ""));
    assert!(err.starts_with("error[E0601]: ") && err.contains("/nonexistent/cc"), "{err}");
    let asked = without(&format!("{line} --json"));
    let value: Value = serde_json::from_str(&asked.out).unwrap();
    assert_eq!((asked.status, &value["outputs"]["D"]["data"]), (Some(0), &json!([3.0])));
    assert_eq!((value["diagnostics"][0]["code"].as_str(), asked.err.as_str()), (Some("W0304"), ""));
}

#[test]
fn explain_shows_the_stages_that_are_wanted() {
    let desk = Desk::new();
    let sections = |line: &str| {
        let out = desk.run(line).out;
        out.lines()
            .filter_map(|line| Some(line.strip_prefix("== ")?.strip_suffix(" ==")?.to_owned()))
            .collect::<Vec<_>>()
    };
    let stages =
        ["typed", "analysis", "core", "laws", "optimised", "schedule", "steps", "loops", "c", "multiplications"];
    assert_eq!(sections("explain two.teil"), stages);
    assert_eq!(sections("explain two.teil --only core,typed"), ["typed", "core"]);
    let value = desk.json("explain scale.teil --only count --dim m=3 --dim n=4", 0);
    let count = value["stages"]["multiplications"].as_str().unwrap();
    assert!(count.starts_with("m*n = 12 as written\n"), "{count}");
    assert_eq!(value["stages"].as_object().unwrap().len(), 1);
}

/// Contractions are lifted, unless every rounding has to be as written.
#[test]
fn strict_floats_are_compiled_as_written() {
    let desk = Desk::new();
    let program = "alloc input A : [n, n]\nalloc input c : []\nalloc output y : [n]\ny = red+ 2 (mul c A)\n";
    fs::write(desk.path("lifted.teil"), program).unwrap();
    let counts = |options: &str| {
        let value = desk.json(&format!("explain lifted.teil --only count --dim n=5 {options}"), 0);
        let text = value["stages"]["multiplications"].as_str().unwrap().to_owned();
        text.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(counts(""), ["n*n = 25 as written", "n = 5 optimised"]);
    assert_eq!(counts("--fp strict"), ["n*n = 25 as written", "nothing to optimise"]);
    assert_eq!(counts("--fp strict --elem i64"), counts(""));
}

#[test]
fn prove_answers_with_a_status() {
    let desk = Desk::new();
    let asked = |goal: &str, facts: &str| run(desk.command("prove").args([goal, "--where", facts]));
    for (goal, facts, status, says) in [
        ("i < n", "0 <= i < n", 0, "yes\n"),
        ("i >= 1, i < n", "0 <= i < n", 1, "no, for example i = 0, n = 1\n"),
        ("false", "n >= 1", 1, "no\n"),
        ("x*x*x + y*y*y != 33*z", "x >= 9, y >= x", 1, ""),
        ("-j <= -1", "i*i == 2", 1, "cannot tell\n"),
    ] {
        let ran = asked(goal, facts);
        assert_eq!((ran.status, ran.err.as_str()), (Some(status), ""), "{goal}");
        assert!(says.is_empty() || ran.out == says, "{goal}: {}", ran.out);
    }
    for (goal, facts, code) in
        [("i <", "true", "E0103"), ("i > 0 i", "true", "E0103"), ("true", "n > 2, n < 3", "E0210")]
    {
        let ran = asked(goal, facts);
        assert_eq!((ran.status, ran.out.as_str()), (Some(1), ""), "{goal}");
        assert!(ran.err.contains(code), "{goal}: {}", ran.err);
    }
    assert_eq!(
        desk.json("prove n>=3 --where n>=2", 1),
        json!({"ok": true, "answer": "no", "counterexample": {"n": 2}})
    );
    let witness = desk.json("prove n>=1 --where n>=2 --witness", 0)["witness"].clone();
    assert!(witness.as_str().unwrap().contains("impossible"), "{witness}");
}

#[test]
fn explain_says_what_the_analyses_found() {
    let desk = Desk::new();
    fs::write(desk.path("t.model"), "var input output x : [3 3]\nvar y : [3 3]\ny = x\nx = (x + x) ^ [1 2]\n").unwrap();
    let value = desk.json("explain t.model --only analysis", 0);
    let expected = json!([
        {"line": 3, "target": "y", "reads": {"x": "input"}, "live": false, "in_place": true,
         "why": "`y` is not read", "shared": []},
        {"line": 4, "target": "x", "reads": {"x": "input"}, "live": true, "in_place": false,
         "why": "`x[i2, i1]` is read while `x[i1, i2]` is written (4:6)", "shared": []},
    ]);
    assert_eq!(value["stages"]["analysis"], expected);
    let many = "var input output x : [3 3]\n".to_owned() + &"x = x ^ [1 2]\n".repeat(1000);
    fs::write(desk.path("many.model"), &many).unwrap();
    let text = desk.run("explain many.model --only analysis").out;
    assert!(text.ends_with("… and 800 more\n") && text.lines().count() < 700, "{text}");
    // A program in Core has no statements to speak of.
    fs::write(desk.path("c.core"), "core c\ninput x : f64[2]\noutput y = x\n").unwrap();
    assert_eq!(desk.json("explain c.core --only analysis", 0)["stages"], json!({}));
}

#[test]
fn explain_error_knows_codes_in_either_case() {
    let desk = Desk::new();
    let page = desk.run("explain-error E0208");
    assert!(page.status == Some(0) && page.out.starts_with("## E0208: "), "{page:?}");
    assert_eq!(desk.run("explain-error e0208").out, page.out);
    assert_eq!(desk.json("explain-error E0208", 0)["page"], json!(page.out));
    let list = desk.run("explain-error").out;
    assert!(list.lines().count() > 30 && list.contains("\nE0208  "), "{list}");
    let unknown = desk.run("explain-error E9999");
    assert_eq!((unknown.status, unknown.out.as_str()), (Some(2), ""));
    assert!(unknown.err.contains("`E9999`") && unknown.err.contains("certen explain-error"), "{}", unknown.err);
}

#[test]
fn emitted_files_appear_whole_or_not_at_all() {
    let desk = Desk::new();
    fs::create_dir(desk.path("there")).unwrap();
    let ran = desk.run("emit scale.teil -o there");
    assert_eq!((ran.status, ran.out.as_str()), (Some(0), "there/scale.c\nthere/scale.h\n"), "{}", ran.err);
    assert_eq!(fs::read_to_string(desk.path("there/scale.c")).unwrap(), desk.run("emit scale.teil").out);
    assert_eq!(fs::read_to_string(desk.path("there/scale.h")).unwrap(), desk.run("emit scale.teil --to header").out);
    assert_eq!(fs::read_dir(desk.path("there")).unwrap().count(), 2, "nothing else is left behind");
    let ran = desk.run("emit scale.teil -o gone");
    assert_eq!((ran.status, ran.out.as_str()), (Some(3), ""));
    assert!(ran.err.starts_with("error[E0603]: cannot write gone/scale.c: "), "{}", ran.err);
    assert_eq!(desk.names(), ["there"]);
}

#[test]
fn every_form_can_be_emitted() {
    let desk = Desk::new();
    for (form, file, start) in [
        ("c", "two.c", "/*"),
        ("header", "two.h", "/*"),
        ("loops", "two.loops", "loops two\n"),
        ("core", "two.core", "core two\n"),
        ("teil", "two.teil", "alloc"),
        ("core-teil", "two.teil", "mode core\n"),
        ("three-address", "two.teil", "alloc"),
    ] {
        let text = desk.run(&format!("emit two.teil --to {form}")).out;
        assert!(text.starts_with(start) && text.ends_with('\n'), "{form}: {text}");
        assert_eq!(desk.json(&format!("emit two.teil --to {form}"), 0)["files"], json!({ file: text }), "{form}");
        // What a dialect can read back is accepted.
        if [".teil", ".core"].iter().any(|ending| file.ends_with(ending)) {
            fs::write(desk.path(format!("again.{file}")), text).unwrap();
            assert_eq!(desk.run(&format!("check again.{file}")).status, Some(0), "{form}");
        }
    }
    // Core has no TeIL form.
    assert_eq!(desk.json("emit again.two.core --to three-address", 2)["diagnostics"][0]["code"], json!("E0407"));
}

#[test]
fn padding_is_reported() {
    let desk = Desk::new();
    fs::write(desk.path("outer.model"), "var a : [3]\nvar b : [2]\nvar c : [3 2]\nc = a # b\n").unwrap();
    let zero = desk.json("run outer.model --in a=iota --in b=1 --pad 4", 0);
    assert_eq!(zero["padding"], json!({"vector_length": 4, "zero": true}));
    assert_eq!(zero["outputs"]["c"], json!({"type": "f64", "shape": [3, 2], "data": [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]}));
    // 0 * undefined is undefined: Thm. 2 does not hold.
    let line = "run outer.model --in a=iota --pad 4 --domain undefined";
    let spilt = desk.json(line, 0);
    assert_eq!(spilt["padding"], json!({"vector_length": 4, "zero": false}));
    let warning = &spilt["diagnostics"][0];
    assert_eq!((&warning["code"], &warning["rule"]), (&json!("W0306"), &json!("Thm. 2")));
    assert_eq!((&warning["line"], &warning["column"]), (&json!(4), &json!(1)));
    let ran = desk.run(line);
    assert!(ran.out.ends_with("padding to multiples of 4: not zero after a statement\n"), "{ran:?}");
    assert!(ran.err.starts_with("warning[W0306]: the padding of `c` is not zero after this statement"), "{ran:?}");
    for line in ["run outer.model --in a=1 --in b=1 --pad 0", "run add.teil --in A=1 --in B=1 --dim n=2 --pad 4"] {
        assert_eq!(desk.json(line, 2)["diagnostics"][0]["code"], json!("E0407"), "{line}");
    }
}

#[test]
fn native_code_pads_its_buffers_on_request() {
    let desk = Desk::new();
    let text = "alloc input A : [n]\nalloc B : [n]\nalloc output C : []\nB = mul A A\nC = redmax 1 (add B B)\n";
    fs::write(desk.path("rows.teil"), text).unwrap();
    // An automatic schedule computes B where it is read.
    let loops = desk.run("emit rows.teil --to loops --schedule none --pad 4").out;
    assert!(loops.contains("alloc B : f64[4*ceil_div(n, 4)]\nparallel for pad1 in n..4*ceil_div(n, 4) {"), "{loops}");
    let dense = desk.run("emit rows.teil --to loops --schedule none").out;
    assert!(dense.contains("alloc B : f64[n]\nnest B"), "{dense}");
    let run = "run rows.teil --in A=iota --dim n=5 --backend native";
    assert_eq!(desk.json(&format!("{run} --pad 4"), 0)["outputs"], desk.json(run, 0)["outputs"]);
    for line in [format!("{run} --pad 0"), "emit rows.teil --to loops --pad -8".to_owned()] {
        assert_eq!(desk.json(&line, 2)["diagnostics"][0]["code"], json!("E0407"), "{line}");
    }
}

#[test]
fn either_notation_is_emitted_where_it_can_be() {
    let desk = Desk::new();
    fs::write(desk.path("both.model"), "var A : [2 n]\nvar B : [n 2]\nB = (A + A) ^ [1 2]\n").unwrap();
    let teil = desk.run("emit both.model --to teil").out;
    assert_eq!(teil, "alloc A : [2, n]\nalloc B : [n, 2]\nB = transp 1 2 (add A A)\n");
    fs::write(desk.path("back.teil"), &teil).unwrap();
    let model = desk.run("emit back.teil --to model").out;
    assert_eq!(model, "var A : [2 n]\nvar B : [n 2]\nB = (A + A) ^ [1 2]\n");
    assert!(desk.run("emit both.model --to core-teil").out.starts_with("mode core\n"));
    fs::write(desk.path("add.model"), "var add : [2]\nvar B : [2]\nB = add + add\n").unwrap();
    for line in ["emit two.teil --to model", "emit add.model --to teil", "emit add.model --to core-teil"] {
        let error = &desk.json(line, 2)["diagnostics"][0];
        assert_eq!(error["code"], json!("E0407"), "{line}");
        assert!(error["line"].is_u64(), "{line}: {error}");
    }
}

#[test]
fn emitted_c_compiles_without_a_warning() {
    let desk = Desk::new();
    for program in ["add", "scale", "two", "empty"] {
        assert_eq!(desk.run(&format!("emit {program}.teil -o .")).status, Some(0), "{program}");
        for file in [format!("{program}.c"), format!("{program}.h")] {
            let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
            let cc = run(command("cc", desk.0.path()).args(flags).arg(&file));
            assert_eq!((cc.status, cc.err.as_str()), (Some(0), ""), "{file}");
        }
    }
}

#[test]
fn piped_text_has_no_colours() {
    let desk = Desk::new();
    for line in ["check wrong.teil", "check empty.teil", "run add.teil", "explain-error E9999", "--help", "frobnicate"]
    {
        let ran = run(desk.command(line).env("TERM", "xterm-256color").env_remove("NO_COLOR"));
        assert!(!ran.out.contains('\x1b') && !ran.err.contains('\x1b'), "{line}: {ran:?}");
        assert!(!(ran.out + &ran.err).is_empty(), "{line}");
    }
}

#[test]
fn a_closed_pipe_ends_the_output_not_the_command() {
    let desk = Desk::new();
    for (line, status) in [("explain two.teil", 0), ("explain-error", 0), ("check wrong.teil --json", 1), ("--help", 0)]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = run(desk.command(line).stdout(writer).stderr(Stdio::piped()));
        assert_eq!((ran.status, ran.err.as_str()), (Some(status), ""), "{line}");
    }
}

#[test]
fn help_and_version() {
    let desk = Desk::new();
    assert_eq!(desk.run("--version").out, format!("certen {}\n", env!("CARGO_PKG_VERSION")));
    let help = desk.run("--help");
    assert_eq!((help.status, help.err.as_str()), (Some(0), ""));
    for command in ["check", "run", "emit", "explain", "explain-error"] {
        assert!(help.out.contains(&format!("\n  {command} ")), "{command}");
        let help = desk.run(&format!("{command} --help"));
        assert!(help.status == Some(0) && help.out.contains("Usage: certen"), "{command}: {help:?}");
    }
}

#[test]
fn calls_that_are_not_understood_end_with_2() {
    let desk = Desk::new();
    for line in [
        "",
        "frobnicate",
        "check",
        "run",
        "check add.teil --frobnicate",
        "check add.teil --elem u8",
        "run add.teil --in A",
        "run add.teil --in A=a.txt",
        "run add.teil --in A=random:x",
        "run add.teil --dim n=1.5",
        "run add.teil --dim n=many",
        "run add.teil --out C=c.txt",
        "run add.teil --at C[x]",
        "run add.teil --at C[0",
        "run add.teil --at C[0,,2]",
        "run add.teil --at C[0,]",
        "run add.teil --at [0]",
        "run add.teil --at C-D",
        "run add.teil --at C[0] --out C=c.npy",
        "run add.teil --domain complex",
        "emit add.teil --to rust",
        "explain add.teil --only nothing",
    ] {
        let Ran { status, out, err } = desk.run(line);
        assert_eq!((status, out.as_str()), (Some(2), ""), "{line}");
        assert!(err.contains("Usage") || err.contains("--help"), "{line}: {err}");
    }
}

/// The simplified program is a program: emitted again, nothing is left to simplify.
#[test]
fn a_simplified_program_is_emitted() {
    let desk = Desk::new();
    let program = "alloc a : [n]\nalloc b : [n]\nb = red+ 2 (expa 2 7 (proj 1 1 (expa 1 3 a)))\n";
    fs::write(desk.path("copies.teil"), program).unwrap();
    let emitted = |line: &str| desk.json(line, 0)["files"]["copies.teil"].as_str().unwrap().to_owned();
    let simpler = emitted("emit copies.teil --to simplified");
    assert_eq!(simpler, "alloc a : [n]\nalloc b : [n]\nb = 7 * a\n");
    let strict = emitted("emit copies.teil --to simplified --fp strict");
    assert_eq!(strict, "alloc a : [n]\nalloc b : [n]\nb = red+ 2 (expa 2 7 a)\n");
    fs::write(desk.path("copies.teil"), &simpler).unwrap();
    assert_eq!(emitted("emit copies.teil --to simplified"), simpler);
}
