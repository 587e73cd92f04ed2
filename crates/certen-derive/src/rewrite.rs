//! Rewrites as named values.

use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::pattern::{Pattern, SideCondition, Words, parse, parse_side};

/// An equation between terms, which can be taken in both directions.
pub struct Rewrite {
    /// Its name in scripts.
    pub name: &'static str,
    /// What a script gives, in order: metavariables that the side which is matched does not determine.
    pub parameters: &'static [(&'static str, ParameterKind)],
    /// The left side: Core's text with metavariables.
    pub left: &'static str,
    /// The right side.
    pub right: &'static str,
    /// When both sides are equal: conditions on the metavariables.
    pub conditions: &'static [&'static str],
    /// Which laws of arithmetic it uses.
    pub law: Law,
    /// What it is for, in a sentence or two.
    pub about: &'static str,
    /// How it is done.
    pub(crate) how: How,
}

/// How a rewrite is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum How {
    /// One side is matched, the other one is built.
    Pattern,
    /// By code (`rules/code.rs`), where the sides cannot say all of it: every occurrence of a term gets a name.
    Bind,
    /// By code: what the context makes superfluous is left out.
    Simplify,
}

/// What a parameter of a rewrite is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// An index expression.
    Index,
    /// A positive number.
    Number,
    /// A name that is not used yet.
    Fresh,
    /// A condition on indices.
    Cond,
    /// A pattern of a term.
    Term,
}

impl ParameterKind {
    /// What a script gives for it.
    pub fn name(self) -> &'static str {
        match self {
            ParameterKind::Index => "an index expression",
            ParameterKind::Number => "a positive number",
            ParameterKind::Fresh => "a new name",
            ParameterKind::Cond => "a condition",
            ParameterKind::Term => "a pattern in braces",
        }
    }
}

/// Which laws of arithmetic a rewrite uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// None: every bit stays the same.
    Exact,
    /// Those of a commutative ring, which floats do not have: sums in another order, `0 * x = 0`.
    Ring,
}

/// The texts of a rewrite, read.
pub(crate) struct ParsedRewrite {
    pub left: Pattern,
    pub right: Pattern,
    pub sides: Vec<SideCondition>,
    /// What matching the left and the right side determines.
    pub determined: [Vec<Name>; 2],
    /// What the parameters of metavariables are called.
    pub formals: FxHashMap<Name, Vec<Name>>,
}

impl ParsedRewrite {
    /// Reads the texts of a rewrite.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn new(rewrite: &Rewrite) -> Result<ParsedRewrite, String> {
        let side =
            |text: &str| parse(text, Words::NONE).map_err(|error| format!("{}: `{text}`: {error}", rewrite.name));
        let (left, right) = (side(rewrite.left)?, side(rewrite.right)?);
        let sides = rewrite
            .conditions
            .iter()
            .map(|text| parse_side(text).map_err(|error| format!("{}: `{text}`: {error}", rewrite.name)))
            .collect::<Result<_, String>>()?;
        let determined = [left.determined(), right.determined()];
        let mut formals = Vec::new();
        left.formals(&mut Vec::new(), &mut formals);
        right.formals(&mut Vec::new(), &mut formals);
        Ok(ParsedRewrite { left, right, sides, determined, formals: formals.into_iter().rev().collect() })
    }
}
