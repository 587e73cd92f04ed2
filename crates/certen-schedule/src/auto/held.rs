//! Elements to which each iteration of a loop adds something that takes several operations, as the forces of bodies on each other.
//!
//! `{ [i] -> sum({ [j] -> f(x[j] - x[i]) }, axis = 0) }` adds a small vector to `result[i]` for each `j`. As written, its elements
//! are loaded and stored in every iteration. Instead each lane has an `i` of its own, and the elements of the result that
//! belong to it stay in registers while the loop over `j` runs. No operation changes, nor the order of any two on the way to an
//! element.
//!
//! Applies: to nests in which one loop adds to elements of which it has no part in the indices, at most [`MOST_HELD`] for an
//! iteration of the loop around, which has lanes then: what it reads lies side by side or nearly so. Cost: none beside that of the
//! loops as they are.

use certen_core::TensorType;
use certen_loops::{FpMode, Lanes, LoopProgram, Mode, Site, Stmt, Target, sites};
use certen_syntax::Name;

use super::steps::{Steps, called};
use super::sum::{mentions, size};
use super::thin::LANE_BYTES;
use super::{Form, Machine, Planned, outside, steps_of};
use crate::apply::tried;

/// So many elements are held by a lane, beside what it computes with.
const MOST_HELD: i64 = 8;

/// The steps for a nest with these statements.
pub(super) fn plan(
    program: &LoopProgram,
    nest: Name,
    sites: &[Site<'_>],
    machine: &Machine,
    fp: FpMode,
) -> Option<Planned> {
    let adds = |site: &&Site<'_>| matches!(site.stmt, Stmt::Assign { target: Target::Element(..), op: Some(_), .. });
    let mut all = sites.iter().filter(adds);
    let site = all.next()?;
    let (result, at) = site.stmt.element()?;
    let elem = program.terms.ty(site.stmt.value()?).elem;
    // The loops around what is added: those of the result, that of the sum, short ones over the elements that are held.
    let loops: Vec<_> = site.loops().skip(outside(sites)).collect();
    let sum = loops.iter().position(|(index, _)| !mentions(at, *index))?;
    let (own, inner) = (&loops[..sum], &loops[sum + 1..]);
    let held = inner.iter().try_fold(1i64, |held, (index, range)| {
        let is_own = mentions(at, *index) && range.lo.as_constant() == Some(0);
        held.checked_mul(size(range).filter(|_| is_own)?)
    })?;
    let (lane, range) = *own.last()?;
    let lanes = LANE_BYTES / elem.bytes() as i64;
    let is_short = size(range).is_some_and(|trips| trips < lanes);
    if held > MOST_HELD
        || is_short
        || !elem.is_float()
        || all.any(|other| other.stmt.element().is_none_or(|(to, _)| to != result))
    {
        return None;
    }
    let mut steps = Steps::new(nest, machine);
    let summed = called(sites, site, loops[sum].0)?;
    steps.add(format!("registers({result}, {})", steps.path(summed)));
    steps.add(format!("vectorize({}, {lanes})", steps.path(called(sites, site, lane)?)));
    let (outermost, _) = *own.first()?;
    let outermost = if outermost == lane { format!("{lane}.o") } else { called(sites, site, outermost)? };
    steps.parallelize(&steps.path(outermost));
    let text = steps.text();
    has_lanes(program, nest, &text, fp).then_some(())?;
    let why = format!(
        "{held} elements for each {lane} stay in registers while {} runs, {lanes} lanes of {lane}",
        loops[sum].0
    );
    Some(Planned { nest, with: Vec::new(), steps: text, why, form: Form::Nest })
}

/// Whether all vector loops that steps make of a nest can be printed as vectors.
fn has_lanes(program: &LoopProgram, nest: Name, text: &str, fp: FpMode) -> bool {
    let Some(made) = steps_of(text).and_then(|steps| tried(program, &steps, fp)).map(|made| made.program) else {
        return false;
    };
    let all = sites(&made.body);
    let ty = |name: Name| -> Option<&TensorType> {
        let given = made.given().find(|(given, _)| *given == name).map(|(_, ty)| ty);
        given.or_else(|| {
            all.iter().find_map(|site| match site.stmt {
                Stmt::Alloc(buffer, ty) if *buffer == name => Some(ty),
                _ => None,
            })
        })
    };
    let mut vectors = all.iter().filter(|site| site.nest == Some(nest)).filter_map(|site| match site.stmt {
        Stmt::For { index, mode: Mode::Vector | Mode::ParallelVector, body, .. } => Some((*index, body)),
        _ => None,
    });
    vectors.all(|(index, body)| Lanes::of(&made.terms, ty, index, body).is_some())
}
