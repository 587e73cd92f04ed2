//! `unroll`: the iterations of a loop, one after the other.

use std::collections::HashSet;

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_loops::{Stmt, statements};
use certen_syntax::Name;

use super::peel::{Pieces, Rest, cut, simplified};
use super::split::split;
use super::{Example, Primitive};
use crate::edit::Edit;
use crate::nest::{MOST_STATEMENTS, Nest};
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "unroll",
    usage: "unroll(loop) or unroll(loop, count)",
    about: "The loop is replaced by its iterations; their number is known, or at least its largest value: then each has \
            a condition. With `count`, the loop `i` becomes a loop `i.o` whose body has `count` iterations, and \
            `i.o.tail` with those that are left. Loops inside get `.u0`, `.u1`, … after their names.",
    legal: "Always: the iterations are the same, in the same order.",
    peers: "Halide, TVM, TeML: unroll; Exo: unroll_loop; OpenMP: unroll full, unroll partial",
    example: Example {
        program: "loops scale\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
                  for i in 0..n {\n    y[i] = 2.0 * x[i]\n}\n",
        steps: "unroll(i, 2)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        if args.left() == 0 {
            return unroll(nest, &place);
        }
        let count = args.at_least(1, "the number of iterations")?;
        args.end()?;
        partly(nest, &place, count)
    },
};

/// Splits a loop into blocks of `size` iterations that are full, and the others. Gives the place of the loop over full
/// blocks, if there can be one, whose only statement is the loop over a block.
pub(crate) fn full_blocks(nest: &mut Nest, place: &Place, size: i64) -> Done<Pieces> {
    let Range { lo, hi } = nest.loop_at(place)?.range;
    split(nest, place, size)?;
    cut(nest, place, hi.sub(&lo)?.floor_div(size)?, Rest::Tail)
}

/// Unrolls the loop at a place by a number.
pub(crate) fn partly(nest: &mut Nest, place: &Place, count: i64) -> Done<()> {
    room(nest, place, count)?;
    match full_blocks(nest, place, count)?.main {
        Some(main) => unroll(nest, &main.inside(0)),
        None => Ok(()),
    }
}

/// Refuses to make too many statements of the loop at a place.
pub(crate) fn room(nest: &Nest, place: &Place, count: i64) -> Done<()> {
    let Loop { index, body, .. } = nest.loop_at(place)?;
    let size = statements(&body).count();
    if usize::try_from(count).ok().and_then(|count| count.checked_mul(size)).is_none_or(|all| all > MOST_STATEMENTS) {
        let refusal = Refusal::cannot(format!(
            "{count} iterations of {size} statements are too many: there can be {MOST_STATEMENTS} statements"
        ));
        return Err(refusal.at(place).help(format!("`unroll({index}, 4)` unrolls in part")));
    }
    Ok(())
}

/// Unrolls the loop at a place.
pub(crate) fn unroll(nest: &mut Nest, place: &Place) -> Done<()> {
    let found = nest.loop_at(place)?;
    let facts = nest.facts(place)?;
    let (index, range) = (found.index, &found.range);
    let Some(most) = most_trips(&found)? else {
        let refusal =
            Refusal::cannot(format!("the number of iterations of the loop over {index} is not a number")).at(place);
        let trips = range.hi.sub(&range.lo)?;
        return Err(refusal
            .note(format!("it is {trips}"))
            .help(format!("`unroll({index}, 4)` makes a loop over four iterations at a time")));
    };
    room(nest, place, most)?;
    let mut taken: HashSet<Name> = nest.taken();
    let mut out = Vec::new();
    for number in 0..most {
        let at = range.lo.add(&Ix::from(number))?;
        let runs = below(&facts, &at, &range.hi)?;
        let copy = nest.copy_beside(&found.body, &format!("u{number}"), Edit::index(index, at), &mut taken)?;
        let copy = simplified(&copy, &facts, index)?;
        if runs.is_always() {
            out.extend(copy);
        } else {
            out.push(Stmt::If { cond: runs, then: copy, otherwise: Vec::new() });
        }
    }
    nest.replace(place, out)
}

/// That an index is below the end of a range: below each part of a minimum for which that is not known.
fn below(facts: &Facts, at: &Ix, end: &Ix) -> Done<Cond> {
    let mut cond = Cond::always();
    for part in end.smallest_of()? {
        let below = Cond::lt(at, &part)?;
        if facts.prove(&below) != Verdict::Yes {
            cond = cond.and(below);
        }
    }
    Ok(cond)
}

/// How many iterations a loop has at most, if there is a number that says so.
fn most_trips(found: &Loop) -> Done<Option<i64>> {
    let trips = found.range.hi.sub(&found.range.lo)?.smallest_of()?;
    Ok(trips.iter().filter_map(Ix::as_constant).min().map(|most| most.max(0)))
}
