//! `certen explain`: a program at every stage of the road.

use std::path::PathBuf;

use certen::road::dialects::algebra::{Analysis, Defined};
use certen::{ANALYSED_STATEMENTS, Call, Module, Name, Stage};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::report::{Report, list};
use crate::{Common, Entry, Outcome, refused};

#[derive(Args)]
pub struct ExplainArgs {
    /// The program
    file: PathBuf,
    /// Show only these stages
    #[arg(long, value_parser = stage(), value_delimiter = ',')]
    only: Vec<Stage>,
    /// A size at which to count multiplications: `n=100`
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = crate::given::dim)]
    dims: Vec<(Name, i64)>,
    #[command(flatten)]
    entry: Entry,
    #[command(flatten)]
    common: Common,
}

/// Reads the name of a stage.
fn stage() -> impl TypedValueParser<Value = Stage> {
    let values = Stage::ALL.iter().map(|stage| PossibleValue::new(stage.name()).help(stage.about()));
    PossibleValuesParser::new(values).try_map(|name| Stage::named(&name).ok_or("there is no such stage"))
}

pub fn explain(args: &ExplainArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let call = args.dims.iter().fold(Call::new(), |call, (name, size)| call.dim(*name, *size));
    let options = args.entry.options(&args.common, Some(&call));
    let module = Module::from_file(&args.file, &options).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    let sections = module.explain(&args.only, &args.dims).map_err(|f| refused(&report, &f))?;
    let wanted = |stage| args.only.is_empty() || args.only.contains(&stage);
    if args.common.json {
        let mut stages: serde_json::Map<_, _> =
            sections.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
        let padded = if wanted(Stage::Padding) { module.padding() } else { Vec::new() };
        if !padded.is_empty() {
            let each = padded.iter().map(|(name, ty)| (name.to_string(), ty.to_string().into()));
            stages.insert("padding".into(), serde_json::Value::Object(each.collect()));
        }
        if let Some(typed) = module.typed().filter(|_| wanted(Stage::Analysis)) {
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
