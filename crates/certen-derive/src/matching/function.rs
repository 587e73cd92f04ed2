//! Functions found: what a metavariable is that is applied to expressions.

use std::collections::BTreeSet;

use certen_core::{Range, TermId, Terms, TypeError};
use certen_index::Ix;
use certen_syntax::Name;

use super::solve::solved;
use super::{Matcher, Misfit, What};
use crate::context::Context;
use crate::equal::settled;
use crate::found::{Abstracted, Locals};
use crate::names::{Canonical, Substitution, with_each_part};
use crate::pattern::{Argument, IndexPattern, Pattern};

/// The value of an argument.
pub(super) enum Value {
    Index(Ix),
    Term(TermId),
}

/// A sum with a name instead of its quotient, what is divided, and by what.
fn quotient_in(index: &IndexPattern, mark: Name) -> Option<(IndexPattern, IndexPattern, IndexPattern)> {
    match index {
        IndexPattern::FloorDiv(of, by) => Some((IndexPattern::Var(mark), (**of).clone(), (**by).clone())),
        IndexPattern::Add(a, b) => match quotient_in(a, mark) {
            Some((a, of, by)) => Some((IndexPattern::Add(Box::new(a), b.clone()), of, by)),
            None => quotient_in(b, mark).map(|(b, of, by)| (IndexPattern::Add(a.clone(), Box::new(b)), of, by)),
        },
        IndexPattern::Sub(a, b) => {
            quotient_in(a, mark).map(|(a, of, by)| (IndexPattern::Sub(Box::new(a), b.clone()), of, by))
        }
        _ => None,
    }
}

/// A term with a name for all of its parts of a canonical form.
fn replaced(
    terms: &mut Terms,
    id: TermId,
    form: TermId,
    reference: TermId,
    canonical: &mut Canonical,
) -> Result<TermId, TypeError> {
    if canonical.of(terms, id)? == form {
        return Ok(reference);
    }
    let mut inside = (terms, Context::default());
    with_each_part(
        &mut inside,
        id,
        |(terms, context)| (terms, context),
        |(terms, _), part| replaced(terms, part, form, reference, canonical),
    )
}

impl Matcher<'_> {
    /// The values of arguments, as far as they are known: of terms, those of metavariables and of tensors.
    pub(super) fn values(&mut self, args: &[Argument]) -> Option<Vec<Value>> {
        let value = |arg: &Argument| match arg {
            Argument::Index(index) => self.found.whole_ix(self.terms, index, &Locals::new()).map(Value::Index),
            Argument::Term(Pattern::Meta(name, args)) if args.is_empty() => {
                self.found.terms.get(name).map(|value| Value::Term(value.body))
            }
            Argument::Term(Pattern::Tensor(name)) => {
                let own = self.found.names.get(name)?;
                let (_, ty) = self.context.tensors.iter().rev().find(|(tensor, _)| tensor == own)?;
                self.terms.reference(*own, ty.clone()).ok().map(Value::Term)
            }
            Argument::Term(_) => None,
        };
        args.iter().map(value).collect()
    }

    /// A metavariable applied to expressions: compared if it is known; else, if it has to be, found.
    pub(super) fn applied(&mut self, name: Name, args: Vec<Argument>, id: TermId, find: bool) -> Result<(), Misfit> {
        let values = self.values(&args);
        if !find {
            return match (self.found.terms.get(&name).cloned(), values) {
                (Some(value), Some(values)) => self.compare(name, value, values, id),
                _ => self.later(What::Term(name, args, id)),
            };
        }
        let Some(values) = values else {
            return Err(self.misfit(format!("cannot tell what {name} is applied to")));
        };
        let parameters: Vec<Name> = (0..args.len()).map(|at| Name::new(&format!("?{name}{at}"))).collect();
        let mut substitution = Substitution::default();
        let mut settle = None;
        let mut done = vec![false; args.len()];
        // The quotient and the rest by a number stand for an index together.
        for (at, arg) in args.iter().enumerate() {
            let Argument::Index(index) = arg else { continue };
            let mark = Name::new("?quotient");
            let Some((with_mark, of, by)) = quotient_in(index, mark) else { continue };
            let is_rest =
                |other: &Argument| matches!(other, Argument::Index(IndexPattern::Mod(a, b)) if **a == of && **b == by);
            let none = Locals::new();
            let (Some(rest), Some(of), Some(by), Some(sum)) = (
                args.iter().position(is_rest),
                self.found.whole_ix(self.terms, &of, &none).and_then(|of| of.as_var()),
                self.found.whole_ix(self.terms, &by, &none).and_then(|by| by.as_constant()),
                self.found.whole_ix(self.terms, &with_mark, &vec![(mark, Ix::var(mark))]),
            ) else {
                continue;
            };
            let Some(quotient) = solved(&sum, mark, &Ix::var(parameters[at])) else { continue };
            let remainder = Ix::var(parameters[rest]);
            substitution.indices.insert(of, quotient.scale(by)?.add(&remainder)?);
            settle = Some((parameters[rest], by));
            (done[at], done[rest]) = (true, true);
        }
        let term_names = self.terms.names_of(id).free;
        let mut body = id;
        for (at, value) in values.iter().enumerate().filter(|(at, _)| !done[*at]) {
            let value = match value {
                Value::Index(value) => value,
                Value::Term(term) => {
                    let ty = self.terms.ty(*term).clone();
                    let reference = self.terms.reference(parameters[at], ty)?;
                    let form = self.canonical.of(self.terms, *term)?;
                    body = replaced(self.terms, body, form, reference, &mut self.canonical)?;
                    continue;
                }
            };
            let mut candidates = BTreeSet::new();
            value.collect_names(&mut candidates);
            let rank = |variable: &Name| {
                let coefficient = value.linear_in(*variable).map(|(c, _)| c)?;
                let depth = self.context.indices.iter().position(|name| name == variable)?;
                let fits = coefficient.unsigned_abs() == 1 && !substitution.indices.contains_key(variable);
                // Those of the pattern have to vanish; of others, the innermost that occurs.
                fits.then_some((self.bound.contains(variable), term_names.contains(variable), depth))
            };
            let best = candidates.iter().filter_map(|name| Some((rank(name)?, *name))).max();
            let Some((_, variable)) = best else {
                // Nothing to put in: a function that does not use its argument.
                continue;
            };
            if let Some((coefficient, rest)) = value.linear_in(variable) {
                let put = Ix::var(parameters[at]).sub(&rest)?.scale(coefficient)?;
                substitution.indices.insert(variable, put);
            }
        }
        body = substitution.apply(self.terms, body)?;
        if let Some((name, by)) = settle {
            let mut context = self.context.clone();
            context.bind(name, &Range::to(Ix::from(by)));
            body = settled(self.terms, body, &mut context)?;
        }
        self.escapes(name, body, &parameters)?;
        self.found.terms.insert(name, Abstracted { parameters: Some(parameters), body });
        Ok(())
    }
}
