//! Equations with one unknown, in which it has a number as its coefficient.

use certen_index::{Cond, Ix};
use certen_syntax::Name;

/// What a name is if an expression with it is another expression.
pub(super) fn solved(value: &Ix, name: Name, ix: &Ix) -> Option<Ix> {
    let (coefficient, rest) = value.linear_in(name)?;
    let difference = ix.sub(&rest).ok()?;
    match coefficient {
        1 => Some(difference),
        -1 => difference.scale(-1).ok(),
        _ => {
            let (size, sign) = (i64::try_from(coefficient.unsigned_abs()).ok()?, coefficient.signum());
            let quotient = difference.floor_div(size).ok()?;
            (quotient.scale(size).ok()? == difference).then(|| quotient.scale(sign).ok()).flatten()
        }
    }
}

/// What a name is if a comparison with it is another condition.
pub(super) fn solved_cond(value: &Cond, name: Name, cond: &Cond) -> Option<Ix> {
    match (value, cond) {
        (Cond::Ge(wanted), Cond::Ge(own)) => solved(wanted, name, own),
        (Cond::Eq(wanted), Cond::Eq(own)) => {
            // The sign of an equation is that of the order of names.
            let direct = solved(wanted, name, own).filter(|_| wanted.linear_in(name).is_some_and(|(c, _)| c > 0));
            direct.or_else(|| solved(wanted, name, &own.scale(-1).ok()?))
        }
        _ => None,
    }
}
