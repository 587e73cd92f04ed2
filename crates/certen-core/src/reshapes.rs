//! How many constructs that move elements a program has: the measure of Fig. 6 of *A Verified Compiler for a Functional
//! Tensor Language*.
//!
//! A program is counted as the tree that its text is: a term that occurs twice counts twice, what a `let` or binding names
//! counts once. Bindings that no output needs do not count.

use std::fmt;
use std::ops::AddAssign;

use crate::program::Program;
use crate::term::Term;

/// How often each construct occurs, in the order of [`Reshapes::NAMES`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Reshapes([u64; 7]);

impl Reshapes {
    /// The constructs, in the order of Fig. 6, which does not have `pad`. Truncations and paddings count on either side.
    pub const NAMES: [&'static str; 7] = ["gen", "concat", "trunc", "transpose", "flatten", "split", "pad"];

    /// Each construct's name and number.
    pub fn each(&self) -> [(&'static str, u64); 7] {
        std::array::from_fn(|at| (Reshapes::NAMES[at], self.0[at]))
    }

    fn own(term: &Term) -> Reshapes {
        let at = match term {
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
        own.0[at] = 1;
        own
    }
}

impl AddAssign for Reshapes {
    fn add_assign(&mut self, other: Reshapes) {
        // As a tree a shared term can be exponentially large.
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count = count.saturating_add(more));
    }
}

impl fmt::Display for Reshapes {
    /// Those that there are: `4 gen, 2 trunc, 1 transpose, 2 flatten`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found =
            self.each().into_iter().filter(|(_, number)| *number > 0).map(|(name, number)| format!("{number} {name}"));
        let found: Vec<String> = found.collect();
        f.write_str(if found.is_empty() { "none".into() } else { found.join(", ") }.as_str())
    }
}

impl Program {
    /// How many constructs that move elements the program has.
    pub fn reshapes(&self) -> Reshapes {
        let mut counts: Vec<Reshapes> = Vec::with_capacity(self.terms.len());
        for (_, term) in self.terms.iter() {
            let mut count = Reshapes::own(term);
            term.parts().iter().for_each(|part| count += counts[part.index()]);
            counts.push(count);
        }
        let needed = self.last_uses();
        let mut all = Reshapes::default();
        for (binding, needed) in self.bindings.iter().zip(needed) {
            if needed.is_some() {
                all += counts[binding.term.index()];
            }
        }
        all
    }
}
