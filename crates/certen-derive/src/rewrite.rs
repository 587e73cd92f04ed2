//! Rewrites as named values.

use std::sync::OnceLock;

use certen_core::TermId;
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::matching::Misfit;
use crate::pattern::{Pattern, Side, Words, parse, parse_side};
use crate::site::Site;

/// An equation between terms, which can be taken in both directions.
pub struct Rewrite {
    /// Its name in scripts.
    pub name: &'static str,
    /// What a script gives, in order: metavariables that the side which is matched does not determine.
    pub parameters: &'static [(&'static str, Kind)],
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
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    /// One side is matched, the other one is built.
    Pattern,
    /// By a function, where the sides cannot say all of it.
    Code(fn(&mut Site<'_>) -> Result<TermId, Misfit>),
}

/// What a parameter of a rewrite is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
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

impl Kind {
    /// What a script gives for it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Index => "an index expression",
            Kind::Number => "a positive number",
            Kind::Fresh => "a new name",
            Kind::Cond => "a condition",
            Kind::Term => "a pattern in braces",
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
pub(crate) struct Parsed {
    pub left: Pattern,
    pub right: Pattern,
    pub sides: Vec<Side>,
    /// What matching the left and the right side determines.
    pub determined: [Vec<Name>; 2],
    /// What the parameters of metavariables are called.
    pub formals: FxHashMap<Name, Vec<Name>>,
}

impl Parsed {
    /// Reads the texts of a rewrite.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(crate) fn new(rewrite: &Rewrite) -> Result<Parsed, String> {
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
        Ok(Parsed { left, right, sides, determined, formals: formals.into_iter().rev().collect() })
    }
}

/// A rewrite with its texts read, by name.
///
/// # Errors
/// None if there is none of this name; what is wrong with its texts otherwise.
pub(crate) fn named(name: &str) -> Option<(&'static Rewrite, Result<&'static Parsed, String>)> {
    static ALL: OnceLock<Vec<(&'static Rewrite, Result<Parsed, String>)>> = OnceLock::new();
    let all =
        ALL.get_or_init(|| crate::rules::rewrites().iter().map(|rewrite| (*rewrite, Parsed::new(rewrite))).collect());
    all.iter()
        .find(|(rewrite, _)| rewrite.name == name)
        .map(|(rewrite, parsed)| (*rewrite, parsed.as_ref().map_err(String::clone)))
}
