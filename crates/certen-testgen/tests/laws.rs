//! The laws of the tensor algebra (TeIL, Sec. 3.6) hold: instances of every left side, around generated expressions,
//! inside generated programs, have the types and values of what rewriting makes of them.

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;

use certen_core::domain::{Element, Exact, Field, Machine, Rational, Scalar};
use certen_core::{ElemType, Program, ReduceOp, Tensor};
use certen_dialects::algebra::{self, Applied, LAWS, Notation, Typed};
use certen_syntax::{Diagnostics, Name};
use certen_testgen::{EXACT, Expr, Sample, Size, cases, oracle};
use common::{core, core_of, diagnose, evaluate, for_bytes, inputs, typed, typed_in};

/// Choices made of bytes; the simplest ones where they end.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn below(&mut self, most: usize) -> usize {
        self.0.next().map_or(0, |byte| usize::from(*byte) % most.max(1))
    }
}

/// A program in full TeIL whose every expression may have the left side of a law around it.
fn planted(bytes: &[u8]) -> Sample {
    let (shape, program) = bytes.split_at(bytes.len() / 3);
    let mut choices = Choices(shape.iter());
    let mut sample = Sample::in_mode(Notation::Teil, &mut arbitrary::Unstructured::new(program));
    for at in 0..sample.stmts.len() {
        let old = sample.stmts[at].1.clone();
        let mut new = old.clone();
        plant(&sample, &mut choices, &mut new);
        sample.stmts[at].1 = new;
        // Values that f64 has exactly are worth more than another law.
        if sample.magnitude() > EXACT {
            sample.stmts[at].1 = old;
        }
    }
    sample
}

fn plant(sample: &Sample, choices: &mut Choices<'_>, expr: &mut Expr) {
    // The operand of a power has to keep its parentheses.
    let keep = matches!(expr, Expr::Paren(_));
    for part in expr.parts_mut() {
        plant(sample, choices, part);
    }
    if keep || choices.below(3) != 1 {
        return;
    }
    let Some(shape) = oracle::shapes(sample, expr).and_then(|all| all.last().cloned()) else { return };
    let rank = shape.len();
    if rank > 5 || shape.iter().product::<i64>() > 500 {
        return;
    }
    let e = Box::new(std::mem::replace(expr, Expr::Var(0)));
    let inside = |expr: Expr, choices: &mut Choices<'_>| match choices.below(3) {
        0 => Box::new(expr),
        1 => Box::new(Expr::Paren(Box::new(expr))),
        _ => Box::new(Expr::Paren(Box::new(Expr::Paren(Box::new(expr))))),
    };
    let at = 1 + choices.below(rank + 1);
    let n = Size::literal([2, 1, 3][choices.below(3)]);
    let two = |choices: &mut Choices<'_>| {
        let i = 1 + choices.below(rank);
        let j = 1 + (i + choices.below(rank - 1)) % rank;
        (i, j)
    };
    let copies = |choices: &mut Choices<'_>, e| inside(Expr::Expa(at, n, e), choices);
    *expr = match choices.below(8) {
        0 => {
            let m = Size::literal(1 + choices.below(n.plus as usize) as i64);
            Expr::Proj(at, m, copies(choices, e))
        }
        1 if rank >= 2 => {
            let (i, j) = two(choices);
            let inner = inside(Expr::Transp(vec![(j, i)], e), choices);
            Expr::Transp(vec![(i, j)], inner)
        }
        // A diagonal that is there: a copy of a dimension, before the transposition and after it.
        2 if rank >= 1 => {
            let i = 1 + choices.below(rank);
            let j = i + 1 + choices.below(rank + 1 - i);
            let size = Size::literal(shape[i - 1]);
            if !literal(sample, &e, i) {
                *expr = *e;
                return;
            }
            let mut inner = inside(Expr::Expa(j, size, e), choices);
            if choices.below(2) == 1 {
                inner = inside(Expr::Transp(vec![(i, j)], inner), choices);
            }
            if choices.below(2) == 1 { Expr::Diag(i, j, inner) } else { Expr::Diag(j, i, inner) }
        }
        // A contraction, and a copy instead of the dimension that it takes.
        3 if rank >= 1 => {
            let i = 1 + choices.below(rank);
            let j = i + 1 + choices.below(rank + 1 - i);
            if !literal(sample, &e, i) {
                *expr = *e;
                return;
            }
            let size = Size::literal(shape[i - 1]);
            let mut inner = inside(Expr::Expa(j, size, e), choices);
            if choices.below(2) == 1 {
                inner = inside(Expr::Transp(vec![(j, i)], inner), choices);
            }
            Expr::Expa(i, size, inside(Expr::Contr(vec![(i, j)], inner), choices))
        }
        4 => Expr::Red(ReduceOp::Sum, at, copies(choices, e)),
        5 => Expr::Red(ReduceOp::Prod, at, copies(choices, e)),
        6 => Expr::Red(ReduceOp::Min, at, copies(choices, e)),
        7 => Expr::Red(ReduceOp::Max, at, copies(choices, e)),
        _ => *e,
    };
}

/// Whether a dimension of an expression has the size that it has by number, for all sizes.
fn literal(sample: &Sample, expr: &Expr, position: usize) -> bool {
    let of = |expr: &Expr| {
        let mut single = sample.clone();
        single.symbols.iter_mut().for_each(|symbol| symbol.value += 1);
        oracle::shapes(&single, expr).and_then(|all| all.last().map(|shape| shape[position - 1]))
    };
    of(expr) == oracle::shapes(sample, expr).and_then(|all| all.last().map(|shape| shape[position - 1]))
}

/// What rewriting makes of a program: well-typed, of the same inputs and outputs, smaller.
fn simplified(original: &Typed, strict: bool) -> (Typed, Vec<Applied>) {
    let (program, applied) = original.simplified(strict);
    let text = program.to_string();
    let mut complaints = Diagnostics::new();
    let Some(after) = algebra::check(program, &mut complaints) else {
        panic!("ill-typed:\n{}\n{text}\n{:?}", original.program, complaints.into_sorted())
    };
    assert_eq!((after.inputs(), after.outputs()), (original.inputs(), original.outputs()));
    assert!(after.program.exprs.len() <= original.program.exprs.len() - applied.len().min(1));
    let shapes = |typed: &Typed| {
        let shape = |id| typed.shape(id).len();
        typed.program.stmts.iter().map(|stmt| shape(stmt.value)).collect::<Vec<_>>()
    };
    assert_eq!(shapes(&after), shapes(original));
    // Nothing is left to do, and the text says the same.
    let (again, more) = after.simplified(strict);
    assert!(more.is_empty(), "{more:?}\n{text}");
    assert_eq!(again.to_string(), text);
    if original.program.notation != Notation::Model {
        assert_eq!(typed(&text).program.to_string(), text);
    }
    (after, applied)
}

/// At the sample's sizes, there are no more operations.
fn no_dearer(before: &Program, after: &Program, sizes: &[(Name, i64)]) {
    let value = |name: Name| sizes.iter().find(|(n, _)| *n == name).map(|(_, size)| *size);
    let count = |program: &Program| program.operations().ok()?.eval(&value).ok();
    let (Some(old), Some(new)) = (count(before), count(after)) else { return };
    assert!(new <= old, "{new} > {old}\n{before}\n{after}");
}

#[test]
fn laws_keep_types_and_values() {
    let seen: RefCell<BTreeMap<&str, usize>> = RefCell::default();
    let show = |bytes: &[u8]| planted(bytes).text();
    for_bytes(cases(), 71, show, |bytes| {
        let sample = planted(bytes);
        let original = typed(&sample.text());
        let (after, applied) = simplified(&original, false);
        for Applied { law, .. } in &applied {
            *seen.borrow_mut().entry(law.name).or_default() += 1;
        }
        let (old, new) = (core(&original), core(&after));
        no_dearer(&old, &new, &sample.sizes());
        let field = Field { seed: 3 };
        let bits = |at: usize| (Name::new(sample.name(at)), sample.bits(at).map(|bits| Element::reduce(*bits)));
        let given = || sample.inputs().into_iter().map(bits).collect::<Vec<_>>();
        assert_eq!(
            evaluate(&new, &field, &sample.sizes(), given()),
            evaluate(&old, &field, &sample.sizes(), given()),
            "{old}\n{new}"
        );
        let exact = |program| evaluate(program, &Rational, &sample.sizes(), inputs(&sample, Exact::from));
        assert_eq!(exact(&new), exact(&old), "{old}\n{new}");
        // Integers wrap, and are a ring.
        let whole = |typed| {
            let elements = |at: usize| sample.bits(at).map(|bits| Scalar::I32(*bits as i32));
            let given = sample.inputs().into_iter().map(|at| (Name::new(sample.name(at)), elements(at))).collect();
            evaluate(&core_of(typed, "generated", ElemType::I32), &Machine, &sample.sizes(), given)
        };
        assert_eq!(whole(&after), whole(&original));
    });
    let seen = seen.into_inner();
    for law in &LAWS {
        assert!(seen.contains_key(law.name), "{} was never applied: {seen:?}", law.name);
    }
}

/// A float with which roundings, signs of zero, infinities and NaNs show.
fn float(bits: u64) -> f64 {
    match bits % 16 {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3 => -0.0,
        4 => 0.1,
        5 => f64::MIN_POSITIVE / 8.0,
        _ => f64::from(bits as u32) / 7.0 - 1e8,
    }
}

#[test]
fn exact_laws_keep_every_bit() {
    let count = RefCell::new(0);
    let show = |bytes: &[u8]| planted(bytes).text();
    for_bytes(cases(), 72, show, |bytes| {
        let sample = planted(bytes);
        let original = typed(&sample.text());
        let (after, applied) = simplified(&original, true);
        assert!(applied.iter().all(|applied| applied.law.exact));
        *count.borrow_mut() += applied.len();
        let run = |typed: &Typed| {
            let elements = |at: usize| sample.bits(at).map(|bits| Scalar::F64(float(*bits)));
            let given = sample.inputs().into_iter().map(|at| (Name::new(sample.name(at)), elements(at))).collect();
            let outputs = evaluate(&core(typed), &Machine, &sample.sizes(), given);
            let bits = |value: &Scalar| match value {
                Scalar::F64(value) if value.is_nan() => f64::NAN.to_bits(),
                Scalar::F64(value) => value.to_bits(),
                _ => 0,
            };
            let all = |(name, tensor): (Name, Tensor<Scalar>)| (name, tensor.map(bits));
            outputs.into_iter().map(all).collect::<Vec<_>>()
        };
        assert_eq!(run(&after), run(&original), "{}\n{}", original.program, after.program);
    });
    assert!(count.into_inner() > 100);
}

/// Where the condition does not hold, or the positions are others, nothing is rewritten; where typing refuses the left
/// side, it is no program.
#[test]
fn without_its_condition_a_law_is_not_applied() {
    let program = |declared: &str, expr: &str| {
        format!("alloc A : [2, 2]\nalloc v : [n]\nalloc {declared}\nwhere n <= 3\ny = {expr}\n")
    };
    for (declared, expr) in [
        ("y : [3]", "proj 1 1 (expa 2 3 (proj 1 1 (A)))"),
        ("y : [2, 3]", "proj 1 1 (expa 3 3 A)"),
        ("y : [2]", "diag 1 2 (expa 1 2 (proj 1 1 A))"),
        ("y : [2, 2]", "diag 1 2 (transp 1 3 (expa 2 2 A))"),
        ("y : [2]", "contr 1 2 (transp 2 3 (expa 2 2 A))"),
        ("y : [2, 2]", "transp 1 2 A"),
        ("y : [3]", "red+ 1 (expa 2 3 v)"),
        ("y : [3]", "redmin 1 (expa 2 3 v)"),
        ("y : [n]", "n * v"),
        ("y : [n]", "v ^ n"),
        ("y : [n]", "2 * v"),
    ] {
        let text = program(declared, expr);
        let (found, complaints) = diagnose(&text);
        let Some(found) = found else { panic!("{text}{complaints:?}") };
        let (_, applied) = found.simplified(false);
        assert!(applied.is_empty(), "{expr}: {applied:?}");
    }
    for expr in
        ["proj 1 4 (expa 1 3 A)", "proj 1 n (expa 1 2 A)", "redmin 1 (expa 1 0 A)", "redmax 1 (expa 1 (n - 1) A)"]
    {
        assert!(diagnose(&program("y : [2, 2]", expr)).0.is_none(), "{expr}");
    }
}

/// Several pairs at once, which only the model language writes: any two lists of pairs.
#[test]
fn lists_of_pairs_cancel() {
    let lists = ["[1 2]", "[[1 2] [3 4]]", "[[4 3] [2 1]]", "[[1 3] [2 4]]", "[[3 1]]", "[[1 4] [2 3]]", "[2 4]"];
    let mut applied_to = 0;
    for outer in lists {
        for inner in lists {
            for (operator, shape) in [("^", "[n n n n]"), (".", if outer.starts_with("[[") { "[]" } else { "[n n]" })] {
                let shape = if outer == "[[3 1]]" && operator == "." { "[n n]" } else { shape };
                let text = format!("var A : [n n n n]\nvar y : {shape}\ny = (A ^ {inner}) {operator} {outer}\n");
                let original = typed_in(Notation::Model, &text);
                let (after, applied) = simplified(&original, true);
                applied_to += applied.len();
                let given = || {
                    let value = |at: usize| -> Result<Exact, ()> { Ok(Exact::from((at * at % 17) as i64)) };
                    let mut at = 0;
                    let next = |_: usize| {
                        at += 1;
                        value(at)
                    };
                    vec![("A".into(), Tensor::from_fn(vec![3; 4], next).unwrap().unwrap())]
                };
                let run = |typed: &Typed| evaluate(&core(typed), &Rational, &[("n".into(), 3)], given());
                assert_eq!(run(&after), run(&original), "{text}{}", after.program);
            }
        }
    }
    assert!(applied_to >= 30, "{applied_to}");
}

/// Rewriting is one pass: deep and long programs are nothing special.
#[test]
fn depth_and_length_cost_little() {
    let deep = |n: usize| format!("alloc A : [2, 2]\nalloc y : [2, 2]\ny = {}A\n", "proj 1 1 expa 1 2 ".repeat(n));
    let original = typed(&deep(50_000));
    let (after, applied) = original.simplified(false);
    assert_eq!((after.exprs.len(), applied.len()), (1, 50_000));
    let odd = format!("alloc A : [2, 2]\nalloc y : [2, 2]\ny = {}A\n", "transp 1 2 ".repeat(99_999));
    let (after, _) = typed(&odd).simplified(false);
    assert_eq!(after.exprs.len(), 2);
    let mut long = String::from("alloc A : [2]\nalloc y : [2]\n");
    long += &"y = red+ 1 (expa 1 3 (add A y))\n".repeat(50_000);
    let (after, applied) = typed(&long).simplified(false);
    assert_eq!((after.exprs.len(), applied.len()), (200_000, 50_000));
}
