//! Programs with schedules, given from outside: they run, give what they gave before, and are refused where they are wrong.

use certen::{Call, Choice, Failure, Input, Module, Options};

const BLUR: &str = "fn blur(x: f64[h, w]) -> f64[h-2, w-2] where h >= 2, w >= 2 {
    let rows = { [i, j] -> (x[i,j] + x[i,j+1] + x[i,j+2]) / 3 };
    { [i, j] -> (rows[i,j] + rows[i+1,j] + rows[i+2,j]) / 3 }
}";

fn module(text: &str, steps: &str) -> Result<Module, Failure> {
    let schedule = Choice::Text { name: "schedule".into(), text: steps.into() };
    Module::from_text("f.ten", text, &Options { schedule, ..Options::default() })
}

#[test]
fn a_schedule_changes_loops_and_no_values() {
    let plain = Module::from_text("f.ten", BLUR, &Options::default()).unwrap();
    let scheduled = module(BLUR, "split(i, 4); split(rows.j, 3); interchange(rows.i, rows.j.o)").unwrap();
    let loops = scheduled.loops().unwrap().to_string();
    assert!(loops.contains("for i.o in 0..ceil_div(h - 2, 4)"), "{loops}");
    assert!(!loops.contains("parallel"), "what a schedule touches is left alone: {loops}");
    for (h, w) in [(2, 5), (3, 3), (13, 7)] {
        let call = Call::new().input("x", Input::Random(3)).dim("h", h).dim("w", w);
        let (one, two) = (plain.run(&call).unwrap(), scheduled.run(&call).unwrap());
        assert_eq!(one[0].array().unwrap().as_slice::<f64>(), two[0].array().unwrap().as_slice::<f64>());
    }
}

#[test]
fn a_sum_that_gets_dimensions_step_by_step_can_share_memory() {
    let text = "fn f(a: f64[m, 2], b: f64[2, 2]) -> f64[m, 2] { { [i, j] -> 2 * sum({ [k] -> a[i, k] * b[k, j] }) } }";
    let call = Call::new().input("a", Input::Iota).input("b", Input::Iota).dim("m", 3);
    let found = module(text, "reorder([k, i, j])").unwrap().run(&call).unwrap();
    assert_eq!(found[0].array().unwrap().as_slice(), Some(&[4.0, 6.0, 12.0, 22.0, 20.0, 38.0][..]));
}

#[test]
fn nests_that_no_step_touches_are_left_to_the_compiler() {
    let scheduled = module(BLUR, "split(i, 4)").unwrap();
    let loops = scheduled.loops().unwrap().to_string();
    assert!(loops.contains("parallel for i in 0..h {"), "{loops}");
    assert!(!loops.contains("parallel for i.o"), "{loops}");
}

#[test]
fn what_cannot_be_done_is_refused_at_its_step() {
    let failure = module(BLUR, "split(i, 4); split(k, 2)").unwrap().loops().unwrap_err();
    let error = &failure.diagnostics()[0];
    assert_eq!(error.code.to_string(), "E0802");
    assert!(error.primary.is_some() && error.notes.iter().any(|note| note.contains("for i.o in")), "{failure}");
    let failure = module(BLUR, "split(i, 4").unwrap_err();
    assert_eq!(failure.diagnostics()[0].code.to_string(), "E0103");
    let options = Options { schedule: Choice::Variant("fast".into()), ..Options::default() };
    let failure = Module::from_text("f.ten", BLUR, &options).unwrap_err();
    assert_eq!(failure.diagnostics()[0].code.to_string(), "E0802");
}

#[test]
fn what_depends_on_rare_data_is_compared_too() {
    let fold = "fn op(a: i64, b: i64) -> i64 { select(b == 5000000, a + 1, select(b == 6000000, 2 * a, a)) }
fn main(x: i64[n, m]) -> i64 { with { ([0,0] <= [i,j] < [n,m]) : x[i,j]; } : fold(op, 1) }";
    let failure = module(fold, "interchange(i, j)").unwrap().c().unwrap_err();
    assert_eq!(failure.diagnostics()[0].code.to_string(), "E0705", "{failure}");
}

#[test]
fn what_is_neither_shown_nor_compared_is_refused() {
    let large =
        "fn f(x: f64[n]) -> f64[n-1] where n >= 200000 { let t = { [i] -> x[i] * x[i] }; { [i] -> t[i] + t[i+1] } }";
    let failure = module(large, "fuse_outer(t.i, i)").unwrap().c().unwrap_err();
    assert_eq!(failure.diagnostics()[0].code.to_string(), "E0805", "{failure}");
    let large = large.replace("[n]", "[300000]").replace("[n-1]", "[299999]").replace(" where n >= 200000", "");
    let failure = module(&large, "fuse_outer(t.i, i)").unwrap().c().unwrap_err();
    assert_eq!(failure.diagnostics()[0].code.to_string(), "E0705", "{failure}");
    // What is shown need not be compared.
    assert!(module(&large, "split(i, 1000)").unwrap().c().is_ok());
}

#[test]
fn where_operations_are_made_as_written_no_sum_changes_its_order() {
    let dot = "fn f(a: f64[n], b: f64[n]) -> f64 where n >= 1 { sum({ [l] -> a[l] * b[l] }) }";
    let strict = |steps: &str| {
        let schedule = Choice::Text { name: "schedule".into(), text: steps.into() };
        Module::from_text("f.ten", dot, &Options { schedule, fp: certen::FpMode::Strict, ..Options::default() })
            .unwrap()
    };
    for steps in ["parallelize(l)", "vectorize(l, 4)", "fma(l)", "parallelize(l, 8)"] {
        assert!(strict(steps).c().is_err(), "{steps}");
        assert!(module(dot, steps).unwrap().c().is_ok(), "{steps}");
    }
    assert!(strict("split(l, 8); unroll(l.i)").c().is_ok());
}

#[test]
fn copies_of_copies_come_to_an_end() {
    let wide = "fn f(x: f64[n, 1500]) -> f64[n, 1500] { { [i, j] -> 2 * x[i, j] } }";
    let failure = module(wide, "unroll(j); peel(i, first, 1); peel(i, last, 1)").unwrap().loops().unwrap_err();
    assert!(failure.diagnostics()[0].message.contains("4096"), "{failure}");
}
