//! Stencils: elements made of neighbours, some of which lie in other rows.
//!
//! Neighbouring rows of the result read the same elements, and often make the same operations with them. Some rows are computed
//! together, so that what they have in common is loaded, and computed, once.
//!
//! Applies: to nests without sums, to the loops inside a border if it has one, where at least a quarter of what an iteration reads,
//! in a loop over time half of it, is read by the next iterations of a loop around the lanes too. Cost: none beside that of the loops
//! as they are. The operations on the way to an element stay as they are.

use certen_core::Range;
use certen_index::Ix;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Target, Use};
use certen_syntax::Name;

use super::steps::Steps;
use super::sum::{is_along, mentions, size};
use super::{Form, Machine, Planned, outside};

/// How many rows are computed together.
const ROWS: i64 = 4;

/// More vectors than this are not read for a row: their addresses alone would fill the registers.
const MOST_READ: usize = 32;

/// The steps for a nest with these statements.
pub(super) fn plan(
    program: &LoopProgram,
    nest: Name,
    sites: &[Site<'_>],
    machine: &Machine,
    _: FpMode,
) -> Option<Planned> {
    let outside = outside(sites);
    let stores = sites.iter().filter(|site| matches!(site.stmt, Stmt::Assign { .. }));
    // That of the inside, where borders are apart.
    let read = stores.map(|store| (store, reads(program, sites, store)));
    let (store, reads) = read.max_by_key(|(_, reads)| reads.len())?;
    let Stmt::Assign { target: Target::Element(_, at), op: None, .. } = store.stmt else { return None };
    let own: Vec<(Name, &Range)> = store.loops().skip(outside).collect();
    if store.around.len() != outside + own.len() {
        return None;
    }
    let ((lanes, _), rows) = own.split_last()?;
    let elem = program.terms.ty(store.stmt.value()?).elem;
    if !is_along(at, *lanes) || !elem.is_float() || reads.len() > MOST_READ {
        return None;
    }
    let common = |row: Name| {
        let is_next = |(name, at): &&(Name, &[Ix])| {
            (1..ROWS).any(|ahead| {
                let shifted = at
                    .iter()
                    .map(|ix| ix.substitute(&|name| (name == row).then(|| Ix::var(row).add(&Ix::from(ahead)).ok())?));
                let Ok(shifted) = shifted.collect::<Result<Vec<Ix>, _>>() else { return false };
                mentions(at, row) && reads.iter().any(|(other, at)| other == name && *at == shifted.as_slice())
            })
        };
        reads.iter().filter(is_next).count()
    };
    let rows = rows.iter().filter(|(_, range)| size(range).is_none_or(|rows| rows >= 2 * ROWS));
    let (row, shared) = rows.map(|(row, _)| (*row, common(*row))).max_by_key(|(_, shared)| *shared)?;
    // States change places: C compilers do not see that what is stored in one row is not read in the next.
    let wanted = if outside == 0 { reads.len().div_ceil(4) } else { reads.len().div_ceil(2) };
    if shared < wanted || shared == 0 {
        return None;
    }
    let mut steps = Steps::new(nest, machine);
    let (outermost, _) = own.first()?;
    steps.jam(sites, store, (*outermost, row), ROWS)?;
    let why =
        format!("a stencil: {ROWS} rows of {row} are computed together, {shared} of {} reads are common", reads.len());
    Some(Planned { nest, with: Vec::new(), steps: steps.text(), why, form: Form::Nest })
}

/// What a store reads in an iteration, also by way of locals beside it.
fn reads<'a>(program: &'a LoopProgram, sites: &'a [Site<'a>], store: &Site<'a>) -> Vec<(Name, &'a [Ix])> {
    let is_beside = |site: &&Site<'a>| match (site.around.last(), store.around.last()) {
        (Some(one), Some(other)) => std::ptr::eq(one.stmt, other.stmt) && one.block == other.block,
        (one, other) => one.is_none() && other.is_none(),
    };
    let mut reads = Vec::new();
    for (name, at, how) in sites.iter().filter(is_beside).flat_map(|site| site.stmt.uses(&program.terms)) {
        if how == Use::Read && !at.is_empty() && !reads.contains(&(name, at)) {
            reads.push((name, at));
        }
    }
    reads
}
