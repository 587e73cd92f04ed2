//! `certen bench --peers`: Certen beside other compilers and libraries. They are called from Python, so the Python package
//! has the bench, and this starts it.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use certen::road::syntax::{Blame, Code, Diagnostic};

use crate::common::Outcome;
use crate::report::Report;

/// Runs the bench with these arguments.
pub fn beside_peers(args: &[OsString]) -> Outcome {
    let python = env::var_os("CERTEN_PYTHON").unwrap_or_else(|| "python3".into());
    let shown = python.display();
    let refuse = |message: String| {
        let help = "`pip install .` in a clone installs it; $CERTEN_PYTHON names another Python";
        Err(Report::new(false).error(Diagnostic::error(Code::E0605, None, message).help(help)))
    };
    let there = Command::new(&python).args(["-c", "import certen.bench"]).stderr(Stdio::null()).status();
    match there {
        Ok(status) if status.success() => {}
        Ok(_) => return refuse(format!("`{shown}` does not have the package `certen`")),
        Err(error) => return refuse(format!("cannot run `{shown}`: {error}")),
    }
    let status = Command::new(&python).args(["-m", "certen.bench"]).args(args).status();
    match status.as_ref().map(|status| status.code()) {
        Ok(Some(0)) => Ok(()),
        Ok(Some(1)) => Err(Blame::Program),
        Ok(Some(2)) => Err(Blame::Call),
        _ => Err(Blame::Environment),
    }
}
