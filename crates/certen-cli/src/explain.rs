//! `certen explain`: a program at every stage of the road.

use std::path::PathBuf;

use certen::road::dialects::algebra::{Analysis, Defined};
use certen::{ANALYSED_STATEMENTS, Call, Module, Name};
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

impl Stage {
    /// The stage that this option names.
    fn of_the_road(self) -> Option<certen::Stage> {
        certen::Stage::named(self.to_possible_value()?.get_name())
    }
}

pub fn explain(args: &ExplainArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let call = args.dims.iter().fold(Call::new(), |call, (name, size)| call.dim(*name, *size));
    let options = args.entry.options(&args.common, Some(&call));
    let module = Module::from_file(&args.file, &options).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    let only: Vec<certen::Stage> = args.only.iter().filter_map(|stage| stage.of_the_road()).collect();
    let sections = module.explain(&only, &args.dims).map_err(|f| refused(&report, &f))?;
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
