//! The innermost products of a tile: some rows by one, two or four vectors of lanes, whose sums stay in registers.
//!
//! There is a function for every number of rows, so that a tile has no rows that are not there; lanes that are not there are
//! left out by a mask. Where rows lie side by side and both operands go in equal steps, as they do once they are copied, there
//! are two pointers; where they only go in equal steps, one for each row; else a table says how far each term is. Vectors are those of the instruction set; integers, and other processors, have arrays of
//! which the compiler makes vectors.
//!
//! Needs: what a [`Job`] points to is there. Elements need not be aligned.

use super::copy::fetch;
use super::inner::{Kind, Number};

/// The most vectors that a tile is wide.
pub(super) const WIDEST: usize = 4;

/// How the operands of a tile go on: each term is somewhere, as a table says.
pub(super) const ANYWHERE: u8 = 0;
/// In equal steps, with rows side by side.
pub(super) const DENSE: u8 = 1;
/// In equal steps, with rows anywhere.
pub(super) const APART: u8 = 2;

/// What is multiplied and where the sums are. Distances are in bytes.
pub(super) struct Job {
    /// The rows, and how far each is from there: not used with steps, where they lie side by side.
    pub(super) rows: *const u8,
    pub(super) row_places: *const isize,
    /// The lanes, and how far each vector of them is from there.
    pub(super) lanes: *const u8,
    pub(super) lane_places: *const isize,
    /// How far rows and lanes are at each term; or how far they go at each.
    pub(super) along: *const [isize; 2],
    pub(super) steps: [isize; 2],
    /// How far on the lanes of the next tile are, which are asked for.
    pub(super) ahead: isize,
    pub(super) terms: usize,
    /// The sums: of each row, and in it of each vector.
    pub(super) out: *mut u8,
    pub(super) out_rows: *const isize,
    pub(super) out_lanes: *const isize,
    /// How many lanes the last vector has.
    pub(super) last: usize,
    /// Whether sums begin with zeros, or go on with what was stored.
    pub(super) is_first: bool,
}

/// Adds products to the sums of a tile.
///
/// # Safety
/// What the job points to is there, for the rows and vectors of the function, and the processor has its instructions.
pub(super) type Micro = unsafe fn(&Job);

/// The functions for elements of a type and an instruction set.
#[derive(Clone, Copy)]
pub(super) struct Micros {
    /// The lanes of a vector.
    pub(super) lanes: usize,
    /// The most rows of a tile that is so many vectors wide; none if no tile is.
    pub(super) most_rows: [usize; WIDEST + 1],
    pick: fn(wide: usize, rows: usize, mode: u8) -> Option<Micro>,
}

impl Micros {
    /// Those for the elements of a type and for vectors of so many bytes, which the processor has.
    pub(super) fn of<T: Number>(vectors: usize) -> Micros {
        let plain = |pick| Micros { lanes: PLAIN_BYTES / size_of::<T>(), most_rows: [0, 6, 0, 0, 0], pick };
        #[cfg(target_arch = "x86_64")]
        {
            let wide = |pick| Micros { lanes: 64 / size_of::<T>(), most_rows: [0, 12, 12, 0, 6], pick };
            let short = |pick| Micros { lanes: 32 / size_of::<T>(), most_rows: [0, 12, 6, 0, 2], pick };
            use x86::*;
            match (vectors, T::KIND) {
                (64.., Kind::F64) => wide(wide_micro::<F64x8>),
                (64.., Kind::F32) => wide(wide_micro::<F32x16>),
                (32.., Kind::F64) => short(short_micro::<F64x4>),
                (32.., Kind::F32) => short(short_micro::<F32x8>),
                (32.., Kind::Eight) => plain(plain_micro_with_avx2::<[T; PLAIN_BYTES / 8]>),
                (32.., Kind::Four) => plain(plain_micro_with_avx2::<[T; PLAIN_BYTES / 4]>),
                (_, Kind::F64 | Kind::Eight) => plain(plain_micro::<[T; PLAIN_BYTES / 8]>),
                (_, Kind::F32 | Kind::Four) => plain(plain_micro::<[T; PLAIN_BYTES / 4]>),
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = vectors;
            match size_of::<T>() {
                8 => plain(plain_micro::<[T; PLAIN_BYTES / 8]>),
                _ => plain(plain_micro::<[T; PLAIN_BYTES / 4]>),
            }
        }
    }

    /// The function for a tile of so many vectors and rows, whose operands go on in one of the ways.
    pub(super) fn pick(&self, wide: usize, rows: usize, mode: u8) -> Micro {
        (self.pick)(wide, rows, mode).unwrap_or_else(|| unreachable!("a tile of {rows} rows by {wide} vectors"))
    }
}

/// The bytes of an array that the compiler makes vectors of.
const PLAIN_BYTES: usize = 64;

/// A few elements side by side.
///
/// # Safety
/// Functions with pointers need as many elements there as they read or write; all need a processor that has the vectors.
trait Vector: Copy {
    type Element: Number;
    const LANES: usize;
    /// Which elements there are: the first ones.
    type Mask: Copy;
    unsafe fn mask(count: usize) -> Self::Mask;
    unsafe fn filled(with: Self::Element) -> Self;
    unsafe fn load(from: *const Self::Element) -> Self;
    unsafe fn store(self, to: *mut Self::Element);
    /// Some elements; the others are zeros.
    unsafe fn load_some(from: *const Self::Element, mask: Self::Mask) -> Self;
    unsafe fn store_some(self, to: *mut Self::Element, mask: Self::Mask);
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;
}

impl<T: Number, const W: usize> Vector for [T; W] {
    type Element = T;
    const LANES: usize = W;
    type Mask = usize;

    #[inline(always)]
    unsafe fn mask(count: usize) -> usize {
        count
    }

    #[inline(always)]
    unsafe fn filled(with: T) -> [T; W] {
        [with; W]
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> [T; W] {
        // SAFETY: by the contract.
        unsafe { from.cast::<[T; W]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: by the contract.
        unsafe { to.cast::<[T; W]>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn load_some(from: *const T, count: usize) -> [T; W] {
        if count == W {
            // SAFETY: by the contract.
            return unsafe { Self::load(from) };
        }
        let mut all = [T::ZERO; W];
        for (at, one) in all.iter_mut().enumerate().take(count) {
            // SAFETY: by the contract.
            *one = unsafe { from.add(at).read_unaligned() };
        }
        all
    }

    #[inline(always)]
    unsafe fn store_some(self, to: *mut T, count: usize) {
        for (at, one) in self.into_iter().enumerate().take(count) {
            // SAFETY: by the contract.
            unsafe { to.add(at).write_unaligned(one) };
        }
    }

    #[inline(always)]
    unsafe fn plus_product(mut self, a: [T; W], b: [T; W]) -> [T; W] {
        for (sum, (a, b)) in self.iter_mut().zip(a.into_iter().zip(b)) {
            *sum = sum.plus_product(a, b);
        }
        self
    }
}

/// See [`Micro`]. Vectors are in no closure: those would not be made with the instructions of the function around them.
/// Hence one long function.
#[inline(always)]
unsafe fn products<A: Vector, const R: usize, const V: usize, const MODE: u8>(job: &Job) {
    // SAFETY: all by the contract: there are R rows and V vectors, and so many terms.
    unsafe {
        let (is_whole, mask) = (job.last == A::LANES, A::mask(job.last));
        let out = |row: usize, vector: usize| {
            let place = (*job.out_rows.add(row)).wrapping_add(*job.out_lanes.add(vector));
            job.out.wrapping_byte_offset(place).cast::<A::Element>()
        };
        let mut sums = [[A::filled(A::Element::ZERO); V]; R];
        if !job.is_first {
            for (row, sums) in sums.iter_mut().enumerate() {
                for (vector, sums) in sums.iter_mut().enumerate() {
                    *sums = match vector + 1 < V || is_whole {
                        true => A::load(out(row, vector)),
                        false => A::load_some(out(row, vector), mask),
                    };
                }
            }
        }
        let mut lanes: [*const u8; V] =
            std::array::from_fn(|vector| job.lanes.wrapping_byte_offset(*job.lane_places.add(vector)));
        if MODE == DENSE {
            let (mut rows, [row_step, lane_step]) = (job.rows.cast::<A::Element>(), job.steps);
            for _ in 0..job.terms {
                let mut values = [A::filled(A::Element::ZERO); V];
                for (vector, (values, lanes)) in values.iter_mut().zip(&mut lanes).enumerate() {
                    *values = if vector + 1 < V { A::load(lanes.cast()) } else { A::load_some(lanes.cast(), mask) };
                    fetch::<_, true>(lanes.wrapping_byte_offset(job.ahead));
                    *lanes = lanes.wrapping_byte_offset(lane_step);
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let row = A::filled(rows.add(row).read_unaligned());
                    for (sum, values) in sums.iter_mut().zip(values) {
                        *sum = sum.plus_product(row, values);
                    }
                }
                rows = rows.wrapping_byte_offset(row_step);
            }
        } else if MODE == APART {
            let rows: [*const u8; R] =
                std::array::from_fn(|row| job.rows.wrapping_byte_offset(*job.row_places.add(row)));
            let (mut at, [row_step, lane_step]) = (0isize, job.steps);
            for _ in 0..job.terms {
                let mut values = [A::filled(A::Element::ZERO); V];
                for (vector, (values, lanes)) in values.iter_mut().zip(&mut lanes).enumerate() {
                    *values = if vector + 1 < V { A::load(lanes.cast()) } else { A::load_some(lanes.cast(), mask) };
                    fetch::<_, true>(lanes.wrapping_byte_offset(job.ahead));
                    *lanes = lanes.wrapping_byte_offset(lane_step);
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let row = A::filled(rows[row].wrapping_byte_offset(at).cast::<A::Element>().read_unaligned());
                    for (sum, values) in sums.iter_mut().zip(values) {
                        *sum = sum.plus_product(row, values);
                    }
                }
                at = at.wrapping_add(row_step);
            }
        } else {
            let rows: [*const u8; R] =
                std::array::from_fn(|row| job.rows.wrapping_byte_offset(*job.row_places.add(row)));
            for term in 0..job.terms {
                let [row_step, lane_step] = *job.along.add(term);
                let mut values = [A::filled(A::Element::ZERO); V];
                for (vector, values) in values.iter_mut().enumerate() {
                    let from = lanes[vector].wrapping_byte_offset(lane_step).cast();
                    *values = if vector + 1 < V { A::load(from) } else { A::load_some(from, mask) };
                    fetch::<_, true>(from.wrapping_byte_offset(job.ahead));
                }
                for (row, sums) in sums.iter_mut().enumerate() {
                    let row = rows[row].wrapping_byte_offset(row_step).cast::<A::Element>();
                    let row = A::filled(row.read_unaligned());
                    for (sum, values) in sums.iter_mut().zip(values) {
                        *sum = sum.plus_product(row, values);
                    }
                }
            }
        }
        for (row, sums) in sums.into_iter().enumerate() {
            for (vector, sums) in sums.into_iter().enumerate() {
                match vector + 1 < V || is_whole {
                    true => sums.store(out(row, vector)),
                    false => sums.store_some(out(row, vector), mask),
                }
            }
        }
    }
}

/// The functions of a table: for each width the rows.
macro_rules! picked {
    ($function:ident, $vector:ty, ($wide:expr, $rows:expr, $mode:expr): $($width:literal: [$($count:literal)*])*) => {
        match ($wide, $rows, $mode) {
            $($(
                ($width, $count, ANYWHERE) => Some($function::<$vector, $count, $width, ANYWHERE> as Micro),
                ($width, $count, DENSE) => Some($function::<$vector, $count, $width, DENSE> as Micro),
                ($width, $count, APART) => Some($function::<$vector, $count, $width, APART> as Micro),
            )*)*
            _ => None,
        }
    };
}

fn plain_micro<A: Vector>(wide: usize, rows: usize, mode: u8) -> Option<Micro> {
    picked!(products, A, (wide, rows, mode): 1: [1 2 3 4 5 6])
}

/// Vectors of x86-64.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{ANYWHERE, APART, DENSE, Job, Micro, Vector, products};

    /// See [`Micro`].
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    unsafe fn with_avx512<A: Vector, const R: usize, const V: usize, const MODE: u8>(job: &Job) {
        // SAFETY: by the contract.
        unsafe { products::<A, R, V, MODE>(job) }
    }

    /// See [`Micro`].
    #[target_feature(enable = "avx2,fma")]
    unsafe fn with_avx2<A: Vector, const R: usize, const V: usize, const MODE: u8>(job: &Job) {
        // SAFETY: by the contract.
        unsafe { products::<A, R, V, MODE>(job) }
    }

    pub(super) fn wide_micro<A: Vector>(wide: usize, rows: usize, mode: u8) -> Option<Micro> {
        picked!(with_avx512, A, (wide, rows, mode):
            1: [1 2 3 4 5 6 7 8 9 10 11 12] 2: [1 2 3 4 5 6 7 8 9 10 11 12] 4: [1 2 3 4 5 6])
    }

    pub(super) fn short_micro<A: Vector>(wide: usize, rows: usize, mode: u8) -> Option<Micro> {
        picked!(with_avx2, A, (wide, rows, mode):
            1: [1 2 3 4 5 6 7 8 9 10 11 12] 2: [1 2 3 4 5 6] 4: [1 2])
    }

    pub(super) fn plain_micro_with_avx2<A: Vector>(wide: usize, rows: usize, mode: u8) -> Option<Micro> {
        picked!(with_avx2, A, (wide, rows, mode): 1: [1 2 3 4 5 6])
    }

    /// The vectors of a type and length, with the instructions that they have.
    macro_rules! vectors {
        ($($name:ident, $vector:ty, $element:ty, $lanes:literal, $mask:ty, ($count:ident) $made:expr,
            $fill:ident, $load:ident, $store:ident, $load_some:ident, $store_some:ident, $fused:ident;)*) => {
            $(#[derive(Clone, Copy)]
            pub(super) struct $name($vector);

            impl Vector for $name {
                type Element = $element;
                const LANES: usize = $lanes;
                type Mask = $mask;

                #[inline(always)]
                unsafe fn mask($count: usize) -> $mask {
                    // SAFETY: by the contract.
                    #[allow(unused_unsafe, reason = "some masks are numbers")]
                    unsafe {
                        $made
                    }
                }

                #[inline(always)]
                unsafe fn filled(with: $element) -> $name {
                    // SAFETY: by the contract.
                    $name(unsafe { $fill(with) })
                }

                #[inline(always)]
                unsafe fn load(from: *const $element) -> $name {
                    // SAFETY: by the contract.
                    $name(unsafe { $load(from) })
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $element) {
                    // SAFETY: by the contract.
                    unsafe { $store(to, self.0) }
                }

                #[inline(always)]
                unsafe fn load_some(from: *const $element, mask: $mask) -> $name {
                    // SAFETY: by the contract.
                    $name(unsafe { $load_some(mask, from) })
                }

                #[inline(always)]
                unsafe fn store_some(self, to: *mut $element, mask: $mask) {
                    // SAFETY: by the contract.
                    unsafe { $store_some(to, mask, self.0) }
                }

                #[inline(always)]
                unsafe fn plus_product(self, a: $name, b: $name) -> $name {
                    // SAFETY: by the contract.
                    $name(unsafe { $fused(a.0, b.0, self.0) })
                }
            })*
        };
    }

    /// Ones, then zeros: from the right place on, the mask of some lanes.
    static MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

    /// A mask of the first lanes, of so many bytes.
    #[inline(always)]
    unsafe fn first_bytes(count: usize) -> __m256i {
        // SAFETY: a vector has 32 bytes at most, and the processor has it.
        unsafe { _mm256_loadu_si256(MASKS.as_ptr().cast::<u8>().add(32 - count.min(32)).cast()) }
    }

    #[inline(always)]
    unsafe fn some_f64((mask, _): (__m256i, usize), from: *const f64) -> __m256d {
        // SAFETY: by the contract of a vector.
        unsafe { _mm256_maskload_pd(from, mask) }
    }

    #[inline(always)]
    unsafe fn some_f32((mask, _): (__m256i, usize), from: *const f32) -> __m256 {
        // SAFETY: by the contract of a vector.
        unsafe { _mm256_maskload_ps(from, mask) }
    }

    /// Stores some elements one by one: with a mask that takes long on many processors.
    #[inline(always)]
    unsafe fn store_f64(to: *mut f64, (_, count): (__m256i, usize), vector: __m256d) {
        // SAFETY: a vector is four elements; by its contract.
        unsafe { std::mem::transmute::<__m256d, [f64; 4]>(vector).store_some(to, count) }
    }

    /// See [`store_f64`].
    #[inline(always)]
    unsafe fn store_f32(to: *mut f32, (_, count): (__m256i, usize), vector: __m256) {
        // SAFETY: a vector is eight elements; by its contract.
        unsafe { std::mem::transmute::<__m256, [f32; 8]>(vector).store_some(to, count) }
    }

    vectors! {
        F64x8, __m512d, f64, 8, __mmask8, (count) ((1u32 << count) - 1) as __mmask8, _mm512_set1_pd, _mm512_loadu_pd,
            _mm512_storeu_pd, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd, _mm512_fmadd_pd;
        F32x16, __m512, f32, 16, __mmask16, (count) ((1u32 << count) - 1) as __mmask16, _mm512_set1_ps, _mm512_loadu_ps,
            _mm512_storeu_ps, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, _mm512_fmadd_ps;
        F64x4, __m256d, f64, 4, (__m256i, usize), (count) (first_bytes(8 * count), count), _mm256_set1_pd, _mm256_loadu_pd,
            _mm256_storeu_pd, some_f64, store_f64, _mm256_fmadd_pd;
        F32x8, __m256, f32, 8, (__m256i, usize), (count) (first_bytes(4 * count), count), _mm256_set1_ps, _mm256_loadu_ps,
            _mm256_storeu_ps, some_f32, store_f32, _mm256_fmadd_ps;
    }
}
