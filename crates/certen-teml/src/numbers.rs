//! Value numbering: versions of tensors that are computed by the same operations from the same values have the same
//! number.
//!
//! A version's number comes from its statement with iterators by their positions instead of their names, and numbers in
//! place of the tensors that it reads. A statement that only copies elements, as a transposition does, is looked
//! through: reading the copy is reading the original. So a path may take other statements than the program, such as
//! those that work on a transposed copy, and still compute the same by construction.

use std::collections::HashMap;

use certen_core::{Binary, Literal};
use certen_index::{Ix, IxError};
use certen_syntax::Name;

use crate::assignment::{Assignment, Begin};
use crate::expression::{Expression, Part};
use crate::flow::{Region, element_index};

/// The number of a version.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Number(usize);

/// Numbers of all versions that were met.
#[derive(Default)]
pub(crate) struct Numbers {
    versions: HashMap<VersionKey, Number>,
    values: HashMap<NumberedValue, usize>,
    /// Versions that are copies: of which one, and of which of its elements.
    copies: HashMap<Number, (Number, Vec<Ix>)>,
}

#[derive(PartialEq, Eq, Hash)]
enum VersionKey {
    Given(Name),
    Nothing(Name),
    Made {
        target: Name,
        out: Vec<Ix>,
        extents: Vec<Ix>,
        begin: Option<(&'static str, bool)>,
        /// What is kept of it.
        old: Option<Number>,
        value: usize,
    },
}

#[derive(PartialEq, Eq, Hash)]
enum NumberedValue {
    Element(Number, Vec<Ix>),
    Number(Literal),
    Op(Binary, usize, usize),
    Sum(Vec<Ix>, usize),
}

impl Numbers {
    fn version(&mut self, version: VersionKey) -> Number {
        let next = Number(self.versions.len());
        *self.versions.entry(version).or_insert(next)
    }

    /// What the caller gives.
    pub fn given(&mut self, tensor: Name) -> Number {
        self.version(VersionKey::Given(tensor))
    }

    /// What a statement makes of the versions that are there: of its target, if the old value matters, and of what it
    /// reads.
    ///
    /// # Errors
    /// If an index becomes too complex.
    pub fn made(
        &mut self,
        assignment: &Assignment,
        value: &Expression,
        region: &Region,
        mut now: impl FnMut(Name) -> Option<Number>,
    ) -> Result<Number, IxError> {
        let mut read = |numbers: &mut Numbers, name: Name| match now(name) {
            Some(number) => number,
            None => numbers.version(VersionKey::Nothing(name)),
        };
        let names = positions(assignment, value);
        let renamed = |ix: &Ix| ix.substitute(&|name| names.get(&name).cloned());
        let all = |indices: &[Ix]| indices.iter().map(renamed).collect::<Result<Vec<Ix>, IxError>>();
        let mut made: Vec<usize> = Vec::with_capacity(value.parts.len());
        for part in &value.parts {
            let of = |at: &usize| made.get(*at).copied().unwrap_or(0);
            let number = match part {
                Part::Element(name, indices) => {
                    let version = read(self, *name);
                    let (version, indices) = self.original(version, all(indices)?)?;
                    NumberedValue::Element(version, indices)
                }
                Part::Number(literal) => NumberedValue::Number(*literal),
                Part::Op(op, a, b) => NumberedValue::Op(*op, of(a), of(b)),
                Part::Sum(iterators, body) => {
                    NumberedValue::Sum(iterators.iter().map(|(_, extent)| extent.clone()).collect(), of(body))
                }
            };
            let next = self.values.len();
            made.push(*self.values.entry(number).or_insert(next));
        }
        let begin = match assignment.begin {
            Begin::Write => None,
            Begin::Contract => Some(("contract", false)),
            Begin::Accumulate { op, negated } => Some((op.name(), negated)),
        };
        let keeps = matches!(assignment.begin, Begin::Accumulate { .. }) || !region.whole();
        let old = keeps.then(|| read(self, assignment.target));
        let copied = match value.parts.last() {
            Some(Part::Element(name, indices)) if begin.is_none() && region.whole() => {
                Some((read(self, *name), indices))
            }
            _ => None,
        };
        let number = self.version(VersionKey::Made {
            target: assignment.target,
            out: all(&assignment.out)?,
            extents: assignment.iterators.iter().map(|(_, extent)| extent.clone()).collect(),
            begin,
            old,
            value: made.last().copied().unwrap_or(0),
        });
        if let Some((from, indices)) = copied {
            let solved = |name: Name| {
                region.solved.iter().flatten().find(|(iterator, _)| *iterator == name).map(|(_, ix)| ix.clone())
            };
            let indices = indices.iter().map(|ix| ix.substitute(&solved)).collect::<Result<Vec<Ix>, IxError>>()?;
            let original = self.original(from, indices)?;
            self.copies.insert(number, original);
        }
        Ok(number)
    }

    /// The element that a copy was made of.
    fn original(&self, version: Number, indices: Vec<Ix>) -> Result<(Number, Vec<Ix>), IxError> {
        let Some((original, from)) = self.copies.get(&version) else { return Ok((version, indices)) };
        let index = |name: Name| (0..indices.len()).find(|d| element_index(*d) == name).map(|d| indices[d].clone());
        Ok((*original, from.iter().map(|ix| ix.substitute(&index)).collect::<Result<_, _>>()?))
    }
}

/// Names of iterators that say no more than where they stand: by position, those of sums by how many sums are inside.
fn positions(assignment: &Assignment, value: &Expression) -> HashMap<Name, Ix> {
    let own = assignment.iterators.iter().enumerate();
    let mut names: HashMap<Name, Ix> =
        own.map(|(at, (name, _))| (*name, Ix::var(Name::new(&format!("iterator {at}"))))).collect();
    let mut heights: Vec<usize> = Vec::with_capacity(value.parts.len());
    for part in &value.parts {
        let height = |at: &usize| heights.get(*at).copied().unwrap_or(0);
        heights.push(match part {
            Part::Element(..) | Part::Number(_) => 0,
            Part::Op(_, a, b) => height(a).max(height(b)),
            Part::Sum(iterators, body) => {
                let inside = height(body);
                for (at, (name, _)) in iterators.iter().enumerate() {
                    names.insert(*name, Ix::var(Name::new(&format!("summed {inside} {at}"))));
                }
                inside + 1
            }
        });
    }
    names
}
