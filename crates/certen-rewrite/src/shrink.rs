//! Smaller copies of programs: the same computation at other literal sizes.
//!
//! A program with large literal sizes cannot be evaluated within a few steps, not even one element of it. Rewrites do not
//! depend on sizes in what they compute, so two programs are compared at smaller ones: every literal size from 5 on that
//! stands in either is replaced by a small number, the same everywhere, also where it is used as data. Needs: programs
//! of generations, reductions, selections and scalar operations, as the tensor algebra's are.

use std::collections::{BTreeMap, BTreeSet};

use certen_core::{Parameter, Program, Range, TensorType, Term, TermId, Terms};
use certen_index::Ix;

use crate::free::with_operands;

/// Sizes up to this stay.
const SMALL: i64 = 4;

/// Both programs at smaller sizes; none if there is nothing to shrink, or a term that cannot be.
pub fn shrunk(before: &Program, after: &Program) -> Option<(Program, Program)> {
    let mut sizes = BTreeSet::new();
    for program in [before, after] {
        program.inputs.iter().for_each(|input| sizes.extend(input.ty.shape.iter().filter_map(Ix::as_constant)));
        for (_, term) in program.terms.iter() {
            if let Term::Gen(_, range, _) | Term::Reduce(_, _, range, _, _) = term {
                sizes.extend(range.hi.as_constant());
            }
        }
    }
    // Different sizes become different ones, as long as they stay small.
    let large = sizes.into_iter().filter(|size| *size > SMALL);
    let small: BTreeMap<i64, i64> = large.enumerate().map(|(at, size)| (size, 2 + at as i64 % 4)).collect();
    if small.is_empty() {
        return None;
    }
    Some((copy(before, &small)?, copy(after, &small)?))
}

fn copy(program: &Program, small: &BTreeMap<i64, i64>) -> Option<Program> {
    let size = |ix: &Ix| ix.as_constant().and_then(|n| small.get(&n)).map_or_else(|| ix.clone(), |n| Ix::from(*n));
    let range = |range: &Range| Range { lo: range.lo.clone(), hi: size(&range.hi) };
    let ty = |ty: &TensorType| TensorType { elem: ty.elem, shape: ty.shape.iter().map(size).collect() };
    let mut terms = Terms::new(program.terms.facts().clone());
    let mut copies: Vec<TermId> = Vec::with_capacity(program.terms.len());
    for (_, term) in program.terms.iter() {
        let of = |part: &TermId| copies[part.index()];
        let term = match term {
            Term::Ref(name, of_type) => Term::Ref(*name, ty(of_type)),
            Term::Gen(name, over, body) => Term::Gen(*name, range(over), of(body)),
            Term::Reduce(op, name, over, cond, body) if cond.is_always() => {
                Term::Reduce(*op, *name, range(over), cond.clone(), of(body))
            }
            Term::Select(tensor, indices) => Term::Select(of(tensor), indices.clone()),
            Term::Index(ix, elem) => Term::Index(size(ix), *elem),
            Term::Literal(..) | Term::Undefined(_) => term.clone(),
            other => with_operands(other, &of)?,
        };
        copies.push(terms.add(term).ok()?);
    }
    let inputs = program.inputs.iter().map(|input| Parameter { name: input.name, ty: ty(&input.ty) });
    let mut bindings = program.bindings.clone();
    bindings.iter_mut().for_each(|binding| binding.term = copies[binding.term.index()]);
    Some(Program {
        name: program.name,
        sizes: program.sizes.clone(),
        facts: program.facts.clone(),
        inputs: inputs.collect(),
        bindings,
        outputs: program.outputs.clone(),
        terms,
    })
}
