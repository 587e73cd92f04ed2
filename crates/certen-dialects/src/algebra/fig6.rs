//! The meaning of expressions (TeIL, Fig. 6; model language, Fig. 12), equation by equation, for any kind of index.
//!
//! [`equation`] is the figure: given an expression and the list of indices it is evaluated at, it says what the
//! expression's parts are evaluated at and how they are combined. With numbers for indices it is evaluation
//! (`certen_figures::semantics`), with symbols it is elaboration into Core ([`elaborate`](super::elaborate)).
//! Indices count from 0 here, positions from 1 as in the text.

use certen_core::{Binary, ElemType, MAX_MULTIPLIED, ReduceOp};
use certen_index::Ix;
use certen_syntax::Name;

use super::ast::{Arith, Expr, ExprId, Pair};
use super::typed::Typed;

/// An expression and the indices it is evaluated at.
pub type At<I> = (ExprId, Vec<I>);

/// The right-hand side of an equation.
pub enum Equation<I> {
    /// `μ x ī`; the expression is the name.
    Read(ExprId, Name, Vec<I>),
    /// The value of a part.
    Same(At<I>),
    /// The values of two parts combined.
    Combine(Binary, At<I>, At<I>),
    /// The values of a part combined over the indices of one or more dimensions.
    Reduce(Reduction<I>),
    /// A number times the value of a part (Eq. 5).
    Scale(Ix, At<I>),
    /// The value of a part to the power of a number.
    Power(Ix, At<I>),
}

/// Whether a power is the product of copies, one after the other: over integers, and over f32, which does not have
/// every exponent as a number, unless it is known and small.
pub fn is_product(exponent: &Ix, elem: ElemType) -> bool {
    match elem {
        ElemType::F64 => false,
        ElemType::F32 => exponent.as_constant().is_none_or(|n| n > MAX_MULTIPLIED),
        _ => true,
    }
}

/// Values of a part, combined over one or more indices inside each other.
pub struct Reduction<I> {
    /// How the values are combined.
    pub op: ReduceOp,
    /// The sizes that the indices run over, the outermost last.
    sizes: Vec<Ix>,
    part: ExprId,
    index: Vec<PartIndex<I>>,
}

/// An index of the part of a reduction.
#[derive(Clone)]
enum PartIndex<I> {
    /// Given.
    Known(I),
    /// The reduced index that runs over this one of the sizes.
    Reduced(usize),
}

impl<I: Clone> Reduction<I> {
    /// A power: the product of as many copies of a part's value.
    pub fn power(exponent: Ix, (part, index): At<I>) -> Self {
        Reduction {
            op: ReduceOp::Prod,
            sizes: vec![exponent],
            part,
            index: index.into_iter().map(PartIndex::Known).collect(),
        }
    }

    /// The size that the outermost index runs over.
    pub fn size(&self) -> &Ix {
        &self.sizes[self.sizes.len() - 1]
    }

    /// What is combined, at one value of the outermost index.
    pub fn at(&self, m: &I) -> Equation<I> {
        let inner = self.sizes.len() - 1;
        let slots = self.index.iter().map(|slot| match slot {
            PartIndex::Reduced(at) if *at == inner => PartIndex::Known(m.clone()),
            slot => slot.clone(),
        });
        if inner > 0 {
            let (sizes, index) = (self.sizes[..inner].to_vec(), slots.collect());
            return Equation::Reduce(Reduction { op: self.op, sizes, part: self.part, index });
        }
        let known = |slot| if let PartIndex::Known(i) = slot { Some(i) } else { None };
        Equation::Same((self.part, slots.filter_map(known).collect()))
    }
}

/// `[[e]] Γ μ ī = …`, for a well-typed `e` of as many dimensions as there are indices.
pub fn equation<I: Clone>(typed: &Typed, id: ExprId, mut index: Vec<I>, literal: impl Fn(&Ix) -> I) -> Equation<I> {
    let place = |position: &i64| *position as usize - 1;
    match typed.program.expr(id) {
        Expr::Var(name) => Equation::Read(id, *name, index),
        Expr::Paren(e) => Equation::Same((*e, index)),
        Expr::Elem(op, e0, e1) => {
            // A scalar stands on the left of `mul` and on the right of `/` beside a tensor of any shape.
            let left = if *op == Arith::Mul && typed.shape(*e0).is_empty() { Vec::new() } else { index.clone() };
            let right = if *op == Arith::Div && typed.shape(*e1).is_empty() { Vec::new() } else { index };
            Equation::Combine(op.meaning(), (*e0, left), (*e1, right))
        }
        Expr::Prod(e0, e1) => {
            let right = index.split_off(typed.shape(*e0).len());
            Equation::Combine(Binary::Mul, (*e0, index), (*e1, right))
        }
        Expr::Red(op, i, e) => reduce(typed, *op, &[(*i, *i)], *e, index),
        Expr::Transp(pairs, e) => {
            pairs.iter().for_each(|(i0, i1)| index.swap(place(i0), place(i1)));
            Equation::Same((*e, index))
        }
        Expr::Diag(i0, i1, e) => {
            let (first, second) = (place(i0.min(i1)), place(i0.max(i1)));
            index.insert(second, index[first].clone());
            Equation::Same((*e, index))
        }
        // Eq. 6, both equations at once: the reduced index stands at the first position and again at the second.
        Expr::Contr(pairs, e) => reduce(typed, ReduceOp::Sum, pairs, *e, index),
        Expr::Expa(i, _, e) => {
            index.remove(place(i));
            Equation::Same((*e, index))
        }
        Expr::Proj(i, m, e) => {
            index.insert(place(i), literal(m));
            Equation::Same((*e, index))
        }
        Expr::Scale(n, e) => Equation::Scale(n.clone(), (*e, index)),
        Expr::Power(n, e) => Equation::Power(n.clone(), (*e, index)),
    }
}

/// The reduction of a part along the diagonals of pairs of its dimensions, the first pair innermost.
fn reduce<I: Clone>(typed: &Typed, op: ReduceOp, pairs: &[Pair], part: ExprId, index: Vec<I>) -> Equation<I> {
    let shape = typed.shape(part);
    let mut slots: Vec<Option<PartIndex<I>>> = vec![None; shape.len()];
    let mut sizes = Vec::with_capacity(pairs.len());
    for (at, &(i0, i1)) in pairs.iter().enumerate() {
        let (first, second) = (i0.min(i1) as usize - 1, i0.max(i1) as usize - 1);
        sizes.push((*shape[first].size).clone());
        (slots[first], slots[second]) = (Some(PartIndex::Reduced(at)), Some(PartIndex::Reduced(at)));
    }
    let mut given = index.into_iter();
    let index = slots.into_iter().filter_map(|slot| slot.or_else(|| given.next().map(PartIndex::Known))).collect();
    Equation::Reduce(Reduction { op, sizes, part, index })
}
