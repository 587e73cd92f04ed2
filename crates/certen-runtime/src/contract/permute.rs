//! A copy of a factor in another order.
//!
//! Two loops matter: the one along which elements lie side by side in the factor, and the one along which they shall lie in
//! the copy. If they are the same, stretches are copied; else squares are turned in registers, a cache line of the factor at a
//! time, so that every line is read once and a few are written at the same time. If the factor has no such loop, elements are
//! copied one by one, in the order of the copy.
//!
//! Needs: loops that stay inside the factor, and memory for the copy. Guarantees: each element of the copy is written once.

use std::ops::Range;

use smallvec::SmallVec;

use super::copy::{SMALL_SQUARE, WORTH_A_THREAD, fetch, most_square, read, turn_eight, turn_four};
use super::inner::Number;
use crate::pool;

const CACHE_LINE: usize = 64;

/// So many steps along the copy before they are read, lines of the factor are asked for.
const AHEAD: usize = 16;

/// A loop: its steps, and how far it goes at each in the factor, in bytes, and in the copy, in elements.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stride {
    pub(super) size: usize,
    pub(super) from: isize,
    pub(super) to: usize,
}

/// A factor, its copy, and the loops.
struct Permuted<T> {
    from: *const u8,
    to: *mut T,
    /// All but the two that follow, the outermost first.
    outer: SmallVec<[Stride; 8]>,
    /// Along which elements lie side by side in the factor; and in the copy.
    near: Stride,
    along: Stride,
    /// How many steps of the first are copied together, and in how many parts so.
    line: usize,
    parts: usize,
    vectors: usize,
}

// SAFETY: the factor is only read, and each element of the copy is written by one thread.
unsafe impl<T> Sync for Permuted<T> {}

/// Copies the elements of a factor, by several threads if there are many. Vectors of so many bytes may be used.
///
/// # Safety
/// The loops stay inside the factor and the copy, and no two steps have the same place in the copy; the processor has such
/// vectors.
pub(super) unsafe fn permute<T: Number>(from: *const u8, to: *mut T, loops: &[Stride], vectors: usize) {
    let unit = size_of::<T>() as isize;
    let mut loops: SmallVec<[Stride; 8]> = loops.iter().filter(|one| one.size != 1).copied().collect();
    if loops.iter().any(|one| one.size == 0) {
        return;
    }
    loops.sort_by_key(|one| std::cmp::Reverse(one.to));
    let mut joined: SmallVec<[Stride; 8]> = SmallVec::new();
    for one in loops {
        match joined.last_mut() {
            Some(outer)
                if one.from.checked_mul(one.size as isize) == Some(outer.from)
                    && one.to.checked_mul(one.size) == Some(outer.to) =>
            {
                *outer = Stride { size: outer.size * one.size, ..one };
            }
            _ => joined.push(one),
        }
    }
    let still = Stride { size: 1, from: 0, to: 0 };
    let mut take = |is: &dyn Fn(&Stride) -> bool| {
        let at = joined.iter().rposition(is);
        at.map_or(still, |at| joined.remove(at))
    };
    let along = take(&|one| one.to == 1);
    let near = match along.from == unit {
        true => still,
        false => take(&|one| one.from == unit),
    };
    let line = CACHE_LINE / size_of::<T>();
    let parts = near.size.div_ceil(line);
    let count = joined.iter().fold(parts, |count, one| count.saturating_mul(one.size));
    let all = count.saturating_mul(near.size.min(line)).saturating_mul(along.size);
    let permuted = Permuted { from, to, outer: joined, near, along, line, parts, vectors };
    match pool::threads() > 1 && all >= WORTH_A_THREAD {
        // SAFETY: by the contract; parts have no element in common.
        true => pool::in_parts(count, &|part| unsafe { permuted.part(part) }),
        // SAFETY: by the contract.
        false => unsafe { permuted.part(0..count) },
    }
}

impl<T: Number> Permuted<T> {
    /// Some of the parts.
    ///
    /// # Safety
    /// As [`permute`]; no other thread writes these elements.
    unsafe fn part(&self, part: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        if self.vectors >= 32 {
            // SAFETY: by the contract.
            return unsafe { self.part_with_avx2(part) };
        }
        // SAFETY: by the contract.
        unsafe { self.each::<false>(part) }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn part_with_avx2(&self, part: Range<usize>) {
        // SAFETY: by the contract.
        unsafe { self.each::<true>(part) }
    }

    /// See [`Permuted::part`]. Of the loops the innermost outer one goes on first, then the parts of a line, then the others.
    #[inline(always)]
    unsafe fn each<const AVX: bool>(&self, part: Range<usize>) {
        let still = Stride { size: 1, from: 0, to: 0 };
        let (inner, outer) = match self.outer.split_last() {
            Some((inner, outer)) => (*inner, outer),
            None => (still, &[][..]),
        };
        let mut number = part.start;
        let mut step = number % inner.size;
        number /= inner.size;
        let mut line = number % self.parts;
        number /= self.parts;
        let mut at: SmallVec<[usize; 8]> = SmallVec::from_elem(0, outer.len());
        for (one, at) in outer.iter().zip(&mut at).rev() {
            *at = number % one.size;
            number /= one.size;
        }
        for _ in part {
            let (mut from, mut to) = (self.from, self.to);
            let mut go = |one: &Stride, steps: usize| {
                from = from.wrapping_byte_offset(one.from.wrapping_mul(steps as isize));
                to = to.wrapping_add(one.to.wrapping_mul(steps));
            };
            outer.iter().zip(&at).for_each(|(one, at)| go(one, *at));
            go(&inner, step);
            go(&self.near, line * self.line);
            // SAFETY: by the contract.
            unsafe { self.block::<AVX>(from, to, (self.near.size - line * self.line).min(self.line)) };
            step += 1;
            if step < inner.size {
                continue;
            }
            step = 0;
            line += 1;
            if line < self.parts {
                continue;
            }
            line = 0;
            for (one, at) in outer.iter().zip(&mut at).rev() {
                *at += 1;
                if *at < one.size {
                    break;
                }
                *at = 0;
            }
        }
    }

    /// A line of the factor, or a part of one, at each step along the copy.
    ///
    /// # Safety
    /// As [`permute`].
    #[inline(always)]
    unsafe fn block<const AVX: bool>(&self, from: *const u8, to: *mut T, count: usize) {
        let (size, step) = (self.along.size, self.along.from);
        if step == size_of::<T>() as isize {
            // SAFETY: by the contract; they lie side by side in both.
            return unsafe { std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), size * size_of::<T>()) };
        }
        let edge = if AVX { most_square::<T>() } else { SMALL_SQUARE };
        let line = |at: usize| from.wrapping_byte_offset(step.wrapping_mul(at as isize)).cast::<T>();
        let edge = if count >= edge && size >= edge { edge } else { SMALL_SQUARE };
        if count >= edge && size >= edge {
            let mut at = 0;
            while at < size {
                // The last squares have some of the elements before them again.
                let begin = at.min(size - edge);
                for next in 0..if step.unsigned_abs() < CACHE_LINE { 0 } else { edge } {
                    let ahead = line((begin + AHEAD + next).min(size - 1));
                    fetch::<_, true>(ahead);
                    fetch::<_, true>(ahead.wrapping_add(count - 1));
                }
                let mut first = 0;
                while first < count {
                    let here = first.min(count - edge);
                    let (to, width) = (to.wrapping_add(here * self.near.to + begin), self.near.to);
                    // SAFETY: by the contract: the square is inside the block.
                    unsafe {
                        match edge {
                            8 => {
                                turn_eight(std::array::from_fn(|next| line(begin + next).wrapping_add(here)), to, width)
                            }
                            _ => {
                                let lines = std::array::from_fn(|next| line(begin + next).wrapping_add(here));
                                turn_four::<T, AVX>(lines, to, width);
                            }
                        }
                    }
                    first = here + edge;
                }
                at = begin + edge;
            }
            return;
        }
        for first in 0..count {
            for at in 0..size {
                let offset = step.wrapping_mul(at as isize).wrapping_add((first * size_of::<T>()) as isize);
                // SAFETY: by the contract.
                unsafe { to.add(first * self.near.to + at).write(read(from, offset)) };
            }
        }
    }
}
