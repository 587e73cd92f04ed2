//! Size costs time in proportion, and depth costs memory, not stack.
//!
//! Times are those that the processor spent on the test's own thread, so that a busy machine does not matter.

mod common;

use std::fmt::Write;
use std::time::{Duration, Instant};

use certen_codegen::emit_c;
use certen_core::domain::{Exact, Rational};
use certen_core::{Tensor, parse_program};
use certen_dialects::algebra::{InPlace, Notation};
use certen_loops::{lower, parse_loops, verify};
use certen_syntax::Sources;
use common::{core, diagnose, evaluate, typed, typed_with_sources};

const MANY: usize = 100_000;

/// The time that this thread has been running.
fn thread_time(since: Instant) -> Duration {
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = spent.and_then(|text| text.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    let before = thread_time(start);
    work();
    (thread_time(start) - before).as_secs_f64()
}

/// Work on a hundredth and a tenth of `most` statements, and on all of them: each time at most four times as long for a
/// statement as before, which leaves room for caches but not for squares. Gives the last time.
fn grows_linearly(what: &str, most: usize, work: impl Fn(usize)) -> f64 {
    work(most / 100);
    let times = [most / 100, most / 10, most].map(|count| seconds(|| work(count)));
    assert!(times.windows(2).all(|pair| pair[1] < 40.0 * pair[0] + 0.1), "{what}: {times:.4?} s");
    times[2]
}

/// A few tensors, assigned again and again.
fn reassigning(count: usize) -> String {
    let stmts = [
        "A = add A (mul B B)\n",
        "C = contr 2 3 (prod A B)\n",
        "B = transp 1 2 (expa 2 m (red+ 2 C))\n",
        "D = add (proj 1 1 C) (redmax 1 (mul A A))\n",
        "B = transp 1 2 (add (expa 1 n D) (transp 1 2 A))\n",
    ];
    let allocs = "alloc A : [m, n]\nalloc B : [n, m]\nalloc C : [m, m]\nalloc D : [n]\nwhere m == n\n";
    allocs.to_owned() + &(0..count).map(|at| stmts[at % stmts.len()]).collect::<String>()
}

/// As many tensors as statements, all of them outputs.
fn allocating(count: usize) -> String {
    let mut text = String::from("alloc t0 : [n, 3]\n");
    for at in 1..=count {
        let _ = writeln!(text, "alloc t{at} : [n, 3]");
    }
    for at in 1..=count {
        let _ = writeln!(text, "t{at} = add t{} t0", at - 1);
    }
    text
}

/// As many inputs as outputs, and sizes of their own.
fn many_inputs(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let _ = writeln!(text, "alloc input x{at} : [n{at}]\nalloc output y{at} : [n{at}]");
    }
    for at in 0..count {
        let _ = writeln!(text, "y{at} = mul x{at} x{at}");
    }
    text
}

/// The same values in every statement, and one that reads what it assigns.
fn repeating(count: usize) -> String {
    let stmts = [
        "C = add (contr 2 3 (prod A B)) C\n",
        "D = add (red+ 1 (contr 3 2 (prod A B))) (redmax 1 (add A (transp 1 2 B)))\n",
        "E = redmax 1 (add (transp 2 1 B) A)\n",
        "C = transp 1 2 (add C (contr 2 3 (prod A B)))\n",
    ];
    let allocs = "alloc A : [m, n]\nalloc B : [n, m]\nalloc C : [m, m]\nalloc D : [n]\nalloc E : [n]\nwhere m == n\n";
    allocs.to_owned() + &(0..count).map(|at| stmts[at % stmts.len()]).collect::<String>()
}

type Text = fn(usize) -> String;

const TEXTS: [(&str, Text); 4] = [
    ("reassignments", reassigning),
    ("allocations", allocating),
    ("inputs and outputs", many_inputs),
    ("repetitions", repeating),
];

/// 100,000 statements are checked in less than 2 s, if the checker is compiled with optimisation.
#[test]
fn checking_grows_linearly() {
    for (what, text) in TEXTS {
        let time = grows_linearly(what, MANY, |count| drop(typed(&text(count))));
        assert!(time < if cfg!(debug_assertions) { 10.0 } else { 2.0 }, "{what}: {time:.4} s");
    }
}

#[test]
fn elaboration_and_lowering_grow_linearly() {
    for (what, text) in TEXTS {
        grows_linearly(what, MANY / 5, |count| {
            let loops = lower(&core(&typed(&text(count)))).expect("TeIL programs can be lowered");
            assert!(verify(&loops).is_empty());
            drop(emit_c(&loops).expect("C"));
        });
    }
}

#[test]
fn analyses_grow_linearly() {
    for (what, text) in TEXTS {
        grows_linearly(what, MANY, |count| {
            let (typed, sources) = typed_with_sources(Notation::Teil, &text(count));
            assert_eq!(typed.analysis(&sources, count).len(), count);
        });
    }
    let deep = |part: &str| format!("alloc A : [m, m]\nA = {}A{}\n", part.repeat(MANY), ")".repeat(MANY));
    assert_eq!(typed(&deep("add A (")).in_place(0), InPlace::SameElement);
    assert_eq!(typed(&deep("transp 1 2 (")).in_place(0), InPlace::SameElement);
    assert!(!typed(&deep("add (transp 1 2 A) (")).in_place(0).is_allowed());
}

#[test]
fn refusing_grows_linearly() {
    for stmt in ["A = B\n", "A = D#\n", "D# = A\n", "A = add A B\n", "C = proj 1 # A\n", "A = = B\n"] {
        grows_linearly(stmt, MANY / 5, |count| {
            let allocs = "alloc A : [m, n]\nalloc B : [n, m]\nalloc C : [k]\n";
            let stmts: String = (0..count).map(|at| stmt.replace('#', &at.to_string())).collect();
            let (typed, diagnostics) = diagnose(&(allocs.to_owned() + &stmts));
            assert!(typed.is_none());
            // There may be a limit on how many are kept.
            assert!(diagnostics.len() >= count.min(100));
        });
    }
}

#[test]
fn refusing_uninitialised_outputs_grows_linearly() {
    grows_linearly("uninitialised", MANY / 2, |count| {
        let text = many_inputs(count).replace("input ", "");
        let (typed, diagnostics) = diagnose(&text);
        assert!(typed.is_none());
        assert!(diagnostics.len() >= count.min(100));
    });
}

/// Takes a program over `A : [2]` down the whole road, and back from every text. `B` must be A times `factor`.
fn goes_all_the_way(value: &str, factor: i64) {
    let text = format!("alloc A : [2]\nalloc B : [2]\nB = {value}\n");
    let typed = typed(&text);
    let again = common::typed(&typed.program.to_string());
    assert!(!again.derivation(0, 10).is_empty());
    let inputs = || vec![("A".into(), Tensor::new(vec![2], [3, 5].map(Exact::from).to_vec()).unwrap())];
    let expected = Tensor::new(vec![2], [3 * factor, 5 * factor].map(Exact::from).to_vec()).unwrap();
    for typed in [&typed, &again, &common::typed(&typed.program.to(Notation::CoreTeil).unwrap().to_string())] {
        let program = core(typed);
        assert_eq!(evaluate(&program, &Rational, &[], inputs())[0].1, expected);
    }
    drop(common::typed(&typed.three_address().to_string()));

    let program = core(&typed);
    let mut sources = Sources::new();
    let printed = program.to_string();
    let file = sources.add("deep.core", printed.as_str());
    let again = parse_program(&sources, file).expect("what is printed can be read");
    assert_eq!(again.to_string(), printed);
    let loops = lower(&program).expect("TeIL programs can be lowered");
    assert!(verify(&loops).is_empty());
    let printed = loops.to_string();
    let file = sources.add("deep.loops", printed.as_str());
    let again = parse_loops(&sources, file).expect("what is printed can be read");
    assert_eq!(again.to_string(), printed);
    assert!(emit_c(&loops).expect("C").source.len() > 100);
}

#[test]
fn a_sum_of_100_000_terms_grouped_to_the_left() {
    let value = format!("{}{}", "add ".repeat(MANY - 1), "A ".repeat(MANY));
    goes_all_the_way(&value, MANY as i64);
}

#[test]
fn a_sum_of_100_000_terms_grouped_to_the_right() {
    let value = format!("{}A", "add A (".repeat(MANY - 1)) + &")".repeat(MANY - 1);
    goes_all_the_way(&value, MANY as i64);
}

#[test]
fn parentheses_100_000_deep() {
    goes_all_the_way(&format!("{}A{}", "(".repeat(MANY), ")".repeat(MANY)), 1);
}

#[test]
fn expansions_and_slices_100_000_deep() {
    goes_all_the_way(&("proj 1 1 expa 1 7 ".repeat(MANY / 2) + "A"), 1);
}

#[test]
fn brackets_that_are_never_closed_are_refused() {
    for text in [
        "(",
        "alloc A : [",
        "alloc A : [(",
        "alloc A : [1]\nwhere (",
        "alloc A : [1]\nA = (",
        "where !",
        "alloc A : [-",
    ] {
        let last = text.chars().last().unwrap_or('(').to_string();
        let (typed, diagnostics) = diagnose(&(text.to_owned() + &last.repeat(MANY)));
        assert!(typed.is_none());
        assert!(!diagnostics.is_empty());
    }
}
