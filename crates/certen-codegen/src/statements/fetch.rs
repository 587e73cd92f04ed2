//! What will be read or stored soon is fetched: what a tile is combined with while its sum runs, rows far apart while the tile
//! before runs, and what a nest stores while the nest before it runs.
//!
//! A tile of sums stays in registers during a long loop; then its elements are combined with others from memory and stored. A
//! processor does not look as far ahead as that loop is long, and would wait for each tile's operands. So it is told of them
//! before the loop, by the addresses of elements that are read.
//!
//! Where each term of the sum reads from another page, a processor does not see that the next tile will read what lies beside it.
//! So each term also fetches what the same term of the next tile reads: as many bytes further as a row of the tile has.
//!
//! Where nests follow each other for each block of a batch, the last of them stores a block of an output, and waits for each of its
//! lines. The nest before it fetches them, some in each of its iterations.
//!
//! A hint changes no value, and reads nothing: at the end of a row it may be about other memory.

use std::collections::HashSet;

use certen_core::{ElemType, TensorType};
use certen_index::Ix;
use certen_loops::{Mode, Stmt, Use, statements};
use certen_syntax::{Diagnostic, Name};

use super::turned::stride;
use super::vector::length;
use crate::emitter::{Ahead, Emitter};

/// A loop of fewer iterations is over before its operands would be there.
const LONG: i64 = 128;

/// More than this is not fetched.
const MOST_LINES: i64 = 128;

/// The bytes that are fetched at once.
const LINE_BYTES: i64 = 64;

/// Rows that are so many bytes apart are in different pages.
const PAGE_BYTES: i64 = 4096;

/// How compilers are told.
pub(crate) const FETCH: &str = "\
/* Says that an element will be read soon, or what lies so many bytes after it, or that this will be stored. */
#if defined(__GNUC__)
#define CERTEN_FETCH(element) __builtin_prefetch(&(element))
#define CERTEN_FETCH_AFTER(element, bytes) __builtin_prefetch((const void *)((uintptr_t)&(element) + (bytes)))
#define CERTEN_FETCH_TO_STORE(element, bytes) __builtin_prefetch((const void *)((uintptr_t)&(element) + (bytes)), 1)
#else
#define CERTEN_FETCH(element) ((void)0)
#define CERTEN_FETCH_AFTER(element, bytes) ((void)0)
#define CERTEN_FETCH_TO_STORE(element, bytes) ((void)0)
#endif

";

/// The lines that a nest fetches of what the next one stores: so many are left to the processor, and more may not stay in a
/// cache, or come faster than they are served.
const FEW_STORED: i64 = 16;
const MOST_STORED: i64 = 4096;
const MOST_AT_ONCE: i64 = 16;

impl<'a> Emitter<'a> {
    /// Fetches what the statements after a loop read, if the loop adds to a tile of this block.
    pub(super) fn fetch_for(&mut self, block: &'a [Stmt], at: usize) -> Result<(), Diagnostic> {
        let Stmt::For { range, mode: Mode::Serial, body, .. } = &block[at] else { return Ok(()) };
        if self.lanes.is_some() {
            return Ok(());
        }
        let is_tile = |stmt: &&'a Stmt| matches!(stmt, Stmt::Alloc(name, _) if !self.heap.contains_key(name));
        let tiles: HashSet<Name> = block[..at].iter().filter(is_tile).filter_map(Stmt::declares).collect();
        if !statements(body).filter_map(Stmt::element).any(|(to, _)| tiles.contains(&to)) {
            return Ok(());
        }
        self.ahead.extend(self.rows_ahead(&block[at], &tiles));
        if length(range).is_some_and(|count| count < LONG) {
            return Ok(());
        }
        for stmt in &block[at + 1..] {
            if !self.fetch_rows(stmt, &tiles)? {
                break;
            }
        }
        Ok(())
    }

    /// Fetches what a loop over the rows of a tile reads besides tiles; false if this is no such loop.
    fn fetch_rows(&mut self, mut stmt: &'a Stmt, tiles: &HashSet<Name>) -> Result<bool, Diagnostic> {
        let mut rows = Vec::new();
        let (lane, lanes, assign) = loop {
            let Stmt::For { index, range, mode, body } = stmt else { return Ok(false) };
            let (Some(count), [inner]) = (length(range).filter(|_| range.lo.as_constant() == Some(0)), body.as_slice())
            else {
                return Ok(false);
            };
            match mode {
                Mode::Vector if matches!(inner, Stmt::Assign { .. }) => break (*index, count, inner),
                Mode::Vector | Mode::Parallel | Mode::ParallelVector => return Ok(false),
                Mode::Serial => rows.push((*index, range, count)),
            }
            stmt = inner;
        };
        let uses = assign.uses(&self.program.terms);
        if !uses.iter().any(|(name, _, how)| *how == Use::Read && tiles.contains(name)) {
            return Ok(false);
        }
        let mut elements = Vec::new();
        for (name, indices, how) in uses {
            let is_along = indices.last().and_then(|last| last.linear_in(lane)).is_some_and(|(step, _)| step == 1);
            let Some(ty) = self.types.get(&name).filter(|_| is_along && how == Use::Read) else { continue };
            if !tiles.contains(&name) {
                let Some(lines) = lines(indices, lane, lanes, ty.elem, true) else { return Ok(false) };
                elements.extend(lines.into_iter().map(|indices| (name, indices)));
            }
        }
        let count = rows.iter().fold(elements.len() as i64, |product, (_, _, count)| product.saturating_mul(*count));
        if !(1..=MOST_LINES).contains(&count) {
            return Ok(true);
        }
        for (index, range, count) in &rows {
            self.bound_index(*index, range);
            let i = self.names.get(*index).to_owned();
            self.line(&format!("for (int64_t {i} = 0; {i} < {count}; {i}++) {{"));
            self.indent += 1;
        }
        for (name, indices) in elements {
            let element = self.element(name, &indices)?;
            self.line(&format!("CERTEN_FETCH({element});"));
        }
        for (index, ..) in &rows {
            self.ranges.remove(index);
            self.indent -= 1;
            self.line("}");
        }
        Ok(true)
    }

    /// What each term of a sum fetches for the next tile, and the index of its innermost loop.
    fn rows_ahead(&self, sum: &'a Stmt, tiles: &HashSet<Name>) -> Option<(Name, Ahead)> {
        let (mut stmt, mut loops) = (sum, Vec::new());
        let (lane, lanes, assign) = loop {
            let Stmt::For { index, range, mode, body } = stmt else { return None };
            let [inner] = body.as_slice() else { return None };
            match mode {
                Mode::Vector => break (*index, length(range)?, inner),
                Mode::Serial => loops.push(*index),
                Mode::Parallel | Mode::ParallelVector => return None,
            }
            stmt = inner;
        };
        let (tile, to) = assign.element().filter(|(tile, _)| tiles.contains(tile))?;
        let innermost = loops.into_iter().rev().find(|index| to.iter().all(|ix| !ix.mentions(*index)))?;
        let bytes = lanes.checked_mul(self.types.get(&tile)?.elem.bytes() as i64)?;
        let mut elements = Vec::new();
        for (name, indices, how) in assign.uses(&self.program.terms) {
            let Some(ty) = self.types.get(&name).filter(|_| how == Use::Read && !tiles.contains(&name)) else {
                continue;
            };
            let Some(last) = indices.last().filter(|_| distance(ty, indices, lane) == Some(ty.elem.bytes() as i64))
            else {
                continue;
            };
            let is_next = self.ranges.keys().any(|tiles| last.linear_in(*tiles).is_some_and(|(step, _)| step == lanes));
            if is_next && distance(ty, indices, innermost).is_some_and(|bytes| bytes >= PAGE_BYTES) {
                elements
                    .extend(lines(indices, lane, lanes, ty.elem, false)?.into_iter().map(|indices| (name, indices)));
            }
        }
        (!elements.is_empty()).then_some((innermost, Ahead::Rows { elements, bytes }))
    }

    /// Has a nest fetch what the last one of its block stores, if that is the next one.
    pub(super) fn fetch_stored(&mut self, block: &'a [Stmt], at: usize) {
        let is_nest = |stmt: &&'a Stmt| matches!(stmt, Stmt::For { mode: Mode::Serial, .. });
        let mut nests = block[at..].iter().filter(is_nest);
        if let (Some(nest), Some(last), None) = (nests.next(), nests.next(), nests.next())
            && self.lanes.is_none()
            && std::ptr::eq(nest, &block[at])
        {
            self.ahead.extend(self.stored_ahead(nest, last));
        }
    }

    /// What each iteration of a nest fetches of what the next one stores, and the index of its innermost loop around tiles.
    fn stored_ahead(&self, nest: &'a Stmt, next: &'a Stmt) -> Option<(Name, Ahead)> {
        let is_output = |name: Name| self.program.outputs.iter().any(|output| output.name == name);
        let mut stores =
            statements(std::slice::from_ref(next)).filter_map(Stmt::element).filter(|(to, _)| is_output(*to));
        let (to, indices) = stores.next()?;
        if stores.any(|other| other != (to, indices)) {
            return None;
        }
        let ty = self.types.get(&to).filter(|_| !self.program.streamed.contains(&to))?;
        // Rows of the block of this iteration, one after the other.
        let (row, others) = indices.split_first()?;
        let around = |ix: &Ix| self.ranges.keys().any(|index| ix.mentions(*index));
        if others.is_empty() || others.iter().any(around) {
            return None;
        }
        let steps = self.ranges.keys().filter_map(|index| Some(row.linear_in(*index)?.0));
        let rows = steps.filter(|step| *step > 0).min()?;
        let mut sizes = ty.shape.iter().skip(1).map(|size| size.as_constant());
        let bytes =
            sizes.try_fold(rows.checked_mul(ty.elem.bytes() as i64)?, |bytes, size| bytes.checked_mul(size?))?;
        let all = bytes / LINE_BYTES;
        let inner: HashSet<Name> = statements(std::slice::from_ref(next)).filter_map(Stmt::declares).collect();
        let put = |name: Name| inner.contains(&name).then(|| Ix::from(0));
        let first: Vec<Ix> = indices.iter().map(|ix| ix.substitute(&put)).collect::<Result<_, _>>().ok()?;
        // The iterations of the nest that make tiles, and which of them this is.
        let (mut count, mut which, mut innermost, mut stmt) = (1i64, Ix::from(0), None, nest);
        while let Stmt::For { index, range, mode: Mode::Serial, body } = stmt {
            let length = length(range).filter(|_| range.lo.as_constant() == Some(0))?;
            count = count.checked_mul(length)?;
            which = which.mul(&Ix::from(length)).ok()?.add(&Ix::var(*index)).ok()?;
            innermost = Some(*index);
            let [inner] = body.as_slice() else { break };
            stmt = inner;
        }
        let lines = (all + count - 1) / count;
        let is_some = (FEW_STORED..=MOST_STORED).contains(&all) && lines <= MOST_AT_ONCE;
        let bytes = which.mul(&Ix::from(lines * LINE_BYTES)).ok()?;
        Some((innermost.filter(|_| is_some)?, Ahead::Stored { first: (to, first), bytes, lines }))
    }

    /// What an iteration of a loop fetches for later, at the beginning of its body.
    pub(super) fn fetch_ahead(&mut self, index: Name) -> Result<(), Diagnostic> {
        let Some(ahead) = self.ahead.remove(&index) else { return Ok(()) };
        self.indent += 1;
        match ahead {
            Ahead::Rows { elements, bytes } => {
                for (name, indices) in elements {
                    let element = self.element(name, &indices)?;
                    self.line(&format!("CERTEN_FETCH_AFTER({element}, {bytes});"));
                }
            }
            Ahead::Stored { first: (name, indices), bytes, lines } => {
                let (element, bytes, at) =
                    (self.element(name, &indices)?, self.ix(&bytes)?.text(), self.own.at.clone());
                self.line(&format!("CERTEN_UNROLL({lines})"));
                self.line(&format!("for (int64_t {at} = 0; {at} < {lines}; {at}++) {{"));
                self.line(&format!("    CERTEN_FETCH_TO_STORE({element}, {bytes} + {at}*{LINE_BYTES});"));
                self.line("}");
            }
        }
        self.indent -= 1;
        Ok(())
    }
}

/// The first element of each line of a row, and the last one of all if the row may begin inside a line.
fn lines(indices: &[Ix], lane: Name, lanes: i64, elem: ElemType, with_last: bool) -> Option<Vec<Vec<Ix>>> {
    let in_a_line = (LINE_BYTES / elem.bytes() as i64) as usize;
    let at = (0..lanes - 1).step_by(in_a_line).chain(with_last.then_some(lanes - 1));
    let put = |at: i64| {
        let put = move |name: Name| (name == lane).then(|| Ix::from(at));
        indices.iter().map(|ix| ix.substitute(&put)).collect::<Result<Vec<_>, _>>().ok()
    };
    at.map(put).collect()
}

/// How many bytes further an element lies in the next iteration of a loop, if that is a number.
fn distance(ty: &TensorType, indices: &[Ix], index: Name) -> Option<i64> {
    stride(indices, ty, index)?.as_constant()?.checked_mul(ty.elem.bytes() as i64)
}
