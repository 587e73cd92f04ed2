//! Loops: the nests of `build`, in the order of a `codegen` statement.
//!
//! Every statement is a perfect nest over its iterators (TeML, Eq. 19; `pull.rs`), under the label of its id; what has
//! to happen first is a nest of its own, directly before the first one of its entry: zeros or first values, the copy of
//! a target that is read while it is overwritten, the copy of an input that is written. A tensor is one buffer; an
//! input that is written has a second one. Sums are made in memory, by `+=`.
//!
//! Needs: an order in which nothing is read that was not written (`order.rs`). Guarantees: the verifier accepts the
//! loops, as long as all accesses of the statements are in bounds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use certen_core::{Parameter, Program, Range, ReduceOp, TensorType, Term, Terms, TypeError, Unary};
use certen_index::Ix;
use certen_loops::{LoopProgram, Mode, Stmt, Target};
use certen_syntax::{Diagnostic, Name};

use crate::assignment::{Assignment, Begin, Route, Statements, Values};
use crate::compiled::Path;
use crate::expression::{Expression, ill_typed};
use crate::flow::is_out;
use crate::order::{Runs, order};
use crate::pull::{Before, Pulled, pull};
use crate::to_core::{Meaning, iterator_names, pulled_out};

/// The loops of `build`, outermost first.
///
/// # Errors
/// E0248 for a statement with sums that are not loops of a perfect nest.
pub fn iterators(values: &Values, assignment: &Assignment) -> Result<Vec<(Name, Ix)>, Diagnostic> {
    Ok(pull(assignment, Expression::of(values, assignment.value))?.iterators)
}

/// All `codegen` statements of a program, and what is the same for each of them.
pub struct Paths<'a> {
    statements: &'a Statements,
    meaning: &'a Meaning,
    runs: Runs<'a>,
    /// The program with sums pulled out, once a path needs it.
    lowered: Option<Arc<Program>>,
}

impl<'a> Paths<'a> {
    /// The paths of a program.
    ///
    /// # Errors
    /// E0216 for an index that becomes too complex.
    pub fn new(statements: &'a Statements, meaning: &'a Meaning) -> Result<Paths<'a>, Vec<Diagnostic>> {
        let runs = Runs::new(statements, &meaning.flow)?;
        Ok(Paths { statements, meaning, runs, lowered: None })
    }

    /// The loops of a `codegen` statement.
    ///
    /// # Errors
    /// E0248 for sums that are not loops; E0249 for a list that reads what nothing in it has written, leaves an output
    /// out, or lists a statement twice.
    pub fn path(&mut self, route: Route) -> Result<Path, Vec<Diagnostic>> {
        let order = order(self.statements, &self.meaning.flow, &route)?;
        let in_order = self.runs.is_right(&route, &order)?;
        let built = Builder::new(self.statements, self.meaning, &order).program(&order);
        let (loops, distributed) = built.map_err(|error| vec![error])?;
        let lowered = if distributed { Some(self.lowered().map_err(|error| vec![error])?) } else { None };
        let steps = route.entries.into_iter().flat_map(|entry| entry.steps).collect();
        Ok(Path { name: route.name, span: route.span, loops, steps, lowered, in_order })
    }

    fn lowered(&mut self) -> Result<Arc<Program>, Diagnostic> {
        if let Some(lowered) = &self.lowered {
            return Ok(lowered.clone());
        }
        let lowered = Arc::new(pulled_out(self.statements, &self.meaning.flow)?);
        Ok(self.lowered.insert(lowered).clone())
    }
}

/// Nests of one statement, in order: what comes before, and its own.
struct Nests {
    before: Vec<Stmt>,
    /// What the statements before read, and the tensor that they write.
    reads: HashSet<Name>,
    own: Vec<Stmt>,
}

struct Builder<'a> {
    statements: &'a Statements,
    meaning: &'a Meaning,
    terms: Terms,
    /// Where tensors are kept now.
    storage: HashMap<Name, Name>,
    /// Where tensors are written that are still in the caller's memory.
    second: HashMap<Name, Name>,
    /// Where the old values of tensors are copied.
    old: HashMap<Name, Name>,
    /// Buffers that are allocated, in order.
    allocated: Vec<(Name, TensorType)>,
    outputs: Vec<Parameter>,
    taken: HashSet<Name>,
    labels: HashSet<Name>,
    /// Whether a sum was pulled out of a product.
    distributed: bool,
}

impl<'a> Builder<'a> {
    fn new(statements: &'a Statements, meaning: &'a Meaning, order: &[Vec<usize>]) -> Builder<'a> {
        let flow = &meaning.flow;
        let mut taken: HashSet<Name> = statements.sizes.iter().copied().collect();
        taken.extend(statements.tensors.iter().map(|tensor| tensor.name));
        taken.extend(iterator_names(statements));
        let mut builder = Builder {
            statements,
            meaning,
            terms: Terms::new(flow.facts.clone()),
            storage: flow.tensors.keys().map(|name| (*name, *name)).collect(),
            second: HashMap::new(),
            old: HashMap::new(),
            allocated: Vec::new(),
            outputs: Vec::new(),
            taken,
            labels: statements.assignments.iter().map(|assignment| assignment.id).collect(),
            distributed: false,
        };
        let inputs: HashSet<Name> = flow.inputs.iter().copied().collect();
        let mut kept: HashSet<Name> = inputs.clone();
        for (name, _) in &flow.outputs {
            let Some(tensor) = flow.tensors.get(name) else { continue };
            let buffer = if inputs.contains(name) { builder.fresh(&format!("{name}_out")) } else { *name };
            if buffer != *name {
                builder.second.insert(*name, buffer);
            }
            kept.insert(*name);
            builder.outputs.push(Parameter { name: buffer, ty: tensor.ty() });
        }
        for assignment in order.iter().flatten().filter_map(|at| statements.assignments.get(*at)) {
            let name = assignment.target;
            let Some(tensor) = flow.tensors.get(&name) else { continue };
            if kept.insert(name) {
                builder.allocated.push((name, tensor.ty()));
            } else if inputs.contains(&name) && !builder.second.contains_key(&name) {
                let buffer = builder.fresh(&format!("{name}_new"));
                builder.second.insert(name, buffer);
                builder.allocated.push((buffer, tensor.ty()));
            }
        }
        builder
    }

    fn fresh(&mut self, base: &str) -> Name {
        let name = Name::fresh(base, |name| self.taken.contains(&name));
        self.taken.insert(name);
        name
    }

    /// The loops, and whether a sum was pulled out of a product for them.
    fn program(mut self, order: &[Vec<usize>]) -> Result<(LoopProgram, bool), Diagnostic> {
        let mut body = Vec::new();
        for entry in order {
            let first = body.len();
            // Where nests go that come before the whole entry.
            let mut ahead: Vec<Stmt> = Vec::new();
            let mut touched: HashSet<Name> = HashSet::new();
            for &at in entry {
                let Some(assignment) = self.statements.assignments.get(at) else { continue };
                let nests = self.assignment(at, assignment)?;
                if nests.reads.iter().chain([&assignment.target]).any(|name| touched.contains(name)) {
                    body.extend(nests.before);
                } else {
                    ahead.extend(nests.before);
                }
                body.extend(nests.own);
                touched.extend(self.meaning.flow.reads[at].iter().map(|(name, _)| *name));
                touched.insert(assignment.target);
            }
            body.splice(first..first, ahead);
        }
        let core = &self.meaning.core;
        let allocs = self.allocated.iter().map(|(name, ty)| Stmt::Alloc(*name, ty.clone()));
        let frees = self.allocated.iter().rev().map(|(name, _)| Stmt::Free(*name));
        let loops = LoopProgram {
            name: core.name,
            sizes: core.sizes.clone(),
            facts: core.facts.clone(),
            inputs: core.inputs.clone(),
            outputs: self.outputs,
            constants: Vec::new(),
            streamed: Vec::new(),
            body: allocs.chain(body).chain(frees).collect(),
            terms: self.terms,
        };
        Ok((loops, self.distributed))
    }

    /// The nests of a statement; its target is kept in a new place after it if that was the caller's.
    fn assignment(&mut self, at: usize, assignment: &Assignment) -> Result<Nests, Diagnostic> {
        let target = assignment.target;
        let right = Expression::of(&self.statements.values, assignment.value);
        let pulled = pull(assignment, right)?;
        let whole = self.meaning.flow.written[at].whole();
        let old = self.storage.get(&target).copied().unwrap_or(target);
        let mut nests = Nests { before: Vec::new(), reads: HashSet::new(), own: Vec::new() };
        // Where the target is read, and where it is written.
        let (mut from, mut to) = (old, old);
        if let Some(second) = self.second.remove(&target) {
            to = second;
            self.storage.insert(target, second);
            if matches!(assignment.begin, Begin::Accumulate { .. }) || !whole {
                self.copy(assignment, old, second, &mut nests.before)?;
            }
        } else if overwrites_what_it_reads(assignment, &pulled) {
            from = self.old_buffer(assignment)?;
            self.copy(assignment, old, from, &mut nests.before)?;
        }
        let Pulled { iterators, before, op, negated, value, distributed } = pulled;
        self.distributed |= distributed;
        let left: Vec<(Name, Ix)> =
            assignment.iterators.iter().filter(|(name, _)| is_out(assignment, *name)).cloned().collect();
        let zero = Expression::zero(self.ty(assignment, target)?.elem);
        let first = match &before {
            None => None,
            Some(Before::Zero) => Some((&left, None, &zero, false)),
            Some(Before::Value(value, negated)) => Some((&left, None, value, *negated)),
            Some(Before::Added(value, negated)) => Some((&assignment.iterators, Some(ReduceOp::Sum), value, *negated)),
        };
        if let Some((iterators, op, value, negated)) = first {
            nests.reads.extend(value.elements().map(|(name, _)| name));
            let label = self.label(&format!("{}_zero", assignment.id));
            nests.before.push(Stmt::Nest(label));
            let nest = self.nest(assignment, (from, to), iterators, op, (value, negated))?;
            nests.before.push(nest);
        }
        nests.own.push(Stmt::Nest(assignment.id));
        nests.own.push(self.nest(assignment, (from, to), &iterators, op, (&value, negated))?);
        Ok(nests)
    }

    /// The buffer for old values of a target.
    fn old_buffer(&mut self, assignment: &Assignment) -> Result<Name, Diagnostic> {
        if let Some(buffer) = self.old.get(&assignment.target) {
            return Ok(*buffer);
        }
        let (buffer, ty) = (self.fresh(&format!("{}_old", assignment.target)), self.ty(assignment, assignment.target)?);
        self.old.insert(assignment.target, buffer);
        self.allocated.push((buffer, ty));
        Ok(buffer)
    }

    fn label(&mut self, base: &str) -> Name {
        let label = Name::fresh(base, |name| self.labels.contains(&name));
        self.labels.insert(label);
        label
    }

    fn ty(&self, assignment: &Assignment, tensor: Name) -> Result<TensorType, Diagnostic> {
        let missing = || ill_typed(assignment)(TypeError(format!("there is no tensor {tensor}")));
        self.meaning.flow.tensors.get(&tensor).map(|tensor| tensor.ty()).ok_or_else(missing)
    }

    /// A nest that copies the target of a statement from one buffer to another.
    fn copy(&mut self, assignment: &Assignment, from: Name, to: Name, nests: &mut Vec<Stmt>) -> Result<(), Diagnostic> {
        let ty = self.ty(assignment, assignment.target)?;
        let index = |dimension: usize| Name::fresh(&format!("c{dimension}"), |name| self.taken.contains(&name));
        let names: Vec<Name> = (1..=ty.rank()).map(index).collect();
        let indices: Vec<Ix> = names.iter().map(|name| Ix::var(*name)).collect();
        let value = self.terms.element(from, ty.clone(), indices.clone()).map_err(ill_typed(assignment))?;
        let store = Stmt::Assign { target: Target::Element(to, indices.into()), op: None, value };
        let label = self.label(&format!("{}_copy", assignment.id));
        nests.push(Stmt::Nest(label));
        nests.push(looped(names.into_iter().zip(ty.shape.iter().cloned()), store));
        Ok(())
    }

    /// A perfect nest. The target is read from one buffer and written to another.
    fn nest(
        &mut self,
        assignment: &Assignment,
        (from, to): (Name, Name),
        iterators: &[(Name, Ix)],
        op: Option<ReduceOp>,
        (value, negated): (&Expression, bool),
    ) -> Result<Stmt, Diagnostic> {
        let elem = self.ty(assignment, assignment.target)?.elem;
        let (storage, tensors) = (&self.storage, &self.meaning.flow.tensors);
        let mut stored = value.term(
            assignment,
            elem,
            &mut self.terms,
            |terms, name, indices| {
                let missing = || ill_typed(assignment)(TypeError(format!("there is no tensor {name}")));
                let ty = tensors.get(&name).map(|tensor| tensor.ty()).ok_or_else(missing)?;
                let buffer = if name == assignment.target { from } else { storage.get(&name).copied().unwrap_or(name) };
                terms.element(buffer, ty, indices).map_err(ill_typed(assignment))
            },
            |_, _, _| Err(ill_typed(assignment)(TypeError("a sum was left".into()))),
        )?;
        if negated {
            stored = self.terms.add(Term::Unary(Unary::Neg, stored)).map_err(ill_typed(assignment))?;
        }
        let target = Target::Element(to, assignment.out.clone().into());
        Ok(looped(iterators.iter().cloned(), Stmt::Assign { target, op, value: stored }))
    }
}

/// A statement in loops, the first one outermost.
fn looped(iterators: impl DoubleEndedIterator<Item = (Name, Ix)>, inner: Stmt) -> Stmt {
    iterators.rev().fold(inner, |body, (index, extent)| Stmt::For {
        index,
        range: Range::to(extent),
        mode: Mode::Serial,
        body: vec![body],
    })
}

/// Whether a statement reads elements of its target that it may have overwritten before.
fn overwrites_what_it_reads(assignment: &Assignment, pulled: &Pulled) -> bool {
    let once = pulled.before.is_none() && pulled.iterators.iter().all(|(name, _)| is_out(assignment, *name));
    let first = match &pulled.before {
        None | Some(Before::Zero) => None,
        Some(Before::Value(value, _) | Before::Added(value, _)) => Some(value),
    };
    let mut reads = first.into_iter().chain([&pulled.value]).flat_map(|value| value.elements());
    reads.any(|(name, indices)| name == assignment.target && !(once && indices == assignment.out))
}
