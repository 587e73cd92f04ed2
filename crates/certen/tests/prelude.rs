//! The prelude is documented and tested: `docs/reference/prelude.md` is made from its comments, every function has an example, and
//! the tables in `tests/prelude` use every function on empty shapes and at ranks 0 to 4. That examples and tables are
//! true is tested where `certen test` is.
//!
//! Comments of the prelude: `//# TITLE` begins a section; the lines `// TEXT` and `//? EXPR == EXPR` directly above a
//! function are its description and its examples.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn prelude() -> String {
    fs::read_to_string(root().join("crates/certen-lang/prelude/prelude.ten")).unwrap()
}

/// A function and what the comments above it say.
#[derive(Default)]
struct Entry {
    section: String,
    name: String,
    signature: String,
    text: String,
    examples: Vec<String>,
}

/// The introduction, and the functions in order.
fn read(text: &str) -> (String, Vec<Entry>) {
    let (mut introduction, mut entries) = (String::new(), Vec::new());
    let (mut section, mut entry) = (String::new(), Entry::default());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("//# ") {
            section = title.to_owned();
        } else if let Some(example) = line.strip_prefix("//? ") {
            entry.examples.push(example.to_owned());
        } else if let Some(comment) = line.strip_prefix("//") {
            let text = if section.is_empty() { &mut introduction } else { &mut entry.text };
            text.push_str(comment.strip_prefix(' ').unwrap_or(comment));
            text.push('\n');
        } else if let Some(function) = line.strip_prefix("fn ") {
            entry.section.clone_from(&section);
            entry.name = function.split('(').next().unwrap_or_default().to_owned();
            entry.signature = line.trim_end_matches('{').trim_end().to_owned();
            entries.push(std::mem::take(&mut entry));
        }
    }
    (introduction, entries)
}

/// The page of the prelude.
fn page(text: &str) -> String {
    let (introduction, entries) = read(text);
    let mut page = String::from("# The prelude\n\n");
    let body = introduction.trim_start_matches("The prelude: functions").trim();
    let _ = writeln!(page, "Functions {body}\n");
    page.push_str("This page is made from the comments of the prelude. Every example is run by the tests.\n");
    let mut section = "";
    for (at, entry) in entries.iter().enumerate() {
        if entry.section != section {
            section = &entry.section;
            let names = entries[at..].iter().take_while(|entry| entry.section == section);
            let links: Vec<String> = names.map(|entry| format!("[`{0}`](#{0})", entry.name)).collect();
            let _ = write!(page, "\n## {section}\n\n{}\n", wrapped(&links));
        }
        let _ = write!(page, "\n### {}\n\n```ten\n{}\n```\n\n{}\n", entry.name, entry.signature, entry.text.trim());
        let _ = write!(page, "\n```ten\n{}\n```\n", entry.examples.join("\n"));
    }
    page
}

/// Words in lines of at most 120 columns.
fn wrapped(words: &[String]) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for (at, word) in words.iter().enumerate() {
        let word = if at + 1 < words.len() { format!("{word},") } else { word.clone() };
        if width > 0 && width + 1 + word.len() > 120 {
            text.push('\n');
            width = 0;
        } else if width > 0 {
            text.push(' ');
            width += 1;
        }
        width += word.len();
        text.push_str(&word);
    }
    text
}

#[test]
fn the_page_is_that_of_the_prelude() {
    let (path, page) = (root().join("docs/reference/prelude.md"), page(&prelude()));
    if std::env::var_os("CERTEN_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let printed = fs::read_to_string(&path).unwrap_or_default();
    assert!(printed == page, "docs/reference/prelude.md is not of today: run `cargo xtask bless`");
}

#[test]
fn every_function_has_a_description_and_an_example_that_calls_it() {
    let (_, entries) = read(&prelude());
    assert!(entries.len() > 40);
    for entry in entries {
        assert!(!entry.section.is_empty() && !entry.text.trim().is_empty(), "{}: no description", entry.name);
        let call = format!("{}(", entry.name);
        assert!(entry.examples.iter().any(|example| example.contains(&call)), "{}: no example", entry.name);
    }
}

/// Index functions have no tensors that could be empty.
const INDEX_FUNCTIONS: [&str; 4] = ["clamp", "reflect", "mirror", "periodic"];

#[test]
fn the_tables_have_every_function() {
    let table = |name: &str| fs::read_to_string(root().join("tests/prelude").join(name)).unwrap();
    let (empty, ranks) = (table("empty.ten"), table("ranks.ten"));
    for Entry { name, .. } in read(&prelude()).1 {
        let calls = |table: &str| {
            let lines = table.lines().filter(|line| line.starts_with("//?"));
            lines.flat_map(|line| line.split(|c: char| !(c.is_alphanumeric() || c == '_'))).any(|word| word == name)
        };
        assert!(calls(&ranks), "{name} is not in tests/prelude/ranks.ten");
        assert!(calls(&empty) || INDEX_FUNCTIONS.contains(&name.as_str()), "{name} is not in tests/prelude/empty.ten");
    }
}
