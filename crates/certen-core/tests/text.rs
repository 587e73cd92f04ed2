//! What people read and write: exact texts, places of mistakes, texts of any depth, and texts that mean nothing.

use certen_core::{Binary, ElemType, Literal, Program, Term, TermId, Terms, Unary, parse_program, print_term};
use certen_index::Facts;
use certen_syntax::{Diagnostic, Sources};
use proptest::prelude::*;

fn read(text: &str) -> Result<Program, Vec<Diagnostic>> {
    let mut sources = Sources::new();
    let file = sources.add("t.core", text);
    parse_program(&sources, file).map_err(|found| found.into_sorted())
}

/// Printed as it was written.
#[track_caller]
fn stays(text: &str) {
    match read(text) {
        Ok(program) => assert_eq!(program.to_string(), text),
        Err(errors) => panic!("{errors:#?}"),
    }
}

/// An expression over f64 data `a`, `b`, `c` (scalars), `x` (a vector), `A` (a matrix) and truth values `p`, `q`.
fn with_expression(expression: &str) -> String {
    format!(
        "core t\nsize n\nwhere n >= 1\ninput a : f64[]\ninput b : f64[]\ninput c : f64[]\ninput p : bool[]\n\
         input q : bool[]\ninput x : f64[n]\ninput A : f64[n, n]\nr = {expression}\noutput r\n"
    )
}

#[test]
fn a_program_reads_as_it_is_written() {
    stays(
        "core matmul
size l, m, n
where l >= 1, m >= 1, n >= 1
input A : f64[l, m]
input B : f64[m, n]
C = gen i1 in 0..l. gen i2 in 0..n. sum k1 in 0..m. A[i1, k1] * B[k1, i2]
output C
",
    );
    stays(
        "core heat
size n, k
where n >= 3, k >= 0 || n <= 9
input u : f32[n]
r = iterate t in 0..k (v = u) then (v = gen i in 0..n. if i == 0 then v[i] else f32(0.5) * v[i - 1]) give v
s = gen i in 0..n. guard(i <= 2, r[i])
output y = s
output r
output u
",
    );
    stays("core empty\n");
}

#[test]
fn expressions_read_as_they_are_written() {
    for expression in [
        "a + b - c",
        "table.f64[2, 2](1.0, -0.0, 5e-324, inf)[0, 1]",
        "table.i64[3](1, -2, min)[2]",
        "table.bool[2](true, false)[n - 1]",
        "table.f32[1](0.1)[0] * table.f32[1](-3.0)[0]",
        "gen i in 0..3. table.u8[3](0, 7, 255)[i]",
        "table.f64[0]()",
        "table.f64[2, 0, 3]()",
        "a - (b - c)",
        "a * (b + c)",
        "(a + b) * c",
        "a / b / c",
        "a / (b * c)",
        "-a * b",
        "-(a * b)",
        "--a",
        "a - -b",
        "-x[0]",
        "!p && q",
        "!(p && q)",
        "p || q && p",
        "(p || q) && p",
        "(a < b) == (b <= c)",
        "a < b && b <= c || a != c",
        "a + (sum i in 0..n. x[i] + a)",
        "(sum i in 0..n. x[i]) + a",
        "sum i in 0..n where i <= 1 || i >= 3. x[i]",
        "max(sum i in 0..n. x[i], a)",
        "minimum i in 0..n. maximum j in i..n. A[i, j]",
        "product i in 1..5. index.f64(i) * 2.0",
        "all i in 0..n. any j in 0..n. A[i, j] < 1e300",
        "(gen i in 0..n. x[i])[0]",
        "(if n <= 2 then x else x)[0]",
        "A[0][n - 1]",
        "transpose(A)[0, n - 1]",
        "split(4, x)",
        "flatten(split(4, pad_r(3, pad_l(n, x))))",
        "trunc_l(1, trunc_r(2, concat(x, A[0])))",
        "let y = gen i in 0..n. x[i] in gen j in 0..n. y[j]",
        "let y = let z = a in z * z in y + y",
        "if n <= 4 then if n <= 2 then a else b else c",
        "iterate i in 0..2*n (s = a, t = if n <= 2 then b else c) then (s = t, t = s + t) give t",
        "iterate i in 0..n (s = a) then (s = iterate j in 0..i + 1 (t = s) then (t = t * index.f64(i - j)) give t) give s",
        "select(a < b, exp(a), controlled_div(a, b))",
        "fma(a + b, -x[0], fma(1.0, b, c)) * a",
        "pow(min(a, b), 17.0)",
        "cast.f32(a)",
        "cast.i32(cast.u8(p))",
        "undefined.f64",
        "index.i64(2 - n)",
        "f64(-2.0) + -2.0",
        "f64(-0.0) + 0.0",
        "f64(nan) + f64(inf) + f64(-inf) + 5e-324",
        "mod(floor_div(7, i64(-7)), i64(min))",
        "cast.f64(i32(-2147483648)) + cast.f64(u8(255))",
        "f32(0.1) * f32(nan) * f32(-inf) * f32(3.4028235e38)",
        "select(true, 1, 2) + index.i64(n)",
    ] {
        stays(&with_expression(expression));
    }
}

#[test]
fn other_spellings_are_understood() {
    for (written, printed) in [
        ("((a)) + ((b))", "a + b"),
        ("a > b", "b < a"),
        ("pow(a, 0.0)", "1.0"),
        ("pow(a + b, 1.0)", "a + b"),
        ("pow(a, 3.0)", "a * a * a"),
        ("pow(a, 4.0)", "a * a * (a * a)"),
        ("pow(a, -2.0) + pow(b, f64(-1.0))", "1.0 / (a * a) + 1.0 / b"),
        ("pow(f32(0.5), f32(2.0))", "f32(0.5) * f32(0.5)"),
        ("pow(a, 0.5) + pow(a, -17.0) + pow(a, index.f64(2))", "pow(a, 0.5) + pow(a, -17.0) + pow(a, index.f64(2))"),
        ("a >= b", "b <= a"),
        ("a + sum i in 0..n. x[i]", "a + (sum i in 0..n. x[i])"),
        ("-sum i in 0..n where true. x[i] * 2.0", "-(sum i in 0..n. x[i] * 2.0)"),
        ("f64(2) + f64(1e0)", "2.0 + 1.0"),
        ("i64(3)", "3"),
        (
            "iterate n times (s = a) then (s = iterate 2 times (t = s) then (t = t + s) give t) give s",
            "iterate step in 0..n (s = a) then (s = iterate step_1 in 0..2 (t = s) then (t = t + s) give t) give s",
        ),
        ("a\n  + b // the sum\n  - c", "a + b - c"),
        ("if 0 <= n < 3 then a else b + c", "if n >= 0 && n <= 2 then a else b + c"),
    ] {
        assert_eq!(read(&with_expression(written)).unwrap().to_string(), with_expression(printed));
    }
}

#[test]
fn a_tensor_may_have_any_name() {
    stays(
        "core core
size in, where
input gen : f64[in]
input exp : f64[where]
input true : f64[]
input = gen then in 0..in. @gen[then] + @true
output = let sum = exp in @sum
if = iterate times in 0..in (then = @true, else = @true) then (then = else, else = then) give then
output output
output if
",
    );
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (expression, code, place) in [
        ("a +", "E0701", "output"),
        ("a + * b", "E0103", "* b"),
        ("(a + b", "E0103", "output"),
        ("max(a)", "E0103", ")\n"),
        ("max(a, b, c)", "E0103", ", c"),
        ("foo(a)", "E0103", "foo"),
        ("if n <= 2 then a", "E0103", "output"),
        ("let y = a", "E0103", "output"),
        ("sum i in 0..n x[i]", "E0103", "x[i]"),
        ("gen i in 0..n where i < 2. x[i]", "E0103", "where i"),
        ("iterate n times (s = a) then (t = s) give s", "E0103", "t = s"),
        ("iterate n times (s = a) then (s = s) give t", "E0701", "t\n"),
        ("iterate i in 1..n (s = a) then (s = s) give s", "E0103", "1.."),
        ("iterate i in 0..n (s = x[i]) then (s = s) give s", "E0701", "i])"),
        ("u8(2.5)", "E0103", "2.5"),
        ("u8(256)", "E0701", "u8(256)"),
        ("cast.f16(a)", "E0103", "f16"),
        ("y", "E0701", "y\n"),
        ("n", "E0701", "n\n"),
        ("gen i in 0..n. i", "E0701", "i\n"),
        ("(gen i in 0..n. x[i])[i]", "E0701", "i]\n"),
        ("x[n, a]", "E0701", "a]"),
        ("a + p", "E0701", "+ p"),
        ("a + x", "E0701", "+ x"),
        ("transpose(x)", "E0701", "transpose"),
        ("x[0, 0]", "E0701", "[0, 0]"),
        ("split(0, x)", "E0701", "split"),
        ("fma(a, b)", "E0103", ")\n"),
        ("table.f64[2](1.0)", "E0701", "table"),
        ("table.f64[](1.0)", "E0701", "table"),
        ("table.u8[1](256)", "E0701", "table"),
        ("table.f64[1](true)", "E0103", "true"),
        ("table.f64[n](1.0)", "E0103", "n]"),
        ("table.f64[2](1.0 2.0)", "E0103", "2.0)"),
        ("table.f64[1](1.0) + a", "E0701", "+ a"),
        ("fma(1, 2, 3)", "E0701", "fma"),
        ("fma(a, f32(1.0), b)", "E0701", "fma"),
        ("fma(a, x, b)", "E0701", "fma"),
    ] {
        let text = with_expression(expression);
        let errors = read(&text).expect_err(expression);
        let span = errors[0].primary.as_ref().unwrap().span;
        assert_eq!(errors[0].code.to_string(), code, "{expression}: {}", errors[0].message);
        let body = text.find("r = ").unwrap() + 4;
        let expected = body + text[body..].find(place).unwrap();
        assert_eq!(span.start as usize, expected, "{expression}: {}", errors[0].message);
    }
    for (text, code) in [
        ("", "E0103"),
        ("core", "E0103"),
        ("core t\noutput y\n", "E0701"),
        ("core t\nsize n, n\n", "E0701"),
        ("core t\ninput x : f64[n]\n", "E0701"),
        ("core t\ninput x : f64[]\nx = x\n", "E0701"),
        ("core t\nx = 1.0 2.0\n", "E0103"),
        ("core t\nx = 99999999999999999999\n", "E0102"),
    ] {
        assert_eq!(read(text).unwrap_err()[0].code.to_string(), code, "{text}");
    }
}

const DEEP: usize = 100_000;

fn deep(build: impl FnOnce(&mut Terms, TermId) -> TermId) -> String {
    let mut terms = Terms::new(Facts::new());
    let leaf = terms.add(Term::Literal(Literal::Float(1.0), ElemType::F64)).unwrap();
    let term = build(&mut terms, leaf);
    print_term(&terms, term)
}

#[test]
fn depth_costs_no_stack() {
    let left =
        deep(|terms, leaf| (0..DEEP).fold(leaf, |sum, _| terms.add(Term::Binary(Binary::Add, sum, leaf)).unwrap()));
    let right =
        deep(|terms, leaf| (0..DEEP).fold(leaf, |sum, _| terms.add(Term::Binary(Binary::Add, leaf, sum)).unwrap()));
    let calls = deep(|terms, leaf| (0..DEEP).fold(leaf, |a, _| terms.add(Term::Unary(Unary::Exp, a)).unwrap()));
    let signs = deep(|terms, leaf| (0..DEEP).fold(leaf, |a, _| terms.add(Term::Unary(Unary::Neg, a)).unwrap()));
    assert_eq!(left, format!("1.0{}", " + 1.0".repeat(DEEP)));
    assert_eq!(right, format!("{}1.0 + 1.0{}", "1.0 + (".repeat(DEEP - 1), ")".repeat(DEEP - 1)));
    let sums: String = (0..DEEP).map(|at| format!("sum k{at} in 0..2. ")).collect();
    let lets: String = (0..DEEP).map(|at| format!("let t{at} = a in ")).collect();
    let choices = "if n <= 2 then a else ".repeat(DEEP);
    let nested = format!("{}a{}", "if n <= 2 then ".repeat(DEEP), " else a".repeat(DEEP));
    for expression in [left, right, calls, signs, sums + "a", lets + "a", choices + "a", nested] {
        stays(&with_expression(&expression));
    }
    let parentheses = format!("{}a{}", "(".repeat(DEEP), ")".repeat(DEEP));
    assert_eq!(read(&with_expression(&parentheses)).unwrap().to_string(), with_expression("a"));
    assert!(read(&with_expression(&"(".repeat(DEEP))).is_err());
    assert!(read(&with_expression(&"if n <= 2 then ".repeat(DEEP))).is_err());
}

#[test]
fn many_bindings_are_no_burden() {
    let bindings: String = (1..DEEP).map(|at| format!("t{at} = t{} + a\n", at - 1)).collect();
    stays(&format!("core t\ninput a : f64[]\nt0 = a\n{bindings}output t{}\n", DEEP - 1));
}

const WORDS: &[&str] = &[
    "core",
    "t",
    "size",
    "n",
    "where",
    "input",
    "output",
    "a",
    "x",
    "gen",
    "sum",
    "all",
    "i",
    "in",
    "if",
    "then",
    "else",
    "let",
    "iterate",
    "times",
    "give",
    "guard",
    "split",
    "concat",
    "select",
    "exp",
    "min",
    "cast",
    "index",
    "undefined",
    "f64",
    "f32",
    "i64",
    "u8",
    "bool",
    "true",
    "nan",
    "inf",
    "0",
    "1",
    "2.5",
    "1e30",
    "9223372036854775807",
    "(",
    ")",
    "[",
    "]",
    "..",
    ".",
    ",",
    "=",
    ":",
    "+",
    "-",
    "*",
    "/",
    "<",
    "<=",
    ">",
    "==",
    "!=",
    "&&",
    "||",
    "!",
    "@",
    "{",
    "#",
    "\n",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn texts_without_meaning_are_errors_and_nothing_worse(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..40),
    ) {
        let words = words.join(" ");
        for text in [words.clone(), with_expression(&words), words.replace(' ', "")] {
            if let Ok(program) = read(&text) {
                let printed = program.to_string();
                prop_assert_eq!(read(&printed).map(|p| p.to_string()), Ok(printed));
            }
        }
    }

    #[test]
    fn a_damaged_program_is_an_error_or_another_program(
        at in any::<prop::sample::Index>(), word in prop::sample::select(WORDS), cut in 0usize..3,
    ) {
        let text = with_expression(
            "let y = gen i in 0..n. if i <= 2 then guard(i == 1, x[i]) else select(a < b, f64(-2.0), exp(-a)) in \
             iterate n times (s = y, t = x) then (s = t, t = pad_l(1, trunc_l(1, s))) give t",
        );
        let mut tokens: Vec<&str> = text.split_inclusive([' ', '(', ')', '[', ']', ',', '\n', '.']).collect();
        let at = at.index(tokens.len() - 3);
        tokens.splice(at..at + cut, [word, " "]);
        if let Ok(program) = read(&tokens.concat()) {
            let printed = program.to_string();
            prop_assert_eq!(read(&printed).map(|p| p.to_string()), Ok(printed));
        }
    }
}

/// What is shared counts once, and what no output needs does not count.
#[test]
fn operations_are_those_of_the_program() {
    let iterate = |give: &str| {
        format!(
            "iterate t in 0..k (x = a, y = b) then (x = let s = gen i in 0..n. x[i] * y[i] in gen i in 0..n. s[i] + x[i], \
             y = let s = gen i in 0..n. x[i] * y[i] in gen i in 0..n. s[i] + y[i]) give {give}"
        )
    };
    let program = |outputs: &str| {
        let (x, y) = (iterate("x"), iterate("y"));
        let head = "core t\nsize k, n\nwhere k >= 0, n >= 0\ninput a : f64[n]\ninput b : f64[n]";
        read(&format!("{head}\nu = {x}\nv = {y}\nw = gen i in 0..n. a[i] * b[i]\n{outputs}")).unwrap()
    };
    let counts = |program: &Program| {
        let [all, products] = [program.operations(), program.multiplications()].map(|count| count.unwrap().to_string());
        (all, products)
    };
    let both = program("output u\noutput v\n");
    assert_eq!(counts(&both), ("3*k*n".into(), "k*n".into()));
    assert_eq!(counts(&program("output u\n")), counts(&both));
    assert_eq!(counts(&program("output w\n")), ("n".into(), "n".into()));
}
