//! `parallelize`: a loop whose iterations threads share.
//!
//! A reduction is made in blocks of a fixed size, so that the result does not depend on how many threads there are
//! (`partials.rs`).

use certen_index::{Cond, Ix, Verdict};
use certen_loops::{Mode, Stmt};

use super::split::split;
use super::vectorize::sentence;
use super::{Example, Primitive};
use crate::depend::{Footprint, independent};
use crate::nest::Nest;
use crate::partials;
use crate::place::{Loop, Place};
use crate::refusal::Done;

/// How many iterations of a reduction are a block, if the schedule does not say.
const BLOCK: i64 = 1024;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "parallelize",
    usage: "parallelize(loop) or parallelize(loop, block)",
    about: "Threads share the iterations of the loop. If the loop combines into something from outside, as a sum does, \
            it is cut into blocks of 1024 iterations, or of `block`: a thread sums a block in order, and the sums of the \
            blocks are added in order after the loop. So the result is the same, to the last bit, for any number of \
            threads. A loop that is no reduction stays as it is, or with `block` becomes a loop over blocks that threads \
            share.",
    legal: "No iteration writes what another one uses, but for what the loop only combines into, always with the same \
            operation, and does not read. The verifier shows it again, as the absence of races.",
    peers: "Halide: parallel, rfactor; TVM: parallel, rfactor; OpenMP: parallel for, reduction; Exo: parallelize_loop",
    example: Example {
        program: "loops total\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput s : f64[]\nnest s\n\
                  local acc : f64 = 0.0\nfor k in 0..n {\n    acc += x[k]\n}\ns = acc\n",
        steps: "parallelize(k, 512)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        let block = if args.left() == 0 { None } else { Some(args.at_least(1, "the size of a block")?) };
        args.end()?;
        parallelize(nest, &place, block)
    },
};

/// Makes the loop at a place parallel.
pub(crate) fn parallelize(nest: &mut Nest, place: &Place, block: Option<i64>) -> Done<()> {
    let found = nest.loop_at(place)?;
    let once = Cond::le(&found.range.hi, &found.range.lo.add(&Ix::from(1))?)?;
    if nest.facts(place)?.prove(&once) == Verdict::Yes {
        // One iteration is not shared, and may assign what several could not.
        return Ok(());
    }
    let accumulators = partials::of(nest, place)?;
    let names: Vec<_> = accumulators.iter().map(partials::Accumulator::name).collect();
    let body = Footprint::of(&nest.program, &found.body).only(|name| !names.contains(&name));
    let facts = nest.facts(place)?;
    let status = independent(&facts, found.index, &found.range, body);
    nest.condition_of(found.index, sentence(found.index, &names), status);
    if accumulators.is_empty() && block.is_none() {
        return nest.replace(place, [Loop { mode: Mode::Parallel, ..found }.into()]);
    }
    split(nest, place, block.unwrap_or(BLOCK))?;
    let mut outer = nest.loop_at(place)?;
    outer.mode = Mode::Parallel;
    if let Some(Stmt::For { mode, .. }) = outer.body.first_mut() {
        *mode = if found.mode == Mode::Vector { Mode::Vector } else { Mode::Serial };
    }
    let blocks = outer.range.hi.max_with(&Ix::from(0))?.simplified(&facts)?;
    nest.replace(place, [outer.into()])?;
    if accumulators.is_empty() { Ok(()) } else { partials::of_blocks(nest, place, blocks, &accumulators) }
}
