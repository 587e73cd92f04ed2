//! Copies of blocks of factors, in the order in which tiles read them.
//!
//! What lies side by side in the block and in the factor is copied by vectors; what lies side by side in the factor alone by
//! squares that are turned in registers; the rest one by one.
//!
//! Needs: pointers and loops that stay inside their arrays; elements need not be aligned.

use smallvec::SmallVec;

use super::inner::{Loop, Number};

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

/// Tells where some steps of loops are, from one on. The innermost loop goes on without a look at the others.
#[inline(always)]
pub(super) fn places(loops: &[Loop<2>], first: usize, count: usize, mut tell: impl FnMut(Place)) {
    let Some((inner, outer)) = loops.split_last() else {
        return (0..count).for_each(|_| tell(Place::default()));
    };
    // Loops without steps have no places.
    let size = inner.size.max(1);
    let mut walk = Walk::at(outer, first / size);
    let (mut begin, mut left) = (first % size, count);
    while left > 0 {
        let mut here = walk.next();
        here.go(inner, begin as isize);
        let steps = left.min(size - begin);
        for _ in 0..steps {
            tell(here);
            here.go(inner, 1);
        }
        (begin, left) = (0, left - steps);
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

/// Copies the elements of a factor at each place and step, those of a step side by side: `width` elements, of which those
/// without a place are zeros. Steps that are so many apart may lie side by side in the factor. Vectors of so many bytes may be
/// used.
///
/// # Safety
/// There are such elements, and `width` elements can be written for each step; the processor has such vectors.
pub(super) unsafe fn pack<T: Number>(
    from: *const u8,
    (places, steps, apart): (&[isize], &[isize], usize),
    (to, width): (*mut T, usize),
    vectors: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if vectors >= 32 {
        // SAFETY: by the contract.
        return unsafe { pack_with_avx2(from, places, (steps, apart), to, width) };
    }
    let _ = vectors;
    // SAFETY: by the contract.
    unsafe { packed::<T, false>(from, places, (steps, apart), to, width) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn pack_with_avx2<T: Number>(
    from: *const u8,
    places: &[isize],
    steps: (&[isize], usize),
    to: *mut T,
    width: usize,
) {
    // SAFETY: by the contract.
    unsafe { packed::<T, true>(from, places, steps, to, width) }
}

/// See [`pack`].
#[inline(always)]
unsafe fn packed<T: Number, const AVX: bool>(
    from: *const u8,
    places: &[isize],
    (steps, apart): (&[isize], usize),
    to: *mut T,
    width: usize,
) {
    let unit = size_of::<T>() as isize;
    let count = places.len();
    if count < width {
        for step in 0..steps.len() {
            for at in count..width {
                // SAFETY: by the contract.
                unsafe { to.add(step * width + at).write(T::ZERO) };
            }
        }
    }
    let edge = if AVX { most_square::<T>() } else { SMALL_SQUARE };
    for phase in 0..apart.min(steps.len()) {
        let terms = (steps.len() - phase).div_ceil(apart);
        let mut at = 0;
        while at < terms {
            // The last square has some of the steps before it again.
            let begin = at.min(terms.saturating_sub(edge));
            let first = phase + begin * apart;
            let goes = |next: usize| steps[first + next * apart] == steps[first].wrapping_add(next as isize * unit);
            if terms >= edge && count >= SMALL_SQUARE && (1..edge).all(goes) {
                let here = from.wrapping_byte_offset(steps[first]);
                // SAFETY: by the contract; the elements of these steps lie side by side at each place.
                unsafe {
                    let columns = (to.add(first * width), apart * width);
                    squares::<T, AVX>(here, places, columns, edge, begin / edge % 2 == 0);
                }
                at = begin + edge;
                continue;
            }
            let term = phase + at * apart;
            for (next, place) in places.iter().enumerate() {
                // SAFETY: by the contract.
                unsafe { to.add(term * width + next).write(read(from, place.wrapping_add(steps[term]))) };
            }
            at += 1;
        }
    }
}

/// Elements that lie side by side in a factor, and where they are copied to at the first term; at the next it is `width`
/// elements on. After so many there are zeros.
pub(super) struct Piece {
    pub(super) place: isize,
    pub(super) to: usize,
    pub(super) count: usize,
    pub(super) width: usize,
}

/// Whether elements at these places lie side by side.
pub(super) fn is_dense<T>(places: &[isize]) -> bool {
    let goes = |(at, place): (usize, &isize)| *place == places[0].wrapping_add((at * size_of::<T>()) as isize);
    places.iter().enumerate().all(goes)
}

/// Copies pieces of a factor at each step, in the order in which they lie there.
///
/// # Safety
/// There are such elements, and `width` elements can be written for each piece and step; the processor has vectors of so many
/// bytes.
pub(super) unsafe fn pack_pieces<T: Number>(
    from: *const u8,
    (pieces, steps): (&[Piece], &[isize]),
    to: *mut T,
    vectors: usize,
) {
    #[cfg(target_arch = "x86_64")]
    if vectors >= 32 {
        // SAFETY: by the contract.
        return unsafe { pack_pieces_with_avx2(from, pieces, steps, to) };
    }
    let _ = vectors;
    // SAFETY: by the contract.
    unsafe { packed_pieces(from, pieces, steps, to) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn pack_pieces_with_avx2<T: Number>(from: *const u8, pieces: &[Piece], steps: &[isize], to: *mut T) {
    // SAFETY: by the contract.
    unsafe { packed_pieces(from, pieces, steps, to) }
}

/// See [`pack_pieces`].
#[inline(always)]
unsafe fn packed_pieces<T: Number>(from: *const u8, pieces: &[Piece], steps: &[isize], to: *mut T) {
    for (at, step) in steps.iter().enumerate() {
        let soon = steps.get(at + 2).unwrap_or(step).wrapping_sub(*step);
        for piece in pieces {
            let from = from.wrapping_byte_offset(piece.place.wrapping_add(*step)).cast::<T>();
            fetch::<_, true>(from.wrapping_byte_offset(soon));
            // SAFETY: by the contract.
            unsafe {
                let to = to.add(piece.to + at * piece.width);
                copied(from, to, piece.count);
                for rest in piece.count..piece.width {
                    to.add(rest).write(T::ZERO);
                }
            }
        }
    }
}

/// Copies elements side by side.
///
/// # Safety
/// So many can be read and written.
#[inline(always)]
unsafe fn copied<T: Copy>(from: *const T, to: *mut T, count: usize) {
    let mut at = 0;
    while at + 8 <= count {
        // SAFETY: by the contract, here and below.
        unsafe { to.add(at).cast::<[T; 8]>().write_unaligned(from.add(at).cast::<[T; 8]>().read_unaligned()) };
        at += 8;
    }
    if at + 4 <= count {
        // SAFETY: likewise.
        unsafe { to.add(at).cast::<[T; 4]>().write_unaligned(from.add(at).cast::<[T; 4]>().read_unaligned()) };
        at += 4;
    }
    while at < count {
        // SAFETY: likewise.
        unsafe { to.add(at).write_unaligned(from.add(at).read_unaligned()) };
        at += 1;
    }
}

/// How far ahead in a line of a square the next elements are asked for.
const AHEAD: usize = 128;

/// Asks for what is at a pointer soon, in the first cache or in the second; nothing needs to be there.
#[inline(always)]
pub(super) fn fetch<T, const FIRST: bool>(from: *const T) {
    // SAFETY: an instruction that reads nothing, and is part of every x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        match FIRST {
            true => _mm_prefetch::<_MM_HINT_T0>(from.cast()),
            false => _mm_prefetch::<_MM_HINT_T1>(from.cast()),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// The edge of a square that every processor turns.
pub(super) const SMALL_SQUARE: usize = 4;

/// The edge of the largest square of a type.
pub(super) const fn most_square<T>() -> usize {
    if size_of::<T>() == 4 { 8 } else { SMALL_SQUARE }
}

/// Copies the elements at some places, at least four, and so many after each, as columns that are `width` apart; the next line
/// of each place may be asked for.
///
/// # Safety
/// They can be read and written; with AVX the processor has AVX2.
#[inline(always)]
unsafe fn squares<T: Copy, const AVX: bool>(
    from: *const u8,
    places: &[isize],
    (to, width): (*mut T, usize),
    edge: usize,
    fetches: bool,
) {
    let line = |at: usize| from.wrapping_byte_offset(places[at]).cast::<T>();
    let mut at = 0;
    if AVX && edge == 8 && places.len() >= 8 {
        // Four that are left are no large square.
        while at + SMALL_SQUARE < places.len() {
            // The last square has some of the places before it again.
            let begin = at.min(places.len() - 8);
            if fetches {
                for next in 0..8 {
                    fetch::<_, true>(line(begin + next).wrapping_byte_add(AHEAD));
                }
            }
            // SAFETY: by the contract.
            unsafe { turn_eight(std::array::from_fn(|next| line(begin + next)), to.add(begin), width) };
            at = begin + 8;
        }
    }
    while at < places.len() {
        let begin = at.min(places.len() - SMALL_SQUARE);
        for half in (0..edge).step_by(SMALL_SQUARE) {
            let lines: [*const T; SMALL_SQUARE] = std::array::from_fn(|next| line(begin + next).wrapping_add(half));
            if fetches {
                lines.iter().for_each(|line| fetch::<_, true>(line.wrapping_byte_add(AHEAD)));
            }
            // SAFETY: by the contract.
            unsafe { turn_four::<T, AVX>(lines, to.add(half * width + begin), width) };
        }
        at = begin + SMALL_SQUARE;
    }
}

/// Copies eight lines of eight elements of four bytes into columns that are `width` apart.
///
/// # Safety
/// They can be read and written, and the processor has AVX2.
#[inline(always)]
pub(super) unsafe fn turn_eight<T: Copy>(lines: [*const T; 8], to: *mut T, width: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: by the contract.
    unsafe {
        use std::arch::x86_64::*;
        for half in [0, 4] {
            let mut pairs = [_mm256_setzero_ps(); 4];
            for (at, pair) in pairs.iter_mut().enumerate() {
                let (low, high) = (lines[at].add(half).cast(), lines[at + 4].add(half).cast());
                *pair = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high));
            }
            let [a, b, c, d] = pairs;
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            let columns = [
                _mm256_shuffle_ps::<0x44>(ab, cd),
                _mm256_shuffle_ps::<0xee>(ab, cd),
                _mm256_shuffle_ps::<0x44>(ab_high, cd_high),
                _mm256_shuffle_ps::<0xee>(ab_high, cd_high),
            ];
            for (at, column) in columns.into_iter().enumerate() {
                _mm256_storeu_ps(to.add((half + at) * width).cast(), column);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    for (at, line) in lines.iter().enumerate() {
        for step in 0..8 {
            // SAFETY: by the contract.
            unsafe { to.add(step * width + at).write_unaligned(line.add(step).read_unaligned()) };
        }
    }
}

/// Copies four lines of four elements into columns that are `width` apart.
///
/// # Safety
/// They can be read and written; with AVX the processor has AVX2.
#[inline(always)]
pub(super) unsafe fn turn_four<T: Copy, const AVX: bool>(lines: [*const T; 4], to: *mut T, width: usize) {
    // SAFETY: by the contract; vectors of 16 bytes are part of every x86-64.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        use std::arch::x86_64::*;
        match size_of::<T>() {
            4 => {
                let [a, b, c, d] = lines.map(|line| _mm_loadu_ps(line.cast()));
                let (ab, cd) = (_mm_unpacklo_ps(a, b), _mm_unpacklo_ps(c, d));
                let (ab_high, cd_high) = (_mm_unpackhi_ps(a, b), _mm_unpackhi_ps(c, d));
                let columns = [
                    _mm_movelh_ps(ab, cd),
                    _mm_movehl_ps(cd, ab),
                    _mm_movelh_ps(ab_high, cd_high),
                    _mm_movehl_ps(cd_high, ab_high),
                ];
                for (at, column) in columns.into_iter().enumerate() {
                    _mm_storeu_ps(to.add(at * width).cast(), column);
                }
                return;
            }
            8 if AVX => {
                for half in [0, 2] {
                    let mut pairs = [_mm256_setzero_pd(); 2];
                    for (at, pair) in pairs.iter_mut().enumerate() {
                        let (low, high) = (lines[at].add(half).cast(), lines[at + 2].add(half).cast());
                        *pair =
                            _mm256_insertf128_pd::<1>(_mm256_castpd128_pd256(_mm_loadu_pd(low)), _mm_loadu_pd(high));
                    }
                    let [a, b] = pairs;
                    _mm256_storeu_pd(to.add(half * width).cast(), _mm256_unpacklo_pd(a, b));
                    _mm256_storeu_pd(to.add((half + 1) * width).cast(), _mm256_unpackhi_pd(a, b));
                }
                return;
            }
            _ => {}
        }
    }
    for (at, line) in lines.iter().enumerate() {
        for step in 0..4 {
            // SAFETY: by the contract.
            unsafe { to.add(step * width + at).write_unaligned(line.add(step).read_unaligned()) };
        }
    }
}
