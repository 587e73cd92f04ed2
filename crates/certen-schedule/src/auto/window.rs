//! Weighted windows: `result[…, r, v] = Σ_{a, b} X[…, r + a, v + b] * W[a, b]`, as depthwise convolutions and filters are.
//!
//! Neighbours in the result read the same elements, and the same weights. A tile of some rows and vectors of the result stays in
//! registers while the window is gone through: each weight is loaded once for all of them, and enough sums are under way to hide
//! how long an operation takes. The elements are read where they lie, from the first cache.
//!
//! Applies: to sums over which a window moves along memory with the lanes, which nothing else has, where the sizes of rows and
//! lanes are numbers. Contractions, where weights differ along a dimension of the result, have rows of their own
//! ([`contraction`](super::contraction)). Cost, for each term: a load for each vector of the tile, from two lines, and one for the
//! weight. The summands of an element are added in the order of the program.

use certen_syntax::Name;

use super::sum::{STORED_ALONG, SumNest, mentions};
use super::tile::{blocks, busy, shapes};
use super::{Machine, Proposal};

/// The most rows of a tile. With more of them fewer weights are loaded, but the loads of elements, each from two cache lines, come
/// faster than they are served (measured on Zen 5: 4 rows of 4 vectors take 1.35 times as long as 2).
const MOST_ROWS: i64 = 2;

/// The most rows of a tile of one vector.
const MOST_SINGLE_ROWS: i64 = 4;

/// The lines from which a vector is loaded that begins anywhere.
const LINES_OF_LOAD: i64 = 2;

pub(super) fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Proposal> {
    proposal(found, machine).into_iter().collect()
}

/// The loop whose iterations use the same weights, nearest to the lanes in the window; and how many it has.
fn rows(found: &SumNest<'_>, v: Name) -> Option<(Name, i64)> {
    let weighs = |index: Name| found.reads.iter().any(|(_, at)| !mentions(at, v) && mentions(at, index));
    let place =
        |index: Name| found.reads.iter().filter_map(|(_, at)| at.iter().rposition(|ix| ix.mentions(index))).max();
    let rows = found.free.iter().map(|(index, _)| *index).filter(|index| *index != v && !weighs(*index));
    let (index, _) = rows.filter_map(|index| Some((index, place(index)?))).max_by_key(|(_, place)| *place)?;
    Some((index, found.count(index)?))
}

fn proposal(found: &SumNest<'_>, machine: &Machine) -> Option<Proposal> {
    let v = found.window_lanes()?;
    let columns = found.count(v)?;
    let rows = rows(found, v);
    let count = rows.map_or(1, |(_, count)| count);
    let may_repeat = found.overwrites;
    let fits = |count: i64, tile: i64| tile <= count && (may_repeat || count % tile == 0);
    let cost = |(high, wide): &(i64, i64)| {
        let tiles = blocks(count, *high).saturating_mul(blocks(columns, *wide));
        tiles.saturating_mul(busy(machine, found.elem, *high, *wide))
    };
    let shapes = shapes(machine, found.elem, Some(count.min(MOST_SINGLE_ROWS)), Some(columns));
    let lanes = machine.vector_bytes / found.elem.bytes() as i64;
    let shapes = shapes.into_iter().filter(|(high, wide)| *high <= MOST_ROWS || *wide <= lanes);
    let shapes = shapes.filter(|(high, wide)| fits(count, *high) && fits(columns, *wide));
    let (high, wide) = shapes.min_by_key(cost)?;
    let mut steps = found.steps(machine);
    let others = found.free.iter().map(|(index, _)| *index);
    let others: Vec<Name> = others.filter(|index| *index != v && rows.is_none_or(|(row, _)| row != *index)).collect();
    let row = rows.map(|(row, _)| row);
    steps.reorder(&found.free, &others.iter().copied().chain(row).chain([v]).collect::<Vec<_>>());
    let word = |count: i64, tile: i64| if count % tile == 0 { "" } else { ", inwards" };
    if let Some(row) = row {
        steps.add(format!("split({}, {high}{})", steps.path(row), word(count, high)));
    }
    steps.add(format!("split({}, {wide}{})", steps.path(v), word(columns, wide)));
    let piece = |piece: &str| {
        let loops = row.iter().chain([&v]).map(|index| steps.path(format!("{index}.{piece}")));
        loops.collect::<Vec<_>>()
    };
    let (outer, inner) = (piece("o"), piece("i"));
    if row.is_some() {
        steps.add(format!("reorder([{}])", [outer.as_slice(), &inner].concat().join(", ")));
    }
    let summed = found.summed.iter().map(|(index, _)| steps.path(index));
    steps.add(format!("reorder([{}])", summed.chain(inner).collect::<Vec<_>>().join(", ")));
    // Tiles that overlap belong to one thread.
    let parallel = others.first().map(|index| steps.path(index));
    let is_whole = row.map_or(columns % wide == 0, |_| count % high == 0);
    if let Some(path) = parallel.or_else(|| outer.first().filter(|_| is_whole).cloned()) {
        steps.parallelize(&path);
    }
    let all = |loops: &mut dyn Iterator<Item = Name>| {
        loops.filter_map(|index| found.count(index)).fold(1, i64::saturating_mul)
    };
    let terms = all(&mut found.summed.iter().map(|(index, _)| *index));
    let around = all(&mut others.iter().copied());
    let stores = count.saturating_mul(columns).saturating_mul(STORED_ALONG);
    let cost = cost(&(high, wide))
        .saturating_mul(LINES_OF_LOAD)
        .saturating_mul(terms)
        .saturating_add(stores)
        .saturating_mul(around);
    let of_rows = row.map_or_else(String::new, |row| format!(" for {high} rows of {row}"));
    let why =
        format!("a window that moves along {v}: {wide} lanes{of_rows} stay in registers while it is gone through");
    Some(Proposal { plan: found.planned(steps, why), cost })
}
