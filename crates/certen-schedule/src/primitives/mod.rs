//! The steps of schedules. Each file holds one: what it does, by an example that is run, when it keeps the meaning, and
//! what other systems call it. `docs/reference/steps.md` is made from these.

use certen_syntax::Name;

use crate::args::Args;
use crate::nest::Nest;
use crate::refusal::Done;

mod collapse;
mod compute_at;
mod exchange;
mod fission;
pub(crate) mod fma;
mod fuse_inner;
mod fuse_outer;
mod guard;
mod inline;
mod interchange;
mod join_sums;
mod layout;
mod mirror;
mod overwrite;
mod pack;
mod parallelize;
mod peel;
mod registers;
mod reorder;
mod round;
mod separate;
mod share;
mod skew;
mod split;
mod stage;
mod store_at;
pub(crate) mod stream;
mod tile;
mod unroll;
mod unroll_and_jam;
mod vectorize;

/// A step of schedules.
pub struct Primitive {
    /// Its name.
    pub name: &'static str,
    /// How it is written: `split(loop, size)`.
    pub usage: &'static str,
    /// What it does, in a few sentences.
    pub about: &'static str,
    /// When it keeps the meaning, in a few sentences.
    pub legal: &'static str,
    /// What other systems call it: `Halide: split`.
    pub peers: &'static str,
    /// Before and after.
    pub example: Example,
    pub(crate) apply: fn(&mut Nest, &Args<'_>) -> Done<()>,
}

/// A program of loops, and steps for it: the last one is the primitive's.
pub struct Example {
    /// The text of the loops.
    pub program: &'static str,
    /// The steps.
    pub steps: &'static str,
}

/// All steps, in the order of the page.
pub fn primitives() -> &'static [&'static Primitive] {
    &[
        &split::PRIMITIVE,
        &collapse::PRIMITIVE,
        &peel::PRIMITIVE,
        &guard::PRIMITIVE,
        &round::PRIMITIVE,
        &interchange::PRIMITIVE,
        &reorder::PRIMITIVE,
        &tile::PRIMITIVE,
        &mirror::PRIMITIVE,
        &skew::PRIMITIVE,
        &fission::PRIMITIVE,
        &overwrite::PRIMITIVE,
        &separate::PRIMITIVE,
        &share::PRIMITIVE,
        &fuse_outer::PRIMITIVE,
        &fuse_inner::PRIMITIVE,
        &unroll::PRIMITIVE,
        &unroll_and_jam::PRIMITIVE,
        &vectorize::PRIMITIVE,
        &parallelize::PRIMITIVE,
        &inline::PRIMITIVE,
        &compute_at::PRIMITIVE,
        &store_at::PRIMITIVE,
        &stage::PRIMITIVE,
        &pack::PRIMITIVE,
        &registers::PRIMITIVE,
        &layout::PRIMITIVE,
        &stream::PRIMITIVE,
        &join_sums::PRIMITIVE,
        &fma::PRIMITIVE,
    ]
}

/// The step of this name.
pub(crate) fn named(name: Name) -> Option<&'static Primitive> {
    primitives().iter().copied().find(|primitive| primitive.name == name.as_str())
}
