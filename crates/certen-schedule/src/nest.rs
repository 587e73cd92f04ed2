//! The loops that a step works on: what stands at a place, what holds there, which names are free, and the conditions that
//! the step has put.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use certen_core::TensorType;
use certen_index::{Cond, Condition, Decision, Facts, Proof, Status};
use certen_loops::{LoopProgram, Stmt, declarations, statements};
use certen_syntax::Name;

use crate::depend::Footprint;
use crate::edit::Edit;
use crate::place::{Loop, Place};
use crate::refusal::{Done, Refusal};

/// A step makes no more statements than this of fewer: copies of copies grow without end.
pub(crate) const MOST_STATEMENTS: usize = 4096;

/// The stage that begins with a statement.
pub(crate) fn as_stage(stmt: &Stmt) -> Option<Name> {
    if let Stmt::Nest(name) = stmt { Some(*name) } else { None }
}

/// The type with which one of these statements allocates a buffer.
fn allocation<'a>(mut stmts: impl Iterator<Item = &'a Stmt>, name: Name) -> Option<&'a TensorType> {
    stmts.find_map(|stmt| match stmt {
        Stmt::Alloc(declared, ty) if *declared == name => Some(ty),
        _ => None,
    })
}

/// The loops that a step works on, and the conditions that it has put.
#[derive(Clone)]
pub(crate) struct Nest {
    pub program: LoopProgram,
    /// Whether every operation on floats has to be made as written: no sum in another order, none fused with a product.
    pub strict: bool,
    conditions: Vec<Condition>,
    /// The indices of loops that have nothing to do with those that the step has named: they are in other stages, and
    /// neither around nor inside them. How often each occurs; none before a loop is named.
    far: RefCell<Option<HashMap<Name, usize>>>,
}

impl Nest {
    pub(crate) fn new(program: LoopProgram, strict: bool) -> Nest {
        Nest { program, strict, conditions: Vec::new(), far: RefCell::new(None) }
    }

    /// Puts the conditions that were put to a copy of these loops.
    pub(crate) fn take_conditions(&mut self, copy: Nest) {
        self.conditions = copy.conditions;
    }

    pub(crate) fn finish(self) -> (LoopProgram, Vec<Condition>) {
        (self.program, self.conditions)
    }

    /// That the program has no more than [`MOST_STATEMENTS`], or no more than it had.
    pub(crate) fn has_not_grown(&self, before: &[Stmt]) -> Done<()> {
        match statements(&self.program.body).count() {
            now if now > MOST_STATEMENTS && now > statements(before).count() => {
                Err(Refusal::cannot(format!("this would make {now} statements; at most {MOST_STATEMENTS} are made")))
            }
            _ => Ok(()),
        }
    }

    /// Notes that the indices of these loops, with how often each occurs, are far from a loop that the step has named.
    pub(crate) fn keep_far(&self, now: HashMap<Name, usize>) {
        let mut far = self.far.borrow_mut();
        *far = Some(match far.take() {
            Some(before) => {
                now.into_iter().filter_map(|(name, count)| Some((name, count.min(*before.get(&name)?)))).collect()
            }
            None => now,
        });
    }

    // Places

    /// The block in which a place is.
    pub(crate) fn block(&self, place: &Place) -> &[Stmt] {
        let body: &[Stmt] = &self.program.body;
        place.path.iter().fold(body, |block, turn| {
            block.get(turn.at).and_then(|stmt| stmt.blocks().nth(turn.block)).map_or(&[], Vec::as_slice)
        })
    }

    /// The same, to be changed.
    pub(crate) fn block_mut(&mut self, place: &Place) -> Done<&mut Vec<Stmt>> {
        place.path.iter().try_fold(&mut self.program.body, |block, turn| {
            block.get_mut(turn.at).and_then(|stmt| stmt.blocks_mut().nth(turn.block)).ok_or_else(Refusal::lost)
        })
    }

    /// The statement at a place.
    pub(crate) fn stmt(&self, place: &Place) -> Option<&Stmt> {
        self.block(place).get(place.at)
    }

    /// Replaces a statement by others.
    pub(crate) fn replace(&mut self, place: &Place, with: impl IntoIterator<Item = Stmt>) -> Done<()> {
        let block = self.block_mut(place)?;
        if place.at >= block.len() {
            return Err(Refusal::lost());
        }
        block.splice(place.at..=place.at, with);
        Ok(())
    }

    /// The loop at a place.
    pub(crate) fn loop_at(&self, place: &Place) -> Done<Loop> {
        match self.stmt(place) {
            Some(Stmt::For { index, range, mode, body }) => {
                Ok(Loop { index: *index, range: range.clone(), mode: *mode, body: body.clone() })
            }
            _ => Err(Refusal::cannot("there is no loop at this place").at(place)),
        }
    }

    /// The stage in which a place is.
    pub(crate) fn stage(&self, place: &Place) -> Option<Name> {
        (0..=place.path.len()).rev().find_map(|depth| {
            let around = place.at_depth(depth);
            self.block(&around).iter().take(around.at + 1).rev().find_map(as_stage)
        })
    }

    /// The loops around a place, outermost first, with their places.
    pub(crate) fn loops_around(&self, place: &Place) -> Vec<(Place, Loop)> {
        let around = (0..place.path.len()).map(|depth| place.at_depth(depth));
        around.filter_map(|outer| Some((outer.clone(), self.loop_at(&outer).ok()?))).collect()
    }

    // What is known

    /// All that holds where a statement stands: of sizes, of the loops and of the conditions around it.
    pub(crate) fn facts(&self, place: &Place) -> Done<Facts> {
        let mut facts = Facts::new();
        self.program.facts.iter().for_each(|fact| facts.assume(fact.clone()));
        for (depth, turn) in place.path.iter().enumerate() {
            if let Some(around) = self.stmt(&place.at_depth(depth)) {
                facts.assume(around.holds_in(turn.block)?);
            }
        }
        Ok(facts)
    }

    /// The type of an input, output or constant.
    fn parameter(&self, name: Name) -> Option<&TensorType> {
        self.program.given().find(|(given, _)| *given == name).map(|(_, ty)| ty)
    }

    /// The type of a buffer, wherever it is declared.
    pub(crate) fn buffer(&self, name: Name) -> Option<&TensorType> {
        self.parameter(name).or_else(|| allocation(statements(&self.program.body), name))
    }

    /// The type of a buffer that is in scope at a place.
    pub(crate) fn type_at(&self, place: &Place, name: Name) -> Option<&TensorType> {
        let around = || (0..=place.path.len()).rev().map(|depth| self.block(&place.at_depth(depth)));
        self.parameter(name).or_else(|| around().find_map(|block| allocation(block.iter(), name)))
    }

    // Names

    /// A name that nothing in the program has: this one, or one with a number after it.
    pub(crate) fn fresh(&self, base: &str) -> Name {
        let taken = self.taken();
        match Name::new(base) {
            free if !taken.contains(&free) => free,
            _ => Name::fresh(base, |name| taken.contains(&name)),
        }
    }

    /// All names of the program, but for the indices of loops that are far from those that the step has named: each stage
    /// can have its `i.o`.
    pub(crate) fn taken(&self) -> HashSet<Name> {
        let program = &self.program;
        let given = program.given().map(|(name, _)| name);
        let mut taken: HashSet<Name> = program.sizes.iter().copied().chain(given).collect();
        let far = self.far.borrow();
        let mut seen: HashMap<Name, usize> = HashMap::new();
        for (name, stmt) in declarations(&program.body) {
            let count = seen.entry(name).or_default();
            *count += 1;
            let is_far = far.as_ref().and_then(|far| far.get(&name)).is_some_and(|far| *count <= *far);
            if !(is_far && matches!(stmt, Stmt::For { .. })) {
                taken.insert(name);
            }
        }
        taken
    }

    /// The name of a piece of a loop, `i.o` of `i`: nothing near has it.
    pub(crate) fn piece(&self, index: Name, suffix: &str) -> Name {
        self.fresh(&format!("{index}.{suffix}"))
    }

    /// A block in which what is declared at a position has another name from there on, which nothing has.
    pub(crate) fn renamed_from(&mut self, block: &[Stmt], at: usize, name: Name) -> Done<Vec<Stmt>> {
        let edit = Edit { names: HashMap::from([(name, self.fresh(name.as_str()))]), ..Edit::default() };
        let mut renamed = block[..at].to_vec();
        renamed.extend(edit.block(&mut self.program, &block[at..])?);
        Ok(renamed)
    }

    /// A copy of a block in which everything that it declares has another name: indices of loops with `suffix` after a
    /// point, locals and buffers with a number.
    pub(crate) fn copy(&mut self, block: &[Stmt], suffix: &str, indices: Edit) -> Done<Vec<Stmt>> {
        let mut taken = self.taken();
        self.copy_beside(block, suffix, indices, &mut taken)
    }

    /// The same, beside other copies that are not yet in the program: `taken` has all names, and gets those of this copy.
    pub(crate) fn copy_beside(
        &mut self,
        block: &[Stmt],
        suffix: &str,
        indices: Edit,
        taken: &mut HashSet<Name>,
    ) -> Done<Vec<Stmt>> {
        let mut edit = indices;
        for (name, stmt) in declarations(block) {
            if edit.names.contains_key(&name) {
                continue;
            }
            let base = match stmt {
                Stmt::For { .. } => format!("{name}.{suffix}"),
                _ => name.to_string(),
            };
            let new = Name::fresh(&base, |name| taken.contains(&name));
            taken.insert(new);
            edit.names.insert(name, new);
        }
        Ok(edit.block(&mut self.program, block)?)
    }

    // Conditions

    /// What of a part conflicts: where operations are made as written, sums do not commute either.
    pub(crate) fn ordered(&self, part: Footprint) -> Footprint {
        if self.strict { part.strict() } else { part }
    }

    /// A condition that makes the step right.
    pub(crate) fn condition(&mut self, what: impl Into<String>, status: Status) {
        self.conditions.push(Condition { what: what.into(), about: None, status });
    }

    /// A condition that speaks of the loop over an index.
    pub(crate) fn condition_of(&mut self, index: Name, what: impl Into<String>, status: Status) {
        self.conditions.push(Condition { what: what.into(), about: Some(index), status });
    }

    /// A condition on indices and sizes, put to the prover.
    pub(crate) fn require(&mut self, what: impl Into<String>, facts: &Facts, goal: Cond) {
        let status = match Proof::find(facts, goal) {
            Ok(proof) => Status::Proved(vec![proof]),
            Err(Decision::Refuted(found)) => Status::Fails(format!("for example {found}")),
            Err(_) => Status::Open,
        };
        self.condition(what, status);
    }
}
