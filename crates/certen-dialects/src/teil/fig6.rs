//! The meaning of expressions (TeIL, Fig. 6), equation by equation, for any kind of index.
//!
//! [`equation`] is the figure: given an expression and the list of indices it is evaluated at, it says what the
//! expression's parts are evaluated at and how they are combined. With numbers for indices it is evaluation
//! ([`semantics`](super::semantics)), with symbols it is elaboration into Core ([`elaborate`](super::elaborate)). Indices
//! count from 0 here, positions from 1 as in the text.

use certen_core::{Binary, ReduceOp};
use certen_index::Ix;
use certen_syntax::Name;

use super::ast::{Expr, ExprId};
use super::typed::Typed;

/// An expression and the indices it is evaluated at.
pub(super) type At<I> = (ExprId, Vec<I>);

/// The right-hand side of an equation.
pub(super) enum Equation<I> {
    /// `μ x ī`
    Read(Name, Vec<I>),
    /// The value of a part.
    Same(At<I>),
    /// The values of two parts combined.
    Combine(Binary, At<I>, At<I>),
    /// The values of a part combined over the indices `m` of a dimension of this size: at `before ++ [m] ++ after`.
    Reduce { op: ReduceOp, size: Ix, part: ExprId, before: Vec<I>, after: Vec<I>, diagonal: Option<usize> },
}

/// `[[e]] Γ μ ī = …`, for a well-typed `e` of as many dimensions as there are indices.
pub(super) fn equation<I: Clone>(
    typed: &Typed,
    id: ExprId,
    mut index: Vec<I>,
    literal: impl Fn(&Ix) -> I,
) -> Equation<I> {
    let place = |position: &i64| *position as usize - 1;
    match typed.program.expr(id) {
        Expr::Var(name) => Equation::Read(*name, index),
        Expr::Paren(e) => Equation::Same((*e, index)),
        Expr::Add(e0, e1) => Equation::Combine(Binary::Add, (*e0, index.clone()), (*e1, index)),
        Expr::Mul(e0, e1) if typed.shape(*e0).is_empty() => {
            Equation::Combine(Binary::Mul, (*e0, Vec::new()), (*e1, index))
        }
        Expr::Mul(e0, e1) => Equation::Combine(Binary::Mul, (*e0, index.clone()), (*e1, index)),
        Expr::Prod(e0, e1) => {
            let right = index.split_off(typed.shape(*e0).len());
            Equation::Combine(Binary::Mul, (*e0, index), (*e1, right))
        }
        Expr::Red(op, i, e) => {
            let after = index.split_off(place(i));
            let size = (*typed.shape(*e)[place(i)].size).clone();
            Equation::Reduce { op: *op, size, part: *e, before: index, after, diagonal: None }
        }
        Expr::Transp(i0, i1, e) => {
            index.swap(place(i0), place(i1));
            Equation::Same((*e, index))
        }
        Expr::Diag(i0, i1, e) => {
            let (first, second) = (place(i0.min(i1)), place(i0.max(i1)));
            index.insert(second, index[first].clone());
            Equation::Same((*e, index))
        }
        // Eq. 6, both equations at once: the reduced index stands at the first position and again at the second.
        Expr::Contr(i0, i1, e) => {
            let (first, second) = (place(i0.min(i1)), place(i0.max(i1)));
            let after = index.split_off(first);
            let size = (*typed.shape(*e)[first].size).clone();
            Equation::Reduce { op: ReduceOp::Sum, size, part: *e, before: index, after, diagonal: Some(second) }
        }
        Expr::Expa(i, _, e) => {
            index.remove(place(i));
            Equation::Same((*e, index))
        }
        Expr::Proj(i, m, e) => {
            index.insert(place(i), literal(m));
            Equation::Same((*e, index))
        }
    }
}

/// The indices of a reduction's part for one value of the reduced index.
pub(super) fn reduced<I: Clone>(before: &[I], m: I, after: &[I], diagonal: Option<usize>) -> Vec<I> {
    let mut index = [before, std::slice::from_ref(&m), after].concat();
    if let Some(second) = diagonal {
        index.insert(second, m);
    }
    index
}
