//! `store_at`: a buffer is allocated further out, and used again by all iterations.

use certen_core::TensorType;
use certen_index::Ix;
use certen_loops::{Mode, Stmt, Use, declarations};

use super::layout::change;
use super::{Example, Primitive};
use crate::depend::Access;
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};
use crate::region::{bounded, interval};
use crate::rewrite::Moved;
use crate::stages::Stored;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "store_at",
    usage: "store_at(stage, loop) or store_at(stage, root)",
    about: "The buffer of a stage, which is allocated anew in each iteration of a loop, is allocated once for each \
            iteration of a loop further out, or once for the program, and used again. It is as large as the largest of \
            those that it stands for.",
    legal: "Always: each iteration computes what it reads. Loops whose iterations several threads run are not crossed.",
    peers: "Halide: store_at and hoist_storage; TVM: compute_at with a scope; Exo: lift_alloc",
    example: Example {
        program: "loops blur\nsize h, w\nwhere h >= 2, w >= 2\ninput x : f64[h, w]\noutput y : f64[h - 2, w - 2]\n\
                  alloc rows : f64[h, w - 2]\nnest rows\nfor i in 0..h {\n    for j in 0..w - 2 {\n        \
                  rows[i, j] = x[i, j] + x[i, j + 1] + x[i, j + 2]\n    }\n}\nnest y\nfor i in 0..h - 2 {\n    \
                  for j in 0..w - 2 {\n        y[i, j] = rows[i, j] + rows[i + 1, j] + rows[i + 2, j]\n    }\n}\n\
                  free rows\n",
        steps: "split(i, 32); compute_at(rows, i.o); store_at(rows, root)",
    },
    apply: |nest, args| {
        let stored = nest.stored(args.path("a stage")?)?;
        let (path, span) = args.path("a loop around it, or `root`")?;
        args.end()?;
        let outer = match path.parts.as_slice() {
            [word] if word.as_str() == "root" && path.nth.is_none() => None,
            _ => Some(nest.find((path, span))?),
        };
        store_at(nest, &stored, outer.as_ref())
    },
};

/// Allocates a buffer in the body of the loop at a place, or outermost.
pub(crate) fn store_at(nest: &mut Nest, stored: &Stored, outer: Option<&Place>) -> Done<()> {
    let Stored { name, ty, alloc, .. } = stored;
    let depth = match outer {
        None => 0,
        Some(outer) if outer.contains(alloc) => outer.path.len() + 1,
        Some(outer) => {
            let called = nest.called_at(outer).unwrap_or_else(|| "this loop".into());
            let refusal = Refusal::cannot(format!("`{name}` is not allocated inside {called}"));
            return Err(refusal.at(outer).at(alloc).help(format!("`compute_at({name}, loop)` brings it into a loop")));
        }
    };
    if depth == alloc.path.len() {
        return Err(Refusal::cannot(format!("`{name}` is allocated there already")).at(alloc));
    }
    // The statement around the allocation in the block that will hold it.
    let top = alloc.at_depth(depth);
    let shared = |around: &&(Place, Loop)| around.1.mode != Mode::Serial && around.0.path.len() >= depth;
    if let Some((place, around)) = nest.loops_around(alloc).iter().find(shared) {
        let who = if around.mode == Mode::Vector { "the lanes of a vector" } else { "several threads" };
        let refusal = Refusal::cannot(format!(
            "{who} run the iterations of {}, and each of them needs a buffer of its own",
            nest.called_at(place).unwrap_or_else(|| format!("the loop `{}`", around.index))
        ));
        return Err(refusal.at(place).at(alloc));
    }
    let facts = nest.facts(&top)?;
    let shape = shape(nest, stored, &top)?
        .into_iter()
        .map(|size| {
            let size = size.max_with(&Ix::from(0))?.simplified(&facts)?;
            Ok(bounded(&facts, &size)?.map_or(size, Ix::from))
        })
        .collect::<Done<Vec<Ix>>>()?;
    // Another buffer of this name may live in the same block or further in.
    let own = declarations(nest.block(&top)).filter(|(declared, _)| declared == name).count();
    let to = if own > 1 { nest.fresh(name.as_str()) } else { *name };
    let ty = TensorType::new(ty.elem, shape);
    let base = vec![Ix::from(0); ty.rank()];
    change(nest, stored, &Moved::based(*name, to, ty.clone(), base))?;
    let freed = |stmt: &Stmt| matches!(stmt, Stmt::Free(freed) if freed == name || *freed == to);
    let block = nest.block_mut(alloc)?;
    let free = block.iter().skip(alloc.at).position(freed).map(|behind| behind + alloc.at);
    if let Some(free) = free {
        block.remove(free);
    }
    block.remove(alloc.at);
    let block = nest.block_mut(&top)?;
    block.insert(top.at + 1, Stmt::Free(to));
    block.insert(top.at, Stmt::Alloc(to, ty));
    Ok(())
}

/// The sizes of a buffer, each the largest in all iterations of the loops inside a statement around its allocation.
fn shape(nest: &Nest, stored: &Stored, top: &Place) -> Done<Vec<Ix>> {
    let mut around = Vec::new();
    let mut conds = Vec::new();
    for depth in top.path.len()..stored.alloc.path.len() {
        match nest.stmt(&stored.alloc.at_depth(depth)) {
            Some(Stmt::For { index, range, .. }) => around.push((*index, range.clone())),
            Some(other) => conds.push(other.holds_in(stored.alloc.path[depth].block)?),
            None => {}
        }
    }
    let facts = nest.facts(top)?;
    let access = Access {
        name: stored.name,
        indices: stored.ty.shape.iter().cloned().collect(),
        how: Use::Read,
        loops: around,
        conds,
    };
    let mut sizes = Vec::with_capacity(access.indices.len());
    for size in &access.indices {
        let Some((_, most)) = interval(&facts, size, &access)? else {
            let refusal =
                Refusal::cannot(format!("the size {size} of `{}` changes with the loops around it", stored.name));
            return Err(refusal.at(&stored.alloc));
        };
        sizes.push(most);
    }
    Ok(sizes)
}
