//! Einstein sums in NumPy's notation: `ij,jk->ik`.
//!
//! The front door for people who come from `numpy.einsum`. [`Subscripts`] are the text (or NumPy's lists of numbers),
//! [`Einsum`] is what they mean for operands of given shapes: indices with their sizes, which of them each dimension of
//! an operand walks along, and which are kept. An index that is not kept is summed. [`Einsum::to_core`] writes the sum,
//! in one nest of loops or in [`Product`]s with intermediate results, as a program of Core with symbolic sizes.
//!
//! NumPy's manual is not precise, so the behaviour of `numpy.einsum` 2.4 without `optimize` was found by experiment and
//! is written down in the tests (`tests.rs`): what it refuses with a `ValueError` is refused here, with an
//! [`EinsumError`] that names the index, the operand and the sizes; everything else means the same. One difference is
//! meant: `ii->i` of an array of shape (0, 1) reads memory that is not the array's there, and is refused here.
//!
//! ```
//! use certen_dialects::einsum::{Einsum, Subscripts};
//! let product = Subscripts::parse("ij,jk->ik", 2)?;
//! assert_eq!(Einsum::new(&product, &[&[2, 3], &[3, 5]])?.output_shape(), [2, 5]);
//! let error = Einsum::new(&product, &[&[2, 3], &[4, 5]]).unwrap_err();
//! assert_eq!(error.to_string(), "index j is 3 in operand 0 and 4 in operand 1");
//! # Ok::<(), certen_dialects::einsum::EinsumError>(())
//! ```

mod error;
mod resolve;
mod subscripts;
mod to_core;

pub use error::{EinsumError, IndexName, SubPlace};
pub use resolve::{Axis, Einsum, Index, Product};
pub use subscripts::{Sub, Subscripts};

#[cfg(test)]
mod tests;
