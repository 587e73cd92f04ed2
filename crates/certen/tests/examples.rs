//! The kernels of `examples`: each `.ten` file computes what the NumPy file beside it does, and is not longer.
//!
//! `examples/expected.json` holds inputs and what NumPy gives for them (`make_expected.py` writes it). Every kernel is
//! run by the reference evaluator and natively (`numpy/mod.rs`).
//!
//! Length is counted in tokens, without comments: those of Certen's lexer, and those of Python (names, numbers, strings,
//! operators and brackets; line ends and indentation are not counted). `examples/README.md` shows them; with
//! `CERTEN_BLESS` its tables are written anew, and kernels are brought into house style.

mod numpy;

use std::path::{Path, PathBuf};
use std::{env, fs};

use certen::road::lang::format::format;
use certen::road::syntax::{Diagnostics, Sources, TokenKind, lex, render_all};
use certen::{FpMode, Module, Name, Options};
use libtest_mimic::{Arguments, Failed, Trial};

use numpy::{agrees_at_other_sizes, call, expected, gives, numpy_gives_what_is_expected, shown};

/// A `.ten` kernel has at most 11 tokens for 10 of NumPy's, except those of [`UNLIMITED`].
const LIMIT: (usize, usize) = (11, 10);

/// PolyBench's kernels are there whether they suit the language or not: where NumPy changes a part of an array in place, a
/// comprehension says what the rest is, too.
const UNLIMITED: &str = "polybench";

/// The folders, in the order of the README, and what they are called there.
const DOMAINS: [(&str, &str); 6] = [
    ("linalg", "Linear algebra"),
    ("learning", "Deep learning"),
    ("fluids", "Fluid dynamics"),
    ("images", "Image processing"),
    ("physics", "Physics"),
    ("polybench", "PolyBench"),
];

/// Where the tables of the README begin.
const MARK: &str = "<!-- The tables below are written by crates/certen/tests/examples.rs -->\n";

fn main() {
    let kernels = kernels();
    let mut trials: Vec<Trial> = kernels.iter().cloned().map(|k| Trial::test(k.clone(), move || agrees(&k))).collect();
    let listed = kernels.clone();
    trials.push(Trial::test("every_kernel_has_a_case", move || every_kernel_has_a_case(&listed)));
    trials.push(Trial::test("lengths_and_style", move || readme(&kernels)));
    let numpy = || Ok(numpy_gives_what_is_expected(&folder(), "expected.json")?);
    let slow = Trial::test("numpy_gives_what_is_expected", numpy);
    trials.push(slow.with_ignored_flag(true));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The names of all kernels, such as `linalg/gemm`, in the order of the README.
fn kernels() -> Vec<String> {
    let of_domain = |(domain, _): &(&str, &str)| {
        let entries = fs::read_dir(folder().join(domain)).into_iter().flatten().flatten();
        let name = |path: PathBuf| Some(format!("{domain}/{}", path.file_stem()?.to_str()?));
        let ten = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "ten"));
        let mut names: Vec<String> = ten.filter_map(name).collect();
        names.sort();
        names
    };
    DOMAINS.iter().flat_map(of_domain).collect()
}

fn text(file: &str) -> Result<String, String> {
    fs::read_to_string(folder().join(file)).map_err(|error| format!("{file}: {error}"))
}

fn every_kernel_has_a_case(kernels: &[String]) -> Result<(), Failed> {
    let mut listed = kernels.to_vec();
    listed.sort();
    let cases: Vec<String> = expected(&folder().join("expected.json"))?.into_keys().collect();
    if cases == listed { Ok(()) } else { Err(format!("cases {cases:?}\nfor the kernels {listed:?}").into()) }
}

/// A kernel gives what NumPy does, by the evaluator and natively.
fn agrees(kernel: &str) -> Result<(), Failed> {
    let cases = expected(&folder().join("expected.json"))?;
    let case = cases.get(kernel).ok_or("there is no case for it in expected.json")?;
    let call = call(case)?;
    let function = kernel.rsplit('/').next().map(Name::new);
    let options = Options { function, known: call.known(), ..Options::default() };
    let compiled =
        |options: &Options| Module::from_file(folder().join(format!("{kernel}.ten")), options).map_err(shown);
    let module = compiled(&options)?;
    if !module.warnings().is_empty() {
        return Err(render_all(module.sources(), module.warnings(), false).into());
    }
    gives(&module, &call, case)?;
    Ok(agrees_at_other_sizes(&module, || compiled(&Options { fp: FpMode::Strict, ..options.clone() }))?)
}

/// Counts tokens, looks at the layout, and compares the README with them and with the kernels' comments.
fn readme(kernels: &[String]) -> Result<(), Failed> {
    let bless = env::var_os("CERTEN_BLESS").is_some();
    let mut tables = String::new();
    let mut too_long = Vec::new();
    for (domain, title) in DOMAINS {
        tables += &format!("\n## {title}\n\n| kernel | what it computes | tokens | in NumPy |\n|---|---|--:|--:|\n");
        for kernel in kernels.iter().filter(|kernel| kernel.starts_with(domain)) {
            let ten = text(&format!("{kernel}.ten"))?;
            let (ours, numpy) = (ten_tokens(&ten)?, python_tokens(&text(&format!("{kernel}.py"))?));
            if domain != UNLIMITED && LIMIT.1 * ours > LIMIT.0 * numpy {
                too_long.push(format!("{kernel}: {ours} tokens, {numpy} in NumPy"));
            }
            let name = kernel.rsplit('/').next().unwrap_or(kernel);
            let styled = formatted(&ten)?;
            if styled != ten && !bless {
                return Err(format!("{kernel}.ten is not in house style, which is\n{styled}").into());
            } else if styled != ten {
                fs::write(folder().join(format!("{kernel}.ten")), styled).map_err(|error| error.to_string())?;
            }
            let about = summary(&ten).ok_or(format!("{kernel} begins with no comment"))?;
            tables += &format!("| [{name}]({kernel}.ten) | {about} | {ours} | [{numpy}]({kernel}.py) |\n");
        }
    }
    if !too_long.is_empty() {
        return Err(too_long.join("\n").into());
    }
    let written = text("README.md")?;
    let (before, found) = written.split_once(MARK).ok_or("the README has no place for its tables")?;
    if found == tables {
        return Ok(());
    }
    if !bless {
        return Err(format!("the tables of examples/README.md are old; the new ones are\n{tables}").into());
    }
    fs::write(folder().join("README.md"), format!("{before}{MARK}{tables}")).map_err(|error| error.to_string().into())
}

/// The first sentence of the comment that a kernel begins with.
fn summary(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("// ")).collect();
    let comment = lines.join(" ");
    let sentence = comment.split_once(". ").map_or(comment.trim_end_matches('.'), |(first, _)| first);
    (!sentence.is_empty()).then(|| sentence.to_owned())
}

fn formatted(text: &str) -> Result<String, String> {
    let mut sources = Sources::new();
    let file = sources.add("kernel", text);
    let source = sources.get(file).ok_or("no source")?;
    format(source, file).map_err(|mistakes| render_all(&sources, &mistakes.into_sorted(), false))
}

fn ten_tokens(text: &str) -> Result<usize, String> {
    let mut sources = Sources::new();
    let file = sources.add("kernel", text);
    let mut diagnostics = Diagnostics::new();
    let source = sources.get(file).ok_or("no source")?;
    let tokens = lex(source, file, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(render_all(&sources, &diagnostics.into_sorted(), false));
    }
    Ok(tokens.iter().filter(|token| token.kind != TokenKind::End).count())
}

/// How many tokens a Python text has, without comments and documentation (strings in `"""`).
fn python_tokens(text: &str) -> usize {
    /// Operators of more than one character, longer ones first.
    const OPERATORS: [&str; 17] =
        ["...", "**=", "//=", "**", "//", "->", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "@=", "<<", ">>"];
    let mut count = 0;
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first == '#' {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(inside) = rest.strip_prefix("\"\"\"") {
            inside.find("\"\"\"").map_or(rest.len(), |end| end + 6)
        } else {
            count += 1;
            if first == '"' {
                rest[1..].find('"').map_or(rest.len(), |end| end + 2)
            } else if first.is_ascii_digit() {
                number(rest)
            } else if first.is_alphabetic() || first == '_' {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            } else {
                OPERATORS.iter().find(|op| rest.starts_with(**op)).map_or(first.len_utf8(), |op| op.len())
            }
        };
        rest = rest[length..].trim_start();
    }
    count
}

/// The length of the number that a text begins with: digits, a point and digits, an exponent.
fn number(text: &str) -> usize {
    let digits = |from: usize| from + text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut end = digits(0);
    if text[end..].starts_with('.') {
        end = digits(end + 1);
    }
    if text[end..].starts_with('e') {
        let sign = usize::from(text[end + 1..].starts_with(['+', '-']));
        end = digits(end + 1 + sign);
    }
    end
}
