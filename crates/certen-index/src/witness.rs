//! Witnesses: why a goal holds, in steps that [`check`](crate::check) can follow.
//!
//! A witness is a refutation: from the facts and the opposite of the goal, a contradiction. A *row* is an expression
//! that is at least zero. Each step adds a row: a hypothesis, an axiom about a quotient, a minimum or a maximum, a sum
//! of earlier rows with positive multipliers (Farkas) whose coefficients are then divided by what they have in common
//! and whose constant is rounded down (integer tightening), or a product. A derivation ends in a
//! row that is a negative number, or in cases of which each has a derivation of its own.
//!
//! A monomial (`n`, `m*n`, `floor_div(n, 4)`) is an unknown like any other: rows are linear in monomials.

use std::fmt;

use crate::cond::Cond;
use crate::ix::Ix;

/// Why a goal holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The refutation of the facts together with the opposite of the goal.
    pub root: Refutation,
}

/// Steps, and how they end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refutation {
    /// The rows, each following from the ones before it, here and in the derivations around this one.
    pub steps: Vec<ProofStep>,
    /// The contradiction.
    pub end: ProofEnd,
}

/// A row and where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProofStep {
    /// What is at least zero.
    pub row: Ix,
    /// Why.
    pub reason: Reason,
}

/// Where a row comes from. Rows and hypotheses are counted from 0, rows of enclosing derivations first. Hypotheses are
/// the facts, then what the opposite of the goal says, then what the cases around say.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The hypothesis `row >= 0`, or `row == 0`.
    Given(usize),
    /// The hypothesis `-row == 0`.
    Reversed(usize),
    /// `e - k * floor_div(e, k) >= 0`
    QuotientLow(Ix, i64),
    /// `k * floor_div(e, k) + k - 1 - e >= 0`
    QuotientHigh(Ix, i64),
    /// A minimum is at most its part at a position, and a maximum at least.
    Extreme(Extreme, usize),
    /// Multiples of earlier rows, added, divided by the common factor of the coefficients, the constant rounded down.
    Sum(Vec<(i64, usize)>),
    /// Two earlier rows multiplied.
    Product(usize, usize),
    /// An earlier row multiplied by anything, where another earlier row is its opposite, so that it is zero.
    Multiple(usize, usize, Ix),
    /// `1 >= 0`
    One,
}

/// A minimum or a maximum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Extreme {
    /// Whether it is the maximum.
    pub max: bool,
    /// What it is the minimum or maximum of.
    pub parts: Box<[Ix]>,
}

/// How a derivation ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProofEnd {
    /// This row is a negative number.
    Contradiction(usize),
    /// One of the cases holds, and each is contradictory.
    Cases(CaseSplit, Vec<Refutation>),
}

/// Cases of which one holds. Each adds hypotheses to its derivation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CaseSplit {
    /// The parts of a hypothesis `p || q || …`.
    Either(usize),
    /// A minimum or maximum is reached by one of its parts.
    Reached(Extreme),
    /// `e >= 0`, or `e < 0`.
    Sign(Ix),
}

impl Witness {
    /// The facts that the witness rests on, and the witness with hypotheses counted as if there were no others.
    pub fn with_used_facts(&self, facts: &[Cond]) -> (Vec<Cond>, Witness) {
        let mut witness = self.clone();
        let mut used = vec![false; facts.len()];
        witness.each_hypothesis(&mut |at| {
            if let Some(used) = used.get_mut(*at) {
                *used = true;
            }
        });
        // How many of the facts before each are used, and how many of all.
        let before: Vec<usize> =
            used.iter().scan(0, |count, used| Some(std::mem::replace(count, *count + usize::from(*used)))).collect();
        let kept: Vec<Cond> =
            facts.iter().zip(&used).filter(|(_, used)| **used).map(|(fact, _)| fact.clone()).collect();
        witness.each_hypothesis(&mut |at| {
            *at = match before.get(*at) {
                Some(before) => *before,
                None => *at - facts.len() + kept.len(),
            };
        });
        (kept, witness)
    }

    fn each_hypothesis(&mut self, visit: &mut dyn FnMut(&mut usize)) {
        let mut todo = vec![&mut self.root];
        while let Some(Refutation { steps, end }) = todo.pop() {
            for step in steps {
                if let Reason::Given(at) | Reason::Reversed(at) = &mut step.reason {
                    visit(at);
                }
            }
            if let ProofEnd::Cases(split, cases) = end {
                if let CaseSplit::Either(at) = split {
                    visit(at);
                }
                todo.extend(cases);
            }
        }
    }
}

impl fmt::Display for Extreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.parts.iter().map(Ix::to_string).collect();
        write!(f, "{}({})", if self.max { "max" } else { "min" }, parts.join(", "))
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.root.write(f, 0, 0)
    }
}

impl Refutation {
    /// `first` rows stand before these; case splits are indented.
    fn write(&self, f: &mut fmt::Formatter<'_>, first: usize, depth: usize) -> fmt::Result {
        let margin = "  ".repeat(depth);
        for (at, step) in self.steps.iter().enumerate() {
            writeln!(f, "{margin}[{}] {} >= 0  ({})", first + at, step.row, step.reason)?;
        }
        match &self.end {
            ProofEnd::Contradiction(row) => writeln!(f, "{margin}[{row}] is impossible"),
            ProofEnd::Cases(split, cases) => {
                match split {
                    CaseSplit::Either(given) => writeln!(f, "{margin}cases of hypothesis {given}:")?,
                    CaseSplit::Reached(extreme) => writeln!(f, "{margin}cases of {extreme}:")?,
                    CaseSplit::Sign(e) => writeln!(f, "{margin}cases {e} >= 0 and {e} < 0:")?,
                }
                let first = first + self.steps.len();
                cases.iter().enumerate().try_for_each(|(at, case)| {
                    writeln!(f, "{margin}case {}:", at + 1)?;
                    case.write(f, first, depth + 1)
                })
            }
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Given(hypothesis) | Reason::Reversed(hypothesis) => write!(f, "hypothesis {hypothesis}"),
            Reason::QuotientLow(e, k) | Reason::QuotientHigh(e, k) => write!(f, "floor_div({e}, {k})"),
            Reason::Extreme(extreme, _) => write!(f, "{extreme}"),
            Reason::Sum(parts) => {
                let parts: Vec<String> = parts.iter().map(|(times, row)| format!("{times}*[{row}]")).collect();
                f.write_str(&parts.join(" + "))
            }
            Reason::Product(a, b) => write!(f, "[{a}] * [{b}]"),
            Reason::Multiple(a, b, factor) => write!(f, "[{a}] * ({factor}), as [{b}] is its opposite"),
            Reason::One => f.write_str("always"),
        }
    }
}
