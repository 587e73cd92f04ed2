//! Front doors: the languages of the papers.
//!
//! A front door reads its dialect, types it by the paper's rules and elaborates it into Core. TeIL and the model
//! language are two notations for one index-free tensor algebra, so they share everything but their text: [`algebra`]
//! is what they share, [`teil`] and [`model`] are their texts. [`einsum`] is NumPy's notation for sums of products.
//! Anything else that more than one front door needs lives in Core.

pub mod algebra;
pub mod einsum;
pub mod model;
pub mod teil;
