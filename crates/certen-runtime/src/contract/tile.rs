//! Products of two factors with rows and lanes: a tile of sums stays in registers.
//!
//! Of the kept loops, *rows* walk along one factor alone and *lanes* along the other one. Blocks of both are copied, so that
//! what a tile needs lies side by side whatever the strides (Goto and van de Geijn; TBLIS): a block of rows stays in the
//! second cache, a panel of lanes in the first. Where a sum is longer than a block, the next one goes on with what was
//! stored: the terms of an element are added in their order.
//!
//! Needs: pointers and loops that stay inside their arrays. Guarantees: the bits of [`fused`](super::inner::fused).

use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::Call;
use super::inner::{Loop, Number};
use crate::pool;
use crate::scratch::Scratch;

/// The rows of a tile, and the bytes of its lanes: twelve vectors of sums, with AVX2 two for each row, with AVX-512 one.
const ROWS: usize = 6;
const WIDE_ROWS: usize = 12;
const LANE_BYTES: usize = 64;

/// The terms of a block, and its rows.
const DEPTH: usize = 256;
const HIGH: usize = 192;

/// A block has at least so many rows where there are others: lanes are copied once for each block.
const LEAST_HIGH: usize = 24;

/// With fewer lanes, rows are read where they are.
const WORTH_COPYING: usize = 32;

/// With fewer products for each step of the loops around, tiles do not gain.
const FEW: usize = 2048;

/// So many products are worth another thread.
const WORTH_A_THREAD: usize = 1 << 19;

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

// SAFETY: the factors are only read, and each element of the result is written by the one task that has its rows and lanes.
unsafe impl<T> Sync for Tiles<T> {}

type Loops = SmallVec<[Loop<2>; 4]>;

/// How far the factors and the result go.
#[derive(Clone, Copy, Default)]
struct Place {
    factors: [isize; 2],
    out: isize,
}

impl Place {
    /// So many steps of a loop.
    #[inline(always)]
    fn go(&mut self, one: &Loop<2>, steps: isize) {
        for (at, step) in self.factors.iter_mut().zip(one.factors) {
            *at = at.wrapping_add(step.wrapping_mul(steps));
        }
        self.out = self.out.wrapping_add(one.out.wrapping_mul(steps));
    }
}

/// How a product is divided into tasks, which may run at the same time: a block of rows and some lanes at a step of the
/// loops around.
#[derive(Clone, Copy)]
struct Tasks {
    high: usize,
    wide: usize,
    row_blocks: usize,
    lane_blocks: usize,
    count: usize,
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
        let tiles = Tiles { factors: [a, b], out: call.out, around, rows: first, lanes: second, terms };
        let price = tiles.price();
        let swapped = tiles.swapped();
        let best = if swapped.price() < price { swapped } else { swapped.swapped() };
        Some(best).filter(|tiles| count(&tiles.lanes) > 1)
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

    /// About how many cycles it takes: products, stores and copies, of which those of single elements are dear.
    fn price(&self) -> f64 {
        let unit = size_of::<T>() as isize;
        let (rows, lanes, terms) = (count(&self.rows), count(&self.lanes), count(&self.terms));
        let width = LANE_BYTES / size_of::<T>();
        let goes = |step: fn(&Loop<2>) -> isize| self.lanes.last().is_some_and(|one| step(one) == unit && one.size > 4);
        let stores = if goes(|one| one.out) { ROWS * 2 } else { ROWS * width };
        let tiles = (rows.div_ceil(ROWS) * lanes.div_ceil(width)) as f64;
        let copied = if goes(|one| one.factors[1]) { 0.25 } else { 2.0 };
        let copies = (rows.div_ceil(HIGH) * lanes) as f64 * terms as f64 * copied;
        tiles * (terms as f64 * ROWS as f64 + stores as f64) + copies + 2.0 * rows as f64 * terms as f64
    }

    /// Computes the result, by several threads if it is large.
    pub fn run(&self) {
        match size_of::<T>() {
            8 => self.in_lanes::<8>(),
            _ => self.in_lanes::<16>(),
        }
    }

    fn in_lanes<const W: usize>(&self) {
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                return self.in_tasks::<WIDE_ROWS, W>(products_with_avx512);
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                return self.in_tasks::<ROWS, W>(products_with_avx2);
            }
        }
        self.in_tasks::<ROWS, W>(products);
    }

    fn in_tasks<const R: usize, const W: usize>(&self, products: Products<T, R, W>) {
        let (rows, lanes, around) = (count(&self.rows), count(&self.lanes), count(&self.around));
        let work = [rows, lanes, around].into_iter().fold(count(&self.terms), usize::saturating_mul);
        let threads = pool::threads().min(work / WORTH_A_THREAD).max(1);
        let wanted = if threads > 1 { threads * pool::PARTS_PER_THREAD } else { 1 };
        let share = rows.div_ceil(wanted.div_ceil(around));
        let high = if wanted > 1 { share.clamp(LEAST_HIGH, HIGH) } else { HIGH }.next_multiple_of(R);
        let row_blocks = rows.div_ceil(high);
        let wide = lanes.div_ceil(wanted.div_ceil(around * row_blocks)).next_multiple_of(W);
        let lane_blocks = lanes.div_ceil(wide);
        let tasks = Tasks { high, wide, row_blocks, lane_blocks, count: around * row_blocks * lane_blocks };
        match threads {
            1 => self.part(tasks, 0..tasks.count, products),
            _ => pool::in_parts(tasks.count, &|part| self.part(tasks, part, products)),
        }
    }

    /// Some of the tasks.
    fn part<const R: usize, const W: usize>(&self, tasks: Tasks, part: Range<usize>, products: Products<T, R, W>) {
        let (rows, lanes, terms) = (count(&self.rows), count(&self.lanes), count(&self.terms));
        let copies = lanes >= WORTH_COPYING;
        let most = terms.min(DEPTH);
        let mut block: Scratch<T> =
            Scratch::new(if copies { rows.min(tasks.high).next_multiple_of(R) * most } else { 0 });
        let mut panel: Scratch<T> = Scratch::new(most * W);
        let (mut steps, mut high): (Vec<Place>, Vec<Place>) = (Vec::new(), Vec::new());
        // How far the rows of a tile go at each term, in the array or in the block.
        let mut along: Vec<isize> = Vec::with_capacity(most);
        let (mut known_terms, mut known_rows) = (None, None);
        for task in part {
            let (lane_block, rest) = (task % tasks.lane_blocks, task / tasks.lane_blocks);
            let (row_block, around) = (rest % tasks.row_blocks, rest / tasks.row_blocks);
            let at = Walk::at(&self.around, around).here;
            let here = Tile {
                factors: [0, 1].map(|which| self.factors[which].wrapping_byte_offset(at.factors[which])),
                out: self.out.wrapping_byte_offset(at.out),
            };
            let first = row_block * tasks.high;
            if known_rows.replace(row_block) != Some(row_block) {
                Walk::at(&self.rows, first).extend(tasks.high.min(rows - first), &mut high);
            }
            let begin = lane_block * tasks.wide;
            // A sum of nothing is stored too.
            for from in (0..terms.max(1)).step_by(DEPTH) {
                let depth = (terms - from).min(DEPTH);
                if known_terms.replace(from) != Some(from) {
                    Walk::at(&self.terms, from).extend(depth, &mut steps);
                    along.clear();
                    match copies {
                        true => along.extend((0..depth).map(|term| (term * R * size_of::<T>()) as isize)),
                        false => along.extend(steps.iter().map(|step| step.factors[0])),
                    }
                }
                if copies {
                    here.copy_rows::<R>(&high, &steps, block.elements());
                }
                let block = copies.then(|| block.pointer());
                let mut along_lanes = Walk::at(&self.lanes, begin);
                let end = lanes.min(begin + tasks.wide);
                for lane in (begin..end).step_by(W) {
                    let lanes: Strip<W> = Strip::new(&mut along_lanes, W.min(end - lane), size_of::<T>());
                    here.copy_lanes(&lanes, &steps, panel.elements().as_chunks_mut::<W>().0);
                    // SAFETY: the lanes of all steps were copied, and so were the rows if they are to be.
                    unsafe { here.tiles(products, from == 0, &high, &lanes, &along, block, panel.pointer().cast()) };
                }
            }
        }
    }
}

/// Where the lanes of a tile are: so many of them, and whether they lie side by side.
struct Strip<const W: usize> {
    places: [Place; W],
    width: usize,
    reads_dense: bool,
    writes_dense: bool,
}

impl<const W: usize> Strip<W> {
    #[inline(always)]
    fn new(walk: &mut Walk<'_>, width: usize, bytes: usize) -> Strip<W> {
        let mut places = [Place::default(); W];
        for lane in places.iter_mut().take(width) {
            *lane = walk.next();
        }
        let is_dense = |of: fn(&Place) -> isize| {
            let goes = |(at, lane): (usize, &Place)| of(lane) == of(&places[0]).wrapping_add((at * bytes) as isize);
            width == W && places.iter().enumerate().all(goes)
        };
        let (reads_dense, writes_dense) = (is_dense(|lane| lane.factors[1]), is_dense(|lane| lane.out));
        Strip { places, width, reads_dense, writes_dense }
    }
}

/// The factors and the result at a step of the loops around.
struct Tile<T> {
    factors: [*const u8; 2],
    out: *mut T,
}

impl<T: Number> Tile<T> {
    /// Copies rows, those of a tile side by side; zeros where there are none.
    fn copy_rows<const R: usize>(&self, high: &[Place], steps: &[Place], block: &mut [MaybeUninit<T>]) {
        for (rows, tile) in high.chunks(R).zip(block.chunks_exact_mut(R * steps.len().max(1))) {
            let mut places = [0; R];
            rows.iter().zip(&mut places).for_each(|(row, place)| *place = row.factors[0]);
            // SAFETY: the elements of the first factor, at indices of the loops.
            unsafe {
                gather(self.factors[0], &places[..rows.len()], steps, |step| step.factors[0], tile.as_chunks_mut::<R>().0)
            };
        }
    }

    /// Copies lanes; zeros where there are none.
    fn copy_lanes<const W: usize>(&self, lanes: &Strip<W>, steps: &[Place], panel: &mut [[MaybeUninit<T>; W]]) {
        if lanes.reads_dense {
            for (step, to) in steps.iter().zip(panel) {
                let offset = lanes.places[0].factors[1].wrapping_add(step.factors[1]);
                // SAFETY: W elements of the second factor, at indices of the loops.
                *to = unsafe { read(self.factors[1], offset) };
            }
            return;
        }
        let mut places = [0; W];
        lanes.places.iter().zip(&mut places).for_each(|(lane, place)| *place = lane.factors[1]);
        // SAFETY: the elements of the second factor, at indices of the loops.
        unsafe { gather(self.factors[1], &places[..lanes.width], steps, |step| step.factors[1], panel) };
    }

    /// The tiles of some rows and lanes, for the first terms or on top of what was stored.
    ///
    /// # Safety
    /// The panel holds the lanes at all steps along, the block all tiles of rows.
    unsafe fn tiles<const R: usize, const W: usize>(
        &self,
        products: Products<T, R, W>,
        is_first: bool,
        high: &[Place],
        lanes: &Strip<W>,
        along: &[isize],
        block: Option<*const T>,
        panel: *const [T; W],
    ) {
        for (tile, rows) in high.chunks(R).enumerate() {
            // Rows that are not there are the first one, or zeros, and what comes of them is not stored.
            let pointers = std::array::from_fn(|at| match block {
                Some(block) => block.wrapping_add(tile * R * along.len() + at).cast(),
                None => self.factors[0].wrapping_byte_offset(rows[if at < rows.len() { at } else { 0 }].factors[0]),
            });
            let mut sums = [[T::ZERO; W]; R];
            if !is_first {
                for (sums, row) in sums.iter_mut().zip(rows) {
                    for (sum, lane) in sums.iter_mut().zip(&lanes.places).take(lanes.width) {
                        // SAFETY: an element of the result that was stored, at indices of the loops.
                        *sum = unsafe { read(self.out.cast(), row.out.wrapping_add(lane.out)) };
                    }
                }
            }
            // SAFETY: the pointers, at each term, are elements of the rows, or of the block that was copied.
            unsafe { products(pointers, along, panel, &mut sums) };
            for (sums, row) in sums.iter().zip(rows) {
                if lanes.writes_dense {
                    let out = self.out.wrapping_byte_offset(row.out.wrapping_add(lanes.places[0].out));
                    // SAFETY: W elements of the result, at indices of the loops.
                    unsafe { out.cast::<[T; W]>().write_unaligned(*sums) };
                    continue;
                }
                for (sum, lane) in sums.iter().zip(&lanes.places).take(lanes.width) {
                    let out = self.out.wrapping_byte_offset(row.out.wrapping_add(lane.out));
                    // SAFETY: an element of the result, at indices of the loops.
                    unsafe { out.write_unaligned(*sum) };
                }
            }
        }
    }
}

/// Adds products to the sums of a tile. A function of its own for each instruction set: sums stay in registers only where
/// nothing is around the loop.
///
/// # Safety
/// There is an element at each pointer and each of the steps along from it, and a row of the panel for each step.
type Products<T, const R: usize, const W: usize> =
    unsafe fn(rows: [*const u8; R], along: &[isize], panel: *const [T; W], sums: &mut [[T; W]; R]);

/// See [`Products`].
#[inline(always)]
unsafe fn products<T: Number, const R: usize, const W: usize>(
    rows: [*const u8; R],
    along: &[isize],
    panel: *const [T; W],
    sums: &mut [[T; W]; R],
) {
    let mut local = *sums;
    for (term, step) in along.iter().enumerate() {
        // SAFETY: by the contract.
        let lanes = unsafe { panel.add(term).read() };
        for at in 0..R {
            // SAFETY: by the contract.
            let value: T = unsafe { read(rows[at], *step) };
            for lane in 0..W {
                local[at][lane] = local[at][lane].plus_product(value, lanes[lane]);
            }
        }
    }
    *sums = local;
}

/// See [`Products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn products_with_avx2<T: Number, const R: usize, const W: usize>(
    rows: [*const u8; R],
    along: &[isize],
    panel: *const [T; W],
    sums: &mut [[T; W]; R],
) {
    // SAFETY: by the contract.
    unsafe { products(rows, along, panel, sums) }
}

/// See [`Products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn products_with_avx512<T: Number, const R: usize, const W: usize>(
    rows: [*const u8; R],
    along: &[isize],
    panel: *const [T; W],
    sums: &mut [[T; W]; R],
) {
    // SAFETY: by the contract.
    unsafe { products(rows, along, panel, sums) }
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

/// Copies the elements at each step and place, those of a step side by side, with zeros after them. What is read along
/// shorter ways is read first.
///
/// # Safety
/// There are such elements.
#[inline(always)]
unsafe fn gather<T: Number, const N: usize>(
    from: *const u8,
    places: &[isize],
    steps: &[Place],
    of: impl Fn(&Place) -> isize,
    to: &mut [[MaybeUninit<T>; N]],
) {
    let way =
        |a: Option<isize>, b: Option<isize>| a.zip(b).map_or(isize::MAX, |(a, b)| b.wrapping_sub(a).saturating_abs());
    let to = &mut to[..steps.len()];
    if way(places.first().copied(), places.get(1).copied()) <= way(steps.first().map(&of), steps.get(1).map(&of)) {
        for (step, to) in steps.iter().zip(to) {
            let mut values = [MaybeUninit::new(T::ZERO); N];
            for (place, value) in places.iter().zip(&mut values) {
                // SAFETY: by the contract.
                value.write(unsafe { read(from, place.wrapping_add(of(step))) });
            }
            *to = values;
        }
        return;
    }
    for at in 0..N {
        let Some(place) = places.get(at) else {
            to.iter_mut().for_each(|to| _ = to[at].write(T::ZERO));
            continue;
        };
        for (step, to) in steps.iter().zip(&mut *to) {
            // SAFETY: by the contract.
            to[at].write(unsafe { read(from, place.wrapping_add(of(step))) });
        }
    }
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
    /// At the step of this number.
    #[inline(always)]
    fn at(loops: &'a [Loop<2>], mut number: usize) -> Walk<'a> {
        let mut walk = Walk { loops, at: SmallVec::from_elem(0, loops.len()), here: Place::default() };
        for (one, at) in loops.iter().zip(&mut walk.at).rev() {
            // Loops without steps have no numbers.
            *at = number % one.size.max(1);
            number /= one.size.max(1);
            walk.here.go(one, *at as isize);
        }
        walk
    }

    /// Where it is; then it goes on.
    #[inline(always)]
    fn next(&mut self) -> Place {
        let here = self.here;
        for (one, at) in self.loops.iter().zip(&mut self.at).rev() {
            *at += 1;
            let more = *at < one.size;
            let steps = if more { 1 } else { 1 - one.size as isize };
            self.here.go(one, steps);
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
