//! In place: whether a nest may write its result into the memory of a tensor that it reads.
//!
//! Say the nest reads `old` and writes `new`. With one memory for both, a write of `new[e]` overwrites `old[e]`, so the
//! nest is right if no read of `old[e]` comes after a write of `new[e]`. (Model language, Sec. 5; the algebra's own
//! analysis asks for any order of the elements, this one knows the order.) It is shown from three conditions:
//!
//! - All accesses of both are at the same indices, as they are written: `new[i, j] = … old[i, j] …`.
//! - *The indices tell the element.* A loop whose index stands alone in one of them (`i`, `i - 2`) reaches another
//!   element in each round, so only accesses in the same round meet. In any other loop, all rounds meet: it may read or
//!   write, but not both.
//! - Inside one round, in the order of statements, reads of `old` come before writes of `new`; the two sides of an `if`
//!   never meet.
//!
//! So `x[i, j] = x[j, i]` is refused by the first condition, and a sum over `old[i]` that ends before `new[i]` is written
//! is accepted. `new` itself is read only after it was written on every path.

use std::collections::{BTreeSet, HashSet};

use certen_core::{TermId, Terms};
use certen_index::Ix;
use certen_syntax::Name;

use crate::ir::{Stmt, Target, as_element};

/// Whether statements that write `new` may do so in the memory of `old`, which is not used after them.
pub(super) fn in_place(terms: &Terms, stmts: &[Stmt], old: Name, new: Name) -> bool {
    let Some((at, loops)) = written(stmts, new) else { return false };
    let own = |ix: &Ix| {
        let mut names = BTreeSet::new();
        ix.collect_names(&mut names);
        let mut inside = names.into_iter().filter(|name| loops.contains(name));
        let (Some(index), None) = (inside.next(), inside.next()) else { return None };
        ix.sub(&Ix::var(index)).is_ok_and(|rest| !rest.mentions(index)).then_some(index)
    };
    let telling = at.iter().filter_map(own).collect();
    let nest = Nest { terms, old, new, at, telling };
    nest.block(stmts, &mut State::default()).is_some()
}

/// The indices at which a buffer is written first, and the indices of all loops.
fn written(stmts: &[Stmt], buffer: Name) -> Option<(&[Ix], HashSet<Name>)> {
    let (mut at, mut loops) = (None, HashSet::new());
    let mut todo = vec![stmts];
    while let Some(block) = todo.pop() {
        for stmt in block {
            match stmt {
                Stmt::For { index, body, .. } => {
                    loops.insert(*index);
                    todo.push(body);
                }
                Stmt::If { then, otherwise, .. } => todo.extend([then.as_slice(), otherwise.as_slice()]),
                Stmt::Assign { target: Target::Element(name, indices), .. } if *name == buffer => {
                    at.get_or_insert(indices.as_ref());
                }
                _ => {}
            }
        }
    }
    Some((at?, loops))
}

struct Nest<'a> {
    terms: &'a Terms,
    old: Name,
    new: Name,
    /// The indices of every access.
    at: &'a [Ix],
    /// Loop indices that tell the element.
    telling: HashSet<Name>,
}

/// Whether the element may have been written, and whether it surely was.
#[derive(Clone, Copy, Default)]
struct State {
    maybe: bool,
    surely: bool,
}

/// What statements do.
#[derive(Clone, Copy, Default)]
struct Effect {
    reads: bool,
    writes: bool,
}

impl Nest<'_> {
    /// What a block does; none if an element might be read too late.
    fn block(&self, block: &[Stmt], state: &mut State) -> Option<Effect> {
        let mut effect = Effect::default();
        for stmt in block {
            let one = self.stmt(stmt, state)?;
            effect = Effect { reads: effect.reads || one.reads, writes: effect.writes || one.writes };
        }
        Some(effect)
    }

    fn stmt(&self, stmt: &Stmt, state: &mut State) -> Option<Effect> {
        Some(match stmt {
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) => Effect::default(),
            Stmt::Swap(a, b) => {
                let moves = [a, b].iter().any(|name| **name == self.old || **name == self.new);
                return (!moves).then(Effect::default);
            }
            Stmt::Local { init, .. } => {
                Effect { reads: init.map_or(Some(false), |v| self.reads(v, *state))?, writes: false }
            }
            Stmt::Assign { target, op, value } => {
                let reads = self.reads(*value, *state)?;
                match target {
                    Target::Element(name, _) if *name == self.old => return None,
                    Target::Element(name, indices) if *name == self.new => {
                        if **indices != *self.at || (op.is_some() && !state.surely) {
                            return None;
                        }
                        *state = State { maybe: true, surely: true };
                        Effect { reads, writes: true }
                    }
                    _ => Effect { reads, writes: false },
                }
            }
            Stmt::If { then, otherwise, .. } => {
                let (mut accepted, mut refused) = (*state, *state);
                let (a, b) = (self.block(then, &mut accepted)?, self.block(otherwise, &mut refused)?);
                *state = State { maybe: accepted.maybe || refused.maybe, surely: accepted.surely && refused.surely };
                Effect { reads: a.reads || b.reads, writes: a.writes || b.writes }
            }
            Stmt::For { index, body, .. } => {
                let mut inside = *state;
                let effect = self.block(body, &mut inside)?;
                if effect.reads && effect.writes && !self.telling.contains(index) {
                    return None;
                }
                state.maybe |= effect.writes;
                effect
            }
        })
    }

    /// Whether a value reads the old tensor; none if it might read it too late, or the new one too early.
    fn reads(&self, value: TermId, state: State) -> Option<bool> {
        let mut reads = false;
        for id in self.terms.parts_first(value) {
            let Some((name, _, indices)) = as_element(self.terms, id) else { continue };
            if name == self.old || name == self.new {
                let in_time = if name == self.old { !state.maybe } else { state.surely };
                if !in_time || indices != self.at {
                    return None;
                }
                reads |= name == self.old;
            }
        }
        Some(reads)
    }
}
