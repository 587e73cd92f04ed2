//! The command line. Exit status: 0 ok, 1 the program is wrong, 2 the call or the arrays are wrong, 3 the environment
//! failed. With `--json`, what a program would read goes to standard output; messages for people go to standard error.

mod bench;
mod check;
mod doctor;
mod emit;
mod eval;
mod explain;
mod fmt;
mod given;
mod help;
mod prove;
mod repl;
mod report;
mod run;
mod show;
mod test;
mod trace;
mod verify;

use std::path::Path;
use std::process::ExitCode;

use certen::road::syntax::{Blame, Code, Diagnostic};
use certen::{Call, Choice, Cpu, ElemType, Failure, FpMode, Name, Options};
use clap::{Args, Parser, Subcommand, ValueEnum};

use report::Report;

/// A tensor language whose accepted programs cannot go out of bounds.
#[derive(Parser)]
#[command(name = "certen", version, propagate_version = true, max_term_width = 100)]
#[command(disable_help_subcommand = true, after_help = help::pages())]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check programs: names, shapes, bounds for all sizes
    Check(check::CheckArgs),
    /// Run a program on arrays, natively or by the reference evaluator
    Run(Box<run::RunArgs>),
    /// Time the schedules of a program side by side, on the same arrays
    Bench(Box<bench::BenchArgs>),
    /// Evaluate an expression of the `.ten` language
    Eval(Box<eval::EvalArgs>),
    /// Talk in the `.ten` language: expressions are evaluated, declarations stay
    Repl(repl::ReplArgs),
    /// Test what `.ten` files claim in lines that begin with `//?`
    Test(test::TestArgs),
    /// Show how one element of a program's output is computed
    Trace(Box<trace::TraceArgs>),
    /// Format `.ten` files
    Fmt(fmt::FmtArgs),
    /// Print a program as C, loops, Core, TeIL or the model language
    Emit(emit::EmitArgs),
    /// Show a program at every stage of the road
    Explain(explain::ExplainArgs),
    /// Show what is proved of a program's loops, write it down as a certificate, or check one
    Verify(Box<verify::VerifyArgs>),
    /// Ask whether a condition on sizes and indices holds for all integers
    Prove(prove::ProveArgs),
    /// Say what is on this machine, and examine its C compilers
    Doctor(doctor::DoctorArgs),
    /// Print the page of an error code
    ExplainError(ExplainErrorArgs),
    /// Print the help of a command, or a page of the documentation
    Help(help::HelpArgs),
}

/// Options of every command that reads a program.
#[derive(Args)]
struct Common {
    /// Element type of dialects that do not name one: f64, f32, i64, i32
    #[arg(long, value_name = "TYPE", default_value = "f64", value_parser = elem_type)]
    elem: ElemType,
    /// Whether sums and products of floats may be computed in another order than written
    #[arg(long, value_enum, value_name = "MODE", default_value = "relaxed")]
    fp: FpArg,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

/// What may be assumed of floats.
#[derive(Clone, Copy, ValueEnum)]
enum FpArg {
    /// They may; and they are factored or distributed where that saves operations, which `explain` says. Roundings are
    /// others then, and what is in between may overflow
    Relaxed,
    /// Every operation is made as written
    Strict,
}

impl Common {
    fn options(&self) -> Options {
        let fp = match self.fp {
            FpArg::Relaxed => FpMode::Relaxed,
            FpArg::Strict => FpMode::Strict,
        };
        Options { elem: self.elem, fp, ..Options::default() }
    }
}

/// Options of every command that needs one function of a program.
#[derive(Args)]
struct Entry {
    #[command(flatten)]
    which: Which,
    /// How its loops are transformed: `none`, the name of a variant in the file, `default` for the one without a name, a
    /// file that ends in `.schedule`, or steps such as `split(i, 32); vectorize(j, 4)`. Without it, what the file says
    #[arg(long, value_name = "WHAT", value_parser = schedule)]
    schedule: Option<Choice>,
}

/// Which function of a program.
#[derive(Args)]
struct Which {
    /// The function of a `.ten` file, if it is not `main` or the only one
    #[arg(long = "fn", value_name = "NAME")]
    function: Option<String>,
    /// How many dimensions an input has that may have any number, where no array tells: `x=2`
    #[arg(long = "rank", value_name = "NAME=RANK", value_parser = given::rank)]
    ranks: Vec<(Name, usize)>,
    /// Refuse a schedule that is not proved to keep the meaning for all sizes, even if it does wherever it was tested
    #[arg(long)]
    require_proof: bool,
    /// The instruction set that native code is made for: sse2, avx2, avx512 or native, which is all that the processor
    /// has. Without it, what $CERTEN_CPU says
    #[arg(long, value_name = "SET", value_parser = cpu)]
    cpu: Option<Cpu>,
}

impl Entry {
    fn options(&self, common: &Common, call: Option<&Call>) -> Options {
        Options { schedule: self.schedule.clone().unwrap_or_default(), ..self.which.options(common, call) }
    }
}

impl Which {
    fn options(&self, common: &Common, call: Option<&Call>) -> Options {
        let mut known = call.map(Call::known).unwrap_or_default();
        known.ranks.extend(self.ranks.iter().copied());
        let function = self.function.as_deref().map(Name::new);
        Options { function, known, require_proof: self.require_proof, cpu: self.cpu, ..common.options() }
    }
}

fn elem_type(text: &str) -> Result<ElemType, String> {
    let elem: Option<ElemType> = text.parse().ok().filter(|elem: &ElemType| elem.has_arithmetic());
    elem.ok_or_else(|| "it is one of f64, f32, i64, i32".into())
}

fn cpu(text: &str) -> Result<Cpu, String> {
    let cpu: Cpu = text.parse()?;
    if cpu.is_here() { Ok(cpu) } else { Err(format!("this processor does not have {cpu}")) }
}

fn schedule(text: &str) -> Result<Choice, String> {
    let said = |failure: Failure| failure.diagnostics().iter().map(|error| error.message.clone()).collect::<Vec<_>>();
    Choice::named(text).map_err(|failure| said(failure).join("; "))
}

#[derive(Args)]
struct ExplainErrorArgs {
    /// A code such as E0208; without one, all are listed
    code: Option<String>,
    /// Print JSON on standard output
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Programs that asked for JSON get it, whatever is wrong with the rest of the line.
        Err(error) if error.use_stderr() && std::env::args_os().any(|arg| arg == "--json") => {
            let text = error.render().to_string();
            let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
            let blame = Report::new(true).error(Diagnostic::error(Code::E0407, None, first));
            return ExitCode::from(blame as u8);
        }
        Err(error) => error.exit(),
    };
    // Without it, a signal ends the command all the same, and may leave a compiler running.
    let _ = certen::road::runtime::clean_up_on_signals();
    let result = match cli.command {
        Command::Check(args) => check::check(&args),
        Command::Run(args) => run::run(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Eval(args) => eval::eval(&args),
        Command::Repl(args) => repl::repl(&args),
        Command::Test(args) => test::test(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Fmt(args) => fmt::fmt(&args),
        Command::Emit(args) => emit::emit(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Prove(args) => prove::prove(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::ExplainError(args) => explain_error(&args),
        Command::Help(args) => help::help(&args),
    };
    if let Some(lost) = report::lost_output() {
        return ExitCode::from(Report::new(false).error(lost) as u8);
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(blame) => ExitCode::from(blame as u8),
    }
}

/// What a command comes to: nothing, or who has to change something. What went wrong has been reported.
type Outcome = Result<(), Blame>;

fn explain_error(args: &ExplainErrorArgs) -> Outcome {
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

/// Reports why a program was refused.
fn refused(report: &Report, failure: &Failure) -> Blame {
    report.failure(failure);
    failure.blame()
}

/// What messages call a file.
fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// No two options of a command have one name, and whatever else clap can find out.
    #[test]
    fn every_command_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
