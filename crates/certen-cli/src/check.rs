//! `certen check`: are these programs accepted?

use std::path::PathBuf;

use certen::Module;
use certen::road::core::Program;
use clap::Args;
use serde_json::json;

use crate::report::{Report, list};
use crate::{Common, Outcome, shown};

#[derive(Args)]
pub struct CheckArgs {
    /// The programs
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    common: Common,
}

pub fn check(args: &CheckArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let mut worst = None;
    let mut diagnostics = Vec::new();
    for path in &args.files {
        match Module::from_file(path, &args.common.options()) {
            Ok(module) => {
                if args.common.json {
                    diagnostics.extend(list(module.sources(), module.warnings()));
                } else {
                    report.warnings(module.sources(), module.warnings());
                    report.text(&format!("{}: ok  {}\n", shown(path), signature(module.core())));
                }
            }
            Err(failure) => {
                worst = worst.max(Some(failure.blame()));
                if args.common.json {
                    diagnostics.extend(list(failure.sources(), failure.diagnostics()));
                } else {
                    report.failure(&failure);
                }
            }
        }
    }
    if args.common.json {
        report.json(&json!({"ok": worst.is_none(), "diagnostics": diagnostics}));
    }
    worst.map_or(Ok(()), Err)
}

/// A program's interface on one line.
pub fn signature(program: &Program) -> String {
    let types = program.types();
    let inputs: Vec<String> = program.inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect();
    let output = |(name, source): &(_, _)| types.get(source).map(|ty| format!("{name}: {ty}"));
    let outputs: Vec<String> = program.outputs.iter().filter_map(output).collect();
    let list = |tensors: Vec<String>| match tensors.len() {
        0..=20 => tensors.join(", "),
        many => format!("{}, … {} more", tensors[..19].join(", "), many - 19),
    };
    format!("{}({}) -> ({})", program.name, list(inputs), list(outputs))
}
