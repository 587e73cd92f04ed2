//! Optimisation: the program that loops are made from, rewritten and compared with the one that was written.
//!
//! Laws of the tensor algebra make a program of TeIL or the model language simpler (TeIL, Sec. 3.6), common
//! subexpressions are computed once (model language, Sec. 5), then contractions are lifted in Core, and what is the same for many
//! elements is computed once. What may change a result of floats is left out except with
//! [`FpMode::Relaxed`](crate::FpMode::Relaxed).

use certen_core::{ElemType, Program};
use certen_dialects::algebra::{self, Typed};
use certen_lift::{LiftReport, Lifted, computed_once, lift, lift_at, never_dearer};
use certen_loops::FpMode;
use certen_syntax::{Diagnostic, Diagnostics, Name, Remedy};
use certen_validate::{Agreement, agree};
use rustc_hash::FxHashMap;

use crate::blame::bug;
use crate::options::{Options, mode};

/// Steps of the evaluator that a comparison may take: some ten milliseconds.
const BUDGET: u64 = 100_000;

/// A rewritten program, what was done, and how it compares with the program as written.
#[derive(Clone, Debug)]
pub struct Optimised {
    /// The program.
    pub program: Program,
    /// Which contractions were lifted.
    pub report: LiftReport,
    /// What the comparison found; it did not find a difference.
    pub agreement: Agreement,
}

impl Optimised {
    /// A program that nothing was lifted in, and that is compared with its meaning elsewhere.
    pub(crate) fn unchanged(program: Program) -> Optimised {
        Optimised { program, report: LiftReport::default(), agreement: Agreement::OutOfBudget { elements: 0 } }
    }
}

/// Rewrites a program; none if there was nothing to do.
pub(crate) fn optimise(
    core: &Program,
    typed: Option<&Typed>,
    options: &Options,
) -> Result<Option<Optimised>, Diagnostic> {
    let strict = mode(core, options.fp) != FpMode::Relaxed;
    let Simplified { plain, shared } = match typed {
        Some(typed) => simplify(typed, core, options.elem, strict)?,
        None => Simplified::default(),
    };
    let lifted = |program: &Program| {
        once(match strict {
            true => Lifted { program: program.clone(), report: LiftReport::default() },
            false => lift(program),
        })
    };
    let changed = |lifted: &Lifted| plain.is_some() || !lifted.report.is_empty();
    let plain_lifted = lifted(plain.as_ref().unwrap_or(core));
    // A contraction that is shared is not lifted together with those around it: what comes to less is taken.
    let shared = shared.map(|shared| lifted(&shared)).filter(|s| never_dearer(&plain_lifted.program, &s.program));
    let lifted = match shared {
        Some(shared) => shared,
        None if changed(&plain_lifted) => plain_lifted,
        None => return Ok(None),
    };
    compared(core, lifted).map(Some)
}

/// The order of contractions that is best for given sizes, if it saves a fifth of the multiplications or more beside another
/// rewritten form of the program.
pub(crate) fn lifted_at(core: &Program, other: &Program, sizes: &[i64]) -> Option<Lifted> {
    let sizes: FxHashMap<Name, i64> = core.sizes.iter().copied().zip(sizes.iter().copied()).collect();
    let count = |program: &Program| program.multiplications().ok()?.eval(&|name| sizes.get(&name).copied()).ok();
    let lifted = once(lift_at(core, sizes.clone()));
    let (before, after) = (count(other)?, count(&lifted.program)?);
    (after.saturating_mul(5) <= before.saturating_mul(4)).then_some(lifted)
}

/// With what is the same for many elements computed once.
fn once(mut lifted: Lifted) -> Lifted {
    lifted.report.kept = computed_once(&mut lifted.program);
    lifted
}

/// A rewritten program that was compared with the one that was written.
pub(crate) fn compared(core: &Program, Lifted { program, report }: Lifted) -> Result<Optimised, Diagnostic> {
    match agree(core, &program, BUDGET) {
        Agreement::Differs { output, index, sizes, values: [before, after] } => {
            let sizes: String = sizes.iter().map(|(name, size)| format!(", {name} = {size}")).collect();
            let error = bug(format!("an optimisation changed {output}{index:?} from {before} to {after}{sizes}"));
            Err(error.remedy(Remedy::Fp("strict", "leaves out what rounds floats differently")))
        }
        agreement => Ok(Optimised { program, report, agreement }),
    }
}

/// A program in Core, after laws, and with common subexpressions computed once, where these change anything.
#[derive(Default)]
struct Simplified {
    plain: Option<Program>,
    shared: Option<Program>,
}

/// Laws keep types, so what they make is well-typed; if that cannot be shown, the program stays as written.
fn simplify(typed: &Typed, core: &Program, elem: ElemType, strict: bool) -> Result<Simplified, Diagnostic> {
    let (simplified, laws) = typed.simplified(strict);
    let checked = if laws.is_empty() { None } else { algebra::check(simplified, &mut Diagnostics::new()) };
    let plain = checked.as_ref().map(|checked| algebra::elaborate(checked, core.name, elem)).transpose();
    let shared = algebra::elaborate_shared(checked.as_ref().unwrap_or(typed), core.name, elem);
    Ok(Simplified { plain: plain.map_err(|error| *error)?, shared: shared.map_err(|error| *error)? })
}
