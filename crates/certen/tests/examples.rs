//! The kernels of `examples`: each `.ten` file computes what the NumPy file beside it does, and is not longer.
//!
//! `examples/expected.json` holds inputs and what NumPy gives for them (`make_expected.py` writes it). Every kernel is
//! run by the reference evaluator and natively. NumPy sums in another order, so elements may differ by [`TOLERANCE`]
//! times the largest element of their tensor, at least 4500 units in its last place; 16 were the most when this was
//! written. What is no float is equal. At other sizes, 0 and 1 among them, native code agrees with the evaluator.
//!
//! Length is counted in tokens, without comments: those of Certen's lexer, and those of Python (names, numbers, strings,
//! operators and brackets; line ends and indentation are not counted). `examples/README.md` shows them; with
//! `CERTEN_BLESS` its tables are written anew, and kernels are brought into house style.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use certen::road::lang::format::format;
use certen::road::syntax::{Code, Diagnostics, Sources, TokenKind, lex, render_all};
use certen::{Array, Backend, Call, Failure, Input, Module, Name, Options, Output, RunOptions};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

/// The largest difference from NumPy, relative to the largest element of the tensor.
const TOLERANCE: f64 = 1e-12;

/// A `.ten` kernel has at most 11 tokens for 10 of NumPy's.
const LIMIT: (usize, usize) = (11, 10);

/// Sizes other than those that NumPy was run at.
const SIZES: [i64; 11] = [0, 1, 2, 5, 1, 3, 6, 4, 1, 2, 6];

/// The folders, in the order of the README, and what they are called there.
const DOMAINS: [(&str, &str); 5] = [
    ("linalg", "Linear algebra"),
    ("learning", "Deep learning"),
    ("fluids", "Fluid dynamics"),
    ("images", "Image processing"),
    ("physics", "Physics"),
];

/// Where the tables of the README begin.
const MARK: &str = "<!-- The tables below are written by crates/certen/tests/examples.rs -->\n";

fn main() {
    let kernels = kernels();
    let mut trials: Vec<Trial> = kernels.iter().cloned().map(|k| Trial::test(k.clone(), move || agrees(&k))).collect();
    let listed = kernels.clone();
    trials.push(Trial::test("every_kernel_has_a_case", move || every_kernel_has_a_case(&listed)));
    trials.push(Trial::test("lengths_and_style", move || readme(&kernels)));
    let slow = Trial::test("numpy_gives_what_is_expected", numpy_gives_what_is_expected);
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

fn expected(path: &Path) -> Result<BTreeMap<String, Value>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
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
    let mut call = Call::new();
    for (name, size) in case["sizes"].as_object().into_iter().flatten() {
        call = call.dim(name.as_str(), size.as_i64().ok_or("a size that is no integer")?);
    }
    for (name, input) in case["inputs"].as_object().into_iter().flatten() {
        call = call.input(name.as_str(), array(input)?);
    }
    let function = kernel.rsplit('/').next().map(Name::new);
    let options = Options { function, known: call.known(), ..Options::default() };
    let module = Module::from_file(folder().join(format!("{kernel}.ten")), &options).map_err(shown)?;
    if !module.warnings().is_empty() {
        return Err(render_all(module.sources(), module.warnings(), false).into());
    }
    let wanted: Vec<Array> = case["outputs"].as_array().into_iter().flatten().map(array).collect::<Result<_, _>>()?;
    for backend in [Backend::Interp, Backend::Native] {
        let outputs = outputs(&module, &call, backend).map_err(shown)?;
        let outputs: Vec<&Array> = outputs.iter().filter_map(Output::array).collect();
        if outputs.len() != wanted.len() {
            return Err(format!("{} results, expected {}", outputs.len(), wanted.len()).into());
        }
        for (found, wanted) in outputs.into_iter().zip(&wanted) {
            equal(found, wanted).map_err(|error| format!("{backend:?}: {error}"))?;
        }
    }
    Ok(agrees_at_other_sizes(&module)?)
}

/// Native code gives what the evaluator does, at sizes from 0 to 6 that satisfy the `where` clause.
fn agrees_at_other_sizes(module: &Module) -> Result<(), String> {
    let mut ran = 0;
    for round in 0..SIZES.len() {
        let mut call = Call::new();
        for (at, size) in module.core().sizes.iter().enumerate() {
            call = call.dim(*size, SIZES[(round + at * at) % SIZES.len()]);
        }
        for (seed, input) in (1..).zip(&module.core().inputs) {
            call = call.input(input.name, Input::Random(seed));
        }
        let wanted = match outputs(module, &call, Backend::Interp) {
            Err(failure) if failure.diagnostics().iter().all(|d| d.code == Code::E0409) => continue,
            result => result.map_err(shown)?,
        };
        ran += 1;
        let found = outputs(module, &call, Backend::Native).map_err(shown)?;
        for (found, wanted) in found.iter().filter_map(Output::array).zip(wanted.iter().filter_map(Output::array)) {
            let at = |error| format!("native code differs from the evaluator in round {round}: {error}");
            equal(found, wanted).map_err(at)?;
        }
    }
    if ran == 0 { Err("the `where` clause allows none of the sizes".into()) } else { Ok(()) }
}

fn outputs(module: &Module, call: &Call, backend: Backend) -> Result<Vec<Output>, Failure> {
    let options = RunOptions { backend, ..RunOptions::default() };
    Ok(module.run_with(call, &options)?.0)
}

fn shown(failure: Failure) -> String {
    failure.to_string()
}

/// An array as `make_expected.py` stores it.
fn array(stored: &Value) -> Result<Array, String> {
    let list = |key: &str| stored[key].as_array().ok_or(format!("no list `{key}`"));
    let shape: Option<Vec<usize>> = list("shape")?.iter().map(|size| Some(size.as_u64()? as usize)).collect();
    let shape = shape.ok_or("a shape that is no list of sizes")?;
    let data = list("data")?;
    let made = match stored["type"].as_str() {
        Some("f64") => data.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>().map(|d| Array::from_vec(&shape, d)),
        Some("bool") => data.iter().map(Value::as_bool).collect::<Option<Vec<_>>>().map(|d| Array::from_vec(&shape, d)),
        Some("u8") => {
            let bytes: Option<Vec<u8>> = data.iter().map(|v| u8::try_from(v.as_u64()?).ok()).collect();
            bytes.map(|d| Array::from_vec(&shape, d))
        }
        other => return Err(format!("an array of type {other:?}")),
    };
    made.ok_or("elements of another type")?.map_err(|error| error.to_string())
}

/// Floats within the tolerance, all else the same.
fn equal(found: &Array, wanted: &Array) -> Result<(), String> {
    if (found.elem(), found.shape()) != (wanted.elem(), wanted.shape()) {
        let (a, b) = ((found.elem(), found.shape()), (wanted.elem(), wanted.shape()));
        return Err(format!("{}{:?}, expected {}{:?}", a.0, a.1, b.0, b.1));
    }
    let (Some(a), Some(b)) = (found.as_slice::<f64>(), wanted.as_slice::<f64>()) else {
        return if found == wanted { Ok(()) } else { Err("elements differ".into()) };
    };
    let largest = b.iter().filter(|x| x.is_finite()).fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let near = |x: f64, y: f64| x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= TOLERANCE * largest;
    match a.iter().zip(b).position(|(x, y)| !near(*x, *y)) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is {}, expected {}; the largest is {largest}", a[at], b[at])),
    }
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
            if LIMIT.1 * ours > LIMIT.0 * numpy {
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

/// NumPy still gives what is checked in, up to the last places, which depend on how it was built.
fn numpy_gives_what_is_expected() -> Result<(), Failed> {
    let python = env::var_os("CERTEN_NUMPY_PYTHON").ok_or("`cargo xtask test --slow` sets CERTEN_NUMPY_PYTHON")?;
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("expected.json");
    let ran = Command::new(python).arg(folder().join("make_expected.py")).arg(&made).output();
    let ran = ran.map_err(|error| error.to_string())?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stderr).into_owned().into());
    }
    let (made, stored) = (expected(&made)?, expected(&folder().join("expected.json"))?);
    if made.keys().ne(stored.keys()) {
        return Err("expected.json has other kernels".into());
    }
    for ((kernel, made), stored) in made.iter().zip(stored.values()) {
        if (&made["sizes"], &made["inputs"]) != (&stored["sizes"], &stored["inputs"]) {
            return Err(format!("{kernel} has other inputs in expected.json").into());
        }
        let outputs = |case: &Value| case["outputs"].as_array().into_iter().flatten().map(array).collect();
        let (made, stored): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (outputs(made), outputs(stored));
        let (made, stored) = (made?, stored?);
        if made.len() != stored.len() {
            return Err(format!("{kernel} has other results in expected.json").into());
        }
        for (made, stored) in made.iter().zip(&stored) {
            equal(stored, made).map_err(|error| format!("{kernel} in expected.json: {error}"))?;
        }
    }
    Ok(())
}
