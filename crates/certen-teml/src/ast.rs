//! TeML programs as they are written: Fig. 1, with the operations of Sec. 4.
//!
//! Beyond the paper: sizes with names and sums of them, types of elements, iterators with factors and offsets, several
//! pairs in a contraction, names for `codegen`, and the loop expressions from [`LoopOp::UnrollAndJam`] on. Every part
//! that a message may speak of knows its place, which makes no difference to what is equal.

use certen_core::{Binary, ElemType};
use certen_index::Ix;
use certen_syntax::{Name, Span};

/// Something that stands at a place.
#[derive(Clone, Copy, Debug)]
pub struct At<T> {
    /// What.
    pub it: T,
    /// Where.
    pub span: Span,
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &At<T>) -> bool {
        self.it == other.it
    }
}

/// An identifier.
pub type Id = At<Name>;

/// A list of iterators, or of affine expressions in them.
pub type Iters = At<Vec<At<Ix>>>;

/// A program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Program {
    /// Its statements, in order.
    pub statements: Vec<At<Stmt>>,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// `id = expression` or `id = @target: expression`
    Assign {
        /// What the program calls it.
        id: Id,
        /// The tensor that is written, if that is another one.
        target: Option<Id>,
        /// The right side.
        value: Expr,
    },
    /// `codegen(l1, l2)` or `name = codegen(l1, l2)`
    Codegen {
        /// What the path is called.
        name: Option<Id>,
        /// The loops.
        loops: Vec<Id>,
    },
    /// `init(id, number)`
    Init {
        /// The tensor.
        id: Id,
        /// The value of its elements.
        value: At<Number>,
    },
}

/// A number, as it is written.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Number {
    /// Without a point.
    Int(i64),
    /// With a point or an exponent.
    Float(f64),
}

/// A right side.
#[derive(Clone, PartialEq, Debug)]
pub enum Expr {
    /// A tensor expression.
    Tensor(TensorExpr),
    /// A loop expression.
    Loop(LoopExpr),
}

/// A tensor expression. `real` ones are assignments to a tensor in memory; the others are written with a `v`.
#[derive(Clone, PartialEq, Debug)]
pub enum TensorExpr {
    /// `tensor([m, n])`, `scalar()` (Eq. 12, 13)
    New {
        /// The type of its elements, if it is stated.
        elem: Option<ElemType>,
        /// Its sizes; none for a scalar.
        shape: Option<Vec<At<Ix>>>,
    },
    /// `eq(t, [i, j] -> [j, i])` (Eq. 14)
    Eq {
        /// What is assigned.
        operand: Id,
        /// Its iterators.
        from: Option<Iters>,
        /// Those of the target.
        to: Iters,
    },
    /// `vadd(t0, t1, [[i], [j]])`, `add(t0, t1, [[i], [j]] -> [i, j])` (Eq. 15, 16)
    Op {
        /// The operation.
        op: Binary,
        /// The operands, with their iterators.
        operands: [(Id, Option<Iters>); 2],
        /// The iterators of the target of a real operation.
        to: Option<Iters>,
    },
    /// `entrywise_add(t0, t1, ...)` (Eq. 30, 31)
    Entrywise {
        /// Whether it assigns.
        real: bool,
        /// The operation.
        op: Binary,
        /// The operands, at least two.
        operands: Vec<Id>,
    },
    /// `transpose(t, [[1, 2], [3, 4]])` (Eq. 32)
    Transpose {
        /// Whether it assigns.
        real: bool,
        /// The operand.
        operand: Id,
        /// The dimensions that are exchanged.
        pairs: Vec<At<[i64; 2]>>,
    },
    /// `contract(t0, t1, [2, 1])` (Eq. 33)
    Contract {
        /// Whether it assigns.
        real: bool,
        /// The operands.
        operands: [Id; 2],
        /// The dimensions of each that are summed together.
        pairs: Vec<At<[i64; 2]>>,
    },
    /// `outerproduct(t1, t2, ...)` (Eq. 34, 35)
    Outer {
        /// Whether it assigns.
        real: bool,
        /// The operands, at least two.
        operands: Vec<Id>,
    },
}

impl TensorExpr {
    /// Whether its tensor is in memory: a new one, or one that is assigned to.
    pub fn is_kept(&self) -> bool {
        match self {
            TensorExpr::New { .. } | TensorExpr::Eq { .. } => true,
            TensorExpr::Op { to, .. } => to.is_some(),
            TensorExpr::Entrywise { real, .. }
            | TensorExpr::Transpose { real, .. }
            | TensorExpr::Contract { real, .. }
            | TensorExpr::Outer { real, .. } => *real,
        }
    }
}

/// A loop expression: an operation on loops (for `build`, on a tensor) and numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct LoopExpr {
    /// The operation.
    pub op: At<LoopOp>,
    /// What it works on.
    pub ids: Vec<Id>,
    /// Positions, counted from 1, then sizes and factors.
    pub numbers: Vec<At<i64>>,
}

/// The operations on loops.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LoopOp {
    /// `build(t)` (Eq. 19)
    Build,
    /// `stripmine(l, r, v)` (Eq. 20)
    Stripmine,
    /// `interchange(l, r1, r2)` (Eq. 21)
    Interchange,
    /// `fuse_outer(l1, l2, r)` (Eq. 22)
    FuseOuter,
    /// `fuse_inner(l, r)` (Eq. 23)
    FuseInner,
    /// `unroll(l, r)` (Eq. 24, 25); `unroll(l, r, f)` in part
    Unroll,
    /// `stripmine_n(l, n, v)` (Eq. 27)
    StripmineN,
    /// `interchange_n(l, r, n)` (Eq. 28)
    InterchangeN,
    /// `tile(l, v)` (Eq. 29)
    Tile,
    /// `unroll_and_jam(l, r, f)`
    UnrollAndJam,
    /// `parallelize(l, r)` (Sec. 3.3.3)
    Parallelize,
    /// `vectorize(l, r)`, `vectorize(l, r, width)` (Sec. 3.3.3)
    Vectorize,
    /// `skew(l, r1, r2, f)`
    Skew,
    /// `peel(l, r)`
    Peel,
}

impl LoopOp {
    /// Every one.
    pub const ALL: [LoopOp; 14] = [
        LoopOp::Build,
        LoopOp::Stripmine,
        LoopOp::Interchange,
        LoopOp::FuseOuter,
        LoopOp::FuseInner,
        LoopOp::Unroll,
        LoopOp::StripmineN,
        LoopOp::InterchangeN,
        LoopOp::Tile,
        LoopOp::UnrollAndJam,
        LoopOp::Parallelize,
        LoopOp::Vectorize,
        LoopOp::Skew,
        LoopOp::Peel,
    ];

    /// How it is written.
    pub fn name(self) -> &'static str {
        match self {
            LoopOp::Build => "build",
            LoopOp::Stripmine => "stripmine",
            LoopOp::Interchange => "interchange",
            LoopOp::FuseOuter => "fuse_outer",
            LoopOp::FuseInner => "fuse_inner",
            LoopOp::Unroll => "unroll",
            LoopOp::StripmineN => "stripmine_n",
            LoopOp::InterchangeN => "interchange_n",
            LoopOp::Tile => "tile",
            LoopOp::UnrollAndJam => "unroll_and_jam",
            LoopOp::Parallelize => "parallelize",
            LoopOp::Vectorize => "vectorize",
            LoopOp::Skew => "skew",
            LoopOp::Peel => "peel",
        }
    }

    /// What its numbers are, in order, and how many of the last ones can be left out.
    pub fn numbers(self) -> (&'static [&'static str], usize) {
        const LOOP: &str = "the position of a loop, from 1";
        const FACTOR: &str = "a factor";
        const SIZE: &str = "the size of a block";
        match self {
            LoopOp::Build => (&[], 0),
            LoopOp::Stripmine => (&[LOOP, SIZE], 0),
            LoopOp::Interchange => (&[LOOP, LOOP], 0),
            LoopOp::FuseOuter => (&["the number of loops that are fused"], 0),
            LoopOp::FuseInner | LoopOp::Parallelize | LoopOp::Peel => (&[LOOP], 0),
            LoopOp::Unroll => (&[LOOP, FACTOR], 1),
            LoopOp::StripmineN => (&["the number of loops", SIZE], 0),
            LoopOp::InterchangeN => (&[LOOP, "the number of loops that it moves through"], 0),
            LoopOp::Tile => (&[SIZE], 0),
            LoopOp::UnrollAndJam => (&[LOOP, FACTOR], 0),
            LoopOp::Vectorize => (&[LOOP, "the number of lanes"], 1),
            LoopOp::Skew => (&[LOOP, LOOP, FACTOR], 0),
        }
    }

    /// How many ids it works on.
    pub fn ids(self) -> usize {
        if self == LoopOp::FuseOuter { 2 } else { 1 }
    }

    /// How it is written, with its arguments.
    pub fn usage(self) -> &'static str {
        match self {
            LoopOp::Build => "build(t)",
            LoopOp::Stripmine => "stripmine(l, r, v)",
            LoopOp::Interchange => "interchange(l, r1, r2)",
            LoopOp::FuseOuter => "fuse_outer(l1, l2, r)",
            LoopOp::FuseInner => "fuse_inner(l, r)",
            LoopOp::Unroll => "unroll(l, r) or unroll(l, r, f)",
            LoopOp::StripmineN => "stripmine_n(l, n, v)",
            LoopOp::InterchangeN => "interchange_n(l, r, n)",
            LoopOp::Tile => "tile(l, v)",
            LoopOp::UnrollAndJam => "unroll_and_jam(l, r, f)",
            LoopOp::Parallelize => "parallelize(l, r)",
            LoopOp::Vectorize => "vectorize(l, r) or vectorize(l, r, width)",
            LoopOp::Skew => "skew(l, r1, r2, f)",
            LoopOp::Peel => "peel(l, r)",
        }
    }
}

/// The words of the four operations.
pub(crate) const ARITHMETIC: [(&str, Binary); 4] =
    [("add", Binary::Add), ("sub", Binary::Sub), ("mul", Binary::Mul), ("div", Binary::Div)];
