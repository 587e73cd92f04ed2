//! Accesses: every selection is proved in bounds for all sizes, or refused with sizes and indices that break it.

use std::collections::BTreeSet;
use std::rc::Rc;

use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name, Span};

use super::Checked;
use super::index::{affine, within};
use super::scope::{Access, Checker};
use super::types::shape_text;

impl Checker<'_, '_> {
    /// Proves that indices are inside the first dimensions of a shape, or lists them if their bounds are being
    /// inferred.
    pub fn access(&mut self, what: &str, indices: &[Ix], shape: &[Ix], span: Span) -> Checked<()> {
        let guards = self.guards;
        let facts = (self.probe.is_some() && guards > 0).then(|| Rc::new(self.facts().clone()));
        if let Some(accesses) = &mut self.probe {
            let access = |(index, size): (&Ix, &Ix)| Access {
                index: index.clone(),
                size: size.clone(),
                guards,
                facts: facts.clone(),
                ranges: Vec::new(),
                span,
            };
            accesses.extend(indices.iter().zip(shape).map(access));
            return Ok(());
        }
        if !self.world.proves {
            return Ok(());
        }
        for (at, (index, size)) in indices.iter().zip(shape).enumerate() {
            let goal = self.made(span, within(index, &Ix::from(0), size))?;
            let verdict = self.facts().prove(&goal);
            if verdict != Verdict::Yes {
                let error = self.out_of_bounds(what, indices, at, shape, verdict, span);
                return self.fail(error);
            }
        }
        Ok(())
    }

    fn out_of_bounds(
        &mut self,
        what: &str,
        indices: &[Ix],
        at: usize,
        shape: &[Ix],
        verdict: Verdict,
        span: Span,
    ) -> Diagnostic {
        let (index, size) = (&indices[at], &shape[at]);
        let low = Cond::le(&Ix::from(0), index);
        let high = Cond::lt(index, size);
        let too_low = matches!(&low, Ok(goal) if self.facts().prove(goal) != Verdict::Yes);
        let (goal, wish) = if too_low {
            (low, format!("{index} must not be negative"))
        } else {
            (high, format!("{index} must be below {size}"))
        };
        let mut names = BTreeSet::new();
        indices.iter().chain(shape).for_each(|e| e.collect_names(&mut names));
        let verdict = match goal.as_ref().map(|goal| whole_example(self.facts(), goal, &names)) {
            Ok(Verdict::No(sizes)) => Verdict::No(sizes),
            _ => verdict,
        };
        if let Some(why) = self.never_computed() {
            let title = "this access would be out of bounds, and is never made";
            return Diagnostic::error(Code::E0207, span, title)
                .label(wish)
                .note(format!("{what} has the shape {}", shape_text(shape)))
                .note(why);
        }
        let title = match verdict {
            Verdict::No(_) => "this access can be out of bounds",
            _ => "this access could not be shown to be in bounds",
        };
        let mut error = Diagnostic::error(Code::E0207, span, title).label(wish);
        error = self.with_stated_ends(error, index);
        let (reached, verdict) = match &goal {
            Ok(goal) => self.really_reached(index, !too_low, (goal, &names), verdict),
            Err(_) => (None, verdict),
        };
        error = match reached.filter(|reached| reached != index) {
            Some(reached) => {
                error.note(format!("{index} reaches {reached}, and {what} has the shape {}", shape_text(shape)))
            }
            None => error.note(format!("{what} has the shape {}", shape_text(shape))),
        };
        if let Verdict::No(sizes) = &verdict {
            let value = |name: Name| Some(sizes.0.get(&name).copied().unwrap_or(0));
            let numbers = |parts: &[Ix]| -> Result<Vec<String>, IxError> {
                parts.iter().map(|part| part.eval(&value).map(|number| number.to_string())).collect()
            };
            if let (Ok(place), Ok(dims)) = (numbers(indices), numbers(shape)) {
                let example = if sizes.0.is_empty() { String::new() } else { format!("for example {sizes}: ") };
                error = error.note(format!(
                    "{example}the access is [{}], and the shape [{}]",
                    place.join(", "),
                    dims.join(", ")
                ));
            }
        }
        if let Some(from_end) =
            index.as_constant().filter(|index| *index < 0).and_then(|at| size.add(&Ix::from(at)).ok())
        {
            return error
                .help(format!("indices count from 0, and not from the end: the index meant may be {from_end}"));
        }
        if let Some(clause) = self.where_clause(&goal) {
            return error.help(clause);
        }
        match goal.ok().and_then(|goal| self.better_bound(index, size, too_low, &goal)) {
            Some(help) => error.help(help),
            None => error,
        }
    }

    /// Shows which types gave upper bounds to the indices of an access.
    fn with_stated_ends(&self, error: Diagnostic, index: &Ix) -> Diagnostic {
        self.ranges.iter().filter(|(name, ..)| index.mentions(*name)).fold(error, |error, (name, _, upper)| match self
            .stated
            .get(name)
        {
            Some(from) => error.also(*from, format!("`{name} < {upper}` comes from here")),
            None => error,
        })
    }

    /// A bound of an index around that would keep an access inside, as a sentence.
    fn better_bound(&self, index: &Ix, size: &Ix, too_low: bool, goal: &Cond) -> Option<String> {
        for (name, ..) in self.ranges.iter().rev().filter(|(name, ..)| index.mentions(*name)) {
            let mut e = index.clone();
            for (other, lower, upper) in self.ranges.iter().rev().filter(|(other, ..)| other != name) {
                if e.mentions(*other) {
                    e = extreme(&e, *other, lower, upper, !too_low)?;
                }
            }
            let (coefficient, rest) = affine(&e, *name)?;
            if coefficient <= 0 {
                continue;
            }
            let i = Ix::var(*name);
            let (bound, text) = if too_low {
                let least = rest.scale(-1).ok()?.ceil_div(coefficient).ok()?;
                (Cond::le(&least, &i).ok()?, format!("`{least} <= {name}`"))
            } else {
                let end = size.sub(&rest).ok()?.ceil_div(coefficient).ok()?;
                (Cond::lt(&i, &end).ok()?, format!("`{name} < {end}`"))
            };
            let mut facts = self.facts().clone();
            facts.assume(bound);
            if facts.prove(goal) == Verdict::Yes {
                let elsewhere = "; `guard(c, e)` is zero elsewhere, and `if` chooses";
                return Some(format!("it is inside where {text}{}", if too_low { elsewhere } else { "" }));
            }
        }
        None
    }

    /// The largest (or least) value of an index expression over the ranges of the indices around, if it is affine.
    fn reached(&self, index: &Ix, largest: bool) -> Option<Ix> {
        let mut e = index.clone();
        for (name, lower, upper) in self.ranges.iter().rev() {
            if e.mentions(*name) {
                e = extreme(&e, *name, lower, upper, largest)?;
            }
        }
        Some(e)
    }

    /// What an index reaches where conditions around it allow that, and a counterexample in which it does: what is said
    /// and what is shown are one.
    fn really_reached(
        &self,
        index: &Ix,
        largest: bool,
        (goal, names): (&Cond, &BTreeSet<Name>),
        verdict: Verdict,
    ) -> (Option<Ix>, Verdict) {
        let Some(reached) = self.reached(index, largest) else { return (None, verdict) };
        if let Verdict::No(sizes) = &verdict {
            let value = |e: &Ix| e.eval(&|name| Some(sizes.0.get(&name).copied().unwrap_or(0))).ok();
            if value(index) == value(&reached) {
                return (Some(reached), verdict);
            }
        }
        let Ok(there) = Cond::eq(index, &reached) else { return (None, verdict) };
        let mut facts = self.facts().clone();
        facts.assume(there);
        match whole_example(&facts, goal, names) {
            Verdict::No(sizes) => (Some(reached), Verdict::No(sizes)),
            _ => (None, verdict),
        }
    }

    /// Why nothing is computed here, whatever the sizes are, if that is so: then no example of what goes wrong exists.
    pub(super) fn never_computed(&self) -> Option<String> {
        let Verdict::No(_) = self.facts().satisfiable() else { return None };
        let mut facts = self.outermost().clone();
        for (name, lower, upper) in &self.ranges {
            let inside = within(&Ix::var(*name), lower, upper).ok()?;
            facts.assume(inside);
            if let Verdict::No(_) = facts.satisfiable() {
                return Some(format!("the range of `{name}` is always empty: {lower} <= {name} < {upper}"));
            }
        }
        Some("the conditions around it never hold together".into())
    }

    /// A condition on the sizes of the function that would make a goal true, as a sentence.
    pub fn where_clause(&self, goal: &Result<Cond, IxError>) -> Option<String> {
        let clause = self.clause_for(goal.as_ref().ok()?)?;
        Some(format!("`where {clause}` would make it so"))
    }

    /// A condition on the sizes of the function that would make a goal true: one that people would write, so without
    /// minima and maxima, without what holds anyway, and with something left to compute.
    fn clause_for(&self, goal: &Cond) -> Option<Cond> {
        let clause = self.for_all_indices(goal)?;
        let mut candidates = clause.choices();
        if candidates.is_empty() {
            candidates.push(clause);
        }
        candidates.into_iter().find_map(|clause| self.useful(clause, goal))
    }

    /// What is missing of a condition, if it is of use for a goal.
    fn useful(&self, clause: Cond, goal: &Cond) -> Option<Cond> {
        let mut facts = self.facts().clone();
        let mut missing = Cond::always();
        let parts = if let Cond::And(parts) = clause { parts } else { vec![clause] };
        for part in parts {
            if facts.prove(&part) != Verdict::Yes {
                facts.assume(part.clone());
                missing = missing.and(part);
            }
        }
        if missing.is_always() || missing.is_never() || facts.satisfiable() != Verdict::Yes {
            return None;
        }
        let mut names = BTreeSet::new();
        missing.collect_names(&mut names);
        let is_nothing = |name: &Name| facts.prove_equal(&Ix::var(*name), &Ix::from(0)) == Verdict::Yes;
        let is_said = names.iter().all(|name| self.sizes.contains(name)) && !names.iter().any(is_nothing);
        (is_said && facts.prove(goal) == Verdict::Yes).then_some(missing)
    }

    /// What must hold of the sizes for a goal to hold at all indices around.
    fn for_all_indices(&self, goal: &Cond) -> Option<Cond> {
        match goal {
            Cond::Ge(e) => Cond::le(&Ix::from(0), &self.reached(e, false)?).ok(),
            Cond::Eq(e) => (!self.ranges.iter().any(|(name, ..)| e.mentions(*name))).then(|| goal.clone()),
            Cond::And(all) => {
                all.iter().try_fold(Cond::always(), |clause, part| Some(clause.and(self.for_all_indices(part)?)))
            }
            // Any of them would do; the first that can be said is what was meant.
            Cond::Or(any) => any.iter().find_map(|part| self.for_all_indices(part)),
        }
    }

    /// A condition on the sizes that would make two sizes equal.
    pub fn equal_condition(&self, a: &Ix, b: &Ix) -> Option<Cond> {
        let goal = Cond::eq(a, b).ok()?;
        // Where one is the other, but never negative, that is what is missing.
        let enough = [b, a].into_iter().filter_map(|side| Cond::le(&Ix::from(0), side).ok());
        enough.into_iter().find_map(|enough| self.useful(enough, &goal)).or_else(|| self.clause_for(&goal))
    }

    /// The same as a sentence.
    pub fn equal_clause(&self, a: &Ix, b: &Ix) -> Option<String> {
        self.equal_condition(a, b).map(|clause| format!("`where {clause}` would make it so"))
    }

    /// Proves something that a call or a reduction needs; a probe does not ask.
    pub fn require(&mut self, goal: &Cond, refused: impl FnOnce(&mut Self, Verdict) -> Diagnostic) -> Checked<()> {
        if self.probe.is_some() || !self.world.proves {
            return Ok(());
        }
        match self.facts().prove(goal) {
            Verdict::Yes => Ok(()),
            verdict => {
                let mut error = refused(self, verdict.clone());
                if let Some(why) = self.never_computed() {
                    return self.fail(error.note(format!("nothing is computed here: {why}")));
                }
                if let Verdict::No(sizes) = &verdict
                    && !sizes.0.is_empty()
                {
                    error = error.note(format!("this fails for example where {sizes}"));
                }
                if let Some(clause) = self.where_clause(&Ok(goal.clone())) {
                    error = error.help(clause);
                }
                self.fail(error)
            }
        }
    }
}

/// Whether a goal holds; a counterexample has a value for every one of these names.
fn whole_example(facts: &Facts, goal: &Cond, names: &BTreeSet<Name>) -> Verdict {
    let far = Ix::from(-(1 << 40));
    // Not so for any size or index, so it adds nothing to the goal but the name.
    let never = |name: &Name| Cond::lt(&Ix::var(*name), &far).ok();
    let wider = names.iter().filter_map(never).fold(goal.clone(), Cond::or);
    match facts.prove(&wider) {
        Verdict::No(sizes) => Verdict::No(sizes),
        _ => facts.prove(goal),
    }
}

/// An affine expression where an index is as large (or small) as its range lets it.
pub(super) fn extreme(e: &Ix, name: Name, lower: &Ix, upper: &Ix, largest: bool) -> Option<Ix> {
    let (coefficient, _) = affine(e, name)?;
    let at = if (coefficient > 0) == largest { upper.sub(&Ix::from(1)).ok()? } else { lower.clone() };
    e.substitute(&|n| (n == name).then(|| at.clone())).ok()
}
