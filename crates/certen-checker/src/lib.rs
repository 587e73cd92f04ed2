//! Certificates: what is claimed of a compiled program, and a small checker that takes nothing on trust.
//!
//! A [`Certificate`] is about a program of Core, what it means, and a nest of loops, what is made into C. It claims:
//!
//! - every access of the nest is in bounds, for all sizes; the iterations of its parallel and vector loops are
//!   independent; every local has a value before it is read. [`obligations`] derives from the nest, in an order of its
//!   own, what has to be shown, and the certificate has one witness for each. Where one is missing or left over, or
//!   [`certen_index::check`] does not accept it, the certificate is rejected;
//! - nest and program give the same values in the field at sizes and inputs that [`tests`] derives from the texts. The
//!   checker runs both, the nest by an interpreter of its own, the program by the reference evaluator. Where no point is
//!   small enough there are no tests, the certificate says so, and nothing relates the nest to the program;
//! - each condition of a step of a schedule that is said to be proved has proofs, which need all of their facts. The
//!   checker does not know the steps: that these are their conditions is the word of the certificate's maker.
//!   `certen verify --check` takes the steps again and compares.
//!
//! [`check`] needs the text of a certificate and the program that it is to be about. It shares with the compiler the
//! data types of Core and loops, their texts and the evaluator. It does not use the prover's search, the verifier of
//! loops, the lowering or the transformations. What remains trusted: this crate and those data types; that the front
//! end has made the program from the file; that a step has these conditions, and that these suffice; that the nest agrees
//! with the program where it was not run; the code generator, the C compiler and the runtime.
//!
//! Everything in a certificate has one spelling, except what is under `about`, which is for people. So a
//! certificate that was changed in one place is rejected, even where the change would be harmless, and even if the seal,
//! a hash of all that counts, was computed anew. The seal keeps no secret: a forger who makes everything anew has made
//! another certificate, which is as good as its witnesses and tests.

mod certificate;
mod check;
mod json;
mod machine;
mod obligations;
mod points;
mod races;
mod rejection;
mod witness;

pub use certificate::{Certificate, Claim, Condition, Proof, Status, Step, seal};
pub use check::{check, read_nest};
pub use obligations::{Kind, Obligation, obligations};
pub use points::{Test, tests};
pub use rejection::Rejection;
