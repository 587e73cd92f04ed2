//! `unroll_and_jam`: several iterations of a loop run side by side in the loops inside it.
//!
//! The loop becomes blocks of `count` iterations, and `i.i`, which runs over a block, moves inwards as far as it goes:
//! through loops and conditions that do not depend on it. There each statement becomes `count` copies. So
//! an accumulator becomes `count` accumulators, and what all iterations read is read once for them: a tile of registers.
//!
//! Of two iterations of a block, the earlier one was done when the later one began. Now the later one is ahead where a
//! statement stands before another one, and where a loop around both has a smaller index: these pairs must be apart.

use std::collections::HashSet;

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, Status};
use certen_loops::{LoopProgram, Mode, Stmt, declared};
use certen_syntax::Name;

use super::peel::simplified;
use super::unroll::{full_blocks, room};
use super::{Example, Primitive};
use crate::depend::{Footprint, apart, first, independent, second};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::Place;
use crate::refusal::Done;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "unroll_and_jam",
    usage: "unroll_and_jam(loop, count)",
    about: "The loop `i` becomes a loop `i.o` over `count` iterations at a time, which run side by side: each statement \
            inside becomes `count` statements, while the loops inside stay one, if their ranges do not depend on `i`; \
            else each iteration has its own, with `.u0`, `.u1`, … after its name. The iterations that are left stay as \
            they were, in `i.o.tail`.",
    legal: "No iteration uses what a later one of the same block writes that now comes before it, or the other way \
            round: as for an interchange with the loops inside.",
    peers: "Polly, ICC, OpenMP proposals: unroll_and_jam; Halide: split, reorder, unroll; Exo: unroll_loop after reorder",
    example: Example {
        program: "loops product\nsize m, n\nwhere m >= 0, n >= 0\ninput a : f64[m, n]\ninput x : f64[n]\n\
                  output y : f64[m]\nnest y\nfor i in 0..m {\n    local acc : f64 = 0.0\n    for k in 0..n {\n        \
                  acc += a[i, k] * x[k]\n    }\n    y[i] = acc\n}\n",
        steps: "unroll_and_jam(i, 2)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        let count = args.at_least(1, "the number of iterations")?;
        args.end()?;
        unroll_and_jam(nest, &place, count)
    },
};

/// Unrolls the loop at a place by a number, and jams the copies.
pub(crate) fn unroll_and_jam(nest: &mut Nest, place: &Place, count: i64) -> Done<()> {
    room(nest, place, count)?;
    let Some(main) = full_blocks(nest, place, count)?.main else { return Ok(()) };
    let place = main.inside(0);
    let found = nest.loop_at(&place)?;
    let mut order = Reordered {
        nest,
        facts: nest.facts(&place)?,
        index: found.index,
        private: declared(&found.body),
        loops: vec![(found.index, found.range.clone())],
        found: Vec::new(),
    };
    let earlier = Cond::lt(&Ix::var(first(found.index)), &Ix::var(second(found.index)))?;
    order.block(&found.body, &earlier)?;
    let status = all(order.found);
    let i = found.index;
    nest.condition_of(
        i,
        format!("no iteration of the loop over {i} uses what a later one writes that now comes before it"),
        status,
    );
    let taken = nest.taken();
    let copies = (0..count).map(|number| Edit::index(found.index, Ix::from(number))).collect();
    let body = Jam { nest, index: found.index, taken }.block(&found.body, copies)?;
    let (facts, outer) = (nest.facts(&place)?, nest.loop_at(&main)?.index);
    let body = simplified(&body, &facts, outer)?;
    let body = shared(&nest.program, body, &facts, &declared(&found.body))?;
    nest.replace(&place, body)
}

/// A block in which the loops of these names are still parallel, or vectors, only if their iterations are shown to be
/// independent: several copies in one loop can be a race where each alone is none.
fn shared(program: &LoopProgram, mut block: Vec<Stmt>, facts: &Facts, names: &HashSet<Name>) -> Done<Vec<Stmt>> {
    for stmt in &mut block {
        if let Stmt::For { index, range, mode, body } = stmt
            && *mode != Mode::Serial
            && names.contains(index)
            && !matches!(independent(facts, *index, range, Footprint::of(program, body)), Status::Proved(_))
        {
            *mode = Mode::Serial;
        }
        stmt.map_blocks(|known, inner| {
            let mut inside = facts.clone();
            inside.assume(known?);
            shared(program, inner, &inside, names)
        })?;
    }
    Ok(block)
}

/// What is known if all of this is.
fn all(statuses: Vec<Status>) -> Status {
    let (mut proofs, mut open) = (Vec::new(), false);
    for status in statuses {
        match status {
            Status::Proved(more) => proofs.extend(more),
            Status::Open => open = true,
            fails @ Status::Fails(_) => return fails,
        }
    }
    if open { Status::Open } else { Status::Proved(proofs) }
}

/// Whether the way into a statement's blocks depends on an index: its range or its condition.
fn depends(stmt: &Stmt, index: Name) -> bool {
    match stmt {
        Stmt::For { range, .. } => range.lo.mentions(index) || range.hi.mentions(index),
        Stmt::If { cond, .. } => {
            let mut names = Default::default();
            cond.collect_names(&mut names);
            names.contains(&index)
        }
        _ => false,
    }
}

/// The pairs of iterations whose order changes.
struct Reordered<'a> {
    nest: &'a Nest,
    facts: Facts,
    index: Name,
    /// All that is declared inside: each copy has its own.
    private: HashSet<Name>,
    /// The loop that is jammed, and the loops that it has moved into.
    loops: Vec<(Name, Range)>,
    found: Vec<Status>,
}

impl Reordered<'_> {
    fn part(&self, block: &[Stmt]) -> Footprint {
        self.nest.ordered(Footprint::of(&self.nest.program, block)).only(|name| !self.private.contains(&name))
    }

    /// Of iterations of the loops so far for which `when` holds.
    fn block(&mut self, block: &[Stmt], when: &Cond) -> Done<()> {
        for (at, stmt) in block.iter().enumerate() {
            // The earlier iteration is here when the later one has done what stands before.
            let here = self.part(std::slice::from_ref(stmt));
            if at > 0 && !(here.accesses.is_empty() && here.swapped.is_empty()) {
                let before = self.part(&block[..at]);
                self.found.push(apart(&self.facts, &self.loops, &here, &before, when));
            }
            match stmt {
                _ if depends(stmt, self.index) => {}
                Stmt::For { index, range, body, .. } => {
                    let (one, two) = (Ix::var(first(*index)), Ix::var(second(*index)));
                    self.loops.push((*index, range.clone()));
                    let part = self.part(body);
                    let ahead = when.clone().and(Cond::lt(&two, &one)?);
                    self.found.push(apart(&self.facts, &self.loops, &part, &part, &ahead));
                    self.block(body, &when.clone().and(Cond::eq(&one, &two)?))?;
                    self.loops.pop();
                }
                _ => {
                    for (number, inner) in stmt.blocks().enumerate() {
                        let known = |name: Name| {
                            self.loops.iter().any(|(index, _)| *index == name).then(|| Ix::var(first(name)))
                        };
                        let holds = stmt.holds_in(number)?.substitute(&known)?;
                        self.block(inner, &when.clone().and(holds))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The copies of iterations, side by side.
struct Jam<'a> {
    nest: &'a mut Nest,
    index: Name,
    taken: HashSet<Name>,
}

impl Jam<'_> {
    fn block(&mut self, block: &[Stmt], mut copies: Vec<Edit>) -> Done<Vec<Stmt>> {
        let mut out = Vec::new();
        for stmt in block {
            match stmt {
                Stmt::Nest(_) => out.push(stmt.clone()),
                _ if depends(stmt, self.index) => {
                    for (number, copy) in copies.iter().enumerate() {
                        let (one, suffix) = (std::slice::from_ref(stmt), format!("u{number}"));
                        out.extend(self.nest.copy_beside(one, &suffix, copy.clone(), &mut self.taken)?);
                    }
                }
                Stmt::For { .. } | Stmt::If { .. } => {
                    let mut one = stmt.clone();
                    one.map_blocks(|_, inner| self.block(&inner, copies.clone()))?;
                    out.push(one);
                }
                Stmt::Local { name, .. } | Stmt::Alloc(name, _) => {
                    for copy in &mut copies {
                        let new = Name::fresh(name.as_str(), |name| self.taken.contains(&name));
                        self.taken.insert(new);
                        copy.names.insert(*name, new);
                        out.push(copy.stmt(&mut self.nest.program, stmt)?);
                    }
                }
                _ => {
                    for copy in &copies {
                        out.push(copy.stmt(&mut self.nest.program, stmt)?);
                    }
                }
            }
        }
        Ok(out)
    }
}
