//! Rewrites as named values.

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
    pub how: How,
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

/// Which laws of arithmetic a rewrite uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Law {
    /// None: every bit stays the same.
    Exact,
    /// Those of a commutative ring, which floats do not have: sums in another order, `0 * x = 0`.
    Ring,
}

/// How a rewrite is done.
#[derive(Clone, Copy, Debug)]
pub enum How {
    /// By matching one side and building the other.
    Pattern,
}
