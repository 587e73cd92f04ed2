//! What is wrong with an einsum, in the words of its user. Operands are counted from 0, as NumPy counts them.

use std::fmt;

use certen_core::ElemType;

/// How many operands NumPy takes.
pub(super) const MAX_OPERANDS: usize = 63;

/// How many indices NumPy can loop over, and how many dimensions an array can have.
pub(super) const MAX_INDICES: usize = 64;

/// What an index is called in messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IndexName {
    /// A letter of the text.
    Letter(char),
    /// A number of NumPy's lists.
    Number(u32),
    /// A dimension that an ellipsis stands for, counted from 1 at the right.
    Ellipsis(usize),
}

impl fmt::Display for IndexName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexName::Letter(letter) => write!(f, "index {letter}"),
            IndexName::Number(number) => write!(f, "index {number}"),
            IndexName::Ellipsis(1) => f.write_str("the last dimension of '...'"),
            IndexName::Ellipsis(from_right) => write!(f, "dimension {from_right} from the right of '...'"),
        }
    }
}

/// Where subscripts stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubPlace {
    /// Those of an operand, counted from 0.
    Operand(usize),
    /// After the arrow.
    Output,
}

impl fmt::Display for SubPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubPlace::Operand(at) => write!(f, "operand {at}"),
            SubPlace::Output => f.write_str("the output"),
        }
    }
}

/// Why an einsum has no meaning: where NumPy raises a `ValueError`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EinsumError {
    /// A character that is not a letter, blank or ellipsis.
    Character {
        /// The character.
        found: char,
        /// Where it stands.
        place: SubPlace,
    },
    /// Dots that are not the three of one ellipsis.
    Dots(SubPlace),
    /// A second ellipsis.
    TwoEllipses(SubPlace),
    /// A `-` without `>`.
    Arrow,
    /// The text is for another number of operands.
    Operands {
        /// How many the text is for.
        subscripts: usize,
        /// How many there are.
        operands: usize,
    },
    /// No operands, or more than NumPy takes.
    TooManyOperands(usize),
    /// A number of NumPy's lists that stands for no index.
    Number(u32),
    /// The output has an index twice.
    OutputTwice(IndexName),
    /// The output has an index that no operand has.
    OutputUnknown(IndexName),
    /// An operand has another number of dimensions.
    Rank {
        /// The operand.
        operand: usize,
        /// How many indices its subscripts have.
        indices: usize,
        /// Whether they have an ellipsis.
        ellipsis: bool,
        /// How many dimensions it has.
        rank: usize,
    },
    /// An index stands twice at an operand, and the two dimensions differ.
    Diagonal {
        /// The index.
        index: IndexName,
        /// The operand.
        operand: usize,
        /// The sizes.
        sizes: [usize; 2],
    },
    /// An index has two sizes, neither of which is 1.
    Sizes {
        /// The index.
        index: IndexName,
        /// Two operands.
        operands: [usize; 2],
        /// Its size in each.
        sizes: [usize; 2],
    },
    /// An ellipsis stands for dimensions that the output does not have.
    EllipsisDropped {
        /// The operand.
        operand: usize,
        /// The sizes of the dimensions.
        shape: Vec<usize>,
    },
    /// More indices than NumPy can loop over.
    TooManyIndices(usize),
    /// Elements that cannot be multiplied and added here.
    Element(ElemType),
    /// A path names a position at which there is no operand.
    PathPosition {
        /// The step, counted from 0.
        step: usize,
        /// The position.
        position: usize,
        /// How many operands there are then.
        operands: usize,
    },
    /// A step of a path names a position twice, or none.
    PathStep {
        /// The step, counted from 0.
        step: usize,
        /// The position that is named twice.
        twice: Option<usize>,
    },
    /// A path ends before all operands are contracted.
    PathEnds {
        /// How many are left.
        left: usize,
    },
}

impl fmt::Display for EinsumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use EinsumError::*;
        match self {
            Character { found, place } => {
                write!(f, "{found:?} in the subscripts of {place}: an index is a letter from a to z or A to Z")
            }
            Dots(place) => write!(f, "a '.' that is not part of '...' in the subscripts of {place}"),
            TwoEllipses(place) => write!(f, "'...' stands twice in the subscripts of {place}"),
            Arrow => f.write_str("'-' without '>': the output stands after '->'"),
            Operands { subscripts, operands } => {
                let verb = if *operands == 1 { "is" } else { "are" };
                write!(f, "the subscripts are for {}, but there {verb} {operands}", count(*subscripts, "operand"))
            }
            TooManyOperands(0) => f.write_str("there are no operands"),
            TooManyOperands(found) => write!(f, "{found} operands are more than {}", MAX_OPERANDS),
            Number(found) => write!(f, "{found} is no index: lists number indices from 0 to 51"),
            OutputTwice(index) => write!(f, "{index} stands twice in the output"),
            OutputUnknown(index) => write!(f, "{index} of the output is in no operand"),
            Rank { operand, indices, ellipsis, rank } => {
                let (least, help) = if *ellipsis { ("at least ", "") } else { ("", "; '...' stands for the others") };
                let help = if indices < rank { help } else { "" };
                let dimensions = count(*rank, "dimension");
                write!(f, "operand {operand} has {dimensions}, but its subscripts are for {least}{indices}{help}")
            }
            Diagonal { index, operand, sizes: [a, b] } => {
                write!(f, "{index} is {a} and {b} in operand {operand}: the sides of a diagonal have one size")
            }
            Sizes { index, operands: [a, b], sizes: [m, n] } => {
                write!(f, "{index} is {m} in operand {a} and {n} in operand {b}")
            }
            EllipsisDropped { operand, shape } => write!(
                f,
                "'...' of operand {operand} stands for dimensions of size {shape:?}, but the output has no '...'"
            ),
            TooManyIndices(found) => write!(f, "{found} indices are more than {}", MAX_INDICES),
            Element(elem) => write!(f, "einsum of elements of type {elem}: it takes f32, f64, i32 and i64"),
            PathPosition { step, position, operands } => {
                let are = if *operands == 1 { "is 1 operand" } else { "are operands" };
                write!(f, "step {step} of the path takes operand {position}, but there {are}")?;
                if *operands == 1 { Ok(()) } else { write!(f, " 0 to {} then", operands.saturating_sub(1)) }
            }
            PathStep { step, twice: Some(position) } => {
                write!(f, "step {step} of the path takes operand {position} twice")
            }
            PathStep { step, twice: None } => write!(f, "step {step} of the path takes no operand"),
            PathEnds { left } => {
                let are = if *left == 1 { "operand is" } else { "operands are" };
                write!(f, "the path ends too early: {left} {are} left to be contracted")
            }
        }
    }
}

impl std::error::Error for EinsumError {}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
