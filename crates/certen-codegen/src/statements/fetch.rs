//! What will be read or stored soon is fetched: what a tile is combined with while its sum runs, rows far apart while the tile
//! before runs, and what nests read and store of a block while those before them run.
//!
//! A tile of sums stays in registers during a long loop; then its elements are combined with others from memory and stored. A
//! processor does not look as far ahead as that loop is long, and would wait for each tile's operands. So it is told of them
//! before the loop, by the addresses of elements that are read.
//!
//! Where each term of the sum reads from another page, a processor does not see that the next tile will read what lies beside it.
//! So each term also fetches what the same term of the next tile reads: as many bytes further as a row of the tile has.
//!
//! Where nests follow each other for each block of a batch, the last of them stores a block of an output, and waits for each of its
//! lines. The nest before it fetches them, some in each of its iterations. So does the last one with what the first one will read of
//! the next block, which does not lie where a processor looks for it if it is read row by row.
//!
//! Where rows of an input are short, as those of images are, a processor that has come to the end of one has to find the next: each
//! vector fetches what lies at its place in rows that are read up to two pages later. Where lanes lie apart, it fetches what lies a page
//! after its elements.
//!
//! A hint changes no value, and reads nothing: at the end of a row it may be about other memory.

use std::collections::{HashMap, HashSet};

use certen_core::{ElemType, TensorType};
use certen_index::Ix;
use certen_loops::{Mode, Stmt, Use, statements};
use certen_syntax::{Diagnostic, Name};

use super::turned::stride;
use super::vector::length;
use crate::emitter::{Ahead, Emitter, LinesAhead};

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

/// The lines of a block: fewer are left to the processor, and more may not stay in a cache, or come faster than they are served.
/// A few at once are written out.
const FEW_LINES: i64 = 24;
const MOST_IN_BLOCK: i64 = 4096;
const MOST_AT_ONCE: i64 = 32;
const FEW_AT_ONCE: i64 = 4;

/// An iteration of a loop comes to so many rows of an input at most; an input of fewer bytes is in a cache.
const MOST_ROWS: i64 = 4;
const LARGE_BYTES: i64 = 1 << 20;

/// How far ahead they are fetched (measured on Zen 5: half of it takes a third longer).
const AHEAD_BYTES: i64 = 2 * PAGE_BYTES;

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
            self.ranges.shift_remove(index);
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
        let innermost = loops.iter().copied().rev().find(|index| to.iter().all(|ix| !ix.mentions(*index)))?;
        let bytes = lanes.checked_mul(self.types.get(&tile)?.elem.bytes() as i64)?;
        // Fetches stand in the loop of the terms, where those inside it have no index yet.
        let inside = &loops[loops.iter().position(|index| *index == innermost)? + 1..];
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
            let is_known = !inside.iter().any(|index| indices.iter().any(|ix| ix.mentions(*index)));
            if is_next && is_known && distance(ty, indices, innermost).is_some_and(|bytes| bytes >= PAGE_BYTES) {
                elements
                    .extend(lines(indices, lane, lanes, ty.elem, false)?.into_iter().map(|indices| (name, indices)));
            }
        }
        (!elements.is_empty()).then_some((innermost, Ahead::Rows { elements, bytes }))
    }

    /// Where nests follow each other for each block of a batch, has the last one fetch what the first one reads of inputs for the next
    /// block, and the one before it what the last one stores. Loops around a sum are no such nests: the first only clears a tile, or
    /// the last stores no result.
    pub(super) fn fetch_blocks(&mut self, block: &'a [Stmt], at: usize) {
        let is_nest = |stmt: &&Stmt| matches!(stmt, Stmt::For { mode: Mode::Serial, .. });
        if self.lanes.is_some() || self.ranges.is_empty() || !is_nest(&&block[at]) {
            return;
        }
        let (first, mut later) = (block[..at].iter().find(is_nest), block[at + 1..].iter().filter(is_nest));
        let found = match (first, later.next(), later.next()) {
            (_, Some(last), None) => self.block_stored(last).into_iter().collect(),
            (Some(first), None, _) if self.stores_output(&block[at]) => self.blocks_read(first),
            _ => return,
        };
        self.ahead.extend(lines_ahead(&block[at], found));
    }

    fn is_output(&self, name: Name) -> bool {
        self.program.outputs.iter().any(|output| output.name == name)
    }

    fn stores_output(&self, nest: &Stmt) -> bool {
        statements(std::slice::from_ref(nest)).filter_map(Stmt::element).any(|(to, _)| self.is_output(to))
    }

    /// What a nest stores in this iteration of the loops around it, if that is one block of an output.
    fn block_stored(&self, nest: &'a Stmt) -> Option<Block> {
        let mut stores =
            statements(std::slice::from_ref(nest)).filter_map(Stmt::element).filter(|(to, _)| self.is_output(*to));
        let (to, indices) = stores.next()?;
        if stores.any(|other| other != (to, indices)) || self.program.streamed.contains(&to) {
            return None;
        }
        self.block_of(nest, to, indices, true)
    }

    /// What a nest reads of inputs, a block each in an iteration of the loops around it.
    fn blocks_read(&self, nest: &'a Stmt) -> Vec<Block> {
        let is_input = |name: Name| self.program.inputs.iter().any(|input| input.name == name);
        let mut found: Vec<Block> = Vec::new();
        for (name, indices, how) in
            statements(std::slice::from_ref(nest)).flat_map(|stmt| stmt.uses(&self.program.terms))
        {
            if how == Use::Read && is_input(name) && !found.iter().any(|block| block.element.0 == name) {
                found.extend(self.block_of(nest, name, indices, false));
            }
        }
        found
    }

    /// The block of a buffer to which an element belongs that a nest uses: rows one after the other, as many as an iteration of the
    /// innermost loop around is from the next.
    fn block_of(&self, nest: &Stmt, name: Name, indices: &[Ix], to_store: bool) -> Option<Block> {
        let ty = self.types.get(&name)?;
        let (row, others) = indices.split_first()?;
        let around = |ix: &Ix| self.ranges.keys().any(|index| ix.mentions(*index));
        if others.is_empty() || others.iter().any(around) {
            return None;
        }
        let inner: HashSet<Name> = statements(std::slice::from_ref(nest)).filter_map(Stmt::declares).collect();
        let put = |name: Name| inner.contains(&name).then(|| Ix::from(0));
        let row = row.substitute(&put).ok()?;
        // A last block that is not full may stay at its last row.
        let (innermost, _) = self.ranges.last()?;
        let rows = |row: &Ix| row.linear_in(*innermost).map(|(rows, _)| rows).filter(|rows| *rows > 0);
        let (rows, row) = row.smallest_of().ok()?.into_iter().find_map(|row| Some((rows(&row)?, row)))?;
        let first = std::iter::once(Ok(row)).chain(others.iter().map(|ix| ix.substitute(&put)));
        let first = first.collect::<Result<Vec<Ix>, _>>().ok()?;
        let mut sizes = ty.shape.iter().skip(1).map(|size| size.as_constant());
        let bytes =
            sizes.try_fold(rows.checked_mul(ty.elem.bytes() as i64)?, |bytes, size| bytes.checked_mul(size?))?;
        Some(Block { element: (name, first), bytes, to_store })
    }

    /// Has each vector of a loop fetch what lies at its place in the rows that iterations of the loop around come to, up to two
    /// pages later, or a page later where lanes lie apart.
    pub(super) fn fetch_next_rows(&mut self, body: &'a [Stmt]) -> Result<(), Diagnostic> {
        if !statements(body).filter_map(Stmt::element).any(|(to, _)| self.is_output(to)) {
            return Ok(());
        }
        let last = |stmt: &Stmt| match stmt {
            Stmt::For { range, .. } => range.hi.as_constant().map(|end| Ix::from(end - 1)),
            _ => None,
        };
        let inner: Inner = statements(body).filter_map(|stmt| Some((stmt.declares()?, last(stmt)))).collect();
        let mut rows: Vec<NextRows> = Vec::new();
        for (name, indices, how) in statements(body).flat_map(|stmt| stmt.uses(&self.program.terms)) {
            let found = self
                .apart(&inner, name, indices, how)
                .or_else(|| self.next_rows(&inner, name, indices).filter(|_| how == Use::Read));
            let Some(found) = found else { continue };
            match rows.iter_mut().find(|other| other.name == name) {
                Some(other)
                    if other.place.sub(&found.place).ok().and_then(|ix| ix.as_constant()).is_some_and(|by| by < 0) =>
                {
                    *other = found;
                }
                Some(_) => {}
                None => rows.push(found),
            }
        }
        self.indent += 1;
        for NextRows { name, indices, bytes, to_store, .. } in rows {
            let element = self.element(name, &indices)?;
            let how = hint(to_store);
            for bytes in bytes {
                self.line(&format!("{how}({element}, {bytes});"));
            }
        }
        self.indent -= 1;
        Ok(())
    }

    /// What lies a page after the elements that a long loop reads or stores in lanes some places apart: it goes through memory faster
    /// than a processor that sees every load by itself.
    fn apart(&self, inner: &Inner, name: Name, indices: &[Ix], how: Use) -> Option<NextRows> {
        let mut parameters = self.program.inputs.iter().chain(&self.program.outputs);
        let (ty, active) = (&parameters.find(|parameter| parameter.name == name)?.ty, self.lanes.as_ref()?);
        let apart = active.lanes.distance(ty, indices).filter(|apart| *apart > 1)?;
        let (lane, _) = self.ranges.last()?;
        // The first dimension has the lanes, and is as long as the caller says or so long that it does not stay in a cache.
        let (first, others) = indices.split_first()?;
        let bytes = ty.elem.bytes() as i64;
        let is_long = ty.shape[0].as_constant().is_none_or(|size| size.saturating_mul(apart * bytes) >= LARGE_BYTES);
        if !is_long || *first != Ix::var(*lane) || others.iter().any(|ix| ix.mentions(*lane)) {
            return None;
        }
        let put = |name: Name| inner.contains_key(&name).then(|| Ix::from(0));
        let indices = indices.iter().map(|ix| ix.substitute(&put)).collect::<Result<Vec<Ix>, _>>().ok()?;
        let lines = (apart * active.shape.most * bytes + LINE_BYTES - 1) / LINE_BYTES;
        let bytes = (0..lines).map(|line| PAGE_BYTES + line * LINE_BYTES).collect();
        Some(NextRows { name, indices, place: Ix::from(0), bytes, to_store: how != Use::Read })
    }

    /// The rows of an input that an iteration of the loop around comes to some time after those that this one reads in lanes, if they
    /// are so short that a processor does not see where they begin, and not in a cache already.
    fn next_rows(&self, inner: &Inner, name: Name, indices: &[Ix]) -> Option<NextRows> {
        let input = self.program.inputs.iter().find(|input| input.name == name)?;
        let (ty, active) = (&input.ty, self.lanes.as_ref()?);
        let distance = active.lanes.distance(ty, indices)?;
        let (around, _) = self.ranges.get_index(self.ranges.len().checked_sub(2)?)?;
        let step = self::distance(ty, indices, *around).filter(|step| (1..PAGE_BYTES).contains(step))?;
        let size = |size: i64| size.checked_mul(ty.elem.bytes() as i64);
        let row = size(ty.shape.last()?.as_constant()?)?;
        let all = ty.shape.iter().try_fold(size(1)?, |all, size| all.checked_mul(size.as_constant()?))?;
        if row <= 0 || step % row != 0 || step / row > MOST_ROWS || all < LARGE_BYTES {
            return None;
        }
        // The last rows that this iteration reads.
        let put = |name: Name| inner.get(&name).cloned().flatten();
        let indices = indices.iter().map(|ix| ix.substitute(&put)).collect::<Result<Vec<Ix>, _>>().ok()?;
        if indices.iter().any(|ix| inner.keys().any(|name| ix.mentions(*name))) {
            return None;
        }
        let place = indices
            .iter()
            .zip(ty.shape.iter())
            .try_fold(Ix::from(0), |place, (ix, size)| place.mul(size)?.add(ix))
            .ok()?;
        let lines = (distance * size(active.shape.most)? + LINE_BYTES - 1) / LINE_BYTES;
        let ahead = AHEAD_BYTES / step * step;
        let of_row = |at: i64| (0..lines).map(move |line| ahead - at * row + line * LINE_BYTES);
        let bytes = (0..step / row).flat_map(of_row).collect();
        Some(NextRows { name, indices, place, bytes, to_store: false })
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
            Ahead::Lines(parts) => {
                for LinesAhead { element: (name, indices), bytes, lines, to_store } in parts {
                    let (element, bytes, at) =
                        (self.element(name, &indices)?, self.ix(&bytes)?.text(), self.own.at.clone());
                    let how = hint(to_store);
                    // The loops around may be unrolled, and there would be very many of these hints then.
                    let unrolled = if lines <= FEW_AT_ONCE { lines } else { 1 };
                    self.line(&format!("CERTEN_UNROLL({unrolled})"));
                    self.line(&format!("for (int64_t {at} = 0; {at} < {lines}; {at}++) {{"));
                    self.line(&format!("    {how}({element}, {bytes} + {at}*{LINE_BYTES});"));
                    self.line("}");
                }
            }
        }
        self.indent -= 1;
        Ok(())
    }
}

/// What fetches bytes after an element.
fn hint(to_store: bool) -> &'static str {
    if to_store { "CERTEN_FETCH_TO_STORE" } else { "CERTEN_FETCH_AFTER" }
}

/// What a body declares, with the last index of loops that end at a number.
type Inner = HashMap<Name, Option<Ix>>;

/// Rows that are read next: an element of the last one that is read now, its place in the buffer, and how many bytes after it the
/// lines begin that are fetched.
struct NextRows {
    name: Name,
    indices: Vec<Ix>,
    place: Ix,
    bytes: Vec<i64>,
    to_store: bool,
}

/// A part of a buffer: its first element, and its bytes.
struct Block {
    element: (Name, Vec<Ix>),
    bytes: i64,
    to_store: bool,
}

/// What each iteration of a nest fetches of blocks, and the index of its innermost loop around tiles. What is stored is of this
/// iteration of the loops around the nest, what is read of the next.
fn lines_ahead(nest: &Stmt, blocks: Vec<Block>) -> Option<(Name, Ahead)> {
    // The iterations of the nest that make tiles, and which of them this is.
    let (mut count, mut which, mut innermost, mut stmt) = (1i64, Ix::from(0), None, nest);
    while let Stmt::For { index, range, mode: Mode::Serial, body } = stmt {
        let length = length(range).filter(|length| *length == 1 || range.lo.as_constant() == Some(0))?;
        count = count.checked_mul(length)?;
        if length > 1 {
            which = which.mul(&Ix::from(length)).ok()?.add(&Ix::var(*index)).ok()?;
        }
        innermost = Some(*index);
        let [inner] = body.as_slice() else { break };
        stmt = inner;
    }
    let mut parts = Vec::new();
    for Block { element, bytes, to_store } in blocks {
        let all = bytes / LINE_BYTES;
        if !(FEW_LINES..=MOST_IN_BLOCK).contains(&all) {
            continue;
        }
        let lines = (all - 1) / count + 1;
        if lines <= MOST_AT_ONCE {
            let from = if to_store { 0 } else { bytes };
            let bytes = which.mul(&Ix::from(lines * LINE_BYTES)).and_then(|offset| offset.add(&Ix::from(from))).ok()?;
            parts.push(LinesAhead { element, bytes, lines, to_store });
        }
    }
    Some((innermost.filter(|_| !parts.is_empty())?, Ahead::Lines(parts)))
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
