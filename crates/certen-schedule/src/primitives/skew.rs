//! `skew`: the index of an inner loop runs ahead of itself by a multiple of the outer one.

use certen_core::Range;
use certen_index::{Bound, Ix};

use super::{Example, Primitive};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::Place;
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "skew",
    usage: "skew(outer, inner, factor)",
    about: "In the loop `outer`, the index of the loop `inner` begins and ends `factor * outer` later, and is used \
            without that. What an iteration needs of earlier iterations of `outer` then comes before it in `inner` too, so \
            that the loops can be exchanged: the wavefront of a stencil over time. To cut both into blocks, `guard(inner)` \
            first makes the range of `inner` the same for all of `outer`.",
    legal: "Always: the iterations are the same, in the same order, under other names.",
    peers: "Pluto and isl: skewing; Halide, TVM and Exo have none",
    example: Example {
        program: "loops waves\nsize m, n\nwhere m >= 0, n >= 2\ninput x : f64[n]\noutput y : f64[m + 1, n]\nnest y\n\
                  for i in 0..n {\n    y[0, i] = x[i]\n}\n\
                  for t in 0..m {\n    y[t + 1, 0] = x[0]\n    y[t + 1, n - 1] = x[n - 1]\n    for j in 1..n - 1 {\n        \
                  y[t + 1, j] = y[t, j - 1] + y[t, j + 1]\n    }\n}\n",
        steps: "skew(t, j, 1)",
    },
    apply: |nest, args| {
        let outer = nest.find(args.path("a loop")?)?;
        let inner = nest.find(args.path("a loop inside it")?)?;
        let (factor, _) = args.int("a factor")?;
        args.end()?;
        skew(nest, &outer, &inner, factor)
    },
};

/// Bounds whose factors sum up to more are refused: with large sizes, indices would not fit in 64 bits.
const MAX_WEIGHT: f64 = 1e6;

/// The value of an expression if all its names and terms had the magnitude of their factors.
fn weight(ix: &Ix) -> f64 {
    ix.bound(&|_| Bound::number(1)).products().map(|(_, factor)| factor).sum()
}

/// Skews the loop at the second place by the one at the first.
pub(crate) fn skew(nest: &mut Nest, outer: &Place, inner: &Place, factor: i64) -> Done<()> {
    let (one, mut two) = (nest.loop_at(outer)?, nest.loop_at(inner)?);
    if !outer.contains(inner) {
        let (one, two) = nest.called_both(outer, inner);
        let refusal = Refusal::cannot(format!("{two} is not inside {one}"));
        return Err(refusal.at(outer).at(inner));
    }
    if factor == 0 {
        return Err(Refusal::cannot("a factor of 0 changes nothing").help("`skew(t, j, 1)` moves j by 1 for each t"));
    }
    let ahead = Ix::var(one.index).scale(factor)?;
    let edit = Edit::index(two.index, Ix::var(two.index).sub(&ahead)?);
    two.range = Range { lo: two.range.lo.add(&ahead)?, hi: two.range.hi.add(&ahead)? };
    if weight(&two.range.lo) > MAX_WEIGHT || weight(&two.range.hi) > MAX_WEIGHT {
        let refusal = Refusal::cannot(format!("a factor of {factor} makes the indices of the inner loop too large"));
        return Err(refusal.at(inner));
    }
    two.body = edit.block(&mut nest.program, &two.body)?;
    nest.replace(inner, [two.into()])
}
