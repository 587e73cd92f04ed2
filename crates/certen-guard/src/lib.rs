//! A guard for the kernels of other frameworks (TeIL, Sec. 2): whether they stay inside their tensors, for all sizes.
//!
//! [`read`] reads a file in one of the [`Language`]s into [`Kernel`]s: TACO's index notation, Tensor Comprehensions, TVM's
//! tensor expressions and calls of `einsum` in Python, CFDlang. Ranges are those that the framework would take. [`faults`]
//! says what makes a kernel unsafe, with sizes that show it. [`ten`] writes a kernel in the `.ten` language, which says
//! for itself what is safe, and runs.
//!
//! Guarantees: no input makes a panic or a deep recursion; nothing is executed; a construct that is not known is named
//! and refused, never passed over where it could matter.

mod apart;
mod cfdlang;
mod einsum;
mod emit;
mod index;
mod kernel;
mod language;
mod prove;
mod python;
mod read;
mod replay;
mod script;
mod taco;
mod tc;
mod text;
mod tvm;

pub use emit::{Unwritten, ten};
pub use index::{Comparison, Condition, Index, Values};
pub use kernel::{Agreement, Effect, Fault, Kernel, Op, Range, Read, Reduction, Side, Statement, Tensor, Value};
pub use language::Language;
pub use prove::{faults, shown, sizes};
pub use read::read;
