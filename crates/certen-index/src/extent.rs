//! Bounds of loops taken apart: the parts of a minimum or maximum, and the largest or smallest value over an index.
//!
//! `j < min(a, b)` is `j < a && j < b`, which is how a bound of a loop becomes a condition, and how it is solved for
//! another index. The largest value over an index is found term by term, so it may be larger than any value that is
//! taken: `i - floor_div(i, 2)` over `0..n` gives `n - 1`.

use certen_syntax::Name;

use crate::facts::Facts;
use crate::ix::{Atom, Ix, IxError};

/// A bound with more parts than this is not taken apart.
const MAX_PARTS: usize = 16;

impl Ix {
    /// What this is the smallest of; itself alone, if it is no minimum.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let (m, n) = (Ix::var("m"), Ix::var("n"));
    /// let e = m.min_with(&n)?.add(&Ix::from(1))?;
    /// let parts: Vec<String> = e.smallest_of()?.iter().map(Ix::to_string).collect();
    /// assert_eq!(parts, ["m + 1", "n + 1"]);
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    ///
    /// # Errors
    /// If a part does not fit in 64 bits.
    pub fn smallest_of(&self) -> Result<Vec<Ix>, IxError> {
        self.parts_of(false)
    }

    /// What this is the largest of; itself alone, if it is no maximum.
    ///
    /// # Errors
    /// If a part does not fit in 64 bits.
    pub fn largest_of(&self) -> Result<Vec<Ix>, IxError> {
        self.parts_of(true)
    }

    fn parts_of(&self, max: bool) -> Result<Vec<Ix>, IxError> {
        let (mut open, mut done) = (vec![self.clone()], Vec::new());
        while let Some(next) = open.pop() {
            match next.parted(max)? {
                Some(parts) if parts.len() + open.len() + done.len() <= MAX_PARTS => {
                    open.extend(parts.into_iter().rev());
                }
                _ if done.contains(&next) => {}
                _ => done.push(next),
            }
        }
        Ok(done)
    }

    /// The parts of the first term that is a minimum or maximum, each with the other terms added.
    fn parted(&self, max: bool) -> Result<Option<Vec<Ix>>, IxError> {
        for (mono, coefficient) in self.terms() {
            // A factor below zero makes a minimum of a maximum.
            let wanted = max == (*coefficient > 0);
            let parts = match mono.as_slice() {
                [Atom::Min(parts)] if !wanted => parts.to_vec(),
                [Atom::Max(parts)] if wanted => parts.to_vec(),
                [Atom::FloorDiv(inner, divisor)] => match inner.parted(wanted)? {
                    Some(parts) => parts.iter().map(|part| part.floor_div(*divisor)).collect::<Result<_, _>>()?,
                    None => continue,
                },
                _ => continue,
            };
            let rest = self.sub(&Ix::monomial(mono, *coefficient))?;
            return parts.iter().map(|part| rest.add(&part.scale(*coefficient)?)).collect::<Result<_, _>>().map(Some);
        }
        Ok(None)
    }

    /// What this is at most (or at least) where an index runs from `first` to `last`, inclusive, without that index.
    /// None if a product with the index occurs.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let (i, n) = (Ix::var("i"), Ix::var("n"));
    /// let (first, last) = (Ix::from(0), n.sub(&Ix::from(1))?);
    /// assert_eq!(i.add(&Ix::from(1))?.most_over("i".into(), (&first, &last), true)?, Some(n.clone()));
    /// assert_eq!(n.sub(&i)?.most_over("i".into(), (&first, &last), false)?, Some(Ix::from(1)));
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    ///
    /// # Errors
    /// If the result does not fit in 64 bits.
    pub fn most_over(&self, name: Name, (first, last): (&Ix, &Ix), most: bool) -> Result<Option<Ix>, IxError> {
        let ends = self.over(name, first, last, &Facts::new())?;
        Ok(ends.map(|(lowest, highest)| if most { highest } else { lowest }))
    }
}

#[cfg(test)]
mod tests {
    use crate::ix::Ix;
    use crate::tests::ix;

    #[test]
    fn parts_decide_as_the_whole() {
        for text in ["min(i, n) + 3", "2*min(i, min(n, 4))", "n - max(i, 3)", "ceil_div(min(32, n - 32*i), 4)", "i*n"] {
            for (whole, max) in [(ix(text), false), (ix(text).scale(-1).unwrap(), true)] {
                let parts = if max { whole.largest_of() } else { whole.smallest_of() }.unwrap();
                assert_eq!(parts.len() > 1, text != "i*n", "{text}: {parts:?}");
                for (i, n) in (-3..9).flat_map(|i| (-2..80).map(move |n| (i, n))) {
                    let value = |e: &Ix| e.eval(&|name| Some(if name.as_str() == "i" { i } else { n })).unwrap();
                    let values = parts.iter().map(value);
                    let extreme = if max { values.max() } else { values.min() };
                    assert_eq!(extreme, Some(value(&whole)), "{whole} at i = {i}, n = {n}");
                }
            }
        }
    }

    #[test]
    fn nothing_exceeds_the_largest_over_an_index() {
        let (first, last) = (ix("2"), ix("n + 1"));
        for text in ["3*i", "n - 2*i", "floor_div(n - i, 3)", "min(i, n)", "5 - max(2*i, n)", "i - floor_div(i, 2)"] {
            let whole = ix(text);
            let at_most = whole.most_over("i".into(), (&first, &last), true).unwrap().unwrap();
            let at_least = whole.most_over("i".into(), (&first, &last), false).unwrap().unwrap();
            for n in 1..20 {
                for i in 2..=n + 1 {
                    let value = |e: &Ix| e.eval(&|name| Some(if name.as_str() == "i" { i } else { n })).unwrap();
                    assert!((value(&at_least)..=value(&at_most)).contains(&value(&whole)), "{text} at {i}, {n}");
                }
            }
        }
        assert_eq!(ix("i*n").most_over("i".into(), (&first, &last), true), Ok(None));
    }
}
