//! Names in terms: what is free, what is bound, terms substituted for names, and terms compared up to bound names.
//!
//! Names are identities in Core: what a term binds is bound nowhere around it. So a name that a term binds is not free
//! in it, and one map of new names serves for a whole term, shared parts and all. A term that is copied to another
//! place keeps its bound names unless one of them is bound around that place, or occurs in what is put into it; those
//! are made fresh.
//!
//! Two terms that differ in bound names only have the same [`canonical`] form: there every binder is called by its
//! height, the number of binders that are nested inside it. Heights depend on nothing outside a term, so forms
//! are kept for terms wherever they stand, and hash-consing makes equal forms the same term.
//!
//! Works by recursion; [`depth_of`] lets callers refuse terms that are nested too deeply for it.

use std::collections::BTreeSet;

use certen_core::{Component, Term, TermId, TermNames, Terms, TypeError};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::Context;

/// Terms that are nested more deeply are refused.
pub(crate) const MAX_NESTING: usize = 500;

/// How deeply a term is nested.
pub(crate) fn depth_of(terms: &Terms, root: TermId) -> usize {
    measured(terms, root, |inner| inner.into_iter().max().unwrap_or(0) + 1)
}

/// How large a term is as a tree.
pub(crate) fn tree_size(terms: &Terms, root: TermId) -> u64 {
    measured(terms, root, |inner| inner.into_iter().fold(1, u64::saturating_add))
}

/// A measure of a term, made of the measures of its parts.
fn measured<T: Copy + Default>(terms: &Terms, root: TermId, measure: impl Fn(Vec<T>) -> T) -> T {
    let mut measures: FxHashMap<TermId, T> = FxHashMap::default();
    for id in terms.parts_first(root) {
        let inner = terms.get(id).parts().iter().filter_map(|part| measures.get(part).copied()).collect();
        measures.insert(id, measure(inner));
    }
    measures.get(&root).copied().unwrap_or_default()
}

/// The same term with one part in another's place. A `let` whose value has a type of another form is told to its body.
/// Code that replaces several parts looks at each when its turn comes ([`with_each_part`]), because such a body is not
/// what it was before.
///
/// # Errors
/// If the term is ill-typed then.
pub(crate) fn with_part(terms: &mut Terms, id: TermId, number: usize, new: TermId) -> Result<TermId, TypeError> {
    let term = terms.get(id).clone();
    if let Term::Let(name, value, body) = term
        && number == 0
    {
        let body = retyped(terms, name, value, new, body)?;
        return terms.add(Term::Let(name, new, body));
    }
    if let (Term::Select(_, indices), 0) = (&term, number) {
        return select(terms, new, indices);
    }
    let mut numbers = 0..;
    let term = term.with_parts(|old| if numbers.next() == Some(number) { new } else { old });
    terms.add(term)
}

/// The same term with each of its parts changed, one after the other, each in its context. `inside` shows the arena and
/// the context in the state of a walk.
///
/// # Errors
/// What `change` says, or how the term would be ill-typed.
pub(crate) fn with_each_part<S, E: From<TypeError>>(
    state: &mut S,
    mut id: TermId,
    inside: impl Fn(&mut S) -> (&mut Terms, &mut Context),
    mut change: impl FnMut(&mut S, TermId) -> Result<TermId, E>,
) -> Result<TermId, E> {
    let mut at = 0;
    loop {
        let (terms, context) = inside(state);
        let Some(old) = terms.get(id).parts().get(at).copied() else { return Ok(id) };
        let mark = context.mark();
        context.enter(terms, id, at);
        let new = change(state, old);
        let (terms, context) = inside(state);
        context.reset(mark);
        let new = new?;
        if new != old {
            id = with_part(terms, id, at, new)?;
        }
        at += 1;
    }
}

/// The body of a `let` whose value is replaced.
fn retyped(terms: &mut Terms, name: Name, old: TermId, new: TermId, body: TermId) -> Result<TermId, TypeError> {
    if terms.ty(old) == terms.ty(new) {
        return Ok(body);
    }
    let ty = terms.ty(new).clone();
    let reference = terms.reference(name, ty)?;
    Substitution { tensors: FxHashMap::from_iter([(name, reference)]), ..Substitution::default() }.apply(terms, body)
}

/// A selection; of a selection, it is one.
///
/// # Errors
/// If there are too many indices.
pub(crate) fn select(terms: &mut Terms, tensor: TermId, indices: &[Ix]) -> Result<TermId, TypeError> {
    if indices.is_empty() {
        return Ok(tensor);
    }
    match terms.get(tensor) {
        Term::Select(inner, first) => {
            let (inner, all) = (*inner, first.iter().chain(indices).cloned().collect());
            terms.add(Term::Select(inner, all))
        }
        _ => terms.add(Term::Select(tensor, indices.into())),
    }
}

/// Names replaced all at once.
#[derive(Clone, Default)]
pub(crate) struct Substitution {
    /// Free indices.
    pub indices: FxHashMap<Name, Ix>,
    /// Free tensors.
    pub tensors: FxHashMap<Name, TermId>,
    /// New names for what is bound inside.
    pub bound: FxHashMap<Name, Name>,
}

impl Substitution {
    fn is_identity(&self) -> bool {
        self.tensors.is_empty()
            && self.bound.is_empty()
            && self.indices.iter().all(|(name, ix)| ix.as_var() == Some(*name))
    }

    pub(crate) fn ix(&self, ix: &Ix) -> Result<Ix, IxError> {
        match (ix.as_constant(), ix.as_var()) {
            (Some(_), _) => Ok(ix.clone()),
            (_, Some(name)) => Ok(self.index(name).unwrap_or_else(|| ix.clone())),
            _ => ix.substitute(&|name| self.index(name)),
        }
    }

    pub(crate) fn cond(&self, cond: &Cond) -> Result<Cond, IxError> {
        if cond.is_always() { Ok(Cond::always()) } else { cond.substitute(&|name| self.index(name)) }
    }

    fn index(&self, name: Name) -> Option<Ix> {
        self.indices.get(&name).cloned().or_else(|| self.bound.get(&name).map(|new| Ix::var(*new)))
    }

    /// The term with the names replaced. What is put in must not mention names that the term binds under their new
    /// names.
    ///
    /// # Errors
    /// If an expression grows too large, or the term is ill-typed then.
    pub(crate) fn apply(&self, terms: &mut Terms, root: TermId) -> Result<TermId, TypeError> {
        if self.is_identity() {
            return Ok(root);
        }
        self.visit(terms, root, &mut FxHashMap::default())
    }

    fn visit(&self, terms: &mut Terms, id: TermId, done: &mut FxHashMap<TermId, TermId>) -> Result<TermId, TypeError> {
        if let Some(found) = done.get(&id) {
            return Ok(*found);
        }
        let term = terms.get(id).clone();
        let new = match &term {
            Term::Ref(name, ty) => match (self.tensors.get(name), self.bound.get(name)) {
                (Some(tensor), _) => *tensor,
                (_, Some(new)) => terms.reference(*new, ty.clone())?,
                _ => id,
            },
            Term::Let(name, value, body) => {
                let new_value = self.visit(terms, *value, done)?;
                let new_name = self.bound.get(name).copied().unwrap_or(*name);
                let new_body = if terms.ty(new_value) == terms.ty(*value) {
                    self.visit(terms, *body, done)?
                } else {
                    let ty = terms.ty(new_value).clone();
                    let reference = terms.reference(new_name, ty)?;
                    let mut inner = self.clone();
                    inner.tensors.insert(*name, reference);
                    inner.visit(terms, *body, &mut FxHashMap::default())?
                };
                terms.add(Term::Let(new_name, new_value, new_body))?
            }
            Term::Select(tensor, indices) => {
                let tensor = self.visit(terms, *tensor, done)?;
                let indices = indices.iter().map(|ix| self.ix(ix)).collect::<Result<Vec<Ix>, IxError>>()?;
                select(terms, tensor, &indices)?
            }
            _ => {
                let term = term.map(|component| {
                    match component {
                        Component::Part(part) => *part = self.visit(terms, *part, done)?,
                        Component::Ix(ix) => *ix = self.ix(ix)?,
                        Component::Cond(cond) => *cond = self.cond(cond)?,
                        Component::Binder(name) => *name = self.bound.get(name).copied().unwrap_or(*name),
                    }
                    Ok::<(), TypeError>(())
                })?;
                match term {
                    // A condition that has become true.
                    Term::Guard(cond, a) if cond.is_always() => a,
                    term => terms.add(term)?,
                }
            }
        };
        done.insert(id, new);
        Ok(new)
    }
}

/// A term for a place where names are bound already, with indices and tensors put in: what it binds gets fresh names
/// where that is needed.
///
/// # Errors
/// If an expression grows too large, or the term is ill-typed then.
pub(crate) fn instantiate(
    terms: &mut Terms,
    root: TermId,
    mut substitution: Substitution,
    is_bound_around: &dyn Fn(Name) -> bool,
    is_used: &dyn Fn(Name) -> bool,
) -> Result<TermId, TypeError> {
    let names = terms.names_of(root);
    let mut put_in = BTreeSet::new();
    substitution.indices.values().for_each(|ix| ix.collect_names(&mut put_in));
    for tensor in substitution.tensors.values() {
        let TermNames { free, bound } = terms.names_of(*tensor);
        put_in.extend(free);
        put_in.extend(bound);
    }
    let mut fresh = FxHashSet::default();
    for name in &names.bound {
        if is_bound_around(*name) || put_in.contains(name) {
            let base = name.as_str().trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
            let base = if base.is_empty() { name.as_str() } else { base };
            let taken = |new: Name| {
                is_bound_around(new)
                    || is_used(new)
                    || put_in.contains(&new)
                    || names.bound.contains(&new)
                    || names.free.contains(&new)
                    || fresh.contains(&new)
            };
            let new = Name::fresh(base, taken);
            fresh.insert(new);
            substitution.bound.insert(*name, new);
        }
    }
    substitution.apply(terms, root)
}

/// Canonical forms of terms that were asked for.
#[derive(Default)]
pub(crate) struct Canonical(FxHashMap<TermId, (TermId, usize)>);

impl Canonical {
    /// The form that a term shares with all that differ from it in bound names only.
    ///
    /// # Errors
    /// If an expression grows too large.
    pub(crate) fn of(&mut self, terms: &mut Terms, id: TermId) -> Result<TermId, TypeError> {
        Ok(self.form(terms, id)?.0)
    }

    /// The form, and the number of binders nested in it.
    fn form(&mut self, terms: &mut Terms, id: TermId) -> Result<(TermId, usize), TypeError> {
        if let Some(found) = self.0.get(&id) {
            return Ok(*found);
        }
        let term = terms.get(id).clone();
        let mut height = 0;
        let own = term.binders();
        let same = term.map(|component| {
            if let Component::Part(part) = component {
                let (form, inner) = self.form(terms, *part)?;
                height = height.max(inner);
                *part = form;
            }
            Ok::<(), TypeError>(())
        })?;
        let mut form = terms.add(same)?;
        if !own.is_empty() {
            height += 1;
            let called = |at: usize| Name::new(&format!("%{height}.{at}"));
            let bound = own.iter().enumerate().map(|(at, name)| (*name, called(at))).collect();
            form = Substitution { bound, ..Substitution::default() }.apply(terms, form)?;
        }
        self.0.insert(id, (form, height));
        Ok((form, height))
    }
}

#[cfg(test)]
mod tests {
    use certen_core::{Program, parse_program, print_term};
    use certen_index::Ix;
    use certen_syntax::{Name, Sources};

    use super::{Canonical, Substitution, depth_of, instantiate, tree_size};

    fn core(bindings: &str) -> Program {
        let text = format!("core t\nsize m, n\nwhere m >= 0, n >= 0\ninput x : f64[m, n]\n{bindings}\noutput a\n");
        let mut sources = Sources::new();
        let file = sources.add("t.core", text.as_str());
        parse_program(&sources, file).unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
    }

    #[test]
    fn terms_are_equal_up_to_bound_names() {
        for (a, b, equal) in [
            ("gen i in 0..m. gen j in 0..n. x[i, j]", "gen p in 0..m. gen q in 0..n. x[p, q]", true),
            // Which of two names is smaller makes no difference, nor do names that change places.
            ("gen i in 0..m. gen j in 0..m. x[i + j, 0]", "gen j in 0..m. gen i in 0..m. x[i + j, 0]", true),
            ("gen i in 0..m. gen j in 0..m. x[i, j]", "gen j in 0..m. gen i in 0..m. x[i, j]", false),
            ("sum i in 0..m. guard(i == 2, x[i, 0])", "sum k in 0..m. guard(2 == k, x[k, 0])", true),
            (
                "gen i in 0..m. let t = x[i] in gen j in 0..n. t[j]",
                "gen j in 0..m. let u = x[j] in gen i in 0..n. u[i]",
                true,
            ),
            ("gen i in 0..m. sum j in 0..n. x[i, j]", "gen i in 0..m. product j in 0..n. x[i, j]", false),
            ("gen i in 0..m. x[i, 0]", "gen i in 0..n. x[0, i]", false),
            (
                "iterate t in 0..n (u = x[0], v = x[0]) then (u = v, v = u) give u",
                "iterate s in 0..n (v = x[0], u = x[0]) then (v = u, u = v) give v",
                true,
            ),
        ] {
            let mut program = core(&format!("a = {a}\nb = {b}"));
            let mut canonical = Canonical::default();
            let mut form = |at: usize| canonical.of(&mut program.terms, program.bindings[at].term).unwrap();
            assert_eq!(form(0) == form(1), equal, "{a} and {b}");
        }
    }

    #[test]
    fn what_is_put_in_is_not_captured() {
        let mut program = core("a = gen i in 0..m. sum j in 0..n. x[i, j]");
        let certen_core::Term::Gen(_, _, body) = *program.terms.get(program.bindings[0].term) else { panic!() };
        let indices = [(Name::new("i"), Ix::var("j").add(&Ix::from(1)).unwrap())].into_iter().collect();
        let substitution = Substitution { indices, ..Substitution::default() };
        let around = |name: Name| name.as_str() == "j";
        let put = instantiate(&mut program.terms, body, substitution, &around, &|_| false).unwrap();
        assert_eq!(print_term(&program.terms, put), "sum j_1 in 0..n. x[j + 1, j_1]");
        let names = program.terms.names_of(put);
        assert!(names.free.contains(&Name::new("j")) && !names.bound.contains(&Name::new("j")));
    }

    #[test]
    fn shared_terms_are_counted_as_often_as_they_stand() {
        let program = core("a = gen i in 0..m. (x[i, 0] + x[i, 0]) * (x[i, 0] + x[i, 0])");
        let root = program.bindings[0].term;
        assert_eq!((depth_of(&program.terms, root), tree_size(&program.terms, root)), (5, 12));
    }
}
