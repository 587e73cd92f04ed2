//! Contractions without a compiler: one product of strided arrays and its sum, in loops of Rust.
//!
//! Compiling a kernel takes as long as a few hundred million multiplications, and most contractions are smaller. A
//! [`Nest`] makes the same operations on each element, in the same order, as the loops that a compiled kernel has:
//! factors are multiplied from left to right, each sum adds to a zero of its own in the order of its index, and an
//! inner sum is finished before it is added to the outer one. A sum may have several loops, which are those of one
//! index in parts. The innermost sum may be made in eight lanes ([`Nest::in_lanes`]), or all sums may be one whose products
//! are fused with their additions ([`Nest::fused`]). So the results have the same bits, and who computes may change from
//! call to call. What is free is the order of the elements of the result; a few neighbours are computed at a time, so that
//! their sums, which each are a chain of additions that wait for each other, overlap.
//!
//! Needs: loops with sizes, and for each dimension of a factor the loop that walks along it. Guarantees: shapes and
//! element types are checked, and every element of the result is stored.

mod block;
mod copy;
mod inner;
mod micro;
mod permute;
mod plan;
mod tile;
mod turn;

use certen_core::ElemType;
use smallvec::SmallVec;

use self::inner::{
    ALL, ANY, FIRST, LANES, Loop, Number, SECOND, along, around, fused, lanes, moved, nested, products, stepped, sum,
};
use self::plan::Tiles;
use crate::array::ArrayError;
use crate::cpu::Cpu;
use crate::environment::in_standard_environment;
use crate::error::RuntimeError;
use crate::view::{View, ViewMut};

/// One product and its sum, for arrays of fixed shapes.
///
/// ```
/// use certen_runtime::{Array, Nest, View, ViewMut};
/// // The product of a 2 x 3 and a 3 x 1 matrix: loops i and j are kept, k, the third, is summed.
/// let nest = Nest::new(&[2, 1], &[vec![3]], &[vec![Some(0), Some(2)], vec![Some(2), Some(1)]]).unwrap();
/// let a = Array::from_vec(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?;
/// let b = Array::from_vec(&[3, 1], vec![1.0, 10.0, 100.0])?;
/// let mut c = Array::from_vec(&[2, 1], vec![0.0; 2])?;
/// nest.run(&[View::from(&a), View::from(&b)], &mut ViewMut::from(&mut c))?;
/// assert_eq!(c.as_slice::<f64>(), Some(&[321.0, 654.0][..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Nest {
    /// The sizes of all loops: first those that are kept, in the order of the result's dimensions, then the sums, the
    /// outermost first.
    sizes: Vec<usize>,
    kept: usize,
    /// How many loops each sum has.
    sums: Vec<usize>,
    /// Whether the last sum is made in lanes.
    lanes: bool,
    /// Whether additions are fused with their products, and the bytes of the longest vectors that do it.
    fused: bool,
    vectors: usize,
    /// For each factor, the loop that walks along each dimension; none if that has size 1 and nothing does.
    factors: Vec<Vec<Option<usize>>>,
}

/// The largest number of factors.
const MOST_FACTORS: usize = 64;

/// From so many steps of the sums on, they are long enough that their factors are better kept in the cache than the
/// result.
const LONG_SUM: usize = 64;

impl Nest {
    /// A product of at least one factor, with the sizes of the loops that are kept and of those of each sum. The
    /// dimensions of a factor name loops by their number, the kept ones first. None if there are too many factors,
    /// none, a sum without loops, or a loop does not exist.
    pub fn new(kept: &[usize], summed: &[Vec<usize>], factors: &[Vec<Option<usize>>]) -> Option<Nest> {
        let sizes: Vec<usize> = kept.iter().chain(summed.iter().flatten()).copied().collect();
        let known = factors.iter().flatten().flatten().all(|walk| *walk < sizes.len());
        let fits = known && (1..=MOST_FACTORS).contains(&factors.len()) && !summed.contains(&Vec::new());
        let sums = summed.iter().map(Vec::len).collect();
        fits.then(|| Nest {
            sizes,
            kept: kept.len(),
            sums,
            lanes: false,
            fused: false,
            vectors: 0,
            factors: factors.to_vec(),
        })
    }

    /// The same with the last sum made in eight lanes, which do not wait for each other: of n elements, lane l sums
    /// those at 8 q + l for q from 0 to n / 8, then the lanes are summed, and at last the sum of the n mod 8 elements
    /// that are left is added. This order depends on the size alone, not on strides.
    pub fn in_lanes(self) -> Nest {
        Nest { lanes: true, ..self }
    }

    /// The same with all sums as one.
    pub fn in_one_sum(self) -> Nest {
        let loops = self.sums.iter().sum();
        Nest { sums: if loops == 0 { Vec::new() } else { vec![loops] }, ..self }
    }

    /// The same with all sums as one, and the last factor of a product multiplied and added with one rounding, by
    /// instructions of this set. Floats need one for that ([`Cpu::has_fma`]), else it takes long.
    pub fn fused(self, cpu: Cpu) -> Nest {
        let vectors = if cpu.is_here() { cpu.vector_bytes() } else { 0 };
        Nest { fused: true, vectors, lanes: false, ..self.in_one_sum() }
    }

    /// Whether it keeps tiles of its result in registers: as fast as loops are.
    pub fn is_tiled(&self) -> bool {
        let [first, second] = self.factors.as_slice() else { return false };
        let count = |own: &dyn Fn(&usize) -> bool| {
            let sizes = self.sizes.iter().enumerate().filter(|(at, _)| own(at)).map(|(_, size)| *size);
            sizes.fold(1, usize::saturating_mul)
        };
        let (has, other) = (|at: &usize| first.contains(&Some(*at)), |at: &usize| second.contains(&Some(*at)));
        let kept = |at: &usize| *at < self.kept;
        let rows = count(&|at| kept(at) && has(at) && !other(at));
        let lanes = count(&|at| kept(at) && other(at) && !has(at));
        self.fused && rows > 1 && lanes > 1 && Tiles::<f64>::gain(rows, lanes, count(&|at| !kept(at)))
    }

    /// Computes the result.
    ///
    /// # Errors
    /// If the arrays are not as many, or not of the shapes, that the loops say; if their elements are of different
    /// types or cannot be multiplied and added; if an element occurs twice in the result. Then nothing was written.
    pub fn run(&self, factors: &[View<'_>], out: &mut ViewMut<'_>) -> Result<(), RuntimeError> {
        self.check(factors, out)?;
        match out.elem() {
            ElemType::F64 => in_standard_environment(|| self.typed::<f64>(factors, out)),
            ElemType::F32 => in_standard_environment(|| self.typed::<f32>(factors, out)),
            ElemType::I64 => self.typed::<i64>(factors, out),
            ElemType::I32 => self.typed::<i32>(factors, out),
            elem @ (ElemType::U8 | ElemType::Bool) => {
                return Err(RuntimeError::WrongCall(format!("elements of type {elem} have no sum and product")));
            }
        }
        Ok(())
    }

    fn check(&self, factors: &[View<'_>], out: &ViewMut<'_>) -> Result<(), RuntimeError> {
        if factors.len() != self.factors.len() {
            let (found, wanted) = (factors.len(), self.factors.len());
            return Err(RuntimeError::WrongCall(format!("a product of {wanted} factors is called with {found}")));
        }
        let refused = |which: String, error| Err(RuntimeError::Array { which, error });
        for (at, (view, walks)) in factors.iter().zip(&self.factors).enumerate() {
            let size = |walk: &Option<usize>| walk.map_or(1, |walk| self.sizes[walk]);
            if view.shape().len() != walks.len() || !view.shape().iter().zip(walks).all(|(n, walk)| *n == size(walk)) {
                let (expected, found) = (walks.iter().map(size).collect(), view.shape().to_vec());
                return refused(format!("input {}", at + 1), ArrayError::Shape { expected, found });
            }
            if view.elem() != out.elem() {
                let error = ArrayError::Element { expected: out.elem(), found: view.elem() };
                return refused(format!("input {}", at + 1), error);
            }
        }
        if out.shape() != &self.sizes[..self.kept] {
            let error = ArrayError::Shape { expected: self.sizes[..self.kept].to_vec(), found: out.shape().to_vec() };
            return refused("output 1".into(), error);
        }
        if out.has_repetitions() {
            return Err(RuntimeError::WrongCall("output 1: an element occurs twice".into()));
        }
        Ok(())
    }

    fn typed<T: Number>(&self, factors: &[View<'_>], out: &mut ViewMut<'_>) {
        if out.shape().contains(&0) {
            return;
        }
        // A factor of one, before the others, changes no bit, so that few numbers of factors need code of their own.
        match factors.len() {
            1 => Call::<T, 1>::new(self, factors, out).run(),
            2 => Call::<T, 2>::new(self, factors, out).run(),
            3 | 4 => Call::<T, 4>::new(self, factors, out).run(),
            5..=8 => Call::<T, 8>::new(self, factors, out).run(),
            _ => Call::<T, MOST_FACTORS>::new(self, factors, out).run(),
        }
    }
}

/// The loops of one call, with K factors, for a result that has elements.
struct Call<T, const K: usize> {
    factors: [*const u8; K],
    out: *mut T,
    kept: SmallVec<[Loop<K>; 4]>,
    summed: SmallVec<[Loop<K>; 4]>,
    /// How many of the innermost loops are a sum in lanes.
    lanes: usize,
    /// Whether all loops are one sum of fused operations.
    fused: bool,
    vectors: usize,
    /// Among the kept ones, the loop whose neighbours are computed together; of one step if there are lanes.
    row: Loop<K>,
}

impl<T: Number, const K: usize> Call<T, K> {
    /// The loops of a nest for arrays that were checked.
    fn new(nest: &Nest, factors: &[View<'_>], out: &mut ViewMut<'_>) -> Call<T, K> {
        let bytes = size_of::<T>() as isize;
        let mut pointers = [std::ptr::from_ref(T::ONE).cast::<u8>(); K];
        let ones = K - factors.len();
        let mut loops: SmallVec<[Loop<K>; 8]> =
            nest.sizes.iter().map(|&size| Loop { size, factors: [0; K], out: 0, joins: false }).collect();
        for (at, (view, walks)) in factors.iter().zip(&nest.factors).enumerate() {
            let at = ones + at;
            pointers[at] = view.data();
            for (walk, stride) in walks.iter().zip(view.strides()) {
                if let Some(walk) = *walk {
                    let step = &mut loops[walk].factors[at];
                    // Only a dimension that is never stepped along has a stride that is too large.
                    *step = step.wrapping_add((*stride as isize).wrapping_mul(bytes));
                }
            }
        }
        for (one, stride) in loops.iter_mut().zip(out.strides()) {
            one.out = (*stride as isize).wrapping_mul(bytes);
        }
        let (outer, mut sums) = loops.split_at(nest.kept);
        let kept = joined(outer.iter());
        let mut summed: SmallVec<[Loop<K>; 4]> = SmallVec::new();
        let mut lanes = 0;
        for count in &nest.sums {
            let (own, others) = sums.split_at(*count);
            // Fewer elements than lanes are the rest that is summed one by one.
            let many = own.iter().fold(1usize, |size, one| size.saturating_mul(one.size)) >= LANES;
            lanes = if many && nest.lanes { joined(own.iter()).len() } else { 0 };
            for (at, one) in joined(own.iter()).into_iter().enumerate() {
                summed.push(Loop { joins: at > 0, ..one });
            }
            sums = others;
        }
        // A sum of one element adds it to zero; other sums around or inside do that too.
        if summed.is_empty() {
            summed.extend(loops[nest.kept..].first().copied());
        }
        let mut call = Call {
            factors: pointers,
            out: out.data().cast(),
            kept,
            summed,
            lanes,
            fused: nest.fused && !nest.sums.is_empty(),
            vectors: nest.vectors,
            row: Loop { size: 1, factors: [0; K], out: 0, joins: false },
        };
        let best = (0..call.kept.len()).min_by_key(|at| call.price(&call.kept[*at]));
        if let Some(best) = best.filter(|_| lanes == 0) {
            call.row = call.kept.remove(best);
        }
        call
    }

    /// How dear a loop is as a row: short rows first, then those that jump.
    fn price(&self, row: &Loop<K>) -> (bool, usize) {
        let jumps = |stride: isize| stride != size_of::<T>() as isize;
        let factors = row.factors.iter().filter(|stride| **stride != 0 && jumps(**stride)).count();
        let none = row.factors.iter().all(|stride| jumps(*stride));
        (row.size < 4, 4 * factors + 2 * usize::from(none) + usize::from(jumps(row.out)))
    }

    fn run(&self) {
        if !self.fused {
            return self.walked::<false>();
        }
        if Tiles::run(self) {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        if self.vectors >= 32 {
            // SAFETY: the processor has what the function uses: `Nest::fused` has looked.
            return unsafe { self.walked_with_avx2() };
        }
        self.walked::<true>();
    }

    /// The loops of fused operations, with instructions for them.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn walked_with_avx2(&self) {
        self.walked::<true>();
    }

    #[inline(always)]
    fn walked<const FUSED: bool>(&self) {
        let unit = size_of::<T>() as isize;
        let walk = if self.lanes == 0 { Some(&self.row) } else { self.summed.last().filter(|_| self.lanes == 1) };
        let mut steps = [1; 2];
        if let Some(walk) = walk {
            steps[..K.min(2)].copy_from_slice(&walk.factors[..K.min(2)]);
        }
        let in_lanes = self.lanes > 0;
        match K {
            1 | 2 if in_lanes && steps[..K].iter().all(|step| *step == unit) => self.in_lanes::<ALL>(),
            _ if in_lanes => self.in_lanes::<ANY>(),
            1 if steps[0] == unit => self.rows::<ALL, FUSED>(),
            2 if steps == [unit, unit] => self.rows::<ALL, FUSED>(),
            2 if steps == [0, unit] => self.rows::<SECOND, FUSED>(),
            2 if steps == [unit, 0] => self.rows::<FIRST, FUSED>(),
            _ => self.rows::<ANY, FUSED>(),
        }
    }

    /// Every element, its innermost sum in lanes.
    fn in_lanes<const MODE: u8>(&self) {
        let (outer, group) = self.summed.split_at(self.summed.len() - self.lanes);
        let mut walk = Walk::new(self);
        while walk.has_more {
            // SAFETY: as in `store`: the loops stay inside the arrays' shapes.
            unsafe {
                let value = match outer {
                    [] => lanes::<T, K, MODE>(walk.factors, group),
                    _ => around(T::ZERO, walk.factors, outer, &|factors| lanes::<T, K, MODE>(factors, group)),
                };
                walk.out.write_unaligned(value);
            }
            walk.go(&self.kept);
        }
    }

    /// Every row, in pieces of 8, 4 and 1, and of 32 if operations are fused.
    #[inline(always)]
    fn rows<const MODE: u8, const FUSED: bool>(&self) {
        let steps = self.summed.iter().fold(1usize, |steps, sum| steps.saturating_mul(sum.size));
        let most = match FUSED {
            _ if steps < LONG_SUM => self.row.size,
            true => 32,
            false => 8,
        };
        let mut from = 0;
        while from < self.row.size {
            let width = (self.row.size - from).min(most);
            let mut walk = Walk::new(self);
            while walk.has_more {
                self.piece::<MODE, FUSED>(walk.factors, walk.out, from, width);
                walk.go(&self.kept);
            }
            from += width;
        }
    }

    /// A part of a row.
    #[inline(always)]
    fn piece<const MODE: u8, const FUSED: bool>(
        &self,
        factors: [*const u8; K],
        out: *mut T,
        mut from: usize,
        width: usize,
    ) {
        let end = from + width;
        while FUSED && from + 32 <= end {
            self.store::<MODE, FUSED, 32>(factors, out, from);
            from += 32;
        }
        while from + 8 <= end {
            self.store::<MODE, FUSED, 8>(factors, out, from);
            from += 8;
        }
        while from + 4 <= end {
            self.store::<MODE, FUSED, 4>(factors, out, from);
            from += 4;
        }
        while from < end {
            self.store::<MODE, FUSED, 1>(factors, out, from);
            from += 1;
        }
    }

    /// Computes and stores neighbours in a row.
    #[inline(always)]
    fn store<const MODE: u8, const FUSED: bool, const W: usize>(
        &self,
        factors: [*const u8; K],
        out: *mut T,
        from: usize,
    ) {
        let row = along::<T, K, MODE>(self.row.factors);
        let factors = moved(factors, &row, from as isize);
        // SAFETY: the pointers are those of the arrays' elements at the indices of the loops so far, and `from + W` is
        // at most the size of the row; `check` has found that the loops stay inside the arrays' shapes.
        unsafe {
            let values: [T; W] = match self.summed.as_slice() {
                [] => products(factors, &row),
                all if FUSED => fused(factors, all, &row),
                [inner] => sum([T::ZERO; W], factors, inner, &row),
                [outer, inner @ ..] => nested([T::ZERO; W], factors, outer, inner, &row),
            };
            for (at, value) in values.into_iter().enumerate() {
                out.wrapping_byte_offset(self.row.out.wrapping_mul((from + at) as isize)).write_unaligned(value);
            }
        }
    }
}

/// The way along the loops that are kept. What is done at each step is no closure: those would not be made with the
/// instructions of the function around them.
struct Walk<T, const K: usize> {
    factors: [*const u8; K],
    out: *mut T,
    at: SmallVec<[usize; 4]>,
    has_more: bool,
}

impl<T, const K: usize> Walk<T, K> {
    #[inline(always)]
    fn new(call: &Call<T, K>) -> Walk<T, K> {
        let at = SmallVec::from_elem(0, call.kept.len());
        Walk { factors: call.factors, out: call.out, at, has_more: true }
    }

    #[inline(always)]
    fn go(&mut self, kept: &[Loop<K>]) {
        self.has_more = stepped(kept, &mut self.at, &mut self.factors, &mut self.out);
    }
}

/// Loops without those of one step, and two that together go in equal steps as one.
fn joined<'a, const K: usize>(loops: impl Iterator<Item = &'a Loop<K>>) -> SmallVec<[Loop<K>; 4]> {
    let mut joined: SmallVec<[Loop<K>; 4]> = SmallVec::new();
    for one in loops.filter(|one| one.size != 1) {
        match joined.last_mut() {
            Some(outer) if follows(outer, one) => *outer = Loop { size: outer.size * one.size, ..*one },
            _ => joined.push(*one),
        }
    }
    joined
}

/// Whether an outer loop goes on where an inner one ends.
fn follows<const K: usize>(outer: &Loop<K>, inner: &Loop<K>) -> bool {
    let size = inner.size as isize;
    let goes_on = |outer: isize, inner: isize| inner.checked_mul(size) == Some(outer);
    goes_on(outer.out, inner.out) && outer.factors.iter().zip(&inner.factors).all(|(a, b)| goes_on(*a, *b))
}

#[cfg(test)]
mod tests;
