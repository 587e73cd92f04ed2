//! Nests that are more than one sum are separated, so that each sum is a nest of its own. No operation changes, nor the order of
//! any two on the way to an element. Three forms, where that costs little beside what a schedule gains:
//!
//! - What is read under a condition and multiplied, as the image of a convolution with padding is: it is kept once for each place,
//!   where the sum reads it as often as a window goes over it.
//! - Sums side by side, of which an element is made: one of them is a contraction, that is, something of what it multiplies is
//!   used by several elements, and none is known to be short. The one over most loops stays with what is made of the sums.
//! - Rows of a matrix, each of which is multiplied with the same matrix and used in the same iteration, as in
//!   `{ [i] -> f(x[i] @ U) @ V }`, and matrices that are, as in `{ [i] -> A @ P[i] @ B }`: the stages of an iteration, up to the last
//!   that is such a product, are computed for all rows or matrices, or the first of them, as far as that can be done.

use std::collections::BTreeSet;
use std::fmt::Write;

use certen_core::{Binary, ReduceOp, Term};
use certen_index::Ix;
use certen_loops::{LoopProgram, Site, Stmt, Target, Use, sites, statements};
use certen_syntax::Name;

use super::sum::{mentions, size};
use super::{Form, Planned};

/// A sum of fewer terms is short: it costs about what writing and reading it does.
const SHORT: i64 = 32;

/// More sums in an element stay where they are.
const MOST: usize = 16;

/// The steps for a nest, and the nests of which one has to get a schedule for it.
type Separation = (Planned, Vec<Name>);

/// What is separated, in this order.
pub(super) const FORMS: [fn(&LoopProgram, Name) -> Option<Separation>; 3] = [guarded, rows, sums];

/// Places further apart than this are not kept one beside the other.
const FAR: i64 = 16;

struct Sum {
    local: Name,
    is_contraction: bool,
    /// How many loops it runs over.
    depth: usize,
    /// How many terms it has; [`SHORT`] stands for a number that is not known.
    terms: i64,
}

/// The loops inside each other that are all of a nest, outermost first, and the body of the innermost.
fn perfect(program: &LoopProgram, nest: Name) -> Option<(Vec<Name>, &[Stmt])> {
    let label = program.body.iter().position(|stmt| *stmt == Stmt::Nest(nest))?;
    let [first @ Stmt::For { .. }, rest @ ..] = &program.body[label + 1..] else { return None };
    if !matches!(rest.first(), None | Some(Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_))) {
        return None;
    }
    let (mut own, mut body) = (Vec::new(), std::slice::from_ref(first));
    while let [Stmt::For { index, body: inner, .. }] = body {
        own.push(*index);
        body = inner;
    }
    Some((own, body))
}

/// The step that keeps what is read under a condition; none if nothing that is multiplied is.
fn guarded(program: &LoopProgram, nest: Name) -> Option<Separation> {
    let (own, body) = perfect(program, nest)?;
    let inside = sites(body);
    let chosen = |site: &Site<'_>| match site.stmt {
        Stmt::Assign { target: Target::Local(name), op: None, .. } if site.conds().next().is_some() => Some(*name),
        _ => None,
    };
    let is_near = |ix: &Ix| {
        let loops = inside.iter().flat_map(|site| site.loops()).map(|(index, _)| index).chain(own.iter().copied());
        loops.filter_map(|index| ix.linear_in(index)).all(|(step, _)| step.abs() <= FAR)
    };
    let mut locals = inside.iter().filter_map(chosen).filter(|local| {
        let of_it = |site: &&Site<'_>| chosen(site) == Some(*local);
        let mut uses = inside.iter().filter(of_it).flat_map(|site| site.stmt.uses(&program.terms));
        uses.all(|(_, at, _)| at.iter().all(is_near)) && inside.iter().any(|site| adds_multiple(program, site, *local))
    });
    let local = locals.next()?;
    let steps = format!("share({nest}.{}, {local});\n", own[0]);
    let why = "what is read under a condition is kept, once for each place".into();
    Some((Planned { nest, steps, why, with: Vec::new(), form: Form::Separated }, vec![nest]))
}

/// Whether a statement adds a multiple of a local to a sum.
fn adds_multiple(program: &LoopProgram, site: &Site<'_>, local: Name) -> bool {
    let Stmt::Assign { op: Some(ReduceOp::Sum), value, .. } = site.stmt else { return false };
    let Term::Binary(Binary::Mul, a, b) = program.terms.get(*value) else { return false };
    [a, b].iter().any(|id| matches!(program.terms.get(**id), Term::Ref(name, _) if *name == local))
}

/// The steps that separate the stages in which rows are multiplied; none if they stay together.
fn rows(program: &LoopProgram, nest: Name) -> Option<Separation> {
    let (own, body) = perfect(program, nest)?;
    let stages = body.iter().filter_map(|stmt| if let Stmt::Alloc(name, _) = stmt { Some(*name) } else { None });
    let stages: Vec<Name> = stages.collect();
    let inside = sites(body);
    // How many stages there are up to what a statement computes; what stores none of them comes after all.
    let count = |site: &Site<'_>| {
        let top = site.around.first().map_or(site.at, |around| around.at);
        let stores =
            |name: &Name| statements(&body[top..=top]).any(|stmt| stmt.element().is_some_and(|(to, _)| to == *name));
        stages.iter().position(stores).map_or(stages.len(), |at| at + 1)
    };
    let multiplied = inside.iter().filter(|site| multiplies(program, &own, &stages, &inside, site));
    let count = multiplied.map(count).max().filter(|count| (1..=MOST).contains(count))?;
    let steps: Vec<String> =
        stages[..count].iter().map(|stage| format!("separate({nest}.{}, {stage});\n", own[0])).collect();
    let why = "rows that are multiplied one by one: what is made on the way is made for all of them first".into();
    let made = stages[..count].iter().copied().chain([nest]).collect();
    Some((Planned { nest, steps: steps.concat(), why, with: Vec::new(), form: Form::Separated }, made))
}

/// Whether a statement adds up the products of a row with the columns of a matrix that is the same in all iterations, or those of
/// the rows of a matrix with the columns of another one.
fn multiplies(program: &LoopProgram, own: &[Name], stages: &[Name], inside: &[Site<'_>], site: &Site<'_>) -> bool {
    let Stmt::Assign { target: Target::Local(local), op: Some(ReduceOp::Sum), value } = site.stmt else { return false };
    if !matches!(program.terms.get(*value), Term::Binary(Binary::Mul, ..)) {
        return false;
    }
    let begins = |other: &&Site<'_>| matches!(other.stmt, Stmt::Local { name, init: Some(_), .. } if name == local);
    let Some(begin) = inside.iter().filter(begins).map(|begin| begin.loops().count()).max() else { return false };
    let loops: Vec<_> = site.loops().collect();
    let (free, summed) = loops.split_at(begin.min(loops.len()));
    if summed.is_empty() || summed.iter().any(|(_, range)| size(range).is_some_and(|terms| terms < SHORT)) {
        return false;
    }
    // Of what is multiplied: whether it belongs to the iteration, and which dimensions of the result it has.
    let mut factors: Vec<(bool, Vec<Name>)> = Vec::new();
    for (name, at, how) in site.stmt.uses(&program.terms) {
        if how != Use::Read || at.is_empty() {
            continue;
        }
        let has = |index: &Name| mentions(at, *index);
        if !summed.iter().any(|(index, _)| has(index)) {
            return false;
        }
        let is_own = own.iter().any(has) || stages.contains(&name);
        factors.push((is_own, free.iter().map(|(index, _)| *index).filter(has).collect()));
    }
    let is_row = |(is_own, dims): &(bool, Vec<Name>)| *is_own && dims.is_empty();
    let is_matrix = |(is_own, dims): &(bool, Vec<Name>)| !is_own && !dims.is_empty();
    let are_of_row = factors.iter().all(|factor| is_row(factor) || is_matrix(factor));
    let lacks = |(_, a): &(bool, Vec<Name>), (_, b): &(bool, Vec<Name>)| a.iter().any(|index| !b.contains(index));
    match factors.as_slice() {
        _ if are_of_row => factors.iter().any(is_row) && factors.iter().any(is_matrix),
        [a, b] => lacks(a, b) && lacks(b, a),
        _ => false,
    }
}

/// The steps that separate the sums of a nest; none if they stay together.
fn sums(program: &LoopProgram, nest: Name) -> Option<Separation> {
    let (own, body) = perfect(program, nest)?;
    let outermost = own[0];
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
    Some((Planned { nest, steps, why, with: Vec::new(), form: Form::Separated }, vec![nest]))
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
