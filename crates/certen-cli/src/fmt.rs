//! `certen fmt`: `.ten` files in the one layout that there is.

use std::path::PathBuf;

use certen::road::runtime::write_text;
use certen::road::syntax::{Blame, Diagnostic};
use clap::Args;
use serde_json::json;

use crate::common::{Outcome, shown};
use crate::report::{Report, list};

#[derive(Args)]
pub struct FmtArgs {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing; end with status 1 if a file would change
    #[arg(long, conflicts_with = "stdout")]
    check: bool,
    /// Print the texts instead of changing the files
    #[arg(long)]
    stdout: bool,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn fmt(args: &FmtArgs) -> Outcome {
    let report = Report::new(args.json);
    let mut worst: Option<Blame> = None;
    let (mut diagnostics, mut changed, mut texts) = (Vec::new(), Vec::new(), serde_json::Map::new());
    for path in &args.files {
        let read = certen::read_program(path);
        let formatted = read.and_then(|(name, before)| Ok((certen::format(&name, &before)?, before)));
        let (after, before) = match formatted {
            Ok(both) => both,
            Err(failure) => {
                worst = worst.max(Some(report.gathered(&failure, &mut diagnostics)));
                continue;
            }
        };
        if args.stdout {
            if args.json {
                texts.insert(shown(path), after.into());
            } else {
                report.text(&after);
            }
            continue;
        }
        if after == before {
            continue;
        }
        changed.push(shown(path));
        if args.check {
            worst = worst.max(Some(Blame::Program));
        } else if let Err(error) = write_text(path, &after) {
            worst = worst.max(Some(error.code().blame()));
            let error = Diagnostic::error(error.code(), None, error.to_string());
            if args.json {
                diagnostics.extend(list(&Default::default(), &[error]));
            } else {
                report.error(error);
            }
            continue;
        }
        if !args.json {
            let would = if args.check { "would be formatted" } else { "formatted" };
            report.text(&format!("{}: {would}\n", shown(path)));
        }
    }
    if args.json {
        let mut value = json!({"ok": worst.is_none(), "diagnostics": diagnostics, "changed": changed});
        if args.stdout {
            value["files"] = texts.into();
        }
        report.json(&value);
    }
    worst.map_or(Ok(()), Err)
}
