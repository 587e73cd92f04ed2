//! A step: its rewrite and arguments, its place, and what it makes of the term there.
//!
//! Without an address, a step is taken at the first place where it fits and its conditions are proved, wholes before
//! parts and left before right; if there is none, at the first where a condition is open. An address means the terms
//! that it names, and what is inside them if the rewrite does not fit there. `everywhere` takes a step wherever its
//! conditions are proved: until it fits nowhere; but a rewrite that makes new places for itself is taken once at every
//! place that there is.

mod address;
mod refusal;

use std::collections::BTreeSet;

use certen_core::{Term, TermId};
use certen_index::{Cond, Condition};
use certen_syntax::{Code, Diagnostic, Name};
use rustc_hash::FxHashSet;

use crate::context::Context;
use crate::matching::{Misfit, is_alike, shown};
use crate::pattern::Pattern;
use crate::place::{PlaceWalker, TermPlace};
use crate::refusal::unfit;
use crate::rewrite::{How, ParameterKind, Rewrite};
use crate::rules::{make, named};
use crate::site::{RewriteCall, Rewritten, Site};
use crate::whole::Whole;
use certen_core::script::{ScriptArg, ScriptArgKind, ScriptStep};

/// Steps that are taken everywhere are taken so often at most.
const MAX_EVERYWHERE: usize = 5_000;

/// A step that is being taken.
pub(crate) struct Taking<'a> {
    pub whole: &'a mut Whole,
    pub step: &'a ScriptStep,
}

/// What a search for a place has found so far.
#[derive(Default)]
pub(crate) struct PlaceSearch {
    /// A place that fits, all of whose conditions are proved.
    pub proved: Option<(TermPlace, Rewritten)>,
    /// The first that fits, with open conditions.
    pub open: Option<(TermPlace, Rewritten)>,
    /// The first that fits but for a condition.
    pub fails: Option<(TermPlace, Condition)>,
    /// The one that came closest.
    pub misfit: Option<(TermPlace, Misfit)>,
    pub too_large: bool,
}

impl Taking<'_> {
    /// Takes the step, and leaves the new whole.
    pub(crate) fn take(mut self) -> Result<(&'static Rewrite, Vec<Condition>), Diagnostic> {
        let order = self.order()?;
        let places = self.places()?;
        let conditions =
            if self.step.everywhere { self.everywhere(&order, &places)? } else { self.once(&order, &places)? };
        Ok((order.rewrite, conditions))
    }

    /// The rewrite with its arguments.
    fn order(&self) -> Result<RewriteCall, Diagnostic> {
        let step = self.step;
        let wrong = |message: String| Diagnostic::error(Code::E0901, step.span, message).label("this step");
        let Some((rewrite, parsed)) = named(step.name.as_str()) else {
            return Err(wrong(format!("there is no rewrite `{}`", step.name)));
        };
        let parsed = parsed.map_err(&wrong)?;
        let determined = &parsed.determined[usize::from(step.backwards)];
        let is_open = |(name, _): &&(&'static str, ParameterKind)| !determined.contains(&Name::new(name));
        let open: Vec<_> = rewrite.parameters.iter().filter(is_open).collect();
        let needed = open.iter().rposition(|(_, kind)| *kind != ParameterKind::Fresh).map_or(0, |last| last + 1);
        let count = step.args.len();
        let parameters: Vec<_> = if count >= needed && count <= open.len() {
            open
        } else if count == rewrite.parameters.len() {
            rewrite.parameters.iter().collect()
        } else {
            let how = if step.backwards { " backwards" } else { "" };
            let few = match (needed, open.len()) {
                (0, 0) => "no arguments".into(),
                (1, 1) => "one argument".into(),
                (needed, most) if needed == most => format!("{most} arguments"),
                (needed, most) => format!("{needed} to {most} arguments"),
            };
            let error = wrong(format!("`{}` takes{how} {few}, not {count}", step.name));
            let listed: Vec<String> = open.iter().map(|(name, kind)| format!("{name}, {}", kind.name())).collect();
            return Err(if listed.is_empty() { error } else { error.note(format!("in order: {}", listed.join("; "))) });
        };
        let mut args = Vec::new();
        // A condition may speak of an index that the step is about to make.
        let made = |((_, kind), arg): (&&(&str, ParameterKind), &ScriptArg)| match (kind, &arg.kind) {
            (ParameterKind::Fresh, ScriptArgKind::Ix(ix)) => ix.as_var(),
            _ => None,
        };
        let made: Vec<Name> = parameters.iter().zip(&step.args).filter_map(made).collect();
        for ((name, kind), arg) in parameters.into_iter().zip(&step.args) {
            let fits = match (kind, &arg.kind) {
                (ParameterKind::Index, ScriptArgKind::Ix(_))
                | (ParameterKind::Cond, ScriptArgKind::Cond(_))
                | (ParameterKind::Term, ScriptArgKind::Pattern(_)) => true,
                (ParameterKind::Number, ScriptArgKind::Ix(ix)) => ix.as_constant().is_some_and(|number| number > 0),
                (ParameterKind::Fresh, ScriptArgKind::Ix(ix)) => ix.as_var().is_some(),
                // A pattern may be a name alone.
                (ParameterKind::Term, ScriptArgKind::Ix(ix)) => ix.as_var().is_some(),
                _ => false,
            };
            if !fits {
                let message = format!("`{}` needs {} for {name}", step.name, kind.name());
                return Err(Diagnostic::error(Code::E0901, arg.span, message).label(format!("not {}", kind.name())));
            }
            let mut names = BTreeSet::new();
            match &arg.kind {
                ScriptArgKind::Ix(ix) if !matches!(kind, ParameterKind::Fresh | ParameterKind::Term) => {
                    ix.collect_names(&mut names)
                }
                ScriptArgKind::Cond(cond) => cond.collect_names(&mut names),
                _ => {}
            }
            let globals = &self.whole.globals;
            let is_known =
                |name: &Name| globals.sizes.contains(name) || globals.indices.contains(name) || made.contains(name);
            if let Some(name) = names.iter().find(|name| !is_known(name)) {
                let message = format!("there is no size or index `{name}` in the program at this step");
                return Err(Diagnostic::error(Code::E0901, arg.span, message).note(self.known()));
            }
            let value = match &arg.kind {
                ScriptArgKind::Ix(ix) if *kind == ParameterKind::Term => ScriptArgKind::Pattern(ix.to_string()),
                other => other.clone(),
            };
            args.push((*name, *kind, value));
        }
        Ok(RewriteCall { rewrite, parsed, backwards: step.backwards, args })
    }

    /// The names that can be places.
    pub(crate) fn known(&self) -> String {
        let globals = &self.whole.globals;
        let mut names: Vec<&str> = globals.indices.iter().chain(&globals.tensors).map(|name| name.as_str()).collect();
        names.sort_unstable();
        format!("the program binds {}", if names.is_empty() { "nothing".into() } else { names.join(", ") })
    }

    /// The side that is matched and the one that is built.
    fn sides(order: &RewriteCall) -> (&'static Pattern, &'static Pattern) {
        let (left, right) = (&order.parsed.left, &order.parsed.right);
        if order.backwards { (right, left) } else { (left, right) }
    }

    /// Whether the rewrite can fit at a place, at a glance.
    fn is_candidate(&mut self, order: &RewriteCall, place: &TermPlace) -> bool {
        let terms = &mut self.whole.terms;
        // The beginning of a selection is one.
        order.rewrite.how != How::Pattern || is_alike(Self::sides(order).0, terms.get(place.term))
    }

    /// Tries the rewrite at a place.
    fn attempt(&mut self, order: &RewriteCall, place: &TermPlace) -> Result<Rewritten, Misfit> {
        let at = place.meant(&mut self.whole.terms)?;
        if !self.is_candidate(order, place) {
            let text = shown(&self.whole.terms, at);
            return Err(Misfit { why: format!("`{text}` is not {}", Self::sides(order).0.kind()), matched: 0 });
        }
        let Whole { terms, globals, .. } = &mut *self.whole;
        let made = make(Site { terms, globals, at, context: &place.context, order, conditions: Vec::new() })?;
        if made.failure().is_none() && made.term == at {
            return Err(Misfit { why: "it would change nothing".into(), matched: usize::MAX });
        }
        Ok(made)
    }

    /// Tries the rewrite at a place, and keeps what comes of it: true if it fits and its conditions are proved.
    fn look(&mut self, order: &RewriteCall, place: &TermPlace, search: &mut PlaceSearch) -> bool {
        match self.attempt(order, place) {
            Ok(made) => match made.failure().cloned() {
                Some(failure) => {
                    search.fails.get_or_insert_with(|| (place.clone(), failure));
                }
                None if made.is_proved() => {
                    search.proved = Some((place.clone(), made));
                    return true;
                }
                None => {
                    search.open.get_or_insert_with(|| (place.clone(), made));
                }
            },
            Err(misfit) => {
                if search.misfit.as_ref().is_none_or(|(_, best)| best.matched < misfit.matched) {
                    search.misfit = Some((place.clone(), misfit));
                }
            }
        }
        false
    }

    /// The first of these places where the rewrite fits, or else inside them.
    fn search(&mut self, order: &RewriteCall, places: &[TermPlace]) -> PlaceSearch {
        let mut search = PlaceSearch::default();
        for place in places {
            if self.look(order, place, &mut search) {
                return search;
            }
        }
        // An address means the term itself.
        let is_meant = !self.step.at.is_empty() && places.len() == 1;
        if is_meant && (search.open.is_some() || search.fails.is_some()) {
            return search;
        }
        for outer in places {
            let mut walker = PlaceWalker::new(outer);
            while let Some(place) = walker.next(&self.whole.terms) {
                if self.is_candidate(order, place) && self.look(order, place, &mut search) {
                    return search;
                }
            }
            search.too_large |= walker.is_cut_off();
        }
        search
    }

    fn once(&mut self, order: &RewriteCall, places: &[TermPlace]) -> Result<Vec<Condition>, Diagnostic> {
        let mut search = self.search(order, places);
        match search.proved.take().or(search.open.take()) {
            Some((place, made)) => {
                self.put(&place, made.term)?;
                Ok(made.conditions)
            }
            None => Err(self.refusal(order, search)),
        }
    }

    fn put(&mut self, place: &TermPlace, term: TermId) -> Result<(), Diagnostic> {
        let root = place
            .replaced(&mut self.whole.terms, term)
            .map_err(|error| unfit(self.step, format!("what is around it would be ill-typed: {error}")))?;
        self.whole.set(root);
        Ok(())
    }

    /// Takes the rewrite wherever its conditions are proved.
    fn everywhere(&mut self, order: &RewriteCall, places: &[TermPlace]) -> Result<Vec<Condition>, Diagnostic> {
        let (from, to) = Self::sides(order);
        let mut conditions = Vec::new();
        let done = match has_instance(from, to) {
            true => self.each_once(order, places, &mut conditions)?,
            false => self.until_none(order, places, &mut conditions)?,
        };
        if done == 0 {
            let search = self.search(order, places);
            return Err(self.refusal(order, search));
        }
        Ok(conditions)
    }

    /// Walks over the places again and again, until the rewrite fits nowhere.
    fn until_none(
        &mut self,
        order: &RewriteCall,
        places: &[TermPlace],
        conditions: &mut Vec<Condition>,
    ) -> Result<usize, Diagnostic> {
        let mut done = 0;
        // Where it did not fit, it need not be tried again.
        let mut tried: FxHashSet<(TermId, Option<usize>, Vec<Cond>)> = FxHashSet::default();
        for outer in places {
            loop {
                let before = done;
                // Places keep their paths while what is inside them is rewritten.
                let Some(outer) = self.again(outer) else { break };
                let mut walker = PlaceWalker::new(&outer);
                while let Some(place) = walker.next(&self.whole.terms) {
                    if !self.is_candidate(order, place) {
                        continue;
                    }
                    let key = (place.term, place.first, place.context.conditions.clone());
                    if tried.contains(&key) {
                        continue;
                    }
                    match self.attempt(order, place) {
                        Ok(made) if made.is_proved() => {
                            self.put(place, made.term)?;
                            conditions.extend(made.conditions);
                            done += 1;
                        }
                        _ => {
                            tried.insert(key);
                            continue;
                        }
                    }
                    if done > MAX_EVERYWHERE {
                        return Err(unfit(self.step, format!("it was taken {MAX_EVERYWHERE} times, and still fits")));
                    }
                    self.whole.is_manageable().map_err(|why| unfit(self.step, why))?;
                    match walker.renewed(&self.whole.terms, self.whole.root) {
                        Some(renewed) => walker = renewed,
                        None => break,
                    }
                }
                if done == before {
                    break;
                }
            }
        }
        Ok(done)
    }

    /// A place in the whole as it is now.
    fn again(&self, place: &TermPlace) -> Option<TermPlace> {
        let mut now = TermPlace::whole(self.whole.root);
        for (_, part) in &place.path {
            let next = *self.whole.terms.get(now.term).parts().get(*part)?;
            now.path.push((now.term, *part));
            now.context.enter(&self.whole.terms, now.term, *part);
            now.term = next;
        }
        now.first = place.first.filter(|_| matches!(self.whole.terms.get(now.term), Term::Select(..)));
        Some(now)
    }

    /// Takes the rewrite once at each place that there is now, the inner ones first.
    fn each_once(
        &mut self,
        order: &RewriteCall,
        places: &[TermPlace],
        conditions: &mut Vec<Condition>,
    ) -> Result<usize, Diagnostic> {
        let mut all = Vec::new();
        for outer in places {
            let mut walker = PlaceWalker::new(outer);
            while let Some(place) = walker.next(&self.whole.terms) {
                if self.is_candidate(order, place) {
                    // The context is found again from the path.
                    all.push(TermPlace { context: Context::default(), ..place.clone() });
                }
                if all.len() > MAX_EVERYWHERE {
                    return Err(unfit(self.step, format!("there are more than {MAX_EVERYWHERE} places")));
                }
            }
        }
        let mut done = 0;
        for place in all.iter().rev() {
            let Some(place) = self.again(place) else { continue };
            if let Ok(made) = self.attempt(order, &place)
                && made.is_proved()
            {
                self.put(&place, made.term)?;
                conditions.extend(made.conditions);
                self.whole.is_manageable().map_err(|why| unfit(self.step, why))?;
                done += 1;
            }
        }
        Ok(done)
    }
}

/// Whether a part of a pattern always matches another pattern, so that rewriting the one makes places for itself.
fn has_instance(from: &Pattern, to: &Pattern) -> bool {
    is_instance(from, to) || to.parts().iter().any(|part| has_instance(from, part))
}

fn is_instance(from: &Pattern, to: &Pattern) -> bool {
    match from {
        Pattern::Any | Pattern::Meta(..) => true,
        _ if std::mem::discriminant(from) != std::mem::discriminant(to) => false,
        Pattern::Unary(..) | Pattern::Binary(..) if !same_operation(from, to) => false,
        Pattern::Number(_) => from == to,
        _ => from.parts().iter().zip(to.parts()).all(|(from, to)| is_instance(from, to)),
    }
}

fn same_operation(from: &Pattern, to: &Pattern) -> bool {
    match (from, to) {
        (Pattern::Unary(a, _), Pattern::Unary(b, _)) => a == b,
        (Pattern::Binary(a, ..), Pattern::Binary(b, ..)) => a == b,
        _ => true,
    }
}
