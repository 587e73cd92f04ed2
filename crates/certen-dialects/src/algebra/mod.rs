//! The index-free tensor algebra that TeIL (Rink and Castrillon, ARRAY 2019) and the model language (Rink, 2018) are
//! two notations for: declared tensors, and assignments of expressions that work on whole tensors.
//!
//! The road of a program: its notation's `parse` → [`check`] (typing: TeIL, Fig. 8 and 12, model language, Fig. 7 to 9;
//! and data flow) → [`elaborate`] (TeIL, Fig. 6 and 9, model language, Fig. 10 to 12, into Core). [`Typed::simplified`]
//! makes it cheaper by the [`LAWS`] (TeIL, Sec. 3.6). [`Notation`] is all that differs: rule names, words and text. Of
//! the analyses of the model language's Sec. 5, those that compiling needs are here: last definitions and dead
//! statements ([`flow`]; [`check`] warns of them) and common subexpressions ([`sharing`], for [`elaborate_shared`]).
//! What only readers of the papers ask for is in `certen-figures`: the semantics over a memory, assignments in place,
//! three-address form, and the translation into another notation.
//!
//! Dimensions are counted from 1 and are never empty. Sizes are whole numbers or names; a name stands for every size
//! that the `where` clauses allow.

mod ast;
mod elaborate;
pub mod fig6;
pub mod flow;
mod laws;
mod notation;
mod premise;
mod print;
pub(crate) mod read;
pub mod sharing;
mod typed;
mod typing;

pub use ast::Notation;
pub use ast::{Arith, Decl, Expr, ExprId, Marker, Pair, Program, Stmt, Where, one_by_one};
pub use elaborate::{elaborate, elaborate_shared};
pub use laws::{Applied, LAWS, Law};
pub use premise::Premise;
pub use typed::{Dim, Typed};
pub use typing::{MAX_NESTING, check};
