//! What subscripts mean for operands of given shapes.
//!
//! Indices are numbered by their first occurrence in the operands, from left to right, so that two einsums that differ
//! in their letters alone are the same. Dimensions that ellipses stand for are indices too, aligned at the right. An
//! index has the same size everywhere, but a dimension of size 1 is stretched to any: then its operand does not depend
//! on the index, and the dimension is an [`Axis::One`]. The dimensions of a diagonal are equal, and are not stretched
//! apart. Indices that are never apart can be taken for one ([`Einsum::merged`]): loops become fewer and longer.

use super::error::{EinsumError, IndexName, MAX_INDICES};
use super::subscripts::{Sub, Subscripts, letter};

/// An index of an einsum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Index {
    /// What the user calls it.
    pub name: IndexName,
    /// How many values it takes.
    pub size: usize,
}

/// What is walked along a dimension of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Axis {
    /// An index, by its position in [`Einsum::indices`].
    Index(usize),
    /// Nothing: the size is 1, and that of the index is another.
    One,
}

/// An einsum of operands of known shapes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Einsum {
    indices: Vec<Index>,
    /// The index of each dimension of each operand, stretched or not.
    terms: Vec<Vec<usize>>,
    operands: Vec<Vec<Axis>>,
    output: Vec<usize>,
}

/// One product and its sum: the axes of the result say which indices are kept.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Product {
    /// What is multiplied, from left to right: the operands count from 0, results of steps go on after them.
    pub factors: Vec<usize>,
    /// The indices of the result, outermost first.
    pub kept: Vec<usize>,
}

impl Einsum {
    /// Finds what the subscripts mean for these shapes.
    ///
    /// # Errors
    /// Where NumPy raises a `ValueError`.
    pub fn new(subscripts: &Subscripts, shapes: &[&[usize]]) -> Result<Einsum, EinsumError> {
        let terms = subscripts.operands.len();
        if terms != shapes.len() {
            return Err(EinsumError::Operands { subscripts: terms, operands: shapes.len() });
        }
        let (walked, ellipsis) = written_out(subscripts, shapes)?;
        let mut einsum = Einsum::default();
        einsum.number(&walked, shapes)?;
        if einsum.indices.len() > MAX_INDICES {
            return Err(EinsumError::TooManyIndices(einsum.indices.len()));
        }
        for (term, shape) in einsum.terms.iter().zip(shapes) {
            let axis = |(&index, &size): (&usize, &usize)| match einsum.indices[index].size == size {
                true => Axis::Index(index),
                false => Axis::One,
            };
            einsum.operands.push(term.iter().zip(*shape).map(axis).collect());
        }
        let place = |name: IndexName| einsum.indices.iter().position(|index| index.name == name);
        let mut output = Vec::new();
        for sub in &subscripts.output {
            match *sub {
                Sub::Label(label) => output.extend(place(subscripts.name(label))),
                Sub::Ellipsis => output.extend((1..=ellipsis).rev().filter_map(|n| place(IndexName::Ellipsis(n)))),
            }
        }
        einsum.output = output;
        Ok(einsum)
    }

    /// Numbers the indices by their first occurrence, and finds the size of each.
    fn number(&mut self, walked: &[Vec<IndexName>], shapes: &[&[usize]]) -> Result<(), EinsumError> {
        // Where each index got its size: the first operand in which that is not 1.
        let mut told: Vec<usize> = Vec::new();
        for (at, (names, shape)) in walked.iter().zip(shapes).enumerate() {
            let mut axes: Vec<(usize, usize)> = Vec::with_capacity(names.len());
            for (name, &size) in names.iter().zip(*shape) {
                let place = match self.indices.iter().position(|index| index.name == *name) {
                    Some(place) => place,
                    None => {
                        self.indices.push(Index { name: *name, size });
                        told.push(at);
                        self.indices.len() - 1
                    }
                };
                if let Some((_, other)) = axes.iter().find(|(index, other)| *index == place && *other != size) {
                    return Err(EinsumError::Diagonal { index: *name, operand: at, sizes: [*other, size] });
                }
                axes.push((place, size));
                let index = &mut self.indices[place];
                if index.size == 1 && size != 1 {
                    (index.size, told[place]) = (size, at);
                } else if size != 1 && size != index.size {
                    let (operands, sizes) = ([told[place], at], [index.size, size]);
                    return Err(EinsumError::Sizes { index: *name, operands, sizes });
                }
            }
            self.terms.push(axes.into_iter().map(|(index, _)| index).collect());
        }
        Ok(())
    }

    /// The indices.
    pub fn indices(&self) -> &[Index] {
        &self.indices
    }

    /// What is walked along the dimensions of each operand.
    pub fn operands(&self) -> &[Vec<Axis>] {
        &self.operands
    }

    /// The index of each dimension of each operand, stretched or not.
    pub fn terms(&self) -> &[Vec<usize>] {
        &self.terms
    }

    /// The indices of the output, outermost first.
    pub fn output(&self) -> &[usize] {
        &self.output
    }

    /// The same with the dimensions of the output in another order.
    pub fn with_output(&self, output: Vec<usize>) -> Einsum {
        debug_assert!(output.len() == self.output.len() && output.iter().all(|index| self.output.contains(index)));
        Einsum { output, ..self.clone() }
    }

    /// The sizes of the output.
    pub fn output_shape(&self) -> Vec<usize> {
        self.shape(&self.output)
    }

    /// The sizes of indices.
    pub fn shape(&self, indices: &[usize]) -> Vec<usize> {
        indices.iter().map(|index| self.indices[*index].size).collect()
    }

    /// The same einsum with fewer indices, and which of the old ones each of them stands for: what stands side by side
    /// wherever it stands is one index, as the pairs of `abij,ijcd->abcd` are. A sum over it is one sum, row by row.
    pub fn merged(&self) -> (Einsum, Vec<Vec<usize>>) {
        let mut groups: Vec<Vec<usize>> = Vec::with_capacity(self.indices.len());
        let mut merged = Einsum::default();
        // For each index, its group if it is the first of one.
        let mut heads: Vec<Option<usize>> = Vec::with_capacity(self.indices.len());
        for (at, index) in self.indices.iter().enumerate() {
            // Indices are numbered by their first occurrence, so neighbours have neighbouring numbers.
            let size = merged.indices.last().and_then(|last| last.size.checked_mul(index.size));
            match (groups.last_mut(), merged.indices.last_mut(), size) {
                (Some(group), Some(whole), Some(size)) if self.are_neighbours(at - 1, at) => {
                    group.push(at);
                    whole.size = size;
                    heads.push(None);
                }
                _ => {
                    heads.push(Some(groups.len()));
                    groups.push(vec![at]);
                    merged.indices.push(*index);
                }
            }
        }
        let of = |indices: &[usize]| indices.iter().filter_map(|index| heads[*index]).collect::<Vec<_>>();
        merged.output = of(&self.output);
        for (term, axes) in self.terms.iter().zip(&self.operands) {
            merged.terms.push(of(term));
            let axis = |(index, axis): (&usize, &Axis)| match axis {
                Axis::Index(_) => Some(Axis::Index(heads[*index]?)),
                Axis::One => heads[*index].and(Some(Axis::One)),
            };
            merged.operands.push(term.iter().zip(axes).filter_map(axis).collect());
        }
        (merged, groups)
    }

    /// Whether the second index stands after the first wherever one of them stands, both stretched or none.
    fn are_neighbours(&self, first: usize, second: usize) -> bool {
        let side_by_side = |term: &[usize]| {
            let mut stand = (0..term.len()).filter(|at| term[*at] == first || term[*at] == second);
            match (stand.next(), stand.next(), stand.next()) {
                (None, ..) => Some(None),
                (Some(at), Some(next), None) if term[at] == first && term[next] == second && next == at + 1 => {
                    Some(Some(at))
                }
                _ => None,
            }
        };
        let alike = |(term, axes): (&Vec<usize>, &Vec<Axis>)| match side_by_side(term) {
            Some(Some(at)) => (axes[at] == Axis::One) == (axes[at + 1] == Axis::One),
            found => found.is_some(),
        };
        side_by_side(&self.output).is_some() && self.terms.iter().zip(&self.operands).all(alike)
    }

    /// Everything in one nest of loops, as it is written.
    pub fn as_written(&self) -> Product {
        Product { factors: (0..self.operands.len()).collect(), kept: self.output.clone() }
    }

    /// The axes of an operand, or of the result of a step before.
    pub fn axes(&self, steps: &[Product], value: usize) -> Vec<Axis> {
        match self.operands.get(value) {
            Some(axes) => axes.clone(),
            None => {
                let step = steps.get(value - self.operands.len());
                step.map_or_else(Vec::new, |step| step.kept.iter().copied().map(Axis::Index).collect())
            }
        }
    }

    /// The indices that a step sums over, the outermost sum first: in the order of their first occurrence in its
    /// factors.
    pub fn summed(&self, steps: &[Product], step: &Product) -> Vec<usize> {
        let mut summed = Vec::new();
        for factor in &step.factors {
            for axis in self.axes(steps, *factor) {
                if let Axis::Index(index) = axis
                    && !step.kept.contains(&index)
                    && !summed.contains(&index)
                {
                    summed.push(index);
                }
            }
        }
        summed
    }

    /// Letters for the indices: the user's, and for dimensions of an ellipsis some that are not used.
    pub fn letters(&self) -> Vec<String> {
        let own = |name: IndexName| match name {
            IndexName::Letter(own) => Some(own),
            IndexName::Number(label) => Some(letter(label)),
            IndexName::Ellipsis(_) => None,
        };
        let mut free =
            (0..52).map(letter).filter(|free| self.indices.iter().all(|index| own(index.name) != Some(*free)));
        let mut beyond = 0;
        let mut letters = Vec::with_capacity(self.indices.len());
        for index in &self.indices {
            letters.push(match own(index.name).or_else(|| free.next()) {
                Some(letter) => letter.to_string(),
                None => {
                    beyond += 1;
                    format!("({beyond})")
                }
            });
        }
        letters
    }
}

/// The index that each dimension of each operand walks, with ellipses written out, and the most dimensions that one
/// stands for.
fn written_out(subscripts: &Subscripts, shapes: &[&[usize]]) -> Result<(Vec<Vec<IndexName>>, usize), EinsumError> {
    let mut walked: Vec<Vec<IndexName>> = Vec::with_capacity(shapes.len());
    let mut broadcast: Option<(usize, &[usize])> = None;
    for (at, (term, shape)) in subscripts.operands.iter().zip(shapes).enumerate() {
        let ellipsis = term.contains(&Sub::Ellipsis);
        let labels = term.len() - usize::from(ellipsis);
        if shape.len() < labels || (!ellipsis && shape.len() > labels) {
            return Err(EinsumError::Rank { operand: at, indices: labels, ellipsis, rank: shape.len() });
        }
        let more = shape.len() - labels;
        let mut names = Vec::with_capacity(shape.len());
        for sub in term {
            match *sub {
                Sub::Label(label) => names.push(subscripts.name(label)),
                Sub::Ellipsis => {
                    if more > broadcast.map_or(0, |(_, shape)| shape.len()) {
                        broadcast = Some((at, &shape[names.len()..names.len() + more]));
                    }
                    names.extend((1..=more).rev().map(IndexName::Ellipsis));
                }
            }
        }
        walked.push(names);
    }
    match broadcast {
        Some((operand, shape)) if !subscripts.output.contains(&Sub::Ellipsis) => {
            Err(EinsumError::EllipsisDropped { operand, shape: shape.to_vec() })
        }
        _ => Ok((walked, broadcast.map_or(0, |(_, shape)| shape.len()))),
    }
}
