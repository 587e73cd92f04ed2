//! `certen run`: a program on arrays.

use std::path::PathBuf;

use certen::road::core::DEFAULT_FUEL;
use certen::road::runtime::{read_npy, read_npz, write_npy, write_npz};
use certen::road::syntax::{Code, Diagnostic};
use certen::{Array, Backend, Call, DomainChoice, Failure, Input, Module, Name, Output, RunOptions, Timing};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::report::{Report, list};
use crate::{Common, Outcome, refused, show, shown};

#[derive(Args)]
pub struct RunArgs {
    /// The program
    file: PathBuf,
    /// An input: NAME=FILE.npy, NAME=FILE.npz:KEY, NAME=random:SEED, NAME=iota or NAME=3.5
    #[arg(long = "in", value_name = "NAME=SOURCE", value_parser = input)]
    inputs: Vec<(Name, Source)>,
    /// Write an output: NAME=FILE.npy, or FILE.npz for all of them
    #[arg(long = "out", value_name = "[NAME=]FILE", value_parser = target)]
    outs: Vec<(Option<Name>, PathBuf)>,
    /// A size that no array tells: `n=100`
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim)]
    dims: Vec<(Name, i64)>,
    /// What runs it; by default native code, or the evaluator if there is no C compiler
    #[arg(long, value_enum)]
    backend: Option<BackendArg>,
    /// What the elements are; all but f64 (the machine's numbers, of the program's type) need the evaluator
    #[arg(long, value_enum, default_value_t = DomainArg::F64)]
    domain: DomainArg,
    /// Compute only this element, by the reference evaluator: `C[0,2]`, counted from 0
    #[arg(long, value_name = "NAME[I,J,…]", value_parser = place)]
    #[arg(conflicts_with_all = ["outs", "time", "backend", "domain"])]
    at: Option<(Name, Vec<i64>)>,
    /// Evaluate with every size rounded up to a multiple of M, and watch the padding (model language)
    #[arg(long, value_name = "M", allow_negative_numbers = true, conflicts_with = "at")]
    pad: Option<i64>,
    /// Print how long it took; native code runs several times, the best counts
    #[arg(long)]
    time: bool,
    /// How many steps the evaluator may take
    #[arg(long, default_value_t = DEFAULT_FUEL)]
    fuel: u64,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum BackendArg {
    Native,
    Interp,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum DomainArg {
    F64,
    Rational,
    Field,
    Undefined,
}

/// Where an input comes from.
#[derive(Clone, Debug)]
pub enum Source {
    Npy(PathBuf),
    Npz(PathBuf, String),
    Random(u64),
    Iota,
    Fill(f64),
}

fn named(text: &str) -> Result<(Name, &str), String> {
    let (name, value) = text.split_once('=').ok_or("it has the form NAME=VALUE")?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name { Ok((Name::new(name), value)) } else { Err(format!("`{name}` is not a name")) }
}

fn input(text: &str) -> Result<(Name, Source), String> {
    let (name, value) = named(text)?;
    if let Some(seed) = value.strip_prefix("random:") {
        let seed = seed.parse().map_err(|_| format!("`{seed}` is not a seed: a whole number from 0 to 2^64 - 1"))?;
        return Ok((name, Source::Random(seed)));
    }
    if value == "iota" {
        return Ok((name, Source::Iota));
    }
    if let Ok(number) = value.parse::<f64>() {
        return Ok((name, Source::Fill(number)));
    }
    if let Some((path, key)) = value.rsplit_once(':').filter(|(path, _)| path.ends_with(".npz")) {
        return Ok((name, Source::Npz(path.into(), key.into())));
    }
    if value.ends_with(".npy") {
        return Ok((name, Source::Npy(value.into())));
    }
    Err("an input is FILE.npy, FILE.npz:KEY, random:SEED, iota or a number".into())
}

fn target(text: &str) -> Result<(Option<Name>, PathBuf), String> {
    match named(text) {
        Ok((name, path)) if path.ends_with(".npy") => Ok((Some(name), path.into())),
        _ if text.ends_with(".npz") => Ok((None, text.into())),
        _ => Err("an output is NAME=FILE.npy, or FILE.npz for all of them".into()),
    }
}

/// Reads `n=100`. Which sizes may be negative, the program knows.
pub fn dim(text: &str) -> Result<(Name, i64), String> {
    let (name, value) = named(text)?;
    let size = value.parse().map_err(|_| format!("`{value}` is not a size: a whole number below 2^63"))?;
    Ok((name, size))
}

fn place(text: &str) -> Result<(Name, Vec<i64>), String> {
    let form = || "it has the form NAME[I,J,…]".to_owned();
    let (name, rest) = text.split_once('[').ok_or_else(form)?;
    let inside = rest.strip_suffix(']').ok_or_else(form)?;
    let numbers = inside.split(',').map(str::trim).filter(|part| !part.is_empty());
    let index =
        numbers.map(|part| part.parse().map_err(|_| format!("`{part}` is not an index"))).collect::<Result<_, _>>()?;
    Ok((Name::new(name), index))
}

/// Native runs made by `--time` end after about this long.
const TIMING_SECONDS: f64 = 1.0;

pub fn run(args: &RunArgs) -> Outcome {
    let report = Report::new(args.common.json);
    let module = Module::from_file(&args.file, &args.common.options()).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
    if args.pad.is_some() && args.backend == Some(BackendArg::Native) {
        let error = Diagnostic::error(Code::E0407, None, "native code has no padding: `--pad` is for the evaluator");
        return Err(report.error(error.help("leave out `--backend native`, or `--pad`")));
    }
    let call = call(args).map_err(|error| report.error(error))?;
    check_targets(args, &module).map_err(|error| report.error(error))?;
    if let Some((name, index)) = &args.at {
        let value = module.element(&call, *name, index, args.fuel).map_err(|f| refused(&report, &f))?;
        if args.common.json {
            report.json(&json!({"ok": true, "element": show::scalar(value)}));
        } else {
            report.text(&format!("{value}\n"));
        }
        return Ok(());
    }
    let executed = report.working("compiling and running", || execute(args, &module, &call));
    let Executed { outputs, timing, remarks } = executed.map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), &remarks);
    let paths = write(args, &outputs).map_err(|error| report.error(error))?;
    if args.common.json {
        let warnings: Vec<Diagnostic> = module.warnings().iter().chain(&remarks).cloned().collect();
        let mut value = as_json(args, &list(module.sources(), &warnings), &outputs, &paths, &timing);
        if let Some(vector) = args.pad {
            value["padding"] = json!({"vector_length": vector, "zero": remarks.is_empty()});
        }
        report.json(&value);
    } else {
        for output in &outputs {
            let mut written = paths.iter().filter(|(name, _)| *name == output.name).peekable();
            if written.peek().is_none() {
                report.text(&show::text(output));
            }
            for (name, path) in written {
                report.text(&format!("{name} : {}{:?} -> {}\n", output.elem, output.shape, shown(path)));
            }
        }
        if let Some(vector) = args.pad {
            let found = match remarks.len() {
                0 => "zero after every statement".to_owned(),
                1 => "not zero after a statement".to_owned(),
                many => format!("not zero after {many} statements"),
            };
            report.text(&format!("padding to multiples of {vector}: {found}\n"));
        }
        if args.time {
            report.text(&timing_text(&timing));
        }
    }
    Ok(())
}

/// Every output that is to be written exists, and is written once.
fn check_targets(args: &RunArgs, module: &Module) -> Result<(), Diagnostic> {
    let known: Vec<Name> = module.core().outputs.iter().map(|(output, _)| *output).collect();
    let named = || args.outs.iter().filter_map(|(name, _)| *name);
    if let Some(unknown) = named().find(|name| !known.contains(name)) {
        return Err(Diagnostic::error(Code::E0402, None, format!("the program has no output `{unknown}`")));
    }
    let everything = args.outs.iter().filter(|(name, _)| name.is_none()).count();
    let twice = |name: &&Name| named().filter(|n| n == *name).count() + everything > 1;
    match known.iter().find(twice) {
        Some(name) => Err(Diagnostic::error(Code::E0407, None, format!("`{name}` is to be written twice"))),
        None => Ok(()),
    }
}

fn call(args: &RunArgs) -> Result<Call, Diagnostic> {
    let given = args.inputs.iter().map(|(name, _)| name).chain(args.dims.iter().map(|(name, _)| name));
    let mut seen = std::collections::BTreeSet::new();
    if let Some(again) = given.copied().find(|name| !seen.insert(*name)) {
        return Err(Diagnostic::error(Code::E0407, None, format!("`{again}` is given twice")));
    }
    let mut call = Call::new();
    for (name, source) in &args.inputs {
        let read = |result: Result<Array, _>| {
            let failed =
                |e: certen::road::runtime::NpyError| Diagnostic::error(e.code(), None, format!("`{name}`: {e}"));
            result.map(Input::Array).map_err(failed)
        };
        let input = match source {
            Source::Npy(path) => read(read_npy(path))?,
            Source::Npz(path, key) => read(read_npz(path, key))?,
            Source::Random(seed) => Input::Random(*seed),
            Source::Iota => Input::Iota,
            Source::Fill(value) => Input::Fill(*value),
        };
        call = call.input(*name, input);
    }
    for (name, size) in &args.dims {
        call = call.dim(*name, *size);
    }
    Ok(if args.domain == DomainArg::Undefined { call.allow_missing() } else { call })
}

/// What a run gave, and what there is to say about how it was done.
struct Executed {
    outputs: Vec<Output>,
    timing: Timing,
    remarks: Vec<Diagnostic>,
}

fn execute(args: &RunArgs, module: &Module, call: &Call) -> Result<Executed, Failure> {
    let domain = match args.domain {
        DomainArg::F64 => DomainChoice::Machine,
        DomainArg::Rational => DomainChoice::Rational,
        DomainArg::Field => DomainChoice::Field,
        DomainArg::Undefined => DomainChoice::Undefined,
    };
    if let Some(vector) = args.pad {
        let run = module.run_padded(call, vector, domain, args.fuel)?;
        return Ok(Executed { outputs: run.outputs, timing: run.timing, remarks: run.spills });
    }
    let backend = match args.backend {
        Some(BackendArg::Interp) => Backend::Interp,
        None if domain != DomainChoice::Machine => Backend::Interp,
        _ => Backend::Native,
    };
    let options = |backend, repeat| RunOptions { backend, domain, fuel: args.fuel, repeat };
    let (outputs, first) = match module.run_with(call, &options(backend, 1)) {
        // Without being told to, native code is a wish: the evaluator gives the same answer, slowly.
        Err(failure)
            if args.backend.is_none()
                && failure.diagnostics().iter().any(|d| matches!(d.code, Code::E0601 | Code::E0703)) =>
        {
            let reasons: Vec<&str> = failure.diagnostics().iter().map(|d| d.message.as_str()).collect();
            let text = format!("the reference evaluator runs instead of native code: {}", reasons.join("; "));
            let (outputs, timing) = module.run_with(call, &options(Backend::Interp, 1))?;
            return Ok(Executed { outputs, timing, remarks: vec![Diagnostic::warning(Code::W0304, None, text)] });
        }
        other => other?,
    };
    if !args.time || backend == Backend::Interp {
        return Ok(Executed { outputs, timing: first, remarks: Vec::new() });
    }
    let one = first.best.as_secs_f64().max(1e-7);
    let repeat = ((TIMING_SECONDS / one) as usize).clamp(3, 1000);
    let (outputs, timing) = module.run_with(call, &options(backend, repeat))?;
    let timing = Timing { best: timing.best.min(first.best), runs: repeat + 1, ..timing };
    Ok(Executed { outputs, timing, remarks: Vec::new() })
}

/// Writes the outputs that were asked for; says which stands where.
fn write(args: &RunArgs, outputs: &[Output]) -> Result<Vec<(Name, PathBuf)>, Diagnostic> {
    let mut paths = Vec::new();
    for (name, path) in &args.outs {
        let chosen: Vec<&Output> =
            outputs.iter().filter(|output| name.is_none_or(|name| name == output.name)).collect();
        let arrays: Option<Vec<(&str, &Array)>> =
            chosen.iter().map(|output| Some((output.name.as_str(), output.array()?))).collect();
        let Some(arrays) = arrays else {
            return Err(Diagnostic::error(Code::E0407, None, "only machine numbers can be written to a file"));
        };
        match (name, arrays.as_slice()) {
            (Some(_), [(_, array)]) => write_npy(path, array),
            _ => write_npz(path, &arrays),
        }
        .map_err(|error| Diagnostic::error(error.code(), None, error.to_string()))?;
        paths.extend(chosen.iter().map(|output| (output.name, path.clone())));
    }
    Ok(paths)
}

fn as_json(
    args: &RunArgs,
    warnings: &[Value],
    outputs: &[Output],
    paths: &[(Name, PathBuf)],
    timing: &Timing,
) -> Value {
    let entry = |output: &Output| {
        let mut entry = json!({"type": output.elem.name(), "shape": output.shape});
        match paths.iter().find(|(name, _)| *name == output.name) {
            Some((_, path)) => entry["path"] = json!(shown(path)),
            None => entry["data"] = show::data(output),
        }
        (output.name.to_string(), entry)
    };
    let outputs: serde_json::Map<String, Value> = outputs.iter().map(entry).collect();
    let mut value = json!({
        "ok": true,
        "diagnostics": warnings,
        "outputs": outputs,
    });
    if args.time {
        value["time"] = json!({
            "best_seconds": timing.best.as_secs_f64(),
            "runs": timing.runs,
            "compile_seconds": timing.compile.map(|time| time.as_secs_f64()),
            "operations": timing.operations,
        });
    }
    value
}

fn timing_text(timing: &Timing) -> String {
    let seconds = timing.best.as_secs_f64();
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let runs = if timing.runs == 1 { "1 run".into() } else { format!("best of {} runs", timing.runs) };
    let speed = match timing.operations {
        Some(operations) if seconds > 0.0 => {
            format!(", {:.2} Gop/s ({operations} arithmetic operations)", operations as f64 / seconds / 1e9)
        }
        _ => String::new(),
    };
    let compile = match timing.compile {
        Some(time) => format!(", compiled in {:.0} ms", time.as_secs_f64() * 1e3),
        None => String::new(),
    };
    format!("time: {value:.3} {unit}, {runs}{speed}{compile}\n")
}
