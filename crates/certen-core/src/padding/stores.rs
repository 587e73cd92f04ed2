//! The stores of a tensor: which terms compute its element at given symbolic indices, and under which conditions.
//!
//! A walk goes down from a term with one index expression per dimension. Operators that move elements change the
//! indices, binders substitute an index for a name, guards and positions leave a condition on the path, `if` and
//! concatenation fork it. A walk ends where something is computed: at a scalar operation, an input, an iteration. It is a
//! descent without return, so its surroundings are one table whose changes are undone at the next fork.

use std::collections::{BTreeMap, BTreeSet};

use certen_index::{Cond, Ix, IxError};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::ops::ReduceOp;
use crate::program::Program;
use crate::term::{Range, Term, TermId};

/// Why a walk was given up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    /// Too many steps or stores.
    Budget,
    /// An index expression cannot be built.
    Index(IxError),
}

impl From<IxError> for Stop {
    fn from(error: IxError) -> Stop {
        Stop::Index(error)
    }
}

/// One way to compute an element.
#[derive(Clone, Debug)]
pub(super) struct Store {
    /// The term that computes it.
    pub(super) term: TermId,
    /// When it does.
    pub(super) conds: Vec<Cond>,
}

/// All stores of a tensor at some indices.
#[derive(Clone, Debug, Default)]
pub(super) struct Stores {
    pub(super) list: Vec<Store>,
    /// The guards, pads and splits on the way to them.
    pub(super) sources: BTreeSet<TermId>,
    /// The ranges of the names that the walk made: the first and the last value.
    pub(super) made: Vec<(Name, Ix, Ix)>,
}

/// What a name stands for on a path.
#[derive(Clone, Debug)]
enum NameMeaning {
    Index(Ix),
    Let(TermId),
    /// A state of an iteration.
    State,
}

/// A place on a path that is still to be followed, with the lengths that the records had there.
struct Fork {
    term: TermId,
    indices: Vec<Ix>,
    cond: Cond,
    changes: usize,
    conds: usize,
}

/// Steps of all walks of a program together, and stores of one tensor.
const STEPS: usize = 4_000_000;
const MOST_STORES: usize = 2_000;

/// A path of this length is asked whether it is worth following, and again whenever it is twice as long.
const LONG: usize = 64;

/// Whether a store under these conditions would matter.
pub(super) type Matters<'m> = dyn FnMut(&[Cond]) -> bool + 'm;

/// Walks over the terms of a program.
pub(super) struct StoreWalker<'a> {
    pub(super) program: &'a Program,
    bindings: FxHashMap<Name, TermId>,
    meanings: FxHashMap<Name, NameMeaning>,
    /// What names meant before, to be undone.
    changes: Vec<(Name, Option<NameMeaning>)>,
    /// Names that conditions may mention already.
    taken: BTreeMap<Name, usize>,
    steps: usize,
}

/// Where a descent came to its end.
enum PathEnd {
    /// Something is computed.
    Store,
    /// Nothing is: a condition on the path never holds.
    Nothing,
    /// There are no indices left for this term.
    Head,
}

impl<'a> StoreWalker<'a> {
    pub(super) fn new(program: &'a Program) -> StoreWalker<'a> {
        let taken = program.sizes.iter().map(|&size| (size, 1)).collect();
        let bindings = program.bindings.iter().map(|binding| (binding.name, binding.term)).collect();
        let (meanings, changes) = (FxHashMap::default(), Vec::new());
        StoreWalker { program, bindings, meanings, changes, taken, steps: STEPS }
    }

    pub(super) fn spend(&mut self, steps: usize) -> Result<(), Stop> {
        self.steps = self.steps.checked_sub(steps).ok_or(Stop::Budget)?;
        Ok(())
    }

    /// How many changes there are to undo.
    pub(super) fn mark(&self) -> usize {
        self.changes.len()
    }

    pub(super) fn undo(&mut self, mark: usize) {
        while self.changes.len() > mark
            && let Some((name, before)) = self.changes.pop()
        {
            match before {
                Some(meaning) => self.meanings.insert(name, meaning),
                None => self.meanings.remove(&name),
            };
        }
    }

    fn mean(&mut self, name: Name, meaning: NameMeaning) {
        let before = self.meanings.insert(name, meaning);
        self.changes.push((name, before));
    }

    /// Names a tensor from here on.
    pub(super) fn enter_let(&mut self, name: Name, value: TermId) {
        self.mean(name, NameMeaning::Let(value));
    }

    pub(super) fn enter_state(&mut self, name: Name) {
        self.mean(name, NameMeaning::State);
    }

    /// An index that stands for itself from here on.
    pub(super) fn enter_index(&mut self, name: Name) {
        *self.taken.entry(name).or_default() += 1;
    }

    pub(super) fn leave_index(&mut self, name: Name) {
        if let Some(count) = self.taken.get_mut(&name) {
            *count -= 1;
            if *count == 0 {
                self.taken.remove(&name);
            }
        }
    }

    /// A name that no condition mentions; to be left with [`StoreWalker::leave_index`].
    pub(super) fn fresh(&mut self, hint: &str) -> Name {
        let name = Name::fresh(hint, |name| self.taken.contains_key(&name));
        self.enter_index(name);
        name
    }

    fn ix(&self, ix: &Ix) -> Result<Ix, IxError> {
        if ix.as_constant().is_some() || self.meanings.is_empty() {
            return Ok(ix.clone());
        }
        ix.substitute(&|name| match self.meanings.get(&name) {
            Some(NameMeaning::Index(ix)) => Some(ix.clone()),
            _ => None,
        })
    }

    fn cond(&self, cond: &Cond) -> Result<Cond, IxError> {
        cond.substitute(&|name| match self.meanings.get(&name) {
            Some(NameMeaning::Index(ix)) => Some(ix.clone()),
            _ => None,
        })
    }

    fn range(&self, range: &Range) -> Result<Range, IxError> {
        Ok(Range { lo: self.ix(&range.lo)?, hi: self.ix(&range.hi)? })
    }

    /// A size of a term, where the walk is.
    fn size(&self, term: TermId, dimension: usize) -> Result<Ix, IxError> {
        let size = self.program.terms.ty(term).shape.get(dimension);
        size.map_or(Ok(Ix::from(0)), |size| self.ix(size))
    }

    /// Every store of the element of a term at these indices, outermost first, and what was found on the way. Long paths
    /// that do not matter are not followed to their ends.
    pub(super) fn stores(&mut self, term: TermId, indices: &[Ix], matters: &mut Matters) -> Result<Stores, Stop> {
        let mark = self.mark();
        let mut found = Stores::default();
        let result = self.collect(term, indices, matters, &mut found);
        self.undo(mark);
        for (name, ..) in &found.made {
            self.leave_index(*name);
        }
        result.map(|()| found)
    }

    fn collect(&mut self, term: TermId, indices: &[Ix], matters: &mut Matters, found: &mut Stores) -> Result<(), Stop> {
        let indices = indices.iter().rev().cloned().collect();
        let mut forks = vec![Fork { term, indices, cond: Cond::always(), changes: self.mark(), conds: 0 }];
        let mut conds = Vec::new();
        while let Some(mut fork) = forks.pop() {
            self.undo(fork.changes);
            conds.truncate(fork.conds);
            if !require(&mut conds, std::mem::replace(&mut fork.cond, Cond::always())) {
                continue;
            }
            let (end, term) = self.descend(fork, &mut conds, &mut forks, matters, found)?;
            if matches!(end, PathEnd::Store | PathEnd::Head) {
                if found.list.len() == MOST_STORES {
                    return Err(Stop::Budget);
                }
                self.spend(conds.len())?;
                found.list.push(Store { term, conds: conds.clone() });
            }
        }
        Ok(())
    }

    /// If the tensor at the first of its indices is a concatenation: the size of its left part.
    pub(super) fn head(&mut self, term: TermId, indices: &[Ix]) -> Result<Option<Ix>, Stop> {
        let (mark, mut found, mut forks, mut conds) = (self.mark(), Stores::default(), Vec::new(), Vec::new());
        let indices = indices.iter().rev().cloned().collect();
        let fork = Fork { term, indices, cond: Cond::always(), changes: mark, conds: 0 };
        let result = self.descend(fork, &mut conds, &mut forks, &mut |_| true, &mut found);
        let head = match result {
            Ok((PathEnd::Head, term)) if forks.is_empty() => match self.program.terms.get(term) {
                Term::Concat(left, _) => self.size(*left, 0).map(Some),
                _ => Ok(None),
            },
            Ok(_) => Ok(None),
            Err(stop) => {
                self.undo(mark);
                return Err(stop);
            }
        };
        self.undo(mark);
        for (name, ..) in &found.made {
            self.leave_index(*name);
        }
        Ok(head?)
    }

    /// Follows one path to its end; what forks off is left for later. Indices have the outermost last.
    fn descend(
        &mut self,
        fork: Fork,
        conds: &mut Vec<Cond>,
        forks: &mut Vec<Fork>,
        matters: &mut Matters,
        found: &mut Stores,
    ) -> Result<(PathEnd, TermId), Stop> {
        let Fork { mut term, indices, .. } = fork;
        let mut path = StorePath { indices, conds, forks, found };
        let (mut length, mut long) = (0, LONG);
        loop {
            self.spend(1)?;
            length += 1;
            if length == long {
                long *= 2;
                if !matters(path.conds) {
                    return Ok((PathEnd::Nothing, term));
                }
            }
            match self.step(term, &mut path) {
                Ok(next) => term = next,
                Err(Halt::End(end)) => return Ok((end, term)),
                Err(Halt::Stop(stop)) => return Err(stop),
            }
        }
    }

    /// From a term to the one in it that a path goes on with. One arm for each construct, as in the evaluator: a new one
    /// has to say here what it stores.
    fn step(&mut self, term: TermId, path: &mut StorePath<'_>) -> Result<TermId, Halt> {
        let terms = &self.program.terms;
        Ok(match terms.get(term) {
            Term::Ref(name, _) => match self.meanings.get(name) {
                Some(NameMeaning::Let(value)) => *value,
                Some(_) => return Err(Halt::End(PathEnd::Store)),
                None => *self.bindings.get(name).ok_or(Halt::End(PathEnd::Store))?,
            },
            Term::Gen(name, range, body) => {
                let (first, range) = (path.first()?, self.range(range)?);
                let at = range.lo.add(&first)?;
                path.require(Cond::le(&range.lo, &at)?)?;
                path.require(Cond::lt(&at, &range.hi)?)?;
                self.mean(*name, NameMeaning::Index(at));
                *body
            }
            Term::Reduce(ReduceOp::Sum, name, range, cond, body) => {
                let range = self.range(range)?;
                let own = self.fresh(name.as_str());
                let at = Ix::var(own);
                path.found.made.push((own, range.lo.clone(), range.hi.sub(&Ix::from(1))?));
                self.mean(*name, NameMeaning::Index(at.clone()));
                let inside = [Cond::le(&range.lo, &at)?, Cond::lt(&at, &range.hi)?, self.cond(cond)?];
                inside.into_iter().try_for_each(|cond| path.require(cond))?;
                *body
            }
            Term::Guard(cond, body) => {
                path.found.sources.insert(term);
                path.require(self.cond(cond)?)?;
                *body
            }
            Term::If(cond, then, otherwise) => {
                let cond = self.cond(cond)?;
                path.fork(*otherwise, path.indices.clone(), cond.not()?, self.mark());
                path.require(cond)?;
                *then
            }
            Term::Let(name, value, body) => {
                self.enter_let(*name, *value);
                *body
            }
            Term::Select(tensor, chosen) => {
                for ix in chosen.iter().rev() {
                    path.indices.push(self.ix(ix)?);
                }
                *tensor
            }
            Term::Flatten(a) => {
                self.unflatten(*a, path)?;
                *a
            }
            Term::Split(k, a) => {
                let first = path.first()?;
                path.found.sources.insert(term);
                let at = first.scale(*k)?.add(&path.first()?)?;
                path.require(Cond::lt(&at, &self.size(*a, 0)?)?)?;
                path.indices.push(at);
                *a
            }
            Term::Transpose(a) => {
                let (first, second) = (path.first()?, path.first()?);
                path.indices.extend([first, second]);
                *a
            }
            Term::Concat(a, b) => {
                let (first, size) = (path.first()?, self.size(*a, 0)?);
                let left = Cond::lt(&first, &size)?;
                let mut right = path.indices.clone();
                right.push(first.sub(&size)?);
                path.fork(*b, right, left.not()?, self.mark());
                path.require(left)?;
                path.indices.push(first);
                *a
            }
            Term::PadLeft(k, a) => {
                let (first, k) = (path.first()?, self.ix(k)?);
                path.found.sources.insert(term);
                path.require(Cond::le(&k, &first)?)?;
                path.indices.push(first.sub(&k)?);
                *a
            }
            Term::PadRight(_, a) => {
                let first = path.first()?;
                path.found.sources.insert(term);
                path.require(Cond::lt(&first, &self.size(*a, 0)?)?)?;
                path.indices.push(first);
                *a
            }
            Term::TruncLeft(k, a) => {
                let first = path.first()?.add(&self.ix(k)?)?;
                path.indices.push(first);
                *a
            }
            Term::TruncRight(_, a) => {
                let first = path.first()?;
                path.indices.push(first);
                *a
            }
            Term::Reduce(..)
            | Term::Iterate(..)
            | Term::Literal(..)
            | Term::Table(_)
            | Term::Index(..)
            | Term::Undefined(_)
            | Term::Unary(..)
            | Term::Binary(..)
            | Term::Choose(..)
            | Term::Fma(..)
            | Term::Cast(..) => return Err(Halt::End(PathEnd::Store)),
        })
    }

    /// The first index into a flattened term becomes two into the term itself.
    fn unflatten(&mut self, a: TermId, path: &mut StorePath<'_>) -> Result<(), Halt> {
        let (first, inner, zero) = (path.first()?, self.size(a, 1)?, Ix::from(0));
        let (block, place) = match inner.as_constant() {
            Some(inner) if inner > 0 => (first.floor_div(inner)?, first.modulo(inner)?),
            Some(_) => return Err(Halt::End(PathEnd::Nothing)),
            // There is no quotient by a name: two fresh names with what is known of them.
            None => {
                let outer = self.size(a, 0)?;
                let [block, place] = ["block", "place"].map(|hint| self.fresh(hint));
                path.found.made.push((block, zero.clone(), outer.sub(&Ix::from(1))?));
                path.found.made.push((place, zero.clone(), inner.sub(&Ix::from(1))?));
                let (block, place) = (Ix::var(block), Ix::var(place));
                let inside = [
                    Cond::eq(&block.mul(&inner)?.add(&place)?, &first)?,
                    Cond::le(&zero, &block)?,
                    Cond::lt(&block, &outer)?,
                    Cond::le(&zero, &place)?,
                    Cond::lt(&place, &inner)?,
                ];
                inside.into_iter().try_for_each(|cond| path.require(cond))?;
                (block, place)
            }
        };
        path.indices.extend([place, block]);
        Ok(())
    }
}

/// A path that is being followed.
struct StorePath<'a> {
    /// Those into the term where it is, the outermost last.
    indices: Vec<Ix>,
    conds: &'a mut Vec<Cond>,
    forks: &'a mut Vec<Fork>,
    found: &'a mut Stores,
}

/// Why a path does not go on.
enum Halt {
    End(PathEnd),
    Stop(Stop),
}

impl From<IxError> for Halt {
    fn from(error: IxError) -> Halt {
        Halt::Stop(error.into())
    }
}

impl StorePath<'_> {
    /// The outermost index, which is taken.
    fn first(&mut self) -> Result<Ix, Halt> {
        self.indices.pop().ok_or(Halt::End(PathEnd::Head))
    }

    /// Goes on only where a condition holds.
    fn require(&mut self, cond: Cond) -> Result<(), Halt> {
        if require(self.conds, cond) { Ok(()) } else { Err(Halt::End(PathEnd::Nothing)) }
    }

    /// Leaves another path for later, which begins here.
    fn fork(&mut self, term: TermId, indices: Vec<Ix>, cond: Cond, changes: usize) {
        self.forks.push(Fork { term, indices, cond, changes, conds: self.conds.len() });
    }
}

/// Adds a condition to a path; whether it can hold, as far as can be seen without a proof.
fn require(conds: &mut Vec<Cond>, cond: Cond) -> bool {
    match cond {
        Cond::And(all) => all.into_iter().all(|cond| require(conds, cond)),
        cond if cond.is_never() => false,
        cond => {
            // A range is often stated twice in a row, by the size of a tensor and by the index that runs over it.
            if !conds.iter().rev().take(8).any(|known| *known == cond) {
                conds.push(cond);
            }
            true
        }
    }
}
