//! How many constructs that move elements a program has: the measure of Fig. 6 of *A Verified Compiler for a Functional
//! Tensor Language*.
//!
//! A program is counted as the tree that its text is: a term that stands twice counts twice, what a `let` or binding
//! names counts once. Bindings that no output needs do not count.

use std::fmt;

use certen_core::{Program, Term};

/// What the constructs are called, in the order of Fig. 6, which does not have the last one.
const NAMES: [&str; 7] = ["gen", "concat", "trunc", "transpose", "flatten", "split", "pad"];

/// How often each construct occurs: generations, concatenations, truncations and transpositions, flattenings, splits
/// and paddings, in the order of Fig. 6. Truncations and paddings are counted on either side.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Reshapes(pub [u64; 7]);

impl Reshapes {
    fn own(term: &Term) -> Reshapes {
        let which = match term {
            Term::Gen(..) => 0,
            Term::Concat(..) => 1,
            Term::TruncLeft(..) | Term::TruncRight(..) => 2,
            Term::Transpose(_) => 3,
            Term::Flatten(_) => 4,
            Term::Split(..) => 5,
            Term::PadLeft(..) | Term::PadRight(..) => 6,
            _ => return Reshapes::default(),
        };
        let mut own = Reshapes::default();
        own.0[which] = 1;
        own
    }

    fn add(&mut self, other: Reshapes) {
        // As a tree a shared term can be exponentially large.
        self.0.iter_mut().zip(other.0).for_each(|(number, more)| *number = number.saturating_add(more));
    }
}

impl fmt::Display for Reshapes {
    /// Those that there are: `4 gen, 2 trunc, 1 transpose, 2 flatten`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.0.iter().zip(NAMES).filter(|(number, _)| **number > 0);
        let found: Vec<String> = found.map(|(number, name)| format!("{number} {name}")).collect();
        f.write_str(if found.is_empty() { "none".into() } else { found.join(", ") }.as_str())
    }
}

/// How many constructs that move elements the program has.
pub fn reshapes(program: &Program) -> Reshapes {
    let mut counts: Vec<Reshapes> = Vec::with_capacity(program.terms.len());
    for (_, term) in program.terms.iter() {
        let mut count = Reshapes::own(term);
        term.parts().iter().for_each(|part| count.add(counts[part.index()]));
        counts.push(count);
    }
    let needed = program.last_uses();
    let mut all = Reshapes::default();
    for (binding, needed) in program.bindings.iter().zip(needed) {
        if needed.is_some() {
            all.add(counts[binding.term.index()]);
        }
    }
    all
}
