//! Conditions over integer expressions: comparisons, `&&`, `||`, `!`.
//!
//! Kept in negation normal form over `e >= 0` and `e == 0`, so that a condition has one shape however it was spelled.

use std::collections::BTreeSet;
use std::fmt;

use certen_syntax::Name;

use crate::{Ix, IxError};

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
            None => Cond::Ge(e),
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
            (Cond::And(mut all), Cond::And(more)) => {
                all.extend(more);
                Cond::And(all)
            }
            (Cond::And(mut all), one) => {
                all.push(one);
                Cond::And(all)
            }
            (one, Cond::And(more)) => Cond::And([vec![one], more].concat()),
            (one, other) => Cond::And(vec![one, other]),
        }
        .unwrapped()
    }

    /// One holds.
    pub fn or(self, other: Cond) -> Cond {
        match (self, other) {
            (always, _) | (_, always) if always.is_always() => always,
            (Cond::Or(mut any), Cond::Or(more)) => {
                any.extend(more);
                Cond::Or(any)
            }
            (Cond::Or(mut any), one) => {
                any.push(one);
                Cond::Or(any)
            }
            (one, Cond::Or(more)) => Cond::Or([vec![one], more].concat()),
            (one, other) => Cond::Or(vec![one, other]),
        }
        .unwrapped()
    }

    /// A conjunction or disjunction of one condition is that condition.
    fn unwrapped(self) -> Cond {
        match self {
            Cond::And(mut list) | Cond::Or(mut list) if list.len() == 1 => list.remove(0),
            other => other,
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

    /// The expressions compared with zero, in order.
    pub(crate) fn comparisons<'a>(&'a self, out: &mut Vec<&'a Ix>) {
        match self {
            Cond::Ge(e) | Cond::Eq(e) => out.push(e),
            Cond::And(list) | Cond::Or(list) => list.iter().for_each(|c| c.comparisons(out)),
        }
    }
}

/// Splits `e` into what is added and what is subtracted; the constant goes to the right, or left if that avoids a minus.
fn sides(e: &Ix) -> Option<(Ix, Ix, i64)> {
    let positive = e.terms().iter().filter(|(_, c)| *c > 0);
    let negative = e.terms().iter().filter(|(_, c)| *c < 0);
    let rebuild = |terms: Vec<&(crate::ix::Mono, i64)>| {
        terms.into_iter().try_fold(Ix::from(0), |sum, (mono, c)| sum.add(&Ix::monomial(mono, *c)).ok())
    };
    let (plus, minus) = (rebuild(positive.collect())?, rebuild(negative.collect())?.scale(-1).ok()?);
    Some((plus, minus, e.constant_part()))
}

impl fmt::Display for Cond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cond::Ge(e) => match sides(e) {
                // plus - minus + constant >= 0
                Some((plus, minus, constant)) if constant != i64::MIN => {
                    let number = |value: i64| Ix::from(value);
                    if plus.as_constant().is_some() {
                        match constant {
                            -1 => write!(f, "{minus} < 0"),
                            _ => write!(f, "{minus} <= {constant}"),
                        }
                    } else if minus.as_constant().is_some() {
                        write!(f, "{plus} >= {}", -constant)
                    } else if constant == -1 {
                        write!(f, "{minus} < {plus}")
                    } else if constant < 0 {
                        write!(f, "{plus} >= {}", minus.add(&number(-constant)).unwrap_or(minus))
                    } else {
                        write!(f, "{minus} <= {}", plus.add(&number(constant)).unwrap_or(plus))
                    }
                }
                _ => write!(f, "{e} >= 0"),
            },
            Cond::Eq(e) => match sides(e) {
                Some((plus, minus, constant)) if constant != i64::MIN => {
                    if plus.as_constant().is_some() {
                        write!(f, "{minus} == {constant}")
                    } else if constant > 0 {
                        match plus.add(&Ix::from(constant)) {
                            Ok(plus) => write!(f, "{plus} == {minus}"),
                            Err(_) => write!(f, "{e} == 0"),
                        }
                    } else {
                        match minus.add(&Ix::from(-constant)) {
                            Ok(minus) => write!(f, "{plus} == {minus}"),
                            Err(_) => write!(f, "{e} == 0"),
                        }
                    }
                }
                _ => write!(f, "{e} == 0"),
            },
            Cond::And(all) if all.is_empty() => write!(f, "true"),
            Cond::Or(any) if any.is_empty() => write!(f, "false"),
            Cond::And(all) => join(f, all, " && ", |c| matches!(c, Cond::Or(any) if any.len() > 1)),
            Cond::Or(any) => join(f, any, " || ", |_| false),
        }
    }
}

fn join(
    f: &mut fmt::Formatter<'_>,
    list: &[Cond],
    between: &str,
    needs_parentheses: impl Fn(&Cond) -> bool,
) -> fmt::Result {
    for (at, cond) in list.iter().enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        if needs_parentheses(cond) { write!(f, "({cond})")? } else { write!(f, "{cond}")? }
    }
    Ok(())
}
