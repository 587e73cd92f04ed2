//! `split`: a loop becomes two, over blocks and inside a block.
//!
//! The inner loop ends at the smaller of the block's end and the loop's own, so any size fits; `peel` and `guard` make
//! other tails of that.

use certen_core::Range;
use certen_index::{Facts, Ix};
use certen_loops::within;
use certen_syntax::{Code, Diagnostic, Name};

use super::{Example, Primitive};
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::Done;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "split",
    usage: "split(loop, size) or split(loop, size, whole)",
    about: "The loop `i` becomes a loop `i.o` over blocks of `size` iterations and a loop `i.i` inside a block. The last \
            block may be smaller. With `whole`, buffers for a block have room for `size` iterations also where no block has \
            so many; `round` uses it.",
    legal: "Always: the iterations are the same, in the same order.",
    peers: "Halide and TVM: split; Exo: divide_loop; TeML: stripmine; OpenMP: tile of one loop",
    example: Example {
        program: "loops scale\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
                  for i in 0..n {\n    y[i] = 2.0 * x[i]\n}\n",
        steps: "split(i, 32)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        let size = args.at_least(1, "the size of a block")?;
        let keeps = match args.left() {
            0 => false,
            _ => match args.word("`whole`")? {
                (word, _) if word.as_str() == "whole" => true,
                (other, span) => {
                    let error = format!("`split` needs `whole` here, not `{other}`");
                    return Err(Diagnostic::error(Code::E0801, span, error).into());
                }
            },
        };
        args.end()?;
        split_keeping(nest, &place, size, keeps)
    },
};

/// Splits the loop at a place; there stands the outer loop then, and the inner one is the only statement of its body.
pub(crate) fn split(nest: &mut Nest, place: &Place, size: i64) -> Done<()> {
    split_keeping(nest, place, size, false)
}

/// The same; the size of a block may stay in its bound where no block is full.
fn split_keeping(nest: &mut Nest, place: &Place, size: i64, keeps: bool) -> Done<()> {
    let Loop { index, range, mode, body } = nest.loop_at(place)?;
    let facts = nest.facts(place)?;
    let (outer, inner) = (nest.piece(index, "o"), nest.piece(index, "i"));
    let blocks = range.hi.sub(&range.lo)?.ceil_div(size)?;
    let start = range.lo.add(&Ix::var(outer).scale(size)?)?;
    let edit = Edit::index(index, start.add(&Ix::var(inner))?);
    let body = edit.block(&mut nest.program, &body)?;
    let left = range.hi.sub(&start)?;
    let length = match keeps {
        true => Ix::from(size).min_with(&left)?,
        false => shorter(&facts, outer, &blocks, Ix::from(size), left)?,
    };
    let inner = Loop { index: inner, range: Range::to(length), mode, body };
    nest.replace(place, [Loop { index: outer, range: Range::to(blocks), mode, body: vec![inner.into()] }.into()])
}

/// The length of a block: its size, or what is left of the range, whichever is less for every block.
fn shorter(facts: &Facts, outer: Name, blocks: &Ix, size: Ix, left: Ix) -> Done<Ix> {
    let mut facts = facts.clone();
    facts.assume(within(outer, &Range::to(blocks.clone()))?);
    Ok(size.min_with(&left)?.simplified(&facts)?)
}
