//! Every example in the documentation is true.
//!
//! In `README.md`, `docs/DERIVATIONS.md`, `docs/LANGUAGE.md`, `docs/SCHEDULES.md`, `docs/TEN.md` and `docs/TOOLS.md`, a block marked `ten`, `teil` or `model` is an
//! accepted program. A block marked `console` holds commands, `$ certen …`, each followed by exactly what it prints (standard output, then standard
//! error) when run at the root of the repository; `cargo xtask bless` rewrites it. Blocks marked `sh` are the README's
//! two commands, the one marked `rust` is the code of a test below.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{CERTEN, Ran, command, run};

const FILES: [&str; 6] =
    ["README.md", "docs/DERIVATIONS.md", "docs/LANGUAGE.md", "docs/SCHEDULES.md", "docs/TEN.md", "docs/TOOLS.md"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// The texts inside the fences that are marked with a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = None;
    for line in text.lines() {
        match (inside, line.strip_prefix("```")) {
            (None, Some(mark)) => {
                inside = Some(mark == language);
                found.extend((mark == language).then(String::new));
            }
            (Some(_), Some(_)) => inside = None,
            (Some(true), None) => found.last_mut().unwrap().extend([line, "\n"]),
            _ => {}
        }
    }
    found
}

/// Runs a command line that begins with `certen`, at the root of the repository.
fn at_root(line: &str) -> Ran {
    let words = line.strip_prefix("certen ").unwrap_or_else(|| panic!("not a certen command: {line}"));
    // Every second piece stands in quotes.
    let words = words.split('"').enumerate().flat_map(|(at, piece)| match at % 2 {
        0 => piece.split_whitespace().collect(),
        _ => vec![piece],
    });
    run(command(CERTEN, &root()).args(words))
}

/// A text with the output of every command in a `console` block replaced by what it prints.
fn with_outputs(text: &str) -> String {
    let mut found = String::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        }
        // Lines inside that are no commands are what was printed when it was written.
        let command = inside.then(|| line.strip_prefix("$ ")).flatten();
        if !inside || command.is_some() || line.starts_with("```") {
            found.extend([line, "\n"]);
        }
        if let Some(command) = command {
            let Ran { out, err, .. } = at_root(command);
            found.extend([out, err]);
        }
    }
    found
}

#[test]
fn consoles_show_what_is_printed() {
    for file in FILES {
        let written = read(file);
        let found = with_outputs(&written);
        assert!(found.contains("\n$ certen "), "{file} shows no command");
        if std::env::var_os("CERTEN_BLESS").is_some() {
            fs::write(root().join(file), &found).unwrap();
        } else if let Some((at, (written, found))) =
            written.lines().zip(found.lines()).enumerate().find(|(_, (a, b))| a != b)
        {
            panic!("{file}:{}: it says\n  {written}\nbut this is printed:\n  {found}", at + 1);
        } else {
            assert_eq!(written.len(), found.len(), "{file}: an output is longer or shorter");
        }
    }
}

#[test]
fn programs_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    for file in FILES {
        let text = read(file);
        let dialects = ["ten", "teil", "model"];
        assert!(dialects.iter().any(|dialect| !blocks(&text, dialect).is_empty()), "{file} shows no program");
        for dialect in dialects {
            for program in blocks(&text, dialect) {
                let name = format!("program.{dialect}");
                fs::write(directory.path().join(&name), &program).unwrap();
                let ran = run(command(CERTEN, directory.path()).args(["check", &name]));
                assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{file}:\n{program}");
            }
        }
    }
}

#[test]
fn the_first_command_prints_result_and_speed() {
    let commands = blocks(&read("README.md"), "sh");
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert_eq!(commands[1], "cargo xtask test\n");
    let line = commands[0].trim_end().replace("cargo run --release --quiet --", "certen");
    let Ran { status, out, err } = at_root(&line);
    assert_eq!((status, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("C : f64[500, 600]\n"), "{out}");
    let time = out.lines().last().unwrap();
    assert!(time.starts_with("time: ") && time.contains("Gop/s"), "{time}");
}

/// The README's code; [`the_rust_example_is_the_code_that_runs`] compares the texts.
#[expect(clippy::print_stdout, reason = "an example for people prints")]
fn rust_example() -> Result<(), Box<dyn std::error::Error>> {
    // begin
    use certen::{Call, Input, Module, Options};

    let module = Module::from_file("examples/slices.teil", &Options::default())?;
    let call = Call::new().input("A", Input::Iota).input("B", Input::Random(1)).dim("k", 2).dim("m", 3).dim("n", 5);
    for output in module.run(&call)? {
        println!("{}: {:?}", output.name, output.shape);
    }
    // end
    Ok(())
}

#[test]
fn the_rust_example_is_the_code_that_runs() {
    let between =
        include_str!("docs.rs").split("    // begin\n").nth(1).and_then(|rest| rest.split("    // end\n").next());
    let code: String =
        between.unwrap().lines().map(|line| line.strip_prefix("    ").unwrap_or(line).to_owned() + "\n").collect();
    assert_eq!(blocks(&read("README.md"), "rust"), [code]);
    // No other test of this file depends on the current directory.
    std::env::set_current_dir(root()).unwrap();
    rust_example().unwrap();
}

/// The table of laws in the reference is the list that the optimiser uses.
#[test]
fn the_table_of_laws_is_the_list_of_laws() {
    let row = |law: &certen::road::dialects::algebra::Law| {
        let condition = if law.condition.is_empty() { String::new() } else { format!("`{}`", law.condition) };
        let floats = if law.exact { "bit for bit" } else { "other roundings" };
        format!("| {} | {} | `{}` = `{}` | {condition} | {floats} |\n", law.name, law.paper, law.left, law.right)
    };
    let rows: String = certen::road::dialects::algebra::LAWS.iter().map(row).collect();
    let text = read("docs/LANGUAGE.md");
    let head = "| law | TeIL | equation | if | floats |\n|---|---|---|---|---|\n";
    let (before, rest) = text.split_once(head).expect("a table of laws");
    let (table, after) = rest.split_once("\n\n").map_or((rest, ""), |(table, after)| (table, after));
    let table = if table.is_empty() { String::new() } else { format!("{table}\n") };
    if table != rows && std::env::var_os("CERTEN_BLESS").is_some() {
        let after = after.trim_start_matches('\n');
        return fs::write(root().join("docs/LANGUAGE.md"), format!("{before}{head}{rows}\n{after}")).unwrap();
    }
    assert_eq!(table, rows, "docs/LANGUAGE.md");
}

/// The file that the page about tools shows is the one that its commands use.
#[test]
fn the_example_of_the_tools_is_the_file() {
    assert_eq!(blocks(&read("docs/TOOLS.md"), "ten"), [read("examples/smooth.ten")]);
}
