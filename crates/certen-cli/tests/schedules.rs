//! Schedules on the command line: chosen, shown step by step, checked, formatted, refused.

mod common;

use std::fs;
use std::path::PathBuf;

use common::{CERTEN, Ran, command, run};
use serde_json::Value;
use tempfile::TempDir;

const SUMS: &str = "\
fn sums(x: f64[m, n]) -> f64[m] {
    { [i] -> sum({ [j] -> x[i, j] }) }
}

schedule sums {
    split(i, 3);
}

schedule turned for sums {
    split(j, 2);
    interchange(i, j.o);
}

schedule nothing for sums { }
";

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        let desk = Desk(tempfile::tempdir().unwrap());
        desk.write("sums.ten", SUMS);
        desk
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn certen(&self, args: &[&str]) -> Ran {
        run(command(CERTEN, self.0.path()).args(args))
    }

    /// The loops with a schedule, or why there are none.
    fn loops(&self, file: &str, schedule: &[&str]) -> String {
        let ran = self.certen(&[&["emit", file, "--to", "loops"], schedule].concat());
        assert_eq!(ran.status == Some(0), ran.err.is_empty(), "{}", ran.err);
        ran.out + &ran.err
    }
}

#[test]
fn a_schedule_is_chosen() {
    let desk = Desk::new();
    let has = |schedule: &[&str], what: &str| {
        let loops = desk.loops("sums.ten", schedule);
        assert!(loops.contains(what), "{schedule:?}: {what} is not in\n{loops}");
    };
    has(&[], "for i.o in 0..ceil_div(m, 3)");
    has(&["--schedule", "none"], "parallel for i in 0..m");
    has(&["--schedule", "nothing"], "parallel for i in 0..m");
    has(&["--schedule", "turned"], "for j.o in 0..ceil_div(n, 2)");
    has(&["--schedule", "split(i, 5); split(i.i, 2)"], "for i.i.o in");
    desk.write("mine.schedule", "// For every program.\nschedule { split(i, 7); }\n");
    has(&["--schedule", "mine.schedule"], "ceil_div(m, 7)");
    desk.write("two.schedule", "schedule a for sums { split(i, 7); }\nschedule b for sums { split(j, 7); }\n");
    has(&["--schedule", "two.schedule"], "several schedules for `sums`, and none without a name");
    desk.write("other.schedule", "schedule rows { split(i, 7); }\n");
    has(&["--schedule", "other.schedule"], "there is no schedule for `sums`");
    has(&["--schedule", "slow"], "`sums` has no schedule `slow`");
    let ran = desk.certen(&["emit", "sums.ten", "--schedule", "gone.schedule"]);
    assert_eq!(ran.status, Some(2), "{}", ran.err);
    assert!(ran.err.contains("gone.schedule"), "{}", ran.err);
}

#[test]
fn values_are_the_same_with_every_schedule() {
    let desk = Desk::new();
    let result = |schedule: &str| {
        let inputs = ["run", "sums.ten", "--in", "x=random:5", "--dim", "m=7", "--dim", "n=5", "--fp", "strict"];
        let ran = desk.certen(&[&inputs[..], &["--backend", "native", "--schedule", schedule]].concat());
        assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
        ran.out
    };
    let plain = result("none");
    for schedule in ["nothing", "split(i, 3)", "split(i, 1); split(j, 4)", "unroll(i, 2)"] {
        assert_eq!(result(schedule), plain, "{schedule}");
    }
}

#[test]
fn steps_are_shown_as_far_as_they_go() {
    let desk = Desk::new();
    let ran = desk.certen(&["explain", "sums.ten", "--steps", "--schedule", "split(i, 3); split(q, 2)"]);
    assert_eq!(ran.status, Some(1));
    assert!(ran.out.contains("the loops without a schedule:") && ran.out.contains("1. split(i, 3)"), "{}", ran.out);
    assert!(ran.err.starts_with("error[E0802]: there is no loop `q`"), "{}", ran.err);

    let ran = desk.certen(&["explain", "sums.ten", "--steps", "--json", "--schedule", "turned"]);
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    let steps = &value["stages"]["steps"];
    assert_eq!((ran.status, &value["ok"]), (Some(0), &Value::Bool(true)));
    assert!(steps["before"].as_str().unwrap().contains("for i in 0..m"));
    assert_eq!(steps["steps"][1]["step"], "interchange(i, j.o)");
    assert_eq!(steps["steps"][1]["conditions"][0]["status"], "proved");
    assert!(steps["steps"][1]["loops"].as_str().unwrap().contains("for j.o in"));

    let ran = desk.certen(&["explain", "sums.ten", "--steps", "--json", "--schedule", "split(q, 2)"]);
    let value: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.status, &value["ok"]), (Some(1), &Value::Bool(false)));
    assert_eq!(value["diagnostics"][0]["code"], "E0802");
    assert_eq!(value["stages"]["steps"]["refused"]["code"], "E0802");
}

#[test]
fn every_schedule_of_a_file_is_checked() {
    let desk = Desk::new();
    let ran = desk.certen(&["check", "sums.ten"]);
    let expected = "sums.ten: ok  fn sums(x: f64[m, n]) -> f64[m]\n  schedule sums: 1 step, equality proved\n  \
                    schedule turned for sums: 2 steps, equality proved\n  schedule nothing for sums: 0 steps, equality \
                    proved\n";
    assert_eq!((ran.out.as_str(), ran.err.as_str()), (expected, ""));
    desk.write(
        "wrong.ten",
        &format!("{SUMS}schedule bad for sums {{ split(q, 2); }}\nschedule worse for sums {{ splt(i, 2); }}\n"),
    );
    let ran = desk.certen(&["check", "wrong.ten"]);
    assert_eq!((ran.status, ran.err.matches("error[E080").count()), (Some(1), 2), "{}", ran.err);
    desk.write("open.ten", "fn f(x: f64[s...]) -> f64[s...] { 2 * x }\nschedule f { split(i, 2); }\n");
    let ran = desk.certen(&["check", "open.ten"]);
    assert!(ran.out.contains("schedule f: 1 step, for loops that depend on the call"), "{}{}", ran.out, ran.err);
}

#[test]
fn a_proof_can_be_required() {
    let desk = Desk::new();
    let ran = desk.certen(&["emit", "sums.ten", "--require-proof", "--schedule", "turned"]);
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    let blur = "fn blur(x: f64[n]) -> f64[n-2] where n >= 2 {\n    let t = { [i] -> x[i] * x[i] };\n    \
                { [i] -> t[i] + t[i+1] + t[i+2] | i < n-2 }\n}\n";
    desk.write("blur.ten", blur);
    let ran = desk.certen(&["emit", "blur.ten", "--require-proof", "--schedule", "fuse_outer(t.i, i)"]);
    assert!(ran.err.starts_with("error[E0805]"), "{}", ran.err);
    let ran = desk.certen(&["emit", "blur.ten", "--schedule", "fuse_outer(t.i, i)"]);
    assert!(ran.err.starts_with("error[E0705]"), "{}", ran.err);
}

#[test]
fn schedules_are_formatted() {
    let desk = Desk::new();
    let path = desk.write("loose.ten", "fn f(x: f64[n]) -> f64[n] { x }\nschedule  f{split( i , 2 );unroll(i . i);}\n");
    assert_eq!(desk.certen(&["fmt", "loose.ten"]).status, Some(0));
    let expected = "fn f(x: f64[n]) -> f64[n] { x }\nschedule f {\n    split(i, 2);\n    unroll(i.i);\n}\n";
    assert_eq!(fs::read_to_string(path).unwrap(), expected);
}

#[test]
fn loops_of_a_refused_schedule_are_not_shown() {
    let desk = Desk::new();
    desk.write(
        "next.ten",
        "fn f(x: f64[n]) -> f64[n-1] where n >= 1 { let t = { [i] -> 2 * x[i] }; { [i] -> t[i] + t[i+1] } }",
    );
    let asked: [&[&str]; 4] = [
        &["emit", "next.ten", "--to", "loops", "--schedule", "fuse_outer(t.i, i)"],
        &["emit", "sums.ten", "--to", "loops", "--schedule", "vectorize(i)"],
        &["explain", "sums.ten", "--only", "loops", "--schedule", "vectorize(i)"],
        &["explain", "sums.ten", "--steps", "--schedule", "vectorize(i)"],
    ];
    for args in asked {
        let ran = desk.certen(args);
        assert_eq!(ran.status, Some(1), "{args:?}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains("error[E0"), "{args:?}: {}", ran.err);
    }
}
