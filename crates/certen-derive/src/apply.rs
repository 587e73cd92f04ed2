//! A derivation taken: step by step, with everything that was shown on the way.
//!
//! A program is one term while it is derived, with its bindings as `let`s. A step finds its place, asks its conditions there
//! and builds the other side; the new program is typed, its names are checked, and the caller checks what it wants: that
//! accesses are in bounds and that what is cut off is padding, for a rewrite can move a read out of the guard that made it
//! safe. A condition with a counterexample refuses the step. One that nobody can decide is kept as open: the programs are then
//! compared by testing, and the equality is not called proved.

use std::collections::BTreeSet;

use certen_core::{Program, Term, TermId, print_term};
use certen_index::{Condition, Status, Verdict};
use certen_syntax::{Code, Diagnostic, Name};
use rustc_hash::FxHashSet;

use crate::expand::expand;
use crate::found::Found;
use crate::matching::{Matcher, Misfit, is_alike, shortened};
use crate::names::{MAX_NESTING, depth_of, tree_size};
use crate::pattern::Pattern;
use crate::place::{Place, Step as Go, Walked, does_bind, walk};
use crate::rewrite::{How, Kind, Rewrite, named};
use crate::script::{ArgKind, Place as Address, PlaceKind, Step, Tactic};
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
const MAX_SIZE: u64 = 100_000;

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
            let listed: Vec<String> = open.iter().map(|(name, kind)| format!("{name}: {}", kind.name())).collect();
            let how = if step.backwards { "backwards " } else { "" };
            let message = format!("`{}` takes {how}{} arguments, not {count}", step.name, open.len());
            return Err(wrong(message).note(format!("they are ({})", listed.join(", "))));
        };
        let mut args = Vec::new();
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
            // A condition may speak of an index that the step is about to make.
            let is_new = |name: &Name| matches!(&step.args[..], args if args.iter().any(|arg| matches!(&arg.kind, ArgKind::Ix(ix) if ix.as_var() == Some(*name))));
            let is_known = |name: &Name| globals.sizes.contains(name) || globals.indices.contains(name) || is_new(name);
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
        let (result, root) = (self.whole.result, self.whole.root);
        let walked = walk(&mut self.whole.terms, outer, &mut |terms, place| {
            let is_meant = match (&address.kind, pattern) {
                (PlaceKind::Binder(name), _) => {
                    place.first.is_none()
                        && (does_bind(terms, place.term, *name)
                            || (place.term == root
                                && place.path.is_empty()
                                && (*name == result || name.as_str() == "result")))
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
            }
            Go::In
        });
        if walked == Walked::TooLarge {
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
            if let Some(near) = crate::expand::near(name.as_str(), known) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            error = error.note(self.known());
        }
        error
    }

    // Rewriting.

    /// Tries the rewrite at a place.
    fn attempt(&mut self, order: &Order, place: &Place) -> Result<Made, Misfit> {
        let at = place.meant(&mut self.whole.terms)?;
        if let How::Pattern = order.rewrite.how {
            let from = if order.backwards { &order.parsed.right } else { &order.parsed.left };
            let term = self.whole.terms.get(at);
            if !is_alike(from, term) {
                let text = shortened(&print_term(&self.whole.terms, at));
                return Err(Misfit { why: format!("`{text}` is not {}", from.kind()), matched: 0 });
            }
        }
        let Whole { terms, globals, .. } = &mut *self.whole;
        let made = Site { terms, globals, at, context: &place.context, order, conditions: Vec::new() }.make()?;
        if made.failure().is_none() && made.term == at {
            return Err(Misfit { why: "it would change nothing".into(), matched: usize::MAX });
        }
        Ok(made)
    }

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

    /// The first place, from one of these on, where the rewrite fits.
    fn search(&mut self, order: &Order, places: &[Place], skip: &FxHashSet<(TermId, String)>) -> Search {
        let mut search = Search::default();
        for outer in places {
            // An address means the term itself, if the rewrite fits there.
            let addressed = !self.step.at.is_empty();
            let mut all = Vec::new();
            if walk(&mut self.whole.terms, outer, &mut |_, place| {
                all.push(place.clone());
                Go::In
            }) == Walked::TooLarge
            {
                search.too_large = true;
                return search;
            }
            for (at, place) in all.iter().enumerate() {
                if !skip.is_empty() && skip.contains(&key(place)) {
                    continue;
                }
                let found = self.look(order, place, &mut search);
                if found || (addressed && at == 0 && search.open.is_some()) {
                    return search;
                }
                if addressed && at == 0 && search.fails.is_some() && !self.step.everywhere {
                    return search;
                }
            }
        }
        search
    }

    fn once(&mut self, order: &Order, places: &[Place]) -> Result<Vec<Condition>, Diagnostic> {
        let mut search = self.search(order, places, &FxHashSet::default());
        match search.proved.take().or(search.open.take()) {
            Some((place, made)) => {
                self.put(&place, made.term)?;
                Ok(made.conditions)
            }
            None => Err(self.refusal(order, places, search)),
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
        let (from, to) = match order.backwards {
            false => (&order.parsed.left, &order.parsed.right),
            true => (&order.parsed.right, &order.parsed.left),
        };
        let mut conditions = Vec::new();
        if has_instance(from, to) {
            let search = self.each_once(order, places, &mut conditions)?;
            return match search {
                Some(search) => Err(self.refusal(order, places, search)),
                None => Ok(conditions),
            };
        }
        let mut done = 0;
        let mut skip: FxHashSet<(TermId, String)> = FxHashSet::default();
        // Places keep their paths while what is inside of them is rewritten.
        for outer in places {
            loop {
                let outer = self.again(outer)?;
                let search = self.search_skipping(order, &outer, &mut skip);
                let Some((place, made)) = search.proved else {
                    if search.too_large || (done == 0 && places.len() == 1) {
                        return Err(self.refusal(order, places, search));
                    }
                    break;
                };
                self.put(&place, made.term)?;
                conditions.extend(made.conditions);
                done += 1;
                if done > MAX_EVERYWHERE {
                    return Err(unfit(
                        self.step,
                        format!("it was taken {MAX_EVERYWHERE} times, and still there are places"),
                    ));
                }
            }
        }
        if done == 0 {
            let search = self.search(order, places, &FxHashSet::default());
            return Err(self.refusal(order, places, search));
        }
        Ok(conditions)
    }

    /// A place in the whole as it is now.
    fn again(&self, place: &Place) -> Result<Place, Diagnostic> {
        let mut now = Place::whole(self.whole.root);
        for (_, part) in &place.path {
            let parts = self.whole.terms.get(now.term).parts();
            let Some(next) = parts.get(*part) else {
                return Err(unfit(self.step, "its place is gone".into()));
            };
            now.path.push((now.term, *part));
            now.context.enter(&self.whole.terms, now.term, *part);
            now.term = *next;
        }
        now.first = place.first.filter(|_| matches!(self.whole.terms.get(now.term), Term::Select(..)));
        Ok(now)
    }

    fn search_skipping(&mut self, order: &Order, outer: &Place, skip: &mut FxHashSet<(TermId, String)>) -> Search {
        let mut search = Search::default();
        let mut all = Vec::new();
        let walked = walk(&mut self.whole.terms, outer, &mut |_, place| {
            all.push(place.clone());
            Go::In
        });
        search.too_large = walked == Walked::TooLarge;
        for place in &all {
            let key = key(place);
            if skip.contains(&key) {
                continue;
            }
            if self.look(order, place, &mut search) {
                return search;
            }
            skip.insert(key);
        }
        search
    }

    /// Takes the rewrite once at each place that there is now, the inner ones first.
    fn each_once(
        &mut self,
        order: &Order,
        places: &[Place],
        conditions: &mut Vec<Condition>,
    ) -> Result<Option<Search>, Diagnostic> {
        let mut all = Vec::new();
        for outer in places {
            walk(&mut self.whole.terms, outer, &mut |_, place| {
                all.push(place.clone());
                Go::In
            });
        }
        let mut search = Search::default();
        let mut done = 0;
        for place in all.iter().rev() {
            let Ok(place) = self.again(place) else { continue };
            search.proved = None;
            if self.look(order, &place, &mut search)
                && let Some((place, made)) = search.proved.take()
            {
                self.put(&place, made.term)?;
                conditions.extend(made.conditions);
                done += 1;
            }
            if done > MAX_EVERYWHERE {
                return Err(unfit(self.step, format!("there are more than {MAX_EVERYWHERE} places")));
            }
        }
        Ok((done == 0).then_some(search))
    }

    // Refusals.

    fn refusal(&mut self, order: &Order, places: &[Place], search: Search) -> Diagnostic {
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
            let error = Diagnostic::error(Code::E0904, step.span, message).label(why.clone());
            return error.note(format!("the condition is {why}")).note(self.marked(&place));
        }
        let message = match step.at.is_empty() {
            true => format!("there is no place where `{}`{way} fits", step.name),
            false => format!("`{}`{way} does not fit here", step.name),
        };
        let error = Diagnostic::error(Code::E0903, step.span, message).label("this step");
        let error = error.note(format!("it rewrites {from}"));
        match search.misfit {
            Some((place, misfit)) if !places.is_empty() => error.note(misfit.why).note(self.marked(&place)),
            _ => error,
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

/// What a place is to a rewrite: its term and what is known there.
fn key(place: &Place) -> (TermId, String) {
    let known: Vec<String> = place.context.conditions.iter().map(|cond| cond.to_string()).collect();
    (place.term, format!("{:?} {}", place.first, known.join(", ")))
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
