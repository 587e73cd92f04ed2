//! An expression of C, with what decides about parentheses and temporaries.

use std::collections::BTreeSet;

use certen_syntax::{Code, Diagnostic};

use crate::helpers::vectors::Lane;

/// How tightly C holds an expression together, loosest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Level {
    Conditional,
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Prefix,
    Primary,
}

/// An expression of C.
#[derive(Clone)]
pub(crate) struct CExpr {
    pub(crate) text: String,
    pub(super) level: Level,
    pub(super) operations: usize,
    pub(super) depth: usize,
    /// Whether GCC sees, in this expression alone, which sign a zero has: see [`Helper::Hidden`](crate::helpers::Helper).
    pub(super) shows_sign: bool,
    /// What a lane of the vector loop around it holds, if it varies from lane to lane.
    pub(crate) lane: Option<Lane>,
    /// The variables in it, each as a parameter and as an argument of a function; only collected for large statements.
    pub(super) variables: BTreeSet<(String, String)>,
}

impl CExpr {
    pub(crate) fn new(text: String, level: Level) -> CExpr {
        CExpr { text, level, operations: 1, depth: 1, shows_sign: false, lane: None, variables: BTreeSet::new() }
    }

    /// One for each lane.
    pub(crate) fn in_lanes(text: String, level: Level, lane: Lane) -> CExpr {
        CExpr::new(text, level).of_lane(lane)
    }

    /// The same, one for each lane.
    pub(crate) fn of_lane(self, lane: Lane) -> CExpr {
        CExpr { lane: Some(lane), ..self }
    }

    /// As an operand that must hold together at least this tightly.
    pub(crate) fn at(&self, level: Level) -> String {
        if self.level < level { format!("({})", self.text) } else { self.text.clone() }
    }
}

/// The error for a term that has no expression in C.
pub(crate) fn unsupported() -> Diagnostic {
    Diagnostic::error(Code::E0702, None, "a value is not made of scalar operations")
}
