//! `certen check`: are these programs accepted?

use std::path::{Path, PathBuf};

use certen::Checked;
use clap::Args;
use serde_json::json;

use crate::common::{Common, Outcome, shown};
use crate::report::{Report, list};

/// How many functions of a file are shown.
const SHOWN: usize = 50;

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
    let (mut derivations, mut schedules) = (Vec::new(), Vec::new());
    for path in &args.files {
        match certen::check(path, &args.common.options()) {
            Ok(Checked { sources, warnings, derivations: derived, schedules: of_functions, .. })
                if args.common.json =>
            {
                let each = derived
                    .into_iter()
                    .map(|(derivation, known)| json!({"file": shown(path), "derivation": derivation, "known": known}));
                derivations.extend(each);
                diagnostics.extend(list(&sources, &warnings));
                let each = of_functions
                    .into_iter()
                    .map(|(schedule, known)| json!({"file": shown(path), "schedule": schedule, "known": known}));
                schedules.extend(each);
            }
            Ok(Checked { sources, warnings, signatures, derivations: derived, schedules: of_functions }) => {
                report.warnings(&sources, &warnings);
                report.text(&accepted(path, &signatures));
                report.text(&listed(&derived));
                report.text(&listed(&of_functions));
            }
            Err(failure) => {
                worst = worst.max(Some(report.gathered(&failure, &mut diagnostics)));
            }
        }
    }
    if args.common.json {
        let mut found = json!({"ok": worst.is_none(), "diagnostics": diagnostics});
        if worst.is_none() && !derivations.is_empty() {
            found["derivations"] = derivations.into();
        }
        if worst.is_none() && !schedules.is_empty() {
            found["schedules"] = schedules.into();
        }
        report.json(&found);
    }
    worst.map_or(Ok(()), Err)
}

/// The derivations or schedules of a file, one on each line.
fn listed(schedules: &[(String, String)]) -> String {
    let lines = schedules.iter().take(SHOWN).map(|(schedule, known)| format!("  {schedule}: {known}\n"));
    let more = schedules.len().saturating_sub(SHOWN);
    lines.chain((more > 0).then(|| format!("  … {more} more\n"))).collect()
}

/// A file and its interface: on its line, or below if there are several functions.
fn accepted(path: &Path, signatures: &[String]) -> String {
    let head = format!("{}: ok", shown(path));
    match signatures {
        [] => format!("{head}\n"),
        [only] => format!("{head}  {only}\n"),
        several => {
            let lines: String = several.iter().take(SHOWN).map(|signature| format!("  {signature}\n")).collect();
            let more = several.len().saturating_sub(SHOWN);
            let more = if more > 0 { format!("  … {more} more\n") } else { String::new() };
            format!("{head}\n{lines}{more}")
        }
    }
}
