//! `collapse`: two loops inside each other become one.

use certen_loops::Stmt;

use super::{Example, Primitive};
use crate::collapse::collapsed;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "collapse",
    usage: "collapse(outer, inner)",
    about: "The loops `i` and `j`, one inside the other, become one loop `i.j` over all pairs of their indices. Where rows \
            lie beside each other in memory, it runs over all of their elements, and vectors can be longer than a row.",
    legal: "Always: the iterations are the same, in the same order. The number of iterations of `inner` has to be a number, and \
            `inner` the only statement of `outer`.",
    peers: "Halide and TVM: fuse; OpenMP: collapse; Exo: mult_loops",
    example: Example {
        program: "loops scale\nsize n\nwhere n >= 0\ninput x : f64[n, 3]\noutput y : f64[n, 3]\nnest y\n\
                  for i in 0..n {\n    for j in 0..3 {\n        y[i, j] = 2.0 * x[i, j]\n    }\n}\n",
        steps: "collapse(i, j)",
    },
    apply: |nest, args| {
        let outer = nest.find(args.path("a loop")?)?;
        let inner = nest.find(args.path("the loop inside it")?)?;
        args.end()?;
        let (outer, inner) = if inner.contains(&outer) { (inner, outer) } else { (outer, inner) };
        collapse(nest, &outer, &inner)
    },
};

fn collapse(nest: &mut Nest, outer: &Place, inner: &Place) -> Done<()> {
    let (one, two) = (nest.loop_at(outer)?, nest.loop_at(inner)?);
    let is_alone = matches!(one.body.as_slice(), [Stmt::For { .. }]) && *inner == outer.inside(0);
    if !is_alone {
        let message = format!("the loop over {} is not all that the loop over {} does", two.index, one.index);
        return Err(Refusal::cannot(message).at(outer).at(inner).help("`fission` gives it a loop of its own"));
    }
    let depends = two.range.lo.mentions(one.index) || two.range.hi.mentions(one.index);
    if depends || two.trips().is_none_or(|trips| trips == 0) {
        let message = format!("the number of iterations of the loop over {} is not a number above 0", two.index);
        let refusal = Refusal::cannot(message).at(inner);
        let help = || format!("`split({}, 4)` gives a loop inside it that has, but for the last block", two.index);
        return Err(if depends { refusal } else { refusal.help(help()) });
    }
    let index = nest.piece(one.index, two.index.as_str());
    let both = collapsed(&mut nest.program, &one, &two, index)?;
    let mode = if one.mode == two.mode { one.mode } else { both.mode };
    nest.replace(outer, [Loop { mode, ..both }.into()])
}
