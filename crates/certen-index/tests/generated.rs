//! Generated questions: the prover against evaluation and brute force.
//!
//! Every seed is a question ([`generate::question`]). `CERTEN_CASES` says how many are asked.

mod common;

use std::time::{Duration, Instant};

use certen_index::Verdict;
use common::question::{Goal, Kind, Question, kind};
use common::respell::respelled;
use common::rng::Rng;
use common::{cases, failures, generate, report};

/// What is wrong with an answer, as far as evaluation and brute force can tell.
fn check(question: &Question) -> Result<(), String> {
    let asked = question.asked();
    let said = match (asked.answer(), &question.goal) {
        // "Unsatisfiable" is a claim about all integers, "satisfiable" has nothing to show.
        (Verdict::No(_), Goal::Satisfiable) | (Verdict::Yes, Goal::Holds(_) | Goal::Equal(..)) => question
            .contradiction()
            .map_or(Ok(()), |values| Err(format!("not so at {:?} = {values:?}", question.names))),
        (Verdict::No(counterexample), _) => question.refuted_by(&asked, &counterexample),
        _ => Ok(()),
    };
    said.map_err(|why| format!("{why}\n{}", question.text()))
}

#[test]
fn a_yes_is_not_contradicted_and_a_no_is_shown() {
    report(&failures(0, cases(), |seed| check(&generate::question(seed))), cases());
}

#[test]
fn products_of_names_are_answered_rightly_if_at_all() {
    report(&failures(0, cases(), |seed| check(&generate::with_products(seed))), cases());
}

#[test]
fn satisfiable_facts_are_not_called_unsatisfiable() {
    let ask = |seed| check(&Question { goal: Goal::Satisfiable, ..generate::question(seed) });
    report(&failures(0, cases(), ask), cases());
}

#[test]
fn hardly_any_question_is_left_open() {
    let open = failures(0, cases(), |seed| {
        let question = generate::question(seed);
        if question.asked().answer() == Verdict::Unknown { Err(question.text()) } else { Ok(()) }
    });
    let shown = open.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!((open.len() as u64) * 1000 < cases(), "{} of {} are open\n{shown}", open.len(), cases());
}

#[test]
fn spelling_does_not_change_an_answer() {
    let ask = |seed| {
        let question = generate::question(seed);
        let other = respelled(&question, &mut Rng::new(!seed));
        let answers = [&question, &other].map(|question| kind(&question.asked().answer()));
        if answers[0] == answers[1] {
            return check(&other);
        }
        Err(format!("{answers:?}\n{}\n{}", question.text(), other.text()))
    };
    report(&failures(0, cases(), ask), cases());
}

/// The generator and the trees are themselves tested: other words mean the same, and the prover's own evaluation, after
/// its normal form, says what the trees say.
#[test]
fn other_words_mean_the_same() {
    let ask = |seed| {
        let question = generate::question(seed);
        let rng = &mut Rng::new(!seed);
        let other = respelled(&question, rng);
        let held = |question: &Question, values: &[i64]| {
            let facts = question.facts.iter().all(|fact| fact.eval(values) == Some(true));
            (facts, question.claim().eval(values))
        };
        for _ in 0..20 {
            let values: Vec<i64> = question.names.iter().map(|_| rng.between(-40, 40)).collect();
            let meant = held(&question, &values);
            if meant != held(&other, &values) {
                return Err(format!("differ at {values:?}\n{}\n{}", question.text(), other.text()));
            }
            if question.asked().eval(&question.names, &values) != meant {
                return Err(format!("read as something else at {values:?}\n{}", question.text()));
            }
        }
        Ok(())
    };
    report(&failures(0, cases().min(10_000), ask), cases().min(10_000));
}

/// A test of the generator: if nothing followed, or everything did, the other tests would say little.
#[test]
fn questions_are_of_all_kinds() {
    let mut refuted = 0;
    let mut satisfiable = 0;
    let count = 1_000;
    for seed in 0..count {
        let question = generate::question(seed);
        refuted += u64::from(question.contradiction().is_some());
        satisfiable += u64::from(question.find(question.searched(), &mut |_| true).is_some());
    }
    assert!((300..700).contains(&refuted), "{refuted} of {count} are refuted by small integers");
    assert!(satisfiable >= 800, "the facts of {satisfiable} of {count} hold for small integers");
}

/// How long answers take, and which they are.
#[test]
#[ignore = "measures time: for the slow set, which is optimised"]
#[expect(clippy::print_stdout, reason = "the figures are what it is for")]
fn answers_come_quickly() {
    let count = cases();
    let mut times: Vec<(Duration, u64)> = Vec::new();
    let mut kinds = [0u64; 3];
    let mut open_with_products = 0;
    for seed in 0..count {
        let question = generate::question(seed);
        // Asked afresh each time: answers are remembered.
        let timed = || {
            let asked = question.asked();
            let before = Instant::now();
            (asked.answer(), before.elapsed())
        };
        // The best of three: the machine has other things to do as well.
        let (verdict, first) = timed();
        times.push((first.min(timed().1).min(timed().1), seed));
        kinds[kind(&verdict) as usize] += 1;
        open_with_products += u64::from(kind(&verdict) == Kind::Unknown && question.has_product());
    }
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    let [yes, no, unknown] = kinds;
    println!("{count} questions: {yes} yes, {no} no, {unknown} unknown ({open_with_products} of them with products)");
    println!("50 % within {:?}, 99 % within {:?}, all within {:?}", at(0.5).0, at(0.99).0, at(1.0).0);
    for (time, seed) in times.iter().rev().take(3) {
        println!("question {seed} took {time:?}:\n{}", generate::question(*seed).text());
    }
    if !cfg!(debug_assertions) {
        assert!(at(0.99).0 < Duration::from_millis(1), "99 % within {:?}", at(0.99).0);
        assert!(at(1.0).0 < Duration::from_millis(50), "all within {:?}", at(1.0).0);
    }
}
