//! The innermost loops of a contraction: products of a few neighbours, and their sums.
//!
//! Everything here is about pointers: K factors, each at an element, and how far they go at a step, in bytes. The
//! number of factors, of neighbours, and where it matters the steps are known when the code is made, so that sums stay
//! in registers and neighbours become vectors. The order of operations is the one that the module above promises.
//!
//! Needs: pointers and loops that stay inside their arrays. Elements need not be aligned.

use smallvec::SmallVec;

/// The elements that have vectors of their own, and others by their bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    F64,
    F32,
    Eight,
    Four,
}

/// The arithmetic of elements.
pub(super) trait Number: Copy + 'static {
    const ZERO: Self;
    const ONE: &'static Self;
    const KIND: Kind;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// The sum with a product, rounded once.
    fn plus_product(self, a: Self, b: Self) -> Self;
}

macro_rules! numbers {
    ($($number:ty, $kind:ident, $zero:expr, $one:expr, $plus:expr, $times:expr, $fused:expr;)*) => {
        $(impl Number for $number {
            const ZERO: $number = $zero;
            const ONE: &'static $number = &$one;
            const KIND: Kind = Kind::$kind;

            #[inline(always)]
            fn plus(self, other: $number) -> $number {
                $plus(self, other)
            }

            #[inline(always)]
            fn times(self, other: $number) -> $number {
                $times(self, other)
            }

            #[inline(always)]
            fn plus_product(self, a: $number, b: $number) -> $number {
                $fused(self, a, b)
            }
        })*
    };
}

numbers! {
    f64, F64, 0.0, 1.0, |a: f64, b| a + b, |a: f64, b| a * b, |c, a: f64, b| a.mul_add(b, c);
    f32, F32, 0.0, 1.0, |a: f32, b| a + b, |a: f32, b| a * b, |c, a: f32, b| a.mul_add(b, c);
    i64, Eight, 0, 1, i64::wrapping_add, i64::wrapping_mul, |c: i64, a: i64, b| c.wrapping_add(a.wrapping_mul(b));
    i32, Four, 0, 1, i32::wrapping_add, i32::wrapping_mul, |c: i32, a: i32, b| c.wrapping_add(a.wrapping_mul(b));
}

/// How many lanes a sum has.
pub(super) const LANES: usize = 8;

/// A loop of a call: how far each pointer goes at a step, in bytes.
#[derive(Clone, Copy)]
pub(super) struct Loop<const K: usize> {
    pub(super) size: usize,
    pub(super) factors: [isize; K],
    pub(super) out: isize,
    /// Whether it goes on with the sum of the loop around it.
    pub(super) joins: bool,
}

/// Modes: how the factors go along a row or a sum, where that is known when the code is made. Here it is not.
pub(super) const ANY: u8 = 0;
/// The first stands still, the second goes to the next element.
pub(super) const SECOND: u8 = 1;
/// The first goes to the next element, the second stands still.
pub(super) const FIRST: u8 = 2;
/// All go to the next element.
pub(super) const ALL: u8 = 3;

/// How the factors go along a row or sum, as constants where the mode tells.
#[inline(always)]
pub(super) fn along<T, const K: usize, const MODE: u8>(mut steps: [isize; K]) -> [isize; K] {
    let unit = size_of::<T>() as isize;
    match (MODE, steps.as_mut_slice()) {
        (ALL, steps) => steps.fill(unit),
        (SECOND, [first, second, ..]) => (*first, *second) = (0, unit),
        (FIRST, [first, second, ..]) => (*first, *second) = (unit, 0),
        _ => {}
    }
    steps
}

/// Pointers some steps on. On the way to an element they may lie outside their array.
#[inline(always)]
pub(super) fn moved<const K: usize>(mut factors: [*const u8; K], by: &[isize; K], steps: isize) -> [*const u8; K] {
    for (pointer, stride) in factors.iter_mut().zip(by) {
        *pointer = pointer.wrapping_byte_offset(stride.wrapping_mul(steps));
    }
    factors
}

/// The product of all factors but the last, and the last, at a step along a row.
///
/// # Safety
/// There is an element at each pointer so many steps along the row; it need not be aligned.
#[inline(always)]
unsafe fn parts<T: Number, const K: usize>(factors: [*const u8; K], row: &[isize; K], at: usize) -> (Option<T>, T) {
    let (mut product, mut last) = (None, *T::ONE);
    for (place, (pointer, stride)) in factors.iter().zip(row).enumerate() {
        // SAFETY: by the contract.
        let factor =
            unsafe { pointer.wrapping_byte_offset(stride.wrapping_mul(at as isize)).cast::<T>().read_unaligned() };
        match place {
            0 => {}
            1 => product = Some(last),
            _ => product = product.map(|product: T| product.times(last)),
        }
        last = factor;
    }
    (product, last)
}

/// The products of neighbours in a row.
///
/// # Safety
/// There is an element at each pointer and W - 1 steps along the row from it; it need not be aligned.
#[inline(always)]
pub(super) unsafe fn products<T: Number, const K: usize, const W: usize>(
    factors: [*const u8; K],
    row: &[isize; K],
) -> [T; W] {
    std::array::from_fn(|at| {
        // SAFETY: by the contract.
        let (product, last) = unsafe { parts::<T, K>(factors, row, at) };
        product.map_or(last, |product| product.times(last))
    })
}

/// Sums of neighbours in a row, over all loops as one, on top of others; each addition is fused with its product.
///
/// # Safety
/// As [`products`], for each step of the loops.
#[inline(always)]
pub(super) unsafe fn fused<T: Number, const K: usize, const W: usize>(
    mut factors: [*const u8; K],
    loops: &[Loop<K>],
    row: &[isize; K],
) -> [T; W] {
    let mut sums = [T::ZERO; W];
    let Some((inner, outer)) = loops.split_last() else { return sums };
    if outer.iter().any(|one| one.size == 0) {
        return sums;
    }
    let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer.len());
    loop {
        let mut here = factors;
        for _ in 0..inner.size {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: by the contract.
                let (product, last) = unsafe { parts::<T, K>(here, row, lane) };
                *sum = match product {
                    Some(product) => sum.plus_product(product, last),
                    None => sum.plus(last),
                };
            }
            here = moved(here, &inner.factors, 1);
        }
        if !stepped(outer, &mut at, &mut factors, &mut std::ptr::null_mut::<T>()) {
            return sums;
        }
    }
}

/// Goes to the next step of loops, the innermost first; whether there is one. Else they are at their beginning again.
#[inline(always)]
pub(super) fn stepped<T, const K: usize>(
    loops: &[Loop<K>],
    at: &mut [usize],
    factors: &mut [*const u8; K],
    out: &mut *mut T,
) -> bool {
    for (one, at) in loops.iter().zip(at).rev() {
        *at += 1;
        let more = *at < one.size;
        let steps = if more { 1 } else { 1 - one.size as isize };
        *factors = moved(*factors, &one.factors, steps);
        *out = out.wrapping_byte_offset(one.out.wrapping_mul(steps));
        if more {
            return true;
        }
        *at = 0;
    }
    false
}

/// The sums of neighbours in a row, over one loop, on top of others.
///
/// # Safety
/// As [`products`], for each step of the loop.
#[inline(always)]
pub(super) unsafe fn sum<T: Number, const K: usize, const W: usize>(
    mut sums: [T; W],
    mut factors: [*const u8; K],
    over: &Loop<K>,
    row: &[isize; K],
) -> [T; W] {
    for _ in 0..over.size {
        // SAFETY: by the contract.
        let products: [T; W] = unsafe { products(factors, row) };
        sums = added(sums, products);
        factors = moved(factors, &over.factors, 1);
    }
    sums
}

/// The sums of neighbours in a row, over several loops, on top of others.
///
/// # Safety
/// As [`products`], for each step of the loops.
pub(super) unsafe fn nested<T: Number, const K: usize, const W: usize>(
    mut sums: [T; W],
    mut factors: [*const u8; K],
    outer: &Loop<K>,
    inner: &[Loop<K>],
    row: &[isize; K],
) -> [T; W] {
    for _ in 0..outer.size {
        // SAFETY: by the contract.
        let inside = |first: [T; W]| unsafe {
            match inner {
                [] => added(first, products(factors, row)),
                [last] => sum(first, factors, last, row),
                [next, rest @ ..] => nested(first, factors, next, rest, row),
            }
        };
        sums = match inner {
            [next, ..] if !next.joins => added(sums, inside([T::ZERO; W])),
            _ => inside(sums),
        };
        factors = moved(factors, &outer.factors, 1);
    }
    sums
}

/// A sum in lanes over the loops of one index.
///
/// # Safety
/// As [`products`], for each step of the loops.
pub(super) unsafe fn lanes<T: Number, const K: usize, const MODE: u8>(
    mut factors: [*const u8; K],
    group: &[Loop<K>],
) -> T {
    let count = group.iter().map(|one| one.size).product::<usize>();
    let whole = count - count % LANES;
    let (mut lanes, mut rest) = ([T::ZERO; LANES], T::ZERO);
    if let [one] = group {
        let steps = along::<T, K, MODE>(one.factors);
        for _ in 0..whole / LANES {
            // SAFETY: by the contract; so many elements follow.
            lanes = added(lanes, unsafe { products(factors, &steps) });
            factors = moved(factors, &steps, LANES as isize);
        }
        for _ in whole..count {
            // SAFETY: by the contract.
            let [product] = unsafe { products(factors, &steps) };
            rest = rest.plus(product);
            factors = moved(factors, &steps, 1);
        }
    } else {
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, group.len());
        for position in 0..count {
            // SAFETY: by the contract.
            let [product] = unsafe { products(factors, &[0; K]) };
            let sum = if position < whole { &mut lanes[position % LANES] } else { &mut rest };
            *sum = sum.plus(product);
            stepped(group, &mut at, &mut factors, &mut std::ptr::null_mut::<T>());
        }
    }
    lanes.into_iter().fold(T::ZERO, T::plus).plus(rest)
}

/// The sum over loops, on top of another, of what is inside them.
///
/// # Safety
/// `inside` can be called with the pointers of each step.
pub(super) unsafe fn around<T: Number, const K: usize>(
    mut sum: T,
    mut factors: [*const u8; K],
    loops: &[Loop<K>],
    inside: &impl Fn([*const u8; K]) -> T,
) -> T {
    let [outer, inner @ ..] = loops else { return sum.plus(inside(factors)) };
    for _ in 0..outer.size {
        // SAFETY: by the contract.
        sum = unsafe {
            match inner {
                [next, ..] if !next.joins => sum.plus(around(T::ZERO, factors, inner, inside)),
                _ => around(sum, factors, inner, inside),
            }
        };
        factors = moved(factors, &outer.factors, 1);
    }
    sum
}

#[inline(always)]
fn added<T: Number, const W: usize>(mut sums: [T; W], parts: [T; W]) -> [T; W] {
    for (sum, part) in sums.iter_mut().zip(parts) {
        *sum = sum.plus(part);
    }
    sums
}
