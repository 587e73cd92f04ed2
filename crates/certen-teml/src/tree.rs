//! Trees in the paper's notation (Sec. 3.1): ⟨(op, S, I), [..]⟩ for tensor expressions.
//!
//! I is • for operations and scalars, and ε for a tensor whose iterators are not given yet. A tree that is large is not
//! written out: its inner parts are named as the paper names them, σ4(D), by the state in which an identifier got them.

use std::fmt::Write as _;

use certen_index::Ix;
use certen_syntax::Name;
use rustc_hash::FxHashMap;

use crate::assignment::{Assignment, Begin, Node, ValueId};
use crate::tensors::{Kind, Tensors};

/// How many parts of a tree are written out.
const MOST_PARTS: usize = 24;
/// How deep it is written out.
const MOST_LEVELS: usize = 8;

/// The states in which right sides got their names.
#[derive(Default)]
pub(crate) struct Defined {
    by: FxHashMap<ValueId, (usize, Name)>,
}

impl Defined {
    /// That an identifier got a right side in a state.
    pub(crate) fn insert(&mut self, value: ValueId, state: usize, id: Name) {
        self.by.entry(value).or_insert((state, id));
    }
}

/// What is written, and how much of it still may be.
struct Tree<'a> {
    tensors: &'a Tensors,
    defined: &'a Defined,
    left: usize,
    out: String,
}

fn list<T: std::fmt::Display>(parts: impl IntoIterator<Item = T>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    format!("[{}]", parts.join(", "))
}

/// What an identifier stands for, as a tree.
pub(crate) fn tree(tensors: &Tensors, defined: &Defined, kind: &Kind) -> String {
    let mut tree = Tree { tensors, defined, left: MOST_PARTS, out: String::new() };
    match kind {
        Kind::Tensor(at) => {
            let tensor = &tensors.tensors[*at];
            let iters = if tensors.is_scalar(*at) { "•" } else { "ε" };
            let _ = write!(tree.out, "⟨({}, {}, {iters}), []⟩", tensor.name, list(&tensor.shape));
        }
        Kind::Virtual(found) => tree.value(found.value, 0, true),
        Kind::Real(at) => tree.assignment(&tensors.assignments[*at]),
    }
    tree.out
}

impl Tree<'_> {
    fn assignment(&mut self, assignment: &Assignment) {
        self.out.push_str("⟨(=, •, •), [");
        self.leaf(assignment.target, &assignment.out);
        self.out.push_str(", ");
        let op = match assignment.begin {
            Begin::Write => None,
            Begin::Contract => Some("+"),
            Begin::Accumulate { op: certen_core::ReduceOp::Prod, .. } => Some("*"),
            Begin::Accumulate { negated: true, .. } => Some("-"),
            Begin::Accumulate { .. } => Some("+"),
        };
        match op {
            Some(op) => {
                // Eq. 33: the target is its own accumulator.
                let shape = list(self.shape(assignment.target));
                let _ = write!(self.out, "⟨({op}, {shape}, •), [");
                self.leaf(assignment.target, &assignment.out);
                self.out.push_str(", ");
                self.value(assignment.value, 1, false);
                self.out.push_str("]⟩");
            }
            None => self.value(assignment.value, 1, false),
        }
        self.out.push_str("]⟩");
    }

    fn shape(&self, tensor: Name) -> Vec<Ix> {
        self.tensors.named(tensor).map(|at| self.tensors.tensors[at].shape.clone()).unwrap_or_default()
    }

    fn leaf(&mut self, tensor: Name, entries: &[Ix]) {
        let scalar = self.tensors.named(tensor).is_some_and(|at| self.tensors.is_scalar(at));
        let iters = if scalar { "•".to_owned() } else { list(entries) };
        let _ = write!(self.out, "⟨({tensor}, {}, {iters}), []⟩", list(self.shape(tensor)));
    }

    fn value(&mut self, id: ValueId, level: usize, whole: bool) {
        let node = self.tensors.values.get(id);
        let is_leaf = matches!(node, Node::Element(..) | Node::Number(_));
        if !is_leaf && !whole && (self.left == 0 || level >= MOST_LEVELS) {
            match self.defined.by.get(&id) {
                Some((state, name)) => {
                    let _ = write!(self.out, "σ{state}({name})");
                }
                None => self.out.push('…'),
            }
            return;
        }
        self.left = self.left.saturating_sub(1);
        let shape = self.tensors.shapes.get(&id).map(list).unwrap_or_default();
        match node {
            Node::Element(name, entries) => self.leaf(*name, entries),
            Node::Number(literal) => {
                let _ = match literal {
                    certen_core::Literal::Float(value) => write!(self.out, "⟨({value:?}, [], •), []⟩"),
                    certen_core::Literal::Int(value) => write!(self.out, "⟨({value}, [], •), []⟩"),
                    certen_core::Literal::Bool(value) => write!(self.out, "⟨({value}, [], •), []⟩"),
                };
            }
            Node::Op(op, one, two) => {
                let _ = write!(self.out, "⟨({}, {shape}, •), [", op.name());
                self.value(*one, level + 1, false);
                self.out.push_str(", ");
                self.value(*two, level + 1, false);
                self.out.push_str("]⟩");
            }
            Node::Sum(iters, part) => {
                let iters: Vec<&str> = iters.iter().map(|(iter, _)| iter.as_str()).collect();
                let _ = write!(self.out, "⟨(Σ {}, {shape}, •), [", iters.join(" "));
                self.value(*part, level + 1, false);
                self.out.push_str("]⟩");
            }
        }
    }
}
