//! `certen explain`: a program at every stage of the road.

use std::path::PathBuf;

use certen::road::core::Program;
use certen::road::dialects::algebra::{Analysis, Defined};
use certen::road::index::Ix;
use certen::road::rewrite::Agreement;
use certen::{Call, Failure, Module, Name, Optimised};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::report::{Report, list};
use crate::{Common, Entry, Outcome, refused};

#[derive(Args)]
pub struct ExplainArgs {
    /// The program
    file: PathBuf,
    /// Show only these stages
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Stage>,
    /// A size at which to count multiplications: `n=100`
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = crate::given::dim)]
    dims: Vec<(Name, i64)>,
    #[command(flatten)]
    entry: Entry,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Stage {
    /// A `.ten` program as the checker understood it: one function for each instance
    Written,
    /// … with the bounds of all indices written out
    Bounds,
    /// … without dots in patterns
    Dots,
    /// … with comprehensions as with-loops
    WithLoops,
    /// … with what each function demands of its arguments
    Demands,
    /// The typing derivation of each statement
    Typed,
    /// What each statement reads, whether it is dead, can be computed in place, and shares values with others
    Analysis,
    /// The program in Core
    Core,
    /// How much of each tensor in Core is padding: its pad type
    Padding,
    /// How many constructs that move elements the program in Core has
    Reshapes,
    /// Which laws made the program simpler, and what it is then
    Laws,
    /// Which contractions were lifted, and the Core program that loops are made from
    Optimised,
    /// The loops
    Loops,
    /// The C code
    C,
    /// How many multiplications it makes
    Count,
}

/// How many lines a statement's derivation may have.
const DERIVATION_LINES: usize = 200;

/// How many statements the analyses are shown of.
const ANALYSED_STATEMENTS: usize = 200;

pub fn explain(args: &ExplainArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let call = args.dims.iter().fold(Call::new(), |call, (name, size)| call.dim(*name, *size));
    let options = args.entry.options(&args.common, Some(&call));
    let module = Module::from_file(&args.file, &options).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    let wanted = |stage| args.only.is_empty() || args.only.contains(&stage);
    let mut sections: Vec<(&str, String)> = Vec::new();
    let passes = [Stage::Written, Stage::Bounds, Stage::Dots, Stage::WithLoops, Stage::Demands];
    if passes.into_iter().any(wanted) {
        let name = |stage: &Stage| stage.to_possible_value().map(|value| value.get_name().to_owned());
        let is_wanted =
            |found: &str| passes.iter().any(|stage| wanted(*stage) && name(stage).as_deref() == Some(found));
        sections.extend(module.stages().into_iter().filter(|(found, _)| is_wanted(found)));
    }
    if wanted(Stage::Typed)
        && let Some(typed) = module.typed()
    {
        let derivations = (0..typed.program.stmts.len()).map(|stmt| typed.derivation(stmt, DERIVATION_LINES));
        sections.push(("typed", derivations.collect::<Vec<_>>().join("\n")));
    }
    let analysed = module.typed().filter(|_| wanted(Stage::Analysis));
    if let Some(typed) = analysed {
        sections.push(("analysis", typed.analysis_text(module.sources(), ANALYSED_STATEMENTS)));
    }
    if wanted(Stage::Core) {
        sections.push(("core", module.core().to_string()));
    }
    let padded = if wanted(Stage::Padding) { module.padding() } else { Vec::new() };
    if !padded.is_empty() {
        let lines = padded.iter().map(|(name, ty)| format!("{name} : {ty}\n"));
        sections.push(("padding", lines.collect()));
    } else if args.only.contains(&Stage::Padding) {
        sections.push(("padding", "nothing is padded, split, guarded or cut\n".into()));
    }
    // Only where it is asked for: that everything has generations says nothing.
    if args.only.contains(&Stage::Reshapes) {
        sections.push(("reshapes", format!("{}\n", module.core().reshapes())));
    }
    if wanted(Stage::Laws) && module.typed().is_some() {
        sections.push(("laws", module.laws().map_err(|f| refused(&report, &f))?));
    }
    // A construct that cannot be lowered yet is a remark here, not a failure: the other stages are worth seeing.
    let or_remark = |result: Result<String, Failure>| result.unwrap_or_else(|failure| format!("{failure}\n"));
    if wanted(Stage::Optimised) {
        sections.push(("optimised", or_remark(optimised(&module))));
    }
    if wanted(Stage::Loops) {
        sections.push(("loops", or_remark(module.loops().map(|loops| loops.to_string()))));
    }
    if wanted(Stage::C) {
        sections.push(("c", or_remark(module.c().map(|c| c.kernel))));
    }
    if wanted(Stage::Count) {
        sections.push(("multiplications", count(&module, &args.dims)));
    }
    if args.common.json {
        let mut stages: serde_json::Map<_, _> =
            sections.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
        if !padded.is_empty() {
            let each = padded.iter().map(|(name, ty)| (name.to_string(), ty.to_string().into()));
            stages.insert("padding".into(), serde_json::Value::Object(each.collect()));
        }
        if let Some(typed) = analysed {
            let each = typed.analysis(module.sources(), ANALYSED_STATEMENTS);
            stages.insert("analysis".into(), each.iter().map(analysis).collect());
        }
        let warnings = list(module.sources(), module.warnings());
        report.json(&json!({"ok": true, "diagnostics": warnings, "stages": stages}));
    } else {
        let texts: Vec<String> = sections.iter().map(|(name, text)| format!("== {name} ==\n{text}")).collect();
        report.text(&texts.join("\n"));
    }
    Ok(())
}

/// What the analyses say of a statement.
fn analysis(stmt: &Analysis) -> serde_json::Value {
    let from = |defined: &Defined| match defined {
        Defined::Line(line) => json!(line),
        Defined::Input => json!("input"),
        Defined::Nowhere => json!(null),
    };
    let reads: serde_json::Map<_, _> = stmt.reads.iter().map(|(name, at)| (name.to_string(), from(at))).collect();
    json!({
        "line": stmt.line,
        "target": stmt.target.as_str(),
        "reads": reads,
        "live": stmt.live,
        "in_place": stmt.in_place,
        "why": stmt.why,
        "shared": stmt.shared,
    })
}

/// What was lifted, how it compares with the program as written, and the program that loops are made from.
fn optimised(module: &Module) -> Result<String, Failure> {
    let Some(Optimised { program, report, agreement, .. }) = module.optimisation()? else {
        return Ok("nothing to optimise: the program is compiled as written\n".into());
    };
    let checked = match agreement {
        Agreement::Agrees { elements, smaller } => {
            let sizes = if *smaller { ", both at smaller sizes" } else { "" };
            format!("checked: {elements} elements agree with the program as written{sizes}")
        }
        Agreement::OutOfBudget { elements: 0 } => "not checked: a single element would take too long".into(),
        Agreement::OutOfBudget { elements } => {
            format!("checked: {elements} elements agree with the program as written; more would take too long")
        }
        Agreement::Differs { .. } => "checked: it differs".into(),
    };
    let lifted = if report.contractions.is_empty() { "nothing was lifted\n".into() } else { report.to_string() };
    Ok(format!("{lifted}{checked}\n\n{program}"))
}

/// The numbers of multiplications, as written and optimised, as formulas and as numbers where the sizes are known.
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
    let optimised = match module.optimisation() {
        Ok(Some(optimised)) => format!("{} optimised\n", counted(&optimised.program)),
        Ok(None) => "nothing to optimise\n".into(),
        Err(failure) => format!("{failure}\n"),
    };
    format!("{} as written\n{optimised}({how})\n", counted(module.core()))
}
