//! What a program of Core has to satisfy before loops are made of it.
//!
//! Truncations cut off nothing but padding (ATL, Sec. 6), and every access is in bounds. The typing rules of the other
//! notations have shown both; a program that was written in Core, or that a rewrite has made, is checked here.

use certen_core::{Program, padding};
use certen_loops::FpMode;
use certen_syntax::{Code, Diagnostic};

/// The truncations of a program that cut more than padding.
pub(crate) fn truncations(core: &Program) -> Vec<Diagnostic> {
    padding::check(core).iter().map(|violation| violation.diagnostic(core, &|_| None)).collect()
}

/// What is wrong with the accesses of a Core program, which no typing rule has shown to be in bounds: the verifier of
/// its loops says.
pub(crate) fn bounds(core: &Program) -> Vec<Diagnostic> {
    match certen_loops::lower(core, FpMode::Relaxed) {
        Ok(loops) => certen_loops::verify(&loops),
        Err(error) if error.code == Code::E0703 => {
            let text = format!("the accesses of `{}` are not shown to be in bounds: {}", core.name, error.message);
            vec![Diagnostic::warning(Code::W0303, None, text)]
        }
        Err(error) => vec![error],
    }
}
