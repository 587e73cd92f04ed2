//! Algebra: rewrites on Core that keep its meaning.
//!
//! The first tenant lifts nested contractions into a sequence of single ones (TeIL, Sec. 5). A rewrite may assume the
//! laws of a commutative ring: integers wrap, so they have them; floats do not, so a caller who wants every rounding as
//! written must not rewrite. What a rewrite makes is compared with what it was made from, exactly, by [`agree`].

mod check;
mod free;
mod lift;
mod order;
mod report;
mod shrink;
mod sizes;

pub use check::{Agreement, agree};
pub use lift::{Lifted, lift};
pub use order::{OrderSearch, pairwise};
pub use report::{Contraction, LiftReport};
pub use shrink::shrunk;
pub use sizes::{lower_bounds, never_dearer, repaired};
