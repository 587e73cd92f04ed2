//! Where tensors are kept: buffers are short-lived, share memory, and are written in place where that is right.
//!
//! Lowering gives every tensor a buffer of its own. [`reuse`] changes nothing about what is computed, in which order or
//! from what; it renames buffers and moves their beginnings and ends (model language, Sec. 5: writing directly into the
//! memory of a tensor instead of into a temporary).
//!
//! ```text
//! alloc a : f64[n]                         (nothing: `a` and `b` are in the memory of the output)
//! alloc b : f64[n]
//! nest a                                   nest a
//! for i in 0..n { a[i] = x[i] + 1.0 }      for i in 0..n { y[i] = x[i] + 1.0 }
//! nest b                                   nest b
//! for i in 0..n { b[i] = a[i] * a[i] }     for i in 0..n { y[i] = y[i] * y[i] }
//! free a                                   nest y
//! nest y                                   for i in 0..n { y[i] = y[i] + x[0] }
//! for i in 0..n { y[i] = b[i] + x[0] }
//! free b
//! ```
//!
//! - **Lifetimes are tight**: a buffer begins before the first nest that uses it and ends after the last one. A buffer
//!   that nothing uses is gone.
//! - **In place**: a buffer takes the memory of one that dies in the nest that first writes it, if every element is read
//!   before it is overwritten (`in_place.rs` says when). A nest that then copies a buffer onto itself is left out.
//! - **Reuse**: a buffer takes memory of the same type that is not in use: that of a dead buffer, or of an output that
//!   is first written after the buffer's end.
//!
//! **Legal**, because two tensors share memory only if the second is first used after the last use of the first, or in
//! place. Inputs are never written. What is exchanged by `swap` shares memory only with what is allocated too, since
//! the caller's memory cannot be exchanged.
//!
//! **Memory never grows** (that of single elements, on the stack, is not counted): memory that is not in use is kept for a later buffer only until something else is allocated.
//! So whenever memory is taken, no more is held than the buffers that are alive need.
//!
//! Needs: a program that [`verify`](crate::verify) accepts. Guarantees: so is the result, and it computes the same
//! values bit for bit; time in proportion to the program.

use std::collections::{BTreeSet, HashMap};

use certen_core::{ElemType, TensorType, TypeError};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_syntax::{Code, Diagnostic, Name};

use crate::ir::{LoopProgram, Stmt};
use crate::rename::{Renaming, rename};
use crate::walk::{Use, declarations};

mod in_place;
mod peak;

use in_place::in_place;
pub use peak::peak_bytes;

/// Whose memory may hold what is computed on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lend {
    /// That of buffers, and of outputs before they are written.
    Outputs,
    /// That of buffers only.
    Buffers,
}

/// How many dying buffers are tried for one that is written: a nest can read any number of them.
const MAX_TRIES: usize = 4;

/// How many sizes are compared by proof; others are equal if they are written alike.
const MAX_SIZES: usize = 16;

/// Shares memory between the buffers of a program.
///
/// # Errors
/// E0702 for a program that is not well-formed.
pub fn reuse(mut program: LoopProgram, lend: Lend) -> Result<LoopProgram, Diagnostic> {
    let declared = times_declared(&program);
    let body = std::mem::take(&mut program.body);
    let mut pass = Pass {
        program: &program,
        lend,
        declared,
        buffers: Vec::new(),
        scope: HashMap::new(),
        path: Vec::new(),
        classes: Classes::new(program.terms.facts()),
        renaming: Renaming::new(),
    };
    for output in &program.outputs {
        pass.declare(output.name, &output.ty);
    }
    let body = pass.block(body).stmts;
    let renaming = pass.renaming;
    program.body = body;
    let refused = |TypeError(text)| Diagnostic::error(Code::E0702, None, format!("memory cannot be shared: {text}"));
    if !renaming.is_empty() {
        rename(&mut program, &renaming).map_err(refused)?;
    }
    Ok(program)
}

/// How often each name is declared inside the body.
fn times_declared(program: &LoopProgram) -> HashMap<Name, usize> {
    let mut declared = HashMap::new();
    for (name, _) in declarations(&program.body) {
        *declared.entry(name).or_default() += 1;
    }
    declared
}

/// A buffer and the units of its block in which it is used first and last.
struct Buffer {
    name: Name,
    ty: TensorType,
    depth: usize,
    used: Option<(usize, usize)>,
    swapped: bool,
}

/// Statements between which no buffer needs to begin or end: a nest, or a part of one.
#[derive(Default)]
struct Unit {
    titles: Vec<Stmt>,
    stmts: Vec<Stmt>,
    /// Whether a local of the block is declared here: what reads it stays with it.
    has_locals: bool,
    /// Whether something inside allocates a buffer that has dimensions.
    allocates: bool,
}

/// A block after the pass.
struct Placed {
    stmts: Vec<Stmt>,
    allocates: bool,
}

/// Memory, and the units of the block in which it is taken and last used.
struct Memory {
    name: Name,
    ty: TensorType,
    class: Class,
    units: (usize, usize),
    /// The buffer that is in it.
    tenant: Option<usize>,
}

/// Tensors of one class have the same element type and sizes; exchanged ones keep to themselves, since the C compiler
/// may assume less of them.
type Class = (usize, bool);

struct Pass<'a> {
    program: &'a LoopProgram,
    lend: Lend,
    declared: HashMap<Name, usize>,
    /// Of the outputs and every open block.
    buffers: Vec<Buffer>,
    scope: HashMap<Name, usize>,
    /// The unit of each open block that is being looked at.
    path: Vec<usize>,
    classes: Classes,
    renaming: Renaming,
}

impl Pass<'_> {
    fn declare(&mut self, name: Name, ty: &TensorType) -> usize {
        let depth = self.path.len().saturating_sub(1);
        self.buffers.push(Buffer { name, ty: ty.clone(), depth, used: None, swapped: false });
        self.scope.insert(name, self.buffers.len() - 1);
        self.buffers.len() - 1
    }

    fn uses(&mut self, name: Name, swaps: bool) {
        let Some(buffer) = self.scope.get(&name).and_then(|&at| self.buffers.get_mut(at)) else { return };
        let Some(&unit) = self.path.get(buffer.depth) else { return };
        let first = buffer.used.map_or(unit, |(first, _)| first);
        buffer.used = Some((first, unit));
        buffer.swapped |= swaps;
    }

    fn block(&mut self, block: Vec<Stmt>) -> Placed {
        let first_own = self.buffers.len();
        self.path.push(0);
        let depth = self.path.len() - 1;
        let mut units: Vec<Unit> = vec![Unit::default()];
        let mut divided = false;
        for stmt in block {
            let last = units.len() - 1;
            let begun = !units[last].stmts.is_empty();
            let new = match &stmt {
                Stmt::Nest(_) => begun,
                // What is exchanged was computed just before.
                Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => false,
                _ => begun && (divided || !units[last].has_locals),
            };
            if new {
                units.push(Unit::default());
            }
            divided = matches!(stmt, Stmt::Alloc(..) | Stmt::Free(_));
            self.path[depth] = units.len() - 1;
            let Some((stmt, allocates)) = self.stmt(stmt) else { continue };
            let last = units.len() - 1;
            units[last].has_locals |= matches!(stmt, Stmt::Local { .. });
            units[last].allocates |= allocates;
            match stmt {
                Stmt::Nest(_) => units[last].titles.push(stmt),
                _ => units[last].stmts.push(stmt),
            }
        }
        self.path.pop();
        let done = self.placed(units, first_own, depth);
        for buffer in self.buffers.drain(first_own..) {
            self.scope.remove(&buffer.name);
        }
        done
    }

    /// A statement after the pass, and whether it allocates inside; allocations and frees of the block itself are noted.
    fn stmt(&mut self, mut stmt: Stmt) -> Option<(Stmt, bool)> {
        match &stmt {
            Stmt::Alloc(name, ty) => {
                self.declare(*name, ty);
                return None;
            }
            Stmt::Free(_) => return None,
            _ => {}
        }
        for (name, _, how) in stmt.uses(&self.program.terms) {
            self.uses(name, how == Use::Exchange);
        }
        let mut allocates = false;
        for block in stmt.blocks_mut() {
            let done = self.block(std::mem::take(block));
            *block = done.stmts;
            allocates |= done.allocates;
        }
        Some((stmt, allocates))
    }

    /// Finds memory for the buffers of a block, and puts the block together again.
    fn placed(&mut self, units: Vec<Unit>, first_own: usize, depth: usize) -> Placed {
        let (mut born, mut dies) = (vec![Vec::new(); units.len()], vec![Vec::new(); units.len()]);
        for at in first_own..self.buffers.len() {
            if let Some((first, last)) = self.buffers[at].used {
                born[first].push(at);
                dies[last].push(at);
            }
        }
        self.follow_exchanged(&units, &born, &dies);
        if depth == 0 && self.lend == Lend::Outputs {
            self.lend_outputs(&units, &dies);
        }
        let mut places = Memories::default();
        let mut kept: HashMap<usize, usize> = HashMap::new();
        for (at, unit) in units.iter().enumerate() {
            places.dying = dies[at].iter().filter_map(|buffer| kept.get(buffer).copied()).collect();
            for &buffer in &born[at] {
                if !self.renaming.contains_key(&self.buffers[buffer].name) {
                    kept.insert(buffer, self.place(buffer, at, unit, &mut places));
                }
            }
            if unit.allocates {
                places.idle.clear();
            }
            for buffer in &dies[at] {
                if let Some(&slot) = kept.get(buffer) {
                    places.leave(slot, *buffer);
                }
            }
        }
        let (mut begins, mut ends) = (vec![Vec::new(); units.len()], vec![Vec::new(); units.len()]);
        let mut allocates = false;
        for slot in places.slots {
            allocates |= !slot.ty.is_scalar();
            begins[slot.units.0].push(Stmt::Alloc(slot.name, slot.ty));
            ends[slot.units.1].push(Stmt::Free(slot.name));
        }
        let mut stmts = Vec::new();
        for ((mut unit, begins), ends) in units.into_iter().zip(begins).zip(ends) {
            allocates |= unit.allocates;
            let title = unit.titles.pop();
            stmts.extend(unit.titles.into_iter().chain(begins).chain(title).chain(unit.stmts).chain(ends));
        }
        Placed { stmts, allocates }
    }

    /// What an exchanged buffer can be written in place of is treated as if it were exchanged itself: in an output it would
    /// have to be copied.
    fn follow_exchanged(&mut self, units: &[Unit], born: &[Vec<usize>], dies: &[Vec<usize>]) {
        for at in (0..units.len()).rev() {
            for &new in born[at].iter().filter(|_| !dies[at].is_empty()) {
                if !self.buffers[new].swapped {
                    continue;
                }
                let (name, ty) = (self.buffers[new].name, &self.buffers[new].ty);
                let replaced = dies[at].iter().filter(|&&old| self.buffers[old].ty == *ty).take(MAX_TRIES);
                let fits =
                    |old: &&usize| in_place(&self.program.terms, &units[at].stmts, self.buffers[**old].name, name);
                if let Some(&old) = replaced.into_iter().find(fits) {
                    self.buffers[old].swapped = true;
                }
            }
        }
    }

    /// Whether a buffer may be kept where others are.
    fn shares(&self, at: usize) -> bool {
        let buffer = &self.buffers[at];
        !buffer.ty.is_scalar() && self.declared.get(&buffer.name) == Some(&1)
    }

    /// Puts buffers into outputs that are written later. From the end to the beginning: what is alive when an output is
    /// written needs other memory, and what is alive at the same time as that is best kept in the output.
    fn lend_outputs(&mut self, units: &[Unit], dies: &[Vec<usize>]) {
        // Each output with the tensor that is first in it, by the unit in which that is first used.
        let mut free: HashMap<usize, BTreeSet<(usize, usize)>> = HashMap::new();
        let mut first_in: Vec<Name> = Vec::new();
        for at in 0..self.program.outputs.len() {
            let class = self.classes.of(&self.program.outputs[at].ty);
            first_in.push(self.buffers[at].name);
            // What is stored past the caches is not to be read from there.
            let is_streamed = self.program.streamed.contains(&self.program.outputs[at].name);
            if let Some((first, _)) = self.buffers[at].used.filter(|_| !is_streamed) {
                free.entry(class).or_default().insert((first, at));
            }
        }
        for &at in dies.iter().rev().flatten() {
            if self.buffers[at].swapped || !self.shares(at) {
                continue;
            }
            let class = self.classes.of(&self.buffers[at].ty);
            let (buffer, terms) = (&self.buffers[at], &self.program.terms);
            let (Some(free), Some((first, last))) = (free.get_mut(&class), buffer.used) else { continue };
            let in_time =
                |(_, output): &&(usize, usize)| in_place(terms, &units[last].stmts, buffer.name, first_in[*output]);
            let exact = free.range((last, 0)..=(last, usize::MAX)).take(MAX_TRIES).find(in_time);
            let Some(&found) = exact.or_else(|| free.range((last + 1, 0)..).next()) else { continue };
            free.remove(&found);
            free.insert((first, found.1));
            first_in[found.1] = buffer.name;
            let output = &self.program.outputs[found.1];
            self.renaming.insert(buffer.name, (output.name, output.ty.clone()));
        }
    }

    /// Memory for a buffer that is first used in a unit.
    fn place(&mut self, at: usize, number: usize, unit: &Unit, places: &mut Memories) -> usize {
        let shares = self.shares(at);
        let class = (self.classes.of(&self.buffers[at].ty), self.buffers[at].swapped);
        let buffer = &self.buffers[at];
        let last = buffer.used.map_or(number, |(_, last)| last);
        let found = if shares { self.shared(buffer, class, unit, places) } else { None };
        let slot = found.unwrap_or_else(|| {
            if !buffer.ty.is_scalar() {
                places.idle.clear();
            }
            let (name, ty) = (buffer.name, buffer.ty.clone());
            places.slots.push(Memory { name, ty, class, units: (number, last), tenant: None });
            places.slots.len() - 1
        });
        let taken = &mut places.slots[slot];
        taken.units.1 = taken.units.1.max(last);
        taken.tenant = shares.then_some(at);
        if taken.name != buffer.name {
            self.renaming.insert(buffer.name, (taken.name, taken.ty.clone()));
        }
        slot
    }

    /// Memory of the same type that is given up in the unit and can be written in place, or is not in use.
    fn shared(&self, buffer: &Buffer, class: Class, unit: &Unit, places: &mut Memories) -> Option<usize> {
        // What is exchanged must have the same type to the letter.
        let alike =
            |slot: &Memory| slot.class.0 == class.0 && (!(buffer.swapped || slot.class.1) || slot.ty == buffer.ty);
        for &dying in places.dying.iter().filter(|&&slot| alike(&places.slots[slot])).take(MAX_TRIES) {
            let old = places.slots[dying].tenant.map(|old| self.buffers[old].name);
            if old.is_some_and(|old| in_place(&self.program.terms, &unit.stmts, old, buffer.name)) {
                places.dying.retain(|&other| other != dying);
                return Some(dying);
            }
        }
        let slots = &places.slots;
        places.idle.get_mut(&class)?.pop_if(|slot| alike(&slots[*slot]))
    }
}

/// The memory of a block.
#[derive(Default)]
struct Memories {
    slots: Vec<Memory>,
    /// What is not in use now.
    idle: HashMap<Class, Vec<usize>>,
    /// Memory whose tensor is not needed after the unit that is being looked at.
    dying: Vec<usize>,
}

impl Memories {
    /// The end of a buffer, unless another one has taken its place.
    fn leave(&mut self, slot: usize, buffer: usize) {
        if let Some(left) = self.slots.get_mut(slot).filter(|slot| slot.tenant == Some(buffer)) {
            left.tenant = None;
            self.idle.entry(left.class).or_default().push(slot);
        }
    }
}

/// Types with the same elements and sizes, by number.
struct Classes {
    /// None if nothing is known that could make two sizes equal.
    facts: Option<Facts>,
    sizes: HashMap<Ix, usize>,
    /// One size of each class that others are compared with.
    shown: Vec<(Ix, usize)>,
    types: HashMap<(ElemType, Vec<usize>), usize>,
}

impl Classes {
    fn new(facts: &Facts) -> Classes {
        let equates = facts.conjuncts().iter().any(|fact| matches!(fact, Cond::Eq(_)));
        let facts = equates.then(|| facts.clone());
        Classes { facts, sizes: HashMap::new(), shown: Vec::new(), types: HashMap::new() }
    }

    fn of(&mut self, ty: &TensorType) -> usize {
        let sizes = ty.shape.iter().map(|size| self.size(size)).collect();
        let next = self.types.len();
        *self.types.entry((ty.elem, sizes)).or_insert(next)
    }

    fn size(&mut self, size: &Ix) -> usize {
        if let Some(&class) = self.sizes.get(size) {
            return class;
        }
        let equal = self.facts.as_ref().and_then(|facts| {
            self.shown.iter().find(|(other, _)| facts.prove_equal(size, other) == Verdict::Yes).map(|(_, class)| *class)
        });
        let class = equal.unwrap_or(self.sizes.len());
        if equal.is_none() && self.shown.len() < MAX_SIZES {
            self.shown.push((size.clone(), class));
        }
        self.sizes.insert(size.clone(), class);
        class
    }
}
