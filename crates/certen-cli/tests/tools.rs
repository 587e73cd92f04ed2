//! The tools of the `.ten` language: eval, repl, test, fmt, trace, and the choice of a function.

mod common;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use certen::Array;
use certen::road::runtime::write_npy;
use common::{CERTEN, Ran, command, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const STENCILS: &str = "\
const W = [1.0, 2.0, 1.0];

// Three neighbours, weighted.
//? blur([0.0, 4.0, 0.0]) == [2]
//? blur([1.0, 2.0]) : f64[0]
fn blur(x: f64[n]) -> f64[n-2] where n >= 2 {
    { [i] -> (W[0]*x[i] + W[1]*x[i+1] + W[2]*x[i+2]) / 4.0 }
}
";

const MAIN: &str = "\
import \"stencils.ten\";

fn twice(x: f64[n]) -> f64[n-4] where n >= 4 {
    let once = blur(x);
    blur(once)
}

fn product(a: f64[m, k], b: f64[k, n]) -> f64[m, n] {
    { [i, j] -> sum({ [l] -> a[i, l] * b[l, j] }) }
}

fn scaled(x: num[s...], k: size) -> num[s...] {
    x * k
}
";

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        desk.write("stencils.ten", STENCILS);
        desk.write("main.ten", MAIN);
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, words: &[&str]) -> Ran {
        run(command(CERTEN, self.0.path()).args(words))
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

    /// The code of the first error.
    fn code(&self, words: &[&str], status: i32) -> String {
        self.json(words, status)["diagnostics"][0]["code"].as_str().unwrap().to_owned()
    }

    /// What a conversation comes to.
    fn repl(&self, lines: &str) -> Ran {
        let mut command = command(CERTEN, self.0.path());
        command.arg("repl").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

#[test]
fn expressions_are_evaluated() {
    let desk = Desk::new();
    assert_eq!(desk.out(&["eval", "sum([1, 2, 3])"]), "result : i64[]\n6\n");
    assert_eq!(desk.out(&["eval", "-2.5"]), "result : f64[]\n-2.5\n");
    assert_eq!(
        desk.out(&["eval", "let a = [1.0, 2.0]; a / 3", "--domain", "rational"]),
        "result : f64[2], as exact rationals\n[1/3, 2/3]\n"
    );
    let value = desk.json(&["eval", "{ [i, j] -> i + 10 * j | i < 2, j < 3 }"], 0);
    let expected = json!({"type": "i64", "shape": [2, 3], "data": [0, 10, 20, 1, 11, 21]});
    assert_eq!(value, json!({"ok": true, "diagnostics": [], "outputs": {"result": expected}}));
    write_npy(desk.path("x.npy"), &Array::from_vec(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()).unwrap();
    let value = desk.json(&["eval", "s * x[k]", "--in", "x=x.npy", "--in", "s=0.5", "--dim", "k=1"], 0);
    assert_eq!(value["outputs"]["result"]["data"], json!([2.0, 2.5, 3.0]));
}

#[test]
fn expressions_that_are_wrong_say_where() {
    let desk = Desk::new();
    let value = desk.json(&["eval", "1 + nothing"], 1);
    let error = &value["diagnostics"][0];
    assert_eq!((&value["ok"], &error["line"], &error["column"]), (&json!(false), &json!(1), &json!(5)));
    assert_eq!(desk.run(&["eval", "[1, 2][2]"]).status, Some(1));
    for text in ["", "let a = 1;", "1 +", "(", "fn f() { 1 }"] {
        assert_eq!(desk.run(&["eval", text]).status, Some(1), "{text}");
    }
    assert_eq!(desk.code(&["eval", "x", "--in", "x=iota"], 2), "E0407");
    assert_eq!(desk.code(&["eval", "x", "--in", "x=gone.npy"], 2), "E0405");
    assert_eq!(desk.code(&["eval", "sum({ [i] -> i | i < 1000000 })", "--fuel", "1000"], 2), "E0501");
}

#[test]
fn a_file_is_checked_without_a_function_to_run() {
    let desk = Desk::new();
    let out = desk.out(&["check", "main.ten", "stencils.ten"]);
    assert!(out.starts_with("main.ten: ok\n  fn twice(x: f64[n]) -> f64[n-4] where n >= 4\n"), "{out}");
    assert!(out.ends_with("stencils.ten: ok  fn blur(x: f64[n]) -> f64[n-2] where n >= 2\n"), "{out}");
    for command in ["run", "emit", "explain"] {
        assert_eq!(desk.code(&[command, "main.ten"], 2), "E0410", "{command}");
        assert_eq!(desk.code(&[command, "main.ten", "--fn", "gone"], 2), "E0402", "{command}");
    }
    desk.write("wrong.ten", "import \"gone.ten\";\nfn f(x: f64[n]) { x }\n");
    assert_eq!(desk.code(&["check", "wrong.ten"], 1), "E0106");
    desk.write("cycle.ten", "fn f(x: f64) { g(x) }\nfn g(x: f64) { f(x) }\n");
    assert_eq!(desk.code(&["check", "cycle.ten"], 1), "E0217");
}

#[test]
fn a_function_is_chosen_and_its_ranks_are_known() {
    let desk = Desk::new();
    let twice = ["run", "main.ten", "--fn", "twice", "--in", "x=iota", "--dim", "n=7", "--backend", "interp"];
    assert_eq!(desk.json(&twice, 0)["outputs"]["result"]["data"], json!([2.0, 3.0, 4.0]));
    let scaled = ["run", "main.ten", "--fn", "scaled", "--dim", "k=-2", "--backend", "interp"];
    assert_eq!(desk.code(&[&scaled[..], &["--in", "x=iota"]].concat(), 1), "E0234");
    let ranked = [&scaled[..], &["--in", "x=2", "--rank", "x=0", "--elem", "i64"]].concat();
    assert_eq!(desk.json(&ranked, 0)["outputs"]["result"], json!({"type": "i64", "shape": [], "data": [-4]}));
    write_npy(desk.path("x.npy"), &Array::from_vec(&[1, 2], vec![1.5f32, 2.0]).unwrap()).unwrap();
    let value = desk.json(&[&scaled[..], &["--in", "x=x.npy"]].concat(), 0);
    assert_eq!(value["outputs"]["result"], json!({"type": "f32", "shape": [1, 2], "data": [-3.0, -4.0]}));
    // An array of another rank than a signature states is the call's mistake.
    let wrong = ["run", "main.ten", "--fn", "twice", "--in", "x=x.npy"];
    assert_eq!(desk.code(&wrong, 2), "E0403");
}

#[test]
fn explain_shows_the_passes() {
    let desk = Desk::new();
    let value = desk.json(&["explain", "main.ten", "--fn", "twice"], 0);
    let stages: Vec<&str> = value["stages"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(stages[..4], ["written", "bounds", "dots", "with-loops"]);
    assert!(["core", "optimised", "loops", "c"].iter().all(|stage| stages.contains(stage)), "{stages:?}");
    assert!(value["stages"]["with-loops"].as_str().unwrap().contains("genarray"));
    let only = desk.out(&["explain", "main.ten", "--fn", "twice", "--only", "bounds"]);
    assert!(only.starts_with("== bounds ==\n") && !only.contains("with {"), "{only}");
    // Each stage is a program that means the same.
    for stage in ["written", "bounds", "dots", "with-loops"] {
        let text = value["stages"][stage].as_str().unwrap();
        desk.write("stage.ten", text);
        let line = ["run", "stage.ten", "--fn", "twice", "--in", "x=iota", "--dim", "n=7", "--backend", "interp"];
        assert_eq!(desk.json(&line, 0)["outputs"]["result"]["data"], json!([2.0, 3.0, 4.0]), "{stage}:\n{text}");
    }
}

#[test]
fn claims_hold_or_not() {
    let desk = Desk::new();
    assert_eq!(desk.out(&["test", "stencils.ten"]), "stencils.ten: 2 passed\n");
    desk.write(
        "claims.ten",
        "import \"stencils.ten\";\n\
         //? blur([0.0, 4.0, 0.0]) == [3]\n\
         //? 0.1 + 0.2 == 0.3\n\
         //? 0.1 + 0.2 ~= 0.3\n\
         \u{20}   //? [1, 2][2] : E0207\n\
         //? [1, 2][1] : E0207\n\
         //? [1.0, 2.0] : [2]\n\
         //? [1.0, 2.0] : i64[2]\n\
         //? 1 < 2 && 2 < 3\n\
         //? [1.0, 2.0] < [2.0, 1.0]\n\
         //? if 1 == 2 { 3 } else { 4 } == 4\n\
         //? f32(0.1) == 0.1\n\
         //? 1 +\n\
         // ? no claim\n",
    );
    let value = desk.json(&["test", "claims.ten"], 1);
    let failed = |test: &&Value| test["passed"] == json!(false);
    let lines: Vec<u64> =
        value["tests"].as_array().unwrap().iter().filter(failed).map(|test| test["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [2, 3, 6, 8, 10, 13]);
    assert_eq!((&value["passed"], &value["failed"], &value["ok"]), (&json!(6), &json!(6), &json!(false)));
    let first = &value["tests"][0];
    assert_eq!((&first["left"]["data"], &first["right"]["data"]), (&json!([2.0]), &json!([3])));
    let Ran { status, out, err } = desk.run(&["test", "claims.ten"]);
    assert_eq!((status, err.as_str()), (Some(1), ""));
    assert!(out.starts_with("claims.ten:2: failed: blur([0.0, 4.0, 0.0]) == [3]\n  left:  [2.0] : f64[1]\n"), "{out}");
    // A message about a claim points at it.
    assert!(out.contains("claims.ten:13:8") && out.ends_with("claims.ten: 6 failed, 6 passed\n"), "{out}");
}

#[test]
fn claims_of_a_directory_are_tested() {
    let desk = Desk::new();
    fs::create_dir(desk.path("inner")).unwrap();
    desk.write("inner/one.ten", "//? 1 == 1\n");
    desk.write("inner/two.ten", "fn wrong(");
    let out = desk.out(&["test", "."]);
    assert_eq!(out, "./inner/one.ten: 1 passed\n./stencils.ten: 2 passed\n2 files, 0 failed, 3 passed\n");
    assert_eq!(desk.run(&["test", "inner/two.ten"]).status, Some(1));
    assert_eq!(desk.code(&["test", "gone.ten"], 2), "E0104");
}

#[test]
fn a_conversation_keeps_what_is_accepted() {
    let desk = Desk::new();
    let said = "let v = [1, 2, 3]\n\
                fn square(x: num[s...]) {\n\
                \u{20}   x * x\n\
                }\n\
                square(v)\n\
                let v = nothing\n\
                v[0]\n\
                :type square([1.5])\n\
                fn square(x: num[s...]) { x + x }\n\
                square(v)\n\
                :load stencils.ten\n\
                blur([0.0, 4.0, 0.0])\n\
                :core 1\n\
                :quit\n\
                1\n";
    let Ran { status, out, err } = desk.repl(said);
    assert_eq!(status, Some(1), "one line was refused");
    assert!(err.contains("nothing") && err.matches("error").count() == 1, "{err}");
    let expected =
        "v : i64[3]\nsquare\n[1, 4, 9] : i64[3]\n1 : i64\nf64[1]\nsquare\n[2, 4, 6] : i64[3]\n[2.0] : f64[1]\n";
    assert!(out.starts_with(expected), "{out}");
    assert!(out[expected.len()..].starts_with("core "), "{out}");
}

#[test]
fn a_conversation_bears_everything() {
    let desk = Desk::new();
    let mut said = "let (\n\n:nothing\n)]}\n\u{1}\nlet x =\n\"\n:type\n:load gone.ten\n\n  \n".to_owned();
    said += &format!("{}1\n", "(".repeat(5000));
    let Ran { status, .. } = desk.repl(&said);
    assert_eq!(status, Some(2));
    let Ran { status, out, err } = desk.repl("{ [i] ->\n i\n | i < 3 }\nlet a = 1 // one\na");
    assert_eq!((status, out.as_str(), err.as_str()), (Some(0), "[0, 1, 2] : i64[3]\na : i64\n1 : i64\n", ""));
}

#[test]
fn formatting_changes_files_only_if_it_has_to() {
    let desk = Desk::new();
    desk.write("ugly.ten", "fn f( x:f64[n] ){x+1.0}  // kept\n");
    assert_eq!(desk.run(&["fmt", "--check", "ugly.ten"]).status, Some(1));
    let shown = desk.out(&["fmt", "--stdout", "ugly.ten"]);
    assert!(shown.contains("// kept"), "{shown}");
    assert_eq!(desk.read("ugly.ten"), "fn f( x:f64[n] ){x+1.0}  // kept\n");
    assert_eq!(desk.out(&["fmt", "ugly.ten"]), "ugly.ten: formatted\n");
    assert_eq!(desk.read("ugly.ten"), shown);
    let before = fs::metadata(desk.path("ugly.ten")).unwrap().modified().unwrap();
    assert_eq!(desk.json(&["fmt", "ugly.ten"], 0), json!({"ok": true, "diagnostics": [], "changed": []}));
    assert_eq!(fs::metadata(desk.path("ugly.ten")).unwrap().modified().unwrap(), before);
    desk.write("wrong.ten", "fn f( {");
    assert_eq!(desk.code(&["fmt", "wrong.ten"], 1), "E0103");
    assert_eq!(desk.read("wrong.ten"), "fn f( {");
    desk.write("other.teil", "alloc A : [4]\n");
    assert_eq!(desk.code(&["fmt", "other.teil"], 2), "E0407");
}

#[test]
fn a_trace_tells_how_an_element_is_computed() {
    let desk = Desk::new();
    let product = [
        "trace",
        "main.ten",
        "--fn",
        "product",
        "--in",
        "a=iota",
        "--in",
        "b=iota",
        "--dim",
        "m=2",
        "--dim",
        "k=3",
        "--dim",
        "n=5",
        "--at",
        "result[1,2]",
    ];
    let out = desk.out(&[&product[..], &["--terms", "2"]].concat());
    let lines: Vec<&str> = out.lines().map(str::trim_start).collect();
    assert_eq!(lines[0], "result[1, 2] = 94.0");
    assert!(lines[1].starts_with("sum over ") && lines[1].ends_with(" in 0..3 = 94.0"), "{out}");
    assert_eq!(lines[3..5], ["a[1, 0] = 3.0", "b[0, 2] = 2.0"]);
    assert_eq!(lines.last(), Some(&"… 1 more"));
    let value = desk.json(&product, 0);
    assert_eq!(value["trace"]["value"], json!(94.0));
    assert_eq!(value["trace"]["parts"][0]["parts"].as_array().unwrap().len(), 3);
    desk.write("chain.teil", "alloc input A : [3]\nalloc B : [3]\nalloc output C : [3]\nB = add A A\nC = mul B B\n");
    let chain = ["trace", "chain.teil", "--in", "A=iota", "--at", "C[2]"];
    assert_eq!(desk.out(&chain), "C[2] = 16.0\n  B[2] = 4.0\n    A[2] = 2.0\n    A[2] = 2.0\n  B[2] = 4.0\n");
    assert_eq!(desk.out(&[&chain[..], &["--depth", "1"]].concat()), "C[2] = 16.0\n  B[2] = 4.0\n  B[2] = 4.0\n");
    assert_eq!(desk.code(&["trace", "chain.teil", "--in", "A=iota", "--at", "C[3]"], 2), "E0403");
    assert_eq!(desk.code(&["trace", "chain.teil", "--in", "A=iota", "--at", "D[0]"], 2), "E0402");
}

/// What the prelude, its tables and the examples claim is true.
#[test]
fn the_claims_of_the_repository_hold() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = ["crates/certen-lang/prelude/prelude.ten", "tests/prelude", "examples"];
    let ran = run(command(CERTEN, &root).arg("test").args(places));
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let passed: usize = ran.out.trim_end().rsplit(' ').nth(1).unwrap().parse().unwrap();
    assert!(passed > 300, "{}", ran.out);
}
