//! Typed trees as texts.

use certen_core::Binary;
use certen_syntax::{Diagnostics, Sources};

use super::*;
use crate::parse::parse;
use crate::passes;
use crate::to_ast::to_ast;
use crate::typed::{Fold, FoldOp, Kind, Program};

/// The text, which is read as the same text again.
fn text(program: &Program) -> String {
    let text = to_ast(program).to_string();
    let mut sources = Sources::new();
    let file = sources.add("stage.ten", text.clone());
    let mut diagnostics = Diagnostics::new();
    let read = parse(sources.get(file).unwrap(), file, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{text}\n{diagnostics:?}");
    assert_eq!(read.to_string(), text);
    text
}

#[test]
fn every_stage_is_a_program() {
    let body = binary(Binary::Add, at(var("a", "n,m"), "i"), number(-1.5));
    let inner = comprehension(vec![partition("i,.", &[("0", "n-1")], body)], "n-1,m");
    let mut stage = program(vec![function("f", "n,m", &[("a", "n,m")], vec![bind("b", inner)], var("b", "n-1,m"))]);
    let mut texts = vec![text(&stage)];
    for pass in passes::ALL {
        (pass.run)(&mut stage);
        texts.push(text(&stage));
    }
    let binding = |text: &String| {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.join(" ").split(" { ").skip(1).collect::<Vec<_>>().join(" { ").split(';').next().map(String::from)
    };
    let lines: Vec<String> = texts.iter().filter_map(binding).collect();
    assert_eq!(
        lines,
        [
            "let b = { [i, .] -> a[i] + -1.5 }",
            "let b = { [i, .] -> a[i] + -1.5 | [0] <= [i] < [n - 1] }",
            "let b = { [i, t1] -> (a[i] + -1.5)[t1] | [0, 0] <= [i, t1] < [n - 1, m] }",
            "let b = with { ([0, 0] <= [i, t1] < [n - 1, m]) : (a[i] + -1.5)[t1] } : genarray( [n - 1, m], 0.0 )",
        ]
    );
    assert!(texts[0].starts_with("fn f(a: f64[n, m]) -> f64[n-1, m] {"), "{}", texts[0]);
}

#[test]
fn sizes_that_no_dimension_binds_are_passed() {
    let mut f = function("f", "k,n", &[("x", "n+k")], vec![], at(var("x", "n+k"), "n"));
    f.facts.push(Cond::lt(&ix("0"), &ix("k")).unwrap());
    assert_eq!(
        text(&program(vec![f])),
        "fn f(k: size, n: size, x: f64[k+n]) -> f64 where k >= 0, n >= 0, k >= 1 {\n    x[n]\n}\n"
    );
}

#[test]
fn a_fold_names_its_function() {
    let next = binary(Binary::Add, var("s", ""), var("e", ""));
    let op = FoldOp::Function { so_far: "s".into(), element: "e".into(), next, associative: true };
    let generators = vec![generator(&[("i", "0", "n")], at(var("x", "n"), "i"))];
    let fold = expr(Kind::Fold(Box::new(Fold { generators, neutral: number(0.0), op })), "");
    let text = text(&program(vec![function("f", "n", &[("x", "n")], vec![], fold)]));
    assert!(text.starts_with("fn step(s: f64, e: f64) -> f64 associative(0.0) {"), "{text}");
    assert!(text.contains("fold(step, 0.0)"), "{text}");
}
