//! `round`: blocks that are not full run to their end, in buffers that have room for it.
//!
//! A tile of registers, or the copy of a panel, has the size of a full block, and the loops over the last block end
//! earlier. These loops run on: an iteration after their end repeats the last one, and writes elements of the tile that
//! nothing else reads. All blocks have the same number of iterations then, so that they are unrolled and vectorised alike.
//!
//! Which loops run on is the largest set that agrees with itself: what such a loop writes are elements of buffers of the
//! block, at its index, in a dimension that only loops with the same end use, and of those all that write run on. So no
//! element after the end has been there for anything else. Everywhere but in these dimensions the index stays at the last
//! iteration's.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use certen_core::{Range, TensorType, Term, TermId, Terms};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_loops::{LoopProgram, Site, Stmt, Use, as_element, declared, sites, statements};
use certen_syntax::Name;

use super::layout::pad;
use super::{Example, Primitive};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "round",
    usage: "round(loop) or round(loop, multiple)",
    about: "In each iteration of `loop`, which runs over blocks, the loops that end before the block is full run to its \
            end, as far as they write only buffers of the block, such as a tile of sums or a copy of a panel, which \
            have room for it; the others have a loop for full blocks and one for the rest. What they do beyond their end \
            repeats their last iteration, and is not used. So the last block runs as the full ones do. With a number, loops \
            whose end is a number run to the next multiple of it, and the rows of the block's own buffers get room for that.",
    legal: "Always: elements that nothing else uses are computed too. Loops that write anything else stay as they are.",
    peers: "Halide: TailStrategy::RoundUp with padded storage; BLIS: micro-kernels on zero-padded panels",
    example: Example {
        program: "loops sums\nsize m, n\nwhere m >= 1, n >= 1\ninput x : f64[m, n]\noutput y : f64[m]\nnest y\n\
                  for i in 0..m {\n    local acc : f64 = 0.0\n    for j in 0..n {\n        acc += x[i, j]\n    }\n    \
                  y[i] = acc\n}\n",
        steps: "split(i, 4); reorder([j, i.i]); round(i.o)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop over blocks")?)?;
        let multiple = match args.left() {
            0 => None,
            _ => Some(args.at_least(1, "the multiple")?),
        };
        args.end()?;
        round(nest, &place, multiple)
    },
};

/// A loop of the body that begins at 0.
struct Inner {
    index: Name,
    end: Ix,
    /// Whether it runs on.
    runs_on: bool,
    /// What it writes that is declared around it: a dimension of a buffer that has its index alone, or something else.
    writes: Vec<Option<Dim>>,
}

/// A dimension of a buffer.
type Dim = (Name, usize);

/// A dimension of a buffer that the body allocates, if loops with the same end use it and nothing else does.
struct Room {
    size: i64,
    end: Ix,
    /// The loops that write it, by their places in the body.
    writers: BTreeSet<Place>,
}

/// Lets the loops in the body of the loop at a place run on.
fn round(nest: &mut Nest, place: &Place, multiple: Option<i64>) -> Done<()> {
    if let Some(multiple) = multiple {
        pad_rows(nest, place, multiple)?;
    }
    let outer = nest.loop_at(place)?;
    let facts = nest.facts(&place.inside(0))?;
    let sites = sites(&outer.body);
    let rooms = rooms(&nest.program, &sites);
    let own = declared(&outer.body);
    let mut wholes: HashMap<Ix, i64> = HashMap::new();
    // A block ends where its loop says, or at a number; the same expression is the same end only if nothing in the body
    // changes it.
    let is_of_block = |end: &Ix| end.mentions(outer.index) || end.as_constant().is_some();
    let is_fixed = |end: &Ix| !own.iter().any(|name| end.mentions(*name));
    for room in rooms.values().filter(|room| is_of_block(&room.end) && is_fixed(&room.end)) {
        let size = match (multiple, room.end.as_constant()) {
            (Some(multiple), Some(end)) => (end.max(1) as u64).next_multiple_of(multiple as u64) as i64,
            _ => room.size,
        };
        if size <= room.size && is_at_least(&facts, &room.end, 1)? && is_at_most(&facts, &room.end, size)? {
            let whole = wholes.entry(room.end.clone()).or_insert(size);
            *whole = size.min(*whole);
        }
    }
    wholes.retain(|end, whole| *end != Ix::from(*whole));
    let mut loops = inner_loops(&nest.program, &sites, &rooms);
    loops.values_mut().for_each(|inner| inner.runs_on = wholes.contains_key(&inner.end));
    let has_room = |loops: &BTreeMap<Place, Inner>, dim: &Dim| {
        let fits = |room: &&Room| wholes.get(&room.end).is_some_and(|whole| *whole <= room.size);
        let runs_on = |writer: &Place| loops.get(writer).is_some_and(|inner| inner.runs_on);
        rooms.get(dim).filter(fits).is_some_and(|room| room.writers.iter().all(runs_on))
    };
    loop {
        let stops = |inner: &Inner| {
            let all = |dim: &Option<Dim>| dim.is_some_and(|dim| has_room(&loops, &dim));
            inner.runs_on && !inner.writes.iter().all(all)
        };
        let stopped: BTreeSet<Place> =
            loops.iter().filter(|(_, inner)| stops(inner)).map(|(at, _)| at.clone()).collect();
        if stopped.is_empty() {
            break;
        }
        loops.iter_mut().filter(|(at, _)| stopped.contains(at)).for_each(|(_, inner)| inner.runs_on = false);
    }
    let ends = loops.iter().filter(|(_, inner)| inner.runs_on);
    let ends: BTreeMap<Place, i64> = ends.map(|(at, inner)| (at.clone(), wholes[&inner.end])).collect();
    if ends.is_empty() {
        let refusal = Refusal::cannot(format!("no loop in the body of `{}` can run on", outer.index)).at(place);
        return Err(refusal
            .note("a loop runs on if it ends before a block does and writes only a buffer of the block that has room")
            .help("`reorder` with a sum outside makes a tile of sums, and `stage` the copy of a panel"));
    }
    let dims = rooms.keys().copied().filter(|dim| has_room(&loops, dim)).collect();
    let pass = Pass { ends, wholes, dims, filled: filled(&nest.program) };
    let body = pass.block(nest, None, &outer.body, &HashMap::new())?;
    nest.replace(place, [Loop { body, ..outer }.into()])
}

/// Gives rows that loops inside a loop fill, so many elements that it is a number, room up to the next multiple.
fn pad_rows(nest: &mut Nest, place: &Place, multiple: i64) -> Done<()> {
    let rooms = {
        let outer = nest.loop_at(place)?;
        rooms(&nest.program, &sites(&outer.body))
    };
    for stored in nest.allocated().into_iter().filter(|stored| place.contains(&stored.alloc)) {
        let row = stored.ty.rank().checked_sub(1).and_then(|last| rooms.get(&(stored.name, last)));
        if row.is_some_and(|row| row.end == Ix::from(row.size)) {
            pad(nest, &stored, multiple)?;
        }
    }
    Ok(())
}

fn is_at_least(facts: &Facts, e: &Ix, least: i64) -> Done<bool> {
    Ok(facts.prove(&Cond::le(&Ix::from(least), e)?) == Verdict::Yes)
}

fn is_at_most(facts: &Facts, e: &Ix, most: i64) -> Done<bool> {
    Ok(facts.prove(&Cond::le(e, &Ix::from(most))?) == Verdict::Yes)
}

/// The loop around a statement that an expression is the index of: its place, its range.
fn loop_of<'a>(site: &Site<'a>, ix: &Ix) -> Option<(Place, &'a Range)> {
    let name = ix.as_var()?;
    let depth = site.around.iter().rposition(|around| around.stmt.declares() == Some(name))?;
    match site.around[depth].stmt {
        Stmt::For { range, .. } => Some((Place::of(site).at_depth(depth), range)),
        _ => None,
    }
}

/// The dimensions of buffers that are allocated there, with a number of elements, that only loops from 0 to the same end
/// use.
fn rooms(program: &LoopProgram, sites: &[Site<'_>]) -> BTreeMap<Dim, Room> {
    let mut sizes: HashMap<Dim, Option<i64>> = HashMap::new();
    for site in sites {
        if let Stmt::Alloc(name, ty) = site.stmt {
            for (dim, size) in ty.shape.iter().enumerate() {
                let size = size.as_constant();
                sizes
                    .entry((*name, dim))
                    .and_modify(|known| *known = known.filter(|k| Some(*k) == size))
                    .or_insert(size);
            }
        }
    }
    let mut rooms: BTreeMap<Dim, Room> = BTreeMap::new();
    let mut wrong: BTreeSet<Dim> = BTreeSet::new();
    for site in sites {
        for (name, indices, how) in site.stmt.uses(&program.terms) {
            if how == Use::Exchange {
                wrong.extend(sizes.keys().copied().filter(|(of, _)| *of == name));
            }
            for (dim, ix) in indices.iter().enumerate() {
                let dim = (name, dim);
                let Some(Some(size)) = sizes.get(&dim) else { continue };
                let Some((at, range)) = loop_of(site, ix).filter(|(_, range)| range.lo == Ix::from(0)) else {
                    wrong.insert(dim);
                    continue;
                };
                let new = || Room { size: *size, end: range.hi.clone(), writers: BTreeSet::new() };
                let room = rooms.entry(dim).or_insert_with(new);
                if room.end != range.hi {
                    wrong.insert(dim);
                }
                if how != Use::Read {
                    room.writers.insert(at);
                }
            }
        }
    }
    rooms.retain(|dim, _| !wrong.contains(dim));
    rooms
}

/// The loops from 0, with what they write.
fn inner_loops(program: &LoopProgram, sites: &[Site<'_>], rooms: &BTreeMap<Dim, Room>) -> BTreeMap<Place, Inner> {
    let mut loops: BTreeMap<Place, Inner> = BTreeMap::new();
    for site in sites {
        if let Stmt::For { index, range, .. } = site.stmt
            && range.lo == Ix::from(0)
        {
            let inner = Inner { index: *index, end: range.hi.clone(), runs_on: false, writes: Vec::new() };
            loops.insert(Place::of(site), inner);
        }
        let written = site.stmt.uses(&program.terms).into_iter().filter(|(.., how)| *how != Use::Read);
        for (name, indices, how) in written {
            for depth in 0..site.around.len() {
                let around = Place::of(site).at_depth(depth);
                let Some(inner) = loops.get_mut(&around) else { continue };
                let Stmt::For { body, .. } = site.around[depth].stmt else { continue };
                if statements(body).any(|stmt| stmt.declares() == Some(name)) {
                    continue;
                }
                let own = Ix::var(inner.index);
                let dim = indices.iter().position(|ix| *ix == own).filter(|_| how != Use::Exchange);
                inner.writes.push(dim.map(|dim| (name, dim)).filter(|dim| rooms.contains_key(dim)));
            }
        }
    }
    loops
}

/// The dimensions of buffers of the program that are filled up, which is a number: loops from 0 to it are all that write them, or
/// pairs of loops of which the second goes on where the first ends.
fn filled(program: &LoopProgram) -> BTreeMap<Dim, i64> {
    let all = sites(&program.body);
    let mut types: HashMap<Name, Vec<&TensorType>> = HashMap::new();
    let mut writers: BTreeMap<Dim, Vec<Option<(Place, &Range)>>> = BTreeMap::new();
    for site in &all {
        if let Stmt::Alloc(name, ty) = site.stmt {
            types.entry(*name).or_default().push(ty);
        }
        for (name, indices, how) in site.stmt.uses(&program.terms).into_iter().filter(|(.., how)| *how != Use::Read) {
            for (dim, ix) in indices.iter().enumerate() {
                let writer = loop_of(site, ix).filter(|_| how != Use::Exchange);
                writers.entry((name, dim)).or_default().push(writer);
            }
        }
    }
    let size = |(name, dim): &Dim| match types.get(name)?.as_slice() {
        [ty] => ty.shape[*dim].as_constant(),
        _ => None,
    };
    let is_filled = |loops: &[Option<(Place, &Range)>], size: &Ix| {
        let goes = |place: &Place, lo: &Ix, hi: &Ix| {
            let is_it = |(other, range): &(Place, &Range)| other == place && range.lo == *lo && range.hi == *hi;
            loops.iter().flatten().any(is_it)
        };
        loops.iter().all(|writer| {
            let Some((place, Range { lo, hi })) = writer else { return false };
            let beside = |at: usize| Place { at, ..place.clone() };
            let zero = Ix::from(0);
            match (*lo == zero, hi == size) {
                (true, true) => true,
                (true, false) => goes(&beside(place.at + 1), hi, size),
                (false, true) => place.at > 0 && goes(&beside(place.at - 1), &zero, lo),
                (false, false) => false,
            }
        })
    };
    let filled = writers.iter().filter_map(|(dim, loops)| Some((*dim, loops, size(dim)?)));
    filled.filter(|(_, loops, size)| is_filled(loops, &Ix::from(*size))).map(|(dim, _, size)| (dim, size)).collect()
}

/// Whether a value is defined whatever numbers it is made from: it has floats only.
fn is_total(terms: &Terms, value: TermId) -> bool {
    terms.parts_first(value).into_iter().all(|id| terms.ty(id).elem.is_float())
}

/// The loops that run on, by their places in the body, with their new ends.
struct Pass {
    ends: BTreeMap<Place, i64>,
    /// The number of iterations in a full block, by the end of the block. Loops that do not run on are told apart by it.
    wholes: HashMap<Ix, i64>,
    /// The dimensions that have room for it.
    dims: BTreeSet<Dim>,
    /// Those that have defined elements there already, and how many in all.
    filled: BTreeMap<Dim, i64>,
}

/// Indices that stay at the last iteration of their loops.
fn edit(last: &HashMap<Name, (Ix, i64)>) -> Edit {
    let indices = last.iter().map(|(name, (last, _))| (*name, last.clone())).collect();
    Edit { indices, ..Edit::default() }
}

impl Pass {
    /// A block of the statement at a place of the body, or the body itself; `last` has the indices of the loops around
    /// that run on, as they are to stay at their last iteration, and how far they run.
    fn block(
        &self,
        nest: &mut Nest,
        around: Option<(&Place, usize)>,
        block: &[Stmt],
        last: &HashMap<Name, (Ix, i64)>,
    ) -> Done<Vec<Stmt>> {
        let mut done = Vec::with_capacity(block.len());
        let edit = edit(last);
        for (at, stmt) in block.iter().enumerate() {
            let place = match around {
                Some((around, turn)) => around.in_block(turn, at),
                None => Place { path: Vec::new(), at },
            };
            done.push(match stmt {
                Stmt::For { index, range, mode, body } => {
                    let (mut inside, mut range) = (last.clone(), edit.range(range)?);
                    if let Some(whole) = self.ends.get(&place) {
                        let end = std::mem::replace(&mut range.hi, Ix::from(*whole));
                        inside.insert(*index, (Ix::var(*index).min_with(&end.sub(&Ix::from(1))?)?, *whole));
                    } else {
                        inside.remove(index);
                    }
                    let is_cut = range.lo == Ix::from(0) && !self.ends.contains_key(&place);
                    let whole = self.wholes.get(&range.hi).filter(|_| is_cut && range.hi.as_constant().is_none());
                    let body = self.block(nest, Some((&place, 0)), body, &inside)?;
                    let as_long = |range: Range| Stmt::For { index: *index, range, mode: *mode, body: body.clone() };
                    match whole {
                        Some(whole) => Stmt::If {
                            cond: Cond::le(&Ix::from(*whole), &range.hi)?,
                            then: vec![as_long(Range::to(Ix::from(*whole)))],
                            otherwise: vec![as_long(range)],
                        },
                        None => decided_first(as_long(range)),
                    }
                }
                Stmt::If { cond, then, otherwise } => {
                    let then = self.block(nest, Some((&place, 0)), then, last)?;
                    let otherwise = self.block(nest, Some((&place, 1)), otherwise, last)?;
                    Stmt::If { cond: edit.cond(cond)?, then, otherwise }
                }
                _ => self.leaf(nest, last, stmt)?,
            });
        }
        Ok(done)
    }

    /// A statement without blocks.
    fn leaf(&self, nest: &mut Nest, last: &HashMap<Name, (Ix, i64)>, stmt: &Stmt) -> Done<Stmt> {
        let edit = edit(last);
        let is_total = stmt.value().is_some_and(|value| is_total(&nest.program.terms, value));
        let indices = |name: Option<Name>, indices: &[Ix]| -> Result<Box<[Ix]>, IxError> {
            let one = |(dim, ix): (usize, &Ix)| {
                let end = ix.as_var().and_then(|index| last.get(&index));
                let may_run_on = name.zip(end).is_some_and(|(name, (_, end))| {
                    let filled = self.filled.get(&(name, dim)).is_some_and(|size| is_total && end <= size);
                    filled || self.dims.contains(&(name, dim))
                });
                if may_run_on { Ok(ix.clone()) } else { edit.ix(ix) }
            };
            indices.iter().enumerate().map(one).collect()
        };
        let mut stmt = stmt.clone();
        if let Some((name, at)) = stmt.element_mut() {
            *at = indices(Some(*name), at)?;
        }
        if let Some(value) = stmt.value_mut() {
            *value = nest.program.terms.rewrite(*value, |terms, id, term| {
                let term = match term {
                    Term::Select(tensor, at) => {
                        let name = as_element(terms, id).map(|(name, ..)| name);
                        Term::Select(tensor, indices(name, &at)?)
                    }
                    Term::Index(ix, elem) => Term::Index(edit.ix(&ix)?, elem),
                    other => other,
                };
                terms.add(term)
            })?;
        }
        Ok(stmt)
    }
}

/// A loop whose iterations all do one of the same two things, as two loops: which of them runs is decided before.
fn decided_first(stmt: Stmt) -> Stmt {
    let Stmt::For { index, range, mode, body } = stmt else { return stmt };
    let decides = |cond: &Cond| {
        let mut names = BTreeSet::new();
        cond.collect_names(&mut names);
        !names.contains(&index)
    };
    match <[Stmt; 1]>::try_from(body) {
        Ok([Stmt::If { cond, then, otherwise }]) if !otherwise.is_empty() && decides(&cond) => {
            let each = |body: Vec<Stmt>| vec![Stmt::For { index, range: range.clone(), mode, body }];
            Stmt::If { cond, then: each(then), otherwise: each(otherwise) }
        }
        Ok(body) => Stmt::For { index, range, mode, body: body.into() },
        Err(body) => Stmt::For { index, range, mode, body },
    }
}
