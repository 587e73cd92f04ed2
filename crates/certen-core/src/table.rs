//! Tables: tensors whose elements stand in the program.
//!
//! A table is shared and never changed. Its hash is computed once, so that a term that has it is added to an arena in the
//! same time whether the table is small or large.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use certen_index::Ix;
use rustc_hash::FxHasher;

use crate::ops::Literal;
use crate::tensor::index_of;
use crate::types::{ElemType, TensorType, TypeError};

/// The elements of a tensor, row by row. It has dimensions: without them it would be a [`Literal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Table(Arc<Content>);

#[derive(PartialEq, Eq)]
struct Content {
    hash: u64,
    ty: TensorType,
    shape: Vec<usize>,
    elements: Vec<Literal>,
}

impl Table {
    /// A table of these elements, row by row.
    ///
    /// # Errors
    /// If there are no dimensions, too few elements or too many, or one that does not fit the element type.
    pub fn new(elem: ElemType, shape: Vec<usize>, elements: Vec<Literal>) -> Result<Table, TypeError> {
        let sizes = shape.iter().map(|&size| i64::try_from(size).map(Ix::from));
        let sizes = sizes.collect::<Result<Vec<Ix>, _>>().map_err(|_| TypeError("a table is too large".into()))?;
        let ty = TensorType::new(elem, sizes);
        let count = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
        if shape.is_empty() || count != Some(elements.len()) {
            return Err(TypeError(format!("{} elements are no table of type {ty}", elements.len())));
        }
        if let Some(wrong) = elements.iter().find(|literal| !literal.fits(elem)) {
            return Err(TypeError(format!("{wrong:?} is no {elem}")));
        }
        let mut hasher = FxHasher::default();
        (elem, &shape, &elements).hash(&mut hasher);
        Ok(Table(Arc::new(Content { hash: hasher.finish(), ty, shape, elements })))
    }

    /// Its type, whose sizes are numbers.
    pub fn ty(&self) -> &TensorType {
        &self.0.ty
    }

    /// The sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.0.shape
    }

    /// The elements, row by row.
    pub fn elements(&self) -> &[Literal] {
        &self.0.elements
    }

    /// An element; none if the index is outside, or of another rank.
    pub fn get(&self, index: &[i64]) -> Option<Literal> {
        if index.len() != self.0.shape.len() {
            return None;
        }
        let place = index.iter().zip(&self.0.shape).try_fold(0, |place, (&at, &size)| {
            let at = usize::try_from(at).ok().filter(|&at| at < size)?;
            Some(place * size + at)
        })?;
        self.0.elements.get(place).copied()
    }

    /// The first elements in each dimension, for another shape that is nowhere longer.
    pub fn beginning(&self, shape: &TensorType) -> Option<Table> {
        let sizes = shape.shape.iter().map(|size| usize::try_from(size.as_constant()?).ok());
        let sizes: Vec<usize> = sizes.collect::<Option<_>>()?;
        if sizes.len() != self.0.shape.len() || sizes.iter().zip(&self.0.shape).any(|(new, old)| new > old) {
            return None;
        }
        let count = sizes.iter().product();
        let elements = (0..count).map(|at| self.get(&index_of(&sizes, at)));
        Table::new(self.0.ty.elem, sizes.clone(), elements.collect::<Option<_>>()?).ok()
    }
}

impl Hash for Table {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash.hash(state);
    }
}

/// Elements can be many; a message needs no more than the type.
impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({}, {:x})", self.0.ty, self.0.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(shape: Vec<usize>, elements: impl IntoIterator<Item = i64>) -> Result<Table, TypeError> {
        Table::new(ElemType::I64, shape, elements.into_iter().map(Literal::Int).collect())
    }

    #[test]
    fn elements_are_read_in_bounds() {
        let table = of(vec![2, 3], 0..6).unwrap();
        assert_eq!(table.get(&[1, 2]), Some(Literal::Int(5)));
        for outside in [&[2, 0][..], &[0, 3], &[0, -1], &[1], &[0, 0, 0]] {
            assert_eq!(table.get(outside), None);
        }
        assert!(of(vec![2, 3], 0..5).is_err() && of(vec![], 0..1).is_err());
        assert!(of(vec![usize::MAX, 2], 0..0).is_err() && of(vec![0, usize::MAX], 0..0).is_err());
        assert!(of(vec![0, 4], 0..0).is_ok());
    }

    #[test]
    fn a_beginning_has_the_first_of_each_row() {
        let table = of(vec![2, 3], 0..6).unwrap();
        let shape = |sizes: [i64; 2]| TensorType::new(ElemType::I64, sizes.map(Ix::from).to_vec());
        assert_eq!(table.beginning(&shape([2, 2])), of(vec![2, 2], [0, 1, 3, 4]).ok());
        assert_eq!(table.beginning(&shape([3, 2])), None);
    }
}
