//! Two loops inside each other as one, over all pairs of their indices.

use certen_core::{Range, TypeError};
use certen_index::Ix;
use certen_loops::LoopProgram;
use certen_syntax::Name;

use crate::edit::Edit;
use crate::place::Loop;

/// The loop over an index that counts the iterations of both: the inner loop has a number of iterations above 0 and is the
/// whole body of the outer one. The new loop is serial.
pub(crate) fn collapsed(program: &mut LoopProgram, outer: &Loop, inner: &Loop, index: Name) -> Result<Loop, TypeError> {
    let trips = inner.trips().filter(|trips| *trips > 0);
    let trips = trips.ok_or_else(|| TypeError("the inner loop has no number of iterations".into()))?;
    let count = Ix::var(index);
    let (row, place) = (count.floor_div(trips)?, count.modulo(trips)?.add(&inner.range.lo)?);
    let edit = Edit { indices: [(outer.index, row), (inner.index, place)].into(), ..Edit::default() };
    let body = edit.block(program, &inner.body)?;
    let range = Range { lo: outer.range.lo.scale(trips)?, hi: outer.range.hi.scale(trips)? };
    Ok(Loop { mode: certen_loops::Mode::Serial, index, range, body })
}
