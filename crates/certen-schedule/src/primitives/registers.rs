//! `registers`: the elements that a loop adds to are kept at hand while it runs.

use certen_core::TensorType;
use certen_loops::Stmt;

use super::stage::{Buffer, copy};
use super::{Example, Primitive};
use crate::depend::Footprint;
use crate::nest::Nest;
use crate::place::Place;
use crate::refusal::{Done, Refusal, listed};
use crate::region::Region;
use crate::rewrite::Moved;
use crate::stages::name_of;

/// A tile has at most as many elements.
const MOST: i64 = 4096;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "registers",
    usage: "registers(buffer, loop)",
    about: "The elements of the buffer that `loop` uses, a small tile, are loaded into a buffer `C_tile` before the loop, \
            used there, and stored back after it. With constant sizes and inner loops unrolled or vectorised, a compiler \
            keeps such a tile in registers.",
    legal: "Always: the loop uses the tile only.",
    peers: "Halide: store_in registers after rfactor; TVM: cache_write; Exo: stage_mem with accumulation; BLIS: micro-tile",
    example: Example {
        program: "loops matmul\nsize m, n, p\nwhere m >= 0, n >= 0, p >= 0\ninput A : f64[4*m, p]\ninput B : f64[p, 8*n]\n\
                  output C : f64[4*m, 8*n]\nnest C\nfor i in 0..4*m {\n    for j in 0..8*n {\n        C[i, j] = 0.0\n    \
                  }\n}\nfor io in 0..m {\n    for jo in 0..n {\n        for l in 0..p {\n            for ii in 0..4 {\n   \
                  for ji in 0..8 {\n                    C[4*io + ii, 8*jo + ji] += A[4*io + ii, l] * B[l, 8*jo + ji]\n \
                  }\n            }\n        }\n    }\n}\n",
        steps: "registers(C, l)",
    },
    apply: |nest, args| {
        let (path, span) = args.path("a buffer")?;
        let place = nest.find(args.path("a loop that writes it")?)?;
        args.end()?;
        let buffer = nest.buffer_at((name_of((path, span))?, span), &place)?;
        registers(nest, &buffer, &place)
    },
};

/// Keeps the elements of a buffer that the loop at a place uses in a buffer of their own.
pub(crate) fn registers(nest: &mut Nest, buffer: &Buffer, place: &Place) -> Done<()> {
    let Buffer { name, ty } = buffer;
    let inner = nest.loop_at(place)?;
    let index = inner.index;
    let called = nest.called_at(place).unwrap_or_else(|| format!("the loop `{index}`"));
    let touch = nest.touch(&inner.body, *name);
    if touch.swaps {
        return Err(Refusal::cannot(format!("`{name}` is exchanged with another buffer in this loop")).at(place));
    }
    if !touch.writes {
        let writes = |stmt: &Stmt| matches!(stmt, Stmt::For { body, .. } if nest.touch(body, *name).writes);
        let ways = nest.called_where(writes);
        let refusal = Refusal::cannot(format!("{called} does not write `{name}`")).at(place);
        return Err(match (touch.reads, ways.is_empty()) {
            (true, _) => refusal.help(format!("`stage({name}, {index})` copies what an iteration reads")),
            (false, false) => refusal.help(format!("these loops do: {}", listed(ways.iter()))),
            (false, true) => refusal,
        });
    }
    let around: Stmt = inner.clone().into();
    let facts = nest.facts(place)?;
    let part = Footprint::of(&nest.program, std::slice::from_ref(&around));
    let region = Region::of(&facts, ty, part.accesses.iter().filter(|access| access.name == *name))?;
    match region.elements() {
        Some(elements) if elements <= MOST => {}
        found => {
            let what = match found {
                Some(elements) => format!("{elements} elements of `{name}`, and a tile has at most {MOST}"),
                None => {
                    let sizes = region.dims.iter().filter(|dim| dim.most.is_none()).map(|dim| &dim.extent);
                    format!("a part of `{name}` whose size is no number: {}", listed(sizes))
                }
            };
            let refusal = Refusal::cannot(format!("{called} uses {what}")).at(place);
            return Err(
                refusal.help("`split` the loops over its indices and `reorder` this loop inside the outer ones")
            );
        }
    }
    let to = nest.fresh(&format!("{name}_tile"));
    let ty = TensorType::new(ty.elem, region.shape());
    let moved = Moved::based(*name, to, ty.clone(), region.base());
    let (load, store) =
        (nest.copy_names(place, "c", moved.order.len()), nest.copy_names(place, "s", moved.order.len()));
    let behind = nest.block(place).get(place.at + 1..).unwrap_or_default();
    let (own, behind) = (nest.stage(place).map(Stmt::Nest), nest.label(place, behind).filter(|_| !behind.is_empty()));
    let mut stmts = vec![Stmt::Alloc(to, ty), Stmt::Nest(to), copy(nest, (buffer, &moved), &region, &load, false)?];
    stmts.extend(own);
    stmts.extend(moved.block(&mut nest.program, &[around])?);
    stmts.extend([Stmt::Nest(to), copy(nest, (buffer, &moved), &region, &store, true)?, Stmt::Free(to)]);
    stmts.extend(behind);
    nest.replace(place, stmts)
}
