//! Rewrites over whole terms, which patterns cannot say: a name for every occurrence of a term, and what the context
//! makes superfluous.

use certen_core::{Range, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Condition, Facts, Status};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::context::Context;
use crate::equal::with_own_settled;
use crate::found::{Matched, status};
use crate::matching::{Matcher, Misfit, is_alike, shown};
use crate::names::{Canonical, Substitution, instantiate, select, with_each_part};
use crate::pattern::{Binder, Pattern};
use crate::place::{PlaceWalker, TermPlace};
use crate::rewrite::{How, Law, ParameterKind, Rewrite};
use crate::site::Site;
use certen_core::script::ScriptArgKind;

pub(super) static BIND: Rewrite = Rewrite {
    name: "bind",
    parameters: &[("x", ParameterKind::Fresh), ("A", ParameterKind::Term)],
    left: "B(A)",
    right: "let x = A in B(x)",
    conditions: &[],
    law: Law::Exact,
    about: "Every occurrence of a term inside the place gets a name, and is computed once for all of them. If the \
            term is a generation, `gen r in lo..hi. gen c in lo2..hi2. E(r, c)`, so do occurrences of its \
            elements: `E(a, b)` becomes `x[a - lo, b - lo2]`, wherever a and b are shown to be in range. The way \
            back is `inline`, then `beta`.",
    how: How::Bind,
};

pub(super) static SIMPLIFY: Rewrite = Rewrite {
    name: "simplify",
    parameters: &[],
    left: "A",
    right: "A",
    conditions: &[],
    law: Law::Exact,
    about: "Everything inside the place without what is known there: guards and parts of guards that always hold, \
            choices that are made, minima, maxima and quotients of which the value is known.",
    how: How::Simplify,
};

fn misfit(why: impl Into<String>) -> Misfit {
    Misfit { why: why.into(), matched: usize::MAX }
}

// Names for terms.

pub(super) fn bind(site: &mut Site<'_>) -> Result<TermId, Misfit> {
    if site.order.backwards {
        return Err(misfit("`bind` is not taken backwards; `inline` is its way back"));
    }
    let (Some(name), Some(ScriptArgKind::Pattern(text))) = (site.name("x"), site.arg("A").cloned()) else {
        return Err(misfit("`bind` takes a new name and a pattern in braces"));
    };
    if site.globals.used.contains(&name) {
        return Err(misfit(format!("the name {name} is taken")));
    }
    let pattern = site.globals.pattern(&text).map_err(misfit)?;
    let value = value(site, &pattern)?;
    let is_known = |name: &Name| {
        site.globals.sizes.contains(name) || site.globals.inputs.contains_key(name) || site.context.binds(*name)
    };
    if let Some(inner) = site.terms.names_of(value).free.iter().find(|name| !is_known(name)) {
        return Err(misfit(format!("what is to be called {name} mentions {inner}, which is bound inside this place")));
    }
    let ty = site.terms.ty(value).clone();
    let reference = site.terms.reference(name, ty)?;
    let mut binders = Vec::new();
    let mut body = &pattern;
    while let Pattern::Gen(binder, inner) = body {
        binders.push(binder);
        body = inner;
    }
    let mut canonical = Canonical::default();
    let form = canonical.of(site.terms, value)?;
    let (parameters, ranges, element) = generated(site.terms, value, binders.len());
    let mut binding = Naming {
        terms: site.terms,
        value: form,
        reference,
        binders,
        body,
        ranges,
        element,
        parameters,
        canonical,
        context: site.context.clone(),
        conditions: Vec::new(),
        failed: None,
    };
    let new = binding.visit(site.at)?;
    let Naming { conditions, failed, .. } = binding;
    if new == site.at {
        return match failed {
            Some(condition) => {
                site.conditions.push(condition);
                Ok(site.at)
            }
            None => {
                let text = shown(site.terms, value);
                Err(misfit(format!("`{text}` does not occur in this place, and no element of it does")))
            }
        };
    }
    site.conditions.extend(conditions);
    Ok(site.terms.add(Term::Let(name, value, new))?)
}

/// The term that a script's pattern stands for: itself, or if it leaves something open the first that is like it.
fn value(site: &mut Site<'_>, pattern: &Pattern) -> Result<TermId, Misfit> {
    let literal = site.literally(pattern);
    if literal.is_ok() {
        return literal;
    }
    let place = TermPlace { context: site.context.clone(), ..TermPlace::whole(site.at) };
    let mut walker = PlaceWalker::new(&place);
    while let Some(place) = walker.next(site.terms) {
        if place.first.is_none() && is_alike(pattern, site.terms.get(place.term)) {
            let mut matcher = Matcher::new(site.terms, Matched::default(), &place.context, true);
            if matcher.run(pattern, place.term).is_ok() {
                return Ok(place.term);
            }
        }
    }
    literal
}

/// The indices of so many generations inside each other, their ranges, and what they generate.
fn generated(terms: &Terms, mut id: TermId, count: usize) -> (Vec<Name>, Vec<Range>, TermId) {
    let (mut names, mut ranges) = (Vec::new(), Vec::new());
    while let Term::Gen(name, range, body) = terms.get(id)
        && ranges.len() < count
    {
        names.push(*name);
        ranges.push(range.clone());
        id = *body;
    }
    (names, ranges, id)
}

/// Occurrences of a term being replaced by a name.
struct Naming<'a> {
    terms: &'a mut Terms,
    /// The term, in canonical form.
    value: TermId,
    reference: TermId,
    /// The generations of its pattern, and what they generate.
    binders: Vec<&'a Binder>,
    body: &'a Pattern,
    ranges: Vec<Range>,
    /// What the term generates, and the names of its indices.
    element: TermId,
    parameters: Vec<Name>,
    canonical: Canonical,
    context: Context,
    conditions: Vec<Condition>,
    /// The first condition of an element that is not shown.
    failed: Option<Condition>,
}

impl Naming<'_> {
    fn visit(&mut self, id: TermId) -> Result<TermId, Misfit> {
        if self.canonical.of(self.terms, id)? == self.value {
            return Ok(self.reference);
        }
        if !self.binders.is_empty()
            && let Some(element) = self.element(id)?
        {
            return Ok(element);
        }
        with_each_part(self, id, |walk| (walk.terms, &mut walk.context), Self::visit)
    }

    /// An element of the tensor, if the term is one.
    fn element(&mut self, id: TermId) -> Result<Option<TermId>, Misfit> {
        if !is_alike(self.body, self.terms.get(id)) {
            return Ok(None);
        }
        let mut matcher = Matcher::new(self.terms, Matched::default(), &self.context, false);
        if matcher.run(self.body, id).is_err() {
            return Ok(None);
        }
        let found = std::mem::take(&mut matcher.found);
        // A pattern leaves open what the term does not: the element is computed, and compared.
        let value = |binder: &&Binder| found.indices.get(&binder.name).map(|value| value.body.clone());
        let Some(values) = self.binders.iter().map(value).collect::<Option<Vec<_>>>() else { return Ok(None) };
        let indices = self.parameters.iter().copied().zip(values).collect();
        let substitution = Substitution { indices, ..Substitution::default() };
        let around = |name: Name| self.context.binds(name);
        let expected = instantiate(matcher.terms, self.element, substitution, &around, &|_| false)?;
        if !matcher.is_same(expected, id)? {
            return Ok(None);
        }
        let (mut indices, mut shown) = (Vec::new(), Vec::new());
        let facts = self.context.facts(self.terms);
        for (binder, range) in self.binders.iter().zip(&self.ranges) {
            let Some(value) = found.indices.get(&binder.name) else { return Ok(None) };
            let index = value.body.clone();
            let goal = Cond::le(&range.lo, &index)?.and(Cond::lt(&index, &range.hi)?);
            let what = format!("{index} lies in {}..{}", range.lo, range.hi);
            let condition = Condition { what, about: None, status: status(&facts, goal) };
            if !matches!(condition.status, Status::Proved(_)) {
                self.failed.get_or_insert(condition);
                return Ok(None);
            }
            shown.push(condition);
            indices.push(index.sub(&range.lo)?);
        }
        self.conditions.extend(shown);
        Ok(Some(select(self.terms, self.reference, &indices)?))
    }
}

// What the context makes superfluous.

pub(super) fn simplify(site: &mut Site<'_>) -> Result<TermId, Misfit> {
    if site.order.backwards {
        return Err(misfit("what `simplify` has left out is not known"));
    }
    let mut simplifier = Simplifier {
        terms: site.terms,
        context: site.context.clone(),
        done: FxHashMap::default(),
        conditions: Vec::new(),
    };
    let new = simplifier.visit(site.at)?;
    let conditions = simplifier.conditions;
    site.conditions.extend(conditions);
    Ok(new)
}

struct Simplifier<'a> {
    terms: &'a mut Terms,
    context: Context,
    /// Terms in contexts that were seen already.
    done: FxHashMap<(TermId, Vec<Cond>), TermId>,
    conditions: Vec<Condition>,
}

impl Simplifier<'_> {
    fn visit(&mut self, id: TermId) -> Result<TermId, Misfit> {
        let key = (id, self.context.conditions.clone());
        if let Some(found) = self.done.get(&key) {
            return Ok(*found);
        }
        let own = self.settled(id)?;
        let new = match self.terms.get(own).clone() {
            Term::Guard(cond, body) => {
                let rest = self.rest(&cond)?;
                if rest.is_always() {
                    self.visit(body)?
                } else {
                    let own = if rest == cond { own } else { self.terms.add(Term::Guard(rest, body))? };
                    self.parts(own)?
                }
            }
            Term::If(cond, a, b) => {
                let facts = self.context.facts(self.terms);
                if self.holds(&facts, &cond) {
                    self.visit(a)?
                } else if let Ok(opposite) = cond.not()
                    && self.holds(&facts, &opposite)
                {
                    self.visit(b)?
                } else {
                    self.parts(own)?
                }
            }
            Term::Reduce(op, name, range, cond, body) if !cond.is_always() => {
                let mark = self.context.mark();
                self.context.bind(name, &range);
                let rest = self.rest(&cond);
                self.context.reset(mark);
                let own = self.terms.add(Term::Reduce(op, name, range, rest?, body))?;
                self.parts(own)?
            }
            _ => self.parts(own)?,
        };
        self.done.insert(key, new);
        Ok(new)
    }

    fn parts(&mut self, id: TermId) -> Result<TermId, Misfit> {
        with_each_part(self, id, |walk| (walk.terms, &mut walk.context), Self::visit)
    }

    /// The conjuncts that are not known already, from here or from each other.
    fn rest(&mut self, cond: &Cond) -> Result<Cond, Misfit> {
        let conjuncts = if let Cond::And(all) = cond { all.clone() } else { vec![cond.clone()] };
        let facts = self.context.facts(self.terms);
        let mut kept: Vec<Cond> = Vec::new();
        for conjunct in conjuncts {
            if !kept.contains(&conjunct) && !self.holds(&facts, &conjunct) {
                kept.push(conjunct);
            }
        }
        Ok(kept.into_iter().fold(Cond::always(), Cond::and))
    }

    /// Whether something holds here; the reason is kept.
    fn holds(&mut self, facts: &Facts, goal: &Cond) -> bool {
        let status = status(facts, goal.clone());
        let holds = matches!(status, Status::Proved(_));
        if holds {
            self.conditions.push(Condition { what: format!("{goal} where it stands"), about: None, status });
        }
        holds
    }

    /// The term with its own index expressions settled.
    fn settled(&mut self, id: TermId) -> Result<TermId, TypeError> {
        with_own_settled(self.terms, id, &self.context, &mut |facts, old, new| {
            if let Ok(goal) = Cond::eq(old, new) {
                let what = format!("{old} is {new} where it stands");
                self.conditions.push(Condition { what, about: None, status: status(facts, goal) });
            }
        })
    }
}
