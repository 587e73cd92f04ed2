//! Libraries of files that stand in a table.

use certen_syntax::{Code, Diagnostics, Name, Sources, render_all};

use super::{Declared, Entry, FileRef, Library};

/// A library whose main file is the first, and what was found wrong with it.
fn load(files: &[(&str, &str)]) -> (Library, Vec<Code>, String) {
    let mut sources = Sources::new();
    let main = sources.add(files[0].0, files[0].1);
    let mut diagnostics = Diagnostics::new();
    let mut read = |_: &str, path: &str| {
        let file = files.iter().find(|(name, _)| *name == path);
        file.map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).ok_or("there is no such file".to_owned())
    };
    let library = Library::load(&mut sources, main, &mut read, &mut diagnostics);
    if !diagnostics.has_errors() {
        library.check_cycles(&mut diagnostics);
    }
    let found = diagnostics.into_sorted();
    (library, found.iter().map(|d| d.code).collect(), render_all(&sources, &found, false))
}

fn codes(files: &[(&str, &str)]) -> Vec<Code> {
    load(files).1
}

/// Where a name of the main file is declared.
fn home(library: &Library, name: &str) -> Option<usize> {
    let found = library.lookup(FileRef::MAIN, Name::new(name))?;
    library.files().position(|file| file == found.file())
}

#[test]
fn a_name_is_that_of_the_file_then_of_its_imports() {
    let (library, codes, text) = load(&[
        ("a", "import \"b\"; import \"c\"; fn f() { g() + h() }"),
        ("b", "import \"c\"; import \"a\"; fn g() { h() } const K = 2;"),
        ("c", "import \"d\"; fn h() { x() }"),
        ("d", "fn x() { 1 }"),
    ]);
    assert_eq!(codes, [], "{text}");
    let homes = ["f", "g", "h", "K", "x", "y"].map(|name| home(&library, name));
    assert_eq!(homes, [Some(1), Some(2), Some(3), Some(2), None, None]);
    assert!(matches!(library.lookup(FileRef::MAIN, Name::new("K")), Some(Declared::Const(_))));
    // Five files: the prelude, and each of the others once.
    assert_eq!(library.files().count(), 5);
    let names: Vec<Name> = library.names(FileRef::MAIN).collect();
    assert!(names.contains(&Name::new("K")) && !names.contains(&Name::new("x")));
}

#[test]
fn a_name_has_one_meaning() {
    assert_eq!(codes(&[("a", "fn f() { 1 } const f = 2;")]), [Code::E0202]);
    assert_eq!(codes(&[("a", "import \"b\"; fn f() { 1 }"), ("b", "fn f() { 1 }")]), [Code::E0202]);
    let three = [("a", "import \"b\"; import \"c\";"), ("b", "fn f() { 1 }"), ("c", "const f = 1;")];
    let (_, codes_found, text) = load(&three);
    assert_eq!(codes_found, [Code::E0202]);
    assert!(text.contains("a:1:20") && text.contains("b:1:4") && text.contains("c:1:7"), "{text}");
    assert_eq!(codes(&[("a", "import \"b\"; import \"b\";"), ("b", "")]), [Code::E0202]);
    assert_eq!(codes(&[("a", "import \"a\"; fn f() { 1 }")]), [Code::E0202]);
}

#[test]
fn an_import_that_is_missing_is_an_error_at_its_path() {
    let (_, codes, text) = load(&[("a", "fn f() { 1 }\nimport \"gone\";")]);
    assert_eq!(codes, [Code::E0106]);
    assert!(text.contains("a:2:8") && text.contains("there is no such file"), "{text}");
}

#[test]
fn imports_are_limited_in_depth_and_number() {
    let chain: Vec<(String, String)> =
        (0..100).map(|at| (format!("f{at}"), format!("import \"f{}\";", (at + 1) % 100))).collect();
    let chain: Vec<(&str, &str)> = chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let (library, found, text) = load(&chain);
    assert_eq!(found, [Code::E0106], "{text}");
    assert_eq!(library.files().count(), 1 + 65);
    let many: String = (0..300).map(|at| format!("import \"f{at}\";\n")).collect();
    let leaves: Vec<(String, String)> = (0..300).map(|at| (format!("f{at}"), String::new())).collect();
    let mut wide = vec![("a", many.as_str())];
    wide.extend(leaves.iter().map(|(name, text)| (name.as_str(), text.as_str())));
    let (library, found, _) = load(&wide);
    assert_eq!((library.files().count(), found.len()), (1 + 256, 45));
}

#[test]
fn cycles_of_calls_are_found_wherever_they_hide() {
    let cycle = |text: &str| codes(&[("a", text)]) == [Code::E0217];
    for text in [
        "fn f(x: f64) { f(x) }",
        "fn f(x: f64) { g(x) } fn g(x: f64) { if x < 1.0 { x } else { f(x) } }",
        "const A = B; const B = [1, A];",
        "const A = f(1); fn f(k: size) { A }",
        "fn f(x: f64[n]) { { [i] -> x[i] | i < g(n) } } fn g(n: size) { sum(f(n)) }",
        "fn f(a: f64, b: f64) { with { ([0] <= [i] < [3]) : a; } : fold(f, 0.0) }",
        "fn f(x: f64[f(2)]) { x }",
        "fn f(x: f64) where f(1) > 0 { x }",
        "fn f(x: f64) { iterate 3 times u = x { f(u) } }",
        "fn f(x: f64[n]) { x[..f(x)] }",
    ] {
        assert!(cycle(text), "{text}: {:?}", codes(&[("a", text)]));
    }
    for text in [
        // Each of these names is something else in the function that uses it.
        "fn f(f: f64) { f } fn g(x: f64) { let h = f(x); h } fn h(x: f64) { g(x) }",
        "const A = f(1); fn f(A: size) { A }",
        "const A = f(1); fn f(k: size) { let A = k; A }",
        "const A = f(1); fn f(k: size) { { [A] -> A | A < k } }",
        "const A = f(1); fn f(k: size) { iterate k times A = 0 { A + 1 } }",
        "fn f(x: f64) { g(x) + g(x) } fn g(x: f64) { h(x) } fn h(x: f64) { x }",
    ] {
        assert_eq!(codes(&[("a", text)]), [], "{text}");
    }
}

#[test]
fn the_way_around_a_cycle_is_shown() {
    let (_, codes, text) = load(&[
        ("a", "import \"b\";\nfn f(x: f64) { g(x) }"),
        ("b", "import \"a\";\nfn g(x: f64) { h(x) }\nfn h(x: f64) { f(x) }"),
    ]);
    assert_eq!(codes, [Code::E0217]);
    for part in ["f -> g -> h -> f", "a:2:16", "b:3:16", "closes the cycle"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

#[test]
fn long_chains_of_calls_are_searched_without_recursion() {
    let functions = |last: &str| -> String {
        let each = |at| format!("fn g{at}(x: f64) {{ g{}(x) }}\n", at + 1);
        (0..20_000).map(each).collect::<String>() + &format!("fn g20000(x: f64) {{ {last} }}\n")
    };
    let (_, found, text) = load(&[("a", &functions("x"))]);
    assert_eq!(found, [], "{text}");
    let (_, found, text) = load(&[("a", &functions("g0(x)"))]);
    assert_eq!(found, [Code::E0217]);
    assert!(text.contains("g0 -> g1 -> g2 -> g3 -> g4 -> … -> g19997"), "{text}");
}

#[test]
fn the_entry_is_asked_for_or_main_or_alone() {
    let entry = |text: &str, wanted: Option<&str>| {
        let (library, codes, _) = load(&[("a", text)]);
        assert_eq!(codes, []);
        let entry = library.entry(wanted.map(Name::new));
        entry.map(|entry| library.entry_name(entry).as_str()).map_err(|error| error.code)
    };
    assert_eq!(entry("fn f() { 1 } fn main() { 2 }", None), Ok("main"));
    assert_eq!(entry("fn f() { 1 } fn main() { 2 }", Some("f")), Ok("f"));
    assert_eq!(entry("const K = 1; fn f() { K }", None), Ok("f"));
    assert_eq!(entry("fn f() { 1 } fn g() { 2 }", None), Err(Code::E0410));
    assert_eq!(entry("const K = 1;", None), Err(Code::E0410));
    assert_eq!(entry("fn f() { 1 }", Some("g")), Err(Code::E0402));
}

#[test]
fn what_is_derived_begins_with_a_function() {
    let main =
        "import \"b\"; fn f() { 1 } derive g from f { beta; } derive h from g { } derive k from l { } schedule h { }
                derivation t(x) { beta at x; }";
    let (library, codes_found, text) = load(&[
        ("a", main),
        ("b", "import \"c\"; fn m() { 1 } derive l from m { inline; } derivation u() { }"),
        ("c", "derivation v() { }"),
    ]);
    assert_eq!(codes_found, [], "{text}");
    let origin = |name: &str| {
        let Some(Declared::Derived(derived)) = library.lookup(FileRef::MAIN, Name::new(name)) else { panic!("{name}") };
        let (function, path) = library.origin(derived).unwrap();
        let path = path.into_iter().map(|it| library.derivation(it).name.as_str());
        [library.function(function).name.name.as_str()].into_iter().chain(path).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(["g", "h", "k", "l"].map(origin), ["f g", "f g h", "m l k", "m l"]);
    let entry = library.entry(Some(Name::new("h"))).unwrap();
    assert_eq!(library.schedules(entry).count(), 1);
    let tactics = library.tactics(FileRef::MAIN);
    let known = |name: &str| tactics.iter().any(|tactic| tactic.name.as_str() == name);
    assert_eq!(["t", "u", "v"].map(known), [true, true, false]);
    assert!(load(&[("a", "fn f() { 1 }")]).0.tactics(FileRef::MAIN).is_empty());

    let refused = [
        ("fn blur() { 1 } derive g from blurr { }", Code::E0902, "help: did you mean `blur`?"),
        ("fn a() { 1 } fn b() { 1 } derive g from other { }", Code::E0902, "note: there are `a`, `b`"),
        ("derive g from f { }", Code::E0902, "note: this file has no functions"),
        ("const f = 1; derive g from f { }", Code::E0902, "`f` is a constant"),
        ("derive g from matmul { }", Code::E0902, "`matmul` is a function of the prelude"),
        ("fn f() { 1 } derive f from f { }", Code::E0202, "`f` is declared twice"),
        ("import \"b\"; fn f() { 1 } derive h from f { }", Code::E0202, "`h` is declared here, and in \"b\""),
        ("derive a from a { }", Code::E0217, "`a` is derived from itself: a from a"),
        ("derive a from b { } derive b from c { } derive c from b { }", Code::E0217, "b from c from b"),
        ("derivation t() { } derivation t(a) { }", Code::E0202, "two derivations are called `t`"),
        ("derivation t(a, b, a) { }", Code::E0202, "two parameters of `t` are called `a`"),
        ("fn f() { 1 } derive size from f { }", Code::E0103, "`size` is a word of the language"),
        ("import \"b\"; fn f() { 1 } schedule h { }", Code::E0802, "\"b\", which this file imports, declares it"),
        ("fn f() { 1 } derive tiled from f { } schedule tild { }", Code::E0802, "help: did you mean `tiled`?"),
    ];
    for (main, code, message) in refused {
        let (_, codes_found, text) = load(&[("a", main), ("b", "fn k() { 1 } derive h from k { }")]);
        assert_eq!(codes_found, [code], "{main}\n{text}");
        assert!(text.contains(message), "{main}\n{text}");
    }
}

#[test]
fn long_chains_of_derivations_are_searched_in_no_time() {
    let chain = |last: &str| -> String {
        let each = |at| format!("derive g{at} from g{} {{ }}\n", at + 1);
        (0..20_000).map(each).collect::<String>() + &format!("derive g20000 from {last} {{ }}\nfn f() {{ 1 }}\n")
    };
    let (_, found, text) = load(&[("a", &chain("f"))]);
    assert_eq!(found, [Code::E0217]);
    assert!(text.contains("more than 256 derivations lead from a function to `g19744`"), "{text}");
    let (_, found, text) = load(&[("a", &chain("g7"))]);
    assert_eq!(found, [Code::E0217]);
    assert!(text.contains("`g7` is derived from itself: g7 from g8 from"), "{text}");
}

#[test]
fn a_schedule_belongs_to_a_function_of_its_file() {
    let main =
        "import \"b\"; fn f() { g() } fn h() { 1 } schedule fast for f { unroll(i); } schedule f { } schedule h { }";
    let (library, codes_found, text) = load(&[("a", main), ("b", "fn g() { 1 } schedule g { unroll(j); }")]);
    assert_eq!(codes_found, [], "{text}");
    let schedules = |name: &str| {
        let Some(Declared::Function(function)) = library.lookup(FileRef::MAIN, Name::new(name)) else {
            panic!("{name}")
        };
        library.schedules(Entry::Function(function)).map(|schedule| schedule.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(schedules("f"), ["schedule fast for f {\n    unroll(i);\n}", "schedule f { }"]);
    assert_eq!(schedules("h"), ["schedule h { }"]);
    assert_eq!(schedules("g"), ["schedule g {\n    unroll(j);\n}"]);

    let refused = [
        ("fn blur() { 1 } schedule blurr { }", Code::E0802, "help: did you mean `blur`?"),
        ("fn a() { 1 } fn b() { 1 } schedule other { }", Code::E0802, "note: it has `a`, `b`"),
        ("schedule f { }", Code::E0802, "note: it has no functions"),
        ("const f = 1; schedule f { }", Code::E0802, "`f` is a constant"),
        ("import \"b\"; fn f() { 1 } schedule g { }", Code::E0802, "\"b\", which this file imports, declares it"),
        ("fn f() { 1 } schedule f { } schedule f { }", Code::E0202, "`f` has two schedules without a name"),
        ("fn f() { 1 } schedule a for f { } schedule a for f { }", Code::E0202, "has two schedules called `a`"),
        ("fn f() { 1 } schedule none for f { }", Code::E0211, "no variant is called `none`"),
        ("fn f() { 1 } schedule { }", Code::E0103, "expected the name of a function, found `{`"),
        ("fn f() { 1 } schedule f { unroll(i) }", Code::E0103, "expected `;`, found `}`"),
    ];
    for (main, code, message) in refused {
        let (_, codes_found, text) = load(&[("a", main), ("b", "fn g() { 1 }")]);
        assert_eq!(codes_found, [code], "{main}\n{text}");
        assert!(text.contains(message), "{main}\n{text}");
    }
}
