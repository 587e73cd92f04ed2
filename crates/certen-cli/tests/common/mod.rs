//! The real command, as a user runs it.

use std::path::Path;
use std::process::{Command, Stdio};

/// The binary under test.
pub const CERTEN: &str = env!("CARGO_BIN_EXE_certen");

/// What a command came to.
#[derive(Debug)]
pub struct Ran {
    /// The exit status; none after a signal.
    pub status: Option<i32>,
    /// What it wrote to standard output.
    pub out: String,
    /// What it wrote to standard error.
    pub err: String,
}

/// A program to be run in a directory, with no input and a cache that only these tests use.
pub fn command(program: &str, directory: &Path) -> Command {
    let mut command = Command::new(program);
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    command.current_dir(directory).stdin(Stdio::null()).env("CERTEN_CACHE", cache);
    command
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8 text");
    Ran { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}
