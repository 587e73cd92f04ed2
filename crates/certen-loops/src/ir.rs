//! The Loop IR: buffers, loops, conditions and assignments of scalars.
//!
//! A [`LoopProgram`] has the interface of the Core program that it came from and a body of [`Stmt`]s. Values are
//! *scalar* Core terms in the program's own arena ([`LoopProgram::terms`]), restricted to what a machine computes in
//! one go: references to locals and to buffers without dimensions, elements of buffers, constants, indices, and
//! scalar operations. Everything else of Core has become statements.
//!
//! The IR is plain data. [`verify`](crate::verify) says whether it is well-formed; every pass leaves it so.

use certen_core::{ElemType, Parameter, Range, ReduceOp, Table, TensorType, TermId, Terms};
use certen_index::{Cond, Ix};
use certen_syntax::Name;

/// A program of loops.
#[derive(Clone, Debug)]
pub struct LoopProgram {
    /// What it is called; a C function will have this name.
    pub name: Name,
    /// The symbolic sizes, in the order of the C function's parameters.
    pub sizes: Vec<Name>,
    /// What holds of the sizes.
    pub facts: Vec<Cond>,
    /// The buffers that the caller gives to be read.
    pub inputs: Vec<Parameter>,
    /// The buffers that the caller gives to be written. Their content is undefined at first.
    pub outputs: Vec<Parameter>,
    /// The tensors whose elements are known: read like inputs.
    pub constants: Vec<Constant>,
    /// Those of the outputs that vectors store past the caches. No effect on what is computed.
    pub streamed: Vec<Name>,
    /// The computation, in order.
    pub body: Vec<Stmt>,
    /// The values of all statements.
    pub terms: Terms,
}

/// A tensor of constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constant {
    /// Its name.
    pub name: Name,
    /// Its elements.
    pub table: Table,
}

impl LoopProgram {
    /// The buffers that are there from the beginning to the end: inputs, outputs and constants.
    pub fn given(&self) -> impl Iterator<Item = (Name, &TensorType)> {
        let parameters = self.inputs.iter().chain(&self.outputs).map(|parameter| (parameter.name, &parameter.ty));
        parameters.chain(self.constants.iter().map(|constant| (constant.name, constant.table.ty())))
    }
}

/// A statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stmt {
    /// Here begins the computation of what the user calls by this name. No effect; it divides the body into parts that a
    /// person knows. The buffer that is written may have another name: several tensors can share its memory.
    Nest(Name),
    /// A buffer from here to its [`Stmt::Free`] in the same block. Its content is undefined at first.
    Alloc(Name, TensorType),
    /// The end of a buffer.
    Free(Name),
    /// Two allocated buffers of the same type, which has dimensions, exchange their contents. Nothing is copied.
    Swap(Name, Name),
    /// The body for every value of the index: in order, or independently of each other.
    For {
        /// The index, in scope in the body.
        index: Name,
        /// Its values; none if the range is empty.
        range: Range,
        /// Who runs the iterations.
        mode: Mode,
        /// What is repeated.
        body: Vec<Stmt>,
    },
    /// One of two blocks, by a condition on indices.
    If {
        /// The condition.
        cond: Cond,
        /// What is done where it holds.
        then: Vec<Stmt>,
        /// What is done where it does not; often nothing.
        otherwise: Vec<Stmt>,
    },
    /// A scalar that can be assigned, from here to the end of the block.
    Local {
        /// Its name.
        name: Name,
        /// Its type.
        elem: ElemType,
        /// Its first value; without one it must be assigned before it is read.
        init: Option<TermId>,
    },
    /// A scalar or element is replaced by a value, or combined with it: `=`, `+=`, ….
    Assign {
        /// What is written.
        target: Target,
        /// How the old value is combined with the new one; none replaces it.
        op: Option<ReduceOp>,
        /// The new value.
        value: TermId,
    },
}

/// Who runs the iterations of a loop. In every mode but the first they are independent of each other, which the verifier
/// proves; only the iterations of a [`Mode::Vector`] loop may [combine](crate::combined) into a local from outside.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// One thread, in order.
    #[default]
    Serial,
    /// Several threads.
    Parallel,
    /// One thread, several at a time: the lanes of a vector.
    Vector,
    /// Several threads, each several at a time.
    ParallelVector,
}

impl Mode {
    /// What stands before the loop in its text.
    pub fn word(self) -> &'static str {
        match self {
            Mode::Serial => "",
            Mode::Parallel => "parallel ",
            Mode::Vector => "vector ",
            Mode::ParallelVector => "parallel vector ",
        }
    }

    /// Whether several threads run the iterations.
    pub fn is_parallel(self) -> bool {
        matches!(self, Mode::Parallel | Mode::ParallelVector)
    }

    /// Whether the lanes of a vector run them.
    pub fn is_vector(self) -> bool {
        matches!(self, Mode::Vector | Mode::ParallelVector)
    }

    /// The same, run by several threads.
    pub fn shared(self) -> Mode {
        if self.is_vector() { Mode::ParallelVector } else { Mode::Parallel }
    }
}

/// What an assignment writes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A local scalar.
    Local(Name),
    /// An element of a buffer; the element of a buffer without dimensions has no indices.
    Element(Name, Box<[Ix]>),
}

impl Target {
    /// The local or buffer.
    pub fn name(&self) -> Name {
        match self {
            Target::Local(name) | Target::Element(name, _) => *name,
        }
    }
}

/// Blocks deeper than this are refused by everything that reads loop programs, so that walking over a body may recurse.
/// Front doors allow about 100 nested reductions and 64 dimensions.
pub const MAX_NESTING: usize = 256;
