//! `certen guard`: do kernels of other frameworks stay inside their tensors?

use std::path::PathBuf;

use certen::guard::{self, Fault, Guarded, Judged, Language};
use certen::road::syntax::{Blame, Code, Diagnostic, Sources};
use certen::{Backend, Module, Options, Output, RunOptions};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::common::{Outcome, refused};
use crate::given::InputArgs;
use crate::report::{Report, list};
use crate::show;

#[derive(Args)]
pub struct GuardArgs {
    /// The files: .taco, .tc, .py, .cfd
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The language of the files, where their endings do not tell: taco, tc, py, cfd
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<Language>,
    /// How verdicts are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Only the kernel of this name
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Print the safe kernels as programs
    #[arg(long, value_enum, value_name = "FORM", conflicts_with = "format")]
    emit: Option<Form>,
    /// Run the kernel, if it is safe
    #[arg(long, conflicts_with_all = ["format", "emit"])]
    run: bool,
    #[command(flatten)]
    given: InputArgs,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// Annotations of GitHub's checks
    Github,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    /// The `.ten` language
    Ten,
    /// C11
    C,
}

pub fn guard(args: &GuardArgs) -> Outcome {
    let report = Report::new(args.json);
    let is_given = !args.given.inputs.is_empty() || !args.given.dims.is_empty();
    if is_given && !args.run {
        let text = "`--in` and `--dim` are for `--run`";
        return Err(report.error(Diagnostic::error(Code::E0407, None, text)));
    }
    let mut all = Found { worst: None, diagnostics: Vec::new(), kernels: Vec::new(), files: 0 };
    for path in &args.files {
        match guard::file(path, args.language) {
            Ok(guarded) => all.file(args, &report, &guarded)?,
            Err(failure) => {
                let blame = guard::blame(&failure);
                all.worst = all.worst.max(Some(blame));
                match args.format {
                    Format::Github => annotate(&report, failure.sources(), failure.diagnostics()),
                    Format::Text if args.json => {
                        all.diagnostics.extend(list(failure.sources(), failure.diagnostics()));
                    }
                    Format::Text => report.failure(&failure),
                }
            }
        }
    }
    if let Some(name) = args.kernel.as_ref().filter(|_| all.kernels.is_empty() && all.worst.is_none()) {
        let error = Diagnostic::error(Code::E0402, None, format!("there is no kernel `{name}`"));
        return Err(report.error(error));
    }
    if args.json {
        let ok = all.worst.is_none();
        report.json(&json!({"ok": ok, "diagnostics": all.diagnostics, "kernels": all.kernels}));
    }
    all.worst.map_or(Ok(()), Err)
}

/// What was found in all files.
struct Found {
    worst: Option<Blame>,
    diagnostics: Vec<Value>,
    kernels: Vec<Value>,
    files: usize,
}

impl Found {
    fn file(&mut self, args: &GuardArgs, report: &Report, guarded: &Guarded) -> Outcome {
        self.files += 1;
        let sources = guarded.sources();
        let notes: Vec<Diagnostic> = guarded.notes().cloned().collect();
        match args.format {
            Format::Github => annotate(report, sources, &notes),
            Format::Text if args.json => self.diagnostics.extend(list(sources, &notes)),
            Format::Text => report.warnings(sources, &notes),
        }
        let chosen = |kernel: &&Judged| args.kernel.as_deref().is_none_or(|name| kernel.name().as_str() == name);
        let chosen: Vec<&Judged> = guarded.kernels().iter().filter(chosen).collect();
        if args.run && (chosen.len() != 1 || self.files > 1) {
            let names: Vec<&str> = chosen.iter().map(|kernel| kernel.name().as_str()).collect();
            let text = format!("`--run` runs one kernel of one file, and there are: {}", names.join(", "));
            let error = Diagnostic::error(Code::E0407, None, text).help("choose one with `--kernel NAME`");
            return Err(report.error(error));
        }
        for kernel in chosen {
            let mut entry = verdict(sources, kernel);
            self.kernel(args, report, sources, kernel)?;
            if kernel.is_safe() {
                self.made(args, report, kernel, &mut entry)?;
            }
            self.kernels.push(entry);
        }
        Ok(())
    }

    /// Says what the verdict on a kernel is.
    fn kernel(&mut self, args: &GuardArgs, report: &Report, sources: &Sources, kernel: &Judged) -> Outcome {
        let faults: Vec<Diagnostic> = kernel.faults().iter().map(|fault| fault.diagnostic.clone()).collect();
        if !faults.is_empty() {
            self.worst = self.worst.max(Some(Blame::Program));
        }
        match args.format {
            Format::Github => annotate(report, sources, &faults),
            Format::Text if args.json => self.diagnostics.extend(list(sources, &faults)),
            Format::Text => {
                if !faults.is_empty() {
                    report.refuse(sources, &faults);
                }
                if args.emit.is_none() && !args.run {
                    let (file, line) = place(sources, kernel);
                    let safe = if kernel.is_safe() { "safe" } else { "not safe" };
                    report.text(&format!("{file}:{line}: {}: {safe}\n", kernel.name()));
                }
            }
        }
        Ok(())
    }

    /// Emits or runs a kernel.
    fn made(&mut self, args: &GuardArgs, report: &Report, kernel: &Judged, entry: &mut Value) -> Outcome {
        if args.emit.is_none() && !args.run {
            return Ok(());
        }
        let text = kernel.ten().map_err(|failure| refused(report, &failure))?;
        if args.emit == Some(Form::Ten) {
            return emitted(args, report, entry, "ten", text);
        }
        let name = format!("{}.ten", kernel.name());
        let module = Module::from_text(&name, text, &Options::default()).map_err(|f| refused(report, &f))?;
        if args.emit == Some(Form::C) {
            let c = module.c().map_err(|f| refused(report, &f))?;
            return emitted(args, report, entry, "c", &c.source);
        }
        for output in run(args, report, &module)? {
            if args.json {
                entry["outputs"][output.name.as_str()] = show::entry(&output);
            } else {
                report.text(&show::text(&output));
            }
        }
        Ok(())
    }
}

fn emitted(args: &GuardArgs, report: &Report, entry: &mut Value, form: &str, text: &str) -> Outcome {
    if args.json {
        entry[form] = text.into();
    } else {
        report.text(text);
    }
    Ok(())
}

/// Runs a kernel natively; where there is no compiler, by the evaluator.
fn run(args: &GuardArgs, report: &Report, module: &Module) -> Result<Vec<Output>, Blame> {
    let call = args.given.call().map_err(|error| report.error(error))?;
    let with = |backend| module.run_with(&call, &RunOptions { backend, ..RunOptions::default() });
    let is_missing = |code| matches!(code, Code::E0601 | Code::E0703);
    let result = match with(Backend::Native) {
        Err(failure) if failure.diagnostics().iter().any(|error| is_missing(error.code)) => with(Backend::Interp),
        other => other,
    };
    result.map(|(outputs, _)| outputs).map_err(|failure| refused(report, &failure))
}

/// The file and line of a kernel.
fn place(sources: &Sources, kernel: &Judged) -> (String, usize) {
    let found = sources.locate(kernel.kernel().span);
    found.map_or_else(Default::default, |(file, position)| (file.to_owned(), position.line))
}

/// The verdict on a kernel for programs.
fn verdict(sources: &Sources, judged: &Judged) -> Value {
    let kernel = judged.kernel();
    let (file, line) = place(sources, judged);
    let tensors: Vec<Value> = kernel
        .tensors
        .iter()
        .map(|tensor| {
            let sizes: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
            json!({"name": tensor.name.as_str(), "type": tensor.elem.name(), "shape": sizes, "input": tensor.is_input})
        })
        .collect();
    let fault = |fault: &Fault| {
        let example: serde_json::Map<String, Value> =
            fault.example.iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
        json!({
            "code": fault.diagnostic.code.to_string(),
            "message": fault.diagnostic.message,
            "tensor": fault.tensor.map(|(name, _)| name.as_str()),
            "dimension": fault.tensor.map(|(_, dimension)| dimension),
            "declared": fault.declared,
            "used": fault.used,
            "example": if example.is_empty() { Value::Null } else { example.into() },
            "reading": fault.reading,
        })
    };
    json!({
        "file": file,
        "line": line,
        "name": kernel.name.as_str(),
        "language": kernel.language.name(),
        "verdict": if judged.is_safe() { "safe" } else { "unsafe" },
        "tensors": tensors,
        "faults": judged.faults().iter().map(fault).collect::<Vec<_>>(),
    })
}

/// Diagnostics as annotations of GitHub's checks.
fn annotate(report: &Report, sources: &Sources, diagnostics: &[Diagnostic]) {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    for diagnostic in diagnostics {
        let level = if diagnostic.is_error() { "error" } else { "warning" };
        let mut fields = vec![format!("title={}", property(&diagnostic.code.to_string()))];
        if let Some(label) = &diagnostic.primary
            && let Some(source) = sources.get(label.span.file)
        {
            let (begin, end) = (source.position(label.span.start), source.position(label.span.end));
            fields.push(format!("file={}", property(source.name())));
            fields.push(format!("line={},endLine={}", begin.line, end.line));
            if begin.line == end.line {
                fields.push(format!("col={},endColumn={}", begin.column, end.column));
            }
        }
        let text: Vec<String> = [diagnostic.message.clone()]
            .into_iter()
            .chain(diagnostic.notes.iter().cloned())
            .chain(diagnostic.advice())
            .collect();
        report.text(&format!("::{level} {}::{}\n", fields.join(","), escaped(&text.join("\n"))));
    }
}
