//! Certen: a tensor language whose accepted programs cannot go out of bounds, compiled to native code.
//!
//! A [`Module`] is a checked program; [`Module::run`] runs it, natively or by the reference evaluator.
//!
//! ```
//! use certen::{Array, Call, Input, Module, Options};
//!
//! let module = Module::from_text("matmul.teil", "
//!     alloc A : [l, m]
//!     alloc B : [m, n]
//!     alloc C : [l, n]
//!     C = contr 2 3 (prod A B)
//! ", &Options::default())?;
//!
//! let call = Call::new()
//!     .input("A", Array::from_vec(&[2, 3], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])?)
//!     .input("B", Input::Iota)
//!     .dim("n", 2);
//! let outputs = module.run(&call)?;
//! assert_eq!(outputs[0].array().and_then(|c| c.as_slice()), Some(&[16.0, 22.0, 34.0, 49.0][..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program that is wrong is refused, with located errors that name the violated rule:
//!
//! ```
//! use certen::{Module, Options};
//!
//! let failure = Module::from_text("tvm.teil", "
//!     alloc A : [m, h]
//!     alloc B : [n, h]
//!     alloc C : [m, n]
//!     C = contr 1 3 (prod A B)
//! ", &Options::default()).unwrap_err();
//! assert_eq!(failure.diagnostics()[0].rule.unwrap().name, "T-Diag");
//! ```

mod batch;
mod begin;
mod bench;
mod blame;
mod call;
mod certificates;
mod check;
mod choice;
mod deep;
mod derived;
mod diff;
pub mod doctor;
pub mod einsum;
mod explain;
mod failure;
mod front;
pub mod guard;
mod interface;
mod kernel;
mod layout;
mod module;
mod optimise;
mod options;
mod padded;
mod pipeline;
mod run;
mod session;
mod sound;
mod stage;
mod steps;
mod ten;
mod texts;
mod trial;
mod validation;

pub use batch::Batch;
pub use bench::{Bench, BenchOptions, Entrant, Measured, Times, bench};
pub use call::{Call, Input};
pub use certen_core::ElemType;
pub use certen_lang::Known;
pub use certen_loops::FpMode;
pub use certen_runtime::{Array, Cpu};
pub use certen_syntax::Name;
pub use certificates::{NamedModule, TRUSTED, programs};
pub use check::{Checked, check};
pub use choice::Choice;
pub use derived::Rewriting;
pub use diff::{Line, diff};
pub use explain::{ANALYSED_STATEMENTS, VIEWS, View};
pub use failure::Failure;
pub use interface::Param;
pub use kernel::{InputType, Kernel, Prepared, ResultShape, Sizing, functions};
pub use optimise::Optimised;
pub use options::{Math, Options};
pub use padded::PaddedRun;
pub use pipeline::{Module, SPECIALISED};
pub use run::{Backend, DomainChoice, Output, RunOptions, Timing, Values};
pub use session::{Declared, Reply, Session, is_complete};
pub use stage::{Passed, Stage};
pub use steps::Walk;
pub use ten::{Expression, Origin, format};
pub use texts::{Dialect, File, Texts, read_program};
pub use trial::{BUDGET as TRIAL_BUDGET, Build, Runs, Trial};
pub use validation::Validation;

/// The rooms of the road, for those who want to look inside.
pub mod road {
    pub use certen_checker as checker;
    pub use certen_codegen as codegen;
    pub use certen_core as core;
    pub use certen_derive as derive;
    pub use certen_dialects as dialects;
    pub use certen_figures as figures;
    pub use certen_guard as guard;
    pub use certen_index as index;
    pub use certen_lang as lang;
    pub use certen_lift as lift;
    pub use certen_loops as loops;
    pub use certen_runtime as runtime;
    pub use certen_schedule as schedule;
    pub use certen_syntax as syntax;
    pub use certen_teml as teml;
    pub use certen_validate as validate;
}
