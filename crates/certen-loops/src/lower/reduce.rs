//! Reductions of scalars: an accumulator, and a loop before the statement that needs its value.
//!
//! A restriction skips: what it excludes is not combined at all. A guard in the body is different: its zero is a value
//! like any other, and counts in a product, minimum or maximum.

use certen_core::{ElemType, Literal, Range, ReduceOp, Term, TermId, Terms};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use super::{Bound, Env, Lowered, Lowering, bad_index, ill_typed, no_part};
use crate::ir::{Stmt, Target};

impl Lowering<'_> {
    /// The accumulator of a reduction, after the loop that fills it.
    pub(super) fn reduction(&mut self, term: TermId, env: Env, indices: Vec<Ix>) -> Lowered<TermId> {
        let Term::Reduce(op, _, range, ..) = self.term(term) else { return Err(no_part()) };
        let (elem, range) = (self.program.terms.ty(term).elem, self.range(env, range)?);
        let Some(identity) = op.identity(elem) else {
            return self.extreme(term, range, env, indices);
        };
        let first = self.out.add(Term::Literal(identity, elem)).map_err(ill_typed)?;
        let (sum, value) = self.local("acc", elem, Some(first))?;
        self.elements(term, range, env, indices, |lowering, _, element| {
            lowering.push(Stmt::Assign { target: Target::Local(sum), op: Some(*op), value: element });
            Ok(())
        })?;
        Ok(value)
    }

    /// A loop over a range of a reduction that does something with each element for which the condition holds.
    fn elements(
        &mut self,
        term: TermId,
        range: Range,
        env: Env,
        indices: Vec<Ix>,
        combine: impl FnOnce(&mut Self, Name, TermId) -> Lowered<()>,
    ) -> Lowered<()> {
        self.each(term, range, env, |lowering, body, index, inner| {
            let element = lowering.value(body, inner, indices)?;
            combine(lowering, index, element)
        })
    }

    /// A loop over what a reduction combines, each under the restriction, which skips.
    pub(super) fn each(
        &mut self,
        term: TermId,
        range: Range,
        env: Env,
        combine: impl FnOnce(&mut Self, TermId, Name, Env) -> Lowered<()>,
    ) -> Lowered<()> {
        let Term::Reduce(_, name, _, cond, body) = self.term(term) else { return Err(no_part()) };
        let index = self.open_loop(*name, &range)?;
        let inner = self.bind(env, *name, Bound::Index(Ix::var(index)));
        let cond = self.cond(inner, cond)?;
        if cond.is_always() {
            combine(self, *body, index, inner)?;
        } else {
            self.open(vec![cond.clone()])?;
            combine(self, *body, index, inner)?;
            let then = self.close();
            self.push_if(cond, then, Vec::new())?;
        }
        self.close_loop(index, range);
        Ok(())
    }

    /// A minimum or maximum, which has no identity: the first element replaces, the others are combined. Which is the
    /// first is known by its place; with a condition, by a local that says whether there was one.
    ///
    /// If there is none for which the condition holds, the result is zero: Core gives such a term no value.
    fn extreme(&mut self, term: TermId, range: Range, env: Env, indices: Vec<Ix>) -> Lowered<TermId> {
        let Term::Reduce(op, _, _, cond, body) = self.term(term) else { return Err(no_part()) };
        let (op, elem) = (*op, self.program.terms.ty(*body).elem);
        let assign =
            |best: Name, op: Option<ReduceOp>, value: TermId| Stmt::Assign { target: Target::Local(best), op, value };
        if !cond.is_always() {
            let zero = self.zero(*body)?;
            let mut truth = |value: bool| self.out.add(Term::Literal(Literal::Bool(value), ElemType::Bool));
            let (no, yes) = (truth(false).map_err(ill_typed)?, truth(true).map_err(ill_typed)?);
            let (best, value) = self.local("acc", elem, Some(zero))?;
            let (found, was_found) = self.local("found", ElemType::Bool, Some(no))?;
            self.elements(term, range, env, indices, |lowering, _, element| {
                let combined = lowering.out.add(Term::Binary(op.combine(), value, element)).map_err(ill_typed)?;
                let chosen = lowering.out.add(Term::Choose(was_found, combined, element)).map_err(ill_typed)?;
                lowering.push(assign(best, None, chosen));
                lowering.push(assign(found, None, yes));
                Ok(())
            })?;
            return Ok(value);
        }
        self.non_empty(op, &range)?;
        // A body without loops is written twice: compilers like loops without conditions.
        if !self.has_loops[body.index()] {
            let (best, value) = self.local("acc", elem, None)?;
            let second = range.lo.add(&Ix::from(1)).map_err(bad_index)?;
            let first = Range { lo: range.lo, hi: second.clone() };
            for (range, op) in [(first, None), (Range { lo: second, hi: range.hi }, Some(op))] {
                if range.lo != range.hi {
                    self.elements(term, range, env, indices.clone(), |lowering, _, element| {
                        lowering.push(assign(best, op, element));
                        Ok(())
                    })?;
                }
            }
            return Ok(value);
        }
        let zero = self.zero(*body)?;
        let (best, value) = self.local("acc", elem, Some(zero))?;
        let lo = range.lo.clone();
        self.elements(term, range, env, indices, |lowering, index, element| {
            let cond = Cond::eq(&Ix::var(index), &lo).map_err(bad_index)?;
            let (then, otherwise) = (vec![assign(best, None, element)], vec![assign(best, Some(op), element)]);
            lowering.push(Stmt::If { cond, then, otherwise });
            Ok(())
        })?;
        Ok(value)
    }

    fn non_empty(&self, op: ReduceOp, range: &Range) -> Lowered<()> {
        let goal = Cond::lt(&range.lo, &range.hi).map_err(bad_index)?;
        let verdict = self.prove(&goal);
        // Also in a loop without iterations, where anything holds: the range may have nothing to do with it.
        if verdict == Verdict::Yes || self.prove(&Cond::never()) == Verdict::Yes {
            return Ok(());
        }
        let text = format!("a {} over {}..{}, which is not shown to be non-empty", op.name(), range.lo, range.hi);
        let error = Diagnostic::error(Code::E0702, None, text).note(format!("it needs {goal}"));
        Err(match verdict {
            Verdict::No(sizes) => error.note(format!("but this does not hold for {sizes}")),
            _ => error,
        })
    }
}

/// For each term, whether computing an element of it takes a loop.
pub(super) fn has_loops(terms: &Terms) -> Vec<bool> {
    terms.having(|term| matches!(term, Term::Reduce(..) | Term::Let(..) | Term::Iterate(..) | Term::Flatten(_)))
}
