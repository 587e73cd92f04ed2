//! Size costs time in proportion, and depth costs memory, not stack.
//!
//! Every day, the largest work only has to end; times are compared in the slow set, which is optimised. They are those that
//! the processor spent on the test's own thread, so that a busy machine does not matter.

mod common;

use std::fmt::Write;
use std::time::{Duration, Instant};

use certen_codegen::emit_c;
use certen_core::domain::{Exact, Rational};
use certen_core::{Tensor, parse_program};
use certen_dialects::algebra::Notation;
use certen_figures::analysis::analysis;
use certen_figures::in_place::{InPlace, in_place};
use certen_figures::three_address::three_address;
use certen_figures::translate::translate;
use certen_lang::{CheckedFile, Library};
use certen_loops::{FpMode, Lend, lower, pad, parse_loops, peak_bytes, reuse, verify};
use certen_syntax::{Diagnostics, Sources, render_all};
use common::{core, diagnose, diagnose_in, evaluate, typed, typed_in, typed_with_sources};

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
    if cfg!(debug_assertions) {
        work(most);
        return 0.0;
    }
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

/// A few tensors, assigned again and again: the same program in both notations.
fn in_both(notation: Notation, count: usize) -> String {
    let stmts = [
        ("A = add A (mul B B)\n", "A = A + (B * B)\n"),
        ("C = contr 2 3 (prod A B)\n", "C = (A # B) . [2 3]\n"),
        ("B = transp 1 2 (prod (contr 2 3 (prod C D)) D)\n", "B = ((C # D) . [2 3] # D) ^ [1 2]\n"),
        ("D = add D (contr 1 3 (prod C D))\n", "D = D + ((C # D) . [1 3])\n"),
        ("B = add (transp 1 2 A) B\n", "B = (A ^ [1 2]) + B\n"),
    ];
    let (allocs, stmts) = match notation {
        Notation::Model => ("var A : [m n]\nvar B : [n m]\nvar C : [m m]\nvar D : [n]\n", stmts.map(|both| both.1)),
        _ => ("alloc A : [m, n]\nalloc B : [n, m]\nalloc C : [m, m]\nalloc D : [n]\n", stmts.map(|both| both.0)),
    };
    allocs.to_owned() + "where m == n\n" + &(0..count).map(|at| stmts[at % stmts.len()]).collect::<String>()
}

/// The model language's own operations, several pairs at once and names of types.
fn reassigning_model(count: usize) -> String {
    let stmts = [
        "A = A - B ^ [1 2]\n",
        "C = (A # B / s) . [2 3]\n",
        "s = s + ((C # B # A) . [[1 3], [2 5] [4 6]])\n",
        "B = (B ^ [2 1] # A) ^ [[1 3], [2 4]] . [2 4] - C\n",
    ];
    let decls = "type T : [m n]\nvar A : T\nvar B : [n m]\nvar C : [m m]\nvar s : []\nwhere m == n\n";
    decls.to_owned() + &(0..count).map(|at| stmts[at % stmts.len()]).collect::<String>()
}

/// As [`allocating`].
fn allocating_model(count: usize) -> String {
    let decls: String = (0..=count).map(|at| format!("var t{at} : [n 3]\n")).collect();
    decls + &(1..=count).map(|at| format!("t{at} = t{} / t0\n", at - 1)).collect::<String>()
}

/// As [`many_inputs`], with a type each.
fn many_inputs_model(count: usize) -> String {
    let decl = |at| format!("type T{at} : [n{at}]\nvar input x{at} : T{at}\nvar output y{at} : T{at}\n");
    let decls: String = (0..count).map(decl).collect();
    decls + &(0..count).map(|at| format!("y{at} = x{at} * x{at}\n")).collect::<String>()
}

type Text = fn(usize) -> String;

const TEXTS: [(&str, Notation, Text); 9] = [
    ("reassignments", Notation::Teil, reassigning),
    ("allocations", Notation::Teil, allocating),
    ("inputs and outputs", Notation::Teil, many_inputs),
    ("reassignments, model language", Notation::Model, reassigning_model),
    ("allocations, model language", Notation::Model, allocating_model),
    ("inputs and outputs, model language", Notation::Model, many_inputs_model),
    ("repetitions", Notation::Teil, repeating),
    ("both notations, TeIL", Notation::Teil, |count| in_both(Notation::Teil, count)),
    ("both notations, model language", Notation::Model, |count| in_both(Notation::Model, count)),
];

/// 100,000 statements are checked in less than 2 s, if the checker is compiled with optimisation.
#[test]
fn checking_grows_linearly() {
    let times = TEXTS.map(|(what, notation, text)| {
        let time = grows_linearly(what, MANY, |count| drop(typed_in(notation, &text(count))));
        assert!(time < 2.0, "{what}: {time:.4} s");
        time
    });
    let [.., teil, model] = times;
    assert!(
        cfg!(debug_assertions) || model < 2.0 * teil && teil < 2.0 * model,
        "the same program: {teil:.4} s and {model:.4} s"
    );
}

/// Sharing memory between 100,000 nests: a chain that can be computed in place, one that cannot, tensors that all live to
/// the end, and one nest that reads them all.
#[test]
fn sharing_memory_grows_linearly() {
    let element = |at: usize| format!("x{at}[i]");
    let chain = |read: fn(usize) -> String| {
        move |count: usize| {
            let mut text = String::from("loops p\nsize n\nwhere n >= 1\ninput x : f64[n]\noutput y : f64[n]\n");
            text += "alloc x0 : f64[n]\nfor i in 0..n { x0[i] = x[i] }\n";
            for at in 1..count {
                let (last, read) = (at - 1, read(at - 1));
                let _ = writeln!(text, "alloc x{at} : f64[n]\nfor i in 0..n {{ x{at}[i] = {read} }}\nfree x{last}");
            }
            text + &format!("for i in 0..n {{ y[i] = x{0}[i] }}\nfree x{0}\n", count - 1)
        }
    };
    let wide = |count: usize| {
        let mut text = String::from("loops p\nsize n\nwhere n >= 1\ninput x : f64[n]\noutput y : f64[n]\n");
        for at in 0..count {
            let _ = writeln!(text, "alloc x{at} : f64[n]\nfor i in 0..n {{ x{at}[i] = x[i] }}");
        }
        let all: Vec<String> = (0..count).map(element).collect();
        let _ = writeln!(text, "for i in 0..n {{ y[i] = {} }}", all.join(" + "));
        text + &(0..count).map(|at| format!("free x{at}\n")).collect::<String>()
    };
    let work = |what: &str, text: &dyn Fn(usize) -> String| {
        let program = |count: usize| {
            let mut sources = Sources::new();
            let file = sources.add("many.loops", text(count));
            parse_loops(&sources, file).expect("a program")
        };
        let programs = [MANY / 100, MANY / 10, MANY].map(|count| (count, program(count)));
        grows_linearly(what, MANY, |count| {
            let (_, program) = programs.iter().find(|(size, _)| *size == count).expect("one of the three");
            let shared = reuse(program.clone(), Lend::Outputs).expect("well-formed loops");
            let peak = peak_bytes(&shared, &|_| Some(1), &certen_core::ElemType::bytes);
            assert!(peak <= peak_bytes(program, &|_| Some(1), &certen_core::ElemType::bytes));
            drop(pad(shared, 4).expect("well-formed loops"));
        });
    };
    work("in place", &chain(|at| format!("x{at}[i] + 1.0")));
    work("reversed", &chain(|at| format!("x{at}[n - 1 - i] + 1.0")));
    work("all at once", &wide);
}

#[test]
fn elaboration_and_lowering_grow_linearly() {
    for (what, notation, text) in TEXTS {
        grows_linearly(what, MANY / 5, |count| {
            let loops = lower(&core(&typed_in(notation, &text(count))), FpMode::Relaxed)
                .expect("elaborated programs can be lowered");
            let loops = reuse(loops, Lend::Outputs).expect("well-formed loops");
            assert!(verify(&loops).is_empty());
            drop(emit_c(&loops).expect("C"));
            drop(pad(loops, 4).expect("well-formed loops"));
        });
    }
}

#[test]
fn analyses_grow_linearly() {
    for (what, notation, text) in TEXTS {
        grows_linearly(what, MANY, |count| {
            let (typed, sources) = typed_with_sources(notation, &text(count));
            assert_eq!(analysis(&typed, &sources, count).len(), count);
        });
    }
    let deep = |part: &str| format!("alloc A : [m, m]\nA = {}A{}\n", part.repeat(MANY), ")".repeat(MANY));
    assert_eq!(in_place(&typed(&deep("add A (")), 0), InPlace::SameElement);
    assert_eq!(in_place(&typed(&deep("transp 1 2 (")), 0), InPlace::SameElement);
    assert!(!in_place(&typed(&deep("add (transp 1 2 A) (")), 0).is_allowed());
}

#[test]
fn refusing_grows_linearly() {
    let allocs = "alloc A : [m, n]\nalloc B : [n, m]\nalloc C : [k]\n";
    for stmt in ["A = B\n", "A = D@\n", "D@ = A\n", "A = add A B\n", "C = proj 1 @ A\n", "A = = B\n"] {
        refuses_linearly(Notation::Teil, allocs, stmt);
    }
    let decls = "var A : [m n]\nvar B : [n m]\nvar C : [k]\n";
    for stmt in ["A = B\n", "A = D@\n", "A = A + B\n", "A = A # B . [1 @]\n", "A = A #\n", "A = A ^ [[1 2]\n"] {
        refuses_linearly(Notation::Model, decls, stmt);
    }
}

/// Many wrong statements; `@` is a number.
fn refuses_linearly(notation: Notation, decls: &str, stmt: &str) {
    grows_linearly(stmt, MANY / 5, |count| {
        let stmts: String = (0..count).map(|at| stmt.replace('@', &at.to_string())).collect();
        let (typed, diagnostics, _) = diagnose_in(notation, &(decls.to_owned() + &stmts));
        assert!(typed.is_none());
        // There may be a limit on how many are kept.
        assert!(diagnostics.into_sorted().len() >= count.min(100));
    });
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
fn goes_all_the_way(notation: Notation, value: &str, factor: i64) {
    let word = if notation == Notation::Model { "var" } else { "alloc" };
    let text = format!("{word} A : [2]\n{word} B : [2]\nB = {value}\n");
    let typed = typed_in(notation, &text);
    let again = typed_in(notation, &typed.program.to_string());
    assert!(!again.derivation(0, 10).is_empty());
    let inputs = || vec![("A".into(), Tensor::new(vec![2], [3, 5].map(Exact::from).to_vec()).unwrap())];
    let expected = Tensor::new(vec![2], [3 * factor, 5 * factor].map(Exact::from).to_vec()).unwrap();
    for typed in [&typed, &again, &common::typed(&translate(&typed.program, Notation::CoreTeil).unwrap().to_string())] {
        let program = core(typed);
        assert_eq!(evaluate(&program, &Rational, &[], inputs())[0].1, expected);
    }
    drop(typed_in(notation, &three_address(&typed).to_string()));

    let program = core(&typed);
    let mut sources = Sources::new();
    let printed = program.to_string();
    let file = sources.add("deep.core", printed.as_str());
    let again = parse_program(&sources, file).expect("what is printed can be read");
    assert_eq!(again.to_string(), printed);
    let loops = lower(&program, FpMode::Relaxed).expect("elaborated programs can be lowered");
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
    goes_all_the_way(Notation::Teil, &value, MANY as i64);
}

#[test]
fn a_sum_of_100_000_terms_grouped_to_the_right() {
    let value = format!("{}A", "add A (".repeat(MANY - 1)) + &")".repeat(MANY - 1);
    goes_all_the_way(Notation::Teil, &value, MANY as i64);
}

#[test]
fn parentheses_100_000_deep() {
    goes_all_the_way(Notation::Teil, &format!("{}A{}", "(".repeat(MANY), ")".repeat(MANY)), 1);
}

#[test]
fn expansions_and_slices_100_000_deep() {
    goes_all_the_way(Notation::Teil, &("proj 1 1 expa 1 7 ".repeat(MANY / 2) + "A"), 1);
}

/// The model language's operators associate to the left, so that the right one needs parentheses.
#[test]
fn operators_of_the_model_language_100_000_deep() {
    let left = "A".to_owned() + &" + A".repeat(MANY - 1);
    let right = "A + (".repeat(MANY - 1) + "A" + &")".repeat(MANY - 1);
    for value in [left, right] {
        goes_all_the_way(Notation::Model, &value, MANY as i64);
    }
    goes_all_the_way(Notation::Model, &format!("{}A{}", "(".repeat(MANY), ")".repeat(MANY)), 1);
}

/// Behind each other, and inside each other with parentheses of their own.
#[test]
fn transpositions_of_the_model_language_100_000_deep() {
    let decls = "var A : [2 3]\nvar B : [2 3]\nB = ";
    let behind = "A".to_owned() + &" ^ [1 2]".repeat(MANY);
    let within = "(".repeat(MANY) + "A" + &" ^ [[2 1]])".repeat(MANY);
    for value in [behind, within] {
        let typed = typed_in(Notation::Model, &format!("{decls}{value}\n"));
        let again = typed_in(Notation::Model, &typed.program.to_string());
        let teil = common::typed(&translate(&typed.program, Notation::Teil).unwrap().to_string());
        for typed in [typed, again, teil] {
            let a = Tensor::new(vec![2, 3], (1..7).map(Exact::from).collect()).unwrap();
            let outputs = evaluate(&core(&typed), &Rational, &[], vec![("A".into(), a.clone())]);
            assert_eq!(outputs[0].1, a);
        }
    }
}

#[test]
fn brackets_that_are_never_closed_are_refused() {
    let refused = |notation: Notation, text: &str| {
        let last = text.chars().last().unwrap_or('(').to_string();
        let (typed, diagnostics, _) = diagnose_in(notation, &(text.to_owned() + &last.repeat(MANY)));
        assert!(typed.is_none());
        assert!(diagnostics.has_errors());
    };
    for text in [
        "(",
        "alloc A : [",
        "alloc A : [(",
        "alloc A : [1]\nwhere (",
        "alloc A : [1]\nA = (",
        "where !",
        "alloc A : [-",
    ] {
        refused(Notation::Teil, text);
    }
    for text in ["var A : [", "type T : [(", "var A : []\nA = (", "var A : []\nA = A . [", "var A : []\nA = A #"] {
        refused(Notation::Model, text);
    }
}

/// Copies of a `.ten` text, each with functions of its own; `previous` is `last` of the copy before.
fn copies(text: &str, count: usize) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let own: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("fn ")?.split(|c| !is_word(c)).next()).collect();
    let copy = |at: usize| {
        let mut rest = text;
        let mut copied = String::new();
        while let Some(start) = rest.find(is_word) {
            let (before, from) = rest.split_at(start);
            let (word, behind) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
            copied += before;
            match word {
                "previous" if at == 0 => copied += "abs",
                "previous" => copied += &format!("last_{}", at - 1),
                _ if own.contains(&word) && behind.starts_with('(') => copied += &format!("{word}_{at}"),
                _ => copied += word,
            }
            rest = behind;
        }
        copied + rest
    };
    (0..count).map(copy).collect()
}

/// More than 2,000 lines with more than 300 functions are checked in less than a second, if the checker is compiled with
/// optimisation.
#[test]
#[expect(clippy::print_stdout, reason = "the time is what people want to know")]
fn a_long_ten_file_is_checked_in_a_second() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scaling/realistic.ten");
    let functions = std::fs::read_to_string(path).expect("the functions to copy");
    let check = |count: usize| {
        let mut sources = Sources::new();
        let file = sources.add("copies.ten", copies(&functions, count));
        let mut diagnostics = Diagnostics::new();
        let library = Library::load(&mut sources, file, &mut |_, _| Err("no file".into()), &mut diagnostics);
        drop(CheckedFile::new(library, &mut diagnostics));
        assert!(!diagnostics.has_errors(), "{}", render_all(&sources, &diagnostics.into_sorted(), false));
    };
    let text = copies(&functions, 16);
    let (lines, count) = (text.lines().count(), text.matches("\nfn ").count());
    assert!(lines > 2000 && count > 300);
    check(1);
    let times = [4, 16].map(|count| seconds(|| check(count)));
    println!("{lines} lines with {count} functions are checked in {:.3} s", times[1]);
    if cfg!(not(debug_assertions)) {
        assert!(times[1] < 8.0 * times[0] + 0.1, "a quarter and the whole: {times:.4?} s");
        assert!(times[1] < 1.0, "{times:.4?} s");
    }
}
