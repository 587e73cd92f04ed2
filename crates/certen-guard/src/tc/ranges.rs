//! Range inference, in rounds: an index gets the largest range in which the accesses that have no other unresolved index
//! stay inside, for all values of the resolved ones.
//!
//! Where several accesses bound an index, the framework takes the smallest bound. It is taken here if it is the smallest
//! for all sizes; if two whole dimensions of different size are walked, or if it depends on sizes which bound is the
//! smaller, what was meant is not known: that is an [`Agreement`] that does not hold.

use std::collections::BTreeMap;

use certen_index::{Facts, KnownOrder};
use certen_syntax::{Name, Span};

use crate::index::{Comparison, Condition, Index};
use crate::kernel::{Agreement, Range, Side, Tensor};
use crate::text::dimension;

/// One index expression of an access.
pub(super) struct Place {
    pub tensor: usize,
    pub dimension: usize,
    pub index: Index,
    pub span: Span,
}

/// What was found out.
pub(super) struct Inferred {
    pub ranges: BTreeMap<Name, Range>,
    pub agreements: Vec<Agreement>,
    /// What holds where no range is empty.
    pub facts: Vec<Condition>,
}

/// What an access says of an index.
struct Bound<'a> {
    place: &'a Place,
    low: Index,
    high: Index,
    /// Whether the index walks along the whole dimension.
    is_whole: bool,
}

/// Infers the ranges of `indices`, given those that a `where` clause states.
pub(super) fn infer(
    tensors: &[Tensor],
    sizes: &[Name],
    indices: &[Name],
    stated: BTreeMap<Name, Range>,
    places: &[Place],
) -> Inferred {
    let mut facts = Facts::new();
    for size in sizes {
        if let Ok(fact) = Condition::compare(Comparison::AtMost, 1, *size).cond() {
            facts.assume(fact);
        }
    }
    let mut found = Inferred { ranges: stated, agreements: Vec::new(), facts: Vec::new() };
    loop {
        let mut bounds: BTreeMap<Name, Vec<Bound<'_>>> = BTreeMap::new();
        for place in places {
            let mut open = indices.iter().filter(|index| !found.ranges.contains_key(index));
            let mut open = open.by_ref().filter(|index| place.index.mentions(**index));
            if let (Some(index), None) = (open.next(), open.next())
                && let Some(bound) = solve(tensors, place, *index, &found.ranges)
            {
                bounds.entry(*index).or_default().push(bound);
            }
        }
        if bounds.is_empty() {
            return found;
        }
        for (index, bounds) in bounds {
            let range = intersected(tensors, &facts, index, &bounds, &mut found);
            found.ranges.insert(index, range);
        }
    }
}

/// The range that the bounds have in common. A call is only for sizes where each of them leaves something of it.
fn intersected(tensors: &[Tensor], facts: &Facts, index: Name, bounds: &[Bound<'_>], found: &mut Inferred) -> Range {
    let (first, others) = (&bounds[0], &bounds[1..]);
    let low = others.iter().fold(first.low.clone(), |low, bound| match order(facts, &low, &bound.low) {
        KnownOrder::Equal | KnownOrder::AtLeast => low,
        KnownOrder::AtMost => bound.low.clone(),
        KnownOrder::Depends(..) | KnownOrder::Unknown => low.max(bound.low.clone()),
    });
    let mut facts = facts.clone();
    for bound in bounds {
        let is_something = Condition::compare(Comparison::Less, low.clone(), bound.high.clone());
        if let Ok(fact) = is_something.cond() {
            facts.assume(fact);
        }
        if !bound.is_whole && bounds.len() > 1 {
            found.facts.push(is_something);
        }
    }
    let (mut high, mut from) = (first.high.clone(), first);
    for bound in others {
        let known = order(&facts, &high, &bound.high);
        let are_whole = from.is_whole && bound.is_whole;
        match known {
            KnownOrder::Equal => continue,
            KnownOrder::AtMost if !are_whole => continue,
            KnownOrder::AtLeast if !are_whole => {
                (high, from) = (bound.high.clone(), bound);
                continue;
            }
            _ => {}
        }
        let side = |bound: &Bound<'_>| Side {
            what: dimension(bound.place.dimension, tensors[bound.place.tensor].name),
            tensor: Some((bound.place.tensor, bound.place.dimension)),
            size: bound.high.clone(),
            span: bound.place.span,
        };
        let smaller = high.clone().min(bound.high.clone());
        let reading = format!("Tensor Comprehensions walks `{index}` up to {smaller}, without a word");
        found.agreements.push(Agreement { by: format!("`{index}`"), first: side(from), second: side(bound), reading });
    }
    Range { name: index, low, high }
}

fn order(facts: &Facts, a: &Index, b: &Index) -> KnownOrder {
    match (a.ix(), b.ix()) {
        (Ok(a), Ok(b)) => facts.compare(&a, &b),
        _ => KnownOrder::Unknown,
    }
}

/// For which values of an index an access is inside its dimension, whatever the others are.
fn solve<'a>(tensors: &[Tensor], place: &'a Place, index: Name, resolved: &BTreeMap<Name, Range>) -> Option<Bound<'a>> {
    let size = tensors.get(place.tensor)?.shape.get(place.dimension)?.clone();
    let is_whole = place.index == Index::Name(index);
    if is_whole {
        return Some(Bound { place, low: Index::Num(0), high: size, is_whole });
    }
    let (factor, rest) = linear(&place.index, index)?;
    let (least, most) = (extreme(&rest, resolved, false)?, extreme(&rest, resolved, true)?);
    let one = || Index::Num(1);
    let (low, high) = match factor {
        1.. => {
            let low = Index::Num(0) - divided(least, factor);
            (low, divided(size - one() - most, factor) + one())
        }
        ..0 => {
            let factor = factor.checked_neg()?;
            (divided(most - size, factor) + one(), divided(least, factor) + one())
        }
        0 => return None,
    };
    Some(Bound { place, low: short(low), high: short(high), is_whole })
}

fn divided(index: Index, by: i64) -> Index {
    if by == 1 { index } else { Index::Div(Box::new(index), by) }
}

/// A number where it is one.
fn short(index: Index) -> Index {
    index.number().map_or(index, Index::Num)
}

/// An expression as a multiple of an index and the rest; none if it is not.
fn linear(index: &Index, name: Name) -> Option<(i64, Index)> {
    if !index.mentions(name) {
        return Some((0, index.clone()));
    }
    match index {
        Index::Name(_) => Some((1, Index::Num(0))),
        Index::Add(a, b) => {
            let ((m, a), (n, b)) = (linear(a, name)?, linear(b, name)?);
            Some((m.checked_add(n)?, short(a + b)))
        }
        Index::Sub(a, b) => {
            let ((m, a), (n, b)) = (linear(a, name)?, linear(b, name)?);
            Some((m.checked_sub(n)?, short(a - b)))
        }
        Index::Mul(a, b) => {
            let (factor, other) = match (a.number(), b.number()) {
                (Some(factor), _) => (factor, b),
                (_, Some(factor)) => (factor, a),
                _ => return None,
            };
            let (m, rest) = linear(other, name)?;
            Some((m.checked_mul(factor)?, short(Index::Num(factor) * rest)))
        }
        Index::Num(_) | Index::Div(..) | Index::Mod(..) | Index::Min(..) | Index::Max(..) => None,
    }
}

/// The largest or smallest value of an expression over the ranges of its indices.
fn extreme(index: &Index, resolved: &BTreeMap<Name, Range>, is_most: bool) -> Option<Index> {
    let mut result = index.clone();
    for (name, range) in resolved {
        if !result.mentions(*name) {
            continue;
        }
        let (factor, rest) = linear(&result, *name)?;
        let end = if (factor > 0) == is_most { range.high.clone() - Index::Num(1) } else { range.low.clone() };
        result = short(Index::Num(factor) * end + rest);
    }
    Some(result)
}
