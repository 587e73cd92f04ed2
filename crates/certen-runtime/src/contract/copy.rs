//! Copies of factors, in the order in which tiles read them.
//!
//! Needs: pointers and loops that stay inside their arrays; elements need not be aligned.

use std::cmp::Reverse;
use std::mem::MaybeUninit;
use std::ops::Range;

use smallvec::SmallVec;

use super::inner::{Loop, Number};
use crate::pool;
use crate::scratch::Scratch;

const CACHE_LINE: usize = 64;

/// What is copied in another order takes at most so many bytes.
const MOST_TURNED: usize = 64 << 20;

/// So many products, or elements that are copied, are worth another thread.
pub(super) const WORTH_A_THREAD: usize = 1 << 19;

pub(super) type Loops = SmallVec<[Loop<2>; 4]>;

/// How far the factors and the result go.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) factors: [isize; 2],
    pub(super) out: isize,
}

impl Place {
    /// So many steps of a loop.
    #[inline(always)]
    pub(super) fn go(&mut self, one: &Loop<2>, steps: isize) {
        for (at, step) in self.factors.iter_mut().zip(one.factors) {
            *at = at.wrapping_add(step.wrapping_mul(steps));
        }
        self.out = self.out.wrapping_add(one.out.wrapping_mul(steps));
    }
}

/// How many steps loops have together.
pub(super) fn count(loops: &[Loop<2>]) -> usize {
    loops.iter().fold(1usize, |count, one| count.saturating_mul(one.size))
}

/// The way along loops.
pub(super) struct Walk<'a> {
    loops: &'a [Loop<2>],
    at: SmallVec<[usize; 4]>,
    pub(super) here: Place,
}

impl<'a> Walk<'a> {
    /// At the step of this number.
    #[inline(always)]
    pub(super) fn at(loops: &'a [Loop<2>], mut number: usize) -> Walk<'a> {
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
    pub(super) fn next(&mut self) -> Place {
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
}

/// Where some steps of loops are; those of the last time are remembered.
pub(super) struct Places<'a> {
    loops: &'a [Loop<2>],
    known: Option<(usize, usize)>,
    places: Vec<Place>,
}

impl<'a> Places<'a> {
    pub(super) fn new(loops: &'a [Loop<2>]) -> Places<'a> {
        Places { loops, known: None, places: Vec::new() }
    }

    /// So many, from one on.
    pub(super) fn at(&mut self, first: usize, count: usize) -> &[Place] {
        if self.known.replace((first, count)) != Some((first, count)) {
            let mut walk = Walk::at(self.loops, first);
            self.places.clear();
            self.places.extend((0..count).map(|_| walk.next()));
        }
        &self.places
    }
}

/// The element at a pointer and so many bytes on; it need not be aligned.
///
/// # Safety
/// There is one.
#[inline(always)]
pub(super) unsafe fn read<T: Copy>(from: *const u8, offset: isize) -> T {
    // SAFETY: by the contract.
    unsafe { from.wrapping_byte_offset(offset).cast::<T>().read_unaligned() }
}

/// Copies the elements of a factor at each step and place, those of a step side by side. After so many places there are
/// zeros where that is less work.
///
/// # Safety
/// There are such elements.
#[inline(always)]
pub(super) unsafe fn gather<T: Number, const N: usize>(
    from: *const u8,
    (places, count): ([isize; N], usize),
    (steps, which): (&[Place], usize),
    to: &mut [[MaybeUninit<T>; N]],
) {
    let unit = size_of::<T>() as isize;
    let step = |at: usize| steps[at].factors[which];
    let goes = |(at, place): (usize, &isize)| *place == places[0].wrapping_add(at as isize * unit);
    if places.iter().enumerate().all(goes) {
        for (at, to) in to.iter_mut().enumerate().take(steps.len()) {
            // SAFETY: by the contract; the N elements lie side by side.
            *to = unsafe { read(from, places[0].wrapping_add(step(at))) };
        }
        return;
    }
    let mut at = 0;
    while at < steps.len() {
        // The last square has some of the steps before it again.
        let first = at.min(steps.len().saturating_sub(SQUARE));
        let is_near = |next: usize| step(first + next) == step(first).wrapping_add(next as isize * unit);
        if steps.len() >= SQUARE && (1..SQUARE).all(is_near) {
            // SAFETY: by the contract; the elements of these steps lie side by side at each place.
            unsafe {
                square(from, places.map(|place| place.wrapping_add(step(first))), &mut to[first..first + SQUARE])
            };
            at = first + SQUARE;
        } else {
            // SAFETY: by the contract.
            let element = |place: isize| unsafe { read(from, place.wrapping_add(step(at))) };
            to[at] = match count == N {
                true => places.map(|place| MaybeUninit::new(element(place))),
                false => {
                    let mut line = [MaybeUninit::new(T::ZERO); N];
                    line.iter_mut()
                        .zip(places)
                        .take(count)
                        .for_each(|(to, place)| *to = MaybeUninit::new(element(place)));
                    line
                }
            };
            at += 1;
        }
    }
}

/// How many steps are copied together where they lie side by side.
pub(super) const SQUARE: usize = 4;

/// Copies elements of which those of the steps lie side by side at each place, by squares that are turned in registers.
///
/// # Safety
/// There are such elements.
#[inline(always)]
unsafe fn square<T: Number, const N: usize>(from: *const u8, places: [isize; N], to: &mut [[MaybeUninit<T>; N]]) {
    let (fours, rest) = places.as_chunks::<SQUARE>();
    for (at, four) in fours.iter().enumerate() {
        let lines = four.map(|place| from.wrapping_byte_offset(place).cast::<T>());
        let columns = std::array::from_fn(|step| to[step][at * SQUARE..][..SQUARE].as_mut_ptr().cast::<T>());
        // SAFETY: by the contract; four elements fit in each column.
        unsafe { turn(lines, columns) };
    }
    for (at, place) in rest.iter().enumerate() {
        for (step, to) in to.iter_mut().enumerate() {
            let offset = place.wrapping_add((step * size_of::<T>()) as isize);
            // SAFETY: by the contract.
            to[fours.len() * SQUARE + at] = MaybeUninit::new(unsafe { read(from, offset) });
        }
    }
}

/// Copies four lines of four elements into four columns.
///
/// # Safety
/// The lines can be read and the columns be written.
#[inline(always)]
unsafe fn turn<T: Copy>(lines: [*const T; SQUARE], columns: [*mut T; SQUARE]) {
    // SAFETY: by the contract; vectors of this length are part of every x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::*;
        match size_of::<T>() {
            4 => {
                let [a, b, c, d] = lines.map(|line| _mm_loadu_ps(line.cast()));
                let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
                let (ab_high, cd_high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
                let turned = [
                    _mm_movelh_ps(ab, cd),
                    _mm_movehl_ps(cd, ab),
                    _mm_movelh_ps(ab_high, cd_high),
                    _mm_movehl_ps(cd_high, ab_high),
                ];
                columns.iter().zip(turned).for_each(|(column, turned)| _mm_storeu_ps(column.cast(), turned));
                return;
            }
            8 => {
                for (first, second) in [(0, 1), (2, 3)] {
                    for half in [0, 2] {
                        let (a, b) =
                            (_mm_loadu_pd(lines[first].add(half).cast()), _mm_loadu_pd(lines[second].add(half).cast()));
                        _mm_storeu_pd(columns[half].add(first).cast(), _mm_unpacklo_pd(a, b));
                        _mm_storeu_pd(columns[half + 1].add(first).cast(), _mm_unpackhi_pd(a, b));
                    }
                }
                return;
            }
            _ => {}
        }
    }
    for (at, line) in lines.iter().enumerate() {
        for (step, column) in columns.iter().enumerate() {
            // SAFETY: by the contract.
            unsafe { column.add(at).write_unaligned(line.add(step).read_unaligned()) };
        }
    }
}

/// Copies a factor whose neighbours belong to different steps of the loops around, so that each step finds its own side by
/// side: of every cache line that it reads it would use one element. The factor and the loops are those of the copy then.
/// None, and nothing changes, where that is of no use or there is no memory.
///
/// # Safety
/// The loops stay inside the factor.
pub(super) unsafe fn turned<T: Number>(
    factor: &mut *const u8,
    which: usize,
    around: &mut Loops,
    [own, terms]: [&mut Loops; 2],
) -> Option<Scratch<T>> {
    let unit = size_of::<T>();
    let moves = |one: &&mut Loop<2>| one.size > 1 && one.factors[which] != 0;
    let mut inner: SmallVec<[&mut Loop<2>; 8]> = own.iter_mut().chain(terms).filter(moves).collect();
    let mut outer: SmallVec<[&mut Loop<2>; 8]> = around.iter_mut().filter(moves).collect();
    inner.sort_by_key(|one| Reverse(one.factors[which].unsigned_abs()));
    let (near, far): (Loops, Loops) =
        (inner.iter().map(|one| **one).collect(), outer.iter().map(|one| **one).collect());
    let (length, times) = (count(&near), count(&far));
    let is_near = |one: &Loop<2>| one.factors[which].unsigned_abs() == unit;
    let bytes = length.checked_mul(times)?.checked_mul(unit)?;
    if !far.iter().any(is_near) || near.iter().any(is_near) || length < 2 || bytes > MOST_TURNED {
        return None;
    }
    let mut copy: Scratch<T> = Scratch::try_new(length * times)?;
    let arrays = Turned { from: *factor, to: copy.elements().as_mut_ptr().cast::<T>() };
    let mut walk = Walk::at(&far, 0);
    let places: Vec<isize> = (0..times).map(|_| walk.next().factors[which]).collect();
    let line = CACHE_LINE / unit;
    let work = |part: Range<usize>| {
        for first in part.map(|number| number * line) {
            let mut walk = Walk::at(&near, first);
            let own: SmallVec<[isize; 16]> =
                (first..length.min(first + line)).map(|_| walk.next().factors[which]).collect();
            for (time, place) in places.iter().enumerate() {
                let offsets = own.iter().map(|own| place.wrapping_add(*own));
                // SAFETY: by the contract; these are places of the copy that no other part has.
                unsafe { arrays.copy(offsets, time * length + first) };
            }
        }
    };
    match pool::threads() > 1 && length * times >= WORTH_A_THREAD {
        true => pool::in_parts(length.div_ceil(line), &work),
        false => work(0..length.div_ceil(line)),
    }
    let mut step = unit as isize;
    for one in inner.iter_mut().rev().chain(outer.iter_mut().rev()) {
        one.factors[which] = step;
        step *= one.size as isize;
    }
    *factor = copy.pointer().cast();
    Some(copy)
}

/// A factor, and a copy of it in another order.
struct Turned<T> {
    from: *const u8,
    to: *mut T,
}

// SAFETY: the factor is only read, and each element of the copy is written by one thread.
unsafe impl<T> Sync for Turned<T> {}

impl<T: Copy> Turned<T> {
    /// Copies elements at these offsets, side by side.
    ///
    /// # Safety
    /// There are such elements, and nobody else uses these places.
    #[inline(always)]
    unsafe fn copy(&self, offsets: impl Iterator<Item = isize>, first: usize) {
        for (next, offset) in offsets.enumerate() {
            // SAFETY: by the contract.
            unsafe { self.to.add(first + next).write(read(self.from, offset)) };
        }
    }
}
