//! Borrowed arrays with strides: what a kernel can be called with without a copy.
//!
//! A [`View`] is where the elements of a tensor lie in the caller's memory: the address of the first one, and for each
//! dimension how far its neighbours are apart, in elements, which may be negative or zero. So a transposed or reversed
//! array, or every second row, is one. For memory that Rust can borrow, [`View::new`] checks that all elements lie
//! inside; for arrays of another language, [`View::from_raw`] takes their owner's word. What is read is only reached
//! through pointers, never through references to the caller's memory: another thread of that language may be writing to
//! it. Kernels work on dense arrays, so other views are copied for a call.

use std::marker::PhantomData;
use std::ops::Range;

use certen_core::ElemType;
use smallvec::SmallVec;

use crate::array::{Array, ArrayError};

/// The address of what has no elements: not null, and aligned for all of them.
const NOWHERE: *mut u8 = std::ptr::without_provenance_mut(ELEMENT_ALIGNMENT);

/// The largest alignment of an element.
const ELEMENT_ALIGNMENT: usize = 8;

/// Where the elements of a tensor lie, from the first one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) elem: ElemType,
    pub(crate) shape: SmallVec<[usize; 4]>,
    /// How far neighbours are apart, in elements.
    strides: SmallVec<[i64; 4]>,
}

/// A tensor to be read.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub(crate) layout: Layout,
    /// The first element; every element that the layout describes can be read for `'a`.
    data: *const u8,
    borrowed: PhantomData<&'a [u8]>,
}

/// A tensor to be written.
#[derive(Debug)]
pub struct ViewMut<'a> {
    pub(crate) layout: Layout,
    /// The first element; every element that the layout describes can be read and written for `'a`, and by no other view.
    data: *mut u8,
    borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: a view is a borrow of plain numbers, as a shared slice is.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}
// SAFETY: a mutable view is an exclusive borrow of plain numbers, as a mutable slice is.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: as above; through a shared reference to it, elements are only read.
unsafe impl Sync for ViewMut<'_> {}

impl<'a> View<'a> {
    /// Elements in the machine's byte order. `offset` is the position of the first one, `strides` the distances between
    /// neighbours in each dimension, both in elements.
    ///
    /// ```
    /// use certen_core::ElemType;
    /// use certen_runtime::View;
    /// // Two rows of three bytes, transposed and each row backwards.
    /// let bytes = [1, 2, 3, 4, 5, 6];
    /// assert!(View::new(ElemType::U8, &bytes, 2, &[3, 2], &[-1, 3]).is_ok());
    /// assert!(View::new(ElemType::U8, &bytes, 1, &[3, 2], &[-1, 3]).is_err());
    /// ```
    ///
    /// # Errors
    /// If there are not as many strides as sizes, an element lies outside the bytes, or a byte of a `bool` is neither 0
    /// nor 1.
    pub fn new(
        elem: ElemType,
        bytes: &'a [u8],
        offset: usize,
        shape: &[usize],
        strides: &[i64],
    ) -> Result<View<'a>, ArrayError> {
        let (layout, start) = Layout::inside(elem, bytes.len(), offset, shape, strides)?;
        if elem == ElemType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(ArrayError::Element { expected: elem, found: ElemType::U8 });
        }
        Ok(View::at(layout, bytes.as_ptr().wrapping_add(start)))
    }

    /// Elements in memory that Rust does not know, with the address of the first one.
    ///
    /// # Safety
    /// Until `'a` ends, every element that shape and strides describe can be read there, has been written, and for
    /// `bool` is 0 or 1. If elements are changed in the meantime, results mean nothing.
    ///
    /// # Errors
    /// If there are not as many strides as sizes, or more elements than can be counted.
    pub unsafe fn from_raw(
        elem: ElemType,
        data: *const u8,
        shape: &[usize],
        strides: &[i64],
    ) -> Result<View<'a>, ArrayError> {
        Ok(View::at(Layout::anywhere(elem, shape, strides)?, data))
    }

    fn at(layout: Layout, data: *const u8) -> View<'a> {
        let data = if layout.count() == 0 { NOWHERE.cast_const() } else { data };
        View { layout, data, borrowed: PhantomData }
    }
}

impl View<'_> {
    /// The element type.
    pub fn elem(&self) -> ElemType {
        self.layout.elem
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// How far neighbours are apart in each dimension, in elements.
    pub fn strides(&self) -> &[i64] {
        &self.layout.strides
    }

    /// The address of the first element.
    pub fn data(&self) -> *const u8 {
        self.data
    }

    /// The addresses between the first and the last byte of its elements; empty if it has none.
    pub fn extent(&self) -> Range<usize> {
        self.layout.extent(self.data.addr())
    }

    /// Whether a kernel can use the elements as they lie.
    pub fn is_dense(&self) -> bool {
        self.layout.is_dense(self.data.addr())
    }

    /// The same elements with fewer dimensions: so many neighbouring ones become one, one group after the other. None
    /// if the elements of a group do not lie in equal steps, or the groups are not of all dimensions.
    ///
    /// ```
    /// use certen_core::ElemType;
    /// use certen_runtime::View;
    /// let bytes = [1, 2, 3, 4, 5, 6];
    /// let rows = View::new(ElemType::U8, &bytes, 0, &[2, 3, 1], &[3, 1, 7])?;
    /// assert_eq!(rows.grouped(&[2, 1]).map(|view| (view.shape().to_vec(), view.strides()[0])), Some((vec![6, 1], 1)));
    /// let columns = View::new(ElemType::U8, &bytes, 0, &[3, 2], &[1, 3])?;
    /// assert!(columns.grouped(&[2]).is_none());
    /// # Ok::<(), certen_runtime::ArrayError>(())
    /// ```
    pub fn grouped(&self, groups: &[usize]) -> Option<View<'_>> {
        Some(View::at(self.layout.grouped(groups)?, self.data))
    }

    /// A dense copy.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn to_array(&self) -> Result<Array, ArrayError> {
        let mut array = Array::zeros(self.layout.elem, &self.layout.shape)?;
        let to = Strided { data: array.bytes_mut().as_mut_ptr(), layout: &Layout::dense(self.elem(), self.shape()) };
        // SAFETY: the array was made with this view's type and shape, and the view's elements can be read.
        unsafe { to.copy_from(self.data, &self.layout) };
        Ok(array)
    }
}

impl<'a> From<&'a Array> for View<'a> {
    fn from(array: &'a Array) -> View<'a> {
        View::at(Layout::dense(array.elem(), array.shape()), array.bytes().as_ptr())
    }
}

impl<'a> ViewMut<'a> {
    /// As [`View::new`], whatever the bytes are before. Those that belong to no element are kept.
    ///
    /// # Errors
    /// If there are not as many strides as sizes, or an element lies outside the bytes.
    pub fn new(
        elem: ElemType,
        bytes: &'a mut [u8],
        offset: usize,
        shape: &[usize],
        strides: &[i64],
    ) -> Result<ViewMut<'a>, ArrayError> {
        let (layout, start) = Layout::inside(elem, bytes.len(), offset, shape, strides)?;
        Ok(ViewMut::at(layout, bytes.as_mut_ptr().wrapping_add(start)))
    }

    /// As [`View::from_raw`].
    ///
    /// # Safety
    /// Until `'a` ends, every element that shape and strides describe can be written there, and no other view in use
    /// has any of them. What else reads or changes elements in the meantime may find anything.
    ///
    /// # Errors
    /// As [`View::from_raw`].
    pub unsafe fn from_raw(
        elem: ElemType,
        data: *mut u8,
        shape: &[usize],
        strides: &[i64],
    ) -> Result<ViewMut<'a>, ArrayError> {
        Ok(ViewMut::at(Layout::anywhere(elem, shape, strides)?, data))
    }

    fn at(layout: Layout, data: *mut u8) -> ViewMut<'a> {
        let data = if layout.count() == 0 { NOWHERE } else { data };
        ViewMut { layout, data, borrowed: PhantomData }
    }
}

impl ViewMut<'_> {
    /// The element type.
    pub fn elem(&self) -> ElemType {
        self.layout.elem
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        &self.layout.shape
    }

    /// How far neighbours are apart in each dimension, in elements.
    pub fn strides(&self) -> &[i64] {
        &self.layout.strides
    }

    /// The address of the first element.
    pub fn data(&mut self) -> *mut u8 {
        self.data
    }

    /// The addresses between the first and the last byte of its elements; empty if it has none.
    pub fn extent(&self) -> Range<usize> {
        self.layout.extent(self.data.addr())
    }

    /// Whether a kernel can use the elements as they lie.
    pub fn is_dense(&self) -> bool {
        self.layout.is_dense(self.data.addr())
    }

    /// Whether two indices may mean the same element: a step is not longer than all shorter steps together reach.
    pub fn has_repetitions(&self) -> bool {
        self.layout.has_repetitions()
    }

    /// As [`View::grouped`].
    pub fn grouped(&mut self, groups: &[usize]) -> Option<ViewMut<'_>> {
        Some(ViewMut::at(self.layout.grouped(groups)?, self.data))
    }

    /// The bytes of a dense view.
    pub(crate) fn elements_mut(&mut self) -> &mut [u8] {
        let bytes = self.layout.count() * self.layout.elem.bytes();
        if !self.is_dense() || bytes == 0 {
            return &mut [];
        }
        // SAFETY: a dense view's elements lie side by side from its first, and are borrowed mutably with the view.
        unsafe { std::slice::from_raw_parts_mut(self.data, bytes) }
    }

    /// Copies the elements of an array of the same shape.
    ///
    /// # Errors
    /// If it has another element type or shape.
    pub fn assign(&mut self, array: &Array) -> Result<(), ArrayError> {
        if array.elem() != self.layout.elem {
            return Err(ArrayError::Element { expected: self.layout.elem, found: array.elem() });
        }
        if array.shape() != self.shape() {
            return Err(ArrayError::Shape { expected: self.shape().to_vec(), found: array.shape().to_vec() });
        }
        let to = Strided { data: self.data, layout: &self.layout };
        // SAFETY: both have this type and shape, the array's elements can be read and the view's be written.
        unsafe { to.copy_from(array.bytes().as_ptr(), &Layout::dense(array.elem(), array.shape())) };
        Ok(())
    }
}

impl<'a> From<&'a mut Array> for ViewMut<'a> {
    fn from(array: &'a mut Array) -> ViewMut<'a> {
        ViewMut::at(Layout::dense(array.elem(), array.shape()), array.bytes_mut().as_mut_ptr())
    }
}

/// Where elements are copied to.
struct Strided<'a> {
    data: *mut u8,
    layout: &'a Layout,
}

impl Strided<'_> {
    /// Copies elements from another place.
    ///
    /// # Safety
    /// Both layouts have the same element type and shape; the elements of `layout` at `from` can be read, those here be
    /// written, and they do not overlap.
    unsafe fn copy_from(&self, from: *const u8, layout: &Layout) {
        if self.layout.count() == 0 {
            return;
        }
        let outer = self.layout.shape.len().saturating_sub(1);
        let row = self.layout.shape.last().copied().unwrap_or(1);
        let steps =
            [layout, self.layout].map(|l| l.strides.last().map_or(0, |&s| (s * l.elem.bytes() as i64) as isize));
        let rows = [layout, self.layout].map(|l| l.byte_strides(outer));
        let copy = match self.layout.elem.bytes() {
            8 => copy_row::<u64>,
            4 => copy_row::<u32>,
            _ => copy_row::<u8>,
        };
        let mut at: SmallVec<[usize; 4]> = SmallVec::from_elem(0, outer);
        let [mut read, mut written] = [0isize; 2];
        loop {
            // SAFETY: the offsets are those of an element of each, by the contract; so are those of its row.
            unsafe { copy(from.offset(read), steps[0], self.data.offset(written), steps[1], row) };
            let next = (0..outer).rev().find(|&d| {
                at[d] += 1;
                read += rows[0][d];
                written += rows[1][d];
                if at[d] < self.layout.shape[d] {
                    return true;
                }
                read -= rows[0][d] * at[d] as isize;
                written -= rows[1][d] * at[d] as isize;
                at[d] = 0;
                false
            });
            if next.is_none() {
                return;
            }
        }
    }
}

/// Copies `count` elements from one row to another; steps are in bytes.
///
/// # Safety
/// So many elements of this size can be read and written there; they need not be aligned.
unsafe fn copy_row<T: Copy>(from: *const u8, from_step: isize, to: *mut u8, to_step: isize, count: usize) {
    let size = size_of::<T>() as isize;
    if from_step == size && to_step == size {
        // SAFETY: by the contract.
        unsafe { std::ptr::copy_nonoverlapping(from, to, count * size_of::<T>()) };
        return;
    }
    for at in 0..count as isize {
        // SAFETY: by the contract.
        unsafe {
            to.offset(at * to_step)
                .cast::<T>()
                .write_unaligned(from.offset(at * from_step).cast::<T>().read_unaligned())
        };
    }
}

impl Layout {
    /// Row by row.
    pub(crate) fn dense(elem: ElemType, shape: &[usize]) -> Layout {
        let mut strides: SmallVec<[i64; 4]> = SmallVec::with_capacity(shape.len());
        let mut dense = 1i64;
        for &size in shape.iter().rev() {
            strides.push(dense);
            // Only an empty array can have sizes whose product is too large; its strides are never used.
            dense = dense.saturating_mul(size.try_into().unwrap_or(i64::MAX));
        }
        strides.reverse();
        Layout { elem, shape: shape.into(), strides }
    }

    /// The same elements with groups of neighbouring dimensions as one each.
    fn grouped(&self, groups: &[usize]) -> Option<Layout> {
        let mut grouped = Layout { elem: self.elem, shape: SmallVec::new(), strides: SmallVec::new() };
        let mut dimensions = self.shape.iter().zip(&self.strides);
        for &group in groups {
            let (mut size, mut step) = (1usize, 0i64);
            for _ in 0..group {
                let (&inner, &stride) = dimensions.next()?;
                // A dimension of size 1 is never walked along.
                if inner == 1 {
                    continue;
                }
                if size != 1 && stride.checked_mul(inner.try_into().ok()?) != Some(step) {
                    return None;
                }
                (size, step) = (size.checked_mul(inner)?, stride);
            }
            grouped.shape.push(size);
            grouped.strides.push(step);
        }
        dimensions.next().is_none().then_some(grouped)
    }

    /// How many elements there are.
    fn count(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// How far neighbours are apart in the first dimensions, in bytes.
    fn byte_strides(&self, dimensions: usize) -> SmallVec<[isize; 4]> {
        self.strides[..dimensions].iter().map(|&stride| (stride * self.elem.bytes() as i64) as isize).collect()
    }

    /// The bytes that elements from this address on take.
    fn extent(&self, start: usize) -> Range<usize> {
        if self.shape.contains(&0) {
            return start..start;
        }
        let (low, high) = self.reach();
        let size = self.elem.bytes() as i128;
        let at = |offset: i128| (start as i128 + offset * size) as usize;
        at(low)..at(high + 1)
    }

    /// How far the elements that lie furthest back and ahead are from the first.
    fn reach(&self) -> (i128, i128) {
        // The product of two 64-bit numbers, and the sum of many, fit in 128 bits.
        let far = self.shape.iter().zip(&self.strides).map(|(&size, &stride)| (size as i128 - 1) * i128::from(stride));
        far.fold((0, 0), |(low, high), far| (low + far.min(0), high + far.max(0)))
    }

    /// Whether the elements lie row by row, where their type may lie.
    fn is_dense(&self, start: usize) -> bool {
        let mut dense = 1i64;
        let mut strides = self.strides.iter().zip(&self.shape).rev();
        let rows = strides.all(|(&stride, &size)| {
            let fits = size == 1 || stride == dense;
            dense = dense.saturating_mul(size.try_into().unwrap_or(i64::MAX));
            fits
        });
        (rows || self.shape.contains(&0)) && start.is_multiple_of(self.elem.bytes())
    }

    /// See [`ViewMut::has_repetitions`].
    fn has_repetitions(&self) -> bool {
        if self.shape.contains(&0) {
            return false;
        }
        let steps = self.strides.iter().map(|stride| stride.unsigned_abs()).zip(self.shape.iter().copied());
        let mut steps: SmallVec<[(u64, usize); 4]> = steps.filter(|(_, size)| *size != 1).collect();
        steps.sort_unstable();
        let mut reach = 0;
        let mut repeats = false;
        for (step, size) in steps {
            repeats |= u128::from(step) <= reach;
            reach += u128::from(step) * (size as u128 - 1);
        }
        repeats
    }

    /// Of elements whose place cannot be checked.
    fn anywhere(elem: ElemType, shape: &[usize], strides: &[i64]) -> Result<Layout, ArrayError> {
        if strides.len() != shape.len() {
            let (shape, strides) = (shape.to_vec(), strides.to_vec());
            return Err(ArrayError::Outside { elem, shape, strides, bytes: 0 });
        }
        let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        if count.is_none() && !shape.contains(&0) {
            return Err(ArrayError::TooLarge { elem, shape: shape.to_vec() });
        }
        // Nothing goes along a dimension of size 0 or 1, whatever its stride is.
        let strides = strides.iter().zip(shape).map(|(&stride, &size)| if size <= 1 { 0 } else { stride });
        Ok(Layout { elem, shape: shape.into(), strides: strides.collect() })
    }

    /// Of elements that all lie inside so many bytes; and where the first one lies.
    fn inside(
        elem: ElemType,
        bytes: usize,
        offset: usize,
        shape: &[usize],
        strides: &[i64],
    ) -> Result<(Layout, usize), ArrayError> {
        let outside = || ArrayError::Outside { elem, shape: shape.to_vec(), strides: strides.to_vec(), bytes };
        let layout = Layout::anywhere(elem, shape, strides).map_err(|_| outside())?;
        if shape.contains(&0) {
            return Ok((layout, 0));
        }
        let (low, high) = layout.reach();
        if low + (offset as i128) < 0 || high + offset as i128 >= (bytes / elem.bytes()) as i128 {
            return Err(outside());
        }
        Ok((layout, offset * elem.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_lie_inside_the_bytes() {
        let bytes = [0u8; 48];
        let ok =
            |offset, shape: &[usize], strides: &[i64]| View::new(ElemType::F64, &bytes, offset, shape, strides).is_ok();
        assert!(ok(0, &[2, 3], &[3, 1]) && ok(5, &[2, 3], &[-3, -1]) && ok(0, &[1000, 6], &[0, 1]));
        assert!(!ok(1, &[2, 3], &[3, 1]) && !ok(4, &[2, 3], &[-3, -1]) && !ok(0, &[2, 3], &[3, -1]));
        assert!(ok(5, &[], &[]) && !ok(6, &[], &[]) && !ok(0, &[2], &[]));
        // Nothing is outside where nothing is.
        assert!(ok(usize::MAX, &[0, usize::MAX], &[i64::MIN, i64::MAX]));
        assert!(!ok(0, &[usize::MAX, usize::MAX], &[i64::MAX, i64::MIN]) && !ok(usize::MAX, &[1], &[0]));
        assert!(View::new(ElemType::Bool, &[1, 2], 0, &[2], &[1]).is_err());
    }
}
