//! Expressions in the simplest form that facts allow: a minimum or maximum of which one part always is the extreme.

use crate::ix::Atom;
use crate::{Facts, Ix, IxError, Order};

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
                    Atom::FloorDiv(inner, divisor) => inner.simplified(facts)?.floor_div(*divisor)?,
                    Atom::Min(parts) => extreme(parts, facts, false)?,
                    Atom::Max(parts) => extreme(parts, facts, true)?,
                };
                product = product.mul(&factor)?;
            }
            sum = sum.add(&product)?;
        }
        Ok(sum)
    }
}

fn extreme(parts: &[Ix], facts: &Facts, max: bool) -> Result<Ix, IxError> {
    let mut kept: Vec<Ix> = Vec::new();
    for part in parts {
        let part = part.simplified(facts)?;
        let beaten = |a: &Ix, b: &Ix| match facts.compare(a, b) {
            Order::Equal => true,
            Order::AtMost => max,
            Order::AtLeast => !max,
            Order::Depends(..) | Order::Unknown => false,
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
