//! TeML: a meta-language whose programs make tensor expressions and loop nests ("Meta-programming for Cross-Domain Tensor
//! Optimizations").

pub mod assignment;

pub use assignment::{Assignment, Begin, Value};
