//! Parallel loops: marks those that threads may share.
//!
//! In each nest it is the outermost loop whose iterations are shown to be independent, by the same check that the
//! verifier makes (`races.rs`); loops inside it stay as they are. A loop of a few iterations gives way to the loops
//! inside it, if all of these can be marked. Nothing is reordered and no reduction is divided, so the results have
//! the same bits whatever the number of threads.
//!
//! Threads cost some microseconds to call. [`work`] estimates what a loop does, as a product of the ranges of the loops
//! inside each other: where that is a number, it decides here whether a loop is marked, and where it depends on sizes,
//! generated code compares it with [`MIN_PARALLEL_WORK`] before it calls threads.
//!
//! Needs: a program that [`verify`](crate::verify) accepts. Guarantees: the result is one too.

use std::convert::Infallible;

use certen_core::{Range, Term, TermId};
use certen_index::{Cond, Facts, Ix, IxError};
use certen_syntax::Name;

use crate::ir::{LoopProgram, Mode, Stmt};
use crate::races::are_independent;
use crate::walk::statements;

/// A loop that makes fewer operations than this is not shared between threads.
pub const MIN_PARALLEL_WORK: u64 = 100_000;

/// A loop that is known to have fewer iterations than this is left to one thread if the loops inside can be shared.
const MIN_ITERATIONS: i64 = 16;

/// Marks the loops that threads may share, in those nests that the caller leaves to this pass.
pub fn parallelise(program: LoopProgram, is_left: impl Fn(Option<Name>) -> bool) -> LoopProgram {
    let mut facts = Facts::new();
    program.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    let mut marks = Marks { program: &program, facts, assumed: Vec::new() };
    let mut nest = None;
    let mut mark = |stmt: &Stmt| {
        if let Stmt::Nest(name) = stmt {
            nest = Some(*name);
        }
        if is_left(nest) { marks.stmt(stmt) } else { stmt.clone() }
    };
    let body = program.body.iter().map(&mut mark).collect();
    LoopProgram { body, ..program }
}

struct Marks<'a> {
    program: &'a LoopProgram,
    /// About the sizes.
    facts: Facts,
    /// What holds in the open blocks.
    assumed: Vec<Cond>,
}

impl Marks<'_> {
    fn block(&mut self, block: &[Stmt]) -> Vec<Stmt> {
        block.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For { index, range, mode, body } = stmt else { return self.inside(stmt) };
        if mode.is_parallel() {
            return stmt.clone();
        }
        let trips = range.hi.sub(&range.lo).ok().and_then(|trips| trips.as_constant());
        let shares = statements(body).any(|stmt| matches!(stmt, Stmt::For { mode, .. } if mode.is_parallel()));
        let can_be_marked = !shares
            && trips != Some(1)
            && self.is_worth_it(stmt)
            && self.is_independent(*index, range, mode.shared(), body);
        let marked = || Stmt::For { index: *index, range: range.clone(), mode: mode.shared(), body: body.clone() };
        if can_be_marked && trips.is_none_or(|trips| trips >= MIN_ITERATIONS) {
            return marked();
        }
        let inside = self.inside(stmt);
        let loops = inside.blocks().flatten().filter_map(|stmt| match stmt {
            Stmt::For { mode, .. } => Some(mode.is_parallel()),
            _ => None,
        });
        let loops: Vec<bool> = loops.collect();
        let is_shared_inside = !loops.is_empty() && loops.iter().all(|parallel| *parallel);
        if can_be_marked && !is_shared_inside { marked() } else { inside }
    }

    /// A statement whose blocks are marked.
    fn inside(&mut self, stmt: &Stmt) -> Stmt {
        let mut stmt = stmt.clone();
        let Ok(()) = stmt.map_blocks(|known, block| {
            let open = self.assumed.len();
            self.assumed.extend(known);
            let marked = self.block(&block);
            self.assumed.truncate(open);
            Ok::<_, Infallible>(marked)
        });
        stmt
    }

    fn is_independent(&self, index: Name, range: &Range, mode: Mode, body: &[Stmt]) -> bool {
        let facts = || {
            let mut facts = self.facts.clone();
            self.assumed.iter().for_each(|fact| facts.assume(fact.clone()));
            facts
        };
        are_independent(self.program, facts, (index, range, mode), body)
    }

    /// Whether a loop does enough, or may for some sizes.
    fn is_worth_it(&self, stmt: &Stmt) -> bool {
        let work = work(self.program, std::slice::from_ref(stmt));
        !work.extents.is_empty() || work.operations >= MIN_PARALLEL_WORK
    }
}

/// About how much a block does: the product of these numbers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Scalar operations, times the iterations of loops with a known number of them.
    pub operations: u64,
    /// Iterations of loops whose number depends on sizes; indices of loops inside the block do not occur.
    pub extents: Vec<Ix>,
}

/// A large size that nothing divides.
const LARGE: i64 = 1009;

impl Work {
    /// The product where everything is large.
    fn at_large_sizes(&self) -> f64 {
        let iterations = |extent: &Ix| extent.eval(&|_| Some(LARGE)).map_or(1, |count| count.max(1)) as f64;
        self.extents.iter().map(iterations).product::<f64>() * self.operations as f64
    }
}

/// About how much one run of a block does. Of several loops the one counts that does most where sizes are large, so that the
/// rest of blocks is not taken for the blocks; of indices the first or last value, whichever makes the loops inside longer.
pub fn work(program: &LoopProgram, block: &[Stmt]) -> Work {
    /// A block, the first and last values of its loops' indices, and the work of the blocks around it.
    struct OpenBlock<'a>(&'a [Stmt], Vec<(Name, [Ix; 2])>, Work);
    let mut heaviest = Work::default();
    let mut blocks = vec![OpenBlock(block, Vec::new(), Work { operations: 1, extents: Vec::new() })];
    while let Some(OpenBlock(block, ends, around)) = blocks.pop() {
        let mut here: u64 = 0;
        for stmt in block {
            here = here.saturating_add(stmt.value().map_or(0, |value| operations(program, value)));
            let (mut around, mut ends) = (around.clone(), ends.clone());
            if let Stmt::For { index, range, .. } = stmt
                && let Ok([first, last]) = both_ends(range, &ends)
            {
                // Of a triangle's rows the longest counts, whichever end it is at.
                match extent(&first).max_with(&extent(&last)).unwrap_or(Ix::from(1)) {
                    longest if longest.as_constant().is_some() => {
                        let trips = longest.as_constant().unwrap_or(1).max(0).unsigned_abs();
                        around.operations = around.operations.saturating_mul(trips);
                    }
                    longest => around.extents.push(longest),
                }
                let until = last.hi.sub(&Ix::from(1)).unwrap_or(last.hi);
                ends.push((*index, [first.lo, until]));
            }
            blocks.extend(stmt.blocks().map(|block| OpenBlock(block, ends.clone(), around.clone())));
        }
        let found = Work { operations: around.operations.saturating_mul(here), extents: around.extents };
        if found.at_large_sizes() > heaviest.at_large_sizes() {
            heaviest = found;
        }
    }
    heaviest
}

/// A range in the first and in the last iteration of the loops around it.
fn both_ends(range: &Range, ends: &[(Name, [Ix; 2])]) -> Result<[Range; 2], IxError> {
    let at = |end: usize, ix: &Ix| {
        ix.substitute(&|name| ends.iter().find(|(known, _)| *known == name).map(|(_, ends)| ends[end].clone()))
    };
    let range = |end: usize| Ok(Range { lo: at(end, &range.lo)?, hi: at(end, &range.hi)? });
    Ok([range(0)?, range(1)?])
}

fn extent(range: &Range) -> Ix {
    range.hi.sub(&range.lo).unwrap_or(Ix::from(1))
}

/// The operations of a value; a function of the mathematical library counts as many.
fn operations(program: &LoopProgram, root: TermId) -> u64 {
    let each = program.terms.parts_first(root).into_iter().map(|id| match program.terms.get(id) {
        Term::Unary(op, _) if op.function().is_some() => 20,
        Term::Binary(op, ..) if op.function().is_some() => 20,
        Term::Fma(..) => 2,
        Term::Ref(..) => 0,
        _ => 1,
    });
    each.sum::<u64>().max(1)
}
