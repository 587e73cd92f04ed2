//! Names in terms: which are mentioned freely, and terms with indices renamed.
//!
//! Core forbids shadowing, so inside one binding a name that is bound in a term is not mentioned freely there. New names
//! are ones that no term of the program binds, so nothing is captured.

use std::collections::BTreeSet;

use certen_core::{Carried, Range, ReduceOp, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

/// A term and everything in it, wholes before parts and left before right; none if there are more than `most`.
fn reachable(terms: &Terms, root: TermId, most: usize) -> Option<Vec<TermId>> {
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        if !seen.insert(id) {
            continue;
        }
        if found.len() == most {
            return None;
        }
        found.push(id);
        todo.extend(terms.get(id).parts().into_iter().rev());
    }
    Some(found)
}

/// The names that index expressions of a term mention, in the order of their first occurrence, without those that are
/// bound inside: enclosing indices and sizes. None if the term has more than `most` parts; else also how many it has.
pub(crate) fn mentioned(terms: &Terms, root: TermId, most: usize) -> Option<(Vec<Name>, usize)> {
    let parts = reachable(terms, root, most)?;
    let (mut order, mut seen, mut bound) = (Vec::new(), FxHashSet::default(), FxHashSet::default());
    for id in &parts {
        let mut add = |names: BTreeSet<Name>| order.extend(names.into_iter().filter(|name| seen.insert(*name)));
        match terms.get(*id) {
            Term::Gen(name, range, _) => {
                bound.insert(*name);
                add(names_of_range(range));
            }
            Term::Reduce(_, name, range, cond, _) => {
                bound.insert(*name);
                add(names_of_range(range));
                add(names_of_cond(cond));
            }
            Term::Guard(cond, _) | Term::If(cond, ..) => add(names_of_cond(cond)),
            Term::Select(_, indices) => indices.iter().for_each(|ix| add(names_of(ix))),
            Term::Iterate(times, step, ..) => {
                bound.insert(*step);
                add(names_of(times));
            }
            Term::Index(ix, _)
            | Term::PadLeft(ix, _)
            | Term::PadRight(ix, _)
            | Term::TruncLeft(ix, _)
            | Term::TruncRight(ix, _) => add(names_of(ix)),
            _ => {}
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
    let mut parts = reachable(terms, root, usize::MAX).unwrap_or_default();
    // Parts stand before wholes in the arena.
    parts.sort_unstable();
    let mut renamed: FxHashMap<TermId, TermId> = FxHashMap::default();
    for id in parts {
        let of = |part: &TermId| renamed[part];
        let term = match terms.get(id) {
            Term::Gen(name, range, body) => Term::Gen(*name, renamed_range(range, to)?, of(body)),
            Term::Reduce(op, name, range, cond, body) => {
                Term::Reduce(*op, *name, renamed_range(range, to)?, renamed_cond(cond, to)?, of(body))
            }
            Term::Guard(cond, body) => Term::Guard(renamed_cond(cond, to)?, of(body)),
            Term::If(cond, a, b) => Term::If(renamed_cond(cond, to)?, of(a), of(b)),
            Term::Select(tensor, indices) => {
                let indices = indices.iter().map(|ix| renamed_ix(ix, to)).collect::<Result<_, _>>()?;
                Term::Select(of(tensor), indices)
            }
            Term::Index(ix, elem) => Term::Index(renamed_ix(ix, to)?, *elem),
            Term::PadLeft(ix, a) => Term::PadLeft(renamed_ix(ix, to)?, of(a)),
            Term::PadRight(ix, a) => Term::PadRight(renamed_ix(ix, to)?, of(a)),
            Term::TruncLeft(ix, a) => Term::TruncLeft(renamed_ix(ix, to)?, of(a)),
            Term::TruncRight(ix, a) => Term::TruncRight(renamed_ix(ix, to)?, of(a)),
            Term::Iterate(times, step, states, at) => {
                let state = |s: &Carried| Carried { name: s.name, init: of(&s.init), next: of(&s.next) };
                Term::Iterate(renamed_ix(times, to)?, *step, states.iter().map(state).collect(), *at)
            }
            other => with_parts(other, &of),
        };
        let new = terms.add(term)?;
        renamed.insert(id, new);
    }
    Ok(renamed[&root])
}

/// A term without index expressions, with other parts.
fn with_parts(term: &Term, of: &impl Fn(&TermId) -> TermId) -> Term {
    match term {
        Term::Let(name, value, body) => Term::Let(*name, of(value), of(body)),
        Term::Flatten(a) => Term::Flatten(of(a)),
        Term::Split(k, a) => Term::Split(*k, of(a)),
        Term::Transpose(a) => Term::Transpose(of(a)),
        Term::Concat(a, b) => Term::Concat(of(a), of(b)),
        other => with_operands(other, of).unwrap_or_else(|| other.clone()),
    }
}

/// A scalar operation with other operands; none if the term is something else.
pub(crate) fn with_operands(term: &Term, of: &impl Fn(&TermId) -> TermId) -> Option<Term> {
    Some(match term {
        Term::Unary(op, a) => Term::Unary(*op, of(a)),
        Term::Binary(op, a, b) => Term::Binary(*op, of(a), of(b)),
        Term::Choose(c, a, b) => Term::Choose(of(c), of(a), of(b)),
        Term::Fma(a, b, c) => Term::Fma(of(a), of(b), of(c)),
        Term::Cast(elem, a) => Term::Cast(*elem, of(a)),
        _ => return None,
    })
}

fn renamed_ix(ix: &Ix, to: &FxHashMap<Name, Name>) -> Result<Ix, IxError> {
    match ix.as_var() {
        Some(name) => Ok(to.get(&name).map_or_else(|| ix.clone(), |new| Ix::var(*new))),
        None => ix.substitute(&|name| to.get(&name).map(|new| Ix::var(*new))),
    }
}

fn renamed_cond(cond: &Cond, to: &FxHashMap<Name, Name>) -> Result<Cond, IxError> {
    if cond.is_always() { Ok(Cond::always()) } else { cond.substitute(&|name| to.get(&name).map(|new| Ix::var(*new))) }
}

fn renamed_range(range: &Range, to: &FxHashMap<Name, Name>) -> Result<Range, IxError> {
    Ok(Range { lo: renamed_ix(&range.lo, to)?, hi: renamed_ix(&range.hi, to)? })
}

/// Whether every read in a term is plainly inside its tensor: each index is a constant below a constant size, or a name
/// that runs from 0 (or more) to that size. `ranges` gives those of the free indices. Such reads are safe even where the
/// enclosing indices, whose ranges might be empty, are gone.
pub(crate) fn reads_stand_alone(terms: &Terms, root: TermId, ranges: &FxHashMap<Name, Range>) -> bool {
    let Some(parts) = reachable(terms, root, usize::MAX) else { return false };
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
