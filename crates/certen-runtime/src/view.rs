//! Borrowed arrays with strides: what a kernel can be called with without a copy.
//!
//! A [`View`] is some bytes of the caller's, and where the elements of a tensor lie in them: the position of the first
//! one, and for each dimension how far its neighbours are apart, in elements, which may be negative or zero. So a
//! transposed or reversed array, or every second row, is one. That all elements lie inside the bytes is checked when it
//! is made, so that nobody needs pointers. Kernels work on dense arrays, so other views are copied for a call.

use certen_core::ElemType;

use crate::{Array, ArrayError};

/// Where the elements of a tensor lie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) elem: ElemType,
    pub(crate) shape: Vec<usize>,
    /// How far neighbours are apart, in elements.
    strides: Vec<i64>,
    /// The position of the first element in the bytes, in bytes.
    start: usize,
}

/// A tensor to be read.
#[derive(Clone, Debug)]
pub struct View<'a> {
    pub(crate) layout: Layout,
    pub(crate) bytes: &'a [u8],
}

/// A tensor to be written.
#[derive(Debug)]
pub struct ViewMut<'a> {
    pub(crate) layout: Layout,
    pub(crate) bytes: &'a mut [u8],
}

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
        let layout = Layout::checked(elem, bytes.len(), offset, shape, strides)?;
        if elem == ElemType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(ArrayError::Element { expected: elem, found: ElemType::U8 });
        }
        Ok(View { layout, bytes })
    }
}

impl View<'_> {
    /// Whether a kernel can use the bytes as they are.
    pub(crate) fn is_dense(&self) -> bool {
        self.layout.is_dense(self.bytes)
    }

    /// The bytes of a dense view.
    pub(crate) fn elements(&self) -> &[u8] {
        self.bytes.get(self.layout.start..).unwrap_or_default()
    }

    /// A dense copy.
    pub(crate) fn to_array(&self) -> Result<Array, ArrayError> {
        let mut array = Array::zeros(self.layout.elem, &self.layout.shape)?;
        let (size, mut dense) = (self.layout.elem.bytes(), array.bytes_mut());
        self.layout.each(|from| {
            if let Some((to, rest)) = std::mem::take(&mut dense).split_at_mut_checked(size) {
                to.copy_from_slice(self.bytes.get(from..from + size).unwrap_or(&[0; 8][..size]));
                dense = rest;
            }
        });
        Ok(array)
    }
}

impl<'a> From<&'a Array> for View<'a> {
    fn from(array: &'a Array) -> View<'a> {
        View { layout: Layout::dense(array), bytes: array.bytes() }
    }
}

impl<'a> ViewMut<'a> {
    /// As [`View::new`]. Bytes that belong to no element are kept.
    ///
    /// # Errors
    /// As [`View::new`].
    pub fn new(
        elem: ElemType,
        bytes: &'a mut [u8],
        offset: usize,
        shape: &[usize],
        strides: &[i64],
    ) -> Result<ViewMut<'a>, ArrayError> {
        let layout = Layout::checked(elem, bytes.len(), offset, shape, strides)?;
        Ok(ViewMut { layout, bytes })
    }
}

impl ViewMut<'_> {
    /// Whether a kernel can use the bytes as they are.
    pub(crate) fn is_dense(&self) -> bool {
        self.layout.is_dense(self.bytes)
    }

    /// The bytes of a dense view.
    pub(crate) fn elements(&self) -> &[u8] {
        self.bytes.get(self.layout.dense_bytes()).unwrap_or_default()
    }

    /// The bytes of a dense view.
    pub(crate) fn elements_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.layout.dense_bytes()).unwrap_or_default()
    }

    /// Copies the elements of an array of the same type and shape.
    pub(crate) fn assign(&mut self, array: &Array) {
        let size = self.layout.elem.bytes();
        let mut dense = array.bytes().chunks_exact(size);
        self.layout.each(|to| {
            if let (Some(to), Some(from)) = (self.bytes.get_mut(to..to + size), dense.next()) {
                to.copy_from_slice(from);
            }
        });
    }
}

impl<'a> From<&'a mut Array> for ViewMut<'a> {
    fn from(array: &'a mut Array) -> ViewMut<'a> {
        ViewMut { layout: Layout::dense(array), bytes: array.bytes_mut() }
    }
}

impl Layout {
    fn dense(array: &Array) -> Layout {
        let mut strides: Vec<i64> = Vec::with_capacity(array.shape().len());
        let mut dense = 1i64;
        for &size in array.shape().iter().rev() {
            strides.push(dense);
            // Only an empty array can have sizes whose product is too large; nobody goes along its strides.
            dense = dense.saturating_mul(size.try_into().unwrap_or(i64::MAX));
        }
        strides.reverse();
        Layout { elem: array.elem(), shape: array.shape().to_vec(), strides, start: 0 }
    }

    /// Where the elements of a dense view lie: no byte that is not theirs.
    fn dense_bytes(&self) -> std::ops::Range<usize> {
        let count = if self.shape.contains(&0) { 0 } else { self.shape.iter().product() };
        self.start..self.start + count * self.elem.bytes()
    }

    /// Whether the elements lie row by row, where their type may lie.
    fn is_dense(&self, bytes: &[u8]) -> bool {
        let mut dense = 1i64;
        let mut strides = self.strides.iter().zip(&self.shape).rev();
        let rows = strides.all(|(&stride, &size)| {
            let fits = size == 1 || stride == dense;
            dense = dense.saturating_mul(size.try_into().unwrap_or(i64::MAX));
            fits
        });
        let aligned = bytes.as_ptr().wrapping_add(self.start).addr().is_multiple_of(self.elem.bytes());
        (rows && aligned) || self.shape.contains(&0)
    }

    /// Whether two indices may mean the same element: a step is not longer than all shorter steps together reach.
    pub(crate) fn has_repetitions(&self) -> bool {
        let steps = self.strides.iter().map(|stride| stride.unsigned_abs()).zip(self.shape.iter().copied());
        let mut steps: Vec<(u64, usize)> = steps.filter(|(_, size)| *size != 1).collect();
        steps.sort_unstable();
        let mut reach = 0;
        let mut repeats = false;
        for (step, size) in steps {
            repeats |= u128::from(step) <= reach;
            reach += u128::from(step) * (size as u128).saturating_sub(1);
        }
        repeats && !self.shape.contains(&0)
    }

    /// The position of each element in the bytes, row by row.
    fn each(&self, mut visit: impl FnMut(usize)) {
        if self.shape.contains(&0) {
            return;
        }
        let size = self.elem.bytes() as i64;
        let (row, step) = match (self.shape.last(), self.strides.last()) {
            (Some(&row), Some(&step)) => (row, step.wrapping_mul(size)),
            _ => (1, 0),
        };
        let outer = self.shape.len().saturating_sub(1);
        let mut at = vec![0usize; outer];
        // All elements lie inside the bytes, so what wraps on the way comes back.
        loop {
            let mut position = self.start as i64;
            for (&index, &stride) in at.iter().zip(&self.strides) {
                position = position.wrapping_add((index as i64).wrapping_mul(stride).wrapping_mul(size));
            }
            for _ in 0..row {
                visit(position as usize);
                position = position.wrapping_add(step);
            }
            let next = (0..outer).rev().find(|&d| {
                at[d] += 1;
                let more = at[d] < self.shape[d];
                if !more {
                    at[d] = 0;
                }
                more
            });
            if next.is_none() {
                return;
            }
        }
    }

    /// Whether all elements lie inside so many bytes.
    fn checked(
        elem: ElemType,
        bytes: usize,
        offset: usize,
        shape: &[usize],
        strides: &[i64],
    ) -> Result<Layout, ArrayError> {
        let outside = || ArrayError::Outside { elem, shape: shape.to_vec(), strides: strides.to_vec(), bytes };
        if strides.len() != shape.len() {
            return Err(outside());
        }
        let layout = |start| Layout { elem, shape: shape.to_vec(), strides: strides.to_vec(), start };
        if shape.contains(&0) {
            return Ok(layout(0));
        }
        // The product of two 64-bit numbers, and the sum of many, fit in 128 bits.
        let (mut low, mut high) = (offset as i128, offset as i128);
        for (&size, &stride) in shape.iter().zip(strides) {
            let far = (size as i128 - 1) * i128::from(stride);
            if far < 0 { low += far } else { high += far }
        }
        if low < 0 || high >= (bytes / elem.bytes()) as i128 {
            return Err(outside());
        }
        Ok(layout(offset * elem.bytes()))
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
