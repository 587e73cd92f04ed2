//! Lowering: from Core's terms, which say what each element is, to loops that compute all of them (ATL, Sec. 3.3).
//!
//! A binding becomes a nest that stores its elements in the binding's buffer:
//!
//! - `store.rs` follows the term, destination first: generations become loops, sums of tensors add up in place, guards
//!   become conditions (ATL, Fig. 3);
//! - `reindex.rs` turns reshape operators into other indices of the store, without code and without copies (ATL, Fig. 2),
//!   and says what makes that well-formed;
//! - `cut.rs` cuts loops where a condition changes, so that the pieces need not ask; `dead.rs` removes what a piece does not
//!   need;
//! - `value.rs` computes the scalar that is stored, `reduce.rs` its accumulators;
//! - `reshape.rs` is the other side of reshape operators: which element it is that is *read* through them;
//! - `whole.rs` stores what is read as a whole before an element of it is: `let`s, iterations.
//!
//! Names of Core are never substituted into terms; they are looked up in an environment whose values speak of loop
//! indices, which are fresh where they have to be (`names.rs`). So nothing is captured.
//!
//! Needs: a program that [`Program::check`] accepts, whose truncations cut nothing but padding. Guarantees: every store is
//! shown to be inside its buffer and to overwrite nothing (Sec. 4.2, 4.3, 6.5 of the paper); the result passes
//! [`verify`](crate::verify) if the prover can follow its accesses.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use certen_core::{ElemType, Parameter, Program, Range, Table, TensorType, Term, TermId, Terms, TypeError};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::ir::{Constant, LoopProgram, MAX_NESTING, Mode, Stmt, Target};

mod cut;
mod dead;
mod names;
mod reduce;
mod reindex;
mod reshape;
mod store;
mod value;
mod whole;

pub use cut::{change, conjuncts};
use cut::{chooses, combines};
use names::{FreshName, FreshNames};
use reduce::has_loops;
use whole::Whole;

/// Values computed for one binding before it is refused: inlining generations into each other can grow exponentially.
const MAX_STEPS: usize = 4_000_000;

/// What may be assumed of floats.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FpMode {
    /// Sums and products may be computed in another order, with other roundings; they are factored or distributed only where
    /// that saves operations, and then the report says so: a sum of 1e308 and 1e308, times 0, is NaN.
    #[default]
    Relaxed,
    /// Terms are added in the order in which they are written. Where the CPU can, products are fused with their additions,
    /// and sums of sums are one.
    Fused,
    /// Every operation is made as written.
    Strict,
}

/// Lowers a program. The outputs are in the order of [`Program::outputs`]; one that has the name of an input or size
/// gets another name. Except with [`FpMode::Relaxed`], every sum is made in the order in which it is written: sums of tensors inside
/// each other do not add to one destination.
///
/// # Errors
/// E0703 for what is too large or too deep. E0702 for minima and maxima without a condition over a range that is not
/// shown to be non-empty.
pub fn lower(program: &Program, fp: FpMode) -> Result<LoopProgram, Diagnostic> {
    let Interface { outputs, storage, taken } = interface(program)?;
    let user = program.names();
    let mut lowering = Lowering {
        program,
        out: Terms::new(program.terms.facts().clone()),
        storage,
        scopes: Vec::new(),
        names: FreshNames::new(taken, user),
        blocks: vec![Block::default()],
        levels: HashMap::new(),
        above: None,
        mentioned: HashMap::new(),
        has_loops: has_loops(&program.terms),
        combines: combines(&program.terms),
        chooses: chooses(&program.terms),
        in_pieces: 0,
        cuts_left: 0,
        has_pieces: false,
        nexts: HashMap::new(),
        constants: Vec::new(),
        strict: fp != FpMode::Relaxed,
        steps: 0,
        depth: 0,
    };
    let is_output: HashSet<Name> = outputs.iter().map(|p| p.name).collect();
    let ends = program.last_uses();
    let mut live = program.bindings.iter().zip(&ends).filter_map(|(b, end)| Some((b, end.as_ref()?))).peekable();
    while let Some((binding, last_uses)) = live.next() {
        let buffer = lowering.stored(None, binding.name)?;
        match program.terms.get(binding.term) {
            Term::Table(table) if !is_output.contains(&buffer.name) => lowering.declare(buffer.name, table),
            _ => {
                if !is_output.contains(&buffer.name) {
                    lowering.push(Stmt::Alloc(buffer.name, buffer.ty.clone()));
                }
                lowering
                    .binding(binding.term, &buffer)
                    .map_err(|error| error.note(format!("in `{}`", binding.name)))?;
            }
        }
        // Another state of the same iteration needs no other loop.
        if !live.peek().is_some_and(|(next, _)| lowering.same_iteration(binding.term, next.term)) {
            lowering.forget();
        }
        for used in last_uses {
            let name = lowering.stored(None, *used)?.name;
            if !is_output.contains(&name) && !lowering.is_constant(name) {
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
    let mut body = lowering.close();
    // A piece of a loop may not need what the whole loop did.
    if lowering.has_pieces {
        dead::remove(&mut body, &lowering.out);
    }
    Ok(LoopProgram {
        name: program.name,
        sizes: program.sizes.clone(),
        facts: program.facts.clone(),
        inputs: program.inputs.clone(),
        outputs,
        constants: lowering.constants,
        streamed: Vec::new(),
        body,
        terms: lowering.out,
    })
}

/// Where a tensor is kept: a buffer, or a local if it has no dimensions.
#[derive(Clone, PartialEq, Eq)]
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

/// What a name of Core stands for, inside the names of an enclosing scope.
struct Frame {
    outer: Env,
    name: Name,
    meaning: Bound,
}

#[derive(Clone, PartialEq, Eq)]
enum Bound {
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
    /// The values of `let`s that are here: the environment of each, and where it is.
    lets: HashMap<TermId, Vec<(Env, Stored)>>,
    names: Vec<FreshName>,
    /// Buffers that end with the block.
    buffers: Vec<Name>,
}

/// One of two terms at indices, by a condition; without the second it is zero.
struct Choice {
    cond: Cond,
    then: (TermId, Vec<Ix>),
    otherwise: Option<(TermId, Vec<Ix>)>,
}

struct Lowering<'a> {
    program: &'a Program,
    out: Terms,
    storage: HashMap<Name, Stored>,
    scopes: Vec<Frame>,
    names: FreshNames,
    blocks: Vec<Block<'a>>,
    /// The open block in which an index, local or buffer got its present value, if that is not the outermost one.
    levels: HashMap<Name, usize>,
    /// The block to which statements are added before a loop that is still open: what is declared there must not have a
    /// name that the loop has used.
    above: Option<usize>,
    /// The names in terms that were asked for.
    mentioned: HashMap<TermId, Rc<BTreeSet<Name>>>,
    /// For each term, whether computing an element of it takes a loop.
    has_loops: Vec<bool>,
    /// For each term, whether something in it is combined over a range or step by step.
    combines: Vec<bool>,
    /// For each term, whether a condition decides what of it is stored.
    chooses: Vec<bool>,
    /// How many loops around are pieces of one.
    in_pieces: usize,
    /// How many loops of this binding can still be cut, and whether any loop was.
    cuts_left: usize,
    has_pieces: bool,
    /// The `let`s of the iterations around that are next states: the block of the steps, and where the state is kept.
    nexts: HashMap<Name, (usize, Stored)>,
    /// The tables so far.
    constants: Vec<Constant>,
    /// Whether sums inside each other are made one by one.
    strict: bool,
    steps: usize,
    /// How many parts are being stored or computed for each other.
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

    /// Ends a loop; one that does nothing is left out.
    fn close_loop(&mut self, index: Name, range: Range) {
        let body = self.close();
        let extent = range.hi.sub(&range.lo).ok().and_then(|extent| extent.as_constant());
        if !body.is_empty() && extent.is_none_or(|extent| extent > 0) {
            self.push(Stmt::For { index, range, mode: Mode::Serial, body });
        }
    }

    /// Adds a condition, unless nothing depends on it.
    fn push_if(&mut self, cond: Cond, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Lowered<()> {
        match (then.is_empty(), otherwise.is_empty()) {
            (true, true) => {}
            (true, false) => {
                let cond = cond.not().map_err(bad_index)?;
                self.push(Stmt::If { cond, then: otherwise, otherwise: then });
            }
            _ => self.push(Stmt::If { cond, then, otherwise }),
        }
        Ok(())
    }

    /// Refuses what is too deep: each of these is a call of this program inside another.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Lowered<T>) -> Lowered<T> {
        if self.depth >= MAX_NESTING {
            return Err(not_yet(format!("more than {MAX_NESTING} parts of a term inside each other")));
        }
        self.depth += 1;
        let result = work(self);
        self.depth -= 1;
        result
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

    fn bind(&mut self, outer: Env, name: Name, meaning: Bound) -> Env {
        self.scopes.push(Frame { outer, name, meaning });
        Some(self.scopes.len() - 1)
    }

    fn lookup(&self, mut env: Env, name: Name) -> Option<&Bound> {
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
            Some(Bound::Tensor(stored)) => Ok(stored.clone()),
            _ => self.storage.get(&name).cloned().ok_or_else(|| not_bound(name)),
        }
    }

    fn index_of(&self, env: Env, name: Name) -> Option<Ix> {
        match self.lookup(env, name) {
            Some(Bound::Index(ix)) => Some(ix.clone()),
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

    // Bindings

    /// A binding of the program, into its buffer.
    fn binding(&mut self, term: TermId, buffer: &Stored) -> Lowered<()> {
        self.steps = 0;
        self.cuts_left = cut::MAX_CUTS_OF_BINDING;
        self.scopes.clear();
        let block = self.block();
        block.known.clear();
        block.lets.clear();
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

    // Tables

    fn is_constant(&self, name: Name) -> bool {
        self.constants.iter().any(|constant| constant.name == name)
    }

    fn declare(&mut self, name: Name, table: &Table) {
        self.constants.push(Constant { name, table: table.clone() });
    }

    /// Where a table is kept that has no name of its own.
    fn constant(&mut self, table: &Table) -> Stored {
        let name = match self.constants.iter().find(|constant| constant.table == *table) {
            Some(constant) => constant.name,
            None => {
                let name = self.names.give(Name::new("table"), true, true).name;
                self.declare(name, table);
                name
            }
        };
        Stored { name, ty: table.ty().clone() }
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

    /// Whether something holds where the innermost block is.
    fn prove(&self, goal: &Cond) -> Verdict {
        if goal.is_always() || self.out.facts().prove(goal) == Verdict::Yes {
            return Verdict::Yes;
        }
        self.facts_of(&self.blocks).prove(goal)
    }

    fn facts_of(&self, blocks: &[Block<'_>]) -> Facts {
        let mut facts = self.out.facts().clone();
        blocks.iter().flat_map(|block| &block.facts).for_each(|fact| facts.assume(fact.clone()));
        facts
    }

    /// What holds outside the innermost block.
    fn facts_outside(&self) -> Facts {
        self.facts_of(&self.blocks[..self.blocks.len().saturating_sub(1)])
    }
}
