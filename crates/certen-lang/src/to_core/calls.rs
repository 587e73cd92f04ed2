//! Blocks and calls: calls are inlined, and what a `let` or a parameter stands for is stored or written into its
//! readers.

use std::collections::HashMap;

use certen_syntax::{Name, Span};

use super::policy;
use super::{Activation, Build, Built, Denoted, View, ill_formed};
use crate::typed::{Block, Call, Expr, Function, Kind, Let, Rhs};

impl<'a> Build<'a> {
    pub(super) fn lets(&mut self, block: &'a Block, act: Activation, span: Span) -> Built<()> {
        block.lets.iter().try_for_each(|bound| self.bind_let(bound, act, span))
    }

    pub(super) fn bind_let(&mut self, bound: &'a Let, act: Activation, span: Span) -> Built<()> {
        match (&bound.value, bound.names.as_slice()) {
            (Rhs::Expr(e), [(name, _)]) => self.mean_expr(act, *name, e, act),
            (Rhs::Call(call), names) => {
                let inner = self.call(call, act, span)?;
                let callee = self.callee(call, span)?;
                for ((name, _), result) in names.iter().zip(&callee.body.results) {
                    let meaning = self.stored_or_view(*name, result, inner)?;
                    self.mean(act, *name, meaning);
                }
                Ok(())
            }
            (Rhs::Iterate(iterate), names) => {
                let survey = self.survey_iterate(iterate, act);
                let placement = self.outwards(survey);
                let hidden = self.leave(placement.depth);
                let guard = self.unknown_part(placement.guard);
                let terms = self.iterate(iterate, act, span)?;
                for ((name, _), term) in names.iter().zip(terms) {
                    let term = self.under(&guard, term, span)?;
                    let given = self.names.tensor(*name, self.depth());
                    let (stored, ty) = self.bind(given, term);
                    self.mean(act, *name, Denoted::Stored(stored, ty));
                }
                self.enter_again(hidden);
                Ok(())
            }
            (Rhs::Expr(e), _) => Err(ill_formed(e.span, "one value for several names")),
        }
    }

    /// Gives a name of one activation an expression of another.
    pub(super) fn mean_expr(&mut self, act: Activation, name: Name, expr: &'a Expr, of: Activation) -> Built<()> {
        let meaning = self.stored_or_view(name, expr, of)?;
        self.mean(act, name, meaning);
        Ok(())
    }

    pub(super) fn stored_or_view(&mut self, base: Name, expr: &'a Expr, act: Activation) -> Built<Denoted<'a>> {
        let survey = self.survey(expr, act);
        if let Some(reads) = self.reads(expr, act).filter(|_| survey.links < policy::MOST_LINKS) {
            return Ok(Denoted::View(View { expr, act, reads, survey }));
        }
        let (name, ty) = self.store(expr, act, base, self.outwards(survey))?;
        Ok(Denoted::Stored(name, ty))
    }

    pub(super) fn callee(&self, call: &Call, span: Span) -> Built<&'a Function> {
        self.program.functions.get(call.function).ok_or_else(|| ill_formed(span, "a call of nothing"))
    }

    /// Enters a function: its sizes and parameters have a meaning, its `let`s are bound.
    pub(super) fn call(&mut self, call: &'a Call, act: Activation, span: Span) -> Built<Activation> {
        let callee = self.callee(call, span)?;
        let mut own = HashMap::new();
        for (size, value) in callee.sizes.iter().zip(&call.sizes) {
            own.insert(size.name, Denoted::Index(self.ix(act, value, span)?));
        }
        for ((param, _), arg) in callee.params.iter().zip(&call.args) {
            own.insert(*param, self.stored_or_view(*param, arg, act)?);
        }
        let inner = self.activation(own);
        self.lets(&callee.body, inner, span)?;
        Ok(inner)
    }

    /// The expression that a call or block gives, once everything before it is bound.
    pub(super) fn result(&mut self, expr: &'a Expr, act: Activation) -> Built<Option<(&'a Expr, Activation)>> {
        let only = |results: &'a [Expr]| match results {
            [result] => Ok(result),
            _ => Err(ill_formed(expr.span, "several values where one is wanted")),
        };
        Ok(match &expr.kind {
            Kind::Block(block) => {
                self.lets(block, act, expr.span)?;
                Some((only(&block.results)?, act))
            }
            Kind::Call(call) => {
                let inner = self.call(call, act, expr.span)?;
                Some((only(&self.callee(call, expr.span)?.body.results)?, inner))
            }
            Kind::Var(name) => match self.meaning(act, *name) {
                Some(Denoted::View(view)) => Some((view.expr, view.act)),
                _ => None,
            },
            _ => None,
        })
    }
}
