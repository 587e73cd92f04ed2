//! The project's own commands, run as `cargo xtask COMMAND`:
//!
//! - `test` runs all tests; `test --slow` runs the named slow set too, with 10,000 generated programs per property;
//! - `bless` rewrites what tests expect to what they now get: read the diff before committing it;
//! - `ci` does what has to pass before a change lands: tests, format, lints, documentation.

use std::env;
use std::process::{Command, ExitCode};

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

/// The slow set: generated programs in the thousands, and tests too slow for every day.
fn slow() -> bool {
    let more = [("CERTEN_CASES", "10000")];
    cargo(&["test", "--release", "-p", "certen-testgen", "-p", "certen-cli", "--", "--include-ignored"], &more)
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
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    println!("$ cargo {}", args.join(" "));
    match Command::new(cargo).args(args).envs(environment.iter().copied()).status() {
        Ok(status) => status.success(),
        Err(error) => {
            eprintln!("cannot run cargo: {error}");
            false
        }
    }
}
