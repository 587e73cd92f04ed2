//! Loops that must not be vectorised by the C compiler.
//!
//! GCC 12 (with `-O3`) makes wrong code of a loop whose body, once the short loops in it are unrolled, writes several
//! neighbours of a buffer that later iterations read:
//!
//! ```c
//! for (int64_t o = 0; o < n; o++)
//!     for (int64_t i = 0; i < 3; i++) y[3*o + i + 4] = 2.0 * y[3*o + i];
//! ```
//!
//! It reads what two iterations need before the first has written. And, where vectors have 32 bytes, of integers that are
//! summed in a few elements, which are summed in the end:
//!
//! ```c
//! for (int64_t o = 0; o < n; o++)
//!     for (int64_t i = 0; i < 4; i++) part[i] += x[4*o + i];
//! ```
//!
//! Splitting a loop makes the first, lanes of a sum the second, so
//! that they get a statement that does nothing at the end of their bodies, over which GCC moves no memory access. It
//! costs little: such a loop is seldom made of vectors, and loops inside can be as before.

use std::collections::{HashMap, HashSet};

use certen_core::{TermId, Terms};
use certen_index::Ix;
use certen_loops::{MAX_NESTING, Mode, Stmt, Target, as_element, parts_first};
use certen_syntax::Name;

/// Groups that are smaller come out right.
const LEAST_GROUP: i64 = 3;

/// One sum by itself comes out right.
const LEAST_SUMS: i64 = 2;

/// Statements, and iterations of a loop inside, beyond which nothing is unrolled.
const MAX_STATEMENTS: usize = 1000;
const MAX_ITERATIONS: i64 = 64;

/// The statement, for compilers that need it.
pub(crate) const BARRIER: &str = "\
/* At the end of a loop whose iterations GCC would mix up. */
#if defined(__GNUC__) && !defined(__clang__)
#define CERTEN_IN_ORDER() __asm__ volatile(\"\" ::: \"memory\")
#else
#define CERTEN_IN_ORDER() (void)0
#endif

";

/// Whether iterations of a loop are to be kept apart.
pub(crate) fn stays_in_order(terms: &Terms, index: Name, body: &[Stmt]) -> bool {
    let mut accesses = Accesses { terms, index, statements: 0, buffers: HashMap::new() };
    accesses.block(body, 1, 0).is_some() && accesses.buffers.values().any(Buffer::is_recurrence)
}

/// How a loop uses a buffer.
#[derive(Default)]
struct Buffer<'a> {
    /// How many elements one iteration writes, with all loops inside unrolled.
    stores: i64,
    written: HashSet<&'a [Ix]>,
    read: HashSet<&'a [Ix]>,
    /// How many elements, the same in every iteration, integers are summed in.
    sums: i64,
}

impl Buffer<'_> {
    /// Whether a group is written, and something else than the same elements read; or several sums are made.
    fn is_recurrence(&self) -> bool {
        self.sums >= LEAST_SUMS
            || self.stores >= LEAST_GROUP
                && !self.read.is_empty()
                && (self.written.len() > 1 || self.written != self.read)
    }
}

struct Accesses<'a> {
    terms: &'a Terms,
    index: Name,
    statements: usize,
    buffers: HashMap<Name, Buffer<'a>>,
}

impl<'a> Accesses<'a> {
    /// Notes the accesses of a block that is repeated so often; none if that cannot become statements in a row.
    fn block(&mut self, block: &'a [Stmt], times: i64, depth: usize) -> Option<()> {
        for stmt in block {
            self.statements += 1;
            if self.statements > MAX_STATEMENTS || depth > MAX_NESTING {
                return None;
            }
            match stmt {
                Stmt::Nest(_) | Stmt::Alloc(..) | Stmt::Free(_) | Stmt::Local { init: None, .. } => {}
                Stmt::Swap(..) | Stmt::For { mode: Mode::Parallel, .. } => return None,
                Stmt::For { range, body, .. } => {
                    let length = range.hi.sub(&range.lo).ok()?.as_constant()?;
                    if length > MAX_ITERATIONS {
                        return None;
                    }
                    self.block(body, times.checked_mul(length.max(0))?, depth + 1)?;
                }
                Stmt::If { then, otherwise, .. } => {
                    self.block(then, times, depth + 1)?;
                    self.block(otherwise, times, depth + 1)?;
                }
                Stmt::Local { init: Some(value), .. } => self.value(*value),
                Stmt::Assign { target, op, value } => {
                    self.value(*value);
                    if let Target::Element(name, indices) = target
                        && op.is_some()
                        && !self.moves(indices)
                        && self.terms.ty(*value).elem.is_int()
                    {
                        let sums = &mut self.buffers.entry(*name).or_default().sums;
                        *sums = sums.saturating_add(times);
                    }
                    if let Target::Element(name, indices) = target
                        && self.moves(indices)
                    {
                        let buffer = self.buffers.entry(*name).or_default();
                        buffer.stores = buffer.stores.saturating_add(times);
                        buffer.written.insert(indices);
                        if op.is_some() {
                            buffer.read.insert(indices);
                        }
                    }
                }
            }
        }
        Some(())
    }

    fn value(&mut self, root: TermId) {
        for id in parts_first(self.terms, root) {
            if let Some((name, _, indices)) = as_element(self.terms, id)
                && self.moves(indices)
            {
                self.buffers.entry(name).or_default().read.insert(indices);
            }
        }
    }

    /// Whether an access is another one in each iteration.
    fn moves(&self, indices: &[Ix]) -> bool {
        indices.iter().any(|ix| ix.mentions(self.index))
    }
}
