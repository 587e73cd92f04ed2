//! Data flow: which version of a tensor each statement reads, what the caller gives and gets, and which elements were
//! never written.
//!
//! Every assignment makes a new version of its target. A tensor whose first use is a read is an input; one whose last
//! version no later statement reads is an output. A statement that writes a part of its target keeps the other
//! elements: if nothing has given them a value, they have none, and reading one of them is an error, as is an output
//! that has one. What is written is a list of parts, each a condition on the indices of an element, and the prover is
//! asked whether a read stays inside: only when there is one, and of the newest [`MOST_PARTS`] parts, so that many
//! writes of parts stay fast.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};

use certen_core::Range;
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::assignment::{Assignment, Begin, Statements, Tensor};
use crate::expression::Expression;
use crate::rules::Evaluated;

/// Where a version of a tensor comes from: a statement, or nothing in the program.
pub(crate) type Version = Option<usize>;

/// The data flow of a program.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The tensors that the caller gives, in the order of declaration.
    pub(crate) inputs: Vec<Name>,
    /// The tensors that the caller gets, in the order of their first assignment, with the statement that makes the last
    /// version.
    pub(crate) outputs: Vec<(Name, usize)>,
    /// For each statement, the tensors that it reads and their versions, each once; the target too if it accumulates.
    pub(crate) reads: Vec<Vec<(Name, Version)>>,
    /// For each statement, the version of its target that it leaves elements of as they are; none if it writes all of
    /// them, or if no other has a value. This is not a read: no operation is made on them.
    pub(crate) kept: Vec<Option<Version>>,
    /// For each statement, how it writes its target.
    pub(crate) written: Vec<Region>,
    /// What is known about sizes.
    pub(crate) facts: Facts,
    /// The tensors.
    pub(crate) tensors: HashMap<Name, Tensor>,
}

/// The elements that a statement writes.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// What holds of an element, by its indices [`element_index`]; nothing if every element is written.
    pub conds: Vec<Cond>,
    /// For each dimension, how the iterator in it follows from the index, if there is one.
    pub solved: Vec<Option<(Name, Ix)>>,
}

impl Region {
    /// Whether every element is written.
    pub fn whole(&self) -> bool {
        self.conds.is_empty()
    }
}

/// Stands for the index of any element in a dimension; no program can use the name.
pub(crate) fn element_index(dimension: usize) -> Name {
    Name::new(&format!("element {dimension}"))
}

/// Parts of a tensor that the prover is asked about at most.
const MOST_PARTS: usize = 64;

/// The elements that have a value.
enum Filled {
    /// None.
    Nothing,
    /// Those that statements have written, part by part.
    Parts(Parts),
    /// All of them.
    Whole,
}

/// What was written of a tensor.
#[derive(Default)]
struct Parts {
    /// What holds of the indices of each part's elements, the newest part last.
    conds: Vec<Cond>,
    /// The parts that are single elements: a read at the same indices needs no prover.
    elements: HashSet<Vec<Ix>>,
    /// Whether it is known that the newest parts are not shown to be everything.
    asked: bool,
}

impl Parts {
    fn add(&mut self, assignment: &Assignment, region: &Region) {
        self.conds.push(region.conds.iter().fold(Cond::always(), |all, cond| all.and(cond.clone())));
        if !assignment.iterators.iter().any(|(name, _)| is_out(assignment, *name)) {
            self.elements.insert(assignment.out.clone());
        }
        self.asked = false;
    }

    fn newest(&self) -> impl Iterator<Item = &Cond> {
        self.conds.iter().rev().take(MOST_PARTS)
    }

    /// Whether the parts that are single elements are all of a tensor with these sizes, counted one by one.
    fn are_all_of(&self, sizes: &[i64]) -> bool {
        let inside = |indices: &&Vec<Ix>| {
            let is = |(at, size): (&Ix, &i64)| at.as_constant().is_some_and(|at| (0..*size).contains(&at));
            indices.iter().zip(sizes).all(is)
        };
        let count = sizes.iter().try_fold(1i64, |count, size| count.checked_mul(*size));
        count == i64::try_from(self.elements.iter().filter(inside).count()).ok()
    }

    /// The newest parts as one.
    fn together(&self) -> Cond {
        self.newest().cloned().reduce(Cond::or).unwrap_or_else(Cond::always)
    }
}

/// What holds of the sizes of these tensors: none is negative. What follows from the others before it is left out.
///
/// # Errors
/// If a size is too large.
pub fn facts(tensors: &[Tensor]) -> Result<Vec<Cond>, IxError> {
    let mut seen = HashSet::new();
    let mut known = Facts::new();
    let sizes = tensors.iter().flat_map(|tensor| &tensor.shape).filter(|size| seen.insert(*size));
    let (names, others): (Vec<&Ix>, Vec<&Ix>) = sizes.partition(|size| size.as_var().is_some());
    for size in names.into_iter().chain(others) {
        let fact = Cond::le(&Ix::from(0), size)?;
        if size.as_var().is_some() || known.prove(&fact) != Verdict::Yes {
            known.assume(fact);
        }
    }
    Ok(known.conjuncts().to_vec())
}

pub(crate) fn too_complex(assignment: &Assignment) -> impl Fn(IxError) -> Diagnostic {
    let (id, span) = (assignment.id, assignment.span);
    move |error| Diagnostic::error(Code::E0216, span, format!("an index of `{id}` cannot be used: {error}"))
}

/// Follows all statements.
///
/// # Errors
/// E0212 where elements are read, or are a part of an output, that nothing has written; E0216 for indices of targets
/// that are not understood.
pub(crate) fn flow(statements: &Statements) -> Result<Flow, Vec<Diagnostic>> {
    let mut known = Facts::new();
    let assumed = facts(&statements.tensors).map_err(|error| {
        vec![Diagnostic::error(Code::E0216, None, format!("a size of `{}` cannot be used: {error}", statements.name))]
    })?;
    assumed.into_iter().for_each(|fact| known.assume(fact));
    let mut walk = FlowWalk {
        flow: Flow {
            inputs: Vec::new(),
            outputs: Vec::new(),
            reads: Vec::with_capacity(statements.assignments.len()),
            kept: Vec::with_capacity(statements.assignments.len()),
            written: Vec::with_capacity(statements.assignments.len()),
            facts: known,
            tensors: statements.tensors.iter().map(|tensor| (tensor.name, tensor.clone())).collect(),
        },
        now: HashMap::new(),
        inputs: BTreeSet::new(),
    };
    let mut errors = Vec::new();
    for (at, assignment) in statements.assignments.iter().enumerate() {
        let value = Expression::of(&statements.values, assignment.value);
        if let Err(error) = walk.assignment(at, assignment, &value) {
            errors.push(*error);
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let FlowWalk { mut flow, now, inputs } = walk;
    flow.inputs = statements.tensors.iter().map(|tensor| tensor.name).filter(|name| inputs.contains(name)).collect();
    let read: BTreeSet<(Name, usize)> =
        flow.reads.iter().flatten().filter_map(|(name, version)| Some((*name, (*version)?))).collect();
    let mut seen = BTreeSet::new();
    for assignment in &statements.assignments {
        let name = assignment.target;
        if let Some(TensorState { version: Some(last), .. }) = now.get(&name)
            && seen.insert(name)
            && !read.contains(&(name, *last))
        {
            flow.outputs.push((name, *last));
        }
    }
    let unwritten = |(name, last): &(Name, usize)| match &now.get(name)?.defined {
        Filled::Parts(parts) => flow.unwritten(*name, parts, &statements.assignments[*last]),
        Filled::Nothing | Filled::Whole => None,
    };
    let errors: Vec<Diagnostic> = flow.outputs.iter().filter_map(unwritten).collect();
    if errors.is_empty() { Ok(flow) } else { Err(errors) }
}

/// What is known of a tensor between two statements.
struct TensorState {
    version: Version,
    defined: Filled,
}

struct FlowWalk {
    flow: Flow,
    now: HashMap<Name, TensorState>,
    inputs: BTreeSet<Name>,
}

impl FlowWalk {
    fn assignment(&mut self, at: usize, assignment: &Assignment, value: &Expression) -> Evaluated<()> {
        let mut reads: Vec<(Name, Version)> = Vec::new();
        let mut seen = BTreeSet::new();
        for (name, indices) in value.elements() {
            let version = self.read((assignment, value), name, indices)?;
            if seen.insert(name) {
                reads.push((name, version));
            }
        }
        if let Begin::Accumulate { .. } = assignment.begin {
            let version = self.read((assignment, value), assignment.target, &assignment.out)?;
            if seen.insert(assignment.target) {
                reads.push((assignment.target, version));
            }
        }
        let written = self.region(assignment)?;
        let state =
            self.now.entry(assignment.target).or_insert(TensorState { version: None, defined: Filled::Nothing });
        let keeps = !written.whole() && !matches!(state.defined, Filled::Nothing);
        self.flow.kept.push(keeps.then_some(state.version));
        state.version = Some(at);
        match &mut state.defined {
            Filled::Whole => {}
            defined if written.whole() => *defined = Filled::Whole,
            defined => {
                if let Filled::Nothing = defined {
                    *defined = Filled::Parts(Parts::default());
                }
                if let Filled::Parts(parts) = defined {
                    parts.add(assignment, &written);
                    // Before parts become too old to be looked at.
                    if parts.conds.len().is_multiple_of(MOST_PARTS)
                        && self.flow.everywhere(assignment.target, parts).map_err(too_complex(assignment))?
                    {
                        *defined = Filled::Whole;
                    }
                }
            }
        }
        self.flow.reads.push(reads);
        self.flow.written.push(written);
        Ok(())
    }

    /// A read of an element: its version, if it is shown to have a value.
    fn read(
        &mut self,
        (assignment, value): (&Assignment, &Expression),
        name: Name,
        indices: &[Ix],
    ) -> Evaluated<Version> {
        let state = match self.now.entry(name) {
            Entry::Occupied(state) => state.into_mut(),
            Entry::Vacant(none) => {
                self.inputs.insert(name);
                none.insert(TensorState { version: None, defined: Filled::Whole });
                return Ok(None);
            }
        };
        let Filled::Parts(parts) = &mut state.defined else { return Ok(state.version) };
        let verdict = self.flow.is_inside(parts, (assignment, value), name, indices);
        let verdict = verdict.map_err(too_complex(assignment))?;
        if verdict == Verdict::Yes {
            return Ok(state.version);
        }
        let count = parts.conds.len();
        // One error for a tensor is enough.
        state.defined = Filled::Whole;
        let element = shown(name, indices);
        let message = format!("`{}` reads `{element}`, which is not shown to have a value", assignment.id);
        let mut error = Diagnostic::error(Code::E0212, assignment.span, message)
            .label("read here")
            .note(format!("so far only a part of `{name}` was written, and the caller gives none of it"));
        if count > MOST_PARTS {
            error = error.note(format!("of its {count} parts, only the last {MOST_PARTS} are looked at"));
        } else if let Verdict::No(example) = verdict
            && !example.0.is_empty()
        {
            error = error.note(format!("for example {example}"));
        }
        if let Some(tensor) = self.flow.tensors.get(&name) {
            error = error.also(tensor.span, format!("`{name}` is introduced here"));
        }
        Err(Box::new(error.help(format!("give all of it a value first, as `init({name}, 0.0)` does"))))
    }

    /// The elements that a statement writes.
    fn region(&self, assignment: &Assignment) -> Evaluated<Region> {
        let tensor = self.flow.tensors.get(&assignment.target);
        let shape = tensor.map_or(&[][..], |tensor| &tensor.shape);
        let mut region = Region { conds: Vec::new(), solved: Vec::new() };
        for (dimension, out) in assignment.out.iter().enumerate() {
            let size = shape.get(dimension);
            if let Some(name) = out.as_var()
                && let Some((_, extent)) = assignment.iterators.iter().find(|(iterator, _)| *iterator == name)
                && size.is_some_and(|size| size == extent)
            {
                region.solved.push(Some((name, Ix::var(element_index(dimension)))));
                continue;
            }
            let (conds, solved) = solve(assignment, dimension, out)?;
            region.solved.push(solved);
            let Some(size) = size else { continue };
            for cond in conds.map_err(too_complex(assignment))? {
                let shown = self.flow.of_element(&[(dimension, size)], &cond).map_err(too_complex(assignment))?;
                if shown != Verdict::Yes {
                    region.conds.push(cond);
                }
            }
        }
        Ok(region)
    }
}

impl Flow {
    /// Whether something holds of all indices of the elements of these dimensions.
    fn of_element(&self, dimensions: &[(usize, &Ix)], goal: &Cond) -> Result<Verdict, IxError> {
        let mut facts = self.facts.clone();
        for (dimension, size) in dimensions {
            let x = Ix::var(element_index(*dimension));
            facts.assume(Cond::le(&Ix::from(0), &x)?);
            facts.assume(Cond::lt(&x, size)?);
        }
        Ok(facts.prove(goal))
    }

    fn dimensions(&self, name: Name) -> Vec<(usize, &Ix)> {
        self.tensors.get(&name).into_iter().flat_map(|tensor| tensor.shape.iter().enumerate()).collect()
    }

    /// The error for an output of which only these parts are written, if they are not shown to be all of it.
    fn unwritten(&self, name: Name, parts: &Parts, last: &Assignment) -> Option<Diagnostic> {
        let dimensions = self.dimensions(name);
        // Never so, and adds nothing to the question but the indices that an example is to have.
        let never = |(d, _): &(usize, &Ix)| Cond::lt(&Ix::var(element_index(*d)), &Ix::from(0)).ok();
        let written = dimensions.iter().filter_map(never).fold(parts.together(), Cond::or);
        let verdict = match self.of_element(&dimensions, &written) {
            Ok(verdict) => verdict,
            Err(error) => return Some(too_complex(last)(error)),
        };
        let sizes: Option<Vec<i64>> = dimensions.iter().map(|(_, size)| size.as_constant()).collect();
        if verdict == Verdict::Yes || sizes.is_some_and(|sizes| parts.are_all_of(&sizes)) {
            return None;
        }
        let message = format!("`{name}` is an output, and not all of its elements are shown to be written");
        let mut error = Diagnostic::error(Code::E0212, last.span, message).label("the last statement that writes it");
        let count = parts.conds.len();
        if count > MOST_PARTS {
            error = error.note(format!("of its {count} parts, only the last {MOST_PARTS} are looked at"));
        } else if let Verdict::No(example) = verdict {
            let place: Vec<Ix> = dimensions
                .iter()
                .map(|(d, _)| Ix::from(example.0.get(&element_index(*d)).copied().unwrap_or(0)))
                .collect();
            let is_size = |(name, _): &(&Name, &i64)| !dimensions.iter().any(|(d, _)| element_index(*d) == **name);
            let sizes = example.0.iter().filter(is_size).map(|(name, value)| format!("{name} = {value}"));
            let sizes: Vec<String> = sizes.collect();
            let here = if sizes.is_empty() { String::new() } else { format!("for {}, ", sizes.join(", ")) };
            error = error.note(format!("{here}no statement writes `{}`", shown(name, &place)));
        }
        if let Some(tensor) = self.tensors.get(&name) {
            error = error.also(tensor.span, format!("`{name}` is introduced here"));
        }
        Some(error.help(format!("give all of it a value first, as `init({name}, 0.0)` does")))
    }

    /// Whether parts are shown to be all of a tensor.
    fn everywhere(&self, name: Name, parts: &mut Parts) -> Result<bool, IxError> {
        if std::mem::replace(&mut parts.asked, true) {
            return Ok(false);
        }
        Ok(self.of_element(&self.dimensions(name), &parts.together())? == Verdict::Yes)
    }

    /// Whether an element that a statement reads is in one of the parts, for all values of its iterators.
    fn is_inside(
        &self,
        parts: &mut Parts,
        (assignment, value): (&Assignment, &Expression),
        name: Name,
        indices: &[Ix],
    ) -> Result<Verdict, IxError> {
        if parts.elements.contains(indices) {
            return Ok(Verdict::Yes);
        }
        let mut facts = self.facts.clone();
        for (name, extent) in assignment.iterators.iter().chain(value.sums()) {
            let i = Ix::var(*name);
            facts.assume(Cond::le(&Ix::from(0), &i)?);
            facts.assume(Cond::lt(&i, extent)?);
        }
        let index = |name: Name| (0..indices.len()).find(|d| element_index(*d) == name).map(|d| indices[d].clone());
        // Mostly one part is enough, and it is one of the last.
        for part in parts.newest() {
            let verdict = facts.prove(&part.substitute(&index)?);
            if verdict == Verdict::Yes || parts.conds.len() == 1 {
                return Ok(verdict);
            }
        }
        if self.everywhere(name, parts)? {
            return Ok(Verdict::Yes);
        }
        Ok(facts.prove(&parts.together().substitute(&index)?))
    }
}

type Solved = (Result<Vec<Cond>, IxError>, Option<(Name, Ix)>);

/// What has to hold of an element's index for a statement to write it in a dimension, and the iterator that does.
fn solve(assignment: &Assignment, dimension: usize, out: &Ix) -> Evaluated<Solved> {
    let x = Ix::var(element_index(dimension));
    let iterators: Vec<&(Name, Ix)> = assignment.iterators.iter().filter(|(name, _)| out.mentions(*name)).collect();
    let (name, extent) = match iterators.as_slice() {
        [] => return Ok((Cond::eq(&x, out).map(|cond| vec![cond]), None)),
        [(name, extent)] => (*name, extent),
        _ => return Err(Box::new(not_understood(assignment, out))),
    };
    let Some((factor, rest)) = out.linear_in(name).filter(|(factor, _)| *factor != 0 && *factor != i64::MIN) else {
        return Err(Box::new(not_understood(assignment, out)));
    };
    let (of, by) = (x.sub(&rest).and_then(|of| of.scale(factor.signum())), factor.abs());
    let of = of.map_err(too_complex(assignment))?;
    let iterator = of.floor_div(by).map_err(too_complex(assignment))?;
    let conds = || {
        let mut conds = vec![Cond::le(&Ix::from(0), &of)?, Cond::lt(&iterator, extent)?];
        if by > 1 {
            conds.push(Cond::eq(&of.modulo(by)?, &Ix::from(0))?);
        }
        Ok(conds)
    };
    Ok((conds(), Some((name, iterator))))
}

fn not_understood(assignment: &Assignment, out: &Ix) -> Diagnostic {
    let message =
        format!("`{}` writes at `{out}`, which is neither a number nor a multiple of one iterator", assignment.id);
    Diagnostic::error(Code::E0216, assignment.span, message)
}

/// Whether an iterator stands on the left side.
pub(crate) fn is_out(assignment: &Assignment, iterator: Name) -> bool {
    assignment.out.iter().any(|out| out.mentions(iterator))
}

/// The ranges of the iterators that are not on the left side, in order.
pub(crate) fn summed(assignment: &Assignment) -> impl DoubleEndedIterator<Item = (Name, Range)> {
    let missing = assignment.iterators.iter().filter(|(name, _)| !is_out(assignment, *name));
    missing.map(|(name, extent)| (*name, Range::to(extent.clone())))
}

/// `A[i, k + 1]`
pub(crate) fn shown(name: Name, indices: &[Ix]) -> String {
    let indices: Vec<String> = indices.iter().map(Ix::to_string).collect();
    if indices.is_empty() { name.to_string() } else { format!("{name}[{}]", indices.join(", ")) }
}
