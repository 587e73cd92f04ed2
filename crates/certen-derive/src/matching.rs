//! Matching: what the metavariables of a pattern stand for, so that it is a given term.
//!
//! Higher-order, in the part that has one answer (Miller): `E(i)` for an index `i` that the pattern binds is any term
//! as a function of `i`. Where a metavariable is applied to an expression, as on the right sides of most rewrites, the
//! engine looks for the function: in `E(k*io + ii)` it puts `x - k*io` for `ii`, whose coefficient is 1, and what it
//! finds is a function of `x` if `io` cancels; for `E(floor_div(x, k), mod(x, k))` it puts `k*a + b` for `x`. A
//! metavariable that another occurrence determines is compared instead.
//!
//! Index expressions and conditions that are determined match what the prover shows to be equal in the context; one
//! unknown in a sum is solved for. What cannot be decided yet waits until the rest of the pattern is matched.

mod function;
mod solve;

use std::collections::BTreeSet;

use certen_core::{Literal, Range, Term, TermId, Terms, TypeError, print_beginning};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use self::function::Value;
use self::solve::{solved, solved_cond};
use crate::context::Context;
use crate::equal::{are_equivalent, is_equal};
use crate::found::{Abstracted, Locals, Matched, unknown};
use crate::names::{Canonical, Substitution, instantiate, select};
use crate::pattern::{Argument, Binder, CondPattern, IndexPattern, Pattern};

/// Why a term is not what a pattern says.
#[derive(Clone, Debug)]
pub(crate) struct Misfit {
    /// A sentence.
    pub why: String,
    /// How far the match came.
    pub matched: usize,
}

impl From<TypeError> for Misfit {
    fn from(error: TypeError) -> Misfit {
        Misfit { why: error.to_string(), matched: 0 }
    }
}

impl From<IxError> for Misfit {
    fn from(error: IxError) -> Misfit {
        Misfit { why: error.to_string(), matched: 0 }
    }
}

/// A match that is being made.
pub(crate) struct Matcher<'a> {
    pub terms: &'a mut Terms,
    pub found: Matched,
    /// What is known at the place and inside the binders of the pattern that are open.
    context: Context,
    /// What open binders of the pattern are called in the program.
    bound: Vec<Name>,
    /// Whether binders have the names of the program.
    by_name: bool,
    /// Patterns that metavariables have to match, too.
    pub filters: FxHashMap<Name, Pattern>,
    waiting: Vec<Waiting>,
    matched: usize,
    canonical: Canonical,
}

/// What could not be decided yet.
struct Waiting {
    what: What,
    context: Context,
    bound: Vec<Name>,
    /// The program's names at that time: a pattern may call two binders the same.
    names: FxHashMap<Name, Name>,
}

enum What {
    Index(IndexPattern, Ix),
    Condition(CondPattern, Cond),
    Term(Name, Vec<Argument>, TermId),
}

/// Whether a term can be what a pattern says, at a glance.
pub(crate) fn is_alike(pattern: &Pattern, term: &Term) -> bool {
    match (pattern, term) {
        (Pattern::Any | Pattern::Meta(..), _) => true,
        (Pattern::Tensor(_), Term::Ref(..))
        | (Pattern::Gen(..), Term::Gen(..))
        | (Pattern::Guard(..), Term::Guard(..))
        | (Pattern::If(..), Term::If(..))
        | (Pattern::Let(..), Term::Let(..))
        | (Pattern::Select(..), Term::Select(..))
        | (Pattern::Flatten(_), Term::Flatten(_))
        | (Pattern::Transpose(_), Term::Transpose(_))
        | (Pattern::Split(..), Term::Split(..))
        | (Pattern::Concat(..), Term::Concat(..))
        | (Pattern::PadLeft(..), Term::PadLeft(..))
        | (Pattern::PadRight(..), Term::PadRight(..))
        | (Pattern::TruncLeft(..), Term::TruncLeft(..))
        | (Pattern::TruncRight(..), Term::TruncRight(..))
        | (Pattern::Number(_), Term::Literal(..))
        | (Pattern::Index(_), Term::Index(..))
        | (Pattern::Choose(..), Term::Choose(..)) => true,
        (Pattern::Reshape(_), term) => term.is_reshape() && !matches!(term, Term::Concat(..)),
        (Pattern::Reduce(op, ..), Term::Reduce(own, ..)) => op.is_none_or(|op| op == *own),
        (Pattern::Unary(op, _), Term::Unary(own, _)) => op.is_none_or(|op| op == *own),
        (Pattern::Binary(op, ..), Term::Binary(own, ..)) => op.is_none_or(|op| op == *own),
        (Pattern::Cast(elem, _), Term::Cast(own, _)) => elem == own,
        _ => false,
    }
}

impl<'a> Matcher<'a> {
    /// A match of a pattern of a rewrite, or of a script, whose binders have the program's names.
    pub(crate) fn new(terms: &'a mut Terms, found: Matched, context: &Context, by_name: bool) -> Matcher<'a> {
        Matcher {
            terms,
            found,
            context: context.clone(),
            bound: Vec::new(),
            by_name,
            filters: FxHashMap::default(),
            waiting: Vec::new(),
            matched: 0,
            canonical: Canonical::default(),
        }
    }

    /// Matches a whole pattern.
    ///
    /// # Errors
    /// Why the term is something else.
    pub(crate) fn run(&mut self, pattern: &Pattern, term: TermId) -> Result<(), Misfit> {
        self.term(pattern, term)?;
        self.wait()
    }

    fn misfit(&self, why: impl Into<String>) -> Misfit {
        Misfit { why: why.into(), matched: self.matched }
    }

    fn shown(&self, term: TermId) -> String {
        shown(self.terms, term)
    }

    fn facts(&self) -> Facts {
        self.context.facts(self.terms)
    }

    /// One arm for each form of patterns that says more than its parts do.
    fn term(&mut self, pattern: &Pattern, id: TermId) -> Result<(), Misfit> {
        let term = self.terms.get(id).clone();
        if !is_alike(pattern, &term) {
            return Err(self.misfit(format!("`{}` is not {}", self.shown(id), pattern.kind())));
        }
        self.matched += 1;
        match (pattern, &term) {
            (Pattern::Any, _) => Ok(()),
            (Pattern::Meta(name, args), _) => self.meta(*name, args, id),
            (Pattern::Tensor(name), Term::Ref(own, _)) => {
                let wanted = self.found.names.get(name).copied().unwrap_or(*name);
                if wanted == *own { Ok(()) } else { Err(self.misfit(format!("`{own}` is not `{wanted}`"))) }
            }
            (Pattern::Gen(binder, inner), Term::Gen(name, range, body)) => {
                self.binder(binder, *name, range)?;
                self.inside(id, 0, &[*name], |matcher| matcher.term(inner, *body))
            }
            (Pattern::Reduce(given, binder, wanted, inner), Term::Reduce(op, name, range, cond, body)) => {
                if given.is_none() && *self.found.reduce.get_or_insert(*op) != *op {
                    return Err(self.misfit(format!("`{}` is another reduction", op.name())));
                }
                self.binder(binder, *name, range)?;
                if wanted.is_always() && !cond.is_always() {
                    return Err(self.misfit(format!("the reduction over {name} has a condition, {cond}")));
                }
                let mark = self.context.mark();
                self.context.bind(*name, range);
                self.bound.push(*name);
                let matched = self.cond(wanted, cond);
                self.bound.pop();
                self.context.reset(mark);
                matched?;
                self.inside(id, 0, &[*name], |matcher| matcher.term(inner, *body))
            }
            (Pattern::Guard(wanted, inner), Term::Guard(cond, body)) => {
                self.cond(wanted, cond)?;
                self.inside(id, 0, &[], |matcher| matcher.term(inner, *body))
            }
            (Pattern::If(wanted, first, second), Term::If(cond, a, b)) => {
                self.cond(wanted, cond)?;
                self.inside(id, 0, &[], |matcher| matcher.term(first, *a))?;
                self.inside(id, 1, &[], |matcher| matcher.term(second, *b))
            }
            (Pattern::Let(wanted, first, second), Term::Let(name, value, body)) => {
                self.called(*wanted, *name)?;
                self.term(first, *value)?;
                self.inside(id, 1, &[*name], |matcher| matcher.term(second, *body))
            }
            (Pattern::Select(inner, wanted), Term::Select(tensor, indices)) => {
                let Some(first) = indices.len().checked_sub(wanted.len()) else {
                    return Err(self.misfit(format!("`{}` has too few indices", self.shown(id))));
                };
                let tensor = select(self.terms, *tensor, &indices[..first])?;
                self.term(inner, tensor)?;
                wanted.iter().zip(&indices[first..]).try_for_each(|(index, ix)| self.ix(index, ix))
            }
            (Pattern::Reshape(inner), term) => self.reshape(inner, term, id),
            (Pattern::Split(wanted, inner), Term::Split(k, a)) => {
                self.ix(wanted, &Ix::from(*k))?;
                self.term(inner, *a)
            }
            (Pattern::PadLeft(wanted, inner), Term::PadLeft(k, a))
            | (Pattern::PadRight(wanted, inner), Term::PadRight(k, a))
            | (Pattern::TruncLeft(wanted, inner), Term::TruncLeft(k, a))
            | (Pattern::TruncRight(wanted, inner), Term::TruncRight(k, a)) => {
                self.ix(wanted, k)?;
                self.term(inner, *a)
            }
            (Pattern::Index(wanted), Term::Index(ix, _)) => self.ix(wanted, ix),
            (Pattern::Number(number), Term::Literal(literal, _)) if is_number(*number, *literal) => Ok(()),
            (Pattern::Number(_), _) => Err(self.misfit(format!("`{}` is another number", self.shown(id)))),
            (Pattern::Unary(given, inner), Term::Unary(op, a)) => {
                if given.is_none() && *self.found.unary.get_or_insert(*op) != *op {
                    return Err(self.misfit(format!("`{}` is another operation", op.name())));
                }
                self.term(inner, *a)
            }
            (Pattern::Binary(wanted, first, second), Term::Binary(op, a, b)) => {
                if wanted.is_none() && *self.found.binary.get_or_insert(*op) != *op {
                    return Err(self.misfit(format!("`{}` is another operation", op.name())));
                }
                self.term(first, *a)?;
                self.term(second, *b)
            }
            (pattern, term) => pattern.parts().iter().zip(term.parts()).try_for_each(|(part, id)| self.term(part, id)),
        }
    }

    /// A reshape operator, whichever it is; all of one rewrite are the same.
    fn reshape(&mut self, inner: &Pattern, term: &Term, id: TermId) -> Result<(), Misfit> {
        let any = self.terms.iter().next().map_or(id, |(first, _)| first);
        let outline = term.clone().with_parts(|_| any);
        if let Some(found) = &self.found.reshape
            && *found != outline
        {
            return Err(self.misfit(format!("`{}` is reshaped in another way", self.shown(id))));
        }
        if let Term::PadLeft(k, _) | Term::PadRight(k, _) | Term::TruncLeft(k, _) | Term::TruncRight(k, _) = term
            && let Some(bound) = self.bound.iter().find(|bound| k.mentions(**bound))
        {
            return Err(self.misfit(format!("{k} mentions {bound}, but it may not")));
        }
        self.found.reshape = Some(outline);
        term.parts().into_iter().try_for_each(|part| self.term(inner, part))
    }

    /// Matches inside a part of a term, whose names are bound there.
    fn inside(
        &mut self,
        id: TermId,
        part: usize,
        names: &[Name],
        inner: impl FnOnce(&mut Self) -> Result<(), Misfit>,
    ) -> Result<(), Misfit> {
        let mark = self.context.mark();
        self.context.enter(self.terms, id, part);
        self.bound.extend(names);
        let done = inner(self);
        self.bound.truncate(self.bound.len() - names.len());
        self.context.reset(mark);
        done
    }

    fn called(&mut self, wanted: Name, name: Name) -> Result<(), Misfit> {
        if self.by_name && wanted.as_str() != "_" && wanted != name {
            return Err(self.misfit(format!("{name} is not called {wanted}")));
        }
        self.found.names.insert(wanted, name);
        Ok(())
    }

    fn binder(&mut self, binder: &Binder, name: Name, range: &Range) -> Result<(), Misfit> {
        self.called(binder.name, name)?;
        self.ix(&binder.lo, &range.lo)?;
        self.ix(&binder.hi, &range.hi)
    }

    // Metavariables for terms.

    fn meta(&mut self, name: Name, args: &[Argument], id: TermId) -> Result<(), Misfit> {
        if let Some(filter) = self.filters.get(&name).cloned() {
            let mut matcher = Matcher::new(self.terms, Matched::default(), &self.context, true);
            matcher.run(&filter, id)?;
        }
        // Names that the pattern binds, each once.
        let mut own: Vec<Name> = Vec::new();
        for arg in args {
            let variable = match arg {
                Argument::Index(IndexPattern::Var(variable)) | Argument::Term(Pattern::Tensor(variable)) => variable,
                _ => return self.later(What::Term(name, args.to_vec(), id)),
            };
            match self.found.names.get(variable) {
                Some(bound) if self.bound.contains(bound) && !own.contains(bound) => own.push(*bound),
                _ => return self.later(What::Term(name, args.to_vec(), id)),
            }
        }
        match self.found.terms.get(&name).cloned() {
            Some(value) => match self.values(args) {
                Some(values) => self.compare(name, value, values, id),
                None => Err(self.misfit(format!("cannot tell what {name} is applied to"))),
            },
            None => {
                self.escapes(name, id, &own)?;
                self.found.terms.insert(name, Abstracted { parameters: Some(own), body: id });
                Ok(())
            }
        }
    }

    /// A term must not mention what the pattern binds around it, except these names.
    fn escapes(&self, name: Name, id: TermId, allowed: &[Name]) -> Result<(), Misfit> {
        let free = self.terms.names_of(id).free;
        match self.bound.iter().find(|bound| !allowed.contains(bound) && free.contains(bound)) {
            Some(bound) => {
                Err(self.misfit(format!("{name} is `{}`, which mentions {bound}, but it may not", self.shown(id))))
            }
            None => Ok(()),
        }
    }

    /// Whether a metavariable that is known is a term, for these arguments.
    fn compare(&mut self, name: Name, value: Abstracted<TermId>, values: Vec<Value>, id: TermId) -> Result<(), Misfit> {
        let parameters = self.found.parameters(name, &value.parameters);
        let mut substitution = Substitution::default();
        for (parameter, value) in parameters.into_iter().zip(values) {
            match value {
                Value::Index(ix) => drop(substitution.indices.insert(parameter, ix)),
                Value::Term(term) => drop(substitution.tensors.insert(parameter, term)),
            }
        }
        let context = self.context.clone();
        let expected = instantiate(self.terms, value.body, substitution, &|name| context.binds(name), &|_| false)?;
        if self.is_same(expected, id)? {
            return Ok(());
        }
        Err(self.misfit(format!("{name} is both `{}` and `{}`", self.shown(expected), self.shown(id))))
    }

    /// Whether two terms are equal up to bound names, and to what the prover shows of their indices.
    pub(crate) fn is_same(&mut self, a: TermId, b: TermId) -> Result<bool, Misfit> {
        let (a, b) = (self.canonical.of(self.terms, a)?, self.canonical.of(self.terms, b)?);
        let mut context = self.context.clone();
        Ok(is_equal(self.terms, a, b, &mut context)?)
    }

    // Index expressions.

    fn ix(&mut self, index: &IndexPattern, ix: &Ix) -> Result<(), Misfit> {
        match index {
            IndexPattern::Any => return Ok(()),
            IndexPattern::Var(name)
                if !self.found.names.contains_key(name) && !self.found.indices.contains_key(name) =>
            {
                return self.determine(*name, Vec::new(), ix.clone());
            }
            IndexPattern::Meta(name, args) if !self.found.indices.contains_key(name) => {
                let own = |arg: &IndexPattern| match arg {
                    IndexPattern::Var(variable) => self.found.names.get(variable).copied(),
                    _ => None,
                };
                if let Some(parameters) = args.iter().map(own).collect() {
                    return self.determine(*name, parameters, ix.clone());
                }
            }
            _ => {}
        }
        let mut open = Vec::new();
        match (self.found.ix(self.terms, index, &Locals::new(), &mut open), open.as_slice()) {
            (Some(value), []) => self.equal(index, &value, ix),
            (Some(value), [name]) => match solved(&value, unknown(*name), ix) {
                Some(solution) => self.determine(*name, Vec::new(), solution),
                None => self.later(What::Index(index.clone(), ix.clone())),
            },
            (None, []) => Err(self.misfit(format!("`{index}` has no value here"))),
            _ => self.later(What::Index(index.clone(), ix.clone())),
        }
    }

    fn determine(&mut self, name: Name, parameters: Vec<Name>, ix: Ix) -> Result<(), Misfit> {
        if let Some(bound) = self.bound.iter().find(|bound| !parameters.contains(bound) && ix.mentions(**bound)) {
            return Err(self.misfit(format!("{name} is {ix}, which mentions {bound}, but it may not")));
        }
        self.found.indices.insert(name, Abstracted { parameters: Some(parameters), body: ix });
        Ok(())
    }

    fn equal(&self, index: &IndexPattern, value: &Ix, ix: &Ix) -> Result<(), Misfit> {
        if value == ix {
            return Ok(());
        }
        let differ = value.sub(ix).ok().and_then(|difference| difference.as_constant()).is_some();
        if !differ && self.facts().prove_equal(value, ix) == Verdict::Yes {
            return Ok(());
        }
        let value = value.to_string();
        let meant = if index.to_string() == value { value } else { format!("`{index}`, which is {value}") };
        Err(self.misfit(format!("{ix} is not {meant}")))
    }

    // Conditions.

    fn cond(&mut self, wanted: &CondPattern, cond: &Cond) -> Result<(), Misfit> {
        match wanted {
            CondPattern::Any => return Ok(()),
            CondPattern::Meta(name, args) if !self.found.conditions.contains_key(name) => {
                let Some(own) = self.variables(args) else {
                    return self.later(What::Condition(wanted.clone(), cond.clone()));
                };
                return self.determine_cond(*name, own, cond.clone());
            }
            CondPattern::And(parts) if parts.len() > 1 => {
                let known = &self.found.conditions;
                let is_open =
                    |part: &CondPattern| matches!(part, CondPattern::Meta(name, _) if !known.contains_key(name));
                if parts.iter().any(is_open) {
                    return self.conjunction(parts, cond);
                }
            }
            _ => {}
        }
        let mut open = Vec::new();
        match (self.found.cond(self.terms, wanted, &Locals::new(), &mut open), open.as_slice()) {
            (Some(value), []) => self.equivalent(&value, cond),
            (Some(value), [name]) => {
                let name = *name;
                match solved_cond(&value, unknown(name), cond) {
                    Some(solution) => self.determine(name, Vec::new(), solution),
                    None => self.later(What::Condition(wanted.clone(), cond.clone())),
                }
            }
            _ => self.later(What::Condition(wanted.clone(), cond.clone())),
        }
    }

    /// The program's names for arguments that are all bound by the pattern.
    fn variables(&self, args: &[IndexPattern]) -> Option<Vec<Name>> {
        let own = |arg: &IndexPattern| match arg {
            IndexPattern::Var(variable) => self.found.names.get(variable).copied(),
            _ => None,
        };
        args.iter().map(own).collect()
    }

    fn determine_cond(&mut self, name: Name, parameters: Vec<Name>, cond: Cond) -> Result<(), Misfit> {
        let mut names = BTreeSet::new();
        cond.collect_names(&mut names);
        if let Some(bound) = self.bound.iter().find(|bound| !parameters.contains(bound) && names.contains(bound)) {
            return Err(self.misfit(format!("{name} is {cond}, which mentions {bound}, but it may not")));
        }
        self.found.conditions.insert(name, Abstracted { parameters: Some(parameters), body: cond });
        Ok(())
    }

    /// Conjuncts shared out: what is determined takes what it is; the first metavariable that is not takes what it may
    /// mention, but only one if another one may mention as much; the last one takes the rest.
    fn conjunction(&mut self, parts: &[CondPattern], cond: &Cond) -> Result<(), Misfit> {
        let mut rest: Vec<Cond> = match cond {
            Cond::And(all) => all.clone(),
            other => vec![other.clone()],
        };
        let mut open: Vec<(Name, Vec<Name>)> = Vec::new();
        for part in parts {
            if let CondPattern::Meta(name, args) = part
                && !self.found.conditions.contains_key(name)
            {
                let Some(own) = self.variables(args) else {
                    return self.later(What::Condition(CondPattern::And(parts.to_vec()), cond.clone()));
                };
                open.push((*name, own));
                continue;
            }
            let Some(value) = self.found.whole_cond(self.terms, part, &Locals::new()) else {
                return self.later(What::Condition(CondPattern::And(parts.to_vec()), cond.clone()));
            };
            let conjuncts = if let Cond::And(all) = value { all } else { vec![value] };
            for conjunct in conjuncts {
                if let Some(at) = rest.iter().position(|own| *own == conjunct) {
                    rest.remove(at);
                    continue;
                }
                let mut facts = self.facts();
                facts.assume(cond.clone());
                if facts.prove(&conjunct) != Verdict::Yes {
                    return Err(self.misfit(format!("{conjunct} does not follow from {cond}")));
                }
            }
        }
        let count = open.len();
        for (at, (name, own)) in open.into_iter().enumerate() {
            let may = |cond: &Cond| {
                let mut names = BTreeSet::new();
                cond.collect_names(&mut names);
                self.bound.iter().all(|bound| own.contains(bound) || !names.contains(bound))
            };
            let mut taken: Vec<Cond> = Vec::new();
            if at + 1 == count {
                taken.append(&mut rest);
            } else {
                let all: Vec<Cond> = std::mem::take(&mut rest);
                let every = all.iter().all(may);
                for conjunct in all {
                    let takes = may(&conjunct) && (!every || taken.is_empty());
                    if takes { taken.push(conjunct) } else { rest.push(conjunct) }
                }
                if taken.is_empty() {
                    return Err(self.misfit(format!("no part of {cond} can be {name}")));
                }
            }
            let all = taken.into_iter().fold(Cond::always(), Cond::and);
            self.determine_cond(name, own, all)?;
        }
        if rest.is_empty() { Ok(()) } else { Err(self.misfit(format!("{cond} says more than the pattern"))) }
    }

    fn equivalent(&self, value: &Cond, cond: &Cond) -> Result<(), Misfit> {
        if value == cond || are_equivalent(&self.facts(), value, cond) {
            return Ok(());
        }
        Err(self.misfit(format!("the condition {cond} is not {value}")))
    }

    // What waits.

    fn later(&mut self, what: What) -> Result<(), Misfit> {
        let (context, bound, names) = (self.context.clone(), self.bound.clone(), self.found.names.clone());
        self.waiting.push(Waiting { what, context, bound, names });
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Misfit> {
        let names = self.found.names.clone();
        while !self.waiting.is_empty() {
            let before = self.waiting.len();
            for waiting in std::mem::take(&mut self.waiting) {
                self.resume(waiting, false)?;
            }
            if self.waiting.len() < before {
                continue;
            }
            // Nothing went on by itself: find a function.
            let Some(at) = self.waiting.iter().position(|waiting| matches!(waiting.what, What::Term(..))) else {
                let what = self.waiting.first().map(|waiting| match &waiting.what {
                    What::Index(index, ix) => format!("what `{index}` is in {ix}"),
                    What::Condition(_, cond) => format!("what the parts of {cond} are"),
                    What::Term(name, ..) => format!("what {name} is"),
                });
                return Err(self.misfit(format!("cannot tell {}", what.unwrap_or_default())));
            };
            let waiting = self.waiting.remove(at);
            self.resume(waiting, true)?;
        }
        self.found.names = names;
        Ok(())
    }

    fn resume(&mut self, Waiting { what, context, bound, names }: Waiting, find: bool) -> Result<(), Misfit> {
        (self.context, self.bound, self.found.names) = (context, bound, names);
        match what {
            What::Index(index, ix) => self.ix(&index, &ix),
            What::Condition(wanted, cond) => self.cond(&wanted, &cond),
            What::Term(name, args, id) => self.applied(name, args, id, find),
        }
    }
}

/// At most this much of a term is shown inside a sentence.
const MAX_SHOWN: usize = 120;

/// A term as text, or the beginning of it.
pub(crate) fn shown(terms: &Terms, term: TermId) -> String {
    print_beginning(terms, term, MAX_SHOWN)
}

/// Whether a number of a pattern is a literal: a whole number stands for a float that is that number.
fn is_number(number: Literal, literal: Literal) -> bool {
    match (number, literal) {
        (Literal::Int(number), Literal::Float(value)) => {
            (number as f64).to_bits() == value.to_bits() && number.unsigned_abs() < 1 << 53
        }
        (number, literal) => number == literal,
    }
}
