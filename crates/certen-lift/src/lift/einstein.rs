//! A contraction as an Einstein sum: its indices, its factors, and which of them it is summed over.

use certen_core::{Range, TermId};
use certen_index::Ix;
use certen_syntax::Name;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Enclosing, Flat, GivenUp, IndexScope, Lifter};
use crate::free::{mentioned, rename};
use crate::order::{MOST, Set, elements};

/// An index of a contraction.
#[derive(Clone)]
pub(super) struct SumIndex {
    pub(super) name: Name,
    pub(super) range: Range,
    pub(super) extent: Ix,
}

/// A factor of a contraction.
#[derive(Clone)]
pub(super) struct SumFactor {
    pub(super) term: TermId,
    /// The indices that it depends on, in the order of their first occurrence.
    pub(super) order: Vec<usize>,
    /// The multiplications of one evaluation.
    pub(super) inner: Ix,
    /// The sums that it stands under as written.
    pub(super) under: Set,
}

impl SumFactor {
    pub(super) fn indices(&self) -> Set {
        self.order.iter().fold(0, |set, place| set | 1 << place)
    }
}

/// A contraction as an Einstein sum.
#[derive(Default)]
pub(super) struct EinsteinSum {
    pub(super) indices: Vec<SumIndex>,
    /// The indices that are bound around it; the others are summed.
    pub(super) kept: Set,
    pub(super) factors: Vec<SumFactor>,
    /// The products as written, as sets of factors.
    pub(super) products: Vec<Set>,
    /// Everything that is bound around it.
    pub(super) around: Vec<SumIndex>,
    /// What is bound around it that it does not depend on.
    pub(super) outside: Vec<SumIndex>,
}

impl EinsteinSum {
    /// Summed indices that no factor depends on.
    pub(super) fn orphans(&self) -> Set {
        let all = (0..self.indices.len()).fold(0, |set, place| set | 1 << place);
        let used = self.factors.iter().fold(self.kept, |set, part| set | part.indices());
        all & !used
    }
}

impl Lifter<'_> {
    /// The contraction as an Einstein sum; none if it has too many indices.
    pub(super) fn einstein(
        &mut self,
        scope: &IndexScope,
        flat: &Flat,
        parts: &[TermId],
    ) -> Result<Option<EinsteinSum>, GivenUp> {
        let mut sum = EinsteinSum { products: flat.products(), ..EinsteinSum::default() };
        let mut places: FxHashMap<usize, usize> = FxHashMap::default();
        let mut used: FxHashSet<Name> = FxHashSet::default();
        for index in scope.chain(flat.around) {
            self.step(1)?;
            let Enclosing { name, range, .. } = &scope.indices[index];
            used.insert(*name);
            sum.around.push(SumIndex { name: *name, range: range.clone(), extent: self.extent(range)? });
        }
        for &index in &flat.summed {
            let Enclosing { name, range, .. } = &scope.indices[index];
            if sum.indices.len() == MOST {
                return Ok(None);
            }
            let name = if used.insert(*name) { *name } else { self.names.copy(*name) };
            places.insert(index, sum.indices.len());
            sum.indices.push(SumIndex { name, range: range.clone(), extent: self.extent(range)? });
        }
        for (&part, &around) in parts.iter().zip(&flat.factors) {
            let (names, steps) = mentioned(&self.terms, part, self.steps).ok_or(GivenUp)?;
            self.step(steps + names.len() * sum.around.len())?;
            let (mut order, mut to) = (Vec::new(), FxHashMap::default());
            for name in names {
                let Some(index) = scope.chain(around).find(|index| scope.indices[*index].name == name) else {
                    continue;
                };
                let place = match places.get(&index) {
                    Some(place) => *place,
                    None if sum.indices.len() == MOST => return Ok(None),
                    None => {
                        let range = &scope.indices[index].range;
                        sum.kept |= 1 << sum.indices.len();
                        places.insert(index, sum.indices.len());
                        sum.indices.push(SumIndex { name, range: range.clone(), extent: self.extent(range)? });
                        sum.indices.len() - 1
                    }
                };
                to.insert(name, sum.indices[place].name);
                order.push(place);
            }
            let under = scope.chain(around).take_while(|index| Some(*index) != flat.around);
            let under = under.filter_map(|index| places.get(&index)).fold(0, |set, place| set | 1 << place);
            let term = rename(&mut self.terms, part, &to)?;
            let Ok(inner) = self.counts.of(&self.terms, term) else { return Ok(None) };
            sum.factors.push(SumFactor { term, order, inner, under });
        }
        let kept: Vec<Name> = elements(sum.kept).map(|place| sum.indices[place].name).collect();
        sum.outside = sum.around.iter().filter(|index| !kept.contains(&index.name)).cloned().collect();
        Ok(Some(sum))
    }
}
