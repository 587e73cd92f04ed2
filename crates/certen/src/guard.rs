//! A guard for the kernels of other frameworks: TACO, Tensor Comprehensions, TVM, CFDlang, `einsum` in Python.
//!
//! A file is read as the framework reads it, and each kernel in it is shown to stay inside its tensors, for all sizes, or
//! gets [`Fault`]s with sizes that show it. A kernel can be written as a `.ten` program, which is a [`Module`](crate::Module)
//! like any other.
//!
//! ```
//! let guarded = certen::guard::text("mm.taco", "
//!     double A(m, n), B(m, k), C(m, n)
//!     A(i, j) = B(i, l) * C(l, j)
//! ", None)?;
//! let kernel = &guarded.kernels()[0];
//! assert!(!kernel.is_safe());
//! assert_eq!(kernel.faults()[0].diagnostic.message,
//!     "`l` has two sizes: dimension 2 of `B` is k, dimension 1 of `C` is m");
//! # Ok::<(), certen::Failure>(())
//! ```

use std::path::Path;
use std::sync::Arc;

use certen_syntax::{Blame, Code, Diagnostic, Name, Sources};

use crate::deep::deeply;
use crate::failure::Failure;
use crate::texts::read_text;

pub use certen_guard::{Fault, Kernel, Language, Tensor};

/// A file and its kernels.
pub struct Guarded {
    sources: Arc<Sources>,
    kernels: Vec<Judged>,
    notes: Vec<Diagnostic>,
}

impl Guarded {
    /// The text.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Its kernels, in order.
    pub fn kernels(&self) -> &[Judged] {
        &self.kernels
    }

    /// What its reader should know, besides what is wrong.
    pub fn notes(&self) -> impl Iterator<Item = &Diagnostic> {
        self.notes.iter().chain(self.kernels.iter().flat_map(|judged| &judged.kernel.notes))
    }

    /// Whether every kernel is safe.
    pub fn is_safe(&self) -> bool {
        self.kernels.iter().all(Judged::is_safe)
    }
}

/// A kernel and the verdict.
pub struct Judged {
    kernel: Kernel,
    faults: Vec<Fault>,
    ten: Result<String, String>,
}

impl Judged {
    /// What it is called.
    pub fn name(&self) -> Name {
        self.kernel.name
    }

    /// As it was read.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Whether it stays inside its tensors, for all sizes.
    pub fn is_safe(&self) -> bool {
        self.faults.is_empty()
    }

    /// What makes it unsafe.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The kernel as a `.ten` program.
    ///
    /// # Errors
    /// If it is not safe, or the language cannot say it.
    pub fn ten(&self) -> Result<&str, Failure> {
        let refuse = |text: String| {
            let error =
                Diagnostic::error(Code::E0407, None, format!("`{}` has no `.ten` program: {text}", self.name()));
            Failure::new(Arc::default(), vec![error])
        };
        match &self.ten {
            _ if !self.is_safe() => Err(refuse("it is not safe".into())),
            Ok(text) => Ok(text),
            Err(reason) => Err(refuse(reason.clone())),
        }
    }
}

/// Guards a file; its ending tells the language, if nothing else does.
///
/// # Errors
/// If it cannot be read as its language.
pub fn file(path: impl AsRef<Path>, language: Option<Language>) -> Result<Guarded, Failure> {
    let path = path.as_ref();
    let name = path.display().to_string();
    // A file that is no kernel is not read.
    let language = language.map_or_else(|| required(&name), Ok)?;
    match read_text(path) {
        Ok(read) => text(&name, read, Some(language)),
        Err(reason) => {
            let error = Diagnostic::error(Code::E0104, None, format!("{name}: {reason}"));
            Err(Failure::new(Arc::default(), vec![error]))
        }
    }
}

/// Guards a text, of a file of this name.
///
/// # Errors
/// If it cannot be read as its language.
pub fn text(name: &str, text: impl Into<String>, language: Option<Language>) -> Result<Guarded, Failure> {
    let language = language.map_or_else(|| required(name), Ok)?;
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let read = deeply(|| {
        let (kernels, notes) = certen_guard::read(&sources, file, language)?;
        let judged = |kernel: Kernel| {
            let faults = certen_guard::faults(&kernel);
            let ten = certen_guard::ten(&kernel);
            Judged { kernel, faults, ten }
        };
        Ok((kernels.into_iter().map(judged).collect(), notes))
    });
    let sources = Arc::new(sources);
    match read {
        Ok((kernels, notes)) => Ok(Guarded { sources, kernels, notes }),
        Err(errors) => Err(Failure::new(sources, errors)),
    }
}

fn required(name: &str) -> Result<Language, Failure> {
    Language::of(name).ok_or_else(|| {
        let error = Diagnostic::error(Code::E0104, None, format!("{name}: the file's ending names no language"));
        let endings = "TACO's index notation ends in `.taco`, Tensor Comprehensions in `.tc`, CFDlang in `.cfd`, and \
                       Python, with TVM's tensor expressions and calls of `einsum`, in `.py`";
        Failure::new(Arc::default(), vec![error.help(endings)])
    })
}

/// Who has to change something about a file that could not be read: a text that is not in its language is a wrong call.
pub fn blame(failure: &Failure) -> Blame {
    failure.blame().max(Blame::Call)
}
