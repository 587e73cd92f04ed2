//! Core of small trees, as text, and what it computes.

use certen_core::{Binary, ReduceOp, Unary};
use certen_index::{Cond, Ix};

use super::*;
use crate::typed::{Block, Call, Expr, Fold, FoldOp, Iterate, Kind, Let, Program, Rhs, Side};

fn unary(op: Unary, e: Expr) -> Expr {
    let ty = e.ty.clone();
    Expr { kind: Kind::Unary(op, Box::new(e)), ty, span: Default::default() }
}

fn call(function: usize, sizes: &[&str], args: Vec<Expr>, shape: &str) -> Expr {
    let sizes = sizes.iter().map(|size| ix(size)).collect();
    expr(Kind::Call(Box::new(Call { function, sizes, args })), shape)
}

fn maximum(e: Expr) -> Expr {
    let axes = (0..e.ty.rank()).collect();
    expr(Kind::Reduce(ReduceOp::Max, axes, Box::new(e)), "")
}

/// One function of x: f64[n] and y: f64[n], a: f64[n, m].
fn of(lets: Vec<Let>, result: Expr) -> Program {
    program(vec![function("f", "n,m", &[("x", "n"), ("y", "n"), ("a", "n,m")], lets, result)])
}

#[test]
fn entrywise_operations_are_one_generation() {
    let e = binary(Binary::Add, var("x", "n"), binary(Binary::Mul, var("y", "n"), number(2.0)));
    assert_eq!(core_text(&of(vec![], e)), ["result = gen i in 0..n. x[i] + y[i] * 2.0"]);
}

#[test]
fn a_table_is_one_term_however_large() {
    let terms = |size: usize| {
        let list = expr(Kind::Stack((0..size).map(|at| number(at as f64)).collect()), &size.to_string());
        let body = binary(Binary::Mul, at(list, "i"), at(var("x", "n"), "i"));
        let size = size.to_string();
        let e = comprehension(vec![partition("i", &[("0", size.as_str())], body)], &size);
        let mut program = of(vec![], e);
        passes::run(&mut program);
        let core = to_core(&program, "test".into()).unwrap();
        let names: Vec<&str> = core.bindings.iter().map(|binding| binding.name.as_str()).collect();
        assert_eq!(names, ["table", "result"]);
        core.terms.len()
    };
    assert_eq!(terms(8), terms(4096));
}

#[test]
fn a_costly_scalar_is_computed_once() {
    let e = binary(Binary::Div, var("x", "n"), sum(var("x", "n")));
    assert_eq!(core_text(&of(vec![], e)), ["v = sum i in 0..n. x[i]", "result = gen i in 0..n. x[i] / v"]);
    // softmax in one expression: the second sum is over elements that are pulled.
    let shifted = || unary(Unary::Exp, binary(Binary::Sub, var("x", "n"), maximum(var("x", "n"))));
    let e = binary(Binary::Div, shifted(), sum(shifted()));
    let text = core_text(&of(vec![], e));
    let last = text.last().unwrap();
    assert!(!last.contains("sum") && !last.contains("maximum"), "{text:#?}");
}

#[test]
fn a_reduction_of_each_row_is_bound_between_the_loops() {
    let row = expr(Kind::Reduce(ReduceOp::Sum, vec![1], Box::new(var("a", "n,m"))), "n");
    let body = binary(Binary::Div, at(var("a", "n,m"), "i,j"), at(row, "i"));
    let e = comprehension(vec![partition("i,j", &[("0", "n"), ("0", "m")], body)], "n,m");
    let p = of(vec![], e);
    assert_eq!(
        core_text(&p),
        ["result = gen i in 0..n. let v = guard(m >= 1, sum j in 0..m. a[i, j]) in gen j in 0..m. a[i, j] / v"]
    );
    assert_eq!(value(&p, &[("n", 1), ("m", 3)]), (vec![1, 3], vec![1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0]));
}

#[test]
fn what_is_read_several_times_is_stored() {
    let e = unary(Unary::Exp, var("x", "n"));
    let body = binary(Binary::Add, at(var("a", "n,m"), "i,j"), at(e, "i"));
    let e = comprehension(vec![partition("i,j", &[("0", "n"), ("0", "m")], body)], "n,m");
    let text = core_text(&of(vec![], e));
    assert_eq!(text.len(), 1, "{text:#?}");
    assert!(text[0].contains("let v = "), "{text:#?}");
    // Pulled once for each element: nothing is stored.
    let e = unary(Unary::Exp, var("x", "n"));
    let e = comprehension(vec![partition("i", &[("0", "n")], at(e, "i"))], "n");
    assert_eq!(core_text(&of(vec![], e)), ["result = gen i in 0..n. exp(x[i])"]);
}

#[test]
fn views_are_substituted_and_other_lets_are_bindings() {
    let rows = bind("t", expr(Kind::Transpose(Box::new(var("a", "n,m"))), "m,n"));
    let twice = bind("d", binary(Binary::Add, var("x", "n"), var("x", "n")));
    let body = binary(Binary::Mul, at(var("t", "m,n"), "j,i"), at(var("d", "n"), "i"));
    let e = comprehension(vec![partition("j,i", &[("0", "m"), ("0", "n")], body)], "m,n");
    assert_eq!(
        core_text(&of(vec![rows, twice], e)),
        ["d = gen i in 0..n. x[i] + x[i]", "result = gen j in 0..m. gen i in 0..n. a[i, j] * d[i]"]
    );
}

#[test]
fn calls_are_inlined_and_names_are_not_captured() {
    // fn shift(x: f64[k]) { let i = x + 1; { [j] -> i[j] * x[j] } }, called inside a comprehension over i and j.
    let inner = function(
        "shift",
        "k",
        &[("x", "k")],
        vec![bind("i", binary(Binary::Add, var("x", "k"), number(1.0)))],
        comprehension(
            vec![partition("j", &[("0", "k")], binary(Binary::Mul, at(var("i", "k"), "j"), at(var("x", "k"), "j")))],
            "k",
        ),
    );
    let called = call(0, &["m"], vec![at(var("a", "n,m"), "i")], "m");
    let body = sum(called);
    let e = comprehension(vec![partition("i", &[("0", "n")], body)], "n");
    let p = program(vec![inner, function("f", "n,m", &[("a", "n,m")], vec![], e)]);
    assert_eq!(value(&p, &[("n", 2), ("m", 2)]).1, [2.0 + 6.0, 12.0 + 20.0]);
}

#[test]
fn indices_beside_each_other_can_have_one_name() {
    // let w = { [i] -> x[i+1] }; { [i] -> w[0] * 10 + x[i] - fold(max, …, over i) }: w's own i ends where it is read.
    let mut w = comprehension(vec![partition("i", &[("0", "n-1")], at(var("x", "n"), "i+1"))], "n-1");
    w.ty = ty("n-1");
    let read = binary(Binary::Mul, at(var("w", "n-1"), "0"), number(10.0));
    let body = binary(Binary::Add, read, at(var("x", "n"), "i"));
    let again = binary(Binary::Add, body, binary(Binary::Mul, at(var("w", "n-1"), "1"), at(var("x", "n"), "i")));
    let e = comprehension(vec![partition("i", &[("0", "n")], again)], "n");
    let p = of(vec![bind("w", w)], e);
    assert_eq!(core_text(&p), ["result = gen i in 0..n. x[1] * 10.0 + x[i] + x[2] * x[i]"]);
    assert_eq!(value(&p, &[("n", 3), ("m", 0)]).1, [24.0, 28.0, 32.0]);
}

#[test]
fn partitions_become_conditions() {
    let p = of(
        vec![],
        comprehension(
            vec![
                partition(
                    "i",
                    &[("1", "n-1")],
                    binary(Binary::Add, at(var("x", "n"), "i-1"), at(var("x", "n"), "i+1")),
                ),
                partition("k", &[("0", "n")], at(var("x", "n"), "k")),
            ],
            "n",
        ),
    );
    assert_eq!(core_text(&p), ["result = gen k in 0..n. if k >= 1 && n >= k + 2 then x[k - 1] + x[k + 1] else x[k]"]);
    assert_eq!(value(&p, &[("n", 5), ("m", 0)]).1, [1.0, 4.0, 6.0, 8.0, 5.0]);
    assert_eq!(value(&p, &[("n", 1), ("m", 0)]).1, [1.0]);
}

#[test]
fn what_no_partition_covers_is_zero() {
    let p = of(vec![], comprehension(vec![partition("i", &[("2", "n")], at(var("a", "n,m"), "i"))], "n,m"));
    assert_eq!(value(&p, &[("n", 3), ("m", 2)]), (vec![3, 2], vec![0.0, 0.0, 0.0, 0.0, 5.0, 6.0]));
}

#[test]
fn a_hoisted_maximum_is_not_computed_over_nothing() {
    let body = binary(Binary::Sub, at(var("x", "n"), "i"), maximum(var("x", "n")));
    let p = of(vec![], comprehension(vec![partition("i", &[("0", "n")], body)], "n"));
    assert_eq!(value(&p, &[("n", 0), ("m", 0)]), (vec![0], vec![]));
    assert_eq!(value(&p, &[("n", 3), ("m", 0)]).1, [-2.0, -1.0, 0.0]);
}

fn fold(op: FoldOp, neutral: f64, generators: Vec<Generator>) -> Expr {
    expr(Kind::Fold(Box::new(Fold { generators, neutral: number(neutral), op })), "")
}

fn overlapping() -> Vec<Generator> {
    let first = generator(&[("i", "0", "2")], at(var("x", "n"), "i"));
    let second = generator(&[("j", "1", "n")], binary(Binary::Mul, number(10.0), at(var("x", "n"), "j")));
    vec![first, second]
}

fn with_two(result: Expr) -> Program {
    let mut p = of(vec![], result);
    p.functions[0].facts.push(Cond::le(&Ix::from(2), &Ix::var("n")).unwrap());
    p
}

#[test]
fn folds_take_each_index_once() {
    // x = 1, 2, 3, 4: the first generator has 1 and 2, the second 30 and 40.
    let value_of =
        |op, neutral| value(&with_two(fold(FoldOp::Reduce(op), neutral, overlapping())), &[("n", 4), ("m", 0)]).1;
    assert_eq!(value_of(ReduceOp::Sum, 0.0), [73.0]);
    assert_eq!(value_of(ReduceOp::Sum, 100.0), [173.0]);
    assert_eq!(value_of(ReduceOp::Prod, 2.0), [4800.0]);
    assert_eq!(value_of(ReduceOp::Max, 0.0), [40.0]);
    assert_eq!(value_of(ReduceOp::Min, 99.0), [1.0]);
    assert_eq!(value_of(ReduceOp::Min, -3.0), [-3.0]);
    // With n = 2 the second generator has nothing new.
    let none =
        |op, neutral| value(&with_two(fold(FoldOp::Reduce(op), neutral, overlapping())), &[("n", 2), ("m", 0)]).1;
    assert_eq!(none(ReduceOp::Max, 0.5), [2.0]);
    assert_eq!(none(ReduceOp::Sum, 0.0), [3.0]);
}

#[test]
fn a_maximum_over_nothing_is_the_neutral_element() {
    let all = || vec![generator(&[("i", "0", "n")], at(var("x", "n"), "i"))];
    let p = of(vec![], fold(FoldOp::Reduce(ReduceOp::Max), -1.0, all()));
    assert_eq!(value(&p, &[("n", 0), ("m", 0)]).1, [-1.0]);
    assert_eq!(value(&p, &[("n", 3), ("m", 0)]).1, [3.0]);
}

#[test]
fn folds_with_a_function_run_in_the_order_of_the_indices() {
    // so_far / 2 + element: the order matters.
    let op = || FoldOp::Function {
        so_far: "s".into(),
        element: "e".into(),
        next: binary(Binary::Add, binary(Binary::Div, var("s", ""), number(2.0)), var("e", "")),
        associative: false,
    };
    let p = with_two(fold(op(), 8.0, overlapping()));
    // 8 -> 5 -> 4.5 -> 32.25 -> 56.125
    assert_eq!(value(&p, &[("n", 4), ("m", 0)]).1, [56.125]);
    let matrix = vec![generator(&[("i", "1", "n"), ("j", "0", "m")], at(var("a", "n,m"), "i,j"))];
    let p = of(vec![], fold(op(), 0.0, matrix));
    // Rows 3 4 and 5 6: 3 -> 5.5 -> 7.75 -> 9.875
    assert_eq!(value(&p, &[("n", 3), ("m", 2)]).1, [9.875]);
    assert_eq!(value(&p, &[("n", 1), ("m", 2)]).1, [0.0]);
}

#[test]
fn folds_of_cells_are_entrywise() {
    let rows = || vec![generator(&[("i", "0", "n")], at(var("a", "n,m"), "i"))];
    let neutral = passes::with_loops::zeros(&ty("m"), Default::default());
    let f = Fold { generators: rows(), neutral: neutral.clone(), op: FoldOp::Reduce(ReduceOp::Sum) };
    let p = of(vec![], expr(Kind::Fold(Box::new(f)), "m"));
    assert_eq!(value(&p, &[("n", 2), ("m", 3)]), (vec![3], vec![5.0, 7.0, 9.0]));
    let op = FoldOp::Function {
        so_far: "s".into(),
        element: "e".into(),
        next: binary(Binary::Sub, var("e", "m"), var("s", "m")),
        associative: false,
    };
    let f = Fold { generators: rows(), neutral, op };
    let p = of(vec![], binary(Binary::Add, expr(Kind::Fold(Box::new(f)), "m"), number(1.0)));
    assert_eq!(value(&p, &[("n", 2), ("m", 3)]), (vec![3], vec![4.0, 4.0, 4.0]));
}

#[test]
fn iterations_know_their_step_and_carry_several_states() {
    let step = Expr { kind: Kind::Index(ix("t")), ty: ty(""), span: Default::default() };
    let iterate = Iterate {
        times: ix("3"),
        step: "t".into(),
        states: vec![("u".into(), var("x", "n")), ("v".into(), number(1.0))],
        body: Block {
            lets: vec![bind("w", binary(Binary::Mul, var("v", ""), number(2.0)))],
            results: vec![
                binary(Binary::Add, var("u", "n"), step),
                binary(Binary::Add, var("w", ""), sum(var("u", "n"))),
            ],
        },
    };
    let names = vec![("p".into(), ty("n")), ("q".into(), ty(""))];
    let p = of(vec![Let { names, value: Rhs::Iterate(iterate) }], binary(Binary::Mul, var("p", "n"), var("q", "")));
    // u: 1 2, 1 2, 2 3, 4 5; v: 1, 2 + 3 = 5, 10 + 3 = 13, 26 + 5 = 31.
    assert_eq!(value(&p, &[("n", 2), ("m", 0)]).1, [4.0 * 31.0, 5.0 * 31.0]);
}

#[test]
fn moved_elements() {
    let a = || Box::new(var("a", "n,m"));
    let x = || Box::new(var("x", "n"));
    let sizes = [("n", 2), ("m", 3)];
    let whole = |e: Expr| value(&of(vec![], e), &sizes);
    // Once as a term of its own, once pulled into an entrywise operation.
    let both = |e: Expr| {
        let pulled = whole(binary(Binary::Add, e.clone(), number(0.0)));
        assert_eq!(whole(e), pulled);
        pulled
    };
    assert_eq!(both(expr(Kind::Transpose(a()), "m,n")), (vec![3, 2], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
    assert_eq!(both(expr(Kind::Concat(x(), x()), "n+n")).1, [1.0, 2.0, 1.0, 2.0]);
    assert_eq!(both(expr(Kind::Pad(Side::Left, ix("1"), x()), "n+1")).1, [0.0, 1.0, 2.0]);
    assert_eq!(both(expr(Kind::Pad(Side::Right, ix("1"), x()), "n+1")).1, [1.0, 2.0, 0.0]);
    let padded = |side, k| Box::new(expr(Kind::Pad(side, ix(k), x()), &format!("n+{k}")));
    let cut = |side, k| both(expr(Kind::Trunc(side, ix("1"), padded(side, k)), if k == "1" { "n" } else { "n+1" }));
    assert_eq!(cut(Side::Left, "1").1, [1.0, 2.0]);
    assert_eq!(cut(Side::Left, "2").1, [0.0, 1.0, 2.0]);
    assert_eq!(cut(Side::Right, "2").1, [1.0, 2.0, 0.0]);
    // What is computed is not cut, whether it is asked for whole or by its elements.
    for e in [
        expr(Kind::Trunc(Side::Left, ix("1"), x()), "n-1"),
        binary(Binary::Add, expr(Kind::Trunc(Side::Left, ix("1"), x()), "n-1"), number(0.0)),
    ] {
        let mut program = with_two(e);
        passes::run(&mut program);
        assert_eq!(to_core(&program, "test".into()).map(|_| ()).unwrap_err().code, certen_syntax::Code::E0241);
    }
    let mut flat = expr(Kind::Flatten(a()), "");
    flat.ty = TensorType::new(ElemType::F64, vec![ix("n").mul(&ix("m")).unwrap()]);
    assert_eq!(both(flat.clone()).1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    flat.kind = Kind::Reshape(a());
    assert_eq!(both(flat.clone()).1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let blocks = expr(Kind::Split(2, Box::new(var("y", "n"))), "1,2");
    let mut p = of(vec![], binary(Binary::Add, blocks, number(0.0)));
    p.functions[0].facts.push(Cond::eq(&ix("n"), &ix("2")).unwrap());
    assert_eq!(value(&p, &sizes), (vec![1, 2], vec![1.0, 2.0]));
    // Pairs of rows: the last dimension stays, the others are counted.
    let f = |result| program(vec![function("f", "n", &[("b", "4,3,n")], vec![], result)]);
    let p = f(expr(Kind::Reshape(Box::new(var("b", "4,3,n"))), "2,6,n"));
    assert_eq!(core_text(&p).len(), 1);
    let (shape, values) = value(&p, &[("n", 2)]);
    assert_eq!(shape, [2, 6, 2]);
    assert_eq!(values, (1..=24).map(f64::from).collect::<Vec<f64>>());
}

#[test]
fn lists_are_read_at_indices() {
    let weights = |count: u32| {
        let parts = (1..=count).map(|n| number(f64::from(n))).collect();
        expr(Kind::Stack(parts), &count.to_string())
    };
    let row = |count: &str, w: Expr| {
        let body = binary(Binary::Mul, at(w, "i"), number(1.0));
        comprehension(vec![partition("i", &[("0", count)], body)], count)
    };
    assert_eq!(value(&of(vec![], row("3", weights(3))), &[("n", 0), ("m", 0)]).1, [1.0, 2.0, 3.0]);
    // A long list is stored, once.
    let p = of(vec![], row("6", weights(6)));
    assert_eq!(core_text(&p).len(), 2);
    assert_eq!(value(&p, &[("n", 0), ("m", 0)]).1, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(core_text(&of(vec![], at(weights(6), "4"))), ["result = 5.0"]);
}

#[test]
fn deep_expressions_and_calls() {
    let deep = || {
        let mut functions =
            vec![function("f0", "n", &[("x", "n")], vec![], binary(Binary::Add, var("x", "n"), number(1.0)))];
        for at in 1..1000 {
            let inner = call(at - 1, &["n"], vec![var("x", "n")], "n");
            functions.push(function(
                &format!("f{at}"),
                "n",
                &[("x", "n")],
                vec![],
                binary(Binary::Add, inner, number(1.0)),
            ));
        }
        assert_eq!(value(&program(functions), &[("n", 1)]).1, [1001.0]);
        let mut e = var("x", "n");
        for _ in 0..2000 {
            e = binary(Binary::Add, e, sum(var("y", "n")));
        }
        assert_eq!(value(&of(vec![], e), &[("n", 1), ("m", 0)]).1, [2001.0]);
    };
    std::thread::Builder::new().stack_size(256 << 20).spawn(deep).unwrap().join().unwrap();
}

#[test]
fn long_programs_take_time_in_proportion() {
    let long = || {
        // Every third statement is a view of the one before.
        let mut lets = Vec::new();
        let mut last = "x".to_owned();
        for count in 0..30_000 {
            let (name, index) = (format!("s{count}"), format!("i{count}"));
            let element = at(var(&last, "n"), &index);
            let value = match count % 3 {
                0 => binary(Binary::Add, var(&last, "n"), number(1.0)),
                1 => comprehension(vec![partition(&index, &[("0", "n")], element)], "n"),
                _ => binary(Binary::Add, var(&last, "n"), sum(var(&last, "n"))),
            };
            lets.push(bind(&name, value));
            last = name;
        }
        let p = of(lets, var(&last, "n"));
        assert_eq!(core_text(&p).len(), 30_000);
    };
    std::thread::Builder::new().stack_size(256 << 20).spawn(long).unwrap().join().unwrap();
}
