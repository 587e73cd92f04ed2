//! The model language (Rink, "Modeling of languages for tensor manipulation", 2018): its text. What the text means is
//! in [`algebra`](crate::algebra), which it shares with TeIL; evaluation with padding (Sec. 4) is
//! [`Semantics::padded`](crate::algebra::semantics::Semantics::padded).

mod parse;
mod print;

pub(crate) use parse::RESERVED;
pub use parse::parse;
pub(crate) use print::{expr_text, head, shape};
