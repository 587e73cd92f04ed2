//! Where everything that the commands say goes: text or JSON, standard output or standard error, with colours on a
//! terminal only. Output that is no longer read (a closed pipe) ends the output, not the program; output that is lost
//! for another reason (a full disk) is told at the end, by [`lost_output`].

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use certen::Failure;
use certen::road::syntax::{Blame, Code, Diagnostic, Sources, render_all, to_json};
use serde_json::{Value, json};

/// Why output was lost, the first time.
static LOST: OnceLock<String> = OnceLock::new();

/// The error of a command whose output could not be written.
pub fn lost_output() -> Option<Diagnostic> {
    let reason = LOST.get()?;
    Some(Diagnostic::error(Code::E0603, None, format!("cannot write to standard output: {reason}")))
}

/// How a command speaks.
pub struct Report {
    json: bool,
    colour: bool,
}

impl Report {
    /// In JSON, or in text.
    pub fn new(json: bool) -> Report {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Report { json, colour }
    }

    /// Whether a program reads what is said.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Text on standard output.
    pub fn text(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                let _ = LOST.set(error.to_string());
            }
            _ => {}
        }
    }

    /// A JSON value on standard output, on one line.
    pub fn json(&self, value: &Value) {
        self.text(&format!("{value}\n"));
    }

    /// Diagnostics that do not end the command: text on standard error. In JSON they are part of the command's value.
    pub fn warnings(&self, sources: &Sources, diagnostics: &[Diagnostic]) {
        if !self.json && !diagnostics.is_empty() {
            self.complain(&render_all(sources, diagnostics, self.colour));
        }
    }

    /// Why a command failed.
    pub fn failure(&self, failure: &Failure) {
        self.refuse(failure.sources(), failure.diagnostics());
    }

    /// Why one of several files failed: in JSON it is added to the diagnostics of the command's value.
    pub fn gathered(&self, failure: &Failure, diagnostics: &mut Vec<Value>) -> Blame {
        if self.json {
            diagnostics.extend(list(failure.sources(), failure.diagnostics()));
        } else {
            self.failure(failure);
        }
        failure.blame()
    }

    /// A failure that has no source text.
    pub fn error(&self, diagnostic: Diagnostic) -> Blame {
        let blame = diagnostic.code.blame();
        self.refuse(&Sources::new(), &[diagnostic]);
        blame
    }

    /// Why a command failed, in these texts.
    pub fn refuse(&self, sources: &Sources, diagnostics: &[Diagnostic]) {
        if self.json {
            self.json(&json!({"ok": false, "diagnostics": list(sources, diagnostics)}));
        } else {
            self.complain(&render_all(sources, diagnostics, self.colour));
        }
    }

    /// Does some work; where it takes longer than a second, a terminal shows what it is and for how long.
    pub fn working<T>(&self, what: impl Fn() -> String + Send, work: impl FnOnce() -> T) -> T {
        if !std::io::stderr().is_terminal() {
            return work();
        }
        let (done, waiting) = mpsc::channel::<()>();
        thread::scope(|scope| {
            // Without a thread to tell it, the work is done all the same.
            let _ = thread::Builder::new().spawn_scoped(scope, move || {
                let mut seconds = 0;
                while waiting.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                    seconds += 1;
                    self.complain(&format!("\r\x1b[K{}… {seconds} s", what()));
                }
                if seconds > 0 {
                    self.complain("\r\x1b[K");
                }
            });
            let result = work();
            drop(done);
            result
        })
    }

    /// Text on standard error.
    pub fn complain(&self, text: &str) {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }
}

/// Diagnostics as JSON.
pub fn list(sources: &Sources, diagnostics: &[Diagnostic]) -> Vec<Value> {
    diagnostics.iter().map(|diagnostic| to_json(sources, diagnostic)).collect()
}
