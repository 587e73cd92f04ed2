//! TVM's tensor expressions: `te.var`, `te.placeholder`, `te.reduce_axis`, and `te.compute` with a function of indices.
//!
//! `stages.rs` collects what the statements of one scope declare and compute, `body.rs` reads the functions of indices.
//! Ranges are those that the program states: TVM compares them with nothing.

mod body;
mod scope;
mod stages;

pub(crate) use scope::Scope;
pub(crate) use stages::{Stages, is_tvm};
