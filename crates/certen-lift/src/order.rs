//! The best order of a contraction: which factors to multiply first, so that few multiplications are made.
//!
//! A contraction is an Einstein sum: factors, each with the set of indices it depends on; the indices that are kept;
//! all others are summed. Two operands are multiplied at a time, and an index that no other operand needs is summed as
//! soon as it can be, before a multiplication if it stands in one operand alone (TeIL, Sec. 5, lifts `O(n^6)` to
//! `O(n^4)` so). The best tree is found exactly by dynamic programming over the subsets of the factors, greedily if
//! those are too many or too many have been looked at. Sizes are numbers here; that the choice is good for all sizes is
//! for the caller to show.
//!
//! Guarantees: deterministic; among equally many multiplications, first fewer outer products among the temporaries,
//! then a smaller largest temporary, then the order as written.

/// A set of indices, or of factors.
pub(crate) type Set = u64;

/// How many indices or factors there may be.
pub(crate) const MOST: usize = 64;

/// With more factors than this, the order is chosen greedily.
const EXACT_FACTORS: usize = 12;

/// A factor: what it depends on, and how many multiplications one evaluation of it makes.
#[derive(Clone, Debug)]
pub(crate) struct Factor {
    pub indices: Set,
    pub inner: u128,
}

/// An Einstein sum over indices of these sizes; `kept` are not summed.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub sizes: Vec<u128>,
    pub kept: Set,
    pub factors: Vec<Factor>,
    /// The products that stand in the program, as sets of factors.
    pub written: Vec<Set>,
    /// Whether additions count as much as multiplications.
    pub additions: bool,
}

/// A node of a contraction tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Node {
    /// A factor.
    Leaf(usize),
    /// Two earlier nodes, multiplied.
    Pair(usize, usize),
}

/// What is minimised, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Cost {
    /// Together with additions, if they count.
    multiplications: u128,
    outer_products: u32,
    largest: u128,
    /// Products that do not stand in the program.
    unwritten: u32,
}

impl Cost {
    const NOTHING: Cost = Cost { multiplications: 0, outer_products: 0, largest: 0, unwritten: 0 };

    fn with(self, other: Cost) -> Cost {
        Cost {
            multiplications: self.multiplications.saturating_add(other.multiplications),
            outer_products: self.outer_products + other.outer_products,
            largest: self.largest.max(other.largest),
            unwritten: self.unwritten + other.unwritten,
        }
    }
}

/// Something that is multiplied: its indices before and after those that nothing else needs are summed.
#[derive(Clone, Copy)]
struct Operand {
    free: Set,
    open: Set,
    /// The multiplications of one evaluation, for a factor.
    inner: u128,
    is_leaf: bool,
}

pub(crate) fn elements(set: Set) -> impl Iterator<Item = usize> {
    let mut left = set;
    std::iter::from_fn(move || {
        let at = left.trailing_zeros() as usize;
        left &= left.checked_sub(1)?;
        Some(at)
    })
}

impl Problem {
    pub fn size(&self, set: Set) -> u128 {
        elements(set).fold(1, |product: u128, at| product.saturating_mul(self.sizes[at]))
    }

    fn union(&self, factors: Set) -> Set {
        elements(factors).fold(0, |all, at| all | self.factors[at].indices)
    }

    fn all(&self) -> Set {
        Set::MAX.checked_shr((MOST - self.factors.len()) as u32).unwrap_or(0)
    }

    /// The indices of a product of factors that are not summed yet: kept ones, and those that other factors need.
    pub fn open(&self, factors: Set) -> Set {
        self.union(factors) & (self.kept | self.union(self.all() & !factors))
    }

    fn operand(&self, factors: Set, open: Set) -> Operand {
        match factors.count_ones() {
            1 => {
                let Factor { indices, inner } = self.factors[factors.trailing_zeros() as usize];
                Operand { free: indices, open, inner, is_leaf: true }
            }
            _ => Operand { free: open, open, inner: 0, is_leaf: false },
        }
    }

    /// What a multiplication of two operands costs beyond making them. `kept` are the indices of the result.
    fn pair(&self, a: Operand, b: Operand, kept: Set, is_root: bool) -> Cost {
        let indices = a.open | b.open;
        let times = self.size(indices);
        let mut cost = Cost { multiplications: times, ..Cost::NOTHING };
        for operand in [a, b].into_iter().filter(|operand| operand.is_leaf) {
            let summed = operand.free != operand.open;
            let evaluations = if summed { self.size(operand.free) } else { times };
            cost.multiplications = cost.multiplications.saturating_add(evaluations.saturating_mul(operand.inner));
            if summed && operand.open != indices {
                cost.largest = cost.largest.max(self.size(operand.open));
            }
            if summed && self.additions {
                cost.multiplications = cost.multiplications.saturating_add(self.size(operand.free));
            }
        }
        if indices != kept && self.additions {
            cost.multiplications = cost.multiplications.saturating_add(times);
        }
        if !is_root {
            cost.largest = cost.largest.max(self.size(kept));
            cost.outer_products = u32::from(a.open != 0 && b.open != 0 && indices == kept && a.open & b.open == 0);
        }
        cost
    }

    /// The best tree, parts before wholes, or a good one. `splits` is how many pairs may still be looked at; with none
    /// left there is no tree.
    pub fn best(&self, splits: &mut u64) -> Option<Vec<Node>> {
        let count = self.factors.len() as u64;
        let mut afford = |needed: u64| {
            let left = splits.checked_sub(needed);
            *splits = left.unwrap_or(*splits);
            left.is_some()
        };
        if count <= EXACT_FACTORS as u64 && afford(3u64.pow(count as u32)) {
            return Some(self.exact());
        }
        afford(count.pow(3)).then(|| self.greedy())
    }

    fn exact(&self) -> Vec<Node> {
        let all = self.all();
        let subsets = all as usize + 1;
        let open: Vec<Set> = (0..subsets).map(|set| self.open(set as Set)).collect();
        let mut best: Vec<(Cost, Set)> = vec![(Cost::NOTHING, 0); subsets];
        for set in (1..=all).filter(|set| set.count_ones() > 1) {
            let mut found: Option<(Cost, Set)> = None;
            let unwritten = u32::from(!self.written.contains(&set));
            // Every split once: the first factor is on the left. Large left sides come first, as `a * b * c` is
            // written.
            let first = set & set.wrapping_neg();
            let rest = set & !first;
            let mut more = (rest - 1) & rest;
            loop {
                let (left, right) = (first | more, rest & !more);
                let [a, b] = [left, right].map(|side| self.operand(side, open[side as usize]));
                let below = best[left as usize].0.with(best[right as usize].0);
                let pair = self.pair(a, b, open[set as usize], set == all);
                let cost = below.with(Cost { unwritten, ..pair });
                if found.is_none_or(|(least, _)| cost < least) {
                    found = Some((cost, left));
                }
                if more == 0 {
                    break;
                }
                more = (more - 1) & rest;
            }
            best[set as usize] = found.unwrap_or((Cost::NOTHING, 0));
        }
        let mut nodes = Vec::new();
        let mut done: Vec<usize> = Vec::new();
        let mut todo = vec![(all, false)];
        while let Some((set, parts_done)) = todo.pop() {
            let left = best[set as usize].1;
            match parts_done {
                _ if set.count_ones() == 1 => nodes.push(Node::Leaf(set.trailing_zeros() as usize)),
                false => {
                    todo.extend([(set, true), (set & !left, false), (left, false)]);
                    continue;
                }
                true => {
                    let right = done.pop().unwrap_or(0);
                    nodes.push(Node::Pair(done.pop().unwrap_or(0), right));
                }
            }
            done.push(nodes.len() - 1);
        }
        nodes
    }

    /// The cheapest pair first, until one operand is left.
    fn greedy(&self) -> Vec<Node> {
        let mut nodes: Vec<Node> = (0..self.factors.len()).map(Node::Leaf).collect();
        let mut waiting: Vec<(usize, Set)> = (0..nodes.len()).map(|at| (at, 1 << at)).collect();
        while waiting.len() > 1 {
            let mut found: Option<(Cost, usize, usize)> = None;
            let opens: Vec<Set> = waiting.iter().map(|(_, set)| self.open(*set)).collect();
            // The indices that are open in at least two operands, and in at least three.
            let (mut once, mut twice, mut thrice) = (0, 0, 0);
            for open in &opens {
                (once, twice, thrice) = (once | open, twice | once & open, thrice | twice & open);
            }
            for right in 1..waiting.len() {
                for left in 0..right {
                    let [a, b] = [left, right].map(|at| self.operand(waiting[at].1, opens[at]));
                    let both = waiting[left].1 | waiting[right].1;
                    // What stays open in the product is kept or open in a third operand.
                    let elsewhere = thrice | twice & !(a.open & b.open);
                    let kept = (a.open | b.open) & (self.kept | elsewhere);
                    let cost = self.pair(a, b, kept, both == self.all());
                    if found.is_none_or(|(least, ..)| cost < least) {
                        found = Some((cost, left, right));
                    }
                }
            }
            let Some((_, left, right)) = found else { break };
            nodes.push(Node::Pair(waiting[left].0, waiting[right].0));
            waiting[left] = (nodes.len() - 1, waiting[left].1 | waiting[right].1);
            waiting.remove(right);
        }
        nodes
    }
}

/// How an order is searched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrderSearch {
    /// The best one, unless there are too many factors.
    Best,
    /// The cheapest product first.
    Greedy,
}

/// The order of products of an Einstein sum of tensors, with the fewest multiplications and additions together: pairs
/// of what is multiplied, until one is left. Factors count from 0, products follow them. `sizes` are those of all
/// indices, `kept` those that are not summed.
///
/// Code that follows it sums an index as soon as nothing else needs it, and what one factor alone has before the product.
/// With more than 64 factors or indices, the order is that of the factors.
///
/// ```
/// use certen_lift::{OrderSearch, pairwise};
/// // A matrix product that is multiplied with a vector: A (B x), not (A B) x.
/// let factors = [vec![0, 1], vec![1, 2], vec![2]];
/// assert_eq!(pairwise(&[10, 20, 30], &[0], &factors, OrderSearch::Best), [(1, 2), (0, 3)]);
/// ```
pub fn pairwise(sizes: &[usize], kept: &[usize], factors: &[Vec<usize>], search: OrderSearch) -> Vec<(usize, usize)> {
    let count = factors.len();
    let known = |index: &usize| *index < sizes.len();
    if count > MOST || sizes.len() > MOST || !factors.iter().flatten().chain(kept).all(known) {
        return (1..count).map(|at| (if at == 1 { 0 } else { count + at - 2 }, at)).collect();
    }
    let set = |indices: &[usize]| indices.iter().fold(0, |set: Set, index| set | 1 << index);
    let problem = Problem {
        sizes: sizes.iter().map(|size| *size as u128).collect(),
        kept: set(kept),
        factors: factors.iter().map(|indices| Factor { indices: set(indices), inner: 0 }).collect(),
        written: (2..=count).map(|first| Set::MAX >> (MOST - first)).collect(),
        additions: true,
    };
    let nodes = match search {
        OrderSearch::Best if count <= EXACT_FACTORS => problem.exact(),
        _ => problem.greedy(),
    };
    let (mut pairs, mut values) = (Vec::with_capacity(count), Vec::with_capacity(nodes.len()));
    for node in nodes {
        values.push(match node {
            Node::Leaf(factor) => factor,
            Node::Pair(a, b) => {
                pairs.push((values[a], values[b]));
                count + pairs.len() - 1
            }
        });
    }
    pairs
}

#[cfg(test)]
mod tests;
