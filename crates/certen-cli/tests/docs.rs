//! Every example in the documentation is true.
//!
//! In the files below, a block marked `ten`, `teil`, `model` or `teml` is an accepted program. A block marked `console` holds
//! commands, `$ certen …`, each followed by exactly what it prints (standard output, then standard error) when run at the
//! root of the repository; `cargo xtask bless` rewrites it. In one marked `console times`, numbers with a point are those
//! of one run: any others, and the blanks before them, are as good. Blocks marked `sh` are the README's two commands, the
//! one marked `rust` is the code of a test below.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{CERTEN, Ran, command, run};

const FILES: [&str; 8] = [
    "README.md",
    "docs/DERIVATIONS.md",
    "docs/LANGUAGE.md",
    "docs/SCHEDULES.md",
    "docs/TEML.md",
    "docs/TEN.md",
    "docs/TOOLS.md",
    "docs/TUTORIAL.md",
];

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

/// A text with the output of every command in a `console` block replaced by what it prints; where that are times, only if
/// something else than their numbers has changed.
fn with_outputs(text: &str) -> String {
    let mut found = String::new();
    let mut inside = false;
    let mut timed = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            timed = line == "```console times";
            inside = timed || line == "```console";
        }
        found.extend([line, "\n"]);
        let Some(command) = line.strip_prefix("$ ").filter(|_| inside) else { continue };
        // Lines up to the next command are what was printed when it was written.
        let mut written = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && !line.starts_with("```")) {
            written.extend([line, "\n"]);
        }
        let Ran { out, err, .. } = at_root(command);
        let printed = out + &err;
        found += if timed && without_times(&written) == without_times(&printed) { &written } else { &printed };
    }
    found
}

/// A text with a dot for every number that has a point in it, and for the blanks before it.
fn without_times(text: &str) -> String {
    let words = |line: &str| {
        let is_time = |word: &&str| word.parse::<f64>().is_ok() && word.contains('.');
        let word = |word| if is_time(&word) { "·" } else { word };
        line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
    };
    text.lines().map(|line| words(line) + "\n").collect()
}

#[test]
fn times_are_not_compared() {
    let text = "none        2    12.345    13.001   1.00 x  3, proved  0.12 s\n";
    assert_eq!(without_times(text), "none 2 · · · x 3, proved · s\n");
    assert_ne!(without_times(text), without_times(&text.replace("proved", "tested")));
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
        let dialects = ["ten", "teil", "model", "teml"];
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

/// The program and the schedules that the tutorial shows are those of its file.
#[test]
fn the_tutorial_shows_its_file() {
    let page = read("docs/TUTORIAL.md");
    let file = read("examples/tutorial/blur.ten");
    let (program, schedules) = (blocks(&page, "ten"), blocks(&page, "schedule"));
    assert_eq!((program.len(), schedules.len()), (1, file.matches("\nschedule ").count()));
    for block in program.iter().chain(&schedules) {
        assert!(file.contains(block), "not in the file:\n{block}");
    }
}

/// The file that the page about tools shows is the one that its commands use.
#[test]
fn the_example_of_the_tools_is_the_file() {
    assert_eq!(blocks(&read("docs/TOOLS.md"), "ten"), [read("examples/smooth.ten")]);
}
