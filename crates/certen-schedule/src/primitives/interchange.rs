//! `interchange`: two loops, one directly inside the other, change places.

use certen_index::{Cond, Ix};
use certen_loops::Stmt;

use super::{Example, Primitive};
use crate::depend::{Part, apart, first, second};
use crate::nest::{Done, Loop, Nest, Place, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "interchange",
    usage: "interchange(outer, inner)",
    about: "The loop `inner` is the only statement of the loop `outer`, and its range does not depend on the index of \
            `outer`. They change places.",
    legal: "No two iterations change places of which one writes what the other one uses: those with a smaller `outer` \
            and a larger `inner`.",
    peers: "Halide and TVM: reorder; Exo: reorder_loops; TeML: interchange; OpenMP 6: interchange",
    example: Example {
        program: "loops turn\nsize m, n\nwhere m >= 0, n >= 0\ninput x : f64[m, n]\noutput y : f64[n, m]\nnest y\n\
                  for i in 0..n {\n    for j in 0..m {\n        y[i, j] = x[j, i]\n    }\n}\n",
        steps: "interchange(i, j)",
    },
    apply: |nest, args| {
        let outer = nest.find(args.path("a loop")?)?;
        let inner = nest.find(args.path("the loop inside of it")?)?;
        args.end()?;
        interchange(nest, &outer, &inner)
    },
};

/// Exchanges the loops at two places; the second is the only statement of the first one's body.
pub(crate) fn interchange(nest: &mut Nest, outer: &Place, inner: &Place) -> Done<()> {
    let (one, two) = (nest.loop_at(outer)?, nest.loop_at(inner)?);
    let (i, j) = (one.index, two.index);
    if !outer.contains(inner) || inner.path.len() != outer.path.len() + 1 {
        let refusal = Refusal::cannot(format!("the loop over {j} is not directly inside the loop over {i}"));
        return Err(refusal.at(outer).at(inner));
    }
    if one.body.len() != 1 {
        let refusal = Refusal::cannot(format!("the loop over {j} is not the only statement of the loop over {i}"));
        return Err(refusal.at(outer).at(inner).help(format!("`fission({i}, {j})` gives it a loop of its own")));
    }
    if two.range.lo.mentions(i) || two.range.hi.mentions(i) {
        let refusal = Refusal::cannot(format!("the range of the loop over {j} depends on {i}"));
        return Err(refusal.at(inner).help(format!("`guard({j})` makes a condition of it")));
    }
    let facts = nest.facts(outer)?;
    let part = Part::of(&nest.program, &two.body);
    let before = Cond::lt(&Ix::var(first(i)), &Ix::var(second(i)))?;
    let after = Cond::lt(&Ix::var(second(j)), &Ix::var(first(j)))?;
    let loops = [(i, one.range.clone()), (j, two.range.clone())];
    let status = apart(&facts, &loops, &part, &part, &before.and(after));
    nest.condition(format!("no iteration with a smaller {i} and a larger {j} uses what another one writes"), status);
    let body: Stmt = Loop { body: two.body, ..one }.into();
    nest.replace(outer, [Loop { body: vec![body], ..two }.into()])
}
