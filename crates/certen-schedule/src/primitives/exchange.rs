//! Two neighbouring loops exchanged: what `interchange` and `reorder` are made of.

use certen_index::{Cond, Ix, Status};
use certen_loops::{Mode, Stmt};

use super::fission::fission;
use super::guard::guard_from;
use crate::bounds::turned;
use crate::depend::{Footprint, apart, first, independent, second};
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

/// Two loops that have changed places.
pub(crate) struct Exchanged {
    pub outer: Place,
    pub inner: Place,
    /// How many conditions stand around the body of the inner one now.
    pub conditions: usize,
    /// Whether the range of one was solved for the index of the other.
    pub solved: bool,
}

/// Exchanges the loops at two places, the second inside the first with no other loop in between. A range of the inner one
/// that depends on the outer index is solved for it, or becomes a condition.
pub(crate) fn exchange(nest: &mut Nest, outer: &Place, inner: &Place, solve: bool) -> Done<Exchanged> {
    let (outer, inner) = fission(nest, outer, inner)?;
    let one = nest.loop_at(&outer)?;
    let mut conds = Cond::always();
    for depth in outer.path.len() + 1..inner.path.len() {
        let between = inner.at_depth(depth);
        match nest.stmt(&between) {
            Some(Stmt::If { cond, otherwise, .. }) if otherwise.is_empty() => conds = conds.and(cond.clone()),
            _ => return Err(Refusal::cannot("another loop stands between the two").at(&between)),
        }
    }
    let facts = nest.facts(&outer)?;
    let mut two = nest.loop_at(&inner)?;
    let mut wrapped = 0;
    let depends = two.range.lo.mentions(one.index) || two.range.hi.mentions(one.index);
    let ranges = match turned(&facts, &one, &two)? {
        Some(ranges) if solve || !depends => ranges,
        _ => {
            guard_from(nest, &inner, &[(one.index, one.range.clone())])?;
            let guarded = nest.loop_at(&inner)?;
            wrapped += usize::from(guarded.body != two.body);
            two = guarded;
            (two.range.clone(), one.range.clone())
        }
    };
    let (i, j) = (one.index, two.index);
    let mut body = two.body.clone();
    if !conds.is_always() {
        body = vec![Stmt::If { cond: conds, then: body, otherwise: Vec::new() }];
        wrapped += 1;
    }
    let part = nest.ordered(Footprint::of(&nest.program, &body));
    let before = Cond::lt(&Ix::var(first(i)), &Ix::var(second(i)))?;
    let after = Cond::lt(&Ix::var(second(j)), &Ix::var(first(j)))?;
    let loops = [(i, one.range.clone()), (j, two.range.clone())];
    let status = apart(&facts, &loops, &part, &part, &before.and(after));
    nest.condition(format!("no iteration with a smaller {i} and a larger {j} uses what another one writes"), status);
    let new_inner: Stmt = Loop { range: ranges.1, body, ..one }.into();
    let mut new_outer = Loop { range: ranges.0, body: vec![new_inner], ..two };
    if new_outer.mode != Mode::Serial {
        // Its iterations were independent inside each iteration of the other loop.
        let part = Footprint::of(&nest.program, &new_outer.body);
        if !matches!(independent(&facts, j, &new_outer.range, part), Status::Proved(_)) {
            new_outer.mode = Mode::Serial;
        }
    }
    nest.replace(&outer, [new_outer.into()])?;
    let inner = outer.inside(0);
    Ok(Exchanged { outer, inner, conditions: wrapped, solved: depends && solve })
}
