//! A file checked as a whole: every function, every derivation, every schedule.

use std::path::Path;
use std::sync::Arc;

use certen_syntax::schedule::Step;
use certen_syntax::{Diagnostic, Diagnostics, Sources};

use crate::begin::Begin;
use crate::choice::Choice;
use crate::failure::Failure;
use crate::front::{Accepted, Front};
use crate::interface::declaration;
use crate::options::Options;
use crate::pipeline::Module;
use crate::ten::{CheckedFunction, TenFile};
use crate::texts::{Dialect, Imports, read_program};

/// An accepted file.
#[derive(Debug)]
pub struct Checked {
    /// The texts that the warnings point into.
    pub sources: Arc<Sources>,
    /// What is probably not meant.
    pub warnings: Vec<Diagnostic>,
    /// The interface of the program; of a `.ten` file, the signature of each of its functions.
    pub signatures: Vec<String>,
    /// What is derived: `derive g from f`, and what is known of it.
    pub derivations: Vec<(String, String)>,
    /// The schedules of the file's functions: `schedule fast for f`, and what is known of it.
    pub schedules: Vec<(String, String)>,
}

/// Checks a file, whatever its dialect. A `.ten` file needs no function that can be run; its derivations are made and its
/// schedules are applied, but for those of functions whose loops depend on a call.
///
/// # Errors
/// If it cannot be read, or is not accepted.
pub fn check(path: impl AsRef<Path>, options: &Options) -> Result<Checked, Failure> {
    let (name, text) = read_program(path.as_ref())?;
    if Dialect::required(&name)? == Dialect::Ten {
        return checked(&TenFile::read(&name, text, &mut Imports::from_disk(&name))?, options);
    }
    let module = Module::from_text(&name, text, options)?;
    let (signatures, schedules) = (vec![declaration(module.core())], paths(&module)?);
    let Accepted { sources, warnings, .. } = module.accepted;
    Ok(Checked { sources, warnings, signatures, derivations: Vec::new(), schedules })
}

/// The derivations and schedules of a file that is read.
pub(crate) fn checked(file: &TenFile, options: &Options) -> Result<Checked, Failure> {
    let mut diagnostics = Diagnostics::new();
    diagnostics.extend(file.warnings().iter().cloned());
    let (mut signatures, mut schedules, mut derivations) = (Vec::new(), Vec::new(), Vec::new());
    for function in file.functions(options) {
        let known = |count: usize, steps: &[Step]| known_of(file, &function, count, steps, options);
        match &function.derived {
            None => signatures.push(function.interface.signature.clone()),
            Some(derived) => match known(derived.steps.len(), &[]) {
                Ok(known) => derivations.push((format!("derive {} from {}", derived.name, derived.from), known)),
                // What cannot be derived has no loops that a schedule could change.
                Err(failure) => {
                    diagnostics.extend(failure.diagnostics().iter().cloned());
                    continue;
                }
            },
        }
        for schedule in &function.interface.schedules {
            let text = schedule.to_string();
            let head = text.split(" {").next().unwrap_or_default().to_owned();
            match known(schedule.steps.len(), &schedule.steps) {
                Ok(known) => schedules.push((head, known)),
                Err(failure) => diagnostics.extend(failure.diagnostics().iter().cloned()),
            }
        }
    }
    let (sources, is_wrong) = (file.sources().clone(), diagnostics.has_errors());
    let warnings = diagnostics.into_sorted();
    match is_wrong {
        true => Err(Failure::new(sources, warnings)),
        false => Ok(Checked { sources, warnings, signatures, derivations, schedules }),
    }
}

/// The programs of a file that have a schedule, perhaps one without steps, and need no call to be known.
pub(crate) fn scheduled(file: &TenFile, options: &Options) -> Vec<Module> {
    let module = |function: CheckedFunction| {
        let steps = function.interface.schedules.into_iter().next()?.steps;
        Some(made(file, function.core?, function.begin, &steps, options))
    };
    file.functions(options).into_iter().filter_map(module).collect()
}

fn made(file: &TenFile, core: certen_core::Program, begin: Begin, steps: &[Step], options: &Options) -> Module {
    let sources = file.sources().clone();
    let options = Options { schedule: Choice::None, ..options.clone() };
    Module::new(Accepted { sources, begin, steps: steps.into(), ..Accepted::core(core) }, &options)
}

/// The `codegen` statements of a TeML program, and what is known of each.
fn paths(module: &Module) -> Result<Vec<(String, String)>, Failure> {
    let Front::Teml(program) = &module.accepted.front else { return Ok(Vec::new()) };
    let known = |path: &certen_teml::Path| {
        let accepted = Accepted {
            sources: module.accepted.sources.clone(),
            begin: Begin::Codegen(Arc::new(path.clone())),
            steps: path.steps.clone().into(),
            ..Accepted::core(module.core().clone())
        };
        let options = Options { schedule: Choice::None, ..module.options.clone() };
        let known = equality(&Module::new(accepted, &options))?;
        Ok((format!("codegen {}", path.name), format!("{}, {known}", counted(path.steps.len()))))
    };
    program.paths.iter().map(known).collect()
}

/// What is known of a function's loops with this many steps of a derivation, then these of a schedule.
fn known_of(
    file: &TenFile,
    function: &CheckedFunction,
    count: usize,
    schedule: &[Step],
    options: &Options,
) -> Result<String, Failure> {
    let steps = counted(count);
    let Some(core) = &function.core else { return Ok(format!("{steps}, for loops that depend on the call")) };
    let module = made(file, core.clone(), function.begin.clone(), schedule, options);
    Ok(format!("{steps}, {}", equality(&module)?))
}

/// What is known of loops beside the program, once code can be made from them.
fn equality(module: &Module) -> Result<&'static str, Failure> {
    module.c()?;
    Ok(if module.validation()?.proved { "equality proved" } else { "equality tested" })
}

fn counted(steps: usize) -> String {
    if steps == 1 { "1 step".into() } else { format!("{steps} steps") }
}
