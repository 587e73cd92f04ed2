//! Algebra: lifting, which turns nested contractions into a sequence of single ones (TeIL, Sec. 5).
//!
//! Lifting assumes the laws of a commutative ring. Integers wrap, so they have them; floats do not, so a caller that
//! wants every rounding as written must not lift. What is lifted is compared with the original afterwards (`certen_validate::agree`).

mod free;
mod lift;
mod once;
mod order;
mod report;
mod sizes;

pub use lift::{Lifted, lift, lift_at};
pub use once::{Kept, computed_once};
pub use order::{OrderSearch, pairwise};
pub use report::{Contraction, FACTORED, LiftReport};
pub use sizes::{lower_bounds, never_dearer, repaired};
