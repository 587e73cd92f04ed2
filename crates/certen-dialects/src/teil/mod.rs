//! TeIL, a type-safe imperative tensor language (Rink and Castrillon, ARRAY 2019), and its verified core, Core-TeIL.
//!
//! The road of a program: [`parse`] (Fig. 5) → [`check`] (typing, Fig. 8 and 12, and data flow) → [`elaborate`] (Fig. 6
//! and 9, into Core). [`Program::to_core_teil`] and [`Program::to_teil`] translate between the two languages,
//! [`Typed::three_address`] splits nested expressions (Sec. 3.3), and [`semantics`] is a direct reading of Fig. 6 and 9
//! that elaboration is tested against.
//!
//! Dimensions are counted from 1 and are never empty. Sizes are whole numbers or names; a name stands for every size
//! that the `where` clauses allow.

mod ast;
mod core_teil;
mod elaborate;
mod fig6;
mod flow;
mod parse;
mod premise;
mod print;
pub mod semantics;
mod three_address;
mod typed;
mod typing;

pub use ast::{Alloc, Expr, ExprId, Marker, Mode, Program, Stmt, Where};
pub use elaborate::elaborate;
pub use parse::parse;
pub use premise::Premise;
pub use typed::{Dim, Typed};
pub use typing::{MAX_NESTING, check};
