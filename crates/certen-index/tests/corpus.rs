//! The prover answers every question of the corpus, one test for each file of `tests/prover`.
//!
//! A yes has to be a yes, and a no has to come with integers that satisfy the facts and violate the goal. Not to know is
//! a failure. How the files are written is said in `common/corpus.rs`.

mod common;

use certen_index::Verdict;
use common::corpus::{self, Entry};
use common::question::{Goal, kind};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let trials = corpus::files().into_iter().map(|file| {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Trial::test(name, move || check(&corpus::read(&file)))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

fn check(entries: &[Entry]) -> Result<(), Failed> {
    let wrong: Vec<String> =
        entries.iter().filter_map(|entry| Some(entry.place.clone() + &check_one(entry)?)).collect();
    match wrong.len() {
        0 => Ok(()),
        count => Err(format!("{count} of {} fail\n{}", entries.len(), wrong.join("\n")).into()),
    }
}

/// What is wrong with the answer.
fn check_one(entry: &Entry) -> Option<String> {
    let Entry { question, answer, .. } = entry;
    let asked = question.asked();
    let verdict = asked.answer();
    if kind(&verdict) != *answer {
        return Some(format!("  -- answered {:?}", kind(&verdict)));
    }
    match (verdict, &question.goal) {
        (Verdict::No(_), Goal::Satisfiable) => None,
        (Verdict::No(counterexample), _) => question.refuted_by(&asked, &counterexample).err(),
        _ => None,
    }
    .map(|why| format!("  -- {why}"))
}
