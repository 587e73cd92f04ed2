//! `certen run`: a program on arrays.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use certen::road::core::DEFAULT_FUEL;
use certen::road::runtime::{parse_threads, write_npy, write_npz};
use certen::road::syntax::{Code, Diagnostic};
use certen::{Array, Backend, Call, DomainChoice, Failure, Module, Name, Options, Output, RunOptions, Timing};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::common::{Common, EntryArgs, Outcome, refused, shown};
use crate::given::{DomainArg, InputArgs, named, place};
use crate::report::{Report, list};
use crate::{passes, show};

#[derive(Args)]
pub struct RunArgs {
    /// The program
    file: PathBuf,
    #[command(flatten)]
    given: InputArgs,
    /// Write an output: NAME=FILE.npy, or FILE.npz for all of them
    #[arg(long = "out", value_name = "[NAME=]FILE", value_parser = target)]
    outs: Vec<(Option<Name>, PathBuf)>,
    /// What runs it; by default native code, or the evaluator if there is no C compiler
    #[arg(long, value_enum)]
    backend: Option<BackendArg>,
    /// What the elements are; all but f64 (the machine's numbers, of the program's type) need the evaluator
    #[arg(long, value_enum, default_value_t = DomainArg::F64)]
    domain: DomainArg,
    /// Compute only this element, by the reference evaluator: `C[0,2]`, counted from 0; `s` if there are no
    /// dimensions
    #[arg(long, value_name = "NAME[I,J,…]", value_parser = place)]
    #[arg(conflicts_with_all = ["outs", "time", "backend", "domain"])]
    at: Option<(Name, Vec<i64>)>,
    /// Evaluate with every size rounded up to a multiple of M, and watch the padding (model language); with `--backend
    /// native`, pad the rows of the program's own buffers
    #[arg(long, value_name = "M", allow_negative_numbers = true, conflicts_with = "at")]
    pad: Option<i64>,
    /// Print how long it took; native code runs several times, the best counts
    #[arg(long)]
    time: bool,
    /// Print how long each stage of the compiler took, and how large is what it made
    #[arg(long)]
    time_passes: bool,
    /// How many threads native code uses; by default $CERTEN_THREADS, else as many as there are cores
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<NonZeroUsize>,
    /// How many steps the evaluator may take
    #[arg(long, default_value_t = DEFAULT_FUEL)]
    fuel: u64,
    #[command(flatten)]
    entry: EntryArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum BackendArg {
    Native,
    Interp,
}

pub fn threads(text: &str) -> Result<NonZeroUsize, String> {
    parse_threads(text).ok_or_else(|| "it is a number from 1 to 1024".into())
}

fn target(text: &str) -> Result<(Option<Name>, PathBuf), String> {
    match named(text) {
        Ok((name, path)) if path.ends_with(".npy") => Ok((Some(name), path.into())),
        _ if text.ends_with(".npz") => Ok((None, text.into())),
        _ => Err("an output is NAME=FILE.npy, or FILE.npz for all of them".into()),
    }
}

/// Native runs made by `--time` end after about this long.
const TIMING_SECONDS: f64 = 1.0;

pub fn run(args: &RunArgs) -> Outcome {
    let report = Report::new(args.common.json);
    // What the arrays are can decide what a function is.
    let call = args.given.call().map_err(|error| report.error(error))?;
    let call = if args.domain == DomainArg::Undefined { call.allow_missing() } else { call };
    // Native code has a layout with padding, the evaluator the paper's own semantics.
    let native = args.backend == Some(BackendArg::Native);
    let (watch, vector) = if native { (None, args.pad) } else { (args.pad, None) };
    let options = Options { vector, ..args.entry.options(&args.common, Some(&call)) };
    let module = Module::from_file(&args.file, &options).map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), module.warnings());
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
    let name = module.core().name;
    let doing = || match backend(args, watch) {
        Backend::Native if !module.is_compiled() => format!("compiling {name}"),
        _ => format!("running {name}"),
    };
    let executed = report.working(doing, || execute(args, watch, &module, &call));
    let Executed { outputs, timing, remarks } = executed.map_err(|f| refused(&report, &f))?;
    report.warnings(module.sources(), &remarks);
    let paths = write(args, &outputs).map_err(|error| report.error(error))?;
    if args.common.json {
        let warnings: Vec<Diagnostic> = module.warnings().iter().chain(&remarks).cloned().collect();
        let mut value = as_json(args, &list(module.sources(), &warnings), &outputs, &paths, &timing);
        if let Some(vector) = watch {
            value["padding"] = json!({"vector_length": vector, "zero": remarks.is_empty()});
        }
        if args.time_passes {
            value["passes"] = passes::json(&module);
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
        if let Some(vector) = watch {
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
        if args.time_passes {
            report.text(&passes::text(&module));
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

/// What a run gave, and what there is to say about how it was done.
struct Executed {
    outputs: Vec<Output>,
    timing: Timing,
    remarks: Vec<Diagnostic>,
}

/// What runs the program; watching the padding takes the evaluator.
fn backend(args: &RunArgs, watch: Option<i64>) -> Backend {
    match args.backend {
        Some(BackendArg::Interp) => Backend::Interp,
        None if watch.is_some() || args.domain.choice() != DomainChoice::Machine => Backend::Interp,
        _ => Backend::Native,
    }
}

/// Runs the program; with a vector length to watch, as the paper evaluates with padding.
fn execute(args: &RunArgs, watch: Option<i64>, module: &Module, call: &Call) -> Result<Executed, Failure> {
    let domain = args.domain.choice();
    if let Some(vector) = watch {
        let run = module.run_padded(call, vector, domain, args.fuel)?;
        return Ok(Executed { outputs: run.outputs, timing: run.timing, remarks: run.spills });
    }
    let backend = backend(args, watch);
    let options = |backend, repeat| RunOptions { backend, domain, fuel: args.fuel, repeat, threads: args.threads };
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
            "threads": timing.threads,
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
    let threads = if timing.threads == 1 { "1 thread".into() } else { format!("{} threads", timing.threads) };
    let compile = match timing.compile {
        Some(time) => format!(", compiled in {:.0} ms", time.as_secs_f64() * 1e3),
        None => String::new(),
    };
    format!("time: {value:.3} {unit}, {runs}, {threads}{speed}{compile}\n")
}
