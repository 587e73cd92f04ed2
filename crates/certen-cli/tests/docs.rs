//! Every example in the documentation is true.
//!
//! In the pages below, a block marked `ten`, `teil`, `model` or `teml` is an accepted program. A block marked `console` holds
//! commands, `$ certen …`, each followed by exactly what it prints (standard output, then standard error) when run at the
//! root of the repository; `cargo xtask bless` rewrites it. In one marked `console times`, numbers with a point are those
//! of one run: any others, and the blanks before them, are as good. In one marked `console part`, a line `…` stands for any
//! lines. Blocks marked `sh` in the README are its two commands. The one marked `rust` is the code of a test below.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{CERTEN, Ran, command, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).unwrap()
}

/// All files below a folder.
fn files(folder: &str) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap().map(Result::unwrap) {
            let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() { &mut folders } else { &mut found }.push(path);
        }
    }
    found
}

/// Every page that is written by hand, at least in part: the README, CONTRIBUTING and all below `docs`. Generated pages whose
/// programs are examples of mistakes, or parts of programs, are tested where they are generated.
fn pages() -> Vec<String> {
    let mut found = files("docs");
    found.extend(["README.md".into(), "CONTRIBUTING.md".into()]);
    found.retain(|page| !["docs/reference/errors.md", "docs/reference/prelude.md"].contains(&page.as_str()));
    found.sort();
    found
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
    // Schedules depend on the machine.
    run(command(CERTEN, &root()).env("CERTEN_L2_BYTES", (1 << 20).to_string()).args(words))
}

/// A text with the output of every command in a `console` block replaced by what it prints, unless the block is of times or
/// of a part and what it shows still holds.
fn with_outputs(text: &str) -> String {
    let mut found = String::new();
    let mut inside = false;
    let mut holds: fn(&str, &str) -> bool = str::eq;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            inside = line.starts_with("```console");
            holds = match line {
                "```console times" => |written, printed| without_times(written) == without_times(printed),
                "```console part" => is_part,
                _ => str::eq,
            };
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
        found += if holds(&written, &printed) { &written } else { &printed };
    }
    found
}

/// Whether the lines of a part stand in a text, in their order, with any lines in between only where the part has a line `…`.
fn is_part(part: &str, text: &str) -> bool {
    let pieces: Vec<&str> = part.split("…\n").collect();
    let (Some((first, rest)), true) = (pieces.split_first(), pieces.len() > 1) else { return part == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (last, between) = rest.split_last().unwrap_or((&"", &[]));
    for piece in between {
        match text.split_once(piece) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    text.ends_with(last)
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
fn parts_have_gaps_only_where_they_say_so() {
    let text = "a\nb\nc\nd\n";
    assert!(["a\n…\nc\n…\n", "…\nb\nc\n…\n", "…\nd\n", text].iter().all(|part| is_part(part, text)));
    assert!(["a\nc\n…\n", "…\nc\n", "…\nd\n…\na\n…\n", "…\ne\n…\n"].iter().all(|part| !is_part(part, text)));
}

#[test]
fn consoles_show_what_is_printed() {
    let mut commands = 0;
    for file in pages() {
        let written = read(&file);
        let found = with_outputs(&written);
        commands += found.matches("\n$ certen ").count();
        if std::env::var_os("CERTEN_BLESS").is_some() {
            fs::write(root().join(&file), &found).unwrap();
        } else if let Some((at, (written, found))) =
            written.lines().zip(found.lines()).enumerate().find(|(_, (a, b))| a != b)
        {
            panic!("{file}:{}: it says\n  {written}\nbut this is printed:\n  {found}", at + 1);
        } else {
            assert_eq!(written.len(), found.len(), "{file}: an output is longer or shorter");
        }
    }
    assert!(commands >= 40, "only {commands} commands");
}

#[test]
fn programs_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let mut programs = 0;
    for file in pages() {
        let text = read(&file);
        for dialect in ["ten", "teil", "model", "teml"] {
            for program in blocks(&text, dialect) {
                let name = format!("program.{dialect}");
                fs::write(directory.path().join(&name), &program).unwrap();
                let ran = run(command(CERTEN, directory.path()).args(["check", &name]));
                assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""), "{file}:\n{program}");
                programs += 1;
            }
        }
    }
    assert!(programs >= 30, "only {programs} programs");
}

/// Where a heading can be linked to, as GitHub writes it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn links_lead_somewhere() {
    let more = ["ARCHITECTURE.md", "CHANGELOG.md", "examples/README.md", "examples/atl/README.md", "fuzz/README.md"];
    for page in pages().into_iter().chain(more.map(String::from)) {
        let text = read(&page);
        let folder = root().join(&page).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(link, _)| link) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            if link.starts_with("http") || link.contains(['`', ' ']) {
                continue;
            }
            let target = if file.is_empty() { root().join(&page) } else { folder.join(file) };
            assert!(target.exists(), "{page}: {link} leads nowhere");
            if !place.is_empty() {
                let target = fs::read_to_string(target).unwrap();
                let mut headings = target.lines().filter(|line| line.starts_with('#'));
                let is_there = headings.any(|line| anchor(line.trim_start_matches('#').trim()) == place);
                assert!(is_there, "{page}: {link} names no heading");
            }
        }
    }
}

#[test]
fn files_that_are_named_exist() {
    let sources = [files("crates"), files("xtask/src")].concat();
    let about_code = files("docs/papers").into_iter().chain(["ARCHITECTURE.md".to_owned()]);
    for page in about_code {
        for named in read(&page).split('`').skip(1).step_by(2).filter(|named| named.ends_with(".rs")) {
            let is_there = sources.iter().any(|file| file.ends_with(&format!("/{named}")) || file == named);
            assert!(is_there, "{page} names {named}, which is not there");
        }
    }
}

/// The section of a page below a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading `{heading}`"));
    rest.split("\n## ").next().unwrap_or_default()
}

#[test]
fn every_command_is_described_with_all_its_options() {
    let page = read("docs/reference/commands.md");
    let shared = section(&page, "Options that many commands have");
    let help = at_root("certen help").out;
    // What goes on in the next line begins further to the right.
    let commands = help.split("Commands:\n").nth(1).unwrap().lines().take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()));
    for command in names {
        let own = section(&page, &format!("certen {command}"));
        for line in at_root(&format!("certen {command} --help")).out.lines().map(str::trim_start) {
            let Some((_, rest)) = line.split_once("--").filter(|_| line.starts_with('-')) else { continue };
            let option = rest.split([' ', '=']).next().unwrap_or_default();
            let named = format!("`--{option}");
            let is_there = own.contains(&named) || shared.contains(&named);
            assert!(is_there || ["help", "version"].contains(&option), "certen {command}: --{option} is not described");
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

/// The guide's code; [`the_rust_example_is_the_code_that_runs`] compares the texts.
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
    assert_eq!(blocks(&read("docs/guide/calling.md"), "rust"), [code]);
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
    let text = read("docs/papers/teil.md");
    let head = "| law | TeIL | equation | if | floats |\n|---|---|---|---|---|\n";
    let (before, rest) = text.split_once(head).expect("a table of laws");
    let (table, after) = rest.split_once("\n\n").map_or((rest, ""), |(table, after)| (table, after));
    let table = if table.is_empty() { String::new() } else { format!("{table}\n") };
    if table != rows && std::env::var_os("CERTEN_BLESS").is_some() {
        let after = after.trim_start_matches('\n');
        return fs::write(root().join("docs/papers/teil.md"), format!("{before}{head}{rows}\n{after}")).unwrap();
    }
    assert_eq!(table, rows, "docs/papers/teil.md");
}

/// The program of the guide to scheduling is that of its file, and its steps are those of the last schedule there.
#[test]
fn the_guide_to_scheduling_shows_its_file() {
    let page = read("docs/guide/scheduling.md");
    let file = read("examples/tutorial/blur.ten");
    let program = blocks(&page, "ten");
    assert!(program.len() == 1 && file.contains(&program[0]));
    assert!(file.ends_with(&format!(" for blur {{\n{}}}\n", blocks(&page, "schedule").concat())));
}

/// The file that the page of commands shows is the one that its commands use.
#[test]
fn the_example_of_the_commands_is_the_file() {
    assert_eq!(blocks(&read("docs/reference/commands.md"), "ten"), [read("examples/smooth.ten")]);
}
