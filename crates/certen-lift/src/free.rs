//! Names in terms: which are mentioned freely, and terms with indices renamed.
//!
//! Core forbids shadowing, so inside one binding a name that is bound in a term is not mentioned freely there. New names
//! are ones that no term of the program binds, so nothing is captured.

use std::collections::BTreeSet;

use certen_core::{Range, ReduceOp, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Ix};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

/// The names that index expressions of a term mention, in the order of their first occurrence, without those that are
/// bound inside: enclosing indices and sizes. None if the term has more than `most` parts; else also how many it has.
pub(crate) fn mentioned(terms: &Terms, root: TermId, most: usize) -> Option<(Vec<Name>, usize)> {
    let parts: Vec<TermId> = terms.reachable([root]).take(most.saturating_add(1)).collect();
    if parts.len() > most {
        return None;
    }
    let (mut order, mut seen, mut bound) = (Vec::new(), FxHashSet::default(), FxHashSet::default());
    for id in &parts {
        let mut add = |names: BTreeSet<Name>| order.extend(names.into_iter().filter(|name| seen.insert(*name)));
        let term = terms.get(*id);
        bound.extend(term.binders());
        match term {
            Term::Reduce(_, _, range, cond, _) => {
                add(names_of_range(range));
                add(names_of_cond(cond));
            }
            Term::Select(_, indices) => indices.iter().for_each(|ix| add(names_of(ix))),
            other => {
                let mut names = BTreeSet::new();
                other.collect_names(&mut names);
                add(names);
            }
        }
    }
    order.retain(|name| !bound.contains(name));
    Some((order, parts.len()))
}

fn names_of(ix: &Ix) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    ix.collect_names(&mut names);
    names
}

fn names_of_cond(cond: &Cond) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    cond.collect_names(&mut names);
    names
}

/// The names that a range mentions.
pub(crate) fn names_of_range(range: &Range) -> BTreeSet<Name> {
    let mut names = names_of(&range.lo);
    range.hi.collect_names(&mut names);
    names
}

/// A term with free indices renamed.
pub(crate) fn rename(terms: &mut Terms, root: TermId, to: &FxHashMap<Name, Name>) -> Result<TermId, TypeError> {
    if to.iter().all(|(old, new)| old == new) {
        return Ok(root);
    }
    let replacement = |name: Name| to.get(&name).map(|new| Ix::var(*new));
    terms.rewrite(root, |terms, _, term| terms.add(term.substitute(&replacement)?))
}

/// Whether every read in a term is plainly inside its tensor: each index is a constant below a constant size, or a name
/// that runs from 0 (or more) to that size. `ranges` gives those of the free indices. Such reads are safe even where the
/// enclosing indices, whose ranges might be empty, are gone.
pub(crate) fn reads_stand_alone(terms: &Terms, root: TermId, ranges: &FxHashMap<Name, Range>) -> bool {
    let parts: Vec<TermId> = terms.reachable([root]).collect();
    let mut ranges: FxHashMap<Name, &Range> = ranges.iter().map(|(name, range)| (*name, range)).collect();
    for id in &parts {
        if let Term::Gen(name, range, _) | Term::Reduce(_, name, range, ..) = terms.get(*id) {
            ranges.insert(*name, range);
        }
    }
    let inside = |ix: &Ix, size: &Ix| {
        if let (Some(value), Some(size)) = (ix.as_constant(), size.as_constant()) {
            return (0..size).contains(&value);
        }
        let range = ix.as_var().and_then(|name| ranges.get(&name));
        range.is_some_and(|range| range.hi == *size && range.lo.as_constant().is_some_and(|lo| lo >= 0))
    };
    parts.iter().all(|id| match terms.get(*id) {
        Term::Select(tensor, indices) => {
            let shape = &terms.ty(*tensor).shape;
            indices.iter().zip(shape.iter()).all(|(ix, size)| inside(ix, size))
        }
        // These have no value over an empty range.
        Term::Reduce(ReduceOp::Min | ReduceOp::Max, ..) => false,
        _ => true,
    })
}
