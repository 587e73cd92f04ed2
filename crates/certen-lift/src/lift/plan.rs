//! A way to compute a contraction: the order, what it costs for all sizes, and whether its reads stay safe.

use certen_core::{ElemType, Term};
use certen_index::{Ix, IxError};

use super::einstein::{EinsteinSum, SumFactor};
use super::{GivenUp, Lifter};
use crate::free::reads_stand_alone;
use crate::order::{Factor, Node, Problem, Set, elements};

/// A way to compute a contraction.
pub(super) struct Plan {
    pub(super) factors: Vec<SumFactor>,
    pub(super) nodes: Vec<Node>,
    /// The factors of each node, and the indices that are left in it.
    pub(super) sets: Vec<Set>,
    pub(super) open: Vec<Set>,
    pub(super) cost: Ix,
    pub(super) multiply: bool,
    pub(super) bind: bool,
}

impl Plan {
    /// Whether what a node is multiplied in has one product for each of its elements.
    pub(super) fn is_used_once(&self, node: usize) -> bool {
        self.nodes.iter().any(|other| match *other {
            Node::Pair(a, b) if a == node || b == node => self.open[node] == self.open[a] | self.open[b],
            _ => false,
        })
    }

    /// What a node costs; the root as often as what is not bound is computed again.
    fn cost_of(&self, sum: &EinsteinSum, again: &[Ix], at: usize) -> Result<Ix, IxError> {
        let is_root = at + 1 == self.nodes.len();
        let product = |set: Set| elements(set).try_fold(Ix::from(1), |p, place| p.mul(&sum.indices[place].extent));
        // What is evaluated in place, and what is bound before.
        let (mut inline, mut bound) = (Ix::from(0), Ix::from(0));
        match self.nodes[at] {
            Node::Leaf(factor) if is_root => {
                let part = &self.factors[factor];
                inline = product(part.indices())?.mul(&part.inner)?;
            }
            Node::Leaf(_) => {}
            Node::Pair(a, b) => {
                let indices = self.open[a] | self.open[b];
                let times = product(indices)?;
                inline = inline.add(&times)?;
                for side in [a, b] {
                    let Node::Leaf(factor) = self.nodes[side] else { continue };
                    let part = &self.factors[factor];
                    match self.open[side] {
                        open if open == part.indices() => inline = inline.add(&times.mul(&part.inner)?)?,
                        open => {
                            let cost = product(part.indices())?.mul(&part.inner)?;
                            let target = if open == indices { &mut inline } else { &mut bound };
                            *target = target.add(&cost)?;
                        }
                    }
                }
            }
        }
        if is_root && !self.bind {
            inline = again.iter().try_fold(inline, |cost, size| cost.mul(size))?;
        }
        inline.add(&bound)
    }
}

impl Lifter<'_> {
    /// The best way to compute a contraction, and what it costs. Sums over what no factor depends on become factors
    /// with `multiply`, else they stay around the rest. With `bind`, the result is bound too, where it would be
    /// recomputed.
    pub(super) fn plan(
        &mut self,
        sum: &EinsteinSum,
        elem: ElemType,
        multiply: bool,
        bind: bool,
    ) -> Result<Option<Plan>, GivenUp> {
        let orphans = sum.orphans();
        let mut factors = sum.factors.clone();
        let mut again: Vec<Ix> = sum.outside.iter().map(|index| index.extent.clone()).collect();
        for place in elements(orphans) {
            let extent = sum.indices[place].extent.clone();
            if multiply {
                let term = self.terms.add(Term::Index(extent, elem))?;
                factors.push(SumFactor { term, order: Vec::new(), inner: Ix::from(0), under: 0 });
            } else {
                again.push(extent);
            }
        }
        if bind && again.iter().all(|size| self.sizes.nominal(size) <= 1) {
            return Ok(None);
        }
        let problem = Problem {
            sizes: sum.indices.iter().map(|index| self.sizes.nominal(&index.extent)).collect(),
            kept: sum.kept,
            factors: factors
                .iter()
                .map(|part| Factor { indices: part.indices(), inner: self.sizes.nominal(&part.inner) })
                .collect(),
            written: sum.products.clone(),
            additions: false,
        };
        let Some(nodes) = problem.best(&mut self.splits) else { return Ok(None) };
        let mut plan = Plan { factors, nodes, sets: Vec::new(), open: Vec::new(), cost: Ix::from(0), multiply, bind };
        for at in 0..plan.nodes.len() {
            let set = match plan.nodes[at] {
                Node::Leaf(factor) => 1 << factor,
                Node::Pair(a, b) => plan.sets[a] | plan.sets[b],
            };
            plan.sets.push(set);
            plan.open.push(problem.open(set));
            match plan.cost_of(sum, &again, at).and_then(|cost| plan.cost.add(&cost)) {
                Ok(cost) => plan.cost = cost,
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(plan))
    }

    /// Whether every read stays under indices that make it safe: those around it as written that are not around it any
    /// more have ranges that are not empty, or the read is in bounds without them.
    pub(super) fn is_safe(&mut self, sum: &EinsteinSum, plan: &Plan) -> bool {
        let root = plan.nodes.len() - 1;
        for (at, node) in plan.nodes.iter().enumerate() {
            let (indices, sides) = match *node {
                Node::Pair(a, b) => (plan.open[a] | plan.open[b], vec![a, b]),
                Node::Leaf(_) if at == root => (plan.open[at], vec![at]),
                Node::Leaf(_) => continue,
            };
            let in_place = at == root && !plan.bind;
            for side in sides {
                let Node::Leaf(factor) = plan.nodes[side] else { continue };
                let part = &plan.factors[factor];
                let own = part.indices();
                let summed_before = own != plan.open[side];
                let is_bound = !in_place || (summed_before && plan.open[side] != indices);
                let now = if summed_before && plan.open[side] != indices { own } else { own | indices };
                let now = if is_bound { now } else { now | sum.kept };
                let gone = elements((part.under | sum.kept) & !now).map(|place| &sum.indices[place]);
                let gone = gone.chain(sum.outside.iter().filter(|_| is_bound));
                let safe =
                    gone.map(|index| index.range.clone()).collect::<Vec<_>>().iter().all(|r| self.is_not_empty(r));
                let ranges = || elements(now).map(|p| (sum.indices[p].name, sum.indices[p].range.clone())).collect();
                if !safe && !reads_stand_alone(&self.terms, part.term, &ranges()) {
                    return false;
                }
            }
        }
        true
    }
}
