//! The project's own commands, run as `cargo xtask COMMAND`:
//!
//! - `test` runs all tests; `test --slow` runs the named slow set too, with 10,000 generated programs per property (20,000
//!   in `.ten` and Core, 5,000 of those under sanitizers) and 100,000 questions to the prover, which z3 is asked too, and
//!   NumPy computes the examples again;
//! - `bless` rewrites what tests expect to what they now get: read the diff before committing it;
//! - `ci` does what has to pass before a change lands: tests, format, lints, documentation.

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str = "usage: cargo xtask (test [--slow] [FILTER] | bless | ci)";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let ok = match words.as_slice() {
        ["test"] => test(&[]),
        ["test", "--slow"] => test(&[]) && slow(),
        ["test", filter] => test(&[filter]),
        ["bless"] => bless(),
        ["ci"] => ci(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every test of the workspace, the examples in its documentation, and the programs in `tests/`.
fn test(filter: &[&str]) -> bool {
    cargo(&[&["test", "--workspace", "--quiet", "--"], filter].concat(), &[])
}

/// The test of how long the prover takes.
const QUICK: &str = "answers_come_quickly";

/// The slow set: generated programs in the thousands, and tests too slow for every day.
fn slow() -> bool {
    let programs = [("CERTEN_CASES", "10000")];
    let (Some(z3), Some(numpy)) = (python_with("z3-solver", "z3"), python_with("numpy", "numpy")) else { return false };
    let questions = [("CERTEN_CASES", "100000"), ("CERTEN_Z3_PYTHON", &z3)];
    let examples = [("CERTEN_NUMPY_PYTHON", &*numpy)];
    cargo(&["test", "--release", "-p", "certen-testgen", "-p", "certen-cli", "--", "--include-ignored"], &programs)
        && cargo(&["test", "--release", "-p", "certen", "--test", "examples", "--", "--include-ignored"], &examples)
        && cargo(&["test", "--release", "-p", "certen-index", "--", "--include-ignored", "--skip", QUICK], &questions)
        // Time is measured alone.
        && cargo(&["test", "--release", "-p", "certen-index", "--", "--ignored", "--nocapture", QUICK], &questions)
}

/// A Python that has a package (what is installed, what is imported), in an environment of its own under `target`, made
/// once.
fn python_with(package: &str, module: &str) -> Option<String> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), |given| workspace.join(given));
    let place = target.join(module).display().to_string();
    let python = format!("{place}/bin/python");
    let import = format!("import {module}");
    let has_package = || Command::new(&python).args(["-c", &import]).stderr(Stdio::null()).status();
    if has_package().is_ok_and(|status| status.success()) {
        return Some(python);
    }
    let made = run("python3", &["-m", "venv", &place], &[]) && run(&python, &["-m", "pip", "install", package], &[]);
    made.then_some(python)
}

/// Rewrites expectations: headers of programs, snapshots, generated documentation.
fn bless() -> bool {
    cargo(&["test", "--workspace", "--quiet"], &[("CERTEN_BLESS", "1")])
}

fn ci() -> bool {
    let workspace = env!("CARGO_MANIFEST_DIR");
    println!("checking {workspace}/..");
    test(&[])
        && cargo(&["fmt", "--all", "--check"], &[])
        && cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"], &[])
        && cargo(&["doc", "--workspace", "--no-deps", "--quiet"], &[("RUSTDOCFLAGS", "-D warnings")])
}

fn cargo(args: &[&str], environment: &[(&str, &str)]) -> bool {
    run(&env::var("CARGO").unwrap_or_else(|_| "cargo".into()), args, environment)
}

fn run(program: &str, args: &[&str], environment: &[(&str, &str)]) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default().display();
    println!("$ {name} {}", args.join(" "));
    match Command::new(program).args(args).envs(environment.iter().copied()).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run {name}: {error}");
            false
        }
    }
}
