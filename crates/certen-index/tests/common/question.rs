//! A question, the prover's answer to it, and what can be said of that answer without a prover.

use std::collections::BTreeSet;

use certen_index::{Cond, Counterexample, Facts, Ix, Verdict, parse_cond, parse_ix};
use certen_syntax::{Cursor, Diagnostic, Diagnostics, Name, Sources, lex};

use super::rng::Rng;
use super::tree::{Expr, Formula};

/// What is asked of some facts.
#[derive(Clone, Debug)]
pub enum Goal {
    /// Whether a condition follows.
    Holds(Formula),
    /// Whether two expressions are always equal.
    Equal(Expr, Expr),
    /// Whether any integers satisfy them.
    Satisfiable,
}

/// Facts and what is asked of them.
#[derive(Clone, Debug)]
pub struct Question {
    pub names: Vec<String>,
    pub facts: Vec<Formula>,
    pub goal: Goal,
}

/// The kinds of answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Yes,
    No,
    Unknown,
}

pub fn kind(verdict: &Verdict) -> Kind {
    match verdict {
        Verdict::Yes => Kind::Yes,
        Verdict::No(_) => Kind::No,
        Verdict::Unknown => Kind::Unknown,
    }
}

fn parsed<T>(text: &str, parse: impl Fn(&mut Cursor<'_>) -> Result<T, Diagnostic>) -> T {
    let mut sources = Sources::new();
    let file = sources.add("question", text);
    let tokens = lex(sources.get(file).unwrap(), file, &mut Diagnostics::new());
    let mut cursor = Cursor::new(&tokens);
    let value = parse(&mut cursor).unwrap_or_else(|diagnostic| panic!("{text}: {diagnostic:?}"));
    assert!(cursor.at_end(), "{text} was not read whole");
    value
}

/// A question as the prover takes it.
pub struct Asked {
    facts: Facts,
    conds: Vec<Cond>,
    goal: AskedGoal,
}

enum AskedGoal {
    Holds(Cond),
    Equal(Ix, Ix),
    Satisfiable,
}

impl Asked {
    pub fn answer(&self) -> Verdict {
        match &self.goal {
            AskedGoal::Holds(goal) => self.facts.prove(goal),
            AskedGoal::Equal(a, b) => self.facts.prove_equal(a, b),
            AskedGoal::Satisfiable => self.facts.satisfiable(),
        }
    }

    /// The facts and the goal as the prover takes them; satisfiability has no goal to prove.
    pub fn to_prove(&self) -> Option<(&Facts, Cond)> {
        let goal = match &self.goal {
            AskedGoal::Holds(goal) => goal.clone(),
            AskedGoal::Equal(a, b) => Cond::eq(a, b).ok()?,
            AskedGoal::Satisfiable => return None,
        };
        Some((&self.facts, goal))
    }

    /// Whether the facts hold, and the claim, by the prover's own evaluation.
    pub fn eval(&self, names: &[String], values: &[i64]) -> (bool, Option<bool>) {
        let value = |name: Name| Some(values[names.iter().position(|n| *n == name.as_str())?]);
        let claim = match &self.goal {
            AskedGoal::Holds(goal) => goal.eval(&value).ok(),
            AskedGoal::Equal(a, b) => a.eval(&value).ok().zip(b.eval(&value).ok()).map(|(a, b)| a == b),
            AskedGoal::Satisfiable => Some(false),
        };
        (self.conds.iter().all(|fact| fact.eval(&value) == Ok(true)), claim)
    }
}

impl Question {
    /// The question in the form of the corpus.
    pub fn text(&self) -> String {
        let facts: Vec<String> = self.facts.iter().map(|fact| fact.text(&self.names)).collect();
        let goal = match &self.goal {
            Goal::Holds(goal) => format!("ask {}", goal.text(&self.names)),
            Goal::Equal(a, b) => format!("ask equal {} , {}", a.text(&self.names), b.text(&self.names)),
            Goal::Satisfiable => "ask sat".into(),
        };
        if facts.is_empty() { goal } else { format!("given {}\n{goal}", facts.join(", ")) }
    }

    /// Gives the prover the text.
    pub fn asked(&self) -> Asked {
        let cond = |formula: &Formula| parsed(&formula.text(&self.names), parse_cond);
        let ix = |e: &Expr| parsed(&e.text(&self.names), parse_ix);
        let conds: Vec<Cond> = self.facts.iter().map(cond).collect();
        let mut facts = Facts::new();
        conds.iter().for_each(|fact| facts.assume(fact.clone()));
        let goal = match &self.goal {
            Goal::Holds(goal) => AskedGoal::Holds(cond(goal)),
            Goal::Equal(a, b) => AskedGoal::Equal(ix(a), ix(b)),
            Goal::Satisfiable => AskedGoal::Satisfiable,
        };
        Asked { facts, conds, goal }
    }

    /// What has to hold wherever the facts do, if the answer is yes; for satisfiability, if the answer is no.
    pub fn claim(&self) -> Formula {
        match &self.goal {
            Goal::Holds(goal) => goal.clone(),
            Goal::Equal(a, b) => a.clone().eq(b.clone()),
            Goal::Satisfiable => Formula::Or(Vec::new()),
        }
    }

    /// Whether names are multiplied anywhere.
    pub fn has_product(&self) -> bool {
        self.claim().has_product() || self.facts.iter().any(Formula::has_product)
    }

    /// Whether the prover's counterexample is one: every fact that shares a name with it holds, and the goal does not.
    pub fn refuted_by(&self, asked: &Asked, counterexample: &Counterexample) -> Result<(), String> {
        let goal = match &asked.goal {
            AskedGoal::Holds(goal) => goal.clone(),
            AskedGoal::Equal(a, b) => Cond::eq(a, b).map_err(|error| error.to_string())?,
            AskedGoal::Satisfiable => return Ok(()),
        };
        let value = |name: Name| counterexample.0.get(&name).copied();
        // The names of a condition that have a value, and one that has none.
        let names = |cond: &Cond| {
            let mut names = BTreeSet::new();
            cond.collect_names(&mut names);
            let without = names.iter().copied().find(|name| value(*name).is_none());
            (names.iter().filter(|name| value(**name).is_some()).count(), without)
        };
        // A name without a value either cancels or has nothing to do with the goal.
        let values: Vec<i64> = self.names.iter().map(|name| value(Name::new(name)).unwrap_or(0)).collect();
        if let (_, Some(name)) = names(&goal) {
            return Err(format!("`{name}` has no value in the counterexample {counterexample}"));
        }
        if self.claim().eval(&values) != Some(false) || goal.eval(&value) != Ok(false) {
            return Err(format!("the goal holds at the counterexample {counterexample}"));
        }
        // Where the goal has no names there is nothing to show, if only the facts hold somewhere.
        if counterexample.0.is_empty() && matches!(asked.facts.satisfiable(), Verdict::No(_)) {
            return Err("the goal follows from facts that nothing satisfies".into());
        }
        for (fact, cond) in self.facts.iter().zip(&asked.conds) {
            let conjuncts = if let Cond::And(all) = cond { all.as_slice() } else { std::slice::from_ref(cond) };
            for conjunct in conjuncts {
                let (with, without) = names(conjunct);
                match without {
                    // What has nothing to do with the goal is for `satisfiable` to look at.
                    Some(_) if with == 0 => continue,
                    Some(name) => return Err(format!("`{name}` has no value in the counterexample {counterexample}")),
                    None if conjunct.eval(&value) == Ok(true) => {}
                    None => return Err(format!("{conjunct} does not hold at the counterexample {counterexample}")),
                }
            }
            if names(cond).1.is_none() && fact.eval(&values) != Some(true) {
                let fact = fact.text(&self.names);
                return Err(format!("the fact {fact} does not hold at the counterexample {counterexample}"));
            }
        }
        Ok(())
    }

    /// Integers of at most this size that satisfy the facts and accept, the first in order.
    pub fn find(&self, size: i64, accept: &mut dyn FnMut(&[i64]) -> bool) -> Option<Vec<i64>> {
        // A fact is looked at as soon as its last name has a value.
        let mut at_level: Vec<Vec<&Formula>> = vec![Vec::new(); self.names.len() + 1];
        let mut waiting: Vec<&Formula> = self.facts.iter().collect();
        while let Some(fact) = waiting.pop() {
            match fact {
                Formula::And(all) => waiting.extend(all),
                _ => at_level[fact.last_name().map_or(0, |at| at + 1)].push(fact),
            }
        }
        let holds = |level: usize, values: &[i64]| at_level[level].iter().all(|fact| fact.eval(values) == Some(true));
        if !holds(0, &[]) {
            return None;
        }
        let mut values: Vec<i64> = Vec::new();
        let mut next = -size;
        loop {
            if values.len() == self.names.len() {
                if accept(&values) {
                    return Some(values);
                }
                next = values.pop()? + 1;
            } else if next > size {
                next = values.pop()? + 1;
            } else {
                values.push(next);
                next = if holds(values.len(), &values) { -size } else { values.pop()? + 1 };
            }
        }
    }

    /// The size of the box that brute force can search in a moment.
    pub fn searched(&self) -> i64 {
        match self.names.len() {
            0..=3 => 12,
            4 => 6,
            _ => 3,
        }
    }

    /// Integers that satisfy the facts and violate the claim, if brute force finds any.
    pub fn contradiction(&self) -> Option<Vec<i64>> {
        let claim = self.claim();
        let near = self.find(self.searched(), &mut |values| claim.eval(values) == Some(false));
        near.or_else(|| self.far_contradiction(&claim))
    }

    /// Likewise beyond the box: values chosen one name after the other, mostly where a comparison turns.
    fn far_contradiction(&self, claim: &Formula) -> Option<Vec<i64>> {
        let mut turns: Vec<Vec<(&Expr, &Expr)>> = vec![Vec::new(); self.names.len()];
        for (a, b) in self.facts.iter().chain([claim]).flat_map(Formula::comparisons) {
            if let Some(at) = a.last_name().max(b.last_name()) {
                turns[at].push((a, b));
            }
        }
        let rng = &mut Rng::new(self.names.len() as u64);
        'descents: for _ in 0..DESCENTS {
            let mut values: Vec<i64> = Vec::new();
            for of_name in &turns {
                let mut candidates = vec![0, 1, rng.between(-20, 20), *rng.pick(&[15, 16, 17, 63, 64, 65, 999, -64])];
                candidates.extend(of_name.iter().filter_map(|(a, b)| turn(a, b, &values)).flat_map(|x| x - 2..=x + 2));
                rng.shuffle(&mut candidates);
                let level = values.len() + 1;
                let decided = |fact: &&Formula| fact.last_name().is_some_and(|at| at + 1 == level);
                let facts: Vec<&Formula> = self.facts.iter().filter(decided).collect();
                let fits = candidates.into_iter().find(|&candidate| {
                    values.push(candidate);
                    let holds = facts.iter().all(|fact| fact.eval(&values) == Some(true));
                    values.pop();
                    holds
                });
                let Some(value) = fits else { continue 'descents };
                values.push(value);
            }
            let facts_hold = self.facts.iter().all(|fact| fact.eval(&values) == Some(true));
            if facts_hold && claim.eval(&values) == Some(false) {
                return Some(values);
            }
        }
        None
    }

    /// The question as SMT-LIB 2: unsatisfiable if and only if the claim follows.
    pub fn smt(&self) -> String {
        let mut text = String::new();
        self.names.iter().for_each(|name| text += &format!("(declare-const |{name}| Int)\n"));
        self.facts.iter().for_each(|fact| text += &format!("(assert {})\n", fact.smt(&self.names)));
        text + &format!("(assert (not {}))\n(check-sat)\n", self.claim().smt(&self.names))
    }
}

/// How many times values beyond the box are tried.
const DESCENTS: usize = 150;

/// About where `a - b` changes its sign as the last name grows, the names before it having these values: Newton's method
/// with a step that is longer than most divisors.
fn turn(a: &Expr, b: &Expr, before: &[i64]) -> Option<i64> {
    const STEP: i64 = 64;
    let mut values = before.to_vec();
    values.push(0);
    let mut difference = |x: i64| {
        *values.last_mut()? = x;
        a.eval(&values)?.checked_sub(b.eval(&values)?)
    };
    let mut x = 0i64;
    for _ in 0..3 {
        let here = difference(x)?;
        let slope = difference(x.checked_add(STEP)?)?.checked_sub(here)?;
        x = x.checked_sub(here.checked_mul(STEP)?.checked_div_euclid(slope)?)?;
    }
    (x.abs() < i64::from(i32::MAX)).then_some(x)
}
