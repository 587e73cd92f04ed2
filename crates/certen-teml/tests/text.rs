//! Programs as text: what is printed is read as the same program, no text makes reading or evaluating fail, and long and deep
//! programs take time in proportion to their length.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use certen_core::ElemType;
use certen_syntax::{Diagnostics, Name, Sources, render_all};
use certen_teml::ast::Program;
use certen_teml::front::{Front, read};
use certen_teml::parse::parse;

fn parsed(text: &str) -> (Program, usize) {
    let mut sources = Sources::new();
    let file = sources.add("t.teml", text);
    let mut diagnostics = Diagnostics::new();
    let program = parse(&sources, file, &mut diagnostics);
    (program, diagnostics.iter().count())
}

fn front(text: &str) -> Result<Front, String> {
    let mut sources = Sources::new();
    let file = sources.add("t.teml", text);
    let mut diagnostics = Diagnostics::new();
    let front = read(&sources, file, Name::new("t"), ElemType::F64, &mut diagnostics);
    front.ok_or_else(|| render_all(&sources, &diagnostics.into_sorted(), false))
}

fn programs(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            programs(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "teml") {
            found.push(path);
        }
    }
}

#[test]
fn what_is_printed_is_what_was_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    programs(&root.join("tests/programs/teml"), &mut files);
    programs(&root.join("examples"), &mut files);
    assert!(files.len() > 50, "{}", files.len());
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let (program, _) = parsed(&text);
        let printed = program.to_string();
        let (again, errors) = parsed(&printed);
        assert_eq!((&again, errors), (&program, 0), "{}:\n{printed}", path.display());
        assert_eq!(again.to_string(), printed);
    }
}

/// No text makes anything fail, and what cannot be read is an error.
#[test]
fn any_tokens_are_read() {
    let tokens = [
        "A",
        "B",
        "C",
        "l",
        "=",
        "(",
        ")",
        "[",
        "]",
        ",",
        "->",
        "@",
        ":",
        ";",
        "tensor",
        "scalar",
        "eq",
        "vadd",
        "add",
        "mul",
        "contract",
        "vcontract",
        "transpose",
        "entrywise_add",
        "outerproduct",
        "build",
        "stripmine",
        "interchange",
        "fuse_outer",
        "unroll",
        "tile",
        "codegen",
        "init",
        "1",
        "2",
        "0",
        "-",
        "*",
        "+",
        "i",
        "j",
        "n",
        "2.5",
        "\n",
        "#",
        "//",
        "é",
        "\"",
        "9223372036854775807",
        "double",
    ];
    let mut state = 1u64;
    for _ in 0..4000 {
        let mut text = String::from("A = tensor([n, 3]) B = tensor([n, 3])\nB = entrywise_add(A, A)\nl = build(B)\n");
        for _ in 0..40 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text += tokens[(state >> 33) as usize % tokens.len()];
            text += " ";
        }
        let (program, errors) = parsed(&text);
        let (again, more) = parsed(&program.to_string());
        assert_eq!((again, more), (program, 0), "{text}");
        assert!(errors == 0 || front(&text).is_err(), "{text}");
    }
}

/// Programs that the grammar allows, of operations with any operands and numbers: accepted or refused, but nothing else.
#[test]
fn any_statements_are_evaluated() {
    let mut state = 3u64;
    let mut below = |most: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % most
    };
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..400 {
        let mut text = String::from(
            "A = tensor([n, n])\nB = tensor([n, n])\nx = tensor([4])\nt = vmul(A, A, [[i, j], [i, j]])\nu = scalar()\n\
             B = entrywise_add(A, A)\nl = build(B)\nk = build(B)\n",
        );
        let names = ["A", "B", "A", "B", "t", "x", "u", "l"];
        let lists =
            ["[i, j]", "[j, i]", "", "[i+1, j]", "[i]", "[2*i]", "[0]", "[]", "[n-1-i, j]", "[i+j, j]", "[i, j]"];
        let numbers = ["1", "2", "1", "2", "0", "9223372036854775807"];
        for _ in 0..12 {
            let before = text.len();
            let mut name = || names[below(8) as usize];
            let (id, a, b) = (name(), name(), name());
            let mut list = || lists[below(11) as usize];
            let (p, q, r) = (list(), list(), list());
            let mut number = || numbers[below(6) as usize];
            let (v, w) = (number(), number());
            let r = if r.is_empty() { "[i]" } else { r };
            let _ = match below(16) {
                0 => writeln!(text, "{id} = vmul({a}, {b}, [{p}, {q}])"),
                1 => writeln!(text, "{id} = add({a}, {b}, [{p}, {q}] -> {r})"),
                2 => writeln!(text, "{id} = eq({a}, {p} -> {r})"),
                3 => writeln!(text, "{id} = @{b}: eq({a}, {p} -> {r})"),
                4 => writeln!(text, "{id} = ventrywise_sub({a}, {b}, {a})"),
                5 => writeln!(text, "{id} = entrywise_div({a}, {b})"),
                6 => writeln!(text, "{id} = vcontract({a}, {b}, [{v}, {w}])"),
                7 => writeln!(text, "{id} = contract({a}, {b}, [{v}, {w}])"),
                8 => writeln!(text, "{id} = vtranspose({a}, [[{v}, {w}]])"),
                9 => writeln!(text, "{id} = vouterproduct({a}, {b})"),
                10 => writeln!(text, "l = build({a})"),
                11 => writeln!(text, "k = stripmine(l, {v}, {w})"),
                12 => writeln!(text, "l = unroll(k, {v})"),
                13 => writeln!(text, "k = fuse_outer(l, k, {v})"),
                14 => writeln!(text, "init({a}, {v})"),
                _ => writeln!(text, "l = tile({a}, {v})"),
            };
            // What is refused goes again.
            match front(&text) {
                Ok(_) => accepted += 1,
                Err(_) => {
                    refused += 1;
                    text.truncate(before);
                }
            }
        }
    }
    assert!(accepted > 500 && refused > 500, "{accepted} {refused}");
}

fn time(text: &str) -> Duration {
    let start = Instant::now();
    front(text).unwrap();
    start.elapsed()
}

/// `short` and four times as much of it.
fn in_proportion(program: impl Fn(usize) -> String, short: usize) {
    let [small, large] = [short, 4 * short].map(|count| (0..2).map(|_| time(&program(count))).min().unwrap());
    // Times are compared in the slow set, which is optimised.
    assert!(cfg!(debug_assertions) || large < 9 * small + Duration::from_millis(300), "{small:?}, then {large:?}");
}

#[test]
fn long_programs() {
    // Statements, each reading what the one before wrote.
    in_proportion(
        |count| {
            let mut text = String::from("A = tensor([m, n])\nB = tensor([m, n])\n");
            for _ in 0..count / 2 {
                text += "A = mul(A, B, [[i, j], [i+0, j]] -> [i, j])\nB = entrywise_add(A, B)\n";
            }
            text
        },
        3_000,
    );
    // Different tensors, sizes and iterators, and loops of all of them.
    in_proportion(
        |count| {
            let mut text = String::new();
            for at in 0..count / 5 {
                let _ = write!(
                    text,
                    "A{at} = tensor([m{at}, n])\nB{at} = add(A{at}, A{at}, [[i{at}, j], [i{at}, j+1]] -> [i{at}, j])\n\
                     l{at} = build(B{at})\nk{at} = stripmine(l{at}, 1, 4)\nk{at} = interchange_n(k{at}, 2, 1)\n"
                );
            }
            text
        },
        3_000,
    );
}

#[test]
fn deep_programs() {
    // Virtual operations on virtual operations, in place and with other iterators, and each operand twice.
    // (What uses an operand twice is too large to be written out, so it is assigned nowhere.)
    for operation in [
        "vadd(t, A, [, [i, j]])",
        "ventrywise_add(t, t)",
        "vtranspose(t, [[1, 2]])\nt = ventrywise_add(t, A)",
        "vmul(t, t, [,])",
    ] {
        in_proportion(
            |count| {
                let mut text =
                    String::from("A = tensor([n, n])\nB = tensor([n, n])\nt = vadd(A, A, [[i, j], [i, j]])\n");
                for _ in 0..count {
                    let _ = writeln!(text, "t = {operation}");
                }
                text + if operation.contains("t, t") { "" } else { "B = entrywise_add(t, A)\n" }
            },
            2_500,
        );
    }
    // Loops on loops: each expression leaves what its operand stands for.
    in_proportion(
        |count| {
            let mut text =
                String::from("A = tensor([n, n])\nB = tensor([n, n])\nB = entrywise_add(A, A)\nl = build(B)\n");
            for at in 0..count {
                let _ = writeln!(
                    text,
                    "l{at} = interchange({}, 1, 2)",
                    if at == 0 { "l".into() } else { format!("l{}", at - 1) }
                );
            }
            let _ = writeln!(text, "codegen(l{})", count - 1);
            text
        },
        2_500,
    );
}

/// The whole way, to the meaning and to loops; and the states stay readable.
#[test]
fn a_deep_program_is_compiled() {
    let mut text = String::from("A = tensor([n, n])\nB = tensor([n, n])\nt = vadd(A, A, [[i, j], [i, j]])\n");
    for _ in 0..10_000 {
        text += "t = vadd(t, A, [, [i, j]])\n";
    }
    text += "B = eq(t, -> [i, j])\nl = build(B)\nl1 = tile(l, 8)\ncodegen(l1)\n";
    let mut sources = Sources::new();
    let file = sources.add("t.teml", text);
    let mut diagnostics = Diagnostics::new();
    let compiled = certen_teml::compile(&sources, file, Name::new("t"), ElemType::F64, &mut diagnostics);
    let compiled = compiled.unwrap_or_else(|| panic!("{}", render_all(&sources, &diagnostics.into_sorted(), false)));
    assert_eq!(compiled.core.outputs.len(), 1);
    let steps: Vec<String> = compiled.paths[0].steps.iter().map(|step| step.to_string()).collect();
    assert_eq!(steps, ["tile([B.i, B.j], [8, 8])"]);
    assert!(compiled.states.len() < 2_000_000, "{}", compiled.states.len());
    assert!(
        compiled.states.contains("[σ992(t), ⟨(A, [n, n], [i, j]), []⟩]"),
        "{}",
        &compiled.states[compiled.states.len() - 600..]
    );
}

#[test]
fn a_program_of_mistakes() {
    let mut text = String::from("A = tensor([n])\n");
    for at in 0..50_000 {
        let _ = writeln!(text, "B{at} = vadd(A, Q{at}, [[i], [i]])");
    }
    let errors = front(&text).unwrap_err();
    assert!(errors.contains("`Q0` has not been introduced"));
}

#[test]
fn too_deep_or_too_many() {
    let mut text = String::from("A = tensor([n])\nB = tensor([n])\nB = entrywise_add(A, A)\nl = build(B)\n");
    for _ in 0..200 {
        text += "l = stripmine(l, 1, 1)\n";
    }
    let errors = front(&text).unwrap_err();
    assert!(errors.contains("at most 100 loops inside each other"), "{errors}");
    assert_eq!(errors.matches("error[").count(), 1, "{errors}");
    let doubled = "t = vadd(t, t, [,])\n".repeat(60);
    let text = format!("A = tensor([n])\nB = tensor([n])\nt = vadd(A, A, [[i], [i]])\n{doubled}B = eq(t, -> [i])\n");
    assert!(front(&text).unwrap_err().contains("error[E0703]: this right side is too large"));
    let shape = vec!["n"; 65].join(", ");
    assert!(front(&format!("A = tensor([{shape}])\n")).unwrap_err().contains("at most 64 dimensions"));
    let shape = vec!["n"; 40].join(", ");
    let text = format!("A = tensor([{shape}])\nB = vouterproduct(A, A)\n");
    assert!(front(&text).unwrap_err().contains("there can be 64"));
}
