//! Optimisation: the program that loops are made from, rewritten and compared with the one that was written.
//!
//! Laws of the tensor algebra make a program of TeIL or the model language simpler (TeIL, Sec. 3.6); then contractions are
//! lifted in Core. What may change the rounding of floats is left out with [`FpMode::Strict`].

use certen_core::{ElemType, Program};
use certen_dialects::algebra::{self, Applied, Typed};
use certen_rewrite::{Agreement, Lifted, Report, agree, lift};
use certen_syntax::{Code, Diagnostic, Diagnostics};

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
    /// Which laws were applied.
    pub laws: Vec<Applied>,
    /// Which contractions were lifted.
    pub report: Report,
    /// What the comparison found; it did not find a difference.
    pub agreement: Agreement,
}

/// Whether every operation has to be made as written: over floats, if the mode says so. Integers are a ring.
pub(crate) fn is_strict(core: &Program, fp: FpMode) -> bool {
    fp == FpMode::Strict && core.bindings.iter().any(|binding| core.terms.ty(binding.term).elem.is_float())
}

/// Rewrites a program; none if there was nothing to do.
pub(crate) fn optimise(core: &Program, typed: Option<&Typed>, fp: FpMode) -> Result<Option<Optimised>, Diagnostic> {
    let strict = is_strict(core, fp);
    let (simplified, laws) = typed.map(|typed| typed.simplified(strict)).unwrap_or_default();
    let simpler = if laws.is_empty() { None } else { Some(elaborated(simplified, core)?) };
    let start = simpler.as_ref().unwrap_or(core);
    let Lifted { program, report } = match strict {
        true => Lifted { program: start.clone(), report: Report::default() },
        false => lift(start),
    };
    if laws.is_empty() && report.contractions.is_empty() {
        return Ok(None);
    }
    match agree(core, &program, BUDGET) {
        Agreement::Differs { output, index, sizes, values: [before, after] } => {
            let sizes: String = sizes.iter().map(|(name, size)| format!(", {name} = {size}")).collect();
            let error = wrong(format!("an optimisation changed {output}{index:?} from {before} to {after}{sizes}"));
            Err(error.help("`--fp strict` leaves out what rounds floats differently"))
        }
        agreement => Ok(Some(Optimised { program, laws, report, agreement })),
    }
}

/// A program that laws have simplified, in Core. The laws keep types, so it is well-typed.
fn elaborated(simplified: algebra::Program, core: &Program) -> Result<Program, Diagnostic> {
    let elem = core.bindings.first().map_or(ElemType::F64, |binding| core.terms.ty(binding.term).elem);
    let mut found = Diagnostics::new();
    let Some(typed) = algebra::check(simplified, &mut found) else {
        let why = found.into_sorted().into_iter().next().map_or_else(String::new, |error| error.message);
        return Err(wrong(format!("a law made the program ill-typed: {why}")));
    };
    algebra::elaborate(&typed, core.name, elem).map_err(|error| *error)
}

fn wrong(text: String) -> Diagnostic {
    Diagnostic::error(Code::E0704, None, text).note("this is a bug in Certen; no code was made")
}
