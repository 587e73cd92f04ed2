//! What an expression can be while a name runs through an interval.
//!
//! Sums are bounded term by term, so the interval is exact where the name occurs once, and may be too large where it
//! occurs in several terms that cancel in part; it is never too small. Inside quotients, minima and maxima, which grow
//! with their parts, the ends are those of the parts.

use certen_syntax::Name;

use crate::cond::Cond;
use crate::facts::{Facts, Verdict};
use crate::ix::{Atom, Ix, IxError, Mono};

impl Ix {
    /// The smallest and the largest value, as far as that is seen, while a name runs from `lo` to `hi`, both included:
    /// every value is between the two. None if the expression is not seen to grow or fall with the name. Of an empty
    /// interval, something.
    ///
    /// ```
    /// use certen_index::{Facts, Ix};
    /// let (i, n) = (Ix::var("i"), Ix::var("n"));
    /// let e = n.sub(&i.floor_div(4)?)?;
    /// let (least, most) = e.over("i".into(), &Ix::from(0), &Ix::from(11), &Facts::new())?.unwrap();
    /// assert_eq!((least.to_string(), most.to_string()), ("n - 2".into(), "n".into()));
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    ///
    /// # Errors
    /// If an end does not fit in 64 bits.
    pub fn over(&self, name: Name, lo: &Ix, hi: &Ix, facts: &Facts) -> Result<Option<(Ix, Ix)>, IxError> {
        if !self.mentions(name) {
            return Ok(Some((self.clone(), self.clone())));
        }
        // Products of the name with other names in one piece, so that n*i - i is (n - 1)*i.
        if let Some((factor, rest)) = self.factored(name) {
            let Some(grows) = sign(&factor, facts)? else { return Ok(None) };
            let (a, b) = (factor.mul(lo)?.add(&rest)?, factor.mul(hi)?.add(&rest)?);
            return Ok(Some(if grows { (a, b) } else { (b, a) }));
        }
        // What is added to a minimum moves with its parts: 3*i + min(n - 3*i, 3) is min(n, 3*i + 3).
        if let Some((is_max, parts)) = self.distributed(name)? {
            return ends_of(is_max, &parts, name, lo, hi, facts);
        }
        let (mut least, mut most) = (Ix::from(self.constant_part()), Ix::from(self.constant_part()));
        for (mono, coefficient) in self.terms() {
            let (moving, fixed): (Vec<&Atom>, Vec<&Atom>) = mono.iter().partition(|atom| atom.mentions(name));
            let ends = match moving.as_slice() {
                [] => (Ix::monomial(mono, *coefficient), Ix::monomial(mono, *coefficient)),
                [atom] => {
                    let Some((least, most)) = atom.over(name, lo, hi, facts)? else { return Ok(None) };
                    let mut factor = Ix::from(*coefficient);
                    for atom in fixed {
                        factor = factor.mul(&Ix::atom(atom.clone()))?;
                    }
                    let Some(grows) = sign(&factor, facts)? else { return Ok(None) };
                    let (a, b) = (factor.mul(&least)?, factor.mul(&most)?);
                    if grows { (a, b) } else { (b, a) }
                }
                _ => return Ok(None),
            };
            least = least.add(&ends.0)?;
            most = most.add(&ends.1)?;
        }
        Ok(Some((least, most)))
    }
}

impl Ix {
    /// The expression as the minimum (false) or maximum (true) of others, if it is one that mentions a name, with
    /// something added that does too.
    fn distributed(&self, name: Name) -> Result<Option<(bool, Vec<Ix>)>, IxError> {
        let moving = |mono: &Mono| mono.iter().any(|atom| atom.mentions(name));
        if self.terms().iter().filter(|(mono, _)| moving(mono)).count() < 2 {
            return Ok(None);
        }
        for (mono, coefficient) in self.terms().iter().filter(|(mono, _)| moving(mono)) {
            if let ([Atom::Min(es) | Atom::Max(es)], 1 | -1) = (mono.as_slice(), coefficient) {
                let is_max = matches!(mono.as_slice(), [Atom::Max(_)]) == (*coefficient == 1);
                let rest = self.sub(&Ix::monomial(mono, *coefficient))?;
                let parts = es.iter().map(|e| rest.add(&e.scale(*coefficient)?)).collect::<Result<_, _>>()?;
                return Ok(Some((is_max, parts)));
            }
        }
        Ok(None)
    }
}

/// Whether an expression is at least zero where the facts hold, or at most zero, if one of them is shown.
fn sign(e: &Ix, facts: &Facts) -> Result<Option<bool>, IxError> {
    if facts.prove(&Cond::le(&Ix::from(0), e)?) == Verdict::Yes {
        return Ok(Some(true));
    }
    Ok((facts.prove(&Cond::le(e, &Ix::from(0))?) == Verdict::Yes).then_some(false))
}

impl Atom {
    fn over(&self, name: Name, lo: &Ix, hi: &Ix, facts: &Facts) -> Result<Option<(Ix, Ix)>, IxError> {
        match self {
            Atom::Var(_) => Ok(Some((lo.clone(), hi.clone()))),
            Atom::FloorDiv(e, divisor) => match e.over(name, lo, hi, facts)? {
                Some((least, most)) => Ok(Some((least.floor_div(*divisor)?, most.floor_div(*divisor)?))),
                None => Ok(None),
            },
            Atom::Min(es) => ends_of(false, es, name, lo, hi, facts),
            Atom::Max(es) => ends_of(true, es, name, lo, hi, facts),
        }
    }
}

/// The ends of a minimum or maximum.
fn ends_of(
    is_max: bool,
    parts: &[Ix],
    name: Name,
    lo: &Ix,
    hi: &Ix,
    facts: &Facts,
) -> Result<Option<(Ix, Ix)>, IxError> {
    let join = |a: &Ix, b: &Ix| if is_max { a.max_with(b) } else { a.min_with(b) };
    let mut ends: Option<(Ix, Ix)> = None;
    for part in parts {
        let Some((least, most)) = part.over(name, lo, hi, facts)? else { return Ok(None) };
        ends = Some(match ends {
            None => (least, most),
            Some((a, b)) => (join(&a, &least)?, join(&b, &most)?),
        });
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::ix;

    #[test]
    fn every_value_is_between_the_ends() {
        let mut facts = Facts::new();
        facts.assume(Cond::le(&Ix::from(0), &ix("n")).unwrap());
        let texts = [
            "3*i + n",
            "n - 2*i",
            "n*i - 5",
            "3*i + min(n - 3*i, 3)",
            "n - i - max(2 - i, 0)",
            "floor_div(n - i, 3)*n",
            "2*i - 3*floor_div(i, 2) - 1",
            "min(n - 1, max(i - 2, 0))",
        ];
        let (lo, hi) = (ix("1 - n"), ix("2*n + 1"));
        for text in texts {
            let e = ix(text);
            let (least, most) = e.over("i".into(), &lo, &hi, &facts).unwrap().unwrap_or_else(|| panic!("{text}"));
            assert!(!least.mentions("i".into()) && !most.mentions("i".into()), "{text}: {least}, {most}");
            for n in 0..12 {
                let value = |e: &Ix, i| e.eval(&|name| Some(if name.as_str() == "i" { i } else { n })).unwrap();
                for i in value(&lo, 0)..=value(&hi, 0) {
                    let (a, b, c) = (value(&least, 0), value(&e, i), value(&most, 0));
                    assert!(a <= b && b <= c, "{text} at i = {i}, n = {n}: {a} <= {b} <= {c}");
                }
            }
        }
    }

    #[test]
    fn what_is_added_to_a_minimum_moves_with_it() {
        let ends = ix("3*i + min(n - 3*i, 3)").over("i".into(), &ix("0"), &ix("m"), &Facts::new()).unwrap();
        let text = ends.map(|(least, most)| (least.to_string(), most.to_string()));
        assert_eq!(text, Some(("min(n, 3)".into(), "min(n, 3*m + 3)".into())));
        // Whether this grows is not known.
        assert_eq!(ix("n*i").over("i".into(), &ix("0"), &ix("m"), &Facts::new()), Ok(None));
        assert_eq!(ix("i*i").over("i".into(), &ix("0"), &ix("m"), &Facts::new()), Ok(None));
    }
}
