//! Text: the first room of the road, shared by every front door.
//!
//! A front door reads a [`Source`] into [`Token`]s, and says what is wrong as [`Diagnostic`] values, never by
//! panicking or printing. Every diagnostic has a [`Code`] with a page in the error index, and names the violated
//! [`Rule`] of a paper where there is one. [`render`] turns diagnostics into what a person reads, [`to_json`] into
//! what a program reads.

pub mod block;
mod codes;
mod cursor;
mod diagnostic;
mod lexer;
mod name;
mod near;
mod render;
pub mod schedule;
mod source;

pub use codes::{Blame, Code, Example, error_index};
pub use cursor::{Cursor, begins_item};
pub use diagnostic::{Diagnostic, Diagnostics, Door, Label, Remedy, Rule, Severity};
pub use lexer::{Token, TokenKind, lex};
pub use name::Name;
pub use near::near;
pub use render::{MAX_RENDERED, render, render_all, to_json};
pub use source::{FileId, Position, Source, Sources, Span};
