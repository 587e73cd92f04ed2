//! How products are made with tiles: which factor has the lanes, in which order, and what is copied.
//!
//! Of the kept loops, *rows* walk along one factor alone and *lanes* along the other one. Either may be the one or the other, and
//! vectors may be long or short: the plan is the one that should take the fewest cycles.
//!
//! Needs: loops of a call. Guarantees: the same loops, each of them once.

use std::cmp::Reverse;

use super::Call;
use super::copy::{Loops, SMALL_SQUARE, count};
use super::inner::{Loop, Number};
use super::micro::{Micros, WIDEST};
use super::turn::{DEPTH, NEAR_TERMS, terms_apart};

/// What is read so often is copied before.
pub(super) const WORTH_COPYING: usize = 3;

/// With fewer products for each step of the loops around, tiles do not gain.
const FEW: usize = 64;

/// How much more time tiles of many short vectors take, where there are long ones: they read more.
const SHORT_VECTORS: f64 = 1.1;

/// A product and its loops.
#[derive(Clone)]
pub(super) struct Tiles<T> {
    /// The factor of the rows, then that of the lanes.
    pub(super) factors: [*const u8; 2],
    pub(super) out: *mut T,
    /// The bytes of the longest vectors, and what is made of them.
    pub(super) vectors: usize,
    pub(super) micros: Micros,
    pub(super) around: Loops,
    pub(super) rows: Loops,
    pub(super) lanes: Loops,
    pub(super) terms: Loops,
}

// SAFETY: the factors are only read, and each element of the result is written by the one task that has its rows and lanes.
unsafe impl<T> Sync for Tiles<T> {}

impl<T: Number> Tiles<T> {
    /// The loops of a sum of products of two factors, if tiles gain.
    pub(super) fn of<const K: usize>(call: &Call<T, K>) -> Option<Tiles<T>> {
        let &[a, b] = call.factors.as_slice() else { return None };
        let of = |one: &Loop<K>| Loop {
            size: one.size,
            factors: [one.factors[0], one.factors[1]],
            out: one.out,
            joins: false,
        };
        let kept = call.kept.iter().chain([&call.row]).filter(|one| one.size != 1).map(of);
        let (mut around, mut first, mut second) = (Loops::new(), Loops::new(), Loops::new());
        for one in kept {
            match one.factors {
                // A result that repeats itself: both factors stand still.
                [0, 0] if count(&first) < count(&second) => first.push(one),
                [_, 0] if one.factors[0] != 0 => first.push(one),
                [0, _] => second.push(one),
                _ => around.push(one),
            }
        }
        let terms: Loops = call.summed.iter().map(of).collect();
        if !Tiles::<T>::gain(count(&first), count(&second), count(&terms)) {
            return None;
        }
        let micros = Micros::of::<T>(call.vectors);
        let (out, vectors) = (call.out, call.vectors);
        Some(Tiles { factors: [a, b], out, vectors, micros, around, rows: first, lanes: second, terms })
    }

    /// With the factor as that of the lanes, and the lanes in the order, for which it takes the least time.
    pub(super) fn best(self) -> Tiles<T> {
        let [swapped, other] = [self.clone().swapped(), self.clone()].map(|mut tiles| {
            // Wherever they are in the result, lanes may be read as they lie.
            tiles.lanes.sort_by_key(|one| Reverse(one.factors[1].unsigned_abs()));
            tiles
        });
        let all = [self.clone().swapped(), other, swapped];
        let price = |tiles: &Tiles<T>| if count(&tiles.lanes) > 1 { tiles.price() } else { f64::INFINITY };
        // Where few lanes would leave most of a long vector unused, short ones are better.
        let short = |tiles: &Tiles<T>| Tiles { vectors: 32, micros: Micros::of::<T>(32), ..tiles.clone() };
        let mut best = (price(&self), self);
        let has_long = best.1.vectors > 32;
        for tiles in all {
            let both = if has_long { Some(short(&tiles)) } else { None };
            for tiles in [tiles].into_iter().chain(both) {
                let is_wide = count(&tiles.lanes) > WIDEST * tiles.micros.lanes;
                let dearer = if has_long && tiles.vectors == 32 && is_wide { SHORT_VECTORS } else { 1.0 };
                let price = price(&tiles) * dearer;
                best = if price < best.0 { (price, tiles) } else { best };
            }
        }
        let (_, mut best) = best;
        // Rows are copied as they lie.
        best.rows.sort_by_key(|one| Reverse(one.factors[0].unsigned_abs()));
        best
    }

    /// Whether tiles gain with so many rows, lanes and terms.
    pub(super) fn gain(rows: usize, lanes: usize, terms: usize) -> bool {
        rows.saturating_mul(lanes).saturating_mul(terms) >= FEW && rows.max(lanes) > 1
    }

    /// The same with the factors in the other order, which changes no product.
    fn swapped(mut self) -> Tiles<T> {
        self.factors.reverse();
        std::mem::swap(&mut self.rows, &mut self.lanes);
        for one in [&mut self.around, &mut self.rows, &mut self.lanes, &mut self.terms].into_iter().flatten() {
            one.factors.reverse();
        }
        self
    }

    /// About how many cycles a step of the loops around takes: products, stores and copies, of which those of single elements
    /// are dear.
    fn price(&self) -> f64 {
        let unit = size_of::<T>() as isize;
        let (rows, lanes, terms) = (count(&self.rows), count(&self.lanes), count(&self.terms));
        let strips = lanes.div_ceil(self.micros.lanes);
        let (tiles, wide) = self.tiles_of(rows, strips);
        let groups = strips.div_ceil(wide);
        let dense = |loops: &Loops, step: &dyn Fn(&Loop<2>) -> isize| {
            let mut next = unit;
            let dense = loops.iter().rev().take_while(|one| {
                let is_next = step(one) == next;
                next = next.wrapping_mul(one.size as isize);
                is_next
            });
            dense.fold(1, |run: usize, one| run.saturating_mul(one.size))
        };
        let is_whole = |run: usize| run >= lanes || run >= 2 * self.micros.lanes;
        let copied = |loops: &Loops, which: usize| {
            let is_turned = self.terms.iter().any(|one| one.factors[which] == unit && one.size >= SMALL_SQUARE)
                && terms_apart(&self.terms, which, size_of::<T>()) <= NEAR_TERMS;
            match dense(loops, &|one| one.factors[which]) >= SMALL_SQUARE {
                true => 0.25,
                false if is_turned => 0.75,
                false => 1.5,
            }
        };
        let elements = |own: usize| own as f64 * terms as f64;
        let reads_lanes = is_whole(dense(&self.lanes, &|one| one.factors[1])) && tiles < WORTH_COPYING;
        let lane_copies = if reads_lanes { 0.0 } else { elements(lanes) * copied(&self.lanes, 1) };
        let row_copies = if groups < WORTH_COPYING { 0.0 } else { elements(rows) * copied(&self.rows, 0) };
        let is_stored = is_whole(dense(&self.lanes, &|one| one.out));
        let stores = if is_stored { (rows * strips) as f64 } else { 1.5 * rows as f64 * lanes as f64 };
        // A long vector of products in each cycle, or two short ones, and two loads of at most 32 bytes; fewer where few sums
        // wait for each other.
        let (long, high) = (if self.vectors >= 64 { 1.0 } else { 0.5 }, rows.div_ceil(tiles) as f64);
        let wide = strips.min(wide) as f64;
        let reads = if groups < WORTH_COPYING && self.terms.len() > 1 { 1.3 * high + wide + 2.0 } else { high };
        let busy = (high * wide * long).max(reads / 2.0 + wide * long).max(4.0);
        let products = (tiles * groups) as f64 * terms as f64 * busy * (strips as f64 / (groups as f64 * wide));
        let blocks = terms.div_ceil(DEPTH) as f64;
        products + (tiles * groups) as f64 * 40.0 * blocks + stores * blocks + lane_copies + row_copies
    }

    /// How many tiles some rows have, and how many vectors wide they are where there are so many.
    pub(super) fn tiles_of(&self, rows: usize, strips: usize) -> (usize, usize) {
        let most = self.micros.most_rows;
        let wide = if rows <= most[WIDEST] && strips > 2 { WIDEST } else { 2 };
        let wide = if most[wide] == 0 || strips == 1 { 1 } else { wide };
        (rows.div_ceil(most[wide]).max(1), wide)
    }
}
