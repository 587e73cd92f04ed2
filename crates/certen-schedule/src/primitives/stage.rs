//! `stage`: the part of a buffer that an iteration reads is copied together first.

use std::collections::BTreeSet;

use certen_core::{Range, TensorType};
use certen_index::Ix;
use certen_loops::{Stmt, Target};
use certen_syntax::{Code, Diagnostic, Name, Span, near};

use super::{Example, Primitive};
use crate::depend::Footprint;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal, listed};
use crate::region::Region;
use crate::rewrite::Moved;
use crate::stages::{loops_over, name_of};

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "stage",
    usage: "stage(buffer, loop) or stage(buffer, loop, [1, 0])",
    about: "Each iteration of `loop` begins with copying the part of the buffer that it reads into a small buffer of its \
            own, `B_staged`, where the elements lie side by side; with a list of dimensions, in that order. The loops of \
            the copy are `B_staged.c0`, `B_staged.c1`, ….",
    legal: "Always: an iteration that writes the buffer is refused.",
    peers: "Halide: in and compute_at; TVM: cache_read; Exo: stage_mem; BLIS: packing",
    example: Example {
        program: "loops matmul\nsize m, n, p\nwhere m >= 0, n >= 0, p >= 0\ninput A : f64[m, p]\ninput B : f64[p, n]\n\
                  output C : f64[m, n]\nnest C\nfor i in 0..m {\n    for j in 0..n {\n        C[i, j] = 0.0\n        \
                  for l in 0..p {\n            C[i, j] += A[i, l] * B[l, j]\n        }\n    }\n}\n",
        steps: "split(l, 64); stage(B, l.o, [1, 0])",
    },
    apply: |nest, args| {
        let (path, span) = args.path("a buffer")?;
        let place = nest.find(args.path("a loop that reads it")?)?;
        let buffer = nest.buffer_at((name_of((path, span))?, span), &place)?;
        let order = match args.left() {
            0 => (0..buffer.ty.rank()).collect(),
            _ => permutation(&args.ints(0, "dimensions")?, buffer.ty.rank(), args.span())?,
        };
        args.end()?;
        stage(nest, &buffer, &place, order)
    },
};

/// A buffer that can be used at a place.
pub(crate) struct Buffer {
    pub name: Name,
    pub ty: TensorType,
}

/// Every dimension once.
pub(crate) fn permutation(list: &[i64], rank: usize, span: Span) -> Done<Vec<usize>> {
    let order: Vec<usize> = list.iter().filter_map(|&dim| usize::try_from(dim).ok()).collect();
    let different: BTreeSet<usize> = order.iter().copied().filter(|&dim| dim < rank).collect();
    if order.len() == rank && different.len() == rank {
        return Ok(order);
    }
    let all: Vec<String> = (0..rank).map(|dim| dim.to_string()).collect();
    let message = format!("the dimensions have to be {}, each once, in some order", all.join(", "));
    Err(Diagnostic::error(Code::E0801, span, message).into())
}

impl Nest {
    /// The buffer of this name that is in scope where the loop at a place stands.
    pub(crate) fn buffer_at(&self, (name, span): (Name, Span), place: &Place) -> Done<Buffer> {
        let program = &self.program;
        let mut known: Vec<Buffer> = program.given().map(|(name, ty)| Buffer { name, ty: ty.clone() }).collect();
        for depth in 0..=place.path.len() {
            let way = place.at_depth(depth);
            for stmt in self.block(&way).iter().take(way.at) {
                match stmt {
                    Stmt::Alloc(name, ty) => known.push(Buffer { name: *name, ty: ty.clone() }),
                    Stmt::Free(name) => known.retain(|buffer| buffer.name != *name),
                    _ => {}
                }
            }
        }
        if let Some(at) = known.iter().position(|buffer| buffer.name == name) {
            return Ok(known.swap_remove(at));
        }
        if self.buffer(name).is_some() {
            let refusal = Refusal::cannot(format!("`{name}` is allocated elsewhere: it is not known at this loop"));
            return Err(refusal.at(place).help("a loop between its allocation and its end can be given"));
        }
        let error = Diagnostic::error(Code::E0802, span, format!("there is no buffer `{name}`"));
        let names: BTreeSet<&str> = known.iter().map(|buffer| buffer.name.as_str()).collect();
        Err(match near(name.as_str(), names.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.note(format!("the buffers at this loop are {}", listed(names.iter()))),
        }
        .into())
    }

    /// Names for the loops of a copy at a place: `c0`, `c1`, ….
    pub(crate) fn copy_names(&self, place: &Place, letter: &str, rank: usize) -> Vec<Name> {
        let visible = self.visible(&place.inside(0));
        let name = |at: usize| {
            let base = format!("{letter}{at}");
            match Name::new(&base) {
                free if !visible.contains(&free) => free,
                _ => self.fresh(&base),
            }
        };
        (0..rank).map(name).collect()
    }
}

/// One of two ways between a buffer and the copy of a part of it.
pub(crate) fn copy(
    nest: &mut Nest,
    (whole, moved): (&Buffer, &Moved),
    region: &Region,
    names: &[Name],
    back: bool,
) -> Done<Stmt> {
    let (mut inner, mut outer) = (Vec::new(), moved.base.clone());
    let mut ranges = Vec::new();
    for (name, dim) in names.iter().zip(&moved.order) {
        let (Some(outer), Some(part)) = (outer.get_mut(*dim), region.dims.get(*dim)) else { continue };
        // One element needs no loop.
        if part.extent == Ix::from(1) {
            inner.push(Ix::from(0));
            continue;
        }
        inner.push(Ix::var(*name));
        *outer = outer.add(&Ix::var(*name))?;
        ranges.push((*name, Range::to(part.extent.clone())));
    }
    let assign = if back {
        let value = nest.program.terms.element(moved.to, moved.ty.clone(), inner)?;
        Stmt::Assign { target: Target::Element(moved.from, outer.into()), op: None, value }
    } else {
        let value = nest.program.terms.element(whole.name, whole.ty.clone(), outer)?;
        Stmt::Assign { target: Target::Element(moved.to, inner.into()), op: None, value }
    };
    Ok(loops_over(ranges, assign))
}

/// Copies the part of a buffer that an iteration of the loop at a place reads.
pub(crate) fn stage(nest: &mut Nest, buffer: &Buffer, place: &Place, order: Vec<usize>) -> Done<()> {
    let Buffer { name, ty } = buffer;
    let reader = nest.loop_at(place)?;
    let index = reader.index;
    let called = nest.called_at(place).unwrap_or_else(|| format!("the loop `{index}`"));
    let part = Footprint::of(&nest.program, &reader.body);
    if part.writes(*name) {
        let refusal = Refusal::cannot(format!("{called} writes `{name}`, so a copy would be out of date"));
        return Err(refusal.at(place).help(format!("`registers({name}, {index})` writes it back too")));
    }
    if ty.is_scalar() {
        return Err(Refusal::cannot(format!("`{name}` has no dimensions: there is nothing to copy together")));
    }
    if part.reads_of(*name).next().is_none() {
        let ways = nest.called_where(|stmt| match stmt {
            Stmt::For { body, .. } => nest.touch(body, *name).reads,
            _ => false,
        });
        let refusal = Refusal::cannot(format!("{called} does not read `{name}`")).at(place);
        return Err(match ways.is_empty() {
            true => refusal,
            false => refusal.help(format!("these loops do: {}", listed(ways.iter()))),
        });
    }
    let facts = nest.facts(&place.inside(0))?;
    let region = Region::of(&facts, ty, part.reads_of(*name))?;
    let shape = region.shape();
    let shape: Vec<Ix> = order.iter().filter_map(|dim| shape.get(*dim).cloned()).collect();
    let to = nest.fresh(&format!("{name}_staged"));
    let ty = TensorType::new(ty.elem, shape);
    let moved = Moved { from: *name, to, ty: ty.clone(), base: region.base(), order };
    let names = nest.copy_names(place, "c", moved.order.len());
    let mut body = vec![Stmt::Alloc(to, ty), Stmt::Nest(to), copy(nest, (buffer, &moved), &region, &names, false)?];
    body.extend(nest.label(place, &reader.body));
    body.extend(moved.block(&mut nest.program, &reader.body)?);
    body.push(Stmt::Free(to));
    nest.replace(place, [Loop { body, ..reader }.into()])
}
