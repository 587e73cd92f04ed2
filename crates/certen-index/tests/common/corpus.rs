//! The questions in `tests/prover`, with their answers.
//!
//! ```text
//! # a comment
//! [title of a situation]
//! given FACT, FACT       facts of this situation; further lines add to them
//! yes CONDITION          it follows from the facts
//! no CONDITION           it does not
//! equal A , B            always equal
//! different A , B        not always equal
//! smaller A , B          A <= B always
//! sat                    some integers satisfy the facts
//! unsat                  none do
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use super::parse::Reader;
use super::question::{Goal, Kind, Question};
use super::tree::{Expr, Formula};

/// A question of the corpus.
pub struct Entry {
    /// Where it stands, as `file:line: text`.
    pub place: String,
    pub question: Question,
    /// The kind of the prover's answer: for `sat`, yes; for `unsat`, no.
    pub answer: Kind,
}

/// The files, in order.
pub fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/prover");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "txt"));
    files.sort();
    files
}

/// The questions of a file, in order.
pub fn read(file: &Path) -> Vec<Entry> {
    let file_name = file.file_name().unwrap().to_string_lossy();
    let mut entries = Vec::new();
    let (mut names, mut facts): (Vec<String>, Vec<Formula>) = (Vec::new(), Vec::new());
    for (number, line) in fs::read_to_string(file).unwrap().lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        let place = format!("{file_name}:{}: {line}", number + 1);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if line.starts_with('[') {
            (names, facts) = (Vec::new(), Vec::new());
        } else if word == "given" {
            facts.extend(Reader::new(rest, &mut names).list(Reader::formula));
        } else if !line.is_empty() {
            let mut names = names.clone();
            let (goal, answer) = goal(word, rest, &mut names).unwrap_or_else(|| panic!("not a question: {place}"));
            entries.push(Entry { place, question: Question { names, facts: facts.clone(), goal }, answer });
        }
    }
    entries
}

fn goal(word: &str, rest: &str, names: &mut Vec<String>) -> Option<(Goal, Kind)> {
    let reader = Reader::new(rest, names);
    Some(match word {
        "sat" => (Goal::Satisfiable, Kind::Yes),
        "unsat" => (Goal::Satisfiable, Kind::No),
        "yes" => (Goal::Holds(reader.list(Reader::formula).pop()?), Kind::Yes),
        "no" => (Goal::Holds(reader.list(Reader::formula).pop()?), Kind::No),
        _ => {
            let [a, b] = <[Expr; 2]>::try_from(reader.list(Reader::expr)).ok()?;
            match word {
                "equal" => (Goal::Equal(a, b), Kind::Yes),
                "different" => (Goal::Equal(a, b), Kind::No),
                "smaller" => (Goal::Holds(a.le(b)), Kind::Yes),
                _ => return None,
            }
        }
    })
}
