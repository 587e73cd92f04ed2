//! The programs in `tests/programs`, each with what is expected of it in its own header.
//!
//! A header line `//@ KEY: VALUE` says what to expect; `//@ KEY` alone is followed by a text in lines that begin with
//! `//|`. Keys:
//!
//! - `expect: ok`, or `expect: CODE RULE` for each error and warning, in order (`-` where no paper states a rule);
//! - `type: SIGNATURE` of an accepted program;
//! - `dims: n = 2, m = 3` and `in NAME: 1 2 3 …` (or `iota`, or `random:SEED`) to run it on, `elem: i64` for another
//!   element type, `fp: strict` for operations as written;
//! - `schedule: NAME` to choose one of its schedules or paths;
//! - `fn: NAME` and `rank x: 2` to choose a function of a `.ten` file and the ranks of its inputs; what it imports stands
//!   beside it;
//! - `out NAME: 1 2 3 …`: the result, as computed by the reference evaluator in the machine's numbers and as exact
//!   rationals, by native code, without a schedule and, up to roundings, with an automatic one, and, in the prime field,
//!   by the evaluator and the loop interpreter, which must all agree (of a program that exact numbers cannot compute, the
//!   loop interpreter uses the machine's);
//! - `diagnostics`, `states`, `typed`, `analysis`, `core`, `padding`, `steps`, `loops`, `c`, `teil`, `core-teil`, `model`, `three-address`, `laws`, and of
//!   a `.ten` file `written`, `bounds`, `dots`, `with-loops`, `demands`: the text that people see.
//!
//! `cargo xtask bless` rewrites the expectations that a header has; write `//@ KEY:` with nothing after it to have it
//! filled in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use certen::road::core::domain::Scalar;
use certen::road::core::{Program, Tensor};
use certen::road::dialects::algebra::Notation;
use certen::road::figures::analysis::analysis_text;
use certen::road::figures::reshapes::reshapes;
use certen::road::figures::three_address::three_address;
use certen::road::syntax::{Code, render_all};
use certen::{
    Array, Backend, Call, Choice, DomainChoice, ElemType, Failure, FpMode, Input, Known, Module, Name, Options, Output,
    RunOptions, Values, check,
};
use libtest_mimic::{Arguments, Failed, Trial};

const DIALECTS: [&str; 5] = ["teil", "model", "teml", "ten", "core"];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    // Imports are found relative to the names that messages show.
    if let Err(error) = std::env::set_current_dir(&root) {
        panic!("{}: {error}", root.display());
    }
    let root = PathBuf::from(".");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let trial = |path: PathBuf| {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        Trial::test(name.clone(), move || test(&path, &name))
    };
    libtest_mimic::run(&Arguments::from_args(), files.into_iter().map(trial).collect()).exit();
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| DIALECTS.contains(&ending)) {
            files.push(path);
        }
    }
}

fn test(path: &Path, name: &str) -> Result<(), Failed> {
    let bless = std::env::var_os("CERTEN_BLESS").is_some();
    let mut text = fs::read_to_string(path).map_err(|e| e.to_string())?;
    // Rewriting the header moves the lines that messages speak of, so bless until nothing moves.
    for _ in 0..4 {
        let found = expectations(name, &text)?;
        if found == text {
            return Ok(());
        }
        if !bless {
            return Err(difference(&text, &found).into());
        }
        fs::write(path, &found).map_err(|e| e.to_string())?;
        text = found;
    }
    Err("blessing does not come to an end".into())
}

fn difference(expected: &str, found: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let first = a.iter().zip(&b).position(|(x, y)| x != y).unwrap_or(a.len().min(b.len()));
    let show = |lines: &[&str]| {
        lines[first.min(lines.len())..].iter().take(12).map(|l| format!("    {l}\n")).collect::<String>()
    };
    format!("differs from line {}\n  expected:\n{}  found:\n{}", first + 1, show(&a), show(&b))
}

/// The text of a test with its expectations replaced by what is the case.
fn expectations(name: &str, text: &str) -> Result<String, String> {
    let mut given: BTreeMap<&str, &str> = BTreeMap::new();
    for line in text.lines() {
        if let Some((key, value)) = line.strip_prefix("//@ ").and_then(|line| line.split_once(':')) {
            given.insert(key.trim(), value.trim());
        }
    }
    let elem =
        given.get("elem").map_or(Ok(ElemType::F64), |elem| elem.parse().map_err(|()| format!("elem: {elem}")))?;
    let fp = match given.get("fp") {
        None => FpMode::Relaxed,
        Some(&"strict") => FpMode::Strict,
        Some(other) => return Err(format!("fp: {other}")),
    };
    let mut known = Known::default();
    for (key, value) in &given {
        if let Some(name) = key.strip_prefix("rank ") {
            known.ranks.insert(Name::new(name.trim()), value.parse().map_err(|_| format!("rank: {value}"))?);
        }
    }
    known.values = sizes(&given)?;
    let function = given.get("fn").map(|name| Name::new(name));
    let vector = given.get("pad").map(|vector| vector.parse().map_err(|_| format!("pad: {vector}"))).transpose()?;
    let schedule = given.get("schedule").map_or(Choice::Default, |name| Choice::Variant(Name::new(name)));
    let options = Options { elem, fp, function, known, vector, schedule, ..Options::default() };
    let mut module = Module::from_text(name, text, &options);
    // Texts are those of the loops as they are lowered; an automatic schedule is run too.
    let mut automatic = None;
    if module.as_ref().is_ok_and(Module::is_automatic) {
        let plain = Options { schedule: Choice::None, ..options.clone() };
        automatic = std::mem::replace(&mut module, Module::from_text(name, text, &plain)).ok();
    }
    // What is wrong with a path of TeML is known when its loops are made.
    if name.ends_with(".teml")
        && module.is_ok()
        && let Err(failure) = check(name, &options)
    {
        module = Err(failure);
    }
    let mut outputs = None;
    let mut lines = Vec::new();
    let mut expected = false;
    for line in text.lines() {
        if line.starts_with("//|") {
            continue;
        }
        let Some(directive) = line.strip_prefix("//@ ") else {
            lines.push(line.to_owned());
            continue;
        };
        let key = directive.split(':').next().unwrap_or(directive).trim();
        match (key, &module) {
            ("expect", _) if expected => {}
            ("expect", _) => {
                expected = true;
                lines.extend(verdicts(&module).into_iter().map(|verdict| format!("//@ expect: {verdict}")));
            }
            ("dims" | "elem" | "fp" | "fn" | "pad" | "note" | "schedule", _) => lines.push(line.to_owned()),
            ("diagnostics", _) => block(&mut lines, key, &rendered(&module)),
            (key, _) if key.starts_with("in ") || key.starts_with("rank ") => lines.push(line.to_owned()),
            (key, Ok(module)) => {
                if let Some(output) = key.strip_prefix("out ") {
                    if outputs.is_none() {
                        outputs = Some(run_everywhere(module, automatic.as_ref(), &given)?);
                    }
                    let values = outputs.as_ref().and_then(|all: &BTreeMap<String, String>| all.get(output));
                    let values = values.ok_or_else(|| format!("there is no output {output}"))?;
                    lines.push(format!("//@ out {output}: {values}").trim_end().to_owned());
                } else if key == "type" {
                    lines.push(format!("//@ type: {}", signature(module.core())));
                } else {
                    block(&mut lines, key, &stage(module, key)?);
                }
            }
            (key, Err(failure)) => return Err(format!("`{key}` of a program that is refused:\n{failure}")),
        }
    }
    if !expected {
        return Err("the header has no `//@ expect:`".into());
    }
    Ok(lines.join("\n") + "\n")
}

fn block(lines: &mut Vec<String>, key: &str, text: &str) {
    lines.push(format!("//@ {key}"));
    lines.extend(text.lines().map(|line| format!("//| {line}").trim_end().to_owned()));
}

fn verdicts(module: &Result<Module, Failure>) -> Vec<String> {
    let diagnostics = match module {
        Ok(module) => module.warnings(),
        Err(failure) => failure.diagnostics(),
    };
    let shown = diagnostics.iter().map(|d| format!("{} {}", d.code, d.rule.map_or("-", |rule| rule.name)));
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { vec!["ok".into()] } else { shown }
}

fn rendered(module: &Result<Module, Failure>) -> String {
    match module {
        Ok(module) => render_all(module.sources(), module.warnings(), false),
        Err(failure) => failure.to_string(),
    }
}

fn signature(program: &Program) -> String {
    let types = program.types();
    let inputs: Vec<String> = program.inputs.iter().map(|input| format!("{} : {}", input.name, input.ty)).collect();
    let outputs = program.outputs.iter().map(|(name, source)| format!("{name} : {}", types[source]));
    format!("({}) -> ({})", inputs.join(", "), outputs.collect::<Vec<_>>().join(", "))
}

fn stage(module: &Module, key: &str) -> Result<String, String> {
    let typed = || module.typed().ok_or_else(|| format!("`{key}` of a Core program"));
    let in_notation = |notation| module.written_in(notation).map(|p| p.to_string()).map_err(|f| f.to_string());
    Ok(match key {
        "typed" => {
            let typed = typed()?;
            (0..typed.program.stmts.len()).map(|at| typed.derivation(at, 100)).collect::<Vec<_>>().join("\n")
        }
        "analysis" => analysis_text(typed()?, module.sources(), 100),
        "states" => module.states().ok_or("`states` of a program that is not TeML")?.to_owned(),
        "steps" => module.walk().map_err(|f| f.to_string())?.text(),
        "core" => module.core().to_string(),
        "padding" => module.padding().iter().map(|(name, ty)| format!("{name} : {ty}\n")).collect(),
        "loops" => module.loops().map_err(|f| f.to_string())?.to_string(),
        "c" => module.c().map_err(|f| f.to_string())?.kernel,
        "teil" => in_notation(Notation::Teil)?,
        "core-teil" => in_notation(Notation::CoreTeil)?,
        "model" => in_notation(Notation::Model)?,
        "laws" => module.laws().map_err(|f| f.to_string())?,
        "three-address" => three_address(typed()?).to_string(),
        "optimised" => {
            let program = module.rewritten().map_err(|failure| failure.to_string())?;
            let count = program.multiplications().map_err(|e| e.to_string())?;
            format!("{count} multiplications\n{program}")
        }
        "reshapes" => reshapes(module.core()).to_string(),
        "multiplications" => module.core().multiplications().map_err(|e| e.to_string())?.to_string(),
        _ => match module.stages().into_iter().find(|(name, _)| *name == key) {
            Some((_, text)) => text,
            None => return Err(format!("unknown key `{key}`")),
        },
    })
}

/// The sizes that a header gives.
fn sizes(given: &BTreeMap<&str, &str>) -> Result<BTreeMap<Name, i64>, String> {
    let mut sizes = BTreeMap::new();
    for part in given.get("dims").into_iter().flat_map(|dims| dims.split(',')) {
        let (name, size) = part.split_once('=').ok_or("dims: n = 2, m = 3")?;
        sizes.insert(Name::new(name.trim()), size.trim().parse().map_err(|_| format!("the size {size}"))?);
    }
    Ok(sizes)
}

/// The outputs, computed in every way there is; they must all agree.
fn run_everywhere(
    module: &Module,
    automatic: Option<&Module>,
    given: &BTreeMap<&str, &str>,
) -> Result<BTreeMap<String, String>, String> {
    let mut call = Call::new();
    // Explicit elements tell no sizes: they are a flat list, shaped by the dims.
    let sizes = sizes(given)?;
    for (name, size) in &sizes {
        call = call.dim(*name, *size);
    }
    for parameter in &module.core().inputs {
        let source = given.get(format!("in {}", parameter.name).as_str()).copied().unwrap_or("iota");
        let input = if source == "iota" {
            Input::Iota
        } else if let Some(seed) = source.strip_prefix("random:") {
            Input::Random(seed.parse().map_err(|_| format!("the seed {seed}"))?)
        } else {
            let shape = parameter.ty.shape.iter().map(|size| size.eval(&|name| sizes.get(&name).copied()));
            let shape = shape.map(|size| size.map_or(0, |size| size as usize)).collect::<Vec<_>>();
            let elements = source.split_whitespace().map(|word| word.parse::<f64>().map_err(|_| word.to_owned()));
            let elements = elements.collect::<Result<Vec<f64>, _>>()?;
            let scalars = elements.iter().map(|&e| Scalar::from_f64(e, parameter.ty.elem));
            let tensor = Tensor::new(shape, scalars.collect())
                .ok_or(format!("wrong number of elements of {}", parameter.name))?;
            Input::Array(Array::from_tensor(parameter.ty.elem, &tensor).map_err(|e| e.to_string())?)
        };
        call = call.input(parameter.name, input);
    }
    let run = |backend, domain| {
        let options = RunOptions { backend, domain, ..RunOptions::default() };
        module.run_with(&call, &options).map(|(outputs, _)| outputs)
    };
    let must = |backend, domain| run(backend, domain).map_err(|f| f.to_string());
    let reference = must(Backend::Interp, DomainChoice::Machine)?;
    let native = must(Backend::Native, DomainChoice::Machine)?;
    let automatic = automatic.map(|module| {
        let options = RunOptions { backend: Backend::Native, ..RunOptions::default() };
        module.run_with(&call, &options).map(|(outputs, _)| outputs).map_err(|failure| failure.to_string())
    });
    let automatic = automatic.transpose()?;
    // Exact numbers have no exp or sine; then the loops compute in the machine's.
    let rational = match run(Backend::Interp, DomainChoice::Rational) {
        Ok(outputs) => Some(outputs),
        Err(failure) if failure.diagnostics().iter().all(|d| d.code == Code::E0504) => None,
        Err(failure) => return Err(failure.to_string()),
    };
    let domain = if rational.is_some() { DomainChoice::Field } else { DomainChoice::Machine };
    let (same, loops) = (must(Backend::Interp, domain)?, must(Backend::Loops, domain)?);
    let mut shown = BTreeMap::new();
    for (at, output) in reference.iter().enumerate() {
        let text = flat(output);
        let name = output.name;
        if let Some(found) = automatic.as_ref().map(|outputs| &outputs[at]).filter(|found| !are_close(found, &text)) {
            return Err(format!("{name}: automatically scheduled {}, the evaluator {text}", flat(found)));
        }
        if flat(&native[at]) != text {
            return Err(format!("{name}: native code computes {}, the evaluator {text}", flat(&native[at])));
        }
        // Exact numbers and the machine's agree where the test's numbers are whole and small.
        let exact = rational.as_ref().map(|outputs| flat(&outputs[at])).unwrap_or_default();
        let whole = exact.split(' ').all(|number| number.parse::<i64>().is_ok_and(|n| n.abs() < 1 << 24));
        if whole && exact != text.replace(".0", "") {
            return Err(format!("{name}: as rationals {exact}, as numbers {text}"));
        }
        let (by_loops, by_evaluator) = (flat(&loops[at]), flat(&same[at]));
        if by_loops != by_evaluator {
            return Err(format!("{name}: loops compute {by_loops}, the evaluator {by_evaluator}"));
        }
        shown.insert(name.to_string(), text);
    }
    Ok(shown)
}

/// Whether numbers are those of a text but for the roundings of a sum.
fn are_close(output: &Output, text: &str) -> bool {
    let tolerance = if output.elem.bytes() == 4 { 1e-5 } else { 1e-13 };
    let found = flat(output);
    if found == text {
        return true;
    }
    let numbers = |text: &str| text.split(' ').filter_map(|number| number.parse::<f64>().ok()).collect::<Vec<_>>();
    let (found, expected) = (numbers(&found), numbers(text));
    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * a.abs().max(b.abs());
    !found.is_empty() && found.len() == expected.len() && found.iter().zip(&expected).all(is_close)
}

fn flat(output: &Output) -> String {
    let texts: Vec<String> = match &output.values {
        Values::Array(array) => (0..array.len()).filter_map(|at| array.get(at)).map(|v| v.to_string()).collect(),
        Values::Exact(values) => values.iter().map(ToString::to_string).collect(),
        Values::Field(values) => values.iter().map(ToString::to_string).collect(),
        Values::Partial(values) => values.iter().map(|v| v.map_or("undefined".into(), |v| v.to_string())).collect(),
    };
    texts.join(" ")
}
