//! Tensors that are computed as a whole before an element of them is read: `let`s, iterations, flattened tensors.
//!
//! Their statements are put into the outermost loop around them that they depend on: what does not change in a loop is
//! computed before it, and once. No condition is left on the way, since accesses may need it; where the loops might not
//! run at all, the statements stand under the condition that they do. What was computed is remembered in its block, so
//! that the states of one iteration share one loop.
//!
//! An iteration keeps each state twice: a step computes the next values from the present ones, and then they change
//! places. A `let` that is a next state is stored there, and what several states are made of is computed once. States
//! without dimensions are locals.

use std::collections::BTreeSet;
use std::rc::Rc;

use certen_core::{Carried, Range, TensorType, Term, TermId};
use certen_index::{Cond, Ix, Verdict};
use certen_syntax::Name;

use super::store::Destination;
use super::{Block, Bound, Env, Lowered, Lowering, Stored, bad_index, no_part};
use crate::ir::{Stmt, Target};

/// What is computed at once: the states of an iteration, or another term.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Whole<'a> {
    Iteration(&'a Ix, Name, &'a [Carried]),
    Term(TermId),
}

impl<'a> Lowering<'a> {
    fn key(&self, id: TermId) -> Whole<'a> {
        match self.term(id) {
            Term::Iterate(times, step, states, _) => Whole::Iteration(times, *step, states),
            _ => Whole::Term(id),
        }
    }

    /// Whether two terms are states of the same iteration.
    pub(super) fn same_iteration(&self, a: TermId, b: TermId) -> bool {
        matches!(self.term(a), Term::Iterate(..)) && self.key(a) == self.key(b)
    }

    /// Where the states of an iteration, or the elements of another term, are kept; they are computed if they are not
    /// there yet.
    pub(super) fn whole(&mut self, id: TermId, env: Env) -> Lowered<Rc<[Stored]>> {
        let key = self.key(id);
        if let Some(found) = self.blocks.iter().rev().find_map(|block| self.found(block, key, env)) {
            return Ok(found);
        }
        self.placed(
            id,
            env,
            |lowering, surely| {
                let stored: Rc<[Stored]> = match key {
                    Whole::Iteration(_, _, states) => {
                        let state = |state: &Carried| lowering.declared(state.name, state.init, env, surely);
                        states.iter().map(state).collect::<Lowered<_>>()?
                    }
                    Whole::Term(_) => [lowering.declared(Name::new("whole"), id, env, surely)?].into(),
                };
                lowering.block().whole.entry(key).or_default().push((env, Rc::clone(&stored)));
                Ok(stored)
            },
            |lowering, stored| match (key, stored.first()) {
                (Whole::Iteration(times, step, states), _) => lowering.iteration(times, step, states, stored, env),
                (Whole::Term(_), Some(stored)) => lowering.store(id, env, stored),
                (Whole::Term(_), None) => Err(no_part()),
            },
        )
    }

    /// What a block remembers. Names are never bound twice, so under an environment that extends the one in which it was
    /// computed, a term is the same.
    fn found(&self, block: &Block<'a>, key: Whole<'a>, env: Env) -> Option<Rc<[Stored]>> {
        let extends = |outer: &Env| {
            let mut env = env;
            while env != *outer {
                match env.and_then(|at| self.scopes.get(at)) {
                    Some(scope) => env = scope.outer,
                    None => return false,
                }
            }
            true
        };
        block.whole.get(&key)?.iter().find(|(outer, _)| extends(outer)).map(|(_, stored)| Rc::clone(stored))
    }

    /// The environment inside a `let`. Its value is computed unless it is there already, by this name or another one: states of
    /// one iteration often share what their next values are made of, and functions that are called compute the same mean.
    pub(super) fn with_let(&mut self, name: Name, value: TermId, env: Env) -> Lowered<Env> {
        let names = self.names_in(value);
        let known = |block: &Block<'a>| {
            let same = |outer: Env| names.iter().all(|name| self.lookup(outer, *name) == self.lookup(env, *name));
            block.lets.get(&value)?.iter().find(|(outer, _)| same(*outer)).map(|(_, stored)| stored.clone())
        };
        let stored = match self.blocks.iter().rev().find_map(known) {
            Some(stored) => stored,
            None => {
                let (stored, level) = self.bound(name, value, env)?;
                if let Some(block) = self.blocks.get_mut(level) {
                    block.lets.entry(value).or_default().push((env, stored.clone()));
                }
                stored
            }
        };
        Ok(self.bind(env, name, Bound::Tensor(stored)))
    }

    /// The names of tensors, indices and sizes in a term.
    fn names_in(&mut self, root: TermId) -> Rc<BTreeSet<Name>> {
        if let Some(known) = self.mentioned.get(&root) {
            return Rc::clone(known);
        }
        let mut names = BTreeSet::new();
        for id in self.program.terms.reachable([root]) {
            if let Term::Ref(name, _) = self.term(id) {
                names.insert(*name);
            }
            self.term(id).collect_names(&mut names);
        }
        let names = Rc::new(names);
        self.mentioned.insert(root, Rc::clone(&names));
        names
    }

    /// Where the value of a `let` is kept: where it is already, in a local, or in a buffer; and the block that has it.
    fn bound(&mut self, name: Name, value: TermId, env: Env) -> Lowered<(Stored, usize)> {
        let innermost = self.blocks.len().saturating_sub(1);
        match self.term(value) {
            Term::Ref(other, _) => return Ok((self.stored(env, *other)?, innermost)),
            Term::Table(table) => return Ok((self.constant(table), innermost)),
            Term::Iterate(.., at) => {
                let stored = self.whole(value, env)?.get(*at).cloned().ok_or_else(no_part)?;
                return Ok((stored, innermost));
            }
            _ => {}
        }
        if self.program.terms.ty(value).is_scalar() {
            let result = self.deeper(|lowering| lowering.value(value, env, Vec::new()))?;
            let ty = self.out.ty(result).clone();
            if let Term::Ref(name, _) = self.out.get(result) {
                return Ok((Stored { name: *name, ty }, innermost));
            }
            let name = self.fresh(name, false);
            self.push(Stmt::Local { name, elem: ty.elem, init: Some(result) });
            return Ok((Stored { name, ty }, innermost));
        }
        if let Some((_, next)) = self.nexts.get(&name).filter(|(level, _)| *level == innermost).cloned() {
            let (term, env, read) = self.head(value, env, Vec::new())?;
            let title = self.fresh(name, false);
            self.push(Stmt::Nest(title));
            self.into(term, env, read, Destination::buffer(next.name))?;
            return Ok((next, innermost));
        }
        let declare = |lowering: &mut Self, surely: bool| {
            // Outside of a loop that may not run it is computed only for that loop, and not for the next piece of the range.
            let level = if surely { lowering.blocks.len().saturating_sub(1) } else { innermost };
            Ok((lowering.declared(name, value, env, surely)?, level))
        };
        self.placed(value, env, declare, |lowering, (stored, _)| lowering.store(value, env, stored))
    }

    /// A local or buffer of this block for a term. A local that is not surely assigned begins as zero.
    fn declared(&mut self, name: Name, term: TermId, env: Env, surely: bool) -> Lowered<Stored> {
        let ty = self.program.terms.ty(term);
        let shape = ty.shape.iter().map(|size| self.ix(env, size)).collect::<Lowered<Vec<Ix>>>()?;
        let stored = Stored { name: self.fresh(name, false), ty: TensorType::new(ty.elem, shape) };
        if stored.ty.is_scalar() {
            let init = if surely { None } else { Some(self.zero(term)?) };
            self.push(Stmt::Local { name: stored.name, elem: ty.elem, init });
        } else {
            self.allocated(&stored);
        }
        Ok(stored)
    }

    fn allocated(&mut self, stored: &Stored) {
        self.push(Stmt::Alloc(stored.name, stored.ty.clone()));
        self.block().buffers.push(stored.name);
    }

    /// Every step of an iteration, into the states that are declared already.
    fn iteration(&mut self, times: &Ix, step: Name, states: &'a [Carried], stored: &[Stored], env: Env) -> Lowered<()> {
        let local = |name: Name, value: TermId| Stmt::Assign { target: Target::Local(name), op: None, value };
        let mut next = Vec::with_capacity(states.len());
        for (state, present) in states.iter().zip(stored) {
            if present.ty.is_scalar() {
                let first = self.value(state.init, env, Vec::new())?;
                self.push(local(present.name, first));
                next.push(None);
            } else {
                let name = self.fresh(Name::new(&format!("{}_next", present.name)), true);
                let twin = Stored { name, ty: present.ty.clone() };
                self.allocated(&twin);
                next.push(Some(twin));
                self.store(state.init, env, present)?;
            }
        }
        let range = Range::to(self.ix(env, times)?);
        let index = self.open_loop(step, &range)?;
        let (level, outside) = (self.blocks.len() - 1, self.level_of(stored.first().map(|s| s.name)));
        let mut inner = self.bind(env, step, Bound::Index(Ix::var(index)));
        for (state, present) in states.iter().zip(stored) {
            // Inside, a state has another value in each step.
            self.levels.insert(present.name, level);
            inner = self.bind(inner, state.name, Bound::Tensor(present.clone()));
        }
        let twins =
            states.iter().zip(&next).filter_map(|(state, twin)| Some((self.result_of(state.next)?, twin.clone()?)));
        let twins: Vec<(Name, Stored)> = twins.collect();
        self.nexts.extend(twins.iter().map(|(name, twin)| (*name, (level, twin.clone()))));
        let mut scalars = Vec::new();
        for ((state, present), next) in states.iter().zip(stored).zip(&next) {
            match next {
                Some(twin) => self.next(state.next, inner, twin)?,
                None => scalars.push((present, self.value(state.next, inner, Vec::new())?)),
            }
        }
        twins.iter().for_each(|(name, _)| {
            self.nexts.remove(name);
        });
        // All values are computed from the old states; the last one can be assigned at once.
        let last = scalars.pop();
        let mut changed = Vec::new();
        for (present, value) in scalars {
            let (_, kept) = self.local(&format!("{}_next", present.name), present.ty.elem, Some(value))?;
            changed.push((present, kept));
        }
        for (present, value) in last.into_iter().chain(changed) {
            self.push(local(present.name, value));
        }
        for (present, twin) in stored.iter().zip(&next) {
            if let Some(twin) = twin {
                self.push(Stmt::Swap(present.name, twin.name));
            }
        }
        self.close_loop(index, range);
        stored.iter().for_each(|present| {
            self.levels.insert(present.name, outside);
        });
        Ok(())
    }

    /// The `let` whose value is the next state as a whole; it needs no buffer of its own.
    fn result_of(&self, mut next: TermId) -> Option<Name> {
        let mut lets = Vec::new();
        while let Term::Let(name, value, body) = self.term(next) {
            let is_made = !matches!(self.term(*value), Term::Ref(..) | Term::Iterate(..));
            lets.extend(is_made.then_some(*name));
            next = *body;
        }
        match self.term(next) {
            Term::Ref(name, _) if lets.contains(name) => Some(*name),
            _ => None,
        }
    }

    /// The next value of a state, where it is not there already.
    fn next(&mut self, next: TermId, env: Env, twin: &Stored) -> Lowered<()> {
        let (term, env, read) = self.head(next, env, Vec::new())?;
        match self.term(term) {
            Term::Ref(name, _) if self.stored(env, *name)?.name == twin.name => Ok(()),
            _ => {
                self.push(Stmt::Nest(twin.name));
                self.into(term, env, read, Destination::buffer(twin.name))
            }
        }
    }

    fn level_of(&self, names: impl IntoIterator<Item = Name>) -> usize {
        names.into_iter().filter_map(|name| self.levels.get(&name)).copied().max().unwrap_or(0)
    }

    /// The innermost of the open blocks that give a name in the term its value.
    fn depends_on(&mut self, root: TermId, env: Env) -> usize {
        let names = self.names_in(root);
        let mut used = BTreeSet::new();
        for name in names.iter() {
            match self.lookup(env, *name) {
                Some(Bound::Index(ix)) => ix.collect_names(&mut used),
                Some(Bound::Tensor(stored)) => {
                    used.insert(stored.name);
                    stored.ty.shape.iter().for_each(|size| size.collect_names(&mut used));
                }
                None => {}
            }
        }
        self.level_of(used)
    }

    /// Declares and computes something in the outermost block that it can stand in.
    fn placed<T>(
        &mut self,
        term: TermId,
        env: Env,
        declare: impl FnOnce(&mut Self, bool) -> Lowered<T>,
        compute: impl FnOnce(&mut Self, &T) -> Lowered<()>,
    ) -> Lowered<T> {
        let innermost = self.blocks.len().saturating_sub(1);
        let (mut level, mut needed) = (innermost, if innermost > 0 { self.depends_on(term, env) } else { 0 });
        while level > needed
            && let Some(range) = &self.blocks[level].range
        {
            let mut names = BTreeSet::new();
            range.lo.collect_names(&mut names);
            range.hi.collect_names(&mut names);
            let bounds = self.level_of(names);
            if bounds >= level {
                break;
            }
            needed = needed.max(bounds);
            level -= 1;
        }
        let inner = self.blocks.split_off(level + 1);
        let mut runs = Vec::new();
        for range in inner.iter().filter_map(|block| block.range.as_ref()) {
            let cond = Cond::lt(&range.lo, &range.hi).map_err(bad_index)?;
            if self.prove(&cond) != Verdict::Yes {
                runs.push(cond);
            }
        }
        let above = if inner.is_empty() { self.above } else { Some(level) };
        let outside = std::mem::replace(&mut self.above, above);
        let made = declare(self, runs.is_empty())?;
        if runs.is_empty() {
            self.deeper(|lowering| compute(lowering, &made))?;
        } else {
            self.open(runs.clone())?;
            self.deeper(|lowering| compute(lowering, &made))?;
            let then = self.close();
            let cond = runs.into_iter().reduce(Cond::and).unwrap_or_else(Cond::always);
            self.push(Stmt::If { cond, then, otherwise: Vec::new() });
        }
        self.above = outside;
        self.blocks.extend(inner);
        Ok(made)
    }
}
