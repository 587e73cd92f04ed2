//! Contractions in which every element of the largest operand is used once: matrix times vector, dot products.
//!
//! They wait for memory, so the operand is to be read as it lies there, a few rows at a time. Two forms:
//!
//! - The sum runs along memory, `result[r] = Σ_k A[r, k] * x[k]`: the sum is made in lanes, a number of them that is fixed
//!   for each element type, so that the bits do not depend on the machine. Some rows are taken together, for which `x` is
//!   loaded once.
//! - The result does, `result[v] = Σ_k x[k] * B[k, v]`: a block of the result stays in the first cache while the rows of
//!   B are added to it, some of them together. The terms are added in the order of the program.
//!
//! Applies: to sums of products without a dimension of rows ([`contraction`](super::contraction)). Cost: the bytes of the
//! operands, each once.

use certen_index::Ix;
use certen_loops::FpMode;
use certen_syntax::Name;

use super::steps::joined;
use super::sum::{SumNest, mentions, size};
use super::{LAST, Machine, Planned, Proposal};

/// Bytes of the lanes in which a sum is made: two of the longest vectors.
pub(super) const LANE_BYTES: i64 = 128;

/// Elements of the result that stay in the first cache: at most, and if their number is not known.
const MOST_COLUMNS: i64 = 2048;
const SOME_COLUMNS: i64 = 1024;

/// How many rows are added to the result together.
const ROWS: i64 = 8;

pub(super) fn proposals(found: &SumNest<'_>, machine: &Machine) -> Vec<Proposal> {
    // In a stencil, neighbours use the same elements.
    let is_plain = |ix: &Ix| ix.as_var().is_some() || !found.loops().any(|index| ix.mentions(index));
    let is_stencil = found.reads.iter().any(|(_, at)| !at.iter().all(is_plain));
    if !found.elem.is_float() || found.has_rows() || is_stencil {
        return Vec::new();
    }
    let plans = found.along_sum(machine).into_iter().chain(found.along_result(machine));
    plans.map(|plan| Proposal { plan, cost: LAST }).collect()
}

impl SumNest<'_> {
    /// A sum in lanes.
    fn along_sum(&self, machine: &Machine) -> Option<Planned> {
        let (k, range) = *self.summed.last()?;
        let lanes = LANE_BYTES / self.elem.bytes() as i64;
        let mut read = self.reads.iter().filter(|(_, at)| mentions(at, k)).peekable();
        read.peek()?;
        let is_along = |at: &[Ix]| at.last() == Some(&Ix::var(k)) && !mentions(&at[..at.len() - 1], k);
        if self.fp != FpMode::Relaxed || !read.all(|(_, at)| is_along(at)) {
            return None;
        }
        let mut steps = self.steps(machine);
        if size(range).is_some_and(|terms| terms < lanes) {
            let why = format!("a sum over {k} along memory, with fewer terms than lanes");
            return Some(self.planned(steps, why));
        }
        if self.free.is_empty() && self.summed.len() == 1 {
            steps.blocks(&k.to_string(), lanes);
            let why = format!(
                "a sum over {k} along memory: in blocks for threads, and in {lanes} lanes, whatever the machine has"
            );
            return Some(self.planned(steps, why));
        }
        steps.add(format!("vectorize({}, {lanes})", steps.path(k)));
        if let Some((outer, _)) = self.free.first() {
            steps.parallelize(&steps.path(outer));
        }
        let together = if machine.registers >= 32 { 8 } else { 2 };
        if let Some((row, _)) = self.free.last().filter(|(_, range)| size(range).is_none_or(|rows| rows >= together)) {
            steps.add(format!("unroll_and_jam({}, {together})", steps.path(row)));
        }
        let why = format!("a sum over {k} along memory: in {lanes} lanes, whatever the machine has");
        Some(self.planned(steps, why))
    }

    /// A block of the result to which rows are added.
    fn along_result(&self, machine: &Machine) -> Option<Planned> {
        let v = self.lanes?;
        let is_along = |at: &[Ix]| at.last() == Some(&Ix::var(v)) && !mentions(&at[..at.len() - 1], v);
        let mut panels = self.panels().peekable();
        panels.peek()?;
        if !panels.all(|(_, at)| is_along(at)) {
            return None;
        }
        let (_, range) = self.free.iter().find(|(index, _)| *index == v)?;
        let columns = match size(range) {
            columns if self.is_short() || columns.is_some_and(|columns| columns < 64) => {
                let why = format!("a sum of rows of {v}, which are few or short");
                return Some(self.planned(self.steps(machine), why));
            }
            // Two blocks or more, for threads.
            Some(columns) => ((columns / 2 + 63) / 64 * 64).clamp(512, MOST_COLUMNS),
            None => SOME_COLUMNS,
        };
        let mut steps = self.steps(machine);
        let others: Vec<Name> = self.free.iter().map(|(index, _)| *index).filter(|index| *index != v).collect();
        steps.reorder(&self.free, &[others.as_slice(), &[v]].concat());
        steps.add(format!("split({}, {columns})", steps.path(v)));
        let inside: Vec<String> =
            self.summed.iter().map(|(index, _)| steps.path(index)).chain([steps.path(format!("{v}.i"))]).collect();
        steps.add(format!("reorder([{}])", inside.join(", ")));
        let (k, _) = self.summed.last()?;
        steps.add(format!("unroll_and_jam({}, {ROWS})", steps.path(k)));
        steps.parallelize(&steps.path(others.first().map_or(format!("{v}.o"), Name::to_string)));
        let over: Vec<Name> = self.summed.iter().map(|(index, _)| *index).collect();
        let why = format!(
            "a sum over {} of rows of {v}: {columns} elements of the result stay in the first cache",
            joined(&over)
        );
        Some(self.planned(steps, why))
    }
}
