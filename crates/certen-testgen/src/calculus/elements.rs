//! The elements of a case's inputs.

use certen_core::domain::Scalar;
use certen_core::{ElemType, Parameter, Tensor};
use certen_syntax::Name;

use super::{Case, Size};

impl Case {
    /// Inputs for a run: whole numbers from -11 to 11 as elements.
    ///
    /// # Panics
    /// If the run is not one of the case's.
    pub fn inputs<V>(&self, run: &[Size], value: impl Fn(i64, ElemType) -> V) -> Vec<(Name, Tensor<V>)> {
        self.numbered(run, |_, whole, elem| value(whole, elem))
    }

    /// Inputs of machine numbers, of which every so many floats is an infinity or no number.
    ///
    /// # Panics
    /// As [`Case::inputs`].
    pub fn planted(&self, run: &[Size], every: usize) -> Vec<(Name, Tensor<Scalar>)> {
        let special = [f64::INFINITY, f64::NAN, f64::NEG_INFINITY, -0.0];
        self.numbered(run, |at, whole, elem| match elem.is_float() && at % every == every - 1 {
            true => Scalar::from_f64(special[at / every % special.len()], elem),
            false => Scalar::from_i64(whole, elem),
        })
    }

    fn numbered<V>(&self, run: &[Size], value: impl Fn(usize, i64, ElemType) -> V) -> Vec<(Name, Tensor<V>)> {
        let size = |name| run.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        let (mut next, mut count) = (3, 0);
        let mut tensors = Vec::new();
        for Parameter { name, ty } in &self.program.inputs {
            let shape = ty.shape_at(&size).expect("a run has every size");
            let elements = shape.iter().product::<usize>();
            let data = (0..elements).map(|_| {
                (next, count) = ((next * 7 + 5) % 23, count + 1);
                value(count, next - 11, ty.elem)
            });
            let data = data.collect();
            tensors.push((*name, Tensor::new(shape, data).expect("as many elements as the shape has")));
        }
        tensors
    }
}
