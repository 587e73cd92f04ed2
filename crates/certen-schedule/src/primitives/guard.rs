//! `guard`: a bound of a loop that changes with other loops, or is a minimum, becomes a condition.
//!
//! The new bound is the part of a minimum that is a number, or does not change with other loops; else the largest value
//! over the ranges of the loops around.

use certen_core::Range;
use certen_loops::Stmt;
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::bounds::{conditions, loosened};
use crate::nest::Nest;
use crate::place::Place;
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "guard",
    usage: "guard(loop)",
    about: "Where a bound of the loop depends on the indices of other loops, or is the smaller of two, the loop runs \
            further and a condition skips what is too much. So blocks at the end of a range get the same number of \
            iterations as all others. Nothing happens where the bounds are plain.",
    legal: "Always: the iterations are the same, in the same order.",
    peers: "Halide: TailStrategy::GuardWithIf; TVM: the condition that split makes; Exo: divide_loop with tail='guard'",
    example: Example {
        program: "loops scale\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
                  for i in 0..n {\n    y[i] = 2.0 * x[i]\n}\n",
        steps: "split(i, 32); guard(i.i)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        args.end()?;
        guard(nest, &place)
    },
};

/// Makes a condition of the bounds of the loop at a place, where they change with the loops around it.
pub(crate) fn guard(nest: &mut Nest, place: &Place) -> Done<()> {
    let around: Vec<(Name, Range)> = nest.loops_around(place).into_iter().map(|(_, l)| (l.index, l.range)).collect();
    guard_from(nest, place, &around)
}

/// The same, where they change with some of the loops around it, which are given outermost first.
pub(crate) fn guard_from(nest: &mut Nest, place: &Place, around: &[(Name, Range)]) -> Done<()> {
    let mut found = nest.loop_at(place)?;
    let mut facts = nest.facts(place)?;
    let mut left = [Vec::new(), Vec::new()];
    for (upper, left) in left.iter_mut().enumerate() {
        let bound = if upper == 1 { &mut found.range.hi } else { &mut found.range.lo };
        match loosened(&facts, around, bound, upper == 1)? {
            Some((new, parts)) => (*bound, *left) = (new, parts),
            None => {
                if let Some((index, _)) = around.iter().find(|(index, _)| bound.mentions(*index)) {
                    let refusal =
                        Refusal::cannot(format!("no bound of the loop over {} is known without {index}", found.index));
                    return Err(refusal.at(place).note(format!("its bound is {bound}")));
                }
            }
        }
    }
    facts.assume(found.bounds()?);
    let [lower, upper] = left;
    let cond = conditions(&facts, found.index, &lower, &upper)?;
    if !cond.is_always() {
        found.body = vec![Stmt::If { cond, then: found.body, otherwise: Vec::new() }];
    }
    nest.replace(place, [found.into()])
}
