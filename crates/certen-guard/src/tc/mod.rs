//! Tensor Comprehensions: definitions whose index ranges are inferred.
//!
//! ```text
//! file      := ("def" NAME "(" [parameter ("," parameter)*] ")" "->" results "{" statement* "}")*
//! parameter := TYPE ["(" [size ("," size)*] ")"] NAME
//! results   := NAME | "(" NAME ("," NAME)* ")"
//! statement := NAME ["(" [NAME ("," NAME)*] ")"] ("=" | op "=" ["!"]) expr ["where" clause ("," clause)*]
//! op        := "+" | "*" | "min" | "max"
//! clause    := NAME "in" expr ":" expr | "exists" NAME "(" [expr ("," expr)*] ")"
//! ```
//!
//! Expressions are C's: `?:`, `||`, `&&`, comparisons, sums, products, `-`, `!`, functions, accesses `A(i, j)`, sizes
//! `A.0`. A name that is no size and no tensor is an index. `ranges.rs` infers how far it goes, in rounds, as the
//! framework's documentation says; `meaning.rs` makes the kernel.

mod meaning;
mod parse;
mod ranges;

use certen_syntax::{Diagnostic, FileId, Sources};

use crate::kernel::Kernel;
use crate::text::tokens;

/// The kernels of a file.
pub(crate) fn read(sources: &Sources, file: FileId) -> Result<Vec<Kernel>, Vec<Diagnostic>> {
    let tokens = tokens(sources, file, Some('#'))?;
    let definitions = parse::parse(&tokens).map_err(|error| vec![*error])?;
    definitions.iter().map(|definition| meaning::kernel(definition).map_err(|error| vec![*error])).collect()
}
