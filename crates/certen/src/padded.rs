//! Runs with padding: the model language's Fig. 13 and 14, in any domain.

use std::time::Instant;

use certen_dialects::algebra::Notation;
use certen_figures::padded::warning;
use certen_runtime::available_bytes;
use certen_syntax::{Code, Diagnostic, Name};

use crate::call::Call;
use crate::failure::Failure;
use crate::pipeline::Module;
use crate::run::{DomainChoice, Output, Timing, Way};

/// A run with padding.
pub struct PaddedRun {
    /// The outputs, without the padding.
    pub outputs: Vec<Output>,
    /// How long it took.
    pub timing: Timing,
    /// A warning for each statement after which padding is not zero: Thm. 2 does not hold there.
    pub spills: Vec<Diagnostic>,
}

impl Module {
    /// Evaluates a model language program with every size rounded up to a multiple of a vector length, and watches the
    /// padding. Statements that reach no output are left out.
    ///
    /// # Errors
    /// If the program is in another dialect, the vector length is less than 1, or as [`Module::run_with`].
    pub fn run_padded(&self, call: &Call, vector: i64, domain: DomainChoice, fuel: u64) -> Result<PaddedRun, Failure> {
        let option = |text: String| self.refuse(Diagnostic::error(Code::E0407, None, text));
        let other = || {
            let error = Diagnostic::error(Code::E0407, None, "only model language programs are evaluated with padding");
            self.refuse(error.help("native code can pad its buffers: `--backend native`"))
        };
        let typed = self.typed().filter(|typed| typed.program.notation == Notation::Model);
        let typed = typed.ok_or_else(other)?;
        if vector < 1 {
            return Err(option(format!("a vector length is at least 1, not {vector}")));
        }
        let bound = call.bind(self, None, |_| domain.bytes()).map_err(|error| self.refuse(*error))?;
        let value = self.size(&bound);
        let bytes = |name: Name| {
            let sizes = typed.declared(name).into_iter().flatten();
            sizes.fold(domain.bytes() as u128, |bytes, (size, _)| {
                let size = size.eval(&value).map_or(u128::MAX, |size| size.max(0) as u128);
                bytes.saturating_mul(size.div_ceil(vector as u128).saturating_mul(vector as u128))
            })
        };
        let total = typed.program.decls.iter().fold(0u128, |total, decl| total.saturating_add(bytes(decl.name)));
        let limit = available_bytes().map_or(i64::MAX as u128, u128::from);
        if total > limit {
            let text = format!("the padded tensors need {} MiB, but {} MiB are free", total >> 20, limit >> 20);
            return Err(self.refuse(Diagnostic::error(Code::E0408, None, text)));
        }
        let begin = Instant::now();
        let (outputs, spills) = self.run_interp(&bound, domain, fuel, Way::Padded(typed, vector))?;
        let timing = Timing { best: begin.elapsed(), runs: 1, compile: None, operations: None, threads: 1 };
        let spills = spills.iter().map(|spill| warning(typed, spill)).collect();
        Ok(PaddedRun { outputs, timing, spills })
    }
}
