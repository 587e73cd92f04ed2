//! Front door: the `.ten` language, which users write by hand.
//!
//! The road: text is parsed ([`ast`]), functions are instantiated per rank and checked ([`typed`]), comprehensions are
//! elaborated step by step as in *Tensor Comprehensions in SaC* (Sec. 5 and 6), and what remains becomes Core.

pub mod ast;
mod check;
pub mod format;
mod library;
pub mod parse;
pub mod passes;
mod pretty;
mod print;
#[cfg(test)]
mod tests;
mod to_ast;
mod to_core;
mod tree;
pub mod typed;

#[doc(hidden)]
pub use check::unproved;
pub use check::{CheckedFile, Known};
pub use library::{ConstRef, Declared, DerivedRef, Entry, FileRef, FunctionRef, Library, ReadFile};
pub use to_ast::to_ast;
pub use to_core::to_core;
