//! Iterations: all states of an iteration are carried together.

use std::collections::HashSet;

use certen_core::{Carried, Range, Term, TermId, Terms};
use certen_index::Ix;
use certen_syntax::{Name, Span};

use super::{Activation, Before, Build, Built, Denoted, ill_formed};
use crate::typed::{Expr, Iterate};

impl<'a> Build<'a> {
    /// The terms of all states of an iteration.
    pub(super) fn iterate(&mut self, iterate: &'a Iterate, act: Activation, span: Span) -> Built<Vec<TermId>> {
        let times = self.ix(act, &iterate.times, span)?;
        let firsts = iterate.states.iter().map(|(_, first)| self.tensor(first, act)).collect::<Built<Vec<TermId>>>()?;
        let step = self.open_loop(Some(iterate.step), &Range::to(times.clone()), true, span)?;
        let mut before = vec![self.mean_for_now(act, iterate.step, Denoted::Index(Ix::var(step)))];
        let mut names = Vec::new();
        for ((state, _), first) in iterate.states.iter().zip(&firsts) {
            let (name, meant) = self.state(act, *state, *first);
            names.push(name);
            before.push(meant);
        }
        self.lets(&iterate.body, act, span)?;
        let mut nexts = Vec::new();
        for (result, first) in iterate.body.results.iter().zip(&firsts) {
            nexts.push(self.tensor_like(result, act, *first)?);
        }
        let nexts = self.close_all(nexts, span)?;
        self.restore(before.into_iter());
        let states = names.into_iter().zip(firsts).zip(nexts);
        let states: Box<[Carried]> = states.map(|((name, init), next)| Carried { name, init, next }).collect();
        (0..states.len()).map(|at| self.add(Term::Iterate(times.clone(), step, states.clone(), at), span)).collect()
    }

    /// The term of the state of an iteration that has one.
    pub(super) fn only_state(&mut self, iterate: &'a Iterate, act: Activation, span: Span) -> Built<TermId> {
        let states = self.iterate(iterate, act, span)?;
        states.first().copied().ok_or_else(|| ill_formed(span, "an iteration without states"))
    }

    /// Names a state in the innermost scope; it has the type of its first value.
    pub(super) fn state(&mut self, act: Activation, name: Name, first: TermId) -> (Name, Before<'a>) {
        let given = self.names.index(name, self.depth());
        let state = given.name;
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.push(given);
        }
        let meaning = Denoted::Stored(state, self.terms.ty(first).clone());
        (state, self.mean_for_now(act, name, meaning))
    }

    /// A whole tensor with the shape, letter for letter, of another: shapes that are equal only under the conditions
    /// around are not so to Core.
    pub(super) fn tensor_like(&mut self, expr: &'a Expr, act: Activation, other: TermId) -> Built<TermId> {
        let term = self.tensor(expr, act)?;
        let wanted = self.terms.ty(other).shape.clone();
        if self.terms.ty(term).shape == wanted || wanted.is_empty() {
            return Ok(term);
        }
        // It is made first: inside the loops that follow, the names of its own indices would be bound twice.
        let term = self.named(term, "next", expr.span)?;
        let hints = self.hints(expr);
        self.generation(&wanted, &hints, expr.span, |build, indices| {
            build.add(Term::Select(term, indices.into()), expr.span)
        })
    }

    /// Ends the innermost scope, whose content is several terms: each gets the `let`s that it needs.
    pub(super) fn close_all(&mut self, contents: Vec<TermId>, span: Span) -> Built<Vec<TermId>> {
        let Some(scope) = self.scopes.pop() else { return Ok(contents) };
        scope.names.iter().rev().for_each(|given| self.names.give_back(given));
        let mut closed = Vec::new();
        for content in contents {
            let mut needed = mentioned(&self.terms, content);
            let mut body = content;
            for (name, value) in scope.lets.iter().rev() {
                if needed.contains(name) {
                    needed.extend(mentioned(&self.terms, *value));
                    body = self.add(Term::Let(*name, *value, body), span)?;
                }
            }
            closed.push(body);
        }
        Ok(closed)
    }
}

/// The tensors that a term refers to.
fn mentioned(terms: &Terms, root: TermId) -> HashSet<Name> {
    let (mut names, mut seen, mut todo) = (HashSet::new(), HashSet::new(), vec![root]);
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            let term = terms.get(id);
            if let Term::Ref(name, _) = term {
                names.insert(*name);
            }
            todo.extend(term.parts());
        }
    }
    names
}
