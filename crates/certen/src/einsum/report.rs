//! What an order of contraction costs, for people: the text that NumPy's `einsum_path` shows, with what is done here.

use std::fmt::Write as _;

use super::{Contraction, apart, plan};

/// The width of the rule between the parts of a report.
const WIDTH: usize = 74;

impl Contraction {
    /// What the order costs: operations as written and in this order, the largest intermediate result, and a line for
    /// each step with the number of its nested loops and what is left after it.
    ///
    /// ```
    /// use certen::einsum::{Contraction, Order, Subscripts};
    /// let text = Subscripts::parse("ij,jk,k->i", 3)?;
    /// let chain = Contraction::new(&text, &[&[10, 20], &[20, 30], &[30]], certen::ElemType::F64, &Order::Best)?;
    /// assert_eq!(chain.report(), "  \
    ///   Complete contraction:  ij,jk,k->i
    ///          Naive scaling:  3
    ///      Optimized scaling:  2
    ///       Naive FLOP count:  1.800e+04
    ///   Optimized FLOP count:  1.600e+03
    ///    Theoretical speedup:  11.250
    ///   Largest intermediate:  2.000e+01 elements
    /// --------------------------------------------------------------------------
    /// scaling                  current                                remaining
    /// --------------------------------------------------------------------------
    ///    2                     jk,k->j                                  ij,j->i
    ///    2                     ij,j->i                                     i->i");
    /// # Ok::<(), certen::einsum::EinsumError>(())
    /// ```
    pub fn report(&self) -> String {
        let (einsum, steps) = (&self.einsum, &self.plan.steps);
        let letters = self.written.letters();
        let spell = |indices: &[usize]| apart(&self.groups, indices).map(|at| letters[at].as_str()).collect::<String>();
        let term = |value: usize| match einsum.terms().get(value) {
            Some(term) => spell(term),
            None => steps.get(value - einsum.terms().len()).map_or_else(String::new, |step| spell(&step.kept)),
        };
        let terms = |values: &[usize]| values.iter().map(|value| term(*value)).collect::<Vec<_>>().join(",");
        let all: Vec<usize> = (0..einsum.terms().len()).collect();
        let output = spell(einsum.output());
        let naive = plan::operations(einsum, &[], &einsum.as_written()) as f64;
        let cost = self.flops() as f64;
        let scaling = |step| apart(&self.groups, einsum.summed(steps, step).iter().chain(&step.kept)).count();
        let elements =
            |step: &super::Product| einsum.shape(&step.kept).iter().map(|size| *size as f64).product::<f64>();
        let speedup = if cost == 0.0 { 1.0 } else { naive / cost };
        let rule = "-".repeat(WIDTH);
        let mut text = String::new();
        let _ = writeln!(text, "  Complete contraction:  {}->{output}", terms(&all));
        let _ = writeln!(text, "         Naive scaling:  {}", self.written.indices().len());
        let _ = writeln!(text, "     Optimized scaling:  {}", steps.iter().map(scaling).max().unwrap_or(0));
        let _ = writeln!(text, "      Naive FLOP count:  {}", scientific(naive));
        let _ = writeln!(text, "  Optimized FLOP count:  {}", scientific(cost));
        let _ = writeln!(text, "   Theoretical speedup:  {speedup:.3}");
        let largest = steps.iter().map(elements).fold(0.0, f64::max);
        let _ = writeln!(text, "  Largest intermediate:  {} elements", scientific(largest));
        let _ = writeln!(text, "{rule}\n{:>6} {:>24} {:>40}\n{rule}", "scaling", "current", "remaining");
        for (step, left) in steps.iter().zip(&self.plan.left) {
            let current = format!("{}->{}", terms(&step.factors), spell(&step.kept));
            let remaining = format!("{}->{output}", terms(left));
            let _ = writeln!(text, "{:>4}    {current:>24} {remaining:>40}", scaling(step));
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// `1.290e+02`
fn scientific(number: f64) -> String {
    let text = format!("{number:.3e}");
    match text.split_once('e') {
        Some((digits, power)) => format!("{digits}e+{power:0>2}"),
        None => text,
    }
}
