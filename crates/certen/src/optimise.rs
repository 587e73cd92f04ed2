//! Optimisation: the program that loops are made from, rewritten and compared with the one that was written.

use certen_core::Program;
use certen_rewrite::{Agreement, Lifted, Report, agree, lift};
use certen_syntax::{Code, Diagnostic};

/// What may be assumed of floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FpMode {
    /// Sums and products may be computed in another order, with other roundings.
    #[default]
    Relaxed,
    /// Every operation is made as written.
    Strict,
}

/// Steps of the evaluator that a comparison may take: some ten milliseconds.
const BUDGET: u64 = 100_000;

/// A rewritten program, what was done, and how it compares with the program as written.
#[derive(Clone, Debug)]
pub struct Optimised {
    /// The program.
    pub program: Program,
    /// Which contractions were lifted.
    pub report: Report,
    /// What the comparison found; it did not find a difference.
    pub agreement: Agreement,
}

/// Rewrites a program; none if there was nothing to do.
pub(crate) fn optimise(core: &Program, fp: FpMode) -> Result<Option<Optimised>, Diagnostic> {
    let is_float = |ty: &certen_core::TensorType| ty.elem.is_float();
    if fp == FpMode::Strict && core.bindings.iter().any(|binding| is_float(core.terms.ty(binding.term))) {
        return Ok(None);
    }
    let Lifted { program, report } = lift(core);
    if report.contractions.is_empty() {
        return Ok(None);
    }
    match agree(core, &program, BUDGET) {
        Agreement::Differs { output, index, sizes, values: [before, after] } => {
            let sizes: String = sizes.iter().map(|(name, size)| format!(", {name} = {size}")).collect();
            let text = format!("an optimisation changed {output}{index:?} from {before} to {after}{sizes}");
            let error = Diagnostic::error(Code::E0704, None, text).note("this is a bug in Certen; no code was made");
            Err(error.help("`--fp strict` compiles programs over floats as they are written"))
        }
        agreement => Ok(Some(Optimised { program, report, agreement })),
    }
}
