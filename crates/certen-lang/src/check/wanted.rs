//! What is wanted: the shape that a stated type gives to an expression. It flows inwards, through all that has the shape
//! of the whole (branches, blocks and their `let`s, entrywise operations), to comprehensions and iterations, where it is
//! kept by their place in the text. A comprehension whose selections do not say how far its indices go asks for it.
//!
//! It is a hint: nothing is proved of it. Whoever states a type ([`super::stated`]) compares it with what was made.

use std::rc::Rc;

use certen_index::Ix;
use certen_syntax::{Name, Span};

use crate::ast::{self, BinaryOp, Block, Expr, ExprKind};

/// The shape that an expression should have; a size that nothing states is none.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub shape: Rc<[Option<Ix>]>,
    /// What states it.
    pub from: Span,
}

impl Wanted {
    pub fn new(shape: &[Ix], from: Span) -> Wanted {
        Wanted { shape: shape.iter().cloned().map(Some).collect(), from }
    }

    /// The shape of what stands inside dimensions, if the others are picked from it in order.
    pub fn inside(&self, picked: impl Fn(usize) -> bool) -> Wanted {
        let kept = self.shape.iter().enumerate().filter(|(dim, _)| picked(*dim));
        Wanted { shape: kept.map(|(_, size)| size.clone()).collect(), from: self.from }
    }
}

/// The shapes of the values of an expression: several for an iteration of several states.
pub(super) type WantedValues = Rc<[Option<Wanted>]>;

/// Whether all that a built-in function takes, so many arguments, has the shape of what it gives.
type IsEntrywise = fn(&str, usize) -> bool;

/// Where shapes are wanted.
pub(super) struct Flow {
    pub places: Vec<(Span, WantedValues)>,
    entrywise: IsEntrywise,
    /// The names that are met on the way, and what is wanted of them.
    names: Vec<(Name, Wanted)>,
}

impl Flow {
    pub fn new(entrywise: IsEntrywise) -> Flow {
        Flow { places: Vec::new(), entrywise, names: Vec::new() }
    }

    /// Into an expression.
    pub fn expr(&mut self, e: &Expr, wanted: &Wanted) {
        match &e.kind {
            ExprKind::Name(name) => self.names.push((*name, wanted.clone())),
            ExprKind::Comprehension(_) | ExprKind::Iterate(_) => {
                self.places.push((e.span, Rc::new([Some(wanted.clone())])));
            }
            ExprKind::Paren(inner) | ExprKind::Unary(_, inner) => self.expr(inner, wanted),
            ExprKind::Binary(BinaryOp::Concat | BinaryOp::MatMul, ..) => {}
            ExprKind::Binary(_, a, b) => [a, b].into_iter().for_each(|e| self.expr(e, wanted)),
            ExprKind::If(_, then, otherwise) => {
                [then, otherwise].into_iter().for_each(|block| self.block(block, &[Some(wanted.clone())]));
            }
            ExprKind::Block(block) => self.block(block, &[Some(wanted.clone())]),
            ExprKind::List(parts) => {
                let part = wanted.inside(|dim| dim > 0);
                parts.iter().for_each(|e| self.expr(e, &part));
            }
            ExprKind::Call(name, args, _) if (self.entrywise)(name.name.as_str(), args.len()) => {
                args.iter().for_each(|e| self.expr(e, wanted));
            }
            _ => {}
        }
    }

    /// Into a block, whose results have these shapes.
    pub fn block(&mut self, block: &Block, wanted: &[Option<Wanted>]) {
        let outside = std::mem::take(&mut self.names);
        match block.results.as_slice() {
            [only] if wanted.len() > 1 => self.places.push((without_parentheses(only).span, wanted.into())),
            results => {
                for (e, wanted) in results.iter().zip(wanted) {
                    wanted.iter().for_each(|wanted| self.expr(e, wanted));
                }
            }
        }
        for binding in block.lets.iter().rev() {
            let (meant, others) =
                std::mem::take(&mut self.names).into_iter().partition(|(name, _)| binds(binding, *name));
            self.names = others;
            let meant: Vec<(Name, Wanted)> = meant;
            let first = |name: Name| meant.iter().find(|(met, _)| *met == name).map(|(_, wanted)| wanted.clone());
            match binding.names.as_slice() {
                [_] => meant.first().into_iter().for_each(|(_, wanted)| self.expr(&binding.value, wanted)),
                several => {
                    let wanted = several.iter().map(|ident| first(ident.name)).collect();
                    self.places.push((without_parentheses(&binding.value).span, wanted));
                }
            }
        }
        self.names.splice(0..0, outside);
    }
}

fn binds(binding: &ast::Let, name: Name) -> bool {
    binding.names.iter().any(|ident| ident.name == name)
}

fn without_parentheses(e: &Expr) -> &Expr {
    match &e.kind {
        ExprKind::Paren(inner) => without_parentheses(inner),
        _ => e,
    }
}
