//! The command line. Exit status: 0 ok, 1 the program is wrong, 2 the call or the arrays are wrong, 3 the environment
//! failed. With `--json`, what a program would read goes to standard output; messages for people go to standard error.

mod bench;
mod check;
mod common;
mod doctor;
mod emit;
mod eval;
mod explain;
mod explain_error;
mod fmt;
mod given;
mod guard;
mod help;
mod passes;
mod peers;
mod prove;
mod repl;
mod report;
mod run;
mod show;
mod test;
mod trace;
mod verify;

use std::process::ExitCode;

use certen::road::syntax::{Code, Diagnostic};
use clap::{CommandFactory, Parser, Subcommand};

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
    /// Time the schedules of a program side by side, on the same arrays; or Certen beside other compilers
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
    /// Guard kernels of other frameworks: TACO, Tensor Comprehensions, TVM, CFDlang, `einsum` in Python
    Guard(Box<guard::GuardArgs>),
    /// Print the page of an error code
    ExplainError(explain_error::ExplainErrorArgs),
    /// Print the help of a command, or a page of the documentation
    Help(help::HelpArgs),
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
        Command::Guard(args) => guard::guard(&args),
        Command::ExplainError(args) => explain_error::explain_error(&args),
        Command::Help(args) => help::help(&args, Cli::command()),
    };
    if let Some(lost) = report::lost_output() {
        return ExitCode::from(Report::new(false).error(lost) as u8);
    }
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(blame) => ExitCode::from(blame as u8),
    }
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
