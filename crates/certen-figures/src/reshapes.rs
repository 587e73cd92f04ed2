//! How many constructs that move elements a program has: the measure of Fig. 6 of *A Verified Compiler for a Functional
//! Tensor Language*.
//!
//! A program is counted as the tree that its text is: a term that stands twice counts twice, what a `let` or binding names
//! counts once. Bindings that no output needs do not count.

use std::fmt;
use std::ops::AddAssign;

use certen_core::{Program, Term};

/// How often each construct occurs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Reshapes {
    /// Generations.
    pub gens: u64,
    /// Concatenations.
    pub concats: u64,
    /// Truncations, on either side.
    pub truncs: u64,
    /// Transpositions.
    pub transposes: u64,
    /// Flattenings.
    pub flattens: u64,
    /// Splits.
    pub splits: u64,
    /// Paddings, on either side; Fig. 6 does not have them.
    pub pads: u64,
}

impl Reshapes {
    /// Each construct's name and number, in the order of Fig. 6.
    pub fn each(&self) -> [(&'static str, u64); 7] {
        [
            ("gen", self.gens),
            ("concat", self.concats),
            ("trunc", self.truncs),
            ("transpose", self.transposes),
            ("flatten", self.flattens),
            ("split", self.splits),
            ("pad", self.pads),
        ]
    }

    fn own(term: &Term) -> Reshapes {
        let mut own = Reshapes::default();
        match term {
            Term::Gen(..) => own.gens = 1,
            Term::Concat(..) => own.concats = 1,
            Term::TruncLeft(..) | Term::TruncRight(..) => own.truncs = 1,
            Term::Transpose(_) => own.transposes = 1,
            Term::Flatten(_) => own.flattens = 1,
            Term::Split(..) => own.splits = 1,
            Term::PadLeft(..) | Term::PadRight(..) => own.pads = 1,
            _ => {}
        }
        own
    }
}

impl AddAssign for Reshapes {
    fn add_assign(&mut self, other: Reshapes) {
        // As a tree a shared term can be exponentially large.
        self.gens = self.gens.saturating_add(other.gens);
        self.concats = self.concats.saturating_add(other.concats);
        self.truncs = self.truncs.saturating_add(other.truncs);
        self.transposes = self.transposes.saturating_add(other.transposes);
        self.flattens = self.flattens.saturating_add(other.flattens);
        self.splits = self.splits.saturating_add(other.splits);
        self.pads = self.pads.saturating_add(other.pads);
    }
}

impl fmt::Display for Reshapes {
    /// Those that there are: `4 gen, 2 trunc, 1 transpose, 2 flatten`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found: Vec<String> = self
            .each()
            .iter()
            .filter(|(_, number)| *number > 0)
            .map(|(name, number)| format!("{number} {name}"))
            .collect();
        f.write_str(if found.is_empty() { "none".into() } else { found.join(", ") }.as_str())
    }
}

/// How many constructs that move elements the program has.
pub fn reshapes(program: &Program) -> Reshapes {
    let mut counts: Vec<Reshapes> = Vec::with_capacity(program.terms.len());
    for (_, term) in program.terms.iter() {
        let mut count = Reshapes::own(term);
        term.parts().iter().for_each(|part| count += counts[part.index()]);
        counts.push(count);
    }
    let needed = program.last_uses();
    let mut all = Reshapes::default();
    for (binding, needed) in program.bindings.iter().zip(needed) {
        if needed.is_some() {
            all += counts[binding.term.index()];
        }
    }
    all
}
