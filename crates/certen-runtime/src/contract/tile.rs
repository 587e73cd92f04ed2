//! Products of two factors with rows and lanes: a tile of sums stays in registers.
//!
//! Blocks of rows and of lanes are copied, so that what a tile needs lies side by side whatever the strides (Goto and van de
//! Geijn; TBLIS): lanes stay in the second cache, the rows of a tile in the first. What is used once or twice is read where it
//! is. Where a sum is longer than a block, the next one goes on with what was stored: the terms of an element are added in their
//! order. What is the same at all steps of the loops around is found once.
//!
//! Needs: pointers and loops that stay inside their arrays. Guarantees: the bits of [`fused`](super::inner::fused), up to which
//! NaN it is.

use std::ops::Range;

use super::Call;
use super::block::Work;
use super::copy::{WORTH_A_THREAD, Walk, count};
use super::inner::Number;
use super::micro::WIDEST;
use super::plan::Tiles;
use super::turn::{DEPTH, turned};
use crate::pool;

/// The rows of a block.
const HIGH: usize = 192;

/// The bytes of a panel of lanes.
const PANEL_BYTES: usize = 512 << 10;

/// A task has at least so many rows where there are others: lanes are copied once for each.
const LEAST_HIGH: usize = 24;

/// An inner loop of so many terms is a block.
const LONG_TERMS: usize = 96;

/// Tasks for each thread: fewer than the pool's parts, because each copies.
const TASKS_PER_THREAD: usize = 2;

/// How a product is divided into tasks, which may run at the same time: some rows and some lanes at a step of the loops
/// around.
#[derive(Clone, Copy)]
struct Tasks {
    high: usize,
    wide: usize,
    row_parts: usize,
    lane_parts: usize,
    count: usize,
}

impl<T: Number> Tiles<T> {
    /// Computes a sum of products of two factors, if tiles gain; whether they do.
    pub fn run<const K: usize>(call: &Call<T, K>) -> bool {
        let Some(mut tiles) = Tiles::of(call) else { return false };
        let Tiles { factors: [first, second], around, rows, lanes, terms, vectors, .. } = &mut tiles;
        // What is copied must live until the end.
        // SAFETY: the loops stay inside the arrays.
        let _copies = unsafe {
            (
                turned::<T>(first, 0, around, [rows, terms], *vectors),
                turned::<T>(second, 1, around, [lanes, terms], *vectors),
            )
        };
        tiles.best().in_tasks();
        true
    }

    /// Computes the result, by several threads if it is large.
    fn in_tasks(&self) {
        let (rows, lanes, around) = (count(&self.rows), count(&self.lanes), count(&self.around));
        let work = [rows, lanes, around].into_iter().fold(count(&self.terms), usize::saturating_mul);
        let threads = pool::threads().min(work / WORTH_A_THREAD).max(1);
        let wanted = if threads > 1 { (threads * TASKS_PER_THREAD).div_ceil(around) } else { 1 };
        // Where rows are divided lanes are copied several times, and the other way round.
        let copied = |parts: &usize| parts * lanes + wanted.div_ceil(*parts) * rows;
        let row_parts = (1..=wanted.min(rows.div_ceil(LEAST_HIGH))).min_by_key(copied).unwrap_or(1);
        let (most, width) = (self.micros.most_rows[1], WIDEST * self.micros.lanes);
        let high = rows.div_ceil(row_parts).next_multiple_of(most);
        let wide = lanes.div_ceil(wanted.div_ceil(row_parts)).next_multiple_of(width);
        let (row_parts, lane_parts) = (rows.div_ceil(high), lanes.div_ceil(wide));
        let tasks = Tasks { high, wide, row_parts, lane_parts, count: around * row_parts * lane_parts };
        match threads {
            1 => self.part(tasks, 0..tasks.count),
            _ => pool::in_parts(tasks.count, &|part| self.part(tasks, part)),
        }
    }

    /// Some of the tasks.
    fn part(&self, tasks: Tasks, part: Range<usize>) {
        let (rows, lanes, terms) = (count(&self.rows), count(&self.lanes), count(&self.terms));
        // Equal blocks of terms, of which there are some: see `gain`. They end where an inner loop does that is long enough: all
        // go in equal steps then.
        let inner = self.terms.last().map_or(1, |one| one.size);
        let inner = if inner >= LONG_TERMS { inner } else { terms };
        let deepest = inner.div_ceil(inner.div_ceil(DEPTH));
        let width = self.micros.lanes;
        let widest = (PANEL_BYTES / (width * size_of::<T>()) / deepest).max(1).next_multiple_of(WIDEST) * width;
        let most = tasks.high.min(rows);
        let highest = most.div_ceil(most.div_ceil(HIGH)).next_multiple_of(self.micros.most_rows[1]);
        let panel = lanes.min(tasks.wide).min(widest).next_multiple_of(width) * deepest;
        let mut work = Work::new(self, highest * deepest, panel);
        let mut known = None;
        let mut walk = Walk::at(&self.around, 0);
        for task in part {
            let (lane_part, rest) = (task % tasks.lane_parts, task / tasks.lane_parts);
            let (row_part, around) = (rest % tasks.row_parts, rest / tasks.row_parts);
            if known.is_none_or(|known| known != around) {
                if known.is_none_or(|known| known + 1 != around) {
                    walk = Walk::at(&self.around, around);
                }
                known = Some(around);
                let at = walk.next();
                let factors = [0, 1].map(|which| self.factors[which].wrapping_byte_offset(at.factors[which]));
                work.go(factors, self.out.wrapping_byte_offset(at.out));
            }
            let own_rows = row_part * tasks.high..rows.min((row_part + 1) * tasks.high);
            let own_lanes = lane_part * tasks.wide..lanes.min((lane_part + 1) * tasks.wide);
            for lane in own_lanes.clone().step_by(widest) {
                let own = lane..own_lanes.end.min(lane + widest);
                let mut from = 0;
                while from < terms {
                    let end = terms.min(from + deepest).min((from / inner + 1) * inner);
                    work.block(&own_rows, &own, from..end, highest);
                    from = end;
                }
            }
        }
    }
}
