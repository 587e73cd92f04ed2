//! What a TeML program computes: its real statements, with everything inferred.
//!
//! `value` and `out` are over the iterators; nothing here knows of states or of loops. Right sides are trees in one
//! arena for the whole program, since a virtual tensor can be part of many statements, and of another one more than
//! once.
//!
//! Guarantees: parts of a node have smaller numbers than the node, and equal nodes have the same number. Iterators have
//! names that no size, no tensor and no statement has; those of a [`Node::Sum`] occur nowhere but inside it, which may
//! itself be part of a tree more than once. All accesses are in bounds, for all sizes.

use certen_core::{Binary, ElemType, Literal, ReduceOp, TensorType};
use certen_index::Ix;
use certen_syntax::schedule::Step;
use certen_syntax::{Name, Span};
use rustc_hash::FxHashMap;

/// All of a program that has a meaning.
#[derive(Clone, Debug)]
pub struct Statements {
    /// What the program is called.
    pub name: Name,
    /// The names in sizes, in the order of their first appearance.
    pub sizes: Vec<Name>,
    /// The tensors, in the order in which they are introduced; each size of each is at least 0.
    pub tensors: Vec<Tensor>,
    /// The real statements, in the order of the text.
    pub assignments: Vec<Assignment>,
    /// The right sides.
    pub values: Values,
}

/// A tensor that is kept in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Tensor {
    /// Its name.
    pub name: Name,
    /// The type of its elements.
    pub elem: ElemType,
    /// Its sizes.
    pub shape: Vec<Ix>,
    /// Where it is introduced.
    pub span: Span,
}

impl Tensor {
    /// Its type.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.elem, self.shape.clone())
    }
}

/// A real statement: for all values of its iterators, `target[out] = value`, reading old values and writing new ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Assignment {
    /// What the program calls it, made unique among all statements.
    pub id: Name,
    /// The tensor that it writes.
    pub target: Name,
    /// The element that is written.
    pub out: Vec<Ix>,
    /// Its iterators and their extents: those of the left side, then in the order of their first appearance. An extent
    /// that is negative is none.
    pub iterators: Vec<(Name, Ix)>,
    /// What becomes of the target's old value.
    pub begin: Begin,
    /// The right side, without the target's old value if that is combined with it.
    pub value: ValueId,
    /// Whether this is `init`, which is part of no nest that the program builds.
    pub init: bool,
    /// Where it stands.
    pub span: Span,
}

/// What becomes of the old value of an assignment's target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Begin {
    /// It is overwritten; every iterator stands in `out`.
    Write,
    /// It is combined with the value, over all iterators that are not in `out`; the value is subtracted if so.
    Accumulate {
        /// A sum or a product.
        op: ReduceOp,
        /// Whether values are subtracted.
        negated: bool,
    },
    /// It becomes zero first, then values are added over all iterators that are not in `out` (Eq. 33).
    Contract,
}

/// A right side, or a part of one: its number in [`Values`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ValueId(u32);

impl ValueId {
    /// The number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A right side.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Node {
    /// An element of a tensor.
    Element(Name, Vec<Ix>),
    /// A number (`init`), of the element type of the target.
    Number(Literal),
    /// An operation.
    Op(Binary, ValueId, ValueId),
    /// The sum over iterators that occur nowhere else, with their extents (`vcontract`).
    Sum(Vec<(Name, Ix)>, ValueId),
}

/// All right sides of a program.
#[derive(Clone, Default, Debug)]
pub struct Values {
    nodes: Vec<Node>,
    known: FxHashMap<Node, ValueId>,
}

impl Values {
    /// No right sides.
    pub fn new() -> Values {
        Values::default()
    }

    /// A node.
    pub fn get(&self, id: ValueId) -> &Node {
        &self.nodes[id.index()]
    }

    /// All of them, parts first.
    pub fn all(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..self.nodes.len() as u32).map(ValueId)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The iterators of all sums, with their extents.
    pub fn sums(&self) -> impl Iterator<Item = &(Name, Ix)> {
        self.nodes.iter().flat_map(|node| match node {
            Node::Sum(iterators, _) => iterators.as_slice(),
            _ => &[],
        })
    }

    /// The number of a node, which it gets if it is new.
    pub fn add(&mut self, node: Node) -> ValueId {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        let id = ValueId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(node.clone());
        self.known.insert(node, id);
        id
    }
}

/// One `codegen`: the loops of statements, in order, and how they are transformed.
#[derive(Clone, PartialEq, Debug)]
pub struct Route {
    /// What it is called.
    pub name: Name,
    /// Where it stands.
    pub span: Span,
    /// The loops, one for each id in the list.
    pub entries: Vec<Entry>,
}

/// A loop expression: the nests that it begins with, which follow each other, and what is done to them.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The statements that are built, by their numbers, in order. None stands in a route twice.
    pub assignments: Vec<usize>,
    /// The transformations. A loop is called `id.iterator` before the first.
    pub steps: Vec<Step>,
}
