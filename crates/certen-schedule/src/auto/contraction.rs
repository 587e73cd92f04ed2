//! Contractions with a register tile: `result[…, r, v] = Σ_k A[…, r, k] * B[…, k, v]`, whatever the order of dimensions.
//!
//! The loops around the sum are told apart by which operands have their index (Goto and van de Geijn; TBLIS): the *lanes*
//! `v`; the *rows* `r`, which the operands with `v` lack, so that a vector of them is used for several rows; and others.
//! A tile of rows and vectors stays in registers while the sum runs.
//!
//! Where each element of an operand is used often, it is packed into panels first: those with `v` once, before all
//! rows, so that threads share them; those with `r` block by block, if the sum does not run along their memory. The
//! strides of the caller's arrays no longer matter then, and blocks that are not full run as the others do (`round`).
//! Rows are taken in blocks, so that what a block reads of A stays in the second cache while all panels of B pass by.
//!
//! Where a sum has many terms, blocks of them are added one after the other: what a tile reads of a block stays in the second
//! cache, and the tile is stored and loaded again between blocks.
//!
//! Where all sizes are numbers, the lanes are chosen by cost, loops of rows are taken together, and so are short loops of
//! lanes that lie side by side in the result, and short sums (`collapse`). Else the lanes are the last dimension of
//! the result.
//!
//! Lanes need no step: vectors are made of the loops over `v` that no step touches afterwards.
//!
//! Cost, for each term of the sum: a tile loads rows + vectors and makes rows * vectors fused operations; packing moves
//! each element of an operand once; elements of the result that do not lie side by side are stored one by one. The
//! summands of an element are added in the order of the program.

use certen_core::Range;
use certen_index::Ix;
use certen_syntax::Name;

use super::steps::{Steps, joined};
use super::sum::{
    LINE_BYTES, PAGE_BYTES, STORED_ACROSS, STORED_ALONG, STORED_APART, STORED_FAR, STORED_PERMUTED, SumNest, mentions,
    size,
};
use super::tile::{MANY, blocks, busy, shapes};
use super::{Machine, Planned, Proposal};
use long_sum::LongSum;
use panels::{Operand, lies_along};

mod long_sum;
mod panels;

/// The most rows of a block.
const MOST_ROWS: i64 = 256;

/// The rows of a block of a symmetric result: what lies below the diagonal in a block is computed in vain.
const MIRRORED_ROWS: i64 = 64;

/// A panel is packed if its elements are used this often.
const WORTH_PACKING: i64 = 2;

/// Loops of fewer iterations are taken together with others.
const SHORT_ROWS: i64 = 24;
const SHORT_LANES: i64 = 64;
const SHORT_SUM: i64 = 64;

/// How many addresses of rows stay in registers.
const MOST_ADDRESSES: i64 = 8;

/// The caches beyond the second one hold so many times what half of that does; how many panels are enough for threads, and
/// how many terms for tiles that are far from each other.
const NEARBY: i64 = 16;
const MANY_PANELS: i64 = 16;
const MANY_TERMS: i64 = 512;

/// A panel of more bytes comes from the second cache, and a vector of it takes so many tenths of an operation (measured on Zen 5).
const FIRST_CACHE: i64 = 1 << 15;
const FROM_SECOND: i64 = 37;

/// A number of terms that is not known counts as this.
const UNKNOWN: i64 = 1024;

/// Fewer products than this are made faster than panels are packed.
const FEW_PRODUCTS: i64 = 2048;

/// Sums of so few terms in rows that do not fill half a vector need no tile: several of them are under way anyway.
const TINY: i64 = 8;

/// Tiles of registers: with panels packed, then with the panel of each column of tiles copied, then without.
pub(super) fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Proposal> {
    if found.is_short() {
        return Vec::new();
    }
    let all = Tiling::all(found, machine);
    let best = |is_wanted: fn(&Tiling<'_>) -> bool| {
        all.iter().filter(|tiling| is_wanted(tiling)).min_by_key(|tiling| tiling.cost(machine))
    };
    let Some(tiling) = best(|_| true).filter(|tiling| !tiling.is_tiny(machine)) else { return Vec::new() };
    let in_blocks = LongSum::of(found).and_then(|long| {
        let tiling = best(|tiling| tiling.is_packed() && tiling.is_plain())?;
        Some(Tiling { long: Some(long), ..tiling.clone() }.packed(machine, false))
    });
    let packed = [true, false].into_iter();
    let packed = packed.filter(|mirrored| tiling.is_packed() && (!mirrored || tiling.is_symmetric()));
    let packed = in_blocks.into_iter().chain(packed.map(|mirrored| tiling.packed(machine, mirrored)));
    let direct = [true, false].into_iter().filter_map(|copied| tiling.direct(machine, copied));
    let cost = tiling.cost(machine);
    packed.chain(direct).map(|plan| Proposal { plan, cost }).collect()
}

/// What can be lanes: the last dimension of the result. Where sizes are numbers, any other one too, each by itself or with
/// those before it in the result that the same operands have, until they are many; and what lies together in an operand.
fn lane_groups<'a>(found: &SumNest<'a>, is_known: bool) -> Vec<Vec<(Name, &'a Range)>> {
    let range = |index: Name| found.free.iter().copied().find(|(known, _)| *known == index);
    let mut first: Vec<Name> = found.lanes.into_iter().collect();
    if is_known {
        first.extend(found.free.iter().rev().map(|(index, _)| *index).filter(|index| Some(*index) != found.lanes));
    }
    let mut all = Vec::new();
    for v in first {
        let place = found.at.iter().position(|ix| *ix == Ix::var(v)).or((found.lanes == Some(v)).then_some(0));
        let (Some(place), Some(range_of_v)) = (place, range(v)) else { continue };
        let mut lanes = vec![range_of_v];
        all.push(lanes.clone());
        for ix in found.at[..place].iter().rev().filter(|_| is_known) {
            let before = ix.as_var().and_then(range);
            let before = before.filter(|(index, _)| found.operands(*index) == found.operands(v));
            let is_short = Group::of(lanes.clone()).size.is_some_and(|size| size < SHORT_LANES);
            let Some(before) = before.filter(|_| is_short) else { break };
            lanes.insert(0, before);
            all.push(lanes.clone());
        }
    }
    let read = found.reads.iter().filter(|(_, at)| is_known && found.is_summed(at));
    all.extend(read.filter_map(|(_, at)| together(found, at)).filter(|lanes| !all.contains(lanes)).collect::<Vec<_>>());
    all
}

/// The last dimensions of an operand, if those are several short loops that the same operands have: lanes for which it is read
/// as it lies, and the result is stored in another order.
fn together<'a>(found: &SumNest<'a>, at: &[Ix]) -> Option<Vec<(Name, &'a Range)>> {
    let own = |ix: &Ix| found.free.iter().copied().find(|(index, _)| ix.as_var() == Some(*index));
    let (last, _) = at.last().and_then(own)?;
    let same = |(index, _): &(Name, &Range)| found.operands(*index) == found.operands(last);
    let mut lanes: Vec<_> = at.iter().rev().map_while(|ix| own(ix).filter(same)).collect();
    lanes.reverse();
    let is_short = Group::of(lanes.clone()).size.is_some_and(|size| size <= SHORT_LANES);
    (lanes.len() > 1 && is_short).then_some(lanes)
}

/// What can be rows, of the loops for which `is_row`: the longest one. Where sizes are numbers, more of them too while there are
/// few rows, and the last dimension of the result, so that a tile is stored beside the next one.
fn row_groups<'a>(found: &SumNest<'a>, is_row: impl Fn(Name) -> bool, is_known: bool) -> Vec<Vec<(Name, &'a Range)>> {
    let mut rows: Vec<_> = found.free.iter().rev().copied().filter(|(index, _)| is_row(*index)).collect();
    rows.sort_by_key(|(_, range)| std::cmp::Reverse(size(range)));
    let Some(longest) = rows.first().copied() else { return Vec::new() };
    if !is_known {
        return vec![vec![longest]];
    }
    let last = rows.iter().copied().find(|(index, _)| found.lanes == Some(*index));
    let are_enough = |count: &usize| Group::of(rows[..*count].to_vec()).size.is_none_or(|size| size >= SHORT_ROWS);
    let count = (1..=rows.len()).find(are_enough).unwrap_or(rows.len());
    rows.truncate(count);
    rows.sort_by_key(|(index, _)| found.free.iter().position(|(free, _)| free == index));
    let mut groups = vec![rows, vec![longest]];
    groups.extend(last.map(|last| vec![last]));
    groups
}

/// Loops that are taken together, in this order.
#[derive(Clone)]
struct Group {
    loops: Vec<Name>,
    /// How many iterations they have together, if that is a number.
    size: Option<i64>,
}

impl Group {
    fn of(loops: Vec<(Name, &Range)>) -> Group {
        let size = loops.iter().try_fold(1i64, |product, (_, range)| product.checked_mul(size(range)?));
        Group { loops: loops.into_iter().map(|(index, _)| index).collect(), size }
    }

    /// What `collapse` calls the loop that it makes of them.
    fn name(&self) -> String {
        self.loops.iter().map(Name::to_string).collect::<Vec<_>>().join(".")
    }

    fn is_in(&self, at: &[Ix]) -> bool {
        self.loops.iter().any(|index| mentions(at, *index))
    }
}

/// How the loops of a sum of products are tiled.
#[derive(Clone)]
struct Tiling<'a> {
    found: &'a SumNest<'a>,
    rows: Group,
    lanes: Group,
    summed: Vec<Group>,
    /// If the sum is made in blocks.
    long: Option<LongSum>,
    /// The loops around that change the panels, and those that do not.
    outside: Vec<(Name, &'a Range)>,
    between: Vec<(Name, &'a Range)>,
    /// Those of them along which an operand lies in memory.
    strips: Vec<Name>,
    /// The rows and lanes of a tile.
    high: i64,
    wide: i64,
    /// How often an element of a panel is used.
    reuse: i64,
}

impl<'a> Tiling<'a> {
    /// All that can be.
    fn all(found: &'a SumNest<'a>, machine: &Machine) -> Vec<Tiling<'a>> {
        // The outermost loop may run over a batch of any size, if it is no part of the tiles.
        let mut open = found.free.iter().chain(&found.summed).filter(|(_, range)| size(range).is_none());
        let (open, others) = (open.next().map(|(index, _)| *index), open.next());
        let may_be_batch = others.is_none() && open == found.free.first().map(|(index, _)| *index);
        let with = |is_known: bool| {
            let groups = lane_groups(found, is_known).into_iter();
            let all = groups.flat_map(move |lanes| Tiling::with_lanes(found, lanes, is_known, machine));
            all.filter(move |tiling| !is_known || tiling.products() >= FEW_PRODUCTS)
        };
        let Some(batch) = open else { return with(true).collect() };
        let is_around =
            |tiling: &Tiling<'_>| [&tiling.rows, &tiling.lanes].iter().all(|group| !group.loops.contains(&batch));
        let around: Vec<Tiling<'a>> = with(true).filter(|tiling| may_be_batch && is_around(tiling)).collect();
        if around.is_empty() { with(false).collect() } else { around }
    }

    /// Whether a tile is a rectangle of the result, whose rows lie along memory.
    fn is_plain(&self) -> bool {
        self.rows.loops.len() == 1 && self.lanes.loops.as_slice() == self.found.lanes.as_slice()
    }

    /// The tilings with these lanes: one for each shape of a tile.
    fn with_lanes(
        found: &'a SumNest<'a>,
        lanes: Vec<(Name, &'a Range)>,
        is_known: bool,
        machine: &Machine,
    ) -> Vec<Tiling<'a>> {
        let operands = |index: Name| found.operands(index);
        let Some(of_lanes) = lanes.last().map(|(v, _)| operands(*v)).filter(|own| own.contains(&true)) else {
            return Vec::new();
        };
        let is_row = |index: Name| {
            let own = operands(index);
            own.contains(&true) && !own.iter().zip(&of_lanes).any(|(own, lanes)| *own && *lanes)
        };
        let lanes = Group::of(lanes);
        let groups = row_groups(found, is_row, is_known).into_iter();
        groups.flat_map(|rows| Tiling::with_rows(found, Group::of(rows), lanes.clone(), is_known, machine)).collect()
    }

    /// Those with these rows too.
    fn with_rows(
        found: &'a SumNest<'a>,
        rows: Group,
        lanes: Group,
        is_known: bool,
        machine: &Machine,
    ) -> Vec<Tiling<'a>> {
        let operands = |index: Name| found.operands(index);
        let of_lanes = lanes.loops.last().map(|v| operands(*v)).unwrap_or_default();
        let is_other = |index: &Name| !rows.loops.contains(index) && !lanes.loops.contains(index);
        let others = found.free.iter().copied().filter(|(index, _)| is_other(index));
        let changes = |index: Name| operands(index).iter().zip(&of_lanes).any(|(own, lanes)| *own && *lanes);
        let (mut outside, mut between): (Vec<_>, Vec<_>) = others.partition(|(index, _)| changes(*index));
        let inside = || found.reads.iter().filter(|(_, at)| found.is_summed(at));
        let mut strips: Vec<Name> = Vec::new();
        for loops in [&mut outside, &mut between] {
            let place = |at: &[Ix]| loops.iter().position(|(index, _)| lies_along(found, at, *index));
            let all = [&lanes, &rows].into_iter().flat_map(|group| inside().filter(|(_, at)| group.is_in(at)));
            if let Some(place) = all.into_iter().find_map(|(_, at)| place(at)) {
                let strip = loops.remove(place);
                loops.push(strip);
                strips.push(strip.0);
            }
        }
        // A short sum is one with those around it, if operands have the indices of all or none.
        let is_short = found.summed.last().is_some_and(|(_, range)| size(range).is_some_and(|terms| terms < SHORT_SUM));
        let all_or_none = |at: &[Ix]| {
            let mut has = found.summed.iter().map(|(index, _)| mentions(at, *index));
            let first = has.next();
            has.all(|other| Some(other) == first)
        };
        let summed =
            match is_known && is_short && found.is_perfect() && found.reads.iter().all(|(_, at)| all_or_none(at)) {
                true => vec![Group::of(found.summed.clone())],
                false => found.summed.iter().map(|one| Group::of(vec![*one])).collect(),
            };
        let reuse = between.iter().map(|(_, range)| size(range)).chain([rows.size]);
        let reuse = reuse.fold(1, |product: i64, size| product.saturating_mul(size.unwrap_or(UNKNOWN)));
        let shapes = shapes(machine, found.elem, rows.size, lanes.size);
        let tiling =
            Tiling { found, rows, lanes, summed, long: None, outside, between, strips, high: 1, wide: 1, reuse };
        shapes.into_iter().map(|(high, wide)| Tiling { high, wide, ..tiling.clone() }).collect()
    }

    /// How many products are made.
    fn products(&self) -> i64 {
        let all = self.found.free.iter().chain(&self.found.summed).map(|(_, range)| size(range).unwrap_or(UNKNOWN));
        all.fold(1, i64::saturating_mul)
    }

    /// Whether a tile gains nothing: its rows do not fill half a vector, and have few terms.
    fn is_tiny(&self, machine: &Machine) -> bool {
        let lanes = machine.vector_bytes / self.found.elem.bytes() as i64;
        self.lanes.size.is_some_and(|size| 2 * size <= lanes) && self.found.terms().is_some_and(|terms| terms <= TINY)
    }

    /// Tenths of operations: of the tiles, of storing them, and of packing what they read.
    fn cost(&self, machine: &Machine) -> i64 {
        let others = self.outside.iter().chain(&self.between).filter_map(|(_, range)| size(range));
        let terms = self.found.summed.iter().filter_map(|(_, range)| size(range)).fold(1, i64::saturating_mul);
        let (rows, columns) = (self.rows.size.unwrap_or(MANY), self.lanes.size.unwrap_or(MANY));
        let along = self.ends_along(self.order(machine), true, machine);
        let is_full = along != Ends::Padded;
        let packed = if self.is_packed() { self.operands(is_full) } else { Vec::new() };
        // Rows that are packed because they are far apart cost no more than reading them there.
        let costs = |operand: &&Operand<'_>| self.lanes.is_in(operand.at) || !self.is_read_from_far(operand);
        let packing = packed.iter().filter(costs).map(|operand| self.packing(operand)).fold(0, i64::saturating_add);
        // Each row that is read where it lies has an address of its own, which registers hold for some.
        let lie_apart = self.found.reads.iter().any(|(buffer, at)| {
            self.rows.is_in(at)
                && !self.rows_of_window(at)
                && packed.iter().all(|operand| (operand.buffer, operand.at) != (*buffer, *at))
        });
        let addresses = if lie_apart { 10 * (self.high - MOST_ADDRESSES).max(0) } else { 0 };
        // Lanes that lie apart take more loads, and are brought together.
        let reads_there = |at: &&[Ix]| packed.iter().all(|operand| operand.at != *at);
        let apart = self.found.reads.iter().map(|(_, at)| *at).filter(|at| self.lanes.is_in(at)).filter(reads_there);
        let apart = apart.filter_map(|at| self.step_of_lanes(at)).max().map_or(0, |step| 20 * (step - 1));
        let lanes = machine.vector_bytes / self.found.elem.bytes() as i64;
        let busy = |wide: i64| {
            let vectors = blocks(wide, lanes);
            let is_far = terms.saturating_mul(wide * self.found.elem.bytes() as i64) > FIRST_CACHE;
            let loads = if is_far { FROM_SECOND * vectors } else { 0 };
            busy(machine, self.found.elem, self.high, wide).max(loads) + addresses + apart * vectors
        };
        let row = match along {
            Ends::Narrow(rest) => busy(self.wide).saturating_mul(columns / self.wide).saturating_add(busy(rest)),
            Ends::Full | Ends::Inwards | Ends::Padded => busy(self.wide).saturating_mul(blocks(columns, self.wide)),
        };
        let products = row.saturating_mul(blocks(rows, self.high)).saturating_mul(terms);
        let is_dense = |group: &Group| self.found.lanes.is_some_and(|last| group.loops.last() == Some(&last));
        let store = match (is_dense(&self.lanes), is_dense(&self.rows)) {
            _ if self.is_permuted() => STORED_PERMUTED,
            (true, _) => STORED_ALONG,
            (false, true) => STORED_ACROSS,
            (false, false) if self.distance(&self.lanes, self.found.at) > PAGE_BYTES => STORED_FAR,
            (false, false) => STORED_APART,
        };
        let stores = rows.saturating_mul(columns).saturating_mul(store);
        others.fold(products.saturating_add(stores), i64::saturating_mul).saturating_add(packing)
    }

    /// Whether the lanes are several loops that do not follow each other in the result.
    fn is_permuted(&self) -> bool {
        let place = |index: &Name| self.found.at.iter().position(|ix| ix.mentions(*index));
        let follows = |pair: &[Name]| place(&pair[0]).map(|place| place + 1) == place(&pair[1]);
        !self.lanes.loops.windows(2).all(follows)
    }

    /// Whether panels are packed.
    fn is_packed(&self) -> bool {
        self.found.elem.is_float() && self.reuse >= WORTH_PACKING
    }

    /// In which order tiles are computed. Panels that stay in a cache while all rows pass by are best left there: rows are
    /// computed one after the other then. Else rows are taken in blocks: half of the second cache holds what one reads, and
    /// there are enough of them for threads to end together. Where all rows are one such block, no panel is needed for
    /// longer than they take.
    fn order(&self, machine: &Machine) -> Order {
        let bytes = |group: &Group| {
            let reads = || self.found.reads.iter().filter(|(_, at)| group.is_in(at));
            let loops = self.summed_loops().filter(|(index, ..)| reads().any(|(_, at)| mentions(at, *index)));
            let size = loops.map(|(_, _, size)| size).try_fold(1i64, |product, size| product.checked_mul(size?));
            size.map(|size| size.max(1).saturating_mul(self.found.elem.bytes() as i64))
        };
        let panels = self.lanes.size.zip(bytes(&self.lanes)).map(|(columns, bytes)| columns.saturating_mul(bytes));
        if panels.is_some_and(|bytes| bytes <= machine.l2_bytes / 4) {
            return Order::Rows;
        }
        let unknown = UNKNOWN * self.found.elem.bytes() as i64;
        let fitting = machine.l2_bytes / 2 / bytes(&self.rows).unwrap_or(unknown);
        let is_outermost = self.outside.is_empty() && self.between.is_empty();
        let passing = if is_outermost && self.may_pass(machine) { NEARBY * fitting } else { fitting };
        if panels.is_some() && self.between.is_empty() && self.rows.size.is_some_and(|rows| rows <= passing) {
            return Order::Lanes;
        }
        let shared = self.rows.size.filter(|_| is_outermost).map_or(i64::MAX, |rows| rows / 8);
        let block = fitting.min(shared).min(MOST_ROWS) / self.high * self.high;
        let is_cut = self.rows.size.is_none_or(|rows| rows > block);
        if block >= 2 * self.high && is_cut { Order::Blocks(block) } else { Order::Rows }
    }

    /// Whether all rows may pass by each panel: they are read where they lie, a panel stays in the second cache, there are
    /// enough panels for threads, each of which packs its own, and enough terms, for the tiles of a column are stored far from
    /// each other.
    fn may_pass(&self, machine: &Machine) -> bool {
        let is_full = self.ends(false, &self.lanes, self.wide) == Ends::Full;
        let terms = self.summed_loops().try_fold(1i64, |product, (_, _, size)| product.checked_mul(size?));
        let Some(terms) = terms.filter(|terms| *terms >= MANY_TERMS) else { return false };
        let panel = terms.saturating_mul(self.wide * self.found.elem.bytes() as i64);
        let lie_there = self.operands(is_full).iter().all(|operand| self.lanes.is_in(operand.at));
        let panels = self.lanes.size.map_or(0, |columns| columns / self.wide);
        lie_there && panel <= machine.l2_bytes / 2 && panels >= MANY_PANELS
    }

    /// The loops in the order others, rows, lanes, with groups as one loop.
    fn arranged(&self, machine: &Machine, order: Order) -> Steps {
        let mut steps = self.found.steps(machine);
        let names = |loops: &[(Name, &Range)]| loops.iter().map(|(index, _)| *index).collect::<Vec<_>>();
        let (outside, between) = (names(&self.outside), names(&self.between));
        let (outer, inner) = match order {
            Order::Lanes => (&self.lanes, &self.rows),
            Order::Rows | Order::Blocks(_) | Order::Mirrored(_) => (&self.rows, &self.lanes),
        };
        match &self.long {
            None => {
                steps.reorder(&self.found.free, &[&outside[..], &between, &outer.loops, &inner.loops].concat());
            }
            Some(long) => {
                if let Some((index, block)) = long.split {
                    steps.add(format!("split({}, {block})", steps.path(index)));
                }
                let sums = long.around(self.found).into_iter().map(|one| one.name);
                let inside = between.iter().chain(&outer.loops).chain(&inner.loops);
                let all = outside.iter().map(Name::to_string).chain(sums).chain(inside.map(Name::to_string));
                let all: Vec<String> = all.map(|name| steps.path(name)).collect();
                steps.add(format!("reorder([{}])", all.join(", ")));
            }
        }
        for group in [&self.rows, &self.lanes] {
            steps.collapse(&group.loops);
        }
        steps
    }

    /// Short sums become one loop, once their operands are packed: the loops that pack them need not divide. Where a window is
    /// read as it lies, its place would have to be divided out of that loop.
    fn join_summed(&self, steps: &mut Steps, packed: &[Name]) {
        let is_read = |(buffer, at): &(Name, &[Ix])| self.found.is_window(at) && !packed.contains(buffer);
        let may_join = self.long.is_none() && !self.found.reads.iter().any(is_read);
        for group in self.summed.iter().filter(|_| may_join) {
            steps.collapse(&group.loops);
        }
    }

    /// The loops of the sum inside a tile, before they are joined: their indices, what they are called, and how many iterations
    /// they have.
    fn summed_loops(&self) -> impl Iterator<Item = (Name, String, Option<i64>)> {
        let first = self.long.as_ref().map_or(0, |long| long.whole);
        self.found.summed[first..].iter().map(|(index, range)| {
            let plain = || (index.to_string(), size(range));
            let (name, size) = self.long.as_ref().map_or_else(plain, |long| long.inside((*index, range)));
            (*index, name, size)
        })
    }

    /// Whether rows and lanes run over the same elements of the same operand, and there are many of them.
    fn is_symmetric(&self) -> bool {
        let ([r], [v]) = (self.rows.loops.as_slice(), self.lanes.loops.as_slice()) else { return false };
        let exchanged = |ix: &Ix| match ix.as_var() {
            Some(index) if index == *r => Ix::var(*v),
            Some(index) if index == *v => Ix::var(*r),
            _ => ix.clone(),
        };
        let [(one, at), (other, across)] = self.found.reads.as_slice() else { return false };
        one == other
            && at.iter().map(exchanged).eq(across.iter().cloned())
            && self.rows.size.is_none_or(|rows| rows >= 4 * MIRRORED_ROWS)
    }

    /// Panels are packed, and every tile is full. Of a symmetric result, one half may be computed.
    fn packed(&self, machine: &Machine, mirrored: bool) -> Planned {
        let Tiling { high, wide, .. } = self;
        let order = if mirrored { Order::Mirrored(MIRRORED_ROWS / high * high) } else { self.order(machine) };
        let mut steps = self.arranged(machine, order);
        let (r, v) = (self.rows.name(), self.lanes.name());
        let rows = self.rows_of_block(order);
        self.split_strips(&mut steps);
        let parallel = self.around().find(|one| !one.is_sum).filter(|one| one.size.is_none_or(|size| size >= 4));
        // Blocks that overlap belong to one thread.
        let lanes_are_shared = parallel.is_none() && order == Order::Lanes;
        let along = self.ends_along(order, !lanes_are_shared, machine);
        let rows_are_shared = parallel.is_none() && order == Order::Rows;
        let across = self.ends(order.block().is_none() && !rows_are_shared, &self.rows, *high);
        self.cut(&mut steps, order, [across, along]);
        let (columns, outermost) = (steps.path(format!("{v}.o")), steps.path(format!("{r}.o")));
        // Stored along the rows, where these lie side by side in the result.
        let has_dense_rows = self.found.lanes.is_some_and(|dense| self.rows.loops.last() == Some(&dense));
        if self.found.is_perfect() && has_dense_rows {
            let [rows, lanes] = [&rows, &v].map(|index| steps.path(format!("{index}.i.after")));
            steps.add(format!("interchange({rows}, {lanes})"));
        }
        if let Order::Blocks(_) = order {
            steps.add(format!("interchange({}, {columns})", steps.path(format!("{rows}.o"))));
        }
        if let Some((_, name, _)) = self.summed_loops().next().filter(|_| self.long.is_some()) {
            steps.add(format!("registers({}, {})", self.found.local, steps.path(name)));
        }
        let outermost = if order == Order::Lanes { columns.clone() } else { outermost };
        let (packed, shared) = self.pack(&mut steps, order, along);
        if along == Ends::Padded {
            steps.add(format!("round({columns})"));
        }
        if across == Ends::Padded {
            steps.add(format!("round({})", steps.path(format!("{rows}.o"))));
        }
        self.join_summed(&mut steps, &packed);
        steps.parallelize(&parallel.map_or(outermost, |one| steps.path(one.name)));
        for buffer in &shared {
            steps.parallelize(&format!("{buffer}_packed.c0"));
        }
        let fills_lines = along == Ends::Full && (wide * self.found.elem.bytes() as i64) % LINE_BYTES == 0;
        let is_dense = self.lanes.loops.len() == 1 && self.found.lanes == self.lanes.loops.first().copied();
        let streamed = self.found.streamed.filter(|_| fills_lines && is_dense && !mirrored && self.long.is_none());
        if let Some(result) = streamed {
            steps.add(format!("stream({result})"));
        }
        let mut how = match order {
            Order::Rows => String::new(),
            Order::Lanes => ", all rows for each of them".into(),
            Order::Blocks(block) => format!(", in blocks of {block} rows"),
            Order::Mirrored(block) => format!(", in blocks of {block} rows on and above the diagonal"),
        };
        if self.long.is_some() {
            let terms = self.summed_loops().filter_map(|(_, _, size)| size).fold(1, i64::saturating_mul);
            how += &format!(", {terms} terms at a time");
        }
        if let Ends::Narrow(rest) = along {
            how += &format!(", the last {rest} lanes by themselves");
        }
        if !packed.is_empty() {
            how += &format!(", {} packed", joined(&packed));
        }
        if let Some(result) = streamed {
            how += &format!("; {result} is stored past the caches");
        }
        self.found.planned(steps, self.why(&how))
    }

    /// The loops of rows and lanes become loops over tiles, and inside a tile, with the sums around those.
    fn cut(&self, steps: &mut Steps, order: Order, [across, along]: [Ends; 2]) {
        let Tiling { high, wide, .. } = self;
        let (r, v) = (self.rows.name(), self.lanes.name());
        let rows = self.rows_of_block(order);
        let is_narrow = self.lanes.size.is_some_and(|columns| columns < *wide);
        if let Order::Blocks(block) = order {
            steps.add(format!("split({}, {block})", steps.path(&r)));
        }
        if let Order::Mirrored(block) = order {
            steps.add(format!("mirror({}, {}, {block}, {wide})", steps.path(&r), steps.path(&v)));
            steps.add(format!("split({}, {high})", steps.path(&rows)));
        } else if is_narrow || order == Order::Lanes || [across, along].iter().any(|ends| !ends.are_plain()) {
            steps.add(format!("split({}, {high}{})", steps.path(&rows), across.word()));
            // A tile that is never full has room all the same.
            let along = if is_narrow { ", whole" } else { along.word() };
            steps.add(format!("split({}, {wide}{along})", steps.path(&v)));
            let mut pieces = [(&rows, "o"), (&v, "o"), (&rows, "i"), (&v, "i")];
            if order == Order::Lanes {
                pieces.swap(0, 1);
            }
            let pieces = pieces.map(|(index, piece)| steps.path(format!("{index}.{piece}")));
            steps.add(format!("reorder([{}])", pieces.join(", ")));
        } else {
            steps.add(format!("tile([{}, {}], [{high}, {wide}])", steps.path(&rows), steps.path(&v)));
        }
        let summed = self.summed_loops().map(|(_, name, _)| steps.path(name));
        let inside: Vec<String> = summed.chain([&rows, &v].map(|index| steps.path(format!("{index}.i")))).collect();
        if let Ends::Narrow(_) = along {
            steps.add(format!("peel({}, tail)", steps.path(format!("{v}.o"))));
            let tail: Vec<String> = inside.iter().map(|path| format!("{path}.tail")).collect();
            steps.add(format!("reorder([{}])", tail.join(", ")));
        }
        steps.add(format!("reorder([{}])", inside.join(", ")));
    }

    /// The loop of the rows inside a block, or of all.
    fn rows_of_block(&self, order: Order) -> String {
        if order.block().is_some() { format!("{}.i", self.rows.name()) } else { self.rows.name() }
    }

    /// What becomes of the last tile along the lanes: it is narrower than the others where its lanes fill vectors, or one of
    /// half or a quarter of the length, and nothing is packed for it.
    fn ends_along(&self, order: Order, may_repeat: bool, machine: &Machine) -> Ends {
        let may_repeat = may_repeat && !matches!(order, Order::Mirrored(_));
        let lanes = machine.vector_bytes / self.found.elem.bytes() as i64;
        let rest = self.lanes.size.filter(|columns| *columns > self.wide).map_or(0, |columns| columns % self.wide);
        let has_vectors = rest > 0 && (rest % lanes == 0 || rest == lanes / 2 || rest == lanes / 4);
        let is_plain = order == Order::Rows && self.is_plain() && self.found.summed.len() == 1 && self.long.is_none();
        let is_read = || self.operands(true).iter().all(|operand| !self.lanes.is_in(operand.at));
        match has_vectors && rest > 1 && is_plain && is_read() {
            true => Ends::Narrow(rest),
            false => self.ends(may_repeat, &self.lanes, self.wide),
        }
    }

    /// What becomes of the last tile in a direction. One that makes elements again needs a plain store, one loop, and as
    /// many elements as it has.
    fn ends(&self, may_repeat: bool, group: &Group, tile: i64) -> Ends {
        let may_repeat = may_repeat && self.found.overwrites && self.long.is_none() && group.loops.len() == 1;
        match group.size {
            Some(size) if size % tile == 0 => Ends::Full,
            Some(size) if size > tile && may_repeat => Ends::Inwards,
            _ => Ends::Padded,
        }
    }

    /// The panel of each column of tiles is copied, or none; elements that fill no tile stay as they were.
    fn direct(&self, machine: &Machine, copied: bool) -> Option<Planned> {
        let Tiling { high, wide, .. } = self;
        let v = *self.lanes.loops.last().filter(|v| self.found.lanes == Some(**v) && self.lanes.loops.len() == 1)?;
        if *high < 2 || self.lanes.size.is_some_and(|columns| columns < *wide) {
            return None;
        }
        // Only what the innermost sum runs over is used often enough.
        let (innermost, _) = self.found.summed.last()?;
        let panels: Vec<_> = self.found.panels().filter(|(_, at)| mentions(at, *innermost)).collect();
        let mut steps = self.arranged(machine, Order::Rows);
        let r = self.rows.name();
        steps.add(format!("tile([{}, {}], [{high}, {wide}])", steps.path(&r), steps.path(v)));
        for (index, size, block) in [(r.clone(), self.rows.size, high), (v.to_string(), self.lanes.size, wide)] {
            if size.is_none_or(|size| size % block != 0) {
                steps.add(format!("peel({}, tail)", steps.path(format!("{index}.o"))));
            }
        }
        let summed = self.summed_loops().map(|(_, name, _)| steps.path(name));
        let tile = [steps.path(format!("{r}.i")), steps.path(format!("{v}.i"))];
        steps.add(format!("reorder([{}])", summed.chain(tile).collect::<Vec<_>>().join(", ")));
        let column = steps.path(format!("{v}.o"));
        steps.add(format!("interchange({}, {column})", steps.path(format!("{r}.o"))));
        let mut how = String::new();
        if copied {
            for panel in &panels {
                steps.add(copy(panel, v, &column)?);
            }
            how = format!(", panels of {} copied", joined(&panels.iter().map(|(name, _)| *name).collect::<Vec<_>>()));
        }
        self.join_summed(&mut steps, &[]);
        let outer = self.outside.iter().chain(&self.between).next();
        steps.parallelize(&outer.map_or(column, |(index, _)| steps.path(index)));
        Some(self.found.planned(steps, self.why(&how)))
    }

    /// What was recognised, and what was chosen for it.
    fn why(&self, how: &str) -> String {
        let over: Vec<Name> = self.found.summed.iter().map(|(index, _)| *index).collect();
        let Tiling { high, wide, .. } = self;
        let (r, v) = (joined(&self.rows.loops), joined(&self.lanes.loops));
        let over = joined(&over);
        format!(
            "a contraction over {over}: {wide} lanes of {v} for {high} rows of {r} stay in registers while it runs{how}"
        )
    }
}

/// In which order tiles are computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// A row of tiles after the other.
    Rows,
    /// A column of tiles after the other.
    Lanes,
    /// Columns of tiles in each block of so many rows.
    Blocks(i64),
    /// The same, where the result is symmetric: its other half is copied.
    Mirrored(i64),
}

impl Order {
    /// The rows of a block.
    fn block(self) -> Option<i64> {
        match self {
            Order::Rows | Order::Lanes => None,
            Order::Blocks(block) | Order::Mirrored(block) => Some(block),
        }
    }
}

/// The last tile in a direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// It is full.
    Full,
    /// It begins earlier, and makes some elements again.
    Inwards,
    /// It has so many lanes.
    Narrow(i64),
    /// It computes elements that nothing uses.
    Padded,
}

impl Ends {
    /// Whether all tiles are split off alike.
    fn are_plain(self) -> bool {
        matches!(self, Ends::Full | Ends::Padded)
    }

    /// What `split` is told.
    fn word(self) -> &'static str {
        if self == Ends::Inwards { ", inwards" } else { "" }
    }
}

/// Copies the panel that a column of tiles needs: the dimension of the lanes last.
fn copy((panel, at): &(Name, &[Ix]), lanes: Name, column: &str) -> Option<String> {
    let mut with_lanes = at.iter().enumerate().filter(|(_, ix)| ix.mentions(lanes));
    let ((place, ix), None) = (with_lanes.next()?, with_lanes.next()) else { return None };
    if *ix != Ix::var(lanes) {
        return None;
    }
    if place == at.len() - 1 {
        return Some(format!("stage({panel}, {column})"));
    }
    let order: Vec<String> = (0..at.len()).filter(|d| *d != place).chain([place]).map(|d| d.to_string()).collect();
    Some(format!("stage({panel}, {column}, [{}])", order.join(", ")))
}
