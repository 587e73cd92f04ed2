//! Examples: small integers that satisfy conditions, found by trying.
//!
//! The prover finds integers too; these are for people, so small ones come first. Each name gets a few candidates, near
//! its bounds and where a comparison changes, and assignments are tried in order of the sum of their positions in the
//! lists of candidates. The number of conditions that are evaluated is limited.

use std::collections::{BTreeMap, BTreeSet};

use certen_syntax::Name;

use crate::cond::Cond;
use crate::ix::{Atom, Ix, Mono};
use crate::prover::{Answer, FEW_STEPS, satisfy};

/// Steps spent on finding something nicer than what is there already.
pub(crate) const NICER: usize = 3_000;

/// Steps spent where the prover could not tell.
pub(crate) const LAST_RESORT: usize = 20_000;

/// Values of factors tried where the prover could not tell.
pub(crate) const INSTANCES: usize = 60;

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
    let mut search = ExampleSearch { names, conditions, candidates, chosen: Vec::new(), steps };
    let most = search.candidates.iter().map(|c| c.len() - 1).sum::<usize>();
    let found = (0..=most).find(|total| search.steps > 0 && search.assign(*total));
    found.map(|_| search.names.into_iter().zip(search.chosen).collect())
}

/// Integers for the names that satisfy all conditions, found by giving factors of products values until none is left
/// and leaving the rest, which is linear, to the prover.
pub(crate) fn instances(names: &BTreeSet<Name>, conditions: &[&Cond], tries: usize) -> Option<BTreeMap<Name, i64>> {
    if names.len() > MAX_NAMES || conditions.len() > tries {
        return None;
    }
    let mut comparisons = Vec::new();
    conditions.iter().for_each(|cond| cond.comparisons(&mut comparisons));
    let fixed = factors(&comparisons);
    let candidates: Vec<Vec<i64>> = fixed.iter().map(|name| candidates(*name, conditions, &comparisons)).collect();
    let most = candidates.iter().map(|c| c.len() - 1).sum::<usize>();
    let mut choices = Vec::new();
    (0..=most).for_each(|total| choose(&candidates, total, &mut Vec::new(), &mut choices, tries));
    choices.into_iter().find_map(|choice| {
        let value = |name: Name| fixed.iter().position(|n| *n == name).map(|at| Ix::from(choice[at]));
        let linear = conditions.iter().map(|cond| cond.substitute(&value).ok()).collect::<Option<Vec<Cond>>>()?;
        let Answer::Satisfied(model) =
            satisfy(&[], &[], &linear.into_iter().fold(Cond::always(), Cond::and), FEW_STEPS)
        else {
            return None;
        };
        let chosen = |name: &Name| fixed.iter().position(|n| n == name).map(|at| choice[at]);
        let full = |name: &Name| (*name, chosen(name).or_else(|| model.get(name).copied()).unwrap_or(0));
        let found: BTreeMap<Name, i64> = names.iter().map(full).collect();
        satisfies(conditions, &found).then_some(found)
    })
}

/// Names such that every product has at most one factor beside them; those in most products first.
fn factors(comparisons: &[&Ix]) -> Vec<Name> {
    let mut fixed: Vec<Name> = Vec::new();
    let monomials = comparisons.iter().flat_map(|e| e.terms()).map(|(mono, _)| mono);
    let products: Vec<&Mono> = monomials.filter(|mono| mono.len() > 1).collect();
    loop {
        let mut weights: BTreeMap<Name, usize> = BTreeMap::new();
        for product in &products {
            let mut open = Vec::new();
            for atom in product.iter() {
                let mut names = BTreeSet::new();
                Ix::monomial(&Mono::from_iter([atom.clone()]), 1).collect_names(&mut names);
                names.retain(|name| !fixed.contains(name));
                // A name that is a factor itself settles more than one inside a quotient.
                let weight = if matches!(atom, Atom::Var(_)) { 2 } else { 1 };
                open.extend((!names.is_empty()).then_some((names, weight)));
            }
            if open.len() > 1 {
                for (names, weight) in open {
                    names.into_iter().for_each(|name| *weights.entry(name).or_default() += weight);
                }
            }
        }
        let heaviest = weights.into_iter().max_by_key(|(name, weight)| (*weight, std::cmp::Reverse(*name)));
        match heaviest {
            Some((name, _)) => fixed.push(name),
            None => return fixed,
        }
    }
}

/// All choices of one from each list whose positions sum to `total`, up to so many.
fn choose(lists: &[Vec<i64>], total: usize, chosen: &mut Vec<i64>, choices: &mut Vec<Vec<i64>>, most: usize) {
    if choices.len() >= most {
        return;
    }
    let Some(list) = lists.get(chosen.len()) else {
        return if total == 0 {
            choices.push(chosen.clone())
        };
    };
    for (position, value) in list.iter().enumerate().take(total + 1) {
        chosen.push(*value);
        choose(lists, total - position, chosen, choices, most);
        chosen.pop();
    }
}

struct ExampleSearch<'a> {
    names: Vec<Name>,
    conditions: &'a [&'a Cond],
    candidates: Vec<Vec<i64>>,
    chosen: Vec<i64>,
    steps: usize,
}

impl ExampleSearch<'_> {
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
