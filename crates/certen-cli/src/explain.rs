//! `certen explain`: a program at every stage of the road.

use std::path::PathBuf;

use certen::road::core::Program;
use certen::road::index::Ix;
use certen::road::rewrite::Agreement;
use certen::{Failure, Module, Name, Optimised};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::report::{Report, list};
use crate::{Common, Outcome, refused};

#[derive(Args)]
pub struct ExplainArgs {
    /// The program
    file: PathBuf,
    /// Show only these stages
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Stage>,
    /// A size at which to count multiplications: `n=100`
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = crate::run::dim)]
    dims: Vec<(Name, i64)>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Stage {
    /// The typing derivation of each statement
    Typed,
    /// The program in Core
    Core,
    /// Which laws made the program simpler, and what it is then
    Laws,
    /// What was lifted, and the Core program that loops are made from
    Lifted,
    /// The loops
    Loops,
    /// The C code
    C,
    /// How many multiplications it makes
    Count,
}

/// How many lines a statement's derivation may have.
const DERIVATION_LINES: usize = 200;

pub fn explain(args: &ExplainArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let module = Module::from_file(&args.file, &args.common.options()).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    let wanted = |stage| args.only.is_empty() || args.only.contains(&stage);
    let mut sections: Vec<(&str, String)> = Vec::new();
    if wanted(Stage::Typed)
        && let Some(typed) = module.typed()
    {
        let derivations = (0..typed.program.stmts.len()).map(|stmt| typed.derivation(stmt, DERIVATION_LINES));
        sections.push(("typed", derivations.collect::<Vec<_>>().join("\n")));
    }
    if wanted(Stage::Core) {
        sections.push(("core", module.core().to_string()));
    }
    if wanted(Stage::Laws) && module.typed().is_some() {
        sections.push(("laws", module.laws().map_err(|f| refused(&report, &f))?));
    }
    // A construct that cannot be lowered yet is a remark here, not a failure: the other stages are worth seeing.
    let or_remark = |result: Result<String, Failure>| result.unwrap_or_else(|failure| format!("{failure}\n"));
    if wanted(Stage::Lifted) {
        sections.push(("lifted", or_remark(lifted(&module))));
    }
    if wanted(Stage::Loops) {
        sections.push(("loops", or_remark(module.loops().map(|loops| loops.to_string()))));
    }
    if wanted(Stage::C) {
        sections.push(("c", or_remark(module.c().map(|c| c.source))));
    }
    if wanted(Stage::Count) {
        sections.push(("multiplications", count(&module, &args.dims)));
    }
    if args.common.json {
        let stages: serde_json::Map<_, _> =
            sections.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
        let warnings = list(module.sources(), module.warnings());
        report.json(&json!({"ok": true, "diagnostics": warnings, "stages": stages}));
    } else {
        let texts: Vec<String> = sections.iter().map(|(name, text)| format!("== {name} ==\n{text}")).collect();
        report.text(&texts.join("\n"));
    }
    Ok(())
}

/// What was lifted, how it compares with the program as written, and the program that loops are made from.
fn lifted(module: &Module) -> Result<String, Failure> {
    let Some(Optimised { program, report, agreement, .. }) = module.optimisation()? else {
        return Ok("nothing was lifted: the program is compiled as written\n".into());
    };
    let checked = match agreement {
        Agreement::Agrees { elements } => format!("checked: {elements} elements agree with the program as written"),
        Agreement::OutOfBudget { elements } => {
            format!("checked: {elements} elements agree with the program as written; more would take too long")
        }
        Agreement::Differs { .. } => "checked: it differs".into(),
    };
    let nothing = "nothing was lifted: the program is compiled as the laws have simplified it\n";
    let lifted = if report.contractions.is_empty() { nothing.into() } else { report.to_string() };
    Ok(format!("{lifted}{checked}\n\n{program}"))
}

/// The numbers of multiplications, as written and lifted, as formulas and as numbers where the sizes are known.
fn count(module: &Module, dims: &[(Name, i64)]) -> String {
    let value = |name: Name| dims.iter().find(|(n, _)| *n == name).map(|(_, size)| *size);
    let number = |formula: &Ix| match formula.as_constant() {
        Some(_) => String::new(),
        None => formula.eval(&value).map_or_else(|_| String::new(), |number| format!(" = {number}")),
    };
    let counted = |program: &Program| match program.multiplications() {
        Ok(formula) => format!("{formula}{}", number(&formula)),
        Err(error) => format!("cannot be counted: {error}"),
    };
    let how = "counted in the Core programs: one for each `*` and each factor of a product, times the ranges around it";
    let lifted = match module.optimisation() {
        Ok(Some(optimised)) => {
            let how = if optimised.report.contractions.is_empty() { "simplified" } else { "lifted" };
            format!("{} {how}\n", counted(&optimised.program))
        }
        Ok(None) => "no fewer lifted\n".into(),
        Err(failure) => format!("{failure}\n"),
    };
    format!("{} as written\n{lifted}({how})\n", counted(module.core()))
}
