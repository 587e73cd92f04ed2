//! Whether what a program computes depends on how its data compare.
//!
//! The prime field has sums, products and quotients, but no order of numbers: random elements are never equal, and which of
//! two is the smaller means nothing. Two programs that compare or round data are told apart by numbers that have an order,
//! so a comparison of programs asks here which domains it needs.

use crate::ops::{Binary, Unary};
use crate::term::{Term, Terms};

impl Terms {
    /// Whether a term compares data with data or rounds them to whole numbers: minima and maxima, also of reductions,
    /// comparisons, absolute values, `floor`, `ceil` and `round`. Quotients of integers, which every domain has as a function
    /// of its own, are not among these; neither are conditions on indices.
    pub fn uses_order(&self) -> bool {
        let compares =
            |op: Binary| matches!(op, Binary::Min | Binary::Max | Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne);
        self.iter().any(|(_, term)| match term {
            Term::Binary(op, ..) => compares(*op),
            Term::Reduce(op, ..) => compares(op.combine()),
            Term::Unary(op, _) => matches!(op, Unary::Abs | Unary::Floor | Unary::Ceil | Unary::Round),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use certen_syntax::Sources;

    use crate::parse::parse_program;

    #[test]
    fn what_compares_or_rounds_uses_order() {
        let uses_order = |term: &str| {
            let text = format!("core t\nsize n\nwhere n >= 1\ninput x : f64[n]\ny = {term}\noutput y\n");
            let mut sources = Sources::new();
            let file = sources.add("t.core", text.as_str());
            parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}")).terms.uses_order()
        };
        for term in [
            "min(x[0], x[n - 1])",
            "maximum i in 0..n. x[i]",
            "select(x[0] < f64(0.0), x[0], f64(0.0))",
            "select(x[0] == f64(0.0), x[0], f64(1.0))",
            "x[0] != x[n - 1]",
            "abs(x[0])",
            "floor(x[0])",
            "ceil(x[0])",
            "round(x[0])",
        ] {
            assert!(uses_order(term), "{term}");
        }
        for term in ["sum i in 0..n where i >= 1. x[i] * x[i]", "guard(n == 1, sqrt(x[0]))", "x[0] / index.f64(n)"] {
            assert!(!uses_order(term), "{term}");
        }
    }
}
