//! The checker of witnesses: small, apart from the prover, and all that its "yes" rests on.
//!
//! It knows the normal form of expressions and nothing of how a witness was found. It also insists on one spelling: no
//! step that is not used, none twice, rows in order, multipliers without a common factor. So a witness that was tampered
//! with is rejected even where some other proof would have been accepted.

use crate::cond::Cond;
use crate::ix::{Ix, IxError, Mono, gcd};
use crate::witness::{CaseSplit, Extreme, ProofEnd, ProofStep, Reason, Refutation, Witness};

/// Why a witness is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected(pub &'static str);

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Rejected {}

impl From<IxError> for Rejected {
    fn from(error: IxError) -> Rejected {
        Rejected(match error {
            IxError::Overflow => "a number of a row does not fit",
            IxError::TooComplex => "a row has too many terms or levels",
            IxError::Divisor => "a divisor is not positive",
            IxError::Unbound(_) => "a name has no value",
        })
    }
}

/// Cases inside each other; a witness of ours has far fewer.
const MAX_DEPTH: usize = 512;

/// Accepts a witness that the goal holds for all integers that satisfy the facts.
///
/// # Errors
/// What is wrong with the witness.
pub fn check(facts: &[Cond], goal: &Cond, witness: &Witness) -> Result<(), Rejected> {
    let mut checker = Checker { facts, assumed: Vec::new(), rows: Vec::new(), used: Vec::new() };
    checker.assume(goal.not()?);
    checker.derivation(&witness.root, 0)
}

struct Checker<'a> {
    facts: &'a [Cond],
    /// Hypotheses after the facts.
    assumed: Vec<Cond>,
    rows: Vec<Ix>,
    /// Whether something rests on the row.
    used: Vec<bool>,
}

impl Checker<'_> {
    fn assume(&mut self, cond: Cond) {
        match cond {
            Cond::And(all) => self.assumed.extend(all),
            other => self.assumed.push(other),
        }
    }

    fn hypothesis(&self, at: usize) -> Result<&Cond, Rejected> {
        let assumed = |at: usize| self.assumed.get(at - self.facts.len());
        self.facts.get(at).or_else(|| assumed(at)).ok_or(Rejected("there is no such hypothesis"))
    }

    fn row(&mut self, at: usize) -> Result<&Ix, Rejected> {
        *self.used.get_mut(at).ok_or(Rejected("there is no such row"))? = true;
        Ok(&self.rows[at])
    }

    fn derivation(&mut self, derivation: &Refutation, depth: usize) -> Result<(), Rejected> {
        if depth > MAX_DEPTH {
            return Err(Rejected("too many cases inside each other"));
        }
        let (rows, assumed) = (self.rows.len(), self.assumed.len());
        for step in &derivation.steps {
            self.step(step)?;
        }
        match &derivation.end {
            ProofEnd::Contradiction(row) => {
                if self.row(*row)?.as_constant().is_none_or(|constant| constant >= 0) {
                    return Err(Rejected("the contradiction is none"));
                }
            }
            ProofEnd::Cases(split, cases) => {
                let alternatives = self.alternatives(split)?;
                if alternatives.len() != cases.len() {
                    return Err(Rejected("a case is missing"));
                }
                for (alternative, case) in alternatives.into_iter().zip(cases) {
                    self.assume(alternative);
                    self.derivation(case, depth + 1)?;
                    self.assumed.truncate(assumed);
                }
            }
        }
        if self.used[rows..].contains(&false) {
            return Err(Rejected("a row is not used"));
        }
        self.rows.truncate(rows);
        self.used.truncate(rows);
        Ok(())
    }

    fn step(&mut self, step: &ProofStep) -> Result<(), Rejected> {
        let row = match &step.reason {
            Reason::Given(at) => match self.hypothesis(*at)? {
                Cond::Ge(e) | Cond::Eq(e) => e.clone(),
                _ => return Err(Rejected("the hypothesis is not a row")),
            },
            Reason::Reversed(at) => match self.hypothesis(*at)? {
                Cond::Eq(e) => e.scale(-1)?,
                _ => return Err(Rejected("the hypothesis is not an equality")),
            },
            Reason::QuotientLow(e, k) => remainder(e, *k)?,
            Reason::QuotientHigh(e, k) => {
                let remainder = remainder(e, *k)?;
                Ix::from(k - 1).sub(&remainder)?
            }
            Reason::Extreme(extreme, at) => {
                let part = extreme.parts.get(*at).ok_or(Rejected("there is no such part"))?;
                let above = value(extreme)?.sub(part)?;
                if extreme.max { above } else { above.scale(-1)? }
            }
            Reason::Sum(parts) => {
                self.check_sum(parts, &step.row)?;
                step.row.clone()
            }
            Reason::Product(a, b) if a > b => return Err(Rejected("the rows of a product are not in order")),
            Reason::Product(a, b) => {
                let left = self.row(*a)?.clone();
                left.mul(self.row(*b)?)?.tightened()
            }
            Reason::Multiple(a, b, factor) => {
                let zero = self.row(*a)?.clone();
                if *self.row(*b)? != zero.scale(-1)? {
                    return Err(Rejected("the row is not shown to be zero"));
                }
                zero.mul(factor)?.tightened()
            }
            Reason::One => Ix::from(1),
        };
        if row != step.row {
            return Err(Rejected("a row is not what its reason says"));
        }
        if self.rows.contains(&row) {
            return Err(Rejected("a row stands there twice"));
        }
        self.rows.push(row);
        self.used.push(false);
        Ok(())
    }

    /// Checks that a row is the sum of others, tightened. What is divided in the end may be large before, so numbers
    /// have 128 bits on the way; the product of two 64-bit ones fits.
    fn check_sum(&mut self, parts: &[(i64, usize)], row: &Ix) -> Result<(), Rejected> {
        let common = parts.iter().fold(0, |common, (times, _)| gcd(common, times.unsigned_abs().into()));
        if common != 1 || parts.iter().any(|(times, _)| *times < 1) {
            return Err(Rejected("the multipliers are not positive and without a common factor"));
        }
        if !parts.is_sorted_by(|a, b| a.1 < b.1) {
            return Err(Rejected("the rows of a sum are not in order"));
        }
        for (_, part) in parts {
            self.row(*part)?;
        }
        let (mut constant, mut terms) = (0i128, Vec::<(&Mono, i128)>::new());
        for (times, part) in parts {
            let part = &self.rows[*part];
            constant = added(constant, i128::from(*times) * i128::from(part.constant_part()))?;
            terms.extend(part.terms().iter().map(|(mono, c)| (mono, i128::from(*times) * i128::from(*c))));
        }
        terms.sort_unstable_by_key(|(mono, _)| *mono);
        let mut sum: Vec<(&Mono, i128)> = Vec::with_capacity(terms.len());
        for (mono, c) in terms {
            match sum.last_mut() {
                Some((last, total)) if *last == mono => *total = added(*total, c)?,
                _ => sum.push((mono, c)),
            }
        }
        sum.retain(|(_, c)| *c != 0);
        let common = sum.iter().fold(0, |common, (_, c)| gcd(common, c.unsigned_abs())).max(1);
        let common = i128::try_from(common).map_err(|_| IxError::Overflow)?;
        let same = i128::from(row.constant_part()) == constant.div_euclid(common)
            && row.terms().len() == sum.len()
            && row
                .terms()
                .iter()
                .zip(&sum)
                .all(|((mono, c), (m, total))| mono == *m && i128::from(*c) == total / common);
        if same { Ok(()) } else { Err(Rejected("a row is not the sum that its reason says")) }
    }

    /// Conditions of which one holds.
    fn alternatives(&self, split: &CaseSplit) -> Result<Vec<Cond>, Rejected> {
        match split {
            CaseSplit::Either(at) => match self.hypothesis(*at)? {
                Cond::Or(any) => Ok(any.clone()),
                _ => Err(Rejected("the hypothesis has no alternatives")),
            },
            CaseSplit::Reached(extreme) => {
                let whole = value(extreme)?;
                let reached = |part| if extreme.max { Cond::le(&whole, part) } else { Cond::le(part, &whole) };
                extreme.parts.iter().map(|part| Ok(reached(part)?)).collect()
            }
            CaseSplit::Sign(e) => Ok(vec![Cond::le(&Ix::from(0), e)?, Cond::lt(e, &Ix::from(0))?]),
        }
    }
}

/// `e - k * floor_div(e, k)`, which is in `0..k`.
fn remainder(e: &Ix, k: i64) -> Result<Ix, Rejected> {
    Ok(e.sub(&e.floor_div(k)?.scale(k)?)?)
}

fn value(extreme: &Extreme) -> Result<Ix, Rejected> {
    Ix::extreme(extreme.max, &extreme.parts).ok_or(Rejected("a minimum or maximum of fewer than two"))
}

fn added(a: i128, b: i128) -> Result<i128, Rejected> {
    a.checked_add(b).ok_or(Rejected::from(IxError::Overflow))
}
