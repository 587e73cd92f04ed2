//! Products of two factors with rows and lanes: a tile of sums stays in registers.
//!
//! Of the kept loops, *rows* walk along one factor alone and *lanes* along the other one. Blocks of both are copied, so that
//! what a tile needs lies side by side whatever the strides (Goto and van de Geijn; TBLIS): a block of rows stays in the
//! second cache, a panel of lanes in the first. Where a sum is longer than a block, the next one goes on with what was
//! stored: the terms of an element are added in their order.
//!
//! Needs: pointers and loops that stay inside their arrays. Guarantees: the bits of [`fused`](super::inner::fused).

use smallvec::SmallVec;

use super::Call;
use super::inner::{Loop, Number, stepped};

/// The rows of a tile. With two vectors of lanes, twelve of AVX2's sixteen registers are sums.
const ROWS: usize = 6;

/// The bytes of a tile's lanes.
const LANE_BYTES: usize = 64;

/// The terms of a block, and its rows.
const DEPTH: usize = 256;
const HIGH: usize = 32 * ROWS;

/// With fewer lanes, rows are read where they are.
const WORTH_COPYING: usize = 32;

/// With fewer products for each step of the loops around, tiles do not gain.
const FEW: usize = 2048;

/// A product and its loops.
pub(super) struct Tiles<T> {
    /// The factor of the rows, then that of the lanes.
    factors: [*const u8; 2],
    out: *mut T,
    around: Loops,
    rows: Loops,
    lanes: Loops,
    terms: Loops,
}

type Loops = SmallVec<[Loop<2>; 4]>;

/// How far the factors and the result go.
#[derive(Clone, Copy, Default)]
struct Place {
    factors: [isize; 2],
    out: isize,
}

impl<T: Number> Tiles<T> {
    /// The tiles of a sum of products of two factors, if they gain.
    pub fn of<const K: usize>(call: &Call<T, K>) -> Option<Tiles<T>> {
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
                [_, 0] => first.push(one),
                [0, _] => second.push(one),
                _ => around.push(one),
            }
        }
        let terms: Loops = call.summed.iter().map(of).collect();
        if count(&first).saturating_mul(count(&second)).saturating_mul(count(&terms)) < FEW {
            return None;
        }
        let swapped = price::<T>(&second, &first) > price::<T>(&first, &second);
        let tiles = Tiles { factors: [a, b], out: call.out, around, rows: first, lanes: second, terms };
        Some(if swapped { tiles.swapped() } else { tiles }).filter(|tiles| count(&tiles.lanes) > 1)
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

    #[inline(always)]
    pub fn run(mut self) {
        match size_of::<T>() {
            8 => self.in_lanes::<8>(),
            _ => self.in_lanes::<16>(),
        }
    }

    #[inline(always)]
    fn in_lanes<const W: usize>(&mut self) {
        let (rows, terms) = (count(&self.rows), count(&self.terms));
        let copies = count(&self.lanes) >= WORTH_COPYING;
        let depth = terms.min(DEPTH);
        let mut block = vec![T::ZERO; if copies { rows.min(HIGH).next_multiple_of(ROWS) * depth } else { 0 }];
        let mut panel = vec![[T::ZERO; W]; depth];
        let (mut steps, mut high): (Vec<Place>, Vec<Place>) = (Vec::with_capacity(depth), Vec::with_capacity(HIGH));
        // How far the rows of a tile go at each term, in the array or in the block.
        let mut along: Vec<isize> = Vec::with_capacity(depth);
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, self.around.len());
        loop {
            let mut begin = 0;
            let mut along_terms = Walk::new(&self.terms);
            // A sum of nothing is stored too.
            while begin < terms.max(1) {
                let depth = (terms - begin).min(DEPTH);
                along_terms.extend(depth, &mut steps);
                along.clear();
                match copies {
                    true => along.extend((0..depth).map(|term| (term * ROWS * size_of::<T>()) as isize)),
                    false => along.extend(steps.iter().map(|step| step.factors[0])),
                }
                let mut row = 0;
                let mut along_rows = Walk::new(&self.rows);
                while row < rows {
                    let end = rows.min(row + HIGH);
                    along_rows.extend(end - row, &mut high);
                    if copies {
                        self.copy_rows(&high, &steps, &mut block);
                    }
                    self.pass::<W>(begin == 0, &high, &steps, &along, copies.then_some(&block), &mut panel);
                    row = end;
                }
                begin += DEPTH;
            }
            if !stepped(&self.around, &mut at, &mut self.factors, &mut self.out) {
                return;
            }
        }
    }

    /// Copies rows, those of a tile side by side.
    #[inline(always)]
    fn copy_rows(&self, high: &[Place], steps: &[Place], block: &mut [T]) {
        for (rows, tile) in high.chunks(ROWS).zip(block.chunks_exact_mut(ROWS * steps.len().max(1))) {
            for (step, to) in steps.iter().zip(tile.chunks_exact_mut(ROWS)) {
                for (row, to) in rows.iter().zip(to) {
                    // SAFETY: an element of the first factor, at indices of the loops.
                    *to = unsafe { read(self.factors[0], row.factors[0].wrapping_add(step.factors[0])) };
                }
            }
        }
    }

    /// All lanes for some rows and terms: the first ones, or on top of what was stored.
    #[inline(always)]
    fn pass<const W: usize>(
        &self,
        is_first: bool,
        high: &[Place],
        steps: &[Place],
        along: &[isize],
        block: Option<&Vec<T>>,
        panel: &mut [[T; W]],
    ) {
        let lanes = count(&self.lanes);
        let size = size_of::<T>() as isize;
        let mut from = 0;
        let mut along_lanes = Walk::new(&self.lanes);
        while from < lanes {
            let width = W.min(lanes - from);
            let mut wide = [Place::default(); W];
            for lane in wide.iter_mut().take(width) {
                *lane = along_lanes.next();
            }
            let is_dense = |of: fn(&Place) -> isize| {
                width == W && wide.iter().enumerate().all(|(at, lane)| of(lane) == of(&wide[0]) + at as isize * size)
            };
            let (read_dense, write_dense) = (is_dense(|lane| lane.factors[1]), is_dense(|lane| lane.out));
            for (step, to) in steps.iter().zip(&mut *panel) {
                if read_dense {
                    let offset = wide[0].factors[1].wrapping_add(step.factors[1]);
                    // SAFETY: W elements of the second factor, at indices of the loops.
                    *to = unsafe { self.factors[1].wrapping_byte_offset(offset).cast::<[T; W]>().read_unaligned() };
                    continue;
                }
                for (lane, to) in wide.iter().zip(to).take(width) {
                    // SAFETY: an element of the second factor, at indices of the loops.
                    *to = unsafe { read(self.factors[1], lane.factors[1].wrapping_add(step.factors[1])) };
                }
            }
            for (tile, rows) in high.chunks(ROWS).enumerate() {
                // Rows that are not there are the first one, and what comes of them is not stored.
                let row = |at: usize| match block {
                    Some(block) => block.as_ptr().wrapping_add(tile * ROWS * steps.len() + at).cast(),
                    None => self.factors[0].wrapping_byte_offset(rows[if at < rows.len() { at } else { 0 }].factors[0]),
                };
                let pointers = [row(0), row(1), row(2), row(3), row(4), row(5)];
                let mut sums = [[T::ZERO; W]; ROWS];
                if !is_first {
                    for (sums, row) in sums.iter_mut().zip(rows) {
                        for (sum, lane) in sums.iter_mut().zip(&wide).take(width) {
                            // SAFETY: an element of the result that was stored, at indices of the loops.
                            *sum = unsafe { read(self.out.cast(), row.out.wrapping_add(lane.out)) };
                        }
                    }
                }
                // SAFETY: the pointers, at each term, are elements of the rows, or of the block that was copied.
                let sums = unsafe { products(pointers, along, panel, sums) };
                for (sums, row) in sums.iter().zip(rows) {
                    if write_dense {
                        let out = self.out.wrapping_byte_offset(row.out.wrapping_add(wide[0].out));
                        // SAFETY: W elements of the result, at indices of the loops.
                        unsafe { out.cast::<[T; W]>().write_unaligned(*sums) };
                        continue;
                    }
                    for (sum, lane) in sums.iter().zip(&wide).take(width) {
                        let out = self.out.wrapping_byte_offset(row.out.wrapping_add(lane.out));
                        // SAFETY: an element of the result, at indices of the loops.
                        unsafe { out.write_unaligned(*sum) };
                    }
                }
            }
            from += W;
        }
    }
}

/// Adds products to the sums of a tile.
///
/// # Safety
/// There is an element at each pointer and each of the steps along from it.
#[inline(always)]
unsafe fn products<T: Number, const W: usize>(
    rows: [*const u8; ROWS],
    along: &[isize],
    panel: &[[T; W]],
    mut sums: [[T; W]; ROWS],
) -> [[T; W]; ROWS] {
    for (step, lanes) in along.iter().zip(panel) {
        let lanes = *lanes;
        for at in 0..ROWS {
            // SAFETY: by the contract.
            let value: T = unsafe { read(rows[at], *step) };
            for lane in 0..W {
                sums[at][lane] = sums[at][lane].plus_product(value, lanes[lane]);
            }
        }
    }
    sums
}

/// The element at a pointer and so many bytes on; it need not be aligned.
///
/// # Safety
/// There is one.
#[inline(always)]
unsafe fn read<T: Copy>(from: *const u8, offset: isize) -> T {
    // SAFETY: by the contract.
    unsafe { from.wrapping_byte_offset(offset).cast::<T>().read_unaligned() }
}

/// How many steps loops have together.
fn count(loops: &[Loop<2>]) -> usize {
    loops.iter().fold(1usize, |count, one| count.saturating_mul(one.size))
}

/// The way along loops.
struct Walk<'a> {
    loops: &'a [Loop<2>],
    at: SmallVec<[usize; 4]>,
    here: Place,
}

impl<'a> Walk<'a> {
    fn new(loops: &'a [Loop<2>]) -> Walk<'a> {
        Walk { loops, at: SmallVec::from_elem(0, loops.len()), here: Place::default() }
    }

    /// Where it is; then it goes on.
    #[inline(always)]
    fn next(&mut self) -> Place {
        let here = self.here;
        for (one, at) in self.loops.iter().zip(&mut self.at).rev() {
            *at += 1;
            let more = *at < one.size;
            let steps = if more { 1 } else { 1 - one.size as isize };
            let Place { factors: [a, b], out } = &mut self.here;
            *a = a.wrapping_add(one.factors[0].wrapping_mul(steps));
            *b = b.wrapping_add(one.factors[1].wrapping_mul(steps));
            *out = out.wrapping_add(one.out.wrapping_mul(steps));
            if more {
                break;
            }
            *at = 0;
        }
        here
    }

    /// The next places.
    fn extend(&mut self, count: usize, places: &mut Vec<Place>) {
        places.clear();
        places.extend((0..count).map(|_| self.next()));
    }
}

/// What tiles cost with these rows and lanes: full ones, and more where the lanes do not lie side by side.
fn price<T>(rows: &[Loop<2>], lanes: &[Loop<2>]) -> usize {
    let unit = size_of::<T>() as isize;
    let goes = |one: &Loop<2>| [one.out, one.factors[0].wrapping_add(one.factors[1])];
    let jumps = lanes.last().map_or(0, |one| goes(one).iter().filter(|step| **step != unit).count());
    let full =
        count(rows).next_multiple_of(ROWS).saturating_mul(count(lanes).next_multiple_of(LANE_BYTES / size_of::<T>()));
    full.saturating_mul(8 + jumps)
}
