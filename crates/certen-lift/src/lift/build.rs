//! A plan carried out: temporaries are bound, and the term that stands in place of the contraction is made.

use certen_core::{Binary, Binding, ReduceOp, TensorType, Term, TermId, print_term};
use certen_index::{Cond, Ix};
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use super::einstein::{EinsteinSum, SumFactor};
use super::plan::Plan;
use super::{GivenUp, Lifter};
use crate::free::rename;
use crate::order::{Node, Set, elements};
use crate::report::Contraction;

/// Factors of more parts than this are not shown in reports.
const SHOWN_PARTS: usize = 12;

/// What is multiplied: a factor, summed first over some of its indices; a temporary with the indices of its dimensions; or
/// a product that is summed in place.
#[derive(Clone)]
enum NodeOperand {
    Factor(usize, Set),
    Bound(Name, TensorType, Vec<usize>),
    InPlace(Vec<NodeOperand>, Set),
}

impl NodeOperand {
    /// The indices of its dimensions, and those that it sums.
    fn places(&self, plan: &Plan) -> (Vec<usize>, Set) {
        match self {
            NodeOperand::Factor(factor, first) => (plan.factors[*factor].order.clone(), *first),
            NodeOperand::Bound(_, _, kept) => (kept.clone(), 0),
            NodeOperand::InPlace(sides, summed) => {
                let all = sides.iter().map(|side| side.places(plan));
                all.fold((Vec::new(), *summed), |(places, set), (more, first)| ([places, more].concat(), set | first))
            }
        }
    }
}

impl Lifter<'_> {
    /// Binds the temporaries of a plan; gives the term that stands in place of the contraction.
    pub(super) fn build(&mut self, at: Name, sum: &EinsteinSum, plan: &Plan, before: Ix) -> Result<TermId, GivenUp> {
        let mut order = Vec::new();
        let mut operands: Vec<NodeOperand> = Vec::new();
        let root = plan.nodes.len() - 1;
        let mut result = None;
        for (node, shape) in plan.nodes.iter().enumerate() {
            let (sides, indices) = match *shape {
                Node::Leaf(factor) => {
                    operands.push(NodeOperand::Factor(factor, 0));
                    if node != root {
                        continue;
                    }
                    (vec![NodeOperand::Factor(factor, 0)], plan.factors[factor].indices())
                }
                Node::Pair(a, b) => {
                    let indices = plan.open[a] | plan.open[b];
                    let mut sides = Vec::new();
                    for side in [a, b] {
                        sides.push(match operands[side] {
                            NodeOperand::Factor(factor, _) => {
                                let first = plan.factors[factor].indices() & !plan.open[side];
                                // Summed in place if that is done once, else before.
                                if first == 0 || plan.open[side] == indices {
                                    NodeOperand::Factor(factor, first)
                                } else {
                                    self.bind(sum, plan, &[NodeOperand::Factor(factor, 0)], first, &mut order)?
                                }
                            }
                            ref bound => bound.clone(),
                        });
                    }
                    (sides, indices)
                }
            };
            let summed = indices & !plan.open[node];
            if node != root && plan.open[node] != 0 && sum.outside.is_empty() && plan.is_used_once(node) {
                // An element for each iteration of what uses it: nothing is computed twice without a temporary.
                operands.push(NodeOperand::InPlace(sides, summed));
            } else if node == root && !plan.bind {
                let own = |place: usize| sum.indices[place].name;
                order.push(format!("{at} = {}", self.words(sum, plan, &sides, summed)));
                result = Some(self.body(sum, plan, &sides, summed, &own)?);
            } else {
                let bound = self.bind(sum, plan, &sides, summed, &mut order)?;
                operands.push(bound);
            }
        }
        let own = |place: usize| sum.indices[place].name;
        let mut term = match result {
            Some(term) => term,
            None => {
                let bound = operands.last().cloned().ok_or(GivenUp)?;
                self.operand(sum, plan, &bound, &own)?
            }
        };
        if !plan.multiply {
            term = self.sums(sum, term, &elements(sum.orphans()).collect::<Vec<_>>(), &own)?;
        }
        let factors = sum.factors.iter().map(|part| self.shown(part.term)).collect();
        let after = plan.cost.clone();
        let of_floats = self.terms.ty(term).elem.is_float();
        self.report.contractions.push(Contraction { binding: at, factors, order, before, of_floats, after });
        Ok(term)
    }

    /// Binds the sum of a product to a new name, or finds the equal one that is there.
    fn bind(
        &mut self,
        sum: &EinsteinSum,
        plan: &Plan,
        sides: &[NodeOperand],
        summed: Set,
        order: &mut Vec<String>,
    ) -> Result<NodeOperand, GivenUp> {
        let (mut kept, mut names) = (Vec::new(), FxHashMap::default());
        let (places, before) = NodeOperand::InPlace(sides.to_vec(), summed).places(plan);
        for place in places {
            if names.contains_key(&place) {
                continue;
            }
            if before >> place & 1 == 1 {
                names.insert(place, self.names.summed(names.len() - kept.len()));
            } else {
                names.insert(place, self.names.kept(kept.len()));
                kept.push(place);
            }
        }
        let own = |place: usize| names.get(&place).copied().unwrap_or(sum.indices[place].name);
        let mut term = self.body(sum, plan, sides, summed, &own)?;
        for place in kept.iter().rev() {
            term = self.terms.add(Term::Gen(own(*place), sum.indices[*place].range.clone(), term))?;
        }
        let name = match self.shared.get(&term) {
            Some(name) => *name,
            None => {
                let name = self.names.temporary();
                self.shared.insert(term, name);
                self.bindings.push(Binding { name, term });
                name
            }
        };
        order.push(format!("{name} = {}", self.words(sum, plan, sides, summed)));
        Ok(NodeOperand::Bound(name, self.terms.ty(term).clone(), kept))
    }

    /// The sum of a product of operands.
    fn body(
        &mut self,
        sum: &EinsteinSum,
        plan: &Plan,
        sides: &[NodeOperand],
        summed: Set,
        names: &impl Fn(usize) -> Name,
    ) -> Result<TermId, GivenUp> {
        let mut product = None;
        for side in sides {
            let term = self.operand(sum, plan, side, names)?;
            product = Some(match product {
                None => term,
                Some(left) => self.terms.add(Term::Binary(Binary::Mul, left, term))?,
            });
        }
        self.sums(sum, product.ok_or(GivenUp)?, &elements(summed).collect::<Vec<_>>(), names)
    }

    fn operand(
        &mut self,
        sum: &EinsteinSum,
        plan: &Plan,
        side: &NodeOperand,
        names: &impl Fn(usize) -> Name,
    ) -> Result<TermId, GivenUp> {
        match side {
            NodeOperand::Factor(factor, first) => {
                let SumFactor { term, order, .. } = &plan.factors[*factor];
                let to = order.iter().map(|place| (sum.indices[*place].name, names(*place))).collect();
                let term = rename(&mut self.terms, *term, &to)?;
                self.sums(sum, term, &elements(*first).collect::<Vec<_>>(), names)
            }
            NodeOperand::Bound(name, ty, kept) => {
                let read = |place: &usize| Ix::var(names(*place)).sub(&sum.indices[*place].range.lo);
                let indices = kept.iter().map(read).collect::<Result<Vec<_>, _>>()?;
                Ok(self.terms.element(*name, ty.clone(), indices)?)
            }
            NodeOperand::InPlace(sides, summed) => self.body(sum, plan, sides, *summed, names),
        }
    }

    /// A term summed over indices, the first one outermost.
    fn sums(
        &mut self,
        sum: &EinsteinSum,
        mut term: TermId,
        places: &[usize],
        names: &impl Fn(usize) -> Name,
    ) -> Result<TermId, GivenUp> {
        for place in places.iter().rev() {
            let range = sum.indices[*place].range.clone();
            term = self.terms.add(Term::Reduce(ReduceOp::Sum, names(*place), range, Cond::always(), term))?;
        }
        Ok(term)
    }

    /// One step of an order in words: `C u over c`.
    fn words(&self, sum: &EinsteinSum, plan: &Plan, sides: &[NodeOperand], summed: Set) -> String {
        let list =
            |set: Set| elements(set).map(|place| sum.indices[place].name.as_str()).collect::<Vec<_>>().join(", ");
        let side = |side: &NodeOperand| match side {
            NodeOperand::Factor(factor, 0) => self.shown(plan.factors[*factor].term),
            NodeOperand::Factor(factor, first) => {
                format!("({} over {})", self.shown(plan.factors[*factor].term), list(*first))
            }
            NodeOperand::Bound(name, ..) => name.to_string(),
            NodeOperand::InPlace(sides, summed) => format!("({})", self.words(sum, plan, sides, *summed)),
        };
        let product = sides.iter().map(side).collect::<Vec<_>>().join(" ");
        if summed == 0 { product } else { format!("{product} over {}", list(summed)) }
    }

    /// A factor for people: a tensor by its name, something larger only if it is short.
    fn shown(&self, term: TermId) -> String {
        match self.terms.get(term) {
            Term::Ref(name, _) => name.to_string(),
            Term::Select(tensor, _) => self.shown_whole(*tensor),
            _ => self.shown_whole(term),
        }
    }

    fn shown_whole(&self, term: TermId) -> String {
        let mut todo = vec![term];
        let mut seen = 0;
        while let Some(id) = todo.pop() {
            seen += 1;
            if seen > SHOWN_PARTS {
                return "(…)".into();
            }
            todo.extend(self.terms.get(id).parts());
        }
        let text = print_term(&self.terms, term);
        if text.contains(' ') { format!("({text})") } else { text }
    }
}
