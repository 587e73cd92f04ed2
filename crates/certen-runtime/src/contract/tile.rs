//! Products of two factors with rows and lanes: a tile of sums stays in registers.
//!
//! Of the kept loops, *rows* walk along one factor alone and *lanes* along the other one. Blocks of both are copied, so that
//! what a tile needs lies side by side whatever the strides (Goto and van de Geijn; TBLIS): a block of rows stays in the
//! second cache, a strip of lanes in the first. What is used once or twice is read where it is. Where a sum is longer than a
//! block, the next one goes on with what was stored: the terms of an element are added in their order. What is the same at
//! all steps of the loops around is found once.
//!
//! Needs: pointers and loops that stay inside their arrays. Guarantees: the bits of [`fused`](super::inner::fused), up to which
//! NaN it is.

use std::cmp::Reverse;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::Call;
use super::copy::{
    Loops, Piece, Place, SMALL_SQUARE, WORTH_A_THREAD, Walk, count, is_dense, pack, pack_pieces, places, read,
};
use super::inner::{Loop, Number};
use super::micro::{ANYWHERE, APART, DENSE, Job, Micro, Micros, WIDEST};
use super::turn::{NEAR_TERMS, terms_apart, turned};
use crate::pool;
use crate::scratch::Scratch;

/// The terms of a block, and its rows.
pub(super) const DEPTH: usize = 256;
const HIGH: usize = 192;

/// The bytes of a panel of lanes.
const PANEL_BYTES: usize = 512 << 10;

/// How far on in a panel the lanes are that are asked for.
const PANEL_AHEAD: isize = 512;

/// A task has at least so many rows where there are others: lanes are copied once for each.
const LEAST_HIGH: usize = 24;

/// Lanes of so many bytes stay in the first cache, or nearly: those that lie side by side are read where they are.
const NEAR_BYTES: usize = 40 << 10;

/// More lanes than these are read in their order, which copies do, unless there are few terms.
const NEAR_LANES: usize = 2 << 20;
const FEW_TERMS: usize = 16;

/// An inner loop of so many terms is a block.
const LONG_TERMS: usize = 96;

/// The most rows where an operand is read where it is: more have too many pointers.
const MOST_READ: usize = 10;

/// What is read so often is copied before.
const WORTH_COPYING: usize = 3;

/// Likewise for rows that lie side by side and go in equal steps.
const WORTH_COPYING_DENSE: usize = 9;

/// With fewer products for each step of the loops around, tiles do not gain.
const FEW: usize = 64;

/// How much more time tiles of many short vectors take, where there are long ones: they read more.
const SHORT_VECTORS: f64 = 1.1;

/// Tasks for each thread: fewer than the pool's parts, because each copies.
const TASKS_PER_THREAD: usize = 2;

/// A product and its loops.
#[derive(Clone)]
pub(super) struct Tiles<T> {
    /// The factor of the rows, then that of the lanes.
    factors: [*const u8; 2],
    out: *mut T,
    /// The bytes of the longest vectors, and what is made of them.
    vectors: usize,
    micros: Micros,
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

    /// The loops of a sum of products of two factors, if tiles gain.
    fn of<const K: usize>(call: &Call<T, K>) -> Option<Tiles<T>> {
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
    fn best(self) -> Tiles<T> {
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
    fn tiles_of(&self, rows: usize, strips: usize) -> (usize, usize) {
        let most = self.micros.most_rows;
        let wide = if rows <= most[WIDEST] && strips > 2 { WIDEST } else { 2 };
        let wide = if most[wide] == 0 || strips == 1 { 1 } else { wide };
        (rows.div_ceil(most[wide]).max(1), wide)
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
        let mut work = Work {
            tiles: self,
            block: Scratch::new(highest * deepest),
            panel: Scratch::new(lanes.min(tasks.wide).min(widest).next_multiple_of(width) * deepest),
            pieces: Vec::new(),
            lanes: Lanes::new(),
            rows: Rows::default(),
            terms: Terms::default(),
        };
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
                work.rows.from = factors[0];
                work.lanes.from = factors[1];
                work.rows.out = self.out.wrapping_byte_offset(at.out);
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

/// What is known of the tasks of a thread, and memory for copies.
struct Work<'a, T> {
    tiles: &'a Tiles<T>,
    block: Scratch<T>,
    panel: Scratch<T>,
    /// What is copied side by side.
    pieces: Vec<Piece>,
    lanes: Lanes,
    rows: Rows<T>,
    terms: Terms,
}

/// The lanes of a block.
struct Lanes {
    /// The factor at a step of the loops around.
    from: *const u8,
    known: Option<(Range<usize>, usize, usize)>,
    /// How far each lane is in the factor, and in the result.
    places: Vec<isize>,
    out: Vec<isize>,
    groups: Vec<Group>,
}

/// Some vectors of lanes: those of a tile.
struct Group {
    /// Its first lane, and how many there are.
    first: usize,
    count: usize,
    wide: usize,
    /// The lanes of the last vector.
    last: usize,
    /// Whether the lanes of each vector lie side by side in the factor; and in the result.
    reads_dense: bool,
    writes_dense: bool,
    /// How far the vectors are, in the factor, in the panel, and in the result.
    places: [isize; WIDEST],
    panel: [isize; WIDEST],
    out: [isize; WIDEST],
}

impl Lanes {
    fn new() -> Lanes {
        Lanes { from: std::ptr::null(), known: None, places: Vec::new(), out: Vec::new(), groups: Vec::new() }
    }

    /// Finds some lanes, in groups so many vectors wide, for a panel of so many terms.
    fn find<T: Number>(&mut self, tiles: &Tiles<T>, own: &Range<usize>, wide: usize, depth: usize) {
        let key = Some((own.clone(), wide, depth));
        if self.known == key {
            return;
        }
        self.known = key;
        self.places.clear();
        self.out.clear();
        places(&tiles.lanes, own.start, own.len(), |Place { factors, out }| {
            self.places.push(factors[1]);
            self.out.push(out);
        });
        let (width, bytes, all) = (tiles.micros.lanes, size_of::<T>(), own.len());
        self.groups.clear();
        let mut first = 0;
        while first < all {
            let strips = (all - first).div_ceil(width);
            // Where a group is not as wide, there is a function for one or two vectors.
            let wide = if strips >= wide { wide } else { strips.min(2) };
            let count = (all - first).min(wide * width);
            let vector = |at: usize| (first + at * width).min(all - 1);
            let dense =
                |places: &[isize]| (0..wide).all(|at| is_dense::<T>(&places[vector(at)..all.min(vector(at) + width)]));
            let panel = |at: usize| ((first + at * width) * depth * bytes) as isize;
            self.groups.push(Group {
                first,
                count,
                wide,
                last: count - (wide - 1) * width,
                reads_dense: dense(&self.places),
                writes_dense: dense(&self.out),
                places: std::array::from_fn(|at| self.places[vector(at)]),
                panel: std::array::from_fn(panel),
                out: std::array::from_fn(|at| self.out[vector(at)]),
            });
            first += count;
        }
    }
}

/// The rows of a block.
struct Rows<T> {
    /// The factor, and the result, at a step of the loops around.
    from: *const u8,
    out: *mut T,
    known: Option<Range<usize>>,
    /// How far each row is in the factor, and in the result, and whether they lie side by side in the factor.
    places: Vec<isize>,
    outs: Vec<isize>,
    is_dense: bool,
    most: Option<usize>,
    /// Which rows are one tile.
    tiles: Vec<Range<usize>>,
}

impl<T> Default for Rows<T> {
    fn default() -> Rows<T> {
        let (from, out) = (std::ptr::null(), std::ptr::null_mut());
        Rows {
            from,
            out,
            known: None,
            places: Vec::new(),
            outs: Vec::new(),
            is_dense: false,
            most: None,
            tiles: Vec::new(),
        }
    }
}

impl<T: Number> Rows<T> {
    /// Finds some rows.
    fn find(&mut self, tiles: &Tiles<T>, own: &Range<usize>) {
        if self.known.as_ref() == Some(own) {
            return;
        }
        self.known = Some(own.clone());
        self.most = None;
        self.places.clear();
        self.outs.clear();
        places(&tiles.rows, own.start, own.len(), |Place { factors, out }| {
            self.places.push(factors[0]);
            self.outs.push(out);
        });
        self.is_dense = is_dense::<T>(&self.places);
    }

    /// Divides them into equal tiles of at most so many.
    fn divide(&mut self, most: usize) {
        if self.most.replace(most) == Some(most) {
            return;
        }
        let (all, parts) = (self.places.len(), self.places.len().div_ceil(most));
        let begin = |part: usize| part * (all / parts) + part.min(all % parts);
        self.tiles.clear();
        self.tiles.extend((0..parts).map(|part| begin(part)..begin(part + 1)));
    }
}

/// The terms of a block: how far the factors go, and how far operands do, of which some were copied.
#[derive(Default)]
struct Terms {
    known: Option<Range<usize>>,
    rows: Vec<isize>,
    lanes: Vec<isize>,
    along: Vec<[isize; 2]>,
    /// How far they go at each term, if that is always the same.
    steps: [Option<isize>; 2],
    /// Whether, and with how many rows, the first operand was copied, and whether the second was.
    along_known: Option<(Option<isize>, bool)>,
}

impl Terms {
    fn find(&mut self, loops: &Loops, own: &Range<usize>) {
        if self.known.as_ref() == Some(own) {
            return;
        }
        self.known = Some(own.clone());
        self.along_known = None;
        self.rows.clear();
        self.lanes.clear();
        if let [one] = loops.as_slice() {
            let offset = |which: usize| move |at: usize| one.factors[which].wrapping_mul(at as isize);
            self.rows.extend(own.clone().map(offset(0)));
            self.lanes.extend(own.clone().map(offset(1)));
            self.steps = one.factors.map(Some);
            return;
        }
        places(loops, own.start, own.len(), |place| {
            self.rows.push(place.factors[0]);
            self.lanes.push(place.factors[1]);
        });
        self.steps = [step(&self.rows), step(&self.lanes)];
    }

    /// How far the operands go at each term.
    fn along(&mut self, rows: Option<isize>, lanes_copied: Option<isize>) -> *const [isize; 2] {
        let key = Some((rows, lanes_copied.is_some()));
        if self.along_known != key {
            self.along_known = key;
            self.along.clear();
            let each = self.rows.iter().zip(&self.lanes).enumerate();
            self.along.extend(each.map(|(at, (row, lane))| {
                let copied = |step: isize| at as isize * step;
                [rows.map_or(*row, copied), lanes_copied.map_or(*lane, copied)]
            }));
        }
        self.along.as_ptr()
    }
}

/// How far it is from one to the next, if that is always the same.
fn step(offsets: &[isize]) -> Option<isize> {
    let step = if let [first, second, ..] = offsets { second.wrapping_sub(*first) } else { 0 };
    offsets.windows(2).all(|pair| pair[1].wrapping_sub(pair[0]) == step).then_some(step)
}

impl<T: Number> Work<'_, T> {
    /// Some rows and lanes, with some terms.
    fn block(&mut self, own_rows: &Range<usize>, own_lanes: &Range<usize>, terms: Range<usize>, highest: usize) {
        let tiles = self.tiles;
        let (width, bytes, depth) = (tiles.micros.lanes, size_of::<T>(), terms.len());
        let (tile_count, wide) = tiles.tiles_of(own_rows.len(), own_lanes.len().div_ceil(width));
        self.terms.find(&tiles.terms, &terms);
        let apart = [0, 1].map(|which| terms_apart(&tiles.terms, which, bytes));
        self.lanes.find(tiles, own_lanes, wide, depth);
        let is_near = own_lanes.len().next_multiple_of(width) * depth * bytes <= NEAR_BYTES;
        let all = count(&tiles.lanes).saturating_mul(count(&tiles.terms)).saturating_mul(bytes);
        let is_read_once = tile_count < WORTH_COPYING && (all <= NEAR_LANES || depth <= FEW_TERMS);
        let is_read_where_it_is = |group: &Group| group.reads_dense && (is_near || is_read_once);
        let panel = self.panel.elements().as_mut_ptr().cast::<T>();
        let from = self.lanes.from;
        self.pieces.clear();
        for group in self.lanes.groups.iter().filter(|group| !is_read_where_it_is(group)) {
            for (at, places) in self.lanes.places[group.first..][..group.count].chunks(width).enumerate() {
                let to = (group.first + at * width) * depth;
                if group.reads_dense {
                    self.pieces.push(Piece { place: places[0], to, count: places.len(), width });
                    continue;
                }
                // SAFETY: elements of the second factor, at indices of the loops; the panel has room for all strips.
                unsafe {
                    pack(from, (places, &self.terms.lanes, apart[1]), (panel.wrapping_add(to), width), tiles.vectors)
                };
            }
        }
        // SAFETY: likewise.
        unsafe { pack_pieces(from, (&self.pieces, &self.terms.lanes), panel, tiles.vectors) };
        let groups = self.lanes.groups.len();
        // Lanes with steps need no table.
        let have_steps = self.terms.steps[1].is_some() || !self.lanes.groups.iter().any(is_read_where_it_is);
        for row in own_rows.clone().step_by(highest) {
            let own = row..own_rows.end.min(row + highest);
            self.rows.find(tiles, &own);
            let row_step = self.terms.steps[0].filter(|_| self.rows.is_dense);
            let copies_rows = groups >= if row_step.is_some() { WORTH_COPYING_DENSE } else { WORTH_COPYING };
            let most = match have_steps && (copies_rows || row_step.is_some()) {
                true => tiles.micros.most_rows[wide],
                false => tiles.micros.most_rows[wide].min(MOST_READ),
            };
            self.rows.divide(most);
            let block = self.block.elements().as_mut_ptr().cast::<T>();
            if copies_rows {
                self.pieces.clear();
                for tile in &self.rows.tiles {
                    let (places, to) = (&self.rows.places[tile.clone()], tile.start * depth);
                    if is_dense::<T>(places) {
                        self.pieces.push(Piece { place: places[0], to, count: places.len(), width: places.len() });
                        continue;
                    }
                    let steps = &self.terms.rows;
                    // SAFETY: elements of the first factor, at indices of the loops; the block has room for all rows.
                    unsafe {
                        let to = (block.wrapping_add(to), tile.len());
                        pack(self.rows.from, (places, steps, apart[0]), to, tiles.vectors);
                    }
                }
                // SAFETY: likewise.
                unsafe { pack_pieces(self.rows.from, (&self.pieces, &self.terms.rows), block, tiles.vectors) };
            }
            for tile in &self.rows.tiles {
                let copied_step = copies_rows.then_some((tile.len() * bytes) as isize);
                let places = &self.rows.places[tile.clone()];
                // Along the rows of the result.
                for group in &self.lanes.groups {
                    let is_direct = is_read_where_it_is(group);
                    let mut job = Job {
                        rows: self.rows.from,
                        row_places: places.as_ptr(),
                        lanes: from,
                        lane_places: group.places.as_ptr(),
                        along: std::ptr::null(),
                        steps: [0; 2],
                        ahead: if is_direct { (group.wide * width * bytes) as isize } else { PANEL_AHEAD },
                        terms: depth,
                        out: self.rows.out.cast(),
                        out_rows: self.rows.outs[tile.start..].as_ptr(),
                        out_lanes: group.out.as_ptr(),
                        last: group.last,
                        is_first: terms.start == 0,
                    };
                    if copies_rows {
                        job.rows = block.wrapping_add(tile.start * depth).cast_const().cast();
                        job.row_places = ROW_PLACES[bytes / 8].as_ptr();
                    }
                    if !is_direct {
                        job.lanes = panel.cast_const().cast();
                        job.lane_places = group.panel.as_ptr();
                    }
                    let packed_step = (width * bytes) as isize;
                    let lane_step = if is_direct { self.terms.steps[1] } else { Some(packed_step) };
                    let mode = match copied_step.or(self.terms.steps[0]).zip(lane_step) {
                        Some((row, lane)) => {
                            job.steps = [row, lane];
                            let is_dense = copies_rows || self.rows.is_dense;
                            if !copies_rows {
                                let first = if is_dense { places[0] } else { 0 };
                                job.rows = job.rows.wrapping_byte_offset(first.wrapping_add(self.terms.rows[0]));
                            }
                            if is_direct {
                                job.lanes = job.lanes.wrapping_byte_offset(self.terms.lanes[0]);
                            }
                            if is_dense { DENSE } else { APART }
                        }
                        None => {
                            job.along = self.terms.along(copied_step, (!is_direct).then_some(packed_step));
                            ANYWHERE
                        }
                    };
                    let micro = tiles.micros.pick(group.wide, tile.len(), mode);
                    let (rows, lanes) = (&self.rows.outs[tile.clone()], &self.lanes.out[group.first..][..group.count]);
                    match group.writes_dense {
                        // SAFETY: rows and lanes at all terms are in their arrays, or were copied; the sums are in the result.
                        true => unsafe { micro(&job) },
                        // SAFETY: likewise.
                        false => unsafe { aside::<T>(micro, job, width, rows, lanes) },
                    }
                }
            }
        }
    }
}

/// Where rows lie that are side by side, for elements of four and of eight bytes.
static ROW_PLACES: [[isize; 12]; 2] =
    [[0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44], [0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88]];

/// The elements of a tile that is not in the result.
const ASIDE: usize = 12 * WIDEST * 16;

/// A tile whose lanes do not lie side by side in the result: its sums are made beside it.
///
/// # Safety
/// As [`Micro`], and the result has elements for these rows and lanes.
unsafe fn aside<T: Number>(micro: Micro, mut job: Job, width: usize, rows: &[isize], lanes: &[isize]) {
    // Those that a tile has are written before they are read.
    let mut sums = [const { MaybeUninit::<T>::uninit() }; ASIDE];
    let long = WIDEST * width;
    let result = job.out;
    if !job.is_first {
        for (sums, row) in sums.chunks_mut(long).zip(rows) {
            for (sum, lane) in sums.iter_mut().zip(lanes) {
                // SAFETY: an element of the result that was stored.
                sum.write(unsafe { read(result, row.wrapping_add(*lane)) });
            }
        }
    }
    let bytes = size_of::<T>();
    let out_rows: [isize; 12] = std::array::from_fn(|at| (at * long * bytes) as isize);
    let out_lanes: [isize; WIDEST] = std::array::from_fn(|at| (at * width * bytes) as isize);
    job.out = sums.as_mut_ptr().cast();
    (job.out_rows, job.out_lanes) = (out_rows.as_ptr(), out_lanes.as_ptr());
    // SAFETY: by the contract; there is room for twelve rows.
    unsafe { micro(&job) };
    for (sums, row) in sums.chunks(long).zip(rows) {
        for (sum, lane) in sums.iter().zip(lanes) {
            let out = result.wrapping_byte_offset(row.wrapping_add(*lane)).cast::<T>();
            // SAFETY: an element of the result; the sum of a lane that is there was just stored.
            unsafe { out.write_unaligned(sum.assume_init_read()) };
        }
    }
}
