//! Operands that NumPy would stretch, and what to write here instead.
//!
//! Entrywise operations want equal shapes, or a scalar. People who know broadcasting first try a row with a
//! matrix, or a dimension of size 1 with one of size n; the message shows the comprehension that does it. Nothing here
//! changes what is accepted.

use certen_index::{Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Span};

use super::scope::Checker;
use super::types::shape_text;
use super::value::Draft;
use crate::typed::Kind;

impl Checker<'_, '_> {
    /// The error that operands have different ranks, or differ in dimensions of size 1 only. The symbol is what stands
    /// between them in the example.
    pub fn stretched(&self, a: &Draft, b: &Draft, symbol: &str, span: Span) -> Option<Diagnostic> {
        let (left, right) = (&a.expr.ty.shape, &b.expr.ty.shape);
        let help = match a.rank() == b.rank() {
            true => Some(self.along_ones(a, b, symbol)?),
            false => self.along_rows(a, b, symbol),
        };
        let error = Diagnostic::error(Code::E0206, span, "operands of different shapes")
            .also(a.expr.span, format!("this has the shape {}", shape_text(left)))
            .also(b.expr.span, format!("this has the shape {}", shape_text(right)))
            .note("nothing is stretched: the shapes are equal, or one operand is a scalar");
        Some(match help {
            Some(body) => error.help(format!("say it with indices, for example `{body}`")),
            None => error,
        })
    }

    fn same(&self, a: &Ix, b: &Ix) -> bool {
        self.facts().prove_equal(a, b) == Verdict::Yes
    }

    /// One operand has the shape of the other's last dimensions.
    fn along_rows(&self, a: &Draft, b: &Draft, symbol: &str) -> Option<String> {
        let (large, small) = if a.rank() > b.rank() { (a, b) } else { (b, a) };
        let rows = large.rank() - small.rank();
        let mut last = large.expr.ty.shape[rows..].iter().zip(small.expr.ty.shape.iter());
        if !last.all(|(left, right)| self.same(left, right)) {
            return None;
        }
        let at = letters(rows).join(", ");
        let of = |draft: &Draft, other| {
            let name = name(draft, other);
            if draft.rank() == large.rank() { format!("{name}[{at}]") } else { name }
        };
        Some(format!("{{ [{at}] -> {} {symbol} {} }}", of(a, "x"), of(b, "y")))
    }

    /// The operands differ where one of them has the size 1, and somewhere they do.
    fn along_ones(&self, a: &Draft, b: &Draft, symbol: &str) -> Option<String> {
        let one = |size: &Ix| size.as_constant() == Some(1);
        let pairs: Vec<(&Ix, &Ix)> = a.expr.ty.shape.iter().zip(b.expr.ty.shape.iter()).collect();
        let differ: Vec<bool> = pairs.iter().map(|(left, right)| !self.same(left, right)).collect();
        let only_ones = pairs.iter().zip(&differ).all(|((left, right), differ)| !differ || one(left) || one(right));
        if !only_ones || !differ.contains(&true) {
            return None;
        }
        let at = letters(a.rank());
        let of = |draft: &Draft, other| {
            let place = |((size, differ), letter): ((&Ix, &bool), &String)| {
                if *differ && one(size) { "0".to_owned() } else { letter.clone() }
            };
            let places = draft.expr.ty.shape.iter().zip(&differ).zip(&at).map(place);
            format!("{}[{}]", name(draft, other), places.collect::<Vec<_>>().join(", "))
        };
        Some(format!("{{ [{}] -> {} {symbol} {} }}", at.join(", "), of(a, "x"), of(b, "y")))
    }
}

fn name(draft: &Draft, other: &str) -> String {
    match &draft.expr.kind {
        Kind::Var(name) => name.to_string(),
        _ => other.to_owned(),
    }
}

fn letters(count: usize) -> Vec<String> {
    ["i", "j", "k", "l", "m", "n", "o", "p"].iter().take(count).map(|letter| letter.to_string()).collect()
}
