//! Index expressions of kernels as they are written: what is accessed, and how far indices go.
//!
//! They are kept as trees, so that what the prover says of their normal form ([`certen_index::Ix`]) can be replayed by a
//! walk that shares nothing with it: [`Index::value`], in 128-bit integers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;

/// An integer expression over sizes and indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Index {
    /// A number.
    Num(i64),
    /// A size or an index.
    Name(Name),
    /// A sum.
    Add(Box<Index>, Box<Index>),
    /// A difference.
    Sub(Box<Index>, Box<Index>),
    /// A product.
    Mul(Box<Index>, Box<Index>),
    /// A quotient rounded down, by a positive number.
    Div(Box<Index>, i64),
    /// What is left of it.
    Mod(Box<Index>, i64),
    /// The smaller of two.
    Min(Box<Index>, Box<Index>),
    /// The larger of two.
    Max(Box<Index>, Box<Index>),
}

/// How two numbers are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `==`
    Equal,
    /// `!=`
    Unequal,
}

/// A condition on sizes and indices.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Two expressions compared.
    Compare(Comparison, Index, Index),
    /// Both hold.
    And(Box<Condition>, Box<Condition>),
    /// One holds.
    Or(Box<Condition>, Box<Condition>),
    /// It does not hold.
    Not(Box<Condition>),
}

/// Values of names.
pub type Values = BTreeMap<Name, i64>;

impl From<i64> for Index {
    fn from(number: i64) -> Index {
        Index::Num(number)
    }
}

impl From<Name> for Index {
    fn from(name: Name) -> Index {
        Index::Name(name)
    }
}

impl std::ops::Add for Index {
    type Output = Index;

    fn add(self, other: Index) -> Index {
        Index::Add(Box::new(self), Box::new(other))
    }
}

impl std::ops::Sub for Index {
    type Output = Index;

    fn sub(self, other: Index) -> Index {
        Index::Sub(Box::new(self), Box::new(other))
    }
}

impl std::ops::Mul for Index {
    type Output = Index;

    fn mul(self, other: Index) -> Index {
        Index::Mul(Box::new(self), Box::new(other))
    }
}

impl Index {
    /// A quotient rounded down; none if the divisor is no positive number.
    pub fn floor_div(self, divisor: &Index) -> Option<Index> {
        divisor.number().filter(|divisor| *divisor > 0).map(|divisor| Index::Div(Box::new(self), divisor))
    }

    /// What is left of it, likewise.
    pub fn modulo(self, divisor: &Index) -> Option<Index> {
        divisor.number().filter(|divisor| *divisor > 0).map(|divisor| Index::Mod(Box::new(self), divisor))
    }

    /// The smaller of two.
    pub fn min(self, other: Index) -> Index {
        Index::Min(Box::new(self), Box::new(other))
    }

    /// The larger of two.
    pub fn max(self, other: Index) -> Index {
        Index::Max(Box::new(self), Box::new(other))
    }

    /// In normal form.
    ///
    /// # Errors
    /// If it is beyond the prover: numbers that overflow, too many terms.
    pub fn ix(&self) -> Result<Ix, IxError> {
        Ok(match self {
            Index::Num(number) => Ix::from(*number),
            Index::Name(name) => Ix::var(*name),
            Index::Add(a, b) => a.ix()?.add(&b.ix()?)?,
            Index::Sub(a, b) => a.ix()?.sub(&b.ix()?)?,
            Index::Mul(a, b) => a.ix()?.mul(&b.ix()?)?,
            Index::Div(a, k) => a.ix()?.floor_div(*k)?,
            Index::Mod(a, k) => a.ix()?.modulo(*k)?,
            Index::Min(a, b) => a.ix()?.min_with(&b.ix()?)?,
            Index::Max(a, b) => a.ix()?.max_with(&b.ix()?)?,
        })
    }

    /// The number that it is, without any names.
    pub fn number(&self) -> Option<i64> {
        self.ix().ok()?.as_constant()
    }

    /// The name that it is.
    pub fn name(&self) -> Option<Name> {
        match self {
            Index::Name(name) => Some(*name),
            _ => None,
        }
    }

    /// Its value where names have these values; none for a name without one, or where 128 bits are too few.
    pub fn value(&self, values: &Values) -> Option<i128> {
        Some(match self {
            Index::Num(number) => i128::from(*number),
            Index::Name(name) => i128::from(*values.get(name)?),
            Index::Add(a, b) => a.value(values)?.checked_add(b.value(values)?)?,
            Index::Sub(a, b) => a.value(values)?.checked_sub(b.value(values)?)?,
            Index::Mul(a, b) => a.value(values)?.checked_mul(b.value(values)?)?,
            Index::Div(a, k) => a.value(values)?.checked_div_euclid(i128::from(*k))?,
            Index::Mod(a, k) => a.value(values)?.checked_rem_euclid(i128::from(*k))?,
            Index::Min(a, b) => a.value(values)?.min(b.value(values)?),
            Index::Max(a, b) => a.value(values)?.max(b.value(values)?),
        })
    }

    /// Every name that occurs, added to a set.
    pub fn names(&self, names: &mut BTreeSet<Name>) {
        match self {
            Index::Num(_) => {}
            Index::Name(name) => {
                names.insert(*name);
            }
            Index::Div(a, _) | Index::Mod(a, _) => a.names(names),
            Index::Add(a, b) | Index::Sub(a, b) | Index::Mul(a, b) | Index::Min(a, b) | Index::Max(a, b) => {
                a.names(names);
                b.names(names);
            }
        }
    }

    /// Whether a name occurs.
    pub fn mentions(&self, name: Name) -> bool {
        let mut names = BTreeSet::new();
        self.names(&mut names);
        names.contains(&name)
    }

    /// With names replaced by expressions.
    pub fn with(&self, replaced: &BTreeMap<Name, Index>) -> Index {
        let both = |a: &Index, b: &Index| (Box::new(a.with(replaced)), Box::new(b.with(replaced)));
        match self {
            Index::Num(number) => Index::Num(*number),
            Index::Name(name) => replaced.get(name).cloned().unwrap_or(Index::Name(*name)),
            Index::Div(a, k) => Index::Div(Box::new(a.with(replaced)), *k),
            Index::Mod(a, k) => Index::Mod(Box::new(a.with(replaced)), *k),
            Index::Add(a, b) => both(a, b).make(Index::Add),
            Index::Sub(a, b) => both(a, b).make(Index::Sub),
            Index::Mul(a, b) => both(a, b).make(Index::Mul),
            Index::Min(a, b) => both(a, b).make(Index::Min),
            Index::Max(a, b) => both(a, b).make(Index::Max),
        }
    }
}

/// Two parts that become a whole.
trait Make {
    fn make(self, whole: fn(Box<Index>, Box<Index>) -> Index) -> Index;
}

impl Make for (Box<Index>, Box<Index>) {
    fn make(self, whole: fn(Box<Index>, Box<Index>) -> Index) -> Index {
        whole(self.0, self.1)
    }
}

impl Condition {
    /// Two expressions compared.
    pub fn compare(comparison: Comparison, a: impl Into<Index>, b: impl Into<Index>) -> Condition {
        Condition::Compare(comparison, a.into(), b.into())
    }

    /// For the prover.
    ///
    /// # Errors
    /// As [`Index::ix`].
    pub fn cond(&self) -> Result<Cond, IxError> {
        Ok(match self {
            Condition::Compare(comparison, a, b) => {
                let (a, b) = (a.ix()?, b.ix()?);
                match comparison {
                    Comparison::Less => Cond::lt(&a, &b)?,
                    Comparison::AtMost => Cond::le(&a, &b)?,
                    Comparison::Equal => Cond::eq(&a, &b)?,
                    Comparison::Unequal => Cond::eq(&a, &b)?.not()?,
                }
            }
            Condition::And(a, b) => a.cond()?.and(b.cond()?),
            Condition::Or(a, b) => a.cond()?.or(b.cond()?),
            Condition::Not(a) => a.cond()?.not()?,
        })
    }

    /// Whether it holds where names have these values.
    pub fn holds(&self, values: &Values) -> Option<bool> {
        Some(match self {
            Condition::Compare(comparison, a, b) => {
                let (a, b) = (a.value(values)?, b.value(values)?);
                match comparison {
                    Comparison::Less => a < b,
                    Comparison::AtMost => a <= b,
                    Comparison::Equal => a == b,
                    Comparison::Unequal => a != b,
                }
            }
            Condition::And(a, b) => a.holds(values)? && b.holds(values)?,
            Condition::Or(a, b) => a.holds(values)? || b.holds(values)?,
            Condition::Not(a) => !a.holds(values)?,
        })
    }

    /// Every name that occurs, added to a set.
    pub fn names(&self, names: &mut BTreeSet<Name>) {
        match self {
            Condition::Compare(_, a, b) => {
                a.names(names);
                b.names(names);
            }
            Condition::And(a, b) | Condition::Or(a, b) => {
                a.names(names);
                b.names(names);
            }
            Condition::Not(a) => a.names(names),
        }
    }

    /// With names replaced by expressions.
    pub fn with(&self, replaced: &BTreeMap<Name, Index>) -> Condition {
        match self {
            Condition::Compare(comparison, a, b) => Condition::Compare(*comparison, a.with(replaced), b.with(replaced)),
            Condition::And(a, b) => Condition::And(Box::new(a.with(replaced)), Box::new(b.with(replaced))),
            Condition::Or(a, b) => Condition::Or(Box::new(a.with(replaced)), Box::new(b.with(replaced))),
            Condition::Not(a) => Condition::Not(Box::new(a.with(replaced))),
        }
    }
}

impl fmt::Display for Index {
    /// In normal form, as messages and `.ten` files write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ix() {
            Ok(ix) => ix.fmt(f),
            Err(_) => f.write_str("an expression that is too large"),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Compare(comparison, a, b) => {
                let sign = match comparison {
                    Comparison::Less => "<",
                    Comparison::AtMost => "<=",
                    Comparison::Equal => "==",
                    Comparison::Unequal => "!=",
                };
                write!(f, "{a} {sign} {b}")
            }
            Condition::And(a, b) => write!(f, "({a} && {b})"),
            Condition::Or(a, b) => write!(f, "({a} || {b})"),
            Condition::Not(a) => write!(f, "!({a})"),
        }
    }
}
