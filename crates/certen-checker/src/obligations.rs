//! What has to be shown of a nest of loops: one walk over its statements, in the order of its text.
//!
//! The walk refuses what is wrong whatever the sizes are: names out of scope or hidden, wrong ranks and types, inputs
//! that are written, buffers that are not freed where they were allocated or used afterwards, locals without a value.
//! What depends on sizes becomes an [`Obligation`]: a goal, and the facts that hold where the walk stands, which are
//! the program's facts and the ranges and conditions around.
//!
//! - **bounds**: each index of each access is in `0..size`. Of equal pairs of index and size only the first, in its
//!   block and the blocks in it.
//! - **races**: see `races.rs`.
//! - **values**: where a local was assigned in a loop and is read after it, the loop runs. An output that is never
//!   written has no elements.
//!
//! A goal that is true as it stands, a comparison of numbers, is no obligation. That is all the checker knows by
//! itself. Takes time in proportion to the text, but for races, where every two accesses are compared, of at most
//! [`MAX_ACCESSES`](crate::races::MAX_ACCESSES).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use certen_core::{ElemType, Range, ReduceOp, TensorType, Term, TermId};
use certen_index::{Cond, Ix, IxError};
use certen_loops::{LoopProgram, MAX_NESTING, Mode, Stmt, Target, as_element};
use certen_syntax::Name;

use crate::races::{Needed, needed, within};
use crate::rejection::Rejection;

/// What an obligation is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// An index is inside its buffer.
    Bounds,
    /// Two iterations of a parallel or vector loop use different elements.
    Races,
    /// Something has a value: a local that is read, an output.
    Values,
}

/// A goal, and the facts that it has to follow from for all integers.
#[derive(Clone, Debug)]
pub struct Obligation {
    /// What it is about.
    pub kind: Kind,
    /// A sentence for people, and the obligation's name in a certificate.
    pub what: String,
    /// What is known: no conjunctions, none twice.
    pub facts: Arc<[Cond]>,
    /// What has to be shown.
    pub goal: Cond,
}

/// A nest with more obligations than this is refused.
const MAX_OBLIGATIONS: usize = 1 << 20;

/// What has to be shown of a nest, in the checker's order.
///
/// # Errors
/// If the nest is wrong whatever the sizes are.
pub fn obligations(nest: &LoopProgram) -> Result<Vec<Obligation>, Rejection> {
    let facts = joined(&[], nest.facts.iter().cloned());
    let scopes = vec![Assumptions { facts, shown: HashSet::new() }];
    let mut walk = Obliging {
        nest,
        things: HashMap::new(),
        assigned: HashMap::new(),
        log: Vec::new(),
        written: HashSet::new(),
        scopes,
        runs: Vec::new(),
        found: Vec::new(),
    };
    walk.program().map_err(|why| Rejection { at: "nest".into(), why })?;
    Ok(walk.found)
}

/// Facts, and more of them: conjunctions taken apart, none twice.
fn joined(facts: &[Cond], more: impl IntoIterator<Item = Cond>) -> Arc<[Cond]> {
    let mut all = facts.to_vec();
    let mut todo: Vec<Cond> = more.into_iter().collect();
    todo.reverse();
    while let Some(fact) = todo.pop() {
        match fact {
            Cond::And(parts) => todo.extend(parts.into_iter().rev()),
            fact if all.contains(&fact) => {}
            fact => all.push(fact),
        }
    }
    all.into()
}

/// What the walk comes to, or why the nest is refused.
type Walked<T> = Result<T, String>;

/// What a name stands for.
#[derive(Clone, Copy)]
enum Thing<'a> {
    /// A size or the index of a loop.
    Number,
    Local(ElemType),
    Buffer(&'a TensorType, Kept),
}

/// Where a buffer comes from.
#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Input,
    Output,
    Constant,
    /// Allocated in a block at this depth.
    Own(usize),
    Freed,
}

struct Assumptions {
    facts: Arc<[Cond]>,
    /// Indices and sizes that are obligations already.
    shown: HashSet<(Ix, Ix)>,
}

/// The loops that have to run for a local to have a value: places in [`Obliging::runs`].
type Pending = Vec<usize>;

struct Obliging<'a> {
    nest: &'a LoopProgram,
    things: HashMap<Name, Thing<'a>>,
    /// The locals that have a value here, if some loops run.
    assigned: HashMap<Name, Pending>,
    /// What `assigned` said before, to go back.
    log: Vec<(Name, Option<Pending>)>,
    written: HashSet<Name>,
    scopes: Vec<Assumptions>,
    /// Loops that may have to run; none where that is an obligation already.
    runs: Vec<Option<Obligation>>,
    found: Vec<Obligation>,
}

impl<'a> Obliging<'a> {
    fn program(&mut self) -> Walked<()> {
        let nest = self.nest;
        for size in &nest.sizes {
            self.declare(*size, Thing::Number)?;
        }
        for fact in &nest.facts {
            self.known(|names| fact.collect_names(names))?;
        }
        for (parameters, kept) in [(&nest.inputs, Kept::Input), (&nest.outputs, Kept::Output)] {
            for parameter in parameters {
                self.shape(&parameter.ty)?;
                self.declare(parameter.name, Thing::Buffer(&parameter.ty, kept))?;
            }
        }
        for constant in &nest.constants {
            self.declare(constant.name, Thing::Buffer(constant.table.ty(), Kept::Constant))?;
        }
        self.block(&nest.body, 0)?;
        for output in &nest.outputs {
            if self.written.contains(&output.name) {
                continue;
            }
            let empty = |any: Cond, size| Ok::<_, IxError>(any.or(Cond::le(size, &Ix::from(0))?));
            let goal = output.ty.shape.iter().try_fold(Cond::never(), empty).map_err(text)?;
            let what = format!("the output {}, which is never written, has no elements", output.name);
            self.oblige(Kind::Values, what, self.facts(), goal)?;
        }
        Ok(())
    }

    /// What holds where the walk stands.
    fn facts(&self) -> Arc<[Cond]> {
        self.scopes.last().map(|scope| scope.facts.clone()).unwrap_or_default()
    }

    fn oblige(&mut self, kind: Kind, what: String, facts: Arc<[Cond]>, goal: Cond) -> Walked<()> {
        if !goal.is_always() {
            self.found.push(Obligation { kind, what, facts, goal });
        }
        if self.found.len() > MAX_OBLIGATIONS { Err("there is too much to be shown".into()) } else { Ok(()) }
    }

    fn declare(&mut self, name: Name, thing: Thing<'a>) -> Walked<()> {
        match self.things.insert(name, thing) {
            None => Ok(()),
            Some(_) => Err(format!("{name} is already in scope")),
        }
    }

    /// Every name that is collected is a size or an index in scope.
    fn known(&self, collect: impl FnOnce(&mut BTreeSet<Name>)) -> Walked<()> {
        let mut names = BTreeSet::new();
        collect(&mut names);
        match names.iter().find(|name| !matches!(self.things.get(name), Some(Thing::Number))) {
            Some(name) => Err(format!("the size or index {name} is not in scope")),
            None => Ok(()),
        }
    }

    fn ix(&self, ix: &Ix) -> Walked<()> {
        self.known(|names| ix.collect_names(names))
    }

    fn shape(&self, ty: &TensorType) -> Walked<()> {
        ty.shape.iter().try_for_each(|size| self.ix(size))
    }

    /// A block inside the one where the walk stands, where more holds.
    fn inner(&mut self, holds: impl IntoIterator<Item = Cond>, body: &'a [Stmt], depth: usize) -> Walked<()> {
        let facts = joined(&self.facts(), holds);
        self.scopes.push(Assumptions { facts, shown: HashSet::new() });
        self.block(body, depth + 1)?;
        self.scopes.pop();
        Ok(())
    }

    fn block(&mut self, block: &'a [Stmt], depth: usize) -> Walked<()> {
        if depth > MAX_NESTING {
            return Err(format!("more than {MAX_NESTING} blocks inside each other"));
        }
        let mut declared = Vec::new();
        for stmt in block {
            match stmt {
                Stmt::Nest(_) => {}
                Stmt::Alloc(name, ty) => {
                    self.shape(ty)?;
                    self.declare(*name, Thing::Buffer(ty, Kept::Own(depth)))?;
                    declared.push(*name);
                }
                Stmt::Free(name) => match self.things.get_mut(name) {
                    Some(Thing::Buffer(_, kept)) if *kept == Kept::Own(depth) => *kept = Kept::Freed,
                    _ => return Err(format!("{name} is freed, but is not an allocated buffer of this block")),
                },
                Stmt::Swap(a, b) => match (self.things.get(a), self.things.get(b)) {
                    (Some(Thing::Buffer(one, Kept::Own(_))), Some(Thing::Buffer(two, Kept::Own(_))))
                        if a != b && one == two && !one.is_scalar() => {}
                    _ => return Err(format!("{a} and {b} are no two allocated buffers of the same type")),
                },
                Stmt::For { index, range, mode, body } => self.repeat(*index, range, *mode, body, depth)?,
                Stmt::If { cond, then, otherwise } => {
                    self.known(|names| cond.collect_names(names))?;
                    let mark = self.log.len();
                    self.inner([cond.clone()], then, depth)?;
                    let accepted = self.undo(mark);
                    self.inner([cond.not().map_err(text)?], otherwise, depth)?;
                    let refused: HashMap<Name, Pending> = self.undo(mark).into_iter().collect();
                    for (name, mut pending) in accepted {
                        if let Some(more) = refused.get(&name) {
                            pending.extend(more);
                            self.assign(name, pending);
                        }
                    }
                }
                Stmt::Local { name, elem, init } => {
                    if let Some(value) = init {
                        self.value(*value, *elem)?;
                    }
                    self.declare(*name, Thing::Local(*elem))?;
                    declared.push(*name);
                    if init.is_some() {
                        self.assign(*name, Pending::new());
                    }
                }
                Stmt::Assign { target, op, value } => self.assignment(target, *op, *value)?,
            }
        }
        for name in declared {
            self.assigned.remove(&name);
            if let Some(Thing::Buffer(_, Kept::Own(_))) = self.things.remove(&name) {
                return Err(format!("the buffer {name} is not freed in its block"));
            }
        }
        Ok(())
    }

    fn repeat(&mut self, index: Name, range: &'a Range, mode: Mode, body: &'a [Stmt], depth: usize) -> Walked<()> {
        self.ix(&range.lo)?;
        self.ix(&range.hi)?;
        if mode != Mode::Serial {
            for Needed { what, facts, goal } in needed(&self.nest.terms, (index, range, mode), body).map_err(text)? {
                self.oblige(Kind::Races, what, joined(&self.facts(), facts), goal)?;
            }
        }
        let mark = self.log.len();
        self.declare(index, Thing::Number)?;
        self.inner(within(&Ix::var(index), range).map_err(text)?, body, depth)?;
        self.things.remove(&index);
        let changed = self.undo(mark);
        if changed.is_empty() {
            return Ok(());
        }
        // What only the body assigns has a value afterwards if the body runs at all.
        let goal = Cond::lt(&range.lo, &range.hi).map_err(text)?;
        let what = format!("the loop over {index}, which assigns a local that is read after it, runs");
        self.runs.push(Some(Obligation { kind: Kind::Values, what, facts: self.facts(), goal }));
        for (name, mut pending) in changed {
            pending.push(self.runs.len() - 1);
            self.assign(name, pending);
        }
        Ok(())
    }

    fn assign(&mut self, name: Name, pending: Pending) {
        let before = self.assigned.insert(name, pending);
        self.log.push((name, before));
    }

    /// Goes back to what was assigned when the log had this length, and tells what had no value then and has one now.
    fn undo(&mut self, mark: usize) -> Vec<(Name, Pending)> {
        let (mut latest, mut since) = (HashMap::new(), Vec::new());
        for (name, before) in self.log.split_off(mark).into_iter().rev() {
            let fresh = before.is_none();
            let now = match before {
                Some(before) => self.assigned.insert(name, before),
                None => self.assigned.remove(&name),
            };
            let now: &mut Option<Pending> = latest.entry(name).or_insert(now);
            if fresh {
                since.extend(now.take().map(|now| (name, now)));
            }
        }
        since.reverse();
        since
    }

    fn assignment(&mut self, target: &Target, op: Option<ReduceOp>, value: TermId) -> Walked<()> {
        let elem = match (target, self.things.get(&target.name()).copied()) {
            (Target::Local(name), Some(Thing::Local(elem))) => {
                if op.is_some() {
                    self.has_value(*name)?;
                }
                elem
            }
            (Target::Element(name, indices), Some(Thing::Buffer(ty, kept))) => {
                match kept {
                    Kept::Input => return Err(format!("the input {name} is written")),
                    Kept::Constant => return Err(format!("the constant {name} is written")),
                    Kept::Output | Kept::Own(_) | Kept::Freed => {}
                }
                self.written.insert(*name);
                self.access(*name, ty, kept, indices)?;
                ty.elem
            }
            _ => return Err(format!("{target} cannot be assigned: no such local or buffer in scope")),
        };
        if op.is_some_and(|op| op.combine().result(elem) != Some(elem)) {
            return Err(format!("{target} of type {elem} cannot be combined in this way"));
        }
        self.value(value, elem)?;
        if let Target::Local(name) = target {
            self.assign(*name, Pending::new());
        }
        Ok(())
    }

    /// A value is made of scalar operations on what is in scope, and has this type.
    fn value(&mut self, root: TermId, elem: ElemType) -> Walked<()> {
        let terms = &self.nest.terms;
        if *terms.ty(root) != TensorType::scalar(elem) {
            return Err(format!("a value of type {} is assigned as {elem}", terms.ty(root)));
        }
        let tensor = || "a value is not made of scalar operations".to_owned();
        for id in terms.parts_first(root) {
            match terms.get(id) {
                // The buffer of an element.
                Term::Ref(_, ty) if !ty.is_scalar() && id != root => {}
                Term::Ref(..) | Term::Select(..) => {
                    let (name, ty, indices) = as_element(terms, id).ok_or("a value is not a scalar")?;
                    self.read(name, ty, indices)?;
                }
                Term::Index(ix, _) => self.ix(ix)?,
                Term::Literal(..) | Term::Undefined(_) | Term::Unary(..) | Term::Binary(..) => {}
                Term::Choose(..) | Term::Fma(..) | Term::Cast(..) => {}
                Term::Gen(..) | Term::Reduce(..) | Term::Guard(..) | Term::If(..) => return Err(tensor()),
                Term::Let(..) | Term::Iterate(..) | Term::Flatten(_) | Term::Split(..) => return Err(tensor()),
                Term::Table(_) | Term::Transpose(_) | Term::Concat(..) => return Err(tensor()),
                Term::PadLeft(..) | Term::PadRight(..) | Term::TruncLeft(..) | Term::TruncRight(..) => {
                    return Err(tensor());
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, name: Name, ty: &TensorType, indices: &[Ix]) -> Walked<()> {
        match self.things.get(&name).copied() {
            Some(Thing::Local(elem)) if *ty == TensorType::scalar(elem) => self.has_value(name),
            Some(Thing::Buffer(declared, kept)) if declared == ty => self.access(name, declared, kept, indices),
            _ => Err(format!("{name} is read as {ty}, but there is no such local or buffer in scope")),
        }
    }

    /// A local that is read was assigned before.
    fn has_value(&mut self, local: Name) -> Walked<()> {
        let pending = self.assigned.get(&local).ok_or_else(|| format!("{local} may be read before it is assigned"))?;
        for at in pending.clone() {
            if let Some(Obligation { kind, what, facts, goal }) = self.runs[at].take() {
                self.oblige(kind, what, facts, goal)?;
            }
        }
        Ok(())
    }

    /// An access of a buffer: one index per dimension, each in bounds.
    fn access(&mut self, name: Name, ty: &TensorType, kept: Kept, indices: &[Ix]) -> Walked<()> {
        if kept == Kept::Freed {
            return Err(format!("{name} is used after it was freed"));
        }
        if indices.len() != ty.rank() {
            return Err(format!("{name} has {} dimensions, but {} indices are given", ty.rank(), indices.len()));
        }
        for (index, size) in indices.iter().zip(ty.shape.iter()) {
            self.ix(index)?;
            let pair = (index.clone(), size.clone());
            if self.scopes.iter().any(|scope| scope.shown.contains(&pair)) {
                continue;
            }
            let low = Cond::le(&Ix::from(0), index).map_err(text)?;
            let goal = low.and(Cond::lt(index, size).map_err(text)?);
            if let (false, Some(scope)) = (goal.is_always(), self.scopes.last_mut()) {
                scope.shown.insert(pair);
                let element = Target::Element(name, indices.into());
                let what = format!("{element} is in bounds: {index} in 0..{size}");
                self.oblige(Kind::Bounds, what, self.facts(), goal)?;
            }
        }
        Ok(())
    }
}

pub(crate) fn text(error: IxError) -> String {
    error.to_string()
}
