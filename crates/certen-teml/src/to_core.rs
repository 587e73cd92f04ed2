//! The meaning: a program of Core with a new name for each assignment.
//!
//! `t[out] = value` becomes `t_1 = gen x. if(written(x), value, t[x])`, where the iterators in `value` follow from the
//! indices `x` of the element (`flow.rs`); where all elements are written there is no condition, and the indices keep
//! the names of the iterators. Accumulation adds to the old version, and iterators that are not on the left side become
//! sums. Sums of `vcontract` stay where they are written.
//!
//! Guarantees: [`Program::check`] accepts the result.

use std::collections::{HashMap, HashSet};

use certen_core::{
    Binary, Binding, ElemType, Parameter, Program, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError,
};
use certen_index::{Cond, Ix, IxError};
use certen_syntax::{Code, Diagnostic, Name};

use crate::assignment::{Assignment, Begin, Statements};
use crate::expression::{Expression, ill_typed};
use crate::flow::{Flow, element_index, facts, flow, summed, too_complex};
use crate::pull::pull;

/// What a program means.
#[derive(Clone, Debug)]
pub struct Meaning {
    /// All real statements, in the order of the text.
    pub core: Program,
    /// Which statement reads what.
    pub flow: Flow,
}

/// The meaning of statements.
///
/// # Errors
/// E0212 where elements are read that nothing has written; E0216 and E0232 for what should have been refused before.
pub fn meaning(statements: &Statements) -> Result<Meaning, Vec<Diagnostic>> {
    let flow = flow(statements)?;
    match program(statements, &flow, |_, value| value) {
        Ok(core) => Ok(Meaning { core, flow }),
        Err(error) => Err(vec![error]),
    }
}

/// The meaning with sums pulled out as they are for loops.
pub(crate) fn pulled_out(statements: &Statements, flow: &Flow) -> Result<Program, Diagnostic> {
    program(statements, flow, |assignment, value| match pull(assignment, value.clone()) {
        // What is not a nest is in no path.
        Err(_) => value,
        Ok(pulled) => pulled.into_one(assignment),
    })
}

/// The names of all iterators.
pub(crate) fn iterator_names(statements: &Statements) -> impl Iterator<Item = Name> {
    let of_statements = statements.assignments.iter().flat_map(|assignment| &assignment.iterators);
    of_statements.chain(statements.values.sums()).map(|(name, _)| *name)
}

/// The names of all versions, by the statement that makes them. The last one has the name of the tensor, unless that is
/// an input.
fn versions(statements: &Statements, flow: &Flow) -> Vec<Name> {
    let mut taken: HashSet<Name> = statements.sizes.iter().copied().collect();
    taken.extend(statements.tensors.iter().map(|tensor| tensor.name));
    taken.extend(iterator_names(statements));
    let last: HashMap<Name, usize> =
        statements.assignments.iter().enumerate().map(|(at, assignment)| (assignment.target, at)).collect();
    let inputs: HashSet<Name> = flow.inputs.iter().copied().collect();
    let mut counts: HashMap<Name, u64> = HashMap::new();
    let name = |(at, assignment): (usize, &Assignment)| {
        let tensor = assignment.target;
        if last.get(&tensor) == Some(&at) && !inputs.contains(&tensor) {
            return tensor;
        }
        let count = counts.entry(tensor).or_default();
        let name = Name::numbered(&format!("{tensor}_"), count, |name| taken.contains(&name));
        taken.insert(name);
        name
    };
    statements.assignments.iter().enumerate().map(name).collect()
}

fn program(
    statements: &Statements,
    flow: &Flow,
    rewritten: impl Fn(&Assignment, Expression) -> Expression,
) -> Result<Program, Diagnostic> {
    let unusable = |error: IxError| Diagnostic::error(Code::E0216, None, format!("a size cannot be used: {error}"));
    let versions = versions(statements, flow);
    let mut lowering = Lowering {
        flow,
        taken: statements.sizes.iter().chain(&versions).copied().collect(),
        types: Vec::new(),
        versions,
        terms: Terms::new(flow.facts.clone()),
    };
    lowering.taken.extend(statements.tensors.iter().map(|tensor| tensor.name));
    let mut bindings = Vec::with_capacity(statements.assignments.len());
    for (at, assignment) in statements.assignments.iter().enumerate() {
        let value = rewritten(assignment, Expression::of(&statements.values, assignment.value));
        let term = lowering.assignment(at, assignment, &value)?;
        lowering.types.push(lowering.terms.ty(term).clone());
        bindings.push(Binding { name: lowering.versions[at], term });
    }
    let parameter = |name: &Name| Some(Parameter { name: *name, ty: flow.tensors.get(name)?.ty() });
    let core = Program {
        name: statements.name,
        sizes: statements.sizes.clone(),
        facts: facts(&statements.tensors).map_err(unusable)?,
        inputs: flow.inputs.iter().filter_map(parameter).collect(),
        bindings,
        outputs: flow.outputs.iter().map(|(name, last)| (*name, lowering.versions[*last])).collect(),
        terms: lowering.terms,
    };
    match core.check() {
        Ok(()) => Ok(core),
        Err(error) => Err(Diagnostic::error(Code::E0701, None, format!("ill-formed Core: {error}"))),
    }
}

struct Lowering<'a> {
    flow: &'a Flow,
    /// Sizes and tensors: no index may hide one.
    taken: HashSet<Name>,
    /// The names of the versions, and the types of those that are there.
    versions: Vec<Name>,
    types: Vec<TensorType>,
    terms: Terms,
}

impl Lowering<'_> {
    fn assignment(&mut self, at: usize, assignment: &Assignment, value: &Expression) -> Result<TermId, Diagnostic> {
        let wrong = too_complex(assignment);
        let tensor = self.flow.tensors.get(&assignment.target);
        let (elem, shape) = tensor.map_or((ElemType::F64, &[][..]), |tensor| (tensor.elem, &tensor.shape));
        let region = &self.flow.written[at];
        // The indices of the element: iterators where they run over the whole dimension.
        let mut taken: HashSet<Name> = assignment.iterators.iter().chain(value.sums()).map(|(name, _)| *name).collect();
        let mut indices: Vec<Name> = Vec::with_capacity(shape.len());
        let mut solved: HashMap<Name, Ix> = HashMap::new();
        for (dimension, solution) in region.solved.iter().enumerate() {
            let x = Ix::var(element_index(dimension));
            let index = match solution {
                Some((iterator, ix)) if *ix == x && !self.taken.contains(iterator) => *iterator,
                _ => {
                    let all = |name| taken.contains(&name) || self.taken.contains(&name);
                    Name::fresh(&format!("x{}", dimension + 1), all)
                }
            };
            taken.insert(index);
            let here = |name: Name| (name == element_index(dimension)).then(|| Ix::var(index));
            if let Some((iterator, ix)) = solution {
                solved.insert(*iterator, ix.substitute(&here).map_err(&wrong)?);
            }
            indices.push(index);
        }
        let element = |name: Name| (0..indices.len()).find(|d| element_index(*d) == name).map(|d| Ix::var(indices[d]));
        let at_element = |name: Name| solved.get(&name).cloned();

        let kept = self.flow.kept[at].map(|version| (assignment.target, version));
        let reads: HashMap<Name, (Name, TensorType)> = self.flow.reads[at]
            .iter()
            .copied()
            .chain(kept)
            .filter_map(|(name, version)| Some((name, self.version(name, version)?)))
            .collect();
        let missing = |name: Name| ill_typed(assignment)(TypeError(format!("there is no tensor {name}")));
        let mut value = value.term(
            assignment,
            elem,
            &mut self.terms,
            |terms, name, indices| {
                let (version, ty) = reads.get(&name).cloned().ok_or_else(|| missing(name))?;
                let indices: Result<Vec<Ix>, IxError> = indices.iter().map(|ix| ix.substitute(&at_element)).collect();
                terms.element(version, ty, indices.map_err(&wrong)?).map_err(ill_typed(assignment))
            },
            |terms, iterators, body| {
                let ranges = iterators.iter().map(|(name, extent)| (*name, Range::to(extent.clone())));
                reduce(terms, ReduceOp::Sum, ranges, body).map_err(ill_typed(assignment))
            },
        )?;
        let x: Vec<Ix> = indices.iter().map(|name| Ix::var(*name)).collect();
        let old = |terms: &mut Terms| {
            let (version, ty) = reads.get(&assignment.target).cloned().ok_or_else(|| missing(assignment.target))?;
            terms.element(version, ty, x.clone()).map_err(ill_typed(assignment))
        };
        if let Begin::Contract | Begin::Accumulate { .. } = assignment.begin {
            let op = if let Begin::Accumulate { op, .. } = assignment.begin { op } else { ReduceOp::Sum };
            value = reduce(&mut self.terms, op, summed(assignment), value).map_err(ill_typed(assignment))?;
        }
        if let Begin::Accumulate { op, negated } = assignment.begin {
            let with = if negated { Binary::Sub } else { op.combine() };
            let before = old(&mut self.terms)?;
            value = self.terms.add(Term::Binary(with, before, value)).map_err(ill_typed(assignment))?;
        }
        if !region.whole() {
            let kept = match reads.contains_key(&assignment.target) {
                true => old(&mut self.terms)?,
                false => self.terms.add(Term::Undefined(elem)).map_err(ill_typed(assignment))?,
            };
            let conds =
                region.conds.iter().try_fold(Cond::always(), |all, cond| Ok(all.and(cond.substitute(&element)?)));
            let cond = conds.map_err(&wrong)?;
            value = self.terms.add(Term::If(cond, value, kept)).map_err(ill_typed(assignment))?;
        }
        for (index, size) in indices.iter().zip(shape).rev() {
            let range = Range::to(size.clone());
            value = self.terms.add(Term::Gen(*index, range, value)).map_err(ill_typed(assignment))?;
        }
        Ok(value)
    }

    /// The name and type of a version.
    fn version(&self, tensor: Name, version: Option<usize>) -> Option<(Name, TensorType)> {
        match version {
            Some(at) => Some((*self.versions.get(at)?, self.types.get(at)?.clone())),
            None => Some((tensor, self.flow.tensors.get(&tensor)?.ty())),
        }
    }
}

/// Reductions over ranges, the first one outermost.
fn reduce(
    terms: &mut Terms,
    op: ReduceOp,
    ranges: impl DoubleEndedIterator<Item = (Name, Range)>,
    mut body: TermId,
) -> Result<TermId, TypeError> {
    for (name, range) in ranges.rev() {
        body = terms.add(Term::Reduce(op, name, range, Cond::always(), body))?;
    }
    Ok(body)
}
