//! Comprehensions to with-loops: the rewrite `[[_]]_W` of *Tensor Comprehensions in SaC*, Sec. 5.4, with the default
//! elements of Sec. 6.
//!
//! `{ i1 -> e1 | l1 <= i1 < u1; …; in -> en | ln <= in < un }` becomes `with { (l1 <= i1 < u1) : e1; …; (ln <= in < un)
//! : en; } : genarray(un, d)`. The upper bounds of the last partition are the frame; the checker has written them into
//! the comprehension's type as sizes, which are not negative.
//!
//! The default element d is a cell of zeros with the shape of en. By the scheme S of Fig. 2 that shape is found from
//! shapes alone, never by computing an element: it is what the type says, so `d` is `with { } : genarray(shape, 0)`, or
//! just `0` for scalars, and nothing of en is evaluated for it.

use certen_core::{Literal, TensorType};
use certen_index::Ix;
use certen_syntax::{Name, Span};

use crate::tree::each_expr;
use crate::typed::{Expr, Generator, Kind, Partition, Program, Range, Slot, With, WithDefault};

/// Makes every comprehension a with-loop. Needs patterns without dots.
pub fn run(program: &mut Program) {
    for function in &mut program.functions {
        each_expr(&mut function.body, &mut |expr| {
            if let Kind::Comprehension(partitions) = &mut expr.kind {
                let with = with_loop(std::mem::take(partitions), &expr.ty, expr.span);
                expr.kind = Kind::With(Box::new(with));
            }
        });
    }
}

fn with_loop(partitions: Vec<Partition>, ty: &TensorType, span: Span) -> With {
    let depth = partitions.last().map_or(0, |last| last.ranges.len()).min(ty.rank());
    let (frame, cell) = ty.shape.split_at(depth);
    let default = WithDefault::Cell(zeros(&TensorType::new(ty.elem, cell.to_vec()), span));
    let generators = partitions.into_iter().map(generator).collect();
    With { generators, frame: frame.to_vec(), default }
}

fn generator(partition: Partition) -> Generator {
    let index = |(slot, range): (&Slot, Range)| match slot {
        Slot::Index(name) => Some((*name, range)),
        Slot::Dots(_) => None,
    };
    let indices: Vec<(Name, Range)> = partition.pattern.iter().zip(partition.ranges).filter_map(index).collect();
    Generator { indices, body: partition.body }
}

/// Zeros of a type.
pub fn zeros(ty: &TensorType, span: Span) -> Expr {
    let zero = Expr { kind: Kind::Literal(Literal::whole(0, ty.elem)), ty: TensorType::scalar(ty.elem), span };
    if ty.is_scalar() {
        return zero;
    }
    let frame: Vec<Ix> = ty.shape.to_vec();
    let with = With { generators: Vec::new(), frame, default: WithDefault::Cell(zero) };
    Expr { kind: Kind::With(Box::new(with)), ty: ty.clone(), span }
}
