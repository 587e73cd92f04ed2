//! What each construct is read as, shown by printing it; places; limits; house style.

use certen_lang::ast::{ExprKind, File};
use certen_lang::format::format;
use certen_lang::parse::{MAX_NESTING, parse, parse_block_text, parse_expr};
use certen_syntax::{Diagnostics, Sources, render};

fn messages(sources: &Sources, diagnostics: &Diagnostics) -> String {
    diagnostics.iter().map(|diagnostic| render(sources, diagnostic, false)).collect()
}

fn read(text: &str) -> File {
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let mut diagnostics = Diagnostics::new();
    let tree = parse(sources.get(file).unwrap(), file, &mut diagnostics);
    assert_eq!(messages(&sources, &diagnostics), "");
    tree
}

/// The expression that a text is, printed, and the errors.
fn read_expr(text: &str) -> (Option<String>, Vec<String>) {
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let mut diagnostics = Diagnostics::new();
    let expr = parse_expr(sources.get(file).unwrap(), file, &mut diagnostics);
    (expr.map(|expr| expr.to_string()), diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect())
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(read_expr(text), (Some(expected.to_owned()), vec![]), "{text}");
}

/// Every operator in parentheses, which shows how an expression was read.
fn shape(expr: &certen_lang::ast::Expr) -> String {
    match &expr.kind {
        ExprKind::Binary(op, left, right) => format!("({} {} {})", shape(left), op.symbol(), shape(right)),
        ExprKind::Unary(_, operand) => format!("(u {})", shape(operand)),
        ExprKind::Select(tensor, _) => format!("({}[])", shape(tensor)),
        _ => expr.to_string(),
    }
}

#[track_caller]
fn check_shape(text: &str, expected: &str) {
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let mut diagnostics = Diagnostics::new();
    let expr = parse_expr(sources.get(file).unwrap(), file, &mut diagnostics);
    assert_eq!(messages(&sources, &diagnostics), "");
    assert_eq!(shape(&expr.unwrap()), expected);
}

#[test]
fn operators_bind_as_the_reference_says() {
    check_shape("a || b && c", "(a || (b && c))");
    check_shape("a && b < c", "(a && (b < c))");
    check_shape("a < b ++ c", "(a < (b ++ c))");
    check_shape("a ++ b + c ++ d", "((a ++ (b + c)) ++ d)");
    check_shape("a - b - c", "((a - b) - c)");
    check_shape("a + b * c @ d / e", "(a + (((b * c) @ d) / e))");
    check_shape("-a * b", "((u a) * b)");
    check_shape("-a^2", "(u (a ^ 2))");
    check_shape("!a == b", "((u a) == b)");
    check_shape("a^-2 * b", "((a ^ (u 2)) * b)");
    check_shape("-x[0]", "(u (x[]))");
    check_shape("x[0][1]^2", "(((x[])[]) ^ 2)");
}

#[test]
fn parentheses_are_printed_where_they_are_needed() {
    check("(a + b) + c", "a + b + c");
    check("a + (b + c)", "a + (b + c)");
    check("((a)) * (b + c)", "a * (b + c)");
    check("(a * b) + c", "a * b + c");
    check("(-a)^2", "(-a)^2");
    check("-(a^2)", "-a^2");
    check("(a^2)^3", "(a^2)^3");
    check("-(-a)", "--a");
    check("!(a && b)", "!(a && b)");
    check("(a < b) == (c < d)", "(a < b) == (c < d)");
    check("(a + b)[0]", "(a + b)[0]");
    check("if c { a } else { b } + 1", "(if c { a } else { b }) + 1");
    check("{ [i] -> i }[0]", "{ [i] -> i }[0]");
}

#[test]
fn every_kind_of_expression() {
    check("9223372036854775807", "9223372036854775807");
    check("1e300+2.50", "1e300 + 2.5");
    check("true||false", "true || false");
    check("[ ]", "[]");
    check("[1,[2,x],]", "[1, [2, x]]");
    check("x[i+1,2*j]", "x[i+1, 2*j]");
    check("x[., j, ..., iv]", "x[., j, ..., iv]");
    check("x[[i+1, j]]", "x[[i + 1, j]]");
    check("x[a..b] + x[a..] + x[..b]", "x[a..b] + x[a..] + x[..b]");
    check("x[1..n-1]", "x[1..n-1]");
    check("f()", "f()");
    check("sum(x,axis=[0,2])", "sum(x, axis = [0, 2])");
    check("f64(i) + bool(x)", "f64(i) + bool(x)");
    check(r#"einsum("ij,jk->ik", A, B)"#, r#"einsum("ij,jk->ik", A, B)"#);
    check(r#"f("a\"b\\")"#, r#"f("a\"b\\")"#);
    check("if i < n { x[i] } else { 0 }", "if i < n { x[i] } else { 0 }");
    check("if a { 1 } else if b { 2 } else { 3 }", "if a { 1 } else if b { 2 } else { 3 }");
    check("if a { 1 } else { if b { 2 } else { 3 } }", "if a { 1 } else if b { 2 } else { 3 }");
    check("{ x }", "{ x }");
    check("{ let a: f64[n] = x; let (b, c) = f(a); b }", "{\n    let a: f64[n] = x;\n    let (b, c) = f(a);\n    b\n}");
}

#[test]
fn comprehensions() {
    check("{ iv -> x[iv] }", "{ iv -> x[iv] }");
    check("{[i,.,j,...]->x}", "{ [i, ., j, ...] -> x }");
    check("{ [] -> 1; }", "{ [] -> 1 }");
    check("{ [i, r...] -> x | 0 <= [i, r...] < n }", "{ [i, r...] -> x | 0 <= [i, r...] < n }");
    check("{ [i, ., r...] -> x | 0 <= [i, r] < n }", "{ [i, ., r...] -> x | 0 <= [i, r...] < n }");
    check("{ [i, j] -> x | i < n, 1 <= j <= m }", "{ [i, j] -> x | i < n, 1 <= j <= m }");
    check("{ [i] -> x | n > i >= 0 }", "{ [i] -> x | 0 <= i < n }");
    check("{ [i] -> x | n > i }", "{ [i] -> x | i < n }");
    check("{ [i] -> x | i >= 1 }", "{ [i] -> x | 1 <= i }");
    check("{ iv -> x | . <= iv < . }", "{ iv -> x | . <= iv < . }");
    check("{ [i] -> a || b | [i] < [n] }", "{ [i] -> a || b | [i] < [n] }");
    check("{ i -> 1 | i < [2]; j -> 2 | j < [3] }", "{\n    i -> 1 | i < [2];\n    j -> 2 | j < [3];\n}");
    check("{ [i] -> { [j] -> x[i, j] | i < j } }", "{ [i] -> { [j] -> x[i, j] | i < j } }");
}

#[test]
fn with_loops_and_iterations() {
    check("with { } : genarray(s, 0)", "with { } : genarray(s, 0)");
    check("with{(0<=iv<n):x[iv];}:genarray(s)", "with { (0 <= iv < n) : x[iv] } : genarray(s)");
    check("with { (n > [i, j] >= .) : 1 } : modarray(a)", "with { (. <= [i, j] < n) : 1 } : modarray(a)");
    for op in ["+", "*", "min", "max", "&&", "||", "lse"] {
        let text = format!("with {{ ([0] <= iv < [n]) : x[iv] }} : fold({op}, 0)");
        check(&text, &text);
    }
    check(
        "with { ([0] <= [i] < [1]) : a; ([1] <= [i] < [2]) : b } : modarray(x)",
        "with {\n    ([0] <= [i] < [1]) : a;\n    ([1] <= [i] < [2]) : b;\n} : modarray(x)",
    );
    check("iterate k times u = x { u + 1 }", "iterate k times u = x { u + 1 }");
    check("iterate k times (u = x) { u + 1 }", "iterate k times u = x { u + 1 }");
    check("iterate t < k u = x { u + t }", "iterate t < k u = x { u + t }");
    check("iterate t < k (u = x, v = y) { (v, u) }", "iterate t < k (u = x, v = y) { (v, u) }");
    check("iterate t < f(k) (u = x, v = y) { (v, u) }", "iterate t < f(k) (u = x, v = y) { (v, u) }");
}

#[test]
fn declarations() {
    let text = r#"import "a.ten";
const G = 9.81;
const N: i64 = 8;

fn f(x: f64[h-2, 2*n, 3], y: any[s...], z: num[d:s], w: float[d>0:s], v: u8[., *, +], k: size, i: size[d])
    -> f64
{
    1
}
"#;
    let printed = read(text).to_string();
    assert_eq!(
        printed,
        r#"import "a.ten";
const G = 9.81;
const N: i64 = 8;

fn f(
    x: f64[h-2, 2*n, 3],
    y: any[s...],
    z: num[d:s],
    w: float[d>0:s],
    v: u8[., *, +],
    k: size,
    i: size[d]
) -> f64 {
    1
}
"#
    );
    let one_line = r"fn g(a: f64, b: f64) -> (q: f64, r: f64) associative(-1e300) where n >= 1, m == n {
    (a, b)
}
";
    assert_eq!(read(one_line).to_string(), one_line);
}

/// Words that only other languages know are names like any other.
#[test]
fn words_of_other_languages_are_names() {
    for word in ["for", "while", "loop", "lambda", "not", "and", "or", "as", "mut", "then", "elif", "def", "T", "in"] {
        let text = format!("fn f({word}: f64) {{\n    let x: f64 = {word} + {word}^2;\n    {word}\n}}\n");
        assert_eq!(read(&text).to_string(), text);
        let text =
            format!("fn {word}() {{\n    let {word}: f64 = {word}({word}, {word} = {word}[{word}]);\n    {word}\n}}\n");
        assert_eq!(read(&text).to_string(), text);
    }
}

#[test]
fn everything_of_the_language_is_read() {
    let text = include_str!("everything.ten");
    let printed = read(text).to_string();
    assert_eq!(read(&printed).to_string(), printed);
}

#[test]
fn long_lines_are_broken() {
    let sum = (0..20).map(|i| format!("x[{i}]*y[{i}]")).collect::<Vec<_>>().join(" + ");
    let numbers = (0..60).map(|i| i.to_string()).collect::<Vec<_>>().join(", ");
    let printed = read(&format!("const A = {sum}; const B = [{numbers}];")).to_string();
    assert!(printed.lines().all(|line| line.len() <= 100), "{printed}");
    assert_eq!(printed.lines().count(), 20 + 5, "{printed}");
}

#[test]
fn places_are_exact() {
    let text = "a +  f( x [ 1 .. 2 ] , axis = 0 )^2";
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let expr = parse_expr(sources.get(file).unwrap(), file, &mut Diagnostics::new()).unwrap();
    assert_eq!(sources.snippet(expr.span), text);
    let ExprKind::Binary(_, left, right) = &expr.kind else { panic!("{expr}") };
    assert_eq!([sources.snippet(left.span), sources.snippet(right.span)], ["a", "f( x [ 1 .. 2 ] , axis = 0 )^2"]);
    let ExprKind::Binary(_, call, exponent) = &right.kind else { panic!("{expr}") };
    assert_eq!([sources.snippet(call.span), sources.snippet(exponent.span)], ["f( x [ 1 .. 2 ] , axis = 0 )", "2"]);
    let ExprKind::Call(_, args, _) = &call.kind else { panic!("{expr}") };
    assert_eq!(sources.snippet(args[0].span), "x [ 1 .. 2 ]");
}

#[test]
fn a_text_for_evaluation_may_end_in_a_binding() {
    let block = |text: &str| {
        let mut sources = Sources::new();
        let file = sources.add("t.ten", text);
        let mut diagnostics = Diagnostics::new();
        let block = parse_block_text(sources.get(file).unwrap(), file, &mut diagnostics);
        assert_eq!(block.is_some(), !diagnostics.has_errors());
        block.map(|block| (block.lets.len(), block.results.len()))
    };
    assert_eq!(block("1 + 2"), Some((0, 1)));
    assert_eq!(block("let a = 1; let b = a; (a, b)"), Some((2, 2)));
    assert_eq!(block("let a = 1;"), Some((1, 0)));
    assert_eq!(block(""), Some((0, 0)));
    assert_eq!(block("let a = 1"), None);
    assert_eq!(block("a b"), None);
}

/// Each kind of nesting, so many levels deep.
fn nested(levels: usize) -> Vec<(&'static str, String)> {
    let wrap = |open: &str, inner: &str, close: &str| open.repeat(levels) + inner + &close.repeat(levels);
    vec![
        ("parentheses", wrap("(", "x", ")")),
        ("lists", wrap("[", "x", "]")),
        ("calls", wrap("f(", "x", ")")),
        ("blocks", wrap("{", "x", "}")),
        ("comprehensions", wrap("{i->", "x", "}")),
        ("minus", wrap("-", "x", "")),
        ("sums", wrap("", "x", "+x")),
        ("selections", wrap("", "x", "[0]")),
        ("indices", wrap("x[", "0", "]")),
        ("choices", wrap("if c {1} else ", "{2}", "")),
        ("with-loops", wrap("with {} : modarray(", "x", ")")),
    ]
}

fn on_large_stack(test: fn()) {
    std::thread::Builder::new().stack_size(64 << 20).spawn(test).unwrap().join().unwrap();
}

#[test]
fn nesting_is_limited() {
    on_large_stack(|| {
        for (what, text) in nested(MAX_NESTING - 1) {
            let (printed, errors) = read_expr(&text);
            assert_eq!(errors, Vec::<String>::new(), "{what}");
            assert!(printed.is_some(), "{what}");
        }
        for levels in [MAX_NESTING + 1, 100_000] {
            for (what, text) in nested(levels) {
                let expected = format!("expressions are nested more than {MAX_NESTING} levels deep here");
                assert_eq!(read_expr(&text), (None, vec![expected]), "{what}");
            }
        }
        // Brackets that are never closed, and deep ones of several kinds.
        for open in ["(", "[", "{", "f(", "x[", "{[i]->", "-", "if ", "iterate t < ", "with{(", "{let a=", "(-{[x["] {
            let (tree, errors) = read_expr(&open.repeat(50_000));
            assert!(tree.is_none() && errors.len() == 1, "{open}: {errors:?}");
        }
    });
}

/// No pass is quadratic: this would take hours.
#[test]
fn long_texts_are_read_printed_and_formatted() {
    on_large_stack(long_texts);
}

fn long_texts() {
    let lets: String = (0..100_000).map(|i| format!("let x{i} = f(x[{i}], {{ [i] -> i | i < {i} }});\n")).collect();
    let file = read(&format!("fn f(x: f64[n]) {{\n{lets}x0\n}}"));
    assert_eq!(file.to_string().lines().count(), 100_003);
    let one_line = format!("const A = [{}];", vec!["[1, (2)]"; 100_000].join(", "));
    let mut sources = Sources::new();
    let file = sources.add("t.ten", one_line.as_str());
    assert_eq!(format(sources.get(file).unwrap(), file).unwrap(), one_line + "\n");
    // Mistakes in every line.
    let file = sources.add("t.ten", format!("fn f(x: f64[n]) {{\n{}x }}", "let a = ( ; {\n".repeat(50_000)));
    let mut diagnostics = Diagnostics::new();
    parse(sources.get(file).unwrap(), file, &mut diagnostics);
    assert!(diagnostics.has_errors());
}

#[track_caller]
fn check_format(text: &str, expected: &str) {
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let styled = format(sources.get(file).unwrap(), file).unwrap_or_else(|d| panic!("{}", messages(&sources, &d)));
    assert_eq!(styled, expected);
}

#[test]
fn house_style() {
    check_format("", "");
    check_format(
        "\n\n // only a remark  \r\n\n",
        r"// only a remark
",
    );
    check_format(
        r#"import   "a.ten" ;// path



const  W=[1,2 ,
3 ,-4];
"#,
        r#"import "a.ten";  // path

const W = [1, 2,
    3, -4];
"#,
    );
    check_format(
        r"derive  g   from f{tile ( 32,n * 2-1 ) at i # 2 in{ gen i in 0 .. n . x[ i * 2,_ ]*y } ;// one
backwards beta
everywhere;}
derivation   t ( a,b ){}",
        r"derive g from f {
    tile(32, n*2 - 1) at i#2 in { gen i in 0..n. x[i*2, _] * y };  // one
    backwards beta
        everywhere;
}
derivation t(a, b) { }
",
    );
    check_format(
        r"fn f( x:f64[h - 2,d > 0 : s, d : s,s ...,.,*,+] ,k : size[ d ])->f64[n]
where n>=1,
m==n
{
x}",
        r"fn f(x: f64[h-2, d>0:s, d:s, s..., ., *, +], k: size[d]) -> f64[n]
    where n >= 1,
    m == n
{
    x }
",
    );
    check_format(
        r"fn f(x: f64){
// before
let (a,b)=f( x,axis=0 ) ;    // behind
let c = a
+ b^ - 2 - -a[ .. 3];



 c
// end
}",
        r"fn f(x: f64) {
    // before
    let (a, b) = f(x, axis = 0);  // behind
    let c = a
        + b^-2 - -a[..3];

    c
    // end
}
",
    );
    check_format(
        r"const A = with{(. <=iv< .):x[iv];
( 0<=[ i,r ... ]<n ):{
1}
}:genarray( shape(x),0 );",
        r"const A = with { (. <= iv < .) : x[iv];
    (0 <= [i, r...] < n) : {
        1 }
} : genarray(shape(x), 0);
",
    );
    check_format(
        r"const A = f(g({ [i] ->
x[i+1 , 2 * j]
}));
const B = iterate t<k(u=a,v = b){(u,v)};",
        r"const A = f(g({ [i] ->
    x[i+1, 2*j]
}));
const B = iterate t < k (u = a, v = b) { (u, v) };
",
    );
    check_format(
        r"const A = if !a&&b{1}
else   if c{2}else{
3
};",
        r"const A = if !a && b { 1 }
else if c { 2 } else {
    3
};
",
    );
}

#[test]
fn what_is_no_program_is_not_formatted() {
    let mut sources = Sources::new();
    for text in ["fn", "const A = (;", "const A = 1 \u{20ac};", "const A = \"open;"] {
        let file = sources.add("t.ten", text);
        assert!(format(sources.get(file).unwrap(), file).is_err(), "{text}");
    }
}
