//! Front door: the `.ten` language, which users write by hand.
//!
//! The road: text is parsed ([`ast`]), functions are instantiated per rank and checked ([`typed`]), comprehensions are
//! elaborated step by step as in *Tensor Comprehensions in SaC* (Sec. 5 and 6), and what remains becomes Core.

pub mod ast;
mod library;
pub mod parse;
pub mod typed;

pub use library::{ConstRef, FileRef, Found, FunctionRef, Library, Parse, Read};
