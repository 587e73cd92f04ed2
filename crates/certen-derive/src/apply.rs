//! A derivation taken: step by step, with everything that was shown on the way.
//!
//! A program is one term while it is derived, with its bindings as `let`s. A step finds its place, asks its conditions there
//! and builds the other side; the new program is typed, its names are checked, and the caller checks what it wants: that
//! accesses are in bounds and that what is cut off is padding, for a rewrite can move a read out of the guard that made it
//! safe. A condition with a counterexample refuses the step. One that nobody can decide is kept as open: the programs are then
//! compared by testing, and the equality is not called proved.

use std::collections::BTreeSet;

use certen_core::{Program, Term, TermId, print_term};
use certen_index::{Cond, Condition, Status, Verdict};
use certen_syntax::{Code, Diagnostic, Name};
use rustc_hash::FxHashSet;

use crate::context::Context;
use crate::expand::expand;
use crate::found::Found;
use crate::matching::{Matcher, Misfit, is_alike, shortened};
use crate::names::{MAX_NESTING, depth_of, reachable, tree_size};
use crate::pattern::Pattern;
use crate::place::{Place, Walker, does_bind};
use crate::rewrite::{How, Kind, Rewrite, named};
use crate::script::{Arg, ArgKind, Place as Address, PlaceKind, Step, Tactic};
use crate::site::{Made, Order, Site};
use crate::whole::Whole;

/// A derived program.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The program after the last step.
    pub program: Program,
    /// The rewrites, in order; pieces of scripts are unfolded.
    pub taken: Vec<Taken>,
}

/// A rewrite that was taken.
#[derive(Clone)]
pub struct Taken {
    /// The step; inside a piece of a script with arguments for its parameters, and the place of the whole piece.
    pub step: Step,
    /// Which step of the script it belongs to, counted from 0.
    pub of: usize,
    /// The rewrite.
    pub rewrite: &'static Rewrite,
    /// The program after it.
    pub after: Program,
    /// When it keeps the meaning, and what is known of that.
    pub conditions: Vec<Condition>,
}

impl std::fmt::Debug for Taken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taken").field("step", &self.step).field("rewrite", &self.rewrite.name).finish_non_exhaustive()
    }
}

impl Taken {
    /// Whether this step is shown to keep the meaning, for all sizes.
    pub fn is_proved(&self) -> bool {
        self.conditions.iter().all(|condition| matches!(condition.status, Status::Proved(_)))
    }
}

impl Derived {
    /// Whether every step is shown to keep the meaning, for all sizes.
    pub fn is_proved(&self) -> bool {
        self.taken.iter().all(Taken::is_proved)
    }
}

/// Why a derivation cannot be taken.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Which step of the script, counted from 0.
    pub at: usize,
    /// What is wrong with it; the program at that step is a note.
    pub diagnostic: Diagnostic,
    /// The program before that step.
    pub before: Program,
    /// The rewrites before it.
    pub taken: Vec<Taken>,
}

/// Terms that are larger as trees are refused.
const MAX_SIZE: u64 = 50_000;

/// An address does not mean more places than this.
const MAX_MEANT: usize = 1_000;

/// Steps that are taken everywhere are taken so often at most.
const MAX_EVERYWHERE: usize = 5_000;

/// Takes the steps of a script, and calls the result by a name. `check` looks at the program after every step; what it finds
/// refuses the step.
///
/// # Errors
/// E0901 for a rewrite that is not known or has other arguments, E0902 for a place that is not there, E0903 for a rewrite that
/// does not fit, E0904 for one whose condition fails, E0905 for what `check` finds.
pub fn derive(
    program: &Program,
    name: Name,
    steps: &[Step],
    tactics: &[Tactic],
    check: &mut dyn FnMut(&Program) -> Vec<Diagnostic>,
) -> Result<Derived, Box<Refused>> {
    let mut taken: Vec<Taken> = Vec::new();
    let span = steps.first().map(|step| step.span);
    let refused = |at: usize, diagnostic: Diagnostic, before: &Program, taken: Vec<Taken>| {
        Err(Box::new(Refused { at, diagnostic, before: before.clone(), taken }))
    };
    let mut whole = match Whole::new(program, name) {
        Ok(whole) => whole,
        Err(why) => return refused(0, Diagnostic::error(Code::E0903, span, why), program, taken),
    };
    if let Err(diagnostic) = is_manageable(&whole, whole.root) {
        return refused(0, Diagnostic::error(Code::E0903, span, diagnostic), program, taken);
    }
    let mut before = match whole.program() {
        Ok(before) => before,
        Err(error) => return refused(0, Diagnostic::error(Code::E0903, span, error.to_string()), program, taken),
    };
    let ty = whole.terms.ty(whole.root).clone();
    for (at, step) in steps.iter().enumerate() {
        let unfolded = match expand(step, tactics) {
            Ok(unfolded) => unfolded,
            Err(diagnostic) => return refused(at, diagnostic, &before, taken),
        };
        for inner in unfolded {
            let made = Taking { whole: &mut whole, step: &inner }.take().and_then(|(rewrite, conditions)| {
                let error = |why: String| unfit(&inner, why);
                is_manageable(&whole, whole.root).map_err(error)?;
                has_regular_shapes(&whole).map_err(error)?;
                let now = whole.terms.ty(whole.root);
                let equal = now.elem == ty.elem
                    && now.rank() == ty.rank()
                    && now
                        .shape
                        .iter()
                        .zip(ty.shape.iter())
                        .all(|(a, b)| whole.terms.facts().prove_equal(a, b) == Verdict::Yes);
                if !equal {
                    return Err(error(format!("the result would be {now} and no longer {ty}")));
                }
                let after =
                    whole.program().map_err(|scope| error(format!("a name would lose its meaning: {scope}")))?;
                match check(&after).into_iter().find(Diagnostic::is_error) {
                    Some(found) => Err(unsafe_then(&inner, found)),
                    None => Ok((rewrite, conditions, after)),
                }
            });
            match made {
                Ok((rewrite, conditions, after)) => {
                    before = after.clone();
                    taken.push(Taken { step: inner, of: at, rewrite, after, conditions });
                }
                Err(diagnostic) => {
                    let diagnostic = if inner.name == step.name {
                        diagnostic
                    } else {
                        diagnostic.note(format!("the step of `{}` that fails is `{}`", step.name, inner.name))
                    };
                    let diagnostic = match diagnostic.notes.iter().any(|note| note.starts_with("at this step")) {
                        true => diagnostic,
                        false => diagnostic.note(shown(&before)),
                    };
                    return refused(at, diagnostic, &before, taken);
                }
            }
        }
    }
    Ok(Derived { program: before, taken })
}

/// Refuses shapes that depend on indices, which Core does not have.
fn has_regular_shapes(whole: &Whole) -> Result<(), String> {
    for id in reachable(&whole.terms, whole.root) {
        for size in whole.terms.ty(id).shape.iter() {
            let mut names = BTreeSet::new();
            size.collect_names(&mut names);
            if let Some(index) = names.iter().find(|name| !whole.globals.sizes.contains(name)) {
                let term = shortened(&print_term(&whole.terms, id));
                return Err(format!("the size {size} of `{term}` would depend on the index {index}"));
            }
        }
    }
    Ok(())
}

/// Refuses terms that would take too long.
fn is_manageable(whole: &Whole, root: TermId) -> Result<(), String> {
    let depth = depth_of(&whole.terms, root);
    if depth > MAX_NESTING {
        return Err(format!("the program is nested {depth} levels deep; a derivation can have {MAX_NESTING}"));
    }
    let size = tree_size(&whole.terms, root);
    if size > MAX_SIZE {
        return Err(format!("the program has {size} terms; a derivation can have {MAX_SIZE}"));
    }
    Ok(())
}

fn unfit(step: &Step, why: String) -> Diagnostic {
    let message = format!("the rewrite `{}` does not fit here", step.name);
    Diagnostic::error(Code::E0903, step.span, message).label("this step").note(why)
}

fn unsafe_then(step: &Step, found: Diagnostic) -> Diagnostic {
    let message = format!("after the rewrite `{}` the program is not safe: {}", step.name, found.message);
    let mut error = Diagnostic::error(Code::E0905, step.span, message).label("this step");
    error.notes = found.notes;
    error.help = found.help;
    error.rule = found.rule;
    error
}

/// A program as a note.
fn shown(program: &Program) -> String {
    let bindings: Vec<String> =
        program.bindings.iter().map(|b| format!("  {} = {}", b.name, print_term(&program.terms, b.term))).collect();
    format!("at this step the program is\n{}", bindings.join("\n"))
}

/// A step that is being taken.
struct Taking<'a> {
    whole: &'a mut Whole,
    step: &'a Step,
}

/// What a search for a place has found so far.
#[derive(Default)]
struct Search {
    /// A place that fits, all of whose conditions are proved.
    proved: Option<(Place, Made)>,
    /// The first that fits, with open conditions.
    open: Option<(Place, Made)>,
    /// The first that fits but for a condition.
    fails: Option<(Place, Condition)>,
    /// The one that came closest.
    misfit: Option<(Place, Misfit)>,
    too_large: bool,
}

impl Taking<'_> {
    /// Takes the step, and leaves the new whole.
    fn take(mut self) -> Result<(&'static Rewrite, Vec<Condition>), Diagnostic> {
        let order = self.order()?;
        let places = self.places()?;
        let conditions =
            if self.step.everywhere { self.everywhere(&order, &places)? } else { self.once(&order, &places)? };
        Ok((order.rewrite, conditions))
    }

    /// The rewrite with its arguments.
    fn order(&self) -> Result<Order, Diagnostic> {
        let step = self.step;
        let wrong = |message: String| Diagnostic::error(Code::E0901, step.span, message).label("this step");
        let Some((rewrite, parsed)) = named(step.name.as_str()) else {
            return Err(wrong(format!("there is no rewrite `{}`", step.name)));
        };
        let parsed = parsed.map_err(&wrong)?;
        let determined = &parsed.determined[usize::from(step.backwards)];
        let is_open = |(name, _): &&(&'static str, Kind)| !determined.contains(&Name::new(name));
        let open: Vec<_> = rewrite.parameters.iter().filter(is_open).collect();
        let needed = open.iter().rposition(|(_, kind)| *kind != Kind::Fresh).map_or(0, |last| last + 1);
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
        let made = |((_, kind), arg): (&&(&str, Kind), &Arg)| match (kind, &arg.kind) {
            (Kind::Fresh, ArgKind::Ix(ix)) => ix.as_var(),
            _ => None,
        };
        let made: Vec<Name> = parameters.iter().zip(&step.args).filter_map(made).collect();
        for ((name, kind), arg) in parameters.into_iter().zip(&step.args) {
            let fits = match (kind, &arg.kind) {
                (Kind::Index, ArgKind::Ix(_)) | (Kind::Cond, ArgKind::Cond(_)) | (Kind::Term, ArgKind::Pattern(_)) => {
                    true
                }
                (Kind::Number, ArgKind::Ix(ix)) => ix.as_constant().is_some_and(|number| number > 0),
                (Kind::Fresh, ArgKind::Ix(ix)) => ix.as_var().is_some(),
                // A pattern may be a name alone.
                (Kind::Term, ArgKind::Ix(ix)) => ix.as_var().is_some(),
                _ => false,
            };
            if !fits {
                let message = format!("`{}` needs {} for {name}", step.name, kind.name());
                return Err(Diagnostic::error(Code::E0901, arg.span, message).label(format!("not {}", kind.name())));
            }
            let mut names = BTreeSet::new();
            match &arg.kind {
                ArgKind::Ix(ix) if !matches!(kind, Kind::Fresh | Kind::Term) => ix.collect_names(&mut names),
                ArgKind::Cond(cond) => cond.collect_names(&mut names),
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
                ArgKind::Ix(ix) if *kind == Kind::Term => ArgKind::Pattern(ix.to_string()),
                other => other.clone(),
            };
            args.push((*name, *kind, value));
        }
        Ok(Order { rewrite, parsed, backwards: step.backwards, args })
    }

    /// The names that can be places.
    fn known(&self) -> String {
        let globals = &self.whole.globals;
        let mut names: Vec<&str> = globals.indices.iter().chain(&globals.tensors).map(|name| name.as_str()).collect();
        names.sort_unstable();
        format!("the program binds {}", if names.is_empty() { "nothing".into() } else { names.join(", ") })
    }

    // Places.

    /// The terms that the address may mean, in order; the whole if there is none.
    fn places(&mut self) -> Result<Vec<Place>, Diagnostic> {
        let mut found = vec![Place::whole(self.whole.root)];
        for address in self.step.at.iter().rev() {
            let pattern = match &address.kind {
                PlaceKind::Binder(_) => None,
                PlaceKind::Pattern(text) => Some(self.whole.globals.pattern(text).map_err(|why| {
                    Diagnostic::error(Code::E0902, address.span, format!("this pattern cannot be read: {why}"))
                })?),
            };
            let mut inside = Vec::new();
            for outer in &found {
                let before = inside.len();
                self.occurrences(address, pattern.as_ref(), outer, &mut inside)?;
                if let Some(nth) = address.nth {
                    let own = inside.split_off(before);
                    inside.extend(own.into_iter().nth(nth.saturating_sub(1)));
                }
            }
            if inside.is_empty() {
                return Err(self.nowhere(address, pattern.as_ref(), &found));
            }
            found = inside;
        }
        Ok(found)
    }

    /// The places of an address inside of another place.
    fn occurrences(
        &mut self,
        address: &Address,
        pattern: Option<&Pattern>,
        outer: &Place,
        inside: &mut Vec<Place>,
    ) -> Result<(), Diagnostic> {
        let (result, terms) = (self.whole.result, &mut self.whole.terms);
        let mut walker = Walker::new(outer);
        while let Some(place) = walker.next(terms) {
            let is_meant = match (&address.kind, pattern) {
                (PlaceKind::Binder(name), _) => {
                    let is_whole = place.path.is_empty() && (*name == result || name.as_str() == "result");
                    place.first.is_none() && (is_whole || does_bind(terms, place.term, *name))
                }
                (PlaceKind::Pattern(_), Some(pattern)) => match place.meant(terms) {
                    Ok(meant) if is_alike(pattern, terms.get(meant)) => {
                        Matcher::new(terms, Found::default(), &place.context, true).run(pattern, meant).is_ok()
                    }
                    _ => false,
                },
                (PlaceKind::Pattern(_), None) => false,
            };
            if is_meant {
                inside.push(place.clone());
                if inside.len() > MAX_MEANT {
                    return Err(Diagnostic::error(
                        Code::E0902,
                        address.span,
                        format!("more than {MAX_MEANT} places are like this"),
                    ));
                }
            }
        }
        if walker.is_cut_off() {
            return Err(Diagnostic::error(
                Code::E0902,
                address.span,
                "the program is too large to look for this place",
            ));
        }
        Ok(())
    }

    fn nowhere(&mut self, address: &Address, pattern: Option<&Pattern>, outer: &[Place]) -> Diagnostic {
        let what = match &address.kind {
            PlaceKind::Binder(name) => format!("nothing binds `{name}`"),
            PlaceKind::Pattern(text) => format!("there is no term like `{}`", text.trim()),
        };
        let many = match address.nth {
            Some(nth) => {
                let mut all = Vec::new();
                for place in outer {
                    let _ = self.occurrences(address, pattern, place, &mut all);
                }
                match all.len() {
                    0 => None,
                    1 => Some(format!("there is one such place, and no number {nth}")),
                    count => Some(format!("there are {count} such places, and no number {nth}")),
                }
            }
            None => None,
        };
        let inside =
            if self.step.at.last().is_some_and(|last| last.span != address.span) { " in that place" } else { "" };
        let error =
            Diagnostic::error(Code::E0902, address.span, many.unwrap_or(format!("{what}{inside} at this step")));
        let mut error = error.label("this place");
        if let PlaceKind::Binder(name) = &address.kind {
            let globals = &self.whole.globals;
            let known = globals.indices.iter().chain(&globals.tensors).map(|name| name.as_str());
            if let Some(near) = crate::expand::near(name.as_str(), known).filter(|near| *near != name.as_str()) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            error = error.note(self.known());
        }
        error
    }

    // Rewriting.

    /// The side that is matched and the one that is built.
    fn sides(order: &Order) -> (&'static Pattern, &'static Pattern) {
        let (left, right) = (&order.parsed.left, &order.parsed.right);
        if order.backwards { (right, left) } else { (left, right) }
    }

    /// Whether the rewrite can fit at a place, at a glance.
    fn is_candidate(&mut self, order: &Order, place: &Place) -> bool {
        let terms = &mut self.whole.terms;
        // The beginning of a selection is one.
        matches!(order.rewrite.how, How::Code(_)) || is_alike(Self::sides(order).0, terms.get(place.term))
    }

    /// Tries the rewrite at a place.
    fn attempt(&mut self, order: &Order, place: &Place) -> Result<Made, Misfit> {
        let at = place.meant(&mut self.whole.terms)?;
        if !self.is_candidate(order, place) {
            let text = shortened(&print_term(&self.whole.terms, at));
            return Err(Misfit { why: format!("`{text}` is not {}", Self::sides(order).0.kind()), matched: 0 });
        }
        let Whole { terms, globals, .. } = &mut *self.whole;
        let made = Site { terms, globals, at, context: &place.context, order, conditions: Vec::new() }.make()?;
        if made.failure().is_none() && made.term == at {
            return Err(Misfit { why: "it would change nothing".into(), matched: usize::MAX });
        }
        Ok(made)
    }

    /// Tries the rewrite at a place, and keeps what comes of it: true if it fits and its conditions are proved.
    fn look(&mut self, order: &Order, place: &Place, search: &mut Search) -> bool {
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

    /// The first of these places where the rewrite fits, or else inside of them.
    fn search(&mut self, order: &Order, places: &[Place]) -> Search {
        let mut search = Search::default();
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
            let mut walker = Walker::new(outer);
            while let Some(place) = walker.next(&self.whole.terms) {
                if self.is_candidate(order, place) && self.look(order, place, &mut search) {
                    return search;
                }
            }
            search.too_large |= walker.is_cut_off();
        }
        search
    }

    fn once(&mut self, order: &Order, places: &[Place]) -> Result<Vec<Condition>, Diagnostic> {
        let mut search = self.search(order, places);
        match search.proved.take().or(search.open.take()) {
            Some((place, made)) => {
                self.put(&place, made.term)?;
                Ok(made.conditions)
            }
            None => Err(self.refusal(order, search)),
        }
    }

    fn put(&mut self, place: &Place, term: TermId) -> Result<(), Diagnostic> {
        let root = place
            .replaced(&mut self.whole.terms, term)
            .map_err(|error| unfit(self.step, format!("what is around it would be ill-typed: {error}")))?;
        self.whole.set(root);
        Ok(())
    }

    /// Takes the rewrite wherever its conditions are proved.
    fn everywhere(&mut self, order: &Order, places: &[Place]) -> Result<Vec<Condition>, Diagnostic> {
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
        order: &Order,
        places: &[Place],
        conditions: &mut Vec<Condition>,
    ) -> Result<usize, Diagnostic> {
        let mut done = 0;
        // Where it did not fit, it need not be tried again.
        let mut tried: FxHashSet<(TermId, Option<usize>, Vec<Cond>)> = FxHashSet::default();
        for outer in places {
            loop {
                let before = done;
                // Places keep their paths while what is inside of them is rewritten.
                let Some(outer) = self.again(outer) else { break };
                let mut walker = Walker::new(&outer);
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
                    is_manageable(self.whole, self.whole.root).map_err(|why| unfit(self.step, why))?;
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
    fn again(&self, place: &Place) -> Option<Place> {
        let mut now = Place::whole(self.whole.root);
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
        order: &Order,
        places: &[Place],
        conditions: &mut Vec<Condition>,
    ) -> Result<usize, Diagnostic> {
        let mut all = Vec::new();
        for outer in places {
            let mut walker = Walker::new(outer);
            while let Some(place) = walker.next(&self.whole.terms) {
                if self.is_candidate(order, place) {
                    // The context is found again from the path.
                    all.push(Place { context: Context::default(), ..place.clone() });
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
                is_manageable(self.whole, self.whole.root).map_err(|why| unfit(self.step, why))?;
                done += 1;
            }
        }
        Ok(done)
    }

    // Refusals.

    fn refusal(&mut self, order: &Order, search: Search) -> Diagnostic {
        let step = self.step;
        let (from, way) = match order.backwards {
            false => (order.rewrite.left, ""),
            true => (order.rewrite.right, " backwards"),
        };
        if search.too_large {
            return unfit(step, "the program is too large to look at all places".into());
        }
        if let Some((place, condition)) = search.fails {
            let message = format!("`{}`{way} needs a condition that fails here", step.name);
            let why = match &condition.status {
                Status::Fails(why) => format!("{}: {why}", condition.what),
                _ => condition.what.clone(),
            };
            let error = Diagnostic::error(Code::E0904, step.span, message).label("this step");
            return error.note(format!("the condition is {why}")).note(self.marked(&place));
        }
        let message = match step.at.is_empty() {
            true => format!("there is no place where `{}`{way} fits", step.name),
            false => format!("`{}`{way} does not fit here", step.name),
        };
        let error = Diagnostic::error(Code::E0903, step.span, message).label("this step");
        let error = error.note(format!("it rewrites {from}"));
        match search.misfit {
            Some((place, misfit)) => error.note(misfit.why).note(self.marked(&place)),
            None => error,
        }
    }

    /// The program with a mark at a place.
    fn marked(&mut self, place: &Place) -> String {
        let terms = &mut self.whole.terms;
        let meant = place.meant(terms).unwrap_or(place.term);
        let text = print_term(terms, meant);
        let here = Name::new("HERE_IS_THE_PLACE");
        let ty = terms.ty(meant).clone();
        let marked = terms.reference(here, ty).and_then(|mark| place.replaced(terms, mark));
        let Ok(marked) = marked else { return format!("the term is {text}") };
        let mut lines = Vec::new();
        let mut rest = marked;
        while let Term::Let(name, value, body) = terms.get(rest) {
            lines.push(format!("  {name} = {}", print_term(terms, *value)));
            rest = *body;
        }
        lines.push(format!("  {} = {}", self.whole.result, print_term(terms, rest)));
        let program = lines.join("\n").replace(here.as_str(), &format!(">>> {text} <<<"));
        format!("at this step the program is, with the place between >>> and <<<\n{program}")
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
