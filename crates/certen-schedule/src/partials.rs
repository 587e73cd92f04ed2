//! Partial accumulators: a reduction whose iterations run at the same time, with the same result however many do.
//!
//! A loop that combines into something from outside, `acc += x[k]`, has iterations that depend on each other. But the
//! order of a sum is free, so the range is cut into parts, each part is summed into an accumulator of its own, and these
//! are combined after the loop (Halide calls this rfactor):
//!
//! - for threads, the parts are *blocks* of a fixed number of iterations, each summed in order into a local, which ends
//!   up in an element of a buffer. The blocks depend on the size of the range only, and so does the order of the sum: the
//!   partial sums are added one after the other. That is a tree with two levels, the same for any number of threads,
//!   and better for rounding than one long sum: an error grows with `block + n / block`, not with n. A tree of pairs would
//!   have levels whose number depends on n, which loops with provable bounds cannot say simply.
//! - for vectors, the parts are the *lanes*: lane l takes every iteration that falls into it. Where their number is a power of two,
//!   one half of them is combined into the other until one is left; else one after the other.
//!
//! A partial accumulator begins with what does not change a result (0 of a sum, 1 of a product). A minimum or maximum has
//! no such value in every type, but may count an element twice: its parts begin with the accumulator itself, which also
//! keeps a NaN.
//!
//! Needs: an accumulator that the loop only combines into, with one operation, and reads nowhere else ([`of`] finds them).
//! If it is not one element but those that loops inside run over, there is a partial accumulator for each of them.

use std::collections::HashSet;

use certen_core::{ElemType, Range, ReduceOp, TensorType, Term, TermId, TypeError};
use certen_index::{Ix, Status};
use certen_loops::{LoopProgram, Mode, Stmt, Target, Use, for_each_mut, statements};
use certen_syntax::Name;

use crate::depend::{Access, Footprint, independent};
use crate::nest::Nest;
use crate::place::{Loop, Place};
use crate::refusal::Done;

/// More elements of one buffer than this do not get accumulators of their own.
const MOST_ELEMENTS: usize = 16;

/// What a loop combines into.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    /// The local or element. Indices in dimensions of `over` stand for all of their values.
    target: Target,
    op: ReduceOp,
    elem: ElemType,
    /// The type of its buffer.
    buffer: Option<TensorType>,
    /// Dimensions that loops inside run over, and the values of the index there.
    over: Vec<(usize, Range)>,
}

/// The accumulators of the loop at a place whose iterations depend on each other because of them.
pub(crate) fn of(nest: &Nest, place: &Place) -> Done<Vec<Accumulator>> {
    let Loop { index, range, body, .. } = nest.loop_at(place)?;
    let facts = nest.facts(place)?;
    let part = Footprint::of(&nest.program, &body);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for access in &part.accesses {
        let (name, Use::Combine(op)) = (access.name, access.how) else { continue };
        if !seen.insert(name) || part.swapped.contains(&name) {
            continue;
        }
        let all: Vec<&Access> = part.accesses.iter().filter(|access| access.name == name).collect();
        if !all.iter().all(|access| access.how == Use::Combine(op)) {
            continue;
        }
        let own = part.clone().only(|other| other == name);
        if matches!(independent(&facts, index, &range, own), Status::Proved(_)) {
            continue;
        }
        let Some(elem) = combined(&nest.program, &body, name) else { continue };
        // In another order they round differently.
        if nest.strict && elem.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Prod) {
            continue;
        }
        let buffer = nest.type_at(place, name).cloned();
        let moves = |ix: &Ix| {
            let mut names = Default::default();
            ix.collect_names(&mut names);
            names.iter().any(|name| *name == index || part.private.contains(name))
        };
        let fixed = all.iter().all(|access| !access.indices.iter().any(moves));
        let mut targets: Vec<&[Ix]> = all.iter().map(|access| access.indices.as_ref()).collect();
        targets.sort_unstable();
        targets.dedup();
        if fixed && targets.len() <= MOST_ELEMENTS {
            for indices in targets {
                let target = match &buffer {
                    Some(_) => Target::Element(name, indices.into()),
                    None => Target::Local(name),
                };
                found.push(Accumulator { target, op, elem, buffer: buffer.clone(), over: Vec::new() });
            }
        } else if let Some(over) = dimensions(&all, moves) {
            let target = Target::Element(name, access.indices.clone());
            found.push(Accumulator { target, op, elem, buffer, over });
        }
    }
    Ok(found)
}

/// The element type of what is combined into a name.
fn combined(program: &LoopProgram, block: &[Stmt], wanted: Name) -> Option<ElemType> {
    statements(block).find_map(|stmt| match stmt {
        Stmt::Assign { target, value, .. } if target.name() == wanted => Some(program.terms.ty(*value).elem),
        _ => None,
    })
}

/// The dimensions in which accesses differ, if in each of them all have the index of a loop whose range is always the
/// same: then the loop touches these elements, and no others.
fn dimensions(all: &[&Access], moves: impl Fn(&Ix) -> bool) -> Option<Vec<(usize, Range)>> {
    let (first, others) = all.split_first()?;
    let mut over = Vec::new();
    for (dimension, ix) in first.indices.iter().enumerate() {
        if !others.iter().all(|other| other.indices.get(dimension) == Some(ix)) {
            return None;
        }
        if !moves(ix) {
            continue;
        }
        let range_in = |access: &Access| {
            let name = ix.as_var()?;
            access.loops.iter().find(|(index, _)| *index == name).map(|(_, range)| range.clone())
        };
        let range = range_in(first)?;
        if moves(&range.lo) || moves(&range.hi) || !others.iter().all(|other| range_in(other).as_ref() == Some(&range))
        {
            return None;
        }
        over.push((dimension, range));
    }
    all.iter().all(|access| access.conds.is_empty()).then_some(over)
}

/// A place among the partial accumulators: of a block, or of a lane.
#[derive(Clone, Copy)]
enum Partial<'a> {
    /// In front of the other dimensions, so that blocks do not share memory.
    Block(&'a Ix),
    /// Behind them, so that lanes are beside each other.
    Lane(&'a Ix),
}

impl Partial<'_> {
    fn beside(self, others: Vec<Ix>) -> Box<[Ix]> {
        match self {
            Partial::Block(at) => [at.clone()].into_iter().chain(others).collect(),
            Partial::Lane(at) => others.into_iter().chain([at.clone()]).collect(),
        }
    }
}

impl Accumulator {
    /// What it is called.
    pub(crate) fn name(&self) -> Name {
        self.target.name()
    }

    /// Whether an assignment is to it.
    fn is(&self, target: &Target) -> bool {
        if self.over.is_empty() { *target == self.target } else { target.name() == self.name() }
    }

    /// The type of the buffer of its partial accumulators.
    fn partials(&self, slots: Partial<'_>) -> TensorType {
        let shape = self.buffer.as_ref().map(|ty| ty.shape.as_ref()).unwrap_or_default();
        let sizes = self.over.iter().filter_map(|(dimension, _)| shape.get(*dimension).cloned()).collect();
        TensorType::new(self.elem, slots.beside(sizes).into_vec())
    }

    /// The partial accumulator of an element.
    fn partial(&self, buffer: Name, slot: Partial<'_>, target: &Target) -> Target {
        let indices: &[Ix] = match target {
            Target::Local(_) => &[],
            Target::Element(_, indices) => indices,
        };
        let moving = self.over.iter().filter_map(|(dimension, _)| indices.get(*dimension).cloned()).collect();
        Target::Element(buffer, slot.beside(moving))
    }

    /// What a partial accumulator of an element begins with.
    fn begin(&self, program: &mut LoopProgram, target: &Target) -> Result<TermId, TypeError> {
        match (self.op.identity(self.elem), target) {
            (Some(identity), _) => program.terms.add(Term::Literal(identity, self.elem)),
            (None, Target::Local(name)) => program.terms.reference(*name, TensorType::scalar(self.elem)),
            (None, Target::Element(name, indices)) => {
                let ty = self.buffer.clone().unwrap_or_else(|| TensorType::scalar(self.elem));
                program.terms.element(*name, ty, indices.clone())
            }
        }
    }

    /// A statement for each element, in loops over those that it has.
    fn each(&self, names: &mut FreshNames, stmt: impl FnOnce(&Target) -> Done<Vec<Stmt>>) -> Done<Vec<Stmt>> {
        let mut target = self.target.clone();
        let mut loops = Vec::new();
        for (dimension, range) in &self.over {
            let index = names.fresh(&format!("{}.d{dimension}", self.name()));
            if let Target::Element(_, indices) = &mut target
                && let Some(at) = indices.get_mut(*dimension)
            {
                *at = Ix::var(index);
            }
            loops.push((index, range.clone()));
        }
        let mut body = stmt(&target)?;
        for (index, range) in loops.into_iter().rev() {
            body = vec![Loop::new(index, range, body).into()];
        }
        Ok(body)
    }
}

/// Names that are not taken.
struct FreshNames(HashSet<Name>);

impl FreshNames {
    fn fresh(&mut self, base: &str) -> Name {
        let name = Name::fresh(base, |name| self.0.contains(&name));
        self.0.insert(name);
        name
    }
}

/// Lets the assignments of a block be to something else.
fn retarget(block: &mut [Stmt], to: impl Fn(&Target) -> Option<Target>) {
    for_each_mut(block, |stmt| {
        if let Stmt::Assign { target, .. } = stmt
            && let Some(new) = to(target)
        {
            *target = new;
        }
    });
}

/// Partial accumulators of blocks, for a loop over blocks at a place whose number is `blocks`: its iterations do not
/// depend on each other then.
pub(crate) fn of_blocks(nest: &mut Nest, place: &Place, blocks: Ix, accumulators: &[Accumulator]) -> Done<()> {
    let mut outer = nest.loop_at(place)?;
    let mut names = FreshNames(nest.taken());
    let at = Ix::var(outer.index);
    let again = names.fresh(&format!("{}.parts", outer.index));
    let (mut before, mut sum, mut after) = (Vec::new(), Vec::new(), Vec::new());
    let (mut begin, mut end) = (Vec::new(), Vec::new());
    for accumulator in accumulators {
        let buffer = names.fresh("partial");
        let ty = accumulator.partials(Partial::Block(&blocks));
        before.push(Stmt::Alloc(buffer, ty.clone()));
        after.push(Stmt::Free(buffer));
        let slot = Partial::Block(&at);
        if accumulator.over.is_empty() {
            let local = names.fresh(accumulator.name().as_str());
            let init = Some(accumulator.begin(&mut nest.program, &accumulator.target)?);
            begin.push(Stmt::Local { name: local, elem: accumulator.elem, init });
            retarget(&mut outer.body, |target| accumulator.is(target).then_some(Target::Local(local)));
            let value = nest.program.terms.reference(local, TensorType::scalar(accumulator.elem))?;
            let target = accumulator.partial(buffer, slot, &accumulator.target);
            end.push(Stmt::Assign { target, op: None, value });
        } else {
            begin.extend(accumulator.each(&mut names, |target| {
                let value = accumulator.begin(&mut nest.program, target)?;
                Ok(vec![Stmt::Assign { target: accumulator.partial(buffer, slot, target), op: None, value }])
            })?);
            let to = |target: &Target| accumulator.is(target).then(|| accumulator.partial(buffer, slot, target));
            retarget(&mut outer.body, to);
        }
        sum.extend(accumulator.each(&mut names, |target| {
            let part = accumulator.partial(buffer, Partial::Block(&Ix::var(again)), target);
            Ok(vec![combine(&mut nest.program, accumulator, target, part, ty)?])
        })?);
    }
    let blocks = outer.range.clone();
    outer.body = begin.into_iter().chain(outer.body).chain(end).collect();
    let sum = Loop::new(again, blocks, sum);
    nest.replace(place, before.into_iter().chain([outer.into(), sum.into()]).chain(after))
}

/// Partial accumulators of lanes, for a vector loop at a place inside the loop at another one, or that loop itself:
/// lanes do not depend on each other then. `lane` is an expression in the vector loop's index.
pub(crate) fn of_lanes(
    nest: &mut Nest,
    (place, vector): (&Place, &Place),
    (width, lane): (i64, &Ix),
    accumulators: &[Accumulator],
) -> Done<()> {
    let mut names = FreshNames(nest.taken());
    let mut found = nest.loop_at(vector)?;
    let index = found.index;
    let (zero, again) = (names.fresh(&format!("{index}.zero")), names.fresh(&format!("{index}.lanes")));
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let halves = halves(width);
    let left = if halves.is_empty() { Ix::var(again) } else { Ix::from(0) };
    let (mut begin, mut sums, mut last) = (Vec::new(), vec![Vec::new(); halves.len()], Vec::new());
    for accumulator in accumulators {
        let buffer = names.fresh("partial");
        let ty = accumulator.partials(Partial::Lane(&Ix::from(width)));
        before.push(Stmt::Alloc(buffer, ty.clone()));
        after.push(Stmt::Free(buffer));
        begin.extend(accumulator.each(&mut names, |target| {
            let value = accumulator.begin(&mut nest.program, target)?;
            let part = accumulator.partial(buffer, Partial::Lane(&Ix::var(zero)), target);
            Ok(vec![Stmt::Assign { target: part, op: None, value }])
        })?);
        let to =
            |target: &Target| accumulator.is(target).then(|| accumulator.partial(buffer, Partial::Lane(lane), target));
        retarget(&mut found.body, to);
        for (half, sum) in halves.iter().zip(&mut sums) {
            let ty = ty.clone();
            sum.extend(accumulator.each(&mut names, |target| {
                let lane = if *half > 1 { Ix::var(again) } else { Ix::from(0) };
                let one = accumulator.partial(buffer, Partial::Lane(&lane), target);
                let other = accumulator.partial(buffer, Partial::Lane(&lane.add(&Ix::from(*half))?), target);
                Ok(vec![combine(&mut nest.program, accumulator, &one, other, ty)?])
            })?);
        }
        last.extend(accumulator.each(&mut names, |target| {
            let part = accumulator.partial(buffer, Partial::Lane(&left), target);
            Ok(vec![combine(&mut nest.program, accumulator, target, part, ty)?])
        })?);
    }
    nest.replace(vector, [found.into()])?;
    let main = nest.loop_at(place)?;
    let lanes = Range::to(Ix::from(width));
    before.push(Loop { index: zero, range: lanes.clone(), mode: Mode::Vector, body: begin }.into());
    before.push(main.into());
    if halves.is_empty() {
        before.push(Loop::new(again, lanes, last).into());
    } else {
        for (half, body) in halves.into_iter().zip(sums) {
            if half == 1 {
                before.extend(body);
                continue;
            }
            before.push(Loop { index: again, range: Range::to(Ix::from(half)), mode: Mode::Vector, body }.into());
        }
        before.extend(last);
    }
    nest.replace(place, before.into_iter().chain(after))
}

/// Half of so many lanes, half of that, and so on down to one; none if that does not come out even.
fn halves(width: i64) -> Vec<i64> {
    let halves = std::iter::successors(Some(width / 2), |half| Some(half / 2));
    if width.count_ones() == 1 { halves.take_while(|half| *half > 0).collect() } else { Vec::new() }
}

/// A partial accumulator combined into the accumulator.
fn combine(
    program: &mut LoopProgram,
    accumulator: &Accumulator,
    target: &Target,
    part: Target,
    ty: TensorType,
) -> Result<Stmt, TypeError> {
    let value = match part {
        Target::Local(name) => program.terms.reference(name, ty)?,
        Target::Element(name, indices) => program.terms.element(name, ty, indices)?,
    };
    Ok(Stmt::Assign { target: target.clone(), op: Some(accumulator.op), value })
}
