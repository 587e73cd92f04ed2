//! Witnesses: the checker accepts those of the prover, and none that was tampered with.

mod common;

use certen_index::{CaseSplit, Cond, Decision, Extreme, Facts, Ix, ProofEnd, Reason, Refutation, Witness, check};
use common::rng::Rng;
use common::{cases, failures, generate, report};

fn proved(seed: u64) -> Option<(Facts, Cond, Witness)> {
    let question = if seed.is_multiple_of(8) { generate::with_products(seed) } else { generate::question(seed) };
    let asked = question.asked();
    let (facts, goal) = asked.to_prove()?;
    match facts.decide(&goal) {
        Decision::Proved(witness) => Some((facts.clone(), goal, witness)),
        _ => None,
    }
}

#[test]
fn witnesses_are_accepted() {
    let ask = |seed| match proved(seed) {
        Some((facts, goal, witness)) => {
            check(facts.conjuncts(), &goal, &witness).map_err(|why| format!("{why}\n{goal}\n{witness}"))
        }
        None => Ok(()),
    };
    report(&failures(0, cases(), ask), cases());
}

/// A witness proves its own goal, not one that says more.
#[test]
fn witnesses_of_other_goals_are_rejected() {
    let ask = |seed| {
        let Some((facts, goal, witness)) = proved(seed) else { return Ok(()) };
        let more = goal.clone().and(Cond::never());
        match (facts.decide(&more), check(facts.conjuncts(), &more, &witness)) {
            (Decision::Proved(_), _) | (_, Err(_)) => Ok(()),
            _ => Err(format!("accepted for `false`\n{goal}\n{witness}")),
        }
    };
    report(&failures(0, cases(), ask), cases());
}

#[test]
fn corrupted_witnesses_are_rejected() {
    // About two thirds of the questions have a witness: with 3,000 and more, 10,000 and more are corrupted.
    let each = 16 / cases().div_ceil(1_000).clamp(1, 16) + 4;
    let corrupted = std::sync::atomic::AtomicU64::new(0);
    let ask = |seed| {
        let Some((facts, goal, witness)) = proved(seed) else { return Ok(()) };
        let rng = &mut Rng::new(!seed);
        for _ in 0..each {
            let mut other = witness.clone();
            corrupt(&mut other.root, facts.conjuncts().len(), rng);
            if other == witness {
                continue;
            }
            corrupted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let accepted = check(facts.conjuncts(), &goal, &other).is_ok();
            if accepted && !same_rows(&hypotheses(&facts, &goal), &witness, &other) {
                return Err(format!("accepted\n{goal}\n{witness}\nas\n{other}"));
            }
        }
        Ok(())
    };
    report(&failures(0, cases(), ask), cases());
    let corrupted = corrupted.into_inner();
    assert!(corrupted >= 10_000.min(3 * cases()), "only {corrupted} witnesses were corrupted");
}

fn hypotheses(facts: &Facts, goal: &Cond) -> Vec<Cond> {
    let opposite = match goal.not().unwrap() {
        Cond::And(all) => all,
        other => vec![other],
    };
    facts.conjuncts().iter().cloned().chain(opposite).collect()
}

/// Whether two accepted witnesses differ only in which of several hypotheses gives the same row or the same cases:
/// `n >= 1` and `n == 1` both say that `n - 1` is at least zero.
fn same_rows(hypotheses: &[Cond], a: &Witness, b: &Witness) -> bool {
    let canonical = |witness: &Witness| {
        let mut witness = witness.clone();
        every(&mut witness.root, &mut |derivation| {
            for step in &mut derivation.steps {
                if let Reason::Given(_) | Reason::Reversed(_) = step.reason {
                    step.reason = Reason::Given(0);
                }
            }
            if let ProofEnd::Cases(CaseSplit::Either(at), _) = &mut derivation.end {
                let own = hypotheses.get(*at);
                *at = hypotheses.iter().position(|other| Some(other) == own).unwrap_or(*at);
            }
        });
        witness
    };
    canonical(a) == canonical(b)
}

fn every(derivation: &mut Refutation, visit: &mut dyn FnMut(&mut Refutation)) {
    visit(derivation);
    if let ProofEnd::Cases(_, cases) = &mut derivation.end {
        cases.iter_mut().for_each(|case| every(case, visit));
    }
}

/// Changes one thing somewhere.
fn corrupt(root: &mut Refutation, facts: usize, rng: &mut Rng) {
    let mut count = 0;
    every(root, &mut |_| count += 1);
    let mut left = rng.below(count);
    every(root, &mut |derivation| {
        if left == 0 {
            corrupt_one(derivation, facts, rng);
        }
        left = left.wrapping_sub(1);
    });
}

fn corrupt_one(derivation: &mut Refutation, facts: usize, rng: &mut Rng) {
    let steps = derivation.steps.len();
    if steps == 0 || rng.below(4) == 0 {
        return corrupt_end(&mut derivation.end, rng);
    }
    let at = rng.below(steps);
    match rng.below(6) {
        0 => drop(derivation.steps.remove(at)),
        1 => derivation.steps.insert(at, derivation.steps[at].clone()),
        2 => derivation.steps[at].row = nudged(&derivation.steps[at].row, rng),
        _ => corrupt_reason(&mut derivation.steps[at].reason, facts, rng),
    }
}

fn corrupt_reason(reason: &mut Reason, facts: usize, rng: &mut Rng) {
    *reason = match reason.clone() {
        Reason::Given(at) if rng.below(2) == 0 => Reason::Reversed(at),
        Reason::Given(at) => Reason::Given(moved(at, rng)),
        Reason::Reversed(at) if rng.below(2) == 0 => Reason::Given(at),
        Reason::Reversed(at) => Reason::Reversed(moved(at, rng)),
        Reason::QuotientLow(e, k) if rng.below(2) == 0 => Reason::QuotientHigh(e, k),
        Reason::QuotientLow(e, k) => Reason::QuotientLow(nudged(&e, rng), k),
        Reason::QuotientHigh(e, k) if rng.below(2) == 0 => Reason::QuotientHigh(e, k + 1),
        Reason::QuotientHigh(e, k) => Reason::QuotientLow(e, k),
        Reason::Extreme(Extreme { max, parts }, at) if rng.below(2) == 0 => {
            Reason::Extreme(Extreme { max: !max, parts }, at)
        }
        Reason::Extreme(extreme, at) => Reason::Extreme(extreme, moved(at, rng)),
        Reason::Sum(mut parts) => {
            let at = rng.below(parts.len());
            match rng.below(5) {
                0 => parts[at].0 += 1,
                1 => parts[at].0 = -parts[at].0,
                2 => parts[at].1 = moved(parts[at].1, rng),
                3 => parts.iter_mut().for_each(|(times, _)| *times *= 2),
                _ => drop(parts.remove(at)),
            }
            Reason::Sum(parts)
        }
        Reason::Product(a, b) if a != b && rng.below(3) == 0 => Reason::Product(b, a),
        Reason::Product(a, b) if rng.below(2) == 0 => Reason::Product(moved(a, rng), b),
        Reason::Product(a, b) => Reason::Sum(vec![(1, a), (1, b)]),
        Reason::Multiple(a, b, e) if rng.below(2) == 0 => Reason::Multiple(a, b, nudged(&e, rng)),
        Reason::Multiple(a, b, e) => Reason::Multiple(a, moved(b, rng), e),
        Reason::One => Reason::Given(facts),
    };
}

fn corrupt_end(end: &mut ProofEnd, rng: &mut Rng) {
    match end {
        ProofEnd::Contradiction(row) => *row = moved(*row, rng),
        ProofEnd::Cases(split, cases) => match (split, rng.below(4)) {
            (_, 0) if !cases.is_empty() => drop(cases.pop()),
            (_, 1) if cases.len() > 1 && cases[0] != cases[1] => cases.swap(0, 1),
            (CaseSplit::Either(at), _) => *at = moved(*at, rng),
            (CaseSplit::Sign(e), _) => *e = nudged(e, rng),
            (CaseSplit::Reached(extreme), 2) => extreme.max = !extreme.max,
            (CaseSplit::Reached(extreme), _) => extreme.parts[0] = nudged(&extreme.parts[0], rng),
        },
    }
}

fn moved(at: usize, rng: &mut Rng) -> usize {
    if rng.below(2) == 0 { at + 1 } else { at.wrapping_sub(1) }
}

fn nudged(e: &Ix, rng: &mut Rng) -> Ix {
    let by = if rng.below(2) == 0 { Ix::from(1) } else { Ix::var("tampered") };
    e.add(&by).unwrap()
}
