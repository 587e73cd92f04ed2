//! Which operands of a contraction are packed into panels, before which loops, and what that costs.
//!
//! A panel has the elements that a column of tiles needs, or a block of rows, in the order in which they are needed. What is
//! used once, or stays in the first cache, is read where it lies if it lies along the lanes; rows are, if the sum runs along their
//! memory.

use certen_core::Range;
use certen_index::Ix;
use certen_loops::MAX_DISTANCE;
use certen_syntax::Name;

use super::{Ends, Group, Order, Tiling};
use crate::auto::steps::Steps;
use crate::auto::sum::{
    LINE_BYTES, MOST_PACKED, PACKED_ACROSS, PACKED_APART, PACKED_PICKED, PAGE_BYTES, SumNest, mentions, size,
};
use crate::auto::tile::blocks;

/// What is no larger is read where it lies, if it lies along the lanes: half of the smallest first cache; of a window, whose
/// elements are used by many terms, all of it.
const NEAR_BYTES: i64 = 1 << 14;
const WINDOW_BYTES: i64 = 1 << 15;

/// How many iterations of a loop around are packed together where an operand lies along it, unless it has few.
const STRIP: i64 = 16;
const MOST_STRIP: i64 = 32;

/// What lies side by side is short if it has no more bytes than this.
const SHORT_RUN: i64 = 256;

/// A row that is read so often by narrow tiles is packed, if rows are pages apart.
const MANY_TIMES: i64 = 16;

/// A loop around the tiles: of which index, what it is called, how many iterations it has, if that is a number, and whether it
/// is one of the sum.
pub(super) struct Around {
    pub index: Name,
    pub name: String,
    pub size: Option<i64>,
    pub is_sum: bool,
}

/// Something that is read: inside the sum, or after it in so many loops of sums.
pub(super) struct Operand<'a> {
    pub buffer: Name,
    pub at: &'a [Ix],
    depth: Option<usize>,
}

impl<'a> Tiling<'a> {
    /// Packs operands into panels: which, and which of them all threads share.
    pub(super) fn pack(&self, steps: &mut Steps, order: Order, along: Ends) -> (Vec<Name>, Vec<Name>) {
        let (v, rows) = (self.lanes.name(), self.rows_of_block(order));
        let (columns, tiles) = (steps.path(format!("{v}.o")), steps.path(format!("{}.o", self.rows.name())));
        let outermost = if order == Order::Lanes { &columns } else { &tiles };
        let around: Vec<Around> = self.around().collect();
        let operands = self.operands(along != Ends::Padded);
        let (mut packed, mut shared): (Vec<Name>, Vec<Name>) = (Vec::new(), Vec::new());
        for operand in operands {
            let Operand { buffer, at, depth } = operand;
            let first = self.packed_before(&operand, &around);
            let before = around.get(first).map_or(outermost.clone(), |one| steps.path(&one.name));
            // The loops around that are packed at once.
            let outer: Vec<&Around> =
                around[first.min(around.len())..].iter().filter(|one| mentions(at, one.index)).collect();
            // What comes after a sum has loops over the tile of its own.
            let behind = depth.map_or_else(String::new, |depth| format!(".after_{depth}"));
            let is_lane = self.lanes.is_in(at);
            let group = if is_lane { &v } else { &rows };
            // With blocks, those of a block of rows; one panel, where all rows follow it.
            let (before, tiles) = match order {
                _ if !outer.is_empty() || is_lane && order != Order::Lanes => {
                    let block = order.block().filter(|_| !is_lane).map(|_| format!("{}.o", self.rows.name()));
                    (&before, block.into_iter().chain([format!("{group}.o")]).collect())
                }
                Order::Lanes if is_lane => (&tiles, Vec::new()),
                Order::Blocks(_) | Order::Mirrored(_) => (&columns, vec![format!("{group}.o")]),
                Order::Rows | Order::Lanes => (&before, vec![format!("{group}.o")]),
            };
            let summed = self.summed_loops().filter(|(index, ..)| mentions(at, *index)).map(|(_, name, _)| name);
            let loops = outer.iter().map(|one| one.name.clone()).chain(tiles).chain(summed);
            let loops = loops.chain([format!("{group}.i{behind}")]).map(|index| steps.path(index));
            let step = format!("pack({buffer}, {before}, [{}])", loops.collect::<Vec<_>>().join(", "));
            if steps.contains(&step) {
                continue;
            }
            // Only blocks of the sum run around it.
            let sums = around.iter().take_while(|one| one.is_sum).count();
            let place = |at: usize| around.get(at).map_or(outermost.clone(), |one| steps.path(&one.name));
            let is_first = (0..=sums).any(|at| place(at) == *before);
            // The loop along which the operand lies is not the first of its copy.
            let is_turned = outer.first().is_some_and(|one| at.last() == Some(&Ix::var(one.index)));
            if is_first && (is_lane || !outer.is_empty()) && !is_turned && !packed.contains(&buffer) {
                shared.push(buffer);
            }
            steps.add(step);
            packed.push(buffer);
        }
        packed.dedup();
        (packed, shared)
    }

    /// The loops around the tiles, outermost first: what is left of a strip's once it is split.
    pub(super) fn around(&self) -> impl Iterator<Item = Around> {
        let pieces = |(index, range): &(Name, &Range)| {
            let (index, size) = (*index, size(range));
            let one = |piece: &str, size| Around { index, name: format!("{index}{piece}"), size, is_sum: false };
            match self.strips.contains(&index) && size.is_none_or(|size| size > MOST_STRIP) {
                true => vec![one(".o", size.map(|size| blocks(size, STRIP))), one(".i", Some(STRIP))],
                false => vec![one("", size)],
            }
        };
        let sums = self.long.as_ref().map_or_else(Vec::new, |long| long.around(self.found));
        let outside: Vec<Around> = self.outside.iter().flat_map(pieces).collect();
        outside.into_iter().chain(sums).chain(self.between.iter().flat_map(pieces).collect::<Vec<_>>())
    }

    /// Operands that lie along a loop around are packed for a strip of its iterations at a time: each of them uses one element of
    /// a cache line.
    pub(super) fn split_strips(&self, steps: &mut Steps) {
        for outer in self.around().filter(|one| !one.is_sum && one.name.ends_with(".o")) {
            steps.add(format!("split({}, {STRIP})", steps.path(outer.index)));
        }
    }

    /// Before which of the loops around an operand is packed: the first whose iterations all use the same panels, or those of a
    /// strip; before one that it does not depend on, if it is not too large.
    fn packed_before(&self, operand: &Operand<'_>, around: &[Around]) -> usize {
        let own = |one: &Around| mentions(operand.at, one.index);
        let Some(last) = around.iter().rposition(own) else { return 0 };
        let is_strip =
            self.strips.contains(&around[last].index) && lies_along(self.found, operand.at, around[last].index);
        let first = if is_strip { last } else { last + 1 };
        let loops = self.found.free.iter().chain(&self.found.summed).filter(|(index, _)| mentions(operand.at, *index));
        let elements = loops.map(|(_, range)| size(range)).try_fold(1i64, |product, size| product.checked_mul(size?));
        let is_small =
            elements.is_some_and(|count| count.saturating_mul(self.found.elem.bytes() as i64) <= MOST_PACKED);
        let foreign = around[..first].iter().position(|one| !own(one) && one.size.is_none_or(|size| size > 1));
        foreign.filter(|_| is_small).unwrap_or(first)
    }

    /// What is packed: panels of lanes first, since where one buffer is both, theirs is the copy that has its name. Where
    /// tiles are full, what is near is read as it is.
    pub(super) fn operands(&self, is_full: bool) -> Vec<Operand<'a>> {
        let found = self.found;
        let inside = found.reads.iter().filter(|(_, at)| found.is_summed(at));
        let inside = inside.map(|(buffer, at)| Operand { buffer: *buffer, at, depth: None });
        let after = found.scales.iter().filter(|(_, at, _)| self.lanes.is_in(at));
        let after = after.map(|(buffer, at, depth)| Operand { buffer: *buffer, at, depth: Some(*depth) });
        let mut all: Vec<Operand<'a>> = inside.chain(after).collect();
        // Where the sum runs along the memory of a row, rows are read as they are, unless that is far away and often; so are rows over
        // which a window moves.
        let last: Vec<Ix> =
            self.summed.last().into_iter().flat_map(|group| &group.loops).map(|index| Ix::var(*index)).collect();
        all.retain(|operand| match (self.lanes.is_in(operand.at), self.rows.is_in(operand.at)) {
            (true, is_row) => !(is_row || is_full && (self.is_near(operand) || self.is_read_once(operand))),
            (false, true) => {
                let lies_there = operand.at.ends_with(&last) || self.rows_of_window(operand.at);
                !lies_there || self.is_read_from_far(operand)
            }
            (false, false) => false,
        });
        all.sort_by_key(|operand| !self.lanes.is_in(operand.at));
        all
    }

    /// Whether the rows of an operand are pages apart, and each element is used for few lanes, many times.
    pub(super) fn is_read_from_far(&self, operand: &Operand<'_>) -> bool {
        let bytes = self.found.elem.bytes() as i64;
        let row = self.distance(&self.rows, operand.at);
        let times = self.lanes.size.map_or(0, |lanes| lanes / self.wide);
        row >= 2 * PAGE_BYTES && row % PAGE_BYTES == 0 && self.wide * bytes < 2 * LINE_BYTES && times >= MANY_TIMES
    }

    /// How many bytes are between elements of an operand that are neighbours in a group of loops, as far as that is known.
    pub(super) fn distance(&self, group: &Group, at: &[Ix]) -> i64 {
        let after = at.iter().rev().take_while(|ix| ix.as_var() != group.loops.last().copied());
        after.filter_map(|ix| self.found.count(ix.as_var()?)).fold(self.found.elem.bytes() as i64, i64::saturating_mul)
    }

    /// Whether an operand lies along the lanes and stays in the first cache while it is used.
    fn is_near(&self, operand: &Operand<'_>) -> bool {
        let [v] = self.lanes.loops.as_slice() else { return false };
        if self.found.is_window(operand.at) {
            return self.is_near_window(operand.at, *v);
        }
        let loops = self.found.free.iter().chain(&self.found.summed);
        let own = loops.filter(|(index, _)| mentions(operand.at, *index));
        let inside = own.filter(|(index, _)| self.outside.iter().all(|(outer, _)| outer != index));
        let bytes = inside
            .map(|(_, range)| size(range))
            .try_fold(self.found.elem.bytes() as i64, |product, size| product.checked_mul(size?));
        // What is not of this part comes first, so that the part is in one piece.
        let is_outside = |ix: &&Ix| self.outside.iter().any(|(outer, _)| ix.mentions(*outer));
        let is_whole = !operand.at.iter().skip_while(is_outside).any(|ix| is_outside(&ix));
        operand.at.last() == Some(&Ix::var(*v)) && is_whole && bytes.is_some_and(|bytes| bytes <= NEAR_BYTES)
    }

    /// How far from each other the elements are that neighbouring lanes read of an operand where it lies, if that is near.
    pub(super) fn step_of_lanes(&self, at: &[Ix]) -> Option<i64> {
        let ([v], (last, others)) = (self.lanes.loops.as_slice(), at.split_last()?) else { return None };
        let (step, _) = last.linear_in(*v)?;
        (!mentions(others, *v) && (1..=MAX_DISTANCE).contains(&step)).then_some(step)
    }

    /// Whether a window moves along memory with the rows: what a tile reads of it for a term lies side by side.
    pub(super) fn rows_of_window(&self, at: &[Ix]) -> bool {
        let ([r], Some((last, others))) = (self.rows.loops.as_slice(), at.split_last()) else { return false };
        self.found.is_window(at) && last.linear_in(*r).is_some_and(|(step, _)| step > 0) && !mentions(others, *r)
    }

    /// Whether a window moves along memory with the lanes, and what a tile reads of it stays in the first cache, or beside it if
    /// lanes lie apart.
    fn is_near_window(&self, at: &[Ix], v: Name) -> bool {
        let Some(step) = self.step_of_lanes(at) else { return false };
        let inside = || self.summed_loops().map(|(index, _, size)| (index, size)).chain([(v, Some(self.wide))]);
        let extent = |ix: &Ix| {
            inside().filter(|(index, _)| ix.mentions(*index)).try_fold(1i64, |extent, (index, size)| {
                extent.checked_add(ix.linear_in(index)?.0.checked_abs()?.checked_mul(size? - 1)?)
            })
        };
        let bytes = at.iter().try_fold(self.found.elem.bytes() as i64, |bytes, ix| bytes.checked_mul(extent(ix)?));
        bytes.is_some_and(|bytes| bytes <= step * WINDOW_BYTES)
    }

    /// Tenths of operations that it takes to pack an operand: whole vectors, squares that are turned, or single elements.
    pub(super) fn packing(&self, operand: &Operand<'_>) -> i64 {
        let count = |index: Name| self.found.count(index);
        let own = self.found.loops().filter(|index| mentions(operand.at, *index));
        let elements = own.filter_map(count).fold(1, i64::saturating_mul);
        let group = if self.lanes.is_in(operand.at) { &self.lanes } else { &self.rows };
        let bytes = self.found.elem.bytes() as i64;
        let last = operand.at.last().and_then(Ix::as_var);
        let run = run_of(group, operand.at).iter().filter_map(|index| count(*index)).fold(1, i64::saturating_mul);
        let is_long = run * bytes >= LINE_BYTES || group.size == Some(run);
        // Whether what is side by side in a panel is in different pages.
        let is_far = self.distance(group, operand.at) > PAGE_BYTES;
        let is_in = |group: &Group| last.is_some_and(|last| group.loops.contains(&last));
        // Rows of panels begin anywhere in runs of the operand: each element is picked by a division.
        let is_picked = group.loops.len() > 1 && group.size != Some(run) && run % self.wide != 0;
        elements.saturating_mul(match group.loops.last().copied() == last {
            true if is_picked => PACKED_PICKED,
            true if is_long => bytes,
            true => PACKED_APART,
            false if self.summed.iter().any(is_in) => {
                if is_far {
                    3 * bytes
                } else {
                    bytes
                }
            }
            false if is_in(group) => PACKED_ACROSS,
            false if self.found.is_window(operand.at) => PACKED_PICKED,
            false => PACKED_APART,
        })
    }

    /// Whether each element of an operand that lies along the lanes is loaded by one tile only.
    fn is_read_once(&self, operand: &Operand<'_>) -> bool {
        let others = self.between.iter().map(|(_, range)| size(range));
        let passes = others.chain([self.rows.size.map(|rows| blocks(rows, self.high))]);
        let is_one = passes.into_iter().all(|passes| passes.is_some_and(|passes| passes <= 1));
        is_one && run_of(&self.lanes, operand.at).len() == self.lanes.loops.len()
    }
}

/// The last loops of a group that are the last dimensions of an operand, in their order: their elements lie side by side.
fn run_of<'b>(group: &'b Group, at: &[Ix]) -> &'b [Name] {
    let count =
        group.loops.iter().rev().zip(at.iter().rev()).take_while(|(index, ix)| **ix == Ix::var(**index)).count();
    &group.loops[group.loops.len() - count..]
}

/// Whether an operand lies along the loop over an index in memory, or what it has at one of its iterations is short, and what it
/// has at the next one comes next.
pub(super) fn lies_along(found: &SumNest<'_>, at: &[Ix], index: Name) -> bool {
    let mut run = found.elem.bytes() as i64;
    for ix in at.iter().rev() {
        if *ix == Ix::var(index) {
            return true;
        }
        let Some(size) = ix.as_var().and_then(|own| found.count(own)) else { return false };
        run = run.saturating_mul(size);
        if run > SHORT_RUN {
            return false;
        }
    }
    false
}
