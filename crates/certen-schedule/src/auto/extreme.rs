//! The least and the greatest of many elements.
//!
//! One comparison after the other waits for the one before. So they are made in lanes, and in blocks for threads where there is one result.
//!
//! Applies: to nests with one minimum or maximum over a loop along memory, whose first element lowering has taken out of the loop. Cost:
//! none beside that of the loops as they are.

use certen_core::ReduceOp;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Target, Use};
use certen_syntax::Name;

use super::steps::Steps;
use super::sum::{is_along, mentions, size};
use super::{Form, Machine, Planned, outside};

/// As many as stay in registers: a comparison that keeps NaN takes several operations, one after the other.
const LANES: i64 = 32;

/// The steps for a nest with these statements.
pub(super) fn plan(
    program: &LoopProgram,
    nest: Name,
    sites: &[Site<'_>],
    machine: &Machine,
    _: FpMode,
) -> Option<Planned> {
    let is_combined = |site: &&Site<'_>| {
        matches!(site.stmt, Stmt::Assign { target: Target::Local(_), op: Some(ReduceOp::Min | ReduceOp::Max), .. })
    };
    let mut found = sites.iter().filter(is_combined);
    let (site, None) = (found.next()?, found.next()) else { return None };
    let (own, range) = site.loops().last()?;
    let outer = site.loops().skip(outside(sites)).map(|(index, _)| index).filter(|index| *index != own);
    let outer: Vec<Name> = outer.collect();
    let elem = program.terms.ty(site.stmt.value()?).elem;
    let reads = site.stmt.uses(&program.terms);
    let mut reads = reads.iter().filter(|(_, at, how)| *how == Use::Read && mentions(at, own)).peekable();
    reads.peek()?;
    let is_short = size(range).is_some_and(|last| last <= LANES);
    // Another loop inside or beside, but for that of the first element, is another kind of nest.
    let loops = sites.iter().filter(|site| matches!(site.stmt, Stmt::For { .. })).count();
    if !elem.is_float() || is_short || !reads.all(|(_, at, _)| is_along(at, own)) || loops != outer.len() + 2 {
        return None;
    }
    let mut steps = Steps::new(nest, machine);
    let path = format!("{own}#2");
    match outer.first() {
        None => steps.blocks(&path, LANES),
        Some(outer) => {
            steps.add(format!("vectorize({}, {LANES})", steps.path(&path)));
            steps.parallelize(&steps.path(outer));
        }
    }
    let why = format!("a least or greatest element over {own} along memory: in {LANES} lanes");
    Some(Planned { nest, with: Vec::new(), steps: steps.text(), why, form: Form::Nest })
}
