//! `inline`: the elements of stages are computed where they are read.
//!
//! A stage is made of assignments of elements, in loops and under conditions. Which iteration of which assignment stored
//! the element that is read follows from its indices; the prover has to show that the iteration exists, and that no other
//! one stores the element later.

use std::collections::{BTreeSet, HashMap, HashSet};

use certen_core::{Range, TermId};
use certen_index::{Cond, Facts, Ix, IxError, Proof, Status};
use certen_loops::{LoopProgram, Site, Stmt, Target, Use, sites, statements, within};
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::depend::second;
use crate::edit::Edit;
use crate::nest::Nest;
use crate::refusal::{Done, Refusal};
use crate::rewrite::{with_locals, with_reads};
use crate::stages::{Stage, Stored};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "inline",
    usage: "inline(stage, …)",
    about: "The stages are not stored any more: where an element of one is read, the expression for that element is put in \
            its place. An element that is read several times is computed several times. Stages are taken in this order.",
    legal: "What the stage is computed from is not overwritten before the stage is read.",
    peers: "Halide: compute_inline, the default; TVM: compute_inline; Exo: inline_assign; ATL: fusion by `let` elimination",
    example: Example {
        program: "loops blur\nsize h, w\nwhere h >= 2, w >= 2\ninput x : f64[h, w]\noutput y : f64[h - 2, w - 2]\n\
                  alloc rows : f64[h, w - 2]\nnest rows\nfor i in 0..h {\n    for j in 0..w - 2 {\n        \
                  rows[i, j] = x[i, j] * x[i, j + 2]\n    }\n}\nnest y\nfor i in 0..h - 2 {\n    \
                  for j in 0..w - 2 {\n        y[i, j] = rows[i, j] + rows[i + 2, j]\n    }\n}\nfree rows\n",
        steps: "inline(rows)",
    },
    apply: |nest, args| {
        let mut stages = vec![args.path("a stage")?];
        while args.left() > 0 {
            stages.push(args.path("a stage")?);
        }
        stages.into_iter().try_for_each(|stage| {
            let stored = nest.stored(stage)?;
            inline(nest, &stored)
        })
    },
};

/// An assignment of elements of a stage.
struct Assignment {
    /// The statement of the stage that it is part of.
    top: usize,
    loops: Vec<(Name, Range)>,
    conds: Vec<Cond>,
    indices: Box<[Ix]>,
    value: TermId,
}

/// Puts the values of a stage in the places where they are read.
pub(crate) fn inline(nest: &mut Nest, stored: &Stored) -> Done<()> {
    let stage = nest.made(stored)?;
    let name = stored.name;
    nest.keeps_sources(&stage)?;
    let pieces = Assignments::of(nest, &stage)?.found;
    let facts = nest.facts(&stage.block)?;
    let mut proofs = Vec::new();
    for &user in &stage.users {
        let place = stage.block.beside(user);
        let Some(stmt) = nest.stmt(&place).cloned() else { continue };
        let mut read = |program: &mut LoopProgram, known: &[Cond], read: Name, indices: &[Ix]| {
            if read != name {
                return Ok(None);
            }
            let mut facts = facts.clone();
            known.iter().for_each(|cond| facts.assume(cond.clone()));
            let element = Target::Element(name, indices.into());
            let Some((piece, at)) = stored_by(&facts, &pieces, indices, &mut proofs)? else {
                let refusal =
                    Refusal::cannot(format!("it is not shown which statement computes the element {element}"));
                return Err(refusal.at(&place).help(instead(name)));
            };
            Ok(Some(Edit { indices: at, ..Edit::default() }.value(program, piece.value)?))
        };
        let stmts = with_reads(&mut nest.program, std::slice::from_ref(&stmt), &mut read)?;
        nest.replace(&place, stmts)?;
    }
    nest.condition(
        format!("every element of `{name}` that is read is computed by one iteration of its loops"),
        Status::Proved(proofs),
    );
    nest.take_out(&stage)
}

fn instead(name: Name) -> String {
    format!("`compute_at({name}, loop)` computes the part that an iteration of a loop reads")
}

/// The pieces of a stage, in the order of the text.
struct Assignments<'a> {
    stage: &'a Stage,
    /// Locals that are assigned again after they are declared.
    assigned: HashSet<Name>,
    /// The values of the others.
    locals: HashMap<Name, TermId>,
    found: Vec<Assignment>,
}

impl<'a> Assignments<'a> {
    fn of(nest: &mut Nest, stage: &'a Stage) -> Done<Assignments<'a>> {
        let stmts = nest.statements(stage);
        let mut pieces = Assignments { stage, assigned: HashSet::new(), locals: HashMap::new(), found: Vec::new() };
        for stmt in statements(&stmts) {
            if let Stmt::Assign { target: Target::Local(name), .. } = stmt {
                pieces.assigned.insert(*name);
            }
        }
        for site in sites(&stmts) {
            pieces.add(nest, &site)?;
        }
        Ok(pieces)
    }

    fn refused(&self, why: &str) -> Refusal {
        let name = self.stage.stored.name;
        let refusal = Refusal::cannot(format!("`{name}` {why}, so no expression stands for its elements"));
        refusal.at_all(&self.stage.maker_places()).help(instead(name))
    }

    fn add(&mut self, nest: &mut Nest, site: &Site<'_>) -> Done<()> {
        match site.stmt {
            Stmt::Local { name, init: Some(init), .. } if !self.assigned.contains(name) => {
                let value = with_locals(&mut nest.program, *init, &self.locals)?;
                self.locals.insert(*name, value);
            }
            Stmt::Assign { target: Target::Element(name, indices), op: None, value }
                if *name == self.stage.stored.name =>
            {
                let uses = site.stmt.uses(&nest.program.terms);
                if uses.iter().any(|(read, _, how)| read == name && *how == Use::Read) {
                    return Err(self.refused("is computed from its own elements"));
                }
                let value = with_locals(&mut nest.program, *value, &self.locals)?;
                let top = site.around.first().map_or(site.at, |around| around.at);
                let loops = site.loops().map(|(index, range)| (index, range.clone())).collect();
                let conds = site.conds().collect::<Result<_, _>>()?;
                self.found.push(Assignment { top, loops, conds, indices: indices.clone(), value });
            }
            Stmt::Assign { op: Some(_), .. } => return Err(self.refused("is made of sums or the like")),
            Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => {
                return Err(self.refused("is computed with a buffer of its own"));
            }
            Stmt::Local { .. } | Stmt::Assign { .. } => return Err(self.refused("is computed step by step")),
            _ => {}
        }
        Ok(())
    }
}

/// The piece that stored an element, and the iteration in which it did.
fn stored_by<'a>(
    facts: &Facts,
    pieces: &'a [Assignment],
    indices: &[Ix],
    proofs: &mut Vec<Proof>,
) -> Done<Option<(&'a Assignment, Iteration)>> {
    for (number, piece) in pieces.iter().enumerate().rev() {
        if let Some((at, mut shown)) = piece.iteration(facts, indices)? {
            // Those after it were shown not to store the element. Those before it may do so later if they are in the same
            // loop.
            for other in pieces[..number].iter().filter(|other| other.top == piece.top) {
                let Some(proof) = other.stores_not(facts, indices)? else { return Ok(None) };
                shown.push(proof);
            }
            proofs.extend(shown);
            return Ok(Some((piece, at)));
        }
        let Some(proof) = piece.stores_not(facts, indices)? else { return Ok(None) };
        proofs.push(proof);
    }
    Ok(None)
}

/// An iteration, by the values of its loops' indices.
type Iteration = HashMap<Name, Ix>;

impl Assignment {
    /// The only iteration that stores an element, if there is one and that is shown.
    fn iteration(&self, facts: &Facts, element: &[Ix]) -> Result<Option<(Iteration, Vec<Proof>)>, IxError> {
        let Some((at, several)) = self.solved(element)? else { return Ok(None) };
        let edit = Edit { indices: at, ..Edit::default() };
        let mut goals = Vec::new();
        for (name, range) in &self.loops {
            let Some(value) = edit.indices.get(name) else { return Ok(None) };
            goals.push(Cond::le(&edit.ix(&range.lo)?, value)?);
            goals.push(Cond::lt(value, &edit.ix(&range.hi)?)?);
        }
        for cond in &self.conds {
            goals.push(edit.cond(cond)?);
        }
        for (stored, read) in self.indices.iter().zip(element) {
            goals.push(Cond::eq(&edit.ix(stored)?, read)?);
        }
        let mut proofs = Vec::new();
        for goal in goals.into_iter().filter(|goal| !goal.is_always()) {
            match Proof::find(facts, goal) {
                Ok(proof) => proofs.push(proof),
                Err(_) => return Ok(None),
            }
        }
        if several {
            let (facts, stored) = self.second(facts)?;
            for (name, value) in &edit.indices {
                let mut goal = Cond::eq(&Ix::var(second(*name)), value)?;
                for (stored, read) in stored.iter().zip(element) {
                    goal = goal.or(Cond::eq(stored, read)?.not()?);
                }
                match Proof::find(&facts, goal) {
                    Ok(proof) => proofs.push(proof),
                    Err(_) => return Ok(None),
                }
            }
        }
        Ok(Some((edit.indices, proofs)))
    }

    /// The values of the loops' indices for which the stored element is this one, and whether a dimension depends on
    /// several of them.
    fn solved(&self, element: &[Ix]) -> Result<Option<(Iteration, bool)>, IxError> {
        let names: BTreeSet<Name> = self.loops.iter().map(|(name, _)| *name).collect();
        let (mut at, mut several) = (HashMap::new(), false);
        for (stored, read) in self.indices.iter().zip(element) {
            let mut factors = Vec::new();
            let mut rest = stored.clone();
            for name in &names {
                if let Some((factor, other)) = rest.linear_in(*name) {
                    factors.push((factor, *name));
                    rest = other;
                }
            }
            let mut left = read.sub(&rest)?;
            if names.iter().any(|name| rest.mentions(*name)) || factors.iter().any(|(_, name)| at.contains_key(name)) {
                return Ok(None);
            }
            // Blocks first, then what is left inside a block.
            factors.sort_by_key(|(factor, _)| std::cmp::Reverse(factor.unsigned_abs()));
            several |= factors.len() > 1;
            for (factor, name) in factors {
                let size = match i64::try_from(factor.unsigned_abs()) {
                    Ok(size) => size,
                    Err(_) => return Ok(None),
                };
                let value = left.scale(factor.signum())?.floor_div(size)?;
                left = left.sub(&value.scale(factor)?)?;
                at.insert(name, value);
            }
        }
        Ok(names.iter().all(|name| at.contains_key(name)).then_some((at, several)))
    }

    /// A second copy of the piece's loops: what holds in it, and the indices of the element that it stores.
    fn second(&self, facts: &Facts) -> Result<(Facts, Vec<Ix>), IxError> {
        let mut facts = facts.clone();
        let names: HashMap<Name, Ix> = self.loops.iter().map(|(name, _)| (*name, Ix::var(second(*name)))).collect();
        let edit = Edit { indices: names, ..Edit::default() };
        for (name, range) in &self.loops {
            facts.assume(within(second(*name), &edit.range(range)?)?);
        }
        for cond in &self.conds {
            facts.assume(edit.cond(cond)?);
        }
        Ok((facts, self.indices.iter().map(|ix| edit.ix(ix)).collect::<Result<_, _>>()?))
    }

    /// That no iteration stores an element, if that is shown.
    fn stores_not(&self, facts: &Facts, element: &[Ix]) -> Result<Option<Proof>, IxError> {
        let (facts, stored) = self.second(facts)?;
        let mut goal = Cond::never();
        for (stored, read) in stored.iter().zip(element) {
            goal = goal.or(Cond::eq(stored, read)?.not()?);
        }
        Ok(Proof::find(&facts, goal).ok())
    }
}
