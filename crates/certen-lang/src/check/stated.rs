//! Stated types: the shapes that they give to expressions, before those are checked.

use std::collections::HashMap;
use std::rc::Rc;

use certen_index::Ix;
use certen_syntax::{Name, Span};

use super::builtin::is_entrywise;
use super::scope::Checker;
use super::signature::Asked;
use super::value::{Draft, Judged};
use super::wanted::{Flow, Wanted};
use crate::ast::{self, Block, Dim, Elem, Expr, ExprKind};

impl Checker<'_, '_> {
    /// Says that an expression should have a shape.
    pub fn want(&mut self, e: &Expr, wanted: Option<&Wanted>) {
        let Some(wanted) = wanted else { return };
        let mut flow = Flow::new(is_entrywise);
        flow.expr(e, wanted);
        self.wanted.extend(flow.places);
    }

    /// Says which shapes the results of a block should have.
    pub fn want_block(&mut self, block: &Block, wanted: &[Option<Wanted>]) {
        let mut flow = Flow::new(is_entrywise);
        flow.block(block, wanted);
        self.wanted.extend(flow.places);
    }

    /// The shapes that the values of what stands here should have.
    pub fn wanted_at(&self, span: Span, value: usize) -> Option<Wanted> {
        self.wanted.get(&span)?.get(value)?.clone()
    }

    /// The shape that a type states, if it says how many dimensions there are. What is wrong with the type is said where
    /// the expression is compared with it.
    pub fn wanted_by(&mut self, ty: &ast::Type) -> Option<Wanted> {
        if ty.elem == Elem::Size {
            return None;
        }
        let (asked, ..) = self.probing(|function| function.asked(ty));
        let size = |asked| match asked {
            Asked::Size(size) => Some(Some(size)),
            Asked::One => Some(None),
            Asked::Many(_) => None,
        };
        let shape = asked.ok()?.into_iter().map(size).collect::<Option<Rc<[Option<Ix>]>>>()?;
        Some(Wanted { shape, from: ty.span })
    }

    /// The shape that the type of a parameter states by the arguments before it.
    pub fn wanted_by_parameter(&self, function: &ast::Function, before: &[(Judged, Span)]) -> Option<Wanted> {
        let mut sizes: HashMap<Name, Ix> = HashMap::new();
        let mut shapes: HashMap<Name, Vec<Ix>> = HashMap::new();
        for (param, (value, _)) in function.params.iter().zip(before) {
            match value {
                Judged::Index(index) if param.ty.elem == Elem::Size => {
                    sizes.extend(index.plain().map(|ix| (param.name.name, ix.clone())));
                }
                Judged::Data(draft) if param.ty.elem != Elem::Size => named(&param.ty, draft, &mut sizes, &mut shapes),
                _ => {}
            }
        }
        let ty = &function.params.get(before.len())?.ty;
        let mut shape = Vec::new();
        for dim in &ty.dims {
            match dim {
                Dim::Size(Expr { kind: ExprKind::Name(name), .. }) => shape.push(sizes.get(name).cloned()),
                Dim::Size(Expr { kind: ExprKind::Int(size), .. }) => shape.push(Some(Ix::from(*size))),
                Dim::Size(_) | Dim::One(_) => shape.push(None),
                Dim::Rest(name) | Dim::Ranked { shape: name, .. } => {
                    shape.extend(shapes.get(&name.name)?.iter().cloned().map(Some));
                }
                Dim::Any(_) | Dim::Some(_) => return None,
            }
        }
        let wanted = Wanted { shape: shape.into(), from: ty.span };
        (ty.elem != Elem::Size).then_some(wanted)
    }
}

/// What the names of a parameter's type stand for, if a tensor is given for it.
fn named(ty: &ast::Type, given: &Draft, sizes: &mut HashMap<Name, Ix>, shapes: &mut HashMap<Name, Vec<Ix>>) {
    let single = |dim: &&Dim| matches!(dim, Dim::Size(_) | Dim::One(_));
    let singles = ty.dims.iter().filter(single).count();
    let mut left = given.expr.ty.shape.iter().cloned();
    let several = match ty.dims.len() - singles {
        0 | 1 => given.rank().saturating_sub(singles),
        _ => return,
    };
    for dim in &ty.dims {
        match dim {
            Dim::Size(Expr { kind: ExprKind::Name(name), .. }) => {
                if let Some(size) = left.next() {
                    sizes.entry(*name).or_insert(size);
                }
            }
            Dim::Size(_) | Dim::One(_) => drop(left.next()),
            Dim::Rest(name) | Dim::Ranked { shape: name, .. } => {
                shapes.insert(name.name, left.by_ref().take(several).collect());
            }
            Dim::Any(_) | Dim::Some(_) => left.by_ref().take(several).for_each(drop),
        }
    }
}
