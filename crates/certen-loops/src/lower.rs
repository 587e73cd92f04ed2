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
//! - a `let` becomes a local or a buffer, an iteration a loop over its steps (`whole.rs`);
//! - reshape operators become other indices (`reshape.rs`).
//!
//! Names of Core are never substituted into terms; they are looked up in an environment whose values speak of loop
//! indices, which are fresh where they have to be. So nothing is captured.
//!
//! Needs: a program that [`Program::check`] accepts. Guarantees: the result passes [`verify`](crate::verify) if the
//! thin prover can follow its accesses; no recursion over the depth of scalar expressions, only over loops.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use certen_core::{ElemType, Literal, Parameter, Program, Range, ReduceOp, TensorType, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::ir::{LoopProgram, MAX_NESTING, Stmt, Target};

mod reshape;
mod whole;

use whole::Whole;

/// Values computed for one binding before it is refused: inlining generations into each other can grow exponentially.
const MAX_STEPS: usize = 4_000_000;

/// Lowers a program. The outputs are in the order of [`Program::outputs`]; one that has the name of an input or size
/// gets another name.
///
/// # Errors
/// E0703 for what is too large or too deep. E0702 for minima and maxima without a condition over a range that is not
/// shown to be non-empty.
pub fn lower(program: &Program) -> Result<LoopProgram, Diagnostic> {
    let Interface { outputs, storage, taken } = interface(program)?;
    let user = program.names();
    let mut lowering = Lowering {
        program,
        out: Terms::new(program.terms.facts().clone()),
        storage,
        scopes: Vec::new(),
        names: Names { taken, user, ..Names::default() },
        blocks: vec![Block::default()],
        levels: HashMap::new(),
        above: None,
        has_loops: has_loops(&program.terms),
        steps: 0,
        depth: 0,
    };
    let is_output: HashSet<Name> = outputs.iter().map(|p| p.name).collect();
    let ends = program.last_uses();
    let mut live = program.bindings.iter().zip(&ends).filter_map(|(b, end)| Some((b, end.as_ref()?))).peekable();
    while let Some((binding, last_uses)) = live.next() {
        let buffer = lowering.stored(None, binding.name)?;
        if !is_output.contains(&buffer.name) {
            lowering.push(Stmt::Alloc(buffer.name, buffer.ty.clone()));
        }
        lowering.binding(binding.term, &buffer).map_err(|error| error.note(format!("in `{}`", binding.name)))?;
        // Another state of the same iteration needs no other loop.
        if !live.peek().is_some_and(|(next, _)| lowering.same_iteration(binding.term, next.term)) {
            lowering.forget();
        }
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
#[derive(Default)]
struct Names {
    /// Sizes and buffers of the whole program: no index may hide one.
    taken: HashSet<Name>,
    /// Every name that the user wrote: no accumulator may look like one.
    user: HashSet<Name>,
    /// What is in scope in the open blocks.
    active: HashSet<Name>,
    /// The smallest number worth trying behind a name.
    next: HashMap<Name, u64>,
    /// What ever was in scope, and the smallest number behind a name that was not.
    used: HashSet<Name>,
    unused: HashMap<Name, u64>,
}

/// A name that [`Names`] gave, to be given back when its block is closed.
struct Given {
    name: Name,
    base: Name,
    count: u64,
}

impl Names {
    /// The first of `base`, `base_1`, … that is free; with `own`, one that the user did not write either; with `new`, one
    /// that was never given before.
    fn give(&mut self, base: Name, own: bool, new: bool) -> Given {
        let first = if new { &self.unused } else { &self.next };
        let mut count = first.get(&base).copied().unwrap_or(0);
        loop {
            let name = if count == 0 { base } else { Name::new(&format!("{base}_{count}")) };
            let hides =
                self.taken.contains(&name) || (own && self.user.contains(&name)) || (new && self.used.contains(&name));
            if !hides && self.active.insert(name) {
                self.used.insert(name);
                (if new { &mut self.unused } else { &mut self.next }).insert(base, count + 1);
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

/// Tensors that were computed in an environment, and where they are.
type Computed = (Env, Rc<[Stored]>);

/// A block of statements that is being built.
#[derive(Default)]
struct Block<'a> {
    stmts: Vec<Stmt>,
    /// What holds inside, beyond what holds outside.
    facts: Vec<Cond>,
    /// The range of the index, if the block is the body of a loop.
    range: Option<Range>,
    /// Values that are already computed here.
    known: HashMap<Key, TermId>,
    /// Tensors that are already computed as a whole here.
    whole: HashMap<Whole<'a>, Vec<Computed>>,
    names: Vec<Given>,
    /// Buffers that end with the block.
    buffers: Vec<Name>,
}

/// One of two terms at indices, by a condition; without the second it is zero.
struct Choice {
    cond: Cond,
    then: (TermId, Vec<Ix>),
    otherwise: Option<(TermId, Vec<Ix>)>,
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
    blocks: Vec<Block<'a>>,
    /// The open block in which an index, local or buffer got its present value, if that is not the outermost one.
    levels: HashMap<Name, usize>,
    /// The block to which statements are added before a loop that is still open: what is declared there must not have a
    /// name that the loop has used.
    above: Option<usize>,
    /// For each term, whether computing an element of it takes a loop.
    has_loops: Vec<bool>,
    steps: usize,
    /// How many `let`s and iterations are being computed for each other.
    depth: usize,
}

type Lowered<T> = Result<T, Diagnostic>;

fn not_yet(what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(Code::E0703, None, format!("{what} cannot be compiled yet"))
        .help("use the reference evaluator: `--backend interp`")
}

fn ill_typed(error: TypeError) -> Diagnostic {
    Diagnostic::error(Code::E0701, None, format!("ill-formed Core: {error}"))
}

fn no_part() -> Diagnostic {
    ill_typed(TypeError("a part is missing".into()))
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

    fn block(&mut self) -> &mut Block<'a> {
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
        for given in block.names.iter().rev() {
            self.names.give_back(given);
            self.levels.remove(&given.name);
        }
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
        let facts = vec![Cond::le(&range.lo, &i).map_err(bad_index)?, Cond::lt(&i, &range.hi).map_err(bad_index)?];
        (self.block().facts, self.block().range) = (facts, Some(range.clone()));
        Ok(index)
    }

    fn close_loop(&mut self, index: Name, range: Range) {
        let body = self.close();
        self.push(Stmt::For { index, range, parallel: false, body });
    }

    fn fresh(&mut self, base: Name, own: bool) -> Name {
        let given = self.names.give(base, own, self.above == Some(self.blocks.len() - 1));
        let name = given.name;
        self.block().names.push(given);
        self.levels.insert(name, self.blocks.len() - 1);
        name
    }

    fn local(&mut self, base: &str, elem: ElemType, init: Option<TermId>) -> Lowered<(Name, TermId)> {
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
        let block = self.block();
        block.known.clear();
        block.whole.retain(|_, found| {
            found.retain(|(env, _)| env.is_none());
            !found.is_empty()
        });
        self.store(term, None, buffer)
    }

    /// Ends the buffers of the outermost block.
    fn forget(&mut self) {
        self.free_buffers();
        self.block().whole.clear();
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
            if let Term::Flatten(a) = self.term(term)
                && read.is_empty()
            {
                // Both dimensions have a loop, and together they count the elements.
                let shape = self.program.terms.ty(*a).shape[..2].iter().map(|size| self.ix(env, size));
                let shape = shape.collect::<Lowered<Vec<Ix>>>()?;
                let mut place = Ix::from(0);
                for size in shape {
                    let range = Range::to(size);
                    let index = self.open_loop(Name::new(&format!("i{}", loops.len() + 1)), &range)?;
                    place = place.mul(&range.hi).and_then(|place| place.add(&Ix::var(index))).map_err(bad_index)?;
                    read.push(Ix::var(index));
                    loops.push((index, range));
                }
                written.push(place);
                term = *a;
                continue;
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
        if let Some(choice) = self.branches(term, env, &indices)? {
            return self.choice(choice, env, target);
        }
        let value = self.value(term, env, indices)?;
        self.push(Stmt::Assign { target: target.clone(), op: None, value });
        Ok(())
    }

    /// One of two assignments to the same target; the missing branch of a guard is zero.
    fn choice(&mut self, Choice { cond, then, otherwise }: Choice, env: Env, target: &Target) -> Lowered<()> {
        let zero = self.zero(then.0)?;
        let branch = |lowering: &mut Self, chosen: Option<(TermId, Vec<Ix>)>| match chosen {
            Some((term, indices)) => lowering.assign(term, env, indices, target),
            None => {
                lowering.push(Stmt::Assign { target: target.clone(), op: None, value: zero });
                Ok(())
            }
        };
        if cond.is_never() {
            return branch(self, otherwise);
        }
        self.open(vec![cond.clone()])?;
        branch(self, Some(then))?;
        let accepted = self.close();
        self.open(vec![cond.not().map_err(bad_index)?])?;
        branch(self, otherwise)?;
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
                Term::Iterate(..) => {
                    self.whole(term, env)?;
                    return Ok((term, env, indices));
                }
                _ => match self.reshaped(term, env, &mut indices)? {
                    Some(inner) => term = inner,
                    None => match self.branches(term, env, &indices)? {
                        Some(Choice { cond, then, .. }) if cond.is_always() => (term, indices) = then,
                        Some(Choice { cond, otherwise: Some(otherwise), .. }) if cond.is_never() => {
                            (term, indices) = otherwise;
                        }
                        _ => return Ok((term, env, indices)),
                    },
                },
            }
        }
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
                        Term::Iterate(.., at) => {
                            let stored = self.whole(id, env)?.get(*at).cloned().ok_or_else(no_part)?;
                            self.out.element(stored.name, stored.ty, indices).map_err(ill_typed)?
                        }
                        Term::Flatten(_) => {
                            let stored = self.whole(id, env)?.first().cloned().ok_or_else(no_part)?;
                            self.out.element(stored.name, stored.ty, indices).map_err(ill_typed)?
                        }
                        _ if self.branches(id, env, &indices)?.is_some() => {
                            let (name, value) = self.local("value", self.program.terms.ty(id).elem, None)?;
                            self.assign(id, env, indices, &Target::Local(name))?;
                            self.block().known.insert(key, value);
                            value
                        }
                        _ => return Err(no_part()),
                    }
                }
                Task::Combine(id) => {
                    let mut part = || values.pop().ok_or_else(no_part);
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
        values.pop().ok_or_else(no_part)
    }

    /// The accumulator of a reduction, behind the loop that fills it.
    fn reduction(&mut self, term: TermId, env: Env, indices: Vec<Ix>) -> Lowered<TermId> {
        let Term::Reduce(op, _, range, ..) = self.term(term) else { return Err(no_part()) };
        let (elem, range) = (self.program.terms.ty(term).elem, self.range(env, range)?);
        let Some(identity) = op.identity(elem) else {
            return self.extreme(term, range, env, indices);
        };
        let first = self.out.add(Term::Literal(identity, elem)).map_err(ill_typed)?;
        let (sum, value) = self.local("acc", elem, Some(first))?;
        self.elements(term, range, env, indices, |lowering, _, element| {
            lowering.push(Stmt::Assign { target: Target::Local(sum), op: Some(*op), value: element });
            Ok(())
        })?;
        Ok(value)
    }

    /// A loop over a range of a reduction that does something with each element for which the condition holds.
    fn elements(
        &mut self,
        term: TermId,
        range: Range,
        env: Env,
        indices: Vec<Ix>,
        combine: impl FnOnce(&mut Self, Name, TermId) -> Lowered<()>,
    ) -> Lowered<()> {
        let Term::Reduce(_, name, _, cond, body) = self.term(term) else { return Err(no_part()) };
        let index = self.open_loop(*name, &range)?;
        let inner = self.bind(env, *name, Meaning::Index(Ix::var(index)));
        let cond = self.cond(inner, cond)?;
        if !cond.is_always() {
            self.open(vec![cond.clone()])?;
        }
        let element = self.value(*body, inner, indices)?;
        combine(self, index, element)?;
        if !cond.is_always() {
            let then = self.close();
            self.push(Stmt::If { cond, then, otherwise: Vec::new() });
        }
        self.close_loop(index, range);
        Ok(())
    }

    /// A minimum or maximum, which has no identity: the first element replaces, the others are combined. Which is the
    /// first is known by its place; with a condition, by a local that says whether there was one.
    ///
    /// If there is none for which the condition holds, the result is zero: Core gives such a term no value.
    fn extreme(&mut self, term: TermId, range: Range, env: Env, indices: Vec<Ix>) -> Lowered<TermId> {
        let Term::Reduce(op, _, _, cond, body) = self.term(term) else { return Err(no_part()) };
        let (op, elem) = (*op, self.program.terms.ty(*body).elem);
        let assign =
            |best: Name, op: Option<ReduceOp>, value: TermId| Stmt::Assign { target: Target::Local(best), op, value };
        if !cond.is_always() {
            let zero = self.zero(*body)?;
            let mut truth = |value: bool| self.out.add(Term::Literal(Literal::Bool(value), ElemType::Bool));
            let (no, yes) = (truth(false).map_err(ill_typed)?, truth(true).map_err(ill_typed)?);
            let (best, value) = self.local("acc", elem, Some(zero))?;
            let (found, was_found) = self.local("found", ElemType::Bool, Some(no))?;
            self.elements(term, range, env, indices, |lowering, _, element| {
                let combined = lowering.out.add(Term::Binary(op.combine(), value, element)).map_err(ill_typed)?;
                let chosen = lowering.out.add(Term::Choose(was_found, combined, element)).map_err(ill_typed)?;
                lowering.push(assign(best, None, chosen));
                lowering.push(assign(found, None, yes));
                Ok(())
            })?;
            return Ok(value);
        }
        self.non_empty(op, &range)?;
        // A body without loops is written twice: compilers like loops without conditions.
        if !self.has_loops[body.index()] {
            let (best, value) = self.local("acc", elem, None)?;
            let second = range.lo.add(&Ix::from(1)).map_err(bad_index)?;
            let first = Range { lo: range.lo, hi: second.clone() };
            for (range, op) in [(first, None), (Range { lo: second, hi: range.hi }, Some(op))] {
                if range.lo != range.hi {
                    self.elements(term, range, env, indices.clone(), |lowering, _, element| {
                        lowering.push(assign(best, op, element));
                        Ok(())
                    })?;
                }
            }
            return Ok(value);
        }
        let zero = self.zero(*body)?;
        let (best, value) = self.local("acc", elem, Some(zero))?;
        let lo = range.lo.clone();
        self.elements(term, range, env, indices, |lowering, index, element| {
            let cond = Cond::eq(&Ix::var(index), &lo).map_err(bad_index)?;
            let (then, otherwise) = (vec![assign(best, None, element)], vec![assign(best, Some(op), element)]);
            lowering.push(Stmt::If { cond, then, otherwise });
            Ok(())
        })?;
        Ok(value)
    }

    fn non_empty(&self, op: ReduceOp, range: &Range) -> Lowered<()> {
        let goal = Cond::lt(&range.lo, &range.hi).map_err(bad_index)?;
        let verdict = self.prove(&goal);
        if verdict == Verdict::Yes {
            return Ok(());
        }
        let text = format!("a {} over {}..{}, which is not shown to be non-empty", op.name(), range.lo, range.hi);
        let error = Diagnostic::error(Code::E0702, None, text).note(format!("it needs {goal}"));
        Err(match verdict {
            Verdict::No(sizes) => error.note(format!("but this does not hold for {sizes}")),
            _ => error,
        })
    }

    /// Whether something holds where the innermost block is.
    fn prove(&self, goal: &Cond) -> Verdict {
        if goal.is_always() || self.out.facts().prove(goal) == Verdict::Yes {
            return Verdict::Yes;
        }
        let mut facts = self.out.facts().clone();
        self.blocks.iter().flat_map(|block| &block.facts).for_each(|fact| facts.assume(fact.clone()));
        facts.prove(goal)
    }
}

/// For each term, whether computing an element of it takes a loop.
fn has_loops(terms: &Terms) -> Vec<bool> {
    let mut found: Vec<bool> = Vec::with_capacity(terms.len());
    for (_, term) in terms.iter() {
        let own = matches!(term, Term::Reduce(..) | Term::Let(..) | Term::Iterate(..) | Term::Flatten(_));
        found.push(own || term.parts().iter().any(|part| found[part.index()]));
    }
    found
}
