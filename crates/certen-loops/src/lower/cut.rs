//! Loops cut where a condition changes: generators made disjoint.
//!
//! A comprehension with several partitions, a boundary beside an interior, is one generation around a chain of `if`s on
//! its indices. A loop with a condition in it would ask for each element; instead its range is cut where the condition
//! changes, and each piece knows the answer. The pieces are disjoint and cover the range for all sizes, also those at
//! which the partitions would overlap or change places: a cut is clamped to the range that it cuts.
//!
//! Only conditions that decide *what is stored* cut (those of `if` and `guard` around a scalar or tensor, not those
//! inside scalar operations), and only where they are linear in the loop's own index and speak of nothing further in. The
//! equations and alternatives of a border cut too, as in `i == 0 || i == n - 1`: before and after each.
//! A cut is a proposal: that a piece knows the answer is proved, like anything else, from the facts of its block.

use std::collections::BTreeSet;

use certen_core::{Range, Term, TermId, Terms};
use certen_index::{Cond, Ix, IxError, Verdict};
use certen_syntax::Name;

use super::{Env, Lowered, Lowering, bad_index};

/// The most cuts of one loop, and of all loops of a binding: pieces of loops inside each other multiply.
pub(super) const MAX_CUTS: usize = 6;
pub(super) const MAX_CUTS_OF_BINDING: usize = 48;

/// The most terms that are looked at for a cut, and the most parts of a condition.
const MAX_LOOKS: usize = 64;
const MAX_PARTS: usize = 16;

impl Lowering<'_> {
    /// Where the range of an index, whose loop is open, should be cut for the conditions on what its body stores; the
    /// two pieces. Nothing if there is no such condition.
    ///
    /// The first piece never ends after the range; with `stated`, it says so, for proofs about products.
    pub(super) fn cut(
        &self,
        body: TermId,
        env: Env,
        index: Name,
        range: &Range,
        stated: bool,
    ) -> Lowered<Option<[Range; 2]>> {
        let Some(point) = self.cut_point(body, env, index)? else { return Ok(None) };
        // What is known inside the loop does not hold where its bounds are computed.
        let facts = self.facts_outside();
        let clamped = || {
            let at = point.max_with(&range.lo)?.simplified(&facts)?.min_with(&range.hi)?;
            if stated { Ok(at) } else { at.simplified(&facts) }
        };
        // A bound that does not fit in 64 bits is none.
        let Ok::<Ix, IxError>(at) = clamped() else { return Ok(None) };
        Ok(Some([Range { lo: range.lo.clone(), hi: at.clone() }, Range { lo: at, hi: range.hi.clone() }]))
    }

    fn cut_point(&self, body: TermId, env: Env, index: Name) -> Lowered<Option<Ix>> {
        let mut inner: Vec<Name> = Vec::new();
        let mut todo = vec![body];
        for _ in 0..MAX_LOOKS {
            let Some(id) = todo.pop() else { break };
            let (cond, branches) = match self.term(id) {
                Term::Gen(name, _, a) => {
                    inner.push(*name);
                    todo.push(*a);
                    continue;
                }
                Term::Concat(a, b) => {
                    todo.extend([*b, *a]);
                    continue;
                }
                Term::Guard(cond, a) => (cond, [Some(*a), None]),
                Term::If(cond, a, b) => (cond, [Some(*a), Some(*b)]),
                other => {
                    todo.extend(moved(other));
                    continue;
                }
            };
            let cond = self.cond(env, cond)?;
            match self.decided(&cond)? {
                Some(true) => todo.extend(branches[0]),
                Some(false) => todo.extend(branches[1]),
                None => {
                    let mut parts = Vec::new();
                    let whole = self.combines[id.index()];
                    inequalities(&cond, &|e| !whole && self.is_border(e, index), &mut parts);
                    for part in parts.iter().take(MAX_PARTS) {
                        if let Some(point) = change(part, index, &inner)
                            && self.decided(part)?.is_none()
                        {
                            return Ok(Some(point));
                        }
                    }
                    todo.extend(branches.into_iter().rev().flatten());
                }
            }
        }
        Ok(None)
    }

    /// Whether an expression speaks of an index and of sizes alone. A diagonal does not: it is cheaper to store it over the
    /// rest, which a schedule does.
    fn is_border(&self, e: &Ix, index: Name) -> bool {
        let mut names = BTreeSet::new();
        e.collect_names(&mut names);
        names.iter().all(|name| *name == index || self.program.sizes.contains(name))
    }

    /// Whether a condition is shown to hold, or not to hold, where the innermost block is.
    pub(super) fn decided(&self, cond: &Cond) -> Lowered<Option<bool>> {
        if self.prove(cond) == Verdict::Yes {
            return Ok(Some(true));
        }
        Ok((self.prove(&cond.not().map_err(bad_index)?) == Verdict::Yes).then_some(false))
    }
}

/// What an operator stores in other places.
fn moved(term: &Term) -> Option<TermId> {
    match term {
        Term::Let(_, _, a)
        | Term::Flatten(a)
        | Term::Transpose(a)
        | Term::Split(_, a)
        | Term::PadLeft(_, a)
        | Term::PadRight(_, a)
        | Term::TruncLeft(_, a)
        | Term::TruncRight(_, a) => Some(*a),
        _ => None,
    }
}

/// For each term, whether a condition decides what of it is stored: not those inside scalar operations.
pub(super) fn chooses(terms: &Terms) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(terms.len());
    for (_, term) in terms.iter() {
        let of = |part: &TermId| found[part.index()];
        let chooses = match term {
            Term::Guard(..) | Term::If(..) => true,
            Term::Concat(a, b) => of(a) || of(b),
            Term::Gen(_, _, a) => of(a),
            other => moved(other).is_some_and(|a| of(&a)),
        };
        found.push(chooses);
    }
    found
}

/// The inequalities that cut for a condition: those that have to hold together, and of alternatives and equations, which
/// are two each, those of a border.
fn inequalities(cond: &Cond, is_border: &dyn Fn(&Ix) -> bool, found: &mut Vec<Cond>) {
    match cond {
        Cond::And(all) => all.iter().for_each(|part| inequalities(part, is_border, found)),
        Cond::Ge(_) => found.push(cond.clone()),
        Cond::Eq(e) if is_border(e) => found.extend(std::iter::once(e.clone()).chain(e.scale(-1)).map(Cond::Ge)),
        Cond::Eq(_) => {}
        Cond::Or(any) => {
            let mut parts = Vec::new();
            any.iter().for_each(|part| inequalities(part, is_border, &mut parts));
            found.extend(parts.into_iter().filter(|part| matches!(part, Cond::Ge(e) if is_border(e))));
        }
    }
}

/// For each term, whether something in it is combined: sums are tiled by schedules, which take them whole.
pub(super) fn combines(terms: &Terms) -> Vec<bool> {
    terms.having(|term| matches!(term, Term::Reduce(..) | Term::Iterate(..)))
}

/// The conditions that have to hold together for one to hold.
pub fn conjuncts(cond: &Cond) -> &[Cond] {
    match cond {
        Cond::And(all) => all,
        other => std::slice::from_ref(other),
    }
}

/// The first value of an index from which on an inequality has another truth value, if it changes once and does not
/// depend on names further in.
pub fn change(cond: &Cond, index: Name, inner: &[Name]) -> Option<Ix> {
    let Cond::Ge(e) = cond else { return None };
    if inner.iter().any(|name| e.mentions(*name)) {
        return None;
    }
    let i = Ix::var(index);
    let next = i.add(&Ix::from(1)).ok()?;
    let moved = e.substitute(&|name| (name == index).then(|| next.clone())).ok()?;
    let step = moved.sub(e).ok()?.as_constant().filter(|step| *step != 0 && *step != i64::MIN)?;
    let rest = e.sub(&i.scale(step).ok()?).ok()?;
    if rest.mentions(index) {
        return None;
    }
    // step*i + rest >= 0, from ceil(-rest/step) on or up to floor(rest/-step).
    let point = match step {
        1.. => rest.scale(-1).ok()?.ceil_div(step).ok()?,
        _ => rest.floor_div(-step).ok()?.add(&Ix::from(1)).ok()?,
    };
    // Nothing is so large; proofs about such numbers overflow.
    point.as_constant().is_none_or(|point| point.unsigned_abs() < 1 << 53).then_some(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_changes_at_one_value() {
        let (i, j, n) = (Ix::var("i"), Ix::var("j"), Ix::var("n"));
        let change = |cond: Cond| change(&cond, "i".into(), &["j".into()]).map(|point| point.to_string());
        let cond = |a: &Ix, b: &Ix| Cond::lt(a, b).expect("small");
        assert_eq!(change(cond(&i, &n)).as_deref(), Some("n"));
        assert_eq!(change(cond(&n, &i)).as_deref(), Some("n + 1"));
        assert_eq!(change(cond(&i.scale(2).expect("small"), &n)).as_deref(), Some("floor_div(n + 1, 2)"));
        assert_eq!(change(cond(&i, &j)), None);
        assert_eq!(change(cond(&n, &Ix::from(3))), None);
        assert_eq!(change(cond(&i.mul(&i).expect("small"), &n)), None);
        assert_eq!(change(cond(&i.floor_div(2).expect("small"), &n)), None);
    }
}
