//! TeIL, a type-safe imperative tensor language (Rink and Castrillon, ARRAY 2019), and its verified core, Core-TeIL:
//! their text, and the translation between the two. What the text means is in [`algebra`](crate::algebra).

mod core_teil;
mod parse;
mod print;

pub(crate) use parse::RESERVED;
pub use parse::parse;
pub(crate) use print::{expr_text, head, shape};
