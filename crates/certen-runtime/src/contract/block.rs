//! The tiles of some rows and lanes with some terms: what they read is copied or found, then each is computed.
//!
//! Where rows, lanes and terms are is found once for all blocks that have the same.
//!
//! Needs: loops that stay inside their arrays. Guarantees: what [`tile`](super::tile) does, for one block.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::copy::{Loops, Piece, Place, count, is_dense, pack, pack_pieces, places, read};
use super::inner::Number;
use super::micro::{ANYWHERE, APART, DENSE, Job, Micro, WIDEST};
use super::plan::{Tiles, WORTH_COPYING};
use super::turn::terms_apart;
use crate::scratch::Scratch;

/// How far on in a panel the lanes are that are asked for.
const PANEL_AHEAD: isize = 512;

/// Lanes of so many bytes stay in the first cache, or nearly: those that lie side by side are read where they are.
const NEAR_BYTES: usize = 40 << 10;

/// More lanes than these are read in their order, which copies do, unless there are few terms.
const NEAR_LANES: usize = 2 << 20;
const FEW_TERMS: usize = 16;

/// The most rows where an operand is read where it is: more have too many pointers.
const MOST_READ: usize = 10;

/// From so many groups on, rows that lie side by side and go in equal steps are copied.
const WORTH_COPYING_DENSE: usize = 9;

/// What is known of the tasks of a thread, and memory for copies.
pub(super) struct Work<'a, T> {
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
    places: Spots,
    out: Spots,
    groups: Vec<Group>,
}

/// How far the lanes of a block are.
enum Spots {
    /// Side by side, from there on: nothing is noted of each.
    Dense(isize),
    Listed(Vec<isize>),
}

impl Spots {
    /// Those of so many lanes from one on.
    fn of<T>(loops: &Loops, first: usize, count: usize, which: impl Fn(Place) -> isize) -> Spots {
        let mut first_two = [0; 2];
        if loops.len() <= 1 {
            let mut at = 0;
            places(loops, first, count.min(2), |place| {
                first_two[at] = which(place);
                at += 1;
            });
            if count < 2 || first_two[1].wrapping_sub(first_two[0]) == size_of::<T>() as isize {
                return Spots::Dense(first_two[0]);
            }
        }
        let mut all = Vec::with_capacity(count);
        places(loops, first, count, |place| all.push(which(place)));
        Spots::Listed(all)
    }

    fn at<T>(&self, lane: usize) -> isize {
        match self {
            Spots::Dense(first) => first.wrapping_add((lane * size_of::<T>()) as isize),
            Spots::Listed(all) => all[lane],
        }
    }

    /// Whether some lanes lie side by side.
    fn is_dense<T>(&self, lanes: Range<usize>) -> bool {
        match self {
            Spots::Dense(_) => true,
            Spots::Listed(all) => is_dense::<T>(&all[lanes]),
        }
    }

    /// Those of some lanes, where they are listed.
    fn listed(&self, lanes: Range<usize>) -> &[isize] {
        match self {
            Spots::Dense(_) => &[],
            Spots::Listed(all) => &all[lanes],
        }
    }
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
    /// Whether it is read where it is.
    is_direct: bool,
    /// How far the vectors are, in the factor, in the panel, and in the result.
    places: [isize; WIDEST],
    panel: [isize; WIDEST],
    out: [isize; WIDEST],
}

impl Lanes {
    fn new() -> Lanes {
        Lanes { from: std::ptr::null(), known: None, places: Spots::Dense(0), out: Spots::Dense(0), groups: Vec::new() }
    }

    /// Finds some lanes, in groups so many vectors wide, for a panel of so many terms.
    fn find<T: Number>(&mut self, tiles: &Tiles<T>, own: &Range<usize>, wide: usize, depth: usize) {
        let key = Some((own.clone(), wide, depth));
        if self.known == key {
            return;
        }
        self.known = key;
        self.places = Spots::of::<T>(&tiles.lanes, own.start, own.len(), |place| place.factors[1]);
        self.out = Spots::of::<T>(&tiles.lanes, own.start, own.len(), |place| place.out);
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
                |places: &Spots| (0..wide).all(|at| places.is_dense::<T>(vector(at)..all.min(vector(at) + width)));
            let panel = |at: usize| ((first + at * width) * depth * bytes) as isize;
            self.groups.push(Group {
                first,
                count,
                wide,
                last: count - (wide - 1) * width,
                reads_dense: dense(&self.places),
                writes_dense: dense(&self.out),
                is_direct: false,
                places: std::array::from_fn(|at| self.places.at::<T>(vector(at))),
                panel: std::array::from_fn(panel),
                out: std::array::from_fn(|at| self.out.at::<T>(vector(at))),
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

impl<'a, T: Number> Work<'a, T> {
    /// With room for so many elements of rows and of lanes.
    pub(super) fn new(tiles: &'a Tiles<T>, block: usize, panel: usize) -> Work<'a, T> {
        Work {
            tiles,
            block: Scratch::new(block),
            panel: Scratch::new(panel),
            pieces: Vec::new(),
            lanes: Lanes::new(),
            rows: Rows::default(),
            terms: Terms::default(),
        }
    }

    /// To a step of the loops around: where the factors and the result are there.
    pub(super) fn go(&mut self, factors: [*const u8; 2], out: *mut T) {
        [self.rows.from, self.lanes.from] = factors;
        self.rows.out = out;
    }

    /// Some rows and lanes, with some terms; rows in blocks of so many.
    pub(super) fn block(
        &mut self,
        own_rows: &Range<usize>,
        own_lanes: &Range<usize>,
        terms: Range<usize>,
        highest: usize,
    ) {
        let tiles = self.tiles;
        let (width, bytes, depth) = (tiles.micros.lanes, size_of::<T>(), terms.len());
        let (tile_count, wide) = tiles.tiles_of(own_rows.len(), own_lanes.len().div_ceil(width));
        self.terms.find(&tiles.terms, &terms);
        self.lanes.find(tiles, own_lanes, wide, depth);
        let is_near = own_lanes.len().next_multiple_of(width) * depth * bytes <= NEAR_BYTES;
        let all = count(&tiles.lanes).saturating_mul(count(&tiles.terms)).saturating_mul(bytes);
        let is_read_once = tile_count < WORTH_COPYING && (all <= NEAR_LANES || depth <= FEW_TERMS);
        for group in &mut self.lanes.groups {
            group.is_direct = group.reads_dense && (is_near || is_read_once);
        }
        self.copy_lanes();
        let has_direct = self.lanes.groups.iter().any(|group| group.is_direct);
        let has_steps = !has_direct || self.terms.steps[1].is_some();
        for row in own_rows.clone().step_by(highest) {
            self.rows.find(tiles, &(row..own_rows.end.min(row + highest)));
            let is_dense = self.rows.is_dense && self.terms.steps[0].is_some();
            let copies = self.lanes.groups.len() >= if is_dense { WORTH_COPYING_DENSE } else { WORTH_COPYING };
            let most = tiles.micros.most_rows[wide];
            self.rows.divide(if has_steps && (copies || is_dense) { most } else { most.min(MOST_READ) });
            if copies {
                self.copy_rows();
            }
            for tile in 0..self.rows.tiles.len() {
                self.tile(tile, copies, terms.start == 0);
            }
        }
    }

    /// Copies lanes that are not read where they are.
    fn copy_lanes(&mut self) {
        let (width, vectors, steps) = (self.tiles.micros.lanes, self.tiles.vectors, self.terms.lanes.as_slice());
        let apart = terms_apart(&self.tiles.terms, 1, size_of::<T>());
        let panel = self.panel.elements().as_mut_ptr().cast::<T>();
        self.pieces.clear();
        for group in self.lanes.groups.iter().filter(|group| !group.is_direct) {
            let end = group.first + group.count;
            for first in (group.first..end).step_by(width) {
                let (to, count) = (first * steps.len(), width.min(end - first));
                if group.reads_dense {
                    self.pieces.push(Piece { place: self.lanes.places.at::<T>(first), to, count, width });
                    continue;
                }
                let places = self.lanes.places.listed(first..first + count);
                // SAFETY: elements of the second factor, at indices of the loops; the panel has room for all strips.
                unsafe { pack(self.lanes.from, (places, steps, apart), (panel.wrapping_add(to), width), vectors) };
            }
        }
        // SAFETY: likewise.
        unsafe { pack_pieces(self.lanes.from, (&self.pieces, steps), panel, vectors) };
    }

    /// Copies rows, those of a tile side by side.
    fn copy_rows(&mut self) {
        let (vectors, steps) = (self.tiles.vectors, self.terms.rows.as_slice());
        let apart = terms_apart(&self.tiles.terms, 0, size_of::<T>());
        let block = self.block.elements().as_mut_ptr().cast::<T>();
        self.pieces.clear();
        for tile in &self.rows.tiles {
            let (places, to, width) = (&self.rows.places[tile.clone()], tile.start * steps.len(), tile.len());
            if is_dense::<T>(places) {
                self.pieces.push(Piece { place: places[0], to, count: width, width });
                continue;
            }
            // SAFETY: elements of the first factor, at indices of the loops; the block has room for all rows.
            unsafe { pack(self.rows.from, (places, steps, apart), (block.wrapping_add(to), width), vectors) };
        }
        // SAFETY: likewise.
        unsafe { pack_pieces(self.rows.from, (&self.pieces, steps), block, vectors) };
    }

    /// A tile of rows with all lanes: along the rows of the result.
    fn tile(&mut self, tile: usize, copies: bool, is_first: bool) {
        let Work { tiles, block, panel, lanes, rows, terms, .. } = self;
        let (width, bytes, depth) = (tiles.micros.lanes, size_of::<T>(), terms.rows.len());
        let own = rows.tiles[tile].clone();
        let (outs, places) = (&rows.outs[own.clone()], &rows.places[own.clone()]);
        let copied_step = copies.then_some((own.len() * bytes) as isize);
        let is_dense = copies || rows.is_dense;
        let row_step = copied_step.or(terms.steps[0]);
        let mut job = Job {
            rows: if copies { block.pointer().wrapping_add(own.start * depth).cast() } else { rows.from },
            row_places: if copies { ROW_PLACES[bytes / 8].as_ptr() } else { places.as_ptr() },
            lanes: std::ptr::null(),
            lane_places: std::ptr::null(),
            along: std::ptr::null(),
            steps: [0; 2],
            ahead: 0,
            terms: depth,
            out: rows.out.cast(),
            out_rows: outs.as_ptr(),
            out_lanes: std::ptr::null(),
            last: 0,
            is_first,
        };
        // Where the first of them is at the first term, if terms go in equal steps.
        let first = if is_dense { places[0] } else { 0 }.wrapping_add(terms.rows[0]);
        let begin = if copies { job.rows } else { job.rows.wrapping_byte_offset(first) };
        let mut known: Option<(usize, bool, u8, Micro)> = None;
        for group in &lanes.groups {
            let is_direct = group.is_direct;
            let packed_step = (width * bytes) as isize;
            let (mode, micro) = match known {
                Some((wide, was_direct, mode, micro)) if wide == group.wide && was_direct == is_direct => (mode, micro),
                _ => {
                    let lane_step = if is_direct { terms.steps[1] } else { Some(packed_step) };
                    let mode = match row_step.zip(lane_step) {
                        Some((row, lane)) => {
                            job.steps = [row, lane];
                            job.rows = begin;
                            if is_dense { DENSE } else { APART }
                        }
                        None => {
                            job.rows = if copies { begin } else { rows.from };
                            job.along = terms.along(copied_step, (!is_direct).then_some(packed_step));
                            ANYWHERE
                        }
                    };
                    let micro = tiles.micros.pick(group.wide, own.len(), mode);
                    known = Some((group.wide, is_direct, mode, micro));
                    (mode, micro)
                }
            };
            if is_direct {
                let first = if mode == ANYWHERE { 0 } else { terms.lanes[0] };
                job.lanes = lanes.from.wrapping_byte_offset(first);
                job.lane_places = group.places.as_ptr();
                job.ahead = (group.wide * width * bytes) as isize;
            } else {
                job.lanes = panel.pointer().cast();
                job.lane_places = group.panel.as_ptr();
                job.ahead = PANEL_AHEAD;
            }
            job.out_lanes = group.out.as_ptr();
            job.last = group.last;
            match group.writes_dense {
                // SAFETY: rows and lanes at all terms are in their arrays, or were copied; the sums are in the result.
                true => unsafe { micro(&job) },
                // SAFETY: likewise.
                false => unsafe {
                    aside::<T>(micro, &job, width, outs, lanes.out.listed(group.first..group.first + group.count));
                },
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
unsafe fn aside<T: Number>(micro: Micro, job: &Job, width: usize, rows: &[isize], lanes: &[isize]) {
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
    let job = Job { out: sums.as_mut_ptr().cast(), out_rows: out_rows.as_ptr(), out_lanes: out_lanes.as_ptr(), ..*job };
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
