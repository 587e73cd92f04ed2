//! `layout`: how the elements of a buffer lie in memory.

use certen_core::TensorType;
use certen_index::Ix;
use certen_loops::Stmt;

use super::stage::permutation;
use super::{Example, Primitive};
use crate::nest::Nest;
use crate::refusal::{Done, Refusal};
use crate::rewrite::Moved;
use crate::stages::Stored;

pub(crate) const PRIMITIVE: Primitive = Primitive {
    name: "layout",
    usage: "layout(stage, [1, 0]) or layout(stage, pad, 8)",
    about: "The dimensions of the stage's buffer are stored in another order; or the last one is rounded up to a multiple \
            of a number, so that rows begin at aligned addresses. Inputs and outputs have the layout that the caller \
            gives them.",
    legal: "Always: every access is changed alike.",
    peers: "Halide: reorder_storage and align_storage; TVM: transform_layout; Exo: rearrange_dim and resize_dim",
    example: Example {
        program: "loops turn\nsize m, n\nwhere m >= 0, n >= 0\ninput x : f64[m, n]\noutput y : f64[n]\n\
                  alloc t : f64[m, n]\nnest t\nfor i in 0..m {\n    for j in 0..n {\n        t[i, j] = x[i, j] * x[i, j]\n \
                  }\n}\nnest y\nfor j in 0..n {\n    y[j] = 0.0\n    for i in 0..m {\n        y[j] += t[i, j]\n    }\n}\n\
                  free t\n",
        steps: "layout(t, [1, 0])",
    },
    apply: |nest, args| {
        let stored = nest.stored(args.path("a stage")?)?;
        if args.left() < 2 {
            let order = permutation(&args.ints(0, "dimensions")?, stored.ty.rank(), args.span())?;
            args.end()?;
            return layout(nest, &stored, order);
        }
        let (word, span) = args.word("the word `pad`")?;
        if word.as_str() != "pad" {
            let error = certen_syntax::Diagnostic::error(
                certen_syntax::Code::E0801,
                span,
                format!("a layout has a list of dimensions or the word `pad`, not `{word}`"),
            );
            return Err(error.into());
        }
        let multiple = args.at_least(1, "the number of elements")?;
        args.end()?;
        pad(nest, &stored, multiple)
    },
};

/// Stores the dimensions of a buffer in another order.
pub(crate) fn layout(nest: &mut Nest, stored: &Stored, order: Vec<usize>) -> Done<()> {
    let shape: Vec<Ix> = order.iter().filter_map(|dim| stored.ty.shape.get(*dim).cloned()).collect();
    let base = vec![Ix::from(0); order.len()];
    let ty = TensorType::new(stored.ty.elem, shape);
    change(nest, stored, &Moved { from: stored.name, to: stored.name, ty, base, order })
}

/// Rounds the last dimension of a buffer up.
pub(crate) fn pad(nest: &mut Nest, stored: &Stored, multiple: i64) -> Done<()> {
    let mut shape: Vec<Ix> = stored.ty.shape.to_vec();
    let Some(last) = shape.last_mut() else {
        return Err(Refusal::cannot(format!("`{}` has no dimensions", stored.name)).at(&stored.alloc));
    };
    *last = last.ceil_div(multiple)?.scale(multiple)?;
    let base = vec![Ix::from(0); shape.len()];
    let ty = TensorType::new(stored.ty.elem, shape);
    change(nest, stored, &Moved::based(stored.name, stored.name, ty, base))
}

/// Gives a buffer another type, from its allocation to its end.
pub(crate) fn change(nest: &mut Nest, stored: &Stored, moved: &Moved) -> Done<()> {
    let Stored { name, alloc, free, .. } = stored;
    let live = nest.block(alloc).get(alloc.at + 1..*free).unwrap_or_default().to_vec();
    for (at, stmt) in live.iter().enumerate() {
        if nest.touch(std::slice::from_ref(stmt), *name).swaps {
            let refusal =
                Refusal::cannot(format!("`{name}` is exchanged with another buffer, which has the same layout"));
            return Err(refusal.at(&alloc.beside(alloc.at + 1 + at)));
        }
    }
    let live = moved.block(&mut nest.program, &live)?;
    let block = nest.block_mut(alloc)?;
    if *free > block.len() || alloc.at + 1 > *free {
        return Err(Refusal::lost());
    }
    block.splice(alloc.at..*free, [Stmt::Alloc(moved.to, moved.ty.clone())].into_iter().chain(live));
    Ok(())
}
