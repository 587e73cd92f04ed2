//! What expressions stand for while they are checked, and element types that are still open.
//!
//! A literal, and an index used as data, takes the element type that its context wants. Such a value is *flexible*
//! ([`Flex`]); it carries its default type, and [`Draft::take`] gives it another one by walking over the part of its
//! tree that is flexible. Each part is walked over once, since what has met a fixed type is fixed.

use certen_core::{Binary, ElemType, Literal, TensorType};
use certen_index::{Cond, Ix};

use super::index::Index;
use crate::typed::{Block, Expr, Kind, WithDefault};

/// What an expression stands for.
#[derive(Clone, Debug)]
pub(super) enum Judged {
    /// An integer of the index level.
    Index(Index),
    /// An index vector.
    Vector(Vec<Index>),
    /// A condition of the index level.
    Cond(Cond),
    /// A tensor.
    Data(Draft),
}

/// A typed expression whose element type may still be open.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    /// The expression; if it is flexible its element type is the default.
    pub expr: Expr,
    /// Whether the element type is open.
    pub flex: Flex,
}

/// How open an element type is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flex {
    /// It is known.
    No,
    /// Made of whole numbers: any type with arithmetic.
    Int,
    /// Made of numbers with a point: f32 or f64.
    Float,
}

impl Draft {
    /// An expression whose element type is known.
    pub fn fixed(expr: Expr) -> Draft {
        Draft { expr, flex: Flex::No }
    }

    /// The element type, or its default.
    pub fn elem(&self) -> ElemType {
        self.expr.ty.elem
    }

    /// How many dimensions it has.
    pub fn rank(&self) -> usize {
        self.expr.ty.rank()
    }

    /// Whether it can have this element type.
    pub fn can_be(&self, elem: ElemType) -> bool {
        match self.flex {
            Flex::No => self.elem() == elem,
            Flex::Int => elem.has_arithmetic() || (elem == ElemType::U8 && literal_only(&self.expr)),
            Flex::Float => elem.is_float(),
        }
    }

    /// Gives an element type to it that it [can have](Draft::can_be).
    ///
    /// # Errors
    /// If a literal of it does not fit.
    pub fn take(&mut self, elem: ElemType) -> Result<(), TooLarge> {
        if self.flex != Flex::No {
            set_elem(&mut self.expr, elem)?;
            self.flex = Flex::No;
        }
        Ok(())
    }
}

fn literal_only(expr: &Expr) -> bool {
    match &expr.kind {
        Kind::Literal(Literal::Int(value)) => u8::try_from(*value).is_ok(),
        Kind::Index(ix) => ix.as_constant().is_some_and(|value| u8::try_from(value).is_ok()),
        Kind::Stack(parts) => parts.iter().all(literal_only),
        _ => false,
    }
}

fn literal_of(value: f64, elem: ElemType) -> Literal {
    match elem {
        ElemType::F32 => Literal::Float(f64::from(value as f32)),
        _ => Literal::Float(value),
    }
}

/// A number that an element type cannot hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge(pub f64);

/// Whether an element type that literals can take holds a number.
fn holds(elem: ElemType, number: f64) -> Result<(), TooLarge> {
    let fits = match elem {
        ElemType::F32 => (number as f32).is_finite() || !number.is_finite(),
        ElemType::I32 => number.abs() <= f64::from(i32::MAX) || number == f64::from(i32::MIN),
        _ => true,
    };
    if fits { Ok(()) } else { Err(TooLarge(number)) }
}

/// Gives an element type to an expression that is flexible, and so to all of it that is.
///
/// # Errors
/// If a literal of it does not fit.
pub(super) fn set_elem(expr: &mut Expr, elem: ElemType) -> Result<(), TooLarge> {
    if expr.ty.elem != elem {
        expr.ty = TensorType { elem, shape: expr.ty.shape.clone() };
    }
    match &mut expr.kind {
        Kind::Literal(literal) => match literal {
            Literal::Float(value) => {
                holds(elem, *value)?;
                *literal = literal_of(*value, elem);
            }
            Literal::Int(value) => {
                holds(elem, *value as f64)?;
                *literal = Literal::whole(*value, elem);
            }
            Literal::Bool(_) => {}
        },
        Kind::Epsilon => {}
        Kind::Index(ix) => {
            if let Some(value) = ix.as_constant() {
                holds(elem, value as f64)?;
                expr.kind = Kind::Literal(whole(value, elem));
            }
        }
        Kind::Stack(parts) => parts.iter_mut().try_for_each(|part| set_elem(part, elem))?,
        Kind::Comprehension(parts) => parts.iter_mut().try_for_each(|part| set_elem(&mut part.body, elem))?,
        Kind::With(with) => {
            with.generators.iter_mut().try_for_each(|generator| set_elem(&mut generator.body, elem))?;
            let (WithDefault::Cell(default) | WithDefault::Array(default)) = &mut with.default;
            set_elem(default, elem)?;
        }
        Kind::Fold(fold) => {
            fold.generators.iter_mut().try_for_each(|generator| set_elem(&mut generator.body, elem))?;
            set_elem(&mut fold.neutral, elem)?;
        }
        Kind::Select(e, _)
        | Kind::Unary(_, e)
        | Kind::Guard(_, e)
        | Kind::Reduce(_, _, e)
        | Kind::Flatten(e)
        | Kind::Split(_, e)
        | Kind::Transpose(e)
        | Kind::Pad(_, _, e)
        | Kind::Trunc(_, _, e)
        | Kind::Reshape(e)
        | Kind::Stored(e) => set_elem(e, elem)?,
        Kind::Binary(op, a, b) => {
            if !matches!(op, Binary::Lt | Binary::Le | Binary::Eq | Binary::Ne) {
                set_elem(a, elem)?;
                set_elem(b, elem)?;
            }
        }
        Kind::If(_, a, b) | Kind::Choose(_, a, b) | Kind::Concat(a, b) => {
            set_elem(a, elem)?;
            set_elem(b, elem)?;
        }
        Kind::Block(block) => block.results.iter_mut().try_for_each(|result| set_elem(result, elem))?,
        Kind::Var(_) | Kind::Cast(_) | Kind::Call(_) | Kind::Iterate(_) => {}
    }
    Ok(())
}

/// A whole number of an element type.
pub(super) fn whole(value: i64, elem: ElemType) -> Literal {
    match Literal::whole(value, elem) {
        Literal::Float(value) => literal_of(value, elem),
        other => other,
    }
}

/// The number of nodes of an expression that binds nothing and refers to no tensor, up to a limit; none if it does or
/// is larger.
pub(super) fn constant_size(expr: &Expr, limit: usize) -> Option<usize> {
    let sum = |parts: &[&Expr]| {
        parts.iter().try_fold(1, |size, part| {
            let size = size + constant_size(part, limit.checked_sub(size)?)?;
            (size <= limit).then_some(size)
        })
    };
    match &expr.kind {
        Kind::Literal(_) | Kind::Epsilon | Kind::Index(_) => Some(1),
        Kind::Stack(parts) => sum(&parts.iter().collect::<Vec<_>>()),
        Kind::Unary(_, a) => sum(&[a]),
        Kind::Binary(_, a, b) => sum(&[a, b]),
        _ => None,
    }
}

/// A block as an expression: its result alone if it binds nothing.
pub(super) fn block_expr(lets: Vec<crate::typed::Let>, result: Expr) -> Expr {
    if lets.is_empty() {
        return result;
    }
    let (ty, span) = (result.ty.clone(), result.span);
    Expr { kind: Kind::Block(Box::new(Block { lets, results: vec![result] })), ty, span }
}

/// An index used as data.
pub(super) fn index_expr(ix: &Ix, elem: ElemType, span: certen_syntax::Span) -> Expr {
    let kind = match ix.as_constant() {
        Some(value) => Kind::Literal(whole(value, elem)),
        None => Kind::Index(ix.clone()),
    };
    Expr { kind, ty: TensorType::scalar(elem), span }
}
