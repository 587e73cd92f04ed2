//! Lowering: from Core's terms, which say what each element is, to loops that compute all of them.
//!
//! As in the meaning of Core (TeIL, Fig. 6), a tensor is a function from indices to scalars. A binding becomes a nest
//! of loops over its generations, and inside of it the *value* of its term at the loops' indices is assigned to an
//! element of the binding's buffer. The value of a term at given indices is a scalar term; on the way down
//!
//! - a selection adds its indices in front, a generation takes the first one away (so reading a generated element
//!   inlines it: beta);
//! - a reduction becomes an accumulator and a loop *before* the statement that needs the value;
//! - `if` and `guard` become a local that is assigned under the condition, so no access leaves the condition that
//!   made it safe;
//! - a `let` becomes a local or a buffer.
//!
//! Names of Core are never substituted into terms; they are looked up in an environment whose values speak of loop
//! indices, which are fresh where they have to be. So nothing is captured.
//!
//! Needs: a program that [`Program::check`] accepts. Guarantees: the result passes [`verify`](crate::verify) if the
//! thin prover can follow its accesses; no recursion over the depth of scalar expressions, only over loops.

use std::collections::{HashMap, HashSet};

use certen_core::{Literal, Parameter, Program, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::ir::{LoopProgram, MAX_NESTING, Stmt, Target};

/// Values computed for one binding before it is refused: inlining generations into each other can grow exponentially.
const MAX_STEPS: usize = 4_000_000;

/// Minima and maxima inside each other: each one doubles the code of its body, for its first element.
const MAX_EXTREMES: usize = 8;

/// Lowers a program. The outputs are in the order of [`Program::outputs`]; one that has the name of an input or size
/// gets another name.
///
/// # Errors
/// E0703 for what is not lowered yet: reshapes (flatten, split, transpose, concat, pad, trunc), `iterate`, minima and
/// maxima with a condition. E0702 for minima and maxima over a range that is not shown to be non-empty.
pub fn lower(program: &Program) -> Result<LoopProgram, Diagnostic> {
    let Interface { outputs, storage, taken } = interface(program)?;
    let user = program.names();
    let mut lowering = Lowering {
        program,
        out: Terms::new(program.terms.facts().clone()),
        storage,
        scopes: Vec::new(),
        names: Names { taken, user, active: HashSet::new(), next: HashMap::new() },
        blocks: vec![Block::default()],
        steps: 0,
        extremes: 0,
    };
    let is_output: HashSet<Name> = outputs.iter().map(|p| p.name).collect();
    let ends = program.last_uses();
    for (at, binding) in program.bindings.iter().enumerate() {
        let Some(last_uses) = &ends[at] else { continue };
        let buffer = lowering.stored(None, binding.name)?;
        if !is_output.contains(&buffer.name) {
            lowering.push(Stmt::Alloc(buffer.name, buffer.ty.clone()));
        }
        lowering.binding(binding.term, &buffer).map_err(|error| error.note(format!("in `{}`", binding.name)))?;
        for used in last_uses {
            let name = lowering.stored(None, *used)?.name;
            if !is_output.contains(&name) {
                lowering.push(Stmt::Free(name));
            }
        }
    }
    for ((_, shown), output) in program.outputs.iter().zip(&outputs) {
        let source = lowering.stored(None, *shown)?;
        if source.name != output.name {
            let copied = lowering.out.reference(source.name, source.ty.clone()).map_err(ill_typed)?;
            lowering.copy(copied, &Stored { name: output.name, ty: output.ty.clone() })?;
        }
    }
    let body = lowering.close();
    Ok(LoopProgram {
        name: program.name,
        sizes: program.sizes.clone(),
        facts: program.facts.clone(),
        inputs: program.inputs.clone(),
        outputs,
        body,
        terms: lowering.out,
    })
}

/// Where a tensor is kept: a buffer, or a local if it has no dimensions.
#[derive(Clone)]
struct Stored {
    name: Name,
    ty: TensorType,
}

/// The buffers of a program, and every name that they and the sizes take.
struct Interface {
    outputs: Vec<Parameter>,
    storage: HashMap<Name, Stored>,
    taken: HashSet<Name>,
}

/// Chooses buffers: inputs keep their names, outputs unless an input has it, other bindings unless an output has it. A
/// binding that is shown as an output is kept there.
fn interface(program: &Program) -> Lowered<Interface> {
    let types = program.types();
    let mut taken: HashSet<Name> = program.sizes.iter().copied().chain(program.inputs.iter().map(|p| p.name)).collect();
    let known: HashSet<Name> = program.bindings.iter().map(|b| b.name).collect();
    let mut storage: HashMap<Name, Stored> =
        program.inputs.iter().map(|p| (p.name, Stored { name: p.name, ty: p.ty.clone() })).collect();
    let mut outputs = Vec::new();
    for (name, shown) in &program.outputs {
        let ty = types.get(shown).cloned().ok_or_else(|| not_bound(*shown))?;
        let name = if taken.contains(name) {
            Name::fresh(&format!("{name}_out"), |n| taken.contains(&n) || known.contains(&n))
        } else {
            *name
        };
        taken.insert(name);
        storage.entry(*shown).or_insert_with(|| Stored { name, ty: ty.clone() });
        outputs.push(Parameter { name, ty });
    }
    for binding in &program.bindings {
        if storage.contains_key(&binding.name) {
            continue;
        }
        let name = if taken.contains(&binding.name) {
            Name::fresh(binding.name.as_str(), |n| taken.contains(&n) || known.contains(&n))
        } else {
            binding.name
        };
        taken.insert(name);
        storage.insert(binding.name, Stored { name, ty: program.terms.ty(binding.term).clone() });
    }
    Ok(Interface { outputs, storage, taken })
}

/// Fresh names for loop indices, locals and buffers of `let`s.
struct Names {
    /// Sizes and buffers of the whole program: no index may hide one.
    taken: HashSet<Name>,
    /// Every name that the user wrote: no accumulator may look like one.
    user: HashSet<Name>,
    /// What is in scope in the open blocks.
    active: HashSet<Name>,
    /// The smallest number worth trying behind a name.
    next: HashMap<Name, u64>,
}

/// A name that [`Names`] gave, to be given back when its block is closed.
struct Given {
    name: Name,
    base: Name,
    count: u64,
}

impl Names {
    /// The first of `base`, `base_1`, … that is free; with `own`, one that the user did not write either.
    fn give(&mut self, base: Name, own: bool) -> Given {
        let mut count = self.next.get(&base).copied().unwrap_or(0);
        loop {
            let name = if count == 0 { base } else { Name::new(&format!("{base}_{count}")) };
            let hides = self.taken.contains(&name) || (own && self.user.contains(&name));
            if !hides && self.active.insert(name) {
                self.next.insert(base, count + 1);
                return Given { name, base, count };
            }
            count += 1;
        }
    }

    fn give_back(&mut self, given: &Given) {
        self.active.remove(&given.name);
        if let Some(next) = self.next.get_mut(&given.base) {
            *next = (*next).min(given.count);
        }
    }
}

/// What a name of Core stands for, inside the names of an enclosing scope.
struct Scope {
    outer: Env,
    name: Name,
    meaning: Meaning,
}

#[derive(Clone)]
enum Meaning {
    Index(Ix),
    Tensor(Stored),
}

/// A place in [`Lowering::scopes`]; none is the program's own scope.
type Env = Option<usize>;

/// A term at indices, under an environment.
type Key = (TermId, Env, Box<[Ix]>);

/// A block of statements that is being built.
#[derive(Default)]
struct Block {
    stmts: Vec<Stmt>,
    /// What holds inside, beyond what holds outside.
    facts: Vec<Cond>,
    /// Values that are already computed here.
    known: HashMap<Key, TermId>,
    names: Vec<Given>,
    /// Buffers that end with the block.
    buffers: Vec<Name>,
}

enum Task {
    /// Compute the value of a term at indices.
    Value(TermId, Env, Vec<Ix>),
    /// Build an operation from the values of its parts.
    Combine(TermId),
    /// The value just computed is that of this term.
    Remember(Key),
}

struct Lowering<'a> {
    program: &'a Program,
    out: Terms,
    storage: HashMap<Name, Stored>,
    scopes: Vec<Scope>,
    names: Names,
    blocks: Vec<Block>,
    steps: usize,
    extremes: usize,
}

type Lowered<T> = Result<T, Diagnostic>;

fn not_yet(what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::E0703, None, format!("{what} cannot be compiled yet"))
        .help("use the reference evaluator: `--backend interp`")
}

fn ill_typed(error: TypeError) -> Diagnostic {
    Diagnostic::error(Code::E0701, None, format!("ill-formed Core: {error}"))
}

fn not_bound(name: Name) -> Diagnostic {
    Diagnostic::error(Code::E0701, None, format!("ill-formed Core: the tensor {name} is not bound"))
}

fn bad_index(error: IxError) -> Diagnostic {
    Diagnostic::error(Code::E0216, None, format!("an index of the loops cannot be used: {error}"))
}

impl<'a> Lowering<'a> {
    fn term(&self, id: TermId) -> &'a Term {
        self.program.terms.get(id)
    }

    // Blocks

    fn block(&mut self) -> &mut Block {
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    fn push(&mut self, stmt: Stmt) {
        self.block().stmts.push(stmt);
    }

    fn open(&mut self, facts: Vec<Cond>) -> Lowered<()> {
        if self.blocks.len() >= MAX_NESTING {
            return Err(not_yet(format!("more than {MAX_NESTING} loops and conditions inside each other")));
        }
        self.blocks.push(Block { facts, ..Block::default() });
        Ok(())
    }

    /// Ends the innermost block: its buffers are freed and its names given back.
    fn close(&mut self) -> Vec<Stmt> {
        self.free_buffers();
        let block = self.blocks.pop().unwrap_or_default();
        block.names.iter().rev().for_each(|given| self.names.give_back(given));
        block.stmts
    }

    fn free_buffers(&mut self) {
        let block = self.block();
        let frees = block.buffers.drain(..).rev().map(Stmt::Free);
        block.stmts.extend(frees);
    }

    /// Opens a loop and gives the name of its index.
    fn open_loop(&mut self, base: Name, range: &Range) -> Lowered<Name> {
        self.open(Vec::new())?;
        let index = self.fresh(base, false);
        let i = Ix::var(index);
        self.block().facts =
            vec![Cond::le(&range.lo, &i).map_err(bad_index)?, Cond::lt(&i, &range.hi).map_err(bad_index)?];
        Ok(index)
    }

    fn close_loop(&mut self, index: Name, range: Range) {
        let body = self.close();
        self.push(Stmt::For { index, range, body });
    }

    fn fresh(&mut self, base: Name, own: bool) -> Name {
        let given = self.names.give(base, own);
        let name = given.name;
        self.block().names.push(given);
        name
    }

    fn local(&mut self, base: &str, elem: certen_core::ElemType, init: Option<TermId>) -> Lowered<(Name, TermId)> {
        let name = self.fresh(Name::new(base), true);
        self.push(Stmt::Local { name, elem, init });
        let read = self.out.reference(name, TensorType::scalar(elem)).map_err(ill_typed)?;
        Ok((name, read))
    }

    // Names of Core

    fn bind(&mut self, outer: Env, name: Name, meaning: Meaning) -> Env {
        self.scopes.push(Scope { outer, name, meaning });
        Some(self.scopes.len() - 1)
    }

    fn lookup(&self, mut env: Env, name: Name) -> Option<&Meaning> {
        while let Some(scope) = env.and_then(|at| self.scopes.get(at)) {
            if scope.name == name {
                return Some(&scope.meaning);
            }
            env = scope.outer;
        }
        None
    }

    fn stored(&self, env: Env, name: Name) -> Lowered<Stored> {
        match self.lookup(env, name) {
            Some(Meaning::Tensor(stored)) => Ok(stored.clone()),
            _ => self.storage.get(&name).cloned().ok_or_else(|| not_bound(name)),
        }
    }

    fn index_of(&self, env: Env, name: Name) -> Option<Ix> {
        match self.lookup(env, name) {
            Some(Meaning::Index(ix)) => Some(ix.clone()),
            _ => None,
        }
    }

    fn ix(&self, env: Env, ix: &Ix) -> Lowered<Ix> {
        if env.is_none() || ix.as_constant().is_some() {
            return Ok(ix.clone());
        }
        if let Some(name) = ix.as_var() {
            return Ok(self.index_of(env, name).unwrap_or_else(|| ix.clone()));
        }
        ix.substitute(&|name| self.index_of(env, name)).map_err(bad_index)
    }

    fn range(&self, env: Env, range: &Range) -> Lowered<Range> {
        Ok(Range { lo: self.ix(env, &range.lo)?, hi: self.ix(env, &range.hi)? })
    }

    fn cond(&self, env: Env, cond: &Cond) -> Lowered<Cond> {
        cond.substitute(&|name| self.index_of(env, name)).map_err(bad_index)
    }

    // Tensors into buffers

    /// A binding of the program, into its buffer.
    fn binding(&mut self, term: TermId, buffer: &Stored) -> Lowered<()> {
        self.steps = 0;
        self.scopes.clear();
        self.store(term, None, buffer)?;
        self.free_buffers();
        let block = self.block();
        block.known.clear();
        Ok(())
    }

    /// A nest that computes every element of a term into a buffer.
    fn store(&mut self, mut term: TermId, mut env: Env, buffer: &Stored) -> Lowered<()> {
        // The indices of the element that is written, and those at which the term is still to be read.
        let (mut written, mut read) = (Vec::new(), Vec::new());
        let mut loops: Vec<(Name, Range)> = Vec::new();
        let mut begun = false;
        loop {
            (term, env, read) = self.head(term, env, read)?;
            if !std::mem::replace(&mut begun, true) {
                self.push(Stmt::Nest(buffer.name));
            }
            let Term::Gen(name, range, body) = self.term(term) else { break };
            let range = self.range(env, range)?;
            let index = self.open_loop(*name, &range)?;
            written.push(Ix::var(index).sub(&range.lo).map_err(bad_index)?);
            loops.push((index, range));
            env = self.bind(env, *name, Meaning::Index(Ix::var(index)));
            term = *body;
        }
        for at in read.len()..self.program.terms.ty(term).rank() {
            let range = Range::to(self.ix(env, &self.program.terms.ty(term).shape[at])?);
            let index = self.open_loop(Name::new(&format!("i{}", written.len() + 1)), &range)?;
            written.push(Ix::var(index));
            read.push(Ix::var(index));
            loops.push((index, range));
        }
        self.assign(term, env, read, &Target::Element(buffer.name, written.into()))?;
        for (index, range) in loops.into_iter().rev() {
            self.close_loop(index, range);
        }
        Ok(())
    }

    /// An element of a term, into a target. A condition at the top chooses between assignments.
    fn assign(&mut self, term: TermId, env: Env, indices: Vec<Ix>, target: &Target) -> Lowered<()> {
        let (term, env, indices) = self.head(term, env, indices)?;
        if let Some((cond, then, otherwise)) = self.branches(term, env)? {
            return self.choice(cond, env, indices, (then, otherwise), target);
        }
        let value = self.value(term, env, indices)?;
        self.push(Stmt::Assign { target: target.clone(), op: None, value });
        Ok(())
    }

    /// The condition and branches of an `if` or `guard` that is open; a guard has no second branch.
    fn branches(&self, term: TermId, env: Env) -> Lowered<Option<(Cond, TermId, Option<TermId>)>> {
        Ok(match self.term(term) {
            Term::Guard(cond, body) => Some((self.cond(env, cond)?, *body, None)),
            Term::If(cond, then, otherwise) => Some((self.cond(env, cond)?, *then, Some(*otherwise))),
            _ => None,
        })
    }

    /// One of two assignments to the same target; the missing branch of a guard is zero.
    fn choice(
        &mut self,
        cond: Cond,
        env: Env,
        indices: Vec<Ix>,
        (then, otherwise): (TermId, Option<TermId>),
        target: &Target,
    ) -> Lowered<()> {
        if cond.is_never() && otherwise.is_none() {
            let value = self.zero(then)?;
            self.push(Stmt::Assign { target: target.clone(), op: None, value });
            return Ok(());
        }
        self.open(vec![cond.clone()])?;
        self.assign(then, env, indices.clone(), target)?;
        let accepted = self.close();
        self.open(vec![cond.not().map_err(bad_index)?])?;
        match otherwise {
            Some(otherwise) => self.assign(otherwise, env, indices, target)?,
            None => {
                let value = self.zero(then)?;
                self.push(Stmt::Assign { target: target.clone(), op: None, value });
            }
        }
        let refused = self.close();
        self.push(Stmt::If { cond, then: accepted, otherwise: refused });
        Ok(())
    }

    fn zero(&mut self, like: TermId) -> Lowered<TermId> {
        let elem = self.program.terms.ty(like).elem;
        self.out.add(Term::Literal(Literal::whole(0, elem), elem)).map_err(ill_typed)
    }

    /// A nest that copies a tensor, given in the arena of the loops.
    fn copy(&mut self, source: TermId, target: &Stored) -> Lowered<()> {
        self.push(Stmt::Nest(target.name));
        let (mut loops, mut indices) = (Vec::new(), Vec::new());
        for (at, size) in target.ty.shape.iter().enumerate() {
            let range = Range::to(size.clone());
            let index = self.open_loop(Name::new(&format!("i{}", at + 1)), &range)?;
            indices.push(Ix::var(index));
            loops.push((index, range));
        }
        let indices: Box<[Ix]> = indices.into();
        let value = match indices.is_empty() {
            true => source,
            false => self.out.add(Term::Select(source, indices.clone())).map_err(ill_typed)?,
        };
        self.push(Stmt::Assign { target: Target::Element(target.name, indices), op: None, value });
        for (index, range) in loops.into_iter().rev() {
            self.close_loop(index, range);
        }
        Ok(())
    }

    // Scalars

    /// Takes selections, selected generations, `let`s and decided conditions off a term.
    fn head(&mut self, mut term: TermId, mut env: Env, mut indices: Vec<Ix>) -> Lowered<(TermId, Env, Vec<Ix>)> {
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(not_yet("a term that becomes this large when its parts are inlined")
                    .note("give the parts that are used several times a name of their own"));
            }
            match self.term(term) {
                Term::Select(tensor, own) => {
                    let own = own.iter().map(|ix| self.ix(env, ix)).collect::<Lowered<Vec<Ix>>>()?;
                    indices.splice(0..0, own);
                    term = *tensor;
                }
                Term::Gen(name, range, body) if !indices.is_empty() => {
                    let index = self.ix(env, &range.lo)?.add(&indices.remove(0)).map_err(bad_index)?;
                    env = self.bind(env, *name, Meaning::Index(index));
                    term = *body;
                }
                Term::Let(name, value, body) => {
                    let stored = self.bound(*name, *value, env)?;
                    env = self.bind(env, *name, Meaning::Tensor(stored));
                    term = *body;
                }
                Term::Guard(cond, body) if self.cond(env, cond)?.is_always() => term = *body,
                Term::If(cond, then, otherwise) => {
                    let cond = self.cond(env, cond)?;
                    match (cond.is_always(), cond.is_never()) {
                        (true, _) => term = *then,
                        (_, true) => term = *otherwise,
                        _ => return Ok((term, env, indices)),
                    }
                }
                _ => return Ok((term, env, indices)),
            }
        }
    }

    /// Where the value of a `let` is kept: where it is already, in a local, or in a buffer of this block.
    fn bound(&mut self, name: Name, value: TermId, env: Env) -> Lowered<Stored> {
        if let Term::Ref(other, _) = self.term(value) {
            return self.stored(env, *other);
        }
        let ty = self.program.terms.ty(value);
        let shape = ty.shape.iter().map(|size| self.ix(env, size)).collect::<Lowered<Vec<Ix>>>()?;
        let ty = TensorType::new(ty.elem, shape);
        if ty.is_scalar() {
            let value = self.value(value, env, Vec::new())?;
            if let Term::Ref(name, ty) = self.out.get(value) {
                return Ok(Stored { name: *name, ty: ty.clone() });
            }
            let name = self.fresh(name, false);
            self.push(Stmt::Local { name, elem: ty.elem, init: Some(value) });
            return Ok(Stored { name, ty });
        }
        let stored = Stored { name: self.fresh(name, false), ty };
        self.push(Stmt::Alloc(stored.name, stored.ty.clone()));
        self.block().buffers.push(stored.name);
        self.store(value, env, &stored)?;
        Ok(stored)
    }

    /// The value of a term at indices, as many as it has dimensions; statements that it needs are pushed before.
    fn value(&mut self, term: TermId, env: Env, indices: Vec<Ix>) -> Lowered<TermId> {
        let mut tasks = vec![Task::Value(term, env, indices)];
        let mut values: Vec<TermId> = Vec::new();
        while let Some(task) = tasks.pop() {
            let value = match task {
                Task::Value(id, env, indices) => {
                    let key: Key = (id, env, indices.into());
                    if let Some(&known) = self.blocks.iter().rev().find_map(|block| block.known.get(&key)) {
                        values.push(known);
                        continue;
                    }
                    let (id, env, indices) = self.head(key.0, key.1, key.2.to_vec())?;
                    let term = self.term(id);
                    match term {
                        Term::Ref(name, _) => {
                            let Stored { name, ty } = self.stored(env, *name)?;
                            self.out.element(name, ty, indices).map_err(ill_typed)?
                        }
                        Term::Literal(..) | Term::Undefined(_) => self.out.add(term.clone()).map_err(ill_typed)?,
                        Term::Index(ix, elem) => {
                            let ix = self.ix(env, ix)?;
                            self.out.add(Term::Index(ix, *elem)).map_err(ill_typed)?
                        }
                        Term::Unary(..) | Term::Binary(..) | Term::Choose(..) | Term::Cast(..) => {
                            tasks.extend([Task::Remember(key), Task::Combine(id)]);
                            let parts = term.parts().into_iter().rev();
                            tasks.extend(parts.map(|part| Task::Value(part, env, Vec::new())));
                            continue;
                        }
                        Term::Reduce(..) => {
                            let value = self.reduction(id, env, indices)?;
                            self.block().known.insert(key, value);
                            value
                        }
                        Term::Guard(..) | Term::If(..) => {
                            let (name, value) = self.local("value", self.program.terms.ty(id).elem, None)?;
                            self.assign(id, env, indices, &Target::Local(name))?;
                            self.block().known.insert(key, value);
                            value
                        }
                        other => return Err(not_yet(describe(other))),
                    }
                }
                Task::Combine(id) => {
                    let mut part = || values.pop().ok_or_else(|| ill_typed(TypeError("a part is missing".into())));
                    // The last part was computed last.
                    let combined = match self.term(id) {
                        Term::Unary(op, _) => Term::Unary(*op, part()?),
                        Term::Cast(elem, _) => Term::Cast(*elem, part()?),
                        Term::Binary(op, ..) => {
                            let b = part()?;
                            Term::Binary(*op, part()?, b)
                        }
                        _ => {
                            let (c, b) = (part()?, part()?);
                            Term::Choose(part()?, b, c)
                        }
                    };
                    self.out.add(combined).map_err(ill_typed)?
                }
                Task::Remember(key) => {
                    if let Some(&value) = values.last() {
                        self.block().known.insert(key, value);
                    }
                    continue;
                }
            };
            values.push(value);
        }
        values.pop().ok_or_else(|| ill_typed(TypeError("a value is missing".into())))
    }

    /// The accumulator of a reduction, behind the loop that fills it.
    fn reduction(&mut self, term: TermId, env: Env, indices: Vec<Ix>) -> Lowered<TermId> {
        let Term::Reduce(op, name, range, cond, body) = self.term(term) else {
            return Err(ill_typed(TypeError("not a reduction".into())));
        };
        let (elem, range) = (self.program.terms.ty(term).elem, self.range(env, range)?);
        let Some(identity) = op.identity(elem) else {
            return self.extreme(*op, *name, range, cond, *body, env, indices);
        };
        let first = self.out.add(Term::Literal(identity, elem)).map_err(ill_typed)?;
        let (sum, value) = self.local("acc", elem, Some(first))?;
        let index = self.open_loop(*name, &range)?;
        let inner = self.bind(env, *name, Meaning::Index(Ix::var(index)));
        let cond = self.cond(inner, cond)?;
        if !cond.is_always() {
            self.open(vec![cond.clone()])?;
        }
        let element = self.value(*body, inner, indices)?;
        self.push(Stmt::Assign { target: Target::Local(sum), op: Some(*op), value: element });
        if !cond.is_always() {
            let then = self.close();
            self.push(Stmt::If { cond, then, otherwise: Vec::new() });
        }
        self.close_loop(index, range);
        Ok(value)
    }

    /// A minimum or maximum, which has no identity: the first element by itself, then the others.
    #[allow(clippy::too_many_arguments, reason = "the parts of one term")]
    fn extreme(
        &mut self,
        op: ReduceOp,
        name: Name,
        range: Range,
        cond: &Cond,
        body: TermId,
        env: Env,
        indices: Vec<Ix>,
    ) -> Lowered<TermId> {
        if !cond.is_always() {
            return Err(not_yet(format!("a {} with a condition", op.name())));
        }
        if self.extremes >= MAX_EXTREMES {
            return Err(not_yet(format!("more than {MAX_EXTREMES} minima and maxima inside each other"))
                .note("give the inner ones a name of their own"));
        }
        self.non_empty(op, &range)?;
        let (best, value) = self.local("acc", self.program.terms.ty(body).elem, None)?;
        self.extremes += 1;
        let second = range.lo.add(&Ix::from(1)).map_err(bad_index)?;
        let first = Range { lo: range.lo, hi: second.clone() };
        for (range, op) in [(first, None), (Range { lo: second, hi: range.hi }, Some(op))] {
            if range.lo == range.hi {
                continue;
            }
            let index = self.open_loop(name, &range)?;
            let inner = self.bind(env, name, Meaning::Index(Ix::var(index)));
            let element = self.value(body, inner, indices.clone())?;
            self.push(Stmt::Assign { target: Target::Local(best), op, value: element });
            self.close_loop(index, range);
        }
        self.extremes -= 1;
        Ok(value)
    }

    fn non_empty(&self, op: ReduceOp, range: &Range) -> Lowered<()> {
        let goal = Cond::lt(&range.lo, &range.hi).map_err(bad_index)?;
        if goal.is_always() || self.out.facts().prove(&goal) == Verdict::Yes {
            return Ok(());
        }
        let mut facts = self.out.facts().clone();
        self.blocks.iter().flat_map(|block| &block.facts).for_each(|fact| facts.assume(fact.clone()));
        match facts.prove(&goal) {
            Verdict::Yes => Ok(()),
            verdict => {
                let text =
                    format!("a {} over {}..{}, which is not shown to be non-empty", op.name(), range.lo, range.hi);
                let error = Diagnostic::error(Code::E0702, None, text).note(format!("it needs {goal}"));
                Err(match verdict {
                    Verdict::No(sizes) => error.note(format!("but this does not hold for {sizes}")),
                    _ => error,
                })
            }
        }
    }
}

/// How messages speak of a construct that is not lowered.
fn describe(term: &Term) -> &'static str {
    match term {
        Term::Iterate(..) => "`iterate`",
        Term::Flatten(_) => "`flatten`",
        Term::Split(..) => "`split`",
        Term::Transpose(_) => "`transpose`",
        Term::Concat(..) => "`concat`",
        Term::PadLeft(..) | Term::PadRight(..) => "padding",
        Term::TruncLeft(..) | Term::TruncRight(..) => "truncation",
        _ => "this term",
    }
}
