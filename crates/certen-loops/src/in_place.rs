//! States of iterations that are updated in place.
//!
//! Lowering keeps each state twice: a step computes the next one from the present one, then they change places. Where no step reads
//! an element after it has stored the next value of that element, one buffer serves for both, and what only stays as it is need not
//! be copied: a step of LU touches what it changes, not the matrix.
//!
//! What a step reads later than it replaces it is often a row or an element for many: `A[k, j]` for all rows, `A[i, k]` for the
//! elements of one. Such reads are of a copy that is made first, if it has fewer dimensions than the state (`in_place/saved.rs`).
//!
//! A state that is given what another one was, as in `(b, next)`, is not copied: the two buffers change places, and the next value
//! of the other state is stored where this one was.
//!
//! An iteration inside another one begins with a copy of the outer state and ends with a copy to the next one. Where the outer state
//! is used for nothing else, and it is updated in place too, both are the same buffer and neither copy is made.
//!
//! Needs: loops as lowering makes them. Guarantees: every element gets the same operations in the same order.

use std::collections::HashSet;

use certen_core::{Range, TensorType};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_syntax::Name;

use crate::ir::{LoopProgram, Mode, Stmt, Target};
use crate::rename::{Renaming, rename};
use crate::walk::{Around, Site, Use, as_element, declared, sites, statements, within};

mod saved;

/// More pairs of accesses are not compared.
const MOST_PAIRS: usize = 256;

/// Updates states in place, the innermost iterations first.
pub fn in_place(mut program: LoopProgram) -> LoopProgram {
    while let Some(without_copy) = rotated(&program) {
        program = without_copy;
    }
    // Each round takes a buffer away.
    while let Some(Found { kept, gone, ty, reading }) = found(&program) {
        let before = program.clone();
        if let Some(reading) = reading {
            program = reading;
        }
        merge(&mut program.body, gone);
        let renaming = Renaming::from([(gone, (kept, ty))]);
        if rename(&mut program, &renaming).is_err() {
            return before;
        }
    }
    program
}

/// Two buffers of which one can stand for both, with their type.
struct Found {
    kept: Name,
    gone: Name,
    ty: TensorType,
    /// The program in which a step reads copies of what it replaces, if it has to.
    reading: Option<LoopProgram>,
}

fn found(program: &LoopProgram) -> Option<Found> {
    let all = sites(&program.body);
    let types = &|name: Name| allocated(&all, name).cloned();
    let found = |(kept, gone), reading| types(kept).map(|ty| Found { kept, gone, ty, reading });
    // The innermost come last.
    let loops = all.iter().filter(|site| matches!(site.stmt, Stmt::For { mode: Mode::Serial, .. }));
    let mut loops: Vec<&Site<'_>> = loops.collect();
    loops.sort_by_key(|site| std::cmp::Reverse(site.around.len()));
    for site in loops {
        let Stmt::For { body, .. } = site.stmt else { continue };
        if let Some(pair) = passed_on(program, body, types) {
            return found(pair, None);
        }
        let swaps: Vec<(Name, Name)> = swaps(body).collect();
        // What a state was is passed on to another one, whose buffer is free then.
        let passed = swaps.windows(2).filter(|pair| pair[0].1 == pair[1].0).map(|pair| (pair[0].0, pair[1].1));
        for pair in swaps.iter().copied().chain(passed) {
            match late_reads(program, site, pair) {
                Ok(Some(late)) if late.is_empty() => return found(pair, None),
                Ok(Some(late)) => {
                    let reading = saved::saved(program, site, pair.0, &late).ok().flatten();
                    let Some(reading) = reading else { continue };
                    let is_in_time = |site: &Site<'_>| {
                        let is_it = matches!(site.stmt, Stmt::For { body, .. } if swaps_of(body, pair));
                        is_it && matches!(late_reads(&reading, site, pair), Ok(Some(late)) if late.is_empty())
                    };
                    if sites(&reading.body).iter().any(is_in_time) {
                        return found(pair, Some(reading));
                    }
                }
                Ok(None) | Err(_) => {}
            }
        }
    }
    None
}

/// The type of a buffer that is allocated somewhere.
fn allocated<'a>(all: &[Site<'a>], name: Name) -> Option<&'a TensorType> {
    all.iter().find_map(|site| match site.stmt {
        Stmt::Alloc(found, ty) if *found == name => Some(ty),
        _ => None,
    })
}

/// The pairs of buffers that a block exchanges, in order.
fn swaps(block: &[Stmt]) -> impl Iterator<Item = (Name, Name)> {
    block.iter().filter_map(|stmt| if let Stmt::Swap(a, b) = stmt { Some((*a, *b)) } else { None })
}

/// Whether a block exchanges the first buffer, and the second.
fn swaps_of(block: &[Stmt], (kept, gone): (Name, Name)) -> bool {
    swaps(block).any(|(a, b)| a == kept || b == kept) && swaps(block).any(|(_, b)| b == gone)
}

/// Takes away the buffer that is gone, and its exchange.
fn merge(block: &mut Vec<Stmt>, gone: Name) {
    block.retain(|stmt| match stmt {
        Stmt::Alloc(name, _) | Stmt::Free(name) => *name != gone,
        Stmt::Swap(a, b) => ![*a, *b].contains(&gone),
        _ => true,
    });
    for stmt in block {
        stmt.blocks_mut().for_each(|block| merge(block, gone));
    }
}

/// The program in which a state changes places with the one whose value it gets, instead of a copy; none if there is no such state.
fn rotated(program: &LoopProgram) -> Option<LoopProgram> {
    for site in sites(&program.body) {
        let Stmt::For { mode: Mode::Serial, body, .. } = site.stmt else { continue };
        for (at, stmt) in body.iter().enumerate() {
            let Some((next, from)) = copy(program, stmt) else { continue };
            let (mut to, mut whole) = (None, false);
            swaps(body).for_each(|(a, b)| {
                to = if b == next { Some(a) } else { to };
                whole |= a == from;
            });
            let is_rotation = |to: &Name| whole && *to != from && is_rotation(program, &site, at, (*to, next), from);
            let Some(to) = to.filter(is_rotation) else { continue };
            let mut changed = program.clone();
            for_each_block(&mut changed.body, &mut |block| {
                if !swaps(block).any(|pair| pair == (to, next)) {
                    return;
                }
                let Some(at) = block.iter().position(|stmt| copy(program, stmt) == Some((next, from))) else { return };
                block.remove(at);
                // The label of a nest without statements.
                if at > 0 && matches!(block[at - 1], Stmt::Nest(_)) {
                    block.remove(at - 1);
                }
                block.retain(|stmt| *stmt != Stmt::Swap(to, next));
                if let Some(at) = block.iter().position(|stmt| matches!(stmt, Stmt::Swap(a, _) if *a == from)) {
                    block.insert(at, Stmt::Swap(to, from));
                }
            });
            for_each_block(&mut changed.body, &mut |block| {
                block.retain(|stmt| !matches!(stmt, Stmt::Alloc(name, _) | Stmt::Free(name) if *name == next));
            });
            return Some(changed);
        }
    }
    None
}

/// Whether nothing but the copy at a place makes the next value of a state, and the state that is copied keeps its value until the
/// end of the step.
fn is_rotation(program: &LoopProgram, iteration: &Site<'_>, at: usize, (to, next): (Name, Name), from: Name) -> bool {
    let Stmt::For { body, .. } = iteration.stmt else { return false };
    let all = sites(&program.body);
    let types = |name: Name| allocated(&all, name);
    let is_plain = body.iter().enumerate().all(|(place, stmt)| {
        statements(std::slice::from_ref(stmt)).flat_map(|stmt| stmt.uses(&program.terms)).all(|(name, _, how)| {
            let is_own = place == at || how == Use::Exchange;
            (name != next || is_own) && (![to, from].contains(&name) || how == Use::Read || how == Use::Exchange)
        })
    });
    let is_inside = |site: &Site<'_>| site.around.iter().any(|around| std::ptr::eq(around.stmt, iteration.stmt));
    let outside = all.iter().filter(|site| !is_inside(site));
    let is_only_here = outside.flat_map(|site| site.stmt.uses(&program.terms)).all(|(name, ..)| name != next);
    let once = |name: Name| swaps(body).filter(|(a, b)| *a == name || *b == name).count() == 1;
    is_plain && is_only_here && once(to) && once(next) && once(from) && types(to).is_some() && types(to) == types(from)
}

/// Does something to a block and to all blocks in it.
fn for_each_block(block: &mut Vec<Stmt>, change: &mut impl FnMut(&mut Vec<Stmt>)) {
    change(block);
    for stmt in block {
        stmt.blocks_mut().for_each(|block| for_each_block(block, change));
    }
}

/// A read, and at which indices.
type Late<'a> = (Site<'a>, &'a [Ix]);

/// The reads of the present state that may come later than what replaces what they read, if the next state is stored where it is;
/// none if that cannot be.
fn late_reads<'a>(
    program: &'a LoopProgram,
    iteration: &Site<'a>,
    (kept, gone): (Name, Name),
) -> Result<Option<Vec<Late<'a>>>, IxError> {
    let Stmt::For { index, range, body, .. } = iteration.stmt else { return Ok(None) };
    let outside = sites(&program.body);
    let is_its_own = outside.iter().all(|site| {
        let is_inside = site.around.iter().any(|around| std::ptr::eq(around.stmt, iteration.stmt));
        is_inside || site.stmt.uses(&program.terms).iter().all(|(name, ..)| *name != gone)
    });
    if !is_its_own {
        return Ok(None);
    }
    let inside = sites(body);
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    let (mut exchanges, mut first_copy, mut last_change) = (0, None, 0);
    for site in &inside {
        let stays = stays(program, site.stmt, (kept, gone));
        let top = site.around.first().map_or(site.at, |around| around.at);
        if stays {
            first_copy.get_or_insert(top);
        }
        for (name, at, how) in site.stmt.uses(&program.terms) {
            match how {
                Use::Exchange => exchanges += usize::from([kept, gone].contains(&name)),
                Use::Write if name == gone && !stays => writes.push((site, at)),
                Use::Read if name == kept && !stays => reads.push((site, at)),
                Use::Write if name == gone => {}
                Use::Read if name == kept => {}
                // A state inside has been updated here.
                Use::Write | Use::Combine(_) if name == kept => last_change = top + 1,
                _ if [kept, gone].contains(&name) => return Ok(None),
                _ => {}
            }
        }
    }
    let is_copied_last = writes.is_empty() && first_copy.is_some_and(|copy| copy >= last_change);
    if exchanges != 2 || (last_change > 0 && !is_copied_last) || writes.len() * reads.len() > MOST_PAIRS {
        return Ok(None);
    }
    let mut facts = Facts::new();
    program.facts.iter().for_each(|fact| facts.assume(fact.clone()));
    for (name, range) in iteration.loops() {
        facts.assume(within(name, range)?);
    }
    for cond in iteration.conds() {
        facts.assume(cond?);
    }
    facts.assume(within(*index, range)?);
    let order = Order { facts, private: declared(body) };
    let mut late = Vec::new();
    for read in &reads {
        for write in &writes {
            if !order.never_later(*write, *read)? {
                late.push((read.0.clone(), read.1));
                break;
            }
        }
    }
    Ok(Some(late))
}

/// Whether a statement only gives an element of the next state the value that it has.
fn stays(program: &LoopProgram, stmt: &Stmt, (kept, gone): (Name, Name)) -> bool {
    let Stmt::Assign { target: Target::Element(to, at), op: None, value } = stmt else { return false };
    *to == gone && as_element(&program.terms, *value).is_some_and(|(from, _, read)| from == kept && read == at.as_ref())
}

/// An access, and where it stands.
type Access<'a> = (&'a Site<'a>, &'a [Ix]);

struct Order {
    /// What is known around a step.
    facts: Facts,
    /// What a step declares.
    private: HashSet<Name>,
}

impl Order {
    /// Whether no read comes later in a step than a write of the same element, in whatever order loops around both run.
    fn never_later(&self, write: Access<'_>, read: Access<'_>) -> Result<bool, IxError> {
        let (around, others) = (&write.0.around, &read.0.around);
        let same = |(a, b): &(&Around<'_>, &Around<'_>)| a.at == b.at && a.block == b.block;
        let depth = around.iter().zip(others).take_while(same).count();
        let place = |site: &Site<'_>| site.around.get(depth).map_or(site.at, |around| around.at);
        let common: Vec<Name> = around[..depth]
            .iter()
            .filter_map(|around| match around.stmt {
                Stmt::For { index, .. } => Some(*index),
                _ => None,
            })
            .collect();
        // In the same iteration of the loops around both, and in another one of each of them.
        let mut cases = Vec::new();
        if place(write.0) < place(read.0) {
            cases.push(self.equal(&common)?);
        }
        for (at, index) in common.iter().enumerate() {
            // Nor in a later one, so that threads and lanes can share the loop.
            let (one, other) = (Ix::var(first(*index)), Ix::var(second(*index)));
            for order in [Cond::lt(&one, &other)?, Cond::lt(&other, &one)?] {
                cases.push(self.equal(&common[..at])?.and(order));
            }
        }
        let mut facts = self.facts.clone();
        for (site, copy) in [(write.0, first as fn(Name) -> Name), (read.0, second)] {
            for (index, range) in site.loops() {
                let range = Range { lo: self.copied(&range.lo, copy)?, hi: self.copied(&range.hi, copy)? };
                facts.assume(within(copy(index), &range)?);
            }
            for cond in site.conds() {
                facts.assume(cond?.substitute(&self.renamed(copy))?);
            }
        }
        let mut differs = Cond::never();
        for (a, b) in write.1.iter().zip(read.1) {
            differs = differs.or(Cond::eq(&self.copied(a, first)?, &self.copied(b, second)?)?.not()?);
        }
        for case in cases {
            if facts.prove(&case.not()?.or(differs.clone())) != Verdict::Yes {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn equal(&self, indices: &[Name]) -> Result<Cond, IxError> {
        indices.iter().try_fold(Cond::always(), |all, index| {
            Ok(all.and(Cond::eq(&Ix::var(first(*index)), &Ix::var(second(*index)))?))
        })
    }

    fn renamed(&self, copy: fn(Name) -> Name) -> impl Fn(Name) -> Option<Ix> {
        move |name| self.private.contains(&name).then(|| Ix::var(copy(name)))
    }

    fn copied(&self, ix: &Ix, copy: fn(Name) -> Name) -> Result<Ix, IxError> {
        ix.substitute(&self.renamed(copy))
    }
}

/// The copies of an index for the write and for the read. No name that is written has such a sign in it.
fn first(name: Name) -> Name {
    Name::new(&format!("{name}'"))
}

fn second(name: Name) -> Name {
    Name::new(&format!("{name}''"))
}

/// The state of an outer iteration, in whose body another state begins as a copy of it and is copied to the next one at the end,
/// and that other state: nothing else in the body uses the outer one.
fn passed_on(program: &LoopProgram, body: &[Stmt], outer: impl Fn(Name) -> Option<TensorType>) -> Option<(Name, Name)> {
    let copies: Vec<(usize, (Name, Name))> =
        body.iter().enumerate().filter_map(|(at, stmt)| Some((at, copy(program, stmt)?))).collect();
    let ty = |name: Name| {
        body.iter().find_map(|stmt| match stmt {
            Stmt::Alloc(found, ty) if *found == name => Some(ty),
            _ => None,
        })
    };
    body.iter().find_map(|stmt| {
        let Stmt::Swap(kept, next) = stmt else { return None };
        let (begin, (inner, _)) = *copies.iter().find(|(_, (_, from))| from == kept)?;
        let (end, _) = *copies.iter().find(|(_, pair)| *pair == (*next, inner))?;
        let uses = |name: Name| {
            let all = body.iter().enumerate().flat_map(|(at, stmt)| {
                let own = statements(std::slice::from_ref(stmt)).flat_map(|stmt| stmt.uses(&program.terms));
                own.filter(move |(used, ..)| *used == name).map(move |(.., how)| (at, how)).collect::<Vec<_>>()
            });
            all.collect::<Vec<_>>()
        };
        let is_used_once = |name: Name| uses(name).iter().filter(|(_, how)| *how != Use::Exchange).count() == 1;
        let is_between = uses(inner).iter().all(|(at, how)| (begin..=end).contains(at) && *how != Use::Exchange);
        (ty(inner) == outer(*kept).as_ref() && is_between && is_used_once(*kept) && is_used_once(*next))
            .then_some((*kept, inner))
    })
}

/// A loop that copies a whole buffer: to which, and from which.
fn copy(program: &LoopProgram, stmt: &Stmt) -> Option<(Name, Name)> {
    let (mut own, mut inner) = (Vec::new(), std::slice::from_ref(stmt));
    while let [Stmt::For { index, range, body, .. }] = inner {
        own.push((Ix::var(*index), range));
        inner = body;
    }
    let [Stmt::Assign { target: Target::Element(to, at), op: None, value }] = inner else { return None };
    let (from, ty, read) = as_element(&program.terms, *value)?;
    let is_whole =
        own.len() == ty.shape.len()
            && own.iter().zip(ty.shape.iter()).zip(at).all(|(((index, range), size), ix)| {
                ix == index && range.lo.as_constant() == Some(0) && range.hi == *size
            });
    (is_whole && read == at.as_ref()).then_some((*to, from))
}
