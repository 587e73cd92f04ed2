//! The kernels of `examples/teml`: the evaluation of *Meta-programming for Cross-Domain Tensor Optimizations*, Tables 1 and 2.
//!
//! Each kernel is written in TeML, in the `.ten` language and in NumPy. Both programs give what NumPy gave, by the
//! evaluator and natively with each of their paths and schedules, also at other sizes (`numpy/mod.rs`), and all of these are
//! proved to keep the meaning. In TeML a kernel has at most two lines more than in the paper, not counting
//! declarations, `build`, transformations and `codegen`. `examples/teml/README.md` has a table of all that, which is
//! checked (`CERTEN_BLESS` writes it anew).

mod numpy;

use std::path::{Path, PathBuf};
use std::{env, fs};

use certen::road::lang::format::format;
use certen::road::syntax::{Sources, render_all};
use certen::{Choice, Module, Options, check};
use libtest_mimic::{Arguments, Failed, Trial};

use numpy::{agrees_at_other_sizes, call, expected, gives, numpy_gives_what_is_expected, shown};

/// Kernels, and the lines that they have in Table 1, with declarations. The copy of the paper that we have does not show the
/// number of `coars`; helm_div is a variant of helm.
const TABLE_1: [(&str, Option<usize>); 11] = [
    ("mm", Some(3)),
    ("tmm", Some(4)),
    ("bmm", Some(3)),
    ("gconv", Some(5)),
    ("mttkrp", Some(5)),
    ("sddmm", Some(6)),
    ("interp", Some(5)),
    ("helm", Some(9)),
    ("helm_div", Some(9)),
    ("blur", Some(9)),
    ("coars", None),
];

/// A kernel may have so many lines more than in Table 1.
const MORE: usize = 2;

/// The lines of `coars`, of which we do not know the number: no more than the longest kernels of Table 1.
const MOST_OF_COARS: usize = 9;

/// Where the table of the README begins, and ends.
const MARKS: [&str; 2] =
    ["<!-- The table below is written by crates/certen/tests/teml.rs -->\n", "\n<!-- The table above -->\n"];

fn main() {
    let mut trials = Vec::new();
    for (kernel, _) in TABLE_1 {
        for dialect in ["teml", "ten"] {
            let file = format!("{kernel}.{dialect}");
            trials.push(Trial::test(file.clone(), move || agrees(kernel, &file)));
        }
    }
    trials.push(Trial::test("every_kernel_is_listed", every_kernel_is_listed));
    trials.push(Trial::test("lengths_and_proofs", || Ok(readme()?)));
    let numpy = || Ok(numpy_gives_what_is_expected(&folder(), "expected_teml.json")?);
    trials.push(Trial::test("numpy_gives_what_is_expected", numpy).with_ignored_flag(true));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/teml")
}

fn text(file: &str) -> Result<String, String> {
    fs::read_to_string(folder().join(file)).map_err(|error| format!("{file}: {error}"))
}

/// A program gives what NumPy does, along every path.
fn agrees(kernel: &str, file: &str) -> Result<(), Failed> {
    let cases = expected(&folder().join("expected.json"))?;
    let case = cases.get(&format!("teml/{kernel}")).ok_or("there is no case for it in expected.json")?;
    let call = call(case)?;
    let with = |schedule: Choice| {
        let options = Options { schedule, require_proof: true, ..Options::default() };
        Module::from_file(folder().join(file), &options).map_err(shown)
    };
    let variants = with(Choice::Default)?.variants();
    if variants.len() < 3 {
        return Err(format!("it has the variants {variants:?} only").into());
    }
    for variant in variants {
        let module = with(variant.clone())?;
        if !module.warnings().is_empty() {
            return Err(render_all(module.sources(), module.warnings(), false).into());
        }
        let here = |error: String| format!("{variant:?}: {error}");
        gives(&module, &call, case).map_err(here)?;
        agrees_at_other_sizes(&module, || with(variant.clone())).map_err(here)?;
    }
    Ok(())
}

fn every_kernel_is_listed() -> Result<(), Failed> {
    let mut listed: Vec<String> = TABLE_1.iter().map(|(kernel, _)| (*kernel).to_owned()).collect();
    listed.sort();
    for ending in ["teml", "ten"] {
        let entries = fs::read_dir(folder()).map_err(|error| error.to_string())?.flatten().map(|entry| entry.path());
        let of_ending = entries.filter(|path| path.extension().is_some_and(|e| e == ending));
        let mut found: Vec<String> =
            of_ending.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
        found.sort();
        if found != listed {
            return Err(format!("the files .{ending} are {found:?}, listed are {listed:?}").into());
        }
    }
    Ok(())
}

/// The lines of a kernel in TeML: statements above the first `build`, without comments and declarations. What stands below
/// belongs to its paths.
fn lines(text: &str) -> usize {
    let is_statement = |line: &&str| !line.is_empty() && !line.starts_with("//");
    let is_declaration = |line: &str| line.contains("= tensor(") || line.contains("= scalar(");
    let statements = text.lines().map(str::trim).filter(is_statement);
    statements.take_while(|line| !line.contains("build(")).filter(|line| !is_declaration(line)).count()
}

/// The names of a file's paths or schedules; all of them are proved.
fn proved(file: &str) -> Result<Vec<String>, String> {
    let checked = check(folder().join(file), &Options::default()).map_err(shown)?;
    let mut names = Vec::new();
    for (head, known) in &checked.schedules {
        if !known.ends_with("equality proved") {
            return Err(format!("{file}: {head}: {known}"));
        }
        names.extend(head.split(' ').nth(1).map(|name| format!("`{name}`")));
    }
    Ok(names)
}

fn house_style(file: &str) -> Result<(), String> {
    let mut sources = Sources::new();
    let id = sources.add(file, text(file)?);
    let source = sources.get(id).ok_or("no source")?;
    let styled = format(source, id).map_err(|mistakes| render_all(&sources, &mistakes.into_sorted(), false))?;
    if styled == text(file)? { Ok(()) } else { Err(format!("{file} is not in house style, which is\n{styled}")) }
}

fn readme() -> Result<(), String> {
    let mut table = String::from("\n| kernel | what it computes | lines | in the paper | paths | schedules |\n");
    table += "|---|---|--:|--:|---|---|\n";
    for (kernel, paper) in TABLE_1 {
        let (teml, ten) = (format!("{kernel}.teml"), format!("{kernel}.ten"));
        house_style(&ten)?;
        let source = text(&teml)?;
        let count = lines(&source);
        if count > paper.map_or(MOST_OF_COARS, |paper| paper + MORE) {
            return Err(format!("{teml} has {count} lines, in the paper it has {paper:?}"));
        }
        let about =
            source.lines().next().and_then(|line| line.strip_prefix("// ")).ok_or(format!("{teml}: no comment"))?;
        let paper = paper.map_or("?".into(), |paper| paper.to_string());
        let (paths, schedules) = (proved(&teml)?.join(", "), proved(&ten)?.join(", "));
        let about = about.trim_end_matches('.');
        table +=
            &format!("| [{kernel}]({teml}) | {about} | {count} | {paper} | {paths} | [{ten}]({ten}): {schedules} |\n");
    }
    let written = text("README.md")?;
    let (before, rest) = written.split_once(MARKS[0]).ok_or("the README has no place for its table")?;
    let (found, after) = rest.split_once(MARKS[1]).ok_or("the README has no end of its table")?;
    if found == table {
        return Ok(());
    }
    if env::var_os("CERTEN_BLESS").is_none() {
        return Err(format!("the table of examples/teml/README.md is old; the new one is\n{table}"));
    }
    let new = format!("{before}{}{table}{}{after}", MARKS[0], MARKS[1]);
    fs::write(folder().join("README.md"), new).map_err(|error| error.to_string())
}
