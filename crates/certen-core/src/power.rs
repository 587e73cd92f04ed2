//! Small powers are products, in one fixed order.
//!
//! `x^k` for a whole `k` up to [`MAX_MULTIPLIED`] in magnitude is made of multiplications, so that its bits are those of
//! IEEE arithmetic and not of some library's `pow`: `x^0 = 1`, `x^(2m) = x^m * x^m`, `x^(2m + 1) = x^(2m) * x`, and
//! `x^-k = 1 / x^k`. A literal exponent becomes that product where the term is built ([`Terms::add`]); one that is known
//! only when the program runs is looked at then, by the machine's domain and by generated C alike. So it makes no
//! difference when an exponent becomes known; and a large base need not be written sixteen times, nor one that is a power of a
//! power.

pub use certen_math::MAX_MULTIPLIED;

use crate::ops::{Binary, Literal, Unary};
use crate::term::{Term, TermId, Terms};
use crate::types::TypeError;

/// A base with more terms is not repeated.
const MAX_REPEATED: usize = 64;

/// The exponent as an integer, if a power with it is a product.
pub fn multiplied(exponent: f64) -> Option<i64> {
    let is_small = exponent.abs() <= MAX_MULTIPLIED as f64 && exponent.fract() == 0.0;
    is_small.then_some(exponent as i64)
}

/// `x^k` for `k >= 1` by a multiplication; `x` itself for `k = 0`, too.
pub fn by_squaring<T: Clone, E>(x: &T, k: u64, mut multiply: impl FnMut(&T, &T) -> Result<T, E>) -> Result<T, E> {
    let mut power = x.clone();
    // The bits below the highest one, from there.
    for bit in (0..k.checked_ilog2().unwrap_or(0)).rev() {
        power = multiply(&power, &power)?;
        if k >> bit & 1 == 1 {
            power = multiply(&power, x)?;
        }
    }
    Ok(power)
}

impl Terms {
    /// The product that a power is, if its exponent is a small literal and its base not large.
    pub(crate) fn small_power(&mut self, term: &Term) -> Result<Option<TermId>, TypeError> {
        let Term::Binary(Binary::Pow | Binary::LibmPow, base, exponent) = *term else { return Ok(None) };
        let Some(k) = self.number(exponent).and_then(multiplied) else { return Ok(None) };
        if k != 0 && self.is_large(base) {
            return Ok(None);
        }
        let elem = self.type_of(term)?.elem;
        let one = self.add(Term::Literal(Literal::whole(1, elem), elem))?;
        if k == 0 {
            return Ok(Some(one));
        }
        let product = by_squaring(&base, k.unsigned_abs(), |a, b| self.add(Term::Binary(Binary::Mul, *a, *b)))?;
        if k > 0 { Ok(Some(product)) } else { self.add(Term::Binary(Binary::Div, one, product)).map(Some) }
    }

    /// Whether a term, written out, has very many parts.
    fn is_large(&self, term: TermId) -> bool {
        let mut todo = vec![term];
        for _ in 0..MAX_REPEATED {
            let Some(id) = todo.pop() else { return false };
            todo.extend(self.get(id).parts());
        }
        !todo.is_empty()
    }

    /// The value of a float that is written as a number, perhaps with a minus before it.
    fn number(&self, id: TermId) -> Option<f64> {
        match *self.get(id) {
            Term::Literal(Literal::Float(value), _) => Some(value),
            Term::Unary(Unary::Neg, a) => match *self.get(a) {
                Term::Literal(Literal::Float(value), _) => Some(-value),
                _ => None,
            },
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_products_in_the_order_that_is_said() {
        let text = |k| by_squaring(&"x".to_owned(), k, |a, b| Ok::<_, ()>(format!("({a}{b})"))).unwrap();
        assert_eq!([1, 2, 3, 4, 5].map(text), ["x", "(xx)", "((xx)x)", "((xx)(xx))", "(((xx)(xx))x)"]);
        for k in 1..=MAX_MULTIPLIED as u64 {
            let (mut multiplications, x) = (0, 1u64);
            let sum = by_squaring(&x, k, |a, b| {
                multiplications += 1;
                Ok::<_, ()>(a + b)
            });
            assert_eq!(sum, Ok(k));
            assert!(multiplications <= 6, "{k}");
        }
    }

    #[test]
    fn only_small_whole_exponents_are_multiplied() {
        for (exponent, k) in [(2.0, 2), (-16.0, -16), (16.0, 16), (0.0, 0), (-0.0, 0)] {
            assert_eq!(multiplied(exponent), Some(k));
        }
        for exponent in [0.5, 17.0, -17.0, 2.0000001, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(multiplied(exponent), None);
        }
    }
}
