//! Algebra: lifting, which turns nested contractions into a sequence of single ones (TeIL, Sec. 5).
//!
//! Lifting assumes the laws of a commutative ring. Integers wrap, so they have them; floats do not, so a caller that
//! wants every rounding as written must not lift. [`agree`] compares the lifted program with the original, exactly.

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
