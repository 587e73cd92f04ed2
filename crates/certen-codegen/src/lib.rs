//! Machine: loop programs as plain, readable C11.
//!
//! [`emit_c`] prints a program as a function with the user's names, 64-bit indices and flat row-major accesses. Its
//! entry points check everything that a caller can get wrong; the runtime has one of its own, with a fixed signature.
//! The C computes what the [`Machine`](certen_core::domain::Machine) domain does, bit for bit: what C leaves undefined or
//! open (overflow, division by zero, conversions out of range, minima of NaNs) goes through small helper functions, which
//! are printed only if they are used. [`emit_together`] prints many programs in one translation unit, because starting a
//! C compiler takes longer than compiling a small program.
//!
//! The rooms, each using only those before it: `text`, `names`, `helpers` and `environment` are texts; `emitter` is the
//! state of printing; `index` and `value` print expressions; `statements` prints blocks, `constants` tables, `stages` long bodies; `entry`
//! prints the entry points, `driver` a `main`; `file` and `together` put translation units together.
//!
//! Needs: a program that [`verify`](certen_loops::verify) accepts. Guarantees: C without warnings under
//! `-std=c11 -Wall -Wextra -Wpedantic -Wconversion`; compile it with `-ffp-contract=off` (`-std=c11` implies that for GCC). Expressions are
//! printed without recursion, and broken into temporaries before they are too deep for a C compiler.

mod constants;
mod driver;
mod emitter;
mod entry;
mod environment;
mod file;
mod helpers;
mod index;
mod names;
mod scan;
mod stages;
mod statements;
mod text;
mod together;
mod value;

pub use file::{CCode, emit_c};
pub use together::emit_together;
