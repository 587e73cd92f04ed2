//! Bounds of loops: solved for another index, freed of indices, and the room that a loop's iterations need.
//!
//! A loop over j ends where `j < hi`, and `hi` can be a minimum or depend on the indices of loops around it. Its parts
//! are conditions of their own, each of which can be solved for an index in which it is linear.

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_loops::within;
use certen_syntax::Name;

use crate::place::Loop;

/// A buffer has room for all iterations of a block of at most this size, also where the block is not full.
const MAX_BLOCK: i64 = 4096;

/// The ranges of two loops after they have changed places, the new outer one first: the same pairs of indices. None if
/// the inner range depends on the outer index in another way than linearly.
pub(crate) fn turned(facts: &Facts, outer: &Loop, inner: &Loop) -> Result<Option<(Range, Range)>, IxError> {
    let (i, j) = (outer.index, Ix::var(inner.index));
    if !inner.range.lo.mentions(i) && !inner.range.hi.mentions(i) {
        return Ok(Some((inner.range.clone(), outer.range.clone())));
    }
    let one = Ix::from(1);
    let (first, last) = (&outer.range.lo, &outer.range.hi.sub(&one)?);
    let (mut i_lo, mut i_hi) = (vec![outer.range.lo.clone()], vec![outer.range.hi.clone()]);
    let (mut j_lo, mut j_hi) = (Vec::new(), Vec::new());
    for part in inner.range.hi.smallest_of()? {
        match part.linear_in(i) {
            _ if !part.mentions(i) => j_hi.push(part),
            // j < c*i + rest
            Some((c, rest)) if c > 0 => {
                i_lo.push(j.sub(&rest)?.floor_div(c)?.add(&one)?);
                j_hi.push(rest.add(&last.scale(c)?)?);
            }
            Some((c, rest)) => {
                i_hi.push(rest.sub(&j)?.ceil_div(c.checked_neg().ok_or(IxError::Overflow)?)?);
                j_hi.push(rest.add(&first.scale(c)?)?);
            }
            None => return Ok(None),
        }
    }
    for part in inner.range.lo.largest_of()? {
        match part.linear_in(i) {
            _ if !part.mentions(i) => j_lo.push(part),
            // c*i + rest <= j
            Some((c, rest)) if c > 0 => {
                i_hi.push(j.sub(&rest)?.floor_div(c)?.add(&one)?);
                j_lo.push(rest.add(&first.scale(c)?)?);
            }
            Some((c, rest)) => {
                i_lo.push(rest.sub(&j)?.ceil_div(c.checked_neg().ok_or(IxError::Overflow)?)?);
                j_lo.push(rest.add(&last.scale(c)?)?);
            }
            None => return Ok(None),
        }
    }
    let new_outer = Range { lo: largest(&j_lo)?.simplified(facts)?, hi: smallest(&j_hi)?.simplified(facts)? };
    let mut inside = facts.clone();
    inside.assume(within(inner.index, &new_outer)?);
    let new_inner = Range { lo: largest(&i_lo)?.simplified(&inside)?, hi: smallest(&i_hi)?.simplified(&inside)? };
    Ok(Some((new_outer, new_inner)))
}

/// A bound of a loop without the indices of the loops around it, which are given outermost first: the parts of the bound
/// that the new one does not imply are conditions. `upper` tells an upper bound from a lower one. None if there is
/// nothing to do, or no such bound is known.
pub(crate) fn loosened(
    facts: &Facts,
    around: &[(Name, Range)],
    bound: &Ix,
    upper: bool,
) -> Result<Option<(Ix, Vec<Ix>)>, IxError> {
    let parts = if upper { bound.smallest_of()? } else { bound.largest_of()? };
    let depends = |part: &Ix| around.iter().any(|(index, _)| part.mentions(*index));
    if parts.len() == 1 && !depends(bound) {
        return Ok(None);
    }
    let constants = parts.iter().filter_map(Ix::as_constant);
    let constant = if upper { constants.min() } else { constants.max() };
    let kept = match constant.map(Ix::from).or_else(|| parts.iter().find(|part| !depends(part)).cloned()) {
        Some(kept) => Some(kept),
        None => freed(around, bound, upper)?.map(|kept| kept.simplified(facts)).transpose()?,
    };
    Ok(kept.map(|kept| {
        let left = parts.into_iter().filter(|part| *part != kept).collect();
        (kept, left)
    }))
}

/// What an expression is at most (or at least), over all iterations of the loops around, innermost last.
fn freed(around: &[(Name, Range)], bound: &Ix, most: bool) -> Result<Option<Ix>, IxError> {
    let mut bound = bound.clone();
    for (index, range) in around.iter().rev() {
        if bound.mentions(*index) {
            let last = range.hi.sub(&Ix::from(1))?;
            match bound.most_over(*index, (&range.lo, &last), most)? {
                Some(without) => bound = without,
                None => return Ok(None),
            }
        }
    }
    Ok(Some(bound))
}

/// How many elements a buffer needs to hold one for each iteration: the size of a block, if the loop is over a block.
pub(crate) fn room(facts: &Facts, range: &Range) -> Result<Ix, IxError> {
    let extent = range.hi.sub(&range.lo)?;
    let block = extent.smallest_of()?.iter().filter_map(Ix::as_constant).min();
    match block.filter(|block| *block <= MAX_BLOCK) {
        Some(block) => Ok(Ix::from(block.max(0))),
        None => range.extent(facts),
    }
}

/// The conditions that an index is at least all of some bounds, and below all of others, where the facts do not show it.
pub(crate) fn conditions(facts: &Facts, index: Name, lower: &[Ix], upper: &[Ix]) -> Result<Cond, IxError> {
    let i = Ix::var(index);
    let wanted = lower.iter().map(|bound| Cond::le(bound, &i)).chain(upper.iter().map(|bound| Cond::lt(&i, bound)));
    let mut all = Cond::always();
    for cond in wanted {
        let cond = cond?;
        if facts.prove(&cond) != Verdict::Yes {
            all = all.and(cond);
        }
    }
    Ok(all)
}

fn smallest(parts: &[Ix]) -> Result<Ix, IxError> {
    let mut rest = parts.iter();
    let first = rest.next().cloned().unwrap_or_else(|| Ix::from(0));
    rest.try_fold(first, |so_far, part| so_far.min_with(part))
}

fn largest(parts: &[Ix]) -> Result<Ix, IxError> {
    let mut rest = parts.iter();
    let first = rest.next().cloned().unwrap_or_else(|| Ix::from(0));
    rest.try_fold(first, |so_far, part| so_far.max_with(part))
}
