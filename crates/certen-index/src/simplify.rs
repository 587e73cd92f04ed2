//! Expressions in the simplest form that facts allow: a minimum or maximum of which one part always is the extreme, a quotient
//! that always is zero.

use crate::cond::Cond;
use crate::facts::{Facts, KnownOrder, Verdict};
use crate::ix::{Atom, Ix, IxError};

impl Ix {
    /// The same value where the facts hold, without the parts of minima and maxima that never decide.
    ///
    /// ```
    /// use certen_index::{Cond, Facts, Ix};
    /// let mut facts = Facts::new();
    /// let n = Ix::var("n");
    /// facts.assume(Cond::le(&Ix::from(2), &n)?);
    /// let size = n.sub(&Ix::from(1))?.max_with(&Ix::from(0))?;
    /// assert_eq!(size.simplified(&facts)?.to_string(), "n - 1");
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    ///
    /// # Errors
    /// If the result does not fit in 64 bits.
    pub fn simplified(&self, facts: &Facts) -> Result<Ix, IxError> {
        self.simple(facts, false)
    }

    /// As [`Ix::simplified`], and without quotients that the facts show to be 0 or -1.
    ///
    /// ```
    /// use certen_index::{Cond, Facts, Ix};
    /// let mut facts = Facts::new();
    /// let i = Ix::var("i");
    /// facts.assume(Cond::le(&Ix::from(0), &i)?.and(Cond::lt(&i, &Ix::from(4))?));
    /// assert_eq!(i.floor_div(4)?.settled(&facts)?, Ix::from(0));
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    ///
    /// # Errors
    /// If the result does not fit in 64 bits.
    pub fn settled(&self, facts: &Facts) -> Result<Ix, IxError> {
        self.simple(facts, true)
    }

    fn simple(&self, facts: &Facts, quotients: bool) -> Result<Ix, IxError> {
        let has_extreme = |atom: &Atom| matches!(atom, Atom::Min(_) | Atom::Max(_) | Atom::FloorDiv(..));
        if !self.terms().iter().any(|(mono, _)| mono.iter().any(has_extreme)) {
            return Ok(self.clone());
        }
        let mut sum = Ix::from(self.constant_part());
        for (mono, coefficient) in self.terms() {
            let mut product = Ix::from(*coefficient);
            for atom in mono.iter() {
                let factor = match atom {
                    Atom::Var(name) => Ix::var(*name),
                    Atom::FloorDiv(inner, divisor) => {
                        let inner = inner.simple(facts, quotients)?;
                        let known = if quotients { quotient(&inner, *divisor, facts)? } else { None };
                        known.map_or_else(|| inner.floor_div(*divisor), |known| Ok(Ix::from(known)))?
                    }
                    Atom::Min(parts) => extreme(parts, facts, (false, quotients))?,
                    Atom::Max(parts) => extreme(parts, facts, (true, quotients))?,
                };
                product = product.mul(&factor)?;
            }
            sum = sum.add(&product)?;
        }
        Ok(sum)
    }
}

/// 0 or -1, if a quotient always is that.
fn quotient(inner: &Ix, divisor: i64, facts: &Facts) -> Result<Option<i64>, IxError> {
    let divisor = Ix::from(divisor);
    for (known, lo, hi) in [(0, Ix::from(0), divisor.clone()), (-1, divisor.scale(-1)?, Ix::from(0))] {
        if facts.prove(&Cond::le(&lo, inner)?) == Verdict::Yes && facts.prove(&Cond::lt(inner, &hi)?) == Verdict::Yes {
            return Ok(Some(known));
        }
    }
    Ok(None)
}

impl Cond {
    /// The ways in which a minimum or maximum that a comparison mentions is one of its parts, each as a condition: none
    /// if there is no such thing in it.
    ///
    /// ```
    /// use certen_index::{Cond, Ix};
    /// let n = Ix::var("n");
    /// let shorter = n.sub(&Ix::from(1))?.max_with(&Ix::from(0))?;
    /// let ways = Cond::eq(&n, &shorter)?.choices();
    /// assert_eq!(ways.iter().map(Cond::to_string).collect::<Vec<_>>(), ["n >= 1", "n <= 1"]);
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn choices(&self) -> Vec<Cond> {
        let mut comparisons = Vec::new();
        self.comparisons(&mut comparisons);
        let mut ways = Vec::new();
        for atom in comparisons.iter().flat_map(|e| e.terms()).flat_map(|(mono, _)| mono.iter()) {
            let (parts, max) = match atom {
                Atom::Min(parts) => (parts, false),
                Atom::Max(parts) => (parts, true),
                Atom::Var(_) | Atom::FloorDiv(..) => continue,
            };
            for part in parts.iter() {
                let beats = |other: &Ix| if max { Cond::le(other, part) } else { Cond::le(part, other) };
                let all = parts.iter().map(beats).collect::<Result<Vec<_>, _>>();
                ways.extend(all.into_iter().map(|all| all.into_iter().fold(Cond::always(), Cond::and)));
            }
        }
        ways
    }

    /// The same condition where the facts hold, with its expressions [`settled`](Ix::settled).
    ///
    /// # Errors
    /// If an expression does not fit in 64 bits.
    pub fn settled(&self, facts: &Facts) -> Result<Cond, IxError> {
        let each = |list: &[Cond]| list.iter().map(|cond| cond.settled(facts)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Cond::Ge(e) => Cond::le(&Ix::from(0), &e.settled(facts)?)?,
            Cond::Eq(e) => Cond::eq(&e.settled(facts)?, &Ix::from(0))?,
            Cond::And(all) => each(all)?.into_iter().fold(Cond::always(), Cond::and),
            Cond::Or(any) => each(any)?.into_iter().fold(Cond::never(), Cond::or),
        })
    }
}

fn extreme(parts: &[Ix], facts: &Facts, (max, quotients): (bool, bool)) -> Result<Ix, IxError> {
    let mut kept: Vec<Ix> = Vec::new();
    for part in parts {
        let part = part.simple(facts, quotients)?;
        let beaten = |a: &Ix, b: &Ix| match facts.compare(a, b) {
            KnownOrder::Equal => true,
            KnownOrder::AtMost => max,
            KnownOrder::AtLeast => !max,
            KnownOrder::Depends(..) | KnownOrder::Unknown => false,
        };
        if kept.iter().any(|other| beaten(&part, other)) {
            continue;
        }
        kept.retain(|other| !beaten(other, &part));
        kept.push(part);
    }
    let mut rest = kept.into_iter();
    let first = rest.next().unwrap_or_else(|| Ix::from(0));
    rest.try_fold(first, |so_far, part| if max { so_far.max_with(&part) } else { so_far.min_with(&part) })
}
