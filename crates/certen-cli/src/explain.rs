//! `certen explain`: a program at every stage of the road.

use std::path::PathBuf;

use certen::road::derive::Taken as Rewritten;
use certen::road::figures::analysis::{Analysis, Defined, analysis};
use certen::road::schedule::{Condition, Status, Taken, statements};
use certen::road::syntax::to_json;
use certen::{
    ANALYSED_STATEMENTS, Call, Choice, Failure, Line, Module, Name, Options, Rewriting, VIEWS, View, Walk, diff,
};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::json;

use crate::common::{Common, EntryArgs, Outcome, refused, schedule};
use crate::passes;
use crate::report::{Report, list};

#[derive(Args)]
pub struct ExplainArgs {
    /// The program
    file: PathBuf,
    /// Show only these stages
    #[arg(long, value_parser = view(), value_delimiter = ',')]
    only: Vec<&'static View>,
    /// Show only the program after each rewrite of a derivation, and the loops after each step of the schedule
    #[arg(long, conflicts_with = "only")]
    steps: bool,
    /// Compile the program, and show how long each stage took and how large is what it made
    #[arg(long, conflicts_with_all = ["only", "steps", "diff"])]
    time_passes: bool,
    /// Show the steps of two variants, and what differs between their loops. Each is what `--schedule` could say
    #[arg(long, num_args = 2, value_names = ["A", "B"], value_parser = schedule)]
    #[arg(conflicts_with_all = ["only", "steps", "schedule"])]
    diff: Vec<Choice>,
    /// A size at which to count multiplications: `n=100`. If all are given, an automatic schedule is shown as it is for them
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = crate::given::dim)]
    dims: Vec<(Name, i64)>,
    #[command(flatten)]
    entry: EntryArgs,
    #[command(flatten)]
    common: Common,
}

/// Reads the name of a view.
fn view() -> impl TypedValueParser<Value = &'static View> {
    let values = VIEWS.iter().map(|view| PossibleValue::new(view.name).help(view.about));
    PossibleValuesParser::new(values).try_map(|name| View::named(&name).ok_or("there is no such stage"))
}

pub fn explain(args: &ExplainArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let call = args.dims.iter().fold(Call::new(), |call, (name, size)| call.dim(*name, *size));
    let options = args.entry.options(&args.common, Some(&call));
    if let [one, other] = args.diff.as_slice() {
        return compare(args, &report, &options, [one, other]);
    }
    let module = Module::from_file(&args.file, &options).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    if args.time_passes {
        module.native().map_err(|f| refused(&report, &f))?;
        match args.common.json {
            true => report.json(&json!({
                "ok": true,
                "diagnostics": list(module.sources(), module.warnings()),
                "passes": passes::json(&module),
            })),
            false => report.text(&passes::text(&module)),
        }
        return Ok(());
    }
    let steps_only: Vec<&View> = View::named("steps").into_iter().collect();
    let only = if args.steps { &steps_only } else { &args.only };
    let sections = module.explain(only, &args.dims).map_err(|f| refused(&report, &f))?;
    // What a schedule stops at is an error, after what could be shown of it.
    let stopped = if args.steps { module.derived().err().or_else(|| module.scheduled().err()) } else { None };
    let wanted = |name: &str| only.is_empty() || only.iter().any(|view| view.name == name);
    if args.common.json {
        let mut stages: serde_json::Map<_, _> =
            sections.into_iter().map(|(name, text)| (name.into(), text.into())).collect();
        let padded = if wanted("padding") { module.padding() } else { Vec::new() };
        if !padded.is_empty() {
            let each = padded.iter().map(|(name, ty)| (name.to_string(), ty.to_string().into()));
            stages.insert("padding".into(), serde_json::Value::Object(each.collect()));
        }
        if let Some(typed) = module.typed().filter(|_| wanted("analysis")) {
            let each = analysis(typed, module.sources(), ANALYSED_STATEMENTS);
            stages.insert("analysis".into(), each.iter().map(analysed).collect());
        }
        if stages.contains_key("steps") {
            let planned = module.planned_at(&args.dims);
            let module = planned.as_ref().unwrap_or(&module);
            let walk = module.walk().map_err(|f| refused(&report, &f))?;
            stages.insert("steps".into(), steps(module, &walk));
        }
        let mut warnings = list(module.sources(), module.warnings());
        warnings.extend(stopped.iter().flat_map(|failure| list(failure.sources(), failure.diagnostics())));
        report.json(&json!({"ok": stopped.is_none(), "diagnostics": warnings, "stages": stages}));
    } else {
        let texts: Vec<String> = sections.iter().map(|(name, text)| format!("== {name} ==\n{text}")).collect();
        report.text(&texts.join("\n"));
    }
    match stopped {
        Some(failure) if args.common.json => Err(failure.blame()),
        Some(failure) => Err(refused(&report, &failure)),
        None => Ok(()),
    }
}

/// Two variants beside each other.
fn compare(args: &ExplainArgs, report: &Report, options: &Options, choices: [&Choice; 2]) -> Outcome {
    let made = |choice: &Choice| {
        let module = Module::from_file(&args.file, &Options { schedule: choice.clone(), ..options.clone() })?;
        // A schedule that is refused has no loops to show.
        module.c()?;
        let loops = statements(module.loops()?);
        Ok((module, loops))
    };
    let [one, other] = choices.map(|choice| made(choice).map_err(|failure: Failure| refused(report, &failure)));
    let ((one, before), (other, after)) = (one?, other?);
    report.warnings(one.sources(), one.warnings());
    let lines = diff(&before, &after);
    if args.common.json {
        let variant = |module: &Module, choice: &Choice, loops: &str| {
            let steps: Vec<String> = module.steps().iter().map(ToString::to_string).collect();
            json!({"variant": choice.to_string(), "steps": steps, "loops": loops})
        };
        let line = |line: &Line<'_>| match line {
            Line::Both(text) => json!({"both": text}),
            Line::Removed(text) => json!({"removed": text}),
            Line::Added(text) => json!({"added": text}),
            Line::LeftOut(count) => json!({"left_out": count}),
        };
        report.json(&json!({
            "ok": true,
            "diagnostics": list(one.sources(), one.warnings()),
            "variants": [variant(&one, choices[0], &before), variant(&other, choices[1], &after)],
            "diff": lines.iter().map(line).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    let steps = |mark: char, module: &Module, choice: &Choice| {
        let head = match module.steps().len() {
            0 => format!("{mark} {choice}: no steps\n"),
            1 => format!("{mark} {choice}: 1 step\n"),
            several => format!("{mark} {choice}: {several} steps\n"),
        };
        head + &module.steps().iter().map(|step| format!("      {step}\n")).collect::<String>()
    };
    let line = |line: &Line<'_>| match line {
        Line::Both(text) => format!("  {text}\n"),
        Line::Removed(text) => format!("- {text}\n"),
        Line::Added(text) => format!("+ {text}\n"),
        Line::LeftOut(1) => "  … 1 line\n".to_owned(),
        Line::LeftOut(count) => format!("  … {count} lines\n"),
    };
    let [one, other] = [steps('-', &one, choices[0]), steps('+', &other, choices[1])];
    let body: String = match before == after {
        true => "the loops are the same\n".into(),
        false => lines.iter().map(line).collect(),
    };
    report.text(&format!("{one}{other}\n{body}"));
    Ok(())
}

/// A schedule, step by step.
fn steps(module: &Module, walk: &Walk<'_>) -> serde_json::Value {
    let condition = |condition: &Condition| -> serde_json::Value {
        let (status, why) = match &condition.status {
            Status::Proved(_) => ("proved", None),
            Status::Fails(why) => ("fails", Some(why)),
            Status::Open => ("open", None),
        };
        let mut shown = json!({"what": condition.what, "status": status, "why": why});
        if let Some(index) = condition.about {
            shown["loop"] = json!(index.as_str());
        }
        shown
    };
    let step = |taken: &Taken| {
        json!({
            "step": taken.step.to_string(),
            "conditions": taken.conditions.iter().map(condition).collect::<Vec<_>>(),
            "violations": list(module.sources(), &taken.violations()),
            "loops": taken.after.to_string(),
        })
    };
    let begun = |(what, conditions): &(String, Vec<Condition>)| {
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        json!({"step": what, "conditions": conditions})
    };
    let rewrite = |taken: &Rewritten| {
        json!({
            "step": taken.step.to_string(),
            "rewrite": taken.rewrite.name,
            "conditions": taken.conditions.iter().map(condition).collect::<Vec<_>>(),
            "program": taken.after.to_string(),
        })
    };
    let rewriting = |rewriting: &Rewriting<'_>| {
        json!({
            "derive": rewriting.derivation.name.as_str(),
            "from": rewriting.derivation.from.as_str(),
            "before": rewriting.before.to_string(),
            "steps": rewriting.taken.iter().map(rewrite).collect::<Vec<_>>(),
        })
    };
    json!({
        "derivations": walk.rewritings.iter().map(rewriting).collect::<Vec<_>>(),
        "begun": walk.begun.iter().map(begun).collect::<Vec<_>>(),
        "before": walk.before.as_ref().map(ToString::to_string),
        "steps": walk.taken.iter().map(step).collect::<Vec<_>>(),
        "refused": walk.refused.map(|error| to_json(module.sources(), error)),
    })
}

/// What the analyses say of a statement.
fn analysed(stmt: &Analysis) -> serde_json::Value {
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
