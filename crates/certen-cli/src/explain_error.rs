//! `certen explain-error`: the pages of the error index.

use certen::road::syntax::{Code, Diagnostic};
use clap::Args;

use crate::common::Outcome;
use crate::report::Report;

#[derive(Args)]
pub struct ExplainErrorArgs {
    /// A code such as E0208; without one, all are listed
    code: Option<String>,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

pub fn explain_error(args: &ExplainErrorArgs) -> Outcome {
    let report = Report::new(args.json);
    let entry = |code: &Code| serde_json::json!({"code": code.to_string(), "title": code.title(), "page": code.page()});
    let Some(text) = &args.code else {
        if args.json {
            report.json(&Code::ALL.iter().map(entry).collect());
        } else {
            let lines: Vec<String> = Code::ALL.iter().map(|code| format!("{code}  {}\n", code.title())).collect();
            report.text(&lines.concat());
        }
        return Ok(());
    };
    match text.parse::<Code>() {
        Ok(code) if args.json => report.json(&entry(&code)),
        Ok(code) => report.text(&code.page()),
        Err(()) => {
            let error = Diagnostic::error(Code::E0407, None, format!("there is no code `{text}`"));
            return Err(report.error(error.help("`certen explain-error` lists all codes")));
        }
    }
    Ok(())
}
