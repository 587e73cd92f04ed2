//! Running: the last room of the road, where programs meet the machine.
//!
//! An [`Array`] is a dense tensor in memory that native code can work on; [`read_npy`], [`read_npz`], [`write_npy`] and
//! [`write_npz`] bring it from and to files. A [`NativeKernel`] is C text made callable: compiled by the [`Compiler`]
//! that the machine has, kept in a [`Cache`] on disk, loaded, and called with its arguments, arrays or [`View`]s,
//! checked against its [`Signature`]. Its parallel loops are shared by the threads of one pool; [`with_threads`] says
//! how many. [`standard_environment`] protects results from what other code has done to the processor. A [`Nest`]
//! computes a product of arrays and its sums without a compiler. [`available_bytes`] tells what fits in memory before
//! anything is started.
//!
//! This is where `unsafe` code is: the allocation behind arrays, the elements of views, and loading and calling
//! kernels. (The other crate with some lends it Python's arrays.) Whatever the user's files, arrays and environment
//! are, the answer is a value or a [`RuntimeError`]. What is trusted is the C text: see [`NativeKernel::build`].

mod array;
mod cache;
mod compiler;
mod contract;
mod cpu;
mod environment;
mod error;
mod files;
mod kernel;
mod memory;
mod npy;
mod pool;
mod scratch;
mod unfinished;
mod view;

pub use array::{Array, ArrayError, Element};
pub use cache::Cache;
pub use compiler::{Candidate, Compiler};
pub use contract::Nest;
pub use cpu::{Cpu, l2_bytes};
pub use environment::{Entered, in_standard_environment, standard_environment};
pub use error::RuntimeError;
pub use files::write_text;
pub use kernel::{ABI, NativeKernel, Signature};
pub use memory::available_bytes;
pub use npy::{NpyError, read_npy, read_npz, write_npy, write_npz};
pub use pool::{default_threads, parse_threads, with_threads};
pub use unfinished::clean_up_on_signals;
pub use view::{View, ViewMut};
