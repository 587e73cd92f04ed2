//! Generated programs: what every claim about all programs is tested with.
//!
//! A [`Sample`] is a well-typed TeIL, Core-TeIL or model language program made from arbitrary bytes, with values for its sizes and
//! inputs. It is a tree of this crate's own, so that [`oracle`] can say what the program's types and values are without
//! the code under test. [`Sample::broken`] gives a program with exactly one [`Mistake`], one for each premise of each
//! typing rule and for whatever else can be wrong; [`mutate`] gives texts that are hardly programs at all.
//!
//! A [`calculus::Case`] is a program of Core with every construct of the calculus.
//!
//! A [`schedule::Hunted`] is a program with a random schedule, and [`schedule::truth`] what became of its values.
//!
//! A [`contraction::Contraction`] is a sum of products, in the many forms that automatic schedules meet.
//!
//! A [`kernels::Kernel`] is a plain kernel of any element type, for C compilers to get right.
//!
//! A [`teml::Written`] is a TeML program whose values are known without its trees and loops.
//!
//! The same bytes always give the same program, so that property tests and fuzzers share the generator. Where the bytes
//! end, the simplest choices are taken: fewer bytes give smaller programs, which is how a failure is shrunk.

pub mod calculus;
pub mod contraction;
mod draw;
mod generate;
pub mod kernels;
mod mistake;
mod mutate;
pub mod oracle;
mod sample;
pub mod schedule;
pub mod teml;
pub mod ten;

pub use mistake::{Broken, Mistake};
pub use mutate::mutate;
pub use sample::{Declared, Expr, Pair, Sample, Size, Symbol};

/// The largest magnitude up to which every integer is an f64.
pub const EXACT: f64 = 9_007_199_254_740_992.0;

/// How many generated programs a property is tested with: `CERTEN_CASES`, else 300. The slow set sets it to 10,000.
pub fn cases() -> u32 {
    std::env::var("CERTEN_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}
