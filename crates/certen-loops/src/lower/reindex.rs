//! Reindexers: where an element of a term is kept in its buffer (ATL, Fig. 2).
//!
//! On the way down a term, each generation adds an index and each reshape operator a [`Reindexing`]; at the store the steps
//! are applied to the empty list, innermost first. What they work on is a list of (index, size), outermost first, until
//! the last moment: bounds and injectivity are matters of single dimensions, and a product of symbolic sizes is never
//! divided.
//!
//! **Well-formedness** (ATL, Sec. 4.2, 4.3, in the versions of Sec. 6.5). All that a step asks is that the indices it is
//! given are inside their sizes; then it is injective, and what it gives is inside again. That holds for an index, whose
//! loop runs over its size, and is kept by flatten, split, transpose and padding. Only truncation makes a dimension
//! smaller: [`Reindexer::apply`] returns what has to be shown for it, and the store is only made where that is proved.
//! By induction every store is inside its buffer (well-formed allocation), different indices are kept in different places
//! (injectivity), and the two parts of a concatenation apart from each other (non-destructive assignment). That a store
//! speaks only of indices in scope is checked by the [verifier](crate::verify), which shows its bounds once more.

use certen_index::{Cond, Ix, IxError};

/// One step from the indices of a term to those of its buffer. Sizes are those of the term's own type.
#[derive(Clone, Debug)]
pub(super) enum Reindexing {
    /// A new outermost dimension: its index and size.
    Index(Ix, Ix),
    /// The two outermost dimensions as one, of this size.
    Flatten(Ix),
    /// The outermost dimension in blocks of a number of elements; how many blocks there are.
    Split(i64, Ix),
    /// The two outermost dimensions exchanged.
    Transpose,
    /// The outermost index moved, into a dimension of another size. `cuts` says that it may leave it.
    Move {
        /// How far.
        by: Ix,
        /// The new size.
        size: Ix,
        /// Whether elements can be cut off.
        cuts: bool,
    },
}

/// Steps, those of the outermost operator first.
#[derive(Clone, Default, Debug)]
pub(super) struct Reindexer(Vec<Reindexing>);

/// The place of an element: its indices, and what has to hold for it to be one.
pub(super) struct Position {
    pub(super) indices: Box<[Ix]>,
    pub(super) inside: Cond,
}

impl Reindexer {
    pub(super) fn push(&mut self, step: Reindexing) {
        self.0.push(step);
    }

    /// Whether places are products of indices and sizes.
    pub(super) fn flattens(&self) -> bool {
        self.0.iter().any(|step| matches!(step, Reindexing::Flatten(_)))
    }

    /// The place of the scalar that all steps lead to; nothing if a step lacks dimensions.
    pub(super) fn apply(&self) -> Result<Option<Position>, IxError> {
        // The outermost dimension is the last one here.
        let mut list: Vec<(Ix, Ix)> = Vec::new();
        let mut inside = Cond::always();
        for step in self.0.iter().rev() {
            if let Reindexing::Index(index, size) = step {
                list.push((index.clone(), size.clone()));
                continue;
            }
            let Some((first, first_size)) = list.pop() else { return Ok(None) };
            match step {
                Reindexing::Index(..) => {}
                Reindexing::Flatten(size) => {
                    let Some((second, second_size)) = list.pop() else { return Ok(None) };
                    list.push((first.mul(&second_size)?.add(&second)?, size.clone()));
                }
                Reindexing::Split(k, blocks) => {
                    list.push((first.modulo(*k)?, Ix::from(*k)));
                    list.push((first.floor_div(*k)?, blocks.clone()));
                }
                Reindexing::Transpose => {
                    let Some(second) = list.pop() else { return Ok(None) };
                    list.extend([(first, first_size), second]);
                }
                Reindexing::Move { by, size, cuts } => {
                    let index = first.add(by)?;
                    if *cuts {
                        inside = inside.and(Cond::le(&Ix::from(0), &index)?).and(Cond::lt(&index, size)?);
                    }
                    list.push((index, size.clone()));
                }
            }
        }
        Ok(Some(Position { indices: list.into_iter().rev().map(|(index, _)| index).collect(), inside }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(steps: Vec<Reindexing>) -> (Vec<String>, String) {
        let place = Reindexer(steps).apply().ok().flatten().expect("enough dimensions");
        (place.indices.iter().map(ToString::to_string).collect(), place.inside.to_string())
    }

    fn index(name: &str, size: Ix) -> Reindexing {
        Reindexing::Index(Ix::var(name), size)
    }

    fn scaled(name: &str, by: i64) -> Ix {
        Ix::var(name).scale(by).expect("small")
    }

    #[test]
    fn a_tile_is_stored_in_its_matrix() {
        // flatten(gen io < n: transpose(flatten(gen jo < m: gen ji < 5: gen ii < 4: e))), as in ATL's Sec. 2
        let steps = vec![
            Reindexing::Flatten(scaled("n", 4)),
            index("io", Ix::var("n")),
            Reindexing::Transpose,
            Reindexing::Flatten(scaled("m", 5)),
            index("jo", Ix::var("m")),
            index("ji", Ix::from(5)),
            index("ii", Ix::from(4)),
        ];
        assert_eq!(place(steps), (vec!["ii + 4*io".into(), "ji + 5*jo".into()], "true".into()));
    }

    #[test]
    fn only_a_truncation_has_to_be_shown() {
        let moved = |by: i64, size, cuts| Reindexing::Move { by: Ix::from(by), size, cuts };
        let three_more = Ix::var("n").add(&Ix::from(3)).expect("small");
        let padded = vec![moved(3, three_more, false), index("i", Ix::var("n"))];
        assert_eq!(place(padded), (vec!["i + 3".into()], "true".into()));
        let cut = vec![moved(-3, Ix::var("m"), true), index("i", Ix::var("n"))];
        assert_eq!(place(cut), (vec!["i - 3".into()], "i >= 3 && i <= m + 2".into()));
    }

    #[test]
    fn a_block_is_found_by_division() {
        let steps = vec![Reindexing::Split(4, Ix::var("b")), index("i", Ix::var("n"))];
        assert_eq!(place(steps), (vec!["floor_div(i, 4)".into(), "i - 4*floor_div(i, 4)".into()], "true".into()));
    }

    #[test]
    fn steps_without_dimensions_have_no_place() {
        for steps in [vec![Reindexing::Transpose, index("i", Ix::var("n"))], vec![Reindexing::Split(4, Ix::var("b"))]] {
            assert!(Reindexer(steps).apply().is_ok_and(|place| place.is_none()));
        }
    }
}
