//! Contractions with a register tile: `result[…, r, v] = Σ_k A[…, r, k] * B[…, k, v]`, whatever the order of dimensions.
//!
//! The loops around the sum are told apart by which operands have their index (Goto and van de Geijn; TBLIS): `v` is the last dimension of the result, the lanes; `r` is another dimension of the result that the
//! operands with `v` lack, so that a vector of them is used for several rows. A tile of rows and vectors stays in
//! registers while the sum runs. The panel of the operand with `v` that a column of tiles needs is packed, once for all rows:
//! it is dense then, and the strides of the caller's array no longer matter.
//!
//! Lanes need no step: vectors are made of the loops over `v` that nobody touches afterwards.
//!
//! Applies: to nests with one sum, over one loop or several, whose result has `v` as its last index, and nothing but its
//! loops around the sum. Cost: the tile loads (rows + vectors) for rows * vectors fused operations; packing moves each element of the
//! panel once for each `others` iteration. Elements that fill no tile stay as they were.

use certen_core::{ElemType, Range, ReduceOp, Term};
use certen_index::Ix;
use certen_loops::{FpMode, LoopProgram, Site, Stmt, Target, Use};
use certen_syntax::Name;

use super::{Machine, Planned};

/// Sums of fewer terms are not worth a tile.
const SHORT: i64 = 4;

/// The most lanes that a loop can have.
const MOST_LANES: i64 = 64;

/// A nest that sums products.
struct Contraction<'a> {
    /// The loops of the result, outermost first.
    free: Vec<(Name, &'a Range)>,
    /// The loops of the sum.
    summed: Vec<(Name, &'a Range)>,
    /// What is read in the sum.
    reads: Vec<(Name, &'a [Ix])>,
    /// The dimension of the lanes.
    lanes: Name,
    elem: ElemType,
}

/// Tiles of registers, with the panel packed or not.
pub(super) fn proposals(
    program: &LoopProgram,
    nest: Name,
    sites: &[Site<'_>],
    machine: &Machine,
    fp: FpMode,
) -> Vec<Planned> {
    let Some(found) = Contraction::of(program, sites) else { return Vec::new() };
    [true, false].into_iter().filter_map(|packed| found.tiled(nest, machine, fp, packed)).collect()
}

impl<'a> Contraction<'a> {
    fn of(program: &'a LoopProgram, sites: &[Site<'a>]) -> Option<Contraction<'a>> {
        if sites.iter().any(|site| matches!(site.stmt, Stmt::If { .. } | Stmt::Alloc(..) | Stmt::Swap(..))) {
            return None;
        }
        let mut stores = sites.iter().filter(|site| site.stmt.element().is_some());
        let (store, None) = (stores.next()?, stores.next()) else { return None };
        let (_, at) = store.stmt.element()?;
        // Of sums inside each other, those around the innermost one add nothing but its result.
        let is_result = |value| matches!(program.terms.get(value), Term::Ref(_, ty) if ty.is_scalar());
        let mut sums = sites.iter().filter(|site| match site.stmt {
            Stmt::Assign { target: Target::Local(_), value, .. } => !is_result(*value),
            _ => false,
        });
        let (sum, None) = (sums.next()?, sums.next()) else { return None };
        let Stmt::Assign { op: Some(ReduceOp::Sum), .. } = sum.stmt else { return None };
        let free: Vec<(Name, &Range)> = store.loops().collect();
        let summed: Vec<(Name, &Range)> = sum.loops().skip(free.len()).collect();
        let begins_at_0 = |(_, range): &(Name, &Range)| range.lo.as_constant() == Some(0);
        if !free.iter().chain(&summed).all(begins_at_0) {
            return None;
        }
        if size(summed.last()?.1).is_some_and(|terms| terms < SHORT) {
            return None;
        }
        let lanes = free.iter().map(|(index, _)| *index).find(|index| at.last() == Some(&Ix::var(*index)))?;
        let elem = program.terms.ty(sum.stmt.value()?).elem;
        let uses = sum.stmt.uses(&program.terms);
        let reads = uses.into_iter().filter(|(_, indices, how)| *how == Use::Read && !indices.is_empty());
        let reads = reads.map(|(name, indices, _)| (name, indices)).collect();
        Some(Contraction { free, summed, reads, lanes, elem })
    }

    /// Whether the sum runs over an operand.
    fn is_summed(&self, at: &[Ix]) -> bool {
        self.summed.iter().any(|(index, _)| mentions(at, *index))
    }

    /// The operands of the lanes that the sum runs over.
    fn panels(&self) -> impl Iterator<Item = &(Name, &'a [Ix])> {
        self.reads.iter().filter(|(_, at)| mentions(at, self.lanes) && self.is_summed(at))
    }

    fn tiled(&self, nest: Name, machine: &Machine, fp: FpMode, packed: bool) -> Option<Planned> {
        let is_row = |(index, _): &&(Name, &Range)| {
            *index != self.lanes
                && self.panels().all(|(_, at)| !mentions(at, *index))
                && self.reads.iter().any(|(_, at)| mentions(at, *index) && self.is_summed(at))
        };
        let (row, row_range) = self.free.iter().rev().find(is_row)?;
        let (_, lane_range) = self.free.iter().find(|(index, _)| *index == self.lanes)?;
        // Only what the innermost sum runs over is used often enough.
        let (innermost, _) = self.summed.last()?;
        let panels: Vec<_> = self.panels().filter(|(_, at)| mentions(at, *innermost)).collect();
        let (rows, columns) = self.tile(machine, size(row_range), size(lane_range))?;
        let others: Vec<Name> =
            self.free.iter().map(|(index, _)| *index).filter(|index| index != row && *index != self.lanes).collect();
        let path = |index: Name, part: &str| format!("{nest}.{index}{part}");
        let mut steps = Vec::new();
        let wanted: Vec<Name> = others.iter().copied().chain([*row, self.lanes]).collect();
        if wanted.iter().ne(self.free.iter().map(|(index, _)| index)) {
            let list: Vec<String> = wanted.iter().map(|index| path(*index, "")).collect();
            steps.push(format!("reorder([{}])", list.join(", ")));
        }
        let (r, v) = (*row, self.lanes);
        steps.push(format!("tile([{}, {}], [{rows}, {columns}])", path(r, ""), path(v, "")));
        for (index, range, block) in [(r, row_range, rows), (v, lane_range, columns)] {
            if size(range).is_none_or(|size| size % block != 0) {
                steps.push(format!("peel({}, tail)", path(index, ".o")));
            }
        }
        let mut inside: Vec<String> = self.summed.iter().map(|(index, _)| path(*index, "")).collect();
        inside.extend([path(r, ".i"), path(v, ".i")]);
        steps.push(format!("reorder([{}])", inside.join(", ")));
        steps.push(format!("interchange({}, {})", path(r, ".o"), path(v, ".o")));
        if packed {
            for panel in &panels {
                steps.push(pack(panel, v, &path(v, ".o"))?);
            }
        }
        steps.push(format!("parallelize({})", others.first().map_or(path(v, ".o"), |outer| path(*outer, ""))));
        if fp == FpMode::Relaxed && self.elem.is_float() {
            steps.push(format!("fma({nest})"));
        }
        let names = |names: Vec<String>| names.join(" and ");
        let over = names(self.summed.iter().map(|(index, _)| index.to_string()).collect());
        let how = match packed && !panels.is_empty() {
            true => format!(", panels of {} packed", names(panels.iter().map(|(name, _)| name.to_string()).collect())),
            false => String::new(),
        };
        let why = format!(
            "a contraction over {over}: {columns} lanes of {v} for {rows} rows of {r} stay in registers while it runs{how}"
        );
        Some(Planned { nest, steps: steps.join(";\n") + ";\n", why })
    }

    /// The rows and columns of a tile: accumulators, one vector of each column and a broadcast fit in the registers.
    fn tile(&self, machine: &Machine, rows: Option<i64>, columns: Option<i64>) -> Option<(i64, i64)> {
        let lanes = machine.vector_bytes / self.elem.bytes() as i64;
        let most = if machine.registers >= 32 { 4 } else { 2 };
        let vectors = (1..=most).rev().find(|vectors| {
            let wide = vectors * lanes;
            wide <= MOST_LANES && columns.is_none_or(|columns| columns >= wide)
        })?;
        let budget = if machine.registers >= 32 { machine.registers / 2 } else { machine.registers - vectors - 1 };
        let height = (budget / vectors).min(8).min(rows.unwrap_or(i64::MAX));
        (height >= 2).then_some((height, vectors * lanes))
    }
}

/// Packs the panel that a column of tiles needs: the dimension of the lanes last.
fn pack((panel, at): &(Name, &[Ix]), lanes: Name, column: &str) -> Option<String> {
    let mut with_lanes = at.iter().enumerate().filter(|(_, ix)| ix.mentions(lanes));
    let ((place, ix), None) = (with_lanes.next()?, with_lanes.next()) else { return None };
    if *ix != Ix::var(lanes) {
        return None;
    }
    if place == at.len() - 1 {
        return Some(format!("stage({panel}, {column})"));
    }
    let order: Vec<String> = (0..at.len()).filter(|d| *d != place).chain([place]).map(|d| d.to_string()).collect();
    Some(format!("stage({panel}, {column}, [{}])", order.join(", ")))
}

fn mentions(at: &[Ix], index: Name) -> bool {
    at.iter().any(|ix| ix.mentions(index))
}

/// The number of iterations of a loop from 0, if it is a number.
fn size(range: &Range) -> Option<i64> {
    range.hi.as_constant()
}
