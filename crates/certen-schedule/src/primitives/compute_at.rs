//! `compute_at`: a stage is computed where it is read, piece by piece.

use certen_core::{Range, TensorType};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_loops::{Stmt, Use, within};
use certen_syntax::Name;

use super::{Example, Primitive};
use crate::depend::{Access, Footprint};
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal, listed};
use crate::region::{Region, interval};
use crate::rewrite::Moved;
use crate::stages::{Stage, Stored, demoted};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "compute_at",
    usage: "compute_at(stage, loop)",
    about: "The stage is no longer computed as a whole before it is read: each iteration of `loop` begins with computing \
            the part that it reads, into a small buffer of its own. Where the parts of two iterations overlap, elements \
            are computed again.",
    legal: "What the stage is computed from is not overwritten before the stage is read.",
    peers: "Halide and TVM: compute_at; Exo: fuse after fission; TACO: precompute",
    example: Example {
        program: "loops blur\nsize h, w\nwhere h >= 2, w >= 2\ninput x : f64[h, w]\noutput y : f64[h - 2, w - 2]\n\
                  alloc rows : f64[h, w - 2]\nnest rows\nfor i in 0..h {\n    for j in 0..w - 2 {\n        \
                  rows[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]\n    }\n}\nnest y\nfor i in 0..h - 2 {\n    \
                  for j in 0..w - 2 {\n        y[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]\n    }\n}\n\
                  free rows\n",
        steps: "split(i, 32); compute_at(rows, i.o)",
    },
    apply: |nest, args| {
        let stored = nest.stored(args.path("a stage")?)?;
        let place = nest.find(args.path("a loop that reads it")?)?;
        args.end()?;
        compute_at(nest, &stored, &place)
    },
};

/// Computes a stage at the beginning of each iteration of the loop at a place.
pub(crate) fn compute_at(nest: &mut Nest, stored: &Stored, place: &Place) -> Done<()> {
    let stage = nest.made(stored)?;
    let name = stored.name;
    let reader = nest.loop_at(place)?;
    if stage.block.path != stored.alloc.path {
        let refusal = Refusal::cannot(format!("`{name}` is computed and read in the same loop already"));
        return Err(refusal.at_all(&stage.block.around()));
    }
    readers_inside(nest, &stage, place, &reader)?;
    nest.keeps_sources(&stage)?;
    let facts = nest.facts(&place.inside(0))?;
    let part = Footprint::of(&nest.program, &reader.body);
    let region = Region::of(&facts, &stored.ty, part.reads_of(name))?;
    let makers = nest.statements(&stage);
    let mut makers = nest.named_apart(place, &makers)?;
    demoted(&mut makers, &nest.modes_around(place)?);
    let makers = Restriction { nest, name, region: &region }.block(&facts, &makers)?;
    let ty = TensorType::new(stored.ty.elem, region.shape());
    let moved = Moved::based(name, name, ty.clone(), region.base());
    let mut body = vec![Stmt::Alloc(name, ty), Stmt::Nest(name)];
    body.extend(moved.block(&mut nest.program, &makers)?);
    body.extend(nest.label(place, &reader.body));
    body.extend(moved.block(&mut nest.program, &reader.body)?);
    body.push(Stmt::Free(name));
    nest.replace(place, [Loop { body, ..reader }.into()])?;
    nest.take_out(&stage)
}

/// That a stage is read in the body of a loop, and nowhere else.
fn readers_inside(nest: &Nest, stage: &Stage, place: &Place, reader: &Loop) -> Done<()> {
    let Stored { name, alloc, .. } = &stage.stored;
    let (name, called) = (*name, nest.called_at(place).unwrap_or_else(|| format!("the loop `{}`", reader.index)));
    let depth = alloc.path.len();
    let same_block = place.path.len() >= depth && place.path[..depth] == alloc.path[..];
    if same_block && stage.makers.contains(&place.at_depth(depth).at) {
        let refusal = Refusal::cannot(format!("{called} is one of those that compute `{name}`"));
        return Err(refusal
            .at(place)
            .help(format!("a stage is computed at a loop that reads it: {}", ways(nest, name))));
    }
    if !nest.touch(&reader.body, name).reads || !same_block {
        let refusal = Refusal::cannot(format!("{called} does not read `{name}`")).at(place);
        return Err(refusal.help(format!("these loops do: {}", ways(nest, name))));
    }
    // Every statement that reads it, on the way from the block of the allocation to the loop.
    let mut outside = Vec::new();
    for level in depth..=place.path.len() {
        let way = place.at_depth(level);
        let taken = place.path.get(level).map(|turn| turn.block);
        for (at, stmt) in nest.block(&way).iter().enumerate() {
            let elsewhere = match (at == way.at, taken) {
                (false, _) => nest.touch(std::slice::from_ref(stmt), name).reads,
                (true, Some(taken)) => {
                    let mut others = stmt.blocks().enumerate().filter(|(block, _)| *block != taken);
                    others.any(|(_, block)| nest.touch(block, name).reads)
                }
                (true, None) => false,
            };
            if elsewhere {
                outside.push(way.beside(at));
            }
        }
    }
    if outside.is_empty() {
        return Ok(());
    }
    let what = |place: &Place| nest.called_at(place).unwrap_or_else(|| "a statement".into());
    let others: Vec<String> = outside.iter().map(what).collect();
    let refusal = Refusal::cannot(format!("`{name}` is read outside {called} too: by {}", others.join(", ")));
    Err(refusal.at_all(&outside).help("a loop around all readers can be given, or the readers can be fused first"))
}

/// The loops that read a buffer, as a schedule calls them.
fn ways(nest: &Nest, name: Name) -> String {
    let reading = nest.called_where(|stmt| match stmt {
        Stmt::For { body, .. } => nest.touch(body, name).reads,
        _ => false,
    });
    if reading.is_empty() { "there are none".into() } else { listed(reading.iter()) }
}

/// The part of a computation that stores elements of a region.
pub(crate) struct Restriction<'a> {
    pub nest: &'a Nest,
    pub name: Name,
    pub region: &'a Region,
}

impl Restriction<'_> {
    /// The block without what stores elements outside the region: loops are cut, and what cannot be cut off asks.
    pub(crate) fn block(&self, facts: &Facts, block: &[Stmt]) -> Done<Vec<Stmt>> {
        block.iter().map(|stmt| self.stmt(facts, stmt)).collect()
    }

    fn stmt(&self, facts: &Facts, stmt: &Stmt) -> Done<Stmt> {
        let mut stmt = stmt.clone();
        if let Stmt::For { index, range, body, .. } = &mut stmt {
            *range = self.range(facts, *index, range, body)?;
        }
        stmt.map_blocks(|known, inner| {
            let mut inside = facts.clone();
            inside.assume(known?);
            self.block(&inside, &inner)
        })?;
        let Some((_, indices)) = stmt.element().filter(|(name, _)| *name == self.name) else { return Ok(stmt) };
        let mut outside = Cond::always();
        for (index, dim) in indices.iter().zip(&self.region.dims) {
            for goal in [Cond::le(&dim.lo, index)?, Cond::lt(index, &dim.hi()?)?] {
                if facts.prove(&goal) != Verdict::Yes {
                    outside = outside.and(goal);
                }
            }
        }
        Ok(match outside.is_always() {
            true => stmt,
            false => Stmt::If { cond: outside, then: vec![stmt], otherwise: Vec::new() },
        })
    }

    /// The iterations of a loop that store elements of the region, and perhaps others.
    fn range(&self, facts: &Facts, index: Name, range: &Range, body: &[Stmt]) -> Result<Range, IxError> {
        let part = Footprint::of(&self.nest.program, body);
        // An iteration without a store is left out only if it does nothing else.
        if part.accesses.iter().any(|access| access.how != Use::Read && access.name != self.name) {
            return Ok(range.clone());
        }
        let mut inside = facts.clone();
        inside.assume(within(index, range)?);
        let stores: Vec<&Access> = part.accesses.iter().filter(|a| a.name == self.name && a.how != Use::Read).collect();
        let mut cut = range.clone();
        for (at, dim) in self.region.dims.iter().enumerate() {
            let mut ends: Option<(Ix, Ix)> = None;
            let mut all = !stores.is_empty();
            for store in &stores {
                let Some((lo, hi)) = self.iterations(&inside, index, store, at, (&dim.lo, &dim.hi()?))? else {
                    all = false;
                    break;
                };
                ends = Some(match ends {
                    None => (lo, hi),
                    Some((a, b)) => (a.min_with(&lo)?, b.max_with(&hi)?),
                });
            }
            if let Some((lo, hi)) = ends.filter(|_| all) {
                cut = Range { lo: cut.lo.max_with(&lo)?, hi: cut.hi.min_with(&hi)? };
            }
        }
        Ok(Range { lo: cut.lo.simplified(facts)?, hi: cut.hi.simplified(facts)? })
    }

    /// The values of a loop's index for which a store can be between two ends in a dimension.
    fn iterations(
        &self,
        facts: &Facts,
        index: Name,
        store: &Access,
        dim: usize,
        (lo, hi): (&Ix, &Ix),
    ) -> Result<Option<(Ix, Ix)>, IxError> {
        let Some(stored) = store.indices.get(dim) else { return Ok(None) };
        let Some((least, most)) = interval(facts, stored, store)? else { return Ok(None) };
        let one = Ix::from(1);
        // Where `least < hi` and `most >= lo`: a minimum is at most each of its parts, a maximum at least.
        let below = least.largest_of()?.iter().find_map(|part| part.linear_in(index));
        let above = most.smallest_of()?.iter().find_map(|part| part.linear_in(index));
        let (Some((c, below)), Some((d, above))) = (below, above) else { return Ok(None) };
        // c*i + below < hi and d*i + above >= lo
        let (up, down) = (hi.sub(&below)?.sub(&one)?, lo.sub(&above)?);
        if c > 0 && d > 0 {
            return Ok(Some((down.ceil_div(d)?, up.floor_div(c)?.add(&one)?)));
        }
        let (Some(c), Some(d)) = (c.checked_neg(), d.checked_neg()) else { return Ok(None) };
        if c > 0 && d > 0 {
            return Ok(Some((up.scale(-1)?.ceil_div(c)?, down.scale(-1)?.floor_div(d)?.add(&one)?)));
        }
        Ok(None)
    }
}
