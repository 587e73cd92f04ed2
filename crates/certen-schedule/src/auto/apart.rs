//! Sums side by side: a nest whose elements are made of several sums has them separated, so that each is a nest of its own.
//!
//! Only where that costs little beside what a schedule gains: one of them is a contraction, that is, something of what it
//! multiplies is used by several elements, and none is known to be short. The one over most loops stays with what is made of
//! the sums. No operation changes, nor the order of any two on the way to an element.

use std::collections::BTreeSet;
use std::fmt::Write;

use certen_core::{Binary, ReduceOp, Term};
use certen_loops::{LoopProgram, Stmt, Target, Use, statements};
use certen_syntax::Name;

use super::Planned;
use super::sum::size;

/// A sum of fewer terms is short: it costs about what writing and reading it does.
const SHORT: i64 = 32;

/// More sums in an element stay where they are.
const MOST: usize = 16;

struct Sum {
    local: Name,
    is_contraction: bool,
    /// How many loops it runs over.
    depth: usize,
    /// How many terms it has; [`SHORT`] stands for a number that is not known.
    terms: i64,
}

/// The steps that separate the sums of a nest; none if they stay together.
pub(super) fn separated(program: &LoopProgram, nest: Name) -> Option<Planned> {
    let label = program.body.iter().position(|stmt| *stmt == Stmt::Nest(nest))?;
    let [Stmt::For { index: outermost, .. }, rest @ ..] = &program.body[label + 1..] else { return None };
    if !matches!(rest.first(), None | Some(Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_))) {
        return None;
    }
    let (mut own, mut body) = (Vec::new(), &program.body[label + 1..label + 2]);
    while let [Stmt::For { index, body: inner, .. }] = body {
        own.push(*index);
        body = inner;
    }
    let (Stmt::Assign { target: Target::Element(..), .. }, parts) = body.split_last()? else { return None };
    let mut sums = Vec::new();
    for part in parts.chunks(2) {
        sums.push(sum(program, &own, part)?);
    }
    if !(2..=MOST).contains(&sums.len()) || sums.iter().any(|sum| sum.terms < SHORT) {
        return None;
    }
    let kept = sums.iter().rev().max_by_key(|sum| (sum.is_contraction, sum.depth)).filter(|sum| sum.is_contraction)?;
    let mut steps = String::new();
    for sum in sums.iter().filter(|sum| sum.local != kept.local) {
        let _ = writeln!(steps, "separate({nest}.{outermost}, {});", sum.local);
    }
    let why = format!("{} sums side by side: each gets a nest of its own", sums.len());
    Some(Planned { nest, steps, why, separates: true })
}

/// A local that begins at something, and a loop that adds to it.
fn sum(program: &LoopProgram, own: &[Name], part: &[Stmt]) -> Option<Sum> {
    let [Stmt::Local { name: local, init: Some(_), .. }, Stmt::For { .. }] = part else { return None };
    let (mut summed, mut terms) = (Vec::new(), 1i64);
    for stmt in statements(&part[1..]) {
        match stmt {
            Stmt::For { index, range, .. } => {
                summed.push(*index);
                terms = terms.saturating_mul(size(range).unwrap_or(SHORT));
            }
            Stmt::Local { init: Some(_), .. } => {}
            Stmt::Assign { target: Target::Local(_), op: Some(ReduceOp::Sum), .. } => {}
            _ => return None,
        }
    }
    // What is multiplied, each with the indices that it is read at.
    let mut factors: Vec<BTreeSet<Name>> = Vec::new();
    for stmt in statements(&part[1..]) {
        for (_, at, how) in stmt.uses(&program.terms) {
            let mut names = BTreeSet::new();
            at.iter().for_each(|ix| ix.collect_names(&mut names));
            if how == Use::Read && summed.iter().any(|index| names.contains(index)) {
                factors.push(names);
            }
        }
    }
    let is_of_one_element = |names: &BTreeSet<Name>| own.iter().all(|index| names.contains(index));
    let is_product = statements(&part[1..]).any(|stmt| {
        stmt.value().is_some_and(|value| matches!(program.terms.get(value), Term::Binary(Binary::Mul, ..)))
    });
    let is_contraction = is_product && factors.len() > 1 && !factors.iter().all(is_of_one_element);
    // A sum that is the same for some of the elements is not what the nest is about.
    let depends = own.iter().all(|index| factors.iter().any(|names| names.contains(index)));
    depends.then_some(Sum { local: *local, is_contraction, depth: summed.len(), terms })
}
