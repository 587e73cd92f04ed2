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
//! Where all sizes are numbers, the lanes are chosen by cost, loops of rows are taken together, and so are short loops of
//! lanes that lie side by side in the result, and short sums (`collapse`). Else the lanes are the last dimension of
//! the result.
//!
//! Lanes need no step: vectors are made of the loops over `v` that nobody touches afterwards.
//!
//! Cost, for each term of the sum: a tile loads rows + vectors and makes rows * vectors fused operations; packing moves
//! each element of an operand once; elements of the result that do not lie side by side are stored one by one. The
//! summands of an element are added in the order of the program.

use certen_core::Range;
use certen_index::Ix;
use certen_syntax::Name;

use super::steps::{Steps, listed};
use super::sum::{LINE_BYTES, SumNest, mentions, size};
use super::tile::{MANY, blocks, busy, tile};
use super::{Machine, Planned};

/// The most rows of a block.
const MOST_ROWS: i64 = 256;

/// The rows of a block of a symmetric result: what lies below the diagonal in a block is computed in vain.
const MIRRORED_ROWS: i64 = 64;

/// What is no larger is read where it lies, if it lies along the lanes: half of the smallest first cache.
const NEAR_BYTES: i64 = 1 << 14;

/// A panel is packed if its elements are used this often.
const WORTH_PACKING: i64 = 2;

/// How many iterations of a loop around are packed together where an operand lies along it, unless it has few.
const STRIP: i64 = 16;
const MOST_STRIP: i64 = 32;

/// What lies side by side is short if it has no more bytes than this.
const SHORT_RUN: i64 = 256;

/// An operand is packed once, before loops that it does not depend on, if it has no more bytes than this.
const MOST_PACKED: i64 = 64 << 20;

/// Loops of fewer iterations are taken together with others.
const SHORT_ROWS: i64 = 24;
const SHORT_LANES: i64 = 64;
const SHORT_SUM: i64 = 64;

/// A number of terms that is not known counts as this.
const UNKNOWN: i64 = 1024;

/// Fewer products than this are made faster than panels are packed.
const FEW_PRODUCTS: i64 = 2048;

/// Tiles of registers: with panels packed, then with the panel of each column of tiles copied, then without.
pub(super) fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Planned> {
    if found.is_short() {
        return Vec::new();
    }
    let Some(tiling) = Tiling::best(found, machine) else { return Vec::new() };
    let packed = found.elem.is_float() && tiling.reuse >= WORTH_PACKING;
    let packed = [true, false].into_iter().filter(|mirrored| packed && (!mirrored || tiling.is_symmetric()));
    let packed = packed.map(|mirrored| tiling.packed(machine, mirrored));
    let direct = [true, false].into_iter().filter_map(|copied| tiling.direct(machine, copied));
    packed.chain(direct).collect()
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
struct Tiling<'a> {
    found: &'a SumNest<'a>,
    rows: Group,
    lanes: Group,
    summed: Vec<Group>,
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
    /// The tiling that costs least.
    fn best(found: &'a SumNest<'a>, machine: &Machine) -> Option<Tiling<'a>> {
        let is_known = found.free.iter().chain(&found.summed).all(|(_, range)| size(range).is_some());
        let mut lanes: Vec<Name> = found.lanes.into_iter().collect();
        if is_known {
            lanes.extend(found.free.iter().rev().map(|(index, _)| *index).filter(|index| Some(*index) != found.lanes));
        }
        let all = lanes.into_iter().filter_map(|v| Tiling::with_lanes(found, v, is_known, machine));
        all.min_by_key(|tiling| tiling.cost(machine)).filter(|tiling| !is_known || tiling.products() >= FEW_PRODUCTS)
    }

    fn with_lanes(found: &'a SumNest<'a>, v: Name, is_known: bool, machine: &Machine) -> Option<Tiling<'a>> {
        let operands = |index: Name| found.operands(index);
        let of_lanes = operands(v);
        if !of_lanes.contains(&true) {
            return None;
        }
        let is_row = |index: Name| {
            let own = operands(index);
            own.contains(&true) && !own.iter().zip(&of_lanes).any(|(own, lanes)| *own && *lanes)
        };
        let mut rows: Vec<_> = found.free.iter().rev().copied().filter(|(index, _)| is_row(*index)).collect();
        // One of them, and more while there are few rows.
        rows.sort_by_key(|(_, range)| std::cmp::Reverse(size(range)));
        let enough =
            |count: usize| !is_known || Group::of(rows[..count].to_vec()).size.is_none_or(|size| size >= SHORT_ROWS);
        let count = (1..=rows.len()).find(|count| enough(*count)).unwrap_or(rows.len());
        rows.truncate(count);
        rows.sort_by_key(|(index, _)| found.free.iter().position(|(free, _)| free == index));
        // Those before it in the result, while they are of the same operands.
        let range = |index: Name| found.free.iter().copied().find(|(known, _)| *known == index);
        let place = found.at.iter().position(|ix| *ix == Ix::var(v)).or((found.lanes == Some(v)).then_some(0))?;
        let mut lanes = vec![range(v)?];
        for ix in found.at[..place].iter().rev().filter(|_| is_known) {
            let before = ix.as_var().and_then(range).filter(|(index, _)| operands(*index) == of_lanes);
            // Neighbours in memory are not to be far from each other among the lanes, if there are enough without them.
            let most = machine.vector_bytes / found.elem.bytes() as i64;
            let are_enough = Group::of(lanes.clone()).size.is_some_and(|size| 4 * size >= 3 * most);
            let is_turned =
                |index: Name| are_enough && found.reads.iter().any(|(_, at)| at.last() == Some(&Ix::var(index)));
            match before.filter(|(index, _)| !is_turned(*index)) {
                Some(before) if Group::of(lanes.clone()).size.is_some_and(|size| size < SHORT_LANES) => {
                    lanes.insert(0, before)
                }
                _ => break,
            }
        }
        let (rows, lanes) = (Group::of(rows), Group::of(lanes));
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
        let reuse = between.iter().map(|(_, range)| size(range)).chain([rows.size]);
        let reuse = reuse.fold(1, |product: i64, size| product.saturating_mul(size.unwrap_or(UNKNOWN)));
        let (high, wide) = tile(machine, found.elem, rows.size, lanes.size).filter(|_| !rows.loops.is_empty())?;
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
        Some(Tiling { found, rows, lanes, summed, outside, between, strips, high, wide, reuse })
    }

    /// How many products are made, where sizes are numbers.
    fn products(&self) -> i64 {
        let all = self.found.free.iter().chain(&self.found.summed).filter_map(|(_, range)| size(range));
        all.fold(1, i64::saturating_mul)
    }

    /// Tenths of operations: of the tiles, and of the stores that are not made by vectors.
    fn cost(&self, machine: &Machine) -> i64 {
        let others = self.outside.iter().chain(&self.between).filter_map(|(_, range)| size(range));
        let terms = self.found.summed.iter().filter_map(|(_, range)| size(range)).fold(1, i64::saturating_mul);
        let (rows, columns) = (self.rows.size.unwrap_or(MANY), self.lanes.size.unwrap_or(MANY));
        let tiles = blocks(rows, self.high).saturating_mul(blocks(columns, self.wide));
        let products = busy(machine, self.found.elem, self.high, self.wide).saturating_mul(tiles).saturating_mul(terms);
        let is_dense = self.found.lanes.is_some_and(|last| self.lanes.loops.contains(&last));
        let stores = rows.saturating_mul(columns).saturating_mul(if is_dense { 5 } else { 40 });
        others.fold(products.saturating_add(stores), i64::saturating_mul)
    }

    /// In which order tiles are computed. Panels that stay in a cache while all rows pass by are best left there: rows are
    /// computed one after the other then. Else rows are taken in blocks: half of the second cache holds what one reads, and
    /// there are enough of them for threads to end together. Where all rows are one such block, no panel is needed for
    /// longer than they take.
    fn order(&self, machine: &Machine) -> Order {
        let bytes = |group: &Group| {
            let reads = || self.found.reads.iter().filter(|(_, at)| group.is_in(at));
            let loops = self.found.summed.iter().filter(|(index, _)| reads().any(|(_, at)| mentions(at, *index)));
            let size = loops.map(|(_, range)| size(range)).try_fold(1i64, |product, size| product.checked_mul(size?));
            size.map(|size| size.max(1).saturating_mul(self.found.elem.bytes() as i64))
        };
        let panels = self.lanes.size.zip(bytes(&self.lanes)).map(|(columns, bytes)| columns.saturating_mul(bytes));
        if panels.is_some_and(|bytes| bytes <= machine.l2_bytes / 4) {
            return Order::Rows;
        }
        let unknown = UNKNOWN * self.found.elem.bytes() as i64;
        let fitting = machine.l2_bytes / 2 / bytes(&self.rows).unwrap_or(unknown);
        if panels.is_some() && self.between.is_empty() && self.rows.size.is_some_and(|rows| rows <= fitting) {
            return Order::Lanes;
        }
        let is_outermost = self.outside.is_empty() && self.between.is_empty();
        let shared = self.rows.size.filter(|_| is_outermost).map_or(i64::MAX, |rows| rows / 8);
        let block = fitting.min(shared).min(MOST_ROWS) / self.high * self.high;
        let is_cut = self.rows.size.is_none_or(|rows| rows > block);
        if block >= 2 * self.high && is_cut { Order::Blocks(block) } else { Order::Rows }
    }

    /// The loops in the order others, rows, lanes, with groups as one loop.
    fn arranged(&self, machine: &Machine, order: Order) -> Steps {
        let mut steps = self.found.steps(machine);
        let others: Vec<Name> = self.outside.iter().chain(&self.between).map(|(index, _)| *index).collect();
        let (outer, inner) = match order {
            Order::Lanes => (&self.lanes, &self.rows),
            Order::Rows | Order::Blocks(_) | Order::Mirrored(_) => (&self.rows, &self.lanes),
        };
        steps.reorder(&self.found.free, &[&others[..], &outer.loops, &inner.loops].concat());
        for group in [&self.rows, &self.lanes] {
            steps.collapse(&group.loops);
        }
        steps
    }

    /// Short sums become one loop, once their operands are packed: the loops that pack them need not divide.
    fn join_summed(&self, steps: &mut Steps) {
        for group in &self.summed {
            steps.collapse(&group.loops);
        }
    }

    /// The loops of the sums, before they are joined.
    fn summed_loops(&self) -> impl Iterator<Item = Name> {
        self.summed.iter().flat_map(|group| group.loops.iter().copied())
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
        let parallel = self.around().next().filter(|one| one.size.is_none_or(|size| size >= 4));
        // Blocks that overlap belong to one thread.
        let lanes_are_shared = parallel.is_none() && order == Order::Lanes;
        let along = self.ends(!mirrored && !lanes_are_shared, &self.lanes, *wide);
        let rows_are_shared = parallel.is_none() && order == Order::Rows;
        let across = self.ends(order.block().is_none() && !rows_are_shared, &self.rows, *high);
        self.cut(&mut steps, order, [across, along]);
        let (columns, outermost) = (steps.path(format!("{v}.o")), steps.path(format!("{r}.o")));
        // Stored along the rows, where these lie side by side in the result.
        if self.found.is_perfect() && self.found.lanes.is_some_and(|dense| self.rows.loops.last() == Some(&dense)) {
            let [rows, lanes] = [&rows, &v].map(|index| steps.path(format!("{index}.i.after")));
            steps.add(format!("interchange({rows}, {lanes})"));
        }
        if let Order::Blocks(_) = order {
            steps.add(format!("interchange({}, {columns})", steps.path(format!("{rows}.o"))));
        }
        let outermost = if order == Order::Lanes { columns.clone() } else { outermost };
        let (packed, shared) = self.pack(&mut steps, order, along);
        if along == Ends::Padded {
            steps.add(format!("round({columns})"));
        }
        if across == Ends::Padded {
            steps.add(format!("round({})", steps.path(format!("{rows}.o"))));
        }
        self.join_summed(&mut steps);
        steps.parallelize(&parallel.map_or(outermost, |one| steps.path(one.name)));
        for buffer in &shared {
            steps.parallelize(&format!("{buffer}_packed.c0"));
        }
        let fills_lines = along == Ends::Full && (wide * self.found.elem.bytes() as i64) % LINE_BYTES == 0;
        let is_dense = self.lanes.loops.len() == 1 && self.found.lanes == self.lanes.loops.first().copied();
        let streamed = self.found.streamed.filter(|_| fills_lines && is_dense && !mirrored);
        if let Some(result) = streamed {
            steps.add(format!("stream({result})"));
        }
        let mut how = match order {
            Order::Rows => String::new(),
            Order::Lanes => ", all rows for each of them".into(),
            Order::Blocks(block) => format!(", in blocks of {block} rows"),
            Order::Mirrored(block) => format!(", in blocks of {block} rows on and above the diagonal"),
        };
        if !packed.is_empty() {
            how += &format!(", {} packed", listed(&packed));
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
        } else if is_narrow || order == Order::Lanes || [along, across].contains(&Ends::Inwards) {
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
        let summed = self.summed_loops().map(|index| steps.path(index));
        let inside: Vec<String> = summed.chain([&rows, &v].map(|index| steps.path(format!("{index}.i")))).collect();
        steps.add(format!("reorder([{}])", inside.join(", ")));
    }

    /// The loop of the rows inside a block, or of all.
    fn rows_of_block(&self, order: Order) -> String {
        if order.block().is_some() { format!("{}.i", self.rows.name()) } else { self.rows.name() }
    }

    /// Packs operands into panels: which, and which of them all threads share.
    fn pack(&self, steps: &mut Steps, order: Order, along: Ends) -> (Vec<Name>, Vec<Name>) {
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
            let summed = self.summed_loops().filter(|index| mentions(at, *index)).map(|index| index.to_string());
            let loops = outer.iter().map(|one| one.name.clone()).chain(tiles).chain(summed);
            let loops = loops.chain([format!("{group}.i{behind}")]).map(|index| steps.path(index));
            let step = format!("pack({buffer}, {before}, [{}])", loops.collect::<Vec<_>>().join(", "));
            if steps.contains(&step) {
                continue;
            }
            let is_first = around.first().map_or(outermost.clone(), |one| steps.path(&one.name)) == *before;
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
    fn around(&self) -> impl Iterator<Item = Around> {
        self.outside.iter().chain(&self.between).flat_map(|(index, range)| {
            let (index, size) = (*index, size(range));
            let one = |piece: &str, size: Option<i64>| Around { index, name: format!("{index}{piece}"), size };
            match self.strips.contains(&index) && size.is_none_or(|size| size > MOST_STRIP) {
                true => vec![one(".o", size.map(|size| blocks(size, STRIP))), one(".i", Some(STRIP))],
                false => vec![one("", size)],
            }
        })
    }

    /// Operands that lie along a loop around are packed for a strip of its iterations at a time: each of them uses one element of
    /// a cache line.
    fn split_strips(&self, steps: &mut Steps) {
        for outer in self.around().filter(|one| one.name.ends_with(".o")) {
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
        let foreign = around[..first].iter().position(|one| !own(one) && one.size.is_some_and(|size| size > 1));
        foreign.filter(|_| is_small).unwrap_or(first)
    }

    /// What becomes of the last tile in a direction. One that makes elements again needs a plain store, one loop, and as
    /// many elements as it has.
    fn ends(&self, may_repeat: bool, group: &Group, tile: i64) -> Ends {
        let may_repeat = may_repeat && self.found.overwrites && group.loops.len() == 1;
        match group.size {
            Some(size) if size % tile == 0 => Ends::Full,
            Some(size) if size > tile && may_repeat => Ends::Inwards,
            _ => Ends::Padded,
        }
    }

    /// What is packed: panels of lanes first, since where one buffer is both, theirs is the copy that has its name. Where
    /// tiles are full, what is near is read as it is.
    fn operands(&self, is_full: bool) -> Vec<Operand<'a>> {
        let found = self.found;
        let inside = found.reads.iter().filter(|(_, at)| found.is_summed(at));
        let inside = inside.map(|(buffer, at)| Operand { buffer: *buffer, at, depth: None });
        let after = found.scales.iter().filter(|(_, at, _)| self.lanes.is_in(at));
        let after = after.map(|(buffer, at, depth)| Operand { buffer: *buffer, at, depth: Some(*depth) });
        let mut all: Vec<Operand<'a>> = inside.chain(after).collect();
        // Where the sum runs along the memory of a row, rows are read as they are.
        let last: Vec<Ix> =
            self.summed.last().into_iter().flat_map(|group| &group.loops).map(|index| Ix::var(*index)).collect();
        all.retain(|operand| match (self.lanes.is_in(operand.at), self.rows.is_in(operand.at)) {
            (true, is_row) => !(is_row || is_full && self.is_near(operand)),
            (false, true) => !operand.at.ends_with(&last),
            (false, false) => false,
        });
        all.sort_by_key(|operand| !self.lanes.is_in(operand.at));
        all
    }

    /// Whether an operand lies along the lanes and stays in the first cache while it is used.
    fn is_near(&self, operand: &Operand<'_>) -> bool {
        let [v] = self.lanes.loops.as_slice() else { return false };
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
        let summed = self.summed_loops().map(|index| steps.path(index));
        let tile = [steps.path(format!("{r}.i")), steps.path(format!("{v}.i"))];
        steps.add(format!("reorder([{}])", summed.chain(tile).collect::<Vec<_>>().join(", ")));
        let column = steps.path(format!("{v}.o"));
        steps.add(format!("interchange({}, {column})", steps.path(format!("{r}.o"))));
        let mut how = String::new();
        if copied {
            for panel in &panels {
                steps.add(copy(panel, v, &column)?);
            }
            how = format!(", panels of {} copied", listed(&panels.iter().map(|(name, _)| *name).collect::<Vec<_>>()));
        }
        self.join_summed(&mut steps);
        let outer = self.outside.iter().chain(&self.between).next();
        steps.parallelize(&outer.map_or(column, |(index, _)| steps.path(index)));
        Some(self.found.planned(steps, self.why(&how)))
    }

    /// What was recognised, and what was chosen for it.
    fn why(&self, how: &str) -> String {
        let over: Vec<Name> = self.found.summed.iter().map(|(index, _)| *index).collect();
        let Tiling { high, wide, .. } = self;
        let (r, v) = (listed(&self.rows.loops), listed(&self.lanes.loops));
        let over = listed(&over);
        format!(
            "a contraction over {over}: {wide} lanes of {v} for {high} rows of {r} stay in registers while it runs{how}"
        )
    }
}

/// A loop around the tiles: of which index, what it is called, and how many iterations it has, if that is a number.
struct Around {
    index: Name,
    name: String,
    size: Option<i64>,
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
    /// It computes elements that nobody uses.
    Padded,
}

impl Ends {
    /// What `split` is told.
    fn word(self) -> &'static str {
        if self == Ends::Inwards { ", inwards" } else { "" }
    }
}

/// Something that is read: inside the sum, or after it in so many loops of sums.
struct Operand<'a> {
    buffer: Name,
    at: &'a [Ix],
    depth: Option<usize>,
}

/// Whether an operand lies along the loop over an index in memory, or what it has at one of its iterations is short, and what it
/// has at the next one comes next.
fn lies_along(found: &SumNest<'_>, at: &[Ix], index: Name) -> bool {
    let mut run = found.elem.bytes() as i64;
    for ix in at.iter().rev() {
        if *ix == Ix::var(index) {
            return true;
        }
        let range = ix.as_var().and_then(|own| found.free.iter().chain(&found.summed).find(|(known, _)| *known == own));
        let Some(size) = range.and_then(|(_, range)| size(range)) else { return false };
        run = run.saturating_mul(size);
        if run > SHORT_RUN {
            return false;
        }
    }
    false
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
