//! Where the loops of a program begin, before its schedule.
//!
//! Mostly that is what lowering makes of the optimised program. A `codegen` list of a TeML program brings nests of its
//! own, and a derived function is lowered from the program that its rewrites end with. Needs: what begins elsewhere says
//! whether it is equal to the program by construction; if it is not, the comparison with the meaning has to reach
//! everything, as for a step that is not proved.

use std::sync::Arc;

use certen_core::{Program, TensorType, TypeError};
use certen_index::{Condition, Status};
use certen_loops::{FpMode, LoopProgram, in_place, lower, verify_changed, with_output_types};
use certen_schedule::solved;
use certen_syntax::{Code, Diagnostic, Remedy};
use certen_teml::{Compiled, Path};

use crate::blame::bug;
use crate::choice::Choice;
use crate::derived::Derivations;
use crate::options::is_strict;

/// Where the loops of a program begin.
#[derive(Clone, Debug, Default)]
pub(crate) enum Begin {
    /// With what lowering makes of the optimised program.
    #[default]
    Lowering,
    /// With the nests of a `codegen` list.
    Codegen(Arc<Path>),
    /// With what lowering makes of a program that is derived from this one.
    Derived(Derivations),
}

impl Begin {
    /// The path of a TeML program that is chosen: the first, unless one is named.
    pub fn of_teml(program: &Compiled, choice: &Choice) -> Begin {
        let path = match choice {
            Choice::Default => program.paths.first(),
            Choice::Variant(name) => program.paths.iter().find(|path| path.name == *name),
            Choice::None | Choice::Auto | Choice::Text { .. } => None,
        };
        path.map_or(Begin::Lowering, |path| Begin::Codegen(Arc::new(path.clone())))
    }

    /// Whether nothing says how its loops are made.
    pub fn is_lowering(&self) -> bool {
        matches!(self, Begin::Lowering)
    }

    /// The derivations, if it is derived.
    pub fn derivations(&self) -> Option<&Derivations> {
        match self {
            Begin::Derived(derivations) => Some(derivations),
            Begin::Lowering | Begin::Codegen(_) => None,
        }
    }

    /// The loops that a schedule begins with: those that lowering makes of `program`, unless they begin elsewhere.
    pub fn lowered(&self, core: &Program, program: &Program, fp: FpMode) -> Result<LoopProgram, Diagnostic> {
        if let Begin::Codegen(path) = self {
            if path.lowered.is_none() || !is_strict(core, fp) {
                return Ok(path.loops.clone());
            }
            let text = format!("`{}` distributes products over sums, which strict floating point forbids", path.name);
            let error = Diagnostic::error(Code::E0803, path.span, text);
            return Err(error.help("`contract` keeps the sum in a tensor of its own"));
        }
        let lowered = in_place(lower(program, fp)?);
        // What is shown of a loop with a condition is not always shown of the iteration that it picks.
        let solved = solved(&lowered).filter(|solved| verify_changed(solved, &lowered).is_empty());
        let lowered = solved.unwrap_or(lowered);
        if self.derivations().is_none() {
            return Ok(lowered);
        }
        // Callers, and certificates, have the types that the meaning gives to the outputs.
        let types = core.types();
        let types: Vec<TensorType> = core.outputs.iter().filter_map(|(_, shown)| types.get(shown).cloned()).collect();
        with_output_types(lowered, &types).map_err(|TypeError(text)| {
            bug(format!("after `lowered`: an output of the derived program has another type: {text}"))
        })
    }

    /// What was done before the first step of the schedule, and what is known of it.
    pub fn taken(&self) -> Vec<(String, Vec<Condition>)> {
        match self {
            Begin::Lowering => Vec::new(),
            Begin::Codegen(path) => {
                let status = if path.in_order { Status::Proved(Vec::new()) } else { Status::Open };
                let what =
                    "every output is computed by the program's own statements, each on the values that it has there";
                let mut conditions = vec![Condition { what: what.into(), about: None, status }];
                if path.lowered.is_some() {
                    let what = "products are distributed over sums, by the laws of a ring";
                    conditions.push(Condition { what: what.into(), about: None, status: Status::Proved(Vec::new()) });
                }
                vec![(format!("codegen of `{}`", path.name), conditions)]
            }
            Begin::Derived(derivations) => {
                derivations.taken().map(|taken| (taken.step.to_string(), taken.conditions.clone())).collect()
            }
        }
    }

    /// Why it is not equal to the program by construction, if it is not.
    pub fn doubt(&self) -> Option<Diagnostic> {
        match self {
            Begin::Codegen(path) if !path.in_order => {
                let text = format!("`{}` does not compute the program's statements in their order", path.name);
                Some(Diagnostic::error(Code::E0805, path.span, text))
            }
            Begin::Derived(derivations) => derivations.doubt(),
            Begin::Lowering | Begin::Codegen(_) => None,
        }
    }

    /// The numbers that a derivation is given, in order.
    pub fn numbers(&self) -> Vec<i64> {
        match self {
            Begin::Derived(derivations) => derivations.numbers(),
            Begin::Lowering | Begin::Codegen(_) => Vec::new(),
        }
    }

    /// A derivation with other numbers, in the same order; none if it has none.
    pub fn with_numbers(&self, numbers: &mut dyn Iterator<Item = i64>) -> Option<Begin> {
        match self {
            Begin::Derived(derivations) if !derivations.numbers().is_empty() => {
                Some(Begin::Derived(derivations.with_numbers(numbers)))
            }
            _ => None,
        }
    }

    /// The error for loops that differ from the program before any step is taken, unless the compiler is to blame.
    /// Steps are shown as they are `written`, also where they are taken with smaller numbers. `strict` says that operations
    /// on floats have to be made as written; nests that sum over several loops at once do not do that.
    pub fn blamed(
        &self,
        core: &Program,
        written: &Begin,
        difference: &dyn std::fmt::Display,
        strict: bool,
    ) -> Option<Diagnostic> {
        match self {
            Begin::Codegen(path) if !path.in_order => {
                let text = format!("`{}` does not compute what the program means: {difference}", path.name);
                let error = Diagnostic::error(Code::E0705, path.span, text);
                Some(error.help("the loops of all statements, in the order of the statements, are right"))
            }
            Begin::Codegen(path) if strict => {
                let text = format!("`{}` adds floats in another order than the program: {difference}", path.name);
                let error = Diagnostic::error(Code::E0803, path.span, text);
                Some(error.note("strict floating point forbids that").remedy(Remedy::Fp("relaxed", "allows it")))
            }
            Begin::Derived(derivations) => {
                let written = if let Begin::Derived(written) = written { written } else { derivations };
                derivations.blamed(core, written, difference)
            }
            Begin::Lowering | Begin::Codegen(_) => None,
        }
    }
}
