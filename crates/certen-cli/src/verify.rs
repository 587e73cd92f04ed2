//! `certen verify`: what is shown of a program's loops and how, what is only tested, and what remains trusted.

use std::path::{Path, PathBuf};

use certen::road::checker::{Certificate, Condition, Status, Step};
use certen::road::runtime::write_text;
use certen::road::syntax::{Code, Diagnostic};
use certen::{Call, Failure, Module, Name, NamedModule, Options, TRUSTED, Trial, Validation, programs};
use clap::Args;
use serde_json::{Value, json};

use crate::common::{Common, EntryArgs, Outcome, refused, shown};
use crate::report::Report;

/// A certificate with more bytes than this is not read.
const MAX_BYTES: u64 = 1 << 30;

/// How many points of tests are shown.
const SHOWN: usize = 6;

#[derive(Args)]
pub struct VerifyArgs {
    /// The program; of a `.ten` file, all functions, unless `--fn` names one
    file: PathBuf,
    /// Write the certificate of the function to this file
    #[arg(long, value_name = "FILE", conflicts_with = "check")]
    certificate: Option<PathBuf>,
    /// Check this certificate: a separate checker takes nothing from it that it has not derived itself
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// List every obligation
    #[arg(short, long)]
    verbose: bool,
    /// A `size` parameter: `k=3`
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = crate::given::dim)]
    dims: Vec<(Name, i64)>,
    #[command(flatten)]
    entry: EntryArgs,
    #[command(flatten)]
    common: Common,
}

pub fn verify(args: &VerifyArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let call = args.dims.iter().fold(Call::new(), |call, (name, size)| call.dim(*name, *size));
    let options = args.entry.options(&args.common, Some(&call));
    match &args.check {
        Some(path) => check(args, &report, path, options),
        None => show(args, &report, &options),
    }
}

/// Makes the certificate of each function, and says what is in it.
fn show(args: &VerifyArgs, report: &Report, options: &Options) -> Outcome {
    let functions = programs(&args.file, options).map_err(|failure| refused(report, &failure))?;
    let mut found = Vec::new();
    for (name, module) in &functions {
        let Ok(module) = module else { continue };
        report.warnings(module.sources(), module.warnings());
        let certificate = module.certificate().map_err(|failure| refused(report, &failure))?;
        let validation = module.validation().map_err(|failure| refused(report, &failure))?;
        let machine = machine(module).map_err(|failure| refused(report, &failure))?;
        found.push((name, certificate, rewrites(module), validation, machine));
    }
    if let Some(path) = &args.certificate {
        let [(_, certificate, ..)] = found.as_slice() else {
            let names: Vec<&str> = functions.iter().map(|(name, _)| name.as_str()).collect();
            let text = "a certificate is about one function: choose it with `--fn`";
            let error = Diagnostic::error(Code::E0410, None, text);
            return Err(report.error(error.note(format!("the functions are {}", names.join(", ")))));
        };
        write_text(path, &certificate.text())
            .map_err(|error| report.error(Diagnostic::error(error.code(), None, error.to_string())))?;
    }
    let open: Vec<&NamedModule> = functions.iter().filter(|(_, module)| module.is_err()).collect();
    if args.common.json {
        let each: Vec<Value> = found
            .iter()
            .map(|(name, certificate, _, validation, machine)| {
                let mut json = as_json(**name, certificate);
                json["compared"] = json!(validation.settings());
                json["machine_code"] = machine.json();
                json
            })
            .collect();
        let open: Vec<&str> = open.iter().map(|(name, _)| name.as_str()).collect();
        report.json(&json!({"ok": true, "functions": each, "open": open, "trusted": TRUSTED}));
        return Ok(());
    }
    for (name, certificate, rewrites, validation, machine) in &found {
        report.text(&as_text(name.as_str(), certificate, *rewrites, args.verbose));
        report.text(&compared(validation));
        report.text(&format!("  machine   {machine}\n"));
    }
    for (name, failure) in &open {
        let why = failure.as_ref().err().and_then(|failure| failure.diagnostics().first().cloned());
        report.text(&format!("{name}: left out: {}\n", why.map_or_else(String::new, |why| why.message)));
    }
    let trusted: Vec<String> = TRUSTED.iter().map(|what| format!("  - {what}\n")).collect();
    report.text(&format!("what remains trusted:\n{}", trusted.concat()));
    if let Some(path) = &args.certificate {
        report.text(&format!("{}\n", shown(path)));
    }
    Ok(())
}

/// Accepts a certificate of a function, or refuses it.
fn check(args: &VerifyArgs, report: &Report, path: &Path, options: Options) -> Outcome {
    let text = read(path).map_err(|why| {
        let error = Diagnostic::error(Code::E0603, None, format!("{}: {why}", shown(path)));
        report.error(error)
    })?;
    let options = Options { function: options.function.or_else(|| about(&text, &args.file, &options)), ..options };
    let module = Module::from_file(&args.file, &options).map_err(|failure| refused(report, &failure))?;
    let certificate = module.check_certificate(&text).map_err(|failure| refused(report, &failure))?;
    if options.require_proof {
        module.validation().map_err(|failure| refused(report, &failure))?;
    }
    let name = options.function.unwrap_or(module.core().name);
    if args.common.json {
        let function = as_json(name, &certificate);
        report.json(&json!({"ok": true, "functions": [function], "trusted": TRUSTED}));
        return Ok(());
    }
    report.text(&format!(
        "{}: holds\n{}",
        shown(path),
        as_text(name.as_str(), &certificate, rewrites(&module), args.verbose)
    ));
    Ok(())
}

/// The function that a certificate is about, if the file has several. One that cannot be read is about any: it will be
/// rejected.
fn about(text: &str, file: &Path, options: &Options) -> Option<Name> {
    let functions = programs(file, options).ok().filter(|functions| functions.len() > 1)?;
    let core = Certificate::read(text).ok().map(|certificate| certificate.core);
    let said = core.as_deref().and_then(|core| core.lines().next()?.strip_prefix("core ")).map(Name::new);
    let name = |(name, module): &NamedModule| module.is_ok().then_some(*name);
    let found = functions.iter().filter_map(name).find(|name| said == Some(*name));
    found.or_else(|| if said.is_none() { functions.iter().find_map(name) } else { None })
}

fn read(path: &Path) -> Result<String, String> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Err("is not a regular file".into()),
        Ok(meta) if meta.len() > MAX_BYTES => Err("is larger than 1 GiB".into()),
        Ok(_) => std::fs::read_to_string(path).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Where the compiler has compared the loops with the program, which it does before it makes code.
fn compared(validation: &Validation) -> String {
    let settings = validation.settings();
    let each: Vec<String> = settings.iter().map(|(setting, points)| format!("{setting} {points}")).collect();
    match &validation.nothing {
        _ if !each.is_empty() => {
            let points = match settings.values().sum() {
                1 => "1 point".into(),
                points => format!("{points} points"),
            };
            format!("  compiler  compared them at {points}: {}\n", each.join(", "))
        }
        Some(why) => format!("  compiler  compared nothing: {why}\n"),
        None => String::new(),
    }
}

/// What the trial of the machine code has found; nothing where there is no C compiler, or the program cannot be compiled.
fn machine(module: &Module) -> Result<Trial, Failure> {
    match module.native() {
        Ok(_) => Ok(module.trial().cloned().unwrap_or_default()),
        Err(failure) if failure.diagnostics().iter().any(|error| error.code == Code::E0707) => Err(failure),
        Err(failure) => {
            let left_out = failure.diagnostics().iter().map(|error| error.message.clone()).take(1).collect();
            Ok(Trial { left_out, ..Trial::default() })
        }
    }
}

/// How many of a certificate's steps are rewrites of a derivation.
fn rewrites(module: &Module) -> usize {
    module.rewritings().iter().map(|rewriting| rewriting.taken.len()).sum()
}

/// What is known of some steps.
fn kept(steps: &[Step], what: &str) -> String {
    let is_shown = |condition: &Condition| matches!(condition.status, Status::Proved | Status::Seen);
    let proved = steps.iter().flat_map(|step| &step.conditions).all(is_shown);
    match (steps.len(), proved) {
        (0, _) => "none".into(),
        (1, true) => format!("1 {what}, proved to keep the meaning"),
        (1, false) => format!("1 {what}, tested, but not proved to keep the meaning"),
        (steps, true) => format!("{steps} {what}s, each proved to keep the meaning"),
        (steps, false) => format!("{steps} {what}s, tested, but not all proved to keep the meaning"),
    }
}

fn as_text(name: &str, certificate: &Certificate, rewrites: usize, verbose: bool) -> String {
    let mut text = format!("{name}:\n");
    for (field, _, claims) in certificate.claims() {
        let count = match claims.len() {
            0 => "nothing to show".into(),
            1 => "1 obligation, proved for all sizes".into(),
            many => format!("{many} obligations, each proved for all sizes"),
        };
        text += &format!("  {field:<9} {count}\n");
        if verbose {
            text.extend(claims.iter().map(|claim| format!("            - {}\n", claim.what)));
        }
    }
    let (derived, schedule) = certificate.steps.split_at(rewrites.min(certificate.steps.len()));
    let mut listed = |field: &str, steps: &[Step], what: &str| {
        text += &format!("  {field:<9} {}\n", kept(steps, what));
        for step in steps.iter().filter(|_| verbose) {
            text += &format!("            - {}\n", step.step);
            text.extend(step.conditions.iter().map(|c| format!("              {}: {}\n", c.status.word(), c.what)));
        }
    };
    if !derived.is_empty() {
        listed("derived", derived, "rewrite");
    }
    listed("schedule", schedule, "step");
    let tests = &certificate.tests;
    let elements: u64 = tests.iter().map(|test| test.elements).sum();
    let points = if tests.len() == 1 { "1 point".into() } else { format!("{} points", tests.len()) };
    text += &match tests.len() {
        0 => "  equality  NOT TESTED by the checker: no point is small enough\n".into(),
        _ => format!("  equality  tested by the checker at {points} in the field, {elements} elements\n"),
    };
    let sizes = |sizes: &[(Name, i64)]| {
        sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
    };
    let most = if verbose { usize::MAX } else { SHOWN };
    for test in tests.iter().filter(|test| !test.sizes.is_empty()).take(most) {
        text += &format!("            - {}\n", sizes(&test.sizes));
    }
    if tests.len() > most {
        text += &format!("            - … {} more\n", tests.len() - most);
    }
    text
}

fn as_json(name: Name, certificate: &Certificate) -> Value {
    let mut json = json!({"function": name.as_str()});
    for (field, _, claims) in certificate.claims() {
        json[field] = claims.iter().map(|claim| json!({"what": claim.what, "how": "proved for all sizes"})).collect();
    }
    let mut whole = certificate.json();
    json["steps"] = certificate
        .steps
        .iter()
        .map(|step| {
            let condition = |c: &Condition| json!({"what": c.what, "status": c.status.word()});
            let conditions: Vec<Value> = step.conditions.iter().map(condition).collect();
            json!({"step": step.step, "conditions": conditions})
        })
        .collect();
    for field in ["schedule", "tested", "tests", "seal"] {
        json[field] = whole[field].take();
    }
    json
}
