//! The equations of the paper, by which errors are named.

use certen_syntax::{Code, Diagnostic, Rule, Span};

/// The rule that an equation of the paper states.
pub(crate) fn equation(number: u8) -> Rule {
    let (name, paper) = match number {
        12 => ("Eq. 12", "TeML, Fig. 8"),
        13 => ("Eq. 13", "TeML, Fig. 8"),
        14 => ("Eq. 14", "TeML, Fig. 8"),
        15 => ("Eq. 15", "TeML, Fig. 8"),
        16 => ("Eq. 16", "TeML, Fig. 8"),
        17 => ("Eq. 17", "TeML, Fig. 8"),
        18 => ("Eq. 18", "TeML, Fig. 8"),
        19 => ("Eq. 19", "TeML, Fig. 9"),
        20 => ("Eq. 20", "TeML, Fig. 9"),
        21 => ("Eq. 21", "TeML, Fig. 9"),
        22 => ("Eq. 22", "TeML, Fig. 9"),
        23 => ("Eq. 23", "TeML, Fig. 9"),
        24 | 25 => ("Eq. 25", "TeML, Fig. 9"),
        27 => ("Eq. 27", "TeML, Sec. 4.1"),
        28 => ("Eq. 28", "TeML, Sec. 4.1"),
        29 => ("Eq. 29", "TeML, Sec. 4.1"),
        30 => ("Eq. 30", "TeML, Sec. 4.2.1"),
        31 => ("Eq. 31", "TeML, Sec. 4.2.1"),
        32 => ("Eq. 32", "TeML, Sec. 4.2.2"),
        33 => ("Eq. 33", "TeML, Sec. 4.2.3"),
        34 => ("Eq. 34", "TeML, Sec. 4.2.4"),
        35 => ("Eq. 35", "TeML, Sec. 4.2.4"),
        _ => ("Eq. 26", "TeML, Fig. 9"),
    };
    Rule { name, paper }
}

/// An error by which a program is malformed (Sec. 3.4).
pub(crate) fn malformed(code: Code, equation: u8, span: Span, message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(code, span, message).rule(self::equation(equation)))
}

/// What an evaluation comes to.
pub(crate) type Evaluated<T> = Result<T, Box<Diagnostic>>;
