//! Examples: small integers that satisfy conditions, found by trying.
//!
//! The prover finds integers too; these are for people, so small ones come first. Each name gets a few candidates, near
//! its bounds and where a comparison changes, and assignments are tried in order of the sum of their positions in the
//! lists of candidates. The number of conditions that are evaluated is limited.

use std::collections::{BTreeMap, BTreeSet};

use certen_syntax::Name;

use crate::ix::Atom;
use crate::{Cond, Ix};

/// Steps spent on finding something nicer than what is there already.
pub(crate) const NICER: usize = 3_000;

/// Steps spent where the prover could not tell.
pub(crate) const LAST_RESORT: usize = 20_000;

/// With more names than this nothing is tried.
const MAX_NAMES: usize = 24;

/// Whether all conditions hold.
pub(crate) fn satisfies(conditions: &[&Cond], values: &BTreeMap<Name, i64>) -> bool {
    conditions.iter().all(|cond| cond.eval(&|name| values.get(&name).copied()) == Ok(true))
}

/// Integers for the names that satisfy all conditions.
pub(crate) fn search(names: &BTreeSet<Name>, conditions: &[&Cond], steps: usize) -> Option<BTreeMap<Name, i64>> {
    if names.len() > MAX_NAMES || conditions.len() > steps {
        return None;
    }
    let names: Vec<Name> = names.iter().copied().collect();
    let mut comparisons = Vec::new();
    conditions.iter().for_each(|cond| cond.comparisons(&mut comparisons));
    let candidates: Vec<Vec<i64>> = names.iter().map(|name| candidates(*name, conditions, &comparisons)).collect();
    let mut search = Search { names, conditions, candidates, chosen: Vec::new(), steps };
    let most = search.candidates.iter().map(|c| c.len() - 1).sum::<usize>();
    let found = (0..=most).find(|total| search.steps > 0 && search.assign(*total));
    found.map(|_| search.names.into_iter().zip(search.chosen).collect())
}

struct Search<'a> {
    names: Vec<Name>,
    conditions: &'a [&'a Cond],
    candidates: Vec<Vec<i64>>,
    chosen: Vec<i64>,
    steps: usize,
}

impl Search<'_> {
    /// Tries all choices whose positions sum to `total`; leaves the first accepted one in `chosen`.
    fn assign(&mut self, total: usize) -> bool {
        if self.steps == 0 {
            return false;
        }
        self.steps -= 1;
        let at = self.chosen.len();
        if at == self.candidates.len() {
            return total == 0 && self.accepted();
        }
        let last = at + 1 == self.candidates.len();
        for position in (if last { total } else { 0 })..=total {
            let Some(&value) = self.candidates[at].get(position) else { break };
            self.chosen.push(value);
            if self.assign(total - position) {
                return true;
            }
            self.chosen.pop();
        }
        false
    }

    fn accepted(&mut self) -> bool {
        let value = |name: Name| self.names.binary_search(&name).ok().map(|at| self.chosen[at]);
        for cond in self.conditions {
            self.steps = self.steps.saturating_sub(1);
            if cond.eval(&value) != Ok(true) {
                return false;
            }
        }
        true
    }
}

/// Values worth trying for a name: near its bounds, and where a comparison changes. Never none.
fn candidates(name: Name, conditions: &[&Cond], comparisons: &[&Ix]) -> Vec<i64> {
    let (low, high) = bounds(name, conditions);
    let start = low.or(high.map(|high| high.saturating_sub(4))).unwrap_or(0);
    let mut values: BTreeSet<i64> = (0..5).map(|d| start.saturating_add(d)).collect();
    values.extend(high);
    if low.is_none() {
        values.insert(start.saturating_sub(1));
    }
    for e in comparisons {
        for (mono, coefficient) in e.terms() {
            if mono.as_slice() == [Atom::Var(name)] {
                let turn = e.constant_part().saturating_neg().checked_div_euclid(*coefficient).unwrap_or(0);
                values.extend([turn.saturating_sub(1), turn, turn.saturating_add(1)]);
            }
        }
    }
    let inside = |v: &i64| low.is_none_or(|low| *v >= low) && high.is_none_or(|high| *v <= high);
    let mut values: Vec<i64> = values.into_iter().filter(inside).collect();
    if values.is_empty() {
        values.push(start);
    }
    values.sort_by_key(|v| (v.unsigned_abs(), *v < 0));
    values
}

/// The bounds that conditions over this name alone give.
fn bounds(name: Name, conditions: &[&Cond]) -> (Option<i64>, Option<i64>) {
    let (mut low, mut high) = (None::<i64>, None::<i64>);
    for cond in conditions {
        let (Cond::Ge(e) | Cond::Eq(e)) = cond else { continue };
        let [(mono, coefficient)] = e.terms() else { continue };
        if mono.as_slice() != [Atom::Var(name)] {
            continue;
        }
        let at_least = e.constant_part().checked_neg().and_then(|c| ceil_div(c, *coefficient));
        let both = matches!(cond, Cond::Eq(_));
        if both || *coefficient > 0 {
            low = low.max(at_least);
        }
        if both || *coefficient < 0 {
            let at_most = coefficient.checked_neg().and_then(|c| e.constant_part().checked_div_euclid(c));
            high = match (high, at_most) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
    }
    (low, high)
}

fn ceil_div(a: i64, b: i64) -> Option<i64> {
    a.checked_neg()?.checked_div_euclid(b)?.checked_neg()
}
