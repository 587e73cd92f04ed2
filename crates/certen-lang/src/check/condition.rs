//! Conditions: lazily one of two by the index level, or both computed and one selected by data.

use certen_core::{ElemType, TensorType};
use certen_index::{Cond, Verdict};
use certen_syntax::{Code, Diagnostic, Span};

use super::Checked;
use super::index::Index;
use super::scope::Checker;
use super::value::{Draft, Flex, Judged};
use crate::ast;
use crate::typed::{Expr, Kind};

impl Checker<'_, '_> {
    pub fn conditional(
        &mut self,
        cond: &ast::Expr,
        then: &ast::Block,
        otherwise: &ast::Block,
        span: Span,
    ) -> Checked<Judged> {
        match self.expr(cond)? {
            Judged::Cond(cond) => {
                let not = self.made(span, cond.not())?;
                match self.decided(&cond, &not) {
                    Some(true) => return self.block(then),
                    Some(false) => return self.block(otherwise),
                    None => {}
                }
                let first = self.guarded(cond.clone(), |function| function.block(then))?;
                let second = self.guarded(not, |function| function.block(otherwise))?;
                self.either(cond, (first, then.span), (second, otherwise.span), span)
            }
            Judged::Data(condition) => {
                if condition.rank() > 0 || condition.elem() != ElemType::Bool || condition.flex != Flex::No {
                    let text = format!("a condition is one truth value, not {}", condition.expr.ty);
                    let error = Diagnostic::error(Code::E0232, cond.span, text);
                    return self.fail(if condition.rank() > 0 {
                        error.help("to choose element by element: `select(c, a, b)`")
                    } else {
                        error.help("compare it with something: `x > 0`")
                    });
                }
                let (a, b) = (self.block(then)?, self.block(otherwise)?);
                let (a, b) = (self.as_data(a, then.span)?, self.as_data(b, otherwise.span)?);
                Ok(Judged::Data(self.choose(condition, a, b, span)?))
            }
            value => self.no_condition(&value, cond.span),
        }
    }

    /// Whether what holds here decides a condition, whose opposite is given. Where nothing can hold at all, because the
    /// code is never reached, everything would be decided: there a condition stays.
    pub fn decided(&self, cond: &Cond, not: &Cond) -> Option<bool> {
        let holds = |cond: &Cond| cond.is_always() || self.facts().prove(cond) == Verdict::Yes;
        match (holds(cond), holds(not)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }

    fn no_condition<T>(&mut self, value: &Judged, span: Span) -> Checked<T> {
        let what = if matches!(value, Judged::Vector(_)) { "an index vector" } else { "an index" };
        self.error(Code::E0232, span, format!("a condition is wanted here, not {what}"))
    }

    /// Lazily one of two values by a condition on indices.
    pub fn either(
        &mut self,
        cond: Cond,
        (a, a_span): (Judged, Span),
        (b, b_span): (Judged, Span),
        span: Span,
    ) -> Checked<Judged> {
        match (a, b) {
            (Judged::Index(a), Judged::Index(b)) => Ok(Judged::Index(self.made(span, Index::one_of(cond, a, b))?)),
            (Judged::Vector(a), Judged::Vector(b)) if a.len() == b.len() => {
                let made = a.into_iter().zip(b).map(|(a, b)| Index::one_of(cond.clone(), a, b)).collect();
                Ok(Judged::Vector(self.made(span, made)?))
            }
            (Judged::Cond(a), Judged::Cond(b)) => {
                let not = self.made(span, cond.not())?;
                Ok(Judged::Cond(cond.and(a).or(not.and(b))))
            }
            (a, b) => {
                let (a, b) = (self.as_data(a, a_span)?, self.as_data(b, b_span)?);
                let (mut a, mut b) = (self.outside(a)?, self.outside(b)?);
                self.unify(&mut a, &mut b, span)?;
                self.same_shape(&a, &b, span, "the branches of `if` have different shapes")?;
                let ty = a.expr.ty.clone();
                let kind = Kind::If(cond, Box::new(a.expr), Box::new(b.expr));
                Ok(Judged::Data(Draft { flex: a.flex, expr: Expr { kind, ty, span } }))
            }
        }
    }

    /// One of two, element by element, by truth values.
    pub fn choose(&mut self, condition: Draft, mut a: Draft, mut b: Draft, span: Span) -> Checked<Draft> {
        self.unify(&mut a, &mut b, span)?;
        let shape = self.entrywise(&a, &b, "+", span)?;
        let branch = if a.rank() > 0 { &a } else { &b };
        let shape = if shape.is_empty() {
            condition.expr.ty.shape.clone()
        } else {
            if condition.rank() > 0 {
                self.same_shape(&condition, branch, span, "the condition and the branches have different shapes")?;
            }
            shape
        };
        let ty = TensorType { elem: a.elem(), shape };
        let kind = Kind::Choose(Box::new(condition.expr), Box::new(a.expr), Box::new(b.expr));
        Ok(Draft { flex: a.flex, expr: Expr { kind, ty, span } })
    }
}
