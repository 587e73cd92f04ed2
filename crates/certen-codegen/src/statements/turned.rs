//! Copies that exchange two dimensions, in C.
//!
//! Two loops that copy elements, which lie side by side along one of them in the source and along the other in the target: panels
//! of products are packed so. Element by element, each is one load and one store. In squares, as many elements as a vector has
//! are loaded from each of as many rows, turned in registers, and stored:
//!
//! ```c
//! for (int64_t begin = 0; begin < 32; begin = begin + 4) {
//!     const int64_t l = 0;
//!     const double *rows[4];
//!     for (int64_t j = begin; j < begin + 4; j++) rows[j - begin] = &B[j*111 + l];
//!     const int64_t j = begin;
//!     certen_turn_f64x4(rows, &packed[l*32 + j], 32, 111 - l);
//! }
//! ```
//!
//! Elements of another buffer, which lie as those of the target do, may be added: `C[j, l] = acc[l, j] + Q[l]`.
//!
//! More loops can be around the two, over further dimensions: where both buffers go on as if the loop along the source did, that
//! loop is made longer instead, and the indices of the others stay 0.
//!
//! Needs: the loops are rectangular, and source and target are different buffers. Guarantees: the same elements are read and
//! written, some of them twice.

use certen_core::{Binary, ElemType, Range, TensorType, Term, TermId};
use certen_index::Ix;
use certen_loops::{Mode, Stmt, Target, as_element};
use certen_syntax::{Diagnostic, Name};

use crate::emitter::Emitter;
use crate::helpers::{Helper, c_type, sides};
use crate::index::too_large;
use crate::statements::vector::length;

/// A copy whose elements lie side by side along different loops.
pub(super) struct Turned<'a> {
    elem: ElemType,
    /// The loop along which the target lies, that of the source's rows.
    across: (Name, Range),
    /// The loop along which the source lies.
    along: (Name, Range),
    /// Loops with whose iterations that one goes on.
    further: Vec<Name>,
    from: (Name, &'a [Ix]),
    to: (Name, &'a [Ix]),
    /// The side of a square, and whether squares fill all steps across.
    side: i64,
    is_whole: bool,
    /// How far the target goes at a step along the source.
    stride: Ix,
    /// What is added, and how far that goes.
    more: Option<(Name, &'a [Ix], Ix)>,
}

impl<'a> Emitter<'a> {
    /// Such a copy, if a loop is one that has a square at least.
    pub(super) fn turned(&self, index: Name, range: &'a Range, body: &'a [Stmt]) -> Option<Turned<'a>> {
        let (mut loops, mut inner) = (vec![(index, range)], body);
        while let [Stmt::For { index, range, mode: Mode::Serial | Mode::Vector, body }] = inner {
            loops.push((*index, range));
            inner = body;
        }
        let [Stmt::Assign { target: Target::Element(to, at), op: None, value }] = inner else { return None };
        let terms = &self.program.terms;
        let all = match terms.get(*value) {
            Term::Binary(Binary::Add, a, b) if terms.ty(*a).elem.is_float() => vec![(*a, Some(*b)), (*b, Some(*a))],
            _ => vec![(*value, None)],
        };
        all.into_iter().find_map(|(copied, more)| self.turned_value(&loops, (*to, at), copied, more))
    }

    /// The same for what is copied, and what is added to it.
    fn turned_value(
        &self,
        loops: &[(Name, &'a Range)],
        (to, at): (Name, &'a [Ix]),
        copied: TermId,
        more: Option<TermId>,
    ) -> Option<Turned<'a>> {
        let (from, ty, read) = as_element(&self.program.terms, copied)?;
        let depends = |(_, range): &(Name, &Range)| {
            loops.iter().any(|(other, _)| range.lo.mentions(*other) || range.hi.mentions(*other))
        };
        if self.lanes.is_some() || from == to || read.is_empty() || ty.elem.bytes() < 4 || loops.iter().any(depends) {
            return None;
        }
        let lies_along = |indices: &[Ix], own: Name| {
            let Some((last, others)) = indices.split_last() else { return false };
            let is_alone = loops.iter().all(|(other, _)| *other == own || !last.mentions(*other));
            let goes = last.linear_in(own).is_some_and(|(step, _)| step == 1);
            goes && is_alone && !others.iter().any(|ix| ix.mentions(own))
        };
        let clone = |(index, range): &(Name, &Range)| (*index, (*range).clone());
        let across = loops.iter().find(|(own, _)| lies_along(at, *own)).map(clone)?;
        let mut along = loops.iter().find(|(own, _)| lies_along(read, *own) && *own != across.0).map(clone)?;
        let (source, target) = (self.types.get(&from)?, self.types.get(&to)?);
        let step = stride(at, target, along.0)?;
        let more = match more {
            None => None,
            Some(more) => {
                let (name, _, own) = as_element(&self.program.terms, more)?;
                // Loops are taken together as source and target go on, not as this does.
                let goes = stride(own, self.types.get(&name)?, along.0).filter(|_| loops.len() == 2)?;
                (name != to && lies_along(own, across.0)).then_some(())?;
                Some((name, own, goes))
            }
        };
        let mut left: Vec<(Name, &Range)> = loops.to_vec();
        left.retain(|(index, _)| ![across.0, along.0].contains(index));
        let further = left.iter().map(|(index, _)| *index).collect();
        while !left.is_empty() {
            let begins_at_0 = |range: &Range| range.lo.as_constant() == Some(0);
            let count = length(&along.1).filter(|_| begins_at_0(&along.1))?;
            let goes_on = |next: Name| {
                let number = |ix: Option<Ix>| ix.and_then(|ix| ix.as_constant());
                let wanted = step.as_constant().and_then(|step| count.checked_mul(step));
                number(stride(read, source, next)) == Some(count)
                    && wanted.is_some()
                    && number(stride(at, target, next)) == wanted
            };
            let place = left.iter().position(|(next, range)| goes_on(*next) && begins_at_0(range))?;
            let (_, range) = left.remove(place);
            along.1 = Range::to(Ix::from(count.checked_mul(length(range)?)?));
        }
        let count = length(&across.1)?;
        let side = *sides(ty.elem).iter().find(|side| **side <= count)?;
        let (from, to) = ((from, read), (to, at));
        Some(Turned {
            elem: ty.elem,
            across,
            along,
            further,
            from,
            to,
            side,
            is_whole: count % side == 0,
            stride: step,
            more,
        })
    }

    /// Squares. The last one begins earlier if it would not be full, and copies some rows again.
    pub(super) fn turned_for(&mut self, copy: &Turned<'a>) -> Result<(), Diagnostic> {
        let Turned { elem, across, along, from, to, side, .. } = copy;
        let helper = self.helper(Helper::Turn(*elem, *side, copy.more.is_some()));
        let [(lo, hi), (first, end)] = [&across.1, &along.1].map(|range| (self.ix(&range.lo), self.ix(&range.hi)));
        let (lo, hi, first, end) = (lo?.text(), hi?.text(), first?.text(), end?.text());
        let last = across.1.hi.sub(&Ix::from(*side)).map_err(|_| too_large())?;
        let last = self.ix(&last)?.text();
        let (j, k) = (self.names.get(across.0).to_owned(), self.names.get(along.0).to_owned());
        let [begin, rows] = ["begin", "rows"].map(|name| self.names.numbered(name));
        for (index, range) in [across, along] {
            self.bound_index(*index, range);
        }
        if !copy.further.is_empty() {
            self.line("{");
            self.indent += 1;
        }
        for index in &copy.further {
            self.bound_index(*index, &Range::to(Ix::from(1)));
            let name = self.names.get(*index).to_owned();
            self.line(&format!("const int64_t {name} = 0;"));
        }
        let ty = c_type(*elem);
        let guard = if length(&along.1).is_some() { String::new() } else { format!("{first} < {end} && ") };
        self.line(&format!("for (int64_t {begin} = {lo}; {guard}{begin} < {hi}; {begin} = {begin} + {side}) {{"));
        self.indent += 1;
        if !copy.is_whole {
            self.line(&format!("if ({begin} > {last}) {begin} = {last};"));
        }
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
        let more = match &copy.more {
            Some((name, own, step)) => format!(", &{}, {}", self.element(*name, own)?, self.ix(step)?.text()),
            None => String::new(),
        };
        self.line(&format!("{helper}({rows}, &{target}, {stride}, {end} - {k}{more});"));
        self.indent -= 1;
        self.line("}");
        self.ranges.shift_remove(&along.0);
        for index in copy.further.iter().chain([&across.0]) {
            self.ranges.shift_remove(index);
        }
        if !copy.further.is_empty() {
            self.indent -= 1;
            self.line("}");
        }
        Ok(())
    }
}

/// How far a buffer goes at a step of a loop, in which its indices are linear.
pub(super) fn stride(at: &[Ix], ty: &TensorType, index: Name) -> Option<Ix> {
    let mut stride = Ix::from(0);
    for (ix, size) in at.iter().zip(ty.shape.iter()) {
        let step = if ix.mentions(index) { ix.linear_in(index)?.0 } else { 0 };
        stride = stride.mul(size).ok()?.add(&Ix::from(step)).ok()?;
    }
    Some(stride)
}
