//! The order of a contraction: a path as NumPy writes it, and the steps that follow it.
//!
//! Each entry of a path takes operands by their positions among those that are left, contracts them, and puts the
//! result after the others. An index that nothing else needs is summed in the entry; what only one of several factors
//! has is summed in a step of its own before they are multiplied, since a sum of products with a common factor is one
//! product.
//!
//! Steps that handle the small elements of a batch one after the other, as in spectral elements, are a *chain*: their results begin
//! with the index of the batch, so that native code takes some elements through all of them together.

use certen_dialects::einsum::{Axis, Einsum, EinsumError, Product};
use certen_lift::{OrderSearch, pairwise};

use super::Order;

/// An order, and what it leads to.
#[derive(Debug)]
pub(super) struct Plan {
    /// As NumPy writes it.
    pub path: Vec<Vec<usize>>,
    /// What is computed, the result last.
    pub steps: Vec<Product>,
    /// After each step, what is left.
    pub left: Vec<Vec<usize>>,
    /// Whether they are a chain.
    pub is_chain: bool,
}

/// A batch has as many elements at least, and other indices of a chain have fewer.
const MANY_ELEMENTS: usize = 32;

impl Plan {
    pub fn new(einsum: &Einsum, order: &Order) -> Result<Plan, EinsumError> {
        let mut plan = Plan::in_order(einsum, order)?;
        if let Some(kept) = plan.chain(einsum) {
            plan.steps.iter_mut().zip(kept).for_each(|(step, kept)| step.kept = kept);
            plan.is_chain = true;
        }
        Ok(plan)
    }

    fn in_order(einsum: &Einsum, order: &Order) -> Result<Plan, EinsumError> {
        let operands = einsum.operands().len();
        let at_once = || vec![(0..operands).collect::<Vec<_>>()];
        let nothing_summed = || einsum.output().len() == einsum.indices().len();
        match order {
            Order::AsWritten => {
                let steps = vec![einsum.as_written()];
                Ok(Plan { path: at_once(), steps, left: vec![vec![operands]], is_chain: false })
            }
            Order::Path(path) => follow(einsum, path.clone()),
            _ if operands <= 2 || nothing_summed() => follow(einsum, at_once()),
            Order::Best => follow(einsum, path(einsum, OrderSearch::Best, None)),
            Order::Greedy => follow(einsum, path(einsum, OrderSearch::Greedy, None)),
            Order::BestWithin(most) => follow(einsum, path(einsum, OrderSearch::Best, Some(*most))),
            Order::GreedyWithin(most) => follow(einsum, path(einsum, OrderSearch::Greedy, Some(*most))),
        }
    }

    /// If the steps are a chain, what each keeps: of what it takes from the one before, the index of the batch first and others in
    /// their places, with those that it brings in place of what it sums.
    fn chain(&self, einsum: &Einsum) -> Option<Vec<Vec<usize>>> {
        let (batch, size) = (*einsum.output().first()?, |index: &usize| einsum.indices()[*index].size);
        let is_small = |index: &usize| *index == batch || (2..MANY_ELEMENTS).contains(&size(index));
        if self.steps.len() < 2 || size(&batch) < MANY_ELEMENTS {
            return None;
        }
        let operands = einsum.operands().len();
        let mut all: Vec<Vec<usize>> = Vec::with_capacity(self.steps.len());
        for (at, step) in self.steps.iter().enumerate() {
            let [first, second] = step.factors[..] else { return None };
            let own = |value: usize| match value.checked_sub(operands) {
                Some(made) => all.get(made).cloned().unwrap_or_default(),
                None => indices(einsum, &self.steps, value),
            };
            let is_taken =
                |value: usize| if at == 0 { own(value).first() == Some(&batch) } else { value == operands + at - 1 };
            let (element, matrix) = match [first, second].map(is_taken) {
                [true, false] => (own(first), own(second)),
                [false, true] => (own(second), own(first)),
                _ => return None,
            };
            let summed = einsum.summed(&self.steps, step);
            let is_one = !matrix.contains(&batch) && !summed.is_empty() && summed.iter().all(|i| matrix.contains(i));
            if !is_one || !element.iter().chain(&matrix).all(is_small) || !step.kept.contains(&batch) {
                return None;
            }
            let mut brought = matrix.into_iter().filter(|index| step.kept.contains(index) && !element.contains(index));
            let mut kept = vec![batch];
            for index in element.iter().filter(|index| **index != batch) {
                match step.kept.contains(index) {
                    true => kept.push(*index),
                    false => kept.extend(brought.next()),
                }
            }
            kept.extend(brought);
            all.push(kept);
        }
        // The result is as it was asked for.
        *all.last_mut()? = einsum.output().to_vec();
        Some(all)
    }

    /// How many multiplications and additions all steps make.
    pub fn operations(&self, einsum: &Einsum) -> u128 {
        self.steps.iter().fold(0, |sum: u128, step| sum.saturating_add(operations(einsum, &self.steps, step)))
    }
}

/// How many multiplications and additions a step makes: one addition for each product that is summed. Additions of
/// inner sums to outer ones are not counted, as usual.
pub(super) fn operations(einsum: &Einsum, steps: &[Product], step: &Product) -> u128 {
    let summed = einsum.summed(steps, step);
    let size = |index: &usize| einsum.indices()[*index].size as u128;
    let times = step.kept.iter().chain(&summed).map(size).fold(1, u128::saturating_mul);
    times.saturating_mul(step.factors.len() as u128 - u128::from(summed.is_empty()))
}

/// The path of a good order whose intermediate results have no more elements than the limit, if there is one.
fn path(einsum: &Einsum, search: OrderSearch, most: Option<usize>) -> Vec<Vec<usize>> {
    let sizes: Vec<usize> = einsum.indices().iter().map(|index| index.size).collect();
    let mut values: Vec<Vec<usize>> = (0..einsum.operands().len()).map(|at| indices(einsum, &[], at)).collect();
    let mut left: Vec<usize> = (0..values.len()).collect();
    let mut path = Vec::with_capacity(values.len());
    for (a, b) in pairwise(&sizes, einsum.output(), &values, search) {
        let positions: Vec<usize> = (0..left.len()).filter(|at| [a, b].contains(&left[*at])).collect();
        left.retain(|value| ![a, b].contains(value));
        let needed = |i: &usize| einsum.output().contains(i) || left.iter().any(|value| values[*value].contains(i));
        let mut kept: Vec<usize> = values[a].iter().chain(&values[b]).copied().filter(needed).collect();
        kept.sort_unstable();
        kept.dedup();
        let elements = kept.iter().fold(1usize, |elements, index| elements.saturating_mul(sizes[*index]));
        if !left.is_empty() && most.is_some_and(|most| elements > most) {
            path.push((0..left.len() + 2).collect());
            break;
        }
        left.push(values.len());
        values.push(kept);
        path.push(positions);
    }
    path
}

/// The indices that a value depends on, each once.
fn indices(einsum: &Einsum, steps: &[Product], value: usize) -> Vec<usize> {
    let mut indices = Vec::new();
    for axis in einsum.axes(steps, value) {
        if let Axis::Index(index) = axis
            && !indices.contains(&index)
        {
            indices.push(index);
        }
    }
    indices
}

/// The steps along a path.
fn follow(einsum: &Einsum, path: Vec<Vec<usize>>) -> Result<Plan, EinsumError> {
    let operands = einsum.operands().len();
    let mut waiting: Vec<usize> = (0..operands).collect();
    let mut plan = Plan { path: Vec::new(), steps: Vec::new(), left: Vec::new(), is_chain: false };
    for (at, entry) in path.iter().enumerate() {
        let mut factors = Vec::with_capacity(entry.len());
        for (before, &position) in entry.iter().enumerate() {
            let missing = || EinsumError::PathPosition { step: at, position, operands: waiting.len() };
            factors.push((position, *waiting.get(position).ok_or_else(missing)?));
            if entry[..before].contains(&position) {
                return Err(EinsumError::PathStep { step: at, twice: Some(position) });
            }
        }
        if factors.is_empty() {
            return Err(EinsumError::PathStep { step: at, twice: None });
        }
        factors.sort_unstable();
        let mut factors: Vec<usize> = factors.into_iter().map(|(_, value)| value).collect();
        waiting.retain(|value| !factors.contains(value));

        let own: Vec<Vec<usize>> = factors.iter().map(|value| indices(einsum, &plan.steps, *value)).collect();
        let others: Vec<Vec<usize>> = waiting.iter().map(|value| indices(einsum, &plan.steps, *value)).collect();
        let needed = |index: &usize| einsum.output().contains(index) || others.iter().any(|o| o.contains(index));
        let shared = |index: &usize| own.iter().filter(|own| own.contains(index)).count() > 1;
        for place in 0..factors.len() {
            let kept: Vec<usize> = own[place].iter().copied().filter(|i| needed(i) || shared(i)).collect();
            if factors.len() > 1 && kept.len() < own[place].len() {
                plan.steps.push(Product { factors: vec![factors[place]], kept });
                factors[place] = operands + plan.steps.len() - 1;
                let left = factors.iter().chain(&waiting).copied().collect();
                plan.left.push(left);
            }
        }
        let kept = match waiting.is_empty() {
            true => einsum.output().to_vec(),
            false => {
                let mut kept: Vec<usize> = Vec::new();
                for index in own.iter().flatten().filter(|index| needed(index)) {
                    if !kept.contains(index) {
                        kept.push(*index);
                    }
                }
                kept
            }
        };
        let unchanged = match factors.as_slice() {
            [value] => {
                let axes = einsum.axes(&plan.steps, *value);
                axes.iter().copied().eq(kept.iter().copied().map(Axis::Index))
                    && !(waiting.is_empty() && *value < operands)
            }
            _ => false,
        };
        if unchanged {
            waiting.extend(factors);
        } else {
            plan.steps.push(Product { factors, kept });
            waiting.push(operands + plan.steps.len() - 1);
            plan.left.push(waiting.clone());
        }
    }
    if waiting.len() > 1 {
        return Err(EinsumError::PathEnds { left: waiting.len() });
    }
    if plan.steps.is_empty() {
        return Err(EinsumError::PathEnds { left: 1 });
    }
    plan.path = path;
    Ok(plan)
}
