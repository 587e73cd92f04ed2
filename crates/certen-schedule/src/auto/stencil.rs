//! Stencils: elements made of neighbours, some of which lie in other rows.
//!
//! Neighbouring rows of the result read the same elements, and often make the same operations with them. Some rows are computed
//! together, so that what they have in common is loaded, and computed, once.
//!
//! Applies: to nests of loops with nothing between them and no sum, where at least a quarter of what an iteration reads is read by
//! the next iterations of a loop around the lanes too. Cost: none beside that of the loops as they are. The operations on the way to
//! an element stay as they are.

use certen_core::Range;
use certen_index::Ix;
use certen_loops::{LoopProgram, Site, Stmt, Target, Use};
use certen_syntax::Name;

use super::steps::Steps;
use super::sum::{mentions, size};
use super::{Machine, Planned};

/// How many rows are computed together.
const ROWS: i64 = 4;

/// More vectors than this are not read for a row: their addresses alone would fill the registers.
const MOST_READ: usize = 32;

/// The steps for a nest with these statements.
pub(super) fn plan(program: &LoopProgram, nest: Name, sites: &[Site<'_>], machine: &Machine) -> Option<Planned> {
    let mut stores = sites.iter().filter(|site| matches!(site.stmt, Stmt::Assign { .. }));
    let (store, None) = (stores.next()?, stores.next()) else { return None };
    let Stmt::Assign { target: Target::Element(_, at), op: None, .. } = store.stmt else { return None };
    let own: Vec<(Name, &Range)> = store.loops().collect();
    let count = sites.iter().filter(|site| matches!(site.stmt, Stmt::For { .. } | Stmt::If { .. })).count();
    if count != own.len() || store.around.len() != own.len() {
        return None;
    }
    let ((lanes, _), rows) = own.split_last()?;
    let is_dense =
        at.last()?.linear_in(*lanes).is_some_and(|(step, _)| step == 1) && !mentions(&at[..at.len() - 1], *lanes);
    let mut reads: Vec<(Name, &[Ix])> = Vec::new();
    for (name, at, how) in sites.iter().flat_map(|site| site.stmt.uses(&program.terms)) {
        if how == Use::Read && !at.is_empty() && !reads.contains(&(name, at)) {
            reads.push((name, at));
        }
    }
    let elem = program.terms.ty(store.stmt.value()?).elem;
    if !is_dense || !elem.is_float() || reads.len() > MOST_READ {
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
    if shared * 4 < reads.len() || shared == 0 {
        return None;
    }
    let mut steps = Steps::new(nest, machine);
    steps.add(format!("unroll_and_jam({}, {ROWS})", steps.path(row)));
    let (outermost, _) = own.first()?;
    let outermost = if *outermost == row { format!("{row}.o") } else { outermost.to_string() };
    steps.parallelize(&steps.path(outermost));
    let why =
        format!("a stencil: {ROWS} rows of {row} are computed together, {shared} of {} reads are common", reads.len());
    Some(Planned { nest, with: Vec::new(), steps: steps.text(), why, separates: false })
}
