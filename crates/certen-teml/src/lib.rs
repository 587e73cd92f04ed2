//! TeML: a meta-language whose programs make tensor expressions and loop nests ("Meta-programming for Cross-Domain Tensor
//! Optimizations").

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
use certen_syntax::{Diagnostics, FileId, Name, Sources};

/// Reads, evaluates and elaborates a program; nothing if it has errors.
pub fn compile(
    sources: &Sources,
    file: FileId,
    name: Name,
    elem: ElemType,
    diagnostics: &mut Diagnostics,
) -> Option<Compiled> {
    let front::Front { statements, routes, states, .. } = front::read(sources, file, name, elem, diagnostics)?;
    let meaning = match to_core::meaning(&statements) {
        Ok(meaning) => meaning,
        Err(errors) => {
            diagnostics.extend(errors);
            return None;
        }
    };
    let mut paths = Vec::with_capacity(routes.len());
    let mut sound = true;
    for route in routes {
        match nests::path(&statements, &meaning, route) {
            Ok(path) => paths.push(path),
            Err(errors) => {
                diagnostics.extend(errors);
                sound = false;
            }
        }
    }
    sound.then_some(Compiled { core: meaning.core, paths, states })
}
