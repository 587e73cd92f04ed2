//! Copies that exchange two dimensions, in C.
//!
//! Two loops that copy elements, which lie side by side along one of them in the source and along the other in the target: panels
//! of products are packed so. Element by element, each is one load and one store. In squares, as many elements as a vector has
//! are loaded from each of as many rows, turned in registers, and stored:
//!
//! ```c
//! for (int64_t begin = 0; begin < 32; begin += 4) {
//!     const int64_t l = 0;
//!     const double *rows[4];
//!     for (int64_t j = begin; j < begin + 4; j++) rows[j - begin] = &B[j*111 + l];
//!     const int64_t j = begin;
//!     certen_turn_f64(rows, &packed[l*32 + j], 32, 111 - l);
//! }
//! ```
//!
//! Needs: both loops are rectangular, and source and target are different buffers. Guarantees: the same elements are read and
//! written, each once.

use certen_core::{ElemType, Range, TensorType};
use certen_index::Ix;
use certen_loops::{Mode, Stmt, Target, as_element};
use certen_syntax::{Diagnostic, Name};

use crate::emitter::Emitter;
use crate::helpers::{Helper, c_type, square};
use crate::index::too_large;
use crate::statements::vector::length;

/// A copy whose elements lie side by side along different loops.
pub(super) struct Turned<'a> {
    elem: ElemType,
    /// The loop along which the target lies, that of the source's rows.
    across: (Name, &'a Range),
    /// The loop along which the source lies.
    along: (Name, &'a Range),
    from: (Name, &'a [Ix]),
    to: (Name, &'a [Ix]),
    /// How many steps across fill squares, and whether all do.
    whole: i64,
    is_whole: bool,
    /// How far the target goes at a step along the source.
    stride: Ix,
    /// What the two loops do.
    body: &'a [Stmt],
}

impl<'a> Emitter<'a> {
    /// Such a copy, if a loop is one that has a square at least.
    pub(super) fn turned(&self, index: Name, range: &'a Range, body: &'a [Stmt]) -> Option<Turned<'a>> {
        let [Stmt::For { index: other, range: other_range, mode: Mode::Serial | Mode::Vector, body: copy }] = body
        else {
            return None;
        };
        let [Stmt::Assign { target: Target::Element(to, at), op: None, value }] = copy.as_slice() else { return None };
        let (from, ty, read) = as_element(&self.program.terms, *value)?;
        let is_rectangular = !other_range.lo.mentions(index) && !other_range.hi.mentions(index);
        if self.lanes.is_some() || from == *to || read.is_empty() || ty.elem.bytes() < 4 || !is_rectangular {
            return None;
        }
        let goes_along = |indices: &[Ix], own: Name, foreign: Name| {
            let (last, others) = indices.split_last()?;
            let (step, _) = last.linear_in(own)?;
            (step == 1 && !last.mentions(foreign) && !others.iter().any(|ix| ix.mentions(own))).then_some(())
        };
        let loops = [(index, range), (*other, other_range)];
        let [across, along] = [loops, [loops[1], loops[0]]].into_iter().find(|[across, along]| {
            goes_along(at, across.0, along.0).and(goes_along(read, along.0, across.0)).is_some()
        })?;
        let count = length(across.1)?;
        let whole = count / square(ty.elem) * square(ty.elem);
        if whole == 0 {
            return None;
        }
        let stride = stride(at, self.types.get(to)?, along.0)?;
        let (elem, is_whole) = (ty.elem, whole == count);
        Some(Turned { elem, across, along, from: (from, read), to: (*to, at), whole, is_whole, stride, body: copy })
    }

    /// Squares, then the rows that are left.
    pub(super) fn turned_for(&mut self, copy: &Turned<'a>, depth: usize) -> Result<(), Diagnostic> {
        let Turned { elem, across, along, from, to, .. } = copy;
        let side = square(*elem);
        let helper = self.helper(Helper::Turn(*elem));
        let [(lo, hi), (first, end)] = [across.1, along.1].map(|range| (self.ix(&range.lo), self.ix(&range.hi)));
        let (lo, hi, first, end) = (lo?.text(), hi?.text(), first?.text(), end?.text());
        let rest = across.1.lo.add(&Ix::from(copy.whole)).map_err(|_| too_large())?;
        let rest = self.ix(&rest)?.text();
        let (j, k) = (self.names.get(across.0).to_owned(), self.names.get(along.0).to_owned());
        let [begin, rows] = ["begin", "rows"].map(|name| self.names.numbered(name));
        self.bound_index(across.0, across.1);
        self.bound_index(along.0, along.1);
        let ty = c_type(*elem);
        let guard = if length(along.1).is_some() { String::new() } else { format!("{first} < {end} && ") };
        self.line(&format!("for (int64_t {begin} = {lo}; {guard}{begin} < {rest}; {begin} += {side}) {{"));
        self.indent += 1;
        self.line(&format!("const int64_t {k} = {first};"));
        self.line(&format!("const {ty} *{rows}[{side}];"));
        let source = self.element(from.0, from.1)?;
        self.line(&format!("CERTEN_UNROLL({side})"));
        self.line(&format!(
            "for (int64_t {j} = {begin}; {j} < {begin} + {side}; {j}++) {rows}[{j} - {begin}] = &{source};"
        ));
        self.line(&format!("const int64_t {j} = {begin};"));
        self.function.written.insert(to.0);
        let target = self.element(to.0, to.1)?;
        let stride = self.ix(&copy.stride)?.text();
        self.line(&format!("{helper}({rows}, &{target}, {stride}, {end} - {k});"));
        self.indent -= 1;
        self.line("}");
        self.ranges.remove(&along.0);
        if !copy.is_whole {
            self.line(&format!("for (int64_t {j} = {rest}; {j} < {hi}; {j}++) {{"));
            self.indent += 1;
            if self.stands_alone {
                self.line("CERTEN_IN_ORDER");
            }
            self.counted_for(*along, (&first, &end), copy.body, depth + 1)?;
            self.indent -= 1;
            self.line("}");
        }
        self.ranges.remove(&across.0);
        Ok(())
    }
}

/// How far a buffer goes at a step of a loop, in which its indices are linear.
fn stride(at: &[Ix], ty: &TensorType, index: Name) -> Option<Ix> {
    let mut stride = Ix::from(0);
    for (ix, size) in at.iter().zip(ty.shape.iter()) {
        let step = if ix.mentions(index) { ix.linear_in(index)?.0 } else { 0 };
        stride = stride.mul(size).ok()?.add(&Ix::from(step)).ok()?;
    }
    Some(stride)
}
