//! `fuse_outer`: two loops that follow each other become one (TeML, Eq. 22).
//!
//! The first iterations of both run together, then the second ones, and so on. What stands between the loops moves before
//! or after them, where it has nothing to do with them. Loops of different lengths run as far as the longer one, and
//! conditions skip what is too much.

use std::collections::HashSet;

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, Proof, Status, Verdict};
use certen_loops::{Mode, Stmt, declared, declared_at_top, statements, within};
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::bounds::conditions;
use crate::depend::{Footprint, apart, first, second};
use crate::edit::Edit;
use crate::nest::{Nest, as_stage};
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "fuse_outer",
    usage: "fuse_outer(one, two) or fuse_outer(one, two, levels)",
    about: "The loops `one` and `two`, which follow each other in the same block, become one loop `one`: each iteration \
            does what the iterations of both did, the first with the first if they are equally long (after `peel`, one can run \
            ahead of the other). With a number of levels, the only loops inside both are fused as \
            well, and so on. What stands between them moves before or after. If one runs further than the other, \
            conditions skip what is too much. The loop stays parallel if both are, and if that is right.",
    legal: "No iteration of `two` needs something of a later iteration of `one`: neither writes what the other uses.",
    peers: "TeML: fuse_outer; Exo: fuse; Halide: compute_with; TVM: compute_at; OpenMP 6: fuse",
    example: Example {
        program: "loops both\nsize m, n\nwhere m >= 0, n >= 0\ninput x : f64[m, n]\noutput z : f64[m, n]\nalloc y : f64[m, n]\n\
                  nest y\nfor i in 0..m {\n    for j in 0..n {\n        y[i, j] = 2.0 * x[i, j]\n    }\n}\n\
                  nest z\nfor i in 0..m {\n    for j in 0..n {\n        z[i, j] = y[i, j] + 1.0\n    }\n}\nfree y\n",
        steps: "fuse_outer(y.i, z.i, 2)",
    },
    apply: |nest, args| {
        let one = nest.find(args.path("a loop")?)?;
        let two = nest.find(args.path("a loop after it")?)?;
        let levels = if args.left() > 0 { args.at_least(1, "a number of levels")? } else { 1 };
        args.end()?;
        let mut fused = fuse(nest, &one, &two)?;
        for level in 2..=levels {
            let body = nest.loop_at(&fused.place)?.body;
            let is_loop = |(_, stmt): &(usize, &Stmt)| matches!(stmt, Stmt::For { .. });
            let loops: Vec<usize> = body.iter().enumerate().filter(is_loop).map(|(at, _)| at).collect();
            let (ones, twos): (Vec<usize>, Vec<usize>) = loops.into_iter().partition(|at| *at < fused.second);
            let (&[one], &[two]) = (ones.as_slice(), twos.as_slice()) else {
                let which = if ones.len() == 1 { "second" } else { "first" };
                let refusal = Refusal::cannot(format!("level {level} of the {which} loop is not one loop"));
                return Err(refusal.at(&one).at(&two).help("fuse fewer levels"));
            };
            fused = fuse(nest, &fused.place.inside(one), &fused.place.inside(two)).map_err(Refusal::unmarked)?;
        }
        Ok(())
    },
};

/// A loop that was made of two.
pub(crate) struct Fused {
    /// Where it stands.
    pub place: Place,
    /// Where the statements of the second one begin in its body.
    pub second: usize,
}

/// Whether two loops are shown to have the same number of iterations.
pub(crate) fn same_length(facts: &Facts, one: &Range, two: &Range) -> bool {
    let difference = one.hi.sub(&one.lo).and_then(|length| two.hi.sub(&two.lo)?.sub(&length));
    difference.is_ok_and(|difference| facts.prove_equal(&difference, &Ix::from(0)) == Verdict::Yes)
}

/// Makes one loop of the loops at two places of the same block.
pub(crate) fn fuse(nest: &mut Nest, one: &Place, two: &Place) -> Done<Fused> {
    let (one, two) = if two.at < one.at && one.path == two.path { (two, one) } else { (one, two) };
    let (name_one, name_two) = nest.called_both(one, two);
    if one.path != two.path || one.at == two.at {
        let refusal = match one == two {
            true => Refusal::cannot(format!("{name_one} is named twice")),
            false => Refusal::cannot(format!("{name_one} and {name_two} do not stand in the same block")),
        };
        return Err(refusal.at(one).at(two));
    }
    let stages = [nest.stage(one), nest.stage(two)];
    apart_names(nest, one, two)?;
    let facts = nest.facts(one)?;
    let (a, b) = (nest.loop_at(one)?, nest.loop_at(two)?);
    let between = moved(nest, &facts, one, two, stages[0])?;

    let mut edit = Edit::default();
    let (range, guards) = aligned(nest, &facts, &a, &b, &mut edit)?;
    let alive: HashSet<Name> = declared_at_top(&a.body).chain(between.freed).chain([a.index]).collect();
    let mut taken = nest.taken();
    for name in declared(&b.body).into_iter().filter(|name| alive.contains(name)) {
        let new = Name::fresh(name.as_str(), |name| taken.contains(&name));
        taken.insert(new);
        edit.names.insert(name, new);
    }
    let [cond_a, cond_b] = guards;
    let wrap = |cond: Cond, body: Vec<Stmt>| match cond.is_always() {
        true => body,
        false => vec![Stmt::If { cond, then: body, otherwise: Vec::new() }],
    };
    let last_stage = match cond_a.is_always() {
        true => a.body.iter().rev().find_map(as_stage).or(stages[0]),
        false => stages[0],
    };
    let body_a = wrap(cond_a, a.body);
    let body_b = wrap(cond_b, edit.block(&mut nest.program, &b.body)?);

    let (part_a, part_b) =
        (nest.ordered(Footprint::of(&nest.program, &body_a)), nest.ordered(Footprint::of(&nest.program, &body_b)));
    let (i1, i2) = (Ix::var(first(a.index)), Ix::var(second(a.index)));
    let loops = [(a.index, range.clone())];
    let status = apart(&facts, &loops, &part_b, &part_a, &Cond::lt(&i1, &i2)?);
    let independent = matches!(status, Status::Proved(_));
    let what = match name_one == name_two {
        true => "no iteration of the second loop has to do with a later one of the first".into(),
        false => format!("no iteration of {name_two} has to do with a later one of {name_one}"),
    };
    nest.condition(what, status);
    let same = a.mode == b.mode && a.mode != Mode::Serial && independent;
    let mode = match same && matches!(apart(&facts, &loops, &part_b, &part_a, &Cond::lt(&i2, &i1)?), Status::Proved(_))
    {
        true => a.mode,
        false => Mode::Serial,
    };

    // The second stage keeps its label: after the loop where more of it follows, and inside where there are loops.
    let more = between.behind.iter().chain(nest.block(two).iter().skip(two.at + 1)).find(|stmt| computes(stmt));
    let label_behind = stages[0] != stages[1] && more.is_some_and(|stmt| as_stage(stmt).is_none());
    let label_inside = stages[1] != last_stage && (!label_behind || has_loop(&body_b));
    let mut body = body_a;
    body.extend(stages[1].filter(|_| label_inside).map(Stmt::Nest));
    let second = body.len();
    body.extend(body_b);
    let block = nest.block_mut(one)?;
    let mut rest: Vec<Stmt> = block.split_off(two.at + 1);
    block.truncate(one.at);
    block.extend(between.ahead);
    let place = one.beside(block.len());
    block.push(Loop { index: a.index, range, mode, body }.into());
    block.extend(between.behind);
    block.extend(stages[1].filter(|_| label_behind).map(Stmt::Nest));
    block.append(&mut rest);
    Ok(Fused { place, second })
}

fn computes(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::Nest(_) | Stmt::For { .. } | Stmt::If { .. } | Stmt::Assign { .. })
}

fn has_loop(block: &[Stmt]) -> bool {
    statements(block).any(|stmt| matches!(stmt, Stmt::For { .. }))
}

/// Gives other names to what is declared between two loops, where it would get in the way further up.
fn apart_names(nest: &mut Nest, one: &Place, two: &Place) -> Done<()> {
    let block = nest.block(one);
    let between = &block[one.at + 1..two.at];
    // What is declared further up is in scope in all of these.
    let blocks = block[one.at..two.at].iter().filter(|stmt| stmt.blocks().next().is_some());
    let inside = blocks.flat_map(|stmt| declared(std::slice::from_ref(stmt)));
    let freed = between.iter().filter_map(|stmt| if let Stmt::Free(name) = stmt { Some(*name) } else { None });
    let mut taken: HashSet<Name> = inside.chain(freed).collect();
    let clashes: Vec<(usize, Name)> = between
        .iter()
        .enumerate()
        .filter_map(|(at, stmt)| match stmt {
            Stmt::Alloc(name, _) | Stmt::Local { name, .. } => Some((one.at + 1 + at, *name)),
            _ => None,
        })
        .filter(|(_, name)| !taken.insert(*name))
        .collect();
    for (at, name) in clashes {
        let block = nest.block(one).to_vec();
        *nest.block_mut(one)? = nest.renamed_from(&block, at, name)?;
    }
    Ok(())
}

/// The range of a loop that does what two did, and when an iteration has something of each. The edit makes the second
/// one's index of the first one's.
fn aligned(nest: &mut Nest, facts: &Facts, a: &Loop, b: &Loop, edit: &mut Edit) -> Done<(Range, [Cond; 2])> {
    let i = Ix::var(a.index);
    if a.range == b.range {
        edit.indices.insert(b.index, i);
        return Ok((a.range.clone(), [Cond::always(), Cond::always()]));
    }
    if same_length(facts, &a.range, &b.range) {
        let shift = b.range.lo.sub(&a.range.lo)?.simplified(facts)?;
        edit.indices.insert(b.index, i.add(&shift)?);
        let same = Cond::eq(&a.range.hi.sub(&a.range.lo)?, &b.range.hi.sub(&b.range.lo)?)?;
        nest.require("the two loops are equally long", facts, same);
        return Ok((a.range.clone(), [Cond::always(), Cond::always()]));
    }
    edit.indices.insert(b.index, i);
    let lo = a.range.lo.min_with(&b.range.lo)?.simplified(facts)?;
    let hi = a.range.hi.max_with(&b.range.hi)?.simplified(facts)?;
    let range = Range { lo, hi };
    let mut inside = facts.clone();
    inside.assume(within(a.index, &range)?);
    let cond =
        |range: &Range| conditions(&inside, a.index, std::slice::from_ref(&range.lo), std::slice::from_ref(&range.hi));
    let conds = [cond(&a.range)?, cond(&b.range)?];
    Ok((range, conds))
}

/// Where the statements between two loops go.
struct Between {
    ahead: Vec<Stmt>,
    behind: Vec<Stmt>,
    /// Buffers that live on until the second loop has ended.
    freed: Vec<Name>,
}

/// Moves the statements between two loops before the first, or after the second.
fn moved(nest: &mut Nest, facts: &Facts, one: &Place, two: &Place, stage: Option<Name>) -> Done<Between> {
    let block = nest.block(one).to_vec();
    let part = |nest: &Nest, at: usize| nest.ordered(Footprint::of(&nest.program, &block[at..=at]));
    let mut found = Between { ahead: Vec::new(), behind: Vec::new(), freed: Vec::new() };
    // Only made if something has to be moved past them.
    let (mut loops, mut behind): (Option<(Footprint, Footprint)>, Vec<Footprint>) = (None, Vec::new());
    let (mut label, mut last_label) = (stage, stage);
    let mut shown: Option<Vec<Proof>> = None;
    for (at, stmt) in block.iter().enumerate().take(two.at).skip(one.at + 1) {
        match stmt {
            Stmt::Nest(name) => label = Some(*name),
            Stmt::Alloc(..) | Stmt::Local { init: None, .. } => found.ahead.push(stmt.clone()),
            Stmt::Free(name) => {
                found.freed.push(*name);
                found.behind.push(stmt.clone());
            }
            _ => {
                let (first, second) = loops.get_or_insert_with(|| (part(nest, one.at), part(nest, two.at)));
                let this = part(nest, at);
                let free = |other: &Footprint| match apart(facts, &[], &this, other, &Cond::always()) {
                    Status::Proved(proofs) => Some(proofs),
                    _ => None,
                };
                let ahead = std::iter::once(&*first).chain(&behind).map(free).collect::<Option<Vec<_>>>();
                if let Some(proofs) = ahead {
                    shown.get_or_insert_with(Vec::new).extend(proofs.concat());
                    if label != last_label && has_loop(&block[at..=at]) {
                        found.ahead.extend(label.map(Stmt::Nest));
                        last_label = label;
                    }
                    found.ahead.push(stmt.clone());
                } else if let (false, Some(proofs)) = (matches!(stmt, Stmt::Local { .. }), free(second)) {
                    shown.get_or_insert_with(Vec::new).extend(proofs);
                    found.behind.push(stmt.clone());
                    behind.push(this);
                } else {
                    let refusal = Refusal::cannot("what stands between the loops has to do with both of them");
                    return Err(refusal
                        .at(&one.beside(at))
                        .note("it can move neither before the first nor after the second"));
                }
            }
        }
    }
    if let Some(proofs) = shown {
        let what = "what stands between the loops has nothing to do with what it moves past";
        nest.condition(what, Status::Proved(proofs));
    }
    if last_label != stage {
        found.ahead.extend(stage.map(Stmt::Nest));
    }
    Ok(found)
}
