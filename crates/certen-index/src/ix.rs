//! Integer expressions in normal form.
//!
//! `constant + Σ coefficient · monomial`, monomials sorted, no zero coefficient; a monomial is a sorted product of
//! atoms; an atom is a name, a floor division by a positive literal, a minimum or a maximum. Ceiling division and
//! modulo are spelled with floor division: `ceil_div(a, k) = -floor_div(-a, k)` and `mod(a, k) = a - k * floor_div(a, k)`.
//! Guarantees: equal polynomials are equal values; no operation overflows silently or grows without bound.

use std::collections::BTreeSet;
use std::fmt;

use certen_syntax::Name;
use smallvec::{SmallVec, smallvec};

/// Why an expression cannot be built or evaluated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IxError {
    /// A value or coefficient does not fit in 64 bits.
    Overflow,
    /// The normal form would have too many terms or levels.
    TooComplex,
    /// A divisor is not positive.
    Divisor,
    /// A name has no value.
    Unbound(Name),
}

impl fmt::Display for IxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IxError::Overflow => write!(f, "the value does not fit in 64 bits"),
            IxError::TooComplex => write!(f, "the expression has more than {MAX_TERMS} terms or {MAX_DEPTH} levels"),
            IxError::Divisor => write!(f, "a divisor has to be a positive number"),
            IxError::Unbound(name) => write!(f, "`{name}` has no value"),
        }
    }
}

impl std::error::Error for IxError {}

const MAX_TERMS: usize = 256;
const MAX_DEPTH: usize = 16;

/// An integer expression over named sizes and indices, in normal form.
///
/// ```
/// use certen_index::Ix;
/// let n = Ix::var("n");
/// let spelled = n.add(&Ix::from(1))?.mul(&Ix::from(2))?;
/// assert_eq!(spelled.to_string(), "2*n + 2");
/// assert_eq!(spelled, Ix::from(2).add(&n)?.add(&n)?);
/// # Ok::<(), certen_index::IxError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ix {
    constant: i64,
    terms: Sum,
}

/// Monomials and their coefficients. Most expressions are a number or a name, which need no memory of their own.
pub(crate) type Sum = SmallVec<[(Mono, i64); 1]>;

/// A sorted product of at least one atom.
pub(crate) type Mono = SmallVec<[Atom; 1]>;

#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Atom {
    Var(Name),
    /// `floor_div(e, k)` with k > 1, no multiple of k in e, and no factor common to k and all coefficients of e.
    FloorDiv(Box<Ix>, i64),
    /// At least two different, sorted.
    Min(Box<[Ix]>),
    Max(Box<[Ix]>),
}

impl From<i64> for Ix {
    fn from(constant: i64) -> Ix {
        Ix { constant, terms: Sum::new() }
    }
}

impl Ix {
    /// A named size or index.
    pub fn var(name: impl Into<Name>) -> Ix {
        Ix::atom(Atom::Var(name.into()))
    }

    pub(crate) fn atom(atom: Atom) -> Ix {
        Ix { constant: 0, terms: smallvec![(smallvec![atom], 1)] }
    }

    /// The number, if the expression is one.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The name, if the expression is one.
    pub fn as_var(&self) -> Option<Name> {
        match (self.constant, self.terms.as_slice()) {
            (0, [(mono, 1)]) => match mono.as_slice() {
                [Atom::Var(name)] => Some(*name),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn monomial(mono: &Mono, coefficient: i64) -> Ix {
        Ix { constant: 0, terms: smallvec![(mono.clone(), coefficient)] }
    }

    pub(crate) fn constant_part(&self) -> i64 {
        self.constant
    }

    pub(crate) fn terms(&self) -> &[(Mono, i64)] {
        &self.terms
    }

    /// Sorts and merges terms, dropping what cancels.
    pub(crate) fn from_terms(constant: i64, mut terms: Sum) -> Result<Ix, IxError> {
        terms.sort();
        let mut merged = Sum::new();
        for (mono, coefficient) in terms {
            match merged.last_mut() {
                Some((last, sum)) if *last == mono => {
                    *sum = sum.checked_add(coefficient).ok_or(IxError::Overflow)?;
                }
                _ => merged.push((mono, coefficient)),
            }
        }
        merged.retain(|(_, coefficient)| *coefficient != 0);
        Ix::limited(constant, merged)
    }

    fn limited(constant: i64, terms: Sum) -> Result<Ix, IxError> {
        if terms.len() > MAX_TERMS { Err(IxError::TooComplex) } else { Ok(Ix { constant, terms }) }
    }

    /// `self + other`
    pub fn add(&self, other: &Ix) -> Result<Ix, IxError> {
        self.plus(1, other)
    }

    /// `self - other`
    pub fn sub(&self, other: &Ix) -> Result<Ix, IxError> {
        self.plus(-1, other)
    }

    /// `self + factor * other`, by merging the terms, which are sorted.
    fn plus(&self, factor: i64, other: &Ix) -> Result<Ix, IxError> {
        let plus = |sum: i64, value: i64| {
            value.checked_mul(factor).and_then(|value| sum.checked_add(value)).ok_or(IxError::Overflow)
        };
        let mut terms = Sum::with_capacity(self.terms.len() + other.terms.len());
        let mut left = self.terms.as_slice();
        for (mono, coefficient) in &other.terms {
            let before = left.iter().take_while(|(of, _)| of < mono).count();
            terms.extend(left[..before].iter().cloned());
            left = &left[before..];
            let sum = match left {
                [(of, sum), rest @ ..] if of == mono => {
                    left = rest;
                    *sum
                }
                _ => 0,
            };
            match plus(sum, *coefficient)? {
                0 => {}
                sum => terms.push((mono.clone(), sum)),
            }
        }
        terms.extend(left.iter().cloned());
        Ix::limited(plus(self.constant, other.constant)?, terms)
    }

    /// `factor * self`
    pub fn scale(&self, factor: i64) -> Result<Ix, IxError> {
        Ix::from(0).plus(factor, self)
    }

    /// Divided by what all coefficients have in common; `constant` says what becomes of the constant.
    pub(crate) fn divided(&self, constant: impl Fn(i64, i64) -> Option<i64>) -> Option<Ix> {
        let common = self.terms.iter().fold(0, |common, (_, c)| gcd(common, c.unsigned_abs().into()));
        let Some(common) = i64::try_from(common).ok().filter(|&common| common > 1) else { return Some(self.clone()) };
        Some(self.divided_by(common, constant(self.constant, common)?))
    }

    /// What is at least zero just where this is, over the integers: 2*n - 7 is n - 4.
    pub(crate) fn tightened(self) -> Ix {
        self.divided(|constant, common| Some(constant.div_euclid(common))).unwrap_or(self)
    }

    /// The terms divided by a common factor, with a new constant.
    fn divided_by(&self, common: i64, constant: i64) -> Ix {
        Ix { constant, terms: self.terms.iter().map(|(mono, c)| (mono.clone(), c / common)).collect() }
    }

    /// `self * other`, multiplied out.
    pub fn mul(&self, other: &Ix) -> Result<Ix, IxError> {
        if self.terms.is_empty() {
            return other.scale(self.constant);
        }
        if self.terms.len().saturating_mul(other.terms.len()) > MAX_TERMS {
            return Err(IxError::TooComplex);
        }
        let mut product = self.scale(other.constant)?;
        for (mono, coefficient) in &other.terms {
            let mut terms = Sum::new();
            for (left, c) in &self.terms {
                let mut both: Mono = left.iter().chain(mono).cloned().collect();
                if both.len() > MAX_TERMS {
                    return Err(IxError::TooComplex);
                }
                both.sort();
                terms.push((both, c.checked_mul(*coefficient).ok_or(IxError::Overflow)?));
            }
            if self.constant != 0 {
                terms.push((mono.clone(), self.constant.checked_mul(*coefficient).ok_or(IxError::Overflow)?));
            }
            product = product.add(&Ix::from_terms(0, terms)?)?;
        }
        Ok(product)
    }

    /// The quotient by a positive literal, rounded towards minus infinity.
    pub fn floor_div(&self, divisor: i64) -> Result<Ix, IxError> {
        if divisor < 1 {
            return Err(IxError::Divisor);
        }
        let whole = |c: i64| c % divisor == 0;
        let outside = self.terms.iter().filter(|(_, c)| whole(*c)).map(|(m, c)| (m.clone(), c / divisor)).collect();
        let outside = Ix::from_terms(self.constant.div_euclid(divisor), outside)?;
        let inside = self.terms.iter().filter(|(_, c)| !whole(*c)).cloned().collect();
        let inside = Ix::from_terms(self.constant.rem_euclid(divisor), inside)?;
        if inside.terms.is_empty() {
            return Ok(outside);
        }
        // floor_div(6*n + 5, 4) is floor_div(3*n + 2, 2).
        let common = inside
            .terms
            .iter()
            .fold(divisor.unsigned_abs().into(), |common, (_, c)| gcd(common, c.unsigned_abs().into()));
        // It divides the divisor.
        let common = common as i64;
        let (inside, divisor) = (inside.divided_by(common, inside.constant.div_euclid(common)), divisor / common);
        // floor_div(floor_div(n, 3) + 1, 2) is floor_div(n + 3, 6).
        if let [(mono, 1)] = inside.terms.as_slice()
            && let [Atom::FloorDiv(dividend, inner)] = mono.as_slice()
            && let (Some(both), Some(more)) = (inner.checked_mul(divisor), inner.checked_mul(inside.constant))
        {
            return outside.add(&dividend.add(&Ix::from(more))?.floor_div(both)?);
        }
        outside.add(&Ix::checked_atom(Atom::FloorDiv(Box::new(inside), divisor))?)
    }

    /// The quotient by a positive literal, rounded towards plus infinity.
    pub fn ceil_div(&self, divisor: i64) -> Result<Ix, IxError> {
        self.scale(-1)?.floor_div(divisor)?.scale(-1)
    }

    /// What was rounded up to multiples: at most this expression, with no rounding where a term is a multiple of its
    /// divisor; none if there is no such term. `4*ceil_div(n, 2)` is at least `2*n`.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let rounded = Ix::var("n").ceil_div(4)?.scale(4)?;
    /// assert_eq!(rounded.unrounded(), Some(Ix::var("n")));
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn unrounded(&self) -> Option<Ix> {
        let (mut rounded, mut smaller) = (false, Ix::from(self.constant));
        for (mono, coefficient) in &self.terms {
            let term = match mono.as_slice() {
                [Atom::FloorDiv(inner, divisor)] if *coefficient < 0 && coefficient % divisor == 0 => {
                    rounded = true;
                    inner.scale(coefficient / divisor)
                }
                _ => Ok(Ix::monomial(mono, *coefficient)),
            };
            smaller = smaller.add(&term.ok()?).ok()?;
        }
        rounded.then_some(smaller)
    }

    /// The remainder of [`Ix::floor_div`], in `0..divisor`.
    pub fn modulo(&self, divisor: i64) -> Result<Ix, IxError> {
        self.sub(&self.floor_div(divisor)?.scale(divisor)?)
    }

    /// The smaller of two.
    pub fn min_with(&self, other: &Ix) -> Result<Ix, IxError> {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Ok(Ix::from(a.min(b))),
            _ if self == other => Ok(self.clone()),
            _ => Ix::checked_atom(Atom::Min(sorted_pair(self, other))),
        }
    }

    /// The larger of two.
    pub fn max_with(&self, other: &Ix) -> Result<Ix, IxError> {
        match (self.as_constant(), other.as_constant()) {
            (Some(a), Some(b)) => Ok(Ix::from(a.max(b))),
            _ if self == other => Ok(self.clone()),
            _ => Ix::checked_atom(Atom::Max(sorted_pair(self, other))),
        }
    }

    /// The smallest or largest of at least two.
    pub(crate) fn extreme(max: bool, parts: &[Ix]) -> Option<Ix> {
        let make = if max { Atom::Max } else { Atom::Min };
        (parts.len() >= 2).then(|| Ix::atom(make(parts.into())))
    }

    fn checked_atom(atom: Atom) -> Result<Ix, IxError> {
        let ix = Ix::atom(atom);
        if ix.depth() > MAX_DEPTH { Err(IxError::TooComplex) } else { Ok(ix) }
    }

    fn depth(&self) -> usize {
        let of_atom = |atom: &Atom| match atom {
            Atom::Var(_) => 0,
            Atom::FloorDiv(e, _) => e.depth() + 1,
            Atom::Min(es) | Atom::Max(es) => es.iter().map(Ix::depth).max().unwrap_or(0) + 1,
        };
        self.terms.iter().flat_map(|(mono, _)| mono).map(of_atom).max().unwrap_or(0)
    }

    /// Whether a division, a minimum or a maximum occurs.
    pub fn has_functions(&self) -> bool {
        self.terms.iter().flat_map(|(mono, _)| mono).any(|atom| !matches!(atom, Atom::Var(_)))
    }

    /// A name that is a term or a factor, if the first term has one.
    pub(crate) fn first_name(&self) -> Option<Name> {
        self.terms.first()?.0.iter().find_map(|atom| match atom {
            Atom::Var(name) => Some(*name),
            _ => None,
        })
    }

    /// Every name that occurs, added to a set.
    pub fn collect_names(&self, names: &mut BTreeSet<Name>) {
        for atom in self.terms.iter().flat_map(|(mono, _)| mono) {
            match atom {
                Atom::Var(name) => {
                    names.insert(*name);
                }
                Atom::FloorDiv(e, _) => e.collect_names(names),
                Atom::Min(es) | Atom::Max(es) => es.iter().for_each(|e| e.collect_names(names)),
            }
        }
    }

    /// Every number that occurs, added to a set: constants, coefficients other than 1 and -1, divisors.
    pub fn collect_numbers(&self, numbers: &mut BTreeSet<i64>) {
        if self.constant != 0 || self.terms.is_empty() {
            numbers.insert(self.constant);
        }
        numbers.extend(self.terms.iter().map(|(_, coefficient)| *coefficient).filter(|c| c.unsigned_abs() != 1));
        for atom in self.terms.iter().flat_map(|(mono, _)| mono) {
            match atom {
                Atom::Var(_) => {}
                Atom::FloorDiv(e, divisor) => {
                    numbers.insert(*divisor);
                    e.collect_numbers(numbers);
                }
                Atom::Min(es) | Atom::Max(es) => es.iter().for_each(|e| e.collect_numbers(numbers)),
            }
        }
    }

    /// Whether a name occurs.
    pub fn mentions(&self, name: Name) -> bool {
        self.terms.iter().flat_map(|(mono, _)| mono).any(|atom| atom.mentions(name))
    }

    /// The coefficient of a name and the rest, if the name occurs in one term only, and alone there.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let (i, n) = (Ix::var("i"), Ix::var("n"));
    /// let e = n.sub(&i.scale(2)?)?;
    /// assert_eq!(e.linear_in("i".into()), Some((-2, n.clone())));
    /// assert_eq!(n.mul(&i)?.linear_in("i".into()), None);
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn linear_in(&self, name: Name) -> Option<(i64, Ix)> {
        let (mono, coefficient, rest) = self.only_term_with(name)?;
        matches!(mono.as_slice(), [Atom::Var(n)] if *n == name).then_some((coefficient, rest))
    }

    /// What a name is multiplied with and the rest, if neither mentions it.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let (i, n, m) = (Ix::var("i"), Ix::var("n"), Ix::var("m"));
    /// let e = n.mul(&i)?.sub(&i)?.add(&m)?;
    /// assert_eq!(e.factored("i".into()), Some((n.sub(&Ix::from(1))?, m)));
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn factored(&self, name: Name) -> Option<(Ix, Ix)> {
        let is_name = |atom: &Atom| matches!(atom, Atom::Var(n) if *n == name);
        let (mut factor, mut rest) = (Ix::from(0), Ix::from(self.constant));
        for (mono, coefficient) in &self.terms {
            let Some(at) = mono.iter().position(is_name) else {
                rest = rest.add(&Ix::monomial(mono, *coefficient)).ok()?;
                continue;
            };
            let mut others = mono.clone();
            others.remove(at);
            let others = if others.is_empty() { Ix::from(*coefficient) } else { Ix::monomial(&others, *coefficient) };
            factor = factor.add(&others).ok()?;
        }
        (!factor.mentions(name) && !rest.mentions(name)).then_some((factor, rest))
    }

    /// If a name occurs in one term only, `c * floor_div(e, k)`: c, e, k and the rest.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let (i, n) = (Ix::var("i"), Ix::var("n"));
    /// let e = n.sub(&i.floor_div(4)?)?;
    /// assert_eq!(e.quotient_with("i".into()), Some((-1, i, 4, n)));
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn quotient_with(&self, name: Name) -> Option<(i64, Ix, i64, Ix)> {
        let (mono, coefficient, rest) = self.only_term_with(name)?;
        match mono.as_slice() {
            [Atom::FloorDiv(e, divisor)] => Some((coefficient, (**e).clone(), *divisor, rest)),
            _ => None,
        }
    }

    /// The only term that mentions a name, and the others.
    fn only_term_with(&self, name: Name) -> Option<(&Mono, i64, Ix)> {
        let mentions = |mono: &Mono| mono.iter().any(|atom| atom.mentions(name));
        let at = self.terms.iter().position(|(mono, _)| mentions(mono))?;
        let (mono, coefficient) = &self.terms[at];
        let mut rest = self.clone();
        rest.terms.remove(at);
        (!rest.mentions(name)).then_some((mono, *coefficient, rest))
    }

    /// Whether the expression is seen to be at least zero wherever its names are: nothing is subtracted in it.
    ///
    /// ```
    /// use certen_index::Ix;
    /// let n = Ix::var("n");
    /// assert!(n.mul(&n)?.add(&Ix::from(1))?.subtracts_nothing());
    /// assert!(!n.mul(&n)?.sub(&n)?.subtracts_nothing());
    /// # Ok::<(), certen_index::IxError>(())
    /// ```
    pub fn subtracts_nothing(&self) -> bool {
        let atom = |atom: &Atom| match atom {
            Atom::Var(_) => true,
            Atom::FloorDiv(e, _) => e.subtracts_nothing(),
            Atom::Min(es) => es.iter().all(Ix::subtracts_nothing),
            Atom::Max(es) => es.iter().any(Ix::subtracts_nothing),
        };
        self.constant >= 0 && self.terms.iter().all(|(mono, coefficient)| *coefficient >= 0 && mono.iter().all(atom))
    }

    /// The value where names have these values.
    pub fn eval(&self, value: &impl Fn(Name) -> Option<i64>) -> Result<i64, IxError> {
        let mut sum = self.constant;
        for (mono, coefficient) in &self.terms {
            let mut product = *coefficient;
            for atom in mono {
                product = product.checked_mul(atom.eval(value)?).ok_or(IxError::Overflow)?;
            }
            sum = sum.checked_add(product).ok_or(IxError::Overflow)?;
        }
        Ok(sum)
    }

    /// The expression with names replaced by expressions; a name without a replacement stays.
    pub fn substitute(&self, replacement: &impl Fn(Name) -> Option<Ix>) -> Result<Ix, IxError> {
        let mut sum = Ix::from(self.constant);
        for (mono, coefficient) in &self.terms {
            let mut product = Ix::from(*coefficient);
            for atom in mono {
                product = product.mul(&atom.substitute(replacement)?)?;
            }
            sum = sum.add(&product)?;
        }
        Ok(sum)
    }
}

/// The largest number that divides both; of 0 and a number, the number.
pub(crate) fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn sorted_pair(a: &Ix, b: &Ix) -> Box<[Ix]> {
    if a <= b { [a.clone(), b.clone()].into() } else { [b.clone(), a.clone()].into() }
}

impl Atom {
    pub(crate) fn mentions(&self, name: Name) -> bool {
        match self {
            Atom::Var(n) => *n == name,
            Atom::FloorDiv(e, _) => e.mentions(name),
            Atom::Min(es) | Atom::Max(es) => es.iter().any(|e| e.mentions(name)),
        }
    }

    fn eval(&self, value: &impl Fn(Name) -> Option<i64>) -> Result<i64, IxError> {
        match self {
            Atom::Var(name) => value(*name).ok_or(IxError::Unbound(*name)),
            Atom::FloorDiv(e, divisor) => Ok(e.eval(value)?.div_euclid(*divisor)),
            Atom::Min(es) => extreme(es, value, i64::min),
            Atom::Max(es) => extreme(es, value, i64::max),
        }
    }

    fn substitute(&self, replacement: &impl Fn(Name) -> Option<Ix>) -> Result<Ix, IxError> {
        match self {
            Atom::Var(name) => Ok(replacement(*name).unwrap_or_else(|| Ix::var(*name))),
            Atom::FloorDiv(e, divisor) => e.substitute(replacement)?.floor_div(*divisor),
            Atom::Min(es) => fold(es, replacement, Ix::min_with),
            Atom::Max(es) => fold(es, replacement, Ix::max_with),
        }
    }
}

fn extreme(es: &[Ix], value: &impl Fn(Name) -> Option<i64>, choose: impl Fn(i64, i64) -> i64) -> Result<i64, IxError> {
    let mut values = es.iter().map(|e| e.eval(value));
    let first = values.next().unwrap_or(Err(IxError::TooComplex))?;
    values.try_fold(first, |best, next| Ok(choose(best, next?)))
}

fn fold(
    es: &[Ix],
    replacement: &impl Fn(Name) -> Option<Ix>,
    combine: impl Fn(&Ix, &Ix) -> Result<Ix, IxError>,
) -> Result<Ix, IxError> {
    let mut replaced = es.iter().map(|e| e.substitute(replacement));
    let first = replaced.next().unwrap_or(Err(IxError::TooComplex))?;
    replaced.try_fold(first, |all, next| combine(&all, &next?))
}
