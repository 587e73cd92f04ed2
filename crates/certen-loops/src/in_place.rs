//! States of iterations that are updated in place.
//!
//! Lowering keeps each state twice: a step computes the next one from the present one, then they change places. Where no step reads
//! an element after it has stored the next value of that element, one buffer serves for both, and what only stays as it is need not
//! be copied: a step of LU touches what it changes, not the matrix.
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

/// More pairs of accesses are not compared.
const MOST_PAIRS: usize = 256;

/// Updates states in place, the innermost iterations first.
pub fn in_place(mut program: LoopProgram) -> LoopProgram {
    // Each round takes a buffer away.
    while let Some((kept, gone, ty)) = found(&program) {
        let before = program.clone();
        merge(&mut program.body, kept, gone);
        let renaming = Renaming::from([(gone, (kept, ty))]);
        if rename(&mut program, &renaming).is_err() {
            return before;
        }
    }
    program
}

/// Two buffers of which one can stand for both, with their type.
fn found(program: &LoopProgram) -> Option<(Name, Name, TensorType)> {
    let all = sites(&program.body);
    let types = &|name: Name| {
        all.iter().find_map(|site| match site.stmt {
            Stmt::Alloc(found, ty) if *found == name => Some(ty.clone()),
            _ => None,
        })
    };
    // The innermost come last.
    let loops = all.iter().filter(|site| matches!(site.stmt, Stmt::For { mode: Mode::Serial, .. }));
    let mut loops: Vec<&Site<'_>> = loops.collect();
    loops.sort_by_key(|site| std::cmp::Reverse(site.around.len()));
    for site in loops {
        let Stmt::For { body, .. } = site.stmt else { continue };
        if let Some((kept, gone)) = passed_on(program, body, types) {
            return Some((kept, gone, types(kept)?));
        }
        for stmt in body {
            let Stmt::Swap(kept, gone) = stmt else { continue };
            if updates(program, site, (*kept, *gone)).unwrap_or(false) {
                return Some((*kept, *gone, types(*kept)?));
            }
        }
    }
    None
}

/// Takes away the buffer that is gone, and the exchange.
fn merge(block: &mut Vec<Stmt>, kept: Name, gone: Name) {
    block.retain(|stmt| match stmt {
        Stmt::Alloc(name, _) | Stmt::Free(name) => *name != gone,
        Stmt::Swap(a, b) => ![(*a, *b), (*b, *a)].contains(&(kept, gone)),
        _ => true,
    });
    for stmt in block {
        stmt.blocks_mut().for_each(|block| merge(block, kept, gone));
    }
}

/// Whether the next state can be stored where the present one is: no step reads what it has replaced.
fn updates(program: &LoopProgram, iteration: &Site<'_>, (kept, gone): (Name, Name)) -> Result<bool, IxError> {
    let Stmt::For { index, range, body, .. } = iteration.stmt else { return Ok(false) };
    let outside = sites(&program.body);
    let is_its_own = outside.iter().all(|site| {
        let is_inside = site.around.iter().any(|around| std::ptr::eq(around.stmt, iteration.stmt));
        is_inside || site.stmt.uses(&program.terms).iter().all(|(name, ..)| *name != gone)
    });
    if !is_its_own {
        return Ok(false);
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
                _ if [kept, gone].contains(&name) => return Ok(false),
                _ => {}
            }
        }
    }
    let is_copied_last = writes.is_empty() && first_copy.is_some_and(|copy| copy >= last_change);
    if exchanges != 2 || (last_change > 0 && !is_copied_last) || writes.len() * reads.len() > MOST_PAIRS {
        return Ok(false);
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
    for write in &writes {
        for read in &reads {
            if !order.never_later(*write, *read)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
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
