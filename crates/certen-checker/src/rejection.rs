//! Why a certificate is rejected.

use std::fmt;

/// Why a certificate is rejected, or a program has none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// The field of the certificate, such as `bounds[3].witness`; of a program, `nest`.
    pub at: String,
    /// What is wrong with it.
    pub why: String,
}

impl Rejection {
    pub(crate) fn new(at: impl Into<String>, why: impl fmt::Display) -> Rejection {
        Rejection { at: at.into(), why: why.to_string() }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

impl std::error::Error for Rejection {}
