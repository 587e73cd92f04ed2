//! `certen trace`: how one element is computed.

use std::path::PathBuf;

use certen::road::core::domain::Scalar;
use certen::road::core::{DEFAULT_FUEL, Limits, Trace, TraceStep};
use certen::{Module, Name};
use clap::Args;
use serde_json::{Value, json};

use crate::common::{Common, EntryArgs, Outcome, refused};
use crate::given::{InputArgs, place};
use crate::report::{Report, list};
use crate::show;

#[derive(Args)]
pub struct TraceArgs {
    /// The program
    file: PathBuf,
    /// The element of an output: `C[0,2]`, counted from 0
    #[arg(long, value_name = "NAME[I,J,…]", value_parser = place)]
    at: (Name, Vec<i64>),
    /// How many named tensors are followed inside each other
    #[arg(long, default_value_t = Limits::default().depth)]
    depth: usize,
    /// How many terms of a reduction are shown
    #[arg(long, default_value_t = Limits::default().terms)]
    terms: usize,
    #[command(flatten)]
    given: InputArgs,
    /// How many steps the evaluator may take
    #[arg(long, default_value_t = DEFAULT_FUEL)]
    fuel: u64,
    #[command(flatten)]
    entry: EntryArgs,
    #[command(flatten)]
    common: Common,
}

pub fn trace(args: &TraceArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let call = args.given.call().map_err(|error| report.error(error))?;
    let options = args.entry.options(&args.common, Some(&call));
    let module = Module::from_file(&args.file, &options).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    let (name, index) = &args.at;
    let limits = Limits { depth: args.depth, terms: args.terms, ..Limits::default() };
    let trace = module.trace(&call, *name, index, limits, args.fuel).map_err(|f| refused(&report, &f))?;
    if args.common.json {
        let warnings = list(module.sources(), module.warnings());
        report.json(&json!({"ok": true, "diagnostics": warnings, "trace": as_json(&trace)}));
    } else {
        report.text(&text(&trace));
    }
    Ok(())
}

/// A step on a line, what led to it below and further in.
fn text(trace: &Trace<Scalar>) -> String {
    enum Piece<'a> {
        Step(&'a Trace<Scalar>, usize),
        LeftOut(u64, usize),
    }
    let mut text = String::new();
    let mut todo = vec![Piece::Step(trace, 0)];
    while let Some(piece) = todo.pop() {
        match piece {
            Piece::LeftOut(count, depth) => text += &format!("{}… {count} more\n", "  ".repeat(depth)),
            Piece::Step(Trace { step, value, parts, left_out }, depth) => {
                text += &format!("{}{} {value}\n", "  ".repeat(depth), named(step));
                if *left_out > 0 {
                    todo.push(Piece::LeftOut(*left_out, depth + 1));
                }
                todo.extend(parts.iter().rev().map(|part| Piece::Step(part, depth + 1)));
            }
        }
    }
    text
}

fn named(step: &TraceStep) -> String {
    match step {
        TraceStep::Read(name, index) if index.is_empty() => format!("{name} ="),
        TraceStep::Read(name, index) => format!("{name}{index:?} ="),
        TraceStep::Reduce { op, index, lo, hi } => format!("{} over {index} in {lo}..{hi} =", op.name()),
        TraceStep::Term(name, value) => format!("{name} = {value}:"),
        TraceStep::Iterate(times) => format!("iterate {times} times ="),
    }
}

/// The tree as nested values; its depth is limited by the trace's.
fn as_json(trace: &Trace<Scalar>) -> Value {
    let mut value = match &trace.step {
        TraceStep::Read(name, index) => json!({"read": name.as_str(), "index": index}),
        TraceStep::Reduce { op, index, lo, hi } => {
            json!({"reduce": op.name(), "over": index.as_str(), "from": lo, "to": hi})
        }
        TraceStep::Term(name, at) => json!({"term": name.as_str(), "at": at}),
        TraceStep::Iterate(times) => json!({"iterate": times}),
    };
    value["value"] = show::scalar(trace.value);
    value["parts"] = trace.parts.iter().map(as_json).collect();
    value["left_out"] = json!(trace.left_out);
    value
}
