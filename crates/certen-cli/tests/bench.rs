//! `certen bench` and `certen explain --diff`: variants beside each other. What is measured is never compared.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::{CERTEN, Ran, command, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const SUMS: &str = "\
fn sums(x: f64[m, n], y: i32[n]) -> (s: f64[m], t: i32[n]) {
    let s = { [i] -> sum({ [j] -> x[i, j] }) };
    let t = { [i] -> 2 * y[i] + 1 };
    (s, t)
}

schedule lanes for sums {
    vectorize(j, 4);
}

schedule sums {
    split(s.i, 3);
    split(t.i, 2);
}
";

/// Two variants that are refused: a loop that is not there, and a race.
const WRONG: &str = "
schedule gone for sums {
    split(q, 2);
}

schedule race for sums {
    split(s.j, 4);
    parallelize(nowhere);
}
";

const SIZES: [&str; 4] = ["--dim", "m=7", "--dim", "n=13"];

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        fs::write(desk.0.path().join("sums.ten"), SUMS).unwrap();
        fs::write(desk.0.path().join("wrong.ten"), format!("{SUMS}{WRONG}")).unwrap();
        desk
    }

    fn certen(&self, args: &[&str]) -> Ran {
        run(command(CERTEN, self.0.path()).args(args))
    }

    fn bench(&self, file: &str, args: &[&str]) -> Ran {
        self.certen(&[&["bench", file, "--rounds", "2"], &SIZES[..], args].concat())
    }

    fn json(&self, file: &str, args: &[&str], status: i32) -> Value {
        let ran = self.bench(file, &[args, &["--json"]].concat());
        assert_eq!((ran.status, ran.err.as_str()), (Some(status), ""), "{args:?}: {}", ran.out);
        serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{args:?}: {}", ran.out))
    }

    /// The names of the variants that are timed.
    fn variants(&self, args: &[&str]) -> Vec<String> {
        let value = self.json("sums.ten", args, 0);
        value["variants"].as_array().unwrap().iter().map(|v| v["variant"].as_str().unwrap().to_owned()).collect()
    }
}

/// A table with a dot for every number that has a point in it.
fn without_times(text: &str) -> String {
    let word =
        |word: &str| if word.contains('.') && word.parse::<f64>().is_ok() { "·".into() } else { word.to_owned() };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ") + "\n";
    text.lines().map(line).collect()
}

#[test]
fn all_variants_are_timed() {
    let desk = Desk::new();
    let ran = desk.bench("sums.ten", &["--threads", "1,2"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    let expected = "\
sums at m = 7, n = 13, 117 operations, 2 rounds in turns
variant threads best ms median Gop/s gain steps made in
none 1 · · · · x none · s
none 2 · · · · x none · s
auto 1 · · · · x 3, proved · s
auto 2 · · · · x 3, proved · s
default 1 · · · · x 2, proved · s
default 2 · · · · x 2, proved · s
lanes 1 · · · · x 1, proved · s
lanes 2 · · · · x 1, proved · s
";
    assert_eq!(without_times(&ran.out), expected);
}

#[test]
fn variants_are_chosen() {
    let desk = Desk::new();
    assert_eq!(desk.variants(&[]), ["none", "auto", "default", "lanes"]);
    assert_eq!(desk.variants(&["--schedule", "lanes,none,lanes"]), ["lanes", "none", "lanes"]);
    let steps = "default, split(s.i, 2);  unroll(s.i.i) ,none";
    assert_eq!(desk.variants(&["--schedule", steps]), ["default", "split(s.i, 2); unroll(s.i.i)", "none"]);
    assert_eq!(desk.variants(&["--schedule", "lanes", "--schedule", "none"]), ["lanes", "none"]);
    fs::write(desk.0.path().join("my.schedule"), "schedule { split(s.i, 5); }\n").unwrap();
    assert_eq!(desk.variants(&["--schedule", "none,my.schedule"]), ["none", "my.schedule"]);
}

#[test]
fn json_has_what_was_measured() {
    let desk = Desk::new();
    let value = desk.json("sums.ten", &["--in", "x=iota", "--threads", "1"], 0);
    assert_eq!(value["sizes"], json!({"m": 7, "n": 13}));
    assert_eq!((&value["operations"], &value["rounds"]), (&json!(117), &json!(2)));
    let lanes = &value["variants"][3];
    assert_eq!((&lanes["ok"], &lanes["steps"], &lanes["proved"]), (&json!(true), &json!(1), &json!(true)));
    let times = &lanes["times"][0];
    assert_eq!(times["threads"], 1);
    let [best, median, gain] = ["best_seconds", "median_seconds", "gain"].map(|field| times[field].as_f64().unwrap());
    assert!(0.0 < best && best <= median && gain > 0.0, "{times}");
    assert_eq!(value["variants"][0]["times"][0]["gain"], 1.0);
}

#[test]
fn what_is_refused_is_listed_beside_the_others() {
    let desk = Desk::new();
    let ran = desk.bench("wrong.ten", &["--threads", "1"]);
    assert_eq!(ran.status, Some(1), "{}{}", ran.out, ran.err);
    let table = without_times(&ran.out);
    assert!(table.contains("\ngone refused: E0802\nrace refused: E0802\n"), "{table}");
    assert!(table.contains("\nlanes 1 · · · · x 1, proved · s\n"), "{table}");
    assert!(ran.err.contains("there is no loop `q`") && ran.err.contains("there is no loop `nowhere`"), "{}", ran.err);
    let value = desk.json("wrong.ten", &["--schedule", "none,gone"], 1);
    assert_eq!((&value["ok"], &value["variants"][0]["ok"]), (&json!(false), &json!(true)));
    assert_eq!(value["variants"][1]["diagnostics"][0]["code"], "E0802");
    assert_eq!(value["diagnostics"][0]["code"], "E0802");
}

#[test]
fn what_is_only_tested_says_so() {
    let desk = Desk::new();
    let blur = "fn blur(x: f64[n, m]) -> f64[n-1, m] where n >= 1 {\n    let t = { [i, j] -> x[i, j] * x[i, j] };\n    { \
                [i, j] -> t[i, j] + t[i+1, j] }\n}\n";
    fs::write(desk.0.path().join("blur.ten"), blur).unwrap();
    // Right in the end, by way of something that is wrong.
    let way = ["--schedule", "fuse_outer(t.i, i); fission(t.i, j)"];
    let args = ["bench", "blur.ten", "--dim", "n=9", "--dim", "m=3", "--rounds", "1", "--threads", "1"];
    let ran = desk.certen(&[&args[..], &way].concat());
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{}", ran.out);
    assert!(without_times(&ran.out).contains(" 1 · · · · x 2, tested · s\n"), "{}", ran.out);
    let ran = desk.certen(&[&args[..], &way, &["--require-proof"]].concat());
    assert!(ran.status == Some(1) && ran.out.contains("refused: E0805"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_variant_that_is_not_there_is_an_error_at_once() {
    let desk = Desk::new();
    for (schedule, status, message) in [
        ("none,slow", 1, "`sums` has no schedule `slow`"),
        ("lanes,,none", 2, "a name is missing before or after a comma"),
        ("gone.schedule", 2, "gone.schedule"),
        ("", 2, "a name is missing before or after a comma"),
    ] {
        let ran = desk.bench("sums.ten", &["--schedule", schedule]);
        assert_eq!((ran.status, ran.out.as_str()), (Some(status), ""), "{schedule}: {}", ran.err);
        assert!(ran.err.contains(message), "{schedule}: {}", ran.err);
    }
}

#[test]
fn wrong_calls_are_refused() {
    let desk = Desk::new();
    let asked: [&[&str]; 9] = [
        &["bench", "sums.ten", "--dim", "m=3"],
        &["bench", "sums.ten", "--dim", "m=3", "--dim", "n=4", "--dim", "k=4"],
        &["bench", "sums.ten", "--dim", "m=3", "--dim", "n=4", "--in", "z=iota"],
        &["bench", "sums.ten", "--rounds", "0"],
        &["bench", "sums.ten", "--time", "-1"],
        &["bench", "sums.ten", "--time", "forever"],
        &["bench", "sums.ten", "--threads", "1,0"],
        &["bench", "sums.ten", "--tolerance", "2"],
        &["bench", "nowhere.ten"],
    ];
    for args in asked {
        let ran = desk.certen(args);
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(ran.err.starts_with("error"), "{args:?}: {}", ran.err);
    }
}

#[test]
fn peers_need_python_and_its_package() {
    let desk = Desk::new();
    for (python, message) in [("/nonexistent/python", "cannot run"), ("false", "does not have the package")] {
        let args = ["bench", "--peers", "mm", "--quick"];
        let ran = run(command(CERTEN, desk.0.path()).env("CERTEN_PYTHON", python).args(args));
        assert_eq!((ran.status, ran.out.as_str()), (Some(3), ""), "{python}: {}", ran.err);
        assert!(ran.err.starts_with("error[E0605]: ") && ran.err.contains(message), "{python}: {}", ran.err);
        assert!(ran.err.contains(python) && ran.err.contains("CERTEN_PYTHON"), "{python}: {}", ran.err);
    }
}

#[test]
fn peers_get_all_that_follows() {
    let desk = Desk::new();
    let python = desk.0.path().join("python");
    fs::write(&python, "#!/bin/sh\ncase $1 in -m) echo \"$@\"; exit 2 ;; esac\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let args = ["bench", "--peers", "mm", "--json", "a.json", "--peers", "numpy", "--help"];
    let ran = run(command(CERTEN, desk.0.path()).env("CERTEN_PYTHON", &python).args(args));
    let said = "-m certen.bench mm --json a.json --peers numpy --help\n";
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), said), "{}", ran.err);
    let ran = desk.certen(&["bench", "sums.ten", "--peers"]);
    assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{}", ran.err);
}

#[test]
fn programs_without_schedules_are_timed_alone() {
    let desk = Desk::new();
    fs::write(desk.0.path().join("twice.model"), "var A : [n]\nvar B : [n]\nB = A + A\n").unwrap();
    let ran = desk.certen(&["bench", "twice.model", "--dim", "n=5", "--rounds", "1", "--threads", "1"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let expected = "twice at n = 5, 5 operations, 1 round\nvariant threads best ms median Gop/s gain steps made in\n\
                    none 1 · · · · x none · s\nauto 1 · · · · x none · s\n";
    assert_eq!(without_times(&ran.out), expected);
}

#[test]
fn loops_of_two_variants_are_compared() {
    let desk = Desk::new();
    fs::write(
        desk.0.path().join("scale.ten"),
        "fn scale(x: f64[m, n]) -> f64[m, n] { { [i, j] -> 2 * x[i, j] } }\nschedule turned for scale { \
         interchange(i, j); }\n",
    )
    .unwrap();
    let ran = desk.certen(&["explain", "scale.ten", "--diff", "none", "turned"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let expected = "\
- none: no steps
+ turned: 1 step
      interchange(i, j)

  nest result
- parallel for i in 0..m {
-     vector for j in 0..n {
+ vector for j in 0..n {
+     for i in 0..m {
          result[i, j] = 2.0 * x[i, j]
      }
  }
";
    assert_eq!(ran.out, expected);
    let ran = desk.certen(&["explain", "scale.ten", "--diff", "turned", "interchange(i, j)"]);
    assert!(ran.out.ends_with("\n\nthe loops are the same\n"), "{}", ran.out);

    let ran = desk.certen(&["explain", "scale.ten", "--json", "--diff", "none", "turned"]);
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(value["variants"][1]["steps"], json!(["interchange(i, j)"]));
    assert_eq!(value["diff"][0], json!({"both": "nest result"}));
    assert_eq!(value["diff"][1], json!({"removed": "parallel for i in 0..m {"}));

    for (args, status) in
        [(["--diff", "none", "slow"], 1), (["--diff", "none", "split(q, 2)"], 1), (["--diff", "none", "--json"], 2)]
    {
        let ran = desk.certen(&[&["explain", "scale.ten"], &args[..]].concat());
        assert_eq!(ran.status, Some(status), "{args:?}: {}{}", ran.out, ran.err);
    }
    let ran = desk.certen(&["explain", "scale.ten", "--diff", "none", "turned", "--steps"]);
    assert_eq!(ran.status, Some(2), "{}", ran.err);
}
