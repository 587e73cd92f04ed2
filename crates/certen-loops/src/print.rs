//! The text of loop programs, read back by [`parse_loops`](crate::parse_loops).
//!
//! ```text
//! loops dot
//! size n
//! where n >= 1
//! input a : f64[n]
//! input b : f64[n]
//! output s : f64[]
//! nest s
//! local acc : f64 = 0.0
//! for k in 0..n {
//!     acc += a[k] * b[k]
//! }
//! s = acc
//! ```
//!
//! A loop whose iterations threads may share is written
//! `parallel for`, one whose iterations are the lanes of vectors `vector for`. An assignment that combines is written `+=`, `*=`, `min=`, `max=`, `and=` or `or=`.

use std::fmt::{self, Display, Formatter};

use certen_core::{ReduceOp, print_term};

use crate::ir::{LoopProgram, Stmt, Target};

/// What stands before the `=` of an assignment that combines.
pub(crate) fn assignment_sign(op: Option<ReduceOp>) -> &'static str {
    match op {
        None => "=",
        Some(ReduceOp::Sum) => "+=",
        Some(ReduceOp::Prod) => "*=",
        Some(ReduceOp::Min) => "min=",
        Some(ReduceOp::Max) => "max=",
        Some(ReduceOp::All) => "and=",
        Some(ReduceOp::Any) => "or=",
    }
}

/// Things separated by commas.
fn list<T: Display>(things: &[T]) -> String {
    things.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

impl Display for LoopProgram {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "loops {}", self.name)?;
        if !self.sizes.is_empty() {
            writeln!(f, "size {}", list(&self.sizes))?;
        }
        if !self.facts.is_empty() {
            writeln!(f, "where {}", list(&self.facts))?;
        }
        for input in &self.inputs {
            writeln!(f, "input {} : {}", input.name, input.ty)?;
        }
        for output in &self.outputs {
            writeln!(f, "output {} : {}", output.name, output.ty)?;
        }
        for constant in &self.constants {
            writeln!(f, "const {} = {}", constant.name, constant.table)?;
        }
        if !self.streamed.is_empty() {
            writeln!(f, "stream {}", list(&self.streamed))?;
        }
        self.block(&self.body, 0, f)
    }
}

impl LoopProgram {
    fn block(&self, block: &[Stmt], depth: usize, f: &mut Formatter<'_>) -> fmt::Result {
        let indent = depth * 4;
        let close = |f: &mut Formatter<'_>, text: &str| writeln!(f, "{:indent$}{text}", "");
        for stmt in block {
            write!(f, "{:indent$}", "")?;
            match stmt {
                Stmt::Nest(name) => writeln!(f, "nest {name}")?,
                Stmt::Alloc(name, ty) => writeln!(f, "alloc {name} : {ty}")?,
                Stmt::Free(name) => writeln!(f, "free {name}")?,
                Stmt::Swap(a, b) => writeln!(f, "swap {a}, {b}")?,
                Stmt::For { index, range, mode, body } => {
                    writeln!(f, "{}for {index} in {}..{} {{", mode.word(), range.lo, range.hi)?;
                    self.block(body, depth + 1, f)?;
                    close(f, "}")?;
                }
                Stmt::If { cond, then, otherwise } => {
                    writeln!(f, "if {cond} {{")?;
                    self.block(then, depth + 1, f)?;
                    if !otherwise.is_empty() {
                        close(f, "} else {")?;
                        self.block(otherwise, depth + 1, f)?;
                    }
                    close(f, "}")?;
                }
                Stmt::Local { name, elem, init: None } => writeln!(f, "local {name} : {elem}")?,
                Stmt::Local { name, elem, init: Some(value) } => {
                    writeln!(f, "local {name} : {elem} = {}", print_term(&self.terms, *value))?;
                }
                Stmt::Assign { target, op, value } => {
                    writeln!(f, "{target} {} {}", assignment_sign(*op), print_term(&self.terms, *value))?;
                }
            }
        }
        Ok(())
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Target::Local(name) => write!(f, "{name}"),
            Target::Element(name, indices) if indices.is_empty() => write!(f, "{name}"),
            Target::Element(name, indices) => write!(f, "{name}[{}]", list(indices)),
        }
    }
}
