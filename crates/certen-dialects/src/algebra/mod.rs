//! The index-free tensor algebra that TeIL (Rink and Castrillon, ARRAY 2019) and the model language (Rink, 2018) are
//! two notations for: declared tensors, and assignments of expressions that work on whole tensors.
//!
//! The road of a program: its notation's `parse` → [`check`] (typing: TeIL, Fig. 8 and 12, model language, Fig. 7 to 9;
//! and data flow) → [`elaborate`] (TeIL, Fig. 6 and 9, model language, Fig. 10 to 12, into Core). [`Program::to`]
//! writes it in another notation, [`Typed::three_address`] splits nested expressions (TeIL, Sec. 3.3),
//! [`Typed::simplified`] makes it cheaper by the [`LAWS`] (TeIL, Sec. 3.6), and
//! [`semantics`] is a direct reading of the figures that elaboration is tested against. [`Notation`] is all that
//! differs: rule names, words and text.
//!
//! The analyses of the model language's Sec. 5 work on typed programs: last definitions and dead statements
//! ([`check`] warns of them), common subexpressions ([`elaborate_shared`]), and assignments in place
//! ([`Typed::in_place`]); [`Typed::analysis`] shows them all.
//!
//! Dimensions are counted from 1 and are never empty. Sizes are whole numbers or names; a name stands for every size
//! that the `where` clauses allow.

mod analysis;
mod ast;
mod elaborate;
mod fig6;
mod flow;
mod in_place;
mod laws;
mod notation;
mod premise;
pub(crate) mod read;
pub mod semantics;
mod sharing;
mod three_address;
mod translate;
mod typed;
mod typing;

pub use analysis::{Analysis, Defined};
pub(crate) use ast::one_by_one;
pub use ast::{Arith, Decl, Expr, ExprId, Marker, Pair, Program, Stmt, Where};
pub use elaborate::{elaborate, elaborate_shared};
pub use in_place::{Conflict, InPlace};
pub use laws::{Applied, LAWS, Law};
pub use notation::Notation;
pub use premise::Premise;
pub use typed::{Dim, Typed};
pub use typing::{MAX_NESTING, check};
