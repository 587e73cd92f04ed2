//! Syntax mistakes and what is said about them: the files in `tests/mistakes`.
//!
//! Every line with a mistake ends in `// wrong`, and there is one error on each of them and nowhere else. The messages
//! stand in the file's header, as in `tests/programs`; `CERTEN_BLESS=1` fills them in.

use std::path::Path;

use certen_lang::parse::parse;
use certen_syntax::{Diagnostic, Sources, render};

/// The errors of a text in its order.
fn errors(text: &str) -> (Sources, Vec<Diagnostic>) {
    let mut sources = Sources::new();
    let file = sources.add("t.ten", text);
    let mut diagnostics = certen_syntax::Diagnostics::new();
    parse(sources.get(file).unwrap(), file, &mut diagnostics);
    (sources, diagnostics.into_sorted())
}

/// A file with its header replaced by the messages it gives.
fn with_messages(text: &str) -> String {
    let (sources, errors) = errors(text);
    let messages: Vec<String> = errors.iter().map(|error| render(&sources, error, false)).collect();
    let messages = messages.join("\n");
    let mut out = String::new();
    for line in text.lines().filter(|line| !line.starts_with("//|")) {
        out += &format!("{line}\n");
        if line == "//@ diagnostics" {
            out.extend(messages.lines().map(|line| format!("//| {line}").trim_end().to_owned() + "\n"));
        }
    }
    out
}

/// The lines, from 1, that are marked, and those where the errors are.
fn wrong_lines(text: &str) -> (Vec<usize>, Vec<usize>) {
    let (sources, errors) = errors(text);
    // The end of the file counts as the end of its last line.
    let end = text.trim_end().len() as u32;
    let line = |error: &Diagnostic| {
        let span = error.primary.as_ref().unwrap().span;
        sources.get(span.file).unwrap().line(span.start.min(end))
    };
    let is_marked = |line: &str| !line.starts_with("//") && line.ends_with("// wrong");
    let marked = text.lines().enumerate().filter(|(_, line)| is_marked(line)).map(|(at, _)| at + 1).collect();
    let found = errors.iter().map(line).collect();
    (marked, found)
}

#[test]
fn one_mistake_gives_one_message() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let bless = std::env::var_os("CERTEN_BLESS").is_some();
    let mut count = 0;
    let mut wrong = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mut text = std::fs::read_to_string(&path).unwrap();
        // A longer header moves the lines that the messages speak of.
        for _ in 0..3 {
            let found = with_messages(&text);
            if bless {
                std::fs::write(&path, &found).unwrap();
                text = found;
            } else if text != found {
                let line = text.lines().zip(found.lines()).position(|(one, other)| one != other);
                wrong += &format!("{}: other messages, from line {:?}\n{found}\n", path.display(), line.map(|l| l + 1));
                break;
            }
        }
        let (marked, found) = wrong_lines(&text);
        if marked != found {
            wrong += &format!("{}: mistakes on lines {marked:?}, errors on {found:?}\n", path.display());
        }
        count += marked.len();
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count >= 80, "{count} mistakes were found");
}
