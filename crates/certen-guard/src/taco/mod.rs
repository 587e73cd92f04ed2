//! TACO's index notation: declarations, then one index expression on each line, each a kernel.
//!
//! ```text
//! file        := (declaration | option | expression)*
//! declaration := TYPE tensor [format] ("," tensor [format])*
//! tensor      := NAME ["(" [size ("," size)*] ")"]
//! format      := "{" NAME ("," NAME)* "}" | "CSR" | "CSC" | "DCSR" | "DCSC" | "COO"
//! option      := "-f=" NAME ":" LETTERS [":" INT ("," INT)*] | "-d=" NAME ":" INT ("," INT)* | "-t=" NAME ":" TYPE
//! expression  := access ("=" | "+=") sum
//! access      := NAME ["(" [var ("," var)*] ")"]
//! var         := NAME ["(" size "," size ["," size] ")"]
//! ```
//!
//! An index of the right side that the left one does not have is summed, over the smallest part of the expression that
//! has all its uses. Its range is the size of the dimension where it stands first. The names that the lines have in common
//! are declared once; where formats are sparse, tensors are read as the dense ones that they stand for.

mod meaning;
mod parse;

use certen_syntax::{Diagnostic, FileId, Sources};

use crate::kernel::Kernel;
use crate::text::{stem, tokens};

/// The kernels of a file.
pub(crate) fn read(sources: &Sources, file: FileId) -> Result<Vec<Kernel>, Vec<Diagnostic>> {
    let tokens = tokens(sources, file, Some('#'))?;
    let parsed = parse::parse(&tokens).map_err(|error| vec![*error])?;
    let name = stem(sources, file);
    let several = parsed.expressions.len() > 1;
    let named = |at: usize| if several { format!("{name}_{}", at + 1) } else { name.clone() };
    let kernels = parsed
        .expressions
        .iter()
        .enumerate()
        .map(|(at, expression)| meaning::kernel(&parsed, expression, &named(at)).map_err(|error| vec![*error]));
    kernels.collect()
}
