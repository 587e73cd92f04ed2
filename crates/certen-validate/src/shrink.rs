//! Smaller copies of programs: the same computation at other literal sizes.
//!
//! A program with large literal sizes cannot be evaluated within a few steps, not even one element of it. Rewrites do not
//! depend on sizes in what they compute, so two programs are compared at smaller ones: every literal size from 5 on that
//! stands in either is replaced by a small number, the same everywhere, also where it is used as data. Needs: programs
//! of generations, reductions, selections and scalar operations, as the tensor algebra's are.

use std::collections::{BTreeMap, BTreeSet};

use certen_core::{Parameter, Program, Range, TensorType, Term, Terms, TypeError};
use certen_index::Ix;

/// Sizes up to this stay.
const SMALL: i64 = 4;

/// A program at smaller literal sizes, the same everywhere, if its terms allow that.
pub fn shrunk_program(program: &Program) -> Option<Program> {
    shrunk(program, program).map(|(small, _)| small)
}

/// Both programs at smaller sizes; none if there is nothing to shrink, or a term that cannot be.
pub(crate) fn shrunk(before: &Program, after: &Program) -> Option<(Program, Program)> {
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
    let ty = |ty: &TensorType| ty.with_sizes(|ix| Ok::<Ix, TypeError>(size(ix)));
    let range = |range: Range| Range { lo: range.lo, hi: size(&range.hi) };
    let mut terms = Terms::new(program.terms.facts().clone());
    let all = program.terms.iter().map(|(id, _)| id);
    let copies = terms.copy_from(&program.terms, all, |term| match term {
        Term::Ref(name, of_type) => Ok(Term::Ref(name, ty(&of_type)?)),
        Term::Gen(name, over, body) => Ok(Term::Gen(name, range(over), body)),
        Term::Reduce(op, name, over, cond, body) if cond.is_always() => {
            Ok(Term::Reduce(op, name, range(over), cond, body))
        }
        Term::Table(table) => {
            let ty = ty(table.ty())?;
            table.beginning(&ty).map(Term::Table).ok_or_else(|| TypeError("a table that is too small".into()))
        }
        Term::Index(ix, elem) => Ok(Term::Index(size(&ix), elem)),
        Term::Select(..)
        | Term::Literal(..)
        | Term::Undefined(_)
        | Term::Unary(..)
        | Term::Binary(..)
        | Term::Choose(..)
        | Term::Fma(..)
        | Term::Cast(..) => Ok(term),
        _ => Err(TypeError("a term whose sizes may mean something else".into())),
    });
    let copies = copies.ok()?;
    let inputs = program.inputs.iter().map(|input| Ok(Parameter { name: input.name, ty: ty(&input.ty)? }));
    let mut bindings = program.bindings.clone();
    bindings.iter_mut().for_each(|binding| binding.term = copies[&binding.term]);
    Some(Program {
        name: program.name,
        sizes: program.sizes.clone(),
        facts: program.facts.clone(),
        inputs: inputs.collect::<Result<_, TypeError>>().ok()?,
        bindings,
        outputs: program.outputs.clone(),
        terms,
    })
}
