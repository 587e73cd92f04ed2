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

use certen_index::Ix;
use certen_syntax::Name;

use super::steps::joined;
use super::sum::{MOST_PACKED, PACKED_APART, STORED_ALONG, SumNest, mentions, size};
use super::tile::blocks;
use super::{Machine, Proposal};

/// The most rows, or columns, of a tile.
const MOST: i64 = 4;

/// Into how many blocks rows are divided for threads, where their tiles overlap.
const BLOCKS: i64 = 8;

pub(super) fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Proposal> {
    Batched::of(found, machine).map(|batched| batched.proposal(machine)).into_iter().collect()
}

/// A loop, how many iterations it has, and how many of them are in a tile.
#[derive(Clone, Copy)]
struct Tiled {
    index: Name,
    size: i64,
    tile: i64,
}

impl Tiled {
    /// How many tiles there are.
    fn count(self) -> i64 {
        blocks(self.size, self.tile)
    }

    /// Whether the last tile is full.
    fn is_whole(self) -> bool {
        self.size % self.tile == 0
    }
}

/// The loops of many small products.
struct Batched<'a> {
    found: &'a SumNest<'a>,
    lanes: Tiled,
    rows: Tiled,
    columns: Tiled,
    /// The loops around.
    others: Vec<Name>,
    /// Whether all lanes of the operands stay in the cache: whole rows of the result are stored one after the other then.
    is_near: bool,
}

impl<'a> Batched<'a> {
    fn of(found: &'a SumNest<'a>, machine: &Machine) -> Option<Batched<'a>> {
        let v = found.lanes.filter(|_| found.elem.is_float() && found.overwrites && found.is_perfect())?;
        let [(_, first), (_, second)] = found.reads.as_slice() else { return None };
        if ![first, second].iter().all(|at| mentions(at, v) && found.is_summed(at)) || found.is_short() {
            return None;
        }
        let most = if machine.registers >= 32 { MOST } else { MOST - 1 };
        // The longest loop that only one of the operands has.
        let own = |has: &[Ix], lacks: &[Ix]| {
            let own = found.free.iter().filter(|(index, _)| mentions(has, *index) && !mentions(lacks, *index));
            let own = own.filter_map(|(index, range)| Some((*index, size(range)?)));
            let (index, size) = own.max_by_key(|(_, size)| *size)?;
            (size >= 2).then_some(Tiled { index, size, tile: size.min(most) })
        };
        let (rows, columns) = (own(first, second)?, own(second, first)?);
        let count = machine.vector_bytes / found.elem.bytes() as i64;
        let lanes = Tiled { index: v, size: found.count(v).filter(|width| *width >= count)?, tile: count };
        let terms = found.summed.iter().try_fold(1i64, |product, (_, range)| product.checked_mul(size(range)?))?;
        let bytes = (rows.size + columns.size).saturating_mul(terms).saturating_mul(machine.vector_bytes);
        if bytes > machine.l2_bytes {
            return None;
        }
        let is_near = bytes.saturating_mul(lanes.count()) <= machine.l2_bytes;
        let own = [lanes, rows, columns].map(|tiled| tiled.index);
        let others = found.free.iter().map(|(index, _)| *index).filter(|index| !own.contains(index)).collect();
        Some(Batched { found, lanes, rows, columns, others, is_near })
    }

    /// The product of the sizes of loops.
    fn extent(&self, loops: impl Iterator<Item = Name>) -> i64 {
        loops.filter_map(|index| self.found.count(index)).fold(1, i64::saturating_mul)
    }

    /// The operands, each with the rows or columns that it has.
    fn operands(&self) -> impl Iterator<Item = (Name, &'a [Ix], Tiled)> {
        self.found.reads.iter().zip([self.rows, self.columns]).map(|((buffer, at), own)| (*buffer, *at, own))
    }

    /// Tenths of operations: of the tiles, and of storing them. Vectors of what is read where it is, though it does not lie along
    /// the lanes, are put together from elements.
    fn cost(&self) -> i64 {
        let (high, wide) = (self.rows.tile, self.columns.tile);
        let tiles = [self.lanes, self.rows, self.columns].map(Tiled::count);
        let tiles = tiles.into_iter().fold(self.extent(self.others.iter().copied()), i64::saturating_mul);
        let terms = self.extent(self.found.summed.iter().map(|(index, _)| *index));
        let apart = self.operands().filter(|(_, at, _)| !self.lies_along_lanes(at) && !self.is_packed(at));
        let gathered = apart.map(|(.., own)| own.tile * self.lanes.tile * PACKED_APART).sum::<i64>();
        let busy = 10 * (high * wide).max(high + wide).max(8) + gathered;
        let stores = self.extent(self.found.free.iter().map(|(index, _)| *index)).saturating_mul(STORED_ALONG);
        tiles.saturating_mul(terms).saturating_mul(busy).saturating_add(stores)
    }

    fn lies_along_lanes(&self, at: &[Ix]) -> bool {
        at.last() == Some(&Ix::var(self.lanes.index))
    }

    /// Whether an operand lies along a loop around. It is packed before all of them then: each would use an element of a line.
    fn lies_around(&self, at: &[Ix]) -> bool {
        at.last().and_then(Ix::as_var).is_some_and(|last| self.others.contains(&last))
    }

    /// Whether an operand is packed: what lies along the lanes is read where it is, and what would be packed whole and is too large.
    fn is_packed(&self, at: &[Ix]) -> bool {
        // With a batch of any size there is no limit.
        let mut own = self.found.loops().filter(|index| mentions(at, *index));
        let mut elements = || own.try_fold(1i64, |product, index| product.checked_mul(self.found.count(index)?));
        let bytes = self.found.elem.bytes() as i64;
        let mut is_small = || elements().is_some_and(|count| count.saturating_mul(bytes) <= MOST_PACKED);
        !self.lies_along_lanes(at) && (!self.lies_around(at) || is_small())
    }

    /// The operands that are packed.
    fn packed(&self) -> impl Iterator<Item = (Name, &'a [Ix], Tiled)> {
        self.operands().filter(|(_, at, _)| self.is_packed(at))
    }

    /// Tenths of operations that it takes to pack an operand.
    fn packing(&self, at: &[Ix], own: Tiled) -> i64 {
        let is_turned = |last: Name| last == own.index || self.found.summed.iter().any(|(index, _)| *index == last);
        let is_turned = at.last().and_then(Ix::as_var).is_some_and(is_turned);
        let each = if is_turned { 3 * self.found.elem.bytes() as i64 } else { PACKED_APART };
        each.saturating_mul(self.extent(self.found.loops().filter(|index| mentions(at, *index))))
    }

    fn proposal(&self, machine: &Machine) -> Proposal {
        let Batched { found, lanes, rows, columns, others, is_near } = self;
        let order = if *is_near { [rows, columns, lanes] } else { [lanes, rows, columns] };
        let mut steps = found.steps(machine);
        steps.reorder(&found.free, &[&others[..], &order.map(|tiled| tiled.index)].concat());
        let outermost = others.first().filter(|index| found.count(**index).is_none_or(|count| count >= 4));
        let by_lanes = !is_near && lanes.is_whole();
        // Tiles that overlap belong to one thread: rows are divided among threads before.
        let block = blocks(blocks(rows.size, BLOCKS), rows.tile) * rows.tile;
        let is_blocked = outermost.is_none() && !by_lanes && !rows.is_whole() && rows.size % block >= rows.tile;
        if is_blocked {
            steps.add(format!("split({}, {block})", steps.path(rows.index)));
        }
        let is_cut = |tiled: &Tiled| is_blocked && tiled.index == rows.index;
        let name = |tiled: &Tiled| format!("{}{}", tiled.index, if is_cut(tiled) { ".i" } else { "" });
        for tiled in [lanes, rows, columns] {
            let inwards = if tiled.is_whole() { "" } else { ", inwards" };
            steps.add(format!("split({}, {}{inwards})", steps.path(name(tiled)), tiled.tile));
        }
        let piece = |tiled: &Tiled, piece: &str| format!("{}.{piece}", name(tiled));
        let list = |names: Vec<String>| names.iter().map(|name| steps.path(name)).collect::<Vec<_>>().join(", ");
        let inside = [rows, columns, lanes].map(|tiled| piece(tiled, "i"));
        let summed = found.summed.iter().map(|(index, _)| index.to_string());
        let all = list(order.map(|tiled| piece(tiled, "o")).into_iter().chain(inside.clone()).collect());
        let tile = list(summed.clone().chain(inside).collect());
        let pack = |(buffer, at, own): (Name, &[Ix], Tiled)| {
            // Once, before the loops around that do not change it.
            let first = others.iter().position(|index| !mentions(at, *index));
            let first = if self.lies_around(at) { Some(0) } else { first };
            let around = others[first.unwrap_or(others.len())..].iter().filter(|index| mentions(at, **index));
            let before = first.map_or_else(|| piece(rows, "o"), |first| others[first].to_string());
            let block = (first.is_some() && is_cut(&own)).then(|| format!("{}.o", own.index));
            let tiles = [&own, lanes].map(|tiled| piece(tiled, "o")).into_iter();
            let tiles = tiles.take(if *is_near || first.is_some() { 2 } else { 1 });
            let loops = around.map(Name::to_string).chain(block).chain(tiles).chain(summed.clone());
            let loops = loops.chain([piece(&own, "i"), piece(lanes, "i")]);
            format!("pack({buffer}, {}, [{}])", steps.path(before), list(loops.collect()))
        };
        let packs: Vec<String> = self.packed().map(pack).collect();
        steps.add(format!("reorder([{all}])"));
        steps.add(format!("reorder([{tile}])"));
        packs.into_iter().for_each(|step| steps.add(step));
        match outermost {
            Some(index) => steps.parallelize(&steps.path(index)),
            None if by_lanes => steps.parallelize(&steps.path(piece(lanes, "o"))),
            None if is_blocked || rows.is_whole() => steps.parallelize(&steps.path(format!("{}.o", rows.index))),
            None => {}
        }
        let packing = self.packed().map(|(_, at, own)| self.packing(at, own));
        let cost = packing.fold(self.cost(), i64::saturating_add);
        Proposal { plan: found.planned(steps, self.why()), cost }
    }

    /// What was recognised, and what was chosen for it.
    fn why(&self) -> String {
        let over: Vec<Name> = self.found.summed.iter().map(|(index, _)| *index).collect();
        let Batched { lanes, rows, columns, .. } = self;
        let packed: Vec<Name> = self.packed().map(|(buffer, ..)| buffer).collect();
        let packed = if packed.is_empty() { String::new() } else { format!(", {} packed", joined(&packed)) };
        format!(
            "many products over {}: {} lanes of {} for {} rows of {} and {} columns of {} stay in registers{packed}",
            joined(&over),
            lanes.tile,
            lanes.index,
            rows.tile,
            rows.index,
            columns.tile,
            columns.index,
        )
    }
}
