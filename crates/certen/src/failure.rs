//! Why something was refused: diagnostics with the sources they speak of.

use std::fmt;
use std::sync::Arc;

use certen_syntax::{Blame, Code, Diagnostic, Sources, render_all};

/// One or more errors, with the warnings around them, in the order of the text.
#[derive(Clone)]
pub struct Failure {
    sources: Arc<Sources>,
    diagnostics: Vec<Diagnostic>,
}

impl Failure {
    pub(crate) fn new(sources: Arc<Sources>, diagnostics: Vec<Diagnostic>) -> Failure {
        Failure { sources, diagnostics }
    }

    /// The errors and warnings.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The texts that the diagnostics point into.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Who has to change something.
    pub fn blame(&self) -> Blame {
        let errors = self.diagnostics.iter().filter(|d| d.is_error());
        errors.map(|d| d.code.blame()).max().unwrap_or(Blame::Program)
    }

    /// Whether code was made that does not do what the program means.
    pub(crate) fn is_wrong_code(&self) -> bool {
        self.diagnostics.iter().any(|error| matches!(error.code, Code::E0704 | Code::E0705 | Code::E0707))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(render_all(&self.sources, &self.diagnostics, false).trim_end())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
