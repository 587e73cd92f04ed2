//! What can go wrong when programs are run, as values with a page in the error index.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use certen_syntax::{Code, Name};

use crate::array::ArrayError;

/// Why something could not be run.
#[derive(Debug)]
pub enum RuntimeError {
    /// There is no C compiler.
    NoCompiler {
        /// What was looked for, and what happened.
        tried: String,
    },
    /// The C compiler did not accept or could not finish the C text.
    CompilerFailed {
        /// The compiler.
        compiler: PathBuf,
        /// How it ended: `exit status: 1`.
        status: String,
        /// The beginning of what it said.
        stderr: String,
    },
    /// The compiled code is not a kernel of this version: it cannot be loaded, lacks a symbol, or breaks its contract.
    BadKernel(String),
    /// The operating system refused.
    Io {
        /// What was tried: `write`.
        action: &'static str,
        /// On which file or directory.
        path: PathBuf,
        /// Its reason.
        error: io::Error,
    },
    /// A kernel could not allocate its temporary buffers.
    KernelOutOfMemory,
    /// An array cannot exist, or is not the one that a kernel wants.
    Array {
        /// Which: `input 2`.
        which: String,
        /// What is wrong with it.
        error: ArrayError,
    },
    /// A kernel was called with too few or too many sizes or arrays, or with sizes outside its types.
    WrongCall(String),
    /// A kernel was called with sizes for which it was not shown to be in bounds.
    ExcludedSizes {
        /// The condition that does not hold: `n >= 1`.
        fact: String,
        /// The sizes of the call.
        sizes: Vec<(Name, i64)>,
    },
    /// A kernel was called with sizes so large that an index or a number of bytes would not fit in 64 bits.
    SizesTooLarge {
        /// The sizes of the call.
        sizes: Vec<(Name, i64)>,
    },
    /// An environment variable has a value without meaning.
    Setting {
        /// The variable.
        name: &'static str,
        /// What it should hold.
        wanted: &'static str,
        /// What it holds.
        found: String,
    },
}

impl RuntimeError {
    /// Its page in the error index.
    pub fn code(&self) -> Code {
        match self {
            RuntimeError::NoCompiler { .. } => Code::E0601,
            RuntimeError::CompilerFailed { .. } | RuntimeError::BadKernel(_) => Code::E0602,
            RuntimeError::Io { .. } => Code::E0603,
            RuntimeError::KernelOutOfMemory => Code::E0604,
            RuntimeError::Array { error, .. } => error.code(),
            RuntimeError::WrongCall(_) => Code::E0403,
            RuntimeError::ExcludedSizes { .. } => Code::E0409,
            RuntimeError::SizesTooLarge { .. } => Code::E0408,
            RuntimeError::Setting { .. } => Code::E0407,
        }
    }

    /// For `map_err` after an operation on a file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RuntimeError {
        let path = path.to_path_buf();
        move |error| RuntimeError::Io { action, path, error }
    }
}

impl fmt::Display for RuntimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuntimeError::NoCompiler { tried } => write!(f, "there is no C compiler: {tried}"),
            RuntimeError::CompilerFailed { compiler, status, stderr } => {
                write!(f, "the C compiler {} failed ({status})", compiler.display())?;
                if stderr.is_empty() { Ok(()) } else { write!(f, ":\n{stderr}") }
            }
            RuntimeError::BadKernel(why) => write!(f, "the compiled code is not a kernel: {why}"),
            RuntimeError::Io { action, path, error } => write!(f, "cannot {action} {}: {error}", path.display()),
            RuntimeError::KernelOutOfMemory => write!(f, "memory ran out: the kernel could not allocate its buffers"),
            RuntimeError::Array { which, error } => write!(f, "{which}: {error}"),
            RuntimeError::WrongCall(why) => f.write_str(why),
            RuntimeError::ExcludedSizes { fact, sizes } => {
                write!(f, "the sizes {} do not satisfy {fact}", listed(sizes))
            }
            RuntimeError::SizesTooLarge { sizes } => {
                write!(f, "with the sizes {}, an index or a number of bytes does not fit in 64 bits", listed(sizes))
            }
            RuntimeError::Setting { name, wanted, found } => {
                write!(f, "the environment variable {name} should be {wanted}, but is `{found}`")
            }
        }
    }
}

fn listed(sizes: &[(Name, i64)]) -> String {
    sizes.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

impl std::error::Error for RuntimeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RuntimeError::Io { error, .. } => Some(error),
            RuntimeError::Array { error, .. } => Some(error),
            _ => None,
        }
    }
}
