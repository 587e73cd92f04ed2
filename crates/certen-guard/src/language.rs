//! The languages that the guard reads, and what their frameworks are called.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A language of kernels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Language {
    /// Index notation of the Tensor Algebra Compiler.
    Taco,
    /// Tensor Comprehensions.
    Tc,
    /// Python: TVM's tensor expressions, and calls of `einsum`.
    Python,
    /// CFDlang.
    Cfdlang,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 4] = [Language::Taco, Language::Tc, Language::Python, Language::Cfdlang];

    /// The ending of its files.
    pub fn ending(self) -> &'static str {
        match self {
            Language::Taco => "taco",
            Language::Tc => "tc",
            Language::Python => "py",
            Language::Cfdlang => "cfd",
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Language::Taco => "TACO",
            Language::Tc => "Tensor Comprehensions",
            Language::Python => "Python",
            Language::Cfdlang => "CFDlang",
        }
    }

    /// The language of a file, by its ending.
    pub fn of(name: &str) -> Option<Language> {
        Path::new(name).extension()?.to_str()?.parse().ok()
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Language {
    type Err = String;

    /// By the ending of its files.
    fn from_str(text: &str) -> Result<Language, String> {
        let found = Language::ALL.into_iter().find(|language| language.ending() == text);
        found.ok_or_else(|| "it is one of taco, tc, py, cfd".into())
    }
}
