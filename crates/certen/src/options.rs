//! What can be chosen when a program is compiled.

use certen_core::{ElemType, Program};
use certen_lang::Known;
use certen_loops::FpMode;
use certen_runtime::Cpu;
use certen_syntax::Name;

use crate::choice::Choice;

/// Who computes the functions of mathematics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Math {
    /// Certen's recipes: in vectors, with the same bits everywhere.
    #[default]
    Own,
    /// The C library, where it has them: one element at a time, with bits that depend on it.
    Libm,
}

/// What can be chosen when a program is compiled.
#[derive(Clone, Debug)]
pub struct Options {
    /// The element type of dialects that do not name one.
    pub elem: ElemType,
    /// What may be assumed of floats.
    pub fp: FpMode,
    /// Who computes the functions of mathematics.
    pub math: Math,
    /// The function of a `.ten` file that is run: none for `main`, or the only one.
    pub function: Option<Name>,
    /// The ranks and element types that this function leaves open.
    pub known: Known,
    /// Whether threads may share loops. Results have the same bits either way.
    pub parallel: bool,
    /// The schedule of its loops.
    pub schedule: Choice,
    /// Whether a schedule is refused unless each of its steps is shown to keep the meaning, for all sizes.
    pub require_proof: bool,
    /// The instruction set of native code; by default what `$CERTEN_CPU` says, or the processor has.
    pub cpu: Option<Cpu>,
    /// A vector length: the rows of buffers that the program allocates are padded to multiples of it.
    pub vector: Option<i64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            elem: ElemType::F64,
            fp: FpMode::default(),
            math: Math::default(),
            function: None,
            known: Known::default(),
            parallel: true,
            schedule: Choice::default(),
            require_proof: false,
            cpu: None,
            vector: None,
        }
    }
}

/// What may be assumed of a program's floats: what the mode says, if there are any, also on the way to results of other
/// types. Integers are a ring.
pub(crate) fn mode(core: &Program, fp: FpMode) -> FpMode {
    let has_floats = core.terms.iter().any(|(id, _)| core.terms.ty(id).elem.is_float());
    if has_floats { fp } else { FpMode::Relaxed }
}

/// Whether every operation has to be made as written.
pub(crate) fn is_strict(core: &Program, fp: FpMode) -> bool {
    fp == FpMode::Strict && mode(core, fp) == FpMode::Strict
}
