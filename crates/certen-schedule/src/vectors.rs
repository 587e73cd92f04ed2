//! Vectors for the loops that no step touched.
//!
//! In each nest the innermost loop that [has lanes](Lanes) and whose iterations are independent of each other becomes a
//! vector loop; the loops inside it, such as that of a sum, then run for all lanes alike. A short inner loop over a row
//! that lies beside the next one is first collapsed with the loop around it, so that `f64[n, 3]` is one row. Nests in
//! which someone has said `vectorize` are left alone, and loops are collapsed only where the caller says that nobody has
//! an opinion.
//!
//! Needs: a program that [`certen_loops::verify`] accepts, in its final layout. Guarantees: the result is one too, and makes
//! the same operations for every element, in the same order, so every bit stays.

use std::collections::{HashMap, HashSet};

use certen_core::{Literal, TensorType, Term};
use certen_index::{Cond, Facts, Ix};
use certen_loops::{Lanes, LoopProgram, Mode, Stmt, are_independent, as_element, declarations};
use certen_syntax::Name;

use crate::collapse::collapsed;
use crate::nest::Loop;

/// Rows of so many bytes fill every vector.
const FULL: i64 = 64;

/// A loop of fewer iterations is short.
const SHORT: i64 = 8;

/// Marks vector loops in all nests that have none; in those that `is_free` it may collapse loops.
pub fn vectorise(mut program: LoopProgram, is_free: impl Fn(Option<Name>) -> bool) -> LoopProgram {
    let mut facts = Facts::new();
    program.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    let body = std::mem::take(&mut program.body);
    let marked = with_vectors(&body);
    let interface = program.inputs.iter().chain(&program.outputs).map(|it| (it.name, it.ty.clone())).collect();
    let mut taken: HashSet<Name> = declarations(&body).into_iter().map(|(name, _)| name).collect();
    taken.extend(program.sizes.iter().copied());
    let mut vectors = Vectors { program, facts, assumed: Vec::new(), types: interface, taken, is_free: false };
    let mut nest = None;
    let mut done = Vec::with_capacity(body.len());
    for stmt in body {
        if let Stmt::Nest(name) = &stmt {
            nest = Some(*name);
        }
        vectors.is_free = is_free(nest);
        let is_left = marked.contains(&nest);
        if let Stmt::Alloc(name, ty) = &stmt {
            vectors.types.insert(*name, ty.clone());
        }
        done.push(if is_left { stmt } else { vectors.stmt(stmt).0 });
    }
    LoopProgram { body: done, ..vectors.program }
}

/// The nests that have a vector loop.
fn with_vectors(body: &[Stmt]) -> HashSet<Option<Name>> {
    let (mut nest, mut found) = (None, HashSet::new());
    for stmt in body {
        if let Stmt::Nest(name) = stmt {
            nest = Some(*name);
        }
        let has_vector = |(_, stmt): &(Name, &Stmt)| matches!(stmt, Stmt::For { mode, .. } if mode.is_vector());
        if declarations(std::slice::from_ref(stmt)).iter().any(has_vector) {
            found.insert(nest);
        }
    }
    found
}

/// Whether all vector loops of a block are short.
fn all_short(block: &[Stmt]) -> bool {
    declarations(block).iter().all(|(_, stmt)| match stmt {
        Stmt::For { range, mode, .. } if mode.is_vector() => {
            let trips = range.hi.sub(&range.lo).ok().and_then(|trips| trips.as_constant());
            trips.is_some_and(|trips| trips < SHORT)
        }
        _ => true,
    })
}

/// A block whose vector loops are serial.
fn serial(block: &[Stmt]) -> Vec<Stmt> {
    let stmt = |stmt: &Stmt| match stmt {
        Stmt::For { index, range, mode, body } => {
            let mode = if *mode == Mode::Vector { Mode::Serial } else { *mode };
            Stmt::For { index: *index, range: range.clone(), mode, body: serial(body) }
        }
        Stmt::If { cond, then, otherwise } => {
            Stmt::If { cond: cond.clone(), then: serial(then), otherwise: serial(otherwise) }
        }
        other => other.clone(),
    };
    block.iter().map(stmt).collect()
}

struct Vectors {
    /// Without its body.
    program: LoopProgram,
    /// About the sizes.
    facts: Facts,
    /// What holds in the open blocks.
    assumed: Vec<Cond>,
    /// Types of the buffers in scope.
    types: HashMap<Name, TensorType>,
    taken: HashSet<Name>,
    /// Whether loops may be collapsed.
    is_free: bool,
}

impl Vectors {
    /// A block in which more is known, and whether there are vectors in it.
    fn block(&mut self, known: impl IntoIterator<Item = Cond>, block: Vec<Stmt>) -> (Vec<Stmt>, bool) {
        let open = self.assumed.len();
        self.assumed.extend(known);
        let mut any = false;
        let mut done = Vec::with_capacity(block.len());
        for stmt in block {
            if let Stmt::Alloc(name, ty) = &stmt {
                self.types.insert(*name, ty.clone());
            }
            let (stmt, vectors) = self.stmt(stmt);
            any |= vectors;
            done.push(stmt);
        }
        self.assumed.truncate(open);
        (done, any)
    }

    /// A statement with its vector loops, and whether there are some.
    fn stmt(&mut self, stmt: Stmt) -> (Stmt, bool) {
        match stmt {
            Stmt::For { index, range, mode, body } => {
                let i = Ix::var(index);
                let bounds = [Cond::le(&range.lo, &i), Cond::lt(&i, &range.hi)];
                let (body, any) = self.block(bounds.into_iter().flatten(), body);
                let found = Loop { index, range, mode, body };
                if let Some(row) = self.collapsed(&found) {
                    return (row.into(), true);
                }
                let vector = |found: Loop| {
                    let mode = if mode == Mode::Parallel { Mode::ParallelVector } else { Mode::Vector };
                    (Stmt::from(Loop { mode, ..found }), true)
                };
                if !any && self.is_vector(&found) {
                    return vector(found);
                }
                // Lanes of a long loop are better than those of short ones inside it.
                if any && found.trips().is_none_or(|trips| trips >= SHORT) && all_short(&found.body) {
                    let longer = Loop { body: serial(&found.body), ..found.clone() };
                    if self.is_vector(&longer) {
                        return vector(longer);
                    }
                }
                (found.into(), any)
            }
            Stmt::If { cond, then, otherwise } => {
                let (then, one) = self.block([cond.clone()], then);
                let (otherwise, other) = self.block(cond.not().ok(), otherwise);
                (Stmt::If { cond, then, otherwise }, one || other)
            }
            other => (other, false),
        }
    }

    fn lanes(&self, found: &Loop) -> Option<Lanes> {
        Lanes::of(&self.program.terms, |name| self.types.get(&name), found.index, &found.body)
    }

    /// Whether a loop is to be one of vectors.
    fn is_vector(&self, found: &Loop) -> bool {
        let pays = |lanes: Lanes| lanes.most(&found.range).is_some();
        matches!(found.mode, Mode::Serial | Mode::Parallel)
            && !self.moves_memory(found)
            && self.lanes(found).is_some_and(pays)
            && self.is_independent(found)
    }

    fn is_independent(&self, found: &Loop) -> bool {
        let facts = || {
            let mut facts = self.facts.clone();
            self.assumed.iter().for_each(|fact| facts.assume(fact.clone()));
            facts
        };
        let mode = if found.mode.is_parallel() { Mode::ParallelVector } else { Mode::Vector };
        are_independent(&self.program, facts, (found.index, &found.range, mode), &found.body)
    }

    /// Whether a loop of many iterations only copies a row or fills it with zeros: every C library does that well, and C
    /// compilers see it.
    fn moves_memory(&self, found: &Loop) -> bool {
        let [Stmt::Assign { op: None, value, .. }] = found.body.as_slice() else { return false };
        let terms = &self.program.terms;
        let zero = match terms.get(*value) {
            Term::Literal(Literal::Float(value), _) => value.to_bits() == 0,
            Term::Literal(Literal::Int(value), _) => *value == 0,
            Term::Literal(Literal::Bool(value), _) => !value,
            _ => false,
        };
        let long = found.trips().is_none_or(|trips| trips >= FULL);
        long && (zero
            || as_element(terms, *value).is_some_and(|(_, _, at)| at.iter().any(|ix| ix.mentions(found.index))))
    }

    /// The vector loop over all elements of the rows that a short loop inside this one runs over.
    fn collapsed(&mut self, outer: &Loop) -> Option<Loop> {
        let [Stmt::For { index, range, mode: Mode::Serial | Mode::Vector, body }] = outer.body.as_slice() else {
            return None;
        };
        let inner = Loop { index: *index, range: range.clone(), mode: Mode::Serial, body: body.clone() };
        let trips = inner.trips().filter(|trips| (2..FULL).contains(trips))?;
        let alone = outer.trips().is_some_and(|trips| trips < 2);
        if !self.is_free || alone || outer.mode != Mode::Serial {
            return None;
        }
        // Terms of a loop that is not taken stay behind, and are used by nobody.
        let name = Name::fresh(&format!("{}.{}", outer.index, inner.index), |name| self.taken.contains(&name));
        let row = collapsed(&mut self.program, outer, &inner, name).ok()?;
        let lanes = self.lanes(&row)?;
        let fills = trips * lanes.widest as i64 % FULL == 0;
        let fits = !fills && lanes.most(&row.range).is_some() && self.is_independent(&row);
        fits.then(|| {
            self.taken.insert(name);
            Loop { mode: Mode::Vector, ..row }
        })
    }
}
