//! Elements that take many steps, each from the one before, as those of fractals do.
//!
//! A step waits for the last one, so that a single vector leaves most of the machine idle. The elements of some rows take their
//! steps together.
//!
//! Applies: to nests of at least two loops with a loop inside that carries locals from one step to the next and reads nothing new.
//! Cost: none beside that of the loops as they are.

use certen_loops::{FpMode, LoopProgram, Site, Stmt, Target, Use, statements};
use certen_syntax::Name;

use super::steps::Steps;
use super::sum::{mentions, size};
use super::{Form, Machine, Planned, outside};

/// The steps for a nest with these statements.
pub(super) fn plan(
    program: &LoopProgram,
    nest: Name,
    sites: &[Site<'_>],
    machine: &Machine,
    _: FpMode,
) -> Option<Planned> {
    let mut carrying = sites.iter().filter(|site| carries(program, site.stmt));
    let (site, None) = (carrying.next()?, carrying.next()) else { return None };
    let own: Vec<Name> = site.loops().skip(outside(sites)).map(|(index, _)| index).collect();
    let (outermost, row) = (*own.first()?, *own.get(own.len().checked_sub(2)?)?);
    // The locals of each row are in registers.
    let together = if machine.registers >= 32 { 4 } else { 2 };
    let (_, range) = site.loops().find(|(index, _)| *index == row)?;
    if size(range).is_some_and(|rows| rows < 2 * together) {
        return None;
    }
    let mut steps = Steps::new(nest, machine);
    steps.jam(sites, site, (outermost, row), together)?;
    let why = format!("steps that wait for each other: {together} rows of {row} take them together");
    Some(Planned { nest, with: Vec::new(), steps: steps.text(), why, form: Form::Nest })
}

/// Whether a statement is a loop that gives locals new values in each step, from what it does not read there.
fn carries(program: &LoopProgram, stmt: &Stmt) -> bool {
    let Stmt::For { index, body, .. } = stmt else { return false };
    let is_plain = |stmt: &Stmt| matches!(stmt, Stmt::Local { .. } | Stmt::Assign { target: Target::Local(_), .. });
    let carries = |stmt: &Stmt| matches!(stmt, Stmt::Assign { target: Target::Local(_), op: None, .. });
    let reads = |stmt: &Stmt| {
        let uses = stmt.uses(&program.terms);
        uses.iter().any(|(_, at, how)| *how == Use::Read && mentions(at, *index))
    };
    statements(body).all(|stmt| is_plain(stmt) && !reads(stmt)) && statements(body).any(carries)
}
