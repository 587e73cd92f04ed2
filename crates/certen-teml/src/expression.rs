//! The right side of one statement: the parts of the program's arena that it reaches, in an arena of its own.

use std::collections::HashMap;

use certen_core::{Binary, ElemType, Literal, Term, TermId, Terms, TypeError};
use certen_index::Ix;
use certen_syntax::{Code, Diagnostic, Name};

use crate::assignment::{Assignment, Node, ValueId, Values};

/// A right side: parts first, the whole last.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Expression {
    pub parts: Vec<Part>,
}

/// A part of a right side; its own parts are positions.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Part {
    Element(Name, Vec<Ix>),
    Number(Literal),
    Op(Binary, usize, usize),
    Sum(Vec<(Name, Ix)>, usize),
}

impl Expression {
    /// A right side of the program.
    pub fn of(values: &Values, root: ValueId) -> Expression {
        let mut seen = std::collections::HashSet::from([root]);
        let mut todo = vec![root];
        let mut reached = Vec::new();
        while let Some(id) = todo.pop() {
            reached.push(id);
            let parts: &[ValueId] = match values.get(id) {
                Node::Element(..) | Node::Number(_) => &[],
                Node::Op(_, a, b) => &[*a, *b],
                Node::Sum(_, a) => &[*a],
            };
            todo.extend(parts.iter().copied().filter(|part| seen.insert(*part)));
        }
        // Parts have smaller numbers.
        reached.sort_unstable();
        let places: HashMap<ValueId, usize> = reached.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let place = |id: &ValueId| places.get(id).copied().unwrap_or(0);
        let part = |id: &ValueId| match values.get(*id) {
            Node::Element(name, indices) => Part::Element(*name, indices.clone()),
            Node::Number(literal) => Part::Number(*literal),
            Node::Op(op, a, b) => Part::Op(*op, place(a), place(b)),
            Node::Sum(iterators, a) => Part::Sum(iterators.clone(), place(a)),
        };
        Expression { parts: reached.iter().map(part).collect() }
    }

    /// Zero.
    pub fn zero(elem: ElemType) -> Expression {
        Expression { parts: vec![Part::Number(Literal::whole(0, elem))] }
    }

    /// The elements that are read.
    pub fn elements(&self) -> impl Iterator<Item = (Name, &[Ix])> {
        self.parts.iter().filter_map(|part| match part {
            Part::Element(name, indices) => Some((*name, indices.as_slice())),
            _ => None,
        })
    }

    /// The iterators of sums, with their extents.
    pub fn sums(&self) -> impl Iterator<Item = &(Name, Ix)> {
        self.parts.iter().flat_map(|part| match part {
            Part::Sum(iterators, _) => iterators.as_slice(),
            _ => &[],
        })
    }

    /// For each part, whether a sum is in it.
    pub fn has_sums(&self) -> Vec<bool> {
        let mut sums: Vec<bool> = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let of = |at: &usize| sums.get(*at).copied().unwrap_or(false);
            sums.push(match part {
                Part::Element(..) | Part::Number(_) => false,
                Part::Op(_, a, b) => of(a) || of(b),
                Part::Sum(..) => true,
            });
        }
        sums
    }

    /// The parts that these are made of, with their new places. The last of the wanted ones is last.
    pub fn only(&self, wanted: &[usize]) -> (Expression, HashMap<usize, usize>) {
        let mut needed = vec![false; self.parts.len()];
        let need = |needed: &mut Vec<bool>, at: usize| {
            if let Some(needed) = needed.get_mut(at) {
                *needed = true;
            }
        };
        wanted.iter().for_each(|at| need(&mut needed, *at));
        for (at, part) in self.parts.iter().enumerate().rev() {
            if needed.get(at) == Some(&true) {
                match part {
                    Part::Op(_, a, b) => [*a, *b].into_iter().for_each(|part| need(&mut needed, part)),
                    Part::Sum(_, a) => need(&mut needed, *a),
                    Part::Element(..) | Part::Number(_) => {}
                }
            }
        }
        let mut kept = Expression::default();
        let mut places: HashMap<usize, usize> = HashMap::new();
        for (at, part) in self.parts.iter().enumerate().filter(|(at, _)| needed.get(*at) == Some(&true)) {
            let place = |part: &usize| places.get(part).copied().unwrap_or(0);
            let part = match part {
                Part::Op(op, a, b) => Part::Op(*op, place(a), place(b)),
                Part::Sum(iterators, a) => Part::Sum(iterators.clone(), place(a)),
                other => other.clone(),
            };
            places.insert(at, kept.parts.len());
            kept.parts.push(part);
        }
        (kept, places)
    }

    /// Adds the parts of another one, and gives the place of its whole.
    pub fn append(&mut self, other: Expression) -> usize {
        let first = self.parts.len();
        self.parts.extend(other.parts.into_iter().map(|part| match part {
            Part::Op(op, a, b) => Part::Op(op, first + a, first + b),
            Part::Sum(iterators, a) => Part::Sum(iterators, first + a),
            other => other,
        }));
        self.parts.len().saturating_sub(1)
    }

    /// The expression of which a part is the whole.
    pub fn part(self, root: usize) -> Expression {
        if root + 1 == self.parts.len() { self } else { self.only(&[root]).0 }
    }

    /// Its term. `element` gives what a read of a tensor becomes, `sum` what a sum does.
    pub fn term(
        &self,
        assignment: &Assignment,
        elem: ElemType,
        terms: &mut Terms,
        mut element: impl FnMut(&mut Terms, Name, &[Ix]) -> Result<TermId, Diagnostic>,
        mut sum: impl FnMut(&mut Terms, &[(Name, Ix)], TermId) -> Result<TermId, Diagnostic>,
    ) -> Result<TermId, Diagnostic> {
        let mut made: Vec<TermId> = Vec::with_capacity(self.parts.len());
        let broken = || ill_typed(assignment)(TypeError("a part is missing".into()));
        for part in &self.parts {
            let term = |at: &usize| made.get(*at).copied().ok_or_else(broken);
            let id = match part {
                Part::Element(name, indices) => element(terms, *name, indices)?,
                Part::Number(literal) => terms.add(Term::Literal(*literal, elem)).map_err(ill_typed(assignment))?,
                Part::Op(op, a, b) => {
                    terms.add(Term::Binary(*op, term(a)?, term(b)?)).map_err(ill_typed(assignment))?
                }
                Part::Sum(iterators, body) => sum(terms, iterators, term(body)?)?,
            };
            made.push(id);
        }
        made.last().copied().ok_or_else(broken)
    }
}

/// That the value of a statement has no type: something that should have been refused before.
pub(crate) fn ill_typed(assignment: &Assignment) -> impl Fn(TypeError) -> Diagnostic {
    let (id, span) = (assignment.id, assignment.span);
    move |error| Diagnostic::error(Code::E0232, span, format!("the value of `{id}` cannot be computed: {error}"))
}
