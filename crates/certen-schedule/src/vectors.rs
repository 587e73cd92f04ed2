//! Vectors for the loops that no step touched.
//!
//! In each nest the innermost loop that [has lanes](Lanes) and whose iterations are independent of each other becomes a
//! vector loop; the loops inside it, such as that of a sum, then run for all lanes alike. A short inner loop over a row
//! that lies beside the next one is first collapsed with the loop around it, so that `f64[n, 3]` is one row; an innermost
//! loop with a condition on its index is cut where that changes, as `lower/cut.rs` does for conditions on what is stored.
//! A vector loop with conditions that are the same for all lanes stands once for each way in which they turn out.
//! The index of a loop of one iteration is replaced by its value.
//! Loops that a schedule has vectorised are left alone, with all that is inside them. Loops are collapsed and cut only
//! where the caller says that no step has touched the nest.
//!
//! Needs: a program that [`certen_loops::verify`] accepts, in its final layout. Guarantees: the result is one too, and makes
//! the same operations for every element, in the same order, so every bit stays.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;

use certen_core::{Literal, Range, TensorType, Term};
use certen_index::{Cond, Facts, Ix, Verdict};
use certen_loops::{
    Lanes, LoopProgram, Mode, Stmt, Target, are_independent, as_element, change, changes_outside, combined, conjuncts,
    declared, for_each_mut, sites, statements,
};
use certen_syntax::Name;

use crate::collapse::collapsed;
use crate::edit::Edit;
use crate::place::Loop;

/// Rows of so many bytes fill every vector.
const FULL: i64 = 64;

/// Rows of fewer elements are not worth a call of the C library.
const LONG: i64 = 256;

/// The most loops that are cut in two.
const MAX_CUTS: usize = 48;

/// A loop of fewer iterations is short.
const SHORT: i64 = 8;

/// Marks vector loops; in the nests of which the caller says that no step has touched them, it may collapse loops and cut them.
pub fn vectorise(mut program: LoopProgram, is_left: impl Fn(Option<Name>) -> bool) -> LoopProgram {
    let mut facts = Facts::new();
    program.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    let body = std::mem::take(&mut program.body);
    let interface = program.given().map(|(name, ty)| (name, ty.clone())).collect();
    let mut taken = declared(&body);
    taken.extend(program.sizes.iter().copied());
    let (assumed, is_free) = (Vec::new(), is_left(None));
    let mut vectors =
        Vectors { program, facts, assumed, types: interface, taken, is_left: &is_left, is_free, cuts: MAX_CUTS };
    let (done, _) = vectors.block([], body);
    LoopProgram { body: done, ..vectors.program }
}

/// Whether a block stores an element.
fn stores(block: &[Stmt]) -> bool {
    statements(block).any(|stmt| matches!(stmt, Stmt::Assign { target: Target::Element(..), .. }))
}

/// The conditions of a block, without those in its loops.
fn conditions(block: &[Stmt]) -> impl Iterator<Item = &Cond> {
    let outside_loops = sites(block).into_iter().filter(|site| site.loops().next().is_none());
    outside_loops.filter_map(|site| if let Stmt::If { cond, .. } = site.stmt { Some(cond) } else { None })
}

/// Where a condition of a block on an index changes.
fn change_in(block: &[Stmt], index: Name) -> Option<Ix> {
    conditions(block).find_map(|cond| conjuncts(cond).iter().find_map(|part| change(part, index, &[])))
}

/// A block without the conditions that are known to hold or not to hold.
fn decided(facts: &Facts, block: &[Stmt]) -> Vec<Stmt> {
    let mut done = Vec::with_capacity(block.len());
    for stmt in block {
        let Stmt::If { cond, then, otherwise } = stmt else {
            done.push(stmt.clone());
            continue;
        };
        let shown = |cond: &Cond| facts.prove(cond) == Verdict::Yes;
        let taken = match cond.not() {
            _ if shown(cond) => Some(then),
            Ok(not) if shown(&not) => Some(otherwise),
            _ => None,
        };
        let declares = |stmt: &Stmt| matches!(stmt, Stmt::Local { .. } | Stmt::Alloc(..));
        match taken {
            Some(taken) if !taken.iter().any(declares) => done.extend(decided(facts, taken)),
            _ => {
                let (then, otherwise) = (decided(facts, then), decided(facts, otherwise));
                done.push(Stmt::If { cond: cond.clone(), then, otherwise });
            }
        }
    }
    done
}

/// Whether all vector loops of a block are short.
fn all_short(block: &[Stmt]) -> bool {
    statements(block).all(|stmt| match stmt {
        Stmt::For { range, mode, .. } if mode.is_vector() => {
            let trips = range.hi.sub(&range.lo).ok().and_then(|trips| trips.as_constant());
            trips.is_some_and(|trips| trips < SHORT)
        }
        _ => true,
    })
}

/// A loop whose vector loops are serial.
fn serial(found: &Loop) -> Loop {
    let mut found = found.clone();
    for_each_mut(&mut found.body, |stmt| {
        if let Stmt::For { mode: mode @ Mode::Vector, .. } = stmt {
            *mode = Mode::Serial;
        }
    });
    found
}

struct Vectors<'a> {
    /// Without its body.
    program: LoopProgram,
    /// About the sizes.
    facts: Facts,
    /// What holds in the open blocks.
    assumed: Vec<Cond>,
    /// Types of the buffers in scope.
    types: HashMap<Name, TensorType>,
    taken: HashSet<Name>,
    /// Whether no step has touched a nest, and whether that is so where the walk is: loops may be collapsed and cut then.
    is_left: &'a dyn Fn(Option<Name>) -> bool,
    is_free: bool,
    /// How many may still be cut.
    cuts: usize,
}

impl Vectors<'_> {
    /// A block in which more is known, and whether there are vectors in it.
    fn block(&mut self, known: impl IntoIterator<Item = Cond>, block: Vec<Stmt>) -> (Vec<Stmt>, bool) {
        let open = self.assumed.len();
        self.assumed.extend(known);
        let mut any = false;
        let mut done = Vec::with_capacity(block.len());
        let is_free = self.is_free;
        for stmt in block {
            match &stmt {
                Stmt::Alloc(name, ty) => drop(self.types.insert(*name, ty.clone())),
                Stmt::Nest(name) => self.is_free = (self.is_left)(Some(*name)),
                _ => {}
            }
            let (stmts, vectors) = self.stmt(stmt);
            any |= vectors;
            done.extend(stmts);
        }
        self.is_free = is_free;
        self.assumed.truncate(open);
        (done, any)
    }

    /// A statement with its vector loops, and whether there are some.
    fn stmt(&mut self, stmt: Stmt) -> (Vec<Stmt>, bool) {
        match stmt {
            // A step has vectorised it.
            Stmt::For { mode: Mode::Vector | Mode::ParallelVector, .. } => (vec![stmt], true),
            Stmt::For { index, range, mode, body } => {
                let found = self.settled(Loop { index, range, mode, body });
                if let Some(pieces) = self.cut(&found)
                    && let (pieces, true) = self.block([], pieces)
                {
                    return (pieces, true);
                }
                let (body, any) = self.block(found.bounds().ok(), found.body);
                let found = Loop { body, ..found };
                if let Some(row) = self.collapsed(&found) {
                    return (vec![row.into()], true);
                }
                let vector = |found: Loop| {
                    let mode = if mode == Mode::Parallel { Mode::ParallelVector } else { Mode::Vector };
                    Loop { mode, ..found }
                };
                if !any && self.is_vector(&found) {
                    return (vec![self.told_apart(vector(found))], true);
                }
                // Lanes of a long loop are better than those of short ones inside it.
                if any && self.is_free && found.trips().is_none_or(|trips| trips >= SHORT) && all_short(&found.body) {
                    let longer = serial(&found);
                    if self.is_vector(&longer) {
                        return (vec![vector(longer).into()], true);
                    }
                }
                (vec![found.into()], any)
            }
            mut other => {
                let mut any = false;
                let Ok(()) = other.map_blocks(|known, block| {
                    let (block, vectors) = self.block(known.ok(), block);
                    any |= vectors;
                    Ok::<_, Infallible>(block)
                });
                (vec![other], any)
            }
        }
    }

    /// A loop of one iteration with the value of its index in its place: bounds and conditions in it are simpler then.
    fn settled(&mut self, found: Loop) -> Loop {
        if found.trips() != Some(1) {
            return found;
        }
        let edit = Edit::index(found.index, found.range.lo.clone());
        match edit.block(&mut self.program, &found.body) {
            Ok(body) => Loop { body: decided(&self.facts([]), &body), ..found },
            Err(_) => found,
        }
    }

    /// What is known where the walk is, and more.
    fn facts(&self, more: impl IntoIterator<Item = Cond>) -> Facts {
        let mut facts = self.facts.clone();
        self.assumed.iter().cloned().chain(more).for_each(|fact| facts.assume(fact));
        facts
    }

    /// The two parts of an innermost loop between which a condition on its index changes, each without the condition; none
    /// if there is no such condition, or too many were cut already.
    fn cut(&mut self, found: &Loop) -> Option<Vec<Stmt>> {
        let is_innermost = !found.body.iter().any(|stmt| matches!(stmt, Stmt::For { .. }));
        let is_cut = self.is_free && is_innermost && self.cuts > 0 && found.mode == Mode::Serial;
        if !is_cut || changes_outside(&found.body) {
            return None;
        }
        let point = change_in(&found.body, found.index)?;
        let facts = self.facts([]);
        let at = point.max_with(&found.range.lo).ok()?.simplified(&facts).ok()?;
        let at = at.min_with(&found.range.hi).ok()?.simplified(&facts).ok()?;
        if at == found.range.lo || at == found.range.hi {
            return None;
        }
        self.cuts -= 1;
        let ranges = [(found.range.lo.clone(), at.clone()), (at, found.range.hi.clone())];
        let piece = |(lo, hi): (Ix, Ix)| {
            let piece = Loop { range: Range { lo, hi }, ..found.clone() };
            let facts = self.facts(piece.bounds().ok());
            Stmt::from(Loop { body: decided(&facts, &piece.body), ..piece })
        };
        let pieces: Vec<Stmt> = ranges.into_iter().map(piece).collect();
        // What is not shown in either part is not worth a cut.
        let is_simpler = |stmt: &Stmt| matches!(stmt, Stmt::For { body, .. } if conditions(body).count() < conditions(&found.body).count());
        let is_needed = |stmt: &Stmt| matches!(stmt, Stmt::For { body, .. } if stores(body));
        pieces.iter().all(is_simpler).then(|| pieces.into_iter().filter(is_needed).collect())
    }

    /// A vector loop, once for each way in which its conditions turn out that are the same for all lanes.
    fn told_apart(&mut self, found: Loop) -> Stmt {
        let is_same = |cond: &&Cond| {
            let mut names = BTreeSet::new();
            cond.collect_names(&mut names);
            !names.contains(&found.index)
        };
        let (true, Some(cond)) = (self.cuts > 0, conditions(&found.body).find(is_same).cloned()) else {
            return found.into();
        };
        let Ok(not) = cond.not() else { return found.into() };
        let decided_by =
            |known: &Cond| Loop { body: decided(&self.facts([known.clone()]), &found.body), ..found.clone() };
        let pieces = [&cond, &not].map(|known| (decided_by(known), known));
        let before = conditions(&found.body).count();
        if pieces.iter().any(|(piece, _)| conditions(&piece.body).count() >= before) {
            return found.into();
        }
        self.cuts -= 1;
        let [then, otherwise] = pieces.map(|(piece, known)| {
            self.assumed.push(known.clone());
            let does_nothing = piece.body.is_empty();
            let piece = self.told_apart(piece);
            self.assumed.pop();
            if does_nothing { Vec::new() } else { vec![piece] }
        });
        Stmt::If { cond, then, otherwise }
    }

    fn lanes(&self, found: &Loop) -> Option<Lanes> {
        Lanes::of(&self.program.terms, |name| self.types.get(&name), found.index, &found.body)
    }

    /// Whether a loop is to be one of vectors.
    fn is_vector(&self, found: &Loop) -> bool {
        let pays = |lanes: Lanes| lanes.most(&found.range).is_some();
        (stores(&found.body) || !combined(&self.program.terms, &found.body).is_empty())
            && !self.moves_memory(found)
            && self.lanes(found).is_some_and(pays)
            && !self.is_short(found)
            && self.is_independent(found)
    }

    /// Whether a loop has few iterations, whatever the sizes are: it is what is left over of another one.
    fn is_short(&self, found: &Loop) -> bool {
        let few = found.range.lo.add(&Ix::from(SHORT)).and_then(|end| Cond::lt(&found.range.hi, &end));
        found.trips().is_none() && few.is_ok_and(|few| self.facts([]).prove(&few) == Verdict::Yes)
    }

    fn is_independent(&self, found: &Loop) -> bool {
        let facts = || self.facts([]);
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
        // A block ends at a number at most.
        let blocks = found.range.hi.smallest_of().unwrap_or_default();
        let most = found.trips().or_else(|| blocks.iter().filter_map(Ix::as_constant).min());
        most.is_none_or(|most| most >= LONG)
            && (zero
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
        // Terms of a loop that is not taken stay in the arena, unused.
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
