//! CFDlang: tensors of known sizes, and statements of whole tensors.
//!
//! ```text
//! program := (var | type)* [elem] statement*
//! var     := "var" ("input" | "output")* NAME ":" shape
//! type    := "type" NAME ":" shape
//! shape   := NAME | "[" INT* "]"
//! elem    := "elem" "[" NAME* "]" INT ("first" | "last")
//! statement := NAME "=" expr
//! expr    := term [("+" | "-") expr]
//! term    := factor [("*" | "/" | ".") term]
//! factor  := atom [("#" | "^") factor]
//! atom    := NAME | INT | "[" expr* "]" | "(" expr ")"
//! ```
//!
//! All operators associate to the right. Positions count from 0. `e . [[1 2] [3 4]]` sums over dimensions that walk
//! together, `a . b` over the last of `a` and the first of `b`, `e ^ [[0 1]]` exchanges two, `[e e]` stacks along a new
//! first dimension. `elem` repeats the statements over elements, for which the tensors that it names have one more
//! dimension. The framework asserts that types fit, and its release build does not ask: what does not fit is a fault.

mod meaning;
mod parse;

use certen_syntax::{Diagnostic, FileId, Sources};

use crate::kernel::Kernel;
use crate::text::{stem, tokens};

/// The kernel of a file: its statements, one after the other.
pub(crate) fn read(sources: &Sources, file: FileId) -> Result<Kernel, Vec<Diagnostic>> {
    let tokens = tokens(sources, file, None)?;
    let (program, notes) = parse::parse(&tokens).map_err(|error| vec![*error])?;
    let name = stem(sources, file);
    let mut kernel = meaning::kernel(&program, &name).map_err(|error| vec![*error])?;
    kernel.notes.splice(0..0, notes);
    Ok(kernel)
}
