//! Scripts as texts: what is read, printed, and said of mistakes.

use certen_syntax::{Sources, lex, render_all};

use super::*;

/// Every declaration of a text, as `.ten` files have them, and the messages.
fn declarations(text: &str) -> (Vec<String>, String) {
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let mut diagnostics = Diagnostics::new();
    let tokens = lex(sources.get(file).unwrap(), file, &mut diagnostics);
    let mut cursor = Cursor::new(&tokens);
    let mut found = Vec::new();
    while !cursor.at_end() {
        match cursor.peek().word() {
            Some("derive") => found.extend(derivation(&mut cursor, &mut diagnostics).map(|it| it.to_string())),
            Some("derivation") => found.extend(tactic(&mut cursor, &mut diagnostics).map(|it| it.to_string())),
            _ => drop(cursor.take()),
        }
    }
    (found, messages(&sources, diagnostics))
}

fn steps_of(text: &str) -> (Option<Vec<ScriptStep>>, String) {
    let mut sources = Sources::new();
    let file = sources.add("steps", text);
    let mut diagnostics = Diagnostics::new();
    let steps = parse_steps(sources.get(file).unwrap(), file, &mut diagnostics);
    (steps, messages(&sources, diagnostics))
}

/// `line:column message`, one per line.
fn messages(sources: &Sources, diagnostics: Diagnostics) -> String {
    let all = diagnostics.into_sorted();
    assert_eq!(render_all(sources, &all, false).is_empty(), all.is_empty());
    let lines = all.iter().map(|error| {
        let (_, place) = sources.locate(error.primary.as_ref().unwrap().span).unwrap();
        format!("{}:{} {}", place.line, place.column, error.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_printed_is_what_was_read() {
    let text = "\
derive tiled from matmul {
    tile_gen(32, io, ii) at i;
    backwards beta({ x[_, 2*i + 1] }) at { A[i, k] * B[k, _] }#2 in j in result;
    guard_true(i >= 0 && i < n) at { gen i in 0..2*n. index.f64(2*i) * x[i] * guard(2*i < n, a * b) };
    bind(t, { let t = gen i in 8*io..8*io + 8. a * b in if 2*i < n then a * b else c }) at { trunc_r(2*n, a * b) };
    shift(2*floor_div(m, 4) - n) everywhere;
    inline at rows everywhere;
    fission;
}

derivation both(i, j) {
    swap_gens at i in j;
}

derivation none() { }
";
    let (all, errors) = declarations(text);
    assert_eq!(errors, "");
    assert_eq!(all.join("\n\n") + "\n", text);
}

#[test]
fn words_are_words_only_where_the_grammar_has_them() {
    let (all, errors) =
        declarations("derive from from at { in at at in in in everywhere everywhere; at(backwards,in); }");
    assert_eq!(errors, "");
    let printed = "derive from from at {\n    in at at in in in everywhere everywhere;\n    at(backwards, in);\n}";
    assert_eq!(all, [printed]);
}

#[test]
fn an_argument_is_an_index_a_condition_or_a_pattern() {
    let (steps, errors) = steps_of("f((n + 1)*2, (n) < 2, (i < n || j < n), !(i < n), {a}, { - a*b }, true, -3)");
    assert_eq!(errors, "");
    let steps = steps.unwrap();
    let kinds: Vec<&str> = steps[0]
        .args
        .iter()
        .map(|arg| match &arg.kind {
            ScriptArgKind::Ix(_) => "index",
            ScriptArgKind::Cond(_) => "condition",
            ScriptArgKind::Pattern(text) => text,
        })
        .collect();
    assert_eq!(kinds, ["index", "condition", "condition", "condition", "a", "-a * b", "condition", "index"]);
}

#[test]
fn places_are_those_of_the_text() {
    let (steps, _) = steps_of(" backwards beta( { x[ _ ] } , n + 1) at i#2 in rows ;");
    let [step] = steps.unwrap().try_into().unwrap();
    let range = |span: Span| (span.start, span.end);
    assert_eq!(range(step.span), (1, 51));
    assert_eq!(step.args.iter().map(|arg| range(arg.span)).collect::<Vec<_>>(), [(17, 27), (30, 35)]);
    assert_eq!(step.at.iter().map(|place| range(place.span)).collect::<Vec<_>>(), [(40, 43), (47, 51)]);
}

#[test]
fn one_mistake_one_message() {
    let cases = [
        ("split(i 32)", "1:9 expected `,` or `)`, found `32`"),
        ("beta at", "1:8 expected the name of an index or tensor, or a pattern in braces, found the end of the file"),
        ("beta at 3; inline", "1:9 expected the name of an index or tensor, or a pattern in braces, found `3`"),
        (
            "beta at i#0; inline at x#",
            "1:11 places of one name are counted from 1\n1:26 expected a number after `#`, found the end of the file",
        ),
        ("beta inline", "1:6 expected `;`, found `inline`"),
        (
            "beta\ninline; beta(",
            "1:5 expected `;`, found `inline`\n2:14 expected an index, a condition or a pattern in braces, found the end of the file",
        ),
        ("beta everywhere at i", "1:17 expected `;`, found `at`"),
        ("beta backwards", "1:6 expected `;`, found `backwards`"),
        ("backwards; beta", "1:10 expected the name of a rewrite, found `;`"),
        ("beta({ x[i] ); inline", "1:13 `)` closes nothing"),
        (
            "beta({ }); inline(x y)",
            "1:8 expected a pattern, such as `x[_, _]`, found `}`\n1:21 expected `,` or `)`, found `y`",
        ),
        (
            "beta({ { x } }); inline(1.5)",
            "1:8 a pattern has no braces inside\n1:25 expected an index, a condition or a pattern in braces, found `1.5`",
        ),
        (
            "beta({ (x }); inline({ x[i } ); inline({ (x] })",
            "1:11 expected `)`, found `}`\n1:28 expected `]`, found `}`\n1:44 `]` closes nothing",
        ),
        ("beta({ x[i]; inline", "1:12 expected `}`, found `;`"),
        ("beta(\"i\")", "1:6 expected an index, a condition or a pattern in braces, found `\"i\"`"),
        ("beta(n / 2); beta(0..n)", "1:8 expected `,` or `)`, found `/`\n1:20 expected `,` or `)`, found `..`"),
        ("beta(i < )", "1:10 expected a size or an index, found `)`"),
        ("beta(floor_div(n, m))", "1:19 this size or index cannot be used: a divisor has to be a positive number"),
        ("beta(i < n &&)", "1:14 expected a size or an index, found `)`"),
        ("; beta", "1:1 expected a step, such as `swap_gens at i`, found `;`"),
        ("}", "1:1 expected a step, such as `swap_gens at i`, found `}`"),
    ];
    for (text, expected) in cases {
        let (steps, errors) = steps_of(text);
        assert_eq!((steps.is_none(), errors.as_str()), (true, expected), "{text}");
    }
}

#[test]
fn a_broken_derivation_does_not_spoil_the_next() {
    let cases = [
        ("derive g from f {\n  beta\n}", "2:7 expected `;`, found `}`"),
        ("derive g from f {\n  beta;", "3:1 expected a step or `}`, found `derive`"),
        ("derive g of f { beta; }", "1:10 expected `from`, found `of`"),
        ("derive g from { beta({ x }); }", "1:15 expected the name of a function, found `{`"),
        ("derive g from f beta;", "1:17 expected `{`, found `beta`"),
        ("derive", "2:1 expected the name of what is derived, found `derive`"),
        ("derive g from f {\n  beta({ x \nderivation t() { }", "3:1 expected `}`, found `derivation`"),
        ("derivation t { beta; }", "1:14 expected `(`, found `{`"),
        ("derivation t(i: size) { beta; }", "1:15 expected `,` or `)`, found `:`"),
        ("derivation t(i, 3) { beta; }", "1:17 expected a parameter or `)`, found `3`"),
    ];
    for (text, expected) in cases {
        let (all, errors) = declarations(&format!("{text}\nderive good from f {{ }}"));
        assert_eq!(errors, expected, "{text}");
        assert_eq!(all.last().map(String::as_str), Some("derive good from f { }"), "{text}");
    }
}

#[test]
fn pieces_have_a_file_of_their_own() {
    let text = "derivation a() { }\nderive g from f { }\nfn f() { 1 }\nderivation b(x,) { c at x; }";
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let mut diagnostics = Diagnostics::new();
    let tactics = parse_tactics(sources.get(file).unwrap(), file, &mut diagnostics);
    assert_eq!(tactics.iter().map(|tactic| tactic.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let expected = "2:1 expected `derivation`, found `derive`\n3:1 expected `derivation`, found `fn`";
    assert_eq!(messages(&sources, diagnostics), expected);
}

/// No text makes reading fail or stop.
#[test]
fn any_tokens_are_read() {
    let tokens = [
        "derive",
        "derivation",
        "from",
        "at",
        "in",
        "everywhere",
        "backwards",
        "f",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ",",
        ";",
        "-",
        "#",
        ".",
        "..",
        "<",
        "&&",
        "!",
        "3",
        "1.5",
        "\"t\"",
        "\n",
        "é",
        "fn",
    ];
    let mut state = 1u64;
    for _ in 0..3000 {
        let mut text = String::new();
        for _ in 0..20 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text += tokens[(state >> 33) as usize % tokens.len()];
            text += " ";
        }
        declarations(&text);
        let mut sources = Sources::new();
        let file = sources.add("t", text.as_str());
        let mut diagnostics = Diagnostics::new();
        let source = sources.get(file).unwrap();
        let steps = parse_steps(source, file, &mut diagnostics);
        assert_eq!(steps.is_none(), diagnostics.has_errors(), "{text}");
        parse_tactics(source, file, &mut Diagnostics::new());
    }
}

#[test]
fn long_and_deep_texts_are_read() {
    let many = "f(n + 1, i < n) at i in { x[_] };\n".repeat(20_000);
    assert_eq!(steps_of(&many).0.map(|steps| steps.len()), Some(20_000));
    let deep = format!("f({{ {}x{} }})", "(".repeat(100_000), ")".repeat(100_000));
    assert!(steps_of(&deep).0.is_some());
    let deep = format!("f({}x{})", "(".repeat(100_000), ")".repeat(100_000));
    assert!(steps_of(&deep).0.is_none());
    let long = format!("f(n{})", " + n".repeat(100_000));
    assert!(steps_of(&long).0.is_some());
    let long = format!("f at i{}", " in i".repeat(100_000));
    assert!(steps_of(&long).0.is_some());
}
