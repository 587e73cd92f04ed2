//! `join_sums`: a sum of sums becomes one sum.
//!
//! A sum over several indices has a local for each level, and each inner sum begins at 0 and is added to the one around
//! it. With one local for all of them, the terms are added in the same order to one sum, which a tile can keep in a
//! register; nothing but the terms is left in the loops.

use certen_core::{Literal, ReduceOp, Term};
use certen_loops::{Stmt, Target, statements};
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "join_sums",
    usage: "join_sums(loop)",
    about: "A loop that adds up inner sums, each in a local that begins at 0: their terms are added to the outer sum, one \
            after the other.",
    legal: "Always: over real numbers nothing changes. Floats are rounded otherwise, as with another order of a sum.",
    peers: "TACO: one workspace less; Halide and TVM write a reduction over several indices so",
    example: Example {
        program: "loops total\nsize m, n\nwhere m >= 0, n >= 0\ninput x : f64[m, n]\noutput s : f64[]\nnest s\n\
                  local acc : f64 = 0.0\nfor i in 0..m {\n    local acc_1 : f64 = 0.0\n    for j in 0..n {\n        \
                  acc_1 += x[i, j]\n    }\n    acc += acc_1\n}\ns = acc\n",
        steps: "join_sums(i)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        args.end()?;
        join_sums(nest, &place)
    },
};

/// Joins the sums that the loop at a place adds up with their sum.
fn join_sums(nest: &mut Nest, place: &Place) -> Done<()> {
    let found = nest.loop_at(place)?;
    let cannot = || {
        let refusal = Refusal::cannot(format!("the loop over {} does not only add up sums", found.index)).at(place);
        refusal.note("its body has to be a local that begins at 0, a loop that adds to it, and its addition to another")
    };
    let terms = &nest.program.terms;
    let [
        Stmt::Local { name: inner, elem, init: Some(zero) },
        Stmt::For { .. },
        Stmt::Assign { target: Target::Local(outer), op: Some(ReduceOp::Sum), value },
    ] = found.body.as_slice()
    else {
        return Err(cannot());
    };
    let is_zero = matches!(terms.get(*zero), Term::Literal(literal, elem) if *literal == Literal::whole(0, *elem));
    let is_inner = matches!(terms.get(*value), Term::Ref(name, _) if name == inner);
    let only_adds = statements(&found.body[1..2]).all(|stmt| match stmt {
        Stmt::For { .. } | Stmt::If { .. } | Stmt::Nest(_) => true,
        Stmt::Assign { target: Target::Local(to), op: Some(ReduceOp::Sum), value } => {
            to == inner && !reads(nest, *value, *inner) && !reads(nest, *value, *outer)
        }
        _ => false,
    });
    if !is_zero || !is_inner || !only_adds {
        return Err(cannot());
    }
    if nest.strict && elem.is_float() {
        let refusal = Refusal::cannot("terms would be added to another sum");
        return Err(refusal.note("every operation has to be made as written: floating point is strict"));
    }
    let mut body = vec![found.body[1].clone()];
    certen_loops::for_each_mut(&mut body, |stmt| {
        if let Stmt::Assign { target: Target::Local(to), .. } = stmt {
            *to = *outer;
        }
    });
    nest.replace(place, [Loop { body, ..found }.into()])
}

/// Whether a value reads a local.
fn reads(nest: &Nest, value: certen_core::TermId, local: Name) -> bool {
    let terms = &nest.program.terms;
    terms.parts_first(value).into_iter().any(|id| matches!(terms.get(id), Term::Ref(name, _) if *name == local))
}
