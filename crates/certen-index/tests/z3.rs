//! A second prover agrees: the answers of the corpus, and the prover's answers to generated questions, are those of z3.
//!
//! For the slow set, which makes a Python with z3 in it and names it in `CERTEN_Z3_PYTHON`. Questions are exported from
//! their trees, so that z3 sees neither the normal form nor the prover's reader.

mod common;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use certen_index::Verdict;
use common::question::{Goal, Kind, Question};
use common::{cases, corpus, generate};

/// A question as z3 takes it, with the answer that it is expected to give.
fn entry(question: &Question, claim_holds: bool, what: &str) -> String {
    let expected = if claim_holds { "unsat" } else { "sat" };
    let what = what.replace('\n', "; ");
    format!("; expect {expected}: {what}\n{}(reset)\n", question.smt())
}

/// Fails with what z3 says if it disagrees.
fn ask_z3(name: &str, text: &str) {
    let python = env::var_os("CERTEN_Z3_PYTHON").expect("CERTEN_Z3_PYTHON is set by `cargo xtask test --slow`");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.smt2"));
    fs::write(&file, text).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/prover/z3_agree.py");
    let ran = Command::new(python).arg(script).arg(&file).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
#[ignore = "needs z3: for the slow set"]
fn the_answers_of_the_corpus_are_those_of_z3() {
    let mut text = String::new();
    for file in corpus::files() {
        for corpus::Entry { place, question, answer } in corpus::read(&file) {
            // Facts are unsatisfiable if `false` follows.
            let asks_satisfiable = matches!(question.goal, Goal::Satisfiable);
            text += &entry(&question, (answer == Kind::Yes) != asks_satisfiable, &place);
        }
    }
    ask_z3("corpus", &text);
}

#[test]
#[ignore = "needs z3: for the slow set"]
fn the_prover_answers_as_z3_does() {
    let mut text = String::new();
    for seed in 0..cases().min(4_000) {
        let question = generate::question(seed);
        if question.has_product() {
            continue;
        }
        let claim_holds = match (question.asked().answer(), &question.goal) {
            (Verdict::Unknown, _) => continue,
            (Verdict::Yes, Goal::Satisfiable) => false,
            (Verdict::No(_), Goal::Satisfiable) | (Verdict::Yes, _) => true,
            // Facts about other names are taken to be satisfiable, and may not be.
            (Verdict::No(counterexample), _) if counterexample.0.len() < question.names.len() => continue,
            (Verdict::No(_), _) => false,
        };
        text += &entry(&question, claim_holds, &format!("question {seed}: {}", question.text()));
    }
    ask_z3("generated", &text);
}
