//! `certen emit`: a program as text of another kind.

use std::path::PathBuf;

use certen::road::dialects::algebra::Notation;
use certen::road::figures::three_address::three_address;
use certen::road::runtime::write_text;
use certen::road::syntax::{Blame, Code, Diagnostic};
use certen::{Module, Options};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::common::{Common, EntryArgs, Outcome, refused, shown};
use crate::report::{Report, list};

#[derive(Args)]
pub struct EmitArgs {
    /// The program
    file: PathBuf,
    /// What to emit
    #[arg(long, value_enum, default_value_t = Form::C)]
    to: Form,
    /// Write files into this directory: NAME.c and NAME.h, or NAME with the form's ending
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write main.c, too, which runs the program on made-up inputs; its sizes are arguments: `cc DIR/*.c -lm`
    #[arg(long, requires = "out")]
    main: bool,
    /// Pad the rows of the program's own buffers to multiples of V elements
    #[arg(long, value_name = "V", allow_negative_numbers = true)]
    pad: Option<i64>,
    #[command(flatten)]
    entry: EntryArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    /// C11
    C,
    /// The part of the C code that computes
    Kernel,
    /// The header of the C code
    Header,
    /// Loops
    Loops,
    /// Core
    Core,
    /// Full TeIL
    Teil,
    /// Core-TeIL: operations on the first dimensions only
    CoreTeil,
    /// The model language
    Model,
    /// The same language with only names as operands
    ThreeAddress,
    /// The same language, made simpler by TeIL's equations
    Simplified,
}

pub fn emit(args: &EmitArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let options = Options { vector: args.pad, ..args.entry.options(&args.common, None) };
    let module = Module::from_file(&args.file, &options).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    if args.main && args.to != Form::C {
        return Err(report.error(Diagnostic::error(Code::E0407, None, "only C code has a main function")));
    }
    if let Some(file) = args.out.as_ref().filter(|out| out.exists() && !out.is_dir()) {
        let text = format!("{} is not a directory", shown(file));
        return Err(report.error(Diagnostic::error(Code::E0407, None, text)));
    }
    let files = files(args, &module, &report)?;
    match &args.out {
        Some(directory) => {
            for (file, text) in &files {
                let path = directory.join(file);
                write_text(&path, text)
                    .map_err(|error| report.error(Diagnostic::error(error.code(), None, error.to_string())))?;
                if !args.common.json {
                    report.text(&format!("{}\n", shown(&path)));
                }
            }
        }
        None if args.common.json => {}
        None => files.iter().for_each(|(_, text)| report.text(text)),
    }
    if args.common.json {
        let files: serde_json::Map<_, _> = files.into_iter().map(|(file, text)| (file, text.into())).collect();
        let warnings = list(module.sources(), module.warnings());
        report.json(&json!({"ok": true, "diagnostics": warnings, "files": files}));
    }
    Ok(())
}

/// The program in the form that is asked for: files and what they say.
fn files(args: &EmitArgs, module: &Module, report: &Report) -> Result<Vec<(String, String)>, Blame> {
    let name = module.core().name;
    let refuse = |failure| refused(report, &failure);
    let c = || module.c().map_err(refuse);
    let ending = |notation| if notation == Notation::Model { "model" } else { "teil" };
    let written = |notation| module.written_in(notation).map(|program| program.to_string()).map_err(refuse);
    Ok(match args.to {
        Form::C => {
            let c = c()?;
            let mut files = vec![(format!("{}.c", c.name), c.source)];
            if args.out.is_some() {
                files.push((format!("{}.h", c.name), c.header));
            }
            if args.main {
                files.push(("main.c".into(), c.driver));
            }
            files
        }
        Form::Kernel => {
            let c = c()?;
            vec![(format!("{}.c", c.name), c.kernel)]
        }
        Form::Header => {
            let c = c()?;
            vec![(format!("{}.h", c.name), c.header)]
        }
        Form::Loops => {
            // A schedule that is refused has no loops to show.
            if !module.steps().is_empty() {
                c()?;
            }
            vec![(format!("{name}.loops"), module.loops().map_err(refuse)?.to_string())]
        }
        Form::Core => vec![(format!("{name}.core"), module.core().to_string())],
        Form::Teil => vec![(format!("{name}.teil"), written(Notation::Teil)?)],
        Form::CoreTeil => vec![(format!("{name}.teil"), written(Notation::CoreTeil)?)],
        Form::Model => vec![(format!("{name}.model"), written(Notation::Model)?)],
        Form::ThreeAddress => {
            let Some(typed) = module.typed() else {
                let text = "only TeIL and model language programs have this form";
                return Err(report.error(Diagnostic::error(Code::E0407, None, text)));
            };
            vec![(format!("{name}.{}", ending(typed.program.notation)), three_address(typed).to_string())]
        }
        Form::Simplified => {
            let (program, _) = module.simplified().map_err(refuse)?;
            vec![(format!("{name}.{}", ending(program.notation)), program.to_string())]
        }
    })
}
