//! What is known about sizes in a scope, and questions about all integers that satisfy it.
//!
//! A question goes, with the facts that share names with it, to the [`prover`](crate::prover). A "yes" has a witness
//! that the [checker](crate::check) has accepted; a "no" has integers that satisfy the facts and violate the goal, as
//! evaluation has confirmed; anything else is "cannot tell". So the prover can be wrong without anyone being misled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::check::check;
use crate::cond::Cond;
use crate::example;
use crate::ix::Ix;
use crate::prover::{Answer, FEW_STEPS, STEPS, satisfy};
use crate::witness::Witness;

/// Integers, one for each name, that satisfy the facts but not the goal.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counterexample(pub BTreeMap<Name, i64>);

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        f.write_str(&values.join(", "))
    }
}

/// The answer to "does this hold for all integers that satisfy the facts?".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It does.
    Yes,
    /// It does not: here. Names that have nothing to do with the goal are left out; facts about those alone are taken
    /// to be satisfiable ([`Facts::satisfiable`] asks).
    No(Counterexample),
    /// Cannot tell.
    Unknown,
}

/// A [`Verdict`] with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It holds, as [`check`] accepts for [`Facts::conjuncts`].
    Proved(Witness),
    /// It does not: here.
    Refuted(Counterexample),
    /// Cannot tell.
    Unknown,
}

/// The answer to "which of two is smaller?".
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KnownOrder {
    /// They are equal for all integers that satisfy the facts.
    Equal,
    /// The first is never larger.
    AtMost,
    /// The first is never smaller.
    AtLeast,
    /// It depends: the first is smaller here, and larger there.
    Depends(Counterexample, Counterexample),
    /// Cannot tell.
    Unknown,
}

/// A conjunction of facts.
///
/// ```
/// use certen_index::{Cond, Facts, Ix, Verdict};
/// let mut facts = Facts::new();
/// facts.assume(Cond::le(&Ix::from(2), &Ix::var("k"))?);
/// assert_eq!(facts.prove(&Cond::le(&Ix::from(1), &Ix::var("k"))?), Verdict::Yes);
/// assert!(matches!(facts.prove(&Cond::le(&Ix::from(3), &Ix::var("k"))?), Verdict::No(_)));
/// # Ok::<(), certen_index::IxError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Facts {
    conjuncts: Vec<Cond>,
    /// Which conjuncts mention a name.
    by_name: BTreeMap<Name, Vec<usize>>,
    /// Conjuncts without names: `false`.
    nameless: Vec<usize>,
    /// Whether any integers satisfy the facts, once someone has asked.
    satisfiable: OnceLock<Verdict>,
    answers: Answers,
}

/// Answers that were given: programs ask the same of their sizes again and again.
#[derive(Debug, Default)]
struct Answers(Mutex<FxHashMap<Cond, Verdict>>);

/// More answers are not kept.
const MOST_ANSWERS: usize = 4096;

impl Clone for Answers {
    /// Facts are copied to be added to, which makes answers void.
    fn clone(&self) -> Answers {
        Answers::default()
    }
}

impl Answers {
    fn known(&self) -> MutexGuard<'_, FxHashMap<Cond, Verdict>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    /// Nothing is known.
    pub fn new() -> Facts {
        Facts::default()
    }

    /// Adds a fact.
    pub fn assume(&mut self, fact: Cond) {
        if let Cond::And(all) = fact {
            return all.into_iter().for_each(|c| self.assume(c));
        }
        self.satisfiable.take();
        self.answers.known().clear();
        let mut names = BTreeSet::new();
        fact.collect_names(&mut names);
        if names.is_empty() {
            self.nameless.push(self.conjuncts.len());
        }
        for name in names {
            self.by_name.entry(name).or_default().push(self.conjuncts.len());
        }
        self.conjuncts.push(fact);
    }

    /// The facts, as they were assumed.
    pub fn conjuncts(&self) -> &[Cond] {
        &self.conjuncts
    }

    /// Whether the goal holds for all integers that satisfy the facts.
    pub fn prove(&self, goal: &Cond) -> Verdict {
        if goal.is_always() {
            return Verdict::Yes;
        }
        if self.is_fact(goal) {
            return Verdict::Yes;
        }
        if let Some(known) = self.answers.known().get(goal) {
            return known.clone();
        }
        let verdict = match self.decide(goal) {
            Decision::Proved(_) => Verdict::Yes,
            Decision::Refuted(counterexample) => Verdict::No(counterexample),
            Decision::Unknown => Verdict::Unknown,
        };
        let mut known = self.answers.known();
        if known.len() < MOST_ANSWERS {
            known.insert(goal.clone(), verdict.clone());
        }
        verdict
    }

    /// Whether the goal is one of the few facts about its first name, as it mostly is where a size is at least 1.
    fn is_fact(&self, goal: &Cond) -> bool {
        let (Cond::Ge(e) | Cond::Eq(e)) = goal else { return false };
        let facts = e.first_name().and_then(|name| self.by_name.get(&name)).filter(|facts| facts.len() <= 8);
        facts.is_some_and(|facts| facts.iter().any(|&at| self.conjuncts[at] == *goal))
    }

    /// Whether the goal holds for all integers that satisfy the facts, and why.
    pub fn decide(&self, goal: &Cond) -> Decision {
        let Ok(opposite) = goal.not() else { return Decision::Unknown };
        // A goal without names is false everywhere, if there is anywhere: no integers to show.
        if goal.is_never() && self.satisfiable() == Verdict::Yes {
            return Decision::Refuted(Counterexample::default());
        }
        let (names, related) = self.related(goal);
        let conditions = self.conditions(&opposite, &related);
        let refuted = |found| Decision::Refuted(Counterexample(found));
        // The prover is slow to see that a product can be what it takes.
        if conditions.iter().any(|cond| cond.has_products())
            && let Some(found) = example::search(&names, &conditions, example::NICER)
        {
            return refuted(found);
        }
        // Where a few steps are not enough, small integers may show in an instant what would take many.
        for steps in [FEW_STEPS, STEPS] {
            match satisfy(&self.conjuncts, &related, &opposite, steps) {
                Answer::Refuted(witness) => {
                    return match check(&self.conjuncts, goal, &witness) {
                        Ok(()) => Decision::Proved(witness),
                        Err(_) => Decision::Unknown,
                    };
                }
                Answer::Satisfied(model) => {
                    // Small integers are easier to think about than those of the model.
                    let found = example::search(&names, &conditions, example::NICER).or_else(|| {
                        let full: BTreeMap<Name, i64> =
                            names.iter().map(|name| (*name, model.get(name).copied().unwrap_or(0))).collect();
                        example::satisfies(&conditions, &full).then_some(full)
                    });
                    return found.map_or(Decision::Unknown, refuted);
                }
                Answer::Unknown if steps == FEW_STEPS => {
                    if let Some(found) = example::search(&names, &conditions, example::NICER) {
                        return refuted(found);
                    }
                }
                Answer::Unknown => {}
            }
        }
        example::instances(&names, &conditions, example::INSTANCES)
            .or_else(|| example::search(&names, &conditions, example::LAST_RESORT))
            .map_or(Decision::Unknown, refuted)
    }

    /// Whether two expressions are equal for all integers that satisfy the facts.
    pub fn prove_equal(&self, a: &Ix, b: &Ix) -> Verdict {
        if a == b {
            return Verdict::Yes;
        }
        Cond::eq(a, b).map_or(Verdict::Unknown, |goal| self.prove(&goal))
    }

    /// Which of two expressions is smaller for all integers that satisfy the facts.
    pub fn compare(&self, a: &Ix, b: &Ix) -> KnownOrder {
        let (Ok(at_most), Ok(at_least)) = (Cond::le(a, b), Cond::le(b, a)) else { return KnownOrder::Unknown };
        match (self.prove(&at_most), self.prove(&at_least)) {
            (Verdict::Yes, Verdict::Yes) => KnownOrder::Equal,
            (Verdict::Yes, _) => KnownOrder::AtMost,
            (_, Verdict::Yes) => KnownOrder::AtLeast,
            (Verdict::No(larger), Verdict::No(smaller)) => KnownOrder::Depends(smaller, larger),
            _ => KnownOrder::Unknown,
        }
    }

    /// Whether any integers satisfy the facts: yes, no (with nothing to show), or cannot tell.
    pub fn satisfiable(&self) -> Verdict {
        self.satisfiable.get_or_init(|| self.satisfy_all()).clone()
    }

    /// Facts that share no names are satisfied apart from each other.
    fn satisfy_all(&self) -> Verdict {
        let (always, mut unknown) = (Cond::always(), false);
        let mut seen = vec![false; self.conjuncts.len()];
        for at in 0..self.conjuncts.len() {
            if seen[at] {
                continue;
            }
            let (names, mut related) = self.related(&self.conjuncts[at]);
            related.push(at);
            related.iter().for_each(|&at| seen[at] = true);
            match satisfy(&self.conjuncts, &related, &always, STEPS) {
                Answer::Refuted(witness) if check(&self.conjuncts, &Cond::never(), &witness).is_ok() => {
                    return Verdict::No(Counterexample::default());
                }
                Answer::Satisfied(_) => {}
                Answer::Refuted(_) | Answer::Unknown => {
                    let conditions = self.conditions(&always, &related);
                    unknown |= example::search(&names, &conditions, example::LAST_RESORT).is_none();
                }
            }
        }
        if unknown { Verdict::Unknown } else { Verdict::Yes }
    }

    fn conditions<'a>(&'a self, opposite: &'a Cond, related: &[usize]) -> Vec<&'a Cond> {
        [opposite].into_iter().chain(related.iter().map(|&at| &self.conjuncts[at])).collect()
    }

    /// The facts that share a name with a condition, directly or through other facts, nearest first, and all their
    /// names. A condition without names is related to everything.
    fn related(&self, wanted: &Cond) -> (BTreeSet<Name>, Vec<usize>) {
        let mut names = BTreeSet::new();
        wanted.collect_names(&mut names);
        if names.is_empty() {
            self.conjuncts.iter().for_each(|fact| fact.collect_names(&mut names));
            return (names, (0..self.conjuncts.len()).collect());
        }
        let mut related = self.nameless.clone();
        let mut used: BTreeSet<usize> = related.iter().copied().collect();
        let mut waiting: Vec<Name> = names.iter().copied().collect();
        let mut next = 0;
        while let Some(name) = waiting.get(next) {
            next += 1;
            for &at in self.by_name.get(name).into_iter().flatten() {
                if used.insert(at) {
                    related.push(at);
                    let mut of_fact = BTreeSet::new();
                    self.conjuncts[at].collect_names(&mut of_fact);
                    waiting.extend(of_fact.into_iter().filter(|&n| names.insert(n)));
                }
            }
        }
        (names, related)
    }
}
