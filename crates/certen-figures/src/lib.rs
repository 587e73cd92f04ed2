//! What readers of the papers look for and the compiler does not need: one module for each figure or section.
//! `explain`, `emit` and the tests show it. Whatever compiling needs of the papers is where it is used.
//!
//! | module | paper |
//! |---|---|
//! | [`analysis`](mod@analysis), [`in_place`](mod@in_place) | model language, Sec. 5 |
//! | [`demand`] | SaC, Fig. 2 |
//! | [`padded`] | model language, Fig. 13 and 14 |
//! | [`reshapes`](mod@reshapes) | *A Verified Compiler for a Functional Tensor Language*, Fig. 6 |
//! | [`semantics`] | TeIL, Fig. 6 and 9; model language, Fig. 11 to 14 |
//! | [`three_address`](mod@three_address) | TeIL, Sec. 3.3 |
//! | [`translate`](mod@translate) | TeIL, Sec. 4.1 and Eq. 6 |

pub mod analysis;
mod core_teil;
pub mod demand;
pub mod in_place;
pub mod padded;
pub mod reshapes;
pub mod semantics;
pub mod three_address;
pub mod translate;
