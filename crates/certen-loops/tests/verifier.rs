//! What the verifier refuses, and why; what the parser refuses.

use certen_core::domain::{Machine, Partial, Scalar};
use certen_core::{EvalError, Tensor};
use certen_loops::{Interpreter, LoopProgram, parse_loops, verify};
use certen_syntax::{Code, Diagnostics, Sources};

fn parse(text: &str) -> Result<LoopProgram, Diagnostics> {
    let mut sources = Sources::new();
    let file = sources.add("t.loops", text);
    parse_loops(&sources, file)
}

const HEADER: &str = "loops f\nsize m, n\nwhere n >= 2\ninput x : f64[m, n]\ninput y : f64[n]\noutput z : f64[n]\n";

fn program(body: &str) -> LoopProgram {
    let text = format!("{HEADER}{body}");
    parse(&text).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

const FILL: &str = "for a in 0..n {\n    z[a] = 0.0\n}\n";

#[test]
fn well_formed_programs_are_accepted() {
    for body in [
        "for i in 0..n {\n z[i] = y[i]\n}\n",
        "for i in 0..n - 1 {\n z[i] = y[i + 1]\n}\n",
        "for i in 1..n {\n z[i - 1] = y[i]\n}\n",
        "z[0] = y[1]\n",
        "for i in 0..n {\n if i >= 1 {\n z[i] = y[i - 1]\n } else {\n z[i] = 0.0\n }\n}\n",
        "for i in 0..m {\n if i < n {\n z[i] = y[i]\n }\n}\n",
        "local a : f64\nfor k in 3..4 {\n a = 1.0\n}\nz[0] = a\n",
        "local a : f64\nfor k in 0..n {\n a = y[k]\n}\nz[0] = a\n",
        "local a : f64\nif m < n {\n a = 1.0\n} else {\n a = 2.0\n}\nz[0] = a\n",
        "alloc t : f64[m]\nfor i in 0..m {\n t[i] = 1.0\n}\nfree t\nz[0] = 1.0\n",
        "alloc t : f64[m]\nalloc u : f64[m]\nfor i in 0..m {\n t[i] = 1.0\n}\nswap t, u\nfree t\nfree u\nz[0] = 1.0\n",
        "for i in 0..n {\n local a : f64 = 1.0\n z[i] = a\n}\nfor i in 0..n {\n local a : f64 = 2.0\n z[i] = a\n}\n",
    ] {
        let program = program(body);
        let errors = verify(&program);
        assert!(errors.is_empty(), "{errors:?}\n{body}");
        let again = parse(&program.to_string()).unwrap();
        assert_eq!(again.to_string(), program.to_string());
    }
}

#[test]
fn ill_formed_programs_are_refused() {
    for (body, wanted) in [
        ("for i in 0..n {\n z[i] = y[i + 1]\n}\n", "the index i + 1 of y is not shown to be in 0..n"),
        ("for i in 0..n + 1 {\n z[i] = 0.0\n}\n", "the index i of z"),
        ("for i in 0..n {\n z[i] = y[i - 1]\n}\n", "the index i - 1 of y"),
        ("z[2] = 0.0\n", "the index 2 of z"),
        ("for i in 0..n {\n z[i] = x[i, i]\n}\n", "the index i of x is not shown to be in 0..m"),
        ("y[0] = 1.0\nz[0] = 1.0\n", "the input y is written"),
        ("nest z\n", "the output z is never written"),
        ("local a : f64\nz[0] = a\n", "a may be read before it is assigned"),
        ("local a : f64\na += 1.0\nz[0] = a\n", "a may be read before it is assigned"),
        ("local a : f64\nfor k in 0..m {\n a = 1.0\n}\nz[0] = a\n", "a may be read before"),
        ("local a : f64\nif m < n {\n a = 1.0\n}\nz[0] = a\n", "a may be read before"),
        ("alloc t : f64[3]\nz[0] = 1.0\n", "t is not freed"),
        ("alloc t : f64[3]\nfree t\nfree t\nz[0] = 1.0\n", "t is freed twice"),
        ("alloc t : f64[3]\nfree t\nz[0] = t[0]\n", "t is used after it was freed"),
        ("alloc t : f64[3]\nfree t\nt[0] = 1.0\nz[0] = 1.0\n", "t is used after it was freed"),
        ("free y\nz[0] = 1.0\n", "y is freed, but was not allocated"),
        ("alloc t : f64[3]\nif m < n {\n free t\n}\nz[0] = 1.0\n", "t is freed, but was not allocated in this block"),
        ("alloc t : f64[3]\nalloc u : f64[4]\nswap t, u\nfree t\nfree u\nz[0] = 1.0\n", "t and u are no two allocated"),
        ("alloc t : f64[3]\nswap t, t\nfree t\nz[0] = 1.0\n", "t and t are no two allocated"),
        ("alloc t : f64[]\nalloc u : f64[]\nswap t, u\nfree t\nfree u\nz[0] = 1.0\n", "t and u are no two allocated"),
        ("alloc t : f64[n]\nswap z, t\nfree t\nz[0] = 1.0\n", "z and t are no two allocated"),
        ("alloc t : f64[n]\nswap t, y\nfree t\nz[0] = 1.0\n", "t and y are no two allocated"),
        ("z[0, 1] = 1.0\n", "z has 1 dimensions, but 2 indices are given"),
        ("z[0] = 1\n", "z[0] has type f64, its value i64"),
        ("z[0] = sum k in 0..n. y[k]\n", "not made of scalar operations"),
        ("z[0] and= 1.0\n", "cannot be combined"),
        ("alloc t : f64[q]\nfree t\nz[0] = 1.0\n", "the size or index q is not in scope"),
    ] {
        let errors = verify(&program(body));
        assert!(errors.iter().any(|e| e.message.contains(wanted)), "{errors:?}\n{body}");
        assert!(errors.iter().all(|e| e.code == Code::E0702));
    }
}

#[test]
fn tables_are_read_like_inputs() {
    let header = format!("{HEADER}const K = table.f64[2, 3](1.0, 2.0, 3.0, 4.0, 5.0, 6.0)\n");
    let with = |body: &str| parse(&format!("{header}{body}")).unwrap_or_else(|errors| panic!("{errors:?}"));
    let good =
        with("for i in 0..n {\n    if i < 3 {\n        z[i] = K[1, i]\n    } else {\n        z[i] = 0.0\n    }\n}\n");
    assert!(verify(&good).is_empty(), "{:?}", verify(&good));
    assert!(good.to_string().contains("const K = table.f64[2, 3](1.0, 2.0, 3.0, 4.0, 5.0, 6.0)\n"));
    assert_eq!(parse(&good.to_string()).unwrap().to_string(), good.to_string());
    let ones = |shape: Vec<usize>| {
        let count = shape.iter().product();
        Tensor::new(shape, vec![Scalar::F64(1.0); count]).unwrap()
    };
    let inputs = [("x".into(), ones(vec![1, 4])), ("y".into(), ones(vec![4]))];
    let outputs = Interpreter::new(&good, &Machine, [("m".into(), 1), ("n".into(), 4)], inputs).unwrap().run().unwrap();
    assert_eq!(outputs[0].1.data(), [4.0, 5.0, 6.0, 0.0].map(Scalar::F64));
    for (body, wanted) in [
        ("K[0, 0] = 1.0\nz[0] = 1.0\n", "the constant K is written"),
        ("for i in 0..n {\n z[i] = K[0, i]\n}\n", "the index i of K is not shown to be in 0..3"),
        ("free K\nz[0] = 1.0\n", "K is freed, but was not allocated"),
        ("local K : f64 = 1.0\nz[0] = 1.0\n", "K is already in scope"),
        ("z[0] = table.f64[2](1.0, 2.0)[0]\n", "is not a scalar"),
    ] {
        let errors = match parse(&format!("{header}{body}")) {
            Ok(program) => verify(&program),
            Err(errors) => errors.into_sorted(),
        };
        assert!(errors.iter().any(|e| e.message.contains(wanted)), "{errors:?}\n{body}");
    }
    assert!(parse(&format!("{HEADER}const K = 1.0\n")).unwrap_err().into_sorted()[0].message.contains("K is no table"));
}

#[test]
fn a_counterexample_is_given() {
    let errors = verify(&program("for i in 0..n {\n z[i] = y[i + 1]\n}\n"));
    assert_eq!(errors[0].notes, ["it is not for i = 1, n = 2"]);
}

#[test]
fn texts_that_are_no_programs_are_refused() {
    let deep = format!("{FILL}{}z[0] = 0.0\n{}", "if m < n {\n".repeat(5000), "}\n".repeat(5000));
    for (body, code) in [
        ("for i in 0..n {\n", Code::E0103),
        ("}\n", Code::E0103),
        ("for i 0..n {}\n", Code::E0103),
        ("z[0] 1.0\n", Code::E0103),
        ("z[0] min 1.0\n", Code::E0103),
        ("local a = 3\n", Code::E0103),
        ("q = 1.0\n", Code::E0702),
        ("for n in 0..m {\n}\n", Code::E0702),
        ("alloc z : f64[2]\n", Code::E0702),
        ("z[0] = q[0]\n", Code::E0702),
        (deep.as_str(), Code::E0702),
    ] {
        let errors = parse(&format!("{HEADER}{body}")).unwrap_err();
        assert_eq!(errors.iter().next().unwrap().code, code, "{errors:?}");
    }
}

#[test]
fn words_of_the_language_can_be_names() {
    let text = "loops loops\nsize size, sum\nwhere size >= 1, sum >= 1\ninput where : f64[size]\ninput input : f64[]\n\
                output for : f64[size]\noutput if : f64[]\noutput free : f64[]\n\
                for k in 0..size {\n    for[k] = where[k]\n}\nif = 1.0\nif min= 2.0\nfree = input\nfree max= 1.0\n";
    let program = parse(text);
    // Core's own words need an `@` inside expressions, which the printer writes.
    let program = program.unwrap();
    assert_eq!(parse(&program.to_string()).unwrap().to_string(), program.to_string());
    assert!(verify(&program).is_empty());
}

fn run<D: certen_core::Domain>(domain: &D, body: &str, value: D::Value) -> Result<Vec<D::Value>, EvalError> {
    let program = program(body);
    let inputs = [
        ("x".into(), Tensor::new(vec![2, 3], vec![value.clone(); 6]).unwrap()),
        ("y".into(), Tensor::new(vec![3], vec![value; 3]).unwrap()),
    ];
    let outputs = Interpreter::new(&program, domain, [("m".into(), 2), ("n".into(), 3)], inputs)?.run()?;
    Ok(outputs[0].1.data().to_vec())
}

#[test]
fn the_interpreter_checks_by_itself() {
    let one = Scalar::F64(1.0);
    let outside = run(&Machine, "for i in 0..n {\n z[i] = y[i + 1]\n}\n", one).unwrap_err();
    assert!(matches!(&outside, EvalError::OutOfBounds(text) if text == "y[3], but its shape is [3]"), "{outside}");
    assert_eq!(run(&Machine, "z[0] = 1.0\n", one).unwrap_err().code(), Code::E0503);
    assert_eq!(run(&Machine, "alloc t : f64[3]\nz[0] = t[1]\nfree t\n", one).unwrap_err().code(), Code::E0503);
    assert_eq!(run(&Machine, "local a : f64\nz[0] = a\n", one).unwrap_err().code(), Code::E0503);
    // Memory may hold what has no value, as long as nobody reads it.
    let unread = "alloc t : f64[2]\nt[0] = undefined.f64\nt[1] = 1.0\nfor i in 0..n {\n z[i] = t[1]\n}\nfree t\n";
    assert_eq!(run(&Machine, unread, one).unwrap(), [one; 3]);
    assert_eq!(run(&Machine, &unread.replace("= t[1]", "= t[0]"), one).unwrap_err().code(), Code::E0503);
    let swapped =
        "alloc t : f64[1]\nalloc u : f64[1]\nt[0] = 1.0\nu[0] = 2.0\nswap t, u\nfor i in 0..n {\n z[i] = t[0]\n}\n";
    assert_eq!(run(&Machine, swapped, one).unwrap(), [Scalar::F64(2.0); 3]);
    let partial = run(&Partial(Machine), "z[1] = 1.0\n", Some(one)).unwrap();
    assert_eq!(partial, [None, Some(one), None]);
}
