//! `pack`: the elements of a buffer that loops read are copied together first, in the order in which they are read.
//!
//! The copy has one dimension for each of the loops that are given: the element that is read in an iteration of them lies
//! at their indices. So a dimension that two loops run over, one over blocks and one inside a block, becomes two, and the
//! panels of a matrix product lie one after the other (Goto and van de Geijn). A block that is not full is filled up: after
//! its end is the last element once more, so that [`round`](super::round) can let loops run over it.

use std::collections::BTreeSet;

use certen_core::{Range, TensorType};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_loops::{Stmt, Target, sites, within};
use certen_syntax::Name;

use super::stage::Buffer;
use super::{Example, Primitive};
use crate::bounds::room;
use crate::depend::Footprint;
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal, listed};
use crate::rewrite::with_reads;
use crate::stages::name_of;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "pack",
    usage: "pack(buffer, loop, [loops]) or pack(buffer, loop, [loops], multiple)",
    about: "Before `loop` runs, the elements of the buffer that it reads are copied into a buffer `B_packed` with one \
            dimension for each of the given loops, which are this loop or inside it: what is read in an iteration of them \
            lies at their indices. Where the buffer is read at other indices, it is read as before. A block that is not full \
            is filled up with its last element, and with a number, so are rows up to the next multiple of it. The loops of the \
            copy are `B_packed.c0`, `B_packed.c1`, …; they run along the memory of the buffer.",
    legal: "Always: a loop that writes the buffer is refused.",
    peers: "BLIS: packing into panels; Halide: in and compute_root with a reordered storage; TVM: cache_read and \
            transform_layout",
    example: Example {
        program: "loops matmul\nsize m, n, p\nwhere m >= 0, n >= 0, p >= 0\ninput A : f64[m, p]\ninput B : f64[p, n]\n\
                  output C : f64[m, n]\nnest C\nfor i in 0..m {\n    for j in 0..n {\n        C[i, j] = 0.0\n        \
                  for l in 0..p {\n            C[i, j] += A[i, l] * B[l, j]\n        }\n    }\n}\n",
        steps: "split(j, 8); pack(B, i, [j.o, l, j.i])",
    },
    apply: |nest, args| {
        let (path, span) = args.path("a buffer")?;
        let place = nest.find(args.path("a loop that reads it")?)?;
        let loops = args.paths("loops in brackets")?;
        let loops = loops.into_iter().map(|path| nest.find(path)).collect::<Done<Vec<Place>>>()?;
        let multiple = if args.left() == 0 { 1 } else { args.at_least(1, "the multiple")? };
        args.end()?;
        let buffer = nest.buffer_at((name_of((path, span))?, span), &place)?;
        pack(nest, &buffer, &place, &loops, multiple)
    },
};

/// Copies what the loop at a place reads of a buffer, by the indices of loops in it, in rows of a multiple of so many elements.
fn pack(nest: &mut Nest, buffer: &Buffer, place: &Place, loops: &[Place], multiple: i64) -> Done<()> {
    let reader = nest.loop_at(place)?;
    let at = read_at(nest, buffer, place, loops)?;
    let to = nest.fresh(&format!("{}_packed", buffer.name));
    let names = nest.copy_names(place, "c", loops.len());
    let mut facts = nest.facts(place)?;
    let (mut edit, mut ranges, mut shape) = (Edit::default(), Vec::new(), Vec::new());
    for (name, inner) in names.iter().zip(loops) {
        let Loop { index, range, .. } = nest.loop_at(inner)?;
        // Where a loop begins later, which others may decide, what is before is copied too.
        let range = Range::to(edit.ix(&range.hi)?);
        let room = room(&facts, &range)?;
        if names.iter().any(|other| room.mentions(*other)) {
            let refusal = Refusal::cannot(format!("the loop over {index} has no number of iterations of its own"));
            return Err(refusal.at(inner).note(format!("its range is {}..{}", range.lo, range.hi)));
        }
        facts.assume(within(*name, &range)?);
        edit.indices.insert(index, Ix::var(*name));
        ranges.push((*name, range));
        shape.push(room);
    }
    if let Some(row) = shape.last_mut() {
        *row = row.ceil_div(multiple)?.scale(multiple)?;
    }
    let from = at.iter().map(|ix| edit.ix(ix)).collect::<Result<Vec<Ix>, _>>()?;
    for (ix, size) in from.iter().zip(buffer.ty.shape.iter()) {
        let inside = Cond::le(&Ix::from(0), ix)?.and(Cond::lt(ix, size)?);
        if facts.prove(&inside) != Verdict::Yes {
            let text = format!("not all of these iterations are shown to read `{}` inside its bounds", buffer.name);
            return Err(Refusal::cannot(text).at(place).note(format!("the index {ix} has to be in 0..{size}")));
        }
    }
    let ty = TensorType::new(buffer.ty.elem, shape);
    let copy = copy(nest, (buffer, &from), (to, &ty), ranges, (place, &facts))?;
    let around: Stmt = reader.into();
    let indices = loops.iter().map(|inner| Ok(Ix::var(nest.loop_at(inner)?.index))).collect::<Done<Vec<Ix>>>()?;
    let inside = with_reads(&mut nest.program, &[around], &mut |program, _, name, read| {
        Ok(match name == buffer.name && read == at {
            true => Some(program.terms.element(to, ty.clone(), indices.clone())?),
            false => None,
        })
    })?;
    let own = nest.stage(place).map(Stmt::Nest);
    let behind = nest.block(place).get(place.at + 1..).unwrap_or_default();
    let behind = nest.label(place, behind).filter(|_| !behind.is_empty());
    let mut stmts = vec![Stmt::Alloc(to, ty.clone()), Stmt::Nest(to)];
    stmts.extend(copy);
    stmts.extend(own.into_iter().chain(inside).chain([Stmt::Free(to)]).chain(behind));
    nest.replace(place, stmts)
}

/// The indices at which a loop reads a buffer that are made of the loops that are given, all of them, and of what is known
/// outside. Where else it is read, it stays as it is.
fn read_at(nest: &Nest, buffer: &Buffer, place: &Place, loops: &[Place]) -> Done<Vec<Ix>> {
    let reader = nest.loop_at(place)?;
    let name = buffer.name;
    let cannot = |text: String| Err(Refusal::cannot(text).at(place));
    if Footprint::of(&nest.program, &reader.body).writes(name) {
        return cannot(format!("the loop over {} writes `{name}`, so a copy would be out of date", reader.index));
    }
    let mut given = BTreeSet::new();
    for inner in loops {
        if inner != place && !place.contains(inner) {
            return Err(Refusal::cannot("the given loops have to be inside the one that reads").at(place).at(inner));
        }
        given.insert(nest.loop_at(inner)?.index);
    }
    let around = [reader.clone().into()];
    let mut found: Option<Vec<Ix>> = None;
    let mut left: Option<String> = None;
    for site in sites(&around) {
        for (_, indices, _) in site.stmt.uses(&nest.program.terms).into_iter().filter(|(used, ..)| *used == name) {
            let mentions = |index: &Name| indices.iter().any(|ix| ix.mentions(*index));
            let inner = || site.loops().map(|(index, _)| index);
            if let Some(index) = given.iter().find(|index| !mentions(index)) {
                left = Some(format!("it is read at an index that does not change with {index}"));
            } else if let Some(index) = inner().find(|index| mentions(index) && !given.contains(index)) {
                left = Some(format!("it is read at an index that changes with {index}, too"));
            } else if site.conds().next().is_some() {
                return cannot(format!("`{name}` is read under a condition"));
            } else if found.replace(indices.to_vec()).is_some_and(|before| before != indices) {
                return cannot(format!("`{name}` is read at different indices of these loops"));
            }
        }
    }
    match (found, left) {
        (Some(found), _) => Ok(found),
        (None, Some(why)) => {
            let refusal = Refusal::cannot(format!("`{name}` is not read at the indices of {}", listed(given.iter())));
            Err(refusal.at(place).note(why))
        }
        (None, None) => cannot(format!("the loop over {} does not read `{name}`", reader.index)),
    }
}

/// Fills the copy. The last loop fills its dimension up. Where the elements of the buffer lie along another loop, the copy
/// goes along that one, a line at a time: each line of the buffer and of the copy is in the cache until all of it is used.
fn copy(
    nest: &mut Nest,
    (buffer, at): (&Buffer, &[Ix]),
    (to, ty): (Name, &TensorType),
    mut ranges: Vec<(Name, Range)>,
    (place, facts): (&Place, &Facts),
) -> Done<Vec<Stmt>> {
    let indices: Box<[Ix]> = ranges.iter().map(|(name, _)| Ix::var(*name)).collect();
    let assign = |nest: &mut Nest, at: Vec<Ix>| -> Done<Stmt> {
        let value = nest.program.terms.element(buffer.name, buffer.ty.clone(), at)?;
        Ok(Stmt::Assign { target: Target::Element(to, indices.clone()), op: None, value })
    };
    let (Some((last, range)), Some(room)) = (ranges.pop(), ty.shape.last().cloned()) else {
        return Err(Refusal::cannot("no loops are given"));
    };
    let is_full = Cond::le(&room, &range.hi)?;
    let fills = facts.prove(&is_full) == Verdict::Yes;
    let has_some = facts.prove(&Cond::le(&Ix::from(1), &range.hi)?) == Verdict::Yes;
    let with_last = |place: Ix| {
        let edit = Edit::index(last, place);
        at.iter().map(|ix| edit.ix(ix)).collect::<Result<Vec<Ix>, _>>()
    };
    let end = range.hi.sub(&Ix::from(1))?;
    let in_loops = |inner: Vec<Stmt>, ranges: Vec<(Name, Range)>| {
        ranges.into_iter().rev().fold(inner, |inner, (name, range)| vec![Loop::new(name, range, inner).into()])
    };
    if let Some(along) = along(at, &ranges, (last, &range)) {
        let (at, hi) = match fills || !has_some {
            true => (at.to_vec(), range.hi),
            false => (with_last(Ix::var(last).min_with(&end)?)?, room),
        };
        let (at_depth, (along, range)) = (along, ranges.remove(along));
        let element = assign(nest, at)?;
        return match range.hi.as_constant() {
            Some(..=MOST_ALONG) => {
                ranges.extend([(last, Range::to(hi)), (along, range)]);
                Ok(in_loops(vec![element], ranges))
            }
            _ => {
                let Pieces { outer, inner, at } = Pieces::of(nest, (along, &range), LINE)?;
                let element = Edit::index(along, at).block(&mut nest.program, &[element])?;
                ranges.insert(at_depth, outer);
                ranges.push((last, Range::to(hi)));
                Ok(in_loops(in_loops(element, vec![inner]), ranges))
            }
        };
    }
    // Where what the last loop copies is followed by what it copies in the next iteration of another one, that comes next: a few
    // rows at a time, if there is more in a line of the cache than goes to one place.
    let mut rows = None;
    if let Some(next) = next(at, &ranges, (last, &range)) {
        let (index, own) = ranges.remove(next);
        let dense = at.last().into_iter();
        let beside = ranges.iter().position(|(other, _)| dense.clone().any(|ix| ix.mentions(*other)));
        let is_narrow = room.as_constant().is_some_and(|count| count * (ty.elem.bytes() as i64) < LINE_BYTES);
        // A copy that stands first of all has its outermost loop for threads.
        let is_inside = !place.path.is_empty();
        let stands_alone = |beside: &usize| !ranges[*beside..].iter().any(|(other, _)| own.hi.mentions(*other));
        match beside
            .filter(stands_alone)
            .filter(|_| is_narrow && is_inside && own.hi.as_constant().is_none_or(|count| count > ROWS))
        {
            Some(beside) => {
                let Pieces { outer, inner, at } = Pieces::of(nest, (index, &own), ROWS)?;
                ranges.insert(beside, outer);
                ranges.push(inner);
                rows = Some(Edit::index(index, at));
            }
            None => ranges.push((index, own)),
        }
    }
    let whole = assign(nest, at.to_vec())?;
    let whole = |hi: Ix| -> Stmt { Loop::new(last, Range::to(hi), vec![whole.clone()]).into() };
    let copied = match fills || !has_some {
        true => vec![whole(range.hi)],
        false => {
            let end = assign(nest, with_last(end)?)?;
            let filled = Loop::new(last, Range { lo: range.hi.clone(), hi: room.clone() }, vec![end]).into();
            let otherwise = vec![whole(range.hi.clone()), filled];
            match facts.prove(&is_full.not()?) {
                Verdict::Yes => otherwise,
                _ => vec![Stmt::If { cond: is_full, then: vec![whole(room)], otherwise }],
            }
        }
    };
    let copied = rows.map_or(Ok(copied.clone()), |edit| edit.block(&mut nest.program, &copied))?;
    Ok(in_loops(copied, ranges))
}

/// A loop in pieces: one over them, and one inside.
struct Pieces {
    outer: (Name, Range),
    inner: (Name, Range),
    /// The index of the loop.
    at: Ix,
}

impl Pieces {
    fn of(nest: &Nest, (index, range): (Name, &Range), length: i64) -> Done<Pieces> {
        let [outer, inner] = ["o", "i"].map(|piece| nest.piece(index, piece));
        let first = Ix::var(outer).scale(length)?;
        let is_whole = range.hi.as_constant().is_some_and(|count| count % length == 0);
        let rest = range.hi.sub(&first)?;
        let inside = if is_whole { Ix::from(length) } else { Ix::from(length).min_with(&rest)? };
        let at = first.add(&Ix::var(inner))?;
        Ok(Pieces { outer: (outer, Range::to(range.hi.ceil_div(length)?)), inner: (inner, Range::to(inside)), at })
    }
}

/// How many elements of a buffer are copied from one place at a time, and in one piece at most.
const LINE: i64 = 64;
const MOST_ALONG: i64 = 96;

/// The bytes of a line of the cache; so many lines are in the first cache, however far they are from each other.
const LINE_BYTES: i64 = 64;
const ROWS: i64 = 8;

/// The loop along which elements lie side by side in the buffer, if it is one of these and can run inside all others.
fn along(at: &[Ix], loops: &[(Name, Range)], (last, range): (Name, &Range)) -> Option<usize> {
    let dense = at.last().filter(|ix| !ix.mentions(last))?;
    let mut own = loops.iter().enumerate().filter(|(_, (name, _))| dense.mentions(*name));
    let ((place, (along, own_range)), None) = (own.next()?, own.next()) else { return None };
    let mut others = loops.iter().map(|(_, range)| range).chain([range]);
    (!others.any(|other| other.hi.mentions(*along)) && !own_range.hi.mentions(last)).then_some(place)
}

/// The loop over the dimension before the last one, if that is one of these and can run inside all others but the last.
fn next(at: &[Ix], loops: &[(Name, Range)], (last, range): (Name, &Range)) -> Option<usize> {
    let [.., before, dense] = at else { return None };
    let mut own = loops.iter().enumerate().filter(|(_, (name, _))| before.mentions(*name));
    let ((place, (index, _)), None) = (own.next().filter(|_| dense.mentions(last))?, own.next()) else { return None };
    let mut others = loops.iter().map(|(_, range)| range).chain([range]);
    (!others.any(|other| other.hi.mentions(*index))).then_some(place)
}
