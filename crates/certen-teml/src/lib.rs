//! TeML: a meta-language whose programs make tensor expressions and loop nests ("Meta-programming for Cross-Domain
//! Tensor Optimizations").
//!
//! [`front`] evaluates a program to its statements and the paths of its `codegen` lists; [`to_core`] says what the
//! statements mean, and [`nests`] makes the loops of each path.
//!
//! Needs: the text of a program. Guarantees: a program that is accepted has a meaning in Core, and each of its paths has
//! nests. Where [`Path::in_order`] is set they compute every output by the same statements, on the same values; else they
//! have to be compared. Steps are only listed here: `certen-schedule` takes them.

#[cfg(test)]
mod agreement;
pub mod assignment;
pub mod ast;
mod compiled;
mod expression;
mod flow;
pub mod front;
mod loops;
mod nest;
pub mod nests;
mod numbers;
mod order;
pub mod parse;
mod print;
mod pull;
mod ranges;
mod rules;
mod tensors;
pub mod to_core;
mod tree;

pub use assignment::{Assignment, Begin, Entry, Node, Route, Statements, Tensor, ValueId, Values};
pub use compiled::{Compiled, Path};
pub use flow::{Flow, facts};
pub use to_core::Meaning;

use certen_core::ElemType;
use certen_syntax::{Diagnostic, Diagnostics, FileId, Name, Sources};

/// Reads, evaluates and elaborates a program; nothing if it has errors.
pub fn compile(
    sources: &Sources,
    file: FileId,
    name: Name,
    elem: ElemType,
    diagnostics: &mut Diagnostics,
) -> Option<Compiled> {
    let front::Front { statements, routes, states, .. } = front::read(sources, file, name, elem, diagnostics)?;
    let mut refuse = |errors: Vec<Diagnostic>| diagnostics.extend(errors);
    let meaning = to_core::meaning(&statements).map_err(&mut refuse).ok()?;
    let mut all = nests::Paths::new(&statements, &meaning).map_err(&mut refuse).ok()?;
    let count = routes.len();
    let paths: Vec<Path> = routes.into_iter().filter_map(|route| all.path(route).map_err(&mut refuse).ok()).collect();
    (paths.len() == count).then_some(Compiled { core: meaning.core, paths, states })
}
