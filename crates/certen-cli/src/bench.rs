//! `certen bench`: the variants of a program side by side. With `--peers`, see [`peers`](crate::peers).

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use certen::road::syntax::Blame;
use certen::{Bench, BenchOptions, Choice, Entrant, Failure, Measured, Texts, Times, read_program};
use clap::Args;
use serde_json::{Value, json};

use crate::common::{Common, Outcome, Which, refused, schedule};
use crate::given::InputArgs;
use crate::peers::beside_peers;
use crate::report::{Report, list};
use crate::run::threads;

/// Names of variants are shown up to this length.
const LONGEST_NAME: usize = 32;

#[derive(Args)]
pub struct BenchArgs {
    /// The program
    #[arg(required_unless_present = "peers")]
    file: Option<PathBuf>,
    /// Time kernels beside other compilers and libraries instead, by the Python package; everything that follows is for
    /// it: `--peers --help` says what there is
    #[arg(long, value_name = "ARG", num_args = 0.., allow_hyphen_values = true, conflicts_with = "file")]
    peers: Vec<OsString>,
    /// What is timed, with commas in between: each is `none`, the name of a variant in the file, `default` for the one
    /// without a name, a file that ends in `.schedule`, or steps. Without it, `none` and all that the file has
    #[arg(long = "schedule", value_name = "WHAT,…", value_parser = choices)]
    schedules: Vec<Choices>,
    #[command(flatten)]
    given: InputArgs,
    /// How many threads, with commas in between; by default $CERTEN_THREADS, else as many as there are cores
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = threads, allow_negative_numbers = true)]
    threads: Vec<NonZeroUsize>,
    /// How many rounds; by default as many as the time allows, from 3 to 1000
    #[arg(long, value_name = "K", value_parser = rounds, allow_negative_numbers = true)]
    rounds: Option<NonZeroUsize>,
    /// How long all rounds of the slowest variant may take together, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, allow_negative_numbers = true)]
    time: Duration,
    /// By how much of the largest one floats may differ between variants; by default, what another order of the
    /// operations explains
    #[arg(long, value_name = "T", value_parser = tolerance, allow_negative_numbers = true)]
    tolerance: Option<f64>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    common: Common,
}

/// What one `--schedule` says.
#[derive(Clone)]
struct Choices(Vec<Choice>);

/// Reads `a,none,split(i, 32); unroll(i.i)`: commas inside parentheses belong to steps.
fn choices(text: &str) -> Result<Choices, String> {
    let mut depth = 0;
    let pieces = text.split(|c: char| {
        depth += i64::from(c == '(' || c == '[') - i64::from(c == ')' || c == ']');
        c == ',' && depth == 0
    });
    let pieces: Vec<&str> = pieces.map(str::trim).collect();
    match pieces.iter().any(|piece| piece.is_empty()) {
        true => Err("a name is missing before or after a comma".into()),
        false => pieces.into_iter().map(schedule).collect::<Result<_, _>>().map(Choices),
    }
}

fn rounds(text: &str) -> Result<NonZeroUsize, String> {
    let rounds = text.parse().ok().filter(|rounds: &NonZeroUsize| rounds.get() <= 100_000);
    rounds.ok_or_else(|| "it is a number from 1 to 100000".into())
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (1e-3..=1e5).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "it is a number of seconds from 0.001 to 100000".into())
}

fn tolerance(text: &str) -> Result<f64, String> {
    let tolerance = text.parse().ok().filter(|tolerance| (0.0..=1.0).contains(tolerance));
    tolerance.ok_or_else(|| "it is a number from 0 to 1, such as 1e-6".into())
}

pub fn bench(args: &BenchArgs) -> Outcome {
    match &args.file {
        Some(file) => variants(args, file),
        None => beside_peers(&args.peers),
    }
}

fn variants(args: &BenchArgs, file: &Path) -> Outcome {
    let report = Report::new(args.common.json);
    let call = args.given.call().map_err(|error| report.error(error))?;
    let options = args.which.options(&args.common, Some(&call));
    let (name, text) = read_program(file).map_err(|failure| refused(&report, &failure))?;
    let texts = Texts::read(name, text);
    let choices: Vec<Choice> = args.schedules.iter().flat_map(|choices| choices.0.clone()).collect();
    let (rounds, time, tolerance) = (args.rounds, args.time, args.tolerance);
    let how = BenchOptions { threads: args.threads.clone(), rounds, time, tolerance };
    let doing = Mutex::new(String::new());
    let progress = |what: String| {
        if let Ok(mut doing) = doing.lock() {
            *doing = what;
        }
    };
    let what = || doing.lock().map_or_else(|_| String::new(), |doing| doing.clone());
    let found = report.working(what, || certen::bench(&texts, &options, &choices, call, &how, &progress));
    let found = found.map_err(|failure| refused(&report, &failure))?;
    report.warnings(found.module.sources(), found.module.warnings());
    let failures: Vec<&Failure> = found.entrants.iter().filter_map(|entrant| entrant.result.as_ref().err()).collect();
    if args.common.json {
        report.json(&as_json(&found, failures.is_empty()));
    } else {
        report.text(&as_text(&found));
        failures.iter().for_each(|failure| report.failure(failure));
    }
    match failures.iter().map(|failure| failure.blame()).max() {
        None => Ok(()),
        // A call that a single variant does not bear is a variant that does not do.
        Some(Blame::Environment) => Err(Blame::Environment),
        Some(Blame::Program | Blame::Call) => Err(Blame::Program),
    }
}

/// The first variant that was timed, which the others are compared with.
fn first(found: &Bench) -> Option<&Times> {
    found.entrants.iter().find_map(|entrant| entrant.result.as_ref().ok()?.times.first())
}

fn speed(operations: Option<i64>, times: &Times) -> Option<f64> {
    Some(operations? as f64 / times.best.as_secs_f64().max(1e-9) / 1e9)
}

/// How much faster.
fn gain(first: Option<&Times>, times: &Times) -> f64 {
    first.map_or(1.0, |first| first.best.as_secs_f64() / times.best.as_secs_f64().max(1e-9))
}

fn as_text(found: &Bench) -> String {
    let sizes: Vec<String> = found.sizes.iter().map(|(name, size)| format!("{name} = {size}")).collect();
    let at = if sizes.is_empty() { String::new() } else { format!(" at {}", sizes.join(", ")) };
    let operations = found.operations.map_or_else(String::new, |operations| format!(", {operations} operations"));
    let rounds = if found.rounds == 1 { "1 round".into() } else { format!("{} rounds in turns", found.rounds) };
    let name = |entrant: &Entrant| {
        let name = entrant.choice.to_string();
        match name.chars().count() {
            0..=LONGEST_NAME => name,
            _ => name.chars().take(LONGEST_NAME - 1).chain(['…']).collect(),
        }
    };
    let width = found.entrants.iter().map(|entrant| name(entrant).chars().count()).max().unwrap_or(0).max(7);
    let mut text = format!("{}{at}{operations}, {rounds}\n", found.module.core().name);
    text += &format!(
        "{:<width$} {:>7} {:>9} {:>9} {:>8} {:>8}  {:<12} {:>7}\n",
        "variant", "threads", "best ms", "median", "Gop/s", "gain", "steps", "made in"
    );
    for entrant in &found.entrants {
        let (name, made) = (name(entrant), format!("{:.2} s", entrant.made.as_secs_f64()));
        let measured = match &entrant.result {
            Ok(measured) => measured,
            Err(failure) => {
                let codes: Vec<String> = failure.diagnostics().iter().map(|error| error.code.to_string()).collect();
                text += &format!("{name:<width$} refused: {}\n", codes.first().map_or("", String::as_str));
                continue;
            }
        };
        for times in &measured.times {
            let speed = speed(found.operations, times).map_or_else(|| "–".into(), |speed| format!("{speed:.2}"));
            let gain = format!("{:.2} x", gain(first(found), times));
            let [best, median] = [times.best, times.median].map(milliseconds);
            let (threads, steps) = (times.threads, steps(measured));
            text += &format!(
                "{name:<width$} {threads:>7} {best:>9} {median:>9} {speed:>8} {gain:>8}  {steps:<12} {made:>7}\n"
            );
        }
    }
    text
}

/// With three digits that mean something, at least.
fn milliseconds(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    if milliseconds < 1.0 { format!("{milliseconds:.6}") } else { format!("{milliseconds:.3}") }
}

/// How many steps, and how they are known to keep the meaning.
fn steps(measured: &Measured) -> String {
    match (measured.steps, measured.proved) {
        (0, true) => "none".into(),
        (steps, true) => format!("{steps}, proved"),
        (steps, false) => format!("{steps}, tested"),
    }
}

fn as_json(found: &Bench, ok: bool) -> Value {
    let variant = |entrant: &Entrant| {
        let mut value = json!({
            "variant": entrant.choice.to_string(),
            "made_seconds": entrant.made.as_secs_f64(),
            "ok": entrant.result.is_ok(),
        });
        match &entrant.result {
            Ok(measured) => {
                value["steps"] = json!(measured.steps);
                value["proved"] = json!(measured.proved);
                value["compile_seconds"] = json!(measured.compile.map(|time| time.as_secs_f64()));
                let times = |times: &Times| {
                    json!({
                        "threads": times.threads,
                        "best_seconds": times.best.as_secs_f64(),
                        "median_seconds": times.median.as_secs_f64(),
                        "runs_in_a_round": times.runs,
                        "gop_per_second": speed(found.operations, times),
                        "gain": gain(first(found), times),
                    })
                };
                value["times"] = measured.times.iter().map(times).collect();
            }
            Err(failure) => value["diagnostics"] = list(failure.sources(), failure.diagnostics()).into(),
        }
        value
    };
    let failures = found.entrants.iter().filter_map(|entrant| entrant.result.as_ref().err());
    let mut diagnostics = list(found.module.sources(), found.module.warnings());
    diagnostics.extend(failures.flat_map(|failure| list(failure.sources(), failure.diagnostics())));
    let sizes: serde_json::Map<String, Value> =
        found.sizes.iter().map(|(name, size)| (name.to_string(), json!(size))).collect();
    json!({
        "ok": ok,
        "diagnostics": diagnostics,
        "program": found.module.core().name.as_str(),
        "sizes": sizes,
        "operations": found.operations,
        "rounds": found.rounds,
        "variants": found.entrants.iter().map(variant).collect::<Vec<_>>(),
    })
}
