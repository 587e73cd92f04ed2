//! Many small products whose results lie side by side: `result[…, r, c, v] = Σ_k A[…, r, k, v] * B[…, k, c, v]`, whatever the
//! order of dimensions of the operands.
//!
//! The index `v` along which the result lies in memory is in both operands, so no vector of one is used for several elements
//! of the other. Lanes are made of it all the same: some rows `r` and some columns `c` are taken together, whose vectors are
//! loaded once for each other. Operands that do not lie along `v` are packed for the lanes of a vector.
//!
//! Applies: where sizes are numbers, `v` fills a vector, and what all rows and columns need for one stays in the second cache.
//! Cost, for each term: rows + columns loads for rows * columns fused operations. The summands of an element are added in the
//! order of the program.

use certen_core::Range;
use certen_index::Ix;
use certen_syntax::Name;

use super::steps::listed;
use super::sum::{PACKED_APART, STORED_ALONG, SumNest, mentions, size};
use super::tile::blocks;
use super::{Machine, Proposal};

/// The most rows, or columns, of a tile.
const MOST: i64 = 4;

/// Into how many blocks rows are divided for threads, where their tiles overlap.
const BLOCKS: i64 = 8;

pub(super) fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Proposal> {
    proposed(found, machine).into_iter().collect()
}

fn proposed(found: &SumNest<'_>, machine: &Machine) -> Option<Proposal> {
    let v = found.lanes.filter(|_| found.elem.is_float() && found.overwrites && found.is_perfect())?;
    let lanes = machine.vector_bytes / found.elem.bytes() as i64;
    let [(_, first), (_, second)] = found.reads.as_slice() else { return None };
    if ![first, second].iter().all(|at| mentions(at, v) && found.is_summed(at)) || found.is_short() {
        return None;
    }
    // The longest loop that only one of the operands has.
    let own = |has: &[Ix], lacks: &[Ix]| {
        let own = found.free.iter().filter(|(index, _)| mentions(has, *index) && !mentions(lacks, *index));
        own.filter_map(|(index, range)| Some((*index, size(range)?))).max_by_key(|(_, size)| *size)
    };
    let ((r, rows), (c, columns)) = (own(first, second)?, own(second, first)?);
    let count = |loops: &[(Name, &Range)], index: Name| {
        loops.iter().find(|(own, _)| *own == index).and_then(|(_, range)| size(range))
    };
    let width = count(&found.free, v).filter(|width| *width >= lanes)?;
    let terms = found.summed.iter().try_fold(1i64, |product, (_, range)| product.checked_mul(size(range)?))?;
    let most = if machine.registers >= 32 { MOST } else { MOST - 1 };
    let bytes = (rows + columns).saturating_mul(terms).saturating_mul(machine.vector_bytes);
    if rows < 2 || columns < 2 || bytes > machine.l2_bytes {
        return None;
    }
    // Whole rows of the result are stored one after the other, if all lanes of the operands stay in the cache.
    let is_near = bytes.saturating_mul(blocks(width, lanes)) <= machine.l2_bytes;
    let order = if is_near { [r, c, v] } else { [v, r, c] };
    let (high, wide) = (rows.min(most), columns.min(most));
    let inwards = |size: i64, tile: i64| if size % tile == 0 { "" } else { ", inwards" };
    let others: Vec<Name> =
        found.free.iter().map(|(index, _)| *index).filter(|index| ![v, r, c].contains(index)).collect();
    let mut steps = found.steps(machine);
    steps.reorder(&found.free, &[&others[..], &order].concat());
    let outermost = others.first().filter(|index| count(&found.free, **index).is_some_and(|size| size >= 4));
    let by_lanes = !is_near && width % lanes == 0;
    // Tiles that overlap belong to one thread: rows are divided among threads before.
    let block = blocks(blocks(rows, BLOCKS), high) * high;
    let is_blocked = outermost.is_none() && !by_lanes && rows % high != 0 && rows % block >= high;
    if is_blocked {
        steps.add(format!("split({}, {block})", steps.path(r)));
    }
    let rows_of = if is_blocked { format!("{r}.i") } else { r.to_string() };
    let name = |index: Name| if index == r { rows_of.clone() } else { index.to_string() };
    for (index, tile, size) in [(v, lanes, width), (r, high, rows), (c, wide, columns)] {
        steps.add(format!("split({}, {tile}{})", steps.path(name(index)), inwards(size, tile)));
    }
    let piece = |index: Name, piece: &str| format!("{}.{piece}", name(index));
    let inside = [piece(r, "i"), piece(c, "i"), piece(v, "i")];
    let all = order.map(|index| piece(index, "o")).into_iter().chain(inside.clone());
    let list = |names: Vec<String>| names.iter().map(|name| steps.path(name)).collect::<Vec<_>>().join(", ");
    let (all, summed) = (list(all.collect()), found.summed.iter().map(|(index, _)| index.to_string()));
    let tile = list(summed.clone().chain(inside).collect());
    let extent = |loops: &mut dyn Iterator<Item = Name>| {
        let all = loops.filter_map(|index| count(&found.free, index).or(count(&found.summed, index)));
        all.fold(1, i64::saturating_mul)
    };
    let tiles = [(rows, high), (columns, wide), (width, lanes)].map(|(size, tile)| blocks(size, tile));
    let tiles = tiles.into_iter().fold(extent(&mut others.iter().copied()), i64::saturating_mul);
    let busy = 10 * (high * wide).max(high + wide).max(8);
    let elements = extent(&mut found.free.iter().map(|(index, _)| *index));
    let mut cost = tiles.saturating_mul(terms).saturating_mul(busy).saturating_add(elements.saturating_mul(STORED_ALONG));
    let mut packed: Vec<Name> = Vec::new();
    let mut packs: Vec<String> = Vec::new();
    for ((buffer, at), own) in found.reads.iter().zip([r, c]) {
        // What lies along the lanes, or along a loop around, is read where it is.
        let last = at.last().and_then(Ix::as_var);
        if last.is_some_and(|last| last == v || others.contains(&last)) {
            continue;
        }
        // Once, before the loops around that do not change it.
        let first = others.iter().position(|index| !mentions(at, *index));
        let around = first.map_or(&[][..], |first| &others[first..]).iter().filter(|index| mentions(at, **index));
        let before = first.map_or_else(|| piece(r, "o"), |first| others[first].to_string());
        let all_lanes = is_near || first.is_some();
        let tiles = [own, v].map(|index| piece(index, "o")).into_iter().take(if all_lanes { 2 } else { 1 });
        let loops = around.map(Name::to_string).chain(tiles).chain(summed.clone());
        let loops = loops.chain([piece(own, "i"), piece(v, "i")]);
        packs.push(format!("pack({buffer}, {}, [{}])", steps.path(before), list(loops.collect())));
        packed.push(*buffer);
        let is_turned = last.is_some_and(|last| last == own || found.summed.iter().any(|(index, _)| *index == last));
        let each = if is_turned { 3 * found.elem.bytes() as i64 } else { PACKED_APART };
        cost = cost.saturating_add(each.saturating_mul(extent(&mut found.loops().filter(|index| mentions(at, *index)))));
    }
    steps.add(format!("reorder([{all}])"));
    steps.add(format!("reorder([{tile}])"));
    packs.into_iter().for_each(|step| steps.add(step));
    match outermost {
        Some(index) => steps.parallelize(&steps.path(index)),
        None if by_lanes => steps.parallelize(&steps.path(piece(v, "o"))),
        None if is_blocked || rows % high == 0 => steps.parallelize(&steps.path(format!("{r}.o"))),
        None => {}
    }
    let over: Vec<Name> = found.summed.iter().map(|(index, _)| *index).collect();
    let mut why = format!(
        "many products over {}: {lanes} lanes of {v} for {high} rows of {r} and {wide} columns of {c} stay in registers",
        listed(&over)
    );
    if !packed.is_empty() {
        why += &format!(", {} packed", listed(&packed));
    }
    Some(Proposal { plan: found.planned(steps, why), cost })
}
