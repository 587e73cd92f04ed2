//! Regions: which elements of a buffer a block touches, as one interval for each dimension.
//!
//! The ends of an interval are expressions in what is known outside the block. They are found access by access: the
//! smallest and the largest value of an index, over the loops around the access from the innermost one on, under the
//! conditions there that bound a loop's index. Several accesses have the interval from the smallest to the largest of
//! their ends. What cannot be bounded in this way is the whole dimension.
//!
//! Guarantees: every element that the block touches is inside the region, whenever the access is inside its buffer;
//! the region is inside the buffer, and its extents are not negative. Where the block touches nothing, because its
//! loops are empty, the region is anything inside the buffer.

use certen_core::{Range, TensorType};
use certen_index::{Cond, Facts, Ix, IxError, Verdict};
use certen_loops::within;
use certen_syntax::Name;

use crate::depend::Access;

/// Extents up to this are recognised as bounded by a number.
const MOST: i64 = 1 << 16;

/// An interval of each dimension: where it begins, how long it is, and a number that is at least its length, if one is
/// known.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub dims: Vec<Dim>,
}

/// An interval of one dimension.
#[derive(Clone, Debug)]
pub(crate) struct Dim {
    pub lo: Ix,
    /// How many elements; not negative.
    pub extent: Ix,
    /// At least the extent, for all sizes.
    pub most: Option<i64>,
}

impl Dim {
    /// Behind the last element.
    pub(crate) fn hi(&self) -> Result<Ix, IxError> {
        self.lo.add(&self.extent)
    }
}

impl Region {
    /// What these accesses of a buffer of this type touch. `facts` hold around the block.
    pub(crate) fn of<'a>(
        facts: &Facts,
        ty: &TensorType,
        accesses: impl IntoIterator<Item = &'a Access>,
    ) -> Result<Region, IxError> {
        let mut ends: Vec<Option<(Ix, Ix)>> = vec![None; ty.rank()];
        let mut whole = vec![false; ty.rank()];
        for access in accesses {
            for (dim, index) in access.indices.iter().enumerate().take(ty.rank()) {
                if whole[dim] {
                    continue;
                }
                let Some((lo, hi)) = interval(facts, index, access)? else {
                    whole[dim] = true;
                    continue;
                };
                ends[dim] = Some(match ends[dim].take() {
                    None => (lo, hi),
                    Some((a, b)) => (extreme(facts, a, lo, false)?, extreme(facts, b, hi, true)?),
                });
            }
        }
        let zero = Ix::from(0);
        let mut dims = Vec::with_capacity(ty.rank());
        for ((ends, whole), size) in ends.into_iter().zip(whole).zip(ty.shape.iter()) {
            let dim = match ends.filter(|_| !whole) {
                Some((lo, hi)) => {
                    let lo = lo.max_with(&zero)?.simplified(facts)?;
                    let end = hi.add(&Ix::from(1))?.min_with(size)?.simplified(facts)?;
                    // Without what the ends have in common.
                    let extent = end.sub(&lo)?.simplified(facts)?.max_with(&zero)?.simplified(facts)?;
                    Dim { lo, most: bounded(facts, &extent)?, extent }
                }
                None => Dim { lo: zero.clone(), most: bounded(facts, size)?, extent: size.clone() },
            };
            dims.push(dim);
        }
        Ok(Region { dims })
    }

    /// Where it begins.
    pub(crate) fn base(&self) -> Vec<Ix> {
        self.dims.iter().map(|dim| dim.lo.clone()).collect()
    }

    /// The sizes of a buffer for it: numbers where they are known.
    pub(crate) fn shape(&self) -> Vec<Ix> {
        self.dims.iter().map(|dim| dim.most.map_or_else(|| dim.extent.clone(), Ix::from)).collect()
    }

    /// How many elements it has at most, if that is a number.
    pub(crate) fn elements(&self) -> Option<i64> {
        self.dims.iter().try_fold(1i64, |product, dim| product.checked_mul(dim.most?))
    }
}

/// The smaller or the larger of two. Without the prover where they differ by a number: unrolled loops read much side by
/// side.
fn extreme(facts: &Facts, a: Ix, b: Ix, max: bool) -> Result<Ix, IxError> {
    match a.sub(&b)?.as_constant() {
        Some(difference) => Ok(if (difference >= 0) == max { a } else { b }),
        None if max => a.max_with(&b)?.simplified(facts),
        None => a.min_with(&b)?.simplified(facts),
    }
}

/// The smallest number that is at least an expression, if there is one.
pub(crate) fn bounded(facts: &Facts, extent: &Ix) -> Result<Option<i64>, IxError> {
    if let Some(constant) = extent.as_constant() {
        return Ok((constant <= MOST).then_some(constant));
    }
    let at_most = |most: i64| Ok::<bool, IxError>(facts.prove(&Cond::le(extent, &Ix::from(most))?) == Verdict::Yes);
    if !at_most(MOST)? {
        return Ok(None);
    }
    let (mut below, mut most) = (-1, MOST);
    while most - below > 1 {
        let middle = below + (most - below) / 2;
        if at_most(middle)? { most = middle } else { below = middle }
    }
    Ok(Some(most))
}

/// The smallest and the largest value of an index, over the loops around an access; none if they are not found.
pub(crate) fn interval(facts: &Facts, index: &Ix, access: &Access) -> Result<Option<(Ix, Ix)>, IxError> {
    let mut inner = facts.clone();
    for (name, range) in &access.loops {
        inner.assume(within(*name, range)?);
    }
    access.conds.iter().for_each(|cond| inner.assume(cond.clone()));
    let loops = bounded_loops(access)?;
    let (mut least, mut most) = (index.clone(), index.clone());
    for (name, range) in loops.iter().rev() {
        let last = range.hi.sub(&Ix::from(1))?;
        // The facts about the loops further in speak of names that are gone by now, which does no harm.
        let Some((lo, _)) = least.over(*name, &range.lo, &last, &inner)? else { return Ok(None) };
        let Some((_, hi)) = most.over(*name, &range.lo, &last, &inner)? else { return Ok(None) };
        (least, most) = (lo, hi);
    }
    // Where a loop is empty, the ends may be anything: so it may be taken that none is.
    let mut runs = facts.clone();
    let outer: Vec<Name> = loops.iter().map(|(name, _)| *name).collect();
    for (_, range) in &loops {
        if !outer.iter().any(|name| range.lo.mentions(*name) || range.hi.mentions(*name)) {
            runs.assume(Cond::lt(&range.lo, &range.hi)?);
        }
    }
    Ok(Some((least.simplified(&runs)?, most.simplified(&runs)?)))
}

/// The loops around an access, with the bounds that conditions around it put on their indices.
fn bounded_loops(access: &Access) -> Result<Vec<(Name, Range)>, IxError> {
    let mut loops = access.loops.clone();
    let mut conds: Vec<&Cond> = access.conds.iter().collect();
    while let Some(cond) = conds.pop() {
        match cond {
            Cond::And(all) => conds.extend(all),
            Cond::Ge(e) => bound(&mut loops, e)?,
            Cond::Eq(e) => {
                bound(&mut loops, e)?;
                bound(&mut loops, &e.scale(-1)?)?;
            }
            Cond::Or(_) => {}
        }
    }
    Ok(loops)
}

/// The bound that `e >= 0` puts on the index of the innermost loop in it.
fn bound(loops: &mut [(Name, Range)], e: &Ix) -> Result<(), IxError> {
    let Some((name, range)) = loops.iter_mut().rev().find(|(name, _)| e.mentions(*name)) else { return Ok(()) };
    let Some((factor, rest)) = e.linear_in(*name) else { return Ok(()) };
    if factor > 0 {
        // factor*i + rest >= 0
        range.lo = range.lo.max_with(&rest.scale(-1)?.ceil_div(factor)?)?;
    } else {
        // rest >= -factor*i
        let Some(factor) = factor.checked_neg() else { return Ok(()) };
        range.hi = range.hi.min_with(&rest.floor_div(factor)?.add(&Ix::from(1))?)?;
    }
    Ok(())
}
