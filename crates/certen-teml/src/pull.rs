//! Sums become loops: a right side without `vcontract`, over more iterators.
//!
//! `t[i] = a * sum(k, b)` is computed by `t[i] = 0` and then `t[i] += a * b` in a nest over `i` and `k`, as deep as the
//! statement has iterators (TeML, Eq. 19). A sum can be pulled out of products, of the left of a division, and out of
//! one side of the outermost additions: then the other side is what the target begins with. Two sums that are added,
//! and a sum in a divisor, are not a perfect nest.

use std::collections::{HashMap, HashSet};

use certen_core::{Binary, Literal, ReduceOp};
use certen_index::{Ix, IxError};
use certen_syntax::{Code, Diagnostic, Name, Rule};

use crate::assignment::{Assignment, Begin};
use crate::expression::{Expression, Part};
use crate::flow::{is_out, too_complex};

/// Sums inside each other and beside each other that are pulled out of one statement at most, and parts that are copied
/// for it.
const MOST_SUMS: usize = 64;
const MOST_PARTS: usize = 100_000;

/// A statement as a perfect nest, and what comes before it.
pub(crate) struct Pulled {
    /// The loops, outermost first.
    pub iterators: Vec<(Name, Ix)>,
    /// What is computed in the iterators of the left side before the nest runs.
    pub before: Option<Before>,
    /// What the nest does with the old value of an element; none replaces it.
    pub op: Option<ReduceOp>,
    /// Whether the value is subtracted.
    pub negated: bool,
    /// The right side, without sums.
    pub value: Expression,
    /// Whether a sum was pulled out of a product or a quotient, so that this is equal by distributivity. Without it
    /// only the order is another in which values are added.
    pub distributed: bool,
}

impl Pulled {
    /// The right side that is computed: one sum over all loops that were pulled out, and what stands beside it.
    pub fn into_one(self, assignment: &Assignment) -> Expression {
        let own: HashSet<Name> = assignment.iterators.iter().map(|(name, _)| *name).collect();
        let pulled: Vec<(Name, Ix)> = self.iterators.into_iter().filter(|(name, _)| !own.contains(name)).collect();
        if pulled.is_empty() {
            return self.value;
        }
        let mut one = self.value;
        one.parts.push(Part::Sum(pulled, one.parts.len() - 1));
        let sum = one.parts.len() - 1;
        let subtracts = matches!(assignment.begin, Begin::Accumulate { negated: true, .. });
        let (rest, negated) = match self.before {
            None | Some(Before::Zero) => return one,
            Some(Before::Value(rest, negated)) => (rest, negated),
            Some(Before::Added(rest, negated)) => (rest, negated != subtracts),
        };
        let rest = one.append(rest);
        // Of a sum and what stands beside it, one is not subtracted.
        one.parts.push(match (negated, self.negated != subtracts) {
            (false, false) => Part::Op(Binary::Add, rest, sum),
            (false, true) => Part::Op(Binary::Sub, rest, sum),
            (true, _) => Part::Op(Binary::Sub, sum, rest),
        });
        one
    }
}

/// How a target begins.
pub(crate) enum Before {
    /// With zero.
    Zero,
    /// With a value, negated or not.
    Value(Expression, bool),
    /// A value is added to what is there, negated or not, for all iterators of the statement.
    Added(Expression, bool),
}

fn no_nest(assignment: &Assignment, why: &str) -> Diagnostic {
    let message = format!("`{}` is no perfect loop nest: {why}", assignment.id);
    Diagnostic::error(Code::E0248, assignment.span, message)
        .rule(Rule { name: "Eq. 19", paper: "TeML, Fig. 9" })
        .help("compute the sum with `contract` first, in a statement of its own")
}

/// Pulls the sums of a statement out.
///
/// # Errors
/// E0248 for sums that are not loops of a perfect nest.
pub(crate) fn pull(assignment: &Assignment, value: Expression) -> Result<Pulled, Diagnostic> {
    let (op, negated) = match assignment.begin {
        Begin::Write => (None, false),
        Begin::Contract => (Some(ReduceOp::Sum), false),
        Begin::Accumulate { op, negated } => (Some(op), negated && op == ReduceOp::Sum),
    };
    let sums = value.has_sums();
    if sums.last() != Some(&true) {
        let before = (assignment.begin == Begin::Contract).then_some(Before::Zero);
        let iterators = assignment.iterators.clone();
        return Ok(Pulled { iterators, before, op, negated, value, distributed: false });
    }
    if op == Some(ReduceOp::Prod) {
        return Err(no_nest(assignment, "a product of sums is no sum"));
    }
    let (outer, at) = outermost(assignment, &value, &sums)?;
    let rest = outer.rest(&value);
    let Summand { value, iterators, distributed } = Products::new(assignment, &value, &sums).pull(at)?;
    let before = match (assignment.begin, rest) {
        (Begin::Write, None) => Some(Before::Zero),
        (Begin::Write, Some((value, minus))) => Some(Before::Value(value, minus)),
        (Begin::Accumulate { .. }, None) => None,
        (Begin::Accumulate { .. }, Some((value, minus))) => Some(Before::Added(value, minus != negated)),
        (Begin::Contract, None) => Some(Before::Zero),
        (Begin::Contract, Some(_)) => return Err(no_nest(assignment, "a sum is added to what is summed")),
    };
    let iterators = ordered(assignment, &value, iterators);
    let negated = negated != outer.negated;
    Ok(Pulled { iterators, before, op: Some(ReduceOp::Sum), negated, value, distributed })
}

/// What stands beside the sum in the outermost additions.
struct Outer {
    /// Parts without sums, innermost last, each with whether it is subtracted.
    parts: Vec<(usize, bool)>,
    /// Whether the sum is subtracted.
    negated: bool,
}

impl Outer {
    /// All parts as one value, and whether it is subtracted as a whole.
    fn rest(&self, value: &Expression) -> Option<(Expression, bool)> {
        // One that is not subtracted comes first, if there is any; if there is none, the sum itself is not.
        let first = self.parts.iter().position(|(_, minus)| !minus).unwrap_or(0);
        let (start, minus) = self.parts.get(first)?;
        let others = self.parts.iter().enumerate().filter(|(at, _)| *at != first).map(|(_, part)| part);
        let wanted: Vec<usize> = self.parts.iter().map(|(part, _)| *part).collect();
        let (mut value, places) = value.only(&wanted);
        let mut sum = places.get(start).copied()?;
        for (part, negated) in others {
            let op = if negated == minus { Binary::Add } else { Binary::Sub };
            value.parts.push(Part::Op(op, sum, places.get(part).copied()?));
            sum = value.parts.len() - 1;
        }
        Some((value.part(sum), *minus))
    }
}

/// Goes down through additions of which one side has sums.
fn outermost(assignment: &Assignment, value: &Expression, sums: &[bool]) -> Result<(Outer, usize), Diagnostic> {
    let mut outer = Outer { parts: Vec::new(), negated: false };
    let mut at = value.parts.len().saturating_sub(1);
    while let Some(Part::Op(op @ (Binary::Add | Binary::Sub), a, b)) = value.parts.get(at) {
        let minus = *op == Binary::Sub;
        let has = |part: &usize| sums.get(*part).copied().unwrap_or(false);
        match (has(a), has(b)) {
            (true, false) => {
                outer.parts.push((*b, outer.negated != minus));
                at = *a;
            }
            (false, true) => {
                outer.parts.push((*a, outer.negated));
                outer.negated ^= minus;
                at = *b;
            }
            _ => return Err(no_nest(assignment, "two sums are added")),
        }
    }
    Ok((outer, at))
}

/// Products of sums as one sum of products.
struct Products<'a> {
    assignment: &'a Assignment,
    from: &'a Expression,
    sums: &'a [bool],
    /// Iterators that have their name already.
    taken: HashSet<Name>,
    iterators: Vec<(Name, Ix)>,
    /// What iterators are called in a part that is used for the second time. The first of these renames nothing.
    renamed: Vec<HashMap<Name, Ix>>,
    value: Expression,
    /// Where parts without sums were copied to, by their place and names.
    places: HashMap<(usize, usize), usize>,
}

/// What is summed, over which iterators, and whether a product or quotient was around a sum.
struct Summand {
    value: Expression,
    iterators: Vec<(Name, Ix)>,
    distributed: bool,
}

enum PullTask {
    Visit(usize, usize),
    Op(Binary),
}

impl<'a> Products<'a> {
    fn new(assignment: &'a Assignment, from: &'a Expression, sums: &'a [bool]) -> Products<'a> {
        Products {
            assignment,
            from,
            sums,
            taken: assignment.iterators.iter().map(|(name, _)| *name).collect(),
            iterators: Vec::new(),
            renamed: vec![HashMap::new()],
            value: Expression::default(),
            places: HashMap::new(),
        }
    }

    fn pull(mut self, root: usize) -> Result<Summand, Diagnostic> {
        let wrong = |why: &str| no_nest(self.assignment, why);
        let nodes = &self.from.parts;
        let every: HashSet<Name> = self.from.sums().map(|(name, _)| *name).collect();
        let mut todo = vec![PullTask::Visit(root, 0)];
        let mut made: Vec<usize> = Vec::new();
        let mut distributed = false;
        while let Some(task) = todo.pop() {
            if self.value.parts.len() > MOST_PARTS {
                return Err(wrong("it has too many parts"));
            }
            let (at, names) = match task {
                PullTask::Visit(at, names) => (at, names),
                PullTask::Op(op) => {
                    let (Some(b), Some(a)) = (made.pop(), made.pop()) else { return Err(wrong("a part is missing")) };
                    self.value.parts.push(Part::Op(op, a, b));
                    made.push(self.value.parts.len() - 1);
                    continue;
                }
            };
            match nodes.get(at) {
                _ if !self.sums.get(at).copied().unwrap_or(false) => {
                    made.push(self.copy(at, names).map_err(too_complex(self.assignment))?);
                }
                Some(Part::Op(op @ (Binary::Mul | Binary::Div), a, b)) => {
                    if *op == Binary::Div && self.sums.get(*b) == Some(&true) {
                        return Err(wrong("something is divided by a sum"));
                    }
                    distributed = true;
                    todo.extend([PullTask::Op(*op), PullTask::Visit(*b, names), PullTask::Visit(*a, names)]);
                }
                Some(Part::Sum(iterators, body)) => {
                    let mut names = names;
                    for (name, extent) in iterators {
                        if self.iterators.len() >= MOST_SUMS {
                            return Err(wrong("it has too many sums"));
                        }
                        let mut new = *name;
                        if !self.taken.insert(*name) {
                            new = Name::fresh(name.as_str(), |n| self.taken.contains(&n) || every.contains(&n));
                            self.taken.insert(new);
                            let mut with = self.renamed.get(names).cloned().unwrap_or_default();
                            with.insert(*name, Ix::var(new));
                            self.renamed.push(with);
                            names = self.renamed.len() - 1;
                        }
                        self.iterators.push((new, extent.clone()));
                    }
                    todo.push(PullTask::Visit(*body, names));
                }
                _ => return Err(wrong("a sum stands in a sum or difference that is multiplied")),
            }
        }
        let Some(root) = made.pop() else { return Err(wrong("a part is missing")) };
        Ok(Summand { value: self.value.part(root), iterators: self.iterators, distributed })
    }

    /// Copies a part without sums, with other names of iterators.
    fn copy(&mut self, root: usize, names: usize) -> Result<usize, IxError> {
        let nodes = &self.from.parts;
        let mut todo = vec![root];
        while let Some(&at) = todo.last() {
            if self.places.contains_key(&(at, names)) {
                todo.pop();
                continue;
            }
            let open: Vec<usize> = match nodes.get(at) {
                Some(Part::Op(_, a, b)) => {
                    [*b, *a].into_iter().filter(|part| !self.places.contains_key(&(*part, names))).collect()
                }
                _ => Vec::new(),
            };
            if !open.is_empty() {
                todo.extend(open);
                continue;
            }
            let place = |part: &usize| self.places.get(&(*part, names)).copied().unwrap_or(0);
            let node = match nodes.get(at) {
                Some(Part::Element(name, indices)) => {
                    let renamed = &self.renamed[names];
                    let indices = indices.iter().map(|ix| ix.substitute(&|name| renamed.get(&name).cloned()));
                    Part::Element(*name, indices.collect::<Result<_, _>>()?)
                }
                Some(Part::Op(op, a, b)) => Part::Op(*op, place(a), place(b)),
                Some(other) => other.clone(),
                None => Part::Number(Literal::Int(0)),
            };
            self.value.parts.push(node);
            self.places.insert((at, names), self.value.parts.len() - 1);
            todo.pop();
        }
        Ok(self.places.get(&(root, names)).copied().unwrap_or(0))
    }
}

/// All loops of a nest: the iterators of the left side, then the others as they first appear.
fn ordered(assignment: &Assignment, value: &Expression, pulled: Vec<(Name, Ix)>) -> Vec<(Name, Ix)> {
    let all: Vec<(Name, Ix)> = assignment.iterators.iter().cloned().chain(pulled).collect();
    let position: HashMap<Name, usize> = all.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let mut first: HashMap<Name, (usize, usize)> = HashMap::new();
    let mut seen = vec![false; value.parts.len()];
    let mut todo: Vec<usize> = value.parts.len().checked_sub(1).into_iter().collect();
    let mut place = 0;
    while let Some(at) = todo.pop() {
        match value.parts.get(at) {
            Some(Part::Op(_, a, b)) if !std::mem::replace(&mut seen[at], true) => todo.extend([*b, *a]),
            Some(Part::Element(_, indices)) => {
                for index in indices {
                    place += 1;
                    let mut names = Default::default();
                    index.collect_names(&mut names);
                    for name in names {
                        if let Some(position) = position.get(&name) {
                            first.entry(name).or_insert((place, *position));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let (mut left, mut others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| is_out(assignment, *name));
    others.sort_by_key(|(name, _)| {
        first.get(name).copied().unwrap_or((usize::MAX, position.get(name).copied().unwrap_or(0)))
    });
    left.append(&mut others);
    left
}
