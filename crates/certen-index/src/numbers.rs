//! Expressions and conditions with other numbers: the same structure at another scale.

use crate::cond::Cond;
use crate::ix::{Atom, Ix, IxError};

impl Ix {
    /// The expression with other numbers in place of those that [`Ix::collect_numbers`] finds.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let e = Ix::var("i").scale(1000)?.add(&Ix::from(3))?.min_with(&Ix::from(998))?;
    /// let smaller = e.with_numbers(&|n| if n > 100 { n - 900 } else { n })?;
    /// assert_eq!(smaller.to_string(), "min(100*i + 3, 98)");
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    ///
    /// # Errors
    /// If a number does not fit in 64 bits, or a divisor is not positive.
    pub fn with_numbers(&self, number: &impl Fn(i64) -> i64) -> Result<Ix, IxError> {
        let mut sum = Ix::from(if self.constant_part() == 0 { 0 } else { number(self.constant_part()) });
        for (mono, coefficient) in self.terms() {
            let mut product =
                Ix::from(if coefficient.unsigned_abs() == 1 { *coefficient } else { number(*coefficient) });
            for atom in mono {
                product = product.mul(&of_atom(atom, number)?)?;
            }
            sum = sum.add(&product)?;
        }
        Ok(sum)
    }
}

fn of_atom(atom: &Atom, number: &impl Fn(i64) -> i64) -> Result<Ix, IxError> {
    let all = |es: &[Ix], combine: fn(&Ix, &Ix) -> Result<Ix, IxError>| {
        let mut changed = es.iter().map(|e| e.with_numbers(number));
        let first = changed.next().unwrap_or(Err(IxError::TooComplex))?;
        changed.try_fold(first, |all, next| combine(&all, &next?))
    };
    match atom {
        Atom::Var(name) => Ok(Ix::var(*name)),
        Atom::FloorDiv(e, divisor) => e.with_numbers(number)?.floor_div(number(*divisor)),
        Atom::Min(es) => all(es, Ix::min_with),
        Atom::Max(es) => all(es, Ix::max_with),
    }
}

impl Cond {
    /// The condition with other numbers, as [`Ix::with_numbers`].
    ///
    /// # Errors
    /// As [`Ix::with_numbers`].
    pub fn with_numbers(&self, number: &impl Fn(i64) -> i64) -> Result<Cond, IxError> {
        let each = |list: &[Cond]| list.iter().map(|c| c.with_numbers(number)).collect::<Result<Vec<_>, _>>();
        let zero = Ix::from(0);
        Ok(match self {
            Cond::Ge(e) => Cond::le(&zero, &e.with_numbers(number)?)?,
            Cond::Eq(e) => Cond::eq(&e.with_numbers(number)?, &zero)?,
            Cond::And(all) => each(all)?.into_iter().fold(Cond::always(), Cond::and),
            Cond::Or(any) => each(any)?.into_iter().fold(Cond::never(), Cond::or),
        })
    }
}
