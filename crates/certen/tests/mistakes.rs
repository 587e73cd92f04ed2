//! Mistakes in schedules and derivations, each in a file of `tests/schedules/mistakes` or `tests/derivations/mistakes` with the
//! whole message that people see.
//!
//! The first line of a file is a comment that says what is wrong. Then stand `//@ fn: NAME` for what is to be run,
//! `//@ schedule: STEPS` for a schedule that is given from outside, or `//@ variant: NAME` for one of the file's;
//! `//@ require-proof`; `//@ strict`; and `//@ message`, with what is said in lines that begin with `//|`. `cargo xtask bless` rewrites it. What is not refused has no message, and is no
//! mistake.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use certen::road::syntax::Code;
use certen::{Choice, Failure, FpMode, Module, Name, Options};

/// What is expected of every message that speaks of a step.
const STEPS: [Code; 2] = [Code::E0802, Code::E0803];

fn files(of: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/{of}/mistakes"));
    let entries = fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Why a program is refused, if it is.
fn refused(name: &str, text: &str) -> Option<Failure> {
    let header = |key: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("//@ ")?.strip_prefix(key));
        lines.map(|rest| rest.trim_start_matches(':').trim().to_owned()).next()
    };
    let schedule = match (header("schedule"), header("variant")) {
        (Some(text), _) => Choice::Text { name: "schedule".into(), text },
        (None, Some(name)) => Choice::Variant(Name::new(&name)),
        (None, None) => Choice::Default,
    };
    let require_proof = header("require-proof").is_some();
    let fp = if header("strict").is_some() { FpMode::Strict } else { FpMode::Relaxed };
    let function = header("fn").map(|name| Name::new(&name));
    let options = Options { schedule, require_proof, fp, function, ..Options::default() };
    Module::from_text(name, text, &options).and_then(|module| module.c()).err()
}

/// The text with its message replaced by what is said.
fn blessed(text: &str, message: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("//|")) {
        lines.push(line.to_owned());
        if line == "//@ message" {
            lines.extend(message.lines().map(|line| format!("//| {line}").trim_end().to_owned()));
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn every_mistake_in_a_schedule_has_its_message() {
    let codes = check("schedules", 30);
    let all = [Code::E0103, Code::E0202, Code::E0705, Code::E0801, Code::E0802, Code::E0803, Code::E0804, Code::E0805];
    let missing: Vec<&Code> = all.iter().filter(|code| !codes.contains(code)).collect();
    assert!(missing.is_empty(), "no mistake gives {missing:?}");
}

#[test]
fn every_mistake_in_a_derivation_has_its_message() {
    let codes = check("derivations", 40);
    let all = [
        Code::E0103,
        Code::E0202,
        Code::E0217,
        Code::E0235,
        Code::E0901,
        Code::E0902,
        Code::E0903,
        Code::E0904,
        Code::E0905,
    ];
    let missing: Vec<&Code> = all.iter().filter(|code| !codes.contains(code)).collect();
    assert!(missing.is_empty(), "no mistake gives {missing:?}");
}

/// Compares the messages of a directory with what is said, and gives the codes.
fn check(of: &str, least: usize) -> BTreeSet<Code> {
    let bless = std::env::var_os("CERTEN_BLESS").is_some();
    let mut wrong = Vec::new();
    let mut codes = BTreeSet::new();
    let files = files(of);
    for path in &files {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let mut text = fs::read_to_string(path).unwrap();
        assert!(text.starts_with("// ") && text.contains("\n//@ message\n"), "the header of {name}");
        // The header moves the lines that messages speak of.
        for round in 0..4 {
            let Some(failure) = refused(name, &text) else {
                wrong.push(format!("{name} is accepted"));
                break;
            };
            let found = blessed(&text, &failure.to_string());
            if round == 0 {
                wrong.extend(lacking(&failure).map(|what| format!("{name}: {what}:\n{failure}")));
                codes.extend(failure.diagnostics().iter().map(|error| error.code));
            }
            if found == text {
                break;
            }
            if !bless {
                wrong.push(format!("{name} says\n{failure}"));
                break;
            }
            fs::write(path, &found).unwrap();
            text = found;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(files.len() >= least, "there are only {} mistakes", files.len());
    codes
}

/// What a message lacks: it is one, has a place, and shows the loops or the program if it speaks of a step.
fn lacking(failure: &Failure) -> Option<&'static str> {
    let [error] = failure.diagnostics() else { return Some("one mistake gives several messages") };
    let speaks_of_loops = error.message.contains("loop") && STEPS.contains(&error.code);
    let shows_loops = error.notes.iter().any(|note| note.contains("for "));
    let shows_program = error.notes.iter().any(|note| note.contains("at this step the program is"));
    let is_of_call = matches!(error.code, Code::E0402 | Code::E0410);
    if matches!(error.code, Code::E0904 | Code::E0905) && !shows_program {
        Some("the program is not shown")
    } else if error.primary.is_none() && error.code != Code::E0802 && !is_of_call {
        Some("a message without a place")
    } else if speaks_of_loops && !shows_loops {
        Some("the loops are not shown")
    } else {
        None
    }
}
