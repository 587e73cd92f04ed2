//! Names in terms: what is free, what is bound, terms put in the place of names, and terms compared up to bound names.
//!
//! Names are identities in Core: what a term binds is bound nowhere around it. So a name that a term binds is not free
//! in it, and one map of new names serves for a whole term, shared parts and all. A term that is copied to another
//! place keeps its bound names unless one of them is bound around that place, or occurs in what is put into it; those
//! are made fresh.
//!
//! Two terms that differ in bound names only have the same [`canonical`] form: there every binder is called by its
//! height, the number of binders that are nested inside of it. Heights depend on nothing outside of a term, so forms
//! are kept for terms wherever they stand, and hash-consing makes equal forms the same term.
//!
//! Works by recursion; [`depth_of`] lets callers refuse terms that are nested too deeply for it.

use std::collections::BTreeSet;

use certen_core::{Carried, Range, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

/// Terms that are nested more deeply are refused.
pub(crate) const MAX_NESTING: usize = 500;

/// A term and everything in it, each once, in no certain order.
pub(crate) fn reachable(terms: &Terms, root: TermId) -> Vec<TermId> {
    let mut seen = FxHashSet::default();
    let mut found = Vec::new();
    let mut todo = vec![root];
    while let Some(id) = todo.pop() {
        if seen.insert(id) {
            found.push(id);
            todo.extend(terms.get(id).parts());
        }
    }
    found
}

/// How deeply a term is nested.
pub(crate) fn depth_of(terms: &Terms, root: TermId) -> usize {
    let mut all = reachable(terms, root);
    all.sort_unstable();
    let mut depths: FxHashMap<TermId, usize> = FxHashMap::default();
    for id in all {
        let inner = terms.get(id).parts().iter().filter_map(|part| depths.get(part)).max().copied();
        depths.insert(id, inner.unwrap_or(0) + 1);
    }
    depths.get(&root).copied().unwrap_or(0)
}

/// How large a term is as a tree.
pub(crate) fn tree_size(terms: &Terms, root: TermId) -> u64 {
    let mut all = reachable(terms, root);
    all.sort_unstable();
    let mut sizes: FxHashMap<TermId, u64> = FxHashMap::default();
    for id in all {
        let inner =
            terms.get(id).parts().iter().filter_map(|part| sizes.get(part)).fold(1, |a: u64, b| a.saturating_add(*b));
        sizes.insert(id, inner);
    }
    sizes.get(&root).copied().unwrap_or(0)
}

/// The names of a term.
#[derive(Default)]
pub(crate) struct Names {
    /// Sizes, indices and tensors from outside.
    pub free: BTreeSet<Name>,
    /// What is bound inside.
    pub bound: BTreeSet<Name>,
}

/// The names of a term.
pub(crate) fn names_of(terms: &Terms, root: TermId) -> Names {
    let mut names = Names::default();
    for id in reachable(terms, root) {
        let Names { free, bound } = &mut names;
        let term = terms.get(id);
        if let Term::Ref(name, _) = term {
            free.insert(*name);
        }
        bound.extend(binders(term));
        each_ix(term, &mut |ix| ix.collect_names(free));
        each_cond(term, &mut |cond: &Cond| cond.collect_names(free));
    }
    let Names { free, bound } = &mut names;
    free.retain(|name| !bound.contains(name));
    names
}

/// The names that a term itself binds.
pub(crate) fn binders(term: &Term) -> Vec<Name> {
    match term {
        Term::Gen(name, ..) | Term::Reduce(_, name, ..) | Term::Let(name, ..) => vec![*name],
        Term::Iterate(_, step, states, _) => [*step].into_iter().chain(states.iter().map(|s| s.name)).collect(),
        _ => Vec::new(),
    }
}

/// The index expressions of a term itself, outside of conditions.
pub(crate) fn each_ix(term: &Term, ix: &mut dyn FnMut(&Ix)) {
    match term {
        Term::Gen(_, Range { lo, hi }, _) | Term::Reduce(_, _, Range { lo, hi }, ..) => {
            ix(lo);
            ix(hi);
        }
        Term::Select(_, indices) => indices.iter().for_each(ix),
        Term::Iterate(e, ..)
        | Term::Index(e, _)
        | Term::PadLeft(e, _)
        | Term::PadRight(e, _)
        | Term::TruncLeft(e, _)
        | Term::TruncRight(e, _) => ix(e),
        _ => {}
    }
}

/// The conditions of a term itself.
pub(crate) fn each_cond(term: &Term, cond: &mut dyn FnMut(&Cond)) {
    if let Term::Guard(c, _) | Term::If(c, ..) | Term::Reduce(_, _, _, c, _) = term {
        cond(c);
    }
}

/// A term with its parts and index expressions mapped.
pub(crate) fn mapped(
    term: &Term,
    part: &mut dyn FnMut(TermId) -> Result<TermId, TypeError>,
    ix: &mut dyn FnMut(&Ix) -> Result<Ix, IxError>,
    cond: &mut dyn FnMut(&Cond) -> Result<Cond, IxError>,
    binder: &mut dyn FnMut(Name) -> Name,
) -> Result<Term, TypeError> {
    let mut range = |range: &Range| Ok::<Range, IxError>(Range { lo: ix(&range.lo)?, hi: ix(&range.hi)? });
    Ok(match term {
        Term::Ref(..) | Term::Literal(..) | Term::Undefined(_) => term.clone(),
        Term::Gen(name, r, a) => Term::Gen(binder(*name), range(r)?, part(*a)?),
        Term::Reduce(op, name, r, c, a) => Term::Reduce(*op, binder(*name), range(r)?, cond(c)?, part(*a)?),
        Term::Guard(c, a) => Term::Guard(cond(c)?, part(*a)?),
        Term::If(c, a, b) => Term::If(cond(c)?, part(*a)?, part(*b)?),
        Term::Let(name, a, b) => Term::Let(binder(*name), part(*a)?, part(*b)?),
        Term::Iterate(times, step, states, at) => {
            let mut state =
                |s: &Carried| Ok(Carried { name: binder(s.name), init: part(s.init)?, next: part(s.next)? });
            let states = states.iter().map(&mut state).collect::<Result<_, TypeError>>()?;
            Term::Iterate(ix(times)?, binder(*step), states, *at)
        }
        Term::Select(a, indices) => {
            Term::Select(part(*a)?, indices.iter().map(&mut *ix).collect::<Result<_, IxError>>()?)
        }
        Term::Flatten(a) => Term::Flatten(part(*a)?),
        Term::Split(k, a) => Term::Split(*k, part(*a)?),
        Term::Transpose(a) => Term::Transpose(part(*a)?),
        Term::Concat(a, b) => Term::Concat(part(*a)?, part(*b)?),
        Term::PadLeft(k, a) => Term::PadLeft(ix(k)?, part(*a)?),
        Term::PadRight(k, a) => Term::PadRight(ix(k)?, part(*a)?),
        Term::TruncLeft(k, a) => Term::TruncLeft(ix(k)?, part(*a)?),
        Term::TruncRight(k, a) => Term::TruncRight(ix(k)?, part(*a)?),
        Term::Index(e, elem) => Term::Index(ix(e)?, *elem),
        Term::Unary(op, a) => Term::Unary(*op, part(*a)?),
        Term::Binary(op, a, b) => Term::Binary(*op, part(*a)?, part(*b)?),
        Term::Choose(a, b, c) => Term::Choose(part(*a)?, part(*b)?, part(*c)?),
        Term::Fma(a, b, c) => Term::Fma(part(*a)?, part(*b)?, part(*c)?),
        Term::Cast(elem, a) => Term::Cast(*elem, part(*a)?),
    })
}

/// The same term with one part in another's place. A `let` whose value has a type of another form is told to its body.
/// So who replaces one part after the other asks [`part`] for each when its turn comes: such a body is not what it was
/// before.
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
    let mut at = 0;
    let mut part = |old: TermId| {
        at += 1;
        Ok(if at == number + 1 { new } else { old })
    };
    let term = mapped(&term, &mut part, &mut |ix| Ok(ix.clone()), &mut |cond| Ok(cond.clone()), &mut |name| name)?;
    terms.add(term)
}

/// The part of a term at a position.
pub(crate) fn part(terms: &Terms, id: TermId, number: usize) -> Option<TermId> {
    terms.get(id).parts().get(number).copied()
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
            other => {
                let term = mapped(
                    other,
                    &mut |part| self.visit(terms, part, done),
                    &mut |ix| self.ix(ix),
                    &mut |cond| self.cond(cond),
                    &mut |name| self.bound.get(&name).copied().unwrap_or(name),
                )?;
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
    let names = names_of(terms, root);
    let mut put_in = BTreeSet::new();
    substitution.indices.values().for_each(|ix| ix.collect_names(&mut put_in));
    for tensor in substitution.tensors.values() {
        let Names { free, bound } = names_of(terms, *tensor);
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
        let mut part = |part: TermId| {
            let (form, inner) = self.form(terms, part)?;
            height = height.max(inner);
            Ok(form)
        };
        let same = mapped(&term, &mut part, &mut |ix| Ok(ix.clone()), &mut |c| Ok(c.clone()), &mut |name| name)?;
        let mut form = terms.add(same)?;
        let own = binders(&term);
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

    use super::{Canonical, Substitution, depth_of, instantiate, names_of, tree_size};

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
        let names = names_of(&program.terms, put);
        assert!(names.free.contains(&Name::new("j")) && !names.bound.contains(&Name::new("j")));
    }

    #[test]
    fn shared_terms_are_counted_as_often_as_they_stand() {
        let program = core("a = gen i in 0..m. (x[i, 0] + x[i, 0]) * (x[i, 0] + x[i, 0])");
        let root = program.bindings[0].term;
        assert_eq!((depth_of(&program.terms, root), tree_size(&program.terms, root)), (5, 12));
    }
}
