//! Tiles that stay in registers while their sum runs, whatever is done with them afterwards.
//!
//! C compilers keep a small array in registers if every access to it is a whole vector. One that is read in another way, element
//! by element or in shorter vectors, stays in memory, and each term of the sum is stored there. So a tile is copied in whole
//! vectors once its sum is made, and what reads it otherwise reads the copy:
//!
//! ```c
//! double acc_made[64];
//! for (int64_t at = 0; at < 64; at = at + CERTEN_LANES_8X8) {
//!     *(certen_f64x8_m *)&acc_made[at] = *(const certen_f64x8_m *)&acc[at];
//! }
//! ```
//!
//! Needs: nothing writes to the tile after it was copied. Guarantees: the same elements.

use std::collections::HashSet;

use certen_core::{Range, TensorType};
use certen_loops::{Mode, Stmt, Use, statements};
use certen_syntax::{Diagnostic, Name};

use super::vector::length;
use crate::emitter::{Emitter, VectorLoop};
use crate::helpers::Helper;
use crate::helpers::c_type;
use crate::helpers::vectors::LaneShape;

/// A larger buffer is no tile: registers do not hold it.
const MOST_BYTES: i64 = 2048;

impl<'a> Emitter<'a> {
    /// Copies the tiles of a block that one of its statements reads otherwise than they were made.
    pub(super) fn copy_tiles(&mut self, block: &'a [Stmt], at: usize) -> Result<(), Diagnostic> {
        let is_parallel = |stmt: &Stmt| matches!(stmt, Stmt::For { mode, .. } if mode.is_parallel());
        let is_loop = matches!(block[at], Stmt::For { .. } | Stmt::If { .. });
        if self.lanes.is_some() || !is_loop || statements(&block[at..=at]).any(is_parallel) {
            return Ok(());
        }
        let is_tile = |stmt: &&'a Stmt| match stmt {
            Stmt::Alloc(name, ty) => {
                !ty.is_scalar() && small(ty).is_some() && !self.heap.contains_key(name) && !self.made.contains_key(name)
            }
            _ => false,
        };
        let tiles: Vec<Name> = block[..at].iter().filter(is_tile).filter_map(Stmt::declares).collect();
        if tiles.is_empty() {
            return Ok(());
        }
        let read = statements(&block[at..=at]).flat_map(|stmt| stmt.uses(&self.program.terms));
        let read: HashSet<Name> = read.filter(|(.., how)| *how == Use::Read).map(|(name, ..)| name).collect();
        for tile in tiles.into_iter().filter(|tile| read.contains(tile)) {
            if block[at..].iter().any(|stmt| self.uses(stmt, tile, |how| how != Use::Read)) {
                continue;
            }
            let Some((index, range, body)) = block[..at].iter().find_map(|stmt| sum_of(stmt, tile)) else { continue };
            let Some((lanes, shape)) = self.lanes_of(index, range, body) else { continue };
            if !self.is_read_whole(&block[at], tile, shape) {
                self.lanes = Some(VectorLoop { lanes, shape, accumulators: Default::default() });
                let done = self.copy_tile(tile, shape);
                self.lanes = None;
                done?;
            }
        }
        Ok(())
    }

    /// Copies a tile that was made in lanes of this shape.
    fn copy_tile(&mut self, tile: Name, shape: LaneShape) -> Result<(), Diagnostic> {
        let Some(ty) = self.types.get(&tile).copied() else { return Ok(()) };
        let Some(count) = small(ty).filter(|count| count % shape.most == 0) else { return Ok(()) };
        let (from, to, at) = (self.c_name(tile), self.names.numbered(&format!("{tile}_made")), self.own.at.clone());
        self.helper(Helper::Lanes(shape));
        self.line(&format!("{} {to}[{count}];", c_type(ty.elem)));
        self.line(&format!("CERTEN_UNROLL({})", count / (16 / ty.elem.bytes() as i64).min(shape.most)));
        self.line(&format!("for (int64_t {at} = 0; {at} < {count}; {at} = {at} + {}) {{", shape.lanes()));
        let value = self.loaded(&format!("{from}[{at}]"), ty.elem)?;
        let text = self.stored(&format!("{to}[{at}]"), ty.elem, &value)?;
        self.line(&format!("    {text}"));
        self.line("}");
        self.line(&format!("__asm__(\"\" : \"+m\"({to}));"));
        self.made.insert(tile, to);
        Ok(())
    }

    fn uses(&self, stmt: &Stmt, name: Name, is_wanted: impl Fn(Use) -> bool) -> bool {
        let mut all = statements(std::slice::from_ref(stmt));
        all.any(|stmt| stmt.uses(&self.program.terms).iter().any(|(used, _, how)| *used == name && is_wanted(*how)))
    }

    fn reads(&self, stmt: &Stmt, name: Name) -> bool {
        self.uses(stmt, name, |how| how == Use::Read)
    }

    /// Whether a statement reads a tile in whole vectors of this shape only.
    fn is_read_whole(&self, stmt: &'a Stmt, tile: Name, shape: LaneShape) -> bool {
        match stmt {
            Stmt::For { index, range, mode: Mode::Vector, body } => {
                let is_whole = length(range).is_some_and(|length| length % shape.most == 0);
                is_whole && self.lanes_of(*index, range, body).is_some_and(|(_, own)| own.most == shape.most)
            }
            Stmt::For { index, range, body, .. } => {
                self.turned(*index, range, body).is_none()
                    && body.iter().all(|stmt| self.is_read_whole(stmt, tile, shape))
            }
            Stmt::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).all(|stmt| self.is_read_whole(stmt, tile, shape))
            }
            Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Swap(..) => true,
            Stmt::Local { .. } | Stmt::Assign { .. } => !self.reads(stmt, tile),
        }
    }
}

/// How many elements a buffer has, if registers may hold it.
fn small(ty: &TensorType) -> Option<i64> {
    let mut sizes = ty.shape.iter().map(|size| size.as_constant());
    let count = sizes.try_fold(1i64, |product, size| product.checked_mul(size?))?;
    count.checked_mul(ty.elem.bytes() as i64).filter(|bytes| *bytes <= MOST_BYTES).map(|_| count)
}

/// The vector loop in which a loop adds to a tile: its index, its range and what it does.
fn sum_of(stmt: &Stmt, tile: Name) -> Option<(Name, &Range, &[Stmt])> {
    let Stmt::For { mode: Mode::Serial, body, .. } = stmt else { return None };
    let adds = |stmt: &Stmt| match stmt {
        Stmt::For { mode: Mode::Vector, body, .. } => {
            statements(body).filter_map(Stmt::element).any(|(to, _)| to == tile)
        }
        _ => false,
    };
    statements(body).filter(|stmt| adds(stmt)).find_map(|stmt| match stmt {
        Stmt::For { index, range, body, .. } => Some((*index, range, body.as_slice())),
        _ => None,
    })
}
