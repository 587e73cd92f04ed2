//! `split`: a loop becomes two, over blocks and inside a block.
//!
//! The inner loop ends at the smaller of the block's end and the loop's own, so any size fits; `peel` and `guard` make
//! other tails of that. Or the last block begins earlier, so that every block is full, and makes some iterations of the one
//! before again: that changes nothing where none reads what the loop writes.

use certen_core::Range;
use certen_index::{Cond, Facts, Ix};
use certen_loops::{Mode, Use, within};
use certen_syntax::{Code, Diagnostic, Name};

use super::{Example, Primitive};
use crate::depend::Footprint;
use crate::edit::Edit;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "split",
    usage: "split(loop, size), split(loop, size, whole) or split(loop, size, inwards)",
    about: "The loop `i` becomes a loop `i.o` over blocks of `size` iterations and a loop `i.i` inside a block. The last \
            block may be smaller. With `whole`, buffers for a block have room for `size` iterations also where no block has \
            so many; `round` uses it. With `inwards`, all blocks are full: the last one begins so early that it ends where \
            the loop does, and makes some iterations of the block before again.",
    legal: "Always: the iterations are the same, in the same order. With `inwards`, if the loop has at least `size` \
            iterations and reads nothing that it writes.",
    peers: "Halide and TVM: split, TailStrategy::ShiftInwards; Exo: divide_loop; TeML: stripmine; OpenMP: tile of one loop",
    example: Example {
        program: "loops scale\nsize n\nwhere n >= 0\ninput x : f64[n]\noutput y : f64[n]\nnest y\n\
                  for i in 0..n {\n    y[i] = 2.0 * x[i]\n}\n",
        steps: "split(i, 32)",
    },
    apply: |nest, args| {
        let place = nest.find(args.path("a loop")?)?;
        let size = args.at_least(1, "the size of a block")?;
        let tail = match args.left() {
            0 => Tail::Cut,
            _ => match args.word("`whole` or `inwards`")? {
                (word, _) if word.as_str() == "whole" => Tail::Whole,
                (word, _) if word.as_str() == "inwards" => Tail::Inwards,
                (other, span) => {
                    let error = format!("`split` needs `whole` or `inwards` here, not `{other}`");
                    return Err(Diagnostic::error(Code::E0801, span, error).into());
                }
            },
        };
        args.end()?;
        split_into(nest, &place, size, tail)
    },
};

/// What becomes of the iterations that fill no block.
#[derive(Clone, Copy)]
enum Tail {
    /// The last block ends earlier.
    Cut,
    /// The same, and the size of a block stays in its bound where no block is full.
    Whole,
    /// The last block begins earlier.
    Inwards,
}

/// Splits the loop at a place; there stands the outer loop then, and the inner one is the only statement of its body.
pub(crate) fn split(nest: &mut Nest, place: &Place, size: i64) -> Done<()> {
    split_into(nest, place, size, Tail::Cut)
}

fn split_into(nest: &mut Nest, place: &Place, size: i64, tail: Tail) -> Done<()> {
    let split = nest.loop_at(place)?;
    let facts = nest.facts(place)?;
    if let Tail::Inwards = tail {
        can_repeat(nest, &split, size).map_err(|refusal| refusal.at(place))?;
        let enough = Cond::le(&Ix::from(size), &split.range.hi.sub(&split.range.lo)?)?;
        nest.require(format!("the loop over {} has at least {size} iterations", split.index), &facts, enough);
    }
    let Loop { index, range, mode, body } = split;
    let (outer, inner) = (nest.piece(index, "o"), nest.piece(index, "i"));
    let blocks = range.hi.sub(&range.lo)?.ceil_div(size)?;
    let start = range.lo.add(&Ix::var(outer).scale(size)?)?;
    let first = match tail {
        Tail::Cut | Tail::Whole => start.clone(),
        Tail::Inwards => smaller(&facts, outer, &blocks, start.clone(), range.hi.sub(&Ix::from(size))?)?,
    };
    let edit = Edit::index(index, first.add(&Ix::var(inner))?);
    let body = edit.block(&mut nest.program, &body)?;
    let left = range.hi.sub(&start)?;
    let length = match tail {
        Tail::Cut => smaller(&facts, outer, &blocks, Ix::from(size), left)?,
        Tail::Whole => Ix::from(size).min_with(&left)?,
        Tail::Inwards => Ix::from(size),
    };
    let inner = Loop { index: inner, range: Range::to(length), mode, body };
    nest.replace(place, [Loop { index: outer, range: Range::to(blocks), mode, body: vec![inner.into()] }.into()])
}

/// That some iterations of a loop can be made once more: one thread runs them, and what they read they do not write.
fn can_repeat(nest: &Nest, split: &Loop, size: i64) -> Done<()> {
    let Loop { index, mode, body, .. } = split;
    if *mode != Mode::Serial {
        let refusal =
            Refusal::cannot(format!("the iterations of the loop over {index} are made by several threads or lanes"));
        return Err(
            refusal.help(format!("`split({index}, {size}, inwards)` comes before `parallelize` and `vectorize`"))
        );
    }
    let part = Footprint::of(&nest.program, body);
    let reads = |name: Name| part.accesses.iter().any(|access| access.name == name && access.how != Use::Write);
    let mut both = part.accesses.iter().map(|access| access.name).filter(|name| part.writes(*name) && reads(*name));
    match both.next().or(part.swapped.first().copied()) {
        Some(name) => {
            let refusal = Refusal::cannot(format!("the loop over {index} reads and writes `{name}`"));
            Err(refusal.note("the last block makes some iterations again, which must find what they found before"))
        }
        None => Ok(()),
    }
}

/// The smaller of two expressions, without the one that is not for any block.
fn smaller(facts: &Facts, outer: Name, blocks: &Ix, one: Ix, other: Ix) -> Done<Ix> {
    let mut facts = facts.clone();
    facts.assume(within(outer, &Range::to(blocks.clone()))?);
    Ok(one.min_with(&other)?.simplified(&facts)?)
}
