//! What a tile is combined with is fetched while its sum runs.
//!
//! A tile of sums stays in registers during a long loop; then its elements are combined with others from memory and stored. A
//! processor does not look as far ahead as that loop is long, and would wait for each tile's operands. So it is told of them
//! before the loop. A hint changes no value; the addresses are those of elements that are read.

use std::collections::HashSet;

use certen_index::Ix;
use certen_loops::{Mode, Stmt, Use, statements};
use certen_syntax::{Diagnostic, Name};

use super::vector::length;
use crate::emitter::Emitter;

/// A loop of fewer iterations is over before its operands would be there.
const LONG: i64 = 128;

/// More than this is not fetched.
const MOST_LINES: i64 = 128;

/// The bytes that are fetched at once.
const LINE_BYTES: i64 = 64;

/// How compilers are told.
pub(crate) const FETCH: &str = "\
/* Says that an element will be read soon. */
#if defined(__GNUC__)
#define CERTEN_FETCH(element) __builtin_prefetch(&(element))
#else
#define CERTEN_FETCH(element) ((void)0)
#endif

";

impl<'a> Emitter<'a> {
    /// Fetches what the statements after a loop read, if the loop adds to a tile of this block.
    pub(super) fn fetch_for(&mut self, block: &'a [Stmt], at: usize) -> Result<(), Diagnostic> {
        let Stmt::For { range, mode: Mode::Serial, body, .. } = &block[at] else { return Ok(()) };
        if self.lanes.is_some() || length(range).is_some_and(|count| count < LONG) {
            return Ok(());
        }
        let is_tile = |stmt: &&'a Stmt| matches!(stmt, Stmt::Alloc(name, _) if !self.heap.contains_key(name));
        let tiles: HashSet<Name> = block[..at].iter().filter(is_tile).filter_map(Stmt::declares).collect();
        if !statements(body).filter_map(Stmt::element).any(|(to, _)| tiles.contains(&to)) {
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
            let in_a_line = (LINE_BYTES / ty.elem.bytes() as i64) as usize;
            let firsts = (0..lanes - 1).step_by(in_a_line);
            for at in firsts.chain([lanes - 1]).filter(|_| !tiles.contains(&name)) {
                let put = |name: Name| (name == lane).then(|| Ix::from(at));
                let Ok(indices) = indices.iter().map(|ix| ix.substitute(&put)).collect::<Result<Vec<_>, _>>() else {
                    return Ok(false);
                };
                elements.push((name, indices));
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
}
