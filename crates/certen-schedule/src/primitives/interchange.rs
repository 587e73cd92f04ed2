//! `interchange`: two loops, one inside the other, change places.
//!
//! Loops in between keep theirs. Where the inner loop is not the only statement of the outer one, [`fission`] makes it
//! so; conditions in between move inside. A range of the inner loop that depends on the outer index is solved for that
//! index (the triangle `j <= i` is the triangle `i >= j`), or becomes a condition.

use super::reorder::reorder;
use super::{Example, Primitive};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "interchange",
    usage: "interchange(outer, inner)",
    about: "The loops `outer` and `inner`, one inside the other, change places; loops in between keep theirs. Where \
            `inner` is not the only statement of the loop around it, it gets one of its own first, as by `fission`. A \
            range of `inner` that depends on the index of `outer` is turned round with it. If `inner` is parallel or \
            vector, it stays so where its iterations are still independent.",
    legal: "No two iterations change places of which one writes what the other one uses: those with a smaller `outer` \
            and a larger `inner`. And what `fission` needs.",
    peers: "Halide and TVM: reorder; Exo: reorder_loops; TeML: interchange; OpenMP 6: interchange",
    example: Example {
        program: "loops turn\nsize m, n\nwhere m >= 0, n >= 0\ninput x : f64[m, n]\noutput y : f64[n, m]\nnest y\n\
                  for i in 0..n {\n    for j in 0..m {\n        y[i, j] = x[j, i]\n    }\n}\n",
        steps: "interchange(i, j)",
    },
    apply: |nest, args| {
        let outer = nest.find(args.path("a loop")?)?;
        let inner = nest.find(args.path("the loop inside it")?)?;
        args.end()?;
        let (outer, inner) = if inner.contains(&outer) { (inner, outer) } else { (outer, inner) };
        reorder(nest, &[inner, outer])
    },
};
