//! Sums of many terms in blocks.
//!
//! The panels of a long sum are larger than the caches. So its outer loops, or blocks of one of them, run around all tiles: a tile
//! adds the terms of a block to what the blocks before have left in the result. The terms of an element stay in their order.

use certen_core::Range;
use certen_syntax::Name;

use super::panels::Around;
use crate::auto::sum::{SumNest, size};
use crate::auto::tile::blocks;

/// A sum of more terms is made in blocks, each of as many terms at most.
const MANY_TERMS: i64 = 2048;
const BLOCK_TERMS: i64 = 1024;

/// How a sum of many terms is made in blocks: its outer loops run around all tiles.
#[derive(Clone)]
pub(super) struct LongSum {
    /// How many of its loops do, whole.
    pub whole: usize,
    /// The next one, if it is split, and into blocks of how many iterations.
    pub split: Option<(Name, i64)>,
}

impl LongSum {
    pub fn of(found: &SumNest<'_>) -> Option<LongSum> {
        let sizes: Vec<i64> = found.summed.iter().map(|(_, range)| size(range)).collect::<Option<_>>()?;
        let terms = sizes.iter().copied().fold(1, i64::saturating_mul);
        if terms <= MANY_TERMS || !found.is_perfect() || !found.overwrites {
            return None;
        }
        let (mut inside, mut whole) = (1i64, sizes.len());
        while whole > 0 && inside.saturating_mul(sizes[whole - 1]) <= BLOCK_TERMS {
            whole -= 1;
            inside *= sizes[whole];
        }
        // Blocks of the same size, as far as that goes.
        let last = whole.checked_sub(1)?;
        let block = blocks(sizes[last], blocks(sizes[last], (BLOCK_TERMS / inside).max(1)));
        match block {
            1 if inside > 1 => Some(LongSum { whole, split: None }),
            _ => Some(LongSum { whole: last, split: Some((found.summed[last].0, block)) }),
        }
    }

    /// What is left of a loop of the sum inside a block: its name, and how many iterations it has.
    pub fn inside(&self, (index, range): (Name, &Range)) -> (String, Option<i64>) {
        match self.split {
            Some((split, block)) if split == index => (format!("{index}.i"), Some(block)),
            _ => (index.to_string(), size(range)),
        }
    }

    /// The loops around all tiles.
    pub fn around(&self, found: &SumNest<'_>) -> Vec<Around> {
        let one = |index: Name, name: String, size| Around { index, name, size, is_sum: true };
        let whole = found.summed[..self.whole].iter().map(|(index, range)| one(*index, index.to_string(), size(range)));
        let split = self
            .split
            .map(|(index, block)| one(index, format!("{index}.o"), found.count(index).map(|size| blocks(size, block))));
        whole.chain(split).collect()
    }
}
