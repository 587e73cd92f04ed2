//! What lifting did, for people.

use std::fmt;

use certen_index::Ix;
use certen_syntax::Name;

use crate::once::Kept;

/// A contraction that was lifted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contraction {
    /// The binding that it stands in.
    pub binding: Name,
    /// What is multiplied, as written.
    pub factors: Vec<String>,
    /// The chosen order: one multiplication each, such as `t1 = C u over c`.
    pub order: Vec<String>,
    /// Multiplications as written, in all evaluations of the binding.
    pub before: Ix,
    /// Whether it is of floats, for which factoring is no equation.
    pub of_floats: bool,
    /// Multiplications now; those of a temporary that is shared with another contraction are counted in both.
    pub after: Ix,
}

/// What lifting may do to floats.
pub const FACTORED: &str = "sums are factored, as `--fp relaxed` allows where that saves operations: something in between may \
                            overflow that does not as written";

/// What was lifted, in the order of the program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LiftReport {
    /// Each contraction that was lifted.
    pub contractions: Vec<Contraction>,
    /// What is computed once for many elements.
    pub kept: Vec<Kept>,
}

impl LiftReport {
    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.contractions.is_empty() && self.kept.is_empty()
    }

    /// Whether a contraction of floats was lifted: what is in between is something else then, not only rounded otherwise.
    pub fn factors_floats(&self) -> bool {
        self.contractions.iter().any(|contraction| contraction.of_floats)
    }
}

impl fmt::Display for LiftReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return writeln!(f, "nothing to lift: no order needs fewer multiplications for all sizes");
        }
        for Contraction { binding, factors, order, before, after, .. } in &self.contractions {
            writeln!(f, "in {binding}: {} factors, {}", factors.len(), factors.join(" "))?;
            writeln!(f, "  {}", order.join(", "))?;
            writeln!(f, "  multiplications: {before} as written, {after} lifted")?;
        }
        for Kept { binding, name, over } in &self.kept {
            let over: Vec<String> = over.iter().map(Name::to_string).collect();
            let each = if over.is_empty() { String::new() } else { format!(" for each {}", over.join(", ")) };
            writeln!(f, "in {binding}: {name} is the same for many elements: computed once{each}")?;
        }
        if self.factors_floats() {
            writeln!(f, "{FACTORED}")?;
        }
        Ok(())
    }
}
