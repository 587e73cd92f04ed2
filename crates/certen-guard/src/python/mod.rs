//! Python sources: parsed, never executed.
//!
//! `source.rs` parses and limits the nesting, `value.rs` is what can be known of a variable without running anything.
//! What is looked for in them, TVM's tensor expressions and calls of `einsum`, are modules of their own.

mod source;
mod value;

pub(crate) use source::{Imports, Script, path};
pub(crate) use value::{Argument, Arguments, Known};
