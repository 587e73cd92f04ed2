//! Products of two factors with rows and lanes: a tile of sums stays in registers.
//!
//! Of the kept loops, *rows* walk along one factor alone and *lanes* along the other one. Blocks of both are copied, so that
//! what a tile needs lies side by side whatever the strides (Goto and van de Geijn; TBLIS): a block of rows stays in the
//! second cache, a strip of lanes in the first. Where a sum is longer than a block, the next one goes on with what was
//! stored: the terms of an element are added in their order.
//!
//! Needs: pointers and loops that stay inside their arrays. Guarantees: the bits of [`fused`](super::inner::fused), up to which
//! NaN it is.

use std::cmp::Reverse;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::Call;
use super::copy::{Loops, Place, Places, SQUARE, WORTH_A_THREAD, Walk, count, gather, read, turned};
use super::inner::{Loop, Number};
use crate::pool;
use crate::scratch::Scratch;

/// The rows of a tile, and the bytes of its lanes: twelve vectors of sums, with AVX2 two for each row, with AVX-512 one.
const ROWS: usize = 6;
const WIDE_ROWS: usize = 12;
const LANE_BYTES: usize = 64;

/// The terms of a block, and its rows.
const DEPTH: usize = 320;
const HIGH: usize = 192;

/// The bytes of a panel of lanes.
const PANEL_BYTES: usize = 2 << 20;

/// A task has at least so many rows where there are others: lanes are copied once for each.
const LEAST_HIGH: usize = 24;

/// Lanes of so many bytes stay in the first cache: tiles go along the rows of the result then, and lanes that lie side by
/// side are read where they are.
const NEAR_BYTES: usize = 16 << 10;

/// Lanes that are farther apart are copied in any case.
const NEAR_LANES: usize = 2 << 20;

/// With fewer lanes, rows are read where they are.
const WORTH_COPYING: usize = 32;

/// With fewer products for each step of the loops around, tiles do not gain.
const FEW: usize = 2048;

/// Tasks for each thread: fewer than the pool's parts, because each copies.
const TASKS_PER_THREAD: usize = 2;

/// A product and its loops.
#[derive(Clone)]
pub(super) struct Tiles<T> {
    /// The factor of the rows, then that of the lanes.
    factors: [*const u8; 2],
    out: *mut T,
    /// The bytes of the longest vectors.
    vectors: usize,
    around: Loops,
    rows: Loops,
    lanes: Loops,
    terms: Loops,
}

// SAFETY: the factors are only read, and each element of the result is written by the one task that has its rows and lanes.
unsafe impl<T> Sync for Tiles<T> {}

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
        let tiles =
            Tiles { factors: [a, b], out: call.out, vectors: call.vectors, around, rows: first, lanes: second, terms };
        let [swapped, other] = [tiles.clone().swapped(), tiles.clone()].map(|mut tiles| {
            // Wherever they are in the result, lanes may be read as they lie.
            tiles.lanes.sort_by_key(|one| Reverse(one.factors[1].unsigned_abs()));
            tiles
        });
        let all = [tiles.clone().swapped(), tiles, swapped, other];
        let all = all.into_iter().filter(|tiles| count(&tiles.lanes) > 1);
        let mut best = all.min_by(|a, b| a.price().total_cmp(&b.price()))?;
        // Rows are copied as they lie.
        best.rows.sort_by_key(|one| Reverse(one.factors[0].unsigned_abs()));
        Some(best)
    }

    /// Whether tiles gain with so many rows, lanes and terms.
    pub fn gain(rows: usize, lanes: usize, terms: usize) -> bool {
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

    /// About how many cycles it takes: products, stores and copies, of which those of single elements are dear.
    fn price(&self) -> f64 {
        let unit = size_of::<T>() as isize;
        let (rows, lanes, terms) = (count(&self.rows), count(&self.lanes), count(&self.terms));
        let width = LANE_BYTES / size_of::<T>();
        let goes = |step: fn(&Loop<2>) -> isize| {
            let mut next = unit;
            let dense = self.lanes.iter().rev().take_while(|one| {
                let is_next = step(one) == next;
                next = next.wrapping_mul(one.size as isize);
                is_next
            });
            dense.fold(1, |run: usize, one| run.saturating_mul(one.size)) > 4
        };
        let stores = if goes(|one| one.out) { ROWS * 2 } else { ROWS * width };
        let tiles = (rows.div_ceil(ROWS) * lanes.div_ceil(width)) as f64;
        let is_turned = self.terms.last().is_some_and(|one| one.factors[1] == unit && one.size >= SQUARE);
        let copied = match goes(|one| one.factors[1]) {
            true => 0.25,
            false if is_turned => 0.9,
            false => 1.5,
        };
        let copies = lanes as f64 * terms as f64 * copied;
        let rows = if self.copies_rows() { rows as f64 * terms as f64 } else { 0.0 };
        tiles * (terms as f64 * ROWS as f64 + stores as f64) + copies + rows
    }

    /// Whether rows are copied: they are not read where they are if that is far apart at each term.
    fn copies_rows(&self) -> bool {
        let goes = |one: &Loop<2>| one.factors[0].unsigned_abs() == size_of::<T>();
        count(&self.lanes) >= WORTH_COPYING || !self.terms.last().is_some_and(goes)
    }

    /// Whether the lanes at all terms are near each other: they stay in the second cache.
    fn has_near_lanes(&self) -> bool {
        let reach = |one: &Loop<2>| one.factors[1].unsigned_abs().saturating_mul(one.size);
        self.lanes.iter().chain(&self.terms).map(reach).fold(0, usize::saturating_add) <= NEAR_LANES
    }

    /// Computes the result, by several threads if it is large.
    pub fn run(mut self) {
        // What is copied must live until the end.
        let Tiles { factors: [first, second], around, rows, lanes, terms, .. } = &mut self;
        // SAFETY: the loops stay inside the arrays.
        let _copies =
            unsafe { (turned::<T>(first, 0, around, [rows, terms]), turned::<T>(second, 1, around, [lanes, terms])) };
        match size_of::<T>() {
            8 => self.in_lanes::<8>(),
            _ => self.in_lanes::<16>(),
        }
    }

    fn in_lanes<const W: usize>(&self) {
        #[cfg(target_arch = "x86_64")]
        {
            // `Nest::fused` has looked whether the processor has them.
            if self.vectors >= 64 {
                // Fewer rows that are not there.
                let rows = count(&self.rows);
                return match rows.next_multiple_of(ROWS) < rows.next_multiple_of(WIDE_ROWS) && rows < 4 * WIDE_ROWS {
                    true => self.in_tasks::<ROWS, W>(products_with_avx512),
                    false => self.in_tasks::<WIDE_ROWS, W>(products_with_avx512),
                };
            }
            if self.vectors >= 32 {
                return self.in_tasks::<ROWS, W>(products_with_avx2);
            }
        }
        self.in_tasks::<ROWS, W>(products);
    }

    fn in_tasks<const R: usize, const W: usize>(&self, products: Products<T, R, W>) {
        let (rows, lanes, around) = (count(&self.rows), count(&self.lanes), count(&self.around));
        let work = [rows, lanes, around].into_iter().fold(count(&self.terms), usize::saturating_mul);
        let threads = pool::threads().min(work / WORTH_A_THREAD).max(1);
        let wanted = if threads > 1 { (threads * TASKS_PER_THREAD).div_ceil(around) } else { 1 };
        // Where rows are divided lanes are copied several times, and the other way round.
        let copied = |parts: &usize| parts * lanes + wanted.div_ceil(*parts) * rows;
        let row_parts = (1..=wanted.min(rows.div_ceil(LEAST_HIGH))).min_by_key(copied).unwrap_or(1);
        let high = rows.div_ceil(row_parts).next_multiple_of(R);
        let wide = lanes.div_ceil(wanted.div_ceil(row_parts)).next_multiple_of(W);
        let (row_parts, lane_parts) = (rows.div_ceil(high), lanes.div_ceil(wide));
        let tasks = Tasks { high, wide, row_parts, lane_parts, count: around * row_parts * lane_parts };
        match threads {
            1 => self.part(tasks, 0..tasks.count, products),
            _ => pool::in_parts(tasks.count, &|part| self.part(tasks, part, products)),
        }
    }

    /// Some of the tasks.
    fn part<const R: usize, const W: usize>(&self, tasks: Tasks, part: Range<usize>, products: Products<T, R, W>) {
        let (rows, lanes, terms) = (count(&self.rows), count(&self.lanes), count(&self.terms));
        let (copies, near_lanes) = (self.copies_rows(), self.has_near_lanes());
        // Equal blocks of terms, of which there are some: see `gain`.
        let deepest = terms.div_ceil(terms.div_ceil(DEPTH));
        let widest = (PANEL_BYTES / LANE_BYTES / deepest).max(1) * W;
        let highest = rows.min(tasks.high).min(HIGH).next_multiple_of(R);
        let mut block: Scratch<T> = Scratch::new(if copies { highest * deepest } else { 0 });
        let mut panel: Scratch<T> = Scratch::new(lanes.min(tasks.wide).min(widest).next_multiple_of(W) * deepest);
        let mut steps: Places = Places::new(&self.terms);
        let mut high: Places = Places::new(&self.rows);
        let mut tiles: Vec<Rows<R>> = Vec::new();
        let mut strips: Vec<Strip<W>> = Vec::new();
        let mut known_lanes = None;
        // How far the rows and lanes of a tile go at each term, in their arrays or in what was copied of them.
        let mut along: Vec<[isize; 2]> = Vec::with_capacity(deepest);
        let copied: [isize; R] = std::array::from_fn(|at| (at * size_of::<T>()) as isize);
        for task in part {
            let (lane_part, rest) = (task % tasks.lane_parts, task / tasks.lane_parts);
            let (row_part, around) = (rest % tasks.row_parts, rest / tasks.row_parts);
            let at = Walk::at(&self.around, around).here;
            let here = Tile {
                factors: [0, 1].map(|which| self.factors[which].wrapping_byte_offset(at.factors[which])),
                out: self.out.wrapping_byte_offset(at.out),
                is_first: true,
            };
            let own_rows = row_part * tasks.high..rows.min((row_part + 1) * tasks.high);
            let own_lanes = lane_part * tasks.wide..lanes.min((lane_part + 1) * tasks.wide);
            for lane in own_lanes.clone().step_by(widest) {
                let own = lane..own_lanes.end.min(lane + widest);
                if known_lanes.replace(lane) != Some(lane) {
                    strips.clear();
                    let strip = |first| Strip::new(&self.lanes, first, &own, terms <= DEPTH, size_of::<T>());
                    strips.extend(own.clone().step_by(W).map(strip));
                }
                for from in (0..terms).step_by(deepest) {
                    let here = Tile { is_first: from == 0, ..here };
                    let steps = steps.at(from, (terms - from).min(deepest));
                    let is_near = strips.len() * steps.len() * LANE_BYTES <= NEAR_BYTES;
                    let is_read_once = own_rows.len() <= 2 * R;
                    let is_direct =
                        near_lanes && (is_near || is_read_once) && strips.iter().all(|lanes| lanes.reads_dense);
                    if !is_direct {
                        here.copy_lanes(&strips, steps, panel.elements());
                    }
                    let offset = |term: usize, count: usize| (term * count * size_of::<T>()) as isize;
                    along.clear();
                    along.extend(steps.iter().enumerate().map(|(term, step)| {
                        let row = if copies { offset(term, R) } else { step.factors[0] };
                        [row, if is_direct { step.factors[1] } else { offset(term, W) }]
                    }));
                    let lanes_of = |at: usize, lanes: &Strip<W>| match is_direct {
                        true => here.factors[1].wrapping_byte_offset(lanes.places[0].factors[1]),
                        false => panel.pointer().wrapping_add(at * W * steps.len()).cast(),
                    };
                    for row in own_rows.clone().step_by(HIGH) {
                        tiles.clear();
                        tiles.extend(high.at(row, (own_rows.end - row).min(HIGH)).chunks(R).map(Rows::new));
                        if copies {
                            here.copy_rows(&tiles, steps, block.elements());
                        }
                        let one = |tile: usize, rows: &Rows<R>, strip: usize, lanes: &Strip<W>| {
                            let rows_of = match copies {
                                true => (block.pointer().wrapping_add(tile * R * steps.len()).cast(), &copied),
                                false => (here.factors[0], &rows.factors),
                            };
                            let operands = (rows_of, lanes_of(strip, lanes));
                            // SAFETY: rows and lanes at all steps are in their arrays, or were copied.
                            unsafe { here.tile(products, operands, &along, rows, lanes) }
                        };
                        each(&tiles, &strips, is_near, one);
                    }
                }
            }
        }
    }
}

/// Every tile: along the rows of the result, or along its lanes.
#[inline(always)]
fn each<A, B>(tiles: &[A], strips: &[B], goes_along_rows: bool, one: impl Fn(usize, &A, usize, &B)) {
    let (tiles, strips) = (|| tiles.iter().enumerate(), || strips.iter().enumerate());
    match goes_along_rows {
        true => tiles().for_each(|(tile, rows)| strips().for_each(|(strip, lanes)| one(tile, rows, strip, lanes))),
        false => strips().for_each(|(strip, lanes)| tiles().for_each(|(tile, rows)| one(tile, rows, strip, lanes))),
    }
}

/// Where the lanes of a tile are, which of them are its own, and whether they lie side by side.
struct Strip<const W: usize> {
    places: [Place; W],
    own: Range<usize>,
    reads_dense: bool,
    writes_dense: bool,
}

impl<const W: usize> Strip<W> {
    /// Lanes from one on, of some. The last ones have some of those before them; where these may be stored again, they are.
    fn new(loops: &[Loop<2>], first: usize, of: &Range<usize>, repeats: bool, bytes: usize) -> Strip<W> {
        let mut places = [Place::default(); W];
        let begin = if of.len() >= W { first.min(of.end - W) } else { first };
        let width = W.min(of.end - begin);
        match loops {
            [one] => {
                for (at, lane) in places.iter_mut().enumerate().take(width) {
                    lane.go(one, (begin + at) as isize);
                }
            }
            _ => {
                let mut walk = Walk::at(loops, begin);
                places.iter_mut().take(width).for_each(|lane| *lane = walk.next());
            }
        }
        // In the place of a lane that is not there is the first.
        let first_lane = places[0];
        places[width..].fill(first_lane);
        let is_dense = |of: fn(&Place) -> isize| {
            let goes = |(at, lane): (usize, &Place)| of(lane) == of(&places[0]).wrapping_add((at * bytes) as isize);
            width == W && places.iter().enumerate().all(goes)
        };
        let own = if repeats { 0..width } else { first - begin..width };
        let (reads_dense, writes_dense) = (is_dense(|lane| lane.factors[1]), is_dense(|lane| lane.out));
        Strip { places, writes_dense: writes_dense && own.start == 0, own, reads_dense }
    }
}

/// The factors and the result at a step of the loops around.
#[derive(Clone, Copy)]
struct Tile<T> {
    factors: [*const u8; 2],
    out: *mut T,
    /// Whether sums begin, or go on with what was stored.
    is_first: bool,
}

impl<T: Number> Tile<T> {
    /// Copies rows, those of a tile side by side.
    fn copy_rows<const R: usize>(&self, tiles: &[Rows<R>], steps: &[Place], block: &mut [MaybeUninit<T>]) {
        for (rows, tile) in tiles.iter().zip(block.chunks_exact_mut(R * steps.len())) {
            // SAFETY: the elements of the first factor, at indices of the loops.
            unsafe { gather(self.factors[0], (rows.factors, R), (steps, 0), tile.as_chunks_mut().0) };
        }
    }

    /// Copies lanes, those of a strip side by side. What lies side by side in the array is read in its order.
    fn copy_lanes<const W: usize>(&self, strips: &[Strip<W>], steps: &[Place], panel: &mut [MaybeUninit<T>]) {
        let (panel, depth) = (panel.as_chunks_mut::<W>().0, steps.len());
        for (term, step) in steps.iter().enumerate() {
            for (at, lanes) in strips.iter().enumerate().filter(|(_, lanes)| lanes.reads_dense) {
                let offset = lanes.places[0].factors[1].wrapping_add(step.factors[1]);
                // SAFETY: W elements of the second factor, at indices of the loops.
                panel[at * depth + term] = unsafe { read(self.factors[1], offset) };
            }
        }
        for (at, lanes) in strips.iter().enumerate().filter(|(_, lanes)| !lanes.reads_dense) {
            let places = lanes.places.map(|lane| lane.factors[1]);
            // SAFETY: the elements of the second factor, at indices of the loops.
            unsafe { gather(self.factors[1], (places, lanes.own.end), (steps, 1), &mut panel[at * depth..][..depth]) };
        }
    }

    /// The tile of some rows and lanes.
    ///
    /// # Safety
    /// The rows, which are so far from a pointer, and the lanes can be read at each of the steps along.
    #[inline(always)]
    unsafe fn tile<const R: usize, const W: usize>(
        &self,
        products: Products<T, R, W>,
        operands: ((*const u8, &[isize; R]), *const u8),
        along: &[[isize; 2]],
        rows: &Rows<R>,
        lanes: &Strip<W>,
    ) {
        // Sums are in the result itself, where they lie side by side there.
        if lanes.writes_dense {
            let sums = (self.out.wrapping_byte_offset(lanes.places[0].out).cast(), &rows.out);
            // SAFETY: by the contract.
            return unsafe { products(operands, along, sums, self.is_first) };
        }
        let below: [isize; R] = std::array::from_fn(|at| (at * W * size_of::<T>()) as isize);
        let mut aside = [[T::ZERO; W]; R];
        let own = || lanes.own.clone().zip(&lanes.places[lanes.own.clone()]);
        if !self.is_first {
            for (sums, row) in aside.iter_mut().zip(rows.out) {
                for (lane, place) in own() {
                    // SAFETY: an element of the result that was stored, at indices of the loops.
                    sums[lane] = unsafe { read(self.out.cast(), row.wrapping_add(place.out)) };
                }
            }
        }
        // SAFETY: by the contract; the sums are beside the result.
        unsafe { products(operands, along, (aside.as_mut_ptr(), &below), self.is_first) };
        for (sums, row) in aside.iter().zip(rows.out) {
            for (lane, place) in own() {
                let out = self.out.wrapping_byte_offset(row.wrapping_add(place.out));
                // SAFETY: an element of the result, at indices of the loops.
                unsafe { out.write_unaligned(sums[lane]) };
            }
        }
    }
}

/// Where the rows of a tile are, in the first factor and in the result. Those that are not there are the first once more: what
/// comes of them is the same, and is stored at the same place.
struct Rows<const R: usize> {
    factors: [isize; R],
    out: [isize; R],
}

impl<const R: usize> Rows<R> {
    fn new(rows: &[Place]) -> Rows<R> {
        let row = |at: usize| rows.get(at).unwrap_or(&rows[0]);
        Rows { factors: std::array::from_fn(|at| row(at).factors[0]), out: std::array::from_fn(|at| row(at).out) }
    }
}

/// Adds products to the sums of a tile. The operands are rows, which are so far from a pointer, and lanes; sums are so far
/// from a pointer, too. A function of its own for each instruction set: sums stay in registers only where nothing is around
/// the loop.
///
/// # Safety
/// There are an element of each row and all lanes at each of the steps along; sums can be written, and read unless they begin
/// with zeros.
type Products<T, const R: usize, const W: usize> = unsafe fn(
    operands: ((*const u8, &[isize; R]), *const u8),
    along: &[[isize; 2]],
    sums: (*mut [T; W], &[isize; R]),
    is_first: bool,
);

/// See [`Products`].
#[inline(always)]
unsafe fn products<T: Number, const R: usize, const W: usize>(
    ((rows, places), lanes): ((*const u8, &[isize; R]), *const u8),
    along: &[[isize; 2]],
    (sums, sum_places): (*mut [T; W], &[isize; R]),
    is_first: bool,
) {
    let rows = places.map(|place| rows.wrapping_byte_offset(place));
    let sums = sum_places.map(|place| sums.wrapping_byte_offset(place));
    let mut local = [[T::ZERO; W]; R];
    if !is_first {
        // SAFETY: by the contract.
        local = sums.map(|sums| unsafe { sums.read_unaligned() });
    }
    for [row, lane] in along {
        // SAFETY: by the contract.
        let lanes: [T; W] = unsafe { read(lanes, *lane) };
        for at in 0..R {
            // SAFETY: by the contract.
            let value: T = unsafe { read(rows[at], *row) };
            for lane in 0..W {
                local[at][lane] = local[at][lane].plus_product(value, lanes[lane]);
            }
        }
    }
    for (sums, local) in sums.iter().zip(local) {
        // SAFETY: by the contract.
        unsafe { sums.write_unaligned(local) };
    }
}

/// See [`Products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn products_with_avx2<T: Number, const R: usize, const W: usize>(
    operands: ((*const u8, &[isize; R]), *const u8),
    along: &[[isize; 2]],
    sums: (*mut [T; W], &[isize; R]),
    is_first: bool,
) {
    // SAFETY: by the contract.
    unsafe { products::<T, R, W>(operands, along, sums, is_first) }
}

/// See [`Products`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
unsafe fn products_with_avx512<T: Number, const R: usize, const W: usize>(
    operands: ((*const u8, &[isize; R]), *const u8),
    along: &[[isize; 2]],
    sums: (*mut [T; W], &[isize; R]),
    is_first: bool,
) {
    // SAFETY: by the contract.
    unsafe { products::<T, R, W>(operands, along, sums, is_first) }
}
