//! How much memory a program takes for itself.

use std::collections::{BTreeSet, HashMap};

use certen_core::{ElemType, TensorType};
use certen_index::Ix;
use certen_syntax::Name;

use crate::ir::{LoopProgram, Stmt};

/// More indices than this in one size are looked at only together.
const MAX_CORNERS: usize = 6;

/// The most bytes that are allocated at a time in a run with these sizes. The caller's arrays are not counted, nor buffers
/// without dimensions, which take no memory to speak of. `bytes` is what an element takes.
///
/// The size of a buffer inside a loop may depend on the loop's index: it is taken at the ends of the range, where sizes
/// made of sums and products are largest. What does not fit in 128 bits, or has no value, counts as infinitely large.
pub fn peak_bytes(
    program: &LoopProgram,
    sizes: &impl Fn(Name) -> Option<i64>,
    bytes: &impl Fn(ElemType) -> usize,
) -> u128 {
    Peak { sizes, bytes, indices: HashMap::new() }.block(&program.body)
}

struct Peak<'a, S, B> {
    sizes: &'a S,
    bytes: &'a B,
    /// The first and last value of each open loop's index.
    indices: HashMap<Name, (i64, i64)>,
}

impl<S: Fn(Name) -> Option<i64>, B: Fn(ElemType) -> usize> Peak<'_, S, B> {
    fn block(&mut self, block: &[Stmt]) -> u128 {
        let (mut now, mut peak) = (0u128, 0u128);
        let mut alive: HashMap<Name, u128> = HashMap::new();
        for stmt in block {
            match stmt {
                Stmt::Alloc(name, ty) if !ty.is_scalar() => {
                    let size = self.buffer(ty);
                    alive.insert(*name, size);
                    now = now.saturating_add(size);
                }
                Stmt::Free(name) => now = now.saturating_sub(alive.remove(name).unwrap_or(0)),
                Stmt::For { index, range, .. } => {
                    let (lo, hi) = (self.extremes(&range.lo).0, self.extremes(&range.hi).1);
                    if lo >= hi {
                        continue;
                    }
                    self.indices.insert(*index, (lo, hi - 1));
                }
                _ => {}
            }
            let inside = stmt.blocks().map(|block| self.block(block)).max().unwrap_or(0);
            if let Stmt::For { index, .. } = stmt {
                self.indices.remove(index);
            }
            peak = peak.max(now.saturating_add(inside));
        }
        peak
    }

    fn buffer(&self, ty: &TensorType) -> u128 {
        let first = (self.bytes)(ty.elem) as u128;
        ty.shape.iter().fold(first, |bytes, size| {
            bytes.saturating_mul(u128::try_from(self.extremes(size).1.max(0)).unwrap_or(u128::MAX))
        })
    }

    /// The least and the largest value of an expression at the ends of the loops' ranges.
    fn extremes(&self, ix: &Ix) -> (i64, i64) {
        let mut names = BTreeSet::new();
        ix.collect_names(&mut names);
        let inside: Vec<Name> = names.into_iter().filter(|name| self.indices.contains_key(name)).collect();
        let corners = if inside.len() <= MAX_CORNERS { 1usize << inside.len() } else { 2 };
        let (mut least, mut largest) = (i64::MAX, i64::MIN);
        for corner in 0..corners {
            let value = |name: Name| match self.indices.get(&name) {
                Some(&(first, last)) => {
                    let at = inside.iter().position(|other| *other == name).unwrap_or(0);
                    let high = if inside.len() <= MAX_CORNERS { corner >> at & 1 == 1 } else { corner == 1 };
                    Some(if high { last } else { first })
                }
                None => (self.sizes)(name),
            };
            match ix.eval(&value) {
                Ok(value) => (least, largest) = (least.min(value), largest.max(value)),
                Err(_) => return (0, i64::MAX),
            }
        }
        (least, largest)
    }
}
