//! TeML: a meta-language whose programs make tensor expressions and loop nests ("Meta-programming for Cross-Domain Tensor
//! Optimizations").

pub mod assignment;
mod compiled;

pub use assignment::{Assignment, Begin, Value};
pub use compiled::{Compiled, Path};

/// Reads, evaluates and elaborates a program.
pub fn compile(
    _: &certen_syntax::Sources,
    _: certen_syntax::FileId,
    _: certen_syntax::Name,
    _: certen_core::ElemType,
    diagnostics: &mut certen_syntax::Diagnostics,
) -> Option<Compiled> {
    diagnostics.push(certen_syntax::Diagnostic::error(certen_syntax::Code::E0407, None, "TeML is not in this version"));
    None
}
