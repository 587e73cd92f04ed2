//! Derivations: a program rewritten into another one that means the same, by named rewrites, step by step (ATL's scheduling
//! framework, as a script in the language).
//!
//! A [`Rewrite`] is an equation between terms of Core with side conditions, as data: its left and right side are texts that
//! the engine matches and builds. A [`Derivation`] is a script, `derive g from f { … }`, whose steps name a rewrite, its
//! parameters, a place and a direction. Conditions are put to the prover, for all sizes, in the context of the place; after
//! every step the whole program is typed again and its accesses are shown to be in bounds again, for a rewrite can move a read
//! out of the guard that made it safe.

mod rewrite;
mod rules;
pub mod script;

pub use rewrite::{How, Kind, Law, Rewrite};
pub use rules::rewrites;
pub use script::{Derivation, Step, Tactic};
