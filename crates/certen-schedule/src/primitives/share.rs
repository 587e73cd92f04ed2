//! `share`: what several iterations compute alike is computed once for all of them, before.
//!
//! In a convolution with padding, `guard(1 <= y + u && …, x[y + u - 1, …]) * w[u, …]`, the guarded value depends on `y` and `u` only by
//! their sum. Its *places* are the values of such sums: kept in a buffer with a dimension for each of them, a padded image, it is
//! computed once for each place and read without a condition.
//!
//! The sums are read off the indices and conditions with which the value is computed. Each is solved for one of its loops
//! (Gauss); that no other loop is left afterwards shows that the value depends on nothing else. The loops of the new nest are
//! cut where its conditions begin and end to hold.

use std::collections::BTreeSet;

use certen_core::{Range, TensorType, Term};
use certen_index::{Cond, Ix, IxError};
use certen_loops::{LoopProgram, Stmt, Target, declared, sites, statements};
use certen_syntax::Name;

use super::peel::at_conditions;
use super::separate::{Computed, before, stands_alone};
use super::{Example, Primitive};
use crate::bounds::room;
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "share",
    usage: "share(loop, name)",
    about: "A local that is computed inside the loop, and depends on the loops only by some sums of their indices: before the loop \
            runs, it is computed once for each value of these sums, in a nest of its own, and kept in a buffer `N_local`, where \
            N is the nest of the loop. The loops of the new nest, `N_local.c0` and so on, one for each sum, are cut where a \
            condition begins or ends to hold.",
    legal: "Always: it is refused where the loop changes something that the local is computed from, or no two iterations \
            compute the same.",
    peers: "Halide: BoundaryConditions and compute_root; TVM: pad and compute_at; oneDNN: padding of a source",
    example: Example {
        program: "loops smooth\nsize n\nwhere n >= 1\ninput x : f64[n]\ninput w : f64[3]\noutput y : f64[n]\nnest y\n\
                  for i in 0..n {\n    local acc : f64 = 0.0\n    for u in 0..3 {\n        local value : f64\n        \
                  if i + u >= 1 && i + u <= n {\n            value = x[i + u - 1]\n        } else {\n            \
                  value = 0.0\n        }\n        acc += value * w[u]\n    }\n    y[i] = acc\n}\n",
        steps: "share(i, value)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        let (name, _) = args.word("a local")?;
        args.end()?;
        share(nest, &place, name)
    },
};

fn share(nest: &mut Nest, place: &Place, name: Name) -> Done<()> {
    let outermost = nest.loop_at(place)?;
    let (block, loops) = declaration(&outermost, place, name)?;
    let body = nest.block(&block).to_vec();
    let Some(Computed { first, last, ty }) = Computed::of(nest, &body, name) else {
        return Err(Refusal::cannot(format!("`{name}` is not computed where it is declared")).at(place));
    };
    stands_alone(nest, place, &outermost, &body[first..=last], name)?;
    let facts = nest.facts(place)?;
    let sums = Sums::of(nest, place, &loops, &body[first..=last], name)?;
    if sums.axes.len() == loops.len() {
        let text = format!("no two iterations of these loops compute the same `{name}`");
        return Err(Refusal::cannot(text).at(place).note("it is not the sum of indices that decides what it is"));
    }
    let names = sums.names[..sums.axes.len()].to_vec();
    let shape = sums.axes.iter().map(|axis| room(&facts, &axis.range)).collect::<Result<Vec<Ix>, IxError>>()?;
    let whole = TensorType::new(ty.elem, shape);
    let stage = nest.stage(place);
    let to = nest.fresh(&stage.map_or_else(|| name.to_string(), |stage| format!("{stage}_{name}")));
    let kept = |at: Vec<Ix>| Edit {
        expanded: [(name, (whole.clone(), at))].into(),
        names: [(name, to)].into(),
        ..Edit::default()
    };
    // What computes it, with the sums in place of the loops.
    let mut own = body[first..=last].to_vec();
    for (axis, at) in sums.axes.iter().zip(&names) {
        own = Edit::index(axis.pivot, axis.solved(*at)?).block(&mut nest.program, &own)?;
    }
    let begin = match own.remove(0) {
        Stmt::Local { init: Some(value), .. } => Some(Stmt::Assign { target: Target::Local(name), op: None, value }),
        _ => None,
    };
    own.splice(0..0, begin);
    let own = kept(names.iter().map(|at| Ix::var(*at)).collect()).block(&mut nest.program, &own)?;
    let around = names.iter().zip(&sums.axes).rev();
    let own = around.fold(own, |body, (at, axis)| vec![Loop::new(*at, axis.range.clone(), body).into()]);
    // What reads it.
    let at = sums.axes.iter().map(|axis| axis.form.sub(&axis.base)).collect::<Result<Vec<Ix>, IxError>>()?;
    let rest = kept(at).block(&mut nest.program, &body[last + 1..])?;
    nest.block_mut(&block)?.splice(first.., rest);
    let rest = nest.loop_at(place)?;
    let computed = before(nest, place, (to, whole), own, vec![rest.into()])?;
    at_conditions(nest, &computed)
}

/// Where the one declaration of a local is inside a loop, as the place of the first statement of its block, and the loops around
/// it, this one first. All of them begin at 0 and have a length of their own.
fn declaration(outermost: &Loop, place: &Place, name: Name) -> Done<(Place, Vec<(Name, Range)>)> {
    let inside = sites(&outermost.body);
    let mut found = inside.iter().filter(|site| matches!(site.stmt, Stmt::Local { name: local, .. } if *local == name));
    let (Some(site), None) = (found.next(), found.next()) else {
        return Err(Refusal::cannot(format!("no one local `{name}` is computed inside this loop")).at(place));
    };
    if site.conds().next().is_some() {
        return Err(Refusal::cannot(format!("`{name}` is computed under a condition, if at all")).at(place));
    }
    let own = [(outermost.index, &outermost.range)].into_iter().chain(site.loops());
    let loops: Vec<(Name, Range)> = own.map(|(index, range)| (index, range.clone())).collect();
    for (index, range) in &loops {
        if range.lo.as_constant() != Some(0) || loops.iter().any(|(other, _)| range.hi.mentions(*other)) {
            let text = format!("the loop over {index} does not begin at 0, or is not always of the same length");
            return Err(Refusal::cannot(text).at(place).note(format!("its range is {}..{}", range.lo, range.hi)));
        }
    }
    Ok((place.join(Place::of(site)).beside(0), loops))
}

/// A sum of indices of loops that a value depends on.
struct Axis {
    /// The sum.
    form: Ix,
    /// The smallest value that it has; the axis counts from there.
    base: Ix,
    range: Range,
    /// The loop that it is solved for, how often that is in it, and what else is, where those before it are solved.
    pivot: Name,
    sign: i64,
    others: Ix,
}

impl Axis {
    /// The index of the pivot, where the sum is at an index of its axis.
    fn solved(&self, at: Name) -> Result<Ix, IxError> {
        Ix::var(at).add(&self.base)?.sub(&self.others)?.scale(self.sign)
    }
}

/// The sums that a value depends on, in the order in which they are dimensions of what it reads.
struct Sums<'a> {
    loops: &'a [(Name, Range)],
    axes: Vec<Axis>,
    names: Vec<Name>,
}

impl<'a> Sums<'a> {
    fn of(nest: &Nest, place: &Place, loops: &'a [(Name, Range)], moved: &[Stmt], name: Name) -> Done<Sums<'a>> {
        // They take the place of loops inside, so they have other names than those.
        let own: BTreeSet<Name> = loops.iter().map(|(index, _)| *index).chain(declared(moved)).collect();
        let named = |letter: &String| nest.copy_names(place, letter, loops.len());
        let letters = std::iter::successors(Some("c".to_owned()), |letter| Some(format!("{letter}c")));
        let names = letters.map(|letter| named(&letter)).find(|names| !names.iter().any(|name| own.contains(name)));
        let mut sums = Sums { loops, axes: Vec::new(), names: names.unwrap_or_default() };
        let all = expressions(&nest.program, moved, name)?;
        let mut parts = Vec::new();
        all.iter().try_for_each(|ix| linear_parts(ix, &mut parts))?;
        for part in &parts {
            if !sums.add(part)? {
                let text = format!("`{name}` does not depend on the loops by sums of their indices alone");
                return Err(Refusal::cannot(text).at(place).note(format!("it depends on {part}")));
            }
        }
        for ix in &all {
            let left = sums.reduced(ix)?;
            if let Some((index, _)) = loops.iter().find(|(index, _)| left.mentions(*index)) {
                let text = format!("`{name}` does not depend on {index} by a sum alone");
                return Err(Refusal::cannot(text).at(place).note(format!("it depends on {ix}")));
            }
        }
        Ok(sums)
    }

    /// An expression with the axes in place of the loops that they are solved for.
    fn reduced(&self, ix: &Ix) -> Result<Ix, IxError> {
        self.axes
            .iter()
            .zip(&self.names)
            .try_fold(ix.clone(), |ix, (axis, at)| Edit::index(axis.pivot, axis.solved(*at)?).ix(&ix))
    }

    /// How often each loop is in an expression; none if it is there otherwise.
    fn coefficients(&self, ix: &Ix) -> Option<Vec<i64>> {
        let each = self.loops.iter().map(|(index, _)| match ix.mentions(*index) {
            true => ix.linear_in(*index).map(|(factor, _)| factor),
            false => Some(0),
        });
        each.collect()
    }

    /// The sum of loops in these multiples.
    fn form(&self, factors: &[i64]) -> Result<Ix, IxError> {
        let terms = self.loops.iter().zip(factors);
        terms
            .map(|((index, _), factor)| Ix::var(*index).scale(*factor))
            .try_fold(Ix::from(0), |sum, term| sum.add(&term?))
    }

    /// Adds the sum of loops that an expression has, unless it is made of those that are there; whether that can be done.
    fn add(&mut self, ix: &Ix) -> Result<bool, IxError> {
        let Some(mut factors) = self.coefficients(ix) else { return Ok(false) };
        let Some(divisor) = factors.iter().copied().filter(|factor| *factor != 0).reduce(divisor) else {
            return Ok(true);
        };
        let first = factors.iter().find(|factor| **factor != 0).map_or(1, |factor| factor.signum());
        factors.iter_mut().for_each(|factor| *factor = *factor / divisor * first);
        let form = self.form(&factors)?;
        let reduced = self.reduced(&form)?;
        let Some(left) = self.coefficients(&reduced) else { return Ok(false) };
        if left.iter().all(|factor| *factor == 0) {
            return Ok(true);
        }
        let Some(pivot) = left.iter().rposition(|factor| factor.abs() == 1) else { return Ok(false) };
        let (mut base, mut length) = (Ix::from(0), Ix::from(1));
        for ((_, range), factor) in self.loops.iter().zip(&factors) {
            let last = range.hi.sub(&Ix::from(1))?.scale(*factor)?;
            match factor {
                ..0 => (base, length) = (base.add(&last)?, length.sub(&last)?),
                0 => {}
                1.. => length = length.add(&last)?,
            }
        }
        let (pivot, sign) = (self.loops[pivot].0, left[pivot]);
        let others = reduced.sub(&Ix::var(pivot).scale(sign)?)?;
        self.axes.push(Axis { form, base, range: Range::to(length), pivot, sign, others });
        Ok(true)
    }
}

fn divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}

/// The indices with which statements compute a value: first those that they read at, then the others, then what conditions compare.
fn expressions(program: &LoopProgram, moved: &[Stmt], name: Name) -> Done<Vec<Ix>> {
    let (mut reads, mut compared) = (Vec::new(), Vec::new());
    for stmt in statements(moved) {
        let uses = stmt.uses(&program.terms).into_iter().filter(|(used, ..)| *used != name);
        reads.extend(uses.flat_map(|(_, at, _)| at.iter().cloned()));
        for id in stmt.value().into_iter().flat_map(|value| program.terms.parts_first(value)) {
            if let Term::Index(ix, _) = program.terms.get(id) {
                reads.push(ix.clone());
            }
        }
        match stmt {
            Stmt::If { cond, .. } => sides(cond, &mut compared),
            Stmt::For { index, .. } => {
                return Err(Refusal::cannot(format!("`{name}` is computed by a loop over {index}")));
            }
            _ => {}
        }
    }
    reads.extend(compared);
    Ok(reads)
}

/// What a condition compares with 0.
fn sides(cond: &Cond, out: &mut Vec<Ix>) {
    match cond {
        Cond::Ge(ix) | Cond::Eq(ix) => out.push(ix.clone()),
        Cond::And(all) | Cond::Or(all) => all.iter().for_each(|cond| sides(cond, out)),
    }
}

/// What minima and maxima in an expression choose from, or it itself.
fn linear_parts(ix: &Ix, out: &mut Vec<Ix>) -> Result<(), IxError> {
    for parts in [ix.smallest_of()?, ix.largest_of()?] {
        if parts.len() > 1 {
            return parts.iter().try_for_each(|part| linear_parts(part, out));
        }
    }
    out.push(ix.clone());
    Ok(())
}
