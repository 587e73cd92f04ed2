//! Indices that stay below a size, and conditions with what they tell.

use super::*;

impl Generator<'_> {
    /// An index-level expression that is at least 0 and below a size, if there is one.
    pub(super) fn index(&mut self, c: &Scope, dim: &Dim) -> Option<Ix> {
        let mut all: Vec<Ix> = Vec::new();
        let low = c.low(dim);
        if low >= 1 {
            all.extend([lit(0), dim.shifted(-1).ix(), lit((low - 1).min(3))]);
        }
        let last = || dim.shifted(-1).ix();
        for bound in c.indices.iter().rev().take(5) {
            let i = || name(&bound.name);
            let gap = c.low(&dim.plus(-1, &bound.upper));
            if gap >= 0 {
                all.extend([i(), i(), i().shifted(gap.min(3)), Ix::Sub(last().into(), i().into())]);
                all.push(Ix::FloorDiv(i().into(), 2));
                let by = self.pick(2) as i64;
                if by <= low {
                    let call = if self.flip() { "periodic" } else { "mirror" };
                    all.push(Ix::Call(call.into(), vec![i().shifted(-by), dim.ix()]));
                }
            }
            if gap + bound.lower >= 0 && bound.lower > 0 {
                all.push(i().shifted(-bound.lower));
            }
            let double = c.low(&dim.plus(-2, &bound.upper));
            if double >= -1 {
                let twice = Ix::Mul(lit(2).into(), i().into());
                all.extend([twice.clone(), twice.shifted((double + 1).min(2))]);
            }
            if low >= 1 {
                let far = i().shifted(self.pick(5) as i64 - 2);
                all.push(match self.program.index_functions.first() {
                    Some(function) if self.flip_of(&far) => Ix::Call(function.name.clone(), vec![far, dim.ix()]),
                    _ => Ix::Call("clamp".into(), vec![far, dim.ix()]),
                });
                all.push(Ix::Mod(i().into(), low.min(3)));
            }
            for other in c.indices.iter().rev().take(3).filter(|other| other.name != bound.name) {
                if c.low(&dim.plus(-1, &bound.upper).plus(-1, &other.upper)) >= -1 {
                    all.push(Ix::Add(i().into(), name(&other.name).into()));
                }
            }
        }
        if all.is_empty() {
            return None;
        }
        let chosen = self.pick(all.len());
        if self.pick(16) == 15
            && let Some(bound) = c.indices.last()
        {
            let other = all[self.pick(all.len())].clone();
            let cond = Cond::Cmp("<", name(&bound.name), lit(1));
            return Some(Ix::If(cond.into(), all[chosen].clone().into(), other.into()));
        }
        Some(all.swap_remove(chosen))
    }

    /// A choice that takes no byte, so that what follows does not depend on it.
    pub(super) fn flip_of(&self, e: &Ix) -> bool {
        crate::ten::text::index(e).len().is_multiple_of(2)
    }

    /// A condition on what is in scope, and the scope where it holds.
    pub(super) fn condition(&mut self, c: &Scope) -> (Cond, Scope) {
        let mut inner = c.clone();
        if !c.indices.is_empty() && self.flip() {
            let at = self.pick(c.indices.len());
            let bound = &c.indices[at];
            let i = name(&bound.name);
            match self.pick(4) {
                0 => {
                    let lower = bound.lower.max(1);
                    inner.indices[at].lower = lower;
                    (Cond::Cmp("<=", lit(lower), i), inner)
                }
                1 => {
                    let upper = bound.upper.shifted(-1);
                    let cond = Cond::Cmp("<", i, upper.ix());
                    inner.indices[at].upper = upper;
                    (cond, inner)
                }
                2 => (Cond::Not(Cond::Cmp("==", i, lit(1)).into()), inner),
                _ => (Cond::Or(Cond::Cmp("!=", i.clone(), lit(0)).into(), Cond::Cmp(">", i, lit(2)).into()), inner),
            }
        } else {
            let names: Vec<String> = c.lows.keys().cloned().collect();
            if names.is_empty() {
                return (Cond::Cmp("<", lit(1), lit(2)), inner);
            }
            let size = names[self.pick(names.len())].clone();
            let low = c.lows[&size] + 1;
            inner.lows.insert(size.clone(), low);
            (Cond::Cmp(">=", name(&size), lit(low)), inner)
        }
    }
}
