//! Conditions over integer expressions: comparisons, `&&`, `||`, `!`.
//!
//! Kept in negation normal form over `e >= 0` and `e == 0`, so that a condition has one shape however it was spelled.

use std::collections::BTreeSet;
use std::fmt;

use certen_syntax::Name;

use crate::ix::{Ix, IxError};
use crate::print::{Notation, Plain};

/// A condition on sizes and indices.
///
/// ```
/// use certen_index::{Cond, Ix};
/// let (i, n) = (Ix::var("i"), Ix::var("n"));
/// let inside = Cond::le(&Ix::from(0), &i)?.and(Cond::lt(&i, &n)?);
/// assert_eq!(inside.to_string(), "i >= 0 && i < n");
/// assert_eq!(inside.not()?.to_string(), "i < 0 || n <= i");
/// # Ok::<(), certen_index::IxError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Cond {
    /// The expression is at least zero.
    Ge(Ix),
    /// The expression is zero.
    Eq(Ix),
    /// All hold; with none, true.
    And(Vec<Cond>),
    /// One holds; with none, false.
    Or(Vec<Cond>),
}

impl Cond {
    /// The condition that always holds.
    pub fn always() -> Cond {
        Cond::And(Vec::new())
    }

    /// The condition that never holds.
    pub fn never() -> Cond {
        Cond::Or(Vec::new())
    }

    /// Whether this is [`Cond::always`].
    pub fn is_always(&self) -> bool {
        matches!(self, Cond::And(all) if all.is_empty())
    }

    fn at_least_zero(e: Ix) -> Cond {
        match e.as_constant() {
            Some(constant) if constant >= 0 => Cond::always(),
            Some(_) => Cond::never(),
            None => Cond::Ge(e.tightened()),
        }
    }

    /// `a <= b`
    pub fn le(a: &Ix, b: &Ix) -> Result<Cond, IxError> {
        Ok(Cond::at_least_zero(b.sub(a)?))
    }

    /// `a < b`
    pub fn lt(a: &Ix, b: &Ix) -> Result<Cond, IxError> {
        Ok(Cond::at_least_zero(b.sub(a)?.sub(&Ix::from(1))?))
    }

    /// `a == b`
    pub fn eq(a: &Ix, b: &Ix) -> Result<Cond, IxError> {
        let difference = a.sub(b)?;
        if let Some(constant) = difference.as_constant() {
            return Ok(if constant == 0 { Cond::always() } else { Cond::never() });
        }
        let Some(difference) = difference.divided(|constant, g| (constant % g == 0).then_some(constant / g)) else {
            return Ok(Cond::never());
        };
        let flipped = difference.scale(-1)?;
        Ok(Cond::Eq(if flipped.terms() > difference.terms() { flipped } else { difference }))
    }

    /// Whether this is [`Cond::never`].
    pub fn is_never(&self) -> bool {
        matches!(self, Cond::Or(any) if any.is_empty())
    }

    /// Both hold.
    pub fn and(self, other: Cond) -> Cond {
        match (self, other) {
            (never, _) | (_, never) if never.is_never() => never,
            (left, right) => {
                let parts = |cond| if let Cond::And(all) = cond { all } else { vec![cond] };
                joined(parts(left), parts(right), Cond::And)
            }
        }
    }

    /// One holds.
    pub fn or(self, other: Cond) -> Cond {
        match (self, other) {
            (always, _) | (_, always) if always.is_always() => always,
            (left, right) => {
                let parts = |cond| if let Cond::Or(any) = cond { any } else { vec![cond] };
                joined(parts(left), parts(right), Cond::Or)
            }
        }
    }

    /// The opposite.
    pub fn not(&self) -> Result<Cond, IxError> {
        let negative = |e: &Ix| Cond::lt(e, &Ix::from(0));
        match self {
            Cond::Ge(e) => negative(e),
            Cond::Eq(e) => Ok(negative(e)?.or(Cond::lt(&Ix::from(0), e)?)),
            Cond::And(all) => all.iter().try_fold(Cond::never(), |any, c| Ok(any.or(c.not()?))),
            Cond::Or(any) => any.iter().try_fold(Cond::always(), |all, c| Ok(all.and(c.not()?))),
        }
    }

    /// Whether it holds where names have these values.
    pub fn eval(&self, value: &impl Fn(Name) -> Option<i64>) -> Result<bool, IxError> {
        match self {
            Cond::Ge(e) => Ok(e.eval(value)? >= 0),
            Cond::Eq(e) => Ok(e.eval(value)? == 0),
            Cond::And(all) => {
                for cond in all {
                    if !cond.eval(value)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Cond::Or(any) => {
                for cond in any {
                    if cond.eval(value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The condition with names replaced by expressions.
    pub fn substitute(&self, replacement: &impl Fn(Name) -> Option<Ix>) -> Result<Cond, IxError> {
        let each = |list: &[Cond]| list.iter().map(|c| c.substitute(replacement)).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Cond::Ge(e) => Cond::at_least_zero(e.substitute(replacement)?),
            Cond::Eq(e) => Cond::eq(&e.substitute(replacement)?, &Ix::from(0))?,
            Cond::And(all) => each(all)?.into_iter().fold(Cond::always(), Cond::and),
            Cond::Or(any) => each(any)?.into_iter().fold(Cond::never(), Cond::or),
        })
    }

    /// Every name that occurs, added to a set.
    pub fn collect_names(&self, names: &mut BTreeSet<Name>) {
        match self {
            Cond::Ge(e) | Cond::Eq(e) => e.collect_names(names),
            Cond::And(list) | Cond::Or(list) => list.iter().for_each(|c| c.collect_names(names)),
        }
    }

    /// Every number that occurs, added to a set, as [`Ix::collect_numbers`] does.
    pub fn collect_numbers(&self, numbers: &mut BTreeSet<i64>) {
        match self {
            Cond::Ge(e) | Cond::Eq(e) => e.collect_numbers(numbers),
            Cond::And(list) | Cond::Or(list) => list.iter().for_each(|c| c.collect_numbers(numbers)),
        }
    }

    /// Whether a division, a minimum or a maximum occurs.
    pub fn has_functions(&self) -> bool {
        let mut comparisons = Vec::new();
        self.comparisons(&mut comparisons);
        comparisons.iter().any(|e| e.has_functions())
    }

    /// Whether a product of names occurs.
    pub(crate) fn has_products(&self) -> bool {
        let mut comparisons = Vec::new();
        self.comparisons(&mut comparisons);
        comparisons.iter().any(|e| e.terms().iter().any(|(mono, _)| mono.len() > 1))
    }

    /// The expressions compared with zero, in order.
    pub(crate) fn comparisons<'a>(&'a self, out: &mut Vec<&'a Ix>) {
        match self {
            Cond::Ge(e) | Cond::Eq(e) => out.push(e),
            Cond::And(list) | Cond::Or(list) => list.iter().for_each(|c| c.comparisons(out)),
        }
    }
}

/// One list of conditions; a list of one is that condition.
fn joined(mut list: Vec<Cond>, more: Vec<Cond>, make: fn(Vec<Cond>) -> Cond) -> Cond {
    list.extend(more);
    if list.len() == 1 { list.remove(0) } else { make(list) }
}

/// What is added in `e`, what is subtracted, and the constant.
fn sides(e: &Ix) -> Option<(Ix, Ix, i64)> {
    let sum = |sign: i64| {
        let terms = e.terms().iter().filter(|(_, coefficient)| coefficient.signum() == sign);
        terms.into_iter().try_fold(Ix::from(0), |sum, (mono, c)| sum.add(&Ix::monomial(mono, *c)).ok())
    };
    let (plus, minus) = (sum(1)?, sum(-1)?.scale(-1).ok()?);
    (e.constant_part() != i64::MIN).then_some((plus, minus, e.constant_part()))
}

impl Cond {
    /// The condition as text.
    pub fn write(&self, notation: &mut dyn Notation) -> String {
        match self {
            Cond::Ge(e) => at_least_zero(e, notation),
            Cond::Eq(e) => zero(e, notation),
            Cond::And(all) if all.is_empty() => "true".into(),
            Cond::Or(any) if any.is_empty() => "false".into(),
            Cond::And(list) | Cond::Or(list) => {
                let is_and = matches!(self, Cond::And(_));
                let mut write = |cond: &Cond| match cond {
                    Cond::Or(any) if is_and && any.len() > 1 => format!("({})", cond.write(notation)),
                    _ => cond.write(notation),
                };
                let parts: Vec<String> = list.iter().map(&mut write).collect();
                parts.join(if is_and { " && " } else { " || " })
            }
        }
    }
}

/// `plus - minus + constant >= 0`, with every term on the side where it has no minus.
fn at_least_zero(e: &Ix, notation: &mut dyn Notation) -> String {
    let Some((plus, minus, constant)) = sides(e) else { return format!("{} >= 0", e.write(notation)) };
    let none = |side: &Ix| side.as_constant().is_some();
    let (left, sign, right) = match constant {
        -1 if none(&plus) => (minus, "<", Some(Ix::from(0))),
        _ if none(&plus) => (minus, "<=", Some(Ix::from(constant))),
        _ if none(&minus) => (plus, ">=", Some(Ix::from(-constant))),
        -1 => (minus, "<", Some(plus)),
        ..0 => (plus, ">=", minus.add(&Ix::from(-constant)).ok()),
        0.. => (minus, "<=", plus.add(&Ix::from(constant)).ok()),
    };
    match right {
        Some(right) => format!("{} {sign} {}", left.write(notation), right.write(notation)),
        None => format!("{} >= 0", e.write(notation)),
    }
}

/// `plus - minus + constant == 0`, likewise.
fn zero(e: &Ix, notation: &mut dyn Notation) -> String {
    let balanced = sides(e).and_then(|(plus, minus, constant)| match constant {
        _ if plus.as_constant().is_some() => Some((minus, Ix::from(constant))),
        1.. => Some((plus.add(&Ix::from(constant)).ok()?, minus)),
        ..1 => Some((plus, minus.add(&Ix::from(-constant)).ok()?)),
    });
    match balanced {
        Some((left, right)) => format!("{} == {}", left.write(notation), right.write(notation)),
        None => format!("{} == 0", e.write(notation)),
    }
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write(&mut Plain))
    }
}
