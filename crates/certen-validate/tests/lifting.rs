//! Programs that lifting changes, and how: what it makes agrees with what was written.

use certen_core::{Binary, Binding, Program, Term, parse_program};
use certen_lift::{FACTORED, Lifted, lift};
use certen_syntax::{Name, Sources};
use certen_validate::{Agreement, agree};

fn read(text: &str) -> Program {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}"))
}

/// A program over these tensors and scalars; `body` binds `y`.
fn core(body: &str) -> Program {
    read(&format!(
        "core t\nsize m, n, p\nwhere m >= 1, n >= 1, p >= 1\ninput A : f64[m, n]\ninput B : f64[n, p]\n\
         input C : f64[p, m]\ninput x : f64[n]\ninput v : f64[m]\ninput c : f64[]\n{body}\noutput y\n"
    ))
}

/// Lifts, checks what holds of every lifting, and gives the bindings as text, without the interface.
fn lifted(program: &Program) -> (Vec<String>, [String; 2]) {
    let lifted = lift(program);
    lifted.program.check().unwrap_or_else(|error| panic!("{error}\n{}", lifted.program));
    let found = agree(program, &lifted.program, 1_000_000);
    assert!(matches!(found, Agreement::Agrees { elements: 1.., .. }), "{found:?}\n{program}\n{}", lifted.program);
    let text = lifted.program.to_string();
    let bindings = text.lines().filter(|line| line.contains(" = ") && !line.starts_with("output"));
    let count = |program: &Program| program.multiplications().unwrap().to_string();
    (bindings.map(str::to_owned).collect(), [count(program), count(&lifted.program)])
}

#[track_caller]
fn becomes(body: &str, expected: &[&str], counts: [&str; 2]) {
    let (bindings, found) = lifted(&core(body));
    assert_eq!(bindings, expected);
    assert_eq!(found, counts);
}

#[track_caller]
fn stays(body: &str) {
    let program = core(body);
    assert_eq!(lift(&program).program.to_string(), program.to_string());
    assert!(lift(&program).report.contractions.is_empty());
}

fn interpolation(sizes: &str, [n, m]: [&str; 2]) -> Program {
    read(&format!(
        "core interp\n{sizes}input A : f64[{n}, {m}]\ninput B : f64[{n}, {m}]\ninput C : f64[{n}, {m}]\n\
         input u : f64[{m}, {m}, {m}]\nw = gen i in 0..{n}. gen j in 0..{n}. gen k in 0..{n}. sum a in 0..{m}. \
         sum b in 0..{m}. sum c in 0..{m}. A[i, a] * (B[j, b] * (C[k, c] * u[a, b, c]))\noutput w\n"
    ))
}

#[test]
fn interpolation_becomes_three_single_contractions() {
    let (bindings, counts) = lifted(&interpolation("", ["8", "8"]));
    assert_eq!(counts, ["786432", "12288"]);
    assert_eq!(
        bindings,
        [
            "t1 = gen j1 in 0..8. gen j2 in 0..8. gen j3 in 0..8. sum l1 in 0..8. C[j1, l1] * u[j2, j3, l1]",
            "t2 = gen j1 in 0..8. gen j2 in 0..8. gen j3 in 0..8. sum l1 in 0..8. B[j1, l1] * t1[j2, j3, l1]",
            "w = gen i in 0..8. gen j in 0..8. gen k in 0..8. sum a in 0..8. A[i, a] * t2[j, k, a]",
        ]
    );
    let report = lift(&interpolation("", ["8", "8"])).report.to_string();
    assert_eq!(
        report,
        "in w: 4 factors, A B C u\n  t1 = C u over c, t2 = B t1 over b, w = A t2 over a\n  \
         multiplications: 786432 as written, 12288 lifted\nsums are factored, as `--fp relaxed` allows where that saves \
         operations: something in between may overflow that does not as written\n"
    );
}

#[test]
fn interpolation_for_all_sizes() {
    let (_, counts) = lifted(&interpolation("size n\nwhere n >= 1\n", ["n", "n"]));
    assert_eq!(counts, ["3*n*n*n*n*n*n", "3*n*n*n*n"]);
    let (_, counts) = lifted(&interpolation("size m, n\nwhere m >= 1, n >= 1\n", ["n", "m"]));
    assert_eq!(counts, ["3*m*m*m*n*n*n", "m*m*m*n + m*m*n*n + m*n*n*n"]);
    // Also where sizes can be 0.
    let (_, counts) = lifted(&interpolation("size m, n\n", ["n", "m"]));
    assert_eq!(counts, ["3*m*m*m*n*n*n", "m*m*m*n + m*m*n*n + m*n*n*n"]);
}

#[test]
fn nothing_is_factored_where_nothing_is_saved() {
    // A sum of one element, and one that may be empty, where the factor would be multiplied all the same.
    for (sizes, m) in [("size n\n", "1"), ("size m, n\n", "m")] {
        let text = |elem: &str| {
            format!(
                "core t\n{sizes}input z : {elem}[{m}, n]\ninput x : {elem}[n]\n\
             y = gen k in 0..n. sum i in 0..{m}. z[i, k] * x[k]\noutput y\n"
            )
        };
        let program = read(&text("f64"));
        let Lifted { program: lifted, report } = lift(&program);
        assert_eq!(lifted.to_string(), program.to_string());
        assert!(report.contractions.is_empty() && !report.factors_floats());
    }
    let two = |elem: &str| {
        lift(&read(&format!(
            "core t\nsize n\ninput z : {elem}[2, n]\ninput x : {elem}[n]\n\
         y = gen k in 0..n. sum i in 0..2. z[i, k] * x[k]\noutput y\n"
        )))
        .report
    };
    assert!(two("f64").factors_floats() && two("f64").to_string().ends_with(&format!("{FACTORED}\n")));
    assert!(!two("i64").factors_floats() && !two("i64").contractions.is_empty());
}

#[test]
fn scalar_factors_leave_the_sum() {
    becomes(
        "y = gen i in 0..m. sum k in 0..n. c * A[i, k]",
        &["y = gen i in 0..m. c * (sum k in 0..n. A[i, k])"],
        ["m*n", "m"],
    );
    becomes(
        "y = gen i in 0..m. gen j in 0..p. sum k in 0..n. A[i, k] * B[k, j] * v[i]",
        &["y = gen i in 0..m. gen j in 0..p. (sum k in 0..n. A[i, k] * B[k, j]) * v[i]"],
        ["2*m*n*p", "m*n*p + m*p"],
    );
}

#[test]
fn nested_sums_are_one_contraction() {
    // Both sums use k; they stay apart.
    becomes(
        "y = sum i in 0..m. v[i] * (sum k in 0..n. A[i, k] * x[k]) * (sum k in 0..p. C[k, i] * c)",
        &[
            "t1 = sum l1 in 0..m. v[l1] * (sum l2 in 0..n. A[l1, l2] * x[l2]) * (sum l3 in 0..p. C[l3, l1])",
            "y = t1 * c",
        ],
        ["2*m + m*n + m*p", "2*m + m*n + 1"],
    );
}

#[test]
fn equal_temporaries_are_shared() {
    becomes(
        "z = gen i in 0..m. gen j in 0..m. sum k in 0..n. A[i, k] * x[k] * v[j]\n\
         y = gen a in 0..m. gen b in 0..m. (sum l in 0..n. A[b, l] * x[l] * v[a]) + z[a, b]",
        &[
            "t1 = gen j1 in 0..m. sum l1 in 0..n. A[j1, l1] * x[l1]",
            "z = gen i in 0..m. gen j in 0..m. t1[i] * v[j]",
            "y = gen a in 0..m. gen b in 0..m. t1[b] * v[a] + z[a, b]",
        ],
        ["4*m*m*n", "2*m*m + m*n"],
    );
}

#[test]
fn a_square_is_one_factor() {
    becomes(
        "y = gen i in 0..m. (sum k in 0..n. x[k] * x[k]) * (sum k in 0..n. x[k] * x[k])",
        &["t1 = sum l1 in 0..n. x[l1] * x[l1]", "y = gen i in 0..m. t1 * t1"],
        ["m + m*n", "m + n"],
    );
    becomes(
        "y = sum k in 0..n. c * pow(x[k] * v[0], 4.0)",
        &["y = c * (sum k in 0..n. x[k] * v[0] * (x[k] * v[0]) * (x[k] * v[0] * (x[k] * v[0])))"],
        ["4*n", "3*n + 1"],
    );
}

#[test]
fn a_sum_that_is_a_factor_twice_has_two_indices() {
    becomes(
        "y = gen i in 0..m. (sum k in 0..n. x[k] * c) * v[i] * (sum k in 0..n. x[k] * c)",
        &["t1 = (sum l1 in 0..n. x[l1]) * c", "t2 = t1 * t1", "y = gen i in 0..m. t2 * v[i]"],
        ["2*m + 2*m*n", "m + 2"],
    );
}

/// Two sums that differ in their ranges only.
#[test]
fn equal_bodies_under_different_ranges() {
    becomes(
        "y = (sum k in 0..1. c * c) + (sum k in 0..7. c * c)",
        &["y = (sum k in 0..1. c * c) + c * c * index.f64(7)"],
        ["8", "3"],
    );
}

#[test]
fn what_is_recomputed_is_bound_once() {
    becomes(
        "y = gen i in 0..m. v[i] + (sum k in 0..n. x[k] * x[k])",
        &["t1 = sum l1 in 0..n. x[l1] * x[l1]", "y = gen i in 0..m. v[i] + t1"],
        ["m*n", "n"],
    );
    // Inside an opaque factor: the maximum depends on i and k, the sum in it on k.
    becomes(
        "y = gen i in 0..m. sum k in 0..p. C[k, i] * max(v[i], sum l in 0..n. x[l] * B[l, k])",
        &[
            "t1 = gen j1 in 0..p. sum l1 in 0..n. x[l1] * B[l1, j1]",
            "y = gen i in 0..m. sum k in 0..p. C[k, i] * max(v[i], t1[k])",
        ],
        ["m*n*p + m*p", "m*p + n*p"],
    );
}

#[test]
fn the_sum_of_a_constant() {
    // Shown to be no more only if the size is at least 2.
    let program = read("core t\ninput x : f64[5]\ny = sum k in 0..7. sum l in 0..5. x[l] * x[l]\noutput y\n");
    let (bindings, counts) = lifted(&program);
    assert_eq!(bindings, ["y = (sum l in 0..5. x[l] * x[l]) * index.f64(7)"]);
    assert_eq!(counts, ["35", "6"]);
    becomes(
        "y = sum k in 0..m. sum l in 0..n. x[l] * x[l]",
        &["t1 = sum l1 in 0..n. x[l1] * x[l1]", "y = sum k in 0..m. t1"],
        ["m*n", "n"],
    );
}

#[test]
fn ranges_that_do_not_begin_at_zero() {
    let program = read(
        "core t\ninput A : f64[9, 9]\ninput x : f64[9]\ninput v : f64[9]\ny = gen i in 2..9. gen j in 0..5. \
         sum k in 3..7. A[i, k] * x[k] * v[j + 1]\noutput y\n",
    );
    let (bindings, _) = lifted(&program);
    assert_eq!(
        bindings,
        [
            "t1 = gen j1 in 2..9. sum l1 in 3..7. A[j1, l1] * x[l1]",
            "y = gen i in 2..9. gen j in 0..5. t1[i - 2] * v[j + 1]",
        ]
    );
}

#[test]
fn what_needs_no_fewer_multiplications_stays() {
    stays("y = gen i in 0..m. gen j in 0..p. sum k in 0..n. A[i, k] * B[k, j]");
    stays("y = gen i in 0..m. v[i] * (sum k in 0..n. A[i, k])");
    stays("y = gen i in 0..m. sum k in 0..n. A[i, k]");
    stays("y = gen i in 0..m. gen j in 0..m. v[i] * v[j]");
    stays("y = sum k in 0..1. c * c");
    // An order of minima is none of sums.
    stays("y = gen i in 0..m. minimum k in 0..n. A[i, k] * v[i] * c");
}

#[test]
fn nothing_leaves_what_makes_it_safe() {
    stays("y = gen i in 0..m. if i < 5 then sum k in 0..n. c * A[i, k] else f64(0.0)");
    stays("y = gen i in 0..m. guard(i < 5, sum k in 0..n. c * A[i, k])");
    stays("y = gen i in 0..m. let z = v[i] in sum k in 0..n. z * A[i, k]");
    stays("y = gen i in 0..m. sum k in 0..n where k < i. c * A[i, k]");
    // Triangular.
    stays("y = gen i in 0..m. sum k in 0..i. c * v[k]");
    stays("y = iterate 3 times (s = c) then (s = sum k in 0..n. s * c * x[k]) give s");
}

/// Where m can be 0, the last row exists only under an index that runs to m.
#[test]
fn a_read_stays_under_the_range_that_makes_it_safe() {
    let program = |least: i64, row: &str| {
        read(&format!(
            "core t\nsize m\nwhere m >= {least}\ninput A : f64[m, 5]\ninput D : f64[3, 5]\ninput v : f64[m]\n\
             y = gen i in 0..m. sum k in 0..5. v[i] * {row}\noutput y\n"
        ))
    };
    assert!(lift(&program(0, "A[m - 1, k]")).report.contractions.is_empty());
    let (bindings, _) = lifted(&program(1, "A[m - 1, k]"));
    assert_eq!(bindings, ["t1 = sum l1 in 0..5. A[m - 1, l1]", "y = gen i in 0..m. v[i] * t1"]);
    // What is in bounds by itself may leave.
    let (bindings, _) = lifted(&program(0, "D[2, k]"));
    assert_eq!(bindings, ["t1 = sum l1 in 0..5. D[2, l1]", "y = gen i in 0..m. v[i] * t1"]);
}

#[test]
fn names_of_the_program_are_not_taken() {
    let program = read(
        "core t\nsize m, n\nwhere m >= 1, n >= 1\ninput t1 : f64[m, n]\ninput j1 : f64[n]\ninput l1 : f64[m]\n\
         t2 = gen i in 0..m. gen j in 0..m. sum k in 0..n. t1[i, k] * j1[k] * l1[j]\noutput t2\n",
    );
    let (bindings, counts) = lifted(&program);
    assert_eq!(bindings.len(), 2);
    assert!(bindings[0].starts_with("t3 = gen j1_1 in 0..m. sum l1_1 in 0..n."), "{bindings:?}");
    assert_eq!(counts, ["2*m*m*n", "m*m + m*n"]);
}

/// Products of products: as many factors as there are leaves of a tree that is too large to write down.
#[test]
fn shared_terms_do_not_explode() {
    let program = core("y = sum k in 0..n. x[k] * c");
    let (mut terms, mut square) = (program.terms.clone(), program.bindings[0].term);
    for _ in 0..60 {
        square = terms.add(Term::Binary(Binary::Mul, square, square)).unwrap();
    }
    let program = Program { bindings: vec![Binding { name: Name::new("y"), term: square }], terms, ..program };
    lift(&program);
}

#[test]
fn programs_of_many_bindings_are_lifted() {
    let mut text = String::from("core t\nsize n\nwhere n >= 1\ninput A : f64[n, n]\ninput x0 : f64[n]\n");
    for at in 0..20_000 {
        text += &format!("x{} = gen i in 0..n. sum k in 0..n. A[i, k] * x{at}[k] * A[0, i] * A[1 - 1, 0]\n", at + 1);
    }
    text += "output x20000\n";
    let program = read(&text);
    let lifted = lift(&program);
    assert_eq!(lifted.report.contractions.len(), 20_000);
}
