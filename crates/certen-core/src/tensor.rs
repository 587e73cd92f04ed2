//! Dense tensors of values of a domain.

use certen_syntax::Name;

/// Tensors with their names.
pub type Named<V> = Vec<(Name, Tensor<V>)>;

/// A dense tensor, row by row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor<V> {
    shape: Vec<usize>,
    data: Vec<V>,
}

impl<V> Tensor<V> {
    /// A tensor of these elements, row by row; none if there are too few or too many.
    pub fn new(shape: Vec<usize>, data: Vec<V>) -> Option<Tensor<V>> {
        let count = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))?;
        (count == data.len()).then_some(Tensor { shape, data })
    }

    /// A tensor whose elements are computed from their position in row-major order; none if there is no memory for it.
    pub fn from_fn<E>(
        shape: Vec<usize>,
        mut element: impl FnMut(usize) -> Result<V, E>,
    ) -> Option<Result<Tensor<V>, E>> {
        let count = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))?;
        let mut data = Vec::new();
        data.try_reserve_exact(count).ok()?;
        for at in 0..count {
            match element(at) {
                Ok(value) => data.push(value),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(Tensor { shape, data }))
    }

    /// A tensor without dimensions.
    pub fn scalar(value: V) -> Tensor<V> {
        Tensor { shape: Vec::new(), data: vec![value] }
    }

    /// The sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The elements, row by row.
    pub fn data(&self) -> &[V] {
        &self.data
    }

    /// The elements, row by row, to be changed.
    pub fn data_mut(&mut self) -> &mut [V] {
        &mut self.data
    }

    /// Where an element stands in [`Tensor::data`]; none if the index is outside, or of another rank.
    pub fn position(&self, index: &[i64]) -> Option<usize> {
        if index.len() != self.shape.len() {
            return None;
        }
        index.iter().zip(&self.shape).try_fold(0, |at, (&i, &size)| {
            let i = usize::try_from(i).ok().filter(|&i| i < size)?;
            Some(at * size + i)
        })
    }

    /// An element; none if the index is outside, or of another rank.
    pub fn get(&self, index: &[i64]) -> Option<&V> {
        self.position(index).map(|at| &self.data[at])
    }

    /// Every element mapped, keeping the shape.
    pub fn map<W>(&self, f: impl FnMut(&V) -> W) -> Tensor<W> {
        Tensor { shape: self.shape.clone(), data: self.data.iter().map(f).collect() }
    }
}

/// The index, outermost first, of a position in row-major order.
pub fn index_of(shape: &[usize], mut position: usize) -> Vec<i64> {
    let mut index = vec![0; shape.len()];
    for (i, &size) in index.iter_mut().zip(shape).rev() {
        *i = (position % size.max(1)) as i64;
        position /= size.max(1);
    }
    index
}
