//! Which factors are copied as a whole before tiles read them.
//!
//! Where neighbours in a factor belong to different steps of the loops around, or to terms that are far from each other, every
//! copy of a block would take one element of each cache line that it reads; if those are more than the cache keeps, each is
//! read again and again. One copy of everything, in the order in which they are used, reads them once.
//!
//! Needs: loops that stay inside the factor.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::copy::{Loops, count};
use super::inner::{Loop, Number};
use super::permute::{Stride, permute};
use crate::scratch::Scratch;

/// So few terms are copied with those of other steps around rather than in many small blocks, where so many rows or lanes have
/// them.
const FEW_TERMS: usize = 16;
const MANY_OWN: usize = 64;

/// The terms of a block.
pub(super) const DEPTH: usize = 256;

/// What is copied in another order takes at most so many bytes.
const MOST_TURNED: usize = 64 << 20;

const CACHE_LINE: usize = 64;

/// What the caches keep until it is read again.
const KEPT_BYTES: usize = 48 << 10;

/// Where terms that lie side by side in a factor are so many apart, a block has enough of them for squares.
pub(super) const NEAR_TERMS: usize = 24;

/// How many terms are between two that lie side by side in a factor; one if none do.
pub(super) fn terms_apart(terms: &Loops, which: usize, unit: usize) -> usize {
    let near = terms.iter().position(|one| one.size > 1 && one.factors[which] == unit as isize);
    near.map_or(1, |at| count(&terms[at + 1..]))
}

/// Copies a factor if that is better, so that its own kept loops, or else its terms in their order, lie side by side. The factor
/// and the loops are those of the copy then. None, and nothing changes, where it is of no use or there is no memory.
///
/// # Safety
/// The loops stay inside the factor, and the processor has vectors of so many bytes.
pub(super) unsafe fn turned<T: Number>(
    factor: &mut *const u8,
    which: usize,
    around: &mut Loops,
    [own, terms]: [&mut Loops; 2],
    vectors: usize,
) -> Option<Scratch<T>> {
    let unit = size_of::<T>();
    let moves = |one: &Loop<2>| one.size > 1 && one.factors[which] != 0;
    let is_near = |one: &Loop<2>| moves(one) && one.factors[which].unsigned_abs() == unit;
    let has_near_terms = terms.iter().any(is_near) && terms_apart(terms, which, unit) <= NEAR_TERMS;
    // They are the lanes if they lie side by side in the result.
    let are_lanes = own.iter().any(|one| one.out.unsigned_abs() == unit);
    let is_short = are_lanes && count(terms) <= FEW_TERMS && count(own) >= MANY_OWN && around.iter().any(moves);
    if own.iter().any(is_near) || has_near_terms && !is_short {
        return None;
    }
    // The lines that are read before the next element of one of them is.
    let between = match terms.iter().position(is_near) {
        Some(at) => count(&terms[at + 1..]).min(DEPTH),
        None if around.iter().any(is_near) => count(terms),
        None => return None,
    };
    if !is_short && count(own).saturating_mul(between).saturating_mul(CACHE_LINE) < KEPT_BYTES {
        return None;
    }
    own.sort_by_key(|one| Reverse(one.factors[which].unsigned_abs()));
    // What is nearest in the factor lies side by side in the copy.
    let reach = |loops: &Loops| {
        loops.iter().rev().find(|one| moves(one)).map_or(usize::MAX, |one| one.factors[which].unsigned_abs())
    };
    let (middle, last) = if is_short || reach(own) <= reach(terms) { (terms, own) } else { (own, terms) };
    let all = around.iter_mut().chain(middle).chain(last);
    let mut all: SmallVec<[&mut Loop<2>; 8]> = all.filter(|one| moves(one)).collect();
    let length = all.iter().try_fold(1usize, |length, one| length.checked_mul(one.size))?;
    if length.checked_mul(unit)? > MOST_TURNED {
        return None;
    }
    let mut copy: Scratch<T> = Scratch::try_new(length)?;
    let mut step = 1;
    let mut strides: SmallVec<[Stride; 8]> = SmallVec::new();
    for one in all.iter_mut().rev() {
        strides.push(Stride { size: one.size, from: one.factors[which], to: step });
        one.factors[which] = (step * unit) as isize;
        step *= one.size;
    }
    // SAFETY: by the contract; the copy is dense and has so many elements.
    unsafe { permute(*factor, copy.elements().as_mut_ptr().cast::<T>(), &strides, vectors) };
    *factor = copy.pointer().cast();
    Some(copy)
}
